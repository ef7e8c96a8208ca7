"""The studio from the first click to the downloaded report, in a real browser; and everything that must not reach it."""

from __future__ import annotations

import csv
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading

import pytest

import policygraph as pg
from policygraph.studio import Studio, server
from policygraph.studio.work import safe_name
from tests.report import browser

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("studio")
    rng = random.Random(5)
    people = [
        (number, rng.choice(["harbour", "hills"]), rng.randint(0, 99), rng.choice(["yes", "no"]))
        for number in range(400)
    ]
    with open(made / "people.csv", "w", newline="") as file:
        csv.writer(file).writerows([("person_id", "district", "age", "work"), *people])
    with open(made / "districts.csv", "w", newline="") as file:
        counted = [(name, sum(each[1] == name for each in people)) for name in ("harbour", "hills")]
        csv.writer(file).writerows([("district", "count"), *counted])
    return made


@pytest.fixture(scope="module")
def studio(folder):
    made = Studio(folder / "budget.db")
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert not made.work._kept.path.exists()


def ask(studio, method, path, body=None, **headers):
    """One request, as anybody on this machine could send it."""
    connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=120)
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, body=body, headers=given)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer, text


def upload(studio, content, name="people.csv"):
    body = (
        f'--x\r\nContent-Disposition: form-data; name="data"; filename="{name}"\r\n\r\n'.encode()
        + content
        + b"\r\n--x--\r\n"
    )
    return ask(studio, "POST", f"{studio.base}/open", body, Content_Type="multipart/form-data; boundary=x")


# Who is kept out.


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/wrong-token/", {}),
        ("/policy", {}),
        ("{base}", {"Host": "evil.example"}),
        ("{base}/", {"Host": "evil.example:{port}"}),
        ("{base}/", {"Host": "127.0.0.1"}),
        ("{base}/", {"Origin": "http://evil.example"}),
        ("{base}/", {"Origin": "null"}),
        ("{base}x/", {}),
        ("/%2e%2e/{token}/", {}),
    ],
)
def test_others_are_refused(studio, path, headers):
    fill = {"base": studio.base, "token": studio.token, "port": studio.port}
    answer, text = ask(
        studio,
        "GET",
        path.format(**fill),
        **{key: value.format(**fill) for key, value in headers.items()},
    )
    assert answer.status == 403
    assert "open the address that the command printed" in text
    assert studio.token not in text


def test_a_form_of_another_page_is_refused(studio):
    for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}):
        answer, text = ask(studio, "POST", f"{studio.base}/confirm", "question=x", **headers)
        assert (answer.status, "another page" in text) == (403, True)


def test_it_listens_on_the_loopback_address_only(studio):
    assert studio._socket.getsockname()[0] == "127.0.0.1"
    assert len(studio.token) >= 43


@pytest.mark.parametrize(
    "path",
    [
        "/result/x/report.html",
        "/result/x/../../budget.db",
        "/result/..%2f..%2f/etc/passwd",
        "/studio.py",
        "/../studio.css",
        "/nothing",
    ],
)
def test_path_tricks_find_nothing(studio, path):
    answer, text = ask(studio, "GET", studio.base + path)
    assert answer.status in (400, 403, 404)
    assert "root:" not in text


@pytest.mark.parametrize(
    "name", ["../../../x.csv", "..\\x.csv", "/etc/x.csv", "policy.toml", ".x.csv", "a" * 300]
)
def test_names_of_files_lead_nowhere_else(studio, name):
    answer, _ = upload(studio, b"sex\nF\nM\n", name)
    assert answer.status in (303, 400)
    kept = studio.work._kept.path
    assert all(path.resolve().is_relative_to(kept) for path in kept.rglob("*"))
    assert len(safe_name(name)) <= 100
    assert "/" not in safe_name(name)


def test_pages_allow_nothing_from_elsewhere(studio):
    answer, _ = ask(studio, "GET", f"{studio.base}/")
    assert answer.status == 200
    rules = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in rules
    assert "unsafe" not in rules
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_gigabyte_is_refused_with_a_sentence_while_it_streams(studio, monkeypatch):
    monkeypatch.setattr(server, "LARGEST", 2**20)  # the rule is the same at every size
    for size in (2**20 + 1, 9 * 2**20):
        answer, text = upload(studio, b"0" * size)
        assert answer.status == 413
        assert "which a page does not take" in text
    assert upload(studio, b"sex\nF\nM\n")[0].status == 303


@pytest.mark.parametrize(
    ("content", "name", "code"),
    [
        (b"", "people.csv", "data."),
        (b"\x00\x01\x02", "people.parquet", "data."),
        (b"hello", "people.exe", "data."),
        (b"not a workbook", "people.xlsx", "excel."),
    ],
)
def test_wrong_files_get_the_sentence_of_the_command(studio, tmp_path, content, name, code):
    answer, text = upload(studio, content, name)
    (tmp_path / name).write_bytes(content)
    said = subprocess.run(
        [sys.executable, "-m", "policygraph", "init", name, "--yes"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert (answer.status, said.returncode) == (400, 2), said.stderr + text
    import html

    sentence = said.stderr.strip().splitlines()[-1].removeprefix("policygraph: ").replace(f"{tmp_path}/", "")
    assert str(studio.work._kept.path) not in text
    assert sentence in html.unescape(text)


def test_steps_out_of_order_are_refused(folder):
    made = Studio(folder / "other.db")
    thread = threading.Thread(target=made.run)
    thread.start()
    try:
        for path in ("/policy", "/question/x", "/done/x"):
            answer, text = ask(made, "GET", made.base + path)
            assert (answer.status, "[studio." in text) == (400, True), text
        answer, text = ask(
            made,
            "POST",
            f"{made.base}/confirm",
            "question=x",
            Content_Type="application/x-www-form-urlencoded",
        )
        assert (answer.status, "[studio.question]" in text) == (400, True)
        assert not (folder / "other.db").exists()
        with pytest.raises(pg.InputError, match="port"):
            Studio(folder / "other.db", made.port)
    finally:
        made.stop()
        thread.join(30)


# Clicks.


@pytest.fixture(scope="module")
def driver(folder):
    pytest.importorskip("selenium")
    with browser.chromium(folder) as made:
        yield made


def wait(driver, selector, seconds=browser.PATIENCE):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, seconds).until(
        lambda each: next(iter(each.find_elements("css selector", selector)), None)
    )


def until(driver, said):
    """Wait until something holds of a page that may be replaced meanwhile."""
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    gone = (NoSuchElementException, StaleElementReferenceException)
    return WebDriverWait(driver, browser.PATIENCE, ignored_exceptions=gone).until(said)


def click(driver, selector, then):
    wait(driver, selector).click()
    return wait(driver, then)


def tick(driver):
    """Confirm the one table that is published exactly."""
    wait(driver, "input[name=exact][value='work (2 counts)']").click()


def test_from_the_first_click_to_the_downloaded_report(driver, studio, folder):
    source = browser.axe(folder)

    def good():
        assert browser.grave(driver, source) == []

    driver.get(studio.address)
    good()
    wait(driver, "#data").send_keys(str(folder / "people.csv"))
    driver.find_element("id", "tables").send_keys(str(folder / "districts.csv"))
    click(driver, "#open", "#read")
    good()
    assert "people.csv" not in [path.name for path in folder.glob("*.db")]
    click(driver, "#read", "#sensitivity")
    good()
    assert "districts.csv" in driver.find_element("css selector", "table").text
    first = driver.find_element("id", "sensitivity").text
    assert "exact exact" in driver.find_element("id", "errors").text  # the districts are public

    # What is ticked takes effect at once: a second public table asks for more noise.
    wait(driver, "input[name=release][value=whole]").click()
    until(driver, lambda d: d.find_element("id", "sensitivity").text != first)
    second = driver.find_element("id", "sensitivity").text
    until(driver, lambda d: d.switch_to.active_element.get_attribute("value") == "whole")  # where it was
    driver.find_element("css selector", "input[name=public][value=work]").click()
    until(driver, lambda d: d.find_element("id", "sensitivity").text != second)
    assert "really loses epsilon" in driver.find_element("id", "attack").text
    good()
    for theme in ("light", "dark"):
        browser.colours(driver, theme)
        for width in (1400, 420):
            browser.size(driver, width)
            good()
            assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
            if place := os.environ.get("POLICYGRAPH_PICTURES"):
                driver.save_screenshot(f"{place}/studio-{theme}-{width}.png")
    browser.size(driver, 1400)

    # What computes says so, until another page comes.
    driver.execute_script(
        "const form = document.getElementById('policy');"
        "form.addEventListener('submit', event => event.preventDefault(), {once: true}); form.requestSubmit();"
    )
    until(driver, lambda d: "Computing" in d.find_element("id", "working").text)
    good()
    driver.execute_script("dispatchEvent(new Event('pageshow'))")
    assert driver.find_element("id", "working").text == ""
    click(driver, "#further", "h2")
    assert "If one more table were published" in driver.find_element("id", "attack").text
    good()
    driver.back()
    wait(driver, "#sensitivity")

    # The policy file and the program give the same certificate.
    toml = driver.find_element("id", "toml").get_attribute("textContent")
    program = driver.find_element("id", "python").get_attribute("textContent")
    place = folder / "elsewhere"
    place.mkdir()
    (place / "policy.toml").write_text(toml, encoding="utf-8")
    assert repr(str(folder / "budget.db")) in program
    program = program.replace(str(folder / "budget.db"), "budget.db")  # a ledger of its own
    for name in ("people.csv", "districts.csv"):
        (place / name).write_bytes((folder / name).read_bytes())
    shown = driver.find_element("id", "sensitivity").text
    ran = subprocess.run([sys.executable, "-c", program], cwd=place, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"sensitivity = {shown.split()[-1]} (L1")

    # Nothing is charged before the second confirmation.
    ledger = pg.Ledger(folder / "budget.db")
    click(driver, "#ask", "#confirm")
    good()
    assert ledger.datasets() == []
    question = driver.current_url
    driver.execute_script("window.open(arguments[0])", question)
    tick(driver)
    click(driver, "#confirm", "#report")
    good()
    assert "Released, and charged to people" in driver.find_element("id", "said").text
    assert str(ledger.spent("people")) == "epsilon = 1"

    # A second tab with the same question, and one that asks the same again, spend nothing.
    here, other = driver.window_handles
    driver.switch_to.window(other)
    tick(driver)
    click(driver, "#confirm", "#report")
    driver.get(f"{studio.address}policy")
    click(driver, "#ask", "#confirm")
    tick(driver)
    click(driver, "#confirm", "#report")
    assert "nothing was spent" in driver.find_element("id", "said").text
    assert str(ledger.spent("people")) == "epsilon = 1"
    driver.close()
    driver.switch_to.window(here)

    for name in ("report.html", "release.csv", "certificate.json"):
        driver.find_element("css selector", f"a[download='{name}']").click()
        assert browser.downloaded(folder, name).stat().st_size > 100
    certificate = pg.Sensitivity.from_dict(
        __import__("json").loads((folder / "certificate.json").read_text())
    )
    theirs = pg.Release.from_parquet((place / "out" / "release.parquet").read_bytes()).certificate
    assert certificate.to_dict() == theirs.to_dict()
    page = driver.find_element("id", "report").get_attribute("href")
    driver.get(page)
    assert "district" in wait(driver, "h1").text
    assert [each for each in driver.get_log("browser") if each["level"] == "SEVERE"] == []


def test_a_unit_that_somebody_wrote_into_the_policy_file_is_what_is_hidden(studio, folder):
    """The page proposes none; whoever adds one to the file gets its noise, on the page and in the release, and not that of single records."""
    work = studio.work
    data = b"who,district,work\n" + b"".join(
        f"p{at % 9},{'ab'[at % 2]},{at % 3}\n".encode() for at in range(90)
    )
    place = work.fresh()
    (place / "people.csv").write_bytes(data)
    work.open(place, "people.csv", [])
    work.read(["district", "work"])
    file = work.place / "policy.toml"
    before = work.forecast().errors
    file.write_text(file.read_text() + '\n[unit]\ncolumn = "who"\nat_most = 4\n', encoding="utf-8")
    after = work.forecast().errors
    assert sum(each[2] for each in after) > 3 * sum(each[2] for each in before) > 0
    name = work.ask("units", work.stamp)
    work.release(name, [str(each) for each in work.question(name).exact])
    record = json.loads((work.results(name) / "release.json").read_text())
    assert record["unit"]["at_most"] == 4
    assert record["certificate"]["at_most"] == 4


def test_two_confirmations_at_once_spend_once(studio, folder):
    studio.work.open(_copy(studio, folder), "people.csv", [])
    studio.work.read(["district", "work"])
    names = [studio.work.ask("crowd", studio.work.stamp) for _ in range(3)]
    said = []
    threads = [
        threading.Thread(target=lambda name=name: said.append(studio.work.release(name)))
        for name in names
        for _ in range(2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(said) == 6
    assert str(pg.Ledger(folder / "budget.db").spent("crowd")) == "epsilon = 1"


def test_a_page_that_shows_something_else_is_refused(studio, folder):
    studio.work.open(_copy(studio, folder), "people.csv", [])
    studio.work.read(["district", "work"])
    old = studio.work.stamp
    choice = studio.work.choice
    studio.work.choose(type(choice)(choice.used, ("work",), choice.whole, "2"))
    with pytest.raises(pg.InputError, match="another tab"):
        studio.work.ask("people", old)
    with pytest.raises(pg.InputError, match="expected one, under which"):
        studio.work.ask(" ", studio.work.stamp)


def _copy(studio, folder):
    place = studio.work.fresh()
    # Other people than those above: the ledger knows data by their content, and refuses two accounts for the same.
    (place / "people.csv").write_bytes((folder / "people.csv").read_bytes() + b"400,hills,1,no\r\n")
    return place


def test_the_command_prints_its_address_and_cleans_up(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "policygraph", "studio", "--no-browser"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        port, token = address.removeprefix("http://127.0.0.1:").strip("/").split("/")
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120)
        connection.request("GET", f"/{token}/")
        with connection.getresponse() as answer:
            assert answer.status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        assert "Traceback" not in process.stderr.read()
    assert list(tmp_path.glob("policygraph-studio-*")) == []
