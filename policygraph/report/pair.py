"""The certificate for people: two data sets side by side that a release must not tell apart. Owns :func:`pair`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from policygraph.markup import Markup, table, tag
from policygraph.model.constraints import Cuboid
from policygraph.model.domain import Domain, Network
from policygraph.model.grouped import records_of
from policygraph.model.queries.measures import MeasureQuery
from policygraph.pictures import short
from policygraph.report.graphs import network
from policygraph.report.tables import text_of
from policygraph.sensitivity.certificate import Sensitivity

MOST_ROWS = 16
MOST_COLUMNS = 4
"""Data sets with more attributes stand below each other, so that no column is cut."""
LONG = 60
MOST_FACTS = 6
Rows = tuple[tuple[int, int], ...]


def value_of(found: Sensitivity) -> str:
    """The sensitivity as a number."""
    return f"{int(found.value):,}" if found.value.denominator == 1 else f"{float(found.value):.4g}"


def pair(found: Sensitivity) -> list[Any]:
    """Both data sets, what changes between them, and what they share."""
    witness, domain = found.witness, found.policy.domain
    if witness is None:
        return [
            tag(
                "p",
                "No change that the policy allows changes what was measured: there is no such pair, and no noise is needed.",
            )
        ]
    before, after = witness.before, witness.after
    gone, came = _without(before, after), _without(after, before)
    changed = frozenset(gone) | frozenset(came)
    sides = [
        _side(found, "Data set A", before, gone, changed, "gone"),
        _side(found, "Data set B", after, came, changed, "came"),
    ]
    return [
        tag(
            "div",
            sides,
            class_="pair wide" if isinstance(domain, Domain) and len(domain.names) > MOST_COLUMNS else "pair",
        ),
        tag(
            "p",
            f"Only the marked {'edges' if isinstance(domain, Network) else 'records'} differ; "
            + (
                "both have the published values. "
                if records_of(found.policy).system.has_values
                else "any others may stand beside them, the same in both. "
            )
            + "Whoever sees the release cannot tell whether A or B is the true one, up to the stated loss.",
            class_="note",
        ),
        _shared(found, before),
    ]


def _without(one: Rows, other: Rows) -> dict[int, int]:
    rest = dict(other)
    return {cell: count - rest.get(cell, 0) for cell, count in one if count > rest.get(cell, 0)}


def _side(
    found: Sensitivity, title: str, rows: Rows, marked: dict[int, int], changed: frozenset[int], kind: str
) -> Markup:
    domain = found.policy.domain
    drawn = None
    if isinstance(domain, Network) and not found.query.needs_values:
        tails, heads = domain.pairs([cell for cell, _ in rows]) if rows else ((), ())
        edges = [
            (int(u), int(v), kind if cell in marked else "")
            for (cell, _), u, v in zip(rows, tails, heads, strict=True)
        ]
        drawn = network(
            records_of(found.policy),
            edges,
            f"{title}, a network with {len(rows)} edges; the table lists them",
        )
    return tag(
        "div", tag("h3", title), drawn, _listed(found, title, rows, marked, changed, kind), class_="side"
    )


def _listed(
    found: Sensitivity, title: str, rows: Rows, marked: dict[int, int], changed: frozenset[int], kind: str
) -> Markup:
    domain = found.policy.domain
    names = list(domain.names) if isinstance(domain, Domain) else ["from", "to"]
    ordered, rest = list(rows), []
    if len(rows) > MOST_ROWS:  # what is the same in both is only counted
        met = sorted((row for row in rows if row[0] in changed), key=lambda row: row[0] not in marked)
        ordered = met[:MOST_ROWS] or ordered[:MOST_ROWS]
        listed = {cell for cell, _ in ordered}
        rest = [row for row in rows if row[0] not in listed]
    body = []
    for cell, count in ordered:
        labels = [short(text_of(label), LONG) for label in found.query.cell(cell)]
        body.append((marked.get(cell, 0), [*labels, f"{count:,}"]))
    width = max((len(labels) for _, labels in body), default=len(names) + 1) - 1
    if isinstance(found.query, MeasureQuery):
        names.append(found.query.measure.column)
    names += [f"value {k + 1}" for k in range(width - len(names))]
    same = ", the same in both" if all(cell not in changed for cell, _ in rest) else ""
    sign = {"gone": "only in A", "came": "only in B"}[kind]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", f"Records of {title}", class_="unseen"),
            tag(
                "thead",
                tag(
                    "tr",
                    [
                        tag("th", short(name, LONG), scope="col")
                        for name in [*names[:width], "count", "" if not marked else sign]
                    ],
                ),
            ),
            tag(
                "tbody",
                [
                    tag(
                        "tr",
                        [tag("td", label) for label in labels],
                        tag("td", f"● {mark:,}" if mark else "", class_="mark"),
                        class_=kind if mark else None,
                    )
                    for mark, labels in body
                ],
            ),
        ),
        tag("p", "No edge at all." if isinstance(domain, Network) else "No record at all.")
        if not rows
        else None,
        tag(
            "p",
            f"and {sum(count for _, count in rest):,} more in {len(rest):,} other cells{same}",
            class_="note",
        )
        if rest
        else None,
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label=f"Table of {title}",
    )


def _shared(found: Sensitivity, rows: Rows) -> Markup | None:
    """What the public facts say of both."""
    domain = found.policy.domain
    if not isinstance(domain, Domain) or found.query.needs_values:
        return None
    lines: list[list[str]] = []
    for fact in records_of(found.policy).constraints:
        if not isinstance(fact, Cuboid) or len(lines) == MOST_FACTS:
            continue
        axes = [domain.axis(name) for name in fact.names]
        sums: Counter[tuple[str, ...]] = Counter()
        for cell, count in rows:
            labels = domain.cell(cell)
            sums[tuple(text_of(labels[axis]) for axis in axes)] += count
        said = ", ".join(
            f"{' · '.join(labels)}: {count:,}" for labels, count in list(sums.items())[:MOST_ROWS]
        )
        more = len(sums) - MOST_ROWS
        lines.append([" × ".join(fact.names), f"{said} and {more:,} more" if more > 0 else said])
    if not lines:
        return None
    return tag(
        "div",
        table(["public table", "the same in both"], lines, caption="The public tables of A and B agree"),
        class_="scroll facts",
        tabindex=0,
        role="region",
        aria_label="Public tables of both data sets",
    )
