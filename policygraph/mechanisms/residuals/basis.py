"""What to measure of one attribute beyond its sum. Owns :class:`ResidualBasis` and :func:`fitted_basis`.

An attribute of n values is its sum and n - 1 further numbers, its residual. Rows R of the residual have a null vector z with entries that add up
to 1: a table is its sum spread along z, plus what R says. For an attribute that is asked by values R is the contrast n I - J and z is even. For
prefixes and ranges the best Gram matrix R^T R solves a convex problem (``docs/explanation/proofs/residuals.md``, section 4); it is computed in
floating point, and rounded to integers, which alone are measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError
from policygraph.model.queries.cuboids import contrast
from policygraph.model.queries.products import AxisRows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEPS = 300
"""Most steps of the fit of one basis; fewer for many values, see :data:`WORK`."""
WORK = 3_000_000_000
"""Steps times the cube of the number of values."""
CLOSE = 1e-7
"""The fit ends when its value is so near, relatively, to what no basis can beat."""
COARSE = 128
"""Prices of more values than this start from those of so many, stretched."""
TINY = 1e-12
MOST_VALUES = 2048
"""Most values of an attribute whose basis is fitted."""


@dataclass(frozen=True, eq=False)
class ResidualBasis:
    """Integer rows of the residual of one attribute, and how counts come back from them.

    Attributes
    ----------
    factor
        How the attribute is asked.
    rows
        Integers, one column for each value; their null space is spanned by one vector, whose entries do not add up to 0.

    Examples
    --------
    >>> basis = ResidualBasis(AxisRows(3), contrast(3))
    >>> basis.even.round(3).tolist(), round(basis.residual, 3), round(basis.total, 3)
    ([0.333, 0.333, 0.333], 0.222, 0.333)
    """

    factor: AxisRows
    rows: Ints

    @cached_property
    def even(self) -> Floats:
        """z: the counts that the rows do not see, with sum 1."""
        n = self.factor.n
        if self.factor.kind == "values":
            return np.full(n, 1.0 / n)
        _, _, vectors = np.linalg.svd(self.rows.astype(np.float64))
        last: Floats = vectors[-1] / vectors[-1].sum()
        return last

    @cached_property
    def back(self) -> Floats:
        """P: counts with sum 0 from the rows, by least squares, so that x = z sum(x) + P R x."""
        n = self.factor.n
        if self.factor.kind == "values":
            made: Floats = np.linalg.pinv(self.rows.astype(np.float64))
            return made
        step = np.eye(n)[:, : n - 1] - np.eye(n)[:, 1:]
        found: Floats = step @ np.linalg.pinv(self.rows @ step)
        return found

    @cached_property
    def by_row(self) -> tuple[Floats, Floats]:
        """Of each row that is asked: its variance for residuals of variance 1, and the square of what it makes of z."""
        noise, spread = self._by_row()
        # A row that the sum determines has no noise, but for rounding.
        return np.where(noise > TINY * noise.max(initial=0.0), noise, 0.0), spread

    def _by_row(self) -> tuple[Floats, Floats]:
        if self.factor.kind == "values":
            return np.square(self.back).sum(axis=1), np.square(self.even)
        low, high = self.factor.ends
        sums = np.concatenate([np.zeros((1, self.back.shape[1])), np.cumsum(self.back, axis=0)])
        spread = np.concatenate([[0.0], np.cumsum(self.even)])
        if self.factor.kind == "prefix":
            return np.square(sums[1:]).sum(axis=1), np.square(spread[1:])
        inner = sums @ sums.T
        each = np.diag(inner)
        noise: Floats = np.maximum(each[high + 1] + each[low] - 2 * inner[high + 1, low], 0.0)
        return noise, np.square(spread[high + 1] - spread[low])

    @property
    def residual(self) -> float:
        """Sum over all asked rows of their variances for residuals of variance 1."""
        return float(self.by_row[0].sum())

    @property
    def total(self) -> float:
        """Sum over all asked rows of the squares of what they make of z: what a variance of 1 of the sum costs them."""
        return float(self.by_row[1].sum())

    @cached_property
    def longest(self) -> int:
        """Largest squared length of a column: what one record more or less changes."""
        return int((self.rows**2).sum(axis=0).max())


def asked_gram(factor: AxisRows) -> Floats:
    """W^T W for the rows W that are asked.

    Examples
    --------
    >>> asked_gram(AxisRows(3, "prefix")).tolist()
    [[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    """
    at = np.arange(factor.n, dtype=np.int64)
    made: Floats = factor.products(at[:, None], at[None, :]).astype(np.float64)
    return made


@dataclass(frozen=True, eq=False)
class Fit:
    """The best Gram matrix for one attribute at a weight of its sum.

    Attributes
    ----------
    gram
        R^T R, with the largest diagonal entry 1.
    even
        z.
    residual, total
        As of a :class:`ResidualBasis`, before rounding.
    bound
        What the weighted total variance cannot be less than, whatever is measured of this attribute alone.
    value
        What it is.
    """

    gram: Floats
    even: Floats
    residual: float
    total: float
    bound: float
    value: float


@lru_cache(maxsize=256)
def fit(n: int, kind: str, weight: float = 0.0) -> Fit:
    """The Gram matrix that is best for the asked rows together with the sum, asked with a weight.

    Parameters
    ----------
    n, kind
        Number of values, and how they are asked.
    weight
        How much the variance of the sum counts beside the asked rows: the more other attributes rest on the sum, too, the more.

    Notes
    -----
    X = A^T A of what is measured has to minimise tr(V X^-1) over diag(X) <= 1. For prices l >= 0 with sum 1 the value is at least
    (tr (V^1/2 diag(l) V^1/2)^1/2)^2, and X = V^1/2 (V^1/2 diag(l) V^1/2)^-1/2 V^1/2, divided by its largest diagonal entry, attains it where that
    is largest; prices are multiplied by the diagonal entries until both meet. The residual is X less its multiple of J: the largest that
    leaves it positive.

    Examples
    --------
    >>> made = fit(8, "prefix")
    >>> round(made.value, 3), made.value <= made.bound * (1 + 1e-6)
    (17.866, True)
    """
    if n > MOST_VALUES:
        raise RefusedError(
            f"an attribute of {n:,} values by {kind}: expected at most {MOST_VALUES:,}, for which what to measure is computed. Coarsen it.",
            code="residuals.values",
            value=n,
        )
    gram = asked_gram(AxisRows(n, kind)) + weight
    sizes, vectors = np.linalg.eigh(gram)
    root = (vectors * np.sqrt(np.maximum(sizes, 0.0))) @ vectors.T
    prices = _first_prices(n, kind, weight)
    best, bound, found = np.inf, 0.0, gram
    for _ in range(max(3, min(STEPS, WORK // n**3))):
        sizes, vectors = np.linalg.eigh((root * prices) @ root)
        roots = np.sqrt(np.maximum(sizes, 1e-300))
        made = root @ (vectors / roots) @ vectors.T @ root
        diagonal = np.diag(made)
        # X of these prices has tr(V X^-1) = the sum of the roots, before it is divided by its largest diagonal entry.
        value = float(roots.sum()) * float(diagonal.max())
        bound = max(bound, float(roots.sum()) ** 2)
        if value < best:
            best, found = value, made / diagonal.max()
        if best <= bound * (1 + CLOSE):
            break
        prices = prices * diagonal
        prices = prices / prices.sum()
    inverse = np.linalg.inv(found)
    sums = inverse.sum(axis=1)
    share = 1.0 / float(sums.sum())
    even = sums * share
    rest = found - share
    spread = inverse - np.outer(even, even) / share
    asked = asked_gram(AxisRows(n, kind))
    top = float(np.diag(rest).max())
    return Fit(
        rest / top,
        even,
        float((asked * spread).sum()) * top,
        float(even @ asked @ even),
        bound,
        best,
    )


def _first_prices(n: int, kind: str, weight: float) -> Floats:
    """Even prices, or those of fewer values stretched: they are a smooth function of the position."""
    if n <= COARSE:
        return np.full(n, 1.0 / n)
    few = fit(COARSE, kind, weight * COARSE / n)
    # The prices of an optimum are those at which X is stationary: diag of X^-1 V X^-1.
    inverse = np.linalg.inv(few.gram + np.outer(np.ones(COARSE), np.ones(COARSE)))
    asked = asked_gram(AxisRows(COARSE, kind))
    prices = np.maximum(np.diag(inverse @ asked @ inverse), 1e-12)
    places = (np.arange(n) + 0.5) * COARSE / n - 0.5
    stretched = np.exp(np.interp(places, np.arange(COARSE), np.log(prices)))
    made: Floats = stretched / stretched.sum()
    return made


def fitted_basis(factor: AxisRows, weight: float, bits: int) -> ResidualBasis:
    """Integer rows near the best residual of one attribute.

    Parameters
    ----------
    factor
        How the attribute is asked.
    weight
        How much the variance of its sum counts, see :func:`fit`.
    bits
        The longest column is about two to this.

    Examples
    --------
    >>> fitted_basis(AxisRows(3, "prefix"), 0.0, 4).rows.tolist()
    [[16, -2, -12], [0, 15, -10]]
    >>> fitted_basis(AxisRows(2), 0.0, 4).rows.tolist()
    [[1, -1]]
    """
    if factor.kind == "values":
        return ResidualBasis(factor, contrast(factor.n))
    made = fit(factor.n, factor.kind, weight)
    last = int(np.argmax(np.abs(made.even)))
    rest = [at for at in range(factor.n) if at != last]
    low = np.linalg.cholesky(made.gram[np.ix_(rest, rest)])
    rows = np.zeros((factor.n - 1, factor.n))
    rows[:, rest] = low.T
    rows[:, last] = np.linalg.solve(low, made.gram[rest, last])
    return ResidualBasis(factor, whole(rows, bits))


def whole(rows: Floats, bits: int) -> Ints:
    """Round rows to integers so that no column gets longer than two to some bits, but for less than its smallest entry.

    Notes
    -----
    One long column would cost accuracy everywhere, since noise is scaled to the longest: entries of a column that became too long are moved one
    towards zero, those first that rounding had moved farthest from it.
    """
    scaled = rows * float(1 << bits)
    made = np.rint(scaled).astype(np.int64)
    limit = 1 << (2 * bits)
    for at in range(made.shape[1]):
        column = made[:, at]
        gained = np.abs(column) - np.abs(scaled[:, at])
        for place in np.argsort(-gained, kind="stable").tolist():
            if int((column**2).sum()) <= limit:
                break
            if column[place]:
                column[place] -= np.sign(column[place])
    return made
