"""Policy graphs by their definitions: a predicate over all pairs of cells, then networkx. Slow on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, product

import networkx as nx
import numpy as np

Codes = tuple[int, ...]
Predicate = Callable[[Codes, Codes], bool]
Edge = frozenset  # of two vertices; bottom is the string "bottom" here
NONE = "bottom"


def cells(shape: Codes) -> list[Codes]:
    return list(product(*(range(n) for n in shape)))


def edges_of(shape: Codes, predicate: Predicate) -> set[Edge]:
    numbered = list(enumerate(cells(shape)))
    return {frozenset((u, v)) for (u, a), (v, b) in combinations(numbered, 2) if predicate(a, b)}


def full(a: Codes, b: Codes) -> bool:
    return a != b


def attribute(a: Codes, b: Codes) -> bool:
    return sum(x != y for x, y in zip(a, b)) == 1


def bit(a: Codes, b: Codes) -> bool:
    return sum(bin(x ^ y).count("1") for x, y in zip(a, b)) == 1


def grid(a: Codes, b: Codes) -> bool:
    return sum(abs(x - y) for x, y in zip(a, b)) == 1


def threshold(theta: int) -> Predicate:
    return lambda a, b: 0 < sum(abs(x - y) for x, y in zip(a, b)) <= theta


def euclidean(theta: Fraction) -> Predicate:
    return lambda a, b: 0 < sum((x - y) ** 2 for x, y in zip(a, b)) <= theta * theta


def only(axis: int, predicate: Predicate) -> Predicate:
    """The predicate on one coordinate, the others equal."""
    return lambda a, b: (
        a[axis] != b[axis]
        and all(x == y for i, (x, y) in enumerate(zip(a, b)) if i != axis)
        and predicate((a[axis],), (b[axis],))
    )


def either(predicates: Iterable[Predicate]) -> Predicate:
    listed = list(predicates)
    return lambda a, b: any(predicate(a, b) for predicate in listed)


def same_block(blocks: Iterable[Iterable[Codes]]) -> Predicate:
    listed = [set(block) for block in blocks]
    return lambda a, b: a != b and any(a in block and b in block for block in listed)


def listed(pairs: Iterable[tuple[Codes, Codes]]) -> Predicate:
    known = {frozenset(pair) for pair in pairs}
    return lambda a, b: frozenset((a, b)) in known


def graph(size: int, edges: set[Edge], bottom: set[int]) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(range(size))
    made.add_edges_from(tuple(edge) for edge in edges)
    made.add_edges_from((u, NONE) for u in bottom)
    return made


def labels(made: nx.Graph) -> dict[object, int]:
    """Components in the order of their smallest cells."""
    parts = sorted(nx.connected_components(made), key=lambda part: min(u for u in part if u != NONE))
    return {u: number for number, part in enumerate(parts) for u in part}


def difference_sets(shape: Codes, names: tuple[str, ...], edges: set[Edge]) -> set[frozenset[str]]:
    at = cells(shape)
    found = set()
    for edge in edges:
        u, v = edge
        found.add(frozenset(n for n, x, y in zip(names, at[u], at[v]) if x != y))
    return {s for s in found if not any(s < other for other in found)}


def incidence_columns(size: int, edges: set[Edge], bottom: set[int]) -> set[tuple[int, ...]]:
    columns = set()
    for edge in edges:
        u, v = sorted(edge)
        column = np.zeros(size, dtype=int)
        column[u], column[v] = -1, 1
        columns.add(tuple(column.tolist()))
    for u in bottom:
        columns.add(tuple(int(i == u) for i in range(size)))
    return columns
