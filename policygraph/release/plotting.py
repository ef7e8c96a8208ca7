"""Pictures of released tables: bars and lines with ranges, heat maps. Owns :func:`plot`."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import numpy as np

from policygraph.pictures import INK, MARK, SOFT, blank, keep, label, quiet, thousands, wrapped
from policygraph.ties import digits

# Releases and their tables import this module, so that it does not name their types.
Release = Any
Table = Any
TABLES = 6
BARS = 40
"""Longest table that is drawn as bars; longer ones as a line, or by their largest counts."""
LARGEST = 30
SIDE, NUMBERED = 60, 16
"""Longest side of a heat map, and most columns of one with its numbers."""
LONG = 4
"""A table of more than so many times as many rows as columns, or the reverse, is not drawn with square cells."""
ROWS = 42
"""Rows that have room for a label each, and for numbers, in the highest picture of a table."""
CHARACTERS = 105
"""Digits that have room beside each other in a picture."""
PANELS = 9
WIDE = 8.5


def plot(release: Release, target: Any = None, table: int | str | None = None) -> Any:
    """Draw released tables; see :meth:`Release.plot`."""
    shown = list(release.tables[:TABLES]) if table is None else [release._find(table)]
    panels = [_panel(each) for each in shown]
    more = len(release.tables) - TABLES if table is None else 0
    notes = [] if release.private else ["NOT PRIVATE: seeded noise"]
    notes += [f"{more:,} more tables: plot(table=...) draws one of them"] if more > 0 else []
    figure = blank(WIDE, sum(height for height, _ in panels) + 0.3 * len(notes), target)
    parts = figure.subfigures(len(panels), 1, height_ratios=[height for height, _ in panels], squeeze=False)[
        :, 0
    ]
    for part, (_, paint) in zip(parts, panels, strict=True):
        paint(part)
    if notes:
        figure.supxlabel("; ".join(notes), fontsize=9, color=SOFT)
    return keep(figure, target)


def _grid(table: Table) -> list[list[str]] | None:
    """The labels of each column, where the table has a count for every combination of them, the last running fastest."""
    lists = []
    for labels in table.labels:
        lists.append(list(dict.fromkeys(np.asarray(labels).tolist())))
    if not lists or prod(map(len, lists)) != len(table.values):
        return None
    codes = np.unravel_index(np.arange(len(table.values)), [len(each) for each in lists])
    for listed, code, labels in zip(lists, codes, table.labels, strict=True):
        if [listed[c] for c in code] != np.asarray(labels).tolist():
            return None
    return [[str(label) for label in listed] for listed in lists]


def _title(table: Table) -> str:
    within = np.asarray(table.within_95, dtype=np.float64)
    if not within.size or not np.any(within):
        return f"{table.name}, exact"
    low, high = (digits(float(x), 3) for x in (within.min(), within.max()))
    return f"{table.name}, 95 % within ± {low if low == high else f'{low} to {high}'}"


def _panel(table: Table) -> tuple[float, Any]:
    """Height of the picture of a table, and what paints it."""
    lists = _grid(table) if len(table.values) <= SIDE * SIDE * PANELS else None
    if lists is not None and len(lists) == 1 and len(table.values) > BARS:
        return 3.2, lambda part: _line(part, table, lists[0])
    if lists is not None and len(lists) > 1:
        *outer, rows, columns = map(len, lists)
        if prod(outer) <= PANELS and rows <= SIDE and columns <= SIDE:
            across = min(prod(outer), max(1, int(16 / max(columns, 5))))
            down = ceil(prod(outer) / across)
            each = min(max(0.32 * rows, 1.0), 7.0) + 1.5
            return down * each + 0.5, lambda part: _heat(part, table, lists, down, across)
    rows = min(len(table.values), LARGEST if len(table.values) > BARS else BARS)
    return 0.26 * max(rows, 2) + 1.2, lambda part: _bars(part, table)


def _bars(part: Any, table: Table) -> None:
    values = np.asarray(table.values, dtype=np.float64)
    within = np.broadcast_to(np.asarray(table.within_95, dtype=np.float64), values.shape)
    order = np.arange(len(values)) if len(values) <= BARS else np.argsort(-values, kind="stable")[:LARGEST]
    columns = [np.asarray(labels) for labels in table.labels]
    names = [label(" · ".join(str(labels[at]) for labels in columns) or "all", 42) for at in order]
    axes = part.subplots()
    at = np.arange(len(order))
    axes.barh(at, values[order], color=MARK, alpha=0.55, height=0.72)
    drawn = within[order] > 0
    axes.errorbar(
        values[order][drawn],
        at[drawn],
        xerr=within[order][drawn],
        fmt="none",
        ecolor=INK,
        elinewidth=1,
        capsize=2.5,
    )
    axes.set_yticks(at, names)
    axes.invert_yaxis()
    axes.set_ylim(len(order) - 0.4, -0.6)
    quiet(axes)
    thousands(axes.xaxis)
    axes.axvline(0, color=SOFT, lw=0.8)
    shown = "" if len(order) == len(values) else f", the {len(order)} largest of {len(values):,}"
    part.suptitle(wrapped(_title(table) + shown, 80), fontsize=10.5, ha="left", x=0.02)


def _line(part: Any, table: Table, labels: list[str]) -> None:
    values = np.asarray(table.values, dtype=np.float64)
    at, within = np.arange(len(values)), np.asarray(table.within_95, dtype=np.float64)
    axes = part.subplots()
    axes.fill_between(at, values - within, values + within, color=MARK, alpha=0.25, linewidth=0)
    axes.plot(at, values, color=MARK, lw=1.2)
    step = max(1, ceil(len(values) / 10))
    axes.set_xticks(at[::step], [label(each, 9) for each in labels[::step]])
    quiet(axes)
    thousands(axes.yaxis)
    part.suptitle(wrapped(_title(table), 80), fontsize=10.5, ha="left", x=0.02)


def _heat(part: Any, table: Table, lists: list[list[str]], down: int, across: int) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shape = [len(labels) for labels in lists]
    values = np.asarray(table.values, dtype=np.float64).reshape(-1, *shape[-2:])
    colours = LinearSegmentedColormap.from_list("counts", ["#f7f5ef", MARK])
    top = max(float(values.max(initial=0.0)), 1.0)
    axes = part.subplots(down, across, squeeze=False)
    texts = [[f"{value:,.0f}" for value in panel.ravel()] for panel in values]
    longest = max(len(text) for panel in texts for text in panel) + 1
    many = shape[-1] * across
    numbered = many <= NUMBERED and shape[-2] <= ROWS and longest * many <= CHARACTERS
    painted = None
    for place, panel in enumerate(axes.ravel()):
        if place >= len(values):
            panel.set_axis_off()
            continue
        # Long tables fill the picture, so that every row and column has room for its label.
        long = numbered or max(shape[-2:]) > LONG * min(shape[-2:])
        painted = panel.imshow(
            values[place], cmap=colours, vmin=0, vmax=top, aspect="auto" if long else "equal"
        )
        rooms = NUMBERED if numbered else 12, ROWS if long else 12
        for axis, labels, room in zip(
            (panel.set_xticks, panel.set_yticks), (lists[-1], lists[-2]), rooms, strict=True
        ):
            step = max(1, ceil(len(labels) / room))
            axis(range(0, len(labels), step), [label(each, 12) for each in labels[::step]])
        if max(len(label(each, 12)) for each in lists[-1]) * many > 70:
            panel.tick_params(axis="x", labelrotation=45)
            for tick in panel.get_xticklabels():
                tick.set(ha="right", rotation_mode="anchor")
        panel.tick_params(length=0, colors=SOFT, labelsize=8)
        panel.spines[:].set_visible(False)
        if numbered:
            for at, ((r, c), value) in enumerate(np.ndenumerate(values[place])):
                panel.text(
                    c,
                    r,
                    texts[place][at],
                    ha="center",
                    va="center",
                    fontsize=8 if shape[-2] <= NUMBERED else 7,
                    color="white" if value > 0.7 * top else INK,
                )
        if place % across == 0:
            panel.set_ylabel(label(table.columns[-2], 20), fontsize=8.5, color=SOFT)
        if place + across >= len(values):
            panel.set_xlabel(label(table.columns[-1], 24), fontsize=8.5, color=SOFT)
        if len(shape) > 2:
            codes = np.unravel_index(place, shape[:-2])
            name = ", ".join(
                f"{n} {each[int(c)]}" for n, each, c in zip(table.columns, lists, codes, strict=False)
            )
            panel.set_title(label(name, max(16, 66 // across)), fontsize=9)
    if painted is not None and not numbered:
        scale = part.colorbar(painted, ax=axes.ravel().tolist(), shrink=0.7, aspect=30, pad=0.02)
        scale.outline.set_visible(False)
        scale.ax.tick_params(length=0, colors=SOFT, labelsize=8)
        thousands(scale.ax.yaxis)
    part.suptitle(wrapped(_title(table), 80), fontsize=10.5, ha="left", x=0.02)
