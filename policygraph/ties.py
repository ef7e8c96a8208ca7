"""Comparing floats so that their last digits decide nothing. Owns :func:`least`, :func:`order` and their kin.

Linear algebra in floats gives other last digits on other processors and with other numbers of threads. What is chosen by such
figures must not hang on them: values that agree to nine digits count as equal, and of equals the first in a fixed order is taken.
Only accuracy rests on these choices; noise is scaled to exact certificates of whatever was chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import floor, isfinite, log10
from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["SAME", "clearly_less", "digits", "figures", "least", "order", "ranked", "settled"]

SAME = 1e-9
"""Positive figures whose ratio is nearer to 1 than this are one figure: far above what rounding does, far below what matters."""
GRID = 1 << 20
"""Logarithms are settled to multiples of one over this."""

Item = TypeVar("Item")
Floats = npt.NDArray[np.float64]


def clearly_less(one: float, other: float) -> bool:
    """Whether a positive figure is smaller by more than rounding.

    Examples
    --------
    >>> clearly_less(1.0, 1.1), clearly_less(1.0, 1.0 + 1e-12)
    (True, False)
    """
    return one < other * (1 - SAME)


def order(values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Positions of positive figures from small to large; equals stay in the order in which they were given.

    Examples
    --------
    >>> order([2.0, 1.0 + 1e-13, 3.0, 1.0]).tolist()
    [1, 3, 0, 2]
    """
    given = np.asarray(values, dtype=np.float64)
    by_size = np.argsort(given, kind="stable")
    sizes = given[by_size]
    with np.errstate(invalid="ignore"):
        step = np.concatenate([np.zeros(min(1, len(sizes)), dtype=bool), sizes[1:] * (1 - SAME) > sizes[:-1]])
    made: npt.NDArray[np.int64] = by_size[np.lexsort((by_size, np.cumsum(step)))].astype(np.int64)
    return made


def ranked(items: Iterable[Item], key: Callable[[Item], float]) -> list[Item]:
    """Items from the smallest figure to the largest; equals stay in their order.

    Examples
    --------
    >>> ranked([("b", 0.1 + 0.2), ("c", 0.1), ("a", 0.3)], key=lambda pair: pair[1])
    [('c', 0.1), ('b', 0.30000000000000004), ('a', 0.3)]
    """
    listed = list(items)
    return [listed[at] for at in order([key(item) for item in listed]).tolist()]


def least(items: Iterable[Item], key: Callable[[Item], float]) -> Item:
    """The item with the smallest figure, the first of equals.

    Examples
    --------
    >>> least(["b", "a"], key={"a": 0.3, "b": 0.1 + 0.2}.__getitem__)
    'b'
    """
    return ranked(items, key)[0]


def figures(value: float, digits: int = 9) -> float:
    """A number rounded to some significant digits.

    Examples
    --------
    >>> figures(0.1 + 0.2), figures(123456.123456)
    (0.3, 123456.123)
    """
    if value == 0 or not isfinite(value):
        return value
    return round(value, digits - 1 - floor(log10(abs(value))))


def settled(logs: Floats, grid: int = GRID) -> Floats:
    """Logarithms on a grid, so that a search that goes on from them goes on from the same numbers everywhere.

    Examples
    --------
    >>> bool(settled(np.array([0.1 + 0.2]))[0] == settled(np.array([0.3]))[0])
    True
    """
    made: Floats = np.rint(logs * grid) / grid
    return made


def digits(value: float, many: int = 4) -> str:
    """A figure for people: so many digits, with separators, and no power of ten below 10^15.

    Examples
    --------
    >>> digits(0.12345), digits(7052.3), digits(45_653_210.0), digits(4386.2, 3)
    ('0.1235', '7052', '45,650,000', '4,390')
    """
    short = f"{value:.{many}g}"
    if not isfinite(value) or not 10 ** min(4, many) <= abs(float(short)) < 1e15:
        return short
    return f"{float(short):,.0f}"
