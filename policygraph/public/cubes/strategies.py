"""Strategies by name. Owns :func:`strategy_named`."""

from __future__ import annotations

from collections.abc import Callable

from policygraph.errors import InputError
from policygraph.public.cubes.choose import Strategy
from policygraph.public.cubes.cover import BMax, PMost
from policygraph.public.cubes.simple import All, Base
from policygraph.public.cubes.unequal import Fourier, Unequal

__all__ = ["All", "BMax", "Base", "Fourier", "PMost", "Unequal", "strategy_named"]

NAMED: dict[str, Callable[[], Strategy]] = {
    "all": All,
    "base": Base,
    "bmax": BMax,
    "unequal": Unequal,
    "unequal-max": lambda: Unequal("max"),
    "fourier": Fourier,
}


def strategy_named(name: str) -> Strategy:
    """Make a strategy with its defaults.

    Parameters
    ----------
    name
        One of ``all``, ``base``, ``bmax``, ``unequal``, ``unequal-max``, ``fourier``.

    Examples
    --------
    >>> strategy_named("unequal-max")
    Unequal(goal='max', cells=False, seconds=3.0, name='unequal')
    """
    if name not in NAMED:
        hint = " PMost needs a bound: PMost(bound=...)." if name == "pmost" else ""
        raise InputError(
            f"strategy {name!r}: expected one of {', '.join(NAMED)}, or a Strategy.{hint}",
            code="cubes.strategy",
            value=name,
        )
    return NAMED[name]()
