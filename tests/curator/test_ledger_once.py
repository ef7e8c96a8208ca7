"""Exactly once: a kill at any point loses neither the charge nor the release, and nothing is charged twice."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.curator.ledger import ChargedPart, Ledger, schema, store
from policygraph.curator.noise import KeyedRng
from policygraph.errors import LedgerError
from policygraph.model.loss import Epsilon, Rho
from policygraph.release.release import Release
from tests.gate import noisy
from tests.oracles import ledger_layout2
from tests.paths import unrecorded

DOMAIN = pg.Domain({"age": 4})
POLICY = pg.Policy(DOMAIN)
QUERY = pg.queries.identity(DOMAIN)
DATA = [5, 0, 2, 9]
on_posix = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")

RELEASE = """
import os, signal, sqlite3, sys
import policygraph as pg
from policygraph.curator.ledger import store
domain = pg.Domain({"age": 4})
left = int(sys.argv[2])
def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
connect = sqlite3.connect
def traced(*arguments, **options):
    opened = connect(*arguments, **options)
    opened.set_trace_callback(count)
    return opened
store.sqlite3.connect = traced
source = pg.SeededRng(7) if "seeded" in sys.argv else None
if "ask" in sys.argv:
    cube = pg.OnlineCube(pg.Policy(domain), [5, 0, 2, 9], sys.argv[1], source=source)
    made = cube.ask("age", deviation=4).values
else:
    made = pg.release(
        pg.queries.identity(domain), pg.Policy(domain), [5, 0, 2, 9], epsilon=1, ledger=sys.argv[1], source=source
    ).values()
print(list(map(int, made)))
"""


def run(*arguments):
    command = [sys.executable, "-c", RELEASE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@on_posix
@pytest.mark.parametrize("kind", ["release", "seeded", "ask"])
def test_a_kill_before_any_statement_of_the_ledger_loses_nothing(tmp_path, kind):
    """Forked from one process that has everything loaded, so that every statement can be tried."""
    code = RELEASE.replace("left = int(sys.argv[2])", "left = 0").replace("print(", "out = (")
    body = textwrap.indent(code[code.index("source =") :], "    ")
    program = (
        code[: code.index("source =")]
        + textwrap.dedent(
            """
    from policygraph.curator.ledger import Ledger
    import policygraph.release.release, policygraph.curator.online, pyarrow.parquet
    def attempt():
    """
        )
        + body
        + textwrap.dedent(
            """
        return out
    import json
    folder, figures = sys.argv[1], {"killed": 0, "waiting": 0, "charged": 0, "wrong": []}
    # What a seeded release does differently is tried at every third statement.
    at, step = 0, 3 if "seeded" in sys.argv else 1
    while True:
        at += step
        sys.argv[1] = f"{folder}/{at}.db"
        Ledger(sys.argv[1])
        child = os.fork()
        if child == 0:
            left = at
            try:
                attempt()
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        left = -1
        before = Ledger(sys.argv[1]).history()
        charged = len(before)
        figures["killed"] += os.WIFSIGNALED(status)
        figures["charged"] += charged
        figures["waiting"] += any(entry.status == "charged" for entry in before)
        first = attempt()
        book = Ledger(sys.argv[1])
        second = attempt()
        entries = book.history()
        if len(entries) != 1 or entries[0].status != "completed" or list(first) != list(second):
            figures["wrong"].append([at, len(entries)])
        if not os.WIFSIGNALED(status):
            break
    print(json.dumps(figures))
    """
        )
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program, tmp_path, "0", kind],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=unrecorded(),
    )
    assert outcome.returncode == 0, outcome.stderr
    figures = json.loads(outcome.stdout.splitlines()[-1])
    assert figures["wrong"] == []
    tried = 3 if kind == "seeded" else 1
    assert figures["killed"] > 40 / tried
    assert figures["waiting"] >= 10 / tried, "kills between the charge and the release"
    assert figures["charged"] > figures["waiting"]


def test_a_charge_that_waits_is_completed_with_the_noise_of_its_key(tmp_path, monkeypatch):
    ledger = pg.Ledger(tmp_path / "budget.db")
    drawn = []

    def stop(charge, body):
        drawn.append(Release.from_parquet(body).values().tolist())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "settle", stop)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=ledger)
    assert [entry.status for entry in ledger.history()] == ["charged"]
    made = pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=ledger)
    assert made.values().tolist() == drawn[0] == drawn[1] == drawn[2]
    assert [entry.status for entry in ledger.history()] == ["completed"]
    assert ledger.spent(ledger.history()[0].dataset) == Epsilon("1/100")
    again = pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=ledger, reuse=False)
    assert again.values().tolist() != made.values().tolist()
    assert len(ledger.history()) == 2


def test_who_wants_fresh_noise_pays_for_it_although_a_charge_waits(tmp_path, monkeypatch):
    """The noise of the waiting charge may have been seen; only the same request without ``reuse=False`` completes it."""
    ledger = pg.Ledger(tmp_path / "budget.db")

    def stop(charge, body):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "settle", stop)
        with pytest.raises(KeyboardInterrupt):
            pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=ledger)
    pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=ledger, reuse=False)
    assert [entry.status for entry in ledger.history()] == ["charged", "completed"]


def test_the_key_is_in_the_file_only_while_the_charge_waits(tmp_path):
    ledger = pg.Ledger(tmp_path / "budget.db")
    key = bytes(range(100, 132))
    begun = ledger.begin("ab" * 32, "policy", Epsilon(1), "request", key=key)
    assert key in ledger.path.read_bytes()
    assert ledger.find("request").key == key
    assert ledger.settle(begun.charge, b"first") == b"first"
    assert key not in ledger.path.read_bytes()
    assert ledger.find("request").key is None
    assert ledger.settle(begun.charge, b"second") == b"first", "what is on record is what leaves"
    assert sorted(os.listdir(tmp_path)) == ["budget.db"]


def test_the_file_alone_does_not_give_the_noise(tmp_path, monkeypatch):
    """The stored key is mixed with the request, which holds the content of the data and is stored keyed only."""
    ledger = pg.Ledger(tmp_path / "budget.db")
    bodies = []
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "settle", lambda charge, body: bodies.append(body) or body)
        pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=ledger, mechanism=pg.Laplace())
    db = sqlite3.connect(ledger.path)
    (key,) = db.execute("SELECT key FROM keys").fetchone()
    (request,) = db.execute("SELECT request FROM entries").fetchone()
    db.close()
    released = Release.from_parquet(bodies[0]).values()
    ready = pg.Laplace().calibrate(QUERY, POLICY, pg.Epsilon("1/100"))
    for guess in (key, hmac.new(key, request.encode(), hashlib.sha256).digest()):
        noise = noisy(ready, np.zeros(4, dtype=np.int64), KeyedRng(guess))
        assert (released - noise).tolist() != DATA


@on_posix
def test_processes_that_ask_the_same_at_once_pay_once_and_get_the_same(tmp_path):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(run(tmp_path / "budget.db", 0))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result.returncode == 0 for result in results), [result.stderr for result in results]
    assert len({result.stdout for result in results}) == 1
    assert [entry.status for entry in Ledger(tmp_path / "budget.db").history()] == ["completed"]


def test_a_second_process_that_draws_for_one_charge_gives_what_the_first_stored(tmp_path, monkeypatch):
    """The first one stores while the second is drawing, from a source without a key: only what is on record leaves."""
    path = tmp_path / "budget.db"
    first, second = pg.Ledger(path), pg.Ledger(path)
    made = []

    class Own(pg.SecureRng):
        pass

    settle = first.settle

    def late(charge, body):
        if not made:
            made.append(pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=second).values().tolist())
        return settle(charge, body)

    monkeypatch.setattr(first, "settle", late)
    mine = pg.release(QUERY, POLICY, DATA, epsilon="1/100", ledger=first)
    assert mine.values().tolist() == made[0]
    assert len(first.history()) == 1


def test_other_data_do_not_complete_a_waiting_charge(tmp_path, monkeypatch):
    ledger = pg.Ledger(tmp_path / "budget.db")
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "settle", lambda charge, body: exec("raise KeyboardInterrupt"))
        with pytest.raises(KeyboardInterrupt):
            pg.release(QUERY, POLICY, DATA, epsilon=1, ledger=ledger, dataset="town")
    pg.release(QUERY, POLICY, [5, 0, 2, 8], epsilon=1, ledger=ledger, dataset="town")
    assert [entry.status for entry in ledger.history()] == ["charged", "completed"]
    pg.release(QUERY, POLICY, DATA, epsilon=1, ledger=ledger, dataset="town")
    assert [entry.status for entry in ledger.history()] == ["completed", "completed"]


def test_large_releases_are_kept_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "CHUNK", 1000)
    ledger = pg.Ledger(tmp_path / "budget.db")
    for number, size in enumerate((0, 1, 999, 1000, 1001, 12345)):
        charge = ledger.charge("ab" * 32, "policy", Epsilon(1), f"r{number}")
        ledger.complete(charge, os.urandom(size))
        assert len(Ledger(ledger.path).recorded(f"r{number}")) == size
        assert ledger.history()[-1].release_bytes == size


@on_posix
def test_a_disk_with_room_for_the_charge_only_gives_no_charge(tmp_path):
    """Files of every size limit: a release is made and on record, or nothing is charged."""
    code = """
    import resource, sys
    import numpy as np
    import policygraph as pg
    domain = pg.Domain({"age": 3000})
    data = np.arange(3000)
    ledger = pg.Ledger(sys.argv[1])
    pg.release(pg.queries.identity(domain), pg.Policy(domain), data, epsilon=1, source=pg.SeededRng(1))
    made = refused = 0
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for size in range(0, 1200000, 30011):
        before = len(ledger.history())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            pg.release(
                pg.queries.identity(domain), pg.Policy(domain), data, epsilon=1, ledger=ledger, reuse=False
            )
            made += 1
        except pg.LedgerError as error:
            refused += 1
            assert error.code in ("ledger.full", "ledger.write"), error.code
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        entries = ledger.history()
        assert all(entry.status == "completed" for entry in entries), size
        assert len(entries) == made, size
    print(made, refused)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), tmp_path / "budget.db"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert outcome.returncode == 0, outcome.stderr
    made, refused = map(int, outcome.stdout.split())
    assert made > 3
    assert refused > 3


@on_posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="mounting needs root")
def test_a_small_disk_charges_nothing_that_it_cannot_store(tmp_path):
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("this container may not mount")
    try:
        domain = pg.Domain({"age": 3000})
        query, policy, data = pg.queries.identity(domain), pg.Policy(domain), np.arange(3000)
        ledger = pg.Ledger(tmp_path / "budget.db")
        made, refused, codes = 0, 0, set()
        for filler in range(0, 1800, 40):
            try:
                (tmp_path / "filler").write_bytes(bytes(filler * 1024))
            except OSError:
                break
            try:
                pg.release(query, policy, data, epsilon=1, ledger=ledger, reuse=False)
                made += 1
            except LedgerError as error:
                refused += 1
                codes.add(error.code)
            assert [entry.status for entry in ledger.history()] == ["completed"] * made, filler
            (tmp_path / "filler").unlink()
        assert made > 3
        assert refused > 3
        assert codes <= {"ledger.full", "ledger.write"}
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_the_most_pages_of_the_file_are_looked_at_before_the_charge(tmp_path, monkeypatch):
    ledger = pg.Ledger(tmp_path / "budget.db")
    connect = sqlite3.connect

    def full(*arguments, **options):
        opened = connect(*arguments, **options)
        pages = opened.execute("PRAGMA page_count").fetchone()[0]
        opened.execute(f"PRAGMA max_page_count = {pages + 8}")
        return opened

    with monkeypatch.context() as patch:
        patch.setattr(store.sqlite3, "connect", full)
        with pytest.raises(LedgerError) as problem:
            pg.release(QUERY, POLICY, DATA, epsilon=1, ledger=ledger)
    assert problem.value.code == "ledger.full"
    assert ledger.history() == []


def old_ledger(path):
    def keyed(secret, text):
        return hmac.new(secret, text.encode(), hashlib.sha256).hexdigest()[:32]

    ledger_layout2.write(
        path,
        lambda secret: "d:" + keyed(secret, "ab" * 32),
        "people",
        [json.dumps({"kind": "epsilon", "value": "1/3"})] * 3,
        lambda secret, number: keyed(secret, f"r{number}"),
        [b"first", b"second"],
    )


def test_a_ledger_of_the_layout_before_is_brought_up_to_date(tmp_path):
    path = tmp_path / "budget.db"
    old_ledger(path)
    for _ in range(2):
        ledger = Ledger(path)
        assert ledger.spent("people") == Epsilon(1)
        assert [entry.status for entry in ledger.history()] == ["completed", "completed", "charged"]
        assert ledger.recorded("r1") == b"first"
        assert ledger.recorded("r2") == b"second"
        assert ledger.find("r3") is None, "nobody knows what was let out for a charge without a key"
        assert ledger.export()["policies"] == {"policy-p": {"a": 1}}
    ledger.charge("people", "policy-p", Epsilon(1), "r4")
    assert Ledger(path).spent("people") == Epsilon(2)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE releases SET body = x'00' WHERE number = 1",
        'UPDATE entries SET loss = \'{"epsilon":"1/9"}\' WHERE number = 1',
        "DELETE FROM entries WHERE number = 3",
        "CREATE TABLE more (x)",
        "UPDATE ledger SET identity = CAST(identity AS BLOB)",
    ],
)
def test_a_damaged_ledger_of_the_layout_before_is_refused_unchanged(tmp_path, change):
    path = tmp_path / "budget.db"
    old_ledger(path)
    db = sqlite3.connect(path)
    triggers = [sql for sql in ledger_layout2.TABLES if "TRIGGER" in sql]
    for sql in triggers:
        db.execute(f"DROP TRIGGER {sql.split()[2]}")
    db.execute(change)
    for sql in triggers:
        db.execute(sql)
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError) as problem:
        Ledger(path)
    assert problem.value.code == "ledger.damaged"
    assert path.read_bytes() == before


def ledger_of_layout_3(path):
    """A book that version 0.1 wrote with layout 3: a limit, three charges, one release, one key that waits."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript((Path(__file__).parents[1] / "data" / "ledger-layout-3.sql").read_text())
        db.execute("PRAGMA application_id = 1346849860")
        db.execute("PRAGMA user_version = 3")


def test_a_ledger_of_layout_3_is_brought_up_to_date(tmp_path):
    path = tmp_path / "budget.db"
    ledger_of_layout_3(path)
    for _ in range(2):
        ledger = Ledger(path)
        assert [entry.status for entry in ledger.history()] == ["limit", "completed", "charged", "charged"]
        assert [entry.cells for entry in ledger.history()] == [None] * 4
        assert ledger.recorded("r1") == b"first"
        assert ledger.find("r2").key == bytes(range(32))
        told = ledger.statement("people")
        assert told.per_policy == {
            "policy-p": Rho(Fraction(1, 100) + Fraction(1, 18)),
            "policy-q": Epsilon("1/4"),
        }
        assert ledger.account("people").parts == ()
    ledger.charge("people", "policy-p", Epsilon("1/9"), "r4", part=ChargedPart.of("read", [0]))
    assert [entry.cells for entry in Ledger(path).history()][-1] == "[[0,0]]"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE stored SET time = 'x' WHERE number = 2",
        "UPDATE chunks SET body = x'00'",
        'UPDATE entries SET loss = \'{"epsilon":"1/9"}\' WHERE number = 2',
        "UPDATE marks SET subject = '9' WHERE number = 4",
        "UPDATE datasets SET name = 'persons'",
        "UPDATE head SET entries = 3",
        "DELETE FROM keys",
        "CREATE TABLE parts (number, reading, cells)",
    ],
)
def test_a_damaged_ledger_of_layout_3_is_refused_unchanged(tmp_path, change):
    path = tmp_path / "budget.db"
    ledger_of_layout_3(path)
    with closing(sqlite3.connect(path)) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(change)
        for _, sql in triggers:
            db.execute(sql)
        db.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerError) as problem:
        Ledger(path)
    assert problem.value.code == "ledger.damaged"
    assert path.read_bytes() == before


def test_an_upgrade_that_is_interrupted_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "budget.db"
    old_ledger(path)
    before = path.read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(schema, "seal_head", stop)
        with pytest.raises(KeyboardInterrupt):
            Ledger(path)
    assert path.read_bytes() == before
    assert Ledger(path).spent("people") == Epsilon(1)


def test_a_keyed_source_gives_its_words_however_they_are_cut():
    whole = KeyedRng(bytes(32)).words(100_000)
    source = KeyedRng(bytes(32))
    pieces = [source.words(n) for n in (1, 4095, 1, 70_000, 25_903)]
    assert (np.concatenate(pieces) == whole).all()
    assert not (KeyedRng(bytes(31) + b"x").words(100) == whole[:100]).any()


@on_posix
def test_a_forked_process_does_not_go_on_with_the_noise_of_its_parent():
    source = KeyedRng(bytes(32))
    source.words(3)
    child = os.fork()
    if child == 0:
        try:
            source.words(3)
        except pg.InputError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def drawn():
    """Digests of releases of every mechanism from one key."""
    from tests.mechanisms.test_huge_counts import MECHANISMS, policies, queries

    out = []
    for mechanism in MECHANISMS[1:]:
        gaussian = isinstance(mechanism, (pg.Gaussian, pg.TransformedGaussian))
        loss = pg.Rho("1/50") if gaussian else pg.Epsilon("1/10")
        for policy in policies():
            for query in list(queries(policy.domain))[:2]:
                try:
                    ready = mechanism.calibrate(query, policy, loss)
                except (pg.InputError, pg.RefusedError):
                    continue
                made = ready.run(np.array([50, 0, 2, 900, 4, 1]), KeyedRng(bytes(range(32))))
                values = [np.asarray(table.values).tolist() for table in made.tables]
                out.append(hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16])
    return out


def test_one_key_gives_one_release_whatever_the_mechanism_and_the_process():
    first = drawn()
    assert len(first) > 40
    for seed in ("1", "77"):
        code = "from tests.curator.test_ledger_once import drawn\nprint(*drawn())"
        outcome = subprocess.run(
            [sys.executable, "-c", code],
            env={**unrecorded(), "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": str(len(seed))},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert outcome.stdout.split() == first
