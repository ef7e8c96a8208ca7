from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygraph.errors import InputError
from policygraph.model.domain import Domain, Network


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_cells_and_indices_are_inverse(sizes):
    domain = Domain({f"a{i}": n for i, n in enumerate(sizes)})
    every = list(product(*(range(n) for n in sizes)))
    assert [domain.cell(i) for i in range(domain.size)] == every
    assert [domain.index(cell) for cell in every] == list(range(domain.size))
    assert list(zip(*(c.tolist() for c in domain.codes(np.arange(domain.size))))) == every


def literal_pairs(n, directed, loops):
    pairs = product(range(n), range(n))
    return [(u, v) for u, v in pairs if (loops or u != v) and (directed or u <= v)]


@given(st.integers(1, 9), st.booleans(), st.booleans())
def test_network_pairs_are_numbered_row_by_row(n, directed, loops):
    network = Network(n, directed=directed, loops=loops)
    every = literal_pairs(n, directed, loops)
    assert network.size == len(every)
    assert [network.cell(i) for i in range(network.size)] == every
    if every:
        u, v = np.array(every).T
        assert network.pair_index(u, v).tolist() == list(range(network.size))
        if not directed:
            assert network.pair_index(v, u).tolist() == list(range(network.size))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_large_networks_number_their_pairs_exactly(directed, loops):
    network = Network(100_000, directed=directed, loops=loops)
    at = np.concatenate(
        [
            np.arange(1000),
            network.size - 1 - np.arange(1000),
            np.linspace(0, network.size - 1, 999, dtype=np.int64),
        ]
    )
    u, v = network.pairs(at)
    assert (network.pair_index(u, v) == at).all()
    assert u.max() < 100_000
    assert v.max() < 100_000


def test_equal_domains_are_equal_and_order_matters():
    assert Domain({"a": 3}) == Domain({"a": [0, 1, 2]})
    assert hash(Domain({"a": 3})) == hash(Domain({"a": range(3)}))
    assert Domain({"a": 2, "b": 3}) != Domain({"b": 3, "a": 2})
    assert Network(3) != Network(3, directed=True)


def test_domains_beyond_64_bits_still_answer():
    domain = Domain({f"a{i}": 10 for i in range(30)})
    assert domain.size == 10**30
    assert domain.index(domain.cell(10**29 + 7)) == 10**29 + 7


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Domain({}), "domain.empty"),
        (lambda: Domain({"a": 0}), "domain.labels"),
        (lambda: Domain({"a": []}), "domain.labels"),
        (lambda: Domain({"a": ["x", "\ud800"]}), "domain.labels"),
        (lambda: Domain({"\udc80": 2}), "domain.name"),
        (lambda: Domain({"a": "xy"}), "domain.labels"),
        (lambda: Domain({"a": True}), "domain.labels"),
        (lambda: Domain({"a": ["x", "x"]}), "domain.duplicate"),
        (lambda: Domain({"a": ["1", 1]}), "domain.duplicate"),
        (lambda: Domain({"": 2}), "domain.name"),
        (lambda: Domain({"a": 2}).axis("b"), "domain.unknown-attribute"),
        (lambda: Domain({"a": ["x"]}).code("a", "y"), "domain.unknown-label"),
        (lambda: Domain({"a": 2}).code("a", True), "domain.unknown-label"),
        (lambda: Domain({"a": 2}).cell(2), "domain.cell"),
        (lambda: Domain({"a": 2, "b": 2}).index([0]), "domain.cell"),
        (lambda: Domain({"a": 2}).project([]), "domain.empty"),
        (lambda: Network(0), "domain.labels"),
        (lambda: Network(3).index((0, 0)), "network.loop"),
        (lambda: Network(3).index((0, 5)), "network.unknown-node"),
        (lambda: Network(3, directed="yes"), "network.flag"),
    ],
)
def test_bad_input_is_named(make, code):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.code == code
