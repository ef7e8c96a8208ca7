"""What the commands share: reading a policy file, options, JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperOption

from policygraph.errors import BudgetError, InputError, shown
from policygraph.output import check_place

if TYPE_CHECKING:
    from policygraph.model.loss import Loss
    from policygraph.sensitivity.proofs import Proofs

POLICY_FILE = typer.Argument(..., metavar="FILE", help="A policy file (TOML).", show_default=False)
DATA = (
    "A CSV, JSON, Parquet or Excel file, a pattern in quotes such as 'parts/*.csv', a folder, duckdb://file.db?table=name, "
    "or postgresql://host/database/table."
)
ENGINE = typer.Option(
    None,
    "--engine",
    help="What counts the records: duckdb, spark (Parquet files) or postgres (its tables). By default the one that holds the data.",
    show_default=False,
)
AS_JSON = typer.Option(False, "--json", help="Print one JSON object.")
DELTA = typer.Option(None, "--delta", help="With --epsilon: Gaussian noise for (epsilon, delta).")
RHO = typer.Option(None, "--rho", help="Privacy loss in zCDP: Gaussian noise.")
COMPOSE_POLICIES = typer.Option(
    False, "--compose-policies", help="Allow data that was released under another policy before."
)
MECHANISM = typer.Option(
    None,
    "--mechanism",
    help="A name that `policygraph compare` lists, such as cube or 'edges, consistent', or of an installed package; auto: the least "
    "expected error. Without it: what the file says (mechanism in [[release]], or [cube]), otherwise auto.",
    show_default=False,
)
NONNEGATIVE = typer.Option(
    False,
    "--nonnegative",
    help="Publish counts that are not negative (whole ones for a histogram), with unbiased ones beside them. Not with --mechanism.",
)
TIME_LIMIT = typer.Option(
    None,
    "--time-limit",
    min=0.0,
    help="Seconds after which searches settle for what they have. Without it work is counted, and the result is the same on "
    "every machine; one that the limit cut short says so in its first line.",
    show_default=False,
)


_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Once(TyperCommand):
    """A command that takes each option once: of two values one would be dropped without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, met = self.make_parser(ctx).parse_args(args=list(args))
        given = [each for each in met if isinstance(each, TyperOption) and not each.is_flag]
        for option in given:
            if given.count(option) > 1 and not option.multiple:
                name = option.opts[0]
                several = (
                    " Several files are one pattern in quotes, such as 'parts/*.csv', or a folder."
                    if name == "--data"
                    else ""
                )
                raise InputError(
                    f"{name} was given {given.count(option)} times: expected it once.{several}",
                    code="cli.twice",
                    value=name,
                )
        return super().parse_args(ctx, args)


class Commands(typer.Typer):
    """Commands that take each option once."""

    def command(self, *arguments: Any, **options: Any) -> Callable[[_Function], _Function]:
        """Register a command."""
        return super().command(*arguments, **{"cls": _Once, **options})


def data_files(read: Any, data: str) -> Any:
    """Data of the command line, together with what the policy file declares about its files."""
    from policygraph.model.linked_units import LinkedUnit

    if isinstance(read.policy, LinkedUnit):
        tables = read.policy.tables
        return {
            name: _file(read, path) for name, path in by_table(data, (tables.parent, tables.child)).items()
        }
    return _file(read, data)


def _file(read: Any, data: str) -> Any:
    if read.reading is None:
        return data
    from policygraph.curator.counting.reading import Files

    return Files(data, **read.reading)


def by_table(data: str, tables: tuple[str, str]) -> dict[str, str]:
    """The data of two linked tables, given as ``first=...,second=...`` in either order.

    Examples
    --------
    >>> by_table("persons=people.csv,dwellings=homes, all.csv", ("dwellings", "persons"))
    {'persons': 'people.csv', 'dwellings': 'homes, all.csv'}
    """
    for first, second in (tables, tables[::-1]):
        head, found, tail = data.partition(f",{second}=")
        if found and head.startswith(f"{first}=") and len(head) > len(first) + 1 and tail:
            return {first: head[len(first) + 1 :], second: tail}
    raise InputError(
        f"--data {data}: expected the data of both linked tables, {tables[0]}=FILE,{tables[1]}=FILE.",
        code="linked.data",
        value=data,
    )


def one_query(path: str) -> tuple[Any, Any]:
    """Read a policy file: the file and the one query that it releases."""
    from policygraph.files import load

    file = load(path)
    return file, file.query


def loss_option(epsilon: str | None, rho: str | None, delta: str | None, default: str | None = None) -> Loss:
    """Read the privacy loss from the options; an epsilon by default, when none is given and there is one.

    Examples
    --------
    >>> print(loss_option("1/2", None, None), loss_option(None, None, None, default="1"), sep=", ")
    epsilon = 0.5, epsilon = 1
    """
    from policygraph.model.loss import loss_of

    given = {"--epsilon": epsilon, "--rho": rho, "--delta": delta}
    named = [name for name, value in given.items() if value is not None]
    if named in ([], ["--delta"]) and default is not None:
        epsilon, named = default, ["--epsilon", *named]
    if named not in (["--epsilon"], ["--rho"], ["--epsilon", "--delta"]):
        what = " and ".join(named) if named else "no privacy loss was given"
        raise InputError(
            f"{what}: expected --epsilon 1 (or --rho 0.5, or --epsilon 1 --delta 1e-6).", code="release.loss"
        )
    return loss_of(epsilon, rho, delta)


def print_json(value: Any) -> None:
    """Print one JSON object, with escapes where the output cannot hold a character."""
    value = _finite(value)
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    typer.echo(text)


def cut_short_text(result: object, proofs: Proofs) -> str:
    """A result in words; one that a time limit cut short says so in its first line."""
    from policygraph.sensitivity.proofs import CUT_SHORT

    return f"{CUT_SHORT}\n{result}" if proofs.cut_short else str(result)


def cut_short_json(result: dict[str, Any], proofs: Proofs) -> dict[str, Any]:
    """A result as JSON values, with ``cut_short`` where that is so and only there."""
    return {**result, "cut_short": True} if proofs.cut_short else result


def _finite(value: Any) -> Any:
    """The value with None in the place of infinity, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(below) for below in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_path(path: Path) -> None:
    """Refuse a path that libraries which take text only could not write, before any work is done for it."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
        raise InputError(
            f"cannot write {path}: this is an address: expected a place on this machine.",
            code="cli.target",
            value=str(path),
        )
    try:
        str(path).encode()
    except UnicodeEncodeError as cause:
        raise InputError(
            f"cannot write {shown(str(path))}: the name is not valid UTF-8. Use another one.",
            code="cli.target",
            value=str(path),
        ) from cause


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written before any work is done for it."""
    check_path(path)
    check_place(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "it is a folder" if path.is_dir() else f"the folder {path.absolute().parent} does not exist"
        raise InputError(f"cannot write {path}: {what}.", code="cli.target", value=str(path))


@contextmanager
def by_option() -> Iterator[None]:
    """Name the option of the command where a refusal names the argument in Python."""
    try:
        yield
    except BudgetError as refusal:
        if refusal.code != "budget.further-policy":
            raise
        text = str(refusal).replace("compose_policies=True", "--compose-policies")
        raise BudgetError(text, code="budget.further-policy", **refusal.details) from refusal


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Report a file that could not be written as what it is."""
    try:
        yield
    except OSError as cause:
        raise InputError(
            f"cannot write {path}: {cause.strerror or cause}.", code="cli.target", value=str(path)
        ) from cause
