"""The solvers that estimates call, with settings that give the same result on every machine. Owns :func:`flow_between`, :func:`cp_solver`.

Post-processing: a wrong or missing optimum costs accuracy, never privacy. What privacy rests on goes through ``solver``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def flow_between(
    tails: Ints, heads: Ints, capacities: Any, costs: Any, supply: Ints, demand: Ints
) -> Ints | None:
    """Whole flow of least cost along arcs from supplies to demands; None when there is none.

    Parameters
    ----------
    tails, heads
        Supply and demand that each arc joins, by number.
    capacities, costs
        Most units on each arc, and the cost of one.

    Examples
    --------
    >>> ends = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> flow_between(*ends, np.full(4, 9), np.array([0, 1, 1, 0]), np.array([2, 3]), np.array([1, 4])).tolist()
    [1, 1, 0, 3]

    Notes
    -----
    A network matrix is totally unimodular, so that a flow problem with whole data has a whole optimum.
    """
    from ortools.graph.python import min_cost_flow

    flow = min_cost_flow.SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(
        tails.astype(np.int32), (len(supply) + heads).astype(np.int32), capacities, costs.astype(np.int64)
    )
    nodes = np.arange(len(supply) + len(demand), dtype=np.int32)
    flow.set_nodes_supplies(nodes, np.concatenate([supply, -demand]).astype(np.int64))
    if flow.solve() != flow.OPTIMAL:
        return None
    return np.asarray(flow.flows(np.arange(len(tails), dtype=np.int32)), dtype=np.int64)


def cp_solver() -> Any:
    """CP-SAT with a fixed seed; :meth:`~policygraph.effort.Effort.solve` runs it on one thread within counted work."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False  # a search that Ctrl-C stopped proves nothing
    solver.parameters.random_seed = 1
    return solver
