"""Rollouts of the next step are played while the policy learns, in real runs of the corridor."""

import os
import re
import shutil
import signal
import statistics
import sys
import threading
import time
import traceback
from pathlib import Path

import pytest
from small_training import last_checkpoint, lines, run, small

from harness import config as configs
from harness.config import replace
from harness.inference.old_logprobs import recompute_logprobs
from harness.model.policy import Policy
from harness.preflight import checks
from harness.rollouts import rollout_files
from harness.runs import checkpoints, metrics
from harness.training import setup
from harness.types.errors import ConfigError, TrainingError, TrainingStopped

sys.path.append(str(Path(__file__).parents[3] / "benchmarks/studies"))
import overlap
import policy_server

pytestmark = pytest.mark.slow

AHEAD = [
    "rollout.ahead=1",
    "run.steps=3",
    "run.keep_rollouts=1",
    "checkpoint.every=1",
    "checkpoint.keep=4",
    "eval.every=2",
    "eval.tasks=2",
    "rollout.tasks_per_step=3",
    "rollout.group_size=3",
    "optimizer.learning_rate=5e-3",
]
BRANCHES = ["rollout.branch.at='uniform'", "rollout.branch.points=1"]
PARTIAL = [*AHEAD, "rollout.ahead=partial"]


def versions(trainer, step):
    """The versions of all turns that a step, from 0, has learned from."""
    kept = rollout_files.read(trainer.folder.rollouts(step + 1)).rollouts
    return [turn.completion.version for rollout in kept for turn in rollout.turns]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(
        small(
            tmp_path_factory.mktemp("whole"),
            "whole",
            *AHEAD,
            *BRANCHES,
            "rollout.curriculum.by='family'",
        )
    )


def test_each_turn_has_the_version_of_the_step_before(whole):
    assert [set(versions(whole, step)) for step in range(3)] == [{0}, {0}, {1}]
    steps = [one for one in metrics.read(whole.folder.path) if "update/loss" in one]
    assert [one["rollout/staleness_max"] for one in steps] == [0, 1, 1]
    assert [one["rollout/stale_share"] for one in steps] == [0, 1, 1]
    assert all(one["time/generator_idle_s"] >= 0 for one in steps)
    assert all(0 <= one["time/overlap_share"] <= 1 for one in steps)


def test_the_log_probabilities_are_those_of_the_weights_that_sampled(whole):
    kept = rollout_files.read(whole.folder.rollouts(3)).rollouts
    by_step = {one.step: one.folder for one in checkpoints.find_all(whole.folder.path)}
    asked = replace(whole.config.rollout, old_logprobs="recompute")
    config = replace(whole.config, rollout=asked)

    def distance(step):
        policy = Policy.load(str(by_step[step]), "cpu")
        return recompute_logprobs(config, policy, kept).figures["mismatch/difference_max"]

    assert distance(1) < 1e-4 < distance(2)
    assert whole.config.rollout.correction == "clip"


def test_a_killed_run_plays_again_what_was_played_ahead(whole, tmp_path):
    path = tmp_path / "stopped"
    shutil.copytree(whole.folder.path, path, symlinks=True)
    shutil.rmtree(path / "checkpoints" / "step-000003")
    resumed = setup.resume(path)
    assert resumed.step == 2
    resumed.run()
    assert set(versions(resumed, 2)) == {2}, "with the weights of the checkpoint"
    of_steps = [rollout_files.read(one.folder.rollouts(3)).rollouts for one in (whole, resumed)]
    tasks = [
        [(one.task_id, one.seed) for one in played if one.parent is None] for played in of_steps
    ]
    assert tasks[0] == tasks[1], "the curriculum is as it was before they were played"
    assert lines(resumed)[:-2] == lines(whole)[:-2]


def test_an_error_of_the_thread_is_raised_with_its_traceback_and_loses_no_step(tmp_path):
    trainer = setup.start(small(tmp_path, "broken", *AHEAD, "checkpoint.every=9"))
    play = trainer._ahead._player.play

    def failing(step, *more):
        if step == 2:
            raise TrainingError("the environment is gone")
        return play(step, *more)

    trainer._ahead._player.play = failing
    with pytest.raises(TrainingError, match="the environment is gone") as raised:
        trainer.run()
    cause = raised.value.__cause__
    names = [one.name for one in traceback.extract_tb(cause.__traceback__)]
    assert "failing" in names
    assert last_checkpoint(trainer).step == 2, "what was learned is saved"
    assert not [one for one in threading.enumerate() if one.name.startswith("rollouts")]
    resumed = setup.resume(trainer.folder.path)
    resumed.run()
    assert last_checkpoint(resumed).step == 3


@pytest.mark.parametrize("settings", [AHEAD, PARTIAL], ids=["ahead", "partial"])
def test_a_signal_ends_it_after_its_step(tmp_path, settings):
    trainer = setup.start(small(tmp_path, "signalled", *settings))
    update = trainer.learner.update

    def interrupted(*given, **more):
        os.kill(os.getpid(), signal.SIGINT)
        return update(*given, **more)

    trainer.learner.update = interrupted
    with pytest.raises(TrainingStopped):
        trainer.run()
    assert last_checkpoint(trainer).step == 1
    assert not [one for one in threading.enumerate() if one.name.startswith("rollouts")]
    resumed = setup.resume(trainer.folder.path)
    resumed.run()
    ages = [step - version for step in range(3) for version in versions(resumed, step)]
    assert set(ages) == {0, 1}


def test_it_learns(tmp_path):
    settings = ["rollout.ahead=1", "run.steps=6", "eval.tasks=1", "eval.every=6", "run.seed=1"]
    config = configs.load("corridor-tiny-demo", [f"run.output='{tmp_path}'", *settings])
    records = metrics.read(run(config).folder.path)
    found = [one["rollout/success"] for one in records if "rollout/success" in one]
    assert sum(found[-2:]) / 2 > sum(found[:2]) / 2 + 0.1


REFUSED = [
    ("rollout.backend='vllm'", "rollout.backend 'vllm'"),
    ("rollout.gateway='127.0.0.1:0'", "rollout.gateway"),
    ("method.name='sft'", "method.name = 'sft'"),
]


@pytest.mark.parametrize(("setting", "name"), REFUSED)
def test_what_cannot_play_ahead_is_refused_by_its_name(tmp_path, setting, name):
    more = ["agent.context='transcript'", "method.loss={}"]
    with pytest.raises(ConfigError, match=re.escape(name)):
        setup.start(small(tmp_path, "refused", "rollout.ahead=1", setting, *more))


@pytest.mark.parametrize(
    "setting",
    [
        "rollout.dynamic_sampling=true",
        "rollout.enough_members=2",
        "rollout.enough_share=0.5",
        "rollout.curriculum.by='task'",
    ],
)
def test_what_decides_over_a_steps_groups_is_refused_with_partial(tmp_path, setting):
    with pytest.raises(ConfigError, match=re.escape(setting.partition("=")[0])):
        setup.start(small(tmp_path, "refused", *PARTIAL, setting))
    with pytest.raises(ConfigError, match='use rollout.ahead = "partial"'):
        setup.start(small(tmp_path, "refused", "rollout.partial=true"))


def test_several_processes_do_not_play_ahead(tmp_path):
    config = small(tmp_path, "several", "rollout.ahead=1")
    with pytest.raises(ConfigError, match="rollout.ahead is 1 and 2 processes"):
        checks.check_processes(config, 2)


@pytest.fixture(scope="module")
def folder(whole, tmp_path_factory):
    """A policy that a server can have."""
    path = tmp_path_factory.mktemp("policy")
    Policy.load(str(checkpoints.find_all(whole.folder.path)[0].folder), "cpu").save(path)
    return path


def test_episodes_go_on_with_new_weights_of_a_server(folder, tmp_path):
    """Three answers are held back until an update waits for them: each is a second turn."""
    asked, trainers = [], []

    def seconds(seed):
        ahead = trainers[0]._ahead if trainers else None
        if ahead is None or not ahead._stream._begun:
            return 0.0
        asked.append(seed)
        if 18 < len(asked) <= 21:
            while ahead._answers._is_open:
                time.sleep(0.005)
        return 0.0

    with policy_server.serving(Policy.load(str(folder), "cpu"), seconds) as (url, server):
        settings = [
            f"policy.model='{folder}'",
            "warmstart.episodes=0",
            "rollout.backend='server'",
            f"rollout.urls=['{url}']",
        ]
        trainer = setup.start(small(tmp_path, "server", *PARTIAL, *settings))
        trainers.append(trainer)
        trainer.run()
    kept = [rollout_files.read(trainer.folder.rollouts(step + 1)).rollouts for step in range(3)]
    assert [len({one.group for one in played}) for played in kept] == [3, 3, 3]
    own = [[[turn.completion.version for turn in one.turns] for one in played] for played in kept]
    for step, of_step in enumerate(own):
        assert {version for one in of_step for version in one} <= {step - 1, step}
    assert any(len(set(one)) > 1 for of_step in own for one in of_step)
    drawn = [(one.task_id, one.seed) for played in kept for one in played if one.member == 0]
    sampler = trainer._ahead._player._sampler
    expected = [(one.task_id, one.seed) for step in range(3) for one in sampler.draw(step, 3)]
    assert sorted(set(drawn)) == sorted(set(expected)), "no group is lost, none is played twice"
    assert len(server.versions) >= 4


def test_the_benchmark_measures_a_run(folder, tmp_path):
    more = overlap.SETTINGS["ahead = partial"]
    found = overlap.measured(tmp_path, folder, "measured", more, 3, 1e4, 30.0)
    assert found["time/step_s"] >= 30
    assert len(overlap.row_of(found, 60.0)) == 7
    drawn = [overlap.seconds_of(seed) * overlap.RATE for seed in range(4000)]
    assert abs(statistics.median(drawn) / overlap.MEDIAN - 1) < 0.1
    assert max(drawn) == overlap.MOST
