"""How many pure charges a limit in (epsilon, delta) admits: by the sum, by rho, exactly, and by Google's dp-accounting.

    python benchmarks/composition.py [--write]

dp-accounting is not a dependency: install it beside the library (``pip install dp-accounting``) to have its column, which comes from privacy loss distributions in floating point that are rounded
pessimistically onto a grid of 10^-4. ``--write`` puts the table into docs/explanation/proofs/many-charges.md. The exit status is 1 if ours admits more than dp-accounting's optimistic estimate, which no exact composition can.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from functools import reduce
from math import exp
from pathlib import Path
from typing import Any

import record

sys.path.insert(0, str(Path(__file__).parents[1]))
from policygraph.distributions.pure_composition import Sizes, most_charges
from policygraph.model.loss import EpsilonDelta

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "proofs" / "many-charges.md"
CASES: list[tuple[str, str, str, dict[str, int]]] = [
    ("2", "1e-6", "0.1", {}),
    ("1", "1e-6", "0.01", {}),
    ("10", "1e-6", "1", {}),
    ("1", "1e-6", "0.01", {"0.1": 2}),
    ("1", "1e-6", "0.01", {"0.125": 1, "0.1": 2}),
    ("2", "1e-9", "0.02", {"0.2": 5}),
    ("4", "1e-6", "0.05", {"0.5": 2, "0.25": 4}),
]


def by_accounting(each: Fraction, larger: Sizes, target: EpsilonDelta, pessimistic: bool) -> int | None:
    """The same number by dp-accounting, or None where it is not installed."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        return None

    def response(size: Fraction) -> Any:
        return pld.from_randomized_response(
            2 / (1 + exp(size)), 2, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        )

    fixed = [response(size).self_compose(times) for size, times in larger]
    one = response(each)

    def kept(times: int) -> bool:
        parts = [*fixed, one.self_compose(times)] if times else fixed
        whole = reduce(lambda made, part: made.compose(part), parts)
        return bool(whole.get_delta_for_epsilon(float(target.epsilon)) <= float(target.delta))

    good, step = 0, 1
    while kept(good + step):
        good, step = good + step, 2 * step
    while step:
        good += step if kept(good + step) else 0
        step //= 2
    return good


def main() -> int:
    lines = [
        "| limit | each | besides | by the sum | by rho | exactly | dp-accounting |",
        "|---|---|---|---|---|---|---|",
    ]
    good = True
    for epsilon, delta, size, others in CASES:
        target, each = EpsilonDelta(epsilon, delta), Fraction(size)
        larger = tuple((Fraction(text), times) for text, times in others.items())
        pure, rho = target.epsilon, target.to_rho().value
        for loss, times in larger:
            pure, rho = pure - loss * times, rho - loss * loss / 2 * times
        ours = most_charges(each, target.epsilon, target.delta, larger)
        theirs, most = (by_accounting(each, larger, target, pessimistic) for pessimistic in (True, False))
        good = good and (most is None or ours <= most)
        besides = ", ".join(f"{times} of {text}" for text, times in others.items()) or "-"
        lines.append(
            f"| ({epsilon}, {delta}) | {size} | {besides} | {max(int(pure / each), 0)} | {max(int(2 * rho / each**2), 0)} | {ours} | "
            f"{'-' if theirs is None else theirs} |"
        )
        print(lines[-1], flush=True)
        record.ratio(f"({epsilon}, {delta}), {size}, {besides}", ours)
    record.save("composition")
    if "--write" in sys.argv:
        record.put(PAGE, "composition", "\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
