"""Sensitivity of sums and averages of a measure. Owns :func:`with_measure`; proofs in ``docs/explanation/proofs/measures.md``.

A record is a cell and a value; neighbours are those of the policy with any values at both ends, and two records of one cell
with different values. Only the ends of the range matter (Theorem 2), so that everything is a closed form over the policy's
own moves, or the engine on a range of two values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import gcd, prod
from typing import Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.moves.blowfish.problem import dense_problem
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs.blowfish import pair_of
from policygraph.sensitivity.rungs.edges import edge_differing

__all__ = ["with_measure"]

DENSE_CELLS = 200
"""Most cells for which records of two values are given to the search under a policy graph and public facts."""
FACT_CELLS = 20
"""Most cells for which a bound under public facts is made exact by a search on two values."""


def with_measure(problem: Problem) -> Bracket[Witness] | None:
    """Largest change of sums (and counts) between neighbours, values of the measure included."""
    query, policy, norm = problem.query, problem.policy, problem.norm
    if not isinstance(query, MeasureQuery):
        return None
    if policy.strength != "worst-case":
        raise RefusedError(
            f"strength={policy.strength!r}: for measures neighbours are known for strength='worst-case' only.",
            code="measure.strength",
        )
    if policy.definition == "induced" and not policy.system.needed:
        return _one_record(query, policy, norm)
    facts, graph = policy.system.needed, policy.graph
    total = all(isinstance(f, Total) or (isinstance(f, Cuboid) and not f.names) for f in facts)
    kept = total and graph is not None and graph.bottom == "none"
    if graph is not None and not len(policy.system.zeros) and (not facts or kept):
        found = _best([*_along_edges(query, policy, norm), *_of_value(query, policy, norm)])
    else:
        made = _coupled if policy.definition == "blowfish" else _induced
        found = _best([made(query, problem), *_of_value(query, policy, norm)])
    if policy.definition == "blowfish" and policy.system.has_values:
        # Fewer data sets have the published values, so that the answer without them is an upper bound.
        return found.unattained("the published values were not used")
    return found


def _best(found: Iterable[Bracket[Witness]]) -> Bracket[Witness]:
    """The largest of several kinds of moves."""
    every = list(found)
    if not every:
        return Bracket(0, 0, None, "closed form", "no two data sets are neighbours")
    top, low = max(every, key=lambda f: (f.upper, f.lower)), max(every, key=lambda f: f.lower)
    return Bracket(top.upper, low.lower, low.witness, top.method, top.reason, top.steps)


# One record --------------------------------------------------------------------------------------------------------------


def _single(query: MeasureQuery, norm: Norm) -> tuple[int, int]:
    """What one record more changes at most, and whether the lowest (0) or the highest value does it."""
    low, high = query.ends
    far, level = (abs(low), 0) if abs(low) > abs(high) else (abs(high), query.measure.span)
    p, q = query.sum_weight * far, query.count_weight
    if norm == "l1":
        return sum(t * (p + q) for t in query.weights), level
    return sum(t * t * (p * p + q * q) for t in query.weights), level


def _first_cell(policy: Policy) -> int | None:
    zeros = set(policy.system.zeros.tolist())
    return next((cell for cell in range(policy.domain.size) if cell not in zeros), None)


def _one_record(query: MeasureQuery, policy: Policy, norm: Norm) -> Bracket[Witness]:
    cell = _first_cell(policy)
    if cell is None:
        return Bracket(0, 0, None, "closed form", "every cell is structurally empty")
    value, level = _single(query, norm)
    witness = Witness.of_change({cell * query.measure.levels + level: 1})
    reason = (
        "one record more or less changes one cell of every table, most with a value at an end of the range"
    )
    return Bracket(value, value, witness, "closed form, one record", reason)


def _of_value(query: MeasureQuery, policy: Policy, norm: Norm) -> list[Bracket[Witness]]:
    """One record keeps its cell and changes its value."""
    cell = _first_cell(policy)
    if cell is not None and policy.graph is None and not _in_every_cell(policy):
        # Where a record may come and go by itself, its value changes by leaving and coming back: two steps.
        matrix = policy.system.matrix()
        used = np.unique(matrix.tocoo().col[matrix.tocoo().data != 0])
        cells = np.setdiff1d(used, policy.system.zeros)
        cell = int(cells[0]) if len(cells) else None
    if cell is None:
        return []
    low, high = query.ends
    each = [t * query.sum_weight * (high - low) for t in query.weights]
    value = sum(each) if norm == "l1" else sum(x * x for x in each)
    at = cell * query.measure.levels
    witness = Witness.of_change({at: -1, at + query.measure.span: 1})
    reason = "one record goes from one end of the range to the other within its cell, which changes every sum"
    if policy.system.has_values:
        return [Bracket(value, 0, None, "closed form, one value", reason)]
    return [Bracket(value, value, witness, "closed form, one value", reason)]


def _in_every_cell(policy: Policy) -> bool:
    return any(isinstance(fact, (Cuboid, Total)) for fact in policy.system.needed)


# Policy graph without public facts ---------------------------------------------------------------------------------------


def _along_edges(query: MeasureQuery, policy: Policy, norm: Norm) -> list[Bracket[Witness]]:
    """Exact: for each largest set of attributes that an edge changes, all four pairs of ends of the range."""
    graph = policy.graph
    if graph is None or graph.n_edges == 0:
        return []
    out: list[Bracket[Witness]] = []
    levels, span = query.measure.levels, query.measure.span
    if graph.bottom != "none":
        value, level = _single(query, norm)
        witness = Witness.of_change({int(graph.bottom_cells[0]) * levels + level: 1})
        reason = "a record that appears or vanishes changes one cell of every table"
        out.append(Bracket(value, value, witness, "closed form, one record", reason))
    best: tuple[int, frozenset[str], int, int] | None = None
    for names in graph.difference_sets():
        for one, two in product((0, 1), repeat=2):
            value = _of_edge(query, names, query.ends[one], query.ends[two], norm)
            if best is None or value > best[0]:
                best = (value, names, one * span, two * span)
    if best is not None:
        u, v = edge_differing(graph, best[1])
        witness = Witness.of_change({u * levels + best[2]: -1, v * levels + best[3]: 1})
        reason = (
            "along an edge one record leaves a cell of each table that contains a changed attribute and enters another; the change "
            "is convex in the two values, so that it is largest at ends of the range"
        )
        out.append(Bracket(best[0], best[0], witness, "closed form over edges and ends of the range", reason))
    return out


def _of_edge(query: MeasureQuery, names: frozenset[str], one: int, two: int, norm: Norm) -> int:
    return sum(
        _of_table(query, t, one, two, changed=not names.isdisjoint(kept), norm=norm)
        for kept, t in zip(query.sets, query.weights, strict=True)
    )


def _of_table(query: MeasureQuery, t: int, one: int, two: int, *, changed: bool, norm: Norm = "l2") -> int:
    """What a record that leaves with one value, and one that comes with another, change in a table of weight t."""
    p, q = t * query.sum_weight, t * query.count_weight
    entries = [p * one, p * two, q, q] if changed else [p * (one - two)]
    return sum(abs(x) if norm == "l1" else x * x for x in entries)


# Public facts, no graph --------------------------------------------------------------------------------------------------


def _induced(query: MeasureQuery, problem: Problem) -> Bracket[Witness]:
    """Public facts without a graph: bounds by the engine for counts, attained by values at the ends of the range."""
    made = _induced_l1 if problem.norm == "l1" else _induced_l2
    # The search on two values also meets records that keep their cell, so that it is compared with both kinds of moves.
    bound = _best([made(query, problem), *_of_value(query, problem.policy, problem.norm)])
    return _on_two_values(query, problem, bound)


def _induced_l1(query: MeasureQuery, problem: Problem) -> Bracket[Witness]:
    low, high = query.ends
    base = query.domain.names
    # Twice the weights, so that half the range and the middle are whole numbers.
    weights: dict[tuple[str, ...], int] = {base: 0}
    for names, t in zip(query.sets, query.weights, strict=True):
        weights[base] += t * query.sum_weight * (high - low)
        weights[names] = (
            weights.get(names, 0) + t * query.sum_weight * abs(high + low) + 2 * t * query.count_weight
        )
    asked = {names: w for names, w in weights.items() if w}
    common = gcd(*asked.values())
    try:
        proofs = [(_counts(query, problem, {n: w // common for n, w in asked.items()}, "l1"), common)]
    except RefusedError:
        # The parts may be bounded where all of them together are not.
        proofs = [(_counts(query, problem, {n: 1}, "l1"), w) for n, w in asked.items()]
    upper = sum(factor * proof.upper for proof, factor in proofs) // 2
    reason = (
        "every record that a move adds or removes changes each sum by at most half the range beyond the middle, and the middle "
        "times the change of the counts; so the change is at most that of counts of all cells and of the tables, weighted"
    )
    return _lifted(
        query, [proof for proof, _ in proofs], upper, "l1", "counts of cells and tables, weighted", reason
    )


def _induced_l2(query: MeasureQuery, problem: Problem) -> Bracket[Witness]:
    policy = problem.policy
    low, high = query.ends
    far, p, q = max(abs(low), abs(high)), query.sum_weight, query.count_weight
    base = query.domain.names
    if query.sets == (base,):
        cells = _counts(query, problem, {base: 1}, "l2")
        upper = query.weights[0] ** 2 * (p * p * far * far + q * q) * cells.upper
        reason = "a minimal move adds or removes records of a cell, never both, and each changes its sum by at most the larger end"
        return _lifted(query, [cells], upper, "l2", "squared counts of cells, weighted", reason)
    cells = _counts(query, problem, {base: 1}, "l1")
    proofs = [cells]
    fixed = {names for names in query.sets if _counts_are_fixed(query, problem, names)}
    if cells.upper == 2 and _in_every_cell(policy):
        # The total is kept, so that one record leaves and one comes: as along an edge, with each table changed or not, whichever
        # is more. Without a public margin two records might come together.
        upper = max(
            sum(
                max(
                    _of_table(query, t, *ends, changed=c)
                    for c in ((False,) if names in fixed else (False, True))
                )
                for names, t in zip(query.sets, query.weights, strict=True)
            )
            for ends in product(query.ends, repeat=2)
        )
        reason = "one record leaves and one comes, each with a value at an end of the range"
        return _lifted(query, proofs, upper, "l2", "one record for another", reason)
    four = 0
    for names, t in zip(query.sets, query.weights, strict=True):
        # Where counts cannot change, as many come as leave in each cell, and the middle of the range drops out.
        reach = (high - low) ** 2 if names in fixed else 4 * far * far
        if names == base:
            proofs.append(_counts(query, problem, {base: 1}, "l2"))
            spread = proofs[-1].upper
        else:
            spread = _piled(policy, names, cells.upper)
        four += t * t * p * p * reach * spread
    upper = four // 4
    if q:
        counts = _counts(query, problem, dict(zip(query.sets, query.weights, strict=True)), "l2")
        upper += q * q * counts.upper
        proofs.append(counts)
    reason = "records of a move pile up in a cell of a table at most as its public margins let them, each with the larger end of the range"
    return _lifted(query, proofs, upper, "l2", "bound by the longest move", reason)


def _counts_are_fixed(query: MeasureQuery, problem: Problem, names: tuple[str, ...]) -> bool:
    try:
        return _counts(query, problem, {names: 1}, "l1").upper == 0
    except RefusedError:
        return False


def _piled(policy: Policy, names: tuple[str, ...], length: int) -> int:
    """Bound of the sum over the cells of a table of squared numbers of records that a move of some length adds or removes there."""
    margins = [set(fact.names) for fact in policy.system.needed if isinstance(fact, Cuboid) and fact.names]
    if len(margins) == len(policy.system.needed) == 2 and any(margin <= set(names) for margin in margins):
        # A minimal move under two margins is a simple cycle: in a cell of a margin one record comes and one leaves.
        return 2 * length
    return length * length


def _counts(
    query: MeasureQuery, problem: Problem, weights: Mapping[tuple[str, ...], int], norm: Norm
) -> Bracket[Witness]:
    """The bracket of some weighted tables of counts."""
    try:
        counts = CuboidQuery(query.domain, list(weights), list(weights.values()))
    except InputError as cause:
        raise RefusedError(
            f"the range of {query.measure.column} has too many units for exact sums under public facts: take a coarser unit.",
            code="measure.too-large",
        ) from cause
    found = problem.but(query=counts, norm=norm).climb()
    return found if found.lower else found.unattained()


def _lifted(
    query: MeasureQuery, proofs: Iterable[Bracket[Witness]], upper: int, norm: Norm, method: str, reason: str
) -> Bracket[Witness]:
    """A bound together with the best pair of data sets that the witnesses for counts give with values at the ends."""
    best: tuple[int, Witness | None] = (0, None)
    steps: tuple[str, ...] = ()
    for proof in proofs:
        steps += (f"counts: {proof.method}", *proof.steps)
        if proof.witness is None:
            continue
        for witness in _with_values(query, proof.witness):
            value = query.change_norm(witness.change, norm)
            if value > best[0]:
                best = (value, witness)
    return Bracket(upper, min(best[0], upper), best[1], method, reason, steps)


def _with_values(query: MeasureQuery, witness: Witness) -> Iterable[Witness]:
    """Records of a witness with values at the ends: the same for all that leave, and for all that come, or by table cell."""
    levels, span = query.measure.levels, query.measure.span
    before, after = dict(witness.before), dict(witness.after)
    shared = {cell: min(n, after.get(cell, 0)) for cell, n in before.items()}
    change = witness.change

    def made(leaving: Mapping[int, int], coming: Mapping[int, int]) -> Witness:
        moved: dict[int, int] = {}
        for cell, amount in change.items():
            level = leaving[cell] if amount < 0 else coming[cell]
            moved[cell * levels + level] = amount
        start = {cell * levels: n for cell, n in shared.items() if n}
        for index, amount in moved.items():
            if amount < 0:
                start[index] = start.get(index, 0) - amount
        return Witness.of_change(moved, start)

    for out, into in product((0, span), repeat=2):
        yield made(dict.fromkeys(change, out), dict.fromkeys(change, into))
    if len(query.sets) == 1:
        # For one table the values may be chosen cell by cell of it, so that no two changes cancel.
        place = _places(query, list(change))
        net: dict[int, int] = {}
        for cell, amount in change.items():
            net[place[cell]] = net.get(place[cell], 0) + amount
        sign = 1 if sum(query.ends) >= 0 else -1
        up = {cell: span if net[place[cell]] * sign >= 0 else 0 for cell in change}
        yield made({cell: span - level for cell, level in up.items()}, up)


def _places(query: MeasureQuery, cells: list[int]) -> dict[int, int]:
    codes = query.domain.codes(np.array(cells, dtype=np.int64))
    out = np.zeros(len(cells), dtype=np.int64)
    for name in query.sets[0]:
        axis = query.domain.axis(name)
        out = out * query.domain.shape[axis] + codes[axis]
    return dict(zip(cells, out.tolist(), strict=True))


# Policy graph and public facts -------------------------------------------------------------------------------------------


def _coupled(query: MeasureQuery, problem: Problem) -> Bracket[Witness]:
    """Policy graph and public facts: the search on two values, or a bound by how many records can change."""
    policy, norm = problem.policy, problem.norm
    if policy.graph is None or policy.graph.n_edges == 0:
        return Bracket(0, 0, None, "no secret pairs", "only values of the measure are secret")
    if len(policy.system.zeros) == policy.domain.size:
        return Bracket(0, 0, None, "closed form", "every cell is structurally empty")
    if policy.domain.size <= DENSE_CELLS:
        return _coupled_on_two_values(query, problem)
    most = _most_records(policy)
    if most is None:
        raise RefusedError(
            f"no proved sensitivity for {query!r} with a policy graph and these public facts: beyond {DENSE_CELLS} cells records "
            "that change can be counted under one public margin only. Coarsen the domain, make fewer facts public, or "
            "set at_most_records.",
            code="measure.refused",
        )
    value, _ = _single(query, norm)
    upper = 2 * most * value if norm == "l1" else 4 * most * most * value
    reason = f"at most {most:,} records leave and {most:,} come, and each changes the answer by at most what one record more does"
    return Bracket(upper, 0, None, "bound by the number of records", reason)


def _most_records(policy: Policy) -> int | None:
    """Most records that are added, or removed, between neighbours: the cap, or the classes of a single public margin."""
    bounds = [] if policy.at_most_records is None else [policy.at_most_records]
    facts = policy.system.needed
    if len(facts) == 1 and isinstance(facts[0], Cuboid):
        sizes = [policy.domain.shape[policy.domain.axis(name)] for name in facts[0].names]  # type: ignore[union-attr]
        away = policy.graph is not None and policy.graph.bottom != "none"
        bounds.append(prod(sizes) + int(away))
    return min(bounds, default=None)


# Records with one of two values ------------------------------------------------------------------------------------------
#
# Only the ends of the range matter (Theorem 2 of docs/explanation/proofs/measures.md), so that an engine on twice as many cells
# answers for any range: that of minimal moves under public facts, and that of minimal sets of changes beside a graph.


def _index(query: MeasureQuery, at: int, cell: int) -> int:
    """A record of a cell with the lowest (even) or the highest (odd) value, among all records with values."""
    return cell * query.measure.levels + (at % 2) * query.measure.span


def _on_two_values(query: MeasureQuery, problem: Problem, bound: Bracket[Witness]) -> Bracket[Witness]:
    """Close the gap of a bound under public facts without a graph, where the table is small enough."""
    policy = problem.policy
    if bound.exact or policy.domain.size > FACT_CELLS or not isinstance(policy.domain, Domain):
        return bound
    name = "value"
    while name in policy.domain.names:
        name = "_" + name
    labels = {each: list(policy.domain.labels(each)) for each in policy.domain.names}
    wide = Domain({**labels, name: 2})
    try:
        extended = Policy(wide, None, policy.constraints, at_most_records=policy.at_most_records)
        cells = list(range(policy.domain.size))
        rows = MatrixQuery(wide, _columns(query, cells))
        found = problem.but(without="determined answers", query=rows, policy=extended).climb()
    except (InputError, RefusedError):
        # A fact about one whole cell has no such form; the bound stands.
        return bound
    witness = found.witness
    if witness is not None:
        tables = (
            {_index(query, at, at // 2): n for at, n in side} for side in (witness.before, witness.after)
        )
        witness = Witness.of_tables(*tables)
    note = "a search on records with one of two values"
    best = found if found.upper <= bound.upper else bound
    lower, shown = (found.lower, witness) if found.lower >= bound.lower else (bound.lower, bound.witness)
    method = f"{found.method}, on two values" if best is found else bound.method
    return replace(best, lower=lower, witness=shown, method=method, steps=(*bound.steps, note))


def _coupled_on_two_values(query: MeasureQuery, problem: Problem) -> Bracket[Witness]:
    """The engine for a graph with public facts on records with one of two values."""
    from policygraph.moves.blowfish.longest import longest_blowfish

    policy = problem.policy
    matrix, adjacency, keep = dense_problem(policy)
    n, bottom = len(keep), policy.graph is not None and policy.graph.bottom != "none"
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
        norm=problem.norm,
        at_most_records=policy.at_most_records,
        effort=problem.effort,
    )
    ends = [_index(query, at, int(keep[at // 2])) for at in range(2 * n)]
    witness = None if policy.system.has_values else pair_of(bracket, ends)
    return Bracket(
        bracket.upper,
        bracket.lower if witness is not None else 0,
        witness,
        f"{bracket.method}, on two values",
        f"{bracket.reason}; no other value changes more",
    )


def _columns(query: MeasureQuery, cells: list[int]) -> Any:
    """Columns of the query for records of the given cells with the lowest and the highest value, side by side."""
    from scipy import sparse

    counts = query.counted.columns(np.array(cells, dtype=np.int64))
    ends = np.array(query.ends, dtype=np.int64)
    sums = sparse.kron(counts, query.sum_weight * ends[None, :])
    many = sparse.kron(counts, np.full((1, 2), query.count_weight, dtype=np.int64))
    both = sums if query.kind == "sums" else sparse.vstack([sums, many])
    return np.asarray(both.toarray(), dtype=np.int64)
