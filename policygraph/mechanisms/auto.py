"""Which mechanism a release uses when none is named. Owns :func:`choose`.

Data-free and repeatable: it walks the list of candidates and compares expected errors that follow from the policy, the query and the
loss, with an effort that is counted in steps, never in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from policygraph.errors import InputError, RefusedError
from policygraph.mechanisms.additive import Additive
from policygraph.mechanisms.base import Calibrated, chosen, marked
from policygraph.mechanisms.candidates import EVERY_ANSWER, TRUST, Candidate, candidates, coupled
from policygraph.mechanisms.cube.mechanism import CubeNoise
from policygraph.model.loss import Loss
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.sensitivity.proofs import proved, shared_proofs
from policygraph.ties import ranked

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
        return f"{self.candidate.describe(self.ready)} {self.error:.4g}"


def choose(query: Query, policy: Policy, loss: Loss, *, time_limit: float | None = None) -> Calibrated:
    """Calibrate the mechanism with the smallest expected squared error, summed over the answers.

    Parameters
    ----------
    query, policy, loss
        What to release, what to hide, what it may cost.
    time_limit
        Seconds for all searches on the way, where a limit in time is wanted; when it runs out, the bounds that are proved
        count, and the choice may differ from run to run.

    Returns
    -------
    Calibrated
        The best of :data:`policygraph.mechanisms.candidates.CANDIDATES` and of plug-ins that accept the request. Without public facts, or with facts that every edge of the policy graph keeps (the number of records, say): noise on every
        answer, noise on the edges of the policy graph (on the cells, where records only appear and vanish), or noise on a strategy:
        searched for ranges and boxes, the cells for other sums. Several tables of counts of the same weight: also a cube of
        them. Network statistics that are
        not linear: noise by their own bound. With facts that couple records see
        :func:`policygraph.mechanisms.constrained.choice.choose`; several tables are a cube there as well, if that is better.
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
    Chosen by the expected sum of squared errors, without looking at the data: noise on the edges of the policy graph 3.957e+04,
    noise on every answer 7.998e+04.
    """
    query.check_domain(policy.domain)
    with shared_proofs(time_limit) as proofs:
        return marked(_chosen(query, policy, loss), proofs)


def _chosen(query: Query, policy: Policy, loss: Loss) -> Calibrated:
    offers: list[Offer] = []
    refusals: dict[str, RefusedError | InputError] = {}
    for candidate in candidates():
        if not candidate.accepts(query, policy, loss):
            continue
        if candidate.worth is not None and not candidate.worth(policy, [each.ready for each in offers]):
            continue
        try:
            ready = candidate.make(query, policy, loss)
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
        if candidate is EVERY_ANSWER and ready.sensitivity is not None and ready.sensitivity.power == 0:
            return ready
        offers.append(Offer(candidate, ready, ready.total_error))
    if not offers:
        raise (
            refusals.get(EVERY_ANSWER.name)
            or next(iter(refusals.values()), None)
            or RefusedError("no mechanism applies.", code="kernel.none")
        )
    best, why = _best(offers)
    ready = best.ready
    if best.candidate is EVERY_ANSWER and isinstance(ready, Additive) and not ready.sensitivity.exact:
        ready = replace(ready, sensitivity=proved(query, policy, loss.norm))
    ours = not any(each.candidate.origin for each in offers)
    if ours and (len(offers) == 1 or (coupled(policy) and best is offers[0])):
        return ready  # what was chosen among those that look at the public facts says so itself
    return chosen(ready, why)


def _best(offers: list[Offer]) -> tuple[Offer, str]:
    """The offer with the least expected error, and a sentence with all figures."""
    order = ranked(offers, key=lambda offer: offer.error)
    best = order[0]
    if isinstance(best.ready, CubeNoise) and len(order) > 1 and order[1].error * CLEARLY <= best.error:
        best = order[1]
    simple = next(
        (each for each in order if isinstance(each.ready, Additive) and not each.candidate.origin), None
    )
    if simple is not None and simple.error * CLEARLY <= best.error:
        best = simple
    figures = ", ".join(offer.figure for offer in order)
    why = f"Chosen by the expected sum of squared errors, without looking at the data: {figures}."
    if best.candidate.origin:
        why += f" It is the {best.candidate.origin}: {TRUST}."
    return best, why
