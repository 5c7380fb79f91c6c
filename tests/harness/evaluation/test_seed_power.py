"""Power and seeds needed, against R and drawn samples; readings of comparisons."""

import math

import numpy as np
import pytest

from harness.evaluation import seed_power
from harness.evaluation.seed_power import LEANING, OPEN, SETTLED, apart, power, readings
from harness.evaluation.statistics import student_interval, student_quantile


def test_power_is_that_of_r():
    # power.t.test(n = 10, delta = 1, sd = 1, type = "paired")
    assert power(1.0, 10) == pytest.approx(0.8030962, abs=1e-5)


@pytest.mark.parametrize(("effect", "count"), [(0.5, 2), (2.0, 3), (0.0, 5), (0.7, 12)])
def test_power_is_the_share_of_drawn_samples_that_settle(effect, count):
    drawn = np.random.default_rng(count).normal(effect, 1, (100_000, count))
    t = drawn.mean(1) / drawn.std(1, ddof=1) * math.sqrt(count)
    share = (np.abs(t) > student_quantile(count - 1)).mean()
    error = math.sqrt(share * (1 - share) / len(drawn))
    assert power(effect, count) == pytest.approx(share, abs=4 * error)


@pytest.mark.parametrize(("effect", "expected"), [(1.0, 10), (0.5, 34), (3.0, 4), (0.001, None)])
def test_the_seeds_needed_are_the_fewest_with_80_percent(effect, expected):
    assert seed_power.seeds_needed(effect) == expected
    if expected:
        assert power(effect, expected - 1) < 0.8 <= power(effect, expected)


def test_a_difference_is_paired_by_seed():
    first, second = [0.5, 0.6, 0.9], [0.4, 0.55, 0.7]
    found = apart(first, second)
    differences = [a - b for a, b in zip(first, second, strict=True)]
    assert found.mean == pytest.approx(0.35 / 3)
    assert found.interval == student_interval(differences)
    # t = 2.6458 with 2 degrees of freedom: p = 1 - t / sqrt(t^2 + 2) = 0.1181
    assert found.p_value == pytest.approx(0.1181, abs=1e-4)
    # The 20 % quantile of chi-square with 2 degrees of freedom is -2 ln 0.8.
    assert found.cautious_std == pytest.approx(found.std * math.sqrt(1 / -math.log(0.8)), rel=1e-3)
    few, many = found.needed(0.1)
    assert few < many


def test_the_cautious_spread_is_exceeded_once_in_five():
    drawn = np.random.default_rng(0).normal(0, 1, (4000, 5))
    cautious = [apart(row.tolist(), [0.0] * 5).cautious_std for row in drawn]
    assert (np.array(cautious) < 1).mean() == pytest.approx(0.2, abs=0.02)


def test_without_a_spread_nothing_is_made_up():
    found = apart([1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    assert (found.interval, found.power(0.1), found.needed(0.1)) == (None, None, None)
    assert found.p_value == 0.25
    assert readings([found]) == [OPEN]
    assert readings([apart([1.0] * 6, [0.0] * 6)]) == [SETTLED]
    assert apart([0.3, 0.4], [0.3, 0.4]).p_value == 1
    with pytest.raises(ValueError, match="two seeds"):
        apart([1.0], [0.0])


def test_readings_share_the_chance_of_error():
    strong, near, weak = (seed_power.Apart(5, 1.0, 1.0, (0.0, 1.0), p) for p in (0.012, 0.03, 0.19))
    assert readings([near]) == [SETTLED]
    assert readings([weak, near, strong]) == [LEANING, LEANING, SETTLED]
    assert readings([seed_power.Apart(5, 1.0, 1.0, None, 0.3)]) == [OPEN]
