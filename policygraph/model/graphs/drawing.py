"""Pictures of small policy graphs. Owns :func:`draw`."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi, sin
from pathlib import Path as FilePath
from typing import Any

from policygraph.errors import InputError, PolicyGraphError, RefusedError
from policygraph.model.domain import Domain
from policygraph.model.graphs.answers import Answers
from policygraph.model.graphs.rules import Ball, Bit, Empty, Path, Product, decode
from policygraph.output import replacing
from policygraph.pictures import check_picture, short

__all__ = ["check_picture", "draw", "fewer", "layout"]

CELLS = 144
EDGES = 1500
NAMED = 36
"""Up to so many cells the boxes say the names of the attributes too."""

FEW = (12, 5, 3, 2)
"""Values that are kept of each attribute for a smaller example, the most that can be drawn."""

BEND = 0.3
Points = dict[int, tuple[float, float]]


def layout(graph: Answers) -> tuple[Points, tuple[float, float]]:
    """Places of the cells, and of bottom.

    Ordered attributes are drawn as a row, a grid, or a grid in perspective; everything else on a circle.
    """
    rule = graph.rule
    factors = rule.factors if isinstance(rule, Product) else (rule,)
    rows = isinstance(rule, Ball) or all(isinstance(factor, (Path, Bit, Empty)) for factor in factors)
    if isinstance(graph.domain, Domain) and (rows or len(graph.domain.names) > 1):
        shape = graph.domain.shape
        points = {}
        for u in range(graph.size):
            x, y = 0.0, 0.0
            for depth, code in enumerate(reversed(decode(u, shape))):
                # The last two attributes run right and down; each further one shifts the whole picture aslant.
                if depth == 0:
                    x += code
                elif depth == 1:
                    y -= code
                else:
                    x += code * (shape[-1] + 0.6) ** (depth - 1)
                    y += 0.35 * code * depth
            points[u] = (x, y)
        lowest, middle = min(y for _, y in points.values()), sum(x for x, _ in points.values()) / len(points)
        # A little off the middle, so that no line to bottom runs along a column.
        return points, (middle + 0.318, lowest - 1.5)
    # Bottom has a place on the circle too: no three points of it are in line.
    n = graph.size + (graph.bottom != "none")
    radius = max(1.0, n / 6)
    ring = [(radius * cos(pi / 2 - 2 * pi * u / n), radius * sin(pi / 2 - 2 * pi * u / n)) for u in range(n)]
    return dict(enumerate(ring[: graph.size])), ring[-1] if ring else (0.0, 0.0)


def _between(p: tuple[float, float], q: tuple[float, float], points: Points) -> bool:
    """Whether another point lies on the way from p to q, so that a straight line would hide an end."""
    dx, dy = q[0] - p[0], q[1] - p[1]
    for x, y in points.values():
        across = dx * (y - p[1]) - dy * (x - p[0])
        along = dx * (x - p[0]) + dy * (y - p[1])
        if abs(across) < 1e-6 and 1e-6 < along < dx * dx + dy * dy - 1e-6:
            return True
    return False


def fewer(graph: Any, fits: Callable[[Any], bool]) -> Any:
    """The rule of a ``PolicyGraph`` on the first values of each attribute, as many as fit; None for a rule that names cells, which has no smaller form."""
    domain = graph.domain
    if not isinstance(domain, Domain):
        return None
    for most in FEW:
        try:
            first = Domain({name: list(domain.labels(name)[:most]) for name in domain.names})
            small = type(graph).from_spec(first, graph.to_spec())
        except PolicyGraphError:
            continue
        if fits(small):
            return small
    return None


def is_drawn(graph: Answers) -> bool:
    """Whether a picture of the graph would not be a black square."""
    return graph.size <= CELLS and graph.n_edges <= EDGES


def spread(graph: Answers) -> tuple[float, float]:
    """How many steps of a drawing wide and high its cells lie."""
    points, low = layout(graph)
    spots = [*points.values(), *([low] if graph.bottom != "none" else [])]
    sides = [[spot[at] for spot in spots] or [0.0] for at in (0, 1)]
    return max(sides[0]) - min(sides[0]), max(sides[1]) - min(sides[1])


def _text(graph: Answers, u: int) -> str:
    """What stands in the box of a cell: its labels, with their attributes where there are several and room for them."""
    labels = [short(str(label), 16) for label in graph.domain.cell(u)]
    if isinstance(graph.domain, Domain) and len(labels) > 1 and graph.size <= NAMED:
        named = [f"{name} = {label}" for name, label in zip(graph.domain.names, labels, strict=True)]
        labels = named if max(map(len, named)) <= 18 else labels
    return "\n".join(labels)


def _caption(graph: Answers) -> str:
    if isinstance(graph.domain, Domain):
        names = graph.domain.names
        lead = "in each box, from above: " if graph.size > NAMED and len(names) > 1 else ""
        return lead + ", ".join(names)
    return "pairs of nodes"


def draw(graph: Answers, target: Any, title: str | None = None) -> Any:
    """Draw a small graph into a file or into matplotlib axes, and return the axes."""
    if not is_drawn(graph):
        raise RefusedError(
            f"draw: {graph.size:,} cells and {graph.n_edges:,} edges would be a black square; up to {CELLS} cells and "
            f"{EDGES:,} edges are drawn. Draw the same rule on a smaller domain.",
            code="graph.too-large",
        )
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import FancyArrowPatch
    except ImportError as cause:
        raise InputError(
            "draw needs matplotlib: pip install 'policygraph[plot]'.", code="graph.matplotlib"
        ) from cause
    if isinstance(target, (str, FilePath)):
        check_picture(target)
    points, low = layout(graph)
    spots = [*points.values(), *([low] if graph.bottom != "none" else [])]
    figure = None
    axes = target
    if isinstance(target, (str, FilePath)):
        width, height = (min(max(1.2 * side + 2, 3), 16) for side in spread(graph))
        figure = Figure(figsize=(width, height))
        axes = figure.add_subplot()

    def join(start: tuple[float, float], stop: tuple[float, float], **style: Any) -> None:
        arc = "arc3"
        if _between(start, stop, points):
            arc = f"arc3,rad=-{BEND}"
            # The highest point of the bow, so that the frame has room for it.
            dx, dy = stop[0] - start[0], stop[1] - start[1]
            middle = ((start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2)
            spots.append((middle[0] - dy * BEND / 2, middle[1] + dx * BEND / 2))
        axes.add_patch(FancyArrowPatch(start, stop, arrowstyle="-", connectionstyle=arc, zorder=1, **style))

    for u, v in graph.edges():
        if isinstance(v, int):
            join(points[u], points[v], color="#30638e", shrinkA=0, shrinkB=0)
    if graph.bottom != "none":
        for u in graph.bottom_cells:
            axes.plot(*zip(points[u], low), color="#b0b0b0", linestyle="--", linewidth=0.8, zorder=0)
        axes.text(
            *low, "⊥", ha="center", va="center", bbox={"boxstyle": "circle", "fc": "#f4d35e", "ec": "#555"}
        )
    for u, (x, y) in points.items():
        name = _text(graph, u)
        style = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": "#30638e"}
        axes.text(x, y, name, ha="center", va="center", fontsize=8, bbox=style, zorder=2)
    for text in axes.texts:
        text.set_parse_math(False)  # two dollars in a label are no formula
    for at, set_limits in enumerate((axes.set_xlim, axes.set_ylim)):
        side = [spot[at] for spot in spots] or [0.0]
        set_limits(min(side) - 0.5, max(side) + 0.5)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title or _caption(graph), fontsize=9)
    if figure is not None:
        with replacing(target) as draft:
            figure.savefig(draft, bbox_inches="tight", dpi=150)
    return axes
