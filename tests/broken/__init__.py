"""Mechanisms that leak on purpose. An audit that misses one of them is broken itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import policygraph as pg
from tests.broken import adaptive, additive, dawa, facts, floats, linked, refunded, rescaled, units

__all__ = ["BROKEN", "Broken"]


@dataclass(frozen=True)
class Broken:
    """One leak: how to make the mechanism, and what it claims under which policy."""

    name: str
    make: Callable[[], tuple[Any, pg.Policy, pg.Query | None]]
    loss: Any
    samples: int
    options: dict[str, Any] = field(default_factory=dict)


BROKEN = [
    Broken("half the scale, Laplace", additive.half_laplace, pg.Epsilon(1), 4000),
    Broken("half the deviation, Gaussian", additive.half_gaussian, pg.Rho("1/2"), 4000),
    Broken("edges only under a known count", additive.edges_only, pg.Epsilon(1), 8000),
    Broken("one record under known margins", additive.one_record_under_margins, pg.Epsilon(1), 4000),
    Broken("one member of a family", additive.one_member, pg.Epsilon(1), 2000),
    Broken("a sample of all units together", units.global_sample, pg.Epsilon(1), 4000, units.OPTIONS),
    Broken("first come, first served among units", units.first_come, pg.Epsilon(1), 4000, units.OPTIONS),
    Broken(
        "sums of a unit cut off in each cell by itself",
        units.cut_in_each_cell,
        pg.Epsilon(1),
        4000,
        units.OPTIONS_SPREAD,
    ),
    Broken(
        "cells bounded before the rule for unknown values",
        units.cells_before_the_rule,
        pg.Rho("1/2"),
        4000,
        units.OPTIONS_STRANGE,
    ),
    Broken("linked tables, each by itself", linked.each_table_by_itself, pg.Epsilon(1), 4000, linked.OPTIONS),
    Broken("rows bounded over all units", linked.over_all_units, pg.Epsilon(1), 4000, linked.OPTIONS_OWNED),
    Broken(
        "parallel parts across a margin",
        additive.parallel_across_margin,
        pg.Epsilon(1),
        4000,
        {"batch": True},
    ),
    Broken(
        "partition with clamped costs",
        dawa.clamped,
        pg.Epsilon(dawa.EPSILON_1),
        1600,
        {"batch": True, "most_pairs": 3},
    ),
    Broken(
        "cells and buckets counted at the whole loss each",
        refunded.counted_twice,
        pg.Epsilon(2),
        800,
        {"most_pairs": 2},
    ),
    Broken("floating-point Laplace", floats.naive_laplace, pg.Epsilon(1), 2000, floats.OPTIONS),
    Broken("half the scale, free numbers", facts.half_kernel, pg.Epsilon(1), 4000),
    Broken("half the scale, fitted to margins", facts.half_fitted, pg.Epsilon(2), 40_000, {"most_pairs": 2}),
    Broken("twice the rate, exponential", facts.twice_the_rate, pg.Epsilon(1), 4000),
    Broken("too large a rate along a policy graph", facts.whole_rate_along_a_line, pg.Epsilon(1), 8000),
    Broken("too large a rate, count by count", facts.whole_rate_count_by_count, pg.Epsilon(1), 1000),
    Broken("too large a rate, cell by cell", facts.whole_rate_cell_by_cell, pg.Epsilon(1), 2000),
    Broken("a cube scaled to one of its tables", facts.first_table_only, pg.Epsilon(1), 4000),
    Broken("residuals scaled to one of them", facts.one_residual, pg.Rho("1/2"), 4000),
    Broken("chi-squared scaled to one cell", facts.one_cell, pg.Epsilon(1), 4000),
    Broken("triangles scaled to one of them", facts.one_triangle, pg.Epsilon(1), 4000),
    Broken("a choice without noise", adaptive.best_table, pg.Epsilon(1), 400, {"batch": True}),
    Broken(
        "a choice at half the sensitivity", adaptive.half_sensitivity, pg.Epsilon(2), 8000, {"batch": True}
    ),
    Broken("noise shrunk by the true total", rescaled.shrunk, pg.Epsilon(1), 2000, {"batch": True}),
    Broken("noise grown with the true total", rescaled.grown, pg.Epsilon(1), 4000, {"batch": True}),
]
