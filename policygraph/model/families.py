"""Records that change together. Owns :class:`Families`.

It is no :class:`Policy`: code that looks at single records would protect too little, so that whatever does not know families is refused. The theorem is
in ``docs/explanation/proofs/families.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from policygraph.errors import ConstraintError, InputError, RefusedError, shown
from policygraph.model.constraints.tables import StructuralZero
from policygraph.model.domain import Network
from policygraph.model.grouped import Grouped
from policygraph.model.policy import Policy, Verdict

__all__ = ["Families"]


LARGEST = 2**62
"""The most records of a family: sizes are 64-bit integers."""


@dataclass(frozen=True)
class Families(Grouped):
    """Families of records that share their value and change together: if one is sick, all are.

    Parameters
    ----------
    policy
        What one family may hide, stated for a single record: policy graph and public facts.
    size
        The most records of a family.
    exactly
        Whether every record is in a family of exactly so many. Public facts that couple records need it: families of different sizes
        could make up for each other in ways that no bound is proved for.

    Examples
    --------
    Whether a family of ten is there, all sick or all well, needs ten times the noise of a record:

    >>> import policygraph as pg
    >>> domain = pg.Domain({"sick": ["no", "yes"]})
    >>> families = Families(pg.Policy(domain), 10)
    >>> sick = pg.queries.matrix(domain, [[0, 1]])
    >>> int(pg.sensitivity(sick, families).value)
    10
    >>> bool(families.are_neighbours([3, 0], [3, 10])), bool(families.are_neighbours([3, 0], [3, 11]))
    (True, False)
    """

    records: Policy
    size: int
    exactly: bool = False

    def __init__(self, policy: Policy, size: int, exactly: bool = False) -> None:
        if not isinstance(policy, Policy) or isinstance(policy.domain, Network):
            raise InputError(
                f"families under {policy!r}: expected a Policy over tables of records. An edge is there once, and no two of them share a value.",
                code="families.policy",
                value=policy,
            )
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST:
            raise InputError(
                f"size={shown(size)}: expected how many records a family has at most, a whole number from 1 to 2^62.",
                code="families.size",
                value=size,
            )
        if not isinstance(exactly, bool):
            raise InputError(
                f"exactly={exactly!r}: expected True or False.", code="families.size", value=exactly
            )
        coupling = [fact for fact in policy.constraints if not isinstance(fact, StructuralZero)]
        if coupling and not exactly and size > 1:
            raise RefusedError(
                f"families of up to {size} records beside public facts: one family of {size} can be made up for by others of smaller sizes, in changes "
                "that no bound is proved for. Say exactly if every record is in a family of that size, or leave the facts out; where only the number of "
                "records is public, state the full policy graph instead of the total.",
                code="families.facts",
                value=size,
            )
        if policy.at_most_records is not None or policy.strength == "positive":
            raise RefusedError(
                "families beside at_most_records or positive neighbours: what these mean for whole families is not settled. Leave them out.",
                code="families.facts",
            )
        for name, value in (("records", policy), ("size", size), ("exactly", exactly)):
            object.__setattr__(self, name, value)

    def refused(self) -> RefusedError:
        """What is said where families are not known."""
        return RefusedError(
            f"this looks at single records, and the policy hides families of {self.words}. Independent noise on every answer knows families: pg.release without a "
            "mechanism, pg.Laplace() or pg.Gaussian(). Any other mechanism hides them, too, when it is run under the policy for records at "
            f"pg.attacks.group_epsilon(epsilon, {self.size}), if that has a policy graph or public facts, not both.",
            code="families.records",
        )

    @property
    def words(self) -> str:
        """How many records a family has."""
        return f"{'exactly' if self.exactly else 'up to'} {self.size} records"

    @property
    def members(self) -> int:
        """The most records of a family."""
        return self.size

    @property
    def kind(self) -> str:
        """A family."""
        return "family"

    @property
    def step_words(self) -> str:
        """That a family takes a step together."""
        return f"families of {self.words} take such a step together, as one record would"

    def unit_spec(self) -> dict[str, Any]:
        """Plain form of what is beside the policy for records."""
        return {"family": self.size} | ({"exactly": True} if self.exactly else {})

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Families | None:
        """Make it from its plain form; None where that is of another policy.

        Examples
        --------
        >>> from policygraph.model.domain import Domain
        >>> families = Families(Policy(Domain({"a": 2})), 3)
        >>> Families.from_spec(families.to_spec()) == families, Families.from_spec({"domain": {"a": 2}})
        (True, None)
        """
        unit = spec.get("unit")
        if unit is None or "family" not in unit:
            return None
        records = Policy.from_spec({key: value for key, value in spec.items() if key != "unit"})
        return cls(records, unit["family"], unit.get("exactly", False))

    def over(self, policy: Policy) -> Families:
        """The same families under another policy for records."""
        return Families(policy, self.size, self.exactly)

    def check_sizes(self, counts: Any) -> None:
        """Raise when counts cannot be those of families of exactly this size."""
        if self.exactly and np.any(np.asarray(counts) % self.size):
            raise ConstraintError(
                f"a count is not a multiple of {self.size}, and the policy states that every record is in a family of exactly so many.",
                code="families.counts",
            )

    def check_table(self, table: Any) -> None:
        """Raise when a vector of counts does not fit the domain, the published values, or families of exactly this size."""
        flat = self._table(table)
        self.check_sizes(flat)
        self.system.check(flat)

    @cached_property
    def _of_any_values(self) -> Policy:
        """The policy for records whose public facts have any values: those of tables of families are smaller, and moves do not depend on them."""
        if not self.system.has_values:
            return self.records
        spec = self.records.to_spec()
        facts = [{key: value for key, value in fact.items() if key != "equals"} for fact in spec["public"]]
        return Policy.from_spec({**spec, "public": facts})

    def are_neighbours(self, a: Any, b: Any) -> Verdict:
        """Whether two tables of counts differ by what one family hides, with the reason."""
        one, two = self._table(a), self._table(b)
        if self.exactly:
            if np.any(one % self.size) or np.any(two % self.size):
                return Verdict(
                    False, f"a count is not a multiple of {self.size}, and every family has so many records"
                )
            for table in (one, two):
                try:
                    self.system.check(table)
                except ConstraintError as cause:
                    return Verdict(False, f"a table breaks the public facts: {cause}")
            return self._of_any_values.are_neighbours(one // self.size, two // self.size)
        members = gcd(*(two - one).tolist())
        if members > self.size:
            return Verdict(False, f"{members} records change together, and a family has at most {self.size}")
        if not members:
            return Verdict(False, "the tables are equal")
        # Of one family only what it leaves and enters matters: without facts that couple records the others are no part of it.
        step = (two - one) // members
        return self.records.are_neighbours(np.maximum(-step, 0), np.maximum(step, 0))
