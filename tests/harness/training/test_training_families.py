"""Tiny models of every family train, go on where they stopped, and load in transformers."""

import shutil

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

from harness import config as configs
from harness.model.policy import Policy
from harness.training import setup
from tests.harness.small_training import last_checkpoint, lines
from tests.harness.tiny_families import FAMILIES, SEEING, make_policy, make_seeing

SHORT = [
    "warmstart.episodes=10",
    "warmstart.steps=25",
    "warmstart.learning_rate=5e-3",
    "rollout.tasks_per_step=2",
    "rollout.group_size=3",
    "agent.max_tokens=6",
    "eval.tasks=2",
    "run.threads=1",
]


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / request.param
    make_policy(request.param).save(folder)
    return folder


def recipe(name, model, tmp_path, *overrides):
    own = [f"policy.model='{model}'", f"run.output='{tmp_path}'"]
    return configs.load(name, [*own, *SHORT, *overrides])


@pytest.fixture(scope="module", params=SEEING)
def seeing(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeing") / request.param
    make_seeing(request.param, max_length=1024).save(folder)
    return folder


@pytest.mark.slow
def test_ten_steps_of_gigpo_and_their_resume(model, tmp_path):
    settings = ["agent.context='transcript'", "env.max_turns=4", "eval.every=5"]
    config = recipe(
        "corridor-tiny", model, tmp_path, *settings, "run.steps=10", "checkpoint.every=5",
        "checkpoint.keep=2",
    )  # fmt: skip
    trains_and_resumes(config, tmp_path, AutoModelForCausalLM)


@pytest.mark.slow
def test_ten_steps_on_pictures_and_their_resume(seeing, tmp_path):
    context = "transcript" if seeing.name == "qwen3_vl" else "window"
    config = recipe(
        "visual-sokoban-tiny", seeing, tmp_path, f"agent.context={context!r}", "env.max_turns=3",
        "run.steps=10", "eval.every=5", "checkpoint.every=5", "checkpoint.keep=2",
        "warmstart.episodes=6", "warmstart.steps=5",
    )  # fmt: skip
    trains_and_resumes(config, tmp_path, AutoModelForImageTextToText)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"), [("corridor-tiny", 10), ("alfworld-tiny", 1)], ids=["corridor", "alfworld"]
)
def test_models_that_see_train_on_texts(seeing, name, steps, tmp_path):
    config = recipe(
        name, seeing, tmp_path, f"run.steps={steps}", "env.max_turns=3", "eval.every=0",
        "warmstart.episodes=6", "warmstart.steps=5",
    )  # fmt: skip
    trainer = setup.start(config)
    trainer.run()
    assert trainer.step == steps
    assert len([one for one in lines(trainer) if "update/loss" in one]) == steps


def trains_and_resumes(config, tmp_path, loader):
    whole = setup.start(config)
    before = [p.detach().clone() for p in whole.policy.model.parameters()]
    whole.run()
    assert whole.step == 10
    after = list(whole.policy.model.parameters())
    assert not all(map(torch.equal, before, after))

    path = tmp_path / "stopped"
    shutil.copytree(whole.folder.path, path, symlinks=True)
    shutil.rmtree(path / "checkpoints" / "step-000010")
    resumed = setup.resume(path)
    assert resumed.step == 5
    resumed.run()
    assert all(map(torch.equal, resumed.policy.model.parameters(), after))
    assert lines(resumed) == lines(whole)

    loaded = loader.from_pretrained(last_checkpoint(whole).folder)
    assert all(map(torch.equal, loaded.parameters(), after))


@pytest.mark.slow
def test_a_step_on_alfworld(model, tmp_path):
    config = recipe(
        "alfworld-tiny", model, tmp_path, "run.steps=1", "env.max_turns=3", "eval.every=0",
        "policy.lora.rank=4",
    )  # fmt: skip
    trainer = setup.start(config)
    trainer.run()
    assert trainer.step == 1
    assert any("update/loss" in line for line in lines(trainer))


@pytest.mark.slow
def test_adapters_on_a_model_that_sees_and_rows_without_padding(seeing, tmp_path):
    config = recipe(
        "visual-sokoban-tiny", seeing, tmp_path, "run.steps=1", "env.max_turns=3", "eval.every=0",
        "policy.lora.rank=4", "optimizer.packing='packed'", "warmstart.episodes=6",
        "warmstart.steps=5",
    )  # fmt: skip
    trainer = setup.start(config)
    trainer.run()
    again = Policy.load(str(last_checkpoint(trainer).folder), "cpu")
    adapters = dict(again.model.named_parameters())
    for name, trained in trainer.policy.model.named_parameters():
        assert torch.equal(adapters[name], trained), name
