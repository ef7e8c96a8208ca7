"""Queries on networks. Owns :class:`AdjacencyQuery`, :class:`MixingQuery`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.linalg import read_only
from policygraph.model.domain import Label, Network
from policygraph.model.queries.base import Ints, Norm, Part, Query


class AdjacencyQuery(Query):
    """The edges themselves: one answer for each node pair.

    Examples
    --------
    >>> adjacency(Network(3)).answer([1, 0, 1]).tolist()
    [1, 0, 1]
    """

    domain: Network

    def __init__(self, domain: Network) -> None:
        super().__init__(domain)
        if not isinstance(domain, Network):
            raise InputError(
                "an adjacency query needs a network, not a table.", code="query.domain", value=domain
            )

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("adjacency", ("from", "to"), self.domain.size),)

    @property
    def is_identity(self) -> bool:
        return True

    def part_labels(self, part: int) -> list[Any]:
        names = np.array(
            list(self.domain.nodes), dtype=None if isinstance(self.domain.nodes, range) else object
        )
        tail, head = self.domain.pairs(np.arange(self.domain.size))
        return [names[tail], names[head]]

    @property
    def largest_entry(self) -> int:
        return 1

    def answer(self, table: Any) -> Ints:
        flat = np.asarray(table, dtype=np.int64).ravel()
        if len(flat) != self.domain.size:
            raise InputError(
                f"a table of {len(flat)} pairs: expected {self.domain.size}.",
                code="query.shape",
                value=len(flat),
            )
        return flat

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        at = np.asarray(cells, dtype=np.int64)
        ones = np.ones(len(at), dtype=np.int64)
        return sparse.csc_matrix((ones, (at, np.arange(len(at)))), shape=(self.domain.size, len(at)))

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        return np.ones(len(np.asarray(cells)), dtype=np.int64)

    def change_norm(self, change: dict[int, int], norm: Norm) -> int:
        return sum(abs(x) if norm == "l1" else x * x for x in change.values())

    def to_spec(self) -> dict[str, Any]:
        return {"adjacency": True}

    def __repr__(self) -> str:
        return f"AdjacencyQuery({self.domain!r})"


class MixingQuery(Query):
    """How many edges run between each two groups of nodes; the groups are public.

    Parameters
    ----------
    domain
        The network.
    groups
        The group of each node: a list in node order, or a mapping from node to group.

    Examples
    --------
    >>> mixing(Network(3), ["x", "x", "y"]).answer([1, 0, 1]).tolist()
    [1, 1, 0]
    """

    domain: Network

    def __init__(self, domain: Network, groups: Sequence[Label] | Mapping[Any, Label]) -> None:
        super().__init__(domain)
        if not isinstance(domain, Network):
            raise InputError(
                "a mixing query needs a network, not a table.", code="query.domain", value=domain
            )
        if isinstance(groups, Mapping):
            # Keys of a TOML table are text, so nodes named by numbers are found by their text as well.
            named = {str(node): group for node, group in groups.items()}
            missing = [node for node in domain.nodes if str(node) not in named]
            extra = set(named) - {str(node) for node in domain.nodes}
            if missing or extra:
                what = (
                    f"node {missing[0]!r} has no group" if missing else f"{sorted(extra)[0]!r} is not a node"
                )
                raise InputError(f"mixing: {what}: expected one group for each node.", code="query.groups")
            listed = [named[str(node)] for node in domain.nodes]
        else:
            listed = list(groups)
        if any(isinstance(group, (set, frozenset, list)) for group in listed):
            raise InputError(
                "mixing: the groups are sets of nodes: expected the group of each node, such as {node: at for at, group in "
                "enumerate(groups) for node in group}. Groups must be public: communities that were found in the secret edges "
                "are not.",
                code="query.groups",
            )
        if len(listed) != domain.order:
            raise InputError(
                f"mixing: {len(listed)} groups for {domain.order} nodes: expected one for each node.",
                code="query.groups",
                value=len(listed),
            )
        self.groups: tuple[Label, ...] = tuple(listed)
        self.names: tuple[Label, ...] = tuple(dict.fromkeys(self.groups))
        at = {name: position for position, name in enumerate(self.names)}
        self.codes: Ints = read_only(np.array([at[group] for group in self.groups], dtype=np.int64))

    @property
    def parts(self) -> tuple[Part, ...]:
        k = len(self.names)
        return (Part("mixing", ("from", "to"), k * k if self.domain.directed else k * (k + 1) // 2),)

    def row_of(self, tail: Ints, head: Ints) -> Ints:
        """The count that each edge, given by the positions of its ends, belongs to."""
        k = len(self.names)
        a, b = self.codes[tail], self.codes[head]
        if self.domain.directed:
            return a * k + b
        low, high = np.minimum(a, b), np.maximum(a, b)
        row: Ints = low * (2 * k - low + 1) // 2 + high - low
        return row

    def groups_of_rows(self) -> tuple[Ints, Ints]:
        """The two groups of each count, by number."""
        k = len(self.names)
        if self.domain.directed:
            one, other = np.divmod(np.arange(k * k, dtype=np.int64), k)
            return one, other
        return np.triu_indices(k)

    def part_labels(self, part: int) -> list[Any]:
        names = np.array(self.names, dtype=object)
        return [names[groups] for groups in self.groups_of_rows()]

    @property
    def largest_entry(self) -> int:
        return 1

    def answer(self, table: Any) -> Ints:
        flat = np.asarray(table, dtype=np.int64).ravel()
        present = np.flatnonzero(flat)
        return self.answer_sparse(present, flat[present])

    def answer_sparse(self, cells: Any, amounts: Any) -> Ints:
        rows = self.row_of(*self.domain.pairs(cells))
        out = np.zeros(self.height, dtype=np.int64)
        np.add.at(out, rows, np.asarray(amounts, dtype=np.int64))
        return out

    def columns(self, cells: Any) -> Any:
        from scipy import sparse

        at = np.asarray(cells, dtype=np.int64)
        rows = self.row_of(*self.domain.pairs(at))
        ones = np.ones(len(at), dtype=np.int64)
        return sparse.csc_matrix((ones, (rows, np.arange(len(at)))), shape=(self.height, len(at)))

    def column_norms(self, cells: Any, norm: Norm) -> Ints:
        return np.ones(len(np.asarray(cells)), dtype=np.int64)

    def to_spec(self) -> dict[str, Any]:
        return {"mixing": list(self.groups)}

    def __repr__(self) -> str:
        return f"MixingQuery({len(self.names)} groups of {self.domain!r})"


def adjacency(domain: Network) -> AdjacencyQuery:
    """Each node pair of a network.

    Examples
    --------
    >>> adjacency(Network(4)).height
    6
    """
    return AdjacencyQuery(domain)


def mixing(domain: Network, groups: Sequence[Label] | Mapping[Any, Label]) -> MixingQuery:
    """Counts of edges between groups of nodes.

    Examples
    --------
    >>> mixing(Network(4), [0, 0, 1, 1]).height
    3
    """
    return MixingQuery(domain, groups)
