"""Synthetic graphs with exactly the public degrees and given group counts. Owns :func:`synthetic_graph`, :class:`SyntheticGraph`.

Post-processing: everything follows from released counts, public degrees and random switches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.networks.mixing import as_matrix, consistent_mixing
from policygraph.estimation.networks.nearest import nearest_counts
from policygraph.estimation.networks.realise import any_graph, first_graph
from policygraph.model.constraints.networks import Degrees
from policygraph.model.domain import Network
from policygraph.model.policy import Policy
from policygraph.model.queries.networks import MixingQuery
from policygraph.output import replacing
from policygraph.release.release import Release

Ints = npt.NDArray[np.int64]
REPAIRS = 100
"""Proposed switches for each edge in every stage that repairs."""
EXACT_PAIRS = 3_000
"""Up to so many node pairs counts that were not met are looked for by an exact program."""
FAULT = 5
"""A fault weighs more than what one switch can change in the counts."""


def graph_of_edges(network: Network, edges: list[tuple[Any, Any]]) -> Any:
    """A networkx graph of the kind of a network, on all its nodes."""
    import networkx

    kinds = {
        (False, False): networkx.Graph,
        (True, False): networkx.DiGraph,
        (False, True): networkx.MultiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    graph: Any = kinds[network.directed, network.multiple]()
    graph.add_nodes_from(network.nodes)
    graph.add_edges_from(edges)
    return graph


def to_networkx(values: Any, network: Network) -> Any:
    """The networkx graph of counts of the node pairs: of a nearest graph, or of one drawn by the exponential mechanism.

    Parameters
    ----------
    values
        How often each node pair is joined, in the order of an adjacency release.
    network
        The network.

    Raises
    ------
    InputError
        When the values are no graph, as noisy ones are not.

    Examples
    --------
    >>> sorted(to_networkx([1, 0, 1], Network(["a", "b", "c"])).edges())
    [('a', 'b'), ('b', 'c')]
    """
    given = np.asarray(values)
    most = int(given.max(initial=0)) if network.multiple else 1
    if given.shape != (network.size,) or given.dtype.kind not in "iu" or np.any((given < 0) | (given > most)):
        raise InputError(
            f"values of shape {given.shape} and type {given.dtype}: expected {network.size} "
            + ("whole numbers >= 0" if network.multiple else "values 0 or 1")
            + ", one for each node pair. A noisy adjacency is not a graph; nearest_network makes one of it.",
            code="networks.adjacency",
        )
    tail, head = network.pairs(np.repeat(np.arange(network.size, dtype=np.int64), given))
    nodes = network.nodes
    return graph_of_edges(
        network, [(nodes[u], nodes[v]) for u, v in zip(tail.tolist(), head.tolist(), strict=True)]
    )


def ends_of(graph: Any) -> tuple[Ints, Ints, int]:
    """Ends of the edges of an undirected networkx graph as positions of its nodes, and the number of nodes."""
    if graph.is_directed():
        raise InputError(
            "the graph is directed: expected an undirected one. graph.to_undirected() forgets directions.",
            code="networks.kind",
        )
    at = {node: position for position, node in enumerate(graph.nodes)}
    ends = np.array([(at[u], at[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1], len(at)


@dataclass(frozen=True)
class Approached:
    """A number that a graph was brought near to.

    Attributes
    ----------
    name
        What it is.
    wanted, reached
        The number that was released, and that of the graph.

    Examples
    --------
    >>> print(Approached("triangles", 45, 44))
    triangles: 44 where 45 was wanted
    """

    name: str
    wanted: float
    reached: float

    def __str__(self) -> str:
        return f"{self.name}: {self.reached:,.6g} where {self.wanted:,.6g} was wanted"


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticGraph:
    """A graph made of released counts and public facts.

    Attributes
    ----------
    network
        The network.
    tail, head
        Ends of the edges, as positions of nodes.
    counts
        Its group counts, in the order of the query.
    asked
        The counts that were asked for.
    notes
        What was done, one sentence for each stage.
    approached
        Numbers that it was brought near to, beside the degrees and counts.
    releases
        The releases that it was made from, if it was made by :func:`policygraph.networks.synthesise`.

    Examples
    --------
    >>> network = Network(["a", "b", "c", "d"])
    >>> query = MixingQuery(network, ["x", "x", "y", "y"])
    >>> made = synthetic_graph([1, 0, 1], query, PublicDegrees.of(network, [1, 1, 1, 1]), seed=1)
    >>> sorted(made.edges()), made.exact
    ([('a', 'b'), ('c', 'd')], True)
    """

    network: Network
    tail: Ints
    head: Ints
    counts: Ints
    asked: Ints
    notes: tuple[str, ...]
    approached: tuple[Approached, ...] = ()
    releases: tuple[Release, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether the group counts are those that were asked for."""
        return bool(np.array_equal(self.counts, self.asked))

    def degrees(self) -> tuple[Ints, Ints]:
        """Out- and in-degrees; the same twice if the network is undirected."""
        n = self.network.order
        out, into = np.bincount(self.tail, minlength=n), np.bincount(self.head, minlength=n)
        return (out, into) if self.network.directed else (out + into, out + into)

    def edges(self) -> list[tuple[Any, Any]]:
        """Edges by the names of their nodes."""
        nodes = self.network.nodes
        return [(nodes[u], nodes[v]) for u, v in zip(self.tail.tolist(), self.head.tolist(), strict=True)]

    def to_networkx(self) -> Any:
        """A networkx graph on all nodes of the network."""
        return graph_of_edges(self.network, self.edges())

    def to_csv(self, path: str | Path) -> None:
        """Write the edges as CSV with the columns from and to."""
        import pyarrow as pa
        from pyarrow import csv

        ends = list(zip(*self.edges(), strict=True)) or [(), ()]
        made = pa.table({"from": pa.array(list(ends[0])), "to": pa.array(list(ends[1]))})
        with replacing(path) as draft:
            csv.write_csv(made, str(draft))

    def __repr__(self) -> str:
        off = int(np.abs(self.counts - self.asked).sum())
        met = "counts met" if self.exact else f"counts off by {off}"
        return f"SyntheticGraph({self.network!r}, {len(self.tail):,} edges, {met})"

    def __str__(self) -> str:
        return "\n".join((repr(self), *self.notes, *map(str, self.approached)))


def synthetic_graph(
    counts: Any,
    query: MixingQuery,
    degrees: PublicDegrees,
    *,
    seed: int | None = None,
    switches: int = 50,
    progress: Callable[[str], None] | None = None,
) -> SyntheticGraph:
    """A random simple graph with exactly the public degrees and, if there is one, exactly the given group counts.

    Parameters
    ----------
    counts
        Whole group counts that fit the degrees, in the order of the query; see
        :func:`~policygraph.estimation.networks.mixing.consistent_mixing`.
    query
        The groups.
    degrees
        The public degrees of all nodes.
    seed
        Seed of the switches; None takes a fresh one. Privacy does not depend on it.
    switches
        Proposed switches for each edge at the end, which randomise the graph.
    progress
        Called with a few words before each stage.

    Returns
    -------
    SyntheticGraph
        Simple, with every degree met. If no graph with the counts was found, its counts are others near them, and ``notes`` says so.

    Raises
    ------
    InputError
        When a degree is not public, or the counts do not fit the degrees.
    ConstraintError
        When no graph has the degrees.

    Notes
    -----
    Degrees are split over groups by flow, and blocks are filled largest first; that has the right degrees and counts, and perhaps
    some double edges or loops. Switches (a b), (c d) to (a d), (c b) with a and c, or b and d, in one group change neither
    degrees nor counts; they take the faults away and then randomise. Whether a graph with given degrees and group counts exists is a
    hard question in general, so that for large networks a failure is no proof that there is none. The
    switches are a random walk; that it reaches every such graph is not claimed.
    """
    network = query.domain
    if network.multiple or (network.loops and not network.directed):
        raise InputError(
            f"{network!r}: expected a network without multiple edges and, if undirected, without loops.",
            code="networks.kind",
            value=network,
        )
    if degrees.network != network:
        raise InputError("the degrees are of another network than the counts.", code="networks.domain")
    degrees.need_all()
    asked = np.asarray(counts)
    if asked.shape != (query.height,) or asked.dtype.kind not in "iu" or np.any(asked < 0):
        raise InputError(
            f"group counts of shape {asked.shape} and type {asked.dtype}: expected {query.height} whole numbers >= 0.",
            code="networks.counts",
        )
    asked = asked.astype(np.int64)
    target = as_matrix(query, asked)
    _check_sums(query, degrees, target)
    tell = progress or (lambda now: None)
    tell("building a graph with the public degrees")
    walk = _Walk(query, degrees, np.random.default_rng(seed))
    walk.take(
        *first_graph(
            degrees.out, degrees.into, query.codes, target, directed=network.directed, loops=network.loops
        )
    )
    notes = [
        f"A graph with the {network.order:,} degrees was built block by block; degrees were split over groups by flow."
    ]
    tell("switching edges until the graph is simple")
    faults, distance = walk.repair(target)
    if faults:
        raise RefusedError(
            "no simple graph was found, although the degrees are those of one. Report this with the degrees.",
            code="networks.unsolved",
        )
    if distance and network.size <= EXACT_PAIRS:
        tell("looking for the nearest counts that a graph can have")
        cells = np.flatnonzero(nearest_counts(query, degrees, asked))
        walk.take(*network.pairs(cells))
        distance = int(np.abs(query.answer_sparse(cells, np.ones_like(cells)) - asked).sum())
        notes.append(
            "The counts were met as nearly as any graph with these degrees can, by an exact program."
        )
    if distance:
        notes.append(
            f"No simple graph with these degrees and counts was found; the counts of this one differ by {distance} in all."
        )
    tell("randomising the graph")
    made = walk.run(proposals=switches * len(walk.tail), keep=True, target=walk.counts())[2]
    notes.append(f"{made:,} switches of two edges, which keep all degrees and counts, randomised it.")
    tail, head = walk.tail, walk.head
    if not network.directed:
        tail, head = np.minimum(tail, head), np.maximum(tail, head)
    order = np.lexsort((head, tail))
    found = SyntheticGraph(network, tail[order], head[order], walk.vector(), asked, tuple(notes))
    _verify(found, degrees)
    return found


def _check_sums(query: MixingQuery, degrees: PublicDegrees, target: Ints) -> None:
    k = len(query.names)
    wanted = [np.bincount(query.codes, side, k).astype(np.int64) for side in (degrees.out, degrees.into)]
    if query.domain.directed:
        made = [target.sum(axis=1), target.sum(axis=0)]
    else:
        made = [target.sum(axis=1) + np.diag(target)] * 2
    for found, sums in zip(made, wanted, strict=True):
        wrong = np.flatnonzero(found != sums)
        if len(wrong):
            at = int(wrong[0])
            raise InputError(
                f"the counts give group {query.names[at]!r} {int(found[at])} edge ends, its degrees sum to {int(sums[at])}: expected "
                "counts that fit the degrees. consistent_mixing makes noisy ones fit.",
                code="networks.sums",
            )


def _verify(made: SyntheticGraph, degrees: PublicDegrees) -> None:
    """Check what is promised, whatever the switches did."""
    keys = np.sort(made.tail * made.network.order + made.head)
    simple = not np.any(keys[1:] == keys[:-1]) and (made.network.loops or not np.any(made.tail == made.head))
    out, into = made.degrees()
    if not simple or np.any(out != degrees.out) or np.any(into != degrees.into):
        raise RefusedError(
            "the synthetic graph missed a public degree, or is not simple. Report this.",
            code="networks.unsolved",
        )


class _Walk:
    """Edges under random switches."""

    def __init__(self, query: MixingQuery, degrees: PublicDegrees, rng: np.random.Generator) -> None:
        self.query, self.degrees = query, degrees
        self.network = query.domain
        self.state = rng.integers(1, 1 << 63, 1, dtype=np.uint64)
        self.tail: Ints = np.zeros(0, dtype=np.int64)
        self.head: Ints = self.tail

    def take(self, tail: Ints, head: Ints) -> None:
        """Start from other edges."""
        self.tail, self.head = (np.ascontiguousarray(side, dtype=np.int64).copy() for side in (tail, head))

    def vector(self) -> Ints:
        """Group counts in the order of the query; loops and double edges count."""
        return np.bincount(self.query.row_of(self.tail, self.head), minlength=self.query.height)

    def counts(self) -> Ints:
        """Group counts as a matrix."""
        return as_matrix(self.query, self.vector())

    def run(
        self, *, proposals: int, keep: bool, target: Ints, weight: int = FAULT, goal: bool = False
    ) -> tuple[int, int, int]:
        """Propose switches; return faults, distance from the target and switches made."""
        from policygraph.estimation.networks._compiled_graphs import run_switches

        size = 1 << max(10, int(np.ceil(np.log2(max(8 * len(self.tail), 1)))))
        found = run_switches(
            self.tail,
            self.head,
            self.query.codes,
            self.counts(),
            np.ascontiguousarray(target),
            self.network.order,
            self.network.directed,
            self.network.loops,
            keep,
            weight,
            proposals,
            self.state,
            np.empty(size, dtype=np.int64),
            np.empty(size, dtype=np.int32),
            goal,
        )
        return int(found[0]), int(found[1]), int(found[2])

    def repair(self, target: Ints) -> tuple[int, int]:
        """Take faults away, keeping the counts if possible; return the faults left and the distance from the target."""
        proposals = REPAIRS * len(self.tail) + 100_000
        faults, distance, _ = self.run(proposals=proposals, keep=True, target=target, goal=True)
        if faults:
            faults, distance, _ = self.run(proposals=proposals, keep=False, target=target, goal=True)
        if faults:
            self.take(
                *any_graph(
                    self.degrees.out,
                    self.degrees.into,
                    directed=self.network.directed,
                    loops=self.network.loops,
                )
            )
            faults, distance, _ = self.run(proposals=proposals, keep=False, target=target, goal=True)
        return faults, distance


def synthetic_from_release(
    release: Release,
    degrees: PublicDegrees | Mapping[Any, int] | None = None,
    *,
    norm: str = "l2",
    seed: int | None = None,
    switches: int = 50,
    progress: Callable[[str], None] | None = None,
) -> SyntheticGraph:
    """A synthetic graph with the public degrees whose group counts are a release's, made consistent.

    Parameters
    ----------
    release
        A release of mixing counts.
    degrees
        The public degrees, or for an undirected network a mapping from nodes; by default those that the policy of the release
        publishes. A note says how many of them the policy does not make public: they are given away as they are.
    norm
        As for :func:`~policygraph.estimation.networks.mixing.consistent_mixing`.
    seed, switches, progress
        As for :func:`~policygraph.estimation.networks.synthetic.synthetic_graph`.

    Raises
    ------
    InputError
        When the release is not one of mixing counts, or a degree is not public.

    Examples
    --------
    >>> import policygraph as pg
    >>> network = pg.Network(6)
    >>> policy = pg.Policy(network, constraints=[pg.Degrees(equals=[2, 2, 2, 2, 2, 2])])
    >>> ring = [1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1]
    >>> query = pg.queries.mixing(network, ["x", "x", "x", "y", "y", "y"])
    >>> noisy = pg.release(query, policy, ring, epsilon=1, rng=pg.SeededRng(1))
    >>> made = synthetic_from_release(noisy, seed=1)
    >>> made.degrees()[0].tolist(), made.exact
    ([2, 2, 2, 2, 2, 2], True)
    >>> made.notes[0]
    'NOT PRIVATE: the noise of the release came from a seeded generator.'
    """
    policy, query = release.policy, release.query
    if not isinstance(query, MixingQuery) or not isinstance(policy, Policy):
        raise InputError(
            f"a release of {query!r}: expected one of mixing counts.", code="networks.release", value=query
        )
    if isinstance(degrees, Mapping):
        degrees = PublicDegrees.of(query.domain, degrees)
    public = PublicDegrees.from_policy(policy) if degrees is None else degrees
    public.need_all()
    if progress is not None:
        progress("making the counts consistent with the public degrees")
    asked = consistent_mixing(release.values(0), query, public, norm=norm)
    made = synthetic_graph(asked.values, query, public, seed=seed, switches=switches, progress=progress)
    first = "The noisy group counts were made whole and consistent with the public degrees"
    first += ", as near to their fit as possible." if asked.nearest else "."
    warning: tuple[str, ...] = ()
    if not release.private:
        warning = ("NOT PRIVATE: the noise of the release came from a seeded generator.",)
    secret = _secret(policy, query.domain)
    if secret:
        warning += (
            f"NOT PROTECTED: {secret:,} degrees of this graph are not public in the policy of the release, and are given away.",
        )
    return replace(made, notes=(*warning, first, *made.notes))


def _secret(policy: Policy, network: Network) -> int:
    """How many degrees, of both sides if directed, the policy does not make public."""
    sides = ("out", "in") if network.directed else ("both",)
    known = {
        (fact.side, node)
        for fact in policy.constraints
        if isinstance(fact, Degrees)
        for node in fact.positions(network).tolist()
    }
    return len(sides) * network.order - len(known)
