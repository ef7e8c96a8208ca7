"""Budgets of counted work, so that the same request gives the same answer on every machine. Owns :class:`Effort`.

A search that stops after so many seconds proves less on a busy machine than on an idle one, and noise would depend on the
load. Searches therefore count what they do. A clock is looked at only where a caller asks for one (``time_limit``), and a
result that it cut short says so.
"""

from __future__ import annotations

import time
from fractions import Fraction
from math import ceil
from typing import Any

from policygraph.errors import InputError

__all__ = ["SECOND", "Effort"]

LONGEST = 10**12
"""Seconds that stand for any longer limit in time; a larger integer need not have a float."""
SECOND = 1_000_000
"""Units of work in about one second of an ordinary machine: a unit is a step of plain Python or a hundred compiled steps."""


class Effort:
    """A budget of counted work, and a clock where the caller set one.

    Parameters
    ----------
    work
        Units that may be spent; None for no end. A unit is about a microsecond of an ordinary machine, see ``SECOND``.
    seconds
        Seconds of wall clock that may pass, when the caller asked for a limit in time; None for no clock.

    Examples
    --------
    >>> effort = Effort(10)
    >>> effort.spend(4)
    >>> effort.left, effort.done
    (6, False)
    >>> half = effort.share(1, 2)
    >>> half.spend(3)
    >>> half.done, effort.left
    (True, 3)

    Notes
    -----
    What a share spends is spent by the whole as well. Spending never raises: a search looks at ``done`` between steps
    whose cost is bounded, and hands back what it has proved by then.
    """

    __slots__ = ("_clock", "_whole", "spent", "trusted", "work")

    def __init__(self, work: int | None = None, *, seconds: float | None = None) -> None:
        self.work = work
        self.spent = 0
        self.trusted = ""
        self._whole: Effort | None = None
        self._clock = None if seconds is None else _Clock(float(min(seconds, LONGEST)))

    @classmethod
    def of(
        cls, effort: Effort | int | None, time_limit: float | None = None, *, usual: int | None = None
    ) -> Effort:
        """Make the effort of a call from its arguments.

        Parameters
        ----------
        effort
            An effort, which is used as it is; units of work; or None for ``usual``.
        time_limit
            Seconds, where the caller asked for a limit in time.
        usual
            Units of work when nothing is asked for.

        Raises
        ------
        InputError
            For a number that is not positive, or a time limit beside an effort that has its own clock.

        Examples
        --------
        >>> Effort.of(None, usual=5).left, Effort.of(7).left
        (5, 7)
        """
        if time_limit is not None and not (isinstance(time_limit, (int, float)) and time_limit >= 0):
            raise InputError(
                f"time_limit={time_limit!r}: expected seconds, or None for no clock.",
                code="effort.time-limit",
                value=time_limit,
            )
        if isinstance(effort, Effort):
            if time_limit is not None:
                raise InputError(
                    "effort and time_limit are both given: expected Effort(work, seconds=...) or one of them.",
                    code="effort.both",
                )
            return effort
        if effort is not None and (isinstance(effort, bool) or not isinstance(effort, int) or effort < 0):
            raise InputError(
                f"effort={effort!r}: expected a whole number of units of work, about {SECOND:,} a second.",
                code="effort.work",
                value=effort,
            )
        return cls(usual if effort is None else effort, seconds=time_limit)

    def share(self, numerator: int, denominator: int = 1) -> Effort:
        """Give a part of what is left, of the seconds as well, to a step; what it does not spend stays here."""
        part, of = Effort.__new__(Effort), Fraction(numerator, denominator)
        left, clock = self.left, self._clock
        part.work = None if left is None else int(left * of)
        part.spent, part.trusted, part._whole = 0, "", self
        part._clock = clock if clock is None or of >= 1 else _Clock(clock.left() * float(of), clock)
        return part

    def at_most(self, work: int) -> Effort:
        """Give so many units to a step, or what is left when that is less."""
        part = self.share(1)
        part.work = work if part.work is None else min(part.work, work)
        return part

    def spend(self, work: int = 1) -> None:
        """Count work as done, here and in the whole that this is a share of."""
        self.spent += work
        if self._whole is not None:
            self._whole.spend(work)

    def trust(self, what: str) -> None:
        """Note what a step took on trust, here and in the whole that this is a share of, so that the result can say so.

        Examples
        --------
        >>> effort = Effort(10)
        >>> effort.share(1, 2).trust("two solvers agree")
        >>> effort.trusted
        'two solvers agree'
        """
        self.trusted = what
        if self._whole is not None:
            self._whole.trust(what)

    def affords(self, work: int) -> bool:
        """Whether a step of this size fits into what is left, also into the seconds of a caller's clock."""
        left, clock = self.left, self._clock
        if clock is not None and work > clock.left() * SECOND:
            clock.ring()
            return False
        return left is None or work <= left

    def drain(self) -> None:
        """Count all that is left as spent, so that a step that gave up costs the same however it noticed."""
        left = self.left
        if left:
            self.spend(left)

    def solve(self, solver: Any, model: Any, *, rate: int = 1) -> Any:
        """Run a CP-SAT solver on one thread within what is left, in its own deterministic time, and count that.

        Parameters
        ----------
        solver, model
            A ``CpSolver`` and a ``CpModel`` of OR-Tools.
        rate
            Seconds that a second of its deterministic time takes, which is more for large models.

        Returns
        -------
        status
            What ``solver.solve`` returns.
        """
        left, seconds = self.left, self.seconds
        solver.parameters.num_workers = 1
        if left is not None:
            solver.parameters.max_deterministic_time = left / (SECOND * rate)
        if seconds is not None:
            solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(model)
        self.spend(ceil(solver.response_proto.deterministic_time * SECOND * rate))
        settled = solver.status_name(status) in ("OPTIMAL", "INFEASIBLE")
        if (
            seconds is not None
            and self._clock is not None
            and not settled
            and solver.wall_time >= 0.9 * seconds
        ):
            self._clock.ring()
        return status

    @property
    def endless(self) -> bool:
        """Whether neither work nor seconds are limited."""
        return self._clock is None and self.left is None

    @property
    def ended_by(self) -> str:
        """What ended a search, in words for a reason: the work, which every run repeats, or the caller's clock."""
        work, part = self.work, self
        while part._whole is not None:
            part = part._whole
            work = work if part.work is None else part.work
        if self.cut_short or work is None:
            return "the time limit ended the search, and another run may prove less or more"
        return f"the effort of {work:,} units did not suffice, and the same request gives the same answer"

    @property
    def left(self) -> int | None:
        """Units that are left, never negative; None for no end."""
        mine = None if self.work is None else max(0, self.work - self.spent)
        if self._whole is None or (above := self._whole.left) is None:
            return mine
        return above if mine is None else min(mine, above)

    @property
    def done(self) -> bool:
        """Whether a search must stop: the work is spent, or the caller's seconds have passed."""
        return self.left == 0 or (self._clock is not None and self._clock.passed())

    @property
    def cut_short(self) -> bool:
        """Whether the caller's clock, and not the work, ended something: another run may prove more."""
        return self._clock is not None and self._clock.rang

    @property
    def seconds(self) -> float | None:
        """Seconds that the caller's clock leaves; None without a clock."""
        return None if self._clock is None else self._clock.left()

    def steps(self, per_unit: int, most: int) -> int:
        """Steps that a compiled loop may take before it hands back, at most ``most``; at least one while anything is left.

        Parameters
        ----------
        per_unit
            Steps of the loop that make one unit of work.
        most
            A bound that keeps the loop short enough for a clock and for Ctrl-C.
        """
        left = self.left
        return most if left is None else min(most, left * per_unit)


class _Clock:
    """An instant that a caller set, and whether a search was seen to reach it."""

    def __init__(self, seconds: float, whole: _Clock | None = None) -> None:
        self.end = time.monotonic() + seconds
        self.whole = whole
        self.rang = False

    def left(self) -> float:
        return max(0.0, self.end - time.monotonic())

    def passed(self) -> bool:
        over = time.monotonic() >= self.end
        if over and not self.rang:
            self.ring()
        return over

    def ring(self) -> None:
        """Note that a step was ended by the clock, here and for the whole that the step belongs to."""
        self.rang = True
        if self.whole is not None:
            self.whole.ring()
