"""The data officer of a statistical office: from a file of people and a published table to tables for everybody.

Everything is made up. Run it anywhere: ``python examples/data_officer.py``. The same on the command line: ``policygraph init``, ``plan``, ``release``.
"""

import csv
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from policygraph.cli.app import run

TOWNS = [f"Town {at:02}" for at in range(12)]


def make_people(folder: Path, count: int = 20_000) -> None:
    """Write people.csv, and population.csv: how many live in each town, exactly."""
    random.seed(2024)
    population = dict.fromkeys(TOWNS, 0)
    with open(folder / "people.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person_id", "town", "sex", "age", "work"])
        for number in range(count):
            town, age = random.choices(TOWNS, range(3, 15))[0], int(random.triangular(0, 99, 40))
            population[town] += 1
            rows.writerow(
                [number, town, random.choice("FM"), age, random.choice(["yes", "no"]) if age > 15 else "no"]
            )
    with open(folder / "population.csv", "w", newline="") as file:
        csv.writer(file).writerows([["town", "count"], *population.items()])


def command(arguments: list[str]) -> None:
    """Run ``policygraph`` as on the command line."""
    if run(arguments) != 0:
        raise SystemExit(1)


def main() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        make_people(folder)
        policy = folder / "policy.toml"
        command(["init", str(folder / "people.csv"), "--out", str(policy), "--yes"])

        # The population of each town is published: state it, and let the file say what it is.
        policy.write_text(policy.read_text() + '\n[[public]]\ncuboid = ["town"]\nequals = "population.csv"\n')
        command(["plan", str(policy), "--error", "100", "--brief"])
        release = [
            "release",
            str(policy),
            "--data",
            str(folder / "people.csv"),
            "--epsilon",
            "1",
            "--out",
            str(folder / "out"),
        ]
        command([*release, "--ledger", str(folder / "budget.db")])
        for path in sorted((folder / "out" / "tables").glob("*.csv")):
            print(path.name, "-", path.read_text().splitlines()[1])


if __name__ == "__main__":
    main()
