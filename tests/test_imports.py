"""The two bars of the architecture: imports never point back, and the package loads little."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import policygraph

ROOT = Path(policygraph.__file__).parent
FREE = {"policygraph.effort", "policygraph.errors", "policygraph.exact", "policygraph.version"}
MAY = {
    "public": ("policygraph.public",),
    "published": ("policygraph.public", "policygraph.published"),
    "private": ("policygraph.public", "policygraph.published", "policygraph.private"),
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            if module == "policygraph":
                yield from (f"policygraph.{name.name}" for name in node.names)
            else:
                yield module


def arrows():
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0]
        for module in imported(path):
            if module.startswith("policygraph"):
                yield path.relative_to(ROOT), room, module


@pytest.mark.parametrize("room", sorted(MAY))
def test_no_arrow_points_back(room):
    found = [(str(path), module) for path, where, module in arrows() if where == room]
    assert found, room
    wrong = [(p, m) for p, m in found if m not in FREE and not m.startswith(MAY[room])]
    assert wrong == []


def test_the_foundations_import_nothing_of_ours():
    wrong = [
        (str(path), module)
        for path, room, module in arrows()
        if room in ("effort.py", "errors.py", "exact.py", "version.py") and module not in FREE
    ]
    assert wrong == []


def test_the_walk_would_see_a_wrong_arrow(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from policygraph.private.noise import SecureSource\n")
    assert list(imported(bad)) == ["policygraph.private.noise"]


HEAVY = (
    "ortools",
    "duckdb",
    "matplotlib",
    "scipy",
    "networkx",
    "numba",
    "pydantic",
    "pyarrow",
    "pandas",
    "typer",
    "dp_accounting",
)


@pytest.mark.parametrize(
    "code",
    [
        "import policygraph",
        "import policygraph as pg; pg.Policy(pg.Domain({'a': 2})); pg.queries.cuboid; pg.PolicyGraph; pg.Sensitivity",
    ],
)
def test_heavy_libraries_wait_until_they_are_needed(code):
    program = f"{code}\nimport sys\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


OURS, THEIRS = 4, 60
"""Modules that ``import policygraph`` may load: of this package, and of others (numpy alone would be 100 and more)."""


def test_import_loads_few_modules():
    program = (
        "import sys; before = set(sys.modules); import policygraph; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = [name for name in done.stdout.split() if name.split(".")[0] == "policygraph"]
    assert len(ours) <= OURS, ours
    assert len(done.stdout.split()) - len(ours) <= THEIRS


def test_every_public_name_exists_and_has_a_docstring():
    for name in policygraph.__all__:
        found = getattr(policygraph, name)
        if name not in ("__version__", "BOTTOM"):
            assert found.__doc__, name
    with pytest.raises(AttributeError):
        _ = policygraph.nothing


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_fit_on_a_few_screens(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 500
    assert len(ast.get_docstring(ast.parse(text)) or "") > 20, "a module says what it owns"
