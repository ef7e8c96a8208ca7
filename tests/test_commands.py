"""Every command of the README and of the documents runs as it is written, one after the other, on data that are made up here."""

from __future__ import annotations

import csv
import io
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from pyarrow import parquet as pq
from pyarrow.csv import read_csv

from policygraph.cli.app import run
from tests.paths import ROOT
from tests.test_docs import PAGES, commands

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


def made_up(policy: str, *names: str) -> World:
    """Records for a policy of the folder policies/, under the names that a guide has for them."""

    def make(folder: Path) -> None:
        for name in names:
            demo(folder, policy, str(Path(name).with_suffix(".csv")))
            if name.endswith(".parquet"):
                pq.write_table(read_csv(folder / Path(name).with_suffix(".csv")), folder / name)

    return make


def margins(folder: Path) -> None:
    """Sex and salary of a university, of which both are published."""
    rows = [("sex", "salary"), *(("FM"[at % 2], SALARIES[at % 4]) for at in range(400))]
    with open(folder / "people.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    domain = f'[domain]\nsex = ["F", "M"]\nsalary = {list(SALARIES)}\n'
    facts = "".join(f'[[public]]\ncuboid = ["{name}"]\nequals = {values}\n' for name, values in COUNTED)
    asked = '[[release]]\nstatistic = "chi-squared"\nattributes = ["sex", "salary"]\n'
    (folder / "policy.toml").write_text(domain + facts + asked)


SALARIES = ("low", "middle", "high", "top")
COUNTED = (("sex", [200, 200]), ("salary", [100] * 4))


def certificate(folder: Path) -> None:
    """A certificate by itself."""
    policy = str(ROOT / "policies" / "census-margins.toml")
    assert run(["sensitivity", policy, "--out", str(folder / "certificate.json")]) == 0


FEW = {"--samples": "2000"}
"""What is repeated less often here than a guide says, so that it takes no minute."""

ELSEWHERE = {
    "docs/how-to/histograms.md": "repeated runs of all mechanisms take long: tests/mechanisms/test_compare.py",
    "docs/how-to/networks.md": "synthetic graphs take long: tests/test_networks.py",
    "docs/how-to/studio.md": "it goes on until it is stopped: tests/studio",
    "docs/tutorials/first-release.md": "tests/test_docs.py, with what it prints",
    "docs/tutorials/from-init-to-report.md": "tests/test_docs.py, with what it prints",
}
"""Pages whose commands other tests run. Commands with a ledger on a server are tried in tests/curator/test_ledger_server.py."""


# What is there before a command of a page, by its place among the commands of the page.
WORLDS: dict[str, dict[int, World]] = {
    "README.md": {0: own, 3: census},
    "docs/explanation/definitions.md": {0: census},
    "docs/how-to/attacks.md": {0: census, 2: made_up("families", "people.csv"), 4: census},
    "docs/how-to/audits.md": {0: census},
    "docs/how-to/cubes.md": {0: made_up("two-way-tables", "survey.csv")},
    "docs/how-to/from-a-file.md": {0: own},
    "docs/how-to/office-cube.md": {0: made_up("two-way-tables", "census.parquet")},
    "docs/how-to/online.md": {0: spent},
    "docs/how-to/operations.md": {0: spent},
    "docs/how-to/report.md": {0: spent},
    "docs/how-to/statistics.md": {0: margins},
    "docs/reference/certificates.md": {0: certificate},
    "docs/reference/ledger.md": {0: census, 11: census},
}


@pytest.mark.parametrize("page", WORLDS)
def test_commands_run_as_they_are_written(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").symlink_to(ROOT / "policies")
    listed = [words for words in commands(ROOT / page) if not any("postgresql:" in word for word in words)]
    # Days that are still to come, whenever this runs; and fewer repetitions.
    listed = [[re.sub(r"^20\d\d-", "2999-", word) for word in words] for words in listed]
    listed = [[FEW.get(before, word) for before, word in pairwise(["", *words])] for words in listed]
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
        # An alert is an answer of the command that looks for alerts.
        allowed = {0, 5} if words[1:3] == ["budget", "check"] else {0}
        assert status in allowed, f"{' '.join(words)}\n{capsys.readouterr().err}"


def test_every_page_with_commands_is_run() -> None:
    pages = {page.relative_to(ROOT).as_posix() for page in PAGES if commands(page)}
    assert pages == WORLDS.keys() | ELSEWHERE.keys()
