"""Notebooks: what objects show in them, and the tutorials, run cell by cell."""

from __future__ import annotations

import ast
import json
import sys

import numpy as np
import pytest

import policygraph as pg
from policygraph.release.latex import escaped
from tests.paths import ROOT
from tests.report import releases
from tests.report.test_markup import Seen

TUTORIALS = sorted((ROOT / "docs" / "tutorials" / "notebooks").glob("*.ipynb"))


def shown(value):
    """What a notebook would show of a value."""
    forms = [getattr(value, form)() for form in ("_repr_html_", "_repr_png_") if hasattr(value, form)]
    return next((form for form in forms if form), repr(value))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials_run(path, capsys):
    names: dict[str, object] = {"__name__": "notebook"}
    cells = [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    for cell in cells:
        tree = ast.parse("".join(cell["source"]), path.name)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            assert "Figure" not in type(value).__name__ or shown(value).startswith(b"\x89PNG")
            assert shown(value)
        assert cell["outputs"] == []
    capsys.readouterr()


def test_there_are_three_tutorials():
    assert len(TUTORIALS) >= 3


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    hostile = releases.hostile()
    ledger = pg.Ledger(tmp_path_factory.mktemp("ledger") / "b.db")
    domain = pg.Domain({"age": 20})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    query = pg.queries.identity(domain)
    pg.release(query, policy, np.arange(20), epsilon=1, ledger=ledger, dataset="<b>town</b>")
    methods = ["every answer", "edges"]
    facts = pg.Policy(
        hostile.policy.domain,
        constraints=[pg.Cuboid(releases.HOSTILE[0])],
        strength="markov",
        at_most_records=2,
    )
    return {
        "domain": hostile.policy.domain,
        "policy": hostile.policy,
        "facts": facts,
        "certificate": hostile.certificate,
        "release": hostile,
        "cube": releases.cube(),
        "comparison": pg.compare(query, policy, epsilon=1, methods=methods, data=np.arange(20), runs=2),
        "sweep": pg.compare(query, policy, epsilon=["0.1", 1], methods=methods),
        "ledger": ledger,
    }


SAYS = {
    "domain": "12 cells",
    "policy": "next to each other",
    "facts": "markov, at most 2 records",
    "certificate": "data set A",
    "release": "NOT PRIVATE",
    "cube": "247 more tables",
    "comparison": "PUBLIC OR SIMULATED DATA ONLY",
    "sweep": "epsilon = 0.1",
    "ledger": "<b>town</b>",
}


@pytest.mark.parametrize("name", SAYS)
def test_objects_show_themselves_and_nothing_as_code(objects, name):
    text = objects[name]._repr_html_()
    seen = Seen(text)
    assert SAYS[name] in seen.text
    assert {element for element, _ in seen.elements} <= {
        "div",
        "style",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "caption",
    }
    assert not any(key.startswith("on") for _, attributes in seen.elements for key in attributes)
    assert "<script" not in text
    assert "color:#" not in text.replace("background", "")  # the colours are those of the notebook


@pytest.mark.parametrize("name", SAYS)
def test_representations_are_short(objects, name):
    assert len(repr(objects[name])) < 260


def test_representations():
    domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("sex")])
    assert repr(policy) == "Policy(Domain(sex: 2, age: 3), 1 public fact)"
    query = pg.queries.identity(domain)
    assert repr(pg.sensitivity(query, policy)) == "Sensitivity(2, l1, exact)"
    made = pg.release(query, policy, np.arange(6), epsilon=1, rng=pg.SeededRng(1), mechanism=pg.Laplace())
    assert repr(made) == "Release(sex x age, 6 values, epsilon = 1, NOT PRIVATE)"
    assert repr(made.tables[0]) == "Table('sex x age', 6 values)"


def test_data_frames_and_latex():
    made = releases.census()
    pandas, polars = made.to_pandas(), made.to_polars("sex x age x work")
    assert list(pandas["value"]) == list(polars["value"]) == made.tables[0].values.tolist()
    assert made.to_arrow(0).num_rows == 12
    lines = made.to_latex().splitlines()
    assert lines[0].startswith("% NOT PRIVATE")
    assert lines[1] == r"\begin{tabular}{lllr}"
    assert len(lines) == 1 + 4 + 12 + 2
    assert (
        escaped(r"a\b{c}~^<>|")
        == r"a\textbackslash{}b\{c\}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}"
    )


def test_comparisons_go_out_as_releases_do():
    domain = pg.Domain({"age": 8})
    query, policy = pg.queries.identity(domain), pg.Policy(domain)
    one, sweep = (pg.compare(query, policy, epsilon=losses) for losses in (1, [1, 2]))
    for made, methods in ((one, one.methods), (sweep, sweep[0].methods)):
        assert made.to_arrow().equals(made.table())
        assert list(made.to_pandas()["name"]) == list(made.to_polars()["name"])
        lines = made.to_latex().splitlines()
        assert lines[1] == r"\toprule"
        assert [line.partition(" & ")[0] for line in lines[4:-2]] == [each.name for each in methods]


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(pg.InputError, match="pip install polars"):
        releases.line().to_polars()


def test_sweeps():
    domain = pg.Domain({"age": 20})
    policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    query = pg.queries.identity(domain)
    methods = ["every answer", "edges"]
    sweep = pg.compare(query, policy, rho=["0.1", 1], methods=methods)
    assert len(sweep) == 2
    assert sweep[1].loss == pg.Rho(1)
    assert sweep.errors("edges")[0] > sweep.errors("edges")[1]
    alone = pg.compare(query, policy, rho=1, methods=methods)
    assert sweep[1]["edges"].expected == alone["edges"].expected
    assert sweep.table().column_names[0] == "loss"
    assert len(sweep.to_dict()["comparisons"]) == 2
    assert len(sweep.plot().axes[0].lines) == 2
    measured = pg.compare(query, policy, epsilon=(1, 2), methods=methods, data=np.arange(20), runs=2)
    assert str(measured).startswith("PUBLIC")
    for losses in ({"epsilon": []}, {"epsilon": [1], "rho": 1}):
        with pytest.raises(pg.InputError) as caught:
            pg.compare(query, policy, methods=methods, **losses)
        assert caught.value.code == "compare.losses"
