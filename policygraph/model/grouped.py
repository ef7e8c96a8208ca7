"""Policies that hide several records at once. Owns :class:`Grouped`, what families and units have in common.

They are no :class:`Policy`: code that looks at single records would protect too little, so that whatever does not know them is refused.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NoReturn

from policygraph.errors import RefusedError
from policygraph.model.constraints.base import AnyDomain
from policygraph.model.node_privacy import OF_POLICIES
from policygraph.model.policy import Policy
from policygraph.model.queries.base import fingerprint
from policygraph.model.system import System

__all__ = ["Grouped", "records_of"]

OF_RECORDS = OF_POLICIES | {"decompose", "move_graph", "neighbour_graph"}


class Grouped:
    """A policy for single records, and how many of them are hidden together.

    Attributes
    ----------
    records
        What a single record hides: policy graph and public facts.
    """

    records: Policy

    @property
    def members(self) -> int:
        """The most records that are hidden together."""
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """What they belong to, in a word."""
        raise NotImplementedError

    @property
    def step_words(self) -> str:
        """What a step of the policy is, after the definition for a record."""
        raise NotImplementedError

    def refused(self) -> RefusedError:
        """What is said where the policy is not known."""
        raise NotImplementedError

    def unit_spec(self) -> dict[str, Any]:
        """Plain form of what is beside the policy for records."""
        raise NotImplementedError

    def over(self, policy: Policy) -> Any:
        """The same under another policy for records."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> NoReturn:
        # What code for single records would ask of a policy; answering it would let a record pass for all of them. So would a default: this is no
        # AttributeError, and getattr(policy, "graph", None) is refused as well.
        if name in OF_RECORDS:
            raise self.refused()
        raise AttributeError(name)

    @property
    def domain(self) -> AnyDomain:
        """What a record can be."""
        return self.records.domain

    @property
    def unknown(self) -> Any:
        """What is done with labels outside the domain."""
        return self.records.unknown

    @property
    def system(self) -> System:
        """The public facts taken together, which are about records."""
        return self.records.system

    @cached_property
    def fingerprint(self) -> str:
        """Stable name of the policy."""
        return fingerprint({"records": self.records.fingerprint, "unit": self.unit_spec()})

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files, certificates and fingerprints."""
        return {**self.records.to_spec(), "unit": self.unit_spec()}

    def _table(self, values: Any) -> Any:
        return self.records._table(values)


def records_of(policy: Any) -> Policy:
    """The policy for single records behind a policy: graph and public facts in words; never to scale noise to."""
    made: Policy = policy.records if isinstance(policy, Grouped) else policy
    return made
