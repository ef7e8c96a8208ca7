"""What an audit found. Owns :class:`Finding` and :class:`AuditReport`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from policygraph.audit.bounds import Claim
from policygraph.audit.pairs import Pair


@dataclass(frozen=True, eq=False)
class Finding:
    """One event, counted on fresh outputs of two neighbouring tables.

    Attributes
    ----------
    pair
        The two tables.
    likelier
        On which of them the event was expected to be likelier: ``first`` or ``second``.
    event
        The event in words.
    hits, hits_other
        How often it happened on that table and on the other.
    runs
        Outputs of each table that were looked at.
    least
        Lower bound on the loss that this event shows.
    """

    pair: Pair
    likelier: str
    event: str
    hits: int
    hits_other: int
    runs: int
    least: float

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "pair": self.pair.to_dict(),
            "likelier": self.likelier,
            "event": self.event,
            "hits": self.hits,
            "hits_other": self.hits_other,
            "runs": self.runs,
            "lower_bound": self.least,
        }


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What an audit found, and with what confidence.

    Attributes
    ----------
    claim
        What the mechanism claims.
    confidence
        Probability with which all lower bounds of this report hold together.
    samples
        Runs of the mechanism on each table: half to choose events by, half to test them.
    pairs
        The pairs of tables that were compared.
    findings
        The events that were tested, the strongest first.
    source
        Where the randomness came from.
    """

    claim: Claim
    confidence: float
    samples: int
    pairs: tuple[Pair, ...]
    findings: tuple[Finding, ...]
    source: str

    @property
    def passed(self) -> bool:
        """Whether no event refutes the claim; this is no proof that the claim holds."""
        return not self.claim.refuted_by(self.lower_bound)

    @property
    def worst(self) -> Finding | None:
        """The event with the largest lower bound."""
        return self.findings[0] if self.findings else None

    @property
    def lower_bound(self) -> float:
        """Lower bound on the loss, in the quantity that is claimed."""
        return self.findings[0].least if self.findings else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "passed": self.passed,
            "claim": self.claim.loss.to_json(),
            "quantity": self.claim.quantity,
            "lower_bound": self.lower_bound,
            "confidence": self.confidence,
            "samples": self.samples,
            "pairs": len(self.pairs),
            "source": self.source,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __str__(self) -> str:
        scope = (
            f"confidence {_percent(self.confidence)}, {self.samples} runs of each table, "
            f"{len(self.pairs)} pair{'' if len(self.pairs) == 1 else 's'} of neighbours"
        )
        worst = self.worst
        if not self.pairs:
            return f"passed: the policy has no neighbours that differ, so that nothing can leak ({self.claim} claimed)"
        if worst is None:
            return f"passed: no event differed between neighbours; {self.claim} is claimed ({scope})"
        name, least = self.claim.quantity, f"{self.lower_bound:.3f}"
        if self.passed:
            head = f"passed: no event refutes {self.claim}; the strongest shows {name} >= {least} ({scope})"
        else:
            head = f"LEAK: {name} >= {least} where {self.claim} is claimed ({scope})"
        first, second = (
            (worst.hits, worst.hits_other) if worst.likelier == "first" else (worst.hits_other, worst.hits)
        )
        return "\n".join(
            [
                head,
                f"  tables:  {worst.pair}",
                f"  event:   {worst.event}",
                f"  counted: {first} of {worst.runs} on the first table, {second} of {worst.runs} on the second",
            ]
        )


def _percent(share: float) -> str:
    return f"{100 * share:.6g} %"
