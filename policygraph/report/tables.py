"""Released tables as the page holds them: numbers as JSON, each table in a block of its own. Owns :func:`index` and :func:`blocks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import Any

import numpy as np

from policygraph.estimation.cubes.release import Labels
from policygraph.markup import Markup, json_script, tag
from policygraph.model.domain import Domain
from policygraph.pictures import short
from policygraph.release.release import Release, Table

NUMBERS = 1_000_000
"""Most numbers on a page, so that it stays below 10 MB."""
LARGEST = 1_000
"""Of a table that is too large for the page, so many counts are shown, the largest."""
OPEN_ROWS, OPEN_TABLES = 400, 6
"""The first tables are shown at once: up to so many rows and tables together."""
LONG = 60
"""Longest name of an attribute in a title."""
SLIGHT = 1e-9
"""What floating-point numbers are off at most when a figure is taken out of them."""
FINE = 0.01
"""Numbers on the page are rounded to this share of their standard deviation."""


def text_of(label: object) -> str:
    """A label as files have it.

    Examples
    --------
    >>> text_of(True), text_of(3)
    ('true', '3')
    """
    return str(label).lower() if isinstance(label, (bool, np.bool_)) else str(label)


def title_of(table: Table) -> str:
    """The name of a table for people, with long names of attributes cut in their middle.

    Examples
    --------
    >>> title_of(Table("sex x age", ("sex", "age"), ((), ()), [], 0.0, 0.0)), title_of(Table("total", (), (), [], 0.0, 0.0))
    ('sex × age', 'Number of records')
    """
    if table.name == "total" and not table.columns:
        return "Number of records"
    if table.name == "mixing" and table.columns == ("from", "to"):
        return "Edges within and between groups"
    if table.name == " x ".join(table.columns):
        return " × ".join(short(name, LONG) for name in table.columns)
    return short(table.name, 2 * LONG)


def word_of(table: Table) -> str:
    """What a number of the table is.

    Examples
    --------
    >>> [word_of(Table(name, (), (), [], 0.0, 0.0)) for name in ("sum of income by sex", "average of income by sex", "sex x age")]
    ['sum', 'average', 'count']
    """
    first = table.name.partition(" of ")[0]
    return first if first in ("sum", "average") else "count"


def typical(error: Any) -> float:
    """The middle one of the stated errors of a table."""
    listed = np.asarray(error, dtype=np.float64)
    return float(np.median(listed)) if listed.size else 0.0


def rows_each(heights: Sequence[int], numbers: int = NUMBERS) -> int:
    """How many rows of a table the page can hold when it holds so many numbers in all.

    Examples
    --------
    >>> rows_each([10, 10]), rows_each([10, 4_000, 900_000], numbers=10_000)
    (10, 4000)
    """
    for most in sorted(set(heights), reverse=True):
        if sum(height if height <= most else LARGEST for height in heights) <= numbers:
            return most
    return LARGEST


def figure(value: float) -> str:
    """A stated error for people: two figures, rounded up, since the truth is to be within it.

    Examples
    --------
    >>> figure(12.3), figure(0.1234), figure(1234.5), figure(1200.0), figure(1.1), figure(0.0)
    ('13', '0.13', '1,300', '1,200', '1.1', '0')
    """
    if not value or not np.isfinite(value):
        return "0" if not value else "unknown"
    places = 1 - floor(log10(value))
    return f"{ceil(value * 10.0**places - SLIGHT) / 10.0**places:,.{max(0, places)}f}"


def index(release: Release) -> Markup:
    """Every table as a part of the page that opens, the first ones with noise open; what they hold is drawn when they are."""
    made, rows, opened = [], 0, 0
    all_exact = not any(np.any(table.within_95) for table in release.tables)
    for at, table in enumerate(release.tables):
        height = len(table.values)
        # Tables without noise were public before: what is new is shown first.
        news = all_exact or height == 1 or bool(np.any(table.within_95))
        rows += height if news else 0
        shown = news and (not opened or (opened < OPEN_TABLES and rows <= OPEN_ROWS))
        opened += shown
        within = typical(table.within_95)
        said = "exact, without noise" if not np.any(table.within_95) else f"±\u2009{figure(within)} (95 %)"
        made.append(
            tag(
                "details",
                tag(
                    "summary",
                    tag("h3", title_of(table)),
                    tag("span", f"{height:,} {word_of(table)}{'s' * (height != 1)}", class_="size"),
                    tag("span", said, class_="error"),
                ),
                tag("div", class_="view"),
                id=f"table-{at}",
                class_="released",
                data_table=at,
                open=shown,
            )
        )
    return tag("div", made, id="released")


def blocks(release: Release) -> Iterator[Markup]:
    """The data of the page: lists of labels, then a block for each table."""
    pool = _Pool()
    most = rows_each([len(table.values) * _numbers(table) for table in release.tables])
    encoded = [_encoded(release, table, pool, most) for table in release.tables]
    yield json_script(pool.lists, "labels")
    for at, plain in enumerate(encoded):
        yield json_script(plain, f"data-{at}")


def _numbers(table: Table) -> int:
    """Numbers that one row of the table brings to the page."""
    return 1 + (np.ndim(table.within_95) > 0) + (table.unbiased is not None)


class _Pool:
    """Lists of labels, each kept once."""

    def __init__(self) -> None:
        self.lists: list[list[str]] = []
        self._places: dict[tuple[str, ...], int] = {}

    def place(self, labels: Sequence[object]) -> int:
        key = tuple(map(text_of, labels))
        if key not in self._places:
            self._places[key] = len(self.lists)
            self.lists.append(list(key))
        return self._places[key]


def _encoded(release: Release, table: Table, pool: _Pool, most: int) -> dict[str, Any]:
    """A table as plain values: rows in the order of its labels (the last column runs fastest), or rows with the positions of their labels."""
    values = np.asarray(table.values)
    height = len(values)
    whole = height * _numbers(table) <= most
    rows = np.arange(height) if whole else np.sort(np.argsort(-values, kind="stable")[:LARGEST])
    sub = _cuboid(release, table)
    if sub is not None:
        lists: list[Any] = [sub.labels(name) for name in table.columns]
        codes = [np.asarray(c) for c in np.unravel_index(rows, sub.shape)]
    else:
        found = [_coded(np.asarray(listed)[rows]) for listed in table.labels]
        lists, codes = [labels for labels, _ in found], [code for _, code in found]
    shape = [len(labels) for labels in lists]
    product = (
        whole
        and height == int(np.prod(shape, dtype=object))
        and all(np.array_equal(a, b) for a, b in zip(codes, np.unravel_index(rows, shape), strict=True))
        if lists
        else True
    )
    out: dict[str, Any] = {
        "title": title_of(table),
        "word": word_of(table),
        "columns": list(table.columns),
        "labels": [pool.place(labels) for labels in lists],
        "values": _rounded(values[rows], table.deviation),
        "within": _stated(table.within_95, rows),
        "rows": height,
        "basis": table.errors or "exact",
    }
    if not product:
        out["codes"] = [code.tolist() for code in codes]
    if table.unbiased is not None and np.any(table.within_95):
        out["unbiased"] = _rounded(np.asarray(table.unbiased)[rows], table.deviation)
    return out


def _cuboid(release: Release, table: Table) -> Domain | None:
    """The domain of the attributes of a table of a cube, whose labels are not written out."""
    if not isinstance(table.labels, Labels) or not table.columns:
        return None
    domain = release.policy.domain
    return domain.project(table.columns) if isinstance(domain, Domain) else None


def _coded(labels: Any) -> tuple[list[object], Any]:
    """The different labels in the order in which they come, and their positions."""
    places: dict[object, int] = {}
    codes = np.array([places.setdefault(label, len(places)) for label in labels.tolist()], dtype=np.int64)
    return list(places), codes


def _rounded(values: Any, deviation: Any) -> list[float | int]:
    """Values without digits that are noise only."""
    if values.dtype.kind in "iu":
        return [int(value) for value in values]
    positive = np.asarray(deviation, dtype=np.float64)
    positive = positive[(positive > 0) & np.isfinite(positive)]
    places = max(0, -floor(log10(FINE * float(positive.min())))) if positive.size else 6
    settled = np.round(values.astype(np.float64), min(places, 12))
    return [int(value) if value == int(value) else value for value in settled.tolist()]


def _stated(error: Any, rows: Any) -> Any:
    """A stated range with three figures, rounded up: one number where all are the same."""
    listed = np.asarray(error, dtype=np.float64)
    if listed.ndim == 0 or (listed.size and np.all(listed == listed[0])):
        return _up(float(listed.flat[0]) if listed.size else 0.0)
    return [_up(value) for value in listed[rows].tolist()]


def _up(value: float) -> float:
    near = float(f"{value:.3g}")
    return near if near >= value else float(f"{near + 10.0 ** (floor(log10(value)) - 2):.3g}")
