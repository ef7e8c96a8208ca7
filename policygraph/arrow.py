"""Arrow columns from values and back, without pandas. Owns :func:`to_arrow`, :func:`to_numpy` and :func:`frame_library`.

``pyarrow.array`` and ``to_numpy`` import pandas wherever it is installed, which takes longer than all of a small release.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError


def to_arrow(values: npt.NDArray[Any] | Sequence[Any], *, text: bool = False) -> Any:
    """Make an Arrow column of numbers or texts, of the type that ``pyarrow.array`` gives them; numbers among texts become texts; ``text``: of texts, also if there is none.

    Examples
    --------
    >>> to_arrow(["a", "bc", 1]).to_pylist(), str(to_arrow(np.array([1.5])).type)
    (['a', 'bc', '1'], 'double')
    """
    import pyarrow

    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.ndim == 1 and array.dtype.kind in "iuf" and array.dtype.isnative:
        kind = pyarrow.from_numpy_dtype(array.dtype)
        buffer = pyarrow.py_buffer(np.ascontiguousarray(array))
        return pyarrow.Array.from_buffers(kind, len(array), [None, buffer])
    texts = [str(text) for text in values] if array is not None and array.dtype.kind == "U" else list(values)
    if any(type(text) is str for text in texts):
        # Labels of one attribute may be texts and numbers.
        texts = [str(text) for text in texts]
    if (texts or text) and all(type(text) is str for text in texts):
        parts = [text.encode() for text in texts]
        ends = np.cumsum([0, *map(len, parts)])
        if ends[-1] < 1 << 31:
            buffers = [None, pyarrow.py_buffer(ends.astype(np.int32)), pyarrow.py_buffer(b"".join(parts))]
            return pyarrow.Array.from_buffers(pyarrow.string(), len(parts), buffers)
    return pyarrow.array(values)


def to_numpy(column: Any) -> npt.NDArray[Any]:
    """Make an array of an Arrow column without nulls: numbers as they are, anything else as objects.

    Examples
    --------
    >>> to_numpy(to_arrow(np.arange(4))[1:3]), to_numpy(to_arrow(["a"]))
    (array([1, 2]), array(['a'], dtype=object))
    """
    import pyarrow

    whole = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    kinds = pyarrow.types
    if whole.null_count or not (kinds.is_integer(whole.type) or kinds.is_float64(whole.type)):
        if kinds.is_string(whole.type) or kinds.is_large_string(whole.type):
            return np.array(whole.to_pylist(), dtype=object)
        made: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return made
    kind = np.dtype(whole.type.to_pandas_dtype())
    if not len(whole):
        return np.empty(0, dtype=kind)
    return np.frombuffer(whole.buffers()[1], kind, len(whole), whole.offset * kind.itemsize)


def frame_library(name: str) -> Any:
    """A data frame library that may not be installed."""
    try:
        return import_module(name)
    except ImportError as cause:
        raise InputError(
            f"this needs {name}, which is not installed: pip install {name}.",
            code="release.library",
            value=name,
        ) from cause
