"""The bars of the architecture: imports point down, none run in a circle, a name has one meaning, little is loaded."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import grimp
import networkx as nx
import pytest

import policygraph

ROOT = Path(policygraph.__file__).parent
CONFIGURATION = Path(__file__).parents[1] / "pyproject.toml"

TWICE: set[str] = set()
"""Class names that still have two meanings; each is to go."""


def circles(graph):
    """Sets of modules that import each other, imports inside functions included."""
    arrows = nx.DiGraph(
        (module, other)
        for module in graph.modules
        for other in graph.find_modules_directly_imported_by(module)
    )
    return [sorted(circle) for circle in nx.strongly_connected_components(arrows) if len(circle) > 1]


def test_imports_point_down():
    """The contracts of import-linter in pyproject.toml: the layers, and verify beside the rungs.

    In a process of its own, because import-linter configures logging, which disables the loggers of the process it runs in.
    """
    command = [
        sys.executable,
        "-c",
        "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1], no_cache=True))",
    ]
    run = subprocess.run([*command, str(CONFIGURATION)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_no_imports_in_a_circle():
    assert circles(grimp.build_graph("policygraph", cache_dir=None)) == []


def test_a_circle_inside_functions_is_seen(tmp_path, monkeypatch):
    package = tmp_path / "roundabout"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from roundabout import b\n")
    (package / "b.py").write_text("def f():\n    from roundabout import a\n    return a\n")
    (package / "c.py").write_text("from roundabout import a\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert circles(grimp.build_graph("roundabout", cache_dir=None)) == [["roundabout.a", "roundabout.b"]]


BY_NAME = {
    ("curator/gate.py", "policygraph.curator.runners.adaptive"),
    ("curator/gate.py", "policygraph.curator.runners.blocks"),
    ("curator/gate.py", "policygraph.curator.runners.exponential"),
    ("curator/gate.py", "policygraph.curator.runners.members"),
    ("curator/gate.py", "policygraph.curator.runners.partitioned"),
    ("curator/gate.py", "policygraph.curator.runners.sparse"),
    ("curator/gate.py", "policygraph.curator.runners.transformed"),
    ("curator/noise/rng.py", "policygraph.curator.gate"),
    ("mechanisms/candidates.py", "policygraph.mechanisms"),
    ("model/policy.py", "policygraph.model.drawing"),
    ("model/policy.py", "policygraph.moves.neighbours"),
    ("model/queries/__init__.py", "policygraph.mechanisms.strategy:strategy_from_spec"),
    ("moves/graver/lift.py", "policygraph.moves.graver._compiled_lift"),
    ("release/release.py", "policygraph.estimation.cubes.release:CubeRelease"),
    ("release/release.py", "policygraph.estimation.measures:MeasureRelease"),
}
"""Modules that are named in a text, to be loaded late: the contracts above cannot see these, so that each is listed."""


def test_modules_that_are_loaded_by_name_are_listed():
    found = set()
    for path in sorted(ROOT.rglob("*.py")):
        if path == ROOT / "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and re.fullmatch(r"policygraph(\.\w+)+(:\w+)?", text):
                found.add((path.relative_to(ROOT).as_posix(), text))
    assert found == BY_NAME


def test_no_module_imports_itself():
    for path in sorted(ROOT.rglob("*.py")):
        own = ".".join(("policygraph", *path.relative_to(ROOT).with_suffix("").parts))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert own not in [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_a_class_name_has_one_meaning():
    places = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: at for name, at in places.items() if len(at) > 1 and name not in TWICE} == {}


def test_a_module_says_what_it_owns():
    short = [
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
        if len(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "") <= 20
    ]
    assert short == []


@pytest.mark.parametrize("first", ["sensitivity.certificate", "release.release", "audit.bounds", "api"])
def test_functions_named_like_a_room_stay_functions(first):
    program = (
        f"import policygraph.{first}; import policygraph as pg; from policygraph import audit, release, sensitivity; "
        "print(all(callable(f) for f in (pg.audit, pg.release, pg.sensitivity, audit, release, sensitivity)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


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


def test_no_pandas_on_the_way_of_a_release(tmp_path):
    """pyarrow imports it where it can; a small release would take half as long again. From counting to the record, and back from it."""
    (tmp_path / "people.csv").write_text("sex,age\nF,1\nM,0\n")
    program = """
import sys
import policygraph as pg
domain = pg.Domain({"sex": ["F", "M"], "age": 3})
for query in (pg.queries.identity(domain), pg.queries.all_cuboids(domain)):
    for _ in range(2):
        pg.release(query, pg.Policy(domain), "people.csv", epsilon=1, ledger="budget.db").write("out")
print([m for m in ("pandas", "ortools", "matplotlib", "networkx") if m in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "[]"
