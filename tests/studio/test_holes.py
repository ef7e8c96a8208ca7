"""What a security review of the studio found: each was a way to publish, to keep or to show what nobody meant to."""

from __future__ import annotations

import html
import http.client
import re
import threading
from urllib.parse import urlencode

import pytest

import policygraph as pg
from policygraph.studio import Studio

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
