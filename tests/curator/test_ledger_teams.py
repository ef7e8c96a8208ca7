"""Accounts inside accounts, reservations, dates, forecasts, stretches and many charges; the same rules in a file and on a server."""

from __future__ import annotations

import csv
import io
import json
import secrets
import sqlite3
import threading
from collections import Counter
from contextlib import closing
from datetime import datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.curator.ledger import Ledger, exports, schema, teams
from policygraph.curator.ledger.rules import Limit, stretch_between, tally
from policygraph.errors import BudgetError, InputError, LedgerError
from policygraph.model.loss import Epsilon, EpsilonDelta, Rho

DATA, OTHER, P, Q = "ab" * 32, "cd" * 32, "policy-p", "policy-q"
AGES = pg.Domain({"age": 3})


class Day:
    """A clock that is set by hand."""

    def __init__(self, day="2027-03-01"):
        self.now = datetime.fromisoformat(f"{day}T12:00:00+00:00")

    def __call__(self):
        return self.now

    def on(self, day):
        self.now = datetime.fromisoformat(f"{day}T12:00:00+00:00")


@pytest.fixture
def clock():
    return Day()


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    if request.param == "file":
        return tmp_path / "budget.db"
    return request.getfixturevalue("postgres_server").url(ledger=f"t{secrets.token_hex(6)}")


@pytest.fixture
def ledger(place, clock):
    return Ledger(place, clock=clock, user="ada", host="office")


def code_of(call, *arguments, **named):
    with pytest.raises((LedgerError, InputError, BudgetError)) as caught:
        call(*arguments, **named)
    return caught.value.code


def organisation(ledger):
    """people (2) with two teams that may spend 3/2 each, one of them with a purpose of 1/2."""
    ledger.set_limit(DATA, Epsilon(2), name="people")
    for team in ("research", "planning"):
        ledger.set_limit(ledger.open_account(team, inside="people"), Epsilon("3/2"))
    ledger.set_limit(ledger.open_account("report", inside="people/planning"), Epsilon("1/2"))


def test_a_charge_must_fit_at_every_level(ledger):
    organisation(ledger)
    ledger.charge("people/planning/report", P, Epsilon("1/2"), "r1")
    for name, spent in (("people/planning/report", "1/2"), ("people/planning", "1/2"), ("people", "1/2")):
        assert ledger.spent(name) == Epsilon(spent)
    assert ledger.spent("people/research") is None
    with pytest.raises(BudgetError) as problem:
        ledger.charge("people/planning/report", P, Epsilon("1/10"), "r2")
    assert (problem.value.code, problem.value.details["account"]) == (
        "budget.exceeded",
        "people/planning/report",
    )
    ledger.charge("people/planning", P, Epsilon(1), "r3")
    with pytest.raises(BudgetError) as problem:
        ledger.charge("people/research", P, Epsilon(1), "r4")
    assert "Data set people: epsilon = 1 was asked" in str(problem.value)
    ledger.charge("people/research", P, Epsilon("1/2"), "r5")
    assert ledger.left("people") is None
    again = Ledger(ledger.path, create=False)
    assert again.account("people").charges == 3
    assert again.account("people/planning/report").inside == "people/planning"
    assert [entry.name for entry in again.history("people/planning") if entry.what == "charge"] == [
        "people/planning/report",
        "people/planning",
    ]


def test_shares_spend_on_the_same_data_and_data_without_a_name_on_the_whole(ledger):
    organisation(ledger)
    ledger.charge("people/research", P, Epsilon("1/4"), "r1", content=OTHER)
    ledger.charge("people/planning", P, Epsilon("1/4"), "r2", content=OTHER)
    assert ledger.account(OTHER).name == "people"
    ledger.set_limit("ef" * 32, Epsilon(9), name="elsewhere")
    assert code_of(ledger.charge, "elsewhere", P, Epsilon(1), "r3", content=OTHER) == "ledger.name-taken"


def test_a_further_policy_is_one_for_the_whole_data_set(ledger):
    organisation(ledger)
    ledger.charge("people/research", P, Epsilon("1/4"), "r1")
    assert code_of(ledger.charge, "people/planning", Q, Epsilon("1/4"), "r2") == "budget.further-policy"


def test_a_group_adds_up_its_data_sets(ledger):
    for number, name in enumerate(("people-2026", "people-2027")):
        ledger.set_limit(f"{number:064x}", Epsilon(2), name=name)
        ledger.join(name, "acme")
    ledger.set_limit("acme", Epsilon(3))
    ledger.charge("people-2026", P, Epsilon(2), "r1")
    with pytest.raises(BudgetError, match="Group acme"):
        ledger.charge("people-2027", Q, Epsilon("3/2"), "r2")
    ledger.charge("people-2027", Q, Epsilon(1), "r2")
    assert (ledger.spent("acme"), ledger.left("acme")) == (Epsilon(3), None)
    assert ledger.statement("acme").union is None
    assert code_of(ledger.charge, "acme", P, Epsilon(1), "r3") == "ledger.group"
    assert code_of(ledger.reserve, "acme", Epsilon(1)) == "ledger.group"
    assert code_of(ledger.open_account, "team", inside="acme") == "ledger.account"


def test_accounts_never_move_and_are_never_inside_themselves(ledger):
    organisation(ledger)
    ledger.set_limit(OTHER, Epsilon(1), name="others")
    ledger.join("people", "acme")
    ledger.join("acme", "world")
    for child, group in (
        ("world", "acme"),
        ("acme", "acme"),
        ("people", "elsewhere"),
        ("people/research", "x"),
    ):
        assert code_of(ledger.join, child, group) == "ledger.account"
    assert code_of(ledger.join, "others", "people") == "ledger.account", "people is of a data set"
    assert code_of(ledger.open_account, "research", inside="people") == "ledger.name"
    assert code_of(ledger.open_account, "a/b", inside="people") == "ledger.name"
    assert code_of(ledger.open_account, "a", inside="peple") == "ledger.unknown-dataset"
    inside = "others"
    for number in range(teams.DEEPEST - 1):
        inside = ledger.open_account(f"n{number}", inside=inside)
    assert code_of(ledger.open_account, "one-more", inside=inside) == "ledger.account"
    assert code_of(ledger.join, "others", "world") == "ledger.account"
    assert "elsewhere" not in [account.name for account in ledger.datasets()], (
        "a refusal leaves nothing behind"
    )


def test_levels_of_groups_count_like_those_of_shares(ledger):
    """A group that holds others cannot go where its own levels and those above it are too many together."""
    half = teams.DEEPEST // 2
    ledger.set_limit(DATA, Epsilon(1), name="low0")
    ledger.set_limit(OTHER, Epsilon(1), name="others")
    ledger.join("others", "high0")
    for number in range(half - 1):
        ledger.join(f"low{number}", f"low{number + 1}")
    for number in range(half):
        ledger.join(f"high{number}", f"high{number + 1}")
    assert code_of(ledger.join, f"low{half - 1}", "high0") == "ledger.account"
    ledger.join(f"low{half - 1}", "high1")
    ledger.charge("low0", P, Epsilon(1), "r1")
    assert ledger.spent(f"high{half}") == Epsilon(1)


def test_a_rho_in_a_group_with_a_pure_limit_is_refused(ledger):
    ledger.set_limit(DATA, Rho(2), name="people")
    ledger.join("people", "acme")
    ledger.set_limit("acme", Epsilon(3))
    assert code_of(ledger.charge, "people", P, Rho(1), "r1") == "budget.kind"
    assert code_of(ledger.reserve, "people", Rho(1)) == "budget.kind"
    assert ledger.account("people").charges == 0
    assert ledger.reservations() == []


@pytest.mark.parametrize("name", ["People", "реople", "people ", "ｐeople", "pe\u0301ople", "pe0ple"])
def test_names_that_look_alike_are_refused(ledger, name):
    ledger.set_limit(DATA, Epsilon(1), name="people")
    assert code_of(ledger.set_limit, OTHER, Epsilon(1), name=name) == "ledger.name-alike"
    assert code_of(ledger.join, "people", name) == "ledger.name-alike"


def test_a_misspelt_share_opens_no_account(ledger):
    organisation(ledger)
    assert code_of(ledger.charge, OTHER, P, Epsilon(1), "r", name="people/reserch") == "ledger.no-account"
    assert len(ledger.datasets()) == 4


def test_names_are_only_names(ledger):
    name = "x'); DROP TABLE entries; --"
    ledger.set_limit(DATA, Epsilon(1), name=name, note=name)
    whole = ledger.open_account('"? %s {} $$', inside=name)
    ledger.charge(whole, P, Epsilon(1), "r", purpose=name, labels=["%s", "?"])
    again = Ledger(ledger.path)
    assert again.spent(name) == Epsilon(1)
    assert again.history()[-1].labels == ("%s", "?")


def test_who_what_for_and_when_are_sealed_with_the_entry(ledger, clock):
    clock.on("2027-04-05")
    ledger.set_limit(DATA, Epsilon(1), name="people", until="2027-12-31")
    ledger.charge(DATA, P, Epsilon("1/2"), "r", purpose="yearly report", labels=["press", "v2"])
    limit, charge = Ledger(ledger.path).history()
    assert (limit.until, charge.user, charge.host) == ("2027-12-31", "ada", "office")
    assert (charge.purpose, charge.labels, charge.time[:10]) == (
        "yearly report",
        ("press", "v2"),
        "2027-04-05",
    )
    assert charge.login == (None if isinstance(ledger.path, Path) else "admin")
    for bad in (
        {"purpose": ""},
        {"labels": "press"},
        {"labels": [""]},
        {"labels": ["x"] * 21},
        {"purpose": 3},
    ):
        assert code_of(ledger.charge, DATA, P, Epsilon("1/9"), "r2", **bad) == "ledger.label"
    if isinstance(ledger.path, Path):
        with closing(sqlite3.connect(ledger.path)) as db:
            db.execute("DROP TRIGGER details_update")
            db.execute("UPDATE details SET content = replace(content, 'ada', 'eve')")
            db.execute(next(sql for sql in schema.TABLES if "details_update" in sql))
            db.commit()
        assert code_of(Ledger, ledger.path) == "ledger.damaged"


def test_a_limit_ends_with_its_day_and_a_clock_that_is_set_back_changes_nothing(ledger, clock):
    ledger.set_limit(DATA, Epsilon(5), name="people", until="2027-03-02")
    ledger.charge(DATA, P, Epsilon(1), "r1")
    clock.on("2027-03-02")
    ledger.charge(DATA, P, Epsilon(1), "r2")
    clock.on("2027-03-03")
    assert code_of(ledger.charge, DATA, P, Epsilon(1), "r3") == "budget.expired"
    assert (ledger.left(DATA), ledger.account(DATA).expired) == (None, True)
    ledger.charge(OTHER, P, Epsilon(1), "r4")
    clock.on("2027-03-01")
    assert code_of(ledger.charge, DATA, P, Epsilon(1), "r3") == "budget.expired"
    assert ledger.recorded("r1") is None
    ledger.set_limit(DATA, Epsilon(5), until="2027-03-03")
    ledger.charge(DATA, P, Epsilon(1), "r3")
    for bad in ("tomorrow", "2027-2-1", "2027-02-30", 3, datetime(2027, 1, 1)):
        assert code_of(ledger.set_limit, DATA, Epsilon(1), until=bad) == "ledger.date"
    assert code_of(Ledger(ledger.path, clock=lambda: datetime(2027, 1, 1)).account, DATA) == "ledger.clock"


def test_what_is_reserved_is_for_nobody_else(ledger, clock):
    organisation(ledger)
    made = ledger.reserve("people/research", Epsilon(1), until="2027-03-10", purpose="paper", labels=["x"])
    assert (made.status, made.left, made.details["purpose"]) == ("open", Epsilon(1), "paper")
    assert ledger.spent("people") is None
    assert (ledger.left("people"), ledger.account("people").reserved) == (Epsilon(1), Epsilon(1))
    assert code_of(ledger.charge, "people/planning", P, Epsilon("11/10"), "r1") == "budget.exceeded"
    assert code_of(ledger.reserve, "people/research", Epsilon("3/5")) == "budget.exceeded"
    ledger.charge("people/planning", P, Epsilon(1), "r1")
    ledger.charge("people/research", P, Epsilon("3/4"), "r2", reservation=made.number)
    assert ledger.reservations("people")[0].left == Epsilon("1/4")
    assert code_of(ledger.charge, "people/research", P, Epsilon("1/4"), "r3") == "budget.exceeded"
    assert (
        code_of(ledger.charge, "people/research", P, Epsilon("1/2"), "r3", reservation=made.number)
        == "budget.reservation"
    )
    assert (
        code_of(ledger.charge, "people/planning", P, Epsilon("1/8"), "r3", reservation=made.number)
        == "ledger.reservation"
    )
    ledger.charge("people/research", P, Epsilon("1/4"), "r3", reservation=made.number)
    assert ledger.reservations()[0].status == "spent"
    assert ledger.spent("people") == Epsilon(2)
    for bad in (99, 0, True, "1", 1 << 63):
        assert code_of(ledger.charge, "people", P, Epsilon(1), "r4", reservation=bad) == "ledger.reservation"


def test_a_reservation_ends_with_its_day_or_is_given_back(ledger, clock):
    ledger.set_limit(DATA, Epsilon(2), name="people")
    first = ledger.reserve("people", Epsilon(1), until="2027-03-01")
    second = ledger.reserve("people", Epsilon(1))
    assert ledger.left("people") is None
    clock.on("2027-03-02")
    assert [each.status for each in ledger.reservations()] == ["expired", "open"]
    assert code_of(ledger.charge, DATA, P, Epsilon(1), "r", reservation=first.number) == "budget.reservation"
    ledger.charge(DATA, P, Epsilon(1), "r1")
    ledger.free(second.number)
    assert code_of(ledger.free, second.number) == "ledger.reservation"
    assert code_of(ledger.charge, DATA, P, Epsilon(1), "r", reservation=second.number) == "budget.reservation"
    ledger.charge(DATA, P, Epsilon(1), "r2")
    clock.on("2027-03-01")
    assert ledger.reservations()[0].status == "expired", "a day that has passed does not come back"
    assert code_of(ledger.reserve, "people", Epsilon(1), until="2027-02-27") == "ledger.date"
    assert Ledger(ledger.path).account("people").reserved is None


def test_a_reservation_that_ends_in_the_middle_of_a_release_costs_nothing_more(ledger, clock):
    domain = pg.Domain({"age": 3})
    ledger.set_limit(DATA, Epsilon(1), name="people")
    held = ledger.reserve("people", Epsilon(1), until="2027-03-01")
    policy = pg.Policy(domain)
    begun = ledger.begin(
        "people", policy.fingerprint, Epsilon(1), "r", key=bytes(32), reservation=held.number
    )
    clock.on("2027-03-02")
    assert ledger.settle(begun.charge, b"noisy") == b"noisy"
    assert ledger.find("r").release == b"noisy"
    assert (ledger.left("people"), ledger.reservations()[0].status) == (None, "spent")


small = st.sampled_from([Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(1)])
actions = st.lists(
    st.tuples(
        st.sampled_from(["charge", "reserve", "spend", "free"]), st.integers(0, 3), small, st.booleans()
    ),
    max_size=12,
)


@given(actions)
@settings(max_examples=25, deadline=None)
def test_a_file_agrees_with_a_literal_tree(steps):
    """Four accounts in a line and a fork; every figure is added up anew from a plain list."""
    import tempfile

    names = ["people", "people/a", "people/a/b", "people/c"]
    limits = [Fraction(2), Fraction(3, 2), Fraction(1), Fraction(1)]
    charges: list[tuple[str, Fraction]] = []
    held: list[tuple[str, Fraction]] = []

    def fits():
        return all(
            sum((e for where, e in charges + held if f"{where}/".startswith(f"{name}/")), Fraction(0))
            <= limit
            for name, limit in zip(names, limits, strict=True)
        )

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/budget.db", clock=Day())
        ledger.set_limit(DATA, Epsilon(limits[0]), name="people")
        for name, limit in zip(names[1:], limits[1:], strict=True):
            parent, _, own = name.rpartition("/")
            ledger.set_limit(ledger.open_account(own, inside=parent), Epsilon(limit))
        for number, (what, at, amount, _) in enumerate(steps):
            where = names[at]
            if what in ("spend", "free"):
                if not held:
                    continue
                index = at % len(held)
                where, rest = held[index]
                if what == "free" or rest == 0:
                    held[index] = (where, Fraction(0))
                    if ledger.reservations()[index].status != "closed":
                        ledger.free(index + 1)
                    continue
                allowed = amount <= rest
                call = partial(ledger.charge, where, P, Epsilon(amount), f"r{number}", reservation=index + 1)
                if allowed:
                    held[index] = (where, rest - amount)
                    charges.append((where, amount))
            else:
                target = charges if what == "charge" else held
                target.append((where, amount))
                allowed = fits()
                if not allowed:
                    target.pop()
                call = (
                    partial(ledger.charge, where, P, Epsilon(amount), f"r{number}")
                    if what == "charge"
                    else partial(ledger.reserve, where, Epsilon(amount))
                )
            try:
                call()
            except BudgetError:
                assert not allowed
            else:
                assert allowed
        for name in names:
            spent = sum((e for where, e in charges if f"{where}/".startswith(f"{name}/")), Fraction(0))
            found = ledger.spent(name)
            assert (Fraction(0) if found is None else found.value) == spent
        Ledger(ledger.path)


def test_children_that_race_each_other_and_their_parent_never_overspend(ledger):
    ledger.set_limit(DATA, Epsilon(1), name="people")
    places = ["people", *(ledger.open_account(name, inside="people") for name in ("a", "b", "c"))]
    made, failed = [], []

    def spend(where):
        book = Ledger(ledger.path)
        try:
            while True:
                book.charge(where, P, Epsilon("1/10"), f"{where}-{len(made)}")
                made.append(where)
        except BudgetError:
            return
        except BaseException as fault:  # pragma: no cover
            failed.append(fault)

    threads = [threading.Thread(target=spend, args=(where,)) for where in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), failed, ledger.spent("people")) == (10, [], Epsilon(1))


def test_a_forecast_says_when_the_budget_ends(ledger, clock):
    ledger.set_limit(DATA, Epsilon(1), name="people")
    nothing = ledger.forecast("people")
    assert (nothing.ends, nothing.pace) == (None, 0)
    assert "nothing was spent" in str(nothing)
    ledger.charge(DATA, P, Epsilon("1/5"), "r1")
    clock.on("2027-03-10")
    ahead = ledger.forecast("people")
    # 1/5 in ten days: 4/5 are left for forty, and on the next one nothing fits.
    assert (ahead.days, ahead.pace, ahead.ends) == (10, Fraction(1, 50), "2027-04-20")
    assert ledger.forecast("people", on="2027-03-01").ends == "2027-03-06"
    assert ledger.forecast("people", days=5).ends is None
    ledger.charge(DATA, P, Epsilon("4/5"), "r2")
    assert ledger.forecast("people").ends == "2027-03-10"
    assert json.loads(json.dumps(ledger.forecast("people").to_json()))["used"] == "1"
    assert code_of(ledger.forecast, OTHER) == "ledger.no-limit"
    assert code_of(ledger.forecast, "people", days=0) == "ledger.date"


def test_a_forecast_looks_no_further_than_a_century_and_names_the_last_day(ledger):
    ledger.set_limit(DATA, Epsilon(10**6), name="people", until="2027-12-31")
    ledger.charge(DATA, P, Epsilon(1), "r1")
    ahead = ledger.forecast("people")
    assert (ahead.ends, ahead.pace) == (None, Fraction(1, 10**6))
    assert str(ahead).endswith(
        "at this pace it lasts for more than a hundred years; its limit ends on 2027-12-31"
    )
    assert "its limit ended on" in str(ledger.forecast("people", on="2028-01-01"))


def test_what_needs_a_name_a_limit_or_time_says_so(ledger, clock):
    ledger.charge(DATA, P, Epsilon(1), "r1")
    assert ledger.check(below=1, within=9) == [], "there is no limit that could end"
    assert code_of(ledger.open_account, "team", inside=DATA) == "ledger.name"
    assert code_of(ledger.join, DATA, "office") == "ledger.name"
    assert code_of(ledger.left, DATA) == "ledger.no-limit"
    assert code_of(ledger.set_limit, DATA, 1) == "ledger.loss"
    ledger.set_limit(DATA, Epsilon(9), name="people", until="2027-03-01")
    clock.on("2027-03-02")
    assert code_of(ledger.reserve, "people", Epsilon(1)) == "budget.expired"
    assert ledger.reservations() == []


def test_a_rho_is_not_taken_from_a_reserved_epsilon(ledger):
    ledger.set_limit(DATA, Rho(2), name="people")
    number = ledger.reserve("people", Epsilon(1)).number
    assert code_of(ledger.charge, "people", P, Rho("1/8"), "r1", reservation=number) == "budget.kind"
    assert ledger.spent("people") is None


def test_accounts_inside_themselves_are_damage(ledger, monkeypatch):
    """The seal of a ledger does not allow it; a reader must not run forever all the same."""
    tree = teams.AccountTree({"a": ("b", "share"), "b": ("a", "share")}, {}, "2027-03-01", False)
    for walk in (tree.line_of, partial(tree.below, "a", "share", "group")):
        assert code_of(walk, *(["a"] if walk == tree.line_of else [])) == "ledger.damaged"
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE parents (dataset, parent, kind)")
        db.executemany("INSERT INTO parents VALUES (?, ?, 'share')", [("a", "b"), ("b", "a")])
        assert code_of(teams.data_root, db, "a") == "ledger.damaged"
    ledger.set_limit(DATA, Epsilon(1), name="people")
    ledger.reserve("people", Epsilon("1/2"))
    monkeypatch.setattr(teams, "loss_from_json", lambda value: EpsilonDelta(1, "1e-6"))
    assert code_of(ledger.reservations) == "ledger.damaged"


def test_a_spreadsheet_runs_nothing_that_somebody_wrote_into_the_ledger(ledger):
    """Some programs split cells at semicolons, whatever the quotes say."""
    ledger.set_limit(DATA, Epsilon(1), name="people", note="=1+1")
    ledger.charge("people", "p", Epsilon("1/2"), "r", purpose="x;=cmd()", labels=["@a", "b"], note="-2+3")
    [limit, charge] = csv.DictReader(io.StringIO(exports.as_csv(ledger.history("people"))))
    assert (limit["note"], charge["note"]) == ("'=1+1", "'-2+3")
    assert (charge["purpose"], charge["labels"]) == ("x;'=cmd()", "'@a; b")


def test_the_registry_is_told_the_kind_of_the_loss_and_weaker_promises(ledger):
    domain = pg.Domain({"age": 3})
    plain = pg.Policy(domain)

    def registered(policy, loss, limit=None):
        name = f"{type(loss).__name__} {policy.strength} {policy.at_most_records} {limit}"
        dataset = secrets.token_hex(32)
        ledger.set_limit(dataset, limit or loss, name=name)
        description = {} if policy is lost else policy.to_spec()
        ledger.complete(ledger.charge(dataset, policy.fingerprint, loss, name, description=description), b"x")
        record = exports.as_registry(
            ledger.account(name), ledger.history(name), {policy.fingerprint: description}
        )["deployment"]
        return record["dp_variant"]["variant_name"], record["privacy_loss"]["privacy_parameters"]

    lost = pg.Policy(pg.Domain({"age": 4}))
    assert registered(plain, Rho("1/2")) == ("Zero-concentrated DP", {"rho": 0.5})
    kind, figures = registered(plain, Epsilon(1), EpsilonDelta(2, "1e-6"))
    assert (kind, set(figures)) == ("Approximate DP", {"epsilon", "delta"})
    assert registered(lost, Epsilon(1)) == ("Custom", {"epsilon": 1.0})
    assert registered(pg.Policy(domain, at_most_records=5), Epsilon(1))[0] == "Custom"


@pytest.mark.parametrize(
    ("policy", "unit", "details"),
    [
        (pg.Policy(AGES), "One record", "One record more or less."),
        (
            pg.Unit(pg.Policy(AGES), "person", at_most=3),
            "One person",
            "(up to 3 records) appear or vanish together",
        ),
        (
            pg.Families(pg.Policy(AGES), 4),
            "One family, for the pairs of values that the policy hides",
            "up to 4 records that change together",
        ),
        (
            pg.Policy(AGES, constraints=[pg.Total()]),
            "One record, for the pairs of values that the policy hides",
            "no smaller change between them",
        ),
    ],
)
def test_the_registry_is_told_whose_secret_it_is(ledger, policy, unit, details):
    ledger.set_limit(DATA, Epsilon(1), name="people")
    spec = policy.to_spec()
    ledger.complete(ledger.charge(DATA, policy.fingerprint, Epsilon(1), "r1", description=spec), b"x")
    record = exports.as_registry(
        ledger.account("people"), ledger.history("people"), {policy.fingerprint: spec}
    )
    told = record["deployment"]["privacy_loss"]
    assert told["privacy_unit"] == unit
    assert details in told["privacy_unit_details"]


def test_the_registry_is_told_for_which_pairs_a_sum_of_several_policies_holds(ledger):
    four, eight = thresholds()
    other = pg.Policy(four.domain, pg.PolicyGraph.partition(four.domain, [range(6), range(6, 12)]))
    ledger.set_limit(DATA, EpsilonDelta(9, "1e-6"), name="people")

    def told(name, *policies):
        for policy in policies:
            request = f"{policy.fingerprint} {len(ledger.history())}"
            further = policy is other
            ledger.complete(put(ledger, policy, Epsilon(1), request, compose_policies=further), b"x")
        known = {each.fingerprint: each.to_spec() for each in (four, eight, other)}
        record = exports.as_registry(ledger.account(name), ledger.history(name), known)["deployment"]
        loss = record["privacy_loss"]
        assert "the limit of the account" in loss["privacy_parameters_details"]
        return loss["privacy_unit"].partition("that ")[2], record["basic"]["description"].partition(" on")[0]

    assert told("people", four) == ("the policy hides", "1 release")
    assert told("people", eight) == ("at least one of the policies hides", "2 releases")
    ledger.join("people", "acme")
    ledger.set_limit("acme", EpsilonDelta(20, "1e-6"))
    # Data sets of a group may be under different policies: a pair that only one of them hides may be open in the other data.
    assert told("acme") == ("every one of the policies hides", "2 releases")
    assert told("people", other) == ("every one of the policies hides", "3 releases")
    assert (ledger.account("acme").group, ledger.account("people").group) == (True, False)


def test_alerts(ledger, clock):
    organisation(ledger)
    assert ledger.check(below="1/5", within=30) == []
    ledger.charge("people/planning/report", P, Epsilon("9/20"), "r1")
    (low,) = ledger.check(below="1/5")
    assert (low.account, low.code) == ("people/planning/report", "low")
    assert {alert.code for alert in ledger.check(within=3)} == {"ends"}
    ledger.set_limit("people/research", Epsilon(1), until="2027-03-05")
    ledger.reserve("people/research", Epsilon("1/2"), until="2027-03-04")
    found = ledger.check(within=10, dataset="people/research")
    assert [alert.code for alert in found] == ["ends", "reservation"]
    assert [alert.account for alert in found] == ["people/research"] * 2
    [unnamed] = [
        alert.account
        for alert in (ledger.reserve(OTHER, Epsilon(1), until="2027-03-04"), *ledger.check(within=10))[1:]
        if alert.account != "people/research" and alert.code == "reservation"
    ]
    assert unnamed == ledger.account(OTHER).dataset
    clock.on("2027-03-06")
    ledger.set_limit("people", Epsilon("1/10"))
    codes = {(alert.account, alert.code) for alert in ledger.check()}
    assert codes == {("people", "overdrawn"), ("people/research", "expired")}
    assert code_of(ledger.check, within=-1) == "ledger.date"


def thresholds(size=12, unknown="error", attribute="age"):
    domain = pg.Domain({attribute: size})
    return [pg.Policy(domain, pg.PolicyGraph.threshold(domain, theta), unknown=unknown) for theta in (4, 8)]


def put(ledger, policy, loss, request, **more):
    return ledger.charge(DATA, policy.fingerprint, loss, request, description=policy.to_spec(), **more)


def test_a_policy_that_stretches_the_first_is_charged_at_its_stretch(ledger):
    four, eight = thresholds()
    ledger.set_limit(DATA, Epsilon(5))
    put(ledger, four, Epsilon(1), "r1")
    put(ledger, eight, Epsilon(1), "r2")
    assert ledger.spent(DATA) == Epsilon(3), "the first counts twice for pairs that differ by up to 8"
    told = ledger.statement(DATA)
    assert (told.intersection, told.union) == (Epsilon(2), Epsilon(3))
    assert ledger.left(DATA) == Epsilon(1), "under the first policy it would count twice"
    assert code_of(put, ledger, four, Epsilon("11/10"), "r3") == "budget.exceeded"
    put(ledger, eight, Epsilon(2), "r3")
    assert ledger.left(DATA) is None
    assert [entry.composed for entry in ledger.history() if entry.what == "charge"] == [False] * 3


def test_a_stretch_counts_squared_in_rho_and_consent_goes_back_to_the_sum(ledger):
    four, eight = thresholds()
    ledger.set_limit(DATA, Rho(10))
    put(ledger, four, Rho(1), "r1")
    put(ledger, eight, Rho(1), "r2")
    assert ledger.spent(DATA) == Rho(5)
    other = pg.Policy(four.domain, pg.PolicyGraph.partition(four.domain, [range(6), range(6, 12)]))
    assert code_of(put, ledger, other, Rho(1), "r3") == "budget.further-policy"
    put(ledger, other, Rho(1), "r3", compose_policies=True)
    assert ledger.spent(DATA) == Rho(3), "now for pairs that are secret under all three"


def test_what_one_team_consents_to_holds_for_the_sums_of_another(ledger):
    four, eight = thresholds()
    other = pg.Policy(four.domain, pg.PolicyGraph.partition(four.domain, [range(6), range(6, 12)]))
    ledger.set_limit(DATA, Epsilon(20), name="people")
    for team in ("research", "planning"):
        ledger.set_limit(ledger.open_account(team, inside="people"), Epsilon(10))

    def charge(team, policy, request, **more):
        told = policy.to_spec()
        ledger.charge(f"people/{team}", policy.fingerprint, Epsilon(1), request, description=told, **more)

    charge("planning", four, "r1")
    charge("planning", eight, "r2")
    assert ledger.spent("people/planning") == Epsilon(3), "the first counts twice"
    charge("research", other, "r3", compose_policies=True)
    assert ledger.spent("people/planning") == Epsilon(2), "now for pairs that are secret under all three"


@pytest.mark.parametrize("case", ["facts", "domain", "order", "unknown", "cap", "network", "unreadable"])
def test_no_stretch_is_claimed_where_none_is_proved(tmp_path, case):
    ledger = Ledger(tmp_path / "budget.db")
    four, eight = thresholds()
    if case == "facts":
        eight = pg.Policy(eight.domain, eight.graph, [pg.Total()])
    elif case == "domain":
        eight = thresholds(size=13)[1]
    elif case == "unknown":
        eight = thresholds(unknown="drop")[1]
    elif case == "cap":
        eight = pg.Policy(eight.domain, eight.graph, at_most_records=1)
    elif case == "order":
        two = [pg.Domain(dict(sorted({"a": 3, "b": 4}.items(), reverse=turned))) for turned in (False, True)]
        four = pg.Policy(two[0], pg.PolicyGraph.threshold(two[0], 1))
        eight = pg.Policy(two[1], pg.PolicyGraph.threshold(two[1], 2))
    elif case == "network":
        net = pg.Network(4)
        four, eight = pg.Policy(net), pg.Policy(net, pg.PolicyGraph.full(net))
    put(ledger, four, Epsilon(1), "r1")
    described = {"domain": {"age": 12}} if case == "unreadable" else eight.to_spec()
    name = "policy-q" if case == "unreadable" else eight.fingerprint
    with pytest.raises(BudgetError) as problem:
        ledger.charge(DATA, name, Epsilon(1), "r2", description=described)
    assert problem.value.code == "budget.further-policy"


def graphs(domain):
    size = domain.size
    pairs = st.lists(
        st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda e: e[0] != e[1]),
        min_size=1,
    )
    listed = pairs.map(lambda edges: pg.PolicyGraph.from_edges(domain, edges))
    ruled = st.sampled_from(
        [
            pg.PolicyGraph.full(domain), pg.PolicyGraph.attribute(domain), pg.PolicyGraph.grid(domain),
            pg.PolicyGraph.threshold(domain, 2), pg.PolicyGraph.threshold(domain, 3),
        ]
    )  # fmt: skip
    plain = listed | ruled
    return plain | plain.map(lambda graph: graph.with_bottom())


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_stretch_is_the_largest_distance_of_a_literal_search(data):
    """Against networkx, on a 3 x 3 table and on a line, with and without bottom."""
    import networkx as nx

    from policygraph.model.graphs.stretch import stretch

    domain = pg.Domain({"a": 3, "b": 3}) if data.draw(st.booleans()) else pg.Domain({"a": 7})
    first, second = data.draw(graphs(domain)), data.draw(graphs(domain))
    edges, walks = nx.Graph(list(first.edges())), nx.Graph(list(second.edges()))
    lengths = dict(nx.all_pairs_shortest_path_length(walks))
    found = [lengths.get(u, {}).get(v) for u, v in edges.edges()]
    expected = None if None in found else max(found)
    assert stretch(first, second) == expected


def test_a_stretch_holds_for_whole_tables_of_records():
    """Every neighbour pair of the wider policy is joined by at most so many neighbour steps of the narrower one: all tables of two records."""
    from itertools import combinations_with_replacement

    four, eight = thresholds(size=9)
    steps = stretch_between(
        eight.fingerprint, json.dumps(eight.to_spec()), four.fingerprint, json.dumps(four.to_spec())
    )
    tables = [
        tuple(cells.count(cell) for cell in range(9)) for cells in combinations_with_replacement(range(9), 2)
    ]

    def near(policy, table):
        return [other for other in tables if other != table and policy.are_neighbours(table, other)]

    within = {table: set(near(four, table)) for table in tables}
    longest = 0
    for table in tables:
        reach, frontier, distance = {table: 0}, {table}, 0
        while frontier:
            distance += 1
            frontier = {there for here in frontier for there in within[here]} - set(reach)
            reach.update(dict.fromkeys(frontier, distance))
        longest = max([longest, *(reach[other] for other in near(eight, table))])
    assert longest == steps == 2


def test_many_small_charges_fit_a_pair_limit_better_than_their_sum(ledger):
    ledger.set_limit(DATA, EpsilonDelta(2, 1e-6), each=Epsilon("1/10"))
    account = ledger.account(DATA)
    assert (account.most, account.each, account.left) == (24, Epsilon("1/10"), Epsilon(2))
    assert code_of(ledger.charge, DATA, P, Rho("1/1000"), "r") == "budget.kind"
    for number in range(24):
        ledger.charge(DATA, P, Epsilon("1/10"), f"r{number}")
    assert ledger.spent(DATA) == EpsilonDelta(2, 1e-6)
    assert ledger.left(DATA) is None
    assert code_of(ledger.charge, DATA, P, Epsilon("1/1000"), "r") == "budget.exceeded"
    assert code_of(ledger.set_limit, DATA, Epsilon(2), each=Epsilon(1)) == "ledger.each"


def test_a_larger_charge_goes_back_to_the_sum():
    rule = Limit.of(EpsilonDelta(2, 1e-6), Epsilon("1/10"))
    assert rule.admits(tally([(Epsilon("1/10"), 24)]))
    assert not rule.admits(tally([(Epsilon("1/10"), 23), (Epsilon("1/9"), 1)]))
    assert rule.admits(tally([(Epsilon("1/10"), 18), (Epsilon("1/9"), 1)]))
    assert rule.used(tally([(Epsilon("1/10"), 12)])) == Fraction(1, 2)


def test_larger_charges_have_places_of_their_own(ledger):
    ledger.set_limit(
        DATA, EpsilonDelta(1, 1e-6), each=Epsilon("1/100"), larger={Epsilon("1/10"): 2, Epsilon("1/8"): 1}
    )
    account = Ledger(ledger.path).account(DATA)
    assert (account.most, account.larger) == (335, ((Fraction(1, 8), 1), (Fraction(1, 10), 2)))
    for number in range(93):
        ledger.charge(DATA, P, Epsilon("1/100"), f"r{number}")
    # By the sum only 0.07 would be left.
    assert ledger.left(DATA) == Epsilon("1/8")
    ledger.charge(DATA, P, Epsilon("1/9"), "a")
    assert ledger.left(DATA) == Epsilon("1/10")
    assert code_of(ledger.charge, DATA, P, Epsilon("1/8"), "b") == "budget.exceeded"
    ledger.charge(DATA, P, Epsilon("1/10"), "c")
    ledger.charge(DATA, P, Epsilon("1/50"), "d")
    assert ledger.left(DATA) == Epsilon("1/100")


def places(slots, charges):
    """Whether each charge gets a place in turn, the smallest that is large enough."""
    free = sorted(slots)
    for charge in charges:
        fitting = [slot for slot in free if slot >= charge]
        if not fitting:
            return False
        free.remove(fitting[0])
    return True


@given(
    st.lists(st.integers(1, 6), max_size=8),
    st.lists(st.integers(2, 6), max_size=4),
    st.integers(0, 5),
)
def test_charges_are_admitted_exactly_if_each_finds_a_place(charges, larger, most):
    """Whatever their order: the proof hands out places one by one."""
    sizes = tuple(sorted(Counter(map(Fraction, larger)).items(), reverse=True))
    rule = Limit(EpsilonDelta("1/1000", 1e-6), None, Epsilon(1), most, sizes)
    spending = tally([(Epsilon(size), 1) for size in charges])
    assert (not charges or rule.admits(spending)) == places([1] * most + larger, charges)
    left = rule.left(spending)
    if rule.admits(spending) and charges:
        for size in range(1, 8):
            fits = rule.admits(spending + tally([(Epsilon(size), 1)]))
            assert fits == (left is not None and size <= left.value)


SOME = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))


@pytest.mark.parametrize(
    ("target", "each", "larger"),
    [
        (EpsilonDelta(1, "1/10"), Epsilon("1/4"), {Epsilon("1/2"): 1}),
        (EpsilonDelta(1, "1/8"), Epsilon("1/4"), {Epsilon("3/8"): 1, Epsilon("1/2"): 1}),
        (EpsilonDelta(1, "1/5"), Epsilon("1/2"), {Epsilon(1): 1}),
        (EpsilonDelta(1, "1/20"), Epsilon("1/4"), None),
        (EpsilonDelta("1/2", "1/4"), None, None),
        (EpsilonDelta(1, "1/3"), None, None),
    ],
    ids=str,
)
def test_no_adversary_gets_beyond_the_delta_of_a_limit(target, each, larger):
    """All ways to choose sizes after seeing earlier answers, each charge answered by randomised response, the worst mechanism of its loss."""
    from functools import cache
    from math import exp

    rule = Limit.of(target, each, larger)

    @cache
    def admitted(used):
        return rule.admits(
            tally((Epsilon(size), times) for size, times in zip(SOME, used, strict=True) if times)
        )

    @cache
    def worst(ratio, used):
        """The largest sum of max(p - e^epsilon q, 0) over what may follow, for answers with p = 1 and q = e^-ratio."""
        found = max(0.0, 1 - exp(float(target.epsilon - ratio)))
        for at, size in enumerate(SOME):
            after = (*used[:at], used[at] + 1, *used[at + 1 :])
            if admitted(after):
                truth = 1 / (1 + exp(-float(size)))
                found = max(
                    found, truth * worst(ratio + size, after) + (1 - truth) * worst(ratio - size, after)
                )
        return found

    reached = worst(Fraction(0), (0,) * len(SOME))
    assert float(target.delta) / 10 < reached <= float(target.delta)


def test_the_larger_charges_must_keep_the_limit_themselves():
    limit = EpsilonDelta(1, 1e-6)
    for larger in ({Epsilon(1): 2}, {Epsilon("1/1000"): 1}, {Epsilon("1/2"): 0}, {Epsilon("1/2"): True}):
        assert code_of(Limit.of, limit, Epsilon("1/100"), larger) == "ledger.each"
    # The digits that these would need do not fit a machine.
    for target, each in ((limit, 10**9), (EpsilonDelta(10**9, 1e-6), 10**9)):
        assert code_of(Limit.of, target, Epsilon(each)) == "ledger.each"
    assert code_of(Limit.of, limit, Epsilon("1/100"), {Epsilon(10**9): 1}) == "ledger.each"
    many = {Epsilon(Fraction(1, 50 + at)): 9 for at in range(4)}
    assert code_of(Limit.of, limit, Epsilon("1/100"), many) == "ledger.each"
    assert code_of(Limit.of, limit, None, {Epsilon("1/2"): 1}) == "ledger.each"
    assert "and 1 of at most epsilon = 0.5" in str(Limit.of(limit, Epsilon("1/100"), {Epsilon("1/2"): 1}))


def test_a_ledger_of_layout_4_is_brought_up_to_date(tmp_path):
    path = tmp_path / "budget.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript((Path(__file__).parents[1] / "data" / "ledger-layout-4.sql").read_text())
        db.execute("PRAGMA application_id = 1346849860")
        db.execute("PRAGMA user_version = 4")
    for _ in range(2):
        ledger = Ledger(path)
        assert [entry.status for entry in ledger.history()] == ["limit", "completed", "charged", "charged"]
        assert [entry.user for entry in ledger.history()] == [None] * 4
        assert ledger.recorded("r1") == b"first"
        assert ledger.find("r2").key == bytes(range(32))
        assert ledger.history()[2].cells == "[[0,1]]"
        assert ledger.account("people").limit == EpsilonDelta(3, 1e-6)
    ledger.charge(
        ledger.open_account("team", inside="people"), "policy-p", Epsilon("1/9"), "r4", reservation=None
    )
    assert Ledger(path).account("people").charges == 4


def test_a_ledger_of_layout_4_on_a_server_is_brought_up_to_date(postgres_server, monkeypatch):
    pytest.importorskip("psycopg")
    from policygraph.curator.ledger import server

    url = postgres_server.url(ledger=f"t{secrets.token_hex(6)}")
    ledger = Ledger(url)
    charge = ledger.charge(DATA, P, Epsilon(1), "r1", name="people")
    ledger.complete(charge, b"first")
    place = server.ServerStore(url)

    def back_to_4(*more):
        with place._connected() as db:
            db.execute(f'SET search_path TO "{place.schema}"')
            for table in server._SINCE_5:
                db.execute(f"DROP TABLE {table} CASCADE")
            db.execute("ALTER TABLE marks DISABLE TRIGGER append_only")
            rows = db.execute("SELECT number, what, subject, digest FROM marks ORDER BY number").fetchall()
            db.execute("DELETE FROM marks")
            number, seal = 0, ""
            for _, what, subject, digest in rows:
                if what != "detail":
                    number += 1
                    seal = schema._keyed(db, seal, number, what, subject, digest)
                    db.execute(
                        "INSERT INTO marks VALUES (?, ?, ?, ?, ?)", (number, what, subject, digest, seal)
                    )
            db.execute("ALTER TABLE marks ENABLE ALWAYS TRIGGER append_only")
            db.execute("ALTER TABLE marks DROP CONSTRAINT marks_what_check")
            db.execute(
                "ALTER TABLE marks ADD CONSTRAINT marks_what_check CHECK (what IN ('dataset', 'policy', 'part', 'key', 'release'))"
            )
            schema.seal_head(db)
            db.execute("UPDATE layout SET version = 4")
            for statement in more:
                db.execute(statement)

    back_to_4()
    assert code_of(ledger.spent, "people") == "ledger.replaced"
    # The connection is cut before each statement of an opening in turn: the ledger stays the old one until all is done.
    execute, left, codes = server.Wire.execute, 0, []

    def cut(self, statement, values=(), /):
        nonlocal left
        left -= 1
        if left == 0:
            with postgres_server.connect() as other:
                other.execute("SELECT pg_terminate_backend(%s)", (self.raw.info.backend_pid,))
        return execute(self, statement, values)

    with monkeypatch.context() as patch:
        patch.setattr(server.Wire, "execute", cut)
        while True:
            left = len(codes) + 1
            try:
                Ledger(url)
            except LedgerError as problem:
                codes.append(problem.code)
            else:
                break
    assert set(codes) == {"ledger.unreachable", "ledger.uncertain"}
    assert len(codes) > 40
    again = Ledger(url)
    assert (again.spent("people"), again.recorded("r1")) == (Epsilon(1), b"first")
    again.charge("people", P, Epsilon(1), "r2", purpose="more")
    assert Ledger(url).history()[-1].purpose == "more"
    with place._connected() as db, place._transaction(db, "BEGIN"):
        place._upgrade(db)  # it waited while another process did it
    assert Ledger(url).history()[-1].purpose == "more"
    back_to_4("UPDATE datasets SET name = 'others'")
    assert code_of(Ledger, url) == "ledger.damaged"
    with place._connected() as db:
        assert db.execute(f'SELECT version FROM "{place.schema}".layout').fetchone() == (4,)
        db.execute(f'SET search_path TO "{place.schema}"')
        db.execute("ALTER TABLE datasets ADD COLUMN more text")
    assert code_of(Ledger, url) == "ledger.damaged"
    with place._connected() as db:
        assert db.execute(f'SELECT version FROM "{place.schema}".layout').fetchone() == (4,)


def test_forged_parents_are_noticed(tmp_path):
    path = tmp_path / "budget.db"
    organisation(Ledger(path))
    whole = path.read_bytes()
    for change in (
        "UPDATE parents SET parent = dataset",
        "DELETE FROM parents WHERE kind = 'share'",
        "INSERT INTO parents SELECT parent, dataset, 'group' FROM parents LIMIT 1",
        'INSERT INTO reservations SELECT 1, dataset, \'{"kind":"epsilon","value":"1"}\', NULL, \'{}\', \'x\' FROM datasets LIMIT 1',
    ):
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as db:
            triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
            db.execute(change)
            for _, sql in triggers:
                db.execute(sql)
            db.commit()
        assert code_of(Ledger, path) == "ledger.damaged"


def test_a_circle_of_accounts_does_not_run_for_ever(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    organisation(ledger)
    with closing(sqlite3.connect(ledger.path)) as db:
        db.execute("DROP TRIGGER parents_update")
        db.execute("UPDATE parents SET parent = dataset")
        db.commit()
    assert code_of(ledger.charge, "people/research", P, Epsilon(1), "r") == "ledger.damaged"


def test_the_user_of_the_machine_is_declared_by_default(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGNAME", "eve\n")
    ledger = Ledger(tmp_path / "budget.db")
    ledger.charge(DATA, P, Epsilon(1), "r")
    (entry,) = ledger.history()
    assert (entry.user, bool(entry.host)) == ("eve", True)
