"""Training a tiny Qwen2.5-VL end to end, in an environment whose text does not tell what to do."""

import asyncio

import pytest
import torch
from function_actor import FunctionActor
from lamp_env import LAMPS, picture
from small_training import lines, run

from harness import config as configs
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.model.policy import Policy
from harness.preflight import checks
from harness.prompts import load
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.runs import checkpoints
from harness.training import setup
from harness.types.errors import ConfigError
from harness.types.messages import shared_image
from harness.types.task_draws import TaskDraw

SEEING = [
    f"env.id={LAMPS!r}",
    "policy.model='tiny-vl'",
    "policy.tiny.layers=2",
    "policy.tiny.hidden=64",
    "policy.tiny.heads=4",
    "policy.tiny.feed_forward=64",
    "policy.tiny.vocabulary=300",
    "agent.style='look'",
    "agent.window=0",
    "agent.max_tokens=4",
    "warmstart.episodes=24",
    "warmstart.steps=40",
    "warmstart.batch_size=16",
    "warmstart.noise=0.2",
    "run.threads=1",
    "run.steps=4",
    "checkpoint.every=2",
    "optimizer.learning_rate=1e-3",
    "optimizer.mini_batches=1",
]


def seeing(tmp_path, name, *overrides):
    settings = [f"run.output='{tmp_path}'", f"run.name={name!r}", *SEEING, *overrides]
    return configs.load("corridor-tiny", settings)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Four uninterrupted steps after a short warm start."""
    return run(seeing(tmp_path_factory.mktemp("seeing"), "whole", "warmstart.steps=12"))


def weights(trainer, step):
    found = checkpoints.find_all(trainer.folder.path)
    (folder,) = (c.folder for c in found if c.step == step)
    return dict(Policy.load(str(folder), "cpu").model.named_parameters())


def test_training_steps_change_text_and_vision_weights(whole):
    before, after = weights(whole, 2), weights(whole, 4)
    unchanged = [name for name, value in before.items() if torch.equal(value, after[name])]
    assert not unchanged
    steps = [record for record in lines(whole) if "update/loss" in record]
    assert [record["step"] for record in steps] == [1, 2, 3, 4]
    assert all(record["update/grad_norm"] > 0 for record in steps)
    assert all(abs(record["update/kl_old"]) < 1e-5 for record in steps), "one update per step"


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(whole, tmp_path):
    path = run(seeing(tmp_path, "half", "warmstart.steps=12", "run.steps=2")).folder.path
    resumed = setup.resume(path)
    assert resumed.policy.vision is not None
    object.__setattr__(resumed.config.run, "steps", 4)
    resumed.run()
    ours = [r for r in lines(resumed) if "update/loss" in r]
    theirs = [r for r in lines(whole) if "update/loss" in r]
    assert ours == theirs
    for name, value in weights(whole, 4).items():
        assert torch.equal(value, weights(resumed, 4)[name]), name


@pytest.mark.slow
def test_the_warm_start_learns_what_only_the_image_tells(tmp_path):
    """Three right sides in four turns: blind guesses win 5 of 16 episodes."""
    trainer = run(seeing(tmp_path, "warm", "run.steps=0", "eval.temperature=0"))
    (evaluation,) = trainer.folder.evaluations()
    assert evaluation["success"] == 1.0


@pytest.mark.slow
def test_rl_learns_from_what_only_the_image_tells(tmp_path):
    overrides = [
        "warmstart.steps=12",
        "run.steps=20",
        "eval.every=0",
        "checkpoint.every=20",
        "rollout.tasks_per_step=8",
        "method.reward_scale=2.0",
    ]
    trainer = run(seeing(tmp_path, "learns", *overrides))
    rates = [r["rollout/success"] for r in lines(trainer) if "rollout/success" in r]
    assert sum(rates[:3]) / 3 < 0.6
    assert sum(rates[-3:]) / 3 > 0.75


def play(style="look", says="left", actor=None, size=1):
    style = load(style, LAMPS)
    actor = actor or Agent(ScriptedCompleter(says), style, Sampling(), 2)
    pool = EnvPool(LAMPS, size, 8, oracle=True)
    rollouts = asyncio.run(collect(pool, [TaskDraw("train/00", 3)], actor, seed=0))
    pool.close()
    return rollouts


def test_turns_keep_the_image_they_acted_on_and_groups_share_it():
    asked = []

    def says(messages):
        asked.append(messages[0]["content"])
        return "left"

    first, second = play(says=says, size=2)
    for turn in first.turns:
        assert turn.observation == turn.next_observation == "A lamp shines."
        side = "left" if turn.feedback == "ok" else "right"
        assert turn.image is shared_image(picture(side))
    assert first.turns[0].image is second.turns[0].image
    content = asked[-1]
    assert content[0] == {"type": "image", "image": first.turns[-1].image}
    assert content[1]["text"] == "touch the lamps | lamp shines. > left > left >"
    assert len(content) == 2


def test_a_text_style_leaves_the_image_out():
    asked = []
    play("compact", lambda messages: asked.append(messages[0]["content"]) or "left")
    assert asked[0] == "touch the lamps | lamp shines. | >"


def test_a_broken_format_is_malformed_whatever_came_of_the_action():
    broken, kept = "<action>left</action>", "<think>red</think><action>left</action>"
    for text, broke in ((broken, True), (kept, False)):
        (rollout,) = play("think", lambda _, text=text: text)
        assert {turn.action for turn in rollout.turns} == {"left"}
        assert {turn.action_key for turn in rollout.turns} == {"left"}
        assert [turn.feedback == "malformed" for turn in rollout.turns] == [broke] * 4
    (told,) = play(actor=FunctionActor(lambda view, seed: "left"))
    assert "malformed" not in {turn.feedback for turn in told.turns}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["policy.model='tiny'"], "'tiny' reads only, but the prompt style default/look shows an"),
        (["env.id='agentgyms/Corridor-v0'"], "Corridor-v0 observes text alone"),
        (["policy.tiny.heads=16"], r"hidden must be 8, 12, 16... times policy.tiny.heads \(16\)"),
        (["policy.tiny.hidden=40"], "in a tiny vision-language model, got 40"),
        (["warmstart.episodes=0"], "a tiny model needs warmstart.episodes"),
    ],
)
def test_what_cannot_see_is_refused_before_the_run(tmp_path, overrides, message):
    with pytest.raises(ConfigError, match=message):
        checks.check(seeing(tmp_path, "refused", *overrides))


def test_a_model_in_a_folder_is_asked_what_it_is(tmp_path, policy, whole):
    policy.save(tmp_path / "reads")
    overrides = [f"policy.model='{tmp_path / 'reads'}'", "warmstart.episodes=0"]
    config = seeing(tmp_path, "folder", *overrides)
    with pytest.raises(ConfigError, match="reads only"):
        checks.check(config)
    with pytest.raises(ConfigError, match="reads only"):
        setup._load(config.policy.model, config)
    sees = checkpoints.find_all(whole.folder.path)[-1].folder
    checks.check(seeing(tmp_path, "folder", f"policy.model='{sees}'", "warmstart.episodes=0"))
    blindfold = [f"policy.model='{tmp_path / 'reads'}'", "agent.style='compact'"]
    checks.check(seeing(tmp_path, "folder", *blindfold, "warmstart.episodes=0"))


@pytest.mark.slow
def test_a_model_that_sees_plays_environments_of_text(tmp_path):
    overrides = ["env.id='agentgyms/Corridor-v0'", "agent.style='compact'", "run.steps=1"]
    trainer = run(seeing(tmp_path, "reads", *overrides))
    assert trainer.policy.vision is not None
    assert lines(trainer)[-1]["step"] == 1


@pytest.mark.slow
def test_gradient_checkpointing_changes_no_number(whole, tmp_path):
    start = checkpoints.find_all(whole.folder.path)[-1].folder
    overrides = [f"policy.model='{start}'", "warmstart.episodes=0", "run.steps=1"]
    first = run(seeing(tmp_path, "with", *overrides, "policy.gradient_checkpointing=true"))
    second = run(seeing(tmp_path, "without", *overrides))
    assert first.policy.model.base_model.visual.blocks[0].gradient_checkpointing
    assert lines(first) == lines(second)


@pytest.mark.slow
def test_the_recipe_of_visual_sokoban_takes_its_steps(tmp_path):
    settings = [f"run.output='{tmp_path}'", "run.name='sokoban'", "run.threads=1"]
    trainer = run(configs.load("visual-sokoban-tiny", settings))
    steps = [record for record in lines(trainer) if "update/loss" in record]
    assert [record["step"] for record in steps] == [1, 2]
    assert all(record["update/grad_norm"] > 0 for record in steps)
    assert steps[0]["rollout/prompt_tokens"] > 36, "a token for each cell of the picture"
