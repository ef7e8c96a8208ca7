"""Minimal zero-sum multisets of integer vectors: their listing, and proved bounds on their length.

Owns :func:`minimal_sums` (any differences), :func:`simple_cycles` (affinely independent classes), :func:`length_bound` and the sharper
:func:`block_bound`. Theorems: ``docs/explanation/proofs/blowfish-constraints.md``, sections 3 and 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations, pairwise, permutations
from math import isqrt, prod

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.linalg import independent_rows
from policygraph.moves.arcs import longest_arcs
from policygraph.moves.blowfish.problem import Vector
from policygraph.moves.graver.basis import IncompleteBasisError, graver_basis
from policygraph.moves.graver.symmetries import find_symmetries

__all__ = [
    "affinely_independent",
    "block_bound",
    "differences",
    "length_bound",
    "minimal_sums",
    "simple_cycles",
]


def differences(points: Sequence[Vector]) -> list[Vector]:
    """List the distinct differences of distinct points.

    Examples
    --------
    >>> differences([(0,), (1,)])
    [(-1,), (1,)]
    """
    return sorted({tuple(b - a for a, b in zip(p, q)) for p in points for q in points if p != q})


def affinely_independent(points: Sequence[Vector]) -> bool:
    """Say whether no point is an affine combination of the others.

    Examples
    --------
    >>> affinely_independent([(0, 0), (1, 0), (0, 1)]), affinely_independent([(0,), (1,), (2,)])
    (True, False)
    """
    return len(independent_rows([(1, *p) for p in points])) == len(points)


def simple_cycles(size: int, longest: int | None = None) -> Iterator[tuple[tuple[int, int], ...]]:
    """List the directed simple cycles of the complete digraph, shortest first.

    Examples
    --------
    >>> list(simple_cycles(3))
    [((0, 1), (1, 0)), ((0, 2), (2, 0)), ((1, 2), (2, 1)), ((0, 1), (1, 2), (2, 0)), ((0, 2), (2, 1), (1, 0))]
    """
    for length in range(2, min(size, size if longest is None else longest) + 1):
        for chosen in combinations(range(size), length):
            for rest in permutations(chosen[1:]):
                walk = (chosen[0], *rest, chosen[0])
                yield tuple(pairwise(walk))


def minimal_sums(
    vectors: Sequence[Vector], *, longest: int | None = None, effort: Effort | None = None
) -> Iterator[tuple[int, ...]]:
    """List the multisets of vectors with sum zero and no non-empty proper part of sum zero.

    Parameters
    ----------
    vectors
        Distinct non-zero integer vectors.
    longest
        List only multisets of at most this many vectors.
    effort
        Work that may be spent; None for no end.

    Yields
    ------
    tuple of int
        Indices into ``vectors``, sorted. Lengths come in growing bands, so a listing that is broken off has
        been complete up to the last band.

    Raises
    ------
    RefusedError
        When the effort is spent before the list is complete (code ``blowfish.deadline``).

    Examples
    --------
    >>> list(minimal_sums([(-1,), (1,), (2,)]))
    [(0, 0, 2), (0, 1)]

    Notes
    -----
    A part with sum s that is not yet zero needs a further vector v with <s, v> < 0, because what is missing
    sums to -s (Contejean and Devie 1994). Branching on these v in turn, each one forbidden to the branches
    after its own, meets every multiset once. A branch dies when a non-empty part sums to zero, when the vectors
    still allowed all have the wrong sign in a coordinate, or when the length that is left cannot undo s. It is
    finite: :func:`length_bound` bounds the length of every minimal multiset.
    """
    if not vectors:
        return
    work = Effort.of(effort)
    limit = length_bound(vectors)[0]
    limit = limit if longest is None else min(longest, limit)
    done, band = 1, min(4, limit)
    while True:
        search = _MinimalSums(vectors, band, work)
        for start in range(len(vectors)):
            for found in search.run(start):
                if len(found) > done:
                    yield found
        if not search.cut or band >= limit:
            return
        done, band = band, min(limit, band + max(2, band // 2))


class _MinimalSums:
    """One depth-limited run of the branching described in :func:`minimal_sums`."""

    def __init__(self, vectors: Sequence[Vector], band: int, effort: Effort) -> None:
        self.vectors, self.band, self.effort = vectors, band, effort
        exact = np.array(vectors, dtype=object)
        most = max(max(map(abs, v)) for v in vectors)
        self.exact = exact.astype(np.int64) if most**2 * len(vectors[0]) < 1 << 62 else exact
        self.gram: dict[int, list[int]] = {}
        dims = range(len(vectors[0]))
        self.width = [max(abs(v[i]) for v in vectors) for i in dims]
        self.codes = []
        for v in vectors:
            code = 0
            for i in dims:
                code = code * (2 * band * self.width[i] + 1) + v[i]
            self.codes.append(code)
        self.down = [sum(1 << j for j, v in enumerate(vectors) if v[i] < 0) for i in dims]
        self.up = [sum(1 << j for j, v in enumerate(vectors) if v[i] > 0) for i in dims]
        self.cut = False
        self.nodes = self.cost = 0
        effort.spend(10 + len(vectors) * len(dims))

    def _dots(self, j: int) -> list[int]:
        """Inner products of a vector with all; thousands of vectors have too many to make them all at once."""
        if j not in self.gram:
            self.gram[j] = (self.exact @ self.exact[j]).tolist()
        return self.gram[j]

    def run(self, start: int) -> Iterator[tuple[int, ...]]:
        """List the minimal multisets whose least index is ``start``."""
        allowed = ((1 << len(self.vectors)) - 1) >> start << start
        code = self.codes[start]
        yield from self._grow([start], self._dots(start), self.vectors[start], {code}, code, allowed)

    def _grow(
        self, chosen: list[int], dots: list[int], total: Vector, sums: set[int], code: int, allowed: int
    ) -> Iterator[tuple[int, ...]]:
        self.nodes += 1
        self.cost += 4 + (2 * len(dots) + len(sums)) // 8
        if self.nodes % 16 == 0:
            self.effort.spend(self.cost)
            self.cost = 0
            if self.effort.done:
                raise RefusedError(
                    f"Not all minimal multisets were listed: {self.effort.ended_by}.",
                    code="blowfish.deadline",
                )
        left = self.band - len(chosen)
        for i, value in enumerate(total):
            if value and not allowed & (self.down[i] if value > 0 else self.up[i]):
                return
            if abs(value) > left * self.width[i]:
                self.cut = True
                return
        # the steepest steps first: they close soon, and are forbidden to the many branches after them
        for _, j in sorted((dots[j], j) for j in range(len(dots)) if dots[j] < 0 and allowed >> j & 1):
            step = self.codes[j]
            if step == -code:
                yield tuple(sorted([*chosen, j]))
            elif -step not in sums:
                if left == 1:
                    self.cut = True
                else:
                    wider = sums | {s + step for s in sums}
                    wider.add(step)
                    yield from self._grow(
                        [*chosen, j],
                        [a + b for a, b in zip(dots, self._dots(j))],
                        tuple(a + b for a, b in zip(total, self.vectors[j])),
                        wider,
                        code + step,
                        allowed,
                    )
            allowed &= ~(1 << j)


def length_bound(vectors: Sequence[Vector]) -> tuple[int, str]:
    """Bound the length of every minimal zero-sum multiset of vectors, with the name of the argument.

    Parameters
    ----------
    vectors
        Non-zero integer vectors.

    Returns
    -------
    tuple of int and str
        The least of the proved bounds, and which one it is.

    Examples
    --------
    >>> length_bound([(-1,), (1,), (2,)])
    (3, 'one coordinate after the other')
    >>> length_bound(differences([(1, 0, 0), (0, 1, 0), (0, 0, 1)]))
    (3, 'affinely independent classes')

    Notes
    -----
    Four bounds, all proved in ``docs/explanation/proofs/blowfish-constraints.md``: (i) one coordinate after the other
    (blocks that vanish in the first coordinate have length at most its width; go on with the block sums);
    (ii) Steinitz: an order exists whose partial sums, all different, stay within d times the unit ball;
    (iii) circuits: a minimal multiset is a sum of at most N - d circuits with coefficients at most 1;
    (iv) differences that are the arcs of a graph on affinely independent points: simple cycles, and with one more row
    the valued arcs of ``docs/explanation/proofs/valued-arcs.md``.
    """
    if not vectors:
        return 1, "no differences"
    rows = sorted(zip(*vectors), key=lambda row: max(row) - min(row))
    kept = [rows[i] for i in independent_rows(rows)]
    d = len(kept)
    widths = [max(map(abs, row)) for row in kept]
    options = [
        (_coordinatewise(kept, 1), "one coordinate after the other"),
        (prod(2 * d * k + 1 for k in widths), "Steinitz"),
    ]
    half = {max(v, tuple(-a for a in v)) for v in vectors}
    minor = isqrt(d**d * prod(k * k for k in widths))
    options.append((max(2, (len(half) - d) * (d + 1) * minor), "circuits"))
    options.extend((bound, "affinely independent classes") for bound in _groups(vectors))
    return min(options)


def _coordinatewise(rows: Sequence[Sequence[int]], length: int) -> int:
    """Bound (i) for blocks of at most ``length`` vectors: integers in [-a, b] give blocks of at most a + b."""
    for row in rows:
        length *= max(1, length * (max(0, max(row)) + max(0, -min(row))))
    return length


def _groups(vectors: Sequence[Vector]) -> Iterator[int]:
    """Bound (iv): runs of rows that make the vectors arcs of a graph, with one more row as values, the other rows one after the other."""
    dims = len(vectors[0])
    for low in range(dims):
        for high in range(low + 1, min(dims, low + 16) + 1):
            points = _graph_of(sorted({v[low:high] for v in vectors if any(v[low:high])}))
            if points:
                rows = [[v[i] for v in vectors] for i in range(low, high)]
                rest = [[v[i] for v in vectors] for i in range(dims) if not low <= i < high]
                rest.sort(key=lambda row: max(row) - min(row))
                kept = [i - len(rows) for i in independent_rows(rows + rest) if i >= len(rows)]
                left = [rest[i] for i in kept]
                first = (
                    longest_arcs(points, min(left[0], default=0), max(left[0], default=0)) if left else points
                )
                yield _coordinatewise(left[1:], first)


def _graph_of(vectors: Sequence[Vector]) -> int:
    """Count the points when the vectors are all differences of d + 1 affinely independent points, else 0."""
    if not vectors:
        return 0
    d = len(independent_rows(list(zip(*vectors))))
    if len(set(vectors)) != d * (d + 1):
        return 0
    known = set(vectors)
    base = [vectors[0]]
    for v in vectors[1:]:
        if all(tuple(a - b for a, b in zip(v, w)) in known for w in base):
            base.append(v)
    if len(base) != d or len(independent_rows(base)) != d:
        return 0
    points = [tuple(0 for _ in base[0]), *base]
    return d + 1 if set(differences(points)) == known else 0


_MOST_VECTORS = 32
_MOST_LISTED = 24


def block_bound(vectors: Sequence[Vector], effort: Effort) -> tuple[int, str]:
    """Bound the length of every minimal zero-sum multiset, as sharply as the effort allows.

    Parameters
    ----------
    vectors
        Distinct non-zero integer vectors.
    effort
        Work that may be spent; splits of the rows that do not end with it are left out.

    Returns
    -------
    tuple of int and str
        The bound and the name of the argument; never worse than
        :func:`~policygraph.moves.blowfish.minimal.length_bound`.

    Examples
    --------
    Differences of a 2 x 3 table with both margins known: the longest minimal multiset has 8 vectors, and the bound is sharp.

    >>> from policygraph.moves.blowfish.minimal import differences
    >>> cells = [(a, int(b == 0), int(b == 1)) for a in range(2) for b in range(3)]
    >>> length_bound(differences(cells))[0], block_bound(differences(cells), Effort())[0]
    (8, 8)

    Notes
    -----
    Split the rows in two sets. A zero-sum multiset falls apart into blocks that are minimal for the first set of
    rows; the block sums in the other rows form a minimal zero-sum multiset again. So the length is at most the
    largest total of block lengths over the minimal zero-sum multisets of block sums, where a block sum counts with
    its longest block. Where there are few vectors up to sign, all minimal multisets are listed as the minimal moves of the matrix of these vectors.
    """
    best = length_bound(vectors)
    half = sorted({max(v, tuple(-a for a in v)) for v in vectors})
    if len(half) <= _MOST_LISTED and best[0] > len(half[0]) + 1:
        matrix = np.array(half, dtype=np.int64).T
        with suppress(IncompleteBasisError):
            turns = find_symmetries(matrix)
            moves = graver_basis(matrix, effort=effort.share(4, 5), symmetries=turns)
            # a vector and its opposite are a minimal multiset as well; the matrix has one column for both
            longest = max(2, int(np.abs(moves).sum(axis=1).max(initial=0)))
            if longest <= best[0]:
                return longest, "all of them listed, up to sign"
    for rows in _splits(vectors):
        if effort.done:
            break
        try:
            found = _split_bound(vectors, rows, effort.share(3, 10), best[0])
        except RefusedError:
            continue
        if found < best[0]:
            best = found, "blocks"
    return best


def _splits(vectors: Sequence[Vector]) -> Iterator[range]:
    """Runs of rows, those that leave the least to the second listing first."""
    dims = len(vectors[0])
    runs = [range(a, b) for a in range(dims) for b in range(a + 1, dims + 1) if b - a < dims]
    counted = [(len({tuple(v[i] for i in run) for v in vectors}), -run.start, run) for run in runs]
    for size, _, run in sorted(counted, key=lambda item: item[:2], reverse=True):
        if 1 < size <= _MOST_VECTORS:
            yield run


def _split_bound(vectors: Sequence[Vector], rows: range, effort: Effort, useful: int) -> int:
    """The bound for one split; gives up early when it cannot be below ``useful``."""
    others = [i for i in range(len(vectors[0])) if i not in rows]
    fibres: dict[Vector, set[Vector]] = {}
    for v in vectors:
        fibres.setdefault(tuple(v[i] for i in rows), set()).add(tuple(v[i] for i in others))
    longest = dict.fromkeys(fibres.pop((0,) * len(rows), set()), 1)
    steps = sorted(fibres)
    for chosen in minimal_sums(steps, effort=effort):
        sums: set[Vector] = {(0,) * len(others)}
        if effort.done:
            raise RefusedError(f"Not all blocks were listed: {effort.ended_by}.", code="blowfish.deadline")
        for j in chosen:
            effort.spend(1 + len(sums) * len(fibres[steps[j]]))
            sums = {tuple(a + b for a, b in zip(s, f)) for s in sums for f in fibres[steps[j]]}
        for total in sums:
            longest[total] = max(longest.get(total, 0), len(chosen))
    best = longest.pop((0,) * len(others), 0)
    blocks = sorted(longest)
    if len(blocks) > 8 * _MOST_VECTORS:
        return useful
    for chosen in minimal_sums(blocks, effort=effort):
        best = max(best, sum(longest[blocks[j]] for j in chosen))
        if best >= useful:
            return useful
    return best
