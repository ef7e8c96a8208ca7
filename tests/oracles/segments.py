"""Means over segmentations, by the sum over all of them; and pieces that meet, by dense least squares."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from math import exp, floor, isnan, log2

import numpy as np

NOTHING = (float("nan"), float("nan"))


def place(j: int, n: int) -> float:
    """Half penalties of an end after j of n values: the bits of its code, over those of one of n places."""
    if j == n:
        return 1.0
    bits = floor(log2(n))
    alike = 1.0
    aligned = sum(2.0**level for level in range(bits + 1) if j % 2**level == 0) / (bits + 1)
    return (bits - log2((alike + aligned) / 2)) / max(bits, 1)


def fits(
    values: list[float], a: int, b: int, *, sloped: bool, known: tuple[float, float] = NOTHING
) -> list[tuple[list[float], float, float]]:
    """What a piece can be: its values, the sum of its squared residuals, and how many numbers were fitted."""
    y, n = np.array(values[a:b], dtype=float), len(values)
    at = np.arange(a, b)
    made = [(np.full(len(y), y.mean()), 1)]
    if sloped:
        if len(y) >= 3:
            slope, level = np.polyfit(at, y, 1)
            made += [(level + slope * at, 2)] if slope > 1e-9 else []
        for end, place_, level in ((a == 0, -1, known[0]), (b == n, n, known[1])):
            if not end or isnan(level):
                continue
            made.append((np.full(len(y), level), 0))
            slope = ((y - level) @ (at - place_)) / ((at - place_) @ (at - place_))
            made += [(level + slope * (at - place_), 1)] if slope > 0 and len(y) >= 2 else []
        if a == 0 and b == n and not isnan(known[0] + known[1]):
            made.append((known[0] + (known[1] - known[0]) * (at + 1) / (n + 1), 0))
    return [(fit.tolist(), float(((y - fit) ** 2).sum()), float(count)) for fit, count in made]


def segmentations(
    values: list[float], *, sloped: bool, known: tuple[float, float] = NOTHING
) -> Iterator[tuple[list[float], float, float]]:
    """All segmentations: fitted values, residual, penalties."""
    n = len(values)
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            spans = list(pairwise([0, *cuts, n]))
            pieces = [fits(values, a, b, sloped=sloped, known=known) for a, b in spans]
            ends = sum(place(b, n) for _, b in spans)
            for chosen in product(*pieces):
                yield (
                    [v for fit in chosen for v in fit[0]],
                    sum(fit[1] for fit in chosen),
                    (sum(fit[2] for fit in chosen) + ends) / 2,
                )


def segment_means(
    values: list[float],
    variance: float,
    penalty: float,
    *,
    sloped: bool,
    known: tuple[float, float] = NOTHING,
) -> list[float]:
    """The mean of all segmentations with weights exp(-(residual / (2 variance) + penalties))."""
    listed = list(segmentations(values, sloped=sloped, known=known))
    least = min(rest / (2 * variance) + penalty * cost for _, rest, cost in listed)
    weights = [exp(least - rest / (2 * variance) - penalty * cost) for _, rest, cost in listed]
    made = np.array([fit for fit, _, _ in listed])
    return list(np.array(weights) @ made / sum(weights))


def says(values: np.ndarray, a: int, b: int, at: list[float], *, flat: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the fit of a piece of its own says of places, and the variances of that."""
    inverse = np.linalg.pinv(np.vander(np.arange(a, b, dtype=float), 1 if flat else 2))
    rows = np.vander(np.array(at, dtype=float), 1 if flat else 2) @ inverse
    return rows @ values[a:b], np.square(rows).sum(axis=1)


def met(
    values: np.ndarray, starts: list[int], flat: list[bool], variance: float, penalty: float
) -> list[int]:
    """Ends of pieces one after the other, moved to where two fits meet: residuals of both sides before and after, in full."""
    out = list(starts)
    for p in range(1, len(starts) - 1):
        a, s, b = out[p - 1 : p + 2]
        everywhere = [float(t) for t in range(a - 1, b)]
        one, two = (
            says(values, *span, everywhere, flat=kind)
            for span, kind in (((a, s), flat[p - 1]), ((s, b), flat[p]))
        )
        gap = two[0] - one[0]
        if gap[s - a] ** 2 < penalty * variance * (one[1] + two[1])[s - a] or (flat[p - 1] and flat[p]):
            continue
        corner = (a - 1) - gap[0] / (gap[1] - gap[0])
        if not a + (1 if flat[p - 1] else 3) <= corner + 1 <= b - (1 if flat[p] else 3):
            continue
        end = round(corner + 1)
        after, before = (
            float(((values[a:b] - np.concatenate([one[0][1:cut], two[0][cut:]])) ** 2).sum())
            for cut in (end - a + 1, s - a + 1)
        )
        if after - before < penalty * variance:
            out[p] = end
    return out


def joined(
    values: np.ndarray,
    starts: list[int],
    flat: list[bool],
    variance: float,
    penalty: float,
    known: tuple[float, float],
) -> np.ndarray:
    """Pieces that meet where a jump is not worth half a penalty: the heights of all pieces at both ends, with what is known of them as equations, by dense least squares."""
    starts = met(values, starts, flat, variance, penalty)
    n, count = len(values), len(starts) - 1
    spans = list(pairwise(starts))

    def reach(p: int, at: float) -> tuple[float, float]:
        value, spread = says(values, *spans[p], [at], flat=flat[p])
        return float(value[0]), float(spread[0])

    equal, known_rows = [], []
    for p in range(count + 1):
        at = starts[p] - 1 if p < count else n
        before = reach(p - 1, at) if p else (known[0], 0.0)
        after = reach(p, at) if p < count else (known[1], 0.0)
        meets = (after[0] - before[0]) ** 2 < penalty * variance * (before[1] + after[1])
        if meets and 0 < p < count:
            equal.append((2 * p - 1, 2 * p))
        elif meets:
            known_rows.append((0, known[0]) if p == 0 else (2 * count - 1, known[1]))
    equal += [(2 * p, 2 * p + 1) for p in range(count) if flat[p]]
    to_known = (2 * count - 1) in {at for at, _ in known_rows}
    design = np.zeros((n, 2 * count))
    for p, (a, b) in enumerate(spans):
        length = b - a + (1 if p == count - 1 and to_known else 0)
        r = np.arange(1, b - a + 1) / length
        design[a:b, 2 * p], design[a:b, 2 * p + 1] = 1 - r, r
    ties = np.zeros((len(equal) + len(known_rows), 2 * count))
    right = np.zeros(len(ties))
    for row, (one, two) in enumerate(equal):
        ties[row, one], ties[row, two] = 1, -1
    for row, (at, value) in enumerate(known_rows, start=len(equal)):
        ties[row, at], right[row] = 1, value
    start = np.linalg.lstsq(ties, right, rcond=None)[0] if len(ties) else np.zeros(2 * count)
    free = np.linalg.svd(ties)[2][np.linalg.matrix_rank(ties) :].T if len(ties) else np.eye(2 * count)
    move = np.linalg.lstsq(design @ free, values - design @ start, rcond=None)[0]
    return np.asarray(design @ (start + free @ move))


def settled(values, variance, top, window=8):
    """Values brought nearer to what lines on both sides say, one at a time."""
    n = len(values)
    reach, likely = np.sqrt(2 * variance * np.log(n)), np.sqrt(variance / 2) * (np.log(n) + 5)
    places = [-1, *range(n)] + ([] if np.isnan(top) else [n])
    known = dict(zip(places, [0.0, *values, top]))
    out = np.array(values)
    for i in range(n):
        before = [t for t in places if i - window <= t < i]
        after = [t for t in places if i < t <= i + window]
        inner = window <= i < n - window
        said, rest, free = [], 0.0, 0
        for part in (before, after) if inner else (before + after,):
            away = np.array([known[t] - values[i] for t in part])
            slope, height = np.polyfit(np.array(part) - i, away, 1)
            said.append(height)
            rest += np.sum((away - height - slope * (np.array(part) - i)) ** 2)
            free += len(part) - 2
        if rest > variance * (free + 2 * np.sqrt(5 * free)):
            continue
        low, high = min(said), max(said)
        if reach < low < likely:
            out[i] += low - reach
        elif -likely < high < -reach:
            out[i] += high + reach
    return out
