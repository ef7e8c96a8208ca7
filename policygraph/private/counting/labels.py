"""From the values of a column to the positions of labels, as SQL. Owns :class:`Coder`; imports ``counting.sql``.

Labels match by value, never by guess:

- a whole number matches an integer column, a column of whole floats (pandas stores integers with gaps that way), a
  boolean as 0 or 1, and text that is a whole number, ``007`` and `` 7 `` included;
- a text matches equal text, blanks and leading zeros included; a column of another type by its printed form;
- a float matches numbers of equal value, and text that is one;
- true and false match booleans, 0 and 1, and these words in any case.

Where an attribute mixes kinds of labels they are tried in this order: text, whole number, float, boolean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policygraph.errors import InputError
from policygraph.private.counting import sql
from policygraph.public.domain import Label

__all__ = ["Coder", "coder"]

WHOLE = frozenset(
    [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
    ]
)


@dataclass(frozen=True)
class Coder:
    """How SQL turns one column into positions of labels.

    Attributes
    ----------
    joins
        LEFT JOIN clauses onto small tables of labels; a label occurs in them once, so no row is doubled.
    code
        Expression of the position of the value, or NULL for a value that is no label.
    by_text
        Whether values are compared as text, which is worth doing once per distinct value only.
    """

    joins: tuple[str, ...]
    code: str
    by_text: bool


def coder(
    value: str,
    kind: str,
    labels: Sequence[Label],
    prefix: str,
    *,
    textual: bool = False,
    integer: str = "BIGINT",
) -> Coder:
    """Plan the look-up of one column.

    Parameters
    ----------
    value
        SQL expression of the value.
    kind
        DuckDB type of the column.
    labels
        The labels of the attribute, in order.
    prefix
        Start of the names of the label tables.
    textual
        Whether the source has no types: an empty field is then the empty text where that is a label.
    integer
        SQL type of the position.

    Examples
    --------
    >>> coder("x", "INTEGER", range(5), "a").code
    'CASE WHEN x BETWEEN 0 AND 4 THEN CAST(x AS BIGINT) END'
    """
    is_text = kind == "VARCHAR" or kind.startswith("ENUM")
    if isinstance(labels, range):
        at = _whole(value, kind)
        return Coder((), _span(at, 0, len(labels) - 1, integer), is_text)
    joins: list[str] = []
    codes: list[str] = []

    def look_up(expression: str, wanted: list[tuple[Label, int]], tag: str) -> None:
        table = f"{prefix}{tag}"
        values, positions = sql.listing(v for v, _ in wanted), sql.listing(p for _, p in wanted)
        joins.append(
            f"LEFT JOIN (SELECT unnest({values}) AS label, unnest({positions}) AS code) AS {table} "
            f"ON {table}.label = {expression}"
        )
        codes.append(f"CAST({table}.code AS {integer})")

    by_kind: dict[type, list[tuple[Label, int]]] = {str: [], int: [], float: [], bool: []}
    for position, label in enumerate(labels):
        by_kind[next(t for t in (bool, int, float, str) if isinstance(label, t))].append((label, position))
    if texts := by_kind[str]:
        shown = value if kind == "VARCHAR" else f"CAST({value} AS VARCHAR)"
        look_up(f"coalesce({shown}, '')" if textual and ("" in labels) else shown, texts, "text")
    if wholes := by_kind[int]:
        at = _whole(value, kind)
        low, high = wholes[0][0], wholes[-1][0]
        if [label for label, _ in wholes] == list(range(int(low), int(low) + len(labels))):
            codes.append(_span(at, int(low), int(high), integer))
        else:
            look_up(at, [(_bounded(int(label)), p) for label, p in wholes], "whole")
    if floats := by_kind[float]:
        look_up(_float(value, kind), floats, "float")
    if truths := by_kind[bool]:
        if is_text:
            word = f"lower({value})" if kind == "VARCHAR" else f"lower(CAST({value} AS VARCHAR))"
            words = {True: f"{word} IN ('true', '1')", False: f"{word} IN ('false', '0')"}
        else:
            at = _whole(value, kind)
            words = {True: f"{at} = 1", False: f"{at} = 0"}
        cases = " ".join(f"WHEN {words[bool(label)]} THEN {p}" for label, p in truths)
        codes.append(f"CASE {cases} END")
    code = codes[0] if len(codes) == 1 else f"coalesce({', '.join(codes)})"
    return Coder(tuple(joins), code, is_text or bool(joins))


def _span(at: str, low: int, high: int, integer: str) -> str:
    _bounded(low), _bounded(high)
    position = (
        f"CAST({at} AS {integer})" if low == 0 else f"CAST(CAST({at} AS BIGINT) - ({low}) AS {integer})"
    )
    return f"CASE WHEN {at} BETWEEN {low} AND {high} THEN {position} END"


def _whole(value: str, kind: str) -> str:
    """SQL of the value as a whole number; NULL where it is none. A plain cast would round 1.7 to 2."""
    if kind in WHOLE:
        return value
    if kind == "BOOLEAN":
        return f"CAST({value} AS BIGINT)"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return f"(CASE WHEN {value} = floor({value}) THEN TRY_CAST({value} AS BIGINT) END)"
    shown = value if kind == "VARCHAR" else f"CAST({value} AS VARCHAR)"
    return (
        f"(CASE WHEN regexp_full_match({shown}, '[ \\t]*[+-]?[0-9]+[ \\t]*') "
        f"THEN TRY_CAST({shown} AS BIGINT) END)"
    )


def _float(value: str, kind: str) -> str:
    # A 32-bit 0.1 is no 64-bit 0.1; its printed form is.
    if kind == "DOUBLE" or kind in WHOLE:
        return f"CAST({value} AS DOUBLE)"
    return f"TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE)"


def _bounded(label: int) -> int:
    if not -(2**63) <= label < 2**63:
        raise InputError(
            f"label {label}: expected a whole number of at most 64 bits.", code="data.label", value=label
        )
    return label
