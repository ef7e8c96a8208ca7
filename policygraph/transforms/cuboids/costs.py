"""What measuring costs under a policy. Owns :class:`Costs`, :func:`costs_of` and :func:`known_cuboids`.

The sensitivity of cuboids with weights w is the largest of a few linear forms: max_j sum_C a_jC w_C in L1, and the same with
squared weights in squared L2. Choosing uses these forms; noise is always scaled to the certificate of what was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policygraph.effort import SECOND
from policygraph.errors import InputError
from policygraph.model.constraints.margins import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Norm
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.sensitivity.request import proved
from policygraph.transforms.cuboids.lattice import Floats, Lattice

__all__ = ["Costs", "changed_sets", "costs_of", "known_cuboids", "unit_variance"]

GUIDE_WORK = 20 * SECOND
"""For the sensitivity of all candidates together under public facts: a guide, so that a bound will do."""


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

    The set of all attributes together with an appearing record stands as -1.
    """
    if policy.definition == "edges" and policy.graph is not None:
        sets = [lattice.mask(names) for names in policy.graph.difference_sets()]
        return sets + ([-1] if policy.graph.bottom != "none" else [])
    if policy.definition == "induced" and not policy.system.needed:
        return [-1]
    return None


def costs_of(lattice: Lattice, masks: Sequence[int], policy: Policy, norm: Norm) -> Costs:
    """The linear forms of a policy.

    Parameters
    ----------
    masks
        Cuboids that may be measured; none of them below a known one.

    Notes
    -----
    Without public facts the forms are exact: a record that appears changes one cell of every table, and one that moves
    along an edge changes two cells of every table that contains an attribute on which the ends differ. With public
    facts, the sensitivity of all of them together, shared out evenly, is the guide.

    Examples
    --------
    >>> from policygraph.model.graphs import PolicyGraph
    >>> domain = Domain({"sex": 2, "age": 7})
    >>> costs_of(Lattice(domain), [1, 2, 3], Policy(domain, PolicyGraph.attribute(domain)), "l1").forms.tolist()
    [[2.0, 0.0, 2.0], [0.0, 2.0, 2.0]]
    """
    if not isinstance(policy.domain, Domain) or policy.domain != lattice.domain:
        raise InputError("the policy is over another domain than the cube.", code="cubes.domain")
    listed = np.array(masks, dtype=np.int64)
    sets = changed_sets(lattice, policy)
    if sets is None:
        query = CuboidQuery(lattice.domain, [lattice.names(mask) for mask in masks])
        each = float(proved(query, policy, norm, GUIDE_WORK).power) / max(1, len(masks))
        return Costs(tuple(masks), np.full((1, len(masks)), max(each, 1e-12)), norm, exact=False)
    rows = [
        np.ones(len(masks)) if changed < 0 else 2.0 * ((listed & changed) != 0)
        for changed in dict.fromkeys(sets)
    ]
    forms = np.array(rows, dtype=np.float64).reshape(len(rows), len(masks))
    return Costs(tuple(masks), forms, norm, exact=True)
