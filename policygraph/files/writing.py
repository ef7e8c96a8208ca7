"""Writing policy files. Owns ``dumps``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from policygraph.errors import InputError
from policygraph.model.policy import Policy
from policygraph.model.queries import Query

__all__ = ["dumps"]


def dumps(
    policy: Policy,
    queries: Query | Iterable[Query] = (),
    *,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    cube: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
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
    import tomli_w

    spec = policy.to_spec()
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
    if listed:
        spec["release"] = [_release(query) for query in listed]
    return tomli_w.dumps(spec)


def _toml(key: str, value: Any) -> Any:
    if value is None:
        return "none"
    if key == "offset" and not isinstance(value, (str, int, float)):
        return str(value)
    return value


def _release(query: Query) -> dict[str, Any]:
    spec = query.to_spec()
    if len(spec.get("cuboids", ())) == 1:
        weights = spec.get("weights")
        return {"cuboid": spec["cuboids"][0]} | ({"weight": weights[0]} if weights else {})
    return spec
