"""Data of unusual kinds, and what is refused about them: each with its code."""

from __future__ import annotations

import codecs
import encodings.aliases
import gzip
import itertools
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import policygraph as pg
from policygraph.curator.counting import count_cells, files, read_edges, text
from policygraph.curator.counting.source import Source, check_plain
from policygraph.curator.counting.tables import level_sql
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain, Network
from policygraph.model.file_options import expected_option

AGES = Domain({"age": 3})


def code_of(run: Any, *arguments: Any, **options: Any) -> str:
    """The code of the error that a call raises."""
    with pytest.raises((DataError, InputError)) as caught:
        run(*arguments, **options)
    return caught.value.code


def test_a_batch_and_an_interchange_frame_are_counted_like_tables():
    batch = pa.record_batch({"age": [0, 2, 2]})

    class Exchanged:
        """Speaks the dataframe interchange interface and nothing else."""

        def __dataframe__(self, *given: Any, **options: Any) -> Any:
            return pa.Table.from_batches([batch]).__dataframe__(*given, **options)

    class Other:
        """A frame of no known kind."""

    assert count_cells(pa.Table.from_batches([batch]), AGES).vector().tolist() == [1, 0, 2]
    assert count_cells(batch, AGES).vector().tolist() == [1, 0, 2]
    assert count_cells(Exchanged(), AGES).vector().tolist() == [1, 0, 2]
    assert code_of(count_cells, Other(), AGES) == "data.kind"


def test_frames_without_columns_are_refused():
    assert code_of(count_cells, pd.DataFrame(), AGES) == "data.empty"


def test_sparse_and_complex_columns_of_pandas():
    sparse = pd.DataFrame({"age": pd.arrays.SparseArray([0, 0, 2])})
    assert count_cells(sparse, AGES).vector().tolist() == [2, 0, 1]
    assert (
        code_of(count_cells, pd.DataFrame({"age": np.array([0 + 0j, 1 + 1j])}), AGES) == "data.unknown-value"
    )


def test_half_a_surrogate_pair_in_a_frame_is_no_label():
    domain = Domain({"word": ["a", "b"]})
    frame = pd.DataFrame({"word": pd.Series(["a", "\ud800"], dtype=object)})
    assert code_of(count_cells, frame, domain) in ("data.unknown-value", "data.unreadable")


def test_missing_times_of_numpy_among_objects_are_missing():
    frame = pd.DataFrame({"age": pd.Series([np.datetime64("NaT"), np.timedelta64("NaT"), 1], dtype=object)})
    assert count_cells(frame, AGES, unknown="drop").vector().tolist() == [0, 1, 0]


def test_spans_of_time_of_numpy_among_objects_are_labels_and_no_numbers():
    spans = [np.timedelta64(90, "s"), np.timedelta64(1, "D"), np.timedelta64(5, "ns"), pd.Timedelta("90s"), 5]
    domain = Domain({"span": ["0 days 00:01:30", "1 days 00:00:00", "0 days 00:00:00.000000005", 5]})
    frame = pd.DataFrame({"span": pd.Series(spans, dtype=object)})
    assert count_cells(frame, domain).vector().tolist() == [2, 1, 1, 1]


def test_text_that_arrow_cannot_hold_is_refused_with_its_row():
    words = Domain({"word": ["a", "b"]})
    frame = pd.DataFrame({"word": pd.Series(["a", "\ud800"], dtype="string[python]")})
    with pytest.raises(DataError, match="row 2") as caught:
        count_cells(frame, words)
    assert caught.value.code == "data.unreadable"


def test_times_of_numpy_among_objects_are_labels():
    domain = Domain({"when": ["2024-01-02 03:04:05", "other"]})
    values = [np.datetime64("2024-01-02T03:04:05"), "other", np.datetime64("2024-01-02T03:04:05.000000001")]
    frame = pd.DataFrame({"when": pd.Series(values, dtype=object)})
    assert count_cells(frame, domain, unknown="drop").vector().tolist() == [1, 1]


@pytest.mark.parametrize(
    "content",
    [
        b'[{"age": 1}, {"age": \xff}]',
        b'[{"age": 1}, {"age": 2]',
        b'[{"age": 1} {"age": 2}]',
        b'[{"age": 1}] []',
        b"[] 7",
        pytest.param(b'[{"age": 1}, {"age": "' + b"x" * 9_000_000 + b'"]', id="longer than a block"),
        b'[{"age": 1}, 7]',
        b'[{"age": 1}, null]',
        b'[{"age": 1, "age": 2}]',
        b'[{"age": 1}]\xff',
        b'[{"age": 1},',
        b'[{"age": 1}, {"age": 2},\n',
        b"[",
    ],
)
def test_broken_arrays_of_json_are_refused_with_the_place(tmp_path: Path, content: bytes):
    path = tmp_path / "people.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match="record") as caught:
        count_cells(str(path), AGES)
    assert caught.value.code == "data.unreadable"


@pytest.mark.parametrize(
    "content",
    [
        b'{"age": 1}\n{"age": \xff}\n',
        b'{"age": 1}\n[1]\n',
        b'{"age": 1}\nnull\n',
        b'{"age": 1}\n{"age"\n',
    ],
)
def test_broken_lines_of_json_are_refused_with_the_place(tmp_path: Path, content: bytes):
    path = tmp_path / "people.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match="line 2") as caught:
        count_cells(str(path), AGES)
    assert caught.value.code == "data.unreadable"


def test_json_that_only_the_engine_refuses_is_refused_in_its_words(tmp_path: Path):
    path = tmp_path / "people.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"age": 1}\n')
    with pytest.raises(DataError, match="byte order mark") as caught:
        count_cells(str(path), AGES)
    assert caught.value.code == "data.unreadable"


def test_json_columns_of_parquet_meet_columns_of_text(tmp_path: Path):
    with duckdb.connect() as engine:
        values = "SELECT '7'::JSON AS x UNION ALL SELECT '\"a\"'::JSON UNION ALL SELECT '[1]'::JSON"
        engine.execute(f"COPY ({values}) TO '{tmp_path}/a.parquet'")
        engine.execute(f"COPY (SELECT 'a' AS x) TO '{tmp_path}/b.parquet'")
    domain = Domain({"x": ["a", 7, "[1]"]})
    assert count_cells(str(tmp_path / "a.parquet"), domain).vector().tolist() == [1, 1, 1]
    assert count_cells(str(tmp_path / "*.parquet"), domain).vector().tolist() == [2, 1, 1]


def test_json_without_records_or_keys_has_no_column(tmp_path: Path):
    for number, content in enumerate((b"[]", b"", b" \n ", b"[{}]", b"{}\n{}\n")):
        path = tmp_path / f"{number}.json"
        path.write_bytes(content)
        assert code_of(count_cells, str(path), AGES) in ("data.missing-column", "data.empty")


def test_several_files_must_be_of_one_kind_and_name_each_column_once(tmp_path: Path):
    (tmp_path / "a.csv").write_text("age\n1\n")
    (tmp_path / "b.jsonl").write_text('{"age": 1}\n')
    assert code_of(count_cells, [str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl")], AGES) == "data.format"
    (tmp_path / "c.csv").write_text("age,age\n1,2\n")
    (tmp_path / "d.csv").write_text("age;age\n1;2\n")
    twice = [str(tmp_path / "c.csv"), str(tmp_path / "d.csv")]
    assert code_of(count_cells, twice, AGES) == "data.columns-differ"


def test_columns_of_unlike_whole_numbers_in_several_files(tmp_path: Path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"age": pa.array([0, 1], pa.int8())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"age": pa.array([2, 1], pa.int64())}), tmp_path / "b.parquet")
    assert count_cells(str(tmp_path / "*.parquet"), AGES).vector().tolist() == [1, 2, 1]
    words = Domain({"w": ["x", "y"]})
    pq.write_table(pa.table({"w": pa.array(["x"]).dictionary_encode()}), tmp_path / "c.pq")
    pq.write_table(pa.table({"w": pa.array(["y"])}), tmp_path / "d.pq")
    assert count_cells(str(tmp_path / "*.pq"), words).vector().tolist() == [1, 1]


def test_a_pattern_that_finds_a_folder_is_refused(tmp_path: Path):
    (tmp_path / "sub.csv").mkdir()
    assert code_of(count_cells, [str(tmp_path / "sub.csv")], AGES) in ("data.no-file", "data.empty")
    assert code_of(count_cells, str(tmp_path / "s*.csv"), AGES) == "data.no-file"


class OneFile:
    """A connection whose network has one file."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content

    def execute(self, statement: str) -> OneFile:
        if "read_blob" in statement and self.content is None:
            raise duckdb.IOException("not there")
        return self

    def fetchall(self) -> list[tuple[bytes]]:
        return [(self.content or b"",)]


def test_addresses_of_the_network_are_copied_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "connect", lambda: OneFile(b"age\n1\n"))
    path, held = files._fetched("https://example.org/people.csv?of=1")
    assert path.endswith("copy.csv")
    assert Path(path).read_bytes() == b"age\n1\n"
    del held
    monkeypatch.setattr(files, "connect", lambda: OneFile(None))
    assert code_of(files._fetched, "https://example.org/people.csv") == "data.unreadable"


def test_lines_that_are_too_long_are_handed_on_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "long.csv"
    path.write_bytes(b"age," + b"x" * 5_000_000 + b"\n1,2\n")
    monkeypatch.setattr(text, "LONGEST", 1 << 16)
    assert code_of(count_cells, str(path), AGES).startswith("data.")


def test_a_quote_that_never_closes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "open.csv"
    path.write_bytes(b'age,note\n1,"' + b"x\n" * 3_000_000)
    monkeypatch.setattr(text, "LONGEST", 1 << 16)
    assert code_of(count_cells, str(path), AGES) == "data.unreadable"


def test_utf_16_with_half_a_pair_is_refused_with_its_line(tmp_path: Path):
    path = tmp_path / "half.csv"
    path.write_bytes("age\n1\n".encode("utf-16-le") + b"\x00\xd8" + "\n".encode("utf-16-le"))
    assert code_of(count_cells, pg.Files(str(path), encoding="utf-16-le"), AGES) == "data.unreadable"


def test_no_encoding_that_may_be_named_decodes_to_half_a_pair():
    """Copies in UTF-8 are written without a check for them."""
    pairs = bytes(byte for pair in itertools.product(range(256), repeat=2) for byte in pair)
    named = {name for name in encodings.aliases.aliases.values() if expected_option("encoding", name) is None}
    assert {"utf_16", "latin_1", "gb18030", "cp1252"} <= named
    for name in sorted(named):
        decoded = codecs.decode(pairs, name, "replace")
        assert not re.search("[\ud800-\udfff]", decoded), name


def test_a_byte_order_mark_in_pieces_is_no_part_of_a_name(tmp_path: Path):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(b"".join(gzip.compress(part) for part in (b"\xef", b"\xbb", b"\xbfage\n1\n")))
    assert count_cells(str(path), AGES).vector().tolist() == [0, 1, 0]


def test_options_that_must_have_a_value():
    with pytest.raises(InputError, match="encoding=None: expected an encoding") as caught:
        pg.Files("people.csv", encoding=None)
    assert caught.value.code == "data.options"


def test_labels_beyond_64_bits():
    large = Domain({"x": [2.0**63, 1e300, 1]})
    wide = pa.table({"x": pa.array([2**63, 1, 7], pa.uint64())})
    assert count_cells(wide, large, unknown="drop").vector().tolist() == [1, 0, 1]
    with pytest.raises(InputError, match="at most 64 bits") as caught:
        count_cells(wide, Domain({"x": [2**70, 1]}))
    assert caught.value.code == "data.label"


def test_options_of_text_files_are_not_for_a_database(tmp_path: Path):
    database = tmp_path / "people.db"
    with duckdb.connect(str(database)) as opened:
        opened.execute("CREATE TABLE people AS SELECT 1 AS age")
    address = f"duckdb://{database}?table=people"
    assert count_cells(address, AGES).vector().tolist() == [0, 1, 0]
    assert code_of(count_cells, pg.Files(address, delimiter=";"), AGES) == "data.options"
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database")
    assert code_of(count_cells, f"duckdb://{broken}?table=people", AGES) == "data.unreadable"


def test_pipes_are_refused(tmp_path: Path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    assert code_of(count_cells, str(pipe), AGES) == "data.no-file"


def test_a_path_that_no_file_can_have_is_no_pipe():
    check_plain("a\0b")
    with pytest.raises(DataError, match="is a folder: expected a file"):
        check_plain(os.curdir)


def test_nodes_that_cannot_be_looked_up_are_unknown_nodes():
    with pytest.raises(DataError, match="not in the network: '\\[1\\]' 1 time") as caught:
        read_edges([(0, 1), ([1], 2)], Network(3))
    assert caught.value.code == "data.edges"
    assert read_edges([(0, 1), ([1], 2)], Network(3), unknown="drop").rows == 1


def test_lost_edges_would_be_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Source, "rows_of", lambda source, statement: [(3,)])
    monkeypatch.setattr(Source, "fingerprint", lambda source: "ab" * 32)
    with pytest.raises(DataError, match="3 edges, but 2 were counted") as caught:
        read_edges(pa.table({"from": [0, 1], "to": [1, 2]}), Network(3))
    assert caught.value.code == "data.lost"


def test_rules_for_edges_are_for_edges():
    policy = pg.Policy(AGES)
    query = pg.queries.identity(AGES)
    assert (
        code_of(pg.release, query, policy, [1, 2, 3], epsilon=1, edges={"loops": "drop"}) == "release.edges"
    )
    network = pg.Policy(Network(3))
    edges = pg.queries.adjacency(network.domain)
    assert (
        code_of(pg.release, edges, network, nx.path_graph(3), epsilon=1, edges={"odd": "drop"})
        == "release.edges"
    )


def test_weights_and_lines_that_are_no_edges_are_named(tmp_path: Path):
    network = Network(3)
    with pytest.raises(DataError, match="above 1"):
        read_edges(np.array([[0, 2, 0], [2, 0, 0], [0, 0, 0]]), network)
    path = tmp_path / "edges.txt"
    path.write_text("from to\n0 1\n")
    with pytest.raises(DataError, match="name columns"):
        read_edges(str(path), network)
    path.write_text("0,1 2,0\n")
    with pytest.raises(DataError, match="commas"):
        read_edges(str(path), network)


def test_a_measure_beyond_exact_floats_needs_whole_numbers():
    wide = SimpleNamespace(column="income", unit=1, lowest=0, highest=2**60)
    assert code_of(level_sql, "x", "DOUBLE", wide) == "data.inexact"


def test_datasets_of_arrow_and_fetched_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import pyarrow.dataset as datasets

    assert count_cells(datasets.dataset(pa.table({"age": [0, 2, 2]})), AGES).vector().tolist() == [1, 0, 2]
    (tmp_path / "copy.csv").write_text("age\n1\n1\n")
    monkeypatch.setattr(files, "_fetched", lambda address: (str(tmp_path / "copy.csv"), None))
    assert count_cells("https://example.org/people.csv", AGES).vector().tolist() == [0, 2, 0]


def test_edges_of_a_select_are_counted():
    connection = duckdb.connect()
    query = 'SELECT 0 AS "from", 1 AS "to" UNION ALL SELECT 1, 2'
    assert read_edges((connection, query), Network(3)).rows == 2
    connection.close()


def test_measures_need_their_column_and_a_rule_for_missing_numbers():
    measure = pg.Measure("income", 0, 10)
    query, policy = pg.queries.sums(AGES, [()], measure), pg.Policy(AGES)
    table = pa.table({"age": [0, 1], "income": [3, None]})
    assert code_of(pg.release, query, policy, table.drop_columns(["income"]), epsilon=1).startswith("data.")
    assert code_of(pg.release, query, policy, table, epsilon=1) == "measure.no-value"
    assert code_of(pg.release, query, policy, pa.table({"age": [7], "income": [1]}), epsilon=1).startswith(
        "data."
    )
    for missing in ("drop", 4):
        ruled = pg.Measure("income", 0, 10, missing=missing)
        sums = pg.queries.sums(AGES, [()], ruled)
        made = pg.release(sums, policy, table, epsilon=1, dataset="people", source=pg.SeededRng(1))
        assert len(made.values()) == 1


def test_a_header_without_names_is_empty(tmp_path: Path):
    path = tmp_path / "blank.csv"
    path.write_text("\n1\n")
    assert code_of(count_cells, str(path), AGES).startswith("data.")
    for content in (b"\xef\xbb\xbf", b"\n\n"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="expected a line with the names of the columns") as caught:
            count_cells(str(path), AGES)
        assert caught.value.code == "data.empty"
