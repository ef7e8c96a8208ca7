"""Files that are given away: whole or not at all. Owns :func:`replacing` and :func:`write_all`.

A file is written under a temporary name beside its place, synchronised to the disk, and renamed. A full disk or a crash leaves what was there
before; nothing is written through a link.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from policygraph.errors import InputError


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place where no file is written: a link, which might lead anywhere, and a folder.

    Raises
    ------
    InputError
        With the code ``output.place``.
    """
    target = Path(path)
    if target.is_symlink():
        raise InputError(
            f"cannot write {target}: it is a link, and nothing is written through links. Name the file that it leads to, or remove the link.",
            code="output.place",
            value=str(target),
        )
    if target.is_dir():
        raise InputError(f"cannot write {target}: it is a folder.", code="output.place", value=str(target))


def write_all(writers: Mapping[Path, Callable[[Path], Any]]) -> None:
    """Write several files: all of them completely before the first one appears.

    Parameters
    ----------
    writers
        For each place what writes a file to the path that it is given.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_all({folder / "a.txt": lambda path: path.write_text("a"), folder / "b.txt": lambda path: 1 / 0})
    Traceback (most recent call last):
    ...
    ZeroDivisionError: division by zero
    >>> list(folder.iterdir())
    []
    """
    drafts: dict[Path, Path] = {}
    try:
        for target in writers:
            check_place(target)
        for target, write in writers.items():
            draft = _draft(target)
            if draft is None:
                write(target)
                continue
            drafts[target] = draft
            write(draft)
            _sync(draft)
        for target in list(drafts):
            check_place(target)
            os.replace(drafts[target], target)
            del drafts[target]
        for folder in {target.parent for target in writers}:
            _sync(folder)
    finally:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a draft, which takes the place of the file when the block ends well, and is gone when it does not.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as draft:
    ...     _ = draft.write_text("all of it")
    >>> [each.name for each in folder.iterdir()], (folder / "a.txt").read_text()
    (['a.txt'], 'all of it')
    """
    target = Path(path)
    check_place(target)
    draft = _draft(target)
    if draft is None:
        yield target
        return
    try:
        yield draft
        _sync(draft)
        check_place(target)
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    _sync(target.parent)


def _draft(target: Path) -> Path | None:
    """Make an empty file beside a place, which may take it later; None for a device or a pipe, which nothing can replace."""
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        return None
    draft = target.with_name(f".{target.stem[:80]}.{secrets.token_hex(8)}.tmp{target.suffix}")
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    return draft


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name != "posix" and path.is_dir():  # pragma: no cover
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        # Some file systems do not synchronise folders; their names are then as safe as they can be.
        if path.is_dir():
            with suppress(OSError):
                os.fsync(handle)
        else:
            os.fsync(handle)
    finally:
        os.close(handle)
