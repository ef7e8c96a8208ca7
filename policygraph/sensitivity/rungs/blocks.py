"""Sensitivity of interactions without public facts. Owns :func:`along_block_edges`.

A step along an edge changes interactions only through the set of attributes on which the ends differ
(:meth:`BlockQuery.difference_norm`), but not monotonely: two changes can cancel. So every set that an edge can have is
looked at, not only the largest ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from policygraph.errors import RefusedError
from policygraph.model.domain import Domain
from policygraph.model.graphs import PolicyGraph
from policygraph.model.graphs.composed import BlockGrid, L1Ball, Product
from policygraph.model.graphs.differences import by_edges
from policygraph.model.graphs.simple import Complete
from policygraph.model.queries.base import Norm
from policygraph.model.queries.cuboids import BlockQuery
from policygraph.moves.bracket import Bracket, Witness

__all__ = ["all_difference_sets", "along_block_edges"]

MOST_SETS = 1 << 16
MOST_EDGES = 200_000_000


def all_difference_sets(graph: PolicyGraph) -> list[frozenset[str]]:
    """Every set of attributes on which the two ends of some edge differ."""
    rule, domain = graph.rule, graph.domain
    if not isinstance(domain, Domain):
        raise RefusedError("a network has no attributes.", code="sensitivity.graph")
    several = [name for name, n in zip(domain.names, domain.shape, strict=True) if n > 1]
    if rule.n_edges == 0:
        return []
    if isinstance(rule, Product):
        return [
            frozenset([name]) for name, part in zip(domain.names, rule.factors, strict=True) if part.n_edges
        ]
    if isinstance(rule, Complete):
        return list(_some(several, len(several)))
    if isinstance(rule, BlockGrid):
        changing = [n for n, part in zip(domain.names, rule.factors, strict=True) if part.n_edges]
        return list(_some(changing, len(changing)))
    if isinstance(rule, L1Ball):
        return list(_some(several, min(rule.theta, len(several))))
    if rule.n_edges > MOST_EDGES:
        raise RefusedError(
            f"{rule.n_edges:,} edges are too many to look at one by one for interactions. Measure cuboids instead.",
            code="sensitivity.edges",
        )
    return sorted(by_edges(domain, rule), key=sorted)


def _some(names: list[str], most: int) -> Iterator[frozenset[str]]:
    if 1 << len(names) > MOST_SETS:
        raise RefusedError(
            f"{len(names)} attributes can change at once: expected at most {MOST_SETS.bit_length() - 1} for interactions. "
            "Measure cuboids instead.",
            code="sensitivity.sets",
        )
    for size in range(1, most + 1):
        yield from (frozenset(some) for some in combinations(names, size))


def along_block_edges(query: BlockQuery, graph: PolicyGraph, norm: Norm) -> Bracket[Witness]:
    """Largest change of interactions along an edge of the policy graph."""
    from policygraph.sensitivity.rungs.edges import edge_differing

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
    sets = all_difference_sets(graph)
    values = [query.difference_norm(names, norm) for names in sets]
    if values and max(values) > best.upper:
        top = int(np.argmax(np.array(values, dtype=object)))
        u, v = edge_differing(graph, sets[top])
        named = ", ".join(name for name in query.domain.names if name in sets[top])
        best = Bracket(
            values[top],
            values[top],
            Witness.of_change({u: -1, v: 1}),
            "closed form over the attributes that one edge can change",
            f"an edge changes interactions only through the attributes on which its ends differ; of {len(sets)} such "
            f"sets, {{{named}}} changes most",
        )
    return best
