"""How much everything of one unit can change a query. Owns :func:`of_unit`; the theorems are in ``docs/explanation/proofs/units.md``.

A step of a unit is a sum of up to k moves of records. Where any number of them may be in one cell, k copies of the best move are the best step. Where not, the
best step is the longest sum of vectors of which each is taken a few times only: bounds from above that are proved, and a search for one that is attained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.model.domain import Domain
from policygraph.model.graphs import BOTTOM
from policygraph.model.grouped import Grouped
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.model.units import Unit
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity.certificate import Sensitivity

__all__ = ["of_cut_sums", "of_unit", "times_members"]

Ints = npt.NDArray[np.int64]
LISTED = 3_000
"""Most cells, or edges, whose columns are compared with each other."""
ENTRIES = 2_000_000
"""Most entries of these columns."""
MOST_RECORDS = 100_000
"""Up to so many records a unit is shown whose sums are the largest."""
COPIES = 400
"""Up to so many records a step is put together one by one."""
SEARCHED = 60
"""Up to so many cells or directed edges all steps are gone through."""
STEPS = 20_000
"""Most steps that are looked at, whatever the machine."""


def times_members(
    one: Sensitivity, policy: Grouped, witness_times: int | None, method: str, reason: str
) -> Sensitivity:
    """The value for a record, times how many records take its step together.

    Parameters
    ----------
    one
        The certificate for a record.
    policy
        Whose members there are.
    witness_times
        How many copies of the record's pair are a pair of the policy; None: none are known.
    """
    up, shown = policy.members, witness_times or 0
    power = 1 if one.norm == "l1" else 2
    lower = one.lower_power * Fraction(shown) ** power
    witness = None
    if one.witness is not None and shown:
        before, after = (
            {c: shown * x for c, x in table} for table in (one.witness.before, one.witness.after)
        )
        # the pairs stay those of one member of each family
        witness = replace(Witness.of_tables(before, after), pairs=one.witness.pairs)
    return replace(
        one,
        power=one.power * Fraction(up) ** power,
        kind="exact" if lower == one.power * Fraction(up) ** power else "upper",
        lower_power=lower,
        witness=witness,
        method=f"{one.method}; {method}",
        reason=f"{one.reason.rstrip('.')}; {reason}",
        policy=policy,
    )


def of_unit(query: Query, policy: Unit, one: Sensitivity, effort: Effort) -> Sensitivity:
    """The sensitivity for a unit, from the certificate of a record under :attr:`Unit.moves_of_records`.

    Raises
    ------
    RefusedError
        For numbers that are not linear in the counts.
    """
    if isinstance(query, NonlinearQuery):
        raise RefusedError(
            f"{query!r} under a unit: what several records do to it together is not what one does, several times. Ask for counts.",
            code="unit.query",
        )
    k, c = policy.at_most, policy.cap
    whole = f"{k} records of one {policy.column} make this step together"
    valued = policy.system.has_values
    if c == k or not one.power or query.needs_values:
        copies = None if valued else c
        return times_members(one, policy, copies, f"times {k} for a unit", whole)
    found = _bracket(query, policy, one, effort)
    if valued:
        found = found.unattained("the published values were not used")
    unit = query.unit if one.norm == "l1" else query.unit**2
    return replace(
        one,
        power=found.upper * unit,
        kind="exact" if found.exact else "upper",
        lower_power=found.lower * unit,
        witness=found.witness if found.lower else None,
        method=found.method,
        reason=found.reason,
        policy=policy,
        steps=(*one.steps, *found.steps),
    )


def of_cut_sums(query: MeasureQuery, policy: Policy | Grouped, norm: Norm) -> Sensitivity:
    """The sensitivity of sums to which all records of a unit add at most so much together (units.md, Theorem 5b).

    Raises
    ------
    RefusedError
        Without a unit, under a policy graph, and for averages and centred sums.

    Examples
    --------
    >>> import policygraph as pg
    >>> shops = pg.Domain({"shop": 3})
    >>> paid = pg.Measure("paid", 0, 100, in_all=250)
    >>> found = of_cut_sums(pg.queries.sums(shops, [["shop"], []], paid), Unit(pg.Policy(shops), "person", 20), "l1")
    >>> int(found.value), found.kind
    (500, 'exact')
    """
    most = query.measure.together
    if not isinstance(policy, Unit) or most is None:
        raise RefusedError(
            f"in_all={query.measure.in_all} of {query.measure.column} under a policy for single records: expected a unit, whose records it bounds together. Leave it out, or state the unit.",
            code="measure.in-all",
        )
    if policy.records.graph is not None:
        raise RefusedError(
            f"in_all={query.measure.in_all} of {query.measure.column} beside a policy graph: where records of one unit change and stay, what is cut off may move from one to another, and nothing is "
            "proved. Leave out in_all, or the graph.",
            code="measure.in-all",
        )
    if query.kind != "sums" or query.centred:
        raise RefusedError(
            f"averages of {query.measure.column} with in_all: a sum that is cut off has no average over the records that count. Ask for sums, or leave out in_all.",
            code="measure.in-all",
        )
    domain, k, c = query.domain, policy.at_most, policy.cap
    zeros = policy.system.zeros
    low, high = query.measure.lowest, query.measure.highest
    far, near = (high, low) if abs(high) >= abs(low) else (-low, -high)
    count = min(k, c * (domain.size - len(zeros)))
    whole = min(most, count * far)
    upper = 0
    for names, weight in zip(query.sets, query.weights, strict=True):
        room = c * far * (domain.size // prod(len(domain.labels(name)) for name in names))
        full, rest = divmod(whole, room)
        upper += weight * whole if norm == "l1" else weight**2 * (full * room**2 + rest**2)
    # As many records as it takes, of which as many as can be have the far end of the range.
    records = -(-whole // far)
    if records * max(near, 0) > whole:
        records, whole = records - 1, (records - 1) * far
    values = _spread(whole, records, far, max(near, 0)) if records <= MOST_RECORDS else None
    pair = None if values is None else _cut_pair(query, policy, values, negative=far != high)
    lower = 0 if pair is None else query.change_norm(pair.change, norm)
    unit = query.unit if norm == "l1" else query.unit**2
    return Sensitivity(
        power=upper * unit,
        norm=norm,
        kind="exact" if lower == upper else "upper",
        lower_power=lower * unit,
        witness=pair if lower else None,
        method=f"sums to which all records of a unit add at most {most} units together",
        reason="each table changes by what the unit adds to it, and no cell of it by more than its records can have (docs/explanation/proofs/units.md, Theorem 5b)",
        policy=policy,
        query=query,
        computed=True,
    )


def _spread(whole: int, records: int, far: int, near: int) -> list[int]:
    """So many values from near to far with this sum, the largest first."""
    out = []
    for left in range(records, 0, -1):
        out.append(min(far, whole - (left - 1) * near))
        whole -= out[-1]
    return out


def _cut_pair(query: MeasureQuery, policy: Unit, values: list[int], *, negative: bool) -> Witness | None:
    """A unit that appears with such values, cell by cell in an order in which attributes that are in the fewest tables change fastest."""
    domain, zeros = query.domain, set(policy.system.zeros.tolist())
    cells = [cell for cell in _in_order(query.counted, domain, len(values) + len(zeros)) if cell not in zeros]
    records: dict[int, int] = {}
    for at, value in enumerate(values):
        level = (-value if negative else value) - query.measure.lowest
        index = cells[at // policy.cap] * query.measure.levels + level
        records[index] = records.get(index, 0) + 1
    return Witness.of_tables({}, records) if records else None


def _bracket(query: Query, policy: Unit, one: Sensitivity, effort: Effort) -> Bracket[Witness]:
    """Bounds and the best step where a unit has at most so many records in one cell."""
    k, c, norm = policy.at_most, policy.cap, one.norm
    unit = query.unit if norm == "l1" else query.unit**2
    record = int(one.power / unit)
    power = 1 if norm == "l1" else 2
    bounds = [_Bound(k**power * record, f"{k} records of one {policy.column}, each a step of its own")]
    options: list[Witness] = []
    if one.witness is not None:
        before, after = ({x: c * n for x, n in table} for table in (one.witness.before, one.witness.after))
        options.append(Witness.of_tables(before, after))
    fits = k * k * record * (k if norm == "l1" else 1) < 1 << 60
    apart = _whole_units(query, policy, norm, bounds, options) if fits else None
    listed = _vectors(query, policy) if fits else None
    if policy.records.graph is not None and apart is not None:
        # What is left and what is entered are two units that cannot do more than a unit that appears.
        factor = 2 if norm == "l1" or apart[1] else 4
        bounds.append(
            _Bound(factor * apart[0], "what is left and what is entered are each the records of one unit")
        )
    ended = None
    if listed is not None:
        bounds += _fills(listed, k, norm)
        options += _greedy(listed, k, norm)
        known = max((query.change_norm(each.change, norm) for each in options if each.change), default=0)
        least = min(bound.value for bound in bounds)
        if known < least:
            ended = _search(listed, k, norm, known, [bound.value for bound in bounds], effort)
            if ended is not None:
                options += ended[1]
                bounds.append(_Bound(ended[0], "all steps of a unit were gone through"))
    best = max(
        options, key=lambda each: query.change_norm(each.change, norm) if each.change else 0, default=None
    )
    lower = query.change_norm(best.change, norm) if best is not None and best.change else 0
    least_bound = min(bounds, key=lambda bound: bound.value)
    return Bracket(
        least_bound.value,
        lower,
        best,
        f"sums of up to {k} records of a unit, at most {c} in one cell",
        f"{least_bound.why} (docs/explanation/proofs/units.md)",
    )


@dataclass(frozen=True)
class _Bound:
    value: int
    why: str


def _top(values: Ints, room: Ints, k: int) -> tuple[int, Ints]:
    """Take up to k items, each as often as there is room, of largest value first: their sum, and how many of each."""
    order = np.argsort(-values, kind="stable")
    room = np.minimum(room[order], k)
    taken = np.minimum(room, np.maximum(0, k - np.concatenate([[0], np.cumsum(room)[:-1]])))
    taken = np.where(values[order] > 0, taken, 0)
    out = np.zeros(len(values), dtype=np.int64)
    out[order] = taken
    return int((values * out).sum()), out


def _whole_units(
    query: Query, policy: Unit, norm: Norm, bounds: list[_Bound], options: list[Witness]
) -> tuple[int, bool] | None:
    """A bound for a unit that appears, and whether no answer is negative; without a graph it joins ``bounds``, and what attains it ``options``."""
    k, c, power = policy.at_most, policy.cap, 1 if norm == "l1" else 2
    domain = query.domain
    if not isinstance(domain, Domain):
        return None
    open_ = policy.records.graph is None
    zeros = policy.system.zeros
    if isinstance(query, CuboidQuery) and not len(zeros):
        value = 0
        for names, weight in zip(query.sets, query.weights, strict=True):
            groups = prod(len(domain.labels(name)) for name in names)
            room = c * (domain.size // groups)
            if norm == "l1":
                value += weight * min(k, room * groups)
            else:
                full, rest = divmod(min(k, room * groups), room)
                value += weight**2 * (full * room**2 + rest**2)
        if open_:
            bounds.append(_Bound(value, "no table can change more, each by itself"))
            options.append(_lexicographic(query, domain, k, c))
        return value, True
    if domain.size > LISTED:
        return None
    cells = np.setdiff1d(np.arange(domain.size), zeros)
    columns = query.columns(cells).tocsc()
    # A record may be worth far more than a step of it, and a product beyond 64 bits would be a bound that is too small.
    sizes = abs(columns).astype(np.float64).power(power)
    if columns.nnz and k * k * float(sizes.sum(axis=0).max()) >= 1 << 60:
        return None
    positive = not columns.nnz or bool(columns.data.min() >= 0)
    norms = np.asarray(query.column_norms(cells, "l1"), dtype=np.int64)
    each = np.full(len(cells), c, dtype=np.int64)
    value, taken = _top(norms, each, k)
    if norm == "l2":
        value = min(bound.value for bound in _fills(_Vectors(columns, each, cells), k, norm))
    if open_:
        bounds.append(_Bound(value, "no records of one unit change the answers more, each by itself"))
        options.append(Witness.of_tables({}, dict(zip(cells.tolist(), taken.tolist(), strict=True))))
    return value, positive


def _lexicographic(query: CuboidQuery, domain: Domain, k: int, c: int) -> Witness:
    """A unit in the first cells, attributes that are in the fewest tables changing fastest: it fills one cell of each table of a chain before the next."""
    cells = _in_order(query, domain, -(-k // c))
    return Witness.of_tables({}, {cell: min(c, k - at * c) for at, cell in enumerate(cells)})


def _in_order(query: CuboidQuery, domain: Domain, most: int) -> list[int]:
    """Up to so many cells, in an order in which attributes that are in the fewest tables change fastest."""
    share = {name: sum(name in names for names in query.sets) for name in domain.names}
    order = sorted(domain.names, key=lambda name: share[name])
    out = []
    for at in range(min(most, domain.size)):
        rest, codes = at, {}
        for name in order:
            rest, codes[name] = divmod(rest, len(domain.labels(name)))
        index = 0
        for name in domain.names:
            index = index * len(domain.labels(name)) + codes[name]
        out.append(index)
    return out


@dataclass(frozen=True)
class _Vectors:
    """What one record can do: vectors of answers, how often each may be taken; of a graph both ends of each."""

    columns: Any
    room: Ints
    tails: Any
    heads: Any = None

    @property
    def directed(self) -> bool:
        return self.heads is not None


def _vectors(query: Query, policy: Unit) -> _Vectors | None:
    """The cells that a record can be in, or the edges that it can go along; None when they are too many."""
    graph, zeros = policy.records.graph, set(policy.system.zeros.tolist())
    size = policy.domain.size
    if graph is None:
        if size > LISTED:
            return None
        cells = np.array([cell for cell in range(size) if cell not in zeros], dtype=np.int64)
        columns = query.columns(cells).tocsc()
        room = np.full(len(cells), policy.cap, dtype=np.int64)
        return _Vectors(columns, room, cells) if columns.nnz <= ENTRIES else None
    if graph.n_edges > LISTED or size > 100 * LISTED:
        return None
    edges = [(u, v) for u, v in graph.edges() if u not in zeros and (v is BOTTOM or v not in zeros)]
    if not edges:
        return None
    tails = np.array([u for u, _ in edges], dtype=np.int64)
    heads = np.array([-1 if v is BOTTOM else v for _, v in edges], dtype=np.int64)
    columns = query.columns(np.maximum(heads, 0)).tocsc().multiply(heads >= 0) - query.columns(tails)
    columns = columns.tocsc()
    columns.eliminate_zeros()
    room = np.full(len(edges), policy.cap, dtype=np.int64)
    return _Vectors(columns, room, tails, heads) if columns.nnz <= ENTRIES else None


def _fills(vectors: _Vectors, k: int, norm: Norm) -> list[_Bound]:
    """Bounds on the norm of a sum of up to k vectors, each taken as often as there is room (units.md, Theorem 4)."""
    columns, room = vectors.columns.astype(np.int64), vectors.room
    rows = columns.tocsr()
    each = []
    for at in range(rows.shape[0]):
        part = slice(rows.indptr[at], rows.indptr[at + 1])
        entries = rows.data[part]
        sign = 1 if vectors.directed else 0
        up = _top(np.abs(entries) if sign else np.maximum(entries, 0), room[rows.indices[part]], k)[0]
        down = 0 if sign else _top(np.maximum(-entries, 0), room[rows.indices[part]], k)[0]
        each.append(max(up, down))
    by_row = _Bound(
        sum(x if norm == "l1" else x * x for x in each), "no answer can change more, each by itself"
    )
    if norm == "l1":
        norms = np.asarray(abs(columns).sum(axis=0), dtype=np.int64).ravel()
        return [
            by_row,
            _Bound(_top(norms, room, k)[0], "the largest steps of single records, as often as there is room"),
        ]
    products = (columns.T @ columns).tocsc()
    # Taken with either sign, or else never less than not at all.
    products.data = np.abs(products.data) if vectors.directed else np.maximum(products.data, 0)
    products.eliminate_zeros()
    own = products.diagonal()
    reach = np.zeros(columns.shape[1], dtype=np.int64)
    for at in range(columns.shape[1]):
        part = slice(products.indptr[at], products.indptr[at + 1])
        reach[at] = _top(products.data[part], room[products.indices[part]], k)[0]
    found = [by_row, _Bound(_top(reach, room, k)[0], "products of the answers of two records, largest first")]
    if products.nnz == np.count_nonzero(own):
        # Answers that no two of them share: squares of how often each is taken.
        order = np.argsort(-own, kind="stable")
        left, value = k, 0
        for at in order:
            taken = min(left, int(room[at]))
            left -= taken
            value += int(own[at]) * taken * taken
        found.append(_Bound(value, "no two records share an answer"))
    return found


class _UnitStep:
    """A step of one unit while it is put together."""

    def __init__(self, vectors: _Vectors) -> None:
        self.vectors = vectors
        self.sum = np.zeros(vectors.columns.shape[0], dtype=np.int64)
        self.left: dict[int, int] = {}
        self.entered: dict[int, int] = {}

    def allowed(self, at: int, sign: int, cap: int) -> bool:
        tail, head = self.ends(at, sign)
        return (tail < 0 or self.left.get(tail, 0) < cap) and (head < 0 or self.entered.get(head, 0) < cap)

    def ends(self, at: int, sign: int) -> tuple[int, int]:
        if not self.vectors.directed:
            return -1, int(self.vectors.tails[at])
        both = int(self.vectors.tails[at]), int(self.vectors.heads[at])
        return both if sign > 0 else both[::-1]

    def take(self, at: int, sign: int, times: int = 1) -> None:
        columns = self.vectors.columns
        part = slice(columns.indptr[at], columns.indptr[at + 1])
        np.add.at(self.sum, columns.indices[part], sign * times * columns.data[part])
        for table, end in zip((self.left, self.entered), self.ends(at, sign), strict=True):
            if end >= 0:
                table[end] = table.get(end, 0) + times

    def size(self, norm: Norm) -> int:
        return int(np.abs(self.sum).sum() if norm == "l1" else (self.sum * self.sum).sum())

    def pair(self) -> Witness:
        return Witness.of_tables(self.left, self.entered)


def _greedy(vectors: _Vectors, k: int, norm: Norm) -> list[Witness]:
    """Steps that are put together record by record, from a few beginnings, each record the best at its turn."""
    count = vectors.columns.shape[1]
    if k > COPIES or not count:
        return []
    columns = vectors.columns.astype(np.int64)
    own = np.asarray(
        abs(columns).sum(axis=0) if norm == "l1" else columns.multiply(columns).sum(axis=0)
    ).ravel()
    cap = int(vectors.room[0])
    signs = (1, -1) if vectors.directed else (1,)
    starts = np.argsort(-own, kind="stable")[: 4 if count > SEARCHED else 12].tolist()
    found = []
    for start in starts:
        step = _UnitStep(vectors)
        step.take(start, 1)
        for _ in range(k - 1):
            gains = []
            for sign in signs:
                if norm == "l2":
                    gain = 2 * sign * np.asarray(columns.T @ step.sum).ravel() + own
                else:
                    # What an entry adds to the absolute value of its answer.
                    here = step.sum[columns.indices]
                    change = np.abs(here + sign * columns.data) - np.abs(here)
                    gain = np.add.reduceat(np.append(change, 0), columns.indptr[:-1])
                    gain[np.diff(columns.indptr) == 0] = 0
                gains.append(gain)
            both = np.concatenate(gains)
            for place in np.argsort(-both, kind="stable"):
                if both[place] <= 0:
                    break
                at, sign = int(place) % count, signs[int(place) // count]
                if step.allowed(at, sign, cap):
                    step.take(at, sign)
                    break
            else:
                break
        found.append(step.pair())
    return found


def _search(
    vectors: _Vectors, k: int, norm: Norm, known: int, bounds: list[int], effort: Effort
) -> tuple[int, list[Witness]] | None:
    """Go through all steps of a unit, but those that cannot be larger than what is known; None when they are too many."""
    signs = (1, -1) if vectors.directed else (1,)
    items = [(at, sign) for at in range(vectors.columns.shape[1]) for sign in signs]
    if len(items) > SEARCHED:
        return None
    dense = vectors.columns.toarray().astype(np.int64)
    own = [int(np.abs(dense[:, at]).sum() if norm == "l1" else (dense[:, at] ** 2).sum()) for at, _ in items]
    cap = int(vectors.room[0])
    # The most that the items from one on can do, record by record.
    most = [max(own[place:]) for place in range(len(items))]
    best, found = known, []
    looked = 0

    def beyond(step: _UnitStep, place: int, left: int) -> bool:
        size = step.size(norm)
        if norm == "l1":
            return size + left * most[place] > best
        towards = sorted(
            (max(0, sign * int(dense[:, at] @ step.sum)) for at, sign in items[place:]), reverse=True
        )
        meets, rest = 0, left
        for value in towards:
            taken = min(rest, cap)
            meets += taken * value
            rest -= taken
            if not rest:
                break
        return size + 2 * meets + left * left * most[place] > best

    def descend(step: _UnitStep, place: int, left: int) -> bool:
        nonlocal best, looked
        looked += 1
        effort.spend(len(items))
        if looked > STEPS or effort.done:
            return False
        size = step.size(norm)
        if size > best:
            best = size
            found.append(step.pair())
        if place == len(items) or not left or best >= min(bounds) or not beyond(step, place, left):
            return True
        at, sign = items[place]
        times = 0
        while times < left and step.allowed(at, sign, cap):
            step.take(at, sign)
            times += 1
        good = True
        while True:
            good = good and descend(step, place + 1, left - times)
            if not good or not times:
                return good
            step.take(at, sign, -1)
            times -= 1

    return (best, found) if descend(_UnitStep(vectors), 0, k) else None
