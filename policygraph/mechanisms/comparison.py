"""What a comparison of mechanisms says. Owns :class:`Comparison` and :class:`Method`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.mechanisms.auto import CLEARLY
from policygraph.model.loss import Loss
from policygraph.output import replacing
from policygraph.sensitivity.request import CUT_SHORT

__all__ = ["PUBLIC_ONLY", "Comparison", "Method"]

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


@dataclass(frozen=True)
class Comparison:
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
    """

    methods: tuple[Method, ...]
    loss: Loss
    runs: int
    cut_short: bool = False

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
        told = [*([CUT_SHORT] if self.cut_short else []), *([PUBLIC_ONLY] if self.runs else [])]
        return "\n".join([*told, first, *text, *self._better()])

    def _better(self) -> list[str]:
        """What a reader who sees that another method is expected to beat ``auto`` wants to know."""
        known = {m.name: m.expected for m in self.methods if m.expected is not None}
        auto = known.get("auto")
        least = min(known, key=lambda name: known[name], default="auto")
        if auto is None or known[least] >= CLEARLY * auto:
            return []
        return [
            f"{least!r} is expected to be better than what auto takes, which does not try all methods: ask for it by name."
        ]

    def plot(self, target: str | Path) -> None:
        """Draw the errors as bars into a picture file.

        Raises
        ------
        InputError
            When matplotlib is missing, or the file cannot be a picture.
        """
        from policygraph.model.graphs.drawing import check_picture

        check_picture(target)
        from matplotlib.figure import Figure

        shown = [m for m in self.methods if m.expected is not None or m.measured is not None]
        figure = Figure(figsize=(8, 1.2 + 0.5 * len(shown)), layout="constrained")
        axes = figure.subplots()
        at = np.arange(len(shown), dtype=np.float64)
        sides = [("expected", -0.2 if self.runs else 0.0)] + ([("measured", 0.2)] if self.runs else [])
        for kind, shift in sides:
            values = [getattr(m, kind) for m in shown]
            there = [k for k, value in enumerate(values) if value]
            bars = axes.barh(at[there] + shift, [values[k] for k in there], height=0.38, label=kind)
            axes.bar_label(bars, [f"{values[k]:.3g}" for k in there], padding=3, fontsize=8)
        axes.set_yticks(at, [m.name for m in shown])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel(f"mean squared error of an answer at {self.loss}")
        axes.margins(x=0.12)
        if self.runs:
            axes.legend()
        with replacing(target) as draft:
            figure.savefig(draft)


def _shown(value: float | None, spread: float | None = None) -> str:
    if value is None:
        return "-"
    if not spread:
        return f"{value:.4g}"
    return f"{value:.4g} ± " + (f"{spread:.2g}" if spread < 10 or spread >= 10_000 else f"{spread:.0f}")
