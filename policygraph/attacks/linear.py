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

from policygraph.attacks.parts import Parts
from policygraph.distributions.noise import Noise
from policygraph.errors import InputError, shown
from policygraph.model.constraints.base import AnyDomain, Constraint
from policygraph.model.constraints.tables import Cuboid, StructuralZero, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.transforms.cuboids.costs import fitted_factors
from policygraph.transforms.cuboids.lattice import Family, Lattice

__all__ = ["Reconstruction", "reconstruct"]

Floats = npt.NDArray[np.float64]
CONTRADICTION = 1e-7
"""Values of public sums that miss each other by more than this share of the largest contradict each other."""


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
        return self._parts.unknowns

    @property
    def uniform(self) -> bool:
        """Whether every cell has the same variance: facts and queries are whole tables."""
        return self._closed

    def variance(self, cells: Any = None) -> Floats:
        """Variance of the best estimate of some cells, by index (all by default); infinite where the answers do not tell.

        Raises
        ------
        RefusedError
            When too many unknowns hang together to invert their information and no closed form applies.
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
        return self._open_variances[at]

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
        exact = self._values(facts)
        noisy = [np.asarray(given, dtype=np.float64).reshape(-1) for given in answers]
        for query, given in zip(self.queries, noisy, strict=True):
            if given.shape != (query.height,):
                raise InputError(
                    f"{len(given)} answers of {query!r}: expected {query.height}.", code="attacks.answers"
                )
        found = self._parts.estimate(np.concatenate([exact, *noisy]))
        missing = np.abs(exact - self._rows @ found)
        size = max(np.abs(exact).max(initial=1.0), np.abs(found).max(initial=1.0))
        if np.any(missing > CONTRADICTION * size):
            raise InputError(
                "the values of the public sums contradict each other: expected those of one table.",
                code="attacks.facts",
            )
        return found

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
    def _parts(self) -> Parts:
        """Public sums and answers, split into parts that have nothing to do with each other."""
        from scipy.sparse import vstack

        matrices = [self._rows, *(self._matrix(query) for query in self.queries)]
        spread = [
            np.zeros(self._rows.shape[0]),
            *(
                np.broadcast_to(variance, query.height)
                for query, variance in zip(self.queries, self.variances, strict=True)
            ),
        ]
        return Parts(vstack(matrices, format="csr"), np.concatenate(spread))

    @cached_property
    def _open_variances(self) -> Floats:
        return self._parts.variance()

    def _matrix(self, query: Query) -> Any:
        """A query in the units users see."""
        matrix = query.columns(np.arange(self._size)).tocsr().astype(np.float64)
        weights = np.concatenate(
            [np.full(part.height, float(query.unit) / part.weight) for part in query.parts]
        )
        from scipy.sparse import diags_array

        return diags_array(weights) @ matrix

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
    For whole cuboids this is a sum over interaction blocks. Elsewhere cells and sums are split into parts that share nothing, and each part is solved from the side of its unknowns, or of its sums where
    every cell has an answer of its own. Costs: linear in the entries of the facts, times the unknowns of a part.
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
