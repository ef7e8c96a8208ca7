"""The main job from end to end: a policy file, its sensitivity with certificate, a released histogram.

Makes its own data (a small invented town), so it needs nothing but the installed package. Run it anywhere:
``python examples/quickstart.py``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import policygraph as pg

POLICY = Path(__file__).resolve().parents[1] / "policies" / "census-margins.toml"


def make_people(path: Path, domain: pg.Domain, rows: int = 50_000) -> None:
    """Write an invented town: salaries depend on age, a little on sex."""
    rng = np.random.default_rng(2024)
    codes = {}
    for name, size in zip(domain.names, domain.shape, strict=True):
        weights = rng.dirichlet(np.full(size, 3.0))
        codes[name] = rng.choice(size, size=rows, p=weights)
    labels = {name: np.array(list(domain.labels(name)))[code] for name, code in codes.items()}
    pq.write_table(pa.table(labels), path)


def main() -> None:
    file = pg.load(POLICY)
    print(f"policy {POLICY.name}: {file.policy.domain!r}")
    certificate = pg.sensitivity(file.query, file.policy)
    print(certificate)
    print(certificate.verify())

    with TemporaryDirectory() as folder:
        people = Path(folder) / "people.parquet"
        make_people(people, file.policy.domain)
        ledger = pg.Ledger(Path(folder) / "budget.db")
        release = pg.release(file.query, file.policy, people, epsilon=1, ledger=ledger, dataset="town")
        written = release.write(Path(folder) / "out")
        print(release)
        print(release.table().slice(0, 5).drop_columns(["standard_deviation", "within_95"]).to_pylist())
        print("written:", ", ".join(sorted(written)))
        print("spent:", ledger.spent("town"))


if __name__ == "__main__":
    main()
