"""The released tables of a cube at a glance: every set of attributes a square, coloured by its error. Owns :func:`lattice`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import log

import numpy as np

from policygraph.markup import Markup, tag
from policygraph.model.domain import Domain
from policygraph.release.release import Release, Table
from policygraph.report.tables import figure, typical

MOST_ATTRIBUTES = 8
"""With more attributes only the released tables are drawn."""
MOST_SQUARES = 600
STEPS = 5
ROOM = 70.0
"""Squares of this width have room for a label."""
LETTER = 7.6
"""Width of a letter of a label."""
WIDE, HIGH = 880.0, 34.0


def lattice(release: Release) -> Markup | None:
    """A row of squares for each number of attributes; None where the release is not one of at least three cuboids, or of too many."""
    domain = release.policy.domain
    if not isinstance(domain, Domain) or len(release.tables) < 3:
        return None
    place = {name: at for at, name in enumerate(domain.names)}
    if any(name not in place for table in release.tables for name in table.columns):
        return None
    released = {frozenset(table.columns): at for at, table in enumerate(release.tables)}
    if len(released) != len(release.tables):
        return None
    if len(place) <= MOST_ATTRIBUTES:
        sets = [frozenset(names) for k in range(len(place) + 1) for names in combinations(domain.names, k)]
    else:
        sets = sorted(released, key=lambda names: (len(names), sorted(place[name] for name in names)))
    if len(sets) > MOST_SQUARES:
        return None
    rows = [[names for names in sets if len(names) == k] for k in sorted({len(names) for names in sets})]
    errors = [typical(table.within_95) for table in release.tables]
    steps = _steps(errors)
    most = max(map(len, rows))
    wide = min(WIDE / most, 170.0)
    squares = []
    for at, row in enumerate(rows):
        left = (WIDE - wide * len(row)) / 2
        said = [[name for name in domain.names if name in names] for names in row]
        labels = short_titles(said, domain.names, int(wide / LETTER)) if wide >= ROOM else [""] * len(row)
        for k, (names, ordered) in enumerate(zip(row, said, strict=True)):
            squares.append(
                _square(
                    ordered,
                    labels[k],
                    released.get(names),
                    release.tables,
                    steps,
                    sum(1 << place[name] for name in names),
                    (left + k * wide, at * (HIGH + 10), wide),
                )
            )
    height = len(rows) * (HIGH + 10)
    picture = tag(
        "svg",
        squares,
        viewBox=f"0 0 {WIDE:.0f} {height:.0f}",
        width=WIDE,
        class_="lattice",
        role="group",
        aria_label="All tables by their attributes, each a link to the table",
    )
    # Squares without labels may shrink; those with labels are a list where there is no room for them.
    listed = _listed(sets, domain, released, release.tables, steps) if wide >= ROOM else None
    frame = tag(
        "div",
        picture,
        class_="scroll drawn" if listed is not None else "scroll shrunk",
        tabindex=0,
        role="region",
        aria_label="Picture of all tables",
    )
    return tag(
        "figure",
        frame,
        listed,
        _legend(errors, steps, len(sets) > len(released)),
        tag(
            "figcaption",
            "Each square is the table of some of the attributes: the total first, then tables of one attribute, and so on. Choose one to open its table; "
            "the tables that can be added up from it are framed.",
        ),
        class_="wide",
    )


def short_titles(rows: list[list[str]], names: Sequence[str], room: int) -> list[str]:
    """Titles of tables that fit, no two of which are alike: the attributes of a long one are cut to one length; empty where nothing fits.

    Examples
    --------
    >>> names = ["municipality", "sex", "age", "income"]
    >>> short_titles([["municipality", "sex"], ["municipality", "sex", "age"], ["municipality", "sex", "income"]], names, 20)
    ['municipality × sex', 'municip… × sex × age', 'muni… × sex × inco…']
    """
    made = []
    for row in rows:
        title = ""
        for most in range(max(map(len, names)), 1, -1):
            cut = {name: name if len(name) <= most else f"{name[: most - 1]}…" for name in names}
            joined = " × ".join(cut[name] for name in row) or "total"
            if len(set(cut.values())) == len(cut) and len(joined) <= room:
                title = joined
                break
        made.append(title)
    shown = [title for title in made if title]
    return made if len(set(shown)) == len(shown) else [""] * len(rows)


def _listed(
    sets: list[frozenset[str]],
    domain: Domain,
    released: dict[frozenset[str], int],
    tables: tuple[Table, ...],
    steps: list[float],
) -> Markup:
    """The released tables as a list of links, for pages that are too narrow for the picture."""
    items = []
    for names in sets:
        if (at := released.get(names)) is None:
            continue
        kind, said = _kind(at, tables, steps)
        title = " × ".join(name for name in domain.names if name in names) or "total"
        items.append(tag("li", _swatch(kind), tag("a", title, href=f"#table-{at}"), tag("span", said)))
    return tag("ul", items, class_="squares")


def _steps(errors: list[float]) -> list[float]:
    """Bounds between the colours, even on a logarithmic scale."""
    positive = [error for error in errors if error > 0 and np.isfinite(error)]
    if not positive or max(positive) < 1.05 * min(positive):
        return []
    low, high = log(min(positive)), log(max(positive))
    return [float(np.exp(low + (high - low) * k / STEPS)) for k in range(1, STEPS)]


def _square(
    names: list[str],
    shown: str,
    at: int | None,
    tables: tuple[Table, ...],
    steps: list[float],
    mask: int,
    place: tuple[float, float, float],
) -> list[Markup | None]:
    x, y, wide = place
    title = " × ".join(names) or "total"
    gap = min(2.0, wide / 8)
    box = {"x": x + gap, "y": y + 3, "width": wide - 2 * gap, "height": HIGH, "rx": 2}
    kind, said = _kind(at, tables, steps)
    dark = kind in (f"level{STEPS - 2}", f"level{STEPS - 1}")
    # Beside the link and not in it: the name of the link is whole where the label is shortened.
    label = tag(
        "text",
        shown,
        x=x + wide / 2,
        y=y + HIGH / 2 + 7,
        text_anchor="middle",
        class_="strong" if dark else "faint" if at is None else None,
        aria_hidden="true",
    )
    square = tag(
        "g",
        tag("title", f"{title}: {said}"),
        tag("rect", **box),
        class_=kind,
        data_mask=mask if at is None else None,
    )
    if at is not None:
        square = tag("a", square, href=f"#table-{at}", data_mask=mask, aria_label=f"{title}: {said}")
    return [square, label if shown else None]


def _kind(at: int | None, tables: tuple[Table, ...], steps: list[float]) -> tuple[str, str]:
    """The class of a square, and what it says."""
    if at is None:
        return "absent", "not released"
    error = typical(tables[at].within_95)
    if not error:
        return "exact", "exact"
    level = sum(error > bound * (1 + 1e-9) for bound in steps) if steps else STEPS // 2
    return f"level{level}", f"95 % within {figure(error)}"


def _swatch(kind: str) -> Markup:
    """A small square in the colour of a class."""
    return tag(
        "svg",
        tag("rect", x=1, y=1, width=16, height=14, rx=2, class_=kind),
        viewBox="0 0 18 16",
        width=18,
        height=16,
        aria_hidden="true",
        class_="lattice swatch",
    )


def _legend(errors: list[float], steps: list[float], absent: bool) -> Markup:
    positive = [error for error in errors if error > 0]
    bounds = [min(positive, default=0.0), *steps, max(positive, default=0.0)]
    items = []
    if len(positive) < len(errors):
        items.append(("exact", "exact"))
    if steps:
        items += [(f"level{k}", f"{figure(bounds[k])} to {figure(bounds[k + 1])}") for k in range(STEPS)]
    elif positive:
        items.append((f"level{STEPS // 2}", f"all {figure(bounds[0])}"))
    if absent:
        items.append(("absent", "not released"))
    marks = [tag("li", _swatch(kind), words) for kind, words in items]
    return tag("ul", tag("li", "95 % of the counts are within:"), marks, class_="legend")
