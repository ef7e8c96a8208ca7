"""A released cube. Owns :class:`CubeRelease`: its tables, any cuboid or cell on demand, each with its exact variance.

Labels of a table are made when they are asked for, so that a cube of many millions of cells stays as small as its numbers.
Imports ``errors``, ``public``, ``published.release``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import numpy as np

from policygraph.errors import InputError
from policygraph.public.cubes.choose import Choice
from policygraph.public.cubes.lattice import Floats, Lattice
from policygraph.public.domain import Domain, Label
from policygraph.public.policy import Policy
from policygraph.public.query.cuboids import CuboidQuery
from policygraph.published.cubes.errors import factors_at, within_95
from policygraph.published.release import METADATA, Release, Table

__all__ = ["CubeRelease", "Labels", "cube_table"]


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
    domain: Domain, names: tuple[str, ...], values: Floats, deviation: float, within: float
) -> Table:
    """One table of a cube, its labels left for later."""
    labels = cast("tuple[Any, ...]", Labels(domain, names))
    return Table(" x ".join(names) or "total", names, labels, values, deviation, within)


class CubeRelease(Release):
    """Noisy cuboids with all that is needed to use and to check them.

    Examples
    --------
    >>> import policygraph as pg
    >>> from policygraph.private.mechanisms.cube import Cube
    >>> domain = pg.Domain({"sex": ["F", "M"], "age": 3})
    >>> query = pg.queries.all_cuboids(domain)
    >>> ready = Cube("all").calibrate(query, pg.Policy(domain), pg.Epsilon(1))
    >>> made = ready.run([5, 0, 2, 4, 1, 9], pg.SeededSource(1))
    >>> sums = made.cuboid("sex", "age").values.reshape(2, 3).sum(axis=1)
    >>> bool((sums == made.cuboid("sex").values).all())
    True
    >>> round(made.variance("sex"), 2), round(made.variance("sex", "age"), 2)
    (15.92, 15.92)
    """

    @cached_property
    def domain(self) -> Domain:
        """The domain of the records."""
        domain = Policy.from_spec(self.record["policy"]).domain
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

    def variance(self, *names: str) -> float:
        """Variance of the noise of one cell of a cuboid; 0 where it is exact.

        Raises
        ------
        InputError
            When the cuboid cannot be computed from what was measured.
        """
        return self._factor(self.lattice.mask(names)) * float(self.record["noise"]["variance"])

    def _factor(self, mask: int) -> float:
        made = factors_at(
            self.lattice, self.choice, self.known, [mask], consistent=self.record["cube"]["consistent"]
        )
        if not np.isfinite(made[0]):
            raise self._unknown(mask)
        return float(made[0])

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
        if not self.record["cube"]["consistent"]:
            raise InputError(
                f"cuboid {list(self.lattice.names(mask))} was not released, and without consistency the released tables "
                "give it in several ways: expected one that was released.",
                code="cubes.not-released",
                value=self.lattice.names(mask),
            )
        source = self.lattice.source(mask, self._places)
        if source is None:
            raise self._unknown(mask)
        table = np.asarray(self.tables[self._places[source]].values).reshape(self.lattice.shape(source))
        gone = tuple(at for at, axis in enumerate(self.lattice.axes(source)) if not mask >> axis & 1)
        return self._made(mask, np.asarray(table.sum(axis=gone)).ravel())

    def _made(self, mask: int, values: Floats) -> Table:
        noise = self.record["noise"]
        factor = self._factor(mask)
        return cube_table(
            self.domain,
            self.lattice.names(mask),
            values,
            float(np.sqrt(factor * noise["variance"])),
            within_95(factor, noise["distribution"], float(Fraction(noise["parameter"]))),
        )

    def cell(self, **labels: Label) -> tuple[float, float]:
        """One count, given by the labels of some attributes, and its standard deviation.

        Examples
        --------
        ``release.cell(sex="F", age=3)`` is the number of records with both.
        """
        table = self.cuboid(*labels)
        ordered = [labels[name] for name in table.columns]
        at = self.domain.project(list(labels)).index(ordered) if labels else 0
        return float(table.values[at]), float(np.asarray(table.deviation))

    def to_bytes(self) -> bytes:
        """The whole release as the bytes of a Parquet file that holds the numbers without their labels."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        values = pa.chunked_array([pa.array(np.asarray(t.values, dtype=np.float64)) for t in self.tables])
        made = pa.table({"value": values})
        made = made.replace_schema_metadata({METADATA: json.dumps(dict(self.record)).encode()})
        sink = io.BytesIO()
        pq.write_table(made, sink)
        return sink.getvalue()

    @classmethod
    def of_values(cls, values: Floats, record: Mapping[str, Any]) -> CubeRelease:
        """Make a release from its numbers, one table behind the other, and its record."""
        domain = Policy.from_spec(dict(record["policy"])).domain
        tables, start = [], 0
        for part in record["parts"]:
            piece = values[start : start + part["height"]]
            start += part["height"]
            names = tuple(part["columns"])
            errors = float(part["standard_deviation"]), float(part["within_95"])
            tables.append(cube_table(cast("Domain", domain), names, piece, *errors))
        return cls(tuple(tables), record)
