"""Where the project and its benchmark data lie, and what belongs to the library."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("POLICYGRAPH_DATA", ROOT.parent / "shared" / "data"))


def unrecorded() -> dict[str, str]:
    """The environment of a process whose lines other tests run too: coverage does not slow it down."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def in_library(kind: type) -> bool:
    """Whether a class is one of the library's, and not of an example in a docstring."""
    home = sys.modules.get(kind.__module__)
    named = home is None or getattr(home, kind.__name__, None) is kind
    return kind.__module__.startswith("policygraph.") and named
