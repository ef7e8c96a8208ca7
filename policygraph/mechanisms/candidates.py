"""The mechanisms that ``auto`` chooses among and ``compare`` lists. Owns :class:`Candidate`, :data:`CANDIDATES` and :func:`register`.

Adding a mechanism is adding an entry. Entries of third parties come from entry points of the group ``policygraph.mechanisms``, or from
:func:`register` at run time, and are considered like ours. Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Any

from policygraph.effort import SECOND
from policygraph.errors import InputError, PolicyGraphError, RefusedError, shown
from policygraph.mechanisms.additive import Additive, for_loss
from policygraph.mechanisms.base import Calibrated, Mechanism, chosen
from policygraph.mechanisms.constrained.choice import choose as choose_with_facts
from policygraph.mechanisms.constrained.mechanism import Confined, Fitted, Kernel
from policygraph.mechanisms.cube.mechanism import Cube
from policygraph.mechanisms.measured import Measured
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.partitioned.partitioners import Matchings
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism
from policygraph.mechanisms.strategy.workload import intervals
from policygraph.mechanisms.transformed.mechanism import (
    TransformedConsistent,
    TransformedGaussian,
    TransformedLaplace,
)
from policygraph.model.domain import Domain
from policygraph.model.loss import Epsilon, Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.matrices import MatrixQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.queries.network_statistics import NetworkStatistic
from policygraph.model.queries.workloads import BoxQuery
from policygraph.sensitivity.proofs import proved
from policygraph.transforms.incidence.base import graph_of
from policygraph.transforms.incidence.tree import LineTransform, is_forest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "policygraph.mechanisms"
"""The group of entry points under which distributions offer mechanisms."""
EDGES = 200_000
"""Most edges of a graph with cycles on which noise is considered."""
ENTRIES = 20_000_000
"""Most numbers of answers times cells for which the error of noise on edges is computed."""
STRATEGY_CELLS = 1 << 16
EVALUATIONS = 120
PLAIN_WORK = 3 * SECOND
"""For the sensitivity of the answers themselves; a bound is computed again in full if they are measured in the end."""
CUBE_TABLES = 256
CUBE_ATTRIBUTES = 8
"""Most tables, and attributes in them, for which a cube is considered: its choice takes seconds for these."""
TRUST = "that it keeps the loss rests on its authors"
MATCHED_CELLS = 1024
"""Most cells for which partitions by matching all pairs are compared: a run takes seconds beyond."""

Test = Callable[[Query, Policy, Loss], bool]
Maker = Callable[[Query, Policy, Loss], Mechanism]


def _always(query: Query, policy: Policy, loss: Loss) -> bool:
    return True


def _never(query: Query, policy: Policy, loss: Loss) -> bool:
    return False


@dataclass(frozen=True)
class Candidate:
    """A mechanism that can be chosen, and when.

    Attributes
    ----------
    name
        What comparisons, policy files and the command call it.
    mechanism
        The mechanism for a query, policy and loss.
    accepts
        Whether ``auto`` considers it for a query, policy and loss; data-free, repeatable and cheap. What it expects is
        ``total_error`` of what it calibrates.
    listed
        Whether comparisons list it, so that it can be asked for by name; None: wherever it is accepted.
    words
        What the sentence on a choice calls it: a text, or a function of the calibrated mechanism.
    calibrate
        How ``auto`` calibrates it, where that is not ``mechanism(...).calibrate``; None from it for "does not apply".
    worth
        Whether it is worth calibrating beside what others, before it in the list, have calibrated: for what takes long.
    origin
        The plug-in that it comes from; empty for those of the library.
    """

    name: str
    mechanism: Maker
    accepts: Test = _always
    listed: Test | None = None
    words: str | Callable[[Calibrated], str] = ""
    calibrate: Callable[[Query, Policy, Loss], Calibrated | None] | None = None
    worth: Callable[[Policy, Sequence[Calibrated]], bool] | None = None
    origin: str = ""

    def make(self, query: Query, policy: Policy, loss: Loss) -> Calibrated | None:
        """Calibrate it as ``auto`` does."""
        if self.calibrate is not None:
            return self.calibrate(query, policy, loss)
        return self.mechanism(query, policy, loss).calibrate(query, policy, loss)

    def is_listed(self, query: Query, policy: Policy, loss: Loss) -> bool:
        """Whether comparisons list it."""
        return (self.listed or self.accepts)(query, policy, loss)

    def describe(self, ready: Calibrated) -> str:
        """What a sentence calls it, once it is calibrated."""
        said = self.words(ready) if callable(self.words) else self.words or self.name
        return f"{said} ({self.origin})" if self.origin else said


def range_like(query: Query) -> bool:
    """Whether all answers are counts of ranges or boxes.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 4})
    >>> range_like(pg.queries.prefix(domain)), range_like(pg.queries.identity(domain))
    (True, False)
    """
    return isinstance(query, BoxQuery) or (isinstance(query, MatrixQuery) and intervals(query) is not None)


def coupled(policy: Policy) -> bool:
    """Whether public facts couple records: an edge of the policy graph can break them, or there is no graph.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 4})
    >>> line = pg.PolicyGraph.line(domain)
    >>> [coupled(pg.Policy(domain, graph, [pg.Total()])) for graph in (None, line)]
    [True, False]
    """
    if not policy.constraints:
        return False
    try:
        graph_of(policy)
    except RefusedError:
        return True
    return False


def _counts(query: Query) -> bool:
    """Whether the answers are sums of counts of cells; all else has a mechanism of its own."""
    return not isinstance(query, (MeasureQuery, NetworkStatistic))


def _independent(query: Query, policy: Policy, loss: Loss) -> bool:
    return _counts(query) and not coupled(policy)


def _cheaply_proved(query: Query, policy: Policy, loss: Loss) -> Calibrated:
    return for_loss(loss).calibrate(query, policy, loss, proved(query, policy, loss.norm, PLAIN_WORK))


def _keeping_facts(query: Query, policy: Policy, loss: Loss) -> Calibrated | None:
    """The best of those that look at the public facts; where these couple no records, only if it keeps them."""
    found = choose_with_facts(query, policy, loss)
    return found if coupled(policy) or isinstance(found, Confined) else None


def _few_edges(query: Query, policy: Policy, loss: Loss) -> bool:
    """Whether the graph has few edges or no cycle, and the error is cheap to compute."""
    if not _independent(query, policy, loss) or not isinstance(policy.domain, Domain):
        return False
    graph = graph_of(policy)
    # Where records only appear and vanish, the edges are the cells: the same noise for cells, one of the strategies for ranges.
    if graph.rule.n_edges == 0 and (query.is_identity or range_like(query)):
        return False
    if graph.n_edges > EDGES and not is_forest(graph):
        return False
    simple = query.is_identity or (isinstance(query, BoxQuery) and LineTransform.accepts(policy))
    return simple or query.height * policy.domain.size <= ENTRIES


def _few_cells(query: Query, policy: Policy, loss: Loss) -> bool:
    return (
        _independent(query, policy, loss)
        and isinstance(policy.domain, Domain)
        and policy.domain.size <= STRATEGY_CELLS
        and not query.is_identity
    )


def _sums_of_cells(query: Query, policy: Policy, loss: Loss) -> bool:
    if not _few_cells(query, policy, loss) or range_like(query):
        return False
    return graph_of(policy).rule.n_edges > 0 and query.height * policy.domain.size <= ENTRIES


def _ranges(query: Query, policy: Policy, loss: Loss) -> bool:
    return _few_cells(query, policy, loss) and range_like(query)


def _sets(query: Query) -> Sequence[tuple[str, ...]]:
    return query.sets if isinstance(query, CuboidQuery) else ()


def _one_table(query: Query, policy: Policy, loss: Loss) -> bool:
    """Strategies made for ranges: their sensitivity under public facts can take minutes, and tables have the cube."""
    sets = _sets(query)
    return len(sets) < 2 or len({name for names in sets for name in names}) < 2


def _several_tables(query: Query, policy: Policy, loss: Loss) -> bool:
    """Several tables of the same weight, and few enough for a choice within seconds.

    Tables count alike in a cube, whatever their sizes: counting cells alike would spend all accuracy on the largest table.
    """
    if not isinstance(query, CuboidQuery) or not 2 <= len(query.sets) <= CUBE_TABLES:
        return False
    return (
        len(set(query.weights)) == 1
        and len({name for names in query.sets for name in names}) <= CUBE_ATTRIBUTES
    )


def _cube(query: Query, policy: Policy, loss: Loss) -> Calibrated | None:
    try:
        return Cube().calibrate(query, policy, loss)
    except InputError:
        return None  # nobody asked for a cube: a failure to make one is not an error


def _closed_form(policy: Policy, made: Sequence[Calibrated]) -> bool:
    """Under facts that couple records, only where sensitivities have a closed form: a search for another would take long."""
    if not coupled(policy):
        return True
    proof = made[0].sensitivity if made else None
    return proof is not None and proof.power != 0 and proof.method.startswith("closed form")


def _words_on_edges(ready: Calibrated) -> str:
    where = "every cell" if graph_of(ready.policy).rule.n_edges == 0 else "the edges of the policy graph"
    return f"noise on {where}"


def _words_on_strategy(ready: Any) -> str:
    return f"noise on {ready.strategy.height:,} other numbers ({ready.strategy.describe()})"


def _words_with_facts(ready: Calibrated) -> str:
    return "noise on every answer" if isinstance(ready, Additive) else "noise that keeps the public facts"


def _pure(query: Query, policy: Policy, loss: Loss) -> bool:
    return isinstance(loss, Epsilon)


EVERY_ANSWER = Candidate(
    "every answer",
    lambda query, policy, loss: for_loss(loss),
    _independent,
    _always,
    "noise on every answer",
    _cheaply_proved,
)
"""The simplest of all, which others have to beat clearly."""

CANDIDATES: tuple[Candidate, ...] = (
    Candidate("measure", lambda *_: Measured(), lambda query, *_: isinstance(query, MeasureQuery), _never),
    Candidate(
        "statistic",
        lambda *_: StatisticNoise(),
        lambda query, *_: isinstance(query, NetworkStatistic),
        _never,
    ),
    Candidate(
        "facts",
        lambda *_: Fitted(),
        lambda query, policy, _: _counts(query) and bool(policy.constraints),
        _never,
        _words_with_facts,
        _keeping_facts,
    ),
    EVERY_ANSWER,
    Candidate(
        "edges",
        lambda query, policy, loss: (
            TransformedLaplace() if isinstance(loss, Epsilon) else TransformedGaussian()
        ),
        _few_edges,
        _always,
        _words_on_edges,
    ),
    Candidate("edges, consistent", lambda *_: TransformedConsistent(), _never, _always),
    Candidate(
        "cells",
        lambda *_: MatrixMechanism("identity", over="cells"),
        _sums_of_cells,
        _always,
        _words_on_strategy,
    ),
    Candidate("tree", lambda *_: MatrixMechanism("tree"), _never, _one_table),
    Candidate("wavelet", lambda *_: MatrixMechanism("wavelet"), _never, _one_table),
    Candidate("optimised strategy", lambda *_: MatrixMechanism("optimised"), _never, _one_table),
    Candidate(
        "quickly optimised strategy",
        lambda *_: MatrixMechanism(evaluations=EVALUATIONS),
        _ranges,
        _never,
        _words_on_strategy,
    ),
    Candidate("partition", lambda *_: Partitioned(), _never, _pure),
    Candidate("partition, consistent", lambda *_: Partitioned(then=TransformedConsistent()), _never, _pure),
    Candidate(
        "matching",
        lambda *_: Partitioned(Matchings()),
        _never,
        lambda query, policy, loss: isinstance(loss, Epsilon) and query.domain.size <= MATCHED_CELLS,
    ),
    Candidate("free numbers", lambda *_: Kernel(), _never, lambda _, policy, __: bool(policy.constraints)),
    Candidate(
        "fitted to the facts", lambda *_: Fitted(), _never, lambda _, policy, __: bool(policy.constraints)
    ),
    Candidate(
        "cube",
        lambda *_: Cube(),
        _several_tables,
        lambda query, *_: len(_sets(query)) > 1,
        "a cube of tables that agree",
        _cube,
        _closed_form,
    ),
)
"""Those of the library, in the order of comparisons; of equals ``auto`` takes the first."""

_registered: dict[str, Candidate] = {}


def candidates() -> Iterator[Candidate]:
    """Ours, then those of installed distributions, then those registered at run time.

    Examples
    --------
    >>> [each.name for each in candidates()][3:5]
    ['every answer', 'edges']
    """
    yield from CANDIDATES
    yield from (_of_entry_point(each) for each in _entry_points())
    yield from _registered.values()


def known_names() -> list[str]:
    """Names that can be asked for, for some query, policy and loss; no plug-in is loaded to know its name."""
    ours = [each.name for each in CANDIDATES if each.listed is not _never]
    return [*ours, *(each.name for each in _entry_points()), *_registered, "auto"]


def register(
    name: str,
    mechanism: Mechanism | type[Mechanism] | Candidate | Maker,
    *,
    accepts: Test = _always,
    words: str | Callable[[Calibrated], str] = "",
) -> None:
    """Have a mechanism considered by ``auto`` and ``compare``, and known by name, until this program ends.

    Parameters
    ----------
    name
        What comparisons, policy files and the command call it.
    mechanism
        A mechanism, its class, a function of query, policy and loss that gives one, or a candidate, which says the rest itself.
    accepts
        Whether ``auto`` considers it for a query, policy and loss; it must be cheap, repeatable, and cannot see data.
    words
        What the sentence on a choice calls it; the name by default.

    Raises
    ------
    InputError
        When the name is taken, or this is not a mechanism.

    Examples
    --------
    >>> import policygraph as pg
    >>> register("plain Laplace", pg.Laplace, accepts=lambda query, policy, loss: isinstance(loss, pg.Epsilon))
    >>> domain = pg.Domain({"age": 4})
    >>> found = pg.compare(pg.queries.identity(domain), pg.Policy(domain), epsilon=1, methods=["plain Laplace"])
    >>> found.best.mechanism
    'Laplace'
    >>> unregister("plain Laplace")
    """
    if not isinstance(name, str) or not name.strip() or name in known_names():
        raise InputError(
            f"name={shown(name)}: expected a name that no other mechanism has.",
            code="plugin.name",
            value=name,
        )
    given = (
        mechanism
        if isinstance(mechanism, Candidate)
        else Candidate(name, _maker(mechanism), accepts, None, words)
    )
    _registered[name] = _adopted(replace(given, name=name), f"plug-in {name!r}, registered at run time")


def unregister(name: str) -> None:
    """Forget what was registered under a name."""
    _registered.pop(name, None)


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


@cache
def _of_entry_point(point: EntryPoint) -> Candidate:
    """The candidate that an installed distribution offers; one that always fails, in a sentence, where it is broken."""
    dist = point.dist
    origin = f"plug-in {point.name!r} of {'an unknown distribution' if dist is None else dist.name}"
    version = "" if dist is None else f" {dist.version}"
    same = [each for each in _entry_points() if each.name == point.name]
    fault = ""
    if len(same) > 1 or any(point.name == each.name for each in CANDIDATES) or point.name == "auto":
        fault = "has a name that another mechanism has"
    else:
        try:
            found = point.load()
            made = found if isinstance(found, Candidate) else Candidate(point.name, _maker(found))
            return _adopted(replace(made, name=point.name), origin, version)
        except Exception as cause:
            fault = f"cannot be loaded from {point.value} ({_brief(cause)})"
    return Candidate(
        point.name, lambda *_: PlugIn(point.name, None, fault, origin), _plain_policy, origin=origin + version
    )


def _maker(given: Any) -> Maker:
    if isinstance(given, type) and issubclass(given, Mechanism):
        given = given()
    if isinstance(given, Mechanism):
        return lambda query, policy, loss: given
    if not callable(given) or isinstance(given, type):
        raise InputError(
            f"mechanism={shown(given)}: expected a Mechanism, its class, a Candidate, or a function of query, policy and loss that "
            "gives a Mechanism.",
            code="plugin.mechanism",
            value=given,
        )
    made: Maker = given
    return made


def _plain_policy(query: Query, policy: Policy, loss: Loss) -> bool:
    return _counts(query) and isinstance(policy, Policy)


def _adopted(given: Candidate, origin: str, version: str = "") -> Candidate:
    """A candidate of a plug-in: considered for counts under a policy only, and its faults are sentences."""

    def mechanism(query: Query, policy: Policy, loss: Loss) -> Mechanism:
        try:
            if given.accepts(query, policy, loss) not in (True, False):
                raise TypeError("accepts() is neither true nor false")
            made = given.mechanism(query, policy, loss)
            if not isinstance(made, Mechanism):
                raise TypeError(f"{shown(made)} is not a Mechanism")
        except PolicyGraphError:
            raise
        except Exception as cause:
            return PlugIn(given.name, None, f"failed ({_brief(cause)})", origin)
        return PlugIn(given.name, made, "", origin)

    def accepts(query: Query, policy: Policy, loss: Loss) -> bool:
        if not _plain_policy(query, policy, loss):
            return False
        try:
            return bool(given.accepts(query, policy, loss))
        except Exception:
            return True  # the fault is reported when it is calibrated

    return replace(
        given,
        mechanism=mechanism,
        accepts=accepts,
        listed=accepts,
        calibrate=None,
        worth=None,
        origin=origin + version,
    )


def _brief(cause: Exception) -> str:
    said = " ".join(str(cause).split())
    return f"{type(cause).__name__}: {said[:200]}" if said else type(cause).__name__


@dataclass(frozen=True)
class PlugIn(Mechanism):
    """A mechanism of others: what goes wrong in it is one sentence that names it, before anything is charged.

    Attributes
    ----------
    inner
        The mechanism; None where there is a fault.
    fault
        What is wrong with the plug-in itself.
    origin
        Where it comes from, without a version: a new version of a plug-in knows the requests of the old one.
    """

    name: str
    inner: Mechanism | None
    fault: str = ""
    origin: str = ""

    def calibrate(self, query: Query, policy: Policy, loss: Loss, sensitivity: Any = None) -> Calibrated:
        if self.inner is None:
            raise self._broken(self.fault)
        try:
            ready = self.inner.calibrate(query, policy, loss, sensitivity)
            if not isinstance(ready, Calibrated):
                raise TypeError(f"calibrate gave {shown(ready)}: expected a Calibrated")
            if (ready.query, ready.policy, ready.loss) != (query, policy, loss):
                raise ValueError("calibrate is for another query, policy or loss than asked")
            expected = float(ready.total_error)
            if isnan(expected) or expected < 0:
                raise ValueError(f"the expected error is {expected}")
            list(ready.stages())
        except PolicyGraphError:
            raise
        except Exception as cause:
            raise self._broken(f"failed ({_brief(cause)})") from cause
        return chosen(ready, f"Released by the {self.origin}: {TRUST}.")

    def _broken(self, fault: str) -> InputError:
        return InputError(
            f"the {self.origin} {fault}; nothing was charged: repair or remove it, or name another mechanism.",
            code="plugin.broken",
            value=self.name,
        )
