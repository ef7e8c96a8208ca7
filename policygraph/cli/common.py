"""What the commands share: reading a policy file, progress, JSON. Imports ``public.files`` when used."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

__all__ = ["POLICY_FILE", "TIME_LIMIT", "one_query", "print_json", "stage"]

POLICY_FILE = typer.Argument(..., metavar="FILE", help="A policy file (TOML).", show_default=False)
TIME_LIMIT = typer.Option(
    120.0, "--time-limit", min=0.0, help="Seconds a search may take before it settles for a bound."
)


def one_query(path: str) -> tuple[Any, Any]:
    """Read a policy file: the file and the one query that it releases."""
    from policygraph.public.files import load

    file = load(path)
    return file, file.query


def print_json(value: Any) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def stage(text: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done on a terminal; say nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield lambda now: status.update(now)
