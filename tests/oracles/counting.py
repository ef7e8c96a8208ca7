"""Counting, read literally: one record after the other, one label after the other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from policygraph.public.domain import Domain, Label


def _as_whole(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[ \t]*[+-]?[0-9]+[ \t]*", value) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value)


def _as_float(value: Any) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _as_truth(value: Any) -> bool | None:
    if isinstance(value, str):
        value = value.lower()
    return {True: True, False: False, "true": True, "false": False, "1": True, "0": False}.get(value)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def position(labels: Sequence[Label], value: Any) -> int | None:
    """Position of the label that a value matches, text before whole numbers before floats before truth values."""
    if value is None:
        return None
    for kind, read in ((str, _shown), (int, _as_whole), (float, _as_float), (bool, _as_truth)):
        for at, label in enumerate(labels):
            if type(label) is kind and read(value) is not None and read(value) == label:
                return at
    return None


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
            at = position(labels, record[name])
            if at is not None:
                cell.append(labels[at])
            elif isinstance(unknown, Mapping) and name in unknown:
                cell.append(unknown[name])
        if len(cell) == len(domain.names):
            cells[tuple(cell)] = cells.get(tuple(cell), 0) + 1
        else:
            missed += 1
    return cells, missed
