"""Synthetic records: whole, as many as there are, with the exact public tables."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.graphical import records as module

DOMAIN = pg.Domain({"a": 2, "b": 3, "c": 2, "d": 4})
TABLE = np.random.default_rng(3).integers(0, 30, DOMAIN.size)
CUBE = TABLE.reshape(DOMAIN.shape)
PAIRS = pg.queries.cuboids(DOMAIN, list(combinations(DOMAIN.names, 2)))


def true(*names):
    rest = tuple(axis for axis in range(4) if DOMAIN.names[axis] not in names)
    return CUBE.sum(axis=rest).ravel()


@st.composite
def facts(draw):
    sets = draw(st.lists(st.sets(st.sampled_from("abcd"), min_size=1, max_size=2), min_size=0, max_size=2))
    return sorted({tuple(sorted(each)) for each in sets})


@pytest.mark.parametrize("dense", [True, False])
@given(facts(), st.integers(0, 5))
@settings(max_examples=5)
def test_records_meet_exact_tables_along_cliques_and_at_once(dense, known, seed):
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid(*names) for names in known])
    made = pg.Cube("all").calibrate(PAIRS, policy, pg.Epsilon(2)).run(TABLE, pg.SeededRng(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE", 1 << 16 if dense else 0)
        found = pg.synthetic_records(made, seed=seed)
    assert found.codes.min() >= 0
    assert all((found.codes[:, at] < n).all() for at, n in enumerate(DOMAIN.shape))
    for names in known:
        assert found.counts(*names).tolist() == true(*names).tolist()
    if known:
        assert len(found) == TABLE.sum()


@pytest.mark.parametrize(
    "mechanism", [pg.Cube(), pg.Cube(nonnegative=True, whole=True), pg.AdaptiveCube()], ids=repr
)
def test_tables_of_records_are_near_the_released_ones(mechanism):
    table = 50 * TABLE
    made = pg.release(PAIRS, pg.Policy(DOMAIN), table, rho=1, mechanism=mechanism, rng=pg.SeededRng(1))
    found = pg.synthetic_records(made)
    for released in made.tables:
        off = np.abs(found.counts(*released.columns) - np.asarray(released.values)).sum()
        assert off < 0.06 * table.sum()
    assert abs(len(found) - table.sum()) < 0.01 * table.sum()


def test_sixty_attributes_with_public_tables():
    domain = pg.Domain({f"x{i}": 2 + i % 3 for i in range(60)})
    rng = np.random.default_rng(1)
    rows = np.zeros((3000, 60), dtype=np.int64)
    for at, n in enumerate(domain.shape):
        fresh = rng.integers(0, n, 3000)
        rows[:, at] = np.where(rng.uniform(size=3000) < 0.7, rows[:, at - 1] % n, fresh) if at else fresh
    sets = [(f"x{i}", f"x{i + 1}") for i in range(59)]
    query = pg.queries.cuboids(domain, sets)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("x0", "x1"), pg.Cuboid("x30", "x31")])
    frame = {name: rows[:, at] for at, name in enumerate(domain.names)}
    import pyarrow as pa

    made = pg.release(query, policy, pa.table(frame), rho=10, mechanism=pg.Cube("all"), rng=pg.SeededRng(1))
    found = pg.synthetic_records(made)
    assert found.codes.shape == (3000, 60)
    for names in (("x0", "x1"), ("x30", "x31")):
        axes = [domain.axis(name) for name in names]
        shape = [domain.shape[axis] for axis in axes]
        real = np.bincount(np.ravel_multi_index(rows[:, axes].T, shape), minlength=int(np.prod(shape)))
        assert found.counts(*names).tolist() == real.tolist()
    axes = [40, 41]
    real = np.bincount(np.ravel_multi_index(rows[:, axes].T, [domain.shape[a] for a in axes]))
    assert np.abs(found.counts("x40", "x41") - real).sum() < 400


def test_the_number_of_records_can_be_chosen_unless_it_is_public():
    open_release = pg.release(
        PAIRS, pg.Policy(DOMAIN), TABLE, rho=1, mechanism=pg.Cube(), rng=pg.SeededRng(1)
    )
    assert len(pg.synthetic_records(open_release, 77)) == 77
    assert len(pg.synthetic_records(open_release, 0)) == 0
    told = pg.Policy(DOMAIN, constraints=[pg.Total()])
    made = pg.release(PAIRS, told, TABLE, rho=1, mechanism=pg.Cube(), rng=pg.SeededRng(1))
    assert len(pg.synthetic_records(made)) == TABLE.sum()
    for wrong in (3, -1, True):
        with pytest.raises(InputError) as caught:
            pg.synthetic_records(made, wrong)
        assert caught.value.code == "synthetic.records"


def test_what_cannot_be_made_is_refused_before_anything_is_returned():
    network = pg.Network(4)
    edges = pg.release(
        pg.queries.identity(network), pg.Policy(network), [0, 1, 0, 1, 1, 0], epsilon=1, rng=pg.SeededRng(1)
    )
    with pytest.raises(InputError) as caught:
        pg.synthetic_records(edges)
    assert caught.value.code == "synthetic.release"
    query = pg.queries.cuboids(DOMAIN, [["a"], ["b"]])
    policy = pg.Policy(DOMAIN, constraints=[pg.count({"a": [0], "b": [1]})])
    made = pg.release(query, policy, TABLE, epsilon=1, mechanism=pg.Cube("all"), rng=pg.SeededRng(1))
    with pytest.raises(RefusedError) as caught:
        pg.synthetic_records(made)
    assert caught.value.code == "synthetic.facts"
    large = pg.Policy(DOMAIN, constraints=[pg.Cuboid("a", "b", equals=true("a", "b").tolist())])
    made = pg.release(PAIRS, large, TABLE, epsilon=1, mechanism=pg.Cube("all"), rng=pg.SeededRng(1))
    with pytest.raises(RefusedError) as caught:
        pg.synthetic_records(made, cells=3)
    assert caught.value.code == "synthetic.size"


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", None, True, np.nan])
@pytest.mark.parametrize("option", ["cells", "seed"])
def test_options_that_are_no_whole_numbers_are_refused(option, wrong):
    made = pg.release(PAIRS, pg.Policy(DOMAIN), TABLE, rho=1, mechanism=pg.Cube(), rng=pg.SeededRng(1))
    with pytest.raises(InputError) as caught:
        pg.synthetic_records(made, **{option: wrong})
    assert caught.value.code == "synthetic.option"


def test_odd_releases_numbers_and_tables():
    for wrong in (None, 3, "a file"):
        with pytest.raises(InputError) as caught:
            pg.synthetic_records(wrong)
        assert caught.value.code == "synthetic.release"
    made = pg.release(PAIRS, pg.Policy(DOMAIN), TABLE, rho=1, mechanism=pg.Cube(), rng=pg.SeededRng(1))
    with pytest.raises(InputError) as caught:
        pg.synthetic_records(made, seed=1 << 128)
    assert caught.value.code == "synthetic.option"
    assert len(pg.synthetic_records(made, np.int64(5))) == 5
    assert len(pg.synthetic_records(made, 0)) == 0
    found = pg.synthetic_records(made, 50)
    assert found.counts("b", "a", "b").tolist() == found.counts("a", "b").tolist()
    assert found.counts().tolist() == [50]
    wide = module.SyntheticRecords(
        pg.Domain({f"a{k}": 2 for k in range(70)}), np.zeros((3, 70), dtype=np.int64)
    )
    with pytest.raises(RefusedError) as refused:
        wide.counts(*wide.domain.names)
    assert refused.value.code == "synthetic.size"


def test_records_are_written_with_their_labels(tmp_path):
    domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    made = pg.release(
        pg.queries.all_cuboids(domain), pg.Policy(domain), [9, 0, 4, 7, 7, 1], epsilon=5, rng=pg.SeededRng(1)
    )
    found = pg.synthetic_records(made)
    found.to_csv(tmp_path / "made.csv")
    lines = (tmp_path / "made.csv").read_text().splitlines()
    assert len(lines) == len(found) + 1
    assert {line.split(",")[0].strip('"') for line in lines[1:]} <= {"F", "M"}
    assert "synthetic records" in str(found)
