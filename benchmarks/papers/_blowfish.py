"""The algorithms of the data-dependent Blowfish paper over a line, as printed but for the partitioning step, which is a sound one.

The public reference implementation of DAWA's first step does not keep its epsilon (see ``benchmarks/histograms.py``); here the
partition comes from ``pg.Intervals`` or ``pg.Matchings``, whose losses are proved (``docs/explanation/proofs/interval-partition.md``
and ``matching-partition.md``). As in the paper, buckets are counted once and
their counts spread evenly.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import policygraph as pg
from policygraph.curator.histogram import Histogram
from policygraph.curator.runners.partitioned import choose
from policygraph.mechanisms.partitioned.partitioners.base import Partitioner

METHODS = ("Laplace", "DAWA", "Transformed+Laplace", "DAWA+Transformed", "Matching+Transformed")
SHARE = {"DAWA": Fraction(1, 4), "DAWA+Transformed": Fraction(1, 2), "Matching+Transformed": Fraction(1, 2)}
"""The part of epsilon for the partition, section 6; the paper prints none for the matching, which takes that of the other transformed method."""
COLOURS = dict(zip(METHODS, ("tab:grey", "tab:orange", "tab:green", "tab:blue", "tab:red")))


def once(
    name: str, counts: np.ndarray, epsilon: Fraction, rng: pg.SeededRng, share: Fraction | None = None
) -> np.ndarray:
    """One noisy histogram: Laplace and DAWA are epsilon/2-differentially private, the others (epsilon, line)-Blowfish private."""
    domain = pg.Domain({"x": len(counts)})
    query = pg.queries.identity(domain)
    line = pg.Policy(domain, pg.PolicyGraph.line(domain))
    if name == "Laplace":
        ready = pg.Laplace().calibrate(query, pg.Policy(domain), pg.Epsilon(epsilon / 2))
        return np.asarray(ready.run(counts, rng).values(), dtype=float)
    if name == "Transformed+Laplace":
        ready = pg.TransformedLaplace().calibrate(query, line, pg.Epsilon(epsilon))
        return np.asarray(ready.run(counts, rng).values(), dtype=float)
    whole = epsilon / 2 if name == "DAWA" else epsilon
    first = whole * (SHARE[name] if share is None else share)
    partitioner: Partitioner = pg.Matchings() if name.startswith("Matching") else pg.Intervals()
    # A record that moves along an edge changes two counts, one that appears changes one.
    changes = Fraction(1) if name == "DAWA" else Fraction(2)
    chooser = partitioner.calibrate(domain.size, changes, pg.Epsilon(first), float(1 / (whole - first)))
    [partition] = choose(chooser, Histogram.of(domain, counts), rng)
    policy = pg.Policy(domain) if name == "DAWA" else line
    ready = pg.Partitioned(partition).calibrate(query, policy, pg.Epsilon(whole - first))
    return np.asarray(ready.run(counts, rng).values(), dtype=float)


def error(
    name: str, counts: np.ndarray, epsilon: Fraction, runs: int, key: str, share: Fraction | None = None
) -> float:
    """Mean squared error of a cell over some runs."""
    rng = pg.SeededRng(f"{key} {name} {epsilon} {share}")
    return float(
        np.mean([((once(name, counts, epsilon, rng, share) - counts) ** 2).mean() for _ in range(runs)])
    )
