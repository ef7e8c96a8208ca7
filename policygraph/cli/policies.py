"""Commands about a policy file: check, sensitivity, verify, schema, explain, plan, compare, audit, attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from policygraph.cli.common import (
    AS_JSON,
    DELTA,
    ENGINE,
    MECHANISM,
    POLICY_FILE,
    RHO,
    TIME_LIMIT,
    check_target,
    cut_short_json,
    cut_short_text,
    data_files,
    loss_option,
    one_query,
    print_json,
    writing,
)
from policygraph.cli.progress import stage
from policygraph.errors import InputError, RefusedError
from policygraph.exact import as_fraction, show

LEAK = 4
"""Exit status when a leak is found: not that of bad input, so that a script can tell them apart."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(
        short_help="Say what a policy file means, or what is wrong with it.",
        epilog="Example: policygraph check policies/census-margins.toml",
    )(check)
    app.command(
        short_help="How much noise a release needs, with a certificate.",
        epilog="Example: policygraph sensitivity policies/census-margins.toml --json",
    )(sensitivity)
    app.command(epilog="Example: policygraph verify out/certificate.json")(verify)
    app.command(epilog="Example: policygraph schema > policy.schema.json")(schema)
    app.command(
        short_help="What is hidden and public, and what each fact costs.",
        epilog="Example: policygraph explain policies/census-margins.toml --epsilon 0.5",
    )(explain)
    app.command(
        short_help="Which epsilon reaches an error, before anything is spent.",
        epilog="Example: policygraph plan policies/census-margins.toml --error 50",
    )(plan)
    app.command(
        short_help="Which mechanism has the smallest error.",
        epilog="Example: policygraph compare policies/census-margins.toml --epsilon 0.1",
    )(compare)
    app.command(
        short_help="Look for leaks with made-up neighbouring tables.",
        epilog="Example: policygraph audit policies/census-margins.toml --epsilon 1 --samples 100000",
    )(audit)
    app.command(
        short_help="What somebody who knows the public facts learns from plain noise.",
        epilog="Example: policygraph attack policies/census-margins.toml --epsilon 1",
    )(attack)


def check(file: str = POLICY_FILE, as_json: bool = AS_JSON) -> None:
    """Read a policy file and say in words what it means; all errors are shown at once."""
    from policygraph.explain import summary
    from policygraph.model.grouped import records_of

    read, query = one_query(file)
    if as_json:
        print_json(
            {
                "file": file,
                "ok": True,
                "definition": records_of(read.policy).definition,
                "policy_fingerprint": read.policy.fingerprint,
                "query_fingerprint": query.fingerprint,
                "policy": read.policy.to_spec(),
            }
        )
        return
    typer.echo(summary(read.policy, query))


def sensitivity(
    file: str = POLICY_FILE,
    norm: str = typer.Option("l1", "--norm", help="l1 for pure epsilon, l2 for zCDP."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = typer.Option(False, "--json", help="Print the whole certificate as one JSON object."),
    out: Path | None = typer.Option(None, "--out", help="Write the certificate into this file."),
) -> None:
    """How much one neighbour step can change what the file releases, with its certificate."""
    from policygraph.model.queries.statistics import NonlinearQuery
    from policygraph.sensitivity import sensitivity as compute

    norm = norm.lower()
    if norm not in ("l1", "l2"):
        raise InputError(f"--norm {norm}: expected l1 or l2.", code="cli.norm")
    read, query = one_query(file)
    if isinstance(query, NonlinearQuery):
        _bound(query, read.policy, norm, as_json=as_json, out=out)
        return
    if out is not None:
        check_target(out)
    with stage("computing the sensitivity"):
        certificate = compute(query, read.policy, norm=norm, time_limit=time_limit)  # type: ignore[arg-type]
    if out is not None:
        with writing(out):
            certificate.to_json(str(out))
    if as_json:
        # --out writes the proof itself, which may be long
        proof = certificate.proof
        kind = proof["kind"] if isinstance(proof, dict) else None
        print_json({**certificate.to_dict(), "proof": kind, "effort": certificate.effort})
    else:
        typer.echo(str(certificate))


def _bound(query: Any, policy: Any, norm: Any, *, as_json: bool, out: Path | None) -> None:
    """The proved bound of a network statistic, which has no certificate with two networks."""
    from policygraph.sensitivity.statistics import statistic_bound

    if out is not None:
        raise InputError(
            "--out: a statistic that is not linear rests on a theorem and has no certificate to write.",
            code="cli.certificate",
        )
    with stage("computing the bound"):
        found = statistic_bound(query, policy, norm)
    if as_json:
        print_json(_plain_bound(found, query))
        return
    root = "the root of " if norm == "l2" else ""
    power = found.power * (query.unit if norm == "l1" else query.unit**2)
    typer.echo(f"sensitivity <= {root}{show(power)} ({norm.upper()}, upper bound)\n  why: {found.reason}")


def _plain_bound(found: Any, query: Any) -> dict[str, Any]:
    """A bound as JSON: the power is in whole numbers of the unit."""
    unit = {} if query.unit == 1 else {"unit": str(query.unit)}
    return {
        "power": str(found.power),
        "norm": found.norm,
        "kind": "upper",
        "reason": found.reason,
        **unit,
    }


def verify(
    certificate: Path = typer.Argument(
        ..., metavar="CERTIFICATE", help="A certificate (JSON).", show_default=False
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Check a certificate again, without the search that made it; `python -m policygraph.check` does so with nothing but Python."""
    from policygraph.documents import read_text
    from policygraph.sensitivity import Sensitivity

    try:
        text = read_text(certificate)
    except OSError as cause:
        raise InputError(
            f"cannot read {certificate}: {cause.strerror}. Give the path of a certificate.json.",
            code="certificate.file",
        ) from cause
    except ValueError as cause:
        raise InputError(
            f"{certificate}: {cause}: expected a certificate in JSON, such as certificate.json beside a release.",
            code="certificate.file",
        ) from cause
    if text.strip() == "null":
        raise InputError(
            f"{certificate} is empty, for the noise of this release rests on a theorem: release.json beside it names the bound and why "
            "it holds.",
            code="cli.certificate",
        )
    with stage("checking the certificate"):
        report = Sensitivity.from_json(text).verify()
    if as_json:
        print_json(report.to_dict())
    else:
        typer.echo(str(report))
    if not report.ok:
        raise typer.Exit(2)


def schema() -> None:
    """Print the JSON Schema of policy files, for editors."""
    from policygraph.files import json_schema

    print_json(json_schema())


def explain(
    file: str = POLICY_FILE,
    epsilon: str = typer.Option("1", "--epsilon", help="Tell the noise for this privacy loss."),
    time_limit: float | None = TIME_LIMIT,
    draw: Path | None = typer.Option(
        None, "--draw", help="Draw the pair that must look alike into this picture."
    ),
    definitions: bool = typer.Option(
        False, "--definitions", help="Set the definitions of the literature side by side instead."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """What is hidden, what is public, which two data sets must look alike, and what each choice costs."""
    from policygraph.explain import explain as make
    from policygraph.model.loss import Epsilon
    from policygraph.model.queries.cuboids import CuboidQuery
    from policygraph.model.queries.statistics import NonlinearQuery

    read, query = one_query(file)
    loss = Epsilon(as_fraction(epsilon, "epsilon"))
    if definitions:
        _definitions(query, read.policy, loss, as_json=as_json, draw=draw)
        return
    if draw is not None:
        from policygraph.pictures import check_picture

        check_picture(draw)
    if isinstance(query, NonlinearQuery):
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


def _definitions(query: Any, policy: Any, loss: Any, *, as_json: bool, draw: Path | None) -> None:
    """What each definition of the literature asks and promises."""
    from policygraph.definitions import definitions, definitions_text
    from policygraph.model.grouped import Grouped
    from policygraph.model.queries.statistics import NonlinearQuery

    if isinstance(policy, Grouped) or isinstance(query, NonlinearQuery) or draw is not None:
        raise InputError(
            "--definitions: expected single records and a linear query, and no --draw. Leave [unit] out of the file to compare the definitions for records.",
            code="cli.definitions",
        )
    with stage("comparing definitions"):
        made = definitions(query, policy)
    if as_json:
        print_json({"definitions": [one.to_dict(loss.value) for one in made]})
        return
    typer.echo(definitions_text(made, loss.value))


def _statistic(query: Any, policy: Any, loss: Any, *, as_json: bool, draw: Path | None) -> None:
    """What can be said of a network statistic: its bound is proved for all pairs of networks at once, and no pair is shown."""
    from policygraph.explain import summary
    from policygraph.sensitivity.statistics import statistic_bound

    with stage("computing the bound"):
        found = statistic_bound(query, policy)
    scale = found.power * query.unit / loss.value
    if as_json:
        words = {"summary": summary(policy, query), "epsilon": str(loss.value), "noise_scale": str(scale)}
        print_json({**words, "bound": _plain_bound(found, query)} | ({} if draw is None else {"drawn": None}))
        return
    typer.echo(
        f"{summary(policy, query)}\n\nsensitivity <= {show(found.power * query.unit)} (L1, upper bound)\n  why: {found.reason}"
    )
    typer.echo(
        f"\nNoise at {loss}: scale {show(scale)}, a standard deviation of about {float(scale) * 2**0.5:.3g} on every number."
    )
    if draw is not None:
        typer.echo("there is no pair to draw")


def plan(
    file: str = POLICY_FILE,
    error: str | None = typer.Option(
        None,
        "--error",
        help="Error that every count may have, in people: the truth is within it with probability 95 %.",
    ),
    table: list[str] = typer.Option(
        [], "--table", help="Error of one table, such as 'sex x age=100'; can be given several times."
    ),
    relative: str | None = typer.Option(
        None,
        "--relative",
        help="In place of --error: a share of the average count of each table, such as 0.05; needs --records or a published total.",
    ),
    records: int | None = typer.Option(None, "--records", min=1, help="About how many records there are."),
    deviation: bool = typer.Option(
        False, "--deviation", help="Errors are standard deviations, and not 95 % ranges."
    ),
    brief: bool = typer.Option(
        False, "--brief", help="Leave out what other strengths, dropped facts and epsilons would buy."
    ),
    mechanism: str | None = MECHANISM,
    plot: Path | None = typer.Option(
        None, "--plot", help="Draw the error against epsilon into this picture."
    ),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = AS_JSON,
) -> None:
    """Which epsilon reaches an error, and what other policies would buy. No data is read, and nothing is spent.

    Example: policygraph plan policy.toml --error 50
    """
    from policygraph.compare import named_mechanism
    from policygraph.mechanisms import Mechanism
    from policygraph.model.loss import Epsilon
    from policygraph.plan import plan as make

    read, query = one_query(file)
    if plot is not None:
        from policygraph.pictures import check_picture

        check_picture(plot)
    tables = {}
    for given in table:
        name, sign, value = given.rpartition("=")
        if not sign:
            raise InputError(
                f"--table {given}: expected a table and its error, such as 'sex x age=100'.",
                code="plan.table",
            )
        tables[name.strip()] = value.strip()
    with stage("planning") as tell:
        chosen = named_mechanism(
            mechanism or read.mechanism,
            query,
            read.policy,
            Epsilon(1),
            read.cube,
            nonnegative=read.nonnegative and mechanism is None,
        )
        made = make(
            query,
            read.policy,
            error=error,
            tables=tables,
            relative=relative,
            records=records,
            measure="deviation" if deviation else "within_95",
            mechanism=chosen if isinstance(chosen, Mechanism) else None,
            alternatives=not brief,
            time_limit=time_limit,
            progress=tell,
        )
    if plot is not None:
        with writing(plot):
            made.plot(plot)
    if as_json:
        print_json({"file": file, **made.to_dict()} | ({} if plot is None else {"plot": str(plot)}))
        return
    typer.echo(str(made))
    if plot is not None:
        typer.echo(f"drawn: {plot}")


def compare(
    file: str = POLICY_FILE,
    epsilon: str | None = typer.Option(
        None, "--epsilon", help="Privacy loss of a release; 1 when no loss is given.", show_default=False
    ),
    delta: str | None = DELTA,
    rho: str | None = RHO,
    data: str | None = typer.Option(
        None,
        "--data",
        help="PUBLIC OR SIMULATED records to measure errors on: nothing is noised or charged.",
    ),
    runs: int = typer.Option(10, "--runs", min=1, help="With --data: runs of each mechanism."),
    synthetic: list[Path] = typer.Option(
        [],
        "--synthetic",
        help="With --data, the edges of a network: compare these synthetic graphs with it; may be given several times.",
    ),
    engine: str | None = ENGINE,
    plot: Path | None = typer.Option(None, "--plot", help="Draw the errors into this picture."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = AS_JSON,
) -> None:
    """Which mechanism answers what a policy file asks for best: expected errors, and measured ones on public data.

    Without --data no data is read. With it the true counts are used as they are: never give it data that is to be protected.
    """
    from policygraph.api import read_data
    from policygraph.compare import PUBLIC_ONLY
    from policygraph.compare import compare as make

    loss = loss_option(epsilon, rho, delta, default="1")
    if plot is not None:
        from policygraph.pictures import check_picture

        check_picture(plot)
    if synthetic:
        _show(_compared_graphs(file, data, synthetic), plot, as_json)
        return
    read, query = one_query(file)
    counts: Any = None
    if data is not None:
        typer.echo(PUBLIC_ONLY, err=True)
        with stage("counting the records"):
            counts = read_data(data_files(read, data), read.policy, read.columns, read.edges, engine)
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
    _show(made, plot, as_json)


def audit(
    file: str = POLICY_FILE,
    epsilon: str | None = typer.Option(
        None,
        "--epsilon",
        help="Privacy loss that the release claims; 1 when no loss is given.",
        show_default=False,
    ),
    delta: str | None = DELTA,
    rho: str | None = RHO,
    samples: int = typer.Option(20_000, "--samples", help="Runs of the mechanism on each table."),
    confidence: str = typer.Option(
        "0.999", "--confidence", help="Probability with which all bounds of the report hold."
    ),
    mechanism: str | None = MECHANISM,
    pairs: int = typer.Option(8, "--pairs", min=1, help="Pairs of neighbouring tables at most."),
    seed: str | None = typer.Option(None, "--seed", help="Repeatable randomness."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = AS_JSON,
) -> None:
    """Run what a policy file releases on made-up neighbouring tables and look for leaks; exit status 4 when one is found.

    No data is read. An audit can refute a claimed loss; it cannot prove one.
    """
    from policygraph.audit import audit as run
    from policygraph.compare import named_mechanism
    from policygraph.curator.noise import SecureRng, SeededRng
    from policygraph.mechanisms import choose
    from policygraph.mechanisms.members import calibrated_under
    from policygraph.sensitivity.proofs import shared_proofs

    loss = loss_option(epsilon, rho, delta, default="1")
    read, query = one_query(file)
    with stage("computing the sensitivity") as tell, shared_proofs(time_limit) as proofs:
        chosen = named_mechanism(
            mechanism or read.mechanism,
            query,
            read.policy,
            loss,
            read.cube,
            nonnegative=read.nonnegative and mechanism is None,
        )
        ready = (
            choose(query, read.policy, loss)
            if chosen == "auto"
            else calibrated_under(chosen, query, read.policy, loss)
        )
        report = run(
            ready,
            samples=samples,
            confidence=confidence,
            most_pairs=pairs,
            rng=SecureRng() if seed is None else SeededRng(seed),
            progress=tell,
        )
    if as_json:
        print_json(cut_short_json(report.to_dict() | {"leak": not report.passed}, proofs))
    else:
        typer.echo(cut_short_text(report, proofs))
    if not report.passed:
        raise typer.Exit(LEAK)


def attack(
    file: str = POLICY_FILE,
    epsilon: str = typer.Option("1", "--epsilon", help="Privacy loss that both releases are scaled for."),
    data: str | None = typer.Option(
        None,
        "--data",
        help="FOR THE CURATOR: look for facts in the data that nobody stated. The output is then not to be published.",
    ),
    engine: str | None = ENGINE,
    plot: Path | None = typer.Option(None, "--plot", help="Draw both releases into this picture."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = AS_JSON,
) -> None:
    """What somebody who knows the public facts learns from plain differential privacy, and what under this policy.

    Without --data no data is read. With it facts are looked for in the true counts, and what is found has no noise: it is for the curator only.
    """
    from policygraph.attacks import attack as make
    from policygraph.attacks.unstated import CURATOR_ONLY

    read, query = one_query(file)
    loss = as_fraction(epsilon, "epsilon")
    if plot is not None:
        from policygraph.pictures import check_picture

        check_picture(plot)
    with stage("attacking") as tell:
        made = make(
            query,
            read.policy,
            loss,
            None if data is None else data_files(read, data),
            columns=read.columns,
            edges=read.edges,
            engine=engine,
            time_limit=time_limit,
            progress=tell,
        )
    if made.unstated is not None:
        typer.echo(CURATOR_ONLY, err=True)
    _show(made, plot, as_json)


def _compared_graphs(file: str, data: str | None, synthetic: list[Path]) -> Any:
    """Synthetic graphs beside the network they were made from, and beside a random one with its degrees."""
    from policygraph.api import read_data
    from policygraph.estimation.networks import compare_graphs
    from policygraph.estimation.networks.synthetic import graph_of_edges
    from policygraph.files import load
    from policygraph.model.domain import Network
    from policygraph.model.policy import Policy

    read = load(file)
    policy, network = read.policy, read.policy.domain
    if data is None or not isinstance(network, Network) or not isinstance(policy, Policy):
        raise InputError(
            "--synthetic compares graphs with the network they were made from: expected a policy file with [network], and --data with its edges.",
            code="compare.synthetic",
        )
    typer.echo("This prints statistics of the original network as they are: for the curator alone.", err=True)

    def graph(source: Any, columns: Any, edges: Any) -> Any:
        cells = read_data(source, policy, columns, edges).sparse()[0]
        tail, head = network.pairs(cells)
        nodes = network.nodes
        return graph_of_edges(
            network, [(nodes[u], nodes[v]) for u, v in zip(tail.tolist(), head.tolist(), strict=True)]
        )

    with stage("comparing the graphs"):
        original = graph(data_files(read, data), read.columns, read.edges)
        return compare_graphs(
            original,
            {path.stem: graph(str(path), None, None) for path in synthetic},
            model=True,
        )


def _show(made: Any, plot: Path | None, as_json: bool) -> None:
    """Draw a comparison or an attack if a file is named for it, and print it."""
    if plot is not None:
        with writing(plot):
            made.plot(plot)
    if as_json:
        print_json(made.to_dict() | ({} if plot is None else {"plot": str(plot)}))
        return
    typer.echo(str(made))
    if plot is not None:
        typer.echo(f"drawn: {plot}")
