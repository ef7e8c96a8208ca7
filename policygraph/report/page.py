"""The page itself: its sections in order, and the file. Owns :func:`report`."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.attacks.odds import certainty
from policygraph.errors import InputError, PolicyGraphError
from policygraph.explain import data_words, hidden_words
from policygraph.markup import Markup, tag
from policygraph.model.constraints import Constraint, Cuboid, StructuralZero, Total
from policygraph.model.domain import Domain, Network
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.loss import Epsilon
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy
from policygraph.model.system import name_of
from policygraph.output import replacing
from policygraph.pictures import short
from policygraph.plan import protection
from policygraph.release.release import Release
from policygraph.report.attacker import attacker, odds, percent
from policygraph.report.graphs import network, policy_graph
from policygraph.report.lattice import lattice
from policygraph.report.pair import pair, value_of
from policygraph.report.tables import LONG, blocks, figure, index, text_of, title_of, typical, word_of

if TYPE_CHECKING:
    from policygraph.curator.ledger.accounts import Account

LABELS = 30
"""So many labels of an attribute are listed."""
TEXT = 20_000
"""Longest policy file that is part of the page."""


def report(
    release: Release | str | Path, to: str | Path | None = None, *, account: Account | None = None
) -> str:
    """Make one self-contained page of a release, for decision makers.

    Parameters
    ----------
    release
        A release, the folder that it was written into, or its Parquet file.
    to
        Where to write the page; None only returns it.
    account
        The account of the data set in a ledger (``ledger.account("people")``), whose totals are then part of the page.

    Returns
    -------
    str
        The page. It loads nothing from anywhere, and is made of what was published and of nothing else.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": ["young", "<b>old</b>"]})
    >>> made = pg.release(pg.queries.identity(domain), pg.Policy(domain), [5, 2], epsilon=1, rng=pg.SeededRng(7))
    >>> page = report(made)
    >>> "&lt;b&gt;old&lt;/b&gt;" in page, "<b>old</b>" in page, "NOT PRIVATE" in page
    (True, False, True)
    """
    text = _page(release if isinstance(release, Release) else _read(Path(release)), account)
    if to is not None:
        with replacing(to) as draft:
            draft.write_text(text, encoding="utf-8")
    return text


def _read(place: Path) -> Release:
    file = place / "release.parquet" if place.is_dir() else place
    if not file.exists():
        raise InputError(
            f"{place}: expected a folder that `policygraph release --out` wrote, with a release.parquet in it.",
            code="report.folder",
            value=str(place),
        )
    return Release.from_parquet(file)


def _page(release: Release, account: Account | None) -> str:
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    parts = [part for part in _sections(release, account) if part[2]]
    title = _title(release)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        # Nothing is loaded from anywhere, and no script runs but the one of this page.
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=str(release.record["library"])),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title}: release report"),
        Markup(f"<style>{style}</style>"),
    )
    contents = tag(
        "nav",
        tag("ol", [tag("li", tag("a", heading, href=f"#{name}")) for name, heading, _ in parts]),
        aria_label="Contents",
        id="contents",
    )
    body = tag(
        "body",
        tag("a", "Skip to the results", href="#results", class_="skip"),
        _header(release, title),
        tag(
            "div",
            contents,
            tag("main", [_section(*part) for part in parts], id="main"),
            class_="frame",
        ),
        _footer(release),
        tag("div", id="said", class_="unseen", role="status", aria_live="polite"),
        list(blocks(release)),
        Markup(f"<script>{script}</script>"),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def _section(name: str, heading: str, content: list[Any]) -> Markup:
    return tag(
        "section", tag("h2", heading, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title"
    )


def _title(release: Release) -> str:
    if len(release.tables) == 1:
        return title_of(release.tables[0])
    names = [
        short(name, LONG)
        for name in dict.fromkeys(name for table in release.tables for name in table.columns)
    ]
    shown = _listing(names[:8]) + (f" and {len(names) - 8} more attributes" if len(names) > 8 else "")
    return f"{len(release.tables):,} tables" + (f" by {shown}" if names else "")


def _listing(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}" if words else ""


def _header(release: Release, title: str) -> Markup:
    numbers = sum(len(table.values) for table in release.tables)
    key = [
        (
            f"{numbers:,}",
            f"published number{'s' * (numbers != 1)}"
            + (f" in {len(release.tables):,} tables" if len(release.tables) > 1 else ""),
        ),
        _spread(release),
        (_amount(release), "privacy loss spent on this release"),
    ]
    if isinstance(release.loss, Epsilon):
        key.append(
            (
                percent(certainty(release.loss.value)),
                "how sure somebody can become at most, from 50 : 50, which of two look-alike data sets is the true one",
            )
        )
    return tag(
        "header",
        tag(
            "div",
            tag("p", "Release report", class_="kicker"),
            tag("button", "Theme: automatic", type="button", id="theme", class_="quiet", hidden=True),
            class_="bar",
        ),
        tag("h1", title),
        tag("p", _standfirst(release), class_="lead"),
        None
        if release.private
        else tag(
            "p",
            "NOT PRIVATE. The noise came from a seeded generator and can be computed again by anybody. This release is for tests and papers only.",
            class_="warning",
            role="alert",
        ),
        tag("dl", [tag("div", tag("dt", text), tag("dd", number)) for number, text in key], class_="key"),
    )


def _spread(release: Release) -> tuple[str, str]:
    """How far published numbers are from the truth, and in words what that is."""
    if _in_parts(release):
        return "in parts", "the noisy numbers are in files of their own; listed here is how many each has"
    if len({word_of(table) for table in release.tables}) > 1:
        return "± by table", "each table says how far its numbers are from the truth at most"
    noisy = [error for error in (typical(table.within_95) for table in release.tables) if error > 0]
    if not noisy:
        return "exact", "no noise was needed"
    low, high = figure(min(noisy)), figure(max(noisy))
    return f"±\u2009{low}" + (
        "" if low == high else f" to {high}"
    ), "how far 95 of 100 numbers are from the truth at most"


def _amount(release: Release) -> str:
    loss = release.loss
    return (
        f"ε = {float(loss.value):.4g}"
        if isinstance(loss, Epsilon)
        else str(loss).replace("rho", "ρ").replace("epsilon", "ε")
    )


def _in_parts(release: Release) -> bool:
    """Whether the numbers themselves were written elsewhere, since they are too many."""
    return str(release.record["mechanism"]).endswith(", in parts")


def _standfirst(release: Release) -> str:
    what = "networks" if isinstance(release.policy.domain, Network) else "data sets"
    those = (
        "the numbers of this release, which are in files of their own,"
        if _in_parts(release)
        else "these numbers"
    )
    return (
        f"Random noise was added to {those} so that nobody can be sure from them which of two similar "
        f"{what} is the true one. This page says what was published, how far it may be off, what is protected, and how to check it."
    )


def _sections(release: Release, account: Account | None) -> list[tuple[str, str, list[Any]]]:
    return [
        ("summary", "In short", _summary(release)),
        ("results", "What was published", _results(release)),
        ("protected", "What is protected", _protected(release)),
        ("public", "What is public", _public(release)),
        ("certificate", "Two data sets that must look alike", _certificate(release)),
        ("attacker", "What an attacker could learn", attacker(release)),
        ("budget", "The budget", _budget(account)),
        ("stages", "How it was made", _stages(release)),
        ("check", "Check it, do it again", _check(release)),
    ]


def _summary(release: Release) -> list[Any]:
    policy = release.policy
    stated = () if isinstance(policy, NodePrivacy) else records_of(policy).constraints
    facts = [_fact(fact, policy) for fact in stated]
    shown = [title_of(table) for table in release.tables[:6]]
    more = len(release.tables) - len(shown)
    rows = [
        ("The data", _data(release)),
        ("Asked for", ", ".join(shown) + (f" and {more:,} more tables" if more else "")),
        ("Protected", _upper(_hidden(release))),
        (
            "Public",
            _upper(", ".join(facts[:6])) + (f" and {len(facts) - 6} more facts" if len(facts) > 6 else "")
            if facts
            else "Nothing but the possible values",
        ),
        ("Privacy loss", f"{_upper(str(release.loss))}: {odds(release.loss)}"),
    ]
    return [
        tag(
            "dl",
            [tag("div", tag("dt", name), tag("dd", _stop(text))) for name, text in rows],
            class_="summary",
        )
    ]


def _data(release: Release) -> str:
    if not isinstance(release.policy, NodePrivacy):
        return _upper(data_words(release.policy))
    return f"A network of {release.policy.domain.order:,} nodes"


def _hidden(release: Release) -> str:
    """What is protected, for people who know no definition."""
    policy = release.policy
    if isinstance(policy, Grouped):
        return hidden_words(policy)
    if isinstance(policy, NodePrivacy):
        if policy.together > 1:
            return f"every {policy.together} nodes that belong together, with all their edges: whether and to whom they are joined"
        return "every node with all its edges: whether and to whom it is joined"
    if policy.definition != "induced":
        return hidden_words(policy)
    one, other = ("edge", "edges") if isinstance(policy.domain, Network) else ("record", "records")
    if not policy.constraints:
        return f"every single {one}: whether it is in the data at all, and what it says"
    return (
        f"what the public facts leave open. If one {one} were different, other {other} would have to be different as well, so that the public facts still "
        f"hold; every such change that is as small as it can be is hidden"
    )


def _fact(fact: Constraint, policy: Any) -> str:
    """A public fact in the words of this page."""
    said = name_of(fact, policy.domain)
    if isinstance(fact, Cuboid):
        said = "the table " + " × ".join(short(name, LONG) for name in fact.names)
    elif isinstance(fact, Total):
        said = "the number of records"
    values = None if isinstance(fact, StructuralZero) else fact.values(policy.domain)
    if values is None:
        return said
    return f"{said}, {values[0]:,}" if len(values) == 1 else f"{said} ({len(values):,} published numbers)"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _stop(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _results(release: Release) -> list[Any]:
    many = len(release.tables) > 1
    basis = {table.errors for table in release.tables}
    notes = ["The line across the end of a bar shows where the truth lies, with probability 95 %."]
    if _in_parts(release):
        notes = [
            "The table was written in parts, with noise on each number. How many numbers a part has is not secret."
        ]
    if "simulated" in basis:
        notes.append("These ranges were simulated from published numbers.")
    if "bound" in basis:
        notes.append("Some of these ranges are proved bounds, wider than they need to be.")
    if any(np.any(np.asarray(table.values) < 0) for table in release.tables):
        notes.append("Noise can push a small count below zero; such a count means few or none.")
    return [
        lattice(release),
        tag("p", " ".join(notes)),
        tag(
            "div",
            tag("label", "Find a table", for_="find"),
            tag("input", type="search", id="find", autocomplete="off"),
            tag("span", id="found", role="status"),
            class_="tools",
            hidden=True,
            id="finder",
        )
        if many
        else None,
        tag(
            "noscript",
            tag(
                "p",
                "Tables and charts are drawn by the script of this page, which your browser does not run. The same numbers are in release.csv beside it.",
            ),
        ),
        index(release),
    ]


def _protected(release: Release) -> list[Any]:
    policy = release.policy
    said: list[Any] = [tag("p", _stop(_upper(_hidden(release))))]
    if not isinstance(policy, NodePrivacy) and records_of(policy).constraints:
        said.append(tag("p", f"It protects {protection(policy)}"))
    if not isinstance(policy, Policy):
        return said
    if policy.graph is None:
        if isinstance(policy.domain, Network):
            drawn = network(policy)
            if drawn is not None:
                said.append(
                    tag(
                        "figure",
                        drawn,
                        tag(
                            "figcaption",
                            "The nodes of the network, which are public; filled: the number of their edges is public. The edges are not shown: they are what is protected.",
                        ),
                    )
                )
        return said
    drawn_graph = policy_graph(policy.graph)
    size = f"The policy graph joins values that must not be told apart: {policy.graph.size:,} cells, {policy.graph.n_edges:,} edges."
    said.append(
        tag(
            "p",
            f"{size} Cells that are several steps apart are protected less: two steps with twice the loss, and so on. Cells that no path joins may be told apart.",
        )
    )
    if drawn_graph is not None:
        loss = release.loss
        epsilon = float(loss.value) if isinstance(loss, Epsilon) else None
        said += [
            tag(
                "figure",
                drawn_graph.picture,
                tag("p", id="steps", class_="readout", role="status"),
                tag("figcaption", drawn_graph.caption),
                id="graph",
                data_epsilon=None if epsilon is None else repr(epsilon),
            ),
            drawn_graph.data,
        ]
    return said


def _public(release: Release) -> list[Any]:
    policy = release.policy
    domain = policy.domain
    said: list[Any] = []
    facts = () if isinstance(policy, NodePrivacy) else records_of(policy).constraints
    if facts:
        said += [
            tag(
                "p",
                "These facts are exact and known to everybody, so that no noise can hide them. The noise was chosen so that it still protects what they leave open.",
            ),
            tag("ul", [tag("li", _upper(_fact(fact, policy))) for fact in facts[:LABELS]]),
            tag("p", f"and {len(facts) - LABELS:,} more") if len(facts) > LABELS else None,
        ]
    else:
        said.append(
            tag(
                "p",
                "No exact numbers are stated as public. If a table of the same records has been published without noise, it belongs into the policy: otherwise the noise is too small for what you had in mind.",
            )
        )
    if isinstance(domain, Domain):
        rows = []
        for name in domain.names:
            labels = domain.labels(name)
            listed = ", ".join(short(text_of(label), LONG) for label in labels[:LABELS]) + (
                f" and {len(labels) - LABELS:,} more" if len(labels) > LABELS else ""
            )
            rows.append(tag("div", tag("dt", f"{short(name, LONG)} ({len(labels):,})"), tag("dd", listed)))
        said += [tag("h3", "Attributes and their possible values"), tag("dl", rows, class_="summary")]
    return said


def _certificate(release: Release) -> list[Any]:
    if release.record["certificate"] is None:
        return []
    found = release.certificate
    number = value_of(found)
    if found.exact:
        claim = f"Between two such data sets what was measured changes by {number} at most, and for these two by exactly {number}. The noise was scaled to that number: less would not be enough, more is not needed."
    else:
        claim = f"Between two such data sets what was measured changes by {number} at most; for the two below by {float(found.lower):,.6g}. The noise was scaled to the larger number, which is proved."
    if any(weight != 1 for weight in release.record.get("cube", {}).get("weights", ())):
        claim += " (What was measured are counts times the weights of their tables, so that this number is not one of records.)"
    return [
        tag("p", claim),
        *pair(found),
        tag(
            "details",
            tag("summary", "The proof"),
            tag("p", tag("b", "Neighbours: "), _stop(found.definition)),
            tag("p", tag("b", "Method: "), _stop(found.method)),
            tag("p", tag("b", "Why: "), _stop(found.reason)),
        ),
    ]


def _budget(account: Account | None) -> list[Any]:
    if account is None:
        return []
    rows = [
        ("Limit", "none set" if account.limit is None else str(account.limit)),
        ("Spent", "nothing" if account.spent is None else str(account.spent)),
        (
            "Left",
            "no limit is set"
            if account.limit is None
            else "nothing"
            if account.left is None
            else str(account.left),
        ),
        ("Charges", f"{account.charges:,}"),
    ]
    shares = [loss.value if isinstance(loss, Epsilon) else None for loss in (account.limit, account.spent)]
    bar = None
    if shares[0] and shares[1]:
        part = min(1.0, float(shares[1] / shares[0]))
        bar = tag(
            "svg",
            tag("rect", x=0, y=0, width=600, height=18, class_="left"),
            tag("rect", x=0, y=0, width=600 * part, height=18, class_="spent"),
            viewBox="0 0 600 18",
            width=600,
            class_="budget",
            role="img",
            aria_label=f"{100 * part:.0f} % of the budget is spent",
        )
    name = f" of {account.name}" if account.name else ""
    return [
        tag("p", f"All releases{name} together, as the ledger had them when this page was made."),
        bar,
        tag("dl", [tag("div", tag("dt", key), tag("dd", text)) for key, text in rows], class_="summary"),
    ]


def _stages(release: Release) -> list[Any]:
    return [
        tag("ol", [tag("li", sentence) for sentence in release.sentences], class_="stages"),
        tag(
            "p", f"Source of the noise: {release.record['noise'].get('source', 'not stated')}.", class_="note"
        )
        if isinstance(release.record.get("noise"), dict)
        else None,
    ]


def _check(release: Release) -> list[Any]:
    record = release.record
    rows = [
        ("Made by", str(record["library"])),
        ("Mechanism", str(record["mechanism"])),
        ("Policy", str(record["policy_fingerprint"])),
        ("Query", str(record["query_fingerprint"])),
    ]
    said: list[Any] = [
        tag(
            "p",
            "Beside this page are release.parquet and release.csv with all numbers, release.json with the same and how they were made, and certificate.json. Check the certificate, by code that shares nothing with the search that found it:",
        ),
        tag("pre", tag("code", "policygraph verify certificate.json"), tabindex=0),
        tag(
            "p",
            "The noise itself cannot be drawn again: that is what protects people. Who has the data and the policy below can compute the same sensitivity, and make a release of the same accuracy:",
        ),
    ]
    policy = _policy_file(release)
    if policy is not None:
        said += [
            tag(
                "pre",
                tag(
                    "code",
                    f"policygraph sensitivity policy.toml\npolicygraph release policy.toml --data … {_option(release)} --out …",
                ),
                tabindex=0,
            ),
            tag("details", tag("summary", "policy.toml"), tag("pre", tag("code", policy), tabindex=0)),
        ]
    said.append(
        tag(
            "dl",
            [tag("div", tag("dt", key), tag("dd", tag("code", text))) for key, text in rows],
            class_="summary",
        )
    )
    return said


def _option(release: Release) -> str:
    loss = release.loss
    kind = "--epsilon" if isinstance(loss, Epsilon) else "--rho"
    return f"{kind} {loss.to_json()['value']}"


def _policy_file(release: Release) -> str | None:
    from policygraph.files import dumps

    if not isinstance(release.policy, Policy):
        return None
    try:
        text = dumps(release.policy, release.query)
    except PolicyGraphError:
        return None  # a query that policy files have no form for
    return text if len(text) <= TEXT else None


def _footer(release: Release) -> Markup:
    return tag(
        "footer",
        tag(
            "p",
            f"Made by {release.record['library']} from the published release only: no record, no true count and no key of the noise was read for this page. It loads nothing from the network.",
        ),
    )
