"""The law of the released partition, computed: neighbours differ by at most epsilon, and the noise is not wasted."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import policygraph as pg
from policygraph.mechanisms.partitioned.partitioners import Intervals
from tests.gate import chosen_many
from tests.oracles import partition as oracle

EPSILON = Fraction(2)


def chooser(family, size, epsilon=EPSILON, noise=0.0, changes=1):
    # A bias of b scales of 2 k / epsilon, so that the charge is a whole number here.
    return Intervals(family, bias=1).calibrate(size, Fraction(changes), pg.Epsilon(epsilon), noise)


def laws_of_three(scale):
    return {
        counts: oracle.partition_law(counts, oracle.family("all"), scale, 1, oracle.rank_of_runs, 24)
        for counts in itertools.product(range(4), repeat=3)
    }


def laws_of_four(scale):
    return {counts: oracle.tree_law(counts, scale, 1, 30) for counts in itertools.product(range(4), repeat=4)}


def worst(laws, step=1):
    """Largest log-ratio over all tables that differ by one record (or by one that moves)."""
    out = 0.0
    for a, b in itertools.combinations(laws, 2):
        moved = np.subtract(a, b)
        if np.abs(moved).sum() != step or (step == 2 and moved.sum() != 0):
            continue
        out = max(out, max(abs(math.log(laws[a][p] / laws[b][p])) for p in laws[a]))
    return out


@pytest.mark.slow
def test_three_cells_all_runs():
    ready = chooser("all", 3)
    laws = laws_of_three(lambda m: float(ready.scale(m)))
    assert all(abs(sum(law.values()) - 1) < 1e-6 for law in laws.values())
    assert 0.5 * float(EPSILON) < worst(laws) <= float(EPSILON)
    assert worst(laws_of_three(lambda m: float(ready.scale(m) / 4))) > float(EPSILON)


@pytest.mark.slow
def test_four_cells_aligned_runs():
    ready = chooser("aligned", 4)
    laws = laws_of_four(lambda m: float(ready.scale(m)))
    assert all(abs(sum(law.values()) - 1) < 1e-6 for law in laws.values())
    assert 0.5 * float(EPSILON) < worst(laws) <= float(EPSILON)
    assert worst(laws_of_four(lambda m: float(ready.scale(m) / 4))) > float(EPSILON)


@pytest.mark.slow
def test_a_record_that_moves_counts_twice():
    """At the scales of one record the moves exceed epsilon for some table; at doubled scales they do not."""
    single = laws_of_four(lambda m: float(chooser("aligned", 4).scale(m)))
    moving = chooser("aligned", 4, changes=2)
    assert moving.scale(1) == 2 * chooser("aligned", 4).scale(1)
    assert worst(single, step=2) > float(EPSILON)
    assert worst(laws_of_four(lambda m: float(moving.scale(m))), step=2) <= float(EPSILON)


@pytest.mark.parametrize(
    ("family", "counts"), [("all", (2, 0, 1)), ("aligned", (0, 3, 1, 1)), ("sliding", (1, 4, 1))]
)
def test_the_code_draws_from_that_law(family, counts):
    ready = chooser(family, len(counts))
    runs = 6000
    source = pg.SeededRng(f"law of {family}")
    seen = Counter(made.buckets() for made in chosen_many(ready, np.array(counts), runs, source))
    if family == "aligned":
        law = oracle.tree_law(counts, lambda m: float(ready.scale(m)), 1, 30)
    else:
        law = oracle.partition_law(
            counts, oracle.family(family), lambda m: float(ready.scale(m)), 1, oracle.rank_of_runs, 24
        )
    square = 0.0
    for partition, chance in law.items():
        buckets = tuple(tuple(range(start, stop)) for start, stop in partition)
        square += (seen.pop(buckets, 0) - runs * chance) ** 2 / (runs * chance)
    assert not seen
    # Chi-square of at most 4 degrees of freedom: beyond 30 with probability below 1e-5.
    assert square < 30
