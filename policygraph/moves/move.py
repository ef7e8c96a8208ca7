"""Moves of a policy. Owns :class:`Move`.

A move is an integer change of cells that takes a table to a neighbour. Everything here works on the support of a
change, so that its cost does not grow with the domain. Where public facts make a graph of sums and cells (two cuboids,
degrees), the Eulerian walk of :mod:`policygraph.moves.walk` answers in linear time; elsewhere the general method of
:mod:`policygraph.moves.graver`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.model.policy import Policy
from policygraph.moves.as_networkx import facts_graph
from policygraph.moves.walk import MoveGraph, compact

if TYPE_CHECKING:
    import networkx

MOST_PARTS = 1_000_000
"""Most moves that are listed one by one."""


@dataclass(frozen=True)
class Move:
    """An integer change of cells under a policy.

    Attributes
    ----------
    policy
        The policy whose public facts the change must keep.
    change
        Pairs of a cell index and a non-zero amount, in order of the cells.

    Examples
    --------
    >>> from policygraph.model.constraints import Cuboid
    >>> from policygraph.model.domain import Domain
    >>> from policygraph.model.policy import Policy
    >>> policy = Policy(Domain({"a": 2, "b": 4}), constraints=[Cuboid("a"), Cuboid("b")])
    >>> move = Move.of(policy, {0: 1, 1: -1, 4: -1, 5: 1, 2: 1, 3: -1, 6: -1, 7: 1})
    >>> move.is_minimal
    False
    >>> for part in move.decompose():
    ...     print(part)
    +(0, 0) -(0, 1) -(1, 0) +(1, 1)
    +(0, 2) -(0, 3) -(1, 2) +(1, 3)
    """

    policy: Policy
    change: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, policy: Policy, change: dict[int, int]) -> Move:
        """Make a move from a mapping of cell index to amount."""
        listed = tuple(sorted((int(cell), int(amount)) for cell, amount in change.items() if amount))
        for cell, _ in listed:
            if not 0 <= cell < policy.domain.size:
                raise InputError(
                    f"cell {cell}: expected 0 to {policy.domain.size - 1}.", code="move.cell", value=cell
                )
        return cls(policy, listed)

    @classmethod
    def between(cls, policy: Policy, a: Any, b: Any) -> Move:
        """Make the move that leads from one table to another."""
        change = np.asarray(b, dtype=np.int64).ravel() - np.asarray(a, dtype=np.int64).ravel()
        cells = np.flatnonzero(change)
        return cls._sorted(policy, cells, change[cells])

    @classmethod
    def _sorted(cls, policy: Policy, cells: Any, amounts: Any) -> Move:
        """Make a move from arrays that are known to be in order and without zeros."""
        move = object.__new__(cls)
        vars(move).update(policy=policy, cells=cells, amounts=amounts)
        return move

    def __getattr__(self, name: str) -> Any:
        # A move made from arrays writes its cells out when they are asked for: a question about it may never do so.
        held = vars(self)
        if name != "change" or "amounts" not in held:
            raise AttributeError(name)
        change = tuple(zip(held["cells"].tolist(), held["amounts"].tolist(), strict=True))
        held["change"] = change
        return change

    @cached_property
    def cells(self) -> Any:
        """Cells that change."""
        return np.array([cell for cell, _ in self.change], dtype=np.int64)

    @cached_property
    def amounts(self) -> Any:
        """Amounts by which they change."""
        return np.array([amount for _, amount in self.change], dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of single additions and removals of records."""
        return self.added + self.removed

    @property
    def added(self) -> int:
        """Number of records added."""
        return self._total(self.amounts[self.amounts > 0])

    @property
    def removed(self) -> int:
        """Number of records removed."""
        return -self._total(self.amounts[self.amounts < 0])

    @staticmethod
    def _total(amounts: Any) -> int:
        """Their sum, in Python integers where it could leave 64 bits."""
        small = int(np.abs(amounts).max(initial=0)) * len(amounts) < 1 << 62
        return int(amounts.sum()) if small else sum(amounts.tolist())

    @cached_property
    def keeps_facts(self) -> bool:
        """Whether the change leaves every public fact as it is."""
        if np.any(np.isin(self.cells, self.policy.system.zeros)):
            return False
        top = int(np.abs(self.amounts).max(initial=0))
        for constraint in self.policy.system.needed:
            rows = constraint.rows_on(self.policy.domain, self.cells)
            # Python integers where a sum could leave 64 bits.
            large = top * int(np.abs(rows.coefficient).sum()) >= 1 << 62
            amounts = self.amounts.astype(object) if large else self.amounts
            used, place = compact(rows.row)
            sums = np.zeros(len(used), dtype=amounts.dtype)
            np.add.at(sums, place, rows.coefficient * amounts[rows.cell])
            if np.any(sums != 0):
                return False
        return True

    @property
    def is_minimal(self) -> bool:
        """Whether the change keeps the facts and no smaller part of it does."""
        return len(self.cells) > 0 and self.keeps_facts and self.smaller() is None

    @cached_property
    def _graph(self) -> MoveGraph | None:
        """Public sums as vertices and changed cells as edges, where the public facts allow it."""
        return MoveGraph.of(self.policy.system, self.cells)

    def smaller(self) -> Move | None:
        """Return a smaller part of the change that keeps the public facts by itself, if there is one.

        Notes
        -----
        For two cuboids and for degrees an Eulerian walk over the changed cells is cut where it first closes a valid move (at
        the first public sum met twice), which takes linear time and finds a minimal move. Other facts are searched.
        """
        self._check_facts()
        if self._graph is not None:
            times, units = next(self._graph.parts(self.amounts), (0, {}))
            whole = times == 1 and sum(units.values()) == self.size
            return None if whole or not times else self._units(units)
        from policygraph.moves.graver.basis import find_smaller

        part = find_smaller(self.policy.system.matrix_on(self.cells), self.amounts)
        return None if part is None else self._part(part)

    def parts(self) -> list[tuple[int, Move]]:
        """Split the change into minimal moves that never undo each other, each with how often it occurs.

        Raises
        ------
        InputError
            When the change breaks a public fact.
        """
        self._check_facts()
        found: dict[tuple[tuple[int, int], ...], tuple[int, Move]] = {}
        for times, part in self._split():
            found[part.change] = (found.get(part.change, (0, part))[0] + times, part)
        return [found[change] for change in sorted(found)]

    def _split(self) -> Iterator[tuple[int, Move]]:
        if self._graph is not None:
            yield from ((times, self._units(units)) for times, units in self._graph.parts(self.amounts))
            return
        from policygraph.moves.graver import basis

        for part in basis.decompose(self.policy.system.matrix_on(self.cells), self.amounts):
            yield 1, self._part(part)

    def _check_facts(self) -> None:
        if not self.keeps_facts:
            raise InputError(
                "the change does not keep the public facts, so it is not a sum of moves.",
                code="move.facts",
                value=self,
            )

    def decompose(self) -> list[Move]:
        """Split the change into minimal moves that never undo each other; a move that occurs twice is listed twice.

        Raises
        ------
        InputError
            When the change breaks a public fact.
        RefusedError
            When there are too many to list; :meth:`parts` counts equal ones.
        """
        parts = self.parts()
        if sum(times for times, _ in parts) > MOST_PARTS:
            raise RefusedError(
                f"the change is a sum of more than {MOST_PARTS:,} moves: too many to list. parts() counts equal ones.",
                code="move.too-large",
            )
        return [part for times, part in parts for _ in range(times)]

    def to_networkx(self) -> networkx.Graph[Any]:
        """Give the change as a networkx graph: what is added, what is removed, and the public facts that hold it together.

        Returns
        -------
        networkx.Graph
            Over a network its nodes, joined where an edge appears or vanishes (``sign`` 1 or -1, ``amount``; nodes say with
            ``public`` whether their degree is). For two cuboids a bipartite multigraph whose vertices are public sums and
            whose edges are the changed cells. For other facts the changed cells on one side, the public sums on the other.
        """
        return facts_graph(self.policy, self.cells, self.amounts)

    def draw(self, target: Any) -> Any:
        """Draw a small move into a picture file or into matplotlib axes; return the axes."""
        from policygraph.moves.drawing import draw

        return draw(self, target)

    def _part(self, amounts: Any) -> Move:
        values = np.asarray(amounts, dtype=np.int64)
        used = np.flatnonzero(values)
        return Move._sorted(self.policy, self.cells[used], values[used])

    def _units(self, units: dict[int, int]) -> Move:
        """The part with so many units at each place, with the signs of the change."""
        places = sorted(units)
        counts = np.array([units[place] for place in places], dtype=np.int64)
        return Move._sorted(self.policy, self.cells[places], np.sign(self.amounts[places]) * counts)

    def __str__(self) -> str:
        return self.words(len(self.change))

    def words(self, most: int) -> str:
        """Write out the first cells that change."""
        words = []
        for cell, amount in self.change[:most]:
            labels = ", ".join(str(label) for label in self.policy.domain.cell(cell))
            times = "" if abs(amount) == 1 else f"{abs(amount)} x "
            words.append(f"{'+' if amount > 0 else '-'}{times}({labels})")
        rest = len(self.cells) - most
        return " ".join(words) + (f" and {rest} more" if rest > 0 else "")
