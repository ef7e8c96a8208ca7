"""Networks from a release to a synthetic graph. Owns :func:`synthesise`; the rest is that of ``policygraph.estimation.networks``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
from policygraph.exact import Exact
from policygraph.model.constraints.networks import Degrees, graphical
from policygraph.model.domain import Label, Network
from policygraph.model.grouped import Grouped
from policygraph.model.loss import Epsilon, Loss, loss_of
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.network_statistics import Clustering, DegreeTail, Triangles
from policygraph.model.queries.networks import MixingQuery
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
USELESS = 0.5
"""Transitivity and mean clustering are between 0 and 1: with an expected error from here on they are not worth a part of the loss."""
UNIFORM = 1 / sqrt(12)
"""Standard deviation of a number between 0 and 1 of which nothing is known: the clustering of nodes whose degrees count as larger ones."""
PARTS = 1000
"""Shares of the loss are whole parts of this."""
MOST_LEAST = 200
"""Largest degree that smaller ones may count as."""


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
        Either all degrees are public, with their values (``constraints=[pg.Degrees(graph.degree())]``), or none: one edge more or less is secret.
    graph
        The network: of networkx, a file with its edges, a sparse matrix, counts.
    epsilon, rho, delta
        The loss of all that is released for the graph.
    groups
        Public groups of the nodes, between which the numbers of edges are kept as well.
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
    nodes mean nothing then. All of this follows from public facts alone, and the graph from the releases: post-processing.
    """
    with shared_proofs():
        return _synthesise(
            policy,
            graph,
            loss_of(epsilon, rho, delta),
            groups,
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
    ledger: Ledger | str | Path | None,
    dataset: str | None,
    seed: int | None,
    rng: Rng | None,
    edges: Mapping[str, str] | None,
    columns: Mapping[str, str] | None,
    progress: Callable[[str], None] | None,
) -> SyntheticGraph:
    policy, network, known = _kind(asked)
    tell = progress or (lambda now: None)
    tell("choosing what to release")
    pieces = (
        _with_degrees(network, policy, loss, groups, known)
        if known is not None
        else _without(network, policy, loss, groups)
    )
    shares = _split([piece.error for piece in pieces], loss) if known is not None else _halved(len(pieces))
    losses = [type(loss)(loss.value * share) for share in shares]
    tell("reading the network")
    data = read_data(graph, policy, columns, edges)
    random = rng or SecureRng()
    book = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
    requests = [
        Request.of(piece.query, policy, data, **_named(each))
        for piece, each in zip(pieces, losses, strict=True)
    ]
    if book is not None:
        _check_room(book, dataset, requests, losses, random)
    made = []
    for at, request in enumerate(requests):
        tell(f"releasing {request.query.parts[0].name} ({at + 1} of {len(requests)})")
        made.append(perform(request, ledger=book, dataset=dataset, rng=random).release)
    tell("making the graph")
    if known is None:
        found = _from_noisy_degrees(network, made, seed, progress)
    else:
        found = _from_degrees(policy, known, made, seed, progress)
    split = ", ".join(
        f"{each} for {request.query.parts[0].name}" for each, request in zip(losses, requests, strict=True)
    )
    return replace(found, notes=(f"The loss was split: {split}.", *found.notes), releases=tuple(made))


def _named(loss: Loss) -> dict[str, Exact]:
    return {"epsilon": loss.value} if isinstance(loss, Epsilon) else {"rho": loss.value}


def _kind(policy: Any) -> tuple[Policy, Network, PublicDegrees | None]:
    """The policy, its network, and its public degrees if all are; refuse everything between none and all."""
    network = getattr(policy, "domain", None)
    if not isinstance(policy, Policy) or not isinstance(network, Network):
        raise InputError(
            f"{policy!r}: expected a policy over a network, which hides edges. Under node privacy no synthetic graph is offered: release degree counts and group counts.",
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
        return policy, network, None
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
    found = float(proved(query, policy, loss.norm).power)
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
        noise = _unit_error(_bound(query_, policy, loss), loss) / network.order
        unseen = UNIFORM * float(np.mean((known.out < least) & (known.out >= 2)))
        if best is None or noise + unseen < best[0]:
            best = noise + unseen, _Piece(query_, noise)
    if best is not None:
        pieces.append(best[1])
    return [piece for piece in pieces if isinstance(piece.query, MixingQuery) or piece.error < USELESS]


def _leasts() -> list[int]:
    """Degrees that smaller ones may count as, a quarter apart."""
    found = [2]
    while found[-1] < MOST_LEAST:
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


def _halved(count: int) -> list[Fraction]:
    """Half for the first piece, and the rest in equal parts."""
    if count == 1:
        return [Fraction(1)]
    return [Fraction(1, 2)] + [Fraction(1, 2 * (count - 1))] * (count - 1)


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
    book: Ledger, dataset: str | None, requests: list[Request], losses: list[Loss], rng: Rng
) -> None:
    """Refuse before the first charge what does not fit in all; what is on record costs nothing."""
    total, known = Fraction(0), None
    for request, loss in zip(requests, losses, strict=True):
        known = known or request.identify()
        name = request.fingerprint(known, rng)
        if name is None or book.recorded(name) is None:
            total += loss.value
    if known is None or not total:
        return
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
    policy: Policy,
    known: PublicDegrees,
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
) -> SyntheticGraph:
    """Approach what was released of triangles and clustering."""
    counts = [one for one in made if isinstance(one.query, Triangles)]
    sums = [one for one in made if isinstance(one.query, Clustering)]
    if not counts and not sums:
        why = (
            "directed networks are given no triangles"
            if graph.network.directed
            else "their noise would be larger than what they say"
        )
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
    network: Network, made: list[Any], seed: int | None, progress: Callable[[str], None] | None
) -> SyntheticGraph:
    """A graph with the degrees that noisy counts of nodes by degree say, made those of a graph."""
    exactly = degree_counts(made[0].values(), network.order).exactly
    degrees = np.repeat(np.arange(len(exactly), dtype=np.int64), exactly)[::-1]
    fitted = _graphical(degrees)
    public = PublicDegrees.of(network, fitted.tolist())
    query = MixingQuery(network, ["all"] * network.order)
    graph = synthetic_graph(
        [int(fitted.sum()) // 2], query, public, seed=seed, switches=SWITCHES, progress=progress
    )
    changed = int(np.abs(fitted - degrees).sum())
    notes = [
        f"The degrees are noisy: the numbers of nodes by degree, made falling and those of a graph (changed by {changed}). Names of nodes mean nothing."
    ]
    if not made[0].private:
        notes.insert(0, "NOT PRIVATE: the noise of the release came from a seeded generator.")
    return _closed(replace(graph, notes=(*notes, *graph.notes)), query, made[1:], seed, progress)


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
