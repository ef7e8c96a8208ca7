"""The command ``policygraph``; start at ``app``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0 success, 2 bad input, 3 refused budget, 1 a fault of ours, 130 stopped."""
    from policygraph.cli.app import run

    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
