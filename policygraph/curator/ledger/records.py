"""The values that go into the ledger and come out of it.

Owns ``Charge``, ``RecordedRequest``, ``Entry``, ``Account`` and the fingerprint of a request. May import ``errors`` and
``model.loss``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from policygraph.errors import InputError
from policygraph.model.loss import Loss, Target

__all__ = ["Account", "Charge", "Entry", "RecordedRequest", "canonical_json", "request_fingerprint"]


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
    """

    charge: Charge
    fresh: bool = False
    key: bytes | None = field(default=None, repr=False)
    release: bytes | None = field(default=None, repr=False)


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

    def to_json(self) -> dict[str, Any]:
        """Write the line as plain JSON values."""
        return {**self.__dict__, "loss": self.loss.to_json()}


@dataclass(frozen=True)
class Account:
    """A data set of the ledger with its limit, what was spent, and what is left.

    ``spent`` is None when nothing was spent; ``left`` is None when nothing is left or no limit is set.
    """

    dataset: str
    name: str | None
    limit: Target | None
    spent: Target | None
    left: Loss | None
    charges: int

    def to_json(self) -> dict[str, Any]:
        """Write the account as plain JSON values."""
        losses = {key: getattr(self, key) for key in ("limit", "spent", "left")}
        return {**self.__dict__, **{key: loss and loss.to_json() for key, loss in losses.items()}}


def canonical_json(value: object, name: str) -> str:
    """Write a value as JSON in the one form that equal values share.

    Raises
    ------
    InputError
        If the value is not made of JSON values.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    except (TypeError, ValueError) as cause:
        raise InputError(
            f"{name}={value!r}: expected JSON values (text, whole numbers, lists, mappings).",
            code="ledger.not-json",
            value=value,
        ) from cause


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
