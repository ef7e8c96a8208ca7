"""Lemmas 4.1 to 5.1, Example 4.1 and Theorems 4.5 and 6.1: sensitivities under public cuboids and degrees, and what consistency does."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show
from policygraph.moves.graver.basis import graver_basis

SCRIPT = Script(
    "exact-cuboids", "Lemmas 4.1 to 5.1, Theorems 4.5 and 6.1", "policygraph/sensitivity/rungs/margins.py", 20
)
TWO_WAY = "policygraph/moves/two_way/"
DEGREES = "policygraph/moves/degrees/"


def table(*sizes: int) -> pg.Domain:
    return pg.Domain({"ABCD"[i]: n for i, n in enumerate(sizes)})


def public(domain: pg.Domain, words: str) -> pg.Policy:
    """Some cuboids are public, written "AB BC"."""
    return pg.Policy(domain, constraints=[pg.Cuboid(*word) for word in words.split()])


def sensitivity(policy: pg.Policy, query: pg.Query | None = None) -> int:
    found = pg.sensitivity(query or pg.queries.identity(policy.domain), policy)
    assert found.exact, str(found)
    return int(found.value)


def name(domain: pg.Domain) -> str:
    return "x".join(map(str, domain.shape))


def cuboids() -> list[Row]:
    example = pg.Domain({"Sex": 2, "Age": 7, "Salary": 5})
    known = pg.Policy(example, constraints=[pg.Cuboid("Sex", "Age"), pg.Cuboid("Age", "Salary")])
    rows = [
        Row("Lemma 4.1 (i)", "S of 5x7, A public", "2", show(sensitivity(public(table(5, 7), "A")))),
        Row(
            "Lemma 4.1 (ii)", "S of 5x7, A and B public", "10", show(sensitivity(public(table(5, 7), "A B")))
        ),
        Row("Lemma 4.2 (i)", "S of 2x3x4, AB public", "2", show(sensitivity(public(table(2, 3, 4), "AB")))),
        Row(
            "Lemma 4.2 (ii)",
            "S of 3x2x4, AB and BC public",
            "6",
            show(sensitivity(public(table(3, 2, 4), "AB BC"))),
        ),
        Row(
            "Lemma 4.2 (ii)",
            "S of 2x3x2x3, AB and CD public",
            "12",
            show(sensitivity(public(table(2, 3, 2, 3), "AB CD"))),
        ),
        Row(
            "after Lemma 4.2",
            "S of 2x3x4, A and AB public",
            "2",
            show(sensitivity(public(table(2, 3, 4), "A AB"))),
        ),
        Row(
            "Lemma 4.2 (ii)",
            "S of 1x3, A and B public",
            "2",
            show(sensitivity(public(table(1, 3), "A B"))),
            reason="B determines the table: everything is public, and no noise is needed; the formula has no case for it",
        ),
        Row(
            "Example 4.1",
            "S of 2x7x5, {Sex, Age} and {Age, Salary} public",
            "4",
            show(sensitivity(known)),
            code=TWO_WAY,
        ),
    ]
    for size, published, reason in (
        (2, "6", ""),
        (
            3,
            "6",
            "too small: (0,0,2) (0,1,1) (1,0,0) (1,0,0) and (0,0,0) (0,0,0) (1,0,1) (1,1,2) have the same margins, no part of their "
            "difference keeps them, and they differ by 8; 6 is what a search gives that changes a cell by at most one",
        ),
        (4, "8", ""),
    ):
        rows.append(
            Row(
                "after Example 4.1",
                f"S of 2x2x{size}, A, B and C public",
                published,
                show(sensitivity(public(table(2, 2, size), "A B C"))),
                reason=reason,
                code="policygraph/moves/graver/",
            )
        )
    return rows


def partial() -> list[Row]:
    def some(rows: int, columns: int, n1: int, n2: int, total: bool = False) -> pg.Policy:
        facts: list[pg.Constraint] = [pg.Total()] if total else []
        facts += [pg.Cells("A", list(range(n1)))] if n1 else []
        facts += [pg.Cells("B", list(range(n2)))] if n2 else []
        return pg.Policy(table(rows, columns), constraints=facts)

    rows = [
        Row(
            "Lemma 4.3 (i)",
            "S of 3x3, one row sum public",
            "2",
            show(sensitivity(some(3, 3, 1, 0))),
            code=TWO_WAY,
        )
    ]
    for n1, n2, total, published, reason in (
        (
            1,
            1,
            False,
            "2",
            "too small: the unknown sums act as one more row and column; (0,1) (1,0) and (0,0) differ by 3 and keep row 0 and column 0",
        ),
        (1, 1, True, "2", "too small: (0,1) (1,0) and (0,0) (1,1) differ by 4"),
        (
            2,
            3,
            False,
            "4",
            "too small: 2 min(n1, n2) + 2 as long as the side with fewer known sums has an unknown one",
        ),
        (3, 3, False, "6", ""),
    ):
        shown = f"{n1} of 3 row sums, {n2} of 4 column sums{' and the total' if total else ''} public"
        rows.append(
            Row(
                "Lemma 4.3 (ii)",
                f"S of 3x4, {shown}",
                published,
                show(sensitivity(some(3, 4, n1, n2, total))),
                reason=reason,
                code=TWO_WAY,
            )
        )
    return rows


def projection(domain: pg.Domain, cuboids: str) -> dict[str, int]:
    """The sensitivity of every cuboid under public ones, from the whole list of moves."""
    moves = graver_basis(public(domain, cuboids).system.matrix().toarray())
    found = {}
    for size in range(1, len(domain.shape) + 1):
        for kept in combinations(domain.names, size):
            matrix = pg.queries.cuboid(domain, *kept).columns(np.arange(domain.size)).toarray()
            found["".join(kept)] = int(np.abs(moves @ matrix.T).sum(axis=1).max(initial=0))
    return found


def lemma_4_4() -> list[Row]:
    """The projection property for every set of up to three cuboids of some tables, and one set for which it fails."""
    checked = least = outside = 0
    for shape in ((2, 2, 2), (2, 2, 3), (2, 3, 2)):
        domain = table(*shape)
        names = ["".join(c) for size in (1, 2) for c in combinations(domain.names, size)]
        for count in (1, 2, 3):
            for chosen in combinations(names, count):
                if any(set(a) < set(b) for a, b in product(chosen, repeat=2)):
                    continue
                found = projection(domain, " ".join(chosen))
                base = found["ABC"]
                for kept, value in found.items():
                    if value and not any(set(kept) <= set(one) for one in chosen):
                        checked += 1
                        least += 2 * value < base
                        outside += bool(set(kept) - set("".join(chosen))) and value != base
    chain = projection(table(2, 2, 2, 2), "AB BC CD")
    return [
        Row(
            "Lemma 4.4",
            "cuboids with an attribute outside the public ones for which S(C) < S(base)",
            "0",
            show(outside),
        ),
        Row(
            "Lemma 4.4",
            f"cuboids with S(C) < S(base) / 2, of {checked} in tables of three attributes",
            "0",
            show(least),
        ),
        Row(
            "Lemma 4.4",
            "S({A, D}) of 2x2x2x2 with AB, BC and CD public; at least half of S(base)",
            "at least 5",
            show(chain["AD"]),
            holds=2 * chain["AD"] >= chain["ABCD"],
            reason=f"the lower bound fails: S(base) is {chain['ABCD']} and the cuboid is not determined by the public ones; noise for the base is still enough",
            code="policygraph/moves/graver/",
        ),
    ]


def theorem_4_5() -> Row:
    domain = table(2, 2)
    policy = public(domain, "A")
    column = [pg.queries.matrix(domain, np.eye(4, dtype=np.int64)[[b, 2 + b]]) for b in (0, 1)]
    each = max(sensitivity(policy, query) for query in column)
    return Row(
        "Theorem 4.5 (3)",
        "S of both columns of 2x2 together, row sums public; each alone is 1",
        show(each),
        show(sensitivity(policy)),
        reason="disjoint tables compose in parallel only if no move touches both; a record that leaves a column turns up in the other: (0,0) and (0,1)",
        code="policygraph/sensitivity/coupling.py",
    )


def degrees() -> list[Row]:
    rows = []
    for nodes, known, reason in (
        (6, 2, ""),
        (4, 4, ""),
        (
            5,
            5,
            "too small: odd cycles can hang together at a node; 1-2 0-3 0-4 and 0-1 0-2 3-4 have the same degrees and differ by 6 edges",
        ),
        (7, 6, "too small, as for five nodes"),
        (9, 9, "too small, as for five nodes"),
    ):
        policy = pg.Policy(pg.Network(nodes), constraints=[pg.Degrees(list(range(known)))])
        rows.append(
            Row(
                "Lemma 5.1 (i)",
                f"S of a graph of {nodes} nodes, {known} degrees public",
                show(min(known + 1, nodes)),
                show(sensitivity(policy)),
                reason=reason,
                code=DEGREES,
            )
        )
    for nodes, ins, outs, reason in (
        (4, 3, 3, ""),
        (4, 4, 4, ""),
        (
            3,
            1,
            0,
            "too small: the edge from node 1 to node 0 is replaced by the edge from node 2; in-degree 1 either way, 2 edges differ",
        ),
        (4, 4, 1, "too small: 2 min(n1, n2) + 2 when one side knows more"),
        (
            4,
            2,
            2,
            "smaller: without loops and with the first nodes known on both sides some cells of the table are missing",
        ),
    ):
        facts = [pg.Degrees(list(range(ins)), side="in")] if ins else []
        facts += [pg.Degrees(list(range(outs)), side="out")] if outs else []
        rows.append(
            Row(
                "Lemma 5.1 (ii)",
                f"S of a directed graph of {nodes} nodes without loops, {ins} in-degrees and {outs} out-degrees public",
                show(min(2 * min(ins, outs) + 1, 2 * nodes)),
                show(sensitivity(pg.Policy(pg.Network(nodes, directed=True), constraints=facts))),
                reason=reason,
                code=TWO_WAY,
            )
        )
    return rows


def printed_system(domain: pg.Domain, first: str, second: str, noisy: np.ndarray, truth: np.ndarray) -> float:
    """Solve Problem (3) by the matrix of Figure 5; the largest violation of a public sum by its solution."""
    size = dict(zip(domain.names, domain.shape))
    one, two = (
        pg.queries.cuboid(domain, *word).columns(np.arange(domain.size)).toarray() for word in (first, second)
    )
    d1, d2 = one.sum(axis=1)[0], two.sum(axis=1)[0]
    e = int(np.prod([size[n] for n in domain.names if n not in first + second]))
    matrix = np.block(
        [
            [d1 * np.eye(len(one)), np.full((len(one), len(two)), e)],
            [np.full((len(two), len(one)), e), d2 * np.eye(len(two))],
        ]
    )
    facts = np.vstack([one, two])
    multipliers = np.linalg.lstsq(matrix, 2 * facts @ (truth - noisy), rcond=None)[0]
    fitted = noisy + facts.T @ multipliers / 2
    return float(np.abs(facts @ (fitted - truth)).max())


def consistency() -> list[Row]:
    rng = np.random.default_rng(1)
    rows = []
    for shape, first, second, reason in (
        ((3, 4), "A", "B", ""),
        ((2, 2, 3), "A", "BC", ""),
        (
            (2, 2, 2),
            "AB",
            "BC",
            "the printed matrix is right only when the two cuboids share no attribute: cells that disagree on B have no base cell in common",
        ),
    ):
        domain = table(*shape)
        truth = rng.integers(0, 20, domain.size)
        noisy = truth + rng.laplace(0, 4, domain.size)
        wrong = printed_system(domain, first, second, noisy, truth)
        rows.append(
            Row(
                "Figure 5, equation (12)",
                f"largest violation of a public sum by the printed solution, {name(domain)} with {first} and {second} public",
                "0",
                "0" if wrong < 1e-9 else show(wrong),
                reason=reason,
                code="policygraph/estimation/cubes/least_squares.py",
            )
        )
    for shape, words in (((3, 4), "A"), ((3, 4), "A B"), ((2, 2, 2), "AB BC"), ((2, 2, 3), "A B C")):
        domain = table(*shape)
        attack = pg.attacks.reconstruct(public(domain, words), pg.queries.identity(domain), 1)
        ratio = attack.variance()
        rows.append(
            Row(
                "Theorem 6.1",
                f"variance of a cell after consistency over before, {name(domain)} with {', '.join(words.split())} public",
                "below 1",
                show(float(ratio.max())),
                holds=bool(ratio.max() < 1 and np.ptp(ratio) < 1e-9),
                code="policygraph/attacks/linear.py",
            )
        )
    return rows


def run(small: bool) -> Result:
    rows = [*cuboids(), *partial(), *lemma_4_4(), theorem_4_5(), *degrees(), *consistency()]
    return Result(rows, note="exact; the system of Figure 5 is solved for one drawn table (seed 1).")
