"""Section 4.1: a table of 1,024 values rebuilt from plain noise and public sums of neighbours, and held under the policy that states them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import diags_array

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script("no-free-lunch-2011", "Section 4.1: a privacy leak", "policygraph/attacks/linear.py", 40)
K = 1024


def run(small: bool) -> Result:
    domain = pg.Domain({"r": K})
    sums = diags_array([np.ones(K - 1)] * 2, offsets=[0, 1], shape=(K - 1, K))
    truth = np.random.default_rng(41).integers(0, 30, K)
    policy = pg.Policy(domain, constraints=[pg.Sums(sums)])
    query = pg.queries.identity(domain)
    losses = pg.attacks.effective_epsilon(query, policy, 1)
    known = np.asarray(sums @ truth)
    made: dict[str, Any] = {}
    for name, kept in (("plain", pg.Policy(domain)), ("policy", policy)):
        ready = pg.Laplace().calibrate(query, kept, pg.Epsilon(1))
        noisy = ready.run(truth, pg.SeededRng(7)).values()
        attack = pg.attacks.reconstruct(policy, query, ready.noise)
        made[name] = {
            "noisy": [int(x) for x in noisy[:64]],
            "estimate": attack.estimate([noisy], facts=known)[:64].tolist(),
            "right": int(np.count_nonzero(np.rint(attack.estimate([noisy], facts=known)) == truth)),
            "deviation": float(attack.deviation([0])[0]),
        }
    book = pg.attacks.reconstruct(policy, query, 2.0)
    rows = [
        Row(
            "Section 4.1",
            "variance of the estimate of each count, k = 1024, epsilon = 1, Laplace(1): 2/(k epsilon^2)",
            show(2 / K),
            show(float(book.variance([0])[0])),
            holds=bool(np.abs(book.variance() - 2 / K).max() < 1e-9 * 2 / K),
        ),
        Row(
            "Section 4.1",
            "counts rebuilt exactly from plain noise, of 1,024",
            "all",
            f"{made['plain']['right']:,}",
            holds=made["plain"]["right"] == K,
        ),
        Row(
            "Section 4.1",
            "loss of the plain release against somebody who knows the sums",
            "",
            str(losses.without_facts),
        ),
        Row(
            "Section 4.4",
            "sensitivity of all counts under the policy, and counts rebuilt from its noise",
            "",
            f"{losses.known.value}, {made['policy']['right']:,}",
        ),
        Row(
            "Section 4.4",
            "deviation of the same estimate under the policy, in records",
            "",
            show(made["policy"]["deviation"]),
        ),
    ]
    return Result(
        rows,
        {"truth": truth[:64].tolist(), **made},
        "one seeded table and one seeded release each; the picture shows the first 64 values",
    )


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, both = pyplot.subplots(2, 1, figsize=(10, 6.4), layout="constrained", sharex=True)
    at = range(len(values["truth"]))
    titles = {
        "plain": "Plain noise for epsilon = 1: averaged with the public sums, every count comes out",
        "policy": "Under the policy that states the sums: the same attack is far off",
    }
    for axes, (name, title) in zip(both, titles.items(), strict=True):
        mine = values[name]
        if name == "plain":
            axes.plot(at, mine["noisy"], ".", color="0.65", label="released")
        axes.step(at, values["truth"], where="mid", color="black", lw=1, label="true counts")
        axes.plot(
            at,
            mine["estimate"],
            "x",
            ms=5,
            color="#c0392b" if name == "plain" else "#1e8449",
            label=f"attacker's estimate (off by {mine['deviation']:.2g})",
        )
        axes.set_title(f"{title} ({mine['right']:,} of {K:,} rebuilt)", fontsize=10)
        axes.set_ylabel("records")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + 0.2 * (high - low))  # room for the legend
        axes.legend(frameon=False, ncols=3, fontsize=8, loc="upper right")
    both[1].set_xlabel("value (the first 64 of 1,024)")
    return figure
