"""The large cells of a table that is too large to build. Owns :class:`Sparse` and :class:`SparseNoise`.

Every cell gets noise, the empty ones too; cells whose noisy count reaches a threshold are listed. Which empty cells these are is drawn without visiting
them, with exactly the distribution of the whole noisy table cut at the threshold (``docs/explanation/proofs/sparse-release.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from policygraph.distributions.integers import GaussianTail, LaplaceTail, Tail, expected_passing
from policygraph.errors import InputError, RefusedError
from policygraph.exact import Exact, as_float
from policygraph.mechanisms.additive import Additive, BuiltOnAdditive
from policygraph.mechanisms.base import Ints, Mechanism, certified, check_loss
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.release.release import Errors, Randomness, Release, Table, joint_quantile
from policygraph.sensitivity.certificate import Sensitivity

MOST_SHOWN = 10_000_000
"""Most empty cells that may be expected to pass the threshold."""
FARTHEST = 4_000.0
"""Noise that is reached with a probability below exp of minus this is not expected in any number of cells that can be named."""
MOST_CODED = 1_000_000
"""Most cells of a table that an audit looks at as a whole."""


@dataclass(frozen=True)
class SparseNoise(BuiltOnAdditive):
    """Noise on every cell of one cuboid, of which only cells at or above a threshold are listed.

    Attributes
    ----------
    threshold
        Cells with a noisy count of at least this are listed.
    """

    mechanism: str
    query: CuboidQuery
    policy: Policy
    loss: Loss
    sensitivity: Sensitivity
    threshold: int

    runner = "sparse"

    @cached_property
    def inner(self) -> Additive:
        """The additive mechanism whose output is cut."""
        return Additive(self.mechanism, self.query, self.policy, self.loss, self.sensitivity)

    @property
    def centre(self) -> Query | None:
        return None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes of the cuboid."""
        return self.query.sets[0]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each of them."""
        return tuple(len(self.query.domain.labels(name)) for name in self.names)

    @cached_property
    def tail(self) -> Tail | None:
        """What the noise of an empty cell must pass; None when there is no noise."""
        return tail_of(self.loss, self.inner.parameter, self.threshold)

    @cached_property
    def spurious(self) -> float:
        """Expected number of listed cells if all cells were empty; known without data."""
        return 0.0 if self.tail is None else expected_passing(self.tail, prod(self.shape))

    def comparable(self, outputs: Any) -> Ints:
        """Outputs as whole tables, with one less than the threshold in every cell that is not listed."""
        size = prod(self.shape)
        if size > MOST_CODED:
            raise RefusedError(
                f"a table of {size:,} cells cannot be audited as a whole: expected at most {MOST_CODED:,}. Audit a smaller domain.",
                code="sparse.audit",
                value=size,
            )
        out = np.full((len(outputs), size), self.threshold - 1, dtype=np.int64)
        for row, listed in zip(out, outputs, strict=True):
            row[np.ravel_multi_index(tuple(listed[:, :-1].T), self.shape)] = listed[:, -1]
        return out

    def publish(self, points: Ints, randomness: Randomness) -> Release:
        labels = []
        for at, name in enumerate(self.names):
            given = self.query.domain.labels(name)
            codes = points[:, at]
            labels.append(codes if isinstance(given, range) else _labels(given)[codes])
        part = self.query.parts[0]
        errors = self.listed_errors(points[:, -1])
        stated = errors.deviation, errors.within_95
        table = Table(
            part.name, part.columns, tuple(labels), points[:, -1].copy(), *stated, errors=errors.basis
        )
        record = self.record(
            randomness,
            [
                {
                    "name": part.name,
                    "columns": list(part.columns),
                    "height": len(points),
                    "integer": True,
                    **errors.to_json(),
                }
            ],
        )
        record["sparse"] = {
            "threshold": self.threshold,
            "cells": str(prod(self.shape)),
            "expected_empty_cells": self.spurious,
        }
        return Release((table,), record)

    def listed_errors(self, values: Ints) -> Errors:
        """Errors of listed counts: where more than one in a hundred listed cells of this size may be empty ones, ranges reach down to 0.

        Notes
        -----
        Counts are listed because they are large, and their noise with them. How many empty cells are expected at or above a count is known without data.
        """
        if self.tail is None:
            return Errors(0.0, 0.0)
        sizes = np.unique(values)
        order = np.sort(values)
        low, high = 0, len(sizes)
        while low < high:
            middle = (low + high) // 2
            expected = self._empty_beyond(int(sizes[middle]))
            above = len(order) - int(np.searchsorted(order, sizes[middle]))
            low, high = (low, middle) if expected <= above / 100 else (middle + 1, high)
        first = int(sizes[low]) if low < len(sizes) else int(order[-1]) + 1 if len(order) else 0
        doubtful = values < first
        width = joint_quantile(self.noise.distribution, self.inner.parameter, Fraction(1, 40))
        deviation = np.hypot(float(np.sqrt(self.noise.variance)), np.where(doubtful, values, 0.0))
        return Errors(
            deviation, np.where(doubtful, np.maximum(values, width), width).astype(np.float64), "bound"
        )

    def _empty_beyond(self, size: int) -> float:
        """How many empty cells are expected at or above a count; none where that is less than any float, which takes no digits to know."""
        parameter = float(self.inner.parameter)
        rate = size / parameter if isinstance(self.loss, Epsilon) else size / parameter * size / 2
        tail = None if rate > FARTHEST else tail_of(self.loss, self.inner.parameter, size)
        return 0.0 if tail is None else expected_passing(tail, prod(self.shape))

    def stages(self) -> Sequence[str]:
        lines = list(self.inner.stages())
        lines.append(
            f"Of {prod(self.shape):,} cells, empty ones included, those with a noisy count of at least {self.threshold} are listed; "
            "all others have a smaller noisy count."
        )
        if self.tail is not None:
            lines.append(
                f"If all cells were empty, {self.spurious:.4g} of them would be expected in the list. Counts in the list are those that were not "
                "small, and tend to be too large: where more than one in a hundred listed counts of a size may be of an empty cell, stated ranges reach down to 0."
            )
        return lines


@dataclass(frozen=True)
class Sparse(Mechanism):
    """List the cells of one cuboid whose noisy count reaches a threshold, however many cells there are.

    Parameters
    ----------
    threshold
        An integer >= 1; by default the least one at which at most ``spurious`` empty cells are expected in the list.
    spurious
        How many empty cells may be expected in the list, if no threshold is given.

    Notes
    -----
    The output has exactly the distribution of noise on every cell followed by the threshold, so that it is private at the loss of the additive mechanism.
    Listing only cells that hold a record would not be private at any epsilon.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({f"a{i}": 16 for i in range(20)})
    >>> query = pg.queries.identity(domain)
    >>> ready = Sparse(spurious=1).calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    >>> query.height, ready.threshold, round(ready.spurious, 2)
    (1208925819614629174706176, 56, 0.42)
    """

    threshold: int | None = None
    spurious: Exact = 100
    name: str = "Sparse"

    def __post_init__(self) -> None:
        given = self.threshold
        if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
            raise InputError(
                f"threshold={given!r}: expected an integer >= 1. At 0 or below every empty cell would be listed.",
                code="sparse.threshold",
                value=given,
            )
        if as_float(self.spurious, "spurious") <= 0:
            raise InputError(
                f"spurious={self.spurious!r}: expected a number > 0.",
                code="sparse.spurious",
                value=self.spurious,
            )

    def calibrate(
        self, query: Query, policy: Policy, loss: Loss, sensitivity: Sensitivity | None = None
    ) -> SparseNoise:
        check_loss(loss)
        if (
            not isinstance(query, CuboidQuery)
            or len(query.sets) != 1
            or query.weights != (1,)
            or not query.sets[0]
        ):
            raise InputError(
                f"{query!r}: expected one cuboid of weight 1 with an attribute, for example pg.queries.identity(domain).",
                code="sparse.query",
                value=query,
            )
        proof = certified(query, policy, loss, sensitivity, listed=False)
        inner = Additive(self.name, query, policy, loss, proof)
        threshold = self.threshold or self._least(query.height, loss, inner.parameter)
        ready = SparseNoise(self.name, query, policy, loss, proof, threshold)
        if ready.spurious > MOST_SHOWN:
            raise RefusedError(
                f"threshold {threshold}: about {ready.spurious:.3g} empty cells would be listed, expected at most {MOST_SHOWN:,}. "
                "Raise the threshold, or ask for fewer attributes.",
                code="sparse.too-many",
                value=threshold,
            )
        return ready

    def _least(self, cells: int, loss: Loss, parameter: Fraction) -> int:
        """The least threshold at which few enough empty cells are expected."""
        wanted = as_float(self.spurious, "spurious")

        def few(start: int) -> bool:
            tail = tail_of(loss, parameter, start)
            return tail is None or expected_passing(tail, cells) <= wanted

        high = 1
        while not few(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (high + low) // 2
            low, high = (low, middle) if few(middle) else (middle, high)
        return high


def tail_of(loss: Loss, parameter: Fraction, threshold: int) -> Tail | None:
    """The distribution of noise at or above a threshold; None without noise.

    Examples
    --------
    >>> tail_of(Epsilon(1), Fraction(2), 5)
    LaplaceTail(parameter=Fraction(2, 1), start=5)
    """
    if parameter == 0:
        return None
    return (LaplaceTail if isinstance(loss, Epsilon) else GaussianTail)(parameter, threshold)


def _labels(given: Sequence[Any]) -> Any:
    kinds = {type(label) for label in given}
    return np.array(given, dtype=object if len(kinds) > 1 or kinds == {str} else None)
