"""Networks straight from the definitions: every graph listed, neighbours by Definition 4.4, statistics node by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]


def all_pairs(nodes: int, directed: bool) -> list[Pair]:
    return list(permutations(range(nodes), 2)) if directed else list(combinations(range(nodes), 2))


def degree_masks(pairs: Sequence[Pair], sums: Iterable[tuple[str, int]]) -> list[list[int]]:
    """For each public degree the positions of the pairs that it counts; a sum is ("both" | "out" | "in", node)."""
    out = []
    for side, node in sums:
        ends = {"both": (0, 1), "out": (0,), "in": (1,)}[side]
        out.append([at for at, pair in enumerate(pairs) if any(pair[end] == node for end in ends)])
    return out


def neighbour_changes(
    pairs: Sequence[Pair], sums: Iterable[tuple[str, int]], fixed: Iterable[int] = ()
) -> list[tuple[int, int]]:
    """Definition 4.4 on graphs: each difference of two graphs with equal public degrees, as (removed, added) bit sets,
    such that no proper non-empty part of it leads from the first graph to a graph with these degrees.

    A difference is what matters: whether a part of it fits does not depend on the edges that both graphs share. So every
    pair of disjoint edge sets is tried, with the smallest graphs that differ by it. ``fixed`` pairs are public by themselves.
    """
    masks = degree_masks(pairs, sums) + [[at] for at in fixed]
    removed, added = np.zeros(1, dtype=np.uint16), np.zeros(1, dtype=np.uint16)
    excess = np.zeros((1, len(masks)), dtype=np.int8)
    for at in range(len(pairs)):
        bit = np.uint16(1 << at)
        hit = np.array([at in mask for mask in masks], dtype=np.int8)
        removed = np.concatenate([removed, removed | bit, removed])
        added = np.concatenate([added, added, added | bit])
        excess = np.concatenate([excess, excess - hit, excess + hit])
        # A public degree whose pairs have all been tried must be balanced by now.
        done = [i for i, mask in enumerate(masks) if max(mask) == at]
        keep = ~np.any(excess[:, done], axis=1)
        removed, added, excess = removed[keep], added[keep], excess[keep]
    keep = (removed | added) > 0
    removed, added = removed[keep], added[keep]
    order = np.argsort(np.bitwise_count(removed | added), kind="stable")
    removed, added = removed[order], added[order]
    minimal: list[tuple[int, int]] = []
    while len(removed):
        r, a = removed[0], added[0]
        minimal.append((int(r), int(a)))
        larger = ((removed & r) == r) & ((added & a) == a)
        removed, added = removed[~larger], added[~larger]
    return minimal


def change_vector(change: tuple[int, int], size: int) -> list[int]:
    removed, added = change
    return [(added >> at & 1) - (removed >> at & 1) for at in range(size)]


def mixing_rows(pairs: Sequence[Pair], groups: Sequence[int], directed: bool) -> Ints:
    """The mixing counts as a dense matrix over the pairs."""
    names = sorted(set(groups))
    keys = [(a, b) for a, b in product(names, names) if directed or a <= b]
    ends = [
        (groups[u], groups[v]) if directed else (min(groups[u], groups[v]), max(groups[u], groups[v]))
        for u, v in pairs
    ]
    return np.array([[int(end == key) for end in ends] for key in keys], dtype=np.int64)


def graphs(nodes: int, directed: bool, loops: bool = False) -> Ints:
    """Every graph as a row of 0s and 1s over its pairs, in the order of ``Network``."""
    size = len(cell_pairs(nodes, directed, loops))
    return np.array(list(product((0, 1), repeat=size)), dtype=np.int64).reshape(2**size, size)


def cell_pairs(nodes: int, directed: bool, loops: bool = False) -> list[Pair]:
    return [(u, v) for u in range(nodes) for v in range(nodes) if (loops or u != v) and (directed or u <= v)]


def degrees_of(graph: Ints, pairs: Sequence[Pair], nodes: int) -> tuple[list[int], list[int]]:
    """Out- and in-degrees of one graph; for an undirected one add them up."""
    out, into = [0] * nodes, [0] * nodes
    for present, (u, v) in zip(graph.tolist(), pairs):
        out[u] += present
        into[v] += present
    return out, into


def triangles(edges: Iterable[Pair]) -> int:
    listed = [frozenset(edge) for edge in edges]
    joined = set(listed)
    nodes = sorted(set().union(*joined)) if joined else []
    return sum({frozenset(p) for p in combinations(three, 2)} <= joined for three in combinations(nodes, 3))


def clustering(edges: Iterable[Pair], nodes: int, least: int, classes: Sequence[int]) -> list[Fraction]:
    """For each class of degrees, the sum of the shares of joined pairs of neighbours, small degrees counting as ``least``."""
    there = {frozenset(edge) for edge in edges}
    sums = [Fraction(0) for _ in range(1 + len(classes))]
    for v in range(nodes):
        friends = [u for u in range(nodes) if frozenset((u, v)) in there]
        joined = sum(frozenset(pair) in there for pair in combinations(friends, 2))
        degree = max(len(friends), least)
        sums[sum(len(friends) >= start for start in classes)] += Fraction(joined, degree * (degree - 1) // 2)
    return sums


def degree_sums(tables: Ints, nodes: int) -> Ints:
    """The degrees of each of many simple graphs, given by their edges."""
    out = np.zeros((len(tables), nodes), dtype=np.int64)
    for cell, (u, v) in enumerate(all_pairs(nodes, False)):
        out[:, u] += tables[:, cell]
        out[:, v] += tables[:, cell]
    return out


def wedges(edges: Iterable[Pair], nodes: int) -> int:
    listed = list(edges)
    return sum(
        len(neighbours) * (len(neighbours) - 1) // 2
        for v in range(nodes)
        for neighbours in [[edge for edge in listed if v in edge]]
    )


def consistent_tables(
    k: int, directed: bool, row_sums: Sequence[int], column_sums: Sequence[int], most: int
) -> list[tuple[int, ...]]:
    """All whole group counts with the given sums, each count at most ``most``."""
    ends = [(g, h) for g in range(k) for h in range(k) if directed or g <= h]
    out = []
    for values in product(range(most + 1), repeat=len(ends)):
        rows, columns = [0] * k, [0] * k
        for (g, h), value in zip(ends, values):
            rows[g] += value
            columns[h] += value
        good = (
            (rows, columns) == (list(row_sums), list(column_sums))
            if directed
            else [r + c for r, c in zip(rows, columns)] == list(row_sums)
        )
        if good:
            out.append(values)
    return out


def leaves_room(
    values: Sequence[int],
    degrees: tuple[Sequence[int], Sequence[int]],
    groups: Sequence[int],
    directed: bool,
    loops: bool,
) -> bool:
    """Whether in each group every set of nodes has enough neighbours within reach of the group counts."""
    k = max(groups) + 1
    ends = [(g, h) for g in range(k) for h in range(k) if directed or g <= h]
    count = dict(zip(ends, values))
    sizes = [groups.count(g) for g in range(k)]
    for side in (0, 1):
        for g in range(k):
            members = [v for v, group in enumerate(groups) if group == g]
            for size in range(1, len(members) + 1):
                for chosen in combinations(members, size):
                    reach = 0
                    for h in range(k):
                        if directed:
                            there = count[(g, h) if side == 0 else (h, g)]
                        else:
                            there = count[min(g, h), max(g, h)] * (2 if g == h else 1)
                        reach += min(there, size * (sizes[h] - (g == h and not loops)))
                    if sum(degrees[side][v] for v in chosen) > reach:
                        return False
    return True


def secret_neighbours(
    pairs: Sequence[Pair], sums: Iterable[tuple[str, int]], secret: Iterable[int]
) -> set[tuple[int, int]]:
    """Definition 4.1 of He, Machanavajjhala and Ding on graphs as bit sets, node pairs being the records: every ordered pair of
    graphs with equal public degrees, every third graph tried."""
    masks = [sum(1 << at for at in mask) for mask in degree_masks(pairs, sums)]
    hidden = sum(1 << at for at in secret)
    alike: dict[tuple[int, ...], list[int]] = {}
    for graph in range(1 << len(pairs)):
        alike.setdefault(tuple((graph & mask).bit_count() for mask in masks), []).append(graph)
    out = set()
    for graphs_ in alike.values():
        for x in graphs_:
            changes = [x ^ y for y in graphs_ if y != x]
            for change in changes:
                told = change & hidden
                fewer = any((c & hidden) and c & hidden != told and c & hidden & ~told == 0 for c in changes)
                inside = any(c & hidden == told and c != change and c & ~change == 0 for c in changes)
                if told and not fewer and not inside:
                    out.add((x, x ^ change))
    return out


def project_block(order: Iterable[int], pairs: Sequence[Pair], graph: Sequence[int], cap: int) -> list[int]:
    """Go through pairs in an order and keep edges while both ends have fewer than ``cap``."""
    kept: list[int] = []
    for at in order:
        if graph[at] and all(sum(end in pairs[k] for k in kept) < cap for end in pairs[at]):
            kept.append(at)
    return kept
