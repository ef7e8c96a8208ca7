"""Data sets that cannot be shipped, read from ``POLICYGRAPH_DATA``, and generated stand-ins of the same shape.

Layout and sources are described in ``docs/explanation/papers.md``. A script asks for a set by name and says in its note what it
got; the small setting asks for stand-ins only, so that it gives the same numbers everywhere.
"""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

import numpy as np

import policygraph as pg

FOLDER = Path(os.environ.get("POLICYGRAPH_DATA") or Path(__file__).parents[3] / "shared" / "data")
ADULT = {
    "workclass": (1, 9),
    "education": (3, 16),
    "marital": (5, 7),
    "occupation": (6, 15),
    "relationship": (7, 6),
    "race": (8, 5),
    "sex": (9, 2),
    "salary": (14, 2),
}
"""Column in the file and number of values of the eight attributes of Data cubes 2011, section 6."""
LINES = ("INCOME", "MEDCOST", "NETTRACE", "PATENT")
"""The sets of 4,096 cells at hand, of the seven of Haney et al. 2015."""
FILES = ("adult/adult.data", *(f"dpbench1d/{name}.npy" for name in LINES))


def missing() -> list[str]:
    """The files that are not there."""
    return [name for name in FILES if not (FOLDER / name).exists()]


def require() -> None:
    """End with a sentence unless all files are there."""
    if missing():
        raise SystemExit(
            f"The page shows figures of real data, and {', '.join(missing())} is not in {FOLDER}: set POLICYGRAPH_DATA to a folder "
            "with the layout of docs/explanation/papers.md, or leave out --write."
        )


def adult_domain() -> pg.Domain:
    return pg.Domain({name: size for name, (_, size) in ADULT.items()})


def adult(small: bool = False) -> tuple[np.ndarray, str]:
    """Counts of the eight attributes of Adult over ``adult_domain``, and what they are."""
    path = FOLDER / "adult" / "adult.data"
    shape = adult_domain().shape
    if small or not path.exists():
        return stand_in_table(shape, 32_561), "generated stand-in for Adult"
    rows = [
        text.strip().split(", ") for text in path.read_text(encoding="utf-8").splitlines() if text.strip()
    ]
    codes = []
    for column, _ in ADULT.values():
        labels = sorted({row[column] for row in rows})
        place = {label: at for at, label in enumerate(labels)}
        codes.append(np.array([place[row[column]] for row in rows]))
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=prod(shape)), "UCI Adult"


def stand_in_table(shape: tuple[int, ...], records: int) -> np.ndarray:
    """Records with independent attributes, each value half as frequent as the one before."""
    rng = np.random.default_rng(records)
    codes = []
    for size in shape:
        weight = 0.5 ** np.arange(size)
        codes.append(rng.choice(size, records, p=weight / weight.sum()))
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=prod(shape))


def lines(small: bool = False, cells: int = 4096) -> tuple[dict[str, np.ndarray], str]:
    """The one-dimensional histograms by name, and what they are."""
    paths = {name: FOLDER / "dpbench1d" / f"{name}.npy" for name in LINES}
    if small or not all(path.exists() for path in paths.values()):
        return {name: stand_in_line(name, cells) for name in LINES}, "generated stand-ins"
    return {name: np.load(path).astype(np.int64) for name, path in paths.items()}, "the public sets"


def stand_in_line(name: str, cells: int = 4096) -> np.ndarray:
    """A histogram with about the total and the share of empty cells of a public set, in runs of equal rates."""
    total, zeros = {
        "INCOME": (20_787_122, 0.45),
        "MEDCOST": (9_415, 0.75),
        "NETTRACE": (25_714, 0.97),
        "PATENT": (27_948_226, 0.06),
    }[name]
    rng = np.random.default_rng(LINES.index(name) + 1)
    runs = rng.lognormal(0, 2, cells // 16)
    rate = np.repeat(runs, 16)[:cells] * (rng.random(cells) >= zeros)
    return rng.multinomial(total * cells // 4096, rate / rate.sum())
