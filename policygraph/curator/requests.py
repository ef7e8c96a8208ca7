"""Requests, and what the ledger knows them by. Owns :class:`Request`, :func:`mechanism_form` and :func:`identify`.

Two requests are the same when the same question is asked of the same content, read in the same way; what a search then chooses, and what the
counts are, follows from that. So a repetition is recognised before any search and any counting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from types import FunctionType, MemberDescriptorType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from policygraph.curator.counting import check_records, is_histogram, read_data
from policygraph.curator.counting.files import fetched, folders_of, resolve_all
from policygraph.curator.counting.linked import LinkedSources
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.parts import CountedPart, counts_in, part_of, terms_of
from policygraph.curator.counting.reading import Files, are_paths, how_read, is_database
from policygraph.curator.counting.source import Embedded, stamps_of
from policygraph.curator.counting.source import Source as Records
from policygraph.curator.counting.tables import count_measure
from policygraph.curator.counting.units import sum_units
from policygraph.curator.histogram import DENSE, Data, Histogram, MeasuredCounts, digest
from policygraph.curator.ledger import Ledger
from policygraph.curator.ledger.accounts import request_fingerprint
from policygraph.curator.noise.rng import Rng
from policygraph.errors import DataError, InputError, RefusedError
from policygraph.exact import Exact
from policygraph.mechanisms.base import Calibrated, Mechanism
from policygraph.model.domain import Network
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import EpsilonDelta, Loss, loss_of
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.units import Unit
from policygraph.sensitivity.coupling import CELLS

VERSION = 2
"""Version of what a request is made of; requests of version 1 held the mechanism that was chosen."""
DEPTH = 40


class UnknowableError(Exception):
    """Something has no plain form, so that two of its kind cannot be told apart."""


def mechanism_form(mechanism: Any) -> dict[str, Any] | None:
    """The mechanism of a request in a plain form that equal settings share, in every process and on every machine.

    Parameters
    ----------
    mechanism
        None or ``"auto"``, a :class:`Mechanism`, or a :class:`Calibrated`, which is known by all that it is made of.

    Returns
    -------
    dict or None
        JSON values. None when the settings cannot be told (an object of a foreign class, a function): such a request is never taken for
        another one, and pays each time. A mechanism whose settings are not fields of a dataclass can say them itself:
        ``as_asked()``, with JSON values.

    Examples
    --------
    >>> import policygraph as pg
    >>> mechanism_form("auto")
    {'auto': True}
    >>> mechanism_form(pg.Exponential(limit=7))["fields"]["limit"]
    7
    """
    if mechanism is None or (isinstance(mechanism, str) and mechanism == "auto"):
        return {"auto": True}
    try:
        form = plain_form(mechanism)
    except UnknowableError:
        return None
    return form if isinstance(form, dict) else None


def plain_form(value: Any, depth: int = 0) -> Any:
    """JSON values that tell a value apart from every other one; no addresses, nothing that another process would write otherwise.

    Raises
    ------
    UnknowableError
        For objects that are not made of known things.

    Examples
    --------
    >>> plain_form((1, Fraction(1, 3), 0.5))
    ['tuple', 1, {'fraction': '1/3'}, {'float': '0x1.0000000000000p-1'}]
    """
    if depth > DEPTH:
        raise UnknowableError(type(value))
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    simple = _number(value)
    if simple is not None:
        return simple
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [plain_form(item, depth + 1) for item in value]
        if isinstance(value, (set, frozenset)):
            items.sort(key=repr)
        return [type(value).__name__, *items]
    if isinstance(value, Mapping):
        pairs = [[plain_form(key, depth + 1), plain_form(item, depth + 1)] for key, item in value.items()]
        return {"mapping": sorted(pairs, key=repr)}
    return _object(value, depth)


def _number(value: Any) -> Any:
    """Numbers and arrays of numbers, with their kinds."""
    if isinstance(value, Enum):
        return {"enum": f"{_name(type(value))}.{value.name}"}
    if isinstance(value, Fraction):
        return {"fraction": f"{value.numerator}/{value.denominator}"}
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (np.integer, np.floating, np.bool_)) and type(value.item()) in (int, float, bool):
        # A seven is a seven, also from an array.
        return plain_form(value.item(), DEPTH)
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"array": [list(value.shape), [plain_form(item, 1) for item in value.ravel().tolist()]]}
        kind = value.dtype.newbyteorder("<") if value.dtype.byteorder != "|" else value.dtype
        raw = np.ascontiguousarray(value, dtype=kind).tobytes()
        return {"array": [str(value.dtype), list(value.shape), hashlib.sha256(raw).hexdigest()]}
    if hasattr(value, "tocoo") and hasattr(value, "shape"):
        entries = value.tocoo()
        order = np.lexsort((entries.col, entries.row))
        parts = [plain_form(np.asarray(part)[order]) for part in (entries.row, entries.col, entries.data)]
        return {"matrix": [list(value.shape), *parts]}
    return None


def _object(value: Any, depth: int) -> dict[str, Any]:
    kind = type(value)
    if isinstance(value, (Query, Policy)) or (hasattr(value, "to_spec") and hasattr(value, "fingerprint")):
        return {"class": _name(kind), "fingerprint": str(value.fingerprint)}
    own = getattr(value, "as_asked", None)
    if callable(own):
        return {"class": _name(kind), "asked": plain_form(own(), depth + 1)}
    if hasattr(value, "to_spec"):
        return {"class": _name(kind), "spec": plain_form(value.to_spec(), depth + 1)}
    if not is_dataclass(value) or isinstance(value, type):
        return {"class": _name(kind), "holds": _holds(value, depth)}
    foreign = not _ours(kind)
    listed = [field for field in fields(value) if foreign or field.compare or field.repr]
    _check_no_more(value, {field.name for field in fields(value)})
    settings = {field.name: plain_form(getattr(value, field.name), depth + 1) for field in listed}
    form = {"class": _name(kind), "fields": settings}
    shared = _shared(kind, depth)
    return {**form, "shared": shared} if shared else form


def _ours(kind: type) -> bool:
    return kind.__module__.startswith("policygraph.")


def _shared(kind: type, depth: int) -> dict[str, Any]:
    """What the classes of others keep for all their objects: settings as well, since they can be set."""
    return {
        f"{_name(each)}.{name}": plain_form(value, depth + 1)
        for each in kind.__mro__
        if each is not object and not _ours(each)
        for name, value in vars(each).items()
        if not _is_code(name, value)
    }


def _is_code(name: str, value: Any) -> bool:
    made = (FunctionType, classmethod, staticmethod, property, cached_property, MemberDescriptorType)
    return name.startswith(("__", "_abc_")) or isinstance(value, made)


def _holds(value: Any, depth: int) -> Any:
    """All that an object of the library holds, but for what it has worked out from that."""
    kind = type(value)
    if not _ours(kind) or not hasattr(value, "__dict__"):
        raise UnknowableError(kind)
    held = {name: item for name, item in vars(value).items() if name not in _worked_out(kind)}
    return plain_form(held, depth + 1)


def _worked_out(kind: type) -> set[str]:
    return {
        name
        for each in kind.__mro__
        for name, made in vars(each).items()
        if isinstance(made, cached_property)
    }


def _check_no_more(value: Any, known: set[str]) -> None:
    """Refuse an object that holds more than its fields: a subclass may have settings that its dataclass does not list."""
    kind = type(value)
    slots = {name for each in kind.__mro__ for name in getattr(each, "__slots__", ()) if hasattr(value, name)}
    more = (
        (set(getattr(value, "__dict__", {})) | slots)
        - known
        - _worked_out(kind)
        - {"__dict__", "__weakref__"}
        # notes that a clock ended the search for what the fields hold, and why it was chosen; they say nothing of what they are
        - {"_cut_short", "why"}
    )
    if more:
        raise UnknowableError(kind)


def _name(kind: type) -> str:
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        # Two classes of one name can be made inside a function, or in two programs, and differ in what they do.
        raise UnknowableError(kind)
    # Where a class of the library stands may change; what it is called may not.
    home = "policygraph" if _ours(kind) else kind.__module__
    return f"{home}.{kind.__qualname__}"


def cells_looked_at(ready: Calibrated) -> npt.NDArray[np.int64] | None:
    """The cells that alone decide what a mechanism lets out, beside numbers that are equal for all neighbours; None: any cell may.

    Only for mechanisms of the library that the gate draws for, without a runner, and that measure a matrix: the gate answers it, with noise, and
    nothing else but numbers that no move changes. The answers are sums over the cells with a column that is not zero.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 5})
    >>> query = pg.queries.ranges(domain, [(1, 2)])
    >>> cells_looked_at(pg.Laplace().calibrate(query, pg.Policy(domain), pg.Epsilon(1)))
    array([1, 2])
    """
    measure = ready.measure
    if ready.runner or not _ours(type(ready)) or type(measure) is not MatrixQuery:
        return None
    size = measure.domain.size
    if size > CELLS or size != ready.policy.domain.size:
        return None
    found = np.flatnonzero(measure.column_norms(np.arange(size), "l1"))
    return None if len(found) == size else found


class Fingerprinted(Protocol):
    """Anything that has a fingerprint."""

    @property
    def fingerprint(self) -> str:
        """Stable name of the content."""


def request_of(
    query: Fingerprinted, policy: Policy, loss: Loss, mechanism: Any, rng: Rng, data: Identity
) -> str | None:
    """Fingerprint of a request, for the ledger; None where the mechanism cannot be told from others of its kind.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 2})
    >>> query, policy = pg.queries.identity(domain), pg.Policy(domain)
    >>> known = identify([1, 2], query, policy)
    >>> requests = [request_of(query, policy, pg.Epsilon(1), asked, pg.SeededRng(1), known) for asked in (None, "auto", pg.Laplace())]
    >>> requests[0] == requests[1], requests[0] == requests[2]
    (True, False)
    """
    form = mechanism_form(mechanism)
    if form is None:
        return None
    return request_fingerprint(
        query=query.fingerprint,
        policy=policy.fingerprint,
        loss=loss,
        mechanism={
            "version": VERSION,
            "asked": form,
            "source": "secure" if rng.private else rng.describe(),
        },
        data=data.content,
    )


@dataclass(frozen=True)
class Identity:
    """What data are known by.

    Attributes
    ----------
    account
        What the ledger knows the data set by: the fingerprint of its content, or of the name that its counts were given.
    content
        Fingerprint of the content and of how it is read; for requests only.
    counts
        The counts, where they had to be made to know it.
    records
        The records as they were opened, where they were not counted: whoever counts them need not open them again.
    """

    account: str
    content: str
    counts: Data | None = None
    records: Records | LinkedSources | None = field(default=None, compare=False)

    @property
    def members(self) -> tuple[str, ...]:
        """What each of two linked tables is known by; empty for other data."""
        both = self.records
        return (
            (both.parent.fingerprint(), both.child.fingerprint()) if isinstance(both, LinkedSources) else ()
        )

    def check(self, counts: Data) -> None:
        """Raise when the data were changed between being identified and being counted."""
        if counts.fingerprint != self.account:
            raise DataError(
                "the data changed while they were being counted: expected them at rest. Nothing was charged. Ask again.",
                code="data.changed",
            )


@dataclass(frozen=True)
class Request:
    """What is asked for: a query under a policy at a loss, by a mechanism, of data and how they are read.

    Attributes
    ----------
    query, policy, loss
        What to release, what it must hide, what it costs.
    mechanism
        As it was asked for, before any search: None or ``"auto"``, a mechanism, or a calibrated one.
    data
        The data as they were given.
    columns, edges
        How they are read.
    target
        The (epsilon, delta) that was asked for, where the loss is the rho that keeps it.
    engine
        What counts the data; the counts, and so the request, are the same on each.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 2})
    >>> request = Request.of(pg.queries.identity(domain), pg.Policy(domain), [1, 2], epsilon=1)
    >>> request.loss, request.fingerprint(request.identify(), pg.SeededRng(1)) is None
    (Epsilon(value=Fraction(1, 1)), False)
    """

    query: Query
    policy: Policy
    loss: Loss
    mechanism: Mechanism | Calibrated | str | None = None
    data: Any = field(default=None, repr=False)
    columns: Mapping[str, str] | None = None
    edges: Mapping[str, str] | None = None
    target: EpsilonDelta | None = None
    engine: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        query: Query,
        policy: Policy,
        data: Any,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        **how: Any,
    ) -> Request:
        """Make a request with a loss in numbers; ``how`` are the other fields."""
        target = None if delta is None or epsilon is None else EpsilonDelta(epsilon, delta)
        return cls(query, policy, loss_of(epsilon, rho, delta), data=data, target=target, **how)

    def identify(self) -> Identity:
        """Know the data by their content and by how they are read."""
        return identify(self.data, self.query, self.policy, self.columns, self.edges, self.engine)

    def fingerprint(self, known: Identity, rng: Rng) -> str | None:
        """What the ledger knows the request by; see :func:`request_of`."""
        return request_of(self.query, self.policy, self.loss, self.mechanism, rng, known)

    def count(self, known: Identity | None = None) -> Data:
        """Count the data, unless that was done to know them."""
        if known is not None and known.counts is not None:
            counts: Data = known.counts
            return counts
        opened = self.data if known is None or known.records is None else known.records
        return read(opened, self.query, self.policy, self.columns, self.edges, self.engine)


def identify(
    data: Any,
    query: Query | None,
    policy: Policy,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    engine: Any = None,
) -> Identity:
    """Know data by their content and by how they are read, with no more work than that needs.

    Files are known by their bytes and frames by their rows, and are not counted for it. Counts that somebody made elsewhere are known by
    every one of them, beside the name or the file that they came with.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 2})
    >>> one, same, other = (identify(data, None, pg.Policy(domain)) for data in ([1, 2], (1, 2), [2, 1]))
    >>> one.content == same.content, one.content == other.content
    (True, False)
    """
    if isinstance(policy, LinkedUnit):
        both = LinkedSources.of(data, policy, engine)
        account = both.fingerprint()
        how = [how_read(each) for _, each in sorted(data.items())] if isinstance(data, Mapping) else []
        said = [how_read(None, *_as_default(columns, edges, network=False)), *how]
        return Identity(account, digest("read", account, *both.details(), *said), records=both)
    check_records(data, policy)
    if isinstance(data, (Histogram, MeasuredCounts)):
        return _of_counts(data)
    measure = query.measure if isinstance(query, MeasureQuery) else None
    if is_histogram(data, policy.domain) and measure is None:
        return _of_counts(read_data(data, policy, columns, edges))
    if isinstance(policy.domain, Network) and not (isinstance(data, Files) or are_paths(data)):
        return _of_counts(read_data(data, policy, columns, edges, engine))
    if measure is not None:
        _check_records(data, policy, edges)
    counted = counts_in(data, policy, measure, edges)
    if counted is not None:
        check_records(counted, policy)
        return _of_counts(counted)
    network = isinstance(policy.domain, Network)
    found = files_by_bytes(data) if network else open_source(data, engine)
    account = found.fingerprint()
    said = how_read(data, *_as_default(columns, edges, network))
    # An edge list is opened once more, with its ends.
    records = None if network else found
    return Identity(account, digest("read", account, *found.details(), said), records=records)


def check_members(book: Ledger, known: Identity, dataset: str | None) -> None:
    """Linked tables are charged under a name, and not beside an account that one of the tables has already."""
    if not known.members:
        return
    if dataset is None:
        raise InputError(
            "linked tables in a ledger: expected dataset=... (--dataset), the name under which everything about both tables is charged.",
            code="linked.dataset",
        )
    for member in known.members:
        account = book.account(member)
        share = account.name is not None and dataset.startswith(f"{account.name}/")
        if (
            (account.charges or account.limit is not None)
            and not share
            and dataset not in (account.name, account.dataset)
        ):
            raise InputError(
                f"one of the linked tables has an account in this ledger already, {account.name or account.dataset!r}: expected dataset={account.name or account.dataset!r}, so that "
                "what is spent on it adds up.",
                code="linked.dataset",
                value=dataset,
            )


def _as_default(
    columns: Mapping[str, str] | None, edges: Mapping[str, str] | None, network: bool
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Names of columns and rules for edges without those that are so anyway: to say them changes nothing."""
    named = dict(columns or {})
    if network and columns is not None:
        # The ends of an edge are the columns of these names once columns are given, and the first two otherwise.
        named = {end: named.get(end, end) for end in ("from", "to")}
    elif not network:
        named = {name: column for name, column in named.items() if name != column}
    return named, {name: rule for name, rule in (edges or {}).items() if rule != "error"}


def read(
    data: Any,
    query: Query | None,
    policy: Policy,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    engine: Any = None,
) -> Data:
    """Read what a query is about: counts of cells, or counts and sums for a measure."""
    if isinstance(policy, LinkedUnit):
        return read_data(data, policy, columns, edges, engine)
    counted = counts_in(data, policy, query.measure if isinstance(query, MeasureQuery) else None, edges)
    if counted is not None:
        check_records(counted, policy)
        return counted
    if not isinstance(query, MeasureQuery):
        return read_data(data, policy, columns, edges, engine)
    check_records(data, policy)
    if isinstance(data, MeasuredCounts):
        return data
    _check_records(data, policy, edges)
    if isinstance(policy, Unit):
        return sum_units(data, policy, query.measure, columns, engine)
    unknown = dict(policy.unknown) if isinstance(policy.unknown, tuple) else policy.unknown
    return count_measure(data, query.domain, query.measure, unknown=unknown, columns=columns, engine=engine)


def count_part(
    data: Any,
    query: Query | None,
    policy: Policy,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    engine: Any = None,
) -> CountedPart:
    """Count records into a part, which can be written, merged with others and released later.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> part = count_part([5, 0, 2], None, pg.Policy(domain))
    >>> part.cells.tolist(), part.counts.tolist()
    ([[0], [2]], [5, 2])
    """
    if isinstance(policy, LinkedUnit):
        raise policy.refused()
    if isinstance(policy, Unit):
        raise RefusedError(
            f"counts in a file under a policy that hides everything of one {policy.column}: the records of one {policy.column} may be in several files, and each would be bounded by itself. "
            "Release from the records.",
            code="unit.parts",
        )
    known = identify(data, query, policy, columns, edges, engine)
    opened = data if known.records is None else known.records
    counts = read(opened, query, policy, columns, edges, engine) if known.counts is None else known.counts
    known.check(counts)
    files: list[str] = []
    if known.counts is None and (isinstance(data, Files) or are_paths(data)) and not is_database(data):
        files = list(files_by_bytes(data).digests)
    contents = {"files": files, "tables": [] if files else [counts.fingerprint]}
    measure = query.measure if isinstance(query, MeasureQuery) else None
    return part_of(counts, terms_of(policy, measure, edges), contents)


def _check_records(data: Any, policy: Policy, edges: Mapping[str, str] | None) -> None:
    """Refuse data without the values that a measure is about."""
    if edges or is_histogram(data, policy.domain):
        raise InputError(
            "sums and averages need records with their values: expected a file, a frame, or MeasuredCounts.",
            code="measure.data",
        )


def files_by_bytes(data: Any) -> Records:
    """Files that are known by their bytes, whatever their kind is and however they are read."""
    if is_database(data):
        return open_source(data)
    files = data if isinstance(data, Files) else Files(data)
    paths, keep = fetched(resolve_all(files)[1])
    return Records(
        "the files", Embedded(lambda statement: None), (),
        stamps=stamps_of(paths), keep=keep, folders=folders_of(files, paths),
    )  # fmt: skip


def _of_counts(counts: Data) -> Identity:
    inner = counts.counts if isinstance(counts, MeasuredCounts) else counts
    parts = ["counts", counts.fingerprint, repr(inner.domain.to_spec()), *_numbers(inner)]
    if isinstance(counts, MeasuredCounts):
        parts += [repr(counts.measure.to_spec()), _hash(np.asarray(counts.sums(counts.domain.names)))]
    return Identity(counts.fingerprint, digest(*parts), counts)


def _numbers(counts: Histogram) -> list[str]:
    """All counts as digests; cells without records are left out, so that any domain has an end."""
    if isinstance(counts.domain, Network) or counts.domain.size <= DENSE:
        at, many = counts.sparse()
        return [_hash(at), _hash(many)]
    cells, many = counts.filled(counts.domain.names)
    order = np.lexsort(cells.T[::-1])
    return [_hash(cells[order]), _hash(many[order])]


def _hash(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array, dtype="<i8").tobytes()).hexdigest()
