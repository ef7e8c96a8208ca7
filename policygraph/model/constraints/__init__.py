"""Exact public facts: what everybody knows of the data, as integer rows over the cells; start at ``base``."""

from typing import Any

from policygraph.errors import InputError
from policygraph.model.constraints.base import AnyDomain, Constraint, Rows, select
from policygraph.model.constraints.networks import Degrees, KnownEdges
from policygraph.model.constraints.sums import Sums
from policygraph.model.constraints.tables import (
    Cell,
    Cells,
    Cuboid,
    LinearCount,
    StructuralZero,
    Total,
    count,
)

__all__ = [
    "AnyDomain",
    "Cell",
    "Cells",
    "Constraint",
    "Cuboid",
    "Degrees",
    "KnownEdges",
    "LinearCount",
    "Rows",
    "StructuralZero",
    "Sums",
    "Total",
    "count",
    "from_spec",
    "select",
]


def from_spec(spec: dict[str, Any]) -> Constraint:
    """Make a public fact from its plain form (the inverse of ``to_spec``).

    Examples
    --------
    >>> fact = Cells(["a"], [[0]], equals=[3])
    >>> from_spec(fact.to_spec()) == fact
    True
    """
    equals = spec.get("equals")
    if "total" in spec:
        return Total(equals)
    if "cuboid" in spec:
        return Cuboid(*spec["cuboid"], equals=equals)
    if "cells" in spec:
        return Cells(spec["cells"]["of"], spec["cells"]["values"], equals=equals)
    if "count" in spec:
        if "where" in spec["count"]:
            return count(spec["count"]["where"], equals=equals)
        terms = [
            (term["where"] if "where" in term else term["cell"], term["times"])
            for term in spec["count"]["terms"]
        ]
        return LinearCount(terms, equals=equals)
    if "sums" in spec:
        return Sums.from_spec(spec["sums"], equals)
    if "zeros" in spec:
        return StructuralZero(spec["zeros"])
    if "edges" in spec:
        return KnownEdges(**spec["edges"])
    for key, side in (("degrees", "both"), ("in_degrees", "in"), ("out_degrees", "out")):
        if key in spec:
            return Degrees(spec[key], side=side, equals=equals)
    raise InputError(
        f"public fact {sorted(spec)}: expected total, cuboid, cells, count, sums, zeros, degrees or edges.",
        code="constraint.spec",
        value=spec,
    )
