"""All two-way tables of an invented survey: non-negative whole counts that add up, with sex by age exact by law.

Needs nothing but the installed package. Run it anywhere: ``python examples/cube.py``.
"""

from itertools import combinations

import numpy as np
import pyarrow as pa

import policygraph as pg


def survey(people: int = 20_000) -> pa.Table:
    """Simulated records, so that they may be shown beside the published counts."""
    rng = np.random.default_rng(2024)
    age = rng.choice(["0-17", "18-39", "40-64", "65+"], people, p=[0.19, 0.27, 0.33, 0.21])
    works = (age != "0-17") & (rng.random(people) < np.where(age == "65+", 0.1, 0.8))
    work = np.where(works, np.where(rng.random(people) < 0.7, "full-time", "part-time"), "none")
    sex, region = (rng.choice(labels, people) for labels in (["F", "M"], ["north", "east", "south", "west"]))
    return pa.table({"sex": sex, "age": age, "region": region, "work": work})


def main() -> None:
    domain = pg.Domain(
        {
            "sex": ["F", "M"],
            "age": ["0-17", "18-39", "40-64", "65+"],
            "region": ["north", "east", "south", "west"],
            "work": ["full-time", "part-time", "none"],
        }
    )
    people = survey()
    policy = pg.Policy(domain, constraints=[pg.Cuboid("sex", "age")])  # public and exact
    query = pg.queries.cuboids(domain, list(combinations(domain.names, 2)))

    print("1. Before any data is touched: standard deviation of a count, noise on every table and a cube:")
    alike = pg.expected_error(query, policy, epsilon=1, mechanism=pg.Laplace())
    cube = pg.expected_error(query, policy, epsilon=1, mechanism=pg.Cube())
    for name in alike:
        print(f"   {name:<15} {alike[name]:5.1f} {cube[name]:5.1f}")

    print("\n2. The release:")
    release = pg.release(query, policy, people, epsilon=1, mechanism=pg.Cube(nonnegative=True, whole=True))
    for sentence in release.sentences:
        print("  -", sentence)

    print("\n3. What the office asked for:")
    truth = people.group_by(["sex"]).aggregate([([], "count_all")]).sort_by("sex")["count_all"].to_pylist()
    print("   sex is exact:          ", release.cuboid("sex").values.tolist() == truth)
    # Axes are in the order of the domain: sex, age, region, work.
    by_age = release.cuboid("age", "region").values.reshape(4, 4).sum(axis=0)
    by_work = release.cuboid("region", "work").values.reshape(4, 3).sum(axis=1)
    print("   tables agree on region:", bool((by_age == by_work).all()))
    print("   no count is negative:  ", min(float(np.min(table.values)) for table in release.tables) >= 0)

    print(
        "\n4. A table that was not asked for, and one cell with its standard deviation; neither needs the data again:"
    )
    print("   work:", release.cuboid("work").values.tolist())
    print("   region east, work none:", release.cell(region="east", work="none"))

    print("\n5. Nothing said about how: several tables become a cube by themselves where that is better:")
    print("  ", pg.release(query, policy, people, epsilon=1).sentences[0])


if __name__ == "__main__":
    main()
