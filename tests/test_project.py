"""What stands beside the package says the same as the package: citation, tasks, changelog, recorded benchmarks."""

import ast
import io
import json
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

import policygraph
from benchmarks import compare, record

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_citation_names_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", text, re.M)[1] == policygraph.__version__
    assert re.search(r"^license: (.+)$", text, re.M)[1] == SETTINGS["project"]["license"]


def test_fragments_of_the_changelog_have_a_known_kind():
    kinds = {kind["directory"] for kind in SETTINGS["tool"]["towncrier"]["type"]}
    names = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert [
        name for name in names if not re.fullmatch(rf"\+?[a-z0-9-]+\.({'|'.join(kinds)})\.md", name)
    ] == []
    assert SETTINGS["tool"]["towncrier"]["start_string"] in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )


def test_the_checks_before_landing_call_tasks_that_exist():
    tasks = set(
        re.findall(r"^@nox\.session\ndef (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.M)
    )
    lines = re.findall(r"nox -s ([a-z ]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    called = " ".join(lines).split()
    assert set(called) <= tasks
    assert {"lint", "types", "imports", "floors", "examples"} <= set(called)


def test_every_benchmark_records_its_figures():
    scripts = {path for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in ("record", "compare")}
    assert [
        path.stem for path in sorted(scripts) if "record.save(" not in path.read_text(encoding="utf-8")
    ] == []


def lines_of_code(path):
    """Lines without docstrings, comments and blank lines."""
    text = path.read_text(encoding="utf-8")
    notes = (
        range(node.lineno, node.end_lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    blank = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    found = (
        range(token.start[0], token.end[0] + 1)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in blank
    )
    return len({line for lines in found for line in lines} - {line for lines in notes for line in lines})


def test_the_core_of_the_trusted_code_can_be_read_in_an_afternoon():
    """As ``docs/explanation/trusted-code.md`` promises: where true values meet noise stays below 1,600 lines."""
    room = ROOT / "policygraph" / "curator"
    core = [room / "gate.py", room / "histogram.py", room / "releasing.py"]
    core += [*(room / "runners").glob("*.py"), *(room / "noise").glob("*.py")]
    assert len(core) >= 12
    assert 1_000 < sum(map(lines_of_code, core)) <= 1_600


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Record a run with these figures and ratios, and return its file."""

    def make(name, figures, ratios):
        monkeypatch.setattr(record, "FIGURES", {})
        monkeypatch.setattr(record, "RATIOS", {})
        for key, value in figures.items():
            record.figure(key, value)
        for key, value in ratios.items():
            record.ratio(key, value)
        made = record.save(name, tmp_path / str(len(list(tmp_path.iterdir()))))
        return str(made)

    return make


def test_runs_are_compared_by_what_does_not_depend_on_the_machine(run, capsys):
    old = run("noise", {"draw, s": 1.0}, {"times as fast": 100, "value": 4})
    assert json.loads(Path(old).read_text())["versions"]["python"]
    same = run("noise", {"draw, s": 9.0}, {"times as fast": 95, "value": 4})
    slower = run("noise", {"draw, s": 1.0}, {"times as fast": 50, "value": 4})
    fewer = run("noise", {"draw, s": 1.0}, {"times as fast": 100})
    assert compare.main([old, same]) == 0
    assert compare.main([old, same, "--strict"]) == 1
    assert compare.main([old, same, "--within", "0.01"]) == 1
    assert compare.main([old, slower]) == 1
    assert compare.main([old, fewer]) == 1
    assert compare.main([old, run("other", {}, {})]) == 2
    assert "times as fast" in capsys.readouterr().out
