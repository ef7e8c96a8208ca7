"""From what users write to rules: thresholds, blocks and edges over a domain, checked. Returns rules only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Domain, Network
from policygraph.model.graphs.bottom import Bottom, Vertex
from policygraph.model.graphs.composed import BlockGrid, L1Ball, Product
from policygraph.model.graphs.listed import Blocks, Edges
from policygraph.model.graphs.rule import Cells, Rule
from policygraph.model.graphs.simple import Empty, Path

__all__ = [
    "ambiguous",
    "check_theta",
    "edge_rule",
    "one_attribute",
    "partition_rule",
    "per_attribute",
    "table",
    "threshold_rule",
]

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


def threshold_rule(domain: Domain, theta: object, attribute: str | None) -> Rule:
    """One attribute within theta, or the L1 distance over all of them within theta."""
    reach = check_theta(theta)
    if attribute is None and len(domain.names) > 1:
        if reach == 1:
            return Product(tuple(Path(n) for n in domain.shape))
        return L1Ball(domain.shape, reach)
    name = one_attribute(domain, attribute, "threshold")
    return per_attribute(domain, {name: Path(len(domain.labels(name)), reach)})


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
