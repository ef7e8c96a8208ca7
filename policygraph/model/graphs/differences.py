"""On which attributes the two ends of an edge can differ at once. Owns :func:`difference_sets`.

The sensitivity of a set of cuboids depends on an edge only through this set, and grows with it, so the
inclusion-maximal ones are all that an exact answer needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.model.domain import Domain
from policygraph.model.graphs.rules import (
    Ball,
    BlockGrid,
    Blocks,
    Cells,
    Complete,
    Empty,
    Product,
    Rule,
    decode_arrays,
)

__all__ = ["by_counting", "by_edges", "difference_sets", "maximal"]

SETS_LIMIT = 100_000
WORK_LIMIT = 300_000_000


def maximal(sets: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Keep the sets that lie inside no other one; the empty set is dropped.

    Examples
    --------
    >>> [sorted(s) for s in maximal([frozenset("a"), frozenset("ab"), frozenset("c"), frozenset()])]
    [['a', 'b'], ['c']]
    """
    kept: list[frozenset[str]] = []
    for candidate in sorted(set(sets), key=len, reverse=True):
        if candidate and not any(candidate < other for other in kept):
            kept.append(candidate)
    return kept


def difference_sets(domain: Domain, rule: Rule) -> tuple[frozenset[str], ...]:
    """Inclusion-maximal sets of attributes on which the ends of one edge differ.

    Returns
    -------
    tuple of frozenset
        Sorted by the positions of the attributes; empty when there is no edge between cells.

    Notes
    -----
    Structured rules need no edge. For blocks of cells the number of ordered pairs inside a block that agree
    at least on T is a sum of squares of group sizes; a Möbius transform over the subsets T gives the number of
    pairs that differ exactly on S, without listing pairs.
    """
    if rule.n_edges == 0:
        return ()
    several = [name for name, n in zip(domain.names, domain.shape, strict=True) if n > 1]
    found: Iterable[frozenset[str]]
    if len(several) == 1 or isinstance(rule, Complete):
        found = [frozenset(several)]
    elif isinstance(rule, Product):
        found = [frozenset([n]) for n, f in zip(domain.names, rule.factors, strict=True) if f.n_edges]
    elif isinstance(rule, BlockGrid):
        # Blocks of different attributes are chosen independently, so all that can change can change at once.
        found = [frozenset(n for n, f in zip(domain.names, rule.factors, strict=True) if f.n_edges)]
    elif isinstance(rule, Ball):
        together = min(rule.together, len(several))
        if comb(len(several), together) > SETS_LIMIT:
            raise RefusedError(
                f"a threshold on {len(several)} attributes: there are {comb(len(several), together):,} "
                f"sets of attributes that can change at once, more than {SETS_LIMIT:,}.",
                code="graph.too-large",
            )
        found = (frozenset(some) for some in combinations(several, together))
        return tuple(found)
    elif isinstance(rule, Blocks):
        found = _of_blocks(domain, rule, several)
    elif isinstance(rule, Empty):
        found = []
    else:
        found = by_edges(domain, rule)
    return tuple(sorted(maximal(found), key=lambda s: sorted(map(domain.names.index, s))))


def by_edges(domain: Domain, rule: Rule) -> set[frozenset[str]]:
    """Difference sets of all edges, by listing them in chunks."""
    masks: set[bytes] = set()
    for u, v in rule.chunks(1 << 20):
        masks |= _masks(domain, u, v)
    return {_named(domain, mask) for mask in masks}


def _masks(domain: Domain, u: Cells, v: Cells) -> set[bytes]:
    ends = zip(decode_arrays(u, domain.shape), decode_arrays(v, domain.shape), strict=True)
    rows = np.packbits(np.stack([a != b for a, b in ends], axis=1), axis=1)
    as_one: npt.NDArray[np.void] = (
        np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).reshape(-1)
    )
    return {bytes(mask) for mask in np.unique(as_one)}


def _named(domain: Domain, mask: bytes) -> frozenset[str]:
    bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8))
    return frozenset(domain.names[at] for at in np.flatnonzero(bits))


def _of_blocks(domain: Domain, rule: Blocks, several: list[str]) -> set[frozenset[str]]:
    k = len(several)
    grouping = rule.size << k if k < 40 else WORK_LIMIT + 1
    if rule.n_edges <= min(grouping, WORK_LIMIT):
        return by_edges(domain, rule)
    if grouping > WORK_LIMIT:
        raise RefusedError(
            f"blocks of {rule.size:,} cells over {k} attributes with {rule.n_edges:,} pairs: finding which attributes "
            "can change at once would take too long. Give the blocks per attribute.",
            code="graph.too-large",
        )
    return by_counting(domain, rule, several)


def by_counting(domain: Domain, rule: Blocks, several: list[str]) -> set[frozenset[str]]:
    """Difference sets of the pairs inside blocks of cells, from group sizes alone."""
    k = len(several)
    every = decode_arrays(np.arange(rule.size, dtype=np.int64), domain.shape)
    codes = [every[domain.names.index(name)] for name in several]
    # Ordered pairs of one block that agree at least on the attributes of T; at most size^2, below 2^63.
    agree = np.zeros(1 << k, dtype=np.int64)

    def descend(at: int, chosen: int, group: Cells) -> None:
        if at == k:
            counts = np.bincount(group)
            agree[chosen] = int((counts * counts).sum())
            return
        descend(at + 1, chosen, group)
        _, finer = np.unique(
            group * domain.shape[domain.names.index(several[at])] + codes[at], return_inverse=True
        )
        descend(at + 1, chosen | 1 << at, finer.reshape(-1).astype(np.int64))

    descend(0, 0, rule.labels)
    # From "at least on T" to "exactly on T": take away the pairs that agree on one attribute more, axis by axis.
    exactly = agree.reshape((2,) * k)
    for axis in range(k):
        with_it = np.moveaxis(exactly, axis, 0)
        with_it[0] -= with_it[1]
    everything = (1 << k) - 1
    agreeing = np.flatnonzero(exactly.reshape(-1)).tolist()
    return {frozenset(several[b] for b in range(k) if (everything ^ t) >> b & 1) for t in agreeing}
