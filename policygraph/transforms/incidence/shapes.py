"""Which policy graphs are lines or grids, so that no edge is listed. Owns :func:`one_axis` and :func:`line_axes`."""

from __future__ import annotations

from math import prod

from policygraph.model.graphs import Complete, Empty, Path, PolicyGraph, Product, Rule

__all__ = ["is_line", "line_axes", "one_axis"]


def _factors(graph: PolicyGraph) -> tuple[tuple[int, ...], tuple[Rule, ...]]:
    if isinstance(graph.rule, Product):
        return graph.rule.shape, graph.rule.factors
    return (graph.size,), (graph.rule,)


def is_line(rule: Rule) -> bool:
    """Whether a rule joins exactly the neighbouring values."""
    if isinstance(rule, Path):
        return rule.theta == 1 or rule.n <= 2
    return isinstance(rule, Complete) and rule.n == 2


def _still(rule: Rule) -> bool:
    return isinstance(rule, Empty) or rule.size == 1


def one_axis(graph: PolicyGraph) -> tuple[int, Rule, int] | None:
    """The only rule along which values change, with the number of cells outside and inside its axis; None if several.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> one_axis(PolicyGraph.line(Domain({"sex": 2, "age": 5, "place": 3}), "age"))
    (2, Path(n=5, theta=1), 3)
    """
    shape, factors = _factors(graph)
    moving = [axis for axis, rule in enumerate(factors) if not _still(rule)]
    if len(moving) != 1:
        return None
    axis = moving[0]
    return prod(shape[:axis]), factors[axis], prod(shape[axis + 1 :])


def line_axes(graph: PolicyGraph) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Shape and moving axes of a grid: every axis is a line or does not change; None for other graphs.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> line_axes(PolicyGraph.grid(Domain({"x": 3, "y": 4})))
    ((3, 4), (0, 1))
    """
    shape, factors = _factors(graph)
    if not all(_still(rule) or is_line(rule) for rule in factors):
        return None
    return shape, tuple(axis for axis, rule in enumerate(factors) if not _still(rule))
