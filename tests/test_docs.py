"""The documents hold together: links lead somewhere, named modules exist, and tutorials run as they are written."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.paths import ROOT

PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
    if page.is_file()
)
MAPS = [
    page
    for page in (ROOT / "docs" / "architecture.md", ROOT / "docs" / "explanation" / "trusted-code.md")
    if page.exists()
]
ROOMS = sorted(path.name for path in (ROOT / "policygraph").iterdir() if (path / "__init__.py").exists())
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))

FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def links(page: Path) -> list[str]:
    """The targets of all links of a page, without code."""
    return LINK.findall(INLINE.sub("", FENCED.sub("", page.read_text(encoding="utf-8"))))


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        text = LINK.sub(lambda m: m.group(0).split("]")[0].lstrip("!["), heading.strip().lower())
        anchor = re.sub(r"[^\w\- ]", "", text.replace("`", "")).replace(" ", "-")
        again = 0
        while (numbered := f"{anchor}-{again}" if again else anchor) in found:
            again += 1
        found.add(numbered)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


# A record of the code as it was when the mutants were tried.
RECORDS = {"docs/reference/mutants.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if name(page) not in RECORDS], ids=name)
def test_files_named_in_code_marks_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    saved = set(re.findall(r"[Ss]ave this as `([\w.-]+)`", text))
    named = re.findall(r"`([\w./-]+)`", FENCED.sub("", text))
    files = [
        path
        for path in named
        if path.endswith(".py")
        or path.split("/")[0] in ("docs", "examples", "policies", "benchmarks", "tests", *ROOMS)
    ]
    assert [path for path in files if path not in saved and not exists(path)] == []


def exists(path: str) -> bool:
    """Whether the project, or the package, has this file or folder; a single word is no path."""
    if "/" not in path and not path.endswith(".py"):
        return True
    return any((base / path).exists() for base in (ROOT, ROOT / "policygraph"))


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    reached = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    decisions = ROOT / "docs" / "explanation" / "decisions" / "README.md"
    reached |= {(decisions.parent / link.partition("#")[0]).resolve() for link in links(decisions)}
    pages = {page.resolve() for page in (ROOT / "docs").rglob("*.md")} - {index.resolve()}
    assert sorted(map(name, pages - reached)) == []


def modules(text: str) -> Iterator[tuple[str, bool]]:
    """Every path and dotted name of the package that a page names, and whether it exists."""
    for path in re.findall(r"policygraph/[\w/]+(?:\.py|/)?", text):
        yield path, (ROOT / path).exists()
    for dotted in re.findall(r"\bpolicygraph(?:\.\w+)+", text):
        yield dotted, importable(dotted)


def importable(dotted: str) -> bool:
    """Whether the name is a module, or something in a module."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            spec = find_spec(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        if spec is not None:
            value: object = __import__(".".join(parts[:length]), fromlist=["_"])
            for part in parts[length:]:
                if not hasattr(value, part):
                    return False
                value = getattr(value, part)
            return True
    return False


@pytest.mark.parametrize("page", MAPS, ids=name)
def test_modules_named_on_the_maps_exist(page: Path) -> None:
    named = dict(modules(page.read_text(encoding="utf-8")))
    assert named
    assert [one for one, there in named.items() if not there] == []


def test_the_walk_over_names_would_see_a_missing_one() -> None:
    assert dict(
        modules("`policygraph/model/`, policygraph/modle/, policygraph.model.policy, policygraph.x.y")
    ) == {
        "policygraph/model/": True,
        "policygraph/modle/": False,
        "policygraph.model.policy": True,
        "policygraph.x.y": False,
    }


# Tutorials: "Save this as `name`:" before a block writes it, ``sh`` blocks are run, a ``text`` block is what they print.


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    blocks = re.finditer(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    text = page.read_text(encoding="utf-8")
    for block in blocks:
        before = text[: block.start()].rstrip().splitlines()[-1]
        saved = re.search(r"[Ss]ave this as `([\w.-]+)`:$", before)
        if saved:
            yield "save", saved.group(1), block.group(2)
        elif block.group(1) in ("sh", "text"):
            yield block.group(1), "", block.group(2)


@pytest.mark.parametrize("page", TUTORIALS, ids=name)
def test_tutorial_runs_as_written(page: Path, tmp_path: Path) -> None:
    place, bin_ = tmp_path / "work", tmp_path / "bin"
    place.mkdir()
    bin_.mkdir()
    command = "from policygraph.cli import main; main()"
    for tool, arguments in (("python", ""), ("policygraph", f"-c '{command}' ")):
        (bin_ / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
        (bin_ / tool).chmod(0o755)
    environment = dict(os.environ) | {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
        "COLUMNS": "200",
    }
    check = doctest.OutputChecker().check_output
    printed, ran, compared = "", 0, 0
    for kind, file, text in steps(page):
        if kind == "save":
            (place / file).write_text(text, encoding="utf-8")
        elif kind == "sh":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=place,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            printed, ran = done.stdout, ran + 1
            assert done.returncode == 0, f"{text}\n{printed}"
        else:
            compared += 1
            assert check(text, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), (
                f"expected:\n{text}\nprinted:\n{printed}"
            )
    assert ran >= 5
    assert compared >= 5


# Commands: every ``policygraph ...`` line of a document uses a command and options that exist.


def commands(page: Path) -> list[list[str]]:
    lines = "\n".join(FENCED.findall(page.read_text(encoding="utf-8"))).splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("policygraph ")]


COMMANDS = [(page, words) for page in PAGES for words in commands(page)]


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=[f"{name(page)}: {' '.join(words[1:4])}" for page, words in COMMANDS]
)
def test_commands_and_their_options_exist(page: Path, words: list[str]) -> None:
    import typer

    from policygraph.cli.app import app

    command, rest = typer.main.get_command(app), words[1:]
    # Options of the application, such as --log, may stand anywhere.
    everywhere = {option for parameter in command.params for option in parameter.opts}
    while hasattr(command, "commands"):
        assert rest[0] in command.commands
        command, rest = command.commands[rest[0]], rest[1:]
    known = everywhere | {option for parameter in command.params for option in parameter.opts}
    assert [word for word in rest if word.startswith("-") and word not in known] == []
