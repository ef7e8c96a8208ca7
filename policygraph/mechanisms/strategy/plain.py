"""The usual strategies for a policy. Owns :func:`plain_strategies` and :func:`bases_of`.

Identity, trees and wavelets, over the cells and over the coordinates of the policy graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Literal

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.strategy.bases import AxisBase, Coordinates, ForestBase
from policygraph.mechanisms.strategy.factors import Factor, Haar, Tree
from policygraph.mechanisms.strategy.strategy import Strategy
from policygraph.model.domain import Domain
from policygraph.model.graphs import Complete, PolicyGraph
from policygraph.model.policy import Policy
from policygraph.transforms.incidence import ForestTransform, LineTransform, Totals, spanning_transform
from policygraph.transforms.incidence.base import graph_of, one_axis, totals_are_exact
from policygraph.transforms.incidence.tree import is_forest

__all__ = ["BRANCHINGS", "Kind", "Over", "bases_of", "plain_strategies"]

Over = Literal["cells", "edges"]
Kind = Literal["identity", "tree", "wavelet"]

BRANCHINGS = (2, 4, 8, 16)
FOREST_CELLS = 20_000
"""Forests that are no lines are taken up to so many cells."""
STRETCH = 8
"""Spanning forests of a larger stretch are left out unless they are asked for."""


def bases_of(policy: Policy, over: Over | None = None, totals: Totals = "auto") -> Iterator[Coordinates]:
    """Coordinates that fit a policy: its cells, and those in which a move is short.

    Parameters
    ----------
    policy
        Any policy for ``"cells"``; one whose moves are the edges of its graph for ``"edges"``.
    over
        ``"cells"`` or ``"edges"``; None for both.
    totals
        See :func:`~policygraph.transforms.incidence.base.totals_are_exact`.

    Examples
    --------
    >>> domain = Domain({"age": 8})
    >>> [base.describe() for base in bases_of(Policy(domain, PolicyGraph.line(domain)))]
    ['cells', 'prefix sums along age']
    """
    if over not in ("cells", "edges", None):
        raise InputError(f"over={over!r}: expected 'cells' or 'edges'.", code="strategy.over", value=over)
    domain = policy.domain
    if not isinstance(domain, Domain):
        raise InputError("strategies need a table, not a network.", code="strategy.domain", value=domain)
    if over != "edges":
        yield AxisBase(domain)
    if over == "cells":
        return
    try:
        graph = graph_of(policy)
    except RefusedError:
        if over == "edges":
            raise
        return  # public facts that an edge can break: strategies over the cells have certificates all the same
    if LineTransform.accepts(policy) and (axis := _line_axis(graph, domain)) is not None:
        yield AxisBase(domain, axis, exact=totals_are_exact(policy, graph, totals))
        return
    if graph.rule.n_edges == 0:
        if over == "edges":
            yield AxisBase(domain)  # every cell is joined to bottom at most: its edge is the cell
        return
    # Records that come from nowhere, or jump anywhere, change many prefix sums at once.
    if len(domain.shape) == 1 and graph.bottom == "none" and not isinstance(graph.rule, Complete):
        yield AxisBase(domain, 0, exact=totals_are_exact(policy, graph, totals))
    star = graph.bottom == "all" or isinstance(graph.rule, Complete)  # its forest is as good as the cells
    if domain.size <= FOREST_CELLS and (over == "edges" or not star):
        try:
            found = (
                ForestTransform.of(policy, totals) if is_forest(graph) else spanning_transform(policy, totals)
            )
        except RefusedError:
            return
        if found.stretch <= STRETCH or over == "edges":
            yield ForestBase(domain, found)


def _line_axis(graph: PolicyGraph, domain: Domain) -> int | None:
    found = one_axis(graph)
    if found is None:
        return None
    outer, rule, inner = found
    for axis, n in enumerate(domain.shape):
        if n == rule.size and prod(domain.shape[:axis]) == outer and prod(domain.shape[axis + 1 :]) == inner:
            return axis
    return None


def plain_strategies(
    policy: Policy,
    *,
    over: Over | None = None,
    kind: Kind | None = None,
    branching: int | None = None,
    totals: Totals = "auto",
) -> Iterator[Strategy]:
    """Strategies with all weights 1, the same kind on every axis.

    Examples
    --------
    >>> domain = Domain({"age": 8})
    >>> policy = Policy(domain, PolicyGraph.line(domain))
    >>> [strategy.describe() for strategy in plain_strategies(policy, kind="identity")]
    ['identity over the cells', 'identity over the prefix sums along age']
    """
    if kind not in ("identity", "tree", "wavelet", None):
        raise InputError(
            f"kind={kind!r}: expected 'identity', 'tree' or 'wavelet'.", code="strategy.kind", value=kind
        )
    full = policy.graph is not None and isinstance(policy.graph.rule, Complete)
    for base in bases_of(policy, over, totals):
        longest = max(base.shape)
        if kind in ("identity", None):
            yield Strategy("identity", base, [Tree.identity(n) for n in base.shape])
        if kind in ("tree", None):
            # A root that no move changes costs nothing; over edges, or where moves are hard to list, it is left out.
            root = int(base.fixed is None and isinstance(base, AxisBase) and base.axis is None and not full)
            for b in BRANCHINGS if branching is None else (branching,):
                # Asked for by name, a tree is there for one or two positions, too: another mechanism may stand on it.
                if branching is not None or b < longest or (kind == "tree" and b == BRANCHINGS[0]):
                    yield Strategy(f"tree of {b}", base, [_tree(n, b, root) for n in base.shape])
        if kind == "wavelet" or (kind is None and longest > 1 and not full):
            yield Strategy("wavelet", base, [Haar.plain(n) for n in base.shape])


def _tree(n: int, branching: int, root: int) -> Factor:
    return Tree.identity(n) if n == 1 else Tree.plain(n, branching, root)
