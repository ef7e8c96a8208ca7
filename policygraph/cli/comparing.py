"""The command that sets all mechanisms side by side: compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from policygraph.cli.common import (
    POLICY_FILE,
    TIME_LIMIT,
    data_files,
    loss_option,
    one_query,
    print_json,
    stage,
    writing,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: policygraph compare policies/census-margins.toml --epsilon 0.1")(compare)


def compare(
    file: str = POLICY_FILE,
    epsilon: str | None = typer.Option(
        None, "--epsilon", help="Privacy loss of a release; 1 when no loss is given.", show_default=False
    ),
    delta: str | None = typer.Option(
        None, "--delta", help="With --epsilon: Gaussian noise for (epsilon, delta)."
    ),
    rho: str | None = typer.Option(None, "--rho", help="Privacy loss in zCDP: Gaussian noise."),
    data: str | None = typer.Option(
        None,
        "--data",
        help="PUBLIC OR SIMULATED records to measure errors on: nothing is noised or charged.",
    ),
    runs: int = typer.Option(10, "--runs", min=1, help="With --data: runs of each mechanism."),
    plot: Path | None = typer.Option(None, "--plot", help="Draw the errors into this picture."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Which mechanism answers what a policy file asks for best: expected errors, and measured ones on public data.

    Without --data no data is read. With it the true counts are used as they are: never give it data that is to be protected.
    """
    from policygraph.api import read_data
    from policygraph.compare import PUBLIC_ONLY
    from policygraph.compare import compare as make

    loss = loss_option(epsilon, rho, delta, default="1")
    read, query = one_query(file)
    if plot is not None:
        from policygraph.model.graphs.drawing import check_picture

        check_picture(plot)
    counts: Any = None
    if data is not None:
        typer.echo(PUBLIC_ONLY, err=True)
        with stage("counting the records"):
            counts = read_data(data_files(read, data), read.policy, read.columns, read.edges)
    with stage("comparing the mechanisms") as tell:
        made = make(
            query,
            read.policy,
            loss,
            data=counts,
            runs=runs,
            cube=read.cube,
            progress=tell,
            time_limit=time_limit,
        )
    if plot is not None:
        with writing(plot):
            made.plot(plot)
    if as_json:
        print_json(made.to_dict() | ({} if plot is None else {"plot": str(plot)}))
        return
    typer.echo(str(made))
    if plot is not None:
        typer.echo(f"drawn: {plot}")
