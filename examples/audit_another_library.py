"""Audit another library with the moves of a policy: a tree of counts whose claimed L2 sensitivity is too small.

OpenDP's ``make_b_ary_tree`` claims that an L2 distance d between the leaves becomes at most d times the height of the tree (opendp/opendp, issue 2924). A
policy whose neighbours change all leaves at once shows two data sets that are farther apart. Run it anywhere: ``python examples/audit_another_library.py``;
without the package ``opendp`` (``pip install "policygraph[bench]"``) its published formula is compared instead.
"""

import math
from typing import Any

import policygraph as pg


def find() -> tuple[pg.Sensitivity, Any, Any]:
    """The ten lines: four counts whose differences are public, a tree over them, the pair that the certificate shows."""
    domain = pg.Domain({"quarter": 4})
    steps = [pg.LinearCount([((q,), 1), ((q + 1,), -1)]) for q in range(3)]
    policy = pg.Policy(domain, constraints=steps)
    tree = pg.queries.boxes(domain, [((0,), (3,)), *(((q,), (q,)) for q in range(4))])
    found = pg.sensitivity(tree, policy, norm="l2")
    return found, found.table("before"), found.table("after")


def claimed(before: Any, after: Any) -> tuple[float, float, str]:
    """What the other library claims for this distance of the leaves, what its own tree measures, and who says so."""
    leaves = round(math.dist(before, after))
    try:
        import opendp.prelude as dp
    except ImportError:
        height = 2
        trees = [[sum(table), *table] for table in (before, after)]
        return float(height * leaves), math.dist(*trees), "the published formula (opendp is not installed)"
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int), size=4), dp.l2_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=4, branching_factor=4)
    one, two = (tree([int(x) for x in table]) for table in (before, after))
    return float(tree.map(leaves)), math.dist(one, two), "the installed opendp"


def main() -> None:
    """Print the claim beside the truth."""
    found, before, after = find()
    claim, measured, who = claimed(before, after)
    print(f"two data sets that must look alike: {list(map(int, before))} and {list(map(int, after))}")
    print(f"claimed L2 sensitivity of the tree, by {who}: {claim:g}")
    print(
        f"the answers differ by {measured:.4f}; the certificate says {float(found.value):.4f}, exactly the root of {found.power}"
    )
    print("the claim is too small" if claim < measured else "the claim holds for this pair")


if __name__ == "__main__":
    main()
