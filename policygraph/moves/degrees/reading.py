"""Reading what callers hand to the move graphs: which vertices are known, and sparse integer changes.

Owns the checks shared by :mod:`bipartite` and :mod:`alternating`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError

__all__ = ["Change", "Known", "Move", "Part", "as_count", "known_among", "known_mask", "read_change"]

Known = int | Collection[int] | Collection[bool] | npt.NDArray[Any]
"""Known vertices: how many (then they are the first ones), a boolean array, or their indices."""

Change = tuple[Any, Any, Any]
"""A sparse change: first ends, second ends, integer values; equal pairs are added up."""

Move = list[tuple[int, int, int]]
"""A change as a list of (first end, second end, value), each pair once, no zeros."""

Part = tuple[int, Move]
"""A minimal move and how often it occurs in a decomposition."""

Integers = npt.NDArray[np.int64]


def as_count(value: Any, name: str, least: int = 0) -> int:
    """Read a plain integer that is not below ``least``.

    Examples
    --------
    >>> as_count(np.int64(3), "nodes")
    3
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(
            f"{name}={value!r}: expected an integer >= {least}.", code="moves.count", name=name, value=value
        )
    return int(value)


def _flags_or_indices(known: Known, name: str) -> tuple[npt.NDArray[np.bool_] | None, Integers]:
    """Split the two array spellings of ``known``: flags (first result) or indices (second)."""
    array = np.asarray(known if isinstance(known, (np.ndarray, list, tuple)) else list(cast(Any, known)))
    if array.size == 0 and array.ndim == 1:
        flags = array.astype(np.bool_) if array.dtype == np.bool_ else None
        return flags, np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        raise InputError(
            f"{name}: expected a count, a boolean array or a collection of vertex indices, got an array of "
            f"type {array.dtype} and shape {array.shape}.",
            code="moves.known",
            name=name,
        )
    if array.dtype == np.bool_:
        return array, np.empty(0, dtype=np.int64)
    if array.min() < 0:
        raise InputError(
            f"{name}: vertex {array.min()} is negative; expected indices >= 0.", code="moves.known", name=name
        )
    return None, array.astype(np.int64)


def known_mask(known: Known, size: int, name: str) -> npt.NDArray[np.bool_]:
    """Boolean array of the known ones among ``size`` vertices.

    Examples
    --------
    >>> known_mask(2, 3, "known").tolist(), known_mask({0, 2}, 3, "known").tolist()
    ([True, True, False], [True, False, True])
    """
    mask = np.zeros(size, dtype=np.bool_)
    if isinstance(known, (int, np.integer)):
        count = as_count(known, name)
        if count > size:
            raise InputError(
                f"{name}={count}: expected at most the {size} vertices there are.",
                code="moves.known",
                name=name,
                value=count,
            )
        mask[:count] = True
        return mask
    flags, indices = _flags_or_indices(known, name)
    if flags is not None:
        if len(flags) != size:
            raise InputError(
                f"{name}: {len(flags)} flags for {size} vertices; expected one flag a vertex.",
                code="moves.known",
                name=name,
            )
        return flags.copy()
    if indices.size and indices.max() >= size:
        raise InputError(
            f"{name}: vertex {indices.max()} does not exist; expected indices below {size}.",
            code="moves.known",
            name=name,
        )
    mask[indices] = True
    return mask


def known_among(known: Known, vertices: Integers, name: str) -> npt.NDArray[np.bool_]:
    """Flag each given vertex whose sum is known.

    Examples
    --------
    >>> known_among({5}, np.array([5, 6]), "known").tolist()
    [True, False]
    """
    if isinstance(known, (int, np.integer)):
        return vertices < as_count(known, name)
    flags, indices = _flags_or_indices(known, name)
    if flags is None:
        return np.isin(vertices, indices)
    if vertices.size and vertices.max() >= len(flags):
        raise InputError(
            f"{name}: vertex {vertices.max()} of the change has no flag; there are {len(flags)}.",
            code="moves.known",
            name=name,
        )
    return flags[vertices]


def _column(values: Iterable[Any], name: str) -> Integers:
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            f"change: {name} have type {array.dtype} and shape {array.shape}; expected a flat array of "
            "integers.",
            code="moves.change",
        )
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 1 << 62:
        raise InputError(
            f"change: {name} reach {array.max()}; expected integers below 2**62.", code="moves.change"
        )
    return array.astype(np.int64)


def read_change(change: Change, *, undirected: bool) -> tuple[Integers, Integers, Integers]:
    """Check a sparse change and bring it to one entry a pair, sorted, without zeros.

    Parameters
    ----------
    change
        Three flat integer arrays of one length: first ends, second ends, values.
    undirected
        Whether (u, v) and (v, u) are the same pair, then written with u <= v.

    Returns
    -------
    tuple of arrays
        First ends, second ends, non-zero values.

    Raises
    ------
    InputError
        When lengths or types differ from that, an end is negative, or the sum of absolute values could leave
        64-bit integers.

    Examples
    --------
    >>> [part.tolist() for part in read_change(([1, 0, 1], [0, 1, 2], [1, 1, -1]), undirected=True)]
    [[0, 1], [1, 2], [2, -1]]
    """
    if len(change) != 3:
        raise InputError(
            f"change has {len(change)} parts: expected (first ends, second ends, values).",
            code="moves.change",
        )
    first, second, value = (_column(c, n) for c, n in zip(change, ("first ends", "second ends", "values")))
    if not len(first) == len(second) == len(value):
        raise InputError(
            f"change: {len(first)} first ends, {len(second)} second ends and {len(value)} values; expected "
            "equally many.",
            code="moves.change",
        )
    if not len(first):
        return first, second, value
    if min(first.min(), second.min()) < 0:
        raise InputError("change: a vertex is negative; expected indices >= 0.", code="moves.change")
    if max(int(value.max()), -int(value.min())) * len(value) >= 1 << 62:
        raise InputError(
            "change: values too large to be added up in 64 bits; divide them first.", code="moves.change"
        )
    if undirected:
        first, second = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((second, first))
    first, second, value = first[order], second[order], value[order]
    new = np.ones(len(first), dtype=np.bool_)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    starts = np.flatnonzero(new)
    value = np.add.reduceat(value, starts)
    keep = value != 0
    return first[starts][keep], second[starts][keep], value[keep]
