"""Text that goes into SQL: quoted names and literals. Owns ``name``, ``literal``, ``listing``, ``column``, ``joined``.

Names and labels come from policy files, so that they are quoted here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from policygraph.errors import InputError


def name(text: str) -> str:
    """Quote a column or table name.

    Examples
    --------
    >>> print(name('an "odd" name'))
    "an ""odd"" name"
    """
    return '"' + _plain(text).replace('"', '""') + '"'


def literal(value: str | int | float) -> str:
    """Write a value as an SQL literal of its own type.

    Examples
    --------
    >>> literal("it's"), literal(-3), literal(0.5)
    ("'it''s'", '(-3)', "'0.5'::DOUBLE")
    """
    if isinstance(value, str):
        return "'" + _plain(value).replace("'", "''") + "'"
    if isinstance(value, int):
        return f"({int(value)})"
    # A bare 0.5 would be a DECIMAL; the text form is read with correct rounding.
    return f"'{float(value)!r}'::DOUBLE"


def listing(values: Iterable[str | int | float]) -> str:
    """Write values as an SQL list.

    Examples
    --------
    >>> listing(["a", "b"])
    "['a', 'b']"
    """
    return "[" + ", ".join(literal(value) for value in values) + "]"


def column(values: Sequence[str | int | float], kind: str) -> str:
    """Write many values of one type as an SQL list, in one literal: parsing a literal for each takes a minute for 100,000.

    Examples
    --------
    >>> column([1, 22], "BIGINT")
    "CAST(string_split('1|22', '|') AS BIGINT[])"
    """
    text, between = joined(values)
    return f"CAST(string_split({literal(text)}, {literal(between)}) AS {kind}[])"


def joined(values: Sequence[str | int | float]) -> tuple[str, str]:
    """Many values in one text, and the sign between them that none of them has.

    Examples
    --------
    >>> joined([1, 22]), joined(["a|b", "c"])
    (('1|22', '|'), ('a|b,c', ','))
    """
    texts = [value if isinstance(value, str) else repr(value) for value in values]
    used = set().union(*texts)
    between = next(sign for sign in map(chr, chain(b"|,;/~^", range(1, 0xD800))) if sign not in used)
    return between.join(texts), between


def _plain(text: str) -> str:
    if "\0" in text:
        raise InputError(
            f"{text!r} contains a zero byte: expected text without one.", code="data.text", value=text
        )
    return text
