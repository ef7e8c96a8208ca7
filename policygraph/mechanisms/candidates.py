"""The mechanisms that ``auto`` chooses among and ``compare`` lists. Owns :class:`Candidate`, :data:`CANDIDATES` and :func:`register`.

Adding a mechanism is adding an entry. Entries of third parties come from entry points of the group ``policygraph.mechanisms``, or from
:func:`register` at run time, and are considered like ours. Nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

from policygraph.effort import SECOND
from policygraph.errors import InputError, PolicyGraphError, RefusedError, shown
from policygraph.mechanisms.adaptive.mechanism import AdaptiveCube
from policygraph.mechanisms.additive import Additive, for_loss
from policygraph.mechanisms.base import Calibrated, Mechanism, chosen
from policygraph.mechanisms.constrained.mechanism import Fitted, Kernel, hopeless
from policygraph.mechanisms.cube.mechanism import Cube, CubeNoise
from policygraph.mechanisms.measured import Measured
from policygraph.mechanisms.partitioned.mechanism import Partitioned
from policygraph.mechanisms.partitioned.partitioners import Matchings
from policygraph.mechanisms.residuals.mechanism import Residuals
from policygraph.mechanisms.statistics import StatisticNoise
from policygraph.mechanisms.strategy.mechanism import MatrixMechanism, StrategyNoise
from policygraph.mechanisms.strategy.workload import intervals
from policygraph.mechanisms.transformed.adaptive import Adaptive
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
from policygraph.model.queries.products import ProductQuery
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.model.queries.workloads import BoxQuery
from policygraph.sensitivity.proofs import proved
from policygraph.transforms.incidence.base import graph_of
from policygraph.transforms.incidence.tree import LineTransform

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "policygraph.mechanisms"
"""The group of entry points under which distributions offer mechanisms."""
ENTRIES = 20_000_000
"""Most numbers of answers times cells for which the error of noise on edges is computed."""
STRATEGY_CELLS = 1 << 16
SEARCHED_CELLS, SEARCHED_EDGES, EVALUATIONS = 1 << 10, 20_000, 120
"""Beyond so many cells, or edges of the policy graph, a strategy for ranges is searched with so many evaluations, fewer than when it is asked for by name."""
PLAIN_WORK = 3 * SECOND
"""For the sensitivity of the answers themselves; a bound is computed again in full if they are measured in the end."""
CUBE_TABLES = 256
CUBE_ATTRIBUTES = 8
"""Most tables, and attributes in them, for which a cube is considered: its choice takes seconds for these."""
TRUST = "that it keeps the loss rests on its authors"
MATCHED_CELLS = 1024
"""Most cells for which partitions by matching all pairs are compared: a run takes seconds beyond."""

FITTED_CELLS, FITTED_ANSWERS = 400, 1_000
"""Up to so many cells and answers noise inside what public facts leave free is considered, in exact linear algebra; tables have the cube beyond."""
FREE_NUMBERS = 60
"""More free numbers than this are not measured one by one: with many of them the fit is the better choice."""
TIED_CELLS = 36
"""Most cells for which strategies are certified under public facts that couple records: each takes a search."""

Test = Callable[[Query, Policy, Loss], bool]
Maker = Callable[[Query, Policy, Loss], Mechanism]
Reason = Callable[[Query, Policy, Loss], str]


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
        How ``auto`` calibrates it, where that is not ``mechanism(...).calibrate``: from query, policy, loss and what others, before it in the list, have calibrated.
        A text from it says why it is left out; None, that it does not apply.
    left_out
        Why ``auto`` does not try it where comparisons list it with an expected error; empty where it does not apply, or where its error depends on the
        data.
    origin
        The plug-in that it comes from; empty for those of the library.
    """

    name: str
    mechanism: Maker
    accepts: Test = _always
    listed: Test | None = None
    words: str | Callable[[Calibrated], str] = ""
    calibrate: Callable[[Query, Policy, Loss, Sequence[Calibrated]], Calibrated | str | None] | None = None
    left_out: Reason | None = None
    origin: str = ""

    def make(
        self, query: Query, policy: Policy, loss: Loss, others: Sequence[Calibrated] = ()
    ) -> Calibrated | str | None:
        """Calibrate it as ``auto`` does."""
        if self.calibrate is not None:
            return self.calibrate(query, policy, loss, others)
        return self.mechanism(query, policy, loss).calibrate(query, policy, loss)

    def reason(self, query: Query, policy: Policy, loss: Loss) -> str:
        """Why ``auto`` does not try it although comparisons list it; empty where there is nothing to say."""
        plain = _plain_policy(query, policy, loss)
        if self.left_out is None or not plain or not self.is_listed(query, policy, loss):
            return ""
        return self.left_out(query, policy, loss)

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
    return not isinstance(query, (MeasureQuery, NonlinearQuery))


def _independent(query: Query, policy: Policy, loss: Loss) -> bool:
    return _counts(query) and not coupled(policy)


def _every_answer(query: Query, policy: Policy, loss: Loss, others: Sequence[Calibrated]) -> Calibrated:
    # Where records are coupled, others build on the certificate of the answers, so that it is made in full at once.
    proof = proved(query, policy, loss.norm, None if coupled(policy) else PLAIN_WORK)
    return for_loss(loss).calibrate(query, policy, loss, proof)


def _few_for_facts(query: Query, policy: Policy, loss: Loss) -> bool:
    """Whether there are public facts, and few enough cells to compute what they leave free."""
    return (
        _with_facts(query, policy, loss)
        and policy.domain.size <= FITTED_CELLS
        and query.height <= FITTED_ANSWERS
    )


def _with_facts(query: Query, policy: Policy, loss: Loss) -> bool:
    return _counts(query) and bool(policy.constraints) and policy.definition != "edges"


def _many_for_facts(query: Query, policy: Policy, loss: Loss) -> str:
    if not _with_facts(query, policy, loss):
        return ""
    return f"tried for at most {FITTED_CELLS} cells and {FITTED_ANSWERS:,} answers"


def _fitted(over: Literal["answers", "cells"]) -> Any:
    def calibrate(
        query: Query, policy: Policy, loss: Loss, others: Sequence[Calibrated]
    ) -> Calibrated | None:
        try:
            ready = Fitted(over).calibrate(query, policy, loss)
        except InputError:
            return None  # the facts determine all answers
        # Facts that do not bind what is measured leave the noise as it is.
        return ready if ready.free.rank < len(ready.free.basis) else None

    return calibrate


def _free_numbers(
    query: Query, policy: Policy, loss: Loss, others: Sequence[Calibrated]
) -> Calibrated | str | None:
    try:
        free = Kernel().lattice(query, policy, loss)
    except InputError:
        return None  # the facts determine all answers
    if others and free.rank > FREE_NUMBERS:
        return f"{free.rank} free numbers are too many to certify"
    if others and hopeless(free, others, policy):
        return "a known pair of neighbours makes it more"
    return Kernel().on(free, query, policy, loss)


def _few_edges(query: Query, policy: Policy, loss: Loss) -> bool:
    """Whether the error of noise on the edges, or on those of a spanning forest, is cheap to compute."""
    if not _independent(query, policy, loss) or not isinstance(policy.domain, Domain):
        return False
    graph = graph_of(policy)
    # Where records only appear and vanish, the edges are the cells: the same noise for cells, one of the strategies for ranges.
    if graph.rule.n_edges == 0 and (query.is_identity or range_like(query)):
        return False
    simple = query.is_identity or (isinstance(query, BoxQuery) and LineTransform.accepts(policy))
    return simple or query.height * policy.domain.size <= ENTRIES


def _many_edges(query: Query, policy: Policy, loss: Loss) -> str:
    if not _independent(query, policy, loss) or graph_of(policy).rule.n_edges == 0:
        return ""
    return f"tried for at most {ENTRIES:,} cells times answers"


def _table(query: Query, policy: Policy, loss: Loss) -> bool:
    return _counts(query) and isinstance(policy.domain, Domain)


def _from_cells(query: Query, policy: Policy, loss: Loss) -> bool:
    """Whether to consider noise on the cells for a query of sums."""
    return (
        _table(query, policy, loss)
        and not query.is_identity
        and policy.domain.size <= STRATEGY_CELLS
        and query.height * policy.domain.size <= ENTRIES
    )


def _many_cells(query: Query, policy: Policy, loss: Loss) -> str:
    if not _table(query, policy, loss) or query.is_identity or query.domain.size > STRATEGY_CELLS:
        return ""  # there comparisons do not weigh it either
    return f"tried for at most {ENTRIES:,} cells times answers"


def _searched(query: Query, policy: Policy, loss: Loss) -> bool:
    """Whether to search a strategy at length: while that is quick, and where it can be better.

    For single cells that may only appear and vanish no strategy is better than noise on them: the error of A is at least the
    sum of S^2 / |a_j|^2 over its columns, none of which is longer than its sensitivity S.
    """
    if not _table(query, policy, loss) or not _one_table(query, policy, loss):
        return False
    if coupled(policy):
        return policy.domain.size <= TIED_CELLS and query.height <= FITTED_ANSWERS
    if query.is_identity and graph_of(policy).rule.n_edges == 0:
        return False
    return (
        policy.domain.size <= SEARCHED_CELLS
        and graph_of(policy).n_edges <= SEARCHED_EDGES
        and query.height <= SEARCHED_CELLS**2 // policy.domain.size
    )


def _ranges(query: Query, policy: Policy, loss: Loss) -> bool:
    return (
        _independent(query, policy, loss)
        and isinstance(policy.domain, Domain)
        and policy.domain.size <= STRATEGY_CELLS
        and range_like(query)
        and not _searched(query, policy, loss)
    )


def _not_searched(query: Query, policy: Policy, loss: Loss) -> str:
    if not _table(query, policy, loss) or policy.domain.size > STRATEGY_CELLS:
        return ""  # there comparisons do not weigh it either
    if coupled(policy):
        return f"certified under such public facts for at most {TIED_CELLS} cells"
    if query.is_identity and graph_of(policy).rule.n_edges == 0:
        return ""
    return f"searched at length for at most {SEARCHED_CELLS:,} cells and {SEARCHED_EDGES:,} edges"


def _not_plain(query: Query, policy: Policy, loss: Loss) -> str:
    """The short search for ranges tries all plain strategies."""
    return "" if _ranges(query, policy, loss) else _not_searched(query, policy, loss)


def _sets(query: Query) -> Sequence[tuple[str, ...]]:
    return query.sets if isinstance(query, CuboidQuery) else ()


def _one_table(query: Query, policy: Policy, loss: Loss) -> bool:
    """Strategies made for ranges: their sensitivity under public facts can take minutes, and tables have the cube."""
    sets = _sets(query)
    return len(sets) < 2 or len({name for names in sets for name in names}) < 2


def _cube_of(query: Query, policy: Policy, loss: Loss) -> Mechanism:
    """Several tables are measured by those that serve all of them best; one table as it is, to be fitted to public facts."""
    return Cube() if len(_sets(query)) > 1 else Cube("all")


def _tables(query: Query, policy: Policy, loss: Loss) -> bool:
    """Several tables, or one under public facts."""
    count = len(_sets(query))
    return count > 1 or (count == 1 and bool(policy.constraints))


def _few_tables(query: Query, policy: Policy, loss: Loss) -> bool:
    """Several tables, few enough for a choice within seconds, or one under public facts.

    Tables count alike in the choice of a cube, whatever their sizes: counting cells alike would spend all accuracy on the largest table.
    """
    sets = _sets(query)
    if len(sets) < 2:
        return _tables(query, policy, loss)
    return len(sets) <= CUBE_TABLES and len({name for names in sets for name in names}) <= CUBE_ATTRIBUTES


def _by_order(query: Query, policy: Policy, loss: Loss) -> bool:
    """Tables in which attributes are asked by prefixes or ranges."""
    return isinstance(query, ProductQuery) and all(f.kind != "rows" for f in query.factors.values())


def _many_tables(query: Query, policy: Policy, loss: Loss) -> str:
    return f"tried for at most {CUBE_TABLES} tables of {CUBE_ATTRIBUTES} attributes"


def _cube(query: Query, policy: Policy, loss: Loss, others: Sequence[Calibrated]) -> Calibrated | str | None:
    mechanism = _cube_of(query, policy, loss)
    if len(_sets(query)) > 1 and coupled(policy):
        # A search for the sensitivity of other tables would take long where that of these needs one; that of the cells may be there.
        proof = next((each.sensitivity for each in others if isinstance(each, Additive)), None)
        if proof is None or not proof.method.startswith("closed form"):
            domain = query.domain
            met = {name for names in _sets(query) for name in names}
            whole = isinstance(domain, Domain) and met == set(domain.names)
            if not whole or not any(isinstance(each, StrategyNoise) for each in others):
                return "its sensitivity under these public facts would need a search"
            mechanism = Cube("base")
    try:
        return mechanism.calibrate(query, policy, loss)
    except InputError:
        return None  # nobody asked for a cube: a failure to make one is not an error


def _words_on_edges(ready: Calibrated) -> str:
    where = "every cell" if graph_of(ready.policy).rule.n_edges == 0 else "the edges of the policy graph"
    return f"noise on {where}"


def _words_on_strategy(ready: Any) -> str:
    return f"noise on {ready.strategy.height:,} other numbers ({ready.strategy.describe()})"


def _words_on_free(ready: Any) -> str:
    count = ready.free.rank
    return f"noise on the {count} free number{'' if count == 1 else 's'}"


def _words_on_cube(ready: Calibrated) -> str:
    if len(_sets(ready.query)) > 1:
        summed = (
            coupled(ready.policy) and isinstance(ready, CubeNoise) and ready.asked.startswith("Cube Base")
        )
        return "a cube of tables that agree" + (
            " (all summed from the cells: the sensitivity of others would need a search)" if summed else ""
        )
    return "noise on every answer and a fit to the public facts in fractions"


def _pure(query: Query, policy: Policy, loss: Loss) -> bool:
    return isinstance(loss, Epsilon)


def _has_facts(query: Query, policy: Policy, loss: Loss) -> bool:
    return bool(policy.constraints)


EVERY_ANSWER = Candidate(
    "every answer",
    lambda query, policy, loss: for_loss(loss),
    lambda query, *_: _counts(query),
    _always,
    "noise on every answer",
    _every_answer,
)
"""The simplest of all, which others have to beat clearly."""

ADAPTIVE = Candidate("adaptive", lambda *_: Adaptive(), _never, _always)
"""What is published where counts should be non-negative."""

CANDIDATES: tuple[Candidate, ...] = (
    Candidate("measure", lambda *_: Measured(), lambda query, *_: isinstance(query, MeasureQuery), _never),
    Candidate(
        "statistic",
        lambda *_: StatisticNoise(),
        lambda query, *_: isinstance(query, NonlinearQuery),
        _never,
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
        left_out=_many_edges,
    ),
    Candidate("edges, consistent", lambda *_: TransformedConsistent(), _never, _always),
    ADAPTIVE,
    Candidate(
        "cells",
        lambda *_: MatrixMechanism("identity", over="cells"),
        _from_cells,
        _always,
        _words_on_strategy,
        left_out=_many_cells,
    ),
    Candidate(
        "tree",
        lambda *_: MatrixMechanism("tree"),
        _searched,
        _one_table,
        _words_on_strategy,
        left_out=_not_plain,
    ),
    Candidate(
        "wavelet",
        lambda *_: MatrixMechanism("wavelet"),
        _searched,
        _one_table,
        _words_on_strategy,
        left_out=_not_plain,
    ),
    Candidate(
        "optimised strategy",
        lambda *_: MatrixMechanism("optimised"),
        _searched,
        _one_table,
        _words_on_strategy,
        left_out=_not_searched,
    ),
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
    Candidate(
        "fitted to the facts",
        lambda *_: Fitted(),
        _few_for_facts,
        _has_facts,
        "noise on every answer and a fit to the public facts",
        _fitted("answers"),
        _many_for_facts,
    ),
    Candidate(
        "cells fitted to the facts",
        lambda *_: Fitted("cells"),
        lambda query, policy, loss: not query.is_identity and _few_for_facts(query, policy, loss),
        lambda query, policy, _: not query.is_identity and bool(policy.constraints),
        "noise on every cell and a fit to the public facts",
        _fitted("cells"),
        _many_for_facts,
    ),
    Candidate(
        "free numbers",
        lambda *_: Kernel(),
        _few_for_facts,
        _has_facts,
        _words_on_free,
        _free_numbers,
        _many_for_facts,
    ),
    Candidate(
        "cube",
        _cube_of,
        _few_tables,
        _tables,
        _words_on_cube,
        _cube,
        _many_tables,
    ),
    Candidate(
        "residuals",
        lambda *_: Residuals(),
        _by_order,
        words="noise on residuals that are fitted to prefixes and ranges",
    ),
    # What it errs depends on the data, so that it is taken by name only.
    Candidate("adaptive-cube", lambda *_: AdaptiveCube(), _never, lambda query, *_: len(_sets(query)) > 1),
)
"""Those of the library, in the order of comparisons; of equals ``auto`` takes the first."""

_registered: dict[str, Candidate] = {}


def candidates() -> Iterator[Candidate]:
    """Ours, then those of installed distributions, then those registered at run time.

    Examples
    --------
    >>> [each.name for each in candidates()][2:4]
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
        left_out=None,
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
