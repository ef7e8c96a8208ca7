"""Closed form for partly public margins: some cells of one or two cuboids, the total known or not.

The move graph is bipartite (``docs/explanation/proofs/two-cuboids.md``); attributes that both cuboids share split the table into
independent slices, of which only those with different public cells differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from policygraph.effort import Effort
from policygraph.model.constraints.tables import Cells, Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.policy import Policy
from policygraph.moves.bracket import Bracket, Witness

__all__ = ["partial_margins"]

Codes = tuple[int, ...]


@dataclass
class _Side:
    """Public cells of the margin over some attributes; None: all of them."""

    names: tuple[str, ...]
    known: set[Codes] | None


def _codes(domain: Domain, names: tuple[str, ...], of: tuple[str, ...], cell: tuple[object, ...]) -> Codes:
    given = dict(zip(of, cell, strict=True))
    return tuple(domain.code(name, given[name]) for name in names)  # type: ignore[arg-type]


def _read(policy: Policy) -> tuple[list[_Side], bool] | None:
    domain = policy.domain
    if not isinstance(domain, Domain):
        return None
    total = False
    sides: dict[tuple[str, ...], _Side] = {}
    single = {name for name, size in zip(domain.names, domain.shape, strict=True) if size == 1}
    for fact in policy.system.needed:
        if isinstance(fact, Total) or (isinstance(fact, Cuboid) and not set(fact.names) - single):
            total = True
            continue
        if not isinstance(fact, (Cuboid, Cells)):
            return None
        of = fact.names if isinstance(fact, Cuboid) else fact.of
        names = tuple(sorted(set(of) - single, key=domain.axis))
        if not names:
            total = True
            continue
        side = sides.setdefault(names, _Side(names, set()))
        if isinstance(fact, Cuboid):
            side.known = None
        elif side.known is not None:
            side.known |= {_codes(domain, names, fact.of, cell) for cell in fact.cells}
    for side in sides.values():
        if side.known is not None and len(side.known) == prod(
            domain.shape[domain.axis(n)] for n in side.names
        ):
            side.known = None
    return list(sides.values()), total


def partial_margins(policy: Policy, effort: Effort | None = None) -> Bracket[Witness] | None:
    """Sensitivity of all cells when cells of at most two cuboids are public; None when the facts are others.

    Parameters
    ----------
    policy
        The policy; structural zeros are allowed when the two cuboids cover the table.
    effort
        Work for the longest-cycle search that structural zeros need; None for ten million units.

    Both norms have the same value: minimal moves have entries +1 and -1, so that the square of the l2 norm
    is the l1 norm.
    """
    read = _read(policy)
    domain = policy.domain
    if read is None or not isinstance(domain, Domain):
        return None
    sides, total = read
    if not 1 <= len(sides) <= 2:
        return None
    left = sides[0]
    right = sides[1] if len(sides) == 2 else _Side((), set())
    if not right.names:
        rest = tuple(
            n for n, size in zip(domain.names, domain.shape, strict=True) if n not in left.names and size > 1
        )
        right = _Side(rest, set())
    shared = tuple(name for name in left.names if name in right.names)
    if shared and total and left.known is not None and right.known is not None:
        return None  # one total over slices that are not known separately couples them
    if len(policy.system.zeros):
        covered = set(left.names) | set(right.names)
        spare = [
            n for n, size in zip(domain.names, domain.shape, strict=True) if size > 1 and n not in covered
        ]
        return None if shared or spare else _with_zeros(policy, domain, left, right, total, effort)
    best = 0, {0: 0}
    for fixed, known_left, known_right in _slices(domain, left, right, shared):
        found = _slice(domain, left, right, fixed, known_left, known_right, total)
        if found[0] > best[0]:
            best = found
    length, change = best
    return Bracket(
        length,
        length,
        Witness.of_change(change) if length else None,
        "closed form, partly public margins",
        "a minimal move is a closed walk in the bipartite graph of margin cells that visits each public one at most "
        "once, the others acting as one free vertex a side (docs/explanation/proofs/two-cuboids.md)",
        (f"slices by the shared attributes {', '.join(shared)} are independent",) if shared else (),
    )


def _with_zeros(
    policy: Policy, domain: Domain, left: _Side, right: _Side, total: bool, effort: Effort | None
) -> Bracket[Witness]:
    """Structural zeros delete edges of the bipartite graph: a longest-cycle problem, solved with proof or bracketed."""
    from policygraph.moves.two_way.forbidden import longest_with_forbidden

    codes = domain.codes(policy.system.zeros)

    def place(names: tuple[str, ...]) -> npt.NDArray[np.int64]:
        at = np.zeros(len(policy.system.zeros), dtype=np.int64)
        for name in names:
            at = at * domain.shape[domain.axis(name)] + codes[domain.axis(name)]
        return at

    sizes = [[domain.shape[domain.axis(n)] for n in side.names] for side in (left, right)]
    masks = [_mask(size, side.known) for size, side in zip(sizes, (left, right), strict=True)]
    bracket = longest_with_forbidden(
        len(masks[0]),
        len(masks[1]),
        masks[0],
        masks[1],
        np.stack([place(left.names), place(right.names)], axis=1),
        total_known=total,
        effort=effort,
    )
    change = {}
    for row, column, sign in bracket.witness or ():
        here = dict.fromkeys(domain.names, 0)
        here.update(zip(left.names, _decode(row, sizes[0]), strict=True))
        here.update(zip(right.names, _decode(column, sizes[1]), strict=True))
        change[_encode([here[name] for name in domain.names], domain.shape)] = int(sign)
    return Bracket(
        int(bracket.upper),
        int(bracket.lower),
        Witness.of_change(change) if change else None,
        bracket.method,
        bracket.reason,
    )


def _slices(
    domain: Domain, left: _Side, right: _Side, shared: tuple[str, ...]
) -> Iterator[tuple[Codes, set[Codes] | None, set[Codes] | None]]:
    """Slices with different public cells: those that a public cell names, and one that none names."""
    if not shared:
        yield (), left.known, right.known
        return
    named: dict[Codes, tuple[set[Codes], set[Codes]]] = {}
    for at, side in enumerate((left, right)):
        keep = [side.names.index(name) for name in shared]
        rest = [k for k in range(len(side.names)) if k not in keep]
        for cell in side.known or ():
            pair = named.setdefault(tuple(cell[k] for k in keep), (set(), set()))
            pair[at].add(tuple(cell[k] for k in rest))
    sizes = [domain.shape[domain.axis(name)] for name in shared]
    for key, (one, two) in named.items():
        yield key, None if left.known is None else one, None if right.known is None else two
    if len(named) < prod(sizes):
        yield (
            _unused(sizes, set(named)),
            None if left.known is None else set(),
            None if right.known is None else set(),
        )


def _unused(sizes: list[int], taken: set[Codes]) -> Codes:
    at = 0
    while True:
        codes, rest = [], at
        for size in reversed(sizes):
            rest, code = divmod(rest, size)
            codes.append(code)
        if tuple(reversed(codes)) not in taken:
            return tuple(reversed(codes))
        at += 1


def _slice(
    domain: Domain,
    left: _Side,
    right: _Side,
    fixed: Codes,
    known_left: set[Codes] | None,
    known_right: set[Codes] | None,
    total: bool,
) -> tuple[int, dict[int, int]]:
    from policygraph.moves.two_way.closed_form import longest_bipartite_move

    shared = tuple(name for name in left.names if name in right.names)
    own = [tuple(n for n in side.names if n not in shared) for side in (left, right)]
    sizes = [[domain.shape[domain.axis(n)] for n in names] for names in own]
    masks = [_mask(size, known) for size, known in zip(sizes, (known_left, known_right), strict=True)]
    length, walk = longest_bipartite_move(
        len(masks[0]), len(masks[1]), masks[0], masks[1], total_known=total and not shared
    )
    codes = dict.fromkeys(domain.names, 0) | dict(zip(shared, fixed, strict=True))

    def cell(row: int, column: int, extra: str | None = None) -> int:
        here = dict(codes)
        for names, size, code in ((own[0], sizes[0], row), (own[1], sizes[1], column)):
            here.update(zip(names, _decode(code, size), strict=True))
        if extra is not None:
            here[extra] = 1
        return _encode([here[name] for name in domain.names], domain.shape)

    change = {cell(row, column): int(sign) for row, column, sign in walk}
    spare = [
        name
        for name, size in zip(domain.names, domain.shape, strict=True)
        if size > 1 and name not in left.names and name not in right.names
    ]
    covered = total or masks[0].any() or masks[1].any()
    if spare and covered and length < 2:
        row, column = int(np.argmax(masks[0])), int(np.argmax(masks[1]))
        change = {cell(row, column): -1, cell(row, column, spare[0]): 1}
        length = 2
    return length, change


def _mask(size: list[int], known: set[Codes] | None) -> npt.NDArray[np.bool_]:
    """Which cells of a margin are public."""
    mask = np.full(prod(size), known is None, dtype=bool)
    for codes in known or ():
        mask[_encode(codes, size)] = True
    return mask


def _encode(codes: Codes | list[int], sizes: list[int] | Codes) -> int:
    at = 0
    for code, size in zip(codes, sizes, strict=True):
        at = at * size + code
    return at


def _decode(index: int, sizes: list[int]) -> list[int]:
    out = []
    for size in reversed(sizes):
        index, code = divmod(int(index), size)
        out.append(code)
    return out[::-1]
