"""What a search for the largest change returns. Owns :class:`Bracket`, and :class:`Witness`, two neighbouring data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from policygraph.errors import InputError

__all__ = ["Bracket", "Witness"]

Attaining = TypeVar("Attaining", covariant=True)
Other = TypeVar("Other")


@dataclass(frozen=True)
class Bracket(Generic[Attaining]):
    """The largest change of an answer, between a proved bound and a value that is attained.

    Attributes
    ----------
    upper
        A proved upper bound; of the square of the norm for l2, so that it is an integer.
    lower
        What the witness attains; 0 without one.
    witness
        A move or a pair of neighbours that attains ``lower``, in the terms of the search that found it.
    method, reason
        How the bound was found, and why it holds.
    steps
        What was done before, in words.

    Examples
    --------
    >>> found = Bracket(4, 4, None, "disjoint counts", "a class gains at most two")
    >>> found.exact, found.after("public facts inside others dropped").steps
    (True, ('public facts inside others dropped',))
    """

    upper: int
    lower: int
    witness: Attaining | None
    method: str
    reason: str
    steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise InputError(
                f"{self.method}: an upper bound of {self.upper} below the attained value {self.lower}.",
                code="sensitivity.inconsistent",
            )

    @property
    def exact(self) -> bool:
        """Whether the bound is attained."""
        return self.upper == self.lower

    def after(self, *steps: str) -> Bracket[Attaining]:
        """Return the same with steps put in front."""
        return replace(self, steps=(*steps, *self.steps))

    def in_terms(self, witness: Other | None) -> Bracket[Other]:
        """Return the same with the witness in other terms."""
        return Bracket(self.upper, self.lower, witness, self.method, self.reason, self.steps)

    def unattained(self, *steps: str) -> Bracket[Attaining]:
        """Return the upper bound alone, with steps put behind: for neighbours of which the witness may not be one."""
        return replace(self, lower=0, witness=None, steps=(*self.steps, *steps))


@dataclass(frozen=True)
class Witness:
    """Two neighbouring data sets, as the records (or edges) that they hold besides what they share.

    Attributes
    ----------
    before, after
        Pairs of a cell index and a count; cells not named are empty.
    pairs
        Which record becomes which, as a cell before and one after (None for a record that is absent), where the definition
        of neighbours compares records one by one and the search found such a pairing; otherwise empty.
    """

    before: tuple[tuple[int, int], ...]
    after: tuple[tuple[int, int], ...]
    pairs: tuple[tuple[int | None, int | None], ...] = ()

    @classmethod
    def of_change(cls, change: Mapping[int, int], table: Mapping[int, int] | None = None) -> Witness:
        """Make the pair from a change: the removed part alone, or a given table, and what becomes of it."""
        start = {c: -x for c, x in change.items() if x < 0} if table is None else dict(table)
        after = dict(start)
        for cell, amount in change.items():
            after[cell] = after.get(cell, 0) + amount
        return cls.of_tables(start, after)

    @classmethod
    def of_tables(cls, before: Mapping[int, int], after: Mapping[int, int]) -> Witness:
        """Make the pair from two tables; cells that hold nothing may be named."""
        one, two = (
            tuple((int(cell), int(x)) for cell, x in sorted(table.items()) if x) for table in (before, after)
        )
        return cls(one, two)

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[int | None, int | None]]) -> Witness:
        """Make the pair from the records that change, each with its cell before and after; None where it is absent.

        Examples
        --------
        >>> Witness.of_pairs([(0, 2), (3, None)]).change
        {0: -1, 2: 1, 3: -1}
        """
        listed = tuple(pairs)
        one, two = (Counter(pair[side] for pair in listed if pair[side] is not None) for side in (0, 1))
        return replace(
            cls.of_tables(
                {c: x for c, x in one.items() if c is not None},
                {c: x for c, x in two.items() if c is not None},
            ),
            pairs=listed,
        )

    @property
    def change(self) -> dict[int, int]:
        """The move from the first data set to the second."""
        out = dict(self.after)
        for cell, amount in self.before:
            out[cell] = out.get(cell, 0) - amount
        return {cell: amount for cell, amount in sorted(out.items()) if amount}
