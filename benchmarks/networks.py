"""A synthetic Facebook network with exactly its public degrees, beside the original and a plain configuration model.

    python benchmarks/networks.py [--epsilon 1] [--seed 1] [--plot networks.png] [--write]
    python benchmarks/networks.py --synthesise | --directed | --large [--write]

Reads ``graphs/facebook_combined.txt`` in the folder ``POLICYGRAPH_DATA`` (default: ``../shared/data`` beside the repository).
Degrees are public. The groups are ranges of node numbers, which are public as well: node numbers of one person's circle are
consecutive in this data set. Prints a Markdown table, and with ``--write`` puts it into ``docs/how-to/networks.md``: one row for the original, one for each strength of the policy, one
for a simple graph with the same degrees and nothing else (what the public facts alone give). Where the noise is so large that
no simple graph with the consistent counts is found, the last column says by how much the graph's counts were moved. The exit
status is 1 when a degree is missed, a graph is not simple, the counts of the first policy are moved, or noise and graph
together take 60 seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import networkx
import numpy as np
import record

import policygraph as pg
from policygraph.curator.counting import read_edges
from policygraph.estimation.networks import PublicDegrees, Summary, SyntheticGraph, summarise, synthetic_graph
from policygraph.estimation.networks.mixing import as_matrix, consistent_mixing

DATA = Path(os.environ.get("POLICYGRAPH_DATA", Path(__file__).parents[2] / "shared" / "data"))
FILE = DATA / "graphs" / "facebook_combined.txt"
NODES = 4039
CENTRES = [107, 348, 414, 686, 698, 1684, 1912, 3437, 3980]
SECONDS = 60.0
POLICIES: list[tuple[str, str, int | None]] = [
    ("one switch of two edges (markov)", "markov", None),
    ("at most 20 edges", "worst-case", 20),
    ("worst case", "worst-case", None),
]
SHORT = {POLICIES[0][0]: "one switch", POLICIES[1][0]: "at most 20 edges", POLICIES[2][0]: "worst case"}


def check(made: SyntheticGraph, degrees: np.ndarray) -> bool:
    """Whether the graph is simple and has every degree."""
    keys = made.tail * NODES + made.head
    simple = len(np.unique(keys)) == len(keys) and bool(np.all(made.tail < made.head))
    return simple and bool(np.array_equal(made.degrees()[0], degrees))


def row(
    name: str, tail: np.ndarray, head: np.ndarray, counts: np.ndarray, true: np.ndarray, rest: str
) -> str:
    found = summarise(tail, head, NODES)
    inside = int(np.trace(as_square(counts))) / found.edges
    return (
        f"| {name} | {found.assortativity:.3f} | {found.transitivity:.3f} | {found.clustering:.3f} | {found.triangles:,} | "
        f"{inside:.3f} | {int(np.abs(counts - true).sum()):,} | {rest} |"
    )


QUERY = pg.queries.mixing(
    pg.Network(NODES), np.searchsorted(CENTRES, np.arange(NODES), side="right").tolist()
)


def as_square(counts: np.ndarray) -> np.ndarray:
    return as_matrix(QUERY, counts)


def plot(path: str, drawn: dict[str, tuple[np.ndarray, Summary]], epsilon: str) -> None:
    """Above, the edges between groups of each graph; below, four numbers of each graph beside the original's."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.colors import LogNorm

    figure = pyplot.figure(figsize=(3.0 * len(drawn), 6.6), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[1.1, 1])
    figure.suptitle(
        f"Facebook network, {NODES:,} people, all degrees public, epsilon = {epsilon}: the original and synthetic graphs"
    )
    axes = above.subplots(1, len(drawn))
    image = None
    for axis, (name, (matrix, _)) in zip(axes, drawn.items(), strict=True):
        shown = np.where(matrix > 0, matrix, np.nan)
        image = axis.imshow(shown, norm=LogNorm(1, 40_000), cmap="viridis")
        axis.set_title(name, fontsize=10)
        axis.set(xticks=range(len(matrix)), yticks=range(len(matrix)))
        axis.tick_params(labelsize=7, length=0)
        axis.set_xlabel("group of one end", fontsize=8)
    axes[0].set_ylabel("group of the other end", fontsize=8)
    above.colorbar(image, ax=axes, label="edges between groups (white: none)", shrink=0.8)
    measures = [
        (
            "edges inside groups, share",
            [float(np.trace(matrix)) / found.edges for matrix, found in drawn.values()],
        ),
        ("degree assortativity", [found.assortativity for _, found in drawn.values()]),
        ("transitivity", [found.transitivity for _, found in drawn.values()]),
        ("mean clustering", [found.clustering for _, found in drawn.values()]),
    ]
    colors = ["#333333", *["#2a788e"] * (len(drawn) - 2), "#b0b0b0"]
    for axis, (title, values) in zip(below.subplots(1, len(measures), sharey=True), measures, strict=True):
        bars = axis.barh(list(drawn), values, color=colors)
        axis.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
        axis.axvline(values[0], color="#333333", lw=1, ls=":")
        axis.axvline(0, color="black", lw=0.8)
        axis.margins(x=0.25)
        axis.locator_params(axis="x", nbins=4)
        axis.set_title(title, fontsize=10)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right", "left"]].set_visible(False)
    axis.invert_yaxis()
    figure.savefig(path, dpi=130)


PROMISES: dict[str, tuple[str, dict[str, object] | None]] = {
    "markov": ("degrees public, one switch (markov)", {"strength": "markov"}),
    "cap": ("degrees public, at most 20 edges", {"at_most_records": 20}),
    "worst": ("degrees public, worst case", {}),
    "edge": ("degrees secret, one edge", None),
    "node": ("degrees secret, one node with its edges", None),
}
"""What may not be told apart, for the table of ``pg.networks.synthesise``; None for secret degrees."""

PUBLISHED = {
    "DP-1K": (0.108, 0.128),
    "TmF": (0.990, 0.981),
    "PrivSKG": (0.800, 0.907),
    "PrivHRG": (0.983, 0.971),
    "PrivGraph": (0.656, 0.851),
    "DGG": (0.473, 0.487),
}
"""Relative errors of triangles and mean clustering that the PGB benchmark gives for generators on the Facebook network, degrees secret, epsilon 1."""


def _merged(page: str, lines: list[str]) -> list[str]:
    """Rows that were just made, and those of the page for other promises, in the order of networks and promises."""
    old = page.partition("<!-- synthesise: begin -->")[2].partition("<!-- synthesise: end -->")[0]
    rows = {tuple(line.split("|")[1:3]): line for line in [*old.strip().splitlines()[2:], *lines[2:]]}
    order = [what for what, _ in PROMISES.values()]
    places = {name: at for at, name in enumerate([*order, *(f"published: {method}" for method in PUBLISHED)])}
    keys = sorted(
        rows, key=lambda key: (key[0].strip() != "Facebook", places.get(key[1].strip(), len(places)))
    )
    return [*lines[:2], *(rows[key] for key in keys)]


def synthesise(epsilon: str, seed: int, runs: int, only: list[str], write: bool) -> int:
    """Relative errors of the synthetic graphs of two networks; 1 if one misses what is asked of it."""
    lines = [
        "| network | policy | triangles | transitivity | mean clustering | assortativity | processor, s |",
        "|---|---|---|---|---|---|---|",
    ]
    good = True
    for name, file in (("Facebook", FILE), ("email-Eu-core", FILE.with_name("email-Eu-core.txt"))):
        graph = networkx.read_edgelist(file, nodetype=int)
        graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
        true, network = summarise(graph), pg.Network.from_networkx(graph)
        public = [pg.Degrees(graph.degree())]
        for key in only:
            what, settings = PROMISES[key]
            policy = (
                pg.Policy(network) if settings is None else pg.Policy(network, constraints=public, **settings)
            )
            asked = pg.NodePrivacy(network) if key == "node" else policy
            errors, spent = [], time.process_time()
            for run in range(runs):
                made = pg.networks.synthesise(
                    asked, graph, epsilon=epsilon, seed=seed + run, rng=pg.SeededRng(seed + run)
                )
                found = summarise(made)
                if policy.constraints:
                    good &= dict(made.to_networkx().degree()) == dict(graph.degree())
                errors.append(
                    [
                        abs(found.triangles / true.triangles - 1),
                        abs(found.transitivity / true.transitivity - 1),
                        abs(found.clustering / true.clustering - 1),
                        abs(found.assortativity - true.assortativity),
                    ]
                )
            mean = np.mean(errors, axis=0)
            spent = (time.process_time() - spent) / runs
            lines.append(f"| {name} | {what} | {' | '.join(f'{x:.3f}' for x in mean)} | {spent:.0f} |")
            print(lines[-1], flush=True)
            for column, value in zip(
                ("triangles", "transitivity", "clustering", "assortativity"), mean, strict=True
            ):
                record.ratio(f"synthesise, {name}, {what}: {column}", float(value))
            if policy.strength == "markov":
                most = (0.11, 0.14, 0.13, 1.0) if name == "Facebook" else (1.0, 0.2, 1.0, 0.1)
                good &= bool(np.all(mean <= most))
        if name == "Facebook" and float(epsilon) == 1:
            for method, (triangles, clustering) in PUBLISHED.items():
                lines.append(f"| {name} | published: {method} | {triangles:.3f} | | {clustering:.3f} | | |")
    print("\n" + "\n".join(lines))
    if write:
        page = Path(__file__).parents[1] / "docs" / "how-to" / "networks.md"
        record.put(page, "synthesise", "\n".join(_merged(page.read_text(encoding="utf-8"), lines)))
    record.save("networks-synthesise")
    return 0 if good else 1


def directed(epsilon: str, seed: int, write: bool) -> int:
    """The directed email network beside a synthetic one with its in- and out-degrees; 1 if it misses what is asked of it."""
    graph = networkx.read_edgelist(
        FILE.with_name("email-Eu-core.txt"), nodetype=int, create_using=networkx.DiGraph
    )
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    policy = pg.Policy(
        pg.Network.from_networkx(graph),
        constraints=[
            pg.Degrees(dict(graph.out_degree()), side="out"),
            pg.Degrees(dict(graph.in_degree()), side="in"),
        ],
        strength="markov",
    )
    made = pg.networks.synthesise(policy, graph, epsilon=epsilon, seed=seed, rng=pg.SeededRng(seed))
    lines = [
        "| graph | transitivity, directions forgotten | assortativity, out to in | mean clustering | reciprocity |",
        "|---|---|---|---|---|",
    ]
    found = []
    for name, each in (("original", graph), ("synthetic", made.to_networkx())):
        plain = networkx.Graph(each.edges())
        found.append(
            [
                networkx.transitivity(plain),
                networkx.degree_assortativity_coefficient(each, x="out", y="in"),
                networkx.average_clustering(each),
                networkx.reciprocity(each),
            ]
        )
        lines.append(f"| {name} | {' | '.join(f'{value:.3f}' for value in found[-1])} |")
    print("\n".join(lines))
    record.ratio("synthesise, email-Eu-core directed: transitivity", abs(found[1][0] / found[0][0] - 1))
    record.ratio("synthesise, email-Eu-core directed: assortativity", abs(found[1][1] - found[0][1]))
    if write:
        record.put(
            Path(__file__).parents[1] / "docs" / "how-to" / "networks.md", "directed", "\n".join(lines)
        )
    record.save("networks-directed")
    good = abs(found[1][0] / found[0][0] - 1) <= 0.2 and abs(found[1][1] - found[0][1]) <= 0.1
    return 0 if good else 1


def large(seed: int) -> int:
    """A generated network of 10^5 nodes and 10^6 edges, its degrees public; 1 if it takes 5 minutes of a processor or 4 GB."""
    import resource

    from scipy import sparse

    n, drawn = 100_000, 1_400_000
    rng = np.random.default_rng(seed)
    tail, step = rng.integers(0, n, drawn), rng.integers(1, 12, drawn)
    # Most edges go to near nodes, which makes triangles; the others anywhere, some of them to hubs.
    head = np.where(rng.random(drawn) < 0.3, rng.integers(0, n, drawn), (tail + step) % n)
    head = np.where(rng.random(drawn) < 0.05, (n * rng.random(drawn) ** 4).astype(np.int64), head)
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    keys = np.unique(low[low < high] * n + high[low < high])
    keys = np.sort(rng.permutation(keys)[:1_000_000])
    low, high = keys // n, keys % n
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    matrix = sparse.coo_array((np.ones(len(ends[0]), dtype=np.int64), ends), shape=(n, n)).tocsr()
    true, start = summarise(low, high, n), time.process_time()
    degrees = np.bincount(ends[0], minlength=n)
    policy = pg.Policy(pg.Network(n), constraints=[pg.Degrees(equals=degrees.tolist())], strength="markov")
    made = pg.networks.synthesise(
        policy, matrix, epsilon=1, seed=seed, rng=pg.SeededRng(seed), progress=print
    )
    spent = time.process_time() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    found = summarise(made)
    print(
        f"{n:,} nodes, {len(low):,} edges, largest degree {degrees.max():,}: {spent:.0f} s of a processor, {most:.1f} GB"
    )
    for column in ("triangles", "transitivity", "clustering"):
        error = abs(getattr(found, column) / getattr(true, column) - 1)
        record.ratio(f"synthesise, large: {column}", error)
        print(f"{column}: {getattr(found, column):,.6g} where the original has {getattr(true, column):,.6g}")
    met = bool(np.array_equal(made.degrees()[0], degrees))
    record.save("networks-large")
    return 0 if met and spent < 300 and most < 4 else 1


def main() -> int:
    """Print the table; return 1 if a promise is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot")
    parser.add_argument("--write", action="store_true", help="put the table into docs/how-to/networks.md")
    parser.add_argument(
        "--synthesise", action="store_true", help="instead, relative errors of pg.networks.synthesise"
    )
    parser.add_argument("--runs", type=int, default=1, help="draws of noise, with --synthesise")
    parser.add_argument("--only", nargs="+", choices=list(PROMISES), help="with --synthesise: these promises")
    parser.add_argument(
        "--directed", action="store_true", help="instead, pg.networks.synthesise on a directed network"
    )
    parser.add_argument(
        "--large", action="store_true", help="instead, a generated network of a million edges; needs no data"
    )
    asked = parser.parse_args()
    if asked.large:
        return large(asked.seed)
    if not FILE.exists():
        print(f"{FILE} is not there: set POLICYGRAPH_DATA.")
        return 2
    if asked.directed:
        return directed(asked.epsilon, asked.seed, asked.write)
    if asked.synthesise:
        return synthesise(asked.epsilon, asked.seed, asked.runs, asked.only or list(PROMISES), asked.write)
    network = QUERY.domain
    counts = read_edges(FILE, network)
    tail, head = network.pairs(counts.sparse()[0])
    degrees = np.bincount(np.concatenate([tail, head]), minlength=NODES)
    true = QUERY.answer_sparse(*counts.sparse())
    good = True
    drawn = {"original": (as_square(true), summarise(tail, head, NODES))}
    print(f"{NODES:,} nodes, {len(tail):,} edges, {len(QUERY.names)} groups, epsilon = {asked.epsilon}\n")
    lines = [
        "| graph | assortativity | transitivity | clustering | triangles | edges inside groups | counts off by | sensitivity | moved |",
        "|---|---|---|---|---|---|---|---|---|",
        row("original", tail, head, true, true, "|"),
    ]
    for name, strength, cap in POLICIES:
        start = time.perf_counter()
        policy = pg.Policy(
            network,
            constraints=[pg.Degrees(equals=degrees.tolist())],
            strength=strength,
            at_most_records=cap,
        )
        noisy = pg.release(QUERY, policy, counts, epsilon=asked.epsilon, rng=pg.SeededRng(asked.seed))
        noised = time.perf_counter()
        public = PublicDegrees.from_policy(policy)
        fitted = consistent_mixing(noisy.values(), QUERY, public)
        fit = time.perf_counter()
        made = synthetic_graph(fitted.values, QUERY, public, seed=asked.seed)
        done = time.perf_counter()
        good &= check(made, degrees) and done - start < SECONDS and (made.exact or strength != "markov")
        record.figure(f"{name}: noise, fit and graph, s", done - start)
        record.ratio(f"{name}: sensitivity", float(noisy.certificate.power))
        record.ratio(f"{name}: counts off by", np.abs(made.counts - true).sum())
        moved = int(np.abs(made.counts - made.asked).sum())
        print(
            f"{name}: {noised - start:.1f} s for noise, {fit - noised:.1f} s for the fit, {done - fit:.1f} s for the graph",
            flush=True,
        )
        rest = f"{noisy.certificate.power} | {moved}"
        lines.append(row(name, made.tail, made.head, made.counts, true, rest))
        drawn[f"synthetic: {SHORT[name]}"] = (as_square(made.counts), summarise(made))
    one = pg.queries.mixing(network, [0] * NODES)
    public = PublicDegrees.of(network, degrees)
    plain = synthetic_graph([len(tail)], one, public, seed=asked.seed)
    cells = np.sort(network.pair_index(plain.tail, plain.head))
    mixed = QUERY.answer_sparse(cells, np.ones_like(cells))
    lines.append(row("degrees only (configuration model)", plain.tail, plain.head, mixed, true, "0 |"))
    print("\n" + "\n".join(lines))
    if asked.write:
        record.put(
            Path(__file__).parents[1] / "docs" / "how-to" / "networks.md", "networks", "\n".join(lines)
        )
    drawn["degrees only\n(configuration model)"] = (as_square(mixed), summarise(plain))
    if asked.plot:
        plot(asked.plot, drawn, asked.epsilon)
    record.save("networks")
    print("\nevery degree met, simple, in time:", "yes" if good else "NO")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
