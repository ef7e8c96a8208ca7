"""Reading is part of the mechanism: one record more changes at most one count by one, or the whole read is refused with the place."""

from __future__ import annotations

import datetime
import enum
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from policygraph.curator.counting import count_cells, read_edges
from policygraph.curator.counting.reading import Files, how_read
from policygraph.curator.counting.source import connect as open_engine
from policygraph.curator.counting.tables import count_measure
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain, Network
from policygraph.model.measure import Measure
from tests.oracles import counting as oracle
from tests.oracles import reading

Record = dict[str, Any]

DOMAINS = {
    "words": Domain({"a": ["F", "M", "o"], "b": 3}),
    "numerals": Domain({"a": ["0", "1", "1.0", "true", "it's"], "b": [0, 1, 2.5]}),
    "truths": Domain({"a": [False, True], "b": [0.5, 1.0, 2.0]}),
    "mixed": Domain({"a": ["low", 1, 0.25, ""], "b": [1, 5, 2**40]}),
}
BASES: dict[str, list[Record]] = {
    "words": [{"a": "FM"[i % 2], "b": i % 3} for i in range(12)],
    "numerals": [{"a": i % 2, "b": (0, 1, 2.5)[i % 3]} for i in range(12)],
    "truths": [{"a": i % 3 == 0, "b": (0.5, 1.0, 2.0)[i % 3]} for i in range(12)],
    "mixed": [{"a": (1, 0.25)[i % 2], "b": (1, 5, 2**40)[i % 3]} for i in range(12)],
}
OTHERS: dict[str, Record] = {
    "words": {"a": "o", "b": 2},
    "numerals": {"a": "it's", "b": 2.5},
    "truths": {"a": True, "b": 2.0},
    "mixed": {"a": "low", "b": 5},
}

TEXTS = [
    *(
        "",
        " ",
        "F",
        "M",
        "f",
        "o",
        "low",
        "0",
        "1",
        "2",
        "5",
        "1.0",
        "2.",
        "0.25",
        "0.5",
        "01",
        " 1 ",
        "+1",
        "1e0",
        "-1",
        "2.5",
    ),
    *(
        "NULL",
        "null",
        "None",
        "nan",
        "NaN",
        "inf",
        "true",
        "False",
        "TRUE",
        "it's",
        "'",
        '"',
        '""',
        'say "x"',
        'it is 5" tall',
        "a,b",
    ),
    *(
        "a;b",
        "a|b",
        "a\tb",
        "line\nbreak",
        "carriage\rreturn",
        "both\r\n",
        "\\",
        "\\n",
        '\\"',
        "#",
        "# no",
        "%",
        "é",
        "日本語",
        "🙂",
        "\ufeff",
    ),
    *(
        "\u2028",
        "\x1e",
        "\x1f",
        "\x01",
        "\x0b",
        "9" * 40,
        "1" * 400,
        "[1]",
        '{"a": 1}',
        "2024-01-31",
        "=1+1",
        "0x1",
        "1_0",
        "x" * 3000,
    ),
]
NUMBERS = [
    0,
    1,
    2,
    3,
    5,
    -1,
    2**40,
    2**53 + 1,
    2**62,
    2**64,
    -(2**63),
    10**30,
    0.0,
    -0.0,
    1.0,
    2.0,
    0.5,
    0.25,
    2.5,
    1e300,
    1e-300,
]
PLAIN = [None, True, False, *NUMBERS, float("nan"), float("inf"), *TEXTS]
NESTED = [[], [1], {}, {"a": "F"}, [{"a": 1}], {"t": "F", "w": 1}]
STRANGE = [
    *(
        Decimal("1"),
        Decimal("1.0"),
        Decimal("0.25"),
        Decimal("NaN"),
        b"F",
        b"\xff",
        (1,),
        {1},
        1j,
        object(),
        "\ud800",
        10**400,
        int,
    ),
    *(
        datetime.date(2024, 1, 31),
        datetime.datetime(2024, 1, 31, 1, 2, 3, 450000),
        np.int8(1),
        np.float32(0.25),
        np.bool_(True),
    ),
    *(np.datetime64("2024-01-31"), pd.NaT, pd.NA, pd.Timestamp("2024-01-31"), pd.Timedelta("1D")),
]
ROWS = [
    "F,1",
    "M,2",
    '"F","1"',
    '"M",0',
    "F,1,2",
    "F",
    "1",
    ",",
    '""',
    '"F"x,1',
    '"F"",1',
    'F","1',
    '"it is 5" tall",1',
    ' "F",1',
    "F,1\rM,2",
]
TOKENS = [
    *"\",;|\t\r\n\\'# F01",
    '""',
    "\r\n",
    '","',
    "F,1",
    "M;2",
    "o\t0",
    "\0",
    "é",
    "\ufeff",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    "NULL",
    "\x1a",
]
JSON_ROWS = [
    *(
        '{"a": "F", "b": 1}',
        '{"a":"M","b":"2"}',
        '{"b": 1}',
        "{}",
        "null",
        "5",
        "[]",
        '[{"a": "F", "b": 1}]',
        '{"a": "F", "b": 1',
        '"a": "F"}',
    ),
    *(
        '{"a": "F", "b": 1}}',
        '{"a": "F", "b": 1} {"a": "F", "b": 1}',
        "{'a': 'F'}",
        '{"a": "F", "a": "M", "b": 1}',
        '{"a": NaN, "b": 1}',
    ),
    *(
        '{"a": "F", "b": 1e400}',
        '{"a": "\\ud800", "b": 1}',
        '{"a": "\\u0000", "b": 1}',
        '{"a": "F",\n"b": 1}',
        '{"a": "x\ty", "b": 1}',
    ),
    *(
        '{"a": "F", "b": 01}',
        '{"a": "F", "b": 1,}',
        "// F",
        '{"a": "F", "b": -0.0}',
        '{"A": "F", "B": 1, "a": "M", "b": 0}',
        "]",
        ",",
        "[",
        '"',
    ),
    *(
        '{"a": {"a": "F"}, "b": [1]}',
        '{"a": true, "b": true}',
        '{"a": "F", "b": 1.0}',
        '{"a": "F", "b": 123456789012345678901234567890}',
        "\r",
        "\0",
    ),
    *(
        '{"a": "F", "b": 1}\r',
        '{"a": "F"\r, "b": 1}',
        '\ufeff{"a": "F", "b": 1}',
        '{"a": "\xff", "b": 2}',
        '{"\\u0061": "F", "b": 1}',
        '{"": 1, "a/b": 2}',
    ),
]

# How many records are added to each kind of source; every test holds its own number, and the test below their sum.
CSV_RECORDS, CSV_RAW, CSV_ONE = 240, 70, 40
JSON_RECORDS, JSON_RAW, JSON_ONE = 240, 100, 80
FRAMES, TABLES, SEVERAL, EDGES, SUMS = 240, 160, 120, 120, 80
ARROW, POLARS = 24, 24
DIALECTS = {
    "comma": (",", False, "\n", ".csv"),
    "comma quoted": (",", True, "\n", ".csv"),
    "comma windows": (",", False, "\r\n", ".csv"),
    "semicolon": (";", False, "\n", ".csv"),
    "semicolon quoted windows": (";", True, "\r\n", ".csv"),
    "tab": ("\t", False, "\n", ".tsv"),
    "pipe": ("|", False, "\n", ".txt"),
    "gz": (",", True, "\n", ".csv.gz"),
}


def test_at_least_5000_records_are_added() -> None:
    """Each of the tests fails if it tries fewer records than it is said to try here; what no library can hold is not tried."""
    added = len(DIALECTS) * (CSV_RECORDS + CSV_RAW + CSV_ONE) + 2 * (JSON_RECORDS + JSON_RAW + JSON_ONE)
    added += 3 * FRAMES + 4 * TABLES + 4 * SEVERAL + 4 * EDGES + 4 * SUMS
    assert added + len(ARROW_COLUMNS) * ARROW + len(POLARS_COLUMNS) * POLARS >= 5000


@cache
def engine() -> Any:
    return open_engine()


@pytest.fixture
def one_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """One database for thousands of small reads, half of whose time is that of opening it; that it is shut off from files has tests of its own."""

    def connect() -> Any:
        connection = engine().cursor()
        connection.execute("SET TimeZone = 'UTC'")
        return connection

    for module in ("frames", "files", "edges"):
        monkeypatch.setattr(f"policygraph.curator.counting.{module}.connect", connect)
        monkeypatch.setattr(f"policygraph.curator.counting.{module}.locked", lambda given, paths=(): given)


def rules(kind: str) -> list[Any]:
    return ["drop", OTHERS[kind], "error"]


def counted(domain: Domain, records: Sequence[Record], unknown: Any) -> list[int] | None:
    """What the literal definition counts; None where the rule refuses a record."""
    cells, missed = oracle.count(domain, records, unknown)
    if missed and unknown != "drop":
        return None
    vector = [0] * domain.size
    for cell, n in cells.items():
        vector[domain.index(cell)] = n
    return vector


def read(data: Any, domain: Domain, unknown: Any) -> list[int] | DataError:
    try:
        return [int(n) for n in count_cells(data, domain, unknown=unknown).vector()]
    except DataError as refusal:
        return refusal


def assert_one_more(before: Sequence[int], after: list[int] | DataError, what: Any) -> None:
    """The invariant itself."""
    if isinstance(after, DataError):
        assert after.code.startswith(("data.", "measure.")), (what, after)
        return
    change = [n - m for n, m in zip(after, before, strict=True)]
    assert sorted(change)[:-1] == [0] * (len(change) - 1), (what, change)
    assert max(change) in (0, 1), (what, change)


def placed(rng: random.Random, base: Sequence[Any], *more: Any) -> list[Any]:
    """Base records with others at the start, in the middle or at the end."""
    whole = list(base)
    for one in more:
        whole.insert(rng.choice([0, len(whole) // 2, len(whole)]), one)
    return whole


def batches(rng: random.Random, many: int, size: int, values: Sequence[Any]) -> Iterator[list[Record]]:
    for _ in range(0, many, size):
        yield [{"a": rng.choice(values), "b": rng.choice(values)} for _ in range(size)]


def text_of(value: Any) -> str:
    return "" if value is None else str(value)


def csv_line(fields: Sequence[str], delimiter: str, always: bool) -> str:
    def one(text: str) -> str:
        # A record of one empty field would be an empty line.
        special = any(sign in text for sign in (delimiter, '"', "\n", "\r"))
        return '"' + text.replace('"', '""') + '"' if always or special else text

    return delimiter.join(map(one, fields))


def write_text(path: Path, raw: bytes) -> Path:
    path.write_bytes(gzip.compress(raw, 1) if path.suffix == ".gz" else raw)
    return path


def csv_values(records: Sequence[Sequence[str]], domain: Domain) -> list[Record]:
    """Records of CSV as the oracle of values takes them: an empty field is no value unless that is a label."""
    names = list(records[0])
    return [
        {
            name: None if text == "" and "" not in list(domain.labels(name))[:9] else text
            for name, text in zip(names, fields, strict=True)
        }
        for fields in records[1:]
    ]


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_csv_records(dialect: str, tmp_path: Path) -> None:
    delimiter, always, newline, suffix = DIALECTS[dialect]
    rng = random.Random(dialect)
    path = tmp_path / f"x{suffix}"
    tried = 0
    for kind, batch in zip([*DOMAINS] * 4, batches(rng, CSV_RECORDS, CSV_RECORDS // 16, PLAIN), strict=True):
        tried += len(batch)
        domain, base = DOMAINS[kind], BASES[kind]
        texts = [[text_of(value) for value in record.values()] for record in placed(rng, base, *batch)]
        lines = [csv_line(fields, delimiter, always) for fields in (["a", "b"], *texts)]
        raw = (newline.join(lines) + newline * rng.randrange(3)).encode("utf-8", "replace")
        write_text(path, raw)
        meant = reading.csv_records(raw, delimiter)
        assert meant is not None
        assert meant[1:] == texts
        for unknown in rules(kind)[:2]:
            expected = counted(domain, csv_values(meant, domain), unknown)
            assert read(path, domain, unknown) == expected
    assert tried >= CSV_RECORDS


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_csv_one_record_more(dialect: str, tmp_path: Path) -> None:
    delimiter, always, newline, suffix = DIALECTS[dialect]
    rng = random.Random(f"one {dialect}")
    path = tmp_path / f"x{suffix}"
    ending = newline * rng.randrange(2)

    def count(kind: str, records: Sequence[Record], unknown: Any) -> list[int] | DataError:
        fields = [["a", "b"], *([text_of(value) for value in record.values()] for record in records)]
        lines = [csv_line(one, delimiter, always) for one in fields]
        write_text(path, (newline.join(lines) + ending).encode("utf-8", "replace"))
        return read(path, DOMAINS[kind], unknown)

    before = {kind: count(kind, base, "drop") for kind, base in BASES.items()}
    for n in range(CSV_ONE):
        kind = [*DOMAINS][n % 4]
        known = before[kind]
        assert isinstance(known, list)
        record = {"a": rng.choice(PLAIN), "b": rng.choice([*PLAIN, *(r["b"] for r in BASES[kind])])}
        unknown = rng.choice(rules(kind))
        after = count(kind, placed(rng, BASES[kind], record), unknown)
        assert_one_more(known, after, record)
        # A well-formed record is refused by the rule for what is no label only.
        assert not isinstance(after, DataError) or (
            unknown == "error" and after.code == "data.unknown-value"
        ), record


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_csv_raw_lines(dialect: str, tmp_path: Path) -> None:
    delimiter, always, newline, suffix = DIALECTS[dialect]
    rng = random.Random(f"raw {dialect}")
    path = tmp_path / f"x{suffix}"
    domain, base = DOMAINS["words"], BASES["words"]
    head = csv_line(["a", "b"], delimiter, always)
    lines = [csv_line([text_of(v) for v in record.values()], delimiter, always).encode() for record in base]
    before = counted(domain, [{"a": r["a"], "b": str(r["b"])} for r in base], "drop")
    assert before is not None
    for n in range(CSV_RAW):
        tokens = [rng.choice(TOKENS) for _ in range(rng.randrange(7))]
        added = b"".join(t if isinstance(t, bytes) else t.encode() for t in tokens)
        if n < len(ROWS):
            added = ROWS[n].replace(",", delimiter).encode()
        raw = newline.encode().join([head.encode(), *placed(rng, lines, added)])
        write_text(path, raw)
        unknown = rules("words")[n % 3]
        found = read(path, domain, unknown)
        meant = reading.csv_records(raw, delimiter)
        if meant is None:
            assert isinstance(found, DataError), (added, found)
            assert found.code == "data.unreadable", added
            assert "near line" in str(found), added
        else:
            expected = counted(domain, csv_values(meant, domain), unknown)
            assert found == expected or (expected is None and isinstance(found, DataError)), (added, found)
            # A line that is several records, or none, is not one record more.
            if len(meant) <= len(lines) + 2:
                assert_one_more(before, found, added)


def json_values(records: Sequence[Record]) -> list[Record]:
    return [{name: _flat(record.get(name)) for name in ("a", "b")} for record in records]


def _flat(value: Any) -> Any:
    return f"nested {value}" if isinstance(value, (list, dict)) else value


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("form", ["array", "lines"])
def test_json_records(form: str, tmp_path: Path) -> None:
    rng = random.Random(form)
    path = tmp_path / ("x.json" if form == "array" else "x.ndjson")
    values = [*PLAIN, *NESTED]
    tried = 0
    for kind, batch in zip(
        [*DOMAINS] * 4, batches(rng, JSON_RECORDS, JSON_RECORDS // 16, values), strict=True
    ):
        tried += len(batch)
        domain, base = DOMAINS[kind], BASES[kind]
        records = placed(rng, base, *batch)
        for record in batch[:3]:
            record.pop(rng.choice(["a", "b"]))
        lines = [json.dumps(record, ensure_ascii=rng.random() < 0.5) for record in records]
        raw = ("[" + ",\n".join(lines) + "]" if form == "array" else "\n".join(lines)).encode()
        path.write_bytes(raw)
        meant = reading.json_array(raw) if form == "array" else reading.json_lines(raw)
        assert meant is not None
        for unknown in rules(kind)[:2]:
            assert read(path, domain, unknown) == counted(domain, json_values(meant), unknown)
    assert tried >= JSON_RECORDS


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("form", ["array", "lines"])
def test_json_one_record_more(form: str, tmp_path: Path) -> None:
    rng = random.Random(f"one {form}")
    path = tmp_path / ("x.json" if form == "array" else "x.ndjson")

    def count(kind: str, records: Sequence[Record], unknown: Any) -> list[int] | DataError:
        lines = [json.dumps(record, ensure_ascii=len(records) % 2 == 0) for record in records]
        path.write_bytes(("[" + ", ".join(lines) + "]" if form == "array" else "\n".join(lines)).encode())
        return read(path, DOMAINS[kind], unknown)

    before = {kind: count(kind, base, "drop") for kind, base in BASES.items()}
    for n in range(JSON_ONE):
        kind = [*DOMAINS][n % 4]
        known = before[kind]
        assert isinstance(known, list)
        names = rng.choice([["a", "b"], ["b", "a"], ["a", "b", "c"], ["a"], ["A", "b"], []])
        record = {name: rng.choice([*PLAIN, *NESTED, *BASES[kind][0].values()]) for name in names}
        unknown = rng.choice(rules(kind))
        after = count(kind, placed(rng, BASES[kind], record), unknown)
        assert_one_more(known, after, record)
        assert not isinstance(after, DataError) or (
            unknown == "error" and after.code == "data.unknown-value"
        ), record


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("form", ["array", "lines"])
def test_json_raw_text(form: str, tmp_path: Path) -> None:
    rng = random.Random(f"raw {form}")
    path = tmp_path / ("x.json" if form == "array" else "x.jsonl")
    domain, base = DOMAINS["words"], BASES["words"]
    lines = [json.dumps(record).encode() for record in base]
    before = counted(domain, base, "drop")
    assert before is not None
    for n in range(JSON_RAW):
        added = JSON_ROWS[n % len(JSON_ROWS)].encode("latin-1", "replace" if n % 2 else "ignore")
        if n >= 2 * len(JSON_ROWS):
            added = "".join(
                rng.choice([*'{}[]",: \n\\', '{"a":', '"F"', "1", ', "b":', "}\n"]) for _ in range(6)
            ).encode()
        whole = placed(rng, lines, added)
        at = whole.index(added) if added not in lines else 0
        raw = b"[" + b",".join(whole) + b"]" if form == "array" else b"\n".join(whole)
        path.write_bytes(raw)
        unknown = rules("words")[n % 3]
        found = read(path, domain, unknown)
        meant = reading.json_array(raw) if form == "array" else reading.json_lines(raw)
        if meant is None:
            # The engine forgives a comma too many, which harms no other record.
            assert_one_more(before, found, added)
            if isinstance(found, DataError) and found.code == "data.unreadable":
                assert str(path) in str(found), (added, found)
                place = re.search(rf"{'record' if form == 'array' else 'line'} (\d+)", str(found))
                assert place is not None, (added, found)
                # The text that was added may be some records before it is none.
                assert at <= int(place.group(1)) <= at + 5, (added, found)
                if form == "lines":
                    assert int(place.group(1)) == reading.json_first_wrong_line(raw), (added, found)
        else:
            expected = counted(domain, json_values(meant), unknown)
            assert found == expected or (expected is None and isinstance(found, DataError)), (added, found)


def frames(library: str, records: Sequence[Record]) -> Any:
    if library == "pandas":
        return pd.DataFrame(records, columns=["a", "b"])
    if library == "pandas objects":
        return pd.DataFrame(
            {name: pd.Series([r[name] for r in records], dtype=object) for name in ("a", "b")}
        )
    return pl.DataFrame(records, schema=["a", "b"], strict=False, infer_schema_length=None)


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("library", ["pandas", "pandas objects", "polars"])
@pytest.mark.parametrize("kind", DOMAINS)
def test_frames(library: str, kind: str) -> None:
    rng = random.Random(f"{library} {kind}")
    domain, base = DOMAINS[kind], BASES[kind]
    before = {str(rule): read(frames(library, base), domain, rule) for rule in rules(kind)}
    values = [*PLAIN, *NESTED, *STRANGE] if library != "polars" else PLAIN
    tried = 0
    for _ in range(FRAMES):
        record = {"a": rng.choice(values), "b": rng.choice(values)}
        if rng.random() < 0.5:
            record[rng.choice("ab")] = rng.choice(base)["ab"[rng.randrange(2)]]
        unknown = rng.choice(rules(kind))
        try:
            frame = frames(library, placed(rng, base, record))
        except (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError):
            continue
        known = before[str(unknown)]
        assert isinstance(known, list)
        after = read(frame, domain, unknown)
        assert_one_more(known, after, record)
        assert_placed(after, record)
        tried += 1
        if tried == FRAMES // 4:
            break
    assert tried == FRAMES // 4


def assert_placed(after: list[int] | DataError, what: Any) -> None:
    """What a frame cannot be read for is told with the frame or the row."""
    if isinstance(after, DataError) and after.code == "data.unreadable":
        assert re.search(r"the \w+ frame|row [\d,]+", str(after)), (what, after)


def chunked(kind: pa.DataType) -> Callable[[list[Any]], Any]:
    """Arrow arrays in pieces, as files of several row groups give them: each piece of a dictionary has its own."""

    def make(values: list[Any]) -> Any:
        pieces = [pa.array(part, kind) for part in (values[:5], values[5:6], values[6:]) if part]
        return pa.chunked_array(pieces)

    return make


def dictionary(values: list[Any]) -> Any:
    """A dictionary that lists a text twice, one that no record has, and no value at all."""
    listed = [*dict.fromkeys(v for v in values if v is not None), "unused", values[0], None]
    codes = [listed.index(v) if n % 3 or v != values[0] else len(listed) - 2 for n, v in enumerate(values)]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), pa.array(listed, pa.string()))


WORDS = ["F", "M", "o", None, "", *TEXTS]
WHOLES = [0, 1, 2, 3, None, -1, 127]
FLOATS = [0.0, -0.0, 1.0, 2.0, 0.5, None, float("nan"), float("inf"), -float("inf"), 1e300]
# For each type of a column: labels, what the records of the base have, what one more may have, and how the column is made.
Maker = Callable[[list[Any]], Any]
ARROW_COLUMNS: dict[str, tuple[list[Any], list[Any], list[Any], Maker]] = {
    "string": (["F", "M", ""], ["F", "M"], WORDS, lambda v: pa.array(v, pa.string())),
    "large string": (["F", "M"], ["F", "M"], WORDS, lambda v: pa.array(v, pa.large_string())),
    "string view": (["F", "M"], ["F", "M"], WORDS, lambda v: pa.array(v, pa.string_view())),
    "string in pieces": (["F", "M"], ["F", "M"], WORDS, chunked(pa.string())),
    "dictionary": (["F", "M"], ["F", "M"], WORDS, lambda v: pa.array(v, pa.string()).dictionary_encode()),
    "dictionary in pieces": (["M", "F"], ["F", "M"], WORDS, chunked(pa.dictionary(pa.int8(), pa.string()))),
    "dictionary with repeats": (["F", "M"], ["F", "M"], WORDS, dictionary),
    "dictionary of numbers": ([0, 1, 2], [0, 1], WHOLES, lambda v: pa.array(v, pa.int64()).dictionary_encode()),
    "int8": ([0, 1, 2], [0, 1], WHOLES, lambda v: pa.array(v, pa.int8())),
    "uint32": (["0", "1", "2"], [0, 1], [0, 1, 2, None, 2**32 - 1], lambda v: pa.array(v, pa.uint32())),
    "int64 in pieces": ([0, 1, 2.0], [0, 1], [*WHOLES, 2**62, -(2**63)], chunked(pa.int64())),
    "uint64": ([0, 1, 2**40], [0, 2**40], [0, None, 2**64 - 1, 2**63], lambda v: pa.array(v, pa.uint64())),
    "guessed": ([0, 1, 2], [0, 1], [*WHOLES, 0.5, 1.0, float("nan")], pa.array),
    "bool": ([False, True], [False, True], [False, True, None], lambda v: pa.array(v, pa.bool_())),
    "bool as numbers": ([1, 0], [False, True], [False, True, None], chunked(pa.bool_())),
    "float64": ([0, 1.0, 0.5], [0.0, 1.0], FLOATS, lambda v: pa.array(v, pa.float64())),
    "float32": ([0, 1.0, 0.5], [0.5, 1.0], FLOATS, lambda v: pa.array(v, pa.float32())),
    "float from pandas": ([0, 1, 2], [0, 1], FLOATS, lambda v: pa.array(v, pa.float64(), from_pandas=True)),
    "null": ([0, 1], [None], [None], pa.array),
    "run ends": (["F", "M"], ["F", "M"], WORDS, lambda v: pc.run_end_encode(pa.array(v, pa.string()))),
}  # fmt: skip
POLARS_COLUMNS: dict[str, tuple[list[Any], list[Any], list[Any], Maker]] = {
    "String": (["F", "M"], ["F", "M"], WORDS, lambda v: pl.Series(v, dtype=pl.String)),
    "Categorical": (["M", "F"], ["F", "M"], WORDS, lambda v: pl.Series(v, dtype=pl.Categorical)),
    "Enum": (["F", "M"], ["F", "M"], ["F", "M", "o", None], lambda v: pl.Series(v, dtype=pl.Enum(["M", "o", "F"]))),
    "Enum of its values": (
        ["F", "M"], ["F", "M"], WORDS,
        lambda v: pl.Series(v, dtype=pl.Enum(sorted({x for x in v if x is not None}))),
    ),
    "Int64": ([0, 1, 2], [0, 1], [*WHOLES, 2**62], lambda v: pl.Series(v, dtype=pl.Int64)),
    "UInt8": (["0", "1"], [0, 1], [0, 1, None, 255], lambda v: pl.Series(v, dtype=pl.UInt8)),
    "Boolean": ([False, True], [False, True], [False, True, None], lambda v: pl.Series(v, dtype=pl.Boolean)),
    "Float64": ([0, 1, 0.5], [0.0, 1.0], FLOATS, lambda v: pl.Series(v, dtype=pl.Float64)),
    "guessed": ([0, 1], [0, 1], [*WHOLES, 0.5, "0", True, 1.0], lambda v: pl.Series(v, strict=False)),
    "Object": (["F", 1], ["F", 1], [*PLAIN, *NESTED], lambda v: pl.Series(v, dtype=pl.Object)),
    "Null": ([0, 1], [None], [None], lambda v: pl.Series(v, dtype=pl.Null)),
}  # fmt: skip


def one_column_more(rng: random.Random, size: int, case: tuple[Any, ...], frame: Maker) -> None:
    labels, base, values, make = case
    domain = Domain({"a": labels})
    records = [base[n % len(base)] for n in range(8)]
    before = read(frame(make(records)), domain, "drop")
    assert before == counted(domain, [{"a": v} for v in records], "drop")
    tried = 0
    for _ in range(8 * size):
        value = rng.choice(values)
        # Where the base is refused, one record more shows nothing.
        unknown = rng.choice(["drop", {"a": labels[-1]}, *(["error"] if None not in base else [])])
        whole = placed(rng, records, value)
        try:
            made = frame(make(whole))
        except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, OverflowError, ValueError):
            continue
        # Where the base has records without a value, a rule with a label gives them one.
        known = read(frame(make(records)), domain, unknown) if None in base else before
        after = read(made, domain, unknown)
        assert isinstance(known, list)
        assert_one_more(known, after, (value, unknown))
        assert_placed(after, value)
        tried += 1
        if tried == size:
            break
    assert tried == size


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("kind", ARROW_COLUMNS)
def test_arrow_one_record_more(kind: str) -> None:
    rng = random.Random(f"arrow {kind}")

    def frame(column: Any) -> Any:
        table = pa.table({"a": column})
        return table.to_reader(max_chunksize=3) if rng.random() < 0.2 else table

    one_column_more(rng, ARROW, ARROW_COLUMNS[kind], frame)


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("kind", POLARS_COLUMNS)
def test_polars_one_record_more(kind: str) -> None:
    rng = random.Random(f"polars {kind}")

    def frame(column: Any) -> Any:
        made = pl.DataFrame({"a": column})
        return made.lazy() if rng.random() < 0.2 else made

    one_column_more(rng, POLARS, POLARS_COLUMNS[kind], frame)


CASTS: dict[str, Callable[[list[Any]], Any]] = {
    "int64": lambda v: pa.array(v, pa.int64()),
    "int32": lambda v: pa.array([x if x is None or x < 2**31 else None for x in v], pa.int32()),
    "uint64": lambda v: pa.array(v, pa.uint64()),
    "float64": lambda v: pa.array([None if x is None else float(x) for x in v], pa.float64()),
    "decimal": lambda v: pa.array([None if x is None else Decimal(x) for x in v], pa.decimal128(20, 4)),
    "string": lambda v: pa.array([None if x is None else str(x) for x in v]),
    "dictionary": lambda v: pa.array(v, pa.int64()).dictionary_encode(),
    "pandas Int64": lambda v: pd.array(v, dtype="Int64"),
    "pandas object": lambda v: pd.Series(v, dtype=object),
    "pandas category": lambda v: pd.Series(v, dtype="category"),
    "pandas float": lambda v: pd.Series(v, dtype="float64"),
    "pandas text": lambda v: pd.Series([None if x is None else str(x) for x in v], dtype="str"),
    "polars": lambda v: pl.Series(v),
}


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("cast", CASTS)
@pytest.mark.parametrize(
    "labels", [3, [0, 1, 2], ["0", "1", "2"], [0.0, 1.0, 2.0], [2, 1, 0], ["2", "0", "1.0"], [False, True]]
)
def test_whole_numbers_count_alike_in_every_type(cast: str, labels: Any) -> None:
    """A missing value or a word turns integers of pandas into floats or objects, and the other records stay where they are."""
    domain = Domain({"a": labels})
    values = [0, 1, 2, 2, 1, 0, 0, None]
    made = CASTS[cast](values)
    frame = (
        pd.DataFrame({"a": made})
        if cast.startswith("pandas")
        else pa.table({"a": made})
        if cast != "polars"
        else pl.DataFrame({"a": made})
    )
    expected = counted(domain, [{"a": v} for v in values], "drop")
    if cast in ("string", "pandas text") and labels == ["2", "0", "1.0"]:
        expected = [2, 3, 0]  # a text is equal to a text only
    assert read(frame, domain, "drop") == expected


def test_truth_values_count_alike_in_every_type() -> None:
    for labels in ([False, True], 2, ["false", "true"], ["False", "True"], [0.0, 1.0]):
        domain = Domain({"a": labels})
        for frame in (
            pd.DataFrame({"a": [True, False, True]}),
            pd.DataFrame({"a": [True, False, True, None]}),
            pd.DataFrame({"a": pd.array([True, False, True, None], dtype="boolean")}),
            pa.table({"a": [True, False, True]}),
            pl.DataFrame({"a": [True, False, True, None]}),
        ):
            assert read(frame, domain, "drop") == [1, 2]


def test_labels_beyond_the_exact_floats_need_integers() -> None:
    domain = Domain({"a": [2**53, 2**53 + 1]})
    assert read(pd.DataFrame({"a": [2**53 + 1]}), domain, "drop") == [0, 1]
    refusal = read(pd.DataFrame({"a": [2**53 + 1, None]}), domain, "drop")
    assert isinstance(refusal, DataError)
    assert refusal.code == "data.inexact"
    for kept in (pd.array([2**53 + 1, None], dtype="Int64"), pd.Series([2**53 + 1, None], dtype=object)):
        assert read(pd.DataFrame({"a": kept}), domain, "drop") == [0, 1]
    # Floats of their own, and text that only looks large, are another matter.
    assert read(pa.table({"a": [1e300, 1.0]}), Domain({"a": [1e300, 1.0]}), "error") == [1, 1]


def store(kind: str, folder: Path, table: pa.Table) -> Any:
    if kind == "parquet":
        pq.write_table(table, folder / "x.parquet")
        return folder / "x.parquet"
    if kind == "file":
        (folder / "x.db").unlink(missing_ok=True)
        with duckdb.connect(str(folder / "x.db")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
        return f"duckdb://{folder}/x.db?table=people"
    connection = duckdb.connect()
    connection.register("given", table)
    return (
        connection.sql("SELECT * FROM given") if kind == "relation" else (connection, "SELECT * FROM given")
    )


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("kind", ["parquet", "file", "relation", "query"])
def test_tables(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    domain = DOMAINS["words"]
    base = [{"a": r["a"], "b": r["b"]} for r in BASES["words"]]
    for n in range(8):
        many = [
            {"a": rng.choice(TEXTS), "b": rng.choice([None, 0, 1, 2, 3, -1, 2**40, 2**62])}
            for _ in range(TABLES // 8)
        ]
        records = placed(rng, base, *many)
        unknown = rules("words")[n % 2]
        ints = pa.array([r["b"] for r in records], pa.int64())
        # Whoever wrote the table chose another type for the second column because of one record.
        types = [
            ints,
            ints.cast(pa.float64(), safe=False),
            ints.cast(pa.string()),
            pa.array([r["b"] for r in records], pa.decimal128(30, 2)),
        ]
        table = pa.table({"a": pa.array([r["a"] for r in records]), "b": types[n % 4]})
        assert read(store(kind, tmp_path, table), domain, unknown) == counted(domain, records, unknown)


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("kind", ["csv", "parquet", "ndjson", "folder"])
def test_several_files(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    domain, base = DOMAINS["words"], BASES["words"]
    for n in range(6):
        many = [{"a": rng.choice(TEXTS), "b": rng.choice([None, 0, 1, 2, 3])} for _ in range(SEVERAL // 6)]
        halves = placed(rng, base[:6], *many), placed(rng, base[6:])
        names = []
        for at, records in enumerate(halves):
            path = tmp_path / f"part{at}.{'csv' if kind == 'folder' else kind}"
            names.append(path)
            if path.suffix == ".csv":
                sign = ",;"[at]
                order = ["a", "b"] if at else ["b", "a"]
                lines = [csv_line([text_of(r[name]) for name in order], sign, False) for r in records]
                path.write_bytes("\n".join([sign.join(order), *lines]).encode())
            elif path.suffix == ".parquet":
                ints = pa.array([r["b"] for r in records], pa.int64())
                kinds = [ints, ints.cast(pa.float64(), safe=False), ints.cast(pa.string())]
                pq.write_table(
                    pa.table(
                        {"a": pa.array([r["a"] for r in records], pa.string()), "b": kinds[(n + at) % 3]}
                    ),
                    path,
                )
            else:
                path.write_text("\n".join(json.dumps(r) for r in records))
        data: Any = tmp_path if kind == "folder" else [str(tmp_path / f"part*.{kind}"), names][n % 2]
        records = [*halves[0], *halves[1]]
        if names[0].suffix == ".csv":
            records = [{k: text_of(v) or None for k, v in r.items()} for r in records]
        for unknown in rules("words")[:2]:
            assert read(data, domain, unknown) == counted(domain, records, unknown)


NODES = ["a", "b", "c", "1", "é"]


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("kind", ["txt", "csv", "headless", "pairs"])
def test_edges(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    network = Network(NODES, directed=True, loops=True, multiple=True)
    base = [(rng.choice(NODES), rng.choice(NODES)) for _ in range(10)]
    path = tmp_path / ("g.txt" if kind == "txt" else "g.csv")

    def count(edges: Sequence[Any]) -> list[int] | DataError:
        data: Any = edges
        if kind != "pairs":
            lines = [
                edge if isinstance(edge, str) else (" " if kind == "txt" else ",").join(edge)
                for edge in edges
            ]
            head = ["from,to"] if kind == "csv" else []
            path.write_bytes("\n".join([*head, *lines]).encode("utf-8", "surrogatepass"))
            data = path
        try:
            return [int(n) for n in read_edges(data, network, unknown="drop").vector()]
        except DataError as refusal:
            return refusal

    before = count(base)
    assert isinstance(before, list)
    for _ in range(EDGES):
        if kind == "pairs":
            added: Any = rng.choice(
                [
                    (rng.choice([*NODES, *PLAIN, []]), rng.choice(NODES)),
                    ("a",),
                    ("a", "b", "c"),
                    "ab",
                    5,
                    None,
                ]
            )
        else:
            added = "".join(
                rng.choice(
                    ["a", "b", "1", "é", ",", " ", "\t", '"', "#", ";", "\r", "\0", "\ud800", "\x01", "'"]
                )
                for _ in range(5)
            )
        # Without a header the first line says how the others are separated, and is never doubtful.
        whole = [base[0], *placed(rng, base[1:], added)] if kind == "headless" else placed(rng, base, added)
        assert_one_more(before, count(whole), added)


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("source", ["csv", "json", "pandas", "polars"])
def test_sums_of_a_measure(source: str, tmp_path: Path) -> None:
    rng = random.Random(source)
    domain, measure = Domain({"a": ["F", "M"]}), Measure("y", -5, 10, missing="drop")
    base = [{"a": "FM"[i % 2], "y": i} for i in range(8)]

    def total(records: Sequence[Record]) -> tuple[list[int], list[int]] | DataError:
        data: Any = tmp_path / f"x.{source}"
        if source == "csv":
            rows = [csv_line([text_of(v) for v in r.values()], ",", False) for r in records]
            data.write_bytes("\n".join(["a,y", *rows]).encode("utf-8", "replace"))
        elif source == "json":
            data.write_text(json.dumps(records))
        else:
            data = (
                pd.DataFrame(records)
                if source == "pandas"
                else pl.DataFrame(records, strict=False, infer_schema_length=None)
            )
        try:
            made = count_measure(data, domain, measure, unknown="drop")
        except DataError as refusal:
            return refusal
        return made.vector().tolist(), made.sums(["a"]).tolist()

    before = total(base)
    assert isinstance(before, tuple)
    tried = 0
    for _ in range(4 * SUMS):
        record = {
            "a": rng.choice(["F", "M", *PLAIN]),
            "y": rng.choice(PLAIN if source != "pandas" else [*PLAIN, *NESTED, *STRANGE]),
        }
        try:
            after = total(placed(rng, base, record))
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            continue
        tried += 1
        assert_one_more(before[0], after if isinstance(after, DataError) else after[0], record)
        if not isinstance(after, DataError):
            change = [n - m for n, m in zip(after[1], before[1], strict=True)]
            assert 0 in change, (record, change)
            assert all(-5 <= n <= 10 for n in change), (record, change)
        if tried == SUMS:
            break
    assert tried == SUMS


def people(folder: Path, name: str = "people.csv", sep: str = ",", encoding: str = "utf-8") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [sep.join(map(text_of, record.values())) for record in BASES["words"]]
    path.write_bytes("\n".join([f"a{sep}b", *lines, ""]).encode(encoding))
    return path


def refused(data: Any, code: str, domain: Domain = DOMAINS["words"]) -> str:
    with pytest.raises(InputError) as caught:
        count_cells(data, domain, unknown="drop")
    assert caught.value.code == code, caught.value
    return str(caught.value)


BASE_COUNTS = counted(DOMAINS["words"], BASES["words"], "error")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le"])
def test_declared_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("a;b\né;1\nM;2\n".encode(encoding))
    domain = Domain({"a": ["é", "M"], "b": 3})
    assert count_cells(Files(path, encoding=encoding), domain).vector().tolist() == [0, 1, 0, 0, 0, 1]
    if encoding.startswith("utf-16"):
        path.write_bytes(path.read_bytes() + b"\x00")
        assert "near line" in refused(Files(path, encoding=encoding), "data.unreadable", domain)
    if encoding in ("latin-1", "cp1252", "utf-16"):
        refused(path, "data.unreadable", domain)
    if encoding == "cp1252":
        path.write_bytes(b"a;b\nM;1\n\x81;1\n")
        assert "near line 3" in refused(Files(path, encoding=encoding), "data.unreadable", domain)


def test_declared_dialects(tmp_path: Path) -> None:
    domain = DOMAINS["words"]
    path = tmp_path / "x.csv"
    path.write_text("a|note,b\nF|x,1\n")
    assert "delimiter" in refused(path, "data.delimiter")
    path.write_text("b,a,note|x\n1,F,x\n")
    refused(path, "data.delimiter")
    assert count_cells(Files(path, delimiter=","), domain).rows == 1
    path.write_text("a~b\n'F'~'1'\n'M~x'~1\n")
    made = count_cells(Files(path, delimiter="~", quote="'"), domain, unknown="drop")
    assert (made.rows, made.dropped) == (1, 1)
    path.write_text('a,b\nF,1\n"M,1\n')
    assert "never closed near line 3" in refused(path, "data.unreadable")
    assert count_cells(Files(path, quote=""), domain, unknown="drop").dropped == 1
    for wrong in (
        {"delimiter": ";;"},
        {"delimiter": '"'},
        {"quote": "é"},
        {"encoding": "klingon"},
        {"encoding": "hex"},
        {"hive": 1},
        {"header": "no"},
    ):
        with pytest.raises(InputError) as caught:
            Files(path, **wrong)
        assert caught.value.code == "data.options"
    for nothing in ([], (), None, [path, 7]):
        with pytest.raises(InputError) as caught:
            Files(nothing)  # type: ignore[arg-type]
        assert caught.value.code == "data.options"
    table = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": ["F"], "b": [1]}), table)
    refused(Files(table, delimiter=";"), "data.options")


def test_the_header_line_alone_says_the_delimiter(tmp_path: Path) -> None:
    """A guess from the rows would take the semicolon, which all lines but the first have as often."""
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "F;1,1\n" * 50)
    assert count_cells(path, DOMAINS["words"], unknown="drop").dropped == 50
    path.write_text("'a','b'\n'F','1'\n")
    refused(path, "data.missing-column")


def test_folders_are_columns_only_where_declared(tmp_path: Path) -> None:
    for year in (0, 1):
        (tmp_path / f"b={year}").mkdir()
        (tmp_path / f"b={year}" / "x.csv").write_text("a,c\nF,1\n")
        pq.write_table(pa.table({"a": ["F"], "c": [1]}), tmp_path / f"b={year}" / "x.parquet")
        (tmp_path / f"b={year}" / "x.ndjson").write_text('{"a": "F"}\n')
    for kind in ("csv", "parquet", "ndjson"):
        pattern = str(tmp_path / "*" / f"*.{kind}")
        refused(pattern, "data.missing-column")
        assert count_cells(Files(pattern, hive=True), DOMAINS["words"]).vector().tolist()[:2] == [1, 1]


def test_a_file_that_is_met_twice_is_refused(tmp_path: Path) -> None:
    path = people(tmp_path)
    domain = DOMAINS["words"]
    assert count_cells(path, domain).vector().tolist() == BASE_COUNTS
    refused([path, path], "data.linked")
    refused([path, f"file://{path}"], "data.linked")
    refused([path, tmp_path / "." / "people.csv"], "data.linked")
    refused([str(tmp_path / "*.csv"), path], "data.linked")
    for link in ("symbolic.csv", "hard.csv"):
        (tmp_path / link).unlink(missing_ok=True)
        (tmp_path / link).symlink_to(path) if link == "symbolic.csv" else (tmp_path / link).hardlink_to(path)
        # By itself another name is as good as the first.
        assert count_cells(tmp_path / link, domain).fingerprint == count_cells(path, domain).fingerprint
        for data in ([path, tmp_path / link], str(tmp_path / "*.csv"), tmp_path):
            assert "one file" in refused(data, "data.linked")
        (tmp_path / link).unlink()
    (tmp_path / "loop").symlink_to(tmp_path)
    refused(tmp_path, "data.linked")
    (tmp_path / "other").mkdir()
    refused([people(tmp_path / "other", "x.csv"), str(tmp_path / "**" / "x.csv")], "data.linked")


def test_file_addresses_are_paths(tmp_path: Path) -> None:
    path = people(tmp_path, "my people#1?.csv")
    known = count_cells(path, DOMAINS["words"])
    quoted = str(path).replace(" ", "%20")
    for address in (f"file://{quoted}", f"FILE://localhost{quoted}", f"file://{path}"):
        made = count_cells(address, DOMAINS["words"])
        assert made.fingerprint == known.fingerprint
        assert made.vector().tolist() == BASE_COUNTS
    refused(f"file://elsewhere{quoted}", "data.address")
    edges = tmp_path / "g.txt"
    edges.write_text("0 1\n")
    assert read_edges(f"file://{edges}", Network(3)).fingerprint == read_edges(edges, Network(3)).fingerprint


def test_several_files_need_the_same_columns(tmp_path: Path) -> None:
    for kind in ("csv", "parquet"):
        for name, columns in (("1", {"a": ["F"], "b": [1]}), ("2", {"a": ["F"], "c": [1]})):
            path = tmp_path / f"{name}.{kind}"
            pd.DataFrame(columns).to_csv(path, index=False) if kind == "csv" else pq.write_table(
                pa.table(columns), path
            )
        refused(str(tmp_path / f"*.{kind}"), "data.columns-differ")


def test_fingerprints_of_frames_tell_rows_apart() -> None:
    """Formerly columns were joined by chr(31), and no value was chr(30)."""
    domain = Domain({"n": 1})
    rows: list[tuple[Any, Any]] = [
        ("a\x1fb", "c"),
        ("a", "b\x1fc"),
        ("\x1e", "x"),
        (None, "x"),
        ("-", "x"),
        ("", "x"),
        ("1:a", ""),
        ("1", ":a"),
    ]
    rows += [("3:a", "b"), ("3", ":ab"), ("t1:a", "")]
    prints = set()
    for kind in ("str", object):
        made = {
            count_cells(
                pd.DataFrame({"n": [0], "x": pd.Series([x], dtype=kind), "y": pd.Series([y], dtype=kind)}),
                domain,
            ).fingerprint
            for x, y in rows
        }
        assert len(made) == len(rows)
        prints |= made
    mixed = [True, "True", 1, "1", 1.5, "1.5", None]
    assert len(
        {
            count_cells(
                pd.DataFrame({"n": [0, 0], "x": pd.Series([x, []], dtype=object)}), domain
            ).fingerprint
            for x in mixed
        }
    ) == len(mixed)


def database(folder: Path, *statements: str) -> str:
    with duckdb.connect(str(folder / "x.db")) as connection:
        for statement in statements:
            connection.execute(statement)
    return f"duckdb://{folder}/x.db?table="


def test_only_base_tables_of_a_database_are_read(tmp_path: Path) -> None:
    people(tmp_path)
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\nF,1\n")
    address = database(
        tmp_path,
        f"CREATE VIEW spy AS SELECT * FROM read_csv('{secret}')",
        "CREATE TABLE good (a VARCHAR, b INTEGER)",
        "INSERT INTO good VALUES ('F', 1)",
        "CREATE VIEW plain AS SELECT * FROM good",
        f"CREATE MACRO macro_spy() AS TABLE SELECT * FROM read_csv('{secret}')",
    )
    for name in ("spy", "plain", "SPY"):
        assert "view" in refused(f"{address}{name}", "data.view")
    for name in ("macro_spy()", "nothing", "information_schema.tables", "duckdb_settings()"):
        refused(f"{address}{name}", "data.unreadable")
    assert count_cells(f"{address}good", DOMAINS["words"]).rows == 1


def test_the_engine_neither_loads_code_nor_opens_other_files(tmp_path: Path) -> None:
    from policygraph.curator.counting.opening import open_source

    path = people(tmp_path)
    other = people(tmp_path / "other")
    address = database(tmp_path, "CREATE TABLE good (a VARCHAR, b INTEGER)")
    pq.write_table(pa.table({"a": ["F"], "b": [1]}), tmp_path / "x.parquet")
    (tmp_path / "x.ndjson").write_text('{"a": "F", "b": 1}\n')
    for data in (
        path,
        f"{address}good",
        tmp_path / "x.parquet",
        tmp_path / "x.ndjson",
        pa.table({"a": ["F"]}),
    ):
        source = open_source(data)
        connection = next(one for one in source.keep if hasattr(one, "execute"))
        wanted = ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access")
        for setting in wanted:
            assert connection.execute(f"SELECT current_setting('{setting}')").fetchone() == (False,)
        for statement in (
            f"SELECT * FROM read_csv('{other}')",
            f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
            f"ATTACH '{tmp_path}/new.db'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)


def test_settings_of_given_connections_stay_as_they_are() -> None:
    with duckdb.connect() as connection:
        connection.register("given", pa.table({"a": ["F"], "b": [1]}))
        before = connection.execute("SELECT name, value FROM duckdb_settings() ORDER BY ALL").fetchall()
        views = connection.execute("SELECT count(*) FROM duckdb_views()").fetchall()
        count_cells((connection, "SELECT * FROM given"), DOMAINS["words"])
        count_cells(connection.sql("SELECT * FROM given"), DOMAINS["words"])
        assert (
            connection.execute("SELECT name, value FROM duckdb_settings() ORDER BY ALL").fetchall() == before
        )
        assert connection.execute("SELECT count(*) FROM duckdb_views()").fetchall() == views


@pytest.mark.parametrize("scheme", ["http", "https", "s3", "gs", "ftp", "gopher", "az"])
def test_addresses_of_the_network_need_an_installed_extension(scheme: str) -> None:
    try:
        duckdb.connect().execute("LOAD httpfs")
    except duckdb.Error:
        assert "Download" in refused(f"{scheme}://example.org/people.csv", "data.network")
        with pytest.raises(DataError):
            read_edges(f"{scheme}://example.org/g.txt", Network(3))


def test_how_data_are_read_is_a_value() -> None:
    said = [
        how_read("x.csv"),
        how_read(Files("x.csv", delimiter=";")),
        how_read(Files("x.csv", quote="")),
        how_read(Files("x.csv", hive=True)),
        how_read("x.csv", columns={"a": "b"}),
        how_read("x.csv", edges={"loops": "drop"}),
    ]
    assert len(set(said)) == len(said)
    assert (
        how_read("x.csv")
        == how_read(Path("y.csv"))
        == how_read("file:///x.csv")
        == how_read(["a.csv", "b.csv"])
    )
    assert how_read(Files("x.csv", encoding="latin-1")) == how_read(Files("x.csv", encoding="ISO-8859-1"))


def test_many_labels_are_one_literal() -> None:
    """The text of the query grows with the letters of the labels, not with a parsed value for each."""
    from policygraph.curator.counting.labels import coder

    labels = [f"label {i}" for i in range(20_000)]
    plan = coder("x", "VARCHAR", labels, "a")
    assert sum(map(len, plan.joins)) < 20_000 * 20
    assert sum(join.count("','") + join.count(", ") for join in plan.joins) < 20
    domain = Domain({"a": [*labels, "|", ",;/~^", "it's"]})
    assert count_cells(pa.table({"a": ["label 7", "|", "it's", ",;/~^"]}), domain).rows == 4


FIELDS = ["F", "M", "0", "1", "2", "", " ", "é", "日本語", "x" * 9]
INNER = ["\n", "\r", "\r\n", '"', '""', ",", ";", "'", "~", *FIELDS]
FUZZ = 1000


def random_csv(rng: random.Random, delimiter: str, quote: str, width: int) -> bytes:
    """A file that is often well formed: quoted and plain fields, every sign inside quotes, one line break or a few kinds."""
    newline = rng.choice(["\n", "\r\n"])

    def field() -> str:
        if not quote or rng.random() < 0.5:
            return rng.choice(FIELDS)
        inner = "".join(rng.choice(INNER) for _ in range(rng.randrange(4)))
        return quote + inner.replace(quote, quote * 2) + quote

    lines = [
        delimiter.join("ab"[:width] if rng.random() < 0.7 else [f"{quote}{n}{quote}" for n in "ab"[:width]])
    ]
    lines += [delimiter.join(field() for _ in range(width)) for _ in range(rng.randrange(1, 6))]
    if rng.random() < 0.2:
        lines.insert(rng.randrange(len(lines) + 1), "")
    whole = newline.join(lines) + newline * rng.choice([0, 1, 1, 2])
    raw = (rng.choice(["\ufeff", "", "", ""]) + whole).encode()
    if rng.random() < 0.4:
        at = rng.randrange(len(raw) + 1)
        odd = [quote.encode(), b"\n", b"\r", b"\r\n", delimiter.encode(), b" ", b"\xff", b"\xc3", b"\0", b""]
        raw = raw[:at] + rng.choice(odd) + raw[at + rng.randrange(2) :]
    return raw


@pytest.mark.usefixtures("one_engine")
@pytest.mark.parametrize("size", [7, 16, 64])
def test_csv_is_scanned_block_by_block(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is refused or counted as RFC 4180 says, wherever the blocks end that it is looked at in."""
    from policygraph.curator.counting import text

    monkeypatch.setattr(text, "BLOCK", size)
    rng = random.Random(size)
    path = tmp_path / "x.csv"
    tried = {True: 0, False: 0}
    for n in range(FUZZ):
        delimiter, quote = rng.choice(
            [(",", '"'), (",", '"'), (";", '"'), ("\t", "'"), ("~", '"'), (",", "")]
        )
        width = rng.choice([1, 2, 2])
        raw = random_csv(rng, delimiter, quote, width)
        path.write_bytes(raw)
        given = Files(path, delimiter=delimiter, quote=quote)
        meant = reading.csv_records(raw, delimiter, quote)
        tried[meant is None] += 1
        refusal, sheet = None, None
        try:
            sheet = text.scan_csv(text.read_head(str(path), given, "x"), "x")
        except DataError as caught:
            refusal = caught
        if meant is None or sheet is None:
            assert meant is None, (raw, refusal)
            assert "near line" in str(refusal), raw
            continue
        assert sheet.records == len(meant), raw
        if not meant:
            continue
        assert list(sheet.names) == meant[0], raw
        names = [name.strip() for name in meant[0]]
        if n % 5 == 0 and names == ["a", "b"][:width]:
            domain = (
                Domain({"a": ["F", "M", "é", "0"], "b": 3})
                if width == 2
                else Domain({"a": ["F", "", "0", 1]})
            )
            expected = counted(domain, csv_values([names, *meant[1:]], domain), "drop")
            assert read(given, domain, "drop") == expected, raw
    assert tried[True] + tried[False] == FUZZ
    assert min(tried.values()) > FUZZ // 10


def test_policy_files_declare_how_files_are_read(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from policygraph.cli.app import app
    from policygraph.files import dumps, loads
    from policygraph.files.problems import PolicyFileError

    text = "[domain]\na = ['é', 'M']\nb = 3\n[data]\ndelimiter = ';'\nquote = '~'\nencoding = 'latin-1'\nhive = false\n"
    file = loads(text)
    assert file.reading == {"delimiter": ";", "quote": "~", "encoding": "latin-1", "hive": False}
    assert loads(dumps(file.policy, file.releases, reading=file.reading)).reading == file.reading
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    (tmp_path / "x.csv").write_bytes("a;b\n~é~;1\nM;2\n".encode("latin-1"))
    asked = [
        "release",
        str(tmp_path / "p.toml"),
        "--data",
        str(tmp_path / "x.csv"),
        "--epsilon",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    assert CliRunner().invoke(app, asked).exit_code == 0
    for wrong in (
        "delimiter = ';;'",
        "quote = 1",
        "encoding = 'klingon'",
        "header = true",
        "hive = 'yes'",
        "delimiter = '\"'",
    ):
        with pytest.raises(PolicyFileError) as caught:
            loads(f"[domain]\na = 2\n[data]\n{wrong}\n")
        assert [problem.line for problem in caught.value.problems] == [4]


@pytest.mark.parametrize(
    "labels", [[1, 1.0], [0.0, 0], [True, 1], [False, 0.0], [2, "x", 2.0], [-0.0, 0.0], [2**60, float(2**60)]]
)
def test_labels_of_equal_value_are_one_label(labels: list[Any]) -> None:
    with pytest.raises(InputError) as caught:
        Domain({"a": labels})
    assert caught.value.code in ("domain.duplicate", "domain.labels")


@pytest.mark.usefixtures("one_engine")
def test_keys_of_json_records_do_not_say_where_other_edges_have_their_ends(tmp_path: Path) -> None:
    network = Network(["a", "b", "c"], directed=True, loops=True, multiple=True)
    for name in ("g.json", "g.ndjson"):
        path = tmp_path / name

        def count(records: Sequence[Record], path: Path = path, **how: Any) -> Any:
            lines = [json.dumps(record) for record in records]
            path.write_text("[" + ",".join(lines) + "]" if path.suffix == ".json" else "\n".join(lines))
            try:
                return read_edges(path, network, unknown="drop", **how).vector().tolist()
            except DataError as refusal:
                return refusal

        base = [{"source": "a", "target": "b", "w": i} for i in range(4)]
        before = count(base)
        assert sum(before) == 4
        for ends in (("from", "to"), ("Source", "Target"), ("TARGET", "x"), ("u", "v"), ("source", "to")):
            for at in (0, 4):
                whole = [*base]
                whole.insert(at, dict(zip(ends, ("c", "c"), strict=True)))
                assert_one_more(before, count(whole), ends)
                assert count(whole, columns=["source", "target"]) == before
        # Two keys of any name would be ends until a record has others.
        assert isinstance(count([{"x": "a", "y": "b"}]), DataError)
        assert sum(count([{"x": "a", "y": "b"}], columns=["x", "y"])) == 1


@pytest.mark.usefixtures("one_engine")
def test_a_first_edge_that_looks_like_names_of_columns(tmp_path: Path) -> None:
    """A record at the start of a file without names of columns says nothing about the others."""
    network = Network(["a", "b", "c"], directed=True, loops=True, multiple=True)
    path = tmp_path / "g.csv"

    def count(lines: Sequence[str], **how: Any) -> Any:
        path.write_text("\n".join(lines))
        try:
            return read_edges(path, network, unknown="drop", **how).vector().tolist()
        except (DataError, InputError) as refusal:
            return refusal

    words = ["from", "to", "source", "target", "u", "v", "x", "a", "b", "To", "", "column0", "column1", '"a"']
    rng = random.Random(1)
    added = 0
    for width in (2, 3):
        base = [",".join(rng.choice("abc") for _ in range(width)) for _ in range(4)]
        for first in (base, [",".join(["x", "y", "z"][:width]), *base]):
            before = count(first)
            if width == 3 and first is not base:
                assert before.code == "data.missing-column"
                continue
            for _ in range(60):
                line = ",".join(rng.choice(words) for _ in range(width))
                after = count([line, *first])
                if isinstance(after, InputError):
                    assert after.code in ("data.no-header", "data.missing-column"), line
                else:
                    assert_one_more(before, after, line)
                added += 1
    assert added > 100
    assert sum(count(["id,from,to", "a,b,c"], header=True)) == 1
    assert sum(count(["id,from,to", "a,b,c"], columns=["from", "to"])) == 1
    assert sum(count(["from,to,weight", "a,b,c"])) == 1
    assert count(["to,from", "a,b"]).code == "data.no-header"


def test_values_that_are_equal_but_print_otherwise_are_not_grouped(tmp_path: Path) -> None:
    connection = duckdb.connect()
    cases = {
        "INTERVAL 1 MONTH": "INTERVAL 30 DAY",
        "[0.0::DOUBLE]": "[-0.0::DOUBLE]",
        "{'x': 0.0::DOUBLE}": "{'x': -0.0::DOUBLE}",
        "INTERVAL 1 DAY": "INTERVAL 24 HOUR",
    }
    for value, other in cases.items():
        labels = connection.execute(f"SELECT CAST({value} AS VARCHAR), CAST({other} AS VARCHAR)").fetchall()[
            0
        ]
        domain = Domain({"a": labels})
        for select in (
            f"SELECT {other} AS a UNION ALL SELECT {value} FROM range(5)",
            f"SELECT {value} AS a FROM range(5) UNION ALL SELECT {other}",
        ):
            assert read((connection, select), domain, "drop") == [5, 1]
            if "INTERVAL" not in value:
                connection.execute(f"COPY ({select}) TO '{tmp_path}/x.parquet'")
                assert read(tmp_path / "x.parquet", domain, "drop") == [5, 1]


class Sex(str, enum.Enum):  # noqa: UP042
    """Texts that print otherwise."""

    F = "F"
    M = "M"


class Level(enum.IntEnum):
    """Whole numbers that print otherwise."""

    LOW = 1


@pytest.mark.usefixtures("one_engine")
def test_one_object_does_not_change_what_others_are() -> None:
    stamp = pd.Timestamp("2024-01-31 01:02:03.45")
    cases: list[tuple[Any, list[Any]]] = [
        (Sex.F, ["F", "Sex.F"]),
        (Level.LOW, [1, "Level.LOW"]),
        (2**53 + 1, [2**53 + 1, 2**53, 1.5]),
        (datetime.timedelta(days=1), ["1 days 00:00:00", "1 day, 0:00:00", "1 day"]),
        (stamp, ["2024-01-31 01:02:03.45", str(stamp)]),
        (stamp.to_pydatetime(), ["2024-01-31 01:02:03.45", "2024-01-31 01:02:03.450000"]),
        (pd.Timestamp("2024-01-31 00:00:00.000000001"), ["2024-01-31 00:00:00.000000001", "2024-01-31 00:00:00"]),
        (np.datetime64("2024-01-31"), ["2024-01-31", "2024-01-31 00:00:00"]),
        (np.datetime64("2024-01-31T00:00:00.000000001"), ["2024-01-31 00:00:00.000000001", "2024-01-31 00:00:00"]),
        (np.timedelta64(1, "D"), ["1 days 00:00:00", "1 days"]),
        (stamp.tz_localize("Asia/Tokyo"), ["2024-01-30 16:02:03.45+00", "2024-01-31 01:02:03.45+09"]),
        (datetime.date(2024, 1, 31), ["2024-01-31", "2024-01-31 00:00:00"]),
        (datetime.time(1, 2), ["01:02:00", "1:02"]),
        (Decimal("0.10"), [0.1, "0.10"]),
    ]  # fmt: skip
    for value, labels in cases:
        domain = Domain({"a": labels})
        before = read(pd.DataFrame({"a": [value] * 5}), domain, "drop")
        assert isinstance(before, list)
        assert sum(before) == 5, value
        for more in ("x", 1, 0.5, None, 1j, True, pd.NaT, float("nan"), [], np.float32(1), value):
            for frame in (
                pd.DataFrame({"a": [*[value] * 5, more]}),
                pd.DataFrame({"a": pd.Series([more, *[value] * 5], dtype=object)}),
            ):
                assert_one_more(before, read(frame, domain, "drop"), (value, more))


@pytest.mark.parametrize(
    "encoding",
    ["unicode_escape", "raw_unicode_escape", "utf-7", "iso2022_jp", "iso2022_kr", "hz", "rot13", "idna"],
)
def test_encodings_in_which_a_record_changes_the_next_are_refused(encoding: str) -> None:
    """In ``unicode_escape`` the line ``F,1\\nM,2`` would be two records."""
    for name in (encoding, encoding.upper(), encoding.replace("_", "-")):
        with pytest.raises(InputError) as caught:
            Files("x.csv", encoding=name)
        assert caught.value.code == "data.options"


@pytest.mark.parametrize("kind", ["uint8", "int8", "bool", "float32", "int64", "uint16"])
def test_entries_of_a_matrix_are_added_up_without_wrapping(kind: str) -> None:
    from scipy import sparse

    network = Network(3, directed=True, loops=True, multiple=True)
    for many in (1, 127, 128, 255, 256, 257, 65_536):
        ends = np.zeros(many, dtype=np.int64), np.ones(many, dtype=np.int64)
        made = sparse.coo_array((np.ones(many, dtype=kind), ends), shape=(3, 3))
        assert read_edges(made, network).vector().tolist() == [0, many, 0, 0, 0, 0, 0, 0, 0]


def test_odd_names_of_files_are_no_patterns_and_no_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people(tmp_path / "s3:", "other.csv")
    for name in (
        "s3:/*.csv",
        "s3:/[a].csv",
        "~x.csv",
        "a%20b.csv",
        "{a,b}.csv",
        "x?.csv",
        "it's.csv",
        "-.csv",
    ):
        path = people(tmp_path, name)
        for data in (path, Path(name), str(path)):
            assert count_cells(data, DOMAINS["words"]).vector().tolist() == BASE_COUNTS, name
    assert count_cells("s3://*.csv", DOMAINS["words"]).vector().tolist() == BASE_COUNTS


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    raw = b"a,b\n" + b"".join(b"F,%d\n" % (i % 3) for i in range(5000))
    packed = gzip.compress(raw)
    path = tmp_path / "x.csv.gz"
    for encoding in ("utf-8", "latin-1"):
        for cut in (5, len(packed) // 2, len(packed) - 9):
            path.write_bytes(packed[:cut])
            refused(Files(path, encoding=encoding), "data.unreadable")
        # Several archives one after the other are one file.
        path.write_bytes(gzip.compress(raw[:2000]) + gzip.compress(raw[2000:]))
        assert count_cells(Files(path, encoding=encoding), DOMAINS["words"]).rows == 5000


def test_requests_know_what_the_names_of_files_say(tmp_path: Path) -> None:
    """The same bytes in folders of other names, or under another ending, are other records of one account."""
    from policygraph.curator.requests import identify
    from policygraph.model.policy import Policy

    policy = Policy(DOMAINS["words"])
    found = []
    for order in ((0, 1), (1, 0)):
        for at, text in zip(order, ("a\nF\nF\n", "a\nM\n"), strict=True):
            (tmp_path / f"b={at}").mkdir(exist_ok=True)
            (tmp_path / f"b={at}" / "x.csv").write_text(text)
        found.append(identify(Files(tmp_path, hive=True), None, policy))
    assert found[0].account == found[1].account
    assert found[0].content != found[1].content
    network = Policy(Network(["a", "b", "a,b"], directed=True))
    edges = []
    for name in ("g.txt", "g.csv"):
        folder = tmp_path / name.replace(".", "")
        folder.mkdir()
        (folder / name).write_text("a,b a\n")
        edges.append(identify(folder, None, network))
    assert edges[0].account == edges[1].account
    assert edges[0].content != edges[1].content


def test_a_release_scans_and_digests_a_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    import policygraph as pg
    from policygraph.curator.counting import files, source, text
    from policygraph.model.queries.cuboids import cuboid

    calls = {"scan": 0, "digest": 0, "read": 0}

    def counting(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            calls[name] += 1
            return inner(*args, **more)

        return call

    monkeypatch.setattr(files, "scan_csv", counting("scan", text.scan_csv))
    monkeypatch.setattr(source.hashlib, "file_digest", counting("digest", hashlib.file_digest))
    monkeypatch.setattr(source.Source, "run", counting("read", source.Source.run))
    policy = pg.Policy(DOMAINS["words"])
    query = cuboid(DOMAINS["words"], "a")
    pg.release(query, policy, people(tmp_path), epsilon=1, ledger=tmp_path / "book.db")
    assert calls == {"scan": 1, "digest": 1, "read": 1}


@pytest.mark.usefixtures("one_engine")
def test_categories_of_equal_value_are_one_to_pandas() -> None:
    for labels in (["1", "0"], [1, 0], [True, False], ["x", 1.0]):
        domain = Domain({"a": labels})
        for base in ([1, 0, 1], [True, False], [1.0, 0.0], [True, True], [1, 1, None]):
            before = read(pd.DataFrame({"a": pd.Series(base, dtype="category")}), domain, "drop")
            assert isinstance(before, list)
            for more in (1, True, 1.0, "1", "x", None, False, 0.5):
                for records in ([more, *base], [*base, more]):
                    frame = pd.DataFrame({"a": pd.Series(records, dtype="category")})
                    assert_one_more(before, read(frame, domain, "drop"), (labels, records))


def test_columns_of_one_name_are_refused_in_a_stream() -> None:
    table = pa.table([pa.array(["F"]), pa.array(["M"]), pa.array([1])], names=["a", "a", "b"])
    for data in (table, table.to_reader()):
        assert "2 columns 'a'" in refused(data, "data.missing-column")
    assert count_cells(pa.table({"a": ["F"], "A": ["x"], "b": [1]}).to_reader(), DOMAINS["words"]).rows == 1
