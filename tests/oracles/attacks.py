"""The best linear unbiased estimate by the book: null spaces and pseudo-inverses of dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import null_space


def best_estimates(
    facts: Any, values: Any, answers: Any, noisy: Any, variances: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and variances of all cells from A x = b and W x + noise; infinite where a cell is not determined."""
    w = np.asarray(answers, dtype=float)
    a = np.asarray(facts, dtype=float).reshape(-1, w.shape[1])
    start = np.linalg.pinv(a) @ np.asarray(values, dtype=float) if len(a) else np.zeros(w.shape[1])
    free = null_space(a) if len(a) else np.eye(w.shape[1])
    weights = np.diag(1.0 / np.asarray(variances, dtype=float))
    told = w @ free
    told[np.abs(told) < 1e-12 * max(1.0, float(np.abs(w).max(initial=0.0)))] = (
        0.0  # rounding, not information
    )
    seen = told.T @ weights @ told
    inverse = np.linalg.pinv(seen, rcond=1e-9, hermitian=True)
    covariance = free @ inverse @ free.T
    estimate = start + covariance @ w.T @ weights @ (np.asarray(noisy, dtype=float) - w @ start)
    variance = np.diag(covariance).copy()
    variance[np.abs(free @ (np.eye(free.shape[1]) - inverse @ seen)).max(axis=1, initial=0.0) > 1e-7] = np.inf
    return estimate, variance
