"""Growth models against literal ones in plain Python, and against what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

import policygraph as pg
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
        lambda: participation.mvs().graph(linked=True, seed=-1),
    ],
)
def test_impossible_parameters_get_a_sentence(make) -> None:
    with pytest.raises(pg.InputError) as raised:
        make()
    assert raised.value.code == "attacks.model"
