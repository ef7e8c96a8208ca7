"""Seconds for sensitivities that are answered from structure, as a Markdown table.

Run with ``python benchmarks/sensitivity.py``. Seconds depend on the machine; what matters is that none of these grows with
the number of cells.
"""

import time

import record

import policygraph as pg


def adult() -> pg.Domain:
    sizes = [9, 16, 7, 15, 6, 5, 2, 2]
    names = ["workclass", "education", "marital", "occupation", "relationship", "race", "sex", "salary"]
    return pg.Domain(dict(zip(names, sizes, strict=True)))


def cases():
    domain = adult()
    every = pg.queries.all_cuboids(domain)
    graphs = {
        "full": pg.PolicyGraph.full(domain),
        "attribute": pg.PolicyGraph.attribute(domain),
        "threshold 3": pg.PolicyGraph.threshold(domain, 3),
    }
    for name, graph in graphs.items():
        yield f"all 256 cuboids, 1.8 million cells, {name} graph", every, pg.Policy(domain, graph=graph)
    square = pg.Domain({"a": 1000, "b": 1000})
    cells = pg.queries.identity(square)
    whole = [pg.Cuboid("a"), pg.Cuboid("b")]
    some = [pg.Cells("a", list(range(700))), pg.Cells("b", list(range(600)))]
    yield "two cuboids over 10^6 cells, whole", cells, pg.Policy(square, constraints=whole)
    yield "two cuboids over 10^6 cells, 700 and 600 sums known", cells, pg.Policy(square, constraints=some)
    yield "the same with the total", cells, pg.Policy(square, constraints=[*some, pg.Total()])
    cube = pg.Domain({"a": 100, "b": 100, "c": 100})
    shared = [pg.Cuboid("a", "b"), pg.Cuboid("b", "c")]
    yield "AB and BC over 10^6 cells", pg.queries.identity(cube), pg.Policy(cube, constraints=shared)
    for nodes in (10**5,):
        network = pg.Network(nodes)
        edges = pg.queries.adjacency(network)
        yield "all degrees of 10^5 nodes", edges, pg.Policy(network, constraints=[pg.Degrees()])
        half = pg.Degrees(list(range(nodes // 2)))
        yield "half of the degrees of 10^5 nodes", edges, pg.Policy(network, constraints=[half])
        directed = pg.Network(nodes, directed=True)
        both = [pg.Degrees(side="in"), pg.Degrees(side="out")]
        yield (
            "in- and out-degrees of 10^5 nodes",
            pg.queries.adjacency(directed),
            pg.Policy(directed, constraints=both),
        )


def main() -> None:
    print("| problem | value | kind | seconds |\n|---|---|---|---|")
    for name, query, policy in cases():
        start = time.perf_counter()
        found = pg.sensitivity(query, policy)
        seconds = time.perf_counter() - start
        record.figure(f"{name}, s", seconds)
        record.ratio(f"{name}, value", float(found.value))
        print(f"| {name} | {found.value} | {found.kind} | {seconds:.3f} |", flush=True)
    record.save("sensitivity")


if __name__ == "__main__":
    main()
