"""Slow and literal: consistent tables by dense least squares with conditions, non-negative ones by active sets, roundings by listing."""

from itertools import product

import numpy as np
from scipy.optimize import nnls

from policygraph.estimation.cubes.cells import spread


def rows_of(lattice, mask, top):
    """One row over the finest cells for each cell of a cuboid."""
    place = spread(lattice, np.arange(lattice.size(mask)).reshape(lattice.shape(mask)), mask, top)
    place = np.broadcast_to(place, lattice.shape(top)).ravel()
    return (place[None, :] == np.arange(lattice.size(mask))[:, None]).astype(float)


def fact_row(lattice, fact, top):
    return fact.coefficients @ rows_of(lattice, fact.mask, top)[fact.cells]


def dense_fit(lattice, top, choice, measured, known, facts):
    """Finest table and its covariance (in units of the noise) by least squares with equations, from a null space."""
    blocks, targets = [], []
    for names, weight in zip(choice.sets, choice.weights, strict=True):
        mask = lattice.mask(names)
        blocks.append(weight * rows_of(lattice, mask, top))
        targets.append(np.asarray(measured[mask], dtype=float).ravel())
    a, y = np.concatenate(blocks), np.concatenate(targets)
    equal = [rows_of(lattice, mask, top) for mask in known]
    equal += [fact_row(lattice, fact, top)[None, :] for fact in facts]
    values = [np.asarray(table, dtype=float).ravel() for table in known.values()]
    values += [np.array([float(fact.value)]) for fact in facts]
    n = lattice.size(top)
    if equal:
        e, v = np.concatenate(equal), np.concatenate(values)
        start = np.linalg.lstsq(e, v, rcond=None)[0]
        _, sizes, right = np.linalg.svd(e)
        free = right[int((sizes > 1e-9).sum()) :].T
    else:
        start, free = np.zeros(n), np.eye(n)
    inverse = np.linalg.pinv(a @ free, rcond=1e-11)
    x = start + free @ (inverse @ (y - a @ start))
    noise = free @ inverse
    return x.reshape(lattice.shape(top)), noise @ noise.T


def dense_nonnegative(lattice, top, fitted, measured, total):
    """Non-negative least squares with a given total, the total by a heavy row."""
    heavy = 1e4
    a = np.concatenate(
        [rows_of(lattice, mask, top) / variance**0.5 for mask, variance in measured.items()]
        + [heavy * np.ones((1, lattice.size(top)))]
    )
    y = np.concatenate(
        [fitted[mask].ravel() / variance**0.5 for mask, variance in measured.items()] + [[heavy * total]]
    )
    return nnls(a, y)[0].reshape(lattice.shape(top))


def roundings(lattice, top, values, known):
    """All tables of floors and ceilings with the known sums."""
    flat = values.ravel()
    choices = [sorted({int(np.floor(v)), int(np.ceil(v))}) for v in flat]
    for cells in product(*choices):
        table = np.array(cells).reshape(values.shape)
        if all(
            np.array_equal(rows_of(lattice, mask, top) @ table.ravel(), np.ravel(goal))
            for mask, goal in known.items()
        ):
            yield table
