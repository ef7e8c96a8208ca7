"""Public facts that nobody stated but the data satisfy exactly. Owns :func:`unstated_facts` and :class:`UnstatedFact`.

For the curator only: what is found is true of the data and has no noise. Candidates are looked for among the tables of one and two attributes, and over a network among its
degrees. One is reported if it would hold by chance with a probability of at most one in a million, all candidates taken together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import gcd, log
from typing import Any

import numpy as np

from policygraph.curator.histogram import Histogram
from policygraph.errors import InputError
from policygraph.model.constraints import Cells, Constraint, Cuboid, Degrees, StructuralZero
from policygraph.model.domain import Domain, Network
from policygraph.model.policy import Policy

__all__ = ["CURATOR_ONLY", "UnstatedFact", "unstated_facts"]

CURATOR_ONLY = "FOR THE CURATOR ONLY, NOT TO BE PUBLISHED: the facts below were read from the true counts, without noise. Ask for each whether others can know it; if so, state it in the policy."
CHANCE = 1e-6
"""Probability, over all candidates, of reporting a fact that holds by chance."""
MOST_PAIRS = 300
"""Most tables of two attributes that are looked at."""
MOST_CELLS = 100_000
"""Most cells of one of them."""


@dataclass(frozen=True)
class UnstatedFact:
    """A fact that the data satisfy and the policy does not state. Private.

    Attributes
    ----------
    words
        What holds.
    kind
        ``"empty cells"``, ``"equal counts"``, ``"multiples"`` or ``"determined"``.
    constraint
        The fact as a policy would state it; None where no public fact says just that.
    chance
        Bound on the probability that it holds by chance (see :func:`unstated_facts`).
    """

    words: str
    kind: str
    constraint: Constraint | None
    chance: float


def unstated_facts(policy: Policy, data: Histogram) -> list[UnstatedFact]:
    """Look for public facts that a policy does not state although the data satisfy them exactly.

    Parameters
    ----------
    policy
        What is stated; facts that follow from it are left out.
    data
        True counts.

    Returns
    -------
    list of UnstatedFact
        For the curator. The least likely coincidence first.

    Examples
    --------
    >>> import policygraph as pg
    >>> domain = pg.Domain({"age": ["child", "adult"], "job": ["none", "some"]})
    >>> data = Histogram.from_vector(domain, [900, 0, 300, 800])
    >>> [fact.words for fact in unstated_facts(pg.Policy(domain), data)]
    ['no record has age = child and job = some (age = child always has job = none)']

    Notes
    -----
    Chances under the hypothesis that nothing special is going on: a cell of a table of two attributes is empty although n p q records are expected there, if the attributes are independent: at most exp(-n p q).
    All r counts of a table are multiples of m: m^-r. All r >= 3 counts are equal to c: at most 1 / (c + 1) for each but the first. Each is multiplied by the number of candidates.
    """
    if isinstance(policy.domain, Network):
        found = list(_of_network(policy, policy.domain, data))
    elif isinstance(policy.domain, Domain):
        found = list(_of_table(policy, policy.domain, data))
    else:
        raise InputError("expected a table or a network.", code="attacks.policy")
    return sorted(found, key=lambda fact: (fact.chance, fact.words))


def _of_table(policy: Policy, domain: Domain, data: Histogram) -> Iterator[UnstatedFact]:
    public = [set(fact.names) for fact in policy.constraints if isinstance(fact, Cuboid)]
    names = [name for name, size in zip(domain.names, domain.shape, strict=True) if size > 1]
    singles = {name: data.cuboid([name]) for name in names}
    pairs = [
        pair
        for pair in combinations(names, 2)
        if domain.shape[domain.axis(pair[0])] * domain.shape[domain.axis(pair[1])] <= MOST_CELLS
    ][:MOST_PAIRS]
    candidates = max(1, 2 * len(names) + sum(domain.project(pair).size for pair in pairs))
    for name, counts in singles.items():
        if not any(name in known for known in public):
            yield from _regular(counts, f"the counts of {name}", Cuboid(name), candidates)
    empty = {int(cell) for cell in policy.system.zeros.tolist()}
    for pair in pairs:
        if any(set(pair) <= known for known in public):
            continue
        shape = tuple(domain.shape[domain.axis(name)] for name in pair)
        yield from _empty(domain, pair, data.cuboid(pair).reshape(shape), candidates, empty)


def _regular(counts: Any, what: str, fact: Constraint | None, candidates: int) -> Iterator[UnstatedFact]:
    """Counts that are all the same, or all multiples of a number above 1."""
    held = [int(x) for x in counts[counts > 0]]
    if len(held) < 3:
        return
    if len(held) == len(counts) and len(set(held)) == 1:
        chance = candidates * (1 / (held[0] + 1)) ** (len(held) - 1)
        if chance <= CHANCE:
            yield UnstatedFact(f"{what} are all the same, {held[0]:,}", "equal counts", fact, chance)
            return
    step = gcd(*held)
    # Summed over all m >= 2 that could have been found: below twice the chance of the one that was.
    chance = 2 * candidates * float(step) ** -len(held) if step > 1 else 1.0
    if chance <= CHANCE:
        words = f"{what} are all multiples of {step}: records come in groups of {step}, or the counts were rounded"
        yield UnstatedFact(words, "multiples", None, chance)


def _empty(
    domain: Domain, pair: tuple[str, ...], table: Any, candidates: int, known: set[int]
) -> Iterator[UnstatedFact]:
    """Cells of a table of two attributes that are empty although many records would be expected there."""
    total = int(table.sum())
    if not total:
        return
    expected = np.outer(table.sum(axis=1) / total, table.sum(axis=0))
    least = log(candidates / CHANCE)
    labels = [domain.labels(name) for name in pair]
    found = [
        (int(i), int(j))
        for i, j in np.argwhere((table == 0) & (expected >= least))
        if not _stated(domain, pair, (labels[0][i], labels[1][j]), known)
    ]
    if not found:
        return
    where = [dict(zip(pair, (labels[0][i], labels[1][j]), strict=True)) for i, j in found]
    told = [f"{pair[0]} = {labels[0][i]} and {pair[1]} = {labels[1][j]}" for i, j in found[:3]]
    more = f" and {len(found) - 3} more such cells" if len(found) > 3 else ""
    rows = {i for i, _ in found if np.count_nonzero(table[i]) == 1}
    sure = [
        f"{pair[0]} = {labels[0][i]} always has {pair[1]} = {labels[1][int(np.argmax(table[i]))]}"
        for i in sorted(rows)[:2]
    ]
    words = f"no record has {', '.join(told)}{more}" + (f" ({'; '.join(sure)})" if sure else "")
    worst = max(candidates * float(np.exp(-expected[i, j])) for i, j in found)
    yield UnstatedFact(words, "determined" if sure else "empty cells", StructuralZero(where), worst)


def _stated(domain: Domain, pair: tuple[str, ...], labels: tuple[Any, ...], known: set[int]) -> bool:
    """Whether structural zeros of the policy already say that a cell of the margin is empty."""
    if not known:
        return False
    cells = Cells(list(pair), [list(labels)]).rows(domain).cell
    return all(int(cell) in known for cell in cells)


def _of_network(policy: Policy, network: Network, data: Histogram) -> Iterator[UnstatedFact]:
    stated = {fact.side for fact in policy.constraints if isinstance(fact, Degrees)}
    cells, amounts = data.sparse()
    for side in ("out", "in") if network.directed else ("both",):
        if side in stated:
            continue
        fact = Degrees("all", side=side)
        rows = fact.rows_on(network, cells)
        degrees = np.zeros(rows.height, dtype=np.int64)
        np.add.at(degrees, rows.row, rows.coefficient * amounts[rows.cell])
        name = {"both": "degrees", "in": "in-degrees", "out": "out-degrees"}[side]
        yield from _regular(degrees, f"the {name}", fact, 4)
