"""Literal definitions: shrunk differences, deviations, all partitions into runs, their first cheapest one, merged graphs, exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np


def deviation(values):
    """Least sum of distances from one number: some value attains it."""
    return min(sum(abs(v - c) for v in values) for c in values)


def run_partitions(size, allowed):
    """Every partition of 0 .. size-1 into runs that are allowed, as tuples of (start, stop)."""
    if size == 0:
        yield ()
        return
    for start in range(size):
        if allowed(start, size):
            for before in run_partitions(start, allowed):
                yield (*before, (start, size))


def family(name):
    """Whether a run belongs to a family."""

    def allowed(start, stop):
        length = stop - start
        if name == "all":
            return True
        return length & (length - 1) == 0 and (name == "sliding" or start % length == 0)

    return allowed


def cheapest(costs, size, allowed, rank):
    """The cheapest partition; of equal ones that of least rank. ``costs`` maps (start, stop) to a whole number."""
    return min(run_partitions(size, allowed), key=lambda p: (sum(costs[run] for run in p), rank(p)))


def rank_of_runs(partition):
    """Longer last runs first, then the runs before."""
    return tuple(start - stop for start, stop in reversed(partition))


def rank_of_tree(size):
    """Going down the binary tree from the left: to take a run whole comes before splitting it."""
    top = 1
    while top < size:
        top *= 2

    def rank(partition):
        taken, out = set(partition), []

        def visit(start, length):
            if start >= size:
                return
            if (start, start + length) in taken:
                out.append(0)
                return
            out.append(1)
            visit(start, length // 2)
            visit(start + length // 2, length // 2)

        visit(0, top)
        return tuple(out)

    return rank


def merged_edges(edges, labels):
    """Edges between buckets: those that join cells of two different ones."""
    return {tuple(sorted((labels[u], labels[v]))) for u, v in edges if labels[u] != labels[v]}


def law(scale, reach):
    """Discrete Laplace probabilities on -reach .. reach."""
    ratio = math.exp(-1 / scale)
    k = np.abs(np.arange(-reach, reach + 1))
    return (1 - ratio) / (1 + ratio) * ratio**k


def partition_law(counts, allowed, scale, charge, rank, reach):
    """Probability of every partition, by summing over noise: the costs of few runs are independent given the others.

    Only for tables so small that all noises can be listed but one at a time: the law of the cheapest partition is found by
    going through the joint values of all runs that two partitions share, with the others independent.
    """
    size = len(counts)
    partitions = sorted(run_partitions(size, allowed), key=rank)
    runs = sorted({run for p in partitions for run in p})
    fixed = {run: deviation(counts[run[0] : run[1]]) + charge for run in runs}
    shared = [run for run in runs if sum(run in p for p in partitions) > 1]
    values = np.arange(-reach, reach + 1)
    out = dict.fromkeys(partitions, 0.0)
    laws = {run: law(scale(run[1] - run[0]), reach) for run in runs}
    for drawn in itertools.product(range(2 * reach + 1), repeat=len(shared)):
        weight = math.prod(laws[run][at] for run, at in zip(shared, drawn))
        if weight < 1e-14:
            continue
        noise = {run: values[at] for run, at in zip(shared, drawn)}
        offsets, own = [], []
        for p in partitions:
            offsets.append(sum(fixed[run] + noise.get(run, 0) for run in p))
            rest = [run for run in p if run not in noise]
            spread = np.array([1.0])
            for run in rest:
                spread = np.convolve(spread, laws[run])
            own.append(spread)
        low = min(o - len(s) // 2 for o, s in zip(offsets, own))
        high = max(o + len(s) // 2 for o, s in zip(offsets, own))
        table = np.zeros((len(partitions), high - low + 1))
        for row, o, s in zip(table, offsets, own):
            row[o - len(s) // 2 - low : o + len(s) // 2 - low + 1] = s
        # Above: cost strictly greater; a later partition may also be equal to an earlier one and lose.
        at_least = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
        above = at_least - table
        for first, p in enumerate(partitions):
            others = [at_least[j] if j > first else above[j] for j in range(len(partitions)) if j != first]
            out[p] += weight * float((table[first] * np.prod(others, axis=0)).sum())
    return out


def tree_law(counts, scale, charge, reach):
    """Probability of every partition of four cells into aligned runs: halves first, then the whole."""
    values = {}

    def cost(start, stop):
        fixed = deviation(counts[start:stop]) + charge
        return fixed - reach, law(scale(stop - start), reach)

    def add(a, b):
        return a[0] + b[0], np.convolve(a[1], b[1])

    def take(own, split):
        """Laws of the value together with 'the whole is taken' (it costs no more), and with 'it is split'."""
        low = min(own[0], split[0])
        high = max(own[0] + len(own[1]), split[0] + len(split[1]))
        a, b = np.zeros(high - low), np.zeros(high - low)
        a[own[0] - low : own[0] - low + len(own[1])] = own[1]
        b[split[0] - low : split[0] - low + len(split[1])] = split[1]
        least_b = np.cumsum(b[::-1])[::-1]
        least_a = np.cumsum(a[::-1])[::-1]
        # Masses that a sub-law lacks (it may be a joint law with an event) must not be counted as above.
        return (low, a * least_b), (low, b * (least_a - a))

    half = {}
    for start in (0, 2):
        whole, split = take(cost(start, start + 2), add(cost(start, start + 1), cost(start + 1, start + 2)))
        half[start] = {
            ((start, start + 2),): whole,
            ((start, start + 1), (start + 1, start + 2)): split,
        }
    for left, right in itertools.product(half[0], half[2]):
        both = add(half[0][left], half[2][right])
        whole, split = take(cost(0, 4), both)
        values[(*left, *right)] = float(split[1].sum())
        values[((0, 4),)] = values.get(((0, 4),), 0.0) + float(whole[1].sum())
    return values


def shrunk(noisy, levels, covariance, fewest, spread, target=None):
    """The estimate from nested buckets by dense projections and traces: what is left of each difference, group by group."""
    size = len(noisy)

    def averaging(labels):
        same = np.equal.outer(labels, labels).astype(float)
        return same / same.sum(axis=1)

    coarsest = np.array(levels[-1]) if levels else np.arange(size)
    kind = np.array([math.ceil(math.log2((coarsest == label).sum())) for label in coarsest])
    out = np.zeros(size)
    before = np.eye(size)
    steps = [(averaging(np.array(labels)), None) for labels in levels]
    steps += [(np.zeros((size, size)), target)] if target is not None else []
    for after, aim in steps:
        part = before - after
        apart = part @ noisy - (0 if aim is None else aim)
        expected = np.diag(before @ covariance @ before.T) - np.diag(after @ covariance @ after.T)
        numbers = np.diag(before) - np.diag(after)
        groups, open_ = [], []
        for each in range(kind.max() + 1):
            open_ += [cell for cell in range(size) if kind[cell] == each and numbers[cell] > 0]
            if sum(numbers[cell] for cell in open_) >= fewest:
                groups, open_ = [*groups, open_], []
        if open_:
            groups = [*groups[:-1], groups[-1] + open_] if groups else [open_]
        for group in groups:
            noise, found = expected[group].sum(), (apart[group] ** 2).sum()
            share = 0.0
            if noise > 0 and found > 0:
                tests = max(math.log2(size), 1) * len(groups)
                room = noise * min(
                    1.0, math.sqrt(2 * math.log(tests) * spread / max(numbers[group].sum(), 1.0))
                )
                share = 1.0 if found - noise <= room else noise / found
            out[group] += (1 - share) * apart[group]
        before = after
    return out + (before @ noisy if target is None else target)
