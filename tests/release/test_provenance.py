"""The parts of a record as values: policy, query, loss and certificate, after a round trip through a file."""

from dataclasses import replace

import pytest

import policygraph as pg
from policygraph.errors import InputError, RefusedError

TABLE = pg.Domain({"sex": ["F", "M"], "age": 3})
COUNTS = [5, 0, 2, 4, 1, 9]
CLUB = pg.Network(4)

CASES = {
    "plain": (pg.queries.identity(TABLE), pg.Policy(TABLE), COUNTS, None),
    "facts": (pg.queries.identity(TABLE), pg.Policy(TABLE, constraints=[pg.Cuboid("sex")]), COUNTS, None),
    "graph": (pg.queries.cuboid(TABLE, "age"), pg.Policy(TABLE, pg.PolicyGraph.full(TABLE)), COUNTS, None),
    "cube": (pg.queries.all_cuboids(TABLE), pg.Policy(TABLE), COUNTS, pg.Cube()),
    "strategy": (pg.queries.all_ranges(pg.Domain({"age": 6})), pg.Policy(pg.Domain({"age": 6})), COUNTS, None),
    "network": (pg.queries.mixing(CLUB, "xxyy"), pg.Policy(CLUB), [1, 0, 0, 1, 1, 0], None),
    "nodes": (pg.queries.projected_edges(CLUB, 2), pg.NodePrivacy(CLUB), [1, 0, 0, 1, 1, 0], None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", [pg.Epsilon("1/3"), pg.Rho("1/8")])
def test_a_stored_release_gives_back_what_was_asked(case, loss):
    query, policy, data, mechanism = CASES[case]
    made = pg.release(
        query, policy, data, mechanism=mechanism, rng=pg.SeededRng(1), **{loss.kind: loss.value}
    )
    back = pg.Release.from_parquet(made.to_bytes())
    for each in (made, back):
        assert (each.policy, type(each.policy)) == (policy, type(policy))
        assert each.query.fingerprint == query.fingerprint
        assert each.loss == loss
    if made.record["certificate"] is None:
        with pytest.raises(InputError, match="no certificate"):
            _ = back.certificate
    else:
        assert back.certificate.power == made.certificate.power > 0


@pytest.mark.parametrize("key", ["policy", "query", "loss"])
@pytest.mark.parametrize("garbled", [{}, {"network": 3}, {"kind": 7}, {"domain": {"sex": []}}])
def test_a_garbled_part_is_refused(key, garbled):
    query, policy, data, _ = CASES["plain"]
    made = pg.release(query, policy, data, epsilon=1, rng=pg.SeededRng(1))
    broken = replace(made, record={**made.record, key: garbled})
    with pytest.raises((InputError, RefusedError)):
        getattr(broken, key)
