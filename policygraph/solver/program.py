"""Whole-number programs whose answers rest on no solver's word. Owns :class:`Program`.

A point is returned only after it was checked in Python integers. "None" is returned when an exact search closed every
branch by whole-number arithmetic, or, where that search is too long, when two unlike solvers (CP-SAT without presolve, and
HiGHS) both say so and neither the search nor they found a point. Solvers that contradict each other, or a point that was
checked, are refused. See docs/explanation/proofs/solvers.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from policygraph.effort import SECOND, Effort
from policygraph.errors import RefusedError
from policygraph.solver import layers as solver_layers
from policygraph.solver.layers import Compiled, Literals
from policygraph.solver.search import objective_bound, search

__all__ = ["Answer", "Program", "disagreement"]

FIRST = SECOND // 5
"""Work of the exact search before any solver is asked; most programs end here."""
LONG = 30 * SECOND
"""Most work of the exact search after CP-SAT was asked; then a second solver is asked instead."""
USUAL = 120 * SECOND
"""Work of a question for which nothing is said."""
WIDEST = 2**40
"""Range that stands for "no limit" while a point is looked for; nothing is concluded from finding none in it."""
TWO_SOLVERS = (
    "in part it rests on CP-SAT and HiGHS agreeing that nothing is left (docs/explanation/proofs/solvers.md)"
)
"""What a bound says of itself where the exact search was too long."""
Status = Literal["found", "none", "unknown"]


class Answer(NamedTuple):
    """A point, or that there is none and why that is known, or that it is not known.

    Attributes
    ----------
    status
        "found" with a point; "none" when that is proved; "unknown".
    point
        The point.
    proof
        For "none": "search" when every branch was closed exactly, "two solvers" when CP-SAT and HiGHS agree.
    """

    status: Status
    point: tuple[int, ...] | None = None
    proof: Literal["", "search", "two solvers"] = ""


def disagreement(what: str, **values: object) -> RefusedError:
    """The refusal when a solver says what a checked point or another solver contradicts."""
    return RefusedError(
        f"The solvers contradict each other ({what}); nothing is concluded from it. "
        "Report this with the policy and the version of ortools.",
        code="solver.disagree",
        **values,
    )


class Program:
    """Whole numbers between bounds, rows ``low <= sum of a x <= high``, and clauses of bounds one of which must hold.

    Parameters
    ----------
    lower, upper
        Bounds of each variable; an upper bound may be None. Where one stays None after the rows have been used, no
        answer is "none" but by contradiction of the rows.

    Examples
    --------
    >>> program = Program([0, 0], [3, 3])
    >>> program.add({0: 1, 1: 2}, 3, 3)
    >>> program.require([(0, "<=", 1)])
    >>> program.find().point
    (1, 1)
    >>> program.require([(1, ">=", 2)])
    >>> program.find().status
    'none'
    """

    def __init__(self, lower: Sequence[int], upper: Sequence[int | None]) -> None:
        self._lower = [int(a) for a in lower]
        self._upper = [None if b is None else int(b) for b in upper]
        self._rows: list[tuple[dict[int, int], int | None, int | None]] = []
        self._clauses: list[Literals] = []

    def add(
        self, terms: Mapping[int, int] | Iterable[tuple[int, int]], low: int | None, high: int | None
    ) -> None:
        """Add the row ``low <= sum of weight * variable <= high``; None for a side without a limit."""
        row: dict[int, int] = {}
        for j, a in terms.items() if isinstance(terms, Mapping) else terms:
            row[int(j)] = row.get(int(j), 0) + int(a)
        self._rows.append((row, None if low is None else int(low), None if high is None else int(high)))

    def require(self, clause: Iterable[tuple[int, Literal["<=", ">="], int]]) -> None:
        """Add a clause: at least one of these bounds on variables must hold."""
        self._clauses.append(tuple((int(j), side, int(bound)) for j, side, bound in clause))

    def find(self, effort: Effort | None = None) -> Answer:
        """Find a point, prove that there is none, or give up when the effort is spent.

        Raises
        ------
        RefusedError
            When a solver says "none" and a point is found, or returns a point that breaks the program.
        """
        return self._find(Effort.of(effort, usual=USUAL), [])

    def better(
        self, objective: Mapping[int, int], least: int | None = None, effort: Effort | None = None
    ) -> Answer:
        """Find a point of at least a value, the best that CP-SAT comes to, or prove that there is none.

        Examples
        --------
        >>> program = Program([0], [4])
        >>> program.better({0: 1}, 2).point, program.better({0: 1}, 5).status
        ((4,), 'none')
        """
        work = Effort.of(effort, usual=USUAL)
        goal = {int(j): int(w) for j, w in objective.items() if w}
        floor = [] if least is None else [(goal, int(least), None)]
        box = self._box(floor)
        if box is None:
            return Answer("none", proof="search")
        program = Compiled(box[0], box[1], [*self._rows, *floor], self._clauses)
        if not program.possible:
            return Answer("none", proof="search")
        work.spend(1_000 + 10 * program.entries)
        if least is not None and box[2] and objective_bound(program, goal) < least:
            return Answer("none", proof="search")
        asked = solver_layers.ask_cp_sat(
            program, program.clauses, list(goal.items()), work.share(1, 2).at_most(USUAL)
        )
        opinion = _checked(program, asked, "CP-SAT")
        if opinion.point is not None:
            return Answer("found", opinion.point)
        return self._find(work, floor, settled=opinion.status)

    def bound(
        self, objective: Mapping[int, int], effort: Effort | None = None, least: int | None = None
    ) -> int | None:
        """A proved upper bound on a sum over all points, lowered as far as the effort goes but not below ``least``.

        None when nothing limits some variable, so that no bound is proved.

        Examples
        --------
        >>> program = Program([0, 0], [3, 3])
        >>> program.add({0: 2, 1: 2}, None, 7)
        >>> program.bound({0: 1, 1: 1})
        3
        """
        work = Effort.of(effort, usual=USUAL)
        goal = {int(j): int(w) for j, w in objective.items() if w}
        box = self._box([])
        if box is None:
            return least or 0  # there is no point, so that every number bounds them
        if not box[2]:
            return None
        program = Compiled(box[0], box[1], self._rows, self._clauses)
        top = objective_bound(program, goal)
        while (least is None or top > least) and not work.done:
            if self._find(work.share(1, 2), [(goal, top, None)]).status != "none":
                break
            top -= 1
        return top if least is None else max(top, least)

    def _box(
        self, more: Sequence[tuple[dict[int, int], int | None, int | None]]
    ) -> tuple[list[int], list[int], bool] | None:
        """A finite box, and whether it holds all points; None when the rows show that there is none."""
        if all(b is not None for b in self._upper):
            return self._lower, [b for b in self._upper if b is not None], True
        upper = list(self._upper)
        for _ in range(len(upper)):
            before = list(upper)
            for terms, low, high in [*self._rows, *more]:
                _limit(terms, low, high, self._lower, upper)
            if before == upper:
                break
        if any(b is not None and b < a for a, b in zip(self._lower, upper)):
            return None
        limited = all(b is not None for b in upper)
        return self._lower, [a + WIDEST if b is None else b for a, b in zip(self._lower, upper)], limited

    def _find(
        self,
        effort: Effort,
        more: Sequence[tuple[dict[int, int], int | None, int | None]],
        *,
        settled: Status = "unknown",
    ) -> Answer:
        """Find a point of the program with more rows; ``settled`` is what CP-SAT has said of it already, if it was asked."""
        if any(b is not None and b < a for a, b in zip(self._lower, self._upper)):
            return Answer("none", proof="search")
        if effort.done:
            return Answer("unknown")
        box = self._box(more)
        if box is None:
            return Answer("none", proof="search")
        lower, upper, limited = box
        program = Compiled(lower, upper, [*self._rows, *more], self._clauses)
        if not program.possible:
            return Answer("none", proof="search")
        status, point = search(program, effort.at_most(FIRST))
        if status == "none":
            return Answer("none", proof="search") if limited else Answer("unknown")
        opinion = solver_layers.Opinion(settled)
        if status == "unknown" and settled != "none":
            opinion = _checked(
                program,
                solver_layers.ask_cp_sat(
                    program, program.clauses, None, effort.share(1, 2).at_most(USUAL if limited else FIRST)
                ),
                "CP-SAT",
            )
            if opinion.point is not None:
                return Answer("found", opinion.point)
        if status == "unknown" and not limited:
            return Answer("unknown")
        if status == "unknown":
            status, point = search(program, effort.share(1, 2).at_most(LONG))
        if status == "unknown":
            second = _checked(program, solver_layers.ask_highs(program, program.clauses, effort), "HiGHS")
            if second.status == "none" and opinion.status == "none":
                effort.trust(TWO_SOLVERS)
                return Answer("none", proof="two solvers")
            status, point = ("found", second.point) if second.point is not None else ("unknown", None)
        if point is not None and opinion.status == "none":
            raise disagreement("CP-SAT says that no point is left, and this one is", point=point)
        if status == "none":
            return Answer("none", proof="search")
        return Answer("unknown") if point is None else Answer("found", point)


def _checked(program: Compiled, opinion: solver_layers.Opinion, name: str) -> solver_layers.Opinion:
    if opinion.point is None:
        return opinion
    if program.holds(opinion.point):
        return opinion
    if name == "HiGHS":
        # rounded from floats, which may be off without any fault of the solver's
        return solver_layers.Opinion("unknown")
    raise disagreement(f"{name} returned a point that breaks its constraints", point=opinion.point)


def _limit(
    terms: Mapping[int, int],
    low: int | None,
    high: int | None,
    lower: Sequence[int],
    upper: list[int | None],
) -> None:
    """Upper bounds of variables that one row implies; works with variables that have none yet."""
    for side, sign in ((high, 1), (low, -1)):
        if side is None:
            continue
        # sign * sum <= sign * side; the least of the other terms needs their bounds
        least, endless = 0, 0
        for j, a in terms.items():
            end = lower[j] if sign * a > 0 else upper[j]
            if end is None:
                endless += 1
            else:
                least += sign * a * end
        if endless:
            continue
        for j, a in terms.items():
            if sign * a > 0:
                most = lower[j] + (sign * side - least) // (sign * a)
                held = upper[j]
                upper[j] = most if held is None else min(held, most)
