"""HTML and SVG whose text cannot become code. Owns :class:`Markup`, :func:`tag` and :func:`json_script`.

Labels, names of attributes and messages come from data and policies that somebody else wrote. Everything that is not :class:`Markup` is escaped when it
becomes part of an element, whether as text or as the value of an attribute, and only :func:`tag` and :func:`json_script` make :class:`Markup`.
"""

from __future__ import annotations

import html
import json
import math
import re
from typing import Any

__all__ = ["Markup", "json_script", "notebook", "table", "tag"]

VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta"})
_NAME = re.compile(r"[a-z][A-Za-z0-9]*")
_ATTRIBUTE = re.compile(r"[A-Za-z][A-Za-z0-9:-]*")
# No page may hold these: control characters other than white space, halves of characters, and marks that turn the direction of the text that follows
# them, so that a label could rewrite the words and numbers beside it. (Hebrew and Arabic labels need none of these marks.)
_BROKEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """The text as it may stand between tags and in quoted attributes; markup stays what it is.

    Examples
    --------
    >>> escape("a < b & 'c'")
    'a &lt; b &amp; &#x27;c&#x27;'
    """
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(_BROKEN.sub("\ufffd", str(text)), quote=True))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """Make an element.

    Parameters
    ----------
    name
        Its name.
    children
        Its content: markup, text (which is escaped), lists of these; None is left out.
    attributes
        Its attributes; ``_`` stands for ``-``, at the end for nothing. True is an attribute without a value, None and False are none.

    Examples
    --------
    >>> tag("p", "1 < 2 ", tag("b", "really"), class_="note", data_of='"sex"')
    '<p class="note" data-of="&quot;sex&quot;">1 &lt; 2 <b>really</b></p>'
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} names no element")
    words = [name]
    for key, value in attributes.items():
        written = key.rstrip("_").replace("_", "-")
        if not _ATTRIBUTE.fullmatch(written) or written.lower().startswith("on"):
            raise ValueError(f"{key!r} names no attribute")
        if value is None or value is False:
            continue
        words.append(written if value is True else f'{written}="{escape(_number(value))}"')
    start = f"<{' '.join(words)}>"
    return Markup(start if name in VOID else f"{start}{join(children)}</{name}>")


def join(children: Any) -> Markup:
    """Markup and escaped text one after the other; lists are taken apart."""
    made = []
    for child in children:
        if child is None:
            continue
        made.append(join(child) if isinstance(child, (list, tuple)) else escape(child))
    return Markup("".join(made))


def _number(value: Any) -> Any:
    """A coordinate with at most two decimals; anything else as it is."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def json_script(value: Any, name: str) -> Markup:
    r"""A block of data for the script of a page, which no text in it can end.

    Examples
    --------
    >>> json_script(["</script>"], "labels")
    '<script type="application/json" id="labels">["\\u003c/script\\u003e"]</script>'
    """
    text = json.dumps(_plain(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(f'<script type="application/json" id="{escape(name)}">{text}</script>')


def _plain(value: Any) -> Any:
    """The value without infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _plain(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(below) for below in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(head: Any, rows: Any, *, caption: str | None = None, numbers: Any = ()) -> Markup:
    """A table with a head; ``numbers`` are the positions of columns that are set flush right.

    Examples
    --------
    >>> table(["sex"], [["F"]])
    '<table><thead><tr><th scope="col">sex</th></tr></thead><tbody><tr><td>F</td></tr></tbody></table>'
    """
    aligned = set(numbers)

    def kind(at: int) -> str | None:
        return "number" if at in aligned else None

    return tag(
        "table",
        None if caption is None else tag("caption", caption),
        tag(
            "thead",
            tag("tr", [tag("th", text, scope="col", class_=kind(at)) for at, text in enumerate(head)]),
        ),
        tag(
            "tbody",
            [tag("tr", [tag("td", cell, class_=kind(at)) for at, cell in enumerate(row)]) for row in rows],
        ),
    )


_STYLE = (
    ".policygraph{font-family:system-ui,sans-serif;font-size:.9em;line-height:1.45;max-width:60em}"
    ".policygraph table{border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums}"
    ".policygraph th,.policygraph td{padding:.2em .7em .2em 0;text-align:left;vertical-align:top;border:0;"
    "border-bottom:1px solid rgba(128,128,128,.35);background:none;color:inherit}"
    ".policygraph .number{text-align:right}.policygraph p{margin:.3em 0}"
    ".policygraph .title{font-weight:600}.policygraph .faint{opacity:.75}"
    ".policygraph .warning{border-left:4px solid #b3261e;padding-left:.6em;font-weight:600}"
)


def notebook(title: str, *children: Any) -> str:
    """What a notebook shows of an object: the colours of the notebook, light or dark, are kept.

    Examples
    --------
    >>> notebook("Domain", "6 cells").endswith('<p class="title">Domain</p>6 cells</div>')
    True
    """
    style = Markup(f"<style>{_STYLE}</style>")
    return str(tag("div", style, tag("p", title, class_="title"), list(children), class_="policygraph"))
