"""Counts of edges that one node can change by little: edges beyond a cap are dropped. Owns :class:`ProjectedMixing`.

For node privacy; the bound is in ``sensitivity.rungs.statistics``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.model.domain import Label, Network
from policygraph.model.queries.base import Ints, Part
from policygraph.model.queries.network_statistics import NetworkStatistic, fixed_order
from policygraph.model.queries.networks import MixingQuery

__all__ = ["ProjectedMixing", "projected_edges"]


class ProjectedMixing(NetworkStatistic):
    """Edges between each two groups of nodes, after each node's edges to each group were cut to a cap.

    Parameters
    ----------
    domain
        An undirected simple network.
    groups
        The public group of each node, as in :func:`policygraph.queries.mixing`.
    cap
        How many edges of a node to one group are kept at most: a whole number, or one for each count in the order of the answers.

    Examples
    --------
    >>> star = Network(5)
    >>> ProjectedMixing(star, ["x", "y", "y", "y", "z"], 2).answer([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]).tolist()
    [0, 2, 1, 0, 0, 0]
    >>> projected_edges(star, 2).answer([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]).tolist()
    [2]

    Notes
    -----
    The pairs of each two groups are projected by themselves, in a fixed order of all node pairs: an edge is kept if both its ends
    have fewer kept edges of this kind than the cap. One node changes each count of its group by at most the cap, and no
    other count (``docs/explanation/proofs/networks.md``, Theorem 10).
    """

    def __init__(
        self, domain: Network, groups: Sequence[Label] | Mapping[Any, Label], cap: int | Sequence[int]
    ) -> None:
        super().__init__(domain)
        self._simple()
        self._mixing = MixingQuery(domain, groups)
        height = self._mixing.height
        given = [cap] * height if isinstance(cap, (int, np.integer)) else list(cap)
        for value in given:
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(
                    f"cap={value!r}: expected a whole number >= 1.", code="query.degree", value=value
                )
        if len(given) != height:
            raise InputError(
                f"cap: {len(given)} numbers for {height} counts: expected one for each, or one number for all.",
                code="query.degree",
                value=len(given),
            )
        self.caps: tuple[int, ...] = tuple(int(value) for value in given)

    @property
    def groups(self) -> tuple[Label, ...]:
        """The group of each node."""
        return self._mixing.groups

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("mixing, projected", ("from", "to"), self._mixing.height),)

    def part_labels(self, part: int) -> list[Any]:
        return self._mixing.part_labels(part)

    def reach(self) -> Ints:
        """For each group (rows) and each group (columns), how many edges of one node can be kept there at most."""
        k = len(self._mixing.names)
        sizes = np.bincount(self._mixing.codes, minlength=k)
        low, high = np.triu_indices(k)
        cap = np.zeros((k, k), dtype=np.int64)
        cap[low, high] = cap[high, low] = self.caps
        room: Ints = np.minimum(cap, sizes[None, :] - np.eye(k, dtype=np.int64))
        return room

    def answer_sparse(self, cells: Any, amounts: Any) -> Ints:
        at = fixed_order(cells)
        tail, head = self.domain.pairs(at)
        rows = self._mixing._row(tail, head)
        codes, k = self._mixing.codes, len(self._mixing.names)
        out = [0] * self._mixing.height
        used: dict[int, int] = {}
        # The kept edges of a node to one group: a node and the group of the other end name them.
        one, other = (tail * k + codes[head]).tolist(), (head * k + codes[tail]).tolist()
        for row, u, v in zip(rows.tolist(), one, other, strict=True):
            cap = self.caps[row]
            if used.get(u, 0) < cap and used.get(v, 0) < cap:
                used[u] = used.get(u, 0) + 1
                used[v] = used.get(v, 0) + 1
                out[row] += 1
        return np.array(out, dtype=np.int64)

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        return self.answer_sparse(self.domain.pair_index(tail, head), times)

    def to_spec(self) -> dict[str, Any]:
        return {"statistic": "projected mixing", "groups": list(self.groups), "caps": list(self.caps)}

    def __repr__(self) -> str:
        return f"ProjectedMixing({len(self._mixing.names)} groups of {self.domain!r})"


def projected_edges(domain: Network, cap: int) -> ProjectedMixing:
    """Number of edges after each node's edges were cut to a cap.

    Examples
    --------
    >>> projected_edges(Network(4), 3).height
    1
    """
    return ProjectedMixing(domain, ["all"] * domain.order, cap)
