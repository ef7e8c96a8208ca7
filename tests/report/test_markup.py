"""No text becomes markup, whatever it is."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policygraph.markup import Markup, escape, json_script, notebook, table, tag

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"]) | st.sampled_from("<>&\"'/=`"))


class Seen(HTMLParser):
    """What a reader of HTML sees: elements, their attributes, and text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@given(TEXT)
def test_text_stays_text(text):
    seen = Seen(tag("p", text, title=text, data_of=text))
    assert seen.elements == [("p", {"title": text, "data-of": text})]
    assert seen.text == text


@given(
    st.recursive(
        TEXT | st.integers() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
        max_leaves=8,
    )
)
def test_data_stay_data(value):
    block = json_script(value, "data")
    inside = block.removeprefix('<script type="application/json" id="data">').removesuffix("</script>")
    assert "<" not in inside
    assert ">" not in inside
    assert "&" not in inside
    assert json.loads(inside) == value


def test_markup_is_not_escaped_twice_and_lists_are_taken_apart():
    assert tag("p", [tag("b", "a & b"), None, ["c", 1]]) == "<p><b>a &amp; b</b>c1</p>"
    assert escape(Markup("<b>")) == "<b>"
    assert tag("input", disabled=True, hidden=False, value=0.5) == '<input disabled value="0.5">'


def test_characters_that_no_page_may_hold_are_replaced():
    assert escape("a\x00b\ud800c\x1b[0m") == "a�b�c�[0m"
    assert json_script([float("inf"), float("nan"), 1.5], "x").count("null") == 2


@pytest.mark.parametrize(
    ("name", "attributes"),
    [("p onclick", {}), ("script>", {}), ("p", {"onclick": "1"}), ("p", {"a b": 1}), ("P", {})],
)
def test_names_are_ours(name, attributes):
    with pytest.raises(ValueError, match="names no"):
        tag(name, **attributes)


def test_tables_and_notebooks():
    made = table(["<sex>", "count"], [["<b>", 1]], caption="a & b", numbers=[1])
    assert Seen(made).text == "a & b<sex>count<b>1"
    assert ("td", {"class": "number"}) in Seen(made).elements
    assert "<script" not in notebook("<script>", "<script>")
