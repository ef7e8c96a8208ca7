"""Details of the ledger that mutation tests found untested: what is kept of a charge, and what failures of the file are called."""

import os
import sqlite3
from fractions import Fraction

import pytest

from policygraph.curator.ledger import Ledger
from policygraph.curator.ledger.rules import Spending
from policygraph.curator.ledger.store import Room, _failure
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
