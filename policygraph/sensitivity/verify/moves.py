"""Minimal moves by the plainest completion procedure, and bounds over all of them, on plain integers. Owns :func:`naive_moves`, :class:`Kinds`.

Pottier's algorithm in pure Python on integer rows. Cells with equal public sums are one class, and those with equal answers as well one kind:
minimal moves are listed over classes, their records then put into kinds in every way. Shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import combinations_with_replacement, product
from math import comb, prod

Vector = tuple[int, ...]


STEPS = 15_000_000
"""The procedure is quadratic and worse: after so many comparisons of two vectors it gives up."""
Table = dict[int, int]
CLASSES = 16
"""Up to so many classes of cells with different public sums the minimal moves are listed."""
COMPARED = 4_000_000
"""Most comparisons of two vectors for listing them."""
LIFTS = 200_000
"""Most ways to put the records of the minimal moves into kinds of cells."""
ELIMINATION = 3_000_000
"""Most steps for showing with fractions that a query is constant."""
MULTISETS = 20_000
"""Most partial sets of record changes that are looked at."""
Part = tuple[tuple[int, int, int], Table]
"""Class, kind and amount of some records, and the cells they are put into."""


def naive_moves(rows: list[list[int]], width: int, most: int | None = None) -> list[Vector] | None:
    """List the conformally minimal integer vectors of the kernel of some rows, both signs; None when that takes too many steps.

    Examples
    --------
    >>> sorted(naive_moves([[1, 1]], 2))
    [(-1, 1), (1, -1)]

    Notes
    -----
    A set of kernel vectors that spans the kernel and is closed under sign holds all minimal ones as soon as every sum of two of
    them reduces to zero by the set (Pottier 1996). A sum without cancellation reduces at once, and a pair and its opposite
    reduce alike, so that these are not looked at. Short sums come first.
    """
    known: list[Vector] = []
    queue: list[tuple[int, Vector]] = []
    steps = 0

    def add(vector: Vector) -> None:
        for other in known:
            for one in (other, tuple(-x for x in other)):
                if any(a * b < 0 for a, b in zip(vector, one, strict=True)):
                    made = tuple(a + b for a, b in zip(vector, one, strict=True))
                    heappush(queue, (sum(map(abs, made)), made))
        known.append(vector)

    for vector in _kernel(rows, width):
        add(tuple(vector))
        steps += 2 * len(known)
    while queue:
        rest = heappop(queue)[1]
        while any(rest):
            steps += 2 * len(known)
            if steps > (STEPS if most is None else most):
                return None
            part = next((h for g in known for h in (g, _opposite(g)) if _below(h, rest)), None)
            if part is None:
                add(rest)
                break
            rest = tuple(a - b for a, b in zip(rest, part, strict=True))
    both = [h for g in known for h in (g, _opposite(g))]
    return [g for g in both if not any(h != g and _below(h, g) for h in both)]


def _opposite(g: Vector) -> Vector:
    return tuple(-x for x in g)


def _below(h: Vector, g: Vector) -> bool:
    return all(0 <= a <= b or b <= a <= 0 for a, b in zip(h, g, strict=True))


def _kernel(rows: list[list[int]], width: int) -> list[list[int]]:
    """Integer kernel by unimodular column operations."""
    columns = [[row[j] for row in rows] + [int(i == j) for i in range(width)] for j in range(width)]
    start = 0
    for r in range(len(rows)):
        while True:
            live = [j for j in range(start, width) if columns[j][r]]
            if len(live) <= 1:
                break
            pivot = min(live, key=lambda j: abs(columns[j][r]))
            for j in live:
                if j != pivot:
                    times = columns[j][r] // columns[pivot][r]
                    columns[j] = [a - times * b for a, b in zip(columns[j], columns[pivot], strict=True)]
        if live:
            columns[start], columns[live[0]] = columns[live[0]], columns[start]
            start += 1
    return [column[len(rows) :] for column in columns[start:]]


@dataclass(frozen=True)
class Kinds:
    """Cells by their public sums and their answers.

    Attributes
    ----------
    sums
        The public sums of a record, for each class.
    cells
        For each class, the cells of each of its kinds.
    answers
        For each class, what a record of each kind adds to the answers.
    """

    sums: tuple[Vector, ...]
    cells: tuple[tuple[tuple[int, ...], ...], ...]
    answers: tuple[tuple[tuple[tuple[int, int], ...], ...], ...]

    @classmethod
    def of(cls, sums: dict[int, Vector], answers: dict[int, tuple[tuple[int, int], ...]]) -> Kinds:
        """Group cells, given their public sums and their answers."""
        classes: dict[Vector, dict[tuple[tuple[int, int], ...], list[int]]] = {}
        for cell, vector in sums.items():
            classes.setdefault(vector, {}).setdefault(answers[cell], []).append(cell)
        return cls(
            tuple(classes),
            tuple(tuple(tuple(cells) for cells in kinds.values()) for kinds in classes.values()),
            tuple(tuple(kinds) for kinds in classes.values()),
        )


def are_constant(kinds: Kinds, *, total: bool) -> bool | None:
    """Whether every answer is a combination of the public sums (and of the total); None when that is too long to show.

    Examples
    --------
    >>> kinds = Kinds.of({0: (1,), 1: (1,), 2: (0,)}, {0: ((0, 1),), 1: ((0, 1),), 2: ()})
    >>> are_constant(kinds, total=False)
    True
    """
    places = [(c, k) for c, group in enumerate(kinds.cells) for k in range(len(group))]
    rows = sorted({row for group in kinds.answers for answer in group for row, _ in answer})
    facts = [list(row) for row in zip(*(kinds.sums[c] for c, _ in places), strict=True)]
    if total:
        facts.append([1] * len(places))
    if (len(facts) + len(rows)) * len(facts) * len(places) > ELIMINATION:
        return None
    asked = [[dict(kinds.answers[c][k]).get(row, 0) for c, k in places] for row in rows]
    echelon: list[tuple[int, list[Fraction]]] = []
    for line in facts:
        rest = _reduced(line, echelon)
        lead = next((at for at, x in enumerate(rest) if x), None)
        if lead is not None:
            echelon.append((lead, rest))
    return not any(any(_reduced(line, echelon)) for line in asked)


def _reduced(line: Sequence[int], echelon: list[tuple[int, list[Fraction]]]) -> list[Fraction]:
    rest = [Fraction(x) for x in line]
    for place, base in echelon:
        if rest[place]:
            factor = rest[place] / base[place]
            rest = [a - factor * b for a, b in zip(rest, base, strict=True)]
    return rest


# Induced neighbours --------------------------------------------------------------------------------------------------------


def class_moves(kinds: Kinds) -> list[Vector] | None:
    """The minimal moves over classes, both signs; None when they are not listed here.

    Two records of one class against each other are minimal by themselves, and so is one record without public sums; these
    are not in the list. Every other minimal move has one sign in a class, and its records there may be of any kind.
    """
    counted = [c for c, sums in enumerate(kinds.sums) if any(sums)]
    if len(counted) > CLASSES:
        return None
    rows = [list(row) for row in zip(*(kinds.sums[c] for c in counted), strict=True)]
    found = naive_moves(rows, len(counted), COMPARED)
    if found is None:
        return None
    out = []
    for move in found:
        wide = [0] * len(kinds.sums)
        for at, amount in zip(counted, move, strict=True):
            wide[at] = amount
        out.append(tuple(wide))
    return out


def largest_of_classes(
    kinds: Kinds, moves: Iterable[Vector], norm: str, capacity: int | None, allowed: Callable[[Table], bool]
) -> int | None:
    """Largest answer over all minimal moves that are allowed; None when the kinds can be chosen in too many ways.

    Parameters
    ----------
    kinds, moves
        The cells, and the result of :func:`class_moves`.
    norm
        ``l1`` or ``l2`` (squared).
    capacity
        Most records of a cell.
    allowed
        Whether a move, as a change of cells, counts (the cap, the Markov strength).
    """
    best, lifts = 0, 0
    try:
        for change in _all_moves(kinds, moves, capacity):
            lifts += 1
            if lifts > LIFTS:
                return None
            cells = {cell: x for part in change for cell, x in part[1].items()}
            value = _norm(((kinds.answers[c][k], x) for (c, k, x), _ in change), norm)
            if value > best and allowed(cells):
                best = value
    except OverflowError:
        return None
    return best


def largest_of_cells(
    kinds: Kinds, moves: Iterable[Vector], norm: str, capacity: int | None, allowed: Callable[[Table], bool]
) -> int:
    """The same for the table of all cells, where it only matters how many records share a cell."""
    best = 0
    for c, sums in enumerate(kinds.sums):
        cells = [cell for group in kinds.cells[c] for cell in group]
        if not any(sums):
            best = max(best, int(allowed({cells[0]: 1})))
        elif len(cells) > 1 and allowed({cells[0]: 1, cells[1]: -1}):
            best = max(best, 2)
    for move in moves:
        for piled in (True, False):
            table: Table = {}
            for c, amount in enumerate(move):
                cells = [cell for group in kinds.cells[c] for cell in group]
                if capacity is not None and abs(amount) > capacity * len(cells):
                    break
                table.update(_over(cells, amount, capacity if piled else None, piled=piled))
            else:
                value = sum(abs(x) if norm == "l1" else x * x for x in table.values())
                if value > best and allowed(table):
                    best = value
    return best


def _over(cells: list[int], amount: int, capacity: int | None, *, piled: bool) -> Table:
    """Records of one class in as few cells as possible, or in as many."""
    sign, left, out = (1 if amount > 0 else -1), abs(amount), {}
    if piled:
        for cell in cells:
            here = left if capacity is None else min(left, capacity)
            out[cell], left = sign * here, left - here
    else:
        each, more = divmod(left, len(cells))
        out = {cell: sign * (each + (at < more)) for at, cell in enumerate(cells)}
    return {cell: x for cell, x in out.items() if x}


def _all_moves(kinds: Kinds, moves: Iterable[Vector], capacity: int | None) -> Iterator[list[Part]]:
    for c, sums in enumerate(kinds.sums):
        groups = kinds.cells[c]
        if not any(sums):
            for k in range(len(groups)):
                yield [_put(kinds, c, k, 1)]
            continue
        for k in range(len(groups)):
            for other in range(k):
                yield [_put(kinds, c, k, 1), _put(kinds, c, other, -1)]
    for move in moves:
        yield from _lifted(kinds, move, capacity)


def _lifted(kinds: Kinds, move: Vector, capacity: int | None) -> Iterator[list[Part]]:
    choices: list[list[list[Part]]] = []
    for c, amount in enumerate(move):
        if not amount:
            continue
        sign = 1 if amount > 0 else -1
        options = []
        if comb(len(kinds.cells[c]) + abs(amount) - 1, abs(amount)) > LIFTS:
            raise OverflowError
        for chosen in combinations_with_replacement(range(len(kinds.cells[c])), abs(amount)):
            numbers = {k: chosen.count(k) for k in set(chosen)}
            if capacity is None or all(n <= capacity * len(kinds.cells[c][k]) for k, n in numbers.items()):
                options.append([_put(kinds, c, k, sign * n) for k, n in numbers.items()])
        choices.append(options)
    if prod(map(len, choices)) > LIFTS:
        raise OverflowError
    for parts in product(*choices):
        yield [part for some in parts for part in some]


def _put(kinds: Kinds, c: int, k: int, amount: int) -> Part:
    """Spread records over the cells of a kind, as evenly as possible."""
    cells = kinds.cells[c][k]
    each, more = divmod(abs(amount), len(cells))
    sign = 1 if amount > 0 else -1
    table = {cell: sign * (each + (at < more)) for at, cell in enumerate(cells[: abs(amount)])}
    return (c, k, amount), {cell: x for cell, x in table.items() if x}


def _norm(parts: Iterable[tuple[tuple[tuple[int, int], ...], int]], norm: str) -> int:
    total: dict[int, int] = {}
    for answer, amount in parts:
        for row, entry in answer:
            total[row] = total.get(row, 0) + entry * amount
    return sum(abs(x) if norm == "l1" else x * x for x in total.values())


# Records that change together ------------------------------------------------------------------------------------------------


def minimal_multisets(steps: Sequence[Vector]) -> list[tuple[Vector, ...]] | None:
    """The multisets of steps that sum to zero and have no such part; None when they are too many.

    Grown step by step: what is missing of one sums to the opposite of what is there, so that some missing step points against
    it (a negative scalar product).

    Examples
    --------
    >>> minimal_multisets([(1,), (-1,), (-2,)])
    [((-1,), (1,)), ((-2,), (1,), (1,))]
    """
    found: list[tuple[Vector, ...]] = []
    level: dict[tuple[Vector, ...], frozenset[Vector]] = {(s,): frozenset([s]) for s in steps}
    seen = 0
    while level:
        seen += len(level)
        if seen > MULTISETS:
            return None
        grown: dict[tuple[Vector, ...], frozenset[Vector]] = {}
        done: dict[tuple[Vector, ...], None] = {}
        for chosen, sums in level.items():
            total = tuple(map(sum, zip(*chosen, strict=True)))
            for step in steps:
                if sum(a * b for a, b in zip(total, step, strict=True)) >= 0:
                    continue
                wider = tuple(sorted([*chosen, step]))
                opposite = tuple(-x for x in step)
                if total == opposite:
                    done[wider] = None
                elif opposite not in sums and wider not in grown:
                    more = {tuple(a + b for a, b in zip(s, step, strict=True)) for s in sums}
                    grown[wider] = sums | more | {step}
        found += done
        level = grown
    return found
