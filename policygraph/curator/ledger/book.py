"""The ledger as users meet it: limits, charges, releases on record, statements.

Owns ``Ledger``. May import ``errors``, ``model.loss`` and the other modules of this folder.
"""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import socket
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from policygraph.curator.ledger import accounts, schema, store, teams
from policygraph.curator.ledger.accounts import Account, Charge, Entry, Figures, RecordedRequest, label
from policygraph.curator.ledger.forecasts import Alert, Forecast, alerts_of, forecast_of
from policygraph.curator.ledger.rules import ChargedPart, Limit, Statement, Stretch, same_cells, state
from policygraph.curator.ledger.schema import canonical_json
from policygraph.curator.ledger.server import ServerRoom, ServerStore, on_server
from policygraph.curator.ledger.teams import AccountTree, Clock, Reservation, machine_clock
from policygraph.errors import BudgetError, InputError, LedgerError
from policygraph.exact import Exact, as_fraction
from policygraph.model.loss import Epsilon, EpsilonDelta, Loss, Rho, Target


@dataclasses.dataclass(frozen=True)
class Tags:
    """What a release is for, as the ledger keeps it: a purpose, labels, and the reservation that it is taken from."""

    purpose: str | None = None
    labels: Sequence[str] = ()
    reservation: int | None = None


class Ledger:
    """The book of what was spent, in a file that processes may share, or on a Postgres server that a team shares.

    Parameters
    ----------
    path
        The file, or the address of a server: ``postgresql://user@host/database?ledger=name``. There is no default place: a budget that
        two commands look for in two places is none.
    create
        Whether to start a new ledger where none is; otherwise a missing one is an error.
    clock
        What tells the time of entries and the day on which limits and reservations end; by default the clock of this machine. A ledger
        never goes back to a day before its latest entry.
    user, host
        Who makes entries, as declared; by default as the machine has it. They are sealed with each entry.

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

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        clock: Clock = machine_clock,
        user: str | None = None,
        host: str | None = None,
    ) -> None:
        self._store = _store_at(path)
        self._clock = clock
        self._who = {
            "user": label(_declared_user() if user is None else user, "user"),
            "host": label(_declared_host() if host is None else host, "host"),
        }
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

    def _repr_html_(self) -> str:
        from policygraph.markup import notebook, table

        rows = [
            [
                each.name or each.dataset[:16],
                *(str(loss or "-") for loss in (each.limit, each.spent, each.left)),
                each.charges,
            ]
            for each in self.datasets()
        ]
        return notebook(
            f"Ledger: {len(rows)} data set{'s' * (len(rows) != 1)}",
            table(["data set", "limit", "spent", "left", "charges"], rows, numbers=[4]),
        )

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

    def _tree(self, db: schema.Connection) -> AccountTree:
        return AccountTree.read(db, teams.time_of(self._clock))

    def _figures(self, db: schema.Connection, dataset: str) -> Figures:
        return accounts.figures(db, self._tree(db), *accounts.find(db, self._secret, dataset))

    def _line(self, db: schema.Connection, tree: AccountTree, key: str, name: str | None) -> list[Figures]:
        """An account and all that it is inside, each with its limit and charges."""
        return [accounts.figures(db, tree, each, tree.names.get(each, name)) for each in tree.line_of(key)]

    def _detail(self, db: schema.Connection, **more: object) -> str:
        """Who makes an entry, and what else is known of it, as JSON."""
        login = self._store.login(db)
        about = {**self._who, **({} if login is None else {"login": login}), **more}
        return canonical_json({key: value for key, value in about.items() if value}, "detail")

    def set_limit(
        self,
        dataset: str,
        limit: Target,
        *,
        name: str | None = None,
        note: str = "",
        until: str | date | None = None,
        each: Epsilon | None = None,
        larger: Mapping[Epsilon, int] | None = None,
    ) -> None:
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
        until
            The last day on which anything may be spent.
        each
            For a limit in (epsilon, delta): all charges are pure and at most this large. Then as many are allowed as the exact composition of
            such charges certifies, which is more than by sums.
        larger
            With ``each``: how many larger charges there may be besides, by size. They leave fewer places for the small ones.

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
        rule, last = Limit.of(limit, each, larger), teams.day_of(until, "until")
        certified = None if rule.certified is None else str(rule.certified.value)
        text = canonical_json(limit.to_json(), "limit")
        with self._open(write=True) as db:
            known = self._figures(db, dataset)
            rule.require_comparable(known.claimed)
            accounts.register(db, known.dataset, known.name, name)
            number, _, _ = schema.append(
                db, what="limit", dataset=known.dataset, loss=text, certified=certified, note=str(note),
                time=teams.time_of(self._clock),
            )  # fmt: skip
            step: dict[str, Any] = {} if each is None else {"each": str(each.value), "most": rule.most}
            if rule.larger:
                step["larger"] = [[str(size), times] for size, times in rule.larger]
            schema.put_detail(db, number, self._detail(db, until=last, **step))

    def open_account(self, name: str, inside: str) -> str:
        """Open an account inside another one of the same data: a team, or a purpose of a team. It stays there for good.

        Parameters
        ----------
        name
            Its own name, such as ``research``; the account is then called ``people/research``.
        inside
            The account that it is inside, by name.

        Returns
        -------
        str
            The whole name, to release with and to set a limit for. What is charged there counts in every account that it is inside, and must fit the
            limit of each.

        Raises
        ------
        InputError
            If there is no such outer account, or the name is taken or looks like another one.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(f"{folder.name}/budget.db")
        >>> ledger.set_limit("ab" * 32, Epsilon(2), name="people")
        >>> ledger.set_limit(ledger.open_account("research", inside="people"), Epsilon(1))
        >>> charge = ledger.charge("people/research", "policy", Epsilon(0.75), "request")
        >>> print(ledger.left("people/research"), ledger.left("people"))
        epsilon = 0.25 epsilon = 1.25
        >>> folder.cleanup()
        """
        if "/" in label(name, "name"):
            raise InputError(
                f"name={name!r}: expected a name without /, and the outer account by itself.",
                code="ledger.name",
                name=name,
            )
        with self._open(write=True) as db:
            parent, outer = accounts.find(db, self._secret, inside)
            if outer is None:
                raise InputError(
                    f"account {inside!r} has no name: give it one first, with a limit.",
                    code="ledger.name",
                    name=inside,
                )
            whole = f"{outer}/{name}"
            accounts.check_name(whole)
            taken = db.execute("SELECT 1 FROM datasets WHERE name = ?", (whole,)).fetchone()
            if taken:
                raise InputError(f"account {whole!r} is there already.", code="ledger.name", name=whole)
            key = f"d:{accounts.keyed(self._secret, f'account {whole}')}"
            self._tree(db).check_place(db, key, parent, "share")
            teams.check_new_name(db, whole, opening=True)
            accounts.enter(db, key, whole)
            schema.put_parent(db, key, parent, "share")
        return whole

    def join(self, dataset: str, group: str) -> None:
        """Put a data set, or a group of them, into a group: an organisation, or all data that hold the same people. It stays there for good.

        Parameters
        ----------
        dataset
            Fingerprint or name.
        group
            Name of the group; it is made if there is none. The charges of all its data sets add up in it, whatever their policies are, and must fit its limit.

        Raises
        ------
        InputError
            If the data set is inside another account, is a share, or the group would be inside itself.
        """
        with self._open(write=True) as db:
            child, name = accounts.find(db, self._secret, dataset)
            if name is None:
                raise InputError(
                    f"account {dataset!r} has no name: give it one first, with a limit.",
                    code="ledger.name",
                    name=dataset,
                )
            row = db.execute(
                "SELECT dataset FROM datasets WHERE name = ?", (label(group, "group"),)
            ).fetchone()
            key = row[0] if row else f"d:{accounts.keyed(self._secret, f'group {group}')}"
            if row is None:
                accounts.check_name(group)
                teams.check_new_name(db, group)
                accounts.enter(db, key, group)
            self._tree(db).check_place(db, child, key, "group")
            schema.put_parent(db, child, key, "group")
            for each in self._line(db, self._tree(db), child, name):
                if each.rule is not None:
                    each.rule.require_comparable(each.claimed)

    def reserve(
        self,
        dataset: str,
        loss: Loss,
        *,
        until: str | date | None = None,
        purpose: str | None = None,
        labels: Sequence[str] = (),
    ) -> Reservation:
        """Keep a loss for later: nobody else can spend it, in this account and in all that it is inside.

        Parameters
        ----------
        dataset
            Fingerprint or name of the account.
        loss
            How much.
        until
            The last day on which it is kept. Afterwards it is free for everybody, without anything being done.
        purpose, labels
            What for.

        Raises
        ------
        BudgetError
            If it does not fit the limit of the account, or of one that it is inside, or such a limit has ended.
        """
        text = canonical_json(accounts.chargeable(loss).to_json(), "loss")
        last, about = teams.day_of(until, "until"), _tags(purpose, labels)
        with self._open(write=True) as db:
            key, name = accounts.find(db, self._secret, dataset)
            tree = self._tree(db)
            tree.check_chargeable(key, dataset)
            day = tree.day
            if last is not None and last < day:
                raise InputError(
                    f"until={last}: expected today, {day}, or a later day.", code="ledger.date", value=last
                )
            accounts.register(db, key, name, None)
            number = schema.put_reservation(
                db, key, text, last, self._detail(db, **about), teams.time_of(self._clock)
            )
            # What is reserved counts from here on; a refusal undoes it.
            for each in self._line(db, self._tree(db), key, name):
                if each.expired:
                    raise accounts.ended(each)
                if not each.fits:
                    raise accounts.exceeded(_without(each, number), "", loss, None)
            (made,) = [one for one in teams.reservations(db, [key], day) if one.number == number]
        return made

    def free(self, reservation: int) -> None:
        """Give back what is left of a reservation.

        Raises
        ------
        InputError
            If there is no such reservation, or it was given back before.
        """
        with self._open(write=True) as db:
            found = self._reservation(db, reservation)
            if found.status == "closed":
                raise InputError(
                    f"reservation {reservation} was given back before.", code="ledger.reservation"
                )
            schema.put_closing(db, found.number, self._detail(db), teams.time_of(self._clock))

    def reservations(self, dataset: str | None = None) -> list[Reservation]:
        """List the reservations of an account and its shares, or of all."""
        with self._open() as db:
            if dataset is None:
                keys = [key for (key,) in db.execute("SELECT dataset FROM datasets").fetchall()]
            else:
                keys = self._tree(db).shares(accounts.find(db, self._secret, dataset)[0])
            return teams.reservations(db, keys, self._tree(db).day) if keys else []

    def _reservation(self, db: schema.Connection, number: int) -> Reservation:
        row = db.execute("SELECT dataset FROM reservations WHERE number = ?", (_whole(number),)).fetchone()
        if row is None:
            raise InputError(
                f"reservation={number!r}: there is no such reservation in the ledger.",
                code="ledger.reservation",
            )
        (found,) = [
            each for each in teams.reservations(db, [row[0]], self._tree(db).day) if each.number == number
        ]
        return found

    def _taken(
        self, db: schema.Connection, reservation: int | None, key: str, loss: Loss
    ) -> tuple[int, Loss | None] | None:
        """Check that a charge can be taken from a reservation; give it with what is left afterwards."""
        if reservation is None:
            return None
        found = self._reservation(db, reservation)
        if found.dataset != key:
            raise InputError(
                f"reservation {reservation} is of the account {found.name or found.dataset}: charge that one.",
                code="ledger.reservation",
            )
        if found.status != "open" or found.left is None:
            raise BudgetError(
                f"Reservation {reservation} is {found.status}: nothing can be taken from it.",
                code="budget.reservation",
            )
        if teams.cost_of(found.loss, loss) > found.left.value:
            raise BudgetError(
                f"Reservation {reservation}: {loss} was asked, and {found.left} is left of it.",
                code="budget.reservation",
            )
        rest = found.left.value - teams.cost_of(found.loss, loss)
        return found.number, type(found.loss).at_most(rest) if rest > 0 else None

    def forecast(self, dataset: str, *, on: str | date | None = None, days: int | None = None) -> Forecast:
        """Say on which day the budget of an account ends if spending goes on as it did.

        Parameters
        ----------
        dataset
            Fingerprint or name.
        on
            The day from which to look ahead; by default today.
        days
            Look at the last so many days; by default at all since the first charge.

        Raises
        ------
        InputError
            If no limit is set.
        """
        day = teams.day_of(on, "on")
        with self._open() as db:
            known = self._figures(db, dataset)
            return forecast_of(db, self._tree(db), known, day or known.day, days)

    def check(
        self,
        *,
        below: Exact | None = None,
        within: int | None = None,
        dataset: str | None = None,
        on: str | date | None = None,
    ) -> list[Alert]:
        """List what somebody should look at: budgets that have ended, are overdrawn, are nearly spent, or will soon end.

        Parameters
        ----------
        below
            Also accounts of which less than this share is left, as a fraction: ``"1/5"``.
        within
            Also accounts and reservations that end within so many days, by their date or at their pace.
        dataset
            Only this account and its shares.
        on
            The day on which to look; by default today.
        """
        share = None if below is None else as_fraction(below, "below")
        day = teams.day_of(on, "on")
        with self._open() as db:
            tree = self._tree(db)
            rows = db.execute("SELECT dataset, name FROM datasets ORDER BY name, dataset").fetchall()
            if dataset is not None:
                chosen = tree.shares(accounts.find(db, self._secret, dataset)[0])
                rows = [row for row in rows if row[0] in chosen]
            now = day or tree.day
            known = [accounts.figures(db, tree, key, name, day=now) for key, name in rows]
            held = teams.reservations(db, [row[0] for row in rows], now) if rows else []
            return alerts_of(db, tree, known, held, now, share, within)

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
        return None if known.expired else known.left(kind)

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
            tree = self._tree(db)
            known = [accounts.figures(db, tree, key, name) for key, name in rows]
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
        purpose: str | None = None,
        labels: Sequence[str] = (),
        reservation: int | None = None,
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
        purpose, labels
            What the release is for, for the history.
        reservation
            The reservation of this account that it is taken from.

        Raises
        ------
        BudgetError
            If the limit of the account, or of one that it is inside, does not allow it (with ``asked``, ``spent``, ``left`` and ``limit`` in ``details``)
            or has ended, or the policy is a further one whose stretch is not proved and ``compose_policies`` is not set. Nothing is recorded.
        LedgerError
            If the charge could not be made durable, or the content spends in another account. Then nothing may be
            released.
        """
        return self.begin(
            dataset, policy, loss, request, name=name, content=content, description=description, part=part,
            compose_policies=compose_policies, note=note, once=False, purpose=purpose, labels=labels, reservation=reservation,
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
        purpose: str | None = None,
        labels: Sequence[str] = (),
        reservation: int | None = None,
        members: Sequence[str] = (),
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
        members
            Fingerprints of the data that make up this data set, such as the two linked tables: releases on one of them alone are charged to the same account.
        dataset, policy, loss, request, name, content, description, part, compose_policies, note, purpose, labels, reservation
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
        tags = _tags(purpose, labels)
        part = self._compare_parts(dataset, policy, about, loss, part)
        with self._open(write=True) as db:
            found = self._found(db, keyed) if once else None
            if found is not None:
                return found
            if room is not None:
                room.fits(db)
            key_of, title = accounts.find(db, self._secret, dataset)
            tree = self._tree(db)
            tree.check_chargeable(key_of, title or dataset)
            line = self._line(db, tree, key_of, title)
            known, root = line[0], next(each for each in line if each.dataset == tree.root_of(key_of))
            stored = None if content is None else self._content_key(db, content, root, known.title)
            inside = [self._content_key(db, each, root, known.title) for each in members]
            taken = self._taken(db, reservation, key_of, loss)
            part = _kept_part(db, policy, about, part)
            further = bool(root.posted) and policy not in root.posted and compose_policies
            after_root = root.with_charge(policy, about, loss, part, composed=further)
            if (
                not further
                and not root.composed
                and len(after_root.posted) > 1
                and after_root.stretch is None
            ):
                raise accounts.further_policy(root, policy, loss)
            if root.composed and policy not in root.posted and not compose_policies:
                raise accounts.further_policy(root, policy, loss)
            keys = [each.dataset for each in line]
            short = None
            for each in line:
                if each.expired:
                    raise accounts.ended(each)
                after = each.with_charge(policy, about, loss, part, line=keys, taken=taken, composed=further)
                if short is None and not after.fits:
                    short = each
            if short is None:
                accounts.register(db, known.dataset, known.name, name)
                if not db.execute("SELECT 1 FROM policies WHERE policy = ?", (policy,)).fetchone():
                    db.execute("INSERT INTO policies VALUES (?, ?)", (policy, about))
                    schema.mark(db, "policy", policy, about)
                number, time, seal = schema.append(
                    db, what="charge", dataset=known.dataset, policy=policy, loss=text, request=keyed,
                    content=stored, composed=further, note=str(note), time=teams.time_of(self._clock),
                )  # fmt: skip
                schema.put_detail(db, number, self._detail(db, data=inside, reservation=reservation, **tags))
                if part is not None:
                    schema.put_part(db, number, part.reading, part.cells)
                if key is not None:
                    schema.put_key(db, number, key)
        if short is not None:
            raise accounts.exceeded(short, policy, loss, part)
        charge = Charge(self.identity, number, known.dataset, policy, loss, time, seal)
        return RecordedRequest(
            charge, True, key, apart=root.apart(policy, after_root.descriptions[policy], part)
        )

    def _compare_parts(
        self, dataset: str, policy: str, about: str, loss: Loss, part: ChargedPart | None
    ) -> ChargedPart | None:
        """Find out which cells change together under the policies of an account before its file is locked; it is remembered."""
        with self._open() as db:
            tree = self._tree(db)
            key, name = accounts.find(db, self._secret, dataset)
            root = accounts.figures(db, tree, tree.root_of(key), tree.names.get(tree.root_of(key), name))
            part = _kept_part(db, policy, about, part)
        after = root.with_charge(policy, about, loss, part)
        if part is not None or root.on_parts or (len(after.posted) > 1 and not root.composed):
            _ = after.total
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
            schema.store_release(db, charge.number, body, teams.time_of(self._clock))
        return body

    def _content_key(self, db: schema.Connection, content: str, known: Figures, title: str) -> str:
        """Check, under the lock of the charge, that data spend in one account and its shares only; give their keyed fingerprint."""
        mine, name = accounts.find(db, self._secret, content)
        opened = db.execute("SELECT 1 FROM datasets WHERE dataset = ?", (mine,)).fetchone()
        if opened and mine != known.dataset:
            raise LedgerError(
                f"dataset={title!r}: the ledger knows other data by this name, and these data by the account "
                f"{name or mine}. One data set spends in one account: leave the name out, or give that one.",
                code="ledger.name-taken",
                name=title,
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
            schema.store_release(db, charge.number, body, teams.time_of(self._clock))

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
            if dataset is None:
                return accounts.history(db, None)
            key = accounts.find(db, self._secret, dataset)[0]
            return accounts.history(db, self._tree(db).below(key, "share", "group"))

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
        proved = known.stretch if stretch is None and not known.members else stretch
        return state(known.dataset, known.name, known.limit, known.spendings, proved)

    def export(self) -> dict[str, Any]:
        """Give the whole ledger as JSON values, without the stored releases and without any data fingerprint."""
        with self._open() as db:
            rows = db.execute("SELECT dataset, name FROM datasets ORDER BY dataset").fetchall()
            tree = self._tree(db)
            known = [accounts.figures(db, tree, key, name) for key, name in rows]
            held = teams.reservations(db, [row[0] for row in rows], tree.day) if rows else []
            policies = db.execute("SELECT policy, description FROM policies ORDER BY policy").fetchall()
            entries = accounts.history(db, None)
        return {
            "format": "policygraph-ledger",
            "version": schema.VERSION,
            "identity": self.identity,
            "datasets": [each.account().to_json() for each in known],
            "policies": {policy: json.loads(text) for policy, text in policies},
            "entries": [entry.to_json() for entry in entries],
            "reservations": [each.to_json() for each in held],
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


def _declared_user() -> str:
    """Who runs this, as the machine has it."""
    try:
        return _printable(getpass.getuser())
    except (KeyError, OSError):  # pragma: no cover
        return "unknown"


def _declared_host() -> str:
    """Where this runs, as the machine has it."""
    return _printable(socket.gethostname())


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable())[:256] or "unknown"


def _tags(purpose: str | None, labels: Sequence[str]) -> dict[str, object]:
    """Check what an entry is said to be for."""
    if isinstance(labels, str) or len(labels) > teams.MOST_LABELS:
        raise InputError(
            f"labels={labels!r}: expected a list of at most {teams.MOST_LABELS} texts.", code="ledger.label"
        )
    kept = [label(each, "label") for each in labels]
    return {"purpose": None if purpose is None else label(purpose, "purpose"), "labels": kept}


def _whole(number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 1 << 62:
        raise InputError(
            f"reservation={number!r}: expected the number of a reservation.", code="ledger.reservation"
        )
    return number


def _without(known: Figures, number: int) -> Figures:
    """An account as it is without one reservation."""
    kept = {each: rest for each, rest in known.held.items() if each != number}
    inner = tuple(_without(each, number) for each in known.members)
    return dataclasses.replace(known, held=kept, members=inner)


def _kept_part(
    db: schema.Connection, policy: str, about: str, part: ChargedPart | None
) -> ChargedPart | None:
    """A part, or None (all cells) where the ledger has the policy on record with its cells numbered in another order."""
    row = db.execute("SELECT description FROM policies WHERE policy = ?", (policy,)).fetchone()
    return part if row is None or same_cells(row[0], about) else None
