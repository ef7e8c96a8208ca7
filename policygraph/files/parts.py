"""What a policy file says about its domain: public facts and releases. Owns ``read_facts``, ``read_releases`` and ``combine``.

Every attribute, label and node is looked up one by one, so that all wrong ones are found and not only the first.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from policygraph.errors import InputError, PolicyGraphError
from policygraph.files.problems import Path, Problems, near, shown
from policygraph.files.sheets import SheetError, read_published
from policygraph.model import queries
from policygraph.model.constraints import Constraint, from_spec
from policygraph.model.constraints.base import AnyDomain
from policygraph.model.domain import Domain, Network
from policygraph.model.linked import LinkedTables
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import Policy
from policygraph.model.queries import CuboidQuery, MatrixQuery, MeasureQuery, Query
from policygraph.model.queries.products import ProductQuery
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.model.queries.workloads import BoxQuery

STACKED = 5_000_000
OF_STATISTICS = {
    "clustering": ("least", "classes", "cap"),
    "degree tail": ("largest", "side"),
    "joint degrees": ("largest",),
    "triangles": ("cap",),
    "wedges": (),
}
"""What can stand beside a statistic of a network."""
HOW = ("mechanism", "nonnegative")
"""Keys that say how a release is made, not what is released."""
BESIDE = {
    "statistic": {"largest", "side", "least", "classes", "cap", "attributes"},
    "cuboid": {"weight"},
    "cuboids": {"weights"},
    "all_cuboids": {"up_to"},
    "marginals": {"asked", "weights"},
    "boxes": {"name"},
    "matrix": {"name", "row_names", "unit"},
    "sums": {"measure", "weights"},
    "averages": {"measure", "weights", "balance"},
}


def read_facts(
    given: list[Any], domain: AnyDomain, problems: Problems, folder: pathlib.Path
) -> list[Constraint]:
    """Make the constraints of the ``[[public]]`` tables; note what does not fit the domain, or the files in a folder that they name."""
    out = []
    for at, fact in enumerate(given):
        if problems.under("public", at):
            continue
        path: Path = ("public", at)
        _check(fact, domain, path, problems)
        if isinstance(fact.get("equals"), (str, dict)) and not (
            problems.under(*path) or problems.under("domain")
        ):
            fact = _with_published(fact, domain, path, problems, folder)
        if problems.under(*path) or problems.under("domain"):
            continue
        for single in _singles(fact):
            place = path if len(single) == len(fact) else (*path, next(iter(single)))
            try:
                constraint = from_spec(_with_defaults(single))
                constraint.n_rows(domain)
            except InputError as cause:
                problems.add(place, str(cause))
                continue
            try:
                constraint.values(domain)
            except InputError as cause:
                problems.add((*path, "equals"), str(cause))
                continue
            out.append(constraint)
    return out


def _with_published(
    fact: dict[str, Any], domain: AnyDomain, path: Path, problems: Problems, folder: pathlib.Path
) -> dict[str, Any]:
    """A fact with the values that a file has for it."""
    given = {"file": fact["equals"]} if isinstance(fact["equals"], str) else fact["equals"]
    if "cuboid" not in fact or not isinstance(domain, Domain):
        problems.add(
            (*path, "equals"),
            f"{shown(given['file'])}: expected the published values: a whole number or a list of them; a file only beside a cuboid.",
        )
        return fact
    for name in given.get("columns", ()):
        check_name(name, domain, (*path, "equals", "columns", name), problems)
    if problems.under(*path):
        return fact
    try:
        return {**fact, "equals": read_published(given, fact["cuboid"], domain, folder)}
    except SheetError as cause:
        problems.add((*path, "equals"), str(cause))
        return fact


def _singles(fact: dict[str, Any]) -> list[dict[str, Any]]:
    """Several facts in one table are as many facts; published values would not say whose they are."""
    from policygraph.files.schema import FACTS

    kinds = [key for key in fact if key in FACTS]
    return [{key: fact[key]} for key in kinds] if len(kinds) > 1 else [fact]


def _with_defaults(fact: dict[str, Any]) -> dict[str, Any]:
    count = fact.get("count")
    if not isinstance(count, dict) or "terms" not in count:
        return fact
    return {**fact, "count": {"terms": [{"times": 1, **term} for term in count["terms"]]}}


def _check(fact: dict[str, Any], domain: AnyDomain, path: Path, problems: Problems) -> None:
    if "cuboid" in fact:
        check_names(fact["cuboid"], domain, (*path, "cuboid"), problems)
    if "cells" in fact:
        of, values = fact["cells"]["of"], fact["cells"]["values"]
        check_names(of, domain, (*path, "cells", "of"), problems)
        for at, cell in enumerate(values):
            _check_cell(_listed(cell), of, domain, (*path, "cells", "values", at), problems)
    if "count" in fact:
        if "where" in fact["count"]:
            _check_where(fact["count"]["where"], domain, (*path, "count", "where"), problems)
        for at, term in enumerate(fact["count"].get("terms", ())):
            inner = (*path, "count", "terms", at)
            if "where" in term:
                _check_where(term["where"], domain, (*inner, "where"), problems)
            else:
                _check_whole(term["cell"], domain, (*inner, "cell"), problems)
    for at, zero in enumerate(fact.get("zeros", ())):
        if isinstance(zero, dict):
            _check_where(zero, domain, (*path, "zeros", at), problems)
        else:
            _check_whole(_listed(zero), domain, (*path, "zeros", at), problems)
    if "zeros" in fact and "equals" in fact:
        problems.add((*path, "equals"), "structural zeros are 0: expected no published values beside them.")
    if "edges" in fact and "equals" in fact:
        problems.add(
            (*path, "equals"), "public edges are those of the data: expected no published values beside them."
        )
    for key in ("degrees", "in_degrees", "out_degrees"):
        if isinstance(fact.get(key), list) and isinstance(domain, Network):
            for at, node in enumerate(fact[key]):
                check_node(node, domain, (*path, key, at), problems)


def _listed(cell: Any) -> list[Any]:
    """A cell of one attribute may be written as its label."""
    return cell if isinstance(cell, list) else [cell]


def check_names(names: list[str], domain: AnyDomain, path: Path, problems: Problems) -> None:
    """Note names that are not attributes, and attributes that are named twice."""
    if isinstance(domain, Network):
        problems.add(
            path, "a network has no attributes: its public facts are degrees, edges, total, count and zeros."
        )
        return
    for at, name in enumerate(names):
        if check_name(name, domain, (*path, at), problems) and name in names[:at]:
            problems.add((*path, at), f"{shown(name)} is named twice: expected each attribute once.")


def check_name(name: Any, domain: Domain, path: Path, problems: Problems) -> bool:
    """Note a name that is not an attribute."""
    if name in domain.names:
        return True
    shown_names = ", ".join(domain.names[:12]) + (", ..." if len(domain.names) > 12 else "")
    problems.add(
        path, f"{shown(name)} is not an attribute: expected one of {shown_names}.{near(name, domain.names)}"
    )
    return False


def check_label(name: str, label: Any, domain: Domain, path: Path, problems: Problems) -> None:
    """Note a label that the attribute does not have; nothing is compared with labels that are wrong themselves."""
    if problems.under("domain", name):
        return
    try:
        domain.code(name, label)
    except InputError as cause:
        labels = domain.labels(name)
        problems.add(path, str(cause) + near(label, labels[:5000]))


def check_node(node: Any, network: Network, path: Path, problems: Problems) -> None:
    """Note a name that is not a node."""
    try:
        network.code(node)
    except InputError as cause:
        problems.add(path, str(cause))


def _check_where(where: dict[str, Any], domain: AnyDomain, path: Path, problems: Problems) -> None:
    if isinstance(domain, Network):
        problems.add(path, "a network has no attributes: expected pairs of nodes (cell = [0, 1]).")
        return
    for name, labels in where.items():
        if not check_name(name, domain, (*path, name), problems):
            continue
        if not isinstance(labels, list):
            check_label(name, labels, domain, (*path, name), problems)
            continue
        if not labels:
            problems.add((*path, name), "[]: expected at least one label.")
        for at, label in enumerate(labels):
            check_label(name, label, domain, (*path, name, at), problems)


def _check_whole(cell: list[Any], domain: AnyDomain, path: Path, problems: Problems) -> None:
    """A cell with one label for each attribute, or a pair of nodes."""
    if isinstance(domain, Domain):
        _check_cell(cell, list(domain.names), domain, path, problems)
        return
    if len(cell) != 2:
        problems.add(path, f"{shown(cell)}: expected two nodes.")
        return
    for at, node in enumerate(cell):
        check_node(node, domain, (*path, at), problems)


def _check_cell(cell: list[Any], names: list[str], domain: AnyDomain, path: Path, problems: Problems) -> None:
    if isinstance(domain, Network):
        return
    if len(cell) != len(names):
        problems.add(path, f"{shown(cell)}: expected one label for each of {', '.join(names)}.")
        return
    for at, (name, label) in enumerate(zip(names, cell, strict=True)):
        if name in domain.names:
            check_label(name, label, domain, (*path, at), problems)


def read_releases(
    given: list[Any], domain: AnyDomain, problems: Problems, facts: Sequence[Constraint] = ()
) -> list[Query]:
    """Make the queries of the ``[[release]]`` tables; without any, every cell is released. Chi-squared is asked with the margins among the facts."""
    from policygraph.files.schema import RELEASES

    if not given:
        return [queries.identity(domain)]
    out = []
    for at, spec in enumerate(given):
        path: Path = ("release", at)
        if problems.under(*path):
            continue
        kind = next((key for key in RELEASES if key in spec), "all_cuboids")
        if kind == "table":
            problems.add((*path, kind), "expected it where the file has [tables], which a foreign key joins.")
            continue
        for key in spec:
            if key not in (kind, *HOW, *BESIDE.get(kind, ())):
                problems.add((*path, key), f"{key} does not belong beside {kind}.")
        tested = spec.get("statistic") == "chi-squared"
        wants_network = kind in ("adjacency", "mixing", "statistic") and not tested
        if wants_network != isinstance(domain, Network) and kind not in ("total", "matrix"):
            here = "a network" if isinstance(domain, Network) else "a table"
            expected = (
                "adjacency, mixing or a statistic"
                if isinstance(domain, Network)
                else "cuboids, marginals, boxes, ranges, a prefix or statistic = 'chi-squared'"
            )
            problems.add((*path, kind), f"{here} has no {kind}: expected {expected}.")
        if problems.under(*path):
            continue
        _check_release(kind, spec, domain, path, problems)
        if problems.under(*path) or problems.under("domain"):
            continue
        try:
            asked = {key: value for key, value in spec.items() if key not in HOW}
            out.append(_chi_squared(domain, asked, facts) if tested else _make(kind, asked, domain))
        except InputError as cause:
            problems.add((*path, kind), str(cause))
    return out


def _check_release(
    kind: str, spec: dict[str, Any], domain: AnyDomain, path: Path, problems: Problems
) -> None:
    if kind == "cuboid":
        check_names(spec["cuboid"], domain, (*path, "cuboid"), problems)
    elif kind == "cuboids":
        for at, names in enumerate(spec["cuboids"]):
            check_names(names, domain, (*path, "cuboids", at), problems)
    elif kind == "marginals" and isinstance(domain, Domain):
        for at, names in enumerate(spec["marginals"] if isinstance(spec["marginals"], list) else ()):
            check_names(names, domain, (*path, "marginals", at), problems)
        for name in spec.get("asked", ()):
            check_name(name, domain, (*path, "asked", name), problems)
    elif kind == "boxes" and isinstance(domain, Domain):
        for at, box in enumerate(spec["boxes"] if isinstance(spec["boxes"], list) else ()):
            _check_box(box, domain, (*path, "boxes", at), problems)
    elif kind == "statistic" and isinstance(domain, Domain):
        if "attributes" not in spec:
            problems.add(
                (*path, "statistic"),
                "chi-squared is of two attributes: expected attributes = ['sex', 'salary'] beside it.",
            )
        check_names(spec.get("attributes", []), domain, (*path, "attributes"), problems)
        for key in ("largest", "side", "least", "classes", "cap"):
            if key in spec:
                problems.add((*path, key), f"{key} does not belong beside chi-squared.")
    elif kind == "statistic":
        if "attributes" in spec:
            problems.add((*path, "attributes"), "attributes are for chi-squared, which needs a table.")
        for key in ("largest", "side", "least", "classes", "cap"):
            if key in spec and key not in OF_STATISTICS.get(spec["statistic"], (key,)):
                problems.add((*path, key), f"{key} does not belong beside {spec['statistic']}.")
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
                problems.add((*path, "mixing", name), f"{name!r} is not a node.{near(name, list(nodes))}")
        missing = [node for text, node in nodes.items() if text not in spec["mixing"]]
        if missing:
            problems.add((*path, "mixing"), f"node {missing[0]!r} has no group: expected one for each node.")


def _check_box(box: dict[str, Any], domain: Domain, path: Path, problems: Problems) -> None:
    """Note attributes and labels that are not there, and ranges whose last label comes before the first."""
    for name, ends in box.items():
        if not check_name(name, domain, (*path, name), problems):
            continue
        if not isinstance(ends, list):
            check_label(name, ends, domain, (*path, name), problems)
            continue
        before = len(problems.found)
        for at, label in enumerate(ends):
            check_label(name, label, domain, (*path, name, at), problems)
        if len(problems.found) == before and domain.code(name, ends[0]) > domain.code(name, ends[1]):
            problems.add(
                (*path, name),
                f"{shown(ends)}: {shown(ends[1])} comes before {shown(ends[0])} in the domain: expected the first label first.",
            )


def _box_query(spec: dict[str, Any], domain: Domain) -> Query:
    """Counts in boxes that are given by labels; attributes that a box does not name are whole."""
    if spec["boxes"] == "all ranges":
        return queries.from_spec(domain, spec)
    corners = []
    for box in spec["boxes"]:
        low, high = [0] * len(domain.shape), [n - 1 for n in domain.shape]
        for name, ends in box.items():
            first, last = ends if isinstance(ends, list) else (ends, ends)
            low[domain.axis(name)], high[domain.axis(name)] = (
                domain.code(name, first),
                domain.code(name, last),
            )
        corners.append((low, high))
    return queries.boxes(domain, corners, name=spec.get("name", "boxes"))


def box_labels(query: BoxQuery) -> list[dict[str, Any]]:
    """Boxes as a policy file has them: first and last label of each attribute that is not whole.

    Examples
    --------
    >>> domain = Domain({"sex": ["F", "M"], "age": [20, 30, 40]})
    >>> box_labels(queries.boxes(domain, [((0, 1), (1, 2)), ((1, 0), (1, 2))]))
    [{'age': [30, 40]}, {'sex': ['M', 'M']}]
    """
    out = []
    for low, high in zip(query.low.tolist(), query.high.tolist(), strict=True):
        box = {}
        for axis, name in enumerate(query.domain.names):
            labels = query.domain.labels(name)
            if (low[axis], high[axis]) != (0, len(labels) - 1):
                box[name] = [labels[low[axis]], labels[high[axis]]]
        out.append(box)
    return out


def _make(kind: str, spec: dict[str, Any], domain: Any) -> Query:
    if kind == "cuboid":
        return CuboidQuery(domain, [spec["cuboid"]], [spec["weight"]] if "weight" in spec else None)
    if kind == "all_cuboids":
        return queries.all_cuboids(domain, up_to=spec.get("up_to"))
    if kind == "marginals" and isinstance(spec["marginals"], int):
        made = queries.marginals(domain, spec["marginals"])
        spec = {**spec, "marginals": made.sets}  # type: ignore[attr-defined]
    if kind == "boxes":
        return _box_query(spec, domain)
    if kind == "total":
        return queries.total(domain)
    if kind == "ranges":
        return queries.ranges(
            domain, [tuple(p) for p in spec["ranges"]["pairs"]], spec["ranges"].get("attribute")
        )
    if kind == "prefix":
        return queries.prefix(domain, spec["prefix"])
    return queries.from_spec(domain, spec)


def _chi_squared(domain: Any, spec: dict[str, Any], facts: Sequence[Constraint]) -> Query:
    """The root of chi-squared with the margins that the file publishes."""
    return queries.chi_squared_root(Policy(domain, constraints=facts), *spec["attributes"])


def read_mechanism(given: list[Any], has_cube: bool, problems: Problems) -> str | None:
    """The name of the mechanism of the ``[[release]]`` tables, which are released together."""
    named = {at: spec["mechanism"] for at, spec in enumerate(given) if "mechanism" in spec}
    if not named or problems.under("release"):
        return None
    from policygraph.mechanisms.candidates import known_names

    first = next(iter(named.values()))
    known = known_names()
    for at, name in named.items():
        path = ("release", at, "mechanism")
        if name not in known:
            problems.add(
                path,
                f"{shown(name)} is not a known mechanism: expected one of {', '.join(map(repr, known))}.{near(name, known)}",
            )
        elif name != first:
            problems.add(
                path,
                f"{shown(name)}, after {shown(first)}: all [[release]] are released together by one mechanism.",
            )
        elif has_cube and name != "cube":
            problems.add(path, f"{shown(name)} beside [cube]: expected 'cube', or no table [cube].")
    return str(first)


def read_nonnegative(given: list[Any], problems: Problems) -> bool:
    """Whether the ``[[release]]`` tables, which are released together, ask for counts that are not negative."""
    asked = [at for at, spec in enumerate(given) if spec.get("nonnegative")]
    if not asked or problems.under("release"):
        return False
    for at, spec in enumerate(given):
        path = ("release", at, "nonnegative")
        if not spec.get("nonnegative"):
            problems.add(path, "false, after true: all [[release]] are released together.")
        elif "mechanism" in spec:
            problems.add(
                path, "beside a mechanism, which says itself what it publishes: expected one of them."
            )
    return True


def combine(made: list[Query]) -> Query:
    """Make one query of several, so that a file has one sensitivity.

    Sets of cuboids, and of marginals that ask each attribute in one way, join into one set; other kinds are stacked as the rows of one matrix.

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
    if any(isinstance(query, NonlinearQuery) for query in made):
        raise InputError(
            "a statistic that is not linear in the counts is a release of its own: expected one [[release]] in the file.",
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
    if isinstance(domain, Domain) and (joined := _joined(made, domain)) is not None:
        return joined
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


def _joined(made: list[Query], domain: Domain) -> ProductQuery | None:
    """Tables that ask each attribute in one way are one set of tables; None for others."""
    asked: dict[str, Any] = {}
    for query in made:
        if not isinstance(query, (CuboidQuery, ProductQuery)):
            return None
        for name in {name for names in query.sets for name in names}:
            how = query.asked.get(name, "values") if isinstance(query, ProductQuery) else "values"
            if asked.setdefault(name, how) != how:
                return None
    sets = [names for query in made for names in query.sets]  # type: ignore[attr-defined]
    weights = [weight for query in made for weight in query.weights]  # type: ignore[attr-defined]
    return ProductQuery(domain, sets, asked, weights)


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


def read_linked(
    given: Mapping[str, Any], problems: Problems
) -> tuple[LinkedUnit, list[queries.Query], queries.Query, str | None] | None:
    """Make policy and queries of a file whose two tables are joined by a foreign key; None when something is wrong."""
    for key in sorted(given.keys() - {"tables", "release", "data", "folder"}):
        problems.add((key,), "a file with [tables] has only [[release]] and [data] beside: leave it out.")
    data = given.get("data", {})
    if not problems.under("data"):
        for key in sorted(data.keys() & {"duplicates", "loops", "header"}):
            problems.add(("data", key), f"{key} is about edge lists: expected it beside [network] only.")
        if data.get("unknown", "error") not in ("error", "drop"):
            problems.add(("data", "unknown"), "expected error or drop beside [tables].")
    if problems.found:
        return None
    totals = {name: table["total"] for name, table in given["tables"].items() if "total" in table}
    plain = {
        name: {key: value for key, value in table.items() if key != "total"}
        for name, table in given["tables"].items()
    }
    try:
        policy = LinkedUnit(LinkedTables(plain), totals, data.get("unknown", "error"))
    except PolicyGraphError as cause:
        problems.add(("tables",), str(cause))
        return None
    asked, weights = [], []
    for at, spec in enumerate(given.get("release", [])):
        for key in spec.keys() - {"table", "by", "weight", "mechanism"}:
            problems.add(("release", at, key), "expected table, by, weight and mechanism beside [tables].")
        asked.append((spec.get("table", ""), spec.get("by", [])))
        weights.append(spec.get("weight", 1))
    tables = policy.tables
    if not asked:
        asked = [(table, tables.attributes(table)) for table in (tables.parent, tables.child)]
        weights = [1, 1]
    mechanism = read_mechanism(given.get("release", []), False, problems)
    if problems.found:
        return None
    try:
        whole = queries.linked(tables, asked, weights)
        each = [queries.linked(tables, [one], [weight]) for one, weight in zip(asked, weights, strict=True)]
    except PolicyGraphError as cause:
        problems.add(("release",), str(cause))
        return None
    return policy, list(each), whole, mechanism
