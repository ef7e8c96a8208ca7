"""The ledger under the clock and under fire: time of a charge, kills at random points, a race for the rest.

    python benchmarks/ledger.py                     everything: timing, 1,000 kills of each kind, 20 races
    python benchmarks/ledger.py --kills 50 --races 2 --charges 0 --json
    python benchmarks/ledger.py --server "postgresql://user@host/database" --workers 64      ledgers on a server

Exit status 1 if a charge or a release was lost, a request charged twice, a file became unreadable, or a limit was overspent.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import record

from policygraph.curator.ledger import Ledger
from policygraph.errors import BudgetError, LedgerError
from policygraph.model.loss import Epsilon

DATA, POLICY = "ab" * 32, "cd" * 32
LOSS = Epsilon("1/7")


class Places:
    """Where ledgers are: files of a folder, or names on a server that no other run uses."""

    def __init__(self, folder: Path, server: str | None) -> None:
        self.folder, self.server, self.mark = folder, server, os.urandom(4).hex()

    def __call__(self, name: str) -> Path | str:
        if self.server is None:
            return self.folder / f"{name}.db"
        return (
            f"{self.server}{'&' if '?' in self.server else '?'}ledger=b{self.mark}_{name.replace('-', '_')}"
        )

    def opened(self, place: Path | str) -> Ledger | None:
        """The ledger, read and checked as a new process would; None if it was not created."""
        if isinstance(place, Path) and not place.exists():
            return None
        try:
            return Ledger(place, create=False)
        except LedgerError as problem:
            if isinstance(place, Path) or problem.code != "ledger.unreadable":
                raise
            return None

    def interrupted(self, place: Path | str) -> bool:
        """Whether a kill left a transaction behind that the next opening has to undo; a server undoes it by itself."""
        if isinstance(place, str):
            return False
        journal = place.with_name(f"{place.name}-journal")
        return journal.exists() and journal.stat().st_size > 0


def timing(places: Places, count: int) -> dict[str, float]:
    """Milliseconds of a charge, beside what one write of 4 KB costs when it must reach the disk."""
    folder = places.folder
    ledger = Ledger(places("timing"))
    ledger.set_limit(DATA, Epsilon(10**6))
    charge, complete, bare = [], [], []
    with (folder / "bare").open("wb", buffering=0) as file:
        for number in range(count):
            start = time.perf_counter()
            entry = ledger.charge(DATA, POLICY, LOSS, f"request-{number}")
            charge.append(time.perf_counter() - start)
            start = time.perf_counter()
            ledger.complete(entry, b"x" * 1000)
            complete.append(time.perf_counter() - start)
            start = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            bare.append(time.perf_counter() - start)
    start = time.perf_counter()
    Ledger(places("timing"))
    opening = time.perf_counter() - start
    figures = {
        "charge_ms_median": statistics.median(charge),
        "charge_ms_p95": sorted(charge)[int(0.95 * (count - 1))],
        "complete_ms_median": statistics.median(complete),
        "open_and_verify_ms": opening,
        "bare_fsync_ms_median": statistics.median(bare),
    }
    return {key: round(1000 * value, 3) for key, value in figures.items()}


def _release_until_killed(path: Path | str, pipe: int) -> None:
    """Charge, let a value out, record it, again and again; the parent ends it."""
    ledger = Ledger(path)
    while True:
        charge = ledger.charge(DATA, POLICY, LOSS, f"request-{os.getpid()}")
        os.write(pipe, f"{charge.number}\n".encode())
        ledger.complete(charge, b"noisy value")


def _kill_once(path: Path | str, delay: float) -> list[int]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _release_until_killed(path, write)
        finally:
            os._exit(1)
    os.close(write)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise SystemExit(f"a worker ended by itself with status {status}")
    with os.fdopen(read, "rb") as pipe:
        return [int(line) for line in pipe.read().split()]


def kills(places: Places, count: int, seed: int) -> dict[str, int]:
    """SIGKILL a releasing process at random points; every tenth time it has to create the ledger itself."""
    rng = random.Random(seed)
    figures = dict.fromkeys(
        ("kills", "interrupted_commits", "before_creation", "released", "lost", "unreadable"), 0
    )
    start = time.perf_counter()
    warm = Ledger(places("warm"))
    for number in range(20):
        warm.complete(warm.charge(DATA, POLICY, LOSS, str(number)), b"x")
    window = 3 * (time.perf_counter() - start) / 20
    path = places("kills")
    for number in range(count):
        figures["kills"] += 1
        if number % 10 == 0:
            path = places(f"kills-{number}")
        released = _kill_once(path, rng.uniform(0, window))
        figures["released"] += len(released)
        figures["interrupted_commits"] += places.interrupted(path)
        try:
            ledger = places.opened(path)
            if ledger is None:
                figures["before_creation"] += 1
                figures["lost"] += len(released)
                continue
            recorded = {entry.number for entry in ledger.history()}
            spent = ledger.spent(DATA)
        except Exception as problem:
            print(f"unreadable after kill {number}: {problem}", file=sys.stderr)
            figures["unreadable"] += 1
            continue
        figures["lost"] += len(set(released) - recorded)
        figures["lost"] += (spent.value if isinstance(spent, Epsilon) else 0) != LOSS.value * len(recorded)
    return figures


def release_kills(places: Places, count: int, seed: int) -> dict[str, int]:
    """SIGKILL a process in the middle of a release, then ask once more: nothing may be lost, and nothing charged twice."""
    import policygraph as pg

    rng = random.Random(seed)
    domain = pg.Domain({"age": 50})
    query, policy, data = pg.queries.identity(domain), pg.Policy(domain), list(range(50))

    def ask(path: Path | str, number: int) -> list[int]:
        made = pg.release(query, policy, data, epsilon=Fraction(1, number + 1), ledger=path)
        return [int(value) for value in made.values()]

    figures = dict.fromkeys(
        (
            "kills",
            "before_the_charge",
            "waiting",
            "completed",
            "charges_lost",
            "releases_lost",
            "charged_twice",
        ),
        0,
    )
    warm = places("warm-release")
    start = time.perf_counter()
    for number in range(10):
        ask(warm, number)
    window = 1.3 * (time.perf_counter() - start) / 10
    path, before = places("release-kills"), 0
    for number in range(count):
        if number % 50 == 0:
            path, before = places(f"release-kills-{number}"), 0
            Ledger(path)
        figures["kills"] += 1
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(read)
                os.write(write, json.dumps(ask(path, number)).encode())
                time.sleep(60)
            finally:
                os._exit(1)
        os.close(write)
        time.sleep(rng.uniform(0, window))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(read, "rb") as pipe:
            told = pipe.read()
        entries = Ledger(path).history()[before:]
        figures["before_the_charge"] += not entries
        figures["waiting"] += any(entry.status == "charged" for entry in entries)
        figures["completed"] += any(entry.status == "completed" for entry in entries)
        again = ask(path, number)
        after = Ledger(path).history()[before:]
        figures["charges_lost"] += [entry.number for entry in entries] != [entry.number for entry in after][
            : len(entries)
        ]
        figures["charges_lost"] += not after
        figures["charged_twice"] += len(after) > 1
        figures["releases_lost"] += any(entry.status != "completed" for entry in after)
        figures["releases_lost"] += bool(told) and json.loads(told) != again
        before += len(after)
    return figures


def race(path: Path | str, workers: int) -> tuple[int, Fraction]:
    """Let processes spend tenths of one epsilon until they are refused; give the charges and the sum."""
    ledger = Ledger(path)
    ledger.set_limit(DATA, Epsilon(1))
    gate_read, gate_write = os.pipe()
    result_read, result_write = os.pipe()
    children = []
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(gate_write)
                os.read(gate_read, 1)
                while True:
                    try:
                        ledger.charge(DATA, POLICY, Epsilon("1/10"), f"request-{os.getpid()}")
                    except BudgetError:
                        break
                    os.write(result_write, b"x")
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    for handle in (gate_read, gate_write, result_write):
        os.close(handle)
    failed = sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)
    with os.fdopen(result_read, "rb") as results:
        charges = len(results.read())
    if failed:
        raise SystemExit(f"{failed} racing processes failed")
    spent = Ledger(path).spent(DATA)
    return charges, spent.value if isinstance(spent, Epsilon) else Fraction(0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--charges", type=int, default=500)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--races", type=int, default=20)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=20240229)
    parser.add_argument("--folder", help="where to put the files; a disk, to measure one")
    parser.add_argument("--server", help="address of a database in which to make the ledgers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        places = Places(Path(name), options.server)
        if options.charges:
            report["timing"] = timing(places, options.charges)
        report["kills"] = kills(places, options.kills, options.seed)
        report["release_kills"] = release_kills(places, options.kills, options.seed)
        outcomes = [race(places(f"race-{number}"), options.workers) for number in range(options.races)]
        report["races"] = {
            "races": len(outcomes),
            "workers": options.workers,
            "overspent": sum(spent > 1 for _, spent in outcomes),
            "not_exactly_spent": sum((charges, spent) != (10, 1) for charges, spent in outcomes),
        }
    bad = report["kills"]["lost"] + report["kills"]["unreadable"] + report["races"]["not_exactly_spent"]
    bad += sum(report["release_kills"][key] for key in ("charges_lost", "releases_lost", "charged_twice"))
    if options.json:
        print(json.dumps(report))
    else:
        for part, figures in report.items():
            note = record.figure if part == "timing" else record.ratio
            for key, value in figures.items():
                note(f"{part}, {key}", value)
            print(part, *(f"  {key:<24}{value}" for key, value in figures.items()), sep="\n")
        record.save("ledger" if options.server is None else "ledger-server")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
