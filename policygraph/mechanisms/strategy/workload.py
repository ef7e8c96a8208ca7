"""Expected errors of W A^+ for the queries that can be asked. Owns :class:`Workload`.

The variance of an answer w is that of one measurement times w (A^T A)^-1 w^T, which factors over the axes for boxes and tables.
Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.mechanisms.strategy.bases import AxisBase, Coordinates
from policygraph.mechanisms.strategy.factors import Factor
from policygraph.mechanisms.strategy.forms import (
    of_all_differences,
    of_all_pairs,
    of_all_ranges,
    of_pairs,
    of_ranges,
    of_rows,
)
from policygraph.mechanisms.strategy.strategy import Strategy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.workloads import BoxQuery

__all__ = ["Workload", "intervals"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
CHUNK = 1_000_000
MOST_ENTRIES = 200_000_000
"""Most numbers of answers times cells for a query that is neither boxes nor tables."""
MOST_PREFIXES = 5_000


@dataclass(frozen=True, eq=False)
class Block:
    """Some answers in a row: boxes, all combinations of ranges, or sparse rows over the base.

    Attributes
    ----------
    low, high
        First and last positions on each axis; for ``grid`` every combination of the ranges of the axes is an answer.
    grid
        Whether all combinations are meant, or one box from each row.
    every
        Whether these are all ranges of one axis; with rows, all differences of two of these.
    rows
        Sparse rows over the base, in place of boxes.
    weight
        Factor of all of them.
    """

    low: tuple[Ints, ...] = ()
    high: tuple[Ints, ...] = ()
    grid: bool = False
    every: bool = False
    rows: Any = None
    weight: int = 1


class Workload:
    """The answers of a query, ready to be asked for their errors under strategies of one base.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.queries import all_ranges
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> domain = Domain({"age": 8})
    >>> cells = AxisBase(domain)
    >>> work = Workload(all_ranges(domain), cells)
    >>> round(work.total(Strategy("cells", cells, [Tree.identity(8)])), 9)
    120.0
    >>> round(work.total(Strategy("tree", cells, [Tree.plain(8, 2)])), 3)
    29.333
    """

    def __init__(self, query: Query, base: Coordinates) -> None:
        self.query, self.base = query, base
        self.blocks = tuple(_blocks(query, base))

    def variances(self, strategy: Strategy) -> Floats:
        """Variance of each answer for measurements of variance 1, in lattice units."""
        return np.concatenate([block.weight**2 * _each(block, strategy) for block in self.blocks])

    def total(self, strategy: Strategy) -> float:
        """Sum over the answers of the squared factor of their table times their variance, for measurements of variance 1."""
        unit = float(self.query.unit) ** 2
        return unit * sum(_sum(block, strategy) for block in self.blocks)


def _blocks(query: Query, base: Coordinates) -> Iterator[Block]:
    if not isinstance(base, AxisBase):
        yield _sparse(query, base)
        return
    sizes = query.domain.shape if isinstance(query, (BoxQuery, CuboidQuery)) else ()
    if isinstance(query, CuboidQuery):
        for names, weight in zip(query.sets, query.weights, strict=True):
            kept = [name in names for name in query.domain.names]
            low = tuple(np.arange(n if k else 1) for n, k in zip(sizes, kept, strict=True))
            high = tuple(at if k else at + n - 1 for at, n, k in zip(low, sizes, kept, strict=True))
            yield Block(low, high, grid=True, weight=weight)
    elif isinstance(query, BoxQuery):
        axes = range(len(sizes))
        ends = tuple(query.low[:, k] for k in axes), tuple(query.high[:, k] for k in axes)
        yield Block(*ends, every=query.kind == "all")
    elif isinstance(query, MatrixQuery) and (found := intervals(query)) is not None:
        yield Block((found[0],), (found[1],))
    else:
        yield _sparse(query, base)


def intervals(query: MatrixQuery) -> tuple[Ints, Ints] | None:
    """First and last positions if every row of a query over one attribute counts a range; None otherwise.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.queries import matrix, prefix
    >>> [ends.tolist() for ends in intervals(prefix(Domain({"age": 3})))]
    [[0, 0, 0], [0, 1, 2]]
    >>> intervals(matrix(Domain({"age": 3}), [[1, 0, 1]])) is None
    True
    """
    if len(getattr(query.domain, "shape", ())) != 1:
        return None
    rows = query.matrix.tocsr()
    rows.sort_indices()
    lengths = np.diff(rows.indptr)
    if not len(rows.data) or lengths.min() == 0 or np.any(rows.data != 1):
        return None
    low, high = rows.indices[rows.indptr[:-1]], rows.indices[rows.indptr[1:] - 1]
    if np.any(high - low + 1 != lengths):
        return None
    return low.astype(np.int64), high.astype(np.int64)


def _sparse(query: Query, base: Coordinates) -> Block:
    size = query.domain.size
    if isinstance(query, BoxQuery) and query.kind == "all" and size <= MOST_PREFIXES:
        # A range is a difference of two of the n + 1 prefix sums, the first of which is 0.
        from scipy import sparse

        prefixes = sparse.csr_array(np.tril(np.ones((size, size), dtype=np.int64)))
        nothing = sparse.csr_array((1, size), dtype=np.int64)
        rows = base.workload(sparse.vstack([nothing, prefixes], format="csr"))
        rows.eliminate_zeros()
        return Block((query.low[:, 0],), (query.high[:, 0],), every=True, rows=rows)
    if not query.is_identity and query.height * size > MOST_ENTRIES:
        raise RefusedError(
            f"{query!r} has {query.height:,} answers over {size:,} cells: too many to weigh against a strategy. Use boxes or "
            "tables, which need no list, or release the cells.",
            code="strategy.workload",
        )
    columns = query.columns(np.arange(size, dtype=np.int64))
    return Block(rows=base.workload(columns))


def _axis(base: AxisBase, axis: int, factor: Factor, low: Ints, high: Ints) -> Floats:
    if base.axis != axis:
        return of_ranges(factor, low, high)
    # A range is a difference of two prefix sums; the fixed one is known.
    return of_pairs(factor, low - 1, np.where(high < factor.n, high, -1))


def _per_axis(block: Block, strategy: Strategy, some: slice = slice(None)) -> list[Floats]:
    base = strategy.base
    if not isinstance(base, AxisBase):
        raise RefusedError("boxes over a forest: expected sparse rows.", code="strategy.workload")
    ends = zip(block.low, block.high, strict=True)
    return [_axis(base, k, strategy.factors[k], low[some], high[some]) for k, (low, high) in enumerate(ends)]


def _each(block: Block, strategy: Strategy) -> Floats:
    if block.rows is not None and not block.every:
        return _of_sparse(block.rows, strategy)
    if block.grid:
        return np.asarray(reduce(np.multiply.outer, _per_axis(block, strategy))).reshape(-1)
    count = len(block.low[0])
    pieces = []
    for start in range(0, count, CHUNK):
        some = slice(start, start + CHUNK)
        if block.rows is None:
            pieces.append(np.asarray(prod(_per_axis(block, strategy, some))))
        else:
            ranges = block.rows[block.high[0][some] + 1] - block.rows[block.low[0][some]]
            pieces.append(of_rows(strategy.factors[0], ranges))
    return np.concatenate(pieces)


def _sum(block: Block, strategy: Strategy) -> float:
    if block.grid:
        return float(prod(float(axis.sum()) for axis in _per_axis(block, strategy)))
    if block.every and block.rows is not None:
        return of_all_differences(strategy.factors[0], block.rows)
    if block.every and isinstance(strategy.base, AxisBase):
        factor = strategy.factors[0]
        if strategy.base.axis is None:
            return of_all_ranges(factor)
        return of_all_pairs(factor, 1 + strategy.base.exact)
    return float(_each(block, strategy).sum())


def _of_sparse(rows: Any, strategy: Strategy) -> Floats:
    if len(strategy.factors) == 1:
        return of_rows(strategy.factors[0], rows)
    out = np.zeros(rows.shape[0])
    step = max(1, 20_000_000 // rows.shape[1])
    for start in range(0, rows.shape[0], step):
        dense = rows[start : start + step].toarray().astype(np.float64).reshape(-1, *strategy.base.shape)
        moved = dense
        for axis, factor in enumerate(strategy.factors, start=1):
            last = np.moveaxis(moved, axis, -1)
            made = factor.gram_inverse(np.ascontiguousarray(last).reshape(-1, factor.n))
            moved = np.moveaxis(made.reshape(last.shape), -1, axis)
        out[start : start + step] = (dense * moved).reshape(len(dense), -1).sum(axis=1)
    return np.maximum(out, 0.0)
