"""Public margins of a table: reduction to the part that matters, and closed forms for whole and partly public margins.

Each reduction keeps the sensitivity of the query over the minimal moves unchanged (``docs/explanation/proofs/reductions.md``), so that
the size that matters is the size of the reduced problem. With one or two margins left the move graph is bipartite and there is a
closed form (``docs/explanation/proofs/two-cuboids.md``); structural zeros delete edges of that graph. Attributes that two partly
public cuboids share split the table into independent slices, of which only those with different public cells differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import lcm, prod

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.exact import brief
from policygraph.model.constraints.base import Constraint
from policygraph.model.constraints.tables import Cells, Cuboid, StructuralZero, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints, Norm
from policygraph.model.queries.cuboids import BlockQuery, CuboidQuery
from policygraph.model.queries.products import ProductQuery
from policygraph.moves.arcs import LONGEST_SWAPS, SWAPS, arc_sequence, longest_arcs
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs.edges import MOST_SETS
from policygraph.sensitivity.rungs.interactions import Steps, largest_difference
from policygraph.sensitivity.rungs.products import over_sets

__all__ = [
    "Axis",
    "Codes",
    "Reduced",
    "beside_margins",
    "beside_one_margin",
    "closed_form",
    "decode",
    "encode",
    "fixed_by_margins",
    "partial_margins",
    "reduce_margins",
    "reduced_of",
    "table_costs",
    "whole_margins",
]

FOLLOW = "every interaction that is asked for is one of a public margin"
STRUCTURE = 2 * SECOND
"""Work on a bound by the structure of the facts when weaker neighbours are searched afterwards."""
Change = Mapping[tuple[int, ...], int]
Codes = tuple[int, ...]


@dataclass(frozen=True)
class Axis:
    """A reduced attribute: some attributes of the domain taken together, perhaps with fewer values.

    Attributes
    ----------
    names
        Attributes of the domain, first one slowest.
    size
        Number of values that are kept: the first ``size`` combinations.
    """

    names: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Reduced:
    """A table over reduced attributes, whole margins that are public, and margins that are asked for.

    Attributes
    ----------
    axes
        The reduced attributes.
    known
        Public margins, as sets of axis numbers; empty: nothing is public; the empty set: the total is public.
    asked
        Margins of the query with their weights, in no order; repeated ones count each time.
    steps
        What was done, in words.
    """

    domain: Domain
    axes: tuple[Axis, ...]
    known: tuple[frozenset[int], ...]
    asked: tuple[tuple[frozenset[int], int], ...]
    steps: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the reduced attributes."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of reduced cells."""
        return prod(self.shape)

    @property
    def asks_cells(self) -> bool:
        """Whether the one thing asked for is every reduced cell, once."""
        return [names for names, _ in self.asked] == [frozenset(range(len(self.axes)))]

    def lift(self, cell: Sequence[int]) -> int:
        """Index of a cell of the domain that stands for a reduced cell; attributes reduced away are at 0."""
        codes = dict.fromkeys(self.domain.names, 0)
        for axis, value in zip(self.axes, cell, strict=True):
            rest = int(value)
            for name in reversed(axis.names):
                rest, codes[name] = divmod(rest, self.domain.shape[self.domain.axis(name)])
        at = 0
        for name, size in zip(self.domain.names, self.domain.shape, strict=True):
            at = at * size + codes[name]
        return at

    def margin_rows(self, names: frozenset[int]) -> Ints:
        """Row number of each reduced cell in the margin over some axes."""
        grid = (
            np.indices(self.shape).reshape(len(self.shape), -1)
            if self.shape
            else np.zeros((0, 1), dtype=np.int64)
        )
        row = np.zeros(grid.shape[1], dtype=np.int64)
        for axis in sorted(names):
            row = row * self.shape[axis] + grid[axis]
        return row

    def matrix(self) -> Ints:
        """Public margins as dense rows over the reduced cells."""
        return _stack([(self.margin_rows(names), 1) for names in self.known], self.size)

    def query_matrix(self) -> Ints:
        """The query as dense rows over the reduced cells."""
        return _stack([(self.margin_rows(names), weight) for names, weight in self.asked], self.size)

    def value_of(self, norm: Norm, per_margin: int) -> int:
        """Weighted sum when every margin that is asked for changes by ``per_margin``."""
        return sum((w if norm == "l1" else w * w) * per_margin for _, w in self.asked)

    def symmetries(self) -> Ints | None:
        """Generators of the cell permutations that keep margins and query: values of an axis, equal axes."""
        if self.size > 4096 or not self.axes:
            return None
        cells = np.arange(self.size).reshape(self.shape)
        out = []
        for axis, size in enumerate(self.shape):
            for value in range(size - 1):
                order = np.arange(size)
                order[[value, value + 1]] = order[[value + 1, value]]
                out.append(np.take(cells, order, axis=axis).ravel())
        for i in range(len(self.axes)):
            for j in range(i):
                if self.shape[i] == self.shape[j] and self._swappable(i, j):
                    out.append(np.swapaxes(cells, i, j).ravel())
        return np.array(out, dtype=np.int64) if out else None

    def _swappable(self, i: int, j: int) -> bool:
        turn = {i: j, j: i}
        known = sorted(sorted(turn.get(a, a) for a in names) for names in self.known)
        asked = sorted((sorted(turn.get(a, a) for a in names), w) for names, w in self.asked)
        return known == sorted(sorted(names) for names in self.known) and asked == sorted(
            (sorted(names), w) for names, w in self.asked
        )

    def shrink(self, records: int) -> Reduced:
        """Keep only as many values of each axis as moves of few records can touch (whole margins only)."""
        axes = []
        for at, axis in enumerate(self.axes):
            # Added and removed records have the same multiset of values on an axis inside a public margin.
            most = records if any(at in names for names in self.known) else 2 * records
            axes.append(replace(axis, size=min(axis.size, most)))
        if tuple(axes) == self.axes:
            return self
        step = f"a move of at most {records} records touches few values of an attribute, and values are alike"
        return replace(self, axes=tuple(axes), steps=(*self.steps, step))


def _stack(blocks: list[tuple[Ints, int]], width: int) -> Ints:
    height = sum(int(rows.max(initial=-1)) + 1 for rows, _ in blocks)
    out = np.zeros((height, width), dtype=np.int64)
    start = 0
    for rows, weight in blocks:
        out[start + rows, np.arange(width)] = weight
        start += int(rows.max(initial=-1)) + 1
    return out


def reduce_margins(domain: Domain, constraints: Sequence[Constraint], query: CuboidQuery) -> Reduced | None:
    """Reduce public whole margins and a query of cuboids; None when a fact is of another kind.

    Examples
    --------
    >>> domain = Domain({"a": 2, "b": 3, "c": 4, "d": 5})
    >>> facts = [Cuboid("a", "b", "d"), Cuboid("b", "c", "d")]
    >>> reduced = reduce_margins(domain, facts, CuboidQuery(domain, [domain.names]))
    >>> reduced.shape, [sorted(k) for k in reduced.known]
    ((2, 4), [[0], [1]])
    """
    sets: list[frozenset[str]] = []
    for constraint in constraints:
        if isinstance(constraint, Total):
            sets.append(frozenset())
        elif isinstance(constraint, Cuboid):
            sets.append(frozenset(constraint.names))
        else:
            return None
    steps: list[str] = []
    single = {name for name, size in zip(domain.names, domain.shape, strict=True) if size == 1}
    if single:
        steps.append(f"attributes with one value dropped: {', '.join(sorted(single))}")
    known = {names - single for names in sets}
    inside = {names for names in known if any(names < other for other in known)}
    if inside:
        steps.append("public margins inside other public margins dropped")
    known -= inside
    asked = [
        (frozenset(names) - single, weight) for names, weight in zip(query.sets, query.weights, strict=True)
    ]
    free = [(names, w) for names, w in asked if not any(names <= k for k in known)]
    if len(free) < len(asked):
        steps.append(f"{len(asked) - len(free)} asked tables follow from the public ones and cannot change")
    common = frozenset.intersection(*known) if known else frozenset()
    if common:
        steps.append(f"attributes in every public margin split the table: {', '.join(sorted(common))}")
        known = {names - common for names in known}
        free = [(names - common, w) for names, w in free]
    used = frozenset().union(*known, *(names for names, _ in free))
    groups: dict[tuple[bool, ...], list[str]] = {}
    for name in domain.names:
        if name in used:
            signature = tuple(name in k for k in sorted(known, key=sorted)) + tuple(
                name in q for q, _ in free
            )
            groups.setdefault(signature, []).append(name)
    merged = [names for names in groups.values() if len(names) > 1]
    if merged:
        steps.append(
            "attributes that always occur together merged: " + "; ".join(" x ".join(n) for n in merged)
        )
    axes = tuple(
        Axis(tuple(names), prod(domain.shape[domain.axis(n)] for n in names)) for names in groups.values()
    )
    place = {name: at for at, axis in enumerate(axes) for name in axis.names}
    return Reduced(
        domain,
        axes,
        tuple(frozenset(place[n] for n in names) for names in sorted(known, key=sorted)),
        tuple((frozenset(place[n] for n in names), w) for names, w in free),
        tuple(steps),
    )


# Whole margins -----------------------------------------------------------------------------------------------------------


def _change_norm(reduced: Reduced, change: Change, norm: Norm) -> int:
    """Norm (squared for l2) of what a change of reduced cells does to the margins that are asked for."""
    total = 0
    for names, weight in reduced.asked:
        kept = sorted(names)
        sums: dict[tuple[int, ...], int] = {}
        for cell, amount in change.items():
            key = tuple(cell[axis] for axis in kept)
            sums[key] = sums.get(key, 0) + amount
        if norm == "l1":
            total += weight * sum(abs(x) for x in sums.values())
        else:
            total += weight * weight * sum(x * x for x in sums.values())
    return total


def _witness(reduced: Reduced, change: Change) -> Witness:
    """Two neighbouring tables of the domain from a change of reduced cells."""
    return Witness.of_change({reduced.lift(cell): amount for cell, amount in change.items()})


def closed_form(reduced: Reduced, norm: Norm, records: int | None = None) -> Bracket[Witness] | None:
    """Answer from a formula for moves of at most so many records (None: of any number); None when three or more public margins are left, unless one of three is binary, or two have three cells."""
    if not reduced.asked:
        return Bracket(
            0,
            0,
            None,
            "reduction",
            "the public facts determine every number that is asked for",
            reduced.steps,
        )
    if len(reduced.known) == 1:
        return _one_total(reduced, norm)
    if len(reduced.known) == 2:
        return _two_margins(reduced, norm, records)
    if len(reduced.known) == 3 and records is None:
        return _separate_margins(reduced, norm)
    return None


def _one_total(reduced: Reduced, norm: Norm) -> Bracket[Witness]:
    """One public margin splits the table into parts of known total: a record moves inside its part."""
    ones = (1,) * len(reduced.axes)
    change = {(0,) * len(reduced.axes): -1, ones: 1}
    value = _change_norm(reduced, change, norm)
    return Bracket(
        value,
        value,
        _witness(reduced, change),
        "closed form, one public margin",
        "inside a part whose total is public a minimal move takes one record from a cell to another; it changes two "
        "cells of each table that is not public, and the pair shown changes all of them",
        reduced.steps,
    )


def _two_margins(reduced: Reduced, norm: Norm, records: int | None) -> Bracket[Witness]:
    rows, columns = (prod(reduced.shape[a] for a in names) for names in reduced.known)
    half = _half(reduced, records)
    upper = sum(
        (weight if norm == "l1" else weight * weight) * most
        for (_, weight), most in zip(reduced.asked, table_costs(reduced, norm, records), strict=True)
    )
    lower, change = -1, {}
    for walk in _cycles(reduced, half):
        value = _change_norm(reduced, walk, norm)
        if value > lower:
            lower, change = value, walk
        if value == upper:
            break
    return Bracket(
        upper,
        lower,
        _witness(reduced, change) if lower else None,
        "closed form, two public margins" if upper == lower else "bound by two public margins",
        f"a minimal move is a simple cycle in the complete bipartite graph of {rows} x {columns} margin cells, so it has "
        f"at most {2 * half} changes, each of one record; no table changes by more than the cells do, and on one of its cells no more "
        "records meet than have different values of the attributes that it lacks",
        reduced.steps,
    )


def _separate_margins(reduced: Reduced, norm: Norm) -> Bracket[Witness] | None:
    """Three margins without a common attribute, one of two cells or two of three: pairs of records inside cells of the longest margin are swaps between cells of the others."""
    sizes = {names: prod(reduced.shape[a] for a in names) for names in reduced.known}
    first, second, long = sorted(sizes, key=lambda names: (sizes[names], sorted(names)))
    if len(first | second | long) != sum(map(len, sizes)):
        return None
    binary = sizes[first] == 2
    if not binary and (sizes[first], sizes[second]) != (3, 3):
        return None
    pairs = longest_arcs(sizes[second], -1, 1) if binary else LONGEST_SWAPS
    if binary or sizes[long] < len(SWAPS):
        arcs = arc_sequence(min(sizes[second], sizes[long] - 1))
        swaps = [(int(value < 0), int(value > 0), tail, head, times) for tail, head, value, times in arcs]
    else:
        swaps = SWAPS
    change: dict[Codes, int] = {}
    for at, (*places, times) in enumerate(swaps):
        # what is in no public margin differs between added and removed records
        for sign, codes in ((-1, places[::2]), (1, places[1::2])):
            cell = [int(sign > 0)] * len(reduced.axes)
            for names, code in zip((first, second, long), (*codes, at), strict=True):
                axes = sorted(names)
                for axis, part in zip(axes, decode(code, [reduced.shape[a] for a in axes]), strict=True):
                    cell[axis] = part
            change[tuple(cell)] = change.get(tuple(cell), 0) + sign * times
    upper = reduced.value_of(norm, 2 * pairs if norm == "l1" else 2 * pairs * pairs)
    lower = _change_norm(reduced, change, norm)
    beside, arcs_or_swaps, why = (
        (
            "beside a binary one",
            "valued arcs",
            f"each pair is an arc between the {sizes[second]} cells of another, with the value -1, 0 or 1 for the binary one, "
            f"and a sequence of arcs without a smaller zero sum has at most {pairs} of them",
        )
        if binary
        else (
            "of three, three and more values",
            "swaps",
            f"each pair is a swap between the 3 x 3 cells of the two others, and a sequence of swaps without a smaller zero sum has at most {pairs} of them",
        )
    )
    return Bracket(
        upper,
        lower,
        _witness(reduced, change) if lower else None,
        f"closed form, one-way margins {beside}" if upper == lower else f"bound by {arcs_or_swaps}",
        f"records that a move removes and adds are paired inside the {sizes[long]} cells of one margin; {why}",
        reduced.steps,
    )


def _half(reduced: Reduced, records: int | None) -> int:
    """Most records that a cycle of two public margins takes away."""
    most = min(prod(reduced.shape[a] for a in names) for names in reduced.known)
    return most if records is None else min(most, records)


def _cycles(reduced: Reduced, longest: int) -> Iterator[dict[Codes, int]]:
    """Some long cycles of two public margins; which one changes most depends on what is asked for.

    A table that lacks an attribute of a margin changes most where no record that is added meets one that is removed, so that neighbours on the cycle
    should differ on every attribute; an attribute of two values alternates only along cycles of an even number of records.
    """
    left, right = (sorted(names) for names in reduced.known)
    sizes = [[reduced.shape[a] for a in names] for names in (left, right)]
    for half in dict.fromkeys([longest, max(1, longest - longest % 2)]):
        for rows in _orders(sizes[0], half):
            for columns in _orders(sizes[1], half):
                change: dict[Codes, int] = {}
                for at in range(half):
                    # Added and removed records differ on the attributes that are in no public margin.
                    for sign, column in ((1, columns[at]), (-1, columns[at - 1])):
                        cell = [int(sign > 0)] * len(reduced.axes)
                        for axes, codes in ((left, rows[at]), (right, column)):
                            for axis, code in zip(axes, codes, strict=True):
                                cell[axis] = code
                        change[tuple(cell)] = change.get(tuple(cell), 0) + sign
                yield {cell: amount for cell, amount in change.items() if amount}


def _orders(sizes: list[int], number: int) -> Iterator[list[Codes]]:
    """Different combinations of values: the first ones, and ones of which neighbours differ on all attributes."""
    yield [tuple(decode(at, sizes)) for at in range(number)]
    if len(sizes) > 1 and number <= lcm(*sizes):
        yield [tuple(at % size for size in sizes) for at in range(number)]


def table_costs(reduced: Reduced, norm: Norm, records: int | None = None) -> list[int]:
    """The most that one minimal move changes each asked table, weights left out, where one or two public margins are left.

    Parameters
    ----------
    records
        Most records that a move takes away, where it is capped.

    Notes
    -----
    The change of a table of attributes of both margins is a sum of cycles of its own, without cancellation; where it has only two combinations of one
    side, each of these changes four cells by one, so that no odd number of records is taken away. A simple cycle of half-length l takes l records away that have different values of the left attributes, all together, and different ones of the
    right, and adds as many. Records that meet on one cell of a table differ on the left attributes that the table lacks, and on the right ones: at most
    m of them meet, the smaller number of combinations of these. So the squares of how many were removed from each cell add up to at most
    [l / m] m^2 + (l mod m)^2, those of the added ones as well (``docs/explanation/proofs/cubes.md``, Theorem 6).

    Examples
    --------
    >>> domain = Domain({"a": 4, "b": 5, "c": 3})
    >>> asked = CuboidQuery(domain, [["a", "b"], ["c"], ["b", "c"]])
    >>> reduced = reduce_margins(domain, [Cuboid("a"), Cuboid("b")], asked)
    >>> table_costs(reduced, "l1"), table_costs(reduced, "l2")
    ([8, 8, 8], [8, 32, 8])
    """
    if len(reduced.known) == 1:
        return [2] * len(reduced.asked)
    left, right = reduced.known
    half = _half(reduced, records)
    out = []
    for names, _ in reduced.asked:
        if norm == "l1":
            own = min(prod(reduced.shape[a] for a in side & names) for side in (left, right))
            inside = names <= left | right
            out.append(2 * (half - half % 2 if inside and (own == 2 or half == 1) else half))
            continue
        meet = min(half, *(prod(reduced.shape[a] for a in side - names) for side in (left, right)))
        out.append(2 * (half // meet * meet * meet + (half % meet) ** 2))
    return out


def fixed_by_margins(domain: Domain, constraints: Sequence[Constraint]) -> frozenset[str] | None:
    """The attributes of the one public margin that contains all others; None where facts are others, or two margins are left.

    Examples
    --------
    >>> domain = Domain({"a": 2, "b": 3, "c": 1})
    >>> sorted(fixed_by_margins(domain, [Total(), Cuboid("a", "c")]))
    ['a', 'c']
    >>> fixed_by_margins(domain, [Cuboid("a"), Cuboid("b")]) is None
    True
    """
    several = {name for name, size in zip(domain.names, domain.shape, strict=True) if size > 1}
    sets = []
    for constraint in constraints:
        if not isinstance(constraint, (Cuboid, Total)):
            return None
        sets.append(frozenset(constraint.names if isinstance(constraint, Cuboid) else ()))
    largest = max(sets, key=lambda names: (len(names & several), len(names)), default=None)
    if largest is None or any(names & several - largest for names in sets):
        return None
    return largest


# Partly public margins ---------------------------------------------------------------------------------------------------


@dataclass
class _Margin:
    """Public cells of the margin over some attributes; None: all of them."""

    names: tuple[str, ...]
    known: set[Codes] | None


def _codes(domain: Domain, names: tuple[str, ...], of: tuple[str, ...], cell: tuple[object, ...]) -> Codes:
    given = dict(zip(of, cell, strict=True))
    return tuple(domain.code(name, given[name]) for name in names)  # type: ignore[arg-type]


def _read(policy: Policy) -> tuple[list[_Margin], bool] | None:
    domain = policy.domain
    if not isinstance(domain, Domain):
        return None
    total = False
    sides: dict[tuple[str, ...], _Margin] = {}
    single = {name for name, size in zip(domain.names, domain.shape, strict=True) if size == 1}
    for fact in policy.system.needed:
        if isinstance(fact, Total) or (isinstance(fact, Cuboid) and not set(fact.names) - single):
            total = True
            continue
        if not isinstance(fact, (Cuboid, Cells)):
            return None
        of = fact.names if isinstance(fact, Cuboid) else fact.of
        names = tuple(sorted(set(of) - single, key=domain.axis))
        if not names:
            total = True
            continue
        side = sides.setdefault(names, _Margin(names, set()))
        if isinstance(fact, Cuboid):
            side.known = None
        elif side.known is not None:
            side.known |= {_codes(domain, names, fact.of, cell) for cell in fact.cells}
    for side in sides.values():
        if side.known is not None and len(side.known) == prod(
            domain.shape[domain.axis(n)] for n in side.names
        ):
            side.known = None
    return list(sides.values()), total


def _partial(policy: Policy, effort: Effort) -> Bracket[Witness] | None:
    read = _read(policy)
    domain = policy.domain
    if read is None or not isinstance(domain, Domain):
        return None
    sides, total = read
    if not 1 <= len(sides) <= 2:
        return None
    left = sides[0]
    right = sides[1] if len(sides) == 2 else _Margin((), set())
    if not right.names:
        rest = tuple(
            n for n, size in zip(domain.names, domain.shape, strict=True) if n not in left.names and size > 1
        )
        right = _Margin(rest, set())
    shared = tuple(name for name in left.names if name in right.names)
    if shared and total and left.known is not None and right.known is not None:
        return None  # one total over slices that are not known separately couples them
    if len(policy.system.zeros):
        covered = set(left.names) | set(right.names)
        spare = [
            n for n, size in zip(domain.names, domain.shape, strict=True) if size > 1 and n not in covered
        ]
        return None if shared or spare else _with_zeros(policy, domain, left, right, total, effort)
    best = 0, {0: 0}
    for fixed, known_left, known_right in _slices(domain, left, right, shared):
        found = _slice(domain, left, right, fixed, known_left, known_right, total)
        if found[0] > best[0]:
            best = found
    length, change = best
    return Bracket(
        length,
        length,
        Witness.of_change(change) if length else None,
        "closed form, partly public margins",
        "a minimal move is a closed walk in the bipartite graph of margin cells that visits each public one at most "
        "once, the others acting as one free vertex a side (docs/explanation/proofs/two-cuboids.md)",
        (f"slices by the shared attributes {', '.join(shared)} are independent",) if shared else (),
    )


def _with_zeros(
    policy: Policy, domain: Domain, left: _Margin, right: _Margin, total: bool, effort: Effort
) -> Bracket[Witness]:
    """Structural zeros delete edges of the bipartite graph: a longest-cycle problem, solved with proof or bracketed."""
    from policygraph.moves.two_way.forbidden import longest_with_forbidden

    codes = domain.codes(policy.system.zeros)

    def place(names: tuple[str, ...]) -> npt.NDArray[np.int64]:
        at = np.zeros(len(policy.system.zeros), dtype=np.int64)
        for name in names:
            at = at * domain.shape[domain.axis(name)] + codes[domain.axis(name)]
        return at

    sizes = [[domain.shape[domain.axis(n)] for n in side.names] for side in (left, right)]
    masks = [_mask(size, side.known) for size, side in zip(sizes, (left, right), strict=True)]
    bracket = longest_with_forbidden(
        len(masks[0]),
        len(masks[1]),
        masks[0],
        masks[1],
        np.stack([place(left.names), place(right.names)], axis=1),
        total_known=total,
        effort=effort,
    )
    change = {}
    for row, column, sign in bracket.witness or ():
        here = dict.fromkeys(domain.names, 0)
        here.update(zip(left.names, decode(row, sizes[0]), strict=True))
        here.update(zip(right.names, decode(column, sizes[1]), strict=True))
        change[encode([here[name] for name in domain.names], domain.shape)] = int(sign)
    return Bracket(
        int(bracket.upper),
        int(bracket.lower),
        Witness.of_change(change) if change else None,
        bracket.method,
        bracket.reason,
    )


def _slices(
    domain: Domain, left: _Margin, right: _Margin, shared: tuple[str, ...]
) -> Iterator[tuple[Codes, set[Codes] | None, set[Codes] | None]]:
    """Slices with different public cells: those that a public cell names, and one that none names."""
    if not shared:
        yield (), left.known, right.known
        return
    named: dict[Codes, tuple[set[Codes], set[Codes]]] = {}
    for at, side in enumerate((left, right)):
        keep = [side.names.index(name) for name in shared]
        rest = [k for k in range(len(side.names)) if k not in keep]
        for cell in side.known or ():
            pair = named.setdefault(tuple(cell[k] for k in keep), (set(), set()))
            pair[at].add(tuple(cell[k] for k in rest))
    sizes = [domain.shape[domain.axis(name)] for name in shared]
    for key, (one, two) in named.items():
        yield key, None if left.known is None else one, None if right.known is None else two
    if len(named) < prod(sizes):
        yield (
            _unused(sizes, set(named)),
            None if left.known is None else set(),
            None if right.known is None else set(),
        )


def _unused(sizes: list[int], taken: set[Codes]) -> Codes:
    at = 0
    while True:
        codes, rest = [], at
        for size in reversed(sizes):
            rest, code = divmod(rest, size)
            codes.append(code)
        if tuple(reversed(codes)) not in taken:
            return tuple(reversed(codes))
        at += 1


def _slice(
    domain: Domain,
    left: _Margin,
    right: _Margin,
    fixed: Codes,
    known_left: set[Codes] | None,
    known_right: set[Codes] | None,
    total: bool,
) -> tuple[int, dict[int, int]]:
    from policygraph.moves.two_way.closed_form import longest_bipartite_move

    shared = tuple(name for name in left.names if name in right.names)
    own = [tuple(n for n in side.names if n not in shared) for side in (left, right)]
    sizes = [[domain.shape[domain.axis(n)] for n in names] for names in own]
    masks = [_mask(size, known) for size, known in zip(sizes, (known_left, known_right), strict=True)]
    length, walk = longest_bipartite_move(
        len(masks[0]), len(masks[1]), masks[0], masks[1], total_known=total and not shared
    )
    codes = dict.fromkeys(domain.names, 0) | dict(zip(shared, fixed, strict=True))

    def cell(row: int, column: int, extra: str | None = None) -> int:
        here = dict(codes)
        for names, size, code in ((own[0], sizes[0], row), (own[1], sizes[1], column)):
            here.update(zip(names, decode(code, size), strict=True))
        if extra is not None:
            here[extra] = 1
        return encode([here[name] for name in domain.names], domain.shape)

    change = {cell(row, column): int(sign) for row, column, sign in walk}
    spare = [
        name
        for name, size in zip(domain.names, domain.shape, strict=True)
        if size > 1 and name not in left.names and name not in right.names
    ]
    covered = total or masks[0].any() or masks[1].any()
    if spare and covered and length < 2:
        row, column = int(np.argmax(masks[0])), int(np.argmax(masks[1]))
        change = {cell(row, column): -1, cell(row, column, spare[0]): 1}
        length = 2
    return length, change


def _mask(size: list[int], known: set[Codes] | None) -> npt.NDArray[np.bool_]:
    """Which cells of a margin are public."""
    mask = np.full(prod(size), known is None, dtype=bool)
    for codes in known or ():
        mask[encode(codes, size)] = True
    return mask


def encode(codes: Sequence[int], sizes: Sequence[int]) -> int:
    """Index of a cell, as an integer of any size; the last attribute runs fastest."""
    at = 0
    for code, size in zip(codes, sizes, strict=True):
        at = at * size + code
    return at


def decode(index: int, sizes: Sequence[int]) -> list[int]:
    """Positions of the values of a cell, the inverse of :func:`encode`."""
    out = []
    for size in reversed(sizes):
        index, code = divmod(int(index), size)
        out.append(code)
    return out[::-1]


# Rungs -------------------------------------------------------------------------------------------------------------------


def reduced_of(problem: Problem) -> Reduced | None:
    """The reduced problem, where whole margins are public and cuboids are asked for; made once for a problem."""
    if "reduced" not in problem.notes:
        query, policy = problem.query, problem.policy
        made: Reduced | None = None
        if (
            isinstance(policy.domain, Domain)
            and isinstance(query, CuboidQuery)
            and not len(policy.system.zeros)
        ):
            made = reduce_margins(policy.domain, policy.system.needed, query)
        problem.notes["reduced"] = made
    found: Reduced | None = problem.notes["reduced"]
    return found


def whole_margins(problem: Problem) -> Bracket[Witness] | None:
    """Whole margins: a closed form where at most two are left after reduction.

    A minimal move of one margin takes one record away, and is a Markov move; Markov moves of two margins take at most two.
    """
    reduced, policy = reduced_of(problem), problem.policy
    if reduced is None or not reduced.known:
        return None
    caps = [] if policy.at_most_records is None else [policy.at_most_records]
    found = closed_form(reduced, problem.norm, min(caps + [2] * (policy.strength == "markov"), default=None))
    if found is None or (found.exact and (policy.strength != "positive" or len(reduced.known) == 1)):
        return found
    return problem.settle(found)


def beside_one_margin(problem: Problem) -> Bracket[Witness] | None:
    """Interactions, prefixes and ranges beside one public margin: a record changes on any attributes outside the margin.

    Interactions do not change monotonely, so that all sets of such attributes count.
    """
    query, policy, norm = problem.query, problem.policy, problem.norm
    if not isinstance(query, (BlockQuery, ProductQuery)) or len(policy.system.zeros):
        return None
    fixed = fixed_by_margins(query.domain, policy.system.needed)
    if fixed is None:
        return None
    used = {name for names in query.sets for name in names}
    free = [
        name
        for name, size in zip(query.domain.names, query.domain.shape, strict=True)
        if size > 1 and name in used and name not in fixed
    ]
    if isinstance(query, ProductQuery):
        if 1 << len(free) > MOST_SETS:
            return None
        sets = [frozenset(some) for size in range(1, len(free) + 1) for some in combinations(free, size)]
        found = over_sets(query, sets, norm) if sets else None
        return None if found is None else problem.settle(found)
    steps = Steps(tuple(free), len(free))
    most = largest_difference(query, steps, norm)
    if not most.upper:
        return problem.settle(Bracket(0, 0, None, "closed form, one public margin", FOLLOW))
    reason = (
        "inside a part whose total is public a minimal move takes one record from a cell to another, which differs on attributes "
        f"outside the public margin; of {brief(steps.number)} sets of these, {{{', '.join(n for n in free if n in most.differing)}}} "
        + (
            "changes most"
            if most.exact
            else "was found to change most; attributes were eliminated one by one for the bound"
        )
        + (f" ({most.how})" if most.exact and most.how else "")
    )
    return problem.settle(
        Bracket(
            most.upper,
            most.lower,
            Witness.of_change({0: -1, _at_one(query.domain, most.differing): 1}),
            "closed form, one public margin" if most.exact else f"bound by {most.how}",
            reason,
        )
    )


def _at_one(domain: Domain, names: frozenset[str]) -> int:
    """The cell with the second value of some attributes and the first one of the others."""
    return encode([int(name in names) for name in domain.names], list(domain.shape))


def beside_margins(problem: Problem) -> Bracket[Witness] | None:
    """Interactions beside public facts: records that a move removes and adds are paired so that the pairs agree on a public margin.

    A move of two public margins has few pairs, and one with a cap, or a Markov move, as well; each pair changes the answer by what one record can change
    (``docs/explanation/proofs/interactions.md``, Theorem 3).
    """
    query, policy, norm = problem.query, problem.policy, problem.norm
    if not isinstance(query, BlockQuery):
        return None
    shape = dict(zip(query.domain.names, query.domain.shape, strict=True))
    several = frozenset(name for name, size in shape.items() if size > 1)
    whole = [fact for fact in policy.constraints if isinstance(fact, (Cuboid, Total))]
    named = {frozenset(fact.names if isinstance(fact, Cuboid) else ()) & several for fact in whole}
    margins = sorted((one for one in named if not any(one < other for other in named)), key=sorted)
    left = [
        (names, weight)
        for names, weight in zip(query.sets, query.weights, strict=True)
        if not any(margin.issuperset(names) for margin in margins)
    ]
    if not left:
        return problem.settle(Bracket(0, 0, None, "closed form, public margins", FOLLOW))
    caps = [] if policy.at_most_records is None else [policy.at_most_records]
    caps += [2 if margins else 4] * (policy.strength == "markov")
    # Structural zeros only rule moves out.
    two = len(margins) == 2 and all(
        isinstance(fact, (Cuboid, Total, StructuralZero)) for fact in policy.constraints
    )
    if two:
        own = [margins[0] - margins[1], margins[1] - margins[0]]
        caps.append(min(prod(shape[name] for name in names) for names in own))
    if not caps:
        return None
    rest, pairs = BlockQuery(query.domain, *zip(*left, strict=True)), min(caps)
    each = min(
        largest_difference(rest, Steps(free := _outside(query.domain, margin), len(free)), norm).upper
        for margin in margins or [frozenset()]
    )
    if not margins:
        each = max(each, int(rest.column_norms(np.zeros(1, dtype=np.int64), norm)[0]))
    upper = each * (pairs if norm == "l1" else pairs * pairs)
    lower, witness = 0, None
    if two and not len(policy.system.zeros):
        witness = Witness.of_change(_cycle(rest, margins[0], margins[1], pairs, norm))
        lower = rest.change_norm(witness.change, norm) if witness.change else 0
    reason = (
        f"a move removes at most {pairs} records and adds at most as many; they can be paired so that each pair agrees on a public margin, "
        f"and a pair changes what the margins leave open by at most {each}"
        if margins
        else f"a move removes at most {pairs} records and adds at most as many, and one of them, or a pair, changes the answer by at most {each}"
    )
    return problem.settle(
        Bracket(upper, lower, witness if lower else None, "bound by pairs of records", reason)
    )


def _outside(domain: Domain, margin: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in domain.names if name not in margin)


def _cycle(
    query: BlockQuery, left: frozenset[str], right: frozenset[str], pairs: int, norm: Norm
) -> dict[int, int]:
    """A minimal move beside two margins: a closed walk through different values of each, all whose records change alike on the other attributes."""
    domain = query.domain
    outside = tuple(name for name in domain.names if name not in left and name not in right)
    differing = largest_difference(query, Steps(outside, len(outside)), norm).differing
    sides = [[n for n in domain.names if n in left - right], [n for n in domain.names if n in right - left]]

    def cell(first: int, second: int, names: frozenset[str]) -> int:
        codes = {name: int(name in names) for name in domain.names}
        for side, value in zip(sides, (first, second), strict=True):
            sizes = [domain.shape[domain.axis(name)] for name in side]
            codes.update(zip(side, decode(value, sizes), strict=True))
        return encode([codes[name] for name in domain.names], list(domain.shape))

    change: dict[int, int] = {}
    for at in range(pairs):
        for where, sign in ((cell(at, at, frozenset()), -1), (cell(at, (at + 1) % pairs, differing), 1)):
            change[where] = change.get(where, 0) + sign
    return {where: amount for where, amount in change.items() if amount}


def partial_margins(problem: Problem) -> Bracket[Witness] | None:
    """All cells where cells of at most two margins are public: a closed form, or a longest cycle with structural zeros.

    Both norms have the same value: minimal moves have entries +1 and -1, so that the square of the l2 norm is the l1 norm.
    """
    query = problem.query
    if not isinstance(query, CuboidQuery) or not query.is_identity or reduced_of(problem) is not None:
        return None
    # Of weaker neighbours the structure only gives a bound, which must not take the work of their own search.
    effort = problem.effort if problem.whole else problem.effort.at_most(STRUCTURE)
    found = _partial(problem.policy, effort)
    return None if found is None else problem.settle(found)
