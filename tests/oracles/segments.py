"""Means over segmentations, by the sum over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from math import exp

import numpy as np


def fits(piece: list[float], *, sloped: bool) -> list[tuple[list[float], float, float]]:
    """What a piece can be: its values, the sum of its squared residuals, and how many penalties it costs."""
    y = np.array(piece, dtype=float)
    flat = np.full(len(y), y.mean())
    out = [(flat.tolist(), float(((y - flat) ** 2).sum()), 1.0)]
    if sloped and len(y) >= 3:
        slope, level = np.polyfit(np.arange(len(y)), y, 1)
        if slope > 1e-9:
            line = level + slope * np.arange(len(y))
            out.append((line.tolist(), float(((y - line) ** 2).sum()), 1.5))
    return out


def segmentations(values: list[float], *, sloped: bool) -> Iterator[tuple[list[float], float, float]]:
    """All segmentations: fitted values, residual, penalties."""
    n = len(values)
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            ends = [0, *cuts, n]
            pieces = [fits(values[a:b], sloped=sloped) for a, b in pairwise(ends)]
            for chosen in product(*pieces):
                yield (
                    [v for fit in chosen for v in fit[0]],
                    sum(fit[1] for fit in chosen),
                    sum(fit[2] for fit in chosen),
                )


def segment_means(values: list[float], variance: float, penalty: float, *, sloped: bool) -> list[float]:
    """The mean of all segmentations with weights exp(-(residual / (2 variance) + penalty of the pieces))."""
    listed = list(segmentations(values, sloped=sloped))
    least = min(rest / (2 * variance) + penalty * cost for _, rest, cost in listed)
    weights = [exp(least - rest / (2 * variance) - penalty * cost) for _, rest, cost in listed]
    made = np.array([fit for fit, _, _ in listed])
    return list(np.array(weights) @ made / sum(weights))
