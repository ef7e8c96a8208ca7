"""The privacy engineer of a platform: a policy in code, an audit, a budget that refuses what goes too far.

Everything is made up. Run it anywhere: ``python examples/privacy_engineer.py``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import policygraph as pg
from policygraph.demo import made_up

POLICY = Path(__file__).resolve().parents[1] / "policies" / "app-events.toml"


def main() -> None:
    file = pg.load(POLICY)
    users = made_up(file, 50_000, seed=7)

    plan = pg.plan(file.query, file.policy, error=100)
    print(f"epsilon = {float(plan.epsilon)} keeps every count within 100 users with 95 %")

    small = pg.queries.cuboid(file.policy.domain, "platform")
    report = pg.audit(
        pg.Laplace().calibrate(small, file.policy, pg.Epsilon(1)), samples=5_000, rng=pg.SeededRng(1)
    )
    print("the audit found no leak" if report.passed else report)

    with TemporaryDirectory() as folder:
        ledger = pg.Ledger(Path(folder) / "budget.db")
        total = pg.queries.total(file.policy.domain)
        pg.release(total, file.policy, users, epsilon="0.1", ledger=ledger, dataset="users")
        ledger.set_limit("users", pg.Epsilon(1))
        made = pg.release(
            file.query, file.policy, users, epsilon=plan.epsilon, ledger=ledger, dataset="users"
        )
        print(made.tables[0].summary())
        try:
            pg.release(small, file.policy, users, epsilon=1, ledger=ledger, dataset="users")
        except pg.BudgetError as refusal:
            print(f"refused: {refusal}")


if __name__ == "__main__":
    main()
