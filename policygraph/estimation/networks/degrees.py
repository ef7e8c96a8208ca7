"""Public degrees as post-processing takes them. Owns :class:`PublicDegrees`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.errors import ConstraintError, InputError
from policygraph.model.constraints.networks import Degrees, digraphical, graphical
from policygraph.model.domain import Label, Network
from policygraph.model.policy import Policy

Ints = npt.NDArray[np.int64]
UNKNOWN = -1
"""Stands for a degree that is not public."""


@dataclass(frozen=True, eq=False)
class PublicDegrees:
    """The public degrees of a network, checked.

    Attributes
    ----------
    network
        The network.
    out, into
        Degree of each node in node order, -1 where it is not public; the same array twice if the network is undirected.

    Examples
    --------
    >>> PublicDegrees.of(Network(["a", "b", "c"]), {"a": 2, "b": 1, "c": 1}).out.tolist()
    [2, 1, 1]
    >>> PublicDegrees.of(Network(3), [2, 2, 1])
    Traceback (most recent call last):
    ...
    policygraph.errors.ConstraintError: no graph has these degrees: they have the odd sum 5. ...
    """

    network: Network
    out: Ints
    into: Ints

    @classmethod
    def of(
        cls,
        network: Network,
        degrees: Sequence[int] | Mapping[Label, int] | Any = None,
        *,
        out: Sequence[int] | Mapping[Label, int] | Any = None,
        into: Sequence[int] | Mapping[Label, int] | Any = None,
    ) -> PublicDegrees:
        """Read degrees: a list in node order, or a mapping from some nodes to their degrees.

        Parameters
        ----------
        network
            The network.
        degrees
            Degrees of an undirected network.
        out, into
            Degrees of a directed network; a side that is not given is not public.

        Raises
        ------
        InputError
            When a node is unknown, or the wrong side was given.
        ConstraintError
            When no graph has these degrees.
        """
        if network.directed == (degrees is not None) or (
            not network.directed and (out is not None or into is not None)
        ):
            raise InputError(
                f"degrees of {network!r}: expected "
                + ("out= and into=." if network.directed else "one degree for each node."),
                code="networks.side",
            )
        if network.directed:
            found = cls(network, _read(network, out, "out-degrees"), _read(network, into, "in-degrees"))
        else:
            both = _read(network, degrees, "degrees")
            found = cls(network, both, both)
        found._check()
        return found

    @classmethod
    def from_policy(cls, policy: Policy) -> PublicDegrees:
        """Take the degrees whose values a policy publishes."""
        network = policy.domain
        if not isinstance(network, Network):
            raise InputError(
                "the policy is over a table: expected one over a network.", code="networks.domain"
            )
        sides = {side: np.full(network.order, UNKNOWN, dtype=np.int64) for side in ("both", "out", "in")}
        for fact in policy.constraints:
            if isinstance(fact, Degrees) and (published := fact.values(network)) is not None:
                sides[fact.side][fact.positions(network)] = published
        if network.directed:
            found = cls(network, sides["out"], sides["in"])
        else:
            found = cls(network, sides["both"], sides["both"])
        found._check()
        return found

    @property
    def complete(self) -> bool:
        """Whether every degree is public."""
        return bool(np.all(self.out >= 0) and np.all(self.into >= 0))

    def need_all(self) -> None:
        """Raise when a degree is not public."""
        for side, name in (
            (self.out, "degree"),
            (self.into, "degree" if not self.network.directed else "in-degree"),
        ):
            missing = np.flatnonzero(side < 0)
            if len(missing):
                raise InputError(
                    f"the {name} of node {self.network.nodes[int(missing[0])]!r} is not given ({len(missing)} in all): expected "
                    "the public degree of every node: in the policy, pg.Degrees(dict(graph.degree())) or equals in a file; or as an "
                    "argument here, --degrees on the command line.",
                    code="networks.partial",
                    nodes=missing.tolist(),
                )

    def _check(self) -> None:
        network = self.network
        if network.directed:
            extra = 0 if network.loops else 1
            most, kinds = network.order - extra, (("out-degree", self.out), ("in-degree", self.into))
        else:
            most, kinds = (
                network.order - 1 + 2 * int(network.loops),
                (("degree", self.out), ("degree", self.out)),
            )
        for kind, side in kinds:
            if not network.multiple and int(side.max(initial=0)) > most:
                at = int(np.argmax(side))
                raise _impossible(
                    f"the {kind} {int(side[at])} of node {network.nodes[at]!r} does not fit {network.order} nodes"
                )
        if not self.complete:
            return
        if network.directed:
            if int(self.out.sum()) != int(self.into.sum()):
                raise _impossible(
                    f"the out-degrees sum to {int(self.out.sum())}, the in-degrees to {int(self.into.sum())}"
                )
            if not network.multiple and not digraphical(self.out, self.into, loops=network.loops):
                raise _impossible("they fail the condition of Fulkerson, Chen and Anstee (or Gale and Ryser)")
        else:
            if int(self.out.sum()) % 2:
                raise _impossible(f"they have the odd sum {int(self.out.sum())}")
            if not network.multiple and not network.loops and not graphical(self.out):
                raise _impossible("they fail the condition of Erdős and Gallai")


def _impossible(why: str) -> ConstraintError:
    return ConstraintError(
        f"no graph has these degrees: {why}. Correct the published degrees.", code="networks.infeasible"
    )


def _read(network: Network, given: Any, what: str) -> Ints:
    found = np.full(network.order, UNKNOWN, dtype=np.int64)
    if given is None:
        return found
    if isinstance(given, Mapping):
        places = [network.code(node) for node in given]
        values = list(given.values())
    else:
        values = np.asarray(given).tolist()
        if not isinstance(values, list) or len(values) != network.order:
            raise InputError(
                f"{what}: {len(values) if isinstance(values, list) else 'no'} values for {network.order} nodes: expected one "
                "for each node, or a mapping from nodes to degrees.",
                code="networks.degrees",
            )
        places = list(range(network.order))
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise InputError(
                f"{what} has the value {value!r}: expected whole numbers >= 0.",
                code="networks.degrees",
                value=value,
            )
    found[places] = values
    return found
