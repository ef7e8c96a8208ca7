"""What can be declared about data files. Owns ``OPTIONS`` and ``expected_option``; imports nothing of ours."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

__all__ = ["OPTIONS", "expected_option"]

OPTIONS = ("delimiter", "quote", "encoding", "header", "hive")
"""Keys of the table ``[data]`` that say how files are read, and arguments of ``pg.Files``."""

NOT_PLAIN = frozenset(
    ["idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape", "utf-7", "mbcs", "oem"]
)
"""Codecs of Python that are not encodings of files."""


def expected_option(name: str, value: Any) -> str | None:
    """What was expected of an option; None when the value is one.

    Examples
    --------
    >>> expected_option("delimiter", ";"), expected_option("hive", 1)
    (None, 'true or false')
    """
    good, expected = _CHECKS[name]
    return None if good(value) else expected


def _one_sign(text: Any) -> bool:
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in "\r\n\0"


def _is_encoding(name: Any) -> bool:
    try:
        found = codecs.lookup(name)
    except (LookupError, TypeError, ValueError):
        return False
    return bool(getattr(found, "_is_text_encoding", True)) and found.name not in NOT_PLAIN


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "delimiter": (_one_sign, "one ASCII character, such as ';'"),
    "quote": (lambda value: value == "" or _one_sign(value), "one ASCII character, or '' for none"),
    "encoding": (_is_encoding, "an encoding such as utf-8, latin-1, cp1252 or utf-16"),
    "header": (lambda value: isinstance(value, bool), "true or false"),
    "hive": (lambda value: isinstance(value, bool), "true or false"),
}
