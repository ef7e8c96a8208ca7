"""When releases of disjoint parts of a table cost as much as one of them. Owns :func:`parallel`.

Decided on the moves of the policy, with a coupling move as the proof of the contrary. Sequential composition is ``Loss.__add__``; the statement for several
policies on one data set is the ledger's, and takes ``composition_stretch``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.model.constraints.tables import Cuboid
from policygraph.model.domain import Domain
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints
from policygraph.moves.move import Move
from policygraph.sensitivity.certificate import Witness
from policygraph.sensitivity.composition_matroid import Circuits, Labels

__all__ = ["Parallel", "parallel"]

CELLS = 20_000_000
"""Most cells that are labelled with their part."""
WORK = 200_000_000
"""Most steps (rows times rows times cells) for reducing the facts exactly."""
MOVES, LISTING = 100_000, 10 * SECOND
"""Most moves, and most work to list them, when they must be listed one by one."""


@dataclass(frozen=True)
class Parallel:
    """Whether parts of a table compose in parallel under a policy, and why; usable as a condition.

    Attributes
    ----------
    holds
        True: no move touches two parts, so that releases of the parts cost the largest of their losses together.
    reason
        Why.
    move, witness
        A move that touches two parts, and two neighbouring tables that differ by it.
    decided
        False when neither could be shown; the parts then compose sequentially, as always.
    """

    holds: bool
    reason: str
    move: Move | None = None
    witness: Witness | None = None
    decided: bool = True

    def __bool__(self) -> bool:
        return self.holds

    def loss(self, losses: Sequence[Loss]) -> Loss:
        """What releases of the parts cost together: the largest loss, or the sum.

        Examples
        --------
        >>> from policygraph.model.loss import Epsilon
        >>> print(Parallel(True, "").loss([Epsilon(1), Epsilon(2)]), Parallel(False, "").loss([Epsilon(1), Epsilon(2)]))
        epsilon = 2 epsilon = 3
        """
        kinds = {type(loss) for loss in losses}
        if len(kinds) != 1:
            raise InputError(
                "losses of one kind were expected: convert epsilon to rho first, or give at least one loss.",
                code="composition.losses",
            )
        values = [x.value for x in losses]
        value = max(values) if self.holds else sum(values, Fraction(0))
        return kinds.pop().at_least(value)


def parallel(policy: Policy, parts: str | Iterable[Iterable[int]]) -> Parallel:
    """Decide whether no move of a policy touches two parts of the table.

    Parameters
    ----------
    policy
        Whose moves.
    parts
        Disjoint sets of cells, each part seen by one release only; or an attribute, each of whose values is a part.
        Cells in no part are seen by none of the releases.

    Returns
    -------
    Parallel
        With a coupling move and the two tables that it joins when there is one.

    Raises
    ------
    InputError
        When the parts overlap or name cells that do not exist.
    RefusedError
        When the domain is too large to decide it.

    Examples
    --------
    Rows of a table whose row sums are public compose in parallel; with public column sums they do not.

    >>> import policygraph as pg
    >>> domain = pg.Domain({"row": 2, "column": 2})
    >>> bool(parallel(pg.Policy(domain, constraints=[pg.Cuboid("row")]), "row"))
    True
    >>> verdict = parallel(pg.Policy(domain, constraints=[pg.Cuboid("column")]), "row")
    >>> bool(verdict), str(verdict.move)
    (False, '-(0, 0) +(1, 0)')

    Notes
    -----
    Each release must be private for the moves of this policy while it sees only its part: calibrate it under this policy,
    with a query that is zero outside the part.
    """
    if isinstance(parts, str):
        if not isinstance(policy.domain, Domain):
            raise InputError(f"parts={parts!r}: a network has no attributes.", code="composition.parts")
        axis = policy.domain.axis(parts)
        known = _by_structure(policy, parts)
        if known is not None:
            return known
        _check_size(policy)
        labels: Labels = np.asarray(policy.domain.codes(np.arange(policy.domain.size))[axis], dtype=np.int64)
    else:
        _check_size(policy)
        labels = _labels(policy, parts)
    if policy.definition == "edges":
        return _edges(policy, labels)
    labels[policy.system.zeros] = -1
    return _blowfish(policy, labels) if policy.definition == "blowfish" else _induced(policy, labels)


def _check_size(policy: Policy) -> None:
    if policy.domain.size > CELLS:
        raise RefusedError(
            f"the domain has {policy.domain.size:,} cells: parts are looked at cell by cell for at most {CELLS:,}. Give an "
            "attribute that is in every public margin, or that no edge of the policy graph changes, or coarsen.",
            code="composition.size",
        )


def _labels(policy: Policy, parts: Iterable[Iterable[int]]) -> Labels:
    labels = np.full(policy.domain.size, -1, dtype=np.int64)
    for number, part in enumerate(parts):
        cells = np.asarray(list(part))
        if cells.size and cells.dtype.kind not in "iu":
            raise InputError(f"part {number}: expected indices of cells.", code="composition.parts")
        if cells.size and (cells.min() < 0 or cells.max() >= policy.domain.size):
            raise InputError(
                f"part {number} has a cell outside 0 to {policy.domain.size - 1}.", code="composition.parts"
            )
        cells = cells.astype(np.int64)
        if np.any(labels[cells] >= 0):
            raise InputError(
                f"part {number} shares a cell with an earlier part: expected disjoint parts.",
                code="composition.parts",
            )
        labels[cells] = number
    return labels


def _by_structure(policy: Policy, attribute: str) -> Parallel | None:
    """The two cases that need no cells: margins that all hold the attribute, and edges that never change it."""
    if policy.definition == "edges" and policy.graph is not None:
        if not any(attribute in names for names in policy.graph.difference_sets()):
            return Parallel(True, f"no edge of the policy graph changes {attribute}")
    elif policy.definition == "induced":
        facts = policy.system.needed
        if all(isinstance(fact, Cuboid) and attribute in fact.names for fact in facts):
            return Parallel(
                True,
                f"every public sum is about one value of {attribute}, so that a minimal change stays inside one value",
            )
    return None


def _touches(labels: Labels, cells: Iterable[int]) -> bool:
    return len({int(labels[c]) for c in cells if labels[c] >= 0}) > 1


def _coupled(
    policy: Policy, change: dict[int, int], why: str, table: dict[int, int] | None = None
) -> Parallel:
    return Parallel(False, why, Move.of(policy, change), Witness.of_change(change, table))


def _edges(policy: Policy, labels: Labels) -> Parallel:
    if policy.graph is None:
        raise InputError("a policy without graph has no edges.", code="move.graph")
    graph = policy.graph.without_bottom()
    inside = np.flatnonzero(labels >= 0)
    component = graph.components()[inside]
    order = np.argsort(component, kind="stable")
    component, mine = component[order], labels[inside][order]
    if not np.any((component[1:] == component[:-1]) & (mine[1:] != mine[:-1])):
        return Parallel(True, "no path of the policy graph leads from one part to another")
    for u, v in graph.edge_chunks():
        crossing = np.flatnonzero((labels[u] >= 0) & (labels[v] >= 0) & (labels[u] != labels[v]))
        if crossing.size:
            change = {int(u[crossing[0]]): -1, int(v[crossing[0]]): 1}
            return _coupled(policy, change, "an edge of the policy graph leads from one part to another")
    return Parallel(True, "no edge of the policy graph joins two parts")


def _induced(policy: Policy, labels: Labels) -> Parallel:
    from policygraph.moves.values.longest import occurs, presolve_values

    rows, values = policy.system.full_rows()
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    if rows.shape[0] ** 2 * len(cells) > WORK or rows.shape[0] * len(cells) > WORK // 10:
        raise RefusedError(
            f"{rows.shape[0]:,} public sums over {len(cells):,} cells are too many to reduce exactly. Give an attribute that is "
            "in every public margin, coarsen, or compose sequentially.",
            code="composition.size",
        )
    matrix = np.asarray(rows[:, cells].toarray(), dtype=np.int64).reshape(-1, len(cells))
    room = policy.domain.capacity
    if policy.system.has_values:
        kept = list(presolve_values(matrix, values, room).kept)
        matrix, cells = matrix[:, kept], cells[kept]
    mine = labels[cells]
    circuit = Circuits.of(matrix).between(mine)
    if circuit is None:
        return Parallel(
            True,
            "the public facts split over the parts: cells of two parts never change together in a minimal change",
        )
    full = np.zeros(policy.domain.size, dtype=np.int64)

    def occurring(move: dict[int, int]) -> tuple[str, dict[int, int] | None]:
        if not policy.system.has_values:
            return "yes", None
        full[:] = 0
        full[list(move)] = list(move.values())
        open_cells = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
        found = occurs(rows[:, open_cells].toarray(), values, full[open_cells], room, effort=Effort(LISTING))
        if found.table is None:
            return found.status, None
        return "yes", {int(c): int(x) for c, x in zip(open_cells, found.table, strict=True) if x}

    why = "a minimal change of the public facts touches two parts"
    first = {int(cells[c]): x for c, x in circuit.items()}
    if policy.strength != "positive" and _allowed(policy, first):
        status, table = occurring(first)
        if status == "yes":
            return _coupled(policy, first, why, table)
    unsure = 0
    try:
        for move in _crossing(policy, matrix, mine):
            change = {int(cells[c]): int(move[c]) for c in np.flatnonzero(move)}
            status, table = occurring(change)
            if status == "yes":
                return _coupled(policy, change, why, table)
            unsure += status == "unknown"
    except RefusedError as refusal:
        return _undecided(str(refusal))
    if unsure:
        return _undecided(
            f"whether {unsure} moves across parts occur with the published values is not known."
        )
    return Parallel(True, "all moves of the policy were listed, and none of them touches two parts")


def _undecided(why: str) -> Parallel:
    return Parallel(False, f"not decided: {why} Compose sequentially.", decided=False)


def _allowed(policy: Policy, change: dict[int, int]) -> bool:
    """Whether a minimal change is within the capacity, the cap and the strength (worst-case or Markov)."""
    sizes = [abs(x) for x in change.values()]
    most = max(sum(x for x in change.values() if x > 0), -sum(x for x in change.values() if x < 0))
    if policy.domain.capacity is not None and max(sizes) > policy.domain.capacity:
        return False
    if policy.at_most_records is not None and most > policy.at_most_records:
        return False
    return policy.strength != "markov" or (len(sizes) <= 4 and max(sizes) == 1)


def _crossing(policy: Policy, matrix: Ints, labels: Labels) -> Iterator[Any]:
    """Moves that touch two parts, from the complete list of minimal moves."""
    from policygraph.moves.graver.basis import graver_basis
    from policygraph.moves.strengths.overview import positive_moves

    basis = graver_basis(matrix, capacity=policy.domain.capacity, max_moves=MOVES, effort=Effort(LISTING))
    crossing = [
        row
        for row in basis
        if _touches(labels, np.flatnonzero(row).tolist())
        and _allowed(policy, {int(c): int(row[c]) for c in np.flatnonzero(row)})
    ]
    if policy.strength == "positive" and crossing:
        if policy.system.has_values:
            raise RefusedError(
                "positive neighbours with published values are not listed.", code="composition.positive"
            )
        yield from positive_moves(
            matrix, np.array(crossing), capacity=policy.domain.capacity, basis=basis, effort=Effort(LISTING)
        )
        return
    yield from crossing


def _blowfish(policy: Policy, labels: Labels) -> Parallel:
    """Edges that keep the facts are the only moves if all of them do; otherwise the moves must be listed."""
    from policygraph.moves.blowfish.longest import blowfish_moves
    from policygraph.moves.blowfish.problem import dense_problem
    from policygraph.sensitivity.rungs.coupled import DENSE_CELLS

    if policy.graph is None:
        raise InputError("a policy without graph is not a Blowfish policy.", code="move.graph")
    if policy.domain.capacity is not None or policy.domain.size > DENSE_CELLS:
        return _undecided(
            f"with a policy graph and public facts this needs a table of at most {DENSE_CELLS} cells."
        )
    matrix, adjacency, keep = dense_problem(policy)
    if not len(keep):
        return Parallel(True, "every cell is structurally empty, so that there are no moves")
    bottom = policy.graph.bottom != "none"
    mine = labels[keep]
    ends = np.argwhere(np.triu(adjacency, 1)).tolist()
    # bottom, the last vertex, counts in no fact and is in no part
    columns = np.pad(matrix, ((0, 0), (0, int(bottom))))
    if all(np.array_equal(columns[:, u], columns[:, v]) for u, v in ends):
        for u, v in ends:
            if v < len(keep) and _touches(mine, (u, v)):
                change = {int(keep[u]): -1, int(keep[v]): 1}
                if not policy.system.has_values:
                    return _coupled(policy, change, "an edge that keeps the public facts joins two parts")
                return _undecided(
                    "an edge joins two parts, and the published values may or may not allow it."
                )
        return Parallel(
            True, "every edge keeps the public facts, so that edges are the only moves; none joins two parts"
        )
    try:
        for found in blowfish_moves(
            matrix,
            adjacency,
            bottom=bottom,
            at_most_records=policy.at_most_records,
            effort=Effort(LISTING),
            max_moves=MOVES,
        ):
            moved = np.asarray(found.dense(len(keep)))
            if not _touches(mine, np.flatnonzero(moved).tolist()):
                continue
            if policy.system.has_values:
                return _undecided(
                    "a move touches two parts, and the published values may or may not allow it."
                )
            change = {int(keep[c]): int(moved[c]) for c in np.flatnonzero(moved)}
            # the table holds also the records whose changes do not show in the histogram
            table: dict[int, int] = {}
            for x, _ in found.transitions:
                if int(x) < len(keep):  # type: ignore[call-overload]
                    cell = int(keep[int(x)])  # type: ignore[call-overload]
                    table[cell] = table.get(cell, 0) + 1
            return _coupled(
                policy,
                change,
                "records are repaired across the parts so that the public facts stay as they are",
                table,
            )
    except RefusedError as refusal:
        return _undecided(str(refusal))
    return Parallel(True, "all moves of the policy were listed, and none of them touches two parts")
