"""Public sums that leave two numbers open: circuits against the lists of all minimal moves, in the library and in the checker."""

import json
import random

import numpy as np
import pytest

import policygraph as pg
from policygraph import check as checker
from policygraph.effort import Effort
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.low_rank import circuits_of_parts


def test_the_largest_move_is_a_circuit():
    rng = random.Random(5)
    tried = bounded = 0
    for _ in range(120):
        n = rng.randint(2, 6)
        rows = [
            [rng.choice([0, 0, 1, 1, 2, -1, 3, 5, -2]) for _ in range(n)] for _ in range(rng.randint(0, n))
        ]
        rows = [row for row in rows if any(row)]
        matrix = np.array(rows, dtype=np.int64).reshape(len(rows), n)
        found = circuits_of_parts(
            [{j: x for j, x in enumerate(row) if x} for row in rows], n, Effort(1_000_000)
        )
        if found is None:
            continue
        tried += 1
        minimal = graver_basis(matrix)
        domain = pg.Domain({"x": n})
        facts = [pg.LinearCount([((j,), x) for j, x in enumerate(row) if x]) for row in rows]
        policy = json.loads(json.dumps(pg.Policy(domain, constraints=facts).to_spec()))
        for norm in (1, 2):
            asked = np.array([[rng.randint(-3, 3) for _ in range(n)] for _ in range(3)])
            true = max((int((abs(asked @ g) ** norm).sum()) for g in minimal), default=0)
            vectors = [np.array([one.get(j, 0) for j in range(n)]) for one in found]
            assert max((int((abs(asked @ g) ** norm).sum()) for g in vectors), default=0) == true
            query = pg.queries.matrix(domain, asked.tolist()).to_spec()
            checker.Meter.left = checker.WORK
            problem = checker.Question(policy, query, "l1" if norm == 1 else "l2")
            proof = {"kind": "theorem", "theorem": "two-open-numbers"}
            assert checker.bound(problem, proof)[0] == true
            bounded += 1
    assert tried > 60
    assert bounded > 120


def test_three_open_numbers_are_left_to_others():
    domain = pg.Domain({"a": 2, "b": 2, "c": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")])
    problem = checker.Question(json.loads(json.dumps(policy.to_spec())), {"cuboids": [["a", "b", "c"]]}, "l1")
    with pytest.raises(checker.OpenError):
        checker.bound(problem, {"kind": "theorem", "theorem": "two-open-numbers"})
    assert circuits_of_parts([{0: 1, 1: 1, 2: 1, 3: 1}], 4, Effort(10_000)) is None
    assert circuits_of_parts([{0: 1, 1: 1}], 2, Effort(1)) is None


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sums_of_three_neighbours_at_a_size_that_is_not_listed(norm):
    domain = pg.Domain({"x": 302})
    facts = [pg.LinearCount([((i,), 1), ((i + 1,), 1), ((i + 2,), 1)]) for i in range(300)]
    found = pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=facts), norm=norm)
    # e.g. 1, -1, 0, 1, -1, 0, ...
    assert (found.power, found.kind) == (202, "exact")
    assert found.proof == {"kind": "theorem", "theorem": "two-open-numbers"}
    assert found.proved


def test_weights_beyond_what_is_listed():
    domain = pg.Domain({"x": 3})
    policy = pg.Policy(domain, constraints=[pg.LinearCount([((0,), 1), ((1,), 1000), ((2,), 1_000_003)])])
    found = pg.sensitivity(pg.queries.identity(domain), policy)
    assert found.kind == "exact"
    assert found.power == 1_000_003 + 1_000  # (0, 1000003, -1000)
    assert found.proved
