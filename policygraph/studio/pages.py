"""What the studio shows. Owns one function for each page; every text from files or forms is escaped by :func:`policygraph.markup.tag`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policygraph.exact import show
from policygraph.markup import Markup, table, tag
from policygraph.studio.work import RESULTS, Confirmation, Needs, Work

FOR = {
    "report.html": "the report as one file, which needs no network",
    "release.csv": "all tables with their errors",
    "release.parquet": "the same for programs, with the record of how it was made",
    "release.json": "the record of how it was made, and the values",
    "certificate.json": "the proof of the sensitivity, for policygraph verify",
    "release.zip": "all of it, with the policy and a file for each table",
}
"""What each file of a release is for."""
STEPS = ("Choose a file", "Choose columns", "State the policy", "Confirm", "Read the report")


def page(base: str, step: int, *content: Any) -> str:
    """A whole page."""
    title = STEPS[step]
    steps = [
        tag("li", name, aria_current="step" if at == step else None, class_="done" if at < step else None)
        for at, name in enumerate(STEPS)
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title}: policygraph studio"),
        tag("link", rel="stylesheet", href=f"{base}/studio.css"),
        tag("script", src=f"{base}/studio.js", defer=True),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag(
            "header",
            tag("p", "policygraph studio", class_="kicker"),
            tag("ol", steps, class_="steps", aria_label="Steps"),
        ),
        tag("main", tag("h1", title), list(content), id="main"),
        tag(
            "footer",
            tag("p", "This page runs on your machine and talks to nothing else. What you choose stays here."),
        ),
        tag("p", id="working", role="status"),
    )
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def form(action: str, *content: Any, **more: Any) -> Markup:
    """A form that is sent back to the studio."""
    return tag("form", list(content), method="post", action=action, **more)


def box(name: str, value: str, words: Any, ticked: bool) -> Markup:
    """A box to tick, with its label."""
    return tag(
        "label",
        tag("input", type="checkbox", name=name, value=value, checked=ticked),
        " ",
        words,
        class_="box",
    )


def hidden(name: str, value: str) -> Markup:
    """What a form says without being asked."""
    return tag("input", type="hidden", name=name, value=value)


def start(base: str) -> str:
    """The first page."""
    return page(
        base,
        0,
        tag(
            "p",
            "A file with one line for each person: CSV, Parquet, JSON or Excel. Nothing of it is read until you say which columns may be.",
            class_="lead",
        ),
        form(
            f"{base}/open",
            tag("label", "Data file", for_="data"),
            tag("input", type="file", name="data", id="data", required=True),
            tag(
                "label",
                "Tables about these people that are published already, exactly (optional)",
                for_="tables",
            ),
            tag("input", type="file", name="published", id="tables", multiple=True),
            tag("p", "Each with columns of the data, such as sex and age, and one of counts.", class_="hint"),
            tag("button", "Open", type="submit", id="open"),
            enctype="multipart/form-data",
        ),
    )


def columns(base: str, work: Work) -> str:
    """Which columns may be read."""
    names = [] if work.begun is None else work.begun.names
    return page(
        base,
        1,
        tag(
            "p",
            "Only the columns that you tick are read. Their labels go into the policy, which is public.",
            class_="lead",
        ),
        form(
            f"{base}/read",
            hidden("place", work.place.name),
            tag(
                "fieldset", tag("legend", "May be read"), [box("column", name, name, True) for name in names]
            ),
            tag("button", "Propose a policy", type="submit", id="read"),
        ),
    )


def policy(base: str, work: Work, forecast: Needs | None, refusal: str = "") -> str:
    """The policy, and what it needs."""
    begun, choice = work.begun, work.choice
    if begun is None or choice is None:
        return start(base)
    stated = {name: file for file, names in begun.stated.items() for name in names}
    labels = work.labels()
    rows = []
    for each in begun.attributes:
        values = [str(label) for label in labels.get(each.name) or each.labels or each.edges or ()]
        known = tag("span", f"by {stated[each.name]}", class_="faint") if each.name in stated else None
        rows.append(
            [
                box("used", each.name, each.name, each.name in choice.used) if each.used else each.name,
                each.why,
                ", ".join(values[:8]) + (", ..." if len(values) > 8 else ""),
                known
                or (
                    box("public", each.name, "yes: already published exactly", each.name in choice.public)
                    if each.used
                    else ""
                ),
            ]
        )
    ticks = tag(
        "div",
        table(["column", "how it is read", "values", "is its table of counts published exactly?"], rows),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label="Columns",
    )
    sizes = [
        ("up_to", "all tables of one and two columns", not choice.whole),
        ("whole", "one table of all columns", choice.whole),
    ]
    chosen = form(
        f"{base}/choose",
        hidden("place", work.place.name),
        ticks,
        tag(
            "p",
            "Tick this only for counts that are out already: no noise can hide them, and a release states them as they are in your data, without noise.",
            class_="hint",
        ),
        tag(
            "fieldset",
            tag("legend", "What is released, with noise"),
            [
                tag(
                    "label",
                    tag("input", type="radio", name="release", value=value, checked=on),
                    " ",
                    words,
                    class_="box",
                )
                for value, words, on in sizes
            ],
        ),
        tag("label", "epsilon", for_="epsilon"),
        tag("input", type="text", name="epsilon", id="epsilon", value=choice.epsilon, inputmode="decimal"),
        tag(
            "p",
            "Smaller hides more and needs more noise. 1 is strong protection, above 5 weak.",
            class_="hint",
        ),
        tag("button", "Show what this needs", type="submit", id="choose"),
        id="policy",
        data_live=True,
    )
    # What cannot be forecast cannot be released, and has no stamp.
    asked = (
        None
        if forecast is None
        else form(
            f"{base}/ask",
            hidden("stamp", work.stamp),
            tag("label", "Name of these people in the ledger", for_="dataset"),
            tag("input", type="text", name="dataset", id="dataset", value=work.dataset, required=True),
            tag(
                "p",
                f"Charges go to {work.ledger}. You are asked once more before anything is spent.",
                class_="hint",
            ),
            tag("button", "Release ...", type="submit", id="ask"),
        )
    )
    return page(
        base,
        2,
        warn(refusal),
        alarms(work.warnings),
        chosen,
        None if forecast is None else shown(base, forecast),
        None if forecast is None else [tag("h2", "Release"), asked],
        None if forecast is None else same(base, work),
    )


def shown(base: str, forecast: Needs) -> list[Any]:
    """Sensitivity, noise, errors, and what an attacker learns."""
    proof = forecast.certificate
    kind = "exactly" if proof.exact else "at most"
    rows = [
        [
            name or "total",
            f"{cells:,}",
            f"{spread:.3g}" if spread else "exact",
            f"{reach:.3g}" if reach else "exact",
        ]
        for name, cells, spread, reach in forecast.errors
    ]
    return [
        tag("h2", "What this needs"),
        tag("p", "The most that one step between neighbours changes the answers, all together: ", tag("strong", f"{kind} {show(proof.value)}", id="sensitivity"), f" ({proof.definition})."),
        tag("p", "With the mechanism of the least expected error; these errors do not depend on the records:"),
        tag(
            "div",
            table(["table", "counts", "standard deviation", "within, 95 % of the time"], rows, numbers=(1, 2, 3), caption="Forecast errors, in people"),
            class_="wide", id="errors", tabindex="0", role="region", aria_label="Forecast errors",
        ),
        tag("details", tag("summary", "How such a release is made"), tag("ol", [tag("li", line) for line in forecast.stages])),
        tag("details", tag("summary", "Why the sensitivity is this number"), tag("pre", str(proof), tabindex="0")),
        tag("h2", "What an attacker learns"),
        [
            tag("pre", forecast.attack, id="attack", tabindex="0"),
            tag("p", tag("a", "What each further exact table would cost", href=f"{base}/further", id="further", data_slow=True), " (a search for each; it can take minutes)."),
        ]
        if forecast.attack
        else tag("p", "No exact table is stated as public. If one is published about these people, tick it: noise that ignores it protects less than its epsilon says.", id="attack"),
    ]  # fmt: skip


def further(base: str, said: str) -> str:
    """What an attacker learns, with the price of further exact tables."""
    return page(
        base,
        2,
        tag("h2", "What an attacker learns"),
        tag("pre", said, id="attack", tabindex="0") if said else tag("p", "No exact table is stated as public.", id="attack"),
        tag("p", tag("a", "Back to the policy", href=f"{base}/policy")),
    )  # fmt: skip


def same(base: str, work: Work) -> list[Any]:
    """The policy file, and the program that does the same."""
    return [
        tag("h2", "The same without this page"),
        tag(
            "p",
            tag(
                "a",
                "Download the policy with the files that it names (policy.zip)",
                href=f"{base}/policy.zip",
                download="policy.zip",
            ),
        ),
        tag(
            "details",
            tag("summary", "The policy file (policy.toml)"),
            tag("pre", work.file.text, id="toml", tabindex="0"),
        ),
        tag("details", tag("summary", "In Python"), tag("pre", work.python(), id="python", tabindex="0")),
    ]


def confirm(base: str, name: str, question: Confirmation, balance: str, refusal: str = "") -> str:
    """Ask once more, and name what is released; what has no noise takes a tick of its own."""
    noisy = [tag("li", str(each)) for each in question.parts if each.noisy]
    known = [tag("li", str(each)) for each in question.parts if not each.noisy]
    exact = [
        tag(
            "label",
            tag("input", type="checkbox", name="exact", value=str(each), required=True),
            " ",
            f"Exact, without noise, from your data: {each}",
            class_="box",
        )
        for each in question.exact
    ]
    return page(
        base,
        3,
        warn(refusal),
        tag("p", "This spends ", tag("strong", str(question.loss)), " of ", tag("strong", question.dataset), ". It cannot be taken back.", class_="lead"),
        tag("p", f"The ledger: {balance}.", id="balance"),
        alarms(question.warnings),
        tag("h2", "What is released"),
        [tag("p", "With noise:"), tag("ul", noisy, id="noisy")] if noisy else None,
        [tag("p", "Without noise, since the exact tables that the policy states give it away:"), tag("ul", known, id="known")] if known else None,
        form(
            f"{base}/confirm",
            hidden("question", name),
            tag("fieldset", tag("legend", "Published exactly: confirm each, if it is out already"), exact, id="exact") if exact else None,
            tag("button", f"Spend {question.loss} and release", type="submit", id="confirm"),
        ),
        tag("p", tag("a", "Back to the policy, without spending", href=f"{base}/policy")),
    )  # fmt: skip


def done(base: str, name: str, said: str) -> str:
    """What was released."""
    return page(
        base,
        4,
        tag("p", said, class_="lead", id="said"),
        tag("p", tag("a", "Read the report", href=f"{base}/result/{name}/report.html", id="report", target="_blank")),
        tag("ul", [tag("li", tag("a", f"Download {each}", href=f"{base}/result/{name}/{each}?download=1", download=each), f": {FOR[each]}") for each in RESULTS]),
        tag("p", tag("a", "Back to the policy", href=f"{base}/policy"), " · ", tag("a", "Another file", href=f"{base}/")),
    )  # fmt: skip


def warn(text: str) -> Markup | None:
    """What went wrong, in the words of the command."""
    return tag("p", text, class_="warning", role="alert", id="refusal") if text else None


def alarms(sentences: Sequence[str]) -> list[Markup]:
    """What the policy gives away of a few people, and whom it does not protect, in the words of ``init``."""
    return [tag("p", each, class_="warning") for each in sentences]


def failed(base: str, text: str) -> str:
    """A page for what cannot be done."""
    return page(
        base,
        0,
        warn(text),
        tag(
            "p",
            tag("a", "Choose a file", href=f"{base}/"),
            " · ",
            tag("a", "Back to the policy", href=f"{base}/policy"),
        ),
    )
