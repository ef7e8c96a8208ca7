"""What every plug-in must keep, as checks that anybody can run on theirs; start at ``mechanisms``.

A mechanism, a cube strategy, a reduction or a partitioner written outside the library is used like one of ours once it passes.
The checks try what can be tried on small cases; a proof they are not.
"""

from policygraph.conformance.contracts import (
    check_mechanism,
    check_partitioner,
    check_reduction,
    check_strategy,
)
from policygraph.conformance.report import CheckedRule, Conformance

__all__ = [
    "CheckedRule",
    "Conformance",
    "check_mechanism",
    "check_partitioner",
    "check_reduction",
    "check_strategy",
]
