"""Sensitivity under exact public facts without a policy graph: the longest minimal move.

The ladder: reduction, closed form, exact search over minimal moves, proved bound, refusal. Moves that the published
values rule out are not counted (``docs/explanation/proofs/published-values.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policygraph.effort import SECOND, Effort
from policygraph.model.constraints.networks import Degrees
from policygraph.model.constraints.tables import Total
from policygraph.model.domain import Domain, Network
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Norm, Query
from policygraph.model.queries.cuboids import BlockQuery, CuboidQuery
from policygraph.model.queries.networks import MixingQuery
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.rungs import search
from policygraph.sensitivity.rungs.margins import closed_form
from policygraph.sensitivity.rungs.mixing import capped_cycle, markov_switch, mixing_bound, mixing_witness
from policygraph.sensitivity.rungs.partial import partial_margins
from policygraph.sensitivity.rungs.reduce import Reduced, reduce_margins
from policygraph.sensitivity.rungs.restricted import LISTED_PAIRS, fixed_pairs, is_fixing, restricted_length

__all__ = ["induced"]

CHUNK = 1 << 20
STRUCTURE = 2 * SECOND
"""Work on a bound by the structure of the facts when weaker neighbours are searched afterwards."""
Degree = tuple[int, dict[int, int], str]
"""Edges of the longest minimal move, a move, and why."""


def induced(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness]:
    """Largest change of a query over the minimal moves of the public facts."""
    system = policy.system
    if system.has_values:
        return search.with_values(query, policy, norm, effort, without=_without_values)
    return _without_values(query, policy, norm, effort)


def _without_values(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness]:
    system = policy.system
    steps: tuple[str, ...] = ()
    if system.redundant:
        steps = (f"{len(system.redundant)} public facts that follow from others dropped",)
    if len(system.zeros) == policy.domain.size:
        return Bracket(0, 0, None, "closed form", "every cell is structurally empty")
    if not system.needed:
        return _single_records(query, policy, norm).after(*steps)
    if (one_switch := markov_switch(query, policy)) is not None:
        change = _pairs(policy.domain, one_switch)
        value = query.change_norm(change, norm)
        reason = "with all degrees public a Markov move switches two edges; no switch changes more (docs/explanation/proofs/networks.md)"
        return Bracket(value, value, Witness.of_change(change), "closed form, one switch", reason).after(
            *steps
        )
    if (cycle := capped_cycle(query, policy)) is not None and (norm == "l1" or query.is_identity):
        change = _pairs(policy.domain, cycle)
        value, cap = query.change_norm(change, norm), policy.at_most_records
        if value == 2 * (cap or 0):
            reason = f"at most {cap} edges are added and {cap} removed, and an alternating cycle does that"
            return Bracket(
                value, value, Witness.of_change(change), "closed form, capped cycle", reason
            ).after(*steps)
    whole = policy.strength == "worst-case" and policy.at_most_records is None
    # Of weaker neighbours the structure only gives a bound, which must not take the work of their own search.
    some = effort if whole else effort.at_most(STRUCTURE)
    best, reduced = _from_structure(query, policy, norm, some)
    if best is None:
        best = _times_widest_column(query, policy, norm, some)
    if best is not None and (best.exact and (whole or best.upper == 0)):
        return best.after(*steps)
    found = search.minimal_moves(query, policy, norm, effort, reduced, best)
    return found.after(*steps)


def _from_structure(
    query: Query, policy: Policy, norm: Norm, effort: Effort
) -> tuple[Bracket[Witness] | None, Reduced | None]:
    """Closed form or bound by the structure of the facts, and the reduced problem where there is one."""
    system = policy.system
    reduced: Reduced | None = None
    if isinstance(policy.domain, Domain) and isinstance(query, CuboidQuery):
        if not len(system.zeros):
            reduced = reduce_margins(policy.domain, system.needed, query)
        if reduced is not None:
            return closed_form(reduced, norm), reduced
        if query.is_identity:
            # Entries of these moves are +1 and -1, so that the squared l2 norm is the l1 norm.
            return partial_margins(policy, effort), None
    elif isinstance(policy.domain, Network):
        return _degrees(query, policy, norm), None
    return None, reduced


def _times_widest_column(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness] | None:
    """Any query changes by at most the length of the longest move times its longest column."""
    if query.is_identity:
        return None
    cells, _ = _from_structure(identity(policy.domain), policy, "l1", effort)
    wide = search.widest_column(query, policy, norm)
    if cells is None or wide is None:
        return None
    lower = query.change_norm(cells.witness.change, norm) if cells.witness is not None else 0
    upper = cells.upper * wide if norm == "l1" else cells.upper * cells.upper * wide
    return Bracket(
        max(upper, lower),
        lower,
        cells.witness if lower else None,
        "bound by the longest move and the widest column",
        f"{cells.reason}; each single change moves the answer by one column, whose norm is at most the largest one",
        cells.steps,
    )


def _single_records(query: Query, policy: Policy, norm: Norm) -> Bracket[Witness]:
    """Without public sums a record may appear or vanish by itself, and that is minimal."""
    size, zeros = policy.domain.size, policy.system.zeros
    reason = "without public sums the minimal moves add or remove one record, which changes the answer by one column"
    if isinstance(query, (CuboidQuery, BlockQuery, MixingQuery)) or query.is_identity:
        taken = set(zeros.tolist())
        cell = next(c for c in range(size) if c not in taken)
        value = int(query.column_norms(np.array([cell]), norm)[0])
        return Bracket(value, value, Witness.of_change({cell: 1}), "closed form", reason)
    value, best = -1, 0
    for start in range(0, size, CHUNK):
        cells = np.setdiff1d(np.arange(start, min(start + CHUNK, size), dtype=np.int64), zeros)
        if len(cells):
            norms = query.column_norms(cells, norm)
            at = int(np.argmax(norms))
            if int(norms[at]) > value:
                value, best = int(norms[at]), int(cells[at])
    return Bracket(value, value, Witness.of_change({best: 1}) if value else None, "largest column", reason)


def _degrees(query: Query, policy: Policy, norm: Norm) -> Bracket[Witness] | None:
    """Public degrees, and pairs that cannot change: closed forms for the edges, a bound for counts of edges."""
    network = policy.domain
    facts = [fact for fact in policy.system.needed if not is_fixing(fact, policy)]
    if not isinstance(network, Network) or not all(isinstance(fact, (Degrees, Total)) for fact in facts):
        return None
    if any(isinstance(fact, Total) for fact in facts) and not network.directed:
        return None
    found = _directed(policy, facts) if network.directed else _undirected(policy, facts)
    length, change, reason = found
    lower = query.change_norm(change, norm) if change else 0
    if query.is_identity:
        # Entries are +-1 in simple graphs and in directed ones, and at most 2 in undirected graphs with multiple edges
        # (docs/explanation/proofs/degrees.md), so that the squared l2 norm is at most once or twice the l1 norm.
        doubled = norm == "l2" and network.capacity is None and not network.directed
        upper = 2 * length if doubled else length
    elif isinstance(query, MixingQuery):
        upper = length if norm == "l1" else length * length
        if (by_groups := mixing_bound(query, policy, length, norm)) is not None and by_groups[0] < upper:
            upper, reason = by_groups[0], f"{reason}; {by_groups[1]}"
        other = _pairs(network, mixing_witness(query, policy))
        if other and query.change_norm(other, norm) > lower and _stays_off(policy, other):
            change, lower = other, query.change_norm(other, norm)
    else:
        return None
    return Bracket(
        upper,
        lower,
        Witness.of_change(change) if change else None,
        "closed form, public degrees" if upper == lower else "bound by public degrees",
        reason,
    )


def _fixing(policy: Policy) -> bool:
    return bool(len(policy.system.zeros)) or any(is_fixing(fact, policy) for fact in policy.system.needed)


def _stays_off(policy: Policy, change: dict[int, int]) -> bool:
    """Whether no pair of a change is structurally empty or public."""
    if not _fixing(policy):
        return True
    cells = np.array(sorted(change), dtype=np.int64)
    told = [fact for fact in policy.system.needed if is_fixing(fact, policy)]
    return not np.isin(cells, policy.system.zeros).any() and not any(
        len(fact.rows_on(policy.domain, cells).cell) for fact in told
    )


def _restricted(policy: Policy, known: dict[str, Any], found: Degree, *, joined: bool = False) -> Degree:
    """The same where some pairs cannot change; ``joined`` if a fact couples unconnected parts."""
    network = policy.domain
    if not isinstance(network, Network) or not _fixing(policy):
        return found
    length, change, reason = found
    if joined or network.size > LISTED_PAIRS:
        kept = change if _stays_off(policy, change) else {}
        return length, kept, f"{reason}; pairs that cannot change only rule moves out"
    bound, edges = restricted_length(network, fixed_pairs(policy), known)
    smaller = _pairs(network, edges)
    why = (
        "a minimal move lies in one connected part of the pairs that can change, and the largest part allows at most "
        f"{min(bound, length)} edges (docs/explanation/proofs/networks.md, Theorem 9)"
    )
    return min(bound, length), smaller, why


def _undirected(policy: Policy, facts: Sequence[Any]) -> Degree:
    from policygraph.moves.degrees.closed_form import longest_degree_move

    network: Any = policy.domain
    mask = np.zeros(network.order, dtype=bool)
    for fact in facts:
        mask[fact.positions(network)] = True
    length, edges = longest_degree_move(network.order, mask, loops=network.loops, capacity=network.capacity)
    reason = (
        "a minimal move is an alternating walk whose repeated nodes hang odd cycles together; with "
        f"{int(mask.sum())} of {network.order} degrees public it has at most {length} edges (docs/explanation/proofs/degrees.md)"
    )
    return _restricted(policy, {"both": mask}, (length, _pairs(network, edges), reason))


def _directed(policy: Policy, facts: Sequence[Any]) -> Degree:
    from policygraph.moves.two_way.closed_form import longest_bipartite_move

    network: Any = policy.domain
    masks = {side: np.zeros(network.order, dtype=bool) for side in ("out", "in")}
    total = False
    for fact in facts:
        if isinstance(fact, Degrees):
            masks[fact.side][fact.positions(network)] = True
        else:
            total = True
    if network.order == 1 and not network.loops:
        return 0, {}, "there is no pair of nodes"
    length, edges = longest_bipartite_move(
        network.order,
        network.order,
        masks["out"],
        masks["in"],
        total_known=total,
        loops_forbidden=not network.loops,
    )
    reason = (
        "a minimal move is a closed walk in the bipartite graph of tails and heads that visits each node with a public "
        f"degree once; it has at most {length} edges (docs/explanation/proofs/two-cuboids.md)"
    )
    return _restricted(policy, masks, (length, _pairs(network, edges), reason), joined=total)


def _pairs(network: Any, edges: Any) -> dict[int, int]:
    """A change of edges, given by the positions of their ends, as a change of cells."""
    if not len(edges):
        return {}
    listed = np.array(edges, dtype=np.int64)
    cells, inverse = np.unique(network.pair_index(listed[:, 0], listed[:, 1]), return_inverse=True)
    amounts = np.zeros(len(cells), dtype=np.int64)
    np.add.at(amounts, inverse, listed[:, 2])
    return {cell: x for cell, x in zip(cells.tolist(), amounts.tolist(), strict=True) if x}
