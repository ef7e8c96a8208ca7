"""What SQL has no common word for. Owns :class:`Dialect`, in the words of DuckDB; other engines have their own (``engines``).

Everything else that is counted with is plain SQL, built once. What a word means is fixed here, and is the same on every engine:

- a text spells a whole number if it is one of decimal digits, with a sign or blanks around, and at most zeros after the point;
- a text spells a number if it is such a numeral with digits after the point or an exponent of at most four digits, or ``inf`` or ``infinity`` in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

from policygraph.curator.counting import sql

WRITTEN_WHOLE = r"[ \t]*[+-]?[0-9]+(\.0*)?[ \t]*"
WRITTEN_NUMBER = r"[ \t]*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)[ \t]*"
LONGEST = 1000
"""A text of more characters spells no number that need not be whole."""


class Dialect:
    """Words of DuckDB.

    Attributes
    ----------
    embedded
        Whether the engine runs in this process, so that reading positions row by row moves nothing out of it.
    salt
        SQL of a number that spreads the rows of one cell over several workers; empty where there is one machine.
    few
        Up to so many labels are written out as cases; more of them are a table that is joined.

    Examples
    --------
    >>> Dialect().text_length("x")
    'strlen(x)'
    """

    embedded = True
    salt = ""
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

    def whole_of_number(self, value: str, kind: str) -> str:
        """The whole number that a float or decimal is, as BIGINT; NULL where it is none or has more than 64 bits."""
        return f"(CASE WHEN {value} = floor({value}) THEN TRY_CAST({value} AS BIGINT) END)"

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

    def text(self, value: str, kind: str) -> str:
        """A value as the text that DuckDB prints for it."""
        return f"CAST({value} AS VARCHAR)"

    def text_length(self, text: str) -> str:
        """How many bytes a text has in UTF-8."""
        return f"strlen({text})"

    def digest_total(self, text: str) -> str:
        """Sum over all rows of the last eight bytes of the MD5 of a text, as a little-endian number, as text."""
        return f"CAST(coalesce(sum(CAST(md5_number_lower({text}) AS HUGEINT)), 0) AS VARCHAR)"


DUCKDB = Dialect()
