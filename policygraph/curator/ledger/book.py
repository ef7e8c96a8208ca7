"""The ledger as users meet it: limits, charges, releases on record, statements.

Owns ``Ledger``. May import ``errors``, ``model.loss`` and the other modules of this folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from policygraph.curator.ledger import accounts, schema, store
from policygraph.curator.ledger.accounts import Account, Charge, Entry, Figures, RecordedRequest, label
from policygraph.curator.ledger.rules import ChargedPart, Limit, Statement, Stretch, same_cells, state
from policygraph.curator.ledger.schema import canonical_json
from policygraph.curator.ledger.server import ServerRoom, ServerStore, on_server
from policygraph.errors import InputError, LedgerError
from policygraph.model.loss import Epsilon, EpsilonDelta, Loss, Rho, Target


class Ledger:
    """The book of what was spent, in a file that processes may share, or on a Postgres server that a team shares.

    Parameters
    ----------
    path
        The file, or the address of a server: ``postgresql://user@host/database?ledger=name``. There is no default place: a budget that
        two commands look for in two places is none.
    create
        Whether to start a new ledger where none is; otherwise a missing one is an error.

    Raises
    ------
    LedgerError
        If the file is damaged, foreign, newer or unreadable, or its folder is missing; nothing is changed.

    Examples
    --------
    >>> import tempfile, hashlib
    >>> from policygraph.model.loss import Epsilon
    >>> people, policy = (hashlib.sha256(text).hexdigest() for text in (b"people", b"policy"))
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/budget.db")
    >>> ledger.set_limit(people, Epsilon(1), name="people")
    >>> charge = ledger.charge(people, policy, Epsilon(0.75), "request-1")
    >>> ledger.complete(charge, b"the noisy table")
    >>> print(ledger.left("people")), ledger.recorded("request-1")
    epsilon = 0.25
    (None, b'the noisy table')
    >>> ledger.charge(people, policy, Epsilon(0.5), "request-2")
    Traceback (most recent call last):
    ...
    policygraph.errors.BudgetError: Data set people: epsilon = 0.5 was asked, ... left is epsilon = 0.25. ...
    >>> folder.cleanup()

    Notes
    -----
    A data set is kept under a keyed digest of its fingerprint, with a key that is drawn for each ledger:
    a plain digest of the records in a history or an export would let an onlooker who knows all records but
    one confirm a guess about the last.
    """

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self._store = _store_at(path)
        self.path = self._store.path
        self._store.prepare(create=create)
        with self._store.open(write=False) as db:
            self._store.check_whole(db)
            schema.verify(db, self._store.faults(db))
            self.identity, self._secret = db.execute("SELECT identity, secret FROM ledger").fetchone()

    @classmethod
    def existing(cls, path: str | os.PathLike[str]) -> Ledger | None:
        """Open a ledger, or give None where there is none yet."""
        return cls(path, create=False) if _store_at(path).exists() else None

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[schema.Connection]:
        with self._store.open(write=write) as db:
            if self._store.layout(db) != [schema.APPLICATION_ID, schema.VERSION] or (
                db.execute("SELECT identity FROM ledger").fetchone() != (self.identity,)
            ):
                raise LedgerError(
                    f"Ledger {self.path}: the file was replaced while it was in use. Open it again.",
                    code="ledger.replaced",
                    path=self.path,
                )
            self._store.check_whole(db)
            fault = schema.check_head(db)
            if fault is not None:
                raise LedgerError(
                    f"Ledger {self.path}: it is damaged: {fault}. Restore the latest copy of the file.",
                    code="ledger.damaged",
                    path=self.path,
                )
            yield db
            if write:
                schema.seal_head(db)

    def _figures(self, db: schema.Connection, dataset: str) -> Figures:
        return accounts.figures(db, *accounts.find(db, self._secret, dataset))

    def set_limit(self, dataset: str, limit: Target, *, name: str | None = None, note: str = "") -> None:
        """Set what the releases on a data set may come to, over all policies; the last limit set counts.

        Parameters
        ----------
        dataset
            Fingerprint or name.
        limit
            Pure, zCDP, or (epsilon, delta).
        name
            A name for people, kept for this data set from now on.
        note
            Why, for the history.

        Raises
        ------
        BudgetError
            If charges in rho exist and the limit is pure, since they could never be compared.
        """
        if not isinstance(limit, (Epsilon, Rho, EpsilonDelta)):
            raise InputError(
                f"limit={limit!r}: expected an Epsilon, a Rho or an EpsilonDelta.",
                code="ledger.loss",
                limit=limit,
            )
        rule = Limit.of(limit)
        certified = None if rule.certified is None else str(rule.certified.value)
        text = canonical_json(limit.to_json(), "limit")
        with self._open(write=True) as db:
            known = self._figures(db, dataset)
            rule.require_comparable(known.total)
            accounts.register(db, known.dataset, known.name, name)
            schema.append(
                db, what="limit", dataset=known.dataset, loss=text, certified=certified, note=str(note)
            )

    def limit(self, dataset: str) -> Target | None:
        """Give the limit of a data set, or None if none is set."""
        return self.account(dataset).limit

    def spent(self, dataset: str) -> Target | None:
        """Give the sum over all policies, in the kind of the limit if one is set; None for nothing."""
        return self.account(dataset).spent

    def left(self, dataset: str, kind: type[Loss] | None = None) -> Loss | None:
        """Give the largest loss that the next charge may have, or None if nothing is left.

        Parameters
        ----------
        dataset
            Fingerprint or name.
        kind
            ``Epsilon`` or ``Rho``; by default ``Epsilon`` under a pure limit and ``Rho`` under the others.

        Raises
        ------
        InputError
            If no limit is set.
        """
        with self._open() as db:
            known = self._figures(db, dataset)
        if known.rule is None:
            raise InputError(
                f"Data set {known.title} has no limit, so nothing can be said to be left. Set one first.",
                code="ledger.no-limit",
                dataset=known.dataset,
            )
        return known.rule.left(known.total, kind)

    def account(self, dataset: str) -> Account:
        """Give limit, sum and rest of a data set as of one moment."""
        with self._open() as db:
            known = self._figures(db, dataset)
        return known.account()

    def datasets(self) -> list[Account]:
        """List the data sets of the ledger with their accounts."""
        with self._open() as db:
            rows = db.execute(
                "SELECT dataset, name FROM datasets ORDER BY name IS NULL, name, dataset"
            ).fetchall()
            known = [accounts.figures(db, *row) for row in rows]
        return [each.account() for each in known]

    def charge(
        self,
        dataset: str,
        policy: str,
        loss: Loss,
        request: str,
        *,
        name: str | None = None,
        content: str | None = None,
        description: Mapping[str, Any] | None = None,
        part: ChargedPart | None = None,
        compose_policies: bool = False,
        note: str = "",
    ) -> Charge:
        """Record a loss; when this returns it is on the disk, and only then may a noisy value leave.

        Parameters
        ----------
        dataset
            Fingerprint of the data, or the name of a data set of this ledger.
        policy
            Fingerprint of the policy.
        loss
            What the release costs.
        request
            What :func:`request_fingerprint` gives; kept keyed.
        name
            A name for people, kept for this data set from now on.
        content
            Fingerprint of the data, where ``dataset`` is a name: from now on these very data are known to spend in this
            account, also without the name. Kept keyed.
        description
            The policy as JSON values, kept once per policy.
        part
            The cells that alone decide the answer, beside numbers that are equal for all neighbours; None for all cells. Charges on parts that no
            move of the policy touches together do not add up. Its reading is kept keyed.
        compose_policies
            Accept that the data set is released under a further policy. :meth:`statement` then says what
            remains protected.
        note
            For the history.

        Raises
        ------
        BudgetError
            If the limit does not allow it (with ``asked``, ``spent``, ``left`` and ``limit`` in ``details``), or the
            policy is a further one and ``compose_policies`` is not set. Nothing is recorded.
        LedgerError
            If the charge could not be made durable, or the content spends in another account. Then nothing may be
            released.
        """
        return self.begin(
            dataset, policy, loss, request, name=name, content=content, description=description, part=part,
            compose_policies=compose_policies, note=note, once=False,
        ).charge  # fmt: skip

    def begin(
        self,
        dataset: str,
        policy: str,
        loss: Loss,
        request: str,
        *,
        key: bytes | None = None,
        once: bool = True,
        room: store.Room | ServerRoom | None = None,
        name: str | None = None,
        content: str | None = None,
        description: Mapping[str, Any] | None = None,
        part: ChargedPart | None = None,
        compose_policies: bool = False,
        note: str = "",
    ) -> RecordedRequest:
        """Charge for a request together with the key of its noise, or find the charge that was made for it already.

        Parameters
        ----------
        key
            What the noise will be drawn from, kept in the same transaction until :meth:`settle` stores the release: whoever repeats the
            request after a crash draws the same noise and completes the charge. Empty for an rng that has no key.
        once
            Whether a request that has a charge, completed or with a key, is not charged again.
        room
            Room on the disk that is held for the release; checked before the charge.
        dataset, policy, loss, request, name, content, description, part, compose_policies, note
            As in :meth:`charge`.

        Raises
        ------
        BudgetError, LedgerError
            As in :meth:`charge`.
        """
        accounts.chargeable(loss)
        label(policy, "policy")
        text = canonical_json(loss.to_json(), "loss")
        # The order of the attributes is kept: it decides which cell has which number.
        about = canonical_json(dict(description or {}), "description", sort_keys=False)
        keyed = accounts.keyed(self._secret, label(request, "request"))
        if part is not None:
            part = ChargedPart(accounts.keyed(self._secret, part.reading), part.cells)
        part = self._compare_parts(dataset, policy, about, loss, part)
        with self._open(write=True) as db:
            found = self._found(db, keyed) if once else None
            if found is not None:
                return found
            if room is not None:
                room.fits(db)
            known = self._figures(db, dataset)
            stored = None if content is None else self._content_key(db, content, known)
            further = bool(known.posted) and policy not in known.posted
            if further and not compose_policies:
                raise accounts.further_policy(known, policy, loss)
            part = _kept_part(db, policy, about, part)
            after = known.with_charge(policy, about, loss, part)
            fits = known.rule is None or known.rule.admits(after.total)
            if fits:
                accounts.register(db, known.dataset, known.name, name)
                if not db.execute("SELECT 1 FROM policies WHERE policy = ?", (policy,)).fetchone():
                    db.execute("INSERT INTO policies VALUES (?, ?)", (policy, about))
                    schema.mark(db, "policy", policy, about)
                number, time, seal = schema.append(
                    db, what="charge", dataset=known.dataset, policy=policy, loss=text, request=keyed,
                    content=stored, composed=further, note=str(note),
                )  # fmt: skip
                if part is not None:
                    schema.put_part(db, number, part.reading, part.cells)
                if key is not None:
                    schema.put_key(db, number, key)
        if not fits:
            raise accounts.exceeded(known, policy, loss, part)
        charge = Charge(self.identity, number, known.dataset, policy, loss, time, seal)
        return RecordedRequest(charge, True, key, apart=known.apart(policy, after.descriptions[policy], part))

    def _compare_parts(
        self, dataset: str, policy: str, about: str, loss: Loss, part: ChargedPart | None
    ) -> ChargedPart | None:
        """Find out which cells change together under the policies of an account before its file is locked; it is remembered."""
        with self._open() as db:
            known = self._figures(db, dataset)
            part = _kept_part(db, policy, about, part)
        if part is not None or known.on_parts:
            _ = known.with_charge(policy, about, loss, part).total
        return part

    def find(self, request: str) -> RecordedRequest | None:
        """Give the latest charge for a request that is completed or waits with its key; None if there is none.

        A charge that was made without a key, and has no release, is not found: nobody can say what was let out for it.
        """
        with self._open() as db:
            return self._found(db, accounts.keyed(self._secret, label(request, "request")))

    def _found(self, db: schema.Connection, keyed: str) -> RecordedRequest | None:
        row = db.execute(
            "SELECT e.number, dataset, policy, loss, e.time, seal, key, bytes FROM entries e LEFT JOIN keys USING (number) "
            "LEFT JOIN stored USING (number) WHERE request = ? AND (key IS NOT NULL OR bytes IS NOT NULL) "
            "ORDER BY e.number DESC LIMIT 1",
            (keyed,),
        ).fetchone()
        if row is None:
            return None
        number, dataset, policy, text, time, seal, key, size = row
        loss = accounts.chargeable(accounts.loss_of(text))
        body = None if size is None else self._body(db, number)
        charge = Charge(self.identity, number, dataset, policy, loss, time, seal)
        return RecordedRequest(charge, False, key if body is None else None, body)

    def settle(self, charge: Charge, release: bytes) -> bytes:
        """Put a release on record, erase its key, and give the release that is on record: the first one that was stored.

        Only what this returns may leave: of two processes that draw for one charge, both let out the same.

        Raises
        ------
        LedgerError
            If the charge is not of this ledger, or the file cannot be written; the charge then waits with its key.
        """
        body = bytes(release)
        with self._open(write=True) as db:
            self._check_charge(db, charge)
            if db.execute("SELECT 1 FROM stored WHERE number = ?", (charge.number,)).fetchone():
                return self._body(db, charge.number)
            schema.store_release(db, charge.number, body)
        return body

    def _content_key(self, db: schema.Connection, content: str, known: Figures) -> str:
        """Check, under the lock of the charge, that data spend in one account only; give their keyed fingerprint."""
        mine, name = accounts.find(db, self._secret, content)
        opened = db.execute("SELECT 1 FROM datasets WHERE dataset = ?", (mine,)).fetchone()
        if opened and mine != known.dataset:
            raise LedgerError(
                f"dataset={known.title!r}: the ledger knows other data by this name, and these data by the account "
                f"{name or mine}. One data set spends in one account: leave the name out, or give that one.",
                code="ledger.name-taken",
                name=known.title,
            )
        return accounts.keyed(self._secret, content)

    def complete(self, charge: Charge, release: bytes) -> None:
        """Put a release on record beside its charge, so that the same request need not be paid twice.

        Raises
        ------
        LedgerError
            If the charge is not of this ledger, is completed already, or the file cannot be written.
        """
        body = bytes(release)
        with self._open(write=True) as db:
            self._check_charge(db, charge)
            if db.execute("SELECT 1 FROM stored WHERE number = ?", (charge.number,)).fetchone():
                raise LedgerError(
                    f"Charge {charge.number} is completed already; a further release needs a further charge.",
                    code="ledger.completed",
                    charge=charge,
                )
            schema.store_release(db, charge.number, body)

    def _check_charge(self, db: schema.Connection, charge: Charge) -> None:
        row = db.execute("SELECT seal FROM entries WHERE number = ?", (charge.number,)).fetchone()
        if charge.ledger != self.identity or row != (charge.seal,):
            raise LedgerError(
                f"Charge {charge.number} is not of the ledger {self.path}.",
                code="ledger.unknown-charge",
                charge=charge,
            )

    def recorded(self, request: str) -> bytes | None:
        """Give the latest release on record for a request, at no cost; None if there is none."""
        with self._open() as db:
            row = db.execute(
                "SELECT number FROM stored JOIN entries USING (number) WHERE request = ? ORDER BY number DESC LIMIT 1",
                (accounts.keyed(self._secret, label(request, "request")),),
            ).fetchone()
            return None if row is None else self._body(db, row[0])

    def releases(
        self, dataset: str, policy: str, without: Container[int] = ()
    ) -> list[tuple[int, str, bytes]]:
        """List the releases on record for a data set under a policy, in the order of their charges.

        Parameters
        ----------
        without
            Numbers of charges whose releases need not be read.

        Returns
        -------
        list
            The number of each charge, its request as :meth:`keyed` gives it, and the release.
        """
        with self._open() as db:
            key = accounts.find(db, self._secret, dataset)[0]
            listed = db.execute(
                "SELECT number, request FROM stored JOIN entries USING (number) "
                "WHERE dataset = ? AND policy = ? ORDER BY number",
                (key, policy),
            ).fetchall()
            return [
                (number, request, self._body(db, number))
                for number, request in listed
                if number not in without
            ]

    def keyed(self, request: str) -> str:
        """A request as this ledger stores it, so that it can be recognised and tells nothing about the data."""
        return accounts.keyed(self._secret, label(request, "request"))

    def _body(self, db: schema.Connection, number: int) -> bytes:
        body = schema.body_of(db, number)
        if body is None:
            raise LedgerError(
                f"Ledger {self.path}: the release of charge {number} is damaged. Restore the latest copy.",
                code="ledger.damaged",
                path=self.path,
            )
        return body

    def room(self, size: int) -> store.Room | ServerRoom:
        """Hold room on the disk for a release of at most so many bytes, before it is charged for.

        Raises
        ------
        LedgerError
            If there is none (``ledger.full``).
        """
        return self._store.room(size)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Keep other processes and threads from asking online questions on this ledger meanwhile; a killed process keeps nobody.

        Raises
        ------
        LedgerError
            If the others take too long (``online.busy``).
        """
        with self._store.asking():
            yield

    def history(self, dataset: str | None = None) -> list[Entry]:
        """List limits and charges in their order, of one data set or of all."""
        with self._open() as db:
            key = None if dataset is None else accounts.find(db, self._secret, dataset)[0]
            return accounts.history(db, key)

    def statement(self, dataset: str, stretch: Stretch | None = None) -> Statement:
        """Say what the releases on a data set cost, per policy and together.

        Parameters
        ----------
        dataset
            Fingerprint or name.
        stretch
            For policies (P, Q) the most Q-steps between P-neighbours, where they are known.
        """
        with self._open() as db:
            known = self._figures(db, dataset)
        return state(known.dataset, known.name, known.limit, known.spendings, stretch)

    def export(self) -> dict[str, Any]:
        """Give the whole ledger as JSON values, without the stored releases and without any data fingerprint."""
        with self._open() as db:
            rows = db.execute("SELECT dataset, name FROM datasets ORDER BY dataset").fetchall()
            known = [accounts.figures(db, *row) for row in rows]
            policies = db.execute("SELECT policy, description FROM policies ORDER BY policy").fetchall()
            entries = accounts.history(db, None)
        return {
            "format": "policygraph-ledger",
            "version": schema.VERSION,
            "identity": self.identity,
            "datasets": [each.account().to_json() for each in known],
            "policies": {policy: json.loads(text) for policy, text in policies},
            "entries": [entry.to_json() for entry in entries],
        }


def place_of(path: str | os.PathLike[str]) -> str:
    """Where a ledger is, as people are told: without the password of a server.

    Examples
    --------
    >>> place_of("budget.db")
    'budget.db'
    """
    return str(ServerStore(path)) if on_server(path) else str(path)


def _store_at(path: str | os.PathLike[str]) -> store.FileStore | ServerStore:
    return ServerStore(path) if on_server(path) else store.FileStore(Path(path).absolute())


def _kept_part(
    db: schema.Connection, policy: str, about: str, part: ChargedPart | None
) -> ChargedPart | None:
    """A part, or None (all cells) where the ledger has the policy on record with its cells numbered in another order."""
    row = db.execute("SELECT description FROM policies WHERE policy = ?", (policy,)).fetchone()
    return part if row is None or same_cells(row[0], about) else None
