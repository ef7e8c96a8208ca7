"""Domains: what a record can be. Owns :class:`Domain` (tables) and :class:`Network` (graphs).

A data set is an integer vector over the cells of its domain: the base cells of a table, or the node pairs of
a network. Both domains answer the same questions (``size``, ``cell``, ``index``, ``capacity``), so that
moves, queries and sensitivities need not know which one they are over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, shown
from policygraph.model.bins import Bins

Label = str | int | float | bool
Labels = tuple[Label, ...] | range
Cells = npt.NDArray[np.int64]
SHOWN = 12
"""So many labels of an attribute are shown in a notebook."""
MOST_VALUES = 2**62
"""Most values of one attribute."""


def _wrong_labels(message: str, value: Any) -> InputError:
    return InputError(message, code="domain.labels", value=value)


def _read_labels(where: str, given: int | Sequence[Label]) -> Labels:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if not 1 <= given <= MOST_VALUES:
            expected = (
                "at least one value" if given < 1 else "at most 2^62 values, so that an index fits 64 bits"
            )
            raise _wrong_labels(f"{where} = {shown(given)}: expected {expected}.", given)
        return range(int(given))
    if isinstance(given, range) and given.start == 0 and given.step == 1 and len(given) > 0:
        return given
    try:
        if isinstance(given, (bool, str, bytes)):
            raise TypeError
        # Numbers of numpy are taken as the plain ones that they stand for.
        labels = tuple(label.item() if isinstance(label, np.generic) else label for label in given)
    except TypeError:
        raise _wrong_labels(
            f"{where} = {given!r}: expected a list of labels or how many values there are.", given
        ) from None
    if not labels:
        raise _wrong_labels(f"{where} = []: expected at least one label.", given)
    for label in labels:
        if not isinstance(label, (str, int, float, bool)):
            hint = " networkx.convert_node_labels_to_integers(graph) gives nodes plain names."
            message = f"{where} has the label {label!r}: expected text or a number."
            raise _wrong_labels(message + (hint if where == "network.nodes" else ""), label)
        if isinstance(label, str) and not _encodable(label):
            raise _wrong_labels(
                f"{where} has the label {label!r}, which contains half of a character (a lone surrogate) and cannot be written as text: expected it without. "
                "It often comes from reading a file in a wrong encoding.",
                label,
            )
        if isinstance(label, float) and not isfinite(label):
            raise _wrong_labels(
                f"{where} has the label {label}, which is not a number: expected text such as 'none' instead.",
                label,
            )
    if any(isinstance(label, bool) for label in labels) and any(
        type(label) is int or (type(label) is float and label in (0.0, 1.0)) for label in labels
    ):
        raise _wrong_labels(
            f"{where} has true or false beside whole numbers, and 1 in the data could mean either: expected one kind.",
            labels,
        )
    seen: set[Label] = set()
    texts: set[str] = set()
    for label in labels:
        # 1, 1.0 and true are equal, and a value of the data could mean either.
        if label in seen or str(label) in texts:
            raise InputError(
                f"{where} lists {label!r} twice: each label names one value, and numbers of equal value are one label.",
                code="domain.duplicate",
                value=label,
            )
        seen.add(label)
        texts.add(str(label))
    if labels == tuple(range(len(labels))) and all(type(label) is int for label in labels):
        return range(len(labels))
    return labels


def _encodable(text: str) -> bool:
    """Whether a text can be written to a file: half of a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(label: object) -> bool:
    return isinstance(label, (str, int, float))


class Domain:
    """The cells of a table: one for each combination of its attributes' values.

    Parameters
    ----------
    attributes
        For each attribute its labels in order, how many values it has (labels 0, 1, ...), or :class:`Bins` of numbers or dates
        (also as a mapping: ``{"bins": [0, 18, 65]}``).

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"], "age": 7})
    >>> domain.size, domain.shape, domain.names
    (14, (2, 7), ('sex', 'age'))
    >>> domain.index(("M", 3)), domain.cell(10)
    (10, ('M', 3))
    >>> domain.project(["age"])
    Domain(age: 7)
    >>> Domain({"age": Bins([0, 18, 65])}).labels("age")
    ('0-17', '18-64', '65+')
    """

    capacity: int | None = None

    def __init__(self, attributes: Mapping[str, int | Sequence[Label] | Bins | Mapping[str, Any]]) -> None:
        if not isinstance(attributes, Mapping) or not attributes:
            raise InputError(
                f"domain = {attributes!r}: expected at least one attribute with its labels.",
                code="domain.empty",
                value=attributes,
            )
        for name in attributes:
            if not isinstance(name, str) or not name or not _encodable(name):
                raise InputError(
                    f"attribute {name!r}: expected a name, of whole characters.",
                    code="domain.name",
                    value=name,
                )
        self._bins: dict[str, Bins] = {
            name: given if isinstance(given, Bins) else Bins.from_spec(given)
            for name, given in attributes.items()
            if isinstance(given, (Bins, Mapping))
        }
        self._labels: dict[str, Labels] = {
            name: self._bins[name].labels
            if isinstance(v, (Bins, Mapping))
            else _read_labels(f"domain.{name}", v)
            for name, v in attributes.items()
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes, in order."""
        return tuple(self._labels)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each attribute."""
        return tuple(len(labels) for labels in self._labels.values())

    @cached_property
    def size(self) -> int:
        """Number of cells; a Python integer, since it may exceed 64 bits."""
        return prod(self.shape)

    def axis(self, name: str) -> int:
        """Position of an attribute."""
        try:
            return self.names.index(name)
        except ValueError:
            raise InputError(
                f"attribute {name!r} is not in the domain: expected one of {', '.join(self.names)}.",
                code="domain.unknown-attribute",
                value=name,
            ) from None

    def labels(self, name: str) -> Labels:
        """Labels of an attribute, in order."""
        self.axis(name)
        return self._labels[name]

    def bins(self, name: str) -> Bins | None:
        """Bins of an attribute; None for one whose values are labels.

        Examples
        --------
        >>> Domain({"age": {"bins": [0, 18]}}).bins("age")
        Bins(edges=(0, 18), open=True, also=(), end=None)
        """
        self.axis(name)
        return self._bins.get(name)

    @cached_property
    def _positions(self) -> dict[str, dict[Label, int]]:
        return {}

    def code(self, name: str, label: Label) -> int:
        """Position of a label among the values of an attribute.

        Examples
        --------
        >>> Domain({"sex": ["F", "M"]}).code("sex", "M")
        1
        """
        labels = self.labels(name)
        if isinstance(labels, range):
            if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(labels):
                return int(label)
        else:
            if name not in self._positions:
                self._positions[name] = {value: at for at, value in enumerate(labels)}
            found = self._positions[name].get(label) if _plain(label) else None
            if found is not None and type(labels[found]) is type(label):
                return found
        listed = ", ".join(repr(value) for value in labels[:8]) + (", ..." if len(labels) > 8 else "")
        raise InputError(
            f"{name} has no value {label!r}: expected one of {listed}.",
            code="domain.unknown-label",
            attribute=name,
            value=label,
        )

    def index(self, cell: Sequence[Label]) -> int:
        """Index of a cell given by its labels, attributes in order, the last one running fastest."""
        if isinstance(cell, (str, bytes)) or len(cell) != len(self.names):
            raise InputError(
                f"cell {cell!r}: expected one label for each of {', '.join(self.names)}.",
                code="domain.cell",
                value=cell,
            )
        at = 0
        for name, size, label in zip(self.names, self.shape, cell, strict=True):
            at = at * size + self.code(name, label)
        return at

    def cell(self, index: int) -> tuple[Label, ...]:
        """Labels of the cell with this index."""
        if not 0 <= index < self.size:
            raise InputError(
                f"cell index {index}: expected 0 to {self.size - 1}.", code="domain.cell", value=index
            )
        codes = []
        rest = int(index)
        for size in reversed(self.shape):
            rest, code = divmod(rest, size)
            codes.append(code)
        return tuple(self.labels(name)[code] for name, code in zip(self.names, reversed(codes), strict=True))

    def codes(self, indices: Any) -> tuple[Cells, ...]:
        """Positions of the values of cells, attribute by attribute (a vectorised :meth:`cell`)."""
        return tuple(np.asarray(c, dtype=np.int64) for c in np.unravel_index(np.asarray(indices), self.shape))

    def project(self, names: Sequence[str]) -> Domain:
        """Domain of some attributes only, in the order of this domain."""
        wanted = {name for name in names if self.axis(name) >= 0}
        if not wanted:
            raise InputError(
                "project([]): expected at least one attribute.", code="domain.empty", value=names
            )
        return Domain(
            {name: self._bins.get(name, self._labels[name]) for name in self.names if name in wanted}
        )

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files and fingerprints."""
        return {
            name: self._bins[name].to_spec()
            if name in self._bins
            else len(labels)
            if isinstance(labels, range)
            else list(labels)
            for name, labels in self._labels.items()
        }

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Domain)
            and list(self._labels.items()) == list(other._labels.items())
            and self._bins == other._bins
        )

    def __hash__(self) -> int:
        return hash(tuple(self._labels.items()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        return "Domain(" + ", ".join(f"{n}: {s}" for n, s in zip(self.names, self.shape, strict=True)) + ")"

    def _repr_html_(self) -> str:
        from policygraph.markup import notebook, table

        rows = []
        for name, size in zip(self.names, self.shape, strict=True):
            first = ", ".join(str(label) for label in self._labels[name][:SHOWN])
            rows.append([name, f"{size:,}", first + (", …" if size > SHOWN else "")])
        return notebook(
            f"Domain: {self.size:,} cells", table(["attribute", "values", "labels"], rows, numbers=[1])
        )


class Network:
    """The cells of a graph: its node pairs, each with room for one edge.

    Parameters
    ----------
    nodes
        How many nodes (named 0, 1, ...), or their names. The node set is public.
    directed
        Whether an edge has a direction.
    loops
        Whether a node may be joined to itself. A loop adds two to an undirected degree.
    multiple
        Whether a pair may carry more than one edge.

    Examples
    --------
    >>> network = Network(4)
    >>> network.size, network.cell(3), network.index((3, 1)), network.capacity
    (6, (1, 2), 4, 1)
    >>> Network(["a", "b"], directed=True).size
    2
    """

    def __init__(
        self,
        nodes: int | Sequence[Label],
        *,
        directed: bool = False,
        loops: bool = False,
        multiple: bool = False,
    ) -> None:
        for name, flag in (("directed", directed), ("loops", loops), ("multiple", multiple)):
            if not isinstance(flag, bool):
                raise InputError(f"{name}={flag!r}: expected true or false.", code="network.flag", value=flag)
        if hasattr(nodes, "is_directed"):
            raise InputError(
                "network.nodes is a graph: expected how many nodes, or their names. Network.from_networkx(graph) takes both "
                "nodes and kind of a graph.",
                code="network.graph",
            )
        self.nodes: Labels = _read_labels("network.nodes", nodes)
        self.directed = directed
        self.loops = loops
        self.multiple = multiple

    @classmethod
    def from_networkx(cls, graph: Any, *, loops: bool = False) -> Network:
        """Network of the nodes and the kind of a networkx graph; its edges are not looked at.

        Parameters
        ----------
        graph
            A Graph, DiGraph, MultiGraph or MultiDiGraph with all nodes, also those without an edge: who is there is public.
        loops
            Whether a node may be joined to itself, in principle.

        Examples
        --------
        >>> import networkx
        >>> Network.from_networkx(networkx.DiGraph([("bob", "ann")])).nodes
        ('ann', 'bob')

        Notes
        -----
        Nodes are sorted, since a graph keeps them in the order in which its edges were read, which would give edges away. Give
        degrees and groups as mappings from nodes, so that the order does not matter.
        """
        nodes = sorted(graph.nodes, key=lambda node: (isinstance(node, str), node if _plain(node) else 0))
        return cls(nodes, directed=graph.is_directed(), loops=loops, multiple=graph.is_multigraph())

    @property
    def capacity(self) -> int | None:
        """Largest count of a cell: 1, or None for networks with multiple edges."""
        return None if self.multiple else 1

    @cached_property
    def order(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    @cached_property
    def size(self) -> int:
        """Number of node pairs that can carry an edge."""
        v = self.order
        if self.directed:
            return v * v if self.loops else v * (v - 1)
        return v * (v + 1) // 2 if self.loops else v * (v - 1) // 2

    @cached_property
    def _positions(self) -> dict[Label, int]:
        return {value: at for at, value in enumerate(self.nodes)}

    def code(self, node: Label) -> int:
        """Position of a node."""
        if isinstance(node, np.generic):
            node = node.item()
        if isinstance(self.nodes, range):
            if isinstance(node, int) and not isinstance(node, bool) and 0 <= node < self.order:
                return int(node)
        elif node in self._positions and type(self.nodes[self._positions[node]]) is type(node):
            return self._positions[node]
        raise InputError(
            f"node {node!r} is not in the network of {self.order} nodes.{self._near(node)}",
            code="network.unknown-node",
            value=node,
        )

    def _near(self, node: Any) -> str:
        """What might have been meant by a name that is none."""
        if isinstance(self.nodes, range):
            meant = isinstance(node, str) and node.isdigit() and int(node) < self.order
            return f" Did you mean {int(node)}?" if meant else f" They are named 0 to {self.order - 1}."
        same = [other for other in self.nodes if str(other) == str(node)]
        texts = [other for other in self.nodes if isinstance(other, str)]
        close = same or get_close_matches(str(node), texts, 1)
        return f" Did you mean {close[0]!r}?" if close else ""

    def pair_index(self, u: Any, v: Any) -> Cells:
        """Index of node pairs given by positions; vectorised."""
        a, b = np.asarray(u, dtype=np.int64), np.asarray(v, dtype=np.int64)
        n = self.order
        if not self.loops and np.any(a == b):
            raise InputError(
                "a loop was given, but the network has no loops.", code="network.loop", value=None
            )
        if self.directed:
            return a * n + b if self.loops else a * (n - 1) + b - (b > a)
        low, high = np.minimum(a, b), np.maximum(a, b)
        at: Cells = self._row_start(low) + high - low - (0 if self.loops else 1)
        return at

    def pairs(self, indices: Any) -> tuple[Cells, Cells]:
        """Positions of the two nodes of cells; vectorised inverse of :meth:`pair_index`."""
        at = np.asarray(indices, dtype=np.int64)
        n = self.order
        if self.directed:
            width = n if self.loops else max(n - 1, 1)
            a, b = at // width, at % width
            return (a, b) if self.loops else (a, b + (b >= a))
        # The row start s(a) is quadratic in a; a float root is off by one at most, and is then corrected.
        side = 2 * n + 1 if self.loops else 2 * n - 1
        root = np.sqrt(np.maximum(side * side - 8.0 * at, 0.0))
        a = np.floor((side - root) / 2).astype(np.int64)
        a = np.clip(a, 0, max(n - 1, 0))
        for _ in range(2):
            a = np.where(self._row_start(a) > at, a - 1, a)
            a = np.where(self._row_start(a + 1) <= at, a + 1, a)
        return a, at - self._row_start(a) + a + (0 if self.loops else 1)

    def _row_start(self, a: Cells) -> Cells:
        n = self.order
        return a * (2 * n - a + 1) // 2 if self.loops else a * (2 * n - a - 1) // 2

    def index(self, cell: Sequence[Label]) -> int:
        """Index of a node pair given by names."""
        if isinstance(cell, (str, bytes)) or len(cell) != 2:
            raise InputError(f"pair {cell!r}: expected two nodes.", code="network.pair", value=cell)
        return int(self.pair_index(self.code(cell[0]), self.code(cell[1])))

    def cell(self, index: int) -> tuple[Label, ...]:
        """Names of the two nodes of a cell."""
        if not 0 <= index < self.size:
            raise InputError(
                f"pair index {index}: expected 0 to {self.size - 1}.", code="network.pair", value=index
            )
        if self.size < 2**52:
            a, b = self.pairs(index)
            return self.nodes[int(a)], self.nodes[int(b)]
        raise InputError(f"a network of {self.order} nodes is too large to name pairs.", code="network.size")

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files and fingerprints."""
        spec: dict[str, Any] = {
            "nodes": self.order if isinstance(self.nodes, range) else list(self.nodes),
            "directed": self.directed,
            "loops": self.loops,
        }
        return spec | ({"multiple": True} if self.multiple else {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self._key() == other._key()

    def _key(self) -> tuple[Any, ...]:
        return self.nodes, self.directed, self.loops, self.multiple

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"Network({self.order} nodes, {kind}{', loops' if self.loops else ''})"
