"""Tables chosen from the data, privately. Owns :class:`AdaptiveCube` and :class:`AdaptiveNoise`.

All tables of one attribute are measured first; then, round after round, the table that a graphical model of what was measured gets most wrong is chosen by the
exponential mechanism and measured. Published tables are those of the model. The proof is in ``docs/explanation/proofs/adaptive-cubes.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import inf, isqrt, log, sqrt
from typing import Any

import numpy as np

from policygraph.distributions.enclosure import Weights, exp_neg
from policygraph.distributions.integers import NOTHING, Distribution
from policygraph.distributions.noise import MAX_SCALE, MAX_SIGMA_SQUARED
from policygraph.distributions.replay import Replay
from policygraph.effort import SECOND
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.errors import Seen, bounded, runs_for, simulated
from policygraph.estimation.graphical.model import Evidence, Model, fit
from policygraph.estimation.graphical.tree import JunctionTree
from policygraph.exact import show
from policygraph.mechanisms.adaptive.plan import ENTROPY, FIRST, HALVINGS, UNITS, Plan, Steps, mean_reach
from policygraph.mechanisms.base import Calibrated, Floats, Ints, Mechanism, Noise, check_loss, noise_for
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query, fingerprint
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.release.release import Errors, Randomness, Release
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import proved, shared_proofs
from policygraph.transforms.cuboids.costs import known_cuboids
from policygraph.transforms.cuboids.lattice import Lattice

CELLS = 1 << 17
"""Most cells of the cliques of a model: a megabyte of floating-point numbers."""
MOST_CANDIDATES = 4096
"""Most tables that are chosen among; of more, those of two attributes."""
MOST_WEIGHT = 64
"""Weights of the first tables are rounded to whole numbers up to this."""
PROOF = 2 * SECOND
"""Units of work for the sensitivity of one table: there are many, and a bound will do."""
FINAL = 400
"""Steps of the fit that is published."""
MOST_RUNS, SIMULATED, REFITTED = 20, 1 << 20, 100
"""Errors of measured tables are simulated in at most so many runs, of at most so many cells in all, each a fit of at most so many steps from the published model."""
ALL_ONES, CHOICE = -1, -2
"""Marks in an output: the tables of one attribute together, and a choice."""


@dataclass(frozen=True)
class Levels(Distribution):
    """Levels of a score: the one that is d below the best weighs its number of tables times exp(-rate * d).

    Levels are apart, so that no sum of some weights is a rational share of all of them, and every threshold is told from a 64-bit number.
    """

    rate: Fraction
    below: tuple[int, ...]
    counts: tuple[int, ...]
    two_sided: bool = field(default=False, init=False)
    endless: bool = field(default=False, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return the number of weights."""
        return len(self.below)

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        ends = [exp_neg(self.rate * d, bits) for d in self.below]
        lows = [n * low for n, (low, _) in zip(self.counts, ends)]
        highs = [n * high for n, (_, high) in zip(self.counts, ends)]
        return NOTHING, Weights(lows, highs, 0, 0)


@dataclass(frozen=True, eq=False)
class AdaptiveNoise(Calibrated):
    """An adaptive cube for one query, policy and loss.

    Attributes
    ----------
    query
        The published tables.
    known
        Tables that are the same for all neighbours, and are used as they are.
    ones
        The tables of one attribute that are measured first, each a mask.
    candidates
        The tables that rounds choose among.
    proofs
        The certificate of each table of ``candidates`` in the norm of the loss, and under :data:`ALL_ONES` that of the first tables together.
    score_proofs
        The certificate of each candidate in L1, which bounds what a neighbour step does to its score.
    cells
        Most cells of the cliques of the model.
    rounds
        Most rounds; None for as many as the loss pays for.
    """

    mechanism: str
    query: CuboidQuery
    policy: Policy
    loss: Loss
    known: tuple[int, ...]
    ones: tuple[int, ...]
    first: CuboidQuery | None
    candidates: tuple[int, ...]
    proofs: dict[int, Sensitivity]
    score_proofs: dict[int, Sensitivity]
    cells: int = CELLS
    rounds: int | None = None
    sensitivity: Sensitivity | None = None

    runner = "adaptive"

    @cached_property
    def lattice(self) -> Lattice:
        """The tables of the domain."""
        return Lattice(self.query.domain)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return self.query.domain.shape

    def size(self, mask: int) -> int:
        """Number of cells of a table."""
        return self.lattice.size(mask)

    @cached_property
    def published(self) -> list[int]:
        """The published tables."""
        return [self.lattice.mask(names) for names in self.query.sets]

    @cached_property
    def weights(self) -> dict[int, int]:
        """What the error of each candidate counts: how many attributes it shares with each published table, times that table's weight."""
        uses = {1 << axis: self.uses(1 << axis) for axis in range(self.lattice.order)}
        return {mask: sum(use for one, use in uses.items() if mask & one) for mask in self.candidates}

    def uses(self, mask: int) -> int:
        """How many published tables have an attribute of a table, by their weights."""
        pairs = zip(self.published, self.query.weights, strict=True)
        return sum(weight for other, weight in pairs if other & mask)

    @property
    def exact(self) -> tuple[Query, ...]:
        sets = [self.lattice.names(mask) for mask in self.known]
        return (CuboidQuery(self.query.domain, sets),) if sets else ()

    @property
    def measure(self) -> Query | None:
        return self.first

    @property
    def centre(self) -> Query | None:
        return None

    @cached_property
    def table_queries(self) -> dict[int, CuboidQuery]:
        """Each candidate as a query: the very object of its certificate where that is for the same query, so that fingerprints are compared once and not in every round."""
        out = {}
        for mask in self.candidates:
            query = CuboidQuery(self.query.domain, [self.lattice.names(mask)])
            proved = self.score_proofs[mask].query
            out[mask] = proved if isinstance(proved, CuboidQuery) and proved == query else query
        return out

    def parameter_of(self, proof: Sensitivity, share: int) -> Fraction:
        """Scale, or variance parameter, of the noise that a share of the loss pays for, given the sensitivity of what is measured."""
        part = self.loss.value * share / UNITS
        return proof.power / part if isinstance(self.loss, Epsilon) else proof.power / (2 * part)

    def rate_of(self, sensitivity: Fraction, share: int) -> Fraction:
        """Rate at which chances fall with the score, for a share of the loss: epsilon / (2 sensitivity), where rho = epsilon^2 / 8 for zCDP."""
        part = self.loss.value * share / UNITS
        if not isinstance(self.loss, Epsilon):
            # A root rounded down: what it costs is at most the share.
            part = Fraction(isqrt(int(8 * part * 4**64)), 2**64)
        return part / (2 * sensitivity)

    def noise_of(self, mask: int, share: int) -> tuple[float, float]:
        """Mean absolute value and variance of the noise of a table for a share of the loss, for plans and reports."""
        parameter = self._whole_parameters[mask] * UNITS / share
        return mean_reach(self.loss, parameter), (
            2 * parameter**2 if isinstance(self.loss, Epsilon) else parameter
        )

    @cached_property
    def _whole_parameters(self) -> dict[int, float]:
        """What :meth:`parameter_of` is for all of the loss, as floats: plans ask often."""
        return {mask: float(self.parameter_of(proof, UNITS)) for mask, proof in self.proofs.items()}

    def reach_of(self, share: float) -> float:
        """Mean absolute value of noise for a (part of a) unit of the loss and a sensitivity of the first tables."""
        power = float(self.proofs[ALL_ONES].power)
        part = float(self.loss.value) * share / UNITS
        return mean_reach(self.loss, power / part if isinstance(self.loss, Epsilon) else power / (2 * part))

    def first_shares(self, share: int) -> list[float]:
        """The share of one first table that would buy its noise alone, at the sensitivity of all of them."""
        if self.first is None:
            return []
        power = 1 if isinstance(self.loss, Epsilon) else 2
        return [share * float(weight) ** power for weight in self.first.weights]

    def first_evidence(self, noisy: Ints, share: int) -> list[Evidence]:
        """The first tables as evidence."""
        if self.first is None:
            return []
        parameter = float(self.parameter_of(self.proofs[ALL_ONES], share))
        variance = 2 * parameter**2 if isinstance(self.loss, Epsilon) else parameter
        out, start = [], 0
        for mask, part, weight in zip(self.ones, self.first.parts, self.first.weights, strict=True):
            counts = noisy[start : start + part.height].astype(np.float64) / weight
            out.append(Evidence(mask, counts, variance / weight**2))
            start += part.height
        return out

    def evidence_of(self, mask: int, noisy: Ints, share: int) -> Evidence:
        """A measured table as evidence."""
        return Evidence(mask, noisy.astype(np.float64), self.noise_of(mask, share)[1])

    def exact_evidence(self, exact: Ints) -> list[Evidence]:
        """The known tables as evidence."""
        out, start = [], 0
        for mask in self.known:
            counts = exact[start : start + self.size(mask)]
            out.append(Evidence(mask, counts.astype(np.float64), 0.0))
            start += self.size(mask)
        return out

    @cached_property
    def begun(self) -> dict[bytes, Any]:
        """The first round of plans that begin with known tables alone, by these: audits run one plan many times."""
        return {}

    def steps(self, exact: Ints) -> Steps:
        """What the runner does, step after step, given the known tables."""
        return Plan(self, self.exact_evidence(exact)).steps()

    @property
    def noise(self) -> Noise:
        """Noise of a table that all of the loss is spent on, the least there is."""
        proof = max(self.proofs.values(), key=lambda p: p.power, default=None)
        return noise_for(self.loss, Fraction(0) if proof is None else self.parameter_of(proof, UNITS))

    def most_noise(self) -> int:
        widest = max((self.parameter_of(proof, 1) for proof in self.proofs.values()), default=Fraction(0))
        return 128 * (int(widest) + 1) if isinstance(self.loss, Epsilon) else 24 * (isqrt(int(widest)) + 1)

    def reach(self, records: int) -> int:
        weighted = 0 if self.first is None else self.first.most_answer(records)
        return max(super().reach(records), weighted + self.most_noise())

    def factor(self, part: int) -> Fraction:
        return Fraction(1)

    def deviation(self, part: int) -> float | Floats:
        """Without data nothing is known of the errors of tables that are not exact."""
        mask = self.published[part]
        return 0.0 if any(mask & ~known == 0 for known in self.known) else inf

    def within_95(self, part: int) -> float | Floats:
        return self.deviation(part)

    def read(self, points: Ints) -> list[tuple[int, int, Ints]]:
        """The steps of an output, after the known tables: what was measured or chosen, its share, and the noisy numbers."""
        at, out = sum(self.size(mask) for mask in self.known), []
        while at < len(points):
            code, share = int(points[at]), int(points[at + 1])
            if code == CHOICE:
                height = 1
            elif code == ALL_ONES:
                height = self.first.height if self.first else 0
            else:
                height = self.size(code)
            out.append((code, share, points[at + 2 : at + 2 + height]))
            at += 2 + height
        return out

    def evidence(self, points: Ints) -> list[Evidence]:
        """All that is known of the tables after a run."""
        out = self.exact_evidence(points)
        for code, share, numbers in self.read(points):
            if code == ALL_ONES:
                out += self.first_evidence(numbers, share)
            elif code != CHOICE:
                out.append(self.evidence_of(code, numbers, share))
        return out

    def comparable(self, outputs: Any) -> Ints:
        """Outputs as rows of one length, with zeros at the end of shorter ones."""
        rows = np.zeros((len(outputs), max(map(len, outputs), default=0)), dtype=np.int64)
        for row, points in zip(rows, outputs, strict=True):
            row[: len(points)] = points
        return rows

    def model(self, points: Ints) -> Model:
        """The model that published tables are read from."""
        return fit(self.shape, self.evidence(points), strength=ENTROPY, steps=FINAL)

    def publish(self, points: Ints, randomness: Randomness) -> Release:
        model = self.model(points)
        exact = {piece.mask: piece.counts for piece in self.exact_evidence(points)}
        tables = [
            exact.get(mask, table.ravel())
            for mask, table in zip(self.published, model.each(self.published), strict=True)
        ]
        errors = self._stated(points, tables, model)
        made = self.released(np.concatenate(tables), randomness, errors)
        taken = [
            {"table": list(self.lattice.names(code)), "share": str(Fraction(share, UNITS))}
            for code, share, _ in self.read(points)
            if code not in (ALL_ONES, CHOICE)
        ]
        record = dict(made.record)
        record["adaptive"] = {
            "measured_first": [list(self.lattice.names(mask)) for mask in self.ones],
            "measured": taken,
            "known": [list(self.lattice.names(mask)) for mask in self.known],
            "candidates": len(self.candidates),
            "model_cliques": [list(self.lattice.names(mask)) for mask in model.tree.cliques],
            "model_cells": model.tree.cells,
            "total": model.total,
            "fit_steps": model.steps,
            "fit_gap": model.gap,
        }
        named = "; ".join(" x ".join(entry["table"]) for entry in taken) or "none"
        record["stages"] = [
            *record["stages"],
            f"{_count(len(taken), 'round')} chose and measured these tables: {named}.",
            f"The model has {_count(len(model.tree.cliques), 'clique')} of {_count(model.tree.cells, 'cell')} in all.",
        ]
        return replace(made, record=record)

    def errors_of(self, points: Any) -> Sequence[Errors]:
        model = self.model(points)
        return self._stated(points, [table.ravel() for table in model.each(self.published)], model)

    def _stated(self, points: Ints, tables: Sequence[Floats], model: Model) -> list[Errors]:
        """Errors of the published tables: simulated where a noisy table shows what the model misses, bounded by those of single attributes elsewhere."""
        made: list[Errors] = []
        seen: dict[int, Seen] = {}
        measured = self._measured(points)
        single: dict[int, dict[int, tuple[Floats, Floats]]] = {}
        for place, (mask, table) in enumerate(zip(self.published, tables, strict=True)):
            if any(mask & ~known == 0 for known in self.known):
                made.append(Errors(0.0, 0.0, "exact"))
                continue
            order = mask.bit_count()
            if order not in single:
                single[order] = self._singles(points, order + 2)
            made.append(self._from_single(mask, table, single[order]))
            beside = self._beside(mask, measured)
            if beside is not None:
                seen[place] = Seen.of(table, *beside)
        for place, errors in self._simulated(points, seen, model).items():
            # A table that was measured with next to nothing of the loss is known better from single attributes.
            if float(np.sum(errors.within_95)) < float(np.sum(made[place].within_95)):
                made[place] = replace(errors, deviation=np.minimum(errors.deviation, made[place].within_95))
        return made

    def _measured(self, points: Ints) -> dict[int, list[tuple[Floats, int]]]:
        """What was measured of each chosen table, with its share of the loss."""
        out: dict[int, list[tuple[Floats, int]]] = {}
        for code, share, numbers in self.read(points):
            if code not in (ALL_ONES, CHOICE):
                out.setdefault(code, []).append((numbers.astype(np.float64), share))
        return out

    def _beside(
        self, mask: int, measured: dict[int, list[tuple[Floats, int]]]
    ) -> tuple[Floats, float, float] | None:
        """Unbiased counts of a table from the best measurement that contains it, their deviation, and a range at a shared chance; None where there is none."""
        found = [code for code in measured if mask & ~code == 0]
        if not found:
            return None
        code = min(found, key=lambda c: (self.size(c) / max(share for _, share in measured[c]), c))
        numbers, share = max(measured[code], key=lambda pair: pair[1])
        factor = self.size(code) / self.size(mask)
        parameter = float(self.parameter_of(self.proofs[code], share))
        times = 1 + sum(len(measured[c]) for c in found)
        summed = _summed(self.lattice, numbers, code, mask)
        return (
            summed,
            sqrt(self.noise_of(code, share)[1] * factor),
            self._reach(factor, parameter, 0.05 / times),
        )

    def _simulated(self, points: Ints, seen: dict[int, Seen], model: Model) -> dict[int, Errors]:
        """Errors of measured tables: the same steps with public noise around the model, and the model fitted again.

        Tables whose noise is of the same size, up to a factor of two, share what is simulated.
        """
        cells = sum(each.values.size for each in seen.values())
        runs = min(MOST_RUNS, runs_for(cells), SIMULATED // (model.tree.cells + cells))
        if not seen or not runs:
            return {place: bounded(each) for place, each in seen.items()}
        replay, masks = Replay(self.mechanism, points), {place: self.published[place] for place in seen}
        again: list[dict[int, tuple[Floats, Floats]]] = []
        for _ in range(runs):
            drawn = self._redrawn(points, model, replay)
            fitted = fit(self.shape, self.evidence(drawn), strength=ENTROPY, start=model, steps=REFITTED)
            beside = {place: self._beside(mask, self._measured(drawn)) for place, mask in masks.items()}
            again.append(
                {
                    place: (fitted.table(masks[place]).ravel(), found[0])
                    for place, found in beside.items()
                    if found is not None
                }
            )
        alike: dict[int, list[int]] = {}
        for place, each in seen.items():
            alike.setdefault(round(log(float(each.deviation[0]), 2)), []).append(place)
        out: dict[int, Errors] = {}
        for places in alike.values():
            values, unbiased, deviation, width = (
                np.concatenate([getattr(seen[place], name) for place in places])
                for name in ("values", "unbiased", "deviation", "width")
            )
            whole = Seen(values, unbiased, deviation, width)
            drawn_values = (
                (
                    np.concatenate([run[place][0] for place in places]),
                    np.concatenate([run[place][1] for place in places]),
                )
                for run in again
            )
            made = simulated(whole, drawn_values, smooth=True)
            cuts = np.cumsum([seen[place].values.size for place in places])[:-1]
            parts = zip(np.split(made.deviation, cuts), np.split(made.within_95, cuts), strict=True)
            out |= {place: Errors(*pair, made.basis) for place, pair in zip(places, parts, strict=True)}
        return out

    def _redrawn(self, points: Ints, model: Model, replay: Replay) -> Ints:
        """An output of the same steps, had the model been the truth; with public noise."""
        out = points.copy()
        at = sum(self.size(mask) for mask in self.known)
        for code, share, numbers in self.read(points):
            at += 2
            if code != CHOICE:
                if code == ALL_ONES and self.first is not None:
                    parts = zip(self.ones, self.first.weights, strict=True)
                    mean = np.concatenate(
                        [model.table(mask).ravel() * float(weight) for mask, weight in parts]
                    )
                else:
                    mean = model.table(code).ravel()
                noise = noise_for(self.loss, self.parameter_of(self.proofs[code], share))
                out[at : at + len(numbers)] = np.rint(mean) + replay.draws(noise, (len(numbers),))
            at += len(numbers)
        return out

    def _reach(self, factor: float, parameter: float, chance: float) -> float:
        """What a sum of ``factor`` noises stays within but for a chance."""
        if isinstance(self.loss, Epsilon):
            # Chernoff's bound: E exp(u X / scale) <= 1 / (1 - u^2) for discrete Laplace noise as for the continuous one.
            u = np.arange(1, 200) / 200
            return parameter * float(np.min((log(2 / chance) - factor * np.log1p(-(u**2))) / u))
        return sqrt(2 * factor * parameter * log(2 / chance))

    def _from_single(self, mask: int, table: Floats, single: dict[int, tuple[Floats, Floats]]) -> Errors:
        """A count is at most that of each single attribute, and at least what these leave of the total (Fréchet's bounds)."""
        axes = self.lattice.axes(mask)
        shape = self.lattice.shape(mask)
        total = min((high.sum() for _, high in single.values()), default=float("inf"))
        lower, upper = np.full(shape, -total * (len(axes) - 1)), np.full(shape, total)
        for place, axis in enumerate(axes):
            low, high = single[1 << axis]
            wide = [shape[place] if at == place else 1 for at in range(len(axes))]
            lower = lower + low.reshape(wide)
            upper = np.minimum(upper, high.reshape(wide))
        lower = np.maximum(lower, 0.0).ravel()
        off = np.maximum(np.maximum(upper.ravel() - table, table - lower), 0.0)
        return Errors(off, off, "bound")

    def _singles(self, points: Ints, events: int) -> dict[int, tuple[Floats, Floats]]:
        """Bounds of the counts of single attributes that hold together but for a share of 5 %."""
        out: dict[int, tuple[Floats, Floats]] = {}
        for code, share, numbers in self.read(points)[:1]:
            if code != ALL_ONES or self.first is None:
                continue
            parameter = float(self.parameter_of(self.proofs[ALL_ONES], share))
            pieces = zip(self.first_evidence(numbers, share), self.first.weights, strict=True)
            for piece, weight in pieces:
                reach = self._reach(1.0, parameter, 0.05 / events) / weight
                out[piece.mask] = piece.counts - reach, np.maximum(piece.counts + reach, 0.0)
        for piece in self.exact_evidence(points):
            for axis in self.lattice.axes(piece.mask):
                one = _summed(self.lattice, piece.counts, piece.mask, 1 << axis)
                out[1 << axis] = one, one
        return out

    def record(self, randomness: Randomness, parts: list[dict[str, Any]]) -> dict[str, Any]:
        made = super().record(randomness, parts)
        made["adaptive"] = {"candidates": len(self.candidates), "cells": self.cells}
        return made

    def stages(self) -> Sequence[str]:
        lines = []
        if self.known:
            named = "; ".join(" x ".join(self.lattice.names(mask)) or "the total" for mask in self.known)
            lines.append(f"No neighbour step changes these tables, which are exact: {named}.")
        kind = "discrete Laplace" if isinstance(self.loss, Epsilon) else "discrete Gaussian"
        if self.first is not None:
            share = "a tenth" if self.candidates else "all"
            lines.append(
                f"{_count(len(self.ones), 'table')} of single attributes got {kind} noise first, for {share} of the loss."
            )
        if self.candidates:
            lines.append(
                f"Then rounds: of {len(self.candidates)} tables the one that the model gets most wrong, less the noise that measuring it would bring, was chosen by the "
                f"exponential mechanism, and measured with {kind} noise. All rounds together spend {self.loss}."
            )
        lines.append(
            "Published tables are those of a graphical model, fitted to all that was measured: they agree, no count is negative, and dependences "
            f"that no measured table shows are left out. The model has at most {self.cells:,} cells in its cliques."
        )
        lines.append(
            "Of tables that were measured, or are sums of such, errors are simulated: public noise around the model, and the model fitted again. Of the others no noisy number shows what "
            "the model leaves out: their ranges are bounds that follow from the tables of single attributes, and wide."
        )
        return lines


def _count(number: int, noun: str) -> str:
    """A number of things, in words that agree with it.

    Examples
    --------
    >>> _count(1, "clique"), _count(1200, "cell")
    ('1 clique', '1,200 cells')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _summed(lattice: Lattice, counts: Floats, held: int, wanted: int) -> Floats:
    rest = tuple(at for at, axis in enumerate(lattice.axes(held)) if not wanted >> axis & 1)
    return np.asarray(counts.reshape(lattice.shape(held)).sum(axis=rest)).ravel()


@dataclass(frozen=True)
class AdaptiveCube(Mechanism):
    """Publish many tables of a wide domain from few that are chosen by what the data are like, privately.

    Parameters
    ----------
    cells
        Most cells of the cliques of the graphical model: what time and memory grow with. Only tables that keep the model below it are chosen.
    rounds
        Most tables that are chosen; None for as many as the loss pays for.

    Notes
    -----
    The published tables are consistent and non-negative. Dependences that were not measured are left out, so that the errors of tables that no measured one contains are stated as bounds, which are wide.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 3, "c": 2})
    >>> query = pg.queries.cuboids(domain, [["a", "b"], ["b", "c"], ["a", "c"]])
    >>> ready = AdaptiveCube().calibrate(query, pg.Policy(domain), pg.Rho(1))
    >>> made = ready.run(range(0, 120, 10), pg.SeededRng(1))
    >>> [len(table.values) for table in made.tables], bool(min(made.values(0)) >= 0)
    ([6, 6, 4], True)
    """

    cells: int = CELLS
    rounds: int | None = None
    name: str = "AdaptiveCube"

    def __post_init__(self) -> None:
        for word, value in (("cells", self.cells), ("rounds", self.rounds)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(
                    f"{word}={value!r}: expected a whole number >= 1.", code="adaptive.option", value=value
                )

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> AdaptiveNoise:
        if not isinstance(query, CuboidQuery):
            raise InputError(
                f"{query!r}: expected cuboids, for example pg.queries.all_cuboids(domain, up_to=2).",
                code="cubes.query",
                value=query,
            )
        if sensitivity is not None:
            raise InputError(
                "an adaptive cube uses a certificate for each table that it may measure: expected no sensitivity.",
                code="mechanism.sensitivity",
            )
        query.check_domain(policy.domain)
        check_loss(loss)
        lattice = Lattice(query.domain)
        with shared_proofs():
            return self._ready(query, policy, loss, lattice)

    def _ready(self, query: CuboidQuery, policy: Policy, loss: Loss, lattice: Lattice) -> AdaptiveNoise:
        known = set(known_cuboids(lattice, policy))
        proofs: dict[int, Sensitivity] = {}
        scores: dict[int, Sensitivity] = {}
        for mask in self._tables(lattice, query):
            if any(mask & ~other == 0 for other in known):
                continue
            table = CuboidQuery(query.domain, [lattice.names(mask)])
            score = proved(table, policy, "l1", PROOF)
            if score.power == 0:
                known.add(mask)
                continue
            scores[mask] = score
            proofs[mask] = score if loss.norm == "l1" else proved(table, policy, loss.norm, PROOF)
        ones = tuple(mask for mask in proofs if mask.bit_count() == 1)
        candidates = tuple(mask for mask in proofs if not any(mask & ~other == 0 for other in known))
        if all(mask.bit_count() == 1 for mask in candidates):
            candidates = ()
        exact = tuple(sorted(lattice.maximal(known)))
        first = self._first(query, ones, lattice, loss) if ones else None
        if first is not None:
            proofs[ALL_ONES] = proved(first, policy, loss.norm)
        asked = lattice.mask(name for names in query.sets for name in names)
        self._check(lattice, asked, exact, ones, loss, proofs)
        mark = fingerprint([self.cells, self.rounds, list(candidates)])[:8]
        return AdaptiveNoise(
            f"{self.name} {mark}",
            query,
            policy,
            loss,
            exact,
            ones,
            first,
            candidates,
            proofs,
            scores,
            self.cells,
            self.rounds,
        )

    def _tables(self, lattice: Lattice, query: CuboidQuery) -> list[int]:
        """What may be measured: published tables and all below them, smaller ones first, as far as the model has room for them."""
        published = [lattice.mask(names) for names in query.sets]
        top = max(mask.bit_count() for mask in published)
        for order in range(top, 1, -1):
            found = {
                sum(1 << axis for axis in axes)
                for mask in published
                for size in range(1, min(order, mask.bit_count()) + 1)
                for axes in combinations(lattice.axes(mask), size)
            }
            kept = [mask for mask in found if lattice.size(mask) <= self.cells]
            if len(kept) <= MOST_CANDIDATES:
                return sorted(kept, key=lambda mask: (mask.bit_count(), mask))
        singles = {1 << axis for mask in published for axis in lattice.axes(mask)}
        return sorted(mask for mask in singles if lattice.size(mask) <= self.cells)

    def _first(self, query: CuboidQuery, ones: Sequence[int], lattice: Lattice, loss: Loss) -> CuboidQuery:
        """The tables of single attributes with weights for the least total error of the published tables, were all attributes independent."""
        masks = [lattice.mask(names) for names in query.sets]
        uses = [sum(w for m, w in zip(masks, query.weights, strict=True) if m & one) for one in ones]
        # Errors use / weight at a cost of weight (epsilon) or weight^2 (rho) each are least in sum at these weights.
        power = 1 / 2 if isinstance(loss, Epsilon) else 1 / 3
        ideal = np.array(
            [float(use * lattice.size(one)) ** power for use, one in zip(uses, ones, strict=True)]
        )
        weights = np.maximum(1, np.rint(ideal / ideal.max() * MOST_WEIGHT)).astype(np.int64)
        return CuboidQuery(query.domain, [lattice.names(one) for one in ones], weights.tolist())

    def _check(
        self,
        lattice: Lattice,
        asked: int,
        known: Sequence[int],
        ones: Sequence[int],
        loss: Loss,
        proofs: dict[int, Sensitivity],
    ) -> None:
        """Refuse tables that no model of this size holds, and noise that cannot be drawn."""
        for at, name in enumerate(lattice.domain.names):
            if asked >> at & 1 and lattice.domain.shape[at] > self.cells:
                raise RefusedError(
                    f"{name} has {lattice.domain.shape[at]:,} values: expected at most {self.cells:,}, the cells of the model. Allow a larger one with cells=...",
                    code="adaptive.known",
                    value=name,
                )
        found = JunctionTree.of(lattice.domain.shape, [*known, *ones]).cells
        if found > max(self.cells, sum(lattice.domain.shape)):
            raise RefusedError(
                f"a model of the public tables has {found:,} cells: expected at most {self.cells:,}. Allow a larger model with cells=..., or use Cube.",
                code="adaptive.known",
                value=found,
            )
        for proof in proofs.values():
            smallest = loss.value * max(1, FIRST >> HALVINGS) / UNITS
            parameter = proof.power / smallest if isinstance(loss, Epsilon) else proof.power / (2 * smallest)
            if parameter > (MAX_SCALE if isinstance(loss, Epsilon) else MAX_SIGMA_SQUARED):
                raise RefusedError(
                    f"a share of {loss} is too small for noise in 64-bit integers ({show(parameter)}). Allow a larger loss.",
                    code="mechanism.scale",
                )
