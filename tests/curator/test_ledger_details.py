"""Details of the ledger that mutation tests found untested: what is kept of a charge, and what failures of the file are called."""

import os
import sqlite3
from fractions import Fraction

import pytest

from policygraph.curator.ledger import Ledger
from policygraph.curator.ledger.accounts import loss_of
from policygraph.curator.ledger.rules import Spending
from policygraph.curator.ledger.store import Room, _failure
from policygraph.errors import LedgerError
from policygraph.model.loss import Epsilon, Rho

DATA, CONTENT, P = "ab" * 32, "cd" * 32, "policy-p"


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.db")


def test_group_privacy_grows_with_the_steps_and_for_rho_with_their_square():
    assert Spending(Fraction(1, 2), Fraction(1, 8)).over(3) == Spending(Fraction(3, 2), Fraction(9, 8))
    assert Spending(None, Fraction(1)).over(2) == Spending(None, Fraction(4))


def test_a_recorded_request_has_its_charge_key_and_release(ledger):
    assert ledger.find("r") is None
    begun = ledger.begin(DATA, P, Rho("1/3"), "r", key=b"k" * 32)
    assert begun.fresh is True
    again = ledger.begin(DATA, P, Rho("1/3"), "r", key=b"other" + b"k" * 27)
    assert (again.charge, again.fresh, again.key, again.release) == (begun.charge, False, b"k" * 32, None)
    assert again.charge.loss == Rho("1/3")
    ledger.complete(begun.charge, b"noisy")
    found = ledger.find("r")
    assert (found.charge, found.fresh, found.key, found.release) == (begun.charge, False, None, b"noisy")


def test_a_charge_under_a_name_is_found_by_what_the_data_were(ledger):
    charge = ledger.charge(DATA, P, Epsilon(1), "r", name="people", content=CONTENT)
    assert ledger.account(CONTENT).dataset == charge.dataset == ledger.statement("people").dataset


def test_releases_of_one_policy_in_order(ledger):
    for number, (policy, body) in enumerate([(P, b"one"), ("policy-q", b"other"), (P, b"two")]):
        charge = ledger.charge(DATA, policy, Epsilon(1), f"r{number}", name="people", compose_policies=True)
        ledger.complete(charge, body)
    found = ledger.releases("people", P)
    assert [(number, body) for number, _, body in found] == [(1, b"one"), (3, b"two")]
    assert found[0][1] == ledger.keyed("r0")
    assert [number for number, _, _ in ledger.releases("people", P, without={1})] == [3]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (sqlite3.SQLITE_FULL, "ledger.full"),
        (sqlite3.SQLITE_IOERR | 3 << 8, "ledger.write"),
        (sqlite3.SQLITE_BUSY, "ledger.busy"),
        (sqlite3.SQLITE_CORRUPT, "ledger.damaged"),
        (sqlite3.SQLITE_AUTH, "ledger.failed"),
        (None, "ledger.damaged"),
    ],
)
def test_failures_of_the_file_have_their_codes(tmp_path, number, code):
    cause = sqlite3.OperationalError("it failed")
    if number is not None:
        cause.sqlite_errorcode = number
    assert _failure(tmp_path, cause).code == code
    assert _failure(tmp_path, sqlite3.DatabaseError("it failed")).code == "ledger.failed"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room is held by posix_fallocate")
def test_room_is_held_beside_the_ledger_and_let_go(ledger, monkeypatch):
    held, places, make = [], [], os.posix_fallocate
    monkeypatch.setattr(os, "posix_fallocate", lambda *given: held.append(given[2]) or make(*given))
    from policygraph.curator.ledger import store

    temporary = store.tempfile.mkstemp
    monkeypatch.setattr(
        store.tempfile, "mkstemp", lambda **given: places.append(given["dir"]) or temporary(**given)
    )
    room = Room(ledger.path, 6400)
    assert held == [6400 + 100 + store.SLACK]
    assert places == [ledger.path.parent]
    assert os.listdir(ledger.path.parent) == [ledger.path.name]
    room.let_go()
    room.let_go()


def test_a_file_that_is_damaged_while_it_is_in_use_is_refused(ledger):
    ledger.charge(DATA, P, Epsilon(1), "r")
    with sqlite3.connect(ledger.path) as other:
        other.execute("UPDATE head SET entries = entries + 1")
    for use in (
        lambda: ledger.charge(DATA, P, Epsilon(1), "s"),
        lambda: ledger.account(DATA),
        lambda: ledger.find("r"),
    ):
        with pytest.raises(LedgerError, match="damaged: its head does not match its seal") as caught:
            use()
        assert caught.value.code == "ledger.damaged"


def test_a_text_that_is_no_loss_is_damage():
    assert loss_of('{"kind": "epsilon", "value": "1/3"}') == Epsilon("1/3")
    with pytest.raises(LedgerError, match="'no loss' is not a loss") as caught:
        loss_of("no loss")
    assert caught.value.code == "ledger.damaged"


def test_a_statement_of_several_policies_names_both_guarantees(ledger):
    for number, policy in enumerate((P, "policy-q")):
        ledger.charge(DATA, policy, Epsilon(1), f"r{number}", compose_policies=True)
    shown = str(ledger.statement(DATA))
    assert "under only some of them: no guarantee" in shown
    assert f"Releases under {P} alone: epsilon = 1." in shown
    # A neighbour under p is two steps under q: 1 + 2 * 1 for the pairs of p, 1 + 1 for those of q.
    known = ledger.statement(DATA, {(P, "policy-q"): 2, ("policy-q", P): 1})
    assert known.union == Epsilon(3)
    assert str(known).endswith("All releases, for pairs secret under at least one of them: epsilon = 3.")


def test_data_that_spend_in_one_account_do_not_open_another(ledger):
    ledger.charge(DATA, P, Epsilon(1), "r", name="people", content=CONTENT)
    other = "ef" * 32
    ledger.charge(other, P, Epsilon(1), "s", name="others")
    with pytest.raises(LedgerError, match="One data set spends in one account") as caught:
        ledger.charge("others", P, Epsilon(1), "t", content=CONTENT)
    assert caught.value.code == "ledger.name-taken"
    assert [entry.number for entry in ledger.history()] == [1, 2]


def test_a_file_that_is_cut_off_while_it_is_in_use_is_refused(ledger):
    ledger.complete(ledger.charge(DATA, P, Epsilon(1), "r"), bytes(50_000))
    with ledger.path.open("r+b") as file:
        file.truncate(os.path.getsize(ledger.path) - 1)
    with pytest.raises(LedgerError, match="it was cut off") as caught:
        ledger.charge(DATA, P, Epsilon(1), "s")
    assert caught.value.code == "ledger.damaged"
