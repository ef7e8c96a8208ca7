"""Counts of a cuboid of any size, held until its noisy values are written in parts. Owns :class:`HeldHere` and :func:`rows_of_block`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.curator.histogram import Ints, changed
from policygraph.curator.noise.blocks import BLOCK
from policygraph.errors import InputError
from policygraph.model.domain import Domain
from policygraph.release.sheets import free

VALUE = "value"


def rows_of_block(part: Domain, number: int, values: Ints) -> Any:
    """The rows of a block as an Arrow table: the labels of each cell, and its value.

    Examples
    --------
    >>> rows_of_block(Domain({"sex": ["F", "M"], "age": 2}), 0, np.array([5, 6, 7, 8])).to_pylist()[1:3]
    [{'sex': 'F', 'age': 1, 'value': 6}, {'sex': 'M', 'age': 0, 'value': 7}]
    """
    import pyarrow as pa

    start = number * BLOCK
    codes = np.unravel_index(np.arange(start, start + len(values)), part.shape)
    columns = {}
    for name, code in zip(part.names, codes, strict=True):
        labels = part.labels(name)
        if isinstance(labels, range):
            columns[name] = pa.array(code.astype(np.int64))
        else:
            alike = len({type(label) for label in labels}) == 1
            columns[name] = pa.array(labels if alike else [str(label) for label in labels]).take(
                pa.array(code)
            )
    return pa.table({**columns, column_of(part): pa.array(values)})


def column_of(part: Domain) -> str:
    """Name of the column of values, which is that of no attribute."""
    wanted = (VALUE, "noisy_value", "released_value", "policygraph_value")
    return next((name for name in wanted if name not in part.names), free(VALUE, part.names))


class HeldHere:
    """Counts in this process: the cells that hold records, ascending."""

    def __init__(self, part: Domain, batches: Iterator[dict[str, npt.NDArray[Any]]], rows: int) -> None:
        found = list(batches)
        both = [
            np.concatenate([np.zeros(0, dtype=np.int64), *(each[key] for each in found)]).astype(np.int64)
            for key in ("cell", "n")
        ]
        fits = both[0] >= 0
        order = np.argsort(both[0][fits])
        self.part, self.cells, self.counts = part, both[0][fits][order], both[1][fits][order]
        if int(self.counts.sum()) != rows:
            raise changed()

    def check(self, make: Any, folder: str) -> None:
        """See that the rows can be made, and the folder too, so that nothing is needed later but room on the disk."""
        rows_of_block(self.part, 0, np.zeros(1, dtype=np.int64))
        above = Path(folder).absolute().parent
        while not os.path.lexists(above):
            above = above.parent
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise InputError(
                f"parts={folder!r}: no folder can be made in {above}. Name another place. Nothing was charged.",
                code="output.place",
                value=folder,
            )

    def write(self, make: Any, folder: str) -> None:
        """Write one file for each block."""
        import pyarrow.parquet as pq

        Path(folder).mkdir(parents=True, exist_ok=True)
        for number in range(make.blocks):
            low, high = np.searchsorted(self.cells, [number * BLOCK, (number + 1) * BLOCK])
            values = make(number, self.cells[low:high] - number * BLOCK, self.counts[low:high])
            pq.write_table(
                rows_of_block(self.part, number, values), Path(folder) / f"part-{number:06}.parquet"
            )
