"""The command that makes a graph of a release: synthetic. Post-processing; no data is read, and nothing is spent."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import typer

from policygraph.cli.common import check_target, print_json, stage, writing
from policygraph.errors import InputError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(epilog="Example: policygraph synthetic out/ --to synthetic.csv")(synthetic)


def synthetic(
    folder: Path = typer.Argument(
        ..., metavar="FOLDER", help="What policygraph release wrote, of mixing counts."
    ),
    to: Path = typer.Option(
        ..., "--to", help="Write the edges into this CSV file, with the columns from and to."
    ),
    degrees: Path | None = typer.Option(
        None,
        "--degrees",
        help="CSV of the public degrees with the columns node and degree (directed: node, out, in); needed unless the policy "
        "gives their values.",
    ),
    seed: int | None = typer.Option(
        None, "--seed", min=0, help="Make the same graph again; privacy does not depend on it."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Make a synthetic graph with exactly the public degrees from released mixing counts; costs no budget."""
    from policygraph.documents import MALFORMED
    from policygraph.estimation.networks import synthetic_from_release
    from policygraph.model.policy import Policy
    from policygraph.release.release import Release

    check_target(to)
    release = Release.from_parquet(folder / "release.parquet" if folder.is_dir() else folder)
    public = None
    if degrees is not None:
        try:
            network = Policy.from_spec(release.record["policy"]).domain
        except MALFORMED as cause:
            raise InputError(
                f"{folder} has no policy that can be read ({cause}).", code="release.file"
            ) from cause
        public = _read_degrees(degrees, network)
    with stage("starting") as show:
        made = synthetic_from_release(release, public, seed=seed, progress=show)
    with writing(to):
        made.to_csv(to)
    if as_json:
        print_json(
            {"written": str(to), "edges": len(made.tail), "counts_met": made.exact, "notes": list(made.notes)}
        )
        return
    typer.echo(str(made))
    typer.echo(f"written: {to}")


def _read_degrees(path: Path, network: Any) -> Any:
    """Public degrees from a CSV file; nodes are found by their text."""
    from policygraph.documents import read_text
    from policygraph.estimation.networks import PublicDegrees
    from policygraph.model.domain import Network

    if not isinstance(network, Network):
        raise InputError("the release is of a table: expected one of a network.", code="networks.domain")
    wanted = ("out", "in") if network.directed else ("degree",)
    named = {str(node): node for node in network.nodes}
    found: dict[str, dict[Any, int]] = {side: {} for side in wanted}
    try:
        with io.StringIO(read_text(path)) as lines:
            rows = csv.DictReader(lines, skipinitialspace=True)
            if not {"node", *wanted} <= set(rows.fieldnames or ()):
                raise InputError(
                    f"{path}: its columns are {rows.fieldnames}: expected node, {', '.join(wanted)}.",
                    code="networks.degrees",
                )
            for at, row in enumerate(rows, start=2):
                node = named.get(str(row["node"]).strip())
                values = [str(row[side]).strip() for side in wanted]
                if (
                    node is None
                    or node in found[wanted[0]]
                    or not all(v.isascii() and v.isdigit() for v in values)
                ):
                    raise InputError(
                        f"{path}, line {at}: {dict(row)}: expected a node of the network, each once, and whole numbers >= 0.",
                        code="networks.degrees",
                    )
                for side, value in zip(wanted, values, strict=True):
                    found[side][node] = int(value)
    except InputError:
        raise
    except (OSError, ValueError, csv.Error) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else cause
        raise InputError(
            f"{path} cannot be read ({reason}): expected a CSV file with the columns node, {', '.join(wanted)}.",
            code="networks.degrees",
        ) from cause
    if network.directed:
        return PublicDegrees.of(network, out=found["out"], into=found["in"])
    return PublicDegrees.of(network, found["degree"])
