"""Counts as files: parts of a whole add up to what counting the whole gives."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.curator.counting import parts as parts_module
from policygraph.curator.counting.parts import KEY, CountedPart, counts_in, merge_parts, read_part
from policygraph.curator.requests import count_part, identify, read
from policygraph.errors import DataError

POLICY = '[domain]\nsex = ["F", "M"]\nage = 3\n\n[[release]]\ncuboid = ["sex", "age"]\n'
DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 3})
LINES = ["F,0", "M,2", "F,0", "M,1", "F,2"]


def write_files(folder: Path) -> list[str]:
    out = []
    for name, some in (("a.csv", LINES[:2]), ("b.csv", LINES[2:])):
        (folder / name).write_text("\n".join(["sex,age", *some]) + "\n")
        out.append(str(folder / name))
    return out


def code_of(function: Any, *arguments: Any) -> str:
    with pytest.raises(DataError) as caught:
        function(*arguments)
    return caught.value.code


def test_parts_of_the_command_add_up_to_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    files = write_files(tmp_path)
    made = [str(tmp_path / f"part{at}.parquet") for at in range(2)]
    for data, part in zip(files, made, strict=True):
        assert run(["count", str(file), "--data", data, "--out", part]) == 0
    whole = str(tmp_path / "counts.parquet")
    assert run(["merge", *made, "--out", whole]) == 0
    assert stat.S_IMODE(os.stat(whole).st_mode) == 0o600
    policy = pg.Policy(DOMAIN)
    counts = read(whole, None, policy)
    direct = read(files, None, policy)
    assert counts.vector().tolist() == direct.vector().tolist() == [2, 0, 1, 0, 1, 1]
    # One account, whichever way the records come.
    assert counts.fingerprint == direct.fingerprint == identify(files, None, policy).account
    ledger = str(tmp_path / "budget.db")
    words = [
        "release",
        str(file),
        "--epsilon",
        "1",
        "--ledger",
        ledger,
        "--data",
        whole,
        "--out",
        str(tmp_path / "out"),
    ]
    assert run(words) == 0
    assert run([*words, "--overwrite"]) == 0
    assert "nothing was spent" in capsys.readouterr().out
    assert run(["merge", made[0], made[0], "--out", whole]) == 2
    assert run(["merge", files[0], "--out", whole]) == 2
    assert "parts.twice" in capsys.readouterr().err


def test_tables_are_known_by_their_fingerprints(tmp_path: Path) -> None:
    policy = pg.Policy(DOMAIN)
    paths = []
    for at in range(2):
        frame = pa.table({"sex": ["F", "M"], "age": [at, 2]})
        part = count_part(frame, None, policy)
        assert part.fingerprint == identify(frame, None, policy).account
        paths.append(str(tmp_path / f"{at}.parquet"))
        part.write(paths[-1])
    one, other = merge_parts(paths), merge_parts(paths[::-1])
    assert one.fingerprint == other.fingerprint
    assert (one.cells.tolist(), one.counts.tolist()) == ([[0, 0], [0, 1], [1, 2]], [1, 1, 2])


def test_sums_of_a_measure_are_kept(tmp_path: Path) -> None:
    domain = pg.Domain({"sex": ["F", "M"]})
    measure = pg.Measure("income", 0, 10)
    query, policy = pg.queries.sums(domain, [["sex"]], measure), pg.Policy(domain)
    paths = []
    for at, frame in enumerate([{"sex": ["F"], "income": [7.0]}, {"sex": ["F", "M"], "income": [20.0, 3.0]}]):
        paths.append(str(tmp_path / f"{at}.parquet"))
        count_part(pa.table(frame), query, policy).write(paths[-1])
    merge_parts(paths).write(tmp_path / "whole.parquet")
    made: Any = read(str(tmp_path / "whole.parquet"), query, policy)
    assert (made.vector().tolist(), made.sums(["sex"]).tolist()) == ([2, 1], [17, 3])
    assert code_of(read, str(tmp_path / "whole.parquet"), None, policy) == "parts.other"
    part = merge_parts(paths)
    CountedPart(part.terms, part.contents, part.cells, part.counts, part.sums * 100, 0).write(
        tmp_path / "wrong.parquet"
    )
    assert code_of(read, str(tmp_path / "wrong.parquet"), query, policy) == "parts.broken"
    CountedPart(part.terms, part.contents, part.cells, part.counts, None, 0).write(tmp_path / "wrong.parquet")
    assert code_of(read, str(tmp_path / "wrong.parquet"), query, policy) == "parts.broken"


def test_edges_in_two_parts_follow_the_rule(tmp_path: Path) -> None:
    network = pg.Network(4)
    policy = pg.Policy(network)
    merge = {"duplicates": "merge"}
    for at, lines in enumerate(["0 1\n1 2\n", "1 0\n2 3\n"]):
        (tmp_path / f"{at}.txt").write_text(lines)
        for name, edges in (("strict", {}), ("merged", merge)):
            count_part(str(tmp_path / f"{at}.txt"), None, policy, None, edges).write(
                tmp_path / f"{name}{at}.parquet"
            )
    assert code_of(merge_parts, [str(tmp_path / f"strict{at}.parquet") for at in range(2)]) == "data.edges"
    merge_parts([str(tmp_path / f"merged{at}.parquet") for at in range(2)]).write(tmp_path / "whole.parquet")
    made = read(str(tmp_path / "whole.parquet"), None, policy, None, merge)
    assert made.vector().tolist() == [1, 0, 0, 1, 0, 1]
    assert (
        code_of(merge_parts, [str(tmp_path / "strict0.parquet"), str(tmp_path / "merged1.parquet")])
        == "parts.other"
    )


@pytest.mark.parametrize("network", [False, True])
def test_large_domains(network: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "DENSE", 3)
    domain = pg.Network(5) if network else DOMAIN
    given: Any = (
        pa.table({"from": [0, 1], "to": [1, 2]})
        if network
        else pa.table({"sex": ["F", "M", "F"], "age": [0, 2, 0]})
    )
    policy = pg.Policy(domain)
    count_part(given, None, policy).write(tmp_path / "p.parquet")
    made: Any = counts_in(str(tmp_path / "p.parquet"), policy)
    if network:
        assert made.sparse()[1].tolist() == [1, 1]
        return
    assert [table.tolist() for table in made._read(DOMAIN, [("age",), ("sex", "age")])] == [
        [2, 0, 1],
        [2, 0, 0, 0, 0, 1],
    ]
    assert made.filled(["sex"])[1].tolist() == [2, 1]


def test_broken_parts_are_refused(tmp_path: Path) -> None:
    policy = pg.Policy(DOMAIN)
    good = count_part(pa.table({"sex": ["F", "M"], "age": [0, 2]}), None, policy)
    path = str(tmp_path / "p.parquet")

    def broken(**changed: Any) -> str:
        fields = {
            "terms": good.terms,
            "contents": good.contents,
            "cells": good.cells,
            "counts": good.counts,
            "sums": None,
            "dropped": 0,
        }
        CountedPart(**{**fields, **changed}).write(path)
        return code_of(counts_in, path, policy)

    assert broken(counts=np.array([1, 0])) == "parts.broken"
    assert broken(cells=np.array([[0, 0], [0, 0]])) == "parts.broken"
    assert broken(cells=np.array([[0, 0], [1, 3]])) == "parts.broken"
    assert broken(cells=np.array([[0], [1]])) == "parts.broken"
    assert broken(dropped=-1) == "parts.broken"
    assert broken(contents={"files": [], "tables": []}) == "parts.broken"
    assert broken(terms={**good.terms, "unknown": "drop"}) == "parts.other"
    huge = {"counts": np.array([2**61, 2**61])}
    fields = {"terms": good.terms, "contents": good.contents, "cells": good.cells, "sums": None, "dropped": 0}
    CountedPart(**fields, **huge).write(path)
    CountedPart(**{**fields, "contents": {"files": ["x"], "tables": []}}, **huge).write(
        tmp_path / "q.parquet"
    )
    assert code_of(merge_parts, [path, str(tmp_path / "q.parquet")]) == "counts.size"
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps({"version": 1}).encode()}), path)
    assert code_of(read_part, path) == "parts.broken"
    Path(path).write_bytes(b"PAR1")
    assert read_part(path) is None
    assert counts_in(pa.table({"a": [1]}), policy) is None
    assert counts_in(str(tmp_path / "none.parquet"), policy) is None
