"""Tables in: records are counted into cells inside DuckDB. Owns :func:`read_data`, for data of any kind; go on at ``tables``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from policygraph.curator.counting.edges import read_edges
from policygraph.curator.counting.linked import count_linked
from policygraph.curator.counting.tables import count_cells
from policygraph.curator.counting.units import count_units
from policygraph.curator.histogram import Histogram, MeasuredCounts
from policygraph.errors import InputError
from policygraph.model.domain import Network
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import Policy
from policygraph.model.units import Unit

__all__ = ["count_cells", "is_histogram", "read_data", "read_edges"]


def read_data(
    data: Any,
    policy: Policy,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    engine: Any = None,
) -> Histogram:
    """Count records into the cells of a policy's domain, or take counts as they are."""
    if isinstance(policy, LinkedUnit):
        if edges:
            raise _about_edges(edges)
        return count_linked(data, policy, columns, engine)
    if isinstance(policy, Unit):
        check_records(data, policy)
        if edges:
            raise _about_edges(edges)
        return count_units(data, policy, columns, engine)
    if isinstance(data, Histogram):
        return data
    domain = policy.domain
    if edges and not isinstance(domain, Network):
        raise _about_edges(edges)
    if is_histogram(data, domain):
        return Histogram.from_vector(domain, data)
    if isinstance(domain, Network):
        ends = None if columns is None else [columns.get(end, end) for end in ("from", "to")]
        duplicates, loops = _edge_rules(edges)
        return read_edges(
            data,
            domain,
            columns=ends,
            unknown=policy.unknown,
            duplicates=duplicates,
            loops=loops,
            engine=engine,
        )
    unknown = dict(policy.unknown) if isinstance(policy.unknown, tuple) else policy.unknown
    return count_cells(data, domain, unknown=unknown, columns=columns, engine=engine)


def _about_edges(edges: Any) -> InputError:
    return InputError(
        "edges= is about edge lists: expected none for a table.", code="release.edges", value=edges
    )


def check_records(data: Any, policy: Any) -> None:
    """Refuse counts under a unit: they do not say whose records they are, so that nothing bounds what one unit has in them."""
    if isinstance(policy, Unit) and (
        isinstance(data, (Histogram, MeasuredCounts)) or is_histogram(data, policy.domain)
    ):
        raise InputError(
            f"counts under a policy that hides everything of one {policy.column}: expected records with the column {policy.column!r}, since counts do not say whose they are. Give a file or a "
            "frame. Nothing was charged.",
            code="unit.counts",
        )


def _edge_rules(edges: Mapping[str, str] | None) -> tuple[str, str]:
    given = dict(edges or {})
    if not set(given) <= {"duplicates", "loops"}:
        raise InputError(
            f"edges={given!r}: expected rules such as {{'duplicates': 'merge', 'loops': 'drop'}}.",
            code="release.edges",
            value=edges,
        )
    return given.get("duplicates", "error"), given.get("loops", "error")


def is_histogram(data: Any, domain: Any) -> bool:
    """Whether data are counts: any list of numbers, or any array, but for the square matrix of a network."""
    if isinstance(data, (list, tuple)):
        return all(isinstance(x, (int, float, np.number)) for x in data)
    if not isinstance(data, np.ndarray):
        return False
    return not (isinstance(domain, Network) and data.shape == (domain.order, domain.order))
