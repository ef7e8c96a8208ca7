"""A network whose degrees are public, from the edge list to a synthetic graph that may be given away.

Makes its own data (an invented club with four courses), so it needs nothing but the installed package. Run it anywhere:
``python examples/social_graph.py``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import policygraph as pg

PEOPLE, COURSES = 400, 4


def make_friends(path: Path) -> np.ndarray:
    """Write an invented club: friends are mostly of one course, and some people have many."""
    rng = np.random.default_rng(2024)
    tail, head = np.triu_indices(PEOPLE, 1)
    course = np.arange(PEOPLE) % COURSES
    charm = rng.pareto(2.5, PEOPLE) + 0.5
    chance = np.minimum(0.02 * charm[tail] * charm[head] * np.where(course[tail] == course[head], 5, 1), 0.9)
    there = rng.random(len(tail)) < chance
    edges = np.column_stack([tail[there], head[there]])
    np.savetxt(path, edges, fmt="%d")
    return edges


def main() -> None:
    network = pg.Network(PEOPLE)
    query = pg.queries.mixing(network, [f"course {v % COURSES}" for v in range(PEOPLE)])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "friends.txt"
        edges = make_friends(path)
        # How many friends each person has is on everybody's page; it is public before any release.
        degrees = np.bincount(edges.ravel(), minlength=PEOPLE).tolist()
        every = pg.Policy(network, constraints=[pg.Degrees(equals=degrees)])
        for strength in ("worst-case", "markov"):
            print(f"{strength}: one neighbour step changes the counts by", end=" ")
            print(f"at most {pg.sensitivity(query, every.with_strength(strength)).value}")
        policy = every.with_strength("markov")
        ledger = pg.Ledger(Path(folder) / "budget.db")
        noisy = pg.release(query, policy, path, epsilon=1, ledger=ledger, dataset="club")
        print(noisy)
        made = pg.networks.synthetic_from_release(noisy, seed=1)
        print(made)
        print("consistent counts:", made.asked.tolist())
        print("every degree met:", made.degrees()[0].tolist() == degrees, "- counts met:", made.exact)
        made.to_csv(Path(folder) / "synthetic.csv")
        print("as networkx:", made.to_networkx())
        print("original, which is private: ", pg.networks.summarise(edges[:, 0], edges[:, 1], PEOPLE))
        print("synthetic, to be given away:", pg.networks.summarise(made))
        print("spent:", ledger.spent("club"))


if __name__ == "__main__":
    main()
