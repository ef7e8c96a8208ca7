"""What an adaptive cube does next. Owns :class:`Choosing`, :class:`Measuring` and :class:`Plan`.

A plan sees public numbers and what was chosen and measured with noise before, never data: it says which tables to choose among and how much of the loss to
spend, and the runner of the curator does it (``docs/explanation/proofs/adaptive-cubes.md``). The loss is spent in whole units, ``UNITS`` in all.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from policygraph.estimation.graphical.model import Evidence, Model, fit
from policygraph.estimation.graphical.tree import cells_with
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.queries.cuboids import CuboidQuery

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNITS = 1 << 20
"""Units that a loss is divided into."""
FIRST = UNITS // 10
"""Units for the tables of one attribute, if others follow."""
TENTH = 10
"""One over the share of a round that is spent on choosing."""
PARTS = 4
"""A round takes at most one over this of what is left."""
START = 4.0
"""At first a table is measured with one over this of the share at which more would not be worth its price."""
END = UNITS // 16
"""What is left below this is spent in one last round."""
HALVINGS = 16
"""The smallest measurement that is considered takes the largest one's share halved so often."""
EMPTY_ROUNDS = 64
"""Most times that the price is lowered because no table is worth it."""
STEPS = 60
"""Steps of each fit between rounds; each starts where the one before ended."""
ENTROPY = 0.005
"""Weight of the entropy beside the distance in the norm of the noise: it decides what the evidence leaves open."""
LARGEST = float(1 << 60)


@dataclass(frozen=True, eq=False)
class Choosing:
    """Choose one of some tables by how far it is from an estimate: score = weight * (sum of absolute differences - penalty).

    Attributes
    ----------
    masks
        The tables.
    estimates
        Whole numbers for the cells of each; they are fixed before the data are looked at.
    penalties, weights
        Whole numbers for each table.
    share
        Units of the loss for the choice.
    """

    masks: tuple[int, ...]
    estimates: tuple[Ints, ...]
    penalties: tuple[int, ...]
    weights: tuple[int, ...]
    share: int


@dataclass(frozen=True, eq=False)
class Measuring:
    """Answer tables with noise.

    Attributes
    ----------
    query
        The tables.
    share
        Units of the loss for the noise.
    """

    query: CuboidQuery
    share: int


class Tables(Protocol):
    """What a plan knows of its mechanism: the tables, and what shares of the loss buy."""

    @property
    def loss(self) -> Loss: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def first(self) -> CuboidQuery | None: ...
    @property
    def ones(self) -> tuple[int, ...]: ...
    @property
    def candidates(self) -> tuple[int, ...]: ...
    @property
    def cells(self) -> int: ...
    @property
    def rounds(self) -> int | None: ...
    @property
    def weights(self) -> dict[int, int]: ...
    @property
    def table_queries(self) -> dict[int, CuboidQuery]: ...
    @property
    def begun(self) -> dict[bytes, Any]: ...
    def size(self, mask: int) -> int: ...
    def uses(self, mask: int) -> int: ...
    def reach_of(self, share: float) -> float: ...
    def noise_of(self, mask: int, share: int) -> tuple[float, float]: ...
    def first_shares(self, share: int) -> list[float]: ...
    def first_evidence(self, noisy: Ints, share: int) -> list[Evidence]: ...
    def evidence_of(self, mask: int, noisy: Ints, share: int) -> Evidence: ...


Step = Choosing | Measuring
Steps = Generator[Step, Any, None]


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps of one run of an adaptive cube.

    Attributes
    ----------
    ready
        The mechanism: tables, weights and the deviations that shares of its loss buy.
    exact
        The tables that no neighbour step changes.
    """

    ready: Tables
    exact: Sequence[Evidence]

    def steps(self) -> Steps:
        """Yield step after step; each is answered by the noisy numbers, or by the position of the table that was chosen."""
        ready, evidence, left = self.ready, list(self.exact), UNITS
        if ready.first is not None:
            share = FIRST if ready.candidates else UNITS
            noisy = yield Measuring(ready.first, share)
            evidence += ready.first_evidence(noisy, share)
            left -= share
        price, model, watched = self._price(), None, None
        rounds = empty = 0
        while ready.candidates and left > 0 and (ready.rounds is None or rounds < ready.rounds):
            last = left <= END or (ready.rounds is not None and rounds + 1 == ready.rounds)
            begin = None if len(evidence) > len(self.exact) or empty else self._key
            if begin in ready.begun:
                model, step, shares, noises = ready.begun[begin]
            else:
                if watched is not None or model is None:
                    model = fit(ready.shape, evidence, strength=ENTROPY, start=model, steps=STEPS)
                if watched is not None:
                    mask, before, noise = watched
                    if float(np.abs(model.table(mask).ravel() - before).sum()) <= noise:
                        price /= self.lower
                    watched = None
                step, shares, noises = self._round(model, evidence, left, price, last)
                if begin is not None:
                    ready.begun[begin] = model, step, shares, noises
            if step is None:
                empty += 1
                if last or empty > EMPTY_ROUNDS:
                    break
                price /= self.lower
                continue
            at = yield step
            mask = step.masks[at]
            noisy = yield Measuring(ready.table_queries[mask], shares[at])
            evidence.append(ready.evidence_of(mask, noisy, shares[at]))
            left -= step.share + shares[at]
            rounds += 1
            if last:
                break
            watched = mask, model.table(mask).ravel(), noises[at]
        if left > 0 and ready.first is not None and ready.rounds is None:
            yield Measuring(ready.first, left)

    @property
    def _key(self) -> bytes:
        return b"".join(piece.counts.tobytes() for piece in self.exact)

    @property
    def _order(self) -> float:
        """How fast the error of a measurement falls with its share: with its root for zCDP, in proportion for epsilon."""
        return 1.0 if isinstance(self.ready.loss, Epsilon) else 0.5

    @property
    def lower(self) -> float:
        """By what the price falls when a round brought no more than noise, so that the best shares double."""
        return float(2.0 ** (1 + self._order))

    def _price(self) -> float:
        """What a unit of the loss is worth at first, in error: several times less (``START``) is spent on each table than where its gain ends.

        The gain of the tables of one attribute from a unit more is known without data; where these are exact, that of all candidates is taken, each with an
        equal share.
        """
        ready = self.ready
        if ready.first is not None:
            shares = ready.first_shares(FIRST)
            error = sum(
                ready.uses(mask) * ready.size(mask) * ready.reach_of(share)
                for mask, share in zip(ready.ones, shares, strict=True)
            )
            return float(START ** (1 + self._order) * self._order * error / FIRST)
        each = max(1, UNITS // max(1, len(ready.candidates)))
        error = sum(ready.size(mask) * ready.noise_of(mask, each)[0] for mask in ready.candidates)
        return float(START ** (1 + self._order) * self._order * error / UNITS)

    def _round(
        self, model: Model, evidence: Sequence[Evidence], left: int, price: float, last: bool
    ) -> tuple[Choosing | None, list[int], list[float]]:
        """The next choice, and for each table of it the share and the noise that is expected of its measurement."""
        ready = self.ready
        masks = [piece.mask for piece in evidence]
        room = max(float(ready.cells), float(model.tree.cells))
        allowed = cells_with(ready.shape, masks, ready.candidates)
        top = (left - left // TENTH) // (1 if last else PARTS)
        grid = [top] if last else [top >> j for j in range(HALVINGS) if top >> j > 0]
        if not grid or top < 1:
            return None, [], []
        estimates, penalties, shares, noises = [], [], [], []
        offered = [mask for mask, cells in zip(ready.candidates, allowed, strict=True) if cells <= room]
        if not offered:
            return None, [], []
        for mask, counts in zip(offered, model.each(offered), strict=True):
            table = counts.ravel()
            reaches = np.array([ready.noise_of(mask, share)[0] for share in grid])
            noise = clipped_noise(table, reaches)
            costs = noise + (0.0 if last else price) * np.array(grid, dtype=np.float64)
            best = int(np.argmin(costs))
            estimates.append(np.rint(np.minimum(table, LARGEST)).astype(np.int64))
            penalties.append(int(min(costs[best], LARGEST)))
            shares.append(grid[best])
            noises.append(float(noise[best]))
        middle = sorted(shares)[len(shares) // 2]
        spent = max(1, min(left // TENTH, middle // (TENTH - 1)))
        weights = tuple(ready.weights[mask] for mask in offered)
        return Choosing(tuple(offered), tuple(estimates), tuple(penalties), weights, spent), shares, noises


def clipped_noise(table: Floats, reaches: Floats) -> Floats:
    """The error that noise leaves in a table once its counts are made non-negative with the right sum: of each cell at most the count itself.

    Examples
    --------
    >>> clipped_noise(np.array([10.0, 1.0, 4.0]), np.array([0.5, 3.0])).tolist()
    [1.5, 7.0]
    """
    ordered = np.sort(np.maximum(table, 0.0))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    below = np.searchsorted(ordered, reaches)
    return np.asarray(sums[below] + reaches * (len(ordered) - below))


def mean_reach(loss: Any, parameter: float) -> float:
    """Mean absolute value of the noise of a scale, or of a variance parameter."""
    return parameter if isinstance(loss, Epsilon) else sqrt(2 * parameter / np.pi)
