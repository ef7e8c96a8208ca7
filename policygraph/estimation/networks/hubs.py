"""Which group counts leave room for nodes of large degree. Owns :class:`Cut` and :func:`violated`.

A node with d edges needs d different neighbours, in groups to which its own group has enough edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.model.queries.networks import MixingQuery

__all__ = ["Cut", "violated"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cut:
    """The t nodes of a group with the largest degrees have ``need`` edge ends; at most ``room[i]`` of them reach the i-th group.

    Attributes
    ----------
    counts
        Positions of the counts of edges between the group and each group.
    ends
        Edge ends that each of these counts gives to the group: 2 for edges inside an undirected one, otherwise 1.
    room
        For each of these groups t times its number of possible neighbours.
    need
        Sum of the t largest degrees.
    """

    counts: tuple[int, ...]
    ends: tuple[int, ...]
    room: tuple[int, ...]
    need: int


def violated(query: MixingQuery, degrees: PublicDegrees, values: Ints) -> list[Cut]:
    """For each group the worst condition that these counts miss.

    Examples
    --------
    >>> from policygraph.model.domain import Network
    >>> network = Network(5)
    >>> query = MixingQuery(network, ["x", "x", "y", "z", "z"])
    >>> degrees = PublicDegrees.of(network, [3, 1, 2, 1, 1])
    >>> violated(query, degrees, np.array([1, 2, 0, 0, 0, 1]))
    [Cut(counts=(0, 1, 2), ends=(2, 1, 1), room=(1, 1, 2), need=3)]
    >>> violated(query, degrees, np.array([1, 1, 1, 0, 1, 0]))
    []

    Notes
    -----
    Splitting the degrees of a group over the groups of their neighbours, at most n edges of a node to n nodes, is a
    transportation problem. By max-flow and min-cut it can be solved exactly if for every t the t largest degrees together are at
    most the sum over groups of min(edge ends there, t n).
    """
    network, k = query.domain, len(query.names)
    sizes = np.bincount(query.codes, minlength=k)
    own = 0 if network.loops else 1
    place = np.zeros((k, k), dtype=np.int64)
    if network.directed:
        place = np.arange(k * k, dtype=np.int64).reshape(k, k)
        sides = [(degrees.out, place), (degrees.into, place.T)]
    else:
        low, high = np.triu_indices(k)
        place[low, high] = place[high, low] = np.arange(len(low))
        sides = [(degrees.out, place)]
    found = []
    for degree, where in sides:
        for g in range(k):
            mine = np.sort(degree[query.codes == g])[::-1]
            ends = np.where(np.arange(k) == g, 1 if network.directed else 2, 1)
            room = sizes - np.where(np.arange(k) == g, own, 0)
            t = np.arange(1, len(mine) + 1, dtype=np.int64)
            reach = np.minimum(ends * values[where[g]], t[:, None] * room).sum(axis=1)
            missing = np.cumsum(mine) - reach
            at = int(np.argmax(missing))
            if missing[at] > 0:
                limit = (t[at] * room).tolist()
                need = int(mine[: at + 1].sum())
                found.append(Cut(tuple(where[g].tolist()), tuple(ends.tolist()), tuple(limit), need))
    return found
