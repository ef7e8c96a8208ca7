"""Tables of any size, written in parts: the same noise wherever a block is made."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import policygraph as pg
from policygraph.curator import gate, releasing
from policygraph.curator.counting import count_cells, held
from policygraph.curator.counting.engines import spark as spark_module
from policygraph.curator.counting.opening import open_source
from policygraph.curator.ledger import Ledger
from policygraph.curator.noise import blocks as noise_blocks
from policygraph.curator.noise import discrete_laplace
from policygraph.curator.runners import blocks as runner
from policygraph.curator.runners.blocks import NoisyBlocks
from policygraph.distributions.noise import gaussian_noise, laplace_noise
from policygraph.errors import DataError, InputError, RefusedError
from policygraph.report import report

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 90, "mixed": ["a", 1]})
ROWS = pa.table({"sex": ["F", "M", "F", "M"], "age": [0, 89, 0, 3], "mixed": ["a", "1", "a", "a"]})
QUERY = pg.queries.identity(DOMAIN)
NONE = np.zeros(0, dtype=np.int64)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 cells, here; workers are other processes and keep theirs."""
    for module in (noise_blocks, runner, held, gate):
        monkeypatch.setattr(module, "BLOCK", 64)


def read(folder: Path) -> pa.Table:
    return pq.read_table(folder).sort_by(
        [("sex", "ascending"), ("age", "ascending"), ("mixed", "descending")]
    )


def made(data: Any, folder: Path, **how: Any) -> pg.Release:
    how = {"epsilon": 1, "rng": pg.SeededRng(5), **how}
    return pg.release(QUERY, pg.Policy(DOMAIN), data, parts=folder, **how)


def test_blocks_are_noise_of_keys_of_their_own(small: None) -> None:
    for noise in (laplace_noise(Fraction(3, 2)), gaussian_noise(Fraction(40))):
        make = NoisyBlocks(noise, bytes(range(32)), 150)
        assert make.blocks == 3
        pieces = [make(number, NONE, NONE) for number in range(3)]
        assert [len(piece) for piece in pieces] == [64, 64, 22]
        # Any block, in any order, any number of times.
        assert make(1, NONE, NONE).tolist() == pieces[1].tolist()
        assert pieces[0][:22].tolist() != pieces[2].tolist()
        noisy = make(2, np.array([21, 0]), np.array([5, 7]))
        assert (noisy - pieces[2]).tolist() == [7, *[0] * 20, 5]
    expected = discrete_laplace(Fraction(3, 2), 64, noise_blocks.block_rng(bytes(32), 4))
    assert (
        NoisyBlocks(laplace_noise(Fraction(3, 2)), bytes(32), 1000)(4, NONE, NONE).tolist()
        == expected.tolist()
    )
    make = NoisyBlocks(laplace_noise(Fraction(1)), bytes(32), 150)
    for number, at in ((0, [3, 3]), (0, [-1]), (2, [22]), (3, [])):
        with pytest.raises(DataError):
            make(number, np.array(at, dtype=np.int64), np.ones(len(at), dtype=np.int64))
    assert str(bytes(32)) not in repr(make)


def literal_words(master: bytes, number: int, many: int) -> list[int]:
    """Words of a block as the proof page defines them: HMAC written out, then the first key of KeyedRng, then AES-256 in counter mode."""

    def digest(*pieces: bytes) -> bytes:
        return hashlib.sha256(b"".join(pieces)).digest()

    inner, outer = (bytes(byte ^ pad for byte in master.ljust(64, b"\0")) for pad in (0x36, 0x5C))
    key = digest(outer, digest(inner, b"policygraph block 1 ", struct.pack(">Q", number)))
    first = digest(b"policygraph keyed source 1 ", key, struct.pack(">Q", 1))
    stream = Cipher(algorithms.AES(first), modes.CTR(bytes(16))).encryptor().update(bytes(8 * many))
    return list(struct.unpack(f"<{many}Q", stream))


def test_the_key_of_a_block_is_the_one_of_the_proof_page() -> None:
    """Another version that completes a release after a crash must draw the same noise: a change of the keys is a change of the noise."""
    masters = [bytes(32), bytes(range(32)), b"\xff" * 32]
    words = {
        (master, number): noise_blocks.block_rng(master, number).words(3).tolist()
        for master in masters
        for number in (0, 1, 2**32, 2**63)
    }
    assert words == {(master, number): literal_words(master, number, 3) for master, number in words}
    assert len({tuple(each) for each in words.values()}) == len(words)


def test_a_block_that_is_none_and_counts_without_a_cell_are_refused(small: None) -> None:
    make = NoisyBlocks(laplace_noise(Fraction(1)), bytes(32), 128)
    one, two = np.array([0]), np.array([1, 2])
    for number, at, counts in ((2, NONE, NONE), (0, one, two), (0, two, one)):
        with pytest.raises(DataError) as caught:
            make(number, at, counts)
        assert caught.value.code == "data.lost"


def test_a_last_block_of_one_cell_and_cells_side_by_side(small: None) -> None:
    make = NoisyBlocks(laplace_noise(Fraction(1)), bytes(32), 65)
    for number, at in ((0, [3, 4, 63]), (1, [0])):
        counts = np.arange(1, len(at) + 1)
        noisy = make(number, np.array(at), counts) - make(number, NONE, NONE)
        assert noisy[at].tolist() == counts.tolist()
        assert noisy.sum() == counts.sum()


def test_labels_keep_their_types_in_the_files() -> None:
    domain = pg.Domain({"year": [2020, 2024], "sex": ["F", "M"], "size": [0.5], "mixed": ["a", 1]})
    [first, *_, last] = held.rows_of_block(domain, 0, np.arange(8)).to_pylist()
    assert first == {"year": 2020, "sex": "F", "size": 0.5, "mixed": "a", "value": 0}
    assert last == {"year": 2024, "sex": "M", "size": 0.5, "mixed": "1", "value": 7}


def test_what_is_rehearsed_depends_on_the_noise_and_never_on_the_key_of_the_release() -> None:
    make = NoisyBlocks(laplace_noise(Fraction(1)), bytes(32), 128)
    assert make.rehearsal() == replace(make, key=b"\xff" * 32, cells=5).rehearsal()
    assert make.rehearsal() != replace(make, noise=laplace_noise(Fraction(2))).rehearsal()


def test_a_table_in_parts_is_counts_and_noise(small: None, tmp_path: Path) -> None:
    release = made(ROWS, tmp_path / "one")
    assert release.tables[0].values.tolist() == [64] * 5 + [40]
    assert release.record["mechanism"] == "Laplace, in parts"
    assert pg.Release.from_parquet(release.to_bytes()).record == release.record
    rows = read(tmp_path / "one")
    assert rows.column_names == ["sex", "age", "mixed", "value"]
    assert rows.num_rows == DOMAIN.size
    # The key is the first four words of the rng.
    key = pg.SeededRng(5).words(4).astype("<u8").tobytes()
    make = NoisyBlocks(laplace_noise(Fraction(1)), key, DOMAIN.size)
    noise = np.concatenate([make(number, NONE, NONE) for number in range(make.blocks)])
    assert (rows["value"].to_numpy() - noise).tolist() == count_cells(ROWS, DOMAIN).vector().tolist()


def test_spark_makes_the_same_parts_as_this_process(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two blocks and a rest, of which one holds no record; bit for bit."""
    domain = pg.Domain({"a": 1500, "b": 1500})
    query, policy = pg.queries.identity(domain), pg.Policy(domain)
    table = pa.table({"a": [0, 0, 1499, 700], "b": [0, 0, 1499, 3]})
    for number, data in enumerate((table, spark.createDataFrame(table).repartition(3))):
        pg.release(query, policy, data, rho="1/2", rng=pg.SeededRng(9), parts=tmp_path / str(number))
    one, other = (
        pq.read_table(tmp_path / str(number)).sort_by([("a", "ascending"), ("b", "ascending")])
        for number in range(2)
    )
    assert one.num_rows == domain.size
    assert one.equals(other.cast(one.schema))
    # Workers without the package, or with another one, are found before anything is charged.
    monkeypatch.setattr(NoisyBlocks, "rehearsal", lambda self: 1)
    with pytest.raises(InputError) as caught:
        pg.release(
            query,
            policy,
            spark.createDataFrame(table),
            rho="1/2",
            parts=tmp_path / "x",
            ledger=tmp_path / "b.db",
        )
    assert caught.value.code == "engine.workers"
    assert Ledger(tmp_path / "b.db").datasets() == []
    monkeypatch.undo()
    monkeypatch.setattr(spark_module, "_rehearse", lambda make: lambda batches: [1 // 0])
    with pytest.raises(InputError) as caught:
        pg.release(
            query,
            policy,
            spark.createDataFrame(table),
            rho="1/2",
            parts=tmp_path / "x",
            ledger=tmp_path / "b.db",
        )
    assert caught.value.code == "engine.workers"


def test_nothing_that_spark_writes_about_a_job_has_the_key_or_a_count(spark: Any, tmp_path: Path) -> None:
    """The event log holds all that the history server and the pages of Spark show: plans, statements, settings, measures of tasks."""
    context, log = spark.sparkContext, tmp_path / "log"
    log.mkdir()
    settings = context._jsc.sc().conf().clone()
    for name in ("compress", "rolling.enabled"):
        settings = settings.set(f"spark.eventLog.{name}", "false")
    java = context._jvm
    listener = java.org.apache.spark.scheduler.EventLoggingListener(
        "told",
        java.scala.Option.empty(),
        java.java.net.URI(log.as_uri()),
        settings,
        context._jsc.hadoopConfiguration(),
    )
    listener.start()
    context._jsc.sc().addSparkListener(listener)
    domain = pg.Domain({"a": 3})
    counts = (79193, 62717)
    rows = pa.table({"a": np.repeat([0, 2], counts)})
    key = pg.SeededRng(5).words(4).astype("<u8").tobytes()
    how = {"epsilon": 1, "mechanism": pg.Laplace(), "rng": pg.SeededRng(5), "parts": tmp_path / "table"}
    try:
        pg.release(pg.queries.identity(domain), pg.Policy(domain), spark.createDataFrame(rows), **how)
        context._jsc.sc().listenerBus().waitUntilEmpty()
    finally:
        context._jsc.sc().removeSparkListener(listener)
        listener.stop()
    told = (log / "told").read_bytes()
    assert b"applyInArrow" in told or b"FlatMapCoGroupsInArrow" in told
    forms = [key, key.hex().encode(), base64.b64encode(key)[:42], repr(key)[2:-1].encode()]
    forms += [",".join(map(str, key)).encode(), ", ".join(map(str, key)).encode()]
    assert not [form for form in forms if form in told]
    assert not re.search(rb"(?<![0-9])(79193|62717)(?![0-9])", told)


def test_a_crash_in_the_middle_draws_the_same_noise_again(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, real, calls = tmp_path / "budget.db", NoisyBlocks.__call__, []

    def failing(self: NoisyBlocks, number: int, *counted: Any) -> Any:
        calls.append(number)
        if len(calls) == 4:
            raise OSError("the disk is full")
        return real(self, number, *counted)

    monkeypatch.setattr(NoisyBlocks, "__call__", failing)
    with pytest.raises(OSError, match="full"):
        made(ROWS, tmp_path / "one", ledger=ledger, rng=None)
    made(ROWS, tmp_path / "two", ledger=ledger, rng=None)
    [account] = Ledger(ledger).datasets()
    assert account.charges == 1
    for number in range(3):
        name = f"part-{number:06}.parquet"
        assert pq.read_table(tmp_path / "one" / name).equals(pq.read_table(tmp_path / "two" / name))
    # On record: the list of parts, at no cost, and no file is written.
    again = made(ROWS, tmp_path / "three", ledger=ledger, rng=None)
    assert again.tables[0].values.sum() == DOMAIN.size
    assert not (tmp_path / "three").exists()
    # The very same call, whose folder holds the parts, is a repetition too.
    files = {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}
    assert made(ROWS, tmp_path / "two", ledger=ledger, rng=None).record == again.record
    assert {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()} == files
    # The same table without parts is another request.
    pg.release(QUERY, pg.Policy(DOMAIN), ROWS, epsilon=1, ledger=ledger, mechanism=pg.Laplace())
    assert Ledger(ledger).datasets()[0].charges == 2


def test_what_cannot_be_written_in_parts_is_refused_before_the_charge(small: None, tmp_path: Path) -> None:
    ledger = tmp_path / "budget.db"
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    cases: list[tuple[Any, Any, str, dict[str, Any], str]] = [
        (QUERY, ROWS, "there", {}, "release.exists"),
        (QUERY, ROWS, "file/new", {}, "output.place"),
        (QUERY, ROWS, "file/no/new", {}, "output.place"),
        (pg.queries.cuboids(DOMAIN, [["sex"], ["age"]]), ROWS, "new", {}, "gate.parts"),
        (pg.queries.cuboids(DOMAIN, [["sex"]], [2]), ROWS, "new", {}, "gate.parts"),
        (pg.queries.cuboids(DOMAIN, [[]]), ROWS, "new", {}, "gate.parts"),
        (QUERY, ROWS, "new", {"mechanism": pg.Cube()}, "gate.parts"),
        (QUERY, [0] * DOMAIN.size, "new", {}, "counts.domain"),
    ]
    for query, data, folder, how, code in cases:
        with pytest.raises((InputError, RefusedError)) as caught:
            pg.release(
                query, pg.Policy(DOMAIN), data, epsilon=1, parts=tmp_path / folder, ledger=ledger, **how
            )
        assert caught.value.code == code
    assert Ledger(ledger).datasets() == []


def test_a_cuboid_beyond_one_vector(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from policygraph.curator import histogram
    from policygraph.curator.counting import tables

    for module in (tables, histogram):
        monkeypatch.setattr(module, "DENSE", 100)
    query, policy = pg.queries.cuboid(DOMAIN, "sex", "age"), pg.Policy(DOMAIN, unknown="drop")
    odd = pa.table({"sex": ["F", "M", "F", "?"], "age": [0, 89, 0, 3], "mixed": ["a", "1", "z", "a"]})
    with pytest.raises(RefusedError):
        pg.release(query, policy, odd, epsilon=1, rng=pg.SeededRng(5), mechanism=pg.Laplace())
    pg.release(query, policy, odd, epsilon=1, rng=pg.SeededRng(5), parts=tmp_path / "one")
    rows = pq.read_table(tmp_path / "one")
    make = NoisyBlocks(laplace_noise(Fraction(1)), pg.SeededRng(5).words(4).astype("<u8").tobytes(), 180)
    noise = np.concatenate([make(number, NONE, NONE) for number in range(make.blocks)])
    assert np.flatnonzero(rows["value"].to_numpy() - noise).tolist() == [0, 179]


def test_folders_that_are_missing_are_made(tmp_path: Path) -> None:
    made(ROWS, tmp_path / "a" / "b" / "c")
    assert [path.name for path in (tmp_path / "a" / "b" / "c").iterdir()] == ["part-000000.parquet"]


def test_the_column_of_values_is_never_an_attribute(tmp_path: Path) -> None:
    domain = pg.Domain(dict.fromkeys(("value", "noisy_value", "released_value", "policygraph_value"), 2))
    rows = pa.table({name: [0, 1] for name in domain.names})
    pg.release(pg.queries.identity(domain), pg.Policy(domain), rows, epsilon=1, parts=tmp_path / "one")
    assert pq.read_table(tmp_path / "one").column_names == [*domain.names, "_value"]


def test_the_page_of_a_release_in_parts_does_not_say_that_it_is_exact(small: None, tmp_path: Path) -> None:
    page = report(made(ROWS, tmp_path / "one"))
    assert "no noise was needed" not in page
    assert "in files of their own" in page


def test_another_scale_never_meets_the_same_key(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search with less effort may find a larger bound; parts of both runs may lie about."""
    ledger, plain = tmp_path / "budget.db", releasing.calibrated

    def larger(*asked: Any) -> Any:
        ready: Any = plain(*asked)
        bound = replace(ready.sensitivity, power=2 * ready.sensitivity.power, kind="upper")
        return replace(ready, sensitivity=bound)

    def full(release: pg.Release) -> bytes:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(releasing, "calibrated", larger)
        patched.setattr(pg.Release, "to_bytes", full)
        with pytest.raises(OSError, match="full"):
            made(ROWS, tmp_path / "one", ledger=ledger, rng=None)
    made(ROWS, tmp_path / "two", ledger=ledger, rng=None)
    assert Ledger(ledger).datasets()[0].charges == 2
    with monkeypatch.context() as patched:
        patched.setattr(releasing, "calibrated", larger)
        made(ROWS, tmp_path / "three", ledger=ledger, rng=None)
    assert Ledger(ledger).datasets()[0].charges == 2
    assert read(tmp_path / "three").equals(read(tmp_path / "one"))
    # From one stream draws would have the same signs.
    noise = [read(tmp_path / name)["value"].to_numpy()[40:180] for name in ("one", "two")]
    assert np.any(noise[0] * noise[1] < 0)


def test_what_workers_run_is_what_this_process_runs() -> None:
    """The two functions that go to Spark's workers, called here: coverage does not see into them there."""
    part = pg.Domain({"a": 3})
    make = NoisyBlocks(laplace_noise(Fraction(1)), bytes(32), 3)
    (told,) = spark_module._rehearse(make)([None])
    assert told.to_pylist() == [{"version": pg.__version__, "noise": make.rehearsal()}]
    counted = pa.table({"block": [0], "at": [2], "n": [100]})
    rows = spark_module._blocks(make, part)(counted, pa.table({"block": [0]}))
    expected = make(0, np.array([2]), np.array([100]))
    assert rows.to_pydict() == held.rows_of_block(part, 0, expected).to_pydict()


def test_counts_that_are_not_of_all_records_are_refused() -> None:
    part, batch = pg.Domain({"a": 3}), {"cell": np.array([2, -1]), "n": np.array([4, 1])}
    assert held.HeldHere(part, iter([batch]), 4).counts.tolist() == [4]
    with pytest.raises(DataError) as caught:
        held.HeldHere(part, iter([batch]), 5)
    assert caught.value.code == "data.changed"


def test_spark_refuses_records_that_changed_and_a_folder_that_is_there(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame(pa.table({"a": [0, 2, 2]}))
    domain = pg.Domain({"a": 3})
    source = open_source(frame)
    engine: Any = source.engine
    statement = "SELECT c0 AS cell, count(*) AS n FROM policygraph_source GROUP BY c0"
    with pytest.raises(DataError) as caught:
        engine.held(statement, domain, 4)
    assert caught.value.code == "data.changed"
    (tmp_path / "table").mkdir()
    make = NoisyBlocks(laplace_noise(Fraction(1)), bytes(32), 3)
    with pytest.raises(DataError) as caught:
        engine.held(statement, domain, 3).write(make, str(tmp_path / "table"))
    assert caught.value.code == "data.unreadable"
    assert list((tmp_path / "table").iterdir()) == []
