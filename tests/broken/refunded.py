"""A partition whose steps do not share the loss: what was spent is given back, and spent again."""

from __future__ import annotations

from dataclasses import replace

import policygraph as pg

__all__ = ["counted_twice"]


def counted_twice():
    """Cells at the whole loss, and buckets at the whole loss again."""
    domain = pg.Domain({"age": 4})
    query, policy = pg.queries.identity(domain), pg.Policy(domain)
    ready = pg.Partitioned().calibrate(query, policy, pg.Epsilon(2))
    return replace(ready, bucket_loss=ready.loss, cell_loss=ready.loss, _ready={}), policy, query
