"""Runs that learn from a teacher: the policy comes closer to it, and a resumed run is the same."""

import shutil

import numpy as np
import pytest
import torch
from run_contents import left
from small_training import SMALL, last_checkpoint, lines, run

from harness import config as configs
from harness.model.packing import samples, to_batch
from harness.model.policy import Policy
from harness.training import setup

pytestmark = pytest.mark.slow


def corridor(folder, name, *overrides):
    settings = [f"run.output='{folder}'", f"run.name={name!r}", "eval.every=0", "eval.tasks=1"]
    return configs.load("corridor-tiny", [*settings, *SMALL, *overrides])


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A student that solves the corridor now and then, and a teacher that does each time."""
    folder = tmp_path_factory.mktemp("models")
    return [
        last_checkpoint(
            run(corridor(folder, f"steps-{steps}", "run.steps=0", f"warmstart.steps={steps}"))
        ).folder
        for steps in (24, 120)
    ]


def distill(models, folder, name, *overrides):
    student, teacher = models
    own = ["method.name='distill'", "method.loss={}", f"policy.model='{student}'"]
    own += ["warmstart.episodes=0", f"method.annotators.teacher.model='{teacher}'"]
    return corridor(folder, name, *own, *overrides)


@pytest.fixture(scope="module")
def distilled(models, tmp_path_factory):
    """A run of ten steps in transcripts."""
    more = ["agent.context='transcript'", "run.steps=10", "checkpoint.every=5"]
    more += ["optimizer.learning_rate=5e-3", "rollout.group_size=8"]
    folder = tmp_path_factory.mktemp("distilled")
    return run(distill(models, folder, "run", *more))


def divergence(policy, teacher, rows):
    """Return KL(pi || pi_T) over the whole vocabulary, the mean over the tokens of fixed rows."""
    found = []
    for row in rows:
        batch = to_batch([row], policy.pad_id)
        with torch.no_grad():
            own, other = (
                torch.log_softmax(one.model(input_ids=batch.tokens).logits[0, :-1].double(), -1)
                for one in (policy, teacher)
            )
        kl = (own.exp() * (own - other)).sum(-1)
        found.append(kl[batch.action_mask[0, 1:]].numpy())
    return float(np.concatenate(found).mean())


def test_the_policy_comes_closer_to_its_teacher(models, distilled, tmp_path):
    trainer = setup.start(distill(models, tmp_path, "first", "agent.context='transcript'"))
    rollouts = trainer._player.play(0).rollouts
    trainer.close()
    turns = sum(len(rollout.turns) for rollout in rollouts)
    rows = samples(rollouts, np.zeros(turns), "transcript")
    student, teacher = (Policy.load(str(folder), "cpu") for folder in models)
    before = divergence(student, teacher, rows)
    after = divergence(distilled.policy, teacher, rows)
    assert after < 0.7 * before, "0.34 to 0.50 of it with three seeds"
    told = [line["teacher/kl"] for line in lines(distilled) if "teacher/kl" in line]
    assert len(told) == 10
    assert told[0] == pytest.approx(before, rel=0.5), "a step's figure is an estimate of it"


def test_a_resumed_run_equals_an_uninterrupted_one(distilled, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(distilled.folder.path, part)
    shutil.rmtree(part / "checkpoints/step-000010")
    resumed = setup.resume(part)
    assert resumed.step == 5
    resumed.run()
    assert lines(resumed) == lines(distilled)
    assert left(resumed.folder.path) == left(distilled.folder.path)


def test_a_base_and_the_policy_itself_as_a_teacher(models, tmp_path):
    """GRPO's advantage of an episode, and what the expert's next action makes likelier."""
    teacher = "method.annotators.teacher={model='policy', hint='\\nBest: {best}'}"
    config = distill(
        models, tmp_path, "mixed", teacher, "method.credit={base='grpo', weight=0.1}", "run.steps=2"
    )
    trainer = run(config)
    told = [line for line in lines(trainer) if "update/loss" in line]
    assert all(np.isfinite(line["teacher/kl"]) for line in told)
    assert any(line["update/grad_norm"] > 0 for line in told)
