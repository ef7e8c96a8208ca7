"""The command that answers one cuboid after the other: ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from policygraph.cli.common import (
    DATA,
    POLICY_FILE,
    TIME_LIMIT,
    check_target,
    cut_short_json,
    cut_short_text,
    data_files,
    one_query,
    print_json,
    stage,
    writing,
)
from policygraph.errors import BudgetError, InputError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog="Example: policygraph ask policy.toml --cuboid sex,age --deviation 5 --data people.csv --ledger budget.db"
    )(ask)


def ask(
    file: str = POLICY_FILE,
    cuboid: str = typer.Option(
        ..., "--cuboid", help="Attributes of the table, with commas; empty for the total."
    ),
    data: str = typer.Option(..., "--data", help=DATA),
    ledger: Path = typer.Option(
        ..., "--ledger", help="Budget file; all that was released is on record there."
    ),
    deviation: str | None = typer.Option(
        None, "--deviation", help="Standard deviation that the counts may have."
    ),
    epsilon: str | None = typer.Option(
        None, "--epsilon", help="In place of it: the cost of a new measurement, if one is needed."
    ),
    rho: str | None = typer.Option(None, "--rho", help="The same in zCDP, with Gaussian noise."),
    kind: str | None = typer.Option(
        None, "--kind", help="epsilon or rho; by default that of the cost, and epsilon with --deviation."
    ),
    most: str = typer.Option("1", "--most", help="The most that this question may cost."),
    dataset: str | None = typer.Option(None, "--dataset", help="Name of the account in the ledger."),
    compose_policies: bool = typer.Option(
        False, "--compose-policies", help="Allow data that was released under another policy before."
    ),
    only_cost: bool = typer.Option(False, "--cost", help="Only say what it would cost now."),
    out: Path | None = typer.Option(None, "--out", help="Write the table into this CSV file."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Answer with one table of counts: from what was released already if that is accurate enough, otherwise from the data."""
    from policygraph.curator.online import OnlineCube
    from policygraph.sensitivity.request import asking

    read, _ = one_query(file)
    if out is not None:
        check_target(out)
    chosen: Any = kind or ("rho" if rho is not None else "epsilon")
    cube = OnlineCube(
        read.policy,
        data_files(read, data),
        ledger,
        dataset=dataset,
        kind=chosen,
        most=most,
        columns=read.columns,
        compose_policies=compose_policies,
    )
    names = [name.strip() for name in cuboid.split(",") if name.strip()]
    with stage("answering"), asking(time_limit) as request:
        if only_cost:
            loss = cube.cost(*names, deviation=deviation, epsilon=epsilon, rho=rho)
            if as_json:
                cost = {"cuboid": names, "cost": None if loss is None else loss.to_json()}
                print_json(cut_short_json(cost, request))
            else:
                typer.echo(cut_short_text("nothing" if loss is None else loss, request))
            return
        try:
            made = cube.ask(*names, deviation=deviation, epsilon=epsilon, rho=rho)
        except BudgetError as refusal:
            if refusal.code != "budget.further-policy":
                raise
            text = str(refusal).replace("compose_policies=True", "--compose-policies")
            raise BudgetError(text, code="budget.further-policy", **refusal.details) from refusal
        if out is not None:
            from pyarrow import csv

            from policygraph.output import replacing

            try:
                with writing(out), replacing(out) as draft:
                    csv.write_csv(made.arrow(), draft)
            except InputError as cause:
                raise InputError(
                    f"{cause} What was measured is on record: the same question costs nothing.",
                    code="cli.target",
                ) from cause
    if as_json:
        said = {
            "cuboid": names,
            "spent": None if made.spent is None else made.spent.to_json(),
            "standard_deviation": made.deviation,
            "private": made.private,
            "values": made.values.tolist(),
        }
        print_json(cut_short_json(said, request))
        return
    typer.echo(cut_short_text(made, request))
    if out is None:
        columns = made.arrow().to_pydict()
        typer.echo("\t".join(columns))
        for row in zip(*columns.values(), strict=True):
            typer.echo("\t".join(f"{x:.10g}" if isinstance(x, float) else str(x) for x in row))
