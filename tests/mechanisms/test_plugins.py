"""Mechanisms of third parties: installed distributions and registrations are considered like ours, and their faults are sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

import policygraph as pg
from policygraph.curator.requests import mechanism_form
from policygraph.errors import InputError
from policygraph.extend import Candidate, register, unregister
from policygraph.files import PolicyFileError, dumps, loads
from policygraph.mechanisms import candidates as registry
from policygraph.mechanisms import choose

DOMAIN = pg.Domain({"age": 4})
POLICY = pg.Policy(DOMAIN)
QUERY = pg.queries.identity(DOMAIN)
FILE = '[domain]\nage = 4\n\n[[release]]\ncuboid = ["age"]\n'

MODULE = '''
from dataclasses import dataclass, fields
import policygraph as pg
from policygraph.extend import Candidate, Epsilon, Mechanism
from policygraph.mechanisms.additive import Additive

class SharpNoise(Additive):
    """Laplace noise that claims half of its error, for tests of the choice only."""
    @property
    def total_error(self):
        return super().total_error / 2

@dataclass(frozen=True)
class Sharp(Mechanism):
    name: str = "Sharp"
    factor: int = 2

    def calibrate(self, query, policy, loss, sensitivity=None):
        ready = pg.Laplace(self.name).calibrate(query, policy, loss, sensitivity)
        return SharpNoise(*(getattr(ready, each.name) for each in fields(ready)))

class Raises(Mechanism):
    name = "Raises"
    def calibrate(self, query, policy, loss, sensitivity=None):
        raise KeyError("nothing here")

class WrongKind(Mechanism):
    name = "WrongKind"
    def calibrate(self, query, policy, loss, sensitivity=None):
        return "noise"

class OtherLoss(Mechanism):
    name = "OtherLoss"
    def calibrate(self, query, policy, loss, sensitivity=None):
        return pg.Laplace().calibrate(query, policy, pg.Epsilon(100))

def unsure(query, policy, loss):
    raise RuntimeError("cannot say")

sharp = Candidate("any name", lambda query, policy, loss: Sharp(), lambda query, policy, loss: isinstance(loss, Epsilon), words="sharp noise")
unsure_candidate = Candidate("unsure", lambda query, policy, loss: Sharp(), unsure)
number = 7
'''


def install(folder, points, module=MODULE, name="acme-noise"):
    """Put a distribution into a folder, as an installer leaves it there."""
    (folder / "acme_noise.py").write_text(module)
    info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = "\n".join(f"{key} = {value}" for key, value in points.items())
    (info / "entry_points.txt").write_text(f"[policygraph.mechanisms]\n{lines}\n")
    return folder


@pytest.fixture
def installed(tmp_path, monkeypatch):
    def make(points, **more):
        folder = tmp_path / "site"
        folder.mkdir()
        monkeypatch.syspath_prepend(str(install(folder, points, **more)))
        forget()

    def forget():
        registry._entry_points.cache_clear()
        registry._of_entry_point.cache_clear()
        sys.modules.pop("acme_noise", None)

    yield make
    monkeypatch.undo()
    forget()


def test_an_installed_mechanism_is_considered_listed_and_known_by_name(installed, tmp_path):
    installed({"sharp": "acme_noise:sharp"})
    ready = choose(QUERY, POLICY, pg.Epsilon(1))
    assert ready.mechanism == "Sharp"
    made = pg.release(QUERY, POLICY, [1, 2, 3, 4], epsilon=1, mechanism="auto", ledger=tmp_path / "budget.db")
    first = made.record["stages"][0]
    assert "sharp noise (plug-in 'sharp' of acme-noise 1.2)" in first
    assert first.endswith(
        "It is the plug-in 'sharp' of acme-noise 1.2: that it keeps the loss rests on its authors."
    )
    assert "noise on every answer" in first
    found = pg.compare(QUERY, POLICY, epsilon=1)
    assert found["sharp"].expected < found["every answer"].expected
    assert "plug-in 'sharp' of acme-noise" in found["sharp"].note
    assert found["auto"].mechanism == "Sharp"
    named = pg.release(
        QUERY, POLICY, [1, 2, 3, 4], epsilon=1, mechanism="sharp", ledger=tmp_path / "budget.db"
    )
    assert named.record["mechanism"] == "Sharp"
    assert named.record["stages"][0] == (
        "Released by the plug-in 'sharp' of acme-noise: that it keeps the loss rests on its authors."
    )
    assert len(pg.Ledger(tmp_path / "budget.db").history()) == 2, "auto and a name are two requests"
    again = pg.release(
        QUERY, POLICY, [1, 2, 3, 4], epsilon=1, mechanism="sharp", ledger=tmp_path / "budget.db"
    )
    assert again.values().tolist() == named.values().tolist()
    assert len(pg.Ledger(tmp_path / "budget.db").history()) == 2
    # What it does not accept it is not asked for.
    assert choose(QUERY, POLICY, pg.Rho(1)).mechanism == "Gaussian"
    with pytest.raises(InputError, match="Did you mean 'sharp'"):
        pg.release(QUERY, POLICY, [1, 2, 3, 4], epsilon=1, mechanism="shart")


def test_requests_tell_plug_ins_and_their_settings_apart(installed):
    installed({"sharp": "acme_noise:Sharp", "other": "acme_noise:sharp"})
    from acme_noise import Sharp

    known = {each.name: each for each in registry.candidates()}
    asked = [known[name].mechanism(QUERY, POLICY, pg.Epsilon(1)) for name in ("sharp", "other")]
    asked += [
        registry.PlugIn("sharp", Sharp(factor=3), "", asked[0].origin),
        Sharp(),
        Sharp(factor=3),
        pg.Laplace(),
    ]
    forms = [json.dumps(mechanism_form(each), sort_keys=True) for each in asked]
    assert "null" not in forms
    assert len(set(forms)) == len(forms)
    assert "1.2" not in forms[0], "a new version knows the requests of the old one"


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("acme_noise:missing", "cannot be loaded from acme_noise:missing (AttributeError"),
        ("acme_nowhere:x", "cannot be loaded from acme_nowhere:x (ModuleNotFoundError"),
        ("acme_noise:number", "cannot be loaded from acme_noise:number (InputError: mechanism=7"),
        ("acme_noise:Raises", "failed (KeyError: 'nothing here')"),
        ("acme_noise:WrongKind", "failed (TypeError: calibrate gave 'noise'"),
        ("acme_noise:OtherLoss", "failed (ValueError: calibrate is for another query, policy or loss"),
        ("acme_noise:unsure_candidate", "failed (RuntimeError: cannot say)"),
    ],
)
def test_a_broken_plug_in_is_one_sentence_that_names_it_and_costs_nothing(installed, tmp_path, point, said):
    installed({"mine": point})
    book = pg.Ledger(tmp_path / "budget.db")
    for asked in ("auto", "mine"):
        with pytest.raises(InputError) as caught:
            pg.release(QUERY, POLICY, [1, 2, 3, 4], epsilon=1, ledger=book, mechanism=asked)
        assert caught.value.code == "plugin.broken"
        assert str(caught.value).startswith("the plug-in 'mine' of acme-noise ")
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
    assert book.history() == []
    found = pg.compare(QUERY, POLICY, epsilon=1)
    assert not found["mine"].applies
    assert "plug-in 'mine' of acme-noise" in found["mine"].note
    assert found["every answer"].applies
    # Ours are still there by name.
    pg.release(QUERY, POLICY, [1, 2, 3, 4], epsilon=1, ledger=book, mechanism="every answer")
    assert len(book.history()) == 1


def test_a_module_that_fails_when_it_is_imported_is_one_sentence(installed):
    installed({"mine": "acme_noise:x"}, module="raise RuntimeError('two\\nlines')")
    with pytest.raises(InputError, match=r"acme_noise:x \(RuntimeError: two lines\)"):
        choose(QUERY, POLICY, pg.Epsilon(1))


def test_a_name_that_is_taken_is_not_given_twice(installed):
    installed({"edges": "acme_noise:sharp"})
    with pytest.raises(InputError, match="has a name that another mechanism has"):
        choose(QUERY, POLICY, pg.Epsilon(1))
    for name in ("edges", "auto", "", 3):
        with pytest.raises(InputError) as caught:
            register(name, pg.Laplace())
        assert caught.value.code == "plugin.name"
    for wrong in (7, "Laplace", int, None):
        with pytest.raises(InputError) as caught:
            register("mine", wrong)
        assert caught.value.code == "plugin.mechanism"


def test_what_is_registered_at_run_time_is_considered_until_it_is_forgotten(installed):
    installed({})
    before = choose(QUERY, POLICY, pg.Epsilon(1)).mechanism
    register("twice", pg.Laplace(name="Twice"), words="the same noise")
    try:
        assert "twice" in [method.name for method in pg.compare(QUERY, POLICY, epsilon=1).methods]
        ready = choose(QUERY, POLICY, pg.Epsilon(1))
        assert "the same noise (plug-in 'twice', registered at run time)" in ready.why
        assert choose(QUERY, POLICY, pg.Rho(1)).mechanism == "Gaussian", "one that refuses is left out"
        with pytest.raises(InputError):
            register("twice", pg.Laplace())
        assert loads(FILE + 'mechanism = "twice"\n').mechanism == "twice"
    finally:
        unregister("twice")
    assert choose(QUERY, POLICY, pg.Epsilon(1)).mechanism == before
    assert choose(QUERY, POLICY, pg.Epsilon(1)).why == ""


def test_facts_that_couple_records_leave_room_for_plug_ins(installed):
    domain = pg.Domain({"a": 2, "b": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    query = pg.queries.identity(domain)
    alone = choose(query, policy, pg.Epsilon(1))
    register("worse", Candidate("x", lambda *_: pg.Laplace()))
    try:
        ready = choose(query, policy, pg.Epsilon(1))
    finally:
        unregister("worse")
    assert ready.mechanism == alone.mechanism
    assert "worse (plug-in 'worse', registered at run time)" in ready.why


def test_a_policy_file_names_its_mechanism():
    file = loads(FILE + 'mechanism = "edges"\n')
    assert file.mechanism == "edges"
    assert loads(FILE).mechanism is None
    assert loads(dumps(file.policy, file.releases, mechanism="tree")).mechanism == "tree"
    made = pg.release(file.query, file.policy, [1, 2, 3, 4], epsilon=1, mechanism=file.mechanism)
    assert made.record["mechanism"].startswith("TransformedLaplace")
    assert pg.expected_error(file.query, file.policy, epsilon=1, mechanism="edges")["age"] > 0
    with pytest.raises(InputError) as caught:
        dumps(file.policy, mechanism="tree")
    assert caught.value.code == "file.mechanism"


@pytest.mark.parametrize(
    ("more", "path", "said"),
    [
        ('mechanism = "edge"\n', "release[0].mechanism", "Did you mean 'edges'?"),
        ("mechanism = 3\n", "release[0].mechanism", "expected text"),
        (
            'mechanism = "tree"\n[[release]]\ncuboid = []\nmechanism = "edges"\n',
            "release[1].mechanism",
            "released together",
        ),
        ('mechanism = "edges"\n[cube]\nstrategy = "all"\n', "release[0].mechanism", "beside [cube]"),
    ],
)
def test_a_wrong_mechanism_is_a_mistake_of_the_file_with_its_place(more, path, said):
    with pytest.raises(PolicyFileError) as caught:
        loads(FILE + more)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert said in problem.message


def command(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "policygraph", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])},
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip


def test_the_command_takes_plug_ins_by_option_by_file_and_by_choice(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, {"sharp": "acme_noise:sharp"})
    (folder / "data.csv").write_text("age\n" + "1\n" * 9)
    (folder / "plain.toml").write_text(FILE)
    (folder / "named.toml").write_text(FILE + 'mechanism = "sharp"\n')
    asked = ["--data", "data.csv", "--epsilon", "1", "--json", "--ledger", "budget.db"]
    for at, (policy, more) in enumerate(
        [("plain.toml", ["--mechanism", "sharp"]), ("named.toml", []), ("plain.toml", [])]
    ):
        done = command(folder, "release", policy, *asked, *more, "--out", f"out{at}")
        assert done.returncode == 0, done.stderr
        assert json.loads((folder / f"out{at}" / "release.json").read_text())["mechanism"] == "Sharp"
        # The same mechanism of the same data, by an option and by a file, is one request.
        assert json.loads(done.stdout)["repeated"] == (at == 1)
    done = command(folder, "compare", "plain.toml")
    assert "plug-in 'sharp' of acme-noise" in done.stdout
    done = command(folder, "audit", "named.toml", "--samples", "200", "--pairs", "1", "--seed", "1")
    assert done.returncode in (0, 4), done.stderr


def test_a_broken_plug_in_of_the_command_is_one_line_and_status_2(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    install(folder, {"mine": "acme_noise:Raises"})
    (folder / "data.csv").write_text("age\n1\n")
    (folder / "plain.toml").write_text(FILE)
    done = command(
        folder,
        "release",
        "plain.toml",
        "--data",
        "data.csv",
        "--epsilon",
        "1",
        "--out",
        "out",
        "--ledger",
        "budget.db",
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "the plug-in 'mine' of acme-noise failed (KeyError: 'nothing here')" in done.stderr
    assert not (folder / "out").exists()
    history = command(folder, "budget", "history", "budget.db")
    assert "charge" not in history.stdout


def test_plug_ins_are_looked_for_when_they_are_needed_and_not_before():
    program = textwrap.dedent("""
        import sys
        import policygraph as pg
        from policygraph.mechanisms import candidates
        file = __import__("policygraph.files", fromlist=["loads"]).loads('[domain]\\nage = 4\\n')
        print(candidates._entry_points.cache_info().misses)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
