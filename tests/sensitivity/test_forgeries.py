"""Certificates that were changed: none is confirmed whose value is below the true one, and no true one is rejected."""

import random
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

import policygraph as pg
from policygraph.moves.graver.basis import graver_basis
from policygraph.sensitivity.certificate import Sensitivity, Witness
from tests.oracles import strengths
from tests.strategies import literal_moves, queries, small_policies


def induced_policies(rng):
    """Margins, counts, caps and strengths on tables of a few cells."""
    line, square, block = (
        pg.Domain({"x": 4}),
        pg.Domain({"a": 2, "b": 3}),
        pg.Domain({"a": 2, "b": 2, "c": 2}),
    )
    facts = [
        (line, [pg.LinearCount([((c,), rng.randint(-1, 2)) for c in range(4)])]),
        (line, [pg.count({"x": [0, 1]})]),
        (square, [pg.Cuboid("a"), pg.Cuboid("b")]),
        (square, [pg.Cuboid("b"), pg.StructuralZero([(0, 1)])]),
        (square, [pg.Cells(["a"], [0]), pg.Total()]),
        (square, [pg.Cuboid("a", "b")]),
        (square, []),
        (block, [pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")]),
        (block, [pg.Cuboid("a", "b"), pg.Cuboid("c")]),
    ]
    for domain, listed in facts:
        for strength in ("worst-case", "markov", "positive"):
            for cap in (None, 1, 2):
                yield pg.Policy(domain, constraints=listed, strength=strength, at_most_records=cap)


def network_policies():
    """Simple graphs, loops and directed ones, where a pair of nodes holds one edge at most."""
    for network in (pg.Network(4), pg.Network(3, loops=True), pg.Network(3, directed=True)):
        side = {"side": "out"} if network.directed else {}
        for nodes in ("all", [0, 1]):
            for strength in ("worst-case", "positive", "markov"):
                yield pg.Policy(network, constraints=[pg.Degrees(nodes, **side)], strength=strength)


def rows_of(policy):
    keep = np.setdiff1d(np.arange(policy.domain.size), policy.system.zeros)
    return policy.system.matrix().toarray()[:, keep].tolist(), keep


@lru_cache(maxsize=256)
def _positive(rows, move, capacity):
    """Whether a move is positive on some table, by going through the tables."""
    low = [max(0, -x) for x in move]
    if capacity is None:
        return strengths.is_positive_pair(rows, low, move)
    ranges = [range(a, capacity - max(0, x) + 1) for a, x in zip(low, move, strict=True)]
    return any(strengths.is_positive_pair(rows, table, move, capacity) for table in product(*ranges))


@lru_cache(maxsize=256)
def _minimal(rows, width):
    """All minimal moves; the list is held against 4ti2 and against the definition in test_graver.py."""
    matrix = np.array(rows, dtype=np.int64).reshape(-1, width)
    return [tuple(int(x) for x in move) for move in graver_basis(matrix)]


def true_moves(policy):
    """All changes between neighbours, by listing; None where the list does not settle."""
    size = policy.domain.size
    if policy.definition == "edges":
        out = []
        for u, v in policy.graph.edges():
            move = [0] * size
            move[u] = 1
            if isinstance(v, int):
                move[v] = -1
            out.append(tuple(move))
        return out
    if policy.definition == "blowfish":
        moves, settled = literal_moves(policy)
        return list(moves) if settled else None
    rows, keep = rows_of(policy)
    top, cap = policy.domain.capacity, policy.at_most_records
    out = []
    for move in _minimal(tuple(map(tuple, rows)), len(keep)):
        sides = sum(x for x in move if x > 0), -sum(x for x in move if x < 0)
        if (top is not None and max(map(abs, move)) > top) or (cap is not None and max(sides) > cap):
            continue
        if policy.strength == "markov" and (sum(map(abs, move)) > 4 or max(map(abs, move)) > 1):
            continue
        if policy.strength == "positive" and not _positive(tuple(map(tuple, rows)), move, top):
            continue
        full = [0] * size
        for cell, x in zip(keep, move, strict=True):
            full[cell] = x
        out.append(tuple(full))
    return out


def measured(query, moves, norm):
    columns = query.columns(np.arange(len(moves[0]))).toarray() if moves else None
    best = 0
    for move in moves:
        answer = columns @ np.array(move, dtype=np.int64)
        best = max(best, int(np.abs(answer).sum() if norm == "l1" else (answer**2).sum()))
    return Fraction(best) * (query.unit if norm == "l1" else query.unit**2)


def forgeries(made, moves, others, rng):
    """Changed certificates, consistent in themselves."""
    power, query, norm = made.power, made.query, made.norm
    yield replace(made, power=Fraction(0), lower_power=Fraction(0), kind="exact", witness=None)
    yield replace(made, power=Fraction(0), lower_power=Fraction(0), kind="upper", witness=None)
    yield replace(made, power=Fraction(0), lower_power=Fraction(0), kind="exact")
    for less in (Fraction(1), power / 2):
        if power - less >= 0:
            yield replace(made, power=power - less, lower_power=Fraction(0), kind="upper", witness=None)
            yield replace(made, power=power - less, lower_power=power - less, kind="exact", witness=None)
            yield replace(made, power=power - less, lower_power=power - less, kind="exact")
    yield replace(made, power=power + 1, lower_power=power + 1, kind="exact")
    yield replace(made, power=power + 1, lower_power=made.lower_power, kind="upper")
    yield replace(made, norm="l1" if norm == "l2" else "l2")
    for move in rng.sample(moves, min(3, len(moves))):
        change = {c: x for c, x in enumerate(move) if x}
        value = measured(query, [move], norm)
        yield replace(made, power=value, lower_power=value, kind="exact", witness=Witness.of_change(change))
    change = {c: rng.randint(-2, 2) for c in range(made.policy.domain.size)}
    value = measured(query, [tuple(change.values())], norm)
    yield replace(made, power=value, lower_power=value, kind="exact", witness=Witness.of_change(change))
    for policy in others:
        yield replace(made, policy=policy)


def check(policy, rng, others=()):
    moves = true_moves(policy)
    if moves is None:
        return 0
    every = [move for one in moves for move in (one, tuple(-x for x in one))]
    seen = 0
    asked = (
        queries(policy.domain, rng)
        if isinstance(policy.domain, pg.Domain)
        else [pg.queries.identity(policy.domain)]
    )
    for query in rng.sample(asked, min(2, len(asked))):
        norm = rng.choice(["l1", "l2"])
        true = measured(query, moves, norm)
        made = pg.sensitivity(query, policy, norm=norm)
        assert made.power >= true, policy.to_spec()
        report = Sensitivity.from_json(made.to_json()).verify()
        assert not report.failed, (policy.to_spec(), query.to_spec(), str(made), str(report))
        assert report.ok == (made.power == true or made.kind == "upper"), (policy.to_spec(), str(report))
        for forged in forgeries(made, every, others, rng):
            if forged.policy is policy:
                bound = measured(query, moves, forged.norm)
            else:
                there = true_moves(forged.policy)
                if there is None:
                    continue
                bound = measured(query, there, forged.norm)
            answer = forged.verify()
            seen += 1
            good = forged.power >= bound and (forged.kind == "upper" or forged.power == bound)
            assert not answer.ok or good, (policy.to_spec(), query.to_spec(), str(forged), str(answer))
            if forged.power < bound:
                assert not answer.ok, (policy.to_spec(), str(forged), str(answer))
    return seen


def test_forged_certificates_under_facts():
    rng = random.Random(4)
    policies = list(induced_policies(rng))
    seen = sum(
        check(policy, rng, [p for p in rng.sample(policies, 4) if p.domain == policy.domain])
        for policy in policies
    )
    assert seen > 1000


@pytest.mark.parametrize("shape", [{"x": 3}, {"a": 2, "b": 2}], ids=str)
def test_forged_certificates_under_a_graph_and_facts(shape):
    rng = random.Random(5)
    policies = small_policies(5, [shape])
    seen = 0
    for policy in policies:
        capped = pg.Policy(
            policy.domain, policy.graph, policy.constraints, at_most_records=rng.choice([None, 1, 2])
        )
        seen += check(capped, rng, rng.sample(policies, 1))
    assert seen > 1000


def test_forged_certificates_of_networks():
    rng = random.Random(6)
    assert sum(check(policy, rng) for policy in network_policies()) > 100
