"""Commands that make numbers for others: release and ask, which touch data; synthetic, which does with --data; report, which only reads a release."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from policygraph.cli.common import (
    AS_JSON,
    COMPOSE_POLICIES,
    DATA,
    DELTA,
    ENGINE,
    MECHANISM,
    NONNEGATIVE,
    POLICY_FILE,
    RHO,
    TIME_LIMIT,
    by_option,
    check_path,
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
from policygraph.errors import InputError, PolicyGraphError
from policygraph.exact import as_fraction

if TYPE_CHECKING:
    from policygraph.curator.ledger.accounts import Account
    from policygraph.release.release import Release

WEAK = 20
"""An epsilon above this gives almost no protection: odds may change by a factor of exp(20), some 500 million."""

LATE = ("charging the ledger", "drawing the noise", "recording the release")
"""Stages in which a charge may have been made."""

WRITTEN = ("release.parquet", "release.csv", "release.json", "certificate.json")
PAGE = "report.html"
EXCEL = "release.xlsx"
TABLES = "tables"
"""Folder of one CSV file for each table."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command(
        short_help="Release what a policy file asks for, with noise.",
        epilog="Example: policygraph release policies/census-margins.toml --data people.csv --epsilon 1 --out out/",
    )(release)
    app.command(
        short_help="Make one page of a release that explains it to people.",
        epilog="Example: policygraph report out/ --to report.html",
    )(report)
    app.command(
        short_help="Count records into a file, to be merged with others and released later.",
        epilog="Example: policygraph count policy.toml --data people.csv --out part.parquet",
    )(count)
    app.command(
        short_help="Add up files of counts.",
        epilog="Example: policygraph merge part1.parquet part2.parquet --out counts.parquet",
    )(merge)
    app.command(
        short_help="Answer one question with a table of counts.",
        epilog="Example: policygraph ask policy.toml --cuboid sex,age --deviation 5 --data people.csv --ledger budget.db",
    )(ask)
    app.command(
        short_help="Make synthetic records, or a graph with the public degrees.",
        epilog="Example: policygraph synthetic policy.toml --data edges.txt --epsilon 1 --to synthetic.csv",
    )(synthetic)
    app.command(
        short_help="Test whether two attributes with public margins are independent.",
        epilog="Example: policygraph independence out/",
    )(independence)


def release(
    file: str = POLICY_FILE,
    data: str = typer.Option(..., "--data", help=f"{DATA} An edge list for a network."),
    out: Path = typer.Option(..., "--out", help="Folder to write into."),
    epsilon: str | None = typer.Option(None, "--epsilon", help="Privacy loss, e.g. 1, 0.1 or 1/3."),
    delta: str | None = DELTA,
    rho: str | None = RHO,
    ledger: str | None = typer.Option(
        None,
        "--ledger",
        help="Budget file, or postgresql://host/database?ledger=name; the charge is recorded before any noise.",
    ),
    dataset: str | None = typer.Option(
        None, "--dataset", help="Name of the account in the ledger; all charges under one name add up."
    ),
    mechanism: str | None = MECHANISM,
    nonnegative: bool = NONNEGATIVE,
    agreeing: bool = typer.Option(
        False,
        "--agreeing",
        help="Of linked tables: counts that agree with each other, whole and not negative, at no cost.",
    ),
    compose_policies: bool = COMPOSE_POLICIES,
    again: bool = typer.Option(
        False, "--again", help="Draw and pay again although this request is on record."
    ),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="Replace the files of another release in the folder."
    ),
    seed: str | None = typer.Option(
        None, "--seed", help="NOT PRIVATE: reproducible noise for tests and papers."
    ),
    engine: str | None = ENGINE,
    excel: bool = typer.Option(
        False, "--excel", help="Write release.xlsx too: one workbook with a sheet for each table."
    ),
    bom: bool = typer.Option(
        False,
        "--bom",
        help="Start the files in tables/ with a byte order mark, by which Excel knows UTF-8.",
    ),
    page: bool = typer.Option(
        False, "--report", help="Write report.html too: one page that explains the release to people."
    ),
    parts: str | None = typer.Option(
        None,
        "--parts",
        help="New folder for the table of one cuboid of any size, in Parquet files; on Spark its workers write them.",
    ),
    purpose: str | None = typer.Option(
        None, "--purpose", help="What the release is for; kept in the ledger."
    ),
    labels: list[str] = typer.Option(
        [], "--label", help="A label for the ledger; may be given several times."
    ),
    reservation: int | None = typer.Option(
        None, "--reservation", help="Take the loss from this reservation (policygraph budget reserve)."
    ),
    require_proof: bool = typer.Option(
        False,
        "--require-proof",
        help="Refuse, before any charge, unless the certificate is completely checked (python -m policygraph.check).",
    ),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = typer.Option(
        False, "--json", help="Print one JSON object: where it wrote, what it spent."
    ),
) -> None:
    """Release what a policy file asks for, with exact noise, and write table, provenance and certificate.

    A request that is on record in the ledger is written again and costs nothing.
    """
    from policygraph.api import Request, perform
    from policygraph.compare import named_mechanism
    from policygraph.curator.counting.reading import shown_data
    from policygraph.curator.ledger import Tags, place_of
    from policygraph.curator.noise import SecureRng, SeededRng
    from policygraph.sensitivity.proofs import shared_proofs

    target = loss_option(epsilon, rho, delta)
    read, query = one_query(file)
    _warn_of_weak(epsilon)
    if agreeing:
        from policygraph.estimation.linked import check_agreeing

        check_agreeing(read.policy, query)
    if excel:
        from policygraph.release.sheets import check_workbook

        check_workbook({part.name: part.height for part in query.parts})
    rng = SecureRng() if seed is None else SeededRng(seed)
    where = None if ledger is None else place_of(ledger)
    if ledger is None:
        typer.echo("no --ledger: what is spent here is not recorded anywhere", err=True)
    stages: list[str] = []
    with _folder(out), stage("starting") as show, shared_proofs(time_limit), by_option():

        def tell(now: str) -> None:
            stages.append(now)
            show(now)

        try:
            request = Request.of(
                query,
                read.policy,
                data_files(read, data),
                epsilon=epsilon,
                rho=rho,
                delta=delta,
                mechanism=named_mechanism(
                    mechanism or read.mechanism,
                    query,
                    read.policy,
                    target,
                    read.cube,
                    nonnegative=nonnegative or (read.nonnegative and mechanism is None),
                ),
                columns=read.columns,
                edges=read.edges,
                engine=engine,
            )
            done = perform(
                request,
                ledger=ledger,
                dataset=dataset,
                rng=rng,
                compose_policies=compose_policies,
                reuse=not again,
                progress=tell,
                before=lambda: None if overwrite else _refuse_files(out),
                parts=parts,
                tags=Tags(purpose, labels, reservation),
                require_proof=require_proof,
            )
        except KeyboardInterrupt:
            # The last stages are the charge, which may or may not be on the disk by now, and the noise.
            late = [text for text in stages if text in LATE]
            typer.echo(
                "stopped before anything was charged"
                if not late or ledger is None
                else f"stopped during or after the charge: policygraph budget history {where} shows whether it was made; if so, "
                "the same command completes it at no cost",
                err=True,
            )
            raise
        made = done.release
        if agreeing:
            from policygraph.estimation.linked import agreeing as made_to_agree

            show("making the tables agree")
            made = made_to_agree(made)
        if done.repeated and not overwrite and not _holds(out, made):
            _refuse_files(out)
        loss = made.loss
        try:
            written = made.write(out, tables=True, bom=bom, excel=excel or (out / EXCEL).exists())
        except (InputError, OSError) as cause:
            if done.repeated:
                what = "Nothing was charged"
            elif ledger is None:
                what = f"The noise was drawn and is lost, and no ledger recorded that {loss} was meant to be spent"
            else:
                what = f"{loss} was charged, and the release is on record in {where}"
            free = "" if ledger is None else ": the same command with another --out costs nothing"
            raise InputError(
                f"{_cause(cause)} {what}{free}.", code="release.not-written", value=str(out)
            ) from cause
        # A page of another release would stay beside the new numbers.
        if page or (out / PAGE).exists():
            show("writing the page")
            written[PAGE] = _page(made, out, done.account)
    if done.unlimited:
        typer.echo(
            f"the ledger has limits for other data sets, and none for this one: set one with policygraph budget set {where} "
            f"{dataset or shown_data(data)} --epsilon ..., or name the data set that it belongs to with --dataset",
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
                "ledger": where,
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
    if parts is not None and done.repeated and not done.completed:
        typer.echo(
            "the parts were written when it was made, and their noise is not kept: none are written now",
            err=True,
        )
    typer.echo("written: " + ", ".join(written.values()))


def _page(made: Release, out: Path, account: Account | None) -> str:
    """Write the page of a release that is complete without it."""
    from policygraph.report import report as write

    try:
        write(made, out / PAGE, account=account)
    except (PolicyGraphError, OSError) as cause:
        raise InputError(
            f"The release is complete, and its page could not be made: {_cause(cause)} `policygraph report {out}` makes it, at no cost.",
            code="report.not-written",
            value=str(out),
        ) from cause
    return str(out / PAGE)


def report(
    folder: Path = typer.Argument(
        ..., metavar="OUT", help="The folder that `policygraph release` wrote, or its release.parquet."
    ),
    to: Path | None = typer.Option(
        None, "--to", help="Where to write the page; by default report.html in the folder."
    ),
    ledger: str | None = typer.Option(
        None, "--ledger", help="Budget file: the page then says what is spent and left."
    ),
    dataset: str | None = typer.Option(
        None, "--dataset", help="Name of the account in the ledger, where it has several."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Make one page of a release: tables, charts, what is protected, what an attacker could learn, how to check it.

    The page is one HTML file that works offline. It is made of the published release only.
    """
    from policygraph.report import report as write

    account = None if ledger is None else _account(ledger, dataset)
    if dataset is not None and ledger is None:
        raise InputError("--dataset without --ledger: expected both, or none.", code="report.dataset")
    target = to or (folder if folder.is_dir() else folder.parent) / PAGE
    check_target(target)
    with stage("making the page"), writing(target):
        write(folder, target, account=account)
    if as_json:
        print_json({"written": {PAGE: str(target)}})
        return
    typer.echo(f"written: {target}")


def _account(ledger: str, dataset: str | None) -> Any:
    """The account that a page tells of: the named one, or the only one."""
    from policygraph.curator.ledger import Ledger

    book = Ledger(ledger, create=False)
    known = book.datasets()
    found = [each for each in known if dataset in (each.name, each.dataset)] if dataset else known
    if len(found) != 1:
        names = ", ".join(each.name or each.dataset[:16] for each in known[:8]) or "none"
        raise InputError(
            f"{'no data set of the ledger is named ' + repr(dataset) if dataset else f'the ledger has {len(known)} data sets'}: expected --dataset with "
            f"one of its names ({names}).",
            code="report.dataset",
            value=dataset,
        )
    return found[0]


def count(
    file: str = POLICY_FILE,
    data: str = typer.Option(..., "--data", help=f"{DATA} An edge list for a network."),
    out: Path = typer.Option(..., "--out", help="File of counts to write (Parquet)."),
    engine: str | None = ENGINE,
) -> None:
    """Count records into a file of cells and counts. It is as private as the records, and nothing is charged.

    Several such files are added up by `policygraph merge`; `policygraph release --data` takes one.
    """
    from policygraph.curator.requests import count_part

    check_target(out)
    read, query = one_query(file)
    with stage("counting the records"):
        part = count_part(data_files(read, data), query, read.policy, read.columns, read.edges, engine)
    with writing(out):
        part.write(out)
    typer.echo(f"written: {out}, true counts: as private as the records")


def merge(
    parts: list[str] = typer.Argument(
        ..., metavar="PART...", help="Files that `policygraph count` wrote.", show_default=False
    ),
    out: Path = typer.Option(..., "--out", help="File of counts to write (Parquet)."),
) -> None:
    """Add up files of counts that were made under the same policy, of different records."""
    from policygraph.curator.counting.parts import merge_parts

    check_target(out)
    made = merge_parts(parts)
    with writing(out):
        made.write(out)
    typer.echo(f"written: {out}, true counts: as private as the records")


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
            f"--out {out}: cannot write there ({cause.strerror}). Name a folder in which you may write. Nothing was charged.",
            code="release.folder",
            value=str(out),
        ) from cause
    if (out / TABLES).is_symlink() or (out / TABLES).is_file():
        _remove(made)
        raise InputError(
            f"--out {out}: {TABLES} is not a folder there, and tables are to be written into one. Nothing was charged.",
            code="release.folder",
            value=TABLES,
        )
    for name in (*WRITTEN, PAGE, EXCEL):
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
    found = [name for name in (*WRITTEN, PAGE, EXCEL) if os.path.lexists(out / name)]
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


def ask(
    file: str = POLICY_FILE,
    cuboid: str = typer.Option(
        ..., "--cuboid", help="Attributes of the table, with commas; empty for the total."
    ),
    data: str = typer.Option(..., "--data", help=DATA),
    ledger: str = typer.Option(
        ...,
        "--ledger",
        help="Budget file, or postgresql://host/database?ledger=name; all that was released is on record there.",
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
    compose_policies: bool = COMPOSE_POLICIES,
    engine: str | None = ENGINE,
    only_cost: bool = typer.Option(False, "--cost", help="Only say what it would cost now."),
    out: Path | None = typer.Option(None, "--out", help="Write the table into this CSV file."),
    time_limit: float | None = TIME_LIMIT,
    as_json: bool = AS_JSON,
) -> None:
    """Answer with one table of counts: from what was released already if that is accurate enough, otherwise from the data."""
    from policygraph.curator.online import OnlineCube
    from policygraph.sensitivity.proofs import shared_proofs

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
        engine=engine,
    )
    names = [name.strip() for name in cuboid.split(",") if name.strip()]
    with stage("answering"), shared_proofs(time_limit) as proofs:
        if only_cost:
            loss = cube.cost(*names, deviation=deviation, epsilon=epsilon, rho=rho)
            if as_json:
                cost = {"cuboid": names, "cost": None if loss is None else loss.to_json()}
                print_json(cut_short_json(cost, proofs))
            else:
                typer.echo(cut_short_text("nothing" if loss is None else loss, proofs))
            return
        with by_option():
            made = cube.ask(*names, deviation=deviation, epsilon=epsilon, rho=rho)
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
        print_json(cut_short_json(said, proofs))
        return
    typer.echo(cut_short_text(made, proofs))
    if out is None:
        columns = made.arrow().to_pydict()
        typer.echo("\t".join(columns))
        for row in zip(*columns.values(), strict=True):
            typer.echo("\t".join(f"{x:.10g}" if isinstance(x, float) else str(x) for x in row))


def synthetic(
    folder: str = typer.Argument(
        ...,
        metavar="FOLDER",
        help="What policygraph release wrote, of tables or of mixing counts; with --data, a policy file for a network.",
    ),
    to: Path = typer.Option(
        ..., "--to", help="Write the records, or the edges with the columns from and to, into this CSV file."
    ),
    degrees: Path | None = typer.Option(
        None,
        "--degrees",
        help="CSV of the public degrees with the columns node and degree (directed: node, out, in); needed unless the policy "
        "gives their values.",
    ),
    seed: int | None = typer.Option(
        None, "--seed", min=0, help="Make the same graph or records again; privacy does not depend on it."
    ),
    records: int | None = typer.Option(
        None,
        "--records",
        min=0,
        help="How many records to make of tables; by default as many as the release counts.",
    ),
    data: str | None = typer.Option(
        None, "--data", help="The edges of a network: release what a synthetic graph needs, and make it."
    ),
    communities: int | None = typer.Option(
        None,
        "--communities",
        help="With --data: find so many groups of nodes with half of the loss, and keep the edges between them.",
    ),
    epsilon: str | None = typer.Option(
        None, "--epsilon", help="With --data: the loss of all that is released."
    ),
    delta: str | None = DELTA,
    rho: str | None = RHO,
    ledger: str | None = typer.Option(None, "--ledger", help="With --data: the budget that is charged."),
    dataset: str | None = typer.Option(None, "--dataset", help="With --data: the account in the ledger."),
    as_json: bool = AS_JSON,
) -> None:
    """Make synthetic records from released tables, or a graph from released counts; with --data, release them first.

    What was released before costs no budget. With --data and a policy file for a network, the loss is split over what a synthetic graph needs:
    counts between classes of degrees, triangles and clustering. Public groups in the file (mixing) are kept as well.
    """
    from policygraph.estimation.networks import synthetic_from_release
    from policygraph.model.domain import Domain
    from policygraph.release.release import Release

    check_target(to)
    if data is not None:
        if degrees is not None or records is not None:
            raise InputError(
                "--degrees and --records are for what was released before: expected neither beside --data. A policy file publishes degrees "
                "with equals.",
                code="synthetic.options",
            )
        loss = loss_option(epsilon, rho, delta)
        _synthesise(folder, data, to, loss, communities, ledger, dataset, seed, as_json)
        return
    if any(given is not None for given in (epsilon, delta, rho, ledger, dataset, communities)):
        raise InputError(
            "a loss and a ledger are for a release: expected --data beside them, or none of them for what was released before.",
            code="synthetic.options",
        )
    place = Path(folder)
    release = Release.from_parquet(place / "release.parquet" if place.is_dir() else place)
    if isinstance(release.policy.domain, Domain) and degrees is None:
        _synthetic_records(release, to, records, seed, as_json)
        return
    if records is not None:
        raise InputError(
            "--records is for releases of tables: a graph has as many edges as its degrees say.",
            code="synthetic.records",
        )
    public = None
    if degrees is not None:
        public = _read_degrees(degrees, release.policy.domain)
    with stage("starting") as show:
        made = synthetic_from_release(release, public, seed=seed, progress=show)
    _write_graph(made, to, as_json)


def _synthesise(
    file: str,
    data: str,
    to: Path,
    loss: Any,
    communities: int | None,
    ledger: str | None,
    dataset: str | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Release what a synthetic graph needs, and make it."""
    from policygraph.files import load
    from policygraph.model.loss import Epsilon
    from policygraph.model.queries.networks import MixingQuery
    from policygraph.networks import synthesise

    read = load(file)
    if ledger is None:
        typer.echo("no --ledger: what is spent here is not recorded anywhere", err=True)
    given = {"epsilon": loss.value} if isinstance(loss, Epsilon) else {"rho": loss.value}
    with stage("starting") as show:
        made = synthesise(
            read.policy,
            data_files(read, data),
            groups=list(read.query.groups) if isinstance(read.query, MixingQuery) else None,
            communities=communities,
            ledger=ledger,
            dataset=dataset,
            seed=seed,
            edges=read.edges,
            columns=read.columns,
            progress=show,
            **given,
        )
    _write_graph(made, to, as_json)


def _write_graph(made: Any, to: Path, as_json: bool) -> None:
    with writing(to):
        made.to_csv(to)
    if as_json:
        print_json(
            {
                "written": str(to),
                "edges": len(made.tail),
                "counts_met": made.exact,
                "approached": {
                    one.name: {"wanted": one.wanted, "reached": one.reached} for one in made.approached
                },
                "releases": [one.record["loss"] for one in made.releases],
                "notes": list(made.notes),
            }
        )
        return
    typer.echo(str(made))
    typer.echo(f"written: {to}")


def independence(
    folder: Path = typer.Argument(
        ...,
        metavar="FOLDER",
        help="What policygraph release wrote of statistic = 'chi-squared', or of the table of two attributes with noise on every count.",
    ),
    runs: int = typer.Option(9_999, "--runs", help="Simulated releases of independent attributes."),
    as_json: bool = AS_JSON,
) -> None:
    """Test independence from a release under public margins; the p-value accounts for the noise, and costs no budget."""
    from policygraph.estimation.statistics import chi_squared
    from policygraph.release.release import Release

    release = Release.from_parquet(folder / "release.parquet" if folder.is_dir() else folder)
    with stage("simulating releases of independent attributes"):
        found = chi_squared(release, runs=runs)
    if as_json:
        print_json(
            {
                "p_value": found.p_value,
                "simulation_error": found.error,
                "statistic": found.statistic,
                "degrees": found.degrees,
                "runs": found.runs,
            }
        )
        return
    typer.echo(str(found))


def _synthetic_records(release: Any, to: Path, records: int | None, seed: int | None, as_json: bool) -> None:
    from policygraph.estimation.graphical.records import synthetic_records

    with stage("fitting a model to the released tables"):
        made = synthetic_records(release, records, seed=seed or 0)
    with writing(to):
        made.to_csv(to)
    if as_json:
        print_json({"written": str(to), "records": len(made), "notes": list(made.notes)})
        return
    typer.echo(str(made))
    typer.echo(f"written: {to}")


def _read_degrees(path: Path, network: Any) -> Any:
    """Public degrees from a CSV file; nodes are found by their text."""
    from policygraph.documents import read_text
    from policygraph.estimation.networks import PublicDegrees
    from policygraph.model.domain import Network

    if not isinstance(network, Network):
        raise InputError(
            "the release is of a table, and --degrees is for networks: leave it out.", code="networks.domain"
        )
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
