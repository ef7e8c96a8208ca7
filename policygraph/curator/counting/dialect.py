"""What SQL has no common word for. Owns :class:`Dialect`, in the words of DuckDB; other engines have their own (``engines``).

Everything else that is counted with is plain SQL, built once. What a word means is fixed here, and is the same on every engine:

- a text spells a whole number if it is one of decimal digits, with a sign or blanks around, and at most zeros after the point;
- a text spells a number if it is such a numeral with digits after the point or an exponent of at most four digits, or ``inf`` or ``infinity`` in any case;
- a text spells a day if it is a date of the calendar such as ``2024-01-31``, with a time after it or not, in UTC if it names a zone.
"""

from __future__ import annotations

from collections.abc import Sequence

from policygraph.curator.counting import sql

WRITTEN_WHOLE = r"[ \t]*[+-]?[0-9]+(\.0*)?[ \t]*"
WRITTEN_NUMBER = r"[ \t]*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)[ \t]*"
_DAY = r"(0[1-9]|[12][0-9])"
_LEAP = r"([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
WRITTEN_DAY = (
    rf"([0-9]{{4}}-((0[13578]|1[02])-({_DAY}|3[01])|(0[469]|11)-({_DAY}|30)|02-(0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
    r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?(Z|[+]00(:?00)?)?)?"
)
LONGEST = 1000
"""A text of more characters spells no number that need not be whole."""


class Dialect:
    """Words of DuckDB.

    Attributes
    ----------
    embedded
        Whether the engine runs in this process, so that reading positions row by row moves nothing out of it.
    few
        Up to so many labels are written out as cases; more of them are a table that is joined.

    Examples
    --------
    >>> Dialect().text_length("x")
    'strlen(x)'
    """

    embedded = True
    few = 0

    def whole_of_text(self, text: str) -> str:
        """The whole number that a text spells, as BIGINT; NULL where it spells none."""
        # The part before the point, since a cast of the whole text would go through a float.
        return (
            f"(CASE WHEN regexp_full_match({text}, '{WRITTEN_WHOLE}') "
            f"THEN TRY_CAST(split_part(trim({text}, ' \t'), '.', 1) AS BIGINT) END)"
        )

    def number_of_text(self, text: str) -> str:
        """The number that a text spells, as the nearest double; NULL where it spells none."""
        return (
            f"(CASE WHEN length({text}) <= {LONGEST} AND regexp_full_match({text}, '{WRITTEN_NUMBER}') "
            f"THEN TRY_CAST(trim({text}, ' \t') AS DOUBLE) END)"
        )

    def day_of_text(self, text: str) -> str:
        """The day that a text spells, as the whole number 20240131; NULL where it spells none."""
        return (
            f"(CASE WHEN regexp_full_match({text}, '{WRITTEN_DAY}') "
            f"THEN TRY_CAST(replace(substr({text}, 1, 10), '-', '') AS BIGINT) END)"
        )

    def whole_of_number(self, value: str, kind: str) -> str:
        """The whole number that a float or decimal is, as BIGINT; NULL where it is none or has more than 64 bits."""
        # The floor of a decimal may have a digit more than its type has room for, and is not the value then.
        floor = f"TRY_CAST(floor({value}) AS {kind})" if kind.startswith("DECIMAL") else f"floor({value})"
        return f"(CASE WHEN {value} = {floor} THEN TRY_CAST({value} AS BIGINT) END)"

    def number_of_decimal(self, value: str) -> str:
        """The double that is nearest to a decimal; its printed form is exact, other ways may be off by a last digit."""
        return f"TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE)"

    def scaled(self, value: str, factor: float) -> str:
        """A double times a factor."""
        return f"{value} * {sql.literal(factor)}"

    def is_nan(self, value: str) -> str:
        """Whether a double is no number."""
        return f"isnan({value})"

    def labels(self, values: Sequence[str | int | float], kind: str, positions: Sequence[int]) -> str:
        """SELECT of ``label`` and ``code``, one row for each label."""
        return f"SELECT unnest({sql.column(values, kind)}) AS label, unnest({sql.column(positions, 'BIGINT')}) AS code"

    def counted_together(self, keys: Sequence[str], rows: str) -> str:
        """SELECT of ``cell`` and ``n``: how many rows have each value of each key; no two keys share a value."""
        named = ", ".join(f"{key} AS k{at}" for at, key in enumerate(keys))
        listed = [f"k{at}" for at in range(len(keys))]
        # Of the keys of a group all but its own are NULL.
        return (
            f"SELECT coalesce({', '.join(listed)}) AS cell, count(*) AS n FROM (SELECT {named} FROM ({rows}) AS s) AS t "
            f"GROUP BY GROUPING SETS ({', '.join(f'({key})' for key in listed)})"
        )

    def text(self, value: str, kind: str) -> str:
        """A value as the text that DuckDB prints for it; without the sign of what is not a number, and with a digit before the point."""
        printed = f"CAST({value} AS VARCHAR)"
        if kind in ("FLOAT", "DOUBLE"):
            return f"(CASE WHEN isnan({value}) THEN 'nan' ELSE {printed} END)"
        if kind.startswith("DECIMAL"):
            return rf"regexp_replace({printed}, '^(-?)[.]', '\1' || '0.')"
        return printed

    def text_length(self, text: str) -> str:
        """How many bytes a text has in UTF-8."""
        return f"strlen({text})"

    def digest_total(self, text: str) -> str:
        """Sum over all rows of the last eight bytes of the MD5 of a text, as a little-endian number, as text."""
        return f"CAST(coalesce(sum(CAST(md5_number_lower({text}) AS HUGEINT)), 0) AS VARCHAR)"

    def digest_word(self, text: str, at: int) -> str:
        """Eight hexadecimal digits of the MD5 of a text from a place on, as BIGINT."""
        return f"CAST('0x' || substr(md5({text}), {at}, 8) AS BIGINT)"


DUCKDB = Dialect()
