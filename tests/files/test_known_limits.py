"""The sizes in ``docs/explanation/known-limits.md`` are those of the code."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from tests.paths import ROOT

TEXT = (ROOT / "docs" / "explanation" / "known-limits.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| .+ \| ([\d,]+) \| `([\w.]+)\.(\w+)` \|$", TEXT, re.MULTILINE)


def test_the_table_is_read() -> None:
    assert len(ROWS) == TEXT.count("| `policygraph.") >= 15


@pytest.mark.parametrize(("shown", "module", "name"), ROWS, ids=[f"{m}.{n}" for _, m, n in ROWS])
def test_limit(shown: str, module: str, name: str) -> None:
    assert int(shown.replace(",", "")) == getattr(import_module(module), name)
