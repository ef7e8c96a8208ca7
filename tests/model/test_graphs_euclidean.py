"""A Euclidean threshold is its listed edges: sensitivities with and without public facts, noise on edges."""

import pytest

import policygraph as pg

PLACES = pg.Domain({"x": 4, "y": 3})
RULE = pg.PolicyGraph.threshold(PLACES, "1.5", metric="euclidean")
LISTED = pg.PolicyGraph.from_edges(PLACES, list(RULE.edges()))
QUERIES = {
    "cells": pg.queries.identity(PLACES),
    "tables": pg.queries.all_cuboids(PLACES),
    "prefixes": pg.queries.marginals(PLACES, 2, prefix="x"),
}


@pytest.mark.parametrize("facts", [[], [pg.Total()]], ids=["none", "total"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_rule_has_the_sensitivities_of_its_edges(facts, query, norm):
    one, two = (
        pg.sensitivity(QUERIES[query], pg.Policy(PLACES, graph, facts), norm=norm) for graph in (RULE, LISTED)
    )
    assert one.power == two.power
    assert not one.verify().failed


def test_noise_on_edges_is_that_of_the_listed_ones():
    one, two = (
        pg.TransformedLaplace().calibrate(QUERIES["cells"], pg.Policy(PLACES, graph), pg.Epsilon(1))
        for graph in (RULE, LISTED)
    )
    assert one.total_error == pytest.approx(two.total_error)


def test_a_large_map_needs_no_list():
    places = pg.Domain({"lat": 1000, "lon": 1000})
    graph = pg.PolicyGraph.threshold(places, 10, metric="euclidean")
    assert graph.n_edges == 156_648_600
    assert graph.distance(0, 10**6 - 1) == 143
    assert graph.difference_sets() == (frozenset({"lat", "lon"}),)
    assert pg.sensitivity(pg.queries.all_cuboids(places), pg.Policy(places, graph)).power == 6
