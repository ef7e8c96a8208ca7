"""Formulas that a reader may know, under ids that name their source, beside exact values.

``tests.published_tables`` prints them for ``docs/explanation/published-formulas.md``, ``test_published_formulas`` holds them to the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from math import comb, prod

import numpy as np

import policygraph as pg
from policygraph.effort import SECOND, Effort
from policygraph.moves.blowfish.longest import longest_blowfish
from policygraph.moves.graver.basis import graver_basis
from tests.oracles.published_bound import published_bound

# The formulas, as printed in the literature -------------------------------------------------------------------------


def one_cuboid() -> int:
    """One cuboid known."""
    return 2


def two_cuboids(domain: pg.Domain, first: str, second: str) -> int:
    """Two cuboids known: 2 min(|A|, |C|), where A and C are what only the one and only the other has."""
    sizes = dict(zip(domain.names, domain.shape))
    only = [prod(sizes[n] for n in set(a) - set(b)) for a, b in ((first, second), (second, first))]
    return 2 * min(only)


def three_margins_2x2x3() -> int:
    """Three one-way margins of a 2 x 2 x 3 table known."""
    return 6


def partial_cells(known: Iterable[tuple[int, int]]) -> int:
    """Some cells of two cuboids known: 2 max_x min{n1(x), n2(x)}, x the values of the shared attributes."""
    return 2 * max(min(n1, n2) for n1, n2 in known)


def undirected_degrees(nodes: int, known: int) -> int:
    """Degrees of some nodes of an undirected simple graph known: min{n + 1, V}."""
    return min(known + 1, nodes)


def directed_degrees(nodes: int, ins: int, outs: int) -> int:
    """In-degrees of n1 and out-degrees of n2 nodes of a directed graph known: min{2 min(n1, n2) + 1, 2V}."""
    return min(2 * min(ins, outs) + 1, 2 * nodes)


def parallel_composition(parts: Iterable[int]) -> int:
    """Disjoint tables under fixed background knowledge: the largest of their sensitivities."""
    return max(parts)


def edges_only(matrix: np.ndarray, graph: np.ndarray) -> int:
    """The longest minimal change made of secret pairs only, no repair along a non-edge."""
    edges = [(i, j) for i, j in combinations(range(len(graph)), 2) if graph[i][j]]
    incidence = np.zeros((len(graph), len(edges)), dtype=np.int64)
    for at, (i, j) in enumerate(edges):
        incidence[i, at], incidence[j, at] = -1, 1
    moves = graver_basis(matrix @ incidence) @ incidence.T
    return int(np.abs(moves).sum(axis=1).max(initial=0))


def full_one_marginal(domain: pg.Domain, marginal: str) -> int:
    """Full graph, one marginal C known: 2 size(C)."""
    return 2 * prod(domain.shape[domain.axis(name)] for name in marginal)


def attribute_disjoint_marginals(domain: pg.Domain, marginals: Sequence[str]) -> int:
    """Attribute graph, disjoint marginals known: 2 max size(C_i)."""
    return max(full_one_marginal(domain, marginal) for marginal in marginals)


def sparse_counts(matrix: np.ndarray, graph: np.ndarray) -> int | None:
    """Sparse count queries known: 2 max{alpha, xi} of the graph over the queries."""
    return published_bound(matrix, graph).published


def fourier(attributes: int, order: int = 2) -> int:
    """All Fourier coefficients up to an order: 2 |B| / 2^(k/2), in units of 2^(-k/2)."""
    return 2 * sum(comb(attributes, size) for size in range(order + 1))


def count_of_tables(cuboids: Sequence[str]) -> int:
    """A set of cuboids published, a record replaced: twice the number of tables."""
    return 2 * len(cuboids)


FORMULAS: dict[str, Callable[..., int | None]] = {
    "literature.one-cuboid": one_cuboid,
    "literature.two-cuboids": two_cuboids,
    "literature.three-margins": three_margins_2x2x3,
    "literature.partial-cells": partial_cells,
    "literature.undirected-degrees": undirected_degrees,
    "literature.directed-degrees": directed_degrees,
    "literature.parallel-composition": parallel_composition,
    "literature.edges-only": edges_only,
    "he-2014.full-one-marginal": full_one_marginal,
    "he-2014.attribute-disjoint-marginals": attribute_disjoint_marginals,
    "he-2014.sparse-counts": sparse_counts,
    "literature.fourier": fourier,
    "literature.count-of-tables": count_of_tables,
}


# Exact values, from the whole list of moves -------------------------------------------------------------------------


def table(*sizes: int) -> pg.Domain:
    return pg.Domain({"ABCDEFGH"[i]: n for i, n in enumerate(sizes)})


def domain_of(policy: pg.Policy) -> pg.Domain:
    """The domain of a policy over a table."""
    if not isinstance(policy.domain, pg.Domain):
        raise TypeError(f"{policy.domain!r}: expected a table")
    return policy.domain


def margins(domain: pg.Domain, words: str, graph: pg.PolicyGraph | None = None) -> pg.Policy:
    """A policy in which some margins are public, written "AB BC"; "-" is the total."""
    facts = [pg.Total() if word == "-" else pg.Cuboid(*word) for word in words.split()]
    return pg.Policy(domain, graph, facts)


def some_sums(rows: int, columns: int, n1: int, n2: int, total: bool = False) -> pg.Policy:
    """The first n1 row sums and the first n2 column sums are public, and the total if asked for."""
    facts: list[pg.Constraint] = [pg.Total()] if total else []
    facts += [pg.Cells("A", list(range(n1)))] if n1 else []
    facts += [pg.Cells("B", list(range(n2)))] if n2 else []
    return pg.Policy(table(rows, columns), constraints=facts)


def degrees(nodes: int, known: int) -> pg.Policy:
    return pg.Policy(pg.Network(nodes), constraints=[pg.Degrees(list(range(known)))] if known else [])


def directed(nodes: int, ins: int, outs: int, loops: bool) -> pg.Policy:
    """The in-degrees of the first nodes and the out-degrees of the first nodes are public."""
    facts = [pg.Degrees(list(range(ins)), side="in")] if ins else []
    facts += [pg.Degrees(list(range(outs)), side="out")] if outs else []
    return pg.Policy(pg.Network(nodes, directed=True, loops=loops), constraints=facts)


def basis(policy: pg.Policy) -> np.ndarray:
    """All minimal moves of a policy without graph."""
    return graver_basis(policy.system.matrix().toarray(), capacity=policy.domain.capacity)


def listed(policy: pg.Policy, query: pg.Query | None = None) -> int:
    """Largest change over all minimal moves."""
    moves = basis(policy)
    answers = moves if query is None else moves @ query.columns(np.arange(policy.domain.size)).toarray().T
    return int(np.abs(answers).sum(axis=1).max(initial=0))


def listed_unit(policy: pg.Policy) -> int:
    """The largest change that a search over changes by at most one a cell can see."""
    moves = basis(policy)
    moves = moves[np.abs(moves).max(axis=1, initial=0) <= 1]
    return int(np.abs(moves).sum(axis=1).max(initial=0))


def engine(policy: pg.Policy, query: pg.Query | None = None) -> int:
    """The exact answer of the ladder."""
    found = pg.sensitivity(pg.queries.identity(policy.domain) if query is None else query, policy)
    if not found.exact or found.value.denominator != 1:
        raise ValueError(str(found))
    return int(found.value)


def dense(policy: pg.Policy) -> tuple[np.ndarray, np.ndarray]:
    """Constraint matrix and adjacency of a small policy with a graph."""
    cells = np.arange(policy.domain.size)
    graph = policy.graph
    if graph is None:
        raise ValueError("expected a policy with a graph")
    return policy.system.matrix().toarray(), graph.adjacent(cells[:, None], cells[None, :])


@cache
def blowfish(policy: pg.Policy) -> int:
    """Exact largest histogram change between Blowfish neighbours."""
    bracket = longest_blowfish(*dense(policy), effort=Effort(60 * SECOND))
    if not bracket.exact:
        raise ValueError(bracket.reason)
    return bracket.lower


def part(domain: pg.Domain, name: str, value: int) -> pg.Query:
    """The cells in which one attribute has one value."""
    cells = [c for c in range(domain.size) if domain.cell(c)[domain.axis(name)] == value]
    return pg.queries.matrix(domain, np.eye(domain.size, dtype=np.int64)[cells])


def fourier_query(attributes: int, order: int = 2) -> pg.Query:
    """Fourier coefficients up to an order over binary attributes, times 2^(k/2)."""
    domain = table(*[2] * attributes)
    cells = list(product((0, 1), repeat=attributes))
    sets = [s for size in range(order + 1) for s in combinations(range(attributes), size)]
    rows = [[(-1) ** sum(cell[a] for a in s) for cell in cells] for s in sets]
    return pg.queries.matrix(domain, np.array(rows, dtype=np.int64))


def line(size: int, *counts: list[int]) -> pg.Policy:
    """Secret pairs are neighbours on a line; the counts of some sets of values are public."""
    domain = table(size)
    return pg.Policy(domain, pg.PolicyGraph.line(domain), [pg.count({"A": values}) for values in counts])


def with_graph(kind: str, words: str, *sizes: int) -> pg.Policy:
    domain = table(*sizes)
    graph = pg.PolicyGraph.full(domain) if kind == "full" else pg.PolicyGraph.attribute(domain)
    return margins(domain, words, graph)


BLOWFISH: dict[str, pg.Policy] = {
    "line of 4, count of {0, 1}": line(4, [0, 1]),
    "line of 6, counts of {0, 1} and {2, 3}": line(6, [0, 1], [2, 3]),
    "full graph on 2x2, A": with_graph("full", "A", 2, 2),
    "full graph on 3x2, A": with_graph("full", "A", 3, 2),
    "full graph on 2x2x2, AB": with_graph("full", "AB", 2, 2, 2),
    "attribute graph on 2x2, A": with_graph("attribute", "A", 2, 2),
    "attribute graph on 3x2, A": with_graph("attribute", "A", 3, 2),
    "attribute graph on 2x3, A": with_graph("attribute", "A", 2, 3),
    "attribute graph on 2x2, A and B": with_graph("attribute", "A B", 2, 2),
    "attribute graph on 2x3, A and B": with_graph("attribute", "A B", 2, 3),
    "attribute graph on 2x2x2, A and B": with_graph("attribute", "A B", 2, 2, 2),
    "attribute graph on 2x2x2, A, B and C": with_graph("attribute", "A B C", 2, 2, 2),
}


# Counter-examples: two concrete data sets that must look alike -------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two neighbouring data sets whose answers differ by more than a formula says."""

    formula: str
    policy: pg.Policy
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]
    says: int

    def counts(self, which: str) -> np.ndarray:
        out = np.zeros(self.policy.domain.size, dtype=np.int64)
        for cell in self.before if which == "before" else self.after:
            out[self.policy.domain.index(cell)] += 1
        return out

    @property
    def differ(self) -> int:
        return int(np.abs(self.counts("after") - self.counts("before")).sum())


def cells(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(digit) for digit in word) for word in text.split())


PAIRS: dict[str, Pair] = {
    "three-margins": Pair(
        "literature.three-margins",
        margins(table(2, 2, 3), "A B C"),
        cells("002 011 100 100"),
        cells("000 000 101 112"),
        6,
    ),
    "partial-cells": Pair("literature.partial-cells", some_sums(3, 3, 1, 1), cells("01 10"), cells("00"), 2),
    "partial-cells-total": Pair(
        "literature.partial-cells", some_sums(3, 3, 1, 1, True), cells("01 10"), cells("00 11"), 2
    ),
    "undirected-degrees": Pair(
        "literature.undirected-degrees", degrees(5, 5), cells("12 03 04"), cells("01 02 34"), 5
    ),
    "directed-degrees": Pair(
        "literature.directed-degrees", directed(3, 1, 0, False), cells("10"), cells("20"), 1
    ),
    "parallel-composition": Pair(
        "literature.parallel-composition", margins(table(2, 2), "A"), cells("00"), cells("01"), 1
    ),
    "edges-only-line": Pair("literature.edges-only", line(4, [0, 1]), cells("1 3"), cells("2 0"), 2),
    "sparse-counts": Pair(
        "he-2014.sparse-counts", line(6, [0, 1], [2, 3]), cells("1 3 4"), cells("2 5 0"), 4
    ),
    "attribute-disjoint-marginals": Pair(
        "he-2014.attribute-disjoint-marginals",
        with_graph("attribute", "A B", 2, 2, 2),
        cells("000 010 100 111"),
        cells("011 101 110 001"),
        4,
    ),
}
