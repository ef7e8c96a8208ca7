"""The ladder: reduction, closed form, exact search, proved bound, refusal. Owns :func:`sensitivity`."""

from __future__ import annotations

from dataclasses import replace

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.model.queries.measures import MeasureQuery
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.certificate import Sensitivity

__all__ = ["sensitivity"]

USUAL = 120 * SECOND
"""Units of work of a search when the caller names none: a constant, so that every machine proves the same."""


def sensitivity(
    query: Query,
    policy: Policy,
    *,
    norm: Norm = "l1",
    effort: Effort | int | None = None,
    time_limit: float | None = None,
) -> Sensitivity:
    """How much one neighbour step of a policy can change the answer to a query.

    Parameters
    ----------
    query
        A linear query over the policy's domain.
    policy
        Who may not be told apart, given what everybody knows.
    norm
        ``"l1"`` for pure epsilon, ``"l2"`` for zCDP.
    effort
        Work that a search may spend, in units or as an :class:`~policygraph.effort.Effort`; None for the usual
        120 million units. When it runs out the result is a proved upper bound with the best pair of neighbours
        found, the same one on every machine.
    time_limit
        Seconds of wall clock after which a search also ends; None, the usual, for no clock. A result that the clock
        cut short depends on the load of the machine and says so in its first line.

    Returns
    -------
    Sensitivity
        The value, exact or a proved upper bound, with two neighbouring data sets that attain what is attained.

    Raises
    ------
    InputError
        When query and policy are over different domains.
    RefusedError
        When no value can be proved; the message says what would help.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    >>> certificate = sensitivity(pg.queries.identity(domain), policy)
    >>> print(certificate)
    sensitivity = 4 (L1, exact)
      neighbours: induced neighbours under exact public facts (Kifer and Machanavajjhala 2011, Definition 4.4)
      method:     closed form, two public margins
      why:        a minimal move is a simple cycle in the complete bipartite graph of 3 x 2 margin cells, so it ...
      attained by two data sets that must look alike:
        before: ...
        after:  ...

    Notes
    -----
    For every policy the sensitivity is the largest norm of W m over its moves m (``docs/explanation/proofs``). Without public facts
    the moves are the edges of the policy graph; without a graph they are the conformally minimal changes that keep
    the public facts; with both they are the minimal zero-sum sets of record changes that contain a secret pair.
    """
    if norm not in ("l1", "l2"):
        raise InputError(f"norm={norm!r}: expected 'l1' or 'l2'.", code="sensitivity.norm", value=norm)
    if not isinstance(query, Query) or not isinstance(policy, Policy):
        swapped = isinstance(query, Policy) and isinstance(policy, Query)
        raise InputError(
            "query and policy are swapped: expected the query first, then the policy."
            if swapped
            else f"query={query!r}, policy={policy!r}: expected a query such as pg.queries.identity(domain), then a Policy.",
            code="sensitivity.arguments",
        )
    query.check_domain(policy.domain)
    budget = Effort.of(effort, time_limit, usual=USUAL).share(
        1
    )  # its own, so that it tells what this search trusted
    found = _climb(query, policy, norm, budget)
    if not found.exact and budget.done and budget.ended_by not in f"{found.method} {found.reason}":
        found = replace(found, reason=f"{found.reason.rstrip('.')}; {budget.ended_by}")
    if budget.trusted:
        found = replace(found, reason=f"{found.reason.rstrip('.')}; {budget.trusted}")
    unit = query.unit if norm == "l1" else query.unit**2
    return Sensitivity(
        power=found.upper * unit,
        norm=norm,
        kind="exact" if found.exact else "upper",
        lower_power=found.lower * unit,
        witness=found.witness if found.lower else None,
        method=found.method,
        reason=found.reason,
        policy=policy,
        query=query,
        steps=found.steps,
        cut_short=budget.cut_short and not found.exact,
        computed=True,
    )


def _climb(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness]:
    if isinstance(query, MeasureQuery):
        from policygraph.sensitivity.rungs.measures import with_measure

        return with_measure(query, policy, norm, effort)
    if policy.definition == "edges":
        from policygraph.sensitivity.rungs.edges import along_edges

        return along_edges(query, policy, norm, effort)
    from policygraph.sensitivity.rungs.determined import PUBLIC, undetermined

    left = undetermined(query, policy)
    if left is None:
        return PUBLIC
    found = _under_facts(left, policy, norm, effort)
    return found if left is query else found.after("answers that follow from the public facts were left out")


def _under_facts(query: Query, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness]:
    if policy.definition == "blowfish":
        from policygraph.sensitivity.rungs.coupled import coupled

        return coupled(query, policy, norm, effort)
    from policygraph.sensitivity.rungs.induced import induced

    return induced(query, policy, norm, effort)
