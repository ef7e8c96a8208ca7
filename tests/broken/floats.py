"""Floating-point Laplace noise: of the right scale, and its low bits betray the answer (Mironov 2012)."""

from __future__ import annotations

from typing import Any

import policygraph as pg

__all__ = ["OPTIONS", "naive_laplace"]

OPTIONS: dict[str, Any] = {"batch": True, "randomness": "numpy"}


def naive_laplace():
    domain = pg.Domain({"age": 4})
    return _noisy, pg.Policy(domain), pg.queries.identity(domain)


def _noisy(table, n, rng):
    return table + rng.laplace(scale=1.0, size=(n, len(table)))
