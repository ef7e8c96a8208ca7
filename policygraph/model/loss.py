"""Privacy losses as exact numbers: pure epsilon, zCDP rho, and (epsilon, delta) by conversion.

Owns the three kinds of loss, their sequential composition, and the conversion between zCDP and (epsilon, delta).

A mechanism is charged with an :class:`Epsilon` or a :class:`Rho`. Each knows the norm in which it wants a
sensitivity, so that Laplace noise cannot be scaled to an L2 sensitivity nor Gaussian noise to an L1 one. An
:class:`EpsilonDelta` is what a budget or a reader asks for: it has no norm, and becomes a :class:`Rho` first.

Notes
-----
For every order a > 1 a mechanism of zCDP loss rho is (epsilon, delta)-private with
``epsilon = rho a + ln(1 - 1/a) - ln(delta a) / (a - 1)`` (Canonne, Kamath and Steinke 2020, Prop. 12; the proof
is in ``docs/explanation/proofs/composition.md``). A good order is found in floating point; the formula is then
evaluated at that order in fractions with every logarithm rounded up, so that a poor order costs tightness and
never soundness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import ceil, exp2, floor, log, log1p, sqrt
from typing import ClassVar, Literal, Self

from policygraph.errors import InputError, shown
from policygraph.exact import Exact, as_fraction, show

_LARGEST = 1 << 64
_FINEST_BITS = 1024
_COARSE_BITS = 512
_SMALLEST_DELTA = Fraction(1, 10**200)
_DIGITS = 60
_COVER = Fraction(1, 10**58)
_SIGNIFICANT = 12


def _positive(value: Exact, name: str) -> Fraction:
    number = as_fraction(value, name)
    if number <= 0:
        raise InputError(
            f"{name}={shown(str(value) if isinstance(value, Fraction) else value)}: expected a number > 0. A loss of 0 asks for an answer that says nothing.",
            code="loss.not-positive",
            value=value,
        )
    if number >= _LARGEST:
        raise InputError(
            f"{name}={shown(value)}: expected a number below 2**64. A loss that large protects nothing.",
            code="loss.too-large",
            value=value,
        )
    if number.denominator.bit_length() > _FINEST_BITS:
        raise InputError(
            f"{name} has a denominator of {number.denominator.bit_length()} bits: expected at most "
            f"{_FINEST_BITS}. Write it with fewer digits.",
            code="loss.too-fine",
            value=value,
        )
    return number


def _coarse(value: Fraction, *, up: bool) -> Fraction:
    """Keep a number of manageable size exactly, and round a very fine one to a multiple of 2**-512."""
    if value.denominator.bit_length() <= _FINEST_BITS:
        return value
    scaled = value * (1 << _COARSE_BITS)
    return Fraction(ceil(scaled) if up else floor(scaled), 1 << _COARSE_BITS)


def _text(value: Fraction) -> str:
    """Print a number in full when that is short, and otherwise say that it is rounded."""
    plain = show(value) if max(value.numerator, value.denominator) < 10**12 else ""
    if plain and len(plain) <= 16:
        return plain
    decimal = Context(prec=16).divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()
    return str(decimal).lower() if Fraction(decimal) == value else f"about {float(value):.6g}"


@dataclass(frozen=True, order=True, init=False)
class _Amount:
    """What the two chargeable losses share: one positive exact number that adds up."""

    value: Fraction

    kind: ClassVar[str]

    def __init__(self, value: Exact) -> None:
        object.__setattr__(self, "value", _positive(value, self.kind))

    @classmethod
    def at_least(cls, value: Fraction) -> Self:
        """Make the loss from an exact sum, rounded up when it has become too fine to write down."""
        return cls(_coarse(value, up=True))

    @classmethod
    def at_most(cls, value: Fraction) -> Self:
        """Make the loss from an exact difference, rounded down when it is too fine to write down."""
        return cls(_coarse(value, up=False))

    def __add__(self, other: object) -> Self:
        """Compose sequentially with a loss of the same kind; unlike kinds must be converted first."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.at_least(self.value + other.value)

    def split(self, weights: int | Sequence[Exact]) -> tuple[Self, ...]:
        """Divide the loss into parts that compose to it exactly.

        Parameters
        ----------
        weights
            How many equal parts, or the relative weight of each part.

        Returns
        -------
        tuple
            One loss per part, in order.

        Examples
        --------
        >>> Epsilon(1).split([1, 3])
        (Epsilon(value=Fraction(1, 4)), Epsilon(value=Fraction(3, 4)))
        """
        parts = [1] * weights if isinstance(weights, int) else list(weights)
        if not parts:
            raise InputError(
                f"weights={shown(weights)}: expected at least one part.",
                code="loss.no-parts",
                weights=weights,
            )
        shares = [_positive(part, "weight") for part in parts]
        total = sum(shares)
        return tuple(type(self)(self.value * share / total) for share in shares)

    def to_json(self) -> dict[str, str]:
        """Write the loss with exact numbers as text; :func:`loss_from_json` reads it back.

        Examples
        --------
        >>> Epsilon("1/3").to_json()
        {'kind': 'epsilon', 'value': '1/3'}
        """
        return {"kind": self.kind, "value": str(self.value)}

    def __str__(self) -> str:
        return f"{self.kind} = {_text(self.value)}"


@dataclass(frozen=True, order=True, init=False)
class Epsilon(_Amount):
    """Pure loss: on neighbours the probability of any event differs by a factor of at most exp(epsilon).

    Parameters
    ----------
    value
        A positive number; a float is read by its shortest decimal form.

    Raises
    ------
    InputError
        If the number is not positive and finite.

    Examples
    --------
    >>> Epsilon(0.1) + Epsilon("0.2")
    Epsilon(value=Fraction(3, 10))
    >>> print(Epsilon(0.1)), Epsilon(0.1).norm
    epsilon = 0.1
    (None, 'l1')
    """

    kind: ClassVar[str] = "epsilon"
    norm: ClassVar[Literal["l1"]] = "l1"

    def to_rho(self) -> Rho:
        """Give the zCDP loss that this pure loss implies.

        Examples
        --------
        >>> Epsilon(1).to_rho()
        Rho(value=Fraction(1, 2))

        Notes
        -----
        A mechanism of pure loss epsilon has zCDP loss epsilon**2 / 2 (Bun and Steinke 2016, Prop. 1.4).
        The way back does not exist: no pure loss follows from any rho.
        """
        return Rho.at_least(self.value * self.value / 2)

    def for_group(self, steps: int) -> Epsilon:
        """Give the loss between data sets that are ``steps`` neighbours apart: ``steps`` times as much."""
        return Epsilon.at_least(self.value * _steps(steps))


@dataclass(frozen=True, order=True, init=False)
class Rho(_Amount):
    """Loss in zero-concentrated terms: every Renyi divergence of order a is at most rho times a.

    Parameters
    ----------
    value
        A positive number; a float is read by its shortest decimal form.

    Raises
    ------
    InputError
        If the number is not positive and finite.

    Examples
    --------
    >>> Rho(0.5) + Rho(0.25), Rho(0.5).norm
    (Rho(value=Fraction(3, 4)), 'l2')
    >>> print(Rho(0.5).to_epsilon_delta(1e-6))
    epsilon = 5.22153446959, delta = 0.000001
    """

    kind: ClassVar[str] = "rho"
    norm: ClassVar[Literal["l2"]] = "l2"

    def to_epsilon_delta(self, delta: Exact) -> EpsilonDelta:
        """Give a proved (epsilon, delta) guarantee; the epsilon is an upper bound.

        Parameters
        ----------
        delta
            Between 0 and 1, both excluded.

        Returns
        -------
        EpsilonDelta
            With the given delta, and an epsilon rounded up to 12 significant digits.

        Notes
        -----
        :func:`epsilon_up` has the theorem and the roundings.
        """
        share = EpsilonDelta(1, delta).delta
        return EpsilonDelta(epsilon_up(self.value, share), share)

    def for_group(self, steps: int) -> Rho:
        """Give the loss between data sets ``steps`` neighbours apart: ``steps`` squared times as much."""
        return Rho.at_least(self.value * _steps(steps) ** 2)


@dataclass(frozen=True, init=False)
class EpsilonDelta:
    """An (epsilon, delta) guarantee: a limit to keep or a statement to read, never charged as such.

    Parameters
    ----------
    epsilon
        A positive number.
    delta
        Between 0 and 1, both excluded; at least 1e-200.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> target = EpsilonDelta(1, 1e-6)
    >>> print(target, "|", target.to_rho())
    epsilon = 1, delta = 0.000001 | rho = 0.024355970351

    Notes
    -----
    ``a <= b`` says that ``a`` is at least as private as ``b`` in both numbers; two guarantees of which each
    is better in one number are not comparable, and then every comparison is false.
    """

    epsilon: Fraction
    delta: Fraction

    kind: ClassVar[str] = "epsilon-delta"

    def __init__(self, epsilon: Exact, delta: Exact) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))
        share = _positive(delta, "delta")
        if not _SMALLEST_DELTA <= share < 1:
            raise InputError(
                f"delta={shown(delta)}: expected a number from 1e-200 up to, and without, 1. For no delta at all "
                "use a pure epsilon.",
                code="loss.delta",
                delta=delta,
            )
        object.__setattr__(self, "delta", share)

    def to_rho(self) -> Rho:
        """Give the largest zCDP loss that is certified to keep this guarantee, rounded down.

        Notes
        -----
        :func:`rho_down` has the theorem and the roundings.
        """
        return Rho(rho_down(self.epsilon, self.delta))

    def __add__(self, other: object) -> EpsilonDelta:
        """Compose sequentially by the basic rule: epsilons and deltas add up."""
        if not isinstance(other, EpsilonDelta):
            return NotImplemented
        return EpsilonDelta(
            _coarse(self.epsilon + other.epsilon, up=True), _coarse(self.delta + other.delta, up=True)
        )

    def __le__(self, other: object) -> bool:
        if not isinstance(other, EpsilonDelta):
            return NotImplemented
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, EpsilonDelta):
            return NotImplemented
        return self <= other and self != other

    def to_json(self) -> dict[str, str]:
        """Write the guarantee with exact numbers as text; :func:`loss_from_json` reads it back."""
        return {"kind": self.kind, "epsilon": str(self.epsilon), "delta": str(self.delta)}

    def __str__(self) -> str:
        return f"epsilon = {_text(self.epsilon)}, delta = {_text(self.delta)}"


Loss = Epsilon | Rho
"""What a mechanism can be charged with."""

Target = Epsilon | Rho | EpsilonDelta
"""What a limit can be set to, and what a statement can say."""


def loss_from_json(record: Mapping[str, object]) -> Target:
    """Read a loss back from :meth:`Epsilon.to_json` and its like.

    Raises
    ------
    InputError
        If the record is not one of the three forms.

    Examples
    --------
    >>> loss_from_json({"kind": "rho", "value": "1/8"})
    Rho(value=Fraction(1, 8))
    """
    fields = {key: text for key, text in record.items() if isinstance(text, str)}
    match fields:
        case {"kind": "epsilon", "value": value} if len(record) == 2:
            return Epsilon(value)
        case {"kind": "rho", "value": value} if len(record) == 2:
            return Rho(value)
        case {"kind": "epsilon-delta", "epsilon": epsilon, "delta": delta} if len(record) == 3:
            return EpsilonDelta(epsilon, delta)
    raise InputError(
        f"{shown(dict(record), 200)}: expected a loss such as {{'kind': 'epsilon', 'value': '1/2'}}, of kind epsilon, rho or "
        "epsilon-delta, its numbers as text.",
        code="loss.record",
        record=dict(record),
    )


def _steps(steps: int) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InputError(f"steps={shown(steps)}: expected an integer >= 1.", code="loss.steps", steps=steps)
    return steps


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
        f"{_given(epsilon=epsilon, rho=rho, delta=delta)}: expected a privacy loss, which is epsilon alone, rho alone, or "
        "epsilon with delta.",
        code="release.loss",
        epsilon=epsilon,
        rho=rho,
        delta=delta,
    )


def _given(**numbers: Exact | None) -> str:
    return (
        ", ".join(
            f"{name}={value if isinstance(value, str) and len(value) < 60 else shown(value)}"
            for name, value in numbers.items()
            if value is not None
        )
        or "no loss"
    )


def epsilon_up(rho: Fraction, delta: Fraction) -> Fraction:
    """Bound from above the epsilon that a zCDP loss keeps at this delta, to 12 significant digits.

    Examples
    --------
    >>> float(epsilon_up(Fraction(1, 2), Fraction(1, 10**6)))
    5.22153446959

    Notes
    -----
    For rho <= 2 delta**2 Pinsker's inequality bounds the total variation by delta, and any epsilon does.
    """
    least = Fraction(1, 10**_SIGNIFICANT)
    if rho <= 2 * delta * delta:
        return least
    order = good_order(rho, delta)
    return _significant(max(rho * order + _offset_up(order, delta), least), up=True)


def rho_down(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Give the largest rho that is certified to keep (epsilon, delta), rounded down to 12 digits.

    Examples
    --------
    >>> float(rho_down(Fraction(1), Fraction(1, 10**6)))
    0.024355970351

    Notes
    -----
    At a fixed order the formula is linear in rho, so that the best rho for that order is a division. Order and
    rho are improved in turn: the best order for a rho lowers epsilon, which leaves room for a larger rho. Each
    rho on the way is certified; the last is kept.
    """
    best = 2 * delta * delta
    level = float(epsilon)
    guess = Fraction(min(level, level**2 / (1 - 4 * log(float(delta)))))
    for _ in range(40):
        order = good_order(max(guess, best), delta)
        rho = (epsilon - _offset_up(order, delta)) / order
        if rho <= best * (1 + Fraction(1, 10**14)):
            break
        guess = best = rho
    return _significant(best, up=False)


def _significant(value: Fraction, *, up: bool) -> Fraction:
    """Round a positive number to 12 significant decimal digits, in one direction."""
    exponent = len(str(floor(value))) if value >= 1 else 1 - len(str(floor(1 / value)))
    unit = Fraction(10) ** (exponent - _SIGNIFICANT)
    return (ceil(value / unit) if up else floor(value / unit)) * unit


def ln_up(value: Fraction) -> Fraction:
    """Bound a logarithm from above.

    Notes
    -----
    The quotient is rounded up to 60 digits, which only raises the logarithm; ``Decimal.ln`` is correctly
    rounded to 60 digits by its specification, and the added 1e-58 of the result covers that rounding a
    hundred times over. A result of 0 arises only for a quotient of exactly 1 and needs no cover.
    """
    context = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    result = Fraction(context.ln(quotient))
    return result + abs(result) * _COVER


def _offset_up(order: Fraction, delta: Fraction) -> Fraction:
    """Bound ``ln(1 - 1/order) - ln(delta order) / (order - 1)`` from above."""
    return ln_up(1 - 1 / order) + ln_up(1 / (delta * order)) / (order - 1)


def good_order(rho: Fraction, delta: Fraction) -> Fraction:
    """Find a rational order of at least 1.02 at which the conversion is nearly tightest, by a grid that is refined four times.

    Any order above 1 would be sound. Orders below 1.02 would help only an epsilon in the hundreds.
    """
    level, share = min(max(float(rho), 1e-300), 1e15), float(delta)

    def epsilon(order: float) -> float:
        return level * order + log1p(-1 / order) - log(share * order) / (order - 1)

    above, width = max(sqrt(-log(share) / level), 0.02), 4.0
    for _ in range(4):
        orders = [1 + max(above * exp2(width * k / 16), 0.02) for k in range(-16, 17)]
        above, width = min(orders, key=epsilon) - 1, width / 8
    closest = Fraction(above)
    return 1 + (closest.limit_denominator(10**6) if above < 10**6 else Fraction(floor(closest)))
