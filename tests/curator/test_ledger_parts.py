"""Charges for parts of a table: which of them add up in an account, what it says about them, and what it does not trust."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.curator.ledger import ChargedPart, Ledger
from policygraph.curator.requests import cells_looked_at
from policygraph.errors import BudgetError
from policygraph.model.loss import Epsilon, EpsilonDelta, Rho

DOMAIN = pg.Domain({"age": 8})
DATA = [5, 0, 2, 9, 1, 1, 0, 4]
POLICIES = {
    "one record": pg.Policy(DOMAIN),
    "line": pg.Policy(DOMAIN, pg.PolicyGraph.line(DOMAIN)),
    "full": pg.Policy(DOMAIN, pg.PolicyGraph.full(DOMAIN)),
    "total": pg.Policy(DOMAIN, constraints=[pg.Total()]),
}


def command(*words):
    from policygraph.cli import main

    with pytest.raises(SystemExit) as end:
        main([*map(str, words)])
    assert end.value.code == 0


def query(first, last):
    return pg.queries.ranges(DOMAIN, [(first, last)])


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.db")


def ask(ledger, first, last, policy="one record", data=DATA, mechanism=None, **more):
    more = more or {"epsilon": 1}
    mechanism = mechanism or (pg.Gaussian() if "rho" in more else pg.Laplace())
    policy = POLICIES[policy] if isinstance(policy, str) else policy
    return pg.release(
        query(first, last), policy, data, ledger=ledger, mechanism=mechanism, dataset="people", **more
    )


@pytest.mark.parametrize(("policy", "spent"), [("one record", 1), ("line", 1), ("full", 2), ("total", 3)])
def test_parts_that_no_move_touches_together_cost_the_largest(ledger, policy, spent):
    """A full graph moves a record between any two cells, so that two of three charges add up; a known total joins all in one block."""
    for first, last in ((0, 1), (3, 4), (6, 7)):
        ask(ledger, first, last, policy)
    assert ledger.spent("people") == Epsilon(spent)
    assert ledger.account("people").charges == 3


def test_overlapping_and_neighbouring_parts_add_up(ledger):
    ask(ledger, 0, 3)
    ask(ledger, 3, 5)
    assert ledger.spent("people") == Epsilon(2)
    ask(ledger, 6, 7)
    assert ledger.spent("people") == Epsilon(2)
    share = ledger.account("people").parts[1]
    assert (share.adds_to, share.apart_from) == ((1,), ())
    assert "both look at the cell (3)" in str(share)


def of_cell(domain, cell):
    return pg.queries.matrix(domain, [[int(at == cell) for at in range(domain.size)]])


@pytest.mark.parametrize("names", [("age", "sex"), ("sex", "age")])
def test_cells_are_numbered_by_the_order_of_the_attributes(ledger, names):
    """The ledger once sorted the attributes of its policies, so that it saw other moves than the policy has."""
    domain = pg.Domain(dict.fromkeys(names, 2))
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain, names[0]))
    assert policy.are_neighbours([1, 0, 0, 0], [0, 0, 1, 0])
    assert not policy.are_neighbours([1, 0, 0, 0], [0, 1, 0, 0])
    for cell, spent in ((0, 1), (1, 1), (2, 2)):
        pg.release(
            of_cell(domain, cell),
            policy,
            [4, 0, 2, 1],
            epsilon=1,
            mechanism=pg.Laplace(),
            ledger=ledger,
            dataset="people",
        )
        assert ledger.spent("people") == Epsilon(spent)


def test_the_same_policy_with_its_attributes_in_another_order_adds_up(ledger):
    for turn, names in enumerate((("age", "sex"), ("sex", "age"))):
        domain = pg.Domain(dict.fromkeys(names, 2))
        policy = pg.Policy(domain)
        for cell in (0, 1):
            made = {"epsilon": 1 + turn, "mechanism": pg.Laplace(), "ledger": ledger, "dataset": "people"}
            pg.release(of_cell(domain, cell), policy, [4, 0, 2, 1], **made)
    assert ledger.spent("people") == Epsilon(1 + 2 + 2), "only the first order is compared cell by cell"


def test_the_limit_counts_the_largest_and_says_what_is_left_for_the_part(ledger):
    ledger.set_limit("ab" * 32, Epsilon(1), name="other")
    ask(ledger, 0, 3)
    ledger.set_limit("people", Epsilon("3/2"))
    ask(ledger, 4, 7)
    assert ledger.spent("people") == Epsilon(1)
    assert ledger.left("people") == Epsilon("1/2")
    with pytest.raises(BudgetError) as problem:
        ask(ledger, 0, 1)
    assert problem.value.details["left"] == Epsilon("1/2")
    ask(ledger, 2, 3, epsilon="1/2")
    with pytest.raises(BudgetError) as problem:
        ask(ledger, 6, 7)
    assert problem.value.details["left"] == Epsilon("1/2")
    assert "left for cells 6 to 7 is epsilon = 0.5" in str(problem.value)
    assert ledger.left("people") is None
    assert ledger.spent("people") == Epsilon("3/2")


def test_a_release_of_all_cells_adds_to_every_part(ledger):
    ask(ledger, 0, 3)
    ask(ledger, 4, 7)
    pg.release(
        pg.queries.identity(DOMAIN), POLICIES["one record"], DATA, epsilon=1, ledger=ledger, dataset="people"
    )
    assert ledger.spent("people") == Epsilon(2)


def test_only_noise_on_the_answers_themselves_is_known_to_look_at_a_part():
    policy, loss = POLICIES["line"], Epsilon(1)
    assert cells_looked_at(pg.Laplace().calibrate(query(2, 3), policy, loss)).tolist() == [2, 3]
    assert cells_looked_at(pg.Laplace().calibrate(query(0, 7), policy, loss)) is None
    assert cells_looked_at(pg.Laplace().calibrate(pg.queries.identity(DOMAIN), policy, loss)) is None
    for mechanism in (
        pg.TransformedLaplace(),
        pg.MatrixMechanism(),
        pg.Partitioned(pg.Intervals()),
    ):
        assert cells_looked_at(mechanism.calibrate(query(2, 3), policy, loss)) is None

    ready = pg.Laplace().calibrate(query(2, 3), policy, loss)

    class Peeking(type(ready)):
        """A mechanism of somebody else, which may look at more than it says."""

    assert cells_looked_at(Peeking("Laplace", query(2, 3), policy, loss, ready.sensitivity)) is None


def test_changed_data_under_one_name_add_up_since_a_person_may_be_in_both(ledger):
    ask(ledger, 0, 3)
    ask(ledger, 4, 7, data=[*DATA[:7], 5])
    assert ledger.spent("people") == Epsilon(2)
    assert ledger.account("people").parts == ()


def test_the_same_file_read_otherwise_adds_up(ledger, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,before\n1,5\n6,2\n")
    for first, last, columns in ((0, 3, None), (4, 7, {"age": "before"}), (4, 7, None)):
        pg.release(
            query(first, last),
            POLICIES["one record"],
            path,
            epsilon=1,
            mechanism=pg.Laplace(),
            ledger=ledger,
            columns=columns,
        )
    (account,) = ledger.datasets()
    assert account.spent == Epsilon(2), (
        "1 for the first reading, whose two parts are apart, and 1 for the second"
    )
    assert [share.charge for share in account.parts] == [1, 3]


def test_another_policy_adds_up(ledger):
    ask(ledger, 0, 3)
    ask(ledger, 4, 7, "line", compose_policies=True, epsilon=1)
    assert ledger.spent("people") == Epsilon(2)


def test_both_kinds_of_loss(ledger):
    ask(ledger, 0, 3, epsilon=1)
    ask(ledger, 4, 5, rho="1/4")
    assert ledger.spent("people") == Rho("1/2")
    ask(ledger, 4, 7, rho="1/2")
    assert ledger.spent("people") == Rho("3/4")
    ledger.set_limit("people", EpsilonDelta(8, "1/1000000"))
    account = ledger.account("people")
    assert account.spent.epsilon == Rho("3/4").to_epsilon_delta("1/1000000").epsilon


def test_a_request_on_record_is_charged_once_and_kept_in_its_part(ledger):
    one = ask(ledger, 0, 3)
    ask(ledger, 4, 7)
    again = ask(ledger, 0, 3)
    assert again.values().tolist() == one.values().tolist()
    assert ledger.account("people").charges == 2


def test_a_release_says_which_charges_it_is_not_added_to(ledger):
    assert not any("not added" in line for line in ask(ledger, 0, 3).record["stages"])
    made = ask(ledger, 4, 7)
    assert made.record["stages"][-1] == (
        "This charge is not added to charges 1 of the ledger: no move of the policy touches the cells of both."
    )
    assert any("not added" in line for line in ask(ledger, 4, 7).record["stages"]), "also from the record"
    assert not any("not added" in line for line in ask(ledger, 2, 4).record["stages"])


def test_the_account_explains_its_parts(ledger, capsys):
    ask(ledger, 0, 2, "line")
    ask(ledger, 5, 7, "line")
    ask(ledger, 3, 3, "line")
    assert ledger.spent("people") == Epsilon(2)
    first, second, third = ledger.account("people").parts
    assert (first.adds_to, first.apart_from) == ((), ())
    assert (second.adds_to, second.apart_from) == ((), (1,))
    assert (third.adds_to, third.apart_from) == ((1,), (2,))
    assert third.look_alikes == "neighbours: 1 in (2); 1 in (3)"
    command("budget", "show", str(ledger.path))
    shown = capsys.readouterr().out
    assert "charge 2 is for cells 5 to 7; not added to charge 1: no edge of the policy graph" in shown
    assert "charge 3 is for cell 3; not added to charge 2: no edge of the policy graph leads" in shown
    assert (
        "; added to charge 1: an edge of the policy graph leads from one part to the other (neighbours: 1 in (2); 1 in (3))"
        in shown
    )
    command("budget", "show", str(ledger.path), "--json")
    (told,) = json.loads(capsys.readouterr().out)["datasets"]
    assert [share["adds_to"] for share in told["parts"]] == [[], [], [1]]
    command("budget", "history", str(ledger.path), "--json")
    assert [e["cells"] for e in json.loads(capsys.readouterr().out)["entries"]] == [
        "[[0,2]]",
        "[[5,7]]",
        "[[3,3]]",
    ]


def test_a_policy_that_cannot_be_read_back_adds_up(ledger):
    """Charges of other programs may come with a description of their own: nothing is assumed about its moves."""
    for about in ({}, {"domain": {"age": 8}}):
        for cells in ([0], [4]):
            ledger.charge(
                "ab" * 32,
                "policy-p",
                Epsilon(1),
                f"{about}{cells}",
                description=about,
                part=ChargedPart.of("r", cells),
            )
    assert ledger.spent("ab" * 32) == Epsilon(4)
    assert "cannot be told" in str(ledger.account("ab" * 32).parts[1])


def test_nothing_of_the_data_is_shown_by_a_part(ledger):
    ledger.charge("ab" * 32, "p", Epsilon(1), "r", part=ChargedPart.of("secret reading", [1]))
    assert b"secret reading" not in ledger.path.read_bytes()


def test_parts_are_written_as_runs():
    assert ChargedPart.of("r", []) is None
    assert ChargedPart.of("r", range(0, 40_000, 2)) is None
    part = ChargedPart.of("r", [9, 1, 2, 2, 5])
    assert part.runs == [(1, 2), (5, 5), (9, 9)]
    assert part.indices.tolist() == [1, 2, 5, 9]
    assert str(part) == "cells 1 to 2, 5, 9"
    assert str(ChargedPart.of("r", [1, 3, 5, 7, 9])) == "cells 1, 3, 5, 2 more runs"


def test_processes_that_race_for_one_limit_keep_it(ledger):
    """Four processes ask for eight parts each, of which those of one process overlap and those of two do not."""
    program = """
import sys
import policygraph as pg
domain = pg.Domain({"age": 8})
at, made = int(sys.argv[2]), 0
for n in range(4):
    query = pg.queries.matrix(domain, [[(n + 1) * int(c in (2 * at, 2 * at + 1)) for c in range(8)]])
    try:
        pg.release(query, pg.Policy(domain), [1] * 8, epsilon="1/2", mechanism=pg.Laplace(), ledger=sys.argv[1])
        made += 1
    except pg.BudgetError:
        pass
print(made)
"""
    pg.release(
        query(0, 7), POLICIES["one record"], [1] * 8, rho="1/1000", mechanism=pg.Gaussian(), ledger=ledger
    )
    (account,) = ledger.datasets()
    ledger.set_limit(account.dataset, Rho("251/1000"))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(ledger.path), str(at)], stdout=subprocess.PIPE, text=True
        )
        for at in range(4)
    ]
    assert [int(each.communicate()[0]) for each in running] == [2] * 4
    assert ledger.spent(account.dataset) == Rho("251/1000")


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["one record", "line", "full"]),
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from(["1/2", "1"]), st.booleans()),
        max_size=7,
    ),
)
def test_the_book_keeps_its_limit_on_every_move(tmp_path_factory, policy, asked):
    """The literal rule: for every move, the charges whose cells it changes keep the limit; refused only when they would not."""
    ledger = Ledger(tmp_path_factory.mktemp("book") / "budget.db")
    ledger.set_limit("ab" * 32, Epsilon(2), name="people")
    shared = POLICIES[policy]
    moves = [{c} for c in range(8)]
    moves += [set(m.cells.tolist()) for m in shared.moves()]
    kept: list[tuple[set[int], Fraction]] = []

    def worst(charges):
        return max(sum((loss for cells, loss in charges if cells & move), Fraction(0)) for move in moves)

    for number, (first, last, loss, whole) in enumerate(asked):
        cells = set(range(8)) if whole else set(range(min(first, last), max(first, last) + 1))
        part = None if whole else ChargedPart.of("data", cells)
        after = [*kept, (cells, Fraction(loss))]
        try:
            ledger.charge(
                "people",
                shared.fingerprint,
                Epsilon(loss),
                f"r{number}",
                description=shared.to_spec(),
                part=part,
            )
        except BudgetError:
            assert worst(after) > 2
            continue
        assert worst(after) <= 2
        kept = after
        assert ledger.spent("people") == Epsilon(worst(kept))
