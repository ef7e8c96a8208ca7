"""Sums that count each cell twice at most: no minimal move is longer than the bound, and the cycle that is shown is one."""

import random

import numpy as np
import pytest

import policygraph as pg
from policygraph import check as checker
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.paired import longest_walk, some_cycle


def drawn(rng):
    """Edges, loops and ends between up to five sums, perhaps with signs, and cells in no sum."""
    sums, signs = rng.randint(1, 5), rng.choice([[1], [1, -1]])
    columns = []
    for _ in range(rng.randint(1, 9)):
        kind = rng.random()
        if kind < 0.2 or sums == 1:
            columns.append({rng.randrange(sums): rng.choice(signs) * rng.choice([1, 1, 2])})
        elif kind < 0.23:
            columns.append({})
        else:
            columns.append({row: rng.choice(signs) for row in rng.sample(range(sums), 2)})
    return sums, columns


def moves_of(sums, columns):
    matrix = [[column.get(row, 0) for column in columns] for row in range(sums)]
    return [tuple(map(int, move)) for move in graver_basis(np.array(matrix, dtype=np.int64))]


def test_no_minimal_move_is_longer():
    rng, attained, cycles = random.Random(2), 0, 0
    for _ in range(150):
        sums, columns = drawn(rng)
        every = moves_of(sums, columns)
        length, entry = longest_walk(columns)
        longest = max((sum(map(abs, move)) for move in every), default=0)
        assert longest <= length, columns
        assert max((max(map(abs, move)) for move in every), default=0) <= entry, columns
        attained += longest == length
        cycle = some_cycle(columns)
        if cycle:
            cycles += 1
            move = tuple(cycle.get(cell, 0) for cell in range(len(columns)))
            assert move in every or tuple(-x for x in move) in every, (columns, cycle)
    assert attained > 20
    assert cycles > 10


def test_cells_that_are_counted_three_times_are_left_to_others():
    assert longest_walk([{0: 1, 1: 1, 2: 1}]) is None
    assert longest_walk([{0: 3}]) is None


def in_pairs(values, counts, seed):
    rng = random.Random(seed)
    ends = [rng.sample(range(counts), 2) for _ in range(values)]
    domain = pg.Domain({"x": values})
    listed = [[at for at, pair in enumerate(ends) if count in pair] for count in range(counts)]
    return domain, pg.Policy(domain, constraints=[pg.count({"x": some}) for some in listed if some])


@pytest.mark.parametrize(("values", "counts"), [(600, 300), (150, 100)])
def test_values_in_two_counts_each_are_bounded_at_any_size(values, counts):
    domain, policy = in_pairs(values, counts, 1)
    made = pg.sensitivity(pg.queries.identity(domain), policy, effort=200_000)
    assert 0 < made.power <= 2 * counts
    assert made.proof == {"kind": "theorem", "theorem": "paired-sums"}
    assert checker.check_text(made.to_json())["holds"]
    lowered = checker.Question(policy.to_spec(), {"cuboids": [["x"]]}, "l1")
    with pytest.raises(checker.FailedError):
        checker._bounded(lowered, made.proof, made.power - 1)


def test_a_long_cycle_is_shown_where_the_counts_fall_into_two_sides():
    """Rows and columns of a table with holes, as counts of one attribute: the bound is at most twice the cycle."""
    rng = random.Random(4)
    side = 60
    holes = [(a, b) for a in range(side) for b in range(side) if rng.random() < 0.2 or b == (7 * a) % side]
    domain = pg.Domain({"x": len(holes)})
    counts = [
        [at for at, pair in enumerate(holes) if pair[axis] == here] for axis in (0, 1) for here in range(side)
    ]
    policy = pg.Policy(domain, constraints=[pg.count({"x": some}) for some in counts])
    made = pg.sensitivity(pg.queries.identity(domain), policy, effort=200_000)
    assert made.power == 2 * side
    assert 2 * made.lower_power >= made.power
    report = checker.check_text(made.to_json())
    assert report["holds"], report
    asked = pg.queries.matrix(
        domain, [[1 + at % 3 for at in range(domain.size)], [at % 2 for at in range(domain.size)]]
    )
    for norm, wide in (("l1", 4), ("l2", 10)):
        made = pg.sensitivity(asked, policy, norm=norm, effort=200_000)
        assert made.power <= (2 * side * wide if norm == "l1" else (2 * side) ** 2 * wide)
        assert checker.check_text(made.to_json())["holds"]
