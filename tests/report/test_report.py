"""Pages of releases: they hold what was published, nothing else, and nothing of it as code."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import import_module

import numpy as np
import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.report import tables
from policygraph.report.attacker import odds, percent
from policygraph.report.graphs import policy_graph
from policygraph.report.lattice import short_titles
from policygraph.report.tables import rows_each
from tests.report import releases
from tests.report.test_markup import Seen


@cache
def made(name):
    return releases.ALL[name]()


@cache
def page(name):
    return pg.report(made(name))


def data(text, name):
    return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text)[1])


SECTIONS = {
    "census": {"summary", "results", "protected", "public", "certificate", "attacker", "stages", "check"},
    "nodes": {"summary", "results", "protected", "public", "attacker", "stages", "check"},
}


@pytest.mark.parametrize("name", releases.ALL)
def test_a_page_has_its_sections_and_loads_nothing(name):
    seen = Seen(page(name))
    ids = [attributes["id"] for element, attributes in seen.elements if element == "section"]
    assert set(ids) == SECTIONS.get(name, SECTIONS["census"])
    outside = [a for _, attributes in seen.elements for a in ("src", "srcset", "action") if a in attributes]
    assert outside == []
    assert all(attributes["href"].startswith("#") for _, attributes in seen.elements if "href" in attributes)
    assert [
        element for element, _ in seen.elements if element in ("link", "iframe", "object", "img", "base")
    ] == []
    assert "NOT PRIVATE" in seen.text
    every = [attributes["id"] for _, attributes in seen.elements if "id" in attributes]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("name", releases.ALL)
def test_a_page_holds_the_released_numbers(name):
    release, text = made(name), page(name)
    pool = data(text, "labels")
    for at, table in enumerate(release.tables):
        shown = data(text, f"data-{at}")
        height = len(table.values)
        fine = 0.01 * max(float(np.min(table.deviation)), 1e-9)
        assert np.allclose(shown["values"], table.values, atol=fine)
        assert np.all(np.broadcast_to(shown["within"], height) >= np.asarray(table.within_95))
        assert np.all(np.broadcast_to(shown["within"], height) <= 1.02 * np.asarray(table.within_95))
        lists = [pool[place] for place in shown["labels"]]
        codes = shown.get("codes") or (
            np.unravel_index(np.arange(height), [len(each) for each in lists]) if lists else []
        )
        for listed, code, labels in zip(lists, codes, table.labels, strict=True):
            assert [listed[c] for c in code] == [
                tables.text_of(label) for label in np.asarray(labels).tolist()
            ]


def test_a_large_table_shows_its_largest_counts(monkeypatch):
    monkeypatch.setattr(tables, "NUMBERS", 100)
    monkeypatch.setattr(tables, "LARGEST", 10)
    monkeypatch.setattr(tables.rows_each, "__defaults__", (100,))
    for name in ("grid", "cube"):
        text = pg.report(made(name))
        for at, table in enumerate(made(name).tables):
            shown = data(text, f"data-{at}")
            assert shown["rows"] == len(table.values)
            if shown["rows"] > len(shown["values"]):
                assert len(shown["values"]) == 10
                largest = np.sort(np.asarray(table.values))[-10:]
                assert np.allclose(sorted(shown["values"]), largest, atol=0.1)
                pool = data(text, "labels")
                row = int(np.argmax(shown["values"]))
                labels = [
                    pool[place][code[row]]
                    for place, code in zip(shown["labels"], shown["codes"], strict=True)
                ]
                best = int(np.argmax(table.values))
                assert labels == [tables.text_of(np.asarray(listed)[best]) for listed in table.labels]
    assert rows_each([5, 50, 500], numbers=2_000) == 500


def test_labels_do_not_become_code():
    text = page("hostile")
    seen = Seen(text)
    scripts = [attributes for element, attributes in seen.elements if element == "script"]
    assert [a for a in scripts if a.get("type") != "application/json"] == [{}]
    assert not any(key.startswith("on") for _, attributes in seen.elements for key in attributes)
    assert {element for element, _ in seen.elements}.isdisjoint({"img", "u", "i"})
    assert "<script>window.hurt" not in text
    assert text.count("<script>") == 1
    for label in releases.HOSTILE:
        assert label in seen.text.replace("�", "")


def test_no_label_turns_the_words_beside_it():
    text = page("odd")
    outside = re.sub(r'<script type="application/json".*?</script>', "", text)
    assert not set(releases.TURNING) & set(outside.partition("<script>")[0])
    assert "na\ufffdme" in outside
    # The data, which is downloaded, has the labels as they are.
    [*_, labels] = sorted(data(text, "labels"), key=len)
    assert labels == releases.ODD
    assert (
        "a very long label " * 40
        not in outside.partition("<script>")[0].partition("policy.toml</summary>")[0]
    )


def test_tables_with_noise_are_open_first():
    domain = pg.Domain({"place": 30, "sex": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("place")])
    made = pg.release(
        pg.queries.all_cuboids(domain, up_to=1), policy, np.arange(60), epsilon=1, rng=pg.SeededRng(1)
    )
    parts = [a for element, a in Seen(pg.report(made)).elements if a.get("class") == "released"]
    is_open = {table.name: "open" in part for table, part in zip(made.tables, parts, strict=True)}
    assert is_open == {"total": True, "place": False, "sex": True}


def test_the_rest_of_two_long_data_sets_is_the_same():
    """Of A and of B all cells that change are listed, so that what is only counted is the same in both."""
    text = page("town").partition('id="certificate"')[2].partition("</section>")[0]
    rest = re.findall(r"and ([0-9,]+) more in ([0-9]+) other cells, the same in both", text)
    assert len(rest) == 2
    assert rest[0] == rest[1]
    witness = made("town").certificate.witness
    changed = set(witness.change)
    assert int(rest[0][1]) == len([cell for cell, _ in witness.before if cell not in changed])
    # One table was measured, as it is: its numbers are records.
    assert "times the weights" not in text
    domain = pg.Domain({"place": 30, "age": 20, "sex": 2})
    tables = pg.queries.all_cuboids(domain, up_to=1)
    release = pg.release(
        tables, pg.Policy(domain), np.ones(1200, int), epsilon=1, rng=releases.RNG, mechanism=pg.Cube()
    )
    assert max(release.record["cube"]["weights"]) > 1
    assert "times the weights" in pg.report(release)


def test_a_page_says_who_is_protected_against_whom():
    assert "every group of people, against somebody who knows the published tables" in page("census")
    assert "every set of edges, against somebody who knows the public facts" in page("network")


def test_the_pair_of_a_measure_names_it():
    assert ">income</th>" in page("measures")
    assert "value 1" not in page("measures")


def test_only_the_script_and_the_style_of_the_page_may_run():
    [rule] = [
        a["content"]
        for e, a in Seen(page("census")).elements
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert rule.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in rule
    assert "script-src 'sha256-" in rule


def test_public_tables_are_the_same_in_both_data_sets_of_the_pair():
    text = page("census")
    assert "Data set A" in text
    assert "Data set B" in text
    assert "The table sex" in text
    assert "The public tables of A and B agree" in text
    assert "against who knows the facts" in text  # what plain noise would lose


def test_the_budget_is_told_only_when_it_is_given(tmp_path):
    ledger = pg.Ledger(tmp_path / "b.db")
    domain = pg.Domain({"age": 3})
    release = pg.release(
        pg.queries.identity(domain), pg.Policy(domain), [5, 0, 2], epsilon=1, ledger=ledger, dataset="town"
    )
    ledger.set_limit("town", pg.Epsilon(4))
    release.write(tmp_path / "out")
    (tmp_path / "out" / "release.json").unlink()  # the Parquet file is enough
    plain, told = pg.report(tmp_path / "out"), pg.report(tmp_path / "out", account=ledger.account("town"))
    assert 'id="budget"' not in plain
    assert "town" not in plain
    assert "25 % of the budget is spent" in told
    assert "NOT PRIVATE" not in plain


def test_odds_in_words():
    assert "at most about 2.7: from 50 : 50 to at most about 73 %" in odds(pg.Epsilon(1))
    assert odds(pg.Epsilon(9)).endswith("from 50 : 50 to more than 99.9 %")
    assert "one case in a million" in odds(pg.Rho("0.5"))
    assert [percent(x) for x in (0.5, 0.982, 0.9999)] == ["50 %", "98.2 %", "more than 99.9 %"]


def test_graphs_are_drawn_or_shown_smaller():
    small = pg.Domain({"age": 5})
    assert policy_graph(pg.PolicyGraph.line(small)).picture.count("<circle") == 5
    large = pg.Domain({"sex": ["F", "M"], "age": 90, "work": 3})
    for graph in (pg.PolicyGraph.full(large), pg.PolicyGraph.line(large, "age"), pg.PolicyGraph.grid(large)):
        assert "the same rule on the first values" in policy_graph(graph).caption
    assert policy_graph(pg.PolicyGraph.grid(pg.Domain({"x": 30, "y": 30}))).picture.count("<rect") == 900
    listed = pg.PolicyGraph.from_edges(large, [(at, at + 1) for at in range(500)])
    assert policy_graph(listed) is None
    assert policy_graph(pg.PolicyGraph.full(pg.Network(4))) is None


@pytest.fixture
def people(tmp_path):
    (tmp_path / "p.toml").write_text(
        '[domain]\nsex = ["F", "M"]\nage = 3\n\n[[release]]\ncuboid = ["sex", "age"]\n'
    )
    (tmp_path / "p.csv").write_text("sex,age\n" + "F,0\nM,2\n" * 20)
    return tmp_path


def test_the_command_writes_a_page(people, capsys):
    common = [
        "release",
        str(people / "p.toml"),
        "--data",
        str(people / "p.csv"),
        "--ledger",
        str(people / "b.db"),
        "--dataset",
        "town",
    ]
    out = people / "out"
    assert run([*common, "--epsilon", "1", "--out", str(out), "--report"]) == 0
    first = (out / "report.html").read_text(encoding="utf-8")
    assert 'id="budget"' in first
    assert run([*common, "--epsilon", "2", "--out", str(out)]) == 2  # the page is of another release, too
    assert run([*common, "--epsilon", "2", "--out", str(out), "--overwrite"]) == 0
    assert (out / "report.html").read_text(encoding="utf-8") != first
    assert (
        run(["report", str(out), "--to", str(people / "r.html"), "--ledger", str(people / "b.db"), "--json"])
        == 0
    )
    assert "epsilon = 3" in (people / "r.html").read_text(encoding="utf-8")
    assert run(["report", str(out)]) == 0
    assert 'id="budget"' not in (out / "report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    for arguments, code in (
        (["report", str(people / "nowhere")], "report.folder"),
        (["report", str(out), "--dataset", "town"], "report.dataset"),
        (["report", str(out), "--ledger", str(people / "b.db"), "--dataset", "x"], "report.dataset"),
        (["report", str(out), "--to", str(people / "no" / "r.html")], "cli.target"),
    ):
        assert run(arguments) == 2
        assert f"[{code}]" in capsys.readouterr().err


def test_a_page_that_cannot_be_made_leaves_the_release(people, capsys, monkeypatch):
    out = people / "out"

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(import_module("policygraph.report.page"), "replacing", fail)
    arguments = [
        "release",
        str(people / "p.toml"),
        "--data",
        str(people / "p.csv"),
        "--epsilon",
        "1",
        "--out",
        str(out),
        "--report",
    ]
    assert run(arguments) == 2
    assert "The release is complete" in capsys.readouterr().err
    assert (out / "release.parquet").exists()


def test_labels_of_the_lattice_are_never_alike():
    names = ["municipality", "municipality of work", "sex"]
    rows = [
        ["municipality", "sex"],
        ["municipality of work", "sex"],
        ["municipality", "municipality of work"],
    ]
    for room in range(5, 60):
        made = [label for label in short_titles(rows, names, room) if label]
        assert len(set(made)) == len(made)
        assert all(len(label) <= room for label in made)
    assert short_titles(rows, names, 60) == [" × ".join(row) for row in rows]
    assert short_titles([[]], names, 20) == ["total"]
    assert short_titles(rows, names, 8) == ["", "", ""]


def test_a_pair_with_published_values_says_so():
    domain = pg.Domain({"place": 20, "sex": 2, "age": 4})
    facts = [
        pg.Cuboid("place", "sex", equals=[[90, 90]] * 20),
        pg.Cuboid("age", equals=[900] * 4),
    ]
    policy = pg.Policy(domain, constraints=facts)
    counts = np.zeros(domain.shape, dtype=np.int64)
    counts[...] = 22
    counts[:, :, :2] += 1
    counts[::2, :, 0] -= 1
    counts[::2, :, 2] += 1
    counts[1::2, :, 1] -= 1
    counts[1::2, :, 3] += 1
    assert counts.sum(axis=2).tolist() == [[90, 90]] * 20
    assert counts.sum(axis=(0, 1)).tolist() == [900] * 4
    made = pg.release(
        pg.queries.all_cuboids(domain, up_to=2), policy, counts.ravel(), epsilon=1, rng=pg.SeededRng(1)
    )
    page = pg.report(made)
    assert "both have the published values" in page
    # What is the same in both is counted and not listed; no list of bare numbers stands for a table.
    assert re.search(r"and [0-9,]+ more in [0-9]+ other cells, the same in both", page)
    assert "The table place × sex (40 published numbers)" in page
    assert "[90, 90" not in page
