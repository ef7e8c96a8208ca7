"""Exact public facts: what everybody knows of the data, as integer rows over the cells; start at ``base``."""

from policygraph.public.constraints.base import AnyDomain, Constraint, Rows, select
from policygraph.public.constraints.counts import LinearCount, StructuralZero, count
from policygraph.public.constraints.degrees import Degrees
from policygraph.public.constraints.margins import Cell, Cells, Cuboid, Total

__all__ = [
    "AnyDomain",
    "Cell",
    "Cells",
    "Constraint",
    "Cuboid",
    "Degrees",
    "LinearCount",
    "Rows",
    "StructuralZero",
    "Total",
    "count",
    "select",
]
