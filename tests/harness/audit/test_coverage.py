"""The intervals of few tasks hold the truth as often as they say, of random credit and beyond."""

import functools
import math

import numpy as np
import pytest

from benchmarks.studies.audit_coverage import METHODS, covered, drawn
from harness.audit import agreement, sets, truth_sets
from harness.audit.intervals import Kind, figures, samples

CASES = 150


@functools.cache
def held_by(tasks):
    """Which intervals of how many tasks hold the true value, by kind and title."""
    return covered(truth_sets.read(sets.find("searchqa-v1")).truth, tasks, CASES, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [4, 8, 16])
def test_intervals_of_random_credit_hold_zero(tasks):
    found = held_by(tasks)
    titles = ("spearman", "within_rollouts", "within_states", "gradient", "sign")
    for title in titles:
        for kind in ("random", "difference of random"):
            held = found[kind, title]
            assert len(held) > CASES / 2
            apart = abs(held.mean() - 0.95)
            assert apart < 3 * math.sqrt(0.95 * 0.05 / len(held)), (kind, title, held.mean())


@pytest.mark.slow
@pytest.mark.parametrize("tasks", [4, 8, 16])
def test_intervals_of_methods_and_of_their_difference_hold_the_true_value(tasks):
    found = held_by(tasks)
    for title in agreement.NAMES:
        for kind in (*METHODS, "difference of methods"):
            held = found[kind, title]
            assert len(held) > CASES / 3, "with 4 tasks precision often has no evidence"
            lowest = 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(held))
            assert held.mean() > lowest, (kind, title, held.mean())


def test_the_interval_of_a_mean_is_students():
    """Of 1, 2, 3, 6 of four tasks: 3 +- 3.182 * 2.16 / 2, wider by the root of 4 / 3."""
    values = [1.0, 2.0, 3.0, 6.0]

    def mean(weights):
        return float((weights * values).sum() / weights.sum())

    one = figures(samples(4), {"a": mean, "b": lambda w: mean(w) / 2}, Kind.NUMBER, 4)
    half = 3.182446 * math.sqrt(14 / 3) / 2 * math.sqrt(4 / 3)
    assert one["a"].interval == pytest.approx((3 - half, 3 + half))
    assert one["b"].over_first == -1.5
    assert one["b"].over_first_interval == pytest.approx((-1.5 - half / 2, -1.5 + half / 2))
    shares = figures(samples(4), {"a": lambda w: mean(w) / 10}, Kind.SHARE, 4)["a"].interval
    assert 0 < shares[0] < 0.3 < shares[1] < 1


def test_a_figure_that_one_task_rules_has_fewer_degrees_of_freedom():
    """Of one 1 and seven 0 the kurtosis is 43 / 7: 16 / (36 / 7) = 3.11 degrees instead of 7."""

    def mean(weights):
        return float(weights[0] / weights.sum())

    low, high = figures(samples(8), {"a": mean}, Kind.NUMBER, 8)["a"].interval
    quantile = (6 * 3.182446 + 2.776445) / 7
    assert (high - low) / 2 == pytest.approx(quantile * math.sqrt(7 / 8) / 7)


def test_a_cosine_is_without_its_bias_and_has_a_third_of_the_degrees_of_freedom():
    """Fisher's z is 1, also without each of seven tasks, and 0.2 without the eighth."""
    z = iter([1.0] * 8 + [0.2])
    one = figures(samples(8), {"a": lambda _: math.tanh(next(z))}, Kind.COSINE, 8)["a"]
    middle = 1 + 7 * (1 - 0.9)
    degrees = 16 / (43 / 7 - 1) / 3
    share = (1 - 1 / degrees) / (1 - 1 / 2)  # of two degrees, the rest of one
    quantile = (1 - share) * 12.706205 + share * 4.302653
    half = quantile * math.sqrt(7 * 0.1**2 + 0.7**2)
    assert one.interval == pytest.approx((math.tanh(middle - half), math.tanh(middle + half)))


def test_an_interval_holds_its_value():
    """Less its bias a cosine may leave the interval of one without error."""
    z = iter([1.0, 0.5, 0.5, 0.5, 0.5])
    low, high = figures(samples(4), {"a": lambda _: math.tanh(next(z))}, Kind.COSINE, 4)[
        "a"
    ].interval
    assert low == pytest.approx(math.tanh(1))
    assert high == pytest.approx(math.tanh(2.5))


def test_two_methods_that_no_task_tells_apart_are_not_known_to_be_equal():
    found = figures(samples(5), {"a": lambda _: 1.0, "b": lambda _: 1.0}, Kind.SHARE, 5)
    assert found["a"].over_first_interval == (0, 0)
    low, high = found["b"].over_first_interval
    assert low == pytest.approx(-high)
    assert high == pytest.approx(1 - found["a"].interval[0])


@pytest.mark.parametrize("title", ["precision", "recall"])
def test_each_sample_of_tasks_takes_its_own_turns_with_the_most_credit(title):
    truth = truth_sets.read(sets.find("searchqa-v1")).truth
    group = truth.turns.group
    credit = truth.advantage + 100.0 * (group < 10)  # these have more credit than all others
    part, rows = drawn(truth, np.arange(10, group.max() + 1))
    statistics = agreement._STATISTICS[title]
    without = statistics(truth, truth.advantage, credit)((np.arange(group.max() + 1) >= 10) * 1.0)
    alone = statistics(part, part.advantage, credit[rows])(np.ones(group.max() - 9))
    assert alone > 0.2
    assert without == pytest.approx(alone, abs=1 / (agreement.MOST * len(rows)))


def test_equal_shares_of_all_tasks_are_no_certainty():
    found = figures(samples(5), {"a": lambda _: 1.0}, Kind.SHARE, 5)["a"]
    assert found.interval[1] == 1
    assert found.interval[0] == pytest.approx(1 / (1 + 2.776445**2 / 5))
    assert found.over_first_interval == (0, 0)


def test_one_task_has_no_interval():
    found = figures(samples(1), {"a": lambda _: 0.5}, Kind.CORRELATION, 1)["a"]
    assert math.isnan(found.interval[0])
    assert found.value == 0.5
