"""Few cuboids from which the others are sums. Owns :class:`BMax`, :class:`PMost`, and the best covers with proved bounds behind them.

The least maximal variance, and most cuboids below a bound, after Ding, Winslett, Han and Li (SIGMOD 2011). A measured cuboid C gives a published T at a ratio, the number of cells of C that make one of T. At a ratio r a set of
measured cuboids covers what it gives at r or better; its noise grows with its sensitivity. Greedy covers are not monotone in
r, so all distinct ratios are scanned; ``exact`` then looks for better choices and proves a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import product
from math import ceil, floor, inf, sqrt
from typing import Any, Protocol

import numpy as np

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_float
from policygraph.mechanisms.cube.weighing import Weighing
from policygraph.model.domain import Domain
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.ties import clearly_less, figures
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy, Sets, Task, allowed
from policygraph.transforms.cuboids.lattice import Floats

CLOSE = 1 + 1e-12
SCANNED = 1 << 29
"""Ratios times candidates times published cuboids that a greedy scan tries; of larger problems it tries evenly spread ratios."""
COVERED = 1 << 26
"""Most candidates times published cuboids whose covers are sought."""
PROVABLE = 1 << 31
"""With more ratios times candidates times published cuboids nothing is proved."""
PROVING = 2 * SECOND
"""Units of work for the search that improves on the greedy scan: what it gains later is rare and small."""


class Covering:
    """Ratios and costs of a task, and greedy covers at one ratio."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.masks = task.candidates
        self.forms: Floats = task.costs.forms
        self.squared = task.loss.norm == "l1"
        if len(self.masks) * len(task.wanted) > COVERED:
            raise RefusedError(
                f"{len(self.masks):,} cuboids may be measured for {len(task.wanted):,} published ones: expected a product of at "
                f"most {COVERED:,}. Publish fewer, measure all of them alike, or spend rho with unequal noise.",
                code="cubes.too-many",
            )

    @cached_property
    def ratios(self) -> Floats:
        """For each candidate (row) and wanted cuboid (column) the number of cells that are summed; inf if impossible."""
        wanted, size = self.task.wanted, self.task.lattice.size
        have, want = np.array(self.masks, dtype=np.int64), np.array(wanted, dtype=np.int64)
        large = np.array([float(size(mask)) for mask in self.masks])
        made = large[:, None] / np.array([float(size(mask)) for mask in wanted])[None, :]
        made[(want[None, :] & ~have[:, None]) != 0] = inf
        return np.asarray(made, dtype=np.float64)

    def thresholds(self, weighted: Floats) -> list[float]:
        """Distinct finite ratios, ascending; values that differ by rounding are one."""
        values = np.unique(weighted[np.isfinite(weighted)])
        kept: list[float] = []
        for value in values.tolist():
            if not kept or value > kept[-1] * CLOSE:
                kept.append(value)
        return kept

    def scanned(self, thresholds: list[float]) -> list[float]:
        """The ratios at which covers are tried: all, or of a large problem evenly spread ones with both ends."""
        most = max(24, SCANNED // max(1, len(self.masks) * len(self.task.wanted)))
        if len(thresholds) <= most:
            return thresholds
        at = np.unique(np.rint(np.linspace(0, len(thresholds) - 1, most)).astype(np.int64))
        return [thresholds[i] for i in at.tolist()]

    def provable(self, thresholds: list[float]) -> bool:
        """Whether a search for proofs fits into memory."""
        return len(thresholds) * len(self.masks) * len(self.task.wanted) <= PROVABLE

    def noise(self, chosen: Sequence[int]) -> float:
        """Variance of the noise when these candidates (positions) are measured alike, in units of the loss."""
        power = float(self.forms[:, list(chosen)].sum(axis=1).max(initial=0.0))
        return power * power if self.squared else power

    @cached_property
    def _weighing(self) -> Weighing:
        return Weighing(self.task, "max")

    def fitted(self, chosen: Sequence[int]) -> Floats:
        """Variance of each wanted cuboid after least squares, in units of the loss."""
        weighing = self._weighing
        ones = np.zeros(len(self.masks))
        ones[list(chosen)] = 1.0
        q = weighing.from_weights @ ones
        cells = weighing.to_cells @ (1.0 / np.where(q > 0, q, 1.0))
        if not np.all(q > 0):
            cells[np.asarray(weighing.to_cells @ np.where(q > 0, 0.0, 1.0)) > 0] = inf
        made: Floats = self.noise(chosen) * cells / self.task.wanted_importance
        return made

    def least_power(self, noise: float) -> float:
        """Largest sensitivity (squared for l2) whose noise is at most this."""
        return sqrt(noise) if self.squared else noise

    def greedy(
        self,
        covers: Sequence[int],
        gains: Floats,
        budget: float = inf,
        first: Sequence[int] = (),
        turn: int = 1,
    ) -> list[int]:
        """Take the candidate that newly covers most for its cost, until nothing is left or the budget is spent.

        Parameters
        ----------
        covers
            For each candidate the wanted cuboids it covers, as bits.
        gains
            What covering each wanted cuboid is worth.
        budget
            Largest allowed value of every cost form.
        first
            Candidates that are taken in any case.
        turn
            Of equally good candidates the first (1) or the last (-1) is taken.
        """
        # A table that no neighbour step changes costs nothing, and is taken first.
        price = np.maximum(self.forms.mean(axis=0), 1e-12)
        even = bool(np.all(gains == gains[0])) if len(gains) else True
        spent = np.zeros(len(self.forms))
        chosen: list[int] = []
        covered = 0

        def worth(bits: int) -> float:
            if even:
                return float(bits.bit_count() * gains[0])
            return float(sum(gains[at] for at in range(len(gains)) if bits >> at & 1))

        for at in first:
            chosen.append(at)
            covered |= covers[at]
            spent += self.forms[:, at]
        if np.any(spent > budget * CLOSE):
            return []
        # Gains only fall while more is covered, so a stale entry at the top of the heap is an upper bound.
        heap = [
            (-worth(bits & ~covered) / price[at], turn * at)
            for at, bits in enumerate(covers)
            if bits & ~covered
        ]
        heapify(heap)
        while heap:
            value, place = heappop(heap)
            at = turn * place
            gain = worth(covers[at] & ~covered)
            if gain <= 0:
                continue
            fresh = -gain / price[at]
            if fresh > value and heap and fresh > heap[0][0]:
                heappush(heap, (fresh, place))
                continue
            if np.any(spent + self.forms[:, at] > budget * CLOSE):
                continue
            chosen.append(at)
            covered |= covers[at]
            spent += self.forms[:, at]
        return chosen

    def prune(self, chosen: list[int], covers: Sequence[int]) -> list[int]:
        """Drop what the others cover as well, the first taken first."""
        width = len(self.task.wanted)
        rows = [_bits(covers[at], width) for at in chosen]
        often = np.zeros(width, dtype=np.int64)
        for row in rows:
            often += row
        kept = []
        for at, row in zip(chosen, rows, strict=True):
            if np.all(often[row] > 1):
                often -= row
            else:
                kept.append(at)
        return kept

    def covers(self, weighted: Floats, ratio: float) -> list[int]:
        """For each candidate the wanted cuboids it gives at this ratio or better, as bits."""
        within = weighted <= ratio * CLOSE
        packed = np.packbits(within, axis=1, bitorder="little")
        return [int.from_bytes(row.tobytes(), "little") for row in packed]


@dataclass(frozen=True)
class BMax(CubeStrategy):
    """Least maximal (weighted) variance of cuboids that are measured alike.

    Parameters
    ----------
    fitted
        Whether the variance after least squares counts, or that of sums of single measured cuboids, as in the paper. By default
        what is published counts: the first inside a consistent cube, the second elsewhere. After least squares the best of the greedy
        scan is taken, and nothing is proved.
    exact_seconds
        Where a limit in time is wanted: seconds for the search that improves on the greedy scan and proves a bound, in place of
        the usual work. What it cuts short may differ from run to run, and says so.
    work
        Units of work for this search, about a million a second; 0 for the scan alone.

    Examples
    --------
    >>> from itertools import combinations
    >>> from policygraph.model.loss import Epsilon
    >>> domain = Domain({"sex": 2, "age": 7, "salary": 5})
    >>> sets = [s for k in range(4) for s in combinations(domain.names, k)]
    >>> made = BMax().choose(domain, sets, [1] * 8, Policy(domain), Epsilon(1))
    >>> made.sets, made.objective, made.gap
    ((('sex', 'age', 'salary'), ('sex', 'age'), ('sex', 'salary'), ('sex',)), 64.0, 0.0)
    """

    fitted: bool | None = None
    name: str = "bmax"
    exact_seconds: float | None = None
    work: int | None = None

    def suited(self, *, consistent: bool) -> CubeStrategy:
        return replace(self, fitted=consistent) if self.fitted is None else self

    def choose(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> Choice:
        task = Task(domain, published, weights, policy, loss)
        if not task.wanted:
            return task.choice([], reason="Everything that is published is known exactly.")
        covering = Covering(task)
        weighted = covering.ratios * task.wanted_importance[None, :]
        every = (1 << len(task.wanted)) - 1
        best, chosen = inf, list[int]()
        thresholds = covering.thresholds(weighted)
        seen: set[frozenset[int]] = set()
        for ratio in covering.scanned(thresholds):
            covers = covering.covers(weighted, ratio)
            reach = 0
            for bits in covers:
                reach |= bits
            if reach != every:
                continue
            for turn in (1, -1):
                found = covering.prune(covering.greedy(covers, np.ones(len(task.wanted)), turn=turn), covers)
                if self.fitted:
                    if frozenset(found) in seen:
                        continue
                    seen.add(frozenset(found))
                    value = float((covering.fitted(found) * task.wanted_importance).max())
                else:
                    value = covering.noise(found) * ratio
                if clearly_less(value, best):
                    best, chosen = value, found
        place = {mask: at for at, mask in enumerate(task.candidates)}
        for masks in task.groupings:
            found = [place[mask] for mask in masks]
            sources = weighted[found].min(axis=0, initial=inf)
            if np.all(np.isfinite(sources)):
                fitted = covering.fitted(found) * task.wanted_importance if self.fitted else None
                value = (
                    covering.noise(found) * float(sources.max()) if fitted is None else float(fitted.max())
                )
                if clearly_less(value, best):
                    best, chosen = value, found
        if not chosen:
            raise _nothing()
        bound: float | None = None
        provable = task.costs.exact and not self.fitted and covering.provable(thresholds)
        effort = allowed(self.work, self.exact_seconds, PROVING)
        if provable and not effort.done:
            best, chosen, bound = least_maximum(covering, weighted, thresholds, best, chosen, effort)
        reason = f"{len(chosen)} of {len(task.candidates)} cuboids were measured alike, for the least maximal variance"
        if self.fitted:
            reason += " after least squares"
        return task.choice(
            [task.candidates[at] for at in chosen],
            objective=best * task.unit if task.costs.exact else None,
            bound=None if bound is None else bound * task.unit,
            reason=reason + _proved(best, bound),
            cut_short=effort.cut_short,
        )


@dataclass(frozen=True)
class PMost(CubeStrategy):
    """Most (or heaviest) cuboids with a variance of at most a bound, of cuboids that are measured alike.

    Parameters
    ----------
    bound
        Largest variance that counts as accurate.
    fitted
        Whether the variance after least squares counts, or that of sums of single measured cuboids, as in the paper. By default
        what is published counts: the first inside a consistent cube, the second elsewhere. After least squares the best of the greedy
        scan is taken, and nothing is proved.
    exact_seconds
        Where a limit in time is wanted: seconds for the search that improves on the greedy scan and proves a bound, in place of
        the usual work. What it cuts short may differ from run to run, and says so.
    work
        Units of work for this search, about a million a second; 0 for the scan alone.

    Examples
    --------
    >>> from itertools import combinations
    >>> from policygraph.model.loss import Epsilon
    >>> domain = Domain({"sex": 2, "age": 7, "salary": 5})
    >>> sets = [s for k in range(4) for s in combinations(domain.names, k)]
    >>> made = PMost(bound=40).choose(domain, sets, [1] * 8, Policy(domain), Epsilon(1))
    >>> made.sets, made.objective, made.gap
    ((('sex', 'age', 'salary'), ('sex', 'salary')), 6.0, 0.0)
    """

    bound: Exact
    fitted: bool | None = None
    name: str = "pmost"
    exact_seconds: float | None = None
    work: int | None = None

    def __post_init__(self) -> None:
        if as_float(self.bound, "bound") <= 0:
            raise InputError(
                f"bound={self.bound!r}: expected a positive variance.", code="cubes.bound", value=self.bound
            )

    def suited(self, *, consistent: bool) -> CubeStrategy:
        return replace(self, fitted=consistent) if self.fitted is None else self

    def choose(
        self, domain: Domain, published: Sets, weights: Sequence[float], policy: Policy, loss: Loss
    ) -> Choice:
        task = Task(domain, published, weights, policy, loss)
        if not task.wanted:
            return task.choice([], reason="Everything that is published is known exactly.")
        covering = Covering(task)
        ratios, gains = covering.ratios, task.wanted_importance
        limit = as_float(self.bound, "bound") / task.unit
        tops = [task.wanted.index(m) for m in task.lattice.maximal(task.wanted)]
        widest = int(np.argmax(np.isfinite(ratios).sum(axis=1)))
        best, chosen = (-1.0, -inf, -inf), list[int]()
        trials: dict[frozenset[int], list[int]] = {frozenset([widest]): [widest]}
        # Least squares may halve variances and more, so that choices above the bound can end below it.
        loosened = (limit, 4 * limit, inf) if self.fitted else (limit,)
        thresholds = [r for r in covering.thresholds(ratios) if r <= limit * CLOSE]
        for ratio, reach in product([*covering.scanned(thresholds), limit], loosened):
            covers = covering.covers(ratios, ratio)
            firsts: list[tuple[int, ...]] = [(), (widest,)] if reach == limit else [()]
            for first, turn in product(firsts, (1, -1)):
                found = covering.greedy(covers, gains, covering.least_power(reach / ratio), first, turn)
                if found:
                    trials[frozenset(found)] = found
        place = {mask: at for at, mask in enumerate(covering.masks)}
        if all(mask in place for mask in task.wanted):
            everything = [place[mask] for mask in task.wanted]
            trials[frozenset(everything)] = everything
        for found in trials.values():
            if all(np.isfinite(ratios[found, top]).any() for top in tops):
                score = self.score(covering, found, gains, limit)
                if score > best:
                    best, chosen = score, found
        if not chosen:
            raise _nothing()
        proved: float | None = None
        provable = task.costs.exact and not self.fitted and covering.provable(thresholds)
        effort = allowed(self.work, self.exact_seconds, PROVING)
        if provable and not effort.done:

            def score_of(positions: Sequence[int]) -> tuple[float, float, float]:
                return self.score(covering, positions, gains, limit)

            chosen, proved = most_covered(covering, gains, thresholds, limit, chosen, tops, score_of, effort)
            best = self.score(covering, chosen, gains, limit)
        known = float(task.importance.sum() - gains.sum())
        value, top = best[0] + known, None if proved is None else proved + known
        reason = (
            f"{len(chosen)} of {len(task.candidates)} cuboids were measured alike, so that published cuboids of weight "
            f"{value:g} of {float(task.importance.sum()):g} have a variance of at most {self.bound}"
            + (" after least squares" if self.fitted else "")
            + ("" if task.costs.exact else " (by an estimate of the sensitivity)")
        )
        return task.choice(
            [task.candidates[at] for at in chosen],
            objective=value if task.costs.exact else None,
            bound=top,
            reason=reason + _proved(value, top),
            cut_short=effort.cut_short,
        )

    def score(
        self, covering: Covering, chosen: Sequence[int], gains: Floats, limit: float
    ) -> tuple[float, float, float]:
        """Weight within the limit, then minus the mean variance, then minus the largest."""
        if self.fitted:
            variances = covering.fitted(chosen)
        else:
            variances = covering.noise(chosen) * covering.ratios[list(chosen)].min(axis=0)
        inside = float(gains[variances <= limit * (1 + 1e-9)].sum())
        return figures(inside), -figures(float(variances.mean())), -figures(float(variances.max()))


def _bits(number: int, width: int) -> Any:
    """The bits of a number as truth values."""
    raw = np.frombuffer(number.to_bytes((width + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, bitorder="little")[:width].astype(np.bool_)


def _nothing() -> InputError:
    return InputError(
        "the published cuboids cannot be computed from any that may be measured: expected cuboids of at most 10^8 cells.",
        code="cubes.too-large",
    )


def _proved(value: float, bound: float | None) -> str:
    if bound is None:
        return " by a greedy scan."
    gap = abs(value - bound) / max(abs(value), 1e-300)
    return ", proved best." if gap < 1e-9 else f", within {100 * gap:.2g} % of a proved bound."


WIDEN = 1e-7
"""Linear programs are solved in floats; their bounds are weakened by this share before they are used."""
LARGEST = 1 << 30
STARTING = SECOND // 100
"""Units of work to build a model and start the solver."""


class CoverProblem(Protocol):
    """What is asked of the cuboids that may be measured: their costs, and the noise of a choice."""

    forms: Floats
    squared: bool

    @property
    def ratios(self) -> Floats:
        """Cells of each candidate that make one of each published cuboid."""

    def noise(self, chosen: Sequence[int]) -> float:
        """Variance of the noise when these candidates are measured alike."""

    def least_power(self, noise: float) -> float:
        """Largest sensitivity (squared for l2) whose noise is at most this."""


def least_maximum(
    covering: CoverProblem,
    weighted: Floats,
    thresholds: Sequence[float],
    best: float,
    chosen: list[int],
    effort: Effort,
) -> tuple[float, list[int], float]:
    """Improve a choice of least maximal variance, and bound what is possible.

    Returns
    -------
    tuple
        The value, the chosen candidates, and a value below which no choice of equal weights comes.
    """
    bounding = effort.share(3, 4)
    forms = covering.forms
    whole = bool(np.all(forms == np.rint(forms)))
    asked = []
    for ratio in thresholds:
        within = weighted <= ratio * (1 + 1e-12)
        if within.any(axis=0).all():
            # Each measured cuboid costs at least this much of the mean form, and covers at most so many.
            share = float((forms.mean(axis=0) / np.maximum(within.sum(axis=1), 1e-9)).min())
            asked.append(
                (_value(covering, share * within.shape[1] * (1 - WIDEN), whole) * ratio, ratio, within)
            )
    bounded = []
    for value, ratio, within in sorted(asked, key=lambda item: item[0]):
        if value < best * (1 - 1e-9):
            if not bounding.done:
                bounding.spend(_program_work(within.shape[1] + len(forms), within.shape[0]))
                value = max(value, _value(covering, _cover_bound(forms, within), whole) * ratio)
            bounded.append((value, ratio, within))
    bound = best
    patience = effort.share(1, 2).work
    for value, ratio, within in sorted(bounded, key=lambda item: item[0]):
        while value < best * (1 - 1e-9):
            # A better choice has a sensitivity below this one.
            room = ceil(covering.least_power(best / ratio) * (1 - 1e-9)) - 1 if whole else 0
            found, open_ = _cover(forms, within, room, _some(effort, patience)) if whole else (None, True)
            if found is None:
                bound = min(bound, value) if open_ else bound
                break
            chosen, best = found, covering.noise(found) * ratio
    return best, chosen, min(bound, best)


def _value(covering: CoverProblem, power: float, whole: bool) -> float:
    """Noise of a sensitivity that is at least this (squared for l2), and an integer if all costs are."""
    least = float(ceil(power - WIDEN)) if whole else power
    return least**2 if covering.squared else least


def most_covered(
    covering: CoverProblem,
    gains: Floats,
    thresholds: Sequence[float],
    limit: float,
    chosen: list[int],
    tops: Sequence[int],
    score_of: Callable[[Sequence[int]], tuple[float, float, float]],
    effort: Effort,
) -> tuple[list[int], float]:
    """Improve a choice that covers most, and bound what is possible.

    Returns
    -------
    tuple
        The chosen candidates, and a weight above which no choice of equal weights comes.
    """
    bounding = effort.share(1, 2)
    forms, ratios = covering.forms, covering.ratios
    whole = bool(np.all(forms == np.rint(forms)) and np.all(gains == np.rint(gains)))
    score = score_of(chosen)
    bounds = []
    for ratio in thresholds:
        room = covering.least_power(limit / ratio) * (1 + 1e-12)
        if whole:
            room = float(floor(room + 1e-9))
        within = ratios <= ratio * (1 + 1e-12)
        if not bounding.done:
            bounding.spend(_program_work(within.shape[1] + len(forms) + len(tops), sum(within.shape)))
            upper = _coverage_bound(forms, within, gains, room, np.isfinite(ratios[:, list(tops)]))
        else:
            widest = np.sort(within @ gains / np.maximum(forms.mean(axis=0), 1e-9))[-1]
            upper = float(min(gains.sum(), widest * room))
        if upper is not None:
            bounds.append(
                (float(floor(upper + WIDEN)) if whole else upper * (1 + WIDEN), ratio, room, within)
            )
    proved = score[0]
    patience = effort.share(1, 2).work
    for upper, _, room, within in sorted(bounds, key=lambda item: -item[0]):
        if upper <= score[0] * (1 + 1e-9):
            break
        if not whole or effort.done:
            proved = max(proved, upper)
            continue
        found, top = _coverage(
            forms,
            within,
            gains,
            int(room),
            np.isfinite(ratios[:, list(tops)]),
            _some(effort, patience),
        )
        if found is not None:
            new = score_of(found)
            if new > score:
                score, chosen = new, found
        proved = max(proved, min(upper, top))
    return chosen, max(proved, score[0])


def _linear_program(goal: Floats, matrix: Any, right: Floats, upper: Floats) -> tuple[int, float]:
    """Least value of a linear form over matrix x <= right, 0 <= x <= upper; status 0 solved, 2 infeasible."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix

    bounds: Any = [(0.0, float(most)) for most in upper]
    rows: Any = csr_matrix(matrix)
    done: Any = linprog(goal, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
    return int(done.status), float(done.fun) if done.status == 0 else 0.0


def _cover_bound(forms: Floats, within: Any) -> float:
    """Least value of the largest cost form over fractional covers, rounded towards less."""
    n, m = within.shape
    matrix = np.zeros((m + len(forms), n + 1))
    matrix[:m, :n] = -within.T.astype(np.float64)
    matrix[m:, :n] = forms
    matrix[m:, n] = -1.0
    right = np.concatenate([-np.ones(m), np.zeros(len(forms))])
    goal = np.concatenate([np.zeros(n), [1.0]])
    status, value = _linear_program(goal, matrix, right, np.concatenate([np.ones(n), [np.inf]]))
    return value * (1 - WIDEN) if status == 0 else 0.0


def _coverage_bound(forms: Floats, within: Any, gains: Floats, room: float, above: Any) -> float | None:
    """Largest fractional coverage within a budget; None when no choice within it reaches the largest cuboids."""
    n, m = within.shape
    j, tops = len(forms), above.shape[1]
    matrix = np.zeros((m + j + tops, n + m))
    matrix[:m, :n] = -within.T.astype(np.float64)
    matrix[:m, n:] = np.eye(m)
    matrix[m : m + j, :n] = forms
    matrix[m + j :, :n] = -above.T.astype(np.float64)
    right = np.concatenate([np.zeros(m), np.full(j, room), -np.ones(tops)])
    goal = np.concatenate([np.zeros(n), -gains])
    status, value = _linear_program(goal, matrix, right, np.ones(n + m))
    if status == 2:
        return None
    return -value if status == 0 else float(gains.sum())


def _program_work(rows: int, columns: int) -> int:
    """Units of work of a linear program, from its size alone: about one pivot a row, each over all entries."""
    return 2_000 + rows * rows * columns // 200


def _some(effort: Effort, most: int | None) -> Effort:
    return effort.share(1) if most is None else effort.at_most(most)


def _solve(model: Any, effort: Effort) -> tuple[Any, Any]:
    """Run CP-SAT with a fixed seed within an effort."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False  # a search that Ctrl-C stopped proves nothing
    solver.parameters.random_seed = 1
    status = effort.solve(solver, model)
    effort.spend(STARTING)
    return solver, status


def _cover(forms: Floats, within: Any, room: float, effort: Effort) -> tuple[list[int] | None, bool]:
    """A cover whose cost forms are all within some room; and whether the question stayed open."""
    from ortools.sat.python import cp_model

    if room < 1:
        return None, False
    if effort.done:
        return None, True
    model = cp_model.CpModel()
    take = [model.new_bool_var(f"c{at}") for at in range(within.shape[0])]
    for column in within.T:
        model.add_bool_or([take[at] for at in np.flatnonzero(column)])
    for row in forms:
        model.add(sum(int(a) * x for a, x in zip(row, take, strict=True) if a) <= int(room))
    solver, status = _solve(model, effort)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [at for at, x in enumerate(take) if solver.boolean_value(x)], False
    return None, status != cp_model.INFEASIBLE


def _coverage(
    forms: Floats, within: Any, gains: Floats, room: int, above: Any, effort: Effort
) -> tuple[list[int] | None, float]:
    """A choice within a budget that covers most, and a bound on the coverage."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    take = [model.new_bool_var(f"c{at}") for at in range(within.shape[0])]
    got = [model.new_bool_var(f"t{at}") for at in range(within.shape[1])]
    for at, column in enumerate(within.T):
        model.add_bool_or([take[i] for i in np.flatnonzero(column)] + [got[at].negated()])
    for column in above.T:
        model.add_bool_or([take[i] for i in np.flatnonzero(column)])
    for row in forms:
        model.add(sum(int(a) * x for a, x in zip(row, take, strict=True) if a) <= min(room, LARGEST))
    model.maximize(sum(int(g) * x for g, x in zip(gains, got, strict=True)))
    solver, status = _solve(model, effort)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return [at for at, x in enumerate(take) if solver.boolean_value(x)], float(
            solver.best_objective_bound
        )
    return None, -np.inf if status == cp_model.INFEASIBLE else float(gains.sum())
