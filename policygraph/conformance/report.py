"""What a check found. Owns :class:`CheckedRule`, :class:`Conformance`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from policygraph.errors import PolicyGraphError

Trial = Callable[[], str | None]


@dataclass(frozen=True)
class CheckedRule:
    """One thing that was tried: what must hold, and what was found wrong (None when it held)."""

    rule: str
    fault: str | None

    def __str__(self) -> str:
        return f"{'ok  ' if self.fault is None else 'FAIL'} {self.rule}" + (
            f": {self.fault}" if self.fault else ""
        )


@dataclass(frozen=True)
class Conformance:
    """The outcome of all checks of one plug-in.

    Attributes
    ----------
    subject
        What was checked.
    checks
        Each rule with its fault, if any.
    """

    subject: str
    checks: tuple[CheckedRule, ...]

    @property
    def passed(self) -> bool:
        """Whether no fault was found."""
        return all(check.fault is None for check in self.checks)

    @property
    def faults(self) -> list[str]:
        """The rules that were broken, with what was found."""
        return [f"{check.rule}: {check.fault}" for check in self.checks if check.fault is not None]

    def __str__(self) -> str:
        return "\n".join([self.subject, *(f"  {check}" for check in self.checks)])


def tried(subject: str, trials: Iterator[tuple[str, Trial]]) -> Conformance:
    """Run trials; what one raises is its fault, since a plug-in that fails must not hide what comes after."""
    checks = []
    for rule, trial in trials:
        try:
            fault = trial()
        except Exception as cause:
            fault = f"{type(cause).__name__}: {cause}"
        checks.append(CheckedRule(rule, fault))
    return Conformance(subject, tuple(checks))


def refused(attempt: Callable[[], Any], what: str) -> str | None:
    """Give the fault of accepting something that must be an error of ours; None when it is refused."""
    try:
        attempt()
    except PolicyGraphError:
        return None
    return f"{what} was accepted; expected an error of policygraph.errors"
