"""The bin of a record is that of the literal definition, whatever the source; and depends on this record alone."""

from __future__ import annotations

import datetime
import json
import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.curator.counting import count_cells
from policygraph.curator.counting.tables import count_measure
from policygraph.errors import DataError, InputError
from policygraph.model.bins import Bins
from policygraph.model.domain import Domain
from policygraph.model.measure import Measure
from policygraph.model.policy import Policy
from policygraph.model.queries import cuboid
from policygraph.sensitivity import sensitivity
from tests.oracles import counting as oracle

MANY = [
    Bins([0, 15, 25, 65], also=["unknown", "-9"]),
    Bins([-1, 0, 0.1, 0.5, 2**53]),
    Bins([0, 1, 2, 2.5], open=False),
    Bins([0]),
    Bins([0, 15, 65], also=["unknown"], end=130),
]
DAYS = Bins(["1999-12-31", "2000-02-29", "2000-03-01", "2024-01-01"], also=["unknown"])
NUMBERS: list[Any] = [
    *(0, 14, 15, 24, 25, 64, 65, 120, -1, -9, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 10**30),
    *(0.0, -0.0, 14.999999999999998, 15.0, 0.1, 0.5, 0.49999999999999994, -0.1, 2.5, 1e300, 5e-324, 1e-320),
    *(float("inf"), float("-inf"), float("nan"), None, True, False),
]
TEXTS = [
    *("0", "-0", "15", "015", " 15 ", "\t15", "15\n", "1.5e1", "15.", ".1", "0.1", "1e400", "-1e400", "inf", "nan", "", " ", "15-24", "65+", "1_5", "0x1"),
    *("unknown", "Unknown", "-9", "-9.0", "١٥", "1" * 400, "0." + "0" * 400 + "1", "0" * 1001, "14.9999999999999999999999", "9007199254740993"),
]  # fmt: skip
DATES = [
    *("1999-12-30", "1999-12-31", "2000-02-28", "2000-02-29", "2000-03-01", "2001-02-29", "1900-02-29", "2024-02-29", "2024-13-01", "2024-04-31", "0000-02-29"),
    *("2024-01-01T00:00", "2024-01-01 23:59:59.999", "2023-12-31T23:59:59Z", "2024-01-01 00:00:00+00", "2024-01-01 00:00:00+01", "2024-01-01T24:00", "2024-1-1"),
    *("20240101", "2024-01-01 ", "2024-01-01\n", "12024-01-01", "unknown", "", "2024-01-01T10:00:61"),
]  # fmt: skip


def expected(bins: Bins, values: list[Any]) -> tuple[list[int], int]:
    """Counts, and what has no bin, by the literal definition."""
    found = [oracle.bin_position(bins, value) for value in values]
    return [found.count(at) for at in range(len(bins.labels))], found.count(None)


def counted(data: Any, bins: Bins) -> tuple[list[int], int]:
    made = count_cells(data, Domain({"x": bins}), unknown="drop", name="x")
    return made.vector().tolist(), made.dropped


def sources(folder: Path, values: list[Any], texts: bool) -> dict[str, Any]:
    """One column in many forms."""
    numbered = [{"x": value} for value in values]
    plain = [r for r in numbered if not isinstance(r["x"], float) or math.isfinite(r["x"])]
    lines = folder / "x.jsonl"
    lines.write_text("\n".join(json.dumps(record) for record in plain))
    made: dict[str, Any] = {
        "objects": (pd.DataFrame({"x": pd.Series(values, dtype=object)}), values),
        "json": (lines, [record["x"] for record in plain]),
    }
    if texts:
        sheet = folder / "x.csv"
        sheet.write_text("x,y\n" + "\n".join('"' + text + '",1' for text in values))
        made["csv"] = (sheet, [text or None for text in values])
        made["arrow"] = (pa.table({"x": values}), values)
    return made


@pytest.mark.parametrize("bins", [*MANY, DAYS], ids=lambda bins: f"{bins.edges[-1]}")
def test_every_value_has_the_bin_of_the_definition(bins: Bins, tmp_path: Path) -> None:
    for values in (NUMBERS, [*TEXTS, *DATES]):
        for name, (data, meant) in sources(tmp_path, list(values), values is not NUMBERS).items():
            assert counted(data, bins) == expected(bins, meant), name


@pytest.mark.parametrize("bins", MANY, ids=lambda bins: f"{bins.edges[-1]}")
def test_every_type_of_column_means_the_same(bins: Bins, tmp_path: Path) -> None:
    kinds: list[tuple[pa.DataType, list[Any], Any]] = [
        (pa.int64(), [0, 14, 15, 65, -9, 2**53, 2**53 + 1, -(2**63), None], int),
        (pa.uint64(), [0, 15, 2**64 - 1], int),
        (pa.float64(), [x for x in NUMBERS if isinstance(x, float)], float),
        (
            pa.decimal128(38, 4),
            [Decimal(x) for x in ("14.9999", "15.0000", "0.1000", "-0.1000", "0.5")],
            float,
        ),
        (pa.bool_(), [True, False, None], bool),
    ]
    for kind, values, meant in kinds:
        table = pa.table({"x": pa.array(values, kind)})
        path = tmp_path / "x.parquet"
        pq.write_table(table, path)
        literal = [None if value is None else meant(value) for value in values]
        assert counted(table, bins) == counted(path, bins) == expected(bins, literal), kind
    # A float of 32 bits means the number that it prints: 0.1 is not below 0.1.
    short = np.array(
        [0.1, 0.099999994, 0.5, 15.0, 14.999999, 2.5, 9007199254740992.0, np.nan, np.inf], dtype=np.float32
    )
    printed = [float(str(value)) for value in short]
    assert counted(pa.table({"x": pa.array(short)}), bins) == expected(bins, printed)
    assert counted(pd.DataFrame({"x": pd.Series(list(short), dtype=object)}), bins) == expected(bins, printed)


def test_dates_and_times_of_a_column_are_in_the_bin_of_their_day() -> None:
    days = [datetime.date(1999, 12, 30), datetime.date(2000, 2, 29), datetime.date(2024, 1, 1), None]
    moments = [datetime.datetime(2000, 2, 29, 23, 59, 59, 999999), datetime.datetime(2024, 1, 1)]
    assert counted(pa.table({"x": pa.array(days)}), DAYS) == ([0, 1, 0, 1, 0], 2)
    assert counted(pa.table({"x": pa.array(moments)}), DAYS) == ([0, 1, 0, 1, 0], 0)
    zoned = pa.array([m.replace(tzinfo=datetime.UTC) for m in moments], pa.timestamp("us", tz="Asia/Tokyo"))
    assert counted(pa.table({"x": zoned}), DAYS) == ([0, 1, 0, 1, 0], 0)
    assert counted(pa.table({"x": [20240101, 5]}), DAYS) == ([0] * 5, 2)


@settings(max_examples=25)
@given(
    st.lists(
        st.floats(-100, 100, width=32).map(float) | st.integers(-50, 50), min_size=1, max_size=6, unique=True
    ),
    st.lists(st.floats() | st.integers(-60, 60) | st.none(), min_size=1, max_size=20),
    st.booleans(),
)
def test_any_edges(edges: list[float], values: list[Any], unending: bool) -> None:
    rising = sorted(set(edges))
    bins = Bins(rising, open=unending or len(rising) == 1)
    # Values at and beside every edge.
    near = [
        v
        for edge in rising
        for v in (float(edge), math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf))
    ]
    floats = [None if v is None else float(v) for v in values] + near
    assert counted(pa.table({"x": pa.array(floats, from_pandas=False)}), bins) == expected(bins, floats)
    texts = [None if v is None else repr(v) for v in floats]
    assert counted(pa.table({"x": pa.array(texts, pa.string())}), bins) == expected(bins, texts)


def test_one_record_more_changes_one_count_by_one(tmp_path: Path) -> None:
    rng = random.Random(16)
    domain = Domain({"x": MANY[0], "d": DAYS})
    pool = [[x, d] for x in [*TEXTS, *map(str, NUMBERS)] for d in ("2000-02-29", "unknown", "never")]
    rows = [rng.choice(pool) for _ in range(60)]
    path = tmp_path / "x.csv"

    def vector(some: list[list[str]]) -> np.ndarray[Any, Any]:
        path.write_text("x,d\n" + "\n".join(",".join(f'"{v}"' for v in row) for row in some))
        return count_cells(path, domain, unknown="drop").vector()

    before = vector(rows)
    for _ in range(40):
        change = vector([*rows, rng.choice(pool)]) - before
        assert np.abs(change).sum() in (0, 1)
        assert change.min() >= 0


def test_rules_errors_and_measures() -> None:
    people = pa.table({"age": ["15", "x", "-3", None, "70"], "y": [1, 2, 3, 4, 5]})
    domain = Domain({"age": Bins([0, 18, 65], also=["unknown"])})
    made = count_cells(people, domain, unknown={"age": "unknown"})
    assert made.vector().tolist() == [1, 0, 1, 3]
    sums = count_measure(people, domain, Measure("y", 0, 9), unknown={"age": "unknown"})
    assert sums.sums(["age"]).tolist() == [1, 0, 5, 9]
    with pytest.raises(
        DataError,
        match=r"'-3' in 1 row, 'x' in 1 row, no value in 1 row|expected a number from 0 on, or 'unknown'",
    ):
        count_cells(people, domain)


def test_bins_are_part_of_a_policy_and_of_its_fingerprint() -> None:
    bins = Bins([0, 18, 65])
    policy = Policy(Domain({"age": bins, "sex": ["F", "M"]}))
    again = Policy.from_spec(json.loads(json.dumps(policy.to_spec())))
    assert again == policy
    assert again.fingerprint == policy.fingerprint
    labelled = Policy(Domain({"age": bins.labels, "sex": ["F", "M"]}))
    assert labelled.domain != policy.domain
    assert labelled.fingerprint != policy.fingerprint
    assert policy.domain.project(["age"]).bins("age") == bins
    dated = Domain({"d": DAYS})
    assert Domain(dated.to_spec()) == dated
    certificate = sensitivity(cuboid(policy.domain, "age"), policy)
    assert type(certificate).from_json(certificate.to_json()).verify().ok


@pytest.mark.parametrize(
    ("given_bins", "message"),
    [
        ({"bins": []}, "at least one edge"),
        ({"bins": [1], "open": False}, "two edges"),
        ({"bins": [1, 1]}, "rising order"),
        ({"bins": [0, 10**400]}, "at most 2\\^53"),
        ({"bins": [0, 18], "end": 10**400}, "at most 2\\^53"),
        ({"bins": [0, float("inf")]}, "at most 2\\^53"),
        ({"bins": [float("nan"), 1]}, "expected numbers"),
        ({"bins": [2, 1.5]}, "rising order"),
        ({"bins": [0, "2000-01-01"]}, "not both"),
        ({"bins": ["2000-02-30"]}, "not a date"),
        ({"bins": [True]}, "expected numbers"),
        ({"bins": [float("nan")]}, "expected numbers"),
        ({"bins": [2**60]}, "2\\^53"),
        ({"bins": "0-5"}, "list of edges"),
        ({"bins": [datetime.datetime(2000, 1, 1)]}, "without a time"),
        ({"bins": [0], "also": "unknown"}, "list of texts"),
        ({"bins": [0, 5], "also": ["0-4"]}, "there already"),
        ({"bins": [0], "open": 1}, "true or false"),
        ({"edges": [0]}, "expected a table"),
    ],
)
def test_wrong_bins_are_refused(given_bins: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        Domain({"x": given_bins})
    assert refusal.value.code == "domain.bins"


def test_labels_are_readable() -> None:
    assert Bins([-10, -5, 0]).labels == ("-10 to -6", "-5 to -1", "0 or more")
    assert Bins([0, 1, 2]).labels == ("0", "1", "2+")
    assert Bins(["2024-01-01", "2024-02-01", "2024-04-01"]).labels == (
        "2024-01",
        "2024-02 to 2024-03",
        "2024-04 or later",
    )
    assert Bins(["2024-01-01", "2024-01-15", "2024-01-16"], open=False).labels == (
        "2024-01-01 to 2024-01-14",
        "2024-01-15",
    )
    assert Bins([15.0, -0.0 + 20]) == Bins([15, 20])


def test_an_end_keeps_the_name_of_the_last_bin_and_refuses_what_nobody_can_be():
    ended = Bins([0, 18, 65], end=130)
    assert ended.labels == Bins([0, 18, 65]).labels
    assert ended != Bins([0, 18, 65])
    assert Bins.from_spec(ended.to_spec()) == ended
    assert ended.to_spec() == {"bins": [0, 18, 65], "end": 130}
    assert counted(pa.table({"x": [70, 129, 129.9, 130, 300]}), ended) == ([0, 0, 3], 2)
    days = Bins(["2000-01-01", "2010-01-01"], end="2025-01-01")
    assert days.labels == ("2000-2009", "2010 or later")
    assert Bins.from_spec(days.to_spec()) == days
    for wrong in ({"end": 65}, {"end": "2020-01-01"}, {"end": 130, "open": False}):
        with pytest.raises(InputError) as refusal:
            Bins([0, 18, 65], **wrong)
        assert refusal.value.code == "domain.bins"
