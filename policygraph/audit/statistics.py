"""What an audit looks at in an output. Owns :class:`Statistic`, the families of them, and :func:`learnt_score`.

A statistic turns each output into one number or code; :mod:`.events` makes events of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.audit.draws import Ints, Outputs
from policygraph.errors import InputError

Values = npt.NDArray[Any]
Statistics = Mapping[str, Callable[[Any], Any]]

SINGLE = 8
"""Coordinates that are looked at one by one."""
MEMBERS = 12
"""Members of set-like outputs that are looked at one by one, each way."""
LONGEST = 60
"""Characters of an output that are shown."""
LEARNERS = 200
"""Outputs of each table from which on a score is learnt."""
NO_NUMBER = -1e308
"""Stands for a value that is not a number, which would equal nothing, not even itself."""
ZERO_BIT = 4096
"""Stands for the lowest bit of zero, which has none."""


def shown(value: Any) -> str:
    """Print a number as short as it goes, never rounded.

    Examples
    --------
    >>> shown(2.0), shown(0.1), shown(True)
    ('2', '0.1', '1')
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


@dataclass(frozen=True, eq=False)
class Statistic:
    """One number or code for each output.

    Attributes
    ----------
    words
        What it is, as the subject of a sentence.
    compute
        From outputs to a vector of values.
    ordered
        Whether "at least" and "at most" mean something.
    show
        A value in words.
    plain
        Whether a reader can check it by eye; such a statistic is preferred to another that shows little more.
    """

    words: str
    compute: Callable[[Outputs], Values]
    ordered: bool = True
    show: Callable[[Any], str] = shown
    plain: bool = True

    def __call__(self, outputs: Outputs) -> Values:
        """Compute the values, those that are no number replaced by one that can be compared."""
        values = self.compute(outputs)
        return np.where(np.isnan(values), NO_NUMBER, values) if values.dtype.kind == "f" else values


@dataclass(frozen=True, eq=False)
class Scene:
    """What is known about a pair of tables before any output is drawn.

    Attributes
    ----------
    before, after
        True answers of the watched coordinates on both tables, when the query is known.
    facts
        Rows of the public facts over the outputs, when an output has one number for each cell.
    extra
        Statistics of the user by name.
    """

    before: Ints | None
    after: Ints | None
    facts: Ints | None
    extra: Statistics


def statistics(scene: Scene, first: Outputs, second: Outputs) -> Iterator[Statistic]:
    """Give the statistics worth looking at, judged by outputs that are not used again for testing.

    Parameters
    ----------
    scene
        What is known about the pair.
    first, second
        Some outputs on either table.
    """
    for name, compute in scene.extra.items():
        yield Statistic(name, partial(_user, name, compute))
    if first.array is None or second.array is None or first.array.shape[1] != second.array.shape[1]:
        yield from _of_items(first, second)
    else:
        yield from _of_arrays(scene, first.array, second.array)


def _of_arrays(scene: Scene, first: Values, second: Values) -> Iterator[Statistic]:
    width = first.shape[1]
    known = scene.before is not None and scene.after is not None and len(scene.before) == width
    a = scene.before if known else np.median(first, axis=0)
    b = scene.after if known else np.median(second, axis=0)
    if a is None or b is None:
        return
    moved = np.nan_to_num(np.asarray(b - a))
    sign = np.sign(moved)
    if first.dtype.kind == "f" and not (np.isfinite(first).all() and np.isfinite(second).all()):
        yield Statistic("the number of answers that are finite", _finite)
    if np.count_nonzero(moved) > 1:
        yield Statistic(
            "the sum of the changed answers, each with the sign of its change", partial(_project, sign)
        )
        if np.unique(np.abs(moved[moved != 0])).size > 1:
            yield Statistic("the answers projected on the change", partial(_project, moved))
    if np.any(moved):
        yield Statistic(
            "how much farther the changed answers lie from those of the first table than of the second",
            partial(_farther, a, b),
        )
    score = None
    if width > 1 and len(first) >= LEARNERS:
        # The second half of these outputs rates the events, and must not be what the score was fitted to.
        score = learnt_score(first[: len(first) // 2], second[: len(second) // 2], a, b)
    if score is not None:
        yield Statistic("a score of the answers, learnt from other outputs,", score, plain=False)
    yield Statistic("the distance from the first table's answers", partial(_distance, a))
    if width > 1:
        yield Statistic("the sum of all answers", _total)
    floating = first.dtype.kind == "f"
    for at in _interesting(moved, first, second):
        yield Statistic(f"answer {at}", partial(_coordinate, at))
        if floating:
            yield Statistic(f"the exponent of the lowest set bit of answer {at}", partial(_bit, at))
        elif first.dtype.kind != "b":
            yield Statistic(f"answer {at} modulo 8", partial(_residue, at), ordered=False)
    if floating:
        yield Statistic("the least exponent of a lowest set bit", _least_bit)
    else:
        yield Statistic("the parity of the sum of all answers", _parity, ordered=False)
    if scene.facts is not None and scene.facts.shape[1] == width:
        for row, fact in enumerate(scene.facts[:SINGLE]):
            yield Statistic(f"row {row} of the public facts on the answers", partial(_project, fact))


def _interesting(moved: Values, first: Values, second: Values) -> list[int]:
    """Coordinates that change, and those whose outputs differ most in mean or spread."""
    with np.errstate(all="ignore"):
        spread = np.sqrt((first.astype(float).var(axis=0) + second.astype(float).var(axis=0)) / len(first))
        shift = np.abs(first.mean(axis=0) - second.mean(axis=0)) / np.where(spread > 0, spread, 1e-300)
    changed = np.argsort(-np.abs(moved), kind="stable")[: min(SINGLE - 2, int(np.count_nonzero(moved)))]
    rest = [
        int(at) for at in np.argsort(-np.nan_to_num(shift), kind="stable") if at not in set(changed.tolist())
    ]
    return [*changed.tolist(), *rest][:SINGLE]


def lowest_bit(values: Any) -> Ints:
    """Exponent of the lowest set bit of the exact binary expansion of floating-point numbers.

    Examples
    --------
    >>> lowest_bit(np.array([1.0, 0.75, 6.0])).tolist()
    [0, -2, 1]

    Notes
    -----
    A double near 0 has finer bits than the sum of 1 and a double can have: where the sum was rounded, fine bits are
    lost, and their absence or presence tells the answers apart (Mironov 2012).
    """
    with np.errstate(invalid="ignore"):
        fraction, exponent = np.frexp(np.nan_to_num(np.asarray(values, dtype=np.float64)))
    mantissa = np.abs(fraction * 2.0**53).astype(np.int64)
    lowest = (mantissa & -mantissa).astype(np.float64)
    trailing = np.frexp(np.where(mantissa == 0, 1.0, lowest))[1] - 1
    out: Ints = np.where(mantissa == 0, ZERO_BIT, exponent.astype(np.int64) - 53 + trailing)
    return out


def _of_items(first: Outputs, second: Outputs) -> Iterator[Statistic]:
    codes: dict[Hashable, int] = {}
    yield Statistic("the whole output", partial(_code, codes), ordered=False, show=partial(_decode, codes))
    if not all(isinstance(item, (tuple, frozenset)) for item in _items(first)[:8] + _items(second)[:8]):
        return
    yield Statistic(
        "the number of parts of the output", lambda out: np.array([_length(item) for item in _items(out)])
    )
    counts = [Counter(part for item in _items(out) for part in _parts(item)) for out in (first, second)]
    for here, there in (counts, counts[::-1]):
        rank = sorted(here, key=lambda part: there[part] + 3 * there[part] ** 0.5 + 8 - here[part])
        # A part is worth a look when it is frequent here and rare there; both orders of the ratio and the gap count.
        ratio = sorted(here, key=lambda part: (there[part] + 8) / (here[part] + 1))
        for part in dict.fromkeys([*ratio[: MEMBERS // 2], *rank[: MEMBERS // 2]]):
            yield Statistic(f"the number of parts equal to {part!r}", partial(_contains, part))


def _items(out: Outputs) -> list[Hashable]:
    return out.items if out.array is None else [tuple(row) for row in out.array.tolist()]


def _parts(item: Hashable) -> set[Hashable]:
    return set(item) if isinstance(item, (tuple, frozenset)) else set()


def _length(item: Hashable) -> int:
    return len(item) if isinstance(item, (tuple, frozenset)) else -1


def _contains(part: Hashable, out: Outputs) -> Values:
    return np.array([int(isinstance(item, (tuple, frozenset)) and part in item) for item in _items(out)])


def _code(codes: dict[Hashable, int], out: Outputs) -> Values:
    return np.array([codes.setdefault(item, len(codes)) for item in _items(out)])


def _decode(codes: dict[Hashable, int], code: int) -> str:
    words = repr(list(codes)[code])
    return words if len(words) <= LONGEST else words[: LONGEST - 4] + " ..."


def _coordinate(at: int, out: Outputs) -> Values:
    return out.rows[:, at]


def _project(weights: Values, out: Outputs) -> Values:
    return np.asarray(out.rows @ weights)


def _total(out: Outputs) -> Values:
    return np.asarray(out.rows.sum(axis=1))


def _finite(out: Outputs) -> Values:
    return np.asarray(np.isfinite(out.rows).sum(axis=1))


def _parity(out: Outputs) -> Values:
    return _total(out).astype(np.int64) % 2


def _residue(at: int, out: Outputs) -> Values:
    return out.rows[:, at].astype(np.int64) % 8


def _bit(at: int, out: Outputs) -> Values:
    return lowest_bit(out.rows[:, at])


def _least_bit(out: Outputs) -> Values:
    return np.asarray(lowest_bit(out.rows).min(axis=1))


def _farther(a: Values, b: Values, out: Outputs) -> Values:
    use = np.flatnonzero(a != b)
    rows = out.rows[:, use]
    return np.asarray((np.abs(rows - a[use]) - np.abs(rows - b[use])).sum(axis=1))


def _distance(a: Values, out: Outputs) -> Values:
    return np.asarray(np.abs(out.rows - a).sum(axis=1))


def _user(name: str, compute: Callable[[Any], Any], out: Outputs) -> Values:
    values = np.asarray(compute(out.items if out.array is None else out.array))
    if values.shape != (len(out),) or values.dtype.kind not in "biuf":
        raise InputError(
            f"statistic {name!r} gave an array of shape {values.shape} and type {values.dtype}: expected one number "
            f"for each of {len(out)} outputs.",
            code="audit.statistic",
            value=values.shape,
        )
    return values


Floats = npt.NDArray[np.float64]

COLUMNS = 24
"""Answers that the score may use."""
STEPS = 12
"""Steps of Newton's method at most."""
BLOCK = 64
"""Rows multiplied at once: so few that a library for matrices does not start threads, which cost more than they save."""
RIDGE = 1.0
"""How many outputs the belief that a weight is zero counts for."""
FARTHEST = 1e12
"""Outputs beyond this are taken for it: what is no finite number cannot be weighed."""


@dataclass(frozen=True, eq=False)
class Score:
    """A weighted sum of some answers, and of how much nearer each of them lies to one table's answer than to the other's.

    Attributes
    ----------
    columns
        The answers used.
    a, b
        What each of them is, or mostly is, on either table.
    centre, spread
        What is subtracted from the features, and what they are divided by.
    weights
        One for each feature.
    """

    columns: npt.NDArray[np.int64]
    a: Floats
    b: Floats
    centre: Floats
    spread: Floats
    weights: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """Score outputs: the larger, the more they speak for the second table."""
        made = (features(outputs.rows[:, self.columns], self.a, self.b) - self.centre) / self.spread
        # Rounded, so that outputs that are the same to an eye are the same to a threshold.
        score: Floats = np.round(np.einsum("ij,j->i", made, self.weights), 6)
        return score


def features(rows: Values, a: Floats, b: Floats) -> Floats:
    """Each answer, and how much farther it lies from the first table's answer than from the second's.

    Examples
    --------
    >>> features(np.array([[0, 5], [3, 5]]), np.array([1.0, 5.0]), np.array([2.0, 5.0])).tolist()
    [[0.0, 5.0, -1.0], [3.0, 5.0, 1.0]]
    """
    x = np.clip(
        np.nan_to_num(rows.astype(np.float64), posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST
    )
    apart = a != b
    nearer = np.abs(x[:, apart] - a[apart]) - np.abs(x[:, apart] - b[apart])
    return np.concatenate([x, nearer], axis=1)


def learnt_score(first: Values, second: Values, a: Values, b: Values) -> Score | None:
    """Fit a score to outputs that are used neither to rate nor to test an event.

    Parameters
    ----------
    first, second
        Outputs on either table, one in each row.
    a, b
        What each answer is on either table, or the median of its outputs.

    Returns
    -------
    Score or None
        None when no answer varies.

    Notes
    -----
    The best event at any probability is one of a large likelihood ratio. With Gaussian noise, however correlated, the logarithm of
    the ratio is a weighted sum of the answers; with independent Laplace noise, a sum of |x - a| - |x - b|. Both are in the
    span of the features, so that logistic regression tends to the ratio itself; for other distributions it is what comes close.
    """
    both = np.concatenate([first, second])
    columns = _columns(first, second, np.asarray(b - a, dtype=np.float64))
    if not columns.size:
        return None
    at_a, at_b = np.asarray(a, dtype=np.float64)[columns], np.asarray(b, dtype=np.float64)[columns]
    made = features(both[:, columns], at_a, at_b)
    centre, spread = made.mean(axis=0), made.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    which = np.concatenate([np.zeros(len(first)), np.ones(len(second))])
    return Score(columns, at_a, at_b, centre, spread, _regressed((made - centre) / spread, which))


def _columns(first: Values, second: Values, moved: Floats) -> npt.NDArray[np.int64]:
    """The answers that vary: the changed ones first, then those whose means differ most."""
    x, y = first.astype(np.float64), second.astype(np.float64)
    with np.errstate(all="ignore"):
        noise = x.var(axis=0) + y.var(axis=0)
        shift = np.nan_to_num(np.abs(x.mean(axis=0) - y.mean(axis=0)) / np.sqrt(noise + 1e-300), posinf=0.0)
    varies = np.isfinite(noise) & (noise > 0)
    order = np.lexsort((-shift, moved == 0))
    chosen: npt.NDArray[np.int64] = order[varies[order]][:COLUMNS].astype(np.int64)
    return chosen


def _regressed(made: Floats, which: Floats) -> Floats:
    """Weights of a logistic regression with a small penalty on their squares, by Newton's method.

    Examples
    --------
    >>> x = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    >>> bool(_regressed(x, np.array([0.0, 0.0, 1.0, 1.0]))[0] > 0)
    True
    """
    wide = made.shape[1]
    weights, penalty = np.zeros(wide), RIDGE * np.eye(wide)
    blocks = np.zeros((-(-len(made) // BLOCK), BLOCK, wide))
    blocks.reshape(-1, wide)[: len(made)] = made
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(np.einsum("ij,j->i", made, weights), -30, 30)))
        slope = np.einsum("ij,i->j", made, which - chance) - RIDGE * weights
        bend = np.zeros(blocks.shape[:2])
        bend.reshape(-1)[: len(made)] = chance * (1 - chance)
        second = np.matmul((blocks * bend[:, :, None]).transpose(0, 2, 1), blocks).sum(axis=0) + penalty
        step = np.linalg.solve(second, slope)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-3:
            break
    return weights
