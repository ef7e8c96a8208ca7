"""Numbers of a network that are not linear in its edges. Owns :class:`NetworkStatistic`: degrees, wedges, triangles, clustering, joint degrees, edges to groups, projections.

They are released with bounds of their own (``sensitivity.statistics``), never with the sensitivity of a linear query: asking for
columns is refused. With public degrees joint degrees are linear: ``queries.mixing(network, degrees)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from policygraph.errors import DataError, InputError
from policygraph.model.domain import Label, Network
from policygraph.model.queries.base import Ints, Part
from policygraph.model.queries.networks import MixingQuery
from policygraph.model.queries.statistics import NonlinearQuery

UNITS = 1 << 30
"""Units of local clustering: the weight of a triangle is rounded by less than a part in two thousand for degrees up to 1,000."""
LARGEST = 30_000
"""Largest degree that a node may be taken to have at least: beyond, a triangle would count nothing."""


class NetworkStatistic(NonlinearQuery):
    """Whole numbers that follow from the edges of a network, not linearly."""

    domain: Network

    simple_only: ClassVar[bool] = False
    """Whether the network has to be undirected, without loops and multiple edges."""

    def __init__(self, domain: Network, unit: Fraction = Fraction(1)) -> None:
        super().__init__(domain, unit)
        if not isinstance(domain, Network):
            raise InputError(
                "a network statistic needs a network, not a table.", code="query.domain", value=domain
            )
        if self.simple_only and (domain.directed or domain.loops or domain.multiple):
            raise InputError(
                f"{type(self).__name__} of {domain!r}: expected an undirected network without loops and multiple edges.",
                code="query.domain",
                value=domain,
            )

    @abstractmethod
    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        """Return the numbers for edges given by positions of nodes and multiplicities."""

    def most_answer(self, records: int) -> int:
        # Pairs and triples of edges at a node: no more than all pairs of edges, and in a simple network than edges times nodes.
        most = 4 * records * (records + 1)
        return most if self.domain.capacity is None else min(most, 4 * records * (self.domain.order + 1))

    def answer(self, table: Any) -> Ints:
        flat = np.asarray(table, dtype=np.int64).ravel()
        cells = np.flatnonzero(flat)
        return self.answer_sparse(cells, flat[cells])

    @property
    def largest_entry(self) -> int:
        return 4 * self.domain.order

    def answer_sparse(self, cells: Any, amounts: Any) -> Ints:
        self.check_fits(amounts)
        times = np.asarray(amounts, dtype=np.int64)
        most = self.domain.capacity
        if most is not None and len(times) and int(times.max()) > most:
            # What was checked to fit is bounded by the pairs of nodes, each of which has no more edges than this.
            raise DataError(
                f"{int(times.max()):,} edges between two nodes of {self.domain!r}: expected at most {most}.",
                code="counts.capacity",
            )
        tail, head = self.domain.pairs(cells)
        return self.of_edges(tail, head, times)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r})"


def _degrees(network: Network, side: str, tail: Ints, head: Ints, times: Ints) -> Ints:
    out = np.zeros(network.order, dtype=np.int64)
    if side in ("both", "out"):
        np.add.at(out, tail, times)
    if side in ("both", "in"):
        np.add.at(out, head, times)
    return out


def _tail_counts(degrees: Ints, largest: int) -> Ints:
    """How many values are at least 1, 2, ..., largest."""
    counts = np.bincount(np.minimum(degrees, largest), minlength=largest + 1)
    tail: Ints = np.cumsum(counts[::-1])[::-1][1:].astype(np.int64)
    return tail


def _whole(largest: Any, most: int, what: str) -> int:
    if (
        isinstance(largest, bool)
        or not isinstance(largest, (int, np.integer))
        or not 1 <= largest <= max(most, 1)
    ):
        raise InputError(
            f"{what}={largest!r}: expected a whole number from 1 to {max(most, 1)}.",
            code="query.degree",
            value=largest,
        )
    return int(largest)


class DegreeTail(NetworkStatistic):
    """How many nodes have a degree of at least 1, 2, ..., ``largest``.

    Parameters
    ----------
    domain
        The network.
    largest
        Last degree that is counted by itself; by default the largest possible one.
    side
        ``"both"`` in an undirected network, ``"in"`` or ``"out"`` in a directed one.

    Examples
    --------
    >>> DegreeTail(Network(4)).answer([1, 1, 1, 0, 0, 0]).tolist()
    [4, 1, 1]

    Notes
    -----
    One edge moves each of its ends past one threshold, so that these counts change by 2 where the histogram of degrees changes by 4.
    """

    def __init__(self, domain: Network, largest: int | None = None, *, side: str | None = None) -> None:
        super().__init__(domain)
        self.side = side or ("out" if domain.directed else "both")
        if domain.directed == (self.side == "both") or self.side not in ("both", "in", "out"):
            raise InputError(
                f"side={side!r}: expected 'in' or 'out' in a directed network, 'both' in an undirected one.",
                code="query.degree",
                value=side,
            )
        room = domain.order - 1 + (0 if not domain.loops else 1 if domain.directed else 2)
        if largest is None and domain.multiple:
            raise InputError(
                "with multiple edges degrees have no limit: expected largest=...", code="query.degree"
            )
        self.largest = _whole(
            room if largest is None else largest, 10**9 if domain.multiple else room, "largest"
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("nodes of at least this degree", ("degree",), self.largest),)

    def part_labels(self, part: int) -> list[Any]:
        return [np.arange(1, self.largest + 1)]

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        return _tail_counts(_degrees(self.domain, self.side, tail, head, times), self.largest)

    def to_spec(self) -> dict[str, Any]:
        return {"statistic": "degree tail", "largest": self.largest, "side": self.side}


class _Total(NetworkStatistic):
    """One number of an undirected simple network."""

    simple_only = True
    counted: ClassVar[str]

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part(self.counted, (), 1),)

    def part_labels(self, part: int) -> list[Any]:
        return []

    def to_spec(self) -> dict[str, Any]:
        return {"statistic": self.counted}


class Wedges(_Total):
    """How many paths of two edges an undirected simple network has.

    Examples
    --------
    >>> Wedges(Network(4)).answer([1, 1, 1, 0, 0, 0]).tolist()
    [3]
    """

    counted = "wedges"

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        degree = _degrees(self.domain, "both", tail, head, times)
        return np.array([int((degree * (degree - 1) // 2).sum())], dtype=np.int64)


class Triangles(_Total):
    """How many triangles an undirected simple network has.

    Parameters
    ----------
    domain
        The network.
    cap
        Count them after each node kept its first so many edges only, in a fixed order of all pairs (:func:`first_edges`): for sparse
        networks, where one edge more could be in a triangle with every node. None keeps all edges.

    Examples
    --------
    >>> Triangles(Network(4)).answer([1, 1, 0, 1, 0, 0]).tolist()
    [1]
    >>> Triangles(Network(4), cap=2).answer([1, 1, 1, 1, 1, 1]).tolist()
    [1]

    Notes
    -----
    The bounds are in section 3 of ``docs/explanation/proofs/networks.md``; with a cap, Theorem 16.
    """

    counted = "triangles"

    def __init__(self, domain: Network, cap: int | None = None) -> None:
        super().__init__(domain)
        self.cap = None if cap is None else _whole(cap, domain.order - 1, "cap")

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        tail, head = _kept(self.domain, tail, head, self.cap)
        return np.array([int(triangles_at(tail, head, self.domain.order).sum()) // 3], dtype=np.int64)

    def to_spec(self) -> dict[str, Any]:
        return {"statistic": self.counted, **({} if self.cap is None else {"cap": self.cap})}


def triangles_at(tail: Ints, head: Ints, nodes: int) -> Ints:
    """In how many triangles each node of an undirected simple graph is.

    Examples
    --------
    >>> triangles_at(np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3]), 4).tolist()
    [1, 1, 1, 0]
    """
    from scipy import sparse

    degree = np.bincount(np.concatenate([tail, head]), minlength=nodes)
    # Each edge points to the end of larger degree: then no node has many edges out, and each triangle is met once.
    rank = np.empty(nodes, dtype=np.int64)
    rank[np.lexsort((np.arange(nodes), degree))] = np.arange(nodes)
    up = rank[tail] < rank[head]
    low, high = np.where(up, tail, head), np.where(up, head, tail)
    matrix = sparse.csr_array((np.ones(len(low), dtype=np.int64), (low, high)), shape=(nodes, nodes))
    ends = (matrix @ matrix).multiply(matrix)
    middles = (matrix @ matrix.T).multiply(matrix.T)
    found: Ints = np.asarray(ends.sum(axis=0) + ends.sum(axis=1) + middles.sum(axis=1), dtype=np.int64)
    return found.ravel()


class Clustering(NetworkStatistic):
    """Sum over the nodes of their local clustering, in which small degrees count as ``least``; by degree, if asked for.

    Parameters
    ----------
    domain
        An undirected simple network.
    least
        A node with t triangles and d edges counts t / C(max(d, least), 2): its share of joined pairs of neighbours, if it has at least so
        many edges. One edge is in triangles with many nodes of small degree, so that a larger number means less noise.
    classes
        Degrees at which a new class of nodes begins; each class has a sum of its own.
    cap
        Take it after each node kept its first so many edges only, as in :class:`Triangles`; None keeps all edges.

    Examples
    --------
    >>> query = Clustering(Network(4), 2)
    >>> round(float(query.answer([1, 1, 0, 1, 0, 1])[0] * query.unit), 6)
    2.333333

    Notes
    -----
    The released numbers are whole: a node counts with the weight floor(2^30 / C(max(d, least), 2)) for each triangle, in units of 2^-30. The bounds are
    Theorems 12 and 13 of ``docs/explanation/proofs/networks.md``; with a cap, Theorem 16.
    """

    simple_only = True

    def __init__(
        self, domain: Network, least: int = 10, classes: Sequence[int] = (), cap: int | None = None
    ) -> None:
        super().__init__(domain, Fraction(1, UNITS))
        self.cap = None if cap is None else _whole(cap, domain.order - 1, "cap")
        if isinstance(least, bool) or not isinstance(least, (int, np.integer)) or not 2 <= least <= LARGEST:
            raise InputError(
                f"least={least!r}: expected a whole number from 2 to {LARGEST:,}.",
                code="query.degree",
                value=least,
            )
        self.least = int(least)
        starts = list(classes)
        for value in starts:
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value <= 2:
                raise InputError(
                    f"classes: {value!r}: expected degrees from 3 on, at which a new class begins.",
                    code="query.degree",
                    value=value,
                )
        if any(one >= other for one, other in pairwise(starts)):
            raise InputError(
                f"classes={starts!r}: expected rising degrees.", code="query.degree", value=starts
            )
        self.classes: tuple[int, ...] = tuple(int(value) for value in starts)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("local clustering", ("degree",), 1 + len(self.classes)),)

    def part_labels(self, part: int) -> list[Any]:
        return [np.array([2, *self.classes])]

    @property
    def largest_entry(self) -> int:
        return UNITS * self.domain.order

    def most_answer(self, records: int) -> int:
        # No node counts more than 1, and one without two edges counts nothing.
        return UNITS * min(self.domain.order, records + 1)

    def weight(self, degree: Any) -> Ints:
        """What one triangle counts at nodes of these degrees, in units."""
        at = np.maximum(np.asarray(degree, dtype=np.int64), self.least)
        found: Ints = UNITS // (at * (at - 1) // 2)
        return found

    def class_of(self, degree: Any) -> Ints:
        """The class of nodes of these degrees."""
        found: Ints = np.searchsorted(np.array(self.classes, dtype=np.int64), degree, side="right")
        return found

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        tail, head = _kept(self.domain, tail, head, self.cap)
        degree = _degrees(self.domain, "both", tail, head, np.ones_like(tail))
        counted = triangles_at(tail, head, self.domain.order) * self.weight(degree)
        out = np.zeros(self.height, dtype=np.int64)
        np.add.at(out, self.class_of(degree), counted)
        return out

    def to_spec(self) -> dict[str, Any]:
        capped = {} if self.cap is None else {"cap": self.cap}
        return {"statistic": "clustering", "least": self.least, "classes": list(self.classes), **capped}


def _kept(network: Network, tail: Ints, head: Ints, cap: int | None) -> tuple[Ints, Ints]:
    """Both ends of the edges that are counted: all of them without a cap."""
    if cap is None or cap >= network.order - 1:
        return tail, head
    return network.pairs(first_edges(network, network.pair_index(tail, head), cap))


def first_edges(network: Network, cells: Any, cap: int) -> Ints:
    """Keep an edge if it is among the first ``cap`` edges of both its ends, in a fixed order of all node pairs; the cells that are kept.

    Examples
    --------
    >>> star = Network(5)
    >>> len(first_edges(star, [0, 1, 2, 3], 2))
    2

    Notes
    -----
    Unlike :func:`project_edges` it looks at the edges of two nodes only, not at what was kept before: one edge more keeps at most itself, and drops
    at most one edge at each of its ends (``docs/explanation/proofs/networks.md``, Theorem 16).
    """
    at = fixed_order(cells)
    tail, head = network.pairs(at)
    # Each edge twice, at its tail and at its head; sorted by node, in the fixed order at each.
    ends = np.concatenate([tail, head])
    place = np.concatenate([np.arange(len(at)), np.arange(len(at))])
    sort = np.lexsort((place, ends))
    first = np.searchsorted(ends[sort], np.arange(network.order))
    rank = np.empty(len(ends), dtype=np.int64)
    rank[sort] = np.arange(len(ends)) - first[ends[sort]]
    stays = (rank[: len(at)] < cap) & (rank[len(at) :] < cap)
    kept: Ints = np.sort(at[stays])
    return kept


def fixed_order(cells: Any) -> Ints:
    """Node pairs in the order in which projections go through them: a scrambling of their numbers that no data set changes."""
    at = np.asarray(cells, dtype=np.int64)
    key = at.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    ordered: Ints = at[np.lexsort((at, key ^ (key >> np.uint64(31))))]
    return ordered


def project_edges(network: Network, cells: Any, cap: int) -> Ints:
    """Keep edges in a fixed order of all node pairs as long as both ends have fewer than ``cap``; the cells that are kept.

    Examples
    --------
    >>> star = Network(5)
    >>> len(project_edges(star, [0, 1, 2, 3], 2))
    2

    Notes
    -----
    The order is a fixed scrambling of the numbers of the pairs, the same for every data set.
    """
    at = fixed_order(cells)
    tail, head = network.pairs(at)
    left = [cap] * network.order
    kept = []
    for cell, u, v in zip(at.tolist(), tail.tolist(), head.tolist(), strict=True):
        if left[u] and left[v]:
            left[u] -= 1
            left[v] -= 1
            kept.append(cell)
    return np.array(sorted(kept), dtype=np.int64)


class ProjectedDegreeTail(NetworkStatistic):
    """How many nodes have a degree of at least 1, ..., ``cap`` after edges beyond the cap were dropped.

    Parameters
    ----------
    domain
        An undirected simple network.
    cap
        Largest degree that is kept.

    Examples
    --------
    >>> ProjectedDegreeTail(Network(4), 2).answer([1, 1, 1, 0, 0, 0]).tolist()
    [3, 1]
    """

    simple_only = True

    def __init__(self, domain: Network, cap: int) -> None:
        super().__init__(domain)
        self.cap = _whole(cap, domain.order - 1, "cap")

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("nodes of at least this degree, projected", ("degree",), self.cap),)

    def part_labels(self, part: int) -> list[Any]:
        return [np.arange(1, self.cap + 1)]

    def answer_sparse(self, cells: Any, amounts: Any) -> Ints:
        kept = project_edges(self.domain, cells, self.cap)
        return super().answer_sparse(kept, np.ones(len(kept), dtype=np.int64))

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        return _tail_counts(_degrees(self.domain, "both", tail, head, times), self.cap)

    def to_spec(self) -> dict[str, Any]:
        return {"statistic": "projected degree tail", "cap": self.cap}


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

    simple_only = True

    def __init__(
        self, domain: Network, groups: Sequence[Label] | Mapping[Any, Label], cap: int | Sequence[int]
    ) -> None:
        super().__init__(domain)
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
        rows = self._mixing.row_of(tail, head)
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


class JointDegrees(NetworkStatistic):
    """Edges by the degrees of their two ends, degrees from ``largest`` on taken as one.

    Parameters
    ----------
    domain
        An undirected simple network.
    largest
        Last degree that is counted by itself. The noise grows with it, not with the number of nodes.

    Examples
    --------
    >>> JointDegrees(Network(4), 3).answer([1, 1, 1, 0, 0, 0]).tolist()
    [0, 0, 3, 0, 0, 0]

    Notes
    -----
    One edge more changes the degrees of its ends u and v, and with them the place of every other edge there: by at most 4 min(V - 2,
    largest - 1) + 1 in all, since a node keeps its place once its degree has reached ``largest`` (``docs/explanation/proofs/networks.md``, Theorem 11).
    """

    simple_only = True

    def __init__(self, domain: Network, largest: int) -> None:
        super().__init__(domain)
        self.largest = _whole(largest, domain.order - 1, "largest")

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


class EdgesToGroups(NetworkStatistic):
    """How many edges each node has to each of some groups of nodes.

    Parameters
    ----------
    domain
        An undirected simple network.
    groups
        The group of each node: a list in node order, or a mapping from node to group. Nodes that the mapping leaves out, or with None, are in no group: edges
        to them are not counted.
    others
        Whether only nodes in no group have counts; one edge then changes one count, not two.

    Examples
    --------
    >>> EdgesToGroups(Network(3), ["x", "x", "y"]).answer([1, 0, 1]).tolist()
    [1, 0, 1, 1, 1, 0]
    >>> EdgesToGroups(Network(3), {0: "x"}, others=True).answer([1, 0, 1]).tolist()
    [1, 0]

    Notes
    -----
    The groups have to be public, or found in what was released (``docs/explanation/proofs/networks.md``, Theorem 15).
    """

    simple_only = True

    def __init__(
        self,
        domain: Network,
        groups: Sequence[Label | None] | Mapping[Any, Label | None],
        *,
        others: bool = False,
    ) -> None:
        super().__init__(domain)
        if isinstance(groups, Mapping):
            named = {str(node): group for node, group in groups.items()}
            if extra := set(named) - {str(node) for node in domain.nodes}:
                raise InputError(
                    f"groups: {min(extra)!r} is not a node of {domain!r}: expected groups of its nodes.",
                    code="query.groups",
                )
            listed = [named.get(str(node)) for node in domain.nodes]
        else:
            listed = list(groups)
        if len(listed) != domain.order:
            raise InputError(
                f"{len(listed)} groups for {domain.order} nodes: expected one for each node, None for those in no group.",
                code="query.groups",
                value=len(listed),
            )
        self.groups: tuple[Label | None, ...] = tuple(listed)
        self.names: tuple[Label, ...] = tuple(dict.fromkeys(g for g in self.groups if g is not None))
        self.others = bool(others)
        at = {name: position for position, name in enumerate(self.names)}
        self.codes: Ints = np.array([-1 if g is None else at[g] for g in self.groups], dtype=np.int64)
        own = self.codes < 0 if self.others else np.ones(domain.order, dtype=np.bool_)
        self.counted: Ints = np.flatnonzero(own)
        if not self.names or not len(self.counted):
            raise InputError(
                "groups: no node has a count: expected a node in a group, and with others=True one in none.",
                code="query.groups",
            )
        self._row: Ints = np.full(domain.order, -1, dtype=np.int64)
        self._row[self.counted] = np.arange(len(self.counted))

    @property
    def ends(self) -> int:
        """How many counts one edge can change."""
        return 1 if self.others else 2

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("edges to groups", ("node", "group"), len(self.counted) * len(self.names)),)

    def part_labels(self, part: int) -> list[Any]:
        k = len(self.names)
        nodes = np.array([self.domain.nodes[v] for v in self.counted.tolist()], dtype=object)
        return [np.repeat(nodes, k), np.tile(np.array(self.names, dtype=object), len(nodes))]

    def of_edges(self, tail: Ints, head: Ints, times: Ints) -> Ints:
        out = np.zeros(self.height, dtype=np.int64)
        for one, other in ((tail, head), (head, tail)):
            row, group = self._row[one], self.codes[other]
            there = (row >= 0) & (group >= 0)
            np.add.at(out, row[there] * len(self.names) + group[there], times[there])
        return out

    def to_spec(self) -> dict[str, Any]:
        return {"statistic": "edges to groups", "groups": list(self.groups), "others": self.others}

    def __repr__(self) -> str:
        return f"EdgesToGroups({len(self.names)} groups of {self.domain!r})"


def statistic_from_spec(domain: Network, spec: dict[str, Any]) -> NetworkStatistic:
    """Make a statistic from its plain form (the inverse of ``to_spec``).

    Examples
    --------
    >>> statistic_from_spec(Network(4), {"statistic": "triangles"})
    Triangles(Network(4 nodes, undirected))
    """
    kind = spec["statistic"]
    if kind == "degree tail":
        return DegreeTail(domain, spec.get("largest"), side=spec.get("side"))
    if kind == "projected degree tail":
        return ProjectedDegreeTail(domain, spec["cap"])
    if kind == "projected mixing":
        return ProjectedMixing(domain, spec["groups"], spec["caps"])
    if kind == "edges to groups":
        return EdgesToGroups(domain, spec["groups"], others=spec.get("others", False))
    if kind == "joint degrees":
        return JointDegrees(domain, spec.get("largest", 0))
    if kind == "clustering":
        return Clustering(domain, spec.get("least", 10), spec.get("classes") or (), spec.get("cap"))
    if kind == "triangles":
        return Triangles(domain, spec.get("cap"))
    if kind == "wedges":
        return Wedges(domain)
    raise InputError(
        f"statistic {kind!r}: expected clustering, degree tail, edges to groups, joint degrees, projected degree tail, projected mixing, wedges or triangles.",
        code="query.spec",
        value=kind,
    )
