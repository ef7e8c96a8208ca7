"""The checker that needs the standard library only: no bound it accepts is too small, true certificates pass, changed ones do not."""

import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import pytest

import policygraph as pg
from policygraph import check as checker
from tests.sensitivity.test_forgeries import induced_policies, measured, network_policies, true_moves
from tests.strategies import queries, small_policies

FREE = ("method", "reason", "steps", "library", "cut_short", "effort")
"""Words for readers, which claim nothing that is checked."""
PROOFS = [{"kind": "theorem", "theorem": name} for name in checker.THEOREMS]
PROOFS += [{"kind": "listing", "of": name} for name in checker.LISTINGS]
PROOFS += [{"kind": "reduction", "to": "cells", "proof": proof} for proof in PROOFS]


def more_policies():
    """Tables with attributes of one value, zeros, shared attributes, several margins, and graphs of every form."""
    wide = pg.Domain({"a": 2, "b": 3, "c": 1})
    cube = pg.Domain({"a": 2, "b": 2, "c": 2})
    words = pg.Domain({"x": ["p", "q", "r", "s"], "y": [True, False]})
    bins = pg.Domain({"x": pg.Bins([0, 18, 65]), "y": 2})
    facts = [
        (wide, [pg.Cuboid("c")]),
        (wide, [pg.Cuboid("a", "c"), pg.Cuboid("b")]),
        (wide, [pg.Cuboid("b", "c"), pg.Total()]),
        (wide, [pg.Cells(["a"], [[0]]), pg.Cells(["b"], [[1], [2]])]),
        (wide, [pg.Cells(["a"], [[0]]), pg.Cells(["b"], [[1]]), pg.Total()]),
        (wide, [pg.Cells(["a", "b"], [[0, 0], [1, 2]])]),
        (wide, [pg.Cells(["a", "c"], [[0, 0]]), pg.StructuralZero([{"b": 1}])]),
        (cube, [pg.Cuboid("a", "b"), pg.Cuboid("b", "c")]),
        (cube, [pg.Cuboid("a", "b"), pg.Cells(["b", "c"], [[0, 0]])]),
        (cube, [pg.Cuboid("a", "b"), pg.Cuboid("b", "c"), pg.Cuboid("a", "c")]),
        (cube, [pg.Cuboid("a"), pg.Cuboid("b")]),
        (cube, [pg.Cuboid("a", "b"), pg.StructuralZero([(0, 0, 0)])]),
        (words, [pg.Cuboid("x"), pg.count({"y": [True]})]),
        (words, [pg.LinearCount([({"x": ["p", "q"]}, 1), ({"x": "r"}, 2)])]),
        (bins, [pg.Cuboid("x"), pg.StructuralZero([{"x": "65+", "y": 1}])]),
    ]
    for domain, listed in facts:
        for strength, cap in (("worst-case", None), ("markov", None), ("worst-case", 1), ("worst-case", 2)):
            yield pg.Policy(domain, constraints=listed, strength=strength, at_most_records=cap)
    forms = [
        "full",
        "attribute",
        "grid",
        {"threshold": 2},
        {"threshold": "1.5", "metric": "euclidean"},
        {"full": True, "attribute": "x"},
        {"line": True, "attribute": "x"},
        {"bit": True, "attribute": "x"},
        {"partition": {"x": [["p", "s"]], "y": 2}, "rest": "singletons"},
        {"partition": [[0, 1], [2, 3, 4, 5, 6, 7]]},
        {"product": {"x": {"threshold": 2}, "y": "full"}},
        {"product": {"x": {"edges": [["p", "r"]]}}},
        {"edges": [[0, 3], [2, 7]], "bottom": [1]},
        {"partition": [["p", "q"], ["r", "s"]], "attribute": "x"},
        {"edges": []},
    ]
    for form in forms:
        for bottom in (False, True):
            yield pg.Policy(words, pg.PolicyGraph.from_spec(words, form, bottom))


@lru_cache(maxsize=1)
def cases():
    """Small policies with all their moves, queries and norms."""
    rng = random.Random(11)
    policies = [*induced_policies(rng), *more_policies(), *network_policies()]
    policies += rng.sample(small_policies(7, [{"x": 3}, {"a": 2, "b": 2}]), 60)
    made = []
    for policy in policies:
        moves = true_moves(policy)
        if moves is None:
            continue
        table = isinstance(policy.domain, pg.Domain)
        asked = queries(policy.domain, rng) if table else [pg.queries.identity(policy.domain)]
        if table and len(policy.domain.names) > 1 and not [n for n in policy.domain.shape if n == 1]:
            names = policy.domain.names
            asked.append(pg.queries.marginals(policy.domain, [names, names[:1]], prefix=names[1]))
            asked.append(pg.queries.cuboids(policy.domain, [names[:1], names[1:2], names], [1, 3, 2]))
        if not table:
            asked.append(pg.queries.mixing(policy.domain, [at % 2 for at in range(policy.domain.order)]))
        for query in asked:
            made += [(policy, query, norm, measured(query, moves, norm)) for norm in ("l1", "l2")]
    return made


def plain(made):
    return json.loads(json.dumps(made))


@lru_cache(maxsize=1)
def certificates():
    """Certificates as they are written, each with the true value."""
    made = []
    for policy, query, norm, true in cases():
        made.append((plain(pg.sensitivity(query, policy, norm=norm).to_dict()), true))
    return made


def test_no_proof_proves_less_than_the_truth():
    tried = 0
    for policy, query, norm, true in cases():
        checker.Meter.left = checker.WORK
        problem = checker.Question(plain(policy.to_spec()), plain(query.to_spec()), norm)
        for proof in PROOFS:
            checker.Meter.left = checker.WORK // 50
            try:
                found, _ = checker.bound(problem, proof)
            except (checker.OpenError, checker.FailedError):
                continue
            tried += 1
            unit = query.unit if norm == "l1" else query.unit**2
            assert found * unit >= true, (policy.to_spec(), query.to_spec(), norm, proof, found, true)
    assert tried > 3000


def test_true_certificates_are_accepted():
    for data, true in certificates():
        report = checker.check(data)
        assert report["holds"], (data, report)
        power = Fraction(data["exact_value"]["value"])
        assert power >= true, data
        assert data["kind"] == "upper" or power == true, data
    assert len(certificates()) >= 1000


def lowered(data, power):
    """The same with another value, consistent in itself, with nothing attained."""
    forged = {**data, "kind": "upper", "witness": None, "lower": 0}
    forged["exact_value"] = {**data["exact_value"], "value": str(power), "lower": "0"}
    root = Fraction(power) if data["norm"] == "l1" else None
    if root is None:
        root = Fraction(power) ** Fraction(1, 2) if power else 0
        forged["value"] = int(root) if int(root) ** 2 == power else float(root) * (1 + 2**-50)
    else:
        forged["value"] = int(root) if root.denominator == 1 else float(root) * (1 + 2**-50)
    return forged


def named(data):
    """The same with fingerprints of its policy and query."""
    policy, query = data["policy"], data["query"]
    domain = policy.get("domain", policy.get("network"))
    data["policy_fingerprint"] = checker._digest(policy)
    data["query_fingerprint"] = checker._digest({"domain": domain, "query": query})
    return data


def leaves(value, path=()):
    yield path, value
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from leaves(part, (*path, at))


def changed(data, path, value):
    made = copy.deepcopy(data)
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return made


ODD = [None, True, -1, 1.5, float("nan"), float("inf"), "1", "x", [], {}, [[]], 10**30, "１", -0.0, {"a": 1}]


def test_changed_certificates_are_rejected():
    """Values below the truth with every proof, edited witnesses and facts, and odd things anywhere: at least 10,000."""
    rng = random.Random(3)
    rejected = 0
    every = [(data, true) for data, true in certificates() if data["proof"] is not None and true > 0]
    exact = [(data, true) for data, true in rng.sample(every, 700) if checker.check(data)["holds"]]
    for data, true in exact:
        # a smaller value, whatever the proof
        for less in {true - 1, true / 2, Fraction(0)}:
            if 0 <= less < true:
                for proof in [
                    data["proof"],
                    *rng.sample(PROOFS, 3),
                    rng.choice(["theorem", "listing", None]),
                ]:
                    rejected += 1
                    assert not checker.check({**lowered(data, less), "proof": proof})["holds"], (
                        data,
                        less,
                        proof,
                    )
        # more attained than is
        more = copy.deepcopy(data)
        more["exact_value"]["lower"] = more["exact_value"]["value"] = str(true + 1)
        rejected += 1
        assert not checker.check(more)["holds"]
        # something odd anywhere
        places = [path for path, _ in leaves(data) if path and path[0] not in (*FREE, "proof")]
        for path in rng.sample(places, min(10, len(places))):
            old = data
            for key in path:
                old = old[key]
            new = rng.choice(ODD)
            if type(new) is type(old) and new == old:
                continue
            rejected += 1
            assert not checker.check(changed(data, path, new))["holds"], (path, new, data)
        # another name, a missing one
        rejected += 2
        assert not checker.check({**data, "note": 1})["holds"]
        gone = rng.choice(["norm", "policy", "query", "witness", "proof", "strength", "definition"])
        assert not checker.check({key: value for key, value in data.items() if key != gone})["holds"]
    assert rejected >= 10_000


def test_another_policy_with_the_same_proof_is_held_to_its_own_truth():
    """Facts, strengths, caps and queries exchanged between certificates of one domain, with fingerprints that fit."""
    rng = random.Random(8)
    by_domain = {}
    for (policy, _, norm, true), (data, _) in zip(cases(), certificates(), strict=True):
        key = json.dumps(data["policy"].get("domain")), json.dumps(data["query"]), norm
        by_domain.setdefault(key, []).append((data, true, policy))
    tried = 0
    for some in by_domain.values():
        for data, _, _ in some:
            for other, true, _ in rng.sample(some, min(4, len(some))):
                keys = ("policy", "neighbours", "strength", "at_most_records", "definition")
                forged = {
                    **data,
                    **{key: other[key] for key in keys},
                    "policy_fingerprint": other["policy_fingerprint"],
                }
                tried += 1
                if checker.check(forged)["holds"]:
                    power = Fraction(forged["exact_value"]["value"])
                    assert power >= true, (forged, true)
                    assert forged["kind"] == "upper" or power == true, (forged, true)
    assert tried > 2000


@pytest.fixture
def margins():
    domain = pg.Domain({"a": 2, "b": 2, "c": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b"), pg.Cuboid("c")])
    return plain(pg.sensitivity(pg.queries.identity(domain), policy).to_dict())


def test_a_list_of_moves_that_lacks_one_is_rejected(margins):
    assert margins["proof"]["kind"] == "moves"
    assert checker.check(margins)["holds"]
    moves = margins["proof"]["moves"]
    for at in range(len(moves)):
        forged = changed(margins, ("proof", "moves"), moves[:at] + moves[at + 1 :])
        assert not checker.check(forged)["holds"], at
    for at in range(len(margins["proof"]["symmetries"])):
        turns = margins["proof"]["symmetries"]
        without = changed(margins, ("proof", "symmetries"), turns[:at] + turns[at + 1 :])
        checker.check(without)  # fewer symmetries only make fewer moves: rejected, or all are listed anyway
        wrong = list(range(len(turns[0])))
        wrong[0], wrong[5] = 5, 0
        assert not checker.check(changed(margins, ("proof", "symmetries", at), wrong))["holds"]
    assert not checker.check(changed(margins, ("proof", "moves", 0, 0), 7))["holds"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"format": 1, "format": 1}',
        '{"value": NaN}',
        "[" * 100_000,
        '{"format": ' + "9" * 5000 + "}",
        '{"format": 1e999}',
        "\ud800",
    ],
    ids=["empty", "null", "list", "twice", "nan", "deep", "huge", "infinite", "surrogate"],
)
def test_files_that_are_no_certificates_are_undecided(text):
    report = checker.check_text(text)
    assert not report["holds"]
    assert not report["complete"]


def test_a_name_that_occurs_twice_is_not_overlooked(margins):
    text = json.dumps(margins)
    assert checker.check_text(text)["holds"]
    assert not checker.check_text(text[:-1] + ', "kind": "exact"}')["holds"]
    assert not checker.check_text(text.replace('"a": 2', '"a": 2, "a": 2', 1))["holds"]


def test_the_command_needs_nothing_but_python(tmp_path, margins):
    """No module of the engine, and none that is installed, is loaded; 0 only for a certificate that holds."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(margins))
    bad.write_text(json.dumps(lowered(margins, margins["value"] - 2)))
    code = (
        "import sys; from policygraph import check; status = check.main(sys.argv[1:]); "
        "ours = [name for name in sys.modules if name.startswith('policygraph')]; "
        "assert sorted(ours) == ['policygraph', 'policygraph.check', 'policygraph.version'], ours; "
        "assert not {'numpy', 'scipy', 'networkx'} & set(sys.modules); sys.exit(status)"
    )
    for path, status, words in (
        (good, 0, "the certificate holds"),
        (bad, 2, "does NOT hold"),
        (tmp_path / "none.json", 2, "cannot be read"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
        assert words in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "policygraph.check", str(good), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["complete"] is True
    assert checker.main([]) == 2


def with_families(families):
    """A certificate of families under a public total, with the sentence that fits."""
    domain = pg.Domain({"x": 2})
    policy = pg.Families(pg.Policy(domain, constraints=[pg.Total()]), 3, exactly=True)
    data = plain(pg.sensitivity(pg.queries.identity(domain), policy).to_dict())
    words = "exactly" if families.get("exactly") else "up to"
    records = {key: value for key, value in data["policy"].items() if key != "unit"}
    data["policy"]["unit"] = families
    data["definition"] = data["definition"].replace("exactly", words)
    data["policy_fingerprint"] = checker._digest({"records": checker._digest(records), "unit": families})
    return {**data, "at_most": families["family"]}


def test_families_of_several_sizes_beside_facts_are_not_decided():
    """Two families of three against three of two change 12 counts where a family of three changes 6 (proofs/families.md)."""
    assert checker.check(with_families({"family": 3, "exactly": True}))["holds"]
    for families in ({"family": 3}, {"family": 3, "exactly": False}):
        report = checker.check(with_families(families))
        assert not report["holds"]
        assert not report["complete"]
    for beside in ({"at_most_records": 1}, {"strength": "positive"}):
        spec = {"domain": {"x": 2}, "neighbours": beside, "unit": {"family": 2, "exactly": True}}
        with pytest.raises(checker.OpenError, match="families"):
            checker.Question(spec, {"cuboids": [["x"]]}, "l1")


def test_a_certificate_is_written_where_its_proof_is_not_decided():
    """Signed counts and positive strength: the search for a proof ends without one, and with no error."""
    domain = pg.Domain({"x": 4})
    count = pg.LinearCount([((cell,), times) for cell, times in enumerate([3, -2, 1, -2])])
    policy = pg.Policy(domain, constraints=[count], strength="positive")
    made = pg.sensitivity(pg.queries.matrix(domain, [[1, 1, 1, 1], [-1, -2, 1, -2]]), policy)
    assert made.proof is None
    assert not made.proved
    assert made.to_dict()["proof"] is None


def table(*shape):
    return pg.Domain({"abcd"[at]: size for at, size in enumerate(shape)})


THEORY = [
    ((2, 2), "a", 2),
    ((3, 4), "a b", 6),
    ((2, 3, 2), "ab bc", 4),
    ((2, 2, 2), "a b c", 6),
    ((2, 2, 3), "a b c", 8),
    ((2, 2, 4), "a b c", 8),
    ((2, 2, 2), "ab bc ac", 8),
    ((3, 3, 2), "ab bc ac", 12),
    ((3, 3, 3), "ab bc ac", 24),
    ((2, 2, 2, 2), "ab cd", 8),
    ((2, 2, 2, 2), "ab bc cd", 10),
    ((1000, 1000), "a b", 2000),
]


@pytest.mark.parametrize(("shape", "facts", "value"), THEORY, ids=str)
def test_values_of_the_theory_are_complete(shape, facts, value):
    policy = pg.Policy(table(*shape), constraints=[pg.Cuboid(*names) for names in facts.split()])
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy)
    assert made.power == value
    assert checker.check_text(made.to_json())["holds"]


@pytest.mark.parametrize(
    ("nodes", "known", "value"), [(4, 3, 4), (5, 5, 6), (6, 4, 6), (6, 5, 7), (7, 7, 8), (60, 60, 88)]
)
def test_degrees_of_the_theory_are_complete(nodes, known, value):
    network = pg.Network(nodes)
    made = pg.sensitivity(
        pg.queries.adjacency(network), pg.Policy(network, constraints=[pg.Degrees(list(range(known)))])
    )
    assert made.power == value
    assert checker.check_text(made.to_json())["holds"]


def graph_and_facts():
    line = pg.Domain({"x": 6})
    counts = [pg.count({"x": [0, 1]}), pg.count({"x": [2, 3]})]
    square, cube = table(2, 2), table(2, 2, 2)
    one = [pg.Cuboid("a")]
    both = [*one, pg.Cuboid("b")]
    attribute = pg.PolicyGraph.attribute
    return [
        (pg.Policy(line, pg.PolicyGraph.threshold(line, 1), counts), 6),
        (pg.Policy(table(3, 2), pg.PolicyGraph.full(table(3, 2)), one), 6),
        (pg.Policy(square, attribute(square), one), 2),
        (pg.Policy(square, attribute(square), both), 4),
        (pg.Policy(cube, attribute(cube), both), 8),
    ]


@pytest.mark.parametrize("case", range(5))
def test_graph_and_facts_of_the_theory_are_complete(case):
    policy, value = graph_and_facts()[case]
    made = pg.sensitivity(pg.queries.identity(policy.domain), policy)
    assert made.power == value
    assert checker.check_text(made.to_json())["holds"]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("weaker", [{"strength": "markov"}, {"at_most_records": 2}], ids=["markov", "cap"])
def test_workloads_under_caps_and_markov_strength_are_complete(weaker, norm):
    """The widest swap of two records between two margins: values that are less than four times the longest column."""
    domain = table(10, 10)
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], **weaker)
    made = pg.sensitivity(pg.queries.marginals(domain, [["a", "b"]], prefix="b"), policy, norm=norm)
    assert (made.power, made.kind) == (18, "exact")
    data = plain(made.to_dict())
    assert data["proof"] == {"kind": "listing", "of": "changes-of-few-records"}
    assert checker.check(data)["holds"]
    assert not checker.check(lowered(data, made.power - 1))["holds"]
    # without the cap more records move together
    assert not checker.check(named({**data, "policy": {**data["policy"], "neighbours": {}}, **worst_case()}))[
        "holds"
    ]


def worst_case():
    return {"strength": "worst-case", "at_most_records": None, "definition": checker.SENTENCES["induced"]}


def test_a_markov_move_changes_a_kind_by_no_more_than_its_cells():
    """(2, -1) keeps the count and is no Markov move; with two cells of weight 1 it is (1, 1, -1)."""
    for cells, value in ((2, 0), (3, 3)):
        domain = pg.Domain({"x": cells})
        count = pg.LinearCount([((cell,), 2 if cell == cells - 1 else 1) for cell in range(cells)])
        policy = pg.Policy(domain, constraints=[count], strength="markov")
        asked = pg.queries.matrix(domain, [[1] * (cells - 1) + [0], [0] * (cells - 1) + [1]])
        made = pg.sensitivity(asked, policy)
        assert made.power == value
        assert checker.check(plain(made.to_dict()))["holds"]


def test_searches_on_many_cells_carry_lists_of_moves():
    """Overlapping counts on 10,000 cells: the moves are over eight kinds of cells."""
    domain = pg.Domain({"a": 100, "b": 100})
    counts = [
        pg.count({"a": list(range(50))}),
        pg.count({"b": list(range(30))}),
        pg.LinearCount([({"a": list(range(20, 70))}, 1), ({"b": [99]}, 2)]),
    ]
    made = pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=counts))
    data = plain(made.to_dict())
    assert data["proof"]["kind"] == "moves"
    assert checker.check(data)["holds"]
    assert not checker.check({**lowered(data, made.power - 1)})["holds"]


def test_theorems_that_would_take_too_many_steps_are_left_out_before_the_first(monkeypatch):
    """2^20 sets of attributes, and 2^20 cells of 190 tables."""
    monkeypatch.setattr(checker, "differing", None)
    monkeypatch.setattr(checker.AskedRows, "column", None)
    names = [f"a{at}" for at in range(20)]
    query = {"interactions": [list(some) for some in combinations(names, 2)]}
    domain = {"domain": dict.fromkeys(names, 2)}
    facts = checker.Question(
        {**domain, "public": [{"cuboid": ["a0"]}, {"cuboid": ["a1", "a2"]}]}, query, "l2"
    )
    edges = checker.Question({**domain, "neighbours": {"graph": "full"}}, query, "l2")
    monkeypatch.setattr(checker.Question, "known", None)
    for theorem, problem in (
        (checker.two_margins, facts),
        (checker.determined, facts),
        (checker.open_numbers, facts),
        (checker.two_open_numbers, facts),
        (checker.edge_attributes, edges),
        (checker.row_ranges, edges),
    ):
        checker.Meter.left = checker.WORK // 8
        with pytest.raises(checker.OpenError):
            theorem(problem)
        assert checker.Meter.left >= checker.WORK // 8 - 2**20  # for the cells themselves
