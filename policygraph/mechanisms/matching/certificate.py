"""The proof that a cover by pairs and singles is cheapest. Owns :class:`Certificate` and :class:`Cover`.

Everything is checked in whole numbers and without the solver: ``docs/explanation/proofs/matching-partition.md`` has the argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import RefusedError

Ints = npt.NDArray[np.int64]
Blossoms = tuple[tuple[tuple[int, ...], int], ...]

SCALE = 4
"""Potentials are in quarters of a unit of cost, so that they are whole numbers."""
ROWS = 256


@dataclass(frozen=True, eq=False)
class Certificate:
    """A solution of the dual problem: a potential for each vertex, and values for some odd sets.

    Attributes
    ----------
    potentials
        In quarters: y[v] <= 4 cost(v), and y[u] + y[v] <= 4 cost(u, v) + the values of the blossoms that hold u and v.
    blossoms
        Odd sets of vertices with their values >= 0.
    """

    potentials: Ints
    blossoms: Blossoms

    def verify(self, pairs: Ints, singles: Ints, partner: Ints) -> int:
        """Check that a cover is cheapest, and return its cost.

        Parameters
        ----------
        pairs
            Symmetric matrix of the costs of pairs.
        singles
            Costs of single vertices.
        partner
            The other end of the pair of each vertex, or the vertex itself.

        Raises
        ------
        RefusedError
            When the certificate does not prove it.

        Notes
        -----
        A cover has at most (|B| - 1) / 2 pairs inside an odd set B. So 4 times its cost is at least the sum of the potentials
        minus (|B| - 1) / 2 times the value of each B, and a cover that attains this is cheapest.
        """
        cost = cover_cost(pairs, singles, partner)
        y = self.potentials
        value = int(y.sum())
        for members, z in self.blossoms:
            if z < 0 or len(members) % 2 == 0 or len(set(members)) != len(members):
                raise unproved("a blossom is not an odd set with a value >= 0")
            value -= z * (len(members) // 2)
        if np.any(y > SCALE * singles):
            raise unproved("a potential exceeds the cost of a single")
        u, v = listed(pairs, y, -1)
        if np.any(slacks(pairs, y, self.blossoms, u, v) < 0):
            raise unproved("two potentials exceed the cost of a pair")
        if value != SCALE * cost:
            raise unproved(f"the dual value is {value}, the cover costs {SCALE * cost}")
        return cost


@dataclass(frozen=True, eq=False)
class Cover:
    """Pairs and singles of least total cost, with the proof.

    Attributes
    ----------
    partner
        The other end of the pair of each vertex, or the vertex itself.
    cost
        The total.
    certificate
        Proves that no cover is cheaper.
    fractional
        Feasible potentials without blossoms, in quarters: a lower bound.
    trees
        Alternating trees that were grown after the fractional problem.
    kept
        Pairs that the trees were grown on.
    nodes
        What the vertices are called, if they came with a networkx graph.
    """

    partner: Ints
    cost: int
    certificate: Certificate
    fractional: Ints
    trees: int
    kept: int
    nodes: tuple[Any, ...] | None = None

    @property
    def pairs(self) -> tuple[tuple[Any, Any], ...]:
        """The pairs in order, the earlier vertex first; by name if the vertices have names."""
        at = np.arange(len(self.partner))
        lower = self.partner > at
        found = zip(at[lower].tolist(), self.partner[lower].tolist(), strict=True)
        return tuple(found) if self.nodes is None else tuple((self.nodes[u], self.nodes[v]) for u, v in found)


def listed(pairs: Ints, y: Ints, most: int) -> tuple[Ints, Ints]:
    """Pairs u < v with 4 cost - y[u] - y[v] at most ``most``."""
    n = len(y)
    found_u, found_v = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for start in range(0, n, ROWS):
        rows = np.arange(start, min(start + ROWS, n))
        slack = SCALE * pairs[start : start + ROWS, start:]
        slack -= y[rows, None] + (y[None, start:] + most)
        i, j = np.nonzero(slack <= 0)
        above = j > i
        found_u.append(rows[i[above]])
        found_v.append(j[above] + start)
    return np.concatenate(found_u), np.concatenate(found_v)


def slacks(pairs: Ints, y: Ints, blossoms: Blossoms, u: Ints, v: Ints) -> Ints:
    """Slack of some pairs under potentials and blossoms; refused unless any two blossoms are nested or disjoint."""
    slack: Ints = SCALE * pairs[u, v] - y[u] - y[v]
    if not blossoms or not len(u):
        return slack
    from policygraph.mechanisms.matching._compiled_blossoms import shared

    innermost = np.full(len(y), -1, dtype=np.int64)
    around, depth, total = (np.zeros(len(blossoms), dtype=np.int64) for _ in range(3))
    for at, (members, z) in enumerate(sorted(blossoms, key=lambda blossom: -len(blossom[0]))):
        inside = np.array(members)
        outer = innermost[inside]
        if np.any(outer != outer[0]):
            raise unproved("two blossoms cross")
        parent = int(outer[0])
        around[at] = parent
        depth[at] = depth[parent] + 1 if parent >= 0 else 0
        total[at] = z + (total[parent] if parent >= 0 else 0)
        innermost[inside] = at
    shared(u, v, innermost, around, depth, total, slack)
    return slack


def cover_cost(pairs: Ints, singles: Ints, partner: Ints) -> int:
    """Cost of a cover, after a check that it is one."""
    at = np.arange(len(singles))
    if not np.array_equal(partner[partner], at):
        raise unproved("the partners are not mutual")
    lower = partner > at
    return int(singles[partner == at].sum()) + int(pairs[at[lower], partner[lower]].sum())


def unproved(why: str) -> RefusedError:
    """The error for a solution that is not proved."""
    return RefusedError(
        f"the matching is not proved to be optimal: {why}. Expected a certificate that holds; this is a fault of the solver.",
        code="matching.certificate",
    )
