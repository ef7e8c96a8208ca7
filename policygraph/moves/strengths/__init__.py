"""Three strengths of induced neighbours, and the cap on records.

========== ============================================================ =============================
strength   moves                                                        module
========== ============================================================ =============================
markov     minimal, at most four non-zero cells, all +1 or -1           ``markov``
positive   minimal, with a removed and an added record that no          ``positive``
           shorter change exchanges (Markov moves included)
worst      every minimal move                                           ``graver``
cap m      any of them with at most m records added and m removed       ``capped``
========== ============================================================ =============================

Each is contained in the next. Proofs are in docs/explanation/proofs/strengths.md. Works on plain integer matrices (one column
for each cell).
"""
