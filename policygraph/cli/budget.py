"""Commands on a ledger: budget show, set, open, join, reserve, free, reservations, history, forecast, check, export."""

from __future__ import annotations

import glob
import re
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from policygraph.cli.common import AS_JSON, Commands, loss_option, print_json
from policygraph.errors import DataError, InputError
from policygraph.exact import as_fraction

if TYPE_CHECKING:
    from policygraph.curator.ledger import Account, Ledger, Reservation
    from policygraph.model.loss import Epsilon, Target

app = Commands(
    help="Look at and limit what may be spent on a data set, by whom and until when.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

ALERT = 5
"""Exit status of a check that found something."""
UNTIL = typer.Option(
    None, "--until", help="The last day on which it holds, such as 2027-12-31.", show_default=False
)
ON = typer.Option(
    None, "--on", help="Look on this day instead of today, such as 2027-12-31.", show_default=False
)
PURPOSE = typer.Option(None, "--purpose", help="What it is for.", show_default=False)
LABELS = typer.Option([], "--label", help="A label; may be given several times.")

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
        typer.echo(_account_line(account))
        for share in account.parts:
            typer.echo(f"  {share}")


def _account_line(account: Account) -> str:
    """One account in a line: limit, spent, reserved, left, where it is."""
    title, limit = account.name or account.dataset, _limit_line(account)
    spent = "nothing" if account.spent is None else str(account.spent)
    held = "" if account.reserved is None else f", reserved {account.reserved}"
    left = "" if account.limit is None else f", left {'nothing' if account.left is None else account.left}"
    inside = (
        ""
        if account.inside is None or title.startswith(f"{account.inside}/")
        else f", inside {account.inside}"
    )
    return f"{title}: {limit}, spent {spent}{held}{left}{inside}"


def _limit_line(account: Account) -> str:
    """The limit of an account, with what it is for and its last day."""
    from policygraph.model.loss import Epsilon

    limit = "no limit" if account.limit is None else f"limit {account.limit}"
    if account.each is not None:
        limit += f" for at most {account.most:,} charges of at most {account.each}"
        limit += "".join(f" and {times:,} of at most {Epsilon(size)}" for size, times in account.larger)
    if account.until is not None:
        limit += f" {'that ended on' if account.expired else 'until'} {account.until}"
    return limit


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
    until: str | None = UNTIL,
    each: str | None = typer.Option(
        None,
        "--each",
        help="With --delta: allow as many pure charges of at most this epsilon as exact composition certifies, and nothing in rho.",
        show_default=False,
    ),
    larger: list[str] = typer.Option(
        [],
        "--larger",
        help="With --each: how many larger charges there may be besides, as 3x0.5; once for each size.",
        show_default=False,
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Set what all releases on a data set, or in an account inside it, may come to."""
    from policygraph.curator.ledger import Ledger, place_of
    from policygraph.model.loss import Epsilon

    limit = _limit(epsilon, delta, rho)
    there = Ledger.existing(ledger)
    key, new = _account(there, dataset)
    book = there or Ledger(ledger)
    book.set_limit(
        key,
        limit,
        name=name or (dataset if new else None),
        until=until,
        each=None if each is None else Epsilon(each),
        larger=_larger(larger),
    )
    account = book.account(key)
    if as_json:
        print_json({"dataset": account.to_json(), "limit": limit.to_json(), "ledger": place_of(ledger)})
        return
    title = account.name or dataset
    by_name = not account.group and (new or (account.name is not None and account.name == dataset))
    typer.echo(
        f"{title}: {_limit_line(account)}" + (f", for releases with --dataset {title}" if by_name else "")
    )


def _limit(epsilon: str | None, delta: str | None, rho: str | None) -> Target:
    """Read a limit from the options."""
    from policygraph.model.loss import Epsilon, EpsilonDelta, Rho

    if (epsilon is None) == (rho is None) or (delta is not None and epsilon is None):
        raise InputError(
            "no limit, or more than one: expected --epsilon 2 (or --rho 0.5, or --epsilon 2 --delta 1e-6).",
            code="cli.limit",
        )
    if rho is not None:
        return Rho(rho)
    return Epsilon(epsilon or "") if delta is None else EpsilonDelta(epsilon or "", delta)


def _larger(given: list[str]) -> dict[Epsilon, int]:
    """Read how many larger charges there may be, as 3x0.5."""
    from policygraph.model.loss import Epsilon

    found: dict[Epsilon, int] = {}
    for text in given:
        times, cross, size = text.partition("x")
        if not cross or not re.fullmatch("[0-9]{1,4}", times) or Epsilon(size) in found:
            raise InputError(
                f"--larger {text}: expected how many charges, an x and their size, such as 3x0.5, once for each size.",
                code="ledger.each",
                value=text,
            )
        found[Epsilon(size)] = int(times)
    return found


@app.command("open", epilog="Example: policygraph budget open budget.db people/research --epsilon 1")
def open_account(
    ledger: str = LEDGER,
    account: str = typer.Argument(
        ..., help="Outer account and new name, such as people/research.", show_default=False
    ),
    epsilon: str | None = typer.Option(None, "--epsilon", help="Limit in epsilon."),
    delta: str | None = typer.Option(None, "--delta", help="With --epsilon: limit in (epsilon, delta)."),
    rho: str | None = typer.Option(None, "--rho", help="Limit in zCDP."),
    until: str | None = UNTIL,
    as_json: bool = AS_JSON,
) -> None:
    """Open an account inside another one of the same data, for a team or a purpose. It stays there for good.

    A release with --dataset people/research counts there and in people, and must fit the limit of both.
    """
    from policygraph.curator.ledger import Ledger

    outer, _, own = account.rpartition("/")
    if not outer or not own:
        raise InputError(
            f"{account!r}: expected the outer account and a new name, such as people/research.",
            code="cli.dataset",
            value=account,
        )
    limit = None if (epsilon, delta, rho) == (None, None, None) else _limit(epsilon, delta, rho)
    if until is not None and limit is None:
        raise InputError(
            "--until is the end of a limit: expected one, such as --epsilon 1.", code="cli.limit"
        )
    book = Ledger(ledger, create=False)
    whole = book.open_account(own, inside=outer)
    if limit is not None:
        book.set_limit(whole, limit, until=until)
    made = book.account(whole)
    if as_json:
        print_json({"dataset": made.to_json()})
        return
    typer.echo(_account_line(made))


@app.command(epilog="Example: policygraph budget join budget.db people-2027 acme")
def join(
    ledger: str = LEDGER,
    dataset: str = typer.Argument(..., help="Name of a data set or group.", show_default=False),
    group: str = typer.Argument(..., help="Name of the group; made if there is none.", show_default=False),
) -> None:
    """Put a data set into a group whose charges all add up, such as an organisation. It stays there for good."""
    from policygraph.curator.ledger import Ledger

    book = Ledger(ledger, create=False)
    book.join(dataset, group)
    typer.echo(_account_line(book.account(group)))


@app.command(
    epilog="Example: policygraph budget reserve budget.db people/research --epsilon 1/2 --until 2027-12-31"
)
def reserve(
    ledger: str = LEDGER,
    account: str = typer.Argument(..., help="Name of the account.", show_default=False),
    epsilon: str | None = typer.Option(None, "--epsilon", help="How much, in epsilon."),
    rho: str | None = typer.Option(None, "--rho", help="How much, in zCDP."),
    until: str | None = UNTIL,
    purpose: str | None = PURPOSE,
    labels: list[str] = LABELS,
    as_json: bool = AS_JSON,
) -> None:
    """Keep a loss for later, so that nobody else spends it; release --reservation NUMBER takes from it."""
    from policygraph.curator.ledger import Ledger

    made = Ledger(ledger, create=False).reserve(
        account, loss_option(epsilon, rho, None), until=until, purpose=purpose, labels=labels
    )
    if as_json:
        print_json({"reservation": made.to_json()})
        return
    typer.echo(_reservation_line(made))


@app.command(epilog="Example: policygraph budget free budget.db 3")
def free(
    ledger: str = LEDGER,
    number: int = typer.Argument(..., help="Number of the reservation.", show_default=False),
) -> None:
    """Give back what is left of a reservation."""
    from policygraph.curator.ledger import Ledger

    Ledger(ledger, create=False).free(number)
    typer.echo(f"reservation {number}: given back")


@app.command(epilog="Example: policygraph budget reservations budget.db")
def reservations(
    ledger: str = LEDGER,
    dataset: str | None = typer.Option(None, "--dataset", help="Only this account and those inside it."),
    as_json: bool = AS_JSON,
) -> None:
    """List reservations: what was kept, for whom, what is left."""
    from policygraph.curator.ledger import Ledger

    found = Ledger(ledger, create=False).reservations(dataset)
    if as_json:
        print_json({"reservations": [each.to_json() for each in found]})
        return
    if not found:
        typer.echo("nothing is reserved")
    for each in found:
        typer.echo(_reservation_line(each))


def _reservation_line(made: Reservation) -> str:
    until = "" if made.until is None else f", until {made.until}"
    purpose = f", {made.details['purpose']}" if made.details.get("purpose") else ""
    who = f", by {made.details.get('user', 'unknown')}"
    return f"reservation {made.number}: {made.loss} in {made.name or made.dataset}, {made.status}, left {made.left or 'nothing'}{until}{purpose}{who}"


@app.command(epilog="Example: policygraph budget forecast budget.db --days 30")
def forecast(
    ledger: str = LEDGER,
    dataset: str | None = typer.Option(None, "--dataset", help="Only this account."),
    days: int | None = typer.Option(
        None, "--days", help="Take the pace of the last so many days.", show_default=False
    ),
    on: str | None = ON,
    as_json: bool = AS_JSON,
) -> None:
    """Say on which day each budget ends if spending goes on as it did."""
    from policygraph.curator.ledger import Ledger

    book = Ledger(ledger, create=False)
    named = (
        [each.dataset for each in book.datasets() if each.limit is not None] if dataset is None else [dataset]
    )
    found = [book.forecast(each, on=on, days=days) for each in named]
    if as_json:
        print_json({"forecasts": [each.to_json() for each in found]})
        return
    if not found:
        typer.echo("no account has a limit")
    for each in found:
        typer.echo(str(each))


@app.command(epilog="Example: policygraph budget check budget.db --below 20% --within 14")
def check(
    ledger: str = LEDGER,
    below: str | None = typer.Option(
        None,
        "--below",
        help="Alert when less than this share of a limit is left, such as 20%.",
        show_default=False,
    ),
    within: int | None = typer.Option(
        None,
        "--within",
        help="Alert when a limit or a reservation ends within so many days.",
        show_default=False,
    ),
    dataset: str | None = typer.Option(None, "--dataset", help="Only this account and those inside it."),
    on: str | None = ON,
    as_json: bool = AS_JSON,
) -> None:
    """Look for budgets that have ended, are overdrawn or nearly spent; the exit status is 5 if there are any, and 0 if not."""
    from policygraph.curator.ledger import Ledger

    share = None if below is None else _share(below)
    found = Ledger(ledger, create=False).check(below=share, within=within, dataset=dataset, on=on)
    if as_json:
        print_json({"alerts": [each.to_json() for each in found]})
    for each in [] if as_json else found:
        typer.echo(f"{each.account}: {each.text}")
    if not found and not as_json:
        typer.echo("nothing to report")
    if found:
        raise typer.Exit(ALERT)


def _share(text: str) -> Fraction:
    """Read a share such as 20% or 0.2.

    Examples
    --------
    >>> _share("20%") == _share("0.2") == Fraction(1, 5)
    True
    """
    share = as_fraction(text.removesuffix("%"), "--below") / (100 if text.endswith("%") else 1)
    if not 0 < share <= 1:
        raise InputError(
            f"--below {text}: expected a share such as 20% or 0.2.", code="cli.share", value=text
        )
    return share


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
            "name that releases use with --dataset; an account inside another is opened with policygraph budget open.",
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
    more += [f"until {entry.until}"] if entry.until else []
    more += [entry.purpose] if entry.purpose else []
    more += [", ".join(entry.labels)] if entry.labels else []
    more += [f"from reservation {entry.reservation}"] if entry.reservation else []
    if entry.what == "charge":
        more.append(f"policy {entry.policy[:12]}" + (", a further one" if entry.composed else ""))
        more += [] if entry.status == "completed" else ["no release on record"]
    return f"{when}  {entry.name or entry.dataset}  {what}  {entry.loss}" + "".join(f"  {m}" for m in more)


@app.command(epilog="Example: policygraph budget export budget.db --format csv > budget.csv")
def export(
    ledger: str = LEDGER,
    form: str = typer.Option(
        "json",
        "--format",
        help="json: the whole ledger. csv: its history as a table. opendp: one data set as a record of OpenDP's registry of deployments (YAML).",
    ),
    dataset: str | None = typer.Option(None, "--dataset", help="csv, opendp: only this account."),
    curator: str | None = typer.Option(
        None, "--curator", help="opendp: who publishes the data.", show_default=False
    ),
    use: str | None = typer.Option(
        None, "--use", help="opendp: what the data are meant for.", show_default=False
    ),
    region: str | None = typer.Option(
        None, "--region", help="opendp: where the data are from.", show_default=False
    ),
) -> None:
    """Print a ledger, without released values, for other programs."""
    from policygraph.curator.ledger import Ledger
    from policygraph.curator.ledger.exports import as_csv, as_registry, as_yaml

    book = Ledger(ledger, create=False)
    if form == "json":
        print_json(book.export())
    elif form == "csv":
        typer.echo(as_csv(book.history(dataset)), nl=False)
    elif form == "opendp":
        if dataset is None:
            raise InputError(
                "--format opendp describes one data set: expected --dataset NAME.", code="cli.dataset"
            )
        record = as_registry(
            book.account(dataset),
            book.history(dataset),
            book.export()["policies"],
            curator=curator,
            use=use,
            region=region,
        )
        typer.echo(as_yaml(record), nl=False)
    else:
        raise InputError(f"--format {form}: expected json, csv or opendp.", code="cli.format", value=form)
