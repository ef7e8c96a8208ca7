"""What a rung of the ladder hands over. Owns :class:`Found`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from policygraph.sensitivity.certificate import Witness

__all__ = ["Found"]


@dataclass(frozen=True)
class Found:
    """A bracket of the sensitivity in integer units of the query (squared for l2).

    Attributes
    ----------
    upper, lower
        Proved bounds; equal when the value is exact.
    witness
        Two neighbours that attain ``lower``.
    method, reason
        How, and why the upper bound holds.
    steps
        What was done before, in words.
    """

    upper: int
    lower: int
    witness: Witness | None
    method: str
    reason: str
    steps: tuple[str, ...] = field(default=())

    @property
    def exact(self) -> bool:
        """Whether the bracket is closed."""
        return self.upper == self.lower

    def after(self, *steps: str) -> Found:
        """Return the same with steps put in front."""
        return replace(self, steps=(*steps, *self.steps))
