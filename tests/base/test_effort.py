"""Budgets of work: what is spent in a share is spent in the whole, and only a caller's clock can cut a search short."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policygraph as pg
from policygraph.effort import Effort


@settings(deadline=None)
@given(
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 9)), max_size=6),
)
def test_a_share_spends_from_the_whole(work: int, parts: list[tuple[int, int, int]]) -> None:
    whole = Effort(work)
    for above, below, spent in parts:
        before = whole.left
        part = whole.share(min(above, below), below)
        part.spend(spent)
        assert before is not None
        assert whole.left == max(0, before - spent)
        assert part.left is not None
        assert part.left <= whole.left
    assert whole.spent == sum(spent for _, _, spent in parts)
    assert whole.done == (whole.left == 0)
    assert not whole.cut_short


def test_without_an_end_nothing_is_done() -> None:
    effort = Effort()
    effort.spend(10**12)
    assert effort.left is None
    assert not effort.done
    assert effort.at_most(5).left == 5
    assert effort.steps(100, 7) == 7


def test_only_a_clock_cuts_short() -> None:
    spent = Effort(1)
    spent.spend()
    assert spent.done
    assert not spent.cut_short
    rung = Effort(seconds=0.0)
    assert rung.share(1, 2).done
    assert rung.cut_short


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "much"])
def test_wrong_efforts_are_told(wrong: object) -> None:
    with pytest.raises(pg.InputError, match="effort="):
        Effort.of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), "long"])
def test_wrong_time_limits_are_told(wrong: object) -> None:
    with pytest.raises(pg.InputError, match="time_limit="):
        Effort.of(None, wrong)  # type: ignore[arg-type]


def test_an_effort_and_a_time_limit_are_one_too_many() -> None:
    with pytest.raises(pg.InputError, match="both"):
        Effort.of(Effort(3), 1.0)
