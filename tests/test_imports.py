"""The two bars of the architecture: imports never point back, and the package loads little."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import policygraph

ROOT = Path(policygraph.__file__).parent
LAYERS = (
    ("errors", "exact", "effort", "linalg", "solver", "ties", "documents", "output", "version"),
    ("model",),
    ("moves",),
    ("sensitivity",),
    ("transforms",),
    ("release",),
    ("estimation",),
    ("mechanisms",),
    ("curator",),
    ("audit",),
    ("files", "explain", "api"),
    ("conformance",),
    ("cli",),
)
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
ROOMS = {f"policygraph.{path.stem}" for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
FOUNDATIONS = {f"policygraph.{room}" for room in LAYERS[0]}
UPWARDS = {
    ("curator", "api"),
    ("mechanisms", "curator"),
    ("model", "mechanisms"),
    ("model", "moves"),
    ("release", "estimation"),
}
"""Arrows that still point up; each is to go."""


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


def test_no_arrow_points_up_but_the_listed_ones():
    up = set()
    for _, room, module in arrows():
        here, there = room.removesuffix(".py"), [*module.split("."), ""][1]
        if (
            here in ("__init__", "__main__")
            or not there
            or here == there
            or f"policygraph.{there}" not in ROOMS
        ):
            continue
        if HEIGHT[there] > HEIGHT[here] or (HEIGHT[there] == HEIGHT[here] > 0 and here not in LAYERS[10]):
            up.add((here, there))
    assert up == UPWARDS


def test_the_foundations_import_nothing_of_ours():
    wrong = [
        (str(path), module)
        for path, room, module in arrows()
        if f"policygraph.{room.removesuffix('.py')}" in FOUNDATIONS
        and ".".join(module.split(".")[:2]) not in FOUNDATIONS
    ]
    assert wrong == []


@pytest.mark.parametrize("first", ["sensitivity.certificate", "release.release", "audit.bounds", "api"])
def test_functions_named_like_a_room_stay_functions(first):
    program = (
        f"import policygraph.{first}; import policygraph as pg; from policygraph import audit, release, sensitivity; "
        "print(all(callable(f) for f in (pg.audit, pg.release, pg.sensitivity, audit, release, sensitivity)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_the_walk_would_see_a_wrong_arrow(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from policygraph.curator.noise import SecureRng\n")
    assert list(imported(bad)) == ["policygraph.curator.noise"]


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
