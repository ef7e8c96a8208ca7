"""Releases of linked tables that are not what they say: each table as if the other were not there, or rows that are bounded over all units."""

from __future__ import annotations

import numpy as np

import policygraph as pg
from policygraph.curator.noise import discrete_laplace

MOST = 2
HOMES = pg.LinkedTables(
    {
        "dwellings": {"key": "id", "attributes": {"area": 2}},
        "persons": {"in": "dwellings", "foreign_key": "home", "at_most": MOST, "attributes": {"age": 2}},
    }
)
POLICY = pg.LinkedUnit(HOMES)
QUERY = pg.queries.linked(HOMES, [("dwellings", ["area"]), ("persons", ["age"])])
FULL = np.array([0, 0, 1, 0, 0, 0, 2, 0, 0, 0])
"""A dwelling with two persons of one age."""
OPTIONS = {"batch": True, "pairs": [(FULL, 0 * FULL)]}
OWNED = pg.Domain({"home": 4, "age": 2})
WHOLE = pg.Unit(pg.Policy(OWNED), "dwelling", 40)
BUSY = np.array([[6, 0], [0, 2], [0, 2], [0, 2]])
GONE = BUSY * np.array([[0], [1], [1], [1]])
OPTIONS_OWNED = {"batch": True, "pairs": [(BUSY.ravel(), GONE.ravel())]}


def _mechanism(scales):
    def mechanism(table, n, source):
        answers = QUERY.answer(table)
        noise = [discrete_laplace(scale, (n, 2), source) for scale in scales]
        return answers + np.concatenate(noise, axis=1)

    return mechanism


def sound():
    """Noise of scale 3 on every answer, for comparison: a dwelling with two persons changes three counts."""
    return _mechanism((1 + MOST, 1 + MOST)), POLICY, QUERY


def each_table_by_itself():
    """Noise for a dwelling on one table and for two persons on the other, each for the whole loss: together they lose twice as much."""
    return _mechanism((1, MOST)), POLICY, QUERY


def over_all_units():
    """Twice as many persons as there are dwellings, of all together in their order: a dwelling with many pushes out the persons of others."""

    def mechanism(table, n, source):
        raw = np.asarray(table).reshape(4, 2)
        ages = [age for (_, age), many in np.ndenumerate(raw) for _ in range(many)]
        kept = ages[: MOST * int((raw.sum(axis=1) > 0).sum())]
        counts = np.bincount(np.asarray(kept, dtype=np.int64), minlength=2)
        return counts + discrete_laplace(MOST, (n, 2), source)

    return mechanism, WHOLE, None
