"""How much replacing one record can change interactions. Owns :class:`Exchangeable` and :func:`largest_difference`.

The change depends only on the set D of attributes on which the old and the new record differ. Attributes that can be exchanged without changing the query fall into
classes, and then only the number of differing attributes of each class matters: on binary attributes the change is a sum of Krawtchouk polynomials of these
numbers (``docs/explanation/proofs/interactions.md``). So 40 attributes that are all alike have 40 cases instead of 2^40. Everything is in integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np

from policygraph.errors import RefusedError
from policygraph.model.domain import Domain
from policygraph.model.queries.base import Norm
from policygraph.model.queries.cuboids import BlockQuery

__all__ = ["Exchangeable", "Largest", "Steps", "alike", "largest_difference"]

MOST_CASES = 1 << 22
"""Most cases, numbers of differing attributes by class, that are looked at with 64-bit integers."""
MOST_LONG = 1 << 16
"""The same with long integers, and where absolute values of products do not multiply."""
MOST_TERMS = 1 << 31
"""Most additions in that case."""
BUCKET = 16
"""Attributes of one function in the elimination that bounds the change where there are too many cases."""
MOST_BITS = 62
CLIMBS = 64


@dataclass(frozen=True)
class Steps:
    """Sets of attributes on which the ends of a neighbour step differ: all non-empty subsets of some, of at most a number of them.

    Examples
    --------
    >>> Steps(("a", "b", "c"), 2).number, [sorted(some) for some in Steps(("a", "b"), 1)]
    (6, [['a'], ['b']])
    """

    names: tuple[str, ...]
    most: int

    @property
    def number(self) -> int:
        """How many sets there are."""
        return sum(comb(len(self.names), size) for size in range(1, self.most + 1))

    def __iter__(self) -> Iterator[frozenset[str]]:
        for size in range(1, min(self.most, len(self.names)) + 1):
            yield from (frozenset(some) for some in combinations(self.names, size))


@dataclass(frozen=True)
class Largest:
    """The largest change that a step can make: at most ``upper``, and ``lower`` for a step that differs on the given attributes."""

    upper: int
    lower: int
    differing: frozenset[str]
    how: str

    @property
    def exact(self) -> bool:
        """Whether bound and attained value agree."""
        return self.upper == self.lower


def alike(family: Mapping[int, Any], axes: Sequence[int], marks: Sequence[Any]) -> list[list[int]]:
    """Exchangeable of axes that can be exchanged without changing a family of sets.

    Parameters
    ----------
    family
        Sets of axes as bit masks, each with something that must stay the same, for example its weight.
    axes
        The axes.
    marks
        One for each axis; only axes with equal ones are exchanged.

    Notes
    -----
    That exchanging i and j keeps the family is an equivalence: (i k) = (i j)(j k)(i j). All permutations inside a class are products of such exchanges.

    Examples
    --------
    >>> alike({0b011: 1, 0b101: 1, 0b110: 1, 0b001: 2}, [0, 1, 2], [2, 2, 2])
    [[0], [1, 2]]
    """
    classes: list[list[int]] = []
    held: list[Any] = []
    for axis, mark in zip(axes, marks, strict=True):
        for members, same in zip(classes, held, strict=True):
            both = 1 << axis | 1 << members[0]
            if same == mark and all(
                family.get(mask ^ both) == kept
                for mask, kept in family.items()
                if (mask >> axis ^ mask >> members[0]) & 1
            ):
                members.append(axis)
                break
        else:
            classes.append([axis])
            held.append(mark)
    return classes


class Exchangeable:
    """Interactions by classes of attributes that can be exchanged.

    Parameters
    ----------
    domain
        The domain of the records.
    family
        The interactions as bit masks over the axes of the domain, with what must stay the same under an exchange.
    free
        Attributes on which the ends of a step may differ.

    Examples
    --------
    >>> domain = Domain({name: 2 for name in "abcd"})
    >>> pairs = {0b0011: 1, 0b0101: 1, 0b0110: 1, 0b1001: 1, 0b1010: 1, 0b1100: 1}
    >>> classes = Exchangeable(domain, pairs, domain.names)
    >>> classes.shape, classes.changes({(2,): 1}, "l1").tolist()
    ((5,), [0, 6, 8, 6, 0])
    """

    def __init__(self, domain: Domain, family: Mapping[int, Any], free: Sequence[str]) -> None:
        self.domain, self.family = domain, dict(family)
        used = 0
        for mask in self.family:
            used |= mask
        open_ = {domain.axis(name) for name in free}
        axes = [axis for axis in range(len(domain.shape)) if used >> axis & 1]
        marks = [(domain.shape[axis], axis in open_) for axis in axes]
        self.members = alike(self.family, axes, marks)
        self.sizes = [domain.shape[members[0]] for members in self.members]
        self.masks = [sum(1 << axis for axis in members) for members in self.members]
        self.free = [at for at, members in enumerate(self.members) if members[0] in open_]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many attributes of each class may differ, and none: the numbers of cases, without classes on which no step differs."""
        return tuple(len(self.members[at]) + 1 for at in self.free)

    def kind(self, mask: int) -> tuple[int, ...]:
        """How many attributes of each class a set has: two sets of one family with the same numbers can be exchanged."""
        return tuple((mask & members).bit_count() for members in self.masks)

    def names(self, case: Sequence[int]) -> frozenset[str]:
        """Attributes that stand for a case, the first ones of each class."""
        return frozenset(
            self.domain.names[axis]
            for at, number in zip(self.free, case, strict=True)
            for axis in self.members[at][:number]
        )

    def column(self, kind: Sequence[int], norm: Norm) -> int:
        """Norm (squared for l2) of the rows of all interactions of a kind at one cell."""
        each = [1 if n == 2 else (2 * (n - 1) if norm == "l1" else n * (n - 1)) for n in self.sizes]
        return prod(
            comb(len(members), number) * one**number
            for members, number, one in zip(self.members, kind, each, strict=True)
        )

    def changes(self, kinds: Mapping[tuple[int, ...], int], norm: Norm) -> Any:
        """Norm (squared for l2) of the change of all interactions of some kinds, in every case.

        Parameters
        ----------
        kinds
            Kinds with a factor for each.

        Returns
        -------
        ndarray
            One number for each case, along :attr:`shape`.
        """
        cases = prod(self.shape)
        largest = 4 * sum(factor * self.column(kind, norm) for kind, factor in kinds.items())
        long = largest >= 1 << MOST_BITS
        if cases > (MOST_LONG if long else MOST_CASES):
            raise _too_many(cases)
        kept: Any = object if long else np.int64
        if norm == "l2" or all(n == 2 for n in self.sizes):
            return self._multiplied(kinds, 2 if norm == "l2" else 1, kept)
        return self._added(kinds, kept)

    def _multiplied(self, kinds: Mapping[tuple[int, ...], int], times: int, kept: Any) -> Any:
        """Scalar products of columns multiply over attributes: one sum for each class and case."""
        made = np.zeros(self.shape, dtype=kept)
        for kind, factor in kinds.items():
            rest = [0 if at in self.free else number for at, number in enumerate(kind)]
            made[tuple(kind[at] for at in self.free)] += factor * self.column(rest, "l2")
        for axis, at in enumerate(self.free):
            k, n = len(self.members[at]), self.sizes[at]
            same, apart = (1, -1) if n == 2 else (n * (n - 1), -n)
            before, after = prod(self.shape[:axis]), prod(self.shape[axis + 1 :])
            parts = made.reshape(before, k + 1, after)
            if k == 1:
                made = np.stack([parts[:, 0] + same * parts[:, 1], parts[:, 0] + apart * parts[:, 1]], axis=1)
                continue
            kernel = np.zeros((k + 1, k + 1), dtype=kept)
            for s in {kind[at] for kind in kinds}:
                kernel[:, s] = [_shared(k, s, d, same, apart) for d in range(k + 1)]
            made = np.matmul(kernel, parts)
        made = made.reshape(self.shape)
        equal = made[(0,) * made.ndim]
        return times * (equal - made)

    def _added(self, kinds: Mapping[tuple[int, ...], int], kept: Any) -> Any:
        """Absolute values of differences of products do not multiply: one term for every way in which a set can meet D."""
        cases = prod(self.shape)
        ways = sum(prod(kind[at] + 1 for at in self.free) for kind in kinds)
        if cases > MOST_LONG or cases * ways > MOST_TERMS:
            raise _too_many(cases)
        made = np.zeros(self.shape, dtype=kept)
        for kind, factor in kinds.items():
            rest = [0 if at in self.free else number for at, number in enumerate(kind)]
            for inside in product(*(range(kind[at] + 1) for at in self.free)):
                each = self._apart(inside) * self.column(rest, "l1")
                term = np.array(factor * each, dtype=kept)
                for axis, (at, here) in enumerate(zip(self.free, inside, strict=True)):
                    k, number, n = len(self.members[at]), kind[at], self.sizes[at]
                    one = (1 if n == 2 else 2 * (n - 1)) ** (number - here)
                    ways_of = [one * comb(d, here) * comb(k - d, number - here) for d in range(k + 1)]
                    along = [1] * len(self.shape)
                    along[axis] = k + 1
                    if number:
                        term = term * np.array(ways_of, dtype=kept).reshape(along)
                made += term
        return made

    def _apart(self, inside: tuple[int, ...]) -> int:
        """Sum of |x - y| over the rows of differing attributes, x and y the entries of the two records."""
        pairs = {(1, 1): 1}
        for at, number in zip(self.free, inside, strict=True):
            n = self.sizes[at]
            steps = [(1, -1, 1)] if n == 2 else [(n - 1, -1, 1), (-1, n - 1, 1), (-1, -1, n - 2)]
            for _ in range(number):
                following: dict[tuple[int, int], int] = {}
                for (x, y), count in pairs.items():
                    for a, b, times in steps:
                        key = (x * a, y * b)
                        following[key] = following.get(key, 0) + count * times
                pairs = following
        return sum(abs(x - y) * count for (x, y), count in pairs.items())


def _shared(k: int, s: int, d: int, same: int, apart: int) -> int:
    """Sum over all sets of s of k attributes of the scalar products of columns that differ on d of them; for two values a Krawtchouk polynomial."""
    return sum(
        comb(d, j) * comb(k - d, s - j) * apart**j * same ** (s - j)
        for j in range(max(0, s - k + d), min(s, d) + 1)
    )


def _too_many(cases: int) -> RefusedError:
    return RefusedError(
        f"attributes that differ from each other can change in {cases:,} ways: expected at most {MOST_CASES:,}, or {MOST_LONG:,} for long integers and for more than two "
        "values in L1.",
        code="sensitivity.sets",
    )


def largest_difference(query: BlockQuery, steps: Steps, norm: Norm) -> Largest:
    """The largest change of interactions when one record is replaced.

    Parameters
    ----------
    query
        The interactions.
    steps
        On which attributes the old and the new record can differ.
    norm
        ``"l1"``, or ``"l2"`` for squares.

    Returns
    -------
    Largest
        Exact where classes of exchangeable attributes leave few cases, a bound by elimination of attributes otherwise.

    Examples
    --------
    >>> domain = Domain({f"a{i}": 2 for i in range(40)})
    >>> query = BlockQuery(domain, [[], *([n] for n in domain.names), *combinations(domain.names, 2)])
    >>> found = largest_difference(query, Steps(domain.names, 40), "l1")
    >>> found.upper, found.lower, len(found.differing)
    (840, 840, 20)
    """
    domain = query.domain
    axes = [sum(1 << domain.axis(name) for name in names) for names in query.sets]
    weights = [weight if norm == "l1" else weight * weight for weight in query.weights]
    used = {name for names in query.sets for name in names}
    free = tuple(name for name in steps.names if name in used and len(domain.labels(name)) > 1)
    most = min(steps.most, len(free))
    if not free or not most:
        return Largest(0, 0, frozenset(), "no step changes an interaction")
    changed = sum(1 << domain.axis(name) for name in free)
    family = {mask: weight for mask, weight in zip(axes, weights, strict=True) if mask & changed}
    classes = Exchangeable(domain, family, free)
    kinds = {classes.kind(mask): weight for mask, weight in family.items()}
    try:
        values = classes.changes(kinds, norm)
    except RefusedError:
        return _otherwise(query, Steps(free, most), family, norm)
    numbers = np.zeros(classes.shape, dtype=np.int64)
    for at, some in enumerate(classes.shape):
        along = [1] * len(classes.shape)
        along[at] = some
        numbers += np.arange(some, dtype=np.int64).reshape(along)
    inside = np.flatnonzero((numbers <= most).ravel())
    flat, sizes = values.ravel()[inside], numbers.ravel()[inside]
    best = flat.max()
    tied = np.flatnonzero(flat == best)
    tied = tied[sizes[tied] == sizes[tied].min()]
    case = np.unravel_index(int(inside[tied[-1]]), classes.shape)
    differing = classes.names([int(number) for number in case])
    shown = [number - 1 for number in classes.shape]
    how = "exchangeable attributes in classes of " + ", ".join(map(str, shown)) if max(shown) > 1 else ""
    return Largest(int(best), int(best), differing, how)


def _otherwise(query: BlockQuery, steps: Steps, family: Mapping[int, int], norm: Norm) -> Largest:
    """Few sets one by one; otherwise a bound by elimination, and the best of a climb."""
    if steps.number <= MOST_LONG:
        best = max(steps, key=lambda names: query.difference_norm(names, norm))
        value = query.difference_norm(best, norm)
        return Largest(value, value, best, "")
    domain = query.domain
    found, value = _climb(query, steps, norm)
    axes = sorted(domain.axis(name) for name in steps.names)
    functions = []
    for mask, weight in family.items():
        mine = tuple(axis for axis in axes if mask >> axis & 1)
        if len(mine) > BUCKET:
            upper = (2 if norm == "l1" else 4) * int(query.column_norms(np.zeros(1, dtype=np.int64), norm)[0])
            return Largest(max(upper, value), value, found, "twice the longest column")
        names = [domain.names[axis] for axis in range(len(domain.shape)) if mask >> axis & 1]
        one = BlockQuery(domain, [names])
        table = np.array(
            [
                weight
                * one.difference_norm(
                    frozenset(domain.names[a] for a, on in zip(mine, some, strict=True) if on), norm
                )
                for some in product((0, 1), repeat=len(mine))
            ],
            dtype=object,
        )
        functions.append((mine, table.reshape((2,) * len(mine))))
    upper = eliminated(functions)
    return Largest(max(upper, value), value, found, "elimination of attributes")


def eliminated(functions: Sequence[tuple[tuple[int, ...], Any]]) -> int:
    """An upper bound on the largest sum of functions of bits: one bit after the other is maximised out.

    Parameters
    ----------
    functions
        Each with the bits that it depends on, ascending, and its integer values, an axis for each of the bits.

    Notes
    -----
    The functions of a bit are added in groups of few bits in all, and the maximum is taken over each group by itself: max (f + g) <= max f + max g, with equality where
    one group suffices for every bit.

    Examples
    --------
    >>> edge = np.array([[0, 1], [1, 0]])
    >>> eliminated([((0, 1), edge), ((1, 2), edge), ((0, 2), edge)])
    2
    """
    total = 0
    largest = sum(int(np.abs(values).max()) for _, values in functions)
    kept: Any = object if largest >= 1 << MOST_BITS else np.int64
    held = [(bits, np.asarray(values).astype(kept)) for bits, values in functions]
    while held:
        near: dict[int, set[int]] = {}
        for bits, _ in held:
            for bit in bits:
                near.setdefault(bit, set()).update(bits)
        if not near:
            return total + sum(int(values) for _, values in held)
        bit = min(near, key=lambda b: (len(near[b]), b))
        mine = sorted((f for f in held if bit in f[0]), key=lambda f: (-len(f[0]), f[0]))
        held = [f for f in held if bit not in f[0]]
        groups: list[tuple[set[int], list[tuple[tuple[int, ...], Any]]]] = []
        for bits, values in mine:
            for union, members in groups:
                if len(union | set(bits)) <= BUCKET:
                    union.update(bits)
                    members.append((bits, values))
                    break
            else:
                groups.append((set(bits), [(bits, values)]))
        for union, members in groups:
            order = sorted(union)
            made = np.zeros((2,) * len(order), dtype=kept)
            for bits, values in members:
                made = made + values.reshape([2 if b in bits else 1 for b in order])
            rest = tuple(b for b in order if b != bit)
            less = made.max(axis=order.index(bit))
            if rest:
                held.append((rest, less))
            else:
                total += int(less)
    return total


def _climb(query: BlockQuery, steps: Steps, norm: Norm) -> tuple[frozenset[str], int]:
    """A good set: from single attributes, the best attribute is added or taken away while that helps."""
    best: frozenset[str] = frozenset()
    value = 0
    for _ in range(CLIMBS):
        tried = [best ^ {name} for name in steps.names]
        scored = [
            (query.difference_norm(some, norm), at)
            for at, some in enumerate(tried)
            if 0 < len(some) <= steps.most
        ]
        top, at = max(scored, key=lambda pair: (pair[0], -pair[1]), default=(0, 0))
        if top <= value:
            break
        best, value = tried[at], top
    return best, value
