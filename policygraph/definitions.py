"""One question under the definitions of the literature, side by side. Owns :func:`definitions` and :class:`Reading`.

Induced neighbours and Blowfish neighbours are what the library releases under; subspace differential privacy and Semi-DP are computed so that papers can be
compared with it (``docs/explanation/definitions.md``). Nothing here sees data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from policygraph.errors import PolicyGraphError
from policygraph.exact import show
from policygraph.explain import EACH
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Network
from policygraph.model.graphs import PolicyGraph
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.sensitivity.proofs import proved

__all__ = ["Reading", "definitions", "definitions_text", "semi_adjacent"]


@dataclass(frozen=True)
class Reading:
    """What one definition asks of Laplace noise for a query.

    Attributes
    ----------
    name, source
        The definition, and where it is from.
    neighbours, promise
        Which data sets must look alike, and what that promises.
    value
        The L1 sensitivity, or a bound on it; None where nothing is proved.
    exact
        Whether the value is attained.
    note
        How it was found, or why there is none.
    used
        Whether releases under the policy use this definition.
    """

    name: str
    source: str
    neighbours: str
    promise: str
    value: Fraction | None
    exact: bool
    note: str
    used: bool = False

    def to_dict(self, epsilon: Fraction) -> dict[str, Any]:
        """Plain form, with the scale of the noise."""
        return {
            "name": self.name,
            "source": self.source,
            "neighbours": self.neighbours,
            "promise": self.promise,
            "epsilon": str(epsilon),
            "value": None if self.value is None else str(self.value),
            "kind": None if self.value is None else "exact" if self.exact else "upper",
            "noise_scale": None if self.value is None else str(self.value / epsilon),
            "note": self.note,
            "used": self.used,
        }


def definitions(query: Query, policy: Policy, *, effort: int | None = None) -> tuple[Reading, ...]:
    """The L1 sensitivity of a query under each definition.

    Parameters
    ----------
    query, policy
        What is released under what; the graph of the policy, or the full one where it has none, is used where a graph is needed.
    effort
        Units of work for each; None for the usual number.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 3, "b": 4})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    >>> for one in definitions(pg.queries.identity(domain), policy, effort=100_000):
    ...     print(one.name, one.value, one.exact)
    induced neighbours 6 True
    Blowfish neighbours 576 False
    Semi-DP 6 False
    subspace differential privacy 1 True
    """
    work = EACH if effort is None else effort
    domain = policy.domain
    record = "edge" if isinstance(domain, Network) else "record"
    facts = policy.constraints
    graph = policy.graph
    cap = policy.at_most_records

    def found(other: Policy) -> tuple[Fraction | None, bool, str]:
        try:
            made = proved(query, other, work=work)
        except PolicyGraphError as refusal:
            return None, False, str(refusal)
        return made.value, made.exact, made.method

    induced = Policy(domain, None, facts, strength=policy.strength, at_most_records=cap)
    readings = [
        Reading(
            "induced neighbours",
            "Kifer and Machanavajjhala 2011, Definition 4.4",
            "two data sets with the public facts between which no smaller change keeps them",
            "whoever knows the facts cannot tell such a change from none, whatever else it repairs",
            *found(induced),
            used=policy.definition == "induced",
        )
    ]
    if not isinstance(domain, Network):
        secret = PolicyGraph.full(domain) if graph is None else graph
        name = "Blowfish neighbours" if facts else "policy graph"
        blowfish = Policy(domain, secret, facts, at_most_records=cap)
        said = "every two values" if graph is None else "the pairs of the policy graph"
        readings.append(
            Reading(
                name,
                "He, Machanavajjhala and Ding 2014, Definition 4.1",
                f"records one by one: as few secret pairs as the facts allow change, secret being {said}, and others repair the facts",
                "a secret pair of one record cannot be told, although the facts tie it to others",
                *found(blowfish),
                used=policy.definition != "induced",
            )
        )
        readings.append(_semi(query, policy, work))
    plain = Policy(domain, graph)
    value, exact, note = found(plain)
    readings.append(
        Reading(
            "subspace differential privacy",
            "Gao, Gong and Yu 2021, arXiv 2108.11527",
            f"one {record} more or less" if graph is None else "one record along an edge of the policy graph",
            "the noisy part of the answer, across the facts, looks alike; what the facts say of the same people is outside of the promise",
            value,
            exact,
            f"{note}; the noise is then projected on the changes that keep the facts",
        )
    )
    return tuple(readings)


def semi_adjacent(policy: Policy, *, effort: int | None = None) -> tuple[int, str]:
    """A bound on how many records must change so that one record can take another value and the facts still hold.

    Parameters
    ----------
    policy
        Its public facts count; data sets have a public number of records.
    effort
        Units of work for a sensitivity that it needs.

    Returns
    -------
    (int, str)
        The bound, for all true values of the facts, and why.

    Raises
    ------
    RefusedError
        Where nothing is proved about the moves.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 4, "b": 5})
    >>> semi_adjacent(pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")]))[0]
    3

    Notes
    -----
    ``docs/explanation/definitions.md``: the shortest minimal change that puts a record into a cell is a positive one.
    """
    work = EACH if effort is None else effort
    needed = policy.system.needed
    if all(isinstance(fact, Total) or (isinstance(fact, Cuboid) and not fact.names) for fact in needed):
        return 1, "no public sums but the number of records, so that a record changes by itself"
    if (
        len(needed) <= 2
        and all(isinstance(fact, (Cuboid, Total)) for fact in needed)
        and not len(policy.system.zeros)
    ):
        # a record in the row and one in the column of an empty cell, and one that takes part in a swap
        return 1 + len(needed), "one record for each public table, and one more for a swap"
    facts = [*policy.constraints]
    if not any(isinstance(fact, Total) for fact in facts):
        facts.append(Total())
    cells = identity(policy.domain)
    try:
        longest = proved(cells, Policy(policy.domain, None, facts, strength="positive"), work=work)
    except PolicyGraphError:
        longest = proved(cells, Policy(policy.domain, None, facts), work=work)
    half = int(longest.value) // 2
    return max(
        2, half + 1
    ), f"a change that puts a record into an empty cell takes at most {half} records, and a swap one more"


def _semi(query: Query, policy: Policy, work: int) -> Reading:
    value: Fraction | None = None
    try:
        records, why = semi_adjacent(policy, effort=work)
        each = proved(query, Policy(policy.domain, PolicyGraph.full(policy.domain)), work=work)
        value = records * each.value
        note = f"at most {records} records change ({why}), each the answer by at most {show(each.value)}"
    except PolicyGraphError as refusal:
        note = str(refusal)
    return Reading(
        "Semi-DP",
        "Cho and Awan 2024, arXiv 2410.17468",
        "two data sets with the public facts that differ in no more records than it takes to change any one of them",
        "no record can be told from another value that the facts allow, together with what repairs the facts",
        value,
        False,
        note,
    )


def definitions_text(readings: tuple[Reading, ...], epsilon: Fraction) -> str:
    """The definitions as lines for people."""
    lines = [f"What each definition promises, and Laplace noise at epsilon = {show(epsilon)}:"]
    for one in readings:
        lines += ["", f"{one.name}{' (used here)' if one.used else ''}, {one.source}"]
        lines.append(f"  neighbours:  {one.neighbours}")
        lines.append(f"  promise:     {one.promise}")
        if one.value is None:
            lines.append(f"  sensitivity: not proved: {one.note}")
            continue
        bound = "" if one.exact else "at most "
        lines.append(f"  sensitivity: {bound}{show(one.value)} ({one.note})")
        lines.append(f"  noise:       scale {bound}{show(one.value / epsilon)}")
    lines += [
        "",
        "Losses under different definitions are about different pairs of data sets and do not compare as numbers: docs/explanation/definitions.md",
    ]
    return "\n".join(lines)
