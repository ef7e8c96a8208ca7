"""Cubes: few cuboids measured, all published, agreeing with each other. Owns :class:`Cube` and :class:`CubeNoise`.

A strategy chooses without data what to measure; the noise is scaled to the certified sensitivity of that; everything
after the noisy numbers is post-processing (``docs/explanation/proofs/cubes.md``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from policygraph.distributions.replay import Replay
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes.cells import Fact, facts_of, finest, union, visible
from policygraph.estimation.cubes.errors import (
    coefficients_at,
    joint_ranges,
    measured_numbers,
    published_errors,
    ranges_at,
    shift_for,
)
from policygraph.estimation.cubes.finish import (
    PLAIN,
    Finish,
    Finished,
    Method,
    Nonnegative,
    cell_factors,
    finished,
    needs_finest,
    reached,
)
from policygraph.estimation.cubes.release import CubeRelease, cube_table, part_of
from policygraph.estimation.errors import Seen, runs_for, simulated
from policygraph.exact import as_fraction, show
from policygraph.mechanisms.additive import BuiltOnAdditive
from policygraph.mechanisms.base import (
    Floats,
    Ints,
    Mechanism,
    certified,
    check_loss,
)
from policygraph.mechanisms.cube.strategies import strategy_named
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Part, Query, fingerprint
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.release.release import Errors, Randomness, share_of
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import shared_proofs
from policygraph.ties import figures
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy
from policygraph.transforms.cuboids.costs import known_cuboids
from policygraph.transforms.cuboids.lattice import Lattice

MOST_RUNS, MOST_SIMULATED, MOST_PROGRAMMED = 24, 1 << 19, 1 << 12
"""How often tables that are not linear in the noise are made again to see how far they err, and up to how many numbers in all; fewer where programs are solved."""


@dataclass(frozen=True)
class CubeNoise(BuiltOnAdditive):
    """Noise on what a strategy chose to measure; published cuboids are made of it.

    Attributes
    ----------
    query
        The published cuboids.
    choice
        What is measured, with integer weights.
    sensitivity
        The certificate of what is measured.
    known
        Cuboids that are the same for all neighbours, and are published as they are.
    facts
        Public sums of cells that published tables have to meet besides; neighbours agree on them by definition.
    finish
        How the published tables are made of the noisy numbers.
    asked
        What was asked for, where that is known.
    instead
        Why the tables are not made in the way that was asked for; empty where they are.
    """

    mechanism: str
    query: CuboidQuery
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity
    choice: Choice
    known: tuple[int, ...] = ()
    facts: tuple[Fact, ...] = ()
    finish: Finish = PLAIN
    asked: str = ""
    instead: str = ""

    @cached_property
    def lattice(self) -> Lattice:
        """The cuboids of the domain."""
        return Lattice(self.query.domain)

    @cached_property
    def published(self) -> list[int]:
        """The published cuboids."""
        return [self.lattice.mask(names) for names in self.query.sets]

    @cached_property
    def measured(self) -> Query | None:
        """What is measured, as one query; None when everything published is known."""
        return self.choice.query(self.query.domain) if self.choice.sets else None

    @property
    def cut_short(self) -> bool:
        return self.choice.cut_short or super().cut_short

    @property
    def centre(self) -> Query | None:
        return self.measured

    @property
    def keeps_facts(self) -> bool:
        return self.finish.agrees and self.finish.offset is None

    @cached_property
    def cell_factors(self) -> list[float | Floats]:
        """Variance of the cells of each published cuboid in units of the noise variance: one number where they are alike."""
        return cell_factors(
            self.finish, self.lattice, self.choice, self.known, self.facts, self.published, self.published
        )

    @cached_property
    def factors(self) -> Floats:
        """Largest variance of a cell of each published cuboid in units of the noise variance."""
        return np.array([float(np.max(factor)) for factor in self.cell_factors])

    @cached_property
    def shift(self) -> float:
        """What is added to every cell of the finest table of all published attributes; 0 without an offset."""
        if self.finish.offset is None:
            return 0.0
        noise = self.noise.distribution, float(self.parameter)
        listed = partial(coefficients_at, self.lattice, self.choice, self.known, consistent=True)
        return shift_for(
            self.lattice,
            self.published,
            self.factors.tolist(),
            *noise,
            self.finish.offset,
            # Public sums of cells make the coefficients of cells of one table differ.
            None if self.facts else listed,
        )

    def deviation(self, part: int) -> float | Floats:
        made: float | Floats = np.sqrt(np.asarray(self.cell_factors[part]) * self.noise.variance)
        return made if np.ndim(made) else float(made)

    @cached_property
    def ranges(self) -> list[float | Floats]:
        """What 95 % of the noise of the linear estimate of the cells of each published cuboid stays within."""
        return ranges_at(
            self.lattice,
            self.choice,
            self.known,
            self.published,
            self.cell_factors,
            self.noise.distribution,
            float(self.parameter),
            consistent=self.finish.agrees,
        )

    def within_95(self, part: int) -> float | Floats:
        """What 95 % of the noise of the least-squares (or summed) estimate stays within."""
        return self.ranges[part]

    def joint_bound(self, delta: Any) -> list[float | Floats]:
        """For tables that are linear in the noise: delta is shared out over all published cells that have noise (union bound)."""
        if not self.finish.plain or self.shift:
            return super().joint_bound(delta)
        noisy = [
            np.broadcast_to(f, p.height) for f, p in zip(self.cell_factors, self.query.parts, strict=True)
        ]
        count = sum(int(np.count_nonzero(each)) for each in noisy)
        return joint_ranges(
            self.lattice,
            self.choice,
            self.known,
            self.published,
            self.cell_factors,
            self.noise.distribution,
            float(self.parameter),
            float(share_of(delta) / max(1, count)),
            consistent=self.finish.agrees,
        )

    def factor(self, part: int) -> Fraction:
        return Fraction(1)

    @property
    def measure(self) -> Query | None:
        return self.measured

    @cached_property
    def exact(self) -> tuple[Query, ...]:
        """Known cuboids, and public sums of cells whose values only the data have."""
        sets = [self.lattice.names(mask) for mask in self.known]
        unsaid = [fact for fact in self.facts if fact.value is None]
        known: list[Query] = [CuboidQuery(self.query.domain, sets)] if sets else []
        return (*known, *([FactSums(self.lattice, unsaid)] if unsaid else []))

    def decode(self, noisy: Ints, exact: Ints) -> Ints:
        """The noisy measured numbers, followed by the known cuboids and the values of all facts, which have no noise."""
        if self.facts:
            unsaid = sum(fact.value is None for fact in self.facts)
            rest = iter(exact[exact.size - unsaid :])
            values = [next(rest) if fact.value is None else fact.value for fact in self.facts]
            exact = np.concatenate([exact[: exact.size - unsaid], np.array(values, dtype=np.int64)])
        return super().decode(noisy, exact)

    def tables(self, points: Ints) -> dict[int, Floats]:
        """The published tables from noisy points (post-processing)."""
        return self.finished(points).tables

    def finished(self, points: Ints, smoothing: int | None = None) -> Finished:
        """The published tables from noisy points, with how they came about (post-processing)."""
        masks = [self.lattice.mask(names) for names in self.choice.sets]
        heights = [part.height for part in self.measured.parts] if self.measured else []
        measured: dict[int, Ints] = {}
        start = 0
        for mask, height in zip(masks, heights, strict=True):
            measured[mask] = points[start : start + height]
            start += height
        exact: dict[int, Ints] = {}
        for mask in self.known:
            exact[mask] = points[start : start + self.lattice.size(mask)]
            start += self.lattice.size(mask)
        valued = [fact.with_value(int(value)) for fact, value in zip(self.facts, points[start:], strict=True)]
        made = finished(
            self.finish,
            self.lattice,
            self.choice,
            measured,
            self.published,
            exact,
            valued,
            self.noise.variance,
            smoothing,
        )
        if self.shift:
            top = union(self.published)
            tables = {
                mask: t + self.shift * self.lattice.size(top & ~mask) for mask, t in made.tables.items()
            }
            return replace(made, tables=tables)
        return made

    def rehearse(self) -> None:
        """Make the tables of no records at all, so that what can be made of no data is refused before any are read or charged."""
        if self.finish.plain and not self.facts:
            return
        sizes = [self.lattice.size(mask) for mask in self.known]
        masks = [*(self.lattice.mask(names) for names in self.choice.sets), *self.published]
        if not self.facts and not needs_finest(self.finish, self.lattice, masks, self.known, self.facts):
            return
        if not self.facts and not sizes and self.finish.consistency == "least-squares":
            finest(self.lattice, masks)
            return
        height = (self.measured.height if self.measured else 0) + sum(sizes) + len(self.facts)
        self.finished(np.zeros(height, dtype=np.int64))

    def publish(self, points: Ints, randomness: Randomness) -> CubeRelease:
        try:
            ended = self.finished(points)
        except RefusedError as cause:
            if self.finish.plain:
                raise
            # The noise is paid for: whatever a program or a rounding makes of it, least squares always does.
            return replace(self, finish=PLAIN, instead=str(cause)).publish(points, randomness)
        made, fitted = ended.tables, ended.fitted
        if self.shift:
            top = union(self.published)
            fitted = {mask: t - self.shift * self.lattice.size(top & ~mask) for mask, t in made.items()}
        tables, parts, estimates = [], [], []
        stated = self._stated(points, made, fitted, ended.smoothing)
        for part, mask, errors in zip(self.query.parts, self.published, stated, strict=True):
            values = made[mask].ravel()
            estimate = None if fitted is None else fitted[mask].ravel()
            tables.append(cube_table(self.query.domain, part.columns, values, errors, estimate))
            parts.append(part_of(part.name, part.columns, part.height, self.finish, errors))
            estimates += [] if estimate is None else [estimate]
        record = self.record(randomness, parts)
        if ended.gap is not None:
            record["cube"] |= {"gap": figures(ended.gap, 2), "smoothing": ended.smoothing}
            record["stages"] = [*record["stages"], reached(ended)]
        return CubeRelease(tuple(tables), record, None if fitted is None else tuple(estimates))

    def _stated(
        self,
        points: Ints,
        made: dict[int, Floats],
        fitted: dict[int, Floats] | None,
        smoothing: int | None,
    ) -> list[Errors]:
        """Errors of the published tables: exact for linear ones, simulated for others while that is little work, bounded otherwise."""
        heights = [part.height for part in self.query.parts]
        spread = [(self.deviation(at), self.within_95(at)) for at in range(len(heights))]
        if fitted is None:
            return [Errors(*each) for each in spread]
        values, beside = ([t[mask].ravel() for mask in self.published] for t in (made, fitted))
        few = self.finish.consistency == "least-squares"
        runs = min(runs_for(sum(heights)), MOST_RUNS)
        work = runs * (sum(heights) + (self.measured.height if self.measured else 0))
        if not self.shift and self.parameter and work <= (MOST_SIMULATED if few else MOST_PROGRAMMED):
            flat = [
                np.concatenate([np.broadcast_to(e[at], h) for e, h in zip(spread, heights, strict=True)])
                for at in (0, 1)
            ]
            seen = Seen.of(np.concatenate(values), np.concatenate(beside), flat[0], flat[1])
            try:
                errors = self._simulated(points, made, seen, runs, smoothing)
                cuts = np.cumsum(heights)[:-1]
                each = zip(np.split(errors.deviation, cuts), np.split(errors.within_95, cuts), strict=True)
                return [Errors(*pair, errors.basis) for pair in each]
            except RefusedError:
                # What can be made of the noisy numbers cannot always be made of simulated ones; the bound needs none.
                pass
        return [
            published_errors(shown, estimate, *pair)
            for shown, estimate, pair in zip(values, beside, spread, strict=True)
        ]

    def _simulated(
        self, points: Ints, made: dict[int, Floats], seen: Seen, runs: int, smoothing: int | None
    ) -> Errors:
        """Errors of tables that are made of noise drawn again around published ones."""
        masks = [self.lattice.mask(names) for names in self.choice.sets]
        lacking = [m for m in masks if not any(self.lattice.computable(m, of=p) for p in self.published)]
        centre, truth = made, seen.values
        if lacking:
            sets = [self.lattice.names(mask) for mask in dict.fromkeys([*self.published, *lacking])]
            centre = replace(self, query=CuboidQuery(self.query.domain, sets)).tables(points)
            truth = np.concatenate([centre[mask].ravel() for mask in self.published])
        mean = measured_numbers(self.lattice, self.choice, centre)
        replay = Replay(self.mechanism, points)

        def again() -> Iterator[tuple[Floats, Floats]]:
            for _ in range(runs):
                drawn = points.copy()
                drawn[: len(mean)] = mean + replay.draws(self.noise, (len(mean),))
                ended = self.finished(drawn, smoothing)
                tables, fitted = ended.tables, ended.fitted
                both = [
                    np.concatenate([t[mask].ravel() for mask in self.published])
                    for t in (tables, fitted or tables)
                ]
                yield both[0], both[1]

        return simulated(seen, again(), truth)

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        made["cube"] = {
            "kind": self.choice.kind,
            "measured": [list(names) for names in self.choice.sets],
            "weights": list(self.choice.weights),
            "known": [list(self.lattice.names(mask)) for mask in self.known],
            "facts": len(self.facts),
            **self.finish.to_json(),
            "shift": self.shift,
            "objective": self.choice.objective,
            "bound": self.choice.bound,
            "reason": self.choice.reason,
        }
        return made

    def _in_counts(self, least: int, most: int) -> list[str]:
        """What was measured and its noise, in counts: tables have weights, so that the numbers that were drawn are multiples of counts."""
        proof = self.inner.sensitivity
        kind, root = "exactly" if proof.exact else "at most", "the root of " if proof.norm == "l2" else ""
        noise = self.inner.noise
        spread = float(noise.variance or 0.0) ** 0.5
        low, high = f"{spread / most:.3g}", f"{spread / least:.3g}"
        each = f"{low} in every table" if low == high else f"{low} to {high}, by table"
        weights = f"{least}" if least == most else f"{least} to {most}"
        return [
            f"Independent {noise.distribution} noise was added to each measured count, with a standard deviation of {each}, for a loss of {self.loss}.",
            f"It was drawn for counts times the weight of their table ({weights}), which one neighbour step changes by {kind} {root}{show(proof.power)} "
            f"({proof.norm.upper()}; {proof.definition}).",
        ]

    def stages(self) -> Sequence[str]:
        lines = []
        if self.known:
            named = "; ".join(" x ".join(self.lattice.names(mask)) or "the total" for mask in self.known)
            lines.append(f"No neighbour step changes these tables, which are exact: {named}.")
        if self.choice.reason:
            lines.append(self.choice.reason)
        weights = self.choice.weights
        if self.choice.kind == "cuboids" and max(weights, default=1) > 1 and self.inner.noise.variance:
            lines += self._in_counts(min(weights), max(weights))
        else:
            words = {"the answers": "the measured numbers", "each answer": "each measured number"}
            for line in self.inner.stages():
                for old, new in words.items():
                    line = line.replace(old, new)
                lines.append(line)
        if self.facts:
            lines.append(f"{len(self.facts)} public sums of cells are met exactly, too.")
        unused = len(facts_of(self.lattice, self.policy)) - len(self.facts)
        if unused:
            lines.append(
                f"{unused} public sums of cells concern no table that is made here, and are not used."
            )
        if self.instead:
            lines.append(
                f"What was asked for could not be made, and least squares stands for it: {self.instead}"
            )
        lines += self.finish.stages()
        if self.finish.offset is not None:
            lines.append(
                f"Every count is shifted: {self.shift} was added for each cell of the finest table that it sums, a number chosen before "
                f"the noise so that with probability at least {1 - self.finish.offset} no published count is negative. Subtract it to get "
                "unbiased counts."
            )
        return lines


@dataclass(frozen=True)
class Cube(Mechanism):
    """Publish cuboids from a well chosen few of them, with least noise, consistently.

    Parameters
    ----------
    strategy
        What to measure: ``"all"``, ``"base"``, ``"bmax"``, ``"unequal"`` (least total variance), ``"unequal-max"``,
        ``"fourier"``, or a :class:`~policygraph.transforms.cuboids.choose.CubeStrategy`, for example ``PMost(bound=500)``.
    consistency
        In which sense the published tables, which then agree with each other, are near the noisy numbers:
        ``"least-squares"``, ``"least-absolute"``, ``"least-maximum"``; or None: each is a sum of one measured table.
    nonnegative
        No published count is negative. ``True``: near to least squares in a distance that counts the noise and the published cells alike, with a prior where the noisy numbers
        speak for one. ``"nearest"``: the projection in the norm of the noise, which for no noise and no data is farther from the truth in that norm than least squares.
    whole
        Published counts are whole numbers.
    offset
        A probability: all counts are shifted by a number that is fixed before the noise so that they are non-negative but for this
        probability. Cheap, and linear in the noise; not together with ``nonnegative`` or ``whole``.

    Notes
    -----
    A weight of a table in the query counts its variance by the square of the weight when strategies choose.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 7, "salary": 5})
    >>> query = pg.queries.all_cuboids(domain)
    >>> ready = Cube("bmax", consistency=None).calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    >>> len(ready.choice.sets), ready.parameter
    (4, Fraction(4, 1))
    """

    strategy: CubeStrategy | str = "unequal"
    consistency: Method | None = "least-squares"
    nonnegative: Nonnegative = False
    whole: bool = False
    offset: Any = None
    name: str = "Cube"

    @property
    def finish(self) -> Finish:
        """How published tables are made of noisy numbers."""
        chance = None if self.offset is None else as_fraction(self.offset, "offset")
        return Finish(self.consistency, self.nonnegative, self.whole, chance)

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> CubeNoise:
        if not isinstance(query, CuboidQuery):
            raise InputError(
                f"{query!r}: expected cuboids, for example pg.queries.all_cuboids(domain).",
                code="cubes.query",
                value=query,
            )
        query.check_domain(policy.domain)
        check_loss(loss)
        strategy, agrees = self.strategy, self.finish.agrees
        if not isinstance(strategy, CubeStrategy):
            strategy = strategy_named(strategy)
        strategy = strategy.suited(consistent=agrees)
        importance = [float(weight * weight) for weight in query.weights]
        with shared_proofs():
            choice = strategy.choose(query.domain, query.sets, importance, policy, loss)
            ready = self.on(choice, query, policy, loss, sensitivity, label=strategy.name)
        # Of strategies of others nobody knows whether their words say everything.
        ours = type(strategy).__module__.startswith("policygraph.")
        return (
            replace(ready, asked=f"{self.name} {strategy!r} {self.finish.words}".strip()) if ours else ready
        )

    def on(
        self,
        choice: Choice,
        query: CuboidQuery,
        policy: Policy,
        loss: Loss,
        sensitivity: Sensitivity | None = None,
        *,
        label: str = "given",
    ) -> CubeNoise:
        """Fix the noise for a given choice of what to measure.

        Raises
        ------
        InputError
            When a published cuboid cannot be computed from the measured and the known ones.
        """
        finish = self.finish
        if choice.kind == "interactions" and not finish.agrees:
            raise InputError(
                "interactions give tables together only: expected a consistency other than None.",
                code="cubes.interactions",
            )
        lattice = Lattice(query.domain)
        known = tuple(known_cuboids(lattice, policy))
        asked = choice.query(query.domain) if choice.sets else query
        proof = certified(asked, policy, loss, sensitivity)
        # Two choices of one strategy are different requests to a ledger, so that the name tells them apart.
        mark = fingerprint([choice.kind, list(choice.sets), list(choice.weights)])[:8]
        name = f"{self.name} {label} {mark} {finish.words}".strip()
        published = [lattice.mask(names) for names in query.sets]
        facts: tuple[Fact, ...] = ()
        if finish.agrees:
            masks = [*(lattice.mask(names) for names in choice.sets), *published]
            facts = tuple(visible(lattice, facts_of(lattice, policy), masks, together=not finish.plain))
        reached = cell_factors(Finish(finish.consistency), lattice, choice, known, (), published, published)
        for names, factor in zip(query.sets, reached, strict=True):
            if not np.isfinite(factor):
                raise InputError(
                    f"cuboid {list(names)} cannot be computed from what the strategy measures.",
                    code="cubes.not-computable",
                    value=names,
                )
        ready = CubeNoise(name, query, policy, loss, proof, choice, known, facts, finish)
        _ = ready.cell_factors
        ready.rehearse()
        return ready


class FactSums(Query):
    """Public sums of cells: each is a combination of the cells of one cuboid, and all neighbours agree on it."""

    def __init__(self, lattice: Lattice, facts: Sequence[Fact]) -> None:
        super().__init__(lattice.domain)
        self.lattice, self.facts = lattice, tuple(facts)
        self.sets = tuple(lattice.names(fact.mask) for fact in facts)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("public sums", ("fact",), len(self.facts)),)

    def part_labels(self, part: int) -> list[Any]:
        return [np.arange(len(self.facts))]

    @property
    def largest_entry(self) -> int:
        return max(int(np.abs(fact.coefficients).max()) for fact in self.facts)

    def from_tables(self, tables: Sequence[Ints]) -> Ints:
        """Return the sums from the tables of ``sets``, in this order."""
        return np.array(
            [int(fact.of(table)) for fact, table in zip(self.facts, tables, strict=True)], dtype=np.int64
        )

    def answer(self, table: Any) -> Ints:
        cells = np.asarray(table, dtype=np.int64).ravel()
        self.check_fits(cells)
        return np.asarray(self.columns(np.arange(cells.size)) @ cells, dtype=np.int64).ravel()

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        codes = self.lattice.domain.codes(np.asarray(cells, dtype=np.int64))
        rows = []
        for fact in self.facts:
            at = np.zeros(len(codes[0]), dtype=np.int64)
            for axis in self.lattice.axes(fact.mask):
                at = at * self.lattice.domain.shape[axis] + codes[axis]
            row = np.zeros(self.lattice.size(fact.mask), dtype=np.int64)
            row[fact.cells] = fact.coefficients
            rows.append(row[at])
        return sparse.csc_matrix(np.stack(rows))

    def to_spec(self) -> dict[str, Any]:
        return {
            "facts": [[fact.mask, fact.cells.tolist(), fact.coefficients.tolist()] for fact in self.facts]
        }
