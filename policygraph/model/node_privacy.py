"""Node privacy: all edges of one node may change. Owns :class:`NodePrivacy`.

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
    """Two networks are neighbours when they differ only in edges at one node.

    Attributes
    ----------
    domain
        The network. Its node set is public; who is joined to whom is not.
    unknown
        Edges at nodes outside the network are an error.

    Examples
    --------
    >>> policy = NodePrivacy(Network(3))
    >>> policy.are_neighbours([1, 1, 0], [0, 0, 0]), policy.are_neighbours([1, 1, 1], [0, 0, 0])
    (True, False)
    """

    domain: Network
    unknown: str = field(default="error", init=False)

    def __post_init__(self) -> None:
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
        """Whether two different networks, given as counts of the pairs, differ only at one node."""
        changed = [cell for cell, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        ends = [set(self.domain.cell(cell)) for cell in changed]
        return bool(ends) and bool(set.intersection(*ends))

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
        return {"network": self.domain.to_spec(), "neighbours": {"nodes": True}}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> NodePrivacy | None:
        """Make it from its plain form; None where that is of another policy.

        Examples
        --------
        >>> policy = NodePrivacy(Network(3))
        >>> NodePrivacy.from_spec(policy.to_spec()) == policy, NodePrivacy.from_spec({"network": {"nodes": 3}})
        (True, None)
        """
        if not spec.get("neighbours", {}).get("nodes"):
            return None
        network = dict(spec["network"])
        return cls(Network(network.pop("nodes"), **network))
