"""Graphical models by listing every cell, and choices by their literal chances."""

from __future__ import annotations

import numpy as np

__all__ = ["chances", "joint", "marginal", "objective"]


def joint(shape, factors):
    """The distribution over all cells from logarithms of factors, by listing the cells."""
    logs = np.zeros(shape)
    for cell in np.ndindex(*shape):
        for mask, factor in factors.items():
            at = tuple(value for axis, value in enumerate(cell) if mask >> axis & 1)
            logs[cell] += factor[at]
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def marginal(table, mask):
    """Sum a table over all cells onto some attributes, cell by cell."""
    shape = tuple(n for axis, n in enumerate(table.shape) if mask >> axis & 1)
    out = np.zeros(shape)
    for cell in np.ndindex(*table.shape):
        out[tuple(value for axis, value in enumerate(cell) if mask >> axis & 1)] += table[cell]
    return out


def objective(table, evidence, strength):
    """What a fit minimises, for counts of all cells: the distance in the norm of the noise over the strength, less records times entropy."""
    total = table.sum()
    kept = table[table > 0]
    value = float((kept * np.log(kept / total)).sum())
    for piece in evidence:
        off = marginal(table, piece.mask).ravel() - piece.counts
        value += float((off**2).sum()) / (2 * strength * piece.variance)
    return value


def chances(scores, rate):
    """Chances of the exponential mechanism: proportional to exp(rate * score)."""
    weights = np.exp(float(rate) * (np.array(scores, dtype=np.float64) - max(scores)))
    return weights / weights.sum()
