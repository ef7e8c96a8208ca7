"""Buckets of cells. Owns :class:`Partition`, and :func:`z_order` for cells of a grid.

A partition is public once it is released, or from the start; how it is chosen from data is ``mechanisms.partitioned.partitioners``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.model.domain import Domain, Network

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Partition:
    """Every cell in exactly one bucket.

    Parameters
    ----------
    labels
        The bucket of each cell, as any integers; renumbered in the order of first appearance.

    Raises
    ------
    InputError
        When the labels are no vector of integers, one for each cell.

    Examples
    --------
    >>> halves = Partition([7, 7, 3, 3, 3])
    >>> halves.labels.tolist(), halves.sizes.tolist(), halves.buckets()
    ([0, 0, 1, 1, 1], [2, 3], ((0, 1), (2, 3, 4)))
    >>> halves.sums([1, 2, 3, 4, 5]).tolist()
    [3, 12]
    >>> halves.spread([3, 12]).tolist()
    [1.5, 1.5, 4.0, 4.0, 4.0]
    """

    def __init__(self, labels: npt.ArrayLike) -> None:
        given = np.asarray(labels)
        if given.ndim != 1 or given.dtype.kind not in "iu" or not given.size:
            raise InputError(
                f"labels of shape {given.shape} and type {given.dtype}: expected one integer for each cell.",
                code="partition.labels",
            )
        _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
        number = np.empty(first.size, dtype=np.int64)
        number[np.argsort(first)] = np.arange(first.size)
        self.labels: Ints = number[inverse.reshape(-1)]
        self.labels.setflags(write=False)

    @classmethod
    def of(
        cls, domain: Domain | Network, buckets: Any, attribute: str | None = None, rest: str | None = None
    ) -> Partition:
        """Buckets that a user writes down, checked.

        Parameters
        ----------
        domain
            What is to be partitioned.
        buckets
            Lists of cells, or of labels of one attribute, or a number of values in a row; as for
            :meth:`~policygraph.model.graphs.PolicyGraph.partition`.
        attribute
            The attribute whose values the buckets hold.
        rest
            ``"singletons"``: a value in no bucket is one by itself. Otherwise a missing value is an error.

        Raises
        ------
        InputError
            When buckets overlap, or miss a value.

        Examples
        --------
        >>> Partition.of(Domain({"age": 4}), [[0, 3], [1, 2]]).labels.tolist()
        [0, 1, 1, 0]
        >>> Partition.of(Domain({"age": 4}), [[0, 3], [1]])
        Traceback (most recent call last):
        policygraph.errors.InputError: value of age 2 is in no block: ...
        """
        from policygraph.model.graphs.forms import partition_rule

        return cls(partition_rule(domain, buckets, attribute, rest).components())

    @classmethod
    def singletons(cls, size: int) -> Partition:
        """Every cell a bucket of its own."""
        made = object.__new__(cls)
        made.labels = np.arange(size, dtype=np.int64)
        made.labels.setflags(write=False)
        return made

    @classmethod
    def intervals(cls, cuts: Iterable[int], order: npt.ArrayLike | None = None) -> Partition:
        """Runs of cells between cuts: 0 first, the number of cells last, ascending.

        Parameters
        ----------
        cuts
            Where the runs start, and the end.
        order
            The cells in the order of the runs; by their index when absent.

        Examples
        --------
        >>> Partition.intervals([0, 2, 3], order=[2, 0, 1]).labels.tolist()
        [0, 1, 0]
        """
        ends = np.asarray(list(cuts), dtype=np.int64)
        if ends.size < 2 or ends[0] != 0 or np.any(np.diff(ends) < 1):
            raise InputError(
                f"cuts {ends[:10].tolist()}: expected 0, then rising numbers up to the number of cells.",
                code="partition.cuts",
            )
        along = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        if order is None:
            return cls(along)
        labels = np.empty_like(along)
        labels[check_order(order, along.size)] = along
        return cls(labels)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.labels.size

    @cached_property
    def n_buckets(self) -> int:
        """Number of buckets."""
        return int(self.labels.max()) + 1

    @cached_property
    def sizes(self) -> Ints:
        """Number of cells in each bucket."""
        return np.bincount(self.labels).astype(np.int64)

    def buckets(self) -> tuple[tuple[int, ...], ...]:
        """The cells of each bucket, ascending."""
        by_bucket = np.argsort(self.labels, kind="stable")
        ends = np.cumsum(self.sizes)[:-1]
        return tuple(tuple(part.tolist()) for part in np.split(by_bucket, ends))

    def sums(self, cells: npt.ArrayLike) -> Ints:
        """Add up the counts of each bucket, in integers."""
        out = np.zeros(self.n_buckets, dtype=np.int64)
        np.add.at(out, self.labels, self._fitting(cells, self.size).astype(np.int64, casting="safe"))
        return out

    def spread(self, values: npt.ArrayLike) -> Floats:
        """Give every cell the same share of the value of its bucket."""
        shares = self._fitting(values, self.n_buckets) / self.sizes
        return np.asarray(shares[self.labels], dtype=np.float64)

    def coarsen(self, above: Partition) -> Partition:
        """Merge buckets: ``above`` is a partition of the buckets of this one.

        Examples
        --------
        >>> Partition([0, 0, 1, 2]).coarsen(Partition([0, 1, 0])).labels.tolist()
        [0, 0, 1, 0]
        """
        self._fitting(above.labels, self.n_buckets)
        return Partition(above.labels[self.labels])

    def _fitting(self, values: npt.ArrayLike, length: int) -> npt.NDArray[Any]:
        given = np.asarray(values)
        if given.shape != (length,):
            raise InputError(
                f"values of shape {given.shape}: expected {length} of them.", code="partition.shape"
            )
        return given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and np.array_equal(self.labels, other.labels)

    def __hash__(self) -> int:
        return hash(self.labels.tobytes())

    def __repr__(self) -> str:
        return f"Partition({self.size:,} cells in {self.n_buckets:,} buckets)"


def check_order(order: npt.ArrayLike, size: int) -> Ints:
    """Return an order of cells as an array, or refuse one that misses or repeats a cell."""
    given = np.asarray(order)
    if (
        given.shape != (size,)
        or given.dtype.kind not in "iu"
        or not np.array_equal(np.sort(given), np.arange(size))
    ):
        raise InputError(
            f"an order of shape {given.shape}: expected every index from 0 to {size - 1} once.",
            code="partition.order",
        )
    return given.astype(np.int64)


def z_order(domain: Domain) -> Ints:
    """Cells of a grid in Z-order: by the bits of all positions, interleaved.

    Where every attribute has the same number 2**j of values, an aligned run of 2**i cells is a box: the runs of a
    partition are then the blocks of a quadtree.

    Examples
    --------
    >>> z_order(Domain({"x": 2, "y": 4})).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7]
    """
    codes = domain.codes(np.arange(domain.size))
    width = max(n - 1 for n in domain.shape).bit_length()
    if width * len(codes) > 62:
        raise InputError(
            f"Z-order over {domain!r}: its keys have {width * len(codes)} bits, expected at most 62.",
            code="partition.z-order",
        )
    key = np.zeros(domain.size, dtype=np.int64)
    for bit in range(width - 1, -1, -1):
        for code in codes:
            key = (key << 1) | ((code >> bit) & 1)
    return np.argsort(key, kind="stable").astype(np.int64)
