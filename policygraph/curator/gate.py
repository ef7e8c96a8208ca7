"""The gate: the one place where true answers meet noise. Owns :func:`check`, :func:`draw` and :func:`run`.

A calibrated mechanism says what is answered, which noise it gets and what is made of the noisy numbers; it never sees data. Families that look at data
before they add noise have a runner, a module of ``curator.runners`` with a function ``draw`` of the same form. ``docs/explanation/trusted-code.md`` says for each
line why no true value leaves.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from policygraph.curator.counting import check_records
from policygraph.curator.histogram import Data, Held, Histogram, Ints, MeasuredCounts
from policygraph.curator.noise import Rng, discrete_gaussian, discrete_laplace
from policygraph.curator.noise.blocks import BLOCK
from policygraph.curator.noise.rng import fetch
from policygraph.distributions.noise import GAUSSIAN, LAPLACE, NONE, Noise
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import Calibrated, check_drawable
from policygraph.mechanisms.measured import MeasuredNoise
from policygraph.mechanisms.members import OnMembers, fits_members, sums_in_all
from policygraph.model.domain import Network
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import Policy
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.units import Unit
from policygraph.release.release import Randomness, Release
from policygraph.sensitivity.proofs import proved

Outputs = npt.NDArray[Any] | list[Ints]
"""Independent outputs, one for each run: the rows of an array, or arrays of different lengths."""


class Runner(Protocol):
    """Draws for a family of mechanisms that looks at data before it adds noise."""

    def draw(self, ready: Any, data: Histogram, rng: Rng, n: int, /) -> Outputs:
        """Return n independent outputs; each must be private at the loss of the mechanism."""


RUNNERS: dict[str, str | Runner] = {
    "adaptive": "policygraph.curator.runners.adaptive",
    "exponential": "policygraph.curator.runners.exponential",
    "members": "policygraph.curator.runners.members",
    "partitioned": "policygraph.curator.runners.partitioned",
    "sparse": "policygraph.curator.runners.sparse",
    "transformed": "policygraph.curator.runners.transformed",
}
"""By the name that a calibrated mechanism gives in ``runner``; ours are loaded when they are first needed."""

BLOCKS = "policygraph.curator.runners.blocks"
"""What makes the parts of a table that is too large for one machine."""

OWN_RUNNERS = frozenset(RUNNERS)
"""Runners that hand true counts to the mechanism itself, or take its word for what is public: for mechanisms of the library alone."""


def register_runner(name: str, runner: Runner) -> None:
    """Let a runner of others draw for mechanisms that name it. It sees true counts: whoever registers it answers for it.

    Raises
    ------
    InputError
        When the name is taken, or the runner has no ``draw``.
    """
    if name in RUNNERS or not name or not callable(getattr(runner, "draw", None)):
        raise InputError(
            f"runner {name!r}: expected a new name and an object with draw(ready, data, rng, n).",
            code="gate.runner",
            value=name,
        )
    RUNNERS[name] = runner


def run(ready: Calibrated, data: Any, rng: Rng) -> Release:
    """Make a release: check the data, draw the noise, publish.

    Parameters
    ----------
    ready
        The calibrated mechanism.
    data
        A histogram, or counts of the cells.
    rng
        Where the randomness comes from.
    """
    return ready.publish(draw(ready, histogram(ready, data), rng)[0], _said(rng))


def run_given(ready: Calibrated, data: Any, rng: Rng) -> Release:
    """Make a release from counts that somebody made, who need not have bounded what one unit has in them: under a unit they are refused."""
    check_records(data, ready.policy)
    return run(ready, data, rng)


def draw(ready: Calibrated, data: Data, rng: Rng, n: int = 1) -> Outputs:
    """Draw n independent outputs of a mechanism, one in each row. A release publishes one; an audit looks at many.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> ready = pg.Laplace().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(1))
    >>> draw(ready, Histogram.of(domain, [5, 0, 2]), pg.SeededRng(1), 4).shape
    (4, 3)
    """
    check(ready, data)
    return _outputs(ready, data, rng, n)


def sample(ready: Calibrated, data: Data, rng: Rng, n: int) -> Outputs:
    """Draw without looking at the size of the data again: for runners that run a mechanism on numbers that they computed from checked data."""
    check_public(ready)
    return _outputs(ready, data, rng, n)


def _outputs(ready: Calibrated, data: Data, rng: Rng, n: int) -> Outputs:
    if ready.runner:
        if isinstance(data, MeasuredCounts) and type(ready) is OnMembers:
            return sample(ready.inner, data, rng, n)
        if not isinstance(data, Histogram):
            raise _counts_only(ready)
        return _runner(ready.runner).draw(ready, data, rng, n)
    measured = [] if ready.measure is None else [ready.measure]
    answers = data.answers([*measured, *ready.exact])
    noisy = _noisy(ready, answers[0] if measured else np.zeros(0, dtype=np.int64), rng, n)
    exact = answers[len(measured) :]
    return ready.decode(noisy, np.concatenate(exact) if exact else np.zeros(0, dtype=np.int64))


def _noisy(ready: Calibrated, answers: Ints, rng: Rng, n: int) -> Ints:
    """Add noise to answers, n times independently."""
    if ready.noise.distribution == NONE or not answers.size:
        return np.tile(answers, (n, 1))
    noise = _spread(ready, independent(ready.noise, (n, ready.width), rng), answers.size)
    noise += answers
    return noise


def _spread(ready: Calibrated, draws: Ints, size: int) -> Ints:
    """Noise on the answers from independent draws; noise of another shape would be broadcast: one draw for many answers."""
    n, noise = len(draws), ready.spread(draws)
    if noise.shape != (n, size) or noise.dtype != np.int64:
        raise RefusedError(
            f"{ready.mechanism} spreads noise into {noise.shape} numbers of {noise.dtype}: expected {(n, size)} whole numbers.",
            code="gate.spread",
        )
    return noise


def independent(noise: Noise, shape: tuple[int, int], rng: Rng) -> Ints:
    """Draw independent noise; for the gate and its runners."""
    if noise.distribution == LAPLACE:
        return discrete_laplace(noise.parameter, shape, rng)
    if noise.distribution == GAUSSIAN:
        return discrete_gaussian(noise.parameter, shape, rng)
    raise _unknown(noise)


def _unknown(noise: Noise) -> RefusedError:
    return RefusedError(
        f"noise {noise.distribution!r}: expected {LAPLACE!r}, {GAUSSIAN!r} or {NONE!r}, which the gate can draw.",
        code="gate.noise",
        value=noise.distribution,
    )


def _runner(name: str) -> Runner:
    found = RUNNERS.get(name)
    if found is None:
        raise InputError(
            f"runner {name!r}: expected one of {', '.join(sorted(RUNNERS))}. Register yours with register_runner.",
            code="gate.runner",
            value=name,
        )
    if isinstance(found, str):
        module: Any = import_module(found)
        RUNNERS[name] = module
        return module  # type: ignore[no-any-return]
    return found


def check_public(ready: Calibrated) -> None:
    """Refuse numbers without noise that some move of the policy changes, and noise that cannot be drawn.

    Notes
    -----
    What our own mechanisms answer exactly is public by construction: tables that no move changes are found by proof
    (``transforms.cuboids.costs.known_cuboids``), and so are the fixed numbers of a strategy; sums of cells that the policy lists as public facts are
    equal for all neighbours by definition; Lemma 1 of ``docs/explanation/proofs/kernel-noise.md`` covers what is fitted to facts; and noise of
    scale 0 is the noise of a proved sensitivity of 0. Of the mechanisms of others nothing is taken on trust.
    """
    if type(ready).__module__.startswith("policygraph."):
        return
    if ready.runner in OWN_RUNNERS:
        raise RefusedError(
            f"{ready.mechanism} names the runner {ready.runner!r}, which would show it true counts: expected none, or one that was registered for it.",
            code="gate.runner",
            value=ready.runner,
        )
    if not ready.runner and ready.noise.distribution not in (LAPLACE, GAUSSIAN, NONE):
        raise _unknown(ready.noise)
    if not ready.runner and ready.noise.distribution != NONE and ready.measure is not None:
        # Rehearsed without data, so that noise of another shape is refused before the charge.
        _spread(ready, np.zeros((1, ready.width), dtype=np.int64), ready.measure.height)
    plain = [ready.measure] if ready.noise.distribution == NONE and not ready.runner and ready.measure else []
    for query in (*plain, *ready.exact):
        if proved(query, ready.policy, ready.loss.norm).power != 0:
            raise RefusedError(
                f"{ready.mechanism} answers {query!r} without noise, and it is not proved that no move of this policy changes it. Answer it with noise.",
                code="gate.exact",
            )


def check_parts(ready: Calibrated, data: Data) -> Additive:
    """Refuse what cannot be released in parts: anything but independent noise on the cells of one cuboid."""
    query = ready.query
    plain = (
        isinstance(query, CuboidQuery) and len(query.sets) == 1 and query.weights == (1,) and query.sets[0]
    )
    noisy = type(ready) is Additive and type(ready.policy) is Policy and ready.noise.distribution != NONE
    if not plain or not noisy or not isinstance(data, Histogram) or not isinstance(ready, Additive):
        raise RefusedError(
            f"{ready.mechanism} of {query!r} cannot be released in parts: expected noise on the counts of one cuboid, with pg.Laplace() or pg.Gaussian(). "
            "Release it without parts.",
            code="gate.parts",
        )
    check(ready, data, parts=True)
    return ready


def hold(ready: Additive, data: Data, folder: str) -> Held:
    """Count the cuboid of a release in parts, and see that its values can be made where the counts are, and written; before anything is charged."""
    held = _counts(data).held(ready.query.parts[0].columns)
    held.check(import_module(BLOCKS).NoisyBlocks(ready.noise, bytes(32), ready.query.height), folder)
    return held


def run_parts(ready: Additive, held: Held, folder: str, rng: Rng) -> Release:
    """Write the noisy table of a cuboid in parts, made where its counts are held; the release lists the parts.

    Notes
    -----
    The only randomness is one key, taken from the rng; every block of the table has noise from a key that is derived from it, so that it is the same whoever makes the
    block, and however often (``docs/explanation/proofs/noise-in-blocks.md``).
    """
    key = fetch(rng, 4).astype("<u8").tobytes()
    make = import_module(BLOCKS).NoisyBlocks(ready.noise, key, ready.query.height)
    held.write(make, folder)
    return ready.published_in_parts(BLOCK, _said(rng))


def check(ready: Calibrated, data: Data, *, parts: bool = False) -> None:
    """Refuse data that a mechanism cannot run on; asked before anything is charged, and again before anything is drawn.

    Parameters
    ----------
    parts
        Whether the table is made in parts, so that it may be of any size.

    Raises
    ------
    PolicyGraphError
        For data of another domain or measure, more records than exact integers allow, cuboids that are too large to count, and counts that do not fit
        the public facts; and for what :func:`check_public` refuses.
    """
    check_drawable(ready)
    check_public(ready)
    cut = type(ready) is MeasuredNoise and isinstance(ready.policy, Unit) and sums_in_all(ready.rows)
    if isinstance(ready.policy, Grouped) and type(ready) is not Additive and not cut:
        if type(ready) is not OnMembers or not isinstance(ready.policy, Unit) or not fits_members(ready):
            # Whatever else it is, it was not written with families or units in mind.
            raise ready.policy.refused()
        check(ready.inner, data, parts=parts)
        return
    if isinstance(ready.query, MeasureQuery):
        asked, made = ready.query.measure, getattr(ready.measure, "measure", None)
        if not isinstance(data, MeasuredCounts) or data.measure != asked:
            raise InputError(
                f"{type(data).__name__}: expected records with a value of {asked.column}, as a file, a frame or MeasuredCounts for this measure.",
                code="measure.data",
            )
        if made != asked:
            words = f"{ready.mechanism} is calibrated for {made}, and {asked} is asked: expected noise for the values that are counted. Calibrate it again."
            raise InputError(words, code="sensitivity.foreign")
    ready.query.check_domain(data.domain)
    if data.rows > ready.most_records:
        raise ready.too_many_records()
    if isinstance(data, Histogram) and not parts:
        data.check_sizes(
            [*([ready.measure] if ready.measure else []), *ready.exact] if not ready.runner else []
        )
    elif ready.runner and not parts:
        raise _counts_only(ready)
    check_facts(ready.policy, data)
    _check_certificate(ready)


def _check_certificate(ready: Calibrated) -> None:
    """Refuse a copy whose parts were exchanged: noise on each answer is scaled to a certificate of the very answers, in the norm of the loss."""
    proof, ours = ready.sensitivity, type(ready).__module__.startswith("policygraph.")
    if proof is None or ready.runner or not ours or type(ready).spread is not Calibrated.spread:
        return
    if ready.measure is not None:
        proof.check_made_for(ready.measure, ready.policy)
    if proof.norm != ready.loss.norm:
        raise InputError(
            f"a sensitivity in {proof.norm} does not fit a loss in {ready.loss}: expected {ready.loss.norm}.",
            code="mechanism.norm",
        )


def check_facts(policy: Policy | Grouped, data: Data) -> None:
    """Refuse data that do not fit the public facts: they have no neighbours, and nothing is proved about them."""
    if isinstance(policy, Families):
        policy.check_sizes(_counts(data).sparse()[1])
    if isinstance(policy, LinkedUnit):
        _check_linked(policy, data)
    system = policy.system
    if not system.has_values and not len(system.zeros):
        return
    try:
        if isinstance(policy.domain, Network):
            system.check_sparse(*_counts(data).sparse())
        else:
            system.check(data.vector())
    except ConstraintError as cause:
        raise ConstraintError(
            f"{cause} Nothing was charged. Correct the data, or the published values (equals) and zeros in the policy; without "
            "equals a fact is public, and its values are those of the data.",
            code="constraint.data",
            **cause.details,
        ) from cause


def _check_linked(policy: LinkedUnit, data: Data) -> None:
    """Refuse counts that are not of units of the two tables, or that have other totals than the public ones."""
    try:
        policy.check_table(_counts(data).vector())
    except ConstraintError as cause:
        raise ConstraintError(f"{cause} Nothing was charged.", code="linked.total") from cause


def _counts(data: Data) -> Histogram:
    return data if isinstance(data, Histogram) else data.counts


def _counts_only(ready: Calibrated) -> InputError:
    return InputError(f"{ready.mechanism} is for counts of cells.", code="measure.data")


def histogram(ready: Calibrated, data: Any) -> Data:
    """Data as a histogram: as it is, or from the counts of the cells."""
    if isinstance(data, (Histogram, MeasuredCounts)):
        return data
    counts = np.asarray(data)
    domain = ready.query.domain
    if counts.size != domain.size:
        raise InputError(f"a table of {counts.size} cells: expected {domain.size}.", code="mechanism.table")
    return Histogram.of(domain, counts)


def most_bytes(ready: Calibrated, data: Data, rng: Rng) -> int:
    """The most bytes that a release of these data takes in the ledger."""
    return ready.most_bytes(rows_at_most(ready, data), _said(rng))


def rows_at_most(ready: Calibrated, data: Data) -> int:
    """The most rows of a release."""
    rows = getattr(_runner(ready.runner), "most_rows", None) if ready.runner else None
    found: int = ready.query.height if rows is None else rows(ready, data)
    return found


def _said(rng: Rng) -> Randomness:
    return Randomness(rng.private, rng.describe())
