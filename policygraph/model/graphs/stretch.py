"""How many steps of one policy graph lie between the ends of an edge of another. Owns :func:`stretch`.

A number is exact and every path was counted or follows from a formula of the rule; where that would be too much work there is no number. The theorem that
charges by it is in ``docs/explanation/proofs/stretch.md``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from policygraph.errors import RefusedError
from policygraph.model.domain import Network
from policygraph.model.graphs.rules import Edges, EuclideanBall, L1Ball, Path, Vertex

if TYPE_CHECKING:
    from policygraph.model.graphs import PolicyGraph

__all__ = ["stretch"]

EDGES = 100_000
"""Most edges that are looked at one by one."""
WORK = 20_000_000
"""Most steps of a search along listed edges."""


def stretch(first: PolicyGraph, second: PolicyGraph) -> int | None:
    """The largest distance in the second graph between the ends of an edge of the first.

    Parameters
    ----------
    first, second
        Graphs over one domain, its attributes in one order.

    Returns
    -------
    int or None
        At least 1; None if some ends are not joined, the domains differ, or it would take too much work to tell.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.graphs import PolicyGraph
    >>> line = Domain({"age": 100})
    >>> four, eight = (PolicyGraph.threshold(line, theta) for theta in (4, 8))
    >>> stretch(eight, four), stretch(four, eight)
    (2, 1)
    """
    if isinstance(first.domain, Network) or first.domain != second.domain:
        return None
    if list(first.domain.to_spec()) != list(second.domain.to_spec()):
        return None
    try:
        return _between(first, second)
    except RefusedError:
        return None


def _between(first: PolicyGraph, second: PolicyGraph) -> int | None:
    near, far = first.rule, second.rule
    if first.bottom == "none" and second.bottom == "none":
        # Distances grow with the difference, and all differences up to the largest occur.
        if isinstance(near, Path) and isinstance(far, Path):
            return max(1, -(-min(near.theta, near.size - 1) // far.theta))
        if isinstance(near, L1Ball) and isinstance(far, L1Ball):
            return max(1, -(-min(near.theta, sum(n - 1 for n in near.shape)) // far.theta))
    if first.n_edges > EDGES:
        return None
    if second.bottom != "some" and not isinstance(far, (Edges, EuclideanBall)):
        distances = (second.distance(u, v) for u, v in first.edges(limit=EDGES))
        return _largest(distances)
    return _searched(first, second)


def _largest(distances: Iterable[int | None]) -> int | None:
    most = 1
    for found in distances:
        if found is None:
            return None
        most = max(most, found)
    return most


def _searched(first: PolicyGraph, second: PolicyGraph) -> int | None:
    """The same by searches along the edges of the second graph."""
    wanted: dict[Vertex, set[Vertex]] = {}
    for u, v in first.edges(limit=EDGES):
        wanted.setdefault(u, set()).add(v)
    if second.n_edges > EDGES or len(wanted) * (second.n_edges + second.size) > WORK:
        return None
    joined: dict[Vertex, list[Vertex]] = {}
    for u, v in second.edges(limit=EDGES):
        joined.setdefault(u, []).append(v)
        joined.setdefault(v, []).append(u)
    most = 1
    for start, ends in wanted.items():
        missing, steps, queue = set(ends), {start: 0}, deque([start])
        while missing and queue:
            here = queue.popleft()
            for there in joined.get(here, ()):
                if there not in steps:
                    steps[there] = steps[here] + 1
                    queue.append(there)
                    if there in missing:
                        missing.discard(there)
                        most = max(most, steps[there])
        if missing:
            return None
    return most
