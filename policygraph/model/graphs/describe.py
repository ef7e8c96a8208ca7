"""One sentence on a policy graph for the people who answer for the data. Owns :func:`describe`."""

from __future__ import annotations

from policygraph.model.domain import Domain, Network
from policygraph.model.graphs.composed import BlockGrid, L1Ball, Product
from policygraph.model.graphs.listed import Blocks
from policygraph.model.graphs.rule import Rule
from policygraph.model.graphs.simple import Bit, Complete, Empty, Path

__all__ = ["describe"]


def describe(domain: Domain | Network, rule: Rule, n_bottom: int) -> str:
    """Say in one sentence what may not be told apart."""
    what = "records" if isinstance(domain, Domain) else "node pairs"
    sentence = _pairs(domain, rule, what)
    if n_bottom == 0:
        return sentence[0].upper() + sentence[1:] + "."
    if n_bottom == domain.size:
        whether = "whether a record is there at all"
    else:
        whether = f"for {n_bottom:,} of the {domain.size:,} cells, whether a record is there at all"
        if rule.n_edges:
            return f"{sentence[0].upper() + sentence[1:]}; nor may it be told, {whether}."
    if rule.n_edges == 0:
        return f"It may not be told {whether}."
    return f"{sentence[0].upper() + sentence[1:]}; nor may it be told {whether}."


def _pairs(domain: Domain | Network, rule: Rule, what: str) -> str:
    if rule.n_edges == 0:
        return f"all {what} may be told apart"
    if isinstance(rule, Product) and isinstance(domain, Domain):
        return _product(domain, rule)
    if isinstance(rule, L1Ball):
        return (
            f"two {what} may not be told apart when the positions of their values differ by at most "
            f"{rule.theta} in all, added up over the attributes"
        )
    if isinstance(rule, BlockGrid) and isinstance(domain, Domain):
        named = [n for n, f in zip(domain.names, rule.factors, strict=True) if f.n_edges]
        rest = "; other attributes are the same" if len(named) < len(domain.names) else ""
        return f"two records may not be told apart when their values of {_list(named)} lie in the same blocks{rest}"
    if isinstance(domain, Domain) and len(domain.names) == 1:
        return f"two values of {domain.names[0]} may not be told apart{_when(rule)}"
    if isinstance(rule, Complete):
        return f"no two {what} may be told apart"
    if isinstance(rule, Blocks):
        return f"two {what} may not be told apart when they lie in the same of {rule.n_components:,} blocks"
    return f"{_listed(rule)} of {what} may not be told apart"


def _product(domain: Domain, rule: Product) -> str:
    several = [(n, f) for n, f in zip(domain.names, rule.factors, strict=True) if f.n_edges]
    kinds = {type(f) if not isinstance(f, Path) else ("path", f.theta) for _, f in several}
    if len(several) == 1:
        name, factor = several[0]
        rest = "; other attributes are the same" if len(domain.names) > 1 else ""
        return f"two values of {name} may not be told apart{_when(factor)}{rest}"
    if len(kinds) == 1 and not isinstance(several[0][1], Blocks) and len(several) == len(domain.names):
        return f"two records that differ in one attribute may not be told apart{_when(several[0][1])}"
    parts = [f"{name}{_when(factor) or ' in any way'}" for name, factor in several]
    return "two records that differ in one attribute may not be told apart if it is " + ", or ".join(parts)


def _when(rule: Rule) -> str:
    if isinstance(rule, Path) and rule.theta == 1:
        return " when they are next to each other"
    if isinstance(rule, Path):
        return f" when they differ by at most {rule.theta}"
    if isinstance(rule, Bit):
        return " when they differ in one bit of their number"
    if isinstance(rule, Blocks):
        return f" when they lie in the same of {rule.n_components:,} blocks"
    if isinstance(rule, (Complete, Empty)):
        return ""
    return f" when they are one of {_listed(rule)}"


def _listed(rule: Rule) -> str:
    return f"{rule.n_edges:,} listed pair{'s' if rule.n_edges != 1 else ''}"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
