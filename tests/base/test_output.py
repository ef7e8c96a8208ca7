"""What is written is whole or not there: full disks, links, and files that are the user's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import policygraph as pg
from policygraph.cli.app import run
from policygraph.estimation.networks import PublicDegrees, synthetic_graph
from policygraph.output import replacing, write_all
from tests.paths import ROOT

DOMAIN = pg.Domain({"sex": ["F", "M"], "age": 3})
POLICY = pg.Policy(DOMAIN, graph=pg.PolicyGraph.full(DOMAIN))
NAMES = ("release.parquet", "release.csv", "release.json", "certificate.json")
on_posix = pytest.mark.skipif(os.name != "posix", reason="needs limits of files and links")


def made():
    return pg.release(pg.queries.identity(DOMAIN), POLICY, [1] * 6, epsilon=1)


def writers(folder):
    """Everything of the library that writes a file, by the name of the file."""
    release, certificate = made(), pg.sensitivity(pg.queries.identity(DOMAIN), POLICY)
    groups = pg.queries.mixing(pg.Network(4), ["x", "x", "y", "y"])
    graph = synthetic_graph([1, 0, 1], groups, PublicDegrees.of(groups.domain, [1] * 4), seed=1)
    out = {
        "release.parquet": release.to_parquet, "release.csv": release.to_csv, "release.json": release.to_json,
        "certificate.json": lambda path: certificate.to_json(str(path)),
        "graph.png": lambda path: POLICY.graph.draw(str(path)), "move.png": lambda path: certificate.move().draw(str(path)),
        "edges.csv": graph.to_csv,
    }  # fmt: skip
    return {folder / name: write for name, write in out.items()}


def test_nothing_is_written_through_a_link(tmp_path):
    for path, write in writers(tmp_path).items():
        mine = tmp_path / "mine"
        mine.write_text("precious")
        path.symlink_to(mine)
        with pytest.raises(pg.InputError) as problem:
            write(path)
        assert problem.value.code == "output.place"
        assert mine.read_text() == "precious"
        path.unlink()
        path.symlink_to(tmp_path / "nowhere")
        with pytest.raises(pg.InputError):
            write(path)
        assert not (tmp_path / "nowhere").exists()
        path.unlink()
        write(path)
        assert path.stat().st_size > 0
        assert {each.name for each in tmp_path.iterdir()} >= {path.name}
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


@on_posix
def test_a_full_disk_leaves_what_was_there(tmp_path):
    """Files may grow to every size in turn: either the whole of a file is there, or the old one."""
    code = """
    import json, resource, sys
    from pathlib import Path
    import policygraph as pg
    sys.path.insert(0, sys.argv[2])
    from tests.base.test_output import made, writers, NAMES
    folder = Path(sys.argv[1])
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    release, all_of_them = made(), writers(folder)
    failed = written = 0
    (folder / "out").mkdir()
    cases = [(path, lambda path=path, write=write: write(path)) for path, write in all_of_them.items()]
    cases.append((folder / "out", lambda: release.write(folder / "out")))
    for path, write in cases:
        write()
        files = [path] if path.is_file() else [path / name for name in NAMES]
        whole = {file: file.stat().st_size for file in files}
        most = max(whole.values())
        for size in [*range(0, most, max(1, most // 12)), 2 * most]:
            for file in files:
                file.write_bytes(b"old")
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
            try:
                write()
                written += 1
                ok = all(file.read_bytes() != b"old" for file in files)
            except (pg.InputError, OSError):
                failed += 1
                ok = all(file.read_bytes() == b"old" for file in files)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            assert ok, (path, size)
            assert not [each for each in [*folder.iterdir(), *(folder / "out").iterdir()] if each.name.startswith(".")]
    print(json.dumps([failed, written]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code), tmp_path, ROOT]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert outcome.returncode == 0, outcome.stderr
    failed, written = json.loads(outcome.stdout.splitlines()[-1])
    assert failed > 40
    assert written > 3


def test_drafts_vanish_when_writing_is_interrupted(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def stop(path):
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.txt") as draft:
        stop(draft)
    with pytest.raises(KeyboardInterrupt):
        write_all({tmp_path / "b.txt": lambda path: path.write_text("new"), tmp_path / "a.txt": stop})
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text('[domain]\nsex = ["F", "M"]\n\n[[release]]\ncuboid = ["sex"]\n')
    (tmp_path / "people.csv").write_text("sex\nF\nM\nF\n")
    return tmp_path


def release(*more):
    return run(["release", "p.toml", "--data", "people.csv", "--epsilon", "1", "--ledger", "b.db", *more])


def test_the_command_writes_through_no_link_and_charges_nothing_then(folder, capsys):
    precious = folder / "precious"
    precious.write_text("mine")
    for name in NAMES:
        for target in (precious, folder / "nowhere"):
            out = folder / "out"
            out.mkdir()
            (out / name).symlink_to(target)
            assert release("--out", "out", "--overwrite") == 2
            assert "link" in capsys.readouterr().err
            assert precious.read_text() == "mine"
            (out / name).unlink()
            out.rmdir()
    assert not (folder / "nowhere").exists()
    assert not (folder / "b.db").exists() or pg.Ledger(folder / "b.db").history() == []


def test_no_file_of_the_user_is_removed(folder):
    out = folder / "out"
    out.mkdir()
    mine = {
        name: out / name for name in (".policygraph-test", "notes.txt", ".release.tmp", "release.parquet.bak")
    }
    for name, path in mine.items():
        path.write_text(name)
    assert release("--out", "out") == 0
    assert release("--out", "out", "--overwrite", "--again") == 0
    assert {path.name for path in out.iterdir()} == {*mine, *NAMES, "tables"}
    assert all(path.read_text() == name for name, path in mine.items())


def test_the_folder_itself_may_be_a_link(folder):
    (folder / "real").mkdir()
    (folder / "out").symlink_to(folder / "real")
    assert release("--out", "out") == 0
    assert sorted(path.name for path in (folder / "real").iterdir()) == sorted([*NAMES, "tables"])


def test_devices_are_written_to_and_not_replaced(folder):
    assert run(["sensitivity", "p.toml", "--out", "/dev/null"]) in (0, 2)
    assert not Path("/dev/null").is_file()
