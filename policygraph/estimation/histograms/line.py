"""Isotonic regression of noisy prefix sums. Owns :func:`isotonic_lines`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["isotonic_lines"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def isotonic_lines(cells: Any, shape: tuple[int, int, int], *, exact_total: bool) -> Ints:
    """Make noisy cells non-negative by the nearest non-decreasing prefix sums, line by line.

    Parameters
    ----------
    cells
        Noisy cells whose prefix sums have independent noise of equal variance.
    shape
        Lines outside, length of a line, lines inside.
    exact_total
        Whether the last prefix sum of each line is known; then it is kept, and no other exceeds it.

    Returns
    -------
    numpy.ndarray
        Whole cells >= 0.

    Notes
    -----
    The projection on 0 <= f_1 <= ... <= f_(n-1) <= N is the isotonic regression clipped to [0, N] (``docs/explanation/proofs/isotonic.md``),
    found by pooling adjacent violators in linear time. Rounding to the nearest whole number keeps the order and the ends.

    Examples
    --------
    >>> isotonic_lines([3, -2, 4, -1, 2], (1, 5, 1), exact_total=True).tolist()
    [2, 0, 3, 0, 1]
    """
    sums = np.cumsum(np.asarray(cells, dtype=np.int64).reshape(shape), axis=1)
    lines = np.moveaxis(sums, 1, 2).reshape(-1, shape[1])
    measured = shape[1] - 1 if exact_total else shape[1]
    out = np.empty_like(lines)
    if measured:
        fitted = np.floor(_isotonic(lines[:, :measured]) + 0.5).astype(np.int64)
        top = np.maximum(lines[:, -1:], 0) if exact_total else None
        out[:, :measured] = np.clip(fitted, 0, top)
    if exact_total:
        out[:, -1] = np.maximum(lines[:, -1], 0)
    fitted_sums = np.moveaxis(out.reshape(shape[0], shape[2], shape[1]), 2, 1)
    return np.diff(fitted_sums, axis=1, prepend=0).reshape(-1)


def _isotonic(lines: Ints) -> Floats:
    """Isotonic regression of each row: scipy's for one, compiled pooling for many."""
    if len(lines) == 1:
        from scipy.optimize import isotonic_regression

        return np.asarray(isotonic_regression(lines[0]).x)[None, :]
    from policygraph.estimation.histograms._compiled_pools import pool_lines

    return np.asarray(pool_lines(lines.astype(np.float64)))
