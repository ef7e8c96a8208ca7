"""Events on which two tables may differ. Owns :class:`Event` and :func:`best_events`, which chooses them.

The outputs given here are used to choose and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.audit.bounds import Claim, rough_bounds
from policygraph.audit.draws import Ints, Outputs
from policygraph.audit.statistics import Statistic

Values = npt.NDArray[Any]

TAILS = 64
"""Thresholds tried for each statistic."""
SET_SIZES = np.linspace(0.0, 1.0, 24)
"""Sizes tried for sets of values, as exponents of the number of values."""
LEGIBLE = 0.95
"""What the promise of a statistic counts that nobody can check by eye."""
SHOWN = 8
"""Values of a set that are named in words."""
MOST_VALUES = 1024
"""Statistics with more values than this are looked at through thresholds only."""


@dataclass(frozen=True, eq=False)
class Event:
    """Something that happens or not in one output.

    Attributes
    ----------
    statistic
        What is looked at.
    low, high
        Bounds of its value, both included; None for no bound.
    among
        Values that count, in ascending order; None when the bounds decide.
    """

    statistic: Statistic
    low: float | None = None
    high: float | None = None
    among: Values | None = None

    def hits(self, outputs: Outputs) -> int:
        """Count the outputs in which the event happens."""
        values = self.statistic(outputs)
        if self.among is not None:
            return int(np.isin(values, self.among).sum())
        good = np.ones(len(values), dtype=bool)
        if self.low is not None:
            good &= values >= self.low
        if self.high is not None:
            good &= values <= self.high
        return int(good.sum())

    def __str__(self) -> str:
        words, show = self.statistic.words, self.statistic.show
        if self.among is None:
            low = f" at least {show(self.low)}" if self.low is not None else ""
            return f"{words} is{low}" + (f" at most {show(self.high)}" if self.high is not None else "")
        named = ", ".join(show(value) for value in self.among[:SHOWN].tolist())
        if self.among.size == 1:
            return f"{words} is exactly {named}"
        return (
            f"{words} is one of {named}{' ...' if self.among.size > SHOWN else ''} ({self.among.size} values)"
        )


@dataclass(frozen=True, eq=False)
class Promising:
    """The event that promises most for one direction, with the bound that it promises."""

    event: Event
    promise: float


def best_events(
    claim: Claim, first: Outputs, second: Outputs, looks: Iterable[Statistic], width: float
) -> tuple[Promising | None, Promising | None]:
    """Choose one event that is likelier on the first table, and one that is likelier on the second.

    Parameters
    ----------
    claim
        What the bound is about.
    first, second
        Outputs for choosing only.
    looks
        The statistics to try.
    width
        How many standard deviations a promise keeps away from the estimate.

    Notes
    -----
    Thresholds and sets are learnt on one half of these outputs and rated on the other, since a set of rare values always
    looks good on the outputs it was made from.
    """
    half = len(first) // 2
    best: list[Promising | None] = [None, None]
    for look in looks:
        a, b = look(first), look(second)
        families = [
            *_tails(look, a[:half], b[:half], a[half:], b[half:]),
            *_sets(look, a[:half], b[:half], a[half:], b[half:]),
        ]
        if not families:
            continue
        low_a, high_a = rough_bounds(np.concatenate([hits for _, hits, _ in families]), len(a) - half, width)
        low_b, high_b = rough_bounds(np.concatenate([hits for _, _, hits in families]), len(a) - half, width)
        for way, promise in enumerate((claim.least(low_a, high_b), claim.least(low_b, high_a))):
            at = int(promise.argmax())
            now = best[way]
            worth = float(promise[at]) * (1.0 if look.plain else LEGIBLE)
            if worth > (0.0 if now is None else now.promise):
                best[way] = Promising(_pick(families, at), worth)
    return best[0], best[1]


Family = tuple[Callable[[int], Event], Ints, Ints]
"""How to make the event of a number, and how often each event happened on either table."""


def _pick(families: list[Family], at: int) -> Event:
    for make, hits, _ in families:
        if at < len(hits):
            return make(at)
        at -= len(hits)
    raise IndexError(at)


def _tails(look: Statistic, a: Values, b: Values, rate_a: Values, rate_b: Values) -> Iterator[Family]:
    if not look.ordered:
        return
    pooled = np.sort(np.concatenate([a, b]))
    cuts = np.unique(pooled[np.linspace(0, len(pooled) - 1, TAILS).round().astype(int)])
    sorted_a, sorted_b = np.sort(rate_a), np.sort(rate_b)
    up = [len(s) - np.searchsorted(s, cuts, side="left") for s in (sorted_a, sorted_b)]
    yield (lambda at: Event(look, low=cuts[at].item())), up[0], up[1]
    down = [np.searchsorted(s, cuts, side="right") for s in (sorted_a, sorted_b)]
    yield (lambda at: Event(look, high=cuts[at].item())), down[0], down[1]


def _sets(look: Statistic, a: Values, b: Values, rate_a: Values, rate_b: Values) -> Iterator[Family]:
    values, inverse = np.unique(np.concatenate([a, b]), return_inverse=True)
    if values.size > MOST_VALUES or values.size < 2:
        return
    count_a = np.bincount(inverse[: len(a)], minlength=values.size)
    count_b = np.bincount(inverse[len(a) :], minlength=values.size)
    # One pseudo-count keeps a value seen once from looking like a certainty.
    order = np.argsort(np.log(count_b + 1.0) - np.log(count_a + 1.0), kind="stable")
    rank = np.empty(values.size, dtype=np.int64)
    rank[order] = np.arange(values.size)
    ranked = [
        np.bincount(_rank(values, rank, rated), minlength=values.size + 1) for rated in (rate_a, rate_b)
    ]
    sizes = np.unique(np.rint((values.size - 1.0) ** SET_SIZES).astype(np.int64))
    heads = [np.cumsum(r[:-1])[sizes - 1] for r in ranked]
    yield (lambda at: Event(look, among=np.sort(values[order[: sizes[at]]]))), heads[0], heads[1]
    tails = [np.cumsum(r[:-1][::-1])[sizes - 1] for r in ranked]
    yield (lambda at: Event(look, among=np.sort(values[order[-sizes[at] :]]))), tails[0], tails[1]


def _rank(values: Values, rank: Ints, rated: Values) -> Ints:
    """Rank of each value by how much it speaks for the first table; last of all for a value not seen before."""
    at = np.minimum(np.searchsorted(values, rated), values.size - 1)
    out: Ints = np.where(values[at] == rated, rank[at], values.size)
    return out
