"""Counting, read literally: one record after the other, one label after the other."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from policygraph.model.bins import Bins
from policygraph.model.domain import Domain, Label


def _numeral(text: str) -> Fraction | None:
    """What a label writes, without leading zeros or blanks."""
    good = re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e[+-]?[0-9]+)?", text)
    return Fraction(text) if good else None


def _written(text: str) -> int | None:
    good = re.fullmatch(r"[ \t]*([+-]?[0-9]+)(\.0*)?[ \t]*", text)
    return int(good.group(1)) if good else None


def _as_float(text: str) -> float | None:
    good = re.fullmatch(r"[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?[ \t]*", text)
    return float(text) if good and len(text) <= 1000 else None


def _is(label: Label, kind: type) -> bool:
    return type(label) is kind


def _candidates(labels: Sequence[Label], value: Any) -> Iterator[tuple[Any, ...]]:
    """For every label that a value matches: how good the match is, lower being better, and its position."""
    for at, label in enumerate(labels):
        if isinstance(value, bool):
            if _is(label, bool) and label == value:
                yield 0, at
            elif type(label) in (int, float) and label == int(value):
                yield 1, at
            elif _is(label, str) and str(label).lower() == str(value).lower():
                yield 2, not str(label).islower(), at
        elif isinstance(value, (int, float)):
            if type(label) in (int, float) and label == value:
                yield 0, 0, at
            elif _is(label, str) and _numeral(str(label)) is not None and math.isfinite(value):
                meant = Fraction(str(label))
                if meant == Fraction(value) or (meant.denominator > 1 and float(str(label)) == value):
                    yield 1, len(str(label)), at
            elif _is(label, bool) and value == int(label):
                yield 2, 0, at
        elif _is(label, str):
            if label == value:
                yield 0, at
        elif _is(label, bool):
            if value.lower() in (str(label).lower(), str(int(label)), f"{int(label)}.0"):
                yield 3, at
        elif _written(value) == label:
            yield 1, at
        elif _is(label, float) and _as_float(value) == label:
            yield 2, at


def position(labels: Sequence[Label], value: Any) -> int | None:
    """Position of the label that a value matches, by the value alone: see ``counting/labels.py``."""
    if value is None or value != value:
        return None
    found: int | None = min(_candidates(labels, value), default=(None,))[-1]
    return found


def _meant_number(value: Any) -> float | None:
    """The number that a value is or spells, as a double; None for what is none or infinite."""
    if isinstance(value, str):
        found = _as_float(value)
    else:
        # A number beyond all doubles is infinite.
        found = float(value) if abs(value) < 2**1024 - 2**970 else None
    return found if found is not None and math.isfinite(found) else None


def _meant_day(value: Any) -> datetime.date | None:
    """The day that a text spells, with a time in UTC after it or not."""
    if not isinstance(value, str):
        return None
    good = re.fullmatch(
        r"([0-9]{4}-[0-9]{2}-[0-9]{2})([ T]([0-9]{2}):([0-9]{2})(:([0-9]{2})(\.[0-9]+)?)?(Z|\+00(:?00)?)?)?",
        value,
    )
    try:
        if good and good[3]:
            datetime.time(int(good[3]), int(good[4]), int(good[6] or 0))
        return datetime.date.fromisoformat(good[1]) if good else None
    except ValueError:
        return None


def bin_position(bins: Bins, value: Any) -> int | None:
    """Position of the bin that a value is in, or of the label beside the bins that it is."""
    if value is None or value != value:
        return None
    meant: Any = _meant_day(value) if bins.dates else _meant_number(value)
    if meant is not None:
        ends = [*bins.edges[1:], None][: bins.count]
        for at, (start, end) in enumerate(zip(bins.edges, ends, strict=False)):
            if start <= meant and (end is None or meant < end):
                return at
    found = position(bins.also, value)
    return None if found is None else bins.count + found


def count(
    domain: Domain, records: Sequence[Mapping[str, Any]], unknown: str | Mapping[str, Label] = "error"
) -> tuple[dict[tuple[Label, ...], int], int]:
    """Counts by cell, and how many records do not fit."""
    cells: dict[tuple[Label, ...], int] = {}
    missed = 0
    for record in records:
        cell = []
        for name in domain.names:
            labels = domain.labels(name)
            bins = domain.bins(name)
            at = position(labels, record[name]) if bins is None else bin_position(bins, record[name])
            if at is not None:
                cell.append(labels[at])
            elif isinstance(unknown, Mapping) and name in unknown:
                cell.append(unknown[name])
        if len(cell) == len(domain.names):
            cells[tuple(cell)] = cells.get(tuple(cell), 0) + 1
        else:
            missed += 1
    return cells, missed
