"""What goes into a ledger and comes out of it: charges, requests, accounts, and how an open file is read.

Owns the values (:class:`Charge`, :class:`Entry`, :class:`Account`, ...), the fingerprint of a request, and the naming of data sets.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from policygraph.curator.ledger import schema
from policygraph.curator.ledger.rules import (
    NOTHING,
    ChargedPart,
    Limit,
    Posted,
    Spending,
    compose,
    cover_of,
    tally,
)
from policygraph.curator.ledger.schema import canonical_json
from policygraph.errors import BudgetError, InputError, LedgerError
from policygraph.model.loss import Epsilon, Loss, Rho, Target, loss_from_json

if TYPE_CHECKING:
    from policygraph.sensitivity.coupling import MoveCover

MOST_SHARES = 100
"""Most charges on parts of a table that an account explains one by one."""


@dataclass(frozen=True)
class Charge:
    """A loss that is durably recorded: only a holder of one may let a noisy value out.

    Parameters
    ----------
    ledger
        Identity of the ledger file.
    number
        Its place in the book.
    dataset
        The keyed name of the data set in this ledger, which tells nothing about the data.
    policy
        Fingerprint of the policy.
    loss
        What was charged.
    time
        When, in UTC.
    seal
        Digest that ties the entry to all those before it.
    """

    ledger: str
    number: int
    dataset: str
    policy: str
    loss: Loss
    time: str
    seal: str


@dataclass(frozen=True)
class RecordedRequest:
    """A request as the ledger knows it: its charge, and the release or the key to draw it with.

    Parameters
    ----------
    charge
        The charge.
    fresh
        Whether the charge was made just now.
    key
        While no release is stored, what its noise is drawn from: a repetition draws the same. None for a charge without one, and
        once the release is stored.
    release
        The release on record.
    apart
        For a charge that was made just now, the earlier charges that it is not added to: no move touches the cells of both.
    """

    charge: Charge
    fresh: bool = False
    key: bytes | None = field(default=None, repr=False)
    release: bytes | None = field(default=None, repr=False)
    apart: tuple[int, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One line of the history: a limit that was set, or a charge and what became of it."""

    number: int
    what: Literal["limit", "charge"]
    status: Literal["limit", "charged", "completed"]
    dataset: str
    name: str | None
    policy: str | None
    loss: Target
    composed: bool
    note: str
    time: str
    version: str
    release_bytes: int | None
    cells: str | None = None
    """First and last cell of each run of cells that the release looked at, as JSON; None for all cells."""

    def to_json(self) -> dict[str, Any]:
        """Write the line as plain JSON values."""
        return {**self.__dict__, "loss": self.loss.to_json()}


@dataclass(frozen=True)
class Share:
    """A charge for a part of a table, and which earlier charges for parts of the same data it is added to.

    Attributes
    ----------
    charge, policy, cells
        Number of the charge, fingerprint of its policy, the cells in words.
    adds_to, apart_from
        Numbers of earlier charges that one move can touch together with this one, and of those that none can.
    why_added, why_apart
        Why, for the first of each.
    look_alikes
        Where charges on different cells are added: two neighbouring data sets that differ in both parts, in words.
    """

    charge: int
    policy: str
    cells: str
    adds_to: tuple[int, ...] = ()
    apart_from: tuple[int, ...] = ()
    why_added: str = ""
    why_apart: str = ""
    look_alikes: str | None = None

    def __str__(self) -> str:
        said = [f"charge {self.charge} is for {self.cells}"]
        if self.apart_from:
            said.append(f"not added to {_numbers(self.apart_from)}: {self.why_apart}")
        if self.adds_to:
            shown = f" ({self.look_alikes})" if self.look_alikes else ""
            said.append(f"added to {_numbers(self.adds_to)}: {self.why_added}{shown}")
        return "; ".join(said)


def _numbers(charges: Sequence[int]) -> str:
    shown = ", ".join(map(str, charges[:5])) + (", ..." if len(charges) > 5 else "")
    return f"charge{'s' if len(charges) > 1 else ''} {shown}"


@dataclass(frozen=True)
class Account:
    """A data set of the ledger with its limit, what was spent, and what is left.

    ``spent`` is None when nothing was spent; ``left``, for a release that looks at all cells, is None when nothing is left or no
    limit is set. ``parts`` explains charges for parts of the table, where there are several.
    """

    dataset: str
    name: str | None
    limit: Target | None
    spent: Target | None
    left: Loss | None
    charges: int
    parts: tuple[Share, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Write the account as plain JSON values."""
        losses = {key: getattr(self, key) for key in ("limit", "spent", "left")}
        return {
            **self.__dict__,
            **{key: loss and loss.to_json() for key, loss in losses.items()},
            "parts": [
                {**share.__dict__, "adds_to": list(share.adds_to), "apart_from": list(share.apart_from)}
                for share in self.parts
            ],
        }


def request_fingerprint(
    *, query: str, policy: str, loss: Loss, mechanism: Mapping[str, Any], data: str
) -> str:
    """Name a request by all that decides its answer, so that a repetition can be recognised.

    Parameters
    ----------
    query, policy, data
        Fingerprints of the query, the policy and the data set.
    loss
        What the release costs.
    mechanism
        Name and options of the mechanism, as JSON values.

    Returns
    -------
    str
        A SHA-256 digest. It depends on the data and must not be published; the ledger keeps it keyed.

    Examples
    --------
    >>> from policygraph.model.loss import Epsilon
    >>> parts = dict(query="q", policy="p", mechanism={"name": "laplace"}, data="d")
    >>> a, b = (request_fingerprint(loss=Epsilon(value), **parts) for value in (1, 2))
    >>> len(a), a == b
    (64, False)
    """
    parts = {
        "query": query,
        "policy": policy,
        "loss": loss.to_json(),
        "mechanism": dict(mechanism),
        "data": data,
    }
    return hashlib.sha256(canonical_json(parts, "request").encode()).hexdigest()


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


def find(db: schema.Connection, secret: bytes, dataset: str) -> tuple[str, str | None]:
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


def register(db: schema.Connection, key: str, old: str | None, name: str | None) -> None:
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
    """Limit and charges of one data set, read in one transaction and worked out after it has ended.

    A conversion to (epsilon, delta), or finding which cells change together under a policy, can take a second the first time, too
    long to hold a lock.
    """

    dataset: str
    name: str | None
    rule: Limit | None
    posted: Mapping[str, Sequence[Posted]]
    descriptions: Mapping[str, str]
    on_parts: Sequence[tuple[int, str, ChargedPart]] = ()

    @property
    def title(self) -> str:
        """The name for people if there is one."""
        return self.name or self.dataset

    @cached_property
    def spendings(self) -> dict[str, Spending]:
        """What the charges under each policy come to."""
        return {
            policy: compose(charges, policy, self.descriptions[policy])
            for policy, charges in self.posted.items()
        }

    @property
    def total(self) -> Spending:
        """The sum over all policies."""
        return sum(self.spendings.values(), NOTHING)

    @property
    def charges(self) -> int:
        """How many charges there are."""
        return sum(each.times for charges in self.posted.values() for each in charges)

    @property
    def limit(self) -> Target | None:
        """The limit as it was set."""
        return None if self.rule is None else self.rule.target

    def account(self) -> Account:
        """Work out what is spent and left."""
        rule, total = self.rule, self.total
        spent = total.loss if rule is None else rule.spent(total)
        left = None if rule is None else rule.left(total)
        return Account(self.dataset, self.name, self.limit, spent, left, self.charges, self.shares())

    def with_charge(self, policy: str, description: str, loss: Loss, part: ChargedPart | None) -> Figures:
        """The same account after one more charge."""
        posted = {**self.posted, policy: [*self.posted.get(policy, ()), Posted(loss, 1, part)]}
        descriptions = {policy: description, **self.descriptions}
        return Figures(self.dataset, self.name, self.rule, posted, descriptions)

    def beside(self, policy: str, part: ChargedPart | None) -> Spending:
        """What a further charge would be added to: less than the total where no move touches its cells and those of others."""
        others = [spending for other, spending in self.spendings.items() if other != policy]
        mine = self.posted.get(policy, ())
        return sum(others, compose(mine, policy, self.descriptions[policy], part) if mine else NOTHING)

    def apart(self, policy: str, description: str, part: ChargedPart | None) -> tuple[int, ...]:
        """Earlier charges on the same data under the same policy that no move touches together with a part."""
        mine = [
            (number, other)
            for number, under, other in self.on_parts
            if part is not None and under == policy and other.reading == part.reading
        ]
        cover = cover_of(policy, description) if mine else None
        if part is None or cover is None:
            return ()
        apart = {other: not cover.meet(part.indices, other.indices) for other in {each for _, each in mine}}
        return tuple(number for number, other in mine if apart[other])

    def shares(self) -> tuple[Share, ...]:
        """Explain the charges for parts of a table, where several are on the same data under one policy."""
        groups: dict[tuple[str, str], list[tuple[int, ChargedPart]]] = {}
        for number, policy, part in self.on_parts[:MOST_SHARES]:
            groups.setdefault((policy, part.reading), []).append((number, part))
        found: list[Share] = []
        for (policy, _), members in groups.items():
            if len(members) > 1:
                cover = cover_of(policy, self.descriptions[policy])
                found += [_share(policy, members[: at + 1], cover) for at in range(len(members))]
        return tuple(sorted(found, key=lambda share: share.charge))


def _share(policy: str, members: Sequence[tuple[int, ChargedPart]], cover: MoveCover | None) -> Share:
    """Explain the last of some charges beside those before it."""
    *before, (number, part) = members
    if cover is None:
        why = "which cells change together under this policy cannot be told"
        return Share(number, policy, str(part), tuple(each for each, _ in before), why_added=why)
    found = {each: cover.meet(part.indices, other.indices) for each, other in before}
    adds, apart = (tuple(each for each in found if found[each] is added) for added in (True, False))
    others = dict(before)
    added, separate = (
        cover.coupling(others[each[0]].indices, part.indices) if each else None for each in (adds, apart)
    )
    return Share(
        number,
        policy,
        str(part),
        adds,
        apart,
        added.reason if added else "",
        separate.reason if separate is not None else "",
        added.look_alikes if added else None,
    )


def figures(db: schema.Connection, key: str, name: str | None) -> Figures:
    """Read limit and charges of a data set."""
    row = db.execute(
        "SELECT loss, certified FROM entries WHERE dataset = ? AND what = 'limit' ORDER BY number DESC LIMIT 1",
        (key,),
    ).fetchone()
    rule = None if row is None else Limit(loss_of(row[0]), None if row[1] is None else Rho(row[1]))
    posted: dict[str, list[Posted]] = {}
    for policy, text, reading, cells, times in db.execute(
        "SELECT policy, loss, reading, cells, count(*) FROM entries LEFT JOIN parts USING (number) "
        "WHERE dataset = ? AND what = 'charge' GROUP BY policy, loss, reading, cells ORDER BY policy",
        (key,),
    ):
        part = None if cells is None else ChargedPart(reading, cells)
        posted.setdefault(policy, []).append(Posted(chargeable(loss_of(text)), times, part))
    descriptions = {
        policy: db.execute("SELECT description FROM policies WHERE policy = ?", (policy,)).fetchone()[0]
        for policy in posted
    }
    on_parts = [
        (number, policy, ChargedPart(reading, cells))
        for number, policy, reading, cells in db.execute(
            "SELECT number, policy, reading, cells FROM entries JOIN parts USING (number) WHERE dataset = ? ORDER BY number",
            (key,),
        )
    ]
    return Figures(key, name, rule, posted, descriptions, on_parts)


def history(db: schema.Connection, key: str | None) -> list[Entry]:
    """Read the entries of one data set, or of all."""
    rows = db.execute(
        "SELECT number, what, dataset, name, policy, loss, composed, note, e.time, version, bytes, cells "
        "FROM entries e JOIN datasets USING (dataset) LEFT JOIN stored USING (number) LEFT JOIN parts USING (number) "
        "WHERE ? IS NULL OR dataset = ? ORDER BY number",
        (key, key),
    )
    entries: list[Entry] = []
    for number, what, where, name, policy, loss, composed, note, time, version, size, cells in rows:
        status: Literal["limit", "charged", "completed"] = "charged" if size is None else "completed"
        if what == "limit":
            status = "limit"
        entries.append(
            Entry(
                number, what, status, where, name, policy, loss_of(loss), bool(composed), note, time, version, size,
                cells,
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


def exceeded(known: Figures, policy: str, loss: Loss, part: ChargedPart | None) -> BudgetError:
    """The refusal of a charge that the limit does not allow."""
    account = known.account()
    beside = known.beside(policy, part)
    left = account.left if known.rule is None else known.rule.left(beside, type(loss))
    here = "" if part is None or beside == known.total else f" for {part}"
    return BudgetError(
        f"Data set {known.title}: {loss} was asked, the limit is {known.limit}, spent is "
        f"{account.spent or 'nothing'}, left{here} is {left or 'nothing'}. Ask for less, or repeat an "
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
