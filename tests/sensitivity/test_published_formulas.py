"""Each line of ``docs/explanation/published-formulas.md``: where a published formula holds, and where it is too small."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest

import policygraph as pg
from policygraph.moves.blowfish.longest import are_neighbours_records, longest_blowfish
from policygraph.sensitivity.certificate import Witness
from tests import published
from tests.oracles import blowfish as oracle
from tests.oracles.published_bound import published_bound
from tests.paths import ROOT
from tests.published import (
    BLOWFISH,
    FORMULAS,
    PAIRS,
    Pair,
    basis,
    blowfish,
    degrees,
    dense,
    directed,
    domain_of,
    engine,
    listed,
    listed_unit,
    margins,
    some_sums,
    table,
    with_graph,
)
from tests.published_tables import blocks

DOCUMENT = ROOT / "docs" / "explanation" / "published-formulas.md"

SHAPES = [(2, 2), (2, 3), (3, 3), (1, 3), (2, 2, 2), (2, 1, 3), (1, 2, 2)]


def words_of(domain: pg.Domain) -> list[str]:
    return ["".join(w) for k in range(1, len(domain.names) + 1) for w in combinations(domain.names, k)]


def determined(domain: pg.Domain, *words: str) -> bool:
    """Whether one of the cuboids has every attribute that has more than one value."""
    wide = {name for name, size in zip(domain.names, domain.shape) if size > 1}
    return any(wide <= set(word) for word in words)


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_one_cuboid(sizes: tuple[int, ...]) -> None:
    domain = table(*sizes)
    for word in words_of(domain):
        policy = margins(domain, word)
        exact = listed(policy)
        assert engine(policy) == exact
        assert exact == (0 if determined(domain, word) else published.one_cuboid()), word


@pytest.mark.parametrize("sizes", [*SHAPES, (3, 4), (5, 3), (3, 2, 3), (2, 2, 2, 2)], ids=str)
def test_two_cuboids(sizes: tuple[int, ...]) -> None:
    domain = table(*sizes)
    for first, second in combinations(words_of(domain), 2):
        policy = margins(domain, f"{first} {second}")
        exact = listed(policy)
        assert engine(policy) == exact
        says = published.two_cuboids(domain, first, second)
        assert exact == (0 if determined(domain, first, second) else says), (first, second)


def test_three_margins() -> None:
    domain = table(2, 2, 3)
    policy = margins(domain, "A B C")
    assert published.three_margins_2x2x3() == 6 == listed_unit(policy) < listed(policy) == 8 == engine(policy)
    # the value of the literature is right for the moves that change a cell by at most one, and for 2 x 2 x 2
    assert listed_unit(margins(table(2, 2, 2), "A B C")) == 4 < listed(margins(table(2, 2, 2), "A B C")) == 6
    longest = [m for m in basis(policy) if np.abs(m).sum() == 8]
    assert longest
    assert all(np.abs(m).max() >= 2 for m in longest)


@pytest.mark.parametrize("r", [1, 2, 3, 4])
@pytest.mark.parametrize("c", [1, 2, 3])
def test_partial_cells(r: int, c: int) -> None:
    for n1, n2, total in product(range(r + 1), range(c + 1), (False, True)):
        policy = some_sums(r, c, n1, n2, total)
        says, exact = published.partial_cells([(n1, n2)]), listed(policy)
        assert engine(policy) == exact
        smaller_side_known = (n1 == r and r <= n2) or (n2 == c and c <= n1)
        if min(r, c) == 1:
            assert exact <= 2
        elif smaller_side_known:
            assert says == exact, (n1, n2, total)
        else:
            assert says < exact, (n1, n2, total)
            n = min(n1, n2)
            odd = n1 == n2 and not total
            assert exact == 2 * n + (1 if odd else 2), (n1, n2, total)


def test_partial_cells_of_cuboids_that_share_an_attribute() -> None:
    domain = table(3, 2, 3)
    for x, y in [((1, 1), (0, 0)), ((1, 1), (2, 1)), ((3, 3), (1, 1))]:
        left = [(a, b) for b, (n, _) in enumerate((x, y)) for a in range(n)]
        right = [(b, c) for b, (_, n) in enumerate((x, y)) for c in range(n)]
        policy = pg.Policy(domain, constraints=[pg.Cells(["A", "B"], left), pg.Cells(["B", "C"], right)])
        says, exact = published.partial_cells([x, y]), engine(policy)
        slices = max(listed(some_sums(3, 3, *x)), listed(some_sums(3, 3, *y)))
        assert exact == slices
        assert says == exact if x == (3, 3) else says < exact


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 6])
def test_undirected_degrees(nodes: int) -> None:
    for known in range(nodes + 1):
        policy = degrees(nodes, known)
        says, exact = published.undirected_degrees(nodes, known), engine(policy)
        assert exact == listed(policy)
        check_undirected(nodes, known, says, exact)


def check_undirected(nodes: int, known: int, says: int, exact: int) -> None:
    unknown = nodes - known
    if unknown >= 2:
        assert says == exact if known <= 2 else says < exact
    elif unknown == 1:
        assert (says >= exact) == (known <= 3)
        assert says == exact or known not in (2, 3)
    else:
        assert (says >= exact) == (nodes <= 4 or nodes == 6)
        assert says == exact or nodes not in (4, 6)


@pytest.mark.parametrize("nodes", [7, 8, 20, 101, 1000])
def test_undirected_degrees_of_larger_graphs(nodes: int) -> None:
    for known in {0, 1, 2, 3, 4, 5, nodes // 2, nodes - 2, nodes - 1, nodes}:
        check_undirected(
            nodes, known, published.undirected_degrees(nodes, known), engine(degrees(nodes, known))
        )


@pytest.mark.parametrize("nodes", [2, 3, 4])
@pytest.mark.parametrize("loops", [False, True])
def test_directed_degrees(nodes: int, loops: bool) -> None:
    for ins, outs in product(range(nodes + 1), repeat=2):
        policy = directed(nodes, ins, outs, loops)
        says, exact = published.directed_degrees(nodes, ins, outs), engine(policy)
        assert exact == listed(policy)
        if loops:
            assert says == exact if ins == outs else says < exact
        elif ins == outs:
            assert says >= exact
            assert says == exact or ins in (1, 2)
        elif {ins, outs} != {1, 2} and nodes >= 3:
            assert says < exact


@pytest.mark.parametrize("nodes", [3, 4])
def test_directed_degrees_for_every_choice_of_nodes(nodes: int) -> None:
    network = pg.Network(nodes, directed=True)
    choices = [c for k in range(nodes + 1) for c in combinations(range(nodes), k)]
    met: dict[tuple[int, int], set[int]] = {}
    for ins, outs in product(choices, repeat=2):
        facts = [pg.Degrees(list(ins), side="in")] if ins else []
        facts += [pg.Degrees(list(outs), side="out")] if outs else []
        exact = engine(pg.Policy(network, constraints=facts))
        says = published.directed_degrees(nodes, len(ins), len(outs))
        met.setdefault((len(ins), len(outs)), set()).add(exact)
        if len(ins) == len(outs):
            assert says >= exact
        elif {len(ins), len(outs)} != {1, 2}:
            assert says < exact
    assert met[1, 2] == met[2, 1] == {3, 4}


def test_directed_degrees_depend_on_the_nodes() -> None:
    network = pg.Network(4, directed=True)
    same, other = (
        pg.Policy(network, constraints=[pg.Degrees([0], side="in"), pg.Degrees([node], side="out")])
        for node in (0, 1)
    )
    assert (engine(same), engine(other), published.directed_degrees(4, 1, 1)) == (2, 3, 3)
    assert (listed(same), listed(other)) == (2, 3)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (3, 3), (2, 2, 2)], ids=str)
def test_parallel_composition(sizes: tuple[int, ...]) -> None:
    domain = table(*sizes)
    every = words_of(domain)
    for words in [[], *([w] for w in every), *(list(p) for p in combinations(every, 2))]:
        policy = margins(domain, " ".join(words))
        moves = basis(policy)
        for name in domain.names:
            axis = domain.axis(name)
            parts = [published.part(domain, name, v) for v in range(domain.shape[axis])]
            says = published.parallel_composition(listed(policy, query) for query in parts)
            value = np.array([domain.cell(c)[axis] for c in range(domain.size)])
            crossing = any(len(set(value[np.flatnonzero(m)].tolist())) > 1 for m in moves)
            exact = listed(policy)
            if not crossing:
                assert says == exact, (words, name)
            else:
                # a move that touches two parts changes both; the parts alone do not show it
                assert says <= exact
            if words == ["A"] and name == "B" and len(sizes) == 2:
                assert (crossing, says) == (True, exact - 1)


def test_edges_only() -> None:
    small = {name for name, p in BLOWFISH.items() if published.edges_only(*dense(p)) < blowfish(p)}
    assert {"line of 4, count of {0, 1}", "line of 6, counts of {0, 1} and {2, 3}"} <= small
    assert "attribute graph on 2x2x2, A and B" in small
    for name, policy in BLOWFISH.items():
        if name.startswith("full"):  # every repair is an edge
            assert published.edges_only(*dense(policy)) == blowfish(policy)
    # secret pairs that a non-edge makes unnecessary: the count of edges may also be too large
    assert published.edges_only(*dense(BLOWFISH["attribute graph on 2x2, A"])) == 4
    assert blowfish(BLOWFISH["attribute graph on 2x2, A"]) == 2


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (2, 3), (4, 3), (5, 2)], ids=str)
def test_full_graph_one_marginal(sizes: tuple[int, ...]) -> None:
    policy = with_graph("full", "A", *sizes)
    assert published.full_one_marginal(domain_of(policy), "A") == blowfish(policy) == engine(policy)
    matrix, graph = (x.tolist() for x in dense(policy))
    if policy.domain.size <= 6:
        # listing data sets: the value is there with as many records as the marginal has cells
        assert oracle.sensitivity(matrix, graph, sizes[0]) == blowfish(policy)


def test_attribute_graph_disjoint_marginals() -> None:
    small = {}
    for name in BLOWFISH:
        if name.startswith("attribute"):
            policy = BLOWFISH[name]
            words = ["".join(f.names) for f in policy.constraints if isinstance(f, pg.Cuboid)]
            says = published.attribute_disjoint_marginals(domain_of(policy), words)
            if len(words) == 1:
                assert says >= blowfish(policy)
            if says < blowfish(policy):
                small[name] = (says, blowfish(policy))
    assert small["attribute graph on 2x2x2, A and B"] == (4, 8)
    assert len(small) == 3


def test_attribute_graph_grows_with_the_records() -> None:
    matrix, graph = dense(with_graph("attribute", "A B", 2, 2, 2))
    capped = [longest_blowfish(matrix, graph, at_most_records=n) for n in (1, 2, 3, 4, 5)]
    assert [bracket.lower for bracket in capped] == [2, 4, 6, 8, 8]
    assert all(bracket.exact for bracket in capped)
    for n in (1, 2, 3):
        assert oracle.sensitivity(matrix.tolist(), graph.tolist(), n) == 2 * n


def test_sparse_counts() -> None:
    for name, policy in BLOWFISH.items():
        bound, exact = published_bound(*dense(policy)), blowfish(policy)
        assert published.sparse_counts(*dense(policy)) == bound.published
        if bound.proved is not None:
            assert exact <= bound.proved, name
        if bound.safe:
            assert bound.published is not None
            assert exact <= bound.published, name
    line = BLOWFISH["line of 6, counts of {0, 1} and {2, 3}"]
    bound = published_bound(*dense(line))
    assert (bound.published, bound.proved, blowfish(line)) == (4, 6, 6)
    table_ = BLOWFISH["attribute graph on 2x2x2, A and B"]
    bound = published_bound(*dense(table_))
    assert (bound.published, bound.proved, blowfish(table_)) == (4, None, 8)
    not_sparse = published_bound(*dense(with_graph("full", "A B", 2, 2)))
    assert not_sparse.published is None


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_fourier(k: int) -> None:
    domain, query = table(*[2] * k), published.fourier_query(k)
    says = published.fourier(k)
    full, attribute = (
        engine(pg.Policy(domain, graph(domain)), query)
        for graph in (pg.PolicyGraph.full, pg.PolicyGraph.attribute)
    )
    assert says == 2 * query.height
    # a coefficient changes, by 2, when old and new value differ in an odd number of its attributes
    odd = [
        sum(comb(w, i) * comb(k - w, s - i) for s in (1, 2) for i in (1,) if s - i <= k - w)
        for w in range(1, k + 1)
    ]
    assert full == 2 * max(odd) == 2 * ((k + 1) ** 2 // 4)
    assert attribute == 2 * k
    assert Fraction(7, 4) <= Fraction(says, full) <= 2


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3, 2)], ids=str)
def test_count_of_tables(sizes: tuple[int, ...]) -> None:
    domain = table(*sizes)
    every = ["", *words_of(domain)]
    for words in [c for n in (1, 2, 3) for c in combinations(every, n)] + [tuple(every)]:
        query = pg.queries.cuboids(domain, [tuple(word) for word in words])
        says = published.count_of_tables(words)
        full, attribute = (
            engine(pg.Policy(domain, graph(domain)), query)
            for graph in (pg.PolicyGraph.full, pg.PolicyGraph.attribute)
        )
        assert full == says - 2 * ("" in words)
        assert attribute == 2 * max(sum(name in word for word in words) for name in domain.names)


# The concrete pairs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
def test_pair(name: str) -> None:
    pair = PAIRS[name]
    exact = blowfish(pair.policy) if pair.policy.graph is not None else listed(pair.policy)
    assert pair.says < pair.differ == exact == engine(pair.policy)
    check_neighbours(pair)
    certificate = pg.Sensitivity(
        power=Fraction(pair.differ),
        norm="l1",
        kind="exact",
        lower_power=Fraction(pair.differ),
        witness=Witness(
            *(
                tuple(sorted(Counter(map(pair.policy.domain.index, side)).items()))
                for side in (pair.before, pair.after)
            )
        ),
        method="two data sets",
        reason="shown in docs/explanation/published-formulas.md",
        policy=pair.policy,
        query=pg.queries.identity(pair.policy.domain),
    )
    report = certificate.verify()
    assert not report.failed, str(report)
    decided = {check.name for check in report.checks if check.passed}
    assert {"tables", "public facts", "neighbours", "attained"} <= decided


def check_neighbours(pair: Pair) -> None:
    policy = pair.policy
    verdict = policy.are_neighbours(pair.counts("before"), pair.counts("after"))
    assert verdict, verdict.reason
    if policy.graph is None:
        return
    # record by record, in the order shown: one secret pair, the rest repairs along non-edges
    old, new = ([policy.domain.index(cell) for cell in side] for side in (pair.before, pair.after))
    matrix, graph = dense(policy)
    assert are_neighbours_records(old, new, matrix, graph).neighbours
    assert sum(bool(graph[x][y]) for x, y in zip(old, new)) == 1


def test_pairs_without_a_secret_pair_are_not_neighbours() -> None:
    policy = BLOWFISH["line of 6, counts of {0, 1} and {2, 3}"]
    # one record changes and keeps the counts: along a secret pair, and along none
    assert policy.are_neighbours([0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1])
    line = published.line(6, [0, 1])
    assert not line.are_neighbours([0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0])


def test_the_parts_of_the_parallel_pair_look_unchanged_by_more_than_one() -> None:
    pair = PAIRS["parallel-composition"]
    change = pair.counts("after") - pair.counts("before")
    for value in (0, 1):
        query = published.part(domain_of(pair.policy), "B", value)
        assert np.abs(query.answer(np.abs(change))).sum() == 1 == listed(pair.policy, query)


# The document -------------------------------------------------------------------------------------------------------


def test_the_document_shows_what_is_computed() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    shown = re.findall(r"<!-- printed: (.+?) -->\n\n(.*?)\n\n<!-- end -->", text, re.DOTALL)
    expected = blocks()
    assert [name for name, _ in shown if name not in expected] == []
    assert Counter(name for name, _ in shown) == Counter(expected.keys())
    for name, block in shown:
        assert block == expected[name], f"{name}: run python -m tests.published_tables"


def test_the_document_names_every_formula_and_its_tests() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert set(re.findall(r"`((?:literature|he-2014)\.[a-z0-9-]+)`", text)) == set(FORMULAS)
    sections = [
        part
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]
        if "`literature." in part or "`he-2014." in part
    ]
    for section in sections:
        named = re.findall(r"`(test_[a-z0-9_]+)`", section)
        assert named, section[:40]
        assert all(callable(globals().get(name)) for name in named), named
    assert {pair.formula for pair in PAIRS.values()} <= set(FORMULAS)
