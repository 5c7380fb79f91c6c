"""Tasks are drawn by their success so far, as a function of seed and rollouts."""

from collections import Counter

import pytest

from agentgyms.core.tasks import Task, TaskSet
from harness import config as configs
from harness.config.rollout_settings import CurriculumConfig
from harness.preflight.defaults import resolve
from harness.rollouts.task_sampling.curriculum import Curriculum
from harness.training.players.player import Player
from harness.types.errors import ConfigError
from harness.types.rollout import Rollout, Turn
from harness.types.task_draws import TaskSampler

TASKS = TaskSet("train", [Task(f"task-{i:02}", f"family-{i % 4}") for i in range(20)])


def rollouts(task_id, successes, family="", **fields):
    turn = object.__new__(Turn)
    return [
        Rollout(task_id, family, 0, i, 0, turns=[turn], success=success, **fields)
        for i, success in enumerate(successes)
    ]


def course(**settings):
    return Curriculum(TASKS, 3, CurriculumConfig(by="task", **settings))


def ids(draws):
    return [draw.task_id for draw in draws]


def test_before_anything_was_measured_tasks_are_drawn_as_without_a_curriculum():
    plain, own = TaskSampler(TASKS, 3), course(shares=[0.0, 0.0])
    for step in range(12):
        assert own.draw(step, 7) == plain.draw(step, 7)
    assert own.end_step() == {
        "rollout/easy_tasks": 0.0,
        "rollout/hard_tasks": 0.0,
        "rollout/left_out_tasks": 0.0,
    }


def test_success_is_that_of_members_averaged_with_earlier_ones():
    own = course()

    def measured():
        own.end_step()
        return own.state_dict()["success"]

    own.record([])
    own.record(rollouts("task-00", [True, False, False, False]))
    assert measured() == {"task-00": 0.25}
    lost = rollouts("task-00", [False], error="gone")
    siblings = rollouts("task-00", [False], parent=0)
    own.record([*rollouts("task-00", [True, True]), *lost, *siblings])
    assert measured() == {"task-00": 0.5 * 0.25 + 0.5 * 1}
    own.record(lost)
    assert measured() == {"task-00": 0.625}


def test_pools_are_those_of_the_thresholds():
    own = course(bounds=[0.25, 0.75])
    for name, successes in {
        "a": [1, 1, 1, 0], "b": [1, 1, 0, 0], "c": [1, 0, 0, 0], "d": [0, 0],
    }.items():  # fmt: skip
        own.record(rollouts(name, [bool(one) for one in successes]))
    assert [own.pool(name) for name in "abcde"] == ["easy", "normal", "hard", "hard", "normal"]


def test_each_pool_has_its_share_of_the_passes():
    own = course(shares=[0.5, 0.25])
    for i in range(20):
        kind = (True, False, None)[i % 3]
        own.record(rollouts(f"task-{i:02}", [True, False] if kind is None else [kind]))
    drawn = Counter()
    for step in range(400):
        drawn.update(ids(own.draw(step, 10)))
    easy, hard, normal = (sum(drawn[f"task-{i:02}"] for i in range(k, 20, 3)) for k in range(3))
    passes = normal / 6
    assert easy / 7 / passes == pytest.approx(0.25, abs=0.03)
    assert hard / 7 / passes == pytest.approx(0.5, abs=0.03)
    assert len(drawn) == 20, "none is lost for ever"
    figures = own.end_step()
    assert (figures["rollout/easy_tasks"], figures["rollout/hard_tasks"]) == (7 / 20, 7 / 20)
    assert 0 < figures["rollout/left_out_tasks"] < 20


def test_where_all_is_easy_something_is_drawn_all_the_same():
    own = course(shares=[0.5, 0.0])
    for task_id in TASKS:
        own.record(rollouts(task_id, [True]))
    assert len(own.draw(0, 3)) == 3


def test_families_are_measured_as_a_whole():
    own = Curriculum(TASKS, 0, CurriculumConfig(by="family", shares=[0.5, 0.0]))
    own.record(rollouts("task-00", [True, True], "family-0"))
    drawn = {task_id for step in range(8) for task_id in ids(own.draw(step, 5))}
    assert drawn == {task.task_id for task in TASKS.part(0, 20) if task.family != "family-0"}
    assert own.end_step()["rollout/easy_tasks"] == 5 / 20


def play(own, first, last):
    drawn = []
    for step in range(first, last):
        for round_index in range(1 + step % 2):
            draws = own.draw(step, 6, round_index)
            for draw in draws:
                own.record(rollouts(draw.task_id, [draw.seed % 5 < 3, draw.seed % 7 < 3]))
            drawn.append(draws)
        own.end_step()
    return drawn


def test_what_is_saved_goes_on_as_if_nothing_had_happened():
    whole, stopped, resumed = course(), course(), course()
    expected = play(whole, 0, 12)
    begun = play(stopped, 0, 5)
    for draw in stopped.draw(5, 4):  # of a step that is given up
        stopped.record(rollouts(draw.task_id, [True]))
    resumed.load_state_dict(stopped.state_dict())
    assert begun + play(resumed, 5, 12) == expected
    assert resumed.state_dict() == whole.state_dict()
    assert expected != [TaskSampler(TASKS, 3).draw(step, 6) for step in range(12)]


def test_groups_that_dynamic_sampling_drops_are_measured_too(policy):
    settings = [
        "method.name='sft'",
        "method.loss={}",
        "method.credit={}",
        "rollout.dynamic_sampling=true",
        "rollout.tasks_per_step=3",
        "rollout.group_size=2",
        "rollout.curriculum.by='task'",
        "agent.max_tokens=100",
    ]
    player = Player(resolve(configs.load("corridor-tiny", settings)), policy, None)
    figures = player.play(0).figures
    assert figures["rollout/success"] == 1, "an expert plays"
    assert (figures["rollout/groups_played"], figures["rollout/groups_dropped"]) == (30, 27)
    assert figures["rollout/easy_tasks"] == 30 / 40
    player.close()


def test_thresholds_that_contradict_each_other_are_refused():
    for wrong, words in (
        (["rollout.curriculum.bounds=[0.9, 0.9]"], "would be hard and easy"),
        (
            [
                "rollout.curriculum.by='task'",
                "rollout.gateway='127.0.0.1:1'",
                "agent.context='transcript'",
            ],
            "rollout.curriculum.by decides which episodes are played",
        ),
    ):
        with pytest.raises(ConfigError, match=words):
            configs.check(configs.load("corridor-tiny", wrong))
