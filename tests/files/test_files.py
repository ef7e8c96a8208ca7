"""Policy files: the contract's forms, all mistakes at once with their places, round trips, the JSON Schema."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.errors import InputError
from policygraph.files import PolicyFileError, dumps, json_schema, load, loads
from policygraph.model import queries
from policygraph.model.constraints import (
    Cells,
    Constraint,
    Cuboid,
    Degrees,
    LinearCount,
    StructuralZero,
    Total,
    count,
)
from policygraph.model.domain import Domain, Network
from policygraph.model.file_options import OPTIONS, expected_option
from policygraph.model.graphs import PolicyGraph
from policygraph.model.policy import Policy
from tests.paths import ROOT

POLICIES = sorted((ROOT / "policies").glob("*.toml"))
TABLE = '[domain]\nsex = ["F", "M"]\nage = 7\nsalary = 5\n'
NETWORK = "[network]\nnodes = 7\ndirected = false\nloops = false\n"


def problems_of(text: str) -> dict[str, str]:
    with pytest.raises(PolicyFileError) as caught:
        loads(text)
    return {problem.path: problem.message for problem in caught.value.problems}


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_the_policies_that_come_along(path: Path) -> None:
    file = load(path)
    again = loads(dumps(file.policy, file.releases, columns=file.columns))
    assert (again.policy, again.releases, again.query) == (file.policy, file.releases, file.query)
    assert again.policy.fingerprint == file.policy.fingerprint
    jsonschema.validate(tomllib.loads(file.text), json_schema())
    comment = file.text.partition("[")[0]
    for word in ("For whom:", "Protects:", "Does not protect:"):
        assert word in comment


def test_there_is_a_policy_for_each_kind_of_user() -> None:
    expected = "plain-bounded plain-unbounded geo-grid ordinal-salary one-sensitive-attribute census-margins social-graph"
    assert set(expected.split()) <= {path.stem for path in POLICIES}


def test_the_contract_of_tables() -> None:
    file = loads(
        TABLE
        + '[neighbours]\ngraph = "none"\nbottom = false\nstrength = "positive"\nat_most_records = 3\n'
        + '[[public]]\ncuboid = ["sex"]\n[[public]]\ntotal = true\n'
        + '[[public]]\ncells = {of = ["sex", "age"], values = [["F", 0], ["M", 3]]}\n'
        + '[[public]]\ncount = {where = {age = [0, 1], sex = "F"}}\n'
        + '[[public]]\ncount = {terms = [{where = {age = 2}, times = 2}, {cell = ["M", 0, 4], times = -1}, {where = {age = 3}}]}\n'
        + '[[public]]\nzeros = [["F", 0, 3], {sex = "F", age = [5, 6]}]\n'
        + '[[release]]\ncuboid = ["sex", "age", "salary"]\n'
    )
    domain = Domain({"sex": ["F", "M"], "age": 7, "salary": 5})
    facts = [
        Cuboid("sex"),
        Total(),
        Cells(["sex", "age"], [["F", 0], ["M", 3]]),
        count({"age": [0, 1], "sex": "F"}),
        LinearCount([({"age": 2}, 2), (["M", 0, 4], -1), ({"age": 3}, 1)]),
        StructuralZero([["F", 0, 3], {"sex": "F", "age": [5, 6]}]),
    ]
    assert file.policy == Policy(domain, None, facts, "positive", 3)
    assert file.query == queries.cuboid(domain, "sex", "age", "salary")
    assert (file.columns, file.path) == (None, None)


def test_the_contract_of_networks() -> None:
    file = loads(NETWORK + "[[public]]\ndegrees = [0, 1, 2]\n[[release]]\nadjacency = true\n")
    assert file.policy == Policy(Network(7), constraints=[Degrees([0, 1, 2])])
    assert file.query == queries.adjacency(Network(7))
    directed = loads(
        '[network]\nnodes = ["a", "b", "c"]\ndirected = true\n[[public]]\nin_degrees = "all"\nequals = [1, 0, 1]\n'
        '[[public]]\nout_degrees = ["a"]\n[[public]]\ncount = {terms = [{cell = ["a", "b"]}]}\n'
        '[[release]]\nmixing = {a = "x", c = "y", b = "x"}\n'
    )
    network = Network(["a", "b", "c"], directed=True)
    facts: list[Constraint] = [
        Degrees("all", side="in", equals=[1, 0, 1]),
        Degrees(["a"], side="out"),
        LinearCount([(["a", "b"], 1)]),
    ]
    assert directed.policy == Policy(network, constraints=facts)
    assert directed.query == queries.mixing(network, ["x", "x", "y"])
    assert loads(NETWORK + "[[release]]\nmixing = {0=1, 1=1, 2=1, 3=2, 4=2, 5=2, 6=2}\n").query.height == 3
    assert loads(NETWORK + "[[release]]\ntotal = true\n").query.answer([1] * 21).tolist() == [21]


@pytest.mark.parametrize(
    ("form", "make"),
    [
        ('"full"', lambda d: PolicyGraph.full(d)),
        ('"attribute"', lambda d: PolicyGraph.attribute(d)),
        ('"bit"', lambda d: PolicyGraph.bit(d)),
        ('"grid"', lambda d: PolicyGraph.grid(d)),
        (
            '{threshold = "2.3", metric = "euclidean"}',
            lambda d: PolicyGraph.threshold(d, "2.3", metric="euclidean"),
        ),
        ('{threshold = 2, attribute = "age"}', lambda d: PolicyGraph.threshold(d, 2, "age")),
        (
            '{partition = [[0, 1], [2, 3, 4, 5, 6]], attribute = "age"}',
            lambda d: PolicyGraph.partition(d, [[0, 1], [2, 3, 4, 5, 6]], "age"),
        ),
        ("{edges = [[0, 1], [1, 5]]}", lambda d: PolicyGraph.from_edges(d, [(0, 1), (1, 5)])),
        ('{line = true, attribute = "salary"}', lambda d: PolicyGraph.line(d, "salary")),
        ('"none"', lambda d: None),
    ],
)
def test_the_forms_of_graphs(form: str, make: Any) -> None:
    file = loads(f"{TABLE}[neighbours]\ngraph = {form}\n")
    assert file.policy.graph == make(file.policy.domain)
    if form != '"none"':
        below = loads(f"{TABLE}[neighbours]\ngraph = {form}\nbottom = true\n")
        assert below.policy.graph == make(file.policy.domain).with_bottom()


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("", lambda d: queries.identity(d)),
        ('[[release]]\ncuboids = [["sex"], []]\n', lambda d: queries.cuboids(d, [["sex"], []])),
        (
            '[[release]]\ncuboids = [["sex"], ["age"]]\nweights = [2, 1]\n',
            lambda d: queries.cuboids(d, [["sex"], ["age"]], [2, 1]),
        ),
        (
            '[[release]]\ncuboid = ["sex"]\nweight = 2\n[[release]]\ntotal = true\n',
            lambda d: queries.cuboids(d, [["sex"], []], [2, 1]),
        ),
        ("[[release]]\nall_cuboids = true\n", lambda d: queries.all_cuboids(d)),
        ("[[release]]\nup_to = 2\n", lambda d: queries.all_cuboids(d, up_to=2)),
        ("[[release]]\nall_cuboids = true\nup_to = 1\n", lambda d: queries.all_cuboids(d, up_to=1)),
        (
            '[[release]]\nranges = {attribute = "age", pairs = [[0, 3], [2, 6]]}\n',
            lambda d: queries.ranges(d, [(0, 3), (2, 6)], "age"),
        ),
        ('[[release]]\nprefix = "age"\n', lambda d: queries.prefix(d, "age")),
        (
            '[[release]]\nmarginals = [["sex", "age"], ["salary"]]\nasked = {age = "prefix", salary = "ranges"}\nweights = [1, 2]\n',
            lambda d: queries.marginals(
                d, [["sex", "age"], ["salary"]], prefix="age", ranges="salary", weights=[1, 2]
            ),
        ),
        (
            '[[release]]\nmarginals = 2\nasked = {age = "prefix"}\n',
            lambda d: queries.marginals(d, 2, prefix="age"),
        ),
        (
            '[[release]]\nmarginals = [["age"]]\nasked = {age = "prefix"}\n[[release]]\ncuboid = ["sex"]\n',
            lambda d: queries.marginals(d, [["age"], ["sex"]], prefix="age"),
        ),
        (
            '[[release]]\nboxes = [{age = [2, 4], sex = "M"}, {}]\n',
            lambda d: queries.boxes(d, [((1, 2, 0), (1, 4, 4)), ((0, 0, 0), (1, 6, 4))]),
        ),
        (
            '[[release]]\nboxes = [{age = [0, 1], salary = [1, 3]}]\nname = "rectangles"\n',
            lambda d: queries.rectangles(d, [((0, 0, 1), (1, 1, 3))]),
        ),
    ],
)
def test_the_forms_of_releases(text: str, make: Any) -> None:
    file = loads(TABLE + text)
    assert file.query == make(file.policy.domain)
    assert loads(dumps(file.policy, file.releases)).query == file.query


def test_releases_of_several_kinds_are_stacked() -> None:
    file = loads(
        TABLE + '[[release]]\ncuboid = ["sex"]\n[[release]]\nprefix = "age"\n[[release]]\ntotal = true\n'
    )
    table = list(range(70))
    expected = [row for query in file.releases for row in query.answer(table).tolist()]
    assert file.query.answer(table).tolist() == expected
    assert list(file.query.part_labels(0)[0])[:3] == ["sex: F", "sex: M", "ranges of age: 0 to 0"]
    assert loads(dumps(file.policy, file.query)).query == file.query
    large = "[domain]\na = 10000\nb = 10000\n[[release]]\ncuboid = ['a']\n[[release]]\nmatrix = {rows = 1, entries = [[0, 1, 1]]}\n"
    assert "files of their own" in problems_of(large)["release"]


def test_cells_of_one_attribute_need_no_brackets() -> None:
    file = loads(
        '[domain]\nage = ["a", "b", "c"]\n[[public]]\nzeros = ["a"]\n[[public]]\ncells = {of = ["age"], values = ["b"]}\n'
    )
    assert file.policy.constraints == (StructuralZero([["a"]]), Cells("age", [["b"]]))
    assert loads(dumps(file.policy)).policy == file.policy


def test_reading_rules_and_columns() -> None:
    file = loads(TABLE + '[data]\nunknown = "drop"\ncolumns = {sex = "the sex"}\n')
    assert (file.policy.unknown, file.columns) == ("drop", {"sex": "the sex"})
    for form in ('{other = {sex = "M", age = 6}}', '{sex = "M", age = 6}'):
        other = loads(f"{TABLE}[data]\nunknown = {form}\n")
        assert dict(other.policy.unknown) == {"sex": "M", "age": 6}
        again = loads(dumps(other.policy, columns={"sex": "s"}))
        assert (again.policy, again.columns) == (other.policy, {"sex": "s"})
    named = loads('[domain]\nother = ["x", "y"]\n[data]\nunknown = {other = "y"}\n')
    assert dict(named.policy.unknown) == {"other": "y"}


def test_all_mistakes_are_reported_with_line_value_and_expectation() -> None:
    text = """\
[domain]
sex = ["F", "M"]
age = 7
bad = []

[neighbours]
graph = {treshold = 2}
bottom = "yes"
strength = "worst"
at_most_records = 0

[[public]]
cuboid = ["sexx", "age", "age"]

[[public]]
cubiod = ["sex"]

[[public]]
total = true
zeros = [["F", 0, 0]]
equals = 3

[[public]]
cells = {of = ["sex", "age"], values = [
  ["F", 0],
  ["f", 9],
]}

[[release]]
cuboids = [["sx"], 3]

[dta]
"""
    with pytest.raises(PolicyFileError) as caught:
        loads(text)
    found = {problem.path: (problem.line, problem.message) for problem in caught.value.problems}
    expected = {
        "domain.bad": (4, "at least one label"),
        "neighbours.bottom": (8, "'yes': expected true or false"),
        "neighbours.strength": (
            9,
            "'worst': expected 'worst-case', 'positive' or 'markov'. Did you mean 'worst-case'?",
        ),
        "neighbours.at_most_records": (10, "0: expected at least 1"),
        "public[0].cuboid[0]": (13, "Did you mean 'sex'?"),
        "public[0].cuboid[2]": (13, "'age' is named twice"),
        "public[1].cubiod": (16, "Did you mean 'cuboid'?"),
        "public[2]": (18, "not beside total and zeros"),
        "public[3].cells.values[1][0]": (24, "Did you mean 'F'?"),
        "public[3].cells.values[1][1]": (24, "age has no value 9"),
        "release[0].cuboids[1]": (30, "3: expected a list"),
        "dta": (32, "Did you mean 'data'?"),
    }
    assert set(found) == set(expected)
    for path, (line, words) in expected.items():
        assert found[path][0] == line, path
        assert words in found[path][1], path
    assert str(caught.value).startswith("the policy has 12 mistakes\n  line 4, domain.bad: ")
    assert caught.value.exit_status == 2
    assert [problem.line for problem in caught.value.problems] == sorted(
        line for line, _ in expected.values()
    )


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("", "", "expected a table [domain]"),
        (TABLE + NETWORK, "network", "both [domain] and [network]"),
        ("domain = 3\n", "domain", "3: expected a table"),
        ("[domain]\n", "domain", "at least 1"),
        ('[domain]\nage = "7"\n', "domain.age", "how many values"),
        ("[domain]\nage = 0\n", "domain.age", "at least one value"),
        ("[domain]\nage = [1, 1]\n", "domain.age", "twice"),
        ("[domain]\nage = [1, 2020-01-01]\n", "domain.age", "a label"),
        ("[network]\nnodes = true\n", "network.nodes", "true: expected"),
        ("[network]\ndirected = true\n", "network.nodes", "missing"),
        (NETWORK + 'multipel = true\n', "network.multipel", "Did you mean 'multiple'?"),
        ("public = 3\n" + TABLE, "public", "expected a list"),
        (TABLE + '[neighbours]\ngraph = "gird"\n', "neighbours.graph", "Did you mean 'grid'?"),
        (TABLE + "[neighbours]\ngraph = 3\n", "neighbours.graph", "3: expected full"),
        (TABLE + '[neighbours]\ngraph = "line"\n', "neighbours.graph", "which one is ordered"),
        (TABLE + '[neighbours]\ngraph = {threshold = 2, metric = "l3"}\n', "neighbours.graph", "'l1' or 'euclidean'"),
        (TABLE + "[neighbours]\ngraph = {threshold = 0}\n", "neighbours.graph", "threshold = 0: expected"),
        (TABLE + '[neighbours]\ngraph = {threshold = 2, attribute = "Age"}\n', "neighbours.graph.attribute", "Did you mean 'age'?"),
        (TABLE + "[neighbours]\ngraph = {treshold = 2}\n", "neighbours.graph.treshold", "Did you mean 'threshold'?"),
        (TABLE + '[neighbours]\ngraph = "full"\nstrength = "markov"\n[[public]]\ntotal = true\n', "neighbours.strength", "induced"),
        (TABLE + "[[public]]\ntotal = false\n", "public[0].total", "expected true"),
        (TABLE + "[[public]]\nequals = 3\n", "public[0]", "expected one of total, cuboid"),
        (TABLE + "[[public]]\n", "public[0]", "expected one of total, cuboid"),
        (TABLE + '[[public]]\ncuboid = ["sex"]\nequals = [1, 2, 3]\n', "public[0].equals", "3 published values for 2 sums"),
        (TABLE + '[[public]]\ncuboid = ["sex"]\nequals = [1, -2]\n', "public[0].equals", "-2"),
        (TABLE + '[[public]]\ntotal = true\nequals = "many"\n', "public[0].equals", "'many': expected the published values"),
        (TABLE + '[[public]]\nzeros = [["F", 0]]\n', "public[0].zeros[0]", "one label for each of sex, age, salary"),
        (TABLE + '[[public]]\nzeros = ["F"]\n', "public[0].zeros[0]", "['F']: expected one label for each"),
        (TABLE + '[[public]]\nzeros = [["F", 0, 0]]\nequals = 0\n', "public[0].equals", "structural zeros are 0"),
        (TABLE + '[[public]]\ncount = {where = {age = []}}\n', "public[0].count.where.age", "at least one label"),
        (TABLE + '[[public]]\ncount = {where = {age = 1}, terms = []}\n', "public[0].count", "where and terms together"),
        (TABLE + '[[public]]\ncount = {terms = [{times = 2}]}\n', "public[0].count.terms[0]", "expected one of where, cell"),
        (TABLE + '[[public]]\ncount = {terms = [{where = {age = 1}, times = 0.5}]}\n', "public[0].count.terms[0].times", "whole number"),
        (TABLE + "[[public]]\ndegrees = [0]\n", "public[0]", "network"),
        (TABLE + '[[public]]\ntotal = true\nequals = 5\n[[public]]\ncuboid = ["sex"]\nequals = [1, 1]\n', "public", "contradict"),
        (NETWORK + '[[public]]\ndegrees = ["0"]\n', "public[0].degrees[0]", "Did you mean 0?"),
        (NETWORK + '[[public]]\ndegrees = "some"\n', "public[0].degrees", "a list of nodes, or 'all'"),
        (NETWORK + '[[public]]\nin_degrees = [0]\n', "public[0]", "no directions"),
        (NETWORK + '[[public]]\ncuboid = ["a"]\n', "public[0].cuboid", "a network has no attributes"),
        (NETWORK + '[[public]]\nzeros = [[0, 1, 2]]\n', "public[0].zeros[0]", "two nodes"),
        (NETWORK + '[[release]]\ncuboid = ["a"]\n', "release[0].cuboid", "expected adjacency, mixing or a statistic"),
        (NETWORK + '[[release]]\nmixing = {0 = "a", 9 = "b"}\n', "release[0].mixing.9", "not a node"),
        (NETWORK + '[[release]]\nmixing = ["a", "b"]\n', "release[0].mixing", "2 groups for 7 nodes"),
        (NETWORK + '[data]\nunknown = {other = {a = 1}}\n', "data.unknown.a", "a network has no attributes"),
        (NETWORK + '[data]\ncolumns = {form = "a"}\n', "data.columns.form", "Did you mean 'from'?"),
        (NETWORK + '[data]\nduplicates = "drop"\n', "data.duplicates", "expected 'error' or 'merge'"),
        (TABLE + '[data]\nduplicates = "merge"\n', "data.duplicates", "edge lists"),
        (TABLE + '[public]\ncuboid = ["sex"]\n', "public", "write [[public]]"),
        (TABLE + '[release]\ncuboid = ["sex"]\n', "release", "write [[release]]"),
        ("[domain]\na = 100000000000000000000\n", "domain.a", "at most 2^62 values"),
        ("[domain]\na = [1.5, nan]\n", "domain.a", "nan"),
        ("[domain]\na = [true, 0, 5]\n", "domain.a", "true or false beside whole numbers"),
        (TABLE + "[[release]]\nadjacency = true\n", "release[0].adjacency", "a table has no adjacency"),
        (TABLE + '[[release]]\nprefix = "ag"\n', "release[0].prefix", "Did you mean 'age'?"),
        (TABLE + '[[release]]\nranges = {attribute = "age", pairs = [[3, 1]]}\n', "release[0].ranges", "low <= high"),
        (TABLE + '[[release]]\nmarginals = [["sex", "Age"]]\n', "release[0].marginals[0][1]", "Did you mean 'age'?"),
        (TABLE + '[[release]]\nmarginals = 4\n', "release[0].marginals", "expected 0 to 3"),
        (TABLE + '[[release]]\nmarginals = "all"\n', "release[0].marginals", "lists of attributes"),
        (TABLE + '[[release]]\nmarginals = 1\nasked = {agee = "prefix"}\n', "release[0].asked.agee", "Did you mean 'age'?"),
        (TABLE + '[[release]]\nmarginals = 1\nasked = {age = "suffix"}\n', "release[0].asked.age", "'values', 'prefix', 'ranges'"),
        (TABLE + '[[release]]\nmarginals = 1\nasked = {age = [[1, 2]]}\n', "release[0].marginals", "rows of 7 whole numbers"),
        (TABLE + '[[release]]\ncuboid = ["sex"]\nasked = {age = "prefix"}\n', "release[0].asked", "does not belong beside cuboid"),
        (TABLE + '[[release]]\nboxes = [{age = [4, 2]}]\n', "release[0].boxes[0].age", "2 comes before 4"),
        (TABLE + '[[release]]\nboxes = [{age = [2, 9]}]\n', "release[0].boxes[0].age[1]", "age has no value 9"),
        (TABLE + '[[release]]\nboxes = [{sex = "X"}]\n', "release[0].boxes[0].sex", "sex has no value 'X'"),
        (TABLE + '[[release]]\nboxes = [{ages = [2, 4]}]\n', "release[0].boxes[0].ages", "Did you mean 'age'?"),
        (TABLE + '[[release]]\nboxes = [{age = [2, 3, 4]}]\n', "release[0].boxes", "first and the last label"),
        (TABLE + '[[release]]\nboxes = []\n', "release[0].boxes", "a list of boxes"),
        (TABLE + '[[release]]\nboxes = "all ranges"\n', "release[0].boxes", "a domain with one attribute"),
        (TABLE + '[[release]]\nranges = {pairs = [[0, 1, 2]]}\n', "release[0].ranges.pairs[0]", "at most 2"),
        (TABLE + '[[release]]\ncuboid = ["sex"]\nweights = [1]\n', "release[0].weights", "does not belong beside cuboid"),
        (TABLE + '[[release]]\ncuboid = ["sex"]\n[[release]]\ncuboid = ["sex"]\n', "release", "twice"),
        (TABLE + '[data]\nunknown = "ignore"\n', "data.unknown", "'ignore': expected"),
        (TABLE + '[data]\nunknown = {other = {sex = "X"}}\n', "data.unknown.sex", "no value 'X'"),
        (TABLE + '[data]\ncolumns = {Sex = "x"}\n', "data.columns.Sex", "Did you mean 'sex'?"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_place(text: str, path: str, words: str) -> None:
    found = problems_of(text)
    assert path in found, found
    assert words in found[path]


def test_broken_toml_has_its_line(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError) as caught:
        loads("[domain]\nsex = [\n[neighbours]\n")
    assert "not valid TOML" in str(caught.value)
    with pytest.raises(PolicyFileError, match=r"line 2: this is not valid TOML, column 5"):
        loads("[domain]\nsex : 3\n")
    (tmp_path / "latin.toml").write_bytes(b"[domain]\n# \xe9\nage = 3\n")
    with pytest.raises(PolicyFileError, match="not UTF-8"):
        load(tmp_path / "latin.toml")
    (tmp_path / "bom.toml").write_bytes(b"\xef\xbb\xbf[domain]\r\nage = 3\r\n")
    assert load(tmp_path / "bom.toml").policy.domain == Domain({"age": 3})
    with pytest.raises(InputError) as missing:
        load(tmp_path / "nowhere.toml")
    assert missing.value.code == "file.missing"
    with pytest.raises(InputError):
        load(tmp_path)


def test_long_files_keep_their_key_paths() -> None:
    text = "[domain]\n" + "".join(f"a{i} = 2\n" for i in range(500)) + '[[release]]\ncuboid = ["b"]\n'
    with pytest.raises(PolicyFileError) as caught:
        loads(text)
    assert [(problem.path, problem.line) for problem in caught.value.problems] == [
        ("release[0].cuboid[0]", None)
    ]


DOMAIN = Domain({"sex": ["F", "M"], "two words": 3, 'q"t': [0.5, True, "x"]})
CODES = st.integers(0, 2)
facts = st.one_of(
    st.builds(Total, st.none()),
    st.lists(st.sampled_from(DOMAIN.names), unique=True).map(lambda names: Cuboid(*names)),
    st.lists(st.integers(0, 17), min_size=1, unique=True).map(
        lambda cs: Cells(DOMAIN.names, [DOMAIN.cell(c) for c in cs])
    ),
    st.tuples(st.lists(CODES, min_size=1, unique=True), st.integers(-3, 3)).map(
        lambda t: LinearCount([({"two words": t[0]}, t[1]), (DOMAIN.cell(4), 2)])
    ),
    st.lists(CODES, min_size=1, unique=True).map(
        lambda c: StructuralZero([{"two words": c, "sex": "F"}, DOMAIN.cell(17)])
    ),
    st.just(count({'q"t': ["x", True]}, equals=4)),
)
graphs = st.sampled_from(
    [
        None,
        PolicyGraph.full(DOMAIN),
        PolicyGraph.grid(DOMAIN).with_bottom(),
        PolicyGraph.threshold(DOMAIN, 2, "two words"),
        PolicyGraph.partition(DOMAIN, {"two words": [[0, 2], [1]]}),
        PolicyGraph.from_edges(DOMAIN, [(0, 1), (3, 17)]),
        PolicyGraph.product(DOMAIN, {'q"t': "line", "sex": "full"}),
    ]
)
asked = st.lists(
    st.sampled_from(
        [
            queries.cuboid(DOMAIN, "sex"),
            queries.cuboids(DOMAIN, [["two words"], []], [3, 1]),
            queries.prefix(DOMAIN, "two words"),
            queries.matrix(DOMAIN, [[1, -2] + [0] * 16]),
        ]
    ),
    unique=True,
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(
    given_facts=st.lists(facts, max_size=3),
    graph=graphs,
    asked=asked,
    cap=st.none() | st.integers(1, 5),
    unknown=st.sampled_from(["error", "drop", {"sex": "M", 'q"t': 0.5}]),
)
def test_python_and_toml_round_trip(given_facts: Any, graph: Any, asked: Any, cap: Any, unknown: Any) -> None:
    policy = Policy(DOMAIN, graph, given_facts, at_most_records=cap, unknown=unknown)
    text = dumps(policy, asked)
    again = loads(text)
    assert again.policy == policy
    assert again.policy.fingerprint == policy.fingerprint
    assert list(again.releases) == (asked or [queries.identity(DOMAIN)])
    jsonschema.validate(tomllib.loads(text), json_schema())
    assert dumps(again.policy, again.releases if asked else ()) == text


@pytest.mark.parametrize(
    "network",
    [Network(5, loops=True), Network(["a", "b c"], directed=True), Network([3, 1, 2], multiple=True)],
    ids=repr,
)
def test_networks_round_trip(network: Network) -> None:
    side = "in" if network.directed else "both"
    policy = Policy(
        network, constraints=[Degrees([network.nodes[0]], side=side), StructuralZero([network.cell(0)])]
    )
    asked = [queries.mixing(network, list(range(network.order)))]
    again = loads(dumps(policy, asked))
    assert again.policy == policy
    assert list(again.releases) == asked


def test_a_query_over_another_domain_is_not_written() -> None:
    with pytest.raises(InputError):
        dumps(Policy(DOMAIN), queries.identity(Domain({"a": 2})))


@pytest.mark.parametrize("name", OPTIONS)
def test_the_json_schema_takes_the_options_that_the_reader_takes(name: str) -> None:
    data = json_schema()["$defs"]["Data"]["properties"][name]
    check = jsonschema.Draft202012Validator(data)
    values = ["", ";;", "\r\n", True, False, 0, 1, 1.5, [], {}, *map(chr, range(300))]
    for value in values:
        taken = expected_option(name, value) is None
        # Which encodings there are is known to Python alone.
        assert check.is_valid(value) == (isinstance(value, str) if name == "encoding" else taken), value
        assert check.is_valid(value) or not taken


def test_the_json_schema_is_one_and_finds_mistakes() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    check = jsonschema.Draft202012Validator(schema)
    for good in (
        TABLE,
        NETWORK + "[[public]]\ndegrees = 'all'\n",
        TABLE + "[neighbours]\ngraph = {edges = [[0, 1]]}\n",
    ):
        assert check.is_valid(tomllib.loads(good))
    for bad in (
        "[domain]\nage = 0\n",
        TABLE + "[[public]]\ncubiod = ['sex']\n",
        TABLE + '[neighbours]\ngraph = "ful"\n',
        TABLE + "[neighbours]\ngraph = {treshold = 1}\n",
        TABLE + "[[release]]\ncuboid = 'sex'\n",
    ):
        assert not check.is_valid(tomllib.loads(bad))


def test_two_mistakes_in_data_are_both_reported() -> None:
    found = problems_of(TABLE + '[data]\nunknown = "ignore"\ncolumns = {Sex = "x"}\n')
    assert set(found) == {"data.unknown", "data.columns.Sex"}
    found = problems_of(TABLE + '[data]\nunknown = {other = {sex = "X"}}\ncolumns = {Sex = "x", age = 3}\n')
    assert set(found) == {"data.unknown.sex", "data.columns.Sex", "data.columns.age"}


@pytest.mark.parametrize("lines", ["bottom = true", 'graph = "none"\nbottom = true'])
def test_bottom_without_a_graph_says_what_is_so_already(lines: str) -> None:
    assert loads(TABLE + f"[neighbours]\n{lines}\n").policy == loads(TABLE).policy


def test_several_facts_in_one_table_are_as_many_facts() -> None:
    directed = "[network]\nnodes = 3\ndirected = true\n"
    both = loads(directed + '[[public]]\nin_degrees = "all"\nout_degrees = [0, 1]\n')
    apart = loads(directed + '[[public]]\nin_degrees = "all"\n[[public]]\nout_degrees = [0, 1]\n')
    assert both.policy == apart.policy
    assert len(both.policy.constraints) == 2
    found = problems_of(TABLE + "[[public]]\ntotal = true\ndegrees = [0]\n")
    assert set(found) == {"public[0].degrees"}


def test_rules_for_edge_lists_are_read_and_written() -> None:
    file = loads(
        NETWORK
        + '[data]\nunknown = "drop"\nduplicates = "merge"\nloops = "drop"\ncolumns = {from = "a", to = "b"}\n'
    )
    assert file.policy.unknown == "drop"
    assert file.edges == {"duplicates": "merge", "loops": "drop"}
    assert file.columns == {"from": "a", "to": "b"}
    again = loads(dumps(file.policy, file.releases, columns=file.columns, edges=file.edges))
    assert (again.policy, again.edges, again.columns) == (file.policy, file.edges, file.columns)
    assert loads(NETWORK).edges is None


@pytest.mark.parametrize("path", [5, None])
def test_a_path_that_is_none(path: object) -> None:
    with pytest.raises(InputError):
        load(path)  # type: ignore[arg-type]
