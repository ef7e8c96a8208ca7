"""The first graph of a synthetic network: blocks are filled largest first, and degrees are split near their shares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policygraph.estimation.networks._compiled_graphs import fill_between, fill_inside
from policygraph.estimation.networks.realise import first_graph, split_degrees

Ints = npt.NDArray[np.int64]


def replay(left: list[int], right: list[int], edges: list[tuple[int, int]], bar: bool) -> tuple[Ints, Ints]:
    """Follow a filling by its definition, one node on the left at a time; return what is left on both sides."""
    ends, needs = np.array(left), np.array(right)
    for turn in sorted(range(len(left)), key=lambda u: -left[u]):
        chosen = [v for u, v in edges if u == turn]
        allowed = [v for v in range(len(right)) if needs[v] > 0 and not (bar and v == turn)]
        assert len(set(chosen)) == len(chosen) == min(left[turn], len(allowed))
        assert set(chosen) <= set(allowed)
        passed = [needs[v] for v in allowed if v not in chosen]
        assert not chosen or not passed or min(needs[chosen]) >= max(passed)
        needs[chosen] -= 1
        ends[turn] -= len(chosen)
    return ends, needs


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=7), st.data(), st.booleans())
def test_each_node_is_joined_to_those_that_need_most(left: list[int], data: st.DataObject, bar: bool) -> None:
    size = len(left) if bar else data.draw(st.integers(1, 7))
    right = data.draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    ends, order = np.array(left), np.argsort(-np.array(right), kind="stable")
    needs = np.array(right)[order]
    own = np.arange(len(left)) if bar else np.full(len(left), -1)
    tails, heads = np.empty((2, sum(left)), dtype=np.int64)
    used = fill_between(ends, np.argsort(-ends, kind="stable"), needs, order, own, tails, heads)
    expected = replay(left, right, list(zip(tails[:used].tolist(), heads[:used].tolist(), strict=True)), bar)
    assert ends.tolist() == expected[0].tolist()
    assert needs.tolist() == expected[1][order].tolist() == sorted(needs, reverse=True)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=8))
def test_the_neediest_node_is_joined_to_the_neediest_after_it(degrees: list[int]) -> None:
    order = np.argsort(-np.array(degrees), kind="stable")
    needs = np.array(degrees)[order]
    tails, heads = np.empty((2, sum(degrees)), dtype=np.int64)
    used = fill_inside(needs, order, tails, heads)
    left = np.array(degrees)
    done: set[int] = set()
    edges = list(zip(tails[:used].tolist(), heads[:used].tolist(), strict=True))
    for turn in dict.fromkeys(tails[:used].tolist()):
        chosen = [v for u, v in edges if u == turn]
        open_ = [v for v in range(len(degrees)) if v not in done and v != turn]
        assert left[turn] >= max((left[v] for v in open_), default=0)
        assert set(chosen) <= set(open_)
        assert len(set(chosen)) == len(chosen) == min(left[turn], sum(left[v] > 0 for v in open_))
        passed = [left[v] for v in open_ if v not in chosen]
        assert not passed or min(left[chosen]) >= max(passed)
        left[chosen] -= 1
        left[turn] -= len(chosen)
        done.add(turn)
    assert needs.tolist() == left[order].tolist()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=6), st.integers(0, 3)
)
def test_a_split_has_the_sums_and_keeps_to_the_room_where_that_can_be(
    split: list[list[int]], spare: int
) -> None:
    table = np.array(split)
    room = np.broadcast_to(table.max(axis=0) + spare, table.shape).copy()
    made = split_degrees(table.sum(axis=1), room, table.sum(axis=0))
    assert made.sum(axis=1).tolist() == table.sum(axis=1).tolist()
    assert made.sum(axis=0).tolist() == table.sum(axis=0).tolist()
    assert np.all(made >= 0)
    assert np.all(made <= room)


def test_shares_are_free_again_where_room_is_scarce() -> None:
    # the first node has room in the first group only, where settled shares leave one place for its two spare ends
    degrees, room, wanted = np.array([4, 4]), np.array([[4, 0], [4, 4]]), np.array([5, 3])
    assert split_degrees(degrees, room, wanted).tolist() == [[4, 0], [1, 3]]


@pytest.mark.parametrize("directed", [False, True])
def test_large_blocks_have_the_degrees_and_counts(directed: bool) -> None:
    rng = np.random.default_rng(3)
    n, k = 3_000, 4
    weight = 1 / np.arange(1, n + 1) ** 0.6
    tail, head = rng.choice(n, (2, 20_000), p=weight / weight.sum())
    keys = np.unique(np.minimum(tail, head) * n + np.maximum(tail, head) if not directed else tail * n + head)
    tail, head = keys[keys // n != keys % n] // n, keys[keys // n != keys % n] % n
    codes = rng.integers(0, k, n)
    out, into = np.bincount(tail, minlength=n), np.bincount(head, minlength=n)
    if not directed:
        out = into = out + into
    counts = np.zeros((k, k), dtype=np.int64)
    np.add.at(counts, (codes[tail], codes[head]), 1)
    if not directed:
        counts = counts + counts.T - np.diag(np.diag(counts))
    tails, heads = first_graph(out, into, codes, counts, directed=directed, loops=False)
    made = np.zeros((k, k), dtype=np.int64)
    np.add.at(made, (codes[tails], codes[heads]), 1)
    if directed:
        assert np.array_equal(np.bincount(tails, minlength=n), out)
        assert np.array_equal(np.bincount(heads, minlength=n), into)
    else:
        made = made + made.T - np.diag(np.diag(made))
        assert np.array_equal(np.bincount(tails, minlength=n) + np.bincount(heads, minlength=n), out)
    assert np.array_equal(made, counts)
    ends = (tails, heads) if directed else (np.minimum(tails, heads), np.maximum(tails, heads))
    assert len(np.unique(ends[0] * n + ends[1])) > 0.99 * len(tails)
