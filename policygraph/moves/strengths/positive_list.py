"""Lists of moves: which are positive on some table, and which of these is the longest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.moves.bracket import Bracket
from policygraph.moves.strengths.bracket import (
    Occurrence,
    Pair,
    lengths,
    read_norm,
    read_query,
    removed_part,
    witness_of,
)
from policygraph.moves.strengths.columns import Ints, read_capacity, read_matrix
from policygraph.moves.strengths.positive import from_table, plain, positive_table, simple_reason


def positive_moves(
    matrix: Any,
    moves: Any,
    *,
    capacity: int | None = None,
    basis: Any = None,
    effort: Effort | None = None,
) -> Ints:
    """Keep the minimal moves that are positive on some table.

    Parameters
    ----------
    matrix
        Integer constraint matrix, one column for each cell.
    moves
        Minimal moves, one per row.
    capacity
        Most records of a cell; None for no limit.
    basis
        All minimal moves (one of each pair of signs), when known; makes the answer fast without a solver.
        It must hold every minimal move shorter than those asked for.
    effort
        Work after which undecided moves are kept, which is the safe side; None for no end.

    Returns
    -------
    int64 array
        The rows kept, in their order.

    Examples
    --------
    >>> rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    >>> positive_moves(rows, [[1, -1, -1, 1]]).tolist()
    [[1, -1, -1, 1]]

    Notes
    -----
    A move is kept when it or its reverse is positive on some table. A shortest alternative is a minimal move that
    holds both records, or a sum of two minimal moves without cancellation, one with each record; so a complete
    basis decides (docs/explanation/proofs/strengths.md, section 4).
    """
    read = read_matrix(matrix)
    listed = read_matrix(moves, "moves", read.shape[1])
    room = read_capacity(capacity)
    known = _Known(listed if basis is None else read_matrix(basis, "basis", read.shape[1]))
    work = Effort() if effort is None else effort
    kept = [
        i for i, g in enumerate(listed) if _decide(read, g, known, room, basis is not None, work).possible
    ]
    return listed[kept]


def _decide(
    matrix: Ints, change: Ints, known: _Known, capacity: int | None, complete: bool, effort: Effort
) -> Occurrence:
    """Positive on some table, in one direction or the other."""
    if capacity is not None:
        return positive_table(matrix, change, capacity=capacity, effort=effort)
    simple = simple_reason(change)
    if simple is not None:
        return Occurrence("yes", plain(removed_part(change)), simple.text)
    answer = Occurrence("no", None, "each exchange of the move is made by a shorter change")
    for step in (change, -change):
        table = removed_part(step)
        if effort.done:
            return Occurrence("unknown", None, "the effort was spent")
        effort.spend(30 + len(known.moves) // 400)
        open_pairs = _uncovered(step, table, known)
        if not open_pairs:
            continue
        start = plain(table if step is change else table + step)
        if complete:
            return Occurrence(
                "yes", start, f"no shorter change exchanges the records of cells {open_pairs[0]}"
            )
        reason = from_table(matrix, table, step, None, effort)
        if reason.alternative is None:
            if reason.proved:
                return Occurrence("yes", start, reason.text)
            answer = Occurrence("unknown", None, reason.text)
    return answer


class _Known:
    """Known moves of both signs, short ones first, with the sets of cells they take records from as bits."""

    def __init__(self, moves: Ints) -> None:
        both = np.vstack([moves, -moves])
        sizes = np.abs(both).sum(axis=1)
        order = np.argsort(sizes, kind="stable")
        self.moves, self.sizes = both[order], sizes[order]
        self.takes = _bits(self.moves < 0)

    def usable(self, table: Ints, most: int) -> Ints:
        """Moves of at most ``most`` records that the table allows."""
        end = int(np.searchsorted(self.sizes, most, side="right"))
        empty = _bits(table[None, :] == 0)[0]
        short = self.moves[:end][~(self.takes[:end] & empty).any(axis=1)]
        allowed: Ints = short[(short + table >= 0).all(axis=1)]
        return allowed


def _bits(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    words = -(-flags.shape[1] // 64)
    padded = np.zeros((flags.shape[0], 64 * words), dtype=bool)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1).view(np.uint64)


def _uncovered(change: Ints, table: Ints, known: _Known) -> list[tuple[int, int]]:
    """Pairs of removed and added cells that the known moves, alone or two together, do not exchange."""
    shorter = int(np.abs(change).sum()) - 1
    usable = known.usable(table, shorter)
    removed, added = np.flatnonzero(change < 0), np.flatnonzero(change > 0)
    covered = (usable[:, removed] < 0).T.astype(np.int64) @ (usable[:, added] > 0).astype(np.int64)
    left = []
    for a, b in np.argwhere(covered == 0).tolist():
        t, u = int(removed[a]), int(added[b])
        if not _two_together(usable, table, t, u, shorter):
            left.append((t, u))
    return left


def _two_together(usable: Ints, table: Ints, removed: int, added: int, most: int) -> bool:
    takes = usable[usable[:, removed] < 0]
    gives = usable[usable[:, added] > 0]
    for h in takes:
        sums: npt.NDArray[np.int64] = gives + h
        fit = (sums + table >= 0).all(axis=1) & (np.abs(sums).sum(axis=1) <= most)
        if (fit & (sums[:, removed] < 0) & (sums[:, added] > 0)).any():
            return True
    return False


def longest_positive(
    matrix: Any,
    moves: Any,
    query: Any = None,
    norm: str = "l1",
    *,
    capacity: int | None = None,
    basis: Any = None,
    effort: Effort | None = None,
) -> Bracket[Pair]:
    """Find the positive move that changes a query's answer the most.

    Parameters
    ----------
    matrix, moves, capacity, basis, effort
        As for :func:`positive_moves`; ``moves`` must hold all minimal moves, one of each pair of signs.
    query
        Integer matrix of the query; None is the table itself.
    norm
        "l1", or "l2" for the squared Euclidean norm.

    Returns
    -------
    Bracket
        Exact unless the effort was spent.

    Examples
    --------
    >>> longest_positive([[1, 1]], [[1, -1]]).upper
    2
    """
    read = read_matrix(matrix)
    listed = read_matrix(moves, "moves", read.shape[1])
    wanted = read_query(query, read.shape[1])
    kind = read_norm(norm)
    room = read_capacity(capacity)
    known = _Known(listed if basis is None else read_matrix(basis, "basis", read.shape[1]))
    work = Effort() if effort is None else effort
    values = lengths(wanted, listed, kind)
    upper: int | None = None
    reason = "moves were taken from the longest down; every longer one is positive on no table"
    for i in np.argsort(-values, kind="stable").tolist():
        answer = _decide(read, listed[i], known, room, basis is not None, work)
        if not answer.possible:
            continue
        if upper is None:
            upper = int(values[i])
        if answer.status == "yes" and answer.table is not None:
            if upper > values[i]:
                reason = f"undecided moves count as positive; {work.ended_by}"
            witness = witness_of(np.array(answer.table), listed[i])
            return Bracket(upper, int(values[i]), witness, "descent", reason)
    if upper is None:
        return Bracket(0, 0, None, "descent", "no move is positive")
    return Bracket(upper, 0, None, "descent", f"undecided moves count as positive; {work.ended_by}")
