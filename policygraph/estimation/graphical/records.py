"""Synthetic records from released tables. Owns :func:`synthetic_records` and :class:`SyntheticRecords`.

A graphical model is fitted to published tables, its cliques are rounded to whole tables that agree and keep the exact public tables, and records are put together
clique by clique, so that no table of all attributes is needed. All of it is post-processing of a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from policygraph.arrow import to_arrow
from policygraph.errors import InputError, RefusedError
from policygraph.estimation.cubes.cells import Fact, facts_of
from policygraph.estimation.cubes.rounding import controlled
from policygraph.estimation.graphical.model import Evidence, Model, fit
from policygraph.estimation.graphical.tree import JunctionTree, cells_with
from policygraph.model.constraints.tables import Cuboid, Total
from policygraph.model.domain import Domain
from policygraph.model.grouped import records_of
from policygraph.model.policy import Policy
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.output import replacing
from policygraph.release.release import Release
from policygraph.transforms.cuboids.costs import known_cuboids
from policygraph.transforms.cuboids.lattice import Lattice

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CELLS = 1 << 17
"""Most cells of the cliques of the model."""
DENSE = 1 << 16
"""Up to so many cells of all attributes together, the whole table is rounded at once."""
STEPS = 400
STRENGTH = 0.005
SWEEPS = 60
"""Rounds of proportional fitting of a clique to the whole tables that it has to keep."""
MOST_RECORDS = 50_000_000
MOST_CELLS = 1 << 27
"""Most cells of a table that is counted."""
MOST_SEEDS = 1 << 128


@dataclass(frozen=True, eq=False)
class SyntheticRecords:
    """Records that nobody ever was, with tables near the released ones.

    Attributes
    ----------
    domain
        The attributes of the release.
    codes
        One row for each record: the position of the label of each attribute.
    notes
        What was kept exactly, and what was not.
    """

    domain: Domain
    codes: Ints
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.codes)

    def counts(self, *names: str) -> Ints:
        """The table of some attributes.

        Examples
        --------
        >>> made = SyntheticRecords(Domain({"a": 2, "b": 3}), np.array([[0, 2], [0, 2], [1, 0]]))
        >>> made.counts("a").tolist(), made.counts("a", "b").tolist()
        ([2, 1], [0, 0, 2, 1, 0, 0])
        """
        axes = sorted({self.domain.axis(name) for name in names})
        shape = [self.domain.shape[axis] for axis in axes]
        if prod(shape) > MOST_CELLS:
            raise RefusedError(
                f"a table of {prod(shape):,} cells: expected at most {MOST_CELLS:,}; name fewer attributes.",
                code="synthetic.size",
                value=prod(shape),
            )
        at = np.zeros(len(self.codes), dtype=np.int64)
        for axis, n in zip(axes, shape, strict=True):
            at = at * n + self.codes[:, axis]
        return np.bincount(at, minlength=int(np.prod(shape, dtype=np.int64)))

    def arrow(self) -> Any:
        """The records as an Arrow table, one column for each attribute."""
        import pyarrow as pa

        columns = {}
        for axis, name in enumerate(self.domain.names):
            labels = self.domain.labels(name)
            listed = to_arrow(np.asarray(labels) if isinstance(labels, range) else list(labels))
            columns[name] = listed.take(pa.array(self.codes[:, axis]))
        return pa.table(columns)

    def to_csv(self, path: str | Path) -> None:
        """Write the records as CSV."""
        from pyarrow import csv

        made = self.arrow()
        with replacing(path) as draft:
            csv.write_csv(made, str(draft))

    def __str__(self) -> str:
        head = f"{len(self):,} synthetic records of {len(self.domain.names)} attributes"
        return "\n".join([head, *self.notes])


def synthetic_records(
    release: Release, n: int | None = None, *, cells: int = CELLS, seed: int = 0
) -> SyntheticRecords:
    """Make records whose tables are near the released ones, and meet exact public tables.

    Parameters
    ----------
    release
        A release of tables of counts: of a cube, of an adaptive cube, or of one table.
    n
        Number of records; by default that of the release. A public number of records cannot be changed.
    cells
        Most cells of the cliques of the model that is fitted to the release.
    seed
        Which of the records with the same tables is made; privacy does not depend on it.

    Returns
    -------
    SyntheticRecords
        Whole records over the attributes of the release.

    Raises
    ------
    InputError
        When the release is not one of tables.
    RefusedError
        When the exact public facts cannot all be met; nothing is returned then.

    Notes
    -----
    Costs no privacy loss. Of more released tables than one model can hold, those are taken that depart most from independent attributes. Exact tables whose values are
    neither in the policy nor in the release cannot be met, and are named in the notes.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"a": 2, "b": 3})
    >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a", equals=[40, 20])])
    >>> query = pg.queries.all_cuboids(domain)
    >>> made = pg.release(query, policy, [10, 10, 20, 0, 10, 10], epsilon=1, rng=pg.SeededRng(1))
    >>> records = synthetic_records(made)
    >>> len(records), records.counts("a").tolist()
    (60, [40, 20])
    """
    policy, query = (
        (records_of(release.policy), release.query) if isinstance(release, Release) else (None, None)
    )
    if not isinstance(policy, Policy) or not isinstance(query, CuboidQuery):
        raise InputError(
            "the release is of something else than tables of counts: expected a release of cuboids, such as a cube.",
            code="synthetic.release",
        )
    wanted = None if n is None else _whole(n, 0, MOST_RECORDS)
    if n is not None and wanted is None:
        raise InputError(
            f"n={n!r}: expected a whole number from 0 to {MOST_RECORDS:,}.", code="synthetic.records", value=n
        )
    most, key = _whole(cells, 0, None), _whole(seed, 0, MOST_SEEDS - 1)
    if most is None or key is None:
        wrong = f"cells={cells!r}" if most is None else f"seed={seed!r}"
        raise InputError(
            f"{wrong}: expected a whole number of at least 0 (and a seed below 2^128).",
            code="synthetic.option",
            value=cells if most is None else seed,
        )
    task = _Task(release, policy, query, wanted, most)
    return task.records(np.random.Generator(np.random.Philox(key=key)))


def _whole(value: Any, least: int, most: int | None) -> int | None:
    """A whole number of Python or numpy within bounds; None of anything else."""
    try:
        made = None if isinstance(value, bool | np.bool_) else index(value)
    except TypeError:
        return None
    return made if made is not None and made >= least and (most is None or made <= most) else None


class _Task:
    """What a release says, over its own attributes only."""

    def __init__(
        self, release: Release, policy: Policy, query: CuboidQuery, n: int | None, cells: int
    ) -> None:
        self.release, self.policy, self.cells = release, policy, cells
        whole = Lattice(query.domain)
        names = [name for name in query.domain.names if any(name in each for each in query.sets)]
        if not names:
            raise InputError("the release has the total alone: expected a table.", code="synthetic.release")
        self.lattice = Lattice(query.domain.project(names))
        self.published: dict[int, Floats] = {}
        self.variances: dict[int, float] = {}
        for table in release.tables:
            mask = self.lattice.mask(table.columns)
            self.published[mask] = np.asarray(table.values, dtype=np.float64)
            square = float(np.mean(np.square(table.deviation)))
            linear = table.errors in (None, "exact") and np.isfinite(square)
            self.variances[mask] = square if linear and square > 0 else 1.0
        self.notes: list[str] = []
        self.known = self._known(whole, set(names))
        self.facts = self._facts(whole, names)
        self.total = self._total(n)

    def _known(self, whole: Lattice, names: set[str]) -> dict[int, Ints]:
        """Exact tables with their values, as far as they have any here."""
        values = {
            whole.mask(fact.names if isinstance(fact, Cuboid) else ()): fact.equals
            for fact in self.policy.constraints
            if isinstance(fact, (Cuboid, Total)) and fact.equals is not None
        }
        out: dict[int, Ints] = {}
        for mask in known_cuboids(whole, self.policy):
            shown = " x ".join(whole.names(mask)) or "the total"
            inside = [name for name in whole.names(mask) if name in names]
            here = self.lattice.mask(inside)
            if mask in values:
                table = np.asarray(values[mask], dtype=np.int64).reshape(whole.shape(mask))
                rest = tuple(at for at, name in enumerate(whole.names(mask)) if name not in names)
                out[here] = np.asarray(table.sum(axis=rest)).ravel()
            elif (found := self.lattice.parent(here, self.published)) is not None:
                sums = _summed(self.lattice, self.published[found], found, here)
                out[here] = np.rint(sums).astype(np.int64)
                if np.abs(sums - out[here]).max(initial=0.0) > 1e-3 or out[here].min(initial=0) < 0:
                    raise RefusedError(
                        f"the released tables do not hold the exact table {shown} in whole numbers. Publish it, or give its values in the policy.",
                        code="synthetic.known",
                        value=shown,
                    )
            else:
                self.notes.append(
                    f"{shown} is public, but its values are neither in the release nor in the policy: it is not met."
                )
                continue
            self.notes.append(f"Exact: {shown}.")
        return out

    def _facts(self, whole: Lattice, names: Sequence[str]) -> list[Fact]:
        """Public facts that are less than a table."""
        found = facts_of(whole, self.policy)
        if not found:
            return []
        if len(names) < whole.order or any(fact.value is None and not fact.empty for fact in found):
            raise RefusedError(
                f"{len(found)} public sums of cells have no values here, or concern attributes that the release does not have: expected public tables, or "
                "facts with equals over released attributes.",
                code="synthetic.facts",
            )
        self.notes.append(f"Exact: {len(found)} public sums of cells.")
        return found

    def _total(self, n: int | None) -> int:
        exact = next((int(table.sum()) for table in self.known.values()), None)
        if exact is not None:
            if n is not None and n != exact:
                raise InputError(
                    f"n={n}: the number of records is public, {exact}: expected that, or none.",
                    code="synthetic.records",
                    value=n,
                )
            found = exact
        elif n is not None:
            found = n
        else:
            sums = [(self.variances[m] * t.size, float(t.sum())) for m, t in self.published.items()]
            found = max(0, round(sum(s / v for v, s in sums) / sum(1 / v for v, _ in sums)))
        if found > MOST_RECORDS:
            raise RefusedError(
                f"{found:,} records: expected at most {MOST_RECORDS:,}. Ask for fewer with n.",
                code="synthetic.records",
                value=found,
            )
        return found

    def evidence(self, mask: int) -> Evidence:
        """A published table, or the sum of one."""
        found = self.lattice.parent(mask, self.published)
        if found is None:
            raise InputError("a table that was not released", code="synthetic.release")
        counts = _summed(self.lattice, self.published[found], found, mask)
        factor = self.lattice.size(found) / self.lattice.size(mask)
        return Evidence(mask, counts, self.variances[found] * factor)

    def model(self) -> Model:
        """The model of as many released tables as it has room for, those first that depart most from independence."""
        shape, exact = (
            self.lattice.domain.shape,
            [Evidence(m, t.astype(np.float64), 0.0) for m, t in self.known.items()],
        )
        ones = [self.evidence(1 << axis) for axis in range(self.lattice.order)]
        if self.total == 0:
            return fit(
                shape, [*exact, *(Evidence(p.mask, np.ones(p.counts.size), 1.0) for p in ones)], steps=STEPS
            )
        start = JunctionTree.of(shape, list(self.known)).cells
        if start > max(self.cells, sum(shape)):
            raise RefusedError(
                f"a model of the exact tables has {start:,} cells: expected at most {self.cells:,}. Allow more with cells.",
                code="synthetic.size",
                value=start,
            )
        taken = [piece.mask for piece in exact]
        chosen: list[int] = []
        for mask in self._ranked():
            if any(mask & ~other == 0 for other in (*chosen, *taken)):
                continue
            if cells_with(shape, [*taken, *chosen], [mask])[0] <= max(self.cells, start):
                chosen.append(mask)
        left_out = len(
            [mask for mask in self.published if not any(mask & ~m == 0 for m in (*chosen, *taken))]
        )
        if left_out:
            self.notes.append(f"{left_out} released tables follow from the model of the others.")
        return fit(shape, [*exact, *ones, *map(self.evidence, chosen)], strength=STRENGTH, steps=STEPS)

    def _ranked(self) -> list[int]:
        """Released (or, of an adaptive cube, measured) tables of several attributes that show more than noise, the strongest dependence first."""
        adaptive = self.release.record.get("adaptive")
        masks = [mask for mask in self.published if mask.bit_count() > 1]
        if adaptive is not None:
            measured = [self.lattice.mask(each["table"]) for each in adaptive["measured"]]
            masks = list(
                dict.fromkeys(
                    m
                    for m in measured
                    if m.bit_count() > 1 and self.lattice.parent(m, self.published) is not None
                )
            )
        scores = {}
        for mask in masks:
            piece = self.evidence(mask)
            table = piece.counts.reshape(self.lattice.shape(mask))
            product = np.full(table.shape, max(1.0, float(table.sum())))
            for at in range(table.ndim):
                side = np.maximum(table.sum(axis=tuple(i for i in range(table.ndim) if i != at)), 0.0)
                product = product * (side / max(1e-9, float(side.sum()))).reshape(
                    [-1 if i == at else 1 for i in range(table.ndim)]
                )
            noise = (
                0.0 if adaptive is not None else float(np.minimum(0.8 * piece.variance**0.5, product).sum())
            )
            scores[mask] = float(np.abs(np.maximum(table, 0.0) - product).sum()) - noise
        return sorted((m for m in masks if scores[m] > 0), key=lambda m: (-round(scores[m], 6), m))

    def records(self, rng: np.random.Generator) -> SyntheticRecords:
        """Round the model, and put records together."""
        model, domain = self.model(), self.lattice.domain
        if domain.size <= DENSE or self.facts:
            if domain.size > 100 * DENSE:
                raise RefusedError(
                    f"public sums of cells over {domain.size:,} cells: expected at most {100 * DENSE:,} cells with facts that are less than a table.",
                    code="synthetic.facts",
                )
            table = model.table(self.lattice.base) * (self.total / model.total)
            whole = controlled(
                self.lattice, self.lattice.base, table, self._kept(self.lattice.base), self.facts
            )
            cells = np.repeat(np.arange(domain.size), whole.ravel())
            codes = np.stack(np.unravel_index(rng.permutation(cells), domain.shape), axis=1)
            return SyntheticRecords(domain, codes.astype(np.int64), tuple(self.notes))
        codes = self._along(model, rng)
        return SyntheticRecords(domain, codes, tuple(self.notes))

    def _kept(self, clique: int) -> dict[int, Ints]:
        """What a table of some attributes has to sum to: the exact tables as far as they go, and the number of records."""
        out: dict[int, Ints] = {0: np.array([self.total], dtype=np.int64)}
        for mask, table in self.known.items():
            out[mask & clique] = _summed(self.lattice, table, mask, mask & clique)
        return out

    def _along(self, model: Model, rng: np.random.Generator) -> Ints:
        """Clique after clique: a whole table that sums to that of its separator, and records that take its values."""
        tree = model.tree
        codes = np.zeros((self.total, self.lattice.order), dtype=np.int64)
        whole: list[Ints] = []
        for at, (clique, shared) in enumerate(zip(tree.cliques, tree.separators, strict=True)):
            kept = self._kept(clique)
            if at:
                parent = tree.parents[at]
                kept[shared] = _summed(self.lattice, whole[parent].ravel(), tree.cliques[parent], shared)
            values = _scaled(self.lattice, model.tables[at] * self.total, clique, kept)
            made = controlled(self.lattice, clique, values, kept)
            whole.append(made)
            _assign(self.lattice, codes, made, clique, shared, rng)
        return codes


def _summed(lattice: Lattice, counts: npt.NDArray[Any], held: int, wanted: int) -> npt.NDArray[Any]:
    rest = tuple(at for at, axis in enumerate(lattice.axes(held)) if not wanted >> axis & 1)
    return np.asarray(np.asarray(counts).reshape(lattice.shape(held)).sum(axis=rest)).ravel()


def _scaled(lattice: Lattice, values: Floats, clique: int, kept: Mapping[int, Ints]) -> Floats:
    """Proportional fitting of a table to its sums; where a sum has nothing to scale, it is spread evenly."""
    axes = lattice.axes(clique)
    made = values.astype(np.float64, copy=True)
    for _ in range(SWEEPS if len(kept) > 1 else 1):
        off = 0.0
        for mask, goal in kept.items():
            wide = [lattice.domain.shape[axis] if mask >> axis & 1 else 1 for axis in axes]
            rest = tuple(at for at, axis in enumerate(axes) if not mask >> axis & 1)
            now, want = made.sum(axis=rest, keepdims=True), goal.reshape(wide).astype(np.float64)
            off = max(off, float(np.abs(now - want).max(initial=0.0)))
            empty = (now <= 0) & (want > 0)
            if np.any(empty):
                made = made + empty * 1e-9
                now = made.sum(axis=rest, keepdims=True)
            made = made * (want / np.where(now > 0, now, 1.0))
        if off <= 1e-9:
            break
    return made


def _assign(
    lattice: Lattice, codes: Ints, table: Ints, clique: int, shared: int, rng: np.random.Generator
) -> None:
    """Give the records of each value of the separator the other values of a clique, as often as its table says, in random order."""
    axes = lattice.axes(clique)
    cells = np.repeat(np.arange(table.size), table.ravel())
    values = np.stack(np.unravel_index(cells, table.shape), axis=1).astype(np.int64)
    groups = np.zeros(len(codes), dtype=np.int64)
    wanted = np.zeros(len(cells), dtype=np.int64)
    for at, axis in enumerate(axes):
        if shared >> axis & 1:
            groups = groups * lattice.domain.shape[axis] + codes[:, axis]
            wanted = wanted * lattice.domain.shape[axis] + values[:, at]
    shuffled = rng.permutation(len(codes))
    places = shuffled[np.argsort(groups[shuffled], kind="stable")]
    source = np.argsort(wanted, kind="stable")
    for at, axis in enumerate(axes):
        if not shared >> axis & 1:
            codes[places, axis] = values[source, at]
