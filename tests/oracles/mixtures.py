"""The best mixture of estimates by trying all of them, and the weights of adaptive histograms from their definition."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def best(products: np.ndarray) -> np.ndarray:
    """Weights >= 0 with sum 1 of the least quadratic form: the best of those that are stationary on some of the estimates."""
    count = len(products)
    products = products / np.diag(products).max()
    found, least = None, np.inf
    for size in range(1, count + 1):
        for some in combinations(range(count), size):
            part = products[np.ix_(some, some)]
            system = np.block([[2 * part, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            solved = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0][:size]
            if abs(solved.sum() - 1) > 1e-9 or solved.min() < -1e-12:
                continue
            weights = np.zeros(count)
            weights[list(some)] = solved
            value = weights @ products @ weights
            if value < least:
                found, least = weights, value
    assert found is not None
    return found


def weights(made, coordinates, found, whole, cells, variance, noises, draws, pairs, rounds, releases, boxes):
    """Weights of the candidates ``found`` from noisy ``cells``, cell by cell.

    ``made(cells, variance)`` finds candidates, ``coordinates(cells)`` the numbers that have noise, ``whole(cells)`` rounds, ``draws()`` draws the noise of all cells, ``boxes(cells)`` sums over boxes, where their errors count.
    """
    missed = [0.0] * len(found)
    for _ in range(pairs):
        drawn = draws()
        for sign in (1, -1):
            for k, each in enumerate(made(cells + sign * drawn, 2 * variance)):
                apart = coordinates(each) - coordinates(cells - sign * drawn)
                missed[k] += sum(float(x) ** 2 for x in apart) / (2 * pairs)
    likely = np.array([np.exp(-(each - min(missed)) / (4 * variance)) for each in missed])
    out = likely / likely.sum()
    for _ in range(rounds):
        truth = whole(sum(w * each for w, each in zip(out, found)))
        kinds = [lambda each: each, coordinates, *([boxes] if boxes else [])]
        total = np.zeros((len(found), len(found)))
        drawn = [[each - truth for each in made(truth + draws(), variance)] for _ in range(releases)]
        for at, kind in enumerate(kinds):
            products = sum(
                np.array([[float(np.dot(kind(one), kind(two))) for two in off] for one in off]) / releases
                for off in drawn
            )
            unit = variance * noises if at == 1 and not boxes else max(min(np.diag(products)), 1.0)
            total += products / unit
        out = best(total)
    return out
