"""Noisy counts of edges between groups made to fit the public degrees. Owns :func:`consistent_mixing`.

A minimum-cost flow finds whole tables with given sums near a target; conditions are added until the counts leave room for the nodes of
large degree. Post-processing: sees noisy counts and public facts only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.optimise import cp_solver, flow_between
from policygraph.model.queries.networks import MixingQuery

Ints = npt.NDArray[np.int64]
SCALE = 1000
"""Distances are measured in thousandths."""
Floats = npt.NDArray[np.float64]
LARGE = 1 << 40
SWEEPS = 1000
SEARCHED = 30 * SECOND
"""Units of work of the solver: the same result on every machine."""
ROUNDS = 60
"""Most times that conditions of large degrees are added."""
PROGRAM_COUNTS = 400
"""Up to so many undirected counts the nearest ones are found by an integer program; beyond, by flow and rounding of halves."""


def transport(target: Any, rows: Any, columns: Any, low: Ints, high: Ints) -> Ints | None:
    """Whole table with given row and column sums and limits, of least total distance to a target; None if there is none.

    Examples
    --------
    >>> limits = np.zeros((2, 2), dtype=np.int64), np.full((2, 2), 9)
    >>> transport([[2.2, 0.9], [0.1, 3.0]], [3, 3], [2, 4], *limits).tolist()
    [[2, 1], [0, 3]]

    Notes
    -----
    The distance of a cell is convex in its count: steps below the target gain, the step across it is mixed, steps beyond
    cost. One arc for each slope makes it a minimum-cost flow, and flows with whole data have whole optima.
    """
    wanted = np.asarray(target, dtype=np.float64)
    supply, demand = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    if np.any(low > high) or int(supply.sum()) != int(demand.sum()):
        return None
    tail, head = (side.ravel() for side in np.indices(wanted.shape))
    least, most = low.ravel(), high.ravel()
    near = np.clip(np.floor(wanted.ravel()), least, most).astype(np.int64)
    part = np.clip(np.rint((wanted.ravel() - near) * SCALE), 0, SCALE).astype(np.int64)
    # What a cell must hold is taken off both sums beforehand.
    given = np.zeros(wanted.shape, dtype=np.int64)
    given[tail, head] = least
    supply, demand = supply - given.sum(axis=1), demand - given.sum(axis=0)
    if np.any(supply < 0) or np.any(demand < 0):
        return None
    pieces = (
        (near - least, np.full(len(near), -SCALE)),
        (np.minimum(most - near, 1), SCALE - 2 * part),
        (np.maximum(most - near - 1, 0), np.full(len(near), SCALE)),
    )
    rooms, costs = (np.concatenate(each) for each in zip(*pieces, strict=True))
    arcs = np.flatnonzero(rooms > 0)
    cells = arcs % len(near)
    flow = flow_between(tail[cells], head[cells], rooms[arcs], costs[arcs], supply, demand)
    if flow is None:
        return None
    np.add.at(given, (tail[cells], head[cells]), flow)
    return given


def symmetric_transport(target: Any, sums: Ints, low: Ints, high: Ints) -> tuple[Ints, bool] | None:
    """Whole symmetric table near a target, given above the diagonal, with twice the diagonal plus the rest of a row known.

    Parameters
    ----------
    target, low, high
        In the order of ``numpy.triu_indices``.
    sums
        For each row, twice its diagonal entry plus its other entries.

    Returns
    -------
    tuple or None
        The table in the same order, and whether it is surely the nearest; None when rounding met a limit.

    Examples
    --------
    >>> free = np.zeros(6, dtype=np.int64), np.full(6, 9)
    >>> symmetric_transport([0, 1, 1, 0, 1, 0], np.array([2, 2, 2]), *free)[0].tolist()
    [0, 1, 1, 0, 1, 0]

    Notes
    -----
    Both orders of each pair as cells of a table with equal row and column sums make a flow. Halving it gives the optimum of the
    relaxed problem in half-integers. In each row the number of halves beside the diagonal is even, so they form closed
    walks, which are rounded up and down in turn. What an odd walk, or half on the diagonal, leaves over at a row is brought together in
    pairs of rows.
    """
    k = len(sums)
    a, b = np.triu_indices(k)
    square = np.zeros((3, k, k))
    for layer, values in enumerate((target, low, high)):
        square[layer, a, b] = square[layer, b, a] = values
    square[:, np.arange(k), np.arange(k)] *= 2
    flow = transport(square[0], sums, sums, square[1].astype(np.int64), square[2].astype(np.int64))
    if flow is None:
        return None
    double = flow + flow.T
    double[np.arange(k), np.arange(k)] = np.diag(flow)
    whole, odd = double // 2, double % 2
    nearest = not odd.any()
    open_rows: list[int] = []
    for walk in _closed_walks(odd):
        start = next((at for at, v in enumerate(walk) if odd[v, v]), 0)
        walk = walk[start:] + walk[:start]
        for step, v in enumerate(walk):
            w = walk[(step + 1) % len(walk)]
            whole[v, w] += step % 2 == 0
            whole[w, v] = whole[v, w]
        if len(walk) % 2:
            open_rows.append(walk[0])
    # An odd walk has rounded up once too often at its start; half of a diagonal, rounded down, makes up for it.
    for v in np.flatnonzero(np.diag(odd)).tolist():
        if v in open_rows:
            open_rows.remove(v)
        else:
            whole[v, v] += 1
            open_rows.append(v)
    top = np.zeros((k, k), dtype=np.int64)
    base = top.copy()
    top[a, b] = top[b, a] = high
    base[a, b] = base[b, a] = low
    if not _close(open_rows, whole, base, top):
        return None
    values = whole[a, b]
    rows = whole.sum(axis=1) + np.diag(whole)
    if np.any(rows != sums) or np.any(values < low) or np.any(values > high):
        return None
    return values, nearest


def _closed_walks(odd: Ints) -> Iterator[list[int]]:
    """Split the odd entries beside the diagonal into closed walks, one for each connected part."""
    links = {v: set(np.flatnonzero(odd[v]).tolist()) - {v} for v in range(len(odd))}
    for first in links:
        if not links[first]:
            continue
        stack, walk = [first], []
        while stack:  # Hierholzer
            v = stack[-1]
            if links[v]:
                w = links[v].pop()
                links[w].discard(v)
                stack.append(w)
            else:
                walk.append(stack.pop())
        yield walk[:-1]


def _close(rows: list[int], whole: Ints, base: Ints, top: Ints) -> bool:
    """Take one off between pairs of rows that have one too many; whether that was possible."""
    rest = list(rows)
    while rest:
        v = rest.pop()
        for at, w in enumerate(rest):
            if whole[v, w] > base[v, w]:
                whole[v, w] -= 1
                whole[w, v] = whole[v, w]
            elif not _detour(v, w, whole, base, top):
                continue
            rest.pop(at)
            break
        else:
            return False
    return True


def _detour(v: int, w: int, whole: Ints, base: Ints, top: Ints) -> bool:
    """Take one off between v and x and between y and w, and put one between x and y."""
    for x in np.flatnonzero(whole[v] > base[v]).tolist():
        for y in np.flatnonzero((whole[w] > base[w]) & (whole[x] < top[x])).tolist():
            if len({v, w, x, y}) == 4:
                for a, b, change in ((v, x, -1), (x, y, 1), (y, w, -1)):
                    whole[a, b] += change
                    whole[b, a] = whole[a, b]
                return True
    return False


@dataclass(frozen=True)
class Cut:
    """The t nodes of a group with the largest degrees have ``need`` edge ends; at most ``room[i]`` of them reach the i-th group.

    Attributes
    ----------
    counts
        Positions of the counts of edges between the group and each group.
    ends
        Edge ends that each of these counts gives to the group: 2 for edges inside an undirected one, otherwise 1.
    room
        For each of these groups t times its number of possible neighbours.
    need
        Sum of the t largest degrees.
    """

    counts: tuple[int, ...]
    ends: tuple[int, ...]
    room: tuple[int, ...]
    need: int


def violated(query: MixingQuery, degrees: PublicDegrees, values: Ints) -> list[Cut]:
    """For each group the worst condition that these counts miss.

    Examples
    --------
    >>> from policygraph.model.domain import Network
    >>> network = Network(5)
    >>> query = MixingQuery(network, ["x", "x", "y", "z", "z"])
    >>> degrees = PublicDegrees.of(network, [3, 1, 2, 1, 1])
    >>> violated(query, degrees, np.array([1, 2, 0, 0, 0, 1]))
    [Cut(counts=(0, 1, 2), ends=(2, 1, 1), room=(1, 1, 2), need=3)]
    >>> violated(query, degrees, np.array([1, 1, 1, 0, 1, 0]))
    []

    Notes
    -----
    Splitting the degrees of a group over the groups of their neighbours, at most n edges of a node to n nodes, is a
    transportation problem. By max-flow and min-cut it can be solved exactly if for every t the t largest degrees together are at
    most the sum over groups of min(edge ends there, t n).
    """
    network, k = query.domain, len(query.names)
    sizes = np.bincount(query.codes, minlength=k)
    own = 0 if network.loops else 1
    place = np.zeros((k, k), dtype=np.int64)
    if network.directed:
        place = np.arange(k * k, dtype=np.int64).reshape(k, k)
        sides = [(degrees.out, place), (degrees.into, place.T)]
    else:
        low, high = np.triu_indices(k)
        place[low, high] = place[high, low] = np.arange(len(low))
        sides = [(degrees.out, place)]
    found = []
    for degree, where in sides:
        for g in range(k):
            mine = np.sort(degree[query.codes == g])[::-1]
            ends = np.where(np.arange(k) == g, 1 if network.directed else 2, 1)
            room = sizes - np.where(np.arange(k) == g, own, 0)
            t = np.arange(1, len(mine) + 1, dtype=np.int64)
            reach = np.minimum(ends * values[where[g]], t[:, None] * room).sum(axis=1)
            missing = np.cumsum(mine) - reach
            at = int(np.argmax(missing))
            if missing[at] > 0:
                limit = (t[at] * room).tolist()
                need = int(mine[: at + 1].sum())
                found.append(Cut(tuple(where[g].tolist()), tuple(ends.tolist()), tuple(limit), need))
    return found


@dataclass(frozen=True, eq=False)
class ConsistentMixing:
    """Counts that fit the public degrees.

    Attributes
    ----------
    query
        What is counted.
    values
        Whole numbers in the order of the query.
    nearest
        Whether no other whole consistent counts are nearer to the target (proved by the solver).
    target
        The noisy counts, or their least-squares fit.
    """

    query: MixingQuery
    values: Ints
    nearest: bool
    target: Floats

    @property
    def matrix(self) -> Ints:
        """The counts as a matrix of groups; symmetric if the network is undirected, with the edges inside on the diagonal."""
        return as_matrix(self.query, self.values)


def as_matrix(query: MixingQuery, values: Any) -> Ints:
    """Mixing counts in the order of a query as a matrix of groups."""
    k = len(query.names)
    given = np.asarray(values, dtype=np.int64)
    if query.domain.directed:
        return given.reshape(k, k)
    out = np.zeros((k, k), dtype=np.int64)
    low, high = query.groups_of_rows()
    out[low, high] = out[high, low] = given
    return out


def consistent_mixing(
    noisy: Any, query: MixingQuery, degrees: PublicDegrees, *, norm: str = "l2"
) -> ConsistentMixing:
    """Whole, non-negative counts near noisy ones whose sums are those that the public degrees fix.

    Parameters
    ----------
    noisy
        Noisy counts, in the order of the query.
    query
        What was counted: groups of the nodes of a network.
    degrees
        The public degrees, of all nodes or of some.
    norm
        ``"l2"``: the counts nearest to the least-squares fit of the noisy ones; ``"l1"``: those nearest to the noisy ones
        themselves, in both cases in sum of absolute differences.

    Returns
    -------
    ConsistentMixing
        For every group whose degrees are all public, twice the edges inside plus those to other groups are its sum of degrees
        (directed: its edges out, and its edges in); for the other groups they are at least what is public.

    Raises
    ------
    InputError
        When there are too few noisy counts, or the degrees are of another network.
    RefusedError
        When the solver finds no counts in time.

    Examples
    --------
    >>> from policygraph.model.domain import Network
    >>> network = Network(5)
    >>> query = MixingQuery(network, ["x", "x", "x", "y", "y"])
    >>> degrees = PublicDegrees.of(network, [2, 2, 2, 1, 1])
    >>> consistent_mixing([4, -1, 3], query, degrees).values.tolist()
    [3, 0, 1]

    Notes
    -----
    Directed counts are a transportation problem, solved as a minimum-cost flow, whose solutions are whole. Undirected ones
    are a flow up to halves on odd cycles: few counts are decided by an integer program (CP-SAT), many by the flow with its
    halves rounded, which fits exactly but need not be the nearest. Few counts also leave room for the largest degrees
    (:func:`violated`), without which no simple graph has them. The true counts fit, so that a solution exists.
    """
    given = np.asarray(noisy, dtype=np.float64).ravel()
    if degrees.network != query.domain:
        raise InputError("the degrees are of another network than the counts.", code="networks.domain")
    if given.shape != (query.height,) or not np.all(np.isfinite(given)):
        raise InputError(
            f"{given.size} noisy counts: expected {query.height} numbers, one for each pair of groups.",
            code="networks.counts",
        )
    if norm not in ("l1", "l2"):
        raise InputError(f"norm={norm!r}: expected 'l1' or 'l2'.", code="networks.norm", value=norm)
    low, high = mixing_limits(query, degrees)
    rows, sums, exact = _rows(query, degrees)
    target = given if norm == "l1" else _least_squares(given, rows[exact], sums[exact], low, high)
    k = len(query.names)
    found: tuple[Ints, bool] | None = None
    if query.domain.directed and bool(exact.all()):
        values = transport(target.reshape(k, k), sums[:k], sums[k:], low.reshape(k, k), high.reshape(k, k))
        found = None if values is None else (values.ravel(), True)
    elif query.height > PROGRAM_COUNTS and bool(exact.all()):
        found = symmetric_transport(target, sums, low, high)
    if found is None:
        found = _by_program(target, rows, sums, exact, low, high, [])
    if degrees.complete and not query.domain.multiple and query.height <= PROGRAM_COUNTS:
        found = _with_hubs(found, target, rows, sums, low, high, query, degrees)
    return ConsistentMixing(query, *found, target)


def _with_hubs(
    found: tuple[Ints, bool],
    target: Floats,
    rows: Ints,
    sums: Ints,
    low: Ints,
    high: Ints,
    query: MixingQuery,
    degrees: PublicDegrees,
) -> tuple[Ints, bool]:
    """Counts that also leave room for the largest degrees: conditions that are missed are added until none is."""
    cuts: list[Cut] = []
    exact = np.ones(len(rows), dtype=bool)
    for _ in range(ROUNDS):
        missed = violated(query, degrees, found[0])
        if not missed:
            break
        cuts.extend(missed)
        found = _by_program(target, rows, sums, exact, low, high, cuts)
    return found


def _rows(query: MixingQuery, degrees: PublicDegrees) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Sums that the degrees fix: coefficients of the counts, values, and whether the sum is exact or a lower bound."""
    k, (a, b) = len(query.names), query.groups_of_rows()
    sides = [(degrees.out, a), (degrees.into, b)] if query.domain.directed else [(degrees.out, None)]
    rows, sums, exact = [], [], []
    for degree, end in sides:
        for group in range(k):
            mine = degree[query.codes == group]
            rows.append(
                (a == group).astype(np.int64) + (b == group)
                if end is None
                else (end == group).astype(np.int64)
            )
            sums.append(int(mine[mine >= 0].sum()))
            exact.append(bool(np.all(mine >= 0)))
    return np.array(rows, dtype=np.int64), np.array(sums, dtype=np.int64), np.array(exact, dtype=bool)


def mixing_limits(query: MixingQuery, degrees: PublicDegrees) -> tuple[Ints, Ints]:
    """Least and largest number of edges between two groups that the public degrees leave room for.

    Examples
    --------
    >>> from policygraph.model.domain import Network
    >>> network = Network(4)
    >>> query = MixingQuery(network, ["x", "y", "y", "y"])
    >>> [side.tolist() for side in mixing_limits(query, PublicDegrees.of(network, [3, 1, 1, 1]))]
    [[0, 3, 0], [0, 3, 1]]

    Notes
    -----
    A node of degree d has at most min(d, n) edges to n nodes, and at least d minus the nodes elsewhere. These are necessary
    conditions for single counts, not sufficient ones for all of them together.
    """
    network, codes, k = query.domain, query.codes, len(query.names)
    a, b = query.groups_of_rows()
    if network.multiple:
        top = np.full(query.height, LARGE, dtype=np.int64)
        for degree, end in ((degrees.out, a), (degrees.into, b)):
            known = np.array([np.all(degree[codes == g] >= 0) for g in range(k)])
            sums = np.bincount(codes, np.maximum(degree, 0), k).astype(np.int64)
            top = np.minimum(
                top, np.where(known[end], sums[end] // (1 if network.directed else 1 + (a == b)), LARGE)
            )
        return np.zeros(query.height, dtype=np.int64), top
    sizes = np.bincount(codes, minlength=k)
    own = np.ones(k, dtype=np.int64) * ((0 if network.directed else -1) if network.loops else 1)
    low, high = np.zeros((k, k), dtype=np.int64), np.zeros((k, k), dtype=np.int64)
    back_low, back_high = low.copy(), high.copy()
    for degree, least, most in ((degrees.out, low, high), (degrees.into, back_low, back_high)):
        for g in range(k):
            room = sizes - np.where(np.arange(k) == g, own, 0)
            mine = degree[codes == g][:, None]
            most[g] = np.where(mine < 0, room, np.minimum(mine, room)).sum(axis=0)
            least[g] = np.where(mine < 0, 0, np.maximum(mine - (room.sum() - room), 0)).sum(axis=0)
    same = a == b
    pairs = sizes[a] * sizes[b]
    if network.directed:
        pairs = pairs - np.where(same & (not network.loops), sizes[a], 0)
        return np.maximum(low[a, b], back_low[b, a]), np.minimum(
            np.minimum(high[a, b], back_high[b, a]), pairs
        )
    inside = sizes[a] * (sizes[a] - 1) // 2 + (sizes[a] if network.loops else 0)
    top = np.where(
        same, np.minimum(high[a, b] // 2, inside), np.minimum(np.minimum(high[a, b], high[b, a]), pairs)
    )
    base = np.where(same, -(-low[a, b] // 2), np.maximum(low[a, b], low[b, a]))
    return base, top


def _least_squares(noisy: Floats, rows: Ints, sums: Ints, low: Ints, high: Ints) -> Floats:
    """Nearest point with the exact sums and within the limits, by Dykstra's alternating projections."""
    point, shift = noisy.copy(), np.zeros_like(noisy)
    if not len(rows):
        return np.clip(point, low, high)
    from scipy import sparse

    matrix = sparse.csr_array(rows.astype(np.float64))
    inverse = np.linalg.pinv((matrix @ matrix.T).toarray())
    back = sparse.csr_array(matrix.T)
    for _ in range(SWEEPS):
        onto = point - back @ (inverse @ (matrix @ point - sums))
        boxed = np.clip(onto + shift, low, high)
        shift = onto + shift - boxed
        moved = float(np.abs(boxed - point).max())
        point = boxed
        if moved < 1e-6:
            break
    return point


def _by_program(
    target: Floats,
    rows: Ints,
    sums: Ints,
    exact: npt.NDArray[np.bool_],
    low: Ints,
    high: Ints,
    cuts: list[Cut],
) -> tuple[Ints, bool]:
    """Counts of least total distance to the target, by an integer program in growing windows."""
    from ortools.sat.python import cp_model

    base = np.floor(np.clip(target, -LARGE, LARGE)).astype(np.int64)
    scaled = np.rint(np.clip(target, -LARGE, LARGE) * SCALE).astype(np.int64)
    window = max(16, len(target))
    while True:
        model = cp_model.CpModel()
        lows = np.maximum(low, np.minimum(base - window, high))
        highs = np.minimum(high, np.maximum(base + window, low))
        counts = [model.new_int_var(int(x), int(y), "") for x, y in zip(lows, highs, strict=True)]
        for row, total, whole in zip(rows, sums.tolist(), exact.tolist(), strict=True):
            used = np.flatnonzero(row).tolist()
            made = cp_model.LinearExpr.weighted_sum(
                [counts[at] for at in used], [int(row[at]) for at in used]
            )
            model.add(made == total if whole else made >= total)
        for cut in cuts:
            reached = []
            for at, ends, room in zip(cut.counts, cut.ends, cut.room, strict=True):
                part = model.new_int_var(0, room, "")
                model.add(part <= ends * counts[at])
                reached.append(part)
            model.add(sum(reached) >= cut.need)
        errors = []
        for count, wanted, x, y in zip(counts, scaled.tolist(), lows.tolist(), highs.tolist(), strict=True):
            most = max(abs(SCALE * x - wanted), abs(SCALE * y - wanted))
            error = model.new_int_var(0, most, "")
            model.add(error >= SCALE * count - wanted)
            model.add(error >= wanted - SCALE * count)
            errors.append(error)
        model.minimize(sum(errors))
        solver = cp_solver()
        status = Effort(SEARCHED).solve(solver, model)
        everything = bool(np.all(lows <= low) and np.all(highs >= high))
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            values = np.array([solver.value(count) for count in counts], dtype=np.int64)
            # Counts outside the window are farther than the window by themselves.
            enough = everything or solver.objective_value <= SCALE * (window - 1)
            if enough or status == cp_model.FEASIBLE:
                return values, bool(status == cp_model.OPTIMAL and enough)
        elif everything or status != cp_model.INFEASIBLE:
            raise _unsolved()
        window *= 8


def _unsolved() -> RefusedError:
    return RefusedError(
        "no whole counts with the sums of the public degrees were found. Check that the degrees are those of the network that "
        "was counted, or use fewer groups.",
        code="networks.unsolved",
    )
