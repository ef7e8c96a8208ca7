"""How many edges join nodes of which degrees. Owns :class:`JointDegrees`, for networks whose degrees are secret.

With public degrees the same counts are linear: ``queries.mixing(network, degrees)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.model.domain import Network
from policygraph.model.queries.base import Ints, Part
from policygraph.model.queries.network_statistics import NetworkStatistic

__all__ = ["JointDegrees"]


class JointDegrees(NetworkStatistic):
    """Edges by the degrees of their two ends, degrees from ``largest`` on taken as one.

    Parameters
    ----------
    domain
        An undirected simple network.
    largest
        Last degree that is told apart. The noise grows with it, not with the number of nodes.

    Examples
    --------
    >>> JointDegrees(Network(4), 3).answer([1, 1, 1, 0, 0, 0]).tolist()
    [0, 0, 3, 0, 0, 0]

    Notes
    -----
    One edge more changes the degrees of its ends u and v, and with them the place of every other edge there: by at most 4 min(V - 2,
    largest - 1) + 1 in all, since a node keeps its place once its degree has reached ``largest`` (``docs/explanation/proofs/networks.md``, Theorem 11).
    """

    def __init__(self, domain: Network, largest: int) -> None:
        super().__init__(domain)
        self._simple()
        most = max(domain.order - 1, 1)
        if (
            isinstance(largest, bool)
            or not isinstance(largest, (int, np.integer))
            or not 1 <= largest <= most
        ):
            raise InputError(
                f"largest={largest!r}: expected a whole number from 1 to {most}.",
                code="query.degree",
                value=largest,
            )
        self.largest = int(largest)

    @property
    def reach(self) -> int:
        """Most edges of one node that change their place when its degree changes by one."""
        return max(min(self.domain.order - 2, self.largest - 1), 0)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("joint degrees", ("from", "to"), self.largest * (self.largest + 1) // 2),)

    def part_labels(self, part: int) -> list[Any]:
        low, high = np.triu_indices(self.largest)
        return [low + 1, high + 1]

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        degree = np.bincount(np.concatenate([tail, head]), minlength=self.domain.order)
        place = np.minimum(degree, self.largest) - 1
        a, b = place[tail], place[head]
        low, high = np.minimum(a, b), np.maximum(a, b)
        row = low * (2 * self.largest - low + 1) // 2 + high - low
        counts: Ints = np.bincount(row, minlength=self.height).astype(np.int64)
        return counts

    def to_spec(self) -> dict[str, Any]:
        return {"statistic": "joint degrees", "largest": self.largest}
