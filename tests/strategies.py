"""Small policies of every shape with a graph and public facts, and their neighbours by the literal definition."""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np

import policygraph as pg
from policygraph.moves.blowfish.minimal import differences, minimal_sums
from policygraph.moves.blowfish.problem import blowfish_problem, dense_problem
from tests.oracles import blowfish as oracle

SHAPES: list[dict[str, int]] = [{"x": 2}, {"x": 3}, {"x": 4}, {"a": 2, "b": 2}, {"x": 1}]


def graphs(domain: pg.Domain, rng: random.Random) -> list[Any]:
    """Line, full, attribute, threshold, some edges of one's own; each without bottom, with it everywhere, with it somewhere."""
    size = domain.size
    pairs = list(combinations(range(size), 2))
    own = rng.sample(pairs, rng.randint(0, len(pairs)))
    plain = [pg.PolicyGraph.full(domain), pg.PolicyGraph.from_edges(domain, own)]
    if len(domain.names) == 1:
        plain += [pg.PolicyGraph.line(domain), pg.PolicyGraph.threshold(domain, 2)]
    else:
        plain += [pg.PolicyGraph.attribute(domain), pg.PolicyGraph.grid(domain)]
    ends = [(cell, pg.BOTTOM) for cell in rng.sample(range(size), rng.randint(1, size))]
    some = pg.PolicyGraph.from_edges(domain, [*own, *ends])
    return [*plain, *(g.with_bottom() for g in plain), some]


def facts(domain: pg.Domain, rng: random.Random) -> list[list[Any]]:
    """Total, margins, counts, cells, weighted counts, structural zeros."""
    cells = list(product(*(domain.labels(name) for name in domain.names)))
    first = domain.names[0]
    some = rng.sample(list(domain.labels(first)), rng.randint(1, len(domain.labels(first))))
    out: list[list[Any]] = [
        [pg.Total()],
        [pg.count({first: some})],
        [pg.Cells([first], [rng.choice(domain.labels(first))])],
        [pg.LinearCount([(cell, rng.randint(0, 2)) for cell in cells])],
        [pg.Total(), pg.StructuralZero([rng.choice(cells)])],
        [pg.count({first: some}), pg.StructuralZero([rng.choice(cells)])],
        [pg.Cuboid(first)],
    ]
    if len(domain.names) > 1:
        out += [[pg.Cuboid("a"), pg.Cuboid("b")], [pg.Cuboid("a", "b")]]
    return out


def queries(domain: pg.Domain, rng: random.Random) -> list[Any]:
    """Identity, prefixes, one cuboid, a matrix of one's own."""
    matrix = [[rng.randint(-2, 2) for _ in range(domain.size)] for _ in range(2)]
    out = [pg.queries.identity(domain), pg.queries.cuboids(domain, [domain.names[:1]])]
    if len(domain.names) == 1:
        out.append(pg.queries.prefix(domain))
    return [*out, pg.queries.matrix(domain, matrix)]


def small_policies(seed: int, shapes: list[dict[str, int]] | None = None) -> list[pg.Policy]:
    """All pairs of the graphs and facts above."""
    rng = random.Random(seed)
    out = []
    for shape in shapes or SHAPES:
        domain = pg.Domain(shape)
        for graph in graphs(domain, rng):
            for listed in facts(domain, rng):
                try:
                    out.append(pg.Policy(domain, graph=graph, constraints=listed))
                except pg.InputError:  # a structural zero against a fact that needs the cell
                    continue
    return out


@lru_cache(maxsize=4096)
def _literal(matrix: Any, adjacency: Any, bottom: bool, n: int) -> frozenset[tuple[int, ...]]:
    return frozenset(oracle.moves(matrix, adjacency, n, bottom=bottom))


def literal_moves(policy: pg.Policy, most: int = 4) -> tuple[set[tuple[int, ...]], bool]:
    """All histogram changes between neighbours of up to so many records within the cap, and whether more records add none."""
    matrix, adjacency, keep = dense_problem(policy)
    bottom = policy.graph is not None and policy.graph.bottom != "none"
    if not len(keep):
        return set(), True
    rows = tuple(tuple(int(v) for v in row) for row in matrix)
    joined = tuple(tuple(bool(v) for v in row) for row in adjacency)
    points = blowfish_problem(matrix, adjacency, bottom=bottom).class_columns
    longest = max([1, *map(len, minimal_sums(differences(points)))])
    found = set()
    for n in range(1, min(most, longest) + 1):
        for move in _literal(rows, joined, bottom, n):
            full = np.zeros(policy.domain.size, dtype=np.int64)
            full[keep] = move
            if oracle.within(move, policy.at_most_records):
                found.add(tuple(full.tolist()))
    return found, longest <= most


def power(query: Any, move: tuple[int, ...], norm: str) -> int:
    """L1 norm or squared L2 norm of the answers to a change, in units of the query."""
    answer = query.columns(np.arange(len(move))).toarray() @ np.array(move, dtype=np.int64)
    return int(np.abs(answer).sum() if norm == "l1" else (answer**2).sum())
