"""Every command of the README and of the guides for newcomers runs as it is written, one after the other, on data that are made up here."""

from __future__ import annotations

import csv
import io
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from policygraph.cli.app import run
from tests.paths import ROOT
from tests.test_docs import commands

World = Callable[[Path], None]


def own(folder: Path) -> None:
    """A file of somebody's own, with a line for each person, and two published tables about them."""
    rng = random.Random(3)
    people = [(rng.choice("FM"), rng.randrange(96), rng.choice(["yes", "no"])) for _ in range(400)]
    groups = Counter("0-17" if age < 18 else "18-64" if age < 65 else "65+" for _, age, _ in people)
    for name, head, rows in (
        ("people.csv", ("sex", "age", "work"), people),
        ("population.csv", ("sex", "count"), sorted(Counter(sex for sex, _, _ in people).items())),
        ("ages.csv", ("age", "count"), sorted(groups.items())),
    ):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *rows])


def census(folder: Path) -> None:
    """The policy of a census, with records; also under the names that the guides have for anybody's."""
    (folder / "policy.toml").write_bytes((ROOT / "policies" / "census-margins.toml").read_bytes())
    for name in ("people.csv", "records.csv"):
        demo(folder, "census-margins", name)


def with_ledger(folder: Path) -> None:
    """A ledger with an account of the data, as an earlier release left it."""
    data = str(folder / "people.csv")
    assert run(["budget", "set", str(folder / "budget.db"), data, "--name", "people", "--epsilon", "2"]) == 0


def spent(folder: Path) -> None:
    """The census, and an account of it in a ledger."""
    census(folder)
    with_ledger(folder)


def demo(folder: Path, policy: str, name: str) -> None:
    made = ["demo", str(ROOT / "policies" / f"{policy}.toml"), "--out", str(folder / name), "--rows", "400"]
    assert run(made) == 0


# What is there before a command of a page, by its place among the commands of the page.
WORLDS: dict[str, dict[int, World]] = {
    "README.md": {0: own, 3: census},
    "docs/how-to/from-a-file.md": {0: own},
    "docs/how-to/report.md": {0: spent},
}


@pytest.mark.parametrize("page", WORLDS)
def test_commands_run_as_they_are_written(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").symlink_to(ROOT / "policies")
    listed = commands(ROOT / page)
    assert listed
    assert max(WORLDS[page]) < len(listed)
    for at, words in enumerate(listed):
        if at in WORLDS[page]:
            for left in ("out", "budget.db"):
                if (tmp_path / left).exists():
                    (tmp_path / left).rename(tmp_path / f"{left}-before-{at}")
            WORLDS[page][at](tmp_path)
        # Questions are answered with yes.
        monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 40))
        status = run(words[1:])
        assert status == 0, f"{' '.join(words)}\n{capsys.readouterr().err}"
