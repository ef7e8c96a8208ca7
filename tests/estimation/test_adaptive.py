"""Adaptive histograms: the mean over segmentations against its literal sum, the weights, and what is kept on every graph."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.distributions.noise import gaussian_noise, laplace_noise
from policygraph.distributions.replay import Replay
from policygraph.estimation._compiled_segments import heavy_paths, joined, met, segment_means
from policygraph.estimation.adaptive import (
    ROUNDS,
    SIMULATED,
    adaptive,
    best_mixture,
    candidates_of,
    guarded,
    over_blocks,
    penalties,
    settled,
    tamed,
)
from policygraph.estimation.buckets import fewest
from policygraph.estimation.histograms import consistent, nearest_lines, projection, rounded
from policygraph.transforms.incidence import GridTransform, LineTransform, transform
from tests.oracles import mixtures
from tests.oracles import runs as nested
from tests.oracles import segments as oracle

LINE = pg.Domain({"x": 300})


def line(domain: pg.Domain = LINE) -> pg.Policy:
    return pg.Policy(domain, pg.PolicyGraph.line(domain, "x"))


def noisy(reduction, cells, noise, name):
    drawn = Replay(name).draws(noise, (reduction.width,))
    drawn[reduction.fixed] = 0
    return np.asarray(cells) + reduction.invert(drawn)


@given(
    st.lists(st.integers(-20, 60), min_size=1, max_size=7),
    st.sampled_from([0.5, 4.0, 50.0]),
    st.sampled_from([0.1, 1.0, 4.0]),
    st.booleans(),
    st.sampled_from([oracle.NOTHING, (0.0, float("nan")), (float("nan"), 50.0), (0.0, 50.0)]),
)
@settings(max_examples=60, deadline=None)
def test_means_are_those_of_all_segmentations(values, variance, penalty, sloped, known):
    given_values = [float(v) for v in values]
    if sloped:  # a slope of 0 but for rounding is no matter: both kinds of pieces are the same then
        slopes = [
            np.polyfit(np.arange(b - a), given_values[a:b], 1)[0]
            for a in range(len(values))
            for b in range(a + 3, len(values) + 1)
        ]
        assume(all(abs(slope) > 1e-6 for slope in slopes))
    fast = segment_means(
        np.array(given_values), variance, np.array([penalty, 2 * penalty]), sloped, 6, 40.0, known
    )
    for row, each in zip(fast, (penalty, 2 * penalty)):
        literal = oracle.segment_means(given_values, variance, each, sloped=sloped, known=known)
        np.testing.assert_allclose(row, literal, rtol=1e-7, atol=1e-6)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=6),
    st.integers(0, 10**6),
    st.sampled_from([0.01, 2.0, 40.0]),
    st.sampled_from([oracle.NOTHING, (0.0, float("nan")), (0.0, 300.0)]),
)
@settings(max_examples=60, deadline=None)
def test_joined_pieces_are_a_least_squares_fit_with_corners(pieces, seed, penalty, known):
    flat = [level or size < 3 for size, level in pieces]
    starts = np.concatenate([[0], np.cumsum([size for size, _ in pieces])])
    # One constant piece that is tied at both ends to two numbers is no fit at all.
    assume(not (all(flat) and known[1] == 300.0))
    values = np.cumsum(np.random.default_rng(seed).integers(0, 30, starts[-1])).astype(float)
    fast = joined(values, starts, np.array(flat), 25.0, penalty, known)
    literal = oracle.joined(values, starts.tolist(), flat, 25.0, penalty, known)
    np.testing.assert_allclose(fast, literal, atol=1e-6)


@given(
    st.lists(st.tuples(st.integers(4, 20), st.integers(0, 60)), min_size=2, max_size=5),
    st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    st.integers(0, 10**6),
    st.sampled_from([0.5, 4.0, 40.0]),
)
@settings(max_examples=60, deadline=None)
def test_ends_move_to_corners_as_residuals_say(pieces, beside, seed, penalty):
    rates = np.repeat([rate for _, rate in pieces], [size for size, _ in pieces])
    values = np.cumsum(rates) + np.random.default_rng(seed).laplace(0, 5, len(rates))
    starts = np.concatenate([[0], np.cumsum([size for size, _ in pieces])])
    starts[1:-1] += beside[: len(pieces) - 1]
    flat = [rate == 0 or width < 3 for (_, rate), width in zip(pieces, np.diff(starts))]
    assume((np.diff(starts) > 0).all())
    fast = met(values, starts, np.array(flat), 50.0, penalty)
    assert fast.tolist() == oracle.met(values, starts.tolist(), flat, 50.0, penalty)


def test_a_corner_beside_an_end_is_no_jump():
    """Sums stay and then rise; the pieces given change eight places late, and a true jump stays where it is."""
    drawn = Replay("corner").draws(laplace_noise(Fraction(1000)), (600,))
    rising = np.maximum(np.arange(600) - 299.0, 0) * 400.0
    starts, flat = np.array([0, 308, 600]), np.array([True, False])
    for jump in (0.0, 30_000.0):
        sums = rising + np.where(np.arange(600) >= 308, jump, 0.0)
        moved = met(sums + drawn, starts, flat, 2e6, 8.0)
        steepest = np.diff(joined(sums + drawn, starts, flat, 2e6, 8.0, oracle.NOTHING)).max()
        if jump:
            assert moved[1] == 308
            assert steepest > jump
        else:
            assert abs(moved[1] - 300) <= 3
            assert steepest < 800


def test_large_noises_are_worth_no_pieces():
    sums = np.zeros(300)
    sums[[100, 200]] = 9000.0, -9000.0
    nearest = np.linspace(0.0, 3000.0, 300)
    reach = np.sqrt(2 * 2e6 * np.log(300))
    kept = tamed(sums, nearest, 2e6)
    assert np.abs(kept - nearest).max() <= reach * (1 + 1e-12)
    near = np.abs(sums - nearest) <= reach
    assert near.sum() == 298
    np.testing.assert_allclose(kept[near], sums[near], atol=1e-9)


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.0, 3.0, 40.0]),
    st.sampled_from([4.0, 6.5, 40.0]),
    st.sampled_from([float("nan"), 0.0]),
)
@settings(max_examples=40, deadline=None)
def test_single_values_beside_two_lines_are_settled(seed, rough, size, top):
    rng = np.random.default_rng(seed)
    values = np.cumsum(20.0 + rng.integers(0, 2, 40) * rough) + rng.laplace(0, 0.5**0.5, 40)
    values[rng.integers(0, 40, 2)] += size
    end = top + values[-1] + 20
    np.testing.assert_allclose(settled(values, 1.0, end), oracle.settled(values, 1.0, end), atol=1e-8)


def test_a_large_noise_in_a_steep_place_is_no_cell_but_a_jump_is():
    noise, reduction = laplace_noise(Fraction(1000)), transform(line())
    steep = np.full(300, 10_000)
    for at in (0, 5, 150, 298):
        given_sums = np.cumsum(steep)
        given_sums[at] += 8_000
        given_cells = np.diff(given_sums, prepend=0)
        made = candidates_of(reduction).made(given_cells, noise.variance)[1]
        assert np.abs(made - steep).max() < 2_000
    jump = np.zeros(300)
    jump[150:] = 8_000.0
    np.testing.assert_array_equal(settled(jump, noise.variance, 8_000.0), jump)


@pytest.mark.parametrize("name", ["line", "lines", "tree", "no graph"])
def test_the_last_candidate_takes_all_cells_as_alike(name):
    reduction = transform(policies()[name])
    cells = np.random.default_rng(4).integers(0, 90, reduction.width)
    made = candidates_of(reduction).made(cells, 1.0)[-1]
    parts = sequences(reduction, name) if name == "lines" else [np.arange(reduction.width)]
    for part in parts:
        np.testing.assert_allclose(made[part], cells[part].mean(), atol=1e-9)


def test_cells_that_are_alike_are_found():
    """What sums rise from and to is known, so that nothing is left to fit."""
    noise, reduction = laplace_noise(Fraction(1000)), transform(line())
    cells = np.full(300, 40)
    for run in range(3):
        made = adaptive(reduction, noisy(reduction, cells, noise, f"alike {run}"), noise).cells
        assert np.mean((made - cells) ** 2) < 1e-3 * noise.variance / 300


@pytest.mark.parametrize("sloped", [True, False])
def test_pruning_leaves_out_next_to_nothing(sloped):
    steps = np.repeat([0.0, 700.0, 720.0, 5000.0], 100) + np.tile(np.linspace(0, 300, 100), 4)
    values = np.cumsum(Replay("pruning").uniform((400,)) * 30) + steps
    pruned, whole = (segment_means(values, 200.0, penalties(400), sloped, 8, drop) for drop in (20.0, 1e6))
    assert np.abs(pruned - whole).max() < 1e-3


def test_long_pieces_need_not_start_anywhere():
    values = np.where(np.arange(2000) < 777, 0.0, 900.0)
    values += Replay("long").draws(laplace_noise(Fraction(10)), (2000,))
    coarse, fine = (segment_means(values, 200.0, penalties(2000), True, bits, 20.0) for bits in (3, 11))
    truth = np.where(np.arange(2000) < 777, 0.0, 900.0)
    errors = [((np.diff(made[0]) - np.diff(truth)) ** 2).sum() for made in (coarse, fine)]
    assert errors[0] < 20 * 200.0
    assert errors[1] < 5 * 200.0


def test_heavy_paths_hold_every_cell_once_and_climb():
    rng = np.random.default_rng(3)
    parent = np.array([-1, *(int(rng.integers(0, k)) for k in range(1, 200))])
    sizes = np.ones(200, dtype=np.int64)
    for v in range(199, 0, -1):
        sizes[parent[v]] += sizes[v]
    laid, starts = heavy_paths(np.arange(200), parent, sizes)
    assert sorted(laid.tolist()) == list(range(200))
    for a, b in itertools.pairwise(starts):
        assert parent[laid[a : b - 1]].tolist() == laid[a + 1 : b].tolist()
    # A path is left at most log2(n) times on the way to the root.
    top = {int(v): int(laid[b - 1]) for a, b in itertools.pairwise(starts) for v in laid[a:b]}
    for v in range(200):
        jumps, at = 0, v
        while (above := parent[top[at]]) >= 0:
            jumps, at = jumps + 1, int(above)
        assert jumps <= 8


def shapes():
    rng = np.random.default_rng(1)
    spikes = np.zeros(300, dtype=np.int64)
    spikes[rng.choice(300, 8, replace=False)] = 5000
    return {
        "spikes": (spikes, 0.6),
        "steps": (np.repeat([0, 40, 5], 100), 0.6),
        "dense": (rng.integers(0, 3000, 300), 1.05),
        "empty": (np.zeros(300, dtype=np.int64), 1.0),
    }


@pytest.mark.parametrize("shape", list(shapes()))
def test_errors_on_every_shape(shape):
    cells, ratio = shapes()[shape]
    noise, reduction = laplace_noise(Fraction(50)), transform(line())
    ours = plain = 0.0
    for run in range(6):
        given_cells = noisy(reduction, cells, noise, f"{shape} {run}")
        ours += ((adaptive(reduction, given_cells, noise).cells - cells) ** 2).sum()
        plain += ((consistent(reduction, given_cells) - cells) ** 2).sum()
    assert ours <= ratio * plain


def test_held_out_sums_judge_candidates_without_bias():
    """Noise that is added and subtracted: the mean of the estimated error is the error, but for a known number."""
    reduction = transform(line(pg.Domain({"x": 12})))
    noise = laplace_noise(Fraction(4))
    truth = np.array([0, 0, 0, 30, 0, 0, 9, 9, 9, 9, 0, 40])
    family = candidates_of(reduction)
    estimated, true, runs = [], [], 400
    for run in range(runs):
        first, second = (noisy(reduction, truth * 0, noise, f"{run} {at}") for at in (1, 2))
        made = family.made(truth + first + second, 2 * noise.variance)
        held = family.measured(made - (truth + first - second))
        estimated.append((held**2).sum(axis=1) - 2 * family.noises * noise.variance)
        true.append((family.measured(made - truth) ** 2).sum(axis=1))
    apart = np.array(estimated) - np.array(true)
    assert (np.abs(apart.mean(axis=0)) < 4 * apart.std(axis=0) / np.sqrt(runs)).all()


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8), st.sampled_from([1e-3, 1.0, 1e6]))
@settings(max_examples=60, deadline=None)
def test_the_best_mixture_is_that_of_all_supports(seed, count, length, size):
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(count, length)) * size * 10.0 ** rng.integers(-2, 3, (count, 1))
    products = errors @ errors.T
    found, literal = best_mixture(products), mixtures.best(products)
    assert (found >= 0).all()
    assert abs(found.sum() - 1) < 1e-12
    scale = np.diag(products).min()
    assert found @ products @ found <= literal @ products @ literal + 1e-6 * scale


def drawing(reduction, noise, given_cells):
    """Draws of the noise of all cells, as the estimate makes them from noisy cells."""
    replay = Replay("adaptive", given_cells)

    def draws():
        drawn = replay.draws(noise, (reduction.width,))
        drawn[reduction.fixed] = 0
        return reduction.invert(drawn)

    return draws


@pytest.mark.parametrize("name", ["line", "lines", "tree", "no graph"])
def test_weights_are_those_of_their_definition(name):
    reduction, noise = transform(policies()[name]), laplace_noise(Fraction(6))
    cells = np.arange(reduction.policy.domain.size) // 9 * 20
    given_cells = noisy(reduction, cells, noise, f"weights {name}")
    family = candidates_of(reduction)
    releases = min(8, SIMULATED // reduction.width)
    literal = mixtures.weights(
        family.made,
        lambda each: family.measured(each[None, :].astype(float))[0],
        family.made(given_cells, noise.variance),
        lambda each: rounded(reduction, each, given_cells),
        given_cells,
        noise.variance,
        family.noises,
        drawing(reduction, noise, given_cells),
        releases // 2,
        ROUNDS,
        releases,
    )
    np.testing.assert_allclose(adaptive(reduction, given_cells, noise).weights, literal, atol=1e-3)


@pytest.mark.parametrize("peak", [0, 3, 60, 900])
def test_weights_on_a_grid_are_those_of_their_definition(peak):
    """Whether smoothing helps everywhere, costs boxes something, or spoils all."""
    reduction, noise = transform(policies()["grid"]), laplace_noise(Fraction(6))
    cells = np.where(np.arange(30) % 7 == 3, peak, 5)
    given_cells = noisy(reduction, cells, noise, f"weights grid {peak}")
    family = candidates_of(reduction)
    releases = min(8, SIMULATED // reduction.width)
    errors = mixtures.on_grids(
        family.made,
        lambda each: family.measured(each[None, :].astype(float))[0],
        lambda each: each.reshape(6, 5).cumsum(axis=0).cumsum(axis=1).reshape(-1),
        family.made(given_cells, noise.variance),
        lambda each: rounded(reduction, each, given_cells),
        given_cells,
        noise.variance,
        drawing(reduction, noise, given_cells),
        releases // 2,
        releases,
    )
    weights = adaptive(reduction, given_cells, noise).weights
    total = sum(each / max(np.diag(each).min(), 1.0) for each in errors)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    assert weights @ errors[-1] @ weights <= errors[-1][0, 0] * (1 + 1e-6)
    assert weights @ total @ weights <= mixtures.guarded(errors) * (1 + 1e-4)


@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([1e-2, 1.0, 1e6]))
@settings(max_examples=25, deadline=None)
def test_guarded_weights_are_the_best_that_keep_the_last_error(seed, count, size):
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(3):
        rows = rng.normal(size=(count, 6)) * 10.0 ** rng.integers(0, 3, (count, 1)) * size + 2
        errors.append(rows @ rows.T)
    weights = guarded(errors)
    total = sum(each / max(np.diag(each).min(), 1.0) for each in errors)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    assert weights @ errors[-1] @ weights <= max(errors[-1][0, 0], 1e-9) * (1 + 1e-6)
    assert weights @ total @ weights <= mixtures.guarded(errors) * (1 + 1e-3)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(1, 12))
@settings(max_examples=50, deadline=None)
def test_blocks_are_averaged_over_all_places_where_they_may_begin(seed, rows, columns, deep, side):
    """On cells that go on as in a mirror, block by block."""
    cells = np.random.default_rng(seed).integers(0, 90, (rows, columns, deep)).astype(float)
    axes = [0, 2] if seed % 2 else [1]
    literal = cells
    for axis in axes:
        wide = min(side, 1 << (cells.shape[axis] - 1).bit_length())
        literal = np.apply_along_axis(lambda each, wide=wide: mirrored_means(each, wide), axis, literal)
    found = over_blocks(cells, axes, side)
    np.testing.assert_allclose(found, literal, atol=1e-9)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=tuple(axes)), cells.sum(axis=tuple(axes)), atol=1e-9)


def mirrored_means(line, side):
    endless = np.concatenate([line, line[::-1]])
    period = len(endless)
    out = np.zeros(len(line))
    for start in range(side):
        for at in range(len(line)):
            low = (at - start) // side * side + start
            out[at] += np.mean([endless[k % period] for k in range(low, low + side)]) / side
    return out


def test_errors_below_one_count_are_none():
    """Candidates that agree on an exact truth leave nothing to weigh, and nothing fails."""
    assert best_mixture(np.zeros((3, 3))).sum() == pytest.approx(1.0)


def policies():
    flat = pg.Domain({"x": 40})
    square = pg.Domain({"x": 6, "y": 5})
    comb = [(k, k + 1) for k in range(19)] + [(k, k + 20) for k in range(20)]
    return {
        "line": line(flat),
        "lines": line(square),
        "tree": pg.Policy(flat, pg.PolicyGraph.from_edges(flat, comb)),
        "no graph": pg.Policy(flat),
        "grid": pg.Policy(square, pg.PolicyGraph.grid(square)),
        "full": pg.Policy(pg.Domain({"x": 5}), pg.PolicyGraph.full(pg.Domain({"x": 5}))),
    }


def sequences(reduction, name):
    """The cells in the order in which they form runs."""
    if name == "tree":
        sizes = reduction.apply(np.ones(reduction.width, dtype=np.int64))
        return [heavy_paths(reduction.order, reduction.parent, sizes)[0].tolist()]
    if name == "lines":
        at = np.arange(reduction.width).reshape(reduction.shape)
        return [at[a, :, b].tolist() for a in range(at.shape[0]) for b in range(at.shape[2])]
    return [list(range(reduction.width))]


def nearest(reduction, cells):
    if not isinstance(reduction, LineTransform):
        return projection(reduction, cells)
    sums = np.moveaxis(np.cumsum(cells.reshape(reduction.shape), axis=1), 1, 2)
    return nearest_lines(sums.reshape(-1, reduction.shape[1]), reduction)


@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 5, 40]),
    st.sampled_from(["line", "lines", "tree", "no graph", "long"]),
)
@settings(max_examples=40, deadline=None)
def test_nested_runs_are_shrunk_as_their_matrices_say(seed, rough, name):
    policy = line() if name == "long" else policies()[name]
    reduction = transform(policy)
    noise = laplace_noise(Fraction(5))
    rng = np.random.default_rng(seed)
    cells = 60 + np.arange(reduction.width) % 4 // 2 * rough + rng.integers(0, rough + 1, reduction.width)
    given_cells = noisy(reduction, cells, noise, f"{name} {seed}")
    fast = candidates_of(reduction).made(given_cells, noise.variance)[-2]
    spread = reduction.matrix().toarray().astype(float)
    spread[:, reduction.fixed] = 0
    covariance = noise.variance * spread @ spread.T
    few = fewest(reduction.width, 6.0)
    literal = nested.shrunk(given_cells, covariance, sequences(reduction, name), few)
    np.testing.assert_allclose(fast, nearest(reduction, literal), atol=1e-5)


def test_smooth_cells_are_found_by_nested_runs():
    cells = (2000 + 1500 * np.sin(np.arange(300) / 40)).astype(np.int64)
    noise, reduction = laplace_noise(Fraction(1000)), transform(line())
    given_cells = noisy(reduction, cells, noise, "smooth")
    errors = ((candidates_of(reduction).made(given_cells, noise.variance) - cells) ** 2).sum(axis=1)
    assert errors[-2] < 0.5 * errors[0]


def test_blocks_of_a_grid_are_averaged_where_noise_hides_their_cells():
    domain = pg.Domain({"x": 32, "y": 32})
    reduction = transform(pg.Policy(domain, pg.PolicyGraph.grid(domain)))
    noise = laplace_noise(Fraction(300))
    rng = np.random.default_rng(2)
    smooth = np.kron(rng.integers(0, 400, (4, 4)), np.ones((8, 8), dtype=np.int64)).reshape(-1)
    rough = np.where(rng.random(1024) < 0.03, 20_000, 0)
    for cells, most in ((smooth, 0.3), (rough, 1.02)):
        given_cells = noisy(reduction, cells, noise, f"blocks {most}")
        made, plain = adaptive(reduction, given_cells, noise), projection(reduction, given_cells)
        assert len(made.weights) == 6
        assert ((made.cells - cells) ** 2).sum() <= most * ((plain - cells) ** 2).sum()


def test_coordinates_of_a_grid_are_the_shortest():
    domain = pg.Domain({"x": 3, "y": 4})
    for totals in ("exact", "noisy"):
        reduction = GridTransform(pg.Policy(domain, pg.PolicyGraph.grid(domain)), totals)
        rows = np.random.default_rng(1).integers(-9, 9, (3, 12)).astype(float)
        if totals == "exact":
            rows[:, -1] -= rows.sum(axis=1)
        matrix = reduction.matrix().toarray().astype(float)
        kept = np.setdiff1d(np.arange(reduction.width), reduction.fixed)
        shortest = (np.linalg.pinv(matrix[:, kept]) @ rows.T).T
        np.testing.assert_allclose(candidates_of(reduction).measured(rows), shortest, atol=1e-9)


@pytest.mark.parametrize("noise", [laplace_noise(Fraction(6)), gaussian_noise(Fraction(50))])
@pytest.mark.parametrize("name", list(policies()))
def test_cells_are_whole_non_negative_and_keep_totals(name, noise):
    policy = policies()[name]
    reduction = transform(policy)
    cells = np.arange(policy.domain.size) % 7 * 3
    given_cells = noisy(reduction, cells, noise, name)
    made = adaptive(reduction, given_cells, noise)
    again = adaptive(reduction, given_cells, noise)
    assert made.cells.dtype == np.int64
    assert (made.cells >= 0).all()
    assert (made.cells == again.cells).all()
    assert abs(made.weights.sum() - 1) < 1e-12
    if len(reduction.fixed):
        before, after = (reduction.apply(each)[reduction.fixed] for each in (given_cells, made.cells))
        if name in ("line", "lines", "tree"):
            assert (before == after).all()
        else:
            assert after.sum() == before.sum()


@pytest.mark.parametrize("total", [-5, 0, 1])
def test_odd_totals_are_no_failure(total):
    reduction = transform(line(pg.Domain({"x": 6})))
    made = adaptive(reduction, [total - 8, 3, 1, 0, 4, 0], laplace_noise(Fraction(3)))
    assert made.cells.sum() == max(total, 0)
    assert (made.cells >= 0).all()
