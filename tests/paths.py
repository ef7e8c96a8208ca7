"""Where the project lies, and where its benchmark data lie if they are there."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("POLICYGRAPH_DATA", ROOT.parent / "shared" / "data"))
