"""One estimate of the time that is left, for warm start, training and evaluations together."""

import pytest

from harness import config as configs
from harness.preflight import expected_time
from harness.preflight.defaults import resolve
from harness.runs.progress import EVALUATE, EXPERT, TRAIN, WARM_START, TimeLeft, Work, duration

WORK = {EXPERT: Work(10, 1.0), WARM_START: Work(20, 2.0), TRAIN: Work(5, 8.0)}


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_expected_seconds_hold_until_there_are_measured_ones():
    clock = Clock()
    left = TimeLeft(WORK, is_expected=True, clock=clock)
    assert left.seconds() == 10 + 40 + 40
    clock.now += 4  # twice as long as expected
    left.spent(WARM_START)
    assert left.seconds() == pytest.approx(10 * 2 + 19 * 4 + 5 * 16)
    clock.now += 30
    left.start()  # something else took these 30 s
    clock.now += 6
    left.spent(TRAIN)
    pace = (4 + 6) / (2 + 8)
    assert left.seconds() == pytest.approx(10 * pace + 19 * 4 + 4 * 6)
    assert left.text() == "about 2 min left"


def test_nothing_is_said_before_an_unknown_model_has_worked():
    clock = Clock()
    left = TimeLeft(WORK, clock=clock)
    clock.now += 1
    left.spent(EXPERT)
    assert (left.seconds(), left.text()) == (None, "")
    clock.now += 2
    left.spent(WARM_START)
    assert left.seconds() == pytest.approx(9 + 19 * 2 + 5 * 8)


def test_work_that_is_done_leaves_nothing():
    left = TimeLeft({TRAIN: Work(1, 1.0)}, clock=Clock())
    left.spent(TRAIN)
    left.spent(TRAIN)  # more than was planned
    assert left.seconds() == 0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "5 s"), (33, "35 s"), (56, "1 min"), (400, "7 min"), (5400, "1.5 h"), (86400, "24.0 h")],
)
def test_durations_are_rounded(seconds, said):
    assert duration(seconds) == said


def test_the_work_of_a_run_counts_every_evaluation():
    config = resolve(configs.load("corridor-tiny", ["eval.final_splits=['valid_unseen']"]))
    sizes = {"valid_seen": 8, "valid_unseen": 12}
    work = expected_time.rest(config, 0, sizes)
    assert (work[TRAIN].pieces, work[EXPERT].pieces, work[WARM_START].pieces) == (4, 40, 40)
    assert work[EVALUATE].pieces == (8 + 12) + 8 + (8 + 12)
    after = expected_time.rest(config, 2, sizes)
    assert (after[TRAIN].pieces, after[EVALUATE].pieces) == (2, 8 + 12)
    assert WARM_START not in after
