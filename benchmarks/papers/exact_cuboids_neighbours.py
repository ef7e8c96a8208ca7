"""Examples 2.1 to 3.4: the data cube of the example table, the attack on a chain, and the three strengths of induced neighbours."""

from __future__ import annotations

from itertools import product

import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script(
    "exact-cuboids", "Examples 2.1 to 3.4: neighbours under public cuboids", "policygraph/moves/", 10
)

AGES = ["0-10", "11-20", "21-30", "31-40", "41-50", "51-60", "60+"]
SALARIES = ["0-10k", "10-50k", "50-200k", "200-500k", "500k+"]
DOMAIN = pg.Domain({"Sex": ["M", "F"], "Age": AGES, "Salary": SALARIES})
TABLE = [
    ("F", "21-30", "10-50k"),
    ("F", "21-30", "10-50k"),
    ("F", "31-40", "50-200k"),
    ("F", "41-50", "500k+"),
    ("M", "21-30", "10-50k"),
    ("M", "21-30", "50-200k"),
    ("M", "31-40", "50-200k"),
    ("M", "60+", "500k+"),
]
"""Figure 1(a)."""


def counts(domain: pg.Domain, records: list[tuple[str, ...]] | list[tuple[int, ...]]) -> np.ndarray:
    out = np.zeros(domain.size, dtype=np.int64)
    for record in records:
        out[domain.index(record)] += 1
    return out


def listed(values: np.ndarray, labels: list[str]) -> str:
    return ", ".join(f"{label}: {value}" for label, value in zip(labels, values) if value)


def chain(k: int) -> pg.attacks.Reconstruction:
    """k values with the sums of consecutive ones public, each count released with Laplace noise of variance 2."""
    domain = pg.Domain({"r": k})
    pairs = np.eye(k - 1, k, dtype=np.int64) + np.eye(k - 1, k, 1, dtype=np.int64)
    return pg.attacks.reconstruct(pairs, pg.queries.identity(domain), 2)


def strengths(policy: pg.Policy, a: np.ndarray, b: np.ndarray) -> str:
    """The weakest strength under which two tables are neighbours."""
    for strength in ("markov", "positive", "worst-case"):
        if policy.with_strength(strength).are_neighbours(a, b):
            return strength
    return "none"


def example_3_3() -> list[Row]:
    domain = pg.Domain({"A": 3, "B": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("A"), pg.Cuboid("B"), pg.StructuralZero([(0, 1)])])
    before = counts(domain, [(0, 0), (1, 1), (2, 2)])
    printed = counts(domain, [(1, 0), (2, 0), (0, 2)])
    matrix = policy.system.matrix().toarray()
    fits = [
        table
        for table in product((0, 1), repeat=9)
        if table[domain.index((1, 0))] and (matrix @ (np.array(table) - before) == 0).all() and not table[1]
    ]
    only = np.array(fits[0])
    cells = " ".join(f"(a{i + 1}, b{j + 1})" for i, j in product(range(3), repeat=2) if only[3 * i + j])
    return [
        Row("Example 3.3", "tables with (a2, b1) that fit the public facts", "1", show(len(fits))),
        Row(
            "Example 3.3",
            "the table T'",
            "(a2, b1), (a3, b1), (a1, b3)",
            cells,
            holds=bool((matrix @ (printed - before) == 0).all()),
            reason="a slip in print: the table of the text counts two records at b1 and none at b2",
        ),
        Row(
            "Example 3.3",
            "T and T' are worst-case neighbours; Markov neighbours",
            "yes; no",
            "; ".join(
                "yes" if policy.with_strength(name).are_neighbours(before, only) else "no"
                for name in ("worst-case", "markov")
            ),
        ),
    ]


def run(small: bool) -> Result:
    cube = counts(DOMAIN, TABLE).reshape(DOMAIN.shape)
    policy = pg.Policy(DOMAIN, constraints=[pg.Cuboid("Age"), pg.Cuboid("Salary")])
    flipped = counts(DOMAIN, [("M", *TABLE[0][1:]), *TABLE[1:]])
    third, fourth = TABLE[2], TABLE[3]
    swapped = counts(
        DOMAIN,
        [*TABLE[:2], (third[0], fourth[1], third[2]), (fourth[0], third[1], fourth[2]), *TABLE[4:]],
    )
    three = pg.Domain({"A": 3, "B": 3, "C": 3})
    margins = pg.Policy(three, constraints=[pg.Cuboid("A"), pg.Cuboid("B"), pg.Cuboid("C")])
    before = counts(three, [(0, 0, 0), (1, 1, 1), (2, 2, 2)])
    after = counts(three, [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
    chains = {k: float(chain(k).variance()[0]) for k in (4, 64, 256)}
    rows = [
        Row(
            "Figure 1(b)",
            "cuboid {Salary}",
            "10-50k: 3, 50-200k: 3, 500k+: 2",
            listed(cube.sum((0, 1)), SALARIES),
            code="policygraph/model/queries/cuboids.py",
        ),
        Row(
            "Figure 1(c)",
            "cuboid {Age}",
            "21-30: 4, 31-40: 2, 41-50: 1, 60+: 1",
            listed(cube.sum((0, 2)), AGES),
            code="policygraph/model/queries/cuboids.py",
        ),
        Row(
            "Example 2.1",
            "cell (*, 21-30, 10-50k)",
            "3",
            show(pg.queries.cuboid(DOMAIN, "Age", "Salary").answer(cube.ravel())[2 * 5 + 1]),
            code="policygraph/model/queries/cuboids.py",
        ),
        *(
            Row(
                "Example 3.1",
                f"attacker's variance of a count, chain of {k}, epsilon 1",
                f"2/{k} = {show(2 / k)}",
                f"2/{k} = {show(value)}",
                code="policygraph/attacks/linear.py",
            )
            for k, value in chains.items()
        ),
        Row(
            "Example 3.2",
            "T and T1 (sex of one record changed)",
            "markov",
            strengths(policy, cube.ravel(), flipped),
            code="policygraph/moves/strengths/markov.py",
        ),
        Row(
            "Example 3.2",
            "T and T2 (ages of two records swapped)",
            "markov",
            strengths(policy, cube.ravel(), swapped),
            code="policygraph/moves/strengths/markov.py",
        ),
        *example_3_3(),
        Row(
            "Example 3.4",
            "weakest strength of neighbours for T, T'",
            "positive",
            strengths(margins, before, after),
            code="policygraph/moves/strengths/",
        ),
        *lemma_3_4(),
    ]
    return Result(rows, {"chains": {str(k): v for k, v in chains.items()}}, "exact; no randomness, no data.")


def lemma_3_4() -> list[Row]:
    """Sensitivities of the three strengths, which the nesting of the neighbours orders."""
    rows = []
    for shape, words in (((2, 2, 2), "A B C"), ((2, 2, 3), "A B C"), ((3, 3), "A B")):
        domain = pg.Domain({"ABC"[i]: n for i, n in enumerate(shape)})
        facts = [pg.Cuboid(word) for word in words.split()]
        found = [
            pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, None, facts, strength)).value
            for strength in ("markov", "positive", "worst-case")
        ]
        rows.append(
            Row(
                "Section 3.4",
                f"sensitivity of {'x'.join(map(str, shape))}, margins {', '.join(words.split())} public: markov, positive, worst case",
                "in this order",
                ", ".join(map(show, found)),
                holds=found == sorted(found),
                code="policygraph/moves/strengths/",
            )
        )
    return rows
