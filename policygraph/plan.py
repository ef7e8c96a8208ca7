"""Which privacy loss reaches an error, before anything is spent. Owns :func:`plan` and :class:`BudgetPlan`.

Nothing here sees data. Errors are those that the mechanism states which a release would use, and epsilons are tried one by one on a fixed grid, so that the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import floor, log10
from typing import Any

import numpy as np

from policygraph.errors import InputError, PolicyGraphError, RefusedError, shown
from policygraph.exact import Exact, as_float, show
from policygraph.mechanisms import Calibrated, Mechanism, choose
from policygraph.mechanisms.members import calibrated_under
from policygraph.model.domain import Network
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import Epsilon
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.model.system import name_of
from policygraph.model.units import Unit
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.linked import member_words
from policygraph.sensitivity.proofs import shared_proofs

LEAST, MOST = -4, 3
"""Epsilons from 10^-4 to 10^3 are tried."""
CURVE = ("0.1", "0.3", "1", "3", "10")
WORTH = 2
"""The strongest promise is recommended that needs at most so many times the epsilon of the cheapest."""
MOST_RECORDS = 10**18
MEASURES = ("within_95", "deviation")


@dataclass(frozen=True)
class Reached:
    """Errors at one epsilon.

    Attributes
    ----------
    epsilon
        The loss.
    errors
        For each table its largest error.
    met
        Whether every table meets its target.
    ready
        The calibrated mechanism.
    """

    epsilon: Fraction
    errors: dict[str, float]
    met: bool
    ready: Calibrated = field(repr=False)

    @property
    def worst(self) -> float:
        """The largest error of all tables."""
        return max(self.errors.values())


@dataclass(frozen=True)
class Option:
    """Another policy: what it would buy.

    Attributes
    ----------
    change
        What is different.
    protects
        Who is protected against whom then, in one sentence.
    epsilon
        The epsilon that reaches the targets; None if there is none.
    error
        Largest error at the epsilon of the plan.
    refusal
        Why there is no answer.
    strength
        Whether it is another strength, which the curator may choose; a fact that is public stays so, whatever the policy says.
    """

    change: str
    protects: str
    epsilon: Fraction | None = None
    error: float | None = None
    refusal: str | None = None
    strength: bool = False


@dataclass(frozen=True, repr=False)
class BudgetPlan:
    """Which epsilon reaches an error, what it depends on, and what else could be done.

    Attributes
    ----------
    targets
        For each table the error that it may have.
    measure
        ``"within_95"``: the truth is within the error with probability 95 %; ``"deviation"``: its standard deviation.
    best
        The smallest epsilon of the grid that reaches all targets, with its errors.
    before
        The next smaller epsilon of the grid, which does not; None at the end of the grid.
    options
        Other strengths, and policies without a fact.
    advice
        What is recommended, and why.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 5})
    >>> made = plan(pg.queries.identity(domain), pg.Policy(domain), error=10)
    >>> print(made.epsilon, made.per_table)
    29/100 {'age': 10.0}
    """

    query: Query = field(repr=False)
    policy: Policy | Grouped = field(repr=False)
    targets: Mapping[str, float]
    measure: str
    best: Reached
    before: Reached | None
    options: tuple[Option, ...]
    advice: str
    search: _Search = field(compare=False)
    full: bool = field(default=True, repr=False)

    @cached_property
    def curve(self) -> tuple[Reached, ...]:
        """Errors at usual epsilons, worked out when they are asked for; of a plan without alternatives those at all epsilons that were tried."""
        if not self.full:
            return tuple(self.search.known[epsilon] for epsilon in sorted(self.search.known))
        with shared_proofs():
            return tuple(self.search.reach(Fraction(text)) for text in CURVE)

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that reaches all targets."""
        return self.best.epsilon

    @property
    def per_table(self) -> dict[str, float]:
        """The largest error of each table at this epsilon."""
        return dict(self.best.errors)

    @property
    def certificate(self) -> Sensitivity | None:
        """The certificate with the two tables that must look alike."""
        return self.best.ready.recorded_certificate

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "epsilon": float(self.epsilon),
            "epsilon_exact": str(self.epsilon),
            "measure": self.measure,
            "per_table": self.per_table,
            "targets": dict(self.targets),
            "next_smaller": None
            if self.before is None
            else {"epsilon": float(self.before.epsilon), "per_table": dict(self.before.errors)},
            "mechanism": self.best.ready.mechanism,
            "curve": [{"epsilon": float(each.epsilon), "error": each.worst} for each in self.curve],
            "options": [
                {
                    "change": each.change,
                    "protects": each.protects,
                    "epsilon": None if each.epsilon is None else float(each.epsilon),
                    "error": each.error,
                    "refusal": each.refusal,
                }
                for each in self.options
            ],
            "advice": self.advice,
        }

    def plot(self, path: Any = None) -> Any:
        """Draw the largest error against epsilon, both on logarithmic axes; into a file when a path is given."""
        from policygraph.pictures import check_picture, thousands

        if path is not None:
            check_picture(path)
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        points = sorted({each.epsilon: each.worst for each in (*self.curve, self.best)}.items())
        axes.plot([float(e) for e, _ in points], [w for _, w in points], marker="o", color="#0072b2")
        axes.set_xscale("log")
        axes.set_yscale("log")
        least = min(self.targets.values())
        axes.axhline(least, color="#777777", linestyle="--", linewidth=1)
        # Errors fall with epsilon: there is room below the line on the left, and above it on the right.
        right = float(self.epsilon) ** 2 > float(points[0][0]) * float(points[-1][0])
        axes.annotate(
            f"epsilon = {show(self.epsilon)}: within {self.best.worst:.4g}",
            (float(self.epsilon), self.best.worst),
            textcoords="offset points",
            xytext=(-8, -8) if right else (8, 8),
            ha="right" if right else "left",
            va="top" if right else "bottom",
        )
        for axis in (axes.xaxis, axes.yaxis):
            thousands(axis, logarithmic=True)
        axes.set_xlabel("epsilon")
        axes.set_ylabel(
            f"largest error ({'95 % within, in ' if self.measure == 'within_95' else 'standard deviation, in '}{_people(self.policy)})"
        )
        axes.grid(True, which="major", alpha=0.3)
        if path is not None:
            figure.savefig(path)
        return figure

    def __repr__(self) -> str:
        return f"BudgetPlan(epsilon = {show(self.epsilon)}, {len(self.targets)} tables, {len(self.options)} other choices)"

    def __str__(self) -> str:
        people = _people(self.policy)
        word = "with probability 95 %" if self.measure == "within_95" else "as a standard deviation"
        same = len(set(self.targets.values())) == 1
        goal = (
            f"{next(iter(self.targets.values())):g} {people} in every table"
            if same
            else "the error that was asked of each table"
        )
        lines = [f"epsilon = {show(self.epsilon)} reaches {goal} ({word})."]
        if self.before is not None:
            missed = [name for name, error in self.before.errors.items() if error > self.targets[name]]
            lines.append(
                f"The next smaller one that was tried, {show(self.before.epsilon)}, does not: {missed[0]} would be within {self.before.errors[missed[0]]:.4g}."
                if missed
                else f"The next smaller one is {show(self.before.epsilon)}."
            )
        lines += ["", f"Largest error of each table at epsilon = {show(self.epsilon)}, in {people}:"]
        width = max(map(len, self.per_table))
        lines += [
            f"  {name:<{width}}  {format(error, '8.4g') if error else '   exact'}"
            + ("" if same else f"  (asked: {self.targets[name]:g})")
            for name, error in self.per_table.items()
        ]
        lines += ["", f"Error against epsilon (the largest of all tables, in {people}):"]
        most = max(each.worst for each in self.curve)
        lines += [
            f"  {show(each.epsilon):>6}  {each.worst:10.4g}  {'#' * max(1, round(40 * each.worst / most))}"
            for each in self.curve
        ]
        lines += ["", f"Who is protected against whom: {protection(self.policy)}"]
        if self.certificate is not None and (words := member_words(self.certificate, Epsilon(self.epsilon))):
            lines.append(words)
        lines += self._pair()
        if self.options:
            lines += [
                "",
                "What other choices would buy (a fact is to be left out only if it is really not known to anybody):",
            ]
            lines += [f"  {_option(each, self.epsilon, people)}" for each in self.options]
        return "\n".join([*lines, "", f"Recommendation: {self.advice}"])

    def _pair(self) -> list[str]:
        found = self.certificate
        if found is None or found.witness is None:
            return []
        return [
            "Two data sets that must look alike:",
            *(f"  {line.strip()}" for line in str(found).splitlines()[-2:]),
        ]


def _option(option: Option, epsilon: Fraction, people: str) -> str:
    if option.epsilon is None or option.error is None:
        return f"{option.change}: {option.refusal}"
    words = f"{option.change}: epsilon = {show(option.epsilon)} would do; at epsilon = {show(epsilon)} the largest error would be {option.error:.4g} {people}."
    return f"{words} It protects {option.protects}" if option.strength else words


def _people(policy: Policy | Grouped) -> str:
    return "edges" if isinstance(policy.domain, Network) else "people"


def protection(policy: Policy | Grouped) -> str:
    """Who is protected against whom, in a sentence about people.

    Examples
    --------
    >>> import policygraph as pg
    >>> print(protection(pg.Policy(pg.Domain({"age": 3}))))
    every person, against somebody who knows everybody else: the release does not tell whether the person is in the data, nor what the record says.
    """
    if isinstance(policy, Unit):
        return (
            f"everything of one {policy.column} ({policy.words}), against somebody who knows everybody else."
            + (f" And {policy.larger_words}" if policy.larger_words else "")
        )
    if isinstance(policy, LinkedUnit):
        return f"everything of {policy.words}, against somebody who knows all others" + (
            "." if not policy.totals else f": {policy.step_words}."
        )
    if not isinstance(policy, Policy):
        return f"families of up to {policy.members} people, who count as one. For a single record of theirs: {protection(policy.records)}"
    person = "edge" if isinstance(policy.domain, Network) else "person"
    if policy.graph is not None and not policy.constraints:
        return (
            f"every {person}, against somebody who knows everybody else: the release does not tell the true value from those that the policy graph joins to it. "
            f"{policy.graph.describe()}"
        )
    if not policy.constraints:
        return f"every {person}, against somebody who knows everybody else: the release does not tell whether the {person} is in the data, nor what the record says."
    if policy.graph is not None:
        return (
            f"every {person}, against somebody who knows the published tables: the release does not tell the true value from those that the policy graph joins to it, "
            "together with all changes of others that the published tables then force."
        )
    words = STRENGTHS if person == "person" else STRENGTHS_OF_EDGES
    return words[policy.strength] + (
        ""
        if policy.at_most_records is None
        else f" Only changes that add at most {policy.at_most_records} and remove at most {policy.at_most_records} count."
    )


STRENGTHS = {
    "worst-case": "every group of people, against somebody who knows the published tables and everybody outside the group: whatever exchange of values inside the group keeps the published "
    "tables and cannot be split into smaller ones that do, the release does not tell whether it happened, however many people it involves.",
    "positive": "every person, against somebody who knows the published tables and wonders whether the person is in one cell or in another: the others who must then differ are the fewest that "
    "keep the published tables. Longer exchanges that nothing needs are not hidden.",
    "markov": "two people who swap values so that the published tables stay as they are (at most four counts change, each by one). Exchanges among three and more people are not hidden.",
}
STRENGTHS_OF_EDGES = {
    "worst-case": "every set of edges, against somebody who knows the public facts and all other edges: whatever exchange of edges keeps the public facts and cannot be split into smaller "
    "ones that do, the release does not tell whether it happened, however many edges it involves.",
    "positive": "every edge, against somebody who knows the public facts and wonders whether the edge is in one place or in another: the others that must then differ are the fewest that keep "
    "the public facts. Longer exchanges that nothing needs are not hidden.",
    "markov": "two edges that make place for two others so that the public facts stay as they are (at most four counts change, each by one). Exchanges of three and more edges are not hidden.",
}


def _grid(at: int) -> Fraction:
    """Epsilon number ``at`` of the grid: two digits, 0.00010, 0.00011, ... 990, 1000."""
    decade, step = divmod(at, 90)
    return Fraction(10 + step, 10) * Fraction(10) ** (LEAST + decade)


LAST = 90 * (MOST - LEAST)


def _at(epsilon: float) -> int:
    """Number of the grid point next to an epsilon."""
    if epsilon <= 10.0**LEAST:
        return 0
    if epsilon >= 10.0**MOST:
        return LAST
    decade = floor(log10(epsilon))
    return min(LAST, max(0, 90 * (decade - LEAST) + round((epsilon / 10.0**decade - 1) * 10)))


class _Search:
    """Errors of a query under a policy at the epsilons of the grid, each worked out once."""

    def __init__(
        self,
        query: Query,
        policy: Policy | Grouped,
        targets: Mapping[str, float],
        measure: str,
        mechanism: Any,
        tell: Callable[[str], None],
    ) -> None:
        self.query, self.targets, self.measure = query, targets, measure
        self.policy: Any = policy
        self.mechanism, self.tell = mechanism, tell
        self.known: dict[Fraction, Reached] = {}

    def reach(self, epsilon: Fraction) -> Reached:
        """Errors at an epsilon."""
        if epsilon not in self.known:
            self.tell(f"trying epsilon = {show(epsilon)}")
            loss = Epsilon(epsilon)
            ready = (
                calibrated_under(self.mechanism, self.query, self.policy, loss)
                if isinstance(self.mechanism, Mechanism)
                else choose(self.query, self.policy, loss)
            )
            errors: dict[str, float] = {}
            for at, part in enumerate(self.query.parts):
                stated = ready.within_95(at) if self.measure == "within_95" else ready.deviation(at)
                errors[part.name] = max(errors.get(part.name, 0.0), float(np.max(stated, initial=0.0)))
            met = all(error <= self.targets[name] for name, error in errors.items())
            self.known[epsilon] = Reached(epsilon, errors, met, ready)
        return self.known[epsilon]

    def ratio(self, found: Reached) -> float:
        """How much too large the errors are, at worst."""
        return max((error / self.targets[name] for name, error in found.errors.items()), default=0.0)

    def least(self) -> tuple[Reached, Reached | None]:
        """The smallest epsilon that is found to reach the targets while the one before it does not, and that one.

        Notes
        -----
        Errors are about inverse to epsilon, which says where to look; then steps of doubling size and bisection, on the grid. If errors did not fall everywhere, the result would
        still reach the targets and the point before it would not.
        """
        ratio = self.ratio(self.reach(Fraction(1)))
        if ratio == 0:
            return self.reach(_grid(0)), None
        at = _at(ratio)
        low, high, step = -1, LAST + 1, 1
        while high - low > 1:
            if self.reach(_grid(at)).met:
                high = at
                at = max(low + 1, at - step) if low == -1 else (low + high) // 2
            else:
                low = at
                at = min(high - 1, at + step) if high == LAST + 1 else (low + high) // 2
            step *= 2
            if low == LAST:
                break
        if high > LAST:
            most = self.reach(_grid(LAST))
            raise RefusedError(
                f"no epsilon up to {show(_grid(LAST))} reaches the error that was asked: there the largest error is {most.worst:.4g}. Ask for fewer tables, or for a larger error.",
                code="plan.none",
            )
        return self.reach(_grid(high)), self.reach(_grid(high - 1)) if high else None


def plan(
    query: Query,
    policy: Policy | Grouped,
    *,
    error: Any = None,
    tables: Mapping[str, Any] | None = None,
    relative: Exact | None = None,
    records: int | None = None,
    measure: str = "within_95",
    mechanism: Mechanism | None = None,
    alternatives: bool = True,
    time_limit: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> BudgetPlan:
    """Find the epsilon that reaches an error, without data.

    Parameters
    ----------
    query, policy
        What would be released, and what it must hide.
    error
        Error that every count may have, in people.
    tables
        Errors of single tables, by name, in place of ``error``.
    relative
        In place of ``error``: a share of the average count of each table, which needs ``records``, or a published total.
    records
        About how many records there are, for ``relative``.
    measure
        ``"within_95"``: the truth is within the error with probability 95 %. ``"deviation"``: standard deviation.
    mechanism
        What releases; by default what would be chosen automatically, at each epsilon.
    alternatives
        Whether to work out what other strengths and dropped facts would buy, and the errors at usual epsilons.
    time_limit
        Seconds for all searches of sensitivities, where a limit in time is wanted.
    progress
        Called with a few words before each step.

    Raises
    ------
    InputError
        For errors that are no positive numbers, or names that are no tables.
    RefusedError
        If no epsilon up to 1,000 reaches the error.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
    >>> made = plan(pg.queries.identity(domain), policy, error=20)
    >>> print(made.epsilon, [(each.change, str(each.epsilon)) for each in made.options][2:])
    41/100 [('if cuboid sex were not public', '3/20'), ('if cuboid age were not public', '1/4')]
    """
    if isinstance(query, NonlinearQuery):
        raise RefusedError(
            "a network statistic that is not linear has errors that depend on the network: expected counts. policygraph explain tells its noise.",
            code="plan.statistic",
        )
    if measure not in MEASURES:
        raise InputError(
            f"measure={measure!r}: expected within_95 or deviation.", code="plan.measure", value=measure
        )
    tell = progress or (lambda now: None)
    targets = _targets(query, policy, error, tables, relative, records)
    with shared_proofs(time_limit):
        search = _Search(query, policy, targets, measure, mechanism, tell)
        best, before = search.least()
        options = _options(search, best.epsilon) if alternatives else ()
    made = BudgetPlan(query, policy, targets, measure, best, before, options, "", search, alternatives)
    return replace(made, advice=_advice(made))


def _positive(value: Any, what: str) -> float:
    number = as_float(value, what)
    if number <= 0:
        raise InputError(
            f"{what} = {shown(value)}: expected a positive number, of at least 5e-324.",
            code="plan.error",
            value=value,
        )
    return number


def _targets(
    query: Query,
    policy: Policy | Grouped,
    error: Any,
    tables: Mapping[str, Any] | None,
    relative: Any,
    records: int | None,
) -> dict[str, float]:
    names = list(dict.fromkeys(part.name for part in query.parts))
    for name in tables or ():
        if name not in names:
            raise InputError(
                f"table {name!r}: expected one of {', '.join(map(repr, names[:12]))}{', ...' if len(names) > 12 else ''}.",
                code="plan.table",
                value=name,
            )
    if (error is None) == (relative is None) and not (error is None and tables):
        raise InputError(
            "which error do you accept? Expected one of error (--error 50: every count within 50 people) and relative (--relative 0.05: within 5 % of the average count).",
            code="plan.error",
        )
    out: dict[str, float] = {}
    if relative is not None:
        share, many = _positive(relative, "relative"), _records(policy, records)
        heights: dict[str, int] = {}
        for part in query.parts:
            heights[part.name] = heights.get(part.name, 0) + part.height
        out = {name: share * many / heights[name] for name in names}
    elif error is not None:
        out = dict.fromkeys(names, _positive(error, "error"))
    out |= {name: _positive(value, f"error of {name}") for name, value in (tables or {}).items()}
    # A table of which nothing is asked may have any error.
    return {name: out.get(name, float("inf")) for name in names}


def _records(policy: Policy | Grouped, records: int | None) -> int:
    if records is not None:
        if (
            not isinstance(records, (int, np.integer))
            or isinstance(records, bool)
            or not 1 <= records <= MOST_RECORDS
        ):
            raise InputError(
                f"records = {shown(records)}: expected a whole number of records, from 1 to 10^18.",
                code="plan.error",
                value=records,
            )
        return int(records)
    if isinstance(policy, LinkedUnit) and policy.totals:
        return max(1, *(value for _, value in policy.totals))
    for fact in records_of(policy).constraints:
        spec = fact.to_spec()
        if spec.get("equals") is not None and ("total" in spec or "cuboid" in spec):
            return max(1, int(np.sum(fact.values(policy.domain) or (), dtype=object)))
    raise InputError(
        "relative errors need the number of records: give it (--records 200000, in Python records=200_000), or state a published total in the policy.",
        code="plan.error",
    )


def _options(search: _Search, epsilon: Fraction) -> tuple[Option, ...]:
    policy = search.policy
    if not isinstance(policy, Policy):
        return ()
    others: list[tuple[str, Policy]] = []
    if policy.definition == "induced" and policy.constraints:
        for word in ("worst-case", "positive", "markov"):
            if word != policy.strength:
                others.append((f"strength = {word!r}", policy.with_strength(word, policy.at_most_records)))
    facts = policy.constraints if len(policy.constraints) <= 8 else ()
    others += [(f"if {name_of(fact, policy.domain)} were not public", policy.without(fact)) for fact in facts]
    out = []
    for change, other in others:
        inner = _Search(
            search.query,
            other,
            search.targets,
            search.measure,
            search.mechanism,
            lambda now, what=change: search.tell(f"{what}: {now}"),  # type: ignore[misc]
        )
        said, strength = protection(other), other.strength != policy.strength
        try:
            found, _ = inner.least()
            out.append(Option(change, said, found.epsilon, inner.reach(epsilon).worst, strength=strength))
        except PolicyGraphError as refusal:
            out.append(Option(change, said, refusal=str(refusal), strength=strength))
    return tuple(out)


def _advice(made: BudgetPlan) -> str:
    """What to do, by a rule: the strongest promise that needs at most twice the epsilon of the cheapest one."""
    epsilon = made.epsilon
    size = (
        f"epsilon = {show(epsilon)} is strong protection (at most 1)"
        if epsilon <= 1
        else f"epsilon = {show(epsilon)} is moderate protection (up to 5)"
        if epsilon <= 5
        else f"epsilon = {show(epsilon)} is weak protection (above 5): accept a larger error, fewer tables or coarser bins"
    )
    if not isinstance(made.policy, Policy):
        return f"{size}."
    needed: dict[str, Fraction] = {made.policy.strength: epsilon}
    for each in made.options:
        if each.strength and each.epsilon is not None:
            needed[each.change.partition("'")[2].rstrip("'")] = each.epsilon
    least = min(needed.values())
    best = next(name for name in STRENGTHS if name in needed and needed[name] <= WORTH * least)
    if len(needed) == 1:
        return f"{size}."
    if best == made.policy.strength:
        saved = "nothing" if least == epsilon else "at most half of the epsilon"
        return (
            f"{size}. Keep strength = {best!r}: weaker promises would save {saved}, and hide less."
            if best != "markov"
            else f"{size}. Keep it."
        )
    if needed[best] > epsilon:
        return f"{size}. Prefer strength = {best!r}: it hides more, and needs epsilon = {show(needed[best])}, not more than twice the least."
    return (
        f"{size}. Consider strength = {best!r}: it reaches the same error with epsilon = {show(needed[best])}; what it gives up is said above. Keep {made.policy.strength!r} if an attacker may know, "
        "or be, many of the people."
    )
