"""Three strengths of induced neighbours, and the cap on records; start here.

========== ============================================================ =============================
strength   moves                                                        module
========== ============================================================ =============================
markov     minimal, at most four non-zero cells, all +1 or -1           ``strengths_markov``
positive   minimal, with a removed and an added record that no          ``strengths_positive``,
           shorter change exchanges (Markov moves included)             ``strengths_positive_list``
worst      every minimal move                                           ``graver``
cap m      any of them with at most m records added and m removed       ``strengths_capped``
========== ============================================================ =============================

Each is contained in the next. Proofs are in docs/explanation/proofs/strengths.md. Works on plain integer matrices (one column
for each cell).
"""

from __future__ import annotations

from policygraph.moves.strengths.bracket import Occurrence
from policygraph.moves.strengths.capped import capped_moves, longest_capped
from policygraph.moves.strengths.markov import is_markov, longest_markov, markov_moves
from policygraph.moves.strengths.positive import Reason, is_positive, positive_table
from policygraph.moves.strengths.positive_list import longest_positive, positive_moves

__all__ = [
    "Occurrence",
    "Reason",
    "capped_moves",
    "is_markov",
    "is_positive",
    "longest_capped",
    "longest_markov",
    "longest_positive",
    "markov_moves",
    "positive_moves",
    "positive_table",
]
