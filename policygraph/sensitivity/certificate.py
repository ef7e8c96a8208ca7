"""The answer to "how much can one neighbour step change the query", with its proof. Owns :class:`Sensitivity`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.documents import MALFORMED, parse_json
from policygraph.errors import InputError, PolicyGraphError, shown
from policygraph.exact import as_fraction, show, sqrt_down, sqrt_up
from policygraph.model.policy import DEFINITIONS, Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.moves.bracket import Witness
from policygraph.moves.degrees.secret_pairs import secret_cells

if TYPE_CHECKING:
    from policygraph.moves.move import Move
    from policygraph.sensitivity.verify.tables import Verification

__all__ = ["Sensitivity", "Witness"]

FORMAT = 1


@dataclass(frozen=True)
class Sensitivity:
    """How much one neighbour step can change a query, exactly or at most.

    Attributes
    ----------
    power
        The sensitivity for l1, its square for l2; exact.
    norm
        ``"l1"`` or ``"l2"``.
    kind
        ``"exact"``, or ``"upper"`` when only a bound is proved.
    lower_power
        What the witness attains, in the same form as ``power``.
    witness
        Two neighbouring data sets that attain the lower value; None when nothing can change.
    method, reason
        How the value was found, and why the bound holds.
    steps
        The rungs of the ladder that were tried, in words.
    policy, query
        What it was computed for.
    cut_short
        Whether a limit in seconds that the caller set ended the search: another run may prove less or more.
    """

    power: Fraction
    norm: Norm
    kind: str
    lower_power: Fraction
    witness: Witness | None
    method: str
    reason: str
    policy: Policy
    query: Query
    steps: tuple[str, ...] = field(default=())
    cut_short: bool = field(default=False)
    computed: bool = field(default=False, compare=False, repr=False)
    """Whether the engine computed it in this process; one that was read from a file scales no noise."""

    def __post_init__(self) -> None:
        if self.kind not in ("exact", "upper"):
            raise InputError(
                f"kind={shown(self.kind)}: expected 'exact' or 'upper'.", code="sensitivity.kind"
            )
        if self.lower_power > self.power or (self.kind == "exact" and self.lower_power != self.power):
            raise InputError(
                f"lower {self.lower_power} and value {self.power} do not fit kind {self.kind!r}.",
                code="sensitivity.inconsistent",
            )

    @property
    def value(self) -> Fraction:
        """The sensitivity; for l2 the root, rounded up when it is not rational."""
        return self.power if self.norm == "l1" else sqrt_up(self.power)

    @property
    def lower(self) -> Fraction:
        """What is surely attained, in the same form as ``value``."""
        if self.exact:
            return self.value
        return self.lower_power if self.norm == "l1" else sqrt_down(self.lower_power)

    @property
    def exact(self) -> bool:
        """Whether the value is attained."""
        return self.kind == "exact"

    @property
    def definition(self) -> str:
        """The definition of neighbours in words."""
        text = DEFINITIONS[self.policy.definition]
        if self.policy.definition == "induced" and not self.policy.constraints:
            text = "one record more or less (induced neighbours without public facts)"
        if self.policy.definition == "blowfish" and secret_cells(self.policy) is not None:
            text += ", each node pair a record that is joined or not"
        if self.policy.strength != "worst-case":
            text += f", {self.policy.strength} strength"
        if self.policy.at_most_records is not None:
            text += f", at most {self.policy.at_most_records} records added and as many removed"
        if self.query.needs_values:
            text += "; records are taken with their values, and every value is secret"
        return text

    def check_made_for(self, query: Query, policy: Policy) -> None:
        """Raise when the certificate belongs to another query or policy."""
        if self.query is query and self.policy is policy:
            return  # the fingerprint of a large matrix takes long, and the same object has the same
        # A fingerprint is the same for every order of the attributes, and the numbers of the cells are not.
        same = self.policy.domain == policy.domain and self.policy.fingerprint == policy.fingerprint
        if not same or self.query != query:
            raise InputError(
                "this sensitivity was computed for another query or policy: compute it again for these.",
                code="sensitivity.foreign",
            )

    def verify(self) -> Verification:
        """Re-check witness and bound by code that shares nothing with the search."""
        from policygraph.sensitivity.verify.certificates import CertifiedBound, verify

        found = self.witness
        tables = None if found is None else (dict(found.before), dict(found.after))
        return verify(
            CertifiedBound(
                self.policy, self.query, self.norm, self.power, self.lower_power, tables, self.reason
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain form, complete enough for somebody else to check it later."""
        return {
            "format": FORMAT,
            "value": _number(self.value),
            "kind": self.kind,
            "lower": _number(self.lower),
            "norm": self.norm,
            "definition": self.definition,
            "method": self.method,
            "witness": None if self.witness is None else self._witness_dict(self.witness),
            "reason": self.reason,
            "steps": list(self.steps),
            "exact_value": {
                "power": 1 if self.norm == "l1" else 2,
                "value": str(self.power),
                "lower": str(self.lower_power),
            },
            "neighbours": self.policy.definition,
            "strength": self.policy.strength,
            "at_most_records": self.policy.at_most_records,
            "policy_fingerprint": self.policy.fingerprint,
            "query_fingerprint": self.query.fingerprint,
            "policy": self.policy.to_spec(),
            "query": self.query.to_spec(),
            # Named only where it is so, so that certificates that were stored before read as they did.
            **({"cut_short": True} if self.cut_short else {}),
        }

    def _witness_dict(self, witness: Witness) -> dict[str, Any]:
        def table(rows: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
            return [{"cell": list(self.query.cell(c)), "index": c, "count": x} for c, x in rows]

        change = witness.change
        return {
            "before": table(witness.before),
            "after": table(witness.after),
            "change": [
                {"cell": list(self.query.cell(c)), "index": c, "amount": x} for c, x in change.items()
            ],
        }

    def to_json(self, path: str | None = None) -> str:
        """Write the certificate as JSON, to a file when a path is given."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        if path is not None:
            from policygraph.output import replacing

            with replacing(path) as draft:
                draft.write_text(text + "\n", encoding="utf-8")
        return text

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sensitivity:
        """Read a certificate back from its plain form."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError(
                f"certificate format {shown(data.get('format')) if isinstance(data, dict) else None}: expected {FORMAT}. Give a "
                "certificate.json as it was written beside a release.",
                code="certificate.format",
            )
        for key in ("method", "reason"):
            if not isinstance(data.get(key), str):
                raise InputError(
                    f"the certificate has no text under {key!r}: expected certificate.json as it was written beside a release.",
                    code="certificate.broken",
                    key=key,
                )
        try:
            made = cls._of_dict(data)
            follows = made.to_dict()
        except PolicyGraphError:
            raise
        except MALFORMED as cause:
            # Its parts are plain data of the writer's shape, or it was not made by the writer.
            raise InputError(
                f"the certificate lacks or garbles {str(cause)[:200] or type(cause).__name__}: it was changed after it was made. Compute it again.",
                code="certificate.broken",
            ) from cause
        stated = {key: value for key, value in data.items() if key != "library"}
        for key, value in follows.items():
            if stated.get(key) != value:
                raise InputError(
                    f"the certificate states another {key} than follows from its exact value, policy, query and witness: "
                    "it was changed after it was made, or made by another version.",
                    code="certificate.inconsistent",
                    key=key,
                )
        return made

    @classmethod
    def _of_dict(cls, data: dict[str, Any]) -> Sensitivity:
        from policygraph.model.queries import from_spec

        policy = Policy.from_spec(data["policy"])
        query = from_spec(policy.domain, data["query"])
        found = data["witness"]
        witness = None
        if found is not None:
            before, after = (
                {row["index"]: row["count"] for row in found[side]} for side in ("before", "after")
            )
            witness = Witness.of_tables(before, after)
        return cls(
            power=as_fraction(data["exact_value"]["value"], "exact_value.value"),
            norm=data["norm"],
            kind=data["kind"],
            lower_power=as_fraction(data["exact_value"]["lower"], "exact_value.lower"),
            witness=witness,
            method=data["method"],
            reason=data["reason"],
            policy=policy,
            query=query,
            steps=tuple(data.get("steps", ())),
            cut_short={True: True, False: False}[data.get("cut_short", False)],
        )

    @classmethod
    def from_json(cls, text: str) -> Sensitivity:
        """Read a certificate back from JSON text."""
        try:
            data = parse_json(text)
        except ValueError as cause:
            raise InputError(
                f"the certificate is not JSON: {cause}. Expected certificate.json as it was written beside a release.",
                code="certificate.json",
            ) from cause
        return cls.from_dict(data)

    def __str__(self) -> str:
        number = show(self.power) if self.norm == "l1" else _root(self.power)
        cut = "; cut short by the time limit, another run may prove less or more" if self.cut_short else ""
        lines = [
            f"sensitivity {'=' if self.exact else '<='} {number} ({self.norm.upper()}, "
            + (
                "exact)"
                if self.exact
                else f"upper bound; at least {_shown(self.norm, self.lower_power)}{cut})"
            ),
            f"  neighbours: {self.definition}",
            f"  method:     {self.method}",
            f"  why:        {self.reason}",
        ]
        if self.witness is not None:
            lines.append(
                "  attained by two data sets that must look alike:" if self.exact else "  best pair found:"
            )
            lines.append("    before: " + self._show_table(self.witness.before))
            lines.append("    after:  " + self._show_table(self.witness.after))
        return "\n".join(lines)

    def _show_table(self, table: tuple[tuple[int, int], ...], most: int = 12) -> str:
        words = []
        for cell, amount in table[:most]:
            labels = ", ".join(str(label) for label in self.query.cell(cell))
            words.append(f"{'' if amount == 1 else f'{amount} x '}({labels})")
        more = f" and {len(table) - most} more" if len(table) > most else ""
        return (" ".join(words) or "nothing") + more

    def move(self) -> Move:
        """The change between the two data sets of the witness, to be listed, drawn or decomposed."""
        if self.witness is None:
            raise InputError(
                "no data set can change the answer: there is no witness.", code="sensitivity.no-witness"
            )
        self._check_cells()
        from policygraph.moves.move import Move

        return Move.of(self.policy, self.witness.change)

    def _check_cells(self) -> None:
        if self.query.needs_values:
            raise InputError(
                "the two data sets differ in values of records, not only in counts of cells: read them from the witness.",
                code="sensitivity.values",
            )

    def table(self, which: str = "before") -> Any:
        """One of the two data sets of the witness as a dense vector of counts."""
        if self.witness is None:
            raise InputError(
                "no data set can change the answer: there is no witness.", code="sensitivity.no-witness"
            )
        self._check_cells()
        out = np.zeros(self.policy.domain.size, dtype=np.int64)
        for cell, amount in self.witness.before if which == "before" else self.witness.after:
            out[cell] = amount
        return out


def _root(power: Fraction) -> str:
    root = sqrt_up(power)
    return show(root) if root * root == power else f"sqrt({show(power)})"


def _shown(norm: Norm, power: Fraction) -> str:
    return show(power) if norm == "l1" else _root(power)


def _number(value: Fraction) -> int | float:
    """A JSON number: an integer, or the float next above the exact value (the exact one stands beside it)."""
    if value.denominator == 1:
        return value.numerator
    near = float(value)
    return near if Fraction(near) >= value else float(np.nextafter(near, np.inf))
