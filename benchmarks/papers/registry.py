"""What a script of this folder is, what it returns, and the list of all of them."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

from policygraph.ties import figures

PAPERS: Mapping[str, tuple[str, str]] = {
    "exact-cuboids": (
        "Exact cuboids in a noisy data cube",
        "*Background Knowledge in Differential Privacy: Exact Cuboids in a Noisy Data Cube*, draft. Its section 7, Experiments, is empty; "
        "the experiments here are ours.",
    ),
    "data-cubes-2011": (
        "Differentially private data cubes",
        "B. Ding, M. Winslett, J. Han and Z. Li, *Differentially Private Data Cubes: Optimizing Noise Sources and Consistency*, SIGMOD 2011.",
    ),
    "blowfish-data-dependent": (
        "Data-dependent Blowfish",
        "A. Anuarbek, *Data-Dependent Blowfish Private Algorithm for Histogram Queries*.",
    ),
    "accuracy-consistency-2007": (
        "Privacy, accuracy, and consistency too",
        "B. Barak, K. Chaudhuri, C. Dwork, S. Kale, F. McSherry and K. Talwar, *Privacy, Accuracy, and Consistency Too: A Holistic "
        "Solution to Contingency Table Release*, PODS 2007.",
    ),
    "no-free-lunch-2011": (
        "No free lunch in data privacy",
        "D. Kifer and A. Machanavajjhala, *No Free Lunch in Data Privacy*, SIGMOD 2011.",
    ),
    "blowfish-2014": (
        "Blowfish privacy",
        "X. He, A. Machanavajjhala and B. Ding, *Blowfish Privacy: Tuning Privacy-Utility Trade-offs using Policies*, SIGMOD 2014.",
    ),
    "policy-aware-2015": (
        "Policy-aware differentially private algorithms",
        "S. Haney, A. Machanavajjhala and B. Ding, *Design of Policy-Aware Differentially Private Algorithms*, VLDB 2015.",
    ),
}
"""Short title and citation of each paper, in the order of the page."""


@dataclass(frozen=True)
class Script:
    """What a module of this folder says of itself."""

    paper: str
    title: str
    code: str
    order: int
    needs_data: bool = False
    """Whether the full setting reads sets of ``POLICYGRAPH_DATA``; the page is then written only where they are."""


@dataclass(frozen=True)
class Row:
    """One published statement and what the library gives for it."""

    place: str
    what: str
    published: str
    ours: str
    holds: bool | None = None
    """Whether the published statement is met; by default, whether both are equal, or nothing is published."""
    reason: str = ""
    code: str = ""
    """Where it lives, if not where the script says."""
    fixed: bool = True
    """Whether ``ours`` is the same in both settings and on every machine."""

    @property
    def met(self) -> bool:
        if self.holds is not None:
            return bool(self.holds)
        return not self.published or self.published == self.ours


@dataclass(frozen=True)
class Result:
    """What a run gives: rows for the page, values for the picture, the setting in one line."""

    rows: list[Row]
    values: dict[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """A script of the folder with its functions."""

    name: str
    script: Script
    run: Callable[[bool], Result]
    plot: Callable[[dict[str, Any]], Any] | None
    summary: str


FRAMEWORK = {"__main__", "registry", "page", "data"}


def entries() -> list[Entry]:
    """All scripts, in the order of the page."""
    found = [
        entry(importlib.import_module(f"benchmarks.papers.{module.name}"), module.name)
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if module.name not in FRAMEWORK and not module.name.startswith("_")
    ]
    papers = list(PAPERS)
    return sorted(found, key=lambda e: (papers.index(e.script.paper), e.script.order, e.name))


def entry(module: ModuleType, name: str) -> Entry:
    """The entry of one module."""
    summary = (module.__doc__ or "").strip().splitlines()[0]
    return Entry(name.replace("_", "-"), module.SCRIPT, module.run, getattr(module, "plot", None), summary)


def show(value: float | Fraction | int, digits: int = 3) -> str:
    """A number as the page prints it: whole numbers in full, others with some significant digits."""
    if isinstance(value, Fraction) and value.denominator != 1 and value.denominator <= 1000:
        return f"{value.numerator}/{value.denominator}"
    # What agrees to nine digits is printed alike: the last digits of linear algebra are not the same everywhere.
    number = figures(float(value))
    if math.isinf(number) or math.isnan(number):
        return str(number)
    # The last bits of a float differ from machine to machine: what lies half-way between two shown numbers must not depend on them.
    number = float(f"{number:.12g}")
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    if abs(number) >= 1e7 or abs(number) < 1e-4:
        return f"{number:.{digits - 1}e}"
    shown = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{shown}f}"


def span(values: Any, digits: int = 3) -> str:
    """The least and the largest of some numbers."""
    low, high = min(values), max(values)
    return show(low, digits) if low == high else f"{show(low, digits)} to {show(high, digits)}"
