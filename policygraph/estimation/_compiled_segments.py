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
def ends(n: int) -> Floats:
    """What the end of a piece costs at each place of a sequence, in half penalties: the bits that name the place, over those that name one of n places.

    Half of all weight is shared by all places alike, the other half by the multiples of 1, 2, 4, ..., and by the places of each of them alike.
    """
    levels = 0
    while (1 << (levels + 1)) <= n:
        levels += 1
    out = np.ones(n + 1)
    for j in range(1, n):
        known = 1
        while j % (2 * known) == 0:
            known *= 2
        # Of the places that are multiples of a power of two those of all coarser ones are named as well; the sum of a geometric row.
        out[j] = (levels + 1 - np.log2(1.0 + (2.0 * known - 1.0) / (levels + 1))) / max(levels, 1)
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _own(values: Floats, a: int, b: int, flat: bool) -> tuple[float, float]:
    """Mean and slope of the least-squares fit of a piece of its own."""
    m = float(b - a)
    mean = 0.0
    for t in range(a, b):
        mean += (values[t] - values[a]) / m
    mean += values[a]
    if flat:
        return mean, 0.0
    cross = 0.0
    for t in range(a, b):
        cross += (t - 0.5 * (a + b - 1)) * (values[t] - mean)
    return mean, cross / (m * (m * m - 1.0) / 12.0)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _reach(values: Floats, a: int, b: int, flat: bool, to: float) -> tuple[float, float]:
    """What a piece of its own says of a place, and the variance of that in variances of a value."""
    m = float(b - a)
    away = to - 0.5 * (a + b - 1)
    mean, slope = _own(values, a, b, flat)
    if flat:
        return mean, 1.0 / m
    return mean + slope * away, 1.0 / m + away * away / (m * (m * m - 1.0) / 12.0)


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def met(values: Floats, starts: Ints, flat: npt.NDArray[np.bool_], variance: float, penalty: float) -> Ints:
    """Starts of pieces, moved to where the fits of two neighbours meet if a jump at their end is worth half a penalty there, but not beside the corner.

    A jump is a fitted number. Without it values between the end and the corner change sides; it is left out if this adds less than a penalty of variances to the residual.
    """
    out = starts.copy()
    for p in range(1, starts.size - 1):
        a, s, b = out[p - 1], out[p], out[p + 1]
        before, one = _reach(values, a, s, flat[p - 1], s - 1.0)
        after, two = _reach(values, s, b, flat[p], s - 1.0)
        if (after - before) ** 2 < penalty * variance * (one + two):
            continue
        rise = _own(values, a, s, flat[p - 1])[1]
        turn = _own(values, s, b, flat[p])[1] - rise
        if turn == 0.0:
            continue
        to = s - (after - before) / turn
        if not (a + (1 if flat[p - 1] else 3) <= to <= b - (1 if flat[p] else 3)):
            continue
        q = int(np.rint(to))
        more = 0.0
        for t in range(min(q, s), max(q, s)):
            low = before + rise * (t - s + 1.0)
            apart = after - before + turn * (t - s + 1.0)
            # From one fit to the other: the difference of two squares.
            more += apart * (2.0 * (low - values[t]) + apart)
        if (more if q < s else -more) < penalty * variance:
            out[p] = q
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def joined(
    values: Floats,
    starts: Ints,
    flat: npt.NDArray[np.bool_],
    variance: float,
    penalty: float,
    known: tuple[float, float],
) -> Floats:
    """The least-squares fit of pieces that meet where a jump is not worth half a penalty.

    Parameters
    ----------
    starts
        Where each piece starts, and the length of the sequence.
    flat
        Whether a piece is constant; the others are lines.
    known
        What the sequence rises from, one place before it, and to, one place after it, or nan.

    Notes
    -----
    A piece starts from the last place of the one before. A jump there that is smaller than sqrt(penalty) of its standard deviations is none. Pieces without jumps between them are
    one continuous line with corners, whose heights solve a system with three diagonals.
    """
    n = values.size
    starts = met(values, starts, flat, variance, penalty)
    pieces = starts.size - 1
    jump = np.ones(pieces + 1, dtype=np.bool_)
    for p in range(pieces + 1):
        place = starts[p] - 1.0 if p < pieces else float(n)
        before, one = (
            _reach(values, starts[p - 1], starts[p], flat[p - 1], place) if p > 0 else (known[0], 0.0)
        )
        after, two = (
            _reach(values, starts[p], starts[p + 1], flat[p], place) if p < pieces else (known[1], 0.0)
        )
        # Nothing is known where one of them is nan, and then there is a jump.
        if (after - before) ** 2 < penalty * variance * (one + two):
            jump[p] = False
    low = np.zeros(2 * pieces)
    diagonal = np.zeros(2 * pieces)
    high = np.zeros(2 * pieces)
    right = np.zeros(2 * pieces)
    first = np.zeros(pieces, dtype=np.int64)
    k = -1
    for p in range(pieces):
        if p == 0 or jump[p]:
            k += 1
        first[p] = k
        a, b = starts[p], starts[p + 1]
        if flat[p]:
            for t in range(a, b):
                diagonal[k] += 1.0
                right[k] += values[t]
            continue
        k += 1
        length = b - a + (1.0 if p == pieces - 1 and not jump[pieces] else 0.0)
        for t in range(a, b):
            r = (t - a + 1.0) / length
            diagonal[k - 1] += (1.0 - r) * (1.0 - r)
            diagonal[k] += r * r
            high[k - 1] += r * (1.0 - r)
            low[k] += r * (1.0 - r)
            right[k - 1] += (1.0 - r) * values[t]
            right[k] += r * values[t]
    if not jump[pieces]:
        low[k], diagonal[k], right[k] = 0.0, 1.0, known[1]
    if not jump[0]:
        diagonal[0], high[0], right[0] = 1.0, 0.0, known[0]
    for q in range(1, k + 1):
        share = low[q] / diagonal[q - 1]
        diagonal[q] -= share * high[q - 1]
        right[q] -= share * right[q - 1]
    right[k] /= diagonal[k]
    for q in range(k - 1, -1, -1):
        right[q] = (right[q] - high[q] * right[q + 1]) / diagonal[q]
    out = np.empty(n)
    for p in range(pieces):
        a, b = starts[p], starts[p + 1]
        here = right[first[p]]
        there = here if flat[p] else right[first[p] + 1]
        length = b - a + (1.0 if p == pieces - 1 and not jump[pieces] else 0.0)
        for t in range(a, b):
            out[t] = here + (there - here) * (t - a + 1.0) / length
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _longer(
    piece: tuple[float, float, float, float, float], size: float, mean: float, slope: float, rest: float
) -> tuple[float, float, float, float, float]:
    """A piece (count, mean, slope, residual, spread of places) and the block that follows it, as one."""
    count, middle, rise, left, spread = piece
    own = size * (size * size - 1.0) / 12.0
    both = count + size
    apart = 0.5 * both
    weight = count * size / both
    step = mean - middle - rise * apart
    bend = slope - rise
    cross = bend * own + apart * step * weight
    wide = spread + own + apart * apart * weight
    more = bend * bend * own + step * step * weight - cross * cross / wide
    return (
        both,
        middle + (mean - middle) * size / both,
        rise + cross / wide,
        left + rest + max(0.0, more),
        wide,
    )


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _kinds(
    piece: tuple[float, float, float, float, float],
    i: int,
    j: int,
    n: int,
    half: float,
    sloped: bool,
    known: tuple[float, float],
    found: Floats,
) -> int:
    """What a piece can be, a row for each: minus its residual, how many numbers are fitted, its value at 0 and its slope."""
    count, middle, rise, left, spread = piece
    found[0] = -(left + rise * rise * spread) * half, 1.0, middle, 0.0
    kinds = 1
    if not sloped:
        return kinds
    if rise > 0.0 and count >= 3.0:
        found[1] = -left * half, 2.0, middle - rise * 0.5 * (i + j - 1), rise
        kinds = 2
    far = 0.5 * (count + 1.0)
    for side in range(2):
        if np.isnan(known[side]) or (i != 0 if side == 0 else j != n):
            continue
        away = middle - known[0] if side == 0 else known[1] - middle
        found[kinds] = found[0, 0] - count * away * away * half, 0.0, known[side], 0.0
        kinds += 1
        b = (count * away * far + spread * rise) / (count * far * far + spread)
        if b > 0.0 and count >= 2.0:
            miss = count * (away - b * far) ** 2 + spread * (rise - b) ** 2
            found[kinds] = -(left + miss) * half, 1.0, known[0] + b if side == 0 else known[1] - b * n, b
            kinds += 1
    if i == 0 and j == n and not np.isnan(known[0] + known[1]):
        b = (known[1] - known[0]) / (n + 1.0)
        miss = count * (middle - known[0] - b * far) ** 2 + spread * (rise - b) ** 2
        found[kinds] = -(left + miss) * half, 0.0, known[0] + b, b
        kinds += 1
    return kinds


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def segment_means(
    values: Floats,
    variance: float,
    penalties: Floats,
    sloped: bool,
    bits: int,
    drop: float,
    known: tuple[float, float] = (np.nan, np.nan),
    samples: int = 0,
    first: int = 0,
) -> Floats:
    """Means over all segmentations of a sequence, a row for each penalty; then, for the first of them, means over segmentations drawn by weight whose pieces are :func:`joined`.

    A segmentation has the weight exp(-(residual / (2 variance) + half a penalty for each fitted number and for each end)); a piece is constant, or a line that rises.
    Where it is known what the sequence rises from (one place before the first) or to (one place after the last), the first piece may be a line from there or stay there, the
    last one a line to there or be there already, which saves a number, or two. Ends cost what :func:`ends` says.
    Pieces shorter than 2^(bits+1) may start anywhere; those up to 2^l times as long start and end at multiples of 2^l, or at the ends of the sequence,
    and what is left out is lighter than exp(-drop) of what is kept.
    """
    n = values.size
    many = penalties.size
    free = 1 << (bits + 1)
    levels = 0
    while (free << levels) < n:
        levels += 1
    at, mean, slope, rest = _blocks(values, levels)
    place = ends(n)
    dearest = place.max()
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
    found = np.zeros((8, 4))
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
            piece = (1.0, values[i], 0.0, 0.0, 0.0)
            j = i + 1
            level = 0
            closing = False
            while True:
                kinds = _kinds(piece, i, j, n, half, sloped, known, found)
                # Two values are a line at no cost, but not a piece of their own: what they say about longer pieces is nothing.
                alive = j < i + 3
                for k in range(many):
                    each = 0.5 * penalties[k]
                    most = NOTHING
                    for kind in range(kinds):
                        most = max(most, found[kind, 0] - each * (found[kind, 1] + place[j]))
                    slack = drop + each * ((2.0 if sloped else 1.0) + dearest)
                    if second == 0:
                        here = ahead[i, k]
                        most += here
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
                        for kind in range(kinds):
                            one = here + found[kind, 0] - each * (found[kind, 1] + place[j])
                            if one > top - drop:
                                total[j, k] += np.exp(one - top)
                    else:
                        if ahead[i, k] + most > ahead[j, k] - slack:
                            alive = True
                        here = back[j, k]
                        most += here
                        top = back[i, k]
                        if most < top - drop:
                            continue
                        if most > top:
                            total[i, k] *= np.exp(top - most)
                            back[i, k] = most
                            top = most
                        shift = ahead[i, k] - ahead[n, k]
                        for kind in range(kinds):
                            one = here + found[kind, 0] - each * (found[kind, 1] + place[j])
                            if one > top - drop:
                                total[i, k] += np.exp(one - top)
                            if one + shift > -drop:
                                p = np.exp(one + shift)
                                level_sum[i, k] += p * found[kind, 2]
                                level_sum[j, k] -= p * found[kind, 2]
                                slope_sum[i, k] += p * found[kind, 3]
                                slope_sum[j, k] -= p * found[kind, 3]
                                mass_sum[i, k] += p
                                mass_sum[j, k] -= p
                if not alive or j == n:
                    break
                level, closing = _step(i, j, n, free, level, closing)
                if level < 0:
                    break
                block = at[level] + (j >> level)
                piece = _longer(piece, float(1 << level), mean[block], slope[block], rest[block])
                j += 1 << level
            if second == 1:
                for k in range(many):
                    back[i, k] += np.log(total[i, k])
    out = np.zeros((many + first, n))
    for k in range(many):
        a, b, mass = 0.0, 0.0, 0.0
        for t in range(n):
            a += level_sum[t, k]
            b += slope_sum[t, k]
            mass += mass_sum[t, k]
            # All weights that were kept, which is 1 but for those left out: a mean of large sums must not feel them.
            out[k, t] = (a + b * t) / mass
    starts = np.zeros(n + 1, dtype=np.int64)
    flat = np.zeros(n, dtype=np.bool_)
    for k in range(first):
        each = 0.5 * penalties[k]
        for sample in range(samples):
            pieces = 0
            i = 0
            while i < n:
                # Golden steps: evenly spread over the samples at each place, and different from place to place.
                aim = ((sample + 0.5) / samples + 0.6180339887498949 * (pieces + 1) * (1 + sample)) % 1.0
                piece = (1.0, values[i], 0.0, 0.0, 0.0)
                j = i + 1
                level = 0
                closing = False
                end = j
                even = True
                while True:
                    kinds = _kinds(piece, i, j, n, half, sloped, known, found)
                    alive = j < i + 3
                    for kind in range(kinds):
                        one = found[kind, 0] - each * (found[kind, 1] + place[j])
                        if ahead[i, k] + one > ahead[j, k] - drop - each * (
                            (2.0 if sloped else 1.0) + dearest
                        ):
                            alive = True
                        one += back[j, k] - back[i, k]
                        if one > -drop and aim >= 0.0:
                            aim -= np.exp(one)
                            end = j
                            even = found[kind, 3] == 0.0
                    if not alive or j == n or aim < 0.0:
                        break
                    level, closing = _step(i, j, n, free, level, closing)
                    if level < 0:
                        break
                    block = at[level] + (j >> level)
                    piece = _longer(piece, float(1 << level), mean[block], slope[block], rest[block])
                    j += 1 << level
                starts[pieces] = i
                flat[pieces] = even
                pieces += 1
                i = end
            starts[pieces] = n
            out[many + k] += (
                joined(values, starts[: pieces + 1], flat, variance, penalties[k], known) / samples
            )
    return out


@numba.njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _step(i: int, j: int, n: int, free: int, level: int, closing: bool) -> tuple[int, bool]:
    """By which block a piece grows; -1 where it may not."""
    if not closing and j - i == (free << level):
        if i % (2 << level) != 0:
            return -1, closing
        level += 1
    while j + (1 << level) > n:
        # What is left up to the end of the sequence is taken in blocks that become shorter.
        closing = True
        level -= 1
    return level, closing


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
