"""The same records on DuckDB, Spark and Postgres: the same counts, fingerprints and errors."""

from __future__ import annotations

import datetime
import itertools
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

import policygraph as pg
from policygraph.cli.app import run as main
from policygraph.curator.counting import count_cells, read_edges
from policygraph.curator.counting import tables as tables_module
from policygraph.curator.counting.engines import compiled
from policygraph.curator.counting.linked import count_linked
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.tables import count_measure
from policygraph.curator.counting.units import count_units, sum_units
from policygraph.curator.histogram import Histogram
from policygraph.curator.requests import Request
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs import PolicyGraph
from policygraph.model.measure import Measure
from tests.servers import Postgres

UTC = datetime.UTC
TEXTS = [
    *("F", "M", "f", "", " ", "low", "0", "1", "2", "01", " 1 ", "+1", "-1", "1.0", "2.", ".5", "0.25", "0.5", "1e0", "25e-2", "1e400", "-1e400"),
    *("1e-400", "2.4703282292062327e-324", "NULL", "nan", "NaN", "inf", "-Infinity", "true", "False", "TRUE", "it's", '"', "\\", "\\n", "%", "a|b"),
    *("a\tb", "line\nbreak", "1\n", "1_0", "0x1", "1d", "é", "e\u0301", "日本語", "🙂", "\ufeff", "9" * 25, "0" * 30 + "7", "1" * 400, "-9223372036854775808"),
    *("9223372036854775808", "2024-01-31", "straße", "STRASSE", "x" * 1200, "1" + "0" * 1200, "F ", "F\t", "\u00a0F", "-0", "-0.0", "${env:HOME}", "$", "İ", "\u212a"),
]  # fmt: skip
DAYS = [
    datetime.date(2024, 1, 31),
    datetime.date(1, 1, 1),
    datetime.date(9999, 12, 31),
    datetime.date(1969, 7, 20),
]
TIMES = [
    datetime.datetime(2024, 1, 31, 10, 0, 0, 120000),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(2024, 3, 31, 2, 30),
    datetime.datetime(1, 1, 1),
]
FLOATS = [
    *(0.0, -0.0, 1.0, 0.5, 0.25, 0.1, 1.5, 2.0, -1.0, 1e15, 123456789012345.6, 1234567890123456.5, 1e16, 1e22, 1e-5, 0.0001, 9.3e18, -9.223372036854775808e18),
    *(float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308, 2.0**53, 1 / 3),
]  # fmt: skip
# For each kind of column: its Arrow type, its type in Postgres, and values.
KINDS: dict[str, tuple[pa.DataType, str, list[Any]]] = {
    "text": (pa.string(), "text", TEXTS),
    "word": (pa.string(), "varchar(2000)", ["F", "M", "low", "7", "true", "2024-01-31 10:00:00.12"]),
    "whole": (pa.int64(), "bigint", [*range(-2, 9), 2**40, 2**63 - 1, -(2**63)]),
    "small": (pa.int16(), "smallint", [*range(-1, 4), 300]),
    "double": (pa.float64(), "double precision", FLOATS),
    "float": (pa.float32(), "real", [0.0, 0.5, 0.1, 3447058.5, 16777216.0, float("nan"), float("inf"), 1e-40]),
    "decimal": (pa.decimal128(12, 3), "numeric(12, 3)", [Decimal(x) for x in ("0.000", "1.000", "0.500", "0.100", "-1.000", "123456789.125", "7.000")]),
    "long": (pa.decimal128(38, 10), "numeric(38, 10)", [Decimal(x) for x in ("0.1000000000", "9007199254740993.0000000000", "12345678901234567890.5000000000", "-0.5000000000", "7.0000000000", "0.3333333333")]),
    "truth": (pa.bool_(), "boolean", [True, False]),
    "day": (pa.date32(), "date", DAYS),
    "moment": (pa.timestamp("us"), "timestamp", TIMES),
    "instant": (pa.timestamp("us", tz="UTC"), "timestamptz", [time.replace(tzinfo=UTC) for time in TIMES]),
}  # fmt: skip
NUMBERS = itertools.count()
LABELS: list[Any] = [
    3,
    300,
    [0, 1, 5, 2**40],
    [-1, 0, 1, 2],
    ["0", "1", "1.0", "true", "it's", ""],
    ["F", "M", "low", "a|b", "\\", "é", "line\nbreak", "x" * 1200],
    ["F", "F ", "f", "${env:HOME}", "STRASSE", "İ", "\u00a0F", "-0"],
    [7, 2**63 - 1, -(2**63), "9223372036854775808"],
    [-0.0, 1.5, 1 / 3, 9007199254740993],
    [False, True],
    [0.1, 0.25, 0.5, 1.0, 1e22],
    [0.5, 1.5, 7.0, 3447058.5, 123456789.125, 1234567890123456.5],
    ["low", 1, 0.25, ""],
    ["2024-01-31", "0001-01-01", "1969-07-20"],
    ["2024-01-31 10:00:00.12", "1969-12-31 23:59:59.999999", "2024-03-31 02:30:00+00", "0001-01-01 00:00:00"],
    [f"label {at}" for at in range(40)] + ["F", "7"],
    {"bins": [0, 1, 2]},
    {"bins": [-1, 0, 0.1, 0.25, 1, 3447058.5], "also": ["low", "-1e400"]},
    {"bins": [0, 0.1, 2**53], "open": False},
    {"bins": ["0001-01-01", "1969-12-31", "2024-01-31", "2024-02-01"], "open": False, "also": ["1"]},
]


def make_table(rng: random.Random, rows: int) -> tuple[pa.Table, list[str]]:
    """A table with a column of each kind, in any order, some without values; and their kinds."""
    kinds = rng.sample(list(KINDS), len(KINDS))
    columns = {}
    for kind in kinds:
        made, _, values = KINDS[kind]
        some = rng.sample(values, min(len(values), rng.choice([3, 8, 60])))
        given = [None if rng.random() < 0.1 else rng.choice(some) for _ in range(rows)]
        columns[f'{kind} "x"' if kind == "word" else kind] = pa.array(given, made)
    return pa.table(columns), kinds


def load(server: Postgres, name: str, table: pa.Table, types: list[str]) -> str:
    """Put a table into Postgres, under a name of its own for each call; return its address."""
    name = f"{name} {next(NUMBERS)}"
    listed = ", ".join(
        f'"{column.replace(chr(34), chr(34) * 2)}" {kind}'
        for column, kind in zip(table.column_names, types, strict=True)
    )
    with server.connect() as connection:
        connection.execute(f'CREATE TABLE "{name}" ({listed})')
        with connection.cursor() as cursor, cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
    return server.address(name)


def framed(spark: Any, table: pa.Table) -> Any:
    """A table as a frame of Spark, which takes times without a zone for times with one."""
    made = spark.createDataFrame(table)
    return made.selectExpr(
        *(f"CAST(`{x}` AS TIMESTAMP_NTZ) AS `{x}`" if x == "moment" else f"`{x}`" for x in made.columns)
    )


def named(address: str) -> str:
    """Quoted name of the table behind an address."""
    return '"' + unquote(urlsplit(address).path.rpartition("/")[2]) + '"'


def outcome(count: Callable[[], Any]) -> tuple[Any, ...]:
    """Counts, or the error, without the name of the source in it."""
    try:
        made = count()
    except (DataError, InputError) as error:
        return error.code, str(error).partition(": ")[2] or str(error), repr(error.details.get("problems"))
    if isinstance(made, tuple):
        return tuple(
            outcome(lambda part=part: part)[:4] if isinstance(part, Histogram) else part for part in made
        )
    if isinstance(made, Histogram):
        return made.sparse()[0].tolist(), made.sparse()[1].tolist(), made.rows, made.dropped, made.fingerprint
    return (
        made.vector().tolist(),
        made.sums(made.domain.names).tolist(),
        made.counts.dropped,
        made.fingerprint,
    )


def make_policy(rng: random.Random, table: pa.Table) -> dict[str, Any]:
    """A domain over some columns, and a rule for what does not fit."""
    chosen = rng.sample(table.column_names, rng.choice([1, 1, 2, 3]))
    domain = Domain({f"a{at}": rng.choice(LABELS) for at in range(len(chosen))})
    rule: Any = rng.choice(["error", "drop", "drop", "other"])
    if rule == "other":
        rule = {name: rng.choice(list(domain.labels(name)[:3])) for name in domain.names[:1]}
    return {"domain": domain, "unknown": rule, "columns": dict(zip(domain.names, chosen, strict=True))}


ODD_SETTINGS = {
    "spark.sql.ansi.enabled": ["true", "false"],
    "spark.sql.parser.escapedStringLiterals": ["true", "false"],
    "spark.sql.session.timeZone": ["UTC", "Asia/Tokyo", "America/New_York"],
    "spark.sql.caseSensitive": ["true", "false"],
}
"""Settings of a session of Spark that must not matter."""


def make_request(rng: random.Random, table: pa.Table, met: set[str]) -> Callable[[Any], Any]:
    """How one of many requests reads a source: counts of cells, sums of a measure, or edges."""
    policy = make_policy(rng, table)
    what = rng.choice(["cells"] * 5 + ["request"] * 2 + ["measure"] * 2 + ["edges"])
    if what == "edges":
        nodes: Any = rng.choice(
            [5, ["F", "M", "low", "7", "é", "true"], [0.5, 1, 7], [f"n{at}" for at in range(20)] + ["7"]]
        )
        network = Network(nodes, directed=rng.random() < 0.5)
        ends = rng.sample(table.column_names, 2)
        rules: dict[str, Any] = rng.choice([{}, {"loops": "drop", "duplicates": "merge"}])
        met.update({"edges", "directed" if network.directed else "undirected"})
        return partial(
            read_edges, network=network, columns=ends, unknown=rng.choice(["drop", "error"]), **rules
        )
    rule = policy["unknown"]
    met.update([what, "other" if isinstance(rule, dict) else rule])
    met.update("bins" for name in policy["domain"].names if policy["domain"].bins(name) is not None)
    met.update(f"column of {name.partition(' ')[0]}" for name in policy["columns"].values())
    met.update(
        f"label {label!r:.30}"
        for name in policy["domain"].names
        for label in list(policy["domain"].labels(name))[:8]
    )
    if what == "cells":
        return partial(count_cells, **policy, name="one")
    if what == "request":
        return make_whole_request(rng, policy, met)
    column = rng.choice(table.column_names)
    # Beyond 2^53 only whole numbers are summed.
    low, high, unit = rng.choice(
        [(0, 9, 1), (-2, 100, 1), (0, 10, "0.1"), (-(2**54), 2**54, 2**40), (-1, 1, "1/8")]
    )
    measure = Measure(column, low, high, unit=unit, missing=rng.choice(["drop", 0, "error"]))
    return partial(count_measure, **policy, measure=measure, name="one")


def make_whole_request(
    rng: random.Random, policy: dict[str, Any], met: set[str]
) -> Callable[[Any], tuple[Histogram, str, str | None]]:
    """A request as the ledger sees it, with a policy graph or families: what it is known by, whose budget it spends, and the counts."""
    domain = policy["domain"]
    graph = PolicyGraph.line(domain) if len(domain.names) == 1 and rng.random() < 0.5 else None
    records = pg.Policy(domain, graph, unknown=policy["unknown"])
    size = rng.choice([None, 2, 10])
    made: Any = records if size is None else pg.Families(records, size)
    met.update(["graph"] if graph is not None else [])
    met.update(["families"] if size is not None else [])

    def asked(source: Any) -> tuple[Histogram, str, str | None]:
        request = Request.of(pg.queries.identity(domain), made, source, epsilon=1, columns=policy["columns"])
        known = request.identify()
        counts = request.count(known)
        known.check(counts)
        assert isinstance(counts, Histogram)
        return counts, known.account, request.fingerprint(known, pg.SeededRng(1))

    return asked


SEEN = {
    *("cells", "request", "families", "graph", "bins", "measure", "edges", "directed", "undirected", "error", "drop", "other", "no value", "label -0.0", "label 'F '", "label '${env:HOME}'"),
    *("label 9223372036854775807", "label 'İ'", "label True", "counts", "data.unknown-value", "data.edges"),
    *(f"column of {kind}" for kind in KINDS),
}  # fmt: skip
"""What the generated policies and tables must have among them."""


@pytest.mark.slow(recorded=True)
def test_200_policies_are_counted_alike(postgres_server: Postgres, spark: Any) -> None:
    rng = random.Random(15)
    met: set[str] = set()
    before = {name: spark.conf.get(name) for name in ODD_SETTINGS}
    for number in range(20):
        table, kinds = make_table(rng, rng.choice([0, 5, 40]))
        address = load(postgres_server, f"table{number}", table, [KINDS[kind][1] for kind in kinds])
        frame = framed(spark, table).coalesce(1).cache()
        met.update(["no value"] if any(column.null_count for column in table.columns) else [])
        for name, values in ODD_SETTINGS.items():
            spark.conf.set(name, rng.choice(values))
        sources = [open_source(given) for given in (table, address, frame)]
        for _ in range(10):
            request = make_request(rng, table, met)
            found = [outcome(partial(request, source)) for source in sources]
            assert found[0] == found[1] == found[2], request
            met.add(found[0][0] if isinstance(found[0][0], str) else "counts")
        frame.unpersist()
    for name, value in before.items():
        spark.conf.set(name, value)
    assert met >= SEEN, sorted(SEEN - met)


def test_fingerprints_are_the_same(postgres_server: Postgres, spark: Any) -> None:
    rng = random.Random(7)
    for number in range(3):
        table, kinds = make_table(rng, (0, 30, 200)[number])
        address = load(postgres_server, "told_apart", table, [KINDS[kind][1] for kind in kinds])
        found = {open_source(given).fingerprint() for given in (table, address, framed(spark, table))}
        assert len(found) == 1
        details = [open_source(given).details() for given in (table, address, framed(spark, table))]
        assert details[0] == details[1] == details[2]


def test_doubles_are_printed_alike(postgres_server: Postgres) -> None:
    rng = random.Random(3)
    bits = np.frombuffer(rng.randbytes(8 * 3000), dtype=np.float64)
    # From 10^16 on Postgres may write one digit more, where the shortest numeral lies exactly between two floats.
    values = [
        *(x for x in bits.tolist() if not 1e16 <= abs(x) < 1e40),
        *(rng.uniform(-1, 1) * 10.0 ** rng.randint(-8, 16) for _ in range(3000)),
        *FLOATS,
    ]
    table = pa.table({"x": pa.array(values)})
    source = open_source(load(postgres_server, "doubles", table, ["double precision"]))
    text = source.engine.dialect.text("c0", "DOUBLE")
    printed = [text for (text,) in source.rows_of(f"SELECT {text} AS t FROM policygraph_source")]
    assert printed == [repr(x) for x in values]


MEASURES = [
    Measure("m", 0, 9),
    Measure("m", -2, 100, missing="drop"),
    Measure("m", 0, 10, unit="0.1", missing=0),
    Measure("m", -1000, 2**32, unit=8, missing="drop"),
]


def test_measures_are_summed_alike(postgres_server: Postgres, spark: Any) -> None:
    rng = random.Random(8)
    domain = Domain({"g": ["F", "M"]})
    found = set()
    for at, kind in enumerate(["text", "whole", "double", "float", "decimal", "truth"]):
        made, own, values = KINDS[kind]
        rows = 25
        columns = {
            "g": pa.array([rng.choice(["F", "M", "F", None]) for _ in range(rows)]),
            "m": pa.array([None if rng.random() < 0.1 else rng.choice(values) for _ in range(rows)], made),
        }
        table = pa.table(columns)
        address = load(postgres_server, "measured", table, ["text", own])
        sources = [open_source(given) for given in (table, address, framed(spark, table))]
        for measure in MEASURES if at < 3 else MEASURES[1:3]:
            how: dict[str, Any] = {"measure": measure, "unknown": "drop", "name": "m"}
            results = [outcome(partial(count_measure, one, domain, **how)) for one in sources]
            assert results[0] == results[1] == results[2], (kind, measure)
            found.add(results[0][0] if isinstance(results[0][0], str) else "sums")
    assert found >= {"sums", "measure.no-value"}


def test_decimals_keep_their_last_digit_and_nan_has_no_sign(postgres_server: Postgres, spark: Any) -> None:
    """A decimal and its floor may need a digit more than an engine keeps; what processors compute that is not a number has a sign."""
    domain = Domain({"x": [0, 1, 7, -1, 2**63 - 1, "0.1"]})
    meant = [Decimal(label) for label in domain.labels("x")]
    for digits, places in ((38, 38), (38, 10)):
        with localcontext(prec=100):
            unit = Decimal(1).scaleb(-places)
            most = Decimal(10) ** (digits - places) - unit
            near = [(base + steps * unit).quantize(unit) for base in meant for steps in (-5, -1, 0, 1, 4)]
            values = [value for value in (*near, most, -most) if abs(value) <= most]
        table = pa.table({"x": pa.array(values, pa.decimal128(digits, places))})
        address = load(postgres_server, "edge", table, [f"numeric({digits}, {places})"])
        sources = [open_source(given) for given in (table, address, framed(spark, table))]
        found = [
            (one.fingerprint(), outcome(partial(count_cells, one, domain, unknown="drop", name="x")))
            for one in sources
        ]
        assert found[0] == found[1] == found[2], (digits, places)
        # What is not whole is compared as the nearest double.
        expected = [sum(value == label for value in values) for label in meant[:-1]]
        expected.append(sum(float(value) == 0.1 for value in values))
        assert count_cells(sources[0], domain, unknown="drop").vector().tolist() == expected
    signs = np.copysign(np.full(4, np.nan), [-1, 1, -1, 1])
    table = pa.table({"x": pa.array(signs, pa.float64()), "y": pa.array(signs, pa.float32())})
    address = load(postgres_server, "signs", table, ["double precision", "real"])
    sources = [open_source(given) for given in (table, address, framed(spark, table))]
    assert len({one.fingerprint() for one in sources}) == 1
    said = {outcome(partial(count_cells, one, Domain({"x": 3}))) for one in sources}
    assert len(said) == 1
    assert "('nan', 4)" in str(said)


def test_edges_are_counted_alike(postgres_server: Postgres, spark: Any) -> None:
    rng = random.Random(9)
    nodes = ["a", "b", "é", "7", "A"]
    for number in range(4):
        network = Network(nodes if number % 2 else 4, directed=number > 1)
        names: list[Any] = [*nodes, "stranger"] if number % 2 else list(range(5))
        table = pa.table({end: [rng.choice(names) for _ in range(12)] for end in ("from", "to")})
        address = load(postgres_server, "edges", table, ["text" if number % 2 else "bigint"] * 2)
        frame = framed(spark, table)
        for rules in ({}, {"unknown": "drop", "loops": "drop", "duplicates": "merge"}):
            found = [outcome(partial(read_edges, data, network, **rules)) for data in (table, address, frame)]
            assert found[0] == found[1] == found[2]


def test_large_domains_are_counted_by_the_engine(
    postgres_server: Postgres, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but counts leaves: no statement selects a row for each record."""
    monkeypatch.setattr(tables_module, "DENSE", 10)
    table = pa.table({"sex": ["F", "M", "F", "x"], "age": [0, 2, 0, 1]})
    domain = Domain({"sex": ["F", "M"], "age": 9})
    address = load(postgres_server, "large", table, ["text", "integer"])
    for data in (table, address, framed(spark, table)):
        counts = count_cells(data, domain, unknown="drop")
        assert (counts.rows, counts.dropped) == (3, 1)
        assert [part.tolist() for part in counts._read(domain, [("sex",), ("age",)])] == [
            [2, 1],
            [2, 0, 1, 0, 0, 0, 0, 0, 0],
        ]
        cells, many = counts.filled(["sex", "age"])
        assert sorted(zip(map(tuple, cells.tolist()), many.tolist(), strict=True)) == [
            ((0, 0), 2),
            ((1, 2), 1),
        ]


# -- Postgres

PEOPLE = pa.table({"sex": ["F", "M", "F"], "age": [0, 2, 0]})
DOMAIN = Domain({"sex": ["F", "M"], "age": 3})


def refused(data: Any, domain: Domain = DOMAIN, **how: Any) -> DataError | InputError:
    with pytest.raises((DataError, InputError)) as caught:
        count_cells(data, domain, **how)
    assert "secret" not in f"{caught.value} {caught.value.details}"
    return caught.value


def test_only_base_tables_are_read(postgres_server: Postgres) -> None:
    with postgres_server.connect() as connection:
        for line in (
            "CREATE TABLE people (sex text, age int)",
            "CREATE VIEW seen AS SELECT * FROM people",
            "CREATE MATERIALIZED VIEW kept AS SELECT * FROM people",
            "CREATE SEQUENCE numbers",
            "CREATE TABLE children () INHERITS (people)",
            "CREATE TABLE whole (sex text, age int) PARTITION BY LIST (sex)",
            "CREATE TABLE part_f PARTITION OF whole FOR VALUES IN ('F')",
            "CREATE TABLE part_m PARTITION OF whole FOR VALUES IN ('M')",
            "INSERT INTO whole VALUES ('F', 0), ('M', 2), ('F', 0)",
            "CREATE FOREIGN DATA WRAPPER nothing",
            "CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing",
            "CREATE FOREIGN TABLE far (sex text, age int) SERVER elsewhere",
            "CREATE TABLE mixed (sex text, age int) PARTITION BY LIST (sex)",
            "CREATE FOREIGN TABLE far_part PARTITION OF mixed FOR VALUES IN ('F') SERVER elsewhere",
            "CREATE TABLE hidden (sex text, age int)",
            "ALTER TABLE hidden ENABLE ROW LEVEL SECURITY",
            "CREATE ROLE reader LOGIN",
            "GRANT SELECT ON hidden TO reader",
            "CREATE SCHEMA other",
            "CREATE TABLE other.people AS SELECT * FROM whole",
        ):
            connection.execute(line)
    codes = {
        "seen": "data.view", "kept": "data.view", "numbers": "engine.table", "people": "engine.table", "far": "engine.table",
        "mixed": "engine.table", "nothing here": "data.unreadable", "empty.people": "data.unreadable",
    }  # fmt: skip
    assert {name: refused(postgres_server.address(name)).code for name in codes} == codes
    assert refused(postgres_server.address("hidden", user="reader")).code == "engine.table"
    assert "permission denied" in str(refused(postgres_server.address("whole", user="reader")))
    assert "It has no table" in str(refused(postgres_server.address("empty.people")))
    for name in ("whole", "other.people"):
        assert count_cells(postgres_server.address(name), DOMAIN).vector().tolist() == [2, 0, 0, 0, 0, 1]


def test_equality_is_that_of_texts_whatever_the_collation(postgres_server: Postgres) -> None:
    with postgres_server.connect() as connection:
        for line in (
            "CREATE COLLATION IF NOT EXISTS careless (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            "CREATE DOMAIN short AS varchar(9)",
            "CREATE TYPE colour AS ENUM ('red', 'Red')",
            "CREATE TABLE words (a text COLLATE careless, b char(5), c short, d colour, e text[], f numeric, g date, h timestamp)",
            "INSERT INTO words VALUES ('F', 'F', 'F', 'red', ARRAY['F'], 1.50, '0044-03-15 BC', '0044-03-15 10:00 BC'),"
            " ('f', 'f ', 'F ', 'Red', NULL, 'NaN', '10000-01-01', '2024-01-01 00:00:00.5'), ('É', NULL, 'f', 'red', '{}', 'Infinity', 'infinity', NULL)",
        ):
            connection.execute(line)
    address = postgres_server.address("words")
    expected = {
        "a": (["F", "f", "É"], [1, 1, 1]),
        "b": (["F", "f"], [1, 1]),
        "c": (["F", "F ", "f"], [1, 1, 1]),
        "d": (["red", "Red"], [2, 1]),
        "f": ([1.5], [1]),
        "g": (["0044-03-15 (BC)", "10000-01-01", "infinity"], [1, 1, 1]),
        "h": (["0044-03-15 (BC) 10:00:00", "2024-01-01 00:00:00.5"], [1, 1]),
    }
    for name, (labels, counts) in expected.items():
        assert count_cells(address, Domain({name: labels}), unknown="drop").vector().tolist() == counts, name
    assert refused(address, Domain({"e": ["F"]})).code == "engine.type"
    with pytest.raises(DataError, match="text\\[\\]"):
        count_measure(address, Domain({"a": ["F"]}), Measure("e", 0, 1), unknown="drop")


def test_one_snapshot_from_the_first_look_to_the_last(postgres_server: Postgres) -> None:
    address = load(postgres_server, "moving", PEOPLE, ["text", "integer"])
    source = open_source(address)
    before = source.fingerprint()
    with postgres_server.connect() as connection:
        connection.execute(f"INSERT INTO {named(address)} VALUES ('F', 1)")
    counts = count_cells(source, DOMAIN)
    assert (counts.rows, counts.fingerprint) == (3, before)
    assert count_cells(address, DOMAIN).rows == 4


def test_settings_of_the_role_change_nothing(postgres_server: Postgres) -> None:
    table = pa.table({"x": [0.1, 1e15, None], "t": pa.array([TIMES[0], None, TIMES[1]], pa.timestamp("us"))})
    address = load(postgres_server, "settled", table, ["double precision", "timestamp"])
    with postgres_server.connect() as connection:
        connection.execute("CREATE ROLE odd LOGIN SUPERUSER")
        for setting in (
            "extra_float_digits = -10",
            "datestyle = 'German'",
            "timezone = 'Asia/Tokyo'",
            "search_path = other",
        ):
            connection.execute(f"ALTER ROLE odd SET {setting}")
    odd = address.replace("admin@", "odd@")
    assert (
        open_source(odd).fingerprint()
        == open_source(address).fingerprint()
        == open_source(table).fingerprint()
    )


def test_a_server_that_refuses_is_one_sentence_without_the_password(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    with postgres_server.connect() as connection:
        connection.execute("CREATE TABLE kept_in AS SELECT 'F' AS sex, 0 AS age")
        connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
        connection.execute("GRANT SELECT ON kept_in TO locked")
    wrong = postgres_server.address("kept_in", user="locked", password="secret")
    assert refused(wrong).code == "engine.refused"
    right = postgres_server.address("kept_in", user="locked", password="right")
    assert count_cells(right, DOMAIN).rows == 1
    assert refused(f"postgresql://me:secret@/db/t?host={tmp_path}").code == "engine.refused"
    assert refused("postgresql://me:secret@host/db/t?sslmode=secret").code == "engine.refused"
    for address in (
        "postgresql://me:secret@host/t",
        "postgresql://me:secret@host:x/db/t",
        "postgres://h/db/t?dbname=secret",
    ):
        assert refused(address).code == "data.address"
    assert refused(pg.Files(right, delimiter=";")).code == "data.options"
    with postgres_server.connect() as connection:
        connection.execute("CREATE DATABASE latin ENCODING latin1 LOCALE 'C' TEMPLATE template0")
    with postgres_server.connect(dbname="latin") as connection:
        connection.execute("CREATE TABLE people (sex text, age int)")
    assert "LATIN1" in str(refused(postgres_server.address("people", database="latin")))


def test_a_server_that_goes_away_is_an_error(postgres_server: Postgres) -> None:
    source = open_source(load(postgres_server, "going", PEOPLE, ["text", "integer"]))
    with postgres_server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND query LIKE '%%typbasetype%%'"
        )
    assert refused(source).code == "data.unreadable"


POLICY = """
[domain]
sex = ["F", "M"]
age = 3

[[release]]
cuboid = ["sex", "age"]
"""


def policy_file(folder: Path, text: str = POLICY) -> str:
    path = folder / "policy.toml"
    path.write_text(text)
    return str(path)


def test_a_release_of_postgres_is_the_same_request_as_of_the_frame(
    postgres_server: Postgres, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address = load(postgres_server, "released", PEOPLE, ["text", "integer"])
    file, ledger = policy_file(tmp_path), str(tmp_path / "budget.db")
    words = ["release", file, "--epsilon", "1", "--ledger", ledger, "--engine", "postgres"]
    assert main([*words, "--data", address, "--out", str(tmp_path / "one")]) == 0
    assert main([*words, "--data", address, "--out", str(tmp_path / "two")]) == 0
    assert "nothing was spent" in capfd.readouterr().out
    assert main([*words, "--data", address + "x", "--out", str(tmp_path / "three")]) == 2
    assert main([*words, "--data", "people.csv", "--out", str(tmp_path / "three")]) == 2
    assert main(["budget", "show", ledger]) == 0
    out, err = capfd.readouterr()
    assert "epsilon = 1" in out
    assert "Traceback" not in err
    assert main(["budget", "set", ledger, address, "--epsilon", "3"]) == 0


# -- Spark


def test_parquet_files_are_counted_by_spark(spark: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "sex": ["F", "M", "F", None],
            "age": pa.array([0, 2, 0, 1], pa.uint32()),
            "Age": ["a", "b", "c", "d"],
        }
    )
    table = table.select(["sex", "age"])
    for number in range(2):
        pq.write_table(table.slice(2 * number, 2), tmp_path / f"part {number}.parquet")
    data = str(tmp_path / "*.parquet")
    one, other = (count_cells(data, DOMAIN, unknown="drop", engine=engine) for engine in ("duckdb", spark))
    assert one.vector().tolist() == other.vector().tolist() == [2, 0, 0, 0, 0, 1]
    assert (one.fingerprint, one.rows, one.dropped) == (other.fingerprint, other.rows, other.dropped)
    assert open_source(data, spark).records == 4, "of the footers, not of what Spark reads"
    away = count_cells(f"file+x://{tmp_path}".replace("file+x", "FILE"), DOMAIN, unknown="drop", engine=spark)
    assert away.rows == 3


def test_a_session_that_is_started_here_has_its_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the builder of PySpark is told; nothing is started."""
    from policygraph.curator.counting.engines.spark import LOCAL, local_session

    session = pytest.importorskip("pyspark.sql").SparkSession
    monkeypatch.setattr(session, "getActiveSession", classmethod(lambda cls: None))
    monkeypatch.setattr(session.Builder, "getOrCreate", lambda builder: dict(builder._options))
    told = local_session()
    assert LOCAL.items() <= told.items()
    assert told.keys() - LOCAL.keys() == {"spark.driver.memory"}
    assert 64 < int(told["spark.driver.memory"].removesuffix("m")) <= 6 * 1024


def test_a_busy_machine_has_time_to_answer_itself(spark: Any) -> None:
    """Java reads the setting, and PySpark tells it to every process that connects to it."""
    assert os.environ["SPARK_AUTH_SOCKET_TIMEOUT"] == "600"


def test_what_spark_would_guess_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("sex,age\nF,0\n")
    pq.write_table(PEOPLE, tmp_path / "_hidden.parquet")
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    pq.write_table(PEOPLE.set_column(1, "age", pa.array(["0", "1", "2"])), tmp_path / "b.parquet")
    for data, code in (
        (str(tmp_path / "people.csv"), "engine.data"),
        (str(tmp_path / "_hidden.parquet"), "engine.data"),
        ([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")], "engine.data"),
        (pg.Files(str(tmp_path / "a.parquet"), hive=True), "engine.data"),
        ("nowhere://bucket/people.csv", "engine.data"),
        ("nowhere://bucket/people.parquet", "data.unreadable"),
        (PEOPLE, "engine.data"),
        (str(tmp_path / "none.parquet"), "data.no-file"),
    ):
        assert refused(data, engine="spark").code == code, data
    frame = spark.createDataFrame(PEOPLE)
    assert refused(frame, engine="duckdb").code == "engine.data"
    assert refused(frame, engine="postgres").code == "engine.data"
    assert refused("postgresql://host/db/t", engine="duckdb").code == "engine.data"
    assert refused(PEOPLE, engine="oracle").code == "engine.name"
    assert refused(PEOPLE, engine=7).code == "engine.name"
    nested = pa.table({"sex": [["F"], ["M"]], "age": [0, 1], "raw": pa.array([b"a", b"b"])})
    assert refused(spark.createDataFrame(nested)).code == "engine.type"
    assert (
        open_source(spark.createDataFrame(nested)).fingerprint()
        == open_source(spark.createDataFrame(nested)).fingerprint()
    )
    broken = spark.createDataFrame(PEOPLE).selectExpr("sex", "age", "raise_error('no such record') AS wrong")
    assert refused(broken, Domain({"sex": ["F", "M"]})).code == "data.unreadable"


def test_spark_reads_times_whatever_the_zone_of_the_session(spark: Any) -> None:
    days = [datetime.date(2024, 1, 31), None]
    table = pa.table(
        {"t": pa.array([time.replace(tzinfo=UTC) for time in TIMES], pa.timestamp("us", tz="UTC"))}
    )
    domain = Domain(
        {
            "t": [
                "2024-01-31 10:00:00.12+00",
                "1969-12-31 23:59:59.999999+00",
                "2024-03-31 02:30:00+00",
                "0001-01-01 00:00:00+00",
            ]
        }
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        assert count_cells(framed(spark, table), domain).vector().tolist() == [1, 1, 1, 1]
        frame = spark.sql(
            "SELECT explode(array(DATE '-0043-03-15', DATE '+10000-01-01', DATE '2024-01-31')) AS d"
        )
        labels = ["0044-03-15 (BC)", "10000-01-01", "2024-01-31"]
        assert count_cells(frame, Domain({"d": labels})).vector().tolist() == [1, 1, 1]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert (
        count_cells(
            spark.createDataFrame(pa.table({"d": days})), Domain({"d": ["2024-01-31"]}), unknown="drop"
        ).rows
        == 1
    )
    careless = spark.sql("SELECT collate(s, 'UTF8_LCASE') AS s FROM VALUES ('F'), ('f'), ('F') AS t(s)")
    assert count_cells(careless, Domain({"s": ["F", "f"]})).vector().tolist() == [2, 1]


def watched(source: Any) -> list[str]:
    """The statements that a source answers from now on."""
    asked: list[str] = []
    engine = source.engine
    for name in ("batches", "rows"):
        real = getattr(engine, name)

        def keep(statement: str, real: Any = real) -> Any:
            asked.append(statement)
            return real(statement)

        object.__setattr__(engine, name, keep)
    return asked


def shuffled(made: Any) -> int:
    """How many rows an answered statement of Spark moved between workers."""
    plan, total = [made._jdf.queryExecution().executedPlan()], 0
    while plan:
        node = plan.pop()
        if node.nodeName() == "Exchange":
            total += node.metrics().apply("shuffleRecordsWritten").value()
        plan.extend(node.children().apply(at) for at in range(node.children().size()))
    return total


def test_spark_counts_in_two_steps_and_collects_no_record(spark: Any) -> None:
    """One cell has nearly all records: each task hands on one row of it, however many it has."""
    frame = spark.range(0, 5000, 1, 4).selectExpr(
        "CAST(id % 2 AS INT) AS a", "CAST(CASE WHEN id < 4990 THEN 0 ELSE id % 7 END AS INT) AS b"
    )
    source = open_source(frame)
    asked: list[Any] = []
    moved: list[int] = []
    engine: Any = source.engine
    real = engine._asked

    def keep(statement: str) -> Any:
        made = real(statement)
        asked.append(made)
        return made

    engine._asked = keep
    counts = count_cells(source, Domain({"a": 2, "b": 7}), name="n")
    assert counts.rows == 5000
    assert int(counts.vector().max()) > 2490
    for made in asked:
        moved.append(shuffled(made))
        assert len(made.collect()) <= 14
    # Two cells are in each of the four tasks, and the last one has up to ten more; the other statement counts all records.
    assert 0 < max(moved) <= 4 * 2 + 10


def test_settings_of_a_session_change_nothing(spark: Any) -> None:
    """Labels that Spark would take for variables or escapes; a char(n); names that differ in case; and nothing is left in the session."""
    odd = ["${env:HOME}", "${x}", "\\", "\\\\", "it''s", "--x", "?", ":a", "{{a}}"]
    views = spark.catalog.listTables()
    before = {name: spark.conf.get(name) for name in ODD_SETTINGS}
    try:
        for escaped in ("true", "false"):
            spark.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
            spark.conf.set("spark.sql.ansi.enabled", escaped)
            frame = spark.createDataFrame(pa.table({"s": [*odd, "7", " 7 "]}))
            assert count_cells(frame, Domain({"s": [*odd, 7]})).vector().tolist() == [1] * len(odd) + [2]
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    padded = spark.createDataFrame(pa.table({"s": ["F   ", "M   "]}))
    padded = padded.select(padded.s.alias("s", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}))
    assert count_cells(padded, Domain({"s": ["F", "M"]})).vector().tolist() == [1, 1]
    assert spark.catalog.listTables() == views
    assert spark.conf.get("spark.sql.caseSensitive") == before["spark.sql.caseSensitive"]


def test_names_of_folders_and_columns_are_read_as_duckdb_reads_them(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "sex=M"
    folder.mkdir()
    pq.write_table(PEOPLE.append_column("Sex", pa.array(["x", "y", "z"])), folder / "a.parquet")
    for data, engine in (
        (str(folder / "a.parquet"), "duckdb"),
        (str(folder / "a.parquet"), spark),
        (f"FILE://{tmp_path}", spark),
    ):
        assert count_cells(data, DOMAIN, engine=engine).vector().tolist() == [2, 0, 0, 0, 0, 1]
    bare = tmp_path / "bare" / "age=01"
    bare.mkdir(parents=True)
    pq.write_table(pa.table({"sex": ["F"]}), bare / "a.parquet")
    assert (
        refused(f"FILE://{bare.parent}", Domain({"age": ["1", "01"]}), engine=spark).code
        == "data.missing-column"
    )


def test_texts_of_duckdb_are_equal_byte_by_byte(tmp_path: Path) -> None:
    """A collation would merge records into one value, and which one would depend on the others."""
    import duckdb

    path = tmp_path / "people.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (s VARCHAR COLLATE NOCASE, age INTEGER)")
        connection.execute("INSERT INTO people VALUES ('f', 0), ('F', 0), ('F', 1), ('g', 1)")
        domain = Domain({"s": ["F", "f"]})
        for data in ((connection, "SELECT * FROM people;"), connection.sql("SELECT * FROM people")):
            assert count_cells(data, domain, unknown="drop").vector().tolist() == [2, 1]
            assert count_cells(data, Domain({"s": ["F"]}), unknown="drop").vector().tolist() == [2]
        connection.execute("SET default_collation = 'nocase'")
        for data in ((connection, "SELECT * FROM people"), connection.sql("SELECT * FROM people")):
            assert refused(data, domain).code == "data.collation"
    assert count_cells(f"duckdb://{path}?table=people", domain, unknown="drop").vector().tolist() == [2, 1]
    with duckdb.connect() as connection:
        assert refused((connection, "SELECT * FROM nothing"), domain).code == "data.unreadable"


@pytest.mark.parametrize("unknown", ["error", "drop"])
def test_cuboids_of_a_huge_domain_are_counted_in_one_statement(
    postgres_server: Postgres, spark: Any, unknown: str
) -> None:
    """10^15 cells in the base, which no engine ever counts."""
    domain = Domain({f"a{at}": 1000 if at else [f"v{label}" for label in range(1000)] for at in range(5)})
    rng = random.Random(2)
    columns = {name: [rng.randrange(1000) for _ in range(60)] for name in domain.names}
    texts = [f"v{value}" for value in columns["a0"]]
    if unknown == "drop":
        columns["a3"][7] = 1000
        texts[9] = "v1000"
    table = pa.table({**columns, "a0": texts})
    address = load(postgres_server, "huge", table, ["text", *["integer"] * 4])
    sets = [("a0",), ("a1", "a2"), ("a0", "a3"), ("a4",), ()]
    found = []
    for data in (table, address, framed(spark, table)):
        source = open_source(data)
        counts = count_cells(source, domain, unknown=unknown, name="one")
        asked = watched(source)
        found.append({names: part.tolist() for names, part in counts.cuboids(sets).items()})
        assert len(asked) == 1
    assert found[0] == found[1] == found[2]
    kept = [at for at in range(60) if unknown == "error" or at not in (7, 9)]
    for names in sets:
        expected = np.zeros([1000] * len(names), dtype=np.int64)
        for at in kept:
            expected[tuple(columns[name][at] for name in names)] += 1
        assert found[0][names] == expected.ravel().tolist()


def test_ask_compare_and_attack_take_an_engine(
    postgres_server: Postgres, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    address = load(postgres_server, "asked", PEOPLE, ["text", "integer"])
    file, ledger = policy_file(tmp_path), str(tmp_path / "budget.db")
    ask = ["ask", file, "--cuboid", "sex", "--epsilon", "1", "--ledger", ledger, "--data", address]
    assert main([*ask, "--engine", "postgres"]) == 0
    query, policy = pg.queries.cuboid(DOMAIN, "sex"), pg.Policy(DOMAIN)
    how: dict[str, Any] = {"epsilon": 1, "runs": 2, "methods": ["every answer"]}
    both = [
        pg.compare(query, policy, data=data, engine=engine, **how)
        for data, engine in ((address, "postgres"), (PEOPLE, None))
    ]
    assert str(both[0]) == str(both[1])
    facts = policy_file(tmp_path, POLICY + "\n[[public]]\ncuboid = ['sex']\n")
    assert main(["attack", facts, "--data", address, "--engine", "postgres"]) == 0
    capfd.readouterr()
    # Nothing is charged for what an engine cannot count.
    for words in (
        [*ask, "--engine", "duckdb"],
        ["compare", file, "--data", address, "--engine", "duckdb"],
        ["attack", facts, "--data", address, "--engine", "spark"],
    ):
        assert main(words) == 2
        said = capfd.readouterr().err.strip().splitlines()
        assert "cannot count these data" in said[-1]
    assert main(["budget", "show", ledger]) == 0
    assert "epsilon = 1" in capfd.readouterr().out


# -- bad input, on every engine

WORDS_FOR_AGES = PEOPLE.set_column(1, "age", pa.array(["young", "old", "old"]))
LISTS = PEOPLE.set_column(0, "sex", pa.array([["F"], ["M"], ["F"]]))


def bad_on_duckdb(folder: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    path = folder / "people.db"
    with duckdb.connect(str(path)) as connection:
        for name, table in (("people", PEOPLE), ("words", WORDS_FOR_AGES)):
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.execute("CREATE VIEW seen AS SELECT * FROM people")
    codes = {"seen": "data.view", "words": "data.unknown-value", "nothing": "data.unreadable"}
    return {f"duckdb://{path}?table={name}": code for name, code in codes.items()} | {
        str(folder / "none.parquet"): "data.no-file"
    }


def bad_on_spark(folder: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    request.getfixturevalue("spark")
    for name, table in (("words", WORDS_FOR_AGES), ("lists", LISTS)):
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "people.csv").write_text("sex,age\nF,0\n")
    (folder / "text.parquet").write_text("sex,age\nF,0\n")
    codes = {
        "words.parquet": "data.unknown-value", "lists.parquet": "engine.type", "people.csv": "engine.data", "none.parquet": "data.no-file",
        "text.parquet": "data.unreadable",
    }  # fmt: skip
    return {str(folder / name): code for name, code in codes.items()} | {
        "nowhere://bucket/people.parquet": "data.unreadable",
        "postgresql://host/database/people": "engine.data",
    }


def bad_on_postgres(folder: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    server = request.getfixturevalue("postgres_server")
    address = load(server, "bad", PEOPLE, ["text", "integer"])
    words = load(server, "bad words", WORDS_FOR_AGES, ["text", "text"])
    view = f"bad view {next(NUMBERS)}"
    lists = f"bad lists {next(NUMBERS)}"
    with server.connect() as connection:
        connection.execute(f'CREATE VIEW "{view}" AS SELECT a.* FROM {named(address)} a, {named(words)} b')
        connection.execute(f'CREATE TABLE "{lists}" AS SELECT ARRAY[sex] AS sex, age FROM {named(address)}')
    return {
        server.address(view): "data.view",
        server.address(lists): "engine.type",
        words: "data.unknown-value",
        server.address("no such table"): "data.unreadable",
        server.address("people", database="no_such_database"): "engine.refused",
        f"postgresql://me:secret@/db/people?host={folder}": "engine.refused",
        str(folder / "people.csv"): "engine.data",
    }


@pytest.mark.parametrize("made", [bad_on_duckdb, bad_on_spark, bad_on_postgres])
def test_bad_input_is_one_sentence_and_nothing_is_charged(
    made: Callable[[Path, pytest.FixtureRequest], dict[str, str]],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capfd: pytest.CaptureFixture[str],
) -> None:
    engine = made.__name__.removeprefix("bad_on_")
    ledger = str(tmp_path / "budget.db")
    words = ["release", policy_file(tmp_path), "--epsilon", "1", "--ledger", ledger, "--engine", engine]
    found = {}
    expected = made(tmp_path, request)
    for data in expected:
        assert main([*words, "--data", data, "--out", str(tmp_path / "out")]) == 2
        said = capfd.readouterr().err.strip()
        assert not re.search("Traceback|secret|Exception|\\tat ", said)
        found[data] = said.rpartition("[")[2].rstrip("]")
    assert found == expected
    assert not (tmp_path / "out").exists()
    assert pg.Ledger(ledger).history() == []


def test_a_ledger_on_a_server_that_refuses_stops_a_release_on_every_engine(
    postgres_server: Postgres, spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    table = load(postgres_server, "unpaid", PEOPLE, ["text", "integer"])
    for engine, data in (
        ("duckdb", str(tmp_path / "people.parquet")),
        ("spark", str(tmp_path / "people.parquet")),
        ("postgres", table),
    ):
        words = ["release", policy_file(tmp_path), "--epsilon", "1", "--engine", engine, "--data", data]
        ledger = f"postgresql://me:secret@/db?host={tmp_path}"
        assert main([*words, "--ledger", ledger, "--out", str(tmp_path / "out")]) == 2
        said = capfd.readouterr().err.strip()
        assert not re.search("Traceback|secret", said)
        assert len(said.splitlines()) == 1
        assert not (tmp_path / "out").exists()


# -- not installed; compiled only


def test_an_engine_that_is_not_installed_says_so(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['psycopg'] = sys.modules['pyspark'] = sys.modules['pyspark.sql'] = None\n"
        "from policygraph.cli.app import run as main\n"
        f"common = ['release', {policy_file(tmp_path)!r}, '--epsilon', '1', '--out', {str(tmp_path / 'out')!r}, '--ledger', {str(tmp_path / 'b.db')!r}]\n"
        f"pa = __import__('pyarrow'); __import__('pyarrow.parquet').parquet.write_table(pa.table({{'sex': ['F'], 'age': [0]}}), {str(tmp_path / 'p.parquet')!r})\n"
        "assert main([*common, '--data', 'postgresql://host/db/t']) == 2\n"
        f"assert main([*common, '--data', {str(tmp_path / 'p.parquet')!r}, '--engine', 'spark']) == 2\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "policygraph[postgres]" in done.stderr
    assert "policygraph[spark]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("java", ["none", "elsewhere", "broken"])
def test_spark_without_java_says_so(tmp_path: Path, java: str) -> None:
    """Where there is none, one sentence is all that is told; where it does not start, Spark's own script may add to it."""
    pytest.importorskip("pyspark")
    pq.write_table(PEOPLE, tmp_path / "p.parquet")
    place = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    if java == "none":
        place["PATH"] = "/nowhere"
    else:
        place["JAVA_HOME"] = str(tmp_path)
    if java == "broken":
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / "java").chmod(0o755)
    code = (
        "from policygraph.curator.counting import count_cells\nfrom policygraph.model.domain import Domain\n"
        "from policygraph.errors import InputError\n"
        f"try:\n    count_cells({str(tmp_path / 'p.parquet')!r}, Domain({{'age': 3}}), engine='spark')\n"
        "except InputError as error:\n    assert error.code == 'engine.missing', error.code\n    print(error)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=place)
    assert done.returncode == 0, done.stderr
    assert "Java 17" in done.stdout
    assert java == "broken" or done.stderr == ""


@pytest.mark.parametrize("engine", compiled.WORDS)
def test_every_statement_compiles_for_every_engine(engine: str) -> None:
    """Snowflake and BigQuery were never run: what is held is that their parser reads all that is written for them."""

    class Recorder:
        dialect = compiled.Clustered() if engine == "spark" else compiled.Portable()
        failures = (RuntimeError,)

        def __init__(self) -> None:
            self.statements: list[str] = []

        def batches(self, statement: str) -> Any:
            self.statements.append(statement)
            return iter(())

        def rows(self, statement: str) -> Any:
            self.statements.append(statement)
            wide = 3 if "OVER ()" in statement else 2 if "digest" in statement or "CASE" in statement else 1
            return [(0,)] if wide == 1 else [("0",) * wide]

    recorder = Recorder()
    columns = (
        ("a", "c0", "VARCHAR"),
        ("b", "c1", "DOUBLE"),
        ("c", "c2", "DECIMAL"),
        ("d", "c3", "BOOLEAN"),
        ("e", "c4", "FLOAT"),
        ("f", "c5", "BIGINT"),
    )
    source = tables_module.Source("test", recorder, columns)  # type: ignore[arg-type]
    domain = Domain(
        {
            "a": ["x", 1, 0.5, "true"],
            "b": [0.5, 2],
            "c": [0.25, 3, 4],
            "d": [True, False],
            "e": [0.1, 1],
            "f": [7 * at for at in range(20)],
        }
    )
    source.fingerprint()
    count_cells(source, domain, name="n")
    tally = tables_module.Tally(source, domain, tables_module.find_columns(source, domain, None), {"a": 0})
    tally.fitting()
    tally.filled(("a", "b"))
    tally.cells(("a",))
    tally.misfit(1, 1)
    count_measure(source, Domain({"a": 3}), Measure("b", 0, 8, unit=2), name="n")
    assert len(recorder.statements) >= 12
    for statement in recorder.statements:
        made = compiled.compiled(statement, engine)
        assert not re.search(r"policygraph_(?!source|repr)", made, re.IGNORECASE), made
        assert sqlglot.parse_one(made, read=engine) is not None


def test_counts_of_a_server_come_in_blocks(
    postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policygraph.curator.counting.engines.postgres.BLOCK", 64)
    table = pa.table({"x": pa.array(range(5000), type=pa.int64())})
    address = load(postgres_server, "blocks", table, ["bigint"])
    assert count_cells(address, Domain({"x": 5000})).vector().tolist() == [1] * 5000


def test_spark_says_what_it_cannot_read(spark: Any, tmp_path: Path) -> None:
    import duckdb

    from policygraph.curator.counting.engines.spark import _away

    path = tmp_path / "spans.parquet"
    duckdb.execute(f"COPY (SELECT INTERVAL 1 DAY AS span, 'F' AS sex) TO '{path}' (FORMAT parquet)")
    with pytest.raises(DataError) as caught:
        count_cells(str(path), Domain({"sex": ["F", "M"]}), engine=spark)
    assert caught.value.code.startswith(("engine.", "data."))
    whole = tmp_path / "people.parquet"
    pq.write_table(pa.table({"sex": ["F", "M", "F"]}), whole)
    links = tmp_path / "links.parquet"
    pq.write_table(pa.table({"from": [0, 1], "to": [1, 2]}), links)
    assert read_edges(str(links), Network(3), engine=spark).vector().tolist() == [1, 0, 1]
    away = _away([f"file://{whole}"], spark)
    assert count_cells(away, Domain({"sex": ["F", "M"]})).vector().tolist() == [2, 1]


def test_short_floats_are_printed_by_their_own_digits() -> None:
    from policygraph.curator.counting.engines.spark import printer

    shown = printer()
    assert [shown(x, True) for x in (None, 0.10000000149011612, float("inf"), 16777216.0)] == [
        None,
        "0.1",
        "inf",
        "16777216.0",
    ]
    assert shown(0.10000000149011612, False) == "0.10000000149011612"


@pytest.mark.parametrize("engine", ["spark", "snowflake", "bigquery"])
def test_every_engine_takes_the_same_half_of_a_digest(engine: str) -> None:
    """The digits that an engine puts together, in the order that it names them, are the number that DuckDB takes."""
    taken = [
        int(at)
        for at in re.findall(r"md5\(a0\)\)?, (\d+), 2\)", compiled.WORDS[engine]()["digest_total"].lower())
    ]
    for text in ("", "a", "Zürich"):
        digits = md5(text.encode(), usedforsecurity=False).hexdigest()
        [(number,)] = duckdb.sql(f"SELECT md5_number_lower('{text}')").fetchall()
        assert int("".join(digits[at - 1 : at + 1] for at in taken), 16) == number


UNITS = {
    "text": (pa.string(), "text", [text for text in TEXTS if text not in ("", "x" * 1200)]),
    "whole": (pa.int64(), "bigint", [*range(-2, 9), 2**63 - 1, -(2**63)]),
    "day": KINDS["day"],
    "double": KINDS["double"],
    "truth": KINDS["truth"],
    "decimal": KINDS["decimal"],
}


@pytest.mark.slow(recorded=True)
def test_units_are_bounded_alike(postgres_server: Postgres, spark: Any) -> None:
    """The same records of each unit are kept on every engine; numbers that need not be whole name no unit on any."""
    rng = random.Random(17)
    domain = Domain({"a": ["x", "y", "z"], "b": 3})
    for kind, (made, own, values) in UNITS.items():
        some = rng.sample(values, min(len(values), 6))
        columns = {
            "who": pa.array([rng.choice(some) for _ in range(120)], made),
            "a": pa.array([rng.choice("xyz?") for _ in range(120)]),
            "b": pa.array([rng.randrange(4) for _ in range(120)], pa.int64()),
        }
        table = pa.table(columns)
        address = load(postgres_server, f"units_{kind}", table, [own, "text", "bigint"])
        sources = [open_source(given) for given in (table, address, framed(spark, table))]
        for most, per_cell, rule in ((5, None, "drop"), (4, 1, {"a": "z", "b": 0}), (3, 2, "error")):
            unit = pg.Unit(pg.Policy(domain, unknown=rule), "who", most, per_cell)
            found = [outcome(partial(count_units, one, unit)) for one in sources]
            assert found[0] == found[1] == found[2], (kind, most)
            refused_kind = kind in ("double", "truth", "decimal")
            assert isinstance(found[0][0], str) == (refused_kind or rule == "error"), (kind, found[0])
    nothing = pa.table({"who": ["p", None], "a": ["x", "y"], "b": [0, 1]})
    address = load(postgres_server, "units_none", nothing, ["text", "text", "bigint"])
    for data in (nothing, address, framed(spark, nothing)):
        with pytest.raises(DataError) as caught:
            count_units(data, pg.Unit(pg.Policy(domain), "who", 2))
        assert caught.value.code == "unit.missing"
    line = pg.Unit(pg.Policy(domain, pg.PolicyGraph.product(domain, {"b": "line"})), "who", 1)
    several = pa.table({"who": ["p", "p"], "a": ["x", "y"], "b": [0, 1]})
    address = load(postgres_server, "units_several", several, ["text", "text", "bigint"])
    for data in (several, address, framed(spark, several)):
        with pytest.raises(DataError) as caught:
            count_units(data, line)
        assert caught.value.code == "unit.too-many"


@pytest.mark.slow(recorded=True)
def test_times_of_a_day_name_no_unit_on_any_engine(postgres_server: Postgres, spark: Any) -> None:
    domain = Domain({"a": ["x", "y"]})
    unit = pg.Unit(pg.Policy(domain), "who", 1)
    for made, own in ((pa.timestamp("us"), "timestamp"), (pa.timestamp("us", "UTC"), "timestamptz")):
        table = pa.table({"who": pa.array([0, 10**6], made), "a": ["x", "y"]})
        address = load(postgres_server, f"units_{own}", table, [own, "text"])
        for data in (table, address, framed(spark, table)):
            with pytest.raises(DataError) as caught:
                count_units(data, unit)
            assert caught.value.code == "unit.type"


def test_linked_tables_are_counted_alike(postgres_server: Postgres, spark: Any) -> None:
    homes = pg.LinkedTables(
        {
            "dwellings": {"key": "id", "attributes": {"area": ["n", "s"]}},
            "persons": {"in": "dwellings", "foreign_key": "home", "at_most": 2, "attributes": {"age": 3}},
        }
    )
    policy = pg.LinkedUnit(homes)
    tables = {
        "dwellings": pa.table({"id": [*range(9), 2**40], "area": ["n", "s"] * 5}),
        "persons": pa.table(
            {"home": [n % 4 for n in range(29)] + [2**40], "age": [n % 3 for n in range(30)]}
        ),
    }
    kinds = {"dwellings": ["bigint", "text"], "persons": ["bigint", "integer"]}
    there = {name: load(postgres_server, f"linked_{name}", tables[name], kinds[name]) for name in tables}
    frames = {name: framed(spark, table) for name, table in tables.items()}
    found = [count_linked(each, policy) for each in (tables, there, frames)]
    assert len({made.fingerprint for made in found}) == 1
    assert len({made.vector().tobytes() for made in found}) == 1


def test_sums_of_units_are_counted_alike(postgres_server: Postgres, spark: Any) -> None:
    rng = random.Random(3)
    table = pa.table(
        {
            "person": [rng.randrange(6) for _ in range(80)],
            "shop": [rng.choice("abc") for _ in range(80)],
            "paid": [rng.randrange(-5, 30) for _ in range(80)],
        }
    )
    shops = pg.Domain({"shop": ["a", "b", "c"]})
    address = load(postgres_server, "paid", table, ["bigint", "text", "integer"])
    for unit in (pg.Unit(pg.Policy(shops), "person", 3), pg.Unit(pg.Policy(shops), "person", 5, 2)):
        for measure in (pg.Measure("paid", 0, 20), pg.Measure("paid", -20, 20, in_all=45)):
            made = [sum_units(given, unit, measure) for given in (table, address, framed(spark, table))]
            assert len({each.vector().tobytes() for each in made}) == 1
            assert len({each.sums(["shop"]).tobytes() for each in made}) == 1
