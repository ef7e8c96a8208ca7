"""What can be declared about data files. Owns ``OPTIONS`` and ``expected_option``."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Any

OPTIONS = ("delimiter", "quote", "encoding", "header", "hive", "sheet")
"""Keys of the table ``[data]`` that say how files are read, and arguments of ``pg.Files``."""

PLAIN = re.compile(
    r"ascii|utf_(8|8_sig|16|16_le|16_be|32|32_le|32_be)|iso8859_[0-9]+|cp[0-9]+|koi8_[rtu]|mac_[a-z0-9]+|hp_roman8|kz1048|ptcp154|tis_620|palmos|"
    r"big5(_?hkscs)?|gb2312|gbk|gb18030|johab|shift_jis(x0213|_2004)?|shift_jisx0213|euc_(jp|kr|jis_2004|jisx0213)"
)
"""Encodings in which no record says how the next one is read. Others switch alphabets by escape sequences in the text (iso2022, hz, utf-7), or turn other characters into
line breaks (unicode_escape)."""


def expected_option(name: str, value: Any) -> str | None:
    """What was expected of an option; None when the value is one.

    Examples
    --------
    >>> expected_option("delimiter", ";"), expected_option("hive", 1)
    (None, 'true or false')
    """
    good, expected = _CHECKS[name]
    return None if good(value) else expected


def _one_character(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in "\r\n\0"


def _is_encoding(name: Any) -> bool:
    try:
        found = codecs.lookup(name)
    except (LookupError, TypeError, ValueError):
        return False
    return bool(getattr(found, "_is_text_encoding", True)) and bool(
        PLAIN.fullmatch(found.name.lower().replace("-", "_"))
    )


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "delimiter": (_one_character, "one ASCII character, such as ';'"),
    "quote": (lambda value: value == "" or _one_character(value), "one ASCII character, or '' for none"),
    "encoding": (_is_encoding, "an encoding such as utf-8, latin-1, cp1252 or utf-16"),
    "header": (lambda value: isinstance(value, bool), "true or false"),
    "hive": (lambda value: isinstance(value, bool), "true or false"),
    "sheet": (lambda value: isinstance(value, str) and bool(value), "the name of a sheet"),
}
