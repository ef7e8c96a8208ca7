"""Generated histograms: a family on which estimates were settled, and another one that was kept aside.

Each shape is a density over n cells; :func:`histograms` draws records from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

Rng = np.random.Generator
Densities = dict[str, np.ndarray]


def development(n: int, rng: Rng) -> Densities:
    """Shapes on which the choices of adaptive histograms were made."""
    at = np.arange(n) / n
    cuts = np.sort(rng.choice(np.arange(1, n), 11, replace=False))
    blocks = np.repeat(rng.choice([0, 1, 8, 60], 12), np.diff(np.concatenate([[0], cuts, [n]])))
    even = np.repeat(rng.choice([0, 1, 10, 80], 16), -(-n // 16))[:n]
    zipf = 1 / np.arange(1, n + 1) ** 1.2
    shuffled = rng.permutation(zipf)
    spikes = np.zeros(n)
    spikes[rng.choice(n, n // 50, replace=False)] = rng.pareto(1.2, n // 50) + 0.1
    rough = rng.gamma(0.5, 1, n)
    heaped = np.exp(-(((at - 0.35) / 0.15) ** 2))
    heaped[::10] *= 6
    return {
        "two bumps": np.exp(-(((at - 0.3) / 0.07) ** 2)) + 0.4 * np.exp(-(((at - 0.7) / 0.15) ** 2)),
        "blocks": blocks + 1e-9,
        "even blocks": even + 1e-9,
        "zipf sorted": zipf,
        "zipf shuffled": shuffled,
        "spikes": spikes,
        "spikes on flat": spikes / spikes.sum() + 0.5 / n,
        "flat": np.ones(n),
        "saw": (at * 7) % 1,
        "rough": rough,
        "heaped": heaped,
        "half rough": np.where(at < 0.5, rng.gamma(0.4, 1, n), 0.02),
    }


def held_out(n: int, rng: Rng) -> Densities:
    """Shapes that no choice was made on."""
    at = np.arange(n) / n
    places = np.arange(n)
    clusters = np.zeros(n)
    for centre in rng.choice(n, 9, replace=False):
        clusters += rng.pareto(1.5) * np.exp(-np.abs(places - centre) / (1 + rng.random() * 8))
    plateau = np.full(n, 0.02)
    plateau[n // 3 : n // 3 + n // 11] = 3
    plateau[n // 2] = 40
    gaps = np.zeros(n)
    place = 1
    while place < n:
        gaps[place] = 1000 / place**0.5
        place = int(place * 1.5) + 1
    return {
        "lognormal": np.exp(-0.5 * ((np.log(at + 1e-3) + 2) / 0.6) ** 2) / (at + 1e-3),
        "telegraph": np.where(np.cumsum(rng.random(n) < 6 / n) % 2, 1.0, 0.05),
        "u-shape": (at + 0.002) ** -0.6 * (1.002 - at) ** -0.6,
        "clusters": clusters,
        "comb": np.where(places % 16 == 5, 1.0, 0.03),
        "geometric": np.exp(-at * 12),
        "triangle": 1 - np.abs(2 * at - 1),
        "dirichlet": rng.gamma(0.08, 1, n),
        "walk": np.abs(np.cumsum(rng.normal(size=n))),
        "holes": np.where(rng.random(n) < 0.9, 1.0, 0.0),
        "plateau and peak": plateau,
        "waves": 1 + np.sin(at * 40),
        "gaps": gaps,
    }


def histograms(
    family: Callable[[int, Rng], Densities], n: int, seed: int, sizes: tuple[int, ...]
) -> Iterator[tuple[str, int, np.ndarray]]:
    """Name, number of records and cells of each shape of a family."""
    rng = np.random.default_rng([seed, n])
    for name, density in family(n, rng).items():
        for records in sizes:
            yield name, records, rng.multinomial(records, density / density.sum()).astype(np.int64)
