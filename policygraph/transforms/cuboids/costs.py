"""What measuring cuboids costs and yields. Owns :func:`plain_factors`, :func:`fitted_factors`, :func:`shares` and :class:`Costs`.

All of it is free of data. The variance of a cell of a published cuboid is the variance of the noise times a factor that depends on
sizes, weights and what is known exactly: Theorems 1 and 2 of ``docs/explanation/proofs/cubes.md``, as sweeps over a family of cuboids and,
entry by entry, as matrices. The sensitivity of cuboids with weights w is the largest of a few linear forms: max_j sum_C a_jC w_C in L1, and the
same with squared weights in squared L2. Choosing uses these forms; noise is always scaled to the certificate of what was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policygraph.distributions.moments import computable
from policygraph.effort import SECOND
from policygraph.errors import InputError
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.sensitivity.proofs import proved
from policygraph.sensitivity.rungs.margins import (
    closed_form,
    fixed_by_margins,
    reduce_margins,
    table_costs,
)
from policygraph.transforms.cuboids.lattice import Family, Floats, Ints, Lattice

THIN = 0.1
"""Below this share of entries that are not 0 a large matrix is held sparse."""
LARGE = 1 << 20
GUIDE_WORK = 20 * SECOND
"""For the sensitivity of all candidates together under public facts: a guide, so that a bound will do."""


def block_precisions(family: Family, precisions: Floats) -> Floats:
    """Precision of every interaction block from the precisions of the measured cuboids.

    Parameters
    ----------
    precisions
        One over the variance of a cell of each measured cuboid; 0 where nothing is measured.

    Returns
    -------
    ndarray
        q_S, the sum over all C above S of the precision of C / number of cells of C without S.
    """
    q = precisions.astype(np.float64, copy=True)
    for _, n, low, high in family.pairs:
        q[low] += q[high] / n
    return q


def cell_variances(family: Family, blocks: Floats) -> Floats:
    """Variance of a cell of every cuboid from the variances of the interaction blocks."""
    v = blocks.astype(np.float64, copy=True)
    for _, n, low, high in family.pairs:
        v[high] *= (n - 1) / n
        v[high] += v[low] / n**2
    return v


def cell_variances_adjoint(family: Family, slopes: Floats) -> Floats:
    """Slopes by variances of blocks, from slopes by variances of cells."""
    out = slopes.astype(np.float64, copy=True)
    for _, n, low, high in family.pairs:
        out[low] += out[high] / n**2
        out[high] *= (n - 1) / n
    return out


def known_blocks(family: Family, known: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which blocks lie below an exactly known cuboid."""
    out = np.zeros(len(family), dtype=np.bool_)
    for mask in known:
        out |= (family.masks & ~np.int64(mask)) == 0
    return out


def block_variances(family: Family, precisions: Floats, known: Iterable[int] = ()) -> Floats:
    """Variance of every interaction block after least squares: 0 where it is known, infinite where it was not measured."""
    q = block_precisions(family, precisions)
    with np.errstate(divide="ignore"):
        out: Floats = 1.0 / q
    out[known_blocks(family, known)] = 0.0
    return out


def fitted_factors(family: Family, precisions: Floats, known: Iterable[int] = ()) -> Floats:
    """Variance of a cell of every cuboid of the family after least squares, in units of the noise variance.

    Parameters
    ----------
    family
        The published and measured cuboids with all below them.
    precisions
        Squared weight of each measured cuboid, 0 elsewhere, along ``family.masks``.
    known
        Cuboids that are known exactly.

    Examples
    --------
    Two tables of one attribute with 2 and 3 values, and their joint table, each measured with noise of variance 1:

    >>> from policygraph.transforms.cuboids.lattice import Lattice
    >>> from policygraph.model.domain import Domain
    >>> family = Family(Lattice(Domain({"a": 2, "b": 3})), [0b11])
    >>> fitted_factors(family, np.array([0.0, 1.0, 1.0, 1.0])).round(4).tolist()
    [1.0, 0.625, 0.5556, 0.5139]
    """
    return cells_of_blocks(family, block_variances(family, precisions, known))


def cells_of_blocks(family: Family, blocks: Floats) -> Floats:
    """Variance of a cell of every cuboid from the variances of the blocks, some of which may be infinite."""
    if np.all(np.isfinite(blocks)):
        return cell_variances(family, blocks)
    # 0 * inf: an attribute of one value has an empty interaction block, which needs no estimate.
    out = cell_variances(family, np.where(np.isfinite(blocks), blocks, 0.0))
    reached = cell_variances(family, np.where(np.isfinite(blocks), 0.0, 1.0))
    out[reached > 0] = np.inf
    return out


def plain_factors(family: Family, precisions: Floats, known: Iterable[int] = ()) -> Floats:
    """Variance of a cell of every cuboid when each is summed from its best measured parent, in units of the noise.

    Examples
    --------
    >>> from policygraph.transforms.cuboids.lattice import Lattice
    >>> from policygraph.model.domain import Domain
    >>> family = Family(Lattice(Domain({"a": 2, "b": 3})), [0b11])
    >>> plain_factors(family, np.array([0.0, 0.0, 0.0, 1.0])).tolist()
    [6.0, 3.0, 2.0, 1.0]
    """
    with np.errstate(divide="ignore"):
        out: Floats = 1.0 / precisions
    for _, n, low, high in family.pairs:
        out[low] = np.minimum(out[low], out[high] * n)
    out[known_blocks(family, known)] = 0.0
    return out


def shares(lattice: Lattice, blocks: Ints, candidates: Ints) -> Any:
    """What a unit of precision of each candidate C (column) is worth for each block S (row): 1 / cells of C without S, for S below C.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> lattice = Lattice(Domain({"a": 2, "b": 3}))
    >>> shares(lattice, np.array([0, 1]), np.array([1, 3])).round(3).tolist()
    [[0.5, 0.167], [1.0, 0.333]]
    """
    low = _sizes(lattice, blocks)
    high = _sizes(lattice, candidates)
    rows, columns = [], []
    for at, mask in enumerate(blocks.tolist()):
        above = np.flatnonzero((candidates & mask) == mask)
        rows.append(np.full(len(above), at))
        columns.append(above)
    at_rows, at_columns = np.concatenate(rows), np.concatenate(columns)
    return _held(at_rows, at_columns, low[at_rows] / high[at_columns], (len(blocks), len(candidates)))


def cell_shares(family: Family, blocks: Ints, wanted: Ints, importance: Floats) -> Any:
    """Variance of a cell of each wanted cuboid (row), times its importance, for a unit of variance of each block (column).

    Parameters
    ----------
    family
        Everything below the wanted cuboids.
    blocks
        Masks of the blocks of the columns; others are left out.
    wanted
        Positions of the wanted cuboids in the family.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> family = Family(Lattice(Domain({"a": 2})), [1])
    >>> cell_shares(family, family.masks, np.array([1]), np.array([4.0])).tolist()
    [[1.0, 2.0]]
    """
    shape = family.lattice.domain.shape
    place = {int(mask): at for at, mask in enumerate(blocks)}
    rows, columns, values = [], [], []
    for row, (mask, weight) in enumerate(
        zip(family.masks[wanted].tolist(), importance.tolist(), strict=True)
    ):
        entries = [(0, float(weight))]
        for axis in family.lattice.axes(mask):
            n = shape[axis]
            entries = [
                piece
                for low, value in entries
                for piece in ((low, value / n**2), (low | 1 << axis, value * (n - 1) / n))
            ]
        for low, value in entries:
            if low in place and value > 0:
                rows.append(row)
                columns.append(place[low])
                values.append(value)
    return _held(np.array(rows), np.array(columns), np.array(values), (len(wanted), len(blocks)))


def _sizes(lattice: Lattice, masks: Ints) -> Floats:
    return np.array([float(lattice.size(mask)) for mask in masks.tolist()], dtype=np.float64)


def _held(rows: Any, columns: Any, values: Floats, shape: tuple[int, int]) -> Any:
    cells = shape[0] * shape[1]
    if cells > LARGE and len(values) < THIN * cells:
        from scipy.sparse import csr_array

        return csr_array((values, (rows, columns)), shape=shape)
    made = np.zeros(shape)
    made[rows.astype(np.int64), columns.astype(np.int64)] = values
    return made


@dataclass(frozen=True, eq=False)
class Costs:
    """Linear forms whose largest is the sensitivity of weighted cuboids.

    Attributes
    ----------
    masks
        The cuboids that may be measured.
    forms
        One row for each form, one column for each of these cuboids.
    norm
        ``"l1"``: the forms apply to the weights; ``"l2"``: to their squares, and give the square.
    exact
        Whether the largest form is the sensitivity; otherwise it is a guide for choosing only.
    """

    masks: tuple[int, ...]
    forms: Floats
    norm: Norm
    exact: bool

    def power(self, weights: Floats) -> float:
        """The sensitivity (squared for l2) of the cuboids with these weights."""
        return float((self.forms @ (weights if self.norm == "l1" else weights * weights)).max(initial=0.0))

    def noise(self, weights: Floats) -> float:
        """Variance of the noise on the lattice, in units of :func:`unit_variance`."""
        power = self.power(weights)
        return power * power if self.norm == "l1" else power


def unit_variance(loss: Loss) -> float:
    """Variance of (continuous) noise for a sensitivity of 1: 2 / epsilon^2 or 1 / (2 rho).

    Examples
    --------
    >>> from policygraph.model.loss import Rho
    >>> unit_variance(Epsilon(2)), unit_variance(Rho("1/4"))
    (0.5, 2.0)
    """
    computable(1 / loss.value, f"noise at {loss}: scale")
    return float(2 / loss.value**2 if isinstance(loss, Epsilon) else 1 / (2 * loss.value))


def known_cuboids(lattice: Lattice, policy: Policy) -> list[int]:
    """Cuboids that are the same for all neighbours, and so are published as they are.

    Returns
    -------
    list of int
        The maximal ones among the public whole margins, the total where it is public, and what no edge of
        the policy graph changes; each is certified to have sensitivity 0.

    Examples
    --------
    >>> from policygraph.model.graphs import PolicyGraph
    >>> domain = Domain({"sex": 2, "age": 7})
    >>> known_cuboids(Lattice(domain), Policy(domain, PolicyGraph.attribute(domain)))
    [0]
    >>> known_cuboids(Lattice(domain), Policy(domain, constraints=[Cuboid("age")]))
    [2]
    """
    found: list[int] = []
    if policy.definition == "edges" and policy.graph is not None and policy.graph.bottom == "none":
        changing = 0
        for names in policy.graph.difference_sets():
            changing |= lattice.mask(names)
        found.append(lattice.base & ~changing)
    for fact in policy.constraints:
        if isinstance(fact, Cuboid):
            found.append(lattice.mask(fact.names))
        elif isinstance(fact, Total):
            found.append(0)
    certified = []
    for mask in lattice.maximal(found):
        query = CuboidQuery(lattice.domain, [lattice.names(mask)])
        if proved(query, policy).power == 0:
            certified.append(mask)
    return certified


def changed_sets(lattice: Lattice, policy: Policy) -> list[int] | None:
    """Largest sets of attributes that one neighbour step can change; None when public facts couple the records.

    The set of all attributes together with an appearing record stands as -1. Beside one public margin one record changes, on any attributes
    outside the margin.

    Examples
    --------
    >>> domain = Domain({"sex": 2, "age": 7, "region": 3})
    >>> changed_sets(Lattice(domain), Policy(domain, constraints=[Total(), Cuboid("age")]))
    [5]
    """
    if policy.definition == "edges" and policy.graph is not None:
        sets = [lattice.mask(names) for names in policy.graph.difference_sets()]
        return sets + ([-1] if policy.graph.bottom != "none" else [])
    if policy.definition != "induced":
        return None
    if not policy.system.needed:
        return [-1]
    fixed = None if len(policy.system.zeros) else fixed_by_margins(lattice.domain, policy.system.needed)
    if fixed is None:
        return None
    free = [axis for axis, n in enumerate(lattice.domain.shape) if n > 1]
    return [lattice.mask_of(free) & ~lattice.mask(fixed)]


def costs_of(lattice: Lattice, masks: Sequence[int], policy: Policy, norm: Norm) -> Costs:
    """The linear forms of a policy.

    Parameters
    ----------
    masks
        Cuboids that may be measured; none of them below a known one.

    Notes
    -----
    Without public facts, and beside one public margin, the forms are exact: a record that appears changes one cell of every table, and one that moves
    changes two cells of every table that contains an attribute on which the ends differ. Beside two public margins each table has its own cost
    (Theorem 6 of ``docs/explanation/proofs/cubes.md``), and the sum of these is the sensitivity where one move attains all of them. With other
    public facts, the sensitivity of all tables together, shared out evenly, is the guide.

    Examples
    --------
    >>> from policygraph.model.graphs import PolicyGraph
    >>> domain = Domain({"sex": 2, "age": 7})
    >>> costs_of(Lattice(domain), [1, 2, 3], Policy(domain, PolicyGraph.attribute(domain)), "l1").forms.tolist()
    [[2.0, 0.0, 2.0], [0.0, 2.0, 2.0]]
    >>> domain = Domain({"a": 4, "b": 5, "c": 3})
    >>> facts = Policy(domain, constraints=[Cuboid("a"), Cuboid("b")])
    >>> costs_of(Lattice(domain), [0b011, 0b100, 0b110], facts, "l2").forms.tolist()
    [[8.0, 32.0, 8.0]]
    """
    if not isinstance(policy.domain, Domain) or policy.domain != lattice.domain:
        raise InputError("the policy is over another domain than the cube.", code="cubes.domain")
    listed = np.array(masks, dtype=np.int64)
    sets = changed_sets(lattice, policy)
    if sets is None:
        query = CuboidQuery(lattice.domain, [lattice.names(mask) for mask in masks])
        found = _beside_two_margins(query, policy, norm)
        if found is not None:
            return Costs(tuple(masks), found[0], norm, exact=found[1])
        each = float(proved(query, policy, norm, GUIDE_WORK).power) / max(1, len(masks))
        return Costs(tuple(masks), np.full((1, len(masks)), max(each, 1e-12)), norm, exact=False)
    rows = [
        np.ones(len(masks)) if changed < 0 else 2.0 * ((listed & changed) != 0)
        for changed in dict.fromkeys(sets)
    ]
    forms = np.array(rows, dtype=np.float64).reshape(len(rows), len(masks))
    return Costs(tuple(masks), forms, norm, exact=True)


def _beside_two_margins(query: CuboidQuery, policy: Policy, norm: Norm) -> tuple[Floats, bool] | None:
    """What each table costs where two public margins are left, and whether one move attains all of it; None for other facts."""
    whole = policy.strength == "worst-case" and policy.at_most_records is None
    if policy.definition != "induced" or not whole or len(policy.system.zeros):
        return None
    reduced = reduce_margins(query.domain, policy.system.needed, query)
    if reduced is None or len(reduced.known) != 2 or len(reduced.asked) != len(query.sets):
        return None
    bracket = closed_form(reduced, norm)
    forms = np.array([table_costs(reduced, norm)], dtype=np.float64)
    return forms, bracket is not None and bracket.exact and not policy.system.has_values
