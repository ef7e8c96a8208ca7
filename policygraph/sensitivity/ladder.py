"""The ladder: reduction, closed form, exact search, proved bound, refusal. Owns ``RUNGS`` and :func:`sensitivity`.

The first rung that takes a problem answers it. To add a way to answer, write a function that takes a
:class:`~policygraph.sensitivity.problem.Problem` and returns a bracket or None, and put it into the list.
"""

from __future__ import annotations

from dataclasses import replace

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import Policy, check_kinds
from policygraph.model.queries.base import Norm, Query
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.units import Unit
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.linked import of_linked
from policygraph.sensitivity.problem import Problem, Rung
from policygraph.sensitivity.rungs import (
    blowfish,
    degrees,
    determined,
    edges,
    induced,
    margins,
    measures,
    products,
    single,
)
from policygraph.sensitivity.units import of_cut_sums, of_unit, times_members

__all__ = ["RUNGS", "sensitivity"]

RUNGS = (
    Rung("values of records", measures.with_measure),
    # A policy graph alone: one record changes along an edge.
    Rung("no edge", edges.no_edge, "edges"),
    Rung("tables along an edge", edges.tables, "edges"),
    Rung("interactions along an edge", edges.interactions, "edges"),
    Rung("prefixes and ranges along an edge", products.products, "edges"),
    Rung("cells along an edge", edges.cells, "edges"),
    Rung("every edge", edges.every_edge, "edges"),
    # Public facts: what they determine cannot change, and published values rule moves out.
    Rung("determined answers", determined.without_determined, "induced", "blowfish"),
    Rung("published values beside a graph", blowfish.without_values, "blowfish"),
    Rung("one open number", single.one_number, "induced"),
    Rung("two open numbers", single.two_numbers, "induced"),
    Rung("published values", induced.with_values, "induced"),
    # A policy graph and public facts together.
    Rung("no secret pairs", blowfish.no_secret_pairs, "blowfish"),
    Rung("only structural zeros", determined.nothing_possible, "induced", "blowfish"),
    Rung("facts that the graph implies", blowfish.graph_alone, "blowfish"),
    Rung("facts that every edge keeps", blowfish.kept_facts, "blowfish"),
    Rung("secret node pairs", blowfish.secret_node_pairs, "blowfish"),
    Rung("cycles through counts", blowfish.cycles_through_counts, "blowfish"),
    Rung("minimal sets of changes", blowfish.minimal_sets, "blowfish"),
    Rung("one public margin", blowfish.one_margin, "blowfish"),
    Rung("two short margins beside a graph", blowfish.short_margins, "blowfish"),
    Rung("number of records beside a graph", blowfish.capped_records, "blowfish"),
    Rung("refusal beside a graph", blowfish.refuse, "blowfish"),
    # Public facts alone: the longest minimal move.
    Rung("facts that follow from others", induced.without_redundant, "induced"),
    Rung("single records", induced.single_records, "induced"),
    Rung("one switch of two edges", degrees.one_switch, "induced"),
    Rung("capped cycle of edges", degrees.capped_cycle, "induced"),
    Rung("public margins", margins.whole_margins, "induced"),
    Rung("one record beside a public margin", margins.beside_one_margin, "induced"),
    Rung("interactions beside public facts", margins.beside_margins, "induced"),
    Rung("partly public margins", margins.partial_margins, "induced"),
    Rung("public degrees", degrees.public_degrees, "induced"),
    Rung("longest move times widest column", induced.times_widest_column, "induced"),
    Rung("search of minimal moves", induced.search, "induced"),
    Rung("proved bound", induced.proved_bound, "induced"),
    Rung("refusal", induced.refuse, "induced"),
)
"""Every way to a sensitivity, in the order in which they are tried."""

USUAL = 120 * SECOND
"""Units of work of a search when the caller names none: a constant, so that every machine proves the same."""


def sensitivity(
    query: Query,
    policy: Policy | Grouped,
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
        Who must not be told apart, given what everybody knows.
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
    check_kinds(query, policy, released=False, kinds=(Families, Unit, LinkedUnit))
    query.check_domain(policy.domain)
    if isinstance(policy, Families):
        return _of_families(query, policy, norm, effort, time_limit)
    if isinstance(policy, LinkedUnit):
        return of_linked(query, policy, norm)
    # its own, so that it tells what this search trusted
    work = Effort.of(effort, time_limit, usual=USUAL).share(1)
    if isinstance(query, MeasureQuery) and query.measure.in_all is not None:
        return of_cut_sums(query, policy, norm)
    if isinstance(policy, Unit):
        return of_unit(
            query, policy, sensitivity(query, policy.moves_of_records, norm=norm, effort=work), work
        )
    if isinstance(policy, Grouped):
        raise policy.refused()
    found = Problem(query, policy, norm, work, RUNGS).climb()
    if not found.exact and work.done and work.ended_by not in f"{found.method} {found.reason}":
        found = replace(found, reason=f"{found.reason.rstrip('.')}; {work.ended_by}")
    if work.trusted:
        found = replace(found, reason=f"{found.reason.rstrip('.')}; {work.trusted}")
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
        cut_short=work.cut_short and not found.exact,
        effort=work.spent,
        computed=True,
    )


def _of_families(
    query: Query, policy: Families, norm: Norm, effort: Effort | int | None, time_limit: float | None
) -> Sensitivity:
    """Every member of a family makes the same step: the value for a record, times the size (docs/explanation/proofs/families.md)."""
    if query.needs_values:
        raise RefusedError(
            f"{query!r} under families: members share their cell, and nothing is said of their values. Ask for counts.",
            code="families.values",
        )
    one = sensitivity(query, policy.records, norm=norm, effort=effort, time_limit=time_limit)
    # With published values the pair of single records does not fit them when every member is counted; the bound holds all the same.
    shown = policy.size == 1 or not policy.system.has_values
    together = f"{policy.size} members of a family make this step together"
    return times_members(
        one, policy, policy.size if shown else None, f"times {policy.size} for a family", together
    )
