"""Neighbours under a policy: the test of two tables, the listing of all moves, and graphs of both.

Owns what :class:`~policygraph.model.policy.Policy` passes on: ``verdict``, ``decompose``, ``moves``, ``move_graph`` and
``neighbour_graph``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Network
from policygraph.model.policy import Policy, Verdict
from policygraph.moves.as_networkx import facts_graph
from policygraph.moves.degrees.secret_pairs import find_repair, secret_cells, touches
from policygraph.moves.move import Move

if TYPE_CHECKING:
    import networkx

MATCHED_RECORDS, MATCHED_CELLS = 6, 64
"""Sizes up to which every matching of the records of two data sets is tried."""
SHOWN = 12
"""Cells of a smaller move that a reason spells out."""
MOST_CELLS = 100_000
"""Most cells of a domain whose move graph is written out."""
MOST_TABLES = 200
"""Most tables that are compared with each other."""
MOST_STEPS = 1_000_000
"""Most partial tables looked at on the way to all tables with published values."""


def verdict(policy: Policy, a: Any, b: Any) -> Verdict:
    """Decide by the definition whether two tables of counts are neighbours under a policy."""
    move = Move.between(policy, a, b)
    if not len(move.cells):
        return Verdict(False, "the tables are equal")
    if policy.definition == "edges":
        return _along_edges(policy, move)
    for name, table in (("first", a), ("second", b)):
        try:
            policy.system.check(table)
        except InputError as error:
            return Verdict(False, f"the {name} table breaks the public facts: {error}")
    if not move.keeps_facts:
        return Verdict(False, "the tables differ in a public fact")
    if policy.at_most_records is not None and max(move.added, move.removed) > policy.at_most_records:
        return Verdict(False, f"the change has more than {policy.at_most_records} records on a side")
    secret = secret_cells(policy)
    if policy.definition == "blowfish" and secret is None:
        return _blowfish(policy, a, b)
    smaller = move.smaller()
    if smaller is not None:
        return Verdict(False, f"a smaller change keeps the public facts: {smaller.words(SHOWN)}", smaller)
    if secret is not None:
        return _secret_edges(policy, a, move, secret)
    return _strength(policy, a, move)


def _secret_edges(policy: Policy, table: Any, move: Move, secret: Any) -> Verdict:
    changed = touches(dict(move.change), secret)
    if not changed:
        return Verdict(False, "no secret edge changes")
    present = {int(cell): 1 for cell in np.flatnonzero(table)}
    if find_repair(policy, present, changed, secret):
        return Verdict(
            False,
            "some of the secret edges could change alone, edges that are not secret repairing the facts",
        )
    return Verdict(True, "a minimal change with as few secret edges as the public facts allow")


def _along_edges(policy: Policy, move: Move) -> Verdict:
    from policygraph.model.graphs import BOTTOM

    graph = policy.graph
    if graph is None:
        raise InputError("a policy without graph has no edges.", code="move.graph")
    if policy.at_most_records is not None and max(move.added, move.removed) > policy.at_most_records:
        return Verdict(False, "the change is above the cap on records")
    if move.added <= 1 and move.removed <= 1:
        ends: list[Any] = [cell for cell, _ in move.change]
        pair = ends if len(ends) == 2 else [ends[0], BOTTOM]
        if graph.has_edge(*pair):
            return Verdict(True, "one record changes along an edge of the policy graph")
        return Verdict(False, "one record changes, but along no edge of the policy graph")
    return Verdict(False, "more than one record changes")


def _strength(policy: Policy, table: Any, move: Move) -> Verdict:
    if policy.strength == "markov":
        short = len(move.change) <= 4 and all(abs(amount) == 1 for _, amount in move.change)
        return Verdict(
            short, "a minimal move of at most four single changes" if short else "more than four changes"
        )
    if policy.strength == "positive":
        from policygraph.moves.strengths.positive import is_positive

        # Alternatives may use any cell, so this one definition needs the whole matrix.
        matrix = policy.system.matrix().toarray()
        change = np.zeros(policy.domain.size, dtype=np.int64)
        change[move.cells] = move.amounts
        keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
        # Alternatives are shorter than the change, so that more records than this in a cell make no difference.
        held = np.minimum(np.asarray(table)[keep], 2 * move.size)
        positive, reason = is_positive(matrix[:, keep], held, change[keep], capacity=policy.domain.capacity)
        return Verdict(
            bool(positive), f"positive neighbours: {reason}" if positive else f"not positive: {reason}"
        )
    return Verdict(True, "the change is minimal: no smaller part of it keeps the public facts")


def _blowfish(policy: Policy, a: Any, b: Any) -> Verdict:
    """Some matching of the records must make the two data sets neighbours; every matching is tried."""
    from policygraph.moves.blowfish.problem import blowfish_problem, dense_problem
    from policygraph.moves.blowfish.records import decide, matchings

    matrix, adjacency, keep = dense_problem(policy)
    bottom = policy.graph is not None and policy.graph.bottom != "none"
    first, second = (
        [at for at, cell in enumerate(keep) for _ in range(int(table[cell]))] for table in (a, b)
    )
    most = max(len(first), len(second))
    if most > MATCHED_RECORDS or policy.domain.size > MATCHED_CELLS:
        raise RefusedError(
            f"{most} records in {policy.domain.size} cells: every matching of the records would have to be tried (at most "
            f"{MATCHED_RECORDS} in {MATCHED_CELLS}). Ask about the records that change.",
            code="move.matchings",
        )
    if len(first) != len(second) and not bottom:
        return Verdict(False, "the data sets have different sizes, and records neither appear nor vanish")
    problem = blowfish_problem(matrix, adjacency, bottom=bottom)
    reason = "no matching of the records has a secret pair"
    for pairs in matchings(first, second, len(keep) if bottom else None):
        found = decide(problem, [x for x, _ in pairs], [y for _, y in pairs])
        if found.neighbours:
            return Verdict(True, found.reason)
        reason = found.reason
    return Verdict(False, f"no matching of the records makes them neighbours; for the last one: {reason}")


def moves(policy: Policy, *, limit: int | None = None) -> Iterator[Move]:
    """List the moves of a policy lazily, one of each pair of opposite moves.

    Raises
    ------
    RefusedError
        When the moves cannot be listed (a huge domain, or too many minimal moves).
    """
    return islice(_moves(policy), limit)


def decompose(policy: Policy, a: Any, b: Any) -> list[Move]:
    """Split the difference of two tables into minimal moves; see :meth:`Policy.decompose`."""
    return Move.between(policy, a, b).decompose()


def _moves(policy: Policy) -> Iterator[Move]:
    if policy.definition == "edges":
        yield from _edge_moves(policy)
    elif policy.definition == "blowfish":
        yield from _blowfish_moves(policy)
    else:
        yield from _induced_moves(policy)


def _edge_moves(policy: Policy) -> Iterator[Move]:
    from policygraph.model.graphs import Bottom

    if policy.graph is None:
        return
    for u, v in policy.graph.edges():
        yield Move.of(policy, {u: 1} if isinstance(v, Bottom) else {u: -1, v: 1})


def _induced_moves(policy: Policy) -> Iterator[Move]:
    from policygraph.moves.graver.basis import graver_basis
    from policygraph.moves.strengths.positive import positive_moves

    matrix = policy.system.matrix().toarray()
    keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
    basis = graver_basis(matrix[:, keep], capacity=policy.domain.capacity)
    if policy.strength == "markov":
        basis = basis[(np.count_nonzero(basis, axis=1) <= 4) & (np.abs(basis).max(axis=1, initial=0) <= 1)]
    elif policy.strength == "positive":
        basis = positive_moves(matrix[:, keep], basis, capacity=policy.domain.capacity, basis=basis)
    for row in basis:
        move = Move.of(policy, {int(keep[at]): int(row[at]) for at in np.flatnonzero(row)})
        cap = policy.at_most_records
        if cap is None or max(move.added, move.removed) <= cap:
            yield move


def _blowfish_moves(policy: Policy) -> Iterator[Move]:
    from policygraph.moves.blowfish.longest import blowfish_moves
    from policygraph.moves.blowfish.problem import dense_problem

    if (secret := secret_cells(policy)) is not None:
        # Some of these may lead to no neighbour of any network; none is left out.
        yield from (move for move in _induced_moves(policy) if touches(dict(move.change), secret))
        return
    matrix, adjacency, keep = dense_problem(policy)
    if not len(keep):
        return  # every cell is structurally empty
    bottom = policy.graph is not None and policy.graph.bottom != "none"
    seen = set()
    for found in blowfish_moves(matrix, adjacency, bottom=bottom, at_most_records=policy.at_most_records):
        change = tuple((int(keep[int(cell)]), int(x)) for cell, x in found.change)  # type: ignore[call-overload]
        if tuple((cell, -x) for cell, x in change) not in seen:
            seen.add(change)
            yield Move.of(policy, dict(change))


def move_graph(policy: Policy, *, draw: Any = None) -> networkx.Graph[Any]:
    """Give the move graph of a policy; see :meth:`Policy.move_graph`."""
    if policy.graph is not None and policy.definition == "edges":
        if draw is not None:
            policy.graph.draw(draw)
        return policy.graph.to_networkx()
    if policy.domain.size > MOST_CELLS:
        raise RefusedError(
            f"a move graph of {policy.domain.size:,} cells: expected at most {MOST_CELLS:,}. "
            "Ask for the graph of a single move.",
            code="move.too-large",
        )
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    graph = facts_graph(policy, cells)
    if draw is not None:
        from policygraph.moves.drawing import draw_graph

        draw_graph(graph, draw)
    return graph


def neighbour_graph(policy: Policy, tables: Any = None, *, draw: Any = None) -> networkx.Graph[Any]:
    """Join the tables that are neighbours; see :meth:`Policy.neighbour_graph`."""
    import networkx

    listed = sorted(
        {tuple(policy._table(table).tolist()) for table in tables} if tables is not None else _fibre(policy)
    )
    if len(listed) > MOST_TABLES:
        raise RefusedError(
            f"{len(listed):,} tables: expected at most {MOST_TABLES}. Give the ones to compare, or publish more values.",
            code="move.too-large",
        )
    graph: networkx.Graph[Any] = networkx.Graph(kind="tables")
    for table in listed:
        policy.check_table(table)
        graph.add_node(table)
    # Only these two kinds of neighbours depend on more than the difference of the tables.
    alike = policy.definition != "blowfish" and policy.strength != "positive"
    known: dict[tuple[int, ...], bool] = {}
    for a, b in combinations(listed, 2):
        difference = tuple(y - x for x, y in zip(a, b, strict=True))
        joined = known.get(difference) if alike else None
        if joined is None:
            joined = bool(
                verdict(policy, np.array(a), np.array(b)) or verdict(policy, np.array(b), np.array(a))
            )
            known[difference] = joined
        if joined:
            graph.add_edge(a, b, move=Move.between(policy, a, b))
    if draw is not None:
        from policygraph.moves.drawing import draw_graph

        draw_graph(graph, draw, text=lambda table: _text(policy, table))
    return graph


def _text(policy: Policy, table: tuple[int, ...]) -> str:
    """The counts of a table row by row; the edges of a network, three in a line."""
    if isinstance(policy.domain, Network):
        width = 3
        words = [
            "-".join(map(str, policy.domain.cell(at))) for at, count in enumerate(table) for _ in range(count)
        ]
    else:
        width = policy.domain.shape[-1]
        words = list(map(str, table))
    return "\n".join(" ".join(words[at : at + width]) for at in range(0, len(words), width)) or "no edge"


def _fibre(policy: Policy) -> Iterator[tuple[int, ...]]:
    """All tables with the published values, at most one more than are compared."""
    matrix, values = policy.system.full_rows()
    published = [row for row, value in enumerate(values) if value is not None]
    rows = matrix.toarray()[published]
    size, top = policy.domain.size, policy.domain.capacity
    empty = set(policy.system.zeros.tolist())
    bounded = top is not None or all(cell in empty or np.any(rows[:, cell] > 0) for cell in range(size))
    if not bounded or np.any(rows < 0):
        raise InputError(
            "the published values leave infinitely many tables: expected values that bound every cell, such as "
            "Total(equals=3), or a list of tables.",
            code="move.tables",
        )
    # A row is settled at its last cell.
    last = [int(np.flatnonzero(row).max(initial=-1)) for row in rows]
    steps = found = 0
    stack: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((), tuple(int(values[row] or 0) for row in published))
    ]
    while stack:
        table, rest = stack.pop()
        steps += 1
        if found > MOST_TABLES or steps > MOST_STEPS:
            raise RefusedError(
                f"more than {MOST_TABLES} tables have these values. Give the ones to compare, or publish more values.",
                code="move.too-large",
            )
        at = len(table)
        if any(left and end < at for left, end in zip(rest, last, strict=True)):
            continue
        if at == size:
            found += 1
            yield table
            continue
        column = rows[:, at].tolist()
        most = min(
            [left // times for left, times in zip(rest, column, strict=True) if times]
            + [top] * (top is not None)
        )
        for count in range((0 if at in empty else most) + 1):
            stack.append(((*table, count), tuple(r - count * c for r, c in zip(rest, column, strict=True))))
