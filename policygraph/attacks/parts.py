"""The parts of a linear reconstruction that have nothing to do with each other. Owns :class:`Parts`.

Cells whose value a single public sum states are taken out, cells that no sum and no answer tells apart are taken together, and the others fall into parts that share no sum and no
answer. Each part is solved by itself, and parts that look alike are solved once. A part is solved from the side of its unknowns (a basis of the changes that keep the facts), or, where
every cell has an answer of its own, from the side of its sums, whichever is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.moves._compiled_order import substitute, triangular_order

__all__ = ["Parts"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MOST_ENTRIES = 50_000_000
"""Most numbers of cells times unknowns of one part, which are held at once."""
MOST_UNKNOWNS = 4_000
"""Most unknowns, or sums, of one part whose joint information is inverted."""
FEW_CELLS = 2_000
"""Parts of fewer cells are solved from the side of their unknowns."""
CHUNK = 4_000_000
"""Numbers of a product that are held at once."""
PASSES = 8
"""How often cells that one sum determines are taken out of the other sums; a part's own order finds the rest."""
ROUNDING = 1e-12
"""Entries below this share of the largest are rounding errors."""
SINGULAR = 1e-10
"""Singular values below this share of the largest count as none: there the answers say nothing."""
DEPENDENT = 1e-11
"""Eigenvalues of scaled sums below this share of the largest: sums that follow from others."""
BLIND = 1e-8
"""A cell of which a larger share is unseen cannot be estimated."""


class Parts:
    """Public sums and noisy answers over some cells, split into parts.

    Parameters
    ----------
    rows
        A sparse matrix over the cells: public sums and answers.
    spread
        Variance of each row; 0 for public sums.

    Examples
    --------
    Two pairs of cells with public sums; of the second pair only one cell is answered, and cell 4 is not seen at all:

    >>> from scipy.sparse import csr_array
    >>> sums = [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    >>> parts = Parts(csr_array(sums), [0, 0, 2, 2, 2])
    >>> parts.unknowns, parts.variance().round(9).tolist()
    (3, [1.0, 1.0, 2.0, 2.0, inf])
    >>> parts.estimate([4, 9, 3, 2, 5]).round(9).tolist()
    [2.5, 1.5, 5.0, 4.0, 0.0]
    """

    def __init__(self, rows: Any, spread: Any) -> None:
        from scipy.sparse import csr_array

        made = csr_array(rows, dtype=np.float64)
        made.sum_duplicates()
        made.eliminate_zeros()
        made.sort_indices()
        self.rows = made
        self.spread = np.asarray(spread, dtype=np.float64)
        self._fixed = list(_fixed(made, self.spread == 0))
        unknown = np.ones(made.shape[1], dtype=bool)
        for cells, *_ in self._fixed:
            unknown[cells] = False
        self._open = np.flatnonzero(unknown)
        self._split()

    def _split(self) -> None:
        """Groups of cells, and the parts that they fall into."""
        columns = self.rows.tocsc()[:, self._open]
        columns.sort_indices()
        first, self._group = _alike(columns)
        self._size = np.bincount(self._group, minlength=len(first))
        merged = columns[:, first].tocsr()
        kept = np.flatnonzero(np.diff(merged.indptr))  # a sum of known cells only says nothing more
        merged = merged[kept]
        height, width = merged.shape
        label = _labels(merged)
        above, below = label[:height], label[height:]
        order = np.argsort(above, kind="stable")
        self._cell_order = np.argsort(below, kind="stable")
        count = int(label.max(initial=-1)) + 1
        self._row_ends = np.searchsorted(above[order], np.arange(count + 1))
        self._cell_ends = np.searchsorted(below[self._cell_order], np.arange(count + 1))
        place = np.empty(width, dtype=np.int64)
        place[self._cell_order] = np.arange(width)
        sorted_rows = merged[order]
        sorted_rows.indices = place[sorted_rows.indices].astype(sorted_rows.indices.dtype)
        sorted_rows.has_sorted_indices = False
        sorted_rows.sort_indices()
        self._sorted, self._kept = sorted_rows, kept[order]
        self._count = count

    @cached_property
    def _models(self) -> list[_Part]:
        """The part of each number; the same object where two look alike."""
        made: dict[tuple[bytes, ...], _Part] = {}
        found, spread = [], self.spread[self._kept]
        indptr, indices, data = self._sorted.indptr, self._sorted.indices, self._sorted.data
        row_ends, cell_ends = self._row_ends.tolist(), self._cell_ends.tolist()
        for at in range(self._count):
            first, last = row_ends[at], row_ends[at + 1]
            start, end = int(indptr[first]), int(indptr[last])
            pointers, places = indptr[first : last + 1] - start, indices[start:end] - cell_ends[at]
            entries, noise = data[start:end], spread[first:last]
            width = cell_ends[at + 1] - cell_ends[at]
            key = (pointers.tobytes(), places.tobytes(), entries.tobytes(), noise.tobytes(), b"%d" % width)
            if key not in made:
                made[key] = _Part(pointers, places, entries, noise, width)
            found.append(made[key])
        return found

    @property
    def unknowns(self) -> int:
        """How many numbers the public sums leave open."""
        return len(self._open) - sum(part.rank for part in self._models)

    def variance(self) -> Floats:
        """Variance of the best estimate of each cell; infinite where the answers do not tell."""
        merged = np.zeros(len(self._size))
        for at, part in enumerate(self._models):
            merged[self._cell_order[self._cell_ends[at] : self._cell_ends[at + 1]]] = part.variance
        merged[self._size > 1] = np.inf  # nothing tells these cells apart
        out = np.zeros(self.rows.shape[1])
        out[self._open] = merged[self._group]
        return out

    def estimate(self, values: Any) -> Floats:
        """Best estimate of each cell from the values of all rows. Values of public sums that contradict each other are not noticed: see whether the estimate has them."""
        left = np.array(values, dtype=np.float64)
        out = np.zeros(self.rows.shape[1])
        for cells, rows, factors in self._fixed:
            out[cells] = left[rows] / factors
            left = left - self.rows[:, cells] @ out[cells]
        kept = left[self._kept]
        merged = np.zeros(len(self._size))
        for at, part in enumerate(self._models):
            merged[self._cell_order[self._cell_ends[at] : self._cell_ends[at + 1]]] = part.estimate(
                kept[self._row_ends[at] : self._row_ends[at + 1]]
            )
        out[self._open] = (merged / self._size)[self._group]
        return out


def _fixed(rows: Any, public: Any) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Cells that one public sum determines, these sums, and their factors; then those that a sum determines once the cells before are known, a few times."""
    entries = np.diff(rows.indptr)
    unknown = np.ones(rows.shape[1], dtype=bool)
    columns = None
    for _ in range(PASSES):
        single = np.flatnonzero(public & (entries == 1))
        if not len(single):
            return
        left = rows[single]
        kept = unknown[left.indices]
        cells, first = np.unique(left.indices[kept], return_index=True)
        yield cells.astype(np.int64), single[first], left.data[kept][first]
        unknown[cells] = False
        columns = rows.tocsc() if columns is None else columns
        entries = entries - np.bincount(columns[:, cells].tocoo().row, minlength=len(entries))


def _labels(rows: Any) -> Ints:
    """Parts of a matrix: the numbers of the parts of its rows, then of its columns."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    height, width = rows.shape
    listed = rows.tocoo()
    joined = coo_array(
        (np.ones(listed.nnz, dtype=np.int8), (listed.row, listed.col + height)),
        shape=(height + width, height + width),
    )
    return np.asarray(connected_components(joined, directed=False)[1], dtype=np.int64)


def _alike(columns: Any) -> tuple[Ints, Ints]:
    """A column of each kind, and the kind of each column; two columns are of one kind when they have the same entries."""
    count = columns.shape[1]
    rng = np.random.default_rng(1)
    marks = columns.data.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    sums = []
    for _ in range(
        2
    ):  # two sums of 64 mixed bits: unequal columns do not agree in both but by a chance of about 2^-128
        each = rng.integers(0, 1 << 63, size=columns.shape[0], dtype=np.uint64)[columns.indices] + marks
        each ^= each >> np.uint64(29)
        each *= np.uint64(0xBF58476D1CE4E5B9)
        each ^= each >> np.uint64(32)
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(each, dtype=np.uint64)])
        sums.append(total[columns.indptr[1:]] - total[columns.indptr[:-1]])
    order = np.lexsort(sums)
    new = np.ones(count, dtype=bool)
    new[1:] = np.any([each[order][1:] != each[order][:-1] for each in sums], axis=0)
    groups = np.empty(count, dtype=np.int64)
    groups[order] = np.cumsum(new) - 1
    # Number the kinds by their first column, so that parts that look alike are found to.
    first = order[new]
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), ranks[groups]


class _Part:
    """Sums and answers that hang together, as a sparse matrix."""

    def __init__(self, pointers: Any, places: Any, entries: Floats, spread: Floats, width: int) -> None:
        from scipy.sparse import csr_array

        rows = csr_array((entries, places, pointers), shape=(len(spread), width))
        self.width = width
        self.public = np.flatnonzero(spread == 0)
        self.noisy = np.flatnonzero(spread)
        self.facts, self.answers = rows[self.public], rows[self.noisy]
        self.spread = spread[self.noisy]

    @cached_property
    def _order(self) -> tuple[Ints, Ints, Ints]:
        turned = self.facts.tocsc()
        found: tuple[Ints, Ints, Ints] = triangular_order(
            self.facts.indptr.astype(np.int64),
            self.facts.indices.astype(np.int64),
            turned.indptr.astype(np.int64),
            turned.indices.astype(np.int64),
        )
        return found

    @cached_property
    def _from_sums(self) -> bool:
        """Whether the part is solved from the side of its sums."""
        single = np.diff(self.answers.indptr) == 1
        seen = np.bincount(self.answers.indices[self.answers.indptr[:-1][single]], minlength=self.width)
        sums = len(self.public) + int(np.count_nonzero(~single))
        free = len(self._order[2])
        by_basis = free <= MOST_UNKNOWNS and free * self.width <= MOST_ENTRIES
        by_sums = self.width >= FEW_CELLS and sums <= MOST_UNKNOWNS and bool(seen.all())
        if not by_basis and not by_sums:
            raise RefusedError(
                f"the public facts leave {free:,} of {self.width:,} numbers open that hang together: expected at most {MOST_UNKNOWNS:,}; or an answer for each cell and at most "
                f"{MOST_UNKNOWNS:,} other sums; or cuboids only (facts and queries), which have a closed form. Attack a coarser table.",
                code="attacks.size",
                value=free,
            )
        return by_sums and not (by_basis and free**2 * self.width <= 10 * sums**3)

    @property
    def rank(self) -> int:
        """How many independent public sums there are."""
        if not self._from_sums:
            return self.width - int(self._basis.shape[1])
        if not len(self.public):
            return 0
        sizes = np.sqrt(np.asarray(self.facts.multiply(self.facts).sum(axis=1)).reshape(-1))
        made = (self.facts @ self.facts.T).toarray() / np.outer(sizes, sizes)
        values = np.linalg.eigvalsh(made)
        return int(np.count_nonzero(values > DEPENDENT * values.max()))

    @cached_property
    def variance(self) -> Floats:
        """Of each cell."""
        return self._by_sums() if self._from_sums else self._by_basis()

    def estimate(self, values: Floats) -> Floats:
        """Of each cell, from the values of the sums and answers."""
        exact, noisy = values[self.public], values[self.noisy]
        if self._from_sums:
            return self._estimate_by_sums(exact, noisy)
        start = self._start(exact)
        right = self._basis.T @ (self.answers.T @ ((noisy - self.answers @ start) / self.spread))
        sizes, directions, scales = self._information
        seen = sizes > SINGULAR * float(sizes.max(initial=0.0))
        along = directions[:, seen]
        found = along @ ((along.T @ (right / scales)) / np.square(sizes[seen])) / scales
        return np.asarray(start + self._basis @ found)

    # The side of the unknowns -------------------------------------------------------------------------------------

    def _fill(self, values: Floats, table: Floats) -> Floats:
        order, pivots, _ = self._order
        substitute(
            self.facts.indptr.astype(np.int64),
            self.facts.indices.astype(np.int64),
            self.facts.data,
            order,
            pivots,
            values,
            table,
        )
        return table

    def _start(self, values: Floats) -> Floats:
        """A table with the public sums, of real numbers of any sign; near them where they contradict each other."""
        start = self._fill(values[:, None], np.zeros((self.width, 1)))[:, 0]
        rest, made, broken = self._left_over
        if np.any(np.abs(broken) > SINGULAR):
            moved, *_ = np.linalg.lstsq(broken, values[rest] - self.facts[rest] @ start, rcond=SINGULAR)
            start = start + made @ moved
        return np.asarray(start)

    @cached_property
    def _basis(self) -> Floats:
        """Changes of the table that keep all public facts, as columns."""
        _, made, broken = self._left_over
        if not np.any(np.abs(broken) > SINGULAR):
            return made
        # Rows that determine no further cell, and do not follow from the others either, restrict the free cells.
        from scipy.linalg import null_space

        return np.asarray(made @ null_space(broken, rcond=SINGULAR))

    @cached_property
    def _left_over(self) -> tuple[Ints, Floats, Floats]:
        """Facts that determine no further cell; the table as a function of the free cells, by the others; and what a change of the free cells does to these facts."""
        order, _, free = self._order
        table = np.zeros((self.width, len(free)))
        table[free, np.arange(len(free))] = 1.0
        made = self._fill(np.zeros((self.facts.shape[0], len(free))), table)
        left = np.ones(self.facts.shape[0], dtype=bool)
        left[order] = False
        rest = np.flatnonzero(left)
        return rest, made, np.asarray(self.facts[rest] @ made)

    @cached_property
    def _information(self) -> tuple[Floats, Floats, Floats]:
        """Singular values and right singular vectors of what the answers say about the unknowns, in units of their own; and these units.

        The answers, each divided by its deviation, are kept as a triangle (QR), not as normal equations, and each unknown is measured in how well it is seen: then one that is seen
        a million times better than another does not hide it.
        """
        count = self._basis.shape[1]
        if not count:
            return np.zeros(0), np.zeros((0, 0)), np.ones(0)
        triangle = np.zeros((0, count))
        whole = not np.any(self._basis % 1)
        largest = float(np.abs(self._basis).max(initial=0.0))
        step = max(count, CHUNK // count)
        for first in range(0, self.answers.shape[0], step):
            rows = self.answers[first : first + step]
            seen = rows @ self._basis
            if not whole and rows.nnz:
                # Sums of broken numbers that cancel leave rounding errors, which are no information.
                sizes = np.asarray(abs(rows).max(axis=1).todense(), dtype=np.float64).reshape(-1, 1)
                seen[np.abs(seen) < ROUNDING * sizes * largest] = 0.0
            seen /= np.sqrt(self.spread[first : first + step, None])
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, seen]), mode="r"))
        scales = np.linalg.norm(triangle, axis=0)
        scales[scales == 0.0] = 1.0
        if not len(triangle):
            return np.zeros(count), np.eye(count), scales
        _, values, turned = np.linalg.svd(triangle / scales)
        return np.concatenate([values, np.zeros(count - len(values))]), turned.T, scales

    def _by_basis(self) -> Floats:
        values, directions, scales = self._information
        out = np.zeros(self.width)
        if not len(values):
            return out
        seen = values > SINGULAR * float(values.max(initial=0.0))
        step = max(1, CHUNK // len(values))
        for first in range(0, self.width, step):
            scaled = self._basis[first : first + step] / scales
            where = scaled @ directions
            found = np.square(where[:, seen] / values[seen]).sum(axis=1)
            found[np.linalg.norm(where[:, ~seen], axis=1) > BLIND * np.linalg.norm(scaled, axis=1)] = np.inf
            out[first : first + step] = found
        return out

    # The side of the sums -----------------------------------------------------------------------------------------

    @cached_property
    def _own(self) -> tuple[Ints, Floats]:
        """Answers about one cell each, and how much all of them say about every cell."""
        at = np.flatnonzero(np.diff(self.answers.indptr) == 1)
        first = self.answers.indptr[at]
        told = np.square(self.answers.data[first]) / self.spread[at]
        weights = np.bincount(self.answers.indices[first], weights=told, minlength=self.width)
        return at.astype(np.int64), weights.astype(np.float64)

    @cached_property
    def _inverse(self) -> tuple[Any, Floats]:
        """All other sums and answers as columns, and the inverse of their joint variance as the answers of the cells alone leave it; directions without any follow from the others."""
        from scipy.sparse import diags_array, vstack

        own, precision = self._own
        others = np.setdiff1d(np.arange(len(self.spread)), own)
        sums = vstack([self.facts, self.answers[others]], format="csr")
        joint = (sums @ diags_array(1.0 / precision) @ sums.T).toarray()
        joint[np.diag_indices(len(joint))] += np.concatenate(
            [np.zeros(len(self.public)), self.spread[others]]
        )
        sizes = np.sqrt(joint.diagonal())
        values, directions = np.linalg.eigh(joint / np.outer(sizes, sizes))
        seen = values > DEPENDENT * float(values.max(initial=0.0))
        half = directions[:, seen] / np.sqrt(values[seen]) / sizes[:, None]
        return sums.tocsc(), half @ half.T

    def _by_sums(self) -> Floats:
        """1 / p_i - b_i' K b_i / p_i^2, where p_i is what the answers of cell i say, b_i its column in the other sums, and K their inverse joint variance."""
        _, precision = self._own
        columns, inverse = self._inverse
        entries = np.diff(columns.indptr)
        out = 1.0 / precision
        for count in np.unique(entries[entries > 0]).tolist():
            cells = np.flatnonzero(entries == count)
            step = max(1, CHUNK // count**2)
            for first in range(0, len(cells), step):
                some = cells[first : first + step]
                at = columns.indptr[some][:, None] + np.arange(count)
                places, data = columns.indices[at], columns.data[at]
                gained = np.einsum(
                    "ci,cij,cj->c", data, inverse[places[:, :, None], places[:, None, :]], data
                )
                out[some] -= gained / precision[some] ** 2
        return np.asarray(np.maximum(out, 0.0))

    def _estimate_by_sums(self, exact: Floats, noisy: Floats) -> Floats:
        own, precision = self._own
        columns, inverse = self._inverse
        first = self.answers.indptr[own]
        told = self.answers.data[first] * noisy[own] / self.spread[own]
        alone = np.bincount(self.answers.indices[first], weights=told, minlength=self.width) / precision
        others = np.setdiff1d(np.arange(len(self.spread)), own)
        missing = np.concatenate([exact, noisy[others]]) - columns @ alone
        spread = np.concatenate([np.zeros(len(exact)), self.spread[others]])
        weights, rest = np.zeros(len(missing)), missing
        for _ in range(2):  # the second step takes out what rounding left
            weights = weights + inverse @ rest
            moved = (columns.T @ weights) / precision
            rest = missing - columns @ moved - spread * weights
        return np.asarray(alone + moved)
