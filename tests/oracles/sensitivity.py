"""Sensitivities straight from the definitions, on tables small enough to list."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from policygraph.model.domain import Domain
from policygraph.moves.graver.basis import graver_basis


def cells(domain: Domain) -> list[dict[str, Any]]:
    """Every cell as a record."""
    return [dict(zip(domain.names, values)) for values in product(*(domain.labels(n) for n in domain.names))]


def margin_rows(domain: Domain, names: tuple[str, ...]) -> list[list[int]]:
    """The rows of a margin, written out cell by cell."""
    records = cells(domain)
    keys = list(product(*(domain.labels(n) for n in names)))
    return [[int(all(r[n] == v for n, v in zip(names, key))) for r in records] for key in keys]


def query_rows(domain: Domain, sets: list[tuple[str, ...]], weights: list[int] | None = None) -> np.ndarray:
    """A set of cuboids as a dense matrix."""
    weights = weights or [1] * len(sets)
    rows = [
        [w * x for x in row] for names, w in zip(sets, weights) for row in margin_rows(domain, tuple(names))
    ]
    return np.array(rows, dtype=np.int64)


def longest(matrix: np.ndarray, query: np.ndarray, norm: str, capacity: int | None = None) -> int:
    """Largest norm (squared for l2) over the whole list of minimal moves, nothing reduced."""
    moves = graver_basis(matrix, capacity=capacity)
    if not len(moves):
        return 0
    answers = moves @ query.T
    return int((np.abs(answers).sum(axis=1) if norm == "l1" else (answers**2).sum(axis=1)).max())


def over_edges(query: np.ndarray, edges: list[tuple[int, int | None]], norm: str) -> int:
    """Largest norm (squared for l2) of a column of W P_G, edge by edge."""
    best = 0
    for u, v in edges:
        change = query[:, u] - (query[:, v] if v is not None else 0)
        best = max(best, int(np.abs(change).sum() if norm == "l1" else (change**2).sum()))
    return best
