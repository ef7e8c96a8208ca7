"""Section 7, empty in the draft: more knowledge needs more noise, and consistency wins part of it back; where the two meet."""

from __future__ import annotations

from typing import Any

import numpy as np

import policygraph as pg
from benchmarks.papers.registry import Result, Row, Script, show

SCRIPT = Script("exact-cuboids", "Section 7: experiments", "policygraph/mechanisms/cube/", 30)
KNOWLEDGE = ("", "total", "Sex", "Age", "Age+Salary", "Sex, Age", "Age, Salary", "Sex+Age, Age+Salary")
SIDE = 16
NODES = 12


def policy(domain: pg.Domain, known: str) -> pg.Policy:
    """Public cuboids written "Sex+Age, Age+Salary"."""
    facts = [
        pg.Total() if word == "total" else pg.Cuboid(*word.split("+")) for word in known.split(", ") if word
    ]
    return pg.Policy(domain, constraints=facts)


def variances(domain: pg.Domain, known: pg.Policy, consistent: bool) -> np.ndarray:
    """The variance of a cell of every cuboid, all computed from the noisy base cuboid, at epsilon 1."""
    query = pg.queries.all_cuboids(domain)
    ready = pg.Cube("base", consistency="least-squares" if consistent else None).calibrate(
        query, known, pg.Epsilon(1)
    )
    return np.array([ready.deviation(at) ** 2 for at in range(len(query.sets))])


def sums(known: int) -> tuple[float, float, float]:
    """Some row and column sums of a square table public: sensitivity, deviation of a cell before and after consistency."""
    domain = pg.Domain({"row": SIDE, "column": SIDE})
    facts = [pg.Cells(name, list(range(known))) for name in domain.names] if known else []
    public = pg.Policy(domain, constraints=facts)
    found = pg.sensitivity(pg.queries.identity(domain), public)
    before = 2 * float(found.value) ** 2
    after = pg.attacks.reconstruct(public, pg.queries.identity(domain), before).variance()
    return float(found.value), float(np.sqrt(before)), float(np.sqrt(after.mean()))


def degrees(known: int) -> tuple[float, float, float]:
    """Some degrees of an undirected network public: sensitivity, deviation of a pair before and after consistency."""
    network = pg.Network(NODES)
    facts = [pg.Degrees(list(range(known)))] if known else []
    public = pg.Policy(network, constraints=facts)
    found = pg.sensitivity(pg.queries.identity(network), public)
    before = 2 * float(found.value) ** 2
    after = pg.attacks.reconstruct(public, pg.queries.identity(network), before).variance()
    return float(found.value), float(np.sqrt(before)), float(np.sqrt(after.mean()))


def cube(small: bool) -> dict[str, Any]:
    """The table of Example 2.1 under growing knowledge."""
    domain = pg.Domain({"Sex": 2, "Age": 7, "Salary": 5})
    out: dict[str, Any] = {}
    for known in KNOWLEDGE:
        public = policy(domain, known)
        out[known or "nothing"] = {
            "sensitivity": float(pg.sensitivity(pg.queries.identity(domain), public).value),
            "before": variances(domain, public, False).tolist(),
            "after": variances(domain, public, True).tolist(),
        }
    return out


def one_cuboid(values: int, attributes: int = 4) -> list[float]:
    """One cuboid of k attributes public, k = 0, 1, ...: mean variance over all cuboids after consistency, of that with nothing public."""
    domain = pg.Domain({f"a{i}": values for i in range(attributes)})
    plain = variances(domain, pg.Policy(domain), False).mean()
    return [
        float(
            variances(domain, pg.Policy(domain, constraints=[pg.Cuboid(*domain.names[:k])]), True).mean()
            / plain
        )
        for k in range(attributes)
    ]


def measured(runs: int) -> float:
    """Squared errors of real releases over the stated variances, under the knowledge of Example 4.1."""
    domain = pg.Domain({"Sex": 2, "Age": 7, "Salary": 5})
    public = policy(domain, "Sex+Age, Age+Salary")
    query = pg.queries.all_cuboids(domain)
    ready = pg.Cube("base").calibrate(query, public, pg.Epsilon(1))
    counts = np.random.default_rng(1).integers(0, 100, domain.size)
    truth, rng = query.answer(counts), pg.SeededRng("exact cuboids, section 7")
    squares = np.zeros(len(truth))
    for _ in range(runs):
        squares += (np.concatenate([table.values for table in ready.run(counts, rng).tables]) - truth) ** 2
    stated = np.concatenate(
        [np.full(part.height, ready.deviation(at) ** 2) for at, part in enumerate(query.parts)]
    )
    assert (squares[stated == 0] == 0).all()
    return float((squares / runs)[stated > 0].sum() / stated.sum())


def run(small: bool) -> Result:
    known = list(range(0, SIDE + 1, 4 if small else 1))
    lines = {k: sums(k) for k in known}
    graphs = {k: degrees(k) for k in range(NODES + 1)}
    cubes = cube(small)
    sizes = (2, 4) if small else (2, 3, 4, 6, 8, 10)
    ratios = {n: one_cuboid(n) for n in sizes}
    plain = np.mean(cubes["nothing"]["before"])
    place = "Section 7"
    rows = []
    for name, found in cubes.items():
        before, after = np.mean(found["before"]), np.mean(found["after"])
        rows.append(
            Row(
                place,
                f"2x7x5, {name} public: S; variance of a base cell before and after consistency; mean over the 8 cuboids, before and after",
                "",
                f"{show(found['sensitivity'])}; {show(found['before'][-1])}, {show(found['after'][-1])}; {show(before)}, {show(after)}",
            )
        )
    for k in (0, 4, 8, 12, 16):
        s, before, after = lines[k]
        rows.append(
            Row(
                place,
                f"16x16, {k} row and {k} column sums public: S; deviation of a cell before and after consistency",
                "",
                f"{show(s)}; {show(before)}, {show(after)}",
                code="policygraph/moves/two_way/",
            )
        )
    for k in range(0, NODES + 1, 3):
        s, before, after = graphs[k]
        rows.append(
            Row(
                place,
                f"network of {NODES} nodes, {k} degrees public: S; deviation of a pair before and after consistency",
                "",
                f"{show(s)}; {show(before)}, {show(after)}",
                code="policygraph/moves/degrees/",
            )
        )
    least = min(after for k, (_, _, after) in graphs.items() if k) / graphs[0][1]
    rows.append(
        Row(
            place,
            f"network of {NODES} nodes: least deviation of a pair after consistency, of that with nothing public",
            "",
            f"{show(least)}: no crossover",
            holds=least > 1,
            code="policygraph/moves/degrees/",
        )
    )
    below = [name for name, found in cubes.items() if name != "nothing" and np.mean(found["after"]) < plain]
    rows.append(
        Row(
            place,
            "crossover: knowledge under which the whole cube 2x7x5 is more accurate after consistency than with nothing public",
            "",
            "; ".join(below) or "none",
        )
    )
    cells = {
        n: found["after"][-1] / cubes["nothing"]["before"][-1] for n, found in cubes.items() if n != "nothing"
    }
    rows.append(
        Row(
            place,
            "the same for a base cell: least variance after consistency, of that with nothing public",
            "",
            f"{show(min(cells.values()))} ({min(cells, key=cells.__getitem__)}): no crossover",
            holds=min(cells.values()) > 1,
        )
    )
    for n in (2, 4):
        rows.append(
            Row(
                place,
                f"4 attributes of {n} values, one cuboid of 0, 1, 2, 3 attributes public: mean variance of the cube, of that with nothing public",
                "",
                ", ".join(map(show, ratios[n])),
            )
        )
    runs = 20 if small else 2000
    ratio = measured(runs)
    rows.append(
        Row(
            place,
            "2x7x5, Sex+Age and Age+Salary public: measured squared error over stated variance",
            "1",
            show(ratio),
            holds=abs(ratio - 1) < 10 / np.sqrt(35 * runs),
            fixed=False,
        )
    )
    values = {
        "sums": {str(k): v for k, v in lines.items()},
        "graphs": {str(k): v for k, v in graphs.items()},
        "cubes": cubes,
        "ratios": {str(n): v for n, v in ratios.items()},
    }
    return Result(
        rows, values, f"variances at epsilon 1, exact (discrete Laplace noise); {runs:,} releases measured."
    )


def plot(values: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, ((one, four), (two, three)) = pyplot.subplots(2, 2, figsize=(13, 9))
    for axis, key, title, xlabel, what in (
        (
            one,
            "sums",
            "16 x 16: more knowledge, more noise",
            "public row sums, and as many column sums",
            "cell",
        ),
        (four, "graphs", f"network of {NODES} nodes", "public degrees", "pair"),
    ):
        found = values[key]
        known = [int(k) for k in found]
        axis.plot(known, [v[1] for v in found.values()], "o--", color="tab:red", label="noise for the facts")
        axis.plot(known, [v[2] for v in found.values()], "s-", color="tab:blue", label="after consistency")
        axis.axhline(np.sqrt(2), color="tab:grey", linestyle=":", label="nothing public, S = 1")
        axis.set(title=title, xlabel=xlabel, ylabel=f"standard deviation of a {what}, epsilon 1")
        axis.legend(frameon=False)
    names = list(values["cubes"])
    at = np.arange(len(names))
    before = [np.mean(values["cubes"][n]["before"]) for n in names]
    after = [np.mean(values["cubes"][n]["after"]) for n in names]
    two.barh(at - 0.2, before, 0.4, color="tab:red", label="noise for the facts")
    two.barh(at + 0.2, after, 0.4, color="tab:blue", label="after consistency")
    two.axvline(before[0], color="tab:grey", linestyle=":", label="nothing public")
    two.set_yticks(at, [n.replace(", ", ",\n") for n in names])
    two.invert_yaxis()
    two.set(
        title="2 x 7 x 5: the whole cube",
        xlabel="mean variance over the 8 cuboids",
        xscale="log",
        xlim=(8, 4000),
    )
    two.legend(frameon=False, loc="upper right", fontsize=9)
    for n, ratios in values["ratios"].items():
        three.plot(range(len(ratios)), ratios, "o-", label=f"{n} values each")
    three.axhline(1, color="tab:grey", linestyle=":")
    three.set(
        title="4 attributes, one public cuboid",
        xlabel="attributes of the public cuboid",
        ylabel="mean variance of the cube, of nothing public",
        yscale="log",
        xticks=range(4),
    )
    three.legend(frameon=False)
    figure.tight_layout()
    return figure
