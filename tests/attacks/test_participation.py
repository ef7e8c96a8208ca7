"""Growth models against literal ones in plain Python, and against what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

import policygraph as pg
from benchmarks.papers._readings import Reading, readings
from policygraph.attacks import participation


def literal_copying(rng: np.random.Generator, *, linked: bool, nodes: int, random_link: float) -> int:
    links = {u: set() for u in range(10)}
    group = [0] * 5 + [1] * 5
    for u in range(10):
        inside = [v for v in range(10) if group[v] == group[u] and v != u]
        links[u] = set(rng.choice(inside, size=3, replace=False).tolist())
    if linked:
        links[0].add(5)
    for n in range(10, nodes):
        prototype = int(rng.integers(n))
        group.append(group[prototype])
        links[n] = {int(rng.integers(n)) if rng.random() < random_link else v for v in links[prototype]}
    return sum(group[u] != group[v] for u in links for v in links[u])


def literal_fire(rng: np.random.Generator, *, linked: bool, nodes: int) -> int:
    out = {u: set() for u in range(10)}
    group = [0] * 5 + [1] * 5
    for u in range(10):
        inside = [v for v in range(10) if group[v] == group[u] and v != u]
        out[u] = set(rng.choice(inside, size=3, replace=False).tolist())
    if linked:
        out[0].add(5)
    for n in range(10, nodes):
        ambassador = int(rng.integers(n))
        group.append(group[ambassador])
        mine, waiting = {ambassador}, [ambassador]
        while waiting:
            w = waiting.pop(0)
            for share, around in (
                (0.37, sorted(out[w])),
                (0.32, [u for u in range(n) if w in out[u]]),
            ):
                count = int(rng.geometric(1 - share)) - 1
                fresh = [v for v in around if v not in mine]
                picked = (
                    rng.choice(fresh, size=min(count, len(fresh)), replace=False).tolist() if fresh else []
                )
                mine.update(picked)
                waiting += picked
        if rng.random() < 0.1:
            mine.add(int(rng.integers(n)))
        out[n] = mine
    return sum(group[u] != group[v] for u in out for v in out[u])


@pytest.mark.parametrize("linked", [False, True])
def test_copying_is_the_literal_model(linked: bool) -> None:
    rng = np.random.default_rng(1)
    slow = np.array([literal_copying(rng, linked=linked, nodes=30, random_link=0.1) for _ in range(1500)])
    fast = participation.copying(30, random_link=0.1).counts(linked=linked, runs=20_000)
    assert abs(slow.mean() - fast.mean()) < 4.5 * np.hypot(
        slow.std() / len(slow) ** 0.5, fast.std() / len(fast) ** 0.5
    )


@pytest.mark.parametrize("linked", [False, True])
def test_forest_fire_is_the_literal_model(linked: bool) -> None:
    rng = np.random.default_rng(2)
    slow = np.array([literal_fire(rng, linked=linked, nodes=25) for _ in range(800)])
    fast = participation.forest_fire(25).counts(linked=linked, runs=20_000)
    assert abs(slow.mean() - fast.mean()) < 4.5 * np.hypot(
        slow.std() / len(slow) ** 0.5, fast.std() / len(fast) ** 0.5
    )


def test_before_anything_happens_the_difference_is_the_link_itself() -> None:
    for model in (
        participation.forest_fire(10),
        participation.copying(10),
        participation.mvs(steps=0),
    ):
        found = model.effect(runs=50)
        assert (found.without, found.linked, found.deviation) == (0.0, 1.0, 0.0)
        assert found.epsilon(0.5) == 0.5


def test_the_effect_grows_with_the_network_and_fades_in_the_steady_state() -> None:
    assert (
        participation.copying(100).effect(20_000).difference
        > participation.copying(30).effect(20_000).interval[1]
    )
    assert participation.mvs(steps=20).effect(20_000).interval[0] > 0.5
    low, high = participation.mvs(steps=1_000).effect(2_000).interval
    assert low < 0.5
    assert high > -0.5
    assert abs(participation.mvs(steps=1_000).effect(2_000).difference) < 1.0


def test_runs_repeat_by_seed_and_graphs_fit_their_counts() -> None:
    model = participation.forest_fire(20)
    assert np.array_equal(
        model.counts(linked=True, runs=20, seed=7), model.counts(linked=True, runs=20, seed=7)
    )
    made = model.graph(linked=True, seed=7)
    crossing = sum(made.nodes[u]["community"] != made.nodes[v]["community"] for u, v in made.edges)
    assert crossing == model.counts(linked=True, runs=1, seed=7)[0]
    assert made.is_directed()
    assert not participation.mvs().graph(linked=False).is_directed()


def literal_mvs(rng: np.random.Generator, *, linked: bool, nodes: int, steps: int) -> int:
    links = set()
    for u in range(nodes):
        inside = [v for v in range(nodes) if (v < nodes // 2) == (u < nodes // 2) and v != u]
        links |= {frozenset((u, int(v))) for v in rng.choice(inside, size=2, replace=False)}
    if linked:
        links.add(frozenset((0, nodes // 2)))

    def friends(u: int, but: int = -1) -> list[int]:
        return sorted(v for pair in links if u in pair for v in pair if v not in (u, but))

    for _ in range(steps):
        if rng.random() < 0.3:
            links.add(frozenset(rng.choice(nodes, size=2, replace=False).tolist()))
        if rng.random() < 0.8:
            u = int(rng.integers(nodes))
            if friends(u):
                others = friends(int(rng.choice(friends(u))), u)
                # The friend is drawn first, and then one of the friends of that friend.
                if others:
                    links.add(frozenset((u, int(rng.choice(others)))))
        for _ in range(min(int(rng.poisson(0.5)), len(links))):
            links.remove(sorted(links, key=sorted)[int(rng.integers(len(links)))])
    return sum((min(pair) < nodes // 2) != (max(pair) < nodes // 2) for pair in links)


@pytest.mark.parametrize("linked", [False, True])
def test_mvs_is_the_literal_model(linked: bool) -> None:
    rng = np.random.default_rng(3)
    slow = np.array([literal_mvs(rng, linked=linked, nodes=10, steps=15) for _ in range(800)])
    model = participation.mvs(10, steps=15, random_link=0.3, introduction=0.8, decay=0.5)
    fast = model.counts(linked=linked, runs=20_000)
    assert abs(slow.mean() - fast.mean()) < 4.5 * np.hypot(
        slow.std() / len(slow) ** 0.5, fast.std() / len(fast) ** 0.5
    )


def test_the_literal_reading_of_the_search_is_the_model_of_the_library() -> None:
    means = Reading().means(4_000, 1)
    for mean, error, linked in zip(means[:2], means[2:], (False, True), strict=True):
        fast = participation.forest_fire().counts(linked=linked, runs=10_000)
        assert abs(mean - fast.mean()) < 4.5 * np.hypot(error, fast.std() / len(fast) ** 0.5)
    every = list(readings())
    assert len(set(every)) == len(every)
    assert [str(reading) for reading in every if reading.departures == 0] == ["literal"]
    assert str(Reading(number=1, depth=0, nodes=60)).count(",") == 2


def test_the_loss_for_participation_has_the_interval_of_the_difference() -> None:
    found = participation.Effect(without=10.0, linked=50.0, runs=100, deviation=5.0)
    low, high = found.epsilon_interval(1.0)
    assert low < found.epsilon(1.0) < high
    assert 1 / low == pytest.approx(found.interval[1])
    assert participation.Effect(0.0, 1.0, 5, 0.0).epsilon_interval(0.5) == (0.5, 0.5)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), "much", None])
def test_a_loss_that_is_none_gets_a_sentence(epsilon: object) -> None:
    found = participation.Effect(without=10.0, linked=50.0, runs=100, deviation=5.0)
    for ask in (found.epsilon, found.epsilon_interval):
        with pytest.raises(pg.InputError, match="expected a"):
            ask(epsilon)


@pytest.mark.parametrize(
    "make",
    [
        lambda: participation.forest_fire(forward=1.0),
        lambda: participation.forest_fire(random_link=-0.1),
        lambda: participation.forest_fire(5),
        lambda: participation.forest_fire(start=7),
        lambda: participation.copying(outlinks=5),
        lambda: participation.copying(random_link="often"),
        lambda: participation.mvs(steps=-1),
        lambda: participation.mvs(decay=-1),
        lambda: participation.mvs(nodes=True),
        lambda: participation.mvs().effect(runs=0),
        lambda: participation.mvs().effect(runs=1),
        lambda: participation.mvs().graph(linked=True, seed=-1),
    ],
)
def test_impossible_parameters_get_a_sentence(make) -> None:
    with pytest.raises(pg.InputError) as raised:
        make()
    assert raised.value.code == "attacks.model"
