"""What a value is, whatever column it comes in. Owns the four kinds of values in SQL.

A column of a file or a frame has a type, which one record more may change: a missing value turns integers of pandas into floats, a word turns them into
objects. What a value means must not depend on that. So every value is one of four things, each decided by the value alone: a text, a whole number, another
number, a truth value; what is none of them (a date, a list) is the text that the engine prints for it. Columns without one type are kept as all four side
by side (``MIXED``), of which at most one is there.
"""

from __future__ import annotations

from policygraph.curator.counting import sql
from policygraph.curator.counting.dialect import DUCKDB, Dialect

WHOLE = frozenset(
    [
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    ]
)
FLOATS = frozenset(["FLOAT", "DOUBLE"])
MIXED = "MIXED"
"""Kind of a column of structs with the fields t, w, f and b, at most one of which is there."""
SPLIT = "MIXED FLOATS"
"""The same, where integers may have become floats on the way because of another record."""
JSON = "JSON"
OTHER = "OTHER: "
"""Start of the kind of a column that another engine prints in a way of its own, before the name of its type; it can be told apart, and not be read."""
KINDS = (("t", "VARCHAR"), ("w", "HUGEINT"), ("f", "DOUBLE"), ("b", "BOOLEAN"))


def is_number(kind: str) -> bool:
    """Whether a column holds numbers that need not be whole."""
    return kind in FLOATS or kind.startswith("DECIMAL")


def family(kind: str) -> str:
    """What the values of a column are, whatever their width.

    Examples
    --------
    >>> [family(kind) for kind in ("TINYINT", "FLOAT", "BOOLEAN", "ENUM('a')", "MIXED FLOATS")]
    ['whole', 'number', 'boolean', 'text', 'mixed floats']
    """
    if kind in WHOLE:
        return "whole"
    if kind in (MIXED, SPLIT, JSON, "BOOLEAN"):
        return kind.lower()
    return "number" if is_number(kind) else "text"


def number(value: str, kind: str, dialect: Dialect = DUCKDB) -> str:
    """SQL of a number as a 64-bit float."""
    # A 32-bit 0.1 is no 64-bit 0.1, and a decimal one may be off by a last digit; their printed forms are exact.
    return value if kind == "DOUBLE" else dialect.number_of_decimal(value)


def plain(value: str, kind: str) -> tuple[str, str]:
    """The value as one of the kinds that are known here: what is none of them is the text that the engine prints.

    The engine takes some values for equal that it prints in different ways (a month and 30 days, ``[0.0]`` and ``[-0.0]``); grouped by value, one record
    could change what others are.

    Examples
    --------
    >>> plain("x", "BIGINT"), plain("x", "INTERVAL")
    (('x', 'BIGINT'), ('CAST(x AS VARCHAR)', 'VARCHAR'))
    """
    known = kind in WHOLE or is_number(kind) or kind in ("VARCHAR", "BOOLEAN", JSON, MIXED, SPLIT)
    return (value, kind) if known else (f"CAST({value} AS VARCHAR)", "VARCHAR")


def parts(value: str, kind: str) -> list[tuple[str, str]]:
    """The value as its kinds: SQL and kind of each.

    Examples
    --------
    >>> parts("x", "DOUBLE"), parts("x", MIXED)[0]
    ([('x', 'DOUBLE')], ("struct_extract(x, 't')", 'VARCHAR'))
    """
    if kind in (MIXED, SPLIT):
        return [(f"struct_extract({value}, '{field}')", one) for field, one in KINDS]
    if kind == JSON:
        made = dict(_json(value))
        return [(made[field], one) for field, one in KINDS]
    return [(value, kind)]


def _json(value: str) -> list[tuple[str, str]]:
    what = f"json_type({value})"
    return [
        (
            "t",
            f"(CASE {what} WHEN 'VARCHAR' THEN {value} ->> '$' WHEN 'OBJECT' THEN CAST({value} AS VARCHAR) "
            f"WHEN 'ARRAY' THEN CAST({value} AS VARCHAR) END)",
        ),
        (
            "w",
            f"(CASE WHEN {what} IN ('BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT') THEN TRY_CAST(CAST({value} AS VARCHAR) AS HUGEINT) END)",
        ),
        ("f", f"(CASE WHEN {what} = 'DOUBLE' THEN TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE) END)"),
        ("b", f"(CASE WHEN {what} = 'BOOLEAN' THEN CAST({value} AS VARCHAR) = 'true' END)"),
    ]


def mixed(value: str, kind: str) -> str:
    """SQL that makes a mixed value of any value.

    Examples
    --------
    >>> mixed("x", "BOOLEAN")
    'struct_pack(t := CAST(NULL AS VARCHAR), w := CAST(NULL AS HUGEINT), f := CAST(NULL AS DOUBLE), b := CAST(x AS BOOLEAN))'
    """
    made = {field: "NULL" for field, _ in KINDS}
    if kind == JSON:
        made = dict(_json(value))
    elif kind in WHOLE:
        made["w"] = f"TRY_CAST({value} AS HUGEINT)"
    elif is_number(kind):
        made["f"] = number(value, kind)
    elif kind == "BOOLEAN":
        made["b"] = value
    else:
        made["t"] = f"CAST({value} AS VARCHAR)"
    fields = ", ".join(f"{field} := CAST({made[field]} AS {one})" for field, one in KINDS)
    return f"struct_pack({fields})"


def printed(value: str, kind: str, dialect: Dialect = DUCKDB) -> str:
    """SQL of a value as people read it."""
    shown = [dialect.text(one, its) for one, its in parts(value, kind)]
    return shown[0] if len(shown) == 1 else f"coalesce({', '.join(shown)})"


def told_apart(value: str, kind: str, dialect: Dialect = DUCKDB) -> str:
    """SQL of a text that no other value has: its length before it, and a sign of its own for no value.

    Examples
    --------
    >>> told_apart("x", "VARCHAR")
    "coalesce('' || CAST(strlen(CAST(x AS VARCHAR)) AS VARCHAR) || ':' || CAST(x AS VARCHAR), '-')"
    """
    shown = []
    for field, (one, its) in zip("twfb", parts(value, kind), strict=False):
        text = dialect.text(one, its)
        tag = field if kind in (MIXED, SPLIT, JSON) else ""
        shown.append(f"{sql.literal(tag)} || CAST({dialect.text_length(text)} AS VARCHAR) || ':' || {text}")
    return f"coalesce({', '.join(shown)}, '-')"
