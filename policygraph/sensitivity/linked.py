"""How much everything of one row, with the rows of another table that belong to it, can change a query. Owns :func:`of_linked`.

The theorems are in ``docs/explanation/proofs/linked-tables.md``. A unit is a row of the first table in a cell with s rows of the second, and norms are convex, so that
the worst unit has all of these in one cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import Loss
from policygraph.model.queries.base import Norm, Query
from policygraph.model.queries.linked import LinkedQuery
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.moves.bracket import Witness
from policygraph.sensitivity.certificate import Sensitivity

__all__ = ["member_loss", "member_words", "of_linked", "of_member"]

WORK = 20_000_000
"""Most entries that are looked at to compare units one by one; beyond it a bound is given."""
TRIED = 24
"""Most units that are tried as a part of an exchange, where not all are."""
PAGE = "docs/explanation/proofs/linked-tables.md"
METHOD = "linked tables, all rows of a unit in one cell"


@dataclass(frozen=True)
class _Kind:
    """A unit: its cell of the first table, and so many rows in one cell of the second."""

    outer: int
    inner: int
    many: int

    def add(self, table: dict[int, int], times: int) -> None:
        table[self.outer] = table.get(self.outer, 0) + times
        if self.many:
            table[self.inner] = table.get(self.inner, 0) + times * self.many


@dataclass(frozen=True)
class _Columns:
    """What a query answers to single rows of each table, without the answers that the totals determine."""

    tables: Any
    outer: Any
    inner: Any
    norm: Norm

    @property
    def apart(self) -> bool:
        """Whether no answer counts rows of both tables."""
        return not np.intersect1d(self.outer.indices, self.inner.indices).size

    @property
    def positive(self) -> bool:
        return all(not each.nnz or bool(each.data.min() >= 0) for each in (self.outer, self.inner))

    def sizes(self, matrix: Any) -> list[int]:
        """Norms (squared for l2) of the columns, as Python integers."""
        out = []
        for at in range(matrix.shape[1]):
            entries = matrix.data[matrix.indptr[at] : matrix.indptr[at + 1]].tolist()
            out.append(sum(abs(x) if self.norm == "l1" else x * x for x in entries))
        return out

    def of(self, kind: _Kind) -> Any:
        """The answers to a unit, as integers of any size."""
        out: dict[int, int] = {}
        for matrix, at, times in (
            (self.outer, kind.outer, 1),
            (self.inner, kind.inner - self.tables.rows, kind.many),
        ):
            part = slice(matrix.indptr[at], matrix.indptr[at + 1])
            for row, entry in zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True):
                out[row] = out.get(row, 0) + times * entry
        return out


def _size(answers: dict[int, int], norm: Norm) -> int:
    return sum(abs(x) if norm == "l1" else x * x for x in answers.values())


def of_linked(query: Query, policy: LinkedUnit, norm: Norm) -> Sensitivity:
    """The sensitivity for a unit of linked tables.

    Raises
    ------
    RefusedError
        For values of records, and for numbers that are not linear in the counts.
    """
    if isinstance(query, LinkedQuery) and query.tables != policy.tables:
        raise InputError(
            f"{query!r} is of other tables than the policy, or of the same with their attributes in another order: expected a query of {policy.tables!r}.",
            code="linked.other",
        )
    if isinstance(query, NonlinearQuery) or query.needs_values:
        raise RefusedError(
            f"{query!r} under linked tables: nothing is proved about values of rows, or about what is not linear in counts. Ask for counts.",
            code="linked.query",
        )
    columns = _columns(query, policy, norm)
    kinds, upper, proved = _best_units(columns)
    if not policy.totals:
        before: dict[int, int] = {}
        after: dict[int, int] = {}
        kinds[0].add(after, 1)
        found, why = (
            (before, after),
            f"a unit appears, with all of its {policy.tables.child} in one cell, since norms are convex",
        )
    elif policy.tables.child not in policy.known:
        upper, found, why = _exchange(columns, kinds, upper, proved)
    else:
        upper, found, why = _many(columns, kinds, policy)
    shown = _with_totals(policy, *found)
    witness = None if shown is None else Witness.of_tables(*shown)
    lower = 0 if witness is None or not witness.change else query.change_norm(witness.change, norm)
    unit = query.unit if norm == "l1" else query.unit**2
    return Sensitivity(
        power=Fraction(upper) * unit,
        norm=norm,
        kind="exact" if lower == upper else "upper",
        lower_power=Fraction(lower) * unit,
        witness=witness if lower else None,
        method=METHOD,
        reason=f"{why} ({PAGE})",
        policy=policy,
        query=query,
        computed=True,
    )


def _columns(query: Query, policy: LinkedUnit, norm: Norm) -> _Columns:
    tables = policy.tables
    whole = query.columns(np.arange(tables.domain.size, dtype=np.int64)).tocsr()
    whole.sum_duplicates()
    whole.eliminate_zeros()
    kept = [at for at in range(whole.shape[0]) if not _determined(whole, at, policy)]
    whole = whole[kept].tocsc()
    return _Columns(tables, whole[:, : tables.rows].tocsc(), whole[:, tables.rows :].tocsc(), norm)


def _determined(whole: Any, at: int, policy: LinkedUnit) -> bool:
    """Whether the public totals determine an answer: each table, or the numbers that its rows say, in full."""
    tables = policy.tables
    part = slice(whole.indptr[at], whole.indptr[at + 1])
    cells, entries = whole.indices[part], whole.data[part]
    outer = cells < tables.rows
    inner = entries[~outer]
    if len(inner) and not (
        tables.child in policy.known
        and len(inner) == tables.domain.size - tables.rows
        and inner.min() == inner.max()
    ):
        return False
    mine = np.zeros(tables.rows, dtype=np.int64)
    mine[cells[outer]] = entries[outer]
    if not mine.any():
        return True
    if tables.parent in policy.known and mine.min() == mine.max():
        return True
    said = mine.reshape(-1, tables.at_most + 1)
    return tables.child in policy.known and bool(
        np.all(said[:, 0] == 0)
        and said.min(axis=0)[1] == said.max(axis=0)[1]
        and np.array_equal(said, said[:, 1:2] * np.arange(tables.at_most + 1))
    )


def _best_units(columns: _Columns) -> tuple[list[_Kind], int, bool]:
    """Units by what they change, largest first; the most that one changes; and whether these are all units whose rows are in one cell each."""
    tables = columns.tables
    outer, inner = columns.sizes(columns.outer), columns.sizes(columns.inner)
    own, step = tables.of_child.size, tables.at_most + 1
    power = 1 if columns.norm == "l1" else 2
    count = tables.of_parent.size * (1 + tables.at_most * own)
    height = columns.outer.shape[0]
    every = count * max(1, height) <= WORK and not columns.apart
    found: list[tuple[int, _Kind]] = []
    upper = 0
    for group in range(tables.of_parent.size):
        mine = inner[group * own : (group + 1) * own]
        best = max(range(own), key=mine.__getitem__)
        for many in range(step):
            cell = group * step + many
            choices = range(own) if every and many else (best,)
            for at in choices:
                kind = _Kind(cell, int(tables.cell_of_child(group, at)), many)
                if columns.apart:
                    size = bound = outer[cell] + many**power * mine[at]
                else:
                    size = _size(columns.of(kind), columns.norm)
                    bound = size if every else _together(outer[cell], mine[at], many, columns.norm)
                upper = max(upper, bound)
                found.append((size, kind))
    found.sort(key=lambda each: -each[0])
    return [kind for _, kind in found], upper, every or columns.apart


def _together(outer: int, inner: int, many: int, norm: Norm) -> int:
    """A bound for one row beside so many of the other table: the triangle inequality, or that of Cauchy and Schwarz."""
    return outer + many * inner if norm == "l1" else (many + 1) * (outer + many * inner)


def _exchange(
    columns: _Columns, kinds: list[_Kind], upper: int, proved: bool
) -> tuple[int, tuple[dict[int, int], dict[int, int]], str]:
    """One unit in the place of another, where their number is public."""
    factor = 2 if columns.norm == "l1" or columns.positive else 4
    upper, why = (
        factor * upper,
        "one unit is in the place of another, and neither changes more than one that appears",
    )
    tables, height = columns.tables, columns.outer.shape[0]
    everything = tables.of_parent.size * (1 + tables.at_most * tables.of_child.size)
    every = everything**2 * max(1, height) <= WORK
    if every:
        own, step = tables.of_child.size, tables.at_most + 1
        kinds = [
            _Kind(group * step + many, int(tables.cell_of_child(group, at)), many)
            for group in range(tables.of_parent.size)
            for many in range(step)
            for at in (range(own) if many else (0,))
        ]
    tried = kinds if every else [*kinds[:TRIED], *_spread(kinds, tables)]
    answers = [columns.of(kind) for kind in tried]
    best, found = 0, (kinds[0], kinds[0])
    for one, before in enumerate(answers):
        for two in range(one):
            change = dict(answers[two])
            for row, x in before.items():
                change[row] = change.get(row, 0) - x
            size = _size(change, columns.norm)
            if size > best:
                best, found = size, (tried[one], tried[two])
    if every:
        upper, why = (
            best,
            "all pairs of units with all of their rows in one cell were compared, and norms are convex",
        )
    gone: dict[int, int] = {}
    come: dict[int, int] = {}
    found[0].add(gone, 1)
    found[1].add(come, 1)
    return upper, (gone, come), why


def _spread(kinds: list[_Kind], tables: Any) -> list[_Kind]:
    """The largest units in different cells of the first table, and of different sizes."""
    seen: dict[int, _Kind] = {}
    for kind in kinds:
        seen.setdefault(kind.outer // (tables.at_most + 1), kind)
    return list(seen.values())[:TRIED]


def _many(
    columns: _Columns, kinds: list[_Kind], policy: LinkedUnit
) -> tuple[int, tuple[dict[int, int], dict[int, int]], str]:
    """An exchange of several units that keeps the number of rows of the second table, and perhaps of both (linked-tables.md, Theorem 3)."""
    m, both = policy.tables.at_most, policy.tables.parent in policy.known
    units = 2 * m if both else max(2, 2 * m - 1)
    rows = max(m, m * (m - 1))
    outer = max(columns.sizes(columns.outer), default=0)
    inner = max(columns.sizes(columns.inner), default=0)
    if columns.norm == "l1":
        upper = units * outer + 2 * rows * inner
    elif columns.positive and columns.apart:
        squares = 2 * m * m if both else max(2, m * m + (m - 1) ** 2)
        upper = squares * outer + 2 * rows * rows * inner
    else:
        upper = 2 * units * units * outer + 8 * rows * rows * inner
    # The longest exchanges: m units of m - 1 rows against m - 1 units of m, and one of none where the number of units is public.
    none = [(0, 1)] if both else []
    plans: list[list[list[tuple[int, int]]]] = [
        [[(m, 1)], [(m, 1)]],
        [[(m, m - 1), *none], [(m - 1, m)]],
    ]
    best: tuple[int, dict[int, int], dict[int, int]] = (-1, {}, {})
    for plan in plans if m > 1 else plans[:1]:
        sizes = {many for side in plan for many, _ in side}
        options = {many: _of_size(kinds, columns.tables, many) for many in sizes}
        sides: list[list[list[tuple[_Kind, int]]]] = []
        for side in plan:
            choices = max((len(options[many]) for many, _ in side), default=0)
            sides.append(
                [[(options[many][at % len(options[many])], n) for many, n in side] for at in range(choices)]
            )
        for one in sides[0]:
            for two in sides[1]:
                gone: dict[int, int] = {}
                come: dict[int, int] = {}
                change: dict[int, int] = {}
                for table, chosen, sign in ((gone, one, -1), (come, two, 1)):
                    for kind, n in chosen:
                        kind.add(table, n)
                        for row, x in columns.of(kind).items():
                            change[row] = change.get(row, 0) + sign * n * x
                size = _size(change, columns.norm)
                if size > best[0]:
                    best = size, gone, come
    known = f"of {policy.tables.parent} and of {policy.tables.child}" if both else f"of {policy.tables.child}"
    why = f"a minimal exchange that keeps the number {known} has at most {units} units and {2 * rows} of their rows"
    return upper, (best[1], best[2]), why


def _of_size(kinds: list[_Kind], tables: Any, many: int) -> list[_Kind]:
    """A few units with so many rows, in different cells, the largest first."""
    seen: dict[tuple[int, int], _Kind] = {}
    for kind in kinds:
        if kind.many == many:
            seen.setdefault((kind.outer, 0), kind)
            if len(seen) == TRIED:
                break
    return list(seen.values())


def _with_totals(
    policy: LinkedUnit, before: dict[int, int], after: dict[int, int]
) -> tuple[dict[int, int], dict[int, int]] | None:
    """The pair beside as many other units as the public totals ask for; None where that cannot be."""
    if not policy.totals:
        return before, after
    tables, known = policy.tables, dict(policy.totals)
    units = sum(n for cell, n in before.items() if cell < tables.rows)
    rows = sum(n for cell, n in before.items() if cell >= tables.rows)
    more = known[tables.parent] - units if tables.parent in known else None
    inner = known[tables.child] - rows if tables.child in known else 0
    if more is None:
        more = -(-inner // tables.at_most)
    if more < 0 or inner < 0 or inner > more * tables.at_most:
        return None
    if more:
        each, rest = divmod(inner, more)
        for table in (before, after):
            for many, n in ((each + 1, rest), (each, more - rest)):
                if n:
                    _Kind(many, tables.rows, many).add(table, n)
    return before, after


def of_member(query: Query, policy: LinkedUnit, norm: Norm) -> Fraction:
    """The most that one row of the second table changes a query (squared for l2): it comes or goes, or another takes its place beyond the bound.

    Examples
    --------
    >>> import policygraph as pg
    >>> homes = pg.LinkedTables({
    ...     "dwellings": {"key": "id", "attributes": {"area": 2}},
    ...     "persons": {"in": "dwellings", "foreign_key": "dwelling", "at_most": 3, "attributes": {"age": 3}},
    ... })
    >>> query = pg.queries.linked(homes, [("dwellings", ["persons"]), ("persons", ["area", "age"])])
    >>> int(of_member(query, LinkedUnit(homes), "l1")), int(pg.sensitivity(query, LinkedUnit(homes)).value)
    (3, 4)
    """
    tables = policy.tables
    own, step = tables.of_child.size, tables.at_most + 1
    inner = np.arange(tables.rows, tables.domain.size, dtype=np.int64)
    sizes = query.column_norms(inner, norm).tolist()
    # A row comes: its unit says one more. Bounds by the two parts, which are exact where no answer counts rows of both tables.
    here = np.arange(tables.rows, dtype=np.int64).reshape(-1, step)
    moved = (
        query.pair_norms(here[:, 1:].ravel(), here[:, :-1].ravel(), norm)
        .reshape(-1, tables.at_most)
        .max(axis=1)
    )
    whole = query.columns(np.arange(tables.domain.size, dtype=np.int64)).tocsc()
    apart = not np.intersect1d(whole[:, : tables.rows].indices, whole[:, tables.rows :].indices).size
    positive = not whole.nnz or bool(whole.data.min() >= 0)
    most = 0
    for group in range(tables.of_parent.size):
        mine = max(sizes[group * own : (group + 1) * own])
        comes = int(moved[group]) + mine
        swapped = 2 * mine if norm == "l1" or positive else 4 * mine
        most = max(most, comes if norm == "l1" or apart else 2 * comes, swapped if own > 1 else 0)
    return Fraction(most) * (query.unit if norm == "l1" else query.unit**2)


def member_loss(certificate: Sensitivity, loss: Loss) -> Loss | None:
    """What a single row of the second table loses where a unit loses so much, by noise that the certificate scales; None where totals couple units.

    Notes
    -----
    Epsilon is in proportion to the L1 norm of a change, rho to the square of its L2 norm, so that both are the share of the powers. It can be more than that of the unit: a unit appears or vanishes, while one that has another row
    than before is a unit in the place of another, which is two steps.
    """
    policy = certificate.policy
    if not isinstance(policy, LinkedUnit) or policy.totals or not certificate.power:
        return None
    share = of_member(certificate.query, policy, certificate.norm) / certificate.power
    return type(loss)(loss.value * share) if share else None


def member_words(certificate: Sensitivity, loss: Loss) -> str | None:
    """The same in a sentence."""
    found = member_loss(certificate, loss)
    if found is None:
        return None
    tables = certificate.policy.tables  # type: ignore[union-attr]
    return f"Where everything of one row of {tables.parent} is hidden at {loss}, a single one of the {tables.child} is hidden at {found}: it comes, goes or changes, and the others of its row of {tables.parent} stay."
