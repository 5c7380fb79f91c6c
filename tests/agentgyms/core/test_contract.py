"""The public contract tests on the fixture environment, and that they can fail."""

import json
import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from snapshot_damage import DAMAGES, damaged

import agentgyms
from agentgyms import testing
from agentgyms.core.env import Feedback, Outcome, TextEnv
from agentgyms.core.errors import (
    BadOption,
    BadSnapshot,
    GroupMismatch,
    ReplayMismatch,
    UnknownSplit,
    UnknownTask,
)
from agentgyms.core.outcome import MAX_OBSERVATION, cut_text
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.envs.corridor import CorridorEnv

CORRIDOR = "agentgyms/Corridor-v0"


def make(**kwargs):
    return gym.make(CORRIDOR, **kwargs)


def test_corridor_keeps_the_contract():
    testing.check_env(make)
    testing.check_env(lambda: make(oracle=True, split="valid_seen"))
    testing.check_leaks(lambda: make(render_mode="ansi"))
    testing.check_determinism(make)
    testing.check_snapshot(make)
    testing.check_forks(lambda: make(oracle=True), points=100)
    testing.check_group(lambda: agentgyms.make_group(CORRIDOR, 4))
    testing.check_vector(CORRIDOR, num_envs=3)


def test_snapshots_fall_back_to_replay():
    testing.check_snapshot(lambda: ReplayCorridor())
    testing.check_forks(lambda: ReplayCorridor())


class ReplayCorridor(TextEnv):
    """Counts its actions' characters; has no save, so snapshots replay."""

    splits = ("train",)
    default_max_turns = 12

    def load_tasks(self):
        return TaskSet("train", [Task(f"t{i}", "f") for i in range(5)])

    def begin(self, task, rng):
        self.total = int(rng.integers(1000))
        return self._look("")

    def act(self, action):
        if action.strip() not in ("add", "double"):
            return self._look("<invalid>", Feedback.INADMISSIBLE)
        self.total = self.total + 1 if action.strip() == "add" else self.total * 2
        return self._look(action.strip())

    def _look(self, key, feedback=Feedback.OK):
        admissible = ["add", "double"]
        text = f"total {self.total}"
        return Outcome(
            text,
            str(self.total),
            admissible=admissible,
            admissible_complete=True,
            action_key=key,
            feedback=feedback,
        )


def test_replay_notices_another_world():
    env = ReplayCorridor()
    env.reset(seed=1)
    env.step("add")
    snapshot = json.loads(env.snapshot())
    snapshot["actions"] = ["double"]
    with pytest.raises(ReplayMismatch, match="another version"):
        env.restore(json.dumps(snapshot).encode())


def test_snapshots_of_another_environment_or_split_are_refused():
    env = make()
    env.reset(seed=1)
    snapshot = env.unwrapped.snapshot()
    for other in (make(split="valid_seen"), make(max_turns=3)):
        other.reset(seed=1)
        with pytest.raises(BadSnapshot, match="but this is"):
            other.unwrapped.restore(snapshot)
        assert other.step("right")[4]["turn"] == 1
    damaged = json.loads(snapshot)
    damaged["engine"] = [1, 2]
    with pytest.raises(BadSnapshot, match="damaged"):
        env.unwrapped.restore(json.dumps(damaged).encode())


@pytest.mark.parametrize(("path", "value"), DAMAGES, ids=str)
def test_damaged_snapshots_are_refused_and_spare_the_episode(path, value):
    env = make()
    env.reset(seed=1)
    env.step("right")
    with pytest.raises(BadSnapshot, match="damaged"):
        env.unwrapped.restore(damaged(env.unwrapped.snapshot(), path, value))
    assert env.step("right")[4]["turn"] == 2


def test_the_seed_law():
    env, twin = make(), make()
    first = [env.reset(seed=7), env.reset(), env.reset()]
    assert first == [twin.reset(seed=7), twin.reset(), twin.reset()]
    task_ids = {env.reset(seed=seed)[1]["task_id"] for seed in range(60)}
    assert len(task_ids) > 20
    assert env.reset(seed=7) == first[0]


def test_turn_limit_truncates_and_success_terminates():
    env = make(max_turns=3)
    env.reset(seed=0)
    ends = [env.step("left")[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    with pytest.raises(ResetNeeded, match="after the end"):
        env.step("left")
    env = make()
    env.reset(seed=0)
    act = agentgyms.expert(env)
    over = False
    while not over:
        _, reward, over, truncated, info = env.step(act())
    assert (reward, truncated, info["success"], info["score"], info["progress"]) == (
        1,
        False,
        True,
        1,
        1,
    )


def test_feedback_kinds():
    env = make()
    env.reset(options={"task_id": "train/locked-001"})
    results = [env.step(a)[4] for a in ("dance", "open door", "left", " right ")]
    assert [r["feedback"] for r in results] == ["malformed", "inadmissible", "no_effect", "ok"]
    assert [r["action_key"] for r in results] == ["<invalid>", "<invalid>", "left", "right"]
    assert results[1]["feedback_text"] == "cannot open door here"


def test_what_callers_do_wrong_is_said_clearly():
    with pytest.raises(UnknownSplit, match="no split 'tran': expected one of train, valid_seen"):
        make(split="tran")
    for max_turns in (0, True, "3", 2.0):
        with pytest.raises(BadOption, match="max_turns must be a positive integer"):
            make(max_turns=max_turns)
    for oracle in (1, "no", None):
        with pytest.raises(BadOption, match="oracle must be True or False"):
            make(oracle=oracle)
    with pytest.raises(TypeError, match="max_turn"):
        make(max_turn=3)
    env = make()
    with pytest.raises(UnknownTask, match="did you mean train/locked-0"):
        env.reset(options={"task_id": "train/locked-01"})
    with pytest.raises(BadOption, match="unknown reset option 'task'"):
        env.reset(options={"task": "x"})
    with pytest.raises(BadOption, match="unknown reset option 1"):
        env.reset(options={1: 2, "x": 3})
    with pytest.raises(BadOption, match="group_size must be a positive integer"):
        agentgyms.make_group(CORRIDOR, 0)


def test_oracle_appears_only_when_asked_for():
    assert "oracle" not in make().reset(seed=0)[1]
    _, info = make(oracle=True).reset(seed=0)
    assert json.loads(info["oracle"]) == {"best": "right", "optimal_remaining": 4}
    with pytest.raises(BadOption, match="there is no expert 'other': expected one of best"):
        agentgyms.expert(make(oracle=True), "other")(None, info)
    with pytest.raises(BadOption, match="ReplayCorridor has no expert policy"):
        agentgyms.expert(ReplayCorridor())


def test_expert_policies_solve_every_task():
    for split in CorridorEnv.splits:
        env = make(split=split)
        act = agentgyms.expert(env)
        for task_id in env.unwrapped.tasks:
            _, info = env.reset(options={"task_id": task_id})
            while not info["success"]:
                *_, truncated, info = env.step(act())
                assert not truncated


def test_long_observations_are_cut_with_a_mark():
    text = "x" * (MAX_OBSERVATION + 100)
    shown = cut_text(text)
    assert len(shown) <= MAX_OBSERVATION
    assert shown.endswith("characters left out ...]")
    left_out = int(shown.rpartition("cut: ")[2].partition(" ")[0])
    assert shown.startswith("x" * (len(text) - left_out))
    assert cut_text("short") == "short"


def test_a_group_notices_members_that_differ():
    group = agentgyms.make_group(CORRIDOR, 2)
    group.envs[1] = type(
        "Other", (CorridorEnv,), {"restore": lambda self, s: make().reset(seed=3)}
    )()
    with pytest.raises(GroupMismatch, match="member 1 has state_key"):
        group.reset(seed=1)


class Broken(CorridorEnv):
    """Breaks one clause of the contract."""

    breaks = ""

    def begin(self, task, rng):
        self.salt = np.random.default_rng().integers(10**9)
        return super().begin(task, rng)

    def _outcome(self, text, *args, **kwargs):
        outcome = super()._outcome(text, *args, **kwargs)
        changes = {
            "determinism": {"observation": f"{text} {self.salt}" if self.breaks else text},
            "state_key": {"state_key": ""},
            "progress": {"progress": 2.0},
            "metrics": {"metrics": {"steps": 3}},
            "score": {"score": math.nan},
            "atom": {"atoms": {"door": 2.0}},
            "atom's name": {"atoms": {"": True}},
            "solved": {"atoms": {"door": False}},
            "names": {"atoms": {f"door {self._position}": True}},
        }
        return outcome._replace(**changes.get(self.breaks, {}))


@pytest.mark.parametrize(
    ("breaks", "check"),
    [
        ("determinism", testing.check_determinism),
        ("state_key", testing.check_env),
        ("progress", testing.check_env),
        ("metrics", testing.check_env),
        ("score", testing.check_env),
        ("atom", testing.check_env),
        ("atom's name", testing.check_env),
        ("solved", testing.check_env),
        ("names", testing.check_env),
    ],
)
def test_the_contract_tests_can_fail(breaks, check):
    broken = type("Broken", (Broken,), {"breaks": breaks})
    with pytest.raises(AssertionError):
        check(lambda: broken())


def test_the_test_of_leaks_can_fail():
    class Telling(CorridorEnv):
        """A corridor that tells its goal's atoms."""

        def _info(self, outcome, observation, turn):
            info = super()._info(outcome, observation, turn)
            return info | {"feedback_text": " ".join(info["atoms"])}

    with pytest.raises(AssertionError, match="atoms are in info"):
        testing.check_leaks(lambda: Telling())


def test_the_snapshot_test_can_fail():
    class Forgetful(CorridorEnv):
        def load(self, task, state):
            super().load(task, [*state[:2], 0, False, False])

    with pytest.raises(AssertionError, match=r"snapshot|future"):
        testing.check_snapshot(lambda: Forgetful())


def test_the_test_of_forks_can_fail():
    class Slower(CorridorEnv):
        """A corridor whose forks are in another state."""

        def fork(self):
            twin = super().fork()
            twin.reset()
            return twin

    with pytest.raises(AssertionError, match=r"seed \d+: a fork before turn \d+ and its original"):
        testing.check_forks(lambda: Slower())


def test_members_of_a_group_step_on_their_own():
    with agentgyms.make_group(CORRIDOR, 2) as group:
        group.reset(seed=3)
        results = group.step(["right", None])
        assert results[1] is None
        assert results[0][4]["turn"] == 1
        with pytest.raises(BadOption, match="needs as many actions"):
            group.step(["right"])


def test_a_reset_that_is_refused_loses_nothing():
    env = make()
    env.reset(seed=1)
    env.step("right")
    for options in ({"task_id": "no such task"}, {"task": "x"}):
        with pytest.raises(ValueError, match="no task|unknown reset option"):
            env.reset(seed=3, options=options)
    assert env.step("right")[4]["turn"] == 2
    assert json.loads(env.unwrapped.snapshot())["actions"] == ["right", "right"]


def test_a_first_reset_that_is_refused_breaks_nothing():
    env = make()
    with pytest.raises(UnknownTask):
        env.reset(options={"task_id": "typo"})
    assert env.reset(seed=0)[1]["turn"] == 0
    assert env.step("look")[4]["turn"] == 1


@pytest.mark.parametrize("missing", ["load_tasks", "begin", "act"])
def test_a_class_without_one_of_the_three_methods_cannot_be_made(missing):
    methods = {name: vars(ReplayCorridor)[name] for name in {"load_tasks", "begin", "act"}}
    del methods[missing]
    with pytest.raises(TypeError, match=missing):
        type("Unfinished", (TextEnv,), methods)()


def test_a_split_without_tasks_is_told():
    class Empty(ReplayCorridor):
        def load_tasks(self):
            return TaskSet("train", [])

    for options in (None, {"task_id": "t0"}):
        with pytest.raises(BadOption, match="split 'train' has no task with these arguments"):
            Empty().reset(seed=0, options=options)


def test_of_an_endless_action_the_beginning_is_kept():
    env = make()
    env.reset(seed=0)
    info = env.step("x" * 3_000_000)[4]
    assert (info["turn"], info["feedback"]) == (1, "malformed")
    assert len(env.unwrapped.snapshot()) < 20_000


def test_an_environment_without_one_of_the_three_methods_is_refused():
    class Unfinished(TextEnv):
        def load_tasks(self):
            return TaskSet("train", [])

    with pytest.raises(TypeError, match="Unfinished has no method begin and no method act"):
        Unfinished()


def test_an_environment_needs_one_import_line():
    names = ("TextEnv", "Outcome", "Feedback", "Task", "TaskSet")
    expected = (TextEnv, Outcome, Feedback, Task, TaskSet)
    assert tuple(getattr(agentgyms, name) for name in names) == expected
    with pytest.raises(AttributeError, match="has no attribute 'TextEnvironment'"):
        agentgyms.TextEnvironment  # noqa: B018


class Narrow(CorridorEnv):
    """Takes no arguments but its own."""

    def __init__(self, *, length: int = 3):
        super().__init__()
        self.length = length


class Wide(CorridorEnv):
    """Passes on what it does not know; a mistake of its own is a TypeError too."""

    def __init__(self, *, broken: bool = False, **common):
        super().__init__(**common)
        if broken:
            len(3)


@pytest.mark.parametrize(
    ("env_class", "kwargs", "unknown"),
    [
        (Narrow, {"length": 4, "split": "train"}, "split"),
        (Wide, {"split": "train", "lenght": 4}, "lenght"),
        (lambda size=1: CorridorEnv(), {"size": 2, "color": "red"}, "color"),
    ],
)
def test_a_group_names_the_argument_that_its_environment_does_not_take(env_class, kwargs, unknown):
    gym.register("test/Arguments-v0", env_class, disable_env_checker=True)
    try:
        with pytest.raises(BadOption, match=f"takes no argument '{unknown}': leave it out"):
            agentgyms.make_group("test/Arguments-v0", 2, **kwargs)
    finally:
        del gym.registry["test/Arguments-v0"]


def test_other_type_errors_of_an_environment_are_not_hidden():
    gym.register("test/Arguments-v0", Wide, disable_env_checker=True)
    try:
        with pytest.raises(TypeError, match="has no len"):
            agentgyms.make_group("test/Arguments-v0", 2, broken=True)
    finally:
        del gym.registry["test/Arguments-v0"]
