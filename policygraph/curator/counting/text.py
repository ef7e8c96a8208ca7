"""Text files looked at byte by byte, before the engine reads them. Owns :class:`Sheet`, ``scan_csv`` and ``scan_lines``.

The engine forgives: a stray quote, a line break of another kind, a byte that is no text. What it makes of them may depend on the lines around. So
a file is first held to RFC 4180, to one kind of line break and to its encoding; whatever breaks them is refused with its line.
"""

from __future__ import annotations

import codecs
import csv
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.curator.counting.reading import Files
from policygraph.errors import DataError

DELIMITERS = (",", ";", "\t", "|")
BLOCK = 1 << 22
LONGEST = 1_000_000
"""Most bytes of one record; the engine has a limit of its own, of twice as many."""
BOM = codecs.BOM_UTF8

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sheet:
    """A text file that was found to be well formed.

    Attributes
    ----------
    path
        Where its bytes are.
    names
        The fields of its first record.
    delimiter, quote
        Its dialect.
    records
        How many records it has, the first included.
    inner
        Whether a quoted value contains a line break.
    lead
        How many empty lines come before the first record.
    """

    path: str
    names: tuple[str, ...]
    delimiter: str
    quote: str
    records: int
    inner: bool = False
    lead: int = 0


def unreadable_at(path: str, line: int, what: str, advice: str) -> DataError:
    """Return the error for a malformed line."""
    return DataError(
        f"{path} cannot be read: {what} near line {line}. {advice}",
        code="data.unreadable",
        value=path,
        line=line,
    )


def packing_of(path: str) -> str:
    """Compression of a file by the end of its name, as the engine calls it.

    Examples
    --------
    >>> packing_of("people.csv.gz"), packing_of("people.csv")
    ('gzip', 'none')
    """
    return {".gz": "gzip", ".zst": "zstd"}.get(Path(path).suffix.lower(), "none")


def _stream(path: str) -> Any:
    import pyarrow

    packing = packing_of(path)
    return pyarrow.input_stream(path, compression=None if packing == "none" else packing, buffer_size=1 << 16)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Say which file cannot be read."""
    import pyarrow

    try:
        yield
    except (OSError, EOFError, pyarrow.ArrowException) as cause:
        raise DataError(f"{path} cannot be read: {cause}.", code="data.unreadable", value=path) from cause


def _opened(path: str) -> Any:
    with _reading(path):
        return _stream(path)


def blocks(path: str) -> Iterator[bytes]:
    """Blocks of a file that end with a line, the last one apart; a byte order mark at the start is left out."""
    rest, first = b"", True
    with _opened(path) as file:
        while block := _more(file, path):
            if first:
                block, first = block.removeprefix(BOM), False
            cut = block.rfind(b"\n") + 1
            if cut:
                yield rest + block[:cut]
                rest = block[cut:]
            else:
                rest += block
            if len(rest) > LONGEST:
                yield rest
                rest = b""
    if rest:
        yield rest


def _more(file: Any, path: str) -> bytes:
    with _reading(path):
        found: bytes = file.read(BLOCK)
        return found


class Folder:
    """A private folder for copies, which goes with the object."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="policygraph-")
        self._end = weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


def as_utf8(files: Files, path: str) -> tuple[str, Any]:
    """Path of a text file in UTF-8: its own, or that of a copy that lives as long as the second value."""
    if files.encoding in ("utf-8", "utf-8-sig"):
        return path, None
    keep = Folder()
    copy = os.path.join(keep.name, "copy.csv")
    decoder = codecs.getincrementaldecoder(files.encoding)("strict")
    line = 1
    with _opened(path) as file, open(copy, "w", encoding="utf-8", newline="", opener=_private) as out:
        while True:
            with _reading(path):
                block = file.read(BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as cause:
                good = block[: getattr(cause, "start", 0)]
                raise unreadable_at(
                    path,
                    line + good.count(b"\n"),
                    f"it is not {files.encoding} text",
                    "Say its encoding: [data] encoding in the policy file, or pg.Files.",
                ) from cause
            line += text.count("\n")
            out.write(text)
            if not block:
                return copy, keep


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def first_record(path: str, quote: str) -> bytes:
    """The bytes of the first record of a CSV file that is not an empty line, without its line break."""
    whole = b""
    for block in blocks(path):
        whole = (whole + block).lstrip(b"\r\n") if not whole else whole + block
        at = -1
        while (at := whole.find(b"\n", at + 1)) >= 0:
            if not quote or whole.count(quote.encode(), 0, at) % 2 == 0:
                return whole[:at].removesuffix(b"\r")
        if len(whole) > LONGEST:
            break
    return whole.removesuffix(b"\r")


def _dialect(path: str, shown: str, files: Files) -> tuple[str, tuple[str, ...]]:
    """The delimiter of a CSV file, and the fields of its first record."""
    raw = first_record(path, files.quote)
    try:
        head = raw.decode()
    except UnicodeDecodeError as cause:
        raise _not_utf8(shown, 1) from cause
    parts = head.split(files.quote)[::2] if files.quote else [head]
    outside = "".join(parts)
    met = [sign for sign in DELIMITERS if sign in outside and sign != files.quote]
    if files.delimiter is not None:
        delimiter = files.delimiter
    elif len(met) > 1:
        raise DataError(
            f"{shown}: the line with the names of the columns contains {' and '.join(map(repr, met))}: expected one of them. Say which one "
            'separates values: [data] delimiter = "..." in the policy file, or pg.Files(path, delimiter="...") in Python.',
            code="data.delimiter",
            value=met,
        )
    else:
        delimiter = met[0] if met else ","
    # Whether its quotes are well formed is told by the scan, with the line.
    form: dict[str, Any] = {"quotechar": files.quote} if files.quote else {"quoting": csv.QUOTE_NONE}
    try:
        names = next(csv.reader([head], delimiter=delimiter, doublequote=True, **form), [])
    except csv.Error as cause:
        raise unreadable_at(
            shown, 1, f"it is no CSV ({cause})", "Look for quotes that are not closed."
        ) from cause
    return delimiter, tuple(names)


def read_head(path: str, files: Files, shown: str) -> Sheet:
    """Find the dialect of a CSV file in UTF-8 and the fields of its first record; no further record is looked at."""
    delimiter, names = _dialect(path, shown, files)
    return Sheet(path, names, delimiter, files.quote, 0, lead=_lead(path))


def _lead(path: str) -> int:
    """How many empty lines a file starts with."""
    count = 0
    for block in blocks(path):
        filled = block.lstrip(b"\r\n")
        count += block.count(b"\n", 0, len(block) - len(filled))
        if filled:
            break
    return count


def _not_utf8(path: str, line: int) -> DataError:
    return unreadable_at(
        path,
        line,
        "it is not UTF-8 text",
        'Save it as UTF-8, or say which encoding it has: [data] encoding = "latin-1" (or "cp1252", "utf-16") in the policy file, '
        'pg.Files(path, encoding="latin-1") in Python.',
    )


def scan_csv(sheet: Sheet, shown: str) -> Sheet:
    r"""Hold a CSV file to RFC 4180 and to the dialect of its first record; return how many records it has.

    Parameters
    ----------
    sheet
        What :func:`read_head` found.
    shown
        How errors name the file.

    Raises
    ------
    DataError
        With the line, for: a quote inside a value that is not quoted; text after a closing quote; a quote that is never closed; more or fewer values than
        the first record has; an empty line where that is one value; a line break of another kind than the first one; bytes that are no UTF-8; a zero byte; a record of more than a million bytes.

    Notes
    -----
    Vectorised over blocks that end with a line. Whether a byte is inside quotes is the parity of the quotes before it, since a quote inside a value is doubled.

    Examples
    --------
    >>> keep = Folder()
    >>> path = os.path.join(keep.name, "people.csv")
    >>> _ = Path(path).write_text('sex,age\nF,7\n"it is 5" tall",8\n')
    >>> scan_csv(read_head(path, Files(path), "people.csv"), "people.csv")
    Traceback (most recent call last):
    ...
    policygraph.errors.DataError: people.csv cannot be read: there is text after a closing quote near line 3. ...
    """
    scan = _Scan(shown, sheet.delimiter, sheet.quote, len(sheet.names))
    for block in blocks(sheet.path):
        scan.feed(block)
    scan.close()
    return replace(sheet, records=scan.records, inner=scan.inner)


def scan_lines(path: str) -> Sheet:
    r"""Hold a text file to UTF-8, to lines of moderate length and to one kind of line break; there are no quotes and no columns.

    Examples
    --------
    >>> keep = Folder()
    >>> path = os.path.join(keep.name, "edges.txt")
    >>> _ = Path(path).write_text("a b\n\nb c\n")
    >>> scan_lines(path).records
    2
    """
    scan = _Scan(path, "", "", 0)
    for block in blocks(path):
        scan.feed(block)
    scan.close()
    return Sheet(path, (), "", "", scan.records)


def _note(wrong: list[tuple[int, str, str]], places: Places, what: str, advice: str) -> None:
    """Add the first of some places where something is wrong."""
    if len(places):
        wrong.append((int(places[0]), what, advice))


class _Scan:
    """State of a scan between blocks."""

    def __init__(self, path: str, delimiter: str, quote: str, width: int) -> None:
        self.path, self.width = path, width
        self.delimiter = ord(delimiter) if delimiter else None
        self.quote = ord(quote) if quote else None
        self.crlf: bool | None = None
        self.inner = False
        self.records = 0
        self.lines = 0  # line breaks before this block
        self.odd = 0  # whether this block starts inside quotes
        self.filled = 0  # bytes of the record that this block goes on with
        self.delimiters = 0  # delimiters outside quotes in that record
        self.opened = 0  # line of the last opening quote
        self.decoder = codecs.getincrementaldecoder("utf-8")("strict")

    def feed(self, block: bytes) -> None:
        """Look at the next block."""
        self._check_text(block)
        data = np.frombuffer(block, dtype=np.uint8)
        wrong: list[tuple[int, str, str]] = []
        breaks = np.flatnonzero(data == 10)
        quotes = np.flatnonzero(data == self.quote) if self.quote is not None else np.zeros(0, dtype=np.int64)
        if len(quotes):
            self._check_quotes(data, quotes, wrong)
        ends = self._outside(breaks, quotes)
        self.inner = self.inner or len(ends) < len(breaks)
        self._check_breaks(data, quotes, ends, wrong)
        self._check_width(data, quotes, ends, wrong)
        if wrong:
            at, what, advice = min(wrong)
            # A record is known by the line on which it starts.
            raise unreadable_at(self.path, self.lines + int(np.searchsorted(breaks, at)) + 1, what, advice)
        if len(quotes):
            last = int(quotes[-1 if (self.odd + len(quotes)) % 2 else max(len(quotes) - 2, 0)])
            self.opened = self.lines + int(np.searchsorted(breaks, last)) + 1
        self.odd = (self.odd + len(quotes)) % 2
        self.lines += len(breaks)

    def close(self) -> None:
        """Look at what the end leaves open."""
        if self.odd:
            raise unreadable_at(self.path, self.opened, "a quote is never closed", "Close it.")
        try:
            self.decoder.decode(b"", final=True)
        except UnicodeDecodeError as cause:
            raise _not_utf8(self.path, self.lines + 1) from cause
        if self.filled:
            if self.width and self.delimiters + 1 != self.width:
                raise unreadable_at(self.path, self.lines + 1, *self._uneven(self.delimiters + 1))
            self.records += 1

    def _check_text(self, block: bytes) -> None:
        zero = block.find(b"\0")
        if zero >= 0:
            raise unreadable_at(
                self.path, self.lines + block.count(b"\n", 0, zero) + 1, "there is a zero byte", "Remove it."
            )
        if block.isascii() and not self.decoder.getstate()[0]:
            return
        try:
            self.decoder.decode(block)
        except UnicodeDecodeError as cause:
            line = self.lines + block.count(b"\n", 0, max(cause.start, 0)) + 1
            raise _not_utf8(self.path, line) from cause

    def _outside(self, places: Places, quotes: Places) -> Places:
        """Those places that are not inside quotes."""
        if not len(quotes):
            return places[:0] if self.odd else places
        kept: Places = places[(self.odd + np.searchsorted(quotes, places)) % 2 == 0]
        return kept

    def _check_quotes(self, data: Bytes, quotes: Places, wrong: list[tuple[int, str, str]]) -> None:
        opening = (self.odd + np.arange(len(quotes))) % 2 == 0
        before = np.where(quotes > 0, data[quotes - 1], 10)
        if self.filled:
            # The block goes on in the middle of a line that is too long to be one.
            before = np.where(quotes == 0, 0, before)
        good = (before == 10) | (before == self.delimiter) | (before == self.quote)
        stray = quotes[opening & ~good]
        _note(
            wrong,
            stray,
            "there is a quote inside a value",
            "Enclose the value in quotes and double those inside.",
        )
        padded = np.concatenate([data, np.array([10, 10], dtype=np.uint8)])
        after, then = padded[quotes + 1], padded[quotes + 2]
        good = (
            (after == 10) | (after == self.delimiter) | (after == self.quote) | ((after == 13) & (then == 10))
        )
        stray = quotes[~opening & ~good]
        _note(
            wrong, stray, "there is text after a closing quote", "Double the quotes that belong to a value."
        )

    def _check_breaks(
        self, data: Bytes, quotes: Places, ends: Places, wrong: list[tuple[int, str, str]]
    ) -> None:
        all_returns = np.flatnonzero(data == 13)
        returns = self._outside(all_returns, quotes)
        self.inner = self.inner or len(returns) < len(all_returns)
        if self.crlf is None and len(ends):
            self.crlf = bool(ends[0] > 0 and data[ends[0] - 1] == 13)
        if self.crlf:
            bare = ends[(ends == 0) | (data[ends - 1] != 13)]
            lone = returns[~np.isin(returns + 1, ends)]
        else:
            bare, lone = ends[:0], returns
        what = "there is another line break than after the first line"
        advice = "Use one kind in the whole file, and enclose values that contain one in quotes."
        for places in (bare, lone):
            _note(wrong, places, what, advice)

    def _check_width(
        self, data: Bytes, quotes: Places, ends: Places, wrong: list[tuple[int, str, str]]
    ) -> None:
        starts = (
            np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
            if len(ends)
            else np.zeros(0, dtype=np.int64)
        )
        lengths = ends - starts
        if self.crlf:
            lengths = np.maximum(lengths - 1, 0)
        if self.delimiter is None:
            at_signs = np.zeros(0, dtype=np.int64)
        else:
            at_signs = self._outside(np.flatnonzero(data == self.delimiter), quotes)
        upto = np.searchsorted(at_signs, ends)
        signs = np.diff(np.concatenate([[0], upto]))
        if len(ends):
            signs[0] += self.delimiters
            lengths[0] += self.filled
        filled = lengths > 0
        if self.width:
            uneven = np.flatnonzero(filled & (signs + 1 != self.width))
            if len(uneven):
                first = int(uneven[0])
                wrong.append((int(starts[first]), *self._uneven(int(signs[first]) + 1)))
        if self.width == 1:
            # To the engine it is a record, to others it is none.
            what = "there is an empty line, which may be a record where there is one column"
            _note(wrong, starts[~filled], what, "Remove it, or enclose the empty value in quotes.")
        what = f"a record has more than {LONGEST:,} bytes"
        _note(wrong, starts[lengths > LONGEST], what, "Look for quotes that are not closed.")
        self.records += int(np.count_nonzero(filled))
        tail = int(ends[-1]) + 1 if len(ends) else 0
        rest = len(data) - tail
        self.filled = rest + (0 if len(ends) else self.filled)
        self.delimiters = (
            len(at_signs) - (int(upto[-1]) if len(ends) else 0) + (0 if len(ends) else self.delimiters)
        )
        if self.filled > LONGEST:
            wrong.append((tail, what, "Look for quotes that are not closed."))

    def _uneven(self, met: int) -> tuple[str, str]:
        return (
            "its lines are of unequal length",
            f"Give every line a value for each column ({self.width} in the first line, {met} here), and enclose values that contain the delimiter in quotes.",
        )
