"""Intervals and tests, against numbers worked by hand and slower ways."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from harness.evaluation.statistics import (
    bootstrap,
    mcnemar,
    mean_and_std,
    paired_bootstrap,
    wilson,
)


def test_wilson_solves_its_quadratic():
    # Wilson's bounds are the p with (mean - p)^2 = z^2 p (1 - p) / n.
    for mean, count in ((0.8, 10), (0.37, 134), (0.0, 5), (1.0, 140), (0.5, 1)):
        for bound in wilson(mean, count):
            left = (mean - bound) ** 2
            assert left == pytest.approx(1.959964**2 * bound * (1 - bound) / count, abs=1e-6)
    assert wilson(1.0, 140)[0] == pytest.approx(0.97329, abs=1e-5)  # 140 / (140 + 3.8415)


def test_mean_and_deviation_over_seeds():
    # 80, 90, 91: mean 87; squares 49 + 9 + 16 = 74; 74 / 2 = 37.
    assert mean_and_std([80, 90, 91]) == (87, pytest.approx(math.sqrt(37)))
    assert mean_and_std([0.5]) == (0.5, None)
    assert mean_and_std([]) == (None, None)
    assert mean_and_std([0.7, 0.7, 0.7])[1] == pytest.approx(0, abs=1e-15)


def test_the_bootstrap_of_three_tasks_is_that_of_all_27_samples():
    # Tasks with means 0, 1/2 and 1 of two seeds each: 27 equally likely samples of three tasks.
    values, tasks = [0, 0, 1, 0, 1, 1], ["a", "a", "b", "b", "c", "c"]
    means = sorted(sum(s) / 6 for s in itertools.product((0, 1, 2), repeat=3))
    low, high = bootstrap(values, tasks)
    # The least and the greatest mean have probability 1/27 each, more than 0.025.
    assert (low, high) == (means[0], means[-1]) == (0, 1)


def test_the_bootstrap_agrees_with_drawing_tasks_one_by_one():
    rng = np.random.default_rng(5)
    tasks = [f"t{i}" for i in range(60) for _ in range(3)]
    ease = np.repeat(rng.random(60), 3)
    values = [float(rng.random() < e) for e in ease]
    by_task = np.array(values).reshape(60, 3)
    drawn = [by_task[rng.integers(60, size=60)].mean() for _ in range(4000)]
    low, high = bootstrap(values, tasks)
    assert low == pytest.approx(np.quantile(drawn, 0.025), abs=0.012)
    assert high == pytest.approx(np.quantile(drawn, 0.975), abs=0.012)
    # Seeds of one task are alike, so 180 episodes tell less than 180 tasks would.
    alone = bootstrap(values, list(range(180)))
    assert high - low > 1.2 * (alone[1] - alone[0])


def test_the_bootstrap_weighs_tasks_by_how_often_they_were_played():
    # One task alone with four values, and one with one: samples have means 1, 1/5 or 0.
    low, high = bootstrap([0, 0, 0, 0, 1], ["a", "a", "a", "a", "b"])
    assert (low, high) == (0, 1)
    assert bootstrap([0.25, 0.75], ["a", "a"]) == (0.5, 0.5)


def test_the_bootstrap_is_a_function_of_its_arguments():
    values, tasks = [i % 3 / 2 for i in range(50)], [i // 2 for i in range(50)]
    assert bootstrap(values, tasks) == bootstrap(values, tasks)
    turned = bootstrap(values[::-1], tasks[::-1])
    assert turned == pytest.approx(bootstrap(values, tasks))
    uneven = [math.sqrt(i) for i in range(50)]
    assert bootstrap(uneven, tasks, seed=1) != bootstrap(uneven, tasks, seed=2)
    assert all(math.isnan(end) for end in bootstrap([], []))
    with pytest.raises(ValueError, match="2 values need as many tasks, got 1"):
        bootstrap([0, 1], ["a"])


def test_many_tasks_are_drawn_in_blocks():
    values = list(np.random.default_rng(0).random(900))
    low, high = bootstrap(values, list(range(900)), draws=9000)
    error = np.std(values) / 30
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.05)


def test_the_bootstrap_of_differences_keeps_pairs_together():
    first = [1, 1, 0, 1, 1, 0, 1, 1]
    second = [1, 0, 0, 1, 0, 0, 1, 0]
    low, high = paired_bootstrap(first, second, range(8))
    # Three of eight tasks differ, all one way: no sample of pairs has a negative difference.
    assert 0 <= low < 3 / 8 < high
    assert paired_bootstrap(second, first, range(8)) == pytest.approx((-high, -low), abs=1e-12)
    with pytest.raises(ValueError, match="longer"):
        paired_bootstrap([1], [1, 0], ["a"])


def test_mcnemar_is_a_sign_test_of_the_pairs_that_differ():
    assert mcnemar(0, 0) == 1
    assert mcnemar(1, 0) == 1  # 2 * 1/2
    assert mcnemar(6, 0) == 2 / 64
    assert mcnemar(9, 1) == pytest.approx(22 / 1024)  # 2 (1 + 10) / 2^10
    assert mcnemar(5, 5) == 1
    assert mcnemar(3, 12) == mcnemar(12, 3)
    assert 0 < mcnemar(700, 600) < 0.01


@pytest.mark.parametrize(("wins", "losses"), [(2, 7), (4, 4), (0, 9)])
def test_mcnemar_counts_all_ways_to_toss_the_coins(wins, losses):
    count, least = wins + losses, abs(wins - losses)
    extreme = sum(
        abs(2 * sum(toss) - count) >= least for toss in itertools.product((0, 1), repeat=count)
    )
    assert mcnemar(wins, losses) == float(Fraction(extreme, 2**count))
