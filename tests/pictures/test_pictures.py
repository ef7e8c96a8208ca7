"""Pictures as one-liners: nothing is cut off, no two labels of an axis overlap, no label is a formula, errors are in counts."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import policygraph as pg
from tests.report import releases

LONG = [f"a label that is much longer than any picture has room for, number {k}" for k in range(6)]


def _drawn(axis):
    """Labels of the ticks that are within the limits."""
    ticks = axis._update_ticks()
    return [t for tick in ticks for t in (tick.label1, tick.label2) if t.get_text() and t.get_visible()]


def check(figure):
    """Every text is inside the figure; labels beside each other do not overlap."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    frame = figure.bbox
    for axes in figure.axes:
        ticks = [_drawn(axis) if axes.axison else [] for axis in (axes.xaxis, axes.yaxis)]
        names = [axes.xaxis.label, axes.yaxis.label] if axes.axison else []
        for text in [*axes.texts, axes.title, axes._left_title, *names, *ticks[0], *ticks[1]]:
            box = text.get_window_extent(renderer)
            inside = (
                frame.x0 - 2 <= box.x0 <= box.x1 <= frame.x1 + 2
                and frame.y0 - 2 <= box.y0 <= box.y1 <= frame.y1 + 2
            )
            assert inside or not text.get_text(), text.get_text()
        for at, listed in enumerate(ticks):
            boxes = [text.get_window_extent(renderer) for text in listed if not text.get_rotation()]
            ends = sorted((box.x0, box.x1) if at == 0 else (box.y0, box.y1) for box in boxes)
            apart = [one[1] <= two[0] + 1 for one, two in pairwise(ends)]
            assert all(apart), [text.get_text() for text in listed]
    return figure


@cache
def made(name):
    return releases.ALL[name]()


def words(figure):
    return " ".join(
        text.get_text() for axes in figure.axes for text in [*axes.texts, axes.title, axes._left_title]
    )


@pytest.mark.parametrize("name", releases.ALL)
def test_releases_are_drawn(name, tmp_path):
    figure = check(made(name).plot(tmp_path / "p.png"))
    assert (tmp_path / "p.png").stat().st_size > 2_000
    assert len(figure.axes) >= 1
    assert "NOT PRIVATE" in figure._supxlabel.get_text()


def test_one_table_of_many():
    release = made("cube")
    assert "250 more tables" in release.plot()._supxlabel.get_text()
    check(release.plot(table="a0 x a1 x a2"))
    check(release.plot(table=255))  # eight attributes: the largest counts
    with pytest.raises(pg.InputError, match="expected one of"):
        release.plot(table="nothing")


def test_a_heat_map_has_its_numbers_or_a_scale():
    """A colour alone tells no count."""
    for shape, scale in (
        ((40, 4), False),
        ((3, 4, 5), False),
        ((16, 16), True),
        ((30, 30), True),
        ((2, 12, 14), True),
    ):
        domain = pg.Domain({f"a{k}": size for k, size in enumerate(shape)})
        counts = np.arange(np.prod(shape)) * 1000
        release = pg.release(
            pg.queries.identity(domain), pg.Policy(domain), counts, epsilon=1, rng=pg.SeededRng(1)
        )
        figure = check(release.plot())
        numbers = [text for axes in figure.axes for text in axes.texts]
        assert len(numbers) == (0 if scale else counts.size), shape
        assert len(figure.axes) == np.prod(shape[:-2], dtype=int) + scale
        boxes = [text.get_window_extent() for text in numbers[: shape[-1]]]
        assert all(one.x1 < two.x0 for one, two in pairwise(boxes)), shape


def test_long_and_many_labels_fit():
    domain = pg.Domain(
        {"a name that is long, too, and goes on": LONG, "city": [f"municipality of {k}" for k in range(40)]}
    )
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain, "city"))
    counts = np.arange(domain.size)
    for names in (domain.names[:1], domain.names[1:], domain.names):
        query = pg.queries.cuboid(domain, *names)
        check(pg.release(query, policy, counts, epsilon=1, rng=releases.RNG, mechanism=pg.Laplace()).plot())
    check(policy.draw())


def test_a_dollar_is_no_formula():
    domain = pg.Domain({"pay $": ["$0 to $10^", "$10^ to $20_"], "b": ["x", "$y$"]})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain, "pay $"))
    release = pg.release(pg.queries.identity(domain), policy, [1, 2, 3, 4], epsilon=1, rng=releases.RNG)
    for figure in (release.plot(), policy.draw(), release.certificate.draw()):
        check(figure)
    facts = pg.Policy(domain, constraints=[pg.Cuboid("pay $"), pg.Cuboid("b")])
    check(facts.draw())
    check(pg.sensitivity(pg.queries.identity(domain), facts).draw())


@pytest.mark.parametrize("name", [name for name in releases.ALL if name != "nodes"])
def test_policies_and_certificates_are_drawn(name):
    check(made(name).policy.draw())
    check(made(name).certificate.draw())


def test_policies_of_other_kinds(tmp_path):
    domain = pg.Domain({"sex": 2, "age": 90, "work": 3})
    facts = [pg.Cuboid("sex", "age"), pg.Total(), pg.count({"age": [1, 2]}), pg.Cells(["work"], [[1]])]
    assert "cuboid sex x age" in [
        t.get_text() for t in check(pg.Policy(domain, constraints=facts).draw()).axes[0].get_yticklabels()
    ]
    check(pg.Policy(domain).draw())
    check(pg.Policy(domain, constraints=[pg.count({"age": [k]}) for k in range(40)]).draw())
    listed = pg.PolicyGraph.from_edges(domain, [(at, at + 1) for at in range(500)])
    check(pg.Policy(domain, listed).draw(tmp_path / "p.svg"))
    grid = check(pg.Policy(domain, pg.PolicyGraph.grid(domain)).draw())
    assert "first values" in grid.axes[0].get_title().replace("\n", " ")
    check(pg.Policy(pg.Network(500), constraints=[pg.Degrees()]).draw())
    with pytest.raises(pg.InputError, match="ending of a picture"):
        pg.Policy(domain).draw(tmp_path / "p.doc")


def test_a_pair_that_does_not_exist_and_one_that_is_long():
    domain = pg.Domain({"a": 2, "b": 2})
    fixed = pg.Policy(domain, constraints=[pg.Cuboid("a", "b")])
    check(pg.sensitivity(pg.queries.identity(domain), fixed).draw())
    wide = pg.Domain({"a": 6, "b": 30})
    two = pg.Policy(wide, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    check(pg.sensitivity(pg.queries.identity(wide), two).draw())


def test_comparisons_are_drawn_in_counts():
    domain = pg.Domain({"age": 100})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    found = pg.compare(
        pg.queries.all_ranges(domain), policy, epsilon="0.1", methods=["every answer", "edges", "tree"]
    )
    figure = check(found.plot())
    assert f"{found['edges'].expected ** 0.5:.3g}" in words(figure)
    assert figure.axes[0].get_xscale() == "log"
    near = pg.compare(
        pg.queries.identity(domain),
        policy,
        epsilon="0.1",
        methods=["every answer", "edges"],
        data=np.arange(100),
        runs=2,
    )
    assert check(near.plot()).axes[0].get_xscale() == "linear"


def test_without_matplotlib_a_hint(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(pg.InputError, match=r"policygraph\[plot\]") as caught:
        made("line").plot()
    assert caught.value.code == "graph.matplotlib"


def test_no_label_turns_a_title_and_errors_are_written_out():
    figure = releases.odd().plot()
    titles = [part.get_suptitle() for part in figure.subfigs]
    assert not set(releases.TURNING) & set("".join(titles) + words(figure))
    assert any("na\ufffdme" in title for title in titles)
    figure = made("measures").plot()
    assert not any("e+0" in part.get_suptitle() for part in figure.subfigs)
