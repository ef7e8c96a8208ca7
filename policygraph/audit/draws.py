"""Many outputs of one mechanism on one table. Owns :class:`Subject`, :class:`Outputs` and :func:`noisy_many`.

What is audited is the mechanism's own code: it is only asked for many
outputs at once where its contract allows that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from policygraph.curator.gate import check, histogram, sample
from policygraph.curator.noise import Rng
from policygraph.errors import InputError
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import Calibrated
from policygraph.model.queries.base import Part, Query

Ints = npt.NDArray[np.int64]
RandomnessKind = Literal["rng", "numpy", "source"]
"""What a callable is given; ``source`` is the former name of ``rng``."""

WATCHED = 256
"""Answers kept of each output; the changed ones first."""


@dataclass(frozen=True, eq=False)
class Outputs:
    """Independent outputs on one table: an array with a row for each, or a list of anything hashable."""

    array: Any | None
    items: list[Hashable]

    def __len__(self) -> int:
        return len(self.items) if self.array is None else len(self.array)

    @property
    def rows(self) -> npt.NDArray[Any]:
        """The array, for those who know that there is one."""
        return np.asarray(self.array)


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism under audit, ours or a user's, behind one verb.

    Attributes
    ----------
    mechanism
        A :class:`Calibrated`, or a callable of a table and an rng.
    randomness
        What a callable gets: a ``Rng``, or a ``numpy.random.Generator`` seeded from one.
    batch
        Whether a callable takes the number of outputs as its second argument and returns them all.
    """

    mechanism: Calibrated | Callable[..., Any]
    randomness: RandomnessKind = "rng"
    batch: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Calibrated) and not callable(self.mechanism):
            raise InputError(
                f"mechanism={self.mechanism!r}: expected a calibrated mechanism or a callable of a table and an rng. "
                "A Mechanism has no noise yet: call its calibrate first.",
                code="audit.mechanism",
                value=self.mechanism,
            )
        if self.randomness not in ("rng", "numpy", "source"):
            raise InputError(
                f"randomness={self.randomness!r}: expected 'rng' or 'numpy'.", code="audit.randomness"
            )

    def outputs(self, table: Any, n: int, rng: Rng, watched: Ints | None) -> Outputs:
        """Draw ``n`` independent outputs, keeping only the watched answers of long ones."""
        if isinstance(self.mechanism, Calibrated):
            return Outputs(noisy_many(self.mechanism, table, n, rng, watched), [])
        given: Any = rng
        if self.randomness == "numpy":
            given = np.random.default_rng(rng.words(4).tolist())
        if self.batch:
            return _gather(self.mechanism(table.copy(), n, given), n, watched)
        return _gather([self.mechanism(table.copy(), given) for _ in range(n)], n, watched)


def noisy_many(
    ready: Calibrated, table: Any, n: int, rng: Rng, watched: Ints | None = None
) -> npt.NDArray[Any]:
    """Draw many independent outputs of a calibrated mechanism.

    Parameters
    ----------
    ready
        The mechanism; its outputs come through the gate, as those of a release do.
    table
        Counts of the cells.
    n
        How many outputs.
    rng
        Where the randomness comes from.
    watched
        Indices of the answers to keep; all when absent.

    Returns
    -------
    numpy.ndarray
        One output in each row.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> ready = pg.Laplace().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(1))
    >>> noisy_many(ready, np.array([5, 0, 2]), 4, pg.SeededRng(1)).shape
    (4, 3)

    Notes
    -----
    An additive mechanism puts independent noise of one distribution on every answer, so that to leave answers out before the noise has
    the distribution of leaving them out after it, and costs less.
    """
    counts = histogram(ready, table)
    check(ready, counts)
    if watched is not None and isinstance(ready, Additive) and is_dataclass(ready):
        ready, watched = replace(ready, query=Watched(ready.query, watched)), None
    return _kept(ready.comparable(sample(ready, counts, rng, n)), watched)


class Watched(Query):
    """Some of the answers of a query."""

    def __init__(self, query: Query, watched: Ints) -> None:
        super().__init__(query.domain, query.unit)
        self.query, self.watched = query, watched

    @property
    def parts(self) -> tuple[Part, ...]:
        return (Part("watched", ("row",), len(self.watched)),)

    def part_labels(self, part: int) -> list[Any]:
        return [self.watched]

    def answer(self, table: Any) -> Ints:
        return self.query.answer(table)[self.watched]

    def columns(self, cells: Any) -> Any:
        return self.query.columns(cells).tocsr()[self.watched]

    def to_spec(self) -> dict[str, Any]:
        return {"watched": self.watched.tolist(), "of": self.query.to_spec()}


def _kept(array: npt.NDArray[Any], watched: Ints | None) -> npt.NDArray[Any]:
    flat = array.reshape(len(array), -1)
    if watched is None:
        return flat
    # The answers of a user's mechanism need not be those of the query; then the first ones are watched.
    return flat[:, watched] if flat.shape[1] > watched.max(initial=0) else flat[:, :WATCHED]


def _gather(given: Any, n: int, watched: Ints | None) -> Outputs:
    if len(given) != n:
        raise InputError(
            f"the mechanism returned {len(given)} outputs: expected {n}, one for each run.",
            code="audit.outputs",
            value=len(given),
        )
    if isinstance(given, np.ndarray) and given.dtype.kind in "biuf":
        return Outputs(_kept(given, _long(given[0].size, watched)), [])
    first = given[0]
    if isinstance(first, (np.ndarray, int, float, np.number)) or _numbers(first):
        rows = [np.asarray(row).ravel() for row in given]
        if len({(row.size, row.dtype.kind in "biuf") for row in rows}) == 1 and rows[0].dtype.kind in "biuf":
            return Outputs(_kept(np.stack(rows), _long(rows[0].size, watched)), [])
        return Outputs(None, [tuple(row.tolist()) for row in rows])
    return Outputs(None, list(_hashable(given)))


def _long(size: int, watched: Ints | None) -> Ints | None:
    return (np.arange(WATCHED) if watched is None else watched) if size > WATCHED else None


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, (int, float, np.number)) for x in value)


def _hashable(given: Sequence[Any]) -> Iterator[Hashable]:
    for value in given:
        try:
            hash(value)
        except TypeError as cause:
            raise InputError(
                f"an output of type {type(value).__name__}: expected an array of numbers, or something hashable such "
                "as a tuple or a frozenset.",
                code="audit.output",
                value=type(value).__name__,
            ) from cause
        yield value
