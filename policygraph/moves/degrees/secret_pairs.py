"""Secret edges of a simple network under public facts: node pairs are the records, each joined or not.

Owns the definition of neighbours for a policy graph that only says which edges may not be told from their absence
(``docs/explanation/proofs/networks.md``, Theorem 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from policygraph.effort import SECOND, Effort
from policygraph.errors import RefusedError
from policygraph.model.domain import Network
from policygraph.solver.program import Program

if TYPE_CHECKING:
    from policygraph.model.policy import Policy

__all__ = ["REPAIR_PAIRS", "find_repair", "secret_cells", "touches"]

Ints = npt.NDArray[np.int64]
REPAIR_PAIRS = 20_000
"""Most node pairs among which another way to keep the public facts is looked for."""
REPAIR = 10 * SECOND
"""Work of the solver on one such question."""


def secret_cells(policy: Policy) -> Ints | None:
    """The node pairs whose edge is secret, for a simple network whose graph joins pairs to bottom only; otherwise None.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.model.graphs.secret_edges import secret_edges
    >>> network = pg.Network(4)
    >>> secret_cells(pg.Policy(network, secret_edges(network, [0, 0, 1, 1], inside=True))).tolist()
    [0, 5]
    >>> secret_cells(pg.Policy(network)) is None
    True
    """
    graph = policy.graph
    if graph is None or not isinstance(policy.domain, Network) or policy.domain.capacity != 1:
        return None
    if graph.bottom == "none" or graph.rule.n_edges:
        return None
    return np.fromiter(graph.bottom_cells, dtype=np.int64)


def find_repair(
    policy: Policy,
    table: dict[int, int],
    changed: list[int],
    secret: Ints,
    *,
    effort: Effort | None = None,
) -> bool:
    """Whether some, but not all, of the changed secret edges can change alone, edges that are not secret repairing the facts.

    Parameters
    ----------
    policy
        The policy.
    table
        The edges of the first network, as pairs with count 1.
    changed
        The secret pairs in which the second network differs from it.
    secret
        All secret pairs.
    effort
        Work that may be spent; a question takes ten million units of it at most.

    Raises
    ------
    RefusedError
        When the network is too large to decide it, or the solver needs more work than it may spend.

    Notes
    -----
    This is condition (a) of the definition. With one changed secret pair there is nothing to look for.
    """
    if len(changed) < 2:
        return False
    hidden = np.setdiff1d(secret, np.array(changed, dtype=np.int64))
    fixed = np.union1d(hidden, policy.system.zeros)
    free = np.setdiff1d(np.arange(policy.domain.size, dtype=np.int64), fixed)
    if len(free) > REPAIR_PAIRS:
        raise _undecided(f"{len(free):,} node pairs are more than {REPAIR_PAIRS:,}.")
    signs = np.array([-1 if table.get(int(cell), 0) else 1 for cell in free], dtype=np.int64)
    program = Program([0] * len(free), [1] * len(free))
    for row in policy.system.matrix_on(free) * signs:
        used = np.flatnonzero(row)
        program.add(zip(used.tolist(), row[used].tolist()), 0, 0)
    places = np.searchsorted(free, changed).tolist()
    program.add(dict.fromkeys(places, 1), 1, len(changed) - 1)
    answer = program.find(Effort.of(effort, usual=REPAIR).at_most(REPAIR))
    if answer.status == "unknown":
        raise _undecided("the solver did not settle it with the effort it may spend.")
    return answer.status == "found"


def _undecided(why: str) -> RefusedError:
    return RefusedError(
        f"whether fewer secret edges could change is not decided: {why} Ask about a smaller network.",
        code="move.repairs",
    )


def touches(change: Any, secret: Ints) -> list[int]:
    """The secret pairs that a change of cells touches."""
    return sorted(set(change) & set(secret.tolist()))
