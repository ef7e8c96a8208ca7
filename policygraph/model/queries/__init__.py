"""Linear queries on cells; start at ``base``. Users reach this room as ``policygraph.queries``."""

from importlib import import_module
from typing import Any

from policygraph.errors import InputError
from policygraph.model.domain import Domain, Network
from policygraph.model.linked import LinkedTables
from policygraph.model.queries.base import AnyDomain, Norm, Part, Query
from policygraph.model.queries.cuboids import BlockQuery, CuboidQuery, all_cuboids, cuboid, cuboids
from policygraph.model.queries.linked import LinkedQuery, linked
from policygraph.model.queries.matrices import MatrixQuery, matrix, matrix_from_spec, prefix, ranges
from policygraph.model.queries.measures import MeasureQuery, averages, sums
from policygraph.model.queries.network_statistics import (
    Clustering,
    DegreeTail,
    EdgesToGroups,
    JointDegrees,
    ProjectedDegreeTail,
    ProjectedMixing,
    Triangles,
    Wedges,
    projected_edges,
    statistic_from_spec,
)
from policygraph.model.queries.networks import AdjacencyQuery, MixingQuery, adjacency, mixing
from policygraph.model.queries.products import ProductQuery, marginals
from policygraph.model.queries.statistics import ChiSquaredRoot, NonlinearQuery, chi_squared_root
from policygraph.model.queries.workloads import BoxQuery, all_ranges, boxes, random_boxes, rectangles

__all__ = [
    "AdjacencyQuery",
    "BlockQuery",
    "BoxQuery",
    "ChiSquaredRoot",
    "Clustering",
    "CuboidQuery",
    "DegreeTail",
    "EdgesToGroups",
    "JointDegrees",
    "LinkedQuery",
    "MatrixQuery",
    "MeasureQuery",
    "MixingQuery",
    "NonlinearQuery",
    "Norm",
    "Part",
    "ProductQuery",
    "ProjectedDegreeTail",
    "ProjectedMixing",
    "Query",
    "Triangles",
    "Wedges",
    "adjacency",
    "all_cuboids",
    "all_ranges",
    "averages",
    "boxes",
    "chi_squared_root",
    "cuboid",
    "cuboids",
    "from_spec",
    "identity",
    "linked",
    "marginals",
    "matrix",
    "mixing",
    "prefix",
    "projected_edges",
    "random_boxes",
    "ranges",
    "rectangles",
    "sums",
    "total",
]

TOTAL_PAIRS = 5_000_000
"""Most node pairs of a network whose edges are counted by one row."""
READERS = {"strategy": "policygraph.mechanisms.strategy:strategy_from_spec"}
"""Readers of queries over tables that rooms above define, by the key that marks their plain form; loaded when one is met."""


def total(domain: AnyDomain) -> Query:
    """The number of records of a table, or of edges of a network.

    Examples
    --------
    >>> total(Network(3)).answer([1, 0, 1]).tolist()
    [2]
    """
    if not isinstance(domain, Network):
        return CuboidQuery(domain, [()])
    import numpy as np

    if domain.size > TOTAL_PAIRS:
        raise InputError(
            f"the total of {domain!r} would be a row of {domain.size:,} pairs: expected at most {TOTAL_PAIRS:,}. Ask for one group "
            "of all nodes: pg.queries.mixing(network, ['all'] * network.order).",
            code="query.size",
            value=domain.size,
        )
    ones = np.ones((1, domain.size), dtype=np.int64)
    return MatrixQuery(domain, ones, name="total", row_names=["total"])


def identity(domain: AnyDomain) -> Query:
    """Every cell of a table, or every node pair of a network.

    Examples
    --------
    >>> identity(Domain({"a": 2, "b": 3})).height
    6
    """
    return AdjacencyQuery(domain) if isinstance(domain, Network) else CuboidQuery(domain, [domain.names])


def from_spec(domain: AnyDomain, spec: dict[str, Any]) -> Query:
    """Make a query from its plain form (the inverse of ``to_spec``).

    Examples
    --------
    >>> query = cuboid(Domain({"a": 2, "b": 3}), "b")
    >>> from_spec(query.domain, query.to_spec()) == query
    True
    """
    if "cuboids" in spec and isinstance(domain, Domain):
        return CuboidQuery(domain, spec["cuboids"], spec.get("weights"))
    if "linked" in spec and isinstance(domain, Domain):
        asked = [(table, names) for table, names in spec["asked"]]
        made_of_both = LinkedQuery(LinkedTables.from_spec(spec["linked"]), asked, spec.get("weights"))
        made_of_both.check_domain(domain)
        return made_of_both
    if "marginals" in spec and isinstance(domain, Domain):
        return ProductQuery(domain, spec["marginals"], spec.get("asked"), spec.get("weights"))
    if "measure" in spec and isinstance(domain, Domain):
        return MeasureQuery.from_spec(domain, spec)
    if "interactions" in spec and isinstance(domain, Domain):
        return BlockQuery(domain, spec["interactions"], spec.get("weights"))
    if "adjacency" in spec and isinstance(domain, Network):
        return AdjacencyQuery(domain)
    if "mixing" in spec and isinstance(domain, Network):
        return MixingQuery(domain, spec["mixing"])
    if "statistic" in spec and isinstance(domain, Network):
        return statistic_from_spec(domain, spec)
    if spec.get("statistic") == "chi-squared root" and isinstance(domain, Domain):
        return ChiSquaredRoot(domain, spec.get("margins"))
    if "boxes" in spec and isinstance(domain, Domain):
        if spec["boxes"] == "all ranges":
            return all_ranges(domain)
        return boxes(domain, spec["boxes"], name=spec.get("name", "boxes"))
    for key in READERS.keys() & spec.keys() if isinstance(domain, Domain) else ():
        module, _, name = READERS[key].partition(":")
        made: Query = getattr(import_module(module), name)(domain, spec)
        return made
    if "matrix" in spec:
        return matrix_from_spec(domain, spec)
    raise InputError(
        f"query {sorted(spec)}: expected cuboids, boxes or matrix for a table, adjacency, mixing or matrix for a network.",
        code="query.spec",
        value=spec,
    )
