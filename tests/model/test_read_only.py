"""Numbers that a fingerprint, a sensitivity or a certificate rests on cannot be changed afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import policygraph as pg
from policygraph.linalg import read_only

LINE, TABLE, NODES = pg.Domain({"x": 4}), pg.Domain({"a": 2, "b": 3}), pg.Network(4)
q = pg.queries


def arrays(thing: Any, path: str, seen: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    """All arrays that an object of the library holds, in its fields and theirs."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, np.ndarray):
        yield path, thing
    elif sparse.issparse(thing):
        for name in ("data", "indices", "indptr"):
            yield f"{path}.{name}", getattr(thing, name)
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from arrays(value, f"{path}[{key!r}]", seen)
    elif isinstance(thing, (list, tuple, set, frozenset)):
        for value in thing:
            yield from arrays(value, f"{path}[]", seen)
    elif type(thing).__module__.startswith("policygraph") and hasattr(thing, "__dict__"):
        for name, value in vars(thing).items():
            # Working storage: nobody hands out what is in it.
            if name != "derived":
                yield from arrays(value, f"{path}.{name}", seen)


QUERIES = [
    q.identity(TABLE),
    q.cuboids(TABLE, [["a"], ["a", "b"]]),
    q.matrix(TABLE, [[1, 2, 0, 0, -1, 3]]),
    q.prefix(LINE),
    q.all_ranges(LINE),
    q.BoxQuery(TABLE, [[0, 0]], [[1, 2]]),
    q.adjacency(NODES),
    q.mixing(NODES, ["a", "a", "b", "b"]),
]
POLICIES = [
    pg.Policy(TABLE, constraints=[pg.Sums([[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]], equals=[3, 4])]),
    pg.Policy(TABLE, constraints=[pg.Cuboid("a"), pg.StructuralZero([(0, 1)])]),
    pg.Policy(TABLE, graph=pg.PolicyGraph.from_edges(TABLE, [(0, 1), (2, 3)])),
    pg.Policy(TABLE, graph=pg.PolicyGraph.partition(TABLE, [[0, 1, 2], [3, 4, 5]])),
    pg.Policy(LINE, graph=pg.PolicyGraph.line(LINE), constraints=[pg.count({"x": [0, 1]})]),
    pg.Policy(NODES, constraints=[pg.Degrees()]),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_no_number_of_a_policy_or_query_can_be_written(policy):
    found = {}
    for query in QUERIES:
        if query.domain == policy.domain:
            certificate = pg.sensitivity(query, policy)
            found |= dict(arrays(certificate.policy, "policy", {}))
            found |= dict(arrays(certificate.query, type(query).__name__, {}))
    assert found
    assert [path for path, array in found.items() if array.flags.writeable] == []


def test_what_is_given_stays_the_users():
    """The numbers are copied: the caller may go on writing into his own array, and no policy sees it."""
    rows = sparse.csr_array(np.array([[1, 1, 0, 0], [0, 0, 1, 1]]))
    fact, query = pg.Sums(rows), q.matrix(LINE, rows)
    before = fact.to_spec(), query.fingerprint
    rows.data[:] = 7
    assert (fact.to_spec(), query.fingerprint) == before
    with pytest.raises(ValueError, match="read-only"):
        fact.matrix.data[0] = 7
    ends = np.array([[0]]), np.array([[2]])
    box = q.BoxQuery(LINE, *ends)
    ends[1][0, 0] = 3
    assert box.high.tolist() == [[2]]


def test_both_kinds_of_matrices_are_made_read_only():
    assert not read_only(np.arange(3)).flags.writeable
    made = read_only(sparse.csc_array(np.eye(2)))
    assert not any(part.flags.writeable for part in (made.data, made.indices, made.indptr))
