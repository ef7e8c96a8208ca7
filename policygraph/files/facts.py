"""The public facts of a policy file. Owns ``read_facts``.

Every attribute, label and node is looked up one by one, so that all wrong ones are found and not only the first.
"""

from __future__ import annotations

from typing import Any

from policygraph.errors import InputError
from policygraph.files.problems import Path, Problems, near, shown
from policygraph.model.constraints import Constraint, from_spec
from policygraph.model.constraints.base import AnyDomain
from policygraph.model.domain import Domain, Network

__all__ = ["check_label", "check_name", "check_names", "check_node", "read_facts"]


def read_facts(given: list[Any], domain: AnyDomain, problems: Problems) -> list[Constraint]:
    """Make the constraints of the ``[[public]]`` tables; note what does not fit the domain."""
    out = []
    for at, fact in enumerate(given):
        if problems.under("public", at):
            continue
        path: Path = ("public", at)
        _check(fact, domain, path, problems)
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
    """Note names that are no attributes, and attributes that are named twice."""
    if isinstance(domain, Network):
        problems.add(
            path, "a network has no attributes: its public facts are degrees, edges, total, count and zeros."
        )
        return
    for at, name in enumerate(names):
        if check_name(name, domain, (*path, at), problems) and name in names[:at]:
            problems.add((*path, at), f"{shown(name)} is named twice: expected each attribute once.")


def check_name(name: Any, domain: Domain, path: Path, problems: Problems) -> bool:
    """Note a name that is no attribute."""
    if name in domain.names:
        return True
    shown_names = ", ".join(domain.names[:12]) + (", ..." if len(domain.names) > 12 else "")
    problems.add(
        path, f"{shown(name)} is no attribute: expected one of {shown_names}.{near(name, domain.names)}"
    )
    return False


def check_label(name: str, label: Any, domain: Domain, path: Path, problems: Problems) -> None:
    """Note a label that the attribute does not have; labels that are wrong themselves are no measure."""
    if problems.under("domain", name):
        return
    try:
        domain.code(name, label)
    except InputError as cause:
        labels = domain.labels(name)
        problems.add(path, str(cause) + near(label, labels[:5000]))


def check_node(node: Any, network: Network, path: Path, problems: Problems) -> None:
    """Note a name that is no node."""
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
