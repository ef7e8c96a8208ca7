"""Synthetic graphs beside the original. Owns :func:`compare_graphs` and :class:`GraphComparison`.

For the curator, or for public networks: what it prints of the original is as private as the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.networks.statistics import summarise
from policygraph.estimation.networks.synthetic import synthetic_graph
from policygraph.model.domain import Network
from policygraph.model.queries.networks import MixingQuery

Ints = npt.NDArray[np.int64]
SOURCES = 200
"""Paths are measured from so many nodes, chosen by the seed."""
RELATIVE = ("edges", "triangles", "transitivity", "clustering", "path length", "modularity")
ABSOLUTE = ("assortativity",)
DISTANCES = ("degrees", "communities")
MODEL = "configuration model"
"""A random graph with the degrees of the original."""


@dataclass(frozen=True)
class GraphComparison:
    """Statistics of an original network and of others on the same nodes, and how far they are apart.

    Attributes
    ----------
    values
        For each graph, the original first, its statistics by name.
    published
        Errors that others publish for the same network, by name of the method and of the statistic.

    Examples
    --------
    >>> import networkx
    >>> club = networkx.Graph(networkx.karate_club_graph().edges())
    >>> made = compare_graphs(club, {"the same": club})
    >>> made.errors("the same")["triangles"], made.errors("the same")["communities"]
    (0.0, 0.0)
    """

    values: dict[str, dict[str, float]]
    published: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The graphs that are compared with the original, and the methods whose errors are published."""
        return [*list(self.values)[1:], *self.published]

    def errors(self, name: str) -> dict[str, float]:
        """How far a graph is from the original.

        Relative errors of edges, triangles, transitivity, mean clustering, mean path length and modularity; the difference of assortativity; for
        degrees the largest difference of the shares of nodes with at most so many edges; for communities one minus the normalised mutual information.
        """
        if name in self.published:
            return {
                key: self.published[name].get(key, float("nan")) for key in (*RELATIVE, *ABSOLUTE, *DISTANCES)
            }
        original, other = next(iter(self.values.values())), self.values[name]
        found = {}
        for key in (*RELATIVE, *ABSOLUTE, *DISTANCES):
            if key in DISTANCES:
                found[key] = other[key]
            elif key in ABSOLUTE:
                found[key] = abs(other[key] - original[key])
            else:
                gap = abs(other[key] - original[key])
                found[key] = (
                    gap / abs(original[key]) if original[key] else (0.0 if gap == 0 else float("inf"))
                )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain form: values and errors by graph."""
        errors = {
            name: {key: None if value != value else value for key, value in self.errors(name).items()}
            for name in self.names
        }
        return {"values": self.values, "errors": errors}

    def __str__(self) -> str:
        columns = [*RELATIVE, *ABSOLUTE, *DISTANCES]
        width = max(len(name) for name in self.values) + 2
        widths = [max(len(name), 10) + 2 for name in columns]
        lines = ["".ljust(width) + "".join(c.rjust(w) for c, w in zip(columns, widths, strict=True))]
        for name, values in self.values.items():
            cells = (
                f"{values[c]:,.0f}" if c in ("edges", "triangles") else f"{values[c]:.3f}" for c in columns
            )
            lines.append(name.ljust(width) + "".join(x.rjust(w) for x, w in zip(cells, widths, strict=True)))
        lines += ["", "errors".ljust(width)]
        for name in self.names:
            found = self.errors(name)
            lines.append(
                name.ljust(width)
                + "".join(_figure(found[c]).rjust(w) for c, w in zip(columns, widths, strict=True))
            )
        lines.append(
            "relative errors; assortativity: difference; degrees, communities: distances from 0 to 1"
        )
        return "\n".join(lines)

    def plot(self, target: str | Path | None = None) -> Any:
        """Draw the errors as bars, a panel for each statistic.

        Parameters
        ----------
        target
            A picture file; None only returns the figure, which notebooks show.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from policygraph.pictures import MARK, SOFT, blank, keep, label, quiet, wrapped

        columns = [*RELATIVE, *ABSOLUTE, *DISTANCES]
        figure = blank(10, 1.4 + 3 * (0.5 + 0.3 * len(self.names)), target)
        found = [self.errors(name) for name in self.names]
        for at, (axes, column) in enumerate(zip(figure.subplots(3, 3).flat, columns, strict=True)):
            sizes = [0.0 if each[column] != each[column] else min(each[column], 10.0) for each in found]
            bars = axes.barh([label(name, 30) for name in self.names], sizes, color=MARK)
            axes.bar_label(bars, [_figure(each[column]) for each in found], padding=3, fontsize=8)
            axes.invert_yaxis()
            axes.set_xlim(0, 1.3 * max(sizes) if max(sizes, default=0) > 0 else 1)
            axes.set_title(column, fontsize=10, color=SOFT)
            axes.set_xticks([])
            if at % 3:
                axes.set_yticklabels([])
            quiet(axes)
        figure.suptitle(
            wrapped("Error of each graph: relative, but for assortativity, degrees and communities", 90),
            fontsize=11,
        )
        return keep(figure, target)


def _figure(value: float) -> str:
    """A number, or nothing where none is published."""
    return "" if value != value else f"{value:.3f}"


def compare_graphs(
    original: Any,
    graphs: Mapping[str, Any],
    *,
    model: bool = False,
    published: Mapping[str, Mapping[str, float]] | None = None,
    seed: int = 0,
) -> GraphComparison:
    """Compare graphs with the original they were made from: counts, degrees, triangles, paths, communities.

    Parameters
    ----------
    original
        An undirected networkx graph without loops.
    graphs
        Others on the same nodes, by name: networkx graphs or synthetic ones.
    model
        Whether to add a random graph with the degrees of the original and nothing else.
    published
        Errors that others publish for this network, by name of the method and of the statistic, to stand beside these.
    seed
        Seed of the nodes from which paths are measured, of the search for communities and of that random graph.

    Raises
    ------
    InputError
        When a graph is directed, has loops, or is on other nodes; or a published error is of something that is not compared.

    Notes
    -----
    Path lengths are means over pairs that are joined by a path, from up to 200 nodes. Communities are those that Louvain's method finds in each
    graph by itself.
    """
    import networkx

    nodes = list(original.nodes)
    listed = {name: dict(errors) for name, errors in (published or {}).items()}
    known = (*RELATIVE, *ABSOLUTE, *DISTANCES)
    for name, errors in listed.items():
        if name in ("original", MODEL, *graphs):
            raise InputError(
                f"published errors of {name!r}: that is the name of a graph: expected another one.",
                code="networks.published",
                value=name,
            )
        if wrong := set(errors) - set(known):
            raise InputError(
                f"published errors of {name!r}: {min(wrong)!r} is not compared: expected some of {', '.join(known)}.",
                code="networks.published",
                value=name,
            )
    made = {"original": original, **{name: _graph(graph) for name, graph in graphs.items()}}
    if model:
        network = Network(nodes)
        query = MixingQuery(network, ["all"] * len(nodes))
        degrees = PublicDegrees.of(network, dict(original.degree()))
        made[MODEL] = synthetic_graph(
            [original.number_of_edges()], query, degrees, seed=seed, switches=10
        ).to_networkx()
    values: dict[str, dict[str, float]] = {}
    truth: list[int] = []
    shares: npt.NDArray[np.float64] = np.zeros(0)
    for name, graph in made.items():
        if set(graph.nodes) != set(nodes):
            raise InputError(
                f"{name}: expected a graph on the {len(nodes):,} nodes of the original.",
                code="networks.domain",
                value=name,
            )
        found = summarise(graph)
        parts = networkx.community.louvain_communities(graph, seed=seed)
        place = {node: at for at, part in enumerate(parts) for node in part}
        own = [place[node] for node in nodes]
        degree = np.array([graph.degree(node) for node in nodes], dtype=np.int64)
        if name == "original":
            truth, shares = own, _shares(degree, len(nodes))
        values[name] = {
            "edges": float(found.edges),
            "triangles": float(found.triangles),
            "transitivity": found.transitivity,
            "clustering": found.clustering,
            "path length": _path_length(graph, nodes, seed),
            "modularity": networkx.community.modularity(graph, parts) if found.edges else 0.0,
            "assortativity": found.assortativity if np.isfinite(found.assortativity) else 0.0,
            "degrees": float(np.abs(_shares(degree, len(nodes)) - shares).max(initial=0.0)),
            "communities": max(0.0, 1 - _mutual(np.array(truth), np.array(own))),
        }
    return GraphComparison(values, listed)


def _graph(graph: Any) -> Any:
    return graph.to_networkx() if hasattr(graph, "to_networkx") else graph


def _shares(degree: Ints, nodes: int) -> npt.NDArray[np.float64]:
    """Shares of nodes with at most 0, 1, 2, ... edges."""
    return np.cumsum(np.bincount(degree, minlength=nodes + 1)) / max(nodes, 1)


def _path_length(graph: Any, nodes: list[Any], seed: int) -> float:
    """Mean number of edges on shortest paths from some nodes to all that they are joined to."""
    import networkx
    from scipy.sparse import csgraph

    if not graph.number_of_edges():
        return 0.0
    matrix = networkx.to_scipy_sparse_array(graph, nodelist=nodes, weight=None, format="csr")
    chosen = np.random.default_rng(seed).permutation(len(nodes))[:SOURCES]
    found = csgraph.shortest_path(matrix, unweighted=True, indices=chosen)
    there = np.isfinite(found) & (found > 0)
    return float(found[there].mean()) if there.any() else 0.0


def _mutual(one: Ints, other: Ints) -> float:
    """Normalised mutual information of two partitions: 1 if they are the same, about 0 if one says nothing of the other."""
    if not len(one):
        return 1.0
    joint = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(joint, (one, other), 1 / len(one))
    left, right = joint.sum(axis=1), joint.sum(axis=0)
    expected = np.outer(left, right)
    there = joint > 0
    shared = float((joint[there] * np.log(joint[there] / expected[there])).sum())
    entropy = -sum(float((p[p > 0] * np.log(p[p > 0])).sum()) for p in (left, right)) / 2
    return shared / entropy if entropy > 1e-12 else 1.0
