"""The researcher: how the error falls with epsilon, under which strength, and which mechanism is best.

No data is read. Run it anywhere: ``python examples/researcher.py``.
"""

from pathlib import Path

import policygraph as pg

POLICY = Path(__file__).resolve().parents[1] / "policies" / "turnout.toml"


def main() -> None:
    file = pg.load(POLICY)
    for strength in ("worst-case", "positive", "markov"):
        policy = file.policy.with_strength(strength)
        certificate = pg.sensitivity(file.query, policy)
        plan = pg.plan(file.query, policy, error=20, alternatives=False)
        print(
            f"{strength}: sensitivity {certificate.value}, epsilon {float(plan.epsilon)} for an error of 20"
        )
    for epsilon in ("0.1", "1"):
        print(pg.compare(file.query, file.policy, pg.Epsilon(epsilon)))


if __name__ == "__main__":
    main()
