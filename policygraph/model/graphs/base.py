"""Policy graphs: which two records must not be told apart. Owns :class:`PolicyGraph`; start reading here.

A policy graph is a domain, a rule on its cells and the cells that are joined to bottom ("no record"). The
answers (edges, distances, ...) are in ``answers``, the kinds of rules in ``rules``, what people write and read in ``forms``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from policygraph.errors import InputError
from policygraph.exact import Exact
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs import drawing, forms
from policygraph.model.graphs.answers import Answers
from policygraph.model.graphs.rules import BOTTOM

if TYPE_CHECKING:
    import networkx

__all__ = ["PolicyGraph", "is_networkx"]


def is_networkx(graph: Any) -> bool:
    """Whether this is a networkx graph; networkx need not be loaded to tell."""
    return callable(getattr(graph, "is_directed", None)) and hasattr(graph, "adj") and hasattr(graph, "nodes")


@dataclass(frozen=True)
class PolicyGraph(Answers):
    """The secret pairs of a policy: pairs of records that must not be told apart.

    Made by one of the class methods below; frozen, hashable, and equal to every other way to write the
    same rule. No method lists a huge graph: what would be too long is refused, and the answers by formula
    (``n_edges``, ``has_edge``, ``distance``, ``component_of``, ``is_tree``, ``difference_sets``) hold for any size.

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"], "age": 7})
    >>> graph = PolicyGraph.threshold(domain, 2, attribute="age")
    >>> graph.describe()
    'Two values of age must not be told apart when they differ by at most 2; other attributes are the same.'
    >>> graph.n_edges, graph.n_components, graph.distance(0, 6), graph.distance(0, 7)
    (22, 2, 3, None)
    >>> PolicyGraph.full(domain).with_bottom().distance(0, BOTTOM)
    1
    """

    @classmethod
    def full(cls, domain: Domain | Network, attribute: str | None = None) -> PolicyGraph:
        """Any two records (bounded differential privacy), or any two values of one sensitive attribute.

        Examples
        --------
        >>> PolicyGraph.full(Domain({"x": 1000, "y": 1000})).n_edges
        499999500000
        """
        return cls(domain, forms.simple_rule(domain, "full", attribute))

    @classmethod
    def attribute(cls, domain: Domain) -> PolicyGraph:
        """Two records that differ in exactly one attribute, in any way."""
        return cls(domain, forms.simple_rule(domain, "attribute"))

    @classmethod
    def bit(cls, domain: Domain, attribute: str | None = None) -> PolicyGraph:
        """Two records that differ in one bit of one attribute, its values numbered 0, 1, ... in binary."""
        return cls(domain, forms.simple_rule(domain, "bit", attribute))

    @classmethod
    def line(cls, domain: Domain, attribute: str | None = None) -> PolicyGraph:
        """Two neighbouring values of an ordered attribute; others do not change."""
        return cls(domain, forms.simple_rule(domain, "line", attribute))

    @classmethod
    def grid(cls, domain: Domain) -> PolicyGraph:
        """One step along one attribute: the product of the lines, in any number of dimensions.

        Examples
        --------
        >>> grid = PolicyGraph.grid(Domain({"x": 3, "y": 3, "z": 3}))
        >>> grid.n_edges, grid.distance(0, 26), grid.is_tree
        (54, 6, False)
        """
        return cls(domain, forms.simple_rule(domain, "grid"))

    @classmethod
    def threshold(
        cls, domain: Domain, theta: Exact, attribute: str | None = None, *, metric: str = "l1"
    ) -> PolicyGraph:
        """Values at most theta apart: of one attribute, or of all of them by L1 or Euclidean distance.

        Parameters
        ----------
        domain
            A table domain; the labels of its attributes are in order.
        theta
            Integer >= 1; for the Euclidean distance any exact number >= 1, such as ``"3/2"``.
        attribute
            The attribute that changes; may be left out when there is only one, and stands for the distance over
            all attributes when there are several.
        metric
            ``"l1"``: differences of positions added up; ``"euclidean"``: the root of the sum of their squares.

        Examples
        --------
        Places on a map that are at most two cells apart, as the crow flies:

        >>> places = Domain({"lat": 100, "lon": 100})
        >>> [PolicyGraph.threshold(places, 2, metric=metric).n_edges for metric in ("l1", "euclidean")]
        [59002, 59002]
        >>> PolicyGraph.threshold(places, "2.5", metric="euclidean").n_edges
        97810
        """
        return cls(domain, forms.threshold_rule(forms.table(domain, "threshold"), theta, attribute, metric))

    @classmethod
    def partition(
        cls, domain: Domain | Network, blocks: Any, attribute: str | None = None, rest: str | None = None
    ) -> PolicyGraph:
        """Everything inside one block; nothing across blocks.

        Parameters
        ----------
        domain
            What the graph is over.
        blocks
            With ``attribute`` (or a single one): lists of its labels, or how many values in a row form a block.
            A mapping from attributes to such blocks: records whose values lie in the same block for every attribute
            named, the others being the same. Otherwise lists of cells (indices or lists of labels), or an array with
            one block number for each cell.
        attribute
            The attribute whose values the blocks hold.
        rest
            ``"singletons"``: a value in no block changes to no other. Otherwise a missing value is an error.

        Examples
        --------
        >>> places = Domain({"lat": 100, "lon": 100})
        >>> PolicyGraph.partition(places, {"lat": 10, "lon": 10}).n_components
        100
        """
        return cls(domain, forms.partition_rule(domain, blocks, attribute, rest))

    @classmethod
    def from_edges(
        cls, domain: Domain | Network, edges: Iterable[Any], attribute: str | None = None
    ) -> PolicyGraph:
        """Listed pairs of cells; one end may be BOTTOM.

        Parameters
        ----------
        domain
            What the graph is over.
        edges
            Pairs of cells, each an index or a list of labels (one attribute: also a label); or an integer array
            of indices with two columns. Order, direction and duplicates do not matter; loops are an error.
        attribute
            Read the ends as labels of this attribute; the others do not change.

        Examples
        --------
        >>> stars = PolicyGraph.from_edges(Domain({"stars": 4}), [(0, 1), (1, 2), (3, BOTTOM)])
        >>> stars.bottom, stars.components().tolist(), stars.is_connected
        ('some', [0, 0, 0, 1], False)
        """
        rule, lone = forms.edge_rule(domain, edges, attribute)
        return cls(domain, rule, lone)

    @classmethod
    def from_networkx(cls, domain: Domain | Network, graph: networkx.Graph[Any]) -> PolicyGraph:
        """Edges of a networkx graph on cell indices, cells (tuples of labels) or labels, and BOTTOM.

        Parameters
        ----------
        domain
            What the graph is over.
        graph
            An undirected graph, or a directed one with every edge in both directions. Parallel edges are one. Secret pairs
            have no weight: a ``weight`` other than 1 is refused, not dropped.

        Raises
        ------
        InputError
            When an edge has one direction only or a weight, or a node is no cell.

        Examples
        --------
        >>> import networkx
        >>> PolicyGraph.from_networkx(Domain({"stars": 4}), networkx.path_graph(4)).n_edges
        3
        """
        edges = list(graph.edges())
        if graph.is_directed() and (
            one_way := next((e for e in edges if not graph.has_edge(*e[::-1])), None)
        ):
            raise InputError(
                f"a directed graph with the edge {one_way!r} and none back: secret pairs have no direction. "
                "Pass graph.to_undirected().",
                code="graph.directed",
            )
        for u, v, weight in graph.edges(data="weight", default=1):
            if isinstance(weight, str) or weight != 1:
                raise InputError(
                    f"edge ({u!r}, {v!r}) has weight {weight!r}: secret pairs have no weights, and every edge is protected "
                    "with the whole privacy loss. Expected weight 1 or none; remove the attribute, or list the pairs at "
                    "distance 1 only.",
                    code="graph.weights",
                    value=weight,
                )
        checked = cls.from_edges(domain, edges)
        # A vertex without an edge adds nothing, but one that is no cell is a slip worth naming.
        for node in graph.nodes:
            if node is not BOTTOM and graph.degree(node) == 0:
                forms.edge_rule(domain, [(node, BOTTOM)])
        return checked

    @classmethod
    def product(cls, domain: Domain, graphs: Mapping[str, Any]) -> PolicyGraph:
        """Exactly one attribute changes, along its own graph; attributes not named do not change.

        Parameters
        ----------
        domain
            A table domain.
        graphs
            For each attribute a policy graph or a networkx graph over the domain of this attribute alone, or its plain form.

        Examples
        --------
        >>> domain = Domain({"sex": ["F", "M"], "age": 7, "salary": 5})
        >>> PolicyGraph.product(domain, {"age": "line", "salary": {"threshold": 2}}).n_edges
        158
        """
        forms.table(domain, "product")
        if not isinstance(graphs, Mapping) or not graphs:
            raise InputError(
                f"product of {graphs!r}: expected a graph for at least one attribute.", code="graph.product"
            )
        rules = {}
        for name, given in graphs.items():
            alone = domain.project([name])
            if isinstance(given, PolicyGraph):
                graph = given
            elif is_networkx(given):
                graph = cls.from_networkx(alone, given)
            else:
                graph = cls(alone, *forms.read(alone, given, values_of=name))
            if graph.domain != alone or graph.bottom != "none":
                raise InputError(
                    f"product: the graph of {name} is over {graph.domain!r}, bottom {graph.bottom!r}; "
                    f"expected {alone!r} and no bottom. Add bottom to the product with with_bottom().",
                    code="graph.product",
                    attribute=name,
                )
            rules[name] = graph.rule
        return cls(domain, forms.per_attribute(domain, rules))

    def with_bottom(self) -> PolicyGraph:
        """Let records also appear and vanish: bottom is joined to every cell.

        Examples
        --------
        >>> star = PolicyGraph.from_edges(Domain({"x": 5}), []).with_bottom()
        >>> star.is_tree, star.distance(0, 4)
        (True, 2)
        """
        return replace(self, bottom_cells=range(self.size))

    def without_bottom(self) -> PolicyGraph:
        """The same graph between cells only."""
        return replace(self, bottom_cells=range(0))

    def describe(self) -> str:
        """One sentence on what must not be told apart."""
        return forms.describe(self.domain, self.rule, self._n_bottom)

    def to_spec(self) -> dict[str, Any]:
        """Plain form for policy files and fingerprints: ``graph`` and ``bottom``.

        Examples
        --------
        >>> domain = Domain({"sex": ["F", "M"], "age": 7})
        >>> PolicyGraph.threshold(domain, 2, "age").with_bottom().to_spec()
        {'graph': {'threshold': 2, 'attribute': 'age'}, 'bottom': True}
        """
        lone = self.bottom_cells if isinstance(self.bottom_cells, tuple) else ()
        return {"graph": forms.write(self.domain, self.rule, lone), "bottom": self.bottom == "all"}

    @classmethod
    def from_spec(cls, domain: Domain | Network, form: Any, bottom: bool = False) -> PolicyGraph:
        """Graph of a plain form: what :meth:`to_spec` gives, or its ``graph`` part alone.

        Examples
        --------
        >>> domain = Domain({"sex": ["F", "M"], "age": 7})
        >>> PolicyGraph.from_spec(domain, "grid") == PolicyGraph.grid(domain)
        True
        """
        if isinstance(form, Mapping) and "graph" in form and set(form) <= {"graph", "bottom"}:
            form, bottom = form["graph"], form.get("bottom", bottom)
        if not isinstance(bottom, bool):
            raise InputError(
                f"bottom = {bottom!r}: expected true or false.", code="graph.bottom", value=bottom
            )
        graph = cls(domain, *forms.read(domain, form))
        return graph.with_bottom() if bottom else graph

    def to_networkx(self, limit: int = 100_000) -> networkx.Graph[Any]:
        """A networkx graph on cell indices (with their labels as ``cell``) and BOTTOM."""
        import networkx

        self._refuse("vertices and edges for networkx", self.size + self.n_edges, limit)
        graph: networkx.Graph[Any] = networkx.Graph()
        graph.add_nodes_from((u, {"cell": self.domain.cell(u)}) for u in range(self.size))
        graph.add_edges_from(self.edges(limit))
        return graph

    def draw(self, target: str | FilePath | Any) -> Any:
        """Draw a small graph into a picture file or into matplotlib axes; return the axes."""
        return drawing.draw(self, target)

    def __repr__(self) -> str:
        return f"PolicyGraph({self.domain!r}, {self.to_spec()['graph']!r}, bottom={self.bottom!r})"
