"""Compiled loops of adaptive histograms; imported when first used, since numba compiles them."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NOTHING = -1e300


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _blocks(values: Floats, levels: int) -> tuple[Ints, Floats, Floats, Floats]:
    """Mean, slope and residual of the least-squares line of each aligned block of 2^level values; level after level."""
    n = values.size
    at = np.zeros(levels + 2, dtype=np.int64)
    for level in range(levels + 1):
        at[level + 1] = at[level] + (n >> level)
    mean = np.zeros(at[-1])
    slope = np.zeros(at[-1])
    rest = np.zeros(at[-1])
    mean[:n] = values
    for level in range(1, levels + 1):
        size = 1 << level
        half = float(size >> 1)
        own = half * (half * half - 1.0) / 12.0
        both = size * (float(size) * size - 1.0) / 12.0
        for block in range(n >> level):
            a = at[level - 1] + 2 * block
            b = a + 1
            step = mean[b] - mean[a] - slope[a] * half
            turn = slope[b] - slope[a]
            cross = turn * own + half * step * half / 2.0
            to = at[level] + block
            mean[to] = 0.5 * (mean[a] + mean[b])
            slope[to] = slope[a] + cross / both
            more = turn * turn * own + step * step * half / 2.0 - cross * cross / both
            rest[to] = rest[a] + rest[b] + max(0.0, more)
    return at, mean, slope, rest


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def segment_means(
    values: Floats,
    variance: float,
    penalties: Floats,
    sloped: bool,
    bits: int,
    drop: float,
) -> Floats:
    """Means over all segmentations of a sequence, a row for each penalty.

    A segmentation has the weight exp(-(residual / (2 variance) + penalty of each piece)); a piece is constant, or a line that rises, which costs half a penalty more.
    Pieces shorter than 2^(bits+1) may start anywhere; those up to 2^l times as long start and end at multiples of 2^l. Start and end of a sequence are always allowed,
    and what is left out is lighter than exp(-drop) of what is kept.
    """
    n = values.size
    many = penalties.size
    free = 1 << (bits + 1)
    levels = 0
    while (free << levels) < n:
        levels += 1
    at, mean, slope, rest = _blocks(values, levels)
    ahead = np.full((n + 1, many), NOTHING)
    back = np.full((n + 1, many), NOTHING)
    total = np.zeros((n + 1, many))
    ahead[0, :] = 0.0
    total[0, :] = 1.0
    back[n, :] = 0.0
    level_sum = np.zeros((n + 1, many))
    slope_sum = np.zeros((n + 1, many))
    mass_sum = np.zeros((n + 1, many))
    half = 1.0 / (2.0 * variance)
    for second in range(2):
        if second == 1:
            for k in range(many):
                ahead[n, k] += np.log(total[n, k])
        for turn in range(n):
            i = turn if second == 0 else n - 1 - turn
            for k in range(many):
                if second == 0:
                    ahead[i, k] += np.log(total[i, k])
                else:
                    total[i, k] = 0.0
            count = 1.0
            middle = values[i]
            rise = 0.0
            left = 0.0
            spread = 0.0
            j = i + 1
            level = 0
            size = 1
            while True:
                flat = -(left + rise * rise * spread) * half
                line = -left * half if (sloped and rise > 0.0 and count >= 3.0) else NOTHING
                # Two values are a line at no cost, but not a piece of their own: what they say about longer pieces is nothing.
                alive = count < 3.0
                for k in range(many):
                    one = flat - penalties[k]
                    two = line - 1.5 * penalties[k]
                    slack = drop + (1.5 if sloped else 1.0) * penalties[k]
                    if second == 0:
                        one += ahead[i, k]
                        two += ahead[i, k]
                        most = max(one, two)
                        top = ahead[j, k]
                        if most < top - drop:
                            if most > top - slack:
                                alive = True
                            continue
                        alive = True
                        if most > top:
                            total[j, k] *= np.exp(top - most)
                            ahead[j, k] = most
                            top = most
                        total[j, k] += np.exp(one - top)
                        if two > top - drop:
                            total[j, k] += np.exp(two - top)
                    else:
                        if ahead[i, k] + max(one, two) > ahead[j, k] - slack:
                            alive = True
                        one += back[j, k]
                        two += back[j, k]
                        most = max(one, two)
                        top = back[i, k]
                        if most < top - drop:
                            continue
                        if most > top:
                            total[i, k] *= np.exp(top - most)
                            back[i, k] = most
                            top = most
                        total[i, k] += np.exp(one - top)
                        if two > top - drop:
                            total[i, k] += np.exp(two - top)
                        shift = ahead[i, k] - ahead[n, k]
                        if most + shift < -drop:
                            continue
                        p = np.exp(one + shift) if one + shift > -drop else 0.0
                        q = np.exp(two + shift) if two + shift > -drop else 0.0
                        height = (p + q) * middle - q * rise * 0.5 * (i + j - 1)
                        level_sum[i, k] += height
                        level_sum[j, k] -= height
                        slope_sum[i, k] += q * rise
                        slope_sum[j, k] -= q * rise
                        mass_sum[i, k] += p + q
                        mass_sum[j, k] -= p + q
                if not alive:
                    break
                if j - i == (free << level):
                    if i % (2 * size) != 0:
                        break
                    level += 1
                    size *= 2
                if j + size > n:
                    break
                block = at[level] + (j >> level)
                own = size * (float(size) * size - 1.0) / 12.0
                both = count + size
                apart = 0.5 * both
                weight = count * size / both
                step = mean[block] - middle - rise * apart
                bend = slope[block] - rise
                cross = bend * own + apart * step * weight
                wide = spread + own + apart * apart * weight
                more = bend * bend * own + step * step * weight - cross * cross / wide
                left += rest[block] + max(0.0, more)
                middle += (mean[block] - middle) * size / both
                rise += cross / wide
                spread = wide
                count = both
                j += size
            if second == 1:
                for k in range(many):
                    back[i, k] += np.log(total[i, k])
    out = np.empty((many, n))
    for k in range(many):
        a, b, mass = 0.0, 0.0, 0.0
        for t in range(n):
            a += level_sum[t, k]
            b += slope_sum[t, k]
            mass += mass_sum[t, k]
            # All weights that were kept, which is 1 but for those left out: a mean of large sums must not feel them.
            out[k, t] = (a + b * t) / mass
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def heavy_paths(order: Ints, parent: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """Paths from a leaf up that follow the child with most cells below it; all cells, and where each path starts."""
    n = order.size
    heavy = np.full(n, -1, dtype=np.int64)
    for v in order:
        above = parent[v]
        if above >= 0 and (heavy[above] < 0 or sizes[v] > sizes[heavy[above]]):
            heavy[above] = v
    out = np.empty(n, dtype=np.int64)
    starts = np.empty(n + 1, dtype=np.int64)
    paths = 0
    at = 0
    for v in order:
        if parent[v] >= 0 and heavy[parent[v]] == v:
            continue
        starts[paths] = at
        paths += 1
        length = 0
        down = v
        while down >= 0:
            length += 1
            down = heavy[down]
        down = v
        for k in range(length):
            out[at + length - 1 - k] = down
            down = heavy[down]
        at += length
    starts[paths] = at
    return out, starts[: paths + 1]
