"""The answer to "how much can one neighbour step change the query", with its proof. Owns :class:`Sensitivity`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from policygraph.documents import MALFORMED, parse_json
from policygraph.errors import InputError, PolicyGraphError, shown
from policygraph.exact import as_fraction, show, sqrt_down, sqrt_up
from policygraph.model.grouped import Grouped, records_of
from policygraph.model.linked_units import LinkedUnit
from policygraph.model.policy import DEFINITIONS, Policy
from policygraph.model.queries.base import Norm, Query
from policygraph.model.units import Unit, any_policy
from policygraph.moves.bracket import Witness
from policygraph.moves.degrees.secret_pairs import secret_cells

if TYPE_CHECKING:
    from pathlib import Path

    from policygraph.moves.move import Move
    from policygraph.sensitivity.verify.tables import Verification

__all__ = ["DETERMINED", "Sensitivity", "Witness"]

FORMAT = 1
DETERMINED = "the public facts determine the query"
"""Method of a certificate that says so: the answers need no noise, since everybody can compute them."""


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
    policy: Policy | Grouped
    query: Query
    steps: tuple[str, ...] = field(default=())
    cut_short: bool = field(default=False)
    effort: int = field(default=0, compare=False, repr=False)
    """Units of work that the search spent."""
    stated_proof: Any = field(default=None, compare=False, repr=False)
    """The proof that a certificate carries which was read from a file."""
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
        policy = records_of(self.policy)
        text = DEFINITIONS[policy.definition]
        if policy.definition == "induced" and not policy.constraints:
            text = "one record more or less (induced neighbours without public facts)"
        if policy.definition == "blowfish" and secret_cells(policy) is not None:
            text += ", each node pair a record that is joined or not"
        if policy.strength != "worst-case":
            text += f", {policy.strength} strength"
        if policy.at_most_records is not None:
            text += f", at most {policy.at_most_records} records added and as many removed"
        if isinstance(self.policy, Grouped):
            text += f"; {self.policy.step_words}"
        if self.query.needs_values:
            text += "; records are taken with their values, and every value is secret"
        return text

    @property
    def warning(self) -> str | None:
        """Said where a cap or a weaker strength may be all that makes the sensitivity 0: the true answers are released then.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"a": 2, "b": 2})
        >>> policy = pg.Policy(domain, constraints=[pg.Cuboid("a"), pg.Cuboid("b")], at_most_records=1)
        >>> pg.sensitivity(pg.queries.identity(domain), policy).warning
        'WARNING: these answers are not hidden at all. No two neighbours differ in them when at most 1 record may be added...
        """
        if self.power or self.method == DETERMINED:
            return None
        policy = records_of(self.policy)
        cap, weaker = policy.at_most_records, policy.strength != "worst-case"
        if cap is None and not weaker:
            return None
        only = [f"only neighbours of {policy.strength} strength count"] * weaker
        if cap is not None:
            only.append(f"at most {cap} record{'s' * (cap != 1)} may be added and as many removed")
        instead = ["use the strength worst-case"] * weaker + ["raise at_most_records or leave it out"] * (
            cap is not None
        )
        return (
            f"WARNING: these answers are not hidden at all. No two neighbours differ in them when {' and '.join(only)}, so that a "
            f"release gives the true answers, without noise. If anybody must not learn them, {' or '.join(instead)}."
        )

    def check_made_for(self, query: Query, policy: Policy | Grouped) -> None:
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

    @cached_property
    def proof(self) -> Any:
        """A proof of the bound that ``python -m policygraph.check`` verifies, in plain form; None where none is known yet.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"a": 2, "b": 3})
        >>> pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=[pg.Cuboid("a")])).proof
        {'kind': 'theorem', 'theorem': 'one-margin'}
        """
        return self._found_proof() if self.computed else self.stated_proof

    def _found_proof(self) -> Any:
        from policygraph.sensitivity.proving import proof_of

        plain = json.loads(json.dumps([self.policy.to_spec(), self.query.to_spec()]))
        return proof_of(plain[0], plain[1], self.norm, self.power)

    def verify(self) -> Verification:
        """Check the certificate with ``policygraph.check``, and what that leaves undecided by a search of its own.

        Both share no code with what made the certificate. One that carries no proof, as those written by earlier versions, gets one here.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"a": 2, "b": 3})
        >>> print(pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain, constraints=[pg.Cuboid("a")])).verify())
        passed  document: the document is consistent and known in all its parts
        passed  tables: two data sets over the domain
        passed  public facts: both data sets are over the cells that can hold records, with the same public facts
        passed  neighbours: no smaller change keeps the public facts
        passed  attained: the answers of the two data sets differ by 2, claimed 2
        passed  bound: at most 2: the theorem one-margin (reductions.md, Theorem 2) with all its conditions
        the certificate holds
        """
        from policygraph.sensitivity.verify.certificates import verify
        from policygraph.sensitivity.verify.claims import CertifiedBound
        from policygraph.sensitivity.verify.tables import CheckResult, Verification

        report = self._checked()
        if report["holds"]:
            return Verification(
                tuple(CheckResult(c["name"], c["passed"], c["text"]) for c in report["checks"])
            )
        found = self.witness
        tables = None if found is None else (dict(found.before), dict(found.after))
        if isinstance(self.policy, LinkedUnit):
            from policygraph.sensitivity.verify.linked import of_linked

            stated = self.power, self.lower_power, tables, self.reason
            return of_linked(self.policy, self.query, self.norm, *stated).beside(report["checks"])
        again = verify(
            CertifiedBound(
                records_of(self.policy),
                self.query,
                self.norm,
                self.power,
                self.lower_power,
                tables,
                self.reason,
                self.policy.members if isinstance(self.policy, Grouped) else 1,
                self.policy.cap if isinstance(self.policy, Unit) else None,
            )
        )
        return again.beside(report["checks"])

    def _checked(self) -> dict[str, Any]:
        """The report of ``policygraph.check`` on the certificate as it would be written, with a proof where it carries none."""
        from policygraph.check import check

        data = json.loads(json.dumps(self.to_dict()))
        if not isinstance(data["proof"], dict) and not self.computed:
            data["proof"] = self._found_proof()
        return check(data)

    @property
    def proved(self) -> bool:
        """Whether ``policygraph.check`` accepts the certificate completely, as ``release --require-proof`` asks.

        Examples
        --------
        >>> import policygraph as pg
        >>> domain = pg.Domain({"a": 2, "b": 3})
        >>> pg.sensitivity(pg.queries.identity(domain), pg.Policy(domain)).proved
        True
        """
        return bool(self._checked()["holds"])

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
            "neighbours": records_of(self.policy).definition,
            "strength": records_of(self.policy).strength,
            "at_most_records": records_of(self.policy).at_most_records,
            "policy_fingerprint": self.policy.fingerprint,
            "query_fingerprint": self.query.fingerprint,
            "policy": self.policy.to_spec(),
            "query": self.query.to_spec(),
            "proof": self.proof,
            # Named only where it is so, so that certificates that were stored before read as they did.
            **({"cut_short": True} if self.cut_short else {}),
            **(
                {"unit": self.policy.kind, "at_most": self.policy.members}
                if isinstance(self.policy, Grouped)
                else {}
            ),
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
            # Named only where records are compared one by one.
            **({"pairs": [list(pair) for pair in witness.pairs]} if witness.pairs else {}),
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
                    f"this is not a certificate, or a changed one: it has no text under {key!r}. Expected certificate.json as it was written beside a release.",
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
        stated = {key: value for key, value in data.items() if key not in ("library", "effort")}
        if strange := sorted(stated.keys() - follows.keys() - {"cut_short"}):
            raise InputError(
                f"the certificate has {strange[0]!r}, which is not known: it was changed after it was made, or made by another version.",
                code="certificate.inconsistent",
                key=strange[0],
            )
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

        policy = any_policy(data["policy"])
        query = from_spec(policy.domain, data["query"])
        found = data["witness"]
        witness = None
        if found is not None:
            before, after = (
                {row["index"]: row["count"] for row in found[side]} for side in ("before", "after")
            )
            witness = replace(
                Witness.of_tables(before, after), pairs=tuple((x, y) for x, y in found.get("pairs", ()))
            )
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
            stated_proof=data.get("proof"),
        )

    @classmethod
    def from_json(cls, text: str) -> Sensitivity:
        """Read a certificate back from JSON text."""
        try:
            data = parse_json(text)
        except ValueError as cause:
            raise InputError(
                f"this is not a certificate, since it is not JSON ({cause}). Expected certificate.json as it was written beside a release.",
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
        if self.warning is not None:
            lines.append(f"  {self.warning}")
        if self.witness is not None:
            lines.append(
                "  attained by two data sets that must look alike:" if self.exact else "  best pair found:"
            )
            lines.append("    before: " + self._show_table(self.witness.before))
            lines.append("    after:  " + self._show_table(self.witness.after))
        return "\n".join(lines)

    def __repr__(self) -> str:
        sign = "" if self.exact else "<= "
        return f"Sensitivity({sign}{_shown(self.norm, self.power)}, {self.norm}, {self.kind})"

    def _repr_html_(self) -> str:
        from policygraph.markup import notebook, table, tag

        number = _shown(self.norm, self.power)
        title = f"Sensitivity {'=' if self.exact else '≤'} {number} ({self.norm.upper()}, {self.kind})"
        rows = [["neighbours", self.definition], ["method", self.method], ["why", self.reason]]
        if self.witness is not None:
            rows.append(["data set A", self._show_table(self.witness.before)])
            rows.append(["data set B", self._show_table(self.witness.after)])
        cut = tag("p", "Cut short by the time limit.", class_="warning") if self.cut_short else None
        return notebook(title, cut, table(["", ""], rows))

    def _show_table(self, table: tuple[tuple[int, int], ...], most: int = 12) -> str:
        """A data set of the witness in one line; of a long one only what differs from the other."""
        differing = self.witness.change if self.witness is not None else {}
        shown = table if len(table) <= most else sorted(table, key=lambda row: row[0] not in differing)
        if len(table) > most:
            most = min(most, sum(cell in differing for cell, _ in table)) or most
        words = []
        for cell, amount in shown[:most]:
            labels = ", ".join(str(label) for label in self.query.cell(cell))
            words.append(f"{'' if amount == 1 else f'{amount} x '}({labels})")
        rest = shown[most:]
        alike = "" if any(cell in differing for cell, _ in rest) else ", the same in both"
        more = f" and {len(rest)} more{alike}" if rest else ""
        return (" ".join(words) or "nothing") + more

    def move(self) -> Move:
        """The change between the two data sets of the witness, to be listed, drawn or decomposed."""
        if self.witness is None:
            raise InputError(
                "no data set can change the answer: there is no witness.", code="sensitivity.no-witness"
            )
        self._check_cells()
        from policygraph.moves.move import Move

        return Move.of(records_of(self.policy), self.witness.change)

    def draw(self, target: str | Path | None = None) -> Any:
        """Draw the two data sets that must look alike, side by side, with what differs marked.

        Parameters
        ----------
        target
            A picture file; None only returns the figure, which notebooks show.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from policygraph.sensitivity.drawing import draw_pair

        return draw_pair(self, target)

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
