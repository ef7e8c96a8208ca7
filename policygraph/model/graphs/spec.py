"""Plain forms of policy graphs, for policy files and fingerprints. Owns reading and writing them.

A form is a word (``"full"``) or a table (``{"threshold": 2, "attribute": "age"}``); the same graph always gets the
same form, whatever order its edges or blocks were given in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs.bottom import BOTTOM
from policygraph.model.graphs.build import (
    ambiguous,
    edge_rule,
    one_attribute,
    partition_rule,
    per_attribute,
    table,
    threshold_rule,
)
from policygraph.model.graphs.composed import BlockGrid, L1Ball, Product
from policygraph.model.graphs.listed import Blocks, Edges
from policygraph.model.graphs.rule import Rule
from policygraph.model.graphs.simple import Bit, Complete, Empty, Path

__all__ = ["read", "simple_rule", "write"]

Form = str | dict[str, Any]
WORDS = ("full", "attribute", "bit", "line", "grid")
TABLES = ("threshold", "partition", "edges", "product", "full", "bit", "line")
EXTRAS = {"partition": {"rest"}, "edges": {"bottom"}}


def simple_rule(domain: Domain | Network, word: str, attribute: str | None = None) -> Rule:
    """Rule of a one-word graph, over all attributes or along one."""
    if word == "full" and attribute is None:
        return Complete(domain.size)
    wide = table(domain, word)
    makers: dict[str, Callable[[int], Rule]] = {
        "full": Complete,
        "attribute": Complete,
        "bit": Bit,
        "line": Path,
        "grid": Path,
    }
    names = list(wide.names)
    if attribute is not None or word == "line":
        names = [one_attribute(wide, attribute, word)]
    return per_attribute(wide, {name: makers[word](len(wide.labels(name))) for name in names})


def read(
    domain: Domain | Network, form: object, *, values_of: str | None = None
) -> tuple[Rule, tuple[int, ...]]:
    """Rule of a plain form, and the cells it joins to bottom.

    Parameters
    ----------
    domain
        What the graph is over.
    form
        A word or a table.
    values_of
        Inside a product: the attribute whose values the edges are between.
    """
    if isinstance(form, str):
        if form in WORDS:
            return simple_rule(domain, form), ()
        note = ' "none" means no policy graph at all: leave the graph out.' if form == "none" else ""
        raise InputError(
            f"graph = {form!r}: expected one of {', '.join(WORDS)}, or a table.{note}",
            code="graph.spec",
            value=form,
        )
    if not isinstance(form, Mapping):
        raise InputError(
            f"graph = {form!r}: expected a word such as full, or a table.", code="graph.spec", value=form
        )
    kinds = [key for key in TABLES if key in form]
    if len(kinds) != 1:
        raise InputError(
            f"graph = {dict(form)!r}: expected exactly one of {', '.join(TABLES)} in the table.",
            code="graph.spec",
            value=form,
        )
    kind = kinds[0]
    allowed = {kind, *({"attribute"} if kind != "product" else ()), *EXTRAS.get(kind, ())}
    unknown = [key for key in form if key not in allowed]
    if unknown:
        raise InputError(
            f"graph: {unknown[0]!r} beside {kind!r} is not known; expected {', '.join(sorted(allowed))}.",
            code="graph.spec",
            value=unknown[0],
        )
    attribute = form.get("attribute")
    if attribute is not None and not isinstance(attribute, str):
        raise InputError(
            f"attribute = {attribute!r}: expected the name of an attribute.",
            code="graph.spec",
            value=attribute,
        )
    if kind == "threshold":
        return threshold_rule(table(domain, kind), form[kind], attribute), ()
    if kind == "partition":
        return partition_rule(domain, form[kind], attribute, form.get("rest")), ()
    if kind == "edges":
        return _read_edges(domain, form, attribute or values_of)
    if kind == "product":
        return _read_product(table(domain, kind), form[kind]), ()
    if form[kind] is not True:
        raise InputError(
            f"graph: {kind} = {form[kind]!r}: expected true, with attribute beside it.",
            code="graph.spec",
            value=form[kind],
        )
    return simple_rule(domain, kind, attribute), ()


def _read_edges(
    domain: Domain | Network, form: Mapping[str, Any], attribute: str | None
) -> tuple[Rule, tuple[int, ...]]:
    edges, lone = form["edges"], form.get("bottom", [])
    if not isinstance(edges, (list, tuple)) or not isinstance(lone, (list, tuple)):
        raise InputError(
            f"edges = {edges!r}: expected a list of pairs (and for bottom a list of cells).",
            code="graph.edges",
            value=edges,
        )
    return edge_rule(domain, [*edges, *((cell, BOTTOM) for cell in lone)], attribute)


def _read_product(domain: Domain, given: object) -> Rule:
    if not isinstance(given, Mapping) or not given:
        raise InputError(
            f"product = {given!r}: expected a graph for at least one attribute.",
            code="graph.spec",
            value=given,
        )
    rules = {}
    for name, form in given.items():
        rule, lone = read(domain.project([name]), form, values_of=name)
        if lone:
            raise InputError(
                f"product: the graph of {name} has edges to bottom; a whole record appears or vanishes, not one value.",
                code="graph.bottom",
                attribute=name,
            )
        rules[name] = rule
    return per_attribute(domain, rules)


def write(domain: Domain | Network, rule: Rule, lone: tuple[int, ...]) -> Form:
    """Plain form of a rule; ``read`` gives the same rule back."""
    if isinstance(rule, Edges):
        return _write_edges(domain, rule, lone)
    if isinstance(rule, L1Ball):
        return {"threshold": rule.theta}
    if isinstance(rule, Product) and isinstance(domain, Domain):
        return _write_product(domain, rule)
    if isinstance(rule, BlockGrid) and isinstance(domain, Domain):
        named = [(name, f) for name, f in zip(domain.names, rule.factors, strict=True) if f.n_edges]
        forms = {name: _write_blocks(f, domain.labels(name), runs=True) for name, f in named}
        return {"partition": {n: blocks for n, (blocks, _) in forms.items()}} | (
            {"rest": "singletons"} if any(rest for _, rest in forms.values()) else {}
        )
    if isinstance(rule, Blocks) and (isinstance(domain, Network) or len(domain.names) > 1):
        blocks, rest = _write_blocks(rule, range(rule.size), runs=False)
        return {"partition": blocks} | ({"rest": "singletons"} if rest else {})
    if isinstance(rule, Complete):
        return "full"
    return _write_factor(table(domain, "to_spec"), domain.names[0], rule)  # type: ignore[union-attr]


def _write_factor(domain: Domain, name: str, rule: Rule) -> Form:
    if isinstance(rule, Complete):
        return "full"
    if isinstance(rule, Bit):
        return "bit"
    if isinstance(rule, Path):
        return "line" if rule.theta == 1 else {"threshold": rule.theta}
    if isinstance(rule, Blocks):
        blocks, rest = _write_blocks(rule, domain.labels(name), runs=True)
        return {"partition": blocks} | ({"rest": "singletons"} if rest else {})
    labels = domain.labels(name)
    if isinstance(rule, (Edges, Empty)):
        if isinstance(rule, Empty):
            return {"edges": []}
        if labels == range(rule.size):
            return {"edges": np.stack([rule.u, rule.v], axis=1).tolist()}
        return {"edges": [[labels[u], labels[v]] for u, v in zip(rule.u.tolist(), rule.v.tolist())]}
    raise InputError(f"{rule!r} has no plain form.", code="graph.spec", value=rule)


def _write_edges(domain: Domain | Network, rule: Edges, lone: tuple[int, ...]) -> Form:
    if isinstance(domain, Domain) and len(domain.names) == 1:
        name = domain.names[0]
        form = _write_factor(domain, name, rule)
        beside = {"attribute": name} if ambiguous(domain) else {}
        below = {"bottom": [domain.labels(name)[u] for u in lone]} if lone else {}
        return {**(form if isinstance(form, dict) else {}), **beside, **below}
    edges = np.stack([rule.u, rule.v], axis=1).tolist()
    return {"edges": edges} | ({"bottom": list(lone)} if lone else {})


def _write_product(domain: Domain, rule: Product) -> Form:
    if all(isinstance(factor, Complete) for factor in rule.factors):
        return "attribute"
    if all(isinstance(factor, Bit) for factor in rule.factors):
        return "bit"
    if all(isinstance(factor, Path) and factor.theta == 1 for factor in rule.factors):
        return "grid"
    pairs = zip(domain.names, rule.factors, strict=True)
    forms = {name: _write_factor(domain, name, f) for name, f in pairs if not isinstance(f, Empty)}
    if not forms:
        return {"edges": []}
    if len(forms) > 1:
        return {"product": forms}
    ((name, form),) = forms.items()
    return {**({form: True} if isinstance(form, str) else form), "attribute": name}


def _write_blocks(rule: Blocks, names: Any, *, runs: bool) -> tuple[int | list[list[Any]], bool]:
    """Blocks as a run length or as lists, and whether blocks of one value were left out."""
    width = int(rule.block_sizes[0]) if rule.size else 1
    if runs and np.array_equal(rule.labels, np.arange(rule.size) // width):
        return width, False
    large = np.flatnonzero(rule.block_sizes > 1).tolist()
    blocks = [[names[at] for at in rule.members(block).tolist()] for block in large]
    return blocks, len(large) < rule.n_components
