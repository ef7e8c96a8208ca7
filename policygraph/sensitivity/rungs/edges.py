"""Sensitivity without public facts: the largest change along one edge of the policy graph.

Theorem (theory of the P_G transform): without constraints the moves are plus and minus the columns of the incidence
matrix, so the sensitivity of W is the largest norm of a column of W P_G. For cuboids an edge matters only through the
attributes on which its ends differ, so no edge list is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.exact import brief
from policygraph.model.domain import Domain
from policygraph.model.graphs import PolicyGraph
from policygraph.model.graphs.differences import by_edges
from policygraph.model.graphs.forms import table
from policygraph.model.graphs.rules import Ball, BlockGrid, Complete, Product, encode
from policygraph.model.queries.base import Norm, Query
from policygraph.model.queries.cuboids import BlockQuery, CuboidQuery
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs.interactions import Largest, Steps, largest_difference

__all__ = [
    "all_difference_sets",
    "better",
    "cells",
    "edge_differing",
    "every_edge",
    "graph_of_problem",
    "interactions",
    "no_edge",
    "subsets_that_differ",
    "tables",
]

PAIRS = 2_000_000_000
"""Most edges that are looked at one by one."""
UNIQUE_COLUMNS = 4_000
"""Most different columns whose pairs are all compared for the full graph."""

MOST_SETS = 1 << 16
"""Most sets of attributes that an edge can change for which interactions are looked at."""
MOST_EDGES = 200_000_000
"""Most edges that are looked at one by one for the sets of attributes that they change."""


def graph_of_problem(problem: Problem) -> PolicyGraph:
    """The policy graph of a problem that has one."""
    if problem.policy.graph is None:
        raise RefusedError("a policy without graph has no edges.", code="sensitivity.graph")
    return problem.policy.graph


def no_edge(problem: Problem) -> Bracket[Witness] | None:
    """Without an edge there are no neighbours."""
    if graph_of_problem(problem).n_edges:
        return None
    return Bracket(0, 0, None, "closed form", "the policy graph has no edge, so nothing is secret")


def better(one: Bracket[Witness] | None, other: Bracket[Witness] | None) -> Bracket[Witness]:
    """The bracket of the larger of two changes, of which one may be missing."""
    if one is None or other is None:
        found = one or other
        if found is None:
            raise RefusedError("the policy graph has no edge.", code="sensitivity.graph")
        return found
    first, second = (one, other) if one.lower >= other.lower else (other, one)
    return (
        Bracket(
            max(one.upper, other.upper), first.lower, first.witness, first.method, first.reason, first.steps
        )
        if second.upper <= first.upper
        else Bracket(second.upper, first.lower, first.witness, second.method, second.reason, second.steps)
    )


def cells(problem: Problem) -> Bracket[Witness] | None:
    """Every cell by itself: an edge changes two cells, or one where a record appears."""
    if not problem.query.is_identity:
        return None
    graph = graph_of_problem(problem)
    if graph.rule.n_edges:
        u, v = (
            (int(end[0]) for end in next(iter(graph.rule.chunks(1))))
            if not isinstance(graph.rule, Complete)
            else (0, 1)
        )
        return Bracket(
            2,
            2,
            Witness.of_change({u: -1, v: 1}),
            "closed form",
            "one record leaves a cell and enters another",
        )
    u = int(graph.bottom_cells[0])
    return Bracket(1, 1, Witness.of_change({u: 1}), "closed form", "one record appears or vanishes")


def tables(problem: Problem) -> Bracket[Witness] | None:
    """Cuboids: an edge matters only through the attributes on which its ends differ."""
    query, graph, norm = problem.query, graph_of_problem(problem), problem.norm
    if not isinstance(query, CuboidQuery):
        return None
    best: Bracket[Witness] | None = None
    if graph.bottom != "none":
        u = int(graph.bottom_cells[0])
        value = int(query.column_norms(np.array([0]), norm)[0])
        best = Bracket(
            value,
            value,
            Witness.of_change({u: 1}),
            "closed form",
            "a record that appears or vanishes changes one cell of every table",
        )
    sets = graph.difference_sets()
    if sets:
        values = [query.difference_norm(names, norm) for names in sets]
        top = int(np.argmax(values))
        u, v = edge_differing(graph, sets[top])
        named = ", ".join(name for name in query.domain.names if name in sets[top])
        most = (
            f"the largest set of attributes that an edge can change is {{{named}}}"
            if len(sets) == 1
            else f"of the {len(sets)} largest sets of attributes that an edge can change, {{{named}}} changes most"
        )
        changed = Bracket(
            values[top],
            values[top],
            Witness.of_change({u: -1, v: 1}),
            "closed form over the attributes that one edge can change",
            f"an edge changes exactly the tables that contain an attribute on which its ends differ; "
            f"{most}, two cells in each table",
        )
        best = better(best, changed)
    return better(best, None)


def edge_differing(graph: PolicyGraph, names: frozenset[str]) -> tuple[int, int]:
    """An edge whose ends differ on exactly these attributes."""
    domain = graph.domain
    if not isinstance(domain, Domain):
        raise RefusedError("a network has no attributes.", code="sensitivity.graph")
    rule = graph.rule
    if isinstance(rule, (Complete, Ball)):
        return 0, encode([int(name in names) for name in domain.names], domain.shape)
    if isinstance(rule, (Product, BlockGrid)):
        low, high = [0] * len(domain.shape), [0] * len(domain.shape)
        for axis, name in enumerate(domain.names):
            if name in names:
                a, b = next(iter(rule.factors[axis].chunks(1)))
                low[axis], high[axis] = int(a[0]), int(b[0])
        return encode(low, domain.shape), encode(high, domain.shape)
    for u, v in graph.edge_chunks():
        same = np.ones(len(u), dtype=bool)
        for axis, (a, b) in enumerate(zip(domain.codes(u), domain.codes(v), strict=True)):
            same &= (a != b) == (domain.names[axis] in names)
        hits = np.flatnonzero(same)
        if len(hits):
            return int(u[hits[0]]), int(v[hits[0]])
    raise RefusedError(f"no edge differs on exactly {sorted(names)}.", code="sensitivity.edge")


def all_difference_sets(graph: PolicyGraph) -> list[frozenset[str]]:
    """Every set of attributes on which the two ends of some edge differ."""
    steps = subsets_that_differ(graph)
    if steps is not None and steps.number > MOST_SETS:
        raise RefusedError(
            f"{len(steps.names)} attributes can change at once, in {brief(steps.number)} sets: expected at most {MOST_SETS:,} that are looked at one by one. "
            "Measure cuboids instead.",
            code="sensitivity.sets",
        )
    if steps is not None:
        return list(steps)
    rule = graph.rule
    if rule.n_edges > MOST_EDGES:
        raise RefusedError(
            f"{rule.n_edges:,} edges are too many to look at one by one for interactions. Measure cuboids instead.",
            code="sensitivity.edges",
        )
    return sorted(by_edges(table(graph.domain, "interactions"), rule), key=sorted)


def interactions(problem: Problem) -> Bracket[Witness] | None:
    """Interactions of attributes: a step changes them only through the attributes on which the ends of the edge differ.

    Not monotonely, since two changes can cancel: every set that an edge can have counts, not only the largest ones.
    """
    query, graph, norm = problem.query, graph_of_problem(problem), problem.norm
    if not isinstance(query, BlockQuery):
        return None
    best: Bracket[Witness] = Bracket(0, 0, None, "closed form", "no edge changes an interaction")
    if graph.bottom != "none":
        cell = int(graph.bottom_cells[0])
        value = int(query.column_norms(np.array([cell]), norm)[0])
        best = Bracket(
            value,
            value,
            Witness.of_change({cell: 1}),
            "closed form",
            "a record that appears or vanishes changes every interaction by as much, whatever its cell",
        )
    steps = subsets_that_differ(graph)
    if steps is None:
        sets = all_difference_sets(graph)
        top = max(sets, key=lambda names: query.difference_norm(names, norm))
        value, number = query.difference_norm(top, norm), len(sets)
        found = Largest(value, value, top, "")
    else:
        found, number = largest_difference(query, steps, norm), steps.number
    if found.upper <= best.upper:
        return best
    edge = edge_differing(graph, found.differing)
    named = ", ".join(name for name in query.domain.names if name in found.differing)
    reason = (
        f"an edge changes interactions only through the attributes on which its ends differ; of {brief(number)} such "
        f"sets, {{{named}}} changes most"
    )
    method = "closed form over the attributes that one edge can change"
    if not found.exact:
        method = f"bound by {found.how}"
        reason = reason.replace(
            "changes most", "was found to change most; attributes were eliminated one by one for the bound"
        )
    elif found.how:
        reason += f" ({found.how})"
    changed = Bracket(found.upper, found.lower, Witness.of_change({edge[0]: -1, edge[1]: 1}), method, reason)
    return better(best, changed) if best.lower > changed.lower else changed


def subsets_that_differ(graph: PolicyGraph) -> Steps | None:
    """The sets of attributes on which the ends of an edge differ, where they are all small subsets of some attributes; None for others.

    Examples
    --------
    >>> domain = Domain({"a": 2, "b": 3, "c": 1})
    >>> subsets_that_differ(PolicyGraph.full(domain)), subsets_that_differ(PolicyGraph.attribute(domain))
    (Steps(names=('a', 'b'), most=2), Steps(names=('a', 'b'), most=1))
    """
    rule, domain = graph.rule, graph.domain
    if not isinstance(domain, Domain):
        raise RefusedError("a network has no attributes.", code="sensitivity.graph")
    several = tuple(name for name, n in zip(domain.names, domain.shape, strict=True) if n > 1)
    if rule.n_edges == 0:
        return Steps((), 0)
    if isinstance(rule, (Product, BlockGrid)):
        names = tuple(n for n, part in zip(domain.names, rule.factors, strict=True) if part.n_edges)
        return Steps(names, 1 if isinstance(rule, Product) else len(names))
    if isinstance(rule, Complete):
        return Steps(several, len(several))
    if isinstance(rule, Ball):
        return Steps(several, min(rule.together, len(several)))
    return None


def every_edge(problem: Problem) -> Bracket[Witness]:
    """Any query: the columns of all edges, or of all pairs of different columns for the full graph."""
    query, graph, norm = problem.query, graph_of_problem(problem), problem.norm
    best: Bracket[Witness] | None = None
    if graph.bottom != "none":
        cells = np.fromiter(graph.bottom_cells, dtype=np.int64)
        norms = query.column_norms(cells, norm)
        at = int(np.argmax(norms))
        value = int(norms[at])
        best = Bracket(
            value,
            value,
            Witness.of_change({int(cells[at]): 1}) if value else None,
            "largest column",
            "a record that appears or vanishes changes the answer by its column",
        )
    if graph.rule.n_edges == 0:
        return better(best, None)
    if isinstance(graph.rule, Complete):
        return better(best, _all_pairs(query, norm, problem.effort))
    return better(best, _each_edge(query, graph, norm, problem.effort))


def _each_edge(query: Query, graph: PolicyGraph, norm: Norm, effort: Effort) -> Bracket[Witness]:
    value, pair = -1, (0, 0)
    for u, v in graph.edge_chunks(1 << 16, limit=PAIRS):
        norms = query.pair_norms(u, v, norm)
        at = int(np.argmax(norms))
        if int(norms[at]) > value:
            value, pair = int(norms[at]), (int(u[at]), int(v[at]))
        effort.spend(10 + len(u) // 4)
        if effort.done:
            upper = _column_bound(query, norm)[0]
            return Bracket(
                max(upper, value),
                value,
                Witness.of_change({pair[0]: -1, pair[1]: 1}),
                f"bound by columns (not all edges were tried: {effort.ended_by})",
                "a change along an edge is a difference of two columns, each no longer than the longest column",
            )
    return Bracket(
        value,
        value,
        Witness.of_change({pair[0]: -1, pair[1]: 1}) if value else None,
        "all edges",
        "every column of W P_G was computed in integers",
    )


def _columns(query: Query) -> Any:
    return query.columns(np.arange(query.domain.size, dtype=np.int64))


def _column_bound(query: Query, norm: Norm) -> tuple[int, str]:
    """Bounds for any two columns: row ranges, or twice the longest column."""
    matrix = _columns(query)
    top = np.asarray(matrix.max(axis=1).todense(), dtype=np.int64).ravel()
    low = np.asarray(matrix.min(axis=1).todense(), dtype=np.int64).ravel()
    spread = top - low
    by_rows = int(spread.sum()) if norm == "l1" else int((spread.astype(object) ** 2).sum())
    longest = int(query.column_norms(np.arange(query.domain.size), norm).max())
    by_columns = 2 * longest if norm == "l1" else 4 * longest
    if by_rows <= by_columns:
        return by_rows, "a row changes by at most the difference of its largest and smallest entry"
    return by_columns, "a difference of two columns is at most twice as long as the longest column"


def _all_pairs(query: Query, norm: Norm, effort: Effort) -> Bracket[Witness]:
    """Full graph: the diameter of the set of columns."""
    n = query.domain.size
    upper, why = _column_bound(query, norm)
    u, v, lower = 0, min(1, n - 1), -1
    cells = np.arange(n, dtype=np.int64)
    start = 0
    for _ in range(8):  # walk to the farthest column and back: a good pair at little cost
        norms = query.pair_norms(np.full(n, start), cells, norm)
        far = int(np.argmax(norms))
        if int(norms[far]) <= lower:
            break
        lower, u, v, start = int(norms[far]), start, far, far
    if lower < upper:
        kept = _unique_columns(query)
        if len(kept) <= UNIQUE_COLUMNS:
            for i, at in enumerate(kept[:-1]):
                effort.spend(10 + (len(kept) - i) // 4)
                if effort.done:
                    why = f"{why}; {effort.ended_by}"
                    break
                rest = kept[i + 1 :]
                norms = query.pair_norms(np.full(len(rest), at), rest, norm)
                far = int(np.argmax(norms))
                if int(norms[far]) > lower:
                    lower, u, v = int(norms[far]), int(at), int(rest[far])
                if lower == upper:
                    break
            else:
                upper, why = lower, "all pairs of different columns were compared in integers"
    return Bracket(
        max(upper, lower),
        lower,
        Witness.of_change({u: -1, v: 1}) if lower else None,
        "diameter of the columns" if upper == lower else "bound on the diameter of the columns",
        why,
    )


def _unique_columns(query: Query) -> Any:
    matrix = _columns(query).tocsc()
    matrix.sort_indices()
    seen: dict[bytes, int] = {}
    for cell in range(matrix.shape[1]):
        part = slice(matrix.indptr[cell], matrix.indptr[cell + 1])
        seen.setdefault(matrix.indices[part].tobytes() + b"|" + matrix.data[part].tobytes(), cell)
    return np.array(list(seen.values()), dtype=np.int64)
