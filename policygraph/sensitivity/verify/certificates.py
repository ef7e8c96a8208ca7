"""Certificates checked again, by a path that shares no search with what made them. Owns :func:`verify`.

Everything is recomputed from labels with plain dictionaries and integers: the two data sets, the public facts, the
answers, the definition of neighbours. The bound is recomputed by the naive completion procedure (or over all edges) when
the problem is small enough, and otherwise the report says on which proof it rests. Of the rest of the package it uses the
definitions (domain, constraints, graph, query) and ``solver``, never moves, reductions or closed forms.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from policygraph.model.constraints.tables import Cuboid, StructuralZero
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.sensitivity.verify.claims import CertifiedBound
from policygraph.sensitivity.verify.moves import (
    Kinds,
    are_constant,
    class_moves,
    largest_of_cells,
    largest_of_classes,
    minimal_multisets,
)
from policygraph.sensitivity.verify.neighbours import (
    Matcher,
    UndecidedError,
    check_neighbours,
    counts,
    is_pairwise,
    listed_moves,
    minimal_moves,
    positive_somewhere,
)
from policygraph.sensitivity.verify.tables import (
    CheckResult,
    Table,
    Verification,
    answer,
    check_facts,
    check_tables,
    difference,
    is_zero,
    power,
    public_sums,
)
from policygraph.sensitivity.verify.units import of_unit

EDGES = 200_000
"""Most edges of a policy graph that are gone through."""
MEASURE_EDGES = 50_000
"""The same where each end of an edge takes values of a measure."""
KIND_CELLS = 2_000
"""Most cells that are grouped by their public sums and answers."""
RECORD_CELLS = 12
"""Up to so many cells the sets of record changes are listed, with a graph and facts."""
RECORD_SETS = 200_000
"""Most sets of record changes that are looked at."""


def verify(claim: CertifiedBound) -> Verification:
    """Check witness and bound of a certificate again.

    Returns
    -------
    Verification
        What was recomputed and holds, what does not hold, and what was not decided here.
    """
    checks: list[CheckResult] = []
    if (
        claim.cap is not None
        and isinstance(claim.query, MeasureQuery)
        and claim.query.measure.in_all is not None
    ):
        return _of_cut_sums(claim, claim.query, claim.cap)
    if claim.cap is not None and isinstance(claim.query, MeasureQuery):
        return _of_unit_with_values(claim, claim.cap)
    if claim.cap is not None:
        return of_unit(claim)
    if claim.members > 1:
        return _of_families(claim)
    if isinstance(claim.query, MeasureQuery):
        return _of_measure(claim, claim.query)
    if claim.witness is None:
        checks.append(_no_witness(claim.lower_power))
    else:
        before, after = claim.witness
        checks.append(check_tables(claim.policy, before, after))
        if checks[0].passed:
            checks.append(check_facts(claim.policy, before, after))
            checks.append(check_neighbours(claim.policy, before, after))
            made = power(claim.query, difference(before, after), claim.norm)
            checks.append(_attained(made, claim.lower_power))
    checks.append(_bound(claim))
    return Verification(tuple(checks))


def _of_families(claim: CertifiedBound) -> Verification:
    """Check a certificate about families: one member of each makes a certificate about records."""
    size = claim.members
    times = size if claim.norm == "l1" else size * size
    if claim.witness is not None and any(count % size for table in claim.witness for count in table.values()):
        text = f"a count is no multiple of {size}, the size of a family"
        return Verification((CheckResult("families", False, text),))
    members = None
    if claim.witness is not None:
        before, after = ({cell: count // size for cell, count in table.items()} for table in claim.witness)
        members = (before, after)
    one = replace(
        claim,
        members=1,
        power=claim.power / times,
        lower_power=claim.lower_power / times,
        witness=members,
    )
    text = f"the counts are {size} times those of one member of each family, which were checked"
    return Verification((CheckResult("families", True, text), *verify(one).checks))


def _of_unit_with_values(claim: CertifiedBound, cap: int) -> Verification:
    """Check a certificate about sums of a unit, each value for itself: as many copies of a pair for a record as a unit may have in one cell, and a bound of as many as it has."""
    if claim.witness is not None and any(count % cap for table in claim.witness for count in table.values()):
        text = f"a count is no multiple of {cap}, the records of a unit in one cell"
        return Verification((CheckResult("units", False, text),))
    single = claim.witness
    if single is not None:
        before, after = ({cell: count // cap for cell, count in table.items()} for table in single)
        single = (before, after)
    power = 1 if claim.norm == "l1" else 2
    one = replace(
        claim,
        members=1,
        cap=None,
        power=claim.power / claim.members**power,
        lower_power=claim.lower_power / cap**power,
        witness=single,
    )
    text = f"{claim.members} records of a unit change no more than so many times one, which was checked"
    return Verification((CheckResult("units", True, text), *verify(one).checks))


def _of_cut_sums(claim: CertifiedBound, query: MeasureQuery, cap: int) -> Verification:
    """Check a certificate about sums to which all records of a unit add at most so much together: a unit that appears, and what it can add to each cell of a table."""
    measure, policy, k = query.measure, claim.policy, claim.members
    checks = []
    if claim.witness is None:
        checks.append(_no_witness(claim.lower_power))
    else:
        before, after = claim.witness
        cells = _cells_only(query, after)
        checks += [check_tables(policy, {}, cells), check_facts(policy, {}, cells)]
        values = {
            index: (measure.low + (index % measure.levels) * measure.unit) / measure.unit for index in after
        }
        room = sum((abs(values[index]) * n for index, n in after.items()), Fraction(0))
        fits = sum(after.values()) <= k and all(n <= cap for n in cells.values())
        good = not before and fits and room <= measure.in_all / measure.unit  # type: ignore[operator]
        text = "one unit appears, none of whose records is cut off" if good else "no unit appears like this"
        checks.append(CheckResult("neighbours", good, text))
        checks.append(
            _attained(_measure_power(query, difference(before, after), claim.norm), claim.lower_power)
        )
    if policy.graph is not None or query.kind != "sums" or query.centred:
        text = "expected plain sums without a policy graph"
        return Verification((*checks, CheckResult("bound", False, text)))
    far = max(abs(measure.low), abs(measure.high)) / measure.unit
    zeros = (
        sum(any(is_zero(f, policy, c) for f in policy.constraints) for c in range(policy.domain.size))
        if policy.constraints
        else 0
    )
    most = min(measure.in_all / measure.unit, far * min(k, cap * (policy.domain.size - zeros)))  # type: ignore[operator]
    largest = Fraction(0)
    for names, weight in zip(query.sets, query.weights, strict=True):
        if claim.norm == "l1":
            largest += weight * most
            continue
        left, squares = most, Fraction(0)
        cells_of_one = policy.domain.size
        for name in names:
            cells_of_one //= len(query.domain.labels(name))
        while left > 0:
            here = min(left, far * cap * cells_of_one)
            squares, left = squares + here * here, left - here
        largest += weight**2 * squares
    how = "what one unit can add to each table, cell by cell, was added up"
    return Verification((*checks, _compared(largest, claim.power, how)))


def _no_witness(lower: Fraction) -> CheckResult:
    if lower == 0:
        return CheckResult("witness", True, "none is needed, since nothing is claimed to be attained")
    return CheckResult("witness", False, f"there is none, but {lower} is claimed to be attained")


def _of_measure(claim: CertifiedBound, query: MeasureQuery) -> Verification:
    """Check a certificate about a measure: its cells hold records by value, and answers are worked out record by record."""
    policy, found = claim.policy, claim.witness
    if found is None:
        checks = [_no_witness(claim.lower_power)]
    else:
        before, after = found
        here, there = _cells_only(query, before), _cells_only(query, after)
        change = difference(before, after)
        checks = [
            check_tables(policy, here, there),
            check_facts(policy, here, there),
            _measure_neighbours(query, policy, change, here, there),
            _attained(_measure_power(query, change, claim.norm), claim.lower_power),
        ]
    largest = _largest_measured(query, policy, claim.norm)
    if largest is None:
        text = "not recomputed here; it rests on docs/explanation/proofs/measures.md"
        return Verification((*checks, CheckResult("bound", None, text)))
    how = "all edges and ends of the range were gone through"
    return Verification((*checks, _compared(largest, claim.power, how)))


def _cells_only(query: MeasureQuery, table: Table) -> Table:
    """How many records are in each cell, whatever their values."""
    out: Table = {}
    for index, amount in table.items():
        out[index // query.measure.levels] = out.get(index // query.measure.levels, 0) + amount
    return out


def _measure_neighbours(
    query: MeasureQuery, policy: Policy, change: Table, here: Table, there: Table
) -> CheckResult:
    """Whether two data sets are neighbours: one value changes within a cell, or the cells are neighbours with any values."""
    if here == there:
        alone = policy.graph is None and not policy.constraints
        one = sorted(change.values()) == [-1, 1] and len({c // query.measure.levels for c in change}) == 1
        if one and not alone:
            return CheckResult("neighbours", True, "one record changes its value within its cell")
    if policy.definition == "blowfish":
        return CheckResult(
            "neighbours", None, "records that change their cells under public facts were not matched here"
        )
    signs: dict[int, set[bool]] = {}
    for index, amount in change.items():
        signs.setdefault(index // query.measure.levels, set()).add(amount > 0)
    if any(len(both) == 2 for both in signs.values()):
        return CheckResult(
            "neighbours", False, "a cell loses one value and gains another, which is a step of its own"
        )
    return check_neighbours(policy, here, there)


def _measure_power(query: MeasureQuery, change: Table, norm: str) -> Fraction:
    measure = query.measure
    out: dict[Any, Fraction] = {}
    for index, amount in change.items():
        cell, level = divmod(index, measure.levels)
        record = dict(zip(query.domain.names, query.domain.cell(cell), strict=True))
        value = (measure.low + level * measure.unit) / measure.unit
        if query.centred:
            value = 2 * value - (measure.low + measure.high) / measure.unit
        for names, weight in zip(query.sets, query.weights, strict=True):
            place = tuple(record[name] for name in names)
            for kind, entry in (("sum", query.sum_weight * value), ("count", Fraction(query.count_weight))):
                key = (names, kind, place)
                out[key] = out.get(key, Fraction(0)) + weight * entry * amount
    return sum((abs(x) if norm == "l1" else x * x for x in out.values()), Fraction(0))


def _largest_measured(query: MeasureQuery, policy: Policy, norm: str) -> Fraction | None:
    """The largest change over all neighbours, where they can be gone through: no facts, and few edges."""
    levels, span = query.measure.levels, query.measure.span
    if policy.constraints or policy.domain.size > MEASURE_EDGES:
        return None
    best = Fraction(0)
    ends = (0, span)
    if policy.graph is None:
        for cell, level in product(range(policy.domain.size), ends):
            best = max(best, _measure_power(query, {cell * levels + level: 1}, norm))
        return best
    if policy.graph.n_edges > MEASURE_EDGES:
        return None
    from policygraph.model.graphs import BOTTOM

    for u, v in policy.graph.edges():
        for one, two in product(ends, repeat=2):
            change = {u * levels + one: -1}
            if not isinstance(v, type(BOTTOM)):
                change[v * levels + two] = 1
            best = max(best, _measure_power(query, change, norm))
    return max(best, _measure_power(query, {0: -1, span: 1}, norm))


def _attained(found: Fraction, claimed: Fraction) -> CheckResult:
    text = f"the answers of the two data sets differ by {found}, claimed {claimed}"
    return CheckResult("attained", found == claimed, text)


def _bound(claim: CertifiedBound) -> CheckResult:
    policy, query, claimed = claim.policy, claim.query, claim.power
    rests = CheckResult("bound", None, f"not recomputed here; it rests on: {claim.reason}")
    if (how := _at_most(claim)) is not None:
        return CheckResult("bound", True, how)
    if policy.definition == "edges":
        if policy.graph is None or policy.graph.n_edges > EDGES:
            return rests
        largest, how = _over_edges(claim), f"all {policy.graph.n_edges} edges were gone through"
        return _compared(largest, claimed, how)
    if policy.definition == "blowfish" and not is_pairwise(policy):
        return _blowfish_bound(claim) or rests
    kinds = None if policy.graph is not None else _kinds(policy, query)
    moves = None if kinds is None else class_moves(kinds)
    if kinds is not None and moves is not None:
        listed = (largest_of_cells if query.is_identity else largest_of_classes)(
            kinds, moves, claim.norm, policy.domain.capacity, lambda move: counts(policy, move)
        )
        if listed is not None:
            how = f"{len(moves)} minimal moves over {len(kinds.sums)} classes of cells were listed by the naive completion procedure"
            made = listed * (query.unit if claim.norm == "l1" else query.unit**2)
            if made <= claimed or (policy.strength != "positive" and not policy.system.has_values):
                return _compared(made, claimed, how)
    return _cell_by_cell(claim) or rests


def _compared(largest: Fraction, claimed: Fraction, how: str) -> CheckResult:
    return CheckResult(
        "bound", largest <= claimed, f"{how}: the largest change is {largest}, claimed {claimed}"
    )


def _cell_by_cell(claim: CertifiedBound) -> CheckResult | None:
    """The list of minimal moves of few cells, and among the longer ones those that are positive on some table."""
    policy, query = claim.policy, claim.query
    moves = listed_moves(policy)
    if moves is None:
        return None
    how = f"{len(moves)} minimal moves were listed by the naive completion procedure"
    powers = [(power(query, move, claim.norm), move) for move in moves]
    beyond = [(value, move) for value, move in powers if value > claim.power]
    if not beyond:
        return _compared(max((v for v, _ in powers), default=Fraction(0)), claim.power, how)
    if policy.system.has_values:
        return None  # the longer moves may be ones that no table with the published values can make
    if policy.graph is not None:
        return None  # a move that touches a secret pair need not lead to a neighbour
    if policy.strength == "positive":
        every = minimal_moves(policy) or []
        decided = [(value, positive_somewhere(policy, move, every)) for value, move in beyond]
        longer = [value for value, positive in decided if positive]
        if longer:
            return _compared(max(longer), claim.power, how)
        if any(positive is None for _, positive in decided):
            return None
        return CheckResult(
            "bound", True, f"{how}: none that is positive on some table changes more than claimed"
        )
    return _compared(max(value for value, _ in beyond), claim.power, how)


def _over_edges(claim: CertifiedBound) -> Fraction:
    from policygraph.model.graphs import BOTTOM

    largest = Fraction(0)
    graph = claim.policy.graph
    for u, v in () if graph is None else graph.edges():
        change = {u: -1, v: 1} if v is not BOTTOM else {u: 1}
        largest = max(largest, power(claim.query, change, claim.norm))  # type: ignore[arg-type]
    return largest


def _at_most(claim: CertifiedBound) -> str | None:
    """An argument for the bound that needs no list of moves, or None."""
    policy, query = claim.policy, claim.query
    if policy.graph is not None and policy.graph.n_edges == 0:
        return "without secret pairs no two data sets are neighbours"
    if isinstance(query, CuboidQuery) and all(
        any(isinstance(f, Cuboid) and set(names) <= set(f.names) for f in policy.constraints)
        for names in query.sets
    ):
        return "every table that is asked for is inside a public one"
    if policy.domain.size > KIND_CELLS:
        return None
    if policy.at_most_records is not None:
        widest = max(power(query, {c: 1}, claim.norm) for c in range(policy.domain.size))
        times = 2 * policy.at_most_records
        if widest * (times if claim.norm == "l1" else times * times) <= claim.power:
            return f"at most {times} records are added and removed, each changes the answer by at most one column"
    if claim.power == 0 and policy.constraints:
        kinds = _kinds(policy, query)
        total = policy.graph is not None and policy.graph.bottom == "none"
        if kinds is not None and are_constant(kinds, total=total):
            return "every answer is a combination of public facts"
    return None


def _kinds(policy: Policy, query: Query) -> Kinds | None:
    """The cells that can hold records, by their public sums and their answers; None when they are too many."""
    if policy.domain.size > KIND_CELLS:
        return None
    facts = [f for f in policy.constraints if not isinstance(f, StructuralZero)]
    cells = [
        c for c in range(policy.domain.size) if not any(is_zero(f, policy, c) for f in policy.constraints)
    ]
    if not cells:
        return None
    sums = {
        c: {(at, key): x for at, f in enumerate(facts) for key, x in public_sums(f, policy, {c: 1}).items()}
        for c in cells
    }
    keys = list(dict.fromkeys(key for each in sums.values() for key in each))
    rows: dict[Any, int] = {}
    answers = {}
    for c in cells:
        found = answer(query, {c: 1})
        answers[c] = tuple(sorted((rows.setdefault(row, len(rows)), x) for row, x in found.items()))
    return Kinds.of({c: tuple(sums[c].get(key, 0) for key in keys) for c in cells}, answers)


def _blowfish_bound(claim: CertifiedBound) -> CheckResult | None:
    """All minimal sets of record changes with a secret pair, and whether they lead to neighbours; few cells only."""
    policy, query, norm = claim.policy, claim.query, claim.norm
    if policy.domain.size > RECORD_CELLS or policy.domain.capacity is not None:
        return None
    matcher = Matcher(policy, lambda table: [public_sums(f, policy, table) for f in policy.constraints])
    steps: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
    for x, y in product(matcher.values, repeat=2):
        if x != y:
            steps.setdefault(matcher.step(x, y), []).append((x, y))
    zero = [pair for step, pairs in steps.items() if not any(step) for pair in pairs]
    listed = minimal_multisets([step for step in steps if any(step)])
    if listed is None:
        return None
    tried, sets = 0, 0
    largest = Fraction(0)
    for options in ([zero], *([steps[step] for step in multiset] for multiset in listed)):
        for pairs in product(*options):
            tried += 1
            if tried > RECORD_SETS:
                return None
            change: Table = {}
            for x, y in pairs:
                for cell, amount in ((x, -1), (y, 1)):
                    if cell is not None:
                        change[cell] = change.get(cell, 0) + amount
            if not any(matcher.secret(x, y) for x, y in pairs) or not counts(policy, change):
                continue
            sets += 1
            value = power(query, {c: n for c, n in change.items() if n}, norm)
            if value <= claim.power:
                largest = max(largest, value)
                continue
            try:
                if not matcher.are_neighbours(pairs):
                    continue
            except UndecidedError:
                return None
            if policy.system.has_values:
                return None  # the pair may be one that no table with the published values can make
            return _compared(value, claim.power, "a set of record changes was found")
    return _compared(
        largest, claim.power, f"{sets} minimal sets of record changes with a secret pair were listed"
    )
