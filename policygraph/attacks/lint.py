"""One page on what an attacker learns, for somebody who decides. Owns :func:`attack` and :class:`Attack`.

Numbers that need no data: the loss of a plain release against somebody who knows the stated facts, what the best linear estimate finds, and what further
published tables would cost. With data, for the curator: facts that nobody stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf, isfinite, sqrt
from pathlib import Path
from textwrap import fill, shorten
from typing import Any

import numpy as np

from policygraph.attacks.linear import reconstruct
from policygraph.attacks.odds import (
    EffectiveEpsilon,
    certainty,
    check_facts,
    effective_epsilon,
    every_change,
)
from policygraph.attacks.unstated import CURATOR_ONLY, UnstatedFact, unstated_facts
from policygraph.distributions import laplace_variance
from policygraph.distributions.noise import Noise
from policygraph.effort import SECOND
from policygraph.errors import InputError, PolicyGraphError
from policygraph.exact import Exact, show
from policygraph.model.constraints import Constraint, Cuboid, Degrees, StructuralZero, Total
from policygraph.model.constraints.base import AnyDomain
from policygraph.model.domain import Network
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.model.system import describe
from policygraph.model.units import Unit
from policygraph.output import replacing
from policygraph.sensitivity.certificate import Sensitivity, Witness
from policygraph.sensitivity.proofs import CUT_SHORT, proved, shared_proofs

__all__ = ["Attack", "Further", "attack"]

EACH = 2 * SECOND
"""Units of work for the sensitivity under each further fact, of which there are many."""
MOST_FURTHER = 12
"""Most further tables whose cost is computed."""
SURE = 0.25
"""A normal error with at most this deviation is below one half in 95 % of cases: then rounding gives the true count."""
MORE = 0.999
"""Probabilities from here on are told as more than 99.9 %."""


@dataclass(frozen=True)
class Further:
    """What would change if one more fact were public.

    Attributes
    ----------
    fact, words
        The fact, by its name and for people.
    sensitivity
        Of the release under the policy with the fact; None where it could not be computed, with the reason in ``refusal``.
    effective
        Loss of the plain release against somebody who knows it, too.
    noise
        Noise under the policy with the fact, as a multiple of the noise now.
    """

    fact: str
    words: str
    sensitivity: Sensitivity | None
    effective: Fraction | None
    noise: Fraction | None
    refusal: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        found = self.sensitivity
        return {
            "fact": self.fact,
            "sensitivity": None if found is None else float(found.value),
            "kind": None if found is None else found.kind,
            "effective_epsilon_without_facts": None if self.effective is None else float(self.effective),
            "noise_factor": None if self.noise is None else float(self.noise),
            "refusal": self.refusal,
        }

    def __str__(self) -> str:
        found = self.sensitivity
        if found is None:
            return f"{self.words}: {self.refusal}"
        if not found.power:
            return f"{self.words}: they would determine all that is released"
        told = (
            ""
            if self.effective is None
            else f"; a plain release would lose {'' if found.exact else 'up to '}epsilon = {_number(self.effective)}"
        )
        if self.noise is None:
            return f"{self.words}: need noise where none is needed now{told}"
        if not found.exact:
            least = (
                f"{_short(float(self.noise * found.lower / found.value))} to" if found.lower else "at most"
            )
            return f"{self.words}: {least} {_short(float(self.noise))} times the noise of now{told}"
        cost = "the same noise" if self.noise == 1 else f"{_short(float(self.noise))} times the noise of now"
        return f"{self.words}: {cost}{told}"


@dataclass(frozen=True)
class Attack:
    """What somebody who knows the public facts learns from a plain release, and from one under the policy.

    Attributes
    ----------
    query, policy
        What is released under what.
    losses
        Effective losses and the two sensitivities.
    plain_deviation, policy_deviation
        Standard deviation of the attacker's best linear estimate of the cell that it tells best, from the plain release and under the policy; None where it was not computed.
    cell
        That cell.
    known_cells
        Cells that the facts alone determine, which no noise could protect.
    further
        What more facts would cost.
    unstated
        Facts that the data satisfy and nobody stated; for the curator only. None without data.
    note
        Why a number is missing.
    cut_short
        Whether a limit in seconds ended a search.
    """

    query: Query
    policy: Policy | Grouped
    losses: EffectiveEpsilon
    plain_deviation: float | None
    policy_deviation: float | None
    cell: int | None
    known_cells: int
    further: tuple[Further, ...]
    unstated: tuple[UnstatedFact, ...] | None = None
    note: str = ""
    cut_short: bool = False

    @property
    def pair(self) -> dict[str, Any] | None:
        """The two data sets that a plain release tells apart; None where nothing can change. The policy hides them from each other, unless it hides fewer changes than the facts leave."""
        found = self._shown.witness
        if found is None:
            return None

        def table(rows: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
            return [{"cell": list(self.query.cell(c)), "index": c, "count": x} for c, x in rows]

        return {"before": table(found.before), "after": table(found.after)}

    @property
    def _shown(self) -> Sensitivity:
        """The sensitivity whose pair is shown: of all changes that keep the facts, where their largest is known."""
        losses = self.losses
        every = losses.every
        return every if every is not None and every.lower_power > losses.known.lower_power else losses.known

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        losses = self.losses
        most, beyond = losses.without_facts, losses.beyond_policy
        made: dict[str, Any] = {
            "epsilon": float(losses.epsilon),
            "effective_epsilon_without_facts": None if most is None else float(most),
            "effective_epsilon_without_facts_lower": float(losses.without_facts_lower),
            "effective_epsilon": float(losses.with_facts),
            "effective_epsilon_lower": float(losses.with_facts_lower),
            **(
                {"effective_epsilon_beyond_policy": None if beyond is None else float(beyond)}
                if losses.weaker
                else {}
            ),
            "exact": losses.exact,
            "certainty_without_facts": certainty(losses.without_facts_lower),
            "certainty": certainty(losses.with_facts),
            "sensitivity_without_facts": float(losses.plain.value),
            "sensitivity": float(losses.known.value),
            "worst_cell_deviation": _finite(self.plain_deviation),
            "worst_cell_deviation_under_policy": _finite(self.policy_deviation),
            "worst_cell": None if self.cell is None else list(self.query.cell(self.cell)),
            "known_cells": self.known_cells,
            "pair": self.pair,
            "further": [each.to_dict() for each in self.further],
            "note": self.note or None,
            **({"cut_short": True} if self.cut_short else {}),
        }
        if self.unstated is not None:
            made["unstated"] = {
                "warning": CURATOR_ONLY,
                "facts": [
                    {
                        "words": fact.words,
                        "kind": fact.kind,
                        "fact": None if fact.constraint is None else fact.constraint.to_spec(),
                        "chance": fact.chance,
                    }
                    for fact in self.unstated
                ],
            }
        return made

    def __str__(self) -> str:
        losses = self.losses
        lines = [CUT_SHORT] if self.cut_short else []
        lines += [
            f"What somebody learns who knows: {_knowledge(self.policy)}",
            "",
            f"Plain differential privacy at epsilon = {_number(losses.epsilon)} (noise for {_plainly(self.policy)}; facts not considered):",
            f"  {self._really()}",
            *self._estimate("  ", self.plain_deviation),
            "",
            f"Under this policy at epsilon = {_number(losses.epsilon)}:",
            *(f"  {line}" for line in self._promise()),
            *self._estimate("  ", self.policy_deviation),
        ]
        if losses.known.power:
            factor = losses.known.value / losses.plain.value if losses.plain.value else Fraction(0)
            price = (
                "none, the noise is the same"
                if factor == 1
                else f"{_short(float(factor))} times the noise on each number"
            )
            lines.append(f"  The price: {price}.")
        shown = self._shown
        if shown.witness is not None:
            same = "with the same public facts " if records_of(self.policy).constraints else ""
            apart = (
                "that a plain release tells apart" if shown is not losses.known else "that must look alike"
            )
            lines += [
                "",
                f"Two data sets {same}{apart}, all other {_thing(self.policy.domain)}s being the same:",
                *(f"  one with {shown._show_table(rows)}" for rows in _apart(shown.witness)),
            ]
        if self.known_cells:
            one = self.known_cells == 1
            lines += [
                "",
                f"The facts alone determine {self.known_cells:,} {'cell' if one else 'cells'}: no noise protects {'it' if one else 'these'}.",
            ]
        if self.further:
            lines += [
                "",
                "If one more table were published exactly:",
                *(f"  {each}" for each in self.further),
            ]
        if self.unstated is not None:
            lines += ["", CURATOR_ONLY]
            lines += [f"  {fact.words}" for fact in self.unstated] or [
                "  none was found among tables of one and two attributes."
            ]
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines)

    def _sure(self) -> tuple[str, Fraction]:
        """The loss of a plain release that is told: the true one, what it loses at least, or at most where no pair of data sets was found."""
        losses = self.losses
        if losses.exact and losses.without_facts is not None:
            return "", losses.without_facts
        least, most = losses.without_facts_lower, losses.without_facts
        return ("at least ", least) if least or most is None else ("at most ", most)

    def _really(self) -> str:
        """What a plain release really loses."""
        losses = self.losses
        word, sure = self._sure()
        most = losses.without_facts
        if word == "" and not sure:
            return "loses nothing: the facts leave nothing open that is released."
        if most is None:
            told = f"really loses at least epsilon = {_number(sure)}; no bound for all that the facts leave open was found"
        elif word == "at least ":
            told = f"really loses up to epsilon = {_number(most)}, and at least {_number(sure)}"
        else:
            told = f"really loses {'up to ' if word else ''}epsilon = {_number(most)}"
        rest = " How much of this is really lost was not found." if word == "at most " else ""
        return f"{told}: from 50 : 50 this person can become {_certain(sure, most=word == 'at most ')} sure which of two data sets is the true one.{rest}"

    def _promise(self) -> list[str]:
        """What the release under the policy loses, and what a weaker policy leaves open."""
        losses = self.losses
        if losses.known.power:
            lines = [
                f"loses at most epsilon = {_number(losses.with_facts)}: {_certain(losses.with_facts, most=True)} sure."
            ]
        else:
            lines = ["no change that the policy hides shows in what is released, so that it gets no noise."]
        beyond, every = losses.beyond_policy, losses.changes
        if not losses.weaker or (beyond is not None and beyond <= losses.with_facts):
            return lines
        records = records_of(self.policy)
        hidden = (
            f"at most {records.at_most_records} record{'s' * (records.at_most_records != 1)} added and as many removed"
            if records.at_most_records is not None
            else f"{records.strength} changes only"
        )
        if every is None:
            told = "no bound is known"
        elif beyond is None:
            told = "nothing is hidden"
        else:
            told = f"it loses {'' if every.exact and losses.known.exact else 'up to '}epsilon = {_number(beyond)}, {_certain(beyond, most=True)} sure"
        return [
            *lines,
            f"It hides less than the facts leave open ({hidden}): between other data sets {told}.",
        ]

    def _estimate(self, indent: str, deviation: float | None) -> list[str]:
        if deviation is None or self.cell is None or not isfinite(deviation):
            return []
        name = ", ".join(str(label) for label in self.query.cell(self.cell))
        if not deviation:
            return [f"{indent}The count of ({name}) is released as it is."]
        text = f"{indent}The best linear estimate of the count of ({name}) is off by {_records(deviation, self.policy.domain)} (standard deviation)"
        if deviation <= SURE:
            return [f"{text}: rounded, it is the true count in at least 95 of 100 cases."]
        return [f"{text}."]

    def plot(self, target: str | Path) -> None:
        """Draw both releases side by side into a picture file: how sure, and how well a count is known.

        Raises
        ------
        InputError
            When matplotlib is missing, or the file cannot be a picture.
        """
        from policygraph.pictures import check_picture

        check_picture(target)
        from matplotlib.figure import Figure

        red, green = "#c0392b", "#1e8449"
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
        losses = self.losses
        told, plain = self._sure()
        hidden = "\nwhere it hides" if losses.weaker else ""
        bars = [
            ("plain noise,\nas promised", "", "#95a5a6", losses.epsilon),
            ("plain noise, against\nsomebody who\nknows the facts", told, red, plain),
            (f"under this policy{hidden}", "", green, losses.with_facts),
        ]
        for at, (_, word, colour, loss) in enumerate(bars):
            sure = certainty(loss)
            left.bar(at, 100 * sure - 50, bottom=50, color=colour, width=0.62)
            text = "more than 99.9 %" if sure >= MORE else f"{word}{_percent(sure)}"
            left.text(at, 100 * sure + 0.8, f"{text}\nε = {_number(loss)}", ha="center", va="bottom")
        left.set_xticks(range(3), [name for name, *_ in bars])
        left.set_ylim(50, 112)
        left.set_yticks(range(50, 101, 10), [f"{x} %" for x in range(50, 101, 10)])
        left.set_title("How sure can somebody become\nwho starts from 50 : 50?")
        left.spines[["top", "right"]].set_visible(False)
        self._draw_estimates(right, red, green)
        with replacing(target) as draft:
            figure.savefig(draft, dpi=150)

    def _draw_estimates(self, axes: Any, red: str, green: str) -> None:
        name = "" if self.cell is None else ", ".join(str(label) for label in self.query.cell(self.cell))
        if not self.plain_deviation or not self.policy_deviation or not isfinite(self.plain_deviation):
            axes.set_axis_off()
            axes.set_title("How well is a count known?")
            said = self.note or (
                f"The count of ({name}) is released as it is."
                if self.cell is not None
                else "The facts leave nothing to estimate."
            )
            axes.text(0.5, 0.5, fill(said, 56), ha="center", va="center", transform=axes.transAxes)
            return
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_yticks([])
        domain = self.policy.domain
        for deviation, colour, text in (
            (
                self.policy_deviation,
                green,
                f"under this policy: off by {_records(self.policy_deviation, domain)}",
            ),
            (self.plain_deviation, red, f"plain noise: off by {_records(self.plain_deviation, domain)}"),
        ):
            at = np.linspace(-4, 4, 401) * deviation
            height = np.exp(-0.5 * (at / deviation) ** 2)
            axes.fill_between(at, height, color=colour, alpha=0.35, linewidth=0)
            axes.plot(at, height, color=colour, label=text)
        axes.plot([0, 0], [0, 1.06], color="black", linewidth=0.8, linestyle=":", zorder=0)
        wide = 3.3 * max(self.plain_deviation, self.policy_deviation)
        axes.set_xlim(-wide, wide)
        axes.set_ylim(0, 1.35)
        axes.set_xlabel(f"{_thing(domain)}s off the true count (normal shapes, drawn equally high)")
        axes.set_title(f"How well does the attacker know the count\nof ({shorten(name, 60)})?")
        axes.legend(loc="upper right", frameon=False, reverse=True)


def _knowledge(policy: Policy | Grouped) -> str:
    """What the attacker knows, in words."""
    facts = records_of(policy).constraints
    words = [_in_words(fact, policy.domain) for fact in facts[:6]]
    if isinstance(policy, Families):
        words.insert(0, f"that families of {policy.words} change together")
    elif isinstance(policy, LinkedUnit):
        words = [f"that {policy.step_words}"]
    elif isinstance(policy, Unit):
        words.insert(0, f"that {policy.step_words}")
    return "; ".join(words) + (f"; and {len(facts) - 6} more facts" if len(facts) > 6 else "")


def _in_words(fact: Constraint, domain: AnyDomain) -> str:
    """A fact for people who do not know the words of the field."""
    if isinstance(fact, Total) or (isinstance(fact, Cuboid) and not fact.names):
        return f"the exact number of {_thing(domain)}s"
    if isinstance(fact, Cuboid):
        *first, last = fact.names
        return f"the exact counts by {', '.join(first)}{' and ' if first else ''}{last}"
    if isinstance(fact, StructuralZero):
        count = fact.n_rows(domain)
        return "that one cell is always empty" if count == 1 else f"that {count:,} cells are always empty"
    if isinstance(fact, Degrees):
        return f"the {describe(fact, domain)}"
    return describe(fact, domain)


def _percent(share: float) -> str:
    """A probability for people: never rounded up to certainty."""
    return f"{100 * share:.1f} %" if share < MORE else "more than 99.9 %"


def _certain(epsilon: Fraction, *, most: bool = False) -> str:
    """How sure somebody can become who starts from 50 : 50, or at most."""
    share = certainty(epsilon)
    return f"{'at most ' if most and share < MORE else ''}{_percent(share)}"


def _number(value: Fraction) -> str:
    """A loss for people: exact where that is short."""
    exact = show(value)
    return exact if len(exact) < 9 and "/" not in exact else f"{float(value):.4g}"


def _apart(witness: Witness) -> tuple[tuple[tuple[int, int], ...], ...]:
    """What each of two data sets has that the other has not."""
    sides = dict(witness.before), dict(witness.after)
    return tuple(
        tuple((cell, count - two.get(cell, 0)) for cell, count in one.items() if count > two.get(cell, 0))
        for one, two in (sides, sides[::-1])
    )


def _short(value: float) -> str:
    """A number with three digits, and large ones in full."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _thing(domain: AnyDomain) -> str:
    """What is counted."""
    return "edge" if isinstance(domain, Network) else "record"


def _records(deviation: float, domain: AnyDomain) -> str:
    text = _short(deviation)
    return f"{text} {_thing(domain)}{'' if text == '1' else 's'}"


def _finite(deviation: float | None) -> float | None:
    return None if deviation is None or not isfinite(deviation) else deviation


def _plainly(policy: Policy | Grouped) -> str:
    if records_of(policy).graph is not None:
        return "one record along the policy graph"
    return f"one {_thing(policy.domain)} more or less"


def attack(
    query: Query,
    policy: Policy | Grouped,
    epsilon: Exact,
    data: Any = None,
    *,
    columns: Any = None,
    edges: Any = None,
    engine: Any = None,
    further: bool = True,
    time_limit: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Attack:
    """Say what somebody who knows the public facts learns from a plain release, and what under the policy.

    Parameters
    ----------
    query, policy
        What is released, and the facts.
    epsilon
        The loss of both releases, Laplace noise on every answer.
    data
        For the curator: the data, to look for facts that nobody stated. What is found has no noise and is not to be published.
    columns, edges, engine
        How to read the data; as for :func:`policygraph.release`.
    further
        Whether to say what each further public table would cost, which takes most of the time.
    time_limit
        Seconds for all searches, where a limit in time is wanted; a result that it cut short says so.
    progress
        Called with a few words before each step.

    Returns
    -------
    Attack
        Printed as a page in words; ``plot`` draws it, ``to_dict`` is its plain form.

    Raises
    ------
    InputError
        When the policy states no public fact, or the query is not one of counts.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"r": 16})
    >>> chain = pg.Policy(domain, constraints=[pg.count({"r": [i, i + 1]}) for i in range(15)])
    >>> found = attack(pg.queries.identity(domain), chain, 1)
    >>> found.losses.without_facts, found.losses.with_facts
    (Fraction(16, 1), Fraction(1, 1))
    >>> round(found.plain_deviation, 4), round(found.policy_deviation, 4)
    (0.3536, 5.6569)

    Notes
    -----
    The plain release has Laplace noise of scale Delta_0 / epsilon on every answer, where Delta_0 is the sensitivity without the facts; deviations are those of continuous Laplace noise, 2 scale^2. Of the cells that the facts leave open, the one that the estimate knows best
    is shown. An attacker may do better than a linear estimate, never worse.
    """
    check_facts(policy)
    if isinstance(query, NonlinearQuery) or query.needs_values:
        raise InputError(
            f"{query!r} is not a linear query of counts: expected tables, ranges or edges.",
            code="attacks.queries",
        )
    tell = progress or (lambda now: None)
    counts = None
    if data is not None:
        from policygraph.curator.counting import read_data

        tell("counting the records")
        counts = read_data(data, records_of(policy), columns, edges, engine)
    with shared_proofs(time_limit) as proofs:
        tell("computing the sensitivity")
        losses = effective_epsilon(query, policy, epsilon)
        tell("estimating the cells")
        plain, under, cell, known, note = best_known_cell(query, policy, losses)
        costs = tuple(_further(query, policy, losses, tell)) if further else ()
    unstated = None
    if counts is not None:
        tell("looking for facts that nobody stated")
        unstated = tuple(unstated_facts(records_of(policy), counts))
    return Attack(query, policy, losses, plain, under, cell, known, costs, unstated, note, proofs.cut_short)


def best_known_cell(
    query: Query, policy: Policy | Grouped, losses: EffectiveEpsilon
) -> tuple[float | None, float | None, int | None, int, str]:
    """Deviation of the best-known open cell from both releases, the cell, and how many cells the facts determine."""
    scale = losses.plain.value / query.unit / losses.epsilon
    if not scale:
        return (
            None,
            None,
            None,
            0,
            "No record can change what is released, so that there is nothing to estimate from.",
        )
    try:
        laplace_variance(scale)  # refuses a scale of which no square is a float
        noise = Noise("Laplace", scale, 2 * float(scale) ** 2, 0)
        found = reconstruct(records_of(policy), query, noise)
        variances = found.variance([0]) if found.uniform else found.variance()
    except PolicyGraphError as refusal:
        return None, None, None, 0, f"The best linear estimate was not computed: {refusal}"
    tiny = 1e-12 * float(scale) ** 2
    open_cells = np.flatnonzero(variances > tiny)
    known = 0 if found.uniform and len(open_cells) else len(variances) - len(open_cells)
    if not len(open_cells):
        return (
            None,
            None,
            None,
            policy.domain.size,
            "The facts alone determine every cell: whoever knows them knows the table, whatever is released.",
        )
    cell = int(open_cells[np.argmin(variances[open_cells])])
    plain = sqrt(float(variances[cell]))
    if not isfinite(plain):
        return inf, inf, cell, known, "No single cell can be estimated from what is released."
    return plain, plain * float(losses.known.value / losses.plain.value), cell, known, ""


def _candidates(policy: Policy) -> list[Constraint]:
    """Further tables that could be published: of one and two attributes that do not follow from the facts; over networks the total and degrees."""
    if isinstance(policy.domain, Network):
        sides = ("out", "in") if policy.domain.directed else ("both",)
        made: list[Constraint] = [Total(), *(Degrees("all", side=side) for side in sides)]
    else:
        names = [n for n, size in zip(policy.domain.names, policy.domain.shape, strict=True) if size > 1]
        sets = [(), *((name,) for name in names), *combinations(names, 2)]
        made = [
            Cuboid(*each) if each else Total()
            for each in sets
            if len(each) < max(2, len(policy.domain.names)) or not each
        ]
        made = [
            fact
            for fact in made
            if not isinstance(fact, Cuboid) or len(fact.names) < len(policy.domain.names)
        ]
    return [fact for fact in made if not _stated(policy, fact)][:MOST_FURTHER]


def _stated(policy: Policy, fact: Constraint) -> bool:
    """Whether a fact follows at sight from the stated ones: a table from one with its attributes, whether or not its counts are at hand."""
    if isinstance(fact, (Cuboid, Total)):
        names = set(fact.names) if isinstance(fact, Cuboid) else set()
        if any(isinstance(each, Cuboid) and names <= set(each.names) for each in policy.constraints):
            return True
    both = Policy(policy.domain, policy.graph, [*policy.constraints, fact])
    return any(each is fact for each in both.system.redundant) or fact in policy.constraints


def _further(
    query: Query, policy: Policy | Grouped, losses: EffectiveEpsilon, tell: Callable[[str], None]
) -> Any:
    now = records_of(policy)
    if isinstance(policy, (Unit, LinkedUnit)) or (isinstance(policy, Families) and not policy.exactly):
        return  # no bound is proved for any of them
    for fact in _candidates(now):
        name, words = describe(fact, policy.domain), _in_words(fact, policy.domain)
        tell(f"if {name} were public, too")
        more = Policy(
            policy.domain,
            now.graph,
            [*now.constraints, fact],
            now.strength,
            now.at_most_records,
            now.unknown,
        )
        try:
            found = proved(query, policy.over(more) if isinstance(policy, Grouped) else more, work=EACH)
        except PolicyGraphError as refusal:
            yield Further(name, words, None, None, None, str(refusal))
            continue
        told = EffectiveEpsilon(losses.epsilon, losses.plain, found, every_change(query, more, EACH))
        noise = found.value / losses.known.value if losses.known.value else None
        yield Further(name, words, found, told.without_facts, noise)
