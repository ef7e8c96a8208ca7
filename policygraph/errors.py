"""The errors of the whole package; imported by every room.

An error says the value it met, what was expected and what to do, carries the objects it speaks of
(``details``) and a stable ``code`` that ``docs/reference/errors.md`` lists.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "BudgetError",
    "ConstraintError",
    "DataError",
    "InputError",
    "LedgerError",
    "PolicyGraphError",
    "RefusedError",
    "shown",
]


def shown(value: Any, most: int = 60) -> str:
    """Print a value that was met, for a message: in one line, and cut when it is long.

    Examples
    --------
    >>> shown("F"), shown(list(range(100)), 20), shown(10**9999)
    ("'F'", '[0, 1, 2, 3, 4, 5...', 'a number of 33216 bits')
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        # Python prints no integer of more than 4,300 digits, and no list that is nested more than 1,000 times.
        text = (
            f"a number of {value.bit_length()} bits"
            if isinstance(value, int)
            else f"{type(value).__name__} too large to show"
        )
    return text if len(text) <= most else text[: most - 3] + "..."


class PolicyGraphError(Exception):
    """Base of all errors raised on purpose.

    Parameters
    ----------
    message
        What was met, what was expected, what to do.
    code
        Stable name of the case, e.g. ``"domain.unknown-label"``.
    details
        The objects the message speaks of.

    Examples
    --------
    >>> error = InputError("theta=0: expected an integer >= 1.", code="graph.theta", theta=0)
    >>> error.code, error.details["theta"]
    ('graph.theta', 0)
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, code: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


class InputError(PolicyGraphError, ValueError):
    """A value, file or option that cannot be used as given."""

    exit_status = 2


class ConstraintError(InputError):
    """Public facts that contradict each other, or a table that does not meet them."""


class DataError(InputError):
    """Records that do not fit the domain of the policy."""


class RefusedError(PolicyGraphError):
    """No proved answer can be given; a number would be a guess."""

    exit_status = 2


class BudgetError(PolicyGraphError):
    """The privacy budget does not allow the request."""

    exit_status = 3


class LedgerError(PolicyGraphError):
    """The ledger file cannot be read, written or trusted."""

    exit_status = 2
