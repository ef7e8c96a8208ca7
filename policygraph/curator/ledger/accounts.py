"""What an open ledger file says of a data set: who it is, its limit, its sums, its history.

Owns the reading of the tables and the naming of data sets. May import ``errors``, ``model.loss``,
``records``, ``rules`` and ``schema``; gets an open connection from ``book``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sqlite3
from dataclasses import dataclass
from typing import Literal

from policygraph.curator.ledger import schema
from policygraph.curator.ledger.records import Account, Entry
from policygraph.curator.ledger.rules import NOTHING, Limit, Spending, tally
from policygraph.errors import BudgetError, InputError, LedgerError
from policygraph.model.loss import Epsilon, Loss, Rho, Target, loss_from_json

__all__ = [
    "Figures",
    "chargeable",
    "exceeded",
    "figures",
    "find",
    "further_policy",
    "history",
    "keyed",
    "label",
    "loss_of",
    "register",
]

_FINGERPRINT = re.compile(r"(sha256:)?[0-9a-f]{16,128}")


def label(value: str, name: str) -> str:
    """Check a short printable text."""
    if not isinstance(value, str) or not 0 < len(value) <= 256 or not value.isprintable():
        raise InputError(
            f"{name}={value!r}: expected text of 1 to 256 printable characters.",
            code="ledger.label",
            value=value,
        )
    return value


def keyed(secret: bytes, text: str) -> str:
    """Hide a fingerprint behind the key of the ledger."""
    return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()[:32]


def find(db: sqlite3.Connection, secret: bytes, dataset: str) -> tuple[str, str | None]:
    """Find a data set by name, by keyed name, or by fingerprint, known or new; give key and name.

    The fingerprint of data that were charged under a name leads to the account of that name.

    Raises
    ------
    InputError
        If the text is none of them.
    """
    text = label(dataset, "dataset")
    row = db.execute(
        "SELECT dataset, name FROM datasets WHERE name = ? OR dataset = ?", (text, text)
    ).fetchone()
    if row is None and _FINGERPRINT.fullmatch(text):
        key = keyed(secret, text)
        row = (
            db.execute("SELECT dataset, name FROM datasets WHERE dataset = ?", (f"d:{key}",)).fetchone()
            or db.execute(
                "SELECT dataset, name FROM entries JOIN datasets USING (dataset) WHERE content = ? LIMIT 1",
                (key,),
            ).fetchone()
            or (f"d:{key}", None)
        )
    if row is None:
        names = [name for (name,) in db.execute("SELECT name FROM datasets WHERE name IS NOT NULL")]
        raise InputError(
            f"dataset={dataset!r}: expected a fingerprint (16 or more hexadecimal digits) or the name of a data "
            f"set in the ledger: {', '.join(names) or 'there is none yet'}.",
            code="ledger.unknown-dataset",
            dataset=dataset,
        )
    return str(row[0]), row[1]


def register(db: sqlite3.Connection, key: str, old: str | None, name: str | None) -> None:
    """Enter a data set and its name; a name never moves from one data set to another.

    Raises
    ------
    InputError
        If the name looks like a fingerprint, or the data set has another one.
    LedgerError
        If other data have this name: a new version of the data is not a new budget.
    """
    if not db.execute("SELECT 1 FROM datasets WHERE dataset = ?", (key,)).fetchone():
        db.execute("INSERT INTO datasets VALUES (?, NULL)", (key,))
        schema.mark(db, "dataset", key, None)
    if name is None or name == old:
        return
    if _FINGERPRINT.fullmatch(label(name, "name")) or name.startswith("d:"):
        raise InputError(
            f"name={name!r}: looks like a fingerprint. Choose a word.", code="ledger.name", name=name
        )
    if old is not None:
        raise InputError(
            f"name={name!r}: this data set is named {old!r} in the ledger. Use that name.",
            code="ledger.name",
            name=name,
        )
    if db.execute("SELECT 1 FROM datasets WHERE name = ?", (name,)).fetchone():
        raise LedgerError(
            f"name={name!r}: the ledger knows other data by this name. A name is one account, in which all charges add up: to go "
            "on spending there release with this name as the data set; only if no person is in both data sets give "
            "the new one another name and a limit of its own.",
            code="ledger.name-taken",
            name=name,
        )
    db.execute("UPDATE datasets SET name = ? WHERE dataset = ?", (name, key))
    schema.mark(db, "dataset", key, name)


def chargeable(loss: Target) -> Loss:
    """Check that a loss is one that a mechanism can have."""
    if isinstance(loss, (Epsilon, Rho)):
        return loss
    raise InputError(
        f"loss={loss!r}: expected an Epsilon or a Rho. An (epsilon, delta) target becomes a Rho by to_rho().",
        code="ledger.loss",
        loss=loss,
    )


@dataclass(frozen=True)
class Figures:
    """Limit and sums of one data set, read in one transaction and worked out after it has ended.

    A conversion to (epsilon, delta) can take a second the first time, too long to hold a lock.
    """

    dataset: str
    name: str | None
    rule: Limit | None
    spendings: dict[str, Spending]
    charges: int

    @property
    def title(self) -> str:
        """The name for people if there is one."""
        return self.name or self.dataset

    @property
    def total(self) -> Spending:
        """The sum over all policies."""
        return sum(self.spendings.values(), NOTHING)

    @property
    def limit(self) -> Target | None:
        """The limit as it was set."""
        return None if self.rule is None else self.rule.target

    def account(self) -> Account:
        """Work out what is spent and left."""
        rule, total = self.rule, self.total
        spent = total.loss if rule is None else rule.spent(total)
        left = None if rule is None else rule.left(total)
        return Account(self.dataset, self.name, self.limit, spent, left, self.charges)


def figures(db: sqlite3.Connection, key: str, name: str | None) -> Figures:
    """Read limit and sums of a data set."""
    row = db.execute(
        "SELECT loss, certified FROM entries WHERE dataset = ? AND what = 'limit' ORDER BY number DESC LIMIT 1",
        (key,),
    ).fetchone()
    rule = None if row is None else Limit(loss_of(row[0]), None if row[1] is None else Rho(row[1]))
    losses: dict[str, list[tuple[Loss, int]]] = {}
    for policy, text, times in db.execute(
        "SELECT policy, loss, count(*) FROM entries WHERE dataset = ? AND what = 'charge' "
        "GROUP BY policy, loss ORDER BY policy",
        (key,),
    ):
        losses.setdefault(policy, []).append((chargeable(loss_of(text)), times))
    spendings = {policy: tally(charges) for policy, charges in losses.items()}
    return Figures(
        key, name, rule, spendings, sum(times for charges in losses.values() for _, times in charges)
    )


def history(db: sqlite3.Connection, key: str | None) -> list[Entry]:
    """Read the entries of one data set, or of all."""
    rows = db.execute(
        "SELECT number, what, dataset, name, policy, loss, composed, note, e.time, version, bytes "
        "FROM entries e JOIN datasets USING (dataset) LEFT JOIN stored USING (number) "
        "WHERE ? IS NULL OR dataset = ? ORDER BY number",
        (key, key),
    )
    entries: list[Entry] = []
    for number, what, where, name, policy, loss, composed, note, time, version, size in rows:
        status: Literal["limit", "charged", "completed"] = "charged" if size is None else "completed"
        if what == "limit":
            status = "limit"
        entries.append(
            Entry(
                number, what, status, where, name, policy, loss_of(loss), bool(composed), note, time, version, size
            )
        )  # fmt: skip
    return entries


def loss_of(text: str) -> Target:
    """Read a loss as the file holds it."""
    try:
        return loss_from_json(json.loads(text))
    except ValueError as cause:
        raise LedgerError(
            f"The ledger is damaged: {text!r} is not a loss. Restore the latest copy of the file.",
            code="ledger.damaged",
        ) from cause


def exceeded(known: Figures, loss: Loss) -> BudgetError:
    """The refusal of a charge that the limit does not allow."""
    account = known.account()
    left = account.left if known.rule is None else known.rule.left(known.total, type(loss))
    return BudgetError(
        f"Data set {known.title}: {loss} was asked, the limit is {known.limit}, spent is "
        f"{account.spent or 'nothing'}, left is {left or 'nothing'}. Ask for less, or repeat an "
        "earlier request, which costs nothing.",
        code="budget.exceeded",
        asked=loss,
        spent=account.spent,
        left=left,
        limit=known.limit,
    )


def further_policy(known: Figures, policy: str, loss: Loss) -> BudgetError:
    """The refusal of a release under a further policy."""
    together = (known.total + tally([(loss, 1)])).loss
    return BudgetError(
        f"Data set {known.title} was released under policy {', '.join(known.spendings)}, and this request is "
        f"under policy {policy}. A release protects only the pairs that are secret under its own policy: afterwards "
        f"a pair that is secret under all of these policies is protected with {together} in total, and a "
        "pair that is secret under only some of them has no guarantee any more. Use one policy for all releases, or "
        "pass compose_policies=True to accept this.",
        code="budget.further-policy",
        policy=policy,
        policies=list(known.spendings),
        intersection=together,
    )
