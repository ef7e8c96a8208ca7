"""Sparse releases by definition: noise on every cell of a dense table, then the threshold; and the exact law of that."""

from __future__ import annotations

from itertools import product

import numpy as np

from policygraph.curator.noise import discrete_gaussian, discrete_laplace
from policygraph.distributions import gaussian_pmf, laplace_pmf


def dense(table, law, parameter, threshold, n, source):
    """n outputs, one in each row: noisy counts where they reach the threshold, one less than it elsewhere."""
    draw = discrete_laplace if law == "laplace" else discrete_gaussian
    noisy = np.asarray(table) + draw(parameter, (n, len(table)), source)
    return np.where(noisy >= threshold, noisy, threshold - 1)


def cell_law(count, law, parameter, threshold, top):
    """Probabilities of one cell: not listed, each value from the threshold to top - 1, and top or more."""
    pmf = laplace_pmf if law == "laplace" else gaussian_pmf
    listed = [pmf(value - count, parameter) for value in range(threshold, top)]
    reach = 400 + 40 * int(parameter)
    below = sum(pmf(value - count, parameter) for value in range(threshold - reach, threshold))
    return [below, *listed, max(0.0, 1.0 - below - sum(listed))]


def joint_law(table, law, parameter, threshold, top):
    """Probability of every outcome of a small table; values from ``top`` on count as ``top``."""
    cells = [cell_law(count, law, parameter, threshold, top) for count in table]
    return {
        tuple(threshold - 1 + at for at in places): float(
            np.prod([cell[at] for cell, at in zip(cells, places, strict=True)])
        )
        for places in product(range(len(cells[0])), repeat=len(cells))
    }
