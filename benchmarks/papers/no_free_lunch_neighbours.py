"""Sections 4.3 and 4.4: neighbours induced by public facts on the tables of Figure 6, the exponential mechanism, and Lemma 4.1 with Figure 7."""

from __future__ import annotations

from math import log

import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script(
    "no-free-lunch-2011", "Sections 4.3 and 4.4: induced neighbours", "policygraph/moves/neighbours.py", 45
)
FIGURE_6 = {"a": [4, 5, 7, 3], "b": [5, 4, 6, 4], "c": [5, 4, 7, 3]}


def word(found: object) -> str:
    return "yes" if found else "no"


def figure_6() -> list[Row]:
    cells = pg.Domain({"cell": ["A", "B", "C", "D"]})
    facts = [pg.count({"cell": ["A", "B"]}, equals=9), pg.count({"cell": ["C", "D"]}, equals=10)]
    policy = pg.Policy(cells, constraints=facts)
    a, b, c = FIGURE_6.values()
    return [
        Row("Figure 6", "moves from T_a to T_b", "4", show(int(np.abs(np.subtract(a, b)).sum()))),
        Row(
            "Figure 6",
            "neighbours under A + B = 9, C + D = 10: T_a and T_b; T_a and T_c; T_b and T_c",
            "no; yes; yes",
            "; ".join(word(policy.are_neighbours(x, y)) for x, y in ((a, b), (a, c), (b, c))),
        ),
        Row(
            "Figure 6",
            "smaller change that shows that T_a and T_b are none",
            "+A -B",
            " ".join(sorted(str(policy.decompose(a, b)[0]).translate(str.maketrans("", "", "()")).split())),
        ),
    ]


def example_4_2() -> list[Row]:
    domain = pg.Domain({"gender": ["F", "M"], "job": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("gender")])
    before = [2, 1, 1, 1, 2, 1]
    other_job = [1, 2, 1, 1, 2, 1]
    # A man with job 0 and a woman with job 1 exchange their gender and take other jobs: (F, 1), (M, 0) become (F, 2), (M, 1).
    exchanged = [2, 0, 2, 0, 3, 1]
    steps = [len(policy.decompose(before, after)) for after in (other_job, exchanged)]
    return [
        Row(
            "Example 4.2",
            "gender public: a record changes but for its gender; a man and a woman exchange theirs and change the rest: neighbour steps",
            "",
            f"{steps[0]}; {steps[1]}",
            reason="under Definition 4.4 the second change is two steps: in the table it is a change among the women and one among the men, each of which keeps the public counts",
        )
    ]


def exponential() -> list[Row]:
    """Probabilities in proportion to exp(-d) on the tables with margins (3, 4) and (4, 3), which are a path of four."""
    domain = pg.Domain({"r": 2, "c": 2})
    facts = [pg.Cuboid("r", equals=[3, 4]), pg.Cuboid("c", equals=[4, 3])]
    policy = pg.Policy(domain, constraints=facts)
    ready = pg.Exponential().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(2))
    told = pg.attacks.channel(ready)
    p, tables = told.probabilities, told.tables
    losses = [
        max(abs(log(x / y)) for x, y in zip(p[i], p[j], strict=True))
        for i in range(len(tables))
        for j in range(i)
        if policy.are_neighbours(tables[i], tables[j])
    ]
    return [
        Row(
            "Section 4.4",
            f"loss of the exponential mechanism exp(-d), {len(tables)} tables with margins (3, 4) and (4, 3)",
            "at most 2",
            show(max(losses)),
            holds=max(losses) <= 2,
            code="policygraph/mechanisms/exponential/mechanism.py",
        )
    ]


def lemma_4_1() -> list[Row]:
    rows = []
    for r, c in ((2, 3), (3, 4), (5, 5), (40, 300)):
        domain = pg.Domain({"r": r, "c": c})
        policy = pg.Policy(domain, constraints=[pg.Cuboid("r"), pg.Cuboid("c")])
        found = pg.sensitivity(pg.queries.identity(domain), policy).value
        rows.append(
            Row(
                "Lemma 4.1",
                f"sensitivity of all cells of a {r} x {c} table, row and column sums public: min(2r, 2c)",
                show(min(2 * r, 2 * c)),
                show(found),
                code="policygraph/sensitivity/rungs/margins.py",
            )
        )
    seen = []
    for side in (3, 4, 5):
        domain = pg.Domain({"r": side, "c": side})
        policy = pg.Policy(domain, constraints=[pg.Cuboid("r"), pg.Cuboid("c")])
        before, after = np.eye(side, dtype=np.int64), np.roll(np.eye(side, dtype=np.int64), 1, axis=1)
        found = policy.are_neighbours(before.ravel(), after.ravel())
        seen.append(f"{word(found)}, {np.abs(before - after).sum()}")
    rows.append(
        Row(
            "Figure 7",
            "one cycle through all rows and columns, 3, 4 and 5 of each: neighbours, and moves",
            "yes, 6; yes, 8; yes, 10",
            "; ".join(seen),
        )
    )
    return rows


def run(small: bool) -> Result:
    rows = [*figure_6(), *example_4_2(), *exponential(), *lemma_4_1()]
    return Result(
        rows,
        {"rows": len(rows)},
        "exact; no randomness, no data. Propositions 4.1 and 4.2 are about hardness and have no figure.",
    )
