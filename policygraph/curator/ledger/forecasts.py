"""When a budget ends at its pace, and what somebody should look at. Owns :class:`Forecast` and :class:`Alert`.

Everything is worked out in fractions of the limit and in whole days, so that two machines that look on one day say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from policygraph.curator.ledger import schema, teams
from policygraph.curator.ledger.accounts import Figures, figures, marks_for
from policygraph.errors import InputError, shown

FAR = 36_500
"""Days after which an end is not worth a date."""


@dataclass(frozen=True)
class Forecast:
    """When a budget ends if spending goes on as it did.

    Attributes
    ----------
    account
        Name of the account.
    on
        The day from which it looks ahead.
    used
        The share of the limit that is spent.
    pace
        The share of the limit that was spent per day, and over how many days.
    days
        How many days the pace is of.
    ends
        The day on which the next charge no longer fits, at this pace; None if nothing was spent, or not within a hundred years.
    until
        The last day of the limit itself.
    """

    account: str
    on: str
    used: Fraction
    pace: Fraction
    days: int
    ends: str | None
    until: str | None

    def __str__(self) -> str:
        said = f"{self.account}: {_percent(self.used)} of the budget is spent"
        if self.ends is not None:
            said += f"; at this pace ({_percent(self.pace * self.days)} in {self.days} {_days(self.days)}) it ends on {self.ends}"
        elif self.pace == 0:
            said += f"; nothing was spent in the last {self.days} {_days(self.days)}"
        else:
            said += "; at this pace it lasts for more than a hundred years"
        if self.until is not None:
            said += f"; its limit {'ended' if self.until < self.on else 'ends'} on {self.until}"
        return said

    def to_json(self) -> dict[str, Any]:
        """Write the forecast as plain JSON values."""
        return {**self.__dict__, "used": str(self.used), "pace": str(self.pace), "text": str(self)}


@dataclass(frozen=True)
class Alert:
    """Something to look at: ``code`` is one of ``overdrawn``, ``expired``, ``low``, ``ends``, ``reservation``."""

    account: str
    code: str
    text: str

    def to_json(self) -> dict[str, str]:
        """Write the alert as plain JSON values."""
        return dict(self.__dict__)


def _days(count: int) -> str:
    return "day" if count == 1 else "days"


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.3g} %"


def forecast_of(
    db: schema.Connection, tree: teams.AccountTree, known: Figures, on: str, days: int | None
) -> Forecast:
    """Look ahead from a day, inside a transaction of the caller."""
    if known.rule is None:
        raise InputError(
            f"Data set {known.title} has no limit, so that it cannot end. Set one first.",
            code="ledger.no-limit",
            dataset=known.dataset,
        )
    if days is not None and (isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= FAR):
        raise InputError(
            f"days={shown(days)}: expected a whole number of days from 1 on.", code="ledger.date"
        )
    here = date.fromisoformat(on)
    keys = tree.below(known.dataset, "share", "group")
    (first,) = db.execute(
        f"SELECT min(time) FROM entries WHERE what = 'charge' AND dataset IN ({marks_for(keys)})", tuple(keys)
    ).fetchone()
    used = known.rule.used(known.total)
    start = here if first is None else min(here, date.fromisoformat(first[:10]))
    if days is not None:
        start = max(start, here - timedelta(days=days - 1))
    length = days or (here - start).days + 1
    before = figures(db, tree, known.dataset, known.name, day=on, before=start.isoformat())
    pace = max(used - known.rule.used(before.total), Fraction(0)) / length
    ends = None
    if used >= 1:
        ends = on
    elif pace > 0 and (1 - used) / pace < FAR:
        ends = (here + timedelta(days=int((1 - used) / pace) + 1)).isoformat()
    return Forecast(known.title, on, used, pace, length, ends, known.until)


def alerts_of(
    db: schema.Connection,
    tree: teams.AccountTree,
    known: Sequence[Figures],
    reservations: Sequence[teams.Reservation],
    on: str,
    below: Fraction | None,
    within: int | None,
) -> list[Alert]:
    """List what is to be looked at on a day, inside a transaction of the caller."""
    if within is not None and (
        isinstance(within, bool) or not isinstance(within, int) or not 0 <= within <= FAR
    ):
        raise InputError(f"within={shown(within)}: expected a whole number of days.", code="ledger.date")
    last = None if within is None else (date.fromisoformat(on) + timedelta(days=within)).isoformat()
    found: list[Alert] = []
    for each in known:
        if each.rule is None:
            continue
        used = each.rule.used(each.claimed)
        left = max(1 - used, Fraction(0))
        if each.expired:
            found.append(Alert(each.title, "expired", f"its limit ended on {each.until}"))
        if used > 1:
            found.append(
                Alert(each.title, "overdrawn", f"{_percent(used)} of the limit is spent or reserved")
            )
        if below is not None and left < below:
            found.append(
                Alert(
                    each.title, "low", f"{_percent(left)} of the limit is left, less than {_percent(below)}"
                )
            )
        if last is None or each.expired:
            continue
        if each.until is not None and each.until <= last:
            found.append(Alert(each.title, "ends", f"its limit ends on {each.until}"))
        ahead = forecast_of(db, tree, each, on, None)
        if ahead.ends is not None and ahead.ends <= last:
            found.append(Alert(each.title, "ends", f"at this pace it ends on {ahead.ends}"))
    for one in reservations:
        if last is not None and one.status == "open" and one.until is not None and one.until <= last:
            found.append(
                Alert(
                    one.name or one.dataset,
                    "reservation",
                    f"reservation {one.number} of {one.left} ends on {one.until}",
                )
            )
    return found
