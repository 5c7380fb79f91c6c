"""The recipe `scienceworld-tiny`, cut down to seconds."""

import pytest

from harness import config as configs
from harness.rollouts import rollout_files
from harness.runs import metrics
from harness.training import setup

SMALL = [
    "run.name='run'",
    "run.steps=1",
    "run.threads=1",
    "run.keep_rollouts=1",
    "warmstart.episodes=40",
    "warmstart.steps=30",
    "rollout.tasks_per_step=2",
    "rollout.group_size=4",
    "eval.tasks=2",
    "eval.every=1",
]


@pytest.mark.slow
def test_a_step_of_the_recipe(tmp_path):
    trainer = setup.start(configs.load("scienceworld-tiny", [f"run.output='{tmp_path}'", *SMALL]))
    trainer.run()
    records = metrics.read(tmp_path / "run")
    assert [r["step"] for r in records if "eval/dev/score" in r] == [0, 1]
    rollouts = rollout_files.read(trainer.folder.rollouts(1)).rollouts
    assert len(rollouts) == 8
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    assert any(turn.action.startswith("focus on ") for turn in turns), "it has the form"
    rewards = [sum(turn.reward for turn in rollout.turns) for rollout in rollouts]
    assert len(set(rewards)) > 1, "the group gets unequal rewards: there is something to learn"
    assert [r["update/loss"] for r in records if "update/loss" in r] != []
