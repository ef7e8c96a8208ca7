"""A sharper bound on the length of minimal zero-sum multisets, by listing blocks.

Owns :func:`block_bound`. May import :mod:`policygraph.effort`, :mod:`policygraph.errors` and the modules ``blowfish_problem`` and
``blowfish_minimal``. Theorem: ``docs/explanation/proofs/blowfish-constraints.md``, section 6 (v).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policygraph.effort import Effort
from policygraph.errors import RefusedError
from policygraph.moves.blowfish.minimal import length_bound, minimal_sums
from policygraph.moves.blowfish.problem import Vector

__all__ = ["block_bound"]

_MOST_VECTORS = 32


def block_bound(vectors: Sequence[Vector], effort: Effort) -> tuple[int, str]:
    """Bound the length of every minimal zero-sum multiset, as sharply as the effort allows.

    Parameters
    ----------
    vectors
        Distinct non-zero integer vectors.
    effort
        Work that may be spent; splits of the rows that do not end with it are left out.

    Returns
    -------
    tuple of int and str
        The bound and the name of the argument; never worse than
        :func:`~policygraph.moves.blowfish.minimal.length_bound`.

    Examples
    --------
    Differences of a 2 x 3 table with both margins known: the longest minimal multiset has 8 vectors.

    >>> from policygraph.moves.blowfish.minimal import differences
    >>> cells = [(a, int(b == 0), int(b == 1)) for a in range(2) for b in range(3)]
    >>> length_bound(differences(cells))[0], block_bound(differences(cells), Effort())[0]
    (18, 15)

    Notes
    -----
    Split the rows in two sets. A zero-sum multiset falls apart into blocks that are minimal for the first set of
    rows; the block sums in the other rows form a minimal zero-sum multiset again. So the length is at most the
    largest total of block lengths over the minimal zero-sum multisets of block sums, where a block sum counts with
    its longest block.
    """
    best = length_bound(vectors)
    for rows in _splits(vectors):
        if effort.done:
            break
        try:
            found = _split_bound(vectors, rows, effort.share(3, 10), best[0])
        except RefusedError:
            continue
        if found < best[0]:
            best = found, "blocks"
    return best


def _splits(vectors: Sequence[Vector]) -> Iterator[range]:
    """Runs of rows, those that leave the least to the second listing first."""
    dims = len(vectors[0])
    runs = [range(a, b) for a in range(dims) for b in range(a + 1, dims + 1) if b - a < dims]
    counted = [(len({tuple(v[i] for i in run) for v in vectors}), -run.start, run) for run in runs]
    for size, _, run in sorted(counted, key=lambda item: item[:2], reverse=True):
        if 1 < size <= _MOST_VECTORS:
            yield run


def _split_bound(vectors: Sequence[Vector], rows: range, effort: Effort, useful: int) -> int:
    """The bound for one split; gives up early when it cannot be below ``useful``."""
    others = [i for i in range(len(vectors[0])) if i not in rows]
    fibres: dict[Vector, set[Vector]] = {}
    for v in vectors:
        fibres.setdefault(tuple(v[i] for i in rows), set()).add(tuple(v[i] for i in others))
    longest = dict.fromkeys(fibres.pop((0,) * len(rows), set()), 1)
    steps = sorted(fibres)
    for chosen in minimal_sums(steps, effort=effort):
        sums: set[Vector] = {(0,) * len(others)}
        if effort.done:
            raise RefusedError(f"Not all blocks were listed: {effort.ended_by}.", code="blowfish.deadline")
        for j in chosen:
            effort.spend(1 + len(sums) * len(fibres[steps[j]]))
            sums = {tuple(a + b for a, b in zip(s, f)) for s in sums for f in fibres[steps[j]]}
        for total in sums:
            longest[total] = max(longest.get(total, 0), len(chosen))
    best = longest.pop((0,) * len(others), 0)
    blocks = sorted(longest)
    if len(blocks) > 8 * _MOST_VECTORS:
        return useful
    for chosen in minimal_sums(blocks, effort=effort):
        best = max(best, sum(longest[blocks[j]] for j in chosen))
        if best >= useful:
            return useful
    return best
