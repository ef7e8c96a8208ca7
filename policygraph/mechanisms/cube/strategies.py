"""Strategies by name. Owns :func:`strategy_named`."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from policygraph.errors import InputError
from policygraph.mechanisms.cube.cover import BMax, PMost
from policygraph.mechanisms.cube.simple import All, Base
from policygraph.mechanisms.cube.unequal import Fourier, Unequal
from policygraph.transforms.cuboids.choose import CubeStrategy

__all__ = ["All", "BMax", "Base", "Fourier", "PMost", "Unequal", "strategy_named"]

NAMED: dict[str, Callable[[], CubeStrategy]] = {
    "all": All,
    "base": Base,
    "bmax": BMax,
    "unequal": Unequal,
    "unequal-max": lambda: Unequal("max"),
    "fourier": Fourier,
}


def strategy_named(name: str) -> CubeStrategy:
    """Make a strategy with its defaults.

    Parameters
    ----------
    name
        One of ``all``, ``base``, ``bmax``, ``unequal``, ``unequal-max``, ``fourier``.

    Examples
    --------
    >>> strategy_named("unequal-max")
    Unequal(goal='max', cells=False, seconds=None, name='unequal', work=None)
    """
    if not isinstance(name, str) or name not in NAMED:
        near = get_close_matches(str(name).lower(), NAMED, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        if isinstance(name, type):
            hint = f" A strategy has brackets: {name.__name__}()."
        elif name == "pmost":
            hint = " PMost needs a bound: PMost(bound=...)."
        raise InputError(
            f"strategy {name!r}: expected one of {', '.join(NAMED)}, or a CubeStrategy.{hint}",
            code="cubes.strategy",
            value=name,
        )
    return NAMED[name]()
