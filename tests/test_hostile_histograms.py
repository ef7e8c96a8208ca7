"""Cases that an attack on histograms under a policy graph found; each was a wrong number, a leak or a late failure."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import policygraph as pg
from policygraph.public.graphs import Path, Product
from policygraph.public.reductions.base import Reduction


def graphs_with_boxes():
    thin = pg.Domain({"one": 1, "x": 5})
    yield thin, pg.PolicyGraph.line(thin, "x")
    flat = pg.Domain({"x": 2, "y": 3})
    yield flat, pg.PolicyGraph(flat, Path(6, 1))
    folded = pg.Domain({"x": 12})
    yield folded, pg.PolicyGraph(folded, Product((Path(3, 1), Path(4, 1))))
    grid = pg.Domain({"x": 3, "one": 1, "y": 4})
    yield grid, pg.PolicyGraph.grid(grid)


@pytest.mark.parametrize(("domain", "graph"), list(graphs_with_boxes()))
def test_errors_of_boxes_where_attributes_and_graph_do_not_match(domain, graph):
    """The shortcut for boxes took the first attribute for the line."""
    query = pg.queries.random_boxes(domain, 30, seed=1)
    ready = pg.TransformedLaplace(route="edges").calibrate(query, pg.Policy(domain, graph), pg.Epsilon(1))
    assert np.array_equal(ready.squares, Reduction.squares(ready.reduction, query))


@pytest.mark.parametrize("partitioner", [pg.Intervals(bias=144 * 10**15), pg.Matchings(bias=10**12)])
def test_charges_near_64_bits_are_refused_before_data(partitioner):
    """They wrapped, or failed for some data and not for others."""
    with pytest.raises(pg.InputError, match="smaller bias"):
        partitioner.calibrate(4, Fraction(2), pg.Epsilon(1), 1.0)


@pytest.mark.parametrize("partitioner", [pg.Intervals(), pg.Matchings()])
def test_noise_that_cannot_be_drawn_is_refused_before_data(partitioner):
    domain = pg.Domain({"x": 4})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    with pytest.raises(pg.RefusedError, match="at most 2"):
        pg.Partitioned(partitioner).calibrate(pg.queries.identity(domain), policy, pg.Epsilon("1e-12"))
