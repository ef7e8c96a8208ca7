"""What somebody could learn from a release. Owns :func:`attacker`."""

from __future__ import annotations

from math import exp, isfinite
from typing import Any

from policygraph.attacks.lint import SURE, best_known_cell
from policygraph.attacks.odds import EffectiveEpsilon, certainty, without_facts
from policygraph.effort import SECOND
from policygraph.errors import PolicyGraphError
from policygraph.markup import Markup, tag
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries.network_statistics import NetworkStatistic
from policygraph.release.release import Release
from policygraph.report.tables import text_of
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import proved, shared_proofs

WORK = 4 * SECOND
"""Units of work for each sensitivity that a page needs besides its certificate."""
CELLS = 5_000
"""Most cells and answers of a release whose best-known cell is looked for."""
TINY = "1e-6"


def percent(share: float) -> str:
    """A probability for people: never rounded up to certainty.

    Examples
    --------
    >>> percent(0.731), percent(0.99999)
    ('73 %', 'more than 99.9 %')
    """
    if share >= 0.999:
        return "more than 99.9 %"
    return f"{100 * share:.0f} %" if share < 0.95 else f"{100 * share:.1f} %"


def _up_to(share: float) -> str:
    """A bound on a probability, rounded."""
    shown = percent(share)
    return shown if shown.startswith("more") else f"at most about {shown}"


def odds(loss: Loss) -> str:
    """What a loss means for somebody's beliefs.

    Examples
    --------
    >>> odds(Epsilon(1))
    'whatever somebody believed before, the odds between two such data sets change by a factor of at most about 2.7: from 50 : 50 to at most about 73 %'
    """
    if isinstance(loss, Epsilon):
        factor = exp(min(float(loss.value), 50.0))
        return (
            "whatever somebody believed before, the odds between two such data sets change by a factor of at most about "
            f"{factor:,.{1 if factor < 100 else 0}f}: from 50 : 50 to {_up_to(certainty(loss.value))}"
        )
    if isinstance(loss, Rho):
        converted = loss.to_epsilon_delta(TINY)
        epsilon = float(converted.epsilon)
        return (
            f"but for one case in a million, the odds between two such data sets change by a factor of at most about {exp(min(epsilon, 50.0)):,.1f} "
            f"(epsilon = {epsilon:.3g}): from 50 : 50 to {_up_to(certainty(epsilon))}"
        )
    return str(loss)


def attacker(release: Release) -> list[Any]:
    """What is learnt from the release, and what would have been from noise that ignores the public facts."""
    loss = release.loss
    said: list[Any] = [
        tag(
            "p",
            f"At {loss}, {odds(loss)}. This holds for every attacker, whatever else is known to them about other people, for data sets that the policy hides from each other.",
        )
    ]
    losses = _losses(release)
    if losses is None:
        return said
    lower = losses.without_facts_lower
    promised, really = certainty(losses.epsilon), certainty(lower)
    bars = [
        ("Usual noise, as promised", promised, "plain", losses.epsilon),
        ("Usual noise, against who knows the facts", really, "bad", lower),
        ("This release", certainty(losses.with_facts), "good", losses.with_facts),
    ]
    if lower > losses.epsilon:
        more = "" if losses.exact else "at least "
        said.append(
            tag(
                "p",
                f"Noise of the usual size, scaled as if nothing were public, would really lose {more}epsilon = {float(lower):.4g} against somebody who knows the "
                f"public facts: from 50 : 50 they could become {percent(really)} sure. ",
                f"Protection under the facts costs {float(losses.known.value / losses.plain.value):.3g} times the noise on each number, before anything is gained by fitting.",
            )
        )
        said.append(_bars(bars))
    said += _cell(release, losses)
    return said


def _losses(release: Release) -> EffectiveEpsilon | None:
    policy, loss = release.policy, release.loss
    if not isinstance(policy, Policy) or not policy.constraints or not isinstance(loss, Epsilon):
        return None
    try:
        query = release.query
        if isinstance(query, NetworkStatistic) or query.needs_values:
            return None
        with shared_proofs():
            known = _certified(release) or proved(query, policy, work=WORK)
            plain = proved(query, without_facts(policy), work=WORK)
        made = EffectiveEpsilon(loss.value, plain, known)
        _ = made.without_facts, made.without_facts_lower
    except PolicyGraphError:
        return None  # what cannot be computed is not told
    return made


def _certified(release: Release) -> Sensitivity | None:
    """The certificate of the release, where it is one of the released tables themselves."""
    found = None if release.record["certificate"] is None else release.certificate
    return found if found is not None and found.norm == "l1" and found.query == release.query else None


def _cell(release: Release, losses: EffectiveEpsilon) -> list[Any]:
    """How well the best-known count can be estimated."""
    policy, query = release.policy, release.query
    if not isinstance(policy, Policy) or max(policy.domain.size, query.height) > CELLS:
        return []
    plain, under, cell, known, _ = best_known_cell(query, policy, losses)
    said: list[Any] = []
    if cell is not None and plain is not None and under is not None and isfinite(plain):
        name = ", ".join(text_of(label) for label in query.cell(cell))
        sure = " Rounded, that is the true count in at least 95 of 100 cases." if plain <= SURE else ""
        said.append(
            tag(
                "p",
                f"Take the count that is easiest to estimate, ({name}). From noise that ignores the facts it could be estimated to within {plain:.2g} "
                f"(standard deviation).{sure} From independent noise under this policy: to within {under:.2g}.",
            )
        )
    if known:
        said.append(tag("p", f"The public facts alone determine {known:,} cells: no noise protects these."))
    return said


def _bars(bars: list[tuple[str, float, str, Any]]) -> Markup:
    """How sure somebody can become who starts from 50 : 50, as bars."""
    wide, high = 360.0, 58.0
    rows = []
    for at, (text, share, kind, loss) in enumerate(bars):
        y = at * high
        length = max(2.0, (share - 0.5) * 2 * wide)
        rows.append(
            tag(
                "g",
                tag("text", text, x=0, y=y + 12),
                tag("text", f"{percent(share)} (ε = {float(loss):.3g})", x=0, y=y + 27, class_="value"),
                tag("rect", x=0, y=y + 32, width=length, height=16, class_=kind),
            )
        )
    bottom = high * len(bars)
    marks = [
        tag(
            "g",
            tag("line", x1=x, y1=0, x2=x, y2=bottom, class_="grid"),
            tag("text", f"{share} %", x=x, y=bottom + 16, text_anchor="middle", class_="tick"),
        )
        for share in (50, 75, 100)
        for x in [(share - 50) * 2 * wide / 100]
    ]
    said = "; ".join(f"{text}: {percent(share)}" for text, share, _, _ in bars)
    svg = tag(
        "svg",
        marks,
        rows,
        viewBox=f"-20 -4 {wide + 42:.0f} {bottom + 26:.0f}",
        width=wide + 42,
        class_="odds",
        role="img",
        aria_label=f"How sure somebody can become: {said}",
    )
    return tag(
        "figure",
        tag(
            "div",
            svg,
            class_="scroll shrunk",
            tabindex=0,
            role="region",
            aria_label="Picture of how sure somebody can become",
        ),
        tag(
            "figcaption",
            "How sure can somebody become which of two data sets is the true one, starting from 50 : 50?",
        ),
    )
