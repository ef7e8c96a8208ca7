"""Counts as files, for data that cannot be brought together. Owns :class:`CountedPart`, :func:`merge_parts` and :func:`counts_in`.

A part holds the cells with records, their counts, and everything that says which records were counted and how. It is as private as the records.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from policygraph.curator.counting.reading import Files, local_path
from policygraph.curator.histogram import DENSE, Data, Histogram, Ints, MeasuredCounts, check_sums, digest
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Domain, Network
from policygraph.model.measure import Measure
from policygraph.model.policy import Policy
from policygraph.output import replacing

KEY = b"policygraph.counts"
VERSION = 1
TERMS = ("domain", "attributes", "unknown", "edges", "measure")


@dataclass(frozen=True, eq=False, repr=False)
class CountedPart:
    """Counts of some of the records.

    Attributes
    ----------
    terms
        What all parts of a whole share: domain, rule for unknown values, rules for edges, measure; JSON values.
    contents
        What was counted: the SHA-256 of each file (``files``), or the fingerprints of tables (``tables``).
    cells
        One row of positions for each cell that holds a record: of labels, or of one pair of nodes.
    counts, sums
        How many records each has, and the sum of their measure.
    dropped
        How many records were left out.
    """

    terms: dict[str, Any]
    contents: dict[str, list[str]]
    cells: Ints
    counts: Ints
    sums: Ints | None
    dropped: int

    @property
    def fingerprint(self) -> str:
        """Name of the data set: that of all its files together, as if they had been counted at once; or of its tables."""
        files, tables = self.contents["files"], self.contents["tables"]
        if not tables:
            return digest("files", *sorted(files))
        return tables[0] if len(tables) == 1 and not files else digest("parts", *sorted([*tables, *files]))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the part as Parquet that its owner alone can read."""
        import pyarrow
        from pyarrow import parquet

        columns = {f"c{at}": self.cells[:, at] for at in range(self.cells.shape[1])}
        columns["n"] = self.counts
        if self.sums is not None:
            columns["sum"] = self.sums
        said = {"version": VERSION, "terms": self.terms, "contents": self.contents, "dropped": self.dropped}
        table = pyarrow.table(columns).replace_schema_metadata({KEY: json.dumps(said).encode()})
        with replacing(path) as draft:
            os.chmod(draft, 0o600)
            parquet.write_table(table, draft)


def terms_of(policy: Policy, measure: Measure | None, edges: Mapping[str, str] | None) -> dict[str, Any]:
    """What counts under a policy depend on beside the records, as JSON values."""
    domain = policy.domain
    attributes = list(domain.names) if isinstance(domain, Domain) else None
    unknown = policy.unknown if isinstance(policy.unknown, str) else {"other": dict(policy.unknown)}
    made = {
        "domain": domain.to_spec(),
        "attributes": attributes,
        "unknown": unknown,
        "edges": {name: rule for name, rule in (edges or {}).items() if rule != "error"},
        "measure": None if measure is None else measure.to_spec(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(made, sort_keys=True))
    return plain


def part_of(counts: Data, terms: dict[str, Any], contents: dict[str, list[str]]) -> CountedPart:
    """Make a part of counts."""
    inner = counts.counts if isinstance(counts, MeasuredCounts) else counts
    sums = None
    if isinstance(inner.domain, Network):
        at, many = inner.sparse()
        cells = at.reshape(-1, 1)
    else:
        cells, many = inner.filled(inner.domain.names)
        if isinstance(counts, MeasuredCounts):
            whole = counts.sums(inner.domain.names).reshape(inner.domain.shape)
            sums = whole[tuple(cells.T)] if len(cells) else np.zeros(0, dtype=np.int64)
    order = np.lexsort(cells.T[::-1])
    return CountedPart(
        terms, contents, cells[order], many[order], None if sums is None else sums[order], inner.dropped
    )


def read_part(path: str) -> CountedPart | None:
    """Read a part; None for a Parquet file that is none.

    Raises
    ------
    DataError
        For a part that was written by another version, or changed since.
    """
    from pyarrow import ArrowException, parquet

    try:
        found = parquet.read_schema(path).metadata or {}
        if KEY not in found:
            return None
        table = parquet.read_table(path)
    except (ArrowException, OSError):
        return None
    try:
        said = json.loads(found[KEY])
        names = [name for name in table.column_names if name not in ("n", "sum")]
        arrays = {
            name: table[name].to_numpy().astype(np.int64, casting="safe") for name in table.column_names
        }
        cells = (
            np.stack([arrays[name] for name in names], axis=1) if names else np.zeros((0, 0), dtype=np.int64)
        )
        contents = {kind: [str(one) for one in said["contents"][kind]] for kind in ("files", "tables")}
        part = CountedPart(
            said["terms"], contents, cells, arrays["n"], arrays.get("sum"), int(said["dropped"])
        )
        good = said["version"] == VERSION and names == [f"c{at}" for at in range(len(names))]
    except (KeyError, ValueError, TypeError) as cause:
        raise _broken(path) from cause
    good = good and bool((part.counts > 0).all() and (cells >= 0).all()) and any(contents.values())
    if not good or len(np.unique(cells, axis=0)) < len(cells) or part.dropped < 0:
        raise _broken(path)
    return part


def _broken(path: str) -> DataError:
    return DataError(
        f"{path} is not a complete file of counts: expected one as policygraph count or policygraph merge wrote it. Count the records again.",
        code="parts.broken",
        value=path,
    )


def merge_parts(paths: Sequence[str]) -> CountedPart:
    """Add up parts that were counted under the same policy.

    Raises
    ------
    DataError
        For files that are no parts, for parts under other terms, and for records that are in two of them.

    Examples
    --------
    >>> merge_parts([])
    Traceback (most recent call last):
    ...
    policygraph.errors.InputError: no files of counts were given: expected at least one.
    """
    if not paths:
        raise InputError("no files of counts were given: expected at least one.", code="parts.none")
    parts = []
    for path in paths:
        part = read_part(path)
        if part is None:
            raise _no_part(path)
        parts.append(part)
        if part.terms != parts[0].terms or part.cells.shape[1:] != parts[0].cells.shape[1:]:
            raise _other(path, _differing(part.terms, parts[0].terms), paths[0])
    contents = {kind: [one for part in parts for one in part.contents[kind]] for kind in ("files", "tables")}
    for at, part in enumerate(parts):
        before = {one for earlier in parts[:at] for some in earlier.contents.values() for one in some}
        if any(before.intersection(some) for some in part.contents.values()):
            raise DataError(
                f"{paths[at]} counts records that another file counts, too: expected each in one of them. Leave one out.",
                code="parts.twice",
                value=paths[at],
            )
    cells, back = np.unique(np.concatenate([part.cells for part in parts]), axis=0, return_inverse=True)
    back = back.ravel()
    counts = _added(back, [part.counts for part in parts], len(cells))
    sums = None
    if parts[0].sums is not None:
        sums = _added(back, [part.sums for part in parts if part.sums is not None], len(cells))
    edges, domain = parts[0].terms["edges"], parts[0].terms["domain"]
    if parts[0].terms["attributes"] is None and not domain.get("multiple") and (counts > 1).any():
        if edges.get("duplicates") != "merge":
            raise DataError(
                f"{int((counts > 1).sum()):,} pairs of nodes are listed in more than one file: expected each pair once. "
                'Correct the data, or say the rule in the policy file: [data] duplicates = "merge".',
                code="data.edges",
            )
        counts = np.minimum(counts, 1)
    return CountedPart(parts[0].terms, contents, cells, counts, sums, sum(part.dropped for part in parts))


def _added(at: Ints, many: list[Ints], size: int) -> Ints:
    out = np.zeros(size, dtype=np.int64)
    whole = np.concatenate(many)
    if np.abs(whole).sum(dtype=np.float64) > 2.0**62:
        raise DataError("the parts count more than 2^62 records: expected fewer.", code="counts.size")
    np.add.at(out, at, whole)
    return out


def _no_part(path: str) -> DataError:
    there = os.path.exists(path)
    return DataError(
        f"{path} {'is not a file of counts' if there else 'is not there'}: expected a file that policygraph count or merge wrote.",
        code="parts.broken",
        value=path,
    )


def _other(path: str, what: str, than: str) -> DataError:
    return DataError(
        f"{path} was counted under another {what} than {than}: expected the same. Count the records again.",
        code="parts.other",
        value=path,
    )


def _differing(one: dict[str, Any], other: dict[str, Any]) -> str:
    names = {"attributes": "domain", "unknown": "rule for unknown values", "edges": "rule for edges"}
    key = next((key for key in TERMS if one.get(key) != other.get(key)), "domain")
    return names.get(key, key)


def counts_in(
    data: Any, policy: Policy, measure: Measure | None = None, edges: Mapping[str, str] | None = None
) -> Data | None:
    """Counts, where data are one file of counts; None for any other data.

    Raises
    ------
    DataError
        When they were counted under another domain, rule or measure.
    """
    path = data.data if isinstance(data, Files) and not data.options() else data
    if not isinstance(path, (str, os.PathLike)):
        return None
    place = os.path.expanduser(local_path(os.fspath(path)))
    if not place.lower().endswith((".parquet", ".pq")) or not Path(place).is_file():
        return None
    part = read_part(place)
    if part is None:
        return None
    terms = terms_of(policy, measure, edges)
    if terms != part.terms:
        raise _other(place, _differing(terms, part.terms), "the policy says")
    return histogram_of(part, policy.domain, measure, place)


def histogram_of(part: CountedPart, domain: Domain | Network, measure: Measure | None, path: str) -> Data:
    """Histogram of a part."""
    cells, counts = part.cells, part.counts
    shape = domain.shape if isinstance(domain, Domain) else (domain.size,)
    limits = np.array([min(size, 2**62) for size in shape], dtype=np.int64)
    if cells.shape[1] != len(shape) or (measure is None) != (part.sums is None):
        raise _broken(path)
    if bool((cells >= limits).any()):
        raise _broken(path)
    if domain.size > DENSE and isinstance(domain, Domain):
        return Histogram(
            domain, part.fingerprint, int(counts.sum()), part.dropped,
            _tally=lambda sets: [_table(part, domain, names) for names in sets], _filled=partial(_filled, part, domain),
        )  # fmt: skip
    if domain.size > DENSE:
        return Histogram(
            domain, part.fingerprint, int(counts.sum()), part.dropped, _pairs=(cells[:, 0], counts)
        )
    at = np.ravel_multi_index(tuple(cells.T), shape)
    whole = np.zeros(domain.size, dtype=np.int64)
    whole[at] = counts
    made = Histogram.checked(domain, whole, part.fingerprint, part.dropped)
    if measure is None or part.sums is None:
        return made
    totals = np.zeros(domain.size, dtype=np.int64)
    totals[at] = part.sums
    check_sums(made.rows, measure)
    if bool((totals < whole * measure.lowest).any() or (totals > whole * measure.highest).any()):
        raise _broken(path)
    return MeasuredCounts(made, measure, totals)


def _filled(part: CountedPart, domain: Domain, names: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Cells over some attributes that hold a record, and their counts."""
    kept = np.stack([part.cells[:, domain.axis(name)] for name in names], axis=1)
    some, back = np.unique(kept, axis=0, return_inverse=True)
    return some, _added(back.ravel(), [part.counts], len(some))


def _table(part: CountedPart, domain: Domain, names: tuple[str, ...]) -> Ints:
    """Counts over some attributes."""
    cells, many = _filled(part, domain, names)
    whole = np.zeros(domain.project(names).size, dtype=np.int64)
    whole[np.ravel_multi_index(tuple(cells.T), domain.project(names).shape)] = many
    return whole
