"""A whole table drawn at random, tables close to the true one more often. Owns :class:`Exponential` and :class:`TableGraph`.

The exponential mechanism over the tables that fit the public facts, closeness counted in neighbour steps. Exact, for few
tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND
from policygraph.errors import ConstraintError, InputError, RefusedError
from policygraph.exact import show
from policygraph.linalg import rank
from policygraph.mechanisms.base import Calibrated, Floats, Ints, Mechanism, Noise
from policygraph.mechanisms.exponential.sweep import sweep_of
from policygraph.mechanisms.exponential.transfer import WORK, ChainNoise, Layers, too_large, transfer_of
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries import identity
from policygraph.model.queries.base import Query
from policygraph.moves.graver.basis import graver_basis
from policygraph.moves.values.presolve import CellBounds, presolve_values
from policygraph.release.release import Basis
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.sensitivity.proofs import current, proved

LIMIT = 1_000
"""Most tables that the mechanism is computed over."""
SORTED = 50_000_000
"""Up to so many numbers the 95 % ranges are computed; beyond, the whole range of an answer is stated."""


@dataclass(frozen=True, eq=False)
class TableNoise(Calibrated):
    """The exponential mechanism over the tables of one policy.

    Attributes
    ----------
    graph
        The tables and their distances.
    rate
        A table at distance d is drawn with probability proportional to exp(-rate * d).
    """

    mechanism: str
    query: Query
    policy: Policy
    loss: Loss
    graph: TableGraph
    rate: Fraction
    sensitivity: Sensitivity | None = None

    runner = "exponential"

    @cached_property
    def answers(self) -> Ints:
        """The answers of every table, one in each row."""
        return np.stack([self.query.answer(table) for table in self.graph.tables])

    @cached_property
    def places(self) -> dict[bytes, int]:
        """Where each table stands in the list."""
        return {table.tobytes(): at for at, table in enumerate(self.graph.tables)}

    def distances_from(self, at: int) -> Layers:
        """The distribution of the distance of the drawn table from one of them."""
        return Layers(self.rate, tuple(self.graph.layers(at)))

    @cached_property
    def errors(self) -> tuple[Floats, Floats]:
        """Root mean square error and 95 % range of each answer, for the table where they are largest."""
        n, height = self.answers.shape
        worst, within = np.zeros(height), np.zeros(height)
        ranged = n * n * height <= SORTED
        for at in range(n):
            weights = np.exp(-float(self.rate) * self.graph.distances[at].astype(np.float64))
            chances = weights / weights.sum()
            off = np.abs(self.answers - self.answers[at]).astype(np.float64)
            worst = np.maximum(worst, chances @ off**2)
            if ranged:
                order = np.argsort(off, axis=0)
                inside = np.cumsum(chances[order], axis=0)
                first = np.minimum((inside < 0.95 + 1e-9).sum(axis=0), n - 1)
                within = np.maximum(within, np.take_along_axis(off, order, axis=0)[first, np.arange(height)])
        if not ranged:
            within = (self.answers.max(axis=0) - self.answers.min(axis=0)).astype(np.float64)
        return np.sqrt(worst), within

    @cached_property
    def noise(self) -> Noise:
        worst, within = self.errors
        return Noise("exponential over tables", self.rate, float(worst.max() ** 2), ceil(float(within.max())))

    def deviation(self, part: int) -> float | Floats:
        return self._of_part(self.errors[0], part)

    def within_95(self, part: int) -> float | Floats:
        return self._of_part(self.errors[1], part)

    @property
    def rests_on(self) -> Basis:
        return "bound"

    def stages(self) -> Sequence[str]:
        if len(self.graph.tables) == 1:
            return ["Only one table fits the published values, so that its answers are public."]
        why = (
            "all pairs of tables are hidden from each other"
            if len(self.graph.tables) > 2 and int(self.graph.distances.max()) == 1
            else "every table has equally many tables at each distance, so that the loss is the rate itself"
            if self.graph.regular
            else "the loss is twice the rate: a neighbour step changes a distance by at most one, and the sum of the weights "
            "by at most the same factor"
        )
        return [
            f"{len(self.graph.tables)} tables fit the published values; neighbour steps lead from each to each other in at "
            f"most {int(self.graph.distances.max())} steps.",
            f"One of them was drawn, with probability proportional to exp(-{show(self.rate)} d) at d steps from the true table, "
            f"for a loss of {self.loss} ({why}).",
            "The released table is a table of counts that fits every public fact; the stated errors are root mean squares for "
            "the table for which they are largest.",
        ]


@dataclass(frozen=True, eq=False)
class SweptNoise(ChainNoise):
    """The exponential mechanism over tables that are too many to list, drawn cell by cell with weights that fall with the differences of counts.

    Attributes
    ----------
    transfer
        The tables.
    rate
        A table whose counts differ by d in all is drawn with probability proportional to exp(-rate * d).
    step
        By how much the counts of neighbours differ in all, with its proof.
    """

    step: Sensitivity = field(kw_only=True)

    @cached_property
    def ranges(self) -> Floats:
        """The most by which each answer can be off."""
        spans = np.array(self.transfer.spans, dtype=np.float64)
        entries = abs(self.query.columns(np.array(self.transfer.cells)))
        return np.asarray(entries.astype(np.float64) @ spans).ravel()

    def stages(self) -> Sequence[str]:
        return [
            f"The tables that fit the published values are too many to list; the counts of neighbours differ by {'exactly' if self.step.exact else 'at most'} {show(self.step.power)} in all.",
            f"One of them was drawn, with probability proportional to exp(-{show(self.rate)} d) where its counts differ from those of the true table by d in all, "
            f"for a loss of {self.loss} (the rate, times twice what a neighbour step changes), first d, then the table cell by cell, with exact numbers of tables.",
            "The released table is a table of counts that fits every public fact; the stated errors are the whole range of an answer, and no estimate.",
        ]


@dataclass(frozen=True)
class Exponential(Mechanism):
    """Draw one of the tables that fit the public facts, with probability falling in neighbour steps from the true one.

    Parameters
    ----------
    limit
        Most tables that are listed. More of them are drawn count by count. For a public number of records alone, with any two values or neighbours on a line secret, and for two
        public margins, one of them of two values, nearness is still counted in neighbour steps. Otherwise it is the sum of the differences of counts, and the states of a sweep over
        the cells must be few: two margins of three and more values, three margins of small tables. What is left is refused.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> facts = [pg.Cuboid("a", equals=[3, 2]), pg.Cuboid("b", equals=[4, 1])]
    >>> policy = pg.Policy(domain, constraints=facts)
    >>> ready = Exponential().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> len(ready.graph.tables), ready.rate
    (2, Fraction(1, 1))
    >>> made = ready.run([2, 1, 2, 0], pg.SeededRng(1))
    >>> int(made.values().sum()), int(made.values().min()) >= 0
    (5, True)

    A policy graph with a public number of records: one person of four values, and any two values are secret.

    >>> person = pg.Domain({"bits": 4})
    >>> bounded = pg.Policy(person, pg.PolicyGraph.full(person), [pg.Total(equals=1)])
    >>> ready = Exponential().calibrate(pg.queries.identity(person), bounded, pg.Epsilon(1))
    >>> len(ready.graph.tables), ready.rate
    (4, Fraction(1, 1))

    Notes
    -----
    With rate r the loss is at most 2 r, so that half the asked epsilon is used as the rate; if every table has equally many
    tables at each distance, the loss is r and all of it is used (``docs/explanation/proofs/exponential-tables.md``).
    """

    limit: int = LIMIT
    name: str = "Exponential"

    all_pairs: ClassVar[bool] = False

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> TableNoise | ChainNoise:
        if not isinstance(loss, Epsilon):
            raise InputError(
                f"the exponential mechanism spends epsilon, not {loss}: expected Epsilon.",
                code="mechanism.loss",
            )
        if sensitivity is not None:
            raise InputError(
                "the exponential mechanism is scaled to distances of tables: expected no sensitivity.",
                code="mechanism.sensitivity",
            )
        query.check_domain(policy.domain)
        try:
            graph = table_graph(policy, self.limit, all_pairs=self.all_pairs)
        except RefusedError as refusal:
            chain = transfer_of(policy) if refusal.code == "exponential.size" and not self.all_pairs else None
            if chain is not None and chain.work <= WORK and not too_large(chain):
                return ChainNoise(self.name, query, policy, loss, chain, loss.value / 2)
            if refusal.code != "exponential.size" or self.all_pairs:
                raise
            swept = self._swept(query, policy, loss)
            if swept is None:
                raise
            return swept
        rate = loss.value if graph.regular else loss.value / 2
        return TableNoise(self.name, query, policy, loss, graph, rate)

    def _swept(self, query: Query, policy: Policy, loss: Epsilon) -> SweptNoise | None:
        """Tables that are drawn cell by cell, nearness measured in counts; None where there are too many states."""
        cells, _, rows, wanted, bounds = _published(policy)
        shape = policy.domain.shape if isinstance(policy.domain, Domain) else (policy.domain.size,)
        sweep = sweep_of(rows, wanted, bounds, cells, shape)
        if sweep is None or too_large(sweep):
            return None
        proof = proved(identity(policy.domain), policy)
        if not proof.power:
            return None
        rate = loss.value / (2 * proof.power)
        return SweptNoise(self.name, query, policy, loss, sweep, rate, step=proof)


@dataclass(frozen=True)
class FreeLunch(Exponential):
    """Free-lunch privacy: every table with the published values is hidden from every other one, neighbour or not.

    Parameters
    ----------
    limit
        Most tables that are listed.

    Examples
    --------
    Three records of two values, so that there are four tables. The true one is drawn with probability e / (3 + e):

    >>> import policygraph as pg
    >>> domain = pg.Domain({"sick": ["no", "yes"]})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Total(equals=3)])
    >>> ready = FreeLunch().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    >>> ready.graph.distances[0].tolist(), ready.rate
    ([0, 1, 1, 1], Fraction(1, 1))

    Notes
    -----
    Definition 2.3 of Kifer and Machanavajjhala (2011). It assumes nothing of how the data came about, and very little can be learnt from it: no k data sets can be told apart
    better than with probability e^epsilon / (k - 1 + e^epsilon), which all k tables attain here.
    """

    name: str = "FreeLunch"

    all_pairs: ClassVar[bool] = True


STEPS = 2_000_000
"""Most partial tables that are looked at while all tables are listed."""
MOVES, LISTING = 200_000, 20 * SECOND
"""Most minimal moves, and most work to list them."""


@dataclass(frozen=True, eq=False)
class TableGraph:
    """The tables with the published values; two of them are joined when they are neighbours.

    Attributes
    ----------
    tables
        One table in each row, over all cells of the domain.
    distances
        Steps of a shortest path between any two of them.
    """

    tables: Ints
    distances: npt.NDArray[np.int16]

    @property
    def regular(self) -> bool:
        """Whether every table has the same number of tables at each distance."""
        rows = np.sort(self.distances, axis=1)
        return bool(np.all(rows == rows[0]))

    def layers(self, at: int) -> list[int]:
        """Number of tables at distance 0, 1, 2, ... from one of them."""
        counts: list[int] = np.bincount(self.distances[at]).tolist()
        return counts


def table_graph(policy: Policy, limit: int, *, all_pairs: bool = False) -> TableGraph:
    """List the tables of a policy with published values and the distances between them.

    Parameters
    ----------
    policy
        Induced neighbours with all values published; or a policy graph and the number of records, ``Total(equals=...)``.
    limit
        Most tables.
    all_pairs
        Take every two tables for neighbours.

    Raises
    ------
    InputError
        When the policy is not one of induced neighbours with all values published.
    RefusedError
        When there are too many tables or moves, or when neighbour steps do not connect the tables.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 2})
    >>> facts = [pg.Cuboid("a", equals=[2, 1]), pg.Cuboid("b", equals=[2, 1])]
    >>> found = table_graph(pg.Policy(domain, constraints=facts), 10)
    >>> found.tables.tolist(), found.distances.tolist()
    ([[1, 1, 1, 0], [2, 0, 0, 1]], [[0, 1], [1, 0]])
    """
    moved = _moves_along_edges(policy)
    if not moved and (policy.definition != "induced" or policy.strength == "positive"):
        raise InputError(
            f"{policy.definition} neighbours of strength {policy.strength!r}: expected neighbours that public facts "
            "induce, of strength 'worst-case' or 'markov'; or a policy graph without bottom and the number of records as the only fact, Total(equals=...).",
            code="exponential.policy",
        )
    cells, matrix, published, wanted, bounds = _published(policy)
    small = list_tables(published, wanted, bounds, limit)
    tables = np.zeros((len(small), policy.domain.size), dtype=np.int64)
    tables[:, cells] = small
    if all_pairs:
        return TableGraph(tables, np.int16(1) - np.eye(len(tables), dtype=np.int16))
    distances = _distances(_along_edges(policy, tables) if moved else _joined(policy, matrix, small))
    if moved and np.any(distances < 0):
        raise RefusedError(
            f"the policy graph does not connect all cells, so that the {len(small)} tables fall apart, and the mechanism would disclose how many records are in each part. "
            "Choose a connected policy graph.",
            code="exponential.disconnected",
        )
    if np.any(distances < 0):
        raise RefusedError(
            f"neighbour steps of strength {policy.strength!r} do not connect the {len(small)} tables with these values. "
            "Choose strength 'worst-case' without a cap on records, whose steps always do.",
            code="exponential.disconnected",
        )
    return TableGraph(tables, distances)


def _published(policy: Policy) -> tuple[Ints, Ints, Ints, list[int], CellBounds]:
    """The cells that can hold records, the public sums over them, those with published values, the values, and what each cell lies between."""
    cells = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), policy.system.zeros)
    rows, values = policy.system.full_rows()
    matrix = np.asarray(rows[:, cells].toarray(), dtype=np.int64).reshape(-1, len(cells))
    known = [i for i, value in enumerate(values) if value is not None]
    if not known or rank(matrix[known]) != rank(matrix):
        raise InputError(
            "some public facts have no published values: expected equals=... for each of them, so that the tables that "
            "fit are known before any data is touched.",
            code="exponential.values",
        )
    bounds = presolve_values(matrix, values, policy.domain.capacity)
    return cells, matrix, matrix[known], [int(values[i] or 0) for i in known], bounds


def _moves_along_edges(policy: Policy) -> bool:
    """Whether neighbours differ in one record that moves along an edge: a graph without bottom, and nothing public but the number of records."""
    if policy.graph is None or policy.graph.bottom != "none" or not policy.constraints:
        return False
    return all(isinstance(f, Total) or (isinstance(f, Cuboid) and not f.names) for f in policy.constraints)


def _along_edges(policy: Policy, tables: Ints) -> npt.NDArray[np.bool_]:
    """Which pairs of tables differ in one record along an edge of the policy graph."""
    joined = np.zeros((len(tables), len(tables)), dtype=bool)
    places = {table.tobytes(): at for at, table in enumerate(tables)}
    if policy.graph is None or policy.graph.n_edges * len(tables) > STEPS:
        raise RefusedError(
            f"{len(tables):,} tables and a policy graph of that many edges are too many to join: expected at most {STEPS:,} pairs of both. Coarsen the domain.",
            code="exponential.size",
        )
    for u, v in policy.graph.edges():
        for at in np.flatnonzero(tables[:, u]).tolist():
            other = tables[at].copy()
            other[u] -= 1
            other[v] += 1
            to = places[other.tobytes()]
            joined[at, to] = joined[to, at] = True
    return joined


def list_tables(rows: Ints, values: list[int], bounds: CellBounds, limit: int) -> Ints:
    """List all tables of counts with given sums, within bounds of the cells, in lexicographic order.

    Examples
    --------
    >>> rows = np.array([[1, 1, 1]])
    >>> list_tables(rows, [1], presolve_values(rows, [1]), 10).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]

    Raises
    ------
    RefusedError
        When there are more than ``limit``, or infinitely many.
    ConstraintError
        When there is none.
    """
    highs: list[int] = []
    for cell, high in enumerate(bounds.upper):
        if high is None:
            raise RefusedError(
                f"the published values set no limit to cell {cell}, so that infinitely many tables fit. Publish a total.",
                code="exponential.infinite",
            )
        highs.append(high)
    lows = np.array(bounds.lower, dtype=np.int64)
    ends = np.array(highs, dtype=np.int64)
    small, large = np.minimum(rows * lows, rows * ends), np.maximum(rows * lows, rows * ends)
    # What the cells from a position on can still add to each sum.
    rest_low = np.concatenate(
        [np.cumsum(small[:, ::-1], axis=1)[:, ::-1], np.zeros((len(rows), 1), np.int64)], 1
    )
    rest_high = np.concatenate(
        [np.cumsum(large[:, ::-1], axis=1)[:, ::-1], np.zeros((len(rows), 1), np.int64)], 1
    )
    found: list[list[int]] = []
    steps = 0

    def grow(at: int, left: Ints, taken: list[int]) -> Iterator[bool]:
        nonlocal steps
        if at == rows.shape[1]:
            found.append(list(taken))
            return
        for value in range(int(lows[at]), int(ends[at]) + 1):
            steps += 1
            after = left - rows[:, at] * value
            if np.all(after >= rest_low[:, at + 1]) and np.all(after <= rest_high[:, at + 1]):
                taken.append(value)
                yield from grow(at + 1, after, taken)
                taken.pop()
            if len(found) > limit or steps > STEPS:
                yield True

    if next(grow(0, np.array(values, dtype=np.int64), []), False):
        raise RefusedError(
            f"more than {limit:,} tables fit the published values (or they are too hard to list): the exponential mechanism is "
            "computed exactly for fewer. Use Kernel, Fitted or Laplace, or coarsen the domain.",
            code="exponential.size",
            limit=limit,
        )
    if not found:
        raise ConstraintError(
            "no table has the published values: check the numbers.", code="values.infeasible", values=values
        )
    return np.array(found, dtype=np.int64).reshape(len(found), rows.shape[1])


def _joined(policy: Policy, matrix: Ints, tables: Ints) -> npt.NDArray[np.bool_]:
    """Which pairs of tables are neighbours: their difference is a minimal move of the policy's strength."""
    varies = np.flatnonzero(np.any(tables != tables[0], axis=0))
    joined = np.zeros((len(tables), len(tables)), dtype=bool)
    if not varies.size:
        return joined
    basis = graver_basis(
        matrix[:, varies], capacity=policy.domain.capacity, max_moves=MOVES, effort=current().within(LISTING)
    )
    if policy.strength == "markov":
        basis = basis[(np.count_nonzero(basis, axis=1) <= 4) & (np.abs(basis).max(axis=1, initial=0) <= 1)]
    cap = policy.at_most_records
    if cap is not None:
        sizes = np.maximum(np.maximum(basis, 0).sum(axis=1), np.maximum(-basis, 0).sum(axis=1))
        basis = basis[sizes <= cap]
    moves = {row.tobytes() for row in np.concatenate([basis, -basis])}
    inside = np.ascontiguousarray(tables[:, varies])
    for at, table in enumerate(inside):
        for other, change in enumerate(inside[:at] - table):
            if change.tobytes() in moves:
                joined[at, other] = joined[other, at] = True
    return joined


def _distances(joined: npt.NDArray[np.bool_]) -> npt.NDArray[np.int16]:
    """Breadth-first search from every table; -1 where there is no path."""
    n = len(joined)
    out = np.full((n, n), -1, dtype=np.int16)
    for start in range(n):
        front = np.array([start])
        out[start, start], step = 0, 0
        while front.size:
            step += 1
            front = np.flatnonzero(joined[front].any(axis=0) & (out[start] < 0))
            out[start, front] = step
    return out
