"""Pages in a real browser: sorted, searched, downloaded, printed, with mouse and keyboard, in both themes, wide and narrow; and what axe-core says."""

from __future__ import annotations

import base64
import csv

import numpy as np
import pytest

import policygraph as pg
from policygraph.report.tables import text_of
from tests.report import browser, releases

pytest.importorskip("selenium")

NAMES = ("census", "town", "hostile", "network", "grid", "line", "ranges")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def driver(folder):
    with browser.chromium(folder) as made:
        yield made


@pytest.fixture(scope="module")
def opened(folder, driver):
    made = {}

    def open_page(name):
        if name not in made:
            made[name] = releases.ALL[name]()
            pg.report(made[name], folder / f"{name}.html")
        driver.get((folder / f"{name}.html").as_uri())
        return made[name]

    return open_page


@pytest.fixture
def clean(driver):
    """No page may complain, or be stopped from doing what it should not try."""
    driver.get_log("browser")
    yield
    assert driver.get_log("browser") == []


def texts(driver, selector):
    return [each.text for each in driver.find_elements("css selector", selector)]


def wait(driver, until):
    """What a page does upon an event, it does some time after the command that caused it is answered."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, browser.PATIENCE).until(until)


def open_table(details):
    """Open a table; a browser says that it is open, upon which the page draws it, some time after the click."""
    details.find_element("css selector", "summary").click()
    wait(details, lambda each: each.get_attribute("data-drawn"))


def numbers(driver, selector):
    return [float(text.replace(",", "").replace("−", "-")) for text in texts(driver, selector)]


@pytest.mark.usefixtures("clean")
def test_tables_are_sorted_searched_and_downloaded(driver, opened, folder):
    release = opened("census")
    [table] = release.tables
    rows = "#table-0 tbody tr"
    assert len(texts(driver, rows)) == len(table.values)
    count = f"{rows} td:nth-child(4)"
    # The truth is within the range that is shown as often as the page says: no range is rounded down.
    for text, within in zip(
        texts(driver, f"{rows} td:nth-child(5)"), np.broadcast_to(table.within_95, 12), strict=True
    ):
        assert within <= float(text.removeprefix("± ")) < 1.1 * within + 1e-9
    head = driver.find_element("css selector", "#table-0 th:nth-child(4)")
    for order, reverse in (("descending", True), ("ascending", False)):
        head.find_element("css selector", "button").click()
        assert head.get_attribute("aria-sort") == order
        assert numbers(driver, count) == sorted(table.values.tolist(), reverse=reverse)
    driver.find_element("id", "search-0").send_keys("sex f 65+")
    assert len(texts(driver, rows)) == 2
    assert "2 of 12 rows" in texts(driver, "#table-0 .tools")[0]
    driver.find_element("css selector", "#table-0 .download").click()
    file = browser.downloaded(folder, "sex-age-work.csv")
    lines = file.read_text(encoding="utf-8-sig").splitlines()
    assert lines[0] == "sex,age,work,count,within_95"
    assert [float(line.split(",")[3]) for line in lines[1:]] == table.values.tolist()


@pytest.mark.usefixtures("clean")
def test_no_label_becomes_code(driver, opened):
    release = opened("hostile")
    for details in driver.find_elements("css selector", "details.released:not([open])"):
        open_table(details)
    assert driver.execute_script("return window.hurt") is None
    shown = texts(driver, "#table-1 tbody td:first-child")
    # White space is shown as white space: a line separator among it.
    assert [text.split()[0] for text in shown] == [text_of(x).split()[0] for x in release.tables[1].labels[0]]
    assert driver.find_elements("css selector", "img, main b[onmouseover], main u, #released script") == []
    driver.find_element("css selector", "#graph [data-cell='3']").click()
    assert releases.HOSTILE[0] in driver.find_element("id", "steps").text
    assert driver.execute_script("return window.hurt") is None


@pytest.mark.usefixtures("clean")
def test_odd_labels_are_shown_straight_and_downloaded_as_text(driver, opened, folder):
    opened("odd")
    shown = driver.execute_script("return document.body.innerText")
    assert not set(releases.TURNING) & set(shown)
    assert "a very long label " * 40 not in shown
    # The whole label is told where it is pointed at.
    first = "#table-0 tbody tr:nth-child(11) td:first-child"
    assert driver.find_element("css selector", first).get_attribute("title") == releases.ODD[5]
    before = set(folder.glob("*.csv"))
    driver.find_element("css selector", "#table-0 .download").click()
    with open(browser.downloaded(folder, "*.csv", before), encoding="utf-8-sig", newline="") as file:
        labels = list(dict.fromkeys(row[0] for row in csv.reader(file)))[1:]
    assert labels == [releases.ODD[0], *("'" + label for label in releases.ODD[1:4]), *releases.ODD[4:]]


@pytest.mark.usefixtures("clean")
def test_the_keyboard_is_enough(driver, opened):
    from selenium.webdriver.common.keys import Keys

    def press(*keys):
        for key in keys:
            driver.switch_to.active_element.send_keys(key)

    opened("hostile")
    body = driver.find_element("css selector", "body")
    body.send_keys(Keys.TAB)
    assert driver.switch_to.active_element.get_attribute("class") == "skip"
    driver.execute_script("document.querySelector('.lattice a').focus()")
    press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert driver.switch_to.active_element.get_dom_attribute("href") == "#table-2"
    press(Keys.ENTER)
    wait(driver, lambda _: driver.find_element("id", "table-2").get_attribute("open"))
    assert driver.switch_to.active_element.tag_name == "summary"
    driver.execute_script("document.querySelector('#graph [data-cell=\"0\"]').focus()")
    before = driver.find_element("id", "steps").text
    press(Keys.ARROW_RIGHT)
    assert driver.find_element("id", "steps").text != before
    assert len(driver.find_elements("css selector", "#graph [tabindex='0'][data-cell]")) == 1


@pytest.mark.usefixtures("clean")
def test_themes_and_paper(driver, opened):
    opened("census")
    colour = "return getComputedStyle(document.documentElement).backgroundColor"
    browser.colours(driver, "light")
    light = driver.execute_script(colour)
    browser.colours(driver, "dark")
    dark = driver.execute_script(colour)
    assert light != dark
    button = driver.find_element("id", "theme")
    for said, expected in (("light", light), ("dark", dark), ("automatic", dark)):
        button.click()
        assert button.text == f"Theme: {said}"
        assert driver.execute_script(colour) == expected
    printed = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")
    browser.colours(driver, "light")


@pytest.mark.usefixtures("clean")
def test_a_long_heat_map_fits_on_paper_and_on_a_phone(driver, opened):
    """What does not fit on a page of paper leaves a page empty before it."""
    box = "return document.querySelector('.heat').getBoundingClientRect()"
    browser.size(driver, 390)
    opened("town")
    narrow = driver.execute_script(box)
    assert narrow["right"] <= 390
    assert narrow["height"] > 1000
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    printed = driver.execute_script(box)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.size(driver, 1400)
    # Paper is 279 mm high or more, less margins and the title of the table; there are 96 dots in 25.4 mm.
    assert printed["height"] <= 210 * 96 / 25.4


@pytest.mark.usefixtures("clean")
def test_256_tables_are_found_and_drawn_only_when_they_are_opened(driver, opened):
    release = opened("cube")
    assert len(release.tables) == 256
    assert len(driver.find_elements("css selector", ".lattice a")) == 256
    assert len(driver.find_elements("css selector", "details.released")) == 256
    assert len(driver.find_elements("css selector", ".counts")) <= 6
    driver.find_element("id", "find").send_keys("a1 a7")
    shown = [each for each in driver.find_elements("css selector", "details.released") if each.is_displayed()]
    assert len(shown) == 64
    open_table(shown[-1])
    assert shown[-1].find_elements("css selector", "select")
    assert shown[-1].find_elements("css selector", ".heat")


def test_axe_finds_nothing_serious_in_either_theme_wide_or_narrow(driver, opened, folder):
    source = browser.axe(folder)
    found = {}
    for name in NAMES:
        for scheme, width in (("light", 1400), ("dark", 390)):
            browser.colours(driver, scheme)
            browser.size(driver, width)
            opened(name)
            driver.execute_script(
                "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
            )
            assert driver.execute_script("return document.documentElement.scrollWidth") <= width, (
                name,
                width,
            )
            found[name, scheme] = browser.grave(driver, source)
    browser.colours(driver, "light")
    browser.size(driver, 1400)
    assert {key: each for key, each in found.items() if each} == {}
