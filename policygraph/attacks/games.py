"""The non-privacy game and the discriminant of a mechanism (Kifer and Machanavajjhala 2011, Definitions 2.1 and 2.2, Theorem 2.1).

Owns :func:`game`, :func:`discriminant`, :func:`free_lunch_bound` and :class:`Channel`. The data sets are chosen by whoever asks; no true data is involved.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from math import ceil, comb, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.attacks.odds import listed_tables, noisy_numbers
from policygraph.curator.gate import check, histogram, sample
from policygraph.curator.noise import SeededRng
from policygraph.distributions.enclosure import exp_neg
from policygraph.distributions.integers import DiscreteGaussian
from policygraph.distributions.noise import GAUSSIAN, LAPLACE
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_fraction
from policygraph.mechanisms.base import Calibrated
from policygraph.mechanisms.exponential.mechanism import TableNoise
from policygraph.model.grouped import records_of
from policygraph.model.loss import Epsilon

__all__ = ["Channel", "Discriminant", "Game", "channel", "discriminant", "free_lunch_bound", "game"]

Ints = npt.NDArray[np.int64]
BITS = 128
MOST_OUTPUTS = 200_000
"""Most outputs that are listed."""
MOST_SEARCHED = 20_000
"""Most choices of data sets times ways to share outputs that are tried for an exact discriminant."""
MOST_SHARED = 400_000
"""Most choices of data sets times outputs for which the best shares are computed by linear programs."""
MOST_LISTED = 400
"""Most outputs of a noisy number beyond all answers that are shared one by one."""
MOST_RUNS = 10_000_000


@dataclass(frozen=True, eq=False)
class Channel:
    """Probabilities of all outputs of a mechanism on some tables, enclosed by integers times 2**128.

    Attributes
    ----------
    tables
        The tables, one in each row.
    outputs
        The outputs: answers as tuples, or a noisy number; ``"below"`` and ``"above"`` for all numbers beyond those listed.
    lows, highs
        For each table the two ends for each output.
    """

    tables: Ints
    outputs: tuple[Hashable, ...]
    lows: tuple[tuple[int, ...], ...] = field(repr=False)
    highs: tuple[tuple[int, ...], ...] = field(repr=False)

    @property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """The probabilities, tables by outputs, to the precision of a float."""
        both = zip(self.lows, self.highs, strict=True)
        return np.array([[(a + b) / 2 ** (BITS + 1) for a, b in zip(*ends, strict=True)] for ends in both])


def channel(ready: Calibrated, tables: Any = None) -> Channel:
    """List the output probabilities of a mechanism on some tables.

    Parameters
    ----------
    ready
        The exponential mechanism over tables, or independent discrete noise where only one measured number differs between the tables.
    tables
        The tables; all tables of the exponential mechanism by default.

    Raises
    ------
    InputError
        For other mechanisms, or tables that they cannot run on.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"answer": ["no", "yes"]})
    >>> one = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Total(equals=1)])
    >>> response = pg.Exponential().calibrate(pg.queries.identity(domain), one, pg.Epsilon(1))
    >>> channel(response).probabilities.round(4).tolist()
    [[0.7311, 0.2689], [0.2689, 0.7311]]
    """
    return _channel(ready, tables)


def _channel(ready: Calibrated, tables: Any, *, beyond: int = 0) -> Channel:
    """A channel that lists so many outputs of a noisy number beyond all answers, too."""
    if isinstance(ready, TableNoise):
        return _of_tables(ready, tables)
    query, noise = noisy_numbers(ready), ready.noise
    if tables is None:
        raise InputError("no tables: expected those whose outputs are compared.", code="attacks.tables")
    listed = listed_tables(ready, tables)
    answers = np.stack([np.asarray(query.answer(table), dtype=np.int64) for table in listed])
    moved = np.flatnonzero(np.any(answers != answers[0], axis=0))
    if len(moved) > 1:
        raise InputError(
            f"{len(moved)} measured numbers differ between the tables: expected one, so that outputs can be listed. game(..., runs=...) plays by simulation.",
            code="attacks.tables",
        )
    values = answers[:, moved[0]] if len(moved) else answers[:, 0]
    return _of_number(listed, [int(x) for x in values], noise.distribution, noise.parameter, beyond)


def _of_tables(ready: TableNoise, tables: Any) -> Channel:
    every = ready.graph.tables
    listed = every if tables is None else listed_tables(ready, tables)
    places = [ready.places.get(np.ascontiguousarray(table).tobytes()) for table in listed]
    if any(place is None for place in places):
        raise InputError(
            "a table does not have the published values of the mechanism.", code="attacks.tables"
        )
    names = [tuple(row) for row in ready.answers.tolist()]
    outputs = tuple(dict.fromkeys(names))
    at = {name: place for place, name in enumerate(outputs)}
    lows, highs = [], []
    for place in places:
        far = ready.graph.distances[place].tolist()
        ends = {d: exp_neg(ready.rate * d, BITS) for d in set(far)}
        total_low, total_high = sum(ends[d][0] for d in far), sum(ends[d][1] for d in far)
        low, high = [0] * len(outputs), [0] * len(outputs)
        for name, d in zip(names, far, strict=True):
            low[at[name]] += ends[d][0]
            high[at[name]] += ends[d][1]
        lows.append(tuple((x << BITS) // total_high for x in low))
        highs.append(tuple(min(1 << BITS, -(-(x << BITS) // total_low)) for x in high))
    return Channel(np.asarray(listed), outputs, tuple(lows), tuple(highs))


def _of_number(
    tables: Ints, values: list[int], distribution: str, parameter: Fraction, beyond: int
) -> Channel:
    """Noise on one number. Beyond all values the odds of Laplace noise stay the same, so that the tails are one output each."""
    first, last = min(values), max(values)
    if distribution == LAPLACE:
        first, last = first - beyond, last + beyond
    else:
        extra = DiscreteGaussian(1 / (2 * parameter)).reach(BITS, BITS)
        first, last = first - extra, last + extra
    if last - first > MOST_OUTPUTS:
        raise RefusedError(
            f"{last - first:,} outputs: expected at most {MOST_OUTPUTS:,}. Choose tables that are closer, or play by simulation.",
            code="attacks.size",
        )
    outputs: tuple[Hashable, ...] = ("below", *range(first, last + 1), "above")
    weights = _weights(distribution, parameter, last - first + 1)
    lows, highs = [], []
    for value in values:
        row = [weights[0][abs(o - value)] for o in range(first, last + 1)]
        below, above = (
            _beyond(distribution, parameter, value - first + 1),
            _beyond(distribution, parameter, last - value + 1),
        )
        lows.append((below[0], *(low for low, _ in row), above[0]))
        highs.append((below[1], *(high for _, high in row), above[1]))
    return Channel(tables, outputs, tuple(lows), tuple(highs))


def _weights(distribution: str, parameter: Fraction, count: int) -> tuple[list[tuple[int, int]]]:
    """Enclose P(Z = d) for d < count."""
    one = 1 << BITS
    if distribution == LAPLACE:
        q_low, q_high = exp_neg(1 / parameter, BITS)
        made = []
        for d in range(count):
            low, high = exp_neg(d / parameter, BITS)
            made.append((low * (one - q_high) // (one + q_high), -(-high * (one - q_low) // (one + q_low))))
        return (made,)
    total_low, total_high = _gaussian_total(parameter)
    rate = 1 / (2 * parameter)
    ends = [exp_neg(rate * d * d, BITS) for d in range(count)]
    return ([((low << BITS) // total_high, -(-(high << BITS) // total_low)) for low, high in ends],)


def _gaussian_total(parameter: Fraction) -> tuple[int, int]:
    from policygraph.distributions.enclosure import gaussian_weights

    rate = 1 / (2 * parameter)
    made = gaussian_weights(rate, DiscreteGaussian(rate).reach(BITS, BITS) + 1, BITS)
    return (
        2 * (sum(made.lows) + made.tail_low) - made.lows[0],
        2 * (sum(made.highs) + made.tail_high) - made.highs[0],
    )


def _beyond(distribution: str, parameter: Fraction, start: int) -> tuple[int, int]:
    """Enclose P(Z >= start) for start >= 1."""
    if distribution == LAPLACE:
        q_low, q_high = exp_neg(1 / parameter, BITS)
        low, high = exp_neg(start / parameter, BITS)
        return (low << BITS) // ((1 << BITS) + q_high), -(-(high << BITS) // ((1 << BITS) + q_low))
    total_low, total_high = _gaussian_total(parameter)
    rate = 1 / (2 * parameter)
    far = max(start, DiscreteGaussian(rate).reach(BITS, BITS)) + 1
    ends = [exp_neg(rate * d * d, BITS) for d in range(start, far)]
    # beyond `far` each weight is below 2**-BITS, and their sum below a geometric series of ratio exp(-rate)
    ratio = exp_neg(rate, BITS)[1]
    tail = exp_neg(rate * far * far, BITS)[1] * (1 << BITS) // max(1, (1 << BITS) - ratio) + 1
    low, high = sum(a for a, _ in ends), sum(b for _, b in ends) + tail
    return (low << BITS) // total_high, -(-(high << BITS) // total_low)


@dataclass(frozen=True)
class Game:
    """The non-privacy game: how often somebody guesses a secret right who sees the release.

    Attributes
    ----------
    blind
        Probability of the best guess without the release.
    win
        Fractions that enclose the probability of the best guess with it; None where outputs could not be listed.
    simulated
        Share of games won by simulation, of ``runs``; None without runs.
    runs
        Games played.
    """

    blind: Fraction
    win: tuple[Fraction, Fraction] | None
    simulated: float | None = None
    runs: int = 0

    @property
    def error(self) -> float | None:
        """Standard error of the simulated share."""
        return (
            None
            if self.simulated is None
            else sqrt(max(self.simulated * (1 - self.simulated), 1 / self.runs) / self.runs)
        )

    def __str__(self) -> str:
        parts = [f"without the release {float(self.blind):.4g}"]
        if self.win is not None:
            parts.append(f"with it {float(self.win[0]):.6g}, exact")
        if self.simulated is not None:
            parts.append(f"{self.simulated:.4g} ± {2 * (self.error or 0):.2g} in {self.runs:,} games")
        return "the attacker wins with probability " + "; ".join(parts)


def game(
    ready: Calibrated,
    tables: Any,
    secret: Sequence[Hashable] | Callable[[Ints], Hashable],
    prior: Sequence[Exact] | None = None,
    *,
    runs: int = 0,
    seed: int | str = 0,
) -> Game:
    """Play the non-privacy game (Definition 2.2): data are drawn, released, and the attacker guesses a secret of them.

    Parameters
    ----------
    ready
        The mechanism.
    tables
        Data sets that the data-generating mechanism can make.
    secret
        The secret of each, as a list, or a function of a table.
    prior
        Probability of each, in proportion; None for the same.
    runs
        Games to be played by simulation besides, with the library's own noise; seeded.

    Returns
    -------
    Game
        The exact winning probability of the best attacker where outputs can be listed (:func:`channel`), and the simulated one.

    Examples
    --------
    Bob's attribute decides how many patients there are, and 0.1-differential privacy does not hide it (Section 2.1.3 of the paper):

    >>> import policygraph as pg
    >>> domain = pg.Domain({"patient": ["no", "yes"]})
    >>> patients = pg.queries.matrix(domain, [[0, 1]])
    >>> ready = pg.Laplace().calibrate(patients, pg.Policy(domain), pg.Epsilon("0.1"))
    >>> played = game(ready, [[0, 100 * j] for j in range(3)], [0, 1, 2], runs=1000)
    >>> played.blind, round(float(played.win[0]), 4)
    (Fraction(1, 3), 0.9955)
    >>> abs(played.simulated - float(played.win[0])) < 4 * played.error
    True
    """
    listed = listed_tables(ready, tables)
    secrets = [secret(table) for table in listed] if callable(secret) else list(secret)
    weights = [Fraction(1)] * len(listed) if prior is None else [as_fraction(p, "prior") for p in prior]
    if len(weights) != len(listed) or len(secrets) != len(listed) or min(weights) < 0 or not any(weights):
        raise InputError(
            f"{len(secrets)} secrets and {len(weights)} prior probabilities for {len(listed)} tables: expected one of each, and not only zeros.",
            code="attacks.prior",
        )
    if isinstance(runs, bool) or not isinstance(runs, int) or not 0 <= runs <= MOST_RUNS:
        raise InputError(
            f"runs={runs!r}: expected a whole number from 0 to {MOST_RUNS:,}.", code="attacks.runs"
        )
    share = [weight / sum(weights) for weight in weights]
    kinds = list(dict.fromkeys(secrets))
    groups = [[at for at, mine in enumerate(secrets) if mine == kind] for kind in kinds]
    blind = max(sum((share[at] for at in group), Fraction(0)) for group in groups)
    win = None
    if not isinstance(ready, TableNoise):
        noisy_numbers(ready)
    try:
        told = channel(ready, listed)
    except (InputError, RefusedError):
        if not runs:
            raise
        told = None
    if told is not None:
        ends = []
        for side in (told.lows, told.highs):
            scores = [
                max(sum((share[at] * side[at][o] for at in group), Fraction(0)) for group in groups)
                for o in range(len(told.outputs))
            ]
            ends.append(sum(scores, Fraction(0)) / (1 << BITS))
        win = (ends[0], min(Fraction(1), ends[1]))
    if not runs:
        return Game(blind, win)
    return Game(blind, win, _played(ready, listed, share, groups, runs, seed), runs)


def _played(
    ready: Calibrated,
    tables: Ints,
    share: list[Fraction],
    groups: list[list[int]],
    runs: int,
    seed: int | str,
) -> float:
    """Share of simulated games that the attacker with the largest posterior wins."""
    chances = np.array([float(p) for p in share])
    drawn = np.random.default_rng(_number(seed)).multinomial(runs, chances / chances.sum())
    rng = SeededRng(f"game {seed}")
    group_of = np.zeros(len(tables), dtype=np.int64)
    for place, group in enumerate(groups):
        group_of[group] = place
    won = 0
    for at, count in enumerate(drawn.tolist()):
        if not count:
            continue
        counts = histogram(ready, tables[at])
        check(ready, counts)
        outputs = np.asarray(sample(ready, counts, rng, count))
        beliefs = chances[:, None] * _likelihoods(ready, tables, outputs)
        scores = np.stack([beliefs[group].sum(axis=0) for group in groups])
        won += int(np.count_nonzero(scores.argmax(axis=0) == group_of[at]))
    return won / runs


def _number(seed: int | str) -> int:
    return int.from_bytes(str(seed).encode(), "little") % (1 << 63)


def _likelihoods(ready: Calibrated, tables: Ints, outputs: Any) -> Any:
    """Likelihood of each table for each output, up to a factor for each output; floats."""
    if isinstance(ready, TableNoise):
        told = channel(ready, tables)
        place = {name: at for at, name in enumerate(told.outputs)}
        return told.probabilities[:, [place[tuple(row)] for row in np.asarray(outputs).tolist()]]
    query, noise = noisy_numbers(ready), ready.noise
    off = np.stack([outputs - np.asarray(query.answer(table), dtype=np.int64) for table in tables]).astype(
        np.float64
    )
    size = float(noise.parameter)
    powers = (
        np.abs(off).sum(axis=2) / size
        if noise.distribution == LAPLACE
        else np.square(off).sum(axis=2) / (2 * size)
    )
    return np.exp(powers.min(axis=0) - powers)


def free_lunch_bound(epsilon: Exact, k: int) -> tuple[Fraction, Fraction]:
    """Enclose e^epsilon / (k - 1 + e^epsilon), the largest discriminant of k data sets that lose at most epsilon pairwise.

    Examples
    --------
    >>> low, high = free_lunch_bound(1, 2)
    >>> round(float(low), 6), high - low < Fraction(1, 2**100)
    (0.731059, True)

    Notes
    -----
    For disjoint sets S_i and P(A(D_i) in S_i) >= c for all i: 1 >= P(A(D_1) in S_1) + sum of P(A(D_1) in S_i) >= c + (k - 1) c e^-epsilon.
    """
    level = as_fraction(epsilon, "epsilon")
    if level < 0 or isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(
            f"epsilon={epsilon!r}, k={k!r}: expected epsilon >= 0 and a whole k >= 1.", code="attacks.k"
        )
    low, high = exp_neg(level, BITS)
    one = 1 << BITS
    return Fraction(one, one + (k - 1) * high), Fraction(one, one + (k - 1) * low)


@dataclass(frozen=True, eq=False)
class Discriminant:
    """How well a mechanism can tell k data sets apart (Definition 2.1), with data sets and sets of outputs that show it.

    Attributes
    ----------
    k
        Number of data sets.
    lower
        What the data sets and sets of outputs below attain.
    upper
        A proved bound for all choices, among data sets of that many records.
    tables
        The k data sets.
    sets
        Disjoint sets of outputs, one for each.
    how
        Why, in words.
    """

    k: int
    lower: Fraction
    upper: Fraction
    tables: Ints
    sets: tuple[tuple[Hashable, ...], ...] = field(repr=False)
    how: str

    @property
    def exact(self) -> bool:
        """Whether both bounds are the same, to the width of the enclosures."""
        return self.upper - self.lower < Fraction(1, 1 << 100)

    def __str__(self) -> str:
        sign = "=" if self.exact else ">="
        rest = "" if self.exact else f" and <= {float(self.upper):.6g}"
        return f"discriminant({self.k}) {sign} {float(self.lower):.6g}{rest}: {self.how}"


def discriminant(
    ready: Calibrated, k: int, *, records: int | None = None, tables: Any = None
) -> Discriminant:
    """The discriminant of a mechanism (Definition 2.1): the largest c such that k data sets have disjoint sets of outputs of probability c each.

    Parameters
    ----------
    ready
        The exponential mechanism over tables, or independent discrete Laplace or Gaussian noise.
    k
        Number of data sets, at least 2.
    records
        For additive noise: data sets of so many records.
    tables
        Data sets to choose from; all tables of the exponential mechanism, or for additive noise records that move from the first cell to another one.

    Returns
    -------
    Discriminant
        Exact for few tables and listed outputs; otherwise a lower bound with its data sets and an upper bound.

    Examples
    --------
    The Laplace mechanism tells data sets apart as well as one likes, if there are records enough (Proposition 2.1 of the paper):

    >>> import policygraph as pg
    >>> domain = pg.Domain({"patient": ["no", "yes"]})
    >>> ready = pg.Laplace().calibrate(pg.queries.identity(domain), pg.Policy(domain), pg.Epsilon(1))
    >>> [round(float(discriminant(ready, 3, records=n).lower), 4) for n in (4, 20, 100)]
    [0.4621, 0.9901, 1.0]

    Free-lunch privacy has a small one, whatever the data: e^epsilon / (k - 1 + e^epsilon) for all k tables:

    >>> two = pg.Policy(domain, pg.PolicyGraph.full(domain), [pg.Total(equals=2)])
    >>> lunch = pg.FreeLunch().calibrate(pg.queries.identity(domain), two, pg.Epsilon(1))
    >>> found = discriminant(lunch, 3)
    >>> found.exact, round(float(found.lower), 4), round(float(free_lunch_bound(1, 3)[0]), 4)
    (True, 0.5761, 0.5761)
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 2:
        raise InputError(f"k={k!r}: expected a whole number >= 2.", code="attacks.k", value=k)
    if isinstance(ready, TableNoise):
        return _listed(channel(ready, tables), k)
    if tables is not None:
        noisy_numbers(ready)  # refuses other mechanisms
        reach = min(MOST_LISTED, ceil(6 * ready.noise.parameter))
        return _listed(_channel(ready, tables, beyond=reach), k, ready.noise.distribution)
    return _spaced(ready, k, records)


def _listed(told: Channel, k: int, distribution: str = "") -> Discriminant:
    """Over listed tables and outputs, the last ones being the tails of a noise where one is named: all choices while they are few, otherwise shares by linear programs, or the likeliest table for each output.

    Notes
    -----
    For any weights w_i >= 0 of sum 1 the discriminant of k data sets is at most the sum over the outputs of max_i w_i P_i(output): the smallest of k numbers is at most their mean with these
    weights, and each output is in one set only. It is what wins the game with this prior. The program's dual solution has the best weights; whatever they are, the bound holds. The tails of
    a noisy number stand for many outputs, which can be shared: to try all ways with the tail in one piece would bound nothing. All outputs in a tail of Laplace noise have the same
    odds, so that the largest term is the same for all; in a tail of Gaussian noise, which has next to no weight, it is at most the sum of all terms.
    """
    n, outputs = len(told.tables), len(told.outputs)
    if n < k:
        raise InputError(f"{n} tables: expected at least k = {k}.", code="attacks.k", value=k)
    upper = _pairwise(told, k)
    best: tuple[int, tuple[int, ...], tuple[int, ...]] = (-1, (), ())
    largest = 0
    few = (
        not distribution and comb(n, k) * (k**outputs if outputs < 40 else MOST_SEARCHED + 1) <= MOST_SEARCHED
    )
    every = comb(n, k) <= MOST_SEARCHED
    choices = list(combinations(range(n), k)) if every else [_far_apart(told, k)]
    programs = not few and len(choices) * outputs * k <= MOST_SHARED
    bounds: list[Fraction] = []
    for chosen in choices:
        shares = _shares(told, chosen, whole=few)
        if programs:
            owners, bound = _best_shares(told, chosen, distribution)
            shares = [*shares, owners]
            bounds.append(bound)
        for owners in shares:
            worst = min(
                sum(told.lows[table][o] for o in range(outputs) if owners[o] == at)
                for at, table in enumerate(chosen)
            )
            if worst > best[0]:
                best = (worst, chosen, owners)
            if few:
                largest = max(
                    largest,
                    min(
                        sum(told.highs[t][o] for o in range(outputs) if owners[o] == at)
                        for at, t in enumerate(chosen)
                    ),
                )
    lower = Fraction(best[0], 1 << BITS)
    how = "the likeliest table for each output; a lower bound, with the bound of pairwise losses above"
    if programs and every:
        upper = min(upper, max(bounds))
        how = "all choices of data sets were tried, and outputs shared by a linear program, whose dual solution bounds them"
    if few:
        upper, how = (
            min(upper, Fraction(largest, 1 << BITS)),
            "all choices of data sets and all ways to share the outputs were tried",
        )
    elif not programs and upper - lower < Fraction(1, 1 << 100):
        how = "the likeliest table for each output attains the bound of pairwise losses"
    sets = tuple(
        tuple(o for o, owner in zip(told.outputs, best[2], strict=True) if owner == at) for at in range(k)
    )
    return Discriminant(k, lower, upper, told.tables[list(best[1])], sets, how)


def _shares(told: Channel, chosen: tuple[int, ...], *, whole: bool) -> Any:
    """Ways to share the outputs among the chosen tables: all of them, or the one by likelihood, ties to who has least."""
    outputs, k = len(told.outputs), len(chosen)
    if whole:
        for code in range(k**outputs):
            yield tuple(code // k**o % k for o in range(outputs))
        return
    owners, held = [0] * outputs, [0] * k
    order = sorted(range(outputs), key=lambda o: -max(told.lows[table][o] for table in chosen))
    for o in order:
        most = max(told.lows[table][o] for table in chosen)
        tied = [at for at, table in enumerate(chosen) if told.lows[table][o] == most]
        owners[o] = min(tied, key=lambda at: held[at])
        held[owners[o]] += told.lows[chosen[owners[o]]][o]
    yield tuple(owners)


def _best_shares(
    told: Channel, chosen: tuple[int, ...], distribution: str
) -> tuple[tuple[int, ...], Fraction]:
    """Who gets which output by a linear program, outputs that it divides going to who holds most of them, and the least given more where that helps; and a bound for all ways, by its dual solution."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    p = told.probabilities[list(chosen)]
    k, outputs = p.shape
    # Variable i * outputs + o is the share of output o that data set i gets; the last one is the smallest sum, which is made large.
    count = k * outputs
    at, one = np.arange(count), np.ones(count)
    rows = np.concatenate([at // outputs, np.arange(k)]), np.concatenate([at, np.full(k, count)])
    sums: Any = csr_array((np.concatenate([-p.reshape(-1), np.ones(k)]), rows), shape=(k, count + 1))
    once: Any = csr_array((one, (at % outputs, at)), shape=(outputs, count + 1))
    solved: Any = linprog(
        np.concatenate([np.zeros(count), [-1.0]]),
        A_ub=sums,
        b_ub=np.zeros(k),
        A_eq=once,
        b_eq=np.ones(outputs),
        method="highs-ds",
    )
    # Where the program fails, the likeliest data set gets an output, and all weigh the same.
    done = solved.status == 0
    owners = _moved(p, (solved.x[:-1].reshape(k, outputs) if done else p).argmax(axis=0))
    duals = np.maximum(-solved.ineqlin.marginals, 0.0) if done else np.ones(k)
    tried = [[Fraction(1)] * k, [Fraction(float(w)) for w in duals]]
    tried.append([Fraction(float(w)).limit_denominator(1000) for w in duals])
    return owners, min(
        _weighted(told, chosen, [w / sum(weights) for w in weights], distribution)
        for weights in tried
        if any(weights)
    )


def _moved(p: npt.NDArray[np.float64], owners: Any) -> tuple[int, ...]:
    """Give the data set that holds least an output of another one as long as the smallest sum grows."""
    k, outputs = p.shape
    held = np.array([p[at, owners == at].sum() for at in range(k)])
    for _ in range(4 * outputs):
        least = int(held.argmin())
        after = np.minimum(held[least] + p[least], held[owners] - p[owners, np.arange(outputs)])
        after[owners == least] = -1.0
        best = int(after.argmax())
        if after[best] <= held[least]:
            break
        held[owners[best]] -= p[owners[best], best]
        held[least] += p[least, best]
        owners[best] = least
    return tuple(owners.tolist())


def _weighted(told: Channel, chosen: tuple[int, ...], weights: list[Fraction], distribution: str) -> Fraction:
    """Sum over the outputs of the largest weighted probability; of a tail of Gaussian noise the sum of all, because the odds change in it."""
    total = Fraction(0)
    for o, output in enumerate(told.outputs):
        each = [w * told.highs[table][o] for w, table in zip(weights, chosen, strict=True)]
        tail = distribution == GAUSSIAN and output in ("below", "above")
        total += sum(each) if tail else max(each)
    return min(Fraction(1), total / (1 << BITS))


def _far_apart(told: Channel, k: int) -> tuple[int, ...]:
    """Tables that are far apart in total variation, one after the other."""
    p = told.probabilities
    chosen = [0]
    while len(chosen) < k:
        apart = np.min([np.abs(p - p[at]).sum(axis=1) for at in chosen], axis=0)
        apart[chosen] = -1
        chosen.append(int(np.argmax(apart)))
    return tuple(sorted(chosen))


def _pairwise(told: Channel, k: int) -> Fraction:
    """Bound by the largest ratio R of probabilities between two of the tables: R / (k - 1 + R)."""
    ratio = Fraction(1)
    p, q = np.array(told.highs, dtype=object), np.array(told.lows, dtype=object)
    for o in range(len(told.outputs)):
        if min(q[:, o]) == 0:
            return Fraction(1)
        ratio = max(ratio, Fraction(int(max(p[:, o])), int(min(q[:, o]))))
    return ratio / (k - 1 + ratio)


def _spaced(ready: Calibrated, k: int, records: int | None) -> Discriminant:
    """Additive noise: records move from the first cell to another one in k equal steps, and one noisy number tells how many did."""
    query, noise = noisy_numbers(ready), ready.noise
    if isinstance(records, bool) or not isinstance(records, int) or records < k - 1:
        raise InputError(
            f"records={records!r}: expected a whole number of at least k - 1 = {k - 1} records, so that k data sets can differ.",
            code="attacks.k",
            value=records,
        )
    size = ready.policy.domain.size
    if size < 2 or records_of(ready.policy).constraints:
        raise InputError(
            "records that move between cells: expected two cells at least and no public facts. Give the tables to choose from.",
            code="attacks.tables",
        )
    others = np.arange(1, min(size, 1000), dtype=np.int64)
    change = np.asarray(query.columns(others).toarray(), dtype=np.int64) - np.asarray(
        query.columns(np.array([0])).toarray(), dtype=np.int64
    )
    row, column = np.unravel_index(int(np.argmax(np.abs(change))), change.shape)
    unit = abs(int(change[row, column]))
    gap = records // (k - 1)
    half = (gap * unit - 1) // 2
    if half < 0:
        return Discriminant(
            k,
            Fraction(1, k),
            Fraction(1),
            np.zeros((0, size), dtype=np.int64),
            (),
            "no measured number changes",
        )
    far = _beyond(noise.distribution, noise.parameter, half + 1)
    lower = 1 - Fraction((2 if k > 2 else 1) * far[1], 1 << BITS)
    tables = np.zeros((k, size), dtype=np.int64)
    moved = gap * np.arange(k)
    tables[:, 0], tables[:, int(others[column])] = records - moved, moved
    centre = [int(np.asarray(query.answer(table))[row]) for table in tables]
    order = np.argsort(centre).tolist()
    ends = {order[0]: f"at most {centre[order[0]] + half}", order[-1]: f"at least {centre[order[-1]] - half}"}
    sets = tuple((ends.get(at, f"{c - half} to {c + half}"),) for at, c in enumerate(centre))
    upper = Fraction(1)
    if noise.distribution == LAPLACE and not ready.exact:
        most = 2 * records * int(query.column_norms(np.arange(min(size, MOST_OUTPUTS)), "l1").max())
        if size <= MOST_OUTPUTS and most / noise.parameter < 80:
            upper = free_lunch_bound(Fraction(most) / noise.parameter, k)[1]
    how = f"{k} data sets of {records:,} records, {gap:,} records apart, and intervals of one noisy number around their answers; a lower bound, which tends to 1 with the number of records"
    return Discriminant(k, max(lower, Fraction(0)), max(upper, lower), tables, sets, how)


def group_epsilon(epsilon: Exact, size: int) -> Epsilon:
    """The loss for single records at which groups of records that change together are hidden with a loss of epsilon.

    Examples
    --------
    A family of ten that falls ill together is hidden by ten times the noise:

    >>> group_epsilon(1, 10).value
    Fraction(1, 10)

    Notes
    -----
    A change of g records is a path of g neighbour steps, and losses add along it.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(f"size={size!r}: expected a whole number >= 1.", code="attacks.k", value=size)
    return Epsilon(Epsilon(epsilon).value / size)
