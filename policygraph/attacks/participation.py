"""How far one link spreads in a growing network. Owns :class:`NetworkModel`, :func:`forest_fire`, :func:`copying` and :func:`mvs`.

Section 3 of Kifer and Machanavajjhala (2011): two communities share at most one link, the one of Bob. Deleting it from the data changes the number of links
between them by 1, which differential privacy for links hides. Had it never existed, many others would not have formed either: that difference is
what hiding Bob's *participation* takes. The models are simulated from public parameters; no data are seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.exact import Exact
from policygraph.model.loss import Epsilon

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Effect", "NetworkModel", "copying", "forest_fire", "mvs"]

FIRE, COPY, MVS = 0, 1, 2
NORMAL_95 = 1.959963984540054
MOST_NODES = 2_000
MOST_RUNS = 10_000_000


@dataclass(frozen=True)
class Effect:
    """Links between the communities with and without Bob's, over many runs.

    Attributes
    ----------
    without, linked
        Mean number of links between the communities when Bob had none of them, and when he had one.
    runs
        Runs of each.
    deviation
        Standard error of the difference.
    """

    without: float
    linked: float
    runs: int
    deviation: float

    @property
    def difference(self) -> float:
        """By how much Bob's link changes the expected number of links between the communities."""
        return self.linked - self.without

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % confidence interval of the difference."""
        half = NORMAL_95 * self.deviation
        return self.difference - half, self.difference + half

    def epsilon(self, epsilon: Exact) -> float:
        """What a loss for single links would have to be divided down to, so that participation is hidden in expectation.

        Notes
        -----
        Laplace noise of scale 1 / epsilon hides a change by 1; a change by the difference Y takes scale Y / epsilon. It is a lower bound on
        the noise: Y is a difference of expectations, and other queries may reveal more.
        """
        return float(Epsilon(epsilon).value) / max(1.0, self.difference)

    def epsilon_interval(self, epsilon: Exact) -> tuple[float, float]:
        """A 95 % confidence interval of :meth:`epsilon`: it is the loss of the upper and of the lower end of :attr:`interval`.

        Examples
        --------
        >>> Effect(without=10.0, linked=50.0, runs=100, deviation=5.0).epsilon_interval(1.0)[0] < 1 / 40
        True
        """
        level = float(Epsilon(epsilon).value)
        low, high = self.interval
        return level / max(1.0, high), level / max(1.0, low)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"links between the communities: {self.without:.4g} without Bob's, {self.linked:.4g} with it; difference {self.difference:.4g} "
            f"(95 %: {low:.4g} to {high:.4g}; {self.runs:,} runs each)"
        )


@dataclass(frozen=True)
class NetworkModel:
    """A model of how a network grows from two communities.

    Attributes
    ----------
    name
        Which model.
    nodes
        Nodes in the end.
    start
        Nodes in the beginning, half of them in each community.
    outlinks
        Random links of each of them inside its community.
    settings
        Parameters of the model.
    """

    name: str
    nodes: int
    start: int
    outlinks: int
    settings: tuple[float, ...]

    @property
    def _kind(self) -> int:
        return {"forest fire": FIRE, "copying": COPY, "mvs": MVS}[self.name]

    def counts(self, *, linked: bool, runs: int, seed: int = 1) -> npt.NDArray[np.int64]:
        """Number of links between the communities in each of many runs; repeatable."""
        from policygraph.attacks._compiled_models import many_runs

        _whole("runs", runs, 1, MOST_RUNS)
        _whole("seed", seed, 0, (1 << 32) - 1)
        made: npt.NDArray[np.int64] = many_runs(
            self._kind,
            self.nodes,
            self.start,
            self.outlinks,
            bool(linked),
            np.array(self.settings, dtype=np.float64),
            runs,
            seed,
        )
        return made

    def effect(self, runs: int = 100_000, seed: int = 1) -> Effect:
        """Compare runs with and without Bob's link; two runs of each at least, whose spread the confidence interval is made from.

        Examples
        --------
        >>> found = copying(random_link=0.05).effect(runs=2_000)
        >>> found.difference > 1
        True
        """
        _whole("runs", runs, 2, MOST_RUNS)
        without = self.counts(linked=False, runs=runs, seed=seed)
        linked = self.counts(linked=True, runs=runs, seed=(seed + 1) % (1 << 32))
        spread = (float(without.var(ddof=1)) + float(linked.var(ddof=1))) / runs
        return Effect(float(without.mean()), float(linked.mean()), runs, sqrt(spread))

    def graph(self, *, linked: bool, seed: int = 1) -> nx.Graph[Any]:
        """One network; the community of each node is its attribute ``community``, and Bob is node 0.

        Examples
        --------
        >>> made = forest_fire(nodes=20).graph(linked=True)
        >>> len(made), made.has_edge(0, 5), made.nodes[0]["community"], made.nodes[5]["community"]
        (20, True, 0, 1)
        """
        import networkx as nx

        from policygraph.attacks._compiled_models import seeded_run

        _whole("seed", seed, 0, (1 << 32) - 1)
        links, groups = seeded_run(
            self._kind,
            self.nodes,
            self.start,
            self.outlinks,
            bool(linked),
            np.array(self.settings, dtype=np.float64),
            seed,
        )
        made: nx.Graph[Any] = nx.Graph() if self._kind == MVS else nx.DiGraph()
        made.add_nodes_from((node, {"community": int(group)}) for node, group in enumerate(groups))
        made.add_edges_from(zip(*(ends.tolist() for ends in np.nonzero(links)), strict=True))
        return made


def forest_fire(
    nodes: int = 50,
    *,
    start: int = 10,
    outlinks: int = 3,
    forward: float = 0.37,
    backward: float = 0.32,
    random_link: float = 0.1,
) -> NetworkModel:
    """The forest fire model (Leskovec, Kleinberg and Faloutsos 2007) as Section 3 of Kifer and Machanavajjhala (2011) changes it.

    Parameters
    ----------
    nodes, start, outlinks
        Nodes in the end and in the beginning, and links of each of the first ones inside its community.
    forward, backward
        A new node links to a geometric number of the nodes that a neighbour links to (mean ``forward / (1 - forward)``), and of those that link
        to it, and goes on from there.
    random_link
        With this probability a new node also links to a random one.

    Examples
    --------
    >>> forest_fire(nodes=30).counts(linked=False, runs=3).shape
    (3,)
    """
    _starting(nodes, start, outlinks)
    for name, value in (("forward", forward), ("backward", backward)):
        _probability(name, value, most=0.999)
    _probability("random_link", random_link)
    return NetworkModel("forest fire", nodes, start, outlinks, (forward, backward, random_link))


def copying(
    nodes: int = 50, *, start: int = 10, outlinks: int = 3, random_link: float = 0.05
) -> NetworkModel:
    """The copying model (Kumar et al. 2000): a new node copies the links of a prototype.

    Parameters
    ----------
    nodes, start, outlinks
        Nodes in the end and in the beginning, and links of each of the first ones inside its community.
    random_link
        Each copied link is a random one with this probability.

    Examples
    --------
    >>> copying(random_link=1.0).effect(runs=500).difference < 20
    True
    """
    _starting(nodes, start, outlinks)
    _probability("random_link", random_link)
    return NetworkModel("copying", nodes, start, outlinks, (random_link,))


def mvs(
    nodes: int = 20,
    *,
    outlinks: int = 2,
    steps: int = 100,
    random_link: float = 1.0,
    introduction: float = 1.0,
    decay: float = 1.0,
) -> NetworkModel:
    """The model of Marsili, Vega-Redondo and Slanina (2004): links come by chance and by introduction, and vanish.

    Parameters
    ----------
    nodes
        Nodes, half of them in each community.
    outlinks
        Links that each node makes inside its community in the beginning.
    steps
        Time steps.
    random_link
        Probability of a link between two random nodes in a step (eta).
    introduction
        Probability that a random node is introduced by one of its neighbours to one of theirs (xi).
    decay
        Mean of the Poisson number of links that vanish in a step (lambda).

    Examples
    --------
    >>> mvs(steps=0).effect(runs=10).difference
    1.0
    """
    _starting(nodes, nodes, outlinks)
    _whole("steps", steps, 0, 10_000_000)
    _probability("random_link", random_link)
    _probability("introduction", introduction)
    if isinstance(decay, bool) or not isinstance(decay, (int, float)) or not 0 <= decay <= 1_000_000:
        raise InputError(
            f"decay={decay!r}: expected a number from 0 to 1,000,000.", code="attacks.model", value=decay
        )
    return NetworkModel(
        "mvs", nodes, nodes, outlinks, (random_link, introduction, float(decay), float(steps))
    )


def _starting(nodes: int, start: int, outlinks: int) -> None:
    _whole("nodes", nodes, 2, MOST_NODES)
    _whole("start", start, 2, nodes)
    if start % 2:
        raise InputError(
            f"start={start}: expected an even number, half of the nodes for each community.",
            code="attacks.model",
            value=start,
        )
    _whole("outlinks", outlinks, 0, start // 2 - 1)


def _whole(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise InputError(
            f"{name}={value!r}: expected a whole number from {least:,} to {most:,}.",
            code="attacks.model",
            value=value,
        )


def _probability(name: str, value: Any, most: float = 1.0) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise InputError(
            f"{name}={value!r}: expected a probability from 0 to {most:g}.", code="attacks.model", value=value
        )
