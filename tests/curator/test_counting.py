"""Tables and edge lists in, from real files and frames of every kind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from policygraph.curator import histogram as counts_module
from policygraph.curator.counting import count_cells, read_data, read_edges
from policygraph.curator.counting import tables as tables_module
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.reading import Files, how_read
from policygraph.curator.counting.text import first_record
from policygraph.curator.histogram import Histogram
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain, Network
from policygraph.model.policy import Policy
from tests.oracles import counting as oracle

DOMAIN = Domain({"sex": ["F", "M"], "age": 3})
PEOPLE = {"sex": ["F", "M", "F", "M", "F"], "age": [0, 2, 0, 1, 2], "name": ["a", "b", "c", "d", "e"]}
EXPECTED = [2, 0, 1, 0, 1, 1]


class Stream:
    """Speaks the Arrow stream interface and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


class Interchange:
    """Speaks the dataframe interchange protocol and nothing else."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self.frame.__dataframe__(allow_copy=allow_copy)


def make_source(kind: str, folder: Path) -> Any:
    table = pa.table(PEOPLE)
    if kind in ("csv", "tsv", "csv.gz", "semicolon.csv"):
        path = folder / f"people.{kind}"
        sep = {"tsv": "\t", "semicolon.csv": ";"}.get(kind, ",")
        pd.DataFrame(PEOPLE).to_csv(path, index=False, sep=sep)
        return path
    if kind == "parquet":
        pq.write_table(table, folder / "people.parquet")
        return str(folder / "people.parquet")
    if kind == "json":
        lines = [json.dumps(row) for row in table.to_pylist()]
        (folder / "people.json").write_text("\n".join(lines))
        return folder / "people.json"
    if kind in ("glob", "list"):
        pq.write_table(table.slice(0, 2), folder / "part1.parquet")
        pq.write_table(table.slice(2), folder / "part2.parquet")
        return (
            str(folder / "part*.parquet")
            if kind == "glob"
            else [folder / "part1.parquet", folder / "part2.parquet"]
        )
    if kind == "csv glob":
        pd.DataFrame(PEOPLE)[:2].to_csv(folder / "part1.csv", index=False)
        pd.DataFrame(PEOPLE)[2:][["age", "name", "sex"]].to_csv(folder / "part2.csv", index=False)
        return str(folder / "part*.csv")
    if kind == "duckdb file":
        with duckdb.connect(str(folder / "my people.db")) as connection:
            connection.register("given", table)
            connection.execute('CREATE TABLE "some people" AS SELECT * FROM given')
        return f"duckdb://{folder}/my%20people.db?table=some%20people"
    if kind == "query":
        with duckdb.connect(str(folder / "people.db")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
        return duckdb.connect(str(folder / "people.db"), read_only=True), "SELECT * FROM people;"
    frames = {
        "pandas": lambda: pd.DataFrame(PEOPLE),
        "pandas categories": lambda: pd.DataFrame(PEOPLE).astype({"sex": "category", "age": "category"}),
        "pandas objects": lambda: pd.DataFrame(PEOPLE).astype(object),
        "polars": lambda: pl.DataFrame(PEOPLE),
        "polars lazy": lambda: pl.DataFrame(PEOPLE).lazy(),
        "arrow": lambda: table,
        "arrow reader": table.to_reader,
        "arrow dictionary": lambda: table.set_column(0, "sex", table["sex"].dictionary_encode()),
        "stream": lambda: Stream(table),
        "interchange": lambda: Interchange(table),
    }
    return frames[kind]()


KINDS = [
    *("csv", "tsv", "csv.gz", "semicolon.csv", "parquet", "json", "glob", "list", "csv glob", "duckdb file"),
    *("query", "pandas", "pandas categories", "pandas objects", "polars", "polars lazy", "arrow"),
    *("arrow reader", "arrow dictionary", "stream", "interchange"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_gives_the_same_counts(kind: str, tmp_path: Path) -> None:
    counts = count_cells(make_source(kind, tmp_path), DOMAIN)
    assert counts.vector().tolist() == EXPECTED
    assert counts.cuboid(["age"]).tolist() == [2, 1, 2]
    assert counts.cuboid([]).tolist() == [5]
    assert (counts.rows, counts.dropped) == (5, 0)
    assert "5" not in repr(counts)


def test_a_relation_is_counted_by_its_own_connection() -> None:
    with duckdb.connect() as connection:
        connection.register("given", pa.table(PEOPLE))
        counts = count_cells(connection.sql("SELECT sex, age FROM given WHERE age < 2"), DOMAIN)
        assert counts.vector().tolist() == [2, 0, 0, 0, 1, 0]


labels = st.one_of(
    st.integers(1, 4),
    st.lists(
        st.sampled_from(["a", "A", "7", "007", "", "it's", 'say "x"', "é", "1.0"]), min_size=1, unique=True
    ),
    st.lists(st.integers(-3, 12), min_size=1, unique=True),
    st.just([0.5, 1.5, 10.0]),
    st.just([False, True]),
    st.just(["low", 3, 0.25]),
)
texts = st.sampled_from(
    [
        "a",
        "A",
        "7",
        "007",
        " 7 ",
        "+1",
        "0",
        "1",
        "2",
        "-3",
        "1.0",
        "0.5",
        "true",
        "False",
        "it's",
        "x",
        "é",
        "low",
        "3",
    ]
)
columns = st.one_of(
    st.lists(st.one_of(st.none(), texts), max_size=12),
    st.lists(st.one_of(st.none(), st.integers(-3, 12)), max_size=12),
    st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 1.5, 10.0, 0.25, 3.0])), max_size=12),
    st.lists(st.one_of(st.none(), st.booleans()), max_size=12),
)


@settings(max_examples=80, deadline=None)
@given(first=labels, second=labels, left=columns, right=columns, small=st.booleans())
def test_counts_agree_with_the_literal_definition(
    first: Any, second: Any, left: list[Any], right: list[Any], small: bool
) -> None:
    n = min(len(left), len(right))
    domain = Domain({'odd "name"': first, "two words": second})
    table = pa.table({'odd "name"': pa.array(left[:n]), "two words": pa.array(right[:n])})
    expected, missed = oracle.count(domain, table.to_pylist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "SMALL", 10**5 if small else 0)
        counts = count_cells(table, domain, unknown="drop")
    assert counts.dropped == missed
    assert counts.rows == n - missed
    found = {domain.cell(int(at)): int(k) for at, k in zip(*counts.sparse(), strict=True)}
    assert found == expected


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.one_of(st.none(), texts), min_size=1, max_size=12), given_labels=labels)
def test_csv_agrees_with_the_literal_definition(tmp_path: Path, values: list[Any], given_labels: Any) -> None:
    domain = Domain({"a": given_labels})
    path = tmp_path / "values.csv"
    # A second column keeps a line with an empty value from being an empty line.
    pd.DataFrame({"a": values, "b": "x"}).to_csv(path, index=False)
    records = [{"a": "" if v is None and "" in domain.labels("a") else v} for v in values]
    expected, missed = oracle.count(domain, records)
    counts = count_cells(path, domain, unknown="drop")
    assert counts.dropped == missed
    assert {domain.cell(int(at)): int(k) for at, k in zip(*counts.sparse(), strict=True)} == expected


def test_text_labels_keep_leading_zeros_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("code\n007\n7\n007\n#x\n")
    counts = count_cells(path, Domain({"code": ["007", "7", "#x"]}))
    assert counts.vector().tolist() == [2, 1, 1]
    assert count_cells(path, Domain({"code": 8}), unknown="drop").vector().tolist() == [0] * 7 + [3]


def test_no_line_of_a_csv_is_taken_for_a_comment_or_skipped(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    path.write_text("a,b\n#1,x\n2,y\n")
    with pytest.raises(DataError, match="'#1' in 1 row"):
        count_cells(path, Domain({"a": 5}))
    path.write_text("made by hand\na,b\n1,x\n2,y\n")
    with pytest.raises(DataError, match="no column 'a'"):
        count_cells(path, Domain({"a": 5}))
    path.write_text("a,b\n" + "1,x\n" * 3 + "1\n" + "1,x\n" * 30000)
    with pytest.raises(DataError, match=r"cannot be read|no column"):
        count_cells(path, Domain({"a": 5}))


def test_fractions_are_not_rounded_to_whole_numbers() -> None:
    with pytest.raises(DataError) as caught:
        count_cells(pa.table({"a": [1.0, 1.7, float("nan")]}), Domain({"a": 3}))
    assert caught.value.details["problems"] == {"a": [("1.7", 1), ("nan", 1)]}
    with pytest.raises(DataError):
        count_cells(pa.table({"a": ["1.7", "1e0", "0x1"]}), Domain({"a": 3}))
    halves = pa.table({"a": pa.array([0.1, 0.5], pa.float32())})
    assert count_cells(halves, Domain({"a": [0.1, 0.5]})).vector().tolist() == [1, 1]
    assert count_cells(pa.table({"a": [2**60, 2**60 + 2]}), Domain({"a": [2**60, 2**60 + 2]})).rows == 2


@pytest.mark.parametrize("kind", ["int64", "uint64", "int8", "float64", "string"])
def test_values_far_outside_do_not_break_the_arithmetic(kind: str) -> None:
    far = {"int64": 2**62, "uint64": 2**64 - 1, "int8": -128, "float64": 1e300, "string": "9" * 40}[kind]
    near = "1" if kind == "string" else 1
    table = pa.table({"a": pa.array([far, near], getattr(pa, kind)())})
    for labels in (2, [1, 2], [1, 5]):
        counts = count_cells(table, Domain({"a": labels}), unknown="drop")
        assert (counts.rows, counts.dropped) == (1, 1)


def test_unknown_values_are_named_with_their_rows() -> None:
    people = pa.table({"sex": ["F", "f", "f", None, "M"] + ["F"] * 7, "age": [0, 9, 1, 1, 2, *range(10, 17)]})
    with pytest.raises(DataError) as caught:
        count_cells(people, DOMAIN)
    error = caught.value
    assert error.code == "data.unknown-value"
    assert error.details["problems"]["sex"] == [("f", 2), (None, 1)]
    assert error.details["rows"] == 10
    text = str(error)
    assert "10 of 12 rows" in text
    assert "'f' in 2 rows, no value in 1 row" in text
    assert "and 3 more values" in text
    assert "expected 0 to 2" in text
    assert 'unknown = "drop"' in text


def test_rules_for_unknown_values() -> None:
    people = pa.table({"sex": ["F", "x", None, "M"], "age": [0, 1, 5, None]})
    dropped = count_cells(people, DOMAIN, unknown="drop")
    assert (dropped.vector().tolist(), dropped.rows, dropped.dropped) == ([1, 0, 0, 0, 0, 0], 1, 3)
    other = count_cells(people, DOMAIN, unknown={"sex": "M", "age": 2})
    assert (other.vector().tolist(), other.dropped) == ([1, 0, 0, 0, 1, 2], 0)
    with pytest.raises(DataError) as caught:
        count_cells(people, DOMAIN, unknown={"sex": "M"})
    assert set(caught.value.details["problems"]) == {"age"}
    for rule in ("ignore", {"sex": "X"}, {"six": "F"}):
        with pytest.raises(InputError):
            count_cells(people, DOMAIN, unknown=rule)


def test_missing_columns_are_all_named_with_near_matches() -> None:
    with pytest.raises(DataError) as caught:
        count_cells(pa.table({"Sex": ["F"], "ages": [1], "x": [2]}), DOMAIN)
    assert "did you mean 'Sex'" in str(caught.value)
    assert "did you mean 'ages'" in str(caught.value)
    counts = count_cells(pa.table({"Sex": ["F"], "ages": [1]}), DOMAIN, columns={"sex": "Sex", "age": "ages"})
    assert counts.rows == 1
    with pytest.raises(InputError):
        count_cells(pa.table({"Sex": ["F"]}), DOMAIN, columns={"six": "Sex"})


def test_columns_are_told_apart_by_case_and_doubled_ones_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"A": [0, 0], "a": [1, 2]})
    assert count_cells(frame, Domain({"a": 3})).vector().tolist() == [0, 1, 1]
    frame.to_csv(tmp_path / "case.csv", index=False)
    assert count_cells(tmp_path / "case.csv", Domain({"a": 3})).vector().tolist() == [0, 1, 1]
    (tmp_path / "double.csv").write_text("a,a\n1,2\n")
    with pytest.raises(DataError, match="2 columns 'a'"):
        count_cells(tmp_path / "double.csv", Domain({"a": 3}))
    with pytest.raises(DataError, match="2 columns 'a'"):
        count_cells(pd.DataFrame([[1, 2]], columns=["a", "a"]), Domain({"a": 3}))


def test_a_csv_without_header_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "headless.csv"
    path.write_text("F,0\nM,1\n")
    with pytest.raises(DataError, match="first line looks like a record") as caught:
        count_cells(path, DOMAIN)
    assert caught.value.code == "data.no-header"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ("nowhere.csv", "data.no-file"),
        ("nowhere*.parquet", "data.no-file"),
        ("duckdb://x.db", "data.address"),
        ("duckdb://nowhere.db?table=t", "data.no-file"),
        (42, "data.kind"),
        ({"sex": ["F"]}, "data.kind"),
        (pl.Series([1, 2]), "data.unreadable"),
        ("query: SELEC 1", "data.unreadable"),
        ("query: CREATE TABLE t (a INT)", "data.unreadable"),
    ],
)
def test_what_cannot_be_read_is_a_clear_error(data: Any, code: str) -> None:
    with duckdb.connect() as connection:
        asked = str(data).removeprefix("query: ")
        source = data if asked == str(data) else (connection, asked)
        with pytest.raises(InputError) as caught:
            count_cells(source, DOMAIN)
    assert caught.value.code == code


def test_broken_files_are_clear_errors(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"no parquet at all")
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "table.xyz").write_text("a")
    (tmp_path / "latin.csv").write_bytes(b"sex,age\n\xe9,1\n")
    with pytest.raises(DataError, match=r"near line 2\. Save it as UTF-8"):
        read_edges(tmp_path / "latin.csv", Network(3))
    for name, code in (
        ("broken.parquet", "data.unreadable"),
        ("empty.csv", "data.empty"),
        ("table.xyz", "data.format"),
        ("latin.csv", "data.unreadable"),
        (".", "data.no-file"),
    ):
        with pytest.raises(DataError) as caught:
            count_cells(tmp_path / name, DOMAIN)
        assert caught.value.code == code


def test_empty_tables_are_fine(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("sex,age\n")
    assert count_cells(tmp_path / "empty.csv", DOMAIN).vector().tolist() == [0] * 6
    empty = pa.table({"sex": pa.array([], pa.string()), "age": pa.array([], pa.int64())})
    assert count_cells(empty, DOMAIN).rows == 0
    assert count_cells(pd.DataFrame({"sex": [], "age": []}), DOMAIN).rows == 0


def test_names_of_files_and_columns_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "it's [1] *.csv"
    path.write_text('"a ""b""; DROP TABLE x",c\nit\'s,1\n"say ""hi""",2\n')
    (tmp_path / "it's 1 other.csv").write_text("nothing")
    domain = Domain({'a "b"; DROP TABLE x': ["it's", 'say "hi"'], "c": 3})
    assert count_cells(path, domain).vector().tolist() == [0, 1, 0, 0, 0, 1]
    with pytest.raises(InputError, match="zero byte"):
        count_cells(pa.table({"a": ["x"]}), Domain({"a": ["x\0"]}))


def test_cuboids_of_a_domain_too_large_for_a_vector() -> None:
    rng = np.random.default_rng(1)
    domain = Domain({f"a{i}": 4 if i % 2 else ["w", "x", "y", "z"] for i in range(24)})
    codes = rng.integers(0, 4, size=(500, 24))
    frame = pd.DataFrame(
        {f"a{i}": codes[:, i] if i % 2 else np.array(list("wxyz"))[codes[:, i]] for i in range(24)}
    )
    counts = count_cells(frame, domain)
    assert counts.rows == 500
    expected = np.bincount(codes[:, 3] * 4 + codes[:, 10], minlength=16)
    assert counts.cuboid(["a10", "a3"]).tolist() == expected.tolist()
    assert counts.cuboid([]).tolist() == [500]
    for ask in (counts.vector, counts.sparse, lambda: counts.cuboid(domain.names)):
        with pytest.raises(InputError) as caught:
            ask()
        assert caught.value.code == "counts.too-large"
    # A record with one unknown value is left out of every cuboid, also of those without that attribute.
    frame.loc[0, "a0"] = "?"
    with pytest.raises(DataError, match="a0: '\\?' in 1 row"):
        count_cells(frame, domain)
    fewer = count_cells(frame, domain, unknown="drop")
    assert (fewer.rows, fewer.dropped) == (499, 1)
    assert int(fewer.cuboid(["a3"]).sum()) == 499


def test_large_and_small_domains_count_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = count_cells(pa.table(PEOPLE), DOMAIN)
    monkeypatch.setattr(tables_module, "DENSE", 5)
    lazy = count_cells(pa.table(PEOPLE), DOMAIN)
    for names in (["sex"], ["age"], ["age", "sex"]):
        assert lazy.cuboid(names).tolist() == dense.cuboid(names).tolist()
    assert lazy.fingerprint == dense.fingerprint


def test_fingerprints_follow_the_content(tmp_path: Path) -> None:
    frame = pd.DataFrame(PEOPLE)
    base = count_cells(frame, DOMAIN).fingerprint
    # Neither the order of rows and columns nor the library nor the width of numbers makes another data set.
    assert (
        count_cells(frame.sample(frac=1, random_state=3)[["name", "age", "sex"]], DOMAIN).fingerprint == base
    )
    assert count_cells(pl.DataFrame(PEOPLE), DOMAIN).fingerprint == base
    assert count_cells(frame.astype({"age": "int16"}), DOMAIN).fingerprint == base
    # A policy over fewer columns meets the same data set.
    assert count_cells(frame, Domain({"age": 3})).fingerprint == base
    changed = frame.assign(name=["a", "b", "c", "d", "f"])
    assert count_cells(changed, DOMAIN).fingerprint != base
    assert count_cells(pd.concat([frame, frame]), DOMAIN).fingerprint != base
    assert count_cells(frame.rename(columns={"name": "n"}), DOMAIN).fingerprint != base
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    frame.to_csv(one, index=False)
    two.write_bytes(one.read_bytes())
    assert count_cells(one, DOMAIN).fingerprint == count_cells(two, Domain({"age": 3})).fingerprint
    named = count_cells(one, DOMAIN, name="people").fingerprint
    assert named == count_cells(frame, DOMAIN, name="people").fingerprint
    assert named not in (base, count_cells(one, DOMAIN).fingerprint)
    with pytest.raises(InputError):
        count_cells(one, DOMAIN, name=" ")


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv"
    pd.DataFrame(PEOPLE).to_csv(path, index=False)
    monkeypatch.setattr(tables_module, "DENSE", 5)
    counts = count_cells(path, DOMAIN)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DataError) as caught:
        counts.cuboid(["age"])
    assert caught.value.code == "data.changed"


def test_lost_rows_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = tables_module.coder

    def doubled(*args: Any, **more: Any) -> Any:
        plan = real(*args, **more)
        twice = tuple(join.replace("'F|M'", "'F|F'") for join in plan.joins)
        return type(plan)(twice, plan.code, plan.by_text)

    monkeypatch.setattr(tables_module, "coder", doubled)
    with pytest.raises(DataError) as caught:
        count_cells(pa.table({"sex": ["F"], "age": [0]}), DOMAIN)
    assert caught.value.code == "data.lost"


def test_histograms_made_elsewhere() -> None:
    counts = Histogram.from_vector(DOMAIN, np.array([[1, 2, 3], [4, 5, 6]]))
    assert counts.cuboid(["sex"]).tolist() == [6, 15]
    assert counts.fingerprint == Histogram.from_vector(DOMAIN, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).fingerprint
    assert counts.fingerprint != Histogram.from_vector(DOMAIN, [1, 2, 3, 4, 5, 7]).fingerprint
    with pytest.raises(ValueError, match="read-only"):
        counts.vector()[0] = 1
    given = np.arange(6)
    Histogram.from_vector(DOMAIN, given)
    given[0] = 5
    for bad in (
        [1, 2],
        [[1, 2], [3, 4], [5, 6]],
        [-1] + [0] * 5,
        [0.5] + [0] * 5,
        [float("nan")] + [0] * 5,
        ["a"] * 6,
        [2**63] * 6,
        [2**61] * 6,
    ):
        with pytest.raises(DataError):
            Histogram.from_vector(DOMAIN, bad)
    with pytest.raises(DataError) as caught:
        Histogram.from_vector(Network(3), [0, 2, 0])
    assert caught.value.code == "counts.capacity"
    with pytest.raises(InputError):
        Histogram.from_vector(Network(3), [0, 1, 0]).cuboid(["a"])
    assert (
        Histogram.from_vector(DOMAIN, [0] * 6, name="x").fingerprint
        == count_cells(pa.table(PEOPLE), DOMAIN, name="x").fingerprint
    )


EDGES = [(0, 1), (3, 1), (2, 3)]


def make_edges(kind: str, folder: Path) -> Any:
    if kind == "text":
        (folder / "g.txt").write_text("# nodes\n% also\n0 1\n\n  3\t 1 0.5\n2   3 {}\n")
        return folder / "g.txt"
    if kind == "windows text":
        (folder / "g.edges").write_bytes(b"0 1\r\n3 1\r\n2 3\r\n")
        return folder / "g.edges"
    if kind in ("csv", "headless csv"):
        start = "source,target,weight\n" if kind == "csv" else ""
        (folder / "g.csv").write_text(start + "".join(f"{u},{v},1\n" for u, v in EDGES))
        return folder / "g.csv"
    frame = pd.DataFrame(EDGES, columns=["from", "to"])
    if kind == "parquet":
        frame.to_parquet(folder / "g.parquet")
        return folder / "g.parquet"
    if kind == "networkx":
        return nx.Graph(EDGES)
    if kind == "adjacency":
        return nx.to_scipy_sparse_array(nx.Graph(EDGES), nodelist=range(4))
    if kind == "numpy":
        return nx.to_numpy_array(nx.Graph(EDGES), nodelist=range(4))
    return frame


@pytest.mark.parametrize(
    "kind",
    ["text", "windows text", "csv", "headless csv", "parquet", "networkx", "adjacency", "numpy", "pandas"],
)
def test_every_kind_of_edge_list_gives_the_same_counts(kind: str, tmp_path: Path) -> None:
    network = Network(4)
    more = {"columns": ["column0", "column1"]} if kind == "headless csv" else {}
    counts = read_edges(make_edges(kind, tmp_path), network, **more)
    assert counts.rows == 3
    assert [network.cell(int(at)) for at in counts.sparse()[0]] == [(0, 1), (1, 3), (2, 3)]


def test_directed_edges_and_named_nodes(tmp_path: Path) -> None:
    network = Network(["ann", "bob", "it's"], directed=True)
    path = tmp_path / "g.csv"
    path.write_text("ann,bob\nbob,ann\nit's,ann\n")
    counts = read_edges(path, network)
    assert {network.cell(int(at)) for at in counts.sparse()[0]} == {
        ("ann", "bob"),
        ("bob", "ann"),
        ("it's", "ann"),
    }
    arcs = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 0], [1, 0, 0]]))
    assert read_edges(arcs, network).vector().tolist() == counts.vector().tolist()
    with pytest.raises(DataError, match="not symmetric"):
        read_edges(arcs, Network(3))
    with pytest.raises(DataError) as caught:
        read_edges(nx.DiGraph([(0, 1)]), Network(2))
    assert caught.value.code == "data.directed"


def test_all_problems_of_an_edge_list_at_once(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("0 1\n1 0\n1 0\n2 2\n7 1\n7 x\n3\n")
    with pytest.raises(DataError) as caught:
        read_edges(path, Network(4))
    text = str(caught.value)
    assert "3 edges at nodes that are not in the network: '7' 2 times, 'x' 1 time, no value 1 time" in text
    assert "1 loop," in text
    assert "1 pairs are listed more than once, in one order or in both" in text
    assert "2 edges too many" in text
    counts = read_edges(path, Network(4), unknown="drop", loops="drop", duplicates="merge")
    assert (counts.rows, counts.dropped) == (1, 4)
    many = read_edges(path, Network(4, loops=True, multiple=True), unknown="drop")
    assert (many.rows, many.dropped, int(many.vector().max())) == (4, 3, 3)
    with pytest.raises(InputError):
        read_edges(path, Network(4), duplicates="drop")


def test_edges_of_graphs_and_matrices_are_checked() -> None:
    with pytest.raises(DataError, match="not in the network: '9'"):
        read_edges(nx.Graph([(0, 9)]), Network(4))
    with pytest.raises(DataError, match="listed more than once"):
        read_edges(nx.MultiGraph([(0, 1), (1, 0)]), Network(4))
    assert read_edges(nx.MultiGraph([(0, 1), (1, 0)]), Network(4, multiple=True)).rows == 2
    for bad in (np.array([[0, 0.5], [0.5, 0]]), np.array([[0, -1], [-1, 0]]), np.zeros((3, 3))):
        with pytest.raises(DataError):
            read_edges(bad, Network(2))
    with pytest.raises(DataError, match="two columns of nodes"):
        read_edges(pd.DataFrame({"a": [0], "b": [1], "c": [2]}), Network(4))
    with pytest.raises(InputError):
        read_edges(pd.DataFrame({"a": [0]}), DOMAIN)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        count_cells(pd.DataFrame({"a": [0]}), Network(3))  # type: ignore[arg-type]


def test_an_ambiguous_first_line_must_be_explained(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("u,v\nv,w\n")
    network = Network(["u", "v", "w"])
    with pytest.raises(InputError) as caught:
        read_edges(path, network)
    assert caught.value.code == "data.no-header"
    assert read_edges(path, network, header=True).rows == 1
    assert read_edges(path, network, header=False).rows == 2


def test_networks_too_large_for_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(20_000)
    counts = read_edges(pd.DataFrame({"u": [5, 19_999], "v": [19_998, 0]}), network)
    assert counts.sparse()[0].tolist() == sorted([network.index((5, 19_998)), network.index((0, 19_999))])
    with pytest.raises(InputError):
        counts.vector()


@settings(max_examples=30, deadline=None)
@given(
    arcs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15),
    directed=st.booleans(),
    loops=st.booleans(),
)
def test_edges_agree_with_the_literal_definition(
    arcs: list[tuple[int, int]], directed: bool, loops: bool
) -> None:
    network = Network(5, directed=directed, loops=loops, multiple=True)
    expected: dict[int, int] = {}
    dropped = 0
    for u, v in arcs:
        if 5 in (u, v) or (u == v and not loops):
            dropped += 1
        else:
            at = network.index((u, v))
            expected[at] = expected.get(at, 0) + 1
    frame = pa.table(
        {"from": pa.array([u for u, _ in arcs], pa.int64()), "to": pa.array([v for _, v in arcs], pa.int64())}
    )
    counts = read_edges(frame, network, unknown="drop", loops="drop")
    assert dict(zip(*(part.tolist() for part in counts.sparse()), strict=True)) == expected
    assert counts.dropped == dropped


def test_limits_are_what_the_documents_say() -> None:
    assert counts_module.DENSE == 10**8


@pytest.mark.parametrize("rows", [1, 30_000])
def test_lines_of_unequal_length_are_named(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "ragged.csv"
    path.write_text("sex,age\n" + "F,0\n" * rows + "M,1,2\n")
    with pytest.raises(DataError) as caught:
        count_cells(path, Domain({"sex": ["F", "M"], "age": 3}))
    assert f"lines are of unequal length near line {rows + 2}" in str(caught.value)
    assert "strict_mode" not in str(caught.value)
    assert caught.value.code == "data.unreadable"


def test_advice_for_unknown_values_names_no_real_label() -> None:
    with pytest.raises(DataError) as caught:
        count_cells(pa.table({"my sex": ["X"]}), Domain({"my sex": ["F", "M"]}))
    text = str(caught.value)
    assert "table [data] of the policy file" in text
    assert 'unknown = {other = {"my sex" = ...}}' in text
    assert text.count("'M'") == 1, "only among the labels that are expected"


def test_messages_about_edges_name_the_keys_of_a_policy_file() -> None:
    frame = pa.table({"from": [0, 1, 0, 2, 7], "to": [1, 0, 0, 1, 1]})
    with pytest.raises(DataError) as caught:
        read_edges(frame, Network(3))
    for word in ('duplicates = "merge"', 'loops = "drop"', 'unknown = "drop"', "[data]"):
        assert word in str(caught.value)
    with pytest.raises(DataError, match=r"\[data\] columns = \{from"):
        read_edges(pa.table({"a": [0], "b": [1], "c": [2]}), Network(3))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1, 2]), "2 numbers for 6 cells"),
        (np.array([1, 2, 3, 4, 5, np.nan]), "nan in cell 5: expected whole numbers"),
        (np.array([1, 2.5, 3, 4, 5, 6]), "not whole or too large in cell 1"),
        (np.zeros((3, 2), dtype=int), r"6 numbers in the shape \(3, 2\) for 6 cells.*the shape \(2, 3\)"),
    ],
)
def test_arrays_that_are_no_counts(array: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        Histogram.from_vector(Domain({"sex": ["F", "M"], "age": 3}), array)


def test_a_release_reads_the_columns_and_rules_of_its_policy():
    frame = pd.DataFrame({"gender": ["F", "M", "X"], "age": [0, 2, 1]})
    policy = Policy(DOMAIN, unknown="drop")
    assert read_data(frame, policy, columns={"sex": "gender"}).vector().tolist() == [1, 0, 0, 0, 0, 1]
    with pytest.raises(DataError):
        read_data(frame, Policy(DOMAIN), columns={"sex": "gender"})
    with pytest.raises(DataError):
        read_data(frame, policy)


def test_how_data_are_read_tells_requests_apart():
    forms = [
        how_read(data)
        for data in ("a.csv", Files("a.csv", delimiter=";"), Files("a.csv", encoding="latin-1"))
    ]
    assert len({str(form) for form in forms}) == 3


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_first_record_ends_before_its_line_break(tmp_path: Path, end: bytes):
    path = tmp_path / "people.csv"
    path.write_bytes(b'\r\nsex,"a""\r\nb"' + (end + b"F,1" + end if end else b""))
    assert first_record(str(path), '"') == b'sex,"a""\r\nb"'


def test_what_the_engine_cannot_do_in_a_function_is_one_sentence():
    source = open_source(pa.table({"x": [1, 2]}))
    assert source.explained(lambda: source.engine.rows("SELECT 1")) == [(1,)]
    with pytest.raises(DataError) as caught:
        source.explained(lambda: source.engine.rows("SELECT nothing FROM nowhere"))
    assert caught.value.code == "data.unreadable"
