"""Cubes of many attributes: few counts of the records for many cuboids, bases beyond 64 bits, low-order tables end to end."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.curator import histogram as counts_module
from policygraph.curator.counting import count_cells, tables
from policygraph.curator.histogram import Histogram
from policygraph.errors import DataError, InputError, RefusedError
from policygraph.mechanisms.base import MOST_ANSWERS
from policygraph.mechanisms.cube import cover
from policygraph.mechanisms.cube.unequal import bound_at
from policygraph.mechanisms.cube.weighing import Weighing
from policygraph.transforms.cuboids import costs as matrices
from policygraph.transforms.cuboids.choose import Task
from policygraph.transforms.cuboids.costs import block_precisions, cell_variances_adjoint
from policygraph.transforms.cuboids.lattice import Family, Lattice, batches, grouped

SIZES = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16] * 2
WIDE = pg.Domain({f"a{at}": n for at, n in enumerate(SIZES)})


def records(rows, seed=0):
    draws = np.random.default_rng(seed)
    return {name: draws.integers(0, n, rows) for name, n in zip(WIDE.names, SIZES, strict=True)}


def literal(columns, domain, names):
    """Every record adds one to its cell, found label by label."""
    kept = [name for name in domain.names if name in names]
    labels = [list(domain.labels(name)) for name in kept]
    out = np.zeros([len(x) for x in labels], dtype=np.int64)
    for row in zip(*(columns[name] for name in domain.names), strict=True):
        cell = dict(zip(domain.names, row, strict=True))
        if all(cell[name] in list(domain.labels(name)) for name in domain.names):
            out[tuple(x.index(cell[name]) for name, x in zip(kept, labels, strict=True))] += 1
    return out.ravel()


@st.composite
def asked(draw):
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=7))
    sets = draw(st.lists(st.sets(st.integers(0, len(shape) - 1)), min_size=1, max_size=20))
    return shape, [tuple(s) for s in sets], draw(st.integers(1, 400))


@given(asked())
@settings(max_examples=150, deadline=None)
def test_a_plan_counts_every_cuboid_once_in_tables_that_fit(case):
    shape, sets, room = case
    plan = grouped(shape, sets, room)
    met = [axes for made in plan for axes in made.wanted]
    assert sorted(met) == sorted({tuple(sorted(s)) for s in sets})
    for made in plan:
        assert all(set(axes) <= set(made.axes) for axes in made.wanted)
        size = prod(shape[a] for a in made.axes)
        assert size <= room or made.axes in made.wanted
    assert len(plan) <= len(met)
    cut = list(batches(plan, shape, most=room))
    assert [made for group in cut for made in group] == plan
    for group in cut:
        assert len(group) == 1 or sum(prod(shape[a] for a in m.axes) for m in group) <= room


def test_all_pairs_of_many_attributes_take_few_counts():
    pairs = list(combinations(range(24), 2))
    plan = grouped(SIZES, pairs)
    assert len(plan) < len(pairs) / 8


@pytest.mark.parametrize("together", [1, 30, 1 << 18])
def test_cuboids_of_a_base_beyond_64_bits(monkeypatch, together):
    monkeypatch.setattr(tables, "TOGETHER", together)
    assert WIDE.size > 2**63
    columns = records(300)
    counted = count_cells(pa.table(columns), WIDE)
    sets = [(), ("a0",), ("a3", "a1"), ("a0", "a22"), ("a4", "a5", "a6"), ("a11", "a23")]
    found = counted.cuboids(sets)
    assert list(found) == [tuple(sorted(s, key=WIDE.axis)) for s in sets]
    for names in found:
        assert found[names].tolist() == literal(columns, WIDE, names).tolist()
        assert found[names].tolist() == counted.cuboid(names).tolist()
    with pytest.raises(InputError) as caught:
        counted.cuboids([("a11", "a23"), WIDE.names])
    assert caught.value.code == "counts.too-large"


@pytest.mark.parametrize("labels", ["numbers", "texts"])
@pytest.mark.parametrize("unknown", ["drop", {"a0": "y", "a1": "y"}])
def test_rules_for_unknown_values_hold_in_shared_readings(monkeypatch, labels, unknown):
    monkeypatch.setattr(tables, "DENSE", 1)
    monkeypatch.setattr(counts_module, "DENSE", 50)
    values = ["x", "y", "z"] if labels == "texts" else [0, 1, 2]
    domain = pg.Domain({"a0": values, "a1": values, "a2": values, "a3": values})
    if isinstance(unknown, dict) and labels == "numbers":
        unknown = {"a0": 1, "a1": 1}
    draws = np.random.default_rng(3)
    odd = "?" if labels == "texts" else 7
    columns = {
        name: [[*values, odd][at] for at in draws.integers(0, 4 if name in ("a0", "a1") else 3, 200)]
        for name in domain.names
    }
    counted = count_cells(pa.table(columns), domain, unknown=unknown)
    if unknown != "drop":
        columns = {
            name: [unknown[name] if value == odd else value for value in column]
            if name in unknown
            else column
            for name, column in columns.items()
        }
    else:
        assert 0 < counted.dropped < 200
    for names, table in counted.cuboids([("a2",), ("a1", "a2"), ("a3",), ("a2", "a3"), ()]).items():
        assert table.tolist() == literal(columns, domain, names).tolist()


def test_records_that_change_under_way_are_refused(monkeypatch):
    monkeypatch.setattr(tables, "DENSE", 1)
    monkeypatch.setattr(counts_module, "DENSE", 50)
    domain = pg.Domain({"a": 3, "b": 3})
    counted = Histogram(domain, "x", 5, _tally=lambda sets: [np.array([1, 2, 3]) for _ in sets])
    with pytest.raises(DataError) as caught:
        counted.cuboids([("a",), ("b",)])
    assert caught.value.code == "data.changed"


@pytest.mark.parametrize("loss", [pg.Epsilon(1), pg.Rho("1/2")])
def test_low_order_tables_of_a_wide_table_end_to_end(tmp_path, loss):
    import pyarrow.parquet as pq

    columns = records(2000, 5)
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table(columns), path)
    query = pg.queries.all_cuboids(WIDE, up_to=2)
    made = pg.release(
        query,
        pg.Policy(WIDE),
        str(path),
        mechanism=pg.Cube("all" if loss.norm == "l1" else "unequal"),
        source=pg.SeededRng(1),
        **({"epsilon": 1} if loss.norm == "l1" else {"rho": "1/2"}),
    )
    assert len(made.tables) == 301
    table = made.cuboid("a3", "a20")
    truth = literal(columns, WIDE, ("a3", "a20"))
    assert np.array_equal(table.values.reshape(5, 10).sum(axis=1), made.cuboid("a3").values)
    assert np.abs(table.values - truth).mean() < 3 * float(table.deviation)
    assert made.cell(a3=1, a20=2)[0] == table.values[12]


@st.composite
def families(draw):
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    lattice = Lattice(pg.Domain({f"a{at}": n for at, n in enumerate(shape)}))
    masks = st.integers(0, lattice.base)
    return lattice, draw(st.sets(masks, min_size=1)), draw(st.sets(masks, min_size=1))


@pytest.mark.parametrize("thin", [0.0, 2.0])
@given(families())
@settings(max_examples=60, deadline=None)
def test_shares_of_blocks_are_those_of_passes_over_the_lattice(thin, case):
    lattice, measured, wanted = case
    held = matrices.THIN, matrices.LARGE
    matrices.THIN, matrices.LARGE = thin, 0
    try:
        below = Family(lattice, wanted)
        candidates = np.array(sorted(measured), dtype=np.int64)
        made = matrices.shares(lattice, below.masks, candidates)
        everything = Family(lattice, [*measured, *wanted])
        units = np.zeros((len(everything), len(candidates)))
        units[everything.at(candidates.tolist()), np.arange(len(candidates))] = 1.0
        kept = everything.at(below.masks.tolist())
        assert np.allclose(made @ np.eye(len(candidates)), block_precisions(everything, units)[kept])
        at = below.at(sorted(wanted))
        importance = np.arange(1.0, len(at) + 1)
        cells = matrices.cell_shares(below, below.masks, at, importance)
        spread = np.zeros((len(below), len(at)))
        spread[at, np.arange(len(at))] = importance
        assert np.allclose(cells @ np.eye(len(below)), cell_variances_adjoint(below, spread).T)
    finally:
        matrices.THIN, matrices.LARGE = held


def test_larger_cuboids_are_measured_where_small_ones_are_too_many():
    domain = pg.Domain({f"a{at}": 2 for at in range(16)})
    query = pg.queries.all_cuboids(domain, up_to=2)
    ones = [1.0] * len(query.sets)
    made = pg.cubes.BMax(fitted=True).choose(domain, query.sets, ones, pg.Policy(domain), pg.Epsilon(1))
    task = Task(domain, query.sets, ones, pg.Policy(domain), pg.Epsilon(1))
    masks = [task.lattice.mask(names) for names in made.sets]
    assert max(len(names) for names in made.sets) > 2
    assert made.objective == pytest.approx(float(task.fitted(masks, [1.0] * len(masks)).max()))
    pairs = [task.lattice.mask(names) for names in query.sets if len(names) == 2]
    assert made.objective < 0.2 * float(task.fitted(pairs, [1.0] * len(pairs)).max())


def test_too_many_cuboids_for_covers_are_refused_and_weighed_without_them(monkeypatch):
    monkeypatch.setattr(cover, "COVERED", 1000)
    domain = pg.Domain({f"a{at}": 2 for at in range(13)})
    query = pg.queries.all_cuboids(domain, up_to=2)
    ones = [1.0] * len(query.sets)
    with pytest.raises(RefusedError) as caught:
        pg.cubes.BMax().choose(domain, query.sets, ones, pg.Policy(domain), pg.Epsilon(1))
    assert caught.value.code == "cubes.too-many"
    made = pg.cubes.Unequal(work=100_000).choose(domain, query.sets, ones, pg.Policy(domain), pg.Epsilon(1))
    task = Task(domain, query.sets, ones, pg.Policy(domain), pg.Epsilon(1))
    masks = [task.lattice.mask(names) for names in made.sets]
    assert made.objective == pytest.approx(float(task.fitted(masks, made.weights).sum()))


def test_ten_thousand_low_order_tables_of_forty_attributes_are_weighed_in_closed_form():
    domain = pg.Domain({f"a{at}": 2 for at in range(40)})
    query = pg.queries.all_cuboids(domain, up_to=3)
    ones = [1.0] * len(query.sets)
    made = pg.cubes.Unequal().choose(domain, query.sets, ones, pg.Policy(domain), pg.Rho("1/2"))
    assert len(made.sets) == len(query.sets) == 10_701
    assert made.gap < 1e-6


def test_a_cube_of_more_answers_than_other_queries_may_have_is_certified():
    domain = pg.Domain({"a": 20_000, "b": 6_000})
    query = pg.queries.all_cuboids(domain)
    assert query.height > MOST_ANSWERS
    assert pg.Cube("all").calibrate(query, pg.Policy(domain), pg.Epsilon(1)).parameter == 4
    wide = pg.Domain({"a": 20_000, "b": 60_000})
    with pytest.raises(RefusedError) as caught:
        pg.Laplace().calibrate(pg.queries.all_cuboids(wide), pg.Policy(wide), pg.Epsilon(1))
    assert caught.value.code == "mechanism.answers"


def test_covers_are_judged_by_what_a_cube_publishes():
    domain = pg.Domain({"a": 9, "b": 7, "c": 5, "d": 2})
    query = pg.queries.all_cuboids(domain)
    for strategy in (pg.cubes.BMax(work=0), pg.cubes.PMost(bound=400, work=0)):
        for consistency in ("least-squares", None):
            ready = pg.Cube(strategy, consistency=consistency).calibrate(
                query, pg.Policy(domain), pg.Epsilon(1)
            )
            told = replace(strategy, fitted=consistency is not None)
            ones = [1.0] * len(query.sets)
            assert ready.choice == told.choose(domain, query.sets, ones, pg.Policy(domain), pg.Epsilon(1))
            assert ("after least squares" in ready.choice.reason) == (consistency is not None)
    assert pg.cubes.BMax(fitted=False).suited(consistent=True).fitted is False
    assert pg.cubes.All().suited(consistent=True) == pg.cubes.All()


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.data(),
    st.sampled_from(["total", "max"]),
    st.sampled_from(["free", "attribute"]),
)
@settings(max_examples=25, deadline=None)
def test_no_weights_come_below_the_bound_of_unequal_noise(shape, data, goal, kind):
    domain = pg.Domain({f"a{at}": n for at, n in enumerate(shape)})
    sets = pg.queries.all_cuboids(domain).sets
    kept = [names for names in sets if data.draw(st.booleans())] or [sets[-1]]
    graph = pg.PolicyGraph.attribute(domain) if kind == "attribute" and max(shape) > 1 else None
    policy = pg.Policy(domain, graph)
    ones = [1.0] * len(kept)
    made = pg.cubes.Unequal(goal, work=20_000).choose(domain, kept, ones, policy, pg.Epsilon(1))
    if not made.sets:
        return
    assert 0 < made.bound <= made.objective
    task = Task(domain, kept, ones, policy, pg.Epsilon(1))
    problem = Weighing(task, goal)
    draws = np.random.default_rng(data.draw(st.integers(0, 99)))
    trials = np.exp(3 * draws.normal(size=(len(task.candidates), 200)))
    trials *= draws.random(trials.shape) < 0.6
    values = problem.value(trials[:, trials.any(axis=0)])
    assert np.all(values[np.isfinite(values)] * task.unit >= made.bound)
    matrix, cells = (
        np.sqrt(problem.from_weights),
        problem.to_cells if goal == "max" else problem.total[None, :],
    )
    for _ in range(5):
        shares, prices = draws.dirichlet(np.ones(len(cells))), draws.dirichlet(np.ones(len(problem.forms)))
        some = bound_at(matrix, cells, problem.forms, shares, prices, draws.random(len(matrix)))
        assert some * task.unit <= made.objective * (1 + 1e-9)
