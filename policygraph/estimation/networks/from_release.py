"""From a release of group counts to a synthetic graph in one call. Owns :func:`synthetic_from_release`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from policygraph.documents import MALFORMED
from policygraph.errors import InputError, PolicyGraphError
from policygraph.estimation.networks.consistent import consistent_mixing
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.networks.synthetic import SyntheticGraph, synthetic_graph
from policygraph.model.constraints.degrees import Degrees
from policygraph.model.domain import Network
from policygraph.model.policy import Policy
from policygraph.model.queries import from_spec
from policygraph.model.queries.networks import MixingQuery
from policygraph.release.release import Release

__all__ = ["synthetic_from_release"]


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
        As for :func:`~policygraph.estimation.networks.consistent.consistent_mixing`.
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
    >>> noisy = pg.release(query, policy, ring, epsilon=1, source=pg.SeededRng(1))
    >>> made = synthetic_from_release(noisy, seed=1)
    >>> made.degrees()[0].tolist(), made.exact
    ([2, 2, 2, 2, 2, 2], True)
    >>> made.notes[0]
    'NOT PRIVATE: the noise of the release came from a seeded source.'
    """
    try:
        policy = Policy.from_spec(release.record["policy"])
        query = from_spec(policy.domain, release.record["query"])
    except PolicyGraphError:
        raise
    except MALFORMED as cause:
        raise InputError(
            f"the release lacks or garbles {str(cause)[:200]}: it was changed after it was written.",
            code="release.file",
        ) from cause
    if not isinstance(query, MixingQuery):
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
        warning = ("NOT PRIVATE: the noise of the release came from a seeded source.",)
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
