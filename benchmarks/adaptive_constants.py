"""Adaptive cubes with other constants of their plan, on generated wide tables: does any constant matter much?

    python benchmarks/adaptive_constants.py [--runs 2] [--write]

No data set is read. Each constant of ``mechanisms/adaptive/plan.py`` is halved and doubled in turn (the weight of the entropy by tens).
"""

from __future__ import annotations

import argparse
import sys
from itertools import combinations
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import record  # noqa: E402

import policygraph as pg  # noqa: E402
from policygraph.curator import gate  # noqa: E402
from policygraph.curator.counting import read_data  # noqa: E402
from policygraph.mechanisms.adaptive import mechanism, plan  # noqa: E402
from tests.oracles import wide  # noqa: E402

LOSSES = {"rho 1/100": pg.Rho("1/100")}
CHANGES = {
    "FIRST": (plan.UNITS // 20, plan.UNITS // 5),
    "TENTH": (5, 20),
    "PARTS": (2, 8),
    "START": (2, 8),
    "END": (plan.UNITS // 32, plan.UNITS // 8),
    "ENTROPY": (0.0005, 0.05),
}
SAID = {
    "FIRST": "loss for single attributes, 1/20 and 1/5 for 1/10",
    "TENTH": "part of a round for choosing, 1/5 and 1/20 for 1/10",
    "PARTS": "most of what is left in a round, 1/2 and 1/8 for 1/4",
    "START": "starting price, shares of 1/2 and 1/8 for 1/4",
    "END": "what the last round takes, 1/32 and 1/8 for 1/16",
    "ENTROPY": "weight of the entropy, 1/2000 and 1/20 for 1/200",
}


def made(kind: str, loss, seed: int) -> float:
    domain, rows = wide.records(kind, wide.mixed_sizes(7, 10, seed), 10_000, seed)
    sets = list(combinations(domain.names, 2))
    import pandas as pd

    policy = pg.Policy(domain)
    data = read_data(pd.DataFrame(rows, columns=list(domain.names)), policy)
    ready = pg.AdaptiveCube().calibrate(pg.queries.cuboids(domain, sets), policy, loss)
    model = ready.model(gate.draw(ready, data, pg.SeededRng(seed))[0])
    return wide.distance(rows, domain, sets, lambda names: model.table(ready.lattice.mask(names)))


def with_constants(**changed) -> dict[str, object]:
    """Set constants where they are used, and return what they were."""
    before = {}
    for name, value in changed.items():
        before[name] = getattr(plan, name)
        for module in (plan, mechanism):
            if hasattr(module, name):
                setattr(module, name, value)
    return before


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    cases = [(kind, name, seed) for kind in wide.KINDS for name in LOSSES for seed in range(given.runs)]
    base = np.array([made(kind, LOSSES[name], seed) for kind, name, seed in cases])
    print("base", base.round(4).tolist(), flush=True)
    lines = []
    for constant, values in CHANGES.items():
        cells = []
        for value in values:
            before = with_constants(**{constant: value})
            found = np.array([made(kind, LOSSES[name], seed) for kind, name, seed in cases]) / base
            with_constants(**before)
            means = [
                float(np.exp(np.log(found[[c[0] == kind for c in cases]]).mean())) for kind in wide.KINDS
            ]
            overall = float(np.exp(np.log(found).mean()))
            record.ratio(f"{constant} = {value}, error over the default's", overall)
            cells.append(f"{overall:.3f} ({min(means):.2f} to {max(means):.2f})")
        lines.append(f"| {SAID[constant]} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    record.save("adaptive_constants")
    if given.write:
        said = [
            "Made by `python benchmarks/adaptive_constants.py --write`, on generated tables alone: 7 attributes of 2 to 10 values, 10,000 records, all tables of two "
            f"attributes, six shapes of dependence (`tests/oracles/wide.py`), {' and '.join(LOSSES)}, {given.runs} runs each. Mean total variation distance with one constant "
            "changed, over that with the constants as they are: geometric mean, and in brackets the least and the largest mean of a shape. Two runs of the same plan differ by some percent.",
            "",
            "| constant | smaller | larger |",
            "|---|---|---|",
            *lines,
        ]
        record.put(ROOT / "docs" / "benchmarks.md", "adaptive constants", "\n".join(said))


if __name__ == "__main__":
    main()
