"""Answers that the public facts determine do not change. Owns :func:`undetermined`, the query without them.

A row of a query that is a rational combination of the rows of the facts (and, where a graph has no bottom, of the total) is
zero on every move, whatever the graph, the strength and the cap. Such rows are dropped before any search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.linalg import PRIME, RowSpace, combined, modular_echelon, small_fraction
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.certificate import DETERMINED
from policygraph.sensitivity.problem import Problem

__all__ = ["PUBLIC", "follows", "nothing_possible", "public_rows", "undetermined", "without_determined"]

WORK = 200_000_000
"""Most steps (rows of the facts squared times cells) for reducing a query by the facts."""
EXACT = 1_000_000
"""Most steps for exact elimination where small fractions do not do."""
ENTRIES = 10_000_000
"""Most entries of the facts and of the query that are written out for it."""
Ints = npt.NDArray[np.int64]
Echelon = tuple[Ints, list[int], Ints]
"""Reduced rows modulo the prime, their leading cells, and how they are made of the given rows."""


PUBLIC: Bracket[Witness] = Bracket(
    0,
    0,
    None,
    DETERMINED,
    "every answer is a combination of public facts, so that no two neighbours have different answers",
)


def without_determined(problem: Problem) -> Bracket[Witness] | None:
    """Leave out the answers that the public facts determine, and climb on with the others."""
    left = undetermined(problem.query, problem.policy)
    if left is None:
        return PUBLIC
    if left is problem.query:
        return None
    found = problem.but(without="determined answers", query=left).climb()
    return found.after("answers that follow from the public facts were left out")


def nothing_possible(problem: Problem) -> Bracket[Witness] | None:
    """Where every cell is a structural zero there is one data set, the empty one."""
    if len(problem.policy.system.zeros) < problem.policy.domain.size:
        return None
    return Bracket(0, 0, None, "closed form", "every cell is structurally empty")


def undetermined(query: Query, policy: Policy) -> Query | None:
    """The query without the answers that the public facts determine; None when nothing is left.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 3})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Cuboid("a")])
    >>> undetermined(pg.queries.cuboids(domain, [["a"], ["b"], []]), policy).sets
    (('b',),)
    """
    if not policy.constraints:
        return query
    if isinstance(query, CuboidQuery):
        return _cuboids(query, policy)
    known = public_rows(query, policy)
    if known is None or not known.any():
        return query
    if known.all():
        return None
    if isinstance(query, MatrixQuery):
        return MatrixQuery(query.domain, query.matrix[np.flatnonzero(~known)], unit=query.unit)
    return query


def _cuboids(query: CuboidQuery, policy: Policy) -> Query | None:
    """Tables inside a public one are determined at sight; others by their rows."""
    kept_total = policy.graph is not None and policy.graph.bottom == "none"
    margins = [set(fact.names) for fact in policy.constraints if isinstance(fact, Cuboid)]
    if kept_total or any(isinstance(fact, Total) for fact in policy.constraints):
        margins.append(set())
    left = [
        (names, weight)
        for names, weight in zip(query.sets, query.weights, strict=True)
        if not any(set(names) <= margin for margin in margins)
    ]
    if left and not _only_cuboids(policy):
        # A table whose every row follows from counts, cells and zeros together.
        left = [
            (names, weight)
            for names, weight in left
            if (known := public_rows(CuboidQuery(query.domain, [names]), policy)) is None or not known.all()
        ]
    if len(left) == len(query.sets):
        return query
    if not left:
        return None
    return CuboidQuery(query.domain, [names for names, _ in left], [weight for _, weight in left])


def _only_cuboids(policy: Policy) -> bool:
    """Where all facts are tables of records, a table follows from them only if it is inside one of them.

    The contrast of all attributes of the table is zero on every public table that lacks one of them.
    """
    return all(isinstance(fact, (Cuboid, Total)) for fact in policy.constraints) and not any(
        size == 1
        for size in policy.domain.shape  # type: ignore[union-attr]
    )


def public_rows(query: Query, policy: Policy) -> npt.NDArray[np.bool_] | None:
    """Which rows of a query are proved to follow from the facts; None when there are too many entries to look.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2})
    >>> policy = pg.Policy(domain, constraints=[pg.Total()])
    >>> public_rows(pg.queries.matrix(domain, [[2, 2], [1, 0]]), policy).tolist()
    [True, False]
    """
    size = policy.domain.size
    rows = sum(part.height for part in query.parts)
    facts = sum(fact.n_rows(policy.domain) for fact in policy.system.needed) + 1
    if (rows + facts) * size > ENTRIES or facts * facts * (size + facts) > WORK:
        return None
    cells, matrix, reduced = _facts(policy)
    if not len(cells):
        return np.ones(rows, dtype=bool)
    asked = np.asarray(query.columns(cells).toarray(), dtype=np.int64)
    return follows(matrix, asked, reduced)


def _facts(policy: Policy) -> tuple[Ints, Ints, Echelon]:
    """Open cells, the facts over them, and these in echelon form; made once for a policy, which is asked for many tables."""
    kept_total = policy.graph is not None and policy.graph.bottom == "none"
    known: dict[Any, Any] = policy.system.derived
    key = "determined", kept_total
    if key not in known:
        cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
        matrix = np.asarray(policy.system.matrix()[:, cells].toarray(), dtype=np.int64)
        if kept_total:
            matrix = np.vstack([matrix, np.ones((1, len(cells)), dtype=np.int64)])
        known[key] = cells, matrix, _echelon(matrix)
    found: tuple[Ints, Ints, Echelon] = known[key]
    return found


def follows(matrix: Ints, rows: Ints, reduced: Echelon | None = None) -> npt.NDArray[np.bool_]:
    """Which rows are proved to be rational combinations of the rows of a matrix.

    Parameters
    ----------
    matrix, rows
        Integer matrices over the same cells.
    reduced
        The echelon form of the matrix, when it is known already.

    Returns
    -------
    array of bool
        True is a proof: the combination was found modulo a prime, lifted to fractions and checked with whole numbers, or
        found by exact elimination where they are large. False only says that no combination was found.

    Examples
    --------
    >>> follows(np.array([[1, 1, 0], [0, 2, 2]]), np.array([[1, 2, 1], [1, 0, 0], [0, 0, 0]])).tolist()
    [True, False, True]
    """
    known: npt.NDArray[np.bool_] = ~np.asarray(rows.any(axis=1))
    if not matrix.shape[0]:
        return known
    echelon, pivots, made = _echelon(matrix) if reduced is None else reduced
    rest = rows % PRIME
    parts = np.zeros((rows.shape[0], matrix.shape[0]), dtype=np.int64)
    for at, pivot in enumerate(pivots):
        factor = rest[:, pivot].copy()
        used = np.flatnonzero(factor)
        if len(used):
            rest[used] = (rest[used] - factor[used, None] * echelon[at]) % PRIME
            parts[used] = (parts[used] + factor[used, None] * made[at]) % PRIME
    open_ = []
    for row in np.flatnonzero(~known & ~rest.any(axis=1)).tolist():
        known[row] = _confirmed(matrix, rows[row], parts[row].tolist())
        if not known[row]:
            open_.append(row)
    if open_ and matrix.shape[0] * matrix.size <= EXACT:
        # combinations that no small fractions make
        space = RowSpace(matrix)
        known[open_] = [row in space for row in rows[open_]]
    return known


def _echelon(matrix: Ints) -> Echelon:
    rest, pivots, (made,) = modular_echelon(matrix, np.eye(matrix.shape[0], dtype=np.int64))
    return rest[: len(pivots)], pivots, made[: len(pivots)]


def _confirmed(matrix: Ints, row: Ints, parts: list[int]) -> bool:
    """Check with whole numbers that the row is the combination that its parts modulo the prime stand for."""
    weights = [small_fraction(part) for part in parts]
    if any(weight is None for weight in weights):
        return False
    total, scale = combined(matrix, [weight for weight in weights if weight is not None])
    return total == [scale * int(x) for x in row.tolist()]
