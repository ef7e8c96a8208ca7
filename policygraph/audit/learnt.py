"""A score that tells two tables apart, learnt from some of their outputs. Owns :func:`learnt_score`.

Logistic regression of "which table" on the answers. It only proposes what to count: no bound rests on how well it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.audit.draws import Outputs

__all__ = ["Score", "learnt_score"]

Floats = npt.NDArray[np.float64]
Values = npt.NDArray[Any]

COLUMNS = 24
"""Answers that the score may use."""
STEPS = 12
"""Steps of Newton's method at most."""
BLOCK = 64
"""Rows multiplied at once: so few that a library for matrices does not start threads, which cost more than they save."""
RIDGE = 1.0
"""How many outputs the belief that a weight is zero counts for."""
FARTHEST = 1e12
"""Outputs beyond this are taken for it: what is no finite number cannot be weighed."""


@dataclass(frozen=True, eq=False)
class Score:
    """A weighted sum of some answers, and of how much nearer each of them lies to one table's answer than to the other's.

    Attributes
    ----------
    columns
        The answers used.
    a, b
        What each of them is, or mostly is, on either table.
    centre, spread
        What is subtracted from the features, and what they are divided by.
    weights
        One for each feature.
    """

    columns: npt.NDArray[np.int64]
    a: Floats
    b: Floats
    centre: Floats
    spread: Floats
    weights: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """Score outputs: the larger, the more they speak for the second table."""
        made = (features(outputs.rows[:, self.columns], self.a, self.b) - self.centre) / self.spread
        # Rounded, so that outputs that are the same to an eye are the same to a threshold.
        score: Floats = np.round(np.einsum("ij,j->i", made, self.weights), 6)
        return score


def features(rows: Values, a: Floats, b: Floats) -> Floats:
    """Each answer, and how much farther it lies from the first table's answer than from the second's.

    Examples
    --------
    >>> features(np.array([[0, 5], [3, 5]]), np.array([1.0, 5.0]), np.array([2.0, 5.0])).tolist()
    [[0.0, 5.0, -1.0], [3.0, 5.0, 1.0]]
    """
    x = np.clip(
        np.nan_to_num(rows.astype(np.float64), posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST
    )
    apart = a != b
    nearer = np.abs(x[:, apart] - a[apart]) - np.abs(x[:, apart] - b[apart])
    return np.concatenate([x, nearer], axis=1)


def learnt_score(first: Values, second: Values, a: Values, b: Values) -> Score | None:
    """Fit a score to outputs that are used neither to rate nor to test an event.

    Parameters
    ----------
    first, second
        Outputs on either table, one in each row.
    a, b
        What each answer is on either table, or the median of its outputs.

    Returns
    -------
    Score or None
        None when no answer varies.

    Notes
    -----
    The best event at any probability is one of a large likelihood ratio. With Gaussian noise, however correlated, the logarithm of
    the ratio is a weighted sum of the answers; with independent Laplace noise, a sum of |x - a| - |x - b|. Both are in the
    span of the features, so that logistic regression tends to the ratio itself; for other laws it is what comes close.
    """
    both = np.concatenate([first, second])
    columns = _columns(first, second, np.asarray(b - a, dtype=np.float64))
    if not columns.size:
        return None
    at_a, at_b = np.asarray(a, dtype=np.float64)[columns], np.asarray(b, dtype=np.float64)[columns]
    made = features(both[:, columns], at_a, at_b)
    centre, spread = made.mean(axis=0), made.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    which = np.concatenate([np.zeros(len(first)), np.ones(len(second))])
    return Score(columns, at_a, at_b, centre, spread, _regressed((made - centre) / spread, which))


def _columns(first: Values, second: Values, moved: Floats) -> npt.NDArray[np.int64]:
    """The answers that vary: the changed ones first, then those whose means differ most."""
    x, y = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(all="ignore"):
        noise = x.var(axis=0) + y.var(axis=0)
        shift = np.nan_to_num(np.abs(x.mean(axis=0) - y.mean(axis=0)) / np.sqrt(noise + 1e-300), posinf=0.0)
    varies = np.isfinite(noise) & (noise > 0)
    order = np.lexsort((-shift, moved == 0))
    chosen: npt.NDArray[np.int64] = order[varies[order]][:COLUMNS].astype(np.int64)
    return chosen


def _regressed(made: Floats, which: Floats) -> Floats:
    """Weights of a logistic regression with a small penalty on their squares, by Newton's method.

    Examples
    --------
    >>> x = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    >>> bool(_regressed(x, np.array([0.0, 0.0, 1.0, 1.0]))[0] > 0)
    True
    """
    wide = made.shape[1]
    weights, penalty = np.zeros(wide), RIDGE * np.eye(wide)
    blocks = np.zeros((-(-len(made) // BLOCK), BLOCK, wide))
    blocks.reshape(-1, wide)[: len(made)] = made
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(np.einsum("ij,j->i", made, weights), -30, 30)))
        slope = np.einsum("ij,i->j", made, which - chance) - RIDGE * weights
        bend = np.zeros(blocks.shape[:2])
        bend.reshape(-1)[: len(made)] = chance * (1 - chance)
        second = np.matmul((blocks * bend[:, :, None]).transpose(0, 2, 1), blocks).sum(axis=0) + penalty
        step = np.linalg.solve(second, slope)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-3:
            break
    return weights
