"""Which coordinates of the free lattice to measure. Owns :func:`measured`, a data-free search over bases.

Only accuracy depends on it: whatever basis is found, its sensitivity is certified afterwards.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND
from policygraph.errors import RefusedError
from policygraph.mechanisms.constrained.free_lattice import FreeLattice, open_cells
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints, Norm, Query
from policygraph.moves.graver.basis import graver_basis
from policygraph.sensitivity.request import current
from policygraph.ties import clearly_less, order

__all__ = ["answer_factors", "measured"]

MOVES, LISTING = 20_000, 5 * SECOND
"""Most minimal moves, and most work to list them, for a search over bases."""
STEPS = 200
RANK = 60

Floats = npt.NDArray[np.float64]


def answer_factors(query: Query) -> list[Fraction]:
    """What each integer answer is multiplied by in the end."""
    return [query.unit / part.weight for part in query.parts for _ in range(part.height)]


def measured(free: FreeLattice, query: Query, policy: Policy, norm: Norm) -> FreeLattice:
    """Change the basis of a free lattice step by step while the expected squared error falls.

    Parameters
    ----------
    free
        Where to start.
    query, policy
        What is released and what must be hidden.
    norm
        ``"l1"`` or ``"l2"``: the norm of the loss.

    Returns
    -------
    FreeLattice
        The same lattice in coordinates that are no worse for the moves that could be listed.

    Notes
    -----
    With one noise law for all coordinates the total squared error is the square of the largest norm of a move's
    coordinates, times the sum of the squared entries of the basis (in the units of the answers), up to a factor that
    does not depend on the basis. Adding a column to another changes one column of the basis and one coordinate.
    """
    if policy.definition != "induced" or not 0 < free.rank <= RANK:
        return free
    moves = _listed(policy)
    if moves is None:
        return free
    factors = np.array([float(f) for f in answer_factors(query)])
    cells, listed = moves
    share = np.asarray(free.coordinates[:, cells], dtype=np.float64)
    coordinates = listed.astype(np.float64) @ share.T
    basis = np.asarray(free.basis, dtype=np.float64) * factors[:, None]
    now = _error(coordinates, basis, norm)
    for _ in range(STEPS):
        best, step = _best_step(coordinates, basis, norm)
        if best >= now * (1 - 1e-9):
            break
        i, j, sign = step
        free = free.changed(i, j, sign)
        basis[:, i] += sign * basis[:, j]
        coordinates[:, j] -= sign * coordinates[:, i]
        now = best
    return free


def _listed(policy: Policy) -> tuple[Ints, Any] | None:
    cells, rows = open_cells(policy)
    try:
        found = graver_basis(
            rows.reshape(-1, len(cells)),
            capacity=policy.domain.capacity,
            max_moves=MOVES,
            effort=current().within(LISTING),
        )
    except RefusedError:
        return None
    if policy.strength == "markov":
        found = found[(np.count_nonzero(found, axis=1) <= 4) & (np.abs(found).max(axis=1, initial=0) <= 1)]
    cap = policy.at_most_records
    if cap is not None:
        sizes = np.maximum(np.maximum(found, 0).sum(axis=1), np.maximum(-found, 0).sum(axis=1))
        found = found[sizes <= cap]
    return (cells, found) if len(found) else None


def _error(coordinates: Floats, basis: Floats, norm: Norm) -> float:
    power = np.abs(coordinates) if norm == "l1" else coordinates**2
    largest = float(power.sum(axis=1).max())
    return (largest**2 if norm == "l1" else largest) * float((basis**2).sum())


def _best_step(coordinates: Floats, basis: Floats, norm: Norm) -> tuple[float, tuple[int, int, int]]:
    """The column addition with the smallest error after it."""
    power = np.abs(coordinates) if norm == "l1" else coordinates**2
    sizes, gram = power.sum(axis=1), basis.T @ basis
    whole = float(np.trace(gram))
    best, step = np.inf, (0, 0, 1)
    for i in range(basis.shape[1]):
        for sign in (1, -1):
            changed = coordinates - sign * coordinates[:, [i]]
            fresh = np.abs(changed) if norm == "l1" else changed**2
            longest = (sizes[:, None] - power + fresh).max(axis=0)
            spread = whole + np.diag(gram) + 2 * sign * gram[i]
            errors = (longest**2 if norm == "l1" else longest) * spread
            errors[i] = np.inf
            j = int(order(errors)[0])
            if clearly_less(errors[j], best):
                best, step = float(errors[j]), (i, j, sign)
    return best, step
