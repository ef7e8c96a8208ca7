"""Figure 1, and Examples and propositions of Section 2: knowledge against risk, the game, the discriminant and free-lunch privacy."""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script("no-free-lunch-2011", "Section 2 and Figure 1", "policygraph/attacks/games.py", 10)
LOSSES = [Fraction(i, 20) for i in range(21)]
PUBLISHED = {
    "bit": ("e^4ε/(1+e^ε)^4", lambda e: e**4 / (1 + e) ** 4),
    "attribute": ("e^2ε/(3+e^ε)^2", lambda e: e**2 / (3 + e) ** 2),
    "bounded": ("e^ε/(15+e^ε)", lambda e: e / (15 + e)),
}


def policy(kind: str) -> pg.Policy:
    """One person with two attributes of two bits, under one of the three definitions."""
    domain = pg.Domain({"r1": 4, "r2": 4}) if kind != "bit" else pg.Domain({f"b{i}": 2 for i in range(4)})
    graph = pg.PolicyGraph.full(domain) if kind == "bounded" else pg.PolicyGraph.attribute(domain)
    return pg.Policy(domain, graph, [pg.Total(equals=1)])


def own_record(kind: str, epsilon: Fraction) -> float:
    """Probability that the exponential mechanism draws Bob's own record."""
    if not epsilon:
        return 1 / 16
    bob = policy(kind)
    ready = pg.Exponential().calibrate(pg.queries.identity(bob.domain), bob, pg.Epsilon(epsilon))
    return float(pg.attacks.channel(ready).probabilities[2, 2])


def run(small: bool) -> Result:
    curves = {kind: [own_record(kind, loss) for loss in LOSSES] for kind in PUBLISHED}
    rows = [
        Row(
            "Figure 1",
            f"Bob's record is output, {kind} privacy, epsilon = 1: {formula}",
            show(value(exp(1))),
            show(curves[kind][-1]),
            holds=max(abs(c - value(exp(float(loss)))) for c, loss in zip(curves[kind], LOSSES)) < 1e-12,
        )
        for kind, (formula, value) in PUBLISHED.items()
    ]
    domain = pg.Domain({"patient": ["no", "yes"]})
    patients = pg.queries.matrix(domain, [[0, 1]])
    plain = pg.Laplace().calibrate(patients, pg.Policy(domain), pg.Epsilon(1))
    found = [pg.attacks.discriminant(plain, 4, records=n) for n in (6, 12, 24)]
    played = pg.attacks.game(plain, found[-1].tables, range(4))
    rows += [
        Row(
            "Proposition 2.1",
            "discriminant(4) of Laplace noise at epsilon = 1 tends to 1: 6, 12 and 24 records, at least",
            "yes",
            ", ".join(show(float(each.lower)) for each in found),
            holds=found[0].lower < found[1].lower < found[2].lower > Fraction(95, 100),
        ),
        Row(
            "Theorem 2.1",
            "a secret of 4 values, uniform: guessed right without and with the release (24 records)",
            "1/4, at least the discriminant",
            f"{played.blind}, {show(float(played.win[0])) if played.win else ''}",
            holds=played.win is not None and played.win[0] >= found[-1].lower,
        ),
    ]
    told = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Total(equals=3)])
    lunch = pg.FreeLunch().calibrate(pg.queries.identity(domain), told, pg.Epsilon(1))
    bound = pg.attacks.discriminant(lunch, 4)
    rows.append(
        Row(
            "Definition 2.3",
            "discriminant of free-lunch privacy, all k = 4 tables of 3 records, epsilon = 1: e/(3+e)",
            show(exp(1) / (3 + exp(1))),
            show(float(bound.lower)),
            holds=bound.exact and abs(float(bound.lower) - exp(1) / (3 + exp(1))) < 1e-12,
        )
    )
    odds = pg.attacks.log_odds(plain, [0, 10], [10, 0])
    safe = pg.Laplace().calibrate(patients, pg.Policy(domain), pg.attacks.group_epsilon(1, 10))
    rows += [
        Row("Example 2.1", "log-odds of a sick family of ten, epsilon = 1", "10", str(odds.largest)),
        Row(
            "Example 2.1",
            "the same with noise for groups of ten",
            "",
            str(pg.attacks.log_odds(safe, [0, 10], [10, 0]).largest),
        ),
    ]
    return Result(rows, {"epsilon": [float(loss) for loss in LOSSES], **curves}, "exact; no randomness")


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for kind in PUBLISHED:
        axes.plot(values["epsilon"], values[kind], label=f"{kind} privacy")
    axes.set_xlabel("epsilon")
    axes.set_ylabel("probability of Bob's own record")
    axes.set_ylim(0)
    axes.legend(frameon=False)
    axes.set_title("Figure 1: less noise against attackers who know more")
    return figure
