"""What is installed: extras that hints name, a wheel with everything in it, completion for shells."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

import policygraph as pg
from policygraph.studio import Studio
from tests.paths import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
DOMAIN = pg.Domain({"a": 2})


def certificate():
    return pg.sensitivity(pg.queries.identity(DOMAIN), pg.Policy(DOMAIN))


def read(data, engine=None):
    return pg.release(
        pg.queries.identity(DOMAIN), pg.Policy(DOMAIN), data, epsilon=1, engine=engine, rng=pg.SeededRng(1)
    )


def measurement():
    from policygraph.opendp import to_measurement

    return to_measurement(certificate(), epsilon=1)


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("matplotlib.figure", "plot", lambda: pg.Policy(DOMAIN).draw()),
        ("openpyxl", "excel", lambda: read("people.xlsx")),
        ("psycopg", "postgres", lambda: read("postgresql://localhost/town/people")),
        ("psycopg", "postgres", lambda: pg.Ledger("postgresql://localhost/town").datasets()),
        ("pyspark", "spark", lambda: read("people.parquet", engine="spark")),
        ("opendp.prelude", "opendp", measurement),
        ("uvicorn", "studio", lambda: Studio(Path("budget.db"))),
        ("starlette", "studio", lambda: Studio(Path("budget.db"))),
    ],
)
def test_a_missing_library_is_named_with_its_extra(library, extra, use, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("people.xlsx").write_bytes(b"")
    pyarrow.parquet.write_table(pyarrow.table({"a": ["0", "1"]}), "people.parquet")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(pg.InputError, match=rf"pip install [\"']policygraph\[{extra}\][\"']"):
        use()
    needed = {re.split(r"[\[<>=]", each)[0] for each in EXTRAS[extra]}
    assert library.split(".")[0] in needed


def test_every_extra_that_a_text_names_exists():
    texts = [*(ROOT / "policygraph").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {
        extra
        for path in texts
        for extra in re.findall(r"policygraph\[(\w+)\]", path.read_text(encoding="utf-8"))
    }
    assert {"plot", "excel", "postgres", "spark", "opendp", "studio"} <= named <= set(EXTRAS)


def test_the_wheel_has_everything_and_works(tmp_path):
    """Built as pip builds it, and used from another place than the sources."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("policygraph-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        [metadata] = [name for name in inside if name.endswith("METADATA")]
        stated = set(re.findall(r"^Provides-Extra: (\S+)", archive.read(metadata).decode(), re.MULTILINE))
        archive.extractall(tmp_path / "there")
    kept = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "policygraph").rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    assert kept - inside == set()
    assert stated == set(EXTRAS)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "there")}
    where = subprocess.run(
        [sys.executable, "-c", "import policygraph; print(policygraph.__file__)"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(tmp_path / "there")
    policy = ROOT / "policies" / "census-margins.toml"
    for words in (
        ["demo", str(policy), "--out", "people.csv"],
        ["release", str(policy), "--data", "people.csv", "--epsilon", "1", "--out", "out", "--report"],
    ):
        ran = subprocess.run(
            [sys.executable, "-m", "policygraph", *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<style" in page
    assert "<script" in page


def command(*words, **variables):
    return subprocess.run(
        [sys.executable, "-m", "policygraph", *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


def test_a_shell_completes_commands_and_options():
    shown = command("--show-completion", "bash")
    assert shown.returncode == 0
    assert "complete -o default -F _policygraph_completion policygraph" in shown.stdout
    for line, at, expected in (
        ("policygraph re", 1, ["release", "report"]),
        ("policygraph release --eps", 2, ["--epsilon"]),
        ("policygraph budget s", 2, ["show", "set"]),
    ):
        found = command(
            _POLICYGRAPH_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(at), COLUMNS="100"
        )
        assert (found.returncode, found.stderr) == (0, "")
        assert set(expected) <= set(found.stdout.split())


def test_completion_is_installed_for_a_shell(tmp_path):
    done = command("--install-completion", "bash", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert ".bash_completions" in (tmp_path / ".bashrc").read_text(encoding="utf-8")
    [script] = (tmp_path / ".bash_completions").iterdir()
    checked = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
