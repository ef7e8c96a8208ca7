"""Sensitivity under a policy graph and exact public facts together (Blowfish with constraints).

Definition 4.1 of He, Machanavajjhala and Ding 2014, with repairs along non-edges; ``docs/explanation/proofs/blowfish-constraints.md``
shows that neighbours are the minimal zero-sum sets of record changes that contain a secret pair. In a simple network with secret
edges neighbours differ by a minimal move that touches a secret pair (``docs/explanation/proofs/networks.md``, Theorem 8), so that what
is proved for all minimal moves is a bound; few node pairs are decided by listing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.graphs import PolicyGraph
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints
from policygraph.moves.blowfish.problem import dense_problem
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.degrees.secret_pairs import find_repair, secret_cells, touches
from policygraph.moves.graver.lift import IncompleteBasisError
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs.determined import public_rows

__all__ = [
    "capped_records",
    "graph_alone",
    "minimal_sets",
    "no_secret_pairs",
    "one_margin",
    "pair_of",
    "refuse",
    "secret_node_pairs",
    "without_values",
]

DENSE_CELLS = 400
"""Most cells for which the adjacency is written out and minimal sets of changes are listed."""
CLASSES = 200_000
LISTED_PAIRS = 15
"""Up to so many node pairs all minimal moves are listed."""
TRIED = 40
"""Most moves for which it is tried to show that they lead to a neighbour."""
WHY = "two networks that must look alike differ by a minimal move that touches a secret pair (docs/explanation/proofs/networks.md, Theorem 8)"


def _graph(policy: Policy) -> PolicyGraph:
    if policy.graph is None:
        raise RefusedError("a policy without graph is not a Blowfish policy.", code="sensitivity.graph")
    return policy.graph


def without_values(problem: Problem) -> Bracket[Witness] | None:
    """Published values are not used: fewer data sets have them, so that the answer without them is an upper bound."""
    if not problem.policy.system.has_values:
        return None
    found = problem.but(without="published values beside a graph").climb()
    return found.unattained(
        "the published values were not used: neighbours with these values are among all neighbours"
    )


def no_secret_pairs(problem: Problem) -> Bracket[Witness] | None:
    """A graph without edges."""
    if _graph(problem.policy).n_edges:
        return None
    return Bracket(0, 0, None, "no secret pairs", "without secret pairs no two data sets are neighbours")


def graph_alone(problem: Problem) -> Bracket[Witness] | None:
    """No facts but those that the graph keeps by itself: the moves are its edges."""
    policy = problem.policy
    if len(policy.system.zeros):
        return None
    facts = policy.system.needed
    alone = problem.but(policy=Policy(policy.domain, policy.graph))
    if not facts:
        return alone.climb()
    only_total = all(isinstance(f, Total) or (isinstance(f, Cuboid) and not f.names) for f in facts)
    if not only_total or _graph(policy).bottom != "none":
        return None
    note = "a graph without bottom keeps the total by itself, so that the public total adds nothing"
    return alone.climb().after(note)


def secret_node_pairs(problem: Problem) -> Bracket[Witness] | None:
    """Secret edges of a simple network: minimal moves that touch a secret pair, listed, or bounded by all minimal moves."""
    policy = problem.policy
    secret = secret_cells(policy)
    if secret is None:
        return None
    if policy.domain.size <= LISTED_PAIRS and not policy.system.has_values:
        with suppress(IncompleteBasisError):
            return _listed(problem, secret)
    alone = Policy(policy.domain, None, policy.constraints, at_most_records=policy.at_most_records)
    found = problem.but(policy=alone).climb()
    if found.witness is not None:
        found = _keep_witness(found, policy, secret, problem.effort)
    return replace(found, reason=f"{WHY}; {found.reason}")


def _keep_witness(found: Bracket[Witness], policy: Policy, secret: Ints, effort: Effort) -> Bracket[Witness]:
    """The bracket with its witness, if that is a pair of neighbours under the policy graph as well."""
    witness = found.witness
    if witness is None:
        return found
    changed = touches(witness.change, secret)
    try:
        good = bool(changed) and not find_repair(policy, dict(witness.before), changed, secret, effort=effort)
    except RefusedError:
        good = False
    if good:
        return found
    bound = replace(found, method="bound by the minimal moves")
    return bound.unattained("the longest move found does not lead to a neighbour, or that was not decided")


def _listed(problem: Problem, secret: Ints) -> Bracket[Witness]:
    from policygraph.moves.graver.basis import graver_basis

    query, policy, norm, effort = problem.query, problem.policy, problem.norm, problem.effort.share(1, 2)
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    matrix = policy.system.matrix()[:, cells].toarray()
    cap = policy.at_most_records
    ranked: list[tuple[int, dict[int, int]]] = []
    for row in graver_basis(matrix, capacity=1, effort=effort):
        change = {int(cells[at]): int(row[at]) for at in np.flatnonzero(row)}
        added = sum(x > 0 for x in change.values())
        if touches(change, secret) and (cap is None or max(added, len(change) - added) <= cap):
            ranked.append((query.change_norm(change, norm), change))
    ranked.sort(key=lambda pair: -pair[0])
    upper = ranked[0][0] if ranked else 0
    reason = f"{WHY}; all {len(ranked)} of them were listed"
    for value, change in ranked[:TRIED]:
        if not value:
            break
        for table in _tables(policy, change):
            if effort.done:
                return Bracket(upper, 0, None, "enumeration of minimal moves", f"{reason}; {effort.ended_by}")
            try:
                repaired = find_repair(policy, table, touches(change, secret), secret, effort=effort)
            except RefusedError:
                continue  # not decided: no witness, and the bound stands
            if not repaired:
                pair = Witness.of_change(change, table)
                return Bracket(upper, value, pair, "enumeration of minimal moves", reason)
    return Bracket(upper, 0, None, "enumeration of minimal moves", reason)


def _tables(policy: Policy, change: dict[int, int]) -> list[dict[int, int]]:
    """Networks that allow a change: with its removed edges alone, and with all other edges as well."""
    zeros = set(policy.system.zeros.tolist())
    others = {c: 1 for c in range(policy.domain.size) if c not in change and c not in zeros}
    removed = {c: 1 for c, x in change.items() if x < 0}
    return [removed, removed | others]


def minimal_sets(problem: Problem) -> Bracket[Witness] | None:
    """Few cells: minimal sets of record changes that contain a secret pair, by search."""
    from policygraph.moves.blowfish.longest import longest_blowfish

    query, policy = problem.query, problem.policy
    if policy.domain.capacity is not None or policy.domain.size > DENSE_CELLS:
        return None
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
        norm=problem.norm,
        at_most_records=policy.at_most_records,
        effort=problem.effort,
    )
    return bracket.in_terms(pair_of(bracket, keep.tolist()))


def pair_of(bracket: Bracket[Any], cells: Sequence[int]) -> Witness | None:
    """The data sets of a Blowfish move, whose vertices stand for the given cells; bottom stands for none."""
    if bracket.witness is None or not bracket.lower:
        return None
    tables: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for transition in bracket.witness.transitions:
        for table, end in zip(tables, transition, strict=True):
            if isinstance(end, (int, np.integer)) and 0 <= int(end) < len(cells):
                cell = int(cells[int(end)])
                table[cell] = table.get(cell, 0) + 1
    return Witness.of_tables(*tables)


def one_margin(problem: Problem) -> Bracket[Witness] | None:
    """One public margin on a domain of any size: changes run through its cells in a simple cycle."""
    from policygraph.moves.blowfish.longest import ClassFacts, longest_disjoint

    policy = problem.policy
    domain, graph = policy.domain, _graph(policy)
    facts = policy.system.needed
    if len(facts) != 1 or not problem.query.is_identity or problem.norm != "l1":
        return None
    if graph.bottom != "none" or len(policy.system.zeros):
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

    from policygraph.model.graphs.rules import Complete

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
        effort=problem.effort,
    )
    return bracket.in_terms(pair_of(bracket, range(domain.size)))


def capped_records(problem: Problem) -> Bracket[Witness] | None:
    """A cap bounds the records that change, and each changes the answer by one column."""
    query, norm, cap = problem.query, problem.norm, problem.policy.at_most_records
    if cap is None:
        return None
    wide = int(query.column_norms(np.arange(problem.policy.domain.size), norm).max())
    upper = 2 * cap * wide if norm == "l1" else 4 * cap * cap * wide
    reason = f"at most {cap} records are added and {cap} removed, each changes the answer by one column of the query"
    return Bracket(upper, 0, None, "bound by the number of records", reason)


def refuse(problem: Problem) -> Bracket[Witness] | None:
    """Say that nothing is proved, and what would help."""
    domain = problem.policy.domain
    if domain.capacity is not None:
        raise RefusedError(
            f"no proved sensitivity for {domain!r} with edges of the policy graph between node pairs and public facts "
            "together: the theorem on such neighbours is for tables, where a cell holds any number of records. Say which edges "
            "are secret (secret_edges), leave the graph out (induced neighbours), or set at_most_records.",
            code="sensitivity.capacity",
        )
    raise RefusedError(
        f"no proved sensitivity for {domain!r} with a policy graph and these public facts: more than "
        f"{DENSE_CELLS} cells can be handled only under one public margin. Coarsen the domain, make fewer facts public, "
        "or set at_most_records.",
        code="sensitivity.refused",
    )
