"""Sensitivity under public sums that leave one number open in each connected part, such as chains: all counts of a part change together."""

from __future__ import annotations

from typing import Any

import numpy as np

from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.system import MATRIX_CELLS
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.single import Ints, SingleMoves, single_moves
from policygraph.sensitivity.problem import Problem

__all__ = ["one_number"]

SMALL = 100
"""Up to so many cells all minimal moves are listed by the search, which needs nothing compiled."""
PARTS = 1_000
"""Most parts whose moves are tried one by one on a query that is not the table itself."""
ENTRIES = 40_000_000
"""Most entries of a query that are looked at for it."""


def one_number(problem: Problem) -> Bracket[Witness] | None:
    """The largest move of public sums whose connected parts leave one number open each; exact for every strength and cap.

    Notes
    -----
    Every change that keeps the sums is a sum of the moves of parts, one for each. The smallest that contains a given record change of a part is its move,
    so that it is a positive move, too (``docs/explanation/proofs/single-moves.md``).
    """
    policy = problem.policy
    facts = policy.system.sums
    if not SMALL < policy.domain.size <= MATRIX_CELLS or all(isinstance(f, (Cuboid, Total)) for f in facts):
        return None
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    rows, values = policy.system.stacked()
    if len(cells) < policy.domain.size:
        rows = rows[:, cells]
    if len(cells) - rows.shape[0] > PARTS:
        return None  # too few sums to leave less open
    known = None
    if policy.system.has_values:
        if any(value is None for value in values):
            return None
        known = np.array(values, dtype=object)
        if np.any(np.abs(known) > 1 << 40):
            return None
        known = known.astype(np.int64)
    moves = single_moves(rows, known)
    if moves is None:
        return None
    least, most = moves.room(policy.domain.capacity)
    if known is not None and np.any(most < least):
        return None
    found = _largest(problem, moves, cells, _protected(problem, moves, least, most, valued=known is not None))
    if found is None:
        return None
    value, part = found
    reason = (
        "each sum determines one further count, so that the facts leave one number open"
        + (" in each connected part" if moves.parts > 1 else "")
        + ": every change that keeps them is a multiple of one vector"
    )
    if not value:
        return Bracket(0, 0, None, METHOD, reason)
    change = {int(cells[cell]): amount for cell, amount in moves.of_part(part).items()}
    table = None
    if known is not None and moves.start is not None:
        filled = moves.start + least[moves.part] * moves.amounts
        table = {int(cells[cell]): int(filled[cell]) for cell in np.flatnonzero(filled)}
    return Bracket(value, value, Witness.of_change(change, table), METHOD, reason)


METHOD = "closed form, one open number"


def _protected(problem: Problem, moves: SingleMoves, least: Ints, most: Ints, *, valued: bool) -> Any:
    """Which parts have a move that some table can make and that the policy's strength and cap protect."""
    size, policy = moves.parts, problem.policy
    amounts, part = moves.amounts, moves.part
    kept = np.bincount(part[amounts != 0], minlength=size) > 0
    if valued:
        kept &= most - least >= 1
    largest = np.zeros(size, dtype=np.int64)
    np.maximum.at(largest, part, np.abs(amounts))
    if policy.domain.capacity is not None:
        kept &= largest <= policy.domain.capacity
    if policy.strength == "markov":
        kept &= (largest <= 1) & (np.bincount(part[amounts != 0], minlength=size) <= 4)
    if policy.at_most_records is not None:
        added, removed = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        np.add.at(added, part, np.maximum(amounts, 0))
        np.add.at(removed, part, np.maximum(-amounts, 0))
        kept &= np.maximum(added, removed) <= policy.at_most_records
    return kept


def _largest(problem: Problem, moves: SingleMoves, cells: Ints, kept: Any) -> tuple[int, int] | None:
    """The largest norm of the query over the kept moves, and the part that attains it."""
    query = problem.query
    if not kept.any():
        return 0, 0
    if query.is_identity:
        # at most 2**40 each: squares are summed in Python integers where they could leave 64 bits
        amounts: Any = np.abs(moves.amounts)
        if problem.norm == "l2":
            top = int(amounts.max())
            amounts = amounts.astype(object) if top**2 * len(amounts) >= 1 << 62 else amounts
            amounts = amounts * amounts
        elif int(amounts.max()) * len(amounts) >= 1 << 62:
            amounts = amounts.astype(object)
        sums = np.zeros(moves.parts, dtype=amounts.dtype)
        np.add.at(sums, moves.part, amounts)
        best = max(np.flatnonzero(kept).tolist(), key=lambda at: (sums[at], -at))
        return int(sums[best]), best
    if int(kept.sum()) > PARTS or query.height * len(cells) > ENTRIES * 100:
        return None
    value, best = 0, 0
    for part in np.flatnonzero(kept).tolist():
        change = {int(cells[cell]): amount for cell, amount in moves.of_part(part).items()}
        if query.columns(np.array(list(change), dtype=np.int64)).nnz > ENTRIES:
            return None
        norm = query.change_norm(change, problem.norm)
        if norm > value:
            value, best = norm, part
    return value, best
