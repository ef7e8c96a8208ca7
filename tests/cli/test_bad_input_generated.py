"""Bad input by the hundred: no traceback, the right exit status, one JSON object, nothing charged, and a sentence that helps."""

from __future__ import annotations

import io
import json
import os
import random
import re
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import policygraph as pg
from policygraph.cli.app import app, run
from policygraph.files import loads
from tests.cli.bad_inputs import EXTRA, ROOT, WHOLES, changed, json_file, policies, toml_file, torn

CASES = {"policies": 480, "certificates": 350, "data": 90, "options": 360, "ledgers": 45, "releases": 60}
CODES = set(
    re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "reference" / "errors.md").read_text(), re.MULTILINE)
)
PLAIN = '[domain]\nsex = ["F", "M"]\nage = 3\n[neighbours]\ngraph = "full"\n'
"""A policy that is released at once."""
NETWORK = EXTRA[3]


class Told(NamedTuple):
    status: int
    out: str
    err: str


class Place(NamedTuple):
    """A folder with good files of every kind, and a ledger that must not change when a command fails."""

    folder: Path
    policy: Path
    data: Path
    ledger: Path
    release: Path
    network_release: Path

    def command(self, *more: Any) -> list[Any]:
        return [
            "release",
            self.policy,
            "--data",
            self.data,
            "--epsilon",
            "1",
            "--ledger",
            self.ledger,
            "--out",
            self.folder / "new",
            *more,
        ]


def call(*arguments: Any) -> Told:
    """Run the command in this process, with streams as strict as those of a terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        status = run([str(argument) for argument in arguments])
    out.flush()
    err.flush()
    return Told(status, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]


def spent(ledger: Path) -> list[Any]:
    return [entry.to_json() for entry in pg.Ledger(ledger, create=False).history()]


def wrong(told: Told, allowed: set[int], *, as_json: bool = True) -> str:
    """What is wrong with the answer to bad input; empty when nothing is."""
    if told.status not in allowed:
        return f"status {told.status}"
    if "Traceback" in told.err or "an internal error" in told.err:
        return "a traceback"
    if len(told.err) > 20_000:
        return f"{len(told.err)} characters of message"
    if as_json:
        try:
            answer = json.loads(told.out, parse_constant=lambda word: pytest.fail(word))
        except ValueError:
            return f"no JSON object: {told.out[:100]!r}"
        if not isinstance(answer, dict):
            return f"no JSON object: {told.out[:100]!r}"
        if told.status in (2, 3) and "error" in answer:
            code, message = answer["error"]["code"], answer["error"]["message"]
            if code != "cli.usage" and code not in CODES:
                return f"unknown code {code}"
            if len(message) < 20 and code != "cli.usage":
                return f"no sentence: {message}"
    return "" if told.status == 0 or told.err.strip() or as_json else "no message"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("place")
    made = Place(
        folder, folder / "p.toml", folder / "d.csv", folder / "b.db", folder / "out", folder / "nout"
    )
    made.policy.write_text(PLAIN)
    made.data.write_text("sex,age\n" + "F,0\nM,1\nF,2\n" * 20)
    assert call(*made.command()[:-1], made.release)[0] == 0
    (folder / "n.toml").write_text(NETWORK)
    (folder / "n.csv").write_text("x,y\na,b\nc,d\n")
    assert (
        call(
            "release",
            folder / "n.toml",
            "--data",
            folder / "n.csv",
            "--epsilon",
            "1",
            "--out",
            made.network_release,
        ).status
        == 0
    )
    return made


def listed(given: int, generate: Any) -> Iterator[tuple[int, Any]]:
    rng = random.Random(given)
    for number in range(given):
        yield number, generate(rng, number)


def test_there_are_enough_of_them() -> None:
    assert sum(CASES.values()) >= 1000


def test_policy_files(place: Place) -> None:
    texts = policies()
    path, before, found, good = place.folder / "bad.toml", spent(place.ledger), [], 0

    def generate(rng: random.Random, number: int) -> bytes:
        if number < len(WHOLES):
            return WHOLES[number]
        text = rng.choice(texts)
        return toml_file(changed(tomllib.loads(text), rng)) if rng.random() < 0.75 else torn(text, rng)

    for number, body in listed(CASES["policies"], generate):
        path.write_bytes(body)
        told = call("check", path, "--json")
        if problem := wrong(told, {0, 2}):
            found.append((problem, told.err[:200], body[:300]))
        good += told.status == 0
        if told.status == 2 and number % 4 == 0:
            told = call(*place.command("--json")[:1], path, *place.command("--json")[2:])
            if problem := wrong(told, {2}):
                found.append((problem, told.err[:200], body[:300]))
    assert found == []
    assert good < CASES["policies"] / 3, "most of what is generated is bad"
    assert spent(place.ledger) == before, "a file that cannot be read cost something"


SMALL = [PLAIN, EXTRA[0], EXTRA[1], EXTRA[6], "network = {nodes = 4}\n[[public]]\ntotal = true\nequals = 2\n"]


def test_policy_files_that_read_well_and_do_not_fit(place: Place) -> None:
    """What gets past the reader meets data that may not fit: released and charged, or refused and not charged."""
    path, found, tried = place.folder / "odd.toml", [], 0
    for _, body in listed(240, lambda rng, _: toml_file(changed(tomllib.loads(rng.choice(SMALL)), rng))):
        path.write_bytes(body)
        if tried == 20 or call("check", path).status != 0:
            continue
        tried += 1
        ledger = place.folder / f"odd{tried}.db"
        pg.Ledger(ledger)
        out = place.folder / f"odd{tried}"
        told = call(
            "release",
            path,
            "--data",
            place.data,
            "--epsilon",
            "1",
            "--ledger",
            ledger,
            "--out",
            out,
            "--json",
        )
        problem = wrong(told, {0, 2})
        if problem or len(spent(ledger)) != (told.status == 0) or out.exists() != (told.status == 0):
            found.append((problem, told.err[:200], len(spent(ledger)), out.exists(), body[:300]))
    assert found == []
    assert tried == 20


def test_certificates(place: Place) -> None:
    good = []
    for text in (*policies()[:1], *policies()[2:4], *EXTRA[:2], EXTRA[3], *EXTRA[5:7]):
        read = loads(text)
        good.append(pg.sensitivity(read.query, read.policy).to_dict())
    path, found = place.folder / "c.json", []

    def generate(rng: random.Random, number: int) -> bytes:
        if number < len(WHOLES):
            return WHOLES[number]
        given = rng.choice(good)
        return (
            json_file(changed(given, rng)) if rng.random() < 0.75 else torn(json.dumps(given, indent=1), rng)
        )

    for _, body in listed(CASES["certificates"], generate):
        path.write_bytes(body)
        told = call("verify", path, "--json")
        # Some changes leave it true (its list of steps, say); what is wrong or cannot be decided is 2.
        if problem := wrong(told, {0, 2}):
            found.append((problem, told.err[:200], body[:300]))
    assert found == []


def test_data_files(place: Place) -> None:
    names = (
        "bad.csv",
        "bad.json",
        "bad.parquet",
        "bad.duckdb",
        "bad.ndjson",
        "bad.tsv",
        "bad",
        "b\u0301ad.CSV",
        "bad.csv.gz",
    )
    parquet = (place.release / "release.parquet").read_bytes()
    records = "\n".join(json.dumps({"sex": "FM"[i % 2], "age": i % 3}) for i in range(9))
    before, found = spent(place.ledger), []

    def generate(rng: random.Random, number: int) -> tuple[str, bytes]:
        name = rng.choice(names)
        if number < len(WHOLES):
            return name, WHOLES[number]
        if name.endswith("parquet"):
            at = rng.randrange(len(parquet))
            return name, parquet[:at] + rng.randbytes(rng.randrange(9)) + parquet[at + rng.randrange(9) :]
        return name, torn(records if "json" in name else place.data.read_text(), rng)

    for number, (name, body) in listed(CASES["data"], generate):
        path = place.folder / name
        path.write_bytes(body)
        out = place.folder / f"data{number}"
        told = call(
            "release",
            place.policy,
            "--data",
            path,
            "--epsilon",
            "1",
            "--ledger",
            place.ledger,
            "--out",
            out,
            "--json",
        )
        now = spent(place.ledger)
        problem = wrong(told, {0, 2})
        if problem or (told.status != 0 and (now != before or out.exists())):
            found.append((problem, told.err[:200], name, body[:200]))
        before = now
        path.unlink()
    assert found == []


VALUES = [
    "", " ", "0", "-1", "1.5", "nan", "inf", "-inf", "1e400", "1e999999999", "-1e999999999", "1e-999999999", "1e-300", "1/0", "0x10", "١",
    "9" * 5000, "1" + "0" * 27, "x" * 100_000, "a/" * 3000, "\udc80x", "é", "[cube]", "-", "/", "/dev/null", "/dev/full", ".", "..",
    "no such", "no/such/x.csv", "'; DROP TABLE charges; --", "%s", "*", "duckdb://", "duckdb:///x?table=y", "file:///nope", "s3://a/b", ",",
    "sex,sex", "sex,,age", "http://127.0.0.1:1/x.csv", "1_000", "1e5000", "(1)", "1 2", "+1", "\n", "\t", "../../../../../../etc/passwd",
]  # fmt: skip


def commands() -> Iterator[tuple[str, Any]]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        if hasattr(command, "commands"):
            yield from ((f"{name} {inner}", each) for inner, each in command.commands.items())
        else:
            yield name, command


def option_cases(place: Place) -> list[list[str]]:
    """Every option and argument of every command with every value, all others as they should be."""
    facts, part = place.folder / "facts.toml", place.folder / "part.parquet"
    facts.write_text('[domain]\nsex = ["F", "M"]\nage = 3\n[[public]]\ncuboid = ["sex"]\n')
    assert call("count", place.policy, "--data", place.data, "--out", part).status == 0
    base: dict[str, list[Any]] = {
        "check": [place.policy], "sensitivity": [place.policy], "explain": [place.policy], "compare": [place.policy], "schema": [],
        "verify": [place.release / "certificate.json"], "release": place.command()[1:],
        "ask": [place.policy, "--cuboid", "sex", "--data", place.data, "--ledger", place.ledger, "--deviation", "50"],
        "synthetic": [place.network_release, "--to", place.folder / "s.csv"],
        "audit": [place.policy, "--samples", "200", "--seed", "1", "--pairs", "1"],
        "attack": [facts, "--epsilon", "1"], "count": [place.policy, "--data", place.data, "--out", place.folder / "c.parquet"],
        "merge": [part, "--out", place.folder / "m.parquet"], "report": [place.release, "--to", place.folder / "r.html"],
        "init": [place.data, "--out", place.folder / "i.toml", "--yes", "--overwrite"], "demo": [place.policy, "--out", place.folder / "d.csv"],
        "plan": [place.policy, "--error", "50", "--brief"], "independence": [place.release],
        "budget show": [place.ledger], "budget history": [place.ledger], "budget export": [place.ledger],
        "budget set": [place.ledger, "somebody", "--epsilon", "9"], "budget open": [place.ledger, "somebody/else"],
        "budget join": [place.ledger, "somebody", "everybody"], "budget reserve": [place.ledger, "somebody", "--epsilon", "9"],
        "budget free": [place.ledger, "1"], "budget reservations": [place.ledger], "budget forecast": [place.ledger],
        "budget check": [place.ledger],
    }  # fmt: skip
    out = []
    for name, command in commands():
        if name == "studio":
            continue  # it goes on until it is stopped: tests/studio tries it
        given = [*name.split(), *(str(part) for part in base[name])]
        json_too = ["--json"] if any("--json" in each.opts for each in command.params) else []
        for each in command.params:
            if each.name == "help" or getattr(each, "is_flag", False):
                continue
            # All commands on a ledger read their values alike: a few are enough for each.
            for value in VALUES[:: 6 if name.startswith("budget") else 1]:
                made = list(given)
                if each.param_type_name == "argument":
                    arguments = [one.name for one in command.params if one.param_type_name == "argument"]
                    at = len(name.split()) + (arguments.index(each.name) if name.startswith("budget") else 0)
                    made[at] = value
                elif each.opts[0] in made:
                    made[made.index(each.opts[0]) + 1] = value
                else:
                    made += [each.opts[0], value]
                out.append([*made, *json_too])
    return out


def test_options(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.folder / "cwd").mkdir()
    monkeypatch.chdir(place.folder / "cwd")
    made = option_cases(place)
    assert len(made) > 2000
    before, found = spent(place.ledger), []
    for _, arguments in listed(CASES["options"], lambda rng, _: rng.choice(made)):
        told = call(*arguments)
        now = spent(place.ledger)
        problem = wrong(told, {0, 2, 3, 5}, as_json="--json" in arguments[-1:])
        if problem or (told.status != 0 and now != before):
            found.append((problem, told.err[:200], [part[:40] for part in arguments]))
        before = now
    assert found == []


def test_every_number_of_every_option_is_read_at_once(place: Place) -> None:
    """A power of ten with nine digits has a billion digits when it is written out: it is refused before that."""
    for command in (
        place.command(),
        ["compare", place.policy],
        ["audit", place.policy],
        ["explain", place.policy],
        ["budget", "set", place.ledger, "x"],
    ):
        for option in ("--epsilon", "--rho", "--delta"):
            for value in (
                "1e999999999",
                "-1e999999999",
                "1e-999999999",
                "1e" + "9" * 100,
                "9" * 1_000_000,
                "1/" + "3" * 5000,
            ):
                more = ["--epsilon", "1", option, value] if option == "--delta" else [option, value]
                kept = [part for part in command if part not in ("--epsilon", "1")]
                assert call(*kept, *more).status == 2, (command, option, value[:20])


def test_losses_at_both_ends_of_the_floats(place: Place) -> None:
    """Noise that no float can hold is refused, and noise that is nothing for a float leaves a ledger that answers."""
    facts = place.folder / "ends.toml"
    facts.write_text('[domain]\nsex = ["F", "M"]\nage = 3\n[[public]]\ncuboid = ["sex"]\n')
    before = spent(place.ledger)
    for loss in (("--epsilon", "1e-308"), ("--rho", "1e-308"), ("--epsilon", "1e-250")):
        for command in (place.command(), ["compare", place.policy], ["audit", place.policy]):
            kept = [part for part in command if part not in ("--epsilon", "1")]
            assert wrong(call(*kept, *loss, "--json"), {2}) == "", (command[0], loss)
    for command in ("explain", "attack"):
        assert wrong(call(command, facts, "--epsilon", "1e-308", "--json"), {0, 2}) == ""
    assert wrong(call("explain", place.policy, "--epsilon", "1e-308"), {2}, as_json=False) == ""
    assert spent(place.ledger) == before
    ledger = place.folder / "ends.db"
    asked = ["ask", place.policy, "--cuboid", "sex", "--data", place.data, "--ledger", ledger, "--json"]
    assert call(*asked, "--epsilon", "1e18", "--most", "1e18").status == 0
    assert call(*asked, "--deviation", "2").status == 0


def test_ledgers(place: Place) -> None:
    whole, path, found = place.ledger.read_bytes(), place.folder / "bad.db", []

    def generate(rng: random.Random, number: int) -> bytes:
        if number < len(WHOLES):
            return WHOLES[number]
        at = rng.randrange(len(whole))
        return [
            whole[:at],
            whole[:at] + rng.randbytes(8) + whole[at + 8 :],
            whole[: at - at % 4096],
            whole + whole[:at],
        ][rng.randrange(4)]

    for _, body in listed(CASES["ledgers"], generate):
        path.write_bytes(body)
        for arguments in (
            ["budget", "show", path],
            ["budget", "history", path],
            ["release", *place.command()[1:-3], path, "--out", place.folder / "new"],
        ):
            told = call(*arguments, "--json")
            # A byte where the file holds nothing is no damage.
            if problem := wrong(told, {0, 2, 3}):
                found.append((problem, told.err[:200], arguments[0], body[:60]))
    assert found == []


def test_tables_of_a_ledger_that_were_changed_by_hand(place: Place) -> None:
    path, found = place.folder / "hand.db", []
    with sqlite3.connect(place.ledger) as db:
        tables = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            )
        ]
    for table in tables:
        for change in ("DELETE FROM {}", "DROP TABLE {}", "ALTER TABLE {} RENAME TO gone"):
            path.write_bytes(place.ledger.read_bytes())
            with sqlite3.connect(path) as db:
                try:
                    db.execute(change.format(f'"{table}"'))
                except sqlite3.Error:
                    continue
            for arguments in (
                ["budget", "show", path],
                ["budget", "export", path],
                ["budget", "history", path],
            ):
                if problem := wrong(call(*arguments), {0, 2}, as_json=False):
                    found.append((problem, change, table, arguments[1]))
    assert found == []


def test_releases(place: Place) -> None:
    import pyarrow.parquet as pq

    path, found = place.folder / "bad.parquet", []
    whole = (place.network_release / "release.parquet").read_bytes()
    table = pq.read_table(place.network_release / "release.parquet")
    (key,) = [key for key in table.schema.metadata if b"policygraph" in key]
    record = json.loads(table.schema.metadata[key])

    def generate(rng: random.Random, number: int) -> bytes:
        if number < len(WHOLES):
            return WHOLES[number]
        if number % 3 == 0:
            return whole[: rng.randrange(len(whole))]
        sink = io.BytesIO()
        text = (
            json_file(changed(record, rng))
            if number % 3 == 1
            else rng.choice([*WHOLES, torn(json.dumps(record), rng)])
        )
        pq.write_table(table.replace_schema_metadata({**table.schema.metadata, key: text[:1_000_000]}), sink)
        return sink.getvalue()

    for _, body in listed(CASES["releases"], generate):
        path.write_bytes(body)
        told = call("synthetic", path, "--to", place.folder / "s.csv", "--json")
        if problem := wrong(told, {0, 2}):
            found.append((problem, told.err[:300], body[:40]))
    assert found == []


@pytest.mark.skipif(os.name != "posix", reason="file modes and pipes of POSIX")
def test_places_that_are_no_files(place: Place) -> None:
    closed, pipe, loop = place.folder / "closed", place.folder / "pipe", place.folder / "loop"
    closed.write_text(PLAIN)
    closed.chmod(0)
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    odd = [
        place.folder,
        place.folder / "none",
        place.folder / ("n" * 300),
        loop,
        place.policy / "inside",
        "/",
    ]
    odd += [] if os.access(closed, os.R_OK) else [closed]
    for path in odd:
        for arguments in (
            ["check", path], ["verify", path], ["synthetic", path, "--to", place.folder / "s.csv"], ["budget", "show", path],
            [*place.command()[:3], path, *place.command()[4:]],
        ):  # fmt: skip
            if arguments[0] == "synthetic" and path == place.folder:
                continue  # the folder of a release, from which records can be made
            assert wrong(call(*arguments), {2}, as_json=False) == "", arguments
    assert wrong(call("budget", "show", pipe), {2}, as_json=False) == ""


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_help_shows_what_is_written(name: str, command: Any) -> None:
    """Brackets are no markup: every word of the source is on the screen."""
    told = call(*name.split(), "--help")
    shown = " ".join(told.out.split())
    assert told.status == 0
    written = [
        command.help,
        command.epilog,
        *(each.help for each in command.params if getattr(each, "help", None)),
    ]
    for text in written:
        assert " ".join(text.split()) in shown, text


@pytest.mark.parametrize(
    "options", [[], ["--delta", "1e-6"], ["--epsilon", "1", "--rho", "1"], ["--rho", "1", "--delta", "1e-6"]]
)
def test_a_missing_loss_says_how_to_give_it(place: Place, options: list[str]) -> None:
    kept = [part for part in place.command() if part not in ("--epsilon", "1")]
    told = call(*kept, *options)
    assert told.status == 2
    assert "--epsilon 1 (or --rho 0.5, or --epsilon 1 --delta 1e-6)" in told.err
