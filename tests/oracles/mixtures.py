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


def first(made, coordinates, found, cells, variance, draws, pairs):
    """Weights of the candidates ``found`` from noisy ``cells`` by what was held out: ``made(cells, variance)`` finds candidates, ``coordinates(cells)`` the numbers that have noise, ``draws()`` draws the noise of all cells."""
    missed = [0.0] * len(found)
    for _ in range(pairs):
        drawn = draws()
        for sign in (1, -1):
            for k, each in enumerate(made(cells + sign * drawn, 2 * variance)):
                apart = coordinates(each) - coordinates(cells - sign * drawn)
                missed[k] += sum(float(x) ** 2 for x in apart) / (2 * pairs)
    likely = np.array([np.exp(-(each - min(missed)) / (4 * variance)) for each in missed])
    return likely / likely.sum()


def products(rows):
    return np.array([[float(np.dot(one, two)) for two in rows] for one in rows])


def mean_of(weights, found):
    return sum(w * each for w, each in zip(weights, found))


def weights(made, coordinates, found, whole, cells, variance, noises, draws, pairs, rounds, releases):
    """Weights on lines and trees, cell by cell; ``whole(cells)`` rounds."""
    out = first(made, coordinates, found, cells, variance, draws, pairs)
    for _ in range(rounds):
        truth = whole(mean_of(out, found))
        drawn = [[each - truth for each in made(truth + draws(), variance)] for _ in range(releases)]
        of_cells = sum(products(off) for off in drawn) / releases
        of_coordinates = sum(products([coordinates(each) for each in off]) for off in drawn) / releases
        out = best(of_cells / max(min(np.diag(of_cells)), 1.0) + of_coordinates / (variance * noises))
    return out


def on_grids(made, coordinates, boxes, found, whole, cells, variance, draws, pairs, releases):
    """Products of the errors of cells, of coordinates and of sums over boxes, by which candidates on grids are mixed."""
    truth = whole(mean_of(first(made, coordinates, found, cells, variance, draws, pairs), found))
    drawn = [[each - truth for each in made(truth + draws(), variance)] for _ in range(releases)]
    out = []
    for kind in (lambda each: each, coordinates, boxes):
        errors = [products([kind(each) for each in off]) for off in drawn]
        apart = [products([kind(each - off[0]) for each in off]) for off in drawn]
        seen = products([kind(each - found[0]) for each in found])
        mean, expected = sum(errors) / releases, sum(apart) / releases
        count = len(found)
        scale = np.array(
            [
                [np.sqrt(max(expected[k, k], 1) * max(expected[j, j], 1)) for j in range(count)]
                for k in range(count)
            ]
        )
        variances = sum(((each - expected) / scale) ** 2 for each in apart) / (releases - 1)
        chance = (variances + variances / releases).sum()
        shown = (((seen - expected) / scale) ** 2).sum()
        out.append(mean + (1 - chance / shown if shown > chance else 0) * (seen - expected))
    return out


def guarded(errors):
    """The least sum of errors, as shares of the least of each kind, of weights whose last error is at most that of the first candidate; by a general solver from many starts."""
    from scipy.optimize import minimize

    count = len(errors[0])
    total = sum(each / max(min(np.diag(each)), 1.0) for each in errors)
    last = errors[-1] / errors[-1][0, 0]
    rng = np.random.default_rng(0)
    starts = [
        np.eye(count)[0],
        *np.eye(count)[1:] / 2 + np.eye(count)[0] / 2,
        *rng.dirichlet(np.ones(count), 8),
    ]
    least = float(total[0, 0])
    for start in starts:
        solved = minimize(
            lambda w: w @ total @ w,
            start,
            jac=lambda w: 2 * total @ w,
            bounds=[(0, 1)] * count,
            constraints=[
                {"type": "eq", "fun": lambda w: w.sum() - 1},
                {"type": "ineq", "fun": lambda w: 1 - w @ last @ w, "jac": lambda w: -2 * last @ w},
            ],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 300},
        ).x
        if abs(solved.sum() - 1) < 1e-6 and solved @ last @ solved <= 1 + 1e-6:
            least = min(least, float(solved @ total @ solved))
    return least
