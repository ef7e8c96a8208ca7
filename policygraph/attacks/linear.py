"""What somebody who knows the public facts computes from noisy answers. Owns :func:`reconstruct` and :class:`Reconstruction`.

The best linear unbiased estimate of every cell, with its exact variance (Gauss and Markov). The variances need no data: they are the answer to
"how well would an attacker know this count?" before anything is released (``docs/explanation/attacks.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from policygraph.distributions.noise import Noise
from policygraph.errors import InputError, RefusedError, shown
from policygraph.model.constraints.base import AnyDomain, Constraint
from policygraph.model.constraints.tables import Cuboid, StructuralZero, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.moves._compiled_order import substitute, triangular_order
from policygraph.transforms.cuboids.costs import fitted_factors
from policygraph.transforms.cuboids.lattice import Family, Lattice

__all__ = ["Reconstruction", "reconstruct"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MOST_ENTRIES = 50_000_000
"""Most numbers of cells times unknowns, which are held at once."""
MOST_UNKNOWNS = 4_000
"""Most unknowns whose joint information is inverted."""
ROUNDING = 1e-12
"""Entries below this share of the largest are rounding errors."""
SINGULAR = 1e-10
"""Singular values below this share of the largest count as none: there the answers say nothing."""
CONTRADICTION = 1e-7
"""Values of public sums that miss each other by more than this share of the largest contradict each other."""
BLIND = 1e-8
"""A cell of which a larger share is unseen cannot be estimated."""


@dataclass(frozen=True)
class Reconstruction:
    """Best linear unbiased estimates of the cells from public facts and noisy answers.

    Attributes
    ----------
    facts
        The policy whose public facts the attacker knows, or the public sums as rows of a matrix over the cells.
    queries
        What was answered with noise.
    variances
        Variance of the noise of the answers of each query, in the units users see; one number, or one for each answer.

    Examples
    --------
    Four values, the sums of consecutive ones public, each count released with Laplace noise of scale 1:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"r": 4})
    >>> pairs = [pg.count({"r": [i, i + 1]}, equals=9) for i in range(3)]
    >>> attack = reconstruct(pg.Policy(domain, constraints=pairs), pg.queries.identity(domain), 2.0)
    >>> attack.unknowns, attack.variance().round(12).tolist()
    (1, [0.5, 0.5, 0.5, 0.5])
    >>> attack.estimate([[6.5, 2.0, 7.0, 4.0]]).round(9).tolist()
    [6.375, 2.625, 6.375, 2.625]
    """

    facts: Any
    queries: tuple[Query, ...]
    variances: tuple[Floats, ...] = field(repr=False)

    @property
    def unknowns(self) -> int:
        """How many numbers the public facts leave open."""
        if self._closed:
            family = self._family
            known = np.zeros(len(family), dtype=bool)
            for mask in self._known:
                known |= (family.masks & ~np.int64(mask)) == 0
            sizes = np.array([self._block_size(int(mask)) for mask in family.masks], dtype=np.float64)
            return int(sizes[~known].sum())
        return int(self._basis.shape[1])

    @property
    def uniform(self) -> bool:
        """Whether every cell has the same variance: facts and queries are whole tables."""
        return self._closed

    def variance(self, cells: Any = None) -> Floats:
        """Variance of the best estimate of some cells, by index (all by default); infinite where the answers do not tell.

        Raises
        ------
        RefusedError
            When there are too many unknowns to invert their information and no closed form applies.
        """
        at = np.arange(self._size) if cells is None else np.asarray(cells, dtype=np.int64).reshape(-1)
        if self._closed:
            precisions = np.zeros(len(self._family))
            for query, variance in zip(self.queries, self.variances, strict=True):
                for names in query.sets:  # type: ignore[attr-defined]
                    precisions[self._family.index[self._lattice.mask(names)]] += 1.0 / float(variance)
            one = fitted_factors(self._family, precisions, self._known)[
                self._family.index[self._lattice.base]
            ]
            return np.full(len(at), one)
        out = np.zeros(len(at))
        values, directions, scales = self._information
        seen = values > SINGULAR * float(values.max(initial=0.0))
        scaled = self._basis[at] / scales
        where = scaled @ directions
        if seen.any():
            out = np.square(where[:, seen] / values[seen]).sum(axis=1)
        blind = np.linalg.norm(where[:, ~seen], axis=1) > BLIND * np.linalg.norm(scaled, axis=1)
        out[blind] = np.inf
        return np.asarray(out)

    def deviation(self, cells: Any = None) -> Floats:
        """Standard deviation of the best estimate of some cells: how many records the attacker is off by."""
        return np.sqrt(self.variance(cells))

    def estimate(self, answers: Sequence[Any], facts: Any = None) -> Floats:
        """The attacker's estimate of every cell.

        Parameters
        ----------
        answers
            The noisy answers of each query, in the units users see.
        facts
            Values of the public sums, one for each row of the constraints in order; taken from the policy by default.

        Raises
        ------
        InputError
            When a value is missing or the numbers do not fit.
        """
        if len(answers) != len(self.queries):
            raise InputError(
                f"answers of {len(answers)} queries: expected those of {len(self.queries)}.",
                code="attacks.answers",
            )
        start = self._start(self._values(facts))
        right = np.zeros(self._basis.shape[1])
        for query, variance, given in zip(self.queries, self.variances, answers, strict=True):
            noisy = np.asarray(given, dtype=np.float64).reshape(-1)
            if noisy.shape != (query.height,):
                raise InputError(
                    f"{len(noisy)} answers of {query!r}: expected {query.height}.", code="attacks.answers"
                )
            matrix = self._matrix(query)
            right += self._basis.T @ (matrix.T @ ((noisy - matrix @ start) / variance))
        values, directions, scales = self._information
        seen = values > SINGULAR * float(values.max(initial=0.0))
        along = directions[:, seen]
        found = along @ ((along.T @ (right / scales)) / np.square(values[seen])) / scales
        return np.asarray(start + self._basis @ found)

    @property
    def _size(self) -> int:
        return int(self._domain.size)

    @property
    def _domain(self) -> AnyDomain:
        return self.queries[0].domain

    @property
    def _constraints(self) -> tuple[Constraint, ...]:
        """Public facts that a policy states; none where they are given as a matrix."""
        return self.facts.constraints if isinstance(self.facts, Policy) else ()

    @cached_property
    def _closed(self) -> bool:
        """Whether facts and queries are whole cuboids, so that the variance of every cell has a closed form."""
        if not isinstance(self._domain, Domain) or not isinstance(self.facts, Policy):
            return False
        facts = all(isinstance(fact, (Cuboid, Total)) for fact in self._constraints)
        return facts and all(
            isinstance(query, CuboidQuery) and set(query.weights) == {1} and not np.ndim(variance)
            for query, variance in zip(self.queries, self.variances, strict=True)
        )

    @cached_property
    def _lattice(self) -> Lattice:
        return Lattice(cast("Domain", self._domain))

    @cached_property
    def _family(self) -> Family:
        return Family(self._lattice, [self._lattice.base])

    @cached_property
    def _known(self) -> list[int]:
        found = [
            self._lattice.mask(fact.names) if isinstance(fact, Cuboid) else 0 for fact in self._constraints
        ]
        return self._lattice.maximal(found) if found else []

    def _block_size(self, mask: int) -> float:
        shape = self._lattice.domain.shape
        return float(np.prod([shape[axis] - 1.0 for axis in self._lattice.axes(mask)]))

    @cached_property
    def _rows(self) -> Any:
        """Public sums as a sparse matrix; structural zeros are sums of one cell each."""
        from scipy.sparse import csr_array

        if not isinstance(self.facts, Policy):
            made = csr_array(self.facts, dtype=np.float64)
            made.sum_duplicates()
            made.eliminate_zeros()
            return made
        rows, cells, entries, height = [], [], [], 0
        for fact in self._constraints:
            if isinstance(fact, StructuralZero):
                empty = np.asarray(fact.forbidden(self._domain), dtype=np.int64)
                rows.append(np.arange(len(empty)) + height)
                cells.append(empty)
                entries.append(np.ones(len(empty)))
                height += len(empty)
                continue
            listed = fact.rows(self._domain)
            rows.append(listed.row + height)
            cells.append(listed.cell)
            entries.append(listed.coefficient.astype(np.float64))
            height += listed.height
        made = csr_array(
            (np.concatenate(entries), (np.concatenate(rows), np.concatenate(cells)))
            if rows
            else (np.zeros(0), (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))),
            shape=(height, self._size),
        )
        made.sum_duplicates()
        made.eliminate_zeros()
        return made

    @cached_property
    def _order(self) -> tuple[Ints, Ints, Ints]:
        facts = self._rows
        turned = facts.tocsc()
        order, pivots, free = triangular_order(
            facts.indptr.astype(np.int64),
            facts.indices.astype(np.int64),
            turned.indptr.astype(np.int64),
            turned.indices.astype(np.int64),
        )
        return order, pivots, free

    def _fill(self, values: Floats, table: Floats) -> Floats:
        facts = self._rows
        order, pivots, _ = self._order
        substitute(
            facts.indptr.astype(np.int64),
            facts.indices.astype(np.int64),
            facts.data,
            order,
            pivots,
            values,
            table,
        )
        return table

    def _start(self, values: Floats) -> Floats:
        """A table with the public sums, of real numbers of any sign."""
        start = self._fill(values[:, None], np.zeros((self._size, 1)))[:, 0]
        rest, made, broken = self._left_over
        if np.any(np.abs(broken) > SINGULAR):
            moved, *_ = np.linalg.lstsq(broken, values[rest] - self._rows[rest] @ start, rcond=SINGULAR)
            start = start + made @ moved
        missing = np.abs(values[rest] - self._rows[rest] @ start)
        size = max(np.abs(values).max(initial=1.0), np.abs(start).max(initial=1.0))
        if np.any(missing > CONTRADICTION * size):
            raise InputError(
                "the values of the public sums contradict each other: expected those of one table.",
                code="attacks.facts",
            )
        return np.asarray(start)

    @cached_property
    def _basis(self) -> Floats:
        """Changes of the table that keep all public facts, as columns."""
        _, made, broken = self._left_over
        if not np.any(np.abs(broken) > SINGULAR):
            return made
        # Rows that determine no further cell, and do not follow from the others either, restrict the free cells.
        from scipy.linalg import null_space

        return np.asarray(made @ null_space(broken, rcond=SINGULAR))

    @cached_property
    def _left_over(self) -> tuple[Ints, Floats, Floats]:
        """Facts that determine no further cell; the table as a function of the free cells, by the others; and what a change of the free cells does to these facts."""
        order, _, free = self._order
        if len(free) > MOST_UNKNOWNS or len(free) * self._size > MOST_ENTRIES:
            raise RefusedError(
                f"the public facts leave {len(free):,} of {self._size:,} numbers open: expected at most {MOST_UNKNOWNS:,}, or cuboids only "
                "(facts and queries), which have a closed form. Attack a coarser table.",
                code="attacks.size",
                value=len(free),
            )
        table = np.zeros((self._size, len(free)))
        table[free, np.arange(len(free))] = 1.0
        made = self._fill(np.zeros((self._rows.shape[0], len(free))), table)
        rest = np.setdiff1d(np.arange(self._rows.shape[0]), order)
        return rest, made, np.asarray(self._rows[rest] @ made)

    def _matrix(self, query: Query) -> Any:
        """A query in the units users see."""
        matrix = query.columns(np.arange(self._size)).tocsr().astype(np.float64)
        weights = np.concatenate(
            [np.full(part.height, float(query.unit) / part.weight) for part in query.parts]
        )
        from scipy.sparse import diags_array

        return diags_array(weights) @ matrix

    @cached_property
    def _information(self) -> tuple[Floats, Floats, Floats]:
        """Singular values and right singular vectors of what the answers say about the unknowns, in units of their own; and these units.

        The answers, each divided by its deviation, are kept as a triangle (QR), not as normal equations, and each unknown is measured in how well it is seen: then one that is seen
        a million times better than another does not hide it.
        """
        count = self._basis.shape[1]
        triangle = np.zeros((0, count))
        whole = not np.any(self._basis % 1)
        for query, variance in zip(self.queries, self.variances, strict=True):
            matrix = self._matrix(query)
            seen = matrix @ self._basis
            if not whole and matrix.nnz:
                # Sums of broken numbers that cancel leave rounding errors, which are no information.
                sizes = np.asarray(abs(matrix).max(axis=1).todense(), dtype=np.float64).reshape(-1, 1)
                seen[np.abs(seen) < ROUNDING * sizes * float(np.abs(self._basis).max(initial=0.0))] = 0.0
            seen /= np.sqrt(variance[:, None] if np.ndim(variance) else float(variance))
            triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, seen]), mode="r"))
        if not count:
            return np.zeros(0), np.zeros((0, 0)), np.ones(0)
        scales = np.linalg.norm(triangle, axis=0)
        scales[scales == 0.0] = 1.0
        _, values, turned = np.linalg.svd(triangle / scales)
        return np.concatenate([values, np.zeros(count - len(values))]), turned.T, scales

    def _values(self, facts: Any) -> Floats:
        if facts is not None:
            given = np.asarray(facts, dtype=np.float64).reshape(-1)
            if given.shape != (self._rows.shape[0],):
                raise InputError(
                    f"{len(given)} values of public sums: expected {self._rows.shape[0]}.",
                    code="attacks.facts",
                )
            return given
        if not isinstance(self.facts, Policy):
            raise InputError(
                "the values of the public sums are missing: expected facts=....", code="attacks.facts"
            )
        found: list[float] = []
        for fact in self._constraints:
            if isinstance(fact, StructuralZero):
                found += [0.0] * len(fact.forbidden(self._domain))
                continue
            values = fact.values(self._domain)
            if values is None:
                raise InputError(
                    f"{fact.row_name(self._domain, 0)} is public, but the policy does not say its value: expected facts=..., or a "
                    "policy whose constraints have equals=....",
                    code="attacks.facts",
                )
            found += [float(value) for value in values]
        return np.array(found)


def reconstruct(facts: Any, queries: Query | Sequence[Query], noise: Any) -> Reconstruction:
    """What an attacker who knows the public facts computes from noisy answers: best linear unbiased estimates.

    Parameters
    ----------
    facts
        A policy: its public facts are what the attacker knows exactly; its graph plays no part, since the attack is on noise of any kind. Or a
        matrix, dense or sparse, with a row over the cells for each public sum.
    queries
        One query or several, each answered with independent noise.
    noise
        Variance of one answer in the units users see, or a :class:`~policygraph.distributions.noise.Noise`, or one number for each answer;
        for several queries a list of these.

    Returns
    -------
    Reconstruction
        Variances of all cells, exact and without data; and the estimates, when there are answers.

    Raises
    ------
    InputError
        When a query is over another domain, or a variance is not positive.

    Examples
    --------
    Both margins of a 3 x 3 table are public, and the cells get noise of variance 8. The facts take away five of nine unknowns:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 3, "b": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    >>> attack = reconstruct(policy, pg.queries.cuboid(domain, "a", "b"), 8)
    >>> attack.unknowns, round(float(attack.variance()[0]), 6)
    (4, 3.555556)

    Notes
    -----
    With the facts A x = b the tables are x0 + N f, where the columns of N span the null space of A. Answers y = W x + z with independent
    noise of variances s have the information F = N' W' diag(1/s) W N about f, and the best linear unbiased estimate of x has the covariance N F^-1 N'.
    For whole cuboids this is a sum over interaction blocks. Costs: linear in the entries of the facts, times the unknowns.
    """
    listed = (queries,) if isinstance(queries, Query) else tuple(queries)
    given = (noise,) if isinstance(queries, Query) else noise
    if not listed:
        raise InputError(
            "no queries: expected at least one that is answered with noise.", code="attacks.queries"
        )
    if not isinstance(given, (list, tuple)):
        given = (given,) * len(listed)
    if len(given) != len(listed):
        raise InputError(
            f"the noise of {len(given)} queries: expected that of {len(listed)}.", code="attacks.noise"
        )
    for query in listed:
        query.check_domain(facts.domain if isinstance(facts, Policy) else listed[0].domain)
        if query.needs_values:
            raise InputError(
                f"{query!r} is about values of records: expected counts.", code="attacks.queries"
            )
    variances = tuple(_variance(each, query) for each, query in zip(given, listed, strict=True))
    if not isinstance(facts, Policy) and (
        len(np.shape(facts)) != 2 or np.shape(facts)[1] != listed[0].domain.size
    ):
        raise InputError(
            f"facts of shape {np.shape(facts)}: expected a policy, or a matrix with a column for each of {listed[0].domain.size:,} cells.",
            code="attacks.facts",
        )
    return Reconstruction(facts, listed, variances)


def _variance(noise: Any, query: Query) -> Floats:
    if isinstance(noise, Noise):
        factors = [float(query.unit) / part.weight for part in query.parts]
        if len(set(factors)) == 1:
            made = np.array(noise.variance * factors[0] ** 2)
        else:
            made = np.concatenate(
                [np.full(p.height, noise.variance * f**2) for p, f in zip(query.parts, factors, strict=True)]
            )
    else:
        try:
            made = np.asarray(noise, dtype=np.float64)
        except (TypeError, ValueError) as cause:
            raise InputError(
                f"noise={shown(noise)}: expected a variance, or one for each answer.", code="attacks.noise"
            ) from cause
    if made.shape not in ((), (query.height,)):
        raise InputError(
            f"{made.size} variances for {query.height} answers: expected one, or one for each.",
            code="attacks.noise",
        )
    if not np.all(np.isfinite(made)) or not np.all(made > 0):
        raise InputError(
            f"noise={shown(noise)}: expected variances above 0. Without noise nothing is hidden, and what is public exactly belongs into the "
            "policy.",
            code="attacks.noise",
        )
    return made
