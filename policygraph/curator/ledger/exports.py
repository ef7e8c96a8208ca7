"""A ledger in the forms of others: a table for spreadsheets, and OpenDP's registry of deployments.

The registry is https://github.com/opendp/deployments-registry-data; its fields are those of ``schemas/deployments-schema.yaml`` of July 2026. What a ledger cannot
know (who publishes, what for, where) is left for its keeper to fill in, and the record says Draft.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from policygraph.curator.ledger.accounts import Account, Entry
from policygraph.errors import InputError, PolicyGraphError
from policygraph.model.loss import Epsilon, EpsilonDelta, Rho, Target
from policygraph.release.sheets import harmless

COLUMNS = (
    "number", "time", "account", "what", "status", "kind", "value", "delta", "policy", "purpose", "labels", "user", "host",
    "login", "reservation", "until", "note", "version",
)  # fmt: skip
OPEN = "to be completed by the curator"


def as_csv(entries: Iterable[Entry]) -> str:
    """Write entries as a table with one line each; numbers are exact, as fractions.

    Wherever a spreadsheet would take a text for a formula, behind a semicolon too, there is an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for entry in entries:
        loss = entry.loss
        value = loss.epsilon if isinstance(loss, EpsilonDelta) else loss.value
        line = {
            **{name: getattr(entry, name, None) for name in COLUMNS},
            "account": entry.name or entry.dataset,
            "kind": loss.kind,
            "value": str(value),
            "delta": str(loss.delta) if isinstance(loss, EpsilonDelta) else "",
            "labels": "; ".join(entry.labels),
        }
        writer.writerow([_plain(line[name]) for name in COLUMNS])
    return out.getvalue()


def _plain(value: Any) -> str:
    return "" if value is None else harmless(str(value))


def as_registry(
    account: Account,
    entries: Iterable[Entry],
    policies: Mapping[str, Mapping[str, Any]],
    *,
    curator: str | None = None,
    use: str | None = None,
    region: str | None = None,
) -> dict[str, Any]:
    """Describe the releases of an account in the form of OpenDP's registry of deployments, as JSON values.

    Parameters
    ----------
    account, entries, policies
        The account, its history, and the policies of the ledger.
    curator, use, region
        Who publishes, what for, and where the data are from.

    Raises
    ------
    InputError
        If nothing was released.
    """
    charges = [entry for entry in entries if entry.what == "charge" and entry.status == "completed"]
    if account.spent is None or not charges:
        raise InputError(
            f"account {account.name or account.dataset}: nothing was released, so that there is nothing to register.",
            code="ledger.no-release",
        )
    title = account.name or account.dataset
    used = sorted({entry.policy for entry in charges if entry.policy is not None})
    described = [_policy(policies.get(policy, {})) for policy in used]
    mechanisms = sorted({entry.note.partition(":")[0] for entry in charges if entry.note})
    standard = all(each[0] for each in described) and len(described) == 1
    hiding = "the policy"
    if len(described) > 1:
        hiding = "every one of the policies" if account.common else "at least one of the policies"
    chosen = ""
    if isinstance(account.spent, EpsilonDelta):
        # Composition, section 3: charges that depend on answers are held together by the limit alone.
        chosen = f" Where releases were chosen after seeing earlier ones: {account.limit}, the limit of the account."
    deployment = {
        "basic": {
            "name": title,
            "data_curators": [curator or OPEN],
            "intended_use": use
            or "; ".join(sorted({entry.purpose for entry in charges if entry.purpose}))
            or OPEN,
            "data_product_type": "Summary statistics",
            "data_product_region": region or OPEN,
            "description": f"{len(charges)} release{'s' * (len(charges) != 1)} on {title} with policygraph.",
            "publication_date": min(entry.time[:10] for entry in charges),
        },
        "dp_variant": {
            "variant_name": _variant(account.spent) if standard else "Custom",
            "data_domain": "; ".join(each[3] for each in described),
            "unprotected_quantities": "; ".join(dict.fromkeys(each[4] for each in described)),
        },
        "privacy_loss": {
            "privacy_unit": f"One {' or '.join(dict.fromkeys(each[1] for each in described))}"
            + ("" if standard else f", for the pairs of values that {hiding} hides"),
            "privacy_unit_details": "; ".join(each[2] for each in described),
            "privacy_parameters": _parameters(account.spent),
            "privacy_parameters_details": f"Rounded up. Exactly: {account.spent}. Policies: {', '.join(used)}.{chosen}",
        },
        "deployment_model": {
            "model_name": "Central",
            "release_type": "One release" if len(charges) == 1 else "Many releases",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": "Exact sums in a ledger, over all policies of the data; parallel composition where no move of the policy touches both parts; a policy "
            "whose graph is a stretch of another is counted at its stretch."
            + ("" if account.each is None else " Pure charges of few sizes by exact composition.")
        },
        "implementation": {
            "mechanisms": f"policygraph {charges[-1].version}: {', '.join(mechanisms)}. Exact discrete noise in integers, no floating point."
        },
        "administrative": {"registry_authors": [curator or OPEN]},
    }
    return {"url_slug": _slug(title), "status": "Draft", "tier": 2, "deployment": deployment}


def _policy(spec: Mapping[str, Any]) -> tuple[bool, str, str, str, str]:
    """Whether a policy is ordinary differential privacy; its unit, neighbours, domain and public facts in words."""
    from policygraph.model.families import Families
    from policygraph.model.units import Unit, any_policy

    none = "None"
    try:
        stated = any_policy(dict(spec))
    except (PolicyGraphError, LookupError, TypeError, ValueError, AttributeError):
        return False, "record", "Not on record in a form that can be read.", OPEN, OPEN
    if isinstance(stated, Families):
        _, _, neighbours, domain, facts = _policy(stated.records.to_spec())
        return (
            False,
            "family",
            f"Families of {stated.words} that change together: {neighbours}",
            domain,
            facts,
        )
    if isinstance(stated, Unit):
        standard, _, neighbours, domain, facts = _policy(stated.records.to_spec())
        return standard, stated.column, f"{neighbours} Here {stated.step_words}.", domain, facts
    policy = stated
    facts = ", ".join(repr(fact) for fact in policy.constraints) or none
    attributes = json.dumps(policy.domain.to_spec(), ensure_ascii=False)
    domain = (
        f"Records over {attributes}" if len(attributes) < 2000 else f"Records over {policy.domain.size} cells"
    )
    plain = (policy.constraints, policy.strength, policy.at_most_records) == ((), "worst-case", None)
    if policy.graph is not None:
        standard = plain and policy.graph.to_spec()["graph"] == "full"
        return standard, "record", policy.graph.describe(), domain, facts
    standard = plain and "domain" in spec
    neighbours = (
        "One record more or less."
        if not policy.constraints
        else "Tables with the same public facts, with no smaller change between them that keeps the facts."
    )
    return standard, "record", neighbours, domain, facts


def _variant(spent: Target) -> str:
    if isinstance(spent, Epsilon):
        return "Pure DP"
    return "Zero-concentrated DP" if isinstance(spent, Rho) else "Approximate DP"


def _parameters(spent: Target) -> dict[str, float]:
    if isinstance(spent, EpsilonDelta):
        return {"epsilon": _up(spent.epsilon), "delta": _up(spent.delta)}
    return {spent.kind: _up(spent.value)}


def _up(value: Fraction) -> float:
    """A number of 12 digits as it is printed, not below the exact one."""
    context = Context(prec=12, rounding=ROUND_CEILING)
    return float(context.divide(Decimal(value.numerator), Decimal(value.denominator)))


def _slug(title: str) -> str:
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in title.lower())
    return "-".join(part for part in kept.split("-") if part) or "release"


def as_yaml(value: Mapping[str, Any], indent: int = 0) -> str:
    """Write nested mappings as YAML; texts are quoted as in JSON, which YAML reads alike.

    Examples
    --------
    >>> print(as_yaml({"a": {"b": [1, "x: y"]}}), end="")
    a:
      b:
        - 1
        - "x: y"
    """
    lines = ""
    for key, below in value.items():
        margin = "  " * indent
        if isinstance(below, Mapping):
            lines += f"{margin}{key}:\n{as_yaml(below, indent + 1)}"
        elif isinstance(below, list):
            lines += f"{margin}{key}:\n" + "".join(f"{margin}  - {_scalar(each)}\n" for each in below)
        else:
            lines += f"{margin}{key}: {_scalar(below)}\n"
    return lines


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
