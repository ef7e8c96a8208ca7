"""The application, its exit statuses and how errors are shown. Owns ``app`` and ``run``."""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
from contextlib import ExitStack, redirect_stdout, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from policygraph.cli import budget, policies, releases, starting, stopping
from policygraph.cli.common import Commands, check_target, print_json
from policygraph.cli.progress import set_verbose
from policygraph.cli.stopping import STOPPED
from policygraph.errors import InputError, PolicyGraphError, RefusedError, shown
from policygraph.logs import LOGGER, JsonLines, event
from policygraph.version import __version__

EPILOG = (
    "Exit status: 0 success, 2 bad input or a refusal to guess, 3 the budget does not allow it, 4 audit found a leak, 5 budget check has an "
    "alert, 1 an internal error, 130 stopped with Ctrl-C. With --verbose, any command says each stage on a line of standard error. "
    "Example: policygraph sensitivity policies/census-margins.toml"
)

app = Commands(
    name="policygraph",
    help="How much noise a privacy policy really needs, and releases made with it.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Help is shown as it is written: as markup, [cube] would be a colour and vanish.
    rich_markup_mode=None,
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
    log: Path | None = typer.Option(
        None,
        "--log",
        help="Append what happens to this file, one JSON object a line; no true value is in it. Works with every command, anywhere in it.",
        show_default=False,
    ),
    quiet: bool = typer.Option(
        False,
        "--quiet",
        help="Print nothing but errors, warnings and --json. Works with every command, anywhere in it.",
    ),
) -> None:
    """How much noise a privacy policy really needs, and releases made with it."""
    if log is not None:
        check_target(log)
        try:
            handler = logging.FileHandler(log, encoding="utf-8")
        except OSError as cause:
            raise InputError(
                f"cannot write {log}: {cause.strerror or cause}.", code="cli.target", value=str(log)
            ) from cause
        handler.setFormatter(JsonLines())
        LOGGER.addHandler(handler)
        LOGGER.setLevel(logging.DEBUG)


starting.register(app)
policies.register(app)
releases.register(app)
app.add_typer(budget.app, name="budget")


def run(arguments: list[str]) -> int:
    """Run the command with these arguments and return its exit status.

    With ``--json`` a failure is one JSON object on the output as well, so that scripts need not read the text.
    """
    arguments, before = _in_front(arguments), list(LOGGER.handlers)
    as_json = "--json" in arguments
    # For every command, wherever it stands.
    set_verbose("--verbose" in arguments)
    arguments = [each for each in arguments if each != "--verbose"]
    helps = {"--help", "-h", "--version"} & set(arguments)
    level = LOGGER.level
    with ExitStack() as stack:
        if "--quiet" in arguments and not as_json and not helps:
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nowhere))
        try:
            status = _run(arguments, as_json)
            event("ended", command=_command(arguments), status=status)
        finally:
            for handler in [each for each in LOGGER.handlers if each not in before]:
                LOGGER.removeHandler(handler)
                handler.close()
            LOGGER.setLevel(level)
    return status


def _in_front(arguments: list[str]) -> list[str]:
    """The arguments with ``--log FILE`` and ``--quiet`` first, where they may be given for any command.

    Examples
    --------
    >>> _in_front(["release", "p.toml", "--log", "x", "--quiet", "--", "--log"])
    ['--log', 'x', '--quiet', 'release', 'p.toml', '--', '--log']
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments[:end])
    for word in words:
        if word == "--log":
            front += [word, *[value for value in [next(words, None)] if value is not None]]
        elif word == "--quiet" or word.startswith("--log="):
            front.append(word)
        else:
            rest.append(word)
    return [*front, *rest, *arguments[end:]]


def _command(arguments: list[str]) -> str:
    """The name of the command among the arguments; its values are not for a log."""
    known = {each.name or each.callback.__name__ for each in app.registered_commands if each.callback}
    inner = {each.name or each.callback.__name__ for each in budget.app.registered_commands if each.callback}
    words = [word for word in arguments if not word.startswith("-")]
    for first, second in pairwise([*words, ""]):
        if first == "budget":
            return f"budget {second}" if second in inner else "budget"
        if first in known:
            return first
    return ""


def _run(arguments: list[str], as_json: bool) -> int:
    try:
        status = app(arguments, prog_name="policygraph", standalone_mode=False)
    except BaseException as fault:
        if isinstance(fault, (KeyboardInterrupt, typer.Abort)) or stopping.asked():
            return _stopped(as_json)
        if isinstance(fault, SystemExit):
            return _left(fault)
        if isinstance(fault, BrokenPipeError):
            return _unread()
        # Without the exception itself: its text may quote a record.
        LOGGER.error("failed", extra={"fields": {"error": getattr(fault, "code", type(fault).__name__)}})
        if not isinstance(fault, Exception) or os.environ.get("POLICYGRAPH_DEBUG"):
            raise
        return _failed(fault, as_json)
    return (
        _stopped(as_json)
        if status == STOPPED or stopping.asked()
        else status
        if isinstance(status, int)
        else 0
    )


def finish(status: int) -> int:
    """Write out what is still on its way to the output; a failure of that is a failure of the command."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _unread()
    except (OSError, ValueError, AttributeError) as cause:
        if sys.stdout is None or sys.stdout.closed:
            return status
        _unread()
        typer.echo(f"policygraph: the output could not be written ({cause}). [cli.system]", err=True)
        return status or 2
    return status


def _stopped(as_json: bool) -> int:
    typer.echo("policygraph: stopped", err=True)
    if as_json:
        _json_error("stopped", "stopped with Ctrl-C", [])
    return STOPPED


def _left(stop: SystemExit) -> int:
    """The status of a command that left by itself; a reader who has seen enough is no failure."""
    cause = stop.__context__
    if isinstance(cause, OSError) and cause.errno == errno.EPIPE:
        return _unread()
    return stop.code if isinstance(stop.code, int) else int(stop.code is not None)


def _unread() -> int:
    """Nobody reads the output: what Python still holds of it goes nowhere, without a complaint at the end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno())  # type: ignore[union-attr]
    return 0


def _failed(fault: Exception, as_json: bool) -> int:
    """Say what went wrong, and whose fault it is."""
    # The argument reader's own errors; which class they are depends on its version.
    if hasattr(fault, "show") and hasattr(fault, "exit_code"):
        if hasattr(fault, "message"):
            fault.message = _cut(fault.message)
        fault.show()
        if as_json:
            _json_error("cli.usage", _cut(str(fault)), [])
        return int(fault.exit_code)
    refusal = _refusal(fault)
    if refusal is not None:
        text = _cut(str(refusal))
        typer.echo(f"policygraph: {text} [{refusal.code}]", err=True)
        if as_json:
            problems = getattr(refusal, "problems", [])
            _json_error(
                refusal.code,
                text,
                [{key: _cut(value) for key, value in vars(problem).items()} for problem in problems],
            )
        return refusal.exit_status
    text = f"an internal error, not a mistake in your input: {type(fault).__name__}: {fault}"
    typer.echo(f"policygraph: {text}\nSet POLICYGRAPH_DEBUG=1 to see where, and please report it.", err=True)
    if as_json:
        _json_error("fault", text, [])
    return 1


def _cut(text: Any) -> Any:
    """A message without names of thousands of characters: their beginning is enough to know them by."""
    if not isinstance(text, str):
        return text
    return re.sub(r"\S{300,}", lambda long: long[0][:200] + "...", text)


def _refusal(fault: Exception) -> PolicyGraphError | None:
    """An error raised on purpose, or one of the machine in the words of one; None for an internal error."""
    if isinstance(fault, PolicyGraphError):
        return fault
    if isinstance(fault, OSError):
        where = "" if fault.filename is None else f"{shown(fault.filename, 200)}: "
        return InputError(
            f"{where}{fault.strerror or fault}. Check the path, its permissions and the room on the disk.",
            code="cli.system",
        )
    if isinstance(fault, UnicodeEncodeError):
        return InputError(
            f"{shown(fault.object)} is not valid UTF-8: expected a name without broken characters.",
            code="cli.text",
        )
    if isinstance(fault, MemoryError):
        return RefusedError(
            "there is not enough memory for this policy, these data or these options on this machine. Use fewer or coarser "
            "attributes, or a larger machine.",
            code="cli.memory",
        )
    return None


def _json_error(code: str, message: str, problems: list[dict[str, Any]]) -> None:
    print_json({"error": {"code": code, "message": message, "problems": problems}})
