"""The command that touches data: release."""

from __future__ import annotations

from pathlib import Path

import typer

from policygraph.cli.common import POLICY_FILE, one_query, print_json, stage

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog="Example: policygraph release policies/census-margins.toml --data people.csv --epsilon 1 --out out/"
    )(release)


def release(
    file: str = POLICY_FILE,
    data: str = typer.Option(
        ..., "--data", help="CSV, Parquet, or anything DuckDB reads; an edge list for a network."
    ),
    out: Path = typer.Option(..., "--out", help="Folder to write into."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="Privacy loss, e.g. 1, 0.1 or 1/3."),
    delta: str | None = typer.Option(
        None, "--delta", help="With --epsilon: Gaussian noise for (epsilon, delta)."
    ),
    rho: str | None = typer.Option(None, "--rho", help="Privacy loss in zCDP: Gaussian noise."),
    ledger: Path | None = typer.Option(
        None, "--ledger", help="Budget file; the charge is recorded before any noise."
    ),
    dataset: str | None = typer.Option(None, "--dataset", help="Name of the data set in the ledger."),
    compose_policies: bool = typer.Option(
        False, "--compose-policies", help="Allow data that was released under another policy before."
    ),
    again: bool = typer.Option(
        False, "--again", help="Draw and pay again although this request is on record."
    ),
    seed: str | None = typer.Option(
        None, "--seed", help="NOT PRIVATE: reproducible noise for tests and papers."
    ),
    as_json: bool = typer.Option(
        False, "--json", help="Print one JSON object: where it wrote, what it spent."
    ),
) -> None:
    """Release what a policy file asks for, with exact noise, and write table, provenance and certificate."""
    from policygraph.api import release as run
    from policygraph.private.noise import SecureSource, SeededSource

    read, query = one_query(file)
    source = SecureSource() if seed is None else SeededSource(seed)
    if ledger is None:
        typer.echo("no --ledger: what is spent here is not recorded anywhere", err=True)
    with stage("starting") as tell:
        made = run(
            query,
            read.policy,
            data,
            epsilon=epsilon,
            rho=rho,
            delta=delta,
            ledger=ledger,
            dataset=dataset,
            source=source,
            columns=read.columns,
            compose_policies=compose_policies,
            reuse=not again,
            progress=tell,
        )
        written = made.write(out)
    if as_json:
        print_json(
            {
                "written": written,
                "spent": made.record["loss"],
                "ledger": None if ledger is None else str(ledger),
                "private": made.private,
                "warning": made.record["warning"],
                "policy_fingerprint": made.record["policy_fingerprint"],
                "query_fingerprint": made.record["query_fingerprint"],
                "sensitivity": made.record["certificate"]["value"],
                "noise": made.record["noise"],
            }
        )
        return
    typer.echo(str(made))
    typer.echo("written: " + ", ".join(written.values()))
