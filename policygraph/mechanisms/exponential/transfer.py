"""Tables too many to list, drawn count by count. Owns :class:`Transfer`, :func:`transfer_of` and :class:`ChainNoise`.

Where the distance of two tables is a sum over steps along their prefix sums, the exponential mechanism is a chain, and sums over the rest of it (transfer matrices) give the
exact probability of each step (section 5 of ``docs/explanation/proofs/exponential-tables.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import ceil, comb
from typing import Any, Protocol

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

__all__ = ["ChainNoise", "Layers", "TableChain", "Transfer", "transfer_of"]

WORK = 2_000_000
"""Most sums of one pass over a chain."""
MOST_BITS = 1 << 30
"""Most bits for the numbers of tables by distance from each state."""


@dataclass(frozen=True)
class Layers(Distribution):
    """Distance d weighs counts[d] * exp(-rate * d)."""

    rate: Fraction
    counts: tuple[int, ...] = field(repr=False)
    two_sided: bool = field(default=False, init=False)
    endless: bool = field(default=False, init=False)

    def reach(self, window: int, bits: int) -> int:
        """Return the number of weights."""
        return len(self.counts)

    def weigh(self, count: int, bits: int) -> tuple[Weights, Weights]:
        """Enclose the weights; the left side is empty."""
        # Far tables may be so many that they weigh most: their weight keeps as many digits as there are tables.
        fine = bits + max(self.counts).bit_length()
        ends = [exp_neg(self.rate * d, fine) if n else (0, 0) for d, n in enumerate(self.counts)]
        lows = [n * low for n, (low, _) in zip(self.counts, ends)]
        highs = [n * high for n, (_, high) in zip(self.counts, ends)]
        return NOTHING, Weights(lows, highs, 0, 0)


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
    def length(self) -> int:
        """Number of counts."""
        return len(self.caps)

    @cached_property
    def number_bits(self) -> int:
        """Bits that the number of tables surely fits in."""
        return comb(self.total + self.length - 1, self.total).bit_length()

    def states(self, step: int) -> int:
        """Prefix sums before a count; the last one is the total."""
        return 1 if step == 0 else self.total + 1

    def options(self, step: int, before: int) -> Iterable[tuple[int, int]]:
        """Values that a count can have, with the prefix sum after each."""
        if step == self.length - 1:
            last = self.total - before
            return [(last, self.total)] if last <= self.caps[step] else []
        return [(v, before + v) for v in range(min(self.caps[step], self.total - before) + 1)]

    def marks(self, truth: Sequence[int]) -> list[int]:
        """What the distance from a true table is measured against: its counts, or its prefix sums."""
        return list(truth) if self.along == "counts" else list(accumulate(truth))

    def cost(self, before: int, value: int, mark: int) -> int:
        """What a value of a count adds to the distance from a true table; records that a count has too many are missing elsewhere."""
        return max(0, value - mark) if self.along == "counts" else abs(before + value - mark)

    @property
    def farthest(self) -> int:
        """A bound on the distance of two tables."""
        return self.total * (max(1, len(self.caps) - 1) if self.along == "prefix" else 1)

    @property
    def work(self) -> int:
        """Number of sums of one pass."""
        return len(self.caps) * (self.total + 1) * (1 + sum(self.caps) // len(self.caps))

    def counts(self, table: Ints) -> list[int]:
        """The counts of a table."""
        if not self.shape:
            return [int(x) for x in table]
        return [int(x) for x in np.take(table.reshape(self.shape), 0, axis=self.axis)]

    def fits(self, counts: Sequence[int]) -> bool:
        """Whether these are the counts of one of the tables."""
        return sum(counts) == self.total

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


class Walks(Protocol):
    """Tables as walks through states, one count at a time: :class:`Transfer`, or a sweep over cells."""

    @property
    def length(self) -> int:
        """Number of counts."""

    @property
    def farthest(self) -> int:
        """A bound on the distance of two tables."""

    @property
    def number_bits(self) -> int:
        """Bits that the number of tables surely fits in."""

    def states(self, step: int, /) -> int:
        """Number of states before a count."""

    def options(self, step: int, state: int, /) -> Iterable[tuple[int, int]]:
        """Values that a count can have, with the state after each."""

    def marks(self, truth: Sequence[int], /) -> list[int]:
        """What the distance from a true table is measured against, count by count."""

    def cost(self, state: int, value: int, mark: int, /) -> int:
        """What a value of a count adds to the distance."""


def too_large(walks: Walks) -> bool:
    """Whether the numbers of tables by distance would take more memory than is allowed; known without data."""
    each = (walks.farthest + 1) * walks.number_bits
    return each * sum(walks.states(step) for step in range(walks.length)) > MOST_BITS


@dataclass(frozen=True, eq=False)
class TableChain:
    """How many tables there are at each distance from a true one, and how they go on after each count.

    Attributes
    ----------
    walks
        The tables.
    truth
        Counts of the true one. Private.

    Notes
    -----
    ``_rest[step][state]`` holds the number of ways to go on from a state by the distance that they add, as the digits of one integer: adding c to the distance is a shift by c digits.
    """

    walks: Walks
    truth: tuple[int, ...] = field(repr=False)

    @cached_property
    def _marks(self) -> list[int]:
        return self.walks.marks(self.truth)

    @cached_property
    def _rest(self) -> list[list[int]]:
        walks, digit, marks = self.walks, self.walks.number_bits, self._marks
        rest: list[list[int]] = [[1] * walks.states(walks.length)]
        for step in range(walks.length - 1, -1, -1):
            after = rest[-1]
            rest.append(
                [
                    sum(
                        after[state] << digit * walks.cost(before, value, marks[step])
                        for value, state in walks.options(step, before)
                    )
                    for before in range(walks.states(step))
                ]
            )
        return rest[::-1]

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """Number of tables at distance 0, 1, 2, ... from the true one."""
        whole, digit = self._rest[0][0], self.walks.number_bits
        mask = (1 << digit) - 1
        return tuple(whole >> digit * d & mask for d in range(-(-whole.bit_length() // digit)))

    def ways(self, step: int, state: int, left: int) -> list[tuple[int, int, int, int]]:
        """Each value that the next count can have when so much of the distance is left: the state after it, what is left then, and in how many ways it goes on."""
        digit = self.walks.number_bits
        mask = (1 << digit) - 1
        found = []
        for value, after in self.walks.options(step, state):
            rest = left - self.walks.cost(state, value, self._marks[step])
            number = self._rest[step + 1][after] >> digit * rest & mask if rest >= 0 else 0
            if number:
                found.append((value, after, rest, number))
        return found


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
    transfer: Any
    rate: Fraction
    sensitivity: Sensitivity | None = None

    runner = "exponential"

    def distances_from(self, chain: TableChain) -> Layers:
        """The distribution of the distance of the drawn table from the true one."""
        return Layers(self.rate, chain.layers)

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
            f"for a loss of {self.loss} (twice the rate), first the distance, then the table count by count, with exact numbers of tables.",
            "The released table is a table of counts that fits every public fact; the stated errors are the whole range of an answer, and no estimate.",
        ]
