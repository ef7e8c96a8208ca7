"""Cases that an attack on the library found once; each was a wrong number, a leak or a crash."""

from fractions import Fraction

import numpy as np
import pytest

import policygraph as pg

LINE = pg.Domain({"x": 20})
HUGE = pg.queries.matrix(LINE, np.array([[2**32] + [0] * 19]))


@pytest.mark.parametrize(
    "policy",
    [
        pg.Policy(LINE),
        pg.Policy(LINE, graph=pg.PolicyGraph.full(LINE)),
        pg.Policy(LINE, graph=pg.PolicyGraph.line(LINE)),
        pg.Policy(LINE, graph=pg.PolicyGraph.full(LINE).with_bottom()),
        pg.Policy(LINE, constraints=[pg.Total()]),
        pg.Policy(LINE, constraints=[pg.Total()], strength="markov", at_most_records=2),
    ],
)
def test_squares_beyond_64_bits_do_not_wrap(policy):
    found = pg.sensitivity(HUGE, policy, norm="l2")
    assert found.power == 2**64
    assert not found.verify().failed


def test_ten_digit_fractions_do_not_wrap():
    domain = pg.Domain({"age": 3})
    rows = [[Fraction(3141592653, 10**10), Fraction(1, 3), 0], [0, Fraction(2718281828, 10**10), 1]]
    assert pg.sensitivity(pg.queries.matrix(domain, rows), pg.Policy(domain), norm="l2").power == 1


def test_a_bound_by_records_does_not_wrap():
    domain = pg.Domain({"a": 25, "b": 20})
    query = pg.queries.matrix(domain, np.array([[2**32] + [0] * 499]))
    facts = [pg.Cuboid("a"), pg.Cuboid("b")]
    policy = pg.Policy(domain, graph=pg.PolicyGraph.full(domain), constraints=facts, at_most_records=2)
    assert pg.sensitivity(query, policy, norm="l2").power >= 2**64


@pytest.mark.parametrize(
    "entries", [np.array([[-(2**63), 0]]), np.array([[2**63, 0]], dtype=np.uint64), np.array([[2**41, 0]])]
)
def test_entries_beyond_the_limit_are_refused(entries):
    with pytest.raises(pg.InputError):
        pg.queries.matrix(pg.Domain({"a": 2}), entries)


def test_weights_beyond_the_limit_are_refused():
    domain = pg.Domain({"a": 2, "b": 2})
    with pytest.raises(pg.InputError):
        pg.queries.cuboids(domain, [["a"], ["b"]], [2**31, 1])


@pytest.mark.parametrize(("nodes", "loops"), [(3, True), (4, True), (5, False)])
def test_l2_of_multigraphs_under_degrees(nodes, loops):
    from policygraph.moves.graver.basis import graver_basis

    network = pg.Network(nodes, loops=loops, multiple=True)
    for known in range(1, nodes + 1):
        policy = pg.Policy(network, constraints=[pg.Degrees(list(range(known)))])
        moves = graver_basis(policy.system.matrix().toarray())
        truth = int((moves * moves).sum(axis=1).max(initial=0))
        found = pg.sensitivity(pg.queries.adjacency(network), policy, norm="l2")
        assert found.lower_power <= truth <= found.power
        assert not found.exact or found.power == truth


def test_graph_and_facts_on_a_simple_network_are_refused_or_capped():
    network = pg.Network(3, loops=True)
    graph = pg.PolicyGraph.full(network)
    with pytest.raises(pg.RefusedError, match="at_most_records"):
        pg.sensitivity(
            pg.queries.adjacency(network), pg.Policy(network, graph=graph, constraints=[pg.Degrees()])
        )
    capped = pg.Policy(network, graph=graph, constraints=[pg.Degrees()], at_most_records=2)
    assert pg.sensitivity(pg.queries.adjacency(network), capped).value == 4


def test_a_certificate_from_a_file_scales_no_noise():
    domain = pg.Domain({"a": 4, "b": 4})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")])
    query = pg.queries.identity(domain)
    loaded = pg.Sensitivity.from_dict(pg.sensitivity(query, policy).to_dict())
    with pytest.raises(pg.InputError, match="compute it again"):
        pg.Laplace().calibrate(query, policy, pg.Epsilon(1), loaded)


def test_boxes_cannot_pose_as_all_ranges():
    with pytest.raises(pg.InputError):
        pg.queries.BoxQuery(pg.Domain({"x": 8}), [[0]], [[0]], name="all ranges", kind="all")


def test_coefficients_cannot_wrap_and_negative_ones_are_no_contradiction():
    with pytest.raises(pg.InputError):
        pg.LinearCount([({"a": 0}, 2**62)] * 4)
    domain = pg.Domain({"a": 2})
    fact = pg.LinearCount([({"a": 0}, 7), ({"a": 1}, -11)], equals=1)
    pg.Policy(domain, constraints=[fact]).system.check([8, 5])


def test_values_that_determine_everything_release_it():
    domain = pg.Domain({"a": 2})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[2, 3])])
    assert pg.release(pg.queries.identity(domain), policy, [2, 3], epsilon=1).values().tolist() == [2, 3]


def test_nothing_but_structural_zeros():
    domain = pg.Domain({"a": 2})
    policy = pg.Policy(
        domain, constraints=[pg.Total(), pg.StructuralZero([{"a": [0, 1]}])], at_most_records=2
    )
    assert pg.sensitivity(pg.queries.identity(domain), policy).value == 0


def test_verification_ends():
    domain = pg.Domain({"a": 2, "b": 4})
    policy = pg.Policy(domain, constraints=[pg.LinearCount([({"b": 0}, 3), ({"b": 1}, 5), ({"b": 2}, 7)])])
    assert not pg.sensitivity(pg.queries.identity(domain), policy).verify().failed


def test_raw_tables_are_checked_too():
    network = pg.Network(4)
    ready = pg.Laplace().calibrate(pg.queries.adjacency(network), pg.Policy(network), pg.Epsilon(1))
    with pytest.raises(pg.InputError):
        ready.run(np.full(6, 7), pg.SeededRng(1))
    domain = pg.Domain({"a": 2})
    policy = pg.Policy(domain, constraints=[pg.Total(equals=3)])
    ready = pg.Laplace().calibrate(pg.queries.identity(domain), policy, pg.Epsilon(1))
    with pytest.raises(pg.ConstraintError):
        ready.run(np.array([1, 1]), pg.SeededRng(1))


@pytest.mark.parametrize(("bottom", "said"), [(False, "NOT hidden"), (True, "is hidden")])
def test_a_release_says_whether_dropping_is_hidden(bottom, said):
    domain = pg.Domain({"a": 2})
    graph = pg.PolicyGraph.full(domain)
    policy = pg.Policy(domain, graph=graph.with_bottom() if bottom else graph, unknown="drop")
    made = pg.release(pg.queries.identity(domain), policy, [1, 1], epsilon=1)
    assert said in " ".join(made.sentences)


def test_integers_beyond_every_float_are_refused_in_a_sentence():
    domain = pg.Domain({"sex": ["F", "M"], "age": 3, "size": {"bins": [0, 10, 20]}})
    policy = pg.Policy(domain, constraints=[pg.Cuboid("sex")])
    query = pg.queries.identity(domain)
    for call in (
        lambda: pg.Domain({"age": 10**5000}),
        lambda: pg.Domain({"age": {"bins": [0, 10**5000]}}),
        lambda: pg.Measure("income", 0, 10**5000),
        lambda: pg.Families(policy, 10**5000),
        lambda: pg.compare(query, policy, 10**5000),
        lambda: pg.compare(query, policy, pg.Epsilon(1e-308)),
    ):
        with pytest.raises(pg.PolicyGraphError) as refusal:
            call()
        assert len(str(refusal.value)) < 700
    assert pg.sensitivity(query, policy, time_limit=10**400).exact
