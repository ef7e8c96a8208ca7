"""A certificate checked by nothing but this file and the standard library: ``python -m policygraph.check certificate.json``.

A certificate says that one neighbour step of a policy changes a query by at most so much, and carries a proof of it. This module reads the policy, the
query, the two data sets and the proof from the JSON file alone and works everything out again with whole numbers. It imports nothing of the engine. What
it does not know, or cannot decide, it leaves undecided, and an undecided certificate does not pass. The format and the theorems are in
``docs/reference/certificates.md``; read that page beside this file.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, permutations, product
from typing import Any

__all__ = ["check", "check_text", "main"]

WORK = 60_000_000
"""Steps after which a check is given up."""
TEXT = 1 << 28
"""Most characters of a certificate."""
CELLS = 2_000_000
"""Most cells that are gone through."""
Codes = tuple[int, ...]
Column = dict[Any, int]
Table = dict[int, int]


class OpenError(Exception):
    """Not decided here: it is not known, not carried by the file, or would take too long."""


class FailedError(Exception):
    """Wrong."""


class Meter:
    """Counts steps, so that no file makes the check run without end."""

    left = WORK

    @classmethod
    def spend(cls, steps: int) -> None:
        """Give up when there are too many steps."""
        cls.left -= steps
        cls.afford(0)

    @classmethod
    def afford(cls, steps: int) -> None:
        """Give up at once where at least so many steps are still to be made, and there are not as many left."""
        if cls.left < steps:
            raise OpenError("too long to check here")


# Reading -----------------------------------------------------------------------------------------------------------------


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise OpenError("a name occurs twice in one object")
    return made


def _constant(text: str) -> Any:
    raise OpenError(f"{text} is no number")


def parse(text: str) -> dict[str, Any]:
    """Read JSON in which no name occurs twice and no number is NaN or infinite."""
    if len(text) > TEXT:
        raise OpenError("the file is too long")
    try:
        made = json.loads(text, object_pairs_hook=_pairs, parse_constant=_constant)
    except (ValueError, RecursionError) as cause:
        raise OpenError(f"no JSON that can be read: {str(cause)[:100]}") from cause
    return fields(made, "the certificate")


def fields(
    given: Any, what: str, needed: tuple[str, ...] = (), beside: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """An object with the names that are needed and none that is not known."""
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise OpenError(f"{what}: expected an object")
    missing = [key for key in needed if key not in given]
    strange = [] if beside is None else [key for key in given if key not in needed and key not in beside]
    if missing or strange:
        raise OpenError(f"{what}: {'lacks' if missing else 'does not know'} {(missing or strange)[0]!r}")
    return given


def listed(given: Any, what: str) -> list[Any]:
    """A list."""
    if not isinstance(given, list):
        raise OpenError(f"{what}: expected a list")
    return given


def whole(given: Any, what: str, least: int | None = None, most: int | None = None) -> int:
    """A whole number; true and 1.0 are none."""
    if (
        type(given) is not int
        or (least is not None and given < least)
        or (most is not None and given > most)
        or abs(given) >> 4096
    ):
        raise OpenError(f"{what}: expected a whole number")
    return given


def flag(given: Any, what: str) -> bool:
    """True or false."""
    if type(given) is not bool:
        raise OpenError(f"{what}: expected true or false")
    return given


def rational(given: Any, what: str) -> Fraction:
    """An exact number: a whole number, or a text such as "3/2" or "0.25"."""
    if type(given) is int:
        return Fraction(whole(given, what))
    plain = isinstance(given, str) and len(given) < 2000 and given.isascii()
    if plain and all(c in "0123456789/.-" for c in given):
        try:
            return Fraction(given)
        except (ValueError, ZeroDivisionError) as cause:
            raise OpenError(f"{what}: {given[:40]!r} is no exact number") from cause
    raise OpenError(f"{what}: expected an exact number")


def key_of(label: Any) -> tuple[str, Any]:
    """AxisLabels of different types differ: 1 is not true and not 1.0."""
    if type(label) not in (str, int, float, bool):
        raise OpenError("a label that is neither text nor number")
    return type(label).__name__, label


# What a record can be ----------------------------------------------------------------------------------------------------


class AxisLabels:
    """The values of one attribute, or the nodes of a network, in order."""

    def __init__(self, given: Any, what: str) -> None:
        if isinstance(given, dict):
            given = _bins(given)
        self.count = given if type(given) is int else len(listed(given, what))
        whole(self.count, what, 1, 10**12)
        self.names = None if type(given) is int else list(given)
        if self.names is not None:
            self.places = {key_of(label): at for at, label in enumerate(self.names)}
            if len(self.places) < self.count or len({str(label) for label in self.names}) < self.count:
                raise OpenError(f"{what}: a label occurs twice")
        self.plain = self.names is None or [key_of(x) for x in self.names] == [
            ("int", at) for at in range(self.count)
        ]

    def code(self, label: Any) -> int:
        """Position of a label."""
        if self.names is None:
            return whole(label, "label", 0, self.count - 1)
        found = self.places.get(key_of(label))
        if found is None:
            raise OpenError(f"no value {str(label)[:40]!r}")
        return found

    def label(self, code: int) -> Any:
        """Label at a position."""
        return code if self.names is None else self.names[code]


def _bins(given: dict[str, Any]) -> list[str]:
    """Names of ranges of numbers or dates, as docs/reference/certificates.md spells them."""
    fields(given, "bins", ("bins",), ("open", "also"))
    unending = flag(given.get("open", True), "open")
    edges = listed(given["bins"], "bins")
    if len(edges) < (1 if unending else 2):
        raise OpenError("bins: too few edges")
    if all(isinstance(edge, str) for edge in edges):
        try:
            days = [date.fromisoformat(edge) for edge in edges]
        except ValueError as cause:
            raise OpenError("bins: no date") from cause
        first_of_year = all((day.month, day.day) == (1, 1) for day in days)
        width = 4 if first_of_year else 7 if all(day.day == 1 for day in days) else 10
        names = []
        for start, end in pairwise(days):
            first, last = (
                start.isoformat()[:width],
                (end - timedelta(days=1)).isoformat()[:width],
            )
            names.append(first if first == last else f"{first}{'-' if width == 4 else ' to '}{last}")
        names += [f"{days[-1].isoformat()[:width]} or later"] * unending
        rising = all(a < b for a, b in pairwise(days))
    elif all(type(edge) is int or (type(edge) is float and edge != int(edge)) for edge in edges):
        rising = all(a < b for a, b in pairwise(edges))
        if all(type(edge) is int for edge in edges):
            between, end_word = (" to ", " or more") if edges[0] < 0 else ("-", "+")
            names = [str(a) if b - a == 1 else f"{a}{between}{b - 1}" for a, b in pairwise(edges)]
        else:
            end_word = " or more"
            names = [f"{a} to under {b}" for a, b in pairwise(edges)]
        names += [f"{edges[-1]}{end_word}"] * unending
    else:
        raise OpenError("bins: expected numbers or dates")
    if not rising:
        raise OpenError("bins: expected rising edges")
    also = listed(given.get("also", []), "also")
    if not all(isinstance(label, str) for label in also):
        raise OpenError("bins: expected texts under also")
    return names + also


class Space:
    """The cells: combinations of values of a table, or node pairs of a network."""

    def __init__(self, policy: dict[str, Any]) -> None:
        self.network = "network" in policy
        self.capacity: int | None = None
        self.names: tuple[str, ...]
        self.sizes: Codes
        if self.network:
            given = fields(policy["network"], "network", ("nodes", "directed", "loops"), ("multiple",))
            self.nodes = AxisLabels(given["nodes"], "nodes")
            self.directed, self.loops = flag(given["directed"], "directed"), flag(given["loops"], "loops")
            self.multiple = flag(given.get("multiple", False), "multiple")
            self.capacity = None if self.multiple else 1
            v = whole(self.nodes.count, "nodes", 1, CELLS)
            loops = v if self.loops else 0
            self.size = (v * (v - 1) if self.directed else v * (v - 1) // 2) + loops
            self.axes, self.names, self.sizes = [self.nodes, self.nodes], ("", ""), (v, v)
        else:
            given = fields(policy.get("domain"), "domain")
            if not given or not all(given):
                raise OpenError("domain: expected named attributes")
            self.names = tuple(given)
            self.axes = [AxisLabels(labels, name) for name, labels in given.items()]
            self.sizes = tuple(axis.count for axis in self.axes)
            self.size = math.prod(self.sizes)
        if not self.size:
            raise OpenError("there is no cell")

    def codes(self, cell: int) -> Codes:
        """Positions of the values (nodes) of a cell."""
        if self.network:
            v = self.nodes.count
            if self.directed:
                width = v if self.loops else v - 1
                a, b = divmod(cell, width)
                return a, b + (not self.loops and b >= a)
            step = 0 if self.loops else 1
            a = 0
            low, high = 0, v - 1
            while low < high:  # the last row that starts at or before the cell
                a = (low + high + 1) // 2
                low, high = (a, high) if self._start(a, step) <= cell else (low, a - 1)
            return low, cell - self._start(low, step) + low + step
        out = []
        for size in reversed(self.sizes):
            cell, code = divmod(cell, size)
            out.append(code)
        return tuple(reversed(out))

    def _start(self, a: int, step: int) -> int:
        v = self.nodes.count
        return a * (2 * v - a + 1) // 2 if not step else a * (2 * v - a - 1) // 2

    def cell(self, codes: Codes) -> int:
        """Number of a cell."""
        if self.network:
            a, b = codes
            if a == b and not self.loops:
                raise OpenError("a loop in a network without loops")
            if self.directed:
                return a * self.nodes.count + b if self.loops else a * (self.nodes.count - 1) + b - (b > a)
            a, b = sorted(codes)
            step = 0 if self.loops else 1
            return self._start(a, step) + b - a - step
        at = 0
        for code, size in zip(codes, self.sizes, strict=True):
            at = at * size + code
        return at

    def named(self, labels: Any) -> Codes:
        """Positions of the labels of a cell."""
        given = listed(labels, "cell")
        if len(given) != len(self.axes):
            raise OpenError("a cell with too many or too few labels")
        codes = tuple(axis.code(label) for axis, label in zip(self.axes, given, strict=True))
        return self.codes(self.cell(codes)) if self.network else codes

    def axis(self, name: Any) -> int:
        """Position of an attribute."""
        if self.network or not isinstance(name, str) or name not in self.names:
            raise OpenError(f"no attribute {str(name)[:40]!r}")
        return self.names.index(name)

    def axis_set(self, names: Any) -> Codes:
        """Positions of some attributes, each named once, in the order of the domain."""
        axes = [self.axis(name) for name in listed(names, "attributes")]
        if len(set(axes)) < len(axes):
            raise OpenError("an attribute is named twice")
        return tuple(sorted(axes))

    def all_cells(self) -> range:
        """Every cell, if they can be gone through."""
        if self.size > CELLS:
            raise OpenError(f"{self.size:,} cells are too many to go through")
        Meter.spend(self.size)
        return range(self.size)

    def several(self) -> frozenset[int]:
        """Attributes with more than one value."""
        return frozenset(at for at, size in enumerate(self.sizes) if size > 1)


# Public facts ------------------------------------------------------------------------------------------------------------


class KnownSums:
    """Some public sums. ``margin`` is set where it is a whole table, over these attributes; ``zero`` where no record can be."""

    def __init__(self, space: Space, given: Any, number: int) -> None:
        self.space, self.number = space, number
        self.margin: Codes | None = None
        self.cells: tuple[Codes, frozenset[Codes]] | None = None
        self.degrees: tuple[str, frozenset[int]] | None = None
        self.zero: Callable[[Codes], bool] | None = None
        self.values: dict[Any, int] | None = None
        self.only: tuple[int, set[int]] | None = None
        """An attribute and the values of it outside of which nothing is counted."""
        self._column: Callable[[Codes], Column] = lambda codes: {}
        spec = fields(given, "public fact")
        kinds = [key for key in spec if key != "equals"]
        if len(kinds) != 1:
            raise OpenError("a public fact of no single kind")
        self.kind, what = kinds[0], spec[kinds[0]]
        reader = READERS.get(self.kind)
        if reader is None:
            raise OpenError(f"a public fact of the kind {self.kind[:40]!r}")
        keys = reader(self, what)
        if spec.get("equals") is not None:
            if keys is None:
                raise OpenError(f"published values beside {self.kind}")
            flat = _flat(spec["equals"])
            if len(flat) != len(keys):
                raise OpenError("published values of another shape")
            self.values = dict(zip(keys, flat, strict=True))

    def column(self, codes: Codes) -> Column:
        """What one record in a cell adds to the sums."""
        return {(self.number, key): x for key, x in self._column(codes).items() if x}

    def _total(self, what: Any) -> list[Any]:
        if what is not True:
            raise OpenError("total: expected true")
        if not self.space.network:
            self.margin = ()
        self._column = lambda codes: {(): 1}
        return [()]

    def _cuboid(self, what: Any) -> list[Any]:
        axes = self.margin = self.space.axis_set(what)
        self._column = lambda codes: {tuple(codes[a] for a in axes): 1}
        sizes = [self.space.sizes[a] for a in axes]
        return list(product(*map(range, sizes))) if math.prod(sizes) <= CELLS else []

    def _cells(self, what: Any) -> list[Any]:
        given = fields(what, "cells", ("of", "values"), ())
        axes = self.space.axis_set(given["of"])
        order = [self.space.axis(name) for name in given["of"]]
        places = []
        for labels in listed(given["values"], "cells"):
            if len(listed(labels, "cells")) != len(order):
                raise OpenError("cells: too many or too few labels")
            code = {a: self.space.axes[a].code(label) for a, label in zip(order, labels, strict=True)}
            places.append(tuple(code[a] for a in axes))
        if len(set(places)) < len(places) or not places:
            raise OpenError("cells: none, or one twice")
        known = frozenset(places)
        self.cells = axes, known
        self._column = lambda codes: {p: 1} if (p := tuple(codes[a] for a in axes)) in known else {}
        return places

    def _where(self, given: Any) -> tuple[Callable[[Codes], bool], dict[int, set[int]]]:
        """Whether a cell is meant, and which values it can have of some attributes."""
        if isinstance(given, list):
            codes = self.space.named(given)
            return lambda other: other == codes, {axis: {code} for axis, code in enumerate(codes)}
        chosen: dict[int, set[int]] = {}
        for name, labels in fields(given, "where").items():
            axis = self.space.axes[self.space.axis(name)]
            some = labels if isinstance(labels, list) else [labels]
            chosen[self.space.axis(name)] = {axis.code(label) for label in some}
        return lambda codes: all(codes[a] in values for a, values in chosen.items()), chosen

    def _count(self, what: Any) -> list[Any]:
        given = fields(what, "count", (), ("where", "terms"))
        if len(given) != 1:
            raise OpenError("count: expected where or terms")
        terms = []
        shared: set[int] = set()
        values: dict[int, set[int]] = {}
        for term in listed(given.get("terms", [{**given, "times": 1}]), "terms"):
            fields(term, "term", ("times",), ("where", "cell"))
            if len(term) != 2:
                raise OpenError("term: expected where or cell")
            fits, chosen = self._where(term.get("where", term.get("cell")))
            terms.append((fits, whole(term["times"], "times")))
            shared = set(chosen) if len(terms) == 1 else shared & set(chosen)
            values = {
                axis: chosen[axis] | (values.get(axis, set()) if len(terms) > 1 else set()) for axis in shared
            }
        if not terms:
            raise OpenError("count: no term")
        self.only = min(values.items(), key=lambda item: len(item[1]), default=None)
        self._column = lambda codes: {(): sum(times for fits, times in terms if fits(codes))}
        return [()]

    def _sums(self, what: Any) -> list[Any]:
        given = fields(what, "sums", ("rows", "cells", "entries"), ())
        rows = whole(given["rows"], "rows", 1, CELLS)
        if whole(given["cells"], "cells") != self.space.size:
            raise OpenError("sums: over another number of cells")
        columns: dict[int, Column] = {}
        for entry in listed(given["entries"], "entries"):
            if len(listed(entry, "entry")) != 3:
                raise OpenError("sums: expected row, cell and factor")
            row, cell = whole(entry[0], "row", 0, rows - 1), whole(entry[1], "cell", 0, self.space.size - 1)
            column = columns.setdefault(cell, {})
            if row in column:
                raise OpenError("sums: an entry twice")
            column[row] = whole(entry[2], "factor")
        self._column = lambda codes: columns.get(self.space.cell(codes), {})
        return list(range(rows))

    def _zeros(self, what: Any) -> None:
        chosen = [self._where(given)[0] for given in listed(what, "zeros")]
        self.zero = lambda codes: any(fits(codes) for fits in chosen)

    def _degrees(self, what: Any) -> list[Any]:
        space, side = self.space, {"degrees": "both", "in_degrees": "in", "out_degrees": "out"}[self.kind]
        if not space.network or (side == "both") == space.directed:
            raise OpenError(f"{self.kind} of something else than such a network")
        every = list(range(space.nodes.count))
        nodes = every if what == "all" else [space.nodes.code(node) for node in listed(what, "nodes")]
        if len(set(nodes)) < len(nodes):
            raise OpenError("a node is named twice")
        known = frozenset(nodes)
        self.degrees = side, known

        def column(codes: Codes) -> Column:
            ends = {"both": codes, "out": codes[:1], "in": codes[1:]}[side]
            return dict(Counter(end for end in ends if end in known))

        self._column = column
        return nodes

    def _edges(self, what: Any) -> None:
        given = fields(what, "edges", ("groups",), ("inside", "between"))
        inside = flag(given.get("inside", False), "inside")
        if inside == flag(given.get("between", False), "between") or not self.space.network:
            raise OpenError("edges: expected inside or between, of a network")
        groups = given["groups"]
        nodes = [self.space.nodes.label(at) for at in range(self.space.nodes.count)]
        if isinstance(groups, dict):
            if set(groups) != {str(node) for node in nodes}:
                raise OpenError("edges: expected one group for each node")
            groups = [groups[str(node)] for node in nodes]
        if len(listed(groups, "groups")) != len(nodes):
            raise OpenError("edges: expected one group for each node")
        keys = [key_of(group) for group in groups]
        self._column = lambda codes: {codes: 1} if (keys[codes[0]] == keys[codes[1]]) == inside else {}


READERS: dict[str, Callable[[KnownSums, Any], list[Any] | None]] = {
    "total": KnownSums._total,
    "cuboid": KnownSums._cuboid,
    "cells": KnownSums._cells,
    "count": KnownSums._count,
    "sums": KnownSums._sums,
    "zeros": KnownSums._zeros,
    "degrees": KnownSums._degrees,
    "in_degrees": KnownSums._degrees,
    "out_degrees": KnownSums._degrees,
    "edges": KnownSums._edges,
}


def _flat(given: Any) -> list[int]:
    if isinstance(given, list):
        return [x for part in given for x in _flat(part)]
    return [whole(given, "published value")]


# Policy graphs -----------------------------------------------------------------------------------------------------------

Joined = Callable[[int, int], bool]


class Graph:
    """The secret pairs of cells: whether two are joined, and on which attributes the ends of an edge can differ."""

    def __init__(self, space: Space, form: Any, bottom: Any) -> None:
        self.space = space
        self.axes: dict[int, Joined] | None = None
        self.edges: set[tuple[int, int]] | None = None
        self.joined: Callable[[Codes, Codes], bool] | None = None
        self.loose: frozenset[int] = frozenset()
        self.most = 1
        """An edge differs on at most so many attributes, all of them in ``changing``."""
        self.changing: frozenset[int] = frozenset()
        self.everywhere = flag(bottom, "bottom")
        self.complete = form == "full"
        """Whether every two cells are a secret pair."""
        if form == "full":
            self.joined = lambda a, b: a != b
            self._several(frozenset(range(len(space.sizes))))
        elif isinstance(form, str):
            self._per_axis(dict.fromkeys(self._all_axes(form), form))
        else:
            self._read(fields(form, "graph"))
        several = space.several() if not space.network else frozenset({0, 1})
        self.changing &= several

    def _several(self, axes: frozenset[int], most: int | None = None) -> None:
        self.changing, self.most = axes, len(axes) if most is None else most

    def _all_axes(self, word: str) -> list[int]:
        if self.space.network or word not in ("attribute", "bit", "line", "grid"):
            raise OpenError(f"a graph {word[:40]!r}")
        if word == "line" and len(self.space.sizes) > 1:
            raise OpenError("a line along no attribute")
        return list(range(len(self.space.sizes)))

    def _per_axis(self, forms: dict[int, Any]) -> None:
        self.axes = {axis: self._rule(axis, form) for axis, form in forms.items()}
        self._several(frozenset(forms), 1)

    def _rule(self, axis: int, form: Any) -> Joined:
        """The graph along one attribute."""
        labels = self.space.axes[axis]
        if isinstance(form, str):
            rules: dict[str, Joined] = {
                "full": lambda a, b: a != b,
                "attribute": lambda a, b: a != b,
                "line": lambda a, b: abs(a - b) == 1,
                "grid": lambda a, b: abs(a - b) == 1,
                "bit": lambda a, b: (a ^ b).bit_count() == 1,
            }
            if form not in rules:
                raise OpenError(f"a graph {form[:40]!r}")
            return rules[form]
        spec = fields(form, "graph of an attribute", (), ("threshold", "partition", "edges", "rest"))
        if "threshold" in spec and len(spec) == 1:
            theta = whole(spec["threshold"], "threshold", 1)
            return lambda a, b: 0 < abs(a - b) <= theta
        if "partition" in spec and "edges" not in spec and "threshold" not in spec:
            blocks = self._blocks(spec["partition"], spec.get("rest"), labels.count, labels.code)
            return lambda a, b: a != b and blocks(a) == blocks(b)
        if "edges" in spec and len(spec) == 1:
            pairs = [self._pair(pair, labels.code) for pair in listed(spec["edges"], "edges")]
            edges = {frozenset(pair) for pair in pairs}
            return lambda a, b: frozenset((a, b)) in edges and a != b
        raise OpenError("a graph of an attribute of no single kind")

    @staticmethod
    def _pair(given: Any, code: Callable[[Any], int]) -> tuple[int, int]:
        if len(listed(given, "edge")) != 2 or code(given[0]) == code(given[1]):
            raise OpenError("an edge that does not join two cells")
        u, v = sorted(code(end) for end in given)
        return u, v

    @staticmethod
    def _blocks(given: Any, rest: Any, count: int, code: Callable[[Any], int]) -> Callable[[int], Any]:
        if type(given) is int:
            width = whole(given, "partition", 1)
            return lambda a: a // width
        if rest not in (None, "singletons"):
            raise OpenError("rest: expected singletons")
        owner: dict[int, int] = {}
        for number, block in enumerate(listed(given, "partition")):
            for member in listed(block, "block"):
                if owner.setdefault(code(member), number) != number:
                    raise OpenError("a value in two blocks")
        if rest is None and len(owner) < count:
            raise OpenError("a value in no block")
        return lambda a: owner.get(a, ("alone", a))

    def _read(self, form: dict[str, Any]) -> None:
        space = self.space
        single = not space.network and len(space.sizes) == 1
        if "product" in form:
            fields(form, "graph", ("product",), ())
            parts = fields(form["product"], "product")
            self._per_axis({space.axis(name): part for name, part in parts.items()})
        elif "attribute" in form:
            axis = space.axis(form["attribute"])
            rest = {key: value for key, value in form.items() if key not in ("attribute", "bottom")}
            words = [key for key, value in rest.items() if value is True and key in ("full", "bit", "line")]
            self._per_axis({axis: words[0] if words and len(rest) == 1 else rest})
            if "bottom" in form:
                if not single or "edges" not in form:
                    raise OpenError("bottom beside a graph of one attribute")
                ends = listed(form["bottom"], "bottom")
                self.loose = frozenset(space.axes[axis].code(end) for end in ends)
        elif "threshold" in form:
            self._ball(fields(form, "graph", ("threshold",), ("metric",)), single)
        elif "partition" in form:
            fields(form, "graph", ("partition",), ("rest",))
            self._partition(form["partition"], form.get("rest"), single)
        elif "edges" in form:
            fields(form, "graph", ("edges",), ("bottom",))
            pairs = [self._pair(pair, self._index) for pair in listed(form["edges"], "edges")]
            self.edges = set(pairs)
            self.loose = frozenset(self._index(end) for end in listed(form.get("bottom", []), "bottom"))
            self._several(frozenset(range(len(space.sizes))))
        else:
            raise OpenError("a graph of an unknown kind")

    def _index(self, given: Any) -> int:
        space = self.space
        single = not space.network and len(space.sizes) == 1
        if isinstance(given, list):
            return space.cell(space.named(given))
        if type(given) is int and (not single or space.axes[0].plain):
            return whole(given, "cell", 0, space.size - 1)
        if single and isinstance(given, str):
            return space.axes[0].code(given)
        raise OpenError("a cell that is neither a number nor labels")

    def _ball(self, form: dict[str, Any], single: bool) -> None:
        metric = form.get("metric", "l1")
        theta = rational(form["threshold"], "threshold")
        if self.space.network or theta < 1 or metric not in ("l1", "euclidean"):
            raise OpenError("a threshold that is not known")
        if metric == "l1" and theta.denominator != 1:
            raise OpenError("a threshold that is not whole")
        if single:
            self._per_axis({0: {"threshold": math.floor(theta)}})
            return
        square = theta * theta
        if metric == "l1":
            self.joined = lambda a, b: 0 < sum(abs(x - y) for x, y in zip(a, b, strict=True)) <= theta
        else:
            self.joined = lambda a, b: 0 < sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) <= square
        every = frozenset(range(len(self.space.sizes)))
        self._several(every, min(len(every), math.floor(theta if metric == "l1" else square)))

    def _partition(self, given: Any, rest: Any, single: bool) -> None:
        space = self.space
        if single and not isinstance(given, dict):
            self._per_axis({0: {"partition": given, **({} if rest is None else {"rest": rest})}})
        elif isinstance(given, dict):
            parts = {}
            for name, blocks in given.items():
                labels = space.axes[space.axis(name)]
                parts[space.axis(name)] = self._blocks(blocks, rest, labels.count, labels.code)
            if not parts:
                raise OpenError("partition: of no attribute")

            def together(a: Codes, b: Codes) -> bool:
                same = all(x == y or at in parts for at, (x, y) in enumerate(zip(a, b, strict=True)))
                return same and a != b and all(of(a[at]) == of(b[at]) for at, of in parts.items())

            self.joined = together
            self._several(frozenset(parts))
        else:
            of = self._blocks(given, rest, space.size, self._index)
            self.joined = lambda a, b: a != b and of(space.cell(a)) == of(space.cell(b))
            self._several(frozenset(range(len(space.sizes))))

    def bottom(self, cell: int) -> bool:
        """Whether a record in this cell may appear or vanish."""
        return self.everywhere or cell in self.loose

    def edge(self, u: int, v: int) -> bool:
        """Whether two cells are joined."""
        if self.edges is not None:
            return (min(u, v), max(u, v)) in self.edges
        a, b = self.space.codes(u), self.space.codes(v)
        if self.axes is not None:
            differ = [at for at, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
            return (
                len(differ) == 1
                and differ[0] in self.axes
                and self.axes[differ[0]](a[differ[0]], b[differ[0]])
            )
        return self.joined is not None and self.joined(a, b)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Every edge once."""
        if self.edges is not None:
            Meter.spend(len(self.edges))
            yield from self.edges
        elif self.axes is not None:
            for u in self.space.all_cells():
                codes = self.space.codes(u)
                for axis, joined in self.axes.items():
                    Meter.spend(self.space.sizes[axis])
                    for b in range(codes[axis] + 1, self.space.sizes[axis]):
                        if joined(codes[axis], b):
                            yield u, self.space.cell((*codes[:axis], b, *codes[axis + 1 :]))
        else:
            cells = self.space.all_cells()
            Meter.spend(2 * len(cells) ** 2)
            for u, v in combinations(cells, 2):
                if self.edge(u, v):
                    yield u, v


# Queries -----------------------------------------------------------------------------------------------------------------

Factor = Callable[[int], Column]


class AskedRows:
    """Integer rows over cells. ``tables`` is set where every row is a product over attributes: axes, weight, factor by axis."""

    def __init__(self, space: Space, given: Any) -> None:
        self.space = space
        self.unit = Fraction(1)
        self.tables: list[tuple[Codes, int, dict[int, Factor]]] | None = None
        self.even = True
        """Whether all values of an attribute are alike: permuting them permutes the rows, or changes their signs."""
        self.measure: AskedValues | None = None
        self.kinds: list[str] = []
        self._of: Callable[[Codes], Column] | None = None
        spec = fields(given, "query")
        for name, reader in QUERIES.items():
            if name in spec:
                reader(self, spec)
                return
        raise OpenError(f"a query of the kind {str(sorted(spec))[:80]}")

    def column(self, cell: int) -> Column:
        """What one record in a cell adds to the answers."""
        codes = self.space.codes(cell)
        if self._of is not None:
            return self._of(codes)
        made: Column = {}
        for number, (axes, weight, factors) in enumerate(self.tables or []):
            rows: list[tuple[Any, int]] = [((number,), weight)]
            for axis in axes:
                here = factors[axis](codes[axis])
                Meter.spend(len(rows) * len(here) // 8)
                rows = [((*key, row), x * y) for key, x in rows for row, y in here.items()]
            made.update(rows)
        return made

    @property
    def identity(self) -> bool:
        """Whether every cell is asked for, once and alone."""
        if self.kinds == ["adjacency"]:
            return True
        plain = self.kinds == ["cuboids"] and self.tables is not None and len(self.tables) == 1
        return (
            plain
            and self.tables is not None
            and self.tables[0][1] == 1
            and self.space.several() <= set(self.tables[0][0])
        )

    def _tables(self, spec: dict[str, Any], key: str, factor: Callable[[int], Factor]) -> None:
        sets = [self.space.axis_set(names) for names in listed(spec[key], key)]
        weights = [whole(w, "weight", 1) for w in listed(spec.get("weights", [1] * len(sets)), "weights")]
        if len(weights) != len(sets) or not sets:
            raise OpenError("no table, or weights for others")
        self.tables = [
            (axes, weight, {axis: factor(axis) for axis in axes})
            for axes, weight in zip(sets, weights, strict=True)
        ]
        self.kinds = [key]

    def _cuboids(self, spec: dict[str, Any]) -> None:
        fields(spec, "query", ("cuboids",), ("weights",))
        self._tables(spec, "cuboids", lambda axis: lambda code: {code: 1})

    def _interactions(self, spec: dict[str, Any]) -> None:
        fields(spec, "query", ("interactions",), ("weights",))

        def factor(axis: int) -> Factor:
            n = self.space.sizes[axis]
            if n < 2:
                raise OpenError("an interaction of an attribute with one value")
            if n == 2:
                return lambda code: {0: 1 - 2 * code}
            if n > CELLS:
                raise OpenError("an attribute with too many values for interactions")
            return lambda code: {at: n - 1 if at == code else -1 for at in range(n)}

        self._tables(spec, "interactions", factor)

    def _marginals(self, spec: dict[str, Any]) -> None:
        fields(spec, "query", ("marginals", "asked"), ("weights",))
        asked = {self.space.axis(name): how for name, how in fields(spec["asked"], "asked").items()}
        self.even = all(how == "values" for how in asked.values())

        def factor(axis: int) -> Factor:
            n, how = self.space.sizes[axis], asked.get(axis, "values")
            if how == "values":
                return lambda code: {code: 1}
            if how == "prefix":
                return lambda code: _ones(range(code, n))
            if how == "ranges":
                return lambda code: _ones(range(code + 1), range(code, n))
            rows = [[whole(x, "entry") for x in listed(row, "row")] for row in listed(how, "rows")]
            if not rows or any(len(row) != n for row in rows):
                raise OpenError("rows of another length than the attribute")
            return lambda code: {at: row[code] for at, row in enumerate(rows) if row[code]}

        self._tables(spec, "marginals", factor)

    def _boxes(self, spec: dict[str, Any]) -> None:
        fields(spec, "query", ("boxes",), ("name",))
        sizes, boxes = self.space.sizes, spec["boxes"]
        if self.space.network:
            raise OpenError("boxes of a network")
        if boxes == "all ranges":
            if len(sizes) != 1:
                raise OpenError("all ranges of several attributes")
            n = sizes[0]
            self._of = lambda codes: _ones(range(codes[0] + 1), range(codes[0], n))
            return
        read = []
        for box in listed(boxes, "boxes"):
            ends = [[whole(x, "end") for x in listed(end, "end")] for end in listed(box, "box")]
            if len(ends) != 2 or any(len(end) != len(sizes) for end in ends):
                raise OpenError("a box of another shape")
            if not all(0 <= a <= b < n for a, b, n in zip(*ends, sizes, strict=True)):
                raise OpenError("a box outside of the domain")
            read.append(ends)
        if not read:
            raise OpenError("no box")

        def column(codes: Codes) -> Column:
            Meter.spend(len(read))
            return {
                at: 1
                for at, (low, high) in enumerate(read)
                if all(a <= x <= b for a, x, b in zip(low, codes, high, strict=True))
            }

        self._of = column

    def _matrix(self, spec: dict[str, Any]) -> None:
        fields(spec, "query", ("matrix",), ("name", "row_names", "unit"))
        given = fields(spec["matrix"], "matrix", ("rows", "entries"), ())
        rows, columns = whole(given["rows"], "rows", 1), dict[int, Column]()
        for entry in listed(given["entries"], "entries"):
            if len(listed(entry, "entry")) != 3:
                raise OpenError("matrix: expected row, cell and entry")
            row, cell = whole(entry[0], "row", 0, rows - 1), whole(entry[1], "cell", 0, self.space.size - 1)
            column = columns.setdefault(cell, {})
            if row in column:
                raise OpenError("matrix: an entry twice")
            column[row] = whole(entry[2], "entry")
        if "unit" in spec:
            self.unit = rational(spec["unit"], "unit")
            if self.unit <= 0:
                raise OpenError("a unit that is not positive")
        self._of = lambda codes: columns.get(self.space.cell(codes), {})

    def _adjacency(self, spec: dict[str, Any]) -> None:
        fields(spec, "query", ("adjacency",), ())
        if spec["adjacency"] is not True or not self.space.network:
            raise OpenError("adjacency: expected true, for a network")
        self.kinds = ["adjacency"]
        self._of = lambda codes: {codes: 1}

    def _mixing(self, spec: dict[str, Any]) -> None:
        fields(spec, "query", ("mixing",), ())
        groups = [key_of(group) for group in listed(spec["mixing"], "mixing")]
        if not self.space.network or len(groups) != self.space.nodes.count:
            raise OpenError("mixing: expected a group for each node of a network")
        directed = self.space.directed

        def column(codes: Codes) -> Column:
            pair = groups[codes[0]], groups[codes[1]]
            return {(pair if directed else frozenset(pair)): 1}

        self.kinds = ["mixing"]
        self._of = column

    def _measured(self, spec: dict[str, Any]) -> None:
        self.measure = AskedValues(self.space, spec)


def _ones(*ranges: range) -> Column:
    Meter.spend(math.prod(map(len, ranges)))
    return dict.fromkeys(product(*ranges), 1)


class AskedValues:
    """Sums or averages of a numeric column with a declared range; a record is a cell and a value."""

    def __init__(self, space: Space, spec: dict[str, Any]) -> None:
        kind = "sums" if "sums" in spec else "averages"
        fields(spec, "query", (kind, "measure"), ("weights", "balance", "centred"))
        given = fields(spec["measure"], "measure", ("column", "low", "high"), ("unit", "missing"))
        unit = rational(given.get("unit", 1), "unit")
        self.low, high = rational(given["low"], "low"), rational(given["high"], "high")
        if space.network or unit <= 0 or (self.low / unit).denominator != 1 or (high / unit).denominator != 1:
            raise OpenError("a measure whose ends are no multiples of its unit")
        missing = given.get("missing", "error")
        self.drops = missing == "drop"
        if missing not in ("error", "drop") and not self.low <= rational(missing, "missing") <= high:
            raise OpenError("a rule for missing values that is not known")
        self.lowest, self.highest = int(self.low / unit), int(high / unit)
        self.span, self.unit = self.highest - self.lowest, unit
        if self.span < 1:
            raise OpenError("a measure without a range")
        self.sets = [space.axis_set(names) for names in listed(spec[kind], kind)]
        weights = listed(spec.get("weights", [1] * len(self.sets)), "weights")
        self.weights = [whole(weight, "weight", 1) for weight in weights]
        if not self.sets or len(self.weights) != len(self.sets):
            raise OpenError("no table, or weights for others")
        balance = rational(spec.get("balance", 1), "balance")
        if not Fraction(1, 1000) <= balance <= 1000:
            raise OpenError("a balance that is not known")
        self.centred = kind == "averages" or flag(spec.get("centred", False), "centred")
        ratio = balance * self.span
        self.by_sum = ratio.denominator if kind == "averages" else 1
        self.by_count = ratio.numerator if kind == "averages" else 0
        self.ends = (-self.span, self.span) if self.centred else (self.lowest, self.highest)

    def column(self, codes: Codes, level: int) -> Column:
        """What one record of a cell with a value adds to the answers."""
        value = self.ends[0] + level * (self.ends[1] - self.ends[0]) // self.span
        made: Column = {}
        for number, (axes, weight) in enumerate(zip(self.sets, self.weights, strict=True)):
            place = tuple(codes[a] for a in axes)
            made[number, "sum", place] = weight * self.by_sum * value
            made[number, "count", place] = weight * self.by_count
        return made


QUERIES: dict[str, Callable[[AskedRows, dict[str, Any]], None]] = {
    "cuboids": AskedRows._cuboids,
    "marginals": AskedRows._marginals,
    "measure": AskedRows._measured,
    "interactions": AskedRows._interactions,
    "adjacency": AskedRows._adjacency,
    "mixing": AskedRows._mixing,
    "boxes": AskedRows._boxes,
    "matrix": AskedRows._matrix,
}


# The claim ---------------------------------------------------------------------------------------------------------------

SENTENCES = {
    "edges": "neighbours along the edges of the policy graph",
    "induced": "induced neighbours under exact public facts (Kifer and Machanavajjhala 2011, Definition 4.4)",
    "blowfish": "Blowfish neighbours under constraints (He, Machanavajjhala and Ding 2014, Definition 4.1)",
}
STRENGTHS = ("worst-case", "positive", "markov")
NEEDED = (
    "format value kind lower norm definition method witness reason steps exact_value neighbours strength at_most_records "
    "policy_fingerprint query_fingerprint policy query"
)
BESIDE = ("cut_short", "unit", "at_most", "library", "proof", "effort")


class Question:
    """How much one neighbour step can change a query: what a certificate is about."""

    def __init__(self, policy: Any, query: Any, norm: Any) -> None:
        spec = fields(policy, "policy", (), ("domain", "network", "neighbours", "public", "data", "unit"))
        if ("domain" in spec) == ("network" in spec) or norm not in ("l1", "l2"):
            raise OpenError("a policy over a table or a network, and the norm l1 or l2, were expected")
        self.space, self.norm, self.spec = Space(spec), norm, spec
        near = fields(
            spec.get("neighbours", {}), "neighbours", (), ("graph", "bottom", "strength", "at_most_records")
        )
        facts = [
            KnownSums(self.space, fact, at)
            for at, fact in enumerate(listed(spec.get("public", []), "public"))
        ]
        self.facts = [fact for fact in facts if fact.zero is None]
        self.zeros = [fact.zero for fact in facts if fact.zero is not None]
        self.anywhere = [fact for fact in self.facts if fact.only is None]
        self.there: dict[tuple[int, int], list[KnownSums]] = {}
        for fact in self.facts:
            for code in fact.only[1] if fact.only is not None else ():
                self.there.setdefault((fact.only[0] if fact.only else 0, code), []).append(fact)
        self.keyed = sorted({axis for axis, _ in self.there})
        self.graph: Graph | None = None
        if "graph" in near and near["graph"] != "none":
            self.graph = Graph(self.space, near["graph"], near.get("bottom", False))
        elif "bottom" in near:
            raise OpenError("bottom without a graph")
        self.strength = near.get("strength", "worst-case")
        self.cap: int | None = near.get("at_most_records")
        if self.strength not in STRENGTHS:
            raise OpenError("an unknown strength")
        if self.cap is not None:
            whole(self.cap, "at_most_records", 1)
        self.definition = "induced" if self.graph is None else "blowfish" if facts else "edges"
        if self.definition == "blowfish" and self.strength != "worst-case":
            raise OpenError("a strength beside graph and facts")
        self.members = self.copies = 1
        self.column: str | None = None
        self.exactly = False
        if "unit" in spec and isinstance(spec["unit"], dict) and "column" in spec["unit"]:
            self._of_column(spec["unit"])
        elif "unit" in spec:
            unit = fields(spec["unit"], "unit", ("family",), ("exactly",))
            self.members = self.copies = whole(unit["family"], "family", 1)
            self.exactly = flag(unit.get("exactly", False), "exactly")
            if self.space.network or self.cap is not None or self.strength == "positive":
                raise OpenError("families of edges, beside a cap, or of positive strength")
            if self.facts and not self.exactly and self.members > 1:
                # families of different sizes make up for each other: docs/explanation/proofs/families.md
                raise OpenError("families of up to so many records beside public sums")
        if "data" in spec:
            fields(spec["data"], "data", (), ("unknown",))
        self.query = AskedRows(self.space, query)
        if self.query.measure is not None:
            drops = self.query.measure.drops and self.graph is not None and not self.graph.everywhere
            if (self.members > 1 and self.column is None) or self.strength != "worst-case" or drops:
                raise OpenError(
                    "values of records under families, a strength, or dropped where none may vanish"
                )

    def _of_column(self, given: Any) -> None:
        """All records of one unit: docs/explanation/proofs/units.md."""
        unit = fields(given, "unit", ("column", "at_most"), ("per_cell", "within"))
        for name in ("column", "within"):
            if name in unit and not (isinstance(unit[name], str) and unit[name]):
                raise OpenError(f"{name}: expected the name of a column")
        self.column, self.members = unit["column"], whole(unit["at_most"], "at_most", 1)
        self.most = whole(unit.get("per_cell", self.members), "per_cell", 1, self.members)
        if self.space.network or self.facts or self.cap is not None or self.strength != "worst-case":
            raise OpenError("a unit of edges, or beside public sums, a cap or a strength")
        cell = f", at most {self.most} in one cell" if "per_cell" in unit else ""
        words = f"up to {self.members} record{'s' * (self.members != 1)}{cell}"
        self.words = (
            f"; all records of one {self.column} ({words}) appear or vanish together"
            if self.graph is None
            else f"; each record of one {self.column} ({words}) stays or takes such a step"
        )

    @property
    def valued(self) -> bool:
        """Whether values of facts are published."""
        return any(fact.values is not None for fact in self.facts)

    def possible(self, cell: int) -> bool:
        """Whether a record can be in a cell."""
        codes = self.space.codes(cell) if self.zeros else ()
        return not any(zero(codes) for zero in self.zeros)

    def cells(self) -> list[int]:
        """The cells that can hold a record."""
        every = self.space.all_cells()
        return [cell for cell in every if self.possible(cell)] if self.zeros else list(every)

    def known(self, cell: int) -> Column:
        """What one record in a cell adds to the public sums."""
        codes = self.space.codes(cell)
        made: Column = {}
        for fact in self.anywhere:
            made.update(fact.column(codes))
        for axis in self.keyed:
            for fact in self.there.get((axis, codes[axis]), ()):
                made.update(fact.column(codes))
        return made

    def size(self, rows: Column) -> int:
        """L1 norm, or squared L2 norm."""
        return sum(abs(x) if self.norm == "l1" else x * x for x in rows.values())

    def answer(self, change: Table) -> Column:
        """What a change of cells does to the answers."""
        made: Column = {}
        for cell, amount in change.items():
            for row, entry in self.query.column(cell).items():
                made[row] = made.get(row, 0) + entry * amount
        return made

    def with_query(self, query: Any, norm: str) -> Question:
        """The same neighbours and another query."""
        return Question(self.spec, query, norm)

    @cached_property
    def of_cells(self) -> Question:
        """The same neighbours, with every cell asked for."""
        every: Any = {"adjacency": True} if self.space.network else {"cuboids": [list(self.space.names)]}
        return self.with_query(every, "l1")

    def margins(self) -> list[frozenset[int]]:
        """The public margins as sets of attributes with several values, none inside another; only where there are no other facts."""
        several, found = self.space.several(), set()
        for fact in self.facts:
            if fact.margin is None:
                raise OpenError("a public fact that is no whole table")
            found.add(frozenset(fact.margin) & several)
        return sorted((one for one in found if not any(one < other for other in found)), key=sorted)


# The two data sets -------------------------------------------------------------------------------------------------------


def tables_of(problem: Question, witness: Any) -> tuple[Table, Table]:
    """Both data sets, by numbers of cells; their labels and the change must fit."""
    given = fields(witness, "witness", ("before", "after", "change"), ("pairs",))
    made = []
    for side, name in (("before", "count"), ("after", "count"), ("change", "amount")):
        table: Table = {}
        for row in listed(given[side], side):
            fields(row, side, ("cell", "index", name), ())
            cell, amount = _cell(problem, row), whole(row[name], name)
            if cell in table or not amount or (amount < 0 and name == "count"):
                raise FailedError(f"{side}: a cell twice, or a count that is not positive")
            table[cell] = amount
        made.append(table)
    before, after, change = made
    if change != difference(before, after):
        raise FailedError("the change is not the difference of the two data sets")
    return before, after


def _cell(problem: Question, row: dict[str, Any]) -> int:
    measure, space = problem.query.measure, problem.space
    levels = 1 if measure is None else measure.span + 1
    index = whole(row["index"], "index")
    if not 0 <= index < space.size * levels:
        raise FailedError(f"there is no cell {index}")
    labels = listed(row["cell"], "cell")
    codes = space.codes(index // levels)
    stated = labels if measure is None else labels[:-1]
    fits = [key_of(x) for x in stated] == [key_of(a.label(c)) for a, c in zip(space.axes, codes, strict=True)]
    if measure is not None and labels:
        value = measure.low + (index % levels) * measure.unit
        exact = value.denominator == 1
        fits = (
            fits
            and type(labels[-1]) is (int if exact else float)
            and labels[-1] == (int(value) if exact else float(value))
        )
    if not fits:
        raise FailedError(f"cell {index} has other labels")
    return index


def difference(before: Table, after: Table) -> Table:
    """The change from one data set to the other."""
    made = dict(after)
    for cell, amount in before.items():
        made[cell] = made.get(cell, 0) - amount
    return {cell: amount for cell, amount in made.items() if amount}


def sums_of(problem: Question, table: Table) -> Column:
    """The public sums of a data set."""
    made: Column = {}
    for cell, amount in table.items():
        for key, entry in problem.known(cell).items():
            made[key] = made.get(key, 0) + entry * amount
    return {key: x for key, x in made.items() if x}


def facts_hold(problem: Question, before: Table, after: Table) -> str:
    """Both data sets have the same public sums, the published ones where there are any, and hold nothing that cannot be."""
    top = problem.space.capacity
    for table in (before, after):
        for cell, amount in table.items():
            if not problem.possible(cell) or (top is not None and amount > top):
                raise FailedError(f"cell {cell} cannot hold {amount} records")
    sums = sums_of(problem, before)
    if sums != sums_of(problem, after):
        raise FailedError("a public fact differs between the two data sets")
    for fact in problem.facts:
        for key, value in (fact.values or {}).items():
            if sums.get((fact.number, key), 0) != value:
                raise FailedError("a public fact does not have its published value")
    return "both data sets are over the cells that can hold records, with the same public facts"


def eliminate(rows: list[Column]) -> list[tuple[Any, dict[Any, Fraction]]]:
    """Reduced rows, each with its leading key: exact elimination over the rationals."""
    done: list[tuple[Any, dict[Any, Fraction]]] = []
    for row in rows:
        rest = {key: Fraction(x) for key, x in row.items() if x}
        for pivot, other in done:
            if pivot in rest:
                _subtract(rest, other, rest[pivot])
        if rest:
            pivot = next(iter(rest))
            lead = rest[pivot]
            rest = {key: x / lead for key, x in rest.items()}
            for _, other in done:
                if pivot in other:
                    _subtract(other, rest, other[pivot])
            done.append((pivot, rest))
    return done


def _subtract(row: dict[Any, Fraction], other: dict[Any, Fraction], times: Fraction) -> None:
    Meter.spend(1 + len(other))
    for key, x in other.items():
        left = row.get(key, 0) - times * x
        if left:
            row[key] = Fraction(left)
        else:
            row.pop(key, None)


def transposed(columns: dict[Any, Column]) -> dict[Any, Column]:
    """Rows by key from columns by cell."""
    rows: dict[Any, Column] = {}
    for cell, column in columns.items():
        for key, x in column.items():
            rows.setdefault(key, {})[cell] = x
    return rows


def reached(rows: dict[Any, Column], start: Any) -> set[Any]:
    """The cells that are determined from one cell, each by a row of which it is the last unknown one."""
    of: dict[Any, list[Any]] = {}
    for key, row in rows.items():
        for cell in row:
            of.setdefault(cell, []).append(key)
    missing = {key: len(row) for key, row in rows.items()}
    known, queue = {start}, [start]
    while queue:
        cell = queue.pop()
        for key in of.get(cell, ()):
            missing[key] -= 1
            if missing[key] == 1:
                last = next((other for other in rows[key] if other not in known), None)
                if last is not None:
                    known.add(last)
                    queue.append(last)
        Meter.spend(1 + len(of.get(cell, ())))
    return known


def minimal(problem: Question, change: Table) -> bool:
    """Whether no smaller part of a change that keeps the facts keeps them, too."""
    cells = list(change)
    rows = transposed({cell: problem.known(cell) for cell in cells})
    if math.gcd(*change.values()) > 1:
        return False
    if any(not problem.known(cell) for cell in cells):
        return len(cells) == 1
    return no_smaller(change, rows)


def no_smaller(change: Table, rows: dict[Any, Column]) -> bool:
    """Whether no part of a change, which is no multiple of another, is zero on all rows."""
    cells = list(change)
    if len(reached(rows, cells[0])) == len(cells):
        return True  # the facts leave one number open on these cells
    first = cells[0]
    # A smaller part, or what is left of the change without it, holds the first cell; and some cell is not held in full.
    return not any(
        SmallerPart(change, rows, {first: (1, abs(change[first]))}, other).exists()
        for other in cells
        if other != first or abs(change[first]) > 1
    )


class SmallerPart:
    """A search for a part of a change that keeps the facts: how much of each cell it takes, between two ends that the facts draw together."""

    def __init__(
        self, change: Table, rows: dict[Any, Column], ends: dict[int, tuple[int, int]], short: int
    ) -> None:
        self.change = change
        self.rows = {
            key: {c: x * (1 if change[c] > 0 else -1) for c, x in row.items()} for key, row in rows.items()
        }
        self.of: dict[int, list[Any]] = {}
        for key, row in self.rows.items():
            for cell in row:
                self.of.setdefault(cell, []).append(key)
        self.start = {cell: ends.get(cell, (0, abs(x))) for cell, x in change.items()}
        low, high = self.start[short]
        self.start[short] = low, min(high, abs(change[short]) - 1)

    def exists(self) -> bool:
        """Whether there is one."""
        stack = [(dict(self.start), list(self.rows))]
        while stack:
            ends, touched = stack.pop()
            if not self.drawn(ends, touched):
                continue
            cell = next((cell for cell, (low, high) in ends.items() if low < high), None)
            if cell is None:
                return True
            low, high = ends[cell]
            middle = (low + high) // 2
            for half in ((low, middle), (middle + 1, high)):
                stack.append(({**ends, cell: half}, list(self.of[cell])))
        return False

    def drawn(self, ends: dict[int, tuple[int, int]], touched: list[Any]) -> bool:
        """Draw the ends together by the sums that were touched, which must be 0; whether something is left."""
        if any(low > high for low, high in ends.values()):
            return False
        queue, waiting = list(touched), set(touched)
        while queue:
            key = queue.pop()
            waiting.discard(key)
            row = self.rows[key]
            Meter.spend(2 * len(row))
            least = sum(x * ends[c][0 if x > 0 else 1] for c, x in row.items())
            most = sum(x * ends[c][1 if x > 0 else 0] for c, x in row.items())
            if least > 0 or most < 0:
                return False
            for cell, x in row.items():
                low, high = ends[cell]
                # x times this cell is at most what the least of the others leaves, and at least what the most of them leaves
                top, bottom = (
                    (x * low - least, x * high - most) if x > 0 else (x * high - least, x * low - most)
                )
                new = (
                    (max(low, -(-bottom // x)), min(high, top // x))
                    if x > 0
                    else (max(low, -(-top // x)), min(high, bottom // x))
                )
                if new[0] > new[1]:
                    return False
                if new != (low, high):
                    ends[cell] = new
                    least += x * (new[0] - low) if x > 0 else x * (new[1] - high)
                    most += x * (new[1] - high) if x > 0 else x * (new[0] - low)
                    for other in self.of[cell]:
                        if other not in waiting:
                            waiting.add(other)
                            queue.append(other)
        return True


def within(problem: Question, change: Table) -> bool:
    """Whether a minimal move is inside the cap and, for Markov strength, short."""
    added, removed = sum(x for x in change.values() if x > 0), -sum(x for x in change.values() if x < 0)
    if problem.cap is not None and max(added, removed) > problem.cap:
        return False
    return problem.strength != "markov" or (len(change) <= 4 and all(abs(x) == 1 for x in change.values()))


def positive(cells: dict[int, Column], top: int | None, before: Table, after: Table) -> bool:
    """Whether a minimal move is a Markov move or, from one of its two data sets, the shortest that exchanges some two records."""
    change = difference(before, after)
    if len(change) <= 4 and all(abs(x) == 1 for x in change.values()):
        return True
    if not cells or any(x < 0 for column in cells.values() for x in column.values()):
        raise OpenError("whether the change is of positive strength is not decided here")
    for table, sign in ((before, 1), (after, -1)):
        out = [cell for cell, x in change.items() if x * sign < 0]
        into = [cell for cell, x in change.items() if x * sign > 0]
        most = sum(map(abs, change.values())) - 1
        if not out or not into:
            return True
        if any(not _shorter(cells, top, table, gone, new, most) for gone in out for new in into):
            return True
    return False


def _shorter(cells: dict[int, Column], top: int | None, table: Table, gone: int, new: int, most: int) -> bool:
    """Whether some change of at most so many records keeps the facts, takes one out of a cell and puts one into another."""
    names = list(table)
    for taken in product(*(range(table[cell] + 1) for cell in names)):
        Meter.spend(len(names))
        away = {cell: x for cell, x in zip(names, taken, strict=True) if x}
        left = most - sum(taken) - 1
        if not away.get(gone) or away.get(new) or left < 0:
            continue
        sums: Counter[Any] = Counter()
        for cell, x in away.items():
            for key, entry in cells[cell].items():
                sums[key] += x * entry
        sums.subtract(cells[new])
        full = Counter(table)
        full.subtract(away)
        full[new] += 1
        if _filled(cells, top, away, full, {key: x for key, x in sums.items() if x}, left):
            return True
    return False


def _filled(
    cells: dict[int, Column], top: int | None, away: Table, full: Counter[int], sums: Column, left: int
) -> bool:
    """Whether at most so many records, none in a cell that one was taken from, make up these sums."""
    if any(x < 0 for x in sums.values()) or (top is not None and max(full.values()) > top):
        return False
    if not sums:
        return True
    if not left:
        return False
    key = min(sums, key=repr)
    for cell, column in cells.items():
        Meter.spend(1)
        if column.get(key) and cell not in away:
            full[cell] += 1
            rest = {other: sums.get(other, 0) - column.get(other, 0) for other in sums.keys() | column.keys()}
            found = _filled(cells, top, away, full, {k: x for k, x in rest.items() if x}, left - 1)
            full[cell] -= 1
            if found:
                return True
    return False


def are_neighbours(problem: Question, before: Table, after: Table) -> str:
    """Say why the two data sets are neighbours, or raise."""
    change, graph = difference(before, after), problem.graph
    if problem.definition == "edges" and graph is not None:
        amounts = sorted(change.values())
        if amounts == [-1, 1] and graph.edge(*change):
            return "one record changes along an edge"
        if amounts in ([1], [-1]) and graph.bottom(next(iter(change))):
            return "one record appears or vanishes"
        raise FailedError("they do not differ along one edge of the policy graph")
    if problem.definition == "induced":
        if not change or not within(problem, change) or not minimal(problem, change):
            raise FailedError(
                "a smaller change keeps the public facts, or the change is not one that the policy protects"
            )
        few = sum(map(abs, change.values())) <= 2 or len({x > 0 for x in change.values()}) == 1
        if problem.strength == "positive" and not few:
            cells = (
                {cell: problem.known(cell) for cell in problem.cells()} if problem.space.size <= 200 else {}
            )
            if not positive(cells, problem.space.capacity, before, after):
                raise FailedError("the change is not of positive strength")
        return "no smaller change keeps the public facts"
    return blowfish_neighbours(problem, before, after)


# Upper bounds ------------------------------------------------------------------------------------------------------------


def column_bound(problem: Question) -> int:
    """The longest column of the query, squared for l2; by tables where there are many cells."""
    query = problem.query
    if query.tables is not None:
        total = 0
        for axes, weight, factors in query.tables:
            longest = weight if problem.norm == "l1" else weight * weight
            for axis in axes:
                sizes = range(1) if query.even else range(problem.space.sizes[axis])
                Meter.spend(len(sizes))
                longest *= max(problem.size(factors[axis](code)) for code in sizes)
            total += longest
        if query.even or problem.space.size > 20_000:
            return total
    if query.kinds in (["adjacency"], ["mixing"]):
        return 1
    return max((problem.size(query.column(cell)) for cell in problem.cells()), default=0)


def differing(problem: Question, names: frozenset[int], tables: dict[tuple[int, frozenset[int]], int]) -> int:
    """What replacing a record by one that differs on exactly these attributes changes; for queries that treat all values alike.

    ``tables`` keeps what a table contributes for those of its attributes that differ.
    """
    query = problem.query
    if query.tables is None or not query.even:
        raise OpenError("a query that does not treat all values of an attribute alike")
    total = 0
    for number, (axes, weight, factors) in enumerate(query.tables):
        here = names.intersection(axes)
        if not here:
            continue
        Meter.spend(1)
        if (number, here) in tables:
            total += tables[number, here]
            continue
        same = 1
        pairs: Counter[tuple[int, int]] = Counter({(1, 1): 1})
        for axis in axes:
            if axis not in names:
                same *= problem.size(factors[axis](0))
                continue
            one, two = factors[axis](0), factors[axis](1)
            both = Counter((one.get(row, 0), two.get(row, 0)) for row in one.keys() | two.keys())
            following: Counter[tuple[int, int]] = Counter()
            for (x, y), times in pairs.items():
                for (a, b), count in both.items():
                    following[x * a, y * b] += times * count
            Meter.spend(len(pairs) * len(both))
            pairs = following
        gap = sum((abs(x - y) if problem.norm == "l1" else (x - y) ** 2) * n for (x, y), n in pairs.items())
        tables[number, here] = (weight if problem.norm == "l1" else weight * weight) * same * gap
        total += tables[number, here]
    return total


def largest_differing(problem: Question, changing: frozenset[int], most: int) -> int:
    """The largest change over records that differ on at most so many of some attributes."""
    need(
        problem.query.tables is not None and problem.query.even,
        "a query of tables that treat all values alike is needed",
    )
    used = sorted(changing & {axis for axes, _, _ in problem.query.tables or [] for axis in axes})
    plain = problem.query.kinds != ["interactions"]
    best, tables = 0, dict[tuple[int, frozenset[int]], int]()
    counts = range(min(most, len(used)), 0, -1)
    widths = Counter(len(changing.intersection(axes)) for axes, _, _ in problem.query.tables or [])
    Meter.afford(
        sum(
            10 * math.comb(len(used), count)
            + sum(
                n * (math.comb(len(used), count) - math.comb(len(used) - k, count)) for k, n in widths.items()
            )
            for count in (counts[:1] if plain else counts)
        )
    )
    for count in counts:
        Meter.spend(10 * math.comb(len(used), count))
        best = max(best, *(differing(problem, frozenset(some), tables) for some in combinations(used, count)))
        if plain:
            return best  # counts only grow with the set
    return best


def need(holds: bool, why: str) -> None:
    """Raise when a condition of a theorem does not hold."""
    if not holds:
        raise OpenError(f"the theorem does not apply: {why}")


def graph_of(problem: Question, definition: str) -> Graph:
    """The policy graph, where neighbours are defined in one of the two ways that need one."""
    if problem.graph is None or problem.definition != definition:
        beside = "no facts" if definition == "edges" else "facts"
        raise OpenError(f"the theorem does not apply: a policy graph and {beside} are needed")
    return problem.graph


def edge_attributes(problem: Question) -> int:
    """Along an edge only the attributes on which its ends differ matter."""
    graph = graph_of(problem, "edges")
    need(not problem.space.network, "a table is needed")
    best = largest_differing(problem, graph.changing, graph.most)
    if graph.everywhere or graph.loose:
        best = max(best, column_bound(problem))
    return best


def row_ranges(problem: Question) -> int:
    """Two columns differ in each row by at most the range of its entries; in all, by at most both norms (four times the larger square)."""
    graph = graph_of(problem, "edges")
    low: Column = {}
    high: Column = {}
    seen: Counter[Any] = Counter()
    cells = problem.cells()
    if problem.query.kinds in (["cuboids"], ["interactions"]):
        Meter.afford(len(cells) * len(problem.query.tables or ()))  # each column has a row of each table
    longest = 0
    for cell in cells:
        column = problem.query.column(cell)
        Meter.spend(len(column))
        longest = max(longest, problem.size(column))
        for row, x in column.items():
            seen[row] += 1
            low[row], high[row] = min(low.get(row, x), x), max(high.get(row, x), x)
    bottom = graph.everywhere or graph.loose
    for row in high:
        if bottom or seen[row] < len(cells):
            low[row], high[row] = min(low[row], 0), max(high[row], 0)
    ranges = problem.size({row: high[row] - low[row] for row in high})
    return min(ranges, longest * (2 if problem.norm == "l1" else 4))


def every_edge(problem: Question) -> int:
    """All edges of the policy graph, one by one."""
    graph = graph_of(problem, "edges")
    return _along(problem, graph)


def _along(problem: Question, graph: Graph) -> int:
    columns: dict[int, Column] = {}

    def column(cell: int) -> Column:
        if cell not in columns:
            columns[cell] = problem.query.column(cell)
        return columns[cell]

    best = 0
    for u, v in graph.pairs():
        if problem.zeros and not (problem.possible(u) and problem.possible(v)):
            continue
        one, two = column(u), column(v)
        Meter.spend(len(one) + len(two))
        best = max(
            best, problem.size({row: one.get(row, 0) - two.get(row, 0) for row in one.keys() | two.keys()})
        )
    if graph.everywhere or graph.loose:
        cells = problem.cells() if graph.everywhere else sorted(graph.loose)
        best = max(best, *(problem.size(column(cell)) for cell in cells if problem.possible(cell)), 0)
    return best


def one_record(problem: Question) -> int:
    """Without public sums a minimal move adds or removes one record."""
    need(problem.definition == "induced", "there must be no policy graph")
    need(not problem.facts, "there must be no public sums")
    return column_bound(problem)


def one_margin(problem: Question) -> int:
    """Inside a part whose total is public a minimal move takes one record from a cell to another."""
    need(problem.definition == "induced", "there must be no policy graph")
    margins = problem.margins()
    need(len(margins) == 1, "the facts must be one whole margin and margins inside it")
    free = problem.space.several() - margins[0]
    if problem.query.tables is not None and problem.query.even:
        return largest_differing(problem, free, len(free))
    return inside_parts(problem, margins[0])


def inside_parts(problem: Question, margin: frozenset[int]) -> int:
    """The largest difference of two columns of cells that agree on a margin."""
    parts: dict[Codes, dict[Any, Column]] = {}
    for cell in problem.cells():
        codes = problem.space.codes(cell)
        column = problem.query.column(cell)
        Meter.spend(len(column))
        parts.setdefault(tuple(codes[a] for a in sorted(margin)), {})[frozenset(column.items())] = column
    return max((widest(problem, list(columns.values())) for columns in parts.values()), default=0)


def two_margins(problem: Question) -> int:
    """A minimal move is a simple cycle through cells of both margins, or exchanges two records that agree on both."""
    need(problem.definition == "induced", "there must be no policy graph")
    margins = problem.margins()
    need(len(margins) == 2, "the facts must be two whole margins and margins inside them")
    sizes = problem.space.sizes
    common = margins[0] & margins[1]
    left, right = margins[0] - common, margins[1] - common
    half = min(math.prod(sizes[a] for a in side) for side in (left, right))
    query = problem.query
    if query.tables is None or query.kinds != ["cuboids"]:
        each = min(
            largest_differing(problem, free, len(free))
            if query.tables is not None and query.even
            else inside_parts(problem, margin)
            for margin in margins
            for free in [problem.space.several() - margin]
        )
        return each * (half if problem.norm == "l1" else half * half)
    total = 0
    for axes, weight, _ in query.tables:
        names = frozenset(axes) & problem.space.several()
        if any(names <= margin for margin in margins):
            continue  # it follows from the public facts
        if problem.norm == "l1":
            total += weight * 2 * half
            continue
        meet = min(half, *(math.prod(sizes[a] for a in side - names) for side in (left, right)))
        total += weight * weight * 2 * (half // meet * meet * meet + (half % meet) ** 2)
    return total


def separate_margins(problem: Question) -> list[int]:
    """The numbers of cells of three margins without a common attribute, smallest first."""
    need(problem.definition == "induced", "there must be no policy graph")
    margins = problem.margins()
    apart = sum(map(len, margins)) == len(frozenset().union(*margins))
    need(len(margins) == 3 and apart, "three separate margins are needed")
    return sorted(math.prod(problem.space.sizes[a] for a in margin) for margin in margins)


def binary_margins(problem: Question) -> int:
    """Three margins without a common attribute, one of two cells: a minimal move is a sequence of valued arcs, which is short."""
    sizes = separate_margins(problem)
    need(sizes[0] == 2, "a margin of two cells is needed")
    return _swapped(problem, 2 * ((sizes[1] + 1) ** 2 // 4), problem.margins())


def ternary_margins(problem: Question) -> int:
    """Three margins without a common attribute, two of three cells: 15 swaps are the longest sequence without a smaller zero sum."""
    need(separate_margins(problem)[:2] == [3, 3], "two margins of three cells are needed")
    return _swapped(problem, 15, problem.margins())


def short_margins(problem: Question) -> int:
    """Beside a graph two margins without a common attribute, one of two cells or both of three: few records change, as swaps between their cells."""
    graph = graph_of(problem, "blowfish")
    need(not problem.space.network, "a table is needed")
    need(not graph.everywhere and not graph.loose, "no record may appear or vanish")
    margins = problem.margins()
    need(len(margins) == 2 and not margins[0] & margins[1], "two separate margins are needed")
    small, large = sorted(math.prod(problem.space.sizes[a] for a in margin) for margin in margins)
    need(small == 2 or (small, large) == (3, 3), "a margin of two cells, or two of three, are needed")
    most = 15 if small == 3 else 2 * ((large + 1) ** 2 // 4)
    return _swapped(problem, most if problem.cap is None else min(most, problem.cap), [])


def _swapped(problem: Question, pairs: int, agreed: list[frozenset[int]]) -> int:
    """What a move of so many pairs of a removed and an added record changes, where the pairs can be made to agree on any one of some margins."""
    margins, query = problem.margins(), problem.query
    if query.tables is not None and query.kinds == ["cuboids"]:
        several = problem.space.several()
        left = [w for axes, w, _ in query.tables if not any(frozenset(axes) & several <= m for m in margins)]
        return sum(2 * pairs * w if problem.norm == "l1" else 2 * pairs**2 * w * w for w in left)
    # two records at all differ by at most two columns, whose norms add up
    each = min(
        (
            largest_differing(problem, free, len(free))
            if query.tables is not None and query.even
            else inside_parts(problem, margin)
            for margin in agreed
            for free in [problem.space.several() - margin]
        ),
        default=column_bound(problem) * (2 if problem.norm == "l1" else 4),
    )
    return each * (pairs if problem.norm == "l1" else pairs * pairs)


def few_records(problem: Question) -> int:
    """A capped or Markov move adds and removes few records, each of which changes the answer by one column."""
    need(
        problem.definition == "induced" or problem.strength == "worst-case",
        "induced neighbours, or a cap, are needed",
    )
    need(problem.definition != "edges", "public facts are needed")
    markov = problem.strength == "markov" and problem.definition == "induced"
    need(markov or problem.cap is not None, "Markov strength or a cap is needed")
    records = min([4] * markov + ([] if problem.cap is None else [2 * problem.cap]))
    if problem.norm == "l1":
        return records * column_bound(problem)
    if problem.query.identity:
        single = markov or problem.space.capacity == 1
        return (
            records if single else 2 * (records // 2) ** 2
        )  # entries are 1, or at most the cap on each side
    return records * records * column_bound(problem)


def determined(problem: Question) -> int:
    """Every answer is a combination of public sums (and of the total, where no record appears or vanishes)."""
    need(problem.definition != "edges", "public facts are needed")
    total = problem.graph is not None and not problem.graph.everywhere and not problem.graph.loose
    query = problem.query
    if query.tables is not None and query.kinds in (["cuboids"], ["interactions"]):
        several = problem.space.several()
        margins = [frozenset(f.margin) for f in problem.facts if f.margin is not None] + [
            frozenset[int]()
        ] * total
        inside = all(any(frozenset(axes) & several <= m for m in margins) for axes, _, _ in query.tables)
        if inside and query.kinds == ["cuboids"]:
            return 0
        # A table has interactions of all its attributes, which no table has that lacks one of them.
        more = bool(problem.zeros) or any(fact.margin is None for fact in problem.facts)
        need(inside or more, "an answer is no combination of the public facts")
    cells = problem.cells()
    facts = transposed({cell: problem.known(cell) for cell in cells})
    rows = [*facts.values(), *([dict.fromkeys(cells, 1)] if total else [])]
    Meter.spend(len(rows) * len(cells))
    reduced = eliminate(rows)
    for row in transposed({cell: query.column(cell) for cell in cells}).values():
        rest = {cell: Fraction(x) for cell, x in row.items() if x}
        for pivot, other in reduced:
            if pivot in rest:
                _subtract(rest, other, rest[pivot])
        need(not rest, "an answer is no combination of the public facts")
    return 0


def open_columns(problem: Question, numbers: int) -> dict[int, Column]:
    """The public sums by cell, refused where they are too few to leave at most so many numbers open in each part, which has a sum at least."""
    why = "the public sums leave more numbers open"
    if problem.facts and not problem.zeros and all(fact.margin is not None for fact in problem.facts):
        sizes = problem.space.sizes
        sums = sum(math.prod(sizes[axis] for axis in fact.margin or ()) for fact in problem.facts)
        need(problem.space.size <= (1 + numbers) * sums, why)
    columns = {cell: problem.known(cell) for cell in problem.cells()}
    keys = {key for column in columns.values() for key in column}
    need(sum(map(bool, columns.values())) <= (1 + numbers) * len(keys), why)
    return columns


def open_numbers(problem: Question) -> int:
    """The facts leave one number open in each connected part, so that its minimal moves are one vector and its negative."""
    need(problem.definition == "induced", "there must be no policy graph")
    columns = open_columns(problem, 1)
    rows = transposed(columns)
    best, seen = 0, set[int]()
    for start in columns:
        if start in seen:
            continue
        part, queue, inside = {start}, [start], dict[Any, Column]()
        while queue:
            for key in columns[queue.pop()]:
                if key not in inside:
                    inside[key] = rows[key]
                    queue += [other for other in rows[key] if other not in part]
                    part.update(rows[key])
        seen |= part
        Meter.spend(sum(map(len, inside.values())))
        best = max(best, _of_part(problem, part, inside))
    return best


def _of_part(problem: Question, part: set[int], rows: dict[Any, Column]) -> int:
    start = min(part)
    known: dict[int, Fraction] = {start: Fraction(1)}
    of: dict[int, list[Any]] = {}
    for key, row in rows.items():
        for cell in row:
            of.setdefault(cell, []).append(key)
    missing = {key: len(row) for key, row in rows.items()}
    queue = [start]
    while queue:
        cell = queue.pop()
        for key in of.get(cell, ()):
            missing[key] -= 1
            if missing[key] == 1:
                last = next((other for other in rows[key] if other not in known), None)
                if last is not None:
                    rest = sum(
                        (known[other] * x for other, x in rows[key].items() if other != last), Fraction(0)
                    )
                    known[last] = -rest / rows[key][last]
                    queue.append(last)
    need(
        len(known) == len(part),
        "a part in which the facts leave several numbers open, or are not followed here",
    )
    if any(sum(known[cell] * x for cell, x in row.items()) for row in rows.values()):
        return 0  # the facts determine the part
    scale = math.lcm(*(x.denominator for x in known.values()))
    shared = math.gcd(*(int(x * scale) for x in known.values()))
    move = {cell: int(x * scale) // shared for cell, x in known.items() if x}
    top = problem.space.capacity
    if (top is not None and max(map(abs, move.values())) > top) or not within(problem, move):
        return 0
    if problem.query.identity:
        return sum(abs(x) if problem.norm == "l1" else x * x for x in move.values())
    return problem.size(problem.answer(move))


def two_open_numbers(problem: Question) -> int:
    """The facts leave two numbers open in each connected part at most: the largest minimal move is one of fewest cells."""
    need(problem.definition == "induced", "there must be no policy graph")
    forms = solved(open_columns(problem, 2))
    parts: list[tuple[set[int], dict[int, Column]]] = []
    for cell, form in forms.items():
        keys, inside = set(form), {cell: form}
        apart = []
        for part in parts if form else []:
            if part[0] & keys:
                keys |= part[0]
                inside.update(part[1])
            else:
                apart.append(part)
        if form:
            parts = [*apart, (keys, inside)]
        need(len(keys) <= 2, "a part in which the facts leave three numbers open or more")
        Meter.spend(2 + len(parts))
    best = 0
    for keys, inside in parts:
        one, *others = sorted(keys)
        lines = {(Fraction(1), Fraction(0))}
        if others:
            pairs = {(form.get(one, 0), form.get(others[0], 0)) for form in inside.values()}
            # the directions in which a cell stays as it is; a multiple of one is the same
            lines = {(Fraction(y, x), Fraction(-1)) if x else (Fraction(1), Fraction(0)) for x, y in pairs}
        for s, t in lines:
            Meter.spend(8 * len(inside))
            point = {
                cell: form.get(one, 0) * s + (form.get(others[0], 0) * t if others else 0)
                for cell, form in inside.items()
            }
            scale = math.lcm(*(Fraction(x).denominator for x in point.values()))
            whole_ = {cell: int(x * scale) for cell, x in point.items() if x}
            shared = math.gcd(*whole_.values())
            move = {cell: x // shared for cell, x in whole_.items()}
            rows = dict(move) if problem.query.identity else problem.answer(move)
            best = max(best, problem.size(rows))
    return best


def paired_sums(problem: Question) -> int:
    """Every cell is counted twice at most: a minimal move is one walk that passes each sum twice at most, or once where all cells are arcs."""
    need(
        problem.definition == "induced" and problem.query.identity,
        "every cell must be asked for, without a graph",
    )
    columns = {cell: problem.known(cell) for cell in problem.cells()}
    rows = transposed(columns)
    need(
        all(sum(map(abs, column.values())) <= 2 for column in columns.values()),
        "a cell that is counted more than twice",
    )
    # two records of the same sums exchange, a record in no sum appears
    best, twice = 2 if len(columns) > 1 else 1, False
    sides: dict[Any, int] = {}
    for start in rows:
        if start in sides:
            continue
        sides[start], queue, part, arcs, ends = 1, [start], 0, True, False
        while queue:
            key = queue.pop()
            part += 1
            Meter.spend(1 + len(rows[key]))
            for cell, x in rows[key].items():
                others = [(other, y) for other, y in columns[cell].items() if other != key]
                if not others:
                    ends, arcs = ends or abs(x) == 1, arcs and abs(x) == 1
                for other, y in others:
                    if other not in sides:
                        sides[other] = -x * y * sides[key]
                        queue.append(other)
                    arcs = arcs and sides[other] == -x * y * sides[key]
        twice = twice or not arcs
        best = max(best, part * (1 if arcs else 2) + ends)
    # a cell changes at most as often as its sum is passed
    return best if problem.norm == "l1" or not twice else 2 * best


def solved(columns: dict[int, Column]) -> dict[int, Column]:
    """Every cell in terms of free ones, for the changes that keep all sums: elimination with fractions."""
    pivots: dict[int, Column] = {}

    def add(row: Column, other: Column, times: Any) -> None:
        Meter.spend(1 + len(other))
        for cell, x in other.items():
            row[cell] = row.get(cell, 0) + times * x
            if not row[cell]:
                del row[cell]

    for row in transposed(columns).values():
        rest: Column = {cell: Fraction(x) for cell, x in row.items()}  # type: ignore[misc]
        while (cell := next((cell for cell in rest if cell in pivots), None)) is not None:
            add(rest, pivots[cell], rest.pop(cell))
        if rest:
            pivot = min(rest, key=lambda cell: (len(columns[cell]), cell))
            lead = rest.pop(pivot)
            pivots[pivot] = {cell: -x / lead for cell, x in rest.items()}  # type: ignore[misc]
    made: dict[int, Column] = {cell: {cell: 1} for cell in columns if cell not in pivots}
    for pivot in reversed(pivots):
        form: Column = {}
        for cell, x in pivots[pivot].items():
            add(form, made[cell], x)
        made[pivot] = form
    return made


def margin_cells(problem: Question) -> int:
    """Some cells of at most two margins are public: a minimal move is a simple cycle of their move graph, with entries 1 and -1."""
    need(
        problem.definition == "induced" and problem.query.identity,
        "every cell must be asked for, without a graph",
    )
    space = problem.space
    if space.network:
        return _directed(problem)
    several, total = space.several(), False
    sides: dict[Codes, set[Codes] | None] = {}
    for fact in problem.facts:
        of, places = (fact.margin, None) if fact.margin is not None else fact.cells or (None, None)
        if of is None:
            raise OpenError("the theorem does not apply: a public fact that is no table and no cells of one")
        axes = tuple(a for a in of if a in several)
        if not axes:
            total = True
        elif places is None:
            sides[axes] = None
        elif (known := sides.setdefault(axes, set())) is not None:
            keep = [at for at, a in enumerate(of) if a in several]
            known |= {tuple(place[at] for at in keep) for place in places}
    need(1 <= len(sides) <= 2, "cells of one or two margins are needed")
    left, *others = sides
    right = others[0] if others else tuple(sorted(several - set(left)))
    shared = [a for a in left if a in right]
    one, two = sides[left], sides.get(right, set())
    need(not (shared and total and one is not None and two is not None), "a total couples the slices")
    rows, columns = (math.prod(space.sizes[a] for a in side if a not in shared) for side in (left, right))
    counts = [_by_slice(side, known, shared) for side, known in ((left, one), (right, two))]
    slices = {key for some in counts if some is not None for key in some}
    every = math.prod(space.sizes[a] for a in shared)
    best = 0
    for key in [*slices, *([None] if len(slices) < every else [])]:
        n1, n2 = (
            whole_ if some is None else some.get(key, 0)
            for some, whole_ in zip(counts, (rows, columns), strict=True)
        )
        best = max(best, longest_cycle(rows, columns, n1, n2, total=total and not shared))
    spare = several - set(left) - set(right)
    return max(best, 2) if spare else best


def _by_slice(axes: Codes, known: set[Codes] | None, shared: list[int]) -> Counter[Any] | None:
    if known is None:
        return None
    keep = [axes.index(a) for a in shared]
    return Counter(tuple(place[at] for at in keep) for place in known)


def longest_cycle(rows: int, columns: int, n1: int, n2: int, *, total: bool) -> int:
    """At most so many edges has a simple cycle of the move graph of rows x columns with n1 and n2 known sums."""
    if n1 == rows and n2 == columns:
        half = min(rows, columns)
        return 2 * half if half >= 2 else 0
    if n1 == rows or n2 == columns:
        whole_side, known, other = (rows, n2, columns) if n1 == rows else (columns, n1, rows)
        half = min(whole_side, known + 1)
        return 2 * half if half >= 2 else 2 if other - known >= 2 else 0
    if total:
        return 2 * (min(n1, n2) + 1)
    if n1 == n2:
        return 2 * n1 + 1
    few, other = (n2, columns) if n2 < n1 else (n1, rows)
    return 1 if few == 0 and other == 1 else 2 * few + 2


def _directed(problem: Question) -> int:
    space, known = problem.space, {"in": set[int](), "out": set[int]()}
    total = False
    need(space.directed, "a directed network is needed")
    for fact in problem.facts:
        if fact.kind == "total":
            total = True
            continue
        side, nodes = fact.degrees or ("", frozenset())
        need(side in known, "in-degrees and out-degrees are needed")
        known[side] |= nodes
    v = space.nodes.count
    return longest_cycle(v, v, len(known["out"]), len(known["in"]), total=total)


def degrees(problem: Question) -> int:
    """The longest minimal move that keeps some degrees of an undirected network: trees of cycles."""
    space = problem.space
    need(
        problem.definition == "induced" and problem.query.identity,
        "every node pair must be asked for, without a graph",
    )
    need(space.network and not space.directed, "an undirected network is needed")
    known = set[int]()
    for fact in problem.facts:
        side, nodes = fact.degrees or ("", frozenset())
        need(side == "both", "degrees alone are needed")
        known |= nodes
    v, n = space.nodes.count, len(known)
    longest = longest_with_degrees(v, n, loops=space.loops, multiple=space.multiple)
    # entries are at most 2, and at most 1 where a pair holds one edge
    return longest if problem.norm == "l1" or not space.multiple else 2 * longest


def longest_with_degrees(v: int, n: int, *, loops: bool, multiple: bool) -> int:
    """Theorems 3 to 5 of docs/explanation/proofs/degrees.md."""
    u = v - n
    if loops:
        if u:
            return 1 if n == u == 1 and not multiple else 2 * n + 1
        return 2 * v if v >= 3 else 4 if v == 2 and multiple else 0
    if multiple:
        if u >= 2:
            return (1, 2)[n] if n < 2 else 2 * n - 1
        if u == 1:
            return 0 if n <= 1 else 2 * n - 1
        return 0 if v <= 3 else 2 * v - 4
    if u == 0:
        if v <= 3:
            return 0
        j, rest = divmod(v - 1, 4)
        return 6 * j + (0, 0, 2, 4)[rest]
    if u == 1:
        return 0 if n <= 1 else n + n // 2
    if n == 0:
        return 1
    hung = max(h for h in range(n + 1) if h == 0 or (2 * h + 1 <= n if h % 2 else 2 * h + 2 <= n))
    return n + 1 + hung


def measured(problem: Question) -> int:
    """One record with a value from a declared range, along an edge, more or less, or with another value in its cell."""
    measure, graph = problem.query.measure, problem.graph
    if measure is None or problem.facts or problem.zeros:
        raise OpenError("the theorem does not apply: a measure without public facts is needed")
    low, high = measure.ends
    l1 = problem.norm == "l1"

    def rows(*amounts: int) -> int:
        return sum(abs(x) if l1 else x * x for x in amounts)

    def alone(end: int, weight: int) -> int:
        return rows(weight * measure.by_sum * end, weight * measure.by_count)

    best = 0
    if graph is None or graph.everywhere or graph.loose:
        best = max(sum(alone(end, weight) for weight in measure.weights) for end in (low, high))
    if graph is None:
        return best
    best = max(best, sum(rows(weight * measure.by_sum * (high - low)) for weight in measure.weights))
    changing = sorted(graph.changing & {a for axes in measure.sets for a in axes})
    for count in range(min(graph.most, len(changing)) + 1):
        Meter.spend(10 * math.comb(len(changing), count))
        for some in combinations(changing, count):
            for one, two in product((low, high), repeat=2):
                value = 0
                for axes, weight in zip(measure.sets, measure.weights, strict=True):
                    if set(axes) & set(some):
                        value += alone(one, weight) + alone(two, weight)
                    else:
                        value += rows(weight * measure.by_sum * (one - two))
                best = max(best, value)
    return best


# Graph and facts together ------------------------------------------------------------------------------------------------


def kept_facts(problem: Question) -> int:
    """Every secret pair keeps all facts, so that one record that changes along an edge is a neighbour pair, and there are no others."""
    graph = graph_of(problem, "blowfish")
    need(not problem.space.network, "a table is needed")
    if graph.everywhere or graph.loose:
        need(not problem.facts, "records may appear or vanish beside public sums")
    whole_tables = all(fact.margin is not None for fact in problem.facts)
    apart = whole_tables and all(not graph.changing & set(fact.margin or ()) for fact in problem.facts)
    if not apart:
        for u, v in graph.pairs():
            Meter.spend(10)
            if problem.possible(u) and problem.possible(v):
                need(problem.known(u) == problem.known(v), "a secret pair changes a public fact")
    if problem.query.tables is not None and problem.query.even and not problem.space.network:
        best = largest_differing(problem, graph.changing, graph.most)
        return max(best, column_bound(problem)) if graph.everywhere or graph.loose else best
    return _along(problem, graph)


def disjoint_counts(problem: Question) -> int:
    """Every cell is in one public count at most: changes are simple cycles through the classes, which leave and enter each once."""
    graph = graph_of(problem, "blowfish")
    need(not problem.space.network, "a table is needed")
    classes: dict[Any, list[int]] = {}
    for cell in problem.cells():
        column = problem.known(cell)
        need(len(column) <= 1, "a cell in two public counts")
        classes.setdefault(next(iter(column.items())) if column else None, []).append(cell)
    names = Counter(key[0] for key in classes if key is not None)
    need(all(times == 1 for times in names.values()), "a count with different weights")
    bottom = graph.everywhere or bool(graph.loose)
    if problem.query.identity:
        gains = [2 for cells in classes.values() if len(cells) >= 2]
        gains += [1] * (bottom and len(classes.get(None, ())) == 1)
        most = sum(gains)
        return min(most, most if problem.cap is None else problem.size({0: 1}) * 2 * problem.cap)
    return in_every_class(problem, classes, bottom)


def in_every_class(problem: Question, classes: dict[Any, list[int]], bottom: bool) -> int:
    """A cycle enters and leaves a class once, so that it changes the answer by a difference of two columns of each class."""
    widths = []
    whole_margin = len(problem.facts) == 1 and problem.facts[0].margin is not None and not problem.zeros
    if whole_margin and problem.query.tables is not None and problem.query.even:
        free = problem.space.several() - frozenset(problem.facts[0].margin or ())
        widths = [largest_differing(problem, free, len(free))] * len(classes)
        classes = {}
    rows: dict[Any, set[Any]] = {}
    for key, cells in classes.items():
        columns = {frozenset((column := problem.query.column(cell)).items()): column for cell in cells}
        if key is None and bottom:
            columns[frozenset()] = {}
        widths.append(widest(problem, list(columns.values())))
        for column in columns.values():
            for row in column:
                rows.setdefault(row, set()).add(key)
    # Under a cap so many classes at most gain or lose a record.
    widths = sorted(widths, reverse=True)[: problem.cap]
    if problem.norm == "l1":
        return sum(widths)
    apart = bool(classes) and all(len(owners) == 1 for owners in rows.values())
    # The root of a sum of squares, or the mean of the roots by Cauchy and Schwarz.
    return sum(widths) if apart else len(widths) * sum(widths)


def widest(problem: Question, columns: list[Column]) -> int:
    """The largest difference of two columns."""
    best = 0
    for one, two in combinations(columns, 2):
        Meter.spend(len(one) + len(two))
        rows = one.keys() | two.keys()
        best = max(best, problem.size({row: one.get(row, 0) - two.get(row, 0) for row in rows}))
    return best


Transition = tuple[Any, Any]


def blowfish_neighbours(problem: Question, before: Table, after: Table) -> str:
    """Try every way to pair the records of both data sets, literally as in the definition."""
    graph = graph_of(problem, "blowfish")
    need(not problem.space.network, "networks with secret edges and facts are not decided here")
    one = [cell for cell, x in before.items() for _ in range(x)]
    two = [cell for cell, x in after.items() for _ in range(x)]
    if len(one) > 8 or len(two) > 8:
        raise OpenError("too many records to pair them in every way")
    if problem.cap is not None:
        change = difference(before, after)
        if (
            max(sum(x for x in change.values() if x > 0), -sum(x for x in change.values() if x < 0))
            > problem.cap
        ):
            raise FailedError("more records change than the cap allows")
    if problem.valued and any(cell in after for cell in before):
        raise OpenError("records that stay beside published values")
    bottom = graph.everywhere or bool(graph.loose)
    if len(one) != len(two) and not bottom:
        raise FailedError("another number of records, and none may appear or vanish")
    lengths = range(max(len(one), len(two)), len(one) + len(two) + 1) if bottom else [len(one)]
    solver = Pairs(problem)
    for length in lengths:
        start = [*one, *[None] * (length - len(one))]
        end = [*two, *[None] * (length - len(two))]
        for order in set(permutations(end)):
            Meter.spend(50)
            moved = [(x, y) for x, y in zip(start, order, strict=True) if x != y]
            if solver.neighbours(moved):
                return "some pairing of the records changes a minimal set of secret pairs"
    raise FailedError("no pairing of the records makes them neighbours")


def stated_pairs(problem: Question, before: Table, after: Table, given: Any) -> str:
    """Check the pairing of the records that the witness names: which record becomes which."""
    graph = graph_of(problem, "blowfish")
    need(not problem.space.network and problem.query.measure is None, "records of a table are needed")
    pairs: list[Transition] = []
    for pair in listed(given, "pairs"):
        if len(listed(pair, "pair")) != 2:
            raise OpenError("a pair of another length")
        x, y = (None if end is None else whole(end, "cell", 0, problem.space.size - 1) for end in pair)
        if x == y:
            raise FailedError("a record that is paired with itself")
        pairs.append((x, y))
    for side, table in ((0, before), (1, after)):
        if Counter(pair[side] for pair in pairs if pair[side] is not None) != Counter(table):
            raise FailedError("the pairs are not those of the two data sets")
    bottom = graph.everywhere or bool(graph.loose)
    if not bottom and any(None in pair for pair in pairs):
        raise FailedError("another number of records, and none may appear or vanish")
    change = difference(before, after)
    gained, lost = sum(x for x in change.values() if x > 0), -sum(x for x in change.values() if x < 0)
    if problem.cap is not None and max(gained, lost) > problem.cap:
        raise FailedError("more records change than the cap allows")
    solver = Pairs(problem)
    secret = [at for at, pair in enumerate(pairs) if solver.edge(*pair)]
    gaps = {at: solver.sum([pair]) for at, pair in enumerate(pairs)}
    if not secret or solver.sum(pairs):
        raise FailedError("no secret pair changes, or a public fact does")
    if not all(gaps.values()):
        if len(pairs) > 1:
            raise FailedError("a pair keeps the facts by itself")
    elif not no_smaller(dict.fromkeys(gaps, 1), transposed(gaps)):
        raise FailedError("some of the pairs keep the facts by themselves")
    # Where every two vertices are a secret pair, what else could become of the records is a part of the pairs.
    free = graph.complete and (graph.everywhere or not bottom)
    if len(secret) > 1 and not free and solver.repaired(pairs, set(secret)):
        raise FailedError("some of the secret pairs can change without the others")
    return "the pairs of records that are named change a minimal set of secret pairs"


class Pairs:
    """Changes of records under a graph and facts, by the definition; None stands for a record that is absent."""

    def __init__(self, problem: Question) -> None:
        self.problem, self.graph = problem, graph_of(problem, "blowfish")
        self.bottom = self.graph.everywhere or bool(self.graph.loose)
        self.found: list[Any] = []
        self.columns: dict[Any, Column] = {None: {}}

    @property
    def vertices(self) -> list[Any]:
        """Everything that a record can be."""
        if not self.found:
            cells = self.problem.cells()
            if len(cells) > 400:
                raise OpenError("too many cells for changes of records")
            self.found = [*cells, *([None] if self.bottom else [])]
        return self.found

    def column(self, vertex: Any) -> Column:
        """What a record adds to the public sums."""
        if vertex not in self.columns:
            self.columns[vertex] = self.problem.known(vertex)
        return self.columns[vertex]

    def edge(self, x: Any, y: Any) -> bool:
        """Whether a change is a secret pair."""
        if x is None or y is None:
            return self.graph.bottom(y if x is None else x)
        return self.graph.edge(x, y)

    def sum(self, moved: list[Transition]) -> Column:
        """What changes of records do to the public sums."""
        made: Column = {}
        for x, y in moved:
            for key, entry in self.column(y).items():
                made[key] = made.get(key, 0) + entry
            for key, entry in self.column(x).items():
                made[key] = made.get(key, 0) - entry
        return {key: x for key, x in made.items() if x}

    def neighbours(self, moved: list[Transition]) -> bool:
        """Whether these changes, and no others, lead from a data set to a neighbour."""
        secret = [at for at, (x, y) in enumerate(moved) if self.edge(x, y)]
        if not secret or self.sum(moved):
            return False
        for count in range(1, len(moved)):
            for some in combinations(moved, count):
                Meter.spend(5)
                if not self.sum(list(some)):
                    return False
        return len(secret) == 1 or not self.repaired(moved, set(secret))

    def repaired(self, moved: list[Transition], secret: set[int]) -> bool:
        """Whether some but not all of the secret pairs can change alone, others repairing the sums along non-edges."""
        states: set[tuple[frozenset[Any], bool, bool]] = {(frozenset(), False, False)}
        for at, (x, y) in enumerate(moved):
            ways = [(z, False) for z in self.vertices if z == x or not self.edge(x, z)]
            ways += [(y, True)] if at in secret else []
            following = set()
            for done, kept, dropped in states:
                for z, pair in ways:
                    Meter.spend(5)
                    rest = Counter(dict(done))
                    for key, entry in self.column(z).items():
                        rest[key] += entry
                    for key, entry in self.column(x).items():
                        rest[key] -= entry
                    state = frozenset((key, n) for key, n in rest.items() if n)
                    following.add((state, kept or pair, dropped or (at in secret and not pair)))
            states = following
        return (frozenset(), True, True) in states


def every_pair(problem: Question) -> int:
    """All minimal sets of record changes with a secret pair, listed; those with several are tested by the definition."""
    need(
        problem.definition == "blowfish" and not problem.space.network,
        "a policy graph and facts on a table are needed",
    )
    pairs = Pairs(problem)
    need(len(pairs.vertices) <= 40, "the cells are too many to list changes of records")
    classes: dict[frozenset[Any], list[Any]] = {}
    for vertex in pairs.vertices:
        classes.setdefault(frozenset(pairs.column(vertex).items()), []).append(vertex)
    names = list(classes)
    steps: list[tuple[tuple[int, int], tuple[tuple[Any, int], ...]]] = []
    for a, b in permutations(range(len(names)), 2):
        gap = Counter(dict(names[b]))
        gap.subtract(dict(names[a]))
        steps.append(((a, b), tuple((key, n) for key, n in gap.items() if n)))
    best = 0
    for members in classes.values():
        for x, y in permutations(members, 2):
            if pairs.edge(x, y):
                best = max(best, _moved(problem, [(x, y)]))
    for chosen in _zero_sums(steps):
        best = _best_of(
            problem,
            pairs,
            [classes[names[a]] for a, _ in chosen],
            [classes[names[b]] for _, b in chosen],
            best,
        )
    return best


def _moved(problem: Question, moved: list[Transition]) -> int:
    change: Table = {}
    for x, y in moved:
        for cell, amount in ((x, -1), (y, 1)):
            if cell is not None:
                change[cell] = change.get(cell, 0) + amount
    change = {cell: amount for cell, amount in change.items() if amount}
    added, removed = sum(x for x in change.values() if x > 0), -sum(x for x in change.values() if x < 0)
    if problem.cap is not None and max(added, removed) > problem.cap:
        return 0
    return problem.size(problem.answer(change))


def _best_of(
    problem: Question, pairs: Pairs, starts: list[list[Any]], ends: list[list[Any]], best: int
) -> int:
    Meter.spend(20 * math.prod(len(some) for some in (*starts, *ends)))
    for some in product(*starts, *ends):
        moved = list(zip(some[: len(starts)], some[len(starts) :], strict=True))
        secret = {at for at, (x, y) in enumerate(moved) if pairs.edge(x, y)}
        if not secret:
            continue
        value = _moved(problem, moved)
        if value > best and (len(secret) == 1 or not pairs.repaired(moved, secret)):
            best = value
    return best


def _zero_sums(
    steps: list[tuple[tuple[int, int], tuple[tuple[Any, int], ...]]],
) -> Iterator[list[tuple[int, int]]]:
    """Minimal multisets of steps with sum 0, each once (blowfish-constraints.md, Theorem 2)."""
    rows = sorted({key for _, gap in steps for key, _ in gap}, key=repr)
    vectors = [tuple(dict(gap).get(row, 0) for row in rows) for _, gap in steps]

    def grow(
        chosen: list[int], total: Codes, allowed: list[int], sums: frozenset[Codes]
    ) -> Iterator[list[int]]:
        useful = [v for v in allowed if sum(a * b for a, b in zip(total, vectors[v], strict=True)) < 0]
        for at, v in enumerate(useful):
            Meter.spend(20 + len(sums) * len(rows) // 4)
            vector = vectors[v]
            made = tuple(a + b for a, b in zip(total, vector, strict=True))
            if not any(made):
                yield [*chosen, v]
                continue
            if tuple(-x for x in vector) in sums:
                continue  # a part of it is a change of its own
            if len(chosen) > 14:
                raise OpenError("sets of record changes that grow too long")
            banned = set(useful[:at])
            more = sums | {vector} | {tuple(a + b for a, b in zip(s, vector, strict=True)) for s in sums}
            yield from grow([*chosen, v], made, [w for w in allowed if w not in banned], more)

    for first in range(len(steps)):
        allowed = list(range(first, len(steps)))
        for found in grow([first], vectors[first], allowed, frozenset({vectors[first]})):
            yield [steps[v][0] for v in found]


# Lists of minimal moves --------------------------------------------------------------------------------------------------


class CellKinds:
    """Cells that the facts and the query do not tell apart, taken together."""

    def __init__(self, problem: Question, most: int | None = None) -> None:
        self.problem, self.identity = problem, problem.query.identity
        groups: dict[Any, list[int]] = {}
        columns: dict[Any, Column] = {}
        answers: dict[Any, Column] = {}
        need(problem.space.size <= 100_000, "there are too many cells for a list of moves")
        for cell in problem.cells():
            column = problem.known(cell)
            rows = {} if self.identity else problem.query.column(cell)
            Meter.spend(4 + len(column) + len(rows))
            key = frozenset(column.items()), frozenset(rows.items())
            groups.setdefault(key, []).append(cell)
            need(most is None or len(groups) <= most, "there are too many kinds of cells")
            columns[key], answers[key] = column, rows
        self.members = list(groups.values())
        self.columns = [columns[key] for key in groups]
        self.answers = [answers[key] for key in groups]

    def room(self, at: int) -> int | None:
        """Most records that a kind can gain: a cell that holds one edge gains one at most, and so does each cell of a Markov move."""
        top = 1 if self.problem.strength == "markov" else self.problem.space.capacity
        return None if top is None else top * len(self.members[at])

    def value(self, move: Codes) -> int:
        """The most that a minimal move over kinds changes the query; 0 where the policy does not protect it or nothing can make it."""
        return self.size({at: x for at, x in enumerate(move) if x})

    def size(self, move: Table) -> int:
        """The same, for amounts by kind."""
        problem = self.problem
        for at, x in move.items():
            room = self.room(at)
            if room is not None and abs(x) > room:
                return 0
        added, removed = sum(x for x in move.values() if x > 0), -sum(x for x in move.values() if x < 0)
        if problem.cap is not None and max(added, removed) > problem.cap:
            return 0
        if problem.strength == "markov" and added + removed > 4:
            return 0
        if self.identity:
            if problem.norm == "l1" or problem.space.capacity == 1 or problem.strength == "markov":
                return added + removed
            return sum(x * x for x in move.values())
        rows: Column = {}
        for at, x in move.items():
            for row, entry in self.answers[at].items():
                rows[row] = rows.get(row, 0) + entry * x
        return problem.size(rows)

    def exchange(self) -> int:
        """What the exchange of two records of one kind changes: nothing, unless cells are asked for."""
        some = any(
            len(cells) > 1 and column for cells, column in zip(self.members, self.columns, strict=True)
        )
        return 2 if self.identity and some else 0


def changes_of_few_records(problem: Question) -> int:
    """All changes that keep the facts and are within a cap, or as short as Markov moves are: of induced neighbours the minimal ones count.

    A change over cells is one over kinds, with the same answers and no more records (exchanges inside a kind aside).
    """
    markov = problem.strength == "markov" and problem.definition == "induced"
    need(problem.definition != "edges", "public facts are needed")
    need(markov or problem.cap is not None, "Markov strength or a cap is needed")
    induced = problem.definition == "induced"
    need(induced or not problem.query.identity, "beside a graph cells are not told apart by kinds")
    kinds = CellKinds(problem)
    n = len(kinds.columns)
    bottom = problem.graph is None or problem.graph.everywhere or bool(problem.graph.loose)
    balanced = not bottom or _balanced(kinds.columns)
    total = min([4] * markov + ([] if problem.cap is None else [2 * problem.cap]))
    side = min(total // 2 if balanced else total, total if problem.cap is None else problem.cap)
    need(math.comb(n + side, side) <= 500_000, "too many sets of few records")
    # sets of records by their public sums, grown from smaller ones
    groups: list[dict[frozenset[Any], list[Codes]]] = [{frozenset(): [()]}]
    for _ in range(side):
        larger: dict[frozenset[Any], list[Codes]] = {}
        for sums, some in groups[-1].items():
            for chosen in some:
                for at in range(chosen[-1] if chosen else 0, n):
                    made = Counter(dict(sums))
                    made.update(kinds.columns[at])
                    Meter.spend(4 + len(made))
                    key = frozenset((row, x) for row, x in made.items() if x)
                    larger.setdefault(key, []).append((*chosen, at))
        groups.append(larger)
    best = kinds.exchange()
    for p, q in product(range(1, side + 1), range(side + 1)):
        if q > p or p + q > total or (balanced and p != q):
            continue
        for sums, some in groups[p].items():
            for into, out in product(some, groups[q].get(sums, ())):
                Meter.spend(2 + p + q)
                if not set(into).isdisjoint(out):
                    continue
                change = Counter(into)
                change.subtract(out)
                value = kinds.size(change)
                if value > best and not (induced and _falls_apart(kinds.columns, change)):
                    best = value
    return best


def _balanced(columns: list[Column]) -> bool:
    """Whether the facts determine the number of records."""
    rest: dict[Any, Fraction] = dict.fromkeys(range(len(columns)), Fraction(1))
    for pivot, other in eliminate(list(transposed(dict(enumerate(columns))).values())):
        if pivot in rest:
            _subtract(rest, other, rest[pivot])
    return not rest


def _falls_apart(columns: list[Column], change: Table) -> bool:
    """Whether a smaller part of a change of few records keeps the facts."""
    ranges = [range(x + 1) if x > 0 else range(x, 1) for x in change.values()]
    for part in product(*ranges):
        Meter.spend(1 + len(part))
        taken = {at: x for at, x in zip(change, part, strict=True) if x}
        if not taken or taken == change:
            continue
        sums: Counter[Any] = Counter()
        for at, x in taken.items():
            for key, entry in columns[at].items():
                sums[key] += x * entry
        if not any(sums.values()):
            return True
    return False


def kernel(columns: list[Column]) -> list[list[int]]:
    """A basis of the whole vectors that are 0 on all rows, by unimodular column operations."""
    n = len(columns)
    rest = [dict(column) for column in columns]
    made = [[int(i == j) for j in range(n)] for i in range(n)]
    open_ = list(range(n))
    for key in sorted({key for column in columns for key in column}, key=repr):
        while True:
            active = [i for i in open_ if rest[i].get(key)]
            if len(active) < 2:
                break
            small = min(active, key=lambda i: abs(rest[i][key]))
            for i in active:
                if i != small:
                    times = rest[i][key] // rest[small][key]
                    Meter.spend(n + len(rest[small]))
                    for row, x in rest[small].items():
                        rest[i][row] = rest[i].get(row, 0) - times * x
                    made[i] = [a - times * b for a, b in zip(made[i], made[small], strict=True)]
        if active:
            open_.remove(active[0])
    return [made[i] for i in open_]


def listed_moves(problem: Question, proof: dict[str, Any]) -> int:
    """The listed moves contain all minimal ones, by Pottier's criterion: the largest change over them bounds all."""
    need(problem.definition == "induced", "there must be no policy graph")
    fields(proof, "proof", ("kind", "moves"), ("symmetries",))
    kinds = CellKinds(problem)
    n = len(kinds.columns)
    need(n <= 400, "there are too many kinds of cells")
    basis = kernel(kinds.columns)
    turns = []
    for given in listed(proof.get("symmetries", []), "symmetries"):
        turn = [whole(x, "symmetry", 0, n - 1) for x in listed(given, "symmetry")]
        if sorted(turn) != list(range(n)):
            raise FailedError("a symmetry is no permutation of the kinds of cells")
        if not all(_kept(kinds, _turned(tuple(vector), turn)) for vector in basis):
            raise FailedError("a symmetry does not keep the public facts")
        turns.append(turn)
    chosen: list[Codes] = []
    for given in listed(proof["moves"], "moves"):
        move = tuple(whole(x, "entry") for x in listed(given, "move"))
        if len(move) != n or not any(move) or not _kept(kinds, move):
            raise FailedError("a listed move does not keep the public facts")
        chosen.append(move)
    images = sorted(
        ((orbits([one], turns), one) for one in chosen), key=lambda pair: len(pair[0]), reverse=True
    )
    closed = Closed(list(set[Codes]().union(*(image for image, _ in images))), n)
    for vector in basis:
        if not closed.reduces(tuple(vector)):
            raise FailedError("the listed moves do not make all changes that keep the facts")
    # Sums of two moves up to symmetry: one of the two is a listed one, that with more images.
    for at, (_, one) in enumerate(images):
        up, down = closed.signs[one]
        for image, _ in images[at:]:
            Meter.spend(len(image))
            for two in image:
                more, less = closed.signs[two]
                clash = up & less or down & more  # otherwise nothing cancels
                if clash and not closed.reduces(tuple(a + b for a, b in zip(one, two, strict=True))):
                    raise FailedError(
                        "a sum of two listed moves is not made of listed moves: some move is missing"
                    )
    return largest(kinds, chosen, turns)


def largest(kinds: CellKinds, chosen: list[Codes], turns: list[list[int]]) -> int:
    """The largest change over the listed moves and their images; of positive strength only those that some data set can make so.

    Without a capacity a move that is positive from some data set is so from the one that holds nothing but what it removes, since others only have
    more changes that are shorter. A shorter change over kinds is one over cells. Symmetries of the facts keep both.
    """
    if kinds.problem.strength != "positive" or kinds.problem.space.capacity is not None:
        return max([kinds.exchange(), *(kinds.value(move) for move in orbits(chosen, turns))])
    cells = dict(enumerate(kinds.columns))
    ranked = sorted(((max(map(kinds.value, orbits([move], turns))), move) for move in chosen), reverse=True)
    for value, move in ranked:
        before = {at: -x for at, x in enumerate(move) if x < 0}
        after = {at: x for at, x in enumerate(move) if x > 0}
        # spread over cells, four records may be a Markov move
        few = sum(map(abs, move)) <= 4
        if few or value <= kinds.exchange() or positive(cells, None, before, after):
            return max(value, kinds.exchange())
    return kinds.exchange()


def _kept(kinds: CellKinds, move: Codes) -> bool:
    sums: Column = {}
    for x, column in zip(move, kinds.columns, strict=True):
        if x:
            for key, entry in column.items():
                sums[key] = sums.get(key, 0) + entry * x
    Meter.spend(len(move))
    return not any(sums.values())


def _turned(move: Codes, turn: list[int]) -> Codes:
    made = [0] * len(move)
    for at, x in enumerate(move):
        made[turn[at]] = x
    return tuple(made)


def orbits(chosen: list[Codes], turns: list[list[int]]) -> set[Codes]:
    every = {move for one in chosen for move in (one, tuple(-x for x in one))}
    queue = list(every)
    while queue:
        move = queue.pop()
        Meter.spend(len(move) * (1 + len(turns)) // 4)
        for turn in turns:
            other = _turned(move, turn)
            if other not in every:
                every.add(other)
                queue.append(other)
        need(len(every) <= 200_000, "there are too many moves")
    return every


class Closed:
    """A set of moves, and whether a vector is a sum of some of them that never cancel."""

    def __init__(self, moves: list[Codes], n: int) -> None:
        self.moves = sorted(moves, key=lambda move: (sum(map(abs, move)), move))
        self.top = max((abs(x) for move in moves for x in move), default=0)
        fits = self.top <= 64 and len(moves) * n * self.top <= 50_000_000
        need(fits, "moves that are so many or have such large entries are not checked here")
        self.fitting: list[dict[int, int]] = []
        """For each place and entry, which moves fit there: a bit for each."""
        for at in range(n):
            by_entry = dict.fromkeys(range(-self.top, self.top + 1), 0)
            for number, move in enumerate(self.moves):
                by_entry[move[at]] |= 1 << number
            here = {0: by_entry[0]}
            for x in range(1, self.top + 1):
                here[x], here[-x] = here[x - 1] | by_entry[x], here[1 - x] | by_entry[-x]
            self.fitting.append(here)
        self.signs = {
            move: (
                sum(1 << at for at, x in enumerate(move) if x > 0),
                sum(1 << at for at, x in enumerate(move) if x < 0),
            )
            for move in self.moves
        }
        self.every = (1 << len(self.moves)) - 1
        self.cost = 2 + n * (1 + len(self.moves) // 4096) // 8

    def reduces(self, vector: Codes) -> bool:
        """Take listed moves out of a vector while one fits; whether nothing is left."""
        while any(vector):
            Meter.spend(self.cost)
            fitting = self.every
            for x, here in zip(vector, self.fitting, strict=True):
                fitting &= here[x if abs(x) <= self.top else self.top if x > 0 else -self.top]
            if not fitting:
                return False
            move = self.moves[(fitting & -fitting).bit_length() - 1]
            vector = tuple(a - b for a, b in zip(vector, move, strict=True))
        return True


# Proofs ------------------------------------------------------------------------------------------------------------------

THEOREMS: dict[str, tuple[Callable[[Question], int], str]] = {
    "edge-attributes": (edge_attributes, "policy-graph-rules.md"),
    "row-ranges": (row_ranges, "policy-graph-rules.md"),
    "one-record": (one_record, "reductions.md, Theorem 1"),
    "one-margin": (one_margin, "reductions.md, Theorem 2"),
    "two-margins": (two_margins, "reductions.md, Theorem 3, and cubes.md, Theorem 6"),
    "binary-margins": (binary_margins, "valued-arcs.md, Theorem 2"),
    "ternary-margins": (ternary_margins, "valued-arcs.md, Theorem 3"),
    "few-records": (few_records, "strengths.md"),
    "determined": (determined, "reductions.md"),
    "open-numbers": (open_numbers, "single-moves.md, Theorem 1"),
    "two-open-numbers": (two_open_numbers, "single-moves.md, Theorem 2"),
    "paired-sums": (paired_sums, "single-moves.md, Theorem 3"),
    "margin-cells": (margin_cells, "two-cuboids.md, Theorem 2"),
    "degrees": (degrees, "degrees.md, Theorems 3 to 5"),
    "measure": (measured, "measures.md"),
    "kept-facts": (kept_facts, "blowfish-constraints.md, Theorem 1"),
    "disjoint-counts": (disjoint_counts, "blowfish-constraints.md, section 5"),
    "short-margins": (short_margins, "valued-arcs.md, section 4"),
}
"""Closed forms by name, with the page of docs/explanation/proofs that proves them."""
SLOW = ("row-ranges", "determined", "open-numbers", "two-open-numbers", "paired-sums", "disjoint-counts")
"""Theorems whose conditions are tested cell by cell, tried after the others."""
LISTINGS: dict[str, Callable[[Question], int]] = {
    "edges": every_edge,
    "record-changes": every_pair,
    "changes-of-few-records": changes_of_few_records,
}
KINDS = ("theorem", "listing", "moves", "reduction")


def bound(problem: Question, proof: Any) -> tuple[int, str]:
    """The upper bound that a proof proves, in units of the query (squared for l2), and a sentence on how."""
    kind = proof.get("kind") if isinstance(proof, dict) else None
    if problem.query.measure is not None and (kind != "theorem" or proof.get("theorem") != "measure"):
        raise OpenError("a proof that is not about values of records")
    if kind == "theorem":
        fields(proof, "proof", ("kind", "theorem"), ())
        name = proof["theorem"]
        if not isinstance(name, str) or name not in THEOREMS:
            raise OpenError(f"no theorem {str(name)[:40]!r} is known")
        found, page = THEOREMS[name]
        return found(problem), f"the theorem {name} ({page}) with all its conditions"
    if kind == "listing":
        fields(proof, "proof", ("kind", "of"), ())
        what = proof["of"]
        if not isinstance(what, str) or what not in LISTINGS:
            raise OpenError("a listing of nothing that is known")
        return LISTINGS[what](problem), f"all {what.replace('-', ' ')} were gone through"
    if kind == "moves":
        return listed_moves(
            problem, proof
        ), "the listed moves contain all minimal ones, by Pottier's criterion"
    if kind == "reduction":
        fields(proof, "proof", ("kind", "to", "proof"), ())
        need(proof["to"] == "cells", "a reduction to nothing that is known")
        need(problem.query.measure is None and not problem.query.identity, "cells are asked for already")
        return _times_column(problem, proof["proof"])
    raise OpenError("the certificate carries no proof of a known kind")


def _times_column(problem: Question, proof: Any) -> tuple[int, str]:
    """A move of so many records changes the answer by at most so many times the longest column."""
    cells, how = bound(problem.of_cells, proof)
    wide = column_bound(problem)
    return (
        cells * wide if problem.norm == "l1" else cells * cells * wide,
        f"{how}; each record changes the answer by one column",
    )


def shown(name: str, passed: bool | None, text: str) -> dict[str, Any]:
    """One line of the report."""
    return {"name": name, "passed": passed, "text": text}


def _decide(name: str, work: Callable[[], str]) -> dict[str, Any]:
    try:
        return shown(name, True, work())
    except FailedError as wrong:
        return shown(name, False, str(wrong))
    except OpenError as open_:
        return shown(name, None, str(open_))
    except Exception as cause:  # whatever a file brings about, it does not pass
        return shown(name, None, f"not decided: {type(cause).__name__}")


def check(data: Any) -> dict[str, Any]:
    """Check a certificate that was read from JSON.

    Returns
    -------
    dict
        ``holds`` (everything was decided and is right), ``complete`` (everything was decided) and ``checks``, each with ``name``, ``passed`` (true,
        false, or null where it was not decided) and ``text``.

    Examples
    --------
    >>> check({"format": 1})["holds"]
    False
    """
    Meter.left = WORK
    checks: list[dict[str, Any]] = []
    problems: list[Question] = []

    def read() -> str:
        problems.append(_document(data))
        return "the document is consistent and known in all its parts"

    checks.append(_decide("document", read))
    if problems:
        problem = problems[0]
        exact = data["exact_value"]
        upper, lower = (rational(exact[key], key) for key in ("value", "lower"))
        checks += _witness(problem, data["witness"], lower)
        checks.append(_decide("bound", lambda: _bounded(problem, data.get("proof"), upper)))
    return {
        "holds": all(one["passed"] is True for one in checks),
        "complete": all(one["passed"] is not None for one in checks) and bool(problems),
        "checks": checks,
    }


def _document(data: Any) -> Question:
    fields(data, "the certificate", tuple(NEEDED.split()), BESIDE)
    if data["format"] != 1 or type(data["format"]) is not int:
        raise OpenError("a format that is not known")
    problem = Question(data["policy"], data["query"], data["norm"])
    exact = fields(data["exact_value"], "exact_value", ("power", "value", "lower"), ())
    upper, lower = (rational(exact[key], key) for key in ("value", "lower"))
    if whole(exact["power"], "power") != (1 if problem.norm == "l1" else 2) or not 0 <= lower <= upper:
        raise FailedError("the exact value and its power do not fit")
    if data["kind"] not in ("exact", "upper") or (data["kind"] == "exact" and lower != upper):
        raise FailedError("a value that is said to be exact is more than what is attained")
    _number(data["value"], upper, problem.norm, up=True)
    _number(data["lower"], lower, problem.norm, up=data["kind"] == "exact")
    if data["at_most_records"] is not None:
        whole(data["at_most_records"], "at_most_records")
    stated = data["neighbours"], data["strength"], data["at_most_records"]
    if stated != (problem.definition, problem.strength, problem.cap):
        raise FailedError("neighbours, strength or cap are others than those of the policy")
    if data["definition"] not in _sentences(problem):
        raise FailedError("the definition in words is another than that of the policy")
    stated_unit = (problem.column or "family", problem.members) if "unit" in problem.spec else (None, None)
    if (data.get("unit"), data.get("at_most")) != stated_unit:
        raise FailedError("the unit is another than that of the policy")
    _fingerprints(data)
    if "cut_short" in data and data["cut_short"] is not True:
        raise OpenError("cut_short: expected true, or nothing")
    return problem


def _number(given: Any, exact: Fraction, norm: str, *, up: bool) -> None:
    """The number that people read is the exact one, or the float next to it."""
    if type(given) not in (int, float) or given < 0 or (type(given) is float and not math.isfinite(given)):
        raise OpenError("a value that is no number")
    value = Fraction(given)
    power = value if norm == "l1" else value * value
    near = abs(power - exact) <= exact / 2**40
    if not near or (type(given) is int and power != exact) or (up and power < exact):
        raise FailedError("the value that is shown is not the exact one")


def _sentences(problem: Question) -> list[str]:
    text = SENTENCES[problem.definition]
    if problem.definition == "induced" and not problem.spec.get("public"):
        text = "one record more or less (induced neighbours without public facts)"
    made = [text]
    if problem.definition == "blowfish" and problem.space.network:
        made.append(text + ", each node pair a record that is joined or not")
    rest = "" if problem.strength == "worst-case" else f", {problem.strength} strength"
    if problem.cap is not None:
        rest += f", at most {problem.cap} records added and as many removed"
    if problem.column is not None:
        rest += problem.words
    elif "unit" in problem.spec:
        words = f"{'exactly' if problem.exactly else 'up to'} {problem.members} records"
        rest += f"; families of {words} take such a step together, as one record would"
    if problem.query.measure is not None:
        rest += "; records are taken with their values, and every value is secret"
    return [text + rest for text in made]


def _digest(spec: Any) -> str:
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _fingerprints(data: dict[str, Any]) -> None:
    """Both fingerprints are digests of the policy and the query; the order of the attributes is a part where it matters."""
    policy, query = data["policy"], data["query"]
    domain = policy.get("domain", policy.get("network"))
    orders: list[dict[str, Any]] = [{}, {"order": list(domain)}]
    records = {key: value for key, value in policy.items() if key != "unit"}
    of_policy = [_digest({**records, **order}) for order in orders]
    if "unit" in policy:
        of_policy = [_digest({"records": one, "unit": policy["unit"]}) for one in of_policy]
    of_query = [_digest({"domain": domain, "query": query, **order}) for order in orders]
    if data["policy_fingerprint"] not in of_policy or data["query_fingerprint"] not in of_query:
        raise FailedError("a fingerprint is not that of the policy or the query")


def _witness(problem: Question, witness: Any, lower: Fraction) -> list[dict[str, Any]]:
    if witness is None:
        text = "none is needed, since nothing is claimed to be attained"
        return [
            shown("witness", True, text)
            if not lower
            else shown("witness", False, "there is none for what is attained")
        ]
    found: list[tuple[Table, Table]] = []

    def read() -> str:
        found.append(_members(problem, tables_of(problem, witness)))
        return "two data sets over the domain"

    checks = [_decide("tables", read)]
    if found:
        before, after = found[0]
        here, there = (cells_only(problem, table) for table in found[0])
        checks.append(_decide("public facts", lambda: facts_hold(problem, here, there)))
        checks.append(_decide("neighbours", lambda: _near(problem, before, after, witness)))
        checks.append(_decide("attained", lambda: _attained(problem, difference(before, after), lower)))
    return checks


def _members(problem: Question, tables: tuple[Table, Table]) -> tuple[Table, Table]:
    """One member of each family."""
    if problem.members > 1 and problem.valued:
        raise OpenError("families beside published values")
    if any(x % problem.copies for table in tables for x in table.values()):
        raise FailedError("a count is no multiple of the size of a family")
    before, after = ({cell: x // problem.copies for cell, x in table.items()} for table in tables)
    return before, after


def _one_unit(problem: Question, before: Table, after: Table) -> str:
    """One unit has what is in the first data set, and then what is in the second; nothing else is in them."""
    for table in (cells_only(problem, before), cells_only(problem, after)):
        if sum(table.values()) > problem.members or max(table.values(), default=0) > problem.most:
            raise FailedError("a unit has more records, or more of them in one cell, than it may")
    if problem.graph is None:
        if bool(before) == bool(after):
            raise FailedError("no unit appears or vanishes alone")
        return "one unit appears or vanishes, with all of its records"
    # Counts with a common divisor are so many copies of one step.
    times = math.gcd(*before.values(), *after.values()) or 1
    sizes = [sum(table.values()) // times for table in (before, after)]
    places = min(problem.members // times, sum(sizes))
    Meter.spend(places**3 + 1)
    here, there = ([at for at, n in table.items() for _ in range(n // times)] for table in (before, after))
    if not _paired(
        problem, [*here, *[None] * (places - len(here))], [*there, *[None] * (places - len(there))]
    ):
        raise FailedError("no records of one unit go along edges of the policy graph like this")
    return "each record of one unit stays or goes along an edge of the policy graph"


def _paired(problem: Question, here: list[int | None], there: list[int | None]) -> bool:
    """Whether places can be paired so that each stays or goes along an edge: a matching, grown by paths that add one more pair."""
    graph, levels = problem.graph, 1 if problem.query.measure is None else problem.query.measure.span + 1
    if graph is None:
        return False

    def joined(one: int | None, two: int | None) -> bool:
        if one is None or two is None:
            end = one if two is None else two
            return end is None or graph.bottom(end // levels)
        return one // levels == two // levels or graph.edge(one // levels, two // levels)

    options = [[at for at, two in enumerate(there) if joined(one, two)] for one in here]
    taken: dict[int, int] = {}
    for start in range(len(here)):
        came: dict[int, int] = {}
        queue, end = [start], None
        while queue and end is None:
            one = queue.pop()
            for at in options[one]:
                if at not in came:
                    came[at] = one
                    if at not in taken:
                        end = at
                        break
                    queue.append(taken[at])
        if end is None:
            return False
        # Turn the path around: each place on it takes the partner that it was reached by.
        while end is not None:
            one = came[end]
            before = next((at for at, other in taken.items() if other == one), None)
            taken[end] = one
            end = before
            if one == start:
                break
    return True


def cells_only(problem: Question, table: Table) -> Table:
    """How many records are in each cell, whatever their values."""
    measure = problem.query.measure
    made: Table = {}
    for index, amount in table.items():
        cell = index if measure is None else index // (measure.span + 1)
        made[cell] = made.get(cell, 0) + amount
    return made


def _near(problem: Question, before: Table, after: Table, witness: dict[str, Any]) -> str:
    if problem.column is not None:
        return _one_unit(problem, before, after)
    if "pairs" in witness:
        return stated_pairs(problem, before, after, witness["pairs"])
    if problem.query.measure is None:
        return are_neighbours(problem, before, after)
    here, there = cells_only(problem, before), cells_only(problem, after)
    if here == there:
        change = difference(before, after)
        need(problem.graph is not None, "without a graph and facts a value change is no step")
        if sorted(change.values()) == [-1, 1]:
            return "one record changes its value within its cell"
        # beside facts, records may change places, with other values: the counts of the cells stay
        need(
            not problem.facts, "values of records that change places beside public facts are not decided here"
        )
        raise FailedError("more than one value changes")
    need(
        not problem.facts and not problem.zeros, "values of records beside public facts are not decided here"
    )
    change = difference(before, after)
    if sum(map(abs, change.values())) > 2:
        raise FailedError("more than one record changes")
    return are_neighbours(problem, here, there)


def _attained(problem: Question, change: Table, lower: Fraction) -> str:
    times = problem.copies * problem.query.unit
    measure = problem.query.measure
    if measure is None:
        rows = problem.answer(change)
    else:
        rows = {}
        for index, amount in change.items():
            cell, level = divmod(index, measure.span + 1)
            for row, x in measure.column(problem.space.codes(cell), level).items():
                rows[row] = rows.get(row, 0) + amount * x
    made = problem.size(rows) * (times if problem.norm == "l1" else times * times)
    if made != lower:
        raise FailedError(f"the answers of the two data sets differ by {made}, claimed {lower}")
    return f"the answers of the two data sets differ by {made}, claimed {lower}"


def _bounded(problem: Question, proof: Any, upper: Fraction) -> str:
    if proof is None:
        raise OpenError("the certificate carries no proof of its bound")
    if isinstance(proof, str) and proof in ("theorem", "listing"):
        proof = found_proof(problem, upper)
    of_unit = isinstance(proof, dict) and proof.get("theorem") in list(UNITS)
    made, how = _of_unit(problem, proof) if of_unit else bound(problem, proof)
    times = problem.query.unit * (1 if of_unit else problem.members)
    value = made * (times if problem.norm == "l1" else times * times)
    if value > upper:
        raise FailedError(f"{how} proves {value}, and not the claimed {upper}")
    return f"at most {value}: {how}"


def _steps_of_records(problem: Question) -> list[tuple[int | None, int | None]]:
    """Where a record of a unit can go: into a cell, or along an edge in either direction; None is nowhere."""
    if problem.graph is None:
        return [(None, cell) for cell in problem.cells()]
    ends: list[tuple[int | None, int | None]] = []
    for u, v in problem.graph.pairs():
        if problem.possible(u) and problem.possible(v):
            ends += [(u, v), (v, u)]
    for cell in problem.cells():
        Meter.spend(1)
        if problem.graph.bottom(cell):
            ends += [(cell, None), (None, cell)]
    return ends


def _vector(problem: Question, step: tuple[int | None, int | None]) -> Column:
    out, into = step
    made = dict(problem.query.column(into)) if into is not None else {}
    for row, x in (problem.query.column(out) if out is not None else {}).items():
        made[row] = made.get(row, 0) - x
    Meter.spend(8 + 8 * len(made))
    return made


def _largest_first(problem: Question, values: Iterator[int]) -> int:
    """The largest values first, each as often as a cell may have records, up to the records of a unit."""
    left, total = problem.members, 0
    for value in sorted(values, reverse=True):
        if value <= 0 or not left:
            break
        taken = min(left, problem.most)
        left, total = left - taken, total + taken * value
    return total


def unit_tables(problem: Question) -> int:
    """A unit that appears fills the cells of tables one after the other (units.md, Theorems 2 and 3)."""
    need(
        problem.graph is None and problem.query.kinds == ["cuboids"],
        "tables of counts without a graph are needed",
    )
    k, most, first = problem.members, problem.most, problem.norm == "l1"
    total = 0
    if problem.query.tables is not None:
        for axes, weight, _ in problem.query.tables:
            rows = math.prod(problem.space.sizes[axis] for axis in set(axes))
            room = most * (math.prod(problem.space.sizes) // rows)
            full, rest = divmod(min(k, room * rows), room)
            total += weight * min(k, room * rows) if first else weight**2 * (full * room**2 + rest**2)
    return total


def unit_rows(problem: Question) -> int:
    """Each answer by itself, or each record by itself, the largest first (units.md, Theorem 4, 1 and 2)."""
    # An edge is one vector, taken in either direction: a record leaves its one end each time.
    steps = [step for step in _steps_of_records(problem) if problem.graph is None or _once(step)]
    vectors = [_vector(problem, step) for step in steps]
    entries: dict[Any, list[int]] = {}
    for vector in vectors:
        for row, x in vector.items():
            entries.setdefault(row, []).append(x)
    total = 0
    for values in entries.values():
        if problem.graph is None:
            # records of a unit are all there, or all gone
            largest = max(
                _largest_first(problem, iter(values)), _largest_first(problem, (-x for x in values))
            )
        else:
            largest = _largest_first(problem, map(abs, values))
        total += largest if problem.norm == "l1" else largest**2
    if problem.norm != "l1":
        return total
    return min(total, _largest_first(problem, (sum(map(abs, vector.values())) for vector in vectors)))


def _once(step: tuple[int | None, int | None]) -> bool:
    """Whether this is the direction by which an edge is counted."""
    return step[1] is None or (step[0] is not None and step[0] < step[1])


def unit_products(problem: Question) -> int:
    """Where no two records share an answer: squares of how often each is taken, the longest first (units.md, Theorem 4, 4)."""
    need(problem.norm == "l2", "it is about squares")
    steps = [step for step in _steps_of_records(problem) if problem.graph is None or _once(step)]
    seen: set[Any] = set()
    squares = []
    for step in steps:
        vector = {row: x for row, x in _vector(problem, step).items() if x}
        need(not seen & set(vector), "two records share an answer")
        seen |= set(vector)
        squares.append(sum(x * x for x in vector.values()))
    left, total = problem.members, 0
    for square in sorted(squares, reverse=True):
        taken = min(left, problem.most)
        left, total = left - taken, total + taken * taken * square
    return total


def unit_steps(problem: Question) -> int:
    """All steps of a unit, one after the other."""
    steps = _steps_of_records(problem)
    need(problem.members <= 200, "a unit has too many records")
    need(
        math.comb(len(steps) + problem.members, problem.members) <= UNIT_STEPS,
        "the steps of a unit are too many to go through",
    )
    vectors = [_vector(problem, step) for step in steps]
    best = 0

    def descend(at: int, left: int, gone: Column, come: Column, change: Column) -> None:
        nonlocal best
        Meter.spend(8 + len(change))
        best = max(best, problem.size(change))
        for place in range(at, len(steps) if left else 0):
            out, into = steps[place]
            if (out is not None and gone.get(out, 0) >= problem.most) or (
                into is not None and come.get(into, 0) >= problem.most
            ):
                continue
            after = dict(change)
            for row, x in vectors[place].items():
                after[row] = after.get(row, 0) + x
            more = {**gone, out: gone.get(out, 0) + 1}, {**come, into: come.get(into, 0) + 1}
            descend(place, left - 1, *more, after)

    descend(0, problem.members, {}, {}, {})
    return best


UNIT_STEPS = 60_000
"""Most steps of a unit that are gone through."""
UNITS: dict[str, Callable[[Question], int]] = {
    "unit-tables": unit_tables,
    "unit-rows": unit_rows,
    "unit-products": unit_products,
    "unit-steps": unit_steps,
}
"""What is about all records of a unit, and not about one of them."""


def _of_unit(problem: Question, proof: Any) -> tuple[int, str]:
    """The upper bound for a unit that one of these theorems proves, and a sentence on how."""
    fields(proof, "proof", ("kind", "theorem"), ())
    need(
        proof["kind"] == "theorem" and problem.column is not None and problem.query.measure is None,
        "counts under a unit are needed",
    )
    return UNITS[proof["theorem"]](
        problem
    ), f"the theorem {proof['theorem']} (units.md) with all its conditions"


def found_proof(problem: Question, upper: Fraction) -> dict[str, Any]:
    """A theorem or listing that proves a bound, where there is one: for files that name the kind of proof only."""
    times = problem.members * problem.query.unit
    unit = times if problem.norm == "l1" else times * times
    # Answers that the facts determine do not change at all, so that another bound is not theirs.
    able = [name for name in THEOREMS if not upper or name != "determined"]
    quick = [name for name in able if name not in SLOW or name == "determined"]
    slow = [name for name in able if name not in quick]

    def to_cells(proofs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        more = [{"kind": "reduction", "to": "cells", "proof": proof} for proof in proofs]
        return proofs if problem.query.identity or problem.query.measure is not None else proofs + more

    power = problem.query.unit if problem.norm == "l1" else problem.query.unit**2
    for name in UNITS if problem.column is not None and problem.most < problem.members else ():
        Meter.left = WORK // 8
        try:
            if _of_unit(problem, {"kind": "theorem", "theorem": name})[0] * power <= upper:
                Meter.left = WORK
                return {"kind": "theorem", "theorem": name}
        except OpenError:
            continue
    first: list[dict[str, Any]] = [{"kind": "theorem", "theorem": name} for name in quick]
    second: list[dict[str, Any]] = [{"kind": "theorem", "theorem": name} for name in slow]
    second += [{"kind": "listing", "of": name} for name in LISTINGS]
    rest = WORK // 2
    for proof in to_cells(first) + to_cells(second):
        Meter.left = given = min(WORK // 8, max(rest, 0))
        try:
            if bound(problem, proof)[0] * unit <= upper:
                Meter.left = WORK
                return proof
        except (OpenError, FailedError):
            pass
        rest -= given - Meter.left
    raise OpenError("no theorem or listing that is known here proves the bound")


def check_text(text: str) -> dict[str, Any]:
    """Check a certificate given as the text of its file; see :func:`check`.

    Examples
    --------
    >>> check_text("{}")["complete"]
    False
    """
    try:
        return check(parse(text))
    except OpenError as open_:
        return {"holds": False, "complete": False, "checks": [shown("document", None, str(open_))]}


def main(arguments: list[str] | None = None) -> int:
    """Check the file that the command names; 0 only when everything was decided and holds."""
    given = sys.argv[1:] if arguments is None else arguments
    paths = [one for one in given if one != "--json"]
    if len(paths) != 1:
        sys.stderr.write("usage: python -m policygraph.check certificate.json [--json]" + "\n")
        return 2
    try:
        with open(paths[0], encoding="utf-8") as file:
            report = check_text(file.read(TEXT + 1))
    except (OSError, UnicodeDecodeError) as cause:
        report = {
            "holds": False,
            "complete": False,
            "checks": [shown("document", None, f"cannot be read: {cause}")],
        }
    if "--json" in given:
        sys.stdout.write(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    else:
        for one in report["checks"]:
            mark = {True: "passed", False: "FAILED", None: "open  "}[one["passed"]]
            sys.stdout.write(f"{mark}  {one['name']}: {one['text']}" + "\n")
        failed = any(one["passed"] is False for one in report["checks"])
        end = "the certificate does NOT hold" if failed else "nothing failed, but not everything was decided"
        sys.stdout.write(("the certificate holds" if report["holds"] else end) + "\n")
    return 0 if report["holds"] else 2


if __name__ == "__main__":
    sys.exit(main())
