"""What a certificate claims. Owns :class:`CertifiedBound`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.sensitivity.verify.tables import Table

__all__ = ["CertifiedBound"]


@dataclass(frozen=True)
class CertifiedBound:
    """What a certificate claims; see :class:`~policygraph.sensitivity.certificate.Sensitivity`, which makes it."""

    policy: Policy
    query: Query
    norm: str
    power: Fraction
    lower_power: Fraction
    witness: tuple[Table, Table] | None
    reason: str
    members: int = 1
    """How many records a family or a unit has that take a step of the policy together."""
    cap: int | None = None
    """How many of them may be in one cell: of a unit, whose records need not share their cell; None for a family."""
