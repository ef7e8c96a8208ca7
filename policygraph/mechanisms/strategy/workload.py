"""Expected errors of W A^+ for the queries that can be asked. Owns :class:`Workload`, the quadratic forms of one axis and :class:`Profiles` of moves.

The variance of an answer w is that of one measurement times w (A^T A)^-1 w^T, which factors over the axes for boxes and tables.
Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.mechanisms.strategy.bases import AxisBase, Coordinates
from policygraph.mechanisms.strategy.factors import Factor, Form
from policygraph.mechanisms.strategy.strategy import Strategy, column_norms
from policygraph.model.graphs import Complete, PolicyGraph
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.workloads import BoxQuery
from policygraph.transforms.incidence.base import graph_of

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
        """Variance of each answer for measurements of variance 1, in units of the query."""
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


SAMPLED = 50_000


@dataclass(frozen=True, eq=False)
class Profiles:
    """Types of moves: for each axis, by how much the rows of each level with weight 1 change.

    Attributes
    ----------
    axes
        One array for each axis: types of moves x levels.
    norm
        Of the changes; squared for l2.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> domain = pg.Domain({"age": 4})
    >>> tree = Strategy("tree", AxisBase(domain), [Tree.plain(4, 2)])
    >>> Profiles.of(tree, pg.Policy(domain, pg.PolicyGraph.line(domain)), "l1").axes[0].tolist()
    [[0, 0, 2], [0, 2, 2]]
    """

    axes: tuple[Ints, ...]
    norm: Norm

    @classmethod
    def of(cls, strategy: Strategy, policy: Policy, norm: Norm) -> Profiles:
        """Look at all edges of a policy, or at many of them."""
        graph = graph_of(policy)
        u, v = _edges(graph)
        lone = np.fromiter(graph.bottom_cells, dtype=np.int64, count=-1) if graph.bottom != "none" else u[:0]
        types = [_along(strategy, u, v, norm)] if len(u) else []
        if len(lone):
            types.append(_alone(strategy, lone[:SAMPLED], norm))
        kinds = np.unique(np.concatenate(types), axis=0)
        cuts = np.cumsum([0, *(len(f.weights) for f in strategy.factors)])
        return cls(tuple(kinds[:, a:b] for a, b in pairwise(cuts.tolist())), norm)

    def largest(self, weights: Sequence[Sequence[int]]) -> int:
        """Largest change for these weights of the levels."""
        product = np.ones(len(self.axes[0]), dtype=np.int64)
        for axis, given in zip(self.axes, weights, strict=True):
            level = np.array(given, dtype=np.int64)
            product = product * (axis @ (level if self.norm == "l1" else level**2))
        return int(product.max())


def _edges(graph: PolicyGraph) -> tuple[Ints, Ints]:
    if isinstance(graph.rule, Complete) and graph.n_edges > SAMPLED:
        ends = np.random.default_rng(0).integers(0, graph.size, size=(2, SAMPLED))
        apart = ends[:, ends[0] != ends[1]]
        return apart[0], apart[1]
    found: list[tuple[Ints, Ints]] = []
    for u, v in graph.edge_chunks(1 << 16):
        found.append((u, v))
        if sum(len(a) for a, _ in found) >= SAMPLED:
            break
    nothing = np.zeros(0, dtype=np.int64)
    return np.concatenate([nothing, *(a for a, _ in found)]), np.concatenate(
        [nothing, *(b for _, b in found)]
    )


def _levels(factor: Factor, change: Any, norm: Norm) -> Ints:
    """Norm of the change of each level, one row for each column of the change."""
    rows = [column_norms(factor.level_rows(level) @ change, norm) for level in range(len(factor.weights))]
    return np.stack(rows, axis=1)


def _along(strategy: Strategy, u: Ints, v: Ints, norm: Norm) -> Ints:
    base = strategy.base
    if not isinstance(base, AxisBase):
        return np.unique(_levels(strategy.factors[0], base.difference(u, v), norm), axis=0)
    first, second = strategy.domain.codes(u), strategy.domain.codes(v)
    apart = np.stack([a != b for a, b in zip(first, second, strict=True)])
    many = apart.sum(axis=0) > 1
    out = []
    for axis in range(len(first)):
        mine = np.flatnonzero(apart[axis] & ~many)
        if len(mine):
            parts = [
                _at(strategy, k, first[k][mine], second[k][mine] if k == axis else None, norm)
                for k in range(len(first))
            ]
            out.append(np.unique(np.concatenate(parts, axis=1), axis=0))
    if many.any():
        both = [_alone(strategy, ends[many], norm) for ends in (u, v)]
        joined = np.concatenate(both)
        # Two columns differ by at most the sum of their norms; four times in squares.
        joined[:, : len(strategy.factors[0].weights)] *= 2 if norm == "l1" else 4
        out.append(joined)
    return np.concatenate(out)


def _alone(strategy: Strategy, cells: Ints, norm: Norm) -> Ints:
    base = strategy.base
    if not isinstance(base, AxisBase):
        return _levels(strategy.factors[0], base.difference(cells, np.full(len(cells), -1)), norm)
    codes = strategy.domain.codes(cells)
    parts = [_at(strategy, k, code, None, norm) for k, code in enumerate(codes)]
    return np.unique(np.concatenate(parts, axis=1), axis=0)


def _at(strategy: Strategy, axis: int, u: Any, v: Any | None, norm: Norm) -> Ints:
    n = strategy.domain.shape[axis]
    keys = np.asarray(u, dtype=np.int64) * (n + 1) + (n if v is None else np.asarray(v, dtype=np.int64))
    found, back = np.unique(keys, return_inverse=True)
    change = strategy.axis_change(axis, found // (n + 1), None if v is None else found % (n + 1))
    return _levels(strategy.factors[axis], change, norm)[back]


def of_ranges(factor: Factor, low: Ints, high: Ints) -> Floats:
    """Forms of the indicators of ranges of positions, both ends included.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_ranges(Tree.identity(5), np.array([1, 0]), np.array([1, 4])).tolist()
    [1.0, 5.0]
    """
    out = np.zeros(len(low))
    for form in factor.forms:
        sums = np.concatenate([[0.0], np.cumsum(form.g)])
        first, last = form.block[low], form.block[high]
        whole = np.diff(sums[form.starts])
        run = np.concatenate([[0.0], np.cumsum(form.kappa * whole**2)])
        left = sums[np.minimum(form.starts[first + 1], high + 1)] - sums[low]
        right = sums[high + 1] - sums[form.starts[last]]
        apart = first < last
        between = np.where(apart, run[last] - run[np.minimum(first + 1, last)], 0.0)
        out += form.kappa[first] * left**2 + np.where(apart, form.kappa[last] * right**2, 0.0) + between
    return np.maximum(out, 0.0)


def of_pairs(factor: Factor, minus: Ints, plus: Ints) -> Floats:
    """Forms of differences of two positions; -1 stands for none.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_pairs(Tree.identity(5), np.array([-1, 2, -1]), np.array([0, 4, -1])).tolist()
    [1.0, 2.0, 0.0]
    """
    out = np.zeros(len(minus))
    for form in factor.forms:
        a = np.where(minus >= 0, form.g[minus], 0.0)
        b = np.where(plus >= 0, form.g[plus], 0.0)
        p, q = form.block[minus], form.block[plus]
        same = (p == q) & (minus >= 0) & (plus >= 0)
        cross = np.where(same, 2 * form.kappa[p] * a * b, 0.0)
        out += form.kappa[p] * a**2 + form.kappa[q] * b**2 - cross
    return np.maximum(out, 0.0)


def of_rows(factor: Factor, rows: Any) -> Floats:
    """Forms of the rows of a sparse matrix over the positions."""
    from scipy import sparse

    given = sparse.csr_array(rows)
    out = np.zeros(given.shape[0])
    for form in factor.forms:
        spread = sparse.csr_array(
            (form.g, form.block, np.arange(factor.n + 1)), shape=(factor.n, len(form.kappa))
        )
        sums = sparse.csr_array(given @ spread)
        out += np.asarray(sums.multiply(sums) @ form.kappa).ravel()
    return np.maximum(out, 0.0)


def of_all_ranges(factor: Factor) -> float:
    """Sum of the forms of all ranges of positions.

    Notes
    -----
    A range is a difference of two of the n + 1 running sums P_0..P_n, and the sum of (P_j - P_i)^2 over i < j is
    (n + 1) sum P^2 - (sum P)^2.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_all_ranges(Tree.identity(3))
    10.0
    """
    total = 0.0
    for form in factor.forms:
        starts, ends = form.starts[:-1], form.starts[1:]
        running = np.cumsum(form.g)
        before = np.concatenate([[0.0], running])[starts]
        inside = running - before[form.block]
        whole = running[ends - 1] - before
        after = factor.n - ends
        squares = np.add.reduceat(inside**2, starts) + after * whole**2
        sums = np.add.reduceat(inside, starts) + after * whole
        total += _weighed(form, (factor.n + 1) * squares - sums**2)
    return total


def of_all_pairs(factor: Factor, zeros: int) -> float:
    """Sum of the forms of all differences of two among the positions and some positions that are known.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> of_all_pairs(Tree.identity(2), 1)
    4.0
    """
    total = 0.0
    for form in factor.forms:
        starts = form.starts[:-1]
        squares = np.add.reduceat(form.g**2, starts)
        sums = np.add.reduceat(form.g, starts)
        total += _weighed(form, (factor.n + zeros) * squares - sums**2)
    return total


def of_all_differences(factor: Factor, points: Any) -> float:
    """Sum of the forms of all differences of two rows of a sparse matrix."""
    from scipy import sparse

    given = sparse.csr_array(points)
    total = 0.0
    for form in factor.forms:
        spread = sparse.csr_array(
            (form.g, form.block, np.arange(factor.n + 1)), shape=(factor.n, len(form.kappa))
        )
        values = sparse.csc_array(given @ spread)
        squares = np.asarray(values.multiply(values).sum(axis=0)).ravel()
        total += _weighed(form, given.shape[0] * squares - np.asarray(values.sum(axis=0)).ravel() ** 2)
    return total


def _weighed(form: Form, values: Floats) -> float:
    return float(form.kappa @ values)
