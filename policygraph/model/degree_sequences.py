"""Which degree sequences are those of a graph. Owns :func:`graphical` and :func:`digraphical`.

Used where public degrees are checked, and where a graph with given degrees is to be built.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["digraphical", "graphical"]

Ints = npt.NDArray[np.int64]


def _capped_sums(values: Ints) -> Ints:
    """Sum of min(value, k) over all values, for k = 0 to the number of values."""
    n = len(values)
    at_least = np.zeros(n + 1, dtype=np.int64)
    counts = np.bincount(np.minimum(values, n), minlength=n + 1)
    at_least[1:] = counts[::-1].cumsum()[::-1][1:]
    return np.cumsum(at_least)


def _inside(values: Ints) -> Ints:
    """For k = 1 to n, how many of the first k values are at least k."""
    n = len(values)
    steps = np.zeros(n + 2, dtype=np.int64)
    first = np.arange(1, n + 1, dtype=np.int64)
    last = np.minimum(values, n)
    fits = last >= first
    np.add.at(steps, first[fits], 1)
    np.add.at(steps, last[fits] + 1, -1)
    return np.cumsum(steps)[1 : n + 1]


def graphical(degrees: Any) -> bool:
    """Whether a simple undirected graph without loops has these degrees.

    Examples
    --------
    >>> graphical([2, 2, 2]), graphical([3, 1, 1, 1]), graphical([3, 3, 1, 1]), graphical([1])
    (True, True, False, False)

    Notes
    -----
    Erdős and Gallai: even sum, and for each k the k largest degrees are at most k (k - 1) plus the sum of min(d, k) over the
    others. In descending order the first k values that are at least k are a prefix, so all k are checked in linear time.
    """
    d = np.sort(np.asarray(degrees, dtype=np.int64))[::-1]
    n = len(d)
    if n == 0:
        return True
    if int(d[-1]) < 0 or int(d[0]) >= n or int(d.sum()) % 2:
        return False
    k = np.arange(1, n + 1, dtype=np.int64)
    # Over the first k: min(d, k) is d unless d >= k; the sum over the others is the rest of the sum over all.
    first = np.cumsum(np.minimum(d, n))
    prefix_capped = _prefix_capped(d)
    rest = _capped_sums(d)[1:] - prefix_capped
    return bool(np.all(first <= k * (k - 1) + rest))


def _prefix_capped(d: Ints) -> Ints:
    """For k = 1 to n, the sum of min(d, k) over the first k values of a descending sequence."""
    n = len(d)
    k = np.arange(1, n + 1, dtype=np.int64)
    large = np.minimum(np.searchsorted(-d, -k, side="right"), k)
    sums = np.concatenate([[0], np.cumsum(d)])
    out: Ints = large * k + sums[k] - sums[large]
    return out


def digraphical(out: Any, into: Any, *, loops: bool = False) -> bool:
    """Whether a directed graph without multiple edges has these out- and in-degrees.

    Examples
    --------
    >>> digraphical([1, 1], [1, 1]), digraphical([2, 0], [1, 1]), digraphical([2, 0], [1, 1], loops=True)
    (True, False, True)

    Notes
    -----
    With loops the condition is that of Gale and Ryser; without loops that of Fulkerson, Chen and Anstee, for which the
    nodes are put in descending lexicographic order of (out, in).
    """
    a, b = np.asarray(out, dtype=np.int64), np.asarray(into, dtype=np.int64)
    n = len(a)
    if len(b) != n or int(a.sum()) != int(b.sum()):
        return False
    if n == 0:
        return True
    most = n if loops else n - 1
    if int(min(a.min(), b.min())) < 0 or int(max(a.max(), b.max())) > most:
        return False
    order = np.lexsort((-b, -a))
    a, b = a[order], b[order]
    room = _capped_sums(b)[1:]
    if not loops:
        room = room - _inside(b)
    return bool(np.all(np.cumsum(a) <= room))
