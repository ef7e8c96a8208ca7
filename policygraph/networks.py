"""Networks from a release to a synthetic graph. Owns :func:`synthesise`; the rest is that of ``policygraph.estimation.networks``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.curator.counting import read_data
from policygraph.curator.ledger import Ledger
from policygraph.curator.noise import Rng, SecureRng
from policygraph.curator.releasing import perform
from policygraph.curator.requests import Request
from policygraph.effort import SECOND
from policygraph.errors import BudgetError, InputError
from policygraph.estimation.networks import (
    Approached,
    ConsistentMixing,
    DegreeCounts,
    GraphComparison,
    PublicDegrees,
    Summary,
    SyntheticGraph,
    class_assortativity,
    close_triangles,
    compare_graphs,
    consistent_mixing,
    degree_assortativity,
    degree_counts,
    joint_assortativity,
    mixing_limits,
    nearest_network,
    summarise,
    synthetic_from_release,
    synthetic_graph,
    to_networkx,
)
from policygraph.estimation.networks.communities import (
    first_communities,
    largest_nodes,
    refined_communities,
)
from policygraph.exact import Exact
from policygraph.model.constraints.networks import Degrees, graphical
from policygraph.model.constraints.tables import Total
from policygraph.model.domain import Label, Network
from policygraph.model.grouped import Grouped
from policygraph.model.loss import Epsilon, Loss, loss_of
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.network_statistics import (
    Clustering,
    DegreeTail,
    EdgesToGroups,
    ProjectedDegreeTail,
    Triangles,
)
from policygraph.model.queries.networks import MixingQuery
from policygraph.release.release import Release
from policygraph.sensitivity.proofs import proved, shared_proofs
from policygraph.sensitivity.statistics import statistic_bound

__all__ = [
    "Approached",
    "ConsistentMixing",
    "DegreeCounts",
    "GraphComparison",
    "PublicDegrees",
    "Summary",
    "SyntheticGraph",
    "class_assortativity",
    "close_triangles",
    "compare_graphs",
    "consistent_mixing",
    "degree_assortativity",
    "degree_counts",
    "joint_assortativity",
    "mixing_limits",
    "nearest_network",
    "summarise",
    "synthesise",
    "synthetic_from_release",
    "synthetic_graph",
    "to_networkx",
]

Ints = npt.NDArray[np.int64]
SWITCHES = 10
"""Proposed switches for each edge that randomise a graph before its triangles are approached."""
NOISE_SHARE = 50
"""Noise on the counts between classes of degrees may be one part in so many of all edges."""
NODE_SHARE = 20
"""Under node privacy, noise on the numbers of nodes by degree may be one part in so many of all nodes."""
CHOOSING = SECOND
"""Work on each sensitivity while it is chosen what to release; the releases have the usual work."""
USELESS = 0.5
"""Transitivity and mean clustering are between 0 and 1: with an expected error from here on they are not worth a part of the loss."""
UNIFORM = 1 / sqrt(12)
"""Standard deviation of a number between 0 and 1 of which nothing is known: the clustering of nodes whose degrees count as larger ones."""
UNKNOWN = 0.5
"""Mean of a number between 0 and 1 of which nothing is known: transitivity and clustering of what a cap drops."""
PARTS = 1000
"""Shares of the loss are whole parts of this."""
MOST_LEAST = 200
"""Largest degree that smaller ones may count as."""
ROUNDS = 3
"""Rounds in which nodes are moved between communities."""


@dataclass(frozen=True)
class _Piece:
    """One number or table to release, and the error that it would have with the whole loss, as a share of what it is for."""

    query: Query
    error: float


def synthesise(
    policy: Policy | Grouped | NodePrivacy,
    graph: Any,
    *,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    delta: Exact | None = None,
    groups: Mapping[Any, Label] | list[Label] | None = None,
    communities: int | None = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    seed: int | None = None,
    rng: Rng | None = None,
    edges: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> SyntheticGraph:
    """A synthetic graph of a network, in one call: what is released, how the loss is split and how the graph is made is chosen without looking at the edges.

    Parameters
    ----------
    policy
        Either all degrees are public, with their values (``constraints=[pg.Degrees(graph.degree())]``), or none: one edge more or less is secret, or all edges of one
        node (``pg.NodePrivacy(network)``).
    graph
        The network: of networkx, a file with its edges, a sparse matrix, counts.
    epsilon, rho, delta
        The loss of all that is released for the graph.
    groups
        Public groups of the nodes, between which the numbers of edges are kept as well.
    communities
        Find so many groups of nodes, with half of the loss, and keep the numbers of edges between them: for networks without public groups.
    ledger, dataset, edges, columns, progress
        As for :func:`policygraph.release`.
    seed
        Seed of the switches that make the graph; privacy does not depend on it.
    rng
        Where the noise comes from; secure by default.

    Returns
    -------
    SyntheticGraph
        With ``releases``, what it was made from, ``notes``, what was met exactly, and ``approached``, what was brought near and how near.

    Raises
    ------
    InputError
        When only some degrees are public, or the policy has other public facts than degrees.
    BudgetError
        When the account has not enough left for all of it; nothing is charged then.

    Examples
    --------
    >>> import networkx
    >>> import policygraph as pg
    >>> club = networkx.karate_club_graph()
    >>> network = pg.Network.from_networkx(club)
    >>> policy = pg.Policy(network, constraints=[pg.Degrees(club.degree())], strength="markov")
    >>> made = synthesise(policy, club, epsilon=4, seed=1, rng=pg.SeededRng(1))
    >>> dict(made.to_networkx().degree()) == dict(club.degree()), len(made.releases)
    (True, 3)

    Notes
    -----
    With public degrees: the numbers of edges between classes of degrees (and groups), the number of triangles, and the sum of local clustering. The
    classes hold equal shares of the edge ends and are as many as keep the expected noise below 1/50 of the edges; the degree that smaller ones count as weighs
    noise against the clustering of small degrees, of which then little is known. The loss is split so that the sum of the expected errors, of the shares of edges between classes, of transitivity and
    of mean clustering, is least; what would have an error of 1/2 or more is not released. With secret degrees: half of the loss for the numbers of nodes by degree, made the degrees of a graph; names of
    nodes mean nothing then. From these noisy numbers follow the caps on the edges of each node with which triangles and clustering are counted, and whether they are. Under node privacy all of it goes to the numbers of nodes by degree, edges beyond a cap dropped. All of this follows from public facts and from what was released before, and the graph from the releases: post-processing.

    Communities: the centres are the nodes of largest degree, public or noisy. Noisy counts say which centre each node is joined to; then, in three rounds, noisy counts of the
    edges of each node to each community say where it belongs. They need a loss that tells a count about as large as a degree from noise, 2 edges of each neighbour step
    to a few parts of the loss: few communities are found sooner than many.
    """
    with shared_proofs():
        return _synthesise(
            policy,
            graph,
            loss_of(epsilon, rho, delta),
            groups,
            communities,
            ledger,
            dataset,
            seed,
            rng,
            edges,
            columns,
            progress,
        )


def _synthesise(
    asked: Policy | Grouped | NodePrivacy,
    graph: Any,
    loss: Loss,
    groups: Mapping[Any, Label] | list[Label] | None,
    communities: int | None,
    ledger: Ledger | str | Path | None,
    dataset: str | None,
    seed: int | None,
    rng: Rng | None,
    edges: Mapping[str, str] | None,
    columns: Mapping[str, str] | None,
    progress: Callable[[str], None] | None,
) -> SyntheticGraph:
    policy, network, known = _kind(asked)
    _check_communities(communities, groups, policy)
    tell = progress or (lambda now: None)
    tell("choosing what to release")
    rest = loss if communities is None else type(loss)(loss.value / 2)
    # Chosen before data are read, so that what cannot be is refused first; found communities then take the place of one group.
    pieces = _pieces(policy, network, known, rest, groups, None)
    tell("reading the network")
    data = read_data(graph, policy, columns, edges)
    random = rng or SecureRng()
    book = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
    curator = _Curator(policy, data, book, dataset, random, progress)
    found: Ints | None = None
    degrees: Any = None
    if communities is not None and isinstance(policy, Policy):
        found, degrees = _communities(curator, network, known, rest, communities, loss.value)
        pieces = _pieces(policy, network, known, rest, None, found)
    if known is None and isinstance(policy, Policy):
        # What is released beside the numbers of nodes by degree is chosen from these numbers, noise and all.
        half = rest.value / 2
        curator.release([pieces[0].query], [type(loss)(half)], rest.value - half)
        tail = degree_counts(curator.made[-1].values(), network.order).at_least
        pieces = [pieces[0], *_worth(pieces[1:], policy, tail, type(loss)(half / (len(pieces) - 1)))]
        queries = [piece.query for piece in pieces[1:]]
        curator.release(queries, [type(loss)(half / len(queries)) for _ in queries])
    else:
        shares = [Fraction(1)] if known is None else _split([piece.error for piece in pieces], rest)
        curator.release(
            [piece.query for piece in pieces], [type(loss)(rest.value * share) for share in shares]
        )
    made = curator.made[-len(pieces) :]
    tell("making the graph")
    if known is None:
        graph_ = _from_noisy_degrees(network, made, seed, progress, found, degrees)
    else:
        graph_ = _from_degrees(made, seed, progress)
    split = ", ".join(f"{each.loss} for {each.query.parts[0].name}" for each in curator.made)
    notes = [f"The loss was split: {split}.", *graph_.notes]
    if found is not None:
        notes.append(_told(graph_, found))
    return replace(graph_, notes=tuple(notes), releases=tuple(curator.made))


def _check_communities(count: Any, groups: Any, policy: Policy | NodePrivacy) -> None:
    network = policy.domain
    if count is None or not isinstance(network, Network):
        return
    if isinstance(policy, NodePrivacy):
        raise InputError(
            "no communities are found under node privacy: expected none. One node may belong anywhere, whatever is released.",
            code="networks.communities",
            value=count,
        )
    if groups is not None:
        raise InputError(
            "groups and communities: expected one of the two. Public groups cost nothing; communities are for networks without them.",
            code="networks.communities",
        )
    if network.directed:
        raise InputError(
            "communities are found in undirected networks only: expected groups, or a network without directions.",
            code="networks.communities",
            value=count,
        )
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count < network.order:
        raise InputError(
            f"communities={count!r}: expected a whole number >= 2 that is smaller than the number of nodes, {network.order:,}.",
            code="networks.communities",
            value=count,
        )


@dataclass
class _Curator:
    """Releases one after the other, and what was made."""

    policy: Any
    data: Any
    book: Ledger | None
    dataset: str | None
    rng: Rng
    progress: Callable[[str], None] | None
    made: list[Release] = field(default_factory=list)

    def release(self, queries: list[Query], losses: list[Loss], later: Fraction = Fraction(0)) -> None:
        """Release these, if there is room for them and for what comes later."""
        requests = [
            Request.of(query, self.policy, self.data, **_named(each))
            for query, each in zip(queries, losses, strict=True)
        ]
        if self.book is not None:
            _check_room(self.book, self.dataset, requests, losses, self.rng, later)
        for at, request in enumerate(requests):
            if self.progress is not None:
                name = request.query.parts[0].name
                self.progress(f"releasing {name} ({at + 1} of {len(requests)})")
            self.made.append(perform(request, ledger=self.book, dataset=self.dataset, rng=self.rng).release)


def _communities(
    curator: _Curator, network: Network, known: PublicDegrees | None, loss: Loss, count: int, whole: Fraction
) -> tuple[Ints, Any]:
    """The community of each node by number, and the degrees that were used."""
    left, degrees = loss.value, None if known is None else known.out.astype(np.float64)

    def ask(query: EdgesToGroups, value: Fraction) -> Any:
        used = sum((each.loss.value for each in curator.made), Fraction(0))
        curator.release([query], [type(loss)(value)], whole - used - value)
        return np.asarray(curator.made[-1].values(0), dtype=np.float64)

    if degrees is None:
        degrees = ask(EdgesToGroups(network, ["all"] * network.order), left / 10)
        left -= left / 10
    centres = largest_nodes(degrees, count)
    first = EdgesToGroups(
        network, {network.nodes[v]: at for at, v in enumerate(centres.tolist())}, others=True
    )
    noisy = ask(first, left * Fraction(3, 10)).reshape(-1, count)
    # Columns follow the order in which groups are met; the centres are numbered by degree.
    order = np.argsort(np.array(first.names, dtype=np.int64))
    found = first_communities(centres, noisy[:, order], network.order, clip=isinstance(loss, Epsilon))
    for _ in range(ROUNDS):
        query = EdgesToGroups(network, found.tolist())
        noisy = np.zeros((network.order, count))
        noisy[:, np.array(query.names, dtype=np.int64)] = ask(query, left * Fraction(7, 10 * ROUNDS)).reshape(
            network.order, -1
        )
        found = refined_communities(found, noisy, degrees)
    return found, degrees


def _told(graph: SyntheticGraph, found: Ints) -> str:
    sizes = np.bincount(found)
    degree = graph.degrees()[0]
    edges = max(len(graph.tail), 1)
    inside = float(np.mean(found[graph.tail] == found[graph.head])) if len(graph.tail) else 0.0
    alone = float((np.bincount(found, degree) / (2 * edges)) @ (np.bincount(found, degree) / (2 * edges)))
    listed = ", ".join(f"{size:,}" for size in sorted(sizes[sizes > 0].tolist(), reverse=True))
    return (
        f"Communities of {listed} nodes were found in noisy counts: {inside:.0%} of the edges of this graph run inside them, where degrees alone "
        f"would give {alone:.0%}."
    )


def _pieces(
    policy: Policy | NodePrivacy,
    network: Network,
    known: PublicDegrees | None,
    loss: Loss,
    groups: Any,
    found: Ints | None,
) -> list[_Piece]:
    """What to release beside what communities were found in."""
    if isinstance(policy, NodePrivacy):
        return _of_nodes(network, policy, loss, groups)
    if known is not None:
        return _with_degrees(network, policy, loss, groups if found is None else found.tolist(), known)
    pieces = _without(network, policy, loss, groups)
    return pieces if found is None else [*pieces, _Piece(MixingQuery(network, found.tolist()), 0.0)]


def _named(loss: Loss) -> dict[str, Exact]:
    return {"epsilon": loss.value} if isinstance(loss, Epsilon) else {"rho": loss.value}


def _kind(policy: Any) -> tuple[Any, Network, PublicDegrees | None]:
    """The policy, its network, and its public degrees if all are; refuse everything between none and all."""
    network = getattr(policy, "domain", None)
    if isinstance(policy, NodePrivacy) and isinstance(network, Network):
        return policy, network, None
    if not isinstance(policy, Policy) or not isinstance(network, Network):
        raise InputError(
            f"{policy!r}: expected a policy over a network, which hides edges or nodes.",
            code="networks.domain",
            value=policy,
        )
    if network.multiple or (network.loops and not network.directed):
        raise InputError(
            f"{network!r}: expected a network without multiple edges and, if undirected, without loops.",
            code="networks.kind",
            value=network,
        )
    if not any(isinstance(fact, Degrees) for fact in policy.constraints):
        if policy.constraints or network.directed:
            raise InputError(
                "a synthetic graph of secret degrees is made of an undirected network without public facts: expected no constraints, or "
                "the degrees of all nodes among them.",
                code="networks.partial",
            )
        if network.order < 2:
            raise InputError(
                f"{network!r}: expected at least two nodes, since one has no edges.",
                code="networks.kind",
                value=network,
            )
        return policy, network, None
    others = [fact for fact in policy.constraints if not isinstance(fact, (Degrees, Total))]
    if others:
        raise InputError(
            f"{type(others[0]).__name__} among the public facts: expected the degrees of all nodes and nothing else, since the synthetic graph "
            "would not keep public edges and pairs without edges, as in a bipartite network.",
            code="networks.partial",
            value=others[0],
        )
    public = PublicDegrees.from_policy(policy)
    public.need_all()
    return policy, network, public


def _codes(degrees: Ints, classes: int) -> Ints:
    """Classes of degrees with about equal shares of the edge ends; nodes of one degree are in one class."""
    values, counts = np.unique(degrees, return_counts=True)
    before = np.cumsum(values * counts) - values * counts
    total = max(int((values * counts).sum()), 1)
    place = np.minimum(before * classes // total, classes - 1)
    found: Ints = place[np.searchsorted(values, degrees)]
    return found


def _classes(degrees: PublicDegrees, own: Ints, power: float, loss: Loss) -> MixingQuery:
    """Edges between classes of degrees inside the groups: as many classes as the noise allows."""
    network = degrees.network
    edges = int(degrees.out.sum()) // (1 if network.directed else 2)
    ends = degrees.out + degrees.into if network.directed else degrees.out
    _, own = np.unique(own, return_inverse=True)
    best = own
    for classes in range(2, 33):
        codes = np.unique(own * classes + _codes(ends, classes), return_inverse=True)[1]
        k = int(codes.max()) + 1
        height = k * k if network.directed else k * (k + 1) // 2
        if height * _scale(power, loss) * NOISE_SHARE > edges:
            break
        best = codes
    return MixingQuery(network, best.tolist())


def _scale(power: float, loss: Loss) -> float:
    """Expected absolute error of one number with a quarter of the loss."""
    return power / float(loss.value / 4) if isinstance(loss, Epsilon) else power / sqrt(float(loss.value / 2))


def _unit_error(power: float, loss: Loss) -> float:
    """Expected absolute error of one number with the whole loss."""
    return power / float(loss.value) if isinstance(loss, Epsilon) else power / sqrt(2 * float(loss.value))


def _power(query: MixingQuery, policy: Policy, loss: Loss) -> float:
    found = float(proved(query, policy, loss.norm, work=CHOOSING).power)
    return found if loss.norm == "l1" else sqrt(found)


def _bound(statistic: Triangles | Clustering, policy: Policy, loss: Loss) -> float:
    found = float(statistic_bound(statistic, policy, loss.norm).power) * float(statistic.unit)
    return found if loss.norm == "l1" else sqrt(found * float(statistic.unit))


def _own(network: Network, groups: Any) -> Ints:
    if groups is None:
        return np.zeros(network.order, dtype=np.int64)
    return np.asarray(MixingQuery(network, groups).codes, dtype=np.int64)


def _with_degrees(
    network: Network, policy: Policy, loss: Loss, groups: Any, known: PublicDegrees
) -> list[_Piece]:
    """What to release beside public degrees."""
    own = _own(network, groups)
    plain = MixingQuery(network, own.tolist())
    # A class for each degree and group is the finest that is tried; its bound holds for all coarser ones.
    finest = np.unique(own * (network.order + 1) + known.out, return_inverse=True)[1]
    power = _power(MixingQuery(network, finest.tolist()), policy, loss)
    query = _classes(known, own, power, loss)
    edges = max(int(known.out.sum()) // (1 if network.directed else 2), 1)
    pieces = [_Piece(query, _unit_error(_power(query, policy, loss), loss) * query.height / (2 * edges))]
    if query.height == plain.height == 1:
        # The number of all edges follows from the degrees: it is released without noise, at the least share there is.
        pieces = [_Piece(query, 0.0)]
    if network.directed:
        return pieces
    pairs = known.out * (known.out - 1) // 2
    wedges = int(pairs.sum())
    if not wedges:
        return pieces
    triangles = Triangles(network)
    pieces.append(_Piece(triangles, 3 * _unit_error(_bound(triangles, policy, loss), loss) / wedges))
    best: tuple[float, _Piece] | None = None
    for least in _leasts():
        query_ = Clustering(network, least)
        bound = _bound(query_, policy, loss)
        # Chosen for half of the loss, since the rest goes elsewhere.
        noise = _unit_error(bound, type(loss)(loss.value / 2)) / network.order
        unseen = UNIFORM * float(np.mean((known.out < least) & (known.out >= 2)))
        if best is None or noise + unseen < best[0]:
            best = noise + unseen, _Piece(query_, _unit_error(bound, loss) / network.order)
    if best is not None:
        pieces.append(best[1])
    return [piece for piece in pieces if isinstance(piece.query, MixingQuery) or piece.error < USELESS]


def _of_nodes(network: Network, policy: NodePrivacy, loss: Loss, groups: Any) -> list[_Piece]:
    """What to release under node privacy: degrees up to the largest cap whose noise is a small part of all nodes."""
    if groups is not None:
        raise InputError(
            "groups need public degrees: under node privacy nobody knows which node has which.",
            code="networks.partial",
        )
    if network.order < 2:
        raise InputError(
            f"{network!r}: expected at least two nodes under node privacy.",
            code="networks.kind",
            value=network,
        )
    one = _unit_error(2.0 * policy.together, loss)
    cap = max(1, min(int(network.order / (NODE_SHARE * one)), network.order - 1))
    return [_Piece(ProjectedDegreeTail(network, cap), 0.0)]


def _leasts() -> list[int]:
    """Degrees that smaller ones may count as, a quarter apart."""
    return _rising(2, MOST_LEAST)


def _rising(first: int, last: int) -> list[int]:
    """Whole numbers a quarter apart, up to the first that is not below the last one.

    Examples
    --------
    >>> _rising(2, 7), _rising(2, 1)
    ([2, 3, 4, 5, 6, 7], [2])
    """
    found = [first]
    while found[-1] < last:
        found.append(max(found[-1] + 1, found[-1] * 5 // 4))
    return found


def _without(network: Network, policy: Policy, loss: Loss, groups: Any) -> list[_Piece]:
    """What to release where degrees are secret: half of the loss for them."""
    if groups is not None:
        raise InputError(
            "groups need public degrees: where degrees are secret, nobody knows which node has which, so that groups of nodes say nothing.",
            code="networks.partial",
        )
    pieces = [_Piece(DegreeTail(network), 0.0), _Piece(Triangles(network), 0.0)]
    for least in _leasts():
        query = Clustering(network, least)
        if 4 * _unit_error(_bound(query, policy, loss), loss) * 20 <= network.order or least >= MOST_LEAST:
            return [*pieces, _Piece(query, 0.0)]
    return pieces


def _worth(pieces: list[_Piece], policy: Policy, tail: Ints, loss: Loss) -> list[_Piece]:
    """Of what could be released beside noisy degrees, what says more than its noise; each with a loss of its own.

    The numbers of nodes with at least 1, 2, ... edges say what a cap on the edges of each node would drop. It is taken where that has less than
    half of the error.
    """
    kept = []
    for piece in pieces:
        if not isinstance(piece.query, (Triangles, Clustering)):
            kept.append(piece)
            continue
        plain = replace(piece, error=_error(piece.query, policy, tail, loss))
        best = min(_capped(piece.query, policy, tail, loss), key=lambda one: one.error, default=plain)
        best = best if best.error < plain.error / 2 else plain
        if best.error < USELESS:
            kept.append(best)
    return kept


def _capped(asked: Triangles | Clustering, policy: Policy, tail: Ints, loss: Loss) -> list[_Piece]:
    """The same after each node kept its first edges, for caps a quarter apart."""
    network, found = asked.domain, []
    # With a cap that no node reaches nothing is dropped; there is one among those a quarter apart.
    for cap in _rising(2, int(np.count_nonzero(tail))):
        if cap >= network.order - 1:
            break
        for query in (
            [Triangles(network, cap)]
            if isinstance(asked, Triangles)
            else [Clustering(network, least, cap=cap) for least in _leasts()]
        ):
            found.append(_Piece(query, _error(query, policy, tail, loss)))
    return found


def _error(query: Triangles | Clustering, policy: Policy, tail: Ints, loss: Loss) -> float:
    """Expected error of transitivity or mean clustering: noise, what a cap drops, and nodes of small degree of which little is known."""
    noise = _unit_error(_bound(query, policy, loss), loss)
    cap = len(tail) if query.cap is None else query.cap
    if isinstance(query, Triangles):
        # A node of d edges is the middle of 0 + 1 + ... + (d - 1) wedges.
        wedges = tail * np.arange(len(tail))
        every = max(int(wedges.sum()), 1)
        return (3 * noise + UNKNOWN * float(wedges[cap:].sum())) / every
    small = float(tail[1] - tail[min(query.least, len(tail)) - 1]) if len(tail) > 1 else 0.0
    dropped = 2 * float(tail[cap:].sum()) / max(int(tail.sum()), 1)
    return (noise + UNIFORM * small) / query.domain.order + UNKNOWN * dropped


def _split(errors: list[float], loss: Loss) -> list[Fraction]:
    """Shares of the loss that make the sum of the errors least; whole parts of a thousand, one at least."""
    # The sum of e / s over shares s is least where s goes with the root of e, that of e / sqrt(s) where it goes with e^(2/3).
    weight = np.array(errors) ** (1 / 2 if isinstance(loss, Epsilon) else 2 / 3)
    total = float(weight.sum())
    if total == 0:
        return [Fraction(1, len(errors))] * len(errors)
    parts = np.maximum(np.floor(PARTS * weight / total).astype(np.int64), 1)
    parts[int(np.argmax(parts))] += PARTS - int(parts.sum())
    return [Fraction(int(part), PARTS) for part in parts]


def _check_room(
    book: Ledger,
    dataset: str | None,
    requests: list[Request],
    losses: list[Loss],
    rng: Rng,
    later: Fraction = Fraction(0),
) -> None:
    """Refuse before the first charge what does not fit in all, with what comes later; what is on record costs nothing."""
    total, known = Fraction(0), None
    for request, loss in zip(requests, losses, strict=True):
        known = known or request.identify()
        name = request.fingerprint(known, rng)
        if name is None or book.recorded(name) is None:
            total += loss.value
    if known is None or not total:
        return
    total += later
    try:
        left = book.left(dataset or known.account, type(losses[0]))
    except InputError as cause:
        if cause.code in ("ledger.no-limit", "ledger.unknown-dataset"):
            return
        raise
    if left is None or left.value < total:
        raise BudgetError(
            f"the synthetic graph needs {type(losses[0])(total)}, and {left or 'nothing'} is left: expected room for all of it. Nothing was charged.",
            code="budget.exceeded",
        )


def _from_degrees(
    made: list[Any],
    seed: int | None,
    progress: Callable[[str], None] | None,
) -> SyntheticGraph:
    graph = synthetic_from_release(made[0], seed=seed, switches=SWITCHES, progress=progress)
    return _closed(graph, made[0].query, made[1:], seed, progress)


def _closed(
    graph: SyntheticGraph,
    query: MixingQuery,
    made: list[Any],
    seed: int | None,
    progress: Callable[[str], None] | None,
    nodes: bool = False,
) -> SyntheticGraph:
    """Approach what was released of triangles and clustering."""
    counts = [one for one in made if isinstance(one.query, Triangles)]
    sums = [one for one in made if isinstance(one.query, Clustering)]
    if not counts and not sums:
        why = "their noise would be larger than what they say"
        if graph.network.directed:
            why = "directed networks are given no triangles"
        if nodes:
            why = "no bound is proved for them under node privacy"
        return replace(graph, notes=(*graph.notes, f"Triangles and clustering were not released: {why}."))
    if progress is not None:
        progress("closing triangles")
    return close_triangles(
        graph,
        query,
        triangles=float(counts[0].values()[0]) if counts else None,
        clustering=sums[0].query if sums else None,
        sums=sums[0].values() if sums else (),
        seed=seed,
    )


def _from_noisy_degrees(
    network: Network,
    made: list[Any],
    seed: int | None,
    progress: Callable[[str], None] | None,
    found: Ints | None = None,
    estimates: Any = None,
) -> SyntheticGraph:
    """A graph with the degrees that noisy counts of nodes by degree say, made those of a graph; with communities, nodes of larger noisy degrees have the larger ones."""
    exactly = degree_counts(made[0].values(), network.order).exactly
    degrees = np.repeat(np.arange(len(exactly), dtype=np.int64), exactly)[::-1]
    fitted = _graphical(degrees)
    changed = int(np.abs(fitted - degrees).sum())
    notes = [
        f"The degrees are noisy: the numbers of nodes by degree, made falling and those of a graph (changed by {changed})."
    ]
    if found is None:
        notes[0] += " Names of nodes mean nothing."
        query = MixingQuery(network, ["all"] * network.order)
        public = PublicDegrees.of(network, fitted.tolist())
        counts: Any = [int(fitted.sum()) // 2]
    else:
        notes[0] += " Nodes have them in the order of their noisy degrees."
        own = np.zeros(network.order, dtype=np.int64)
        own[largest_nodes(estimates, network.order)] = fitted
        public, query = PublicDegrees.of(network, own.tolist()), made[-1].query
        counts = consistent_mixing(made[-1].values(0), query, public).values
        made = made[:-1]
    graph = synthetic_graph(counts, query, public, seed=seed, switches=SWITCHES, progress=progress)
    projected = isinstance(made[0].query, ProjectedDegreeTail)
    if projected:
        notes.append(f"Edges beyond {made[0].query.cap} at a node were dropped before they were counted.")
    capped = (one.query.cap for one in made if isinstance(one.query, (Triangles, Clustering)))
    if caps := sorted({cap for cap in capped if cap is not None}):
        said = " or ".join(str(cap) for cap in caps)
        notes.append(
            f"Triangles or clustering were counted after each node kept its first {said} edges only: one edge more then changes them by less."
        )
    if not made[0].private:
        notes.insert(0, "NOT PRIVATE: the noise of the release came from a seeded generator.")
    graph = replace(graph, notes=(*notes, *graph.notes))
    return _closed(graph, query, made[1:], seed, progress, nodes=projected)


def _graphical(degrees: Ints) -> Ints:
    """Degrees of a simple graph near to falling numbers: the largest are lowered until there is one.

    Examples
    --------
    >>> _graphical(np.array([3, 3, 1, 0])).tolist()
    [1, 1, 0, 0]
    >>> _graphical(np.array([2, 2, 2])).tolist()
    [2, 2, 2]
    """
    top = int(degrees.max(initial=0))
    while True:
        found = np.minimum(degrees, top)
        odd = np.flatnonzero(found > 0)
        if int(found.sum()) % 2:
            # The last node that has an edge has one less.
            found[odd[-1]] -= 1
        if graphical(found):
            return found
        top -= 1
