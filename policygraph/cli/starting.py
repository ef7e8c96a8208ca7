"""Commands to start with: init proposes a policy for data, demo makes up data for a policy."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

import typer

from policygraph.cli import stopping
from policygraph.cli.common import AS_JSON, POLICY_FILE, check_target, print_json, writing
from policygraph.cli.progress import stage
from policygraph.errors import InputError

SOME = 8
"""Labels that a question shows."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        short_help="Propose a policy file for a data set.",
        epilog="Example: policygraph init people.csv --out policy.toml",
    )(init)
    app.command(
        short_help="Make up data to try a policy file on.",
        epilog="Example: policygraph demo policies/vaccination.toml --out people.csv",
    )(demo)
    app.command(
        short_help="Open a local page to work on, from a data file to a report.",
        epilog="Example: policygraph studio --ledger budget.db",
    )(studio)


def init(
    data: str = typer.Argument(
        ...,
        metavar="DATA",
        help="A CSV, Parquet, JSON or Excel file, or a pattern in quotes.",
        show_default=False,
    ),
    out: Path = typer.Option(
        Path("policy.toml"), "--out", help="Policy file to write; lists of labels go beside it."
    ),
    yes: bool = typer.Option(False, "--yes", help="Read all columns and take every proposal; ask nothing."),
    encoding: str | None = typer.Option(
        None, "--encoding", help="Encoding of a text file, such as latin-1; by default utf-8, or what fits."
    ),
    delimiter: str | None = typer.Option(
        None, "--delimiter", help="What separates the values of a CSV line."
    ),
    sheet: str | None = typer.Option(None, "--sheet", help="Sheet of an Excel workbook."),
    published: list[str] = typer.Option(
        [],
        "--published",
        help="A table that is published already, as a CSV or Excel file with the columns of the data and one of counts; can be given several times.",
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace files that are there."),
    as_json: bool = AS_JSON,
) -> None:
    """Propose a commented policy file: labels, bins, rules for unknown values, what to state and what to release.

    Only columns that you confirm are read. What is taken from the data is marked in the file: a policy file is public.
    """
    from policygraph.files import load
    from policygraph.files.beginning import Beginning, rare, warnings
    from policygraph.files.proposal import Attribute
    from policygraph.output import write_all

    check_target(out)
    reading: dict[str, Any] = {
        key: value
        for key, value in (("encoding", encoding), ("delimiter", delimiter), ("sheet", sheet))
        if value is not None
    }
    with stage(f"opening {data}"):
        begun = Beginning.of(data, reading)
    for at, name in enumerate(begun.names):
        if not yes and not _confirm(f"Read the values of {name!r} ({at + 1} of {len(begun.names)})?"):
            begun.leave(name, "it was not read")
            continue
        with stage(f"looking at {name} ({at + 1} of {len(begun.names)})"):
            made = begun.look(name)
        if not yes and made.used:
            values: Any = made.labels or made.edges or ()
            shown = ", ".join(map(str, values[:SOME])) + (", ..." if len(values) > SOME else "")
            if made.rare:
                typer.echo(f"  {rare(made)}", err=True)
            if not _confirm(f"  {made.why}: {shown}\n  Put it into the policy?"):
                made = Attribute(name, "it is not wanted")
        elif not yes:
            typer.echo(f"  left out: {made.why}", err=True)
        begun.attributes.append(made)
    begun.check_rows()
    begun.publish(published, out.parent)
    proposal, attributes, reading = begun.propose(), begun.attributes, begun.reading
    targets = {out: proposal.text} | {out.parent / name: content for name, content in proposal.lists.items()}
    there = [str(path) for path in targets if os.path.lexists(path)]
    if there and not overwrite:
        raise InputError(
            f"{', '.join(there)}: there already. Name another --out, or say --overwrite.",
            code="init.exists",
            value=there,
        )
    with writing(out):
        write_all({path: _writer(content) for path, content in targets.items()})
    load(out)
    for warning in warnings(attributes, str(out)):
        typer.echo(warning, err=True)
    if as_json:
        print_json(
            {
                "written": [str(path) for path in targets],
                "attributes": [
                    {"name": each.name, "used": each.used, "why": each.why, "unit": each.unit}
                    for each in attributes
                ],
                "data": reading,
            }
        )
        return
    for each in attributes:
        what = f"{each.size:,} values" if each.used else "left out"
        typer.echo(f"{each.name}: {what} ({each.why})")
    typer.echo("written: " + ", ".join(map(str, targets)))
    typer.echo(
        f"Read {out} now: labels marked FROM DATA are published with it. Then: policygraph plan {out} --error 50, and "
        f"policygraph release {out} --data {data} --epsilon 1 --out out/ --report"
    )


def demo(
    file: str = POLICY_FILE,
    out: Path = typer.Option(..., "--out", help="CSV file to write."),
    rows: int = typer.Option(10_000, "--rows", help="How many records, or edges of a network."),
    seed: int = typer.Option(0, "--seed", min=0, help="The same seed makes the same data."),
) -> None:
    """Make up records, or the edges of a network, that a policy file can be tried on. Nothing in them is about anybody."""
    from pyarrow import csv

    from policygraph.demo import made_up
    from policygraph.files import load
    from policygraph.output import replacing

    check_target(out)
    made = made_up(load(file), rows, seed)
    with writing(out), replacing(out) as draft:
        csv.write_csv(made, draft)
    typer.echo(f"written: {out}, {made.num_rows:,} made-up records")


def studio(
    port: int = typer.Option(0, "--port", min=0, max=65535, help="Port to listen on; by default a free one."),
    no_browser: bool = typer.Option(False, "--no-browser", help="Print the address and open no browser."),
    ledger: Path = typer.Option(
        Path("budget.db"), "--ledger", help="Budget file that releases are charged to."
    ),
) -> None:
    """Open a local page to work on: choose a file, state what is public, see what it needs, release, read the report.

    It listens on this machine only, at an address with a token, and talks to nothing else. Ctrl-C ends it, and removes what was sent to it; the ledger keeps what was released.
    """
    from policygraph.studio import Studio

    check_target(ledger)
    made = Studio(ledger.absolute(), port)
    typer.echo(made.address)
    typer.echo("Ctrl-C ends it.", err=True)
    sys.stdout.flush()
    if not no_browser:
        webbrowser.open(made.entrance().as_uri())
    made.run()


def _confirm(question: str) -> bool:
    """Ask, where there is somebody to answer."""
    try:
        return typer.confirm(question, default=True, err=True)
    except typer.Abort:
        if sys.stdin.isatty() or stopping.asked():
            raise
        typer.echo(err=True)
        raise InputError(
            "nobody answers: the input ended. Say --yes to read all columns and to take every proposal, or run it in a terminal.",
            code="init.answer",
        ) from None


def _writer(content: str) -> Any:
    return lambda path: path.write_text(content, encoding="utf-8")
