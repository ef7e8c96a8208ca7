"""Pictures of moves, move graphs and neighbouring tables. Owns :func:`draw` and :func:`draw_graph`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import cos, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.constraints.networks import Degrees
from policygraph.model.domain import Domain, Network
from policygraph.model.policy import Policy
from policygraph.output import replacing
from policygraph.pictures import check_picture

if TYPE_CHECKING:
    import networkx

MOST = 60
MOST_DRAWN = {"network": (40, 800), "sums": (60, 400), "incidence": (80, 400), "tables": (60, 600)}
"""Most vertices and edges of a picture."""
ADDED, REMOVED, PUBLIC, EDGE = "#1a7f37", "#b3261e", "#333333", "#30638e"
CIRCLE = 14
"""Up to so many nodes stand on a circle, with what each of them loses and gains."""
SHORT = 3
"""Names of up to so many characters stand inside their node, longer ones beside it."""


class Drawn(Protocol):
    """What a picture needs of a move."""

    @property
    def policy(self) -> Policy:
        """The policy whose public facts hold the change together."""

    @property
    def cells(self) -> Any:
        """Cells that change."""

    @property
    def amounts(self) -> Any:
        """Amounts by which they change."""


def draw(move: Drawn, target: str | Path | Any) -> Any:
    """Draw a small move into a picture file or into matplotlib axes; return the axes.

    Parameters
    ----------
    move
        A change of cells of a table, or of edges of a network.
    target
        A file name with a picture ending, or axes.

    Raises
    ------
    RefusedError
        When the move is too large for a picture.
    """
    if len(move.cells) > MOST:
        raise RefusedError(
            f"a move of {len(move.cells)} cells is too large to draw: expected at most {MOST}.",
            code="move.too-large",
        )
    with _picture(target, _size(move)) as axes:
        if isinstance(move.policy.domain, Network):
            _network(move, move.policy.domain, axes)
        else:
            _table(move, move.policy.domain, axes)
        for text in axes.texts:
            text.set_parse_math(False)  # two dollars in a label are no formula
    return axes


@contextmanager
def _picture(target: str | Path | Any, size: tuple[float, float]) -> Iterator[Any]:
    """Axes to draw into, written to the file when that is what was given."""
    try:
        import matplotlib
    except ImportError as cause:
        raise InputError(
            "drawing needs matplotlib: install policygraph[plot].", code="move.matplotlib"
        ) from cause
    if not isinstance(target, (str, Path)):
        yield target
        return
    check_picture(target)
    matplotlib.use("Agg", force=False)
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    yield figure.add_subplot()
    with replacing(target) as draft:
        figure.savefig(draft, dpi=150)


def draw_graph(
    graph: networkx.Graph[Any], target: str | Path | Any, *, text: Callable[[Any], str] = str
) -> Any:
    """Draw a small move graph, or graph of neighbouring tables, into a picture file or into matplotlib axes; return the axes.

    Parameters
    ----------
    graph
        What :meth:`Policy.move_graph` or :meth:`Policy.neighbour_graph` gave.
    target
        A file name with a picture ending, or axes.
    text
        What stands in the box of a table.

    Raises
    ------
    RefusedError
        When the graph is too large for a picture.
    """
    kind = graph.graph.get("kind", "tables")
    nodes, edges = MOST_DRAWN[kind]
    if graph.number_of_nodes() > nodes or graph.number_of_edges() > edges:
        raise RefusedError(
            f"a graph of {graph.number_of_nodes():,} vertices and {graph.number_of_edges():,} edges is too large to draw: "
            f"expected at most {nodes} and {edges}.",
            code="move.too-large",
        )
    painter = {"network": _draw_pairs, "tables": _draw_tables}.get(kind, _draw_two_columns)
    many = max(2, graph.number_of_nodes())
    side = min(4.5 + 0.25 * many, 16.0)
    size = (7.0, max(1.6 + 0.21 * many, 3.0)) if painter is _draw_two_columns else (side, side)
    with _picture(target, size) as axes:
        painter(graph, axes, text)
        axes.axis("off")
    return axes


def _draw_two_columns(graph: networkx.Graph[Any], axes: Any, text: Callable[[Any], str]) -> None:
    """The two parts of a bipartite graph face to face; parallel edges as bows, a third kind of vertex never occurs."""
    from matplotlib.patches import FancyArrowPatch

    incidence = graph.graph["kind"] == "incidence"
    parts = {node: data.get("bipartite", 0) for node, data in graph.nodes(data=True)}
    place = {}
    for part in (0, 1):
        column = [node for node in graph.nodes if parts[node] == part]
        for at, node in enumerate(column):
            place[node] = (float(part), (len(column) - 1) / 2 - at)
    met: dict[frozenset[Any], int] = {}
    often = {frozenset(pair): graph.number_of_edges(*pair) for pair in graph.edges()}
    for u, v in graph.edges():
        pair = frozenset((u, v))
        at, count = met.get(pair, 0), often[pair]
        met[pair] = at + 1
        # One of several cells between two sums: bows of different height.
        bend = 0.0 if count == 1 else 0.3 * (2 * at / (count - 1) - 1)
        if u == v:
            x, y = place[u]
            axes.plot(*_loop(x, y + 0.12 * at), color=EDGE, lw=1)
            continue
        style: dict[str, Any] = {
            "arrowstyle": "-",
            "connectionstyle": f"arc3,rad={bend}",
            "color": EDGE,
            "lw": 1,
        }
        axes.add_patch(FancyArrowPatch(place[u], place[v], shrinkA=4, shrinkB=4, zorder=1, **style))
    for node, (x, y) in place.items():
        public = bool(graph.nodes[node].get("public", parts[node] == 1))
        name = ", ".join(map(str, node)) if isinstance(node, tuple) else str(node)
        axes.plot(x, y, "o", ms=8, mfc=PUBLIC if public else "white", mec=PUBLIC, zorder=3)
        axes.text(x + (0.05 if x else -0.05), y, name, ha="left" if x else "right", va="center", fontsize=9)
    high = max((abs(y) for _, y in place.values()), default=0.0) + 0.7
    axes.set(xlim=(-0.75, 1.75), ylim=(-high, high))
    words = (
        "cells (left) and the public sums that count them (right)"
        if incidence
        else f"{graph.number_of_edges()} cells as edges between the sums that count them (filled: public)"
    )
    axes.set_title(words, fontsize=10)


def _draw_pairs(graph: networkx.Graph[Any], axes: Any, text: Callable[[Any], str]) -> None:
    """Nodes of a network on a circle, joined where an edge may be."""
    nodes = list(graph.nodes)
    turn = {node: 2 * pi * at / len(nodes) + pi / 2 for at, node in enumerate(nodes)}
    place = {node: (cos(angle), sin(angle)) for node, angle in turn.items()}
    for u, v in graph.edges():
        line = _loop(*place[u]) if u == v else tuple(zip(place[u], place[v], strict=True))
        axes.plot(*line, color=EDGE, lw=0.8, zorder=1)
    for node, data in graph.nodes(data=True):
        public = any(value for key, value in data.items() if key.startswith("public"))
        x, y = place[node]
        axes.plot(x, y, "o", ms=16, mfc=PUBLIC if public else "white", mec=PUBLIC, zorder=3)
        inside = len(str(node)) <= SHORT
        axes.text(
            *((x, y) if inside else (1.18 * x, 1.12 * y)),
            str(node),
            ha="center",
            va="center",
            fontsize=8,
            color="white" if public and inside else "black",
            zorder=4,
        )
    axes.set(xlim=(-1.45, 1.45), ylim=(-1.35, 1.35), aspect="equal")
    axes.set_title("node pairs that may be edges (filled: public degree)", fontsize=10)


def _draw_tables(graph: networkx.Graph[Any], axes: Any, text: Callable[[Any], str]) -> None:
    """Every table with its counts, joined to its neighbours."""
    import networkx

    # On a circle no three boxes are in line, which keeps the many lines of a dense graph apart.
    sparse = 0 < graph.number_of_edges() <= 3 * graph.number_of_nodes()
    place = networkx.kamada_kawai_layout(graph) if sparse else networkx.circular_layout(graph)
    for u, v in graph.edges():
        axes.plot(*zip(place[u], place[v], strict=True), color=EDGE, lw=0.8, zorder=1)
    for node, (x, y) in place.items():
        axes.text(
            x,
            y,
            text(node),
            ha="center",
            va="center",
            fontsize=8,
            family="monospace",
            bbox={"boxstyle": "round,pad=0.25", "fc": "white", "ec": PUBLIC},
            zorder=3,
        )
    axes.margins(0.12)
    axes.set_title(
        f"{graph.number_of_nodes()} tables, {graph.number_of_edges()} pairs of neighbours", fontsize=10
    )


def _network(move: Drawn, network: Network, axes: Any) -> None:
    """Nodes on a circle in the order of a walk that takes removed and added edges by turns, so that neighbours stay close."""
    tails, heads = (ends.tolist() for ends in network.pairs(move.cells))
    edges = list(zip(tails, heads, move.amounts.tolist(), strict=True))
    nodes = _walk(edges)
    crowded = len(nodes) > CIRCLE
    turn = {v: 2 * pi * i / len(nodes) + pi / 2 for i, v in enumerate(nodes)}
    place = _spread(edges) if crowded else {v: (cos(turn[v]), sin(turn[v])) for v in nodes}
    known: dict[str, set[int]] = {}
    for fact in move.policy.system.needed:
        if isinstance(fact, Degrees):
            known.setdefault(fact.side, set()).update(fact.positions(network).tolist())
    near = 7 if crowded else 11
    for u, v, amount in edges:
        color, ls = (ADDED, "-") if amount > 0 else (REMOVED, (0, (4, 2)))
        if u == v:
            axes.plot(*_loop(*place[u]), color=color, ls=ls, lw=2)
        else:
            style: dict[str, Any] = {"color": color, "ls": ls, "lw": 2, "shrinkA": near, "shrinkB": near}
            style["arrowstyle"] = "-|>" if network.directed else "-"
            style["connectionstyle"] = "arc3,rad=0.15" if network.directed else "arc3,rad=0"
            axes.annotate("", xy=place[v], xytext=place[u], arrowprops=style)
        if abs(amount) > 1:
            at = tuple((a + b) / 2 for a, b in zip(place[u], place[v], strict=True))
            axes.text(*at, f"{abs(amount)} times", color=color, ha="center", backgroundcolor="white")
    public = set().union(*known.values()) if known else set()
    for v in nodes:
        fill, ink = (PUBLIC, "white") if v in public else ("white", "black")
        axes.plot(*place[v], "o", ms=13 if crowded else 19, mfc=fill, mec=PUBLIC, zorder=3)
        name = str(network.nodes[v])
        if len(name) <= SHORT:
            size = 7 if crowded else 9
            axes.text(*place[v], name, ha="center", va="center", color=ink, zorder=4, fontsize=size)
        beside = [] if len(name) <= SHORT else [name]
        beside += [] if crowded else _changes(network, edges, v, known)
        away = 1.4 if (v, v) in {(a, b) for a, b, _ in edges} else 1.05 if crowded else 1.17
        x, y = (away * z for z in place[v])
        side = "center" if abs(x) < 0.2 else "left" if x > 0 else "right"
        up = "center" if abs(y) < 0.9 else "bottom" if y > 0 else "top"
        axes.text(x, y, "\n".join(beside), ha=side, va=up, fontsize=8, color=PUBLIC)
    _words(move, network, axes, nodes, known)


def _walk(edges: list[tuple[int, int, int]]) -> list[int]:
    """Nodes in the order of a walk over the edges that alternates between removed and added ones as long as it can."""
    left = dict(enumerate(edges))
    order: list[int] = []
    at, last = edges[0][0], 1
    while True:
        order += [] if at in order else [at]
        here = [(amount * last > 0, key) for key, (u, v, amount) in left.items() if at in (u, v)]
        if here:
            key = min(here)[1]
        elif left:
            # Stuck: go on from a node that was seen, if there is one with an edge left.
            key = min(left, key=lambda k: (left[k][0] not in order and left[k][1] not in order, k))
            at = left[key][1] if left[key][1] in order else left[key][0]
            order += [] if at in order else [at]
        else:
            return order
        u, v, last = left.pop(key)
        at = v if at == u else u


def _spread(edges: list[tuple[int, int, int]]) -> dict[int, tuple[float, float]]:
    """Places for many nodes: joined ones close, as far as the plane allows."""
    import networkx

    graph = networkx.Graph([(u, v) for u, v, _ in edges])
    found = networkx.kamada_kawai_layout(graph)
    return {v: (1.35 * float(x), 1.1 * float(y)) for v, (x, y) in found.items()}


def _loop(x: float, y: float) -> tuple[Any, Any]:
    round_ = np.linspace(0, 2 * pi, 60)
    return 1.12 * x + 0.12 * np.cos(round_), 1.12 * y + 0.12 * np.sin(round_)


def _changes(
    network: Network, edges: list[tuple[int, int, int]], node: int, known: dict[str, set[int]]
) -> list[str]:
    """How many edges a node loses and gains; by direction in a directed network."""
    parts = []
    for side, word in (("out", "out "), ("in", "in ")) if network.directed else (("both", ""),):
        ends = [
            amount * ((u == node and side != "in") + (v == node and side != "out")) for u, v, amount in edges
        ]
        less, more = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
        if less or more:
            both = ([f"\N{MINUS SIGN}{-less}"] if less else []) + ([f"+{more}"] if more else [])
            kept = " (public)" if node in known.get(side, ()) and network.directed else ""
            parts.append(f"{word}{' '.join(both)}{kept}")
    return parts


def _words(move: Drawn, network: Network, axes: Any, nodes: list[int], known: dict[str, set[int]]) -> None:
    """Title and legend: what the two networks are, and what holds the change together."""
    gone, come = -int(move.amounts[move.amounts < 0].sum()), int(move.amounts[move.amounts > 0].sum())
    public = set().union(*known.values()) if known else set()
    axes.plot([], [], color=REMOVED, lw=2, ls=(0, (4, 2)), label=f"only in the first network: {gone}")
    axes.plot([], [], color=ADDED, lw=2, label=f"only in the second network: {come}")
    kind = {"both": "degree", "in": "in-degree", "out": "out-degree"}.get("".join(known), "in- or out-degree")
    if public & set(nodes):
        axes.plot([], [], "o", color=PUBLIC, ms=9, label=f"public {kind}: loses as many as it gains")
    if set(nodes) - public:
        axes.plot([], [], "o", mfc="white", mec=PUBLIC, ms=9, label="degree is not public: may lose or gain")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False, fontsize=8)
    high = 1.7 if network.loops else 1.4
    axes.set(xlim=(-1.75, 1.75), ylim=(-high, high), aspect="equal")
    axes.axis("off")
    rest = network.order - len(nodes)
    more = f"; {rest:,} other node{'s' * (rest != 1)} not shown" if rest else ""
    axes.set_title("Two networks that must look alike", fontsize=11, pad=18)
    axes.text(
        0.5, 1.01, f"all other edges are the same{more}", transform=axes.transAxes, ha="center", fontsize=8
    )


def _changing(move: Drawn, domain: Domain) -> tuple[list[int], list[int]]:
    """The attributes along the rows and along the columns: a single one that changes runs along the columns."""
    codes = domain.codes(move.cells)
    axes = [axis for axis in range(len(domain.shape)) if len(set(codes[axis].tolist())) > 1] or [0]
    return (axes[:1], axes[1:]) if len(axes) > 1 else ([], axes)


def _size(move: Drawn) -> tuple[float, float]:
    if isinstance(move.policy.domain, Domain) and not _changing(move, move.policy.domain)[0]:
        return 6.0, 2.2
    if isinstance(move.policy.domain, Network):
        tails, heads = move.policy.domain.pairs(move.cells)
        return (9.0, 7.5) if len({*tails.tolist(), *heads.tolist()}) > CIRCLE else (6.4, 5.4)
    return 6.0, 5.0


def _table(move: Drawn, domain: Domain, axes: Any) -> None:
    """Rows are the values of the first attribute that changes, columns those of the others."""
    codes = domain.codes(move.cells)
    names = domain.names
    down, across = _changing(move, domain)

    def keys(of: list[int]) -> list[tuple[int, ...]]:
        return sorted({tuple(int(codes[axis][at]) for axis in of) for at in range(len(move.cells))})

    def texts(of: list[int], listed: list[tuple[int, ...]]) -> list[str]:
        return [
            ", ".join(str(domain.labels(names[axis])[c]) for axis, c in zip(of, key, strict=True))
            for key in listed
        ]

    rows, columns = keys(down), keys(across)
    grid = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for at, amount in enumerate(move.amounts.tolist()):
        place = (tuple(int(codes[axis][at]) for axis in of) for of in (down, across))
        grid[rows.index(next(place)), columns.index(next(place))] += amount
    top = max(1, int(np.abs(grid).max()))
    axes.imshow(grid, cmap="PiYG", vmin=-2 * top, vmax=2 * top, aspect="auto")
    for (i, j), value in np.ndenumerate(grid):
        if value:
            axes.text(j, i, f"{value:+d}", ha="center", va="center", fontsize=12)
    axes.set_yticks(range(len(rows)), texts(down, rows) if down else ["records"])
    tilted = len(columns) > 6
    axes.set_xticks(
        range(len(columns)),
        texts(across, columns),
        rotation=45 if tilted else 0,
        ha="right" if tilted else "center",
    )
    axes.set_ylabel(" x ".join(names[axis] for axis in down))
    axes.set_xlabel(" x ".join(names[axis] for axis in across))
    same = [axis for axis in range(len(names)) if axis not in (*down, *across)]
    first = ", ".join(f"{names[axis]} = {domain.labels(names[axis])[int(codes[axis][0])]}" for axis in same)
    axes.set_title(
        "the change between two tables that must look alike" + (f"\n(all with {first})" if first else "")
    )
