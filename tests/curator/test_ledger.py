"""The ledger as a book: limits, charges, policies, statements, what it tells and what it hides."""

from __future__ import annotations

import json
import math
import secrets
import tempfile
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.curator.ledger import Ledger, request_fingerprint
from policygraph.curator.ledger.rules import Limit, Spending, state, tally
from policygraph.errors import BudgetError, InputError, LedgerError
from policygraph.model.loss import Epsilon, EpsilonDelta, Rho
from tests.oracles.ledger import Book

DATA, OTHER = "ab" * 32, "sha256:" + "12" * 32
P, Q = "policy-p", "policy-q"


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    """Where a new ledger may be: the same rules hold in a file and on a server."""
    if request.param == "file":
        return tmp_path / "budget.db"
    return request.getfixturevalue("postgres_server").url(ledger=f"t{secrets.token_hex(6)}")


@pytest.fixture
def ledger(place):
    return Ledger(place)


def test_a_charge_is_found_by_whoever_opens_the_file(ledger):
    charge = ledger.charge(
        DATA, P, Epsilon("1/3"), "r", name="people", description={"graph": "full"}, note="first"
    )
    again = Ledger(ledger.path, create=False)
    assert again.spent("people") == again.spent(DATA) == again.spent(charge.dataset) == Epsilon("1/3")
    (entry,) = again.history()
    assert (entry.number, entry.status, entry.policy, entry.note) == (charge.number, "charged", P, "first")
    assert entry.loss == Epsilon("1/3")
    again.complete(charge, b"noisy")
    (entry,) = ledger.history("people")
    assert (entry.status, entry.release_bytes) == ("completed", 5)
    assert again.export()["policies"] == {P: {"graph": "full"}}


def test_without_a_limit_charges_are_only_recorded(ledger):
    ledger.charge(DATA, P, Epsilon(100), "r")
    assert ledger.limit(DATA) is None
    assert ledger.spent(DATA) == Epsilon(100)
    with pytest.raises(InputError) as problem:
        ledger.left(DATA)
    assert problem.value.code == "ledger.no-limit"


def test_ten_tenths_are_one_and_an_eleventh_is_refused(ledger):
    ledger.set_limit(DATA, Epsilon(1), name="people")
    assert ledger.spent(DATA) is None
    for number in range(10):
        ledger.charge(DATA, P, Epsilon(0.1), f"r{number}")
    assert ledger.spent(DATA) == Epsilon(1)
    assert ledger.left(DATA) is None
    with pytest.raises(BudgetError) as problem:
        ledger.charge(DATA, P, Epsilon("1/1000000000"), "r")
    assert problem.value.exit_status == 3
    assert problem.value.details == {
        "asked": Epsilon("1/1000000000"), "spent": Epsilon(1), "left": None, "limit": Epsilon(1)
    }  # fmt: skip
    assert "people" in str(problem.value)
    assert len(ledger.history()) == 11


def test_the_last_limit_counts_and_may_be_lower_than_what_is_spent(ledger):
    ledger.set_limit(DATA, Epsilon(1))
    ledger.charge(DATA, P, Epsilon(1), "r")
    ledger.set_limit(DATA, Epsilon(0.5), note="lowered")
    assert ledger.left(DATA) is None
    ledger.set_limit(DATA, Epsilon(2), note="raised")
    assert ledger.left(DATA) == Epsilon(1)
    assert [entry.note for entry in ledger.history() if entry.what == "limit"] == ["", "lowered", "raised"]


def test_data_sets_do_not_share_a_budget(ledger):
    ledger.set_limit(DATA, Epsilon(1))
    ledger.charge(DATA, P, Epsilon(1), "r")
    ledger.charge(OTHER, P, Epsilon(1), "r")
    assert [account.spent for account in ledger.datasets()] == [Epsilon(1)] * 2
    assert [entry.dataset for entry in ledger.history(OTHER)] == [ledger.account(OTHER).dataset]


def test_a_rho_never_fits_a_pure_limit(ledger):
    ledger.set_limit(DATA, Epsilon(1000))
    with pytest.raises(BudgetError) as problem:
        ledger.charge(DATA, P, Rho("1/1000000"), "r")
    assert problem.value.code == "budget.kind"
    with pytest.raises(BudgetError):
        ledger.left(DATA, Rho)
    ledger.charge(OTHER, P, Rho("1/1000000"), "r")
    with pytest.raises(BudgetError):
        ledger.set_limit(OTHER, Epsilon(1000))
    assert ledger.limit(OTHER) is None


def test_a_rho_limit_takes_an_epsilon_at_half_its_square(ledger):
    ledger.set_limit(DATA, Rho(1))
    ledger.charge(DATA, P, Epsilon(1), "r")
    assert ledger.spent(DATA) == Rho("1/2")
    assert ledger.left(DATA) == Rho("1/2")
    assert ledger.left(DATA, Epsilon) == Epsilon(1)
    ledger.charge(DATA, P, Rho("1/2"), "r")
    assert ledger.left(DATA) is None


def test_a_pair_limit_takes_both_kinds_and_states_what_it_keeps(ledger):
    target = EpsilonDelta(1, 1e-6)
    ledger.set_limit(DATA, target)
    room = target.to_rho()
    assert ledger.left(DATA) == room
    assert ledger.left(DATA, Epsilon) == Epsilon(1)
    ledger.charge(DATA, P, Epsilon("1/10"), "r")
    assert ledger.spent(DATA) == EpsilonDelta("1/10", 1e-6)
    ledger.charge(DATA, P, Rho(room.value - Fraction(1, 200)), "r")
    assert ledger.left(DATA) is None
    assert ledger.spent(DATA) <= target
    with pytest.raises(BudgetError):
        ledger.charge(DATA, P, Epsilon("1/1000"), "r")


def test_a_pair_is_a_limit_and_never_a_charge(ledger):
    with pytest.raises(InputError) as problem:
        ledger.charge(DATA, P, EpsilonDelta(1, 1e-6), "r")
    assert "to_rho" in str(problem.value)
    with pytest.raises(InputError):
        ledger.set_limit(DATA, 1)


def test_a_further_policy_is_refused_until_it_is_accepted(ledger):
    ledger.charge(DATA, P, Epsilon(1), "r1")
    with pytest.raises(BudgetError) as problem:
        ledger.charge(DATA, Q, Epsilon(2), "r2")
    assert problem.value.code == "budget.further-policy"
    assert problem.value.details["intersection"] == Epsilon(3)
    assert "only some of them has no guarantee" in str(problem.value)
    ledger.charge(DATA, Q, Epsilon(2), "r2", compose_policies=True)
    ledger.charge(DATA, P, Epsilon(1), "r3")
    with pytest.raises(BudgetError) as problem:  # one that was accepted accepts no third
        ledger.charge(DATA, "policy-r", Epsilon(1), "r4")
    assert problem.value.code == "budget.further-policy"
    assert [entry.composed for entry in ledger.history()] == [False, True, False]
    told = ledger.statement(DATA)
    assert told.per_policy == {P: Epsilon(2), Q: Epsilon(2)}
    assert (told.intersection, told.union) == (Epsilon(4), None)
    assert "no guarantee" in str(told)
    assert ledger.statement(DATA, {(P, Q): 3, (Q, P): 1}).union == Epsilon(8)
    assert ledger.statement(DATA, {(P, Q): 3, (Q, P): None}).union is None
    with pytest.raises(InputError):
        ledger.statement(DATA, {(P, Q): 0, (Q, P): 1})


def test_a_limit_is_on_the_sum_over_policies(ledger):
    ledger.set_limit(DATA, Epsilon(2))
    ledger.charge(DATA, P, Epsilon(1), "r1")
    with pytest.raises(BudgetError) as problem:
        ledger.charge(DATA, Q, Epsilon("3/2"), "r2", compose_policies=True)
    assert problem.value.code == "budget.exceeded"
    assert len(ledger.statement(DATA).per_policy) == 1


def test_statement_of_one_policy_and_of_nothing(ledger):
    assert "nothing was released" in str(ledger.statement(DATA))
    assert ledger.statement(DATA).union is None
    ledger.charge(DATA, P, Rho(1), "r1", name="people")
    told = ledger.statement("people")
    assert told.union == told.intersection == Rho(1)
    assert str(told) == "Data set people: rho = 1 for the secret pairs of policy policy-p."
    assert json.loads(json.dumps(told.to_json()))["union"] == {"kind": "rho", "value": "1"}


def test_a_repeated_request_returns_the_record(ledger):
    parts = {"query": "q", "policy": P, "mechanism": {"name": "laplace"}, "data": DATA}
    request = request_fingerprint(loss=Epsilon(1), **parts)
    assert ledger.recorded(request) is None
    charge = ledger.charge(DATA, P, Epsilon(1), request)
    assert ledger.recorded(request) is None
    ledger.complete(charge, b"\x00noisy\xff")
    assert ledger.recorded(request) == b"\x00noisy\xff"
    assert ledger.recorded(request_fingerprint(loss=Epsilon(2), **parts)) is None
    for key, value in (("query", "q2"), ("policy", Q), ("mechanism", {"name": "x"}), ("data", OTHER)):
        assert request_fingerprint(loss=Epsilon(1), **{**parts, key: value}) != request
    with pytest.raises(InputError):
        request_fingerprint(loss=Epsilon(1), **{**parts, "mechanism": {"scale": object()}})


def test_a_charge_is_completed_once_and_in_its_own_ledger(ledger, tmp_path):
    charge = ledger.charge(DATA, P, Epsilon(1), "r")
    other = Ledger(tmp_path / "other.db")
    other.charge(DATA, P, Epsilon(1), "r")
    with pytest.raises(LedgerError) as problem:
        other.complete(charge, b"x")
    assert problem.value.code == "ledger.unknown-charge"
    ledger.complete(charge, b"x")
    with pytest.raises(LedgerError) as problem:
        ledger.complete(charge, b"y")
    assert problem.value.code == "ledger.completed"
    assert ledger.recorded("r") == b"x"


def test_a_name_stays_with_its_data(ledger):
    ledger.charge(DATA, P, Epsilon(1), "r", name="people")
    ledger.charge("people", P, Epsilon(1), "r", name="people")
    with pytest.raises(LedgerError) as problem:
        ledger.charge(OTHER, P, Epsilon(1), "r", name="people")
    assert problem.value.code == "ledger.name-taken"
    for name in ("persons", "", "ab" * 10, "d:x", "two\nlines"):
        with pytest.raises(InputError):
            ledger.set_limit(DATA, Epsilon(9), name=name)
    assert ledger.limit(DATA) is None
    assert len(ledger.datasets()) == 1


def test_a_misspelt_name_is_not_taken_for_new_data(ledger):
    ledger.charge(DATA, P, Epsilon(1), "r", name="people")
    for call in (ledger.spent, ledger.history, ledger.statement):
        with pytest.raises(InputError) as problem:
            call("peple")
        assert "people" in str(problem.value)
    with pytest.raises(InputError):
        ledger.charge("peple", P, Epsilon(1), "r")
    for bad in ("", None, 3, "x" * 300):
        with pytest.raises(InputError):
            ledger.charge(DATA, bad, Epsilon(1), "r")
        with pytest.raises(InputError):
            ledger.charge(DATA, P, Epsilon(1), bad)
    assert ledger.spent("people") == Epsilon(1)


def test_nothing_that_is_told_contains_a_digest_of_the_data(ledger):
    request = request_fingerprint(query="q", policy=P, loss=Epsilon(1), mechanism={}, data=DATA)
    ledger.set_limit(DATA, Epsilon(1))
    charge = ledger.charge(DATA, P, Epsilon(1), request)
    with pytest.raises(BudgetError) as problem:
        ledger.charge(DATA, P, Epsilon(1), request)
    told = [json.dumps(ledger.export()), str(problem.value), repr(problem.value.details), repr(charge)]
    told += [repr(ledger.history()), repr(ledger.datasets()), str(ledger.statement(DATA)), repr(ledger)]
    assert not [text for text in told if DATA[:16] in text or request[:16] in text]
    if isinstance(ledger.path, Path):
        assert DATA[:16].encode() not in ledger.path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = Ledger(f"{folder}/other.db").charge(DATA, P, Epsilon(1), request)
    assert elsewhere.dataset != charge.dataset


def test_export_is_json_and_complete(ledger):
    ledger.set_limit(DATA, Epsilon(3), name="people")
    ledger.charge(DATA, P, Epsilon(1), "r", description={"graph": "line"})
    book = json.loads(json.dumps(ledger.export()))
    assert book["format"] == "policygraph-ledger"
    (account,) = book["datasets"]
    assert account["left"] == {"kind": "epsilon", "value": "2"}
    assert [entry["what"] for entry in book["entries"]] == ["limit", "charge"]
    assert book["policies"] == {P: {"graph": "line"}}


small = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(1, 10), Fraction(7, 5)])
losses = st.builds(Epsilon, small) | st.builds(Rho, small)
limits = losses | st.builds(EpsilonDelta, small, st.sampled_from([1e-6, 0.1]))


@given(limits, st.lists(st.tuples(losses, st.integers(1, 4)), max_size=6))
@settings(deadline=None)
def test_rules_agree_with_the_literal_book(target, charges):
    """Sums, admission and what is left, against a list that is added up anew; and left is the most that fits."""
    book = Book(limit=target, charges=[(P, loss) for loss, times in charges for _ in range(times)])
    spending = tally(charges)
    assert spending.rho == book.sum_of_rhos()
    assert spending.pure == (book.sum_of_epsilons() if book.all_pure() else None)
    rule = Limit.of(target)
    if isinstance(target, Epsilon) and spending.pure is None:
        with pytest.raises(BudgetError):
            rule.admits(spending)
        return
    assert rule.admits(spending) == book.kept()
    if book.kept() and rule.spent(spending) is not None:
        assert rule.spent(spending) <= target
    for kind in (Epsilon,) if isinstance(target, Epsilon) else (Epsilon, Rho):
        left = rule.left(spending, kind)
        if left is not None:
            assert book.charge(P, left, compose=False)
            book.charges.pop()
        more = kind(Fraction(1, 10**6) if left is None else left.value * Fraction(10**6 + 1, 10**6))
        assert not book.charge(P, more, compose=False)


steps = st.tuples(st.just("charge"), st.sampled_from([P, Q]), losses, st.booleans()) | st.tuples(
    st.just("limit"), limits
)


@given(st.lists(steps, max_size=8))
@settings(max_examples=20, deadline=None)
def test_the_file_agrees_with_the_literal_book(actions):
    book = Book()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/budget.db")
        for number, (verb, *rest) in enumerate(actions):
            allowed = book.set_limit(*rest) if verb == "limit" else book.charge(*rest)
            try:
                if verb == "limit":
                    ledger.set_limit(DATA, *rest)
                else:
                    policy, loss, compose = rest
                    ledger.charge(DATA, policy, loss, f"r{number}", compose_policies=compose)
            except BudgetError:
                assert not allowed
            else:
                assert allowed
        entries = Ledger(ledger.path).history()
        assert [(e.policy, e.loss) for e in entries if e.what == "charge"] == book.charges
        assert ledger.limit(DATA) == book.limit


weights = st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=4, max_size=4)


@given(weights, weights, st.sets(st.sampled_from(list(combinations(range(4), 2))), min_size=1))
@settings(deadline=None)
def test_statements_bound_what_two_mechanisms_really_lose(first, second, extra):
    """One record on four cells, policy P a line and Q any graph: exact ratios against the statement."""
    line = list(pairwise(range(4)))
    pairs = {P: line, Q: sorted(extra)}
    rows = {
        name: [[Fraction(w, sum(row)) for w in row] for row in table]
        for name, table in ((P, first), (Q, second))
    }

    def loss(name, edges):
        worst = max(
            rows[name][a][o] / rows[name][b][o]
            for u, v in edges
            for a, b in ((u, v), (v, u))
            for o in range(3)
        )
        return Fraction(math.log(worst) * (1 + 1e-12) + 1e-12)

    def both(edges):
        return sum(loss(name, edges) for name in (P, Q))

    spendings = {name: Spending(value, value**2 / 2) for name in (P, Q) if (value := loss(name, pairs[name]))}
    stretch = {(P, Q): _stretch(line, pairs[Q]), (Q, P): _stretch(pairs[Q], line)}
    told = state("d", None, None, spendings, stretch)
    slack = Fraction(1, 10**9)
    common = [edge for edge in line if edge in pairs[Q]]
    if common:
        assert both(common) <= told.intersection.value + slack
    if told.union is not None:
        assert both(line + pairs[Q]) <= told.union.value + slack
    else:
        assert stretch[P, Q] is None


def _stretch(pairs, edges):
    distance = [[0 if a == b else math.inf for b in range(4)] for a in range(4)]
    for u, v in edges:
        distance[u][v] = distance[v][u] = 1
    for k in range(4):
        for a in range(4):
            for b in range(4):
                distance[a][b] = min(distance[a][b], distance[a][k] + distance[k][b])
    worst = max(distance[u][v] for u, v in pairs)
    return None if worst == math.inf else worst
