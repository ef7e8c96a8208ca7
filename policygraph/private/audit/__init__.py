"""Finds leaks in any mechanism; start at ``harness``, or at ``exact`` for what needs no sampling."""

from policygraph.private.audit.draws import noisy_many
from policygraph.private.audit.enumeration import exact_audit
from policygraph.private.audit.exact import ExactReport, exact_check, exact_epsilon, exact_loss
from policygraph.private.audit.harness import audit
from policygraph.private.audit.pairs import Pair, neighbour_pairs
from policygraph.private.audit.report import AuditReport, Finding

__all__ = [
    "AuditReport",
    "ExactReport",
    "Finding",
    "Pair",
    "audit",
    "exact_audit",
    "exact_check",
    "exact_epsilon",
    "exact_loss",
    "neighbour_pairs",
    "noisy_many",
]
