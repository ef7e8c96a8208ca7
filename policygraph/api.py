"""The short way through all rooms: from a policy and a table to a release. Owns :func:`release`.

Imports everything; nothing but the command imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from policygraph.errors import InputError
from policygraph.exact import Exact
from policygraph.private.counting.source import named
from policygraph.private.ledger import Ledger, request_fingerprint
from policygraph.private.mechanisms import Mechanism, choose
from policygraph.private.mechanisms.base import Calibrated
from policygraph.private.noise import SecureSource, Source
from policygraph.public.domain import Network
from policygraph.public.loss import Epsilon, EpsilonDelta, Loss, Rho
from policygraph.public.policy import Policy
from policygraph.public.query.base import Query
from policygraph.published.release import Release

__all__ = ["expected_error", "loss_of", "release"]


def loss_of(epsilon: Exact | None = None, rho: Exact | None = None, delta: Exact | None = None) -> Loss:
    """Read a privacy loss: epsilon alone, rho alone, or epsilon with delta (spent as the rho that implies it).

    Examples
    --------
    >>> print(loss_of(epsilon=0.1))
    epsilon = 0.1
    """
    if epsilon is not None and rho is None:
        return Epsilon(epsilon) if delta is None else EpsilonDelta(epsilon, delta).to_rho()
    if rho is not None and epsilon is None and delta is None:
        return Rho(rho)
    raise InputError(
        "expected a privacy loss: epsilon, or rho, or epsilon and delta.",
        code="release.loss",
        epsilon=epsilon,
        rho=rho,
        delta=delta,
    )


def expected_error(
    query: Query,
    policy: Policy,
    *,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    delta: Exact | None = None,
    mechanism: Mechanism | None = None,
) -> dict[str, float]:
    """Standard deviation of the noise of each table, known before any data is touched.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> round(expected_error(pg.queries.identity(domain), pg.Policy(domain), epsilon=1)["age"], 3)
    1.357
    """
    loss = loss_of(epsilon, rho, delta)
    ready = choose(query, policy, loss) if mechanism is None else mechanism.calibrate(query, policy, loss)
    spread = ((part.name, ready.deviation(at)) for at, part in enumerate(query.parts))
    # Where the values of a table differ in their errors, the root of the mean square stands for all.
    return {name: float(np.sqrt(np.mean(np.square(error)))) for name, error in spread}


def release(
    query: Query,
    policy: Policy,
    data: Any,
    *,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    delta: Exact | None = None,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    mechanism: Mechanism | Calibrated | None = None,
    source: Source | None = None,
    columns: dict[str, str] | None = None,
    compose_policies: bool = False,
    reuse: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Release:
    """Release the answers to a query under a policy.

    Everything that can fail is done first: sensitivity and noise without data, then counting and checking the data;
    then the ledger is charged, and only then is noise drawn.

    Parameters
    ----------
    query, policy
        What to release, and what it must hide.
    data
        A CSV or Parquet path, a data frame, anything DuckDB reads, or a vector of counts of the cells.
    epsilon, rho, delta
        The loss: epsilon, or rho, or epsilon with delta.
    ledger
        A ledger or its path; the charge is durable before any noisy value exists. None: nothing is recorded.
    dataset
        A name under which the ledger keeps the budget; by default a data set is known by its content, so that
        a changed file is another data set.
    mechanism
        None: discrete Laplace for epsilon, discrete Gaussian for rho, kept to the public facts where that is expected
        to be more accurate (:func:`policygraph.private.mechanisms.choose`).
    source
        Where the randomness comes from; secure by default.
    columns
        Column of each attribute, where they have other names.
    compose_policies
        Allow a release on data that was released under another policy before.
    reuse
        Return the recorded release when the same request was made before, at no cost.
    progress
        Called with a sentence before each stage.

    Returns
    -------
    Release
        The noisy tables with their provenance.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> query = pg.queries.identity(domain)
    >>> made = release(query, pg.Policy(domain), [5, 0, 2], epsilon=1, source=pg.SeededSource(7))
    >>> made.tables[0].name, len(made.values()), made.private
    ('age', 3, False)
    """
    tell = progress or (lambda stage: None)
    loss = loss_of(epsilon, rho, delta)
    tell("computing the sensitivity")
    if isinstance(mechanism, Calibrated):
        ready = mechanism
    else:
        ready = choose(query, policy, loss) if mechanism is None else mechanism.calibrate(query, policy, loss)
    if ready.loss != loss or ready.query != query or ready.policy != policy:
        raise InputError(
            "the calibrated mechanism is for another query, policy or loss.", code="release.mechanism"
        )
    tell("counting the records")
    counts = read_data(data, policy, columns)
    tell("checking the public facts")
    if policy.system.has_values or len(policy.system.zeros):
        policy.system.check(counts.vector())
    random = source or SecureSource()
    book = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
    if book is None:
        tell("drawing the noise")
        return ready.run(counts, random)
    account = named(dataset) if dataset else counts.fingerprint
    request = request_fingerprint(
        query=query.fingerprint,
        policy=policy.fingerprint,
        loss=loss,
        mechanism=_describe(ready, random),
        data=f"{account} {counts.fingerprint}",
    )
    if reuse and (recorded := book.recorded(request)) is not None:
        return Release.from_parquet(recorded)
    tell("charging the ledger")
    charge = book.charge(
        account,
        policy.fingerprint,
        loss,
        request,
        name=dataset,
        description=policy.to_spec(),
        compose_policies=compose_policies,
        note=f"{ready.mechanism}: {query!r}",
    )
    tell("drawing the noise")
    made = ready.run(counts, random)
    book.complete(charge, made.to_bytes())
    return made


def _describe(ready: Calibrated, source: Source) -> dict[str, str]:
    return {
        "name": ready.mechanism,
        "noise": ready.noise.distribution,
        "parameter": str(ready.noise.parameter),
        "source": "secure" if source.private else source.describe(),
    }


def read_data(data: Any, policy: Policy, columns: dict[str, str] | None = None) -> Any:
    """Count records into the cells of a policy's domain, or take counts as they are."""
    from policygraph.private.counting import Counts, count_cells, read_edges

    if isinstance(data, Counts):
        return data
    counted = isinstance(data, (list, tuple)) and all(isinstance(x, (int, np.integer)) for x in data)
    if counted or (
        isinstance(data, np.ndarray) and data.dtype.kind in "iu" and data.size == policy.domain.size
    ):
        return Counts.from_vector(policy.domain, np.asarray(data).ravel())
    if isinstance(policy.domain, Network):
        return read_edges(data, policy.domain)
    unknown = dict(policy.unknown) if isinstance(policy.unknown, tuple) else policy.unknown
    return count_cells(data, policy.domain, unknown=unknown, columns=columns)
