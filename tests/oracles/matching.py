"""All covers of a few vertices by pairs and singles, and the first of the cheapest."""

from __future__ import annotations

import functools


def covers(vertices):
    """Every way to leave vertices single or pair them, as tuples of pairs in order."""
    if not vertices:
        yield ()
        return
    first, *rest = vertices
    yield from covers(rest)
    for at, other in enumerate(rest):
        for more in covers(rest[:at] + rest[at + 1 :]):
            yield ((first, other), *more)


def cost(cover, pairs, singles):
    paired = {v for pair in cover for v in pair}
    return sum(pairs[a][b] for a, b in cover) + sum(s for v, s in enumerate(singles) if v not in paired)


def comes_first(one, two):
    """Whether ``one`` has the first pair that only one of two different covers has."""
    return min(set(one) ^ set(two)) in set(one)


def first_cheapest(pairs, singles):
    best = None
    for cover in covers(list(range(len(singles)))):
        value = cost(cover, pairs, singles)
        if best is None or value < best[0] or (value == best[0] and comes_first(cover, best[1])):
            best = value, cover
    return best


def order_of(marks, levels):
    """The fixed order of covers: by the sums of the marks of each level, then by the first pair that differs."""

    tables = [marks(64, at) for at in range(levels)]

    def sums(cover):
        return [sum(int(table[a][b]) for a, b in cover) for table in tables]

    def compare(one, two):
        if set(one) == set(two):
            return 0
        if sums(one) != sums(two):
            return -1 if sums(one) < sums(two) else 1
        return -1 if comes_first(one, two) else 1

    return functools.cmp_to_key(compare)


def first_by(pairs, singles, key):
    """The first cheapest cover in an order."""
    found = list(covers(list(range(len(singles)))))
    least = min(cost(cover, pairs, singles) for cover in found)
    return least, min((c for c in found if cost(c, pairs, singles) == least), key=key)


def three_law(deviations, scale_single, scale_pair, charge, bias, rank, law, reach):
    """Law of the chosen pair among three cells (None: all single), by summing over the noises of the singles."""
    import numpy as np

    noise = np.arange(-reach, reach + 1)
    single = law(scale_single, reach)
    weight = single[:, None, None] * single[None, :, None] * single[None, None, :]
    s = np.meshgrid(noise, noise, noise, indexing="ij")
    pairs = [(0, 1), (0, 2), (1, 2)]
    options = [None, *pairs]
    out = dict.fromkeys(options, 0.0)
    pair_law = law(scale_pair, reach)
    tails = np.concatenate([np.cumsum(pair_law[::-1])[::-1], [0.0]])

    def at_least(threshold):
        """P(Z >= threshold) for an array of whole numbers."""
        return tails[np.clip(threshold + reach, 0, 2 * reach + 1)]

    def fixed(option):
        """Cost without the noise of the pair."""
        if option is None:
            return s[0] + s[1] + s[2] + 3 * charge
        (alone,) = {0, 1, 2} - set(option)
        return s[alone] + deviations[option] + 2 * charge + bias

    for option in options:
        for z, chance in zip(noise, pair_law) if option else [(0, 1.0)]:
            mine = fixed(option) + z
            good = weight * chance
            for other in options:
                if other == option:
                    continue
                # The other must cost more, or as much and come later in the order.
                need = mine - fixed(other) + (0 if rank(option) < rank(other) else 1)
                good = good * ((need <= 0) if other is None else at_least(need))
            out[option] += float(good.sum())
    return out
