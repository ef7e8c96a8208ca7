"""All mechanisms side by side. Owns :func:`compare` and the names of mechanisms.

Expected errors need no data. Measured errors are computed from true counts without noise or charge, so that the data must be public
or simulated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from policygraph.curator.counting.given import read_data
from policygraph.curator.noise import SeededRng
from policygraph.errors import InputError, PolicyGraphError, RefusedError
from policygraph.exact import Exact, show
from policygraph.mechanisms.additive import Additive, for_loss
from policygraph.mechanisms.auto import STRATEGY_CELLS, choose, expected_total
from policygraph.mechanisms.base import Calibrated, Floats, Mechanism
from policygraph.mechanisms.comparison import PUBLIC_ONLY, Comparison, Method
from policygraph.mechanisms.constrained.mechanism import Confined, Fitted, FittedNoise, Kernel
from policygraph.mechanisms.cube.mechanism import Cube, CubeNoise
from policygraph.mechanisms.partitioned.mechanism import Partitioned, PartitionedNoise
from policygraph.mechanisms.partitioned.partitioners import Matchings
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism
from policygraph.mechanisms.transformed.mechanism import (
    EdgeNoise,
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)
from policygraph.model.loss import Epsilon, Loss, Rho, loss_of
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.sensitivity.request import asking
from policygraph.ties import ranked

__all__ = ["PUBLIC_ONLY", "Comparison", "Method", "compare", "named_mechanism", "standard_methods"]

MATCHED_CELLS = 1024
"""Most cells for which partitions by matching all pairs are among the standard methods: a run takes seconds beyond."""

Make = Callable[[Query, Policy, Loss], Calibrated]


def standard_methods(
    query: Query, policy: Policy, loss: Loss, cube: Mapping[str, Any] | None = None
) -> dict[str, Mechanism]:
    """The methods that are worth a comparison for this kind of query, policy and loss, by their names.

    ``cube`` are the arguments of a cube that a policy file asks for, in place of the usual ones.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 8})
    >>> list(standard_methods(pg.queries.identity(domain), pg.Policy(domain), pg.Rho(1)))
    ['every answer', 'edges', 'edges, consistent', 'cells', 'tree', 'wavelet', 'optimised strategy']
    """
    pure = isinstance(loss, Epsilon)
    out: dict[str, Mechanism] = {
        "every answer": for_loss(loss),
        "edges": TransformedLaplace() if pure else TransformedGaussian(),
        "edges, consistent": TransformedConsistent(),
        "cells": MatrixMechanism("identity", over="cells"),
    }
    sets = query.sets if isinstance(query, CuboidQuery) else ()
    if len(sets) < 2 or len({name for names in sets for name in names}) < 2:
        # Made for ranges: their sensitivity under public facts can take minutes, and tables have the cube.
        out |= {
            "tree": MatrixMechanism("tree"),
            "wavelet": MatrixMechanism("wavelet"),
            "optimised strategy": MatrixMechanism("optimised"),
        }
    if pure:
        out["partition"] = Partitioned()
        out["partition, consistent"] = Partitioned(then=TransformedConsistent())
        if query.domain.size <= MATCHED_CELLS:
            out["matching"] = Partitioned(Matchings())
    if policy.constraints:
        out["free numbers"] = Kernel()
        out["fitted to the facts"] = Fitted()
    if len(sets) > 1 or cube is not None:
        out["cube"] = Cube(**(cube or {}))
    return out


def named_mechanism(
    name: str | None, query: Query, policy: Policy, loss: Loss, cube: Mapping[str, Any] | None = None
) -> Mechanism | Literal["auto"]:
    """Find the mechanism behind a name of a comparison; without a name the cube of a policy file, if it asks for one.

    Raises
    ------
    InputError
        When no comparison of this query, policy and loss has that name.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 8})
    >>> named_mechanism("edges", pg.queries.identity(domain), pg.Policy(domain), pg.Rho(1)).name
    'TransformedGaussian'
    """
    if name is None:
        return "auto" if cube is None else Cube(**cube)
    if name == "auto":
        return "auto"
    known = standard_methods(query, policy, loss, cube)
    if name not in known:
        raise _unknown([name], known)
    return known[name]


def _unknown(names: list[str], known: Mapping[str, Mechanism]) -> InputError:
    every = [*known, "auto"]
    near = get_close_matches(str(names[0]), every, 1) if names else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(
        f"method {', '.join(map(repr, names)) or '(none)'}: expected mechanisms by name, or names among {', '.join(map(repr, every))}.{hint}",
        code="compare.method",
        value=names,
    )


def compare(
    query: Query,
    policy: Policy,
    loss: Loss | None = None,
    methods: Mapping[str, Mechanism] | Sequence[str] | None = None,
    data: Any = None,
    *,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    delta: Exact | None = None,
    runs: int = 10,
    seed: int | str = 0,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    cube: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    time_limit: float | None = None,
) -> Comparison:
    """Compare mechanisms by their expected errors and, on public or simulated data, by measured errors.

    Parameters
    ----------
    query, policy
        What to release, and what to hide.
    loss
        What a release may cost, such as ``pg.Epsilon("0.1")``; or give ``epsilon``, ``rho``, or ``epsilon`` with ``delta``.
    methods
        Mechanisms by name, or names of :func:`standard_methods`; None for all of these, and for what ``"auto"`` takes.
    data
        PUBLIC OR SIMULATED data, anything that :func:`policygraph.release` takes: measured errors are neither noised nor charged.
    epsilon, rho, delta
        The loss as numbers, in place of ``loss``.
    runs
        How often each mechanism is run on the data.
    seed
        Of the noise of these runs, which is repeatable and therefore not private.
    columns, edges
        How to read the data; as for :func:`policygraph.release`.
    cube
        Arguments of ``pg.Cube`` for the method ``"cube"``, as a policy file has them.
    progress
        Called with a sentence before each method.
    time_limit
        Seconds for all searches of the comparison, where a limit in time is wanted; a comparison that it cut short says so.

    Returns
    -------
    Comparison
        A table (``print``, ``to_dict``, ``table``) and a plot.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 100})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> found = compare(pg.queries.all_ranges(domain), policy, methods=["every answer", "edges", "tree"], epsilon="0.1")
    >>> print(found)
    Mean squared error of an answer at epsilon = 0.1.
    method        expected  note
    edges         391.8     noise on the edges of the policy graph
    tree          1361      tree of 16 over the prefix sums along age
    every answer  2e+06     sensitivity 100
    """
    _check_kinds(query, policy)
    asked = _loss(loss, epsilon, rho, delta)
    tell = progress or (lambda stage: None)
    chosen = _named(methods, standard_methods(query, policy, asked, cube))
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise InputError(f"runs={runs!r}: expected a whole number >= 1.", code="compare.runs", value=runs)
    counts = None if data is None else _counts(data, query, policy, columns, edges)
    made = []
    with asking(time_limit) as request:
        for at, (name, make) in enumerate(chosen, 1):
            tell(f"{name} ({at} of {len(chosen)})")
            made.append(_row(name, make, query, policy, asked, counts, runs, seed))
    apply = ranked((row for row in made if row.applies), key=lambda row: row.figure)
    rows = [*apply, *(row for row in made if not row.applies)]
    if not rows[0].applies:
        raise RefusedError(
            f"none of the methods applies; {rows[0].name}: {rows[0].note}", code="compare.none"
        )
    return Comparison(tuple(rows), asked, 0 if counts is None else runs, request.cut_short)


def _check_kinds(query: Any, policy: Any) -> None:
    if isinstance(query, Query) and isinstance(policy, Policy):
        return
    swapped = isinstance(query, Policy) and isinstance(policy, Query)
    raise InputError(
        "query and policy are swapped: expected the query first, then the policy."
        if swapped
        else f"query={query!r}, policy={policy!r}: expected a query such as pg.queries.identity(domain), then a Policy.",
        code="release.arguments",
    )


def _loss(loss: Any, epsilon: Exact | None, rho: Exact | None, delta: Exact | None) -> Loss:
    if loss is None:
        return loss_of(epsilon, rho, delta)
    if not isinstance(loss, (Epsilon, Rho)) or not epsilon is rho is delta is None:
        raise InputError(
            f"loss={loss!r}: expected a loss such as pg.Epsilon('0.1'), or epsilon=, rho=, or epsilon= with delta=, and one of "
            "them only.",
            code="release.loss",
            value=loss,
        )
    return loss


def _named(
    methods: Mapping[str, Mechanism] | Sequence[str] | None, known: dict[str, Mechanism]
) -> list[tuple[str, Make]]:
    if methods is None:
        return [*((name, each.calibrate) for name, each in known.items()), ("auto", choose)]
    if isinstance(methods, Mapping):
        wrong = [name for name, each in methods.items() if not isinstance(each, Mechanism)]
        found: list[tuple[str, Make]] = [
            (name, each.calibrate) for name, each in methods.items() if name not in wrong
        ]
    else:
        names = [methods] if isinstance(methods, str) else list(methods)
        wrong = [name for name in names if name not in known and name != "auto"]
        found = [
            (name, choose if name == "auto" else known[name].calibrate) for name in names if name not in wrong
        ]
    if wrong or not found:
        raise _unknown(wrong, known)
    return found


def _counts(
    data: Any,
    query: Query,
    policy: Policy,
    columns: Mapping[str, str] | None,
    edges: Mapping[str, str] | None,
) -> Any:
    counts = read_data(data, policy, columns, edges)
    query.check_domain(counts.domain)
    table = counts.vector()
    policy.check_table(table)
    return table


def _row(
    name: str, make: Make, query: Query, policy: Policy, loss: Loss, counts: Any, runs: int, seed: int | str
) -> Method:
    start = time.perf_counter()
    try:
        large = getattr(make, "__self__", None)
        if isinstance(large, MatrixMechanism) and query.domain.size > STRATEGY_CELLS:
            raise RefusedError(f"not compared for more than {STRATEGY_CELLS:,} cells", code="compare.cells")
        ready = make(query, policy, loss)
        expected, note = _expected(ready)
    except (RefusedError, InputError) as refusal:
        return Method(name, "", None, None, None, time.perf_counter() - start, _first_sentence(refusal))
    seconds = time.perf_counter() - start
    if counts is None:
        return Method(name, ready.mechanism, expected, None, None, seconds, note)
    errors = np.fromiter(_measured(ready, counts, runs, f"{seed} {name}"), dtype=np.float64, count=runs)
    spread = float(errors.std(ddof=1) / np.sqrt(runs)) if runs > 1 else None
    return Method(name, ready.mechanism, expected, float(errors.mean()), spread, seconds, note)


def _first_sentence(refusal: PolicyGraphError) -> str:
    return "does not apply: " + str(refusal).split(". ", 1)[0].rstrip(".")


def _expected(ready: Calibrated) -> tuple[float | None, str]:
    """Expected mean squared error of an answer, and what it is."""
    if isinstance(ready, PartitionedNoise):
        return None, "buckets chosen privately; the error depends on the data"
    if isinstance(ready, EdgeNoise) and ready.consistent:
        return None, "the nearest whole non-negative cells; the error depends on the data"
    mean = expected_total(ready) / ready.query.height
    if isinstance(ready, FittedNoise):
        return mean, "expected error at most"
    if isinstance(ready, EdgeNoise):
        return mean, "noise on the edges of the policy graph"
    if isinstance(ready, Confined):
        return mean, "noise inside what the public facts leave free"
    if isinstance(ready, CubeNoise):
        more = "" if ready.finish.plain else "; the expected error is that of the least-squares estimates"
        return mean, f"the tables that serve all of them best, then least squares{more}"
    measured = getattr(ready, "strategy", None)
    if measured is not None and hasattr(measured, "describe"):
        return mean, str(measured.describe())
    if isinstance(ready, Additive):
        root = "" if ready.sensitivity.norm == "l1" else "the root of "
        return mean, f"sensitivity {root}{show(ready.sensitivity.power)}"
    return mean, ""


def _measured(ready: Calibrated, counts: Any, runs: int, seed: str) -> Iterator[float]:
    """Mean squared error of an answer in each run."""
    factors = [float(ready.factor(at)) for at in range(len(ready.query.parts))]
    heights = [part.height for part in ready.query.parts]
    truth: Floats = ready.query.answer(counts) * np.repeat(factors, heights)
    source = SeededRng(seed)
    for _ in range(runs):
        made = ready.run(counts, source)
        values = np.concatenate([np.asarray(table.values, dtype=np.float64) for table in made.tables])
        yield float(np.mean((values - truth) ** 2))
