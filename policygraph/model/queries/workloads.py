"""Ranges and rectangles without a matrix. Owns :class:`BoxQuery` and the functions that make one.

Answers come from sums over corners, so that all eight million ranges of 4,096 values are one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.linalg import read_only
from policygraph.model.domain import Domain
from policygraph.model.queries.base import Ints, Norm, Part, Query

MOST_SUMS = 1 << 24
"""Most cells over which running sums are formed to count boxes."""


def _are_all_ranges(domain: Domain, low: Ints, high: Ints) -> bool:
    if len(domain.shape) != 1:
        return False
    first, last = np.triu_indices(domain.shape[0])
    return np.array_equal(low[:, 0], first) and np.array_equal(high[:, 0], last)


class BoxQuery(Query):
    """Counts of records in boxes: on each attribute a range of positions, both ends included.

    Parameters
    ----------
    domain
        The domain of the records.
    low, high
        First and last position on each attribute: one row for each box.
    name
        Name of the table.
    kind
        ``"all"`` when these are all ranges of a domain with one attribute, in the order of :func:`all_ranges`.

    Examples
    --------
    >>> query = BoxQuery(Domain({"x": 2, "y": 3}), [[0, 1]], [[1, 2]])
    >>> query.answer([1, 2, 3, 4, 5, 6]).tolist()
    [16]
    """

    domain: Domain

    def __init__(
        self,
        domain: Domain,
        low: Any,
        high: Any,
        *,
        name: str = "boxes",
        kind: Literal["listed", "all"] = "listed",
    ) -> None:
        super().__init__(domain)
        if not isinstance(domain, Domain):
            raise InputError("boxes need a table, not a network.", code="query.domain", value=domain)
        ends = [np.asarray(given) for given in (low, high)]
        wanted = len(domain.shape)
        if any(e.ndim != 2 or e.shape[1] != wanted or e.dtype.kind not in "iu" for e in ends) or len(
            ends[0]
        ) != len(ends[1]):
            raise InputError(
                f"boxes of shapes {ends[0].shape} and {ends[1].shape}: expected integer positions, one row for each box "
                f"and one column for each of {wanted} attributes.",
                code="query.box",
            )
        if not len(ends[0]):
            raise InputError("no boxes: expected at least one.", code="query.empty")
        self.low, self.high = (read_only(e.astype(np.int64)) for e in ends)
        wrong = np.flatnonzero(
            ((self.low < 0) | (self.low > self.high) | (self.high >= np.array(domain.shape))).any(axis=1)
        )
        if len(wrong):
            at = int(wrong[0])
            raise InputError(
                f"box {at} from {self.low[at].tolist()} to {self.high[at].tolist()}: expected 0 <= low <= high inside "
                f"the shape {domain.shape}.",
                code="query.box",
                value=at,
            )
        if kind == "all" and not _are_all_ranges(domain, self.low, self.high):
            raise InputError(
                "kind='all': expected all ranges of a domain with one attribute, in order. Use all_ranges(domain).",
                code="query.box",
            )
        self.kind = kind
        self._part = Part(
            name, tuple(f"{side} {n}" for n in domain.names for side in ("first", "last")), len(self.low)
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self._part,)

    def part_labels(self, part: int) -> list[Any]:
        out = []
        for axis, name in enumerate(self.domain.names):
            labels = self.domain.labels(name)
            for ends in (self.low, self.high):
                codes = ends[:, axis]
                out.append(codes if isinstance(labels, range) else np.array(labels, dtype=object)[codes])
        return out

    @property
    def largest_entry(self) -> int:
        return 1

    def answer(self, table: Any) -> Ints:
        cube = np.asarray(table, dtype=np.int64).reshape(self.domain.shape)
        self.check_fits(cube)
        sums = np.zeros([n + 1 for n in cube.shape], dtype=np.int64)
        sums[(slice(1, None),) * cube.ndim] = cube
        for axis in range(cube.ndim):
            np.cumsum(sums, axis=axis, out=sums)
        out = np.zeros(len(self.low), dtype=np.int64)
        for corner in product((0, 1), repeat=cube.ndim):
            at = tuple(
                self.high[:, axis] + 1 if upper else self.low[:, axis] for axis, upper in enumerate(corner)
            )
            sign = -1 if (cube.ndim - sum(corner)) % 2 else 1
            out += sign * sums[at]
        return out

    def _holds(self, cells: Any) -> npt.NDArray[np.bool_]:
        codes = self.domain.codes(np.asarray(cells, dtype=np.int64))
        inside = np.ones((len(self.low), len(codes[0])), dtype=bool)
        for axis, code in enumerate(codes):
            inside &= (self.low[:, axis, None] <= code) & (code <= self.high[:, axis, None])
        return inside

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        step = max(1, 50_000_000 // len(self.low))
        at = np.asarray(cells, dtype=np.int64)
        pieces = [
            sparse.csc_matrix(self._holds(at[start : start + step]).astype(np.int64))
            for start in range(0, max(len(at), 1), step)
        ]
        return pieces[0] if len(pieces) == 1 else sparse.hstack(pieces, format="csc")

    def _holding(self, cells: Any, extent: tuple[int, ...] | None = None) -> Ints:
        """Number of boxes that hold each of these cells; with an extent, all cells from there on to so many positions further on each attribute.

        A box holds them where it holds the first cell once its last positions are drawn back by the extent. Each box marks its corners, and running sums along the axes
        make the marks counts, in time linear in boxes and cells of the domain.
        """
        shape = self.domain.shape
        last = self.high - np.array(extent or [0] * len(shape))
        some = (last >= self.low).all(axis=1)
        marks = np.zeros([n + 1 for n in shape], dtype=np.int64)
        for corner in product((0, 1), repeat=len(shape)):
            at = tuple(
                last[some, axis] + 1 if upper else self.low[some, axis] for axis, upper in enumerate(corner)
            )
            np.add.at(marks, at, -1 if sum(corner) % 2 else 1)
        for axis in range(len(shape)):
            np.cumsum(marks, axis=axis, out=marks)
        return marks[tuple(self.domain.codes(np.asarray(cells, dtype=np.int64)))]

    def _sums_pay(self, cells: int, passes: int) -> bool:
        """Whether running sums over the whole domain, so many times, are less work than looking at every box for every cell."""
        size = prod(n + 1 for n in self.domain.shape)
        work = passes * (len(self.low) + size) << len(self.domain.shape) + 3
        return size <= MOST_SUMS and work < cells * len(self.low)

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        at = np.asarray(cells, dtype=np.int64)
        if self._sums_pay(len(at), 1):
            return self._holding(at)
        step = max(1, 50_000_000 // len(self.low))
        found = [self._holds(at[s : s + step]).sum(axis=0) for s in range(0, len(at), step)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found]).astype(np.int64)

    def pair_norms(self, u: Any, v: Any, norm: Norm) -> Ints:
        a, b = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
        if self._sums_pay(len(a), 2):
            ends = [np.stack(pair) for pair in zip(self.domain.codes(a), self.domain.codes(b), strict=True)]
            extents, which = np.unique([np.ptp(end, axis=0) for end in ends], axis=1, return_inverse=True)
            if self._sums_pay(len(a), extents.shape[1] + 1):
                # A box holds both cells where it holds the smallest box around them.
                first = np.ravel_multi_index([end.min(axis=0) for end in ends], self.domain.shape)
                both = np.zeros(len(a), dtype=np.int64)
                for at in range(extents.shape[1]):
                    here = np.flatnonzero(which.reshape(-1) == at)
                    both[here] = self._holding(first[here], tuple(extents[:, at].tolist()))
                return self._holding(a) + self._holding(b) - 2 * both
        step = max(1, 50_000_000 // len(self.low))
        found = [
            (self._holds(a[s : s + step]) ^ self._holds(b[s : s + step])).sum(axis=0)
            for s in range(0, len(a), step)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found]).astype(np.int64)

    def to_spec(self) -> dict[str, Any]:
        if self.kind == "all":
            return {"boxes": "all ranges", "name": self._part.name}
        return {"boxes": np.stack([self.low, self.high], axis=1).tolist(), "name": self._part.name}

    def __repr__(self) -> str:
        return f"BoxQuery({self._part.name}: {self._part.height:,} over {self.domain!r})"


def boxes(domain: Domain, corners: Sequence[Any], *, name: str = "boxes") -> BoxQuery:
    """Counts in boxes, each given by its first and its last position on every attribute.

    Examples
    --------
    >>> boxes(Domain({"x": 4}), [((0,), (2,))]).answer([1, 2, 3, 4]).tolist()
    [6]
    """
    given = np.asarray(corners)
    if given.ndim != 3 or given.shape[1] != 2:
        raise InputError(
            f"boxes of shape {given.shape}: expected pairs of first and last positions.", code="query.box"
        )
    return BoxQuery(domain, given[:, 0], given[:, 1], name=name)


def rectangles(domain: Domain, corners: Sequence[Any]) -> BoxQuery:
    """Counts in rectangles of a grid: ((first x, first y), (last x, last y)) each.

    Examples
    --------
    >>> rectangles(Domain({"x": 2, "y": 2}), [((0, 0), (1, 0))]).answer([1, 2, 3, 4]).tolist()
    [4]
    """
    return boxes(domain, corners, name="rectangles")


def all_ranges(domain: Domain) -> BoxQuery:
    """Every range of positions of a domain with one attribute, by first and then by last position.

    Examples
    --------
    >>> all_ranges(Domain({"x": 3})).answer([1, 2, 4]).tolist()
    [1, 3, 7, 2, 6, 4]
    """
    if len(domain.shape) != 1:
        raise InputError(
            f"all ranges of {domain!r}: expected a domain with one attribute.", code="query.attribute"
        )
    low, high = np.triu_indices(domain.shape[0])
    return BoxQuery(domain, low[:, None], high[:, None], name="all ranges", kind="all")


def random_boxes(domain: Domain, count: int, seed: int = 0) -> BoxQuery:
    """Boxes with independent uniform ends on every attribute (ranges, when there is one): a public workload.

    Examples
    --------
    >>> random_boxes(Domain({"x": 100}), 5, seed=1).height
    5
    """
    if count < 1:
        raise InputError(f"count={count}: expected at least 1.", code="query.empty", value=count)
    ends = np.sort(
        np.random.default_rng(seed).integers(0, domain.shape, size=(2, count, len(domain.shape))), axis=0
    )
    return BoxQuery(domain, ends[0], ends[1], name="random boxes")
