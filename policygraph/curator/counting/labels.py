"""From the values of a column to the positions of labels and bins, as SQL. Owns :class:`Coder`.

Labels match by value, never by guess, and whatever the type of the column:

- a whole number matches a label that is this number, be it written 1 or 1.0 there; then a text that writes it, ``1`` before ``1.0``; 0 and 1 then match false and true;
- another number matches the label of equal value, then a text that writes it;
- true and false match these labels, then 1 and 0, then these words;
- a text matches equal text, blanks and leading zeros included; then, if it is a whole number such as ``7``, ``007``, `` 7 `` or ``7.0``, this number; then,
  if it is a number, a float of equal value; then, for these words in any case, true and false.

A value that is not a number (NaN) matches nothing, as no value does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from math import ceil

import numpy as np

from policygraph.curator.counting import sql
from policygraph.curator.counting.dialect import DUCKDB, Dialect
from policygraph.curator.counting.values import FLOATS, JSON, MIXED, SPLIT, WHOLE, is_number, number, parts
from policygraph.errors import DataError, InputError
from policygraph.model.bins import Bins
from policygraph.model.domain import Label

EXACT = 2**53
"""Beyond it not every whole number is a float."""
NUMERAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]{1,4})?")


@dataclass(frozen=True)
class Coder:
    """How SQL turns one column into positions of labels.

    Attributes
    ----------
    joins
        LEFT JOIN clauses onto small tables of labels; a label occurs in them once, so no row is doubled.
    code
        Expression of the position of the value, or NULL for a value that is no label.
    by_text
        Whether values are compared as text, which is worth doing once per distinct value only.
    made
        Expressions with their names, which ``code`` uses as columns of ``r``.
    """

    joins: tuple[str, ...]
    code: str
    by_text: bool
    made: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Keys:
    """Labels by what they match: positions of texts, of whole numbers, of other numbers, of true and false."""

    texts: Mapping[str, int]
    wholes: Mapping[int, int]
    others: Mapping[float, int]
    truths: Mapping[bool, int]
    exact: bool
    """Whether all whole numbers among the labels are floats, too."""


def coder(
    value: str,
    kind: str,
    labels: Sequence[Label],
    prefix: str,
    *,
    textual: bool = False,
    integer: str = "BIGINT",
    dialect: Dialect = DUCKDB,
) -> Coder:
    """Plan the look-up of one column.

    Parameters
    ----------
    value
        SQL expression of the value.
    kind
        DuckDB type of the column, or one of the kinds of ``counting.values``.
    labels
        The labels of the attribute, in order.
    prefix
        Start of the names of the label tables.
    textual
        Whether the source has no types: an empty field is then the empty text where that is a label.
    integer
        SQL type of the position.
    dialect
        The words of the engine.

    Raises
    ------
    DataError
        When labels beyond 2^53 meet a column of floats, which may have been rounded.

    Examples
    --------
    >>> coder("x", "INTEGER", range(5), "a").code
    'CASE WHEN x BETWEEN 0 AND 4 THEN CAST(x AS BIGINT) END'
    """
    many = parts(value, kind)
    floating = kind in FLOATS or kind == SPLIT
    if isinstance(labels, range):
        _check_exact(floating, len(labels) <= EXACT, value)
        codes = [_span(_whole(one, its, dialect), 0, len(labels) - 1, integer) for one, its in many]
        return Coder((), _first(codes), _by_text(kind))
    plan = _Plan(_keys(labels), prefix, integer, dialect)
    _check_exact(floating, plan.keys.exact, value)
    for at, (one, its) in enumerate(many):
        tag = "" if len(many) == 1 else f"{at}_"
        if its in WHOLE:
            plan.whole(one, f"{tag}whole")
            if plan.huge:
                plan.join(f"CAST({one} AS DOUBLE)", plan.huge, f"{tag}huge", "DOUBLE")
        elif its == "BOOLEAN":
            plan.truth(f"({one})")
        elif is_number(its):
            plan.whole(_whole(one, its, dialect), f"{tag}whole")
            if its == "FLOAT":
                plan.join(f"CAST({one} AS DOUBLE)", _narrowed(plan.keys.others), f"{tag}float", "DOUBLE")
            else:
                plan.join(number(one, its, dialect), plan.keys.others, f"{tag}float", "DOUBLE")
        else:
            plan.text(one if its == "VARCHAR" else dialect.text(one, its), tag, textual, labels)
    if not plan.codes:
        return Coder((), f"CAST(NULL AS {integer})", _by_text(kind))
    return Coder(tuple(plan.joins), _first(plan.codes), _by_text(kind) or bool(plan.joins))


def bin_coder(
    value: str,
    kind: str,
    bins: Bins,
    prefix: str,
    *,
    textual: bool = False,
    integer: str = "BIGINT",
    dialect: Dialect = DUCKDB,
) -> Coder:
    """Plan the look-up of one column in bins; the arguments are those of :func:`coder`.

    Notes
    -----
    A number is compared as the double that is nearest to it, whatever the type of its column; since no edge is beyond 2^53, that is exact for whole numbers. A float of 32 bits means
    the number that it prints. True and false are 1 and 0. A day is compared by its digits. What is no number, or infinite, has no bin.

    Examples
    --------
    >>> bin_coder("x", "INTEGER", Bins([0, 15]), "a").code
    'CAST(CASE WHEN x < (0) THEN NULL WHEN x < (15) THEN 0 WHEN x >= (15) THEN 1 END AS BIGINT)'
    """
    made: list[str] = []
    codes: list[str] = []
    numbers = [edge for edge in bins.edges if isinstance(edge, (int, float))]
    wholes = [ceil(edge) for edge in numbers]
    for at, (one, its) in enumerate(parts(value, kind)):
        text = one if its == "VARCHAR" else dialect.text(one, its)
        edges: Sequence[int | float] = [float(edge) for edge in numbers]
        plain: str | None = None
        if bins.dates:
            if its in WHOLE or its == "BOOLEAN" or is_number(its):
                continue
            edges = [int(edge.strftime("%Y%m%d")) for edge in bins.edges if isinstance(edge, date)]
            spelled = dialect.day_of_text(text)
        elif its in WHOLE and its != "UHUGEINT":
            plain, edges = one, wholes
        elif its == "BOOLEAN":
            plain, edges = _whole(one, its, dialect), wholes
        elif its == "FLOAT":
            plain, edges = f"CAST({one} AS DOUBLE)", [_narrow(edge) for edge in numbers]
        elif its == "DOUBLE":
            plain = one
        elif is_number(its) or its in WHOLE:
            spelled = number(one, its, dialect)
        else:
            spelled = dialect.number_of_text(text)
        if plain is not None:
            codes.append(_bin(plain, edges, bins.open, integer))
            continue
        # Worked out once, since it is compared with many edges.
        made.append(f"{spelled} AS {prefix}bin{at}")
        codes.append(_bin(f"r.{prefix}bin{at}", edges, bins.open, integer))
    joins: tuple[str, ...] = ()
    if bins.also:
        more = coder(value, kind, bins.also, prefix, textual=textual, integer=integer, dialect=dialect)
        joins = more.joins
        codes.append(f"CAST({more.code} + {bins.count} AS {integer})")
    return Coder(joins, _first(codes) if codes else f"CAST(NULL AS {integer})", _by_text(kind), tuple(made))


def _bin(value: str, edges: Sequence[int | float], unending: bool, integer: str) -> str:
    """SQL of the bin of a number; NULL below the first edge, from the end on, and for NULL, NaN and infinity."""
    cases = [f"WHEN {value} < {sql.literal(edge)} THEN {at}" for at, edge in enumerate(edges[1:])]
    if unending:
        last = (
            f">= {sql.literal(edges[-1])}"
            if isinstance(edges[-1], int)
            else f"<= {sql.literal(sys.float_info.max)}"
        )
        cases.append(f"WHEN {value} {last} THEN {len(edges) - 1}")
    return f"CAST(CASE WHEN {value} < {sql.literal(edges[0])} THEN NULL {' '.join(cases)} END AS {integer})"


def _narrow(edge: float) -> float:
    """The smallest float of 32 bits whose printed form is at least an edge."""
    near = np.float32(edge)
    while float(str(near)) >= edge:
        near = np.nextafter(near, np.float32(-np.inf))
    while float(str(near)) < edge:
        near = np.nextafter(near, np.float32(np.inf))
    return float(near)


def _by_text(kind: str) -> bool:
    return kind in ("VARCHAR", JSON, MIXED, SPLIT) or kind.startswith("ENUM")


def _first(codes: list[str]) -> str:
    return codes[0] if len(codes) == 1 else f"coalesce({', '.join(codes)})"


def _check_exact(floating: bool, exact: bool, value: str) -> None:
    if floating and not exact:
        raise DataError(
            "a column of floats for labels beyond 2^53: whole numbers of this size may have been rounded in it, as pandas does where one value is missing. "
            "Give the column as integers (in pandas: Int64) or as text.",
            code="data.inexact",
        )


def _keys(labels: Sequence[Label]) -> _Keys:
    """Sort labels by what they match; where two match the same value, the first in the order of this module does."""
    texts: dict[str, int] = {}
    wholes: dict[int, int] = {}
    others: dict[float, int] = {}
    truths: dict[bool, int] = {}
    exact = True
    written: list[tuple[int, int, str]] = []
    for at, label in enumerate(labels):
        if isinstance(label, bool):
            truths[label] = at
        elif isinstance(label, int):
            wholes[_bounded(label)] = at
            exact = exact and abs(label) <= EXACT
        elif isinstance(label, float):
            if label.is_integer() and abs(label) < 2.0**63:
                wholes[int(label)] = at
            else:
                others[label] = at
        else:
            texts[label] = at
            if NUMERAL.fullmatch(label):
                written.append((len(label), at, label))
    words = sorted(
        (word for word in texts if word.lower() in ("true", "false")), key=lambda word: not word.islower()
    )
    spoken = {
        value: next((texts[word] for word in words if word.lower() == name), None)
        for value, name in ((True, "true"), (False, "false"))
    }
    for value in (True, False):
        for found in (wholes.get(int(value)), spoken[value]):
            if found is not None:
                truths.setdefault(value, found)
    only_truth = {label: at for label, at in truths.items() if isinstance(labels[at], bool)}
    for _, at, label in sorted(written):
        meant = Fraction(label)
        if meant.denominator == 1 and -(2**63) <= meant < 2**63:
            wholes.setdefault(int(meant), at)
            exact = exact and abs(meant) <= EXACT
        else:
            others.setdefault(float(label), at)
            exact = exact and meant.denominator != 1
    for label, at in only_truth.items():
        wholes.setdefault(int(label), at)
    return _Keys(texts, wholes, others, truths, exact)


class _Plan:
    """Joins and codes of one column, in the order in which they are tried."""

    def __init__(self, keys: _Keys, prefix: str, integer: str, dialect: Dialect) -> None:
        self.keys, self.prefix, self.integer, self.dialect = keys, prefix, integer, dialect
        self.joins: list[str] = []
        self.codes: list[str] = []

    @property
    def huge(self) -> dict[float, int]:
        """Other numbers that are whole all the same, beyond 64 bits."""
        return {label: at for label, at in self.keys.others.items() if label.is_integer()}

    def join(
        self,
        expression: str,
        keys: Mapping[str, int] | Mapping[int, int] | Mapping[float, int],
        tag: str,
        kind: str,
    ) -> None:
        """Look a value up in a table of labels."""
        if not keys:
            return
        if len(keys) <= self.dialect.few:
            cases = " ".join(f"WHEN {sql.literal(label)} THEN {at}" for label, at in keys.items())
            self.codes.append(f"CAST(CASE {expression} {cases} END AS {self.integer})")
            return
        table = f"{self.prefix}{tag}"
        made = self.dialect.labels(list(keys), kind, list(keys.values()))
        self.joins.append(f"LEFT JOIN ({made}) AS {table} ON {table}.label = {expression}")
        self.codes.append(f"CAST({table}.code AS {self.integer})")

    def whole(self, expression: str, tag: str, keys: Mapping[int, int] | None = None) -> None:
        """Find a whole number: by arithmetic where labels are consecutive, in a table otherwise."""
        keys = self.keys.wholes if keys is None else keys
        if not keys:
            return
        low = min(keys)
        if all(at == label - low for label, at in keys.items()):
            self.codes.append(_span(expression, low, max(keys), self.integer))
        else:
            self.join(expression, keys, tag, "BIGINT")

    def truth(self, condition: str) -> None:
        """Find true or false."""
        cases = [
            f"WHEN {'' if value else 'NOT '}{condition} THEN {at}" for value, at in self.keys.truths.items()
        ]
        if cases:
            self.codes.append(f"CAST(CASE {' '.join(cases)} END AS {self.integer})")

    def text(self, shown: str, tag: str, textual: bool, labels: Sequence[Label]) -> None:
        """Find a text: as itself, then as what it writes; only labels that are numbers are found that way."""
        self.join(
            f"coalesce({shown}, '')" if textual and "" in self.keys.texts else shown,
            self.keys.texts,
            f"{tag}text",
            "VARCHAR",
        )
        # A text is not looked up by what it writes among labels that are texts: 007 is not 7 there.
        meant = {
            label: at for label, at in self.keys.wholes.items() if not isinstance(labels[at], (str, bool))
        }
        self.whole(self.dialect.whole_of_text(shown), f"{tag}written", meant)
        floats = {label: at for label, at in self.keys.others.items() if not isinstance(labels[at], str)}
        floats |= {float(label): at for label, at in meant.items() if isinstance(labels[at], float)}
        self.join(self.dialect.number_of_text(shown), floats, f"{tag}float", "DOUBLE")
        truths = {label: at for label, at in self.keys.truths.items() if isinstance(labels[at], bool)}
        cases = [
            f"WHEN lower({shown}) IN ('{str(label).lower()}', '{int(label)}', '{int(label)}.0') THEN {at}"
            for label, at in truths.items()
        ]
        if cases:
            self.codes.append(f"CAST(CASE {' '.join(cases)} END AS {self.integer})")


def _span(at: str, low: int, high: int, integer: str) -> str:
    _bounded(low), _bounded(high)
    position = (
        f"CAST({at} AS {integer})" if low == 0 else f"CAST(CAST({at} AS BIGINT) - ({low}) AS {integer})"
    )
    return f"CASE WHEN {at} BETWEEN {low} AND {high} THEN {position} END"


def _narrowed(keys: Mapping[float, int]) -> dict[float, int]:
    """Labels by the 32-bit floats that mean them, which are those that print as them."""
    import duckdb

    if not keys:
        return {}
    numbers = ", ".join(map(sql.literal, keys))
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT CAST(x AS DOUBLE), CAST(CAST(x AS VARCHAR) AS DOUBLE) FROM (SELECT TRY_CAST(unnest([{numbers}]) AS FLOAT) AS x)"
        ).fetchall()
    return {near: keys[meant] for near, meant in found if meant in keys}


def _whole(value: str, kind: str, dialect: Dialect) -> str:
    """SQL of the value as a whole number; NULL where it is none. A plain cast would round 1.7 to 2."""
    if kind in WHOLE:
        return value
    if kind == "BOOLEAN":
        return f"(CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END)"
    if is_number(kind):
        return dialect.whole_of_number(value, kind)
    return dialect.whole_of_text(value if kind == "VARCHAR" else dialect.text(value, kind))


def _bounded(label: int) -> int:
    if not -(2**63) <= label < 2**63:
        raise InputError(
            f"label {label}: expected a whole number of at most 64 bits.", code="data.label", value=label
        )
    return label
