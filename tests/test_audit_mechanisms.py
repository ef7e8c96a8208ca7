"""Every mechanism of the library goes through the audit, and every broken one is caught by it.

A new mechanism is added to ``MECHANISMS`` in one line: a name, the mechanism, a policy, a query, a loss.
"""

from __future__ import annotations

import numpy as np
import pytest

import policygraph as pg
from policygraph.private.audit import audit, exact_check, neighbour_pairs
from policygraph.private.mechanisms import (
    MatrixMechanism,
    Transformed,
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)
from policygraph.private.mechanisms.additive import Additive
from tests.broken import BROKEN, dawa
from tests.oracles import blowfish

REPEATS = 20
SAMPLES = 4000

AGES = pg.Domain({"age": 8})
CROSS = pg.Domain({"a": 3, "b": 3})
STEPS = pg.Domain({"step": 4})
FRIENDS = pg.Network(5)
UNBOUNDED = pg.Policy(AGES)
BOUNDED = pg.Policy(AGES, pg.PolicyGraph.full(AGES))
LINE = pg.Policy(AGES, pg.PolicyGraph.line(AGES))
GRID = pg.Policy(CROSS, pg.PolicyGraph.grid(CROSS))
ROWS = pg.Policy(CROSS, constraints=[pg.Cuboid("a")])
MARGINS = pg.Policy(CROSS, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
TOLD = pg.Policy(CROSS, constraints=[pg.Cuboid("a", equals=[2, 1, 1]), pg.Cuboid("b", equals=[1, 1, 2])])
DEGREES = pg.Policy(FRIENDS, constraints=[pg.Degrees()])
COUNT = pg.Policy(STEPS, pg.PolicyGraph.line(STEPS), [pg.count({"step": [0, 1]})])

MECHANISMS = [
    ("Laplace, one record more or less", pg.Laplace(), UNBOUNDED, pg.queries.identity(AGES), pg.Epsilon(2)),
    ("Laplace, one record changed", pg.Laplace(), BOUNDED, pg.queries.identity(AGES), pg.Epsilon(2)),
    ("Laplace, line", pg.Laplace(), LINE, pg.queries.identity(AGES), pg.Epsilon(2)),
    ("Laplace, prefix sums on a line", pg.Laplace(), LINE, pg.queries.prefix(AGES), pg.Epsilon("1/2")),
    ("Laplace, row sums known", pg.Laplace(), ROWS, pg.queries.identity(CROSS), pg.Epsilon(2)),
    ("Laplace, margins known", pg.Laplace(), MARGINS, pg.queries.identity(CROSS), pg.Epsilon(3)),
    ("Laplace, margins told", pg.Laplace(), TOLD, pg.queries.identity(CROSS), pg.Epsilon(3)),
    ("Laplace, degrees known", pg.Laplace(), DEGREES, pg.queries.identity(FRIENDS), pg.Epsilon(3)),
    ("Laplace, line and a count known", pg.Laplace(), COUNT, pg.queries.identity(STEPS), pg.Epsilon(3)),
    ("Gaussian, one record more or less", pg.Gaussian(), UNBOUNDED, pg.queries.identity(AGES), pg.Rho("1/2")),
    ("Gaussian, one record changed", pg.Gaussian(), BOUNDED, pg.queries.identity(AGES), pg.Rho("1/2")),
    ("Gaussian, prefix sums", pg.Gaussian(), UNBOUNDED, pg.queries.prefix(AGES), pg.Rho(1)),
    ("Gaussian, margins known", pg.Gaussian(), MARGINS, pg.queries.identity(CROSS), pg.Rho("1/2")),
    ("Gaussian, degrees known", pg.Gaussian(), DEGREES, pg.queries.identity(FRIENDS), pg.Rho("1/2")),
    ("transformed Laplace, line", TransformedLaplace(), LINE, pg.queries.identity(AGES), pg.Epsilon(2)),
    (
        "transformed Laplace, grid",
        TransformedLaplace(route="edges"),
        GRID,
        pg.queries.identity(CROSS),
        pg.Epsilon(4),
    ),
    ("transformed Laplace, full", TransformedLaplace(), BOUNDED, pg.queries.identity(AGES), pg.Epsilon(2)),
    ("transformed Gaussian, line", TransformedGaussian(), LINE, pg.queries.identity(AGES), pg.Rho("1/2")),
    (
        "transformed, consistent, line",
        TransformedConsistent(),
        LINE,
        pg.queries.identity(AGES),
        pg.Epsilon(2),
    ),
    (
        "Laplace on the edges of a line",
        Transformed(pg.Laplace()),
        LINE,
        pg.queries.identity(AGES),
        pg.Epsilon(2),
    ),
    (
        "tree over cells, one record more or less",
        MatrixMechanism("tree", over="cells", branching=2),
        UNBOUNDED,
        pg.queries.all_ranges(AGES),
        pg.Epsilon(3),
    ),
    (
        "tree over prefix sums, line",
        MatrixMechanism("tree", over="edges", branching=2),
        LINE,
        pg.queries.prefix(AGES),
        pg.Epsilon(3),
    ),
    (
        "wavelet, one record changed",
        MatrixMechanism("wavelet", over="cells"),
        BOUNDED,
        pg.queries.all_ranges(AGES),
        pg.Rho(1),
    ),
    (
        "optimised strategy, grid",
        MatrixMechanism("optimised"),
        GRID,
        pg.queries.random_boxes(CROSS, 20),
        pg.Epsilon(4),
    ),
    (
        "tree over cells, margins known",
        MatrixMechanism("tree", over="cells", branching=3),
        MARGINS,
        pg.queries.identity(CROSS),
        pg.Epsilon(4),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "policy", "query", "loss"),
    [row[1:] for row in MECHANISMS],
    ids=[row[0] for row in MECHANISMS],
)
def test_sound_mechanisms_pass_every_repeat_and_the_audit_has_power(mechanism, policy, query, loss):
    ready = mechanism.calibrate(query, policy, loss)
    pairs = neighbour_pairs(policy, query, ready.sensitivity, most=6)
    for seed in range(REPEATS):
        report = audit(ready, pairs=pairs, samples=SAMPLES, source=pg.SeededSource(seed))
        assert report.passed, str(report)
    # A pass says something only if the same audit refutes a claim that is too good.
    boast = type(loss)(loss.value / 4)
    report = audit(ready, loss=boast, pairs=pairs, samples=SAMPLES, source=pg.SeededSource("boast"))
    assert not report.passed, str(report)
    if isinstance(ready, Additive) and not policy.system.has_values:
        assert exact_check(ready).value == loss.value


@pytest.mark.slow
@pytest.mark.parametrize("case", BROKEN, ids=[case.name for case in BROKEN])
def test_broken_mechanisms_are_caught_in_every_repeat(case):
    mechanism, policy, query = case.make()
    options = {"most_pairs": 4} | case.options
    if "pairs" not in options:
        options["pairs"] = neighbour_pairs(policy, query, most=options["most_pairs"])
    for seed in range(REPEATS):
        report = audit(
            mechanism,
            policy,
            query,
            loss=case.loss,
            samples=case.samples,
            source=pg.SeededSource(seed),
            **options,
        )
        assert not report.passed, f"repeat {seed}: {report}"


def test_every_kind_of_leak_is_kept():
    assert {case.name for case in BROKEN} >= {
        "half the scale, Laplace",
        "edges only under a known count",
        "parallel parts across a margin",
        "partition with clamped costs",
        "floating-point Laplace",
        "noise shrunk by the true total",
    }


def test_the_pair_of_the_edges_only_case_are_neighbours_by_the_definition():
    """One secret pair changes (1 to 2), and the record that repairs the count goes along no edge (3 to 0)."""
    line = [[abs(i - j) == 1 for j in range(4)] for i in range(4)]
    listed = {
        tuple(tuple(data.count(cell) for cell in range(4)) for data in pair)
        for pair in blowfish.neighbours([[1, 1, 0, 0]], line, 2)
    }
    first = neighbour_pairs(COUNT, most=1)[0]
    assert (tuple(first.before.tolist()), tuple(first.after.tolist())) in listed
    assert sum(abs(amount) for amount in first.change.values()) == 4


@pytest.mark.slow
def test_the_clamp_makes_a_lone_cell_a_bucket_of_its_own_far_too_often():
    """The event in which the leak was first seen: one cell of 4 against 5 among 64, the rest empty."""
    counts = {}
    for make in (dawa.clamped, dawa.unclamped):
        for height in (4, 5):
            table = np.zeros(dawa.CELLS, dtype=np.int64)
            table[31] = height
            runs = make()[0](table, 3000, pg.SeededSource(height))
            counts[make, height] = sum((31, 32) in buckets for buckets in runs)
    assert counts[dawa.clamped, 5] > 7 * counts[dawa.clamped, 4]
    assert counts[dawa.unclamped, 5] < 1.65 * counts[dawa.unclamped, 4]


@pytest.mark.slow
def test_a_partition_without_clamps_passes():
    mechanism, policy, query = dawa.unclamped()
    pairs = neighbour_pairs(policy, query, most=3)
    for seed in range(3):
        report = audit(
            mechanism,
            policy,
            loss=pg.Epsilon(dawa.EPSILON_1),
            pairs=pairs,
            samples=4000,
            batch=True,
            source=pg.SeededSource(seed),
        )
        assert report.passed, str(report)
