"""The transform to edges of a policy graph: equal answers, equal sensitivities, and the error of ranges and cells on a line."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script(
    "policy-aware-2015",
    "Transformational equivalence, ranges and histograms",
    "policygraph/transforms/incidence/",
    10,
)


def incidence(graph: nx.Graph, size: int) -> np.ndarray:
    out = np.zeros((size, graph.number_of_edges()), dtype=np.int64)
    for at, (u, v) in enumerate(graph.edges):
        out[u, at], out[v, at] = 1, -1
    return out


def equal_sensitivities(trials: int = 60) -> int:
    """Drawn graphs and workloads whose policy sensitivity is not the largest column norm of W P_G."""
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(trials):
        size = int(rng.integers(3, 9))
        graph = nx.gnp_random_graph(size, 0.5, seed=int(rng.integers(1 << 30)))
        if graph.number_of_edges() == 0:
            continue
        domain = pg.Domain({"x": size})
        work = rng.integers(-2, 3, (4, size))
        exact = pg.sensitivity(pg.queries.matrix(domain, work), pg.Policy(domain, graph)).value
        wrong += exact != np.abs(work @ incidence(graph, size)).sum(axis=0).max()
    return wrong


def ranges(size: int) -> tuple[float, float]:
    """Mean variance of all ranges times epsilon^2: transformed Laplace under the line, and Laplace at epsilon/2."""
    domain = pg.Domain({"x": size})
    query, loss = pg.queries.all_ranges(domain), pg.Epsilon("0.01")
    moved = pg.TransformedLaplace().calibrate(query, pg.Policy(domain, pg.PolicyGraph.line(domain)), loss)
    lengths = np.arange(1, size + 1)
    plain = 8 * float((lengths * (size + 1 - lengths)).sum() / (size + 1 - lengths).sum())
    return float(np.mean(moved.variances)) * 0.01**2, plain


def run(small: bool) -> Result:
    sizes = (16, 64) if small else (16, 64, 256, 1024)
    found = {n: ranges(n) for n in sizes}
    domain = pg.Domain({"x": 64})
    cells = pg.TransformedLaplace().calibrate(
        pg.queries.identity(domain), pg.Policy(domain, pg.PolicyGraph.line(domain)), pg.Epsilon("0.01")
    )
    rows = [
        Row(
            "transformational equivalence",
            "60 drawn graphs and workloads for which the sensitivity is not that of W P_G",
            "0",
            show(equal_sensitivities()),
        ),
        *(
            Row(
                "ranges on a line",
                f"mean variance of a range of a line of {n}, times epsilon^2; Laplace at epsilon/2",
                "constant",
                f"{show(found[n][0])}; {show(found[n][1])}",
                holds=found[n][0] <= 4,
            )
            for n in (16, 64)
        ),
        Row(
            "histogram on a line",
            "mean variance of a cell of a line of 64, times epsilon^2; Laplace at epsilon/2",
            "",
            f"{show(float(np.mean(cells.variances)) * 0.01**2)}; 8",
        ),
    ]
    return Result(
        rows,
        {str(n): v for n, v in found.items()},
        "exact variances at epsilon 0.01; drawn graphs (seed 3). The paper's text is not at hand; its histogram figure is that of Figure 4 above.",
    )


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 4.5))
    sizes = [int(n) for n in values]
    axis.plot(sizes, [v[0] for v in values.values()], "o-", label="transformed Laplace, line policy")
    axis.plot(sizes, [v[1] for v in values.values()], "x--", label="Laplace at epsilon/2")
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="values",
        ylabel="mean variance of a range x epsilon^2",
        title="All ranges of a line",
    )
    axis.legend(frameon=False)
    figure.tight_layout()
    return figure
