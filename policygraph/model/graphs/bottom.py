"""Bottom: where a record is when it is in no cell. Owns :data:`BOTTOM`."""

from __future__ import annotations

from typing import Final, final

__all__ = ["BOTTOM", "Bottom", "Vertex"]


@final
class Bottom:
    """The vertex for "no record"; there is one object of this class, :data:`BOTTOM`.

    It is no index, so that it cannot be mistaken for a cell.

    Examples
    --------
    >>> import pickle
    >>> BOTTOM, Bottom() is BOTTOM, pickle.loads(pickle.dumps(BOTTOM)) is BOTTOM
    (BOTTOM, True, True)
    """

    __slots__ = ()

    def __new__(cls) -> Bottom:
        return BOTTOM

    def __reduce__(self) -> str:
        return "BOTTOM"

    def __repr__(self) -> str:
        return "BOTTOM"


BOTTOM: Final[Bottom] = object.__new__(Bottom)
"""The vertex for "no record": an edge to it says that a record may appear or vanish."""

Vertex = int | Bottom
