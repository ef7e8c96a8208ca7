"""Which mechanism a release uses when none is named. Owns :func:`choose`.

Data-free and repeatable: it walks the list of candidates and compares expected errors that follow from the policy, the query and the
loss, with an effort that is counted in steps, never in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.additive import Additive, for_loss
from policygraph.mechanisms.base import Calibrated, Mechanism, chosen, marked
from policygraph.mechanisms.candidates import EVERY_ANSWER, TRUST, Candidate, candidates, coupled
from policygraph.mechanisms.cube.mechanism import Cube, CubeNoise
from policygraph.mechanisms.measured import Measured
from policygraph.mechanisms.members import OnMembers, share_of_record, sums_in_all
from policygraph.mechanisms.transformed.adaptive import Adaptive
from policygraph.model.domain import Domain
from policygraph.model.families import Families
from policygraph.model.grouped import Grouped
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.model.queries.cuboids import CuboidQuery
from policygraph.model.queries.measures import MeasureQuery
from policygraph.model.queries.statistics import NonlinearQuery
from policygraph.model.units import Unit
from policygraph.sensitivity.proofs import proved, shared_proofs
from policygraph.ties import digits, figures, ranked

CLEARLY = 0.99
"""Noise on every answer, which is the simplest, gives way to an error of at most so much of its own; so does anything to a cube."""


@dataclass(frozen=True)
class Offer:
    """A candidate that applies, calibrated."""

    candidate: Candidate
    ready: Calibrated
    error: float

    @property
    def figure(self) -> str:
        """What a sentence says of it."""
        return f"{self.candidate.describe(self.ready)} {digits(figures(self.error))}"


def choose(
    query: Query,
    policy: Policy | Grouped,
    loss: Loss,
    *,
    nonnegative: bool = False,
    time_limit: float | None = None,
) -> Calibrated:
    """Calibrate the mechanism with the smallest expected squared error, summed over the answers.

    Parameters
    ----------
    query, policy, loss
        What to release, what to hide, what it may cost.
    nonnegative
        Whether published counts should be non-negative (and whole, for a histogram); see :func:`nonnegative_mechanism`.
    time_limit
        Seconds for all searches on the way, where a limit in time is wanted; when it runs out, the bounds that are proved
        count, and the choice may differ from run to run.

    Returns
    -------
    Calibrated
        The best of :data:`policygraph.mechanisms.candidates.CANDIDATES` and of plug-ins that accept the request: whatever a comparison lists with a smaller
        expected error, or ``why`` says why it was not tried. Of mechanisms whose errors are within 1 % of the least, one that keeps the public facts is taken,
        then the simplest.
        Where several were compared, ``why`` says so, with the figures, and is the first sentence of a record.

    Raises
    ------
    RefusedError
        When none of them has a proved sensitivity.
    InputError
        When a plug-in is broken: leaving it out silently would make the choice depend on its health.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 100})
    >>> policy = pg.Policy(domain, pg.PolicyGraph.line(domain))
    >>> print(choose(pg.queries.identity(domain), policy, pg.Epsilon("0.1")).why)
    Chosen by the expected sum of squared errors, without looking at the data: noise on the edges of the policy graph 39,570,
    ...noise on every answer 79,980...
    """
    query.check_domain(policy.domain)
    if isinstance(policy, (Families, LinkedUnit)):
        if nonnegative:
            raise policy.refused()
        return for_loss(loss).calibrate(query, policy, loss)
    with shared_proofs(time_limit) as proofs:
        if isinstance(policy, Unit):
            return marked(_for_unit(query, policy, loss, nonnegative=nonnegative), proofs)
        if isinstance(policy, Grouped):
            raise policy.refused()
        if nonnegative:
            made = nonnegative_mechanism(query, policy).calibrate(query, policy, loss)
            return marked(chosen(made, "Chosen because counts should be non-negative."), proofs)
        return marked(_chosen(query, policy, loss), proofs)


def _for_unit(query: Query, policy: Unit, loss: Loss, *, nonnegative: bool) -> Calibrated:
    """Noise on every answer by the certificate of the unit, or what is best for its records at their share of the loss."""
    share = share_of_record(loss, policy.at_most)
    if sums_in_all(query) and not nonnegative:
        return Measured().calibrate(query, policy, loss)
    if nonnegative or query.needs_values:
        return OnMembers(choose(query, policy.records, share, nonnegative=nonnegative), policy, loss)
    plain = for_loss(loss).calibrate(query, policy, loss)
    if plain.sensitivity.power == 0:
        return plain
    try:
        inner = choose(query, policy.records, share)
    except RefusedError:
        return plain
    if isinstance(inner, Additive) or inner.total_error > CLEARLY * plain.total_error:
        return plain
    return OnMembers(inner, policy, loss)


def nonnegative_mechanism(query: Query, policy: Policy) -> Mechanism:
    """What is released where no count should be negative: an adaptive histogram of the cells, or a cube of tables.

    Raises
    ------
    RefusedError
        When the query is no sum of counts, or public facts couple records and it is not made of tables.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 100, "sex": 2})
    >>> queries = pg.queries.identity(domain), pg.queries.cuboid(domain, "age")
    >>> [nonnegative_mechanism(query, pg.Policy(domain)).name for query in queries]
    ['Adaptive', 'Cube']
    """
    counts = not isinstance(query, (MeasureQuery, NonlinearQuery)) and isinstance(policy.domain, Domain)
    tables = isinstance(query, CuboidQuery) and (not query.is_identity or coupled(policy))
    if counts and tables:
        return Cube(nonnegative=True)
    if counts and not coupled(policy):
        return Adaptive()
    raise RefusedError(
        "nonnegative=True for this query and policy: expected counts of cells under a policy whose neighbours are single edges, or tables of counts. "
        "Leave it out, or ask for tables.",
        code="release.nonnegative",
    )


def _chosen(query: Query, policy: Policy, loss: Loss) -> Calibrated:
    offers: list[Offer] = []
    left_out: dict[str, str] = {}
    refusals: dict[str, RefusedError | InputError] = {}
    for candidate in candidates():
        if not candidate.accepts(query, policy, loss):
            left_out[candidate.name] = candidate.reason(query, policy, loss)
            continue
        try:
            ready = candidate.make(query, policy, loss, [each.ready for each in offers])
        except RefusedError as refusal:
            refusals[candidate.name] = refusal
            continue
        except InputError as refusal:
            if not candidate.origin or refusal.code == "plugin.broken":
                raise
            refusals[candidate.name] = refusal
            continue
        if ready is None:
            continue
        if isinstance(ready, str):
            left_out[candidate.name] = ready
            continue
        if candidate is EVERY_ANSWER and ready.sensitivity is not None and ready.sensitivity.power == 0:
            return ready
        offers.append(Offer(candidate, ready, ready.total_error))
    if not offers:
        raise (
            refusals.get(EVERY_ANSWER.name)
            or next(iter(refusals.values()), None)
            or RefusedError("no mechanism applies.", code="kernel.none")
        )
    best = _best(offers, policy)
    ready = best.ready
    if best.candidate is EVERY_ANSWER and isinstance(ready, Additive) and not ready.sensitivity.exact:
        ready = replace(ready, sensitivity=proved(query, policy, loss.norm))
    gone = {name: reason for name, reason in left_out.items() if reason}
    if len(offers) == 1 and not gone and not best.candidate.origin:
        return ready
    return chosen(ready, _why(best, offers, gone))


def _best(offers: list[Offer], policy: Policy) -> Offer:
    """The offer with the least expected error; of those that are hardly worse one that keeps the public facts, then the simplest."""
    order = ranked(offers, key=lambda offer: offer.error)
    near = [each for each in order if each.error * CLEARLY <= order[0].error]
    if isinstance(policy, Policy) and policy.constraints:
        near = [each for each in near if each.ready.keeps_facts] or near
    simple = [each for each in near if isinstance(each.ready, Additive) and not each.candidate.origin]
    tables = [each for each in near if not isinstance(each.ready, CubeNoise)]
    return (simple or tables or near)[0]


def _why(best: Offer, offers: list[Offer], left_out: dict[str, str]) -> str:
    """A sentence with all figures, and what was not tried."""
    order = ranked(offers, key=lambda offer: offer.error)
    least, said = order[0], list(dict.fromkeys(offer.figure for offer in order))
    why = f"Chosen by the expected sum of squared errors, without looking at the data: {', '.join(said)}."
    if best.ready.keeps_facts and best.ready.policy.constraints and not least.ready.keeps_facts:
        why += " Of errors within 1 % of the least, one that keeps the public facts was taken."
    elif figures(best.error) > figures(least.error):
        why += " Of errors within 1 % of the least, the simplest was taken."
    by_reason: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        by_reason.setdefault(reason, []).append(repr(name))
    if by_reason:
        listed = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())
        why += f" Not compared: {listed}."
    if best.candidate.origin:
        why += f" It is the {best.candidate.origin}: {TRUST}."
    return why
