"""The mechanisms of the library, each with a small case on which it is audited: the registry of ``test_audit_mechanisms``.

A new mechanism is added in one line: a name, the mechanism, a policy, a query, a loss. A test fails as long as it is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import policygraph as pg
from policygraph.audit import neighbour_pairs
from policygraph.curator.histogram import MeasuredCounts
from policygraph.mechanisms import (
    Adaptive,
    Calibrated,
    Exponential,
    Fitted,
    Kernel,
    MatrixMechanism,
    Partitioned,
    Transformed,
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
    choose,
)
from policygraph.mechanisms.candidates import PlugIn
from policygraph.mechanisms.cube.strategies import Fourier, PMost
from policygraph.mechanisms.measured import Measured
from policygraph.mechanisms.members import for_unit
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.queries import chi_squared_root
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.queries.network_statistics import (
    Clustering,
    DegreeTail,
    EdgesToGroups,
    JointDegrees,
    ProjectedDegreeTail,
    ProjectedMixing,
    Triangles,
    Wedges,
)
from tests.gate import noisy_many
from tests.oracles import measures as records

__all__ = ["MECHANISMS", "Case"]


@dataclass(frozen=True)
class Case:
    """One line: what is audited, and with how much effort.

    Attributes
    ----------
    mechanism
        None: what :func:`choose` takes.
    samples
        Runs on each table.
    pairs
        Pairs of neighbours at most.
    attained
        Share of the loss that neighbours of this case can show at all, where the bound behind the noise is not attained.
    """

    name: str
    mechanism: Any
    policy: Any
    query: Any
    loss: Any
    samples: int = 4000
    pairs: int = 4
    attained: Fraction = Fraction(1)

    def ready(self) -> Calibrated:
        if self.mechanism is None:
            return choose(self.query, self.policy, self.loss)
        if isinstance(self.policy, pg.Unit):
            return for_unit(self.mechanism, self.query, self.policy, self.loss)
        return self.mechanism.calibrate(self.query, self.policy, self.loss)

    def boast(self) -> Any:
        """The claim that half the scale of the noise would do."""
        shrink = 2 if isinstance(self.loss, pg.Epsilon) else 4
        return type(self.loss)(self.loss.value * self.attained / shrink)

    def subject(self, ready: Calibrated) -> dict[str, Any]:
        """What an audit is given, beside the claim."""
        if not isinstance(self.query, MeasureQuery):
            pairs = neighbour_pairs(self.policy, self.query, ready.sensitivity, most=self.pairs)
            return {"mechanism": ready, "pairs": pairs}
        policy = records.extended_policy(self.query, self.policy)
        rows = pg.queries.matrix(policy.domain, records.matrix(ready.rows))
        pairs = neighbour_pairs(policy, rows, most=self.pairs)
        return {"mechanism": of_records(ready), "policy": policy, "pairs": pairs, "batch": True}


def levels(query: MeasureQuery) -> range:
    return range(query.measure.lowest, query.measure.highest + 1)


def of_records(ready: Calibrated) -> Any:
    """The mechanism as a function of how many records there are in each cell with each value."""

    def runs(table: Any, n: int, rng: Any) -> Any:
        counts = table.reshape(ready.query.domain.size, -1)
        sums = counts @ np.array(levels(ready.query))
        data = MeasuredCounts.from_vectors(
            ready.query.domain, ready.query.measure, counts.sum(axis=1), sums, name="audit"
        )
        return noisy_many(ready, data, n, rng)

    return runs


AGES = pg.Domain({"age": 8})
FEW = pg.Domain({"age": 4})
CROSS = pg.Domain({"a": 3, "b": 3})
SQUARE = pg.Domain({"a": 2, "b": 2})
BOX = pg.Domain({"a": 2, "b": 3, "c": 2})
STEPS = pg.Domain({"step": 4})
FRIENDS = pg.Network(5)
FOLLOWERS = pg.Network(4, directed=True)

UNBOUNDED = pg.Policy(AGES)
BOUNDED = pg.Policy(AGES, pg.PolicyGraph.full(AGES))
LINE = pg.Policy(AGES, pg.PolicyGraph.line(AGES))
FEW_UNBOUNDED = pg.Policy(FEW)
FEW_LINE = pg.Policy(FEW, pg.PolicyGraph.line(FEW))
GRID = pg.Policy(CROSS, pg.PolicyGraph.grid(CROSS))
ROWS = pg.Policy(CROSS, constraints=[pg.Cuboid("a")])
MARGINS = pg.Policy(CROSS, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
TOLD = pg.Policy(CROSS, constraints=[pg.Cuboid("a", equals=[2, 1, 1]), pg.Cuboid("b", equals=[1, 1, 2])])
SQUARE_MARGINS = pg.Policy(SQUARE, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
SQUARE_EVEN = pg.Policy(SQUARE, constraints=[pg.Cuboid("a", equals=[6, 6]), pg.Cuboid("b", equals=[6, 6])])
SQUARE_TOLD = pg.Policy(SQUARE, constraints=[pg.Cuboid("a", equals=[3, 2]), pg.Cuboid("b", equals=[4, 1])])
BOX_OPEN = pg.Policy(BOX)
BOX_FULL = pg.Policy(BOX, pg.PolicyGraph.full(BOX))
BOX_MARGINS = pg.Policy(BOX, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
EDGES = pg.Policy(FRIENDS)
DEGREES = pg.Policy(FRIENDS, constraints=[pg.Degrees()])
DEGREES_TOLD = pg.Policy(FRIENDS, constraints=[pg.Degrees(equals=[2, 2, 2, 2, 2])])
NODES = NodePrivacy(FRIENDS)
ARCS = pg.Policy(FOLLOWERS)
COUNT = pg.Policy(STEPS, pg.PolicyGraph.line(STEPS), [pg.count({"step": [0, 1]})])

LINKED = pg.LinkedTables(
    {
        "dwellings": {"key": "id", "attributes": {"area": 2}},
        "persons": {"in": "dwellings", "foreign_key": "home", "at_most": 2, "attributes": {"age": 2}},
    }
)
HOMES, HOMES_TOLD = pg.LinkedUnit(LINKED), pg.LinkedUnit(LINKED, {"dwellings": 6})
HOMES_COUNTS = pg.queries.linked(LINKED, [("dwellings", ["area"]), ("persons", ["area", "age"])])

CELLS = pg.queries.identity(AGES)
FEW_CELLS = pg.queries.identity(FEW)
CROSSED = pg.queries.identity(CROSS)
SQUARED = pg.queries.identity(SQUARE)
THREE = pg.Domain({"r": 3})
THREE_TOLD = pg.Policy(THREE, pg.PolicyGraph.line(THREE), [pg.Total(equals=2)])
THREE_CELLS = pg.queries.identity(THREE)
PAIRS = pg.queries.identity(FRIENDS)
CUBE = pg.queries.all_cuboids(BOX)
TABLES = pg.queries.cuboids(BOX, [["a", "b"], ["b", "c"]])

ADDITIVE = [
    Case(
        "a plug-in",
        PlugIn("cautious", pg.Laplace(), origin="plug-in 'cautious'"),
        UNBOUNDED,
        pg.queries.identity(AGES),
        pg.Epsilon(1),
    ),
    Case("Laplace, one record more or less", pg.Laplace(), UNBOUNDED, CELLS, pg.Epsilon(2)),
    Case("Laplace, one record changed", pg.Laplace(), BOUNDED, CELLS, pg.Epsilon(2)),
    Case("Laplace, line", pg.Laplace(), LINE, CELLS, pg.Epsilon(2)),
    Case("families of up to three", None, pg.Families(FEW_UNBOUNDED, 3), FEW_CELLS, pg.Epsilon(2)),
    Case("units of up to three", None, pg.Unit(FEW_UNBOUNDED, "person", 3), FEW_CELLS, pg.Epsilon(2)),
    Case(
        "units, one record in a cell",
        pg.Gaussian(),
        pg.Unit(FEW_UNBOUNDED, "person", 3, 1),
        FEW_CELLS,
        pg.Rho(1),
    ),
    Case("linked tables", None, HOMES, HOMES_COUNTS, pg.Epsilon(2)),
    Case("linked tables, rho", pg.Gaussian(), HOMES, HOMES_COUNTS, pg.Rho(1)),
    Case("linked tables, number known", None, HOMES_TOLD, HOMES_COUNTS, pg.Epsilon(2)),
    Case("units along a line", pg.Laplace(), pg.Unit(LINE, "person", 2, 1), CELLS, pg.Epsilon(2)),
    Case(
        "families of two beside margins",
        pg.Gaussian(),
        pg.Families(SQUARE_MARGINS, 2, exactly=True),
        SQUARED,
        pg.Rho(1),
    ),
    Case("Laplace, prefix sums on a line", pg.Laplace(), LINE, pg.queries.prefix(AGES), pg.Epsilon("1/2")),
    Case("Laplace, row sums known", pg.Laplace(), ROWS, CROSSED, pg.Epsilon(2)),
    Case("Laplace, margins known", pg.Laplace(), MARGINS, CROSSED, pg.Epsilon(3), 12_000, 3),
    Case("Laplace, margins told", pg.Laplace(), TOLD, CROSSED, pg.Epsilon(3), 12_000, 3),
    Case("Laplace, degrees known", pg.Laplace(), DEGREES, PAIRS, pg.Epsilon(3), 12_000, 3),
    Case("Laplace, line and a count known", pg.Laplace(), COUNT, pg.queries.identity(STEPS), pg.Epsilon(3)),
    Case("Gaussian, one record more or less", pg.Gaussian(), UNBOUNDED, CELLS, pg.Rho("1/2")),
    Case("Gaussian, one record changed", pg.Gaussian(), BOUNDED, CELLS, pg.Rho("1/2")),
    Case("Gaussian, prefix sums", pg.Gaussian(), UNBOUNDED, pg.queries.prefix(AGES), pg.Rho(1)),
    Case("Gaussian, margins known", pg.Gaussian(), MARGINS, CROSSED, pg.Rho("1/2")),
    Case("Gaussian, degrees known", pg.Gaussian(), DEGREES, PAIRS, pg.Rho("1/2")),
    Case("what is chosen, one record more or less", None, UNBOUNDED, CELLS, pg.Epsilon(2)),
]

TRANSFORMED = [
    Case("transformed Laplace, line", TransformedLaplace(), LINE, CELLS, pg.Epsilon(2)),
    Case("transformed Laplace, grid", TransformedLaplace(route="edges"), GRID, CROSSED, pg.Epsilon(4)),
    Case("transformed Laplace, full", TransformedLaplace(), BOUNDED, CELLS, pg.Epsilon(2), 16_000, 2),
    Case("transformed Gaussian, line", TransformedGaussian(), LINE, CELLS, pg.Rho("1/2")),
    Case("transformed, consistent, line", TransformedConsistent(), LINE, CELLS, pg.Epsilon(2)),
    Case("adaptive, line", Adaptive(), LINE, CELLS, pg.Epsilon(2), samples=1000),
    Case("Laplace on the edges of a line", Transformed(pg.Laplace()), LINE, CELLS, pg.Epsilon(2)),
    Case("what is chosen, line", None, LINE, CELLS, pg.Epsilon(2)),
]

STRATEGIES = [
    Case(
        "tree over cells, one record more or less",
        MatrixMechanism("tree", over="cells", branching=2),
        UNBOUNDED,
        pg.queries.all_ranges(AGES),
        pg.Epsilon(3),
    ),
    Case(
        "tree over prefix sums, line",
        MatrixMechanism("tree", over="edges", branching=2),
        LINE,
        pg.queries.prefix(AGES),
        pg.Epsilon(3),
    ),
    Case(
        "wavelet, one record changed",
        MatrixMechanism("wavelet", over="cells"),
        BOUNDED,
        pg.queries.all_ranges(AGES),
        pg.Rho(1),
    ),
    Case(
        "optimised strategy, grid",
        MatrixMechanism("optimised"),
        GRID,
        pg.queries.random_boxes(CROSS, 20),
        pg.Epsilon(4),
    ),
    Case(
        "tree over cells, margins known",
        MatrixMechanism("tree", over="cells", branching=3),
        MARGINS,
        CROSSED,
        pg.Epsilon(4),
    ),
]

FREE = [
    Case("kernel, 2 x 2 margins known", Kernel(), SQUARE_MARGINS, SQUARED, pg.Epsilon(2)),
    Case("kernel, margins known", Kernel(), MARGINS, CROSSED, pg.Epsilon(3)),
    Case("kernel, margins told", Kernel(), TOLD, CROSSED, pg.Epsilon(3)),
    Case("kernel, degrees known", Kernel(), DEGREES, PAIRS, pg.Epsilon(3)),
    Case("kernel, margins known, rho", Kernel(), MARGINS, CROSSED, pg.Rho("1/2")),
    # The fit throws noise away, but also most of what tells: the events that show the whole loss are rare.
    Case("fitted, 2 x 2 margins known", Fitted(), SQUARE_MARGINS, SQUARED, pg.Epsilon(2), 40_000, 2),
    Case("fitted, row sums known", Fitted(), ROWS, CROSSED, pg.Epsilon(3)),
    Case("fitted, margins known", Fitted(), MARGINS, CROSSED, pg.Epsilon(4), 60_000, 2),
    Case("fitted, margins known, rho", Fitted(), MARGINS, CROSSED, pg.Rho("1/2")),
    Case("what is chosen, margins known", None, MARGINS, CROSSED, pg.Epsilon(3)),
    Case("what is chosen, row sums known", None, ROWS, CROSSED, pg.Epsilon(3)),
    Case("exponential, two tables", Exponential(), SQUARE_TOLD, SQUARED, pg.Epsilon(2)),
    Case("exponential, margins told", Exponential(), TOLD, CROSSED, pg.Epsilon(4), attained=Fraction(3, 4)),
    Case("exponential, degrees told", Exponential(), DEGREES_TOLD, PAIRS, pg.Epsilon(4)),
    Case(
        "exponential, along a line",
        Exponential(),
        THREE_TOLD,
        THREE_CELLS,
        pg.Epsilon(2),
        attained=Fraction(3, 4),
    ),
    Case(
        "exponential, cell by cell",
        Exponential(limit=2),
        TOLD,
        CROSSED,
        pg.Epsilon(4),
        2000,
        attained=Fraction(1, 2),
    ),
    Case(
        "exponential, count by count",
        Exponential(limit=2),
        THREE_TOLD,
        THREE_CELLS,
        pg.Epsilon(2),
        2000,
        attained=Fraction(3, 4),
    ),
    Case("exponential, all pairs of tables", pg.FreeLunch(), SQUARE_TOLD, SQUARED, pg.Epsilon(2)),
]

CUBES = [
    *(
        Case(f"cube {strategy}, {name}, rho", pg.Cube(strategy), policy, CUBE, pg.Rho("1/2"), pairs=3)
        for strategy in ("all", "bmax", "unequal")
        for name, policy in (("one record more or less", BOX_OPEN), ("margins known", BOX_MARGINS))
    ),
    *(
        Case(
            f"cube {strategy}, one record more or less",
            pg.Cube(strategy),
            BOX_OPEN,
            CUBE,
            pg.Epsilon(4),
            12_000,
            2,
        )
        for strategy in ("all", "bmax", "unequal")
    ),
    *(
        Case(
            f"cube {strategy}, margins known", pg.Cube(strategy), BOX_MARGINS, CUBE, pg.Epsilon(4), 12_000, 2
        )
        for strategy in ("bmax", "unequal", "unequal-max")
    ),
    Case("what is chosen, two tables, one record changed", None, BOX_FULL, TABLES, pg.Epsilon(3), 12_000, 2),
    Case("what is chosen, two tables, rho", None, BOX_OPEN, TABLES, pg.Rho("1/2"), pairs=3),
    # Twenty-six numbers change a little each, so that the events that show the whole loss are rare.
    Case(
        "cube all, margins known", pg.Cube("all"), BOX_MARGINS, CUBE, pg.Epsilon(4), 12_000, 2, Fraction(3, 4)
    ),
    Case("cube base, one record changed", pg.Cube("base"), BOX_FULL, CUBE, pg.Epsilon(3)),
    Case("cube of interactions", pg.Cube(Fourier()), BOX_OPEN, CUBE, pg.Rho("1/2")),
    Case(
        "cube of interactions, one record changed",
        pg.Cube(Fourier()),
        BOX_FULL,
        CUBE,
        pg.Epsilon(4),
        12_000,
        2,
    ),
    Case(
        "cube of interactions, margins known", pg.Cube(Fourier()), BOX_MARGINS, CUBE, pg.Rho("1/2"), pairs=3
    ),
    Case("cube of bounded errors", pg.Cube(PMost(bound=60)), BOX_FULL, CUBE, pg.Epsilon(3)),
    Case(
        "cube without consistency",
        pg.Cube("bmax", consistency=None),
        BOX_OPEN,
        CUBE,
        pg.Epsilon(4),
        12_000,
        2,
    ),
]

PREFIXES = pg.queries.marginals(CROSS, [["a", "b"], ["a"]], prefix="a")
RANGES = pg.queries.marginals(CROSS, 1, ranges=["b"])
RESIDUALS = [
    Case("residuals, one record more or less", pg.Residuals(), pg.Policy(CROSS), PREFIXES, pg.Rho("1/2")),
    Case("residuals, ranges", pg.Residuals(), pg.Policy(CROSS), RANGES, pg.Epsilon(3), 12_000, 2),
    Case("residuals, row sums known", pg.Residuals(), ROWS, PREFIXES, pg.Rho("1/2"), pairs=3),
    Case("residuals, grid", pg.Residuals(per_answer=False), GRID, PREFIXES, pg.Rho("1/2"), pairs=3),
]

BITS = pg.Domain({"a": 2, "b": 2, "c": 2})
BITS_TOLD = pg.Policy(BITS, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")])
BIT_PAIRS = pg.queries.cuboids(BITS, [["a", "b"], ["b", "c"], ["a", "c"]])
ADAPTIVE = [
    # Where single attributes are known, the first choice is the same plan in every run, so that many runs are cheap.
    Case(
        "adaptive cube",
        pg.AdaptiveCube(rounds=1),
        BITS_TOLD,
        BIT_PAIRS,
        pg.Epsilon(6),
        400,
        1,
        Fraction(1, 2),
    ),
    Case("adaptive cube, rho", pg.AdaptiveCube(rounds=1), BITS_TOLD, BIT_PAIRS, pg.Rho(4), 400, 1),
]

# The choice of buckets rarely loses its share on tables as small as these, so that half the epsilon is seen.
HALF = Fraction(1, 2)
PARTITIONS = [
    Case("runs, aligned", Partitioned(), FEW_UNBOUNDED, FEW_CELLS, pg.Epsilon(8), attained=HALF),
    Case("runs, aligned, line", Partitioned(), FEW_LINE, FEW_CELLS, pg.Epsilon(8), attained=HALF),
    Case(
        "runs, sliding",
        Partitioned(pg.Intervals("sliding")),
        FEW_UNBOUNDED,
        FEW_CELLS,
        pg.Epsilon(8),
        2000,
        3,
        HALF,
    ),
    Case(
        "runs, all", Partitioned(pg.Intervals("all")), FEW_UNBOUNDED, FEW_CELLS, pg.Epsilon(8), 2000, 3, HALF
    ),
    Case("given buckets", Partitioned(Partition([0, 0, 1, 1])), FEW_UNBOUNDED, FEW_CELLS, pg.Epsilon(2)),
    Case("matchings", Partitioned(pg.Matchings()), FEW_UNBOUNDED, FEW_CELLS, pg.Epsilon(6), 400, 1, HALF),
    Case(
        "matchings, two rounds",
        Partitioned(pg.Matchings(rounds=2)),
        FEW_LINE,
        FEW_CELLS,
        pg.Epsilon(6),
        400,
        1,
        HALF,
    ),
]

NETWORKS = [
    Case("degree counts, edges", StatisticNoise(), EDGES, DegreeTail(FRIENDS), pg.Epsilon(2)),
    Case("degree counts, edges, rho", StatisticNoise(), EDGES, DegreeTail(FRIENDS), pg.Rho("1/2")),
    Case("degree counts, arcs", StatisticNoise(), ARCS, DegreeTail(FOLLOWERS, side="in"), pg.Epsilon(2)),
    Case("wedges, edges", StatisticNoise(), EDGES, Wedges(FRIENDS), pg.Epsilon(2)),
    Case("joint degrees, edges", StatisticNoise(), EDGES, JointDegrees(FRIENDS, 4), pg.Epsilon(3), 12_000, 2),
    Case("triangles, edges", StatisticNoise(), EDGES, Triangles(FRIENDS), pg.Epsilon(2)),
    Case("triangles, edges, rho", StatisticNoise(), EDGES, Triangles(FRIENDS), pg.Rho("1/2"), 8000),
    # The bound is that of any network of five nodes: 4 edges in 3 triangles each. The worst pair changes 1.
    Case(
        "triangles, degrees known",
        StatisticNoise(),
        DEGREES,
        Triangles(FRIENDS),
        pg.Epsilon(12),
        12_000,
        attained=Fraction(1, 12),
    ),
    # One edge can make three triangles among five nodes; the worst change is 15/4 where the bound says 5 and more.
    Case(
        "clustering, edges",
        StatisticNoise(),
        EDGES,
        Clustering(FRIENDS, 2),
        pg.Epsilon(4),
        attained=Fraction(1, 4),
    ),
    # One edge more can push out two, each of which is in a triangle.
    Case(
        "triangles with a cap, edges",
        StatisticNoise(),
        EDGES,
        Triangles(FRIENDS, 2),
        pg.Epsilon(4),
        attained=Fraction(1, 2),
    ),
    Case(
        "edges to groups, edges",
        StatisticNoise(),
        EDGES,
        EdgesToGroups(FRIENDS, ["x", "x", "y", "y", None]),
        pg.Epsilon(2),
    ),
    Case("degree counts, nodes", StatisticNoise(), NODES, ProjectedDegreeTail(FRIENDS, 2), pg.Epsilon(2)),
    Case(
        "group counts, nodes",
        StatisticNoise(),
        NODES,
        ProjectedMixing(FRIENDS, ["x", "x", "x", "y", "y"], 2),
        pg.Epsilon(2),
    ),
    # The bound in L2 is that in L1, which four changes of one each do not attain.
    Case(
        "degree counts, nodes, rho",
        StatisticNoise(),
        NODES,
        ProjectedDegreeTail(FRIENDS, 2),
        pg.Rho("1/2"),
        attained=HALF,
    ),
]

STATISTICS = [
    Case(
        "chi-squared", StatisticNoise(), SQUARE_EVEN, chi_squared_root(SQUARE_EVEN, "a", "b"), pg.Epsilon(2)
    ),
    Case(
        "chi-squared, rho",
        StatisticNoise(),
        SQUARE_EVEN,
        chi_squared_root(SQUARE_EVEN, "a", "b"),
        pg.Rho("1/2"),
    ),
]

INCOME = pg.Measure("income", 0, 3)
MEASURES = [
    Case(
        "sums of a measure", Measured(), FEW_UNBOUNDED, pg.queries.sums(FEW, [["age"]], INCOME), pg.Epsilon(3)
    ),
    Case(
        "averages of a measure",
        Measured(),
        FEW_UNBOUNDED,
        pg.queries.averages(FEW, [["age"]], INCOME),
        pg.Epsilon(3),
    ),
    Case(
        "averages of a measure, one record changed, rho",
        Measured(),
        pg.Policy(FEW, pg.PolicyGraph.full(FEW)),
        pg.queries.averages(FEW, [["age"]], INCOME),
        pg.Rho("1/2"),
        12_000,
    ),
    Case(
        "averages of a measure, a margin known",
        Measured(),
        pg.Policy(SQUARE, constraints=[pg.Cuboid("a")]),
        pg.queries.averages(SQUARE, [["b"], ["a"]], pg.Measure("income", 0, 2)),
        pg.Epsilon(3),
        8000,
    ),
    Case(
        "sums of a measure, attributes secret and a margin known",
        Measured(),
        pg.Policy(SQUARE, pg.PolicyGraph.attribute(SQUARE), [pg.Cuboid("b")]),
        pg.queries.sums(SQUARE, [["a", "b"]], pg.Measure("income", 0, 2)),
        pg.Epsilon(3),
        8000,
    ),
]

SPARSE = [
    Case(
        "cells above a threshold", pg.Sparse(threshold=1), UNBOUNDED, pg.queries.identity(AGES), pg.Epsilon(2)
    ),
    Case(
        "cells above a threshold, one record changed, rho",
        pg.Sparse(threshold=2),
        BOUNDED,
        pg.queries.identity(AGES),
        pg.Rho("1/2"),
    ),
]

# Every mechanism for single records at a share of the loss, which several records of one unit lose together.
PEOPLE, TWO = pg.Unit(FEW_UNBOUNDED, "person", 3), pg.Unit(FEW_UNBOUNDED, "person", 2)
UNITS = [
    Case("units, given buckets", Partitioned(Partition([0, 0, 1, 1])), PEOPLE, FEW_CELLS, pg.Epsilon(2)),
    Case(
        "units, given buckets, along a line",
        Partitioned(Partition([0, 0, 1, 1])),
        pg.Unit(FEW_LINE, "person", 3),
        FEW_CELLS,
        pg.Epsilon(2),
    ),
    # So many records that what they lose together shows, although runs attain half of the loss of each.
    Case(
        "units, runs",
        Partitioned(),
        pg.Unit(FEW_UNBOUNDED, "person", 4),
        FEW_CELLS,
        pg.Epsilon(4),
        2000,
        2,
        attained=HALF,
    ),
    Case(
        "units, tree over cells",
        MatrixMechanism("tree", over="cells", branching=2),
        TWO,
        pg.queries.all_ranges(FEW),
        pg.Epsilon(3),
    ),
    Case("units, cells above a threshold", pg.Sparse(threshold=1), TWO, FEW_CELLS, pg.Epsilon(2)),
    Case("units, cube, rho", pg.Cube("bmax"), pg.Unit(BOX_OPEN, "person", 2), CUBE, pg.Rho("1/2"), pairs=3),
    Case(
        "units, adaptive histogram",
        Adaptive(),
        pg.Unit(FEW_LINE, "person", 2),
        FEW_CELLS,
        pg.Epsilon(2),
        1000,
    ),
    Case(
        "units, exponential",
        Exponential(),
        pg.Unit(pg.Policy(THREE, pg.PolicyGraph.line(THREE), [pg.Total(equals=3)]), "person", 3),
        THREE_CELLS,
        pg.Epsilon(2),
        attained=HALF,
    ),
]

MECHANISMS = [
    *SPARSE,
    *UNITS,
    *ADDITIVE,
    *TRANSFORMED,
    *STRATEGIES,
    *FREE,
    *CUBES,
    *RESIDUALS,
    *ADAPTIVE,
    *PARTITIONS,
    *NETWORKS,
    *STATISTICS,
    *MEASURES,
]
