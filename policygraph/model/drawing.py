"""Pictures of policies. Owns :func:`draw_policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policygraph.model.constraints.networks import Degrees
from policygraph.model.constraints.tables import Cells, Cuboid, LinearCount
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs.drawing import draw, fewer, is_drawn, spread
from policygraph.model.system import describe, name_of
from policygraph.pictures import INK, LINE, MARK, SOFT, blank, keep, label, wrapped

if TYPE_CHECKING:
    from policygraph.model.graphs.base import PolicyGraph
    from policygraph.model.policy import Policy

INCH = 1.2
"""Of a picture for each step of a policy graph; a label of 14 characters fits."""
WIDEST, CELLS = 14, 60
FACTS = 30


def draw_policy(policy: Policy, target: Any = None) -> Any:
    """Draw what a policy says: its graph, or the attributes that its public tables have."""
    if policy.graph is not None:
        return _graph(policy, policy.graph, target)
    return _facts(policy, target)


def _readable(graph: PolicyGraph) -> bool:
    return graph.size <= CELLS and is_drawn(graph) and max(spread(graph)) <= WIDEST - 1


def _graph(policy: Policy, graph: PolicyGraph, target: Any) -> Any:
    shown = graph if _readable(graph) else fewer(graph, _readable)
    if shown is None:
        return _words(policy, wrapped(graph.describe(), 60), target)
    width, height = (INCH * side + 2.2 for side in spread(shown))
    figure = blank(max(width, 5.0), max(height, 2.4), target)
    title = (
        graph.describe()
        if shown is graph
        else f"{graph.describe()} (drawn on the first values of each attribute)"
    )
    draw(shown, figure.add_subplot(), wrapped(title, max(44, int(9 * width))))
    return keep(figure, target)


def _words(policy: Policy, text: str, target: Any) -> Any:
    figure = blank(6.0, 1.6, target)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=10)
    axes.set_title(f"{policy.domain.size:,} cells", fontsize=9, color=SOFT)
    return keep(figure, target)


def _facts(policy: Policy, target: Any) -> Any:
    """A row for each public fact, a column for each attribute, a mark where the fact tells of it."""
    domain = policy.domain
    if isinstance(domain, Network):
        known = [describe(fact, domain) for fact in policy.constraints] or ["nothing"]
        return _words(
            policy, wrapped(f"A network of {domain.order:,} nodes. Public: {', '.join(known)}", 60), target
        )
    facts = [
        # what is told, and not the numbers
        (label(name_of(fact, domain), 40), _attributes(fact, domain))
        for fact in policy.constraints[:FACTS]
    ]
    more = len(policy.constraints) - len(facts)
    rows = facts or [("nothing is public", set[str]())]
    names = list(domain.names)
    left = 0.085 * max(len(text) for text, _ in rows)
    figure = blank(left + 0.75 * len(names) + 1.4, 0.42 * len(rows) + 2.0, target)
    axes = figure.add_subplot()
    for at, (_, told) in enumerate(rows):
        axes.axhline(at, color=LINE, lw=0.8, zorder=0)
        inside = [k for k, name in enumerate(names) if name in told]
        axes.scatter(range(len(names)), [at] * len(names), s=60, color=LINE, zorder=1)
        axes.plot(inside, [at] * len(inside), "-o", color=MARK, ms=9, lw=2.5, zorder=2)
    axes.set_xticks(
        range(len(names)),
        [f"{label(name, 16)} ({size:,})" for name, size in zip(names, domain.shape, strict=True)],
        rotation=35,
        ha="left",
        rotation_mode="anchor",
    )
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(rows)), [text for text, _ in rows])
    axes.set(xlim=(-0.5, len(names) - 0.3), ylim=(len(rows) - 0.5, -0.5))
    axes.tick_params(length=0, colors=INK, labelsize=9)
    axes.spines[:].set_visible(False)
    what = "Public facts and the attributes that they tell of" + (f" (and {more} more facts)" if more else "")
    axes.set_xlabel(wrapped(what, max(30, int(9 * (left + 0.75 * len(names))))), fontsize=9, color=SOFT)
    return keep(figure, target)


def _attributes(fact: Any, domain: Domain) -> set[str]:
    if isinstance(fact, Cuboid):
        return set(fact.names)
    if isinstance(fact, Cells):
        return set(fact.of)
    if isinstance(fact, LinearCount):
        return {
            name for name in domain.names if any(name in where for where in map(_named, fact._conditions()))
        }
    return set() if isinstance(fact, Degrees) else set(domain.names)


def _named(condition: Any) -> set[str]:
    where = condition[0]
    return set(where) if isinstance(where, dict) else set()
