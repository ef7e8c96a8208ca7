"""The seven methods of Data cubes 2011 over a table: what they measure, and the error to expect in every cuboid.

Errors follow from the variances, which depend on the attributes alone (section 7.1 of the paper): the mean absolute error of a sum
of m Laplace variables of scale b is 2 b m C(2m, m) / 4^m; after least squares many variables are added with unequal weights, and
the error is taken as that of a normal variable of the same variance, which is above the true one by at most 13 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import lgamma, log, pi
from typing import Any

import numpy as np

import policygraph as pg
from benchmarks.papers.data import ADULT
from policygraph.mechanisms.cube.strategies import All, Base, BMax, PMost
from policygraph.transforms.cuboids.choose import Choice, CubeStrategy, Task

METHODS = ("All", "AllC", "Base", "BMax", "BMaxC", "PMost", "PMostC")
COLOURS = {"All": "tab:grey", "Base": "tab:brown", "BMax": "tab:blue", "PMost": "tab:orange"}
ONE = pg.Epsilon(1)


def adult(dimensions: int = 8) -> pg.Domain:
    """The first attributes of Adult, and further ones of four values, as in experiment IV."""
    sizes = [size for _, size in ADULT.values()] + [4, 4]
    names = [*ADULT, "ninth", "tenth"]
    return pg.Domain(dict(zip(names[:dimensions], sizes)))


def every_cuboid(domain: pg.Domain) -> list[tuple[str, ...]]:
    return [names for k in range(len(domain.names) + 1) for names in combinations(domain.names, k)]


@dataclass(frozen=True)
class Plan:
    """What a method measures, and the variance of a cell of every cuboid at epsilon 1."""

    choice: Choice
    dimensions: np.ndarray
    plain: np.ndarray
    fitted: np.ndarray

    @property
    def single(self) -> np.ndarray:
        """Expected absolute error of a cell when each cuboid is a sum of one measured cuboid."""
        scale = len(self.choice.sets)
        return np.array([laplace_sum(round(v / (2 * scale**2))) * scale for v in self.plain])

    @property
    def consistent(self) -> np.ndarray:
        """Expected absolute error of a cell after least squares."""
        if len(self.choice.sets) == 1:
            return self.single
        return np.sqrt(2 / pi * self.fitted)


@cache
def laplace_sum(m: int) -> float:
    """Mean absolute value of a sum of m Laplace variables of scale 1."""
    return 2 * m * float(np.exp(lgamma(2 * m + 1) - 2 * lgamma(m + 1) - 2 * m * log(2)))


def plan(domain: pg.Domain, strategy: Any) -> Plan:
    """What a strategy of the library measures."""
    sets = every_cuboid(domain)
    return planned(domain, strategy.choose(domain, sets, [1.0] * len(sets), pg.Policy(domain), ONE))


def planned(domain: pg.Domain, choice: Choice) -> Plan:
    sets = every_cuboid(domain)
    task = Task(domain, sets, [1.0] * len(sets), pg.Policy(domain), ONE)
    masks, weights = [task.lattice.mask(names) for names in choice.sets], [float(w) for w in choice.weights]
    sizes = np.array([len(names) for names in sets])
    return Plan(choice, sizes, task.plain(masks, weights), task.fitted(masks, weights))


def plans(domain: pg.Domain, share: float = 0.5) -> dict[str, Plan]:
    """All, Base, BMax by Algorithm 1, and PMost by Algorithm 2 with a share of the bound that Algorithm 1 finds, as printed."""
    lattice = Printed(domain)
    theta, best = lattice.bound_max_variance()
    return {
        "All": plan(domain, All()),
        "Base": plan(domain, Base()),
        "BMax": planned(domain, lattice.choice(best)),
        "PMost": planned(domain, lattice.choice(lattice.publish_most(share * theta)[1])),
    }


def improved(domain: pg.Domain, share: float = 0.5) -> dict[str, Plan]:
    """The same by the library's greedy covers, which drop what is unnecessary and scan all thresholds."""
    best = plan(domain, BMax(fitted=False, work=0))
    most = PMost(bound=share * best.choice.objective, fitted=False, work=0)
    return {"BMax": best, "PMost": plan(domain, most)}


def errors(made: dict[str, Plan]) -> dict[str, np.ndarray]:
    """Expected absolute error of a cell of every cuboid at epsilon 1, by method."""
    out = {}
    for name in METHODS:
        one = made[name.removesuffix("C")]
        out[name] = one.consistent if name.endswith("C") else one.single
    return out


# Algorithms 1 and 2 as printed ---------------------------------------------------------------------------------------


class Printed:
    """Coverage by ratio of the lattice of a table, and the greedy algorithms over it."""

    def __init__(self, domain: pg.Domain) -> None:
        self.sets = every_cuboid(domain)
        size = dict(zip(domain.names, domain.shape))
        self.ratio = np.full((len(self.sets), len(self.sets)), np.inf)
        for i, source in enumerate(self.sets):
            for j, target in enumerate(self.sets):
                if set(target) <= set(source):
                    self.ratio[i, j] = np.prod([size[n] for n in source if n not in target], dtype=float)
        self.found: dict[float, list[int]] = {}

    def greedy(self, most: float, steps: int) -> list[int]:
        """Cuboids that cover most of what is not yet covered, one after the other."""
        key = float(self.ratio[self.ratio <= most].max(initial=0))
        if key not in self.found:
            left, chosen = self.ratio <= key, []
            while (gains := left.sum(axis=1)).max() > 0:
                chosen.append(int(gains.argmax()))
                left = left & ~left[chosen[-1]]
            self.found[key] = chosen
        return self.found[key][:steps]

    def choice(self, chosen: Sequence[int]) -> Choice:
        """What is measured; with the base cuboid, if some cuboid could not be computed otherwise."""
        sets = [self.sets[at] for at in chosen]
        if np.isinf(self.ratio[list(chosen)].min(axis=0)).any():
            sets.append(self.sets[-1])
        return Choice(tuple(sets), (1,) * len(sets))

    def covered(self, chosen: Sequence[int], most: float) -> int:
        return int((self.ratio[list(chosen)] <= most).any(axis=0).sum()) if chosen else 0

    def feasible(self, theta: float, s: int) -> list[int] | None:
        """FEASIBLE of Algorithm 1, at epsilon 1."""
        chosen = self.greedy(theta / (2 * s * s), s)
        return chosen if self.covered(chosen, theta / (2 * s * s)) == len(self.sets) else None

    def bound_max_variance(self) -> tuple[float, list[int]]:
        """Algorithm 1: binary search for the least theta, with the answer at the end of the search."""
        low, high = 0.0, 2.0 * len(self.sets) ** 2
        best: list[int] = list(range(len(self.sets)))
        while high - low > 1:
            theta = (low + high) / 2
            found = [got for s in range(1, len(self.sets) + 1) if (got := self.feasible(theta, s))]
            if found:
                high, best = theta, found[0]
            else:
                low = theta
        scale = 2 * len(best) ** 2
        return float(self.ratio[best].min(axis=0).max() * scale), best

    def publish_most(self, theta: float) -> tuple[int, list[int]]:
        """Algorithm 2: most covered cuboids, and what is measured for them."""
        best: tuple[int, list[int]] = (0, [])
        for s in range(1, len(self.sets) + 1):
            chosen = self.greedy(theta / (2 * s * s), s)
            if (count := self.covered(chosen, theta / (2 * s * s))) > best[0]:
                best = (count, chosen)
        return best


@dataclass(frozen=True)
class Measured(CubeStrategy):
    """A choice that was made elsewhere."""

    made: Choice
    name: str = "measured"

    def choose(self, domain: Any, published: Any, weights: Any, policy: Any, loss: Any) -> Choice:
        return self.made


# Pictures ------------------------------------------------------------------------------------------------------------


def bars(axis: Any, ticks: list[str], values: dict[str, list[float]], title: str, xlabel: str) -> None:
    """Bars as in the paper: one for each method, the consistent version inside the other."""
    at = np.arange(len(ticks))
    for place, name in enumerate(("All", "Base", "BMax", "PMost")):
        where = at + (place - 1.5) * 0.2
        axis.bar(where, values[name], 0.18, color=COLOURS[name], alpha=0.45, label=name)
        if f"{name}C" in values:
            axis.bar(where, values[f"{name}C"], 0.18, color=COLOURS[name], label=f"{name}C")
    axis.set_xticks(at, ticks)
    axis.set(yscale="log", title=title, xlabel=xlabel)
    axis.grid(axis="y", alpha=0.3)


def legend(figure: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.tight_layout(rect=(0, 0, 0.88, 1))
    figure.legend(handles, labels, loc="center right", frameon=False)
