"""A small quasi-Newton method. Owns :func:`minimise`.

Problems here have a few hundred variables and are solved hundreds of times, where the threads of a linear-algebra library
cost more than they save.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["minimise"]

Floats = npt.NDArray[np.float64]

MEMORY = 12


def minimise(
    function: Callable[[Floats], tuple[float, Floats]], start: Floats, steps: int, tolerance: float = 1e-10
) -> tuple[float, Floats]:
    """Walk down a smooth function by the limited-memory BFGS method.

    Parameters
    ----------
    function
        Gives the value and the slopes at a point.
    start
        Where to begin.
    steps
        Most steps.
    tolerance
        Stop when five steps together improve the value by less than this.

    Returns
    -------
    tuple
        The least value met, and its point.

    Examples
    --------
    >>> value, point = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 50)
    >>> point.round(6).tolist()
    [3.0, 3.0]

    Notes
    -----
    Two-loop recursion (Nocedal 1980); a step is halved until it gains a ten-thousandth of what the slope promises, and is
    remembered only if the slopes turned the right way, so that every direction leads down.
    """
    point = np.array(start, dtype=np.float64)
    value, slope = function(point)
    changes: list[tuple[Floats, Floats, float]] = []
    recent = [value]
    for _ in range(steps):
        direction = _direction(slope, changes)
        promise = float(direction @ slope)
        if not promise < 0:
            changes.clear()
            direction, promise = -slope, -float(slope @ slope)
            if not promise < 0:
                break
        length = 1.0 if changes else min(1.0, 1.0 / max(float(np.abs(slope).max()), 1e-300))
        for _ in range(30):
            trial = point + length * direction
            reached, there = function(trial)
            if reached <= value + 1e-4 * length * promise:
                break
            length /= 2
        else:
            break
        moved, turned = trial - point, there - slope
        curve = float(moved @ turned)
        if curve > 1e-14 * float(np.sqrt((moved @ moved) * (turned @ turned))):
            changes.append((moved, turned, curve))
            del changes[:-MEMORY]
        point, value, slope = trial, reached, there
        recent.append(value)
        if len(recent) > 5 and recent[-6] - value < tolerance:
            break
    return value, point


def _direction(slope: Floats, changes: list[tuple[Floats, Floats, float]]) -> Floats:
    made = -slope
    parts = []
    for moved, turned, curve in reversed(changes):
        part = float(moved @ made) / curve
        parts.append(part)
        made = made - part * turned
    if changes:
        _, turned, curve = changes[-1]
        made = made * (curve / float(turned @ turned))
    for (moved, turned, curve), part in zip(changes, reversed(parts), strict=True):
        made = made + (part - float(turned @ made) / curve) * moved
    return made
