"""``docs/reference/errors.md`` lists every error code that the source can raise, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import policygraph
from policygraph import errors
from policygraph.curator.ledger import server, store
from tests.paths import ROOT

PACKAGE = Path(policygraph.__file__).parent
DOCUMENT = ROOT / "docs" / "reference" / "errors.md"
FORM = re.compile(r"[a-z0-9]+(\.[a-z0-9]+(-[a-z0-9]+)*)")

# Codes that are put together in the source, and what they can be. New ones are not welcome: write the code out.
COMPOSED = {
    ("curator/ledger/store.py", "f'ledger.{case}'"): {f"ledger.{case}" for case, _ in store._ADVICE.values()}
    | {"ledger.failed"},
    ("curator/ledger/server.py", "f'ledger.{case}'"): {f"ledger.{case}" for _, case, _ in server._ADVICE}
    | {"ledger.failed"},
    ("linalg.py", "code or 'moves.matrix-shape'"): {"moves.matrix-shape"},
    ("linalg.py", "code or 'moves.matrix-entry'"): {"moves.matrix-entry"},
    ("moves/blowfish/problem.py", "f'blowfish.{name}'"): {"blowfish.matrix", "blowfish.query"},
}


def codes(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Every code given to a call, and whether it is written out; the two sides of a choice are both."""
    for call in ast.walk(tree):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg != "code":
                continue
            choices: list[ast.expr] = [keyword.value]
            while choices:
                value = choices.pop()
                if isinstance(value, ast.IfExp):
                    choices += [value.body, value.orelse]
                elif not isinstance(value, ast.Constant):
                    yield ast.unparse(value), False
                elif isinstance(value.value, str):  # numbers are exit statuses
                    yield value.value, True


def source() -> dict[str, set[str]]:
    """Where each code is raised."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if where == "errors.py":
            continue
        for code, whole in codes(ast.parse(path.read_text(encoding="utf-8"))):
            for one in {code} if whole else COMPOSED.get((where, code), {f"{code} is not written out"}):
                found.setdefault(one, set()).add(where)
    return found


def documented() -> list[tuple[str, str, str]]:
    rows = re.findall(r"^\| `([^`]+)` \|(.*)\|(.*)\|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    return [(code, when.strip(), advice.strip()) for code, when, advice in rows if not code.endswith("Error")]


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    raised, listed = source(), {code for code, _, _ in documented()}
    missing = {code: sorted(where) for code, where in raised.items() if code not in listed}
    assert missing == {}, "codes that docs/reference/errors.md does not list"
    assert listed - raised.keys() == set(), "codes that nothing raises"


def test_composed_codes_are_still_there() -> None:
    for where, text in COMPOSED:
        tree = ast.parse((PACKAGE / where).read_text(encoding="utf-8"))
        assert (text, False) in set(codes(tree)), f"{where}: {text} is gone, drop it here"


def test_codes_have_the_form_room_case() -> None:
    assert [code for code in source() if not FORM.fullmatch(code)] == []


def test_each_code_is_listed_once_with_its_case_and_its_advice() -> None:
    rows = documented()
    names = [code for code, _, _ in rows]
    assert len(set(names)) == len(names)
    assert [code for code, when, advice in rows if len(when) < 10 or len(advice) < 5] == []


def test_classes_and_exit_statuses_are_those_of_the_package() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `(\w+Error)` \|.*\| (\d) \|$", text, re.MULTILINE))
    real = {
        name: str(getattr(errors, name).exit_status)
        for name in errors.__all__
        if name.endswith("Error") and name != "PolicyGraphError"
    }
    assert shown == real


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("raise InputError('x', code='a.b')", [("a.b", True)]),
        ("raise InputError('x', code='a.b' if y else 'a.c')", [("a.c", True), ("a.b", True)]),
        ("raise InputError('x', code=f'a.{y}')", [("f'a.{y}'", False)]),
        ("raise Exit(code=2)", []),
        ("raise InputError('x', value=1)", []),
    ],
)
def test_the_walk_would_see_a_code(line: str, expected: list[tuple[str, bool]]) -> None:
    assert list(codes(ast.parse(line))) == expected
