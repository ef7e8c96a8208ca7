"""Graph and facts at any size: facts that every edge keeps, structural zeros, and counts that share no cell, against the definition."""

import json
import random

import numpy as np
import pytest

import policygraph as pg
from policygraph import check as checker
from policygraph.effort import Effort
from policygraph.sensitivity.ladder import RUNGS
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs import blowfish
from tests.strategies import literal_moves, power, queries, small_policies


def holds(certificate):
    """Whether the independent checker accepts the certificate as it is written."""
    report = checker.check(json.loads(certificate.to_json()))
    assert report["holds"], (str(certificate), report)


def test_both_rungs_bound_the_definition(monkeypatch):
    """Every pair that is shown is one by the literal definition, and no change is larger than the bound."""
    monkeypatch.setattr(blowfish, "DENSE_CELLS", 0)  # as for tables too large to be listed
    rng = random.Random(18)
    tried = 0
    for policy in small_policies(18, [{"x": 3}, {"x": 4}, {"a": 2, "b": 2}]):
        if policy.definition != "blowfish" or rng.random() < 0.7:
            continue
        capped = pg.Policy(
            policy.domain, policy.graph, policy.constraints, at_most_records=rng.choice([None, None, 1, 2])
        )
        moves, settled = literal_moves(capped)
        if not settled:
            continue
        for query in queries(capped.domain, rng):
            norm = rng.choice(["l1", "l2"])
            true = max((power(query, move, norm) for move in moves), default=0)
            for rung in (blowfish.kept_facts, blowfish.cycles_through_counts):
                problem = Problem(query, capped, norm, Effort.of(None), RUNGS)
                found = rung(problem)
                if found is None:
                    continue
                tried += 1
                assert found.lower <= true <= found.upper, (capped.to_spec(), query.to_spec(), norm, found)
                if found.witness is not None:
                    change = tuple(found.witness.change.get(cell, 0) for cell in range(capped.domain.size))
                    assert change in moves, (capped.to_spec(), found)
    assert tried > 100


def table(shape, graph, facts):
    domain = pg.Domain(shape)
    return pg.Policy(domain, pg.PolicyGraph.from_spec(domain, graph), facts)


@pytest.mark.parametrize(
    ("policy", "prefix", "lower", "upper"),
    [
        (table({"a": 2, "b": 49}, {"attribute": "b", "line": True}, [pg.Cuboid("a")]), "b", 1, 1),
        (table({"a": 18, "b": 8}, "grid", [pg.Cuboid("a")]), "b", 100, 126),
        (table({"a": 30, "b": 30}, "full", [pg.StructuralZero([(i, i) for i in range(30)])]), None, 2, 2),
        (
            table(
                {"a": 30, "b": 30},
                "grid",
                [pg.Cuboid("a"), pg.StructuralZero([(i, i) for i in range(30)])],
            ),
            "b",
            800,
            868,
        ),
        (table({"a": 30, "b": 30}, "full", [pg.Cuboid("a")]), None, 60, 60),
        (table({"a": 20, "b": 30, "c": 2}, {"product": {"b": "full"}}, [pg.Cuboid("a", "c")]), None, 2, 2),
    ],
    ids=["line", "grid", "zeros", "zeros-and-margin", "margin", "kept"],
)
def test_large_tables_are_not_refused(policy, prefix, lower, upper):
    domain = policy.domain
    query = pg.queries.identity(domain)
    if prefix is not None:
        query = pg.queries.marginals(domain, [list(domain.names)], prefix=prefix)
    found = pg.sensitivity(query, policy, effort=2_000_000)
    assert found.power <= upper
    assert found.lower_power >= lower
    holds(found)


def test_a_hierarchy_beside_one_margin_is_exact():
    policy = table({"a": 8, "x": 90}, "full", [pg.Cuboid("a")])
    rows = [((0, 0), (7, 89)), *(((i, 0), (i, 89)) for i in range(8))]
    rows += [((i, j), (i, j + w - 1)) for i in range(8) for w in (45, 15, 1) for j in range(0, 90, w)]
    found = pg.sensitivity(pg.queries.boxes(policy.domain, rows), policy)
    assert (found.power, found.kind) == (48, "exact")
    holds(found)


def test_a_pairing_that_is_not_one_of_neighbours_is_rejected():
    policy = table({"a": 12, "b": 3}, "grid", [pg.Cuboid("a")])
    data = json.loads(pg.sensitivity(pg.queries.identity(policy.domain), policy).to_json())
    pairs = data["witness"]["pairs"]
    assert len(pairs) == 12
    assert checker.check(data)["holds"]
    starts, ends = [x for x, _ in pairs], [y for _, y in pairs]
    rng = np.random.default_rng(1)
    seen = 0
    for _ in range(60):
        shuffled = [list(pair) for pair in zip(starts, rng.permutation(ends).tolist(), strict=True)]
        data["witness"]["pairs"] = shuffled
        if checker.check(data)["holds"]:
            # another cycle through all classes with one edge: follow it
            after = {x // 3: y // 3 for x, y in shuffled}
            at, length = after[0], 1
            while at != 0:
                at, length = after[at], length + 1
            assert length == 12
            assert sum(policy.graph.has_edge(x, y) for x, y in shuffled) >= 1
        else:
            seen += 1
    assert seen > 40
    for odd in ([], [[0, 0]], pairs[1:], [[None, y] for y in ends], "x", [[1]], [[True, 2]]):
        data["witness"]["pairs"] = odd
        assert not checker.check(data)["holds"]


@pytest.mark.parametrize(
    ("shape", "cap", "most"),
    [
        ({"a": 3, "b": 3}, None, 30),
        ({"a": 3, "b": 3, "c": 90}, None, 30),
        ({"a": 3, "b": 3, "c": 90}, 4, 8),
        ({"a": 2, "b": 4}, None, 24),
        ({"a": 2, "b": 4, "c": 1, "d": 60}, None, 24),
    ],
    ids=str,
)
def test_two_short_margins_beside_a_graph(shape, cap, most):
    """A margin of two cells, or both of three: a bound at any size, for any graph and query; more than 400 cells were refused."""
    domain = pg.Domain(shape)
    facts = [pg.Cuboid("a"), pg.Cuboid("b"), pg.Total()]
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain), facts, at_most_records=cap)
    found = pg.sensitivity(pg.queries.identity(domain), policy, effort=20_000)
    assert found.lower_power <= found.power <= most
    holds(found)
    names, records = list(domain.names), most // 2
    for norm in ("l1", "l2"):
        found = pg.sensitivity(
            pg.queries.cuboids(domain, [names[:2], ["a"]], [2, 3]), policy, effort=20_000, norm=norm
        )
        holds(found)
        if domain.size > 400:
            assert found.power == (4 * records if norm == "l1" else 8 * records**2)
        # answers that the facts determine may be left out of the bound, which the checker does not do
        found = pg.sensitivity(
            pg.queries.marginals(domain, [names], prefix="b"), policy, effort=20_000, norm=norm
        )
        assert not [
            one for one in checker.check(json.loads(found.to_json()))["checks"] if one["passed"] is False
        ]


def test_other_facts_beside_short_margins_are_left_to_others():
    domain = pg.Domain({"a": 3, "b": 3})
    graph = pg.PolicyGraph.full(domain)
    more = pg.LinearCount([((cell // 3, cell % 3), cell) for cell in range(9)])
    for policy in (
        pg.Policy(domain, graph, [pg.Cuboid("a"), pg.Cuboid("b"), more]),
        pg.Policy(domain, graph.with_bottom(), [pg.Cuboid("a"), pg.Cuboid("b")]),
        pg.Policy(domain, graph, [pg.Cuboid("a")]),
    ):
        problem = Problem(pg.queries.identity(domain), policy, "l1", Effort.of(None), RUNGS)
        assert blowfish.short_margins(problem) is None
        question = checker.Question(json.loads(json.dumps(policy.to_spec())), {"cuboids": [["a", "b"]]}, "l1")
        with pytest.raises(checker.OpenError):
            checker.bound(question, {"kind": "theorem", "theorem": "short-margins"})
