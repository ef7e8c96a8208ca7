"""Theorem 4.1, Lemma 4.1 and Figures 1 to 3: supervertices, the split graph G'', and matching as a partition."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show
from policygraph.mechanisms.partitioned.merge import merge_graph

SCRIPT = Script(
    "blowfish-data-dependent",
    "Theorems 4.1 and 5.1: the graphs",
    "policygraph/mechanisms/partitioned/merge.py",
    10,
)


def merged_edges(graph: pg.PolicyGraph, partition: pg.Partition) -> set[tuple[int, int]]:
    """The edges of G', from the library."""
    over = merge_graph(graph, partition)
    return {
        (i, j)
        for i, j in combinations(range(partition.n_buckets), 2)
        if over.adjacent(np.array([i]), np.array([j]))[0]
    }


def split_edges(graph: pg.PolicyGraph, partition: pg.Partition) -> set[tuple[int, int]]:
    """The edges of G'': between all cells of joined supervertices, and between the cells of one."""
    joined, labels = merged_edges(graph, partition), partition.labels
    return {
        (u, v)
        for u, v in combinations(range(partition.size), 2)
        if labels[u] == labels[v] or tuple(sorted((int(labels[u]), int(labels[v])))) in joined
    }


def steps(edges: set[tuple[int, int]], labels: np.ndarray) -> set[tuple[int, int]]:
    """How a record moves between buckets along these edges; a move inside a bucket changes no count."""
    return {tuple(sorted((int(labels[u]), int(labels[v])))) for u, v in edges if labels[u] != labels[v]}  # type: ignore[misc]


def equivalent(trials: int) -> tuple[int, int]:
    """Random graphs and partitions for which W over G'' and I over G' have other neighbours; for which G is not in G''."""
    rng = np.random.default_rng(1)
    wrong = outside = 0
    for _ in range(trials):
        size = int(rng.integers(4, 9))
        domain = pg.Domain({"x": size})
        drawn = nx.gnp_random_graph(size, 0.4, seed=int(rng.integers(1 << 30)))
        if drawn.number_of_edges() == 0:
            continue
        policy = pg.Policy(domain, drawn)
        partition = pg.Partition(np.unique(rng.integers(0, 4, size), return_inverse=True)[1])
        assert policy.graph is not None
        split = split_edges(policy.graph, partition)
        wrong += steps(split, partition.labels) != merged_edges(policy.graph, partition)
        outside += not {tuple(sorted(edge)) for edge in drawn.edges} <= split
    return wrong, outside


def matched(trials: int) -> int:
    """Drawn histograms for which the maximum weight matching of Figure 3 is not the cheapest partition into buckets of one or two."""
    rng, missed = np.random.default_rng(2), 0
    for _ in range(trials):
        counts = rng.integers(0, 30, 6)
        noise, constant = 4, 100
        graph = nx.Graph()
        for i, j in combinations(range(6), 2):
            graph.add_edge(i, j, weight=int(2 * constant - abs(counts[i] - counts[j]) - noise))
        for i in range(6):
            graph.add_edge(i, ("single", i), weight=constant - noise)
        chosen = nx.max_weight_matching(graph)
        cost = sum(
            noise
            + (
                0
                if any(isinstance(v, tuple) for v in pair)
                else abs(int(counts[pair[0]]) - int(counts[pair[1]]))
            )
            for pair in chosen
        )
        missed += cost != cheapest(list(counts), noise)
    return missed


def cheapest(counts: list[int], noise: int) -> int:
    """Least cost of a partition into buckets of one or two cells, by trying all."""
    if not counts:
        return 0
    first, rest = counts[0], counts[1:]
    alone = noise + cheapest(rest, noise)
    paired = [
        noise + abs(int(first) - int(other)) + cheapest(rest[:k] + rest[k + 1 :], noise)
        for k, other in enumerate(rest)
    ]
    return min([alone, *paired])


def run(small: bool) -> Result:
    line = pg.PolicyGraph.line(pg.Domain({"x": 5}))
    partition = pg.Partition([0, 1, 1, 2, 3])
    split = split_edges(line, partition)
    shown = " ".join(f"x{u + 1}-x{v + 1}" for u, v in sorted(split))
    wrong, outside = equivalent(100)
    grid = pg.Domain({"x": 3, "y": 3})
    block = pg.Partition([0, 0, 1, 0, 0, 2, 3, 4, 5])
    single = pg.sensitivity(
        pg.queries.identity(pg.Domain({"bucket": 6})),
        pg.Policy(pg.Domain({"bucket": 6}), merge_graph(pg.PolicyGraph.grid(grid), block)),
    )
    rows = [
        Row(
            "Figure 1",
            "G' of a line of 5 with x2 and x3 in one bucket is a line of 4",
            "yes",
            "yes" if merge_graph(line, partition) == pg.PolicyGraph.line(pg.Domain({"bucket": 4})) else "no",
        ),
        Row("Figure 1", "edges of G''", "x1-x2 x1-x3 x2-x3 x2-x4 x3-x4 x4-x5", shown),
        Row(
            "Theorem 4.1",
            "100 drawn graphs and partitions for which neighbours under G' and G'' differ in the bucket counts",
            "0",
            show(wrong),
        ),
        Row("Lemma 4.1", "the same graphs, G not contained in G''", "0", show(outside)),
        Row(
            "Figure 2",
            "3 x 3 grid, four cells merged: sensitivity of the bucket counts under G'",
            "2",
            show(single.value),
        ),
        Row(
            "Theorem 5.1",
            "50 drawn histograms of 6 cells for which the matching is not the cheapest partition",
            "0",
            show(matched(50)),
            code="policygraph/mechanisms/matching/",
        ),
        leak(),
    ]
    return Result(rows, note="exact; drawn graphs (seed 1) and histograms (seed 2).")


def leak() -> Row:
    """Five cells of which one is below the others, and a record more in it: all stay single if no pair has a noisy gain above 0."""
    epsilon, noise, scale = 1.0, 4.0, 2.0

    def all_single(counts: list[int]) -> float:
        """Log-probability that every noisy gain is negative, with Laplace noise on the pairs alone."""
        gains = [noise - abs(a - b) for a, b in combinations(counts, 2)]
        return sum(
            np.log(0.5) - gain / scale if gain > 0 else np.log1p(-0.5 * np.exp(gain / scale))
            for gain in gains
        )

    apart = abs(all_single([8, 10, 10, 10, 10]) - all_single([9, 10, 10, 10, 10]))
    return Row(
        "Theorem 5.2",
        "counts 8, 10, 10, 10, 10 and 9, 10, 10, 10, 10, noise of scale 2/epsilon on the pairs alone: log-odds that no pair is chosen, epsilon 1",
        f"at most {show(epsilon)}",
        show(float(apart)),
        holds=bool(apart <= epsilon),
        reason="the proof changes the weight of exactly one edge of the matching, which holds only if every vertex is matched: the edges of single cells need noise as well, and here they get it",
        code="policygraph/mechanisms/partitioned/partitioners/matching.py",
    )
