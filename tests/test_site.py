"""The reference of the site has every public name; ``nox -s site`` builds it and checks links."""

from __future__ import annotations

import importlib.util
import inspect
import re
from types import ModuleType

import policygraph as pg
from tests.paths import ROOT


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "site" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = load()


def test_every_name_of_the_package_has_its_place() -> None:
    grouped = [name for names in PAGES.GROUPS.values() for name in names]
    shown = {name for name in pg.__all__ if not isinstance(getattr(pg, name), ModuleType)} - PAGES.PLAIN
    assert sorted(grouped) == sorted(shown)
    rooms = {name for name in pg.__all__ if isinstance(getattr(pg, name), ModuleType)}
    assert set(PAGES.ROOMS) == rooms


def test_every_public_name_is_asked_of_autodoc_or_points_to_one_that_is() -> None:
    known = PAGES.objects()
    assert len(known) > 150
    for (module, name), value in known.items():
        text = PAGES.directive(module, name, known)
        assert name in text
        if "Another name of" in text:
            first = next(key for key, each in known.items() if each is value)
            assert "auto" in PAGES.directive(*first, known)


def test_every_public_class_and_function_has_a_docstring() -> None:
    bare = [
        f"{module}.{name}"
        for (module, name), value in PAGES.objects().items()
        if (inspect.isclass(value) or inspect.isroutine(value)) and not inspect.getdoc(value)
    ]
    assert bare == []


def test_the_side_bar_has_every_page_of_the_index() -> None:
    content = [(ROOT / "docs" / "README.md").read_text(encoding="utf-8")]
    PAGES.add_contents(None, PAGES.ROOT_PAGE, content)
    made = set(content[0].split("```{toctree}", 1)[1].split())
    pages = {
        "/" + path.relative_to(ROOT).with_suffix("").as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if "decisions" not in path.parts and path.name != "README.md"
    }
    assert pages - made == set()


ASKED = (
    ("lomas", 310), ("opendp", 2318), ("dp-wizard", 371), ("dp-wizard", 885), ("smartnoise-core", 356), ("smartnoise-core", 360),
    ("opendp", 2920), ("tumult-analytics", 67), ("opendp", 2913), ("smartnoise-sdk", 512), ("tumult-analytics", 62),
)  # fmt: skip
"""What users of other libraries ask, as threads of these projects."""


def test_each_question_of_others_is_answered_with_an_example() -> None:
    text = (ROOT / "docs" / "explanation" / "questions.md").read_text(encoding="utf-8")
    sections = [f"## {each}" for each in text.split("\n## ")[1:]]
    answered = set()
    for section in sections:
        project = ""
        for found in re.finditer(r"([a-z-]+)? ?#(\d+)", section.split(")", 1)[0]):
            project = found[1] or project
            answered.add((project, int(found[2])))
        assert section.partition("\n")[0].endswith("?")
        assert ">>> " in section
    assert answered == set(ASKED)
