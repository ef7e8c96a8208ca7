"""Minimal moves by an independent program, 4ti2-graver, called as a program; absent programs are said, not hidden."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

PROGRAM = shutil.which("4ti2-graver")
MISSING = "the program 4ti2-graver (Debian package 4ti2) is not installed"


def graver(matrix: npt.ArrayLike, timeout: float | None = None) -> npt.NDArray[np.int64] | None:
    """The minimal moves, one of each pair; None when the program did not finish in time."""
    rows = np.asarray(matrix, dtype=np.int64)
    if PROGRAM is None:
        raise RuntimeError(MISSING)
    if rows.shape[0] == 0:
        rows = np.zeros((1, rows.shape[1]), dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem"
        lines = [f"{rows.shape[0]} {rows.shape[1]}", *(" ".join(map(str, row)) for row in rows.tolist())]
        path.with_suffix(".mat").write_text("\n".join(lines) + "\n")
        try:
            subprocess.run([PROGRAM, "-q", str(path)], check=True, timeout=timeout, capture_output=True)
        except subprocess.TimeoutExpired:
            return None
        text = path.with_suffix(".gra").read_text().split()
    count, width = int(text[0]), int(text[1])
    return np.array(text[2:], dtype=np.int64).reshape(count, width)


def signed_set(moves: npt.NDArray[np.int64]) -> set[tuple[int, ...]]:
    """Moves as tuples whose first non-zero entry is positive."""
    return {tuple(x if next(y for y in g if y) > 0 else -x for x in g) for g in moves.tolist()}
