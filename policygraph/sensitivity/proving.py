"""Proofs that certificates carry. Owns :func:`proof_of`, which finds one; ``policygraph/check.py`` checks it and shares no code with the search.

The proof is looked for when a certificate is written or verified, from the policy, the query and the value alone: a closed form or a listing that the
checker knows, and otherwise the list of all minimal moves over kinds of cells, up to symmetry. Where there is none the certificate says so, by carrying
none. The format is described in ``docs/reference/certificates.md``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from policygraph import check
from policygraph.effort import SECOND, Effort
from policygraph.errors import PolicyGraphError

__all__ = ["proof_of"]

SEARCH = 10 * SECOND
"""Work for a list of moves."""
MOVES = 60_000
"""Most moves of a list, those that follow by symmetry counted."""
KINDS = 150
"""Most kinds of cells for which moves are listed."""


def proof_of(
    policy: dict[str, Any], query: dict[str, Any], norm: str, power: Fraction
) -> dict[str, Any] | None:
    """A proof that a query changes by at most so much, which ``policygraph.check`` accepts; None where none is found.

    Parameters
    ----------
    policy, query
        Plain forms, as in a certificate.
    norm
        ``"l1"`` or ``"l2"``.
    power
        The bound; of the square for l2.

    Examples
    --------
    >>> margins = {"domain": {"a": 3, "b": 4}, "public": [{"cuboid": ["a"]}, {"cuboid": ["b"]}]}
    >>> proof_of(margins, {"cuboids": [["a", "b"]]}, "l1", Fraction(6))
    {'kind': 'theorem', 'theorem': 'two-margins'}
    >>> proof_of(margins, {"cuboids": [["a", "b"]]}, "l1", Fraction(5)) is None
    True
    """
    check.Meter.left = check.WORK
    try:
        problem = check.Question(policy, query, norm)
    except (check.OpenError, check.FailedError):
        return None
    try:
        return check.found_proof(problem, power)
    except check.OpenError:
        if problem.column is not None:
            return None  # a unit has no facts, so that there are no moves to list but those tried
    for asked, to_cells in ((problem, False), (_cells(problem), True)):
        try:
            found = None if asked is None else _moves(asked, _unit(problem), power if not to_cells else None)
            if found is not None and to_cells:
                found = _reduced(problem, asked, found, power)
        except (check.OpenError, PolicyGraphError):
            found = None
        if found is not None:
            return found
    return None


def _unit(problem: check.Question) -> Fraction:
    times = problem.members * problem.query.unit
    return times if problem.norm == "l1" else times * times


def _cells(problem: check.Question) -> check.Question | None:
    """The problem of the cells themselves, where another query is asked."""
    if problem.query.measure is not None or problem.query.identity or problem.definition != "induced":
        return None
    return problem.of_cells


def _reduced(
    problem: check.Question, cells: Any, moves: dict[str, Any], power: Fraction
) -> dict[str, Any] | None:
    check.Meter.left = check.WORK
    longest, wide = _largest(check.CellKinds(cells), moves), check.column_bound(problem)
    made = longest * wide if problem.norm == "l1" else longest * longest * wide
    if made * _unit(problem) > power:
        return None
    return {"kind": "reduction", "to": "cells", "proof": moves}


def _moves(problem: check.Question, unit: Fraction, power: Fraction | None) -> dict[str, Any] | None:
    """All minimal moves over kinds of cells, one of each orbit of the symmetries of the facts."""
    from policygraph.moves.graver.basis import graver_basis
    from policygraph.moves.graver.symmetries import find_symmetries

    if problem.definition != "induced" or problem.query.measure is not None:
        return None
    check.Meter.left = check.WORK
    kinds = check.CellKinds(problem, KINDS)
    n = len(kinds.columns)
    keys = sorted({key for column in kinds.columns for key in column}, key=repr)
    matrix = np.array([[column.get(key, 0) for column in kinds.columns] for key in keys], dtype=object)
    matrix = matrix.reshape(len(keys), n)
    turns = find_symmetries(matrix).tolist() if len(keys) else []
    basis = graver_basis(matrix, max_moves=MOVES, effort=Effort(SEARCH), symmetries=turns or None)
    seen: set[tuple[int, ...]] = set()
    chosen: list[list[int]] = []
    for move in basis.tolist():
        if tuple(move) not in seen:
            chosen.append(move)
            seen |= check.orbits([tuple(move)], turns)
    proof = {"kind": "moves", "moves": chosen, "symmetries": turns}
    if power is not None and _largest(kinds, proof) * unit > power:
        return None
    return proof


def _largest(kinds: check.CellKinds, proof: dict[str, Any]) -> int:
    return check.largest(kinds, [tuple(move) for move in proof["moves"]], proof["symmetries"])
