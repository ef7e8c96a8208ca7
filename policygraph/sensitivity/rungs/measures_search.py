"""Sums and averages of a measure by search, on records with one of two values. Owns :func:`under_facts`, :func:`two_values`.

Only the ends of the range matter (Theorem 2 of ``docs/explanation/proofs/measures.md``), so that an engine on twice as many cells answers for
any range: that of minimal moves under public facts, and that of minimal sets of changes when there is a graph as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from policygraph.effort import Effort
from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.moves.blowfish.problem import dense_problem
from policygraph.moves.bracket import Bracket, Witness

__all__ = ["two_values", "under_facts"]

FACT_CELLS = 20
"""Most cells for which a bound under public facts is made exact by a search on two values."""


def _index(query: MeasureQuery, at: int, cell: int) -> int:
    """A record of a cell with the lowest (even) or the highest (odd) value, among all records with values."""
    return cell * query.measure.levels + (at % 2) * query.measure.span


def under_facts(
    query: MeasureQuery, policy: Policy, norm: Norm, bound: Bracket[Witness], effort: Effort
) -> Bracket[Witness]:
    """Close the gap of a bound under public facts without a graph, where the table is small enough."""
    if bound.exact or policy.domain.size > FACT_CELLS or not isinstance(policy.domain, Domain):
        return bound
    from policygraph.sensitivity.rungs.induced import induced

    name = "value"
    while name in policy.domain.names:
        name = "_" + name
    labels = {each: list(policy.domain.labels(each)) for each in policy.domain.names}
    wide = Domain({**labels, name: 2})
    try:
        extended = Policy(wide, None, policy.constraints, at_most_records=policy.at_most_records)
        cells = list(range(policy.domain.size))
        rows = MatrixQuery(wide, _columns(query, cells))
        found = induced(rows, extended, norm, effort)
    except (InputError, RefusedError):
        # A fact about one whole cell has no such form; the bound stands.
        return bound
    witness = found.witness
    if witness is not None:
        before, after = (
            tuple(sorted((_index(query, at, at // 2), n) for at, n in side))
            for side in (witness.before, witness.after)
        )
        witness = Witness(before, after)
    note = "a search on records with one of two values"
    best = found if found.upper <= bound.upper else bound
    lower, shown = (found.lower, witness) if found.lower >= bound.lower else (bound.lower, bound.witness)
    method = f"{found.method}, on two values" if best is found else bound.method
    return replace(best, lower=lower, witness=shown, method=method, steps=(*bound.steps, note))


def two_values(query: MeasureQuery, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness] | None:
    """The engine on records with one of two values, which is exact for any range (Theorem 2)."""
    from policygraph.moves.blowfish.longest import longest_blowfish

    if policy.graph is None:
        return None
    matrix, adjacency, keep = dense_problem(policy)
    n, bottom = len(keep), policy.graph.bottom != "none"
    twice = np.repeat(np.arange(n), 2)
    joined = np.asarray(adjacency, dtype=bool)
    cells = np.concatenate([twice, [n]]) if bottom else twice
    wide = joined[np.ix_(cells, cells)]
    for at in range(n):
        wide[2 * at, 2 * at + 1] = wide[2 * at + 1, 2 * at] = True
    bracket = longest_blowfish(
        np.asarray(matrix)[:, twice],
        wide,
        bottom=bottom,
        query=_columns(query, [int(c) for c in keep]),
        norm=norm,
        at_most_records=policy.at_most_records,
        effort=effort,
    )
    witness = None
    if bracket.witness is not None and bracket.lower and not policy.system.has_values:
        tables: tuple[dict[int, int], dict[int, int]] = ({}, {})
        for transition in bracket.witness.transitions:
            for table, end in zip(tables, transition, strict=True):
                if isinstance(end, (int, np.integer)) and 0 <= int(end) < 2 * n:
                    index = _index(query, int(end), int(keep[int(end) // 2]))
                    table[index] = table.get(index, 0) + 1
        witness = Witness(tuple(sorted(tables[0].items())), tuple(sorted(tables[1].items())))
    lower = int(bracket.lower) if witness is not None else 0
    return Bracket(
        int(bracket.upper), lower, witness, f"{bracket.method}, on two values", bracket.reason + "; no other value changes more"
    )  # fmt: skip


def _columns(query: MeasureQuery, cells: list[int]) -> Any:
    """Columns of the query for records of the given cells with the lowest and the highest value, side by side."""
    from scipy import sparse

    counts = query.counted.columns(np.array(cells, dtype=np.int64))
    ends = np.array(query.ends, dtype=np.int64)
    sums = sparse.kron(counts, query.sum_weight * ends[None, :])
    many = sparse.kron(counts, np.full((1, 2), query.count_weight, dtype=np.int64))
    both = sums if query.kind == "sums" else sparse.vstack([sums, many])
    return np.asarray(both.toarray(), dtype=np.int64)
