"""Text and JSON that somebody else wrote. Owns ``read_text`` and ``parse_json``; imports nothing of ours.

Both raise a ``ValueError`` or an ``OSError`` whose words can stand in a message; the caller knows what the document was to
be, and gives the error its code.
"""

from __future__ import annotations

import json
import os
from typing import Any, NoReturn

__all__ = ["MALFORMED", "parse_json", "read_text"]

MOST_BYTES = 1 << 28
"""Largest text document that is read, 256 MiB: ``/dev/zero`` has no end."""

MALFORMED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    IndexError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""What a reader raises when a document has another shape than it was written with."""


def read_text(path: str | os.PathLike[str]) -> str:
    r"""Read a text file in UTF-8, with or without a byte order mark; lines end as they end on any system.

    Raises
    ------
    OSError
        If it cannot be opened or read.
    ValueError
        If it is no text, larger than 256 MiB, or its path has a null character.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> _ = path.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    >>> read_text(path)
    'one\ntwo'
    """
    with open(path, "rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError("it has more than 256 MiB")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as cause:
        raise ValueError(f"it is not UTF-8 text (byte {cause.start})") from cause


def parse_json(text: str | bytes) -> Any:
    """Read JSON strictly: no key twice, no NaN, and nothing nested so deep that the reader gives up.

    Raises
    ------
    ValueError
        With the reason, such as the place of a comma that is missing.

    Examples
    --------
    >>> parse_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: it has the key 'a' twice
    """
    try:
        return json.loads(text, object_pairs_hook=_table, parse_constant=_constant)
    except RecursionError as cause:
        raise ValueError("it is nested too deep") from cause


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"it has the key {next(key for key in keys if keys.count(key) > 1)[:60]!r} twice")
    return made


def _constant(word: str) -> NoReturn:
    raise ValueError(f"it has {word}, which is no number of JSON")
