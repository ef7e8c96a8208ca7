"""Noise whose scale is told by the true total, which is not public."""

from __future__ import annotations

from fractions import Fraction

import policygraph as pg
from policygraph.curator.noise import discrete_laplace

__all__ = ["grown", "shrunk"]


def shrunk():
    """Scale n / 1000: right for one data set, and next to nothing for a small one."""
    return _case(lambda total: Fraction(max(total, 1), 1000))


def grown():
    """Scale 1 + n: never too small for the change of the answers, and still the spread tells the total."""
    return _case(lambda total: Fraction(1 + total))


def _case(scale):
    domain = pg.Domain({"age": 4})

    def noisy(table, n, source):
        return table + discrete_laplace(scale(int(table.sum())), (n, len(table)), source)

    return noisy, pg.Policy(domain), pg.queries.identity(domain)
