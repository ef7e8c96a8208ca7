"""Certificates as parts of `OpenDP <https://docs.opendp.org>`_. Owns :func:`to_measurement`, :func:`to_transformation` and :func:`policy_of_margins`.

OpenDP composes measurements, filters budgets and has noise of its own; what it lacks are sensitivities under exact public facts. A certificate becomes a
transformation whose stability map is the certificate, and OpenDP adds the noise.

Notes
-----
OpenDP asks for two features here, which it enables for the whole process and which are therefore left to the caller:
``dp.enable_features("contrib", "honest-but-curious")``.

Between two data sets that are d steps of the policy apart, the answers differ by at most d times the certificate (triangle inequality), which is the stability
map. Two data sets with different public facts are no number of steps apart, and OpenDP promises nothing about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import floor, inf, nextafter
from typing import TYPE_CHECKING, Any

from policygraph.curator import gate
from policygraph.curator.requests import Request
from policygraph.errors import InputError, PolicyGraphError, RefusedError, shown
from policygraph.exact import Exact, sqrt_up
from policygraph.mechanisms.additive import Additive, for_loss
from policygraph.model.constraints import Cuboid
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Rho, loss_of
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.sensitivity.certificate import Sensitivity

if TYPE_CHECKING:
    from opendp.mod import Measurement, Transformation

__all__ = ["policy_of_margins", "to_measurement", "to_transformation"]


def to_measurement(
    certificate: Sensitivity, *, epsilon: Exact | None = None, rho: Exact | None = None
) -> Measurement:
    """A measurement of OpenDP that answers the query of a certificate with noise.

    Parameters
    ----------
    certificate
        From :func:`policygraph.sensitivity`, in l1 for ``epsilon`` and in l2 for ``rho``.
    epsilon, rho
        The privacy loss of one step between neighbours: discrete Laplace noise for ``epsilon``, discrete Gaussian noise for ``rho``.

    Returns
    -------
    opendp.Measurement
        From data, as :func:`policygraph.release` takes them, to a list of noisy integers in the order of the query. Multiply by ``certificate.query.unit``
        where that is not 1. ``map(d)`` is the loss between data sets that are d steps apart. Nothing is charged to a ledger of policygraph: OpenDP keeps the account.

    Raises
    ------
    InputError
        For a certificate that was read from a file, or in another norm than the loss; when opendp is not installed.
    RefusedError
        For queries that counts of cells do not answer, such as sums of values.

    Examples
    --------
    >>> import policygraph as pg
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    >>> measurement = to_measurement(pg.sensitivity(pg.queries.identity(domain), policy), epsilon="1/2")
    >>> measurement.map(1), measurement.map(3), len(measurement([5, 0, 2, 1, 1, 7]))
    (0.5, 1.5, 6)
    """
    dp = _library()
    loss = loss_of(epsilon, rho, None)
    ready = _ready(certificate, loss)
    stable = _transformation(dp, ready)
    if isinstance(loss, Epsilon):
        then, scale = dp.m.then_laplace, _float_up(ready.parameter)
    else:
        then, scale = dp.m.then_gaussian, _float_up(sqrt_up(ready.parameter))
    made = stable >> then(scale=scale)
    while scale and made.map(1) > float(loss.value):
        # OpenDP rounds its map up; a few last digits more noise, and it says what was asked.
        scale = nextafter(scale, inf)
        made = stable >> then(scale=scale)
    return made


def to_transformation(certificate: Sensitivity) -> Transformation:
    """A transformation of OpenDP from data to the exact answers of the query of a certificate, for measurements of OpenDP to follow.

    Its output is not private.

    Parameters
    ----------
    certificate
        From :func:`policygraph.sensitivity`.

    Returns
    -------
    opendp.Transformation
        To integers in the l1 distance (``i64``), or the l2 distance (``f64``) for a certificate in l2. ``map(d)`` is d times the certificate.

    Examples
    --------
    >>> import policygraph as pg
    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    >>> stable = to_transformation(pg.sensitivity(pg.queries.identity(domain), policy))
    >>> stable.map(1), stable.map(2)
    (4, 8)
    >>> (stable >> dp.m.then_geometric(scale=8.0)).map(1)
    0.5
    """
    dp = _library()
    return _transformation(dp, _ready(certificate, Epsilon(1) if _norm(certificate) == "l1" else Rho(1)))


def policy_of_margins(domain: Domain, margins: Iterable[Any]) -> Policy:
    """The policy that OpenDP's margins describe, when what they call invariant is public and exact.

    OpenDP takes "invariant" keys and lengths as unprotected information and leaves the noise as it is; here lengths are public facts, and the noise grows with what they
    give away. Keys are the labels of a domain, which are public in any case. Bounds on lengths and on the number of groups restrict which data sets are neighbours, and
    nothing is gained from them here.

    Parameters
    ----------
    domain
        The domain of the records.
    margins
        ``dp.polars.Margin`` objects, or others with ``by`` (names of attributes) and ``invariant`` (None, ``"keys"`` or ``"lengths"``).

    Examples
    --------
    >>> import policygraph as pg
    >>> import opendp.prelude as dp
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> margins = [dp.polars.Margin(by=["sex"], invariant="lengths"), dp.polars.Margin(by=["age"], invariant="lengths")]
    >>> pg.sensitivity(pg.queries.identity(domain), policy_of_margins(domain, margins)).value
    Fraction(4, 1)
    """
    facts = []
    for margin in margins:
        by, invariant = getattr(margin, "by", None), getattr(margin, "invariant", None)
        names = tuple(by) if isinstance(by, (list, tuple)) else None
        if (
            names is None
            or any(not isinstance(each, str) for each in names)
            or invariant not in (None, "keys", "lengths")
        ):
            raise InputError(
                f"{shown(margin)}: expected a margin of OpenDP: by=[names of attributes], invariant=None, 'keys' or 'lengths'.",
                code="opendp.margin",
                value=margin,
            )
        for each in names:
            domain.labels(each)  # refuses names that the domain lacks, for keys too
        if invariant == "lengths":
            facts.append(Cuboid(*names))
    return Policy(domain, constraints=facts)


def _library() -> Any:
    """OpenDP, or how to get it."""
    try:
        import opendp.prelude as dp
    except ImportError as cause:
        raise InputError(
            'OpenDP is not installed: pip install "policygraph[opendp]".', code="opendp.missing"
        ) from cause
    return dp


def _norm(certificate: Any) -> str:
    if not isinstance(certificate, Sensitivity):
        raise InputError(
            f"{shown(certificate)}: expected a certificate from pg.sensitivity(query, policy).",
            code="opendp.certificate",
            value=certificate,
        )
    return certificate.norm


def _ready(certificate: Any, loss: Any) -> Additive:
    """Additive noise for a certificate, which refuses one of another norm or from a file."""
    _norm(certificate)
    if not isinstance(certificate.query, Query) or certificate.query.needs_values:
        raise RefusedError(
            f"{certificate.query!r} is not answered by counts of cells: expected a histogram, cuboids or another linear query. Use pg.release.",
            code="opendp.query",
        )
    return for_loss(loss).calibrate(certificate.query, certificate.policy, loss, certificate)


def _transformation(dp: Any, ready: Additive) -> Any:
    name = ready.policy.fingerprint
    proof, unit = ready.sensitivity, ready.query.unit
    step = proof.power / (unit if proof.norm == "l1" else unit**2)

    def counted(data: Any) -> Any:
        counts = Request(ready.query, ready.policy, ready.loss, data=data).count()
        gate.check(ready, counts)
        return counts

    def member(data: Any) -> bool:
        try:
            counted(data)
        except PolicyGraphError:
            return False
        return True

    def answers(data: Any) -> list[int]:
        [found] = counted(data).answers([ready.query])
        return list(found.tolist())

    whole = proof.norm == "l1"
    return dp.t.make_user_transformation(
        dp.user_domain(f"policygraph: data sets under the policy {name}", member),
        dp.user_distance(f"policygraph: steps between neighbours of the policy {name}"),
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.l1_distance(T="i64") if whole else dp.l2_distance(T="f64"),
        answers,
        _stability(step, whole=whole),
    )


def _stability(step: Fraction, *, whole: bool) -> Callable[[Any], int | float]:
    def stability(distance: Any) -> int | float:
        if not isinstance(distance, int) or isinstance(distance, bool) or distance < 0:
            raise InputError(
                f"{shown(distance)}: expected a number of steps between neighbours, 0 or more.",
                code="opendp.distance",
            )
        # Whole numbers differ by whole numbers, so that rounding down is no smaller bound.
        return floor(distance * step) if whole else _float_up(sqrt_up(distance**2 * step))

    return stability


def _float_up(value: Fraction) -> float:
    """The least float that is not below a fraction."""
    near = float(value)
    return near if Fraction(near) >= value else nextafter(near, inf)
