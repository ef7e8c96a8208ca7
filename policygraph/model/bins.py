"""Values of an attribute that are ranges of numbers or dates. Owns :class:`Bins`.

A bin goes from one edge up to, and without, the next one. Edges are declared, never taken from records, so that the bin of a record is a function of this record alone.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policygraph.errors import InputError, shown

Edge = int | float | datetime.date
LARGEST_EDGE = 2**53
"""Up to it every whole number is a float, so that a number is in the same bin in every type of column."""
KEYS = ("bins", "open", "also", "end")


@dataclass(frozen=True)
class Bins:
    """Ranges of numbers or dates: the values of an attribute.

    Parameters
    ----------
    edges
        Where bins begin, in rising order: numbers, or dates (``datetime.date``, or text such as ``"2000-01-31"``).
    open
        Whether the last bin has no end. Otherwise the last edge is the end of the last bin, which does not contain it.
    also
        Labels beside the bins, for values that are written so, such as ``"unknown"``; they come after the bins.
    end
        Where the last bin ends although it is named as if it had no end: what nobody can be, such as an age of 130. Values from there on are outside.

    Attributes
    ----------
    edges
        All edges, with the end of the last bin where it has one.

    Examples
    --------
    >>> Bins([0, 15, 25, 65]).labels
    ('0-14', '15-24', '25-64', '65+')
    >>> Bins([0, 18, 65], end=130).labels, Bins([0, 18, 65], end=130).expected()
    (('0-17', '18-64', '65+'), 'a number from 0 to under 130')
    >>> Bins([0, 0.5, 1], open=False, also=["none"]).labels
    ('0 to under 0.5', '0.5 to under 1', 'none')
    >>> Bins(["2000-01-01", "2010-01-01"]).labels
    ('2000-2009', '2010 or later')
    """

    edges: tuple[Edge, ...]
    open: bool = True
    also: tuple[str, ...] = ()
    end: Edge | None = None
    labels: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __init__(
        self, edges: Sequence[Any], open: bool = True, also: Sequence[str] = (), end: Any = None
    ) -> None:
        read = _read_edges(edges)
        if not isinstance(open, bool):
            raise _wrong(f"open = {open!r}: expected true or false.", open)
        if end is not None and not open:
            raise _wrong(
                f"end = {end!r} beside open = false: expected one of them. Without open = false the last bin is named as if it had no end.",
                end,
            )
        if len(read) < (1 if open else 2):
            raise _wrong(
                f"bins = {list(edges)!r}: expected at least {'one edge' if open else 'two edges, since the last one is the end'}.",
                edges,
            )
        if isinstance(also, str) or not all(isinstance(label, str) for label in also):
            raise _wrong(f"also = {also!r}: expected a list of texts, such as ['unknown'].", also)
        ended = read if end is None else _read_edges([*edges, end])
        object.__setattr__(self, "edges", ended)
        object.__setattr__(self, "open", open and end is None)
        object.__setattr__(self, "end", None if end is None else ended[-1])
        object.__setattr__(self, "also", tuple(also))
        labels = (*_names(read, open), *self.also)
        twice = [label for at, label in enumerate(labels) if label in labels[:at]]
        if twice:
            raise _wrong(f"also = {list(also)!r}: the label {twice[0]!r} is there already.", also)
        object.__setattr__(self, "labels", labels)

    @property
    def dates(self) -> bool:
        """Whether the edges are dates."""
        return isinstance(self.edges[0], datetime.date)

    @property
    def count(self) -> int:
        """Number of bins, without the labels beside them."""
        return len(self.edges) - (not self.open)

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Bins:
        """Make bins from their plain form (the inverse of :meth:`to_spec`).

        Examples
        --------
        >>> Bins.from_spec({"bins": [0, 18], "also": ["unknown"]}).labels
        ('0-17', '18+', 'unknown')
        """
        strange = [key for key in spec if key not in KEYS]
        if strange or "bins" not in spec:
            raise _wrong(f"{dict(spec)!r}: expected a table such as {{bins = [0, 18, 65]}}.", spec)
        return cls(spec["bins"], spec.get("open", True), spec.get("also", ()), spec.get("end"))

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files and fingerprints: dates are texts."""
        plain = [edge.isoformat() if isinstance(edge, datetime.date) else edge for edge in self.edges]
        made: dict[str, Any] = {"bins": plain}
        if self.end is not None:
            made = {"bins": plain[:-1], "end": plain[-1]}
        elif not self.open:
            made["open"] = False
        return made | ({"also": list(self.also)} if self.also else {})

    def expected(self) -> str:
        """What a value must be to have a bin, in words.

        Examples
        --------
        >>> Bins([0, 18]).expected(), Bins([0, 18, 65], open=False).expected()
        ('a number from 0 on', 'a number from 0 to under 65')
        """
        first, last = _shown(self.edges[0]), _shown(self.edges[-1])
        what = "a date such as 2024-01-31" if self.dates else "a number"
        words = f"{what}, from {first}" if self.dates else f"{what} from {first}"
        more = f", or {', '.join(map(repr, self.also))}" if self.also else ""
        return words + (" on" if self.open else f" to under {last}") + more


def _wrong(message: str, value: Any) -> InputError:
    return InputError(message, code="domain.bins", value=value)


def _read_edges(given: Any) -> tuple[Edge, ...]:
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise _wrong(f"bins = {given!r}: expected a list of edges, such as [0, 18, 65].", given)
    edges = tuple(_read_edge(edge) for edge in given)
    kinds = {isinstance(edge, datetime.date) for edge in edges}
    if len(kinds) > 1:
        raise _wrong(f"bins = {list(given)!r}: expected numbers, or dates, and not both.", given)
    for before, after in itertools.pairwise(edges):
        if not before < after:  # type: ignore[operator]
            raise _wrong(
                f"bins: {_shown(after)} comes after {_shown(before)}: expected edges in rising order, each once.",
                given,
            )
    return edges


def _read_edge(edge: Any) -> Edge:
    if isinstance(edge, np.generic):
        edge = edge.item()
    if isinstance(edge, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", edge):
        try:
            return datetime.date.fromisoformat(edge)
        except ValueError as cause:
            raise _wrong(f"bins: {edge!r} is not a date ({cause}).", edge) from cause
    if isinstance(edge, datetime.date) and not isinstance(edge, datetime.datetime):
        return edge
    if isinstance(edge, (int, float)) and not isinstance(edge, bool) and edge == edge:
        # Compared and not converted: an integer can be larger than every float.
        if abs(edge) > LARGEST_EDGE:
            raise _wrong(f"bins: {shown(edge)}: expected numbers of at most 2^53.", edge)
        # 15.0 and 15 are one edge, and have one name; so are -0.0 and 0.
        return int(edge) if edge == int(edge) else float(edge)
    raise _wrong(f"bins: {shown(edge)}: expected numbers, or dates such as 2000-01-31 without a time.", edge)


def _shown(edge: Edge) -> str:
    return edge.isoformat() if isinstance(edge, datetime.date) else str(edge)


def _names(edges: tuple[Edge, ...], unending: bool) -> list[str]:
    """The names of bins as people write them."""
    pairs = list(itertools.pairwise(edges))
    if all(isinstance(edge, datetime.date) for edge in edges):
        dates: Any = edges
        width = (
            4
            if all((day.month, day.day) == (1, 1) for day in dates)
            else 7
            if all(day.day == 1 for day in dates)
            else 10
        )
        names = []
        for start, end in pairs:
            first = start.isoformat()[:width]  # type: ignore[union-attr]
            last = (end - datetime.timedelta(days=1)).isoformat()[:width]  # type: ignore[operator]
            between = "-" if width == 4 else " to "
            names.append(first if first == last else f"{first}{between}{last}")
        return names + ([f"{dates[-1].isoformat()[:width]} or later"] if unending else [])
    whole = all(isinstance(edge, int) for edge in edges)
    if not whole:
        return [f"{a} to under {b}" for a, b in pairs] + ([f"{edges[-1]} or more"] if unending else [])
    negative = edges[0] < 0  # type: ignore[operator]
    between = " to " if negative else "-"
    names = [str(a) if b - a == 1 else f"{a}{between}{b - 1}" for a, b in pairs]  # type: ignore[operator]
    return names + ([f"{edges[-1]} or more" if negative else f"{edges[-1]}+"] if unending else [])
