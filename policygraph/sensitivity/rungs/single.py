"""Sensitivity under public sums that leave one number open in each connected part, such as chains: all counts of a part change together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.system import MATRIX_CELLS
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.low_rank import circuits_of_parts
from policygraph.moves.single import Ints, SingleMoves, single_moves
from policygraph.sensitivity.problem import Problem

__all__ = ["one_number", "two_numbers"]

SMALL = 100
"""Up to so many cells all minimal moves are listed by the search, which needs nothing compiled."""
LARGE_ENTRIES = 20
"""Weights of sums above which the list of minimal moves may be long."""
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


def two_numbers(problem: Problem) -> Bracket[Witness] | None:
    """The largest move of public sums whose connected parts leave two numbers open each, at most; exact for all minimal moves.

    Notes
    -----
    In two dimensions the largest of all minimal moves, in any norm of the answers, is one of fewest cells (``docs/explanation/proofs/single-moves.md``, section 2).
    """
    policy, query = problem.policy, problem.query
    facts = policy.system.sums
    if not problem.whole or policy.domain.capacity is not None or policy.domain.size > MATRIX_CELLS:
        return None
    if policy.system.has_values or all(isinstance(f, (Cuboid, Total)) for f in facts):
        return None
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    matrix = policy.system.matrix()[:, cells].tocsr()
    wide = int(abs(matrix).max()) if matrix.nnz else 0
    if policy.domain.size <= SMALL and wide <= LARGE_ENTRIES:
        return None  # all minimal moves are listed
    if len(cells) - matrix.shape[0] > 2 * PARTS:
        return None  # too few sums to leave less open
    ends, at, data = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    rows = [dict(zip(at[a:b], data[a:b], strict=True)) for a, b in pairwise(ends)]
    found = circuits_of_parts(rows, len(cells), problem.effort.share(1, 2))
    if found is None:
        return None
    value, best = 0, dict[int, int]()
    for circuit in found:
        change = {int(cells[cell]): amount for cell, amount in circuit.items()}
        problem.effort.spend(len(change))
        if problem.effort.done:
            return None
        if query.is_identity:
            norm = sum(abs(x) if problem.norm == "l1" else x * x for x in change.values())
        else:
            norm = query.change_norm(change, problem.norm)
        if norm > value:
            value, best = norm, change
    if any(abs(x) >= 1 << 62 for x in best.values()):
        return None
    reason = (
        "the facts leave two numbers open at most in each connected part, so that the changes that keep them are a plane of whole points: "
        f"the largest of all minimal ones is one of the {len(found):,} of fewest cells"
    )
    return Bracket(
        value, value, Witness.of_change(best) if value else None, "closed form, two open numbers", reason
    )


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
