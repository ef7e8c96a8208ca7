"""Pictures of moves. Owns :func:`draw`: what is removed, what is added, what holds it together.

Imports ``errors``, ``public.domain``, ``public.graphs.drawing``, ``public.moves.move``; matplotlib when used.
"""

from __future__ import annotations

from math import cos, pi, sin
from pathlib import Path
from typing import Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.public.constraints.degrees import Degrees
from policygraph.public.domain import Domain, Network
from policygraph.public.graphs.drawing import check_picture
from policygraph.public.moves.move import Move

__all__ = ["draw"]

MOST = 60
ADDED, REMOVED = "#1a7f37", "#b3261e"


def draw(move: Move, target: str | Path | Any) -> Any:
    """Draw a small move into a picture file or into matplotlib axes; return the axes.

    Parameters
    ----------
    move
        A change of cells of a table, or of edges of a network.
    target
        A file name with a picture ending, or axes.

    Raises
    ------
    RefusedError
        When the move is too large for a picture.
    """
    try:
        import matplotlib
    except ImportError as cause:
        raise InputError(
            "drawing needs matplotlib: install policygraph[plot].", code="move.matplotlib"
        ) from cause
    if len(move.change) > MOST:
        raise RefusedError(
            f"a move of {len(move.change)} cells is too large to draw: expected at most {MOST}.",
            code="move.too-large",
        )
    axes: Any = target
    if isinstance(target, (str, Path)):
        check_picture(target)
        matplotlib.use("Agg", force=False)
        from matplotlib.figure import Figure

        figure = Figure(figsize=_size(move), layout="constrained")
        axes = figure.add_subplot()
    if isinstance(move.policy.domain, Network):
        _network(move, move.policy.domain, axes)
    else:
        _table(move, move.policy.domain, axes)
    if isinstance(target, (str, Path)):
        axes.figure.savefig(target, dpi=150)
    return axes


def _network(move: Move, network: Network, axes: Any) -> None:
    tails, heads = network.pairs(move.cells)
    nodes = sorted({*tails.tolist(), *heads.tolist()})
    place = {v: (cos(2 * pi * i / len(nodes)), sin(2 * pi * i / len(nodes))) for i, v in enumerate(nodes)}
    known: set[int] = set()
    for fact in move.policy.system.needed:
        if isinstance(fact, Degrees):
            known |= set(fact.positions(network).tolist())
    for u, v, amount in zip(tails.tolist(), heads.tolist(), move.amounts.tolist(), strict=True):
        style: dict[str, Any] = {
            "color": ADDED if amount > 0 else REMOVED,
            "lw": 2,
            "ls": "-" if amount > 0 else "--",
            "arrowstyle": "->" if network.directed else "-",
            "shrinkA": 10,
            "shrinkB": 10,
            "connectionstyle": "arc3,rad=0.15" if network.directed else "arc3,rad=0",
        }
        axes.annotate("", xy=place[v], xytext=place[u], arrowprops=style)
    for v in nodes:
        filled = v in known
        axes.plot(*place[v], "o", ms=16, mfc="#333333" if filled else "white", mec="#333333", zorder=3)
        axes.text(
            *place[v],
            str(network.nodes[v]),
            ha="center",
            va="center",
            color="white" if filled else "black",
            zorder=4,
        )
    axes.plot([], [], color=ADDED, lw=2, label="added edge")
    axes.plot([], [], color=REMOVED, lw=2, ls="--", label="removed edge")
    axes.plot([], [], "o", color="#333333", label="degree is public")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=3, frameon=False)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.45, 1.3), aspect="equal")
    axes.axis("off")
    axes.set_title("these two networks must look alike")


def _changing(move: Move, domain: Domain) -> tuple[list[int], list[int]]:
    """The attributes along the rows and along the columns: a single one that changes runs along the columns."""
    codes = domain.codes(move.cells)
    axes = [axis for axis in range(len(domain.shape)) if len(set(codes[axis].tolist())) > 1] or [0]
    return (axes[:1], axes[1:]) if len(axes) > 1 else ([], axes)


def _size(move: Move) -> tuple[float, float]:
    if isinstance(move.policy.domain, Domain) and not _changing(move, move.policy.domain)[0]:
        return 6.0, 2.2
    return 6.0, 5.0


def _table(move: Move, domain: Domain, axes: Any) -> None:
    """Rows are the values of the first attribute that changes, columns those of the others."""
    codes = domain.codes(move.cells)
    names = domain.names
    down, across = _changing(move, domain)

    def keys(of: list[int]) -> list[tuple[int, ...]]:
        return sorted({tuple(int(codes[axis][at]) for axis in of) for at in range(len(move.change))})

    def texts(of: list[int], listed: list[tuple[int, ...]]) -> list[str]:
        return [
            ", ".join(str(domain.labels(names[axis])[c]) for axis, c in zip(of, key, strict=True))
            for key in listed
        ]

    rows, columns = keys(down), keys(across)
    grid = np.zeros((len(rows), len(columns)), dtype=np.int64)
    for at, amount in enumerate(move.amounts.tolist()):
        place = (tuple(int(codes[axis][at]) for axis in of) for of in (down, across))
        grid[rows.index(next(place)), columns.index(next(place))] += amount
    top = max(1, int(np.abs(grid).max()))
    axes.imshow(grid, cmap="PiYG", vmin=-2 * top, vmax=2 * top, aspect="auto")
    for (i, j), value in np.ndenumerate(grid):
        if value:
            axes.text(j, i, f"{value:+d}", ha="center", va="center", fontsize=12)
    axes.set_yticks(range(len(rows)), texts(down, rows) if down else ["records"])
    tilted = len(columns) > 6
    axes.set_xticks(
        range(len(columns)),
        texts(across, columns),
        rotation=45 if tilted else 0,
        ha="right" if tilted else "center",
    )
    axes.set_ylabel(" x ".join(names[axis] for axis in down))
    axes.set_xlabel(" x ".join(names[axis] for axis in across))
    same = [axis for axis in range(len(names)) if axis not in (*down, *across)]
    first = ", ".join(f"{names[axis]} = {domain.labels(names[axis])[int(codes[axis][0])]}" for axis in same)
    axes.set_title(
        "the change between two tables that must look alike" + (f"\n(all with {first})" if first else "")
    )
