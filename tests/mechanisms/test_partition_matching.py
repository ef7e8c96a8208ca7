"""Matched buckets: the law on three cells, the leak of noise on pairs alone, rounds, and the mechanism."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.audit import audit
from policygraph.curator.gate import draw, histogram
from policygraph.mechanisms.matching.solve import marks
from policygraph.mechanisms.partitioned import Partition
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.partitioned.partitioners import Matchings, matching
from tests.gate import chosen, chosen_many
from tests.oracles import matching as oracle
from tests.oracles import partition as runs

EPSILON = 2.0


def rank(option):
    return 0 if option is None else int(marks(3, 0)[option]) + 1


def law_of(counts, single, pair):
    deviations = {(a, b): abs(counts[a] - counts[b]) for a, b in itertools.combinations(range(3), 2)}
    return oracle.three_law(deviations, single, pair, 1, 1, rank, runs.law, 17)


def worst(single, pair):
    laws = {counts: law_of(counts, single, pair) for counts in itertools.product(range(3), repeat=3)}
    assert all(abs(sum(law.values()) - 1) < 1e-6 for law in laws.values())
    return max(
        abs(math.log(laws[a][p] / laws[b][p]))
        for a, b in itertools.combinations(laws, 2)
        if np.abs(np.subtract(a, b)).sum() == 1
        for p in laws[a]
    )


@pytest.mark.slow
def test_three_cells_are_private_at_these_scales_and_not_at_a_quarter():
    ready = Matchings().calibrate(3, Fraction(1), pg.Epsilon(2), 1.0)
    single, pair = float(ready.scale(1)), float(ready.scale(2))
    assert 0.5 * EPSILON < worst(single, pair) <= EPSILON
    assert worst(single / 4, pair / 4) > EPSILON


def test_the_code_draws_from_that_law(monkeypatch):
    monkeypatch.setattr(matching, "FINE", 1)  # whole records as steps, so that ties are frequent
    ready = Matchings(bias=1).calibrate(3, Fraction(1), pg.Epsilon(2), 1.0)
    assert ready.step == 1
    counts, n = (0, 2, 1), 4000
    source = pg.SeededRng("three cells")
    seen = Counter(partition.buckets() for partition in chosen_many(ready, counts, n, source))
    square = 0.0
    for option, chance in law_of(counts, float(ready.scale(1)), float(ready.scale(2))).items():
        partition = (
            Partition([0, 1, 2]) if option is None else Partition([0 if i in option else 1 for i in range(3)])
        )
        square += (seen.pop(partition.buckets(), 0) - n * chance) ** 2 / (n * chance)
    assert not seen
    assert square < 30


def test_noise_on_the_pairs_alone_is_not_private():
    """All cells single: every gain must be negative, and one record changes the gains of all pairs at its cell."""
    epsilon, cells = 1.0, 20
    scale = 2 / epsilon
    ratio = math.exp(-1 / scale)

    def stays_negative(gain):
        """P(gain + Z < 0) = P(Z > gain) for a discrete Laplace variable and gain >= 0."""
        return ratio ** (gain + 1) / (1 + ratio)

    # The gain of a pair is what merging saves minus the difference of the two counts, here 5 - 0 or 5 - 1.
    equal = stays_negative(5) ** (cells - 1)
    changed = stays_negative(4) ** (cells - 1)
    assert math.isclose(math.log(changed / equal), (cells - 1) * epsilon / 2)


def test_scales_and_steps():
    ready = Matchings(rounds=3).calibrate(10, Fraction(2), pg.Epsilon("1/2"), 1.0)
    assert (ready.scale(1), ready.scale(2), ready.scale(4)) == (12, 24, 24)
    assert matching.FINE <= ready.step * ready.scale(2) < 2 * matching.FINE


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=9),
    st.lists(st.integers(0, 3), min_size=9, max_size=9),
)
def test_deviations_of_unions(counts, labels):
    partition = Partition(labels[: len(counts)])
    found = matching._deviations(np.array(counts), partition)
    members = partition.buckets()
    for a, b in itertools.product(range(partition.n_buckets), repeat=2):
        cells = set(members[a]) | set(members[b])
        assert found[a, b] == runs.deviation([counts[c] for c in cells])


def test_without_noise_the_cheapest_matching_is_chosen():
    counts = [5, 0, 9, 5, 1, 9, 40]
    ready = Matchings(bias=0).calibrate(7, Fraction(0), pg.Epsilon(1), 3.0)
    pairs = [[3.0 + abs(a - b) for b in counts] for a in counts]
    least = oracle.first_cheapest(pairs, [3.0] * 7)[0]
    found = chosen(ready, counts, pg.SeededRng(1))
    assert sum(3.0 + runs.deviation([counts[c] for c in b]) for b in found.buckets()) == least
    assert found.buckets() == ((0, 3), (1, 4), (2, 5), (6,))


def test_rounds_make_larger_buckets():
    counts = [3] * 8 + [90] * 8
    for rounds, size in ((1, 2), (2, 4), (3, 8), (4, 8)):
        ready = Matchings(rounds, bias=0).calibrate(16, Fraction(1), pg.Epsilon(400), 1.0)
        assert set(chosen(ready, counts, pg.SeededRng(rounds)).sizes.tolist()) == {size}


def test_rounds_end_when_few_buckets_find_a_partner_and_leave_their_loss_to_the_counts():
    domain = pg.Domain({"place": 16})
    counts = np.array([*range(0, 8000, 1000), *[70] * 8])
    mechanism = Partitioned(Matchings(rounds=4), share="1/2")
    ready = mechanism.calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(40))
    chooser, whole = ready.chooser, ready.loss.value
    alone, pairs = Partition.singletons(16), Partition([*range(8), 8, 8, 9, 9, 10, 10, 11, 11])
    fours, eight = Partition([*range(8), *[8] * 4, *[9] * 4]), Partition([*range(8), *[8] * 8])
    assert chooser.ends(alone, alone)
    assert not chooser.ends(alone, pairs)
    for history, run in (
        ((alone, alone, alone, alone), 1),
        ((pairs, pairs, pairs, pairs), 2),
        ((pairs, fours, eight, eight), 4),
    ):
        assert chooser.spent(history) == chooser.loss.value * run / 4
        guarded = ready.after(history)
        assert chooser.spent(history) + guarded.cells.loss.value + guarded.buckets.loss.value == whole
    for seed in range(5):
        found = ready.drawn(draw(ready, histogram(ready, counts), pg.SeededRng(seed))[0]).history
        steps = [chooser.ends(*step) for step in itertools.pairwise((alone, *found))]
        run = steps.index(True) + 1 if True in steps else 4
        assert set(found[run - 1 :]) == {found[run - 1]}  # no round is run after the last
        assert chooser.spent(found) == chooser.loss.value * run / 4


def test_absurdly_tall_counts_are_cut():
    ready = Matchings(bias=0).calibrate(4, Fraction(1), pg.Epsilon(50), 1.0)
    counts = [1 << 40, (1 << 40) + 3, 0, 0]
    assert chosen(ready, counts, pg.SeededRng(1)).buckets() == ((0, 1), (2, 3))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: Matchings(rounds=0), "partition.rounds"),
        (lambda: Matchings(rounds=8), "partition.rounds"),
        (lambda: Matchings(rounds=True), "partition.rounds"),
        (lambda: Matchings(bias=-1), "partition.bias"),
        (lambda: Matchings().calibrate(5001, Fraction(1), pg.Epsilon(1), 1.0), "partition.cells"),
    ],
)
def test_what_does_not_fit_is_an_error(make, code):
    with pytest.raises(pg.InputError) as caught:
        make()
    assert caught.value.code == code


def test_one_cell_needs_no_choice():
    assert (
        chosen(Matchings().calibrate(1, Fraction(2), pg.Epsilon(1), 1.0), [5], pg.SeededRng(1)).n_buckets == 1
    )


def test_the_mechanism_on_a_graph_with_cycles():
    domain = pg.Domain({"place": 12})
    policy = pg.Policy(domain, pg.PolicyGraph.full(domain))
    counts = np.array([7, 7, 7, 7, 0, 0, 0, 0, 300, 300, 300, 300])
    mechanism = Partitioned(Matchings(rounds=2, bias=0), share="9/10")
    ready = mechanism.calibrate(pg.queries.identity(domain), policy, pg.Epsilon(20))
    release = ready.run(counts, pg.SeededRng(1))
    labels = np.array(release.record["partition"]["labels"])
    assert labels.max() + 1 <= 6
    assert not set(labels[:8]) & set(labels[8:])  # 300 is never taken for 7 or 0
    assert np.abs(release.values() - counts).max() < 9
    assert any("matched" in line for line in release.sentences)


@pytest.mark.slow
def test_the_partitioner_passes_the_audit_and_a_boast_does_not():
    policy = pg.Policy(pg.Domain({"cell": 4}))
    pairs = [([height, 0, 9, 9], [height + 1, 0, 9, 9]) for height in (1, 2)]
    for spent, passes in ((2, True), (8, False)):
        ready = Matchings(bias=0).calibrate(4, Fraction(1), pg.Epsilon(spent), 2.0)
        source = pg.SeededRng(spent)
        report = audit(
            lambda table, n, words, ready=ready: [
                made.buckets() for made in chosen_many(ready, table, n, words)
            ],
            policy,
            epsilon=2,
            samples=1200,
            pairs=pairs,
            batch=True,
            source=source,
        )
        assert report.passed == passes, str(report)
