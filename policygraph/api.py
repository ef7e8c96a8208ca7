"""The short way through all rooms: from a policy and a table to a release. Owns :func:`release`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from policygraph.compare import check_alone, named_mechanism
from policygraph.curator.counting import read_data
from policygraph.curator.ledger import Ledger, Tags
from policygraph.curator.noise import Rng
from policygraph.curator.releasing import Outcome, calibrated, check_arguments, find_account, perform, rng_of
from policygraph.curator.requests import Request, identify
from policygraph.errors import InputError
from policygraph.exact import Exact
from policygraph.mechanisms import Mechanism
from policygraph.mechanisms.auto import nonnegative_mechanism
from policygraph.mechanisms.base import Calibrated
from policygraph.model.loss import Loss, loss_of
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.units import Unit
from policygraph.release.release import Release
from policygraph.sensitivity.proofs import shared_proofs

__all__ = [
    "Outcome",
    "Request",
    "expected_error",
    "find_account",
    "identify",
    "loss_of",
    "perform",
    "read_data",
    "release",
]


def _by_name(mechanism: Any, query: Query, policy: Policy, loss: Loss) -> Any:
    """The mechanism behind a name, such as a policy file has; anything else as it is."""
    if not isinstance(mechanism, str) or mechanism == "auto":
        return mechanism
    try:
        return named_mechanism(mechanism, query, policy, loss)
    except InputError as cause:
        if cause.code != "compare.method":
            raise
        raise InputError(
            str(cause).replace("method", "mechanism", 1), code="release.mechanism", value=mechanism
        ) from cause


def expected_error(
    query: Query,
    policy: Policy,
    *,
    epsilon: Exact | None = None,
    rho: Exact | None = None,
    delta: Exact | None = None,
    mechanism: Mechanism | str | None = None,
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
    ready = calibrated(_by_name(mechanism, query, policy, loss), query, policy, loss)
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
    mechanism: Mechanism | Calibrated | str | None = None,
    nonnegative: bool = False,
    rng: Rng | None = None,
    columns: Mapping[str, str] | None = None,
    edges: Mapping[str, str] | None = None,
    compose_policies: bool = False,
    reuse: bool = True,
    progress: Callable[[str], None] | None = None,
    time_limit: float | None = None,
    source: Rng | None = None,
    engine: Any = None,
    parts: str | Path | None = None,
    purpose: str | None = None,
    labels: Sequence[str] = (),
    reservation: int | None = None,
    require_proof: bool = False,
) -> Release:
    """Release the answers to a query under a policy.

    The ledger is asked first whether it knows the request. Everything that can fail because of what was asked or given comes next:
    sensitivity and noise without data, then counting and checking the data, then room for the release; then the ledger is charged, and only then is
    noise drawn. A release that is charged is never lost: after a crash the same call completes it, with the same noise, at no cost, and
    a release that is on record is returned.

    Parameters
    ----------
    query, policy
        What to release, and what it must hide.
    data
        A CSV or Parquet path, a data frame (of Spark, too), anything DuckDB reads, ``postgresql://host/database/table``, a file that ``policygraph count``
        or ``policygraph merge`` wrote, or a vector of counts of the cells.
    epsilon, rho, delta
        The loss: epsilon, or rho, or epsilon with delta.
    ledger
        A ledger or its path; the charge is durable before any noisy value exists. None: nothing is recorded.
    dataset
        The name of the account in the ledger. All charges under one name add up, also when the data change. By default
        a data set is known by its content, so that a changed file is another data set.
    mechanism
        ``"auto"`` or None: what is expected to be most accurate for this query, policy and loss, without looking at the
        data; the release says why. A mechanism, or its name in :func:`policygraph.compare`, plug-ins included.
    nonnegative
        Whether published counts should be non-negative. Histograms, in whole numbers, are then released by :class:`policygraph.Adaptive`, tables by a non-negative
        :class:`policygraph.Cube`; unbiased counts stand beside them. Not with a mechanism, which says itself what it publishes.
    rng
        Where the randomness comes from; secure by default.
    columns
        Column of each attribute, where they have other names; for an edge list the columns ``from`` and ``to``.
    edges
        Rules for an edge list: ``duplicates = "merge"``, ``loops = "drop"``.
    compose_policies
        Allow a release on data that was released under another policy before.
    reuse
        Return the recorded release when the same request was made before, at no cost.
    progress
        Called with a sentence before each stage.
    time_limit
        Seconds for all searches, where a limit in time is wanted. Without it work is counted, and the noise is the same on every
        machine; a release that the limit cut short says so in its first stage, and its record has ``cut_short``.
    source
        The former name of ``rng``.
    engine
        What counts the records: ``"duckdb"``, ``"spark"`` or a session of Spark, ``"postgres"``. By default the one that the data are in, and DuckDB for
        files. The counts are the same on each.
    parts
        A new folder (on Spark also an address such as ``s3a://bucket/folder``) for the table of one cuboid with plain noise that has any number of cells: it is written there
        as Parquet files, by the workers of Spark or this process, and the release lists the parts. A release that is on record writes none again.
    purpose, labels, reservation
        What the release is for, and the reservation of the ledger that its loss is taken from; for the history of the ledger.
    require_proof
        Refuse, before anything is charged, unless ``python -m policygraph.check`` accepts the certificate of the noise completely.

    Returns
    -------
    Release
        The noisy tables with their provenance.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> query = pg.queries.identity(domain)
    >>> made = release(query, pg.Policy(domain), [5, 0, 2], epsilon=1, rng=pg.SeededRng(7))
    >>> made.tables[0].name, len(made.values()), made.private
    ('age', 3, False)
    """
    check_arguments(query, policy, ledger)
    with shared_proofs(time_limit):
        mechanism = _by_name(mechanism, query, policy, loss_of(epsilon, rho, delta))
        if nonnegative:
            check_alone(mechanism)
            mechanism = nonnegative_mechanism(query, policy.records if isinstance(policy, Unit) else policy)
        request = Request.of(
            query,
            policy,
            data,
            epsilon=epsilon,
            rho=rho,
            delta=delta,
            mechanism=mechanism,
            columns=columns,
            edges=edges,
            engine=engine,
        )
        return perform(
            request,
            ledger=ledger,
            dataset=dataset,
            rng=rng_of(rng, source),
            compose_policies=compose_policies,
            reuse=reuse,
            progress=progress,
            parts=parts,
            tags=Tags(purpose, labels, reservation),
            require_proof=require_proof,
        ).release
