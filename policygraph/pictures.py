"""What all pictures share: a blank figure, labels that fit, and the file. Owns :func:`blank`, :func:`keep` and :func:`short`.

matplotlib is loaded when the first picture is made, and no window is opened: a figure is returned, which notebooks show.
"""

from __future__ import annotations

import io
import re
import textwrap
from pathlib import Path
from typing import Any

from policygraph.errors import InputError
from policygraph.output import replacing

__all__ = ["blank", "check_picture", "keep", "label", "short", "wrapped"]

MARK, INK, SOFT, LINE = "#20588a", "#1c1b19", "#57544e", "#d9d5cb"
GONE, CAME = "#a8321f", "#1b6e46"
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def _missing(cause: ImportError) -> InputError:
    return InputError("drawing needs matplotlib: pip install 'policygraph[plot]'.", code="graph.matplotlib")


def check_picture(target: str | Path) -> None:
    """Refuse a picture file whose folder is missing, or whose ending names no kind of picture."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as cause:
        raise _missing(cause) from cause
    path = Path(target)
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in kinds:
        raise InputError(
            f"{path}: expected the ending of a picture, such as .png, .svg or .pdf.",
            code="graph.picture",
            value=str(path),
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "it is a folder" if path.is_dir() else f"the folder {path.absolute().parent} does not exist"
        raise InputError(f"cannot write {path}: {what}.", code="graph.picture", value=str(path))


def blank(width: float, height: float, target: Any = None) -> Any:
    """A figure without axes, in inches; a file that it is meant for is checked first."""
    try:
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        figure = _kind()
    except ImportError as cause:
        raise _missing(cause) from cause
    if target is not None:
        check_picture(target)
    return figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))


def _kind() -> Any:
    """Figures that notebooks show, whether somebody imported pyplot or not."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            sink = io.BytesIO()
            self.savefig(sink, format="png", dpi=100)
            return sink.getvalue()

    return ShownFigure


def keep(figure: Any, target: str | Path | None) -> Any:
    """Write a figure into a file, if one is named, and return it."""
    if target is not None:
        with replacing(target) as draft:
            figure.savefig(draft, dpi=150)
    return figure


def short(text: str, most: int = 14) -> str:
    """A label that fits, with dots in place of its middle.

    Examples
    --------
    >>> short("Married-spouse-absent")
    'Married…absent'
    """
    if len(text) <= most:
        return text
    kept = most - 1
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"


def label(text: object, most: int = 14) -> str:
    r"""A label of a picture: short, and no formula, whatever stands in it.

    Examples
    --------
    >>> label("$10 to $20")
    '\\$10 to \\$20'
    """
    return short(_straight(str(text)), most).replace("$", r"\$")


def wrapped(text: str, width: int) -> str:
    r"""A title in lines of at most so many characters, and in three lines at most.

    Examples
    --------
    >>> wrapped("workclass x education", 12)
    'workclass x\neducation'
    """
    return "\n".join(textwrap.wrap(_straight(text), width, max_lines=3, placeholder=" …")).replace("$", r"\$")


def _straight(text: str) -> str:
    """The text without marks that turn the direction of what follows them."""
    return _TURNING.sub("\ufffd", text)


def quiet(axes: Any) -> None:
    """Axes without a frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.tick_params(colors=SOFT, labelsize=9)


def thousands(axis: Any, *, logarithmic: bool = False) -> None:
    """Numbers of an axis with separators, few enough not to run into each other."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    if logarithmic:
        axis.set_minor_formatter(NullFormatter())
        low, high = axis.get_view_interval()
        if 0 < low < high < 1000 * low:
            # powers of ten alone would be one or two numbers
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    else:
        axis.set_major_locator(MaxNLocator(5))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:,.6g}" if value < 1e6 else f"{value / 1e6:,.6g}m")
    )
