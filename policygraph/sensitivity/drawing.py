"""Pictures of certificates: the two data sets that must look alike, side by side. Owns :func:`draw_pair`."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

from policygraph.exact import show
from policygraph.model.domain import Domain, Network
from policygraph.pictures import CAME, GONE, INK, LINE, SOFT, blank, keep, label, wrapped

# Certificates import this module, so that it does not name their type.
Sensitivity = Any
ROWS = 16
NODES = 40
Rows = tuple[tuple[int, int], ...]


def draw_pair(found: Sensitivity, target: Any = None) -> Any:
    """Draw the pair of a certificate; see :meth:`Sensitivity.draw`."""
    witness = found.witness
    value = show(found.value) if found.value.denominator == 1 else f"{float(found.value):.4g}"
    head = f"Two data sets that must look alike; sensitivity {'=' if found.exact else 'at most'} {value}"
    if witness is None:
        figure = blank(6.0, 1.4, target)
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.text(
            0.5,
            0.5,
            "Nothing that is allowed changes what is asked: the sensitivity is 0.",
            ha="center",
            va="center",
        )
        return keep(figure, target)
    domain = found.policy.domain
    sides = [
        ("Data set A", witness.before, dict(witness.after), GONE),
        ("Data set B", witness.after, dict(witness.before), CAME),
    ]
    if isinstance(domain, Network) and domain.order <= NODES and not found.query.needs_values:
        figure = blank(9.0, 5.0, target)
        for axes, side in zip(figure.subplots(1, 2), sides, strict=True):
            _network(axes, domain, *side)
    else:
        listed = [_listed(found, *side) for side in sides]
        rows = max(len(lines) for lines, _ in listed)
        width = sum(max(3.2, 0.095 * sum(widths) + 0.8) for _, widths in listed)
        figure = blank(width, 0.27 * rows + 1.1, target)
        for axes, (lines, widths), side in zip(figure.subplots(1, 2), listed, sides, strict=True):
            _table(axes, side[0], lines, widths, rows, side[3])
    figure.suptitle(wrapped(head, int(11 * figure.get_figwidth())), fontsize=11)
    return keep(figure, target)


def _listed(
    found: Sensitivity, title: str, rows: Rows, other: dict[int, int], colour: str
) -> tuple[list[tuple[list[str], bool]], list[int]]:
    """Lines of a table with a head, whether each differs, and the widths of the columns."""
    domain = found.policy.domain
    names = list(domain.names) if isinstance(domain, Domain) else ["from", "to"]
    ordered = sorted(rows, key=lambda row: row[1] <= other.get(row[0], 0))
    lines = [
        (
            [*(label(each, 18) for each in found.query.cell(cell)), f"{count:,}"],
            count > other.get(cell, 0),
        )
        for cell, count in ordered[:ROWS]
    ]
    columns = max((len(words) for words, _ in lines), default=len(names) + 1)
    head = [label(name, 18) for name in [*names, *(f"value {k}" for k in range(columns))][: columns - 1]] + [
        "count"
    ]
    lines.insert(0, (head, False))
    if len(rows) > ROWS:
        lines.append(([f"and {len(rows) - ROWS:,} more"] + [""] * (columns - 1), False))
    if not rows:
        lines.append((["nothing"] + [""] * (columns - 1), False))
    return lines, [max(len(words[k]) for words, _ in lines) + 2 for k in range(columns)]


def _table(
    axes: Any, title: str, lines: list[tuple[list[str], bool]], widths: list[int], rows: int, colour: str
) -> None:
    total = sum(widths)
    axes.set(xlim=(-1, total + 0.5), ylim=(rows - 0.4, -0.9))
    axes.set_axis_off()
    axes.set_title(title, fontsize=10.5, loc="left")
    for at, (words, differs) in enumerate(lines):
        if differs:
            axes.axhspan(at - 0.5, at + 0.5, color=colour, alpha=0.16, lw=0)
        x = 0
        for word, width in zip(words, widths, strict=True):
            axes.text(
                x,
                at,
                word,
                va="center",
                fontsize=9,
                color=SOFT if at == 0 else colour if differs else INK,
                fontweight="bold" if differs else None,
            )
            x += width
    axes.axhline(0.5, color=LINE, lw=1)


def _network(axes: Any, domain: Network, title: str, rows: Rows, other: dict[int, int], colour: str) -> None:
    place = [
        (cos(pi / 2 - 2 * pi * at / domain.order), sin(pi / 2 - 2 * pi * at / domain.order))
        for at in range(domain.order)
    ]
    tails, heads = domain.pairs([cell for cell, _ in rows])
    for (cell, count), u, v in zip(rows, tails, heads, strict=True):
        differs = count > other.get(cell, 0)
        style = {"color": colour, "lw": 2.6} if differs else {"color": LINE, "lw": 1.2}
        axes.annotate(
            "",
            xy=place[int(v)],
            xytext=place[int(u)],
            arrowprops={"arrowstyle": "-|>" if domain.directed else "-", "shrinkA": 6, "shrinkB": 6, **style},
        )
    for at, (x, y) in enumerate(place):
        axes.plot(x, y, "o", ms=8, mfc="white", mec=INK)
        side = "center" if abs(x) < 0.2 else "left" if x > 0 else "right"
        axes.text(1.1 * x, 1.1 * y, label(str(domain.nodes[at]), 12), ha=side, va="center", fontsize=8)
    axes.set(xlim=(-1.7, 1.7), ylim=(-1.3, 1.3), aspect="equal")
    axes.set_axis_off()
    axes.set_title(f"{title}: {len(rows)} edges", fontsize=10.5)
