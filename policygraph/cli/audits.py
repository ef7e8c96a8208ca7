"""The command that looks for leaks: audit."""

from __future__ import annotations

import typer

from policygraph.cli.common import (
    POLICY_FILE,
    TIME_LIMIT,
    cut_short_json,
    cut_short_text,
    loss_option,
    one_query,
    print_json,
    stage,
)

__all__ = ["LEAK", "register"]

LEAK = 4
"""Exit status when a leak is found: not that of bad input, so that a script can tell them apart."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog="Example: policygraph audit policies/census-margins.toml --epsilon 1 --samples 100000"
    )(audit)


def audit(
    file: str = POLICY_FILE,
    epsilon: str | None = typer.Option(
        None,
        "--epsilon",
        help="Privacy loss that the release claims; 1 when no loss is given.",
        show_default=False,
    ),
    delta: str | None = typer.Option(
        None, "--delta", help="With --epsilon: Gaussian noise for (epsilon, delta)."
    ),
    rho: str | None = typer.Option(None, "--rho", help="Privacy loss in zCDP: Gaussian noise."),
    samples: int = typer.Option(20_000, "--samples", help="Runs of the mechanism on each table."),
    confidence: str = typer.Option(
        "0.999", "--confidence", help="Probability with which all bounds of the report hold."
    ),
    pairs: int = typer.Option(8, "--pairs", min=1, help="Pairs of neighbouring tables at most."),
    seed: str | None = typer.Option(None, "--seed", help="Repeatable randomness."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Run what a policy file releases on made-up neighbouring tables and look for leaks; exit status 4 when one is found.

    No data is read. An audit can refute a claimed loss; it cannot prove one.
    """
    from policygraph.audit import audit as run
    from policygraph.curator.noise import SecureRng, SeededRng
    from policygraph.mechanisms import Cube, choose
    from policygraph.sensitivity.request import asking

    loss = loss_option(epsilon, rho, delta, default="1")
    read, query = one_query(file)
    with stage("computing the sensitivity") as tell, asking(time_limit) as request:
        mechanism = None if read.cube is None else Cube(**read.cube)
        ready = (
            choose(query, read.policy, loss)
            if mechanism is None
            else mechanism.calibrate(query, read.policy, loss)
        )
        report = run(
            ready,
            samples=samples,
            confidence=confidence,
            most_pairs=pairs,
            source=SecureRng() if seed is None else SeededRng(seed),
            progress=tell,
        )
    if as_json:
        print_json(cut_short_json(report.to_dict() | {"leak": not report.passed}, request))
    else:
        typer.echo(cut_short_text(report, request))
    if not report.passed:
        raise typer.Exit(LEAK)
