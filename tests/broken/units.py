"""Contribution bounds that are none: what is kept of one unit depends on another, or the bound comes at the wrong moment."""

from __future__ import annotations

import numpy as np

import policygraph as pg
from policygraph.curator.noise import discrete_gaussian, discrete_laplace

MOST = 2
OWNED = pg.Domain({"owner": 4, "cell": 4})
"""Raw data as a table: how many records each of four owners has in each of four cells; all that one owner has may vanish."""
WHOLE = pg.Unit(pg.Policy(OWNED), "person", 40)
BUSY = np.array([[6, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]])
GONE = BUSY * np.array([[0], [1], [1], [1]])
OPTIONS = {"batch": True, "pairs": [(BUSY.ravel(), GONE.ravel())]}
STRANGE = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
SPREAD = 2 * STRANGE
OPTIONS_SPREAD = {"batch": True, "pairs": [(SPREAD.ravel(), (0 * SPREAD).ravel())]}
OPTIONS_STRANGE = {"batch": True, "pairs": [(STRANGE.ravel(), (0 * STRANGE).ravel())]}


def _records(table):
    """Owner and cell of each record, the first owner's first."""
    return [(owner, cell) for (owner, cell), n in np.ndenumerate(table.reshape(4, 4)) for _ in range(n)]


def _released(cells, n, source):
    counts = np.bincount(np.asarray(cells, dtype=np.int64), minlength=4)
    return counts + discrete_laplace(MOST, (n, 4), source)


def sound():
    """Two records of each owner, for comparison: noise of scale 2 hides an owner at epsilon 1."""

    def mechanism(table, n, source):
        own = {}
        for owner, cell in _records(table):
            own.setdefault(owner, []).append(cell)
        return _released([cell for cells in own.values() for cell in cells[:MOST]], n, source)

    return mechanism, WHOLE, None


def global_sample():
    """As many records as two for each owner would be, of all records together in a keyed order: whoever has many pushes out the others."""

    def mechanism(table, n, source):
        records = _records(table)
        order = np.random.Generator(np.random.Philox(key=1)).random(len(records)).argsort()
        owners = len({owner for owner, _ in records})
        return _released([records[at][1] for at in order[: MOST * owners]], n, source)

    return mechanism, WHOLE, None


def first_come():
    """Room for six records, and whoever comes first takes it."""

    def mechanism(table, n, source):
        return _released([cell for _, cell in _records(table)[:6]], n, source)

    return mechanism, WHOLE, None


def cut_in_each_cell():
    """What an owner adds is cut off at two in each cell by itself, and not over all cells together: one in four cells adds eight."""

    def mechanism(table, n, source):
        kept = np.minimum(table.reshape(4, 4), MOST)
        return kept.sum(axis=0) + discrete_laplace(MOST, (n, 4), source)

    return mechanism, WHOLE, None


def cells_before_the_rule():
    """One record in each cell, bounded while the labels are still those of the data; then a rule makes one cell of the labels that are unknown.

    Four records of one owner that were in four cells are in one, where noise for zCDP is scaled to one each: 16 in place of 4.
    """

    def mechanism(table, n, source):
        kept = np.minimum(table.reshape(4, 4), 1)
        counts = np.array([kept.sum()])  # every label is unknown, and counts as other
        return counts + discrete_gaussian(4, (n, 1), source)

    return mechanism, WHOLE, None
