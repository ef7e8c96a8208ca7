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
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.model.constraints.tables import Cuboid, StructuralZero, Total
from policygraph.model.domain import Domain
from policygraph.model.graphs import PolicyGraph
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.moves.arcs import LONGEST_SWAPS, longest_arcs
from policygraph.moves.blowfish.problem import dense_problem
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.degrees.secret_pairs import find_repair, secret_cells, touches
from policygraph.moves.graver.lift import IncompleteBasisError
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs.determined import public_rows

__all__ = [
    "capped_records",
    "cycles_through_counts",
    "graph_alone",
    "kept_facts",
    "minimal_sets",
    "no_secret_pairs",
    "one_margin",
    "pair_of",
    "refuse",
    "secret_node_pairs",
    "short_margins",
    "without_values",
]

DENSE_CELLS = 400
"""Most cells for which the adjacency is written out and minimal sets of changes are listed."""
CLASSES = 200_000
KEPT_CELLS = 1_000_000
"""Most cells whose public sums are compared one by one."""
KEPT_EDGES = 50_000_000
"""Most edges that are tried on the facts one by one."""
MOST_CLASSES = 2_000
"""Most classes that a cycle is sought through."""
AFFORDABLE = (
    "Records that change only to repair the facts count under Definition 4.1, and under facts that share cells their number can grow exponentially with the sizes; "
    "promises that are affordable: at_most_records (a cap on the records that are added and removed), induced neighbours (no graph), or a graph whose edges keep the facts"
)
"""What to promise instead where the literal definition is hopeless."""
HOPELESS = 2
"""How many times the attained value a bound may be before it is called hopeless."""
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


def kept_facts(problem: Problem) -> Bracket[Witness] | None:
    """Facts that no secret pair changes: neighbours differ by one record along an edge, at any size.

    An edge keeps the facts by itself, so that a minimal set of changes with an edge is that edge
    (``docs/explanation/proofs/blowfish-constraints.md``, section 2).
    """
    policy, graph = problem.policy, _graph(problem.policy)
    if policy.domain.capacity is not None or (policy.system.sums and graph.bottom != "none"):
        return None
    if not _keeps(policy, graph, problem.effort):
        return None
    note = "no secret pair changes a public fact, so that neighbours differ by one record along an edge"
    alone = problem.but(policy=Policy(policy.domain, graph)).climb().after(note)
    zeros = policy.system.zeros
    if not len(zeros):
        return alone
    if alone.witness is not None and not np.isin(list(alone.witness.change), zeros).any():
        return alone
    return _between_possible(problem, graph, zeros, alone)


def _keeps(policy: Policy, graph: PolicyGraph, effort: Effort) -> bool:
    """Whether every edge between cells that can hold records is proved to keep all public sums."""
    if not policy.system.sums:
        return True
    tables = [fact for fact in policy.system.sums if isinstance(fact, (Cuboid, Total))]
    if len(tables) == len(policy.system.sums):
        fixed = {name for fact in tables if isinstance(fact, Cuboid) for name in fact.names}
        with suppress(RefusedError):
            if not any(names & fixed for names in graph.difference_sets()):
                return True
    if policy.domain.size > KEPT_CELLS or graph.rule.n_edges > KEPT_EDGES:
        return False
    labels = _labels(policy)
    possible = np.ones(policy.domain.size, dtype=np.bool_)
    possible[policy.system.zeros] = False
    for u, v in graph.edge_chunks(1 << 16):
        effort.spend(10 + len(u) // 16)
        if effort.done or np.any((labels[u] != labels[v]) & possible[u] & possible[v]):
            return False
    return True


def _labels(policy: Policy) -> Ints:
    """Numbers that are equal for cells with equal public sums."""
    matrix = policy.system.matrix().tocsc(copy=True)
    # A zero that is stored is no part of a sum: it must not set cells apart.
    matrix.eliminate_zeros()
    matrix.sort_indices()
    seen: dict[bytes, int] = {}
    made = np.empty(policy.domain.size, dtype=np.int64)
    for cell in range(policy.domain.size):
        part = slice(matrix.indptr[cell], matrix.indptr[cell + 1])
        key = matrix.indices[part].tobytes() + b"|" + matrix.data[part].tobytes()
        made[cell] = seen.setdefault(key, len(seen))
    return made


def _between_possible(
    problem: Problem, graph: PolicyGraph, zeros: Ints, alone: Bracket[Witness]
) -> Bracket[Witness]:
    """The largest change along an edge whose ends can both hold records; all edges together bound it."""
    query, norm, effort = problem.query, problem.norm, problem.effort
    value, change = 0, dict[int, int]()
    possible = np.ones(problem.policy.domain.size, dtype=np.bool_)
    possible[zeros] = False
    if graph.bottom != "none":
        cells = np.fromiter(graph.bottom_cells, dtype=np.int64)
        cells = cells[possible[cells]]
        norms = query.column_norms(cells, norm)
        if len(cells) and int(norms.max()) > 0:
            value, change = int(norms.max()), {int(cells[int(np.argmax(norms))]): 1}
    for u, v in graph.without_bottom().edge_chunks(1 << 14):
        if value == alone.upper or effort.done:
            break
        effort.spend(10 + len(u) // 4)
        open_ = possible[u] & possible[v]
        if open_.any():
            u, v = u[open_], v[open_]
            norms = query.pair_norms(u, v, norm)
            at = int(np.argmax(norms))
            if int(norms[at]) > value:
                value, change = int(norms[at]), {int(u[at]): -1, int(v[at]): 1}
    else:
        alone = Bracket(
            value,
            0,
            None,
            "all edges",
            "every edge between cells that can hold records was tried",
            alone.steps,
        )
    witness = Witness.of_pairs([_as_pair(change)]) if value else None
    return replace(alone, lower=value, witness=witness)


def _as_pair(change: dict[int, int]) -> tuple[int | None, int | None]:
    """The one record of a change along an edge."""
    lost, gained = ([cell for cell, x in change.items() if x * sign > 0] for sign in (-1, 1))
    return (lost[0] if lost else None, gained[0] if gained else None)


def cycles_through_counts(problem: Problem) -> Bracket[Witness] | None:
    """Every cell in one public count at most: a change enters and leaves each class of cells once, so that the widest pairs of the classes add up.

    Any query, structural zeros and bottom included (``docs/explanation/proofs/blowfish-constraints.md``, section 5).
    """
    policy, query, norm, work = problem.policy, problem.query, problem.norm, problem.effort
    graph, size = _graph(policy), policy.domain.size
    if policy.domain.capacity is not None or size > KEPT_CELLS:
        return None
    if size <= DENSE_CELLS and query.is_identity:
        return None  # the search below settles these
    matrix = policy.system.matrix().tocsc()
    matrix.eliminate_zeros()
    if not matrix.nnz or int(np.diff(matrix.indptr).max()) > 1:
        return None
    labels = _labels(policy)
    possible = np.setdiff1d(np.arange(size, dtype=np.int64), policy.system.zeros)
    order = possible[np.argsort(labels[possible], kind="stable")]
    members = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    columns = {
        (matrix.indices[matrix.indptr[cells[0]]], matrix.data[matrix.indptr[cells[0]]])
        for cells in members
        if matrix.indptr[cells[0]] < matrix.indptr[cells[0] + 1]
    }
    if len({row for row, _ in columns}) < len(columns):
        return None  # a count with several weights: the classes are not affinely independent
    bottom = graph.bottom != "none"
    widths, pairs = [], []
    for cells in members:
        loose = bottom and matrix.indptr[cells[0]] == matrix.indptr[cells[0] + 1]
        width, pair = _widest(problem, cells, loose)
        widths.append(width)
        if pair is not None:
            pairs.append((width, pair))
    cap = policy.at_most_records
    if query.is_identity:
        upper = sum(widths) if cap is None else min(sum(widths), 2 * cap)
    else:
        widths = sorted(widths, reverse=True)[:cap]
        # the root of a sum of squares, or the mean of the roots by Cauchy and Schwarz
        apart = norm == "l1" or _apart(problem, members)
        upper = sum(widths) if apart else len(widths) * sum(widths)
    witness = _cycle_of_pairs(problem, labels, [pair for _, pair in sorted(pairs, reverse=True)][:cap])
    lower = 0 if witness is None else query.change_norm(witness.change, norm)
    reason = (
        "a change runs through the classes of cells with equal public counts in a simple cycle and enters and leaves each once, "
        "so that the widest pairs of the classes add up"
    )
    found = Bracket(upper, lower, witness if lower else None, "disjoint counts", reason)
    if found.exact or size > DENSE_CELLS:
        return found
    search = problem.but(without="cycles through counts", effort=work).climb()
    high, low = min(found, search, key=lambda b: b.upper), max(search, found, key=lambda b: b.lower)
    return replace(high, lower=low.lower, witness=low.witness)


def _widest(problem: Problem, cells: Ints, loose: bool) -> tuple[int, tuple[int, int] | None]:
    """The largest difference of two columns of some cells (and of bottom), or a bound on it, and two cells that differ much."""
    query, norm, work = problem.query, problem.norm, problem.effort
    if query.is_identity:
        best = 2 if len(cells) > 1 else int(loose)
        return best, (int(cells[0]), int(cells[1])) if len(cells) > 1 else None
    norms = query.column_norms(cells, norm)
    value, pair = (int(norms.max()) if loose else 0), None
    longest = int(norms.max())
    for at in range(len(cells) - 1):
        rest = cells[at + 1 :]
        work.spend(4 + len(rest) // 8)
        if work.done:
            return longest * (2 if norm == "l1" else 4), pair
        gaps = query.pair_norms(np.full(len(rest), cells[at]), rest, norm)
        far = int(np.argmax(gaps))
        if int(gaps[far]) > value:
            value, pair = int(gaps[far]), (int(cells[at]), int(rest[far]))
    return value, pair


def _apart(problem: Problem, members: list[Ints]) -> bool:
    """Whether no answer counts cells of two classes."""
    taken: set[int] = set()
    for cells in members:
        rows = set(np.unique(problem.query.columns(cells).tocoo().row).tolist())
        if rows & taken:
            return False
        taken |= rows
    return True


def _cycle_of_pairs(problem: Problem, labels: Ints, pairs: list[tuple[int, int]]) -> Witness | None:
    """A cycle that leaves classes at one cell of a pair and enters them at the other, with one secret pair or in a complete graph."""
    from policygraph.model.graphs.rules import Complete

    query, norm, graph = problem.query, problem.norm, _graph(problem.policy).without_bottom()
    best: tuple[int, list[tuple[int | None, int | None]]] = (0, [])

    def look(found: list[tuple[int, int]]) -> None:
        nonlocal best
        change: dict[int, int] = {}
        for x, y in found:
            change[x], change[y] = change.get(x, 0) - 1, change.get(y, 0) + 1
        value = query.change_norm({c: n for c, n in change.items() if n}, norm) if found else 0
        if value > best[0]:
            best = value, list(found)

    # one record along an edge inside its class
    try:
        edges = graph.edge_chunks(1 << 12)
    except RefusedError:
        # Too many to list: the bound does not rest on what attains it.
        edges = iter(())
    for tried, (u, v) in enumerate(edges):
        inside = np.flatnonzero(labels[u] == labels[v])
        if len(inside):
            gaps = query.pair_norms(u[inside], v[inside], norm)
            at = inside[int(np.argmax(gaps))]
            if not np.isin([u[at], v[at]], problem.policy.system.zeros).any():
                look([(int(u[at]), int(v[at]))])
        if tried > 64 or problem.effort.done:
            break
    turned: list[tuple[int, int]] = []
    total: dict[int, int] = {}
    for pair in pairs[:MOST_CLASSES]:
        # each class is turned so that the changes add up
        ways = []
        for x, y in (pair, pair[::-1]):
            change = dict(total)
            change[x], change[y] = change.get(x, 0) - 1, change.get(y, 0) + 1
            ways.append((query.change_norm(change, norm), (x, y), change))
        _, way, total = max(ways, key=lambda one: one[0])
        turned.append(way)
    if isinstance(graph.rule, Complete):
        look(
            [(x, turned[(at + 1) % len(turned)][1]) for at, (x, _) in enumerate(turned)]
            if len(turned) > 1
            else []
        )
    else:
        for found in _with_one_edge(graph, labels, turned, problem):
            look(found)
    return Witness.of_pairs(best[1]) if best[0] else None


def _with_one_edge(
    graph: PolicyGraph, labels: Ints, turned: list[tuple[int, int]], problem: Problem
) -> Iterator[list[tuple[int, int]]]:
    """Orders of the classes in which one record changes along an edge and the others along non-edges."""
    if len(turned) < 2:
        return
    crossing: list[tuple[int, int]] = []
    zeros = problem.policy.system.zeros
    for tried, (u, v) in enumerate(graph.edge_chunks(1 << 12)):
        some = np.flatnonzero((labels[u] != labels[v]) & ~np.isin(u, zeros) & ~np.isin(v, zeros))
        crossing += [(int(u[at]), int(v[at])) for at in some[:2]]
        if tried > 8 or len(crossing) >= 4:
            break
    by_class = {int(labels[x]): (x, y) for x, y in turned}
    starts = [(way[0], other[1]) for way, other in pairwise(turned[:40])]
    starts = [pair for pair in starts if graph.has_edge(*pair)][:2]
    for x, y in [pair for one in crossing for pair in (one, one[::-1])] + starts:
        first, second = int(labels[x]), int(labels[y])
        # the classes of the edge are left and entered at its ends, and at the other end of their pair, or at the same cell
        enters = by_class.get(first, (x, x))
        leaves = by_class.get(second, (y, y))
        into = enters[1] if enters[1] != x else enters[0]
        out = leaves[0] if leaves[0] != y else leaves[1]
        rest = [way for way in turned if int(labels[way[0]]) not in (first, second)]
        cycle, here = [(x, y)], out
        while rest:
            problem.effort.spend(1 + len(rest) // 8)
            step = next((at for at, way in enumerate(rest) if not graph.has_edge(here, way[1])), None)
            if step is None:
                break
            way = rest.pop(step)
            cycle.append((here, way[1]))
            here = way[0]
        while len(cycle) > 1 and graph.has_edge(here, into):
            here = cycle.pop()[0]  # the last class is left out
        if here != into and not graph.has_edge(here, into):
            yield [*cycle, (here, into)]


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
    short = short_margins(problem)
    if short is not None and short.upper < bracket.upper:
        bracket = replace(
            bracket, upper=max(short.upper, bracket.lower), method=short.method, reason=short.reason
        )
    if bracket.upper > HOPELESS * bracket.lower and policy.at_most_records is None:
        bracket = replace(bracket, reason=f"{bracket.reason.rstrip('.')}; {AFFORDABLE}")
    return bracket.in_terms(pair_of(bracket, keep.tolist()))


def pair_of(bracket: Bracket[Any], cells: Sequence[int]) -> Witness | None:
    """The data sets of a Blowfish move, whose vertices stand for the given cells; bottom stands for none."""
    if bracket.witness is None or not bracket.lower:
        return None

    def cell(end: Any) -> int | None:
        inside = isinstance(end, (int, np.integer)) and 0 <= int(end) < len(cells)
        return int(cells[int(end)]) if inside else None

    return Witness.of_pairs((cell(x), cell(y)) for x, y in bracket.witness.transitions)


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


def short_margins(problem: Problem) -> Bracket[Witness] | None:
    """Two public margins without a common attribute, one of two cells or both of three: few records change (``docs/explanation/proofs/valued-arcs.md``, section 4)."""
    policy, query, norm = problem.policy, problem.query, problem.norm
    domain = policy.domain
    if not isinstance(domain, Domain) or _graph(policy).bottom != "none":
        return None
    if not all(isinstance(fact, (Cuboid, Total, StructuralZero)) for fact in policy.constraints):
        return None  # with more facts larger sets of changes are minimal
    shape = dict(zip(domain.names, domain.shape, strict=True))
    several = frozenset(name for name, size in shape.items() if size > 1)
    named = {frozenset(fact.names) & several for fact in policy.constraints if isinstance(fact, Cuboid)}
    margins = [one for one in named if one and not any(one < other for other in named)]
    if len(margins) != 2 or margins[0] & margins[1]:
        return None
    small, large = sorted(prod(shape[name] for name in margin) for margin in margins)
    if small != 2 and (small, large) != (3, 3):
        return None
    most = longest_arcs(large, -1, 1) if small == 2 else LONGEST_SWAPS
    if policy.at_most_records is not None:
        most = min(most, policy.at_most_records)
    if isinstance(query, CuboidQuery):
        left = [
            weight
            for names, weight in zip(query.sets, query.weights, strict=True)
            if not any(frozenset(names) & several <= margin for margin in margins)
        ]
        upper = sum(2 * most * w if norm == "l1" else 2 * most * most * w * w for w in left)
    else:
        wide = int(query.column_norms(np.arange(domain.size), norm).max())
        upper = 2 * most * wide if norm == "l1" else 4 * most * most * wide
    reason = (
        f"records that change are swaps between the {small} x {large} cells of two public margins, and a sequence of swaps without a smaller zero sum "
        f"has at most {most} of them"
    )
    return Bracket(upper, 0, None, "bound by swaps", reason)


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
        f"{DENSE_CELLS} cells can be handled only if no cell is in two public counts, if no edge changes a public fact, or if the facts are two margins, one of two cells or both of three. {AFFORDABLE}.",
        code="sensitivity.refused",
    )
