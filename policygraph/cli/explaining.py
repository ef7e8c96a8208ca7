"""The command that explains a policy to people: explain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from policygraph.cli.common import POLICY_FILE, TIME_LIMIT, one_query, print_json, stage, writing
from policygraph.errors import RefusedError
from policygraph.exact import as_fraction

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: policygraph explain policies/census-margins.toml --epsilon 0.5")(explain)


def explain(
    file: str = POLICY_FILE,
    epsilon: str = typer.Option("1", "--epsilon", help="Tell the noise for this privacy loss."),
    time_limit: float | None = TIME_LIMIT,
    draw: Path | None = typer.Option(
        None, "--draw", help="Draw the pair that must look alike into this picture."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """What is hidden, what is public, which two data sets must look alike, and what each choice costs."""
    from policygraph.explain import explain as make
    from policygraph.model.loss import Epsilon
    from policygraph.model.queries.cuboids import CuboidQuery
    from policygraph.model.queries.network_statistics import NetworkStatistic

    read, query = one_query(file)
    loss = Epsilon(as_fraction(epsilon, "epsilon"))
    if draw is not None:
        from policygraph.model.graphs.drawing import check_picture

        check_picture(draw)
    if isinstance(query, NetworkStatistic):
        _statistic(query, read.policy, loss, as_json=as_json, draw=draw)
        return
    with stage("explaining") as show:
        made = make(query, read.policy, epsilon=loss.value, time_limit=time_limit, progress=show)
    drawn = draw if made.certificate.witness is not None else None
    why = "there is no pair to draw"
    if drawn is not None:
        try:
            with writing(drawn):
                made.certificate.move().draw(drawn)
        except RefusedError as refusal:
            # The words are worth having without the picture.
            drawn, why = None, f"not drawn: {refusal}"
    if as_json:
        print_json(
            made.to_dict() | ({} if draw is None else {"drawn": None if drawn is None else str(drawn)})
        )
        return
    typer.echo(str(made))
    if isinstance(query, CuboidQuery) and len(query.sets) > 1:
        typer.echo(
            f"\nThis is noise on each table by itself. Tables that are measured together need less: policygraph compare {file}"
        )
    if draw is not None:
        typer.echo(why if drawn is None else f"drawn: {drawn}")


def _statistic(query: Any, policy: Any, loss: Any, *, as_json: bool, draw: Path | None) -> None:
    """What can be said of a network statistic: its bound is proved for all pairs of networks at once, and no pair is shown."""
    from policygraph.exact import show
    from policygraph.explain import summary
    from policygraph.sensitivity.statistics import statistic_bound

    with stage("computing the bound"):
        found = statistic_bound(query, policy)
    scale = found.power / loss.value
    if as_json:
        words = {"summary": summary(policy, query), "epsilon": str(loss.value), "noise_scale": str(scale)}
        bound = {"power": str(found.power), "norm": found.norm, "kind": "upper", "reason": found.reason}
        print_json({**words, "bound": bound} | ({} if draw is None else {"drawn": None}))
        return
    typer.echo(
        f"{summary(policy, query)}\n\nsensitivity <= {found.power} (L1, upper bound)\n  why: {found.reason}"
    )
    typer.echo(
        f"\nNoise at {loss}: scale {show(scale)}, a standard deviation of about {float(scale) * 2**0.5:.3g} on every number."
    )
    if draw is not None:
        typer.echo("there is no pair to draw")
