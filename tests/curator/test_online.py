"""Cuboids asked for one by one: least squares, the rule, the ledger, kills, two processes at once."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.cli.app import run
from policygraph.curator.histogram import named
from policygraph.curator.online import OnlineRule, _rounded
from policygraph.errors import BudgetError, InputError, LedgerError, RefusedError
from policygraph.estimation.online import Measurement, combine, reach_95, variance_of
from policygraph.transforms.cuboids.lattice import Lattice
from tests.curator.online_session import DOMAIN, QUESTIONS, session
from tests.oracles import cubes as oracle

SHAPES = [(3,), (2, 2), (2, 3), (1, 4), (2, 3, 2)]


def domain_of(shape):
    return pg.Domain({f"a{at}": n for at, n in enumerate(shape)})


@st.composite
def released(draw):
    shape = draw(st.sampled_from(SHAPES))
    lattice = Lattice(domain_of(shape))
    masks = st.integers(0, lattice.base)
    noises = draw(st.lists(st.tuples(masks, st.sampled_from([0.25, 1.0, 3.0, 40.0])), min_size=1, max_size=5))
    known = lattice.maximal(draw(st.lists(masks, unique=True, max_size=2)))
    return shape, lattice, noises, known, draw(st.integers(0, 2**32 - 1))


def dense(shape, noises, known, answers, tables, wanted):
    """Weighted least squares with every row written out; measurements of one cuboid stay apart."""
    rows = [oracle.cuboid_matrix(shape, mask) / variance**0.5 for mask, variance in noises]
    a = np.concatenate(rows)
    y = np.concatenate([np.ravel(x) / v**0.5 for x, (_, v) in zip(answers, noises, strict=True)])
    free = oracle.kernel(shape, known)
    start = np.zeros(a.shape[1])
    if known:
        k = np.concatenate([oracle.cuboid_matrix(shape, mask) for mask in known])
        start = np.linalg.pinv(k) @ np.concatenate([np.ravel(tables[mask]) for mask in known]).astype(float)
    estimate = free @ oracle.inverse(a @ free)
    x = start + estimate @ (y - a @ start)
    rows = oracle.cuboid_matrix(shape, wanted)
    seen = a @ free
    told = np.allclose(rows @ free @ (np.eye(free.shape[1]) - oracle.inverse(seen) @ seen), 0, atol=1e-8)
    return rows @ x, np.square(rows @ estimate).sum(axis=1) if told else np.full(len(rows), np.inf)


@settings(max_examples=120, deadline=None)
@given(released())
def test_what_was_released_is_combined_by_least_squares(case):
    shape, lattice, noises, known, seed = case
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 50, shape)
    tables = {
        m: (oracle.cuboid_matrix(shape, m) @ truth.ravel()).astype(int) for m in range(lattice.base + 1)
    }
    answers = [tables[mask] + rng.integers(-9, 10, lattice.size(mask)) for mask, _ in noises]
    measured = [Measurement(mask, y, v) for (mask, v), y in zip(noises, answers, strict=True)]
    made = combine(lattice, measured, {m: tables[m] for m in known})
    for mask in range(lattice.base + 1):
        values, variances = dense(shape, noises, known, answers, tables, mask)
        found = variance_of(lattice, mask, noises, known)
        # An attribute of one value changes nothing, so that a table can be computed from one without it.
        if not any(lattice.computable(mask, of=top) for top in [*known, *(m for m, _ in noises)]):
            assert found == np.inf
            assert mask not in made
            continue
        assert np.allclose(variances, found, atol=1e-9)
        assert np.allclose(made[mask].ravel(), values, atol=1e-6)
    for mask, table in made.items():
        for at, axis in enumerate(lattice.axes(mask)):
            assert np.array_equal(table.sum(axis=at), made[mask ^ (1 << axis)])
        if any(lattice.computable(mask, of=k) for k in known):
            assert np.array_equal(table.ravel(), tables[mask])


POLICIES = [
    pg.Policy(domain_of((2, 3))),
    pg.Policy(domain_of((2, 3)), pg.PolicyGraph.attribute(domain_of((2, 3)))),
    pg.Policy(domain_of((2, 3)), constraints=[pg.Cuboid("a0")]),
]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(POLICIES),
    st.sampled_from(["epsilon", "rho"]),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.5, 6.0, 60.0])), max_size=4),
    st.integers(0, 3),
    st.floats(0.7, 40),
)
def test_the_rule_takes_the_least_loss_that_is_enough(policy, kind, noises, mask, deviation):
    rule = OnlineRule(policy, kind, 50)
    now, loss = rule.decide(mask, noises, deviation, None)
    assert now == rule.variance(mask, noises)
    assert (loss is None) == (now <= deviation**2 * (1 + 1e-9))
    if loss is not None:
        after = [*noises, (mask, rule.fresh(mask, loss))]
        assert rule.variance(mask, after) <= deviation**2 * (1 + 1e-8)
        # The same question again costs nothing, and the next smaller number of three digits would not have done.
        assert rule.decide(mask, after, deviation, None)[1] is None
        assert _rounded(loss.value) == loss.value
        digits = Fraction(1)
        while loss.value / digits < 100:
            digits /= 10
        less = [*noises, (mask, rule.fresh(mask, rule.loss(loss.value - digits)))]
        assert rule.variance(mask, less) > deviation**2


def test_a_fixed_loss_is_paid_only_when_it_is_better_than_what_is_there():
    rule = OnlineRule(pg.Policy(domain_of((2, 3))), "epsilon", 1)
    fixed = pg.Epsilon("1/2")
    assert rule.decide(3, [], None, fixed)[1] == fixed
    there = [(3, rule.fresh(3, fixed))]
    assert rule.decide(3, there, None, fixed)[1] is None
    assert rule.decide(1, there, None, fixed)[1] == fixed
    assert rule.decide(1, there, None, pg.Epsilon("1/4"))[1] is None
    with pytest.raises(RefusedError) as caught:
        rule.decide(3, [], None, pg.Epsilon(2))
    assert caught.value.code == "online.most"
    with pytest.raises(RefusedError) as caught:
        rule.decide(3, [], 0.01, None)
    assert caught.value.code == "online.most"
    odd = OnlineRule(pg.Policy(domain_of((2, 3))), "epsilon", "1/3")
    assert odd.decide(3, [], rule.fresh(3, pg.Epsilon("1/3")) ** 0.5, None)[1] == pg.Epsilon("1/3")


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(2, 30)), min_size=1, max_size=5), st.data())
def test_what_is_paid_does_not_depend_on_the_data(tmp_path_factory, questions, data):
    """Two data sets, the same questions: the same prices, whatever the answers were."""
    domain = domain_of((2, 3, 2))
    lattice = Lattice(domain)
    folder = tmp_path_factory.mktemp("online")
    spent = []
    for at in range(2):
        counts = data.draw(st.lists(st.integers(0, 1000), min_size=12, max_size=12))
        cube = pg.OnlineCube(pg.Policy(domain), counts, folder / f"{at}.db", most=5)
        spent.append(
            [cube.ask(*lattice.names(mask), deviation=deviation).spent for mask, deviation in questions]
        )
    assert spent[0] == spent[1]


def test_answers_from_the_same_releases_agree_and_repeated_questions_cost_nothing(tmp_path):
    counts = np.arange(24) * 10
    cube = session(tmp_path / "budget.db", counts)
    first = [cube.ask(*names, deviation=deviation) for names, deviation in QUESTIONS]
    paid = [made.spent for made in first if made.spent is not None]
    assert 3 <= len(paid) < len(QUESTIONS)
    book = pg.Ledger(tmp_path / "budget.db")
    assert book.account("people").charges == len(paid)
    assert book.spent("people") == pg.Epsilon(sum(loss.value for loss in paid))
    for made, (names, deviation) in zip(first, QUESTIONS, strict=True):
        assert made.deviation <= deviation * (1 + 1e-8), names
        truth = counts.reshape(2, 4, 3).sum(
            axis=tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
        )
        assert np.abs(made.values - truth.ravel()).max() < 12 * made.deviation
        assert made.table.within_95 < 6 * made.deviation
    # Again, by another session: free, and now all from one state, so that they agree to the last bit.
    again = session(tmp_path / "budget.db", counts)
    second = {names: again.ask(*names, deviation=deviation) for names, deviation in QUESTIONS}
    assert all(made.spent is None for made in second.values())
    cells = second[("sex", "age", "region")].values.reshape(2, 4, 3)
    assert np.array_equal(cells.sum(axis=2).ravel(), second[("sex", "age")].values)
    assert np.array_equal(cells.sum(axis=(0, 1)).ravel(), second[("region",)].values)
    assert cells.sum() == second[()].values[0]
    assert np.array_equal(second[QUESTIONS[-1][0]].values, first[-1].values)
    assert book.account("people").charges == len(paid)
    assert "accurate enough" in str(second[()])
    assert second[()].arrow().num_rows == 1


def test_tables_released_otherwise_are_used_and_those_of_other_data_are_not(tmp_path):
    book = pg.Ledger(tmp_path / "budget.db")
    policy = pg.Policy(DOMAIN)
    counts = np.full(24, 7)
    query = pg.queries.cuboids(DOMAIN, [["sex", "age"], ["region"]], [2, 1])
    made = pg.release(query, policy, counts, epsilon=1, ledger=book, dataset="people", mechanism=pg.Laplace())
    cube = pg.OnlineCube(policy, counts, book, dataset="people")
    assert sorted(m.mask for m in cube.released()) == [3, 4]
    answer = cube.ask("sex", "age", deviation=made.tables[0].deviation)
    assert answer.spent is None
    wide = {m.mask: m.variance for m in cube.released()}
    assert wide[3] == pytest.approx(made.tables[0].deviation ** 2)
    assert wide[4] == pytest.approx(made.tables[1].deviation ** 2)
    # Cubes hold fitted tables, sums of a measure hold no counts, Gaussian noise is of another kind: none is used.
    pg.release(query, policy, counts, rho=1, ledger=book, dataset="people", mechanism=pg.Gaussian())
    cubed = pg.queries.all_cuboids(DOMAIN, up_to=1)
    pg.release(cubed, policy, counts, epsilon=1, ledger=book, dataset="people", mechanism=pg.Cube("all"))
    assert len(cube.released()) == 2
    assert len(pg.OnlineCube(policy, counts, book, dataset="people", kind="rho").released()) == 2
    seeded = pg.OnlineCube(policy, counts, book, dataset="people", source=pg.SeededRng(1))
    assert seeded.released() == []
    # Other data under the same name: charged together, never averaged together.
    other = pg.OnlineCube(policy, counts + 1, book, dataset="people")
    assert other.released() == []
    assert other.ask("sex", "age", deviation=10).spent is not None
    assert len(other.released()) == 1
    assert len(cube.released()) == 2


def test_exact_tables_are_free_and_help_the_others(tmp_path):
    domain = domain_of((2, 3))
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a0")])
    cube = pg.OnlineCube(policy, [1, 2, 3, 4, 5, 6], tmp_path / "budget.db", kind="rho")
    entry = pg.Rho("1/1000000000")
    assert cube.cost("a0", deviation=1) == entry
    for names, values, spent in ((("a0",), [6, 15], entry), ((), [21], None), (("a0",), [6, 15], None)):
        made = cube.ask(*names, deviation="1/1000")
        assert (made.values.tolist(), made.deviation, made.spent, made.private) == (values, 0, spent, True)
    assert cube.cost("a0", deviation=1) is None
    assert cube.book.datasets()[0].spent == entry
    joint = cube.ask("a0", "a1", rho="1/2")
    assert joint.spent == pg.Rho("1/2")
    assert joint.values.reshape(2, 3).sum(axis=1).tolist() == [6, 15]
    assert joint.deviation < cube.rule.fresh(3, pg.Rho("1/2")) ** 0.5
    assert cube.cost("a1", deviation=joint.deviation * 2) is None


def test_intervals_of_combinations_cover(tmp_path):
    """Several tables of different noise, many draws of the noise itself."""
    from policygraph.curator.noise import discrete_gaussian, discrete_laplace
    from policygraph.distributions import gaussian_variance, laplace_variance

    lattice = Lattice(domain_of((2, 3)))
    for draw, spread, law in (
        (discrete_laplace, laplace_variance, "discrete Laplace"),
        (discrete_gaussian, gaussian_variance, "discrete Gaussian"),
    ):
        parameters = {3: Fraction(2), 1: Fraction(1, 3), 2: Fraction(30), 0: Fraction(9)}
        source = pg.SeededRng(law)
        inside = dict.fromkeys(range(4), 0)
        for _ in range(400):
            measured = [
                Measurement(
                    mask,
                    draw(p, lattice.size(mask), source),
                    spread(p),
                    1.0,
                    float(p) if draw is discrete_laplace else float(p) ** 0.5,
                )
                for mask, p in parameters.items()
            ]
            made = combine(lattice, measured)
            for mask in inside:
                variance = variance_of(lattice, mask, [(m.mask, m.variance) for m in measured])
                reach = reach_95(variance, measured, law)
                inside[mask] += int(abs(made[mask].ravel()[0]) <= reach)
                # Wide where a noise is so small that its steps matter, and never absurd.
                assert reach <= 20 * variance**0.5
        assert all(hits >= 0.95 * 400 - 18 for hits in inside.values()), inside


def test_what_is_not_allowed_is_refused_and_costs_nothing(tmp_path):
    domain = domain_of((2, 3))
    book = pg.Ledger(tmp_path / "budget.db")
    book.set_limit(named("people"), pg.Epsilon("1/2"), name="people")
    counts = [1, 2, 3, 4, 5, 6]
    cube = pg.OnlineCube(pg.Policy(domain), counts, book, dataset="people")
    cube.ask("a0", epsilon="0.4")
    with pytest.raises(BudgetError) as caught:
        cube.ask("a0", "a1", epsilon="0.2")
    assert caught.value.code == "budget.exceeded"
    full = pg.Policy(domain, pg.PolicyGraph.full(domain))
    with pytest.raises(BudgetError) as caught:
        pg.OnlineCube(full, counts, book, dataset="people").ask("a1", epsilon="0.05")
    assert caught.value.code == "budget.further-policy"
    both = pg.OnlineCube(full, counts, book, dataset="people", compose_policies=True)
    assert both.released() == []
    assert both.ask("a1", epsilon="0.05").spent == pg.Epsilon("0.05")
    assert book.account("people").charges == 2
    for wrong, code in (
        (lambda: cube.ask("a0"), "online.asked"),
        (lambda: cube.ask("a0", deviation=1, epsilon=1), "online.asked"),
        (lambda: cube.ask("a0", rho=1), "online.asked"),
        (lambda: cube.ask("a0", deviation=0), "online.deviation"),
        (lambda: cube.ask("b"), "domain.unknown-attribute"),
        (lambda: pg.OnlineCube(pg.Policy(domain), counts, book, kind="delta"), "online.kind"),
        (lambda: pg.OnlineCube(domain, counts, book), "online.policy"),
        (lambda: pg.OnlineCube(pg.Policy(domain), counts, book, most=0), "loss.not-positive"),
    ):
        with pytest.raises(InputError) as caught:
            wrong()
        assert caught.value.code == code
    assert book.account("people").charges == 2


def test_a_table_that_is_paid_and_not_on_record_is_not_answered(tmp_path, monkeypatch):
    book = pg.Ledger(tmp_path / "budget.db")
    cube = pg.OnlineCube(pg.Policy(domain_of((2, 3))), [1, 2, 3, 4, 5, 6], book, dataset="people")
    monkeypatch.setattr(pg.OnlineCube, "_measurements", lambda *given: [])
    with pytest.raises(LedgerError, match="nothing was answered") as caught:
        cube.ask("a0", epsilon=1)
    assert caught.value.code == "online.record"
    assert book.account("people").charges == 1


def test_losses_are_rounded_up_to_three_digits():
    for value, rounded in (("123456", "124000"), ("0.12341", "0.124"), ("7", "7"), ("999.5", "1000")):
        assert _rounded(Fraction(value)) == Fraction(rounded)


def test_a_question_waits_for_another_and_says_so_when_it_cannot(tmp_path, monkeypatch):
    from policygraph.curator.ledger import store

    cube = session(tmp_path / "budget.db", np.ones(24, dtype=int))
    cube.ask("sex", deviation=10)
    monkeypatch.setattr(store, "ASKING_SECONDS", 0.05)
    with cube.book.asking(), pytest.raises(LedgerError) as caught:
        session(tmp_path / "budget.db", np.ones(24, dtype=int)).ask("age", deviation=10)
    assert caught.value.code == "online.busy"
    assert cube.ask("age", deviation=10).spent is not None


def test_the_command_asks(tmp_path, capsys):
    data = people(tmp_path / "people.csv")
    file = tmp_path / "policy.toml"
    file.write_text('[domain]\nsex = ["F", "M"]\nage = 4\nregion = 3\n')
    ask = [
        "ask",
        str(file),
        "--data",
        str(data),
        "--ledger",
        str(tmp_path / "budget.db"),
        "--dataset",
        "people",
    ]
    assert run([*ask, "--cuboid", "sex, age", "--deviation", "6", "--cost"]) == 0
    assert capsys.readouterr().out.strip() == "epsilon = 0.236"
    assert run([*ask, "--cuboid", "sex, age", "--deviation", "6", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (len(made["values"]), made["spent"], made["private"]) == (8, pg.Epsilon("0.236").to_json(), True)
    assert run([*ask, "--cuboid", "", "--deviation", "20", "--out", str(tmp_path / "total.csv")]) == 0
    assert "nothing was charged" in capsys.readouterr().out
    header, line = (tmp_path / "total.csv").read_text().splitlines()
    assert header == '"value","standard_deviation","within_95"'
    assert float(line.split(",")[0]) == pytest.approx(sum(made["values"]))
    assert run([*ask, "--cuboid", "age", "--deviation", "0.1"]) == 2
    assert "one question may cost at most" in capsys.readouterr().err
    assert run([*ask, "--cuboid", "region", "--rho", "0.1"]) == 0
    assert "\t" in capsys.readouterr().out
    assert pg.Ledger(tmp_path / "budget.db").account("people").charges == 2


def people(path):
    rng = np.random.default_rng(5)
    lines = [f"{'FM'[a]},{b},{c}" for a, b, c in zip(rng.integers(0, 2, 300), rng.integers(0, 4, 300), rng.integers(0, 3, 300), strict=True)]  # fmt: skip
    path.write_text("sex,age,region\n" + "\n".join(lines) + "\n")
    return path


def start(ledger, data):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.curator.online_session", str(ledger), str(data)],
        stdout=subprocess.PIPE,
        text=True,
    )


def answered(text):
    out = []
    for line in text.splitlines():
        try:
            out.append(json.loads(line))
        except json.JSONDecodeError:  # the line that the kill cut off
            continue
    return out


@pytest.mark.slow(recorded=True)
def test_a_killed_process_loses_no_charge_and_another_goes_on_where_it_stopped(tmp_path):
    data, ledger = people(tmp_path / "people.csv"), tmp_path / "budget.db"
    rng = np.random.default_rng(11)
    given_out = []
    whole = start(tmp_path / "alone.db", data)
    whole.communicate()
    for heard in rng.integers(1, len(QUESTIONS), 4).tolist():
        process = start(ledger, data)
        # Somewhere in the question after so many answers, however fast the machine is.
        lines = [process.stdout.readline() for _ in range(heard)]
        process.kill()  # SIGKILL
        given_out += answered("".join([*lines, process.communicate()[0]]))
    process = start(ledger, data)
    given_out += answered(process.communicate()[0])
    assert process.returncode == 0
    book = pg.Ledger(ledger)
    entries = [e for e in book.history("people") if e.what == "charge"]
    completed = [e for e in entries if e.status == "completed"]
    # Whatever was given out and paid for is on record, and a charge without a release is still a charge.
    paid = [Fraction(answer["spent"]) for answer in given_out if answer["spent"] is not None]
    losses = sorted(e.loss.value for e in completed)
    for loss in paid:
        losses.remove(loss)
    assert book.spent("people") == pg.Epsilon(sum(e.loss.value for e in entries))
    # Every question is answered now, and again at no cost.
    cube = session(ledger, data)
    last = {tuple(answer["names"]): answer["values"] for answer in given_out}
    for names, deviation in QUESTIONS:
        assert cube.ask(*names, deviation=deviation).spent is None
    assert list(cube.ask(*QUESTIONS[-1][0], deviation=QUESTIONS[-1][1]).values) == last[QUESTIONS[-1][0]]
    # No question was measured more often than in a session that nobody killed.
    alone = pg.Ledger(tmp_path / "alone.db").account("people").charges
    assert len(completed) == alone


@pytest.mark.slow(recorded=True)
def test_two_processes_at_once_pay_every_question_once(tmp_path):
    data, ledger = people(tmp_path / "people.csv"), tmp_path / "budget.db"
    pg.Ledger(ledger)
    both = [start(ledger, data) for _ in range(2)]
    outputs = [answered(process.communicate()[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert [len(out) for out in outputs] == [len(QUESTIONS)] * 2
    paid = [Fraction(answer["spent"]) for out in outputs for answer in out if answer["spent"] is not None]
    book = pg.Ledger(ledger)
    assert book.spent("people") == pg.Epsilon(sum(paid))
    alone = start(tmp_path / "alone.db", data)
    once = [Fraction(a["spent"]) for a in answered(alone.communicate()[0]) if a["spent"] is not None]
    assert sorted(paid) == sorted(once)


def test_tables_of_the_same_attributes_in_another_order_are_not_combined(tmp_path):
    """Their axes differ, and the fingerprints of query and policy do not."""
    rows = pyarrow.table({"a": [0] * 900 + [1] * 90, "b": [0] * 500 + [1] * 490})
    for names, truth in (("ab", [500, 400, 0, 90]), ("ba", [500, 0, 400, 90])):
        domain = pg.Domain(dict.fromkeys(names, 2))
        cube = pg.OnlineCube(pg.Policy(domain), rows, ledger=tmp_path / "budget.db", dataset="people")
        assert np.abs(cube.ask("a", "b", deviation=3).values - truth).max() < 60
