"""The application, its exit statuses and how errors are shown. Owns ``app`` and ``run``; imports the commands."""

from __future__ import annotations

import os
import sys

import typer

from policygraph.cli import audits, budget, explaining, policies, releases
from policygraph.errors import PolicyGraphError
from policygraph.version import __version__

__all__ = ["app", "run"]

EPILOG = (
    "Exit status: 0 success, 2 bad input or a refusal to guess, 3 the budget does not allow it, 1 a fault of ours. "
    "Example: policygraph sensitivity policies/census-margins.toml"
)

app = typer.Typer(
    name="policygraph",
    help="How much noise a privacy policy really needs, and releases made with it.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"policygraph {__version__}")
        raise typer.Exit()


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """How much noise a privacy policy really needs, and releases made with it."""


policies.register(app)
explaining.register(app)
releases.register(app)
audits.register(app)
app.add_typer(budget.app, name="budget")


def run(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit status."""
    try:
        app(arguments, prog_name="policygraph")
    except SystemExit as stop:  # the way the argument reader ends, after it has shown its own errors
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except PolicyGraphError as refusal:
        typer.echo(f"policygraph: {refusal} [{refusal.code}]", err=True)
        return refusal.exit_status
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as fault:
        if os.environ.get("POLICYGRAPH_DEBUG"):
            raise
        typer.echo(
            f"policygraph: a fault of ours, not of your input: {type(fault).__name__}: {fault}\n"
            "Set POLICYGRAPH_DEBUG=1 to see where, and please report it.",
            err=True,
        )
        return 1
    return 0
