"""Pairs of neighbouring tables to compare. Owns :class:`Pair`, :func:`neighbour_pairs` and :func:`statistic_pairs`.

The tables are made up from the policy alone: an audit never needs, and never sees, anybody's records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND
from policygraph.errors import InputError, PolicyGraphError
from policygraph.model.constraints import Total
from policygraph.model.domain import Domain, Network
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped
from policygraph.model.linked_units import LinkedUnit, listed_units
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.model.units import Unit
from policygraph.moves.degrees.secret_pairs import secret_cells
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import current, proved

Ints = npt.NDArray[np.int64]

LISTED_CELLS = 64
"""Up to so many cells the minimal moves under public facts are listed; beyond, the witness alone is used."""
LISTED_MOVES = 20_000
LISTING = 5 * SECOND
"""Work to list them: pairs beside the witness are worth no more."""
OCCURRING = 2 * SECOND
"""Work to find one table with the published values."""
PAIR_WORK = 20 * SECOND
"""For a witness: any pair of neighbours may show a leak, the worst is not needed."""
EDGES = 512
FILL = 7
SHORT = 16
"""Up to so many cells that are not empty are shown; of more, those that change."""
SEARCHED_CELLS = 10
"""Networks of up to so many node pairs (five nodes) are searched in full."""
SEARCHED_PAIRS = 500_000
KINDS = ("one tall cell", "sparse table", "dense table", "few records", "published values")


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables and where they come from.

    Attributes
    ----------
    before, after
        Counts of the cells.
    origin
        In words: the witness of a certificate, or a move on some base table.
    domain
        What the cells are called by; they are numbered when absent.

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"], "age": 2})
    >>> print(Pair(np.array([4, 0, 1, 0]), np.array([4, 0, 0, 1]), "given", domain))
    {(sex=F, age=0): 4, (sex=M, age=0): 1, (sex=M, age=1): 0} against
    {(sex=F, age=0): 4, (sex=M, age=0): 0, (sex=M, age=1): 1} (given)
    """

    before: Ints
    after: Ints
    origin: str
    domain: Domain | Network | None = None

    @property
    def change(self) -> dict[int, int]:
        """The move from the first table to the second."""
        moved = self.after - self.before
        return {int(cell): int(moved[cell]) for cell in np.flatnonzero(moved)}

    def name(self, cell: int) -> str:
        """What a cell is called."""
        if self.domain is None:
            return f"cell {cell}"
        labels = self.domain.cell(cell)
        if isinstance(self.domain, Network):
            return f"({', '.join(str(label) for label in labels)})"
        words = [f"{name}={label}" for name, label in zip(self.domain.names, labels, strict=True)]
        return words[0] if len(words) == 1 else f"({', '.join(words)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain form: the cells that are not empty, by index, and what they are called (of many, those that change)."""
        filled = np.flatnonzero((self.before != 0) | (self.after != 0)).tolist()
        shown = filled if len(filled) <= LISTED_CELLS else list(self.change)
        sides = {
            name: {str(cell): int(table[cell]) for cell in np.flatnonzero(table)}
            for name, table in (("before", self.before), ("after", self.after))
        }
        return {
            "origin": self.origin,
            **sides,
            "cells": {str(cell): self.name(cell) for cell in shown},
        }

    def __str__(self) -> str:
        moved = list(self.change)
        cells = np.flatnonzero((self.before != 0) | (self.after != 0)).tolist()
        if len(cells) > SHORT:
            cells = moved
        one, other = (
            ", ".join(f"{self.name(cell)}: {table[cell]}" for cell in cells[:SHORT])
            for table in (self.before, self.after)
        )
        more = f" ... ({len(cells)} cells)" if len(cells) > SHORT else ""
        shared = int(self.before.sum() - self.before[cells].sum())
        beside = f", with {shared} records elsewhere in both" if shared else ""
        return f"{{{one}{more}}} against {{{other}{more}}}{beside} ({self.origin})"


def neighbour_pairs(
    policy: Policy | NodePrivacy | Grouped,
    query: Query | None = None,
    certificate: Sensitivity | None = None,
    *,
    most: int = 8,
) -> list[Pair]:
    """Make pairs of neighbouring tables under a policy, those that change the query most first.

    Parameters
    ----------
    policy
        Who must not be told apart.
    query
        What the mechanism answers; the cells themselves when absent.
    certificate
        A sensitivity whose witness comes first; computed when absent.
    most
        How many pairs at most.

    Returns
    -------
    list of Pair
        The witness; then moves of the policy, large and small, on base tables that are empty, have one tall cell, are
        sparse or dense. Each is checked with :meth:`Policy.are_neighbours`. Empty when nothing can change. For network
        statistics and node privacy, the pairs of :func:`statistic_pairs`.

    Examples
    --------
    >>> import policygraph as pg
    >>> policy = pg.Policy(pg.Domain({"age": 3}))
    >>> for pair in neighbour_pairs(policy, most=3):
    ...     print(pair)
    {age=0: 0} against {age=0: 1} (worst witness)
    {age=0: 4} against {age=0: 5} (a move, one tall cell)
    {age=1: 4} against {age=1: 5} (a move, one tall cell)
    """
    if most < 1:
        raise InputError(f"most={most}: expected an integer >= 1.", code="audit.pairs", value=most)
    asked = query if query is not None else _cells(policy)
    if isinstance(policy, Unit):
        return _of_unit(policy, asked, certificate, most)
    if isinstance(policy, LinkedUnit):
        return _of_linked(policy, asked, certificate, most)
    if isinstance(policy, Families):
        one = neighbour_pairs(policy.records, asked, most=most)
        # Every record becomes a family; the pair that is claimed to be the worst is among them.
        return [
            replace(each, before=policy.size * each.before, after=policy.size * each.after) for each in one
        ]
    if isinstance(policy, Grouped):
        raise policy.refused()
    if isinstance(policy, NodePrivacy) or isinstance(asked, NonlinearQuery):
        return statistic_pairs(policy, asked, most)
    proof = certificate if certificate is not None else _certificate(asked, policy)
    found: dict[bytes, Pair] = {}
    for pair in _candidates(policy, asked, proof):
        found.setdefault(pair.before.tobytes() + pair.after.tobytes(), pair)
        if len(found) == most:
            break
    return list(found.values())


def _of_unit(policy: Unit, query: Query, certificate: Sensitivity | None, most: int) -> list[Pair]:
    """The pair that is claimed to be the worst, and the pairs of a record, as often as a unit may have them."""
    proof = certificate if certificate is not None else _certificate(query, policy)
    found = []
    if proof is not None and proof.witness is not None:
        found.append(Pair(proof.table("before"), proof.table("after"), "worst witness", policy.domain))
    for each in neighbour_pairs(policy.moves_of_records, query, most=most):
        both = [policy.cap * table for table in (each.before, each.after)]
        made = replace(each, before=both[0], after=both[1])
        # Beside published values only some tables occur.
        if not any(np.array_equal(both, (pair.before, pair.after)) for pair in found) and (
            not policy.system.has_values or _neighbours(policy, made)
        ):
            found.append(made)
    if policy.system.has_values and not found:
        found = neighbour_pairs(policy.records, query, most=most)
    return found[:most]


def _of_linked(policy: LinkedUnit, query: Query, certificate: Sensitivity | None, most: int) -> list[Pair]:
    """The pair that is claimed to be the worst, and units with all of their rows in one cell; where totals are public, in each other's place."""
    proof = certificate if certificate is not None else _certificate(query, policy)
    found = []
    if proof is not None and proof.witness is not None:
        found.append(Pair(proof.table("before"), proof.table("after"), "worst witness", policy.domain))
    if policy.totals:
        return found[:most]
    for change in listed_units(policy, most):
        before = np.zeros(policy.domain.size, dtype=np.int64)
        after = before.copy()
        after[list(change)] = list(change.values())
        # Beside many others like it.
        found += [Pair(rest * after, (rest + 1) * after, "a unit appears", policy.domain) for rest in (0, 9)]
    return found[:most]


def read_pairs(pairs: Iterable[Any], policy: Policy | NodePrivacy | Grouped) -> list[Pair]:
    """Take pairs of tables as given, after a check that each is a pair of neighbours as far as that can be decided.

    Raises
    ------
    InputError
        When two tables are no neighbours: a difference between them would be no leak.
    """
    out = []
    for given in pairs:
        if isinstance(given, Pair):
            pair = given if given.domain is not None else replace(given, domain=policy.domain)
        else:
            a, b = (np.asarray(table, dtype=np.int64).ravel() for table in given)
            pair = Pair(a, b, "given", policy.domain)
        if _neighbours(policy, pair) is False:
            said = policy.are_neighbours(pair.before, pair.after)
            reason = "they differ at more than one node" if isinstance(said, bool) else said.reason
            raise InputError(
                f"{pair} are not neighbours: {reason}. Expected pairs that the policy protects.",
                code="audit.not-neighbours",
                pair=pair,
            )
        out.append(pair)
    return out


def candidate_moves(policy: Policy, query: Query, most: int) -> list[dict[int, int]]:
    """Moves of a policy, as far as they can be listed quickly: the largest, the smallest, and some between.

    Returns
    -------
    list of dict
        Cell index to amount; a move may still not be one of the policy's strength, or fit its published values.
    """
    listed = listed_moves(policy)
    if len(listed) <= most:
        return listed
    sizes = [query.change_norm(change, "l1") for change in listed]
    order = sorted(range(len(listed)), key=lambda at: (-sizes[at], at))
    steps = np.linspace(0, len(order) - 1, most).round().astype(int).tolist()
    return [listed[order[at]] for at in dict.fromkeys(steps)]


def listed_moves(policy: Policy) -> list[dict[int, int]]:
    """Moves of a policy as cell index to amount, if they can be listed quickly; an empty list otherwise."""
    if policy.definition == "blowfish" and secret_cells(policy) is None:
        if policy.graph is None or policy.graph.bottom != "none":
            return []
        if not all(isinstance(fact, Total) for fact in policy.constraints):
            return []
        # The number of records never changes under such a graph: one record moves along an edge.
        edges: Iterator[Any] = islice(policy.graph.edges(), EDGES)
        return [{int(u): -1, int(v): 1} for u, v in edges]
    if policy.definition == "edges" or not policy.system.sums:
        step = max(1, policy.domain.size // EDGES) if policy.definition == "induced" else 1
        if policy.definition == "induced":
            cells = np.setdiff1d(np.arange(0, policy.domain.size, step), policy.system.zeros)
            return [{int(cell): 1} for cell in cells]
        return [dict(move.change) for move in islice(policy.moves(), EDGES)]
    if policy.domain.size > LISTED_CELLS:
        return []
    from policygraph.moves.graver.basis import graver_basis

    keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
    try:
        basis = graver_basis(
            policy.system.matrix().toarray()[:, keep],
            capacity=policy.domain.capacity,
            max_moves=LISTED_MOVES,
            effort=current().within(LISTING),
        )
    except PolicyGraphError:
        # Too many moves to list: the certificate's witness is still there, and the report names the pairs used.
        return []
    return [{int(keep[at]): int(row[at]) for at in np.flatnonzero(row)} for row in basis]


def _cells(policy: Policy | NodePrivacy | Grouped) -> Query:
    from policygraph.model.queries import identity

    return identity(policy.domain)


def _certificate(query: Query, policy: Policy | Grouped) -> Sensitivity | None:
    try:
        return proved(query, policy, work=PAIR_WORK)
    except PolicyGraphError:
        return None


def _candidates(policy: Policy, query: Query, proof: Sensitivity | None) -> Iterator[Pair]:
    changes: list[dict[int, int]] = []
    if proof is not None and proof.witness is not None:
        yield Pair(proof.table("before"), proof.table("after"), "worst witness", policy.domain)
        changes.append(proof.witness.change)
    changes += [change for change in candidate_moves(policy, query, 6) if change not in changes]
    # Round by round, so that a small number of pairs already shows every kind of table.
    for some in (changes[:2], changes[2:]):
        for kind in KINDS:
            for change in some:
                yield from on_base(policy, change, kind)


def on_base(policy: Policy | NodePrivacy, change: dict[int, int], kind: str) -> Iterator[Pair]:
    """The pair that a move makes on a base table of a kind, if there is room and they are neighbours."""
    base = _filled(policy, change, kind)
    if base is None:
        return
    after = base.copy()
    for cell, amount in change.items():
        after[cell] += amount
    pair = Pair(base, after, f"a move, {kind}", policy.domain)
    if _neighbours(policy, pair):
        yield pair


def _filled(policy: Policy | NodePrivacy, change: dict[int, int], kind: str) -> Ints | None:
    """The removed part of a move together with other records of a kind; None when capacity leaves no room."""
    top = policy.domain.capacity
    if kind == "published values":
        return _published(policy, change)
    base: Ints = np.zeros(policy.domain.size, dtype=np.int64)
    if kind == "one tall cell":
        if top is not None:
            return None
        base[next(iter(change))] = 4
    elif kind != "few records":
        every = 1 if kind == "dense table" else max(2, policy.domain.size // 16)
        base[every - 1 :: every] = FILL if top is None else top
        base[policy.system.zeros] = 0
        base[list(change)] = 0 if top is not None or kind == "sparse table" else FILL
    for cell, amount in change.items():
        base[cell] += max(0, -amount)
    return base


def _published(policy: Policy | NodePrivacy, change: dict[int, int]) -> Ints | None:
    """A table with the published values that allows the move; None when there are no values, or no table is found."""
    if not policy.system.has_values or policy.domain.size > LISTED_CELLS:
        return None
    from policygraph.moves.values.longest import occurs

    rows, values = policy.system.full_rows()
    moved = np.zeros(policy.domain.size, dtype=np.int64)
    moved[list(change)] = list(change.values())
    found = occurs(
        rows.toarray(), values, moved, policy.domain.capacity, effort=current().within(OCCURRING)
    ).table
    return None if found is None else np.array(found, dtype=np.int64)


def _neighbours(policy: Policy | NodePrivacy | Grouped, pair: Pair) -> bool | None:
    """Whether the policy says so; None when it cannot tell."""
    try:
        return bool(policy.are_neighbours(pair.before, pair.after))
    except PolicyGraphError:
        return None


def statistic_pairs(policy: Policy | NodePrivacy, query: Query, most: int) -> list[Pair]:
    """Make pairs of neighbouring networks, those that change the statistic most first.

    Parameters
    ----------
    policy
        Who must not be told apart.
    query
        The statistic.
    most
        How many pairs at most.

    Returns
    -------
    list of Pair
        On networks of up to five nodes the largest changes over all pairs of neighbours, each change of the answers once;
        on others the largest among moves on empty, sparse and dense networks.

    Notes
    -----
    A statistic that is not linear changes by an amount that depends on the whole network, and node privacy has no moves to list, so
    that other pairs would miss the worst. Small networks are searched in full.

    Examples
    --------
    >>> from policygraph.model.queries.network_statistics import Triangles
    >>> network = Network(4)
    >>> for pair in statistic_pairs(Policy(network), Triangles(network), 2):
    ...     print(int((Triangles(network).answer(pair.after) - Triangles(network).answer(pair.before))[0]))
    2
    1
    """
    network = policy.domain
    if isinstance(network, Network) and network.capacity == 1 and network.size <= SEARCHED_CELLS:
        found = _searched(policy, query, most)
        if found is not None:
            return found
    pairs = [pair for change in _changes(policy) for kind in KINDS for pair in on_base(policy, change, kind)]
    sizes = [int(np.abs(query.answer(pair.after) - query.answer(pair.before)).sum()) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda at: -sizes[at])
    return [pairs[at] for at in order[:most] if sizes[at]]


def _changes(policy: Policy | NodePrivacy) -> list[dict[int, int]]:
    """Some moves; of node privacy all edges of a node, or half of them for the others."""
    if isinstance(policy, Policy):
        from policygraph.model.queries import identity

        return candidate_moves(policy, identity(policy.domain), 6)
    out = []
    last, many = policy.domain.order, min(policy.together, policy.domain.order)
    for nodes in (range(many), range(last - many, last)):
        at = _cells_of(policy.domain, nodes).tolist()
        out += [dict.fromkeys(at, 1), {cell: 1 if place % 2 else -1 for place, cell in enumerate(at)}]
    return out


def _cells_of(network: Network, nodes: Iterable[int]) -> Ints:
    tail, head = network.pairs(np.arange(network.size))
    own = list(nodes)
    cells: Ints = np.flatnonzero(np.isin(tail, own) | np.isin(head, own)).astype(np.int64)
    return cells


def _searched(policy: Policy | NodePrivacy, query: Query, most: int) -> list[Pair] | None:
    """The pairs of largest change over all networks; None when they are too many or cannot be listed."""
    size = policy.domain.size
    steps = list(_steps(policy))
    if not steps or len(steps) << size > SEARCHED_PAIRS:
        return None
    numbers = np.arange(1 << size, dtype=np.int64)
    tables: Ints = (numbers[:, None] >> np.arange(size)) & 1
    answers = np.stack([query.answer(table) for table in tables])
    best: dict[bytes, tuple[int, int, int]] = {}
    for plus, minus in steps:
        before = numbers[(numbers & minus == minus) & (numbers & plus == 0)]
        after = before ^ (plus | minus)
        moved = answers[after] - answers[before]
        changes, first = np.unique(moved, axis=0, return_index=True)
        for change, at in zip(changes, first.tolist(), strict=True):
            item = (int(np.abs(change).sum()), int(before[at]), int(after[at]))
            if item[0] > 0:
                best.setdefault(change.tobytes(), item)
    ranked = sorted(best.values(), key=lambda item: (-item[0], item[1], item[2]))
    made = (
        Pair(tables[a].copy(), tables[b].copy(), "largest change over all networks", policy.domain)
        for _, a, b in ranked
    )
    kept = [pair for pair in made if policy.are_neighbours(pair.before, pair.after)]
    return kept[:most]


def _steps(policy: Policy | NodePrivacy) -> Iterator[tuple[int, int]]:
    """Edges that appear and edges that vanish, as sets of bits; of a step and its reverse one is enough."""
    if isinstance(policy, Policy):
        for change in listed_moves(policy):
            yield (
                sum(1 << cell for cell, amount in change.items() if amount > 0),
                sum(1 << cell for cell, amount in change.items() if amount < 0),
            )
        return
    for nodes in combinations(range(policy.domain.order), min(policy.together, policy.domain.order)):
        at = _cells_of(policy.domain, nodes).tolist()
        for signs in range(1, 3 ** len(at)):
            digits = [signs // 3**place % 3 for place in range(len(at))]
            yield (
                sum(1 << cell for cell, digit in zip(at, digits, strict=True) if digit == 1),
                sum(1 << cell for cell, digit in zip(at, digits, strict=True) if digit == 2),
            )
