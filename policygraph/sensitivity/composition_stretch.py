"""How far apart the neighbours of one policy are under another. Owns :func:`stretch`.

The ledger's statement for several policies on one data set takes it (``docs/explanation/proofs/composition.md``, section 4).
"""

from __future__ import annotations

from policygraph.errors import InputError
from policygraph.model.policy import Policy

__all__ = ["stretch"]

EDGES = 1_000_000
"""Most edges that are looked at one by one."""


def stretch(policy: Policy, other: Policy) -> int | None:
    """Most steps of another policy between neighbours of a policy; None when some pair has no path.

    Parameters
    ----------
    policy, other
        Policies over one domain, each a policy graph without public facts.

    Returns
    -------
    int or None
        The number by which a loss under the other policy counts for the secret pairs of this one (squared for rho);
        the ledger's statement takes it.

    Raises
    ------
    InputError
        When a policy has public facts, or none has a graph, or the domains differ.
    RefusedError
        When there are too many edges.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 5})
    >>> line, full = (pg.Policy(domain, g(domain)) for g in (pg.PolicyGraph.line, pg.PolicyGraph.full))
    >>> stretch(full, line), stretch(line, full)
    (4, 1)
    """
    for one in (policy, other):
        if one.definition != "edges" or one.graph is None:
            raise InputError(
                "a stretch is known for policy graphs without public facts only: a path of edges need not keep facts.",
                code="composition.stretch",
            )
    if policy.domain != other.domain or policy.graph is None or other.graph is None:
        raise InputError("the policies are over different domains.", code="composition.stretch")
    longest = 0
    for u, v in policy.graph.edges(EDGES):
        steps = other.graph.distance(u, v)
        if steps is None:
            return None
        longest = max(longest, steps)
    return max(longest, 1)
