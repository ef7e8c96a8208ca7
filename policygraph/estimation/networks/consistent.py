"""Noisy counts of edges between groups made to fit the public degrees. Owns :func:`consistent_mixing`.

Post-processing: sees noisy counts and public facts only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import InputError, RefusedError
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.networks.hubs import Cut, violated
from policygraph.estimation.networks.transport import SCALE, symmetric_transport, transport
from policygraph.model.queries.networks import MixingQuery

__all__ = ["ConsistentMixing", "consistent_mixing", "mixing_limits"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
LARGE = 1 << 40
SWEEPS = 1000
SEARCHED = 30.0
"""Deterministic time of the solver, about seconds of an ordinary machine: the same result on every machine."""
ROUNDS = 60
"""Most times that conditions of large degrees are added."""
PROGRAM_COUNTS = 400
"""Up to so many undirected counts the nearest ones are found by an integer program; beyond, by flow and rounding of halves."""


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
    low, high = np.triu_indices(k)
    out[low, high] = given
    out[high, low] = given
    return out


def _ends(query: MixingQuery) -> tuple[Ints, Ints]:
    """Positions of the two groups of each count."""
    k = len(query.names)
    if query.domain.directed:
        one, other = np.divmod(np.arange(k * k, dtype=np.int64), k)
        return one, other
    return np.triu_indices(k)


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
    (``hubs``), without which no simple graph has them. The true counts fit, so that a solution exists.
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
    k, (a, b) = len(query.names), _ends(query)
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
    a, b = _ends(query)
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
        solver = cp_model.CpSolver()
        solver.parameters.catch_sigint_signal = False  # a search that Ctrl-C stopped proves nothing
        solver.parameters.max_deterministic_time = SEARCHED
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        status = solver.solve(model)
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
