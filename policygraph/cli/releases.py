"""The command that touches data: release."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from policygraph.cli.common import (
    DATA,
    POLICY_FILE,
    TIME_LIMIT,
    check_path,
    data_files,
    loss_option,
    one_query,
    print_json,
    stage,
)
from policygraph.errors import BudgetError, InputError
from policygraph.exact import as_fraction

if TYPE_CHECKING:
    from policygraph.release.release import Release

__all__ = ["register"]

WEAK = 20
"""An epsilon above this gives almost no protection: odds may change by a factor of exp(20), some 500 million."""

LATE = ("charging the ledger", "drawing the noise", "recording the release")
"""Stages in which a charge may have been made."""

WRITTEN = ("release.parquet", "release.csv", "release.json", "certificate.json")


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog="Example: policygraph release policies/census-margins.toml --data people.csv --epsilon 1 --out out/"
    )(release)


def release(
    file: str = POLICY_FILE,
    data: str = typer.Option(..., "--data", help=f"{DATA} An edge list for a network."),
    out: Path = typer.Option(..., "--out", help="Folder to write into."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="Privacy loss, e.g. 1, 0.1 or 1/3."),
    delta: str | None = typer.Option(
        None, "--delta", help="With --epsilon: Gaussian noise for (epsilon, delta)."
    ),
    rho: str | None = typer.Option(None, "--rho", help="Privacy loss in zCDP: Gaussian noise."),
    ledger: Path | None = typer.Option(
        None, "--ledger", help="Budget file; the charge is recorded before any noise."
    ),
    dataset: str | None = typer.Option(
        None, "--dataset", help="Name of the account in the ledger; all charges under one name add up."
    ),
    mechanism: str | None = typer.Option(
        None,
        "--mechanism",
        help="A name that `policygraph compare` lists, such as cube or 'edges, consistent'; auto: the least expected error. "
        "Without it: what [cube] in the file says, otherwise auto.",
        show_default=False,
    ),
    compose_policies: bool = typer.Option(
        False, "--compose-policies", help="Allow data that was released under another policy before."
    ),
    again: bool = typer.Option(
        False, "--again", help="Draw and pay again although this request is on record."
    ),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="Replace the files of another release in the folder."
    ),
    seed: str | None = typer.Option(
        None, "--seed", help="NOT PRIVATE: reproducible noise for tests and papers."
    ),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = typer.Option(
        False, "--json", help="Print one JSON object: where it wrote, what it spent."
    ),
) -> None:
    """Release what a policy file asks for, with exact noise, and write table, provenance and certificate.

    A request that is on record in the ledger is written again and costs nothing.
    """
    from policygraph.api import perform
    from policygraph.compare import named_mechanism
    from policygraph.curator.noise import SecureRng, SeededRng
    from policygraph.model.loss import loss_from_json
    from policygraph.sensitivity.request import asking

    asked = loss_option(epsilon, rho, delta)
    read, query = one_query(file)
    _warn_of_weak(epsilon)
    source = SecureRng() if seed is None else SeededRng(seed)
    if ledger is None:
        typer.echo("no --ledger: what is spent here is not recorded anywhere", err=True)
    stages: list[str] = []
    with _folder(out), stage("starting") as show, asking(time_limit):

        def tell(now: str) -> None:
            stages.append(now)
            show(now)

        try:
            done = perform(
                query,
                read.policy,
                data_files(read, data),
                epsilon=epsilon,
                rho=rho,
                delta=delta,
                ledger=ledger,
                dataset=dataset,
                mechanism=named_mechanism(mechanism, query, read.policy, asked, read.cube),
                source=source,
                columns=read.columns,
                edges=read.edges,
                compose_policies=compose_policies,
                reuse=not again,
                progress=tell,
                before=lambda: None if overwrite else _refuse_files(out),
            )
        except BudgetError as refusal:
            if refusal.code != "budget.further-policy":
                raise
            text = str(refusal).replace("compose_policies=True", "--compose-policies")
            raise BudgetError(text, code="budget.further-policy", **refusal.details) from refusal
        except KeyboardInterrupt:
            # The last stages are the charge, which may or may not be on the disk by now, and the noise.
            late = [text for text in stages if text in LATE]
            typer.echo(
                "stopped before anything was charged"
                if not late or ledger is None
                else f"stopped during or after the charge: policygraph budget history {ledger} shows whether it was made; if so, "
                "the same command completes it at no cost",
                err=True,
            )
            raise
        made = done.release
        if done.repeated and not overwrite and not _holds(out, made):
            _refuse_files(out)
        loss = loss_from_json(made.record["loss"])
        try:
            written = made.write(out)
        except (InputError, OSError) as cause:
            if done.repeated:
                what = "Nothing was charged"
            elif ledger is None:
                what = f"The noise was drawn and is lost, and no ledger recorded that {loss} was meant to be spent"
            else:
                what = f"{loss} was charged, and the release is on record in {ledger}"
            free = "" if ledger is None else ": the same command with another --out costs nothing"
            raise InputError(
                f"{_cause(cause)} {what}{free}.", code="release.not-written", value=str(out)
            ) from cause
    if done.unlimited:
        typer.echo(
            f"the ledger has limits for other data sets, and none for this one: set one with policygraph budget set {ledger} "
            f"{dataset or data} --epsilon ..., or name the data set that it belongs to with --dataset",
            err=True,
        )
    if as_json:
        print_json(
            {
                "written": written,
                "repeated": done.repeated,
                **({"completed": True} if done.completed else {}),
                "spent": None if done.repeated else made.record["loss"],
                "loss": made.record["loss"],
                "asked": made.record.get("asked"),
                "ledger": None if ledger is None else str(ledger),
                "dataset": None if done.account is None else done.account.name,
                "private": made.private,
                "warning": made.record["warning"],
                "policy_fingerprint": made.record["policy_fingerprint"],
                "query_fingerprint": made.record["query_fingerprint"],
                "sensitivity": (made.record["certificate"] or {}).get("value"),
                "noise": made.record["noise"],
                **({"cut_short": True} if made.record.get("cut_short") else {}),
            }
        )
        return
    typer.echo(str(made))
    if done.completed:
        typer.echo(
            f"{loss} was charged before, by a command that ended before the release was on record: it is completed now, and nothing was spent"
        )
    elif done.repeated:
        typer.echo(f"this release is on record already ({loss}): nothing was spent")
    typer.echo("written: " + ", ".join(written.values()))


def _warn_of_weak(epsilon: str | None) -> None:
    if epsilon is not None and as_fraction(epsilon, "epsilon") > WEAK:
        typer.echo(
            f"epsilon = {epsilon} gives almost no protection: values around 1 and below are usual", err=True
        )


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Make the folder before anything is charged; take it away again, if it is empty, when the release fails."""
    made = []
    check_path(out)
    try:
        for folder in reversed([out, *out.parents]):
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        handle, probe = tempfile.mkstemp(prefix=".policygraph-", dir=out)
        os.close(handle)
        os.unlink(probe)
    except OSError as cause:
        _remove(made)
        raise InputError(
            f"--out {out}: cannot write there ({cause.strerror}). Nothing was charged.",
            code="release.folder",
            value=str(out),
        ) from cause
    for name in WRITTEN:
        if (out / name).is_dir() or (out / name).is_symlink():
            _remove(made)
            what = "link" if (out / name).is_symlink() else "folder"
            raise InputError(
                f"--out {out}: {name} is a {what} there, and a file of this name is to be written. Nothing was charged.",
                code="release.folder",
                value=name,
            )
    try:
        yield
    except BaseException:
        _remove(made)
        raise


def _remove(folders: list[Path]) -> None:
    with suppress(OSError):
        for folder in reversed(folders):
            folder.rmdir()


def _refuse_files(out: Path) -> None:
    found = [name for name in WRITTEN if os.path.lexists(out / name)]
    if found:
        raise InputError(
            f"--out {out} holds {', '.join(found)} of another release. Name another folder, or say --overwrite. "
            "Nothing was charged.",
            code="release.exists",
            value=found,
        )


def _holds(out: Path, made: Release) -> bool:
    """Whether a folder holds this very release already, or none."""
    from policygraph.release.release import Release

    if not any((out / name).exists() for name in WRITTEN):
        return True
    try:
        there = Release.from_parquet(out / "release.parquet")
    except InputError:
        return False
    return there.table().equals(made.table()) and there.record == made.record


def _cause(cause: Exception) -> str:
    return f"Writing failed ({cause.strerror or cause})." if isinstance(cause, OSError) else str(cause)
