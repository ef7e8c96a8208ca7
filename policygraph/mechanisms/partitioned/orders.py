"""Linear orders of the cells of a table. Owns :func:`z_order`."""

from __future__ import annotations

import numpy as np

from policygraph.errors import InputError
from policygraph.mechanisms.partitioned.partition import Ints
from policygraph.model.domain import Domain

__all__ = ["z_order"]


def z_order(domain: Domain) -> Ints:
    """Cells of a grid in Z-order: by the bits of all positions, interleaved.

    Where every attribute has the same number 2**j of values, an aligned run of 2**i cells is a box: the runs of a
    partition are then the blocks of a quadtree.

    Examples
    --------
    >>> z_order(Domain({"x": 2, "y": 4})).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7]
    """
    codes = domain.codes(np.arange(domain.size))
    width = max(n - 1 for n in domain.shape).bit_length()
    if width * len(codes) > 62:
        raise InputError(
            f"Z-order over {domain!r}: its keys have {width * len(codes)} bits, expected at most 62.",
            code="partition.z-order",
        )
    key = np.zeros(domain.size, dtype=np.int64)
    for bit in range(width - 1, -1, -1):
        for code in codes:
            key = (key << 1) | ((code >> bit) & 1)
    return np.argsort(key, kind="stable").astype(np.int64)
