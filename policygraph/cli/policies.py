"""Commands about a policy file without data: check, sensitivity, verify, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from policygraph.cli.common import (
    POLICY_FILE,
    TIME_LIMIT,
    check_target,
    one_query,
    print_json,
    stage,
    writing,
)
from policygraph.errors import InputError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(epilog="Example: policygraph check policies/census-margins.toml")(check)
    app.command(epilog="Example: policygraph sensitivity policies/census-margins.toml --json")(sensitivity)
    app.command(epilog="Example: policygraph verify out/certificate.json")(verify)
    app.command(epilog="Example: policygraph schema > policy.schema.json")(schema)


def check(
    file: str = POLICY_FILE, as_json: bool = typer.Option(False, "--json", help="Print one JSON object.")
) -> None:
    """Read a policy file and say in words what it means; all errors are shown at once."""
    from policygraph.explain import summary

    read, query = one_query(file)
    if as_json:
        print_json(
            {
                "file": file,
                "ok": True,
                "definition": read.policy.definition,
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
    from policygraph.model.queries.network_statistics import NetworkStatistic
    from policygraph.sensitivity import sensitivity as compute

    norm = norm.lower()
    if norm not in ("l1", "l2"):
        raise InputError(f"--norm {norm}: expected l1 or l2.", code="cli.norm")
    read, query = one_query(file)
    if isinstance(query, NetworkStatistic):
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
        print_json(certificate.to_dict())
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
        print_json({"power": str(found.power), "norm": found.norm, "kind": "upper", "reason": found.reason})
        return
    root = "the root of " if norm == "l2" else ""
    typer.echo(f"sensitivity <= {root}{found.power} ({norm.upper()}, upper bound)\n  why: {found.reason}")


def verify(
    certificate: Path = typer.Argument(
        ..., metavar="CERTIFICATE", help="A certificate (JSON).", show_default=False
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Check a certificate again, without the search that made it."""
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
