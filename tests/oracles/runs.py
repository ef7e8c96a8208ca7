"""Shrinkage of differences within nested runs, by matrices."""

from __future__ import annotations

import math

import numpy as np


def averages(size: int, runs: list[list[int]]) -> np.ndarray:
    """The matrix that replaces each cell by the mean of its run."""
    out = np.zeros((size, size))
    for run in runs:
        out[np.ix_(run, run)] = 1 / len(run)
    return out


def shrunk(cells: np.ndarray, covariance: np.ndarray, lines: list[list[int]], few: int | None) -> np.ndarray:
    """Means of the lines, and of the differences between runs of one length and of twice it the part that noise does not explain.

    With ``few``, factors are found for so many differences at a time, in the order of the lines; what is left over joins the last of them.
    """
    size = len(cells)
    y = np.asarray(cells, dtype=float)
    out, below, length = np.zeros(size), np.eye(size), 1
    while length < max(len(line) for line in lines):
        length *= 2
        runs = [line[a : a + length] for line in lines for a in range(0, len(line), length)]
        above = averages(size, runs)
        apart = below - above
        noise = np.diag(apart @ covariance @ apart.T)
        halved = [run for run in runs if len(run) > length // 2]
        groups = [halved]
        if few is not None:
            many = max(len(halved) // few, 1)
            groups = [halved[few * k : few * (k + 1) if k + 1 < many else None] for k in range(many)]
        for group in groups:
            at = [cell for run in group for cell in run]
            found, expected = float(((apart @ y)[at] ** 2).sum()), float(noise[at].sum())
            tests = max(math.log2(size), 1) * len(groups)
            most = math.sqrt(2 * math.log(tests) * 6 / max(len(group), 1))
            sure = found - expected > expected * min(1.0, most)
            kept = 1 - expected / found if sure else 0.0
            out[at] += kept * (apart @ y)[at]
        below = above
    return out + below @ y
