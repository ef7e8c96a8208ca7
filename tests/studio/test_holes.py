"""What a security review of the studio found: each was a way to publish, to keep or to show what nobody meant to."""

from __future__ import annotations

import html
import http.client
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from urllib.parse import urlencode

import pytest

import policygraph as pg
from policygraph.cli import stopping
from policygraph.studio import Studio, server

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

PEOPLE = b"person_id,sex,work\r\n" + b"".join(
    f"{number},{'F' if number % 3 else 'M'},{'yes' if number % 5 < 2 else 'no'}\r\n".encode()
    for number in range(60)
)


class Visitor:
    """Somebody with a browser, without scripts."""

    def __init__(self, folder):
        self.ledger = folder / "budget.db"
        self.studio = Studio(self.ledger)
        self.thread = threading.Thread(target=self.studio.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.studio.stop()
        self.thread.join(30)
        assert not self.thread.is_alive()

    def ask(self, method, path, body=None, kind="application/x-www-form-urlencoded"):
        connection = http.client.HTTPConnection("127.0.0.1", self.studio.port, timeout=120)
        connection.request(method, self.studio.base + path, body, {"Content-Type": kind} if body else {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        where = (answer.headers.get("Location") or "").removeprefix(self.studio.base)
        return answer.status, where, content

    def get(self, path):
        status, _, content = self.ask("GET", path)
        return status, html.unescape(content.decode())

    def post(self, path, *fields):
        """Send a form; the page that it leads to."""
        status, where, content = self.ask("POST", path, urlencode(fields))
        return (*self.get(where), where) if status == 303 else (status, html.unescape(content.decode()), path)

    def open(self, data=PEOPLE, name="people.csv", *published):
        parts = [("data", name, data), *(("published", *each) for each in published)]
        body = b"".join(
            f'--x\r\nContent-Disposition: form-data; name="{key}"; filename="{called}"\r\n\r\n'.encode()
            + content
            + b"\r\n"
            for key, called, content in parts
        )
        return self.ask("POST", "/open", body + b"--x--\r\n", "multipart/form-data; boundary=x")

    @property
    def place(self):
        return ("place", self.studio.work.place.name)

    def read(self, *columns):
        return self.post("/read", self.place, *(("column", each) for each in columns))

    def choose(self, used, public=(), epsilon="1", release="up_to"):
        ticks = [*(("used", each) for each in used), *(("public", each) for each in public)]
        return self.post("/choose", self.place, *ticks, ("epsilon", epsilon), ("release", release))

    def question(self, dataset="people"):
        """Ask for a release; the page that confirms it, and the name of the question."""
        [stamp] = re.findall(r'name="stamp" value="(\w+)"', self.get("/policy")[1])
        status, text, where = self.post("/ask", ("stamp", stamp), ("dataset", dataset))
        assert status == 200, text
        return text, where.split("/")[-1]


@pytest.fixture
def visitor(tmp_path):
    with Visitor(tmp_path) as made:
        yield made


def test_exact_counts_of_the_data_are_named_and_confirmed_one_by_one(visitor):
    visitor.open()
    visitor.read("sex", "work")
    status, text, _ = visitor.choose(["sex", "work"], ["sex"])
    assert (status, "yes: already published exactly" in text) == (200, True)
    page, name = visitor.question()
    assert "Exact, without noise, from your data: sex (2 counts)" in page
    assert "work (2 counts)" in page.split('id="noisy"')[1].split("</ul>")[0]
    assert "sex (2 counts)" in page.split('id="known"')[1].split("</ul>")[0]
    assert [str(each) for each in visitor.studio.work.question(name).exact] == ["sex (2 counts)"]
    for ticks in ([], [("exact", "work (2 counts)")]):
        status, text, _ = visitor.post("/confirm", ("question", name), *ticks)
        assert (status, "[studio.exact]" in text, "Nothing was spent" in text) == (400, True, True)
        assert not visitor.ledger.exists()
    status, text, _ = visitor.post("/confirm", ("question", name), ("exact", "sex (2 counts)"))
    assert (status, "Released, and charged to people" in text) == (200, True)
    assert str(pg.Ledger(visitor.ledger).spent("people")) == "epsilon = 1"


def test_what_a_file_states_needs_no_tick(visitor):
    visitor.open(PEOPLE, "people.csv", ("sexes.csv", b"sex,count\r\nF,40\r\nM,20\r\n"))
    visitor.read("sex", "work")
    page, name = visitor.question()
    assert "from your data" not in page
    status, text, _ = visitor.post("/confirm", ("question", name))
    assert (status, "Released" in text) == (200, True)


def started(folder, *arguments, **more):
    """Python in a process of its own, with a folder for temporary files.

    Signals mean what they mean at a terminal: a test run under ``nohup`` hands on that SIGHUP is ignored, and coverage would handle SIGTERM.
    """
    given = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**given, "TMPDIR": str(folder), **more},
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )  # fmt: skip


class Command:
    """The command in a process of its own."""

    def __init__(self, folder, *arguments, **more):
        self.process = started(folder, "-m", "policygraph", "studio", *arguments, **more)
        self.address = self.process.stdout.readline().strip()
        self.port, self.token = self.address.removeprefix("http://127.0.0.1:").strip("/").split("/")

    def ask(self, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port), timeout=120)
        kind = {"Content-Type": "multipart/form-data; boundary=x"} if body else {}
        connection.request("POST" if body else "GET", f"/{self.token}/{path}", body, kind)
        status = connection.getresponse().status
        connection.close()
        return status

    def upload(self):
        part = b'--x\r\nContent-Disposition: form-data; name="data"; filename="people.csv"\r\n\r\n'
        assert self.ask("open", part + PEOPLE + b"\r\n--x--\r\n") == 303

    def end(self, number):
        self.process.send_signal(number)
        said = self.process.communicate(timeout=120)[1]
        assert "Traceback" not in said
        return self.process.returncode


@pytest.fixture
def start(tmp_path):
    """Start the command; what still runs at the end of a test is ended."""
    made = []

    def starting(*arguments, **more):
        made.append(Command(tmp_path, *arguments, **more))
        return made[-1]

    yield starting
    for each in made:
        if each.process.poll() is None:
            each.end(signal.SIGKILL)


def test_signals_leave_no_record_behind(start, tmp_path):
    def kept():
        return {path for path in tmp_path.rglob("people.csv") if path.read_bytes().startswith(b"person_id")}

    killed = start("--no-browser")
    killed.upload()
    assert killed.end(signal.SIGKILL) == -signal.SIGKILL
    assert len(kept()) == 1  # nobody can catch this one; the next start removes it
    left = kept()
    first = start("--no-browser")
    assert kept() == set()
    first.upload()
    [lives] = kept()
    assert lives not in left
    second = start("--no-browser")
    assert kept() == {lives}  # a studio that runs keeps its files
    second.upload()
    assert first.end(signal.SIGTERM) == 128 + signal.SIGTERM
    assert len(kept()) == 1
    assert second.end(signal.SIGHUP) == 128 + signal.SIGHUP
    assert list(tmp_path.glob("policygraph-studio-*")) == []


def test_no_argument_of_a_process_holds_the_token(start, tmp_path):
    seen = tmp_path / "arguments"
    browser = tmp_path / "browser.sh"
    browser.write_text(
        f'#!/bin/sh\necho "$@" > {shlex.quote(str(seen))}.part\nmv {shlex.quote(str(seen))}.part {shlex.quote(str(seen))}\n'
    )
    browser.chmod(0o700)
    command = start(BROWSER=f"{browser} %s")
    for _ in range(1200):
        if seen.exists():
            break
        time.sleep(0.1)
    given = seen.read_text().strip()
    assert command.token not in given
    page = Path(given.removeprefix("file://"))
    assert (page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert f'content="0;url={command.address}"' in page.read_text()
    assert command.ask("") == 200
    command.end(signal.SIGTERM)
    assert not page.exists()


def test_names_that_the_studio_writes_are_left_to_it(visitor):
    towns = [f"town{number}" for number in range(30)]
    rows = b"town,work\r\n" + b"".join(f"{towns[at % 30]},yes\r\n".encode() for at in range(60))
    for name in ("labels-town.csv", "LABELS-town.csv", "Policy.TOML.csv", "release-1.csv", "POLICY.toml"):
        status, where, _ = visitor.open(rows, name)
        if name == "POLICY.toml":  # no kind of data file, but it must not be written over either
            assert status == 400
            continue
        assert (status, where) == (303, "/columns")
        assert visitor.read("town", "work")[0] == 200
        data = Path(visitor.studio.work.begun.data)
        assert data.read_bytes() == rows
        assert (data.parent / "labels-town.csv").read_text().startswith("town\ntown0\n")
    status, text, _ = visitor.post("/confirm", ("question", visitor.question()[1]))
    assert (status, "Released" in text) == (200, True)


def test_a_choice_that_cannot_be_forecast_is_shown_with_its_refusal(visitor):
    names = [f"c{number}" for number in range(12)]
    rows = "".join(",".join(f"v{(at + 3 * each) % 8}" for each in range(12)) + "\r\n" for at in range(200))
    visitor.open((",".join(names) + "\r\n" + rows).encode())
    assert visitor.read(*names)[0] == 200
    for _ in range(2):
        status, text, _ = visitor.choose(names, release="whole")
        assert (status, 'id="refusal"' in text, 'id="policy"' in text) == (400, True, True)
        assert 'name="stamp"' not in text
        assert visitor.get("/policy")[0] == 400
    for epsilon in ("-1", "0", "nan", "x", ""):
        status, text, _ = visitor.choose(names[:2], epsilon=epsilon)
        assert (status, 'id="refusal"' in text, 'id="policy"' in text) == (400, True, True), epsilon
    status, text, _ = visitor.choose(names[:2])
    assert (status, 'id="sensitivity"' in text) == (200, True)


def test_the_program_asks_the_ledger_for_the_same_release(visitor, tmp_path):
    visitor.open()
    visitor.read("sex", "work")
    _, name = visitor.question("town of 2026")
    assert 'value="town of 2026"' in visitor.get("/policy")[1]
    assert "Released" in visitor.post("/confirm", ("question", name))[1]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "people.csv").write_bytes(PEOPLE)
    (elsewhere / "policy.toml").write_text(visitor.studio.work.file.text, encoding="utf-8")
    program = visitor.studio.work.python()
    ran = subprocess.run([sys.executable, "-c", program], cwd=elsewhere, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    [account] = pg.Ledger(visitor.ledger).datasets()
    assert (account.name, str(account.spent)) == ("town of 2026", "epsilon = 1")
    theirs = (elsewhere / "out" / "release.csv").read_bytes()
    assert theirs == visitor.ask("GET", f"/result/{name}/release.csv?download=1")[2]


def test_a_confirmation_of_an_older_policy_releases_nothing(visitor):
    visitor.open()
    visitor.read("sex", "work")
    _, old = visitor.question()
    visitor.choose(["sex", "work"], epsilon="3")
    status, text, _ = visitor.post("/confirm", ("question", old))
    assert (status, "[studio.stale]" in text) == (400, True)
    assert not visitor.ledger.exists()


def test_a_refused_second_reading_leaves_no_older_policy(visitor):
    visitor.open(b"sex,age,count\r\nF,1,5\r\nF,2,3\r\nM,1,4\r\nM,2,3\r\n")
    assert visitor.read("sex", "age")[0] == 200
    _, old = visitor.question()
    status, text, _ = visitor.read("sex", "age", "count")
    assert (status, "[init.counts]" in text) == (400, True)
    for status, text in (visitor.get("/policy"), visitor.choose(["sex"])[:2]):
        assert (status, "[studio.order]" in text) == (400, True)
    assert "[studio.stale]" in visitor.post("/confirm", ("question", old))[1]
    assert not visitor.ledger.exists()


def test_warnings_of_init_stand_on_both_pages(visitor, tmp_path):
    rows = [("client_id", "illness"), *((f"c{at // 2:03}", "none" if at else "lupus") for at in range(80))]
    data = "".join(f"{a},{b}\r\n" for a, b in rows).encode()
    visitor.open(data)
    (tmp_path / "people.csv").write_bytes(data)
    ran = subprocess.run(
        [sys.executable, "-m", "policygraph", "init", "people.csv", "--yes"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = [line for line in ran.stderr.splitlines() if line.startswith(("RARE LABELS", "SEVERAL RECORDS"))]
    assert len(said) == 2
    _, text, _ = visitor.read("client_id", "illness")
    page, _ = visitor.question()
    for sentence in said:
        assert sentence in text
        assert sentence in page


def test_the_policy_is_downloaded_with_what_it_needs(visitor, tmp_path):
    rows = [("=town()", "work"), *((f"town{at % 30}", ["yes", "no"][at % 2]) for at in range(60))]
    data = "".join(f"{a},{b}\r\n" for a, b in rows).encode()
    visitor.open(data, "people.csv", ("works.csv", b"work,count\r\nno,30\r\nyes,30\r\n"))
    visitor.read("=town()", "work")
    _, name = visitor.question()
    assert "Released" in visitor.post("/confirm", ("question", name))[1]
    policy = visitor.studio.work.file.policy
    for at, (path, under) in enumerate((("/policy.zip", ""), (f"/result/{name}/release.zip", "policy"))):
        status, _, content = visitor.ask("GET", path)
        assert status == 200
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            packed.extractall(tmp_path / str(at))
        place = tmp_path / str(at) / under
        assert {each.name for each in place.iterdir()} == {"policy.toml", "works.csv", "labels-town.csv"}
        assert pg.load(place / "policy.toml").policy == policy
        assert all(data != each.read_bytes() for each in (tmp_path / str(at)).rglob("*.csv"))
    tables = list((tmp_path / "1" / "tables").glob("*.csv"))
    assert len(tables) >= 3
    assert all(not line.startswith(("=", '"=')) for each in tables for line in each.read_text().splitlines())
    assert (tmp_path / "1" / "report.html").stat().st_size > 1000


def test_a_forecast_is_computed_once_for_what_is_ticked(visitor):
    visitor.open(PEOPLE, "people.csv", ("sexes.csv", b"sex,count\r\nF,40\r\nM,20\r\n"))
    visitor.read("sex", "work")
    work = visitor.studio.work
    first = work.forecast()
    visitor.question()
    visitor.choose(["sex", "work"])
    assert work.forecast() is first
    visitor.choose(["sex", "work"], epsilon="2")
    second = work.forecast()
    assert second.errors[2][2] < first.errors[2][2]
    visitor.choose(["sex", "work"])
    assert work.forecast().errors == first.errors
    visitor.open()
    visitor.read("sex", "work")
    assert work.forecast().attack == ""


def test_the_price_of_further_tables_has_its_own_page(visitor):
    visitor.open(PEOPLE, "people.csv", ("sexes.csv", b"sex,count\r\nF,40\r\nM,20\r\n"))
    _, text, _ = visitor.read("sex", "work")
    assert "What somebody learns who knows" in text
    assert "If one more table were published exactly" not in text
    status, text = visitor.get("/further")
    assert (status, "If one more table were published exactly" in text) == (200, True)
    assert "the exact counts by work: " in text
    visitor.open()
    assert "[studio.order]" in visitor.get("/further")[1]
    visitor.read("sex", "work")
    assert "No exact table is stated as public." in visitor.get("/further")[1]


def test_values_are_shown_as_tables_name_them(visitor):
    rows = "age,work\r\n" + "".join(f"{at % 90},{['yes', 'no'][at % 2]}\r\n" for at in range(600))
    ages = b"age,count\r\n0-17,120\r\n18-64,300\r\n65+,180\r\n"
    visitor.open(rows.encode(), "people.csv", ("ages.csv", ages))
    _, text, _ = visitor.read("age", "work")
    assert "<td>0-17, 18-64, 65+</td>" in text
    _, text, _ = visitor.choose(["work"])
    assert "<td>0, 18, 65</td>" in text  # a column that is not used has no labels


def test_pages_that_do_not_exist_and_forms_that_cannot_be_read_lead_back(visitor):
    for status, path in ((404, "/nothing"), (404, "/result/x"), (405, "/open")):
        answered, text = visitor.get(path)
        assert (answered, "There is no such page." in text) == (status, True)
        assert 'id="refusal"' in text
    many = "".join(
        f'--x\r\nContent-Disposition: form-data; name="published"; filename="{at}.csv"\r\n\r\na\r\n'
        for at in range(40)
    )
    for body in (many + "--x--\r\n", "no form at all"):
        status, _, content = visitor.ask("POST", "/open", body, "multipart/form-data; boundary=x")
        assert (status, b"What was sent cannot be read: " in content) == (400, True)


def test_a_published_table_stays_public_for_the_columns_that_are_kept(visitor, tmp_path):
    """Without one of its columns the table is still published: its sums over that column bind as before."""
    town = [["north", "south"][number % 2] for number in range(60)]
    rows = [
        ("town", "sex", "work"),
        *((town[k], "FM"[k % 3 > 0], ["yes", "no"][k % 5 < 2]) for k in range(60)),
    ]
    data = "".join(",".join(row) + "\r\n" for row in rows).encode("latin-1")
    table = b"town,sex,count\r\nnorth,F,10\r\nnorth,M,20\r\nsouth,F,10\r\nsouth,M,20\r\n"
    visitor.open(
        data,
        "people.csv",
        ("towns.csv", table),
        ("works.csv", b"work,sex,n\r\nno,F,8\r\nno,M,16\r\nyes,F,12\r\nyes,M,24\r\n"),
    )
    visitor.read("town", "sex", "work")
    for used, facts in (
        (("town", "sex", "work"), {("town", "sex"): [10, 20, 10, 20], ("work", "sex"): [8, 12, 16, 24]}),
        (("town", "work"), {("town",): [30, 30], ("work",): [24, 36]}),
        (("town", "sex"), {("town", "sex"): [10, 20, 10, 20], ("sex",): [20, 40]}),
        (("work",), {(): [60], ("work",): [24, 36]}),
    ):
        assert visitor.choose(used)[0] == 200
        file = visitor.studio.work.file
        stated = {fact.names: list(fact.equals or ()) for fact in file.policy.constraints}
        assert stated == facts
    _, _, content = visitor.ask("GET", "/policy.zip")
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        packed.extractall(tmp_path / "zip")
    assert pg.load(tmp_path / "zip" / "policy.toml").policy == visitor.studio.work.file.policy
    for broken, why in (
        (table[:-12], "no count for some of its cells"),
        (table + b"south,M,1\r\n", "there twice"),
    ):
        visitor.open(data, "people.csv", ("towns.csv", broken))
        visitor.read("town", "sex", "work")
        status, text, _ = visitor.choose(("town", "work"))
        assert (status, why in text) == (400, True)


@pytest.mark.parametrize(
    ("number", "status", "last"),
    [
        (signal.SIGINT, 130, "policygraph: stopped\n"),
        (signal.SIGTERM, 128 + signal.SIGTERM, ""),
    ],
)
def test_the_end_does_not_wait_for_a_long_search(tmp_path, number, status, last):
    """One that never ends stands for it."""
    program = (
        "import threading\n"
        "from policygraph.cli import main\n"
        "from policygraph.studio.work import Work\n"
        "Work.forecast = lambda work: (print('computing', flush=True), threading.Event().wait())\n"
        "main(['studio', '--no-browser'])\n"
    )
    with started(tmp_path, "-c", program) as process:
        connections = []
        try:
            address = process.stdout.readline().strip()
            port, token = address.removeprefix("http://127.0.0.1:").strip("/").split("/")
            connections = [http.client.HTTPConnection("127.0.0.1", int(port), timeout=120) for _ in range(2)]
            connections[0].request("GET", f"/{token}/policy")
            assert process.stdout.readline() == "computing\n"
            connections[1].request("GET", f"/{token}/")  # others are served meanwhile
            assert connections[1].getresponse().status == 200
            process.send_signal(number)
            said = process.communicate(timeout=120)[1]
        finally:
            process.kill()
            for each in connections:
                each.close()
    assert (process.returncode, said) == (status, f"Ctrl-C ends it.\n{last}")
    assert list(tmp_path.glob("policygraph-studio-*")) == []


def test_the_command_knows_the_threads_of_the_studio():
    assert stopping.SEARCH == server.SEARCH
