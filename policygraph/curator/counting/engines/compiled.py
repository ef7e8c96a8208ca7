"""Statements for other engines. Owns :class:`Portable`, which writes them, and :func:`compiled`, which turns them into the SQL of one engine.

A statement is built once, in SQL that DuckDB would parse too. Where DuckDB has a word of its own (:class:`~policygraph.curator.counting.dialect.Dialect`), a statement for
another engine has a call of a function ``policygraph_...``, for which :func:`compiled` puts in what that engine says (``WORDS``). sqlglot parses and writes everything else: quotes, names of
types, escapes, the order of NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context
from functools import cache
from typing import Any

from policygraph.curator.counting import sql
from policygraph.curator.counting.dialect import LONGEST, WRITTEN_DAY, WRITTEN_NUMBER, WRITTEN_WHOLE, Dialect

MARK = "policygraph_"
UNTESTED = ("snowflake", "bigquery")
"""Engines that statements are compiled for, and that nobody has run them on."""

_INFINITE = 2**1024 - 2**970
"""From here on the nearest double of a number is infinite."""
_NOTHING = format(Context(prec=2000).power(2, -1075), "f")
"""Up to here the nearest double of a number is 0."""
_SMALL = 2.3e-308


class Portable(Dialect):
    """Calls of functions that :func:`compiled` replaces.

    Examples
    --------
    >>> Portable().whole_of_text("x")
    'policygraph_whole_of_text(x)'
    """

    embedded = False
    few = 16

    def whole_of_text(self, text: str) -> str:
        return f"{MARK}whole_of_text({text})"

    def number_of_text(self, text: str) -> str:
        return f"{MARK}number_of_text({text})"

    def day_of_text(self, text: str) -> str:
        return f"{MARK}day_of_text({text})"

    def whole_of_number(self, value: str, kind: str) -> str:
        return f"{MARK}{'whole_of_decimal' if kind.startswith('DECIMAL') else 'whole_of_number'}({value})"

    def number_of_decimal(self, value: str) -> str:
        return f"{MARK}number_of_decimal({value})"

    def scaled(self, value: str, factor: float) -> str:
        # Some engines refuse a product that is too small to be told from 0.
        least = sql.literal(_SMALL / min(1.0, factor))
        return f"(CASE WHEN abs({value}) < {least} THEN {sql.literal(0.0)} ELSE {value} * {sql.literal(factor)} END)"

    def is_nan(self, value: str) -> str:
        return f"{MARK}is_nan({value})"

    def labels(self, values: Sequence[str | int | float], kind: str, positions: Sequence[int]) -> str:
        # A sign before each text, since some engines make no list of one empty text.
        text, between = sql.joined([f"={value}" if isinstance(value, str) else value for value in values])
        codes, _ = sql.joined(positions)
        word = f"{MARK}labels_{'text' if kind == 'VARCHAR' else kind.lower()}"
        return f"SELECT {word}({sql.literal(text)}, {sql.literal(between)}, {sql.literal(codes)})"

    def text(self, value: str, kind: str) -> str:
        if kind == "VARCHAR":
            return value
        word = {"DOUBLE": "text_of_number", "FLOAT": "text_of_float"}.get(kind, "text")
        return f"{MARK}{word}({value})"

    def text_length(self, text: str) -> str:
        return f"{MARK}text_length({text})"

    def digest_total(self, text: str) -> str:
        return f"{MARK}digest_total({text})"

    def digest_word(self, text: str, at: int) -> str:
        return f"{MARK}digest_word({text}, {at})"


class Clustered(Portable):
    """The same for Spark, which would make a row as wide as all keys for each of them.

    Examples
    --------
    >>> Clustered().counted_together(["a", "b + 9"], "t")
    'SELECT cell, count(*) AS n FROM (SELECT unnest([a, b + 9]) AS cell FROM (t) AS s) AS t GROUP BY cell'
    """

    def counted_together(self, keys: Sequence[str], rows: str) -> str:
        cells = f"SELECT unnest([{', '.join(keys)}]) AS cell FROM ({rows}) AS s"
        return f"SELECT cell, count(*) AS n FROM ({cells}) AS t GROUP BY cell"


def _nearest(value: str) -> str:
    """SQL of Postgres for the nearest double of a decimal, which it refuses to round to infinity or to 0 itself."""
    return (
        f"CASE WHEN {value} = CAST('NaN' AS numeric) THEN CAST('NaN' AS float8) "
        f"WHEN {value} >= {_INFINITE} THEN CAST('Infinity' AS float8) WHEN {value} <= -{_INFINITE} THEN CAST('-Infinity' AS float8) "
        f"WHEN abs({value}) <= CAST('{_NOTHING}' AS numeric) THEN CAST(0 AS float8) ELSE CAST({value} AS float8) END"
    )


def _postgres() -> dict[str, str]:
    trimmed = "btrim(a0, ' \t')"
    head = f"split_part({trimmed}, '.', 1)"
    digits = f"ltrim({head}, '+-0')"
    whole = f"CAST((CASE WHEN {head} LIKE '-%' THEN '-' ELSE '' END) || '0' || {digits} AS numeric)"
    shown = "CAST(a0 AS text)"
    sign = f"(CASE WHEN {shown} LIKE '-%' THEN '-' ELSE '' END)"
    figures = f"rpad(replace(ltrim(split_part({shown}, 'e', 1), '-'), '.', ''), 17, '0')"
    # It writes 1e+15 where DuckDB writes 1000000000000000.0; a digit after the point that is 0 stays only if it is the first.
    long = f"{sign} || left({figures}, 16) || '.' || substr({figures}, 17)"
    low, high = (
        "CAST(CAST('x' || "
        + " || ".join(f"substr(md5(a0), {at}, 2)" for at in places)
        + " AS bit(32)) AS bigint)"
        for places in ((23, 21, 19, 17), (31, 29, 27, 25))
    )
    printed = (
        f"((CASE WHEN {shown} = 'NaN' THEN 'nan' WHEN {shown} = 'Infinity' THEN 'inf' WHEN {shown} = '-Infinity' THEN '-inf' "
        f"WHEN {shown} LIKE '%e+15' THEN {long} WHEN {shown} LIKE '%e%' OR {shown} LIKE '%.%' THEN {shown} ELSE {shown} || '.0' END) COLLATE \"C\")"
    )
    listed = "unnest(string_to_array(a0, a1))"
    codes = "CAST(unnest(string_to_array(a2, '|')) AS bigint) AS code"
    rounded = "(CASE WHEN a0 >= -9223372036854775808 AND a0 < 9223372036854775808 THEN (CASE WHEN a0 = floor(a0) THEN CAST(a0 AS bigint) END) END)"
    return {
        "whole_of_text": f"(CASE WHEN a0 ~ '^{WRITTEN_WHOLE}$' AND length({digits}) <= 19 THEN (CASE WHEN {whole} BETWEEN -9223372036854775808 AND 9223372036854775807 "
        f"THEN CAST({whole} AS bigint) END) END)",
        "number_of_text": f"(CASE WHEN length(a0) <= {LONGEST} AND a0 ~ '^{WRITTEN_NUMBER}$' THEN (CASE WHEN {trimmed} ~ '^[+]?[iI]' THEN CAST('Infinity' AS float8) "
        f"WHEN {trimmed} ~ '^-[iI]' THEN CAST('-Infinity' AS float8) ELSE ({_nearest(f'CAST({trimmed} AS numeric)')}) END) END)",
        "day_of_text": f"(CASE WHEN a0 ~ '^{WRITTEN_DAY}$' THEN CAST(replace(substr(a0, 1, 10), '-', '') AS bigint) END)",
        "whole_of_number": rounded,
        "whole_of_decimal": rounded,
        "number_of_decimal": f"({_nearest('a0')})",
        "is_nan": "(a0 = CAST('NaN' AS float8))",
        "labels_text": f'SELECT substr({listed}, 2) COLLATE "C" AS label, {codes}',
        "labels_bigint": f"SELECT CAST({listed} AS bigint) AS label, {codes}",
        "labels_double": f"SELECT CAST({listed} AS float8) AS label, {codes}",
        "text": '(CAST(a0 AS text) COLLATE "C")',
        "text_of_number": printed,
        # A float of 32 bits means the number that it prints.
        "text_of_float": printed.replace("a0", "CAST(CAST(a0 AS text) AS float8)"),
        "text_length": "octet_length(a0)",
        "digest_total": f"CAST(COALESCE(SUM({low}) + 4294967296 * SUM({high}), 0) AS text)",
        "digest_word": "CAST(CAST('x' || substr(md5(a0), a1, 8) AS bit(32)) AS bigint)",
    }


def _spark() -> dict[str, str]:
    whole, number, day = (
        "\\\\A" + pattern.replace("\\", "\\\\") + "\\\\z"
        for pattern in (WRITTEN_WHOLE, WRITTEN_NUMBER, WRITTEN_DAY)
    )
    order = " || ".join(f"substr(md5(a0), {at}, 2)" for at in range(31, 15, -2))
    # split takes a pattern; between \\Q and \\E every sign is itself.
    listed = "split(a0, concat('\\\\Q', a1, '\\\\E'), -1)"
    codes = "transform(split(a2, '\\\\|', -1), x -> CAST(x AS BIGINT))"
    return {
        "whole_of_text": f"(CASE WHEN a0 RLIKE '{whole}' THEN TRY_CAST(split_part(btrim(a0, ' \\t'), '.', 1) AS BIGINT) END)",
        "number_of_text": f"(CASE WHEN length(a0) <= {LONGEST} AND a0 RLIKE '{number}' THEN TRY_CAST(btrim(a0, ' \\t') AS DOUBLE) END)",
        "day_of_text": f"(CASE WHEN a0 RLIKE '{day}' THEN CAST(replace(substr(a0, 1, 10), '-', '') AS BIGINT) END)",
        "whole_of_number": "(CASE WHEN a0 >= CAST('-9223372036854775808' AS DOUBLE) AND a0 < CAST('9223372036854775808' AS DOUBLE) AND a0 = rint(a0) THEN CAST(a0 AS BIGINT) END)",
        # By its digits: a decimal and its floor, or a remainder, may need more than the 38 digits that Spark keeps.
        "whole_of_decimal": "(CASE WHEN CAST(a0 AS STRING) RLIKE '\\\\A-?[0-9]+([.]0*)?\\\\z' THEN TRY_CAST(a0 AS BIGINT) END)",
        "number_of_decimal": "CAST(CAST(a0 AS STRING) AS DOUBLE)",
        "is_nan": "isnan(a0)",
        "labels_text": f"SELECT inline(arrays_zip(transform({listed}, x -> substr(x, 2)), {codes})) AS (label, code)",
        "labels_bigint": f"SELECT inline(arrays_zip(transform({listed}, x -> CAST(x AS BIGINT)), {codes})) AS (label, code)",
        "labels_double": f"SELECT inline(arrays_zip(transform({listed}, x -> CAST(x AS DOUBLE)), {codes})) AS (label, code)",
        "text": "CAST(a0 AS STRING)",
        "text_of_number": "policygraph_repr(a0, false)",
        "text_of_float": "policygraph_repr(CAST(a0 AS DOUBLE), true)",
        "text_length": "octet_length(a0)",
        "digest_total": f"CAST(COALESCE(SUM(CAST(conv({order}, 16, 10) AS DECIMAL(20, 0))), 0) AS STRING)",
        "digest_word": "CAST(conv(substr(md5(a0), a1, 8), 16, 10) AS BIGINT)",
    }


def _snowflake() -> dict[str, str]:
    whole, number, day = (
        pattern.replace("\\", "\\\\") for pattern in (WRITTEN_WHOLE, WRITTEN_NUMBER, WRITTEN_DAY)
    )
    order = " || ".join(f"SUBSTR(MD5(a0), {at}, 2)" for at in range(31, 15, -2))
    table = "TABLE(SPLIT_TO_TABLE(a0, a1)) AS l JOIN TABLE(SPLIT_TO_TABLE(a2, '|')) AS c ON l.index = c.index"
    codes = "CAST(c.value AS BIGINT) AS code"
    rounded = "(CASE WHEN a0 >= -9223372036854775808 AND a0 < 9223372036854775808 AND a0 = FLOOR(a0) THEN CAST(a0 AS BIGINT) END)"
    return {
        "whole_of_text": f"(CASE WHEN REGEXP_LIKE(a0, '{whole}') THEN TRY_CAST(SPLIT_PART(TRIM(a0, ' \\t'), '.', 1) AS DECIMAL(19, 0)) END)",
        "number_of_text": f"(CASE WHEN LENGTH(a0) <= {LONGEST} AND REGEXP_LIKE(a0, '{number}') THEN TRY_CAST(TRIM(a0, ' \\t') AS DOUBLE) END)",
        "day_of_text": f"(CASE WHEN REGEXP_LIKE(a0, '{day}') THEN CAST(REPLACE(SUBSTR(a0, 1, 10), '-', '') AS BIGINT) END)",
        "whole_of_number": rounded,
        "whole_of_decimal": rounded,
        "number_of_decimal": "CAST(CAST(a0 AS VARCHAR) AS DOUBLE)",
        "is_nan": "(a0 = CAST('NaN' AS DOUBLE))",
        "labels_text": f"SELECT SUBSTR(l.value, 2) AS label, {codes} FROM {table}",
        "labels_bigint": f"SELECT CAST(l.value AS BIGINT) AS label, {codes} FROM {table}",
        "labels_double": f"SELECT CAST(l.value AS DOUBLE) AS label, {codes} FROM {table}",
        "text": "CAST(a0 AS VARCHAR)",
        "text_of_number": "CAST(a0 AS VARCHAR)",
        "text_of_float": "CAST(a0 AS VARCHAR)",
        "text_length": "OCTET_LENGTH(a0)",
        "digest_total": f"CAST(COALESCE(SUM(TO_NUMBER({order}, 'XXXXXXXXXXXXXXXX')), 0) AS VARCHAR)",
        "digest_word": "TO_NUMBER(SUBSTR(MD5(a0), a1, 8), 'XXXXXXXX')",
    }


def _bigquery() -> dict[str, str]:
    order = ", ".join(f"SUBSTR(TO_HEX(MD5(a0)), {at}, 2)" for at in range(31, 15, -2))
    table = "UNNEST(SPLIT(a0, a1)) AS l WITH OFFSET AS i JOIN UNNEST(SPLIT(a2, '|')) AS c WITH OFFSET AS j ON i = j"
    codes = "CAST(c AS INT64) AS code"
    rounded = "(CASE WHEN a0 = FLOOR(a0) THEN SAFE_CAST(a0 AS INT64) END)"
    return {
        "whole_of_text": f"(CASE WHEN REGEXP_CONTAINS(a0, r'\\A{WRITTEN_WHOLE}\\z') THEN SAFE_CAST(SPLIT(TRIM(a0, ' \\t'), '.')[OFFSET(0)] AS INT64) END)",
        "number_of_text": f"(CASE WHEN LENGTH(a0) <= {LONGEST} AND REGEXP_CONTAINS(a0, r'\\A{WRITTEN_NUMBER}\\z') THEN SAFE_CAST(TRIM(a0, ' \\t') AS FLOAT64) END)",
        "day_of_text": f"(CASE WHEN REGEXP_CONTAINS(a0, r'\\A{WRITTEN_DAY}\\z') THEN SAFE_CAST(REPLACE(SUBSTR(a0, 1, 10), '-', '') AS INT64) END)",
        "whole_of_number": rounded,
        "whole_of_decimal": rounded,
        "number_of_decimal": "SAFE_CAST(CAST(a0 AS STRING) AS FLOAT64)",
        "is_nan": "IS_NAN(a0)",
        "labels_text": f"SELECT SUBSTR(l, 2) AS label, {codes} FROM {table}",
        "labels_bigint": f"SELECT CAST(l AS INT64) AS label, {codes} FROM {table}",
        "labels_double": f"SELECT CAST(l AS FLOAT64) AS label, {codes} FROM {table}",
        "text": "CAST(a0 AS STRING)",
        "text_of_number": "CAST(a0 AS STRING)",
        "text_of_float": "CAST(a0 AS STRING)",
        "text_length": "BYTE_LENGTH(a0)",
        "digest_total": f"CAST(COALESCE(SUM(CAST(CONCAT('0x', {order}) AS NUMERIC)), 0) AS STRING)",
        "digest_word": "CAST(CONCAT('0x', SUBSTR(TO_HEX(MD5(a0)), a1, 8)) AS INT64)",
    }


WORDS = {"postgres": _postgres, "spark": _spark, "snowflake": _snowflake, "bigquery": _bigquery}


@cache
def _template(engine: str, word: str) -> Any:
    import sqlglot

    return sqlglot.parse_one(WORDS[engine]()[word], read=engine)


def _said(engine: str, word: str, arguments: list[Any]) -> Any:
    """What an engine says for a word of :class:`Portable`."""
    from sqlglot import exp

    made = _template(engine, word).copy()
    for column in list(made.find_all(exp.Column)):
        if column.name[:1] == "a" and column.name[1:].isdigit() and not column.table:
            column.replace(exp.paren(arguments[int(column.name[1:])].copy()))
    return made


def tree_of(statement: str, engine: str) -> Any:
    """The syntax tree of a statement, with the words of an engine."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(statement, read="duckdb")
    calls = [node for node in tree.find_all(exp.Anonymous) if node.name.lower().startswith(MARK)]
    # What is inside comes after what it is in.
    for node in reversed(calls):
        word = node.name.lower().removeprefix(MARK)
        made = _said(engine, word, node.expressions)
        if not word.startswith("labels_"):
            node.replace(made)
            continue
        select = node.parent
        if engine == "spark":
            _broadcast(select.parent)
        select.replace(made)
    return tree


def _broadcast(table: Any) -> None:
    """Say that a table of labels goes to every worker, so that no record moves because of it."""
    from sqlglot import exp

    select = table.find_ancestor(exp.Select)
    hint = select.args.get("hint") or exp.Hint(expressions=[])
    hint.append("expressions", exp.Anonymous(this="BROADCAST", expressions=[exp.column(table.alias)]))
    select.set("hint", hint)


def compiled(statement: str, engine: str) -> str:
    """Write a statement in the SQL of an engine.

    Parameters
    ----------
    statement
        A SELECT with the words of :class:`Portable`.
    engine
        ``"postgres"``, ``"spark"``; ``"snowflake"`` and ``"bigquery"``, whose SQL is parsed and was never run.

    Examples
    --------
    >>> compiled('SELECT count(*) AS "a b" FROM policygraph_source', "spark")
    'SELECT COUNT(*) AS `a b` FROM policygraph_source'
    """
    made: str = tree_of(statement, engine).sql(dialect=engine)
    return made
