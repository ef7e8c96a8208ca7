"""What ``docs/explanation/published-formulas.md`` shows and is computed; ``python -m tests.published_tables`` prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import policygraph as pg
from tests.oracles.published_bound import published_bound
from tests.published import (
    BLOWFISH,
    PAIRS,
    Pair,
    attribute_disjoint_marginals,
    blowfish,
    count_of_tables,
    degrees,
    dense,
    directed,
    directed_degrees,
    domain_of,
    edges_only,
    engine,
    fourier,
    fourier_query,
    full_one_marginal,
    listed,
    listed_unit,
    margins,
    one_cuboid,
    parallel_composition,
    part,
    partial_cells,
    some_sums,
    table,
    three_margins_2x2x3,
    two_cuboids,
    undirected_degrees,
)

Rows = Iterable[Sequence[object]]


def markdown(head: Sequence[str], rows: Rows) -> str:
    lines = [list(map(str, row)) for row in [head, ["---"] * len(head), *rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def beside(formula: int, exact: int) -> str:
    """A formula and the exact value as a relation; bold where the formula is too small."""
    sign = "<" if formula < exact else "=" if formula == exact else ">"
    return f"**{formula} < {exact}**" if sign == "<" else f"{formula} {sign} {exact}"


def named(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


ONE_CUBOID = [((2, 2), "A"), ((3, 2), "A"), ((2, 3), "-"), ((2, 2, 2), "AB"), ((2, 2), "AB"), ((3, 1), "A")]
TWO_CUBOIDS = [
    ((3, 4), "A", "B"),
    ((5, 3), "A", "B"),
    ((2, 3, 2), "AB", "BC"),
    ((3, 2, 3), "AB", "BC"),
    ((2, 2, 2, 2), "AB", "CD"),
    ((2, 3, 2), "A", "B"),
    ((2, 2, 2), "A", "AB"),
    ((1, 3), "A", "B"),
]
THREE_CUBOIDS = [
    ((2, 2, 2), "A B C"),
    ((2, 2, 3), "A B C"),
    ((2, 2, 4), "A B C"),
    ((2, 2, 5), "A B C"),
    ((2, 3, 3), "A B C"),
    ((2, 2, 2, 2), "A B C D"),
    ((2, 2, 2), "AB BC AC"),
    ((3, 3, 2), "AB BC AC"),
    ((3, 3, 3), "AB BC AC"),
    ((2, 2, 2, 2), "AB BC CD"),
]
SPLITS = [
    ((2, 2), "", "A"),
    ((2, 2), "A", "A"),
    ((2, 2), "A", "B"),
    ((2, 2), "A B", "A"),
    ((3, 3), "A B", "A"),
    ((2, 2, 2), "AB BC", "B"),
    ((2, 2, 2), "AB BC", "A"),
]
MARGINALS = [name for name in BLOWFISH if not name.startswith("line")]
COUNTED = [
    ((2, 2, 2), ("A", "B", "C")),
    ((2, 2, 2), ("", "A", "AB")),
    ((2, 3, 2), ("AB", "BC", "AC")),
    ((2, 3, 2), ("", "A", "B", "C", "AB", "BC", "AC", "ABC")),
]


def cuboid_query(domain: pg.Domain, cuboids: Sequence[str]) -> pg.Query:
    return pg.queries.cuboids(domain, [tuple(word) for word in cuboids])


def three_cuboid_rows() -> Rows:
    for sizes, words in THREE_CUBOIDS:
        policy = margins(table(*sizes), words)
        says = three_margins_2x2x3() if (sizes, words) == ((2, 2, 3), "A B C") else ""
        yield named(sizes), words.replace(" ", ", "), says, listed_unit(policy), listed(policy)


def split_rows() -> Rows:
    for sizes, words, name in SPLITS:
        domain = table(*sizes)
        policy = margins(domain, words)
        values = range(domain.shape[domain.axis(name)])
        says = parallel_composition(listed(policy, part(domain, name, at)) for at in values)
        yield named(sizes), words.replace(" ", ", ") or "nothing", name, beside(says, listed(policy))


def marginals_of(name: str) -> list[str]:
    """Names of the public marginals of a policy of the list, one word each."""
    return ["".join(fact.names) for fact in BLOWFISH[name].constraints if isinstance(fact, pg.Cuboid)]


def marginal_rows() -> Rows:
    for name in MARGINALS:
        policy, marginals = BLOWFISH[name], marginals_of(name)
        if name.startswith("full"):
            says = full_one_marginal(domain_of(policy), marginals[0])
        else:
            says = attribute_disjoint_marginals(domain_of(policy), marginals)
        yield name, beside(says, blowfish(policy))


def sparse_rows() -> Rows:
    for name, policy in BLOWFISH.items():
        bound, exact = published_bound(*dense(policy)), blowfish(policy)
        published = "not sparse" if bound.published is None else beside(bound.published, exact)
        yield name, published, "nothing" if bound.proved is None else bound.proved, exact


def count_rows() -> Rows:
    for sizes, words in COUNTED:
        domain = table(*sizes)
        query, says = cuboid_query(domain, words), count_of_tables(words)
        full, attribute = (
            engine(pg.Policy(domain, graph(domain)), query)
            for graph in (pg.PolicyGraph.full, pg.PolicyGraph.attribute)
        )
        shown = ", ".join(word or "total" for word in words)
        yield named(sizes), shown, beside(says, full), beside(says, attribute)


def fourier_rows() -> Rows:
    for k in range(2, 8):
        query, says = fourier_query(k), fourier(k)
        exact = engine(pg.Policy(query.domain, pg.PolicyGraph.full(query.domain)), query)
        yield k, says // 2, says, exact, f"{says / exact:.2f}"


def grid(corner: str, rows: range, columns: range, entry: Callable[[int, int], str]) -> str:
    head = [corner, *map(str, columns)]
    return markdown(head, ([r, *(entry(r, c) for c in columns)] for r in rows))


def partial_grid(total: bool) -> str:
    return grid(
        "n1 \\ n2",
        range(4),
        range(5),
        lambda n1, n2: beside(partial_cells([(n1, n2)]), listed(some_sums(3, 4, n1, n2, total))),
    )


def undirected_grid() -> str:
    def entry(v: int, n: int) -> str:
        return beside(undirected_degrees(v, n), engine(degrees(v, n))) if n <= v else ""

    return grid("V \\ n", range(3, 10), range(10), entry)


def directed_grid(loops: bool) -> str:
    return grid(
        "n1 \\ n2",
        range(5),
        range(5),
        lambda n1, n2: beside(directed_degrees(4, n1, n2), engine(directed(4, n1, n2, loops))),
    )


def show_pair(pair: Pair) -> str:
    def show(records: tuple[tuple[int, ...], ...]) -> str:
        return " ".join("(" + ", ".join(map(str, cell)) + ")" for cell in records)

    return f"```text\nbefore: {show(pair.before)}\nafter:  {show(pair.after)}\n```"


def blocks() -> dict[str, str]:
    """Everything in the document that is computed, by id."""
    return {
        "table one-cuboid": markdown(
            ["table", "public", "formula, exact"],
            (
                (named(s), "total" if w == "-" else w, beside(one_cuboid(), listed(margins(table(*s), w))))
                for s, w in ONE_CUBOID
            ),
        ),
        "table two-cuboids": markdown(
            ["table", "public", "formula, exact"],
            (
                (
                    named(s),
                    f"{a}, {b}",
                    beside(two_cuboids(table(*s), a, b), listed(margins(table(*s), f"{a} {b}"))),
                )
                for s, a, b in TWO_CUBOIDS
            ),
        ),
        "table three-margins": markdown(
            ["table", "public", "literature", "0/±1 moves only", "exact"], three_cuboid_rows()
        ),
        "table partial-cells": partial_grid(False),
        "table partial-cells-total": partial_grid(True),
        "table undirected-degrees": undirected_grid(),
        "table directed-degrees": directed_grid(False),
        "table directed-degrees-loops": directed_grid(True),
        "table parallel-composition": markdown(
            ["table", "public", "split by", "formula, exact"], split_rows()
        ),
        "table edges-only": markdown(
            ["policy", "edges only, exact"],
            ((name, beside(edges_only(*dense(p)), blowfish(p))) for name, p in BLOWFISH.items()),
        ),
        "table marginals": markdown(["policy", "formula, exact"], marginal_rows()),
        "table sparse-counts": markdown(
            ["policy", "published bound, exact", "proved by all pairs", "exact"], sparse_rows()
        ),
        "table fourier": markdown(["k", "coefficients", "formula", "exact", "ratio"], fourier_rows()),
        "table count-of-tables": markdown(
            ["table", "published cuboids", "full graph: formula, exact", "attribute graph: formula, exact"],
            count_rows(),
        ),
        **{f"pair {name}": show_pair(pair) for name, pair in PAIRS.items()},
    }


if __name__ == "__main__":
    for name, block in blocks().items():
        print(f"<!-- printed: {name} -->\n\n{block}\n\n<!-- end -->\n")
