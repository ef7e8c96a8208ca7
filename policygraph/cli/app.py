"""The application, its exit statuses and how errors are shown. Owns ``app`` and ``run``; imports the commands."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer

from policygraph.cli import asking, audits, budget, comparing, explaining, graphs, policies, releases
from policygraph.cli.common import print_json
from policygraph.errors import PolicyGraphError
from policygraph.public.files.problems import PolicyFileError
from policygraph.version import __version__

__all__ = ["app", "run"]

STOPPED = 130
EPILOG = (
    "Exit status: 0 success, 2 bad input or a refusal to guess, 3 the budget does not allow it, 1 a fault of ours, 130 "
    "stopped with Ctrl-C. "
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
asking.register(app)
graphs.register(app)
audits.register(app)
comparing.register(app)
app.add_typer(budget.app, name="budget")


def run(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit status.

    With ``--json`` a failure is one JSON object on the output as well, so that scripts need not read the text.
    """
    as_json = "--json" in arguments
    try:
        status = app(arguments, prog_name="policygraph", standalone_mode=False)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except PolicyGraphError as refusal:
        typer.echo(f"policygraph: {refusal} [{refusal.code}]", err=True)
        if as_json:
            problems = refusal.problems if isinstance(refusal, PolicyFileError) else []
            _json_error(refusal.code, str(refusal), [vars(problem) for problem in problems])
        return refusal.exit_status
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        status = STOPPED
    except Exception as fault:
        # The argument reader's own errors; which class they are depends on its version.
        if hasattr(fault, "show") and hasattr(fault, "exit_code"):
            fault.show()
            if as_json:
                _json_error("cli.usage", str(fault), [])
            return int(fault.exit_code)
        if os.environ.get("POLICYGRAPH_DEBUG"):
            raise
        text = f"a fault of ours, not of your input: {type(fault).__name__}: {fault}"
        typer.echo(
            f"policygraph: {text}\nSet POLICYGRAPH_DEBUG=1 to see where, and please report it.", err=True
        )
        if as_json:
            _json_error("fault", text, [])
        return 1
    if status == STOPPED:
        typer.echo("policygraph: stopped", err=True)
    return status if isinstance(status, int) else 0


def _json_error(code: str, message: str, problems: list[dict[str, Any]]) -> None:
    print_json({"error": {"code": code, "message": message, "problems": problems}})
