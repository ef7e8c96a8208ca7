"""The command ``policygraph``; start at ``app``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command and exit: 0 success, 2 bad input, 3 refused budget, 4 a leak, 1 an internal error, 130 stopped."""
    try:
        from policygraph.cli.stopping import guarded, leave

        status = guarded(lambda: _work(arguments))
    except KeyboardInterrupt:
        sys.exit(130)
    leave(status)


def _work(arguments: list[str] | None) -> int:
    # Most of the time before a command starts goes into imports, and Ctrl-C may come while they run.
    from policygraph.cli.app import finish, run

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A label that the terminal cannot show is shown by its code, and is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    return finish(run(sys.argv[1:] if arguments is None else arguments))
