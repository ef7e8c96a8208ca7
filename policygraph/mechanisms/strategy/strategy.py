"""What is measured instead of the answers. Owns :class:`Strategy`: an integer matrix A over the cells that is never built.

A is the product of one factor for each axis of a base; it is a query like any other, so that its sensitivity over the moves of
a policy is certified by the same engine.
"""

from __future__ import annotations

from functools import cached_property, reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.strategy.bases import AxisBase, Coordinates, base_from_spec
from policygraph.mechanisms.strategy.factors import Factor, factor_from_spec, interval_rows
from policygraph.model.domain import Domain
from policygraph.model.queries.base import Ints, Norm, Part, Query

Floats = npt.NDArray[np.float64]
MOST_ENTRIES = 50_000_000
"""Most non-zero entries of a matrix that is written out."""


class Strategy(Query):
    """Rows to measure, in whole numbers, such that the cells follow from them.

    Parameters
    ----------
    name
        For people.
    base
        The coordinates that the rows are over.
    factors
        Rows along each axis of the base; the strategy is their Kronecker product.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Tree
    >>> domain = Domain({"age": 4})
    >>> tree = Strategy("tree", AxisBase(domain), [Tree.plain(4, 2)])
    >>> tree.answer([5, 0, 2, 1]).tolist()
    [8, 5, 3, 5, 0, 2, 1]
    >>> tree.estimate([8, 5, 3, 5, 0, 2, 1], []).round(9).tolist()
    [5.0, 0.0, 2.0, 1.0]
    """

    domain: Domain

    def __init__(self, name: str, base: Coordinates, factors: Any) -> None:
        super().__init__(base.domain)
        self.name, self.base = name, base
        self.factors: tuple[Factor, ...] = tuple(factors)
        if tuple(factor.n for factor in self.factors) != base.shape:
            raise InputError(
                f"factors over {[f.n for f in self.factors]} positions: expected {list(base.shape)}, one for each axis.",
                code="strategy.factors",
            )
        self._part = Part(name, ("row",), prod(factor.height for factor in self.factors))

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self._part,)

    def part_labels(self, part: int) -> list[Any]:
        return [np.arange(self._part.height)]

    def weighted(self, weights: Any, name: str | None = None) -> Strategy:
        """The same rows with other weights of their levels, one tuple for each axis."""
        factors = [f.weighted(w) for f, w in zip(self.factors, weights, strict=True)]
        return Strategy(name or self.name, self.base, factors)

    @property
    def largest_entry(self) -> int:
        return prod(f.n * max(int(weight) for weight in f.weights) for f in self.factors)

    def answer(self, table: Any) -> Ints:
        cells = np.asarray(table, dtype=np.int64).reshape(-1)
        if len(cells) != self.domain.size:
            raise InputError(
                f"a table of {len(cells)} cells: expected {self.domain.size}.",
                code="query.shape",
                value=len(cells),
            )
        self.check_fits(cells)
        made = self.base.coordinates(cells).reshape(self.base.shape)
        for axis, factor in enumerate(self.factors):
            made = _along(made, axis, lambda flat, f=factor: np.asarray((f.rows @ flat.T).T))
        return np.asarray(made, dtype=np.int64).reshape(-1)

    def estimate(self, measured: Any, fixed: Any) -> Floats:
        """Least-squares cells from (noisy) measurements and the exact fixed numbers: M (A^+ b)."""
        made = np.asarray(measured, dtype=np.float64).reshape([f.height for f in self.factors])
        for axis, factor in enumerate(self.factors):
            made = _along(made, axis, factor.solve)
        return self.base.cells(made, np.asarray(fixed, dtype=np.int64))

    @cached_property
    def matrix(self) -> Any:
        """The rows over the coordinates of the base, sparse; refused where they are too many."""
        from scipy import sparse

        entries = prod(f.rows.nnz for f in self.factors)
        if entries > MOST_ENTRIES:
            raise RefusedError(
                f"{self.name} has {entries:,} entries: expected at most {MOST_ENTRIES:,}. Use fewer levels.",
                code="strategy.too-large",
                value=entries,
            )
        return reduce(
            lambda a, b: sparse.csr_array(sparse.kron(a, b, format="csr")), (f.rows for f in self.factors)
        )

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        at = np.asarray(cells, dtype=np.int64)
        return sparse.csc_matrix(self._moved(at, np.full(len(at), -1, dtype=np.int64)))

    def _moved(self, u: Ints, v: Ints) -> Any:
        """Change of the measurements by one record in u less one in v, as sparse columns."""
        change = self.base.difference(u, v)
        most = change.nnz * prod(f.rows.nnz // f.n + 1 for f in self.factors)
        if most > 4 * MOST_ENTRIES:
            raise RefusedError(
                f"the columns of {self.name} at {len(u):,} cells have about {most:,} entries: too many to write out.",
                code="strategy.too-large",
                value=most,
            )
        return self.matrix @ change

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        at = np.asarray(cells, dtype=np.int64)
        if not isinstance(self.base, AxisBase):
            return column_norms(self._moved(at, np.full(len(at), -1, dtype=np.int64)), norm)
        codes = self.domain.codes(at)
        return prod(
            (self._axis_norms(k, c, None, norm) for k, c in enumerate(codes)), start=np.ones(len(at), int)
        )

    def pair_norms(self, u: Any, v: Any, norm: Norm) -> Ints:
        a, b = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
        if not isinstance(self.base, AxisBase):
            return column_norms(self._moved(a, b), norm)
        first, second = self.domain.codes(a), self.domain.codes(b)
        apart = np.stack([x != y for x, y in zip(first, second, strict=True)])
        out = np.zeros(len(a), dtype=np.int64)
        for axis in range(len(first)):
            # Ends that differ on one attribute: the norm of a Kronecker product is the product of the norms.
            mine = np.flatnonzero(apart[axis] & (apart.sum(axis=0) == 1))
            if len(mine):
                out[mine] = prod(
                    self._axis_norms(k, first[k][mine], second[k][mine] if k == axis else None, norm)
                    for k in range(len(first))
                )
        rest = np.flatnonzero(apart.sum(axis=0) > 1)
        for start in range(0, len(rest), 4096):
            some = rest[start : start + 4096]
            out[some] = column_norms(self._moved(a[some], b[some]), norm)
        return out

    def _axis_norms(self, axis: int, u: Any, v: Any | None, norm: Norm) -> Ints:
        """Norms of the rows of one axis at positions u, or at the differences of u and v."""
        n = self.domain.shape[axis]
        keys = np.asarray(u, dtype=np.int64) * (n + 1) + (n if v is None else np.asarray(v, dtype=np.int64))
        found, back = np.unique(keys, return_inverse=True)
        change = self.axis_change(axis, found // (n + 1), None if v is None else found % (n + 1))
        return column_norms(self.factors[axis].rows @ change, norm)[back]

    def axis_change(self, axis: int, u: Ints, v: Ints | None) -> Any:
        """Coordinates along one axis of a record at u, less those of one at v, up to the sign; sparse columns."""
        from scipy import sparse

        if not isinstance(self.base, AxisBase):
            raise RefusedError("a forest has no axes.", code="strategy.base")
        free = self.base.shape[axis]
        if self.base.axis != axis:
            unit = sparse.identity(free, dtype=np.int64, format="csc")
            return unit[:, u] if v is None else unit[:, u] - unit[:, v]
        # A record enters all prefix sums from its position on; the difference of two is a range of prefix sums.
        other = np.full(len(u), free, dtype=np.int64) if v is None else v
        high = np.minimum(np.maximum(u, other), free)
        low = np.minimum(np.minimum(u, other), high)
        if int((high - low).sum()) > 4 * MOST_ENTRIES:
            raise RefusedError(
                f"{self.name}: the moves of this policy change too many prefix sums. Measure the cells instead.",
                code="strategy.too-large",
            )
        return interval_rows(low, high, free).T

    def to_spec(self) -> dict[str, Any]:
        factors = [factor.to_spec() for factor in self.factors]
        return {"strategy": {"name": self.name, "base": self.base.to_spec(), "factors": factors}}

    def describe(self) -> str:
        """Say what is measured."""
        return f"{self.name} over the {self.base.describe()}"

    def __repr__(self) -> str:
        return f"Strategy({self.describe()}: {self.height:,} rows)"


def _along(array: npt.NDArray[Any], axis: int, work: Any) -> npt.NDArray[Any]:
    """Do something to all vectors along one axis."""
    last = np.moveaxis(array, axis, -1)
    made = np.asarray(work(np.ascontiguousarray(last).reshape(-1, last.shape[-1])))
    return np.moveaxis(made.reshape(*last.shape[:-1], made.shape[-1]), -1, axis)


def column_norms(matrix: Any, norm: Norm) -> Ints:
    """Column norms (squared for l2) over integers; entries stay far below 2^31, see the limits of weights and cells."""
    from scipy import sparse

    columns = sparse.csc_array(matrix)
    top = int(abs(columns).max()) if columns.nnz else 0
    tallest = int(np.diff(columns.indptr).max(initial=0))
    if tallest * (top if norm == "l1" else top * top) >= 1 << 62:
        raise RefusedError("a norm of a strategy would have more than 62 bits.", code="strategy.overflow")
    sizes = abs(columns) if norm == "l1" else columns.multiply(columns)
    return np.asarray(sizes.sum(axis=0), dtype=np.int64).ravel()


def strategy_from_spec(domain: Domain, spec: dict[str, Any]) -> Strategy:
    """Make a strategy from its plain form.

    Examples
    --------
    >>> from policygraph.mechanisms.strategy.factors import Haar
    >>> wavelet = Strategy("wavelet", AxisBase(Domain({"x": 5})), [Haar.plain(5)])
    >>> strategy_from_spec(wavelet.domain, wavelet.to_spec()) == wavelet
    True
    """
    given = spec.get("strategy")
    if not isinstance(given, dict) or not {"name", "base", "factors"} <= set(given):
        raise InputError(f"strategy {spec!r}: expected name, base and factors.", code="strategy.spec")
    base = base_from_spec(domain, given["base"])
    return Strategy(str(given["name"]), base, [factor_from_spec(each) for each in given["factors"]])
