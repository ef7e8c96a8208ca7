"""Moves of public sums that leave one number open in each connected part. Owns :func:`single_moves` and :class:`SingleMoves`.

Chains are the example: the sums of consecutive values are public, and all counts change together
(``docs/explanation/proofs/single-moves.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
LARGEST = 1 << 40
"""Largest amount of a move; whole numbers up to 2**53 are exact as floats, and the check is in integers."""
FAR = 1 << 62


@dataclass(frozen=True, eq=False)
class SingleMoves:
    """The minimal moves, one for each connected part of sums and cells that leaves a number open, and its opposite.

    Attributes
    ----------
    part
        Part of each cell, from 0 on.
    amounts
        What the move of its part adds to each cell; 0 for cells that the sums determine.
    start
        A solution of the sums with their values, when these were given; entries may be negative.
    """

    part: Ints
    amounts: Ints
    start: Ints | None

    @property
    def parts(self) -> int:
        """How many parts there are, those that leave nothing open included."""
        return int(self.part.max(initial=-1)) + 1

    def of_part(self, part: int) -> dict[int, int]:
        """The move of a part, as amounts by cell."""
        cells = np.flatnonzero((self.part == part) & (self.amounts != 0))
        return dict(zip(cells.tolist(), self.amounts[cells].tolist(), strict=True))

    def room(self, capacity: int | None) -> tuple[Ints, Ints]:
        """How often the move of each part may be added to the start, least and most, for counts from 0 to the capacity.

        Notes
        -----
        The tables of a part are start + t * move, and each cell bounds t to an interval. The amount at the free cell is 1, so that there is a least t.
        """
        start = np.zeros(len(self.part), dtype=np.int64) if self.start is None else self.start
        least = np.full(self.parts, -FAR, dtype=np.int64)
        most = np.full(self.parts, FAR, dtype=np.int64)
        for step_sign in (1, -1):
            at = np.flatnonzero(self.amounts * step_sign > 0)
            step, where = np.abs(self.amounts[at]), self.part[at]
            below, above = -(start[at] // step), None if capacity is None else (capacity - start[at]) // step
            if step_sign > 0:
                np.maximum.at(least, where, below)
                if above is not None:
                    np.minimum.at(most, where, above)
            else:
                np.minimum.at(most, where, -below)
                if above is not None:
                    np.maximum.at(least, where, -above)
        fixed = np.flatnonzero(self.amounts == 0)
        wrong = (start[fixed] < 0) | (False if capacity is None else start[fixed] > capacity)
        most[self.part[fixed[wrong]]] = -FAR
        still = np.ones(self.parts, dtype=bool)
        still[self.part[self.amounts != 0]] = False
        least[still & (most == FAR)] = most[still & (most == FAR)] = 0
        return least, most


def single_moves(rows: Any, values: Ints | None = None) -> SingleMoves | None:
    """List the minimal moves of public sums where each connected part of sums and cells leaves at most one number open.

    Parameters
    ----------
    rows
        Sparse integer matrix, a row for each sum.
    values
        The published values of all sums, if the tables are to be told, too.

    Returns
    -------
    SingleMoves or None
        None where a part leaves several numbers open, or its sums do not determine its cells one by one with coefficients of 1 or -1.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> chain = csr_array(np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]))
    >>> single_moves(chain).amounts.tolist()
    [1, -1, 1, -1]
    >>> single_moves(csr_array(np.array([[1, 1, 1]]))) is None
    True

    Notes
    -----
    Rows that determine a new cell each are independent. If a part has one cell less than such rows plus one, its kernel has dimension 1, and
    the vector with 1 at the free cell generates its whole points. A conformally minimal change of several parts would contain that
    of one of them, so that the minimal moves are those vectors and their opposites.
    """
    from scipy.sparse import bmat, csr_array
    from scipy.sparse.csgraph import connected_components

    from policygraph.moves._compiled_order import substitute, triangular_order

    made: Any = csr_array(rows, dtype=np.int64)
    made.sum_duplicates()
    made.eliminate_zeros()
    height, cells = made.shape
    graph: Any = (
        bmat([[None, made], [made.T, None]], format="csr") if made.nnz else csr_array((height + cells,) * 2)
    )
    labels = connected_components(graph, directed=False)[1][height:]
    part = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    turned = made.tocsc()
    order, pivots, free = triangular_order(
        made.indptr.astype(np.int64),
        made.indices.astype(np.int64),
        turned.indptr.astype(np.int64),
        turned.indices.astype(np.int64),
    )
    if np.any(np.bincount(part[free], minlength=1) > 1) or np.any(np.abs(made.data[pivots]) != 1):
        return None
    table = np.zeros((cells, 2 if values is not None else 1))
    table[free, 0] = 1.0
    right = np.zeros((height, table.shape[1]))
    if values is not None:
        if int(np.abs(values).max(initial=0)) > LARGEST:
            return None
        right[:, 1] = values
    shape = (made.indptr.astype(np.int64), made.indices.astype(np.int64), made.data.astype(np.float64))
    substitute(*shape, order, pivots, right, table)
    if not np.all(np.abs(table) <= LARGEST):
        return None
    whole = table.astype(np.int64)
    # In integers, so that the floats above need not be believed.
    wide = int(np.abs(made).sum(axis=1).max(initial=0)) if made.nnz else 0
    if wide > (1 << 20):
        return None
    kept = made @ whole[:, 0]
    if np.any(kept[order] != 0):
        return None  # a float was rounded on the way: the move is not known
    if np.any(kept != 0):
        # A sum that determines no further cell contradicts the free one: then nothing is open in its part.
        broken = np.unique(part[made[np.flatnonzero(kept)].indices])
        whole[np.isin(part, broken), 0] = 0
        if np.any(made @ whole[:, 0] != 0):
            return None
    start = None
    if values is not None:
        start = whole[:, 1]
        off = made @ start - values
        if np.any(off != 0):
            return None
    return SingleMoves(part, whole[:, 0], start)
