"""Tables too many to list, drawn count by count. Owns :class:`Transfer`, :func:`transfer_of` and :class:`ChainNoise`.

Where the distance of two tables is a sum over steps along their prefix sums, the exponential mechanism is a chain, and sums over the rest of it (transfer matrices) give the
exact probability of each step (section 5 of ``docs/explanation/proofs/exponential-tables.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from policygraph.distributions.enclosure import Weights, exp_neg
from policygraph.distributions.integers import NOTHING, Distribution
from policygraph.exact import show
from policygraph.mechanisms.base import Calibrated, Floats, Ints, Noise
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.release.release import Basis
from policygraph.sensitivity.certificate import Sensitivity

__all__ = ["ChainNoise", "TableChain", "Transfer", "transfer_of"]

WORK = 2_000_000
"""Most sums of one pass over a chain."""
MOST_BITS = 8_192
"""Most bits by which weights of far tables may fall below those of near ones."""


@dataclass(frozen=True)
class Transfer:
    """Tables with one fixed sum, as counts x_1, ..., x_k with 0 <= x_i <= caps[i] and x_1 + ... + x_k = total.

    Attributes
    ----------
    caps
        Largest value of each count.
    total
        Their sum.
    along
        ``"counts"``: the distance of two tables is half the sum of |x_i - y_i|. ``"prefix"``: it is the sum of |X_i - Y_i| over prefix sums.
    shape
        Shape of the table whose first row (along ``axis``) the counts are; empty where they are the table itself.
    axis
        The attribute of two values.
    columns
        Sums of the columns of that table.
    """

    caps: tuple[int, ...]
    total: int
    along: str
    shape: tuple[int, ...] = ()
    axis: int = 0
    columns: tuple[int, ...] = ()

    @property
    def farthest(self) -> int:
        """A bound on the distance of two tables."""
        return self.total * (max(1, len(self.caps) - 1) if self.along == "prefix" else 1)

    @property
    def work(self) -> int:
        """Number of sums of one pass."""
        each = 1 if self.along == "prefix" else 1 + sum(self.caps) // len(self.caps)
        return len(self.caps) * (self.total + 1) * each

    def counts(self, table: Ints) -> list[int]:
        """The counts of a table."""
        if not self.shape:
            return [int(x) for x in table]
        return [int(x) for x in np.take(table.reshape(self.shape), 0, axis=self.axis)]

    def tables(self, counts: Ints) -> Ints:
        """Tables with these counts, one in each row."""
        if not self.shape:
            return counts
        both = np.stack([counts, np.array(self.columns, dtype=np.int64) - counts], axis=1 + self.axis)
        return both.reshape(len(counts), -1)


def transfer_of(policy: Policy) -> Transfer | None:
    """The chain of a policy with published values, where it has one.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 3})
    >>> told = [pg.Cuboid("a", equals=[40, 20]), pg.Cuboid("b", equals=[10, 20, 30])]
    >>> made = transfer_of(pg.Policy(domain, constraints=told))
    >>> made.caps, made.total, made.along
    ((10, 20, 30), 40, 'counts')
    """
    domain = policy.domain
    if not isinstance(domain, Domain) or policy.at_most_records is not None or policy.strength == "positive":
        return None
    values = {
        frozenset(f.names) if isinstance(f, Cuboid) else frozenset(): f.values(domain)
        for f in policy.constraints
        if isinstance(f, (Cuboid, Total))
    }
    if len(values) != len(policy.constraints) or any(value is None for value in values.values()):
        return None
    whole = values.get(frozenset())
    if set(values) == {frozenset()} and whole is not None:
        total = int(whole[0])
        caps = (total,) * domain.size
        if policy.graph is None or (policy.graph.bottom == "none" and _is_full(policy)):
            return Transfer(caps, total, "counts")
        if policy.graph.bottom == "none" and _is_line(policy):
            return Transfer(caps, total, "prefix")
        return None
    if policy.graph is not None or len(domain.names) != 2:
        return None
    margins = [values.get(frozenset([name])) for name in domain.names]
    if any(margin is None for margin in margins) or len(values) > 3 or frozenset(domain.names) in values:
        return None
    for axis in (0, 1):
        if domain.shape[axis] == 2:
            rows, columns = margins[axis] or (), margins[1 - axis] or ()
            sums = tuple(int(x) for x in columns)
            return Transfer(sums, int(rows[0]), "counts", domain.shape, axis, sums)
    return None


def _is_full(policy: Policy) -> bool:
    cells = policy.domain.size
    return policy.graph is not None and policy.graph.n_edges == cells * (cells - 1) // 2


def _is_line(policy: Policy) -> bool:
    if policy.graph is None or policy.graph.n_edges != policy.domain.size - 1:
        return False
    edges: Any = policy.graph.edges()
    return {(min(e), max(e)) for e in edges} == {(i, i + 1) for i in range(policy.domain.size - 1)}


@dataclass(frozen=True, eq=False)
class TableChain:
    """The chain of tables around a true one: how the next count is distributed after the counts before it.

    Attributes
    ----------
    transfer
        The tables.
    truth
        Counts of the true one. Private.
    rate
        A table at distance d weighs exp(-rate * d).
    """

    transfer: Transfer
    truth: tuple[int, ...] = field(repr=False)
    rate: Fraction
    _rest: dict[int, Any] = field(default_factory=dict, repr=False)
    _powers: dict[tuple[Fraction, int], tuple[int, int]] = field(default_factory=dict, repr=False)

    def next(self, step: int, before: int) -> NextCount:
        """The distribution of a count, when those before it add up to so many."""
        return NextCount(self, step, before)

    def most(self, step: int, before: int) -> int:
        """The largest value that the count can have."""
        return min(self.transfer.caps[step], self.transfer.total - before)

    def weigh(self, step: int, before: int, bits: int) -> tuple[list[int], list[int]]:
        """Enclose the weights of the values of a count, with all that can follow."""
        rest, work = self._sums(bits)
        low, high = [], []
        for value in range(self.most(step, before) + 1):
            one = self._one(step, before, value, work)
            after = rest[step + 1][before + value]
            low.append(one[0] * after[0] >> work)
            high.append(-(-one[1] * after[1] >> work))
        return low, high

    def _one(self, step: int, before: int, value: int, work: int) -> tuple[int, int]:
        """Enclose the weight of one step."""
        if self.transfer.along == "counts":
            return self._power(self.rate / 2 * abs(value - self.truth[step]), work)
        return self._power(self.rate * abs(before + value - self._prefix[step]), work)

    def _power(self, x: Fraction, work: int) -> tuple[int, int]:
        if (x, work) not in self._powers:
            self._powers[x, work] = exp_neg(x, work)
        return self._powers[x, work]

    @cached_property
    def _prefix(self) -> list[int]:
        return [int(x) for x in np.cumsum(self.truth)]

    def _sums(self, bits: int) -> tuple[list[list[tuple[int, int]]], int]:
        """Enclose the sum of the weights of all that can follow each step and prefix sum, at a scale at which no weight vanishes."""
        extra = ceil(self.rate * self.transfer.farthest * 3 / 2) + 64
        work = bits + extra
        if work in self._rest:
            return self._rest[work], work
        total, count = self.transfer.total, len(self.truth)
        rest: list[list[tuple[int, int]]] = [[(0, 0)] * (total + 1) for _ in range(count + 1)]
        rest[count][total] = (1 << work, 1 << work)
        for step in range(count - 1, -1, -1):
            if self.transfer.along == "prefix":
                # the weight of a step depends on where it ends: running sums from above
                low = high = 0
                cap = self.transfer.caps[step]
                ends = []
                for end in range(total + 1):
                    one = self._one(step, end, 0, work)
                    after = rest[step + 1][end]
                    ends.append((one[0] * after[0] >> work, -(-one[1] * after[1] >> work)))
                for before in range(total, -1, -1):
                    low, high = low + ends[before][0], high + ends[before][1]
                    if before + cap + 1 <= total:
                        low, high = low - ends[before + cap + 1][0], high - ends[before + cap + 1][1]
                    rest[step][before] = (low, high)
                continue
            for before in range(total + 1):
                low = high = 0
                for value in range(self.most(step, before) + 1):
                    one = self._one(step, before, value, work)
                    after = rest[step + 1][before + value]
                    low += one[0] * after[0] >> work
                    high += -(-one[1] * after[1] >> work)
                rest[step][before] = (low, high)
        self._rest[work] = rest
        return rest, work


@dataclass(frozen=True, eq=False)
class NextCount(Distribution):
    """One count of a table that is drawn count by count."""

    steps: TableChain
    step: int
    before: int
    two_sided: bool = field(default=False, init=False)
    endless: bool = field(default=False, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return the number of values."""
        return self.steps.most(self.step, self.before) + 1

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        low, high = self.steps.weigh(self.step, self.before, bits)
        return NOTHING, Weights(low, high, 0, 0)


@dataclass(frozen=True, eq=False)
class ChainNoise(Calibrated):
    """The exponential mechanism over tables that are too many to list, drawn count by count.

    Attributes
    ----------
    transfer
        The tables and their distances.
    rate
        A table at distance d is drawn with probability proportional to exp(-rate * d).
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    transfer: Transfer
    rate: Fraction
    sensitivity: Sensitivity | None = None

    runner = "exponential"

    @cached_property
    def ranges(self) -> Floats:
        """The most by which each answer can be off: every record is somewhere else."""
        records = sum(self.transfer.columns) if self.transfer.shape else self.transfer.total
        height, size = self.query.height, self.policy.domain.size
        if height * size > 10_000_000:
            return np.full(height, 2.0 * records * self.query.largest_entry)
        dense = np.asarray(self.query.columns(np.arange(size)).toarray(), dtype=np.float64)
        return np.asarray(records * (dense.max(axis=1) - dense.min(axis=1)))

    @cached_property
    def noise(self) -> Noise:
        most = float(self.ranges.max(initial=0.0))
        return Noise("exponential over tables", self.rate, most**2, ceil(most))

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self.ranges, part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self.ranges, part)

    @property
    def rests_on(self) -> Basis:
        return "bound"

    def stages(self) -> Sequence[str]:
        how = (
            "half the sum of the differences of counts"
            if self.transfer.along == "counts"
            else "the sum of the differences of prefix sums"
        )
        return [
            f"The tables that fit the published values are too many to list; neighbour steps between two of them are {how}.",
            f"One of them was drawn, with probability proportional to exp(-{show(self.rate)} d) at d steps from the true table, "
            f"for a loss of {self.loss} (twice the rate), count by count with exact sums over all that can follow.",
            "The released table is a table of counts that fits every public fact; the stated errors are the whole range of an answer, and no estimate.",
        ]
