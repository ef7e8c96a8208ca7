"""What the curator sees of columns: against a literal count of the same values."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.curator import profiling
from policygraph.curator.profiling import RARE, ColumnProfile, columns_of, encoding_of, profile_columns
from policygraph.errors import DataError
from tests.servers import Postgres

TEXTS = [
    *("", " ", "F", "it's", "0", "1", "7", "+7", " 7 ", "007", "00", "0x", "-3", "2.5", "2.0", "1e3", "-inf", "nan"),
    *("2024-02-29", "2023-02-29", "1999-12-31 10:00:00", "20240131", "9" * 30),
]  # fmt: skip
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def literal(name: str, values: list[str | None]) -> ColumnProfile:
    """The profile by its definition, one value after the other."""
    there = [value for value in values if value is not None]
    numbers = sorted(Decimal(value.strip(" \t")) for value in there if NUMBER.fullmatch(value.strip(" \t")))
    days = sorted(
        int(value[:10].replace("-", "")) for value in there if value in ("2024-02-29", "1999-12-31 10:00:00")
    )
    ends = days if days and not numbers else numbers
    number = {value: float(value) for value in there if NUMBER.fullmatch(value.strip(" \t"))}
    # What is no number comes last.
    number |= {value: float("-inf") for value in there if value == "-inf"}
    listed = sorted(set(there), key=lambda value: (value not in number, number.get(value, 0.0), value))
    return ColumnProfile(
        name,
        len(values),
        len(values) - len(there),
        len(set(there)),
        len(numbers),
        sum(value.strip(" \t") in ("0", "1", "7", "+7", "007", "00", "-3", "2.0", "20240131") for value in there),
        len(days),
        float(ends[0]) if ends else None,
        float(ends[-1]) if ends else None,
        # The smallest number that a fifth, two fifths, ... of the numbers do not exceed.
        tuple(float(numbers[-(-share * len(numbers) // 5) - 1]) for share in range(1, 5)) if numbers else (),
        tuple(listed),
        any(re.fullmatch("0[0-9]+", value) for value in there),
        tuple(value for value in listed if there.count(value) < RARE),
    )  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*TEXTS, None]), min_size=1, max_size=30))
def test_a_profile_is_the_literal_one(values: list[str | None]) -> None:
    source, names = columns_of(pa.table({"other": [1] * len(values), "x": pa.array(values, pa.string())}))
    assert names == ["other", "x"]
    assert profile_columns(source, ["x"]) == [literal("x", values)]


def test_present_values_and_long_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = columns_of(pa.table({"x": ["a", "b", None, "c"]}))
    monkeypatch.setattr(profiling, "LISTED", 3)
    [made] = profile_columns(source, ["x"])
    assert (made.present, made.values) == (3, ("a", "b", "c"))
    monkeypatch.setattr(profiling, "LISTED", 2)
    [made] = profile_columns(source, ["x"])
    assert (made.present, made.distinct, made.values) == (3, 3, None)


def test_two_columns_of_one_name_are_refused() -> None:
    source, _ = columns_of(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"]))
    with pytest.raises(DataError, match="2 columns 'x'") as caught:
        profile_columns(source, ["x"])
    assert caught.value.code == "data.columns-differ"


def test_a_server_is_not_looked_at(postgres_server: Postgres) -> None:
    with postgres_server.connect() as connection:
        connection.execute("CREATE TABLE looked_at AS SELECT 1 AS a")
    with pytest.raises(DataError, match="Save an extract") as caught:
        columns_of(postgres_server.address("looked_at"))
    assert caught.value.code == "engine.data"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"town\nBern\n", None),
        ("town\nZürich\n".encode(), None),
        ("town\nZürich\n".encode("latin-1"), "latin-1"),
        ("price\n5 €\n".encode("cp1252"), "cp1252"),
        (b"\x80", "cp1252"),
        (b"\x9f\xff", "cp1252"),
        (b"\xa0", "latin-1"),
        # The first block of the file is not UTF-8, and only the last has a sign of Windows.
        (b"\xfc" + b"a" * (1 << 23) + b"\x80", "cp1252"),
        # A character that lies across two blocks.
        *((b"a" * ((1 << power) - 1) + "ü".encode(), None) for power in (16, 20, 22)),
    ],
)
def test_the_encoding_to_declare(tmp_path: Path, content: bytes, encoding: str | None) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert encoding_of(str(path)) == encoding
