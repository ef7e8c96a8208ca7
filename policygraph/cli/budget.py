"""Commands on a ledger: budget show, set, history, export."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from policygraph.cli.common import AS_JSON, Commands, print_json
from policygraph.errors import DataError, InputError

if TYPE_CHECKING:
    from policygraph.curator.ledger import Ledger

app = Commands(
    help="Look at and limit what may be spent on a data set.", no_args_is_help=True, rich_markup_mode=None
)

LEDGER = typer.Argument(
    ...,
    metavar="LEDGER",
    help="The budget file, or the address of a server: postgresql://host/database?ledger=name.",
    show_default=False,
)


@app.command(epilog="Example: policygraph budget show budget.db")
def show(ledger: str = LEDGER, as_json: bool = AS_JSON) -> None:
    """Show each data set with its limit, what is spent and what is left."""
    from policygraph.curator.ledger import Ledger

    accounts = Ledger(ledger, create=False).datasets()
    if as_json:
        print_json({"datasets": [account.to_json() for account in accounts]})
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
        for share in account.parts:
            typer.echo(f"  {share}")


@app.command("set", epilog="Example: policygraph budget set budget.db people.csv --name people --epsilon 2")
def set_limit(
    ledger: str = LEDGER,
    dataset: str = typer.Argument(
        ...,
        help="The data file, the name given with release --dataset, or a fingerprint.",
        show_default=False,
    ),
    name: str | None = typer.Option(None, "--name", help="A name for people, kept from now on."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="Limit in epsilon."),
    delta: str | None = typer.Option(None, "--delta", help="With --epsilon: limit in (epsilon, delta)."),
    rho: str | None = typer.Option(None, "--rho", help="Limit in zCDP."),
    as_json: bool = AS_JSON,
) -> None:
    """Set what all releases on a data set may come to."""
    from policygraph.curator.ledger import Ledger, place_of
    from policygraph.model.loss import Epsilon, EpsilonDelta, Rho

    if (epsilon is None) == (rho is None) or (delta is not None and epsilon is None):
        raise InputError(
            "no limit, or more than one: expected --epsilon 2 (or --rho 0.5, or --epsilon 2 --delta 1e-6).",
            code="cli.limit",
        )
    limit = (
        Rho(rho)
        if rho is not None
        else Epsilon(epsilon or "")
        if delta is None
        else EpsilonDelta(epsilon or "", delta)
    )
    there = Ledger.existing(ledger)
    key, new = _account(there, dataset)
    book = there or Ledger(ledger)
    book.set_limit(key, limit, name=name or (dataset if new else None))
    account = book.account(key)
    if as_json:
        print_json({"dataset": account.to_json(), "limit": limit.to_json(), "ledger": place_of(ledger)})
        return
    title = account.name or dataset
    by_name = new or (account.name is not None and account.name == dataset)
    typer.echo(f"{title}: limit {limit}" + (f", for releases with --dataset {title}" if by_name else ""))


def _account(book: Ledger | None, dataset: str) -> tuple[str, bool]:
    """Find the account that a text means: a known name, a data file, a fingerprint, a new name; and whether it is new.

    A path that leads nowhere is a slip of the keyboard: as a new name it would carry a limit that no release ever meets.
    """
    from policygraph.curator.counting.opening import open_source
    from policygraph.curator.counting.reading import is_database
    from policygraph.curator.counting.source import check_plain
    from policygraph.curator.histogram import named
    from policygraph.curator.requests import files_by_bytes

    for known in book.datasets() if book is not None else ():
        if dataset in (known.name, known.dataset):
            return known.dataset, False
    if (
        dataset.lower().startswith(("duckdb://", "file://", "postgresql://", "postgres://"))
        or Path(dataset).is_file()
        or Path(dataset).is_dir()
        or glob.has_magic(dataset)
    ):
        try:
            return open_source(dataset).fingerprint(), False
        except DataError as cause:
            # How a file is read ([data] of a policy file) is not known here, and does not matter: it is known by its bytes.
            if cause.code != "data.unreadable" or is_database(dataset):
                raise
            return files_by_bytes(dataset).fingerprint(), False
    if re.fullmatch(r"(sha256:)?[0-9a-f]{16,128}", dataset):
        return dataset, False
    if (
        Path(dataset).exists()
        or "/" in dataset
        or "\\" in dataset
        or re.search(r"\.[A-Za-z]\w{0,9}$", dataset)
    ):
        check_plain(dataset)
        raise InputError(
            f"{dataset}: no such file, and no data set of the ledger has this name. Give the path of the data file, or the "
            "name that releases use with --dataset.",
            code="cli.dataset",
            value=dataset,
        )
    return named(dataset), True


@app.command(epilog="Example: policygraph budget history budget.db")
def history(
    ledger: str = LEDGER,
    dataset: str | None = typer.Option(None, "--dataset", help="Only this data set."),
    as_json: bool = AS_JSON,
) -> None:
    """List limits and charges in their order."""
    from policygraph.curator.ledger import Ledger

    entries = Ledger(ledger, create=False).history(dataset)
    if as_json:
        print_json({"entries": [entry.to_json() for entry in entries]})
        return
    if not entries:
        typer.echo("nothing is recorded yet")
    for entry in entries:
        typer.echo(_line(entry))


def _line(entry: Any) -> str:
    """One line of the history: when, which data set, what, how much, what was released."""
    when = entry.time[:19].replace("T", " ")
    what = "limit " if entry.what == "limit" else "charge"
    more = [entry.note] if entry.note else []
    if entry.what == "charge":
        more.append(f"policy {entry.policy[:12]}" + (", a further one" if entry.composed else ""))
        more += [] if entry.status == "completed" else ["no release on record"]
    return f"{when}  {entry.name or entry.dataset}  {what}  {entry.loss}" + "".join(f"  {m}" for m in more)


@app.command(epilog="Example: policygraph budget export budget.db > budget.json")
def export(ledger: str = LEDGER) -> None:
    """Print the whole ledger as JSON, without released values."""
    from policygraph.curator.ledger import Ledger

    print_json(Ledger(ledger, create=False).export())
