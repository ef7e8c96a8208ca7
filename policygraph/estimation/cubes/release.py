"""A released cube. Owns :class:`CubeRelease`: its tables, any cuboid or cell on demand, each with its exact variance.

Labels of a table are made when they are asked for, so that a cube of many millions of cells stays as small as its numbers.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np

from policygraph.arrow import to_arrow, to_numpy
from policygraph.errors import InputError
from policygraph.estimation.cubes.cells import Fact, facts_of, summed, visible
from policygraph.estimation.cubes.errors import joint_ranges, published_errors, ranges_at
from policygraph.estimation.cubes.finish import Finish, cell_factors
from policygraph.estimation.errors import Seen
from policygraph.model.domain import Domain, Label
from policygraph.model.grouped import records_of
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.units import any_policy
from policygraph.release.release import METADATA, Errors, Release, Table, read_errors, share_of
from policygraph.release.sheets import free
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.lattice import Floats, Lattice

ESTIMATE = "least_squares"
"""Column of the least-squares estimates in files, where something else is published."""
COMPACT = ["value", ESTIMATE, "standard_deviation", "within_95"]
"""Columns of the compact form of a release whose errors were simulated."""


class Labels(Sequence[Any]):
    """Label columns of a cuboid, made when they are asked for."""

    def __init__(self, domain: Domain, names: tuple[str, ...]) -> None:
        self._domain, self._names = domain, names

    @cached_property
    def _columns(self) -> list[Any]:
        return CuboidQuery(self._domain, [self._names]).part_labels(0) if self._names else []

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, at: Any) -> Any:
        return self._columns[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._columns)


def cube_table(
    domain: Domain, names: tuple[str, ...], values: Floats, errors: Errors, unbiased: Floats | None = None
) -> Table:
    """One table of a cube, its labels left for later."""
    labels = cast("tuple[Any, ...]", Labels(domain, names))
    name = " x ".join(names) or "total"
    return Table(name, names, labels, values, errors.deviation, errors.within_95, unbiased, errors.basis)


def part_of(name: str, columns: Sequence[str], height: int, finish: Finish, errors: Errors) -> dict[str, Any]:
    """A table in the record. Where errors differ from cell to cell the largest is noted; the release has the others."""
    return {
        "name": name,
        "columns": list(columns),
        "height": height,
        "integer": finish.whole,
        "standard_deviation": float(np.max(errors.deviation)),
        "within_95": float(np.max(errors.within_95)),
        "errors": errors.basis,
    }


@dataclass(frozen=True, repr=False)
class CubeRelease(Release):
    """Noisy cuboids with all that is needed to use and to check them.

    Attributes
    ----------
    estimates
        The least-squares estimates of the tables where something else is published (non-negative, whole, other deviations).

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.mechanisms.cube.mechanism import Cube
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> query = pg.queries.all_cuboids(domain)
    >>> ready = Cube("all").calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    >>> made = ready.run([5, 0, 2, 4, 1, 9], pg.SeededRng(1))
    >>> sums = made.cuboid("sex", "age").values.reshape(2, 3).sum(axis=1)
    >>> bool((sums == made.cuboid("sex").values).all())
    True
    >>> round(made.variance("sex"), 2), round(made.variance("sex", "age"), 2)
    (15.92, 15.92)
    """

    estimates: tuple[Floats, ...] | None = field(default=None, repr=False)

    unbiased_column = ""

    @cached_property
    def domain(self) -> Domain:
        """The domain of the records."""
        domain = self.policy.domain
        if not isinstance(domain, Domain):
            raise InputError("a cube needs a table, not a network.", code="cubes.domain")
        return domain

    @cached_property
    def lattice(self) -> Lattice:
        """All cuboids of the domain."""
        return Lattice(self.domain)

    @cached_property
    def choice(self) -> Choice:
        """What was measured."""
        cube = self.record["cube"]
        sets = tuple(tuple(names) for names in cube["measured"])
        return Choice(
            sets, tuple(cube["weights"]), cube["kind"], cube["objective"], cube["bound"], cube["reason"]
        )

    @cached_property
    def known(self) -> list[int]:
        """Cuboids that are exact."""
        return [self.lattice.mask(names) for names in self.record["cube"]["known"]]

    @cached_property
    def finish(self) -> Finish:
        """How the tables were made of the noisy numbers."""
        return Finish.from_json(self.record["cube"])

    @cached_property
    def facts(self) -> list[Fact]:
        """Public sums of cells that the tables meet exactly besides whole tables."""
        if not self.finish.agrees:
            return []
        masks = [self.lattice.mask(names) for names in self.choice.sets] + list(self._places)
        found = facts_of(self.lattice, records_of(self.policy))
        return visible(self.lattice, found, masks, together=not self.finish.plain)

    def variance(self, *names: str) -> float | Floats:
        """Variance of the noise of one cell of a cuboid; 0 where it is exact.

        Returns
        -------
        float or ndarray
            One number, or one for each cell where public sums of cells make them differ. For tables that are not linear in the
            noise (see ``record["cube"]``) it is the variance of their least-squares estimates, and not that of the published ones.

        Raises
        ------
        InputError
            When the cuboid cannot be computed from what was measured.
        """
        return self._factor(self.lattice.mask(names)) * float(self.record["noise"]["variance"])

    def _factor(self, mask: int) -> float | Floats:
        made = cell_factors(
            self.finish, self.lattice, self.choice, self.known, self.facts, [mask], list(self._places)
        )[0]
        if not np.all(np.isfinite(made)):
            raise self._unknown(mask)
        return made

    def _unknown(self, mask: int) -> InputError:
        return InputError(
            f"cuboid {list(self.lattice.names(mask))} cannot be computed from the released ones.",
            code="cubes.not-computable",
            value=self.lattice.names(mask),
        )

    @cached_property
    def _places(self) -> dict[int, int]:
        return {self.lattice.mask(table.columns): at for at, table in enumerate(self.tables)}

    def cuboid(self, *names: str) -> Table:
        """The table of some attributes: a released one, or a sum of one.

        Parameters
        ----------
        names
            Attributes; none for the total.

        Raises
        ------
        InputError
            When no released table has all of them.
        """
        mask = self.lattice.mask(names)
        if mask in self._places:
            return self.tables[self._places[mask]]
        if not self.finish.agrees:
            raise InputError(
                f"cuboid {list(self.lattice.names(mask))} was not released, and without consistency the released tables "
                "give it in several ways: expected one that was released.",
                code="cubes.not-released",
                value=self.lattice.names(mask),
            )
        return self._made(mask, self._sum(mask, [table.values for table in self.tables]))

    def least_squares(self, *names: str) -> Table:
        """The least-squares estimate of a table, which is unbiased: where the published one is not linear in the noise, another one."""
        if self.estimates is None:
            return self.cuboid(*names)
        mask = self.lattice.mask(names)
        errors = Errors(*self._linear_errors(mask))
        return cube_table(self.domain, self.lattice.names(mask), self._sum(mask, self.estimates), errors)

    def _sum(self, mask: int, tables: Sequence[Any]) -> Floats:
        parent = self.lattice.parent(mask, self._places)
        if parent is None:
            raise self._unknown(mask)
        table = np.asarray(tables[self._places[parent]]).reshape(self.lattice.shape(parent))
        return np.asarray(summed(self.lattice, table, parent, mask)).ravel()

    def _linear_errors(self, mask: int) -> tuple[float | Floats, float | Floats]:
        noise, factor = self.record["noise"], self._factor(mask)
        deviation = np.sqrt(np.asarray(factor) * noise["variance"])
        [within] = ranges_at(
            self.lattice,
            self.choice,
            self.known,
            [mask],
            [factor],
            noise["distribution"],
            float(Fraction(noise["parameter"])),
            consistent=self.finish.agrees,
        )
        return (deviation if np.ndim(deviation) else float(deviation)), within

    def _made(self, mask: int, values: Floats) -> Table:
        estimate = None if self.estimates is None else self._sum(mask, self.estimates)
        errors = published_errors(values, estimate, *self._linear_errors(mask))
        return cube_table(self.domain, self.lattice.names(mask), values, errors, estimate)

    def joint_bound(self, delta: Any) -> list[Any]:
        """What all published counts are within of the truth at once, with probability at least 1 - delta.

        Notes
        -----
        Least-squares estimates have it by a union bound over their noise. Where something else is published the truth is still within the bound of the
        least-squares estimate of every cell at once, and is not negative: the bound of a published count is its largest distance to such a truth.
        """
        noise, masks = self.record["noise"], list(self._places)
        factors = [self._factor(mask) for mask in masks]
        sizes = [len(table.values) for table in self.tables]
        count = sum(int(np.count_nonzero(np.broadcast_to(f, n))) for f, n in zip(factors, sizes, strict=True))
        ranges = joint_ranges(
            self.lattice,
            self.choice,
            self.known,
            masks,
            factors,
            noise["distribution"],
            float(Fraction(noise["parameter"])),
            float(share_of(delta) / max(1, count)),
            consistent=self.finish.agrees,
        )
        if self.estimates is None:
            return list(ranges)
        return [
            Seen.of(table.values, estimate, 0.0, width).reach
            for table, estimate, width in zip(self.tables, self.estimates, ranges, strict=True)
        ]

    def cell(self, **labels: Label) -> tuple[float, float]:
        """One count, given by the labels of some attributes, and its standard deviation.

        Examples
        --------
        ``release.cell(sex="F", age=3)`` is the number of records with both.
        """
        table = self.cuboid(*labels)
        ordered = [labels[name] for name in table.columns]
        at = self.domain.project(list(labels)).index(ordered) if labels else 0
        deviation = np.asarray(table.deviation)
        return float(table.values[at]), float(deviation[at] if deviation.ndim else deviation)

    def to_bytes(self) -> bytes:
        """The whole release as the bytes of a Parquet file that holds the numbers without their labels."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        values = pa.chunked_array([to_arrow(np.asarray(t.values, dtype=np.float64)) for t in self.tables])
        columns = {"value": values}
        if self.estimates is not None:
            columns[ESTIMATE] = pa.chunked_array([to_arrow(e) for e in self.estimates])
        if any(part.get("errors") == "simulated" for part in self.record["parts"]):
            for name, stated in (("standard_deviation", "deviation"), ("within_95", "within_95")):
                listed = [np.full(len(t.values), getattr(t, stated), dtype=np.float64) for t in self.tables]
                columns[name] = pa.chunked_array([to_arrow(e) for e in listed])
        made = pa.table(columns)
        made = made.replace_schema_metadata({METADATA: json.dumps(dict(self.record)).encode()})
        sink = io.BytesIO()
        pq.write_table(made, sink)
        return sink.getvalue()

    def table(self, table: int | str | None = None) -> Any:
        """As :meth:`Release.table`; with a column of least-squares estimates where something else is published."""
        made = super().table(table)
        if self.estimates is None:
            return made
        shown = self.tables if table is None else (self._find(table),)
        picked = [e for t, e in zip(self.tables, self.estimates, strict=True) if any(t is s for s in shown)]
        return made.append_column(free(ESTIMATE, self._attributes), to_arrow(np.concatenate(picked)))

    @property
    def _attributes(self) -> list[str]:
        return list(dict.fromkeys(name for table in self.tables for name in table.columns))

    @classmethod
    def of_table(cls, table: Any, record: Mapping[str, Any]) -> CubeRelease:
        """Make a release from the columns of its file and its record."""
        domain = cast("Domain", any_policy(dict(record["policy"])).domain)
        names = list(dict.fromkeys(name for part in record["parts"] for name in part["columns"]))
        short = table.column_names in (["value"], ["value", ESTIMATE], COMPACT)
        values = to_numpy(table.column("value" if short else free("value", names)))
        column = ESTIMATE if short else free(ESTIMATE, names)
        estimates = None
        if column in table.column_names and column not in names:
            estimates = to_numpy(table.column(column))
        tables, found, start = [], [], 0
        for part in record["parts"]:
            piece = slice(start, start + part["height"])
            start += part["height"]
            errors = Errors(float(part["standard_deviation"]), float(part["within_95"]))
            if part.get("errors") == "simulated":  # bounds follow from the numbers, and are computed again
                errors = Errors(
                    *read_errors(table.slice(piece.start, part["height"]), part, [] if short else names),
                    "simulated",
                )
            found += [] if estimates is None else [np.asarray(estimates[piece], dtype=np.float64)]
            beside = None if estimates is None else found[-1]
            tables.append(cube_table(domain, tuple(part["columns"]), values[piece], errors, beside))
        plain = cls(tuple(tables), record, None if estimates is None else tuple(found))
        if estimates is None and not plain.facts:
            return plain
        shown = (
            t if t.errors == "simulated" else plain._made(plain.lattice.mask(t.columns), np.asarray(t.values))
            for t in plain.tables
        )
        return cls(tuple(shown), record, plain.estimates)
