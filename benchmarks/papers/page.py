"""``docs/explanation/papers.md``: one block for each script between two marks, kept until the script is run again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.papers.registry import PAPERS, Entry, Result, Row

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "papers.md"
FIGURES = ROOT / "docs" / "figures" / "papers"
BEGIN, END = "<!-- papers: begin -->", "<!-- papers: end -->"
HEAD = (
    "| item | quantity | where | published | ours | if they differ |",
    "|---|---|---|---|---|---|",
)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def line(row: Row, entry: Entry, ours: str | None = None) -> str:
    """One row of a table."""
    verdict = row.reason if row.met else f"**differs**: {row.reason}"
    shown = row.ours if ours is None else ours
    code = row.code or entry.script.code
    parts = (row.place, row.what, f"`{code}`", row.published, shown, verdict)
    return "| " + " | ".join(map(cell, parts)) + " |"


def block(entry: Entry, result: Result) -> str:
    """What stands between the marks of a script."""
    parts = []
    if result.note:
        parts.append(f"Setting: {result.note}")
    parts.append("\n".join([*HEAD, *(line(row, entry) for row in result.rows)]))
    if entry.plot is not None:
        parts.append(f"![{entry.summary}](../figures/papers/{entry.name}.png)")
    return "\n\n".join(parts)


def blocks(text: str) -> dict[str, str]:
    """The blocks of a page, by the name of the script."""
    found = re.findall(r"<!-- ([\w.-]+): begin -->\n\n(.*?)\n\n<!-- \1: end -->", text.split(BEGIN)[-1], re.S)
    return dict(found)


def body(entries: list[Entry], made: Mapping[str, str]) -> str:
    """All sections in order; scripts without a block are left out."""
    parts = []
    for key, (title, citation) in PAPERS.items():
        sections = [entry for entry in entries if entry.script.paper == key and entry.name in made]
        if not sections:
            continue
        parts += [f"## {title}", citation]
        for entry in sections:
            parts += [
                f"### {entry.script.title}",
                f"{entry.summary} Command: `python -m benchmarks.papers {entry.name}`",
                f"<!-- {entry.name}: begin -->",
                made[entry.name],
                f"<!-- {entry.name}: end -->",
            ]
    return "\n\n".join(parts)


def write(entries: list[Entry], made: Mapping[str, str]) -> None:
    """Replace the blocks of these scripts and leave the others as they are."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    kept = {**blocks(text), **made}
    PAGE.write_text(f"{before}{BEGIN}\n\n{body(entries, kept)}\n\n{END}{after}", encoding="utf-8")
