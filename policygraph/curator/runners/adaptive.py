"""Chooses tables by their distance from estimates, with the exponential mechanism, and measures them with noise, within the loss of the mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from policygraph.curator.histogram import Histogram, Ints
from policygraph.curator.noise import Rng, discrete_gaussian, discrete_laplace
from policygraph.curator.noise.inversion import InversionTable
from policygraph.curator.runners.exponential import uniform
from policygraph.errors import RefusedError
from policygraph.mechanisms.adaptive.mechanism import ALL_ONES, CHOICE, AdaptiveNoise, Levels
from policygraph.mechanisms.adaptive.plan import UNITS, Choosing, Measuring
from policygraph.model.loss import Epsilon

MOST = 1 << 61
"""What estimates of the cells of a table may sum to; counts sum to less as well (``AdaptiveNoise.reach``), so that differences fit into 64 bits."""


def draw(ready: AdaptiveNoise, data: Histogram, rng: Rng, n: int) -> list[Ints]:
    """Return n outputs: the known tables, then for each step what was done, its share of the loss, and the choice or the noisy numbers."""
    found = data.answers(ready.exact)
    exact = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
    names = {mask: ready.lattice.names(mask) for mask in ready.candidates}
    counted = data.cuboids(list(names.values()))
    tables = {mask: counted[name] for mask, name in names.items()}
    return [_run(ready, data, exact, tables, rng) for _ in range(n)]


def _run(ready: AdaptiveNoise, data: Histogram, exact: Ints, tables: Mapping[int, Ints], rng: Rng) -> Ints:
    """Do the steps of a plan as long as the loss pays for them; the plan sees what is returned here, and nothing else."""
    steps, left = ready.steps(exact), UNITS
    out: list[Ints] = [exact]
    reply: Any = None
    while True:
        try:
            step = steps.send(reply)
        except StopIteration:
            return np.concatenate(out)
        if not 0 < step.share <= left:
            return np.concatenate(out)
        left -= step.share
        if isinstance(step, Choosing):
            reply = choose(ready, step, tables, rng)
            out.append(np.array([CHOICE, step.share, step.masks[reply]], dtype=np.int64))
        else:
            reply = measured(ready, step, data, tables, rng)
            code = ALL_ONES if step.query is ready.first else ready.lattice.mask(step.query.sets[0])
            out += [np.array([code, step.share], dtype=np.int64), reply]


def choose(ready: AdaptiveNoise, step: Choosing, tables: Mapping[int, Ints], rng: Rng) -> int:
    """Draw the position of one table, with chances proportional to exp(rate * score), exactly."""
    scores, moved = [], Fraction(0)
    for mask, estimate, penalty, weight in zip(
        step.masks, step.estimates, step.penalties, step.weights, strict=True
    ):
        proof = ready.score_proofs[mask]
        proof.check_made_for(ready.table_queries[mask], ready.policy)
        moved = max(moved, abs(index(weight)) * proof.power)
        scores.append(index(weight) * (apart(tables[mask], estimate) - index(penalty)))
    below = max(scores) - np.array(scores, dtype=object)
    levels = sorted(set(below.tolist()))
    counts = tuple(int((below == d).sum()) for d in levels)
    chances = Levels(ready.rate_of(moved, step.share), tuple(levels), counts)
    level = int(_thresholds(chances).draw(1, rng)[0]) if len(levels) > 1 else 0
    members = np.flatnonzero(below == levels[level])
    return int(members[uniform(len(members), 1, rng)[0]])


def apart(table: Ints, estimate: Ints) -> int:
    """The sum of absolute differences of a table and whole numbers, exactly: no sum is too large, and nothing is rounded, whatever the numbers are.

    Examples
    --------
    >>> apart(np.array([3, 0]), np.array([1, 2**62]))
    1152921504606846978
    """
    if estimate.shape != table.shape or estimate.dtype != np.int64:
        raise RefusedError("an estimate of another shape, or not in whole numbers.", code="adaptive.estimate")
    most = MOST // max(1, table.size)
    return int(np.abs(table - np.clip(estimate, -most, most)).sum())


@lru_cache(maxsize=16)
def _thresholds(chances: Levels) -> InversionTable:
    """Kept for audits, which draw one choice many times."""
    return InversionTable(chances, limit=len(chances.below))


def measured(
    ready: AdaptiveNoise, step: Measuring, data: Histogram, tables: Mapping[int, Ints], rng: Rng
) -> Ints:
    """Answer with noise that is scaled to the certificate of the very tables."""
    code = ALL_ONES if step.query is ready.first else ready.lattice.mask(step.query.sets[0])
    proof = ready.proofs[code]
    proof.check_made_for(step.query, ready.policy)
    if proof.norm != ready.loss.norm:
        raise RefusedError(f"a sensitivity in {proof.norm} does not fit {ready.loss}.", code="mechanism.norm")
    answers = data.answers([step.query])[0] if code == ALL_ONES else tables[code]
    draws = discrete_laplace if isinstance(ready.loss, Epsilon) else discrete_gaussian
    noise: Ints = draws(ready.parameter_of(proof, step.share), answers.size, rng)
    return noise + answers
