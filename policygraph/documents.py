"""Text and JSON that somebody else wrote. Owns ``read_text``, ``read_bytes`` and ``parse_json``.

Both raise a ``ValueError`` or an ``OSError`` whose text fits into a message; the caller knows what the document should have
been, and gives the error its code.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import suppress
from typing import Any, NoReturn

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
    r"""Read a text file in UTF-8, with or without a byte order mark; line ends of any system are accepted.

    Raises
    ------
    OSError
        If it cannot be opened or read, or is a pipe into which nobody writes.
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
    raw = read_bytes(path)
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as cause:
        raise ValueError(f"it is not UTF-8 text (byte {cause.start})") from cause


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file.

    Raises
    ------
    OSError
        If it cannot be opened or read, or is a pipe into which nobody writes.
    ValueError
        If it is larger than 256 MiB, or its path has a null character.
    """
    raw = _read(path, MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError("it has more than 256 MiB")
    return raw


def _read(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a file, or a pipe that has a writer: without one, reading would block forever and silently."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        kind, first = os.fstat(handle).st_mode, b""
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if stat.S_ISFIFO(kind):
            # A writer counts from the moment it opens the pipe; without one, and without bytes left by one, a pipe is at its end at once.
            with suppress(BlockingIOError):
                first = os.read(handle, 1 << 16)
                if not first:
                    raise OSError(errno.ENXIO, "it is a pipe into which nobody writes", os.fspath(path))
            os.set_blocking(handle, True)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return first + file.read(most)
    finally:
        os.close(handle)


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
    raise ValueError(f"it has {word}, which is not a JSON number")
