"""Wide tables made up for tests and benchmarks: records of many attributes, and how far published tables are from them."""

from __future__ import annotations

import numpy as np

import policygraph as pg

__all__ = ["KINDS", "distance", "independent", "mixed_sizes", "records", "true_table"]

KINDS = ("independent", "tree", "chain", "dense", "copies", "uneven")
"""Shapes of dependence: none; each attribute depends on one before it, strongly or along a line; all on two hidden classes; columns that follow from others; few values hold
nearly all records."""


def mixed_sizes(attributes: int, most: int, seed: int) -> list[int]:
    """Numbers of values from 2 to ``most``, small ones more often."""
    draws = np.random.default_rng(seed)
    sizes = np.rint(2 * (most / 2) ** draws.random(attributes) ** 1.5).astype(int)
    sizes[0] = most
    return sizes.tolist()


def records(kind: str, sizes: list[int], rows: int, seed: int):
    """A domain and records of it, one in each row."""
    draws = np.random.default_rng(seed)
    domain = pg.Domain({f"x{at}": size for at, size in enumerate(sizes)})
    out = np.zeros((rows, len(sizes)), dtype=np.int64)
    hidden = draws.integers(0, 4, rows)
    for at, size in enumerate(sizes):
        if kind == "tree" and at:
            parent = int(draws.integers(0, at))
            given = draws.dirichlet(np.full(size, 0.3), sizes[parent])[out[:, parent]]
        elif kind == "chain" and at:
            given = draws.dirichlet(np.full(size, 1.0), sizes[at - 1])[out[:, at - 1]]
        elif kind == "dense":
            given = draws.dirichlet(np.full(size, 0.5), 4)[hidden]
        elif kind == "copies" and at % 2:
            out[:, at] = draws.integers(0, size, sizes[at - 1])[out[:, at - 1]]
            continue
        elif kind == "uneven":
            given = np.tile(draws.permutation(0.2 ** np.arange(size)), (rows, 1))
            given = given * (1 + (at > 0) * 3 * (np.arange(size)[None] == (out[:, at - 1] % size)[:, None]))
        else:
            given = np.tile(draws.dirichlet(np.full(size, 1.0)), (rows, 1))
        ends = np.cumsum(given / given.sum(axis=1, keepdims=True), axis=1)
        out[:, at] = np.minimum((draws.random(rows)[:, None] > ends).sum(axis=1), size - 1)
    return domain, out


def true_table(rows, domain, names):
    """The table of some attributes, as shares of all records."""
    axes = [domain.axis(name) for name in names]
    shape = [domain.shape[axis] for axis in axes]
    at = np.ravel_multi_index(rows[:, axes].T, shape)
    return np.bincount(at, minlength=int(np.prod(shape))) / len(rows)


def distance(rows, domain, sets, table_of) -> float:
    """Mean total variation distance of tables."""
    off = []
    for names in sets:
        made = np.maximum(np.asarray(table_of(names), dtype=np.float64).ravel(), 0.0)
        off.append(0.5 * np.abs(true_table(rows, domain, names) - made / max(made.sum(), 1e-300)).sum())
    return float(np.mean(off))


def independent(rows, domain, sets) -> float:
    """Distance of the product of the true single attributes, without any noise: what measuring no table of several attributes gives at best."""
    ones = {one: true_table(rows, domain, [one]) for one in domain.names}

    def product(names):
        made = np.ones(1)
        for each in names:
            made = np.multiply.outer(made, ones[each])
        return made

    return distance(rows, domain, sets, product)
