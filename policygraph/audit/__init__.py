"""Finds leaks in any mechanism; start at ``harness``, or at ``exact`` for what needs no sampling."""

from policygraph.audit.draws import noisy_many
from policygraph.audit.exact import ExactReport, exact_audit, exact_check, exact_epsilon, exact_loss
from policygraph.audit.harness import audit
from policygraph.audit.pairs import Pair, neighbour_pairs
from policygraph.audit.report import AuditReport, Finding

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
