"""The nearest graph with public degrees, exactly, for small networks. Owns :func:`nearest_network` and :func:`nearest_counts`.

Post-processing of a noisy adjacency, or of noisy group counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.networks.degrees import PublicDegrees
from policygraph.estimation.optimise import cp_solver, flow_between
from policygraph.model.domain import Network
from policygraph.model.queries.networks import MixingQuery

Ints = npt.NDArray[np.int64]
MOST_PAIRS = 20_000
"""Most node pairs of an undirected network whose nearest graph is computed."""
MOST_ARCS = 4_000_000
"""Most node pairs of a directed one, which is a flow."""
SEARCHED = 60 * SECOND
"""Units of work of the solver: the same result on every machine."""


def nearest_network(noisy: Any, network: Network, degrees: PublicDegrees) -> Ints:
    """The graph with the public degrees that is nearest to a noisy adjacency.

    Parameters
    ----------
    noisy
        Noisy whole numbers, one for each node pair, as an adjacency release has them.
    network
        The network; without multiple edges.
    degrees
        The public degrees, of all nodes or of some.

    Returns
    -------
    array
        0 or 1 for each node pair. No other graph with these degrees has a smaller sum of squared differences.

    Raises
    ------
    InputError
        When the noisy values do not fit the network.
    ConstraintError
        When no graph has the degrees.
    RefusedError
        When the network is too large, or the solver does not finish.

    Examples
    --------
    >>> network = Network(4)
    >>> degrees = PublicDegrees.of(network, [1, 1, 1, 1])
    >>> nearest_network([0, 2, 1, 1, 1, -1], network, degrees).tolist()
    [0, 1, 0, 0, 1, 0]

    Notes
    -----
    For x in {0, 1} the difference (x - y)^2 is y^2 + x (1 - 2 y): a linear cost, so that this is a minimum-cost f-factor. Directed
    networks with all degrees public are an assignment of tails to heads, solved by flow; undirected ones by CP-SAT, whose optimality
    proof is relied on while the degrees of the result are checked.
    """
    if network.multiple:
        raise InputError(
            "the nearest graph is for networks without multiple edges.", code="networks.kind", value=network
        )
    if degrees.network != network:
        raise InputError("the degrees are of another network.", code="networks.domain")
    values = np.asarray(noisy)
    if values.shape != (network.size,) or values.dtype.kind not in "iu":
        raise InputError(
            f"a noisy adjacency of shape {values.shape} and type {values.dtype}: expected {network.size} whole numbers, one for "
            "each node pair.",
            code="networks.adjacency",
        )
    cost = 1 - 2 * values.astype(np.int64)
    if network.directed and degrees.complete and network.size <= MOST_ARCS:
        found = _by_flow(network, degrees, cost)
    else:
        _small(network)
        found = _by_program(network, degrees, cost, None, None)
    _check(network, degrees, found)
    return found


def nearest_counts(query: MixingQuery, degrees: PublicDegrees, target: Any) -> Ints:
    """A graph with the public degrees whose group counts are nearest to a target in total distance; exact, for small networks.

    Examples
    --------
    >>> network = Network(4)
    >>> query = MixingQuery(network, ["x", "x", "y", "y"])
    >>> made = nearest_counts(query, PublicDegrees.of(network, [1, 1, 1, 1]), [1, 0, 1])
    >>> made.tolist(), query.answer(made).tolist()
    ([1, 0, 0, 0, 0, 1], [1, 0, 1])
    """
    network = query.domain
    _small(network)
    nothing = np.zeros(network.size, dtype=np.int64)
    found = _by_program(network, degrees, nothing, query, np.asarray(target, dtype=np.int64))
    _check(network, degrees, found)
    return found


def _small(network: Network) -> None:
    if network.size > MOST_PAIRS:
        raise RefusedError(
            f"{network!r} has {network.size:,} node pairs: expected at most {MOST_PAIRS:,} for an exact nearest graph. Release "
            "mixing counts and make a synthetic graph.",
            code="networks.size",
        )


def _sides(network: Network, degrees: PublicDegrees) -> list[tuple[Ints, tuple[Ints, ...]]]:
    tail, head = network.pairs(np.arange(network.size, dtype=np.int64))
    if network.directed:
        return [(degrees.out, (tail,)), (degrees.into, (head,))]
    return [(degrees.out, (tail, head))]


def _check(network: Network, degrees: PublicDegrees, found: Ints) -> None:
    for wanted, ends in _sides(network, degrees):
        made = np.zeros(network.order, dtype=np.int64)
        for end in ends:
            np.add.at(made, end, found)
        if np.any((wanted >= 0) & (made != wanted)) or np.any((found != 0) & (found != 1)):
            raise _unsolved()


def _by_flow(network: Network, degrees: PublicDegrees, cost: Ints) -> Ints:
    tail, head = network.pairs(np.arange(network.size, dtype=np.int64))
    found = flow_between(tail, head, np.ones_like(tail), cost, degrees.out, degrees.into)
    if found is None:
        raise _unsolved()
    return found


def _by_program(
    network: Network, degrees: PublicDegrees, cost: Ints, query: MixingQuery | None, target: Ints | None
) -> Ints:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    pairs = [model.new_bool_var("") for _ in range(network.size)]
    for wanted, ends in _sides(network, degrees):
        at: list[list[Any]] = [[] for _ in range(network.order)]
        for end in ends:
            for pair, node in zip(pairs, end.tolist(), strict=True):
                at[node].append(pair)
        for node, touching in enumerate(at):
            if wanted[node] >= 0:
                model.add(sum(touching) == int(wanted[node]))
    if query is not None and target is not None:
        rows = query.columns(np.arange(network.size, dtype=np.int64)).tocsr()
        errors = []
        for row, goal in enumerate(target.tolist()):
            cells = rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist()
            error = model.new_int_var(0, network.size + abs(goal), "")
            model.add(error >= sum(pairs[cell] for cell in cells) - goal)
            model.add(error >= goal - sum(pairs[cell] for cell in cells))
            errors.append(error)
        model.minimize(sum(errors))
    else:
        model.minimize(cp_model.LinearExpr.weighted_sum(pairs, cost.tolist()))
    solver = cp_solver()
    if Effort(SEARCHED).solve(solver, model) != cp_model.OPTIMAL:
        raise _unsolved()
    return np.array([solver.value(pair) for pair in pairs], dtype=np.int64)


def _unsolved() -> RefusedError:
    return RefusedError(
        "the solver did not prove a nearest graph. Use fewer nodes, or check that the degrees are those of a graph.",
        code="networks.unsolved",
    )
