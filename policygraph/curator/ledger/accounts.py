"""What goes into a ledger and comes out of it: charges, requests, accounts, and how an open file is read.

Owns the values (:class:`Charge`, :class:`Entry`, :class:`Account`, ...), the fingerprint of a request, and the naming of data sets.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from policygraph.curator.ledger import schema, teams
from policygraph.curator.ledger.rules import (
    NOTHING,
    ChargedPart,
    Limit,
    Posted,
    Spending,
    compose,
    cover_of,
    stretches,
    tally,
    under_stretch,
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
    user: str | None = None
    host: str | None = None
    """Who made the entry and where, as declared; None before layout 5."""
    login: str | None = None
    """The user as the server knows it, for a ledger on one."""
    purpose: str | None = None
    labels: tuple[str, ...] = ()
    reservation: int | None = None
    """The reservation that a charge was taken from."""
    until: str | None = None
    """The last day of a limit."""

    def to_json(self) -> dict[str, Any]:
        """Write the line as plain JSON values."""
        return {**self.__dict__, "loss": self.loss.to_json(), "labels": list(self.labels)}


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
    inside: str | None = None
    """The account that this one is inside."""
    reserved: Target | None = None
    """What open reservations here and in the accounts inside come to; ``left`` is without it."""
    until: str | None = None
    """The last day of the limit."""
    expired: bool = False
    used: Fraction | None = None
    """The share of the limit that is spent or reserved; more than 1 if the limit was lowered."""
    each: Epsilon | None = None
    most: int | None = None
    """For a limit on charges of at most ``each``: how many there may be."""
    larger: tuple[tuple[Fraction, int], ...] = ()
    """Larger charges that may be made besides: sizes, and how many of each."""
    common: bool = False
    """Whether ``spent`` holds only for pairs that are secret under every one of several policies."""
    group: bool = False
    """Whether it holds data sets, which are charged instead of it."""

    def to_json(self) -> dict[str, Any]:
        """Write the account as plain JSON values."""
        losses = {key: getattr(self, key) for key in ("limit", "spent", "left", "reserved", "each")}
        return {
            **self.__dict__,
            **{key: loss and loss.to_json() for key, loss in losses.items()},
            "parts": [
                {**share.__dict__, "adds_to": list(share.adds_to), "apart_from": list(share.apart_from)}
                for share in self.parts
            ],
            "used": None if self.used is None else str(self.used),
            "larger": [[str(size), times] for size, times in self.larger],
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

    The fingerprint of data that were charged under a name leads to the account of that name, and so does that of data that were charged with others, such as one of two
    linked tables; data that shares spend on lead to the account of which they are shares.

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
            or _of_member(db, key)
            or (f"d:{key}", None)
        )
        root = teams.data_root(db, row[0])
        if root != row[0]:
            row = db.execute("SELECT dataset, name FROM datasets WHERE dataset = ?", (root,)).fetchone()
    if row is None:
        names = [name for (name,) in db.execute("SELECT name FROM datasets WHERE name IS NOT NULL")]
        raise InputError(
            f"dataset={dataset!r}: expected a fingerprint (16 or more hexadecimal digits) or the name of a data "
            f"set in the ledger: {', '.join(names) or 'there is none yet'}.",
            code="ledger.unknown-dataset",
            dataset=dataset,
        )
    return str(row[0]), row[1]


def _of_member(db: schema.Connection, key: str) -> tuple[str, str | None] | None:
    """The account in which data were charged together with others, such as one of two linked tables."""
    # The first key of its kind, so that a look at the beginning is enough.
    together = "SELECT number, content FROM details WHERE substr(content, 1, 8) = ? ORDER BY number"
    for number, about in db.execute(together, ('{"data":',)).fetchall():
        if key in json.loads(about)["data"]:
            row = db.execute(
                "SELECT dataset, name FROM entries JOIN datasets USING (dataset) WHERE number = ?", (number,)
            ).fetchone()
            return str(row[0]), row[1]
    return None


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
    check_name(name)
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
    teams.check_new_name(db, name)
    db.execute("UPDATE datasets SET name = ? WHERE dataset = ?", (name, key))
    schema.mark(db, "dataset", key, name)


def check_name(name: str) -> None:
    """Refuse a name that could be taken for a fingerprint."""
    if _FINGERPRINT.fullmatch(label(name, "name")) or name.startswith("d:"):
        raise InputError(
            f"name={name!r}: looks like a fingerprint. Choose a word.", code="ledger.name", name=name
        )


def enter(db: schema.Connection, key: str, name: str) -> None:
    """Enter an account that no data are known by."""
    db.execute("INSERT INTO datasets VALUES (?, ?)", (key, name))
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
    held: Mapping[int, Loss] = field(default_factory=dict)
    """What is left of each open reservation."""
    members: tuple[Figures, ...] = ()
    """For a group, what it holds."""
    composed: bool = False
    """Whether a further policy was accepted without a proof of its stretch: then sums are for pairs that are secret under all policies."""
    inside: str | None = None
    until: str | None = None
    day: str = ""

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

    @cached_property
    def total(self) -> Spending:
        """The loss of all charges: for every pair that is secret under one of the policies where stretches are proved, otherwise the sum."""
        if self.members:
            return sum((each.total for each in self.members), NOTHING)
        if len(self.posted) > 1 and not self.composed and self.stretch is not None:
            return under_stretch(self.posted, self.spendings, self.stretch)
        return sum(self.spendings.values(), NOTHING)

    @cached_property
    def stretch(self) -> Mapping[tuple[str, str], int] | None:
        """For each two of the policies, the proved stretch; None if one is missing."""
        return stretches(self.descriptions)

    @property
    def common(self) -> bool:
        """Whether the sum holds only for pairs that are secret under every one of several policies; in a group, where its data have several."""
        return len(self.policies) > 1 and (bool(self.members) or self.composed)

    @property
    def policies(self) -> set[str]:
        """The policies of all charges."""
        return {*self.posted, *(policy for each in self.members for policy in each.policies)}

    @property
    def reserved(self) -> Spending:
        """What is reserved here and inside."""
        own = tally((loss, 1) for loss in self.held.values())
        return sum((each.reserved for each in self.members), own)

    @property
    def claimed(self) -> Spending:
        """What is spent or reserved."""
        return self.total + self.reserved

    @property
    def expired(self) -> bool:
        """Whether the last day of the limit has passed."""
        return self.until is not None and self.until < self.day

    @property
    def fits(self) -> bool:
        """Whether the limit allows what is spent and reserved."""
        return self.rule is None or self.rule.admits(self.claimed)

    @property
    def charges(self) -> int:
        """How many charges there are."""
        own = sum(each.times for charges in self.posted.values() for each in charges)
        return own + sum(each.charges for each in self.members)

    @property
    def limit(self) -> Target | None:
        """The limit as it was set."""
        return None if self.rule is None else self.rule.target

    def account(self) -> Account:
        """Work out what is spent and left."""
        rule, total = self.rule, self.total
        spent = total.loss if rule is None else rule.spent(total)
        left = None if rule is None or self.expired else self.left()
        reserved = self.reserved
        return Account(
            self.dataset,
            self.name,
            self.limit,
            spent,
            left,
            self.charges,
            self.shares(),
            self.inside,
            reserved.loss,
            self.until,
            self.expired,
            None if rule is None else rule.used(self.claimed),
            None if rule is None or rule.each is None else rule.each,
            None if rule is None else rule.most,
            () if rule is None else rule.larger,
            self.common,
            bool(self.members),
        )

    def left(self, kind: type[Loss] | None = None) -> Loss | None:
        """The largest loss that a next charge under one of the policies so far may have."""
        steps = max(self.stretch.values(), default=1) if self._by_stretch and self.stretch else 1
        return None if self.rule is None else self.rule.left(self.claimed, kind, steps)

    @property
    def _by_stretch(self) -> bool:
        return not self.members and len(self.posted) > 1 and not self.composed

    def with_charge(
        self,
        policy: str,
        description: str,
        loss: Loss,
        part: ChargedPart | None,
        *,
        line: Container[str] = (),
        taken: tuple[int, Loss | None] | None = None,
        composed: bool = False,
    ) -> Figures:
        """The same account after one more charge.

        Parameters
        ----------
        policy, description, loss, part
            The charge.
        line
            The account that is charged and all that it is inside.
        taken
            The reservation that it takes from, and what is left of that.
        composed
            Whether the policy is a further one that was accepted.
        """
        kept = dict(self.held)
        if taken is not None and kept.pop(taken[0], None) is not None and taken[1] is not None:
            kept[taken[0]] = taken[1]
        if self.members:
            inner = tuple(
                each.with_charge(policy, description, loss, part, line=line, taken=taken, composed=composed)
                if each.dataset in line
                else each
                for each in self.members
            )
            return replace(self, members=inner, held=kept)
        posted = {**self.posted, policy: [*self.posted.get(policy, ()), Posted(loss, 1, part)]}
        descriptions = {policy: description, **self.descriptions}
        return replace(
            self,
            posted=posted,
            descriptions=descriptions,
            on_parts=(),
            held=kept,
            composed=self.composed or composed,
        )

    def beside(self, policy: str, part: ChargedPart | None) -> Spending:
        """What a further charge would be added to: less than the total where no move touches its cells and those of others."""
        if self.members or self._by_stretch:
            return self.total
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


def figures(
    db: schema.Connection,
    tree: teams.AccountTree,
    key: str,
    name: str | None,
    *,
    day: str | None = None,
    before: str | None = None,
) -> Figures:
    """Read limit, charges and reservations of an account and of all inside it.

    Parameters
    ----------
    tree
        Which accounts are inside which.
    key, name
        The account.
    day
        The day on which it is asked for, by default that of the tree: reservations that have ended by then count for nothing.
    before
        Only charges before this time.
    """
    on = day or tree.day
    rule, until = _limit(db, key)
    outer = tree.parents.get(key, (None, ""))[0]
    above = None if outer is None else tree.names[outer] or outer
    inner = tuple(
        figures(db, tree, each, tree.names[each], day=day, before=before) for each in tree.members(key)
    )
    if inner:
        return Figures(key, name, rule, {}, {}, members=inner, inside=above, until=until, day=on)
    keys = tree.shares(key)
    posted: dict[str, list[Posted]] = {}
    accepted = 0
    for policy, text, reading, cells, times, further in db.execute(
        "SELECT policy, loss, reading, cells, count(*), max(composed) FROM entries LEFT JOIN parts USING (number) "
        f"WHERE dataset IN ({marks_for(keys)}) AND what = 'charge' AND (? IS NULL OR entries.time < ?) "
        "GROUP BY policy, loss, reading, cells ORDER BY policy",
        (*keys, before, before),
    ):
        part = None if cells is None else ChargedPart(reading, cells)
        posted.setdefault(policy, []).append(Posted(chargeable(loss_of(text)), times, part))
        accepted = max(accepted, further)
    descriptions = {
        policy: db.execute("SELECT description FROM policies WHERE policy = ?", (policy,)).fetchone()[0]
        for policy in posted
    }
    on_parts = [
        (number, policy, ChargedPart(reading, cells))
        for number, policy, reading, cells in db.execute(
            "SELECT number, policy, reading, cells FROM entries JOIN parts USING (number) "
            f"WHERE dataset IN ({marks_for(keys)}) ORDER BY number",
            tuple(keys),
        )
    ]
    held = {
        each.number: each.left
        for each in (teams.reservations(db, keys, on) if tree.reserving else ())
        if each.status == "open" and each.left is not None
    }
    if not accepted and len(posted) > 1 and tree.root_of(key) != key:
        family = tree.shares(tree.root_of(key))
        accepted = bool(
            db.execute(
                f"SELECT 1 FROM entries WHERE composed = 1 AND dataset IN ({marks_for(family)})",
                tuple(family),
            ).fetchone()
        )
    return Figures(
        key, name, rule, posted, descriptions, on_parts, held, (), bool(accepted), above, until, on
    )


def marks_for(values: Sequence[object]) -> str:
    """Places for some values in a statement."""
    return ", ".join("?" * len(values))


def _limit(db: schema.Connection, key: str) -> tuple[Limit | None, str | None]:
    """The last limit that was set for an account, and its last day."""
    row = db.execute(
        "SELECT loss, certified, details.content FROM entries LEFT JOIN details USING (number) "
        "WHERE dataset = ? AND what = 'limit' ORDER BY number DESC LIMIT 1",
        (key,),
    ).fetchone()
    if row is None:
        return None, None
    more = {} if row[2] is None else json.loads(row[2])
    each = more.get("each")
    return (
        Limit(
            loss_of(row[0]),
            None if row[1] is None else Rho(row[1]),
            None if each is None else Epsilon(each),
            more.get("most"),
            tuple((Fraction(size), times) for size, times in more.get("larger", [])),
        ),
        more.get("until"),
    )


def history(db: schema.Connection, keys: Sequence[str] | None) -> list[Entry]:
    """Read the entries of some accounts, or of all."""
    where = "" if keys is None else f"WHERE dataset IN ({marks_for(keys)}) "
    rows = db.execute(
        "SELECT number, what, dataset, name, policy, loss, composed, note, e.time, version, bytes, cells, details.content "
        "FROM entries e JOIN datasets USING (dataset) LEFT JOIN stored USING (number) LEFT JOIN parts USING (number) "
        f"LEFT JOIN details USING (number) {where}ORDER BY number",
        tuple(keys or ()),
    )
    entries: list[Entry] = []
    for number, what, home, name, policy, loss, composed, note, time, version, size, cells, more in rows:
        status: Literal["limit", "charged", "completed"] = "charged" if size is None else "completed"
        if what == "limit":
            status = "limit"
        about = {} if more is None else json.loads(more)
        entries.append(
            Entry(
                number, what, status, home, name, policy, loss_of(loss), bool(composed), note, time, version, size,
                cells, about.get("user"), about.get("host"), about.get("login"), about.get("purpose"),
                tuple(about.get("labels", ())), about.get("reservation"), about.get("until"),
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
    """The refusal of a charge that the limit of an account does not allow."""
    account = known.account()
    beside = known.beside(policy, part)
    left = account.left
    if known.rule is not None and beside != known.total:
        left = known.rule.left(beside + known.reserved, type(loss))
    elif known.rule is not None:
        left = known.left(type(loss))
    here = "" if part is None or beside == known.total else f" for {part}"
    what = "Group" if known.members else "Data set" if known.inside is None else "Account"
    held = "" if account.reserved is None else f", reserved is {account.reserved}"
    return BudgetError(
        f"{what} {known.title}: {loss} was asked, the limit is {known.rule or known.limit}, spent is "
        f"{account.spent or 'nothing'}{held}, left{here} is {left or 'nothing'}. Ask for less, or repeat an "
        "earlier request, which costs nothing.",
        code="budget.exceeded",
        asked=loss,
        spent=account.spent,
        left=left,
        limit=known.limit,
        **({"account": known.title} if known.inside or known.members else {}),
    )


def ended(known: Figures) -> BudgetError:
    """The refusal of a charge after the last day of a limit."""
    return BudgetError(
        f"Account {known.title}: its limit ended on {known.until}, and today is {known.day}. Nothing is spent without a limit that holds: "
        "set a new one.",
        code="budget.expired",
        account=known.title,
        until=known.until,
        day=known.day,
    )


def further_policy(known: Figures, policy: str, loss: Loss) -> BudgetError:
    """The refusal of a release under a further policy."""
    plain = sum(known.spendings.values(), NOTHING)
    together = (plain + tally([(loss, 1)])).loss
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
