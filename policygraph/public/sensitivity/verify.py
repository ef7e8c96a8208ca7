"""Certificates checked again, by a path that shares no code with the search. Owns :func:`verify`.

Everything is recomputed from labels with plain dictionaries and integers: the two data sets, the public facts, the
answers, the definition of neighbours. The bound is recomputed by the naive completion procedure (or over all edges) when
the problem is small enough, and otherwise the report says on which proof it rests. Of ``public`` it uses the
definitions (domain, constraints, graph, query) and ``solver``, never moves, reductions or closed forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

from policygraph.effort import SECOND, Effort
from policygraph.public.constraints.counts import LinearCount, StructuralZero
from policygraph.public.constraints.degrees import Degrees
from policygraph.public.constraints.edges import KnownEdges
from policygraph.public.constraints.margins import Cells, Cuboid, Total
from policygraph.public.domain import Domain, Network
from policygraph.public.policy import Policy
from policygraph.public.query.base import Query
from policygraph.public.query.cuboids import CuboidQuery
from policygraph.public.query.matrices import MatrixQuery
from policygraph.public.query.measures import MeasureQuery
from policygraph.public.query.networks import AdjacencyQuery, MixingQuery
from policygraph.public.sensitivity.certificate import Sensitivity
from policygraph.public.sensitivity.verify_measures import cells_only, measure_checks
from policygraph.public.sensitivity.verify_moves import naive_moves
from policygraph.public.sensitivity.verify_pairs import is_pairwise, pair_neighbours, secret_pairs_of
from policygraph.public.sensitivity.verify_report import Check, Verification
from policygraph.public.solver import Program

__all__ = ["Check", "Verification", "listed_moves", "verify"]

Table = dict[int, int]
SUBSETS = 1 << 18
EDGES = 200_000
BASIS_CELLS = 10
SOLVER = 20 * SECOND


def verify(certificate: Sensitivity) -> Verification:
    """Check witness and bound of a certificate again."""
    checks: list[Check] = []
    if isinstance(certificate.query, MeasureQuery):
        return _of_measure(certificate, certificate.query)
    if certificate.witness is None:
        passed = certificate.lower_power == 0
        checks.append(Check("witness", passed, "none is needed, since nothing is claimed to be attained"))
    else:
        before, after = dict(certificate.witness.before), dict(certificate.witness.after)
        checks.append(_tables(certificate.policy, before, after))
        checks.append(_facts(certificate.policy, before, after))
        checks.append(_neighbours(certificate.policy, before, after))
        checks.append(_attained(certificate, before, after))
    checks.append(_bound(certificate))
    return Verification(tuple(checks))


def _of_measure(certificate: Sensitivity, query: MeasureQuery) -> Verification:
    policy, found = certificate.policy, certificate.witness
    tables = None if found is None else (dict(found.before), dict(found.after))
    cells = [] if tables is None else [cells_only(query, table) for table in tables]
    checks = [f(policy, *cells) for f in (_tables, _facts) if cells]

    def neighbours(one: Table, two: Table) -> tuple[str, bool | None, str]:
        made = _neighbours(policy, one, two)
        return made.name, made.passed, made.text

    claimed = (certificate.lower_power, certificate.power)
    rest = measure_checks(query, policy, certificate.norm, claimed, tables, neighbours)
    return Verification((*checks, *(Check(*each) for each in rest)))


def _tables(policy: Policy, before: Table, after: Table) -> Check:
    top = policy.domain.capacity
    for table in (before, after):
        for cell, amount in table.items():
            if not 0 <= cell < policy.domain.size or amount < 0 or (top is not None and amount > top):
                return Check("tables", False, f"cell {cell} cannot hold {amount}")
    return Check("tables", True, "both data sets are over the domain, with counts that a cell can hold")


# Public facts, by labels ----------------------------------------------------------------------------------------------


def _sums(fact: Any, policy: Policy, table: Table) -> dict[Any, int]:
    """The public sums of a data set, keyed by what they are sums of."""
    domain = policy.domain
    out: dict[Any, int] = {}

    def add(key: Any, amount: int) -> None:
        out[key] = out.get(key, 0) + amount

    for cell, amount in table.items():
        labels = domain.cell(cell)
        if isinstance(fact, Total):
            add("total", amount)
        elif isinstance(fact, Degrees) and isinstance(domain, Network):
            known = set(domain.nodes) if isinstance(fact.nodes, str) else set(fact.nodes)
            ends = {"both": labels, "out": labels[:1], "in": labels[1:]}[fact.side]
            for end in ends:
                if end in known:
                    add(end, amount)
        elif isinstance(fact, KnownEdges) and fact.is_public(domain, labels):
            add(labels, amount)
        elif isinstance(domain, Domain):
            record = dict(zip(domain.names, labels, strict=True))
            if isinstance(fact, Cuboid):
                add(tuple(record[name] for name in sorted(fact.names, key=domain.axis)), amount)
            elif isinstance(fact, Cells):
                place = tuple(record[name] for name in fact.of)
                if place in fact.cells:
                    add(place, amount)
        if isinstance(fact, LinearCount):
            add("count", amount * sum(c for where, c in fact.terms if _matches(domain, labels, where)))
        elif isinstance(fact, StructuralZero) and any(
            _matches(domain, labels, where) for where in fact.cells
        ):
            add("zero", amount)
    return {key: value for key, value in out.items() if value}


def _matches(domain: Any, labels: tuple[Any, ...], where: tuple[str, Any]) -> bool:
    kind, what = where
    if kind == "cell":
        same = tuple(labels) == tuple(what)
        if isinstance(domain, Network) and not domain.directed:
            return same or tuple(labels) == tuple(reversed(what))
        return same
    record = dict(zip(domain.names, labels, strict=True))
    return all(record[name] in allowed for name, allowed in what)


def _facts(policy: Policy, before: Table, after: Table) -> Check:
    for fact in policy.constraints:
        one, two = _sums(fact, policy, before), _sums(fact, policy, after)
        if one != two:
            return Check("public facts", False, f"{fact.to_spec()} differs between the two data sets")
        if isinstance(fact, StructuralZero) and one:
            return Check("public facts", False, "a structural zero is filled")
        published = None if isinstance(fact, StructuralZero) else fact.values(policy.domain)
        if published is not None:
            keys = list(_keys(fact, policy))
            if any(one.get(key, 0) != value for key, value in zip(keys, published, strict=True)):
                return Check("public facts", False, f"{fact.to_spec()} does not have the published values")
    return Check("public facts", True, f"all {len(policy.constraints)} public facts are the same in both")


def _keys(fact: Any, policy: Policy) -> Iterator[Any]:
    domain = policy.domain
    if isinstance(fact, Total):
        yield "total"
    elif isinstance(fact, LinearCount):
        yield "count"
    elif isinstance(fact, Cells):
        yield from fact.cells
    elif isinstance(fact, Degrees) and isinstance(domain, Network):
        yield from domain.nodes if isinstance(fact.nodes, str) else fact.nodes
    elif isinstance(fact, Cuboid) and isinstance(domain, Domain):
        yield from product(*(domain.labels(name) for name in sorted(fact.names, key=domain.axis)))


# Answers, by labels ---------------------------------------------------------------------------------------------------


def _answer(query: Query, table: Table) -> dict[Any, int]:
    """Integer answers of a data set, keyed by row; rows that are 0 are left out."""
    out: dict[Any, int] = {}
    domain = query.domain
    for cell, amount in table.items():
        labels = domain.cell(cell)
        rows: list[tuple[Any, int]] = []
        if isinstance(query, CuboidQuery) and isinstance(domain, Domain):
            record = dict(zip(domain.names, labels, strict=True))
            for names, weight in zip(query.sets, query.weights, strict=True):
                rows.append(((names, tuple(record[name] for name in names)), weight))
        elif isinstance(query, AdjacencyQuery):
            rows.append((labels, 1))
        elif isinstance(query, MixingQuery) and isinstance(domain, Network):
            groups = [query.groups[domain.code(node)] for node in labels]
            rows.append((tuple(groups if domain.directed else sorted(groups, key=str)), 1))
        elif isinstance(query, MatrixQuery):
            column = query.matrix[:, [cell]].tocoo()
            rows.extend((int(r), int(x)) for r, x in zip(column.row, column.data, strict=True))
        else:
            column = query.columns([cell]).tocoo()
            rows.extend((int(r), int(x)) for r, x in zip(column.row, column.data, strict=True))
        for row, entry in rows:
            out[row] = out.get(row, 0) + entry * amount
    return {row: value for row, value in out.items() if value}


def _power(query: Query, change: Table, norm: str) -> Fraction:
    values = _answer(query, change).values()
    if norm == "l1":
        return query.unit * sum(abs(x) for x in values)
    return query.unit**2 * sum(x * x for x in values)


def _change(before: Table, after: Table) -> Table:
    out = dict(after)
    for cell, amount in before.items():
        out[cell] = out.get(cell, 0) - amount
    return {cell: amount for cell, amount in out.items() if amount}


def _attained(certificate: Sensitivity, before: Table, after: Table) -> Check:
    found = _power(certificate.query, _change(before, after), certificate.norm)
    passed = found == certificate.lower_power
    return Check(
        "attained",
        passed,
        f"the answers of the two data sets differ by {found}, claimed {certificate.lower_power}",
    )


# Neighbours, by the definition ----------------------------------------------------------------------------------------


def _neighbours(policy: Policy, before: Table, after: Table) -> Check:
    change = _change(before, after)
    if not change:
        return Check("neighbours", False, "the two data sets are equal")
    added = sum(x for x in change.values() if x > 0)
    removed = -sum(x for x in change.values() if x < 0)
    cap = policy.at_most_records
    if cap is not None and max(added, removed) > cap:
        return Check("neighbours", False, f"more than {cap} records are added or removed")
    if policy.definition == "edges":
        return _one_edge(policy, change)
    if policy.definition == "blowfish":
        return _blowfish(policy, before, after)
    if policy.strength == "markov" and (len(change) > 4 or any(abs(x) > 1 for x in change.values())):
        return Check("neighbours", False, "a Markov move has at most four single changes")
    minimal = _is_minimal(policy, change)
    if minimal is False:
        return Check("neighbours", False, "a smaller part of the change keeps the public facts")
    if minimal and policy.strength == "positive":
        positive = _is_positive(policy, before, change)
        text = "no shorter change exchanges some removed record for some added one"
        return Check("neighbours", positive, text if positive else "positivity was not shown here")
    return Check(
        "neighbours",
        minimal,
        "no smaller part of the change keeps the public facts" if minimal else "not decided",
    )


def _one_edge(policy: Policy, change: Table) -> Check:
    from policygraph.public.graphs import BOTTOM

    ends = sorted(change.items(), key=lambda item: item[1])
    amounts = [x for _, x in ends]
    if policy.graph is None or amounts not in ([-1, 1], [1], [-1]):
        return Check("neighbours", False, "more than one record changes")
    other: Any = ends[1][0] if len(ends) == 2 else BOTTOM
    passed = policy.graph.has_edge(ends[0][0], other)
    return Check(
        "neighbours", passed, "one record changes along an edge" if passed else "this pair is no edge"
    )


def _keeps(policy: Policy, change: Table) -> bool:
    return not any(_sums(fact, policy, change) for fact in policy.constraints)


def _is_minimal(policy: Policy, change: Table) -> bool | None:
    if not _keeps(policy, change):
        return False
    cells = list(change)
    count = 1
    for cell in cells:
        count *= abs(change[cell]) + 1
    if count <= SUBSETS:
        steps = [
            range(0, change[c] + (1 if change[c] > 0 else -1), 1 if change[c] > 0 else -1) for c in cells
        ]
        sums = [[_sums(fact, policy, {cell: 1}) for fact in policy.constraints] for cell in cells]
        for amounts in product(*steps):
            part = dict(zip(cells, amounts, strict=True))
            if any(amounts) and part != change and _zero(sums, amounts):
                return False
        return True
    parts = [(cell, 1 if amount > 0 else -1, abs(amount)) for cell, amount in change.items()]
    whole = sum(abs(amount) for amount in change.values())
    return _none(policy, parts, [(dict.fromkeys(range(len(parts)), 1), 1, whole - 1)])


def _zero(sums: list[list[dict[Any, int]]], amounts: tuple[int, ...]) -> bool:
    total: dict[tuple[int, Any], int] = {}
    for facts, amount in zip(sums, amounts, strict=True):
        if amount:
            for at, rows in enumerate(facts):
                for key, value in rows.items():
                    total[at, key] = total.get((at, key), 0) + value * amount
    return not any(total.values())


def _none(
    policy: Policy,
    parts: list[tuple[int, int, int]],
    limits: list[tuple[dict[int, int], int | None, int | None]],
) -> bool | None:
    """Whether no change made of these parts, each a cell, a sign and the most records, keeps the facts within limits on the parts.

    None when undecided; nothing is taken on the word of one solver (docs/proofs/solvers.md).
    """
    program = Program([0] * len(parts), [most for _, _, most in parts])
    rows: dict[tuple[int, Any], dict[int, int]] = {}
    for place, (cell, sign, _) in enumerate(parts):
        for at, fact in enumerate(policy.constraints):
            for key, value in _sums(fact, policy, {cell: 1}).items():
                rows.setdefault((at, key), {})[place] = sign * value
    for terms in rows.values():
        program.add(terms, 0, 0)
    for terms, low, high in limits:
        program.add(terms, low, high)
    answer = program.find(Effort(SOLVER))
    return None if answer.status == "unknown" else answer.status == "none"


def _is_positive(policy: Policy, before: Table, change: Table) -> bool | None:
    removed = [c for c, x in change.items() if x < 0]
    added = [c for c, x in change.items() if x > 0]
    if not removed or not added:
        return True
    if policy.domain.size > 2_000:
        return None
    size = sum(abs(x) for x in change.values())
    cells = policy.domain.size
    parts = [(cell, 1, size) for cell in range(cells)]
    parts += [(cell, -1, min(size, before.get(cell, 0))) for cell in range(cells)]
    shorter: tuple[dict[int, int], int | None, int | None] = (
        dict.fromkeys(range(2 * cells), 1),
        None,
        size - 1,
    )
    open_ = False
    for t in removed:
        for s in added:
            none = _none(
                policy, parts, [shorter, ({cells + t: 1, t: -1}, 1, None), ({s: 1, cells + s: -1}, 1, None)]
            )
            if none:
                return True
            open_ = open_ or none is None
    return None if open_ else False


def _blowfish(policy: Policy, before: Table, after: Table) -> Check:
    """The definition over indexed records, tried for every way to match the records; small cases only."""
    from policygraph.public.sensitivity.verify_records import match_records

    if is_pairwise(policy):
        return _secret_edges(policy, before, _change(before, after))
    found = match_records(
        policy, before, after, lambda table: [_sums(f, policy, table) for f in policy.constraints]
    )
    text = {
        True: "some matching of the records changes a minimal set of secret pairs",
        False: "no matching of the records makes them neighbours",
        None: "too many records to try every matching here",
    }
    return Check("neighbours", found, text[found])


def _secret_edges(policy: Policy, before: Table, change: Table) -> Check:
    minimal = _is_minimal(policy, change)
    found = minimal and pair_neighbours(
        policy, before, change, lambda table: [_sums(f, policy, table) for f in policy.constraints]
    )
    text = {
        True: "no smaller change, and none with fewer secret edges, keeps the public facts",
        False: "a smaller change, or one with fewer secret edges, keeps the public facts, or no secret edge changes",
        None: "too many networks to try here",
    }
    return Check("neighbours", found, text[found])


# The bound ------------------------------------------------------------------------------------------------------------


def _bound(certificate: Sensitivity) -> Check:
    policy, query = certificate.policy, certificate.query
    rests = Check("bound", None, f"not recomputed here; it rests on: {certificate.reason}")
    largest: Fraction | None = None
    if policy.definition == "edges" and policy.graph is not None and policy.graph.n_edges <= EDGES:
        from policygraph.public.graphs import BOTTOM

        largest = Fraction(0)
        for u, v in policy.graph.edges():
            change = {u: -1, v: 1} if v is not BOTTOM else {u: 1}
            largest = max(largest, _power(query, change, certificate.norm))  # type: ignore[arg-type]
        how = f"all {policy.graph.n_edges} edges were gone through"
    elif policy.definition != "edges":
        moves = listed_moves(policy)
        if moves is None:
            return rests
        beyond = [m for m in moves if _power(query, m, certificate.norm) > certificate.power]
        if policy.strength == "positive":
            # A table that holds the removed records alone leaves a move the fewest alternatives.
            beyond = [
                m
                for m in beyond
                if _is_positive(policy, {c: -x for c, x in m.items() if x < 0}, m) is not False
            ]
        if beyond and policy.system.has_values:
            return rests  # the longer moves may be ones that no table with the published values can make
        within = [m for m in moves if _power(query, m, certificate.norm) <= certificate.power]
        largest = max(
            (_power(query, move, certificate.norm) for move in beyond or within), default=Fraction(0)
        )
        how = f"{len(moves)} minimal moves were listed by the naive completion procedure"
    if largest is None:
        return rests
    return Check(
        "bound",
        largest <= certificate.power,
        f"{how}: the largest change is {largest}, claimed {certificate.power}",
    )


def listed_moves(policy: Policy) -> list[Table] | None:
    """All moves of a policy over few cells, of any strength but positive, in both directions; None when they are not listed here."""
    from policygraph.public.graphs import BOTTOM

    if policy.domain.size > BASIS_CELLS:
        return None
    if policy.definition == "edges" and policy.graph is not None:
        ends: list[Any] = list(policy.graph.edges())
        return [{u: x} if v is BOTTOM else {u: -x, v: x} for u, v in ends for x in (1, -1)]
    if policy.definition == "blowfish" and not is_pairwise(policy):
        return None
    listed = _naive_moves(policy)
    if listed is not None and policy.graph is not None:
        listed = [move for move in listed if set(move) & secret_pairs_of(policy)]
    return None if listed is None else [move for move in listed if _counts(policy, move)]


def _counts(policy: Policy, move: Table) -> bool:
    """Whether a minimal move is within the cap and, for Markov strength, short."""
    cap = policy.at_most_records
    added, removed = sum(x for x in move.values() if x > 0), -sum(x for x in move.values() if x < 0)
    if cap is not None and max(added, removed) > cap:
        return False
    return policy.strength != "markov" or (len(move) <= 4 and all(abs(x) == 1 for x in move.values()))


def _naive_moves(policy: Policy) -> list[Table] | None:
    """Pottier's completion in its plainest form, on the cells of a small domain; None when it is too long."""
    cells = [
        c for c in range(policy.domain.size) if not any(_is_zero(f, policy, c) for f in policy.constraints)
    ]
    facts = [f for f in policy.constraints if not isinstance(f, StructuralZero)]
    keys = sorted(
        {(at, repr(k)) for at, f in enumerate(facts) for c in cells for k in _sums(f, policy, {c: 1})}
    )
    rows = [
        [next((v for k, v in _sums(facts[at], policy, {c: 1}).items() if repr(k) == name), 0) for c in cells]
        for at, name in keys
    ]
    found = naive_moves(rows, len(cells))
    if found is None:
        return None
    top = policy.domain.capacity
    fitting = (g for g in found if top is None or max(map(abs, g)) <= top)
    return [{cell: x for cell, x in zip(cells, g, strict=True) if x} for g in fitting]


def _is_zero(fact: Any, policy: Policy, cell: int) -> bool:
    return isinstance(fact, StructuralZero) and bool(_sums(fact, policy, {cell: 1}))
