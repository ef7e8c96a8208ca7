"""Accounts inside accounts, reservations, and dates: what a team needs beside limits and charges.

Owns the tree of accounts, :class:`Reservation`, the days on which limits and reservations end, and how names are compared by eye. It is read inside a
transaction of :mod:`.book`. An account is put inside another once and never moves: whoever could move it could leave a limit behind.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, Literal

from policygraph.curator.ledger import schema
from policygraph.errors import InputError, LedgerError, shown
from policygraph.model.loss import Epsilon, Loss, Rho, loss_from_json

DEEPEST = 16
"""Most accounts inside each other."""
MOST_LABELS = 20

Clock = Callable[[], datetime]
"""What tells the time."""

_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝьӏкмтвнгп" + "αοιρνκτυχεηβγωμ" + "ıɑɡ01",
    "aeopcyxijshdqwblkmtbhrn" + "aoipvktuxenbywu" + "iagol",
)
"""Letters that are taken for others by eye: Cyrillic, Greek, and a few of Latin; not a complete list."""


@dataclass(frozen=True)
class Reservation:
    """A loss that is kept for somebody until a day, and what is left of it.

    Attributes
    ----------
    number
        What it is known by.
    dataset, name
        The account.
    loss, left
        What was reserved, and what can still be spent from it; None for nothing.
    until
        The last day on which it holds, as ``2027-01-31``; None for no end.
    status
        ``open``, ``spent``, ``expired``, or ``closed`` when it was given back.
    time, details
        When it was made, and by whom and what for.
    """

    number: int
    dataset: str
    name: str | None
    loss: Loss
    left: Loss | None
    until: str | None
    status: Literal["open", "spent", "expired", "closed"]
    time: str
    details: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Write the reservation as plain JSON values."""
        return {
            **self.__dict__,
            "loss": self.loss.to_json(),
            "left": self.left and self.left.to_json(),
            "details": dict(self.details),
        }


def machine_clock() -> datetime:
    """The time of this machine in UTC: the one place at which the ledger looks at a clock."""
    return datetime.now(UTC)


def time_of(clock: Clock) -> str:
    """The time that a clock tells, in UTC, to the millisecond."""
    now = clock()
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InputError(
            f"clock gave {shown(now)}: expected a datetime with a time zone, such as datetime.now(UTC).",
            code="ledger.clock",
            value=now,
        )
    return now.astimezone(UTC).isoformat(timespec="milliseconds")


def day_of(value: str | date | None, name: str) -> str | None:
    """Read a day.

    Examples
    --------
    >>> day_of("2027-01-31", "until")
    '2027-01-31'
    """
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return None if value is None else value.isoformat()
    try:
        if not isinstance(value, str) or len(value) != 10:
            raise ValueError
        return date.fromisoformat(value).isoformat()
    except ValueError as cause:
        raise InputError(
            f"{name}={shown(value)}: expected a day such as 2027-01-31.", code="ledger.date", value=value
        ) from cause


def look(name: str) -> str:
    """What a name looks like: equal for names that are easily taken for each other.

    Examples
    --------
    >>> look("People ") == look("people") == look("реоple")
    True
    """
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    plain = "".join(each for each in text if not unicodedata.combining(each) and not each.isspace())
    return plain.translate(_ALIKE)


def check_new_name(db: schema.Connection, name: str, *, opening: bool = False) -> None:
    """Refuse a name that looks like that of another account, or that says it is inside one without being so.

    Raises
    ------
    InputError
        With the name that it looks like.
    """
    known = [known for (known,) in db.execute("SELECT name FROM datasets WHERE name IS NOT NULL")]
    for other in known:
        if other != name and look(other) == look(name):
            raise InputError(
                f"name={name!r}: looks like {other!r}, another account of the ledger. Use that name, or one that cannot be taken for it.",
                code="ledger.name-alike",
                name=name,
                other=other,
            )
    parent = name.rpartition("/")[0]
    if parent in known and not opening:
        raise InputError(
            f"name={name!r}: there is no such account inside {parent!r}. Check the spelling, or open it first: policygraph budget open "
            f"LEDGER {name}.",
            code="ledger.no-account",
            name=name,
        )


def data_root(db: schema.Connection, key: str) -> str:
    """The account of the data of which an account is a share: itself, unless it is inside another as a share."""
    for _ in range(DEEPEST):
        row = db.execute("SELECT parent FROM parents WHERE dataset = ? AND kind = 'share'", (key,)).fetchone()
        if row is None:
            return key
        key = str(row[0])
    raise _circle(key)


def _circle(key: str) -> LedgerError:
    return LedgerError(
        f"The ledger is damaged: account {key} is inside itself. Restore the latest copy of the file.",
        code="ledger.damaged",
    )


@dataclass(frozen=True)
class AccountTree:
    """Which accounts are inside which, and the day of the ledger; read once in a transaction.

    Attributes
    ----------
    parents
        What each account is directly inside, and how: as a ``share`` of the same data, or as a member of a ``group``.
    names
        Names of the accounts that are inside others or hold others.
    day
        That of the clock, or that of the latest line, if a clock was set back since.
    reserving
        Whether anything was ever reserved.
    """

    parents: Mapping[str, tuple[str, str]]
    names: Mapping[str, str | None]
    day: str
    reserving: bool

    @classmethod
    def read(cls, db: schema.Connection, time: str) -> AccountTree:
        """Read the tree at a time that a clock tells."""
        rows = db.execute(
            "SELECT p.dataset, p.parent, p.kind, c.name, o.name FROM parents p JOIN datasets c ON c.dataset = p.dataset "
            "JOIN datasets o ON o.dataset = p.parent ORDER BY p.dataset"
        ).fetchall()
        charged, held = db.execute(
            "SELECT (SELECT max(time) FROM entries), (SELECT max(time) FROM reservations)"
        ).fetchone()
        names = {
            key: name
            for dataset, parent, _, mine, theirs in rows
            for key, name in ((dataset, mine), (parent, theirs))
        }
        day = max(str(each)[:10] for each in (time, charged, held) if each is not None)
        return cls(
            {dataset: (parent, kind) for dataset, parent, kind, *_ in rows}, names, day, held is not None
        )

    def line_of(self, key: str) -> list[str]:
        """An account and all that it is inside, from the innermost to the outermost."""
        line = [key]
        while line[-1] in self.parents:
            line.append(self.parents[line[-1]][0])
            if len(line) > DEEPEST or line[-1] in line[:-1]:
                raise _circle(key)
        return line

    def root_of(self, key: str) -> str:
        """The account of the data of which an account is a share."""
        return next(each for each in self.line_of(key) if self.parents.get(each, ("", ""))[1] != "share")

    def inside(self, key: str, *kinds: str) -> list[str]:
        """Accounts that were put directly inside one."""
        return [child for child, (parent, kind) in self.parents.items() if parent == key and kind in kinds]

    def below(self, key: str, *kinds: str) -> list[str]:
        """An account and all below it."""
        found = [key]
        for each in found:
            found += self.inside(each, *kinds)
            if len(found) > len(self.parents) + 1:
                raise _circle(key)
        return found

    def shares(self, key: str) -> list[str]:
        """An account and all shares below it."""
        return self.below(key, "share")

    def members(self, key: str) -> list[str]:
        """Data sets and groups that a group holds; empty for an account that is no group."""
        return self.inside(key, "group")

    def check_place(self, db: schema.Connection, child: str, parent: str, kind: str) -> None:
        """Refuse to put an account where it cannot be.

        Raises
        ------
        InputError
            For an account inside itself, a second place, a group as a share, or too many levels.
        """
        above = self.line_of(parent)
        base = len(self.line_of(child))
        deepest = max(len(self.line_of(each)) for each in self.below(child, "share", "group")) - base + 1
        reason = None
        if child in above:
            reason = "it would be inside itself"
        elif child in self.parents:
            reason = "it is inside another account already, and accounts never move"
        elif len(above) + deepest > DEEPEST:
            reason = f"there would be more than {DEEPEST} accounts inside each other"
        elif kind == "share" and self.members(parent):
            reason = "the outer account is a group of data sets, which has no shares of its own"
        elif kind == "group" and self._holds_data(db, parent):
            reason = "the outer account is of a data set, and a group holds data sets only"
        if reason is not None:
            raise InputError(
                f"an account cannot be put there: {reason}.",
                code="ledger.account",
                child=child,
                parent=parent,
            )

    def _holds_data(self, db: schema.Connection, key: str) -> bool:
        charged = db.execute("SELECT 1 FROM entries WHERE dataset = ? AND what = 'charge'", (key,)).fetchone()
        held = db.execute("SELECT 1 FROM reservations WHERE dataset = ?", (key,)).fetchone()
        share = self.parents.get(key, ("", ""))[1] == "share"
        return bool(charged or held or share or self.inside(key, "share"))

    def check_chargeable(self, key: str, title: str) -> None:
        """Refuse to charge a group: its data sets are charged, and count in it."""
        if self.members(key):
            raise InputError(
                f"account {title!r} is a group of data sets. Charge one of its data sets; the charge counts in the group.",
                code="ledger.group",
                account=title,
            )


def reservations(db: schema.Connection, keys: Sequence[str], day: str) -> list[Reservation]:
    """The reservations of some accounts, with what is left of each on a day."""
    places = ", ".join("?" * len(keys))
    rows = db.execute(
        "SELECT r.number, r.dataset, name, loss, until, r.content, r.time, c.number FROM reservations r JOIN datasets d ON d.dataset = r.dataset "
        f"LEFT JOIN closings c ON c.number = r.number WHERE r.dataset IN ({places}) ORDER BY r.number",
        tuple(keys),
    ).fetchall()
    if not rows:
        return []
    spent: dict[int, list[Loss]] = {}
    for text, content in db.execute(
        f"SELECT loss, details.content FROM entries JOIN details USING (number) WHERE what = 'charge' AND dataset IN ({places})",
        tuple(keys),
    ).fetchall():
        number = json.loads(content).get("reservation")
        if number is not None:
            loss = loss_from_json(json.loads(text))
            spent.setdefault(number, []).extend([loss] if isinstance(loss, (Epsilon, Rho)) else [])
    found: list[Reservation] = []
    for number, dataset, name, text, until, content, time, closed in rows:
        loss = loss_from_json(json.loads(text))
        if not isinstance(loss, (Epsilon, Rho)):
            raise LedgerError(f"The ledger is damaged: reservation {number}.", code="ledger.damaged")
        left = rest_of(loss, spent.get(number, []))
        status: Literal["open", "spent", "expired", "closed"] = "open"
        if closed is not None:
            status = "closed"
        elif left is None:
            status = "spent"
        elif until is not None and until < day:
            status = "expired"
        found.append(Reservation(number, dataset, name, loss, left, until, status, time, json.loads(content)))
    return found


def rest_of(loss: Loss, spent: Sequence[Loss]) -> Loss | None:
    """What is left of a reserved loss.

    Examples
    --------
    >>> print(rest_of(Epsilon(1), [Epsilon(0.25), Epsilon(0.25)]), rest_of(Rho(1), [Epsilon(1), Rho(0.5)]))
    epsilon = 0.5 None
    """
    rest = loss.value - sum((cost_of(loss, each) for each in spent), Fraction(0))
    return type(loss).at_most(rest) if rest > 0 else None


def cost_of(reserved: Loss, loss: Loss) -> Fraction:
    """What a loss takes from a reservation, in its kind; a rho cannot be taken from an epsilon."""
    if isinstance(reserved, Epsilon):
        if isinstance(loss, Rho):
            raise InputError(
                f"{loss} cannot be taken from a reservation of {reserved}: no rho implies an epsilon. Reserve a rho.",
                code="budget.kind",
            )
        return loss.value
    return loss.value * loss.value / 2 if isinstance(loss, Epsilon) else loss.value
