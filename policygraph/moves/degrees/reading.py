"""Which vertices of a move graph are known, as callers write it. Owns the checks that tables and degrees share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError

__all__ = ["Known", "Move", "as_count", "known_mask"]

Known = int | Collection[int] | Collection[bool] | npt.NDArray[Any]
"""Known vertices: how many (then they are the first ones), a boolean array, or their indices."""

Move = list[tuple[int, int, int]]
"""A change as a list of (first end, second end, value), each pair once, no zeros."""

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
