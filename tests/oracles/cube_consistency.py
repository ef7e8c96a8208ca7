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


def local_nonnegative(lattice, family, precisions, tables, tops, total):
    """Half the least squared distance of non-negative tables that agree, by bounded least squares on stacked tables with heavy rows for agreement."""
    starts = np.concatenate([[0], np.cumsum([lattice.size(m) for m in tops])])
    rows, goals = [], []
    for mask, precision in zip(family.masks.tolist(), precisions, strict=True):
        first = None
        for at, top in enumerate(tops):
            if mask & ~top:
                continue
            place = np.zeros((lattice.size(mask), starts[-1]))
            place[:, starts[at] : starts[at + 1]] = rows_of(lattice, mask, top)
            if first is None:
                first = place
                if mask == 0 and total is not None:
                    rows.append(1e4 * place)
                    goals.append(np.array([1e4 * total]))
                    continue
                centred = np.eye(lattice.size(mask)).reshape(-1, *lattice.shape(mask))
                for axis in range(1, centred.ndim):
                    centred = centred - centred.mean(axis=axis, keepdims=True)
                centred = centred.reshape(lattice.size(mask), -1)
                rows.append(precision**0.5 * centred @ place)
                goals.append(precision**0.5 * centred @ np.asarray(tables[mask]).ravel())
            else:
                rows.append(1e4 * (place - first))
                goals.append(np.zeros(lattice.size(mask)))
    a, y = np.concatenate(rows), np.concatenate(goals)
    x = nnls(a, y, maxiter=100 * a.shape[1])[0]
    return float(((a @ x - y) ** 2).sum()) / 2


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
