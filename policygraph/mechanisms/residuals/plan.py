"""Which residuals to measure, in which bases, how well. Owns :class:`ResidualPlan` and :func:`plan`.

Sees the domain, the query, the policy and the loss; never data. Whatever it chooses, noise is scaled to the certificate of the integers that are
measured, so that only accuracy rests on the floating-point numbers here (``docs/explanation/proofs/residuals.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from policygraph.errors import RefusedError
from policygraph.mechanisms.cube.precisions import optimal_precisions
from policygraph.mechanisms.residuals.basis import Floats, ResidualBasis, fit, fitted_basis
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm
from policygraph.model.queries.products import AxisRows, ProductQuery
from policygraph.sensitivity.rungs.edges import all_difference_sets
from policygraph.sensitivity.rungs.products import Changes
from policygraph.ties import settled
from policygraph.transforms.cuboids.choose import stated
from policygraph.transforms.cuboids.costs import known_cuboids, unit_variance
from policygraph.transforms.cuboids.lattice import Lattice

Names = tuple[str, ...]

ROOM: dict[Norm, int] = {"l1": 24, "l2": 30}
"""Entries of measured rows stay below two to this, so that answers over 2^31 records fit 62 bits, and scales the samplers."""
WEIGHT_BITS = 6
MOST_BITS = 12
LEAST_BITS = 3
SMALLEST = 4096.0
MOST_SHARES = 1 << 21
"""Most pairs of a published table and a set of its attributes."""
MOST_FORMS = 1 << 11
ROUNDS = 8
"""Rounds of fitting the weights of the sums; each is a step to the fixed point, and the best one is kept."""


@dataclass(frozen=True, eq=False)
class ResidualPlan:
    """What is measured for some tables.

    Attributes
    ----------
    bases
        The rows of the residual of each attribute that is used.
    sets
        The attributes of each measured residual.
    weights
        A positive integer for each.
    known
        Residuals that follow from tables that all neighbours share.
    objective
        Total variance of all answers at the loss asked for, with continuous noise, where the cost of what is measured is exact; else None.
    bound
        What no other weights reach in these bases; None where nothing is proved.
    """

    bases: dict[str, ResidualBasis]
    sets: tuple[Names, ...]
    weights: tuple[int, ...]
    known: tuple[Names, ...]
    objective: float | None = None
    bound: float | None = None

    def query(self, query: ProductQuery) -> ProductQuery | None:
        """The measured numbers as one query with integer rows; None where nothing is measured."""
        if not self.sets:
            return None
        used = {name for names in self.sets for name in names}
        rows = {name: basis.rows for name, basis in self.bases.items() if name in used}
        return ProductQuery(query.domain, self.sets, rows, self.weights)


def shares(
    tables: Iterable[tuple[Names, float]], residual: dict[str, float], total: dict[str, float]
) -> dict[Names, float]:
    """Total variance of all answers for a unit of variance of each residual.

    Parameters
    ----------
    tables
        The published tables, and what a squared error in each of them counts.
    residual, total
        :attr:`ResidualBasis.residual` and :attr:`ResidualBasis.total` of each attribute.

    Examples
    --------
    >>> made = shares([(("a",), 1.0), (("a", "b"), 1.0)], {"a": 2.0, "b": 3.0}, {"a": 0.5, "b": 0.25})
    >>> {"".join(names): value for names, value in sorted(made.items())}
    {'': 0.625, 'a': 2.5, 'ab': 6.0, 'b': 1.5}
    """
    out: dict[Names, float] = {}
    for names, importance in tables:
        parts: list[tuple[Names, float]] = [((), importance)]
        for name in names:
            several = name in residual
            parts = [
                piece
                for low, value in parts
                for piece in (
                    (low, value * total[name]),
                    *([((*low, name), value * residual[name])] if several else []),
                )
            ]
        for low, value in parts:
            out[low] = out.get(low, 0.0) + value
    return out


def plan(query: ProductQuery, policy: Policy, loss: Loss, *, per_answer: bool = True) -> ResidualPlan:
    """Choose bases and weights for the least total variance of all answers.

    Parameters
    ----------
    query
        The published tables; the square of a weight is what a squared error counts.
    policy, loss
        What must be hidden, and how well.
    per_answer
        Whether every answer counts alike, or every table.
    """
    lattice = Lattice(query.domain)
    tables = [
        (names, float(weight) ** 2 / (1 if per_answer else part.height))
        for names, weight, part in zip(query.sets, query.weights, query.parts, strict=True)
    ]
    if sum(1 << len(names) for names, _ in tables) > MOST_SHARES:
        raise RefusedError(
            f"more than {MOST_SHARES:,} sets of attributes of tables would be weighed. Publish tables of fewer attributes.",
            code="residuals.too-many",
        )
    several = {name: factor for name, factor in query.factors.items() if factor.n > 1}
    known_masks = known_cuboids(lattice, policy)

    def is_known(names: Names) -> bool:
        mask = lattice.mask(names)
        return any(lattice.computable(mask, of=known) for known in known_masks)

    weighed = _weights_of_sums(tables, query.factors, is_known)
    bits = _bits(query, several, loss.norm)
    bases = {
        name: fitted_basis(factor, weighed.get(name, 0.0), bits) if factor.n > 1 else _lone(factor)
        for name, factor in query.factors.items()
    }
    found = shares(
        tables,
        {name: bases[name].residual for name in several},
        {name: basis.total for name, basis in bases.items()},
    )
    order = sorted(found, key=lambda names: (len(names), [lattice.domain.axis(name) for name in names]))
    free = [names for names in order if not is_known(names)]
    known = tuple(names for names in order if is_known(names))
    if not free:
        return ResidualPlan(bases, (), (), known)
    cells = np.array([found[names] for names in free])
    rows = {name: basis.rows for name, basis in bases.items() if any(name in names for names in free)}
    measured = ProductQuery(query.domain, free, rows)
    forms = cost_forms(measured, policy, loss.norm)
    real = best_weights(cells, forms, loss.norm)
    reach = np.array([prod(measured.factors[name].largest for name in names) for names in free], dtype=float)
    whole = _whole(real, reach, loss.norm)
    exact = not policy.constraints or policy.definition == "edges"
    objective = bound = None
    if exact:
        objective = _value(cells, forms, whole.astype(np.float64), loss.norm) * unit_variance(loss)
        if loss.norm == "l2":
            size = lengths(forms)
            best = optimal_precisions((cells * size)[None, :], forms / size, "total")[0] * unit_variance(loss)
            bound = min(best, objective)
    objective, bound = stated(objective, bound)
    return ResidualPlan(bases, tuple(free), tuple(int(w) for w in whole), known, objective, bound)


def _lone(factor: AxisRows) -> ResidualBasis:
    """An attribute of one value has no residual; its rows are never measured."""
    return ResidualBasis(AxisRows(1), np.zeros((1, 1), dtype=np.int64))


def _weights_of_sums(
    tables: Sequence[tuple[Names, float]], factors: dict[str, AxisRows], is_known: Any
) -> dict[str, float]:
    """How much the sum of each attribute counts in the fit of its residual: a fixed point, from none.

    Notes
    -----
    The total variance at the best weights is the square of F = sum_S sqrt(c_S), with c_S a polynomial in the numbers m (``total``) and r (``residual``)
    of the attributes. For one attribute at a time F is least where sqrt(m + s) + sqrt(r) is, with s = r (F_r / F_m)^2 - m by the slopes F_r, F_m of F;
    the fit for the weight s minimises that. Rounded to a grid, so that last digits decide nothing.
    """
    fitted = [name for name, factor in factors.items() if factor.kind != "values" and factor.n > 1]
    weights = dict.fromkeys(fitted, 0.0)
    best, least = dict(weights), np.inf
    for _ in range(ROUNDS):
        residual, total = {}, {}
        for name, factor in factors.items():
            if name in weights:
                made = fit(factor.n, factor.kind, weights[name])
                residual[name], total[name] = made.residual, made.total
            else:
                total[name] = 1.0 / factor.n
                if factor.n > 1:
                    residual[name] = (factor.n - 1) ** 2 / factor.n
        found = {
            names: value for names, value in shares(tables, residual, total).items() if not is_known(names)
        }
        value = sum(np.sqrt(list(found.values()))) if found else 0.0
        if value < least * (1 - 1e-6):
            best, least = dict(weights), value
        following = {}
        for name in fitted:
            inside = [(names, importance) for names, importance in tables if name in names]
            part = shares(inside, residual, total)
            up = sum(np.sqrt(found[names]) for names in found if name in names)
            down = sum(part[n] / np.sqrt(found[n]) for n in found if name not in n and n in part)
            following[name] = _on_grid(up, down, residual[name], total[name])
        if following == weights:
            break
        weights = following
    return best


def _on_grid(up: float, down: float, residual: float, total: float) -> float:
    """R (F_r / F_m)^2 - m, where r F_r is ``up`` and m F_m is ``down``, as a half power of two times m; 0 where that is small."""
    if up <= 0 or down <= 0:
        return 0.0
    made = (up / down) ** 2 * total / residual - 1
    if made < 0.1:
        return 0.0
    return float(2.0 ** (np.rint(2 * np.log2(made * total)) / 2))


def _bits(query: ProductQuery, several: dict[str, AxisRows], norm: Norm) -> int:
    """How long the columns of fitted rows may be so that products of them keep below the limit."""
    least = MOST_BITS
    for names in query.sets:
        fitted = [name for name in names if name in several and several[name].kind != "values"]
        room = ROOM[norm] - WEIGHT_BITS
        for name in names:
            if name in several and name not in fitted:
                room -= max(0, several[name].n - 1).bit_length()
        if fitted:
            least = min(least, room // len(fitted))
    if least < LEAST_BITS:
        raise RefusedError(
            "tables of so many attributes by prefixes or ranges leave 64-bit integers: expected fewer such attributes in one table.",
            code="query.overflow",
        )
    return least


def cost_forms(measured: ProductQuery, policy: Policy, norm: Norm) -> Floats:
    """What a unit of weight (squared for l2) of each measured residual costs, one row for each kind of step.

    A guide for choosing: under public facts that of one record more or less, under graphs that change several attributes at once a bound.
    """
    tables = [(names, 1) for names in measured.sets]
    rows: list[list[int]] = []
    graph = policy.graph
    if policy.definition != "edges" or graph is None or graph.bottom != "none":
        longest = {name: int(factor.sums(norm).max()) for name, factor in measured.factors.items()}
        rows.append([prod(longest[name] for name in names) for names, _ in tables])
    if policy.definition == "edges" and graph is not None and graph.rule.n_edges:
        changes = Changes(measured, graph.rule, norm)
        try:
            sets = all_difference_sets(graph)
        except RefusedError:
            sets = []
        if sets and len(sets) <= MOST_FORMS:
            rows += [[changes.of_table(*table, names) for table in tables] for names in sets]
        else:
            rows.append(
                [
                    max(
                        (
                            changes.of_table(names, 1, some)
                            for size in range(1, len(names) + 1)
                            for some in combinations(names, size)
                        ),
                        default=0,
                    )
                    for names, _ in tables
                ]
            )
    made: Floats = np.array(rows, dtype=np.float64)
    return made[np.any(made > 0, axis=1)]


def lengths(forms: Floats) -> Floats:
    """The largest cost of each residual; 1 for one that costs nothing."""
    size: Floats = forms.max(axis=0)
    return np.where(size > 0, size, 1.0)


def best_weights(cells: Floats, forms: Floats, norm: Norm) -> Floats:
    """Positive real weights for the least total variance: exact for one form, and for l2.

    Examples
    --------
    >>> made = best_weights(np.array([1.0, 4.0]), np.array([[1.0, 1.0]]), "l2")
    >>> (made / made[0]).round(6).tolist()
    [1.0, 1.414214]
    """
    if not len(forms):
        return np.ones(len(cells))
    # Rows of different blocks have lengths that are orders of magnitude apart: in units of these all numbers are alike.
    size = lengths(forms)
    if norm == "l2":
        found: Floats = np.sqrt(optimal_precisions((cells * size)[None, :], forms / size, "total")[1] / size)
        return found
    # sum c / w^2 beside sum a w: the best weights are (c / a)^(1/3).
    made: Floats = np.cbrt(cells / size)
    return made


def _value(cells: Floats, forms: Floats, weights: Floats, norm: Norm) -> float:
    cost = float((forms @ (weights if norm == "l1" else weights**2)).max(initial=0.0))
    return float((cells / weights**2).sum()) * (cost * cost if norm == "l1" else cost)


def _whole(real: Floats, reach: Floats, norm: Norm) -> Any:
    """Integers in the ratios of real weights, as fine as the limit on the entries of measured rows allows."""
    ideal = np.exp(settled(np.log(real / real.max())))
    scale = min(
        max(SMALLEST / float(ideal.min()), SMALLEST), float(1 << ROOM[norm]) / float((ideal * reach).max())
    )
    return np.maximum(1, np.rint(ideal * scale)).astype(np.int64)
