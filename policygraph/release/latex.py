"""Released tables for documents: numbers as people write them, and LaTeX. Owns :func:`rows_of` and :func:`tabular`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import floor, isfinite, log10
from typing import Any

import numpy as np

MARKS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


def count_and_range(value: float, within: float) -> tuple[str, str]:
    """A count without digits that are noise only, and its range with two figures; empty for an exact count.

    Examples
    --------
    >>> count_and_range(1234.567, 12.345), count_and_range(12.345, 0.678), count_and_range(7, 0)
    (('1,235', '12'), ('12.35', '0.68'), ('7', ''))
    """
    if not within or not isfinite(within):
        return (f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"), ""
    whole = value == int(value)
    places = 0 if whole and within == int(within) else max(0, 1 - floor(log10(within)))
    shown = 0 if whole else places
    return f"{value:,.{shown}f}", f"{within:,.{places}f}"


def rows_of(table: Any, most: int | None = None) -> Iterator[list[str]]:
    """Rows of a table in words: labels, the count, and its range."""
    values = np.asarray(table.values, dtype=np.float64)
    within = np.broadcast_to(np.asarray(table.within_95, dtype=np.float64), values.shape)
    labels = [np.asarray(listed) for listed in table.labels]
    for at in islice(range(len(values)), most):
        count, spread = count_and_range(float(values[at]), float(within[at]))
        yield [*(str(listed[at]) for listed in labels), count, f"± {spread}" if spread else "exact"]


def tabular(table: Any, lead: str = "") -> str:
    """A table as LaTeX, after a line that says what must be said of it."""
    columns = len(table.columns)
    head = [*map(escaped, table.columns), r"count (95 \%)"]
    lines = [rf"\begin{{tabular}}{{{'l' * columns}r}}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    for *labels, count, spread in rows_of(table):
        number = count.replace(",", "{,}")
        text = (
            f"${number}$"
            if spread == "exact"
            else rf"${number} \pm {spread.removeprefix('± ').replace(',', '{,}')}$"
        )
        lines.append(" & ".join([*map(escaped, labels), text]) + r" \\")
    return lead + "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def booktabs(head: list[str], rows: list[list[str]], lead: str = "") -> str:
    r"""Lines of words and numbers as LaTeX for the package booktabs; all columns but the first are numbers.

    Examples
    --------
    >>> print(booktabs(["method", "epsilon = 1"], [["edges, consistent", "5.25"]]))
    \begin{tabular}{lr}
    \toprule
    method & epsilon = 1 \\
    \midrule
    edges, consistent & 5.25 \\
    \bottomrule
    \end{tabular}
    """
    lines = [" & ".join(map(escaped, row)) + r" \\" for row in (head, *rows)]
    first = [rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule", lines[0], r"\midrule"]
    return lead + "\n".join([*first, *lines[1:], r"\bottomrule", r"\end{tabular}"])


def escaped(text: str) -> str:
    r"""Text that LaTeX sets as it is.

    Examples
    --------
    >>> escaped("50 % & more_")
    '50 \\% \\& more\\_'
    """
    return "".join(MARKS.get(mark, mark) for mark in text)
