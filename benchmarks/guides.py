"""Figures of the guides to sums and averages and to questions one by one, on the Adult data.

    python benchmarks/guides.py [--write]

Reads ``adult/adult.data`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the repository). With ``--write`` the
figures go into ``docs/how-to/measures.md`` and ``docs/how-to/online.md``, between their markers. Releases are seeded: the same figures on every machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.csv
import record

import policygraph as pg

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("POLICYGRAPH_DATA", ROOT.parent / "shared" / "data"))
FILE = DATA / "adult" / "adult.data"
COLUMNS = [
    "age", "workclass", "weight", "education", "years", "marital", "occupation", "relationship", "race", "sex", "gain", "loss", "hours", "country",
    "salary",
]  # fmt: skip
ASKED = ["education", "marital", "relationship", "race", "sex", "salary"]
SETS = [["sex"], ["race"], ["education", "sex"], []]


def adult() -> pyarrow.Table:
    """The records, without the spaces before their values."""
    read = pyarrow.csv.ReadOptions(column_names=COLUMNS)
    table = pyarrow.csv.read_csv(FILE, read_options=read)
    return pyarrow.table(
        {
            name: pyarrow.compute.utf8_trim_whitespace(table[name])
            if pyarrow.types.is_string(table[name].type)
            else table[name]
            for name in COLUMNS
        }
    )


def domain_of(table: pyarrow.Table, names: Sequence[str]) -> pg.Domain:
    """The labels that occur, sorted; a benchmark may take them from the data, a release may not."""
    return pg.Domain({name: sorted(table[name].unique().to_pylist()) for name in names})


def averages(table: pyarrow.Table) -> str:
    """Half-widths of the intervals of averages, as rows of a table."""
    domain = domain_of(table, ["sex", "race", "education"])
    query = pg.queries.averages(domain, SETS, pg.Measure("hours", 0, 100))
    cases = [
        ("one record more or less", pg.Policy(domain), {"epsilon": 1}),
        ("", pg.Policy(domain), {"rho": "1/2"}),
        (
            "any record may change into any other",
            pg.Policy(domain, pg.PolicyGraph.full(domain)),
            {"epsilon": 1},
        ),
        (
            "one attribute of a record may change",
            pg.Policy(domain, pg.PolicyGraph.attribute(domain)),
            {"epsilon": 1},
        ),
    ]
    rows = ["| policy | loss | by sex | by race | by education x sex |", "|---|---|---|---|---|"]
    for name, policy, loss in cases:
        made = pg.release(query, policy, table, rng=pg.SeededRng(1), **loss)
        shown = []
        for names in SETS[:3]:
            found = made.average(*names)
            half = (found.high_95 - found.low_95)[found.defined] / 2
            undefined = int((~found.defined).sum())
            shown.append(
                f"{half.min():.2g} ... {half.max():.2g}" + (f" ({undefined} undefined)" if undefined else "")
            )
            record.ratio(f"{name or 'the same'} at {loss}: {names}, narrowest", float(half.min()))
        rows.append(
            f"| {name} | {' '.join(f'{kind} = {value}' for kind, value in loss.items())} | {' | '.join(shown)} |"
        )
    return "\n".join(rows)


def questions(table: pyarrow.Table) -> str:
    """What questions one by one cost, beside each of them alone."""
    domain = domain_of(table, ASKED)
    one, two, three = ([list(names) for names in combinations(ASKED, size)] for size in (1, 2, 3))
    growing = [*((names, 20) for names in [*one, *two, *one, []])]
    falling = [*((names, 20) for names in three), *((names, 60) for names in [*two, *one, []])]
    spent, alone, free, many = {}, {}, {}, {}
    for name, asked in (("growing", growing), ("falling", falling)):
        with tempfile.TemporaryDirectory() as folder:
            cube = pg.OnlineCube(
                pg.Policy(domain), table.select(ASKED), f"{folder}/budget.db", rng=pg.SeededRng(1)
            )
            paid = [cube.ask(*names, deviation=deviation).spent for names, deviation in asked]
        with tempfile.TemporaryDirectory() as folder:
            fresh = pg.OnlineCube(
                pg.Policy(domain), table.select(ASKED), f"{folder}/budget.db", rng=pg.SeededRng(1)
            )
            each = [fresh.cost(*names, deviation=deviation) for names, deviation in asked]
        spent[name] = sum((loss.value for loss in paid if loss is not None), Fraction(0))
        alone[name] = sum((loss.value for loss in each if loss is not None), Fraction(0))
        free[name], many[name] = sum(loss is None for loss in paid), len(asked)
        record.ratio(f"{name}: epsilon", float(spent[name]))
    sizes = ", ".join(f"{name} {len(domain.labels(name))}" for name in ASKED)
    return (
        f"Adult, six attributes ({sizes}), one record more or less, every count with a standard deviation of 20: the {len(one)} one-way tables, the "
        f"{len(two)} two-way tables, the one-way tables again and the total cost {float(spent['growing']):.3g} in epsilon, instead of "
        f"{float(alone['growing']):.3g} one by one; {free['growing']} of the {many['growing']} questions are free. If the {len(three)} three-way tables are asked "
        f"first at 20, and smaller tables at 60, then {free['falling']} of the {many['falling']} questions are free and all of them cost {float(spent['falling']):.3g}."
    )


def main() -> int:
    """Print the figures, and write them with ``--write``."""
    if not FILE.exists():
        print(f"{FILE} is not there: set POLICYGRAPH_DATA.")
        return 2
    table = adult()
    pages = {"measures": averages(table), "online": questions(table)}
    for name, text in pages.items():
        print(text, end="\n\n")
        if "--write" in sys.argv:
            record.put(ROOT / "docs" / "how-to" / f"{name}.md", name, text)
    record.save("guides")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
