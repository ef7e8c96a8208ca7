"""All mechanisms side by side. Owns :func:`compare`, :class:`Comparison` and the names of mechanisms.

Expected errors need no data. Measured errors are computed from true counts without noise or charge, so that the data must be public
or simulated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from policygraph.arrow import frame_library
from policygraph.curator import gate
from policygraph.curator.counting import read_data
from policygraph.curator.histogram import Histogram
from policygraph.curator.noise import SeededRng
from policygraph.errors import InputError, PolicyGraphError, RefusedError, shown
from policygraph.exact import Exact, show
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.auto import CLEARLY, choose, nonnegative_mechanism
from policygraph.mechanisms.base import Calibrated, Floats, Ints, Mechanism
from policygraph.mechanisms.candidates import STRATEGY_CELLS, PlugIn, candidates
from policygraph.mechanisms.constrained.mechanism import Confined, FittedNoise
from policygraph.mechanisms.cube.mechanism import Cube, CubeNoise
from policygraph.mechanisms.members import OnMembers, calibrated_under, share_of_record
from policygraph.mechanisms.partitioned.mechanism import PartitionedNoise
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism
from policygraph.mechanisms.transformed.adaptive import AdaptiveEdges
from policygraph.mechanisms.transformed.mechanism import EdgeNoise
from policygraph.model.grouped import Grouped
from policygraph.model.loss import Epsilon, Loss, Rho, loss_of
from policygraph.model.policy import Policy, check_kinds
from policygraph.model.queries.base import Query
from policygraph.model.units import Unit
from policygraph.sensitivity.proofs import CUT_SHORT, shared_proofs
from policygraph.ties import figures, ranked

Many = list[Any] | tuple[Any, ...]
"""Several losses of one kind."""

LOG_FROM = 50
"""Bars are drawn on a logarithmic scale where the longest is more than so many times the shortest."""
PUBLIC_ONLY = (
    "PUBLIC OR SIMULATED DATA ONLY: measured errors are computed from the true counts; they are not noised, not charged to "
    "any ledger, and must not be published for data that is to be protected."
)


@dataclass(frozen=True)
class Method:
    """One line of a comparison.

    Attributes
    ----------
    name
        For people.
    mechanism
        What was calibrated; empty when the method does not apply.
    expected
        Expected mean squared error of an answer, exact or (where the note says so) at most; None when it depends on the data.
    measured
        Mean squared error of an answer over all runs on the given data.
    spread
        Standard error of ``measured``, over the runs.
    seconds
        That calibration took here; it has no part in the order of the methods.
    note
        Why the method does not apply, or what its figures are.
    """

    name: str
    mechanism: str
    expected: float | None
    measured: float | None
    spread: float | None
    seconds: float
    note: str

    @property
    def applies(self) -> bool:
        """Whether the method can answer this query under this policy and loss."""
        return bool(self.mechanism)

    @property
    def figure(self) -> float:
        """What methods are sorted by: measured error, else expected error, else infinity."""
        if self.measured is not None:
            return self.measured
        return float("inf") if self.expected is None else self.expected


class _Frames:
    """What goes out of a comparison into other tools, beside :meth:`table`."""

    def table(self) -> Any:
        """Return the lines as an Arrow table."""
        raise NotImplementedError

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Head and rows of a small table of errors, in words."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """The lines as an Arrow table; the same as :meth:`table`."""
        return self.table()

    def to_pandas(self) -> Any:
        """The lines as a pandas data frame."""
        frame_library("pandas")
        return self.table().to_pandas()

    def to_polars(self) -> Any:
        """The lines as a polars data frame."""
        return frame_library("polars").from_arrow(self.table())

    def to_latex(self) -> str:
        """Root mean squared errors as LaTeX, for the package booktabs."""
        from policygraph.release.latex import booktabs

        return booktabs(*self._cells())


@dataclass(frozen=True, repr=False)
class Comparison(_Frames):
    """Methods for one query, policy and loss, the best first.

    Attributes
    ----------
    methods
        The lines; those that do not apply come last.
    loss
        The privacy loss of each of them.
    runs
        How often each was run on the given data; 0 without data.
    cut_short
        Whether a limit in seconds that the caller set ended a search, so that another run may find other figures.
    why
        What ``auto`` says of its choice, where it was compared.
    """

    methods: tuple[Method, ...]
    loss: Loss
    runs: int
    cut_short: bool = False
    why: str = ""

    @property
    def best(self) -> Method:
        """The method with the smallest measured error or, without data, the smallest expected error."""
        return self.methods[0]

    def __getitem__(self, name: str) -> Method:
        for method in self.methods:
            if method.name == name:
                return method
        names = ", ".join(repr(m.name) for m in self.methods)
        raise InputError(f"method {name!r}: expected one of {names}.", code="compare.method", value=name)

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {
            "loss": self.loss.to_json(),
            "runs": self.runs,
            "warning": PUBLIC_ONLY if self.runs else None,
            "best": self.best.name,
            "methods": [asdict(method) | {"applies": method.applies} for method in self.methods],
            **({"why": self.why} if self.why else {}),
            **({"cut_short": True} if self.cut_short else {}),
        }

    def table(self) -> Any:
        """Return the lines as an Arrow table (``.to_pandas()`` makes a data frame)."""
        import pyarrow as pa

        kinds = [
            ("name", pa.string()),
            ("mechanism", pa.string()),
            ("expected", pa.float64()),
            ("measured", pa.float64()),
            ("spread", pa.float64()),
            ("seconds", pa.float64()),
            ("note", pa.string()),
        ]
        rows = [asdict(method) for method in self.methods]
        return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds})

    def __str__(self) -> str:
        head = ["method", "expected", *(["measured"] if self.runs else []), "note"]
        lines = [
            [m.name, _shown(m.expected), *([_shown(m.measured, m.spread)] if self.runs else []), m.note]
            for m in self.methods
        ]
        wide = [max(len(line[at]) for line in [head, *lines]) for at in range(len(head) - 1)]
        text = [
            "  ".join([cell.ljust(w) for cell, w in zip(line, wide, strict=False)] + line[-1:]).rstrip()
            for line in [head, *lines]
        ]
        first = f"Mean squared error of an answer at {self.loss}" + (
            f", {self.runs} runs." if self.runs else "."
        )
        warnings = [*([CUT_SHORT] if self.cut_short else []), *([PUBLIC_ONLY] if self.runs else [])]
        return "\n".join([*warnings, first, *text, *self._better()])

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        kinds = ["expected", *(["measured"] if self.runs else [])]
        rows = [[m.name, *(_root(getattr(m, kind)) for kind in kinds)] for m in self.methods]
        return ["method", *(f"{kind} error" for kind in kinds)], rows

    def __repr__(self) -> str:
        return f"Comparison({len(self.methods)} methods, {self.loss}, best: {self.best.name!r})"

    def _repr_html_(self) -> str:
        from policygraph.markup import notebook, table, tag

        head, cells = self._cells()
        rows = [[*cell, m.note] for cell, m in zip(cells, self.methods, strict=True)]
        return notebook(
            f"Comparison at {self.loss}: root mean squared error of an answer",
            tag("p", PUBLIC_ONLY, class_="warning") if self.runs else None,
            table([*head, "note"], rows, numbers=range(1, len(head))),
            [tag("p", line) for line in self._better()],
        )

    def _better(self) -> list[str]:
        """What a reader who sees that another method is expected to beat ``auto`` wants to know."""
        known = {m.name: m.expected for m in self.methods if m.expected is not None}
        auto = known.get("auto")
        least = min(known, key=lambda name: known[name], default="auto")
        if auto is None or known[least] >= CLEARLY * auto:
            return []
        return [f"{least!r} is expected to be better than what auto takes: ask for it by name. {self.why}"]

    def plot(self, target: str | Path | None = None) -> Any:
        """Draw the errors as bars: the root of the mean squared error, in units of the answers (people, for counts).

        Parameters
        ----------
        target
            A picture file; None only returns the figure, which notebooks show.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            When matplotlib is missing, or the file cannot be a picture.
        """
        from policygraph.pictures import MARK, SOFT, blank, keep, label, quiet, thousands, wrapped

        drawn = [m for m in self.methods if m.expected is not None or m.measured is not None]
        figure = blank(8.5, 1.3 + (0.5 if self.runs else 0.36) * len(drawn), target)
        axes = figure.subplots()
        at = np.arange(len(drawn), dtype=np.float64)
        sides = [("expected", -0.2 if self.runs else 0.0, MARK)]
        sides += [("measured", 0.2, "#d08a2e")] if self.runs else []
        largest, smallest = 0.0, np.inf
        for kind, shift, colour in sides:
            values = [None if getattr(m, kind) is None else np.sqrt(getattr(m, kind)) for m in drawn]
            there = [k for k, value in enumerate(values) if value is not None]
            sizes = [float(values[k] or 0.0) for k in there]
            largest = max([largest, *sizes])
            smallest = min([smallest, *(size for size in sizes if size > 0)])
            height = 0.38 if self.runs else 0.66
            bars = axes.barh(at[there] + shift, sizes, height=height, label=kind, color=colour)
            axes.bar_label(
                bars,
                [f"{size:,.0f}" if size >= 100 else f"{size:.3g}" for size in sizes],
                padding=3,
                fontsize=8.5,
            )
        axes.set_yticks(at, [label(m.name, 44) for m in drawn])
        axes.invert_yaxis()
        # Bars have a zero, and a logarithm has none: only where the short ones would not be seen.
        wide = largest > LOG_FROM * smallest
        if wide:
            axes.set_xscale("log")
        axes.set_xlabel(
            "root mean squared error of an answer" + (", logarithmic" if wide else ""), color=SOFT, fontsize=9
        )
        axes.set_title(wrapped(f"Error at {self.loss}", 70), fontsize=10.5, loc="left")
        axes.margins(x=0.14)
        quiet(axes)
        thousands(axes.xaxis, logarithmic=wide)
        if self.runs:
            figure.legend(loc="outside lower right", frameon=False, ncols=2, fontsize=9)
        return keep(figure, target)


@dataclass(frozen=True, repr=False)
class LossSweep(_Frames):
    """The same comparison at several losses.

    Attributes
    ----------
    comparisons
        One for each loss, in the order in which they were given; also by position, ``sweep[0]``.
    """

    comparisons: tuple[Comparison, ...]

    @property
    def names(self) -> list[str]:
        """Methods in the order of the first comparison."""
        return [method.name for method in self.comparisons[0].methods]

    def __len__(self) -> int:
        return len(self.comparisons)

    def __getitem__(self, at: int) -> Comparison:
        return self.comparisons[at]

    def to_dict(self) -> dict[str, Any]:
        """Plain form."""
        return {"comparisons": [each.to_dict() for each in self.comparisons]}

    def table(self) -> Any:
        """All lines as an Arrow table, with the loss in the first column."""
        import pyarrow as pa

        pieces = []
        for each in self.comparisons:
            lines = each.table()
            pieces.append(lines.add_column(0, "loss", pa.array([str(each.loss)] * len(lines))))
        return pa.concat_tables(pieces)

    def errors(self, name: str) -> list[float | None]:
        """Root of the mean squared error of a method at each loss: measured where data were given, else expected."""
        lines = [each[name] for each in self.comparisons]
        return [None if not isfinite(line.figure) else line.figure**0.5 for line in lines]

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        head = ["method", *(str(each.loss) for each in self.comparisons)]
        return head, [[name, *map(_figure, self.errors(name))] for name in self.names]

    def __str__(self) -> str:
        head, rows = self._cells()
        wide = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
        text = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip()
            for row in [head, *rows]
        ]
        lead = [PUBLIC_ONLY] if self[0].runs else []
        return "\n".join([*lead, "Root mean squared error of an answer.", *text])

    def __repr__(self) -> str:
        return f"LossSweep({len(self.names)} methods at {', '.join(str(each.loss) for each in self.comparisons)})"

    def _repr_html_(self) -> str:
        from policygraph.markup import notebook, table, tag

        head, rows = self._cells()
        warning = tag("p", PUBLIC_ONLY, class_="warning") if self[0].runs else None
        made = table(head, rows, numbers=range(1, len(head)))
        return notebook("Root mean squared error of an answer", warning, made)

    def plot(self, target: str | Path | None = None) -> Any:
        """Draw the error of each method against the loss, on logarithmic axes, on which noise for a loss is a straight line.

        Parameters
        ----------
        target
            A picture file; None only returns the figure, which notebooks show.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from policygraph.pictures import SOFT, blank, keep, label, quiet, thousands

        figure = blank(8.5, 4.4, target)
        axes = figure.subplots()
        losses = [float(each.loss.value) for each in self.comparisons]
        marks = "os^Dv<>pP*X"
        # Methods that are the same everywhere are one line, which names them all.
        together: dict[tuple[tuple[float, float], ...], list[str]] = {}
        for name in self.names:
            known = [(x, y) for x, y in zip(losses, self.errors(name), strict=True) if y]
            if known:
                together.setdefault(tuple(sorted(known)), []).append(name)
        for at, (line, names) in enumerate(together.items()):
            mark = f"-{marks[at % len(marks)]}"
            axes.plot(*zip(*line, strict=True), mark, lw=1.4, ms=5, label=label(", ".join(names), 32))
        axes.set(xscale="log", yscale="log")
        axes.set_xlabel(self[0].loss.to_json()["kind"], color=SOFT, fontsize=9)
        axes.set_ylabel("root mean squared error of an answer", color=SOFT, fontsize=9)
        quiet(axes)
        for axis in (axes.xaxis, axes.yaxis):
            thousands(axis, logarithmic=True)
        axes.set_xticks(losses, [f"{loss:.3g}" for loss in losses])
        figure.legend(loc="outside right upper", frameon=False, fontsize=9)
        return keep(figure, target)


def _root(value: float | None) -> str:
    return _figure(None if value is None else value**0.5)


def _figure(size: float | None) -> str:
    return "-" if size is None else f"{size:,.0f}" if size >= 1000 else f"{size:.3g}"


def _shown(value: float | None, spread: float | None = None) -> str:
    if value is None:
        return "-"
    # Settled first: a figure that ends in a 5 must not be rounded by the last digits of a float.
    if not spread:
        return f"{figures(value):.4g}"
    return f"{figures(value):.4g} ± " + (
        f"{spread:.2g}" if spread < 10 or spread >= 10_000 else f"{spread:.0f}"
    )


def standard_methods(
    query: Query, policy: Policy | Grouped, loss: Loss, cube: Mapping[str, Any] | None = None
) -> dict[str, Mechanism]:
    """The methods that are worth a comparison for this kind of query, policy and loss, by their names.

    ``cube`` are the arguments of a cube that a policy file asks for, in place of the usual ones.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 8})
    >>> list(standard_methods(pg.queries.identity(domain), pg.Policy(domain), pg.Rho(1)))
    ['every answer', 'edges', 'edges, consistent', 'adaptive', 'cells', 'tree', 'wavelet', 'optimised strategy']
    """
    policy, loss = _of_records(policy, loss)
    out = {
        each.name: each.mechanism(query, policy, loss)
        for each in candidates()
        if each.is_listed(query, policy, loss)
    }
    return out if cube is None else {**out, "cube": Cube(**cube)}


def _of_records(policy: Policy | Grouped, loss: Loss) -> tuple[Policy, Loss]:
    """The policy and the loss that a mechanism for single records is asked for: under a unit those of one record."""
    if isinstance(policy, Unit):
        return policy.records, share_of_record(loss, policy.at_most)
    if isinstance(policy, Grouped):
        raise policy.refused()
    return policy, loss


def named_mechanism(
    name: str | None,
    query: Query,
    policy: Policy | Grouped,
    loss: Loss,
    cube: Mapping[str, Any] | None = None,
    *,
    nonnegative: bool = False,
) -> Mechanism | Literal["auto"]:
    """Find the mechanism behind a name of a comparison; without a name the cube of a policy file, if it asks for one.

    ``nonnegative`` asks for counts that are not negative, where no mechanism is named.

    Raises
    ------
    InputError
        When no comparison of this query, policy and loss has that name, or one is named beside ``nonnegative``.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 8})
    >>> named_mechanism("edges", pg.queries.identity(domain), pg.Policy(domain), pg.Rho(1)).name
    'TransformedGaussian'
    """
    if nonnegative:
        check_alone(name)
        if cube is None:
            return nonnegative_mechanism(query, _of_records(policy, loss)[0])
        return Cube(**{**cube, "nonnegative": cube.get("nonnegative") or True})
    if name is None:
        return "auto" if cube is None else Cube(**cube)
    if name == "auto":
        return "auto"
    known = standard_methods(query, policy, loss, cube)
    if name not in known:
        raise _unknown([name], known)
    return known[name]


def check_alone(mechanism: object) -> None:
    """Refuse a mechanism beside ``nonnegative``, which chooses one.

    Raises
    ------
    InputError
        When a mechanism is given.
    """
    if mechanism is not None and mechanism != "auto":
        raise InputError(
            f"nonnegative beside the mechanism {mechanism!r}: expected one of the two. The mechanisms 'adaptive' and 'edges, consistent' publish non-negative counts, and so does "
            "pg.Cube(nonnegative=True).",
            code="release.nonnegative",
            value=mechanism,
        )


def _unknown(names: list[str], known: Mapping[str, Mechanism]) -> InputError:
    every = [*known, "auto"]
    near = get_close_matches(str(names[0]), every, 1) if names else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if names and get_close_matches(str(names[0]).lower(), ["laplace", "gaussian"], 1):
        hint = " Laplace noise on each answer, or Gaussian noise for a rho, is 'every answer'."
    return InputError(
        f"mechanism {', '.join(map(repr, names)) or '(none)'}: expected one of {', '.join(map(repr, every))}, or in Python a mechanism.{hint}",
        code="compare.method",
        value=names,
    )


@overload
def compare(
    query: Query,
    policy: Policy | Grouped,
    loss: Loss | None = None,
    methods: Mapping[str, Mechanism] | Sequence[str] | None = None,
    data: Any = None,
    *,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    delta: Exact | None = None,
    runs: int = 10,
    seed: int | str = 0,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    engine: Any = None,
    cube: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    time_limit: float | None = None,
) -> Comparison: ...


@overload
def compare(
    query: Query,
    policy: Policy | Grouped,
    loss: None = None,
    methods: Mapping[str, Mechanism] | Sequence[str] | None = None,
    data: Any = None,
    *,
    epsilon: Many | None = None,
    rho: Many | None = None,
    delta: Exact | None = None,
    runs: int = 10,
    seed: int | str = 0,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    engine: Any = None,
    cube: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    time_limit: float | None = None,
) -> LossSweep: ...


def compare(
    query: Query,
    policy: Policy | Grouped,
    loss: Loss | None = None,
    methods: Mapping[str, Mechanism] | Sequence[str] | None = None,
    data: Any = None,
    *,
    epsilon: Exact | Many | None = None,
    rho: Exact | Many | None = None,
    delta: Exact | None = None,
    runs: int = 10,
    seed: int | str = 0,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    engine: Any = None,
    cube: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    time_limit: float | None = None,
) -> Comparison | LossSweep:
    """Compare mechanisms by their expected errors and, on public or simulated data, by measured errors.

    Parameters
    ----------
    query, policy
        What to release, and what to hide.
    loss
        What a release may cost, such as ``pg.Epsilon("0.1")``; or give ``epsilon``, ``rho``, or ``epsilon`` with ``delta``.
    methods
        Mechanisms by name, or names of :func:`standard_methods`; None for all of these, and for what ``"auto"`` takes.
    data
        PUBLIC OR SIMULATED data, anything that :func:`policygraph.release` takes: measured errors are neither noised nor charged.
    epsilon, rho, delta
        The loss as numbers, in place of ``loss``. A list of epsilons, or of rhos, compares at each of them.
    runs
        How often each mechanism is run on the data.
    seed
        Of the noise of these runs, which is repeatable and therefore not private.
    columns, edges, engine
        How to read the data; as for :func:`policygraph.release`.
    cube
        Arguments of ``pg.Cube`` for the method ``"cube"``, as a policy file has them.
    progress
        Called with a sentence before each method.
    time_limit
        Seconds for all searches of the comparison, where a limit in time is wanted; a comparison that it cut short says so.

    Returns
    -------
    Comparison or LossSweep
        A table (``print``, ``to_dict``, ``table``) and a plot; a :class:`LossSweep` for a list of losses.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 100})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> found = compare(pg.queries.all_ranges(domain), policy, methods=["every answer", "edges", "tree"], epsilon="0.1")
    >>> print(found)
    Mean squared error of an answer at epsilon = 0.1.
    method        expected  note
    edges         391.8     noise on the edges of the policy graph
    tree          1361      tree of 16 over the prefix sums along age
    every answer  2e+06     sensitivity 100

    >>> print(compare(pg.queries.identity(domain), policy, methods=["every answer", "edges"], epsilon=["0.1", 1]))
    Root mean squared error of an answer.
    method        epsilon = 0.1  epsilon = 1
    edges         19.9           1.91
    every answer  28.3           2.8
    """
    if isinstance(epsilon, (list, tuple)) or isinstance(rho, (list, tuple)):
        return _swept(
            epsilon,
            rho,
            lambda one, other: compare(
                query,
                policy,
                loss,
                methods,
                data,
                epsilon=one,
                rho=other,
                delta=delta,
                runs=runs,
                seed=seed,
                columns=columns,
                edges=edges,
                engine=engine,
                cube=cube,
                progress=progress,
            ),
            time_limit,
        )
    check_kinds(query, policy, released=True, kinds=(Unit,))
    spent = _loss(loss, epsilon, rho, delta)
    tell = progress or (lambda stage: None)
    chosen = _named(methods, standard_methods(query, policy, spent, cube))
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise InputError(f"runs={runs!r}: expected a whole number >= 1.", code="compare.runs", value=runs)
    counts = None if data is None else _counts(data, query, policy, columns, edges, engine)
    made, why = [], ""
    with shared_proofs(time_limit) as proofs:
        for at, (name, mechanism) in enumerate(chosen, 1):
            tell(f"{name} ({at} of {len(chosen)})")
            row, ready = _row(name, mechanism, query, policy, spent, counts, runs, seed)
            made.append(row)
            why = ready.why if name == "auto" and ready is not None else why
    apply = ranked((row for row in made if row.applies), key=lambda row: row.figure)
    rows = [*apply, *(row for row in made if not row.applies)]
    if not rows[0].applies:
        raise RefusedError(
            f"none of the methods applies; {rows[0].name}: {rows[0].note}", code="compare.none"
        )
    return Comparison(tuple(rows), spent, 0 if counts is None else runs, proofs.cut_short, why)


def _swept(
    epsilon: Any,
    rho: Any,
    run: Callable[[Exact | None, Exact | None], Comparison],
    time_limit: float | None,
) -> LossSweep:
    """The comparison at each loss; what is proved for one serves the others."""
    given = [each for each in (epsilon, rho) if each is not None]
    if len(given) != 1 or not given[0]:
        raise InputError(
            f"epsilon={epsilon!r}, rho={rho!r}: expected one list of at least one loss.",
            code="compare.losses",
            value=given,
        )
    with shared_proofs(time_limit):
        return LossSweep(tuple(run(each, None) if rho is None else run(None, each) for each in given[0]))


def _loss(loss: Any, epsilon: Exact | None, rho: Exact | None, delta: Exact | None) -> Loss:
    if loss is None:
        return loss_of(epsilon, rho, delta)
    if not isinstance(loss, (Epsilon, Rho)) or not epsilon is rho is delta is None:
        raise InputError(
            f"loss={shown(loss)}: expected a loss such as pg.Epsilon('0.1'), or epsilon=, rho=, or epsilon= with delta=, and one of "
            "them only.",
            code="release.loss",
            value=loss,
        )
    return loss


def _named(
    methods: Mapping[str, Mechanism] | Sequence[str] | None, known: dict[str, Mechanism]
) -> list[tuple[str, Mechanism | None]]:
    """Names and mechanisms; None is what is chosen."""
    if methods is None:
        return [*known.items(), ("auto", None)]
    if isinstance(methods, Mapping):
        wrong = [name for name, each in methods.items() if not isinstance(each, Mechanism)]
        found: list[tuple[str, Mechanism | None]] = [
            (name, each) for name, each in methods.items() if name not in wrong
        ]
    else:
        names = [methods] if isinstance(methods, str) else list(methods)
        wrong = [name for name in names if name not in known and name != "auto"]
        found = [(name, None if name == "auto" else known[name]) for name in names if name not in wrong]
    if wrong or not found:
        raise _unknown(wrong, known)
    return found


def _counts(
    data: Any,
    query: Query,
    policy: Policy | Grouped,
    columns: Mapping[str, str] | None,
    edges: Mapping[str, str] | None,
    engine: Any,
) -> Ints:
    if isinstance(data, Histogram):
        counts = data  # of units, so that whoever counted has bounded them
    else:
        counts = read_data(data, policy, columns, edges, engine)  # type: ignore[arg-type]
    query.check_domain(counts.domain)
    table = counts.vector()
    policy.check_table(table)
    return table


def _row(
    name: str,
    mechanism: Mechanism | None,
    query: Query,
    policy: Policy | Grouped,
    loss: Loss,
    counts: Ints | None,
    runs: int,
    seed: int | str,
) -> tuple[Method, Calibrated | None]:
    start = time.perf_counter()
    try:
        if isinstance(mechanism, MatrixMechanism) and query.domain.size > STRATEGY_CELLS:
            raise RefusedError(f"not compared for more than {STRATEGY_CELLS:,} cells", code="compare.cells")
        ready = (
            choose(query, policy, loss)
            if mechanism is None
            else calibrated_under(mechanism, query, policy, loss)
        )
        expected, note = _expected(ready)
        if isinstance(mechanism, PlugIn):
            note = f"{note}; {mechanism.origin}" if note else mechanism.origin
    except (RefusedError, InputError) as refusal:
        said = _first_sentence(refusal)
        return Method(name, "", None, None, None, time.perf_counter() - start, said), None
    seconds = time.perf_counter() - start
    if counts is None:
        return Method(name, ready.mechanism, expected, None, None, seconds, note), ready
    errors = np.fromiter(_measured(ready, counts, runs, f"{seed} {name}"), dtype=np.float64, count=runs)
    spread = float(errors.std(ddof=1) / np.sqrt(runs)) if runs > 1 else None
    return Method(name, ready.mechanism, expected, float(errors.mean()), spread, seconds, note), ready


def _first_sentence(refusal: PolicyGraphError) -> str:
    return "does not apply: " + str(refusal).split(". ", 1)[0].rstrip(".")


def _expected(ready: Calibrated) -> tuple[float | None, str]:
    """Expected mean squared error of an answer, and what it is."""
    if isinstance(ready, OnMembers):
        of_record, note = _expected(ready.inner)
        share = f"each of {ready.policy.at_most} records of one {ready.policy.column} at {ready.inner.loss}"
        return of_record, f"{note}; {share}" if note else share
    if isinstance(ready, PartitionedNoise):
        return None, "buckets chosen privately; the error depends on the data"
    if isinstance(ready, AdaptiveEdges):
        return None, "adapts to the shape of the data, whole and non-negative; the error depends on the data"
    if isinstance(ready, EdgeNoise) and ready.consistent:
        return None, "the nearest whole non-negative cells; the error depends on the data"
    mean = ready.total_error / ready.query.height
    if not isfinite(mean):
        return None, "the error depends on the data"
    if isinstance(ready, FittedNoise):
        return mean, "noise, then a fit to the public facts in whole numbers"
    if isinstance(ready, EdgeNoise):
        return mean, "noise on the edges of the policy graph"
    if isinstance(ready, Confined):
        return mean, "noise inside what the public facts leave free"
    if isinstance(ready, CubeNoise):
        more = "" if ready.finish.plain else "; the expected error is that of the least-squares estimates"
        return mean, f"the tables that serve all of them best, then least squares{more}"
    measured = getattr(ready, "strategy", None)
    if measured is not None and hasattr(measured, "describe"):
        return mean, str(measured.describe())
    if isinstance(ready, Additive):
        root = "" if ready.sensitivity.norm == "l1" else "the root of "
        return mean, f"sensitivity {root}{show(ready.sensitivity.power)}"
    return mean, ""


def _measured(ready: Calibrated, counts: Ints, runs: int, seed: str) -> Iterator[float]:
    """Mean squared error of an answer in each run."""
    factors = [float(ready.factor(at)) for at in range(len(ready.query.parts))]
    heights = [part.height for part in ready.query.parts]
    truth: Floats = ready.query.answer(counts) * np.repeat(factors, heights)
    rng = SeededRng(seed)
    for _ in range(runs):
        # Not ready.run: under a unit whoever counted has bounded these counts.
        made = gate.run(ready, counts, rng)
        values = np.concatenate([np.asarray(table.values, dtype=np.float64) for table in made.tables])
        yield float(np.mean((values - truth) ** 2))
