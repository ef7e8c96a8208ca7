"""Ctrl-C at any moment: status 130 or a finished command, no traceback, nothing half, nothing charged twice."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import policygraph as pg

ROOT = Path(pg.__file__).parent
POLICY = '[domain]\nsex = ["F", "M"]\nage = 3\n[neighbours]\ngraph = "full"\n'
FILES = {"release.parquet", "release.csv", "release.json", "certificate.json", "tables"}

AT = """
import os, signal, sys
at, count = int(sys.argv[1]), 0
def watch(frame, event, arg):
    global count
    count += 1
    if count == at:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
from policygraph.cli import main
sys.setprofile(watch)
try:
    main(sys.argv[2:])
finally:
    sys.setprofile(None)
    if at == 0:
        print("calls:", count, file=sys.stderr)
"""

SOLVER = """
import os, signal, sys, threading
import policygraph.cli as cli
def hard(arguments):
    from ortools.sat.python import cp_model
    n, model = 12, cp_model.CpModel()
    x = [[model.new_bool_var("") for _ in range(n - 1)] for _ in range(n)]
    for i in range(n):
        model.add_bool_or(x[i])
        for j in range(n - 1):
            for k in range(i):
                model.add_bool_or(x[i][j].negated(), x[k][j].negated())
    solver = cp_model.CpSolver()
    solver.parameters.cp_model_presolve = False
    solver.parameters.num_workers = 1
    if sys.argv[1] == "settled":
        solver.parameters.catch_sigint_signal = False
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    print("solved:", solver.status_name(solver.solve(model)), flush=True)
    return 0
cli._work = hard
cli.main([])
"""


def start(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, which hears Ctrl-C even when this one does not."""
    return subprocess.run(
        [sys.executable, "-c", script, *(str(argument) for argument in arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT.parent)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def points(total: int, number: int) -> list[int]:
    """Moments of a command: dense at its beginning, and to its very end."""
    early = [
        2**power for power in range(3, total.bit_length(), 4)
    ]  # the first calls are those of this very script
    return sorted({*early, *(total * k // number for k in range(1, number)), total - 1})


pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def test_a_command_without_data(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(POLICY)
    command = ["check", tmp_path / "p.toml", "--json"]
    whole = start(AT, 0, *command)
    total = int(whole.stderr.split("calls:")[1])
    statuses = []
    for at in points(total, 4):
        told = start(AT, at, *command)
        statuses.append(told.returncode)
        assert told.returncode in (0, 130), (at, told.returncode, told.stderr[-2000:])
        assert "Traceback" not in told.stderr, (at, told.stderr[-2000:])
        assert "internal error" not in told.stderr
    assert statuses.count(130) > len(statuses) / 2


def test_a_release_is_made_once_whenever_it_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(POLICY)
    (tmp_path / "d.csv").write_text("sex,age\n" + "F,0\nM,1\n" * 9)

    def command(name: str) -> list[object]:
        more = ["--epsilon", "1", "--ledger", tmp_path / f"{name}.db", "--out", tmp_path / name]
        return ["release", tmp_path / "p.toml", "--data", tmp_path / "d.csv", *more]

    whole = start(AT, 0, *command("whole"))
    assert whole.returncode == 0, whole.stderr
    total = int(whole.stderr.split("calls:")[1])
    for at in [total * k // 100 for k in (80, 90, 97)]:
        out, ledger = tmp_path / str(at), tmp_path / f"{at}.db"
        told = start(AT, at, *command(str(at)))
        assert told.returncode in (0, 130), (at, told.returncode, told.stderr[-2000:])
        assert "Traceback" not in told.stderr, (at, told.stderr[-2000:])
        left = {path.name for path in out.iterdir()} if out.exists() else set()
        assert left <= FILES, left
        again = start("from policygraph.cli import main; main()", *command(str(at)), "--overwrite")
        assert again.returncode == 0, again.stderr
        assert len(pg.Ledger(ledger, create=False).history()) == 1
        assert {path.name for path in out.iterdir()} == FILES


@pytest.mark.parametrize("how", ["settled", "as it comes"])
def test_a_solver_that_keeps_the_signal_does_not_keep_the_command(how: str) -> None:
    told = start(SOLVER, how)
    assert told.returncode == 130, (told.returncode, told.stderr[-2000:])
    assert "Traceback" not in told.stderr
    assert "solved" not in told.stdout, "the solver was stopped, and its unknown was taken for an answer"


def test_no_solver_catches_the_signal_itself() -> None:
    """In Python, too: a search that Ctrl-C stopped would say unknown, and be read as a bound that takes too long."""
    bare = []
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef):
                body = ast.unparse(function)
                if (
                    "CpSolver()" in body
                    and "catch_sigint_signal = False" not in body
                    and "careful(" not in body
                ):
                    bare.append(f"{path.relative_to(ROOT)}: {function.name}")
    assert bare == []
    assert "catch_sigint_signal = False" in (ROOT / "solver" / "layers.py").read_text(encoding="utf-8")


def test_compiled_loops_let_other_threads_run() -> None:
    """The thread that waits for Ctrl-C cannot act while a loop holds the interpreter."""
    for path in sorted(ROOT.rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "njit(" in line:
                assert "nogil=True" in line, f"{path.relative_to(ROOT)}: {line}"
