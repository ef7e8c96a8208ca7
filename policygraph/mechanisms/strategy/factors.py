"""Strategies along one axis. Owns :class:`Tree` and :class:`Haar`: integer rows over positions, with their inverse Gram matrix.

No matrix is inverted: the inverse of A^T A is a sum of rank-one pieces, one for each node of a tree, found in one sweep from
the leaves (the argument is ``docs/explanation/proofs/strategies.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

HEAVIEST = 1 << 20
"""Largest weight of a level."""


@dataclass(frozen=True, eq=False)
class Form:
    """One level of an inverse Gram matrix: the sum over blocks v of kappa_v g_v g_v^T, g_v being g on block v and 0 elsewhere.

    Attributes
    ----------
    starts
        First position of each block, and the number of positions.
    block
        Block of each position.
    g
        One number for each position.
    kappa
        One number for each block.
    """

    starts: Ints
    block: Ints
    g: Floats
    kappa: Floats


def depth(n: int, branching: int) -> int:
    """Levels below the root until every piece is one position.

    Examples
    --------
    >>> depth(1, 2), depth(8, 2), depth(9, 2), depth(4095, 16)
    (0, 3, 4, 3)
    """
    levels, reach = 0, 1
    while reach < n and branching > 1:
        levels, reach = levels + 1, reach * branching
    return levels


def _split(starts: Ints, branching: int) -> Ints:
    """Cut every block into pieces that are as even as whole numbers allow."""
    low, high = starts[:-1], starts[1:]
    many = np.minimum(branching, high - low)
    which = np.repeat(np.arange(len(low)), many)
    within = np.arange(len(which)) - np.repeat(np.cumsum(many) - many, many)
    cuts = low[which] + (high - low)[which] * within // many[which]
    return np.append(cuts, starts[-1]).astype(np.int64)


@dataclass(frozen=True)
class Factor:
    """Integer rows over n positions, one weight for each level of a tree.

    Attributes
    ----------
    n
        Number of positions.
    branching
        Into how many pieces a node is cut.
    weights
        Whole number by which the rows of a level are multiplied.
    """

    n: int
    branching: int
    weights: tuple[int, ...]

    kind = "factor"

    def __post_init__(self) -> None:
        wanted = self.levels + 1
        whole = all(isinstance(w, (int, np.integer)) and 0 <= w <= HEAVIEST for w in self.weights)
        if self.n < 1 or self.branching < 2 or len(self.weights) != wanted or not whole or self._singular:
            raise InputError(
                f"{self.kind} over {self.n} positions, branching {self.branching}, weights {list(self.weights)}: expected at "
                f"least 1 position, branching of at least 2, and {wanted} whole weights up to {HEAVIEST:,}, positive where "
                "the cells could not be told otherwise (all of a wavelet, the last of a tree).",
                code="strategy.factor",
            )
        object.__setattr__(self, "weights", tuple(int(w) for w in self.weights))

    @property
    def _singular(self) -> bool:
        raise NotImplementedError

    @property
    def levels(self) -> int:
        """Levels below the root."""
        return depth(self.n, self.branching)

    @cached_property
    def cuts(self) -> tuple[Ints, ...]:
        """Starts of the blocks of each level, the root first."""
        found = [np.array([0, self.n], dtype=np.int64)]
        for _ in range(self.levels):
            found.append(_split(found[-1], self.branching))
        return tuple(found)

    def weighted(self, weights: Sequence[int]) -> Any:
        """The same levels with other weights."""
        return replace(self, weights=tuple(int(w) for w in weights))

    def level_rows(self, level: int) -> Any:
        """Return the rows of one level with weight 1, sparse."""
        raise NotImplementedError

    @cached_property
    def rows(self) -> Any:
        """All rows with their weights, from the first level to the last, as a sparse integer matrix."""
        from scipy import sparse

        kept = [w * self.level_rows(level) for level, w in enumerate(self.weights) if w]
        return sparse.csr_array(sparse.vstack(kept, format="csr"))

    @property
    def height(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The inverse of A^T A, level by level."""
        raise NotImplementedError

    def solve(self, measured: Any) -> Floats:
        """Return A^+ b for each row b of an array."""
        right = np.asarray((self.rows.T @ np.asarray(measured, dtype=np.float64).T).T)
        return self.gram_inverse(right)

    def gram_inverse(self, right: Floats) -> Floats:
        """Return (A^T A)^-1 r for each row r of an array."""
        out = np.zeros_like(right)
        for form in self.forms:
            sums = np.add.reduceat(right * form.g, form.starts[:-1], axis=1) * form.kappa
            out += sums[:, form.block] * form.g
        return out

    def to_spec(self) -> dict[str, Any]:
        """Return the plain form."""
        return {"kind": self.kind, "n": self.n, "branching": self.branching, "weights": list(self.weights)}


class Tree(Factor):
    """Sums over the nodes of a tree whose leaves are the positions; only leaves is the identity.

    The first weight is that of the root, the last that of the leaves. A position that becomes a block of its own early is
    measured once, as a leaf.

    Examples
    --------
    >>> Tree(3, 2, (1, 1, 2)).rows.toarray().tolist()
    [[1, 1, 1], [0, 1, 1], [2, 0, 0], [0, 2, 0], [0, 0, 2]]
    """

    kind = "tree"

    @property
    def _singular(self) -> bool:
        return not self.weights or self.weights[-1] < 1

    @classmethod
    def identity(cls, n: int) -> Tree:
        """Every position by itself."""
        return cls(n, max(n, 2), (0, 1) if n > 1 else (1,))

    @classmethod
    def plain(cls, n: int, branching: int, root: int = 1) -> Tree:
        """All levels with weight 1, the root with one of its own."""
        below = depth(n, branching)
        return cls(n, branching, (root,) * (below > 0) + (1,) * max(below, 1))

    def level_rows(self, level: int) -> Any:
        from scipy import sparse

        if level == self.levels:
            return sparse.identity(self.n, dtype=np.int64, format="csr")
        starts = self.cuts[level]
        wide = np.flatnonzero(np.diff(starts) > 1)
        return interval_rows(starts[wide], starts[wide + 1], self.n)

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        at = np.arange(self.n, dtype=np.int64)
        leaf = float(self.weights[-1]) ** 2
        found = [Form(np.arange(self.n + 1), at, np.ones(self.n), np.full(self.n, 1 / leaf))]
        g = np.full(self.n, 1 / leaf)
        for level in range(self.levels - 1, -1, -1):
            weight = float(self.weights[level]) ** 2
            if not weight:
                continue
            starts = self.cuts[level]
            sizes = np.diff(starts)
            block = np.repeat(np.arange(len(sizes)), sizes)
            own = np.where(sizes > 1, weight, 0.0)
            # Sherman and Morrison: a node adds own * 1 1^T to the Gram matrices of its children.
            shrink = 1 + own * np.add.reduceat(g, starts[:-1])
            found.append(Form(starts, block, g, -own / shrink))
            g = g / shrink[block]
        return tuple(found)


class Haar(Factor):
    """The total, and the difference of the halves of every node of a binary tree: wavelet coefficients.

    The first weight is that of the total, the others are those of the levels from the root down.

    Examples
    --------
    >>> Haar.plain(3).rows.toarray().tolist()
    [[1, 1, 1], [1, -1, -1], [0, 1, -1]]
    """

    kind = "wavelet"

    @property
    def _singular(self) -> bool:
        return self.branching != 2 or any(w < 1 for w in self.weights)

    @classmethod
    def plain(cls, n: int) -> Haar:
        """All weights 1."""
        return cls(n, 2, (1,) * (depth(n, 2) + 1))

    def level_rows(self, level: int) -> Any:
        if level == 0:
            return interval_rows(np.array([0]), np.array([self.n]), self.n)
        starts, below = self.cuts[level - 1], self.cuts[level]
        wide = np.flatnonzero(np.diff(starts) > 1)
        low, high = starts[wide], starts[wide + 1]
        middle = below[np.searchsorted(below, low) + 1]
        rows = interval_rows(low, high, self.n)
        which = np.repeat(np.arange(len(wide)), np.diff(rows.indptr))
        rows.data = np.where(rows.indices < middle[which], 1, -1).astype(np.int64)
        return rows

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        deep = np.zeros(self.n, dtype=np.int64)
        for starts in self.cuts[:-1]:
            sizes = np.diff(starts)
            deep += np.repeat(sizes > 1, sizes)
        whole = np.array([0, self.n], dtype=np.int64)
        first = Form(
            whole, np.zeros(self.n, dtype=np.int64), np.exp2(-1.0 * deep), np.array([self.weights[0] ** -2.0])
        )
        found = [first]
        for level in range(1, self.levels + 1):
            starts, below = self.cuts[level - 1], self.cuts[level]
            sizes = np.diff(starts)
            block = np.repeat(np.arange(len(sizes)), sizes)
            wide = sizes > 1
            middle = np.where(
                wide, below[np.minimum(np.searchsorted(below, starts[:-1]) + 1, len(below) - 1)], starts[1:]
            )
            sign = np.where(np.arange(self.n) < middle[block], 1.0, -1.0)
            # The sum of a half is half of (sum of the node +- its difference), so every level below halves once more.
            g: Floats = np.where(wide[block], sign * np.exp2(level - 1.0 - deep), 0.0)
            found.append(Form(starts, block, g, np.where(wide, self.weights[level] ** -2.0, 0.0)))
        return tuple(found)


def interval_rows(low: Ints, high: Ints, n: int) -> Any:
    """Indicators of ranges [low, high) as a sparse integer matrix."""
    from scipy import sparse

    lengths = high - low
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - low, lengths)
    return sparse.csr_array((np.ones(indptr[-1], dtype=np.int64), columns, indptr), shape=(len(low), n))


def factor_from_spec(spec: dict[str, Any]) -> Factor:
    """Make a factor from its plain form.

    Examples
    --------
    >>> factor_from_spec(Haar.plain(4).to_spec()) == Haar.plain(4)
    True
    """
    kinds: dict[str, type[Factor]] = {"tree": Tree, "wavelet": Haar}
    if spec.get("kind") not in kinds:
        raise InputError(f"factor {spec!r}: expected a tree or a wavelet.", code="strategy.factor")
    return kinds[spec["kind"]](int(spec["n"]), int(spec["branching"]), tuple(spec["weights"]))
