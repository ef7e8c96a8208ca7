"""Node privacy: all edges of one node, or of the nodes of one household, may change. Owns :class:`NodePrivacy`.

It is no :class:`Policy`: linear queries have no useful sensitivity under it, and asking for one is refused. What can be released
is listed in ``sensitivity.statistics``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

from policygraph.errors import InputError, RefusedError
from policygraph.model.domain import Network
from policygraph.model.queries.base import fingerprint
from policygraph.model.system import System

OF_POLICIES = frozenset(
    {"at_most_records", "constraints", "definition", "graph", "moves", "strength", "with_strength", "without"}
)


@dataclass(frozen=True)
class NodePrivacy:
    """Two networks are neighbours when they differ only in edges at one node, or at the nodes of one household.

    Attributes
    ----------
    domain
        The network. Its node set is public; who is joined to whom is not.
    together
        The most nodes that are hidden together, such as the persons of a household, or the accounts of a person. Which these are need not be known.
    unknown
        Edges at nodes outside the network are an error.

    Examples
    --------
    >>> policy = NodePrivacy(Network(3))
    >>> policy.are_neighbours([1, 1, 0], [0, 0, 0]), policy.are_neighbours([1, 1, 1], [0, 0, 0])
    (True, False)
    >>> bool(NodePrivacy(Network(3), together=2).are_neighbours([1, 1, 1], [0, 0, 0]))
    True
    """

    domain: Network
    together: int = 1
    unknown: str = field(default="error", init=False)

    def __post_init__(self) -> None:
        if isinstance(self.together, bool) or not isinstance(self.together, int) or self.together < 1:
            raise InputError(
                f"together={self.together!r}: expected how many nodes are hidden together at most, a whole number >= 1.",
                code="nodes.together",
                value=self.together,
            )
        if (
            not isinstance(self.domain, Network)
            or self.domain.directed
            or self.domain.loops
            or self.domain.multiple
        ):
            raise InputError(
                f"node privacy over {self.domain!r}: expected an undirected network without loops and multiple edges.",
                code="nodes.domain",
                value=self.domain,
            )

    def are_neighbours(self, a: Any, b: Any) -> bool:
        """Whether two different networks, given as counts of the pairs, differ only at one node, or at so many as are hidden together."""
        changed = [cell for cell, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        return bool(changed) and _covered([set(self.domain.cell(cell)) for cell in changed], self.together)

    def __getattr__(self, name: str) -> NoReturn:
        # What the engine for linear queries would ask of a policy; answering it, or leaving it to a default, would let edge privacy pass for this.
        if name in OF_POLICIES:
            raise RefusedError(
                "no sensitivity of a linear query is known under node privacy: one node can change as many edges as there are "
                "nodes. Release pg.queries.ProjectedDegreeTail(network, cap).",
                code="nodes.linear",
            )
        raise AttributeError(name)

    @cached_property
    def system(self) -> System:
        """No public facts."""
        return System(self.domain, ())

    @cached_property
    def fingerprint(self) -> str:
        """Stable name of the policy."""
        return fingerprint(self.to_spec())

    def to_spec(self) -> dict[str, Any]:
        """Plain form for fingerprints and releases."""
        return {
            "network": self.domain.to_spec(),
            "neighbours": {"nodes": True if self.together == 1 else self.together},
        }

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> NodePrivacy | None:
        """Make it from its plain form; None where that is of another policy.

        Examples
        --------
        >>> policy = NodePrivacy(Network(3))
        >>> NodePrivacy.from_spec(policy.to_spec()) == policy, NodePrivacy.from_spec({"network": {"nodes": 3}})
        (True, None)
        """
        nodes = spec.get("neighbours", {}).get("nodes")
        if not nodes:
            return None
        network = dict(spec["network"])
        return cls(Network(network.pop("nodes"), **network), 1 if nodes is True else nodes)


def _covered(pairs: list[set[Any]], nodes: int) -> bool:
    """Whether each pair has an end among so many nodes: one end of the first pair is among them."""
    if not pairs:
        return True
    return nodes > 0 and any(
        _covered([pair for pair in pairs if end not in pair], nodes - 1) for end in pairs[0]
    )
