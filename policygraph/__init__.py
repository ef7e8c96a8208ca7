"""How much noise a privacy policy really needs.

Names are loaded when they are first used, so that ``import policygraph`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from policygraph.version import __version__

if TYPE_CHECKING:
    from policygraph.api import expected_error, release
    from policygraph.errors import (
        BudgetError,
        ConstraintError,
        DataError,
        InputError,
        LedgerError,
        PolicyGraphError,
        RefusedError,
    )
    from policygraph.online import OnlineAnswer, OnlineCube
    from policygraph.private.audit import audit
    from policygraph.private.counting.reading import Files
    from policygraph.private.ledger import Ledger
    from policygraph.private.mechanisms import (
        Cube,
        Exponential,
        Gaussian,
        Laplace,
        MatrixMechanism,
        Measured,
        Partitioned,
        Sparse,
        Transformed,
        TransformedConsistent,
        TransformedGaussian,
        TransformedLaplace,
        compare,
    )
    from policygraph.private.mechanisms.networks import StatisticNoise
    from policygraph.private.noise import SecureSource, SeededSource
    from policygraph.private.partition import Intervals, Matchings
    from policygraph.public import query as queries
    from policygraph.public.constraints import (
        Cell,
        Cells,
        Constraint,
        Cuboid,
        Degrees,
        KnownEdges,
        LinearCount,
        StructuralZero,
        Total,
        count,
    )
    from policygraph.public.cubes import strategies as cubes
    from policygraph.public.domain import Domain, Network
    from policygraph.public.files import load
    from policygraph.public.graphs import BOTTOM, PolicyGraph
    from policygraph.public.loss import Epsilon, EpsilonDelta, Rho
    from policygraph.public.measure import Measure
    from policygraph.public.moves.move import Move
    from policygraph.public.node_privacy import NodePrivacy
    from policygraph.public.partition import Partition, z_order
    from policygraph.public.policy import Policy
    from policygraph.public.query import Query
    from policygraph.public.secret_edges import secret_edges
    from policygraph.public.sensitivity import Sensitivity, sensitivity
    from policygraph.published import Release, networks

_WHERE = {
    "policygraph.api": ["expected_error", "release"],
    "policygraph.errors": [
        "BudgetError",
        "ConstraintError",
        "DataError",
        "InputError",
        "LedgerError",
        "PolicyGraphError",
        "RefusedError",
    ],
    "policygraph.online": ["OnlineAnswer", "OnlineCube"],
    "policygraph.private.audit": ["audit"],
    "policygraph.private.counting.reading": ["Files"],
    "policygraph.private.ledger": ["Ledger"],
    "policygraph.private.mechanisms": [
        "Cube",
        "Exponential",
        "Gaussian",
        "Laplace",
        "MatrixMechanism",
        "Measured",
        "Partitioned",
        "Sparse",
        "Transformed",
        "TransformedConsistent",
        "TransformedGaussian",
        "TransformedLaplace",
        "compare",
    ],
    "policygraph.private.mechanisms.networks": ["StatisticNoise"],
    "policygraph.private.noise": ["SecureSource", "SeededSource"],
    "policygraph.private.partition": ["Intervals", "Matchings"],
    "policygraph.public.constraints": [
        "Cell",
        "Cells",
        "Constraint",
        "Cuboid",
        "Degrees",
        "KnownEdges",
        "LinearCount",
        "StructuralZero",
        "Total",
        "count",
    ],
    "policygraph.public.domain": ["Domain", "Network"],
    "policygraph.public.files": ["load"],
    "policygraph.public.graphs": ["BOTTOM", "PolicyGraph"],
    "policygraph.public.loss": ["Epsilon", "EpsilonDelta", "Rho"],
    "policygraph.public.measure": ["Measure"],
    "policygraph.public.moves.move": ["Move"],
    "policygraph.public.node_privacy": ["NodePrivacy"],
    "policygraph.public.partition": ["Partition", "z_order"],
    "policygraph.public.policy": ["Policy"],
    "policygraph.public.query": ["Query"],
    "policygraph.public.secret_edges": ["secret_edges"],
    "policygraph.public.sensitivity": ["Sensitivity", "sensitivity"],
    "policygraph.published": ["Release"],
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "BOTTOM",
    "BudgetError",
    "Cell",
    "Cells",
    "Constraint",
    "ConstraintError",
    "Cube",
    "Cuboid",
    "DataError",
    "Degrees",
    "Domain",
    "Epsilon",
    "EpsilonDelta",
    "Exponential",
    "Files",
    "Gaussian",
    "InputError",
    "Intervals",
    "KnownEdges",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LinearCount",
    "Matchings",
    "MatrixMechanism",
    "Measure",
    "Measured",
    "Move",
    "Network",
    "NodePrivacy",
    "OnlineAnswer",
    "OnlineCube",
    "Partition",
    "Partitioned",
    "Policy",
    "PolicyGraph",
    "PolicyGraphError",
    "Query",
    "RefusedError",
    "Release",
    "Rho",
    "SecureSource",
    "SeededSource",
    "Sensitivity",
    "Sparse",
    "StatisticNoise",
    "StructuralZero",
    "Total",
    "Transformed",
    "TransformedConsistent",
    "TransformedGaussian",
    "TransformedLaplace",
    "__version__",
    "audit",
    "compare",
    "count",
    "cubes",
    "expected_error",
    "load",
    "networks",
    "queries",
    "release",
    "secret_edges",
    "sensitivity",
    "z_order",
]


def __getattr__(name: str) -> Any:
    if name == "queries":
        return import_module("policygraph.public.query")
    if name == "cubes":
        return import_module("policygraph.public.cubes.strategies")
    if name == "networks":
        return import_module("policygraph.published.networks")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'policygraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
