"""Marginals by prefixes, ranges and rows of matrices, written out record by record."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from policygraph.model.domain import Domain
from tests.oracles.sensitivity import cells


def conditions(domain: Domain, name: str, how: Any) -> list[dict[Any, int]]:
    """For each row of one attribute, how often it counts each label."""
    labels = list(domain.labels(name))
    if how == "values":
        return [{label: 1} for label in labels]
    if how == "prefix":
        return [dict.fromkeys(labels[: at + 1], 1) for at in range(len(labels))]
    if how == "ranges":
        return [
            dict.fromkeys(labels[i : j + 1], 1) for i in range(len(labels)) for j in range(i, len(labels))
        ]
    return [dict(zip(labels, row, strict=True)) for row in how]


def rows(domain: Domain, sets: Any, asked: dict[str, Any], weights: Any = None) -> np.ndarray:
    """The query as a dense matrix over the cells."""
    out = []
    records = cells(domain)
    for at, names in enumerate(sets):
        weight = 1 if weights is None else weights[at]
        for picked in product(*(conditions(domain, name, asked.get(name, "values")) for name in names)):
            row = []
            for record in records:
                entry = weight
                for name, counts in zip(names, picked, strict=True):
                    entry *= counts.get(record[name], 0)
                row.append(entry)
            out.append(row)
    return np.array(out, dtype=np.int64)
