"""Every row of docs/explanation/papers.md runs, in its small setting, and stands on the page as the registry has it."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from benchmarks.papers import data, page
from benchmarks.papers.__main__ import kept, main, save
from benchmarks.papers.registry import PAPERS, Entry, Result, Row, entries, show
from tests.paths import ROOT

ENTRIES = entries()


def on_the_page(entry: Entry) -> list[str]:
    """The rows of a script as they stand on the page."""
    text = page.blocks(page.PAGE.read_text(encoding="utf-8")).get(entry.name, "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return rows[len(page.HEAD) :]


def without_ours(line: str) -> str:
    parts = re.split(r"(?<!\\)\|", line)
    return "|".join([*parts[:5], "", *parts[6:]])


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_script_runs_and_the_page_has_its_rows(entry: Entry, tmp_path) -> None:
    result = entry.run(True)
    picture = save(entry, result, True, tmp_path)
    assert (picture is None) == (entry.plot is None)
    assert json.loads((tmp_path / f"{entry.name}-small.json").read_text())["rows"]
    keys = [(row.place, row.what) for row in result.rows]
    assert len(set(keys)) == len(keys)
    assert [row for row in result.rows if not row.met and not row.reason] == []
    assert [row.code for row in result.rows if row.code and not (ROOT / row.code).exists()] == []
    assert (ROOT / entry.script.code).exists()

    shown = on_the_page(entry)
    assert len(shown) == len(result.rows), f"python -m benchmarks.papers --write {entry.name}"
    for row, line in zip(result.rows, shown):
        if row.fixed:
            assert page.line(row, entry) == line
        else:
            # Whether a drawn figure meets the paper may depend on the setting; the rest may not.
            written, made = (
                without_ours(text).replace("**differs**: ", "") for text in (line, page.line(row, entry))
            )
            assert written == made


def test_the_page_has_no_rows_of_a_script_that_is_gone() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert set(page.blocks(text)) == {entry.name for entry in ENTRIES}
    body = text.split(page.BEGIN)[1].split(page.END)[0].strip()
    assert body == page.body(ENTRIES, page.blocks(text))


def test_every_picture_on_the_page_belongs_to_a_script() -> None:
    drawn = {entry.name for entry in ENTRIES if entry.plot is not None}
    assert {path.stem for path in page.FIGURES.glob("*.png")} == drawn


def test_every_script_belongs_to_a_paper_and_says_what_it_shows() -> None:
    assert {entry.script.paper for entry in ENTRIES} <= set(PAPERS)
    assert [entry.name for entry in ENTRIES if not entry.summary.endswith(".")] == []


def test_the_command_names_what_it_does_not_know(capsys, tmp_path) -> None:
    with pytest.raises(SystemExit):
        main(["no-such-figure"])
    assert "no script or paper named no-such-figure" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--small", "--write"])
    assert "full setting" in capsys.readouterr().err
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.count("\n") == len(ENTRIES)


def test_a_run_that_was_ended_is_resumed(tmp_path, capsys) -> None:
    """What a run left is kept, what it did not reach is run, and the figures are the same."""
    command = ["--small", "--out", str(tmp_path), "--resume", "blowfish-graphs", "policy-aware-2015"]
    assert main(command) == 0
    first = (tmp_path / "policy-aware-2015-small.json").read_text()
    (tmp_path / "blowfish-graphs-small.json").unlink()
    capsys.readouterr()
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "processor, kept" in said
    assert said.count(", kept") == 1
    assert (tmp_path / "blowfish-graphs-small.json").exists()
    assert (tmp_path / "policy-aware-2015-small.json").read_text() == first


def test_figures_of_a_stand_in_are_not_resumed_where_the_data_are(tmp_path, monkeypatch) -> None:
    """A run without the real sets leaves stand-in figures; with the sets they are made again, and never get into the page."""
    entry = next(entry for entry in ENTRIES if entry.script.needs_data)
    result = Result([Row("Figure 3", "error", "", "1")], {}, "a note")
    bare = replace(entry, plot=None)
    monkeypatch.setattr(data, "FOLDER", tmp_path / "nothing")
    save(bare, result, False, tmp_path)
    found = kept(bare, False, tmp_path)
    assert found is not None
    assert found[0].rows[0].ours == "1"
    sets = tmp_path / "sets"
    for name in data.FILES:
        (sets / name).parent.mkdir(parents=True, exist_ok=True)
        (sets / name).touch()
    monkeypatch.setattr(data, "FOLDER", sets)
    assert kept(bare, False, tmp_path) is None


def test_a_row_that_differs_needs_a_reason() -> None:
    assert Row("Lemma 1", "value", "2", "2").met
    assert Row("Lemma 1", "value", "", "3").met
    assert not Row("Lemma 1", "value", "2", "3").met
    assert Row("Lemma 1", "at most", "2", "1", holds=True).met


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2, "2"),
        (1234567, "1,234,567"),
        (0.123456, "0.123"),
        (12.3456, "12.3"),
        (1.5e9, "1,500,000,000"),
        (1e-9, "1.00e-09"),
        (0.03125, "0.0312"),
        (0.03125 * (1 + 2**-52), "0.0312"),
        (0.03125 * (1 - 2**-53), "0.0312"),
    ],
)
def test_numbers_are_shown_with_three_digits(value, text) -> None:
    assert show(value) == text
