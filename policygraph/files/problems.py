"""What is wrong with a policy file, and where. Owns :class:`FileProblem`, :class:`PolicyFileError`, ``Places``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from policygraph.errors import InputError
from policygraph.errors import shown as shown_value

Path = tuple[str | int, ...]
SHOWN = 100
"""Mistakes of a file that a message lists; all of them are in ``problems``."""


@dataclass(frozen=True)
class FileProblem:
    """One mistake of a policy file.

    Attributes
    ----------
    path
        Where it is, such as ``public[2].cuboid[0]``; empty for the file as a whole.
    message
        The value that was met, what was expected, what to do.
    line
        Line of the file, counted from 1, if it is known.
    """

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line is not None else ""
        place = ", ".join(part for part in (line, self.path) if part)
        return f"{place}: {self.message}" if place else self.message


class PolicyFileError(InputError):
    r"""A policy file that cannot be used; says everything that is wrong with it.

    Attributes
    ----------
    problems
        All mistakes that were found, in the order of the file.

    Examples
    --------
    >>> from policygraph.files import loads
    >>> loads('[domain]\nsex = ["F", "M"]\n[[public]]\ncuboid = ["six"]\n')
    Traceback (most recent call last):
    ...
    policygraph.files.problems.PolicyFileError: the policy has 1 mistake
      line 4, public[0].cuboid[0]: 'six' is not an attribute: expected one of sex. Did you mean 'sex'?
    """

    def __init__(self, source: str, problems: list[FileProblem]) -> None:
        self.problems = problems
        count = f"{len(problems)} mistake{'s' if len(problems) != 1 else ''}"
        lines = "\n".join(f"  {problem}" for problem in problems[:SHOWN])
        if len(problems) > SHOWN:
            lines += f"\n  and {len(problems) - SHOWN:,} more"
        super().__init__(f"{source} has {count}\n{lines}", code="file.problems", problems=problems)


def path_text(path: Path) -> str:
    """Write a path as users read it.

    Examples
    --------
    >>> path_text(("public", 2, "cuboid", 0)), path_text(("domain", "two words"))
    ('public[2].cuboid[0]', 'domain."two words"')
    """
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        else:
            out += ("." if out else "") + (part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else f'"{part}"')
    return out


def shown(value: Any) -> str:
    """Print a value of a file in one short line.

    Examples
    --------
    >>> shown(True), shown("F"), shown(list(range(100)))
    ('true', "'F'", '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16...')
    """
    return str(value).lower() if isinstance(value, bool) else shown_value(value)


def near(value: Any, known: Any) -> str:
    """Suggest a known name that looks like the one met.

    Examples
    --------
    >>> near("cubiod", ["cuboid", "count"]), near(3, ["3", "4"])
    (" Did you mean 'cuboid'?", " Did you mean '3'?")
    """
    texts = {str(name): name for name in list(known)[:5000]}
    if str(value) in texts:
        return f" Did you mean {shown(texts[str(value)])}?"
    lowered = {text.lower(): name for text, name in texts.items()}
    found = get_close_matches(str(value).lower(), list(lowered), n=1)
    return f" Did you mean {shown(lowered[found[0]])}?" if found else ""


class Problems:
    """A list of problems that knows where in the text they are."""

    def __init__(self, text: str) -> None:
        self.places = Places(text)
        self.found: list[tuple[Path, str]] = []
        self._at: set[Path] = set()
        self._around: set[Path] = set()

    def add(self, path: Path, message: str) -> None:
        """Note a problem; one place keeps its first."""
        if path not in self._at:
            self.found.append((path, message))
            self._at.add(path)
            self._around.update(path[:length] for length in range(len(path) + 1))

    def under(self, *path: str | int) -> bool:
        """Whether a problem was found at a place or inside it."""
        return path in self._around

    def listed(self) -> list[FileProblem]:
        """Return all of them, in the order of the file."""
        out = [FileProblem(path_text(path), message, self.places.line(path)) for path, message in self.found]
        return sorted(out, key=lambda problem: problem.line or 0)


class Places:
    """Finds the line of a key in TOML text.

    The standard reader keeps no positions. A key is on the line after which the file, cut off there, first
    contains it: the reader itself finds the place, and nothing is parsed twice by other rules.
    """

    MOST = 400
    START = re.compile(r"""^\s*(\[\[?[^\[\]]+\]\]?\s*(#.*)?$|[A-Za-z0-9_"'.\- ]+=)""")

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)

    @cached_property
    def _prefixes(self) -> list[tuple[int, dict[str, Any]]]:
        """Each statement of the file: its line, and what the file holds up to its end."""
        starts = [number for number, line in enumerate(self.lines) if self.START.match(line)]
        if len(starts) > self.MOST:
            return []
        out, pending = [], None
        for number, end in zip(starts, [*starts[1:], len(self.lines)], strict=True):
            pending = number if pending is None else pending
            try:
                out.append((pending + 1, tomllib.loads("".join(self.lines[:end]))))
                pending = None
            except tomllib.TOMLDecodeError:
                # Cut inside a value of several lines: the statement goes on.
                continue
        return out

    def line(self, path: Path) -> int | None:
        """Return the line of a key, or of the closest thing around it."""
        for length in range(len(path), 0, -1):
            for line, held in self._prefixes:
                if _holds(held, path[:length]):
                    return line
        return None


def inside(value: Any, part: str | int) -> tuple[bool, Any]:
    """Go one step down into read TOML: whether there is such a part, and the part."""
    found = part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
    if not found or (isinstance(value, list) and not 0 <= int(part) < len(value)):
        return False, None
    return True, value[part]


def _holds(value: Any, path: Path) -> bool:
    found = True
    for part in path:
        if found:
            found, value = inside(value, part)
    return found
