"""Sensitivity under a policy graph and exact public facts together (Blowfish with constraints).

Definition 4.1 of He, Machanavajjhala and Ding 2014, with repairs along non-edges; ``docs/explanation/proofs/blowfish-constraints.md``
shows that neighbours are the minimal zero-sum sets of record changes that contain a secret pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.graphs import PolicyGraph
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.moves.blowfish.problem import dense_problem
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.degrees.secret_pairs import secret_cells
from policygraph.sensitivity.rungs.determined import public_rows
from policygraph.sensitivity.rungs.edges import along_edges
from policygraph.sensitivity.rungs.secret_pairs import secret_pairs

__all__ = ["coupled"]

DENSE_CELLS = 400
"""Most cells for which the adjacency is written out and minimal sets of changes are listed."""
CLASSES = 200_000


def coupled(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness]:
    """Largest change of a query between Blowfish neighbours under constraints."""
    found = _coupled(query, policy, norm, effort)
    if policy.system.has_values:
        # Fewer data sets have these values, so that the answer without them is an upper bound.
        note = "the published values were not used: neighbours with these values are among all neighbours"
        return replace(found, lower=0, witness=None, steps=(*found.steps, note))
    return found


def _coupled(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness]:
    graph = _graph(policy)
    if graph.n_edges == 0:
        return Bracket(0, 0, None, "no secret pairs", "without secret pairs no two data sets are neighbours")
    if len(policy.system.zeros) == policy.domain.size:
        return Bracket(0, 0, None, "closed form", "every cell is structurally empty")
    facts = policy.system.needed
    if not facts and not len(policy.system.zeros):
        return along_edges(query, policy, norm, effort)
    only_total = all(isinstance(f, Total) or (isinstance(f, Cuboid) and not f.names) for f in facts)
    if only_total and graph.bottom == "none" and not len(policy.system.zeros):
        note = "a graph without bottom keeps the total by itself, so that the public total adds nothing"
        return along_edges(query, policy, norm, effort).after(note)
    if (secret := secret_cells(policy)) is not None:
        return secret_pairs(query, policy, norm, effort, secret)
    if policy.domain.capacity is None:
        if policy.domain.size <= DENSE_CELLS:
            return _dense(query, policy, norm, effort)
        found = _one_margin(query, policy, norm, effort)
        if found is not None:
            return found
    cap = policy.at_most_records
    if cap is not None:
        wide = int(query.column_norms(np.arange(policy.domain.size), norm).max())
        upper = 2 * cap * wide if norm == "l1" else 4 * cap * cap * wide
        reason = f"at most {cap} records are added and {cap} removed, each changes the answer by one column of the query"
        return Bracket(upper, 0, None, "bound by the number of records", reason)
    if policy.domain.capacity is not None:
        raise RefusedError(
            f"no proved sensitivity for {policy.domain!r} with edges of the policy graph between node pairs and public facts "
            "together: the theorem on such neighbours is for tables, where a cell holds any number of records. Say which edges "
            "are secret (secret_edges), leave the graph out (induced neighbours), or set at_most_records.",
            code="sensitivity.capacity",
        )
    raise RefusedError(
        f"no proved sensitivity for {policy.domain!r} with a policy graph and these public facts: more than "
        f"{DENSE_CELLS} cells can be handled only under one public margin. Coarsen the domain, make fewer facts public, "
        "or set at_most_records.",
        code="sensitivity.refused",
    )


def _graph(policy: Policy) -> PolicyGraph:
    if policy.graph is None:
        raise RefusedError("a policy without graph is not a Blowfish policy.", code="sensitivity.graph")
    return policy.graph


def _dense(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness]:
    from policygraph.moves.blowfish.longest import longest_blowfish

    matrix, adjacency, keep = dense_problem(policy)
    asked = None if query.is_identity else np.asarray(query.columns(keep).toarray(), dtype=np.int64)
    known = None if asked is None else public_rows(query, policy)
    if asked is not None and known is not None:
        asked = asked[~known]
    bracket = longest_blowfish(
        matrix,
        adjacency,
        bottom=_graph(policy).bottom != "none",
        query=asked,
        norm=norm,
        at_most_records=policy.at_most_records,
        effort=effort,
    )
    return _found(bracket, policy, [int(c) for c in keep])


def _found(bracket: Any, policy: Policy, cells: Any) -> Bracket[Witness]:
    witness = None
    if bracket.witness is not None and bracket.lower:
        before: dict[int, int] = {}
        after: dict[int, int] = {}
        for x, y in bracket.witness.transitions:
            for table, end in ((before, x), (after, y)):
                if isinstance(end, (int, np.integer)) and 0 <= int(end) < len(cells):
                    cell = int(cells[int(end)])
                    table[cell] = table.get(cell, 0) + 1
        witness = Witness(tuple(sorted(before.items())), tuple(sorted(after.items())))
    return Bracket(int(bracket.upper), int(bracket.lower), witness, bracket.method, bracket.reason)


def _one_margin(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness] | None:
    """One public margin on a domain of any size: changes run through its cells in a simple cycle."""
    from policygraph.moves.blowfish.longest import ClassFacts, longest_disjoint

    domain, graph = policy.domain, _graph(policy)
    facts = policy.system.needed
    simple = (
        isinstance(domain, Domain) and len(facts) == 1 and isinstance(facts[0], Cuboid) and query.is_identity
    )
    if not simple or graph.bottom != "none" or len(policy.system.zeros) or norm != "l1":
        return None
    fact = facts[0]
    if not isinstance(domain, Domain) or not isinstance(fact, Cuboid) or fact.n_rows(domain) > CLASSES:
        return None
    margin = domain.project(fact.names)
    inside = domain.size // margin.size

    def label(cell: Any) -> int:
        codes = domain.codes(np.array([cell]))
        at = 0
        for name in margin.names:
            at = at * domain.shape[domain.axis(name)] + int(codes[domain.axis(name)][0])
        return at

    def members(at: int) -> tuple[int, ...]:
        fixed = dict(zip(margin.names, (int(c[0]) for c in margin.codes(np.array([at]))), strict=True))
        grids = [
            np.array([fixed[n]]) if n in fixed else np.arange(s)
            for n, s in zip(domain.names, domain.shape, strict=True)
        ]
        cells = np.zeros(1, dtype=np.int64)
        for size, codes in zip(domain.shape, grids, strict=True):
            cells = (cells[:, None] * size + codes[None, :]).ravel()
        return tuple(cells.tolist())

    def pairs(crossing: bool) -> Iterator[tuple[int, int]]:
        for u, v in graph.edge_chunks(1 << 14):
            differs = np.zeros(len(u), dtype=bool)
            for name in margin.names:
                axis = domain.axis(name)
                differs |= domain.codes(u)[axis] != domain.codes(v)[axis]
            chosen = differs if crossing else ~differs
            yield from zip(u[chosen].tolist(), v[chosen].tolist(), strict=True)

    from policygraph.model.graphs.simple import Complete

    complete = isinstance(graph.rule, Complete)
    bracket = longest_disjoint(
        ClassFacts(
            sizes=(inside,) * margin.size,
            members=members,
            is_edge=lambda x, y: graph.has_edge(x, y),  # type: ignore[arg-type]
            crossing=(lambda: iter([(members(0)[0], members(1)[0])]))
            if complete and margin.size > 1
            else lambda: pairs(True),
            inside=(lambda: iter([(members(0)[0], members(0)[1])]))
            if complete and inside > 1
            else lambda: pairs(False),
            label=label,
            complete=complete,
        ),
        at_most_records=policy.at_most_records,
        effort=effort,
    )
    return _found(bracket, policy, range(domain.size))
