"""Readings of the forest fire in Section 3 of No Free Lunch: the model with each ambiguous sentence as a setting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import product

import numba
import numpy as np

FORWARD, BACKWARD, RANDOM = 0.37, 0.32, 0.1
NUMBERS = (
    "mean p / (1 - p)",
    "mean (1 - p) / p",
    "mean 1 / p",
    "mean 1 / (1 - p)",
    "each with probability p",
)
"""How many links are followed: geometric from 0 or from 1, p being the share of failures or of successes, or a coin for each link."""
RANDOM_LINKS = ("at the end", "burns on", "at every burnt node")
DEPTHS = (0, 1, -1)
"""Links of the ambassador only; those of its neighbours as well; until the fire dies."""


@dataclass(frozen=True)
class Reading:
    """One reading of the text; the first value of each setting is the literal one."""

    number: int = 0
    ratio: bool = False
    """Whether 0.32 is the ratio of the backward to the forward probability, as in Leskovec et al., and not the probability itself."""
    anew: bool = True
    """Whether links are chosen among new nodes only; otherwise those that lead to linked nodes are lost."""
    undirected: bool = False
    depth: int = -1
    random_link: int = 0
    mutual: bool = False
    """Whether Bob's link goes both ways."""
    nodes: int = 50
    twice: bool = False
    """Whether each link between the communities is counted from both its ends."""

    def __str__(self) -> str:
        told = {
            f"numbers of links with {NUMBERS[self.number]}": self.number,
            "0.32 as a ratio": self.ratio,
            "links to nodes that are linked already are lost": not self.anew,
            "undirected links": self.undirected,
            f"{'no step' if self.depth == 0 else 'one step'} beyond the ambassador": self.depth >= 0,
            f"the random link {RANDOM_LINKS[self.random_link]}": self.random_link,
            "Bob's link both ways": self.mutual,
            f"{self.nodes} nodes": self.nodes != 50,
            "links counted from both ends": self.twice,
        }
        return ", ".join(text for text, differs in told.items() if differs) or "literal"

    @property
    def departures(self) -> int:
        """In how many settings it differs from the literal reading."""
        return sum(mine != literal for mine, literal in zip(astuple(self), astuple(Reading())))

    def means(self, runs: int, seed: int) -> tuple[float, float, float, float]:
        """Links between the communities without and with Bob's, with their standard errors."""
        out = []
        for linked in (False, True):
            made = simulate(
                self.number,
                FORWARD,
                BACKWARD * FORWARD if self.ratio else BACKWARD,
                self.anew,
                self.undirected,
                self.depth,
                self.random_link,
                self.mutual,
                self.nodes,
                linked,
                runs,
                seed + linked,
            ) * (2 if self.twice else 1)
            out += [float(made.mean()), float(made.std() / runs**0.5)]
        return out[0], out[2], out[1], out[3]


def readings() -> Iterator[Reading]:
    """All combinations that differ from each other."""
    flags = (False, True)
    for number, ratio, anew, undirected, depth, random_link, mutual, nodes, twice in product(
        range(len(NUMBERS)), flags, (True, False), flags, DEPTHS[::-1], range(3), flags, (50, 60), flags
    ):
        # A coin for each link loses those to linked nodes in any case, and undirected links go both ways anyway.
        if not ((undirected and mutual) or (number == 4 and not anew)):
            yield Reading(number, ratio, anew, undirected, depth, random_link, mutual, nodes, twice)


@numba.njit(cache=True, nogil=True)
def number_of(kind, p, most):
    if kind == 4:
        return np.random.binomial(most, p)
    failures = p if kind in (0, 3) else 1.0 - p
    return (kind in (2, 3)) + int(np.floor(np.log(1.0 - np.random.random()) / np.log(failures)))


@numba.njit(cache=True, nogil=True)
def simulate(
    kind, forward, backward, anew, undirected, depth, random_link, mutual, nodes, linked, runs, seed
):
    """Links between the communities in each run; ten first nodes with three links inside their half."""
    np.random.seed(seed)
    out = np.empty(runs)
    links, group = np.zeros((nodes, nodes), np.bool_), np.zeros(nodes, np.int64)
    queue, level, found = (
        np.empty(nodes + 1, np.int64),
        np.empty(nodes + 1, np.int64),
        np.empty(nodes, np.int64),
    )
    for run in range(runs):
        links[:] = False
        for u in range(10):
            group[u], made = u // 5, 0
            while made < 3:
                v = 5 * (u // 5) + np.random.randint(5)
                if v != u and not links[u, v]:
                    links[u, v] = True
                    made += 1
        if linked:
            links[0, 5] = True
            if mutual:
                links[5, 0] = True
        for n in range(10, nodes):
            queue[0], level[0], head, tail = np.random.randint(n), 0, 0, 1
            group[n] = group[queue[0]]
            links[n, queue[0]] = True
            second = random_link == 1
            while head < tail or second:
                if head == tail:
                    second = False
                    if np.random.random() < RANDOM:
                        tail = reach(links, n, np.random.randint(n), 0, queue, level, tail)
                    continue
                w, at = queue[head], level[head]
                head += 1
                if 0 <= depth < at:
                    continue
                for way in range(2):
                    most = 0
                    for v in range(n):
                        out_link, in_link = links[w, v], links[v, w]
                        here = (out_link or in_link) if undirected else (out_link if way == 0 else in_link)
                        if here and not (anew and links[n, v]):
                            found[most] = v
                            most += 1
                    for i in range(min(most, number_of(kind, forward if way == 0 else backward, most))):
                        j = i + np.random.randint(most - i)
                        found[i], found[j] = found[j], found[i]
                        tail = reach(links, n, found[i], at + 1, queue, level, tail)
                if random_link == 2 and np.random.random() < RANDOM:
                    tail = reach(links, n, np.random.randint(n), at + 1, queue, level, tail)
            if random_link == 0 and np.random.random() < RANDOM:
                links[n, np.random.randint(n)] = True
        count = 0
        for u in range(nodes):
            for v in range(nodes):
                if links[u, v] and group[u] != group[v]:
                    count += 1
        out[run] = count
    return out


@numba.njit(cache=True, nogil=True)
def reach(links, n, v, at, queue, level, tail):
    """Link a new node to another one and go on from there, unless they are linked."""
    if links[n, v]:
        return tail
    links[n, v] = True
    queue[tail], level[tail] = v, at
    return tail + 1
