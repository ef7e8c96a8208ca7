"""True counts: what is refused about them, tables of many cells that are never built, and data that change meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import policygraph as pg
from policygraph.curator.counting import count_cells, read_data, tables
from policygraph.curator.counting.tables import count_measure
from policygraph.curator.histogram import Histogram, MeasuredCounts
from policygraph.errors import DataError, InputError

SMALL = pg.Domain({"sex": ["F", "M"], "age": 3})
WIDE = pg.Domain({"sex": ["F", "M"], "age": 100, "place": 1000, "job": 1000})
"""2 x 10^8 cells: its vector is never built."""
INCOME = pg.Measure("income", 0, 10)


def people(n: int, seed: int = 1) -> pa.Table:
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "sex": pa.array(draw.choice(["F", "M"], n).tolist()),
            "age": draw.integers(0, 100, n),
            "place": draw.integers(0, 1000, n),
            "job": draw.integers(0, 1000, n),
            "income": draw.integers(-5, 15, n),
        }
    )


def oracle(table: pa.Table, names: list[str], weights: Any = None) -> list[int]:
    """Counts or sums by a loop over the records."""
    shape = [len(WIDE.labels(name)) for name in names]
    out = np.zeros(shape, dtype=np.int64)
    records = table.to_pylist()
    for record, weight in zip(records, [1] * len(records) if weights is None else weights, strict=True):
        out[tuple(WIDE.code(name, record[name]) for name in names)] += weight
    return out.ravel().tolist()


def refused(code: str, run: Callable[[], Any], match: str | None = None) -> None:
    with pytest.raises((DataError, InputError), match=match) as caught:
        run()
    assert caught.value.code == code


def test_counts_must_be_whole_numbers_one_for_each_cell():
    refused(
        "counts.value", lambda: Histogram.from_vector(SMALL, np.array([1, 2, "x", 4, 5, 6], dtype=object))
    )
    refused("counts.value", lambda: Histogram.from_vector(SMALL, [1, 2, 3, 4, 5, 10**30]), "expected whole")
    refused("counts.value", lambda: Histogram.from_vector(SMALL, [1, 2, 3.5, 4, 5, 6]), "in cell 2")
    refused("counts.size", lambda: Histogram.from_vector(SMALL, [1, 2]), "2 numbers for 6 cells")


def test_networks_have_no_cuboids():
    edges = read_data([(0, 1)], pg.Policy(pg.Network(3)))
    assert read_data(edges, pg.Policy(pg.Network(3))) is edges
    refused("counts.domain", lambda: edges.cuboids([["from"]]), "not a network")
    refused("counts.domain", lambda: edges.filled(["from"]), "not a network")


def test_cuboids_of_a_wide_table_are_read_from_the_records_together():
    table = people(500)
    counts = count_cells(table, WIDE)
    asked = [["sex"], ["age", "sex"], ["place"], ["place", "job"], []]
    found = counts.cuboids(asked)
    assert list(found) == [("sex",), ("sex", "age"), ("place",), ("place", "job"), ()]
    for names, made in found.items():
        assert made.tolist() == oracle(table, list(names))
    refused("counts.too-large", counts.vector)
    cells, many = counts.filled(["place", "job"])
    dense = np.zeros((1000, 1000), dtype=np.int64)
    dense[tuple(cells.T)] = many
    assert dense.ravel().tolist() == oracle(table, ["place", "job"])


def test_records_that_do_not_fit_are_left_out_of_every_cuboid_of_a_wide_table():
    table = pa.concat_tables([people(40), people(3, 2).set_column(1, "age", pa.array([100, None, 7]))])
    kept = table.slice(0, 40)
    kept = pa.concat_tables([kept, table.slice(42, 1)])
    counts = count_cells(table, WIDE, unknown="drop")
    assert (counts.rows, counts.dropped) == (41, 2)
    for names, made in counts.cuboids([["sex"], ["place"], ["age"]]).items():
        assert made.tolist() == oracle(kept, list(names))


def test_more_attributes_than_bits_are_summed_one_cuboid_after_another():
    domain = pg.Domain({f"a{at}": 2 if at < 2 else 1 for at in range(63)})
    counts = Histogram.from_vector(domain, [1, 2, 3, 4])
    found = counts.cuboids([["a1"], ["a0", "a40"]])
    assert {names: made.tolist() for names, made in found.items()} == {("a1",): [4, 6], ("a0", "a40"): [3, 7]}


@pytest.fixture
def growing() -> Iterator[tuple[Any, Histogram]]:
    """A table that was counted, and where a record is added to it."""
    with duckdb.connect() as engine:
        engine.register("given", people(20))
        engine.execute("CREATE TABLE records AS SELECT * FROM given")
        yield engine, count_cells((engine, "SELECT * FROM records"), WIDE)


def test_records_that_are_added_meanwhile_are_noticed(growing: tuple[Any, Histogram]):
    engine, counts = growing
    assert int(counts.cuboid(["sex"]).sum()) == int(counts.filled(["job"])[1].sum()) == 20
    engine.execute("INSERT INTO records SELECT * FROM records LIMIT 1")
    refused("data.changed", lambda: counts.cuboid(["sex"]), "since they were counted")
    refused("data.changed", lambda: counts.cuboids([["sex"], ["age"]]), "since they were counted")
    refused("data.changed", lambda: counts.filled(["job"]), "since they were counted")


def test_sums_of_a_wide_table_are_read_from_the_records():
    table = people(300)
    made = count_measure(table, WIDE, INCOME, name="people")
    clipped = np.clip(table["income"].to_numpy(), 0, 10).tolist()
    assert made.cuboid(["sex"]).tolist() == oracle(table, ["sex"])
    assert made.sums(["sex", "age"]).tolist() == oracle(table, ["sex", "age"], clipped)
    assert made.fingerprint == count_measure(people(9), WIDE, INCOME, name="people").fingerprint
    refused("counts.too-large", lambda: made.sums(["sex", "age", "place", "job"]), "Ask for fewer attributes")


def test_sums_must_be_whole_and_possible():
    good = MeasuredCounts.from_vectors(SMALL, INCOME, [1, 0, 0, 0, 0, 2], [7, 0, 0, 0, 0, 20])
    assert good.sums(["sex"]).tolist() == [7, 20]
    for sums in ([7, 0, 0, 0, 0], [7.0, 0, 0, 0, 0, 20]):
        refused(
            "measure.sums",
            lambda given=sums: MeasuredCounts.from_vectors(SMALL, INCOME, [1, 0, 0, 0, 0, 2], given),
        )
    refused(
        "measure.sums",
        lambda: MeasuredCounts.from_vectors(SMALL, INCOME, [1, 0, 0, 0, 0, 2], [7, 0, 0, 0, 0, 21]),
        "cell 5",
    )
    refused("measure.sums", lambda: MeasuredCounts(good.counts, INCOME).sums(["sex"]), "no sums")
    refused(
        "measure.reach",
        lambda: MeasuredCounts.from_vectors(
            SMALL, pg.Measure("income", 0, 2**20), [2**45, 0, 0, 0, 0, 0], [0] * 6
        ),
        "coarser unit",
    )


def test_text_is_counted_alike_whether_it_is_grouped_first_or_not(monkeypatch: pytest.MonkeyPatch):
    table = people(200)
    part = pg.Domain({"sex": ["F", "M"], "age": 100})
    grouped = count_cells(table, part).vector().tolist()
    monkeypatch.setattr(tables, "SMALL", 1)
    assert count_cells(table, part).vector().tolist() == grouped == oracle(table, ["sex", "age"])
