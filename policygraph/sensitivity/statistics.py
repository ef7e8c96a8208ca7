"""How much one neighbour step changes a statistic that is not linear. Owns :func:`statistic_bound` and :class:`StatisticBound`.

The theorems are in ``docs/explanation/proofs/networks.md`` and ``docs/explanation/proofs/chi-squared.md``. What they do not cover is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np

from policygraph.effort import SECOND
from policygraph.errors import InputError, RefusedError
from policygraph.model.constraints.networks import Degrees, KnownEdges
from policygraph.model.constraints.tables import Cuboid, StructuralZero, Total
from policygraph.model.domain import Domain, Network
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Ints, Norm
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.network_statistics import (
    UNITS,
    Clustering,
    DegreeTail,
    EdgesToGroups,
    JointDegrees,
    NetworkStatistic,
    ProjectedDegreeTail,
    ProjectedMixing,
    Triangles,
    Wedges,
)
from policygraph.model.queries.networks import AdjacencyQuery
from policygraph.model.queries.statistics import ChiSquaredRoot, NonlinearQuery, public_margin
from policygraph.moves.degrees.secret_pairs import secret_cells
from policygraph.sensitivity.ladder import sensitivity
from policygraph.sensitivity.proofs import proved
from policygraph.sensitivity.verify.tables import Verification

__all__ = ["StatisticBound", "statistic_bound"]

STEPS = 10 * SECOND
"""Work on the number of edges by which neighbours differ; when it is spent, the bound that is proved counts."""
MOST_ROOMS = 2_000
"""Beyond this many rows the best set of cycles is bounded by the best cycle for its size."""


@dataclass(frozen=True)
class StatisticBound:
    """A proved bound on the change of a statistic.

    Attributes
    ----------
    power
        The bound for l1, its square for l2.
    norm
        ``"l1"`` or ``"l2"``.
    reason
        Why it holds.
    statistic, policy
        What it was made for.
    """

    power: int
    norm: Norm
    reason: str
    statistic: NonlinearQuery
    policy: Policy | NodePrivacy

    def verify(self) -> Verification:
        """Recompute the largest change over all neighbours of all data sets where these can be listed; otherwise say what it rests on."""
        from policygraph.sensitivity.verify.statistics import verify_statistic

        return verify_statistic(self.statistic, self.policy, self.norm, self.power, self.reason)

    def to_dict(self) -> dict[str, Any]:
        """Plain form, with the names of what it was made for."""
        return {
            "power": str(self.power),
            "norm": self.norm,
            "kind": "upper",
            "reason": self.reason,
            "policy_fingerprint": self.policy.fingerprint,
            "query_fingerprint": self.statistic.fingerprint,
        }


def statistic_bound(
    statistic: NonlinearQuery, policy: Policy | NodePrivacy, norm: Norm = "l1"
) -> StatisticBound:
    """Bound the change of a statistic over the neighbours of a policy.

    Parameters
    ----------
    statistic
        What is to be released.
    policy
        Who must not be told apart.
    norm
        ``"l1"`` or ``"l2"``.

    Raises
    ------
    InputError
        When statistic and policy are over different domains.
    RefusedError
        When no bound is proved for this pair.

    Examples
    --------
    >>> network = Network(100)
    >>> statistic_bound(DegreeTail(network), Policy(network)).power
    2
    >>> statistic_bound(Triangles(network), Policy(network)).power
    98
    >>> public = Policy(network, constraints=[Degrees(equals=[4] * 100)], strength="markov")
    >>> statistic_bound(Triangles(network), public).power, statistic_bound(Wedges(network), public).power
    (6, 0)
    """
    if norm not in ("l1", "l2"):
        raise InputError(f"norm={norm!r}: expected 'l1' or 'l2'.", code="sensitivity.norm", value=norm)
    statistic.check_domain(policy.domain)
    if isinstance(statistic, ChiSquaredRoot) and isinstance(policy, Policy):
        value, reason = _root(statistic, policy)
        return StatisticBound(value if norm == "l1" else value * value, norm, reason, statistic, policy)
    if not isinstance(statistic, NetworkStatistic):
        raise RefusedError(f"no bound is proved for {statistic!r}.", code="statistic.policy")
    if isinstance(policy, NodePrivacy):
        power, reason = _nodes(statistic, norm)
        if policy.together > 1:
            power *= policy.together if norm == "l1" else policy.together**2
            reason += (
                f"; {policy.together} nodes that are hidden together change one after the other (Theorem 14)"
            )
        return StatisticBound(power, norm, reason, statistic, policy)
    if isinstance(statistic, (ProjectedDegreeTail, ProjectedMixing)):
        raise RefusedError(
            "projections are for node privacy. Under this policy release DegreeTail or mixing counts, which need none.",
            code="statistic.policy",
        )
    if isinstance(statistic, EdgesToGroups):
        power, reason = _to_groups(statistic, policy, norm)
        return StatisticBound(power, norm, reason, statistic, policy)
    value, reason = _edges(statistic, policy)
    return StatisticBound(value if norm == "l1" else value * value, norm, reason, statistic, policy)


def _nodes(statistic: NetworkStatistic, norm: Norm) -> tuple[int, str]:
    if isinstance(statistic, ProjectedMixing):
        reach = statistic.reach()
        return int((reach if norm == "l1" else reach * reach).sum(axis=1).max()), (
            "all edges of one node change the counts of its group by at most the cap each, and no others "
            "(docs/explanation/proofs/networks.md, Theorem 10)"
        )
    if not isinstance(statistic, ProjectedDegreeTail):
        raise RefusedError(
            f"no bound is proved for {statistic!r} under node privacy. Release ProjectedDegreeTail or ProjectedMixing.",
            code="statistic.policy",
        )
    value = 2 * statistic.cap
    return value if norm == "l1" else value * value, (
        "changing all edges of one node changes the degrees after projection by at most twice the cap in all "
        "(docs/explanation/proofs/networks.md, Theorem 6)"
    )


def _edges(statistic: NetworkStatistic, policy: Policy) -> tuple[int, str]:
    network = statistic.domain
    known = _all_public(policy)
    if isinstance(statistic, (DegreeTail, Wedges)) and known:
        return 0, "all degrees are public, and they determine it"
    # Once for each request: several statistics of a network are bounded for one synthetic graph.
    steps = int(proved(AdjacencyQuery(network), policy, work=STEPS).power)
    if isinstance(statistic, JointDegrees) and (known or _only_degrees(policy)):
        return steps + (0 if known else 4 * statistic.reach), (
            f"neighbours differ by at most {steps} edges, and by the degrees of at most {0 if known else 2} nodes "
            "(docs/explanation/proofs/networks.md, Theorem 11)"
        )
    one, why = _step(statistic)
    best = steps * one
    reason = f"neighbours differ by at most {steps} edges, and one edge changes it by at most {one}: {why}"
    ends_only = isinstance(statistic, (DegreeTail, Wedges)) and _only_degrees(policy) and not network.directed
    if ends_only and best > one:
        return (
            one,
            "a minimal move changes the degrees of unknown nodes at its two ends only (docs/explanation/proofs/networks.md, Theorem 4)",
        )
    if isinstance(statistic, Triangles) and known and statistic.cap is None:
        degrees = _published(policy)
        if degrees is not None:
            bound = _triangles(degrees, steps, policy)
            if bound < best:
                return bound, (
                    f"with these public degrees {steps // 2} edges that are removed lie in at most {bound} triangles, and so do "
                    "those that are added (docs/explanation/proofs/networks.md, Theorem 5)"
                )
    if isinstance(statistic, Clustering) and known and statistic.cap is None:
        degrees = _published(policy)
        if degrees is not None:
            bound = _clustering(statistic, degrees, steps, policy)
            if bound < best:
                return bound, (
                    f"with these public degrees {steps // 2} edges that are removed lie in triangles that count at most {bound} units, "
                    "and so do those that are added (docs/explanation/proofs/networks.md, Theorems 13 and 17)"
                )
    return best, reason


def _to_groups(statistic: EdgesToGroups, policy: Policy, norm: Norm) -> tuple[int, str]:
    """The bound for edges to groups; in L2 the sum of squares itself."""
    steps = int(proved(AdjacencyQuery(statistic.domain), policy, work=STEPS).power)
    ends = statistic.ends
    reason = (
        f"neighbours differ by at most {steps} edges, and each of them is counted at most {'once' if ends == 1 else 'twice'} "
        "(docs/explanation/proofs/networks.md, Theorem 15)"
    )
    if norm == "l1":
        return ends * steps, reason
    if steps <= 4 and _all_public(policy):
        # A switch of two edges: each of its four nodes loses one and gains one.
        return ends * steps, f"{reason}; no count changes by more than one"
    return ends * steps * steps, reason


def _step(statistic: NetworkStatistic) -> tuple[int, str]:
    """Largest change by one edge, in any network."""
    n = statistic.domain.order
    if isinstance(statistic, DegreeTail):
        if statistic.domain.directed:
            return 1, "one end of an edge passes one threshold"
        return 2, "each end of an edge passes one threshold"
    if isinstance(statistic, Wedges):
        return 2 * max(n - 2, 0), "an edge makes a wedge with each other edge at its ends"
    if isinstance(statistic, JointDegrees):
        return (
            1 + 4 * statistic.reach,
            "it moves the other edges at its ends, up to the largest degree told apart",
        )
    if isinstance(statistic, (Triangles, Clustering)) and statistic.cap is not None and statistic.cap < n - 1:
        return _capped(statistic, statistic.cap), (
            f"it keeps or drops at most three of the edges that are counted, of which no node has more than {statistic.cap} "
            "(docs/explanation/proofs/networks.md, Theorem 16)"
        )
    if isinstance(statistic, Triangles):
        return max(n - 2, 0), "an edge is in a triangle with each node that both ends are joined to"
    if isinstance(statistic, Clustering):
        return max(n - 2, 0) * int(statistic.weight(2)) + 2 * _clustering_of_one(statistic, n - 1), (
            "it changes the triangles of the nodes that both ends are joined to by one, and the local clustering of its ends "
            "(docs/explanation/proofs/networks.md, Theorem 12)"
        )
    raise RefusedError(f"no bound is proved for {statistic!r}.", code="statistic.policy")


def _root(statistic: ChiSquaredRoot, policy: Policy) -> tuple[int, str]:
    """Largest change of the root of chi-squared, in its units: the largest norm of a change that keeps both margins."""
    for name, values in zip(statistic.attributes, (statistic.rows, statistic.sums), strict=True):
        if public_margin(policy, name) != values:
            raise RefusedError(
                f"{statistic!r} is for other margins of {name} than this policy publishes: expected Cuboid({name!r}, equals={list(values)[:8]}...) among its facts. "
                "Make the query with pg.queries.chi_squared_root(policy, ...).",
                code="statistic.policy",
                value=name,
            )
    if statistic.longest < 2:
        return 0, "one attribute has a single value that occurs, so that the margins determine the table"
    rooms = range(2, statistic.longest + 1)
    # Rounded up, so that each is at least the norm of its cycle in units.
    norms = [0, 0] + [isqrt(int(statistic.cycle(half) * 4**statistic.bits)) + 1 for half in rooms]
    cells = int(
        sensitivity(CuboidQuery(statistic.domain, [statistic.attributes]), policy, effort=STEPS).power
    )
    if cells < 4:
        return 0, "no neighbour step changes the table of the two attributes"
    page = "docs/explanation/proofs/chi-squared.md"
    if _two_margins(policy):
        half = min(statistic.longest, cells // 2)
        # A longer cycle need not have a larger norm: further rows and columns can be the large ones.
        return max(norms[: half + 1]) + 1, (
            f"a minimal move is a cycle of at most {2 * half} cells, and the root changes by at most its norm ({page}, Theorem 1)"
        )
    return _cycles(norms, cells // 2) + 1, (
        f"a neighbour step changes the table of the two attributes by at most {cells} records in cycles, and the root by at most the "
        f"sum of their norms ({page}, Theorem 2)"
    )


def _two_margins(policy: Policy) -> bool:
    """Whether every neighbour step is one minimal move of a table with two public margins."""
    return (
        policy.graph is None
        and len(policy.domain.names if isinstance(policy.domain, Domain) else ()) == 2
        and all(
            isinstance(c, Total) or (isinstance(c, Cuboid) and len(c.names) <= 1) for c in policy.constraints
        )
    )


def _cycles(norms: list[int], rooms: int) -> int:
    """Largest sum of norms of cycles that share so many rows."""
    longest = len(norms) - 1
    if rooms > MOST_ROOMS:
        # No cycle has more for each of its rows than the best of all.
        return max(-(-norms[half] * rooms // half) for half in range(2, longest + 1))
    best = np.zeros(rooms + 1, dtype=object)
    for room in range(2, rooms + 1):
        best[room] = max(best[room - half] + norms[half] for half in range(2, min(longest, room) + 1))
    return int(best[rooms])


def _only_degrees(policy: Policy) -> bool:
    """Whether every move is a minimal move of public degrees: pairs that cannot change, and secret pairs, only rule moves out."""
    return (policy.graph is None or secret_cells(policy) is not None) and all(
        isinstance(c, (Degrees, KnownEdges, StructuralZero)) for c in policy.constraints
    )


def _all_public(policy: Policy) -> bool:
    """Whether the degrees of all nodes are public, on both sides if directed; neighbours then have the same degrees."""
    network = policy.domain
    if not isinstance(network, Network):
        return False
    wanted = {"out", "in"} if network.directed else {"both"}
    there = {
        c.side for c in policy.constraints if isinstance(c, Degrees) and c.n_rows(network) == network.order
    }
    return wanted <= there


def _published(policy: Policy) -> list[int] | None:
    """The published degrees in descending order, if they were given."""
    for fact in policy.constraints:
        if isinstance(fact, Degrees) and fact.n_rows(policy.domain) == getattr(policy.domain, "order", -1):
            degrees = fact.values(policy.domain)
            if degrees is not None:
                return sorted(degrees, reverse=True)
    return None


def _triangles(degrees: list[int], steps: int, policy: Policy) -> int:
    """Largest number of triangles that the removed edges of a minimal move can lie in."""
    return int(_common(degrees, steps, policy).sum())


def _common(degrees: list[int], steps: int, policy: Policy) -> Ints:
    """For each edge that a move removes, the most nodes that both its ends are joined to; the largest first."""
    edges, n = steps // 2, len(degrees)
    if n < 3:
        return np.zeros(0, dtype=np.int64)
    if not _only_degrees(policy):
        # Nothing is known of how the ends of the edges are spread; the smaller degree is at most the second largest.
        return np.full(edges, max(degrees[1] - 1, 0), dtype=np.int64)
    # How many nodes can be an end of two removed edges: the cut vertices; a Markov move is a cycle of four nodes.
    twice = 0 if policy.strength == "markov" else min((n - 3) // 2, edges)
    ends = np.sort(np.array(degrees + degrees[:twice], dtype=np.int64))[::-1]
    found: Ints = np.maximum(ends[1 : 2 * edges : 2] - 1, 0)
    return found


def _clustering(statistic: Clustering, degrees: list[int], steps: int, policy: Policy) -> int:
    """The most that the triangles of the removed edges of a minimal move can count, twice if sums of several classes can change."""
    given = np.array([degree for degree in degrees if degree >= 2], dtype=np.int64)
    if not len(given):
        return 0
    weights = statistic.weight(given)
    # Both ends of an edge together count at most so much in its triangles, whatever their degrees.
    ends = 2 * int(((given - 1) * weights).max())
    largest = np.concatenate([[0], np.cumsum(np.sort(weights)[::-1])])
    common = np.minimum(_common(degrees, steps, policy), len(given))
    if steps <= 4 and _only_degrees(policy):
        # One switch: beside its four nodes, none loses more than one triangle net, so that those that lose one are different nodes.
        lost = ends * int(np.count_nonzero(common)) + int(largest[min(int(common.sum()), len(given))])
    else:
        lost = sum(ends + int(largest[most]) for most in common.tolist() if most)
    return lost if len(np.unique(statistic.class_of(given))) == 1 else 2 * lost


def _capped(statistic: Triangles | Clustering, cap: int) -> int:
    """Largest change by one edge where no node keeps more than so many edges."""
    if isinstance(statistic, Triangles):
        # Two edges may go and one come: what goes and what comes have opposite signs.
        return 2 * (cap - 1)
    return 3 * ((cap - 1) * int(statistic.weight(2)) + 2 * _clustering_of_one(statistic, cap))


def _clustering_of_one(statistic: Clustering, most: int) -> int:
    """The most that the sums change when one node gains an edge and triangles with it, all other nodes held; no node has more edges than given."""
    if most < 2:
        return 0
    if any(start <= most for start in statistic.classes):
        # The node may go from one class to the next, where it counts at most 1 in each.
        return 2 * UNITS
    # With t triangles and d edges afterwards, s <= C(d - 1, 2) before and t - s <= d - 1: the change lies between the two.
    degree = np.arange(2, most + 1, dtype=np.int64)
    after, before = statistic.weight(degree), statistic.weight(degree - 1)
    pairs = (degree - 1) * (degree - 2) // 2
    return int(max((after * (degree - 1)).max(), ((before - after) * pairs).max()))
