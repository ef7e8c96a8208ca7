"""What runs when something is released: look up the request, calibrate, count, check, charge, draw, store. Owns :func:`perform`."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from policygraph.curator import gate
from policygraph.curator.histogram import digest, named
from policygraph.curator.ledger import Account, ChargedPart, Ledger, Tags
from policygraph.curator.noise import KeyedRng, Rng, SecureRng
from policygraph.curator.noise.blocks import BLOCK
from policygraph.curator.requests import Identity, Request, cells_looked_at, check_members
from policygraph.errors import InputError, RefusedError
from policygraph.logs import Field, event, listening, trace
from policygraph.mechanisms import MeasuredNoise, Mechanism, choose
from policygraph.mechanisms.additive import for_loss
from policygraph.mechanisms.base import Calibrated, check_drawable
from policygraph.mechanisms.members import OnMembers, calibrated_under
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import Loss
from policygraph.model.node_privacy import NodePrivacy
from policygraph.model.policy import Policy, check_kinds
from policygraph.model.queries.base import Query
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.units import Unit
from policygraph.release.release import Release

ASKED = "Asked for:"
APART = "This charge is not added to charges"


def calibrated(
    mechanism: Mechanism | Calibrated | str | None, query: Query, policy: Policy, loss: Loss
) -> Calibrated:
    """A mechanism for a request: the given one, or the one that is expected to be most accurate."""
    check_mechanism(mechanism)
    if isinstance(mechanism, Mechanism):
        return calibrated_under(mechanism, query, policy, loss)
    return mechanism if isinstance(mechanism, Calibrated) else choose(query, policy, loss)


def check_mechanism(mechanism: Any) -> None:
    """Refuse what is no mechanism."""
    if not isinstance(mechanism, (Mechanism, Calibrated)) and mechanism is not None and mechanism != "auto":
        shown = f"the class {mechanism.__name__}" if isinstance(mechanism, type) else repr(mechanism)
        raise InputError(
            f"mechanism={shown}: expected 'auto', a mechanism such as pg.Laplace() (with brackets), or a calibrated one.",
            code="release.mechanism",
            value=mechanism,
        )


def rng_of(rng: Rng | None, source: Rng | None) -> Rng:
    """The randomness of a call: ``rng``, or ``source`` as it was called before; secure by default.

    Raises
    ------
    InputError
        When both are given.
    """
    if rng is not None and source is not None:
        raise InputError(
            "rng and source are two names of one argument: expected rng alone.", code="noise.rng"
        )
    return rng or source or SecureRng()


@dataclass(frozen=True)
class Outcome:
    """A release, and what making it meant for the ledger.

    Attributes
    ----------
    release
        The release.
    repeated
        Whether it was charged before, so that nothing was spent now.
    completed
        Whether it was charged by a process that ended before the release was on record, and was completed now.
    account
        The account of the data set after the release; None without a ledger, or when nothing was charged.
    unlimited
        Whether the account was opened by this release, without a limit, in a ledger that limits other data sets.
    """

    release: Release
    repeated: bool = False
    account: Account | None = None
    unlimited: bool = False
    completed: bool = False


def perform(
    request: Request,
    *,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    rng: Rng | None = None,
    compose_policies: bool = False,
    reuse: bool = True,
    progress: Callable[[str], None] | None = None,
    before: Callable[[], None] | None = None,
    resume: bool = False,
    identity: Identity | None = None,
    parts: str | Path | None = None,
    tags: Tags | None = None,
    require_proof: bool = False,
) -> Outcome:
    """Do what :func:`release` does, and say what it meant for the ledger.

    Parameters
    ----------
    request
        What is asked for.
    ledger, dataset, rng, compose_policies, reuse, progress
        As for :func:`release`.
    before
        Called when all is ready, before anything is charged or drawn; what it raises ends the release at no cost. It is not
        called for a release that is on record.
    resume
        Without ``reuse``: complete a charge for this very request whose release was never stored, at no cost, before a new one is made.
    identity
        The data as requests know them, where the caller found that out already.
    parts
        A new folder, or an address that Spark can write to, for the parts of a table of any size.
    tags
        What the release is for.
    require_proof
        Refuse, before anything is charged, unless ``policygraph.check`` accepts the certificate of the noise completely.
    """
    check_arguments(request.query, request.policy, ledger)
    if parts is not None:
        request = _in_parts(request)

    def tell(stage: str) -> None:
        trace(stage)
        if progress is not None:
            progress(stage)

    random = rng or SecureRng()
    book = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
    known = name = None
    if book is not None:
        check_mechanism(request.mechanism)
        request.query.check_domain(request.policy.domain)
        tell("looking for the request in the ledger")
        known = identity or request.identify()
        check_members(book, known, dataset)
        name = request.fingerprint(known, random)
        if parts is None and (found := _on_record(book, name if reuse else None, request)) is not None:
            if require_proof:
                record = found.release.record
                # Where the noise rests on a theorem, the certificate on record is of the query alone, and proves nothing about the noise.
                of_noise = record["certificate"] is not None and record.get("certificate_of") == "the noise"
                _check_proof(found.release.certificate if of_noise else None)
            return found
    tell("computing the sensitivity")
    ready = calibrated(request.mechanism, request.query, request.policy, request.loss)
    _check_fits(ready, request)
    check_drawable(ready)
    if require_proof:
        tell("checking the certificate")
        _check_proof(ready.sensitivity if _of_noise(ready) else None)
    if parts is not None:
        if book is not None and name is not None:
            # Parts are seen before they are on record. What completes them must not draw noise of another scale from the same key.
            name = digest("in parts", name, ready.noise.distribution, str(ready.noise.parameter))
            if (found := _on_record(book, name if reuse else None, request)) is not None:
                return found
        _check_new(str(parts))
    tell("counting the records")
    counts = request.count(known)
    tell("checking the public facts")
    make: Callable[[Rng], Release] = partial(gate.run, ready, counts)
    room: int | None = None
    if parts is None:
        gate.check(ready, counts)
    else:
        plain = gate.check_parts(ready, counts)
        make = partial(gate.run_parts, plain, gate.hold(plain, counts, str(parts)), str(parts))
        room = ready.query.height // BLOCK + 1
    if book is None or known is None:
        if before is not None:
            before()
        tell("drawing the noise")
        made = make(random)
        _log("released", request, mechanism=ready.mechanism, ledger=False)
        return Outcome(_with_target(made, request))
    known.check(counts)
    most = (
        gate.most_bytes(ready, counts, random) if room is None else ready.most_bytes(room, random.randomness)
    )
    return _charged(
        request, ready, make, most, book, known, name, random, tell,
        dataset=dataset, compose_policies=compose_policies, once=reuse, resume=resume, before=before, tags=tags or Tags(),
    )  # fmt: skip


def _on_record(book: Ledger, name: str | None, request: Request) -> Outcome | None:
    """The release of a request that is on record; None where there is none."""
    found = None if name is None else book.find(name)
    if found is None or found.release is None:
        return None
    _log("repeated", request, charge=found.charge.number)
    return Outcome(_with_target(Release.from_parquet(found.release), request), repeated=True)


def _of_noise(ready: Calibrated) -> bool:
    """Whether the certificate of a mechanism of others is one of what it measures; the gate looks at ours."""
    proof, measured = ready.sensitivity, ready.measure
    if proof is None or type(ready).__module__.startswith("policygraph."):
        return True
    if ready.runner or measured is None or proof.norm != ready.loss.norm:
        return False
    try:
        proof.check_made_for(measured, ready.policy)
    except InputError:
        return False
    return True


def _check_proof(certificate: Any) -> None:
    """Refuse noise that no certificate with a complete proof stands behind."""
    if certificate is None or not getattr(certificate, "proved", False):
        raise RefusedError(
            "a proof was required, and the certificate of this noise is not completely checked by policygraph.check: it carries no proof that the "
            "checker knows, or the noise rests on no certificate. Leave --require-proof (require_proof) out, or choose another mechanism or policy. "
            "Nothing was charged.",
            code="release.proof",
        )


def _in_parts(request: Request) -> Request:
    """The same request for plain noise."""
    return (
        request
        if request.mechanism not in (None, "auto")
        else replace(request, mechanism=for_loss(request.loss))
    )


def _check_new(folder: str) -> None:
    """Refuse a folder that is there, before anything is counted; for a release that is on record it holds the parts, and nothing is written."""
    if "://" not in folder and os.path.lexists(folder):
        raise InputError(
            f"parts={folder!r} is there already: expected a new folder, since parts of two releases would be one table. Nothing was charged.",
            code="release.exists",
            value=folder,
        )


def _log(name: str, request: Request, **fields: Field) -> None:
    """Tell the log of a request: what was asked and what it costs, nothing of the data."""
    if listening():
        policy, query = request.policy.fingerprint, request.query.fingerprint
        event(name, policy=policy, query=query, loss=str(request.loss), **fields)


def _check_fits(ready: Calibrated, request: Request) -> None:
    """Refuse a mechanism that was calibrated for something else."""
    noise = ready.inner if isinstance(ready, OnMembers) else ready
    if isinstance(request.query, MeasureQuery) and not isinstance(noise, MeasuredNoise):
        raise InputError(
            f"{ready.mechanism} cannot answer {request.query!r}: expected mechanism None or pg.Measured().",
            code="release.mechanism",
        )
    if (ready.loss, ready.query, ready.policy) != (request.loss, request.query, request.policy):
        raise InputError(
            "the calibrated mechanism is for another query, policy or loss.", code="release.mechanism"
        )


def _charged(
    request: Request,
    ready: Calibrated,
    make: Callable[[Rng], Release],
    most_bytes: int,
    book: Ledger,
    known: Identity,
    name: str | None,
    rng: Rng,
    tell: Callable[[str], None],
    *,
    dataset: str | None,
    compose_policies: bool,
    once: bool,
    resume: bool,
    before: Callable[[], None] | None,
    tags: Tags,
) -> Outcome:
    """Charge, draw and store: the charge keeps the key of the noise until the release is on record, and only what is on record leaves."""
    account = find_account(book, known.account, dataset)
    if before is not None:
        before()
    # A request that cannot be told from others is like no other: nobody will ever ask for it again.
    request_name = name or secrets.token_hex(32)
    begun = book.find(request_name) if resume and not once else None
    if begun is not None and begun.key is None:
        begun = None
    room = book.room(most_bytes)
    try:
        if begun is None:
            tell("charging the ledger")
            begun = book.begin(
                account,
                ready.policy.fingerprint,
                ready.loss,
                request_name,
                key=rng.words(4).astype("<u8").tobytes() if isinstance(rng, SecureRng) else b"",
                once=once,
                room=room,
                name=None if dataset == account else dataset,
                content=known.account,
                members=known.members,
                description=ready.policy.to_spec(),
                part=_part(ready, known),
                compose_policies=compose_policies,
                note=f"{ready.mechanism}: {ready.query!r}",
                purpose=tags.purpose,
                labels=tags.labels,
                reservation=tags.reservation,
            )
            event(
                "charged" if begun.fresh else "found",
                charge=begun.charge.number,
                account=dataset or begun.charge.dataset,
                mechanism=ready.mechanism,
                policy=begun.charge.policy,
                loss=str(begun.charge.loss),
            )
        body = begun.release
        if body is None:
            tell("drawing the noise")
            made = _with_target(make(noise_rng(begun.key, request_name, rng)), request)
            made = _beside(made, begun.apart)
            drawn = made.to_bytes()
            tell("recording the release")
            room.let_go()
            body = book.settle(begun.charge, drawn)
        if begun.release is not None or body != drawn:
            # It was on record, or another process drew for the same charge and was first.
            made = _with_target(Release.from_parquet(body), request)
        event(
            "released", charge=begun.charge.number, mechanism=ready.mechanism, ledger=True, fresh=begun.fresh
        )
    finally:
        room.let_go()
    if not begun.fresh:
        return Outcome(made, repeated=True, completed=begun.release is None)
    after = book.account(account)
    unlimited = after.limit is None and after.charges == 1
    unlimited = unlimited and any(other.limit is not None for other in book.datasets())
    return Outcome(made, False, after, unlimited)


def _part(ready: Calibrated, known: Identity) -> ChargedPart | None:
    """The part of the table that a charge is for, where the release depends on no other."""
    cells = None if isinstance(ready.policy, Grouped) else cells_looked_at(ready)
    return None if cells is None else ChargedPart.of(known.content, cells)


def _beside(made: Release, apart: tuple[int, ...]) -> Release:
    """Say in a release which earlier charges of the ledger its own is not added to."""
    if not apart:
        return made
    shown = ", ".join(map(str, apart[:5])) + (", ..." if len(apart) > 5 else "")
    line = f"{APART} {shown} of the ledger: no move of the policy touches the cells of both."
    return replace(made, record={**made.record, "stages": [*made.record["stages"], line]})


def noise_rng(key: bytes | None, request: str, rng: Rng) -> Rng:
    """Where the noise of a charge comes from: a secure rng gives way to the key that the charge keeps.

    The key of the ledger is mixed with the request, which holds a fingerprint of the data and is not in the file: whoever has the file
    alone can compute the noise only by guessing all of the data.
    """
    if not key:
        return rng
    return KeyedRng(hmac.new(key, request.encode(), hashlib.sha256).digest())


def find_account(book: Ledger, content: str, name: str | None) -> str:
    """Find which account of a ledger a release is charged to.

    Parameters
    ----------
    book
        The ledger.
    content
        Fingerprint of the data.
    name
        The name that the curator gives the data set, or None.

    Returns
    -------
    str
        Fingerprint or name, as :meth:`Ledger.charge` takes it.

    Notes
    -----
    A name that the ledger knows is the account, whatever the data are now; :meth:`Ledger.charge` refuses when this very data
    spends in another. A new name labels the account of this very data, so that the same file without its name goes on
    spending there.
    """
    if name is None:
        return content
    named(name)
    known = [each for each in book.datasets() if name in (each.name, each.dataset)]
    if known:
        return known[0].dataset
    # Data that were counted under a name have the fingerprint of that name.
    by_name = book.account(named(name))
    return named(name) if by_name.charges or by_name.limit is not None else content


def check_arguments(query: Any, policy: Any, ledger: Any) -> None:
    """Refuse arguments of other kinds, such as a query and a policy that are swapped."""
    check_kinds(query, policy, released=True, kinds=(NodePrivacy, Families, Unit, LinkedUnit))
    if ledger is not None and not isinstance(ledger, (Ledger, str, Path)):
        raise InputError(
            f"ledger={ledger!r}: expected the path of a ledger, a Ledger, or None.",
            code="release.ledger",
            value=ledger,
        )


def _with_target(made: Release, request: Request) -> Release:
    """Say in a release which (epsilon, delta) was asked for, beside the rho that keeps it."""
    record = {key: value for key, value in made.record.items() if key != "asked"}
    stages = [line for line in record["stages"] if not line.startswith(ASKED)]
    if request.target is not None:
        record["asked"] = request.target.to_json()
        stages.append(f"{ASKED} {request.target}; kept by {request.loss}.")
    return replace(made, record={**record, "stages": stages})
