"""Commands on a ledger: budget show, set, history, export."""

from __future__ import annotations

from pathlib import Path

import typer

from policygraph.cli.common import print_json
from policygraph.errors import InputError

__all__ = ["app"]

app = typer.Typer(help="Look at and limit what may be spent on a data set.", no_args_is_help=True)

LEDGER = typer.Argument(..., metavar="LEDGER", help="The budget file.", show_default=False)
AS_JSON = typer.Option(False, "--json", help="Print one JSON object.")


@app.command(epilog="Example: policygraph budget show budget.db")
def show(ledger: Path = LEDGER, as_json: bool = AS_JSON) -> None:
    """Show each data set with its limit, what is spent and what is left."""
    from policygraph.private.ledger import Ledger

    accounts = Ledger(ledger, create=False).datasets()
    if as_json:
        print_json([account.to_json() for account in accounts])
        return
    if not accounts:
        typer.echo("nothing is recorded yet")
    for account in accounts:
        title = account.name or account.dataset
        limit = "no limit" if account.limit is None else f"limit {account.limit}"
        spent = "nothing" if account.spent is None else str(account.spent)
        left = (
            "" if account.limit is None else f", left {'nothing' if account.left is None else account.left}"
        )
        typer.echo(f"{title}: {limit}, spent {spent}{left}")


@app.command("set", epilog="Example: policygraph budget set budget.db people.csv --name people --epsilon 2")
def set_limit(
    ledger: Path = LEDGER,
    dataset: str = typer.Argument(
        ...,
        help="The data file, the name given with release --dataset, or a fingerprint.",
        show_default=False,
    ),
    name: str | None = typer.Option(None, "--name", help="A name for people, kept from now on."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="Limit in epsilon."),
    delta: str | None = typer.Option(None, "--delta", help="With --epsilon: limit in (epsilon, delta)."),
    rho: str | None = typer.Option(None, "--rho", help="Limit in zCDP."),
) -> None:
    """Set what all releases on a data set may come to."""
    from policygraph.private.counting.source import named, open_source
    from policygraph.private.ledger import Ledger
    from policygraph.public.loss import Epsilon, EpsilonDelta, Rho

    if (epsilon is None) == (rho is None) or (delta is not None and epsilon is None):
        raise InputError("expected --epsilon, --epsilon with --delta, or --rho.", code="cli.limit")
    limit = (
        Rho(rho)
        if rho is not None
        else Epsilon(epsilon or "")
        if delta is None
        else EpsilonDelta(epsilon or "", delta)
    )
    if Path(dataset).is_file():
        key = open_source(dataset).fingerprint()
    else:
        digits = dataset.removeprefix("sha256:")
        key = dataset if len(digits) >= 16 and set(digits) <= set("0123456789abcdef") else named(dataset)
        name = name or (None if key == dataset else dataset)
    Ledger(ledger).set_limit(key, limit, name=name)
    typer.echo(f"{name or dataset}: limit {limit}")


@app.command(epilog="Example: policygraph budget history budget.db")
def history(
    ledger: Path = LEDGER,
    dataset: str | None = typer.Option(None, "--dataset", help="Only this data set."),
    as_json: bool = AS_JSON,
) -> None:
    """List limits and charges in their order."""
    from policygraph.private.ledger import Ledger

    entries = Ledger(ledger, create=False).history(dataset)
    if as_json:
        print_json([entry.to_json() for entry in entries])
        return
    for entry in entries:
        typer.echo(str(entry))


@app.command(epilog="Example: policygraph budget export budget.db > budget.json")
def export(ledger: Path = LEDGER) -> None:
    """Print the whole book as JSON, without released values."""
    from policygraph.private.ledger import Ledger

    print_json(Ledger(ledger, create=False).export())
