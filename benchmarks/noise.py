"""How fast the exact samplers are, beside OpenDP's exact ones and numpy's inexact ones, in one run.

    python benchmarks/noise.py [draws] [draws for OpenDP]

Ours and numpy's figures are the best of several rounds, OpenDP's is one round (it takes seconds).  The last
column is the floor that the ratios are held to; the exit status is 1 if one is missed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import record

from policygraph.curator.noise import SecureRng, discrete_gaussian, discrete_laplace

SCALES = (1, 10, 100, 1000)
ROUNDS = 7
Work = Callable[[], object]


def seconds(work: Work, rounds: int) -> float:
    """Least time of several rounds: what the machine can do when others leave it alone."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def row(
    name: str, first: Work, ours: Work, exact: Work, inexact: Work, share: float, floors: list[float]
) -> bool:
    """Print one line of the table and say whether its floors are met; ``share`` is OpenDP's part of the draws."""
    build = seconds(first, 1)
    own, peer, fast = seconds(ours, ROUNDS), seconds(exact, 1) / share, seconds(inexact, ROUNDS)
    ratios = [peer / own, fast / own]
    record.figure(f"{name}, s", own)
    record.ratio(f"{name}, times as fast as OpenDP", ratios[0])
    record.ratio(f"{name}, times as fast as numpy", ratios[1])
    good = all(ratio >= floor for ratio, floor in zip(ratios, floors))
    print(
        f"{name:16}{build * 1e3:9.1f}{own * 1e3:10.1f}{peer * 1e3:10.0f}{fast * 1e3:10.1f}{ratios[0]:10.0f}"
        f"{ratios[1]:9.2f}   {', '.join(f'{f:.3g}' for f in floors)} {'met' if good else 'MISSED'}",
        flush=True,
    )
    return good


def main() -> int:
    """Print the table of ratios and return 1 if a floor is missed."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    few = int(sys.argv[2]) if len(sys.argv) > 2 else draws
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import opendp.prelude as dp
    dp.enable_features("contrib")
    vectors = dp.vector_domain(dp.atom_domain(T="i32"))
    source, generator, zeros = SecureRng(), np.random.default_rng(), [0] * few
    print(
        f"{draws:,} draws (OpenDP {few:,}, scaled); milliseconds, then how many times as fast as the others"
    )
    print(
        f"{'':16}{'1st draw':>9}{'ours':>10}{'OpenDP':>10}{'numpy':>10}{'x OpenDP':>10}{'x numpy':>9}   floors"
    )
    good = True
    for s in SCALES:
        laplace = dp.m.make_laplace(vectors, dp.l1_distance(T="i32"), scale=float(s))
        good &= row(
            f"Laplace {s}",
            partial(discrete_laplace, s, 1, source),
            partial(discrete_laplace, s, draws, source),
            partial(laplace, zeros),
            partial(generator.laplace, 0.0, s, draws),
            few / draws,
            [100, 1 / 3],
        )
    for s in SCALES:
        gaussian = dp.m.make_gaussian(vectors, dp.l2_distance(T="f64"), scale=float(s))
        good &= row(
            f"Gaussian {s}",
            partial(discrete_gaussian, s * s, 1, source),
            partial(discrete_gaussian, s * s, draws, source),
            partial(gaussian, zeros),
            partial(generator.normal, 0.0, s, draws),
            few / draws,
            [50],
        )
    record.save("noise")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
