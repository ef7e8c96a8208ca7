"""What a policy file releases. Owns ``read_releases`` and ``combine``."""

from __future__ import annotations

from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.files.facts import check_name, check_names
from policygraph.files.problems import Path, Problems, near
from policygraph.model import queries
from policygraph.model.constraints.base import AnyDomain
from policygraph.model.domain import Domain, Network
from policygraph.model.queries import CuboidQuery, MatrixQuery, MeasureQuery, Query
from policygraph.model.queries.network_statistics import NetworkStatistic

__all__ = ["combine", "read_releases"]

STACKED = 5_000_000
BESIDE = {
    "statistic": {"largest", "side"},
    "cuboid": {"weight"},
    "cuboids": {"weights"},
    "all_cuboids": {"up_to"},
    "matrix": {"name", "row_names", "unit"},
    "sums": {"measure", "weights"},
    "averages": {"measure", "weights", "balance"},
}


def read_releases(given: list[Any], domain: AnyDomain, problems: Problems) -> list[Query]:
    """Make the queries of the ``[[release]]`` tables; without any, every cell is released."""
    if not given:
        return [queries.identity(domain)]
    out = []
    for at, spec in enumerate(given):
        path: Path = ("release", at)
        if problems.under(*path):
            continue
        kind = next((key for key in _kinds() if key in spec), "all_cuboids")
        for key in spec:
            if key not in (kind, *BESIDE.get(kind, ())):
                problems.add((*path, key), f"{key} does not belong beside {kind}.")
        wants_network = kind in ("adjacency", "mixing", "statistic")
        if wants_network != isinstance(domain, Network) and kind not in ("total", "matrix"):
            here = "a network" if isinstance(domain, Network) else "a table"
            expected = (
                "adjacency, mixing or a statistic"
                if isinstance(domain, Network)
                else "cuboids, ranges or a prefix"
            )
            problems.add((*path, kind), f"{here} has no {kind}: expected {expected}.")
        if problems.under(*path):
            continue
        _check(kind, spec, domain, path, problems)
        if problems.under(*path) or problems.under("domain"):
            continue
        try:
            out.append(_make(kind, spec, domain))
        except InputError as cause:
            problems.add((*path, kind), str(cause))
    return out


def _kinds() -> tuple[str, ...]:
    from policygraph.files.schema import RELEASES

    return RELEASES


def _check(kind: str, spec: dict[str, Any], domain: AnyDomain, path: Path, problems: Problems) -> None:
    if kind == "cuboid":
        check_names(spec["cuboid"], domain, (*path, "cuboid"), problems)
    elif kind == "cuboids":
        for at, names in enumerate(spec["cuboids"]):
            check_names(names, domain, (*path, "cuboids", at), problems)
    elif kind in ("sums", "averages"):
        for at, names in enumerate(spec[kind]):
            check_names(names, domain, (*path, kind, at), problems)
        if "measure" not in spec:
            problems.add(
                (*path, kind),
                f"{kind} need a measure: expected measure = {{column = 'income', low = 0, high = 100000}} beside them.",
            )
    elif kind == "prefix" and isinstance(domain, Domain):
        check_name(spec["prefix"], domain, (*path, "prefix"), problems)
    elif kind == "ranges" and isinstance(domain, Domain) and "attribute" in spec["ranges"]:
        check_name(spec["ranges"]["attribute"], domain, (*path, "ranges", "attribute"), problems)
    elif kind == "mixing" and isinstance(spec["mixing"], dict) and isinstance(domain, Network):
        nodes = {str(node): node for node in domain.nodes}
        for name in spec["mixing"]:
            if name not in nodes:
                problems.add((*path, "mixing", name), f"{name!r} is no node.{near(name, list(nodes))}")
        missing = [node for text, node in nodes.items() if text not in spec["mixing"]]
        if missing:
            problems.add((*path, "mixing"), f"node {missing[0]!r} has no group: expected one for each node.")


def _make(kind: str, spec: dict[str, Any], domain: Any) -> Query:
    if kind == "cuboid":
        return CuboidQuery(domain, [spec["cuboid"]], [spec["weight"]] if "weight" in spec else None)
    if kind == "all_cuboids":
        return queries.all_cuboids(domain, up_to=spec.get("up_to"))
    if kind == "total":
        return queries.total(domain)
    if kind == "ranges":
        return queries.ranges(
            domain, [tuple(p) for p in spec["ranges"]["pairs"]], spec["ranges"].get("attribute")
        )
    if kind == "prefix":
        return queries.prefix(domain, spec["prefix"])
    return queries.from_spec(domain, spec)


def combine(made: list[Query]) -> Query:
    """Make one query of several, so that a file has one sensitivity.

    Sets of cuboids join into one set; other kinds are stacked as the rows of one matrix.

    Examples
    --------
    >>> domain = Domain({"a": 2, "b": 2})
    >>> combine([queries.cuboid(domain, "a"), queries.cuboid(domain, "b")])
    CuboidQuery({a}, {b})
    >>> combine([queries.cuboid(domain, "a"), queries.prefix(domain, "b")]).height
    4
    """
    if len(made) == 1:
        return made[0]
    domain = made[0].domain
    if any(isinstance(query, NetworkStatistic) for query in made):
        raise InputError(
            "a statistic that is not linear in the edges is a release of its own: expected one [[release]] in the file.",
            code="file.combine",
        )
    if any(isinstance(query, MeasureQuery) for query in made):
        raise InputError(
            "sums and averages of a measure are a release of their own: expected one [[release]] in the file.",
            code="file.combine",
        )
    if isinstance(domain, Domain) and all(isinstance(query, CuboidQuery) for query in made):
        sets = [names for query in made for names in query.sets]  # type: ignore[attr-defined]
        weights = [weight for query in made for weight in query.weights]  # type: ignore[attr-defined]
        return CuboidQuery(domain, sets, weights)
    from scipy import sparse

    _listable(domain.size)
    if any(query.unit != made[0].unit for query in made):
        raise InputError(
            "releases with different units cannot be made one: expected one file for each.",
            code="file.combine",
        )
    cells = np.arange(domain.size, dtype=np.int64)
    blocks = [query.columns(cells) for query in made]
    if sum(block.nnz for block in blocks) > STACKED:
        raise _too_many(sum(block.nnz for block in blocks))
    names = []
    for query in made:
        for at, part in enumerate(query.parts):
            labels = query.part_labels(at)
            rows = [", ".join(str(x) for x in row) for row in zip(*labels, strict=True)] if labels else [""]
            names += [f"{part.name}: {row}" if row else part.name for row in rows]
    return MatrixQuery(
        domain, sparse.vstack(blocks, format="csc"), unit=made[0].unit, name="releases", row_names=names
    )


def _listable(cells: int) -> None:
    if cells > STACKED:
        raise _too_many(cells)


def _too_many(entries: int) -> InputError:
    return InputError(
        f"releases of different kinds over {entries:,} entries are too many for one matrix: expected at most {STACKED:,}. "
        "Write cuboids and other releases into files of their own.",
        code="file.combine",
        value=entries,
    )
