"""Policies in words that a data officer understands. Owns ``summary`` and :class:`Explanation`.

Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from policygraph.effort import SECOND
from policygraph.errors import PolicyGraphError
from policygraph.exact import as_float, show
from policygraph.model.domain import Network
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import Epsilon
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.system import describe
from policygraph.model.units import Unit
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.linked import member_words
from policygraph.sensitivity.proofs import CUT_SHORT, proved, shared_proofs

EACH = 20 * SECOND
"""Units of work for each sensitivity of an explanation: it compares many policies, and says where it has a bound only."""


def summary(policy: Policy | Grouped, query: Query) -> str:
    """Say what a policy hides, what is public and what is released, in a few lines.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("sex")])
    >>> print(summary(policy, pg.queries.identity(domain)))
    Data:     a table of records over sex (2 values), age (3 values); 6 cells
    Public:   cuboid sex
    Hidden:   which of two tables is the true one, when both have the public facts and no smaller change ...
    Released: sex x age
    """
    rows = [
        ("Data", data_words(policy)),
        ("Public", public_words(policy)),
        ("Hidden", hidden_words(policy)),
        ("Released", released_words(query)),
    ]
    if isinstance(query, MeasureQuery):
        rows.insert(3, ("Measure", f"{query.measure}; its values are secret, too"))
    extra = [describe(fact, policy.domain) for fact in policy.system.redundant]
    if extra:
        rows.append(("Note", f"these facts follow from the others and were dropped: {', '.join(extra)}"))
    return "\n".join(f"{name + ':':<9} {text}" for name, text in rows)


def _record(policy: Policy | Grouped) -> str:
    return "edge" if isinstance(policy.domain, Network) else "record"


def data_words(policy: Policy | Grouped) -> str:
    """What the records are."""
    domain = policy.domain
    if isinstance(domain, Network):
        kind = "directed" if domain.directed else "undirected"
        return f"{'an' if kind[0] == 'u' else 'a'} {kind} network of {domain.order:,} nodes; {domain.size:,} pairs can be joined"
    if isinstance(policy, LinkedUnit):
        tables = policy.tables
        each = [
            f"{table} ({tables.key if table == tables.parent else tables.foreign_key} says which) by {', '.join(tables.attributes(table))}"
            for table in (tables.parent, tables.child)
        ]
        return f"two tables, {' and '.join(each)}; {domain.size:,} cells"
    parts = ", ".join(
        f"{n} ({s:,} value{'s' * (s != 1)})" for n, s in zip(domain.names, domain.shape, strict=True)
    )
    return f"a table of records over {parts}; {domain.size:,} cells"


def public_words(policy: Policy | Grouped) -> str:
    """What everybody knows."""
    if isinstance(policy, LinkedUnit) and policy.totals:
        return ", ".join(f"the number of {name} ({value:,})" for name, value in policy.totals)
    facts = ", ".join(describe(fact, policy.domain) for fact in records_of(policy).constraints)
    return facts or "nothing but the domain"


def hidden_words(policy: Policy | Grouped) -> str:
    """What nobody must learn."""
    if isinstance(policy, Unit):
        return unit_words(policy)
    if isinstance(policy, LinkedUnit):
        return linked_words(policy)
    if isinstance(policy, Families):
        return f"a whole family of {policy.words}, which share their value and change together, as if it were one record: {hidden_words(policy.records)}"
    record = _record(policy)
    if policy.definition == "edges" and policy.graph is not None:
        said = policy.graph.describe()
        if isinstance(policy.domain, Network):
            said = said.replace("cells", "pairs of nodes").replace(
                "a record is there at all", "they are joined"
            )
        return said
    if policy.definition == "blowfish" and policy.graph is not None:
        return (
            f"{policy.graph.describe()} Since the public facts must still hold, other records may change with it, "
            "in any way that repairs them."
        )
    if not policy.constraints:
        return f"whether any single {record} is there"
    text = (
        "which of two tables is the true one, when both have the public facts and no smaller change leads from one "
        "towards the other"
    )
    if isinstance(policy.domain, Network):
        text = text.replace("two tables", "two networks")
    if policy.strength != "worst-case":
        text += f" (only {policy.strength} changes)"
    if policy.at_most_records is not None:
        text += f" (only changes of at most {policy.at_most_records} {record}s added and as many removed)"
    return text


def unit_words(policy: Unit) -> str:
    """What nobody must learn of a unit."""
    if policy.records.graph is None:
        said = f"everything of one {policy.column}: whether the {policy.column} is in the data, and with which records ({policy.words} count)"
    else:
        said = f"the records of one {policy.column} all together ({policy.words}): of each of them, {hidden_words(policy.moves_of_records)}"
    left = (
        "records beyond that are left out before counting"
        if policy.enforced
        else "data with more are refused"
    )
    return f"{said}; {left}" + (f"; {policy.larger_words}" if policy.larger_words else "")


def linked_words(policy: LinkedUnit) -> str:
    """What nobody must learn of a row with the rows of another table that belong to it."""
    tables = policy.tables
    left = f"{tables.child} beyond that are left out before counting"
    if not policy.totals:
        return f"whether any {policy.words} is there, and everything in them; {left}"
    known = " and ".join(f"of {name}" for name, _ in policy.totals)
    return f"{policy.words}, and everything in them: which of two data sets is the true one, when both have the public number {known} and no smaller exchange of units leads from one towards the other; {left}"


def released_words(query: Query) -> str:
    """What is published."""
    names = [part.name for part in query.parts]
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more tables"


@dataclass(frozen=True)
class Alternative:
    """What the sensitivity would be under a changed policy."""

    change: str
    result: Sensitivity | None
    refusal: str | None = None


@dataclass(frozen=True)
class Explanation:
    """A policy explained: certificate, expected noise, and what each public fact and each strength costs."""

    policy: Policy | Grouped
    query: Query
    certificate: Sensitivity
    single: Fraction
    epsilon: Fraction
    without: tuple[Alternative, ...]
    strengths: tuple[Alternative, ...]
    cut_short: bool = False
    """Whether a limit in seconds that the caller set ended a search, so that another run may say otherwise."""

    @property
    def scale(self) -> Fraction:
        """Scale of Laplace noise for this epsilon, in units of the answers."""
        return self.certificate.value / self.epsilon

    def costliest(self) -> str:
        """Name the public fact whose absence would lower the sensitivity most."""
        if not self.certificate.exact:
            return "  The value now is only a bound, so these costs are not exact."
        known = [a for a in self.without if a.result is not None and a.result.value < self.certificate.value]
        if not known:
            return "  No single public fact costs anything by itself."
        least = min(a.result.value for a in known if a.result is not None)
        names = [a.change for a in known if a.result is not None and a.result.value == least]
        verb, each = ("costs", "") if len(names) == 1 else ("cost", " each")
        return f"  Most costly: {' and '.join(names)} {verb} {show(self.certificate.value - least)} of {show(self.certificate.value)}{each}."

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""

        def plain(alternative: Alternative) -> dict[str, Any]:
            found = alternative.result
            return {
                "change": alternative.change,
                "value": None if found is None else float(found.value),
                "kind": None if found is None else found.kind,
                "refusal": alternative.refusal,
            }

        return {
            "summary": summary(self.policy, self.query),
            "certificate": self.certificate.to_dict(),
            "epsilon": str(self.epsilon),
            "noise_scale": str(self.scale),
            "without": [plain(a) for a in self.without],
            "strengths": [plain(a) for a in self.strengths],
            **({"cut_short": True} if self.cut_short else {}),
        }

    def _sharper(self) -> bool:
        found = [each.result for each in self.strengths if each.result is not None]
        return any(each.exact or each.value < self.certificate.value for each in found)

    def __str__(self) -> str:
        value, eps = self.certificate.value, show(self.epsilon)
        lines = [CUT_SHORT] if self.cut_short else []
        lines += [summary(self.policy, self.query), "", str(self.certificate), ""]
        deviation = as_float(self.scale, "scale of the noise") * 2**0.5
        if words := member_words(self.certificate, Epsilon(self.epsilon)):
            lines += [words, ""]
        lines.append(
            f"Noise at epsilon = {eps}: scale {show(self.scale)}, a standard deviation of about {deviation:.3g} on every number. "
            f"If a single {_record(self.policy)} could appear or vanish and nothing were public, scale {show(self.single / self.epsilon)} would do."
        )
        if not self.certificate.exact:
            lines.append(
                f"This is a bound: the truth lies between {show(self.certificate.lower)} and {show(value)}, so the noise may be larger than needed."
                + (" A promise from the list below has a sharper value." if self._sharper() else "")
            )
        if self.without:
            lines += ["", "What each public fact costs (the sensitivity if it were not public):"]
            lines += [_line(a, value) for a in self.without]
            lines.append(self.costliest())
        if self.strengths:
            lines += ["", "What weaker promises would cost:"]
            lines += [_line(a, value) for a in self.strengths]
        return "\n".join(lines)


def _line(alternative: Alternative, value: Fraction) -> str:
    if alternative.result is None:
        return f"  {alternative.change}: {alternative.refusal}"
    found = alternative.result
    bound = "" if found.exact else "at most "
    share = f" ({float(found.value / value):.2f} of the value used now)" if value else ""
    return f"  {alternative.change}: {bound}{show(found.value)}{share}"


def explain(
    query: Query,
    policy: Policy | Grouped,
    *,
    epsilon: Fraction = Fraction(1),
    effort: int | None = None,
    time_limit: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Explanation:
    """Explain a policy: what is hidden, the pair that must look alike, the noise, and what each choice costs.

    Parameters
    ----------
    query, policy
        What is released under what.
    epsilon
        The loss for which the noise is told.
    effort
        Units of work for each sensitivity that is computed on the way; None for the usual number.
    time_limit
        Seconds for all of them together, where a limit in time is wanted; an explanation that it cut short says so.
    progress
        Called with a few words before each of them.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    >>> for alternative in explain(pg.queries.identity(domain), policy).without:
    ...     print(alternative.change, alternative.result.value)
    cuboid a 2
    cuboid b 2
    """
    with shared_proofs(time_limit) as proofs:
        made = _explained(query, policy, epsilon, EACH if effort is None else effort, progress)
    return replace(made, cut_short=True) if proofs.cut_short else made


def _explained(
    query: Query,
    policy: Policy | Grouped,
    epsilon: Fraction,
    work: int,
    progress: Callable[[str], None] | None,
) -> Explanation:
    tell = progress or (lambda now: None)
    tell("computing the sensitivity")
    certificate = proved(query, policy, work=work)
    record = _record(policy)

    def attempt(change: str, other: Policy | Grouped, asked: Query = query) -> Alternative:
        tell(f"computing the sensitivity: {change}")
        try:
            return Alternative(change, proved(asked, other, work=work))
        except PolicyGraphError as refusal:
            return Alternative(change, None, str(refusal))

    if isinstance(policy, LinkedUnit):
        rests = {name: {k: v for k, v in policy.totals if k != name} for name, _ in policy.totals}
        without = tuple(
            attempt(f"the number of {name}", LinkedUnit(policy.tables, rest, policy.unknown))
            for name, rest in rests.items()
        )
        single = proved(query, Policy(policy.domain), work=work).value
        return Explanation(policy, query, certificate, single, epsilon, without, ())
    if isinstance(policy, Grouped):
        records, families = policy.records, policy
        without = tuple(
            attempt(describe(fact, policy.domain), families.over(records.without(fact)))
            for fact in records.constraints
        )
        word = "families" if isinstance(policy, Families) else "units"
        each = query.for_records() if isinstance(query, MeasureQuery) else query
        alone = [attempt(f"single records instead of {word}", records, each)]
        if each is not query:
            alone.append(attempt("without in_all: each record within its range", policy, each))
        if isinstance(policy, Unit) and policy.at_most > 1:
            half = policy.at_most // 2
            fewer = Unit(records, policy.column, half, policy.per_cell and min(half, policy.per_cell))
            alone.append(attempt(f"at most {half} record{'s' * (half != 1)} of one {policy.column}", fewer))
        single = proved(each, Policy(policy.domain), work=work).value
        return Explanation(policy, query, certificate, single, epsilon, without, tuple(alone))
    without = tuple(
        attempt(describe(fact, policy.domain), policy.without(fact)) for fact in policy.constraints
    )
    strengths: tuple[Alternative, ...] = ()
    if policy.definition == "induced" and policy.constraints and policy.strength == "worst-case":
        strengths = (
            attempt("positive neighbours only", policy.with_strength("positive", policy.at_most_records)),
            attempt("Markov neighbours only", policy.with_strength("markov", policy.at_most_records)),
            *(
                attempt(f"at most {cap} {record}s change", policy.with_strength("worst-case", cap))
                for cap in (2, 3)
                if policy.at_most_records is None
            ),
        )
    if policy.definition == "blowfish":
        induced = Policy(policy.domain, None, policy.constraints, unknown=policy.unknown)
        strengths = (
            *(
                attempt(f"at most {cap} {record}s change", policy.with_strength("worst-case", cap))
                for cap in (2, 3)
                if policy.at_most_records is None
            ),
            attempt("induced neighbours instead of the policy graph", induced),
        )
    single = proved(query, Policy(policy.domain), work=work).value
    return Explanation(policy, query, certificate, single, epsilon, without, strengths)
