"""Published tables of two linked tables that agree with each other. Owns :func:`agreeing`.

Post-processing of noisy numbers: nothing here sees data, and a worse optimum costs accuracy, never privacy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.queries.linked import LinkedQuery
from policygraph.release.release import Release, Table

__all__ = ["agreeing", "check_agreeing"]

MOST_CELLS = 20_000
"""Most cells of both tables together for which counts are looked for."""
NODES = 200
"""Most nodes of the search tree: a limit in work, so that every machine finds the same counts."""
GAP = 1e-3
"""The search ends when the distance is proved to be within this share of the least one."""


def agreeing(release: Release) -> Release:
    """Counts of both of two linked tables that agree: whole, not negative, with the public totals, and with as many rows of the second as the first say, in every area.

    Parameters
    ----------
    release
        A release of :func:`policygraph.queries.linked` under a :class:`~policygraph.model.linked_units.LinkedUnit`.

    Returns
    -------
    Release
        The same tables with other numbers: sums of one table of units that could exist, and of all such tables (nearly) the one with the least sum of absolute differences from the noisy
        numbers, each divided by its standard deviation. Stated errors are bounds: the stated error of the noisy number, and how far this one is from it.

    Raises
    ------
    InputError
        For other releases.
    RefusedError
        When there are too many cells, or no such counts were found.

    Examples
    --------
    >>> import pyarrow
    >>> import policygraph as pg
    >>> homes = pg.LinkedTables({
    ...     "dwellings": {"key": "id", "attributes": {"area": 2}},
    ...     "persons": {"in": "dwellings", "foreign_key": "dwelling", "at_most": 3, "attributes": {"age": 2}},
    ... })
    >>> query = pg.queries.linked(homes, [("dwellings", ["area", "persons"]), ("persons", ["area", "age"])])
    >>> dwellings = pyarrow.table({"id": range(40), "area": [0, 1] * 20})
    >>> persons = pyarrow.table({"dwelling": range(40), "age": [0, 0, 1, 1] * 10})
    >>> made = pg.release(query, pg.LinkedUnit(homes), {"dwellings": dwellings, "persons": persons}, epsilon=1, rng=pg.SeededRng(1))
    >>> agreed = agreeing(made)
    >>> homes_in, people_in = agreed.values(0).reshape(2, 4), agreed.values(1).reshape(2, 2)
    >>> bool((homes_in @ [0, 1, 2, 3] == people_in.sum(axis=1)).all()), bool((made.values(0) < 0).any()), bool((agreed.values(0) < 0).any())
    (True, True, False)
    """
    policy, query = check_agreeing(release.policy, release.query)
    if "agreeing" in release.record:
        return release
    counts, gap = _nearest(policy, query, release)
    policy.check_table(counts)  # in integers, whatever the solver said
    answers = query.answer(counts)
    tables, begin = [], 0
    for table, part in zip(release.tables, query.parts, strict=True):
        values = answers[begin : begin + part.height] // part.weight
        begin += part.height
        tables.append(_moved(table, values))
    said = (
        "The tables were replaced by counts of units that could exist: whole, not negative, with the public totals, and in every cell with as many "
        f"{policy.tables.child} as the {policy.tables.parent} say. Their distance from the noisy numbers is within {100 * gap:.2g} % of the least one. This is post-processing, and costs nothing."
    )
    record = {
        **release.record,
        "stages": [*release.record["stages"], said],
        "agreeing": True,
        "parts": [
            {**part, **_errors(table)} for part, table in zip(release.record["parts"], tables, strict=True)
        ],
    }
    return replace(release, tables=tuple(tables), record=record)


def check_agreeing(policy: Any, query: Any) -> tuple[LinkedUnit, LinkedQuery]:
    """Refuse what no tables can be made to agree of; asked before anything is charged."""
    if not isinstance(policy, LinkedUnit) or not isinstance(query, LinkedQuery):
        raise InputError(
            "only releases of linked tables are made to agree: expected one of pg.queries.linked(...) under a LinkedUnit.",
            code="agree.release",
        )
    if policy.domain.size > MOST_CELLS:
        raise RefusedError(
            f"{policy.domain.size:,} cells of both tables: expected at most {MOST_CELLS:,}. Leave out attributes.",
            code="agree.size",
            value=policy.domain.size,
        )
    return policy, query


def _moved(table: Table, values: npt.NDArray[np.int64]) -> Table:
    """A table with other values; their errors are bounded by those of the noisy ones and how far the new ones are from them."""
    by = np.abs(values - np.asarray(table.values, dtype=np.float64))
    return replace(
        table,
        values=values,
        deviation=by + table.deviation,
        within_95=by + table.within_95,
        unbiased=np.asarray(table.values) if table.unbiased is None else table.unbiased,
        errors="bound",
    )


def _errors(table: Table) -> dict[str, Any]:
    largest = [float(np.max(each, initial=0.0)) for each in (table.deviation, table.within_95)]
    return {"standard_deviation": largest[0], "within_95": largest[1], "errors": "bound"}


def _nearest(policy: LinkedUnit, query: LinkedQuery, release: Release) -> tuple[Any, float]:
    """Counts of units nearest to the noisy numbers, and a bound on how much nearer others may be, as a share."""
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    tables, size = policy.tables, policy.domain.size
    answers = query.columns(np.arange(size, dtype=np.int64)).tocsr()
    noisy, cost = [], []
    for table, part in zip(release.tables, query.parts, strict=True):
        noisy.append(part.weight * np.asarray(table.values, dtype=np.float64))
        spread = part.weight * np.maximum(np.asarray(table.deviation, dtype=np.float64), 1e-3)
        cost.append(np.broadcast_to(1 / spread, (part.height,)))
    far, near = np.concatenate(cost), np.concatenate(noisy)
    height, outer = len(near), tables.rows
    # In every group of the first table the sum of what its rows say is the number of rows of the second.
    group = np.concatenate(
        [np.arange(outer) // (tables.at_most + 1), np.arange(size - outer) // tables.of_child.size]
    )
    said = np.concatenate([np.arange(outer) % (tables.at_most + 1), np.full(size - outer, -1)])
    agree = sparse.csr_matrix(
        (said.astype(float), (group, np.arange(size))), shape=(tables.of_parent.size, size)
    )
    beside = sparse.csr_matrix((tables.of_parent.size, 2 * height))
    one = sparse.identity(height, format="csr")
    rows = [
        LinearConstraint(sparse.hstack([answers, -one, one], format="csr"), near, near),
        LinearConstraint(sparse.hstack([agree, beside], format="csr"), 0, 0),
    ]
    for name, value in policy.totals:
        all_of = np.zeros(size + 2 * height)
        all_of[:outer] = name == tables.parent
        all_of[outer:size] = name == tables.child
        rows.append(LinearConstraint(all_of[None], value, value))
    whole = np.concatenate([np.ones(size), np.zeros(2 * height)])
    found = milp(
        np.concatenate([np.zeros(size), far, far]),
        integrality=whole,
        bounds=Bounds(0, np.inf),
        constraints=rows,
        options={"node_limit": NODES, "mip_rel_gap": GAP, "disp": False},
    )
    if found.x is None:
        raise RefusedError(
            "no counts that agree were found within the work that is allowed. Ask for fewer tables or attributes.",
            code="agree.none",
        )
    return np.rint(found.x[:size]).astype(np.int64), float(found.mip_gap or 0.0)
