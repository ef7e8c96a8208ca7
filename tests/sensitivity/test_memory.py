"""Lists of moves are counted before they are built: a policy over six attributes explains itself in little memory."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import policygraph as pg
from policygraph.moves.graver import basis as graver
from policygraph.moves.graver.basis import IncompleteBasisError, graver_basis
from policygraph.moves.strengths import columns as strengths_columns
from policygraph.moves.strengths.capped import capped_moves


@pytest.mark.parametrize(("total", "cells", "capacity"), [*product(range(6), range(1, 5), (None, 1, 2, 3))])
def test_shares_are_counted_as_they_are_listed(total, cells, capacity):
    assert graver._share_count(total, cells, capacity) == len(graver._shares(total, cells, capacity))


@pytest.mark.parametrize("capacity", [None, 2])
def test_a_list_that_would_not_fit_is_refused_before_it_is_built(capacity, monkeypatch):
    built = []
    monkeypatch.setattr(graver, "_vector", lambda *_: built.append(1))
    with pytest.raises(IncompleteBasisError) as caught:
        graver_basis(np.ones((1, 6_000), dtype=np.int64), capacity=capacity)
    assert caught.value.details["reason"] == "entries"
    assert not built
    with pytest.raises(IncompleteBasisError) as caught:
        graver_basis([[1, 1, 2] * 2000], capacity=capacity, max_moves=1000)
    assert caught.value.details["reason"] == "max_moves"
    assert not built


def test_moves_under_a_cap_are_as_many_as_fit(monkeypatch):
    from policygraph.moves.strengths import capped as strengths_capped

    monkeypatch.setattr(strengths_capped, "MOST_ENTRIES", 6 * 10)
    with pytest.raises(pg.RefusedError) as caught:
        capped_moves(np.ones((1, 6), dtype=np.int64), 2)
    assert caught.value.code == "moves.cap-moves"
    assert len(capped_moves(np.ones((1, 5), dtype=np.int64), 2)) == 10


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("wide", [1, 2**40])
def test_lengths_are_the_same_in_pieces(norm, wide, monkeypatch):
    draws = np.random.default_rng(5)
    query, moves = draws.integers(-3, 4, (7, 5)) * wide, draws.integers(-3, 4, (40, 5))
    whole = strengths_columns.lengths(query, moves, norm).tolist()
    monkeypatch.setattr(strengths_columns, "MOST_ANSWERS", 20)
    assert strengths_columns.lengths(query, moves, norm).tolist() == whole
    assert whole == [
        sum(abs(int(x)) if norm == "l1" else int(x) ** 2 for x in query.astype(object) @ m) for m in moves
    ]


# VmHWM is of this program alone; ru_maxrss goes on from what the process that started it had reached.
SIX = """
import re
from pathlib import Path
import policygraph as pg
from policygraph.explain import explain
domain = pg.Domain({"a": 4, "b": 5, "c": 6, "d": 7, "e": 8, "f": 4})
policy = pg.Policy(domain, constraints=[pg.Cuboid("a", "b"), pg.Cuboid("b", "c")])
made = explain(pg.queries.identity(domain), policy)
assert made.certificate.exact, made.certificate
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux")
def test_a_policy_over_six_attributes_is_explained_in_little_memory():
    done = subprocess.run([sys.executable, "-c", SIX], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 400_000, "kilobytes"
