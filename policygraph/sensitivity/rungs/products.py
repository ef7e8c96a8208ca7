"""Tables by prefixes, ranges or rows of a matrix, along an edge. Owns :func:`products` and :func:`over_sets`.

Such a table is a Kronecker product, so that the norm of a change of one record multiplies over attributes. Where the edges are few they are all
looked at (the rung below); here they are not listed, whatever their number (``docs/explanation/proofs/residuals.md``, section 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations
from math import prod

import numpy as np

from policygraph.errors import RefusedError
from policygraph.model.graphs import PolicyGraph
from policygraph.model.graphs.rules import Ball, BlockGrid, Complete, EdgeArrays, Path, Product, Rule
from policygraph.model.queries.base import Norm
from policygraph.model.queries.products import AxisRows, ProductQuery
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs.edges import all_difference_sets, better, graph_of_problem

FEW_EDGES = 200_000
"""Up to so many edges each is looked at by the rung below, which is exact for every graph."""
FEW_ENTRIES = 20_000_000
"""Up to so many answers times cells the rung below can look at columns."""
MOST_TERMS = 2_000_000
"""Sets of attributes times tables that are looked at one by one; beyond, each table takes its own worst set."""
AT_ONCE = 1 << 18
MOST_TRIPLES = 4_000_000
"""Combinations of pairs of values of several attributes that are looked at; beyond, an interval bounds them."""

Codes = dict[str, int]


def products(problem: Problem) -> Bracket[Witness] | None:
    """Tables of products: norms multiply over attributes, and none of the edges is listed."""
    query, graph = problem.query, graph_of_problem(problem)
    if not isinstance(query, ProductQuery):
        return None
    if graph.n_edges <= FEW_EDGES and query.height * query.domain.size <= FEW_ENTRIES:
        return None
    best: Bracket[Witness] | None = None
    if graph.bottom != "none":
        best = _appearing(query, graph, problem.norm)
    if graph.rule.n_edges:
        best = better(best, _changing(query, graph, problem.norm))
    return better(best, None)


def _appearing(query: ProductQuery, graph: PolicyGraph, norm: Norm) -> Bracket[Witness]:
    value, cell = query.longest_column(norm)
    reason = "a record that appears or vanishes changes the answer by its column, which is longest where the column of every attribute is"
    if graph.bottom == "all" or cell in graph.bottom_cells:
        return Bracket(value, value, Witness.of_change({cell: 1}), "closed form", reason)
    return Bracket(value, 0, None, "bound by the longest column", reason)


class Changes:
    """Norms of changes of some attributes of one record, from the factors of a query.

    Parameters
    ----------
    query
        The tables.
    rule
        Along which values change; None for any.
    norm
        ``"l1"``, or ``"l2"`` for squares.
    """

    def __init__(self, query: ProductQuery, rule: Rule | None, norm: Norm) -> None:
        self.query, self.rule, self.norm = query, rule, norm
        self.exponent = 1 if norm == "l1" else 2
        self.sums = {name: factor.sums(norm) for name, factor in query.factors.items()}
        self.most = {name: int(found.max()) for name, found in self.sums.items()}
        self.single = cache(self._single)
        self.together = cache(self._together)

    def pairs(self, name: str) -> Iterator[EdgeArrays]:
        """Pairs of values that an edge can change into each other, or more of them."""
        axis, factor = self.query.domain.axis(name), self.query.factors[name]
        rule = self.rule
        if rule is not None and len(self.query.domain.names) == 1:
            return rule.chunks(AT_ONCE)
        if isinstance(rule, (Product, BlockGrid)):
            return rule.factors[axis].chunks(AT_ONCE)
        if isinstance(rule, Ball):
            return Path(factor.n, max(1, rule.reach)).chunks(AT_ONCE)
        return Complete(factor.n).chunks(AT_ONCE)

    def _single(self, name: str) -> tuple[int, tuple[int, int]]:
        """The largest norm of a change of one attribute, and the values that have it."""
        best, at = 0, (0, 0)
        for u, v in self.pairs(name):
            norms = self.query.factors[name].apart(u, v, self.norm)
            top = int(np.argmax(norms)) if len(norms) else 0
            if len(norms) and int(norms[top]) > best:
                best, at = int(norms[top]), (int(u[top]), int(v[top]))
        return best, at

    def _together(self, names: tuple[str, ...]) -> int:
        """A bound on the norm of a product of columns less another one, where all these attributes change."""
        if len(names) == 1:
            return self.single(names[0])[0]
        high = prod(self.most[name] for name in names)
        factors = [self.query.factors[name] for name in names]
        if self.norm == "l1" and not all(factor.unsigned for factor in factors):
            return 2 * high
        if all(factor.unsigned for factor in factors):
            found = self._listed(names)
            if found is not None:
                return found
        return 2 * high - 2 * _least_product([self._products(name) for name in names])

    def _products(self, name: str) -> tuple[int, int]:
        """The least and the largest inner product of two columns that can change into each other."""
        low, high = None, None
        for u, v in self.pairs(name):
            if len(u):
                made = self.query.factors[name].products(u, v)
                low = int(made.min()) if low is None else min(low, int(made.min()))
                high = int(made.max()) if high is None else max(high, int(made.max()))
        return (low or 0, high or 0)

    def _listed(self, names: tuple[str, ...]) -> int | None:
        """The exact maximum for factors of zeros and ones, over pairs of values that no other pair beats; None for too many."""
        triples = []
        for name in names:
            found = _undominated(self.query.factors[name], self.pairs(name))
            if found is None:
                return None
            triples.append(found)
        if prod(len(found) for found in triples) > MOST_TRIPLES:
            return None
        if prod(int(found.max()) for found in triples) >= 1 << 60:
            return None
        made = triples[0]
        for found in triples[1:]:
            made = (made[:, None, :] * found[None, :, :]).reshape(-1, 3)
        return int((made[:, 0] + made[:, 1] - 2 * made[:, 2]).max())

    def of_table(self, names: tuple[str, ...], weight: int, changing: Iterable[str]) -> int:
        """A bound on the change of one table where exactly these attributes of it change; 0 where there are none."""
        moved = tuple(name for name in names if name in set(changing))
        if not moved:
            return 0
        still = prod(self.most[name] for name in names if name not in moved)
        return int(weight**self.exponent * still * self.together(moved))

    def of_pair(self, here: Codes, there: Codes) -> int | None:
        """The exact norm for two records; None where it does not multiply over attributes."""
        factors = self.query.factors
        signed = self.norm == "l1" and not all(factor.unsigned for factor in factors.values())
        total = 0
        for names, weight in zip(self.query.sets, self.query.weights, strict=True):
            moved = [name for name in names if here[name] != there[name]]
            if signed and len(moved) > 1:
                return None
            if not moved:
                continue
            still = prod(int(self.sums[name][here[name]]) for name in names if name not in moved)
            if len(moved) == 1:
                name = moved[0]
                at = np.array([here[name]]), np.array([there[name]])
                total += weight**self.exponent * still * int(factors[name].apart(*at, self.norm)[0])
                continue
            a, b, both = 1, 1, 1
            for name in moved:
                a *= int(self.sums[name][here[name]])
                b *= int(self.sums[name][there[name]])
                both *= int(factors[name].products(np.array([here[name]]), np.array([there[name]]))[0])
            total += weight**self.exponent * still * (a + b - 2 * both)
        return total


def _least_product(intervals: list[tuple[int, int]]) -> int:
    """The least product of numbers of some intervals."""
    low = high = 1
    for a, b in intervals:
        ends = [low * a, low * b, high * a, high * b]
        low, high = min(ends), max(ends)
    return low


def _undominated(
    factor: AxisRows, pairs: Iterator[EdgeArrays]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]] | None:
    """Lengths of two columns and their inner product, for pairs of values that no other pair beats, in both orders."""
    sums = factor.sums("l2")
    found: list[np.ndarray[tuple[int, int], np.dtype[np.int64]]] = []
    for u, v in pairs:
        both = factor.products(u, v)
        found.append(np.stack([sums[u], sums[v], both], axis=1))
        if sum(map(len, found)) > AT_ONCE:
            merged = _pareto(np.concatenate(found))
            if len(merged) > AT_ONCE // 2:
                return None
            found = [merged]
    if not found:
        return np.zeros((0, 3), dtype=np.int64)
    one = _pareto(np.concatenate(found))
    return _pareto(np.concatenate([one, one[:, [1, 0, 2]]]))


def _pareto(
    triples: np.ndarray[tuple[int, int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Of equal first and third numbers the largest second one, and then of equal second and third the largest first one."""
    made = np.unique(triples, axis=0)
    for keep, others in ((1, (0, 2)), (0, (1, 2))):
        order = np.lexsort((-made[:, keep], made[:, others[1]], made[:, others[0]]))
        made = made[order]
        key = made[:, list(others)]
        first = np.ones(len(made), dtype=bool)
        first[1:] = np.any(key[1:] != key[:-1], axis=1)
        made = made[first]
    return made


def _changing(query: ProductQuery, graph: PolicyGraph, norm: Norm) -> Bracket[Witness]:
    sets: list[frozenset[str]] | None
    try:
        sets = all_difference_sets(graph)
    except RefusedError:
        sets = None
    return over_sets(query, sets, norm, graph)


def over_sets(
    query: ProductQuery, sets: Sequence[frozenset[str]] | None, norm: Norm, graph: PolicyGraph | None = None
) -> Bracket[Witness]:
    """The most that one record changes that differs before and after on one of some sets of attributes.

    Parameters
    ----------
    sets
        The sets of attributes; None: any that the graph allows, each table by itself.
    graph
        Along which edges values change; None: any value to any other.
    """
    rule = None if graph is None else graph.rule
    changes = Changes(query, rule, norm)
    tables = list(zip(query.sets, query.weights, strict=True))
    named = frozenset(name for name, n in zip(query.domain.names, query.domain.shape, strict=True) if n > 1)
    if sets is not None and len(sets) * len(tables) <= MOST_TERMS:
        values = [sum(changes.of_table(*table, changing) for table in tables) for changing in sets]
        at = max(range(len(sets)), key=values.__getitem__)
        upper, changing = values[at], sets[at]
        how = f"of {len(sets)} sets of attributes that may change, {_listed_names(query, changing)} changes most at most"
    else:
        most = rule.together if isinstance(rule, Ball) else len(named)
        named = named if sets is None else frozenset().union(*sets)
        upper, changing = 0, named
        for names, weight in tables:
            some = [name for name in names if name in named]
            upper += max(
                (
                    changes.of_table(names, weight, moved)
                    for size in range(1, min(most, len(some)) + 1)
                    for moved in combinations(some, size)
                ),
                default=0,
            )
        how = "each table was given the set of attributes whose change changes it most"
    reason = f"a record changes a table only through the attributes on which it differs afterwards, and norms multiply over attributes; {how}"
    here = {name: int(np.argmax(found)) for name, found in changes.sums.items()}
    here = {name: here.get(name, 0) for name in query.domain.names}
    there = dict(here)
    for name in changing:
        if name in query.factors:
            here[name], there[name] = changes.single(name)[1]
        elif query.domain.shape[query.domain.axis(name)] > 1:
            there[name] = 1 - min(here[name], 1)
    u, v = (_cell(query, codes) for codes in (here, there))
    lower = None
    if u != v and (graph is None or graph.has_edge(u, v)):
        lower = changes.of_pair(here, there)
    if lower is None or lower == 0:
        return Bracket(upper, 0, None, "bound over the attributes that one record can change", reason)
    exact = "closed form" if lower == upper else "bound"
    witness = Witness.of_change({u: -1, v: 1})
    return Bracket(upper, lower, witness, f"{exact} over the attributes that one record can change", reason)


def _listed_names(query: ProductQuery, names: frozenset[str]) -> str:
    return "{" + ", ".join(name for name in query.domain.names if name in names) + "}"


def _cell(query: ProductQuery, codes: Codes) -> int:
    cell = 0
    for name, n in zip(query.domain.names, query.domain.shape, strict=True):
        cell = cell * n + codes[name]
    return cell
