"""What a verification reports. Owns :class:`Check` and :class:`Verification`."""

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
    """The report on a certificate: it holds, it fails, or something was not decided.

    Examples
    --------
    >>> report = Verification((Check("witness", True, ""), Check("bound", None, "")))
    >>> report.ok, report.failed, report.complete
    (False, False, False)
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether everything was decided and holds. What was not decided is not ok."""
        return all(check.passed is True for check in self.checks)

    @property
    def failed(self) -> bool:
        """Whether something was found to be wrong."""
        return any(check.passed is False for check in self.checks)

    @property
    def complete(self) -> bool:
        """Whether everything was decided, the bound included."""
        return all(check.passed is not None for check in self.checks)

    def __bool__(self) -> bool:
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "ok": self.ok,
            "failed": self.failed,
            "complete": self.complete,
            "checks": [{"name": c.name, "passed": c.passed, "text": c.text} for c in self.checks],
        }

    def __str__(self) -> str:
        mark = {True: "passed", False: "FAILED", None: "open  "}
        lines = [f"{mark[c.passed]}  {c.name}: {c.text}" for c in self.checks]
        if self.failed:
            end = "the certificate does NOT hold"
        elif self.ok:
            end = "the certificate holds"
        else:
            open_ = " and ".join(c.name for c in self.checks if c.passed is None)
            end = f"nothing failed, but not everything could be checked again here: {open_} undecided"
        return "\n".join([*lines, end])
