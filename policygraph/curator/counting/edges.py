"""Counting the edges of a network. Owns ``read_edges``.

Edge lists are counted inside DuckDB; networkx graphs and sparse matrices are in Python already.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policygraph.curator.counting import sql
from policygraph.curator.counting.files import csv_source, fetched, resolve_all
from policygraph.curator.counting.labels import coder
from policygraph.curator.counting.opening import open_source
from policygraph.curator.counting.reading import Files, are_paths, is_database, suffix_of
from policygraph.curator.counting.source import (
    TABLE,
    Source,
    connect,
    escaped,
    locked,
    selected,
    stamps_of,
)
from policygraph.curator.counting.tables import check_kinds_of
from policygraph.curator.counting.text import as_utf8, packing_of, read_head, scan_lines
from policygraph.curator.counting.values import printed
from policygraph.curator.histogram import DENSE, Histogram, Ints, named
from policygraph.errors import DataError, InputError
from policygraph.model.domain import Network

LISTS = (".txt", ".edges", ".edgelist", ".el")
ENDS = (("from", "to"), ("source", "target"), ("src", "dst"), ("tail", "head"), ("u", "v"))
UNNAMED = ("column0", "column1")
"""How the engine names the first columns of a file without names; further ones, such as weights, are ignored."""
SHOWN = 5
SAY_WHICH = (
    'Say which ones: [data] columns = {from = "...", to = "..."} in the policy file, or columns in Python.'
)
MATRIX = "the adjacency matrix"


@dataclass(frozen=True)
class _Edges:
    """Edges as positions of nodes with multiplicities; -1 where a name is no node."""

    label: str
    tail: Ints
    head: Ints
    times: Ints
    strangers: tuple[tuple[str | None, int], ...] = ()


def read_edges(
    data: Any,
    network: Network,
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    unknown: str = "error",
    loops: str = "error",
    duplicates: str = "error",
    name: str | None = None,
    engine: Any = None,
) -> Histogram:
    """Count the edges of a network into its node pairs.

    Parameters
    ----------
    data
        An edge list: text with two names on each line (``.txt``, ``.edges``, ``.edgelist``; lines that start with # or % are
        comments, further fields are ignored), CSV, Parquet, or any source that ``count_cells`` takes; a networkx graph, or
        a list of pairs of nodes; or an adjacency matrix (scipy sparse or numpy).
    network
        The nodes, and what kinds of edges there are.
    columns
        The two columns of the ends; by default from and to, source and target, or the only two.
    header
        Whether a CSV starts with names of columns; by default it does when ``columns`` are given, and otherwise unless its first line names two nodes.
        Names that are taken for such by default may only name the first two columns, in this order: a record
        at the start of a file without names could otherwise say how all others are read.
    unknown
        ``"error"`` or ``"drop"`` for edges at a node that is not in the network.
    loops
        ``"error"`` or ``"drop"`` for loops, where the network has none.
    duplicates
        ``"error"`` or ``"merge"`` for pairs that are listed more often than they can be joined; in an undirected
        network (u, v) and (v, u) are one pair.
    name
        Name of the data set in the budget ledger; by default it is known by its content.
    engine
        What counts, as for ``count_cells``; edge lists as text and CSV are for DuckDB.

    Raises
    ------
    DataError
        With every kind of problem of the list, and how many edges have it.

    Examples
    --------
    >>> import networkx
    >>> read_edges(networkx.path_graph(4), Network(4)).vector().tolist()
    [1, 0, 0, 1, 0, 1]
    """
    if not isinstance(network, Network):
        raise InputError(
            f"network={network!r}: expected a Network. Tables are read by count_cells.",
            code="data.domain",
            value=network,
        )
    for rule, given, allowed in (
        ("unknown", unknown, "drop"),
        ("loops", loops, "drop"),
        ("duplicates", duplicates, "merge"),
    ):
        if given not in ("error", allowed):
            raise InputError(
                f'{rule}={given!r}: expected "error" or "{allowed}".', code="data.unknown-rule", value=given
            )
    fingerprint = None if name is None else named(name)
    if hasattr(data, "edges") and hasattr(data, "is_directed"):
        edges = _from_networkx(data, network)
    elif hasattr(data, "tocoo") or isinstance(data, np.ndarray):
        edges = _from_matrix(data, network)
    elif _are_pairs(data):
        edges = _from_pairs("the list of edges", list(data), network)
    else:
        source = open_edges(data, network, columns, header, engine)
        ends = _find_ends(source, columns)
        check_kinds_of(source, {"from": ends[0], "to": ends[1]})
        fingerprint = fingerprint or source.fingerprint()
        edges = _from_source(source, ends, network)
    return _count(edges, network, fingerprint, unknown, loops, duplicates)


def _count(
    edges: _Edges, network: Network, fingerprint: str | None, unknown: str, loops: str, duplicates: str
) -> Histogram:
    strange = (edges.tail < 0) | (edges.head < 0)
    looped = ~strange & (edges.tail == edges.head) & (not network.loops)
    fits = ~strange & ~looped
    at, inverse = np.unique(network.pair_index(edges.tail[fits], edges.head[fits]), return_inverse=True)
    times = np.zeros(len(at), dtype=np.int64)
    np.add.at(times, inverse, edges.times[fits])
    repeated = times > 1 if network.capacity == 1 else np.zeros(len(at), dtype=bool)
    n_strange, n_looped = int(edges.times[strange].sum()), int(edges.times[looped].sum())
    problems = []
    if edges.strangers and unknown == "error":
        values = ", ".join(
            f"{'no value' if value is None else repr(value)} {n:,} time{'s' if n != 1 else ''}"
            for value, n in edges.strangers
        )
        problems.append(
            f"  {n_strange:,} edge{'s' * (n_strange != 1)} at nodes that are not in the network: {values} "
            f'(unknown = "drop" leaves such edges out){_first_line(edges.strangers)}'
        )
    if n_looped and loops == "error":
        problems.append(
            f'  {n_looped:,} loop{"s" * (n_looped != 1)}, but the network has none (loops = "drop" leaves them out; a network with loops = true has them)'
        )
    if repeated.any() and duplicates == "error":
        one = network.cell(int(at[repeated][0]))
        both = "" if network.directed else ", in one order or in both"
        what = f"{int(repeated.sum()):,} pairs are listed more than once{both}"
        if edges.label == MATRIX:
            what = f"{int(repeated.sum()):,} entries are above 1, as weights are"
        problems.append(
            f"  {what}, such as {one[0]!r} and {one[1]!r} "
            f'({int((times[repeated] - 1).sum()):,} edges too many; duplicates = "merge" counts each pair once)'
        )
    if problems:
        raise DataError(
            f"{edges.label} does not fit {network!r}.\n"
            + "\n".join(problems)
            + "\nCorrect the data, or say the rule: in the table [data] of the policy file; in Python "
            'pg.Policy(..., unknown="drop") and pg.release(..., edges={"loops": "drop", "duplicates": "merge"}).',
            code="data.edges",
            problems=problems,
        )
    if duplicates == "merge":
        times = np.minimum(times, 1)
    if fingerprint is None:
        content = repr(network.to_spec()).encode() + at.tobytes() + times.tobytes()
        fingerprint = hashlib.sha256(b"edges" + content).hexdigest()
    rows, dropped = int(times.sum()), n_strange + n_looped
    if network.size > DENSE:
        return Histogram(network, fingerprint, rows, dropped, _pairs=(at, times))
    vector = np.zeros(network.size, dtype=np.int64)
    vector[at] = times
    return Histogram.checked(network, vector, fingerprint, dropped)


def _first_line(strangers: tuple[tuple[str | None, int], ...]) -> str:
    """A hint for what looks like names of columns, or like another separator than blanks."""
    names = {value for value, _ in strangers if value is not None}
    if any({a, b} <= {name.lower() for name in names} for a, b in ENDS):
        return ". The first line seems to name columns: put # before it, or name the file .csv or .tsv"
    if any("," in name or ";" in name for name in names):
        return ". Lines seem to be separated by commas: name the file .csv"
    return ""


def open_edges(
    data: Any,
    network: Network,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    engine: Any = None,
) -> Source:
    """Make a source of an edge list; parameters as in :func:`read_edges`."""
    if engine not in (None, "duckdb"):
        return open_source(data, engine)
    if are_paths(data):
        data = Files(data, header=header)
    if not isinstance(data, Files) or is_database(data):
        return open_source(data.data if isinstance(data, Files) else data, engine)
    label, paths = resolve_all(data)
    kinds = {suffix_of(path) for path in paths}
    header = data.header if header is None else header
    if header is None and columns is not None and tuple(columns) != UNNAMED:
        # Who says the names of columns says that there are some.
        header = True
    if kinds <= set(LISTS):
        return _list_source(replace(data, header=None), label, *fetched(paths))
    if kinds <= {".csv", ".tsv"} and header is not True:
        paths, keep = fetched(paths)
        copy, held = as_utf8(data, paths[0])
        first = [text.strip() for text in read_head(copy, data, paths[0]).names[:2]]
        del held
        if (
            header is None
            and tuple(text.lower() for text in first) in ENDS
            and all(_is_node(network, x) for x in first)
        ):
            raise InputError(
                f"{label}: the first line {first} can be names of columns or an edge: say which with header.",
                code="data.no-header",
                value=first,
            )
        if header is False or (len(first) == 2 and all(_is_node(network, text) for text in first)):
            return csv_source(data, label, paths, header=False, keep=keep)
    return replace(
        open_source(replace(data, header=None)), guessed=kinds <= {".csv", ".tsv"} and header is None
    )


def _list_source(files: Files, label: str, paths: list[str], keep: tuple[Any, ...]) -> Source:
    """Make a source of text files with two names on each line."""
    stamps = stamps_of(paths)
    copies = []
    for path in paths:
        copy, held = as_utf8(files, path)
        keep = keep if held is None else (*keep, held)
        scan_lines(copy)
        copies.append(copy)
    # A separator that no line contains makes each line one value; the engine then splits it at blanks.
    texts = [
        f"SELECT line FROM read_csv({escaped([copy])}, columns = {{'line': 'VARCHAR'}}, auto_detect = false, header = false, "
        f"delim = '\x01', quote = '', escape = '', comment = '', compression = '{packing_of(copy)}', hive_partitioning = false)"
        for copy in copies
    ]
    text = (
        'SELECT fields[1] AS "from", fields[2] AS "to" FROM (SELECT '
        f"regexp_split_to_array(trim(line, ' \t\r'), '[ \\t]+') AS fields FROM ({' UNION ALL '.join(texts)}) "
        "WHERE trim(line, ' \t\r') <> '' AND NOT regexp_matches(line, '^[ \\t]*[#%]'))"
    )
    return selected(label, locked(connect(), copies), text, textual=True, stamps=stamps, keep=keep)


def _is_node(network: Network, text: str) -> bool:
    if isinstance(network.nodes, range):
        return text.isascii() and text.isdigit() and int(text) < network.order
    return text in {str(node) for node in network.nodes}


def _find_ends(source: Source, columns: Sequence[str] | None) -> list[tuple[str, str]]:
    given = [shown for shown, _, _ in source.columns]
    ends: Sequence[str] | None = columns
    if ends is None:
        lowered = {shown.lower(): shown for shown in given}
        pairs = [[lowered[a], lowered[b]] for a, b in (*ENDS, UNNAMED) if a in lowered and b in lowered]
        ends = pairs[0] if pairs else None
        if source.loose and (len(pairs) != 1 or len(lowered) < len(given)):
            # One record with other keys must not say where the others have their ends.
            raise DataError(
                f"{source.label}: the keys of its records are {', '.join(map(repr, given[:12]))}: expected one pair of ends, such as from and to. "
                + SAY_WHICH,
                code="data.missing-column",
                columns=given,
            )
    if ends is None and len(given) == 2:
        ends = given
    if source.guessed and ends is not None and list(ends) != given[:2]:
        raise DataError(
            f"{source.label}: the first line {given[:12]} names other columns than the first two, and it may be an edge itself: expected to be told. Say header: "
            "read_edges(..., header=True), pg.Files(path, header=True), or [data] header = true in the policy file. Or say the columns.",
            code="data.no-header",
            columns=given,
        )
    if ends is None or len(ends) != 2 or any(given.count(name) != 1 for name in ends):
        raise DataError(
            f"{source.label}: its columns are {', '.join(map(repr, given[:12]))}: expected "
            + (
                "two columns of nodes, such as from and to"
                if columns is None
                else f"{list(columns)} among them"
            )
            + f". {SAY_WHICH}",
            code="data.missing-column",
            columns=given,
        )
    return [(source.columns[given.index(name)][1], source.columns[given.index(name)][2]) for name in ends]


def _from_source(source: Source, ends: list[tuple[str, str]], network: Network) -> _Edges:
    dialect = source.engine.dialect
    plans = [
        coder(f"r.v{i}", kind, network.nodes, f"nodes{i}_", textual=source.textual, dialect=dialect)
        for i, (_, kind) in enumerate(ends)
    ]
    raw = ", ".join(f"{sql.name(at)} AS v{i}" for i, (at, _) in enumerate(ends))
    joins = [join for plan in plans for join in plan.joins]
    coded = (
        f"(SELECT r.v0 AS v0, r.v1 AS v1, {plans[0].code} AS a, {plans[1].code} AS b "
        f"FROM (SELECT {raw} FROM {TABLE}) AS r {' '.join(joins)})"
    )
    one, two = ("a", "b") if network.directed else ("least(a, b)", "greatest(a, b)")
    known = "a IS NOT NULL AND b IS NOT NULL"
    pairs = f"SELECT CASE WHEN {known} THEN {one} END AS tail, CASE WHEN {known} THEN {two} END AS head FROM {coded} AS s"
    statement = f"SELECT tail, head, count(*) AS n FROM ({pairs}) AS t GROUP BY tail, head"
    batches = list(source.run(statement))
    tail, head, times = (
        np.concatenate([np.zeros(0, dtype=np.int64), *(batch[key] for batch in batches)]).astype(np.int64)
        for key in ("tail", "head", "n")
    )
    there = source.records
    if there is None:
        [(there,)] = source.rows_of(f"SELECT count(*) FROM {TABLE}")
    if int(times.sum()) != there:
        raise DataError(
            f"{source.label}: {there} edges, but {int(times.sum())} were counted. The data changed meanwhile, or the engine has "
            "a fault; nothing was released.",
            code="data.lost",
        )
    strangers: list[tuple[Any, ...]] = []
    if len(tail) and int(tail.min()) < 0:
        shown = [printed(f"v{i}", kind, dialect) for i, (_, kind) in enumerate(ends)]
        strangers = source.rows_of(
            f"SELECT v, count(*) AS n FROM (SELECT {shown[0]} AS v FROM {coded} AS s WHERE a IS NULL UNION ALL "
            f"SELECT {shown[1]} AS v FROM {coded} AS t WHERE b IS NULL) AS u GROUP BY v ORDER BY n DESC, v LIMIT {SHOWN}"
        )
    return _Edges(source.label, tail, head, times, tuple((value, int(n)) for value, n in strangers))


def _from_networkx(graph: Any, network: Network) -> _Edges:
    if bool(graph.is_directed()) != network.directed:
        raise DataError(
            f"the graph is {'directed' if graph.is_directed() else 'undirected'}, the network is not alike: expected both of "
            "one kind. networkx has to_directed() and to_undirected().",
            code="data.directed",
        )
    found = _from_pairs("the graph", list(graph.edges()), network)
    named = {value for value, _ in found.strangers}
    known = set(network.nodes)
    alone = [str(node) for node in graph.nodes if node not in known and str(node) not in named]
    return replace(found, strangers=(*found.strangers, *((node, 0) for node in alone))[:SHOWN])


def _are_pairs(data: Any) -> bool:
    """Whether these are edges themselves: a list of pairs, or the edges of a networkx graph."""
    if type(data).__name__.endswith("EdgeView") or isinstance(data, (list, tuple)):
        wrong = [
            at for at, edge in enumerate(data) if not (isinstance(edge, (tuple, list)) and len(edge) == 2)
        ]
        if wrong and len(wrong) < len(data):
            raise DataError(
                f"the list of edges: entry {wrong[0] + 1:,} is not a pair of nodes: expected two nodes in each entry.",
                code="data.edges",
                value=wrong[0] + 1,
            )
        return not wrong
    return False


def _from_pairs(label: str, pairs: list[Any], network: Network) -> _Edges:
    position = {node: at for at, node in enumerate(network.nodes)}

    def find(node: Any) -> int:
        try:
            return position.get(node, -1)
        except TypeError:
            # What cannot be looked up, such as a list, is no node.
            return -1

    ends = np.array([(find(u), find(v)) for u, v in pairs], dtype=np.int64).reshape(-1, 2)
    strange = Counter(
        str(node)
        for pair, row in zip(pairs, ends, strict=True)
        for node, at in zip(pair, row, strict=True)
        if at < 0
    )
    return _Edges(
        label, ends[:, 0], ends[:, 1], np.ones(len(ends), dtype=np.int64), tuple(strange.most_common(SHOWN))
    )


def _from_matrix(matrix: Any, network: Network) -> _Edges:
    from scipy import sparse

    given = sparse.coo_array(matrix)
    if given.shape != (network.order, network.order):
        raise DataError(
            f"an adjacency matrix of shape {given.shape}: expected {network.order} rows and columns, one for each node.",
            code="data.matrix",
            value=given.shape,
        )
    with np.errstate(invalid="ignore"):
        times = np.asarray(given.data).astype(np.int64)
    if np.any(times != given.data) or np.any(times < 0) or float(times.sum(dtype=np.float64)) > 2.0**62:
        raise DataError(
            "the adjacency matrix has entries that are not whole numbers >= 0: expected how often a pair is joined. If they are "
            "weights, give (matrix != 0).",
            code="data.matrix",
        )
    # Entries for one pair are added up; in 8 bits 256 of them would be none.
    given = sparse.coo_array((times, given.coords), shape=given.shape)
    given.sum_duplicates()
    times = np.asarray(given.data)
    row, column = (np.asarray(part, dtype=np.int64) for part in given.coords)
    if not network.directed:
        difference = given - given.T
        if abs(difference).max() > 0:
            raise DataError(
                "the adjacency matrix is not symmetric, but the network is undirected: expected equal entries for "
                "(u, v) and (v, u). If it holds each edge once, give matrix + matrix.T.",
                code="data.matrix",
            )
        upper = row <= column
        row, column, times = row[upper], column[upper], times[upper]
    keep = times > 0
    return _Edges(MATRIX, row[keep], column[keep], times[keep])
