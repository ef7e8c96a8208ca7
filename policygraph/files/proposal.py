"""A first policy file for a data set. Owns :class:`Proposal` and :func:`propose`.

It is a text with comments, made from what the curator let be read. What was taken from the data is marked, because a policy file is published with a release.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from policygraph.curator.profiling import LISTED, ColumnProfile

INLINE = 20
"""More labels than this go into a file of their own."""
CATEGORIES = 12
"""Up to so many different whole numbers are labels; more are put into bins."""
PAIRED = 6
"""Up to so many attributes, tables of two attributes are proposed beside those of one."""
CELLS = 20_000_000
UNKNOWN = "unknown"
AGE = re.compile(r"(^|[^a-z])(age|ages|alter|edad|eta|idade|leeftijd|years?_?old)([^a-z]|$)", re.IGNORECASE)
AGES = (0, 15, 25, 45, 65, 80)
OLDEST = 130
"""No age in years is as large: the last group ends here, so that a slip of the pen is not counted among the old."""
CODE = re.compile(
    r"(code|zip|plz|postal|postcode|municip|gemeinde|commune|canton|kanton|county|district|region|naics|nace|isco|isced)",
    re.IGNORECASE,
)
COUNT = re.compile(
    r"(counts?|n|freq|frequency|persons?|people|population|records|cases|anzahl|personen|effectif|effectifs|conteggio)",
    re.IGNORECASE,
)
UNIT = re.compile(r"(^|[^a-z])(id|ids|uid|uuid|guid|key|ssn|ahv|nino|pid|pin|nr|number|no|person|person_?id|record|e-?mail|phone|name|surname|iban)([^a-z]|$)|(_|[a-z])(id|Id|ID)$")  # fmt: skip


@dataclass(frozen=True)
class Attribute:
    """How one column becomes an attribute, or why it does not.

    Attributes
    ----------
    name
        Name of the column.
    why
        One line about the choice.
    labels
        Labels, in order; None for bins and for columns that are left out.
    edges
        Edges of bins; None otherwise.
    end
        Where the last bin ends, if no value can be as large.
    closed
        Whether the last edge is the end of the last bin.
    unit
        Whether the column looks like the identifier of a unit.
    other
        Label for missing and unknown values; None where there are none.
    from_data
        Whether the labels or edges were taken from the data.
    rare
        Labels from the data that few records have; for the curator only, no file says which.
    other_known
        Whether a published table has the label of missing values.
    repeats
        Whether it identifies units of which some have several records.
    """

    name: str
    why: str
    labels: tuple[Any, ...] | None = None
    edges: tuple[Any, ...] | None = None
    unit: bool = False
    other: str | None = None
    from_data: bool = True
    end: int | None = None
    closed: bool = False
    rare: tuple[str, ...] = ()
    repeats: bool = False
    other_known: bool = False

    @property
    def used(self) -> bool:
        """Whether it is in the domain."""
        return self.labels is not None or self.edges is not None

    @property
    def size(self) -> int:
        """Number of its values."""
        return (
            len(self.labels or self.edges or ())
            - self.closed
            + (self.other is not None and self.other not in (self.labels or ()))
        )


@dataclass(frozen=True)
class Proposal:
    """A policy file and the files beside it.

    Attributes
    ----------
    text
        The policy file.
    lists
        For each file of labels its name and content.
    attributes
        What was decided about each column.
    """

    text: str
    lists: Mapping[str, str] = field(default_factory=dict)
    attributes: tuple[Attribute, ...] = ()


def decide(column: ColumnProfile) -> Attribute:
    """Decide how a column is read: as labels, as bins, or not at all.

    Examples
    --------
    >>> decide(ColumnProfile("age", 900, 0, 90, 900, 900, 0, 0.0, 99.0, (20.0, 40.0, 60.0, 80.0))).edges
    (0, 15, 25, 45, 65, 80)
    >>> decide(ColumnProfile("person_id", 900, 0, 900, 900, 900, 0, 1.0, 900.0)).unit
    True
    """
    name, present = column.name, column.present
    if not present:
        return Attribute(name, "it has no values")
    whole = column.wholes == present and not column.padded
    unique = column.distinct == present and present > 50
    named = UNIT.search(name) is not None and column.distinct > max(100, present // 50)
    plain = not column.numbers or (whole and (column.low or 0) >= 0)
    if named or (unique and not column.days and plain):
        # How many records there are is not for a public file.
        repeats = column.distinct != present
        many = "some values more than once" if repeats else "each value once"
        return Attribute(name, f"it looks like an identifier of units: {many}", unit=True, repeats=repeats)
    other = UNKNOWN if column.missing else None
    if column.days == present and column.distinct > CATEGORIES:
        return Attribute(name, "dates, in bins", edges=_dates(column), other=other)
    if column.numbers == present and not column.padded:
        if (
            whole
            and AGE.search(name)
            and (column.low or 0) >= 0
            and (column.high or 0) < OLDEST
            and column.distinct > CATEGORIES
        ):
            return Attribute(
                name,
                "ages in years, in the usual groups",
                edges=AGES,
                other=other,
                from_data=False,
                end=OLDEST,
            )
        coded = whole and column.values is not None and (CODE.search(name) or column.distinct <= CATEGORIES)
        if not coded:
            return Attribute(name, "numbers, in bins", edges=_edges(column), other=other)
        labels = tuple(int(Decimal(value.strip())) for value in column.values or ())
        return Attribute(
            name,
            "whole numbers, as labels",
            labels=tuple(dict.fromkeys(labels)),
            other=other,
            rare=column.rare,
        )
    if column.values is None:
        return Attribute(name, f"more than {LISTED:,} different texts: too many for labels")
    if all(value.strip() == "" for value in column.values):
        return Attribute(name, "its values are blank")
    many = f"{len(column.values):,} label{'s' * (len(column.values) != 1)}"
    return Attribute(name, many, labels=column.values, other=other, rare=column.rare)


def may_count(column: ColumnProfile) -> bool:
    """Whether a column may be the counts of a table: by its name, and by whole numbers that are not negative.

    Examples
    --------
    >>> may_count(ColumnProfile("count", 4, 0, 4, 4, 4, 0, 0.0, 12.0)), may_count(ColumnProfile("age", 4, 0, 4, 4, 4, 0, 0.0, 12.0))
    (True, False)
    """
    whole = column.present == column.records == column.wholes
    return whole and (column.low or 0) >= 0 and COUNT.fullmatch(column.name.strip()) is not None


RANGE = re.compile(r"([0-9]+)(?:\s*(?:-|\u2013|to)\s*([0-9]+)|\s*(\+|or more|and over))?")


def fitted(attribute: Attribute, labels: Sequence[str], file: str) -> Attribute:
    """The attribute with the labels of a published table, which are public already: its groups of numbers become bins.

    Raises
    ------
    ValueError
        If groups do not follow each other, or the data have labels that the table lacks.

    Examples
    --------
    >>> age = Attribute("age", "ages", edges=AGES, from_data=False, end=OLDEST)
    >>> made = fitted(age, ["0-17", "18-64", "65+"], "ages.csv")
    >>> made.edges, made.end, made.why
    ((0, 18, 65), 130, 'the groups of ages.csv')
    """
    if attribute.edges is not None:
        from policygraph.model.bins import Bins

        kept = [label for label in labels if label != attribute.other]
        read = [RANGE.fullmatch(label) for label in kept]
        starts = sorted({int(one[1]) for one in read if one is not None})
        ends = [int(one[2] or one[1]) for one in read if one is not None and not one[3]]
        closed = not any(one is not None and one[3] for one in read)
        edges = (*starts, max(ends) + 1) if closed and ends else tuple(starts)
        if not starts or None in read or set(Bins(edges, open=not closed).labels) != set(kept):
            raise ValueError(
                f"the groups of {attribute.name} are {', '.join(map(repr, labels[:8]))}: expected ranges of whole numbers that follow each other, such as 0-17, 18-64, 65+"
            )
        end = attribute.end if not closed and (attribute.end or 0) > starts[-1] else None
        other = attribute.other if attribute.other in labels else None
        return replace(
            attribute,
            why=f"the groups of {file}",
            edges=edges,
            end=end,
            closed=closed,
            other=other,
            from_data=False,
            other_known=True,
        )
    known = attribute.labels or ()
    lacking = [label for label in known if str(label) not in labels]
    if lacking:
        raise ValueError(
            f"the data have {attribute.name} = {str(lacking[0])!r}, which the table lacks: expected every value of the data in it"
        )
    whole = bool(known) and all(isinstance(label, int) for label in known)
    made = tuple(int(label) if whole and label.isdecimal() else label for label in labels)
    other = attribute.other if attribute.other in made else None
    return replace(
        attribute,
        why=f"{len(made):,} labels of {file}",
        labels=made,
        other=other,
        unit=False,
        repeats=False,
        from_data=False,
        other_known=True,
        rare=(),
    )


def _nice(value: float, down: bool = False) -> float:
    """A round number near a value: one or two leading digits."""
    from math import floor, log10

    if value == 0:
        return 0
    size = 10.0 ** (floor(log10(abs(value))) - (0 if abs(value) < 10 else 1))
    made = floor(value / size) * size if down else round(value / size) * size
    made = float(f"{made:.6g}")
    return int(made) if made.is_integer() else made


def _edges(column: ColumnProfile) -> tuple[Any, ...]:
    """Round numbers near the fifths of the data, from a round number below the smallest on."""
    low = column.low or 0.0
    first = 0 if low >= 0 else _nice(low, down=True)
    inner = sorted({_nice(share) for share in column.shares})
    return (first, *(edge for edge in inner if edge > first))


def _dates(column: ColumnProfile) -> tuple[Any, ...]:
    first, last = int((column.low or 0) // 10_000), int((column.high or 0) // 10_000)
    if last - first >= 20:
        years: Sequence[int] = range(first // 10 * 10, last + 1, 10)
    elif last - first >= 2:
        years = range(first, last + 1)
    else:
        return tuple(f"{year:04}-{month:02}-01" for year in range(first, last + 1) for month in (1, 4, 7, 10))
    return tuple(f"{max(year, 1):04}-01-01" for year in years)


def _text(value: Any) -> str:
    """A value as TOML."""
    import tomli_w

    return tomli_w.dumps({"x": value})[4:].strip()


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _list(values: Sequence[Any]) -> str:
    return "[" + ", ".join(map(_text, values)) + "]"


def _edges_text(edges: Sequence[Any]) -> str:
    """Edges as TOML, which has dates of its own; labels that look like dates are texts."""
    return "[" + ", ".join(edge if isinstance(edge, str) else _text(edge) for edge in edges) + "]"


def _said(name: str) -> str:
    """A name from the data in a comment, which must not end its line."""
    return name if name.isprintable() else _text(name)


def _listed(name: str, used: set[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-").lower() or "attribute"
    made, number = f"labels-{plain}.csv", 1
    while made in used:
        number += 1
        made = f"labels-{plain}-{number}.csv"
    used.add(made)
    return made


def _as_file(name: str, labels: Sequence[Any]) -> str:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([name])
    rows.writerows([label] for label in labels)
    return out.getvalue()


def propose(
    attributes: Sequence[Attribute],
    *,
    data: str,
    reading: Mapping[str, Any] | None = None,
    published: Mapping[str, Sequence[str]] | None = None,
    encodings: Mapping[str, str] | None = None,
    command: str = "policygraph init",
    public: Sequence[str] = (),
    whole: bool = False,
) -> Proposal:
    """Write a policy file for attributes.

    Parameters
    ----------
    attributes
        What was decided about each column, in order.
    data
        How the data are called in comments.
    reading
        What is to be declared about the files.
    published
        Files of published tables, as the policy file names them, and the attributes of each.
    encodings
        Encodings of those of these files that are not UTF-8.
    command
        What made it, for its first line.
    public
        Attributes whose counts are published exactly, without a file of them; the values are then those of the data.
    whole
        Whether to release the one table of all attributes.

    Raises
    ------
    ValueError
        If no column is used.

    Examples
    --------
    >>> made = propose([Attribute("sex", "2 labels", labels=("F", "M")), Attribute("age", "ages", edges=(0, 18), from_data=False)], data="people.csv")
    >>> from policygraph.files import loads
    >>> loads(made.text).policy.domain
    Domain(sex: 2, age: 2)
    """
    used = [each for each in attributes if each.used]
    if not used:
        raise ValueError("no column can be used")
    lists: dict[str, str] = {}
    names: set[str] = set()
    lines = [
        f"# A proposal for {_said(data)}, made by {command}. Read it, change it, then: policygraph check, plan, release.",
        "#",
        "# A policy file is public. Labels and edges marked FROM DATA were taken from the records, so that publishing them says that such records exist.",
        "# Replace them by a public list (all municipalities of the country, an official classification), which also contains values that nobody has here:",
        '#     municipality = {labels = "municipalities.csv", column = "name"}',
        "",
        "[domain]",
    ]
    for each in used:
        mark = "FROM DATA: " if each.from_data else ""
        if each.other is not None and not each.from_data and not each.other_known:
            mark = "FROM DATA that values are missing: "
        key = _key(each.name)
        listed = each.other is not None and each.other not in (each.labels or ())
        also = f", also = [{_text(each.other)}]" if listed else ""
        if each.edges is not None:
            end = (
                ", open = false" if each.closed else "" if each.end is None else f", end = {_text(each.end)}"
            )
            last = (
                "the last edge is the end"
                if each.closed
                else "the last one takes everything above"
                if each.end is None
                else f"the last one before {each.end}: what is not below is an error, or follows the rule in [data]"
            )
            lines.append(
                f"{key} = {{bins = {_edges_text(each.edges)}{end}{also}}}  # {mark}{each.why}; each bin ends before the next edge, {last}"
            )
            continue
        labels = [*(each.labels or ()), *([each.other] if listed else [])]
        if len(labels) <= INLINE:
            lines.append(f"{key} = {_list(labels)}  # {mark}{each.why}")
        elif any(isinstance(label, int) for label in labels):
            # A file of text has no numbers, and data without leading zeros would not match its labels.
            lines.append(f"{key} = {_list(labels)}  # {mark}{each.why}")
        else:
            file = _listed(each.name, names)
            lists[file] = _as_file(each.name, each.labels or ())
            lines.append(f"{key} = {{labels = {_text(file)}{also}}}  # {mark}{each.why}, in {file}")
    lines += _left_out(attributes)
    lines += _neighbours(used, stated=bool(published or public))
    lines += _public(used, published or {}, public, encodings or {})
    lines += _releases(used, whole=whole)
    lines += _data(used, reading or {})
    return Proposal("\n".join(lines) + "\n", lists, tuple(attributes))


def _left_out(attributes: Sequence[Attribute]) -> list[str]:
    out = []
    for each in attributes:
        if each.used:
            continue
        out.append(f"# {_said(each.name)} is left out: {each.why}.")
    units = [_said(each.name) for each in attributes if each.unit]
    if units:
        out += [
            f"# Units: {', '.join(units)}. The policy protects single records. If a person or a firm has several records, say whose they are,",
            "# and how many of each count: a table [unit] with column and at_most (docs/how-to/units.md).",
        ]
    return ["", *out] if out else []


def _neighbours(used: Sequence[Attribute], *, stated: bool) -> list[str]:
    ordered = next((each.name for each in used if each.edges is not None), None)
    out = [
        "",
        "# What must stay hidden. As it stands: "
        + (
            "all that the published tables leave open: every exchange of values between people that keeps these tables, however many it takes."
            if stated
            else "whether any one record is there, and all that it says."
        ),
        '# Another choice, graph = "full": what a record says, while everybody may know that it is there.',
    ]
    if ordered:
        out.append(
            f"# Or graph = {{threshold = 1, attribute = {_text(ordered)}}}: only which of two neighbouring values of {_said(ordered)} a record has."
        )
    return [*out, "# [neighbours]", '# graph = "full"']


def _public(
    used: Sequence[Attribute],
    published: Mapping[str, Sequence[str]],
    public: Sequence[str],
    encodings: Mapping[str, str],
) -> list[str]:
    if published or public:
        out = ["", "# Exact tables that are published already: what they give away is counted in."]
        for file, names in published.items():
            listed = ", ".join(_text(name) for name in names)
            value = _text(file)
            if file in encodings:
                value = f"{{file = {value}, encoding = {_text(encodings[file])}}}"
            out += ["[[public]]", f"cuboid = [{listed}]", f"equals = {value}"]
        for name in public:
            out += ["[[public]]", f"cuboid = [{_text(name)}]"]
        return out
    few = sorted(used, key=lambda each: -each.size)[:2]
    out = [
        "",
        "# Exact tables that are published already. No noise can hide them, so that they must be stated: what they give away is then counted in.",
        "# A file has one column for each attribute and a column count, each cell once.",
    ]
    for each in few:
        out += [
            "# [[public]]",
            f"# cuboid = [{_text(each.name)}]",
            f"# equals = {_text(_listed(each.name, set()).replace('labels-', 'published-'))}",
        ]
    return [*out, "# [[public]]", "# total = true"]


def _releases(used: Sequence[Attribute], *, whole: bool = False) -> list[str]:
    if whole:
        listed = ", ".join(_text(each.name) for each in used)
        return [
            "",
            "# What is released, with noise: the table of all attributes.",
            "[[release]]",
            f"cuboid = [{listed}]",
        ]
    pairs = [a.size * b.size for at, a in enumerate(used) for b in used[:at]]
    two = 1 < len(used) <= PAIRED and sum(pairs) <= CELLS
    what = "all tables of one and two attributes" if two else "all tables of one attribute"
    return [
        "",
        f"# What is released, with noise: {what}. One table: cuboid = [{', '.join(_text(each.name) for each in used[:2])}]",
        "[[release]]",
        f"up_to = {2 if two else 1}",
    ]


def _data(used: Sequence[Attribute], reading: Mapping[str, Any]) -> list[str]:
    others = {each.name: each.other for each in used if each.other is not None}
    out = [f"{key} = {_text(value)}" for key, value in reading.items()]
    if others:
        pairs = ", ".join(f"{_key(name)} = {_text(label)}" for name, label in others.items())
        out.append(
            "# Missing values, and values outside the domain, count under these labels; of the other attributes they are an error."
        )
        out.append(f"unknown = {{other = {{{pairs}}}}}")
    else:
        out += [
            '# Missing values, and values outside the domain, are an error. To leave such records out: unknown = "drop"'
        ]
    head = ["", "[data]"] if others or reading else ["", "# [data]"]
    return [*head, *out]
