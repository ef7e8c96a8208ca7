"""Facts that tell all cells apart up to one relation: the only possible change is that relation.

Owns :func:`single_relation` and :func:`longest_relation`; e.g. all (d-1)-way margins of d binary attributes, or both
margins of a 2 x 2 table. May import :mod:`policygraph.effort` and the other ``blowfish_`` modules. Theorem:
``docs/explanation/proofs/blowfish-constraints.md``, section 6 (vi).
"""

from __future__ import annotations

from itertools import permutations
from math import gcd, lcm

from policygraph.effort import Effort
from policygraph.moves.blowfish.minimal import kernel
from policygraph.moves.blowfish.problem import BlowfishMove, BlowfishProblem, Transition, Vector, within
from policygraph.moves.blowfish.records import find_repair
from policygraph.moves.bracket import Bracket

__all__ = ["longest_relation", "single_relation"]

_PAIRINGS = 7


def single_relation(problem: BlowfishProblem) -> Vector | None:
    """Find the primitive integer relation between distinct columns when there is exactly one up to sign.

    Examples
    --------
    >>> from policygraph.moves.blowfish.problem import blowfish_problem
    >>> square = [[i != j for j in range(4)] for i in range(4)]
    >>> single_relation(blowfish_problem([[1, 1, 0, 0], [1, 0, 1, 0]], square))
    (1, -1, -1, 1)
    >>> single_relation(blowfish_problem([[1, 1, 0, 0]], square)) is None
    True
    """
    if len(problem.class_columns) != problem.vertices:
        return None
    basis = kernel([(1, *column) for column in problem.columns])
    if len(basis) != 1:
        return None
    scale = lcm(*(v.denominator for v in basis[0]))
    whole = [int(v * scale) for v in basis[0]]
    shared = gcd(*whole)
    lead = next(v for v in whole if v)
    return tuple(v // shared * (1 if lead > 0 else -1) for v in whole)


def longest_relation(
    problem: BlowfishProblem, relation: Vector, norm: str, cap: int | None, effort: Effort
) -> Bracket[BlowfishMove]:
    """Bracket the sensitivity when the histogram can only change by plus or minus one relation.

    Parameters
    ----------
    problem
        Facts whose columns are all different.
    relation
        Result of :func:`single_relation`.
    norm
        ``"l1"`` or ``"l2"`` (squared).
    cap
        At most so many records are added to the histogram and at most so many removed.
    effort
        Work that the pairings may spend.

    Returns
    -------
    Bracket
        Its upper value is the norm of the relation, or 0 under a cap it does not fit.

    Notes
    -----
    Change t times the relation with t >= 2: the transitions, read as a bipartite multigraph of sources and targets,
    contain the relation itself (a t-th part of a flow can be rounded to a flow), so they are not minimal.
    """
    reason = (
        "The facts leave one relation between cells; a minimal change is that relation or no change at all."
    )
    if not within(relation[: problem.cells], cap):
        return Bracket(0, 0, None, "single relation", reason)
    best: tuple[Transition, ...] | None = None
    for sign in (1, -1):
        old = [v for v, n in enumerate(relation) for _ in range(max(0, -sign * n))]
        new = [v for v, n in enumerate(relation) for _ in range(max(0, sign * n))]
        best = best or _one_pair(problem, old, new) or _pairing(problem, old, new, effort)
    value = problem.value([(x, y) for x, y in zip(*_ends(relation))], norm)
    if best is None:
        return Bracket(value, 0, None, "single relation", reason)
    change = problem.histogram_change(best)
    witness = BlowfishMove(best, tuple((cell, v) for cell, v in enumerate(change) if v))
    return Bracket(value, value, witness, "single relation", reason)


def _ends(relation: Vector) -> tuple[list[int], list[int]]:
    old = [v for v, n in enumerate(relation) for _ in range(max(0, -n))]
    new = [v for v, n in enumerate(relation) for _ in range(max(0, n))]
    return old, new


def _one_pair(problem: BlowfishProblem, old: list[int], new: list[int]) -> tuple[Transition, ...] | None:
    """Match old and new values along non-edges but for one secret pair, by augmenting paths."""
    for i, x in enumerate(old):
        for j, y in enumerate(new):
            if problem.adjacency[x, y]:
                lefts, rights = old[:i] + old[i + 1 :], new[:j] + new[j + 1 :]
                match = _matching(problem, lefts, rights)
                if match is not None:
                    return ((x, y), *((lefts[a], rights[b]) for b, a in match.items()))
    return None


def _matching(problem: BlowfishProblem, lefts: list[int], rights: list[int]) -> dict[int, int] | None:
    """A perfect matching along non-edges, right index to left index; None if there is none."""
    owner: dict[int, int] = {}

    def augment(a: int, tried: set[int]) -> bool:
        for b, y in enumerate(rights):
            if b not in tried and not problem.adjacency[lefts[a], y]:
                tried.add(b)
                if b not in owner or augment(owner[b], tried):
                    owner[b] = a
                    return True
        return False

    return owner if all(augment(a, set()) for a in range(len(lefts))) else None


def _pairing(
    problem: BlowfishProblem, old: list[int], new: list[int], effort: Effort
) -> tuple[Transition, ...] | None:
    """Try all pairings with several secret pairs; every one of them is minimal."""
    if len(old) > _PAIRINGS:
        return None
    for order in permutations(new):
        effort.spend(20)
        if effort.done:
            return None
        moves = list(zip(old, order))
        if any(problem.adjacency[m] for m in moves) and find_repair(problem, moves) is None:
            return tuple(moves)
    return None
