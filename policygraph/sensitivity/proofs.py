"""What one request computes once, and the clock that its caller set. Owns :class:`Proofs`, :func:`shared_proofs` and :func:`proved`.

A release, a comparison or an explanation needs the same sensitivities in several places: to choose what to measure, to know
what is exact, to scale noise, to write the record. They are computed once. Nothing outlives the request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from policygraph.effort import Effort
from policygraph.errors import PolicyGraphError
from policygraph.model.queries.base import AnyDomain, Norm, Query

if TYPE_CHECKING:
    from policygraph.sensitivity.certificate import Sensitivity

__all__ = ["CUT_SHORT", "Proofs", "current", "proved", "shared_proofs"]

CUT_SHORT = (
    "Cut short by the time limit: a search did not end in the seconds that were asked for, so that another run may find other "
    "noise, less or more."
)
"""The first line of every result that a clock cut short."""


class Proofs:
    """The sensitivities of one request, each computed once, and the clock of its caller.

    Parameters
    ----------
    time_limit
        Seconds of wall clock for all searches of the request together; None, the usual, for no clock.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> with shared_proofs() as proofs:
    ...     one = proved(pg.queries.identity(domain), pg.Policy(domain))
    ...     other = proved(pg.queries.identity(domain), pg.Policy(domain))
    >>> one is other, proofs.cut_short
    (True, False)
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self.effort = Effort.of(None, time_limit)
        self._found: dict[tuple[AnyDomain, str, str, str], dict[int, Sensitivity | PolicyGraphError]] = {}
        self._kept: dict[Hashable, Any] = {}

    @property
    def cut_short(self) -> bool:
        """Whether the caller's clock ended a search."""
        return self.effort.cut_short

    def within(self, work: int) -> Effort:
        """Give units of work to a search, under the clock of the request."""
        return self.effort.at_most(work)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What else a request needs in several places, computed at its first use.

        Examples
        --------
        >>> proofs = Proofs()
        >>> proofs.once("sum", lambda: 1 + 1), proofs.once("sum", lambda: 1 / 0)
        (2, 2)
        """
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def sensitivity(self, query: Query, policy: Any, norm: Norm, work: int) -> Sensitivity:
        """The certificate of a query, computed at its first use.

        Parameters
        ----------
        work
            Units for the search. An exact certificate serves whoever asks for more or less; a bound serves those who allow as
            much work, so that no answer depends on what else was asked.
        """
        from policygraph.sensitivity import sensitivity

        known = self._found.setdefault((query.domain, query.fingerprint, policy.fingerprint, norm), {})
        exact = [found for found in known.values() if not isinstance(found, PolicyGraphError) and found.exact]
        found = exact[0] if exact else known.get(work)
        if found is None:
            try:
                found = sensitivity(query, policy, norm=norm, effort=self.within(work))
            except PolicyGraphError as refusal:
                found = refusal
            known[work] = found
        if isinstance(found, PolicyGraphError):
            raise found
        return found


_current: ContextVar[Proofs | None] = ContextVar("proofs", default=None)


@contextmanager
def shared_proofs(time_limit: float | None = None) -> Iterator[Proofs]:
    """Enter a request: what is computed inside is computed once.

    Parameters
    ----------
    time_limit
        Seconds for all searches inside. Without it an enclosing request goes on.

    Examples
    --------
    >>> with shared_proofs() as outer, shared_proofs() as same, shared_proofs(60) as limited:
    ...     outer is same, outer is limited
    (True, False)
    """
    outer = _current.get()
    if outer is not None and time_limit is None:
        yield outer
        return
    proofs = Proofs(time_limit)
    token = _current.set(proofs)
    try:
        yield proofs
    finally:
        _current.reset(token)


def current() -> Proofs:
    """The request that is being answered; one of its own, which nobody keeps, outside of any."""
    return _current.get() or Proofs()


def proved(query: Query, policy: Any, norm: Norm = "l1", work: int | None = None) -> Sensitivity:
    """The sensitivity of a query under a policy, once for each request.

    Parameters
    ----------
    query, policy, norm
        As for :func:`policygraph.sensitivity`.
    work
        Units of work for the search; None for the usual number.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": 3})
    >>> proved(pg.queries.identity(domain), pg.Policy(domain)).value == 1
    True
    """
    from policygraph.sensitivity.ladder import USUAL

    return current().sensitivity(query, policy, norm, USUAL if work is None else work)
