"""Sensitivities of histograms, cumulative histograms and ranges under policy graphs, and section 8: policies with public facts."""

from __future__ import annotations

import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script("blowfish-2014", "Sensitivities under policies", "policygraph/sensitivity/rungs/", 10)
SIZE = 32


def value(query: pg.Query, policy: pg.Policy) -> str:
    found = pg.sensitivity(query, policy)
    return show(found.value) if found.exact else f"at most {show(found.value)}"


def table(kind: str, known: str, *sizes: int) -> pg.Policy:
    domain = pg.Domain({"ABC"[i]: n for i, n in enumerate(sizes)})
    graph = pg.PolicyGraph.full(domain) if kind == "full" else pg.PolicyGraph.attribute(domain)
    return pg.Policy(domain, graph, [pg.Cuboid(*word) for word in known.split()])


def run(small: bool) -> Result:
    domain = pg.Domain({"x": SIZE})
    cells, sums = pg.queries.identity(domain), pg.queries.prefix(domain)
    line, full = pg.PolicyGraph.line(domain), pg.PolicyGraph.full(domain)
    ready = pg.TransformedLaplace().calibrate(
        pg.queries.all_ranges(domain), pg.Policy(domain, line), pg.Epsilon("0.01")
    )
    widest = float(np.max(ready.variances)) * 0.01**2
    rows = [
        Row(
            "histograms",
            "histogram of 32 values, full graph; line",
            "2; 2",
            f"{value(cells, pg.Policy(domain, full))}; {value(cells, pg.Policy(domain, line))}",
        ),
        Row(
            "cumulative histograms",
            "cumulative histogram of 32 values, full graph",
            "31",
            value(sums, pg.Policy(domain, full)),
        ),
        Row(
            "cumulative histograms",
            "cumulative histogram of 32 values, line",
            "1",
            value(sums, pg.Policy(domain, line)),
        ),
        Row(
            "cumulative histograms",
            "cumulative histogram of 32 values, threshold 4",
            "4",
            value(sums, pg.Policy(domain, pg.PolicyGraph.threshold(domain, 4))),
        ),
        Row(
            "cumulative histograms",
            "largest variance of a range query by the ordered mechanism on a line, times epsilon^2 (epsilon 0.01)",
            "at most 4",
            show(widest, 4),
            holds=widest <= 4,
            code="policygraph/mechanisms/transformed/",
        ),
    ]
    for kind, known, sizes, published, reason in (
        ("full", "A", (3, 2), "6", ""),
        ("full", "AB", (2, 2, 2), "8", ""),
        (
            "attribute",
            "A",
            (3, 2),
            "6",
            "safe, and more than needed: a repair along a non-edge makes one secret pair enough",
        ),
        ("attribute", "A B", (2, 2), "4", ""),
        (
            "attribute",
            "A B",
            (2, 2, 2),
            "4",
            "too small: (0,0,0) (0,1,0) (1,0,0) (1,1,1) and (0,1,1) (1,0,1) (1,1,0) (0,0,1) have the same margins and differ by 8, with one secret pair and three repairs along non-edges",
        ),
    ):
        policy = table(kind, known, *sizes)
        rows.append(
            Row(
                "Section 8",
                f"histogram of {'x'.join(map(str, sizes))}, {kind} graph, {' and '.join(known.split())} public",
                published,
                value(pg.queries.identity(policy.domain), policy),
                reason=reason,
                code="policygraph/moves/blowfish/",
            )
        )
    six = pg.Domain({"x": 6})
    counts = [pg.count({"x": [0, 1]}), pg.count({"x": [2, 3]})]
    rows.append(
        Row(
            "Section 8",
            "histogram of 6 values, line, counts of {0, 1} and {2, 3} public: 2 max(alpha, xi)",
            "4",
            value(pg.queries.identity(six), pg.Policy(six, pg.PolicyGraph.line(six), counts)),
            reason="too small: 1, 3, 4 and 2, 5, 0 differ by 6; records may change along non-edges to repair the counts, which the graph over the secret pairs misses",
            code="policygraph/moves/blowfish/",
        )
    )
    return Result(
        rows,
        note="exact; no randomness, no data. The paper's text is not at hand: formulas as repeated in the literature, sections not given but for 8; its measured figures (k-means on its own data) are not computed.",
    )
