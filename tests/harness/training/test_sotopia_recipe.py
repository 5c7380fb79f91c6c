"""The recipes for SOTOPIA: the tiny one cut down to seconds, and the settings of the paper's."""

import asyncio
import os
from pathlib import Path

import pytest

from harness import config as configs
from harness.model import tiny
from harness.preflight.defaults import annotator_settings, resolve
from harness.reporting.results.loading import load_all
from harness.reporting.tables import formats, rows
from harness.rollouts import rollout_files
from harness.rollouts.build import make_eval_pool, make_pool, make_prompt_agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator
from harness.rollouts.self_play import PARTNER
from harness.runs import metrics
from harness.training import setup
from harness.types.task_draws import TaskDraw

RECIPE = "sotopia-oprl-tiny"
SMALL = [
    "policy.tiny.layers=1",
    "policy.tiny.hidden=32",
    "policy.tiny.heads=2",
    "policy.tiny.feed_forward=32",
    "policy.tiny.vocabulary=4000",
    "agent.max_tokens=8",
    "env.max_turns=3",
    "warmstart.episodes=4",
    "warmstart.steps=4",
    "warmstart.batch_size=4",
    "rollout.tasks_per_step=2",
    "rollout.group_size=2",
    "run.steps=1",
    "run.threads=1",
    "run.keep_rollouts=1",
    "eval.tasks=3",
]


def load(folder, *settings):
    return configs.load(RECIPE, [f"run.output='{folder}'", "run.name='run'", *settings])


@pytest.mark.slow
@pytest.mark.parametrize("partner", ["scripted", "self"])
def test_a_step_of_the_recipe_with_either_partner(tmp_path, partner):
    """In self-chat the partner's turns are part of the world: none is learned from."""
    settings = [*SMALL, f"env.kwargs={{partner='{partner}'}}"]
    trainer = setup.start(load(tmp_path, *settings))
    trainer.run()
    records = metrics.read(tmp_path / "run")
    assert [r["step"] for r in records if "eval/valid/score" in r] == [0, 1]
    (step,) = [r for r in records if "rollout/score" in r]
    assert 0 <= step["rollout/score"] <= 1
    assert "credit/process_reward_std" in step
    rollouts = rollout_files.read(trainer.folder.rollouts(1)).rollouts
    most = 2 if partner == "self" else 3  # of three turns of both
    for rollout in rollouts:
        assert 0 < len(rollout.turns) <= most
        for before, after in zip(rollout.turns, rollout.turns[1:], strict=False):
            context = before.completion.prompt_ids + before.completion.response_ids
            assert after.completion.prompt_ids[: len(context)] == context, "one growing chat"
            assert before.next_observation == after.observation
    told = trainer.folder.evaluations()[-1]["parties"]
    name = "self" if partner == "self" else "scripted-v1"
    assert told == {"partner": name, "judge": "programmatic-v1"}
    assert "NOT A SOTOPIA SCORE" in (tmp_path / "run/table.md").read_text()
    shown = formats.tables_to_markdown(rows.build(load_all([tmp_path / "run"])))
    assert "judged by programmatic-v1" in shown
    assert "Goal (programmatic, All)" in shown


def test_demonstrations_of_both_seats_are_in_the_tiny_tokenizers_words(tmp_path):
    config = load(tmp_path)
    demonstrator = Demonstrator(make_prompt_agent(config), config.warmstart.expert, 0.0)
    pool = make_pool(config, "train", 1, oracle=True, partner="self")
    pool.record = True
    group = pool.take()
    draws = [TaskDraw(task_id, 0) for task_id in list(group.envs[0].tasks)[:120:5]]
    pool.release(group)
    rollouts = asyncio.run(collect(pool, draws, demonstrator, seed=0))
    pool.close()
    taken = [turn.agent.get("seat") for one in rollouts for turn in one.recording.turns[1:]]
    assert {None, PARTNER} == set(taken)
    assert len(demonstrator.demonstrations) == len(taken)
    tokenizer = tiny.make_tokenizer(demonstrator.corpus(), config.policy.tiny.vocabulary)
    answers = {demonstration.answer for demonstration in demonstrator.demonstrations}
    assert all(tokenizer.decode(tokenizer(text)["input_ids"]) == text for text in answers)
    assert max(len(tokenizer(text)["input_ids"]) for text in answers) < config.agent.max_tokens


@pytest.mark.parametrize(
    ("recipe", "method"), [("sotopia-oprl-7b", "oprl_grpo"), ("sotopia-grpo-7b", "grpo")]
)
def test_settings_of_the_paper(recipe, method):
    config = resolve(configs.load(recipe))
    assert (config.method.name, config.run.steps) == (method, 200)
    assert (config.env.train_split, config.agent.temperature) == ("pi", 0.7)
    assert (config.agent.max_tokens, config.rollout.group_size) == (2048, 8)
    assert (config.optimizer.mini_batch_size, config.optimizer.learning_rate) == (64, 5e-7)
    assert config.agent.max_context == 6144 + 2048
    assert config.env.kwargs["partner"] == "self"
    assert config.env.kwargs["judge"].startswith("gpt-4o@")
    if method == "oprl_grpo":
        model = annotator_settings(config)["process_reward"]
        assert (model["beta"], model["learning_rate"], model["mini_batches"]) == (0.05, 1e-6, 2)
        assert model["threshold"] is None, "successes are positive: goals above 6"


@pytest.mark.data
def test_the_papers_recipe_finds_the_benchmark():
    path = Path(os.environ.get("AGENTGYMS_TEST_DATA") or "/", "sotopia")
    if not path.is_dir():
        pytest.skip("AGENTGYMS_TEST_DATA names no folder with sotopia")
    config = configs.load("sotopia-oprl-7b", [f"env.kwargs.data_path='{path}'"])
    for split, count in (("hard", 140), ("all", 900)):
        pool = make_eval_pool(config, split)
        assert len(pool.take().envs[0].tasks) == count
        assert pool.take().envs[0].parties == {"partner": "self", "judge": "gpt-4o"}
        pool.close()


@pytest.mark.slow
def test_the_goal_rises_on_tasks_that_were_never_played(tmp_path):
    """The goals are a program's, and so they are called."""
    settings = ["run.seed=1", "run.threads=1", "run.steps=12", "eval.every=0"]
    settings += ["rollout.tasks_per_step=12"]
    setup.start(load(tmp_path, *settings)).run()
    records = metrics.read(tmp_path / "run")
    first, last = [r["eval/valid/score"] for r in records if "eval/valid/score" in r]
    assert first < 0.55, f"the warm start leaves nothing to learn: {first}"
    assert last - first >= 0.08, (first, last)
