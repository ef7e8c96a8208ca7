"""Certificates as measurements of OpenDP: its map is the certificate, its noise has the stated scale, and nothing else goes through."""

from __future__ import annotations

import random
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import policygraph as pg
from policygraph.opendp import policy_of_margins, to_measurement, to_transformation
from tests.strategies import queries, small_policies

dp = pytest.importorskip("opendp.prelude")


@pytest.fixture(autouse=True)
def features():
    dp.enable_features("contrib", "honest-but-curious")


def generated(seed, count, norm="l1"):
    """Certificates of policies of every shape with a query each, so many of which something is hidden, and those met on the way."""
    rng, found = random.Random(seed), 0
    policies = small_policies(seed)
    rng.shuffle(policies)
    for policy in policies:
        certificate = pg.sensitivity(rng.choice(queries(policy.domain, rng)), policy, norm=norm)
        found += certificate.power > 0
        yield certificate
        if found == count:
            return


TOWN = pg.Domain({"sex": ["F", "M"], "age": 3})
TWO = pg.Policy(TOWN, constraints=[pg.Cuboid("sex"), pg.Cuboid("age")])
CELLS = pg.queries.identity(TOWN)


@pytest.mark.parametrize("seed", range(3))
def test_the_map_is_the_certificate(seed):
    compared = 0
    for certificate in generated(seed, 20):
        loss = (Fraction(1), Fraction(1, 3), Fraction(7, 10), Fraction(5))[compared % 4]
        unit = certificate.query.unit
        stable = to_transformation(certificate)
        assert [stable.map(d) for d in (0, 1, 4)] == [
            0,
            certificate.value / unit,
            4 * certificate.value / unit,
        ]
        measured = to_measurement(certificate, epsilon=loss)
        if certificate.value == 0:
            assert measured.map(5) == 0
            continue
        for d in (1, 2, 7):
            # OpenDP rounds up; one step is never above what was asked, and never below by more than the last digits.
            assert abs(Fraction(measured.map(d)) - d * loss) < d * loss * Fraction(1, 10**14)
        assert measured.map(1) <= float(loss)
        compared += 1
    assert compared == 20


def test_the_map_of_gaussian_noise_is_the_certificate_in_l2():
    compared = 0
    for certificate in generated(11, 20, "l2"):
        if certificate.power == 0:
            continue
        stable = to_transformation(certificate)
        exact = float(certificate.power) ** 0.5
        assert stable.map(3) == pytest.approx(3 * exact, rel=1e-12)
        assert Fraction(stable.map(3)) ** 2 >= 9 * certificate.power
        measured = to_measurement(certificate, rho="1/8")
        assert measured.map(1) <= 0.125
        assert measured.map(2) == pytest.approx(0.5, rel=1e-12)
        compared += 1
    assert compared == 20


def misfit(draws, scale):
    """Chi-square p-value of integers against the discrete Laplace distribution of a scale, tails together."""
    ratio, n = np.exp(-1 / scale), len(draws)
    edge = int(scale * np.log(n / 50))
    at = np.arange(-edge, edge + 1)
    share = (1 - ratio) / (1 + ratio) * ratio ** np.abs(at)
    met = np.array([np.count_nonzero(draws == k) for k in at])
    rest = 1 - share.sum()
    return chisquare([*met, n - met.sum()], np.array([*share, rest]) * n).pvalue


def test_draws_have_the_stated_scale():
    # 2,500 runs of six answers. A right sampler is below 1e-9 once in a thousand million runs; a scale 15 % off, or that of ordinary differential privacy, is far below.
    measured = to_measurement(pg.sensitivity(CELLS, TWO), epsilon=2)
    counts = np.array([5, 0, 2, 1, 1, 7])
    draws = (np.array([measured(counts.tolist()) for _ in range(2_500)]) - counts).ravel()
    assert misfit(draws, 4 / 2) > 1e-9
    assert misfit(draws, 4 / 2 * 1.15) < 1e-9
    assert misfit(draws, 2 / 2) < 1e-9


def test_gaussian_draws_have_the_stated_variance():
    certificate = pg.sensitivity(CELLS, TWO, norm="l2")
    assert certificate.power == 4
    measured = to_measurement(certificate, rho="1/8")  # variance 4 / (2 / 8) = 16
    draws = np.array([measured([5, 0, 2, 1, 1, 7]) for _ in range(1_500)]) - [5, 0, 2, 1, 1, 7]
    # The mean of 9,000 squares has a relative standard deviation of sqrt(2 / 9,000) = 0.015; seven of them.
    assert abs(np.mean(draws.astype(float) ** 2) / 16 - 1) < 0.105


def test_opendps_keys_and_lengths_are_special_cases():
    def margin(by, invariant):
        return dp.polars.Margin(by=by, invariant=invariant)

    def sensitivity(*margins):
        return pg.sensitivity(CELLS, policy_of_margins(TOWN, margins)).value

    assert sensitivity() == 1
    assert sensitivity(margin(["sex"], None)) == sensitivity(margin(["sex"], "keys")) == 1
    assert sensitivity(margin([], "lengths")) == 2  # bounded differential privacy
    assert sensitivity(margin(["sex"], "lengths")) == 2
    assert sensitivity(margin(["sex"], "lengths"), margin(["age"], "lengths")) == 4
    assert sensitivity(margin(["sex", "age"], "lengths")) == 0
    assert policy_of_margins(TOWN, [margin(["sex"], "lengths"), margin(["age"], "lengths")]) == TWO


def test_measurements_of_one_policy_compose_in_opendp():
    first = to_measurement(pg.sensitivity(CELLS, TWO), epsilon=1)
    second = to_measurement(pg.sensitivity(pg.queries.cuboid(TOWN, "sex", "age"), TWO), epsilon="1/2")
    both = dp.c.make_composition([first, second])
    assert both.map(1) == pytest.approx(1.5)
    assert [len(each) for each in both([1, 2, 3, 4, 5, 6])] == [6, 6]


def test_measurements_of_different_policies_do_not_compose():
    first = to_measurement(pg.sensitivity(CELLS, TWO), epsilon=1)
    other = to_measurement(pg.sensitivity(CELLS, pg.Policy(TOWN)), epsilon=1)
    with pytest.raises(dp.OpenDPException):
        dp.c.make_composition([first, other])


def test_data_that_break_a_public_fact_are_refused():
    policy = pg.Policy(TOWN, constraints=[pg.Total(equals=10)])
    measured = to_measurement(pg.sensitivity(CELLS, policy), epsilon=1)
    assert len(measured([5, 0, 2, 1, 1, 1])) == 6
    assert measured.input_domain.member([5, 0, 2, 1, 1, 1])
    assert not measured.input_domain.member([5, 0, 2, 1, 1, 2])
    with pytest.raises(dp.OpenDPException, match="Nothing was charged"):
        measured([5, 0, 2, 1, 1, 2])
    with pytest.raises(dp.OpenDPException):
        measured([5, 0, 2])


def test_a_file_is_counted_as_for_a_release(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("sex,age\nF,0\nM,2\nM,2\n")
    stable = to_transformation(pg.sensitivity(CELLS, TWO))
    assert stable(str(path)) == [1, 0, 0, 0, 0, 2]


def test_units_with_several_records(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("who,sex,age\n" + "a,F,0\n" * 5 + "b,M,2\n")
    policy = pg.Unit(pg.Policy(TOWN), "who", at_most=2)
    certificate = pg.sensitivity(CELLS, policy)
    assert certificate.value == 2
    stable = to_transformation(certificate)
    assert (stable.map(1), stable(str(path))) == (2, [2, 0, 0, 0, 0, 1])


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: to_measurement(4, epsilon=1), "opendp.certificate"),
        (lambda: to_measurement(pg.sensitivity(CELLS, TWO), rho=1), "mechanism.norm"),
        (lambda: to_measurement(pg.sensitivity(CELLS, TWO)), "release.loss"),
        (
            lambda: to_measurement(pg.Sensitivity.from_dict(pg.sensitivity(CELLS, TWO).to_dict()), epsilon=1),
            "mechanism.certificate",
        ),
        (lambda: policy_of_margins(TOWN, ["sex"]), "opendp.margin"),
        (
            lambda: policy_of_margins(TOWN, [dp.polars.Margin(by=["salary"], invariant="keys")]),
            "domain.unknown-attribute",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(make, code):
    with pytest.raises(pg.PolicyGraphError) as error:
        make()
    assert error.value.code == code


@pytest.mark.parametrize("steps", [-1, 1.5, True])
def test_steps_are_whole_numbers(steps):
    with pytest.raises(dp.OpenDPException):
        to_transformation(pg.sensitivity(CELLS, TWO)).map(steps)


def test_without_opendp_the_hint_names_the_extra():
    program = (
        "import sys; sys.modules['opendp'] = None; import policygraph as pg; from policygraph.opendp import to_measurement\n"
        "d = pg.Domain({'a': 2})\n"
        "try: to_measurement(pg.sensitivity(pg.queries.identity(d), pg.Policy(d)), epsilon=1)\n"
        "except pg.InputError as error: print(error, error.code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == 'OpenDP is not installed: pip install "policygraph[opendp]". opendp.missing'
