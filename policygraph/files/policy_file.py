"""Reading and writing policy files. Owns :class:`PolicyFile`, ``load``, ``loads``, ``dumps`` and ``json_schema``.

First the shape is checked, then everything that needs the domain, part by part, so that one mistake does not hide
the others.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policygraph.documents import read_text
from policygraph.errors import InputError, PolicyGraphError
from policygraph.files.parts import (
    box_labels,
    check_label,
    check_name,
    combine,
    read_facts,
    read_linked,
    read_mechanism,
    read_nonnegative,
    read_releases,
)
from policygraph.files.problems import FileProblem, PolicyFileError, Problems, near, shown
from policygraph.files.sheets import SheetError, read_labels
from policygraph.model.constraints.base import AnyDomain
from policygraph.model.domain import Domain, Network
from policygraph.model.families import Families
from policygraph.model.file_options import OPTIONS
from policygraph.model.grouped import Grouped
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import Policy
from policygraph.model.queries import BoxQuery, ChiSquaredRoot, CuboidQuery, LinkedQuery, Query
from policygraph.model.units import Unit

DATA_NAMES = (".csv", ".tsv", ".txt", ".parquet", ".json", ".xlsx")
"""How names of data files end."""
EDGE_RULES = ("duplicates", "loops")
ENDS = ("from", "to")
DOTTED = re.compile(r"(?m)^[ \t\[]*(?:[^\s=#\"'.\[\]]+[ \t]*\.[ \t]*){100}")


@dataclass(frozen=True)
class PolicyFile:
    """A policy and what is released under it, as a file says.

    Attributes
    ----------
    policy
        The policy.
    releases
        One query for each ``[[release]]``.
    query
        All of them as one query; it is what the file's sensitivity is about.
    columns
        Column of each attribute that has another name in the data, or of the ends ``from`` and ``to`` of an edge list;
        None when there is none.
    edges
        Rules for an edge list (``duplicates``, ``loops``); None when there is none.
    cube
        How several tables are published together, as ``pg.Cube(**file.cube)`` takes it; None when the file does not say.
    reading
        What is declared about data files (``delimiter``, ``quote``, ``encoding``, ``header``, ``hive``), as ``pg.Files(path, **file.reading)`` takes
        it; None when the file does not say.
    mechanism
        What releases it, by its name in comparisons, as ``pg.release(..., mechanism=file.mechanism)`` takes it; None when the file does not say.
    nonnegative
        Whether published counts should not be negative, as ``pg.release(..., nonnegative=file.nonnegative)`` takes it.
    text
        The file as it was read.
    path
        Where it was read from.
    """

    policy: Policy | Grouped
    releases: tuple[Query, ...]
    query: Query
    columns: Mapping[str, str] | None = None
    edges: Mapping[str, str] | None = None
    text: str = field(default="", repr=False)
    path: str | None = None
    cube: Mapping[str, Any] | None = None
    reading: Mapping[str, Any] | None = None
    mechanism: str | None = None
    nonnegative: bool = False


def load(path: str | os.PathLike[str]) -> PolicyFile:
    """Read a policy file.

    Raises
    ------
    PolicyFileError
        With all mistakes of the file.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(
            f"path={path!r}: expected the path of a policy file (TOML).", code="file.missing", value=path
        )
    name = os.fspath(path)
    brief_name = name if len(name) <= 200 else name[:197] + "..."
    try:
        text = read_text(name)
    except FileNotFoundError as cause:
        raise InputError(
            f"{brief_name}: no such file. Give the path of a policy file (TOML).", code="file.missing"
        ) from cause
    except OSError as cause:
        raise InputError(
            f"{brief_name} cannot be read: {cause.strerror}. Give the path of a policy file (TOML).",
            code="file.missing",
        ) from cause
    except ValueError as cause:
        raise PolicyFileError(
            name, [FileProblem("", f"this is not a policy file (TOML): {cause}.")]
        ) from cause
    return _read(text, name)


def loads(text: str) -> PolicyFile:
    r"""Read a policy from TOML text.

    Examples
    --------
    >>> file = loads('[domain]\nage = 3\n[neighbours]\ngraph = "line"\n')
    >>> file.policy.definition, file.query
    ('edges', CuboidQuery({age}))
    """
    return _read(text, None)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of policy files, for editors.

    Examples
    --------
    >>> sorted(json_schema()["properties"])
    ['cube', 'data', 'domain', 'neighbours', 'network', 'public', 'release', 'tables', 'unit']
    """
    from policygraph.files.schema import FileTable

    # In a schema the sections are called by what they are.
    made = re.sub(r'(\w+)Table"', r'\1"', json.dumps(FileTable.model_json_schema()))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **json.loads(made)}


def _read(text: str, path: str | None) -> PolicyFile:
    from policygraph.files.schema import check_shape

    source = path or "the policy"
    given = _parse(text, source)
    problems = Problems(text)
    check_shape(given, problems)
    given = _with_files(given, Path(path).parent if path else Path(), problems)
    if isinstance(given.get("data"), dict):
        given = {**given, "data": _plain_data(given["data"])}
    linked = "tables" in given
    domain = None if linked else _read_domain(given, problems)
    if linked or domain is not None:
        made = _read_linked(given, problems) if domain is None else _read_parts(given, domain, problems)
        if made is not None and not problems.found:
            policy, releases, query, mechanism, nonnegative = made
            data = given.get("data", {})
            edges = {key: data[key] for key in EDGE_RULES if data.get(key, "error") != "error"}
            return PolicyFile(
                policy,
                tuple(releases),
                query,
                data.get("columns"),
                edges or None,
                text=text,
                path=path,
                cube=_cube(given.get("cube")),
                reading={key: data[key] for key in OPTIONS if key in data} or None,
                mechanism=mechanism,
                nonnegative=nonnegative,
            )
    raise PolicyFileError(source, problems.listed())


def _read_linked(
    given: dict[str, Any], problems: Problems
) -> tuple[Policy | Grouped, list[Query], Query, str | None, bool] | None:
    found = read_linked(given, problems)
    return None if found is None else (*found, False)


def _with_files(given: dict[str, Any], folder: Path, problems: Problems) -> dict[str, Any]:
    """What the file says, with the labels of files that it names in their place."""
    domain = given.get("domain")
    if "tables" in given and isinstance(given["tables"], dict):
        return {**given, "folder": folder, "tables": _tables_with_files(given["tables"], folder, problems)}
    if not isinstance(domain, dict):
        return given
    read = dict(domain)
    for name, values in domain.items():
        if isinstance(values, dict) and "labels" in values and not problems.under("domain", name):
            try:
                read[name] = read_labels(values, folder)
            except SheetError as cause:
                problems.add(("domain", name), str(cause))
    return {**given, "domain": read, "folder": folder}


def _tables_with_files(tables: dict[str, Any], folder: Path, problems: Problems) -> dict[str, Any]:
    """Linked tables with the labels of files that they name in their place."""
    out = {}
    for table, given in tables.items():
        own = given.get("attributes") if isinstance(given, dict) else None
        out[table] = given
        if isinstance(own, dict):
            read = dict(own)
            for name, values in own.items():
                path = ("tables", table, "attributes", name)
                if isinstance(values, dict) and "labels" in values and not problems.under(*path):
                    try:
                        read[name] = read_labels(values, folder)
                    except SheetError as cause:
                        problems.add(path, str(cause))
            out[table] = {**given, "attributes": read}
    return out


def _parse(text: str, source: str) -> dict[str, Any]:
    if DOTTED.search(text):
        # The reader takes a time that grows with the square of the number of dots.
        raise PolicyFileError(
            source,
            [FileProblem("", "a key has more than a hundred parts with dots between: expected at most ten.")],
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        raise PolicyFileError(source, [_syntax(str(cause), source)]) from cause
    except RecursionError as cause:
        raise PolicyFileError(
            source,
            [FileProblem("", "lists or tables are nested hundreds of times: expected at most ten levels.")],
        ) from cause
    except ValueError as cause:
        # The only other complaint of the reader: Python reads no integer of more than 4,300 digits.
        raise PolicyFileError(
            source,
            [FileProblem("", f"a number has too many digits to be read ({cause}): write a shorter one.")],
        ) from cause


def _syntax(message: str, source: str) -> FileProblem:
    """What is wrong with the text, and what it may be instead."""
    at = re.search(r"\(at line (\d+), column (\d+)\)", message)
    what = (
        message[: at.start()].strip()
        if at
        else message.replace("(at end of document)", "at the end of the file")
    )
    column = f", column {at.group(2)}" if at else ""
    hint = " A text needs quotes around it." if what == "Invalid value" else ""
    if source.lower().endswith(DATA_NAMES):
        hint = f" It looks like a data file: policygraph init {source} proposes a policy for it."
    return FileProblem("", f"this is not valid TOML{column}: {what}.{hint}", int(at.group(1)) if at else None)


def _cube(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """The arguments of a cube in Python, which says None where TOML has no such value."""
    if given is None:
        return None
    return {key: None if value == "none" else value for key, value in given.items()}


def _plain_data(data: dict[str, Any]) -> dict[str, Any]:
    rule = data.get("unknown")
    if isinstance(rule, dict) and len(rule) == 1 and isinstance(rule.get("other"), dict):
        return {**data, "unknown": rule["other"]}
    return data


def _read_domain(given: dict[str, Any], problems: Problems) -> AnyDomain | None:
    """Make the domain; None when there is no telling what it is.

    An attribute with broken labels stands in it with a single value, so that the rest can be checked.
    """
    if ("domain" in given) == ("network" in given):
        problems.add(
            ("network",) if "domain" in given else (),
            "the file has both [domain] and [network]: expected one of them."
            if "domain" in given
            else "expected a table [domain] with the attributes, or [network] with the nodes.",
        )
        return None
    key = "domain" if "domain" in given else "network"
    body = given[key]
    if key == "domain" and isinstance(body, dict):
        for name, values in body.items():
            if not problems.under(key, name):
                _try(lambda name=name, values=values: Domain({name: values}), (key, name), problems)
        known = {name: 1 if problems.under(key, name) else values for name, values in body.items()}
        return Domain(known) if known else None
    if problems.under(key):
        return None
    network: Network | None = _try(lambda: Network(**body), (key,), problems)
    return network


def _try(make: Any, path: tuple[str | int, ...], problems: Problems) -> Any:
    try:
        return make()
    except PolicyGraphError as cause:
        problems.add(path, str(cause))
        return None


def _read_parts(
    given: dict[str, Any], domain: AnyDomain, problems: Problems
) -> tuple[Policy | Grouped, list[Query], Query, str | None, bool] | None:
    facts_given = given.get("public", [])
    releases_given = given.get("release", [])
    folder = given.get("folder", Path())
    facts = read_facts(facts_given, domain, problems, folder) if isinstance(facts_given, list) else []
    releases = (
        read_releases(releases_given, domain, problems, facts) if isinstance(releases_given, list) else []
    )
    graph = None if problems.under("domain") else _read_graph(given, domain, problems)
    _check_data(given, domain, problems)
    neighbours = given.get("neighbours", {})
    if (
        problems.under("domain")
        or problems.under("public")
        or problems.under("neighbours")
        or problems.under("data")
        or problems.under("unit")
    ):
        return None
    policy: Policy | Grouped
    try:
        policy = Policy(
            domain,
            graph,
            facts,
            neighbours.get("strength", "worst-case"),
            neighbours.get("at_most_records"),
            given.get("data", {}).get("unknown", "error"),
        )
    except PolicyGraphError as cause:
        place = "neighbours" if cause.code.startswith("policy.") else "public"
        inner = {"policy.strength": ("strength",), "policy.cap": ("at_most_records",)}.get(cause.code, ())
        problems.add((place, *inner), str(cause))
        return None
    if "unit" in given:
        try:
            policy = _grouped(policy, given["unit"])
        except PolicyGraphError as cause:
            problems.add(("unit",), str(cause))
            return None
    if problems.under("release"):
        return None
    query = _try(lambda: combine(releases), ("release",), problems)
    if "cube" in given and query is not None and not isinstance(query, CuboidQuery):
        problems.add(("cube",), "a cube is made of tables of counts: expected only cuboids in [[release]].")
    mechanism = read_mechanism(releases_given, "cube" in given, problems)
    nonnegative = read_nonnegative(releases_given, problems)
    return None if query is None else (policy, releases, query, mechanism, nonnegative)


def _grouped(policy: Policy, unit: Mapping[str, Any]) -> Families | Unit:
    if "family" in unit:
        return Families(policy, unit["family"], unit.get("exactly", False))
    return Unit(policy, unit["column"], unit["at_most"], unit.get("per_cell"), unit.get("within"))


def _read_graph(given: dict[str, Any], domain: AnyDomain, problems: Problems) -> Any:
    from policygraph.files.schema import GRAPH_KEYS, GRAPH_WORDS
    from policygraph.model.graphs import PolicyGraph

    neighbours = given.get("neighbours", {})
    if problems.under("neighbours") and not isinstance(neighbours, dict):
        return None
    form, bottom = neighbours.get("graph", "none"), neighbours.get("bottom", False)
    if form == "none":
        # Without a graph records appear and vanish already, as far as the public facts allow: bottom adds nothing.
        return None
    if problems.under("neighbours", "graph"):
        return None
    if isinstance(form, str) and form not in GRAPH_WORDS:
        problems.add(
            ("neighbours", "graph"),
            f"{shown(form)}: expected {', '.join(GRAPH_WORDS)}, or a table such as {{threshold = 2}}.{near(form, GRAPH_WORDS)}",
        )
        return None
    for key in form if isinstance(form, dict) else ():
        if key not in GRAPH_KEYS:
            problems.add(
                ("neighbours", "graph", key),
                f"this key is not known: expected {', '.join(GRAPH_KEYS)}.{near(key, GRAPH_KEYS)}",
            )
    if problems.under("neighbours", "graph"):
        return None
    if isinstance(form, dict) and isinstance(domain, Domain):
        attribute = form.get("attribute")
        if isinstance(attribute, str) and not check_name(
            attribute, domain, ("neighbours", "graph", "attribute"), problems
        ):
            return None
    try:
        return PolicyGraph.from_spec(domain, form, bottom)
    except PolicyGraphError as cause:
        # The rule has another name for it in Python.
        problems.add(("neighbours", "graph"), str(cause).replace("theta=", "threshold = "))
        return None


def _check_data(given: dict[str, Any], domain: AnyDomain, problems: Problems) -> None:
    data = given.get("data", {})
    if not isinstance(data, dict):
        return
    network = isinstance(domain, Network)
    for key in () if network else EDGE_RULES:
        if key in data and not problems.under("data", key):
            problems.add(("data", key), f"{key} is about edge lists: expected it beside [network] only.")
    if "header" in data and not network and not problems.under("data", "header"):
        problems.add(("data", "header"), "header is about edge lists: a table always has names of columns.")
    if data.get("delimiter", ",") == data.get("quote", '"') and not problems.under("data"):
        problems.add(
            ("data", "quote" if "quote" in data else "delimiter"),
            "expected a delimiter other than the quote.",
        )
    for key in ("unknown", "columns"):
        # A broken entry is reported already, and does not keep the others from being looked at.
        for name, value in (data.get(key) or {}).items() if isinstance(data.get(key), dict) else ():
            path = ("data", key, name)
            if problems.under(*path) or not isinstance(value, (str, int, float)):
                continue
            if isinstance(domain, Network):
                _check_end(key, name, path, problems)
            elif check_name(name, domain, path, problems) and key == "unknown":
                check_label(name, value, domain, path, problems)


def _check_end(key: str, name: str, path: tuple[str, ...], problems: Problems) -> None:
    if key == "unknown":
        problems.add(path, "a network has no attributes: expected unknown = 'error' or 'drop'.")
    elif name not in ENDS:
        problems.add(path, f"{shown(name)}: expected the ends of an edge, from and to.{near(name, ENDS)}")


def dumps(
    policy: Policy | Grouped,
    queries: Query | Iterable[Query] = (),
    *,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    cube: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    mechanism: str | None = None,
    nonnegative: bool = False,
) -> str:
    """Write a policy, and what is released under it, as the text of a policy file.

    Parameters
    ----------
    policy
        The policy.
    queries
        One query, or several; each becomes a ``[[release]]``. Without any, a reader of the file releases every cell.
    columns
        Column of an attribute that has another name in the data.
    edges
        Rules for an edge list: ``duplicates``, ``loops``.
    cube
        How several tables are published together: arguments of ``pg.Cube``, a strategy by its name.
    reading
        What is declared about data files: arguments of ``pg.Files``.
    mechanism
        What releases the queries, by its name in comparisons.
    nonnegative
        Whether published counts should not be negative.

    Returns
    -------
    str
        TOML; ``loads`` gives an equal policy and equal queries back.

    Examples
    --------
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.queries import cuboid
    >>> domain = Domain({"sex": ["F", "M"], "age": 7})
    >>> print(dumps(Policy(domain), cuboid(domain, "age")))
    [domain]
    sex = [
        "F",
        "M",
    ]
    age = 7
    <BLANKLINE>
    [[release]]
    cuboid = [
        "age",
    ]
    <BLANKLINE>
    """
    spec = _linked_spec(policy) if isinstance(policy, LinkedUnit) else policy.to_spec()
    listed = [queries] if isinstance(queries, Query) else list(queries)
    for query in listed:
        if query.domain != policy.domain:
            raise InputError(
                f"the query is over {query.domain!r}, the policy over {policy.domain!r}: expected one domain for both.",
                code="query.domain",
            )
    if columns or edges or reading:
        more = {**(edges or {}), **({"columns": dict(columns)} if columns else {}), **(reading or {})}
        spec["data"] = {**spec.get("data", {}), **more}
    if cube is not None:
        spec["cube"] = {
            key: _toml(key, value) for key, value in cube.items() if key == "consistency" or value is not None
        }
    if mechanism is not None and not listed:
        raise InputError(
            f"mechanism={mechanism!r} without a query: expected the queries that it releases.",
            code="file.mechanism",
            value=mechanism,
        )
    if listed:
        named: dict[str, Any] = {} if mechanism is None else {"mechanism": mechanism}
        named |= {"nonnegative": True} if nonnegative else {}
        spec["release"] = [one | named for query in listed for one in _releases(query)]
    return _in_order(spec)


def _linked_spec(policy: LinkedUnit) -> dict[str, Any]:
    """The plain form of linked tables as a policy file has it: the domain follows from the tables."""
    totals = dict(policy.totals)
    tables = {
        name: {**table, **({"total": totals[name]} if name in totals else {})}
        for name, table in policy.tables.to_spec().items()
    }
    return {"tables": tables, **({"data": {"unknown": "drop"}} if policy.unknown == "drop" else {})}


def _in_order(spec: dict[str, Any]) -> str:
    """A policy as TOML, with the attributes in their order, which numbers the cells: a table of its own would come after all plain keys."""
    import tomli_w

    domain = spec.get("domain")
    dicts = isinstance(domain, dict) and any(isinstance(value, dict) for value in domain.values())
    if not dicts and "tables" not in spec:
        return tomli_w.dumps(spec)

    def inline(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{entry(key)} = {inline(inner)}" for key, inner in value.items()) + "}"
        return tomli_w.dumps({"x": value})[4:].strip()

    def entry(key: str) -> str:
        return tomli_w.dumps({key: 0})[: -len(" = 0\n")]

    if "tables" in spec:
        tables = "".join(
            f"[tables.{entry(table)}]\n"
            + "".join(f"{entry(k)} = {inline(v)}\n" for k, v in given.items())
            + "\n"
            for table, given in spec["tables"].items()
        )
        return tables + tomli_w.dumps({key: value for key, value in spec.items() if key != "tables"})
    lines = "".join(f"{entry(name)} = {inline(value)}\n" for name, value in spec["domain"].items())
    return tomli_w.dumps({**spec, "domain": {}}).replace("[domain]\n", f"[domain]\n{lines}", 1)


def _toml(key: str, value: Any) -> Any:
    if value is None:
        return "none"
    if key == "offset" and not isinstance(value, (str, int, float)):
        return str(value)
    return value


def _releases(query: Query) -> list[dict[str, Any]]:
    if not isinstance(query, LinkedQuery):
        return [_release(query)]
    return [
        {"table": table, "by": list(names)} | ({} if weight == 1 else {"weight": weight})
        for (table, names), weight in zip(query.asked, query.weights, strict=True)
    ]


def _release(query: Query) -> dict[str, Any]:
    spec = query.to_spec()
    if len(spec.get("cuboids", ())) == 1:
        weights = spec.get("weights")
        return {"cuboid": spec["cuboids"][0]} | ({"weight": weights[0]} if weights else {})
    if isinstance(query, ChiSquaredRoot):
        return {"statistic": "chi-squared", "attributes": list(query.attributes)}
    if isinstance(query, BoxQuery) and query.kind != "all":
        return {"boxes": box_labels(query), "name": spec["name"]}
    return spec
