"""Which mechanism a release uses when none is named. Owns :func:`choose`.

Data-free: it compares expected errors that follow from the policy, the query and the loss, and counts its effort in work.
"""

from __future__ import annotations

import numpy as np

from policygraph.distributions import gaussian_variance, laplace_variance
from policygraph.errors import RefusedError
from policygraph.mechanisms.additive import for_loss
from policygraph.mechanisms.base import Calibrated, chosen
from policygraph.mechanisms.constrained.free_lattice import FreeLattice, free_lattice, measured
from policygraph.mechanisms.constrained.mechanism import (
    Confined,
    FittedNoise,
    Kernel,
    coordinate_rows,
)
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.ties import least

CHOICE_CELLS = 400
"""Up to so many cells noise inside the free space is considered."""
CHOICE_ANSWERS = 1_000
FREE_NUMBERS = 60
"""More free numbers than this are not measured one by one: with many of them the fit is the better choice."""


def choose(query: Query, policy: Policy, loss: Loss) -> Calibrated:
    """Calibrate the mechanism with the smallest expected squared error, summed over the answers.

    Parameters
    ----------
    query, policy, loss
        What to release, what to hide, what it may cost.

    Returns
    -------
    Calibrated
        Additive noise, additive noise fitted to the public facts, or noise on the free numbers; ``why`` says
        which, with the figures that were compared.

    Raises
    ------
    RefusedError
        When none of them has a proved sensitivity.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    >>> ready = choose(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> print(ready.why)
    Chosen by the expected sum of squared errors: noise on the 1 free number 7.365, noise on every answer and a fit to the
    public facts 44.12 at most, noise on every answer 127.3.

    Notes
    -----
    The three are compared as they are released. Fitting is post-processing, so that a reader of plain noise could do it
    as well; it is listed by itself because its result fits the facts in whole numbers.
    """
    query.check_domain(policy.domain)
    plain: Calibrated | None = None
    refusal: RefusedError | None = None
    try:
        plain = for_loss(loss).calibrate(query, policy, loss)
    except RefusedError as error:
        refusal = error
    start = _free(query, policy)
    certificate = None if plain is None else plain.sensitivity
    if start is None or (certificate is not None and certificate.power == 0):
        if plain is None:
            raise refusal or RefusedError("no mechanism applies.", code="kernel.none")
        return plain
    fitted = kernel = None
    if certificate is not None:
        fitted = FittedNoise(
            "Fitted", query, policy, loss, certificate, free_lattice(query, policy, stepwise=True)
        )
    free = measured(start, query, policy, loss.norm)
    skipped = fitted is not None and (free.rank > FREE_NUMBERS or _hopeless(free, fitted, policy))
    if not skipped:
        try:
            kernel = Kernel().on(free, query, policy, loss)
        except RefusedError as error:
            refusal = refusal or error
    rivals: list[Calibrated] = [c for c in (kernel, fitted, plain) if c is not None]
    if not rivals:
        raise refusal or RefusedError("no mechanism applies.", code="kernel.none")
    winner = least(rivals, key=lambda rival: rival.total_error)
    why = _reason(kernel, fitted, plain, free.rank, skipped)
    return chosen(winner, why)


def _free(query: Query, policy: Policy) -> FreeLattice | None:
    """The free lattice, if there are public facts that bind the answers, on a domain of moderate size."""
    if policy.definition == "edges" or not policy.constraints:
        return None
    if policy.domain.size > CHOICE_CELLS or query.height > CHOICE_ANSWERS:
        return None
    free = free_lattice(query, policy)
    return free if 0 < free.rank < query.height else None


def _hopeless(free: FreeLattice, fitted: Confined, policy: Policy) -> bool:
    """Whether a pair of neighbours that is known already makes noise on the free numbers the worse choice."""
    witness = fitted.sensitivity.witness
    if witness is None:
        return False
    change = coordinate_rows(free, policy).change_norm(witness.change, fitted.loss.norm)
    if change == 0:
        return False
    value = fitted.loss.value
    laplace = isinstance(fitted.loss, Epsilon)
    variance = laplace_variance(change / value) if laplace else gaussian_variance(change / (2 * value))
    factors = np.concatenate(
        [np.full(p.height, float(fitted.factor(at))) for at, p in enumerate(fitted.query.parts)]
    )
    spread = float(((np.asarray(free.basis, dtype=np.float64) * factors[:, None]) ** 2).sum())
    return variance * spread >= fitted.total_error


def _reason(
    kernel: Calibrated | None, fitted: Calibrated | None, plain: Calibrated | None, rank: int, skipped: bool
) -> str:
    numbers = f"noise on the {rank} free number{'' if rank == 1 else 's'}"
    parts = []
    if kernel is not None:
        parts.append(f"{numbers} {kernel.total_error:.4g}")
    if fitted is not None:
        parts.append(f"noise on every answer and a fit to the public facts {fitted.total_error:.4g} at most")
    if plain is not None:
        parts.append(f"noise on every answer {plain.total_error:.4g}")
    parts.sort(key=lambda part: float(part.removesuffix(" at most").rsplit(" ", 1)[1]))
    text = "Chosen by the expected sum of squared errors: " + ", ".join(parts)
    if kernel is None:
        missing = (
            "was left out as more, or as too many to certify" if skipped else "has no proved sensitivity"
        )
        text += f"; {numbers} {missing}"
    return text + "."
