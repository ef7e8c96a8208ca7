"""The ledger as users meet it: limits, charges, releases on record, statements.

Owns ``Ledger``. May import ``errors``, ``public.loss`` and the other modules of this folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from policygraph.errors import BudgetError, InputError, LedgerError
from policygraph.private.ledger import accounts, schema, store
from policygraph.private.ledger.accounts import Figures, label
from policygraph.private.ledger.records import Account, Charge, Entry, canonical_json
from policygraph.private.ledger.rules import Limit, tally
from policygraph.private.ledger.statement import Statement, Stretch, state
from policygraph.public.loss import Epsilon, EpsilonDelta, Loss, Rho, Target

__all__ = ["Ledger"]


class Ledger:
    """The book of what was spent, in a file that processes may share.

    Parameters
    ----------
    path
        The file. There is no default place: a budget that two commands look for in two places is none.
    create
        Whether to start a new ledger where no file is; otherwise a missing file is an error.

    Raises
    ------
    LedgerError
        If the file is damaged, foreign, newer or unreadable, or its folder is missing; nothing is changed.

    Examples
    --------
    >>> import tempfile, hashlib
    >>> from policygraph.public.loss import Epsilon
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
        self.path = Path(path).absolute()
        if create and not os.path.lexists(self.path):
            store.create(self.path)
        store.check_header(self.path)
        with store.connection(self.path) as db, store.transaction(db, write=False):
            schema.verify(db)
            self.identity, self._secret = db.execute("SELECT identity, secret FROM ledger").fetchone()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    @contextmanager
    def _open(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        with store.connection(self.path) as db, store.transaction(db, write=write):
            ids = [db.execute(f"PRAGMA {key}").fetchone()[0] for key in ("application_id", "user_version")]
            if ids != [schema.APPLICATION_ID, schema.VERSION] or (
                db.execute("SELECT identity FROM ledger").fetchone() != (self.identity,)
            ):
                raise LedgerError(
                    f"Ledger {self.path}: the file was replaced while it was in use. Open it again.",
                    code="ledger.replaced",
                    path=self.path,
                )
            yield db

    def _figures(self, db: sqlite3.Connection, dataset: str) -> Figures:
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
        accounts.chargeable(loss)
        label(policy, "policy")
        text = canonical_json(loss.to_json(), "loss")
        about = canonical_json(dict(description or {}), "description")
        wanted = accounts.keyed(self._secret, label(request, "request"))
        with self._open(write=True) as db:
            known = self._figures(db, dataset)
            held = None if content is None else self._held(db, content, known)
            further = bool(known.spendings) and policy not in known.spendings
            if further and not compose_policies:
                raise _further_policy(known, policy, loss)
            fits = known.rule is None or known.rule.admits(known.total + tally([(loss, 1)]))
            if fits:
                accounts.register(db, known.dataset, known.name, name)
                db.execute("INSERT OR IGNORE INTO policies VALUES (?, ?)", (policy, about))
                number, time, seal = schema.append(
                    db, what="charge", dataset=known.dataset, policy=policy, loss=text, request=wanted,
                    content=held, composed=further, note=str(note),
                )  # fmt: skip
        if not fits:
            raise _exceeded(known, loss)
        return Charge(self.identity, number, known.dataset, policy, loss, time, seal)

    def _held(self, db: sqlite3.Connection, content: str, known: Figures) -> str:
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
        digest = hashlib.sha256(body).hexdigest()
        with self._open(write=True) as db:
            row = db.execute("SELECT seal FROM entries WHERE number = ?", (charge.number,)).fetchone()
            if charge.ledger != self.identity or row != (charge.seal,):
                raise LedgerError(
                    f"Charge {charge.number} is not of the ledger {self.path}.",
                    code="ledger.unknown-charge",
                    charge=charge,
                )
            if db.execute("SELECT 1 FROM releases WHERE number = ?", (charge.number,)).fetchone():
                raise LedgerError(
                    f"Charge {charge.number} is completed already; a further release needs a further charge.",
                    code="ledger.completed",
                    charge=charge,
                )
            db.execute(
                "INSERT INTO releases VALUES (?, ?, ?, ?)", (charge.number, schema.now(), body, digest)
            )

    def recorded(self, request: str) -> bytes | None:
        """Give the latest release on record for a request, at no cost; None if there is none."""
        with self._open() as db:
            row = db.execute(
                "SELECT body, digest, number FROM releases JOIN entries USING (number) "
                "WHERE request = ? ORDER BY number DESC LIMIT 1",
                (accounts.keyed(self._secret, label(request, "request")),),
            ).fetchone()
        if row is None:
            return None
        self._check_digest(row[2], row[0], row[1])
        return bytes(row[0])

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
                "SELECT number, request FROM releases JOIN entries USING (number) "
                "WHERE dataset = ? AND policy = ? ORDER BY number",
                (key, policy),
            ).fetchall()
            rows = [
                (
                    number,
                    request,
                    *db.execute("SELECT body, digest FROM releases WHERE number = ?", (number,)).fetchone(),
                )
                for number, request in listed
                if number not in without
            ]
        for number, _, body, digest in rows:
            self._check_digest(number, body, digest)
        return [(number, request, bytes(body)) for number, request, body, _ in rows]

    def keyed(self, request: str) -> str:
        """A request as this ledger stores it, so that it can be recognised and tells nothing about the data."""
        return accounts.keyed(self._secret, label(request, "request"))

    def _check_digest(self, number: int, body: bytes, digest: str) -> None:
        if hashlib.sha256(body).hexdigest() != digest:
            raise LedgerError(
                f"Ledger {self.path}: the release of charge {number} is damaged. Restore the latest copy.",
                code="ledger.damaged",
                path=self.path,
            )

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
        """Give the whole book as JSON values, without the stored releases and without any data fingerprint."""
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


def _exceeded(known: Figures, loss: Loss) -> BudgetError:
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


def _further_policy(known: Figures, policy: str, loss: Loss) -> BudgetError:
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
