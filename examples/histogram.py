"""Ages of an invented town under a policy for neighbouring ages: choose a mechanism without data, compare, release.

Needs nothing but the installed package. Run it anywhere: ``python examples/histogram.py``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import policygraph as pg


def town(people: int = 20_000) -> np.ndarray:
    """Counts of the ages 0 to 119: simulated, so that errors may be measured on them."""
    rng = np.random.default_rng(2024)
    ages = np.clip(rng.normal(38, 21, people).round(), 0, 99).astype(int)
    return np.bincount(ages, minlength=120)


def main() -> None:
    domain = pg.Domain({"age": 120})
    # Ages one year apart must not be told apart; ages far apart may be, with a loss that grows with their distance.
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    cells, ranges = pg.queries.identity(domain), pg.queries.all_ranges(domain)

    print("1. Which mechanism, before any data is touched? All ranges of ages:")
    print(pg.compare(ranges, policy, epsilon="0.1", methods=["every answer", "edges", "tree"]))

    print("\n2. The same for single ages, with errors measured on simulated counts:")
    names = ["every answer", "edges", "edges, consistent", "partition", "partition, consistent"]
    found = pg.compare(cells, policy, epsilon="0.1", methods=names, data=town(), runs=5)
    print(found)
    with TemporaryDirectory() as folder:
        found.plot(Path(folder) / "errors.png")

    print("\n3. A release. The library chooses, and says why:")
    release = pg.release(cells, policy, town(), epsilon="0.1")
    for sentence in release.sentences:
        print("  -", sentence)

    print("\n4. Whole non-negative counts, by name:")
    fitted = pg.release(cells, policy, town(), epsilon="0.1", mechanism=pg.TransformedConsistent())
    print("  ", fitted.values()[:12].tolist(), "...", fitted.values()[-12:].tolist())

    print("\n5. Groups of ages that are known beforehand cost nothing to choose:")
    groups = pg.Partition.of(domain, 10)
    decades = pg.release(cells, policy, town(), epsilon="0.1", mechanism=pg.Partitioned(groups))
    print(f"   {groups!r}; ages 0, 10, 20, ...: {np.round(decades.values()[::10], 1).tolist()}")

    print("\n6. A grid has cycles: what depends on the data needs a spanning forest, or is refused:")
    places = pg.Domain({"x": 8, "y": 8})
    map_policy = pg.Policy(places, pg.PolicyGraph.grid(places))
    try:
        pg.Transformed(pg.Laplace()).calibrate(pg.queries.identity(places), map_policy, pg.Epsilon(1))
    except pg.RefusedError as refusal:
        print("  ", refusal)
    on_tree = pg.Transformed(pg.Laplace(), spanning=True)
    print("  ", on_tree.calibrate(pg.queries.identity(places), map_policy, pg.Epsilon(1)).mechanism)


if __name__ == "__main__":
    main()
