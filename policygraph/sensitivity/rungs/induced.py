"""Sensitivity under exact public facts without a policy graph: the longest minimal move, by search, bound or refusal.

The rungs around the closed forms of ``margins`` and ``degrees``: what published values rule out
(``docs/explanation/proofs/published-values.md``), single records, and below them the search over minimal moves on a matrix, proved bounds
and the refusal. The search works on the reduced problem when there is one, otherwise on the rows over all cells that are not
structurally empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import comb, factorial, prod
from typing import Any

import numpy as np

from policygraph.effort import SECOND, Effort
from policygraph.errors import PolicyGraphError, RefusedError
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Ints, Norm, Query
from policygraph.model.queries.cuboids import BlockQuery, CuboidQuery
from policygraph.model.queries.networks import MixingQuery
from policygraph.model.queries.products import ProductQuery
from policygraph.moves.bracket import Bracket, Witness
from policygraph.moves.paired import longest_walk, some_cycle
from policygraph.sensitivity.problem import Problem
from policygraph.sensitivity.rungs.degrees import public_degrees
from policygraph.sensitivity.rungs.margins import (
    Codes,
    Reduced,
    decode,
    encode,
    partial_margins,
    reduced_of,
    whole_margins,
)

__all__ = [
    "proved_bound",
    "refuse",
    "search",
    "single_records",
    "times_widest_column",
    "with_values",
    "without_redundant",
]

CELLS_AT_ONCE = 1 << 20
"""Cells whose columns are held at once."""
ENTRIES = 40_000_000
"""Most entries of a dense matrix that a search is started on."""
VALUE_CELLS = 3_000
"""Most cells for which published values are used to rule out moves."""
VALUE_ROWS = 20_000
"""Most published counts for which a pair of data sets is made: it has about as many cells."""
TRIED = 5 * SECOND
"""Work on one table that has the published values and allows a move."""
VALUE_PAIRS = 150
"""The same for node pairs of networks, whose moves are too many to try beyond."""
POSITIVE_MOVES = 200_000
USELESS = 10**6
"""A bound of more than so many times what is attained is not given."""
CYCLE = 20
"""Longest cycles that are counted, in records: shorter ones are too many already where longer ones exist."""
WALK_CELLS = 200_000
"""Most cells that are taken as edges between public sums."""
SEARCH_COLUMNS = 400
"""Most different columns for which all minimal moves are searched; beyond it the search would not end."""


def without_redundant(problem: Problem) -> Bracket[Witness] | None:
    """Note that facts which follow from others are not used, and climb on."""
    redundant = problem.policy.system.redundant
    if not redundant:
        return None
    found = problem.but(without="facts that follow from others").climb()
    return found.after(f"{len(redundant)} public facts that follow from others dropped")


def with_values(problem: Problem) -> Bracket[Witness] | None:
    """Longest move that a table with the published values can make; the answer that ignores the values is never smaller.

    The pair of what answers quickly without the values is looked for among the tables that have them: where one has it, that answer is kept, and nothing
    is listed.
    """
    policy = problem.policy
    if not policy.system.has_values:
        return None
    without = problem.but(without="published values")
    # of all minimal moves a search takes long, and fewer may be left by the values; of few records it does not
    quick = without.but(without="search of minimal moves") if _few_records(policy) is None else without
    try:
        formula = on_published(problem, quick.climb())
    except PolicyGraphError:
        formula = None
    if formula is not None and formula.exact:
        return formula
    size = policy.domain.size
    most = VALUE_PAIRS if policy.domain.capacity == 1 else VALUE_CELLS
    found, why = None, f"{size:,} cells are more than {most:,}"
    if size <= most:
        found, why = _listed_with_values(problem), "they leave too many moves to list"
        if found is not None and found.exact:
            return found
    try:
        rest = formula if formula is not None and quick is without else on_published(problem, without.climb())
    except PolicyGraphError:
        if found is None:
            raise
        return found
    if formula is not None and formula.lower > rest.lower:
        rest = _join(rest, formula)
    if found is None or rest.exact:
        return rest if rest.exact else rest.after(f"the published values were not used for the bound: {why}")
    if found.upper > rest.upper:
        return _join(rest.after("the published values were not used for the bound"), found)
    return _join(found, rest) if rest.lower > found.lower else found


def on_published(problem: Problem, found: Bracket[Witness]) -> Bracket[Witness]:
    """A bracket for any values, with its pair made one of tables that have the published values, or without a pair.

    Notes
    -----
    The values only rule pairs out, so that the bound holds, and it is attained when a table with these values allows the move. Which tables are positive
    neighbours depends on what else they hold: of these only Markov moves are kept, which always are
    (``docs/explanation/proofs/published-values.md``, section 5).
    """
    policy = problem.policy
    for change in _alike(policy, found.witness.change) if found.witness is not None else ():
        if policy.strength == "positive" and (len(change) > 4 or max(map(abs, change.values())) > 1):
            continue
        table = _published_table(policy, change, problem.effort)
        if table is not None:
            # the same move with other labels may change another query by another amount
            lower = problem.query.change_norm(change, problem.norm)
            step = "the pair of data sets has the published values"
            return replace(found, lower=lower, witness=Witness.of_change(change, table)).after(step)
    return found.unattained()


def _alike(policy: Policy, change: dict[int, int]) -> Iterator[dict[int, int]]:
    """A move, and the same one between the labels with the largest published counts, which is minimal as well where whole margins are public."""
    yield change
    domain, margins = policy.domain, _published_margins(policy)
    if margins is None or not isinstance(domain, Domain):
        return
    shape = domain.shape
    order = [list(range(size)) for size in shape]
    for axes, counts in margins:
        for at, axis in enumerate(axes):
            sums = counts.sum(axis=tuple(other for other in range(len(axes)) if other != at)).tolist()
            order[axis].sort(key=lambda code: -sums[code])
    yield {
        encode([labels[code] for labels, code in zip(order, decode(cell, shape), strict=True)], shape): amount
        for cell, amount in change.items()
    }


def _published_margins(policy: Policy) -> list[tuple[Codes, Any]] | None:
    """Axes and values of the published margins, those inside others left out; None where other facts are public as well."""
    domain = policy.domain
    if not isinstance(domain, Domain):
        return None
    found: dict[frozenset[int], tuple[Codes, Any]] = {}
    for fact in policy.system.constraints:
        if not isinstance(fact, (Cuboid, Total)):
            return None
        values = fact.values(domain)
        if values is not None:
            axes = fact.axes(domain) if isinstance(fact, Cuboid) else ()
            shape = [domain.shape[axis] for axis in axes]
            found[frozenset(axes)] = axes, np.array(values, dtype=object).reshape(shape)
    return [margin for axes, margin in found.items() if not any(axes < other for other in found)]


def _published_table(policy: Policy, change: dict[int, int], effort: Effort) -> dict[int, int] | None:
    """A table with the published values that allows a move, when one is found: made directly for one or two whole margins, else searched."""
    from policygraph.moves.values.longest import occurs
    from policygraph.moves.values.margins import table_with_margins

    domain = policy.domain
    margins = _published_margins(policy)
    if isinstance(domain, Domain) and margins is not None and len(margins) <= 2:
        if sum(values.size for _, values in margins) > VALUE_ROWS:
            return None
        shape = domain.shape
        contained = {tuple(decode(cell, shape)): -amount for cell, amount in change.items() if amount < 0}
        made = table_with_margins(len(shape), margins, contained)
        return None if made is None else {encode(codes, shape): count for codes, count in made.items()}
    if domain.size > (VALUE_PAIRS if domain.capacity == 1 else VALUE_CELLS):
        return None
    keep = np.setdiff1d(np.arange(domain.size, dtype=np.int64), policy.system.zeros)
    rows, values = policy.system.full_rows()
    moved = np.zeros(domain.size, dtype=np.int64)
    moved[list(change)] = list(change.values())
    work = effort.at_most(TRIED)
    found = occurs(rows[:, keep].toarray(), values, moved[keep], domain.capacity, effort=work)
    if found.table is None:
        return None
    return {int(cell): int(count) for cell, count in zip(keep, found.table, strict=True) if count}


def _many_cycles(policy: Policy) -> bool:
    """Whether two published margins leave more minimal moves than are ever listed: every cycle through their cells that are not empty is one."""
    margins = _published_margins(policy)
    if margins is None or len(margins) != 2 or len(policy.system.needed) != 2:
        return False
    (first, left), (second, right) = margins
    sides = []
    for axes, counts in ((first, left), (second, right)):
        own = tuple(at for at, axis in enumerate(axes) if not (axis in first and axis in second))
        sides.append(np.atleast_1d((counts > 0).sum(axis=own)).ravel().tolist())
    return any(_cycles(rows, columns) > POSITIVE_MOVES for rows, columns in zip(*sides, strict=True))


def _cycles(rows: int, columns: int) -> int:
    """Number of simple cycles of a complete bipartite graph, the longest ones left out where there are many."""
    lengths = range(2, min(rows, columns, CYCLE) + 1)
    return sum(comb(rows, k) * comb(columns, k) * factorial(k) * factorial(k - 1) // 2 for k in lengths)


def _listed_with_values(problem: Problem) -> Bracket[Witness] | None:
    """The moves that the values leave, from the longest down; None where they are too many to list."""
    from policygraph.moves.values.longest import listed_directly, longest_with_values

    query, policy, norm = problem.query, problem.policy, problem.norm
    few = policy.strength == "markov" or listed_directly(policy.domain.size, policy.at_most_records)
    if not few and _many_cycles(policy):
        return None
    keep = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    rows, values = policy.system.full_rows()
    asked = None
    if not query.is_identity:
        asked = np.asarray(query.columns(keep).toarray(), dtype=np.int64)
        asked = asked[np.any(asked, axis=1)]
    matrices = _Matrices(
        rows[:, keep].toarray(), asked, tuple(keep.tolist()), policy.domain.capacity, None, ()
    )
    try:
        bracket = longest_with_values(
            matrices.matrix,
            values,
            query=asked,
            norm=norm,
            capacity=matrices.capacity,
            strength="worst" if policy.strength == "worst-case" else policy.strength,
            at_most_records=policy.at_most_records,
            effort=problem.effort,
        )
    except RefusedError:
        return None
    change = _change_of(matrices, bracket.witness)
    return Bracket(
        int(bracket.upper),
        int(bracket.lower),
        Witness.of_change(change[1], change[0]) if change and bracket.lower else None,
        bracket.method,
        bracket.reason,
        ("moves that no table with the published values can make were left out",),
    )


def single_records(problem: Problem) -> Bracket[Witness] | None:
    """Without public sums a record may appear or vanish by itself, and that is minimal."""
    query, policy, norm = problem.query, problem.policy, problem.norm
    if policy.system.needed:
        return None
    size, zeros = policy.domain.size, policy.system.zeros
    reason = "without public sums the minimal moves add or remove one record, which changes the answer by one column"
    if isinstance(query, (CuboidQuery, BlockQuery, MixingQuery)) or query.is_identity:
        taken = set(zeros.tolist())
        cell = next(c for c in range(size) if c not in taken)
        value = int(query.column_norms(np.array([cell]), norm)[0])
        return Bracket(value, value, Witness.of_change({cell: 1}), "closed form", reason)
    if isinstance(query, ProductQuery):
        value, cell = query.longest_column(norm)
        if cell not in set(zeros.tolist()):
            return Bracket(value, value, Witness.of_change({cell: 1}), "closed form", reason)
        if size > ENTRIES:
            # The longest column is that of a structural zero: a bound for the others.
            return Bracket(value, 0, None, "bound by the longest column", reason)
    value, best = -1, 0
    for start in range(0, size, CELLS_AT_ONCE):
        cells = np.setdiff1d(np.arange(start, min(start + CELLS_AT_ONCE, size), dtype=np.int64), zeros)
        if len(cells):
            norms = query.column_norms(cells, norm)
            at = int(np.argmax(norms))
            if int(norms[at]) > value:
                value, best = int(norms[at]), int(cells[at])
    return Bracket(value, value, Witness.of_change({best: 1}) if value else None, "largest column", reason)


def times_widest_column(problem: Problem) -> Bracket[Witness] | None:
    """Any query changes by at most the length of the longest move times its longest column."""
    query, norm = problem.query, problem.norm
    if query.is_identity or "bound" in problem.notes:
        return None
    every_cell = problem.but(query=identity(problem.policy.domain), norm="l1")
    for rung in (whole_margins, partial_margins, public_degrees):
        cells = rung(every_cell) or every_cell.notes.get("bound")
        if cells is not None:
            break
    wide = _widest_column(query, problem.policy, norm)
    if cells is None or wide is None:
        return None
    lower = query.change_norm(cells.witness.change, norm) if cells.witness is not None else 0
    upper = cells.upper * wide if norm == "l1" else cells.upper * cells.upper * wide
    return problem.settle(
        Bracket(
            max(upper, lower),
            lower,
            cells.witness if lower else None,
            "bound by the longest move and the widest column",
            f"{cells.reason}; each single change moves the answer by one column, whose norm is at most the largest one",
            cells.steps,
        )
    )


def search(problem: Problem) -> Bracket[Witness] | None:
    """Longest minimal move of the policy's strength by search, bracketed by what is known already."""
    bound, reduced = proved_bound(problem), reduced_of(problem)
    if problem.policy.strength == "positive" and reduced is not None and len(reduced.known) == 2:
        # Positive moves are found among all minimal ones, which are listed up to a number that these exceed.
        sides = (prod(reduced.shape[axis] for axis in names) for names in reduced.known)
        if _cycles(*sides) > POSITIVE_MOVES:
            return None
    matrices = _matrices(problem.query, problem.policy, reduced)
    if matrices is None:
        return None
    try:
        found = _search(matrices, problem.policy, problem.norm, problem.effort)
    except RefusedError as refusal:
        problem.notes["refusal"] = refusal
        return None
    if found is None:
        return None
    if bound is None or bound.upper >= found.upper:
        return found if bound is None or bound.lower <= found.lower else _join(found, bound)
    return _join(bound, found)


def _join(upper: Bracket[Witness], lower: Bracket[Witness]) -> Bracket[Witness]:
    """A bracket with the upper bound of one and the witness of the other, if that is better."""
    if lower.lower < upper.lower:
        lower = upper
    return replace(
        upper, lower=lower.lower, witness=lower.witness, steps=(*upper.steps, f"witness by: {lower.method}")
    )


def proved_bound(problem: Problem) -> Bracket[Witness] | None:
    """The better of what closed forms say of all moves and the number of records times the longest column."""
    query, policy, norm = problem.query, problem.policy, problem.norm
    bounds: list[Bracket[Witness]] = []
    best: Bracket[Witness] | None = problem.notes.get("bound")
    if best is not None:
        weaker = f"{best.reason}; weaker neighbours are among these"
        bounds.append(best if problem.whole else replace(best.unattained(), reason=weaker))
    size = None if policy.at_most_records is None else 2 * policy.at_most_records
    if policy.strength == "markov":
        size = 4 if size is None else min(4, size)
    reduced = reduced_of(problem)
    wide = reduced.value_of(norm, 1) if reduced is not None else _widest_column(query, policy, norm)
    if size is not None and wide is not None:
        # cells that hold at most one record change by one, and the squares of such changes add up to their number
        single = query.is_identity and policy.domain.capacity == 1
        upper = size * wide if norm == "l1" or single else size * size * wide
        bounds.append(
            Bracket(
                upper,
                0,
                None,
                "bound by the number of records",
                f"a move of this strength adds and removes at most {size} records in all, each changing the answer by one column",
            )
        )
    if reduced is None and wide is not None:
        bounds += _by_walks(problem, wide)
    return min(bounds, key=lambda b: b.upper) if bounds else None


def _by_walks(problem: Problem, wide: int) -> list[Bracket[Witness]]:
    """Sums that count each cell twice at most: a minimal move passes each sum twice at most."""
    query, policy, norm = problem.query, problem.policy, problem.norm
    if policy.domain.size > WALK_CELLS:
        return []
    matrix = policy.system.matrix().tocsc()
    matrix.eliminate_zeros()
    keep = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    if not matrix.nnz or int(np.diff(matrix.indptr).max()) > 2:
        return []
    ends, at, data = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
    columns = [
        dict(zip(at[ends[cell] : ends[cell + 1]], data[ends[cell] : ends[cell + 1]], strict=True))
        for cell in keep.tolist()
    ]
    walk = longest_walk(columns)
    if walk is None:
        return []
    length, entry = walk
    if norm == "l1":
        upper = length * wide
    else:
        upper = length * (entry if query.is_identity else length * wide)
    cycle = some_cycle(columns) if problem.whole else {}
    change = {int(keep[cell]): amount for cell, amount in cycle.items()}
    lower = query.change_norm(change, norm) if change else 0
    reason = (
        "each cell is counted by two sums at most, as an edge between them, and a minimal move is one walk along edges that passes each sum "
        + ("once" if entry == 1 else "twice at most")
    )
    witness = Witness.of_change(change) if lower else None
    return [Bracket(max(upper, lower), lower, witness, "bound by walks", reason)]


def refuse(problem: Problem) -> Bracket[Witness] | None:
    """Say that nothing is proved, and what would help."""
    policy, refusal = problem.policy, problem.notes.get("refusal")
    why = refusal or "the reduced problem is too large to search, and no bound for it is proved."
    raise RefusedError(
        f"no proved sensitivity for {policy.domain!r} under {len(policy.constraints)} public facts: {why} "
        "Coarsen an attribute, make fewer facts public, choose strength = 'markov', or set at_most_records.",
        code="sensitivity.refused",
    ) from refusal


def _widest_column(query: Query, policy: Policy, norm: Norm) -> int | None:
    """Norm (squared for l2) of the longest column, when it can be had."""
    if query.is_identity:
        return 1
    size = policy.domain.size
    if isinstance(query, (CuboidQuery, BlockQuery, MixingQuery)):
        return int(query.column_norms(np.zeros(1, dtype=np.int64), norm)[0])
    if isinstance(query, ProductQuery):
        return query.longest_column(norm)[0]
    return int(query.column_norms(np.arange(size, dtype=np.int64), norm).max()) if size <= ENTRIES else None


@dataclass(frozen=True)
class _Matrices:
    """A constraint matrix and a query over some cells, and which cells of the domain they are."""

    matrix: Ints
    query: Ints | None
    cells: tuple[int, ...]
    capacity: int | None
    symmetries: Ints | None
    steps: tuple[str, ...]

    def change(self, move: Any) -> dict[int, int]:
        """A change of cells of the domain."""
        return {self.cells[at]: int(move[at]) for at in np.flatnonzero(np.asarray(move))}


def _matrices(query: Query, policy: Policy, reduced: Reduced | None) -> _Matrices | None:
    """What is searched; None when it is too large to be written out."""
    if reduced is not None:
        records = _few_records(policy)
        small = reduced if records is None else reduced.shrink(records)
        height = sum(int(np.prod([small.shape[a] for a in names], dtype=object)) for names in small.known)
        if height * small.size > ENTRIES:
            return None
        identity = small.asks_cells and small.asked[0][1] == 1
        asks = sum(int(np.prod([small.shape[a] for a in names], dtype=object)) for names, _ in small.asked)
        if not identity and asks * small.size > ENTRIES:
            return None
        cells = tuple(small.lift(cell) for cell in np.ndindex(*small.shape))
        return _Matrices(
            small.matrix(),
            None if identity else small.query_matrix(),
            cells,
            None,
            small.symmetries(),
            small.steps,
        )
    size = policy.domain.size
    if size > ENTRIES or sum(c.n_rows(policy.domain) for c in policy.system.needed) * size > ENTRIES:
        return None
    keep = np.setdiff1d(np.arange(size, dtype=np.int64), policy.system.zeros)
    rows = policy.system.matrix()[:, keep].toarray()
    asked = None
    if not query.is_identity:
        if query.height * len(keep) > ENTRIES:
            return None
        asked = np.asarray(query.columns(keep).toarray(), dtype=np.int64)
        asked = asked[np.any(asked, axis=1)]
    return _Matrices(rows, asked, tuple(keep.tolist()), policy.domain.capacity, None, ())


def _few_records(policy: Policy) -> int | None:
    """Most records that a move of this policy adds or removes, when it is capped."""
    caps = [policy.at_most_records] if policy.at_most_records is not None else []
    if policy.strength == "markov":
        caps.append(4)
    return min(caps) if caps else None


def _search(problem: _Matrices, policy: Policy, norm: Norm, effort: Effort) -> Bracket[Witness] | None:
    from policygraph.moves.strengths import capped, markov, positive

    common: dict[str, Any] = {"query": problem.query, "norm": norm, "capacity": problem.capacity}
    cap = policy.at_most_records
    listed = policy.strength == "positive" or (policy.strength == "worst-case" and cap is None)
    if listed and _different_columns(problem.matrix) > SEARCH_COLUMNS:
        return None
    if policy.strength == "worst-case" and cap is None:
        from policygraph.moves.graver.longest import longest_move

        common["norm"] = "l1" if norm == "l1" else "l2squared"
        bracket: Any = longest_move(problem.matrix, **common, effort=effort, symmetries=problem.symmetries)
        if bracket.upper > USELESS * max(1, bracket.lower):
            return None
    elif policy.strength == "worst-case" and cap is not None:
        bracket = capped.longest_capped(problem.matrix, cap, **common, effort=effort)
    elif policy.strength == "markov" and (cap is None or cap >= 4 or (cap >= 2 and _is_balanced(problem))):
        bracket = markov.longest_markov(problem.matrix, **common, effort=effort)
    else:
        moves, basis = _listed(problem, policy, effort)
        if policy.strength == "positive":
            bracket = positive.longest_positive(problem.matrix, moves, **common, basis=basis, effort=effort)
        else:
            return _longest_of(problem, moves, norm)
    change = _change_of(problem, bracket.witness)
    return Bracket(
        int(bracket.upper),
        int(bracket.lower),
        None if not change else Witness.of_change(change[1], change[0]),
        bracket.method,
        bracket.reason,
        problem.steps,
    )


def _is_balanced(problem: _Matrices) -> bool:
    """Whether every move adds as many records as it removes, so that a Markov move adds at most two, and the search takes the query."""
    from policygraph.moves.strengths.columns import LARGEST_ENTRY, record_total

    entries = problem.query
    if entries is not None and entries.size and max(int(entries.max()), -int(entries.min())) >= LARGEST_ENTRY:
        return False
    return record_total(problem.matrix) is not None


def _different_columns(matrix: Ints) -> int:
    return len({column.tobytes() for column in np.ascontiguousarray(matrix.T)})


def _change_of(problem: _Matrices, witness: Any) -> tuple[dict[int, int] | None, dict[int, int]] | None:
    """Table and move of a witness: a pair, or a move alone."""
    if witness is None:
        return None
    if isinstance(witness, tuple) and len(witness) == 2 and np.ndim(witness[0]) == 1:
        table, move = witness
        return {c: x for c, x in problem.change(table).items() if x}, problem.change(move)
    change = problem.change(witness)
    return (None, change) if change else None


def _listed(problem: _Matrices, policy: Policy, effort: Effort) -> tuple[Ints, Ints | None]:
    """Moves of a strength and cap that are found by listing."""
    from policygraph.moves.graver.basis import graver_basis
    from policygraph.moves.strengths import markov
    from policygraph.moves.strengths.columns import within_cap

    cap = policy.at_most_records
    if policy.strength == "markov":
        found = []
        for move in markov.markov_moves(problem.matrix, problem.capacity):
            found.append(move)
            effort.spend(10)
            if len(found) * len(move) > ENTRIES or effort.done:
                raise RefusedError(
                    f"{len(found):,} Markov moves and more, too many to list with this effort. Allow more effort, drop the cap or "
                    "set it to 4.",
                    code="moves.cap-deadline",
                )
        moves = np.array(found, dtype=np.int64).reshape(len(found), len(problem.cells))
        return within_cap(moves, cap), None
    basis = graver_basis(
        problem.matrix,
        capacity=problem.capacity,
        max_moves=POSITIVE_MOVES,
        effort=effort,
        symmetries=problem.symmetries,
    )
    return within_cap(basis, cap), basis


def _longest_of(problem: _Matrices, moves: Ints, norm: Norm) -> Bracket[Witness]:
    if not len(moves):
        return Bracket(0, 0, None, "enumeration", "there is no move of this strength", problem.steps)
    from policygraph.moves.strengths.columns import lengths

    sizes = lengths(problem.query, moves, norm)
    at = int(np.argmax(sizes))
    value = int(sizes[at])
    return Bracket(
        value,
        value,
        Witness.of_change(problem.change(moves[at])) if value else None,
        "enumeration",
        f"all {len(moves)} moves of this strength were listed",
        problem.steps,
    )
