"""What a verification reports. Owns :class:`Check` and :class:`Verification`; imports nothing of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Check", "Verification"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: True passed, False failed, None not decided here."""

    name: str
    passed: bool | None
    text: str


@dataclass(frozen=True)
class Verification:
    """The report on a certificate."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.passed is not False for check in self.checks)

    @property
    def complete(self) -> bool:
        """Whether everything was decided, the bound included."""
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "ok": self.ok,
            "complete": self.complete,
            "checks": [{"name": c.name, "passed": c.passed, "text": c.text} for c in self.checks],
        }

    def __str__(self) -> str:
        mark = {True: "passed", False: "FAILED", None: "open  "}
        lines = [f"{mark[c.passed]}  {c.name}: {c.text}" for c in self.checks]
        end = (
            "the certificate holds"
            if self.complete
            else "nothing failed"
            if self.ok
            else "the certificate does NOT hold"
        )
        return "\n".join([*lines, end])
