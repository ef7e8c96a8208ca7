"""All tasks of the project; ``nox --list`` shows them, ``nox`` runs those that must pass before a change lands.

They run in the environment that nox is installed in: ``pip install -e ".[test,dev]"`` and then ``nox``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import nox

ROOT = Path(__file__).parent
DATA = ROOT / ".coverage-data" / "lines"
RECORDING = {"COVERAGE_PROCESS_START": str(ROOT / "pyproject.toml"), "COVERAGE_FILE": str(DATA)}
"""With these in the environment every Python process that is started records which lines it runs."""
FLOORS = (("policygraph/*", 97), ("policygraph/curator/*", 99.5))
"""Lines that tests must run, in per cent: of everything, and of the code that sees records and randomness."""
ON_TWO = ("-n", "2", "--dist", "worksteal")
"""Two processes that take the tests in order, half each, so that neighbours share what is expensive to set up; who ends first helps the other."""
QUICK = ("sensitivity", "blowfish", "move_graphs", "matching")
"""Benchmarks that need neither data nor other libraries and take a few minutes together."""

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "imports", "coverage", "examples", "site", "changelog"]


def python(session: nox.Session, *words: str, **variables: str) -> None:
    """Run a module or script in this environment."""
    session.run(sys.executable, *words, env=variables or None, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and likely mistakes (ruff)."""
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types (mypy, strict)."""
    python(session, "-m", "mypy")


@nox.session
def imports(session: nox.Session) -> None:
    """Layers, cycles, names and lazy imports (import-linter and tests/test_imports.py)."""
    session.run(str(Path(sys.executable).with_name("lint-imports")), "--no-cache", external=True)
    python(session, "-m", "pytest", "tests/test_imports.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The whole suite, doctests and documents included; arguments go to pytest."""
    python(session, "-m", "pytest", *(session.posargs or ON_TWO))


@nox.session
def docs(session: nox.Session) -> None:
    """The examples in the documents, and the pages that a test holds to the code."""
    pages = ["README.md", "CONTRIBUTING.md", "docs", *map(str, Path("tests").glob("test_*doc*.py"))]
    python(session, "-m", "pytest", *pages, *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """The documents as a site with search, in site/; a broken link is an error."""
    forgotten = ROOT / "site"
    shutil.rmtree(forgotten, ignore_errors=True)
    trees = ROOT / "build" / "doctrees"
    python(
        session, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(trees), "-c", "docs/site", ".", "site"
    )


@nox.session
def examples(session: nox.Session) -> None:
    """Every script in examples/, each in an empty folder."""
    for example in sorted((ROOT / "examples").glob("*.py")):
        with tempfile.TemporaryDirectory() as place, session.chdir(place):
            python(session, str(example))


@nox.session
def coverage(session: nox.Session) -> None:
    """The whole suite again, held to the floors of coverage; arguments go to pytest."""
    forget(DATA)
    python(session, "-m", "pytest", *(session.posargs or ON_TWO), **RECORDING)
    floors(session)


@nox.session
def floors(session: nox.Session) -> None:
    """Hold recorded lines (of ``coverage``, or of any run with its environment variables) to the floors."""
    where = {"COVERAGE_FILE": str(DATA)}
    if not DATA.exists():
        python(session, "-m", "coverage", "combine", "-q", **where)
    for part, floor in FLOORS:
        session.log(f"{part}: {floor} % of all lines")
        python(
            session,
            "-m",
            "coverage",
            "report",
            f"--include={part}",
            f"--fail-under={floor}",
            "--precision=2",
            **where,
        )


def forget(data: Path) -> None:
    """Remove recorded lines."""
    data.parent.mkdir(exist_ok=True)
    for old in data.parent.iterdir():
        old.unlink()


@nox.session
def mutation(session: nox.Session) -> None:
    """Change the trusted code in small ways and see whether a test notices; arguments choose modules."""
    python(session, "-m", "tests.mutation", "run", *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Run benchmarks by name (the quick ones if none is given) and record their figures as JSON."""
    for name in session.posargs or QUICK:
        python(
            session,
            f"benchmarks/{name}.py",
            PYTHONPATH=os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        )


@nox.session
def changelog(session: nox.Session) -> None:
    """Show the next section of the changelog as the fragments in changelog.d/ make it."""
    python(session, "-m", "towncrier", "build", "--draft", "--version", "next")
