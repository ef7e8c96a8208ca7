"""What people write and read of a policy graph: arguments, plain forms and one sentence. Returns rules and words.

A plain form, for policy files and fingerprints, is a word (``"full"``) or a table (``{"threshold": 2, "attribute": "age"}``);
the same graph always gets the same form, whatever order its edges or blocks were given in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor, isqrt
from typing import Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.exact import as_fraction
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs.rules import (
    BOTTOM,
    Bit,
    BlockGrid,
    Blocks,
    Bottom,
    Cells,
    Complete,
    Edges,
    Empty,
    EuclideanBall,
    L1Ball,
    Path,
    Product,
    Rule,
    Vertex,
)

LARGEST = 2**63 - 1
LISTED = 100_000_000


def table(domain: Domain | Network, rule: str) -> Domain:
    """Return the domain if it has attributes; a network has none."""
    if not isinstance(domain, Domain):
        raise InputError(
            f"graph {rule!r} on {domain!r}: this rule speaks of attributes, and a network has none. "
            "Use full, partition with blocks of node pairs, or edges.",
            code="graph.network",
            domain=domain,
        )
    return domain


def one_attribute(domain: Domain, attribute: str | None, rule: str) -> str:
    """Name of the attribute that is meant: the given one, or the only one."""
    if attribute is not None:
        domain.axis(attribute)
        return attribute
    if len(domain.names) > 1:
        raise InputError(
            f"graph {rule!r} on {', '.join(domain.names)}: expected attribute= to say which one is ordered so. "
            "For steps along any of them use grid.",
            code="graph.attribute",
            rule=rule,
        )
    return domain.names[0]


def per_attribute(domain: Domain, rules: Mapping[str, Rule]) -> Rule:
    """One attribute changes along its rule; those not named do not change."""
    factors = tuple(rules.get(name, Empty(n)) for name, n in zip(domain.names, domain.shape, strict=True))
    # A product of one factor is that factor: one graph, one form.
    return factors[0] if len(factors) == 1 else Product(factors)


def check_theta(theta: object) -> int:
    """A threshold that is an integer >= 1."""
    if isinstance(theta, np.integer):
        theta = int(theta)
    if not isinstance(theta, int) or isinstance(theta, bool) or theta < 1:
        note = " A threshold of 0 has no secret pairs." if theta == 0 and not isinstance(theta, bool) else ""
        raise InputError(f"theta={theta!r}: expected an integer >= 1.{note}", code="graph.theta", theta=theta)
    return theta


METRICS = ("l1", "euclidean")


def threshold_rule(domain: Domain, theta: object, attribute: str | None, metric: object = "l1") -> Rule:
    """One attribute within theta, or the L1 or Euclidean distance over all of them within theta."""
    if metric not in METRICS:
        raise InputError(
            f"metric={metric!r}: expected 'l1' or 'euclidean'.", code="graph.metric", value=metric
        )
    if metric == "euclidean":
        return _euclidean_rule(domain, theta, attribute)
    reach = check_theta(theta)
    if attribute is None and len(domain.names) > 1:
        if reach == 1:
            return Product(tuple(Path(n) for n in domain.shape))
        return L1Ball(domain.shape, reach)
    name = one_attribute(domain, attribute, "threshold")
    return per_attribute(domain, {name: Path(len(domain.labels(name)), reach)})


def _euclidean_rule(domain: Domain, theta: object, attribute: str | None) -> Rule:
    try:
        radius = as_fraction(theta, "theta")  # type: ignore[arg-type]
    except InputError:
        radius = Fraction(0)
    if radius < 1:
        raise InputError(
            f"theta={theta!r}: expected a number >= 1, such as 2, 1.5 or '3/2'.",
            code="graph.theta",
            theta=theta,
        )
    square = floor(radius * radius)
    if attribute is None and len(domain.names) > 1:
        if square == 1:
            return Product(tuple(Path(n) for n in domain.shape))
        return EuclideanBall(domain.shape, square)
    name = one_attribute(domain, attribute, "threshold")
    return per_attribute(domain, {name: Path(len(domain.labels(name)), isqrt(square))})


def radius_of(square: int) -> int | str:
    """The shortest decimal number whose square, rounded down, is this: a threshold that gives a Euclidean ball back.

    Examples
    --------
    >>> radius_of(9), radius_of(5), radius_of(2)
    (3, '2.3', '1.5')
    """
    if isqrt(square) ** 2 == square:
        return isqrt(square)
    digits = 1
    while True:
        scale = 10**digits
        made = isqrt(square * scale * scale) + 1
        if made * made < (square + 1) * scale * scale:
            return str(Decimal(made).scaleb(-digits))
        digits += 1


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def ambiguous(domain: Domain | Network) -> bool:
    """Whether a bare number could be a label or an index."""
    if not isinstance(domain, Domain) or len(domain.names) > 1:
        return False
    labels = domain.labels(domain.names[0])
    return not isinstance(labels, range) and any(isinstance(label, (int, float)) for label in labels)


def _cell(domain: Domain | Network, given: Any) -> int:
    """Index of a cell given by index, by labels, or (one attribute) by its label."""
    given = _plain(given)
    if isinstance(given, (tuple, list)):
        return domain.index([_plain(label) for label in given])
    single = isinstance(domain, Domain) and len(domain.names) == 1
    if isinstance(given, int) and not isinstance(given, bool):
        if ambiguous(domain):
            raise InputError(
                f"cell {given}: this could be an index or a label. Write [{given}] for the cell with this label, "
                "give attribute=, or pass an integer array for indices.",
                code="graph.ambiguous",
                value=given,
            )
        if not 0 <= given < domain.size:
            raise InputError(
                f"cell {given}: expected an index from 0 to {domain.size - 1}.",
                code="graph.cell",
                value=given,
            )
        return given
    if single and isinstance(given, (str, float, bool)):
        return domain.code(domain.names[0], given)  # type: ignore[union-attr, call-arg]
    raise InputError(
        f"cell {given!r}: expected a cell index, or a list with one label for each attribute.",
        code="graph.cell",
        value=given,
    )


def _index_array(domain: Domain | Network, given: Any, columns: int) -> Cells:
    """An integer array of cell indices, checked."""
    if given.dtype.kind not in "iu" or given.shape[1:] != ((columns,) if columns > 1 else ()):
        raise InputError(
            f"array of {given.dtype} with shape {given.shape}: expected integers, one row for each edge with its "
            "two cell indices (edges), or one block number for each cell (partition).",
            code="graph.array",
        )
    return np.asarray(given, dtype=np.int64)


def edge_rule(
    domain: Domain | Network, edges: Iterable[Any], attribute: str | None = None
) -> tuple[Rule, tuple[int, ...]]:
    """Listed edges as a rule, and the cells that are joined to bottom."""
    if attribute is not None:
        wide = table(domain, "edges")
        name = one_attribute(wide, attribute, "edges")
        if len(wide.names) > 1:
            narrow, cells = _edges(wide.project([name]), edges, name)
            if cells:
                raise InputError(
                    f"an edge to bottom among the values of {name}: a whole record appears or vanishes. "
                    "List such edges between cells, or use with_bottom().",
                    code="graph.bottom",
                    attribute=name,
                )
            return per_attribute(wide, {name: narrow}), ()
    return _edges(domain, edges, attribute)


def _edges(
    domain: Domain | Network, edges: Iterable[Any], attribute: str | None
) -> tuple[Edges, tuple[int, ...]]:
    if domain.size > LARGEST:
        raise RefusedError(
            f"edges over a domain of {domain.size} cells: cell indices must fit 64 bits. Use a rule instead.",
            code="graph.too-large",
        )
    if isinstance(edges, np.ndarray):
        pairs = _index_array(domain, edges.reshape(0, 2) if edges.size == 0 else edges, 2)
        wrong = np.flatnonzero((pairs < 0).any(axis=1) | (pairs >= domain.size).any(axis=1))
        if wrong.size:
            raise InputError(
                f"edge {pairs[wrong[0]].tolist()}: expected cell indices from 0 to {domain.size - 1}.",
                code="graph.cell",
                value=pairs[wrong[0]].tolist(),
            )
        loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if loops.size:
            raise _loop(pairs[loops[0]].tolist())
        return Edges(domain.size, pairs[:, 0], pairs[:, 1]), ()
    if isinstance(edges, (str, bytes, Mapping)) or not isinstance(edges, Iterable):
        raise InputError(f"edges = {edges!r}: expected a list of pairs.", code="graph.edges", value=edges)
    ends: list[tuple[int, int]] = []
    bottom: set[int] = set()
    for edge in edges:
        if isinstance(edge, (str, bytes)) or not isinstance(edge, Sequence) or len(edge) != 2:
            third = " Secret pairs have no weights." if isinstance(edge, Sequence) and len(edge) == 3 else ""
            raise InputError(
                f"edge {edge!r}: expected a pair of cells.{third}", code="graph.edges", value=edge
            )
        u, v = (_end(domain, end, attribute) for end in edge)
        if u == v:
            raise _loop(edge)
        if isinstance(u, Bottom) or isinstance(v, Bottom):
            bottom.add(v if isinstance(u, Bottom) else u)  # type: ignore[arg-type]
        else:
            ends.append((u, v))
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return Edges(domain.size, pairs[:, 0], pairs[:, 1]), tuple(sorted(bottom))


def _end(domain: Domain | Network, end: Any, attribute: str | None) -> Vertex:
    if isinstance(end, Bottom):
        return end
    if attribute is not None and isinstance(domain, Domain):
        at: int = domain.code(attribute, _plain(end))
        return at
    return _cell(domain, end)


def _loop(edge: object) -> InputError:
    return InputError(
        f"edge {edge!r} joins a cell to itself: expected two different cells. "
        "A record is never told apart from an equal one, so such an edge says nothing; remove it.",
        code="graph.loop",
        value=edge,
    )


def partition_rule(domain: Domain | Network, blocks: Any, attribute: str | None, rest: str | None) -> Rule:
    """Blocks of values of one attribute, of several, or of cells."""
    if rest not in (None, "singletons"):
        raise InputError(
            f'rest={rest!r}: expected "singletons" (values in no block change to no other), or nothing.',
            code="graph.rest",
            value=rest,
        )
    if isinstance(blocks, Mapping):
        if attribute is not None or not blocks:
            raise InputError(
                f"partition = {blocks!r}: expected blocks for at least one attribute, and no attribute= beside them.",
                code="graph.blocks",
                value=blocks,
            )
        wide = table(domain, "partition")
        named = {name: _value_blocks(wide, name, given, rest) for name, given in blocks.items()}
        # One graph, one form: attributes in blocks of one value are as if not named.
        changing = {name: rule for name, rule in named.items() if rule.n_edges} or dict([*named.items()][:1])
        if len(changing) == 1:
            return per_attribute(wide, changing)
        factors = (
            changing[name] if name in changing else Blocks(np.arange(n))
            for name, n in zip(wide.names, wide.shape, strict=True)
        )
        return BlockGrid(tuple(factors))
    if isinstance(domain, Domain) and (attribute is not None or len(domain.names) == 1):
        name = one_attribute(domain, attribute, "partition")
        return per_attribute(domain, {name: _value_blocks(domain, name, blocks, rest)})
    if attribute is not None:
        table(domain, "partition")
    return _read_blocks("cell", domain.size, blocks, rest, lambda cell: _cell(domain, cell), domain.cell)


def _value_blocks(domain: Domain, name: str, blocks: Any, rest: str | None) -> Blocks:
    labels = domain.labels(name)
    if isinstance(blocks, int) and not isinstance(blocks, bool):
        if blocks < 1:
            raise InputError(
                f"partition of {name} = {blocks}: expected a number of values per block >= 1.",
                code="graph.blocks",
                value=blocks,
            )
        return Blocks(np.arange(len(labels)) // blocks)
    return _read_blocks(
        f"value of {name}",
        len(labels),
        blocks,
        rest,
        lambda x: domain.code(name, _plain(x)),
        labels.__getitem__,
    )


def _read_blocks(what: str, n: int, blocks: Any, rest: str | None, code: Any, show: Any) -> Blocks:
    if n > LISTED:
        raise RefusedError(
            f"blocks of {n:,} cells: a list of blocks can cover {LISTED:,}. Give the blocks per attribute.",
            code="graph.too-large",
        )
    if isinstance(blocks, np.ndarray):
        if blocks.shape != (n,):
            raise InputError(
                f"partition array of shape {blocks.shape}: expected one block number for each of {n} values.",
                code="graph.array",
            )
        return Blocks(_index_array(None, blocks, 1))  # type: ignore[arg-type]
    if isinstance(blocks, (str, bytes)) or not isinstance(blocks, Iterable):
        raise InputError(
            f"partition = {blocks!r}: expected a list of blocks, each a list.",
            code="graph.blocks",
            value=blocks,
        )
    owner = np.full(n, -1, dtype=np.int64)
    for number, block in enumerate(blocks):
        if isinstance(block, (str, bytes)) or not isinstance(block, Iterable):
            raise InputError(
                f"block {block!r}: expected a list of the {what.replace('value', 'values')} in it.",
                code="graph.blocks",
                value=block,
            )
        for member in block:
            at = code(member)
            if owner[at] >= 0:
                raise InputError(
                    f"{what} {member!r} is in two blocks or twice in one: expected it once. "
                    "Blocks are disjoint; for overlapping ones list the edges.",
                    code="graph.blocks-overlap",
                    value=member,
                )
            owner[at] = number
    missing = np.flatnonzero(owner < 0)
    if missing.size and rest is None:
        shown = ", ".join(repr(show(int(at))) for at in missing[:5]) + (", ..." if missing.size > 5 else "")
        raise InputError(
            f'{what} {shown} is in no block: expected every one in a block. Add it, or say rest="singletons" '
            "if it changes to no other.",
            code="graph.blocks-missing",
            missing=missing[:100].tolist(),
        )
    owner[missing] = -1 - np.arange(missing.size)
    return Blocks(owner)


Form = str | dict[str, Any]
WORDS = ("full", "attribute", "bit", "line", "grid")
TABLES = ("threshold", "partition", "edges", "product", "full", "bit", "line")
EXTRAS = {"partition": {"rest"}, "edges": {"bottom"}, "threshold": {"metric"}}


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
        return threshold_rule(table(domain, kind), form[kind], attribute, form.get("metric", "l1")), ()
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
    if isinstance(rule, EuclideanBall):
        return {"threshold": radius_of(rule.square), "metric": "euclidean"}
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


def describe(domain: Domain | Network, rule: Rule, n_bottom: int) -> str:
    """Say in one sentence what must not be told apart."""
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
            f"two {what} must not be told apart when the positions of their values differ by at most "
            f"{rule.theta} in all, added up over the attributes"
        )
    if isinstance(rule, EuclideanBall):
        return (
            f"two {what} must not be told apart when the squares of the differences of the positions of their values add up to at most "
            f"{rule.square} (Euclidean distance {radius_of(rule.square)})"
        )
    if isinstance(rule, BlockGrid) and isinstance(domain, Domain):
        named = [n for n, f in zip(domain.names, rule.factors, strict=True) if f.n_edges]
        rest = "; other attributes are the same" if len(named) < len(domain.names) else ""
        return f"two records must not be told apart when their values of {_list(named)} lie in the same blocks{rest}"
    if isinstance(domain, Domain) and len(domain.names) == 1:
        return f"two values of {domain.names[0]} must not be told apart{_when(rule)}"
    if isinstance(rule, Complete):
        return f"no two {what} may be told apart"
    if isinstance(rule, Blocks):
        return f"two {what} must not be told apart when they lie in the same of {rule.n_components:,} blocks"
    return f"{_listed(rule)} of {what} must not be told apart"


def _product(domain: Domain, rule: Product) -> str:
    several = [(n, f) for n, f in zip(domain.names, rule.factors, strict=True) if f.n_edges]
    kinds = {type(f) if not isinstance(f, Path) else ("path", f.theta) for _, f in several}
    if len(several) == 1:
        name, factor = several[0]
        rest = "; other attributes are the same" if len(domain.names) > 1 else ""
        return f"two values of {name} must not be told apart{_when(factor)}{rest}"
    if len(kinds) == 1 and not isinstance(several[0][1], Blocks) and len(several) == len(domain.names):
        return f"two records that differ in one attribute must not be told apart{_when(several[0][1])}"
    parts = [f"{name}{_when(factor) or ' in any way'}" for name, factor in several]
    return "two records that differ in one attribute must not be told apart if it is " + ", or ".join(parts)


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
