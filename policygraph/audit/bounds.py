"""From counted events to a bound on the loss. Owns :func:`binomial_bounds` and :class:`Claim`.

Floats are allowed here and nowhere near the noise: an
audit only ever accuses, and every rounding goes towards not accusing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError
from policygraph.exact import Exact
from policygraph.model.loss import Epsilon, EpsilonDelta, Rho, Target

Floats = npt.NDArray[np.float64]

_SLACK = 1e-9
"""Relative error allowed to scipy's incomplete beta function and to the logarithms; far above what they have."""

_ORDERS: Floats = np.concatenate([1 + np.geomspace(1e-3, 1.0, 12), np.geomspace(2.25, 400.0, 28)])


def binomial_bounds(hits: int, runs: int, error: float) -> tuple[float, float]:
    """Bound a probability from both sides by exact binomial tails (Clopper and Pearson 1934).

    Parameters
    ----------
    hits, runs
        How often the event happened, and in how many independent runs.
    error
        Probability with which each of the two bounds may be wrong.

    Returns
    -------
    low, high
        Each holds with probability at least ``1 - error``, whatever the true probability is.

    Examples
    --------
    >>> low, high = binomial_bounds(0, 1000, 0.001)
    >>> low, round(high, 5)
    (0.0, 0.00688)

    Notes
    -----
    ``low`` is the p at which ``hits`` or more have probability ``error``, a quantile of Beta(hits, runs - hits + 1);
    ``high`` is the p at which ``hits`` or fewer have it. Both are moved outwards by a relative 1e-9.
    """
    from scipy.stats import beta

    if not 0 <= hits <= runs or runs < 1 or not 0 < error < 1:
        raise InputError(
            f"hits={hits}, runs={runs}, error={error}: expected 0 <= hits <= runs, runs >= 1, 0 < error < 1.",
            code="audit.counts",
        )
    low = 0.0 if hits == 0 else float(beta.ppf(error, hits, runs - hits + 1))
    high = 1.0 if hits == runs else float(beta.isf(error, hits + 1, runs - hits))
    return low * (1 - _SLACK), min(1.0, high * (1 + _SLACK))


def rough_bounds(hits: npt.NDArray[np.int64], runs: int, width: float) -> tuple[Floats, Floats]:
    """Bound many probabilities roughly (Wilson 1927), to choose events by; no conclusion rests on it.

    Examples
    --------
    >>> low, high = rough_bounds(np.array([0, 50]), 100, 2.0)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.402], [0.038, 0.598])
    """
    share = hits / runs
    spread = width * np.sqrt(share * (1 - share) / runs + width**2 / (4 * runs**2))
    centre, total = share + width**2 / (2 * runs), 1 + width**2 / runs
    low: Floats = np.maximum((centre - spread) / total, 0.0)
    high: Floats = np.minimum((centre + spread) / total, 1.0)
    return low, high


@dataclass(frozen=True)
class Claim:
    """What a mechanism claims to lose at most, as something that counted events can refute.

    Attributes
    ----------
    loss
        Pure epsilon, zCDP rho, or epsilon with delta.

    Examples
    --------
    >>> claim = Claim.read(epsilon=1)
    >>> float(claim.least(np.array([0.5]), np.array([0.1]))[0].round(3)), str(claim)
    (1.609, 'epsilon = 1')

    Notes
    -----
    Let an event have probability at least p on one table and at most q < p on a neighbour.

    - Pure epsilon: epsilon >= ln(p / q).
    - (epsilon, delta): p <= exp(epsilon) q + delta, so epsilon >= ln((p - delta) / q).
    - zCDP: telling only whether the event happened is post-processing, so for every order a > 1 the Renyi divergence
      of Bernoulli(p') from Bernoulli(q') is at most rho a, for the true p' >= p and q' <= q. That divergence
      grows with p' and falls with q' as long as p' > q', so rho >= D_a(p, q) / a, at each order tried.
    """

    loss: Target

    @staticmethod
    def read(epsilon: Exact | None = None, loss: Target | None = None) -> Claim:
        """Read the claim from an epsilon or a loss, whichever is given."""
        if (epsilon is None) == (loss is None):
            raise InputError("expected either epsilon or loss: what is claimed?", code="audit.claim")
        claimed = Epsilon(epsilon) if epsilon is not None else loss
        if not isinstance(claimed, (Epsilon, Rho, EpsilonDelta)):
            raise InputError(
                f"loss={claimed!r}: expected Epsilon, Rho or EpsilonDelta.", code="audit.claim", value=claimed
            )
        return Claim(claimed)

    @property
    def quantity(self) -> str:
        """What is bounded: ``epsilon`` or ``rho``."""
        return "rho" if isinstance(self.loss, Rho) else "epsilon"

    @cached_property
    def claimed(self) -> float:
        """The number claimed, as a float that is not below it."""
        exact = self.loss.epsilon if isinstance(self.loss, EpsilonDelta) else self.loss.value
        return float(np.nextafter(float(exact), np.inf))

    def least(self, low: Floats, high: Floats) -> Floats:
        """Bound the loss from below, event by event, from probabilities of at least ``low`` and at most ``high``."""
        p, q = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        out: Floats = np.zeros(p.shape)
        delta = float(self.loss.delta) * (1 + _SLACK) if isinstance(self.loss, EpsilonDelta) else 0.0
        sure = p - delta > q
        p, q = p[sure], q[sure]
        if p.size:
            found = _renyi(p, q) if isinstance(self.loss, Rho) else np.log((p - delta) / q)
            out[sure] = np.maximum(found, 0.0) * (1 - _SLACK)
        return out

    def refuted_by(self, least: float) -> bool:
        """Whether a lower bound is above the claim."""
        return least > self.claimed

    def __str__(self) -> str:
        return str(self.loss)


def _renyi(p: Floats, q: Floats) -> Floats:
    """Largest D_a(Bernoulli(p), Bernoulli(q)) / a over the orders tried, for p > q."""
    order = _ORDERS[:, None]
    with np.errstate(divide="ignore"):
        rest_p, rest_q = np.log1p(-p), np.log1p(-q)
    # p = 1 makes the second term exp(-inf) = 0; q < p <= 1 keeps the logarithm of 1 - q finite.
    happened = order * np.log(p) + (1 - order) * np.log(q)
    otherwise = order * rest_p + (1 - order) * rest_q
    found: Floats = (np.logaddexp(happened, otherwise) / (order - 1) / order).max(axis=0)
    return found
