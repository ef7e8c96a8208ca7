"""Commands to start with: init proposes a policy for data, demo makes up data for a policy."""

from __future__ import annotations

import os
import sys
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
    from policygraph.curator.counting.reading import Files, suffix_of
    from policygraph.curator.profiling import columns_of, each_once, encoding_of, profile_columns
    from policygraph.files import load
    from policygraph.files.proposal import Attribute, decide, may_count, propose
    from policygraph.output import write_all

    check_target(out)
    reading: dict[str, Any] = {
        key: value
        for key, value in (("encoding", encoding), ("delimiter", delimiter), ("sheet", sheet))
        if value is not None
    }
    text = suffix_of(data) in (".csv", ".tsv", ".txt") and os.path.isfile(data)
    if text and encoding is None and (found := encoding_of(data)) is not None:
        reading["encoding"] = found
    with stage(f"opening {data}"):
        source, names = columns_of(Files(data, **reading))
    attributes: list[Attribute] = []
    counts: list[str] = []
    for at, name in enumerate(names):
        if not yes and not _confirm(f"Read the values of {name!r} ({at + 1} of {len(names)})?"):
            attributes.append(Attribute(name, "it was not read"))
            continue
        with stage(f"looking at {name} ({at + 1} of {len(names)})"):
            [column] = profile_columns(source, [name])
        if may_count(column) and len(names) > 1:
            counts.append(name)
        made = decide(column)
        if not yes and made.used:
            values: Any = made.labels or made.edges or ()
            shown = ", ".join(map(str, values[:SOME])) + (", ..." if len(values) > SOME else "")
            if not _confirm(f"  {made.why}: {shown}\n  Put it into the policy?"):
                made = Attribute(name, "it is not wanted")
        elif not yes:
            typer.echo(f"  left out: {made.why}", err=True)
        attributes.append(made)
    read = [each.name for each in attributes if each.used and each.name not in counts]
    if len(counts) == 1 and read and each_once(source, read):
        raise InputError(
            f"{data} looks like a table of counts: {counts[0]!r} is a count, and no two rows agree on {', '.join(read[:6])}{', ...' if len(read) > 6 else ''}. Expected one "
            f"row for each person, since a policy for these rows would hide one row, and not one person. Repeat each row {counts[0]!r} times (in pandas: "
            f"table.loc[table.index.repeat(table[{counts[0]!r}])]), or release counts in Python: pg.release takes them in the order of the domain. "
            "If each row is a person all the same, rename that column.",
            code="init.counts",
            value=counts[0],
        )
    stated = _published(published, attributes, out)
    try:
        proposal = propose(attributes, data=Path(data).name, reading=reading, published=stated)
    except ValueError as cause:
        raise InputError(
            f"{data}: {cause}: "
            + "; ".join(f"{each.name}: {each.why}" for each in attributes)
            + ". Write a policy file by hand.",
            code="init.nothing",
        ) from cause
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


def _published(files: list[str], attributes: list[Any], out: Path) -> dict[str, list[str]]:
    """Take the labels of published tables; the files as the policy file will name them, and the attributes of each."""
    from policygraph.files.proposal import fitted
    from policygraph.files.sheets import SheetError, read_head

    stated: dict[str, list[str]] = {}
    place = {each.name: at for at, each in enumerate(attributes)}
    for file in files:
        try:
            for name, labels in read_head(file, list(place)).items():
                attributes[place[name]] = fitted(attributes[place[name]], labels, Path(file).name)
                stated.setdefault(Path(os.path.relpath(file, out.parent)).as_posix(), []).append(name)
        except (SheetError, ValueError) as cause:
            raise InputError(
                f"{file}: {str(cause).removeprefix(f'{file}: ').rstrip('.')}. Correct the file, or state the table in the policy file by hand.",
                code="init.published",
                value=file,
            ) from cause
    return stated


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
