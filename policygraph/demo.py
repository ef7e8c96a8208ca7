"""Made-up data for a policy, to try it out. Owns :func:`made_up`. Nothing in it is about anybody."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from policygraph.errors import InputError, RefusedError
from policygraph.files.policy_file import PolicyFile
from policygraph.model.bins import Bins
from policygraph.model.constraints import StructuralZero
from policygraph.model.domain import Domain, Network
from policygraph.model.grouped import records_of
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.queries import MeasureQuery
from policygraph.model.units import Unit

Rng = np.random.Generator
LARGEST = 10_000_000


def made_up(file: PolicyFile, rows: int = 10_000, seed: int = 0) -> Any:
    """Make records, or the edges of a network, that a policy file can be tried on.

    Parameters
    ----------
    file
        The policy file; its domain, columns, measure and empty cells are kept, published values are not.
    rows
        How many records; for a network about how many edges, at most half of its pairs.
    seed
        The same seed makes the same data.

    Returns
    -------
    pyarrow.Table
        One column for each attribute, for the measure and for the unit, or the ends of each edge.

    Raises
    ------
    RefusedError
        If the policy states published values: made-up records would not have them.

    Examples
    --------
    >>> from policygraph.files import loads
    >>> file = loads('[domain]' + chr(10) + 'sex = ["F", "M"]' + chr(10) + 'age = {bins = [0, 18]}')
    >>> made_up(file, 3).column_names
    ['sex', 'age']
    """
    import pyarrow

    if not 1 <= rows <= LARGEST:
        raise InputError(f"rows = {rows}: expected 1 to {LARGEST:,}.", code="demo.rows", value=rows)
    policy = records_of(file.policy)
    for fact in policy.constraints:
        if fact.values(policy.domain) is not None and not isinstance(fact, StructuralZero):
            raise RefusedError(
                "the policy states published values (equals), which made-up data would not have. Leave them out of a copy of the file.",
                code="demo.values",
            )
    rng = np.random.default_rng(seed)
    if isinstance(policy.domain, Network):
        return pyarrow.table(_edges(policy.domain, file, rows, rng))
    if isinstance(file.policy, LinkedUnit):
        raise file.policy.refused()
    domain = policy.domain
    codes = [_skewed(len(domain.labels(name)), rows, rng) for name in domain.names]
    for fact in policy.constraints:
        if isinstance(fact, StructuralZero):
            flat = np.ravel_multi_index(codes, domain.shape)
            kept = ~np.isin(flat, fact.forbidden(domain))
            codes = [code[kept] for code in codes]
    columns = {}
    for name, code in zip(domain.names, codes, strict=True):
        columns[(file.columns or {}).get(name, name)] = _values(domain, name, code, rng)
    if isinstance(file.policy, Unit):
        columns |= _owners(file.policy, len(codes[0]), rng)
    if isinstance(file.query, MeasureQuery):
        measure = file.query.measure
        low, high = float(measure.low), float(measure.high)
        share = rng.beta(2, 5, size=len(codes[0]))
        columns[measure.column] = [round(low + (high - low) * each, 2) for each in share.tolist()]
    return pyarrow.table(columns)


def _owners(unit: Unit, rows: int, rng: Rng) -> dict[str, list[str]]:
    """Whose each record is: some units have too many, unless such data are refused; three of them are in one larger unit."""
    numbers = rng.integers(1 + rows // unit.at_most, size=rows) if unit.enforced else np.arange(rows)
    made = {unit.column: [str(number) for number in numbers.tolist()]}
    if unit.within is not None:
        made[unit.within] = [str(number // 3) for number in numbers.tolist()]
    return made


def _skewed(size: int, rows: int, rng: Rng) -> Any:
    """Values that are not equally frequent."""
    weights = rng.permutation(1.0 / np.arange(2, size + 2))
    return rng.choice(size, size=rows, p=weights / weights.sum())


def _values(domain: Domain, name: str, codes: Any, rng: Rng) -> list[Any]:
    bins = domain.bins(name)
    if bins is None:
        labels = list(domain.labels(name))
        mixed = len({type(label) for label in labels}) > 1
        return [str(labels[code]) if mixed else labels[code] for code in codes.tolist()]
    inside = rng.random(len(codes)).tolist()
    return [_inside(bins, code, share) for code, share in zip(codes.tolist(), inside, strict=True)]


def _inside(bins: Bins, code: int, share: float) -> Any:
    """A value in a bin, as text; or the label beside the bins."""
    if code >= bins.count:
        return bins.labels[code]
    edges: Any = bins.edges
    start = edges[code]
    if bins.dates:
        days = (edges[code + 1] - start).days if code + 1 < len(edges) else 365
        return (start + datetime.timedelta(days=int(share * days))).isoformat()
    width = edges[code + 1] - start if code + 1 < len(edges) else max(10, start // 4)
    whole = all(isinstance(edge, int) for edge in edges)
    return str(start + int(share * width)) if whole else repr(float(start) + share * float(width) * 0.999)


def _edges(network: Network, file: PolicyFile, rows: int, rng: Rng) -> dict[str, list[Any]]:
    count = min(rows, max(1, network.size // 2))
    tail, head = network.pairs(np.sort(rng.choice(network.size, size=count, replace=False)))
    ends = file.columns or {}
    nodes = list(network.nodes)
    return {
        ends.get("from", "from"): [nodes[at] for at in tail.tolist()],
        ends.get("to", "to"): [nodes[at] for at in head.tolist()],
    }
