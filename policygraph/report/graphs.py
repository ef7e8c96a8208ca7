"""Drawings of what is protected: policy graphs and networks, as SVG. Owns :func:`policy_graph` and :func:`network`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin
from typing import Any

from policygraph.markup import Markup, json_script, tag
from policygraph.model.constraints.networks import Degrees
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs.base import PolicyGraph
from policygraph.model.graphs.drawing import fewer, layout
from policygraph.model.policy import Policy
from policygraph.pictures import short
from policygraph.report.tables import text_of

MAP_CELLS, MAP_EDGES = 4_096, 20_000
"""Up to so many cells and edges a grid is shown as a map of squares."""
CELLS, EDGES, RING = 60, 400, 12
"""Up to so many cells and edges a graph is drawn with its lines (up to RING cells where all are joined); larger ones by the same rule on fewer values."""
NODES = 48
"""Networks of up to so many nodes are drawn."""
WIDE = 720.0
LONG = 14

Point = tuple[float, float]


@dataclass(frozen=True)
class GraphPicture:
    """A picture, its data for the script of the page, and what to say under it."""

    picture: Markup
    data: Markup | None
    caption: str


def cell_text(domain: Domain | Network, cell: int) -> str:
    """A cell in words."""
    labels = [text_of(label) for label in domain.cell(cell)]
    if isinstance(domain, Network):
        return f"{labels[0]} and {labels[1]}"
    return ", ".join(f"{name} {label}" for name, label in zip(domain.names, labels, strict=True))


def policy_graph(graph: PolicyGraph) -> GraphPicture | None:
    """The graph as a picture that can be explored; a large one on fewer values of each attribute; None where no picture helps."""
    domain = graph.domain
    if not isinstance(domain, Domain):
        return None
    if _is_small(graph):
        return _lines(graph, "")
    if _is_map(graph):
        return _map(graph)
    small = fewer(graph, _is_small)
    if small is None:
        return None
    return _lines(
        small,
        f"The whole graph has {graph.size:,} cells and {graph.n_edges:,} edges. Drawn is the same rule on the first values of each attribute. ",
    )


def _is_complete(graph: PolicyGraph) -> bool:
    return graph.n_edges >= graph.size * (graph.size - 1) // 2 and graph.size > 3


def _is_small(graph: PolicyGraph) -> bool:
    """Whether lines and labels can be told apart."""
    return graph.size <= (RING if _is_complete(graph) else CELLS) and graph.n_edges <= EDGES


def _is_map(graph: PolicyGraph) -> bool:
    shape = getattr(graph.domain, "shape", ())
    return len(shape) == 2 and min(shape) > 1 and graph.size <= MAP_CELLS and graph.n_edges <= MAP_EDGES


def _data(graph: PolicyGraph) -> Markup:
    edges = [[u, v if isinstance(v, int) else -1] for u, v in graph.edges()]
    names = [cell_text(graph.domain, u) for u in range(graph.size)]
    return json_script({"names": names, "edges": edges}, "graph-data")


HOW = "Choose a cell, with the mouse or the arrow keys, to see which others it must not be told apart from."


def _map(graph: PolicyGraph) -> GraphPicture:
    """Cells of two attributes as squares."""
    high, wide = graph.domain.shape  # type: ignore[union-attr]
    side = min(WIDE / wide, 480.0 / high, 40.0)
    cells = [
        tag(
            "rect",
            tag("title", cell_text(graph.domain, u)),
            x=(u % wide) * side,
            y=(u // wide) * side,
            width=side - min(1.0, side / 8),
            height=side - min(1.0, side / 8),
            data_cell=u,
            class_="square",
        )
        for u in range(graph.size)
    ]
    rows, columns = graph.domain.names  # type: ignore[union-attr]
    return GraphPicture(
        _svg(cells, wide * side, high * side, "map", f"The cells of {rows} by {columns}"),
        _data(graph),
        f"Rows are {rows}, columns {columns}. {HOW}",
    )


def _circle(count: int, radius: float) -> list[Point]:
    turn = [pi / 2 - 2 * pi * at / max(1, count) for at in range(count)]
    return [(radius * cos(angle), -radius * sin(angle)) for angle in turn]


def _places(graph: PolicyGraph) -> tuple[list[Point], Point, bool]:
    """Places of the cells and of bottom, and whether the labels stand outside a circle."""
    points, low = layout(graph)
    listed = [points[u] for u in range(graph.size)]
    flat = [(x, -y) for x, y in listed]
    middle = sum(x for x, _ in flat) / len(flat)
    round_ = _is_complete(graph) or (
        all(abs(hypot(x, y) - hypot(*flat[0])) < 1e-6 for x, y in flat) and graph.size > 2
    )
    if round_:
        size = graph.size + (graph.bottom != "none")
        ring = _circle(size, max(95.0, 11.0 * size))
        return ring[: graph.size], ring[-1], True
    longest = max(
        len(short(text_of(label))) for u in range(graph.size) for label in graph.domain.cell(u)[-1:]
    )
    across = min(
        max(48.0, 7.4 * longest + 16), WIDE / max(1.0, max(x for x, _ in flat) - min(x for x, _ in flat))
    )
    return [(across * (x - middle), 74.0 * y) for x, y in flat], (across * 0.3, 74.0 * -low[1]), False


def _node_text(graph: PolicyGraph, u: int, ring: bool) -> str:
    """What stands beside a cell: all labels on a circle; in rows of one attribute its label; in rows and columns the edge of the picture names them."""
    labels = [text_of(label) for label in graph.domain.cell(u)]
    return " · ".join(labels) if ring or len(labels) == 1 else ""


def _axes(graph: PolicyGraph, points: Sequence[Point]) -> list[Markup]:
    """Names of rows and columns beside a graph of two attributes that is drawn as a grid."""
    if not isinstance(graph.domain, Domain) or len(graph.domain.names) != 2:
        return []
    columns = graph.domain.shape[1]
    step = abs(points[1][0] - points[0][0]) if columns > 1 else 80.0
    bottom = max(y for _, y in points)
    names = [text_of(label) for label in graph.domain.labels(graph.domain.names[1])]
    made = [
        tag(
            "text",
            short(name, max(3, int(step / 7.4))),
            x=points[at][0],
            y=bottom + 30,
            text_anchor="middle",
            class_="tick",
        )
        for at, name in enumerate(names)
    ]
    for at, label in enumerate(graph.domain.labels(graph.domain.names[0])):
        x, y = points[at * columns]
        made.append(tag("text", short(text_of(label)), x=x - 18, y=y + 4, text_anchor="end", class_="tick"))
    return made


def _on_the_way(p: Point, q: Point, points: Sequence[Point]) -> bool:
    dx, dy = q[0] - p[0], q[1] - p[1]
    for x, y in points:
        across = dx * (y - p[1]) - dy * (x - p[0])
        along = dx * (x - p[0]) + dy * (y - p[1])
        if abs(across) < 1 and 1 < along < dx * dx + dy * dy - 1:
            return True
    return False


def _lines(graph: PolicyGraph, lead: str) -> GraphPicture:
    points, low, ring = _places(graph)
    shown = [*points, low] if graph.bottom != "none" else points
    lines, top = [], min(y for _, y in shown)
    for u, v in graph.edges():
        start, stop = points[u], points[v] if isinstance(v, int) else low
        bend = _on_the_way(start, stop, points)
        dx, dy = stop[0] - start[0], stop[1] - start[1]
        control = ((start[0] + stop[0]) / 2 + 0.3 * dy, (start[1] + stop[1]) / 2 - 0.3 * dx)
        top = min(top, (control[1] + (start[1] + stop[1]) / 2) / 2) if bend else top
        way = (
            f"M{start[0]:.1f} {start[1]:.1f}Q{control[0]:.1f} {control[1]:.1f} {stop[0]:.1f} {stop[1]:.1f}"
            if bend
            else f"M{start[0]:.1f} {start[1]:.1f}L{stop[0]:.1f} {stop[1]:.1f}"
        )
        lines.append(tag("path", d=way, class_="edge" if isinstance(v, int) else "edge bottom"))
    nodes = [
        _node(at, point, _node_text(graph, at, ring), cell_text(graph.domain, at), ring)
        for at, point in enumerate(points)
    ]
    if graph.bottom != "none":
        nodes.append(_bottom(low, ring))
    axes = [] if ring else _axes(graph, points)
    margin_x = 210.0 if ring else 130.0 if axes else 60.0
    left, right = min(x for x, _ in shown) - margin_x, max(x for x, _ in shown) + margin_x
    under = max(y for _, y in shown) + 42
    picture = tag(
        "svg",
        tag("g", lines, axes, aria_hidden="true"),
        nodes,
        viewBox=f"{left:.0f} {top - 42:.0f} {right - left:.0f} {under - top + 42:.0f}",
        width=right - left,
        class_="lines",
        role="group",
        aria_label="The policy graph: cells, joined where they must not be told apart",
    )
    names = " · ".join(graph.domain.names) if isinstance(graph.domain, Domain) else ""
    end = " The square stands for no record at all." if graph.bottom != "none" else ""
    return GraphPicture(
        tag(
            "div",
            picture,
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label="Picture of the policy graph",
        ),
        _data(graph),
        f"{lead}Each cell is a value of {names}.{end} {HOW}",
    )


def _node(at: int, point: Point, text: str, name: str, ring: bool) -> Markup:
    x, y = point
    far = hypot(x, y) or 1.0
    beside: dict[str, Any] = {"x": x, "y": y + 24, "text_anchor": "middle"}
    if ring:
        side = x / far
        beside = {
            "x": x + 14 * x / far,
            "y": y + 14 * y / far + 4,
            "text_anchor": "middle" if abs(side) < 0.1 else "start" if side > 0 else "end",
        }
    return tag(
        "g",
        tag("title", name),
        tag("circle", cx=x, cy=y, r=8),
        tag("text", short(text, 28 if ring else LONG), **beside) if text else None,
        class_="node",
        data_cell=at,
    )


def _bottom(point: Point, ring: bool) -> Markup:
    x, y = point
    return tag(
        "g",
        tag("title", "no record"),
        tag("rect", x=x - 8, y=y - 8, width=16, height=16),
        tag(
            "text",
            "no record",
            x=x - 16 if ring else x,
            y=y + 4 if ring else y + 26,
            text_anchor="end" if ring else "middle",
        ),
        class_="node bottom",
    )


def _svg(children: Any, width: float, height: float, kind: str, name: str) -> Markup:
    return tag(
        "svg",
        children,
        viewBox=f"-1 -1 {width + 2:.0f} {height + 2:.0f}",
        width=width,
        class_=kind,
        role="group",
        aria_label=name,
    )


def network(
    policy: Policy, edges: Sequence[tuple[int, int, str]] = (), name: str = "The nodes of the network"
) -> Markup | None:
    """Nodes of a small network on a circle, filled where their degree is public, with some edges, each of a class; None for a large one."""
    domain = policy.domain
    if not isinstance(domain, Network) or domain.order > NODES:
        return None
    public: set[int] = set()
    for fact in policy.constraints:
        if isinstance(fact, Degrees):
            public |= {int(code) for code in fact.positions(domain)}
    radius = max(70.0, 8.0 * domain.order)
    points = _circle(domain.order, radius)
    lines = [
        tag("line", x1=points[u][0], y1=points[u][1], x2=points[v][0], y2=points[v][1], class_=f"edge {kind}")
        for u, v, kind in edges
    ]
    nodes = []
    for at, (x, y) in enumerate(points):
        label, side = text_of(domain.nodes[at]), x / radius
        nodes.append(
            tag(
                "g",
                tag("circle", cx=x, cy=y, r=7, class_="public" if at in public else None),
                tag(
                    "text",
                    short(label),
                    x=x * (1 + 14 / radius),
                    y=y * (1 + 14 / radius) + 4,
                    text_anchor="middle" if abs(side) < 0.3 else "start" if side > 0 else "end",
                ),
            )
        )
    longest = max(len(short(text_of(node))) for node in domain.nodes)
    half, tall = radius + 24 + 7.0 * longest, radius + 34
    return tag(
        "svg",
        lines,
        nodes,
        viewBox=f"{-half:.0f} {-tall:.0f} {2 * half:.0f} {2 * tall:.0f}",
        width=min(2 * half, WIDE),
        class_="network",
        role="img",
        aria_label=name,
    )
