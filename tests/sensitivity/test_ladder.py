"""The ladder is data: rungs are tried in order, and a new one is an entry of the list."""

import pytest

import policygraph as pg
from policygraph.moves.bracket import Bracket, Witness
from policygraph.sensitivity import ladder
from policygraph.sensitivity.problem import Rung

DOMAIN = pg.Domain({"sex": 2, "age": 3})
CELLS = pg.queries.identity(DOMAIN)
FACTS = pg.Policy(DOMAIN, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
EDGES = pg.Policy(DOMAIN, pg.PolicyGraph.full(DOMAIN))


def first(monkeypatch, *rungs):
    monkeypatch.setattr(ladder, "RUNGS", (*rungs, *ladder.RUNGS))


def test_a_rung_is_an_entry(monkeypatch):
    """A toy rung in front answers what it takes; what it does not take goes on to the others."""

    def toy(problem):
        if problem.norm != "l1":
            return None
        return Bracket(5, 4, Witness.of_change({0: -1, 1: 1}), "a toy", "it says so")

    plain = pg.sensitivity(CELLS, FACTS, norm="l2")
    first(monkeypatch, Rung("a toy", toy))
    found = pg.sensitivity(CELLS, FACTS)
    assert (found.power, found.lower_power, found.method, found.kind) == (5, 4, "a toy", "upper")
    assert pg.sensitivity(CELLS, FACTS, norm="l2").to_dict() == plain.to_dict()


def test_a_rung_serves_the_neighbours_it_names(monkeypatch):
    def toy(problem):
        return Bracket(7, 0, None, "a toy", "it says so")

    first(monkeypatch, Rung("a toy", toy, "edges"))
    assert pg.sensitivity(CELLS, EDGES).power == 7
    assert pg.sensitivity(CELLS, FACTS).power == 4


def test_a_reduction_does_not_meet_itself_again(monkeypatch):
    met = []

    def toy(problem):
        met.append(problem)
        return problem.but(without="a toy").climb().after("a toy went first")

    first(monkeypatch, Rung("a toy", toy))
    assert pg.sensitivity(CELLS, FACTS).steps[0] == "a toy went first"
    assert len(met) == 1


def test_every_definition_of_neighbours_has_a_last_rung():
    for neighbours in ("edges", "induced", "blowfish"):
        assert any(neighbours in rung.neighbours for rung in ladder.RUNGS)
    assert len({rung.name for rung in ladder.RUNGS}) == len(ladder.RUNGS)


def test_no_rung_left_is_a_refusal(monkeypatch):
    monkeypatch.setattr(ladder, "RUNGS", ())
    with pytest.raises(pg.RefusedError, match="no rung"):
        pg.sensitivity(CELLS, FACTS)


def test_a_bound_below_what_is_attained_is_refused():
    with pytest.raises(pg.InputError, match="below the attained"):
        Bracket(3, 4, None, "a toy", "swapped")
