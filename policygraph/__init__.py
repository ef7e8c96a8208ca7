"""How much noise a privacy policy really needs.

Names are loaded when they are first used, so that ``import policygraph`` is quick.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from policygraph.version import __version__

if TYPE_CHECKING:
    from policygraph import attacks, extend, networks
    from policygraph.api import expected_error, release
    from policygraph.attacks.lint import attack
    from policygraph.audit import audit
    from policygraph.compare import compare
    from policygraph.curator.counting.reading import Files
    from policygraph.curator.ledger import Ledger
    from policygraph.curator.noise import SecureRng, SeededRng
    from policygraph.curator.online import OnlineAnswer, OnlineCube
    from policygraph.errors import (
        BudgetError,
        ConstraintError,
        DataError,
        InputError,
        LedgerError,
        PolicyGraphError,
        RefusedError,
    )
    from policygraph.estimation import statistics
    from policygraph.estimation.graphical.records import SyntheticRecords, synthetic_records
    from policygraph.files import load
    from policygraph.mechanisms import (
        Adaptive,
        AdaptiveCube,
        Cube,
        Exponential,
        FreeLunch,
        Gaussian,
        Laplace,
        MatrixMechanism,
        Measured,
        Partitioned,
        Residuals,
        Sparse,
        Transformed,
        TransformedConsistent,
        TransformedGaussian,
        TransformedLaplace,
    )
    from policygraph.mechanisms.cube import strategies as cubes
    from policygraph.mechanisms.partitioned import Partition, z_order
    from policygraph.mechanisms.partitioned.partitioners import Intervals, Matchings
    from policygraph.mechanisms.statistics import StatisticNoise
    from policygraph.model import queries
    from policygraph.model.bins import Bins
    from policygraph.model.constraints import (
        Cell,
        Cells,
        Constraint,
        Cuboid,
        Degrees,
        KnownEdges,
        LinearCount,
        StructuralZero,
        Sums,
        Total,
        count,
    )
    from policygraph.model.domain import Domain, Network
    from policygraph.model.families import Families
    from policygraph.model.graphs import BOTTOM, PolicyGraph
    from policygraph.model.graphs.secret_edges import secret_edges
    from policygraph.model.linked import LinkedTables
    from policygraph.model.linked_units import LinkedUnit
    from policygraph.model.loss import Epsilon, EpsilonDelta, Rho
    from policygraph.model.measure import Measure
    from policygraph.model.node_privacy import NodePrivacy
    from policygraph.model.policy import Policy
    from policygraph.model.queries import Query
    from policygraph.model.units import Unit
    from policygraph.moves.distance import distance
    from policygraph.moves.move import Move
    from policygraph.plan import plan
    from policygraph.release import Release
    from policygraph.report import report
    from policygraph.sensitivity import Sensitivity, sensitivity

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
    "policygraph.curator.online": ["OnlineAnswer", "OnlineCube"],
    "policygraph.attacks.lint": ["attack"],
    "policygraph.audit": ["audit"],
    "policygraph.compare": ["compare"],
    "policygraph.moves.distance": ["distance"],
    "policygraph.model.bins": ["Bins"],
    "policygraph.plan": ["plan"],
    "policygraph.curator.counting.reading": ["Files"],
    "policygraph.curator.ledger": ["Ledger"],
    "policygraph.mechanisms": [
        "AdaptiveCube",
        "Adaptive",
        "Cube",
        "Exponential",
        "FreeLunch",
        "Gaussian",
        "Laplace",
        "MatrixMechanism",
        "Measured",
        "Partitioned",
        "Residuals",
        "Sparse",
        "Transformed",
        "TransformedConsistent",
        "TransformedGaussian",
        "TransformedLaplace",
    ],
    "policygraph.mechanisms.statistics": ["StatisticNoise"],
    "policygraph.curator.noise": ["SecureRng", "SeededRng"],
    "policygraph.mechanisms.partitioned.partitioners": ["Intervals", "Matchings"],
    "policygraph.model.constraints": [
        "Cell",
        "Cells",
        "Constraint",
        "Cuboid",
        "Degrees",
        "KnownEdges",
        "LinearCount",
        "StructuralZero",
        "Sums",
        "Total",
        "count",
    ],
    "policygraph.model.domain": ["Domain", "Network"],
    "policygraph.model.families": ["Families"],
    "policygraph.files": ["load"],
    "policygraph.model.graphs": ["BOTTOM", "PolicyGraph"],
    "policygraph.model.linked": ["LinkedTables"],
    "policygraph.model.linked_units": ["LinkedUnit"],
    "policygraph.model.loss": ["Epsilon", "EpsilonDelta", "Rho"],
    "policygraph.model.measure": ["Measure"],
    "policygraph.moves.move": ["Move"],
    "policygraph.model.node_privacy": ["NodePrivacy"],
    "policygraph.mechanisms.partitioned": ["Partition", "z_order"],
    "policygraph.model.policy": ["Policy"],
    "policygraph.model.queries": ["Query"],
    "policygraph.model.units": ["Unit"],
    "policygraph.model.graphs.secret_edges": ["secret_edges"],
    "policygraph.estimation.linked": ["agreeing"],
    "policygraph.estimation.graphical.records": ["SyntheticRecords", "synthetic_records"],
    "policygraph.sensitivity": ["Sensitivity", "sensitivity"],
    "policygraph.release": ["Release"],
    "policygraph.report": ["report"],
}
_FORMER = {"SecureSource": "SecureRng", "SeededSource": "SeededRng"}
"""Names of earlier versions, which stay."""
_MODULES = {
    "attacks": "policygraph.attacks",
    "cubes": "policygraph.mechanisms.cube.strategies",
    "extend": "policygraph.extend",
    "networks": "policygraph.networks",
    "queries": "policygraph.model.queries",
    "statistics": "policygraph.estimation.statistics",
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "BOTTOM",
    "Adaptive",
    "AdaptiveCube",
    "Bins",
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
    "Families",
    "Files",
    "FreeLunch",
    "Gaussian",
    "InputError",
    "Intervals",
    "KnownEdges",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LinearCount",
    "LinkedTables",
    "LinkedUnit",
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
    "Residuals",
    "Rho",
    "SecureRng",
    "SeededRng",
    "Sensitivity",
    "Sparse",
    "StatisticNoise",
    "StructuralZero",
    "Sums",
    "SyntheticRecords",
    "Total",
    "Transformed",
    "TransformedConsistent",
    "TransformedGaussian",
    "TransformedLaplace",
    "Unit",
    "__version__",
    "agreeing",
    "attack",
    "attacks",
    "audit",
    "compare",
    "count",
    "cubes",
    "distance",
    "expected_error",
    "extend",
    "load",
    "networks",
    "plan",
    "queries",
    "release",
    "report",
    "secret_edges",
    "sensitivity",
    "statistics",
    "synthetic_records",
    "z_order",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _FORMER:
        name = _FORMER[name]
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'policygraph' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Functions that are named like a room stay functions: ``pg.sensitivity`` is one, whatever was imported before."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _HOME):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
