"""The recipe `webshop-tiny`, cut down to seconds: its demonstrations, a step, what it reports."""

import asyncio

import pytest

from harness import config as configs
from harness import prompts
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator
from harness.rollouts.env_pool import EnvPool
from harness.runs import metrics
from harness.training import setup
from harness.types.task_draws import TaskDraw

ENV_ID = "agentgyms/WebShop-v0"

SMALL = [
    "policy.tiny.layers=1",
    "policy.tiny.hidden=48",
    "policy.tiny.heads=4",
    "policy.tiny.feed_forward=64",
    "policy.tiny.vocabulary=600",
    "warmstart.episodes=12",
    "warmstart.steps=40",
    "warmstart.batch_size=8",
    "warmstart.learning_rate=5e-3",
    "rollout.tasks_per_step=2",
    "rollout.group_size=2",
    "run.steps=1",
    "run.threads=1",
    "eval.tasks=6",
]


@pytest.mark.slow
def test_a_step_of_the_recipe_and_its_report(tmp_path):
    config = configs.load("webshop-tiny", [f"run.output='{tmp_path}'", "run.name='small'", *SMALL])
    trainer = setup.start(config)
    trainer.run()
    records = [r for r in metrics.read(tmp_path / "small") if "eval/valid/score" in r]
    assert [r["step"] for r in records] == [0, 1]
    for record in records:
        low, score, high = (record[f"eval/valid/{n}"] for n in ("score_low", "score", "score_high"))
        assert 0 <= low <= score <= high <= 1
        assert low < high
    bought_any = False
    for evaluation in trainer.folder.evaluations():
        scores = [episode["score"] for episode in evaluation["episodes"]]
        assert evaluation["score"] == sum(scores) / 6
        for episode in evaluation["episodes"]:
            bought = "click[buy now]" in episode["actions"]
            bought_any |= bought
            assert bought or episode["score"] == 0, "without a purchase there is no score"
            assert all(a == "" or a.startswith(("search[", "click[")) for a in episode["actions"])
    assert bought_any
    assert "| score | 95 % interval |" in (tmp_path / "small/table.md").read_text()


def test_the_expert_of_the_demonstrations_says_what_the_style_can_say():
    """It searches with words of its own, of which the style has but one search to offer."""
    agent = Agent(ScriptedCompleter(lambda _: ""), prompts.load("compact", ENV_ID), Sampling(), 0)
    demonstrator = Demonstrator(agent, "best", 0.0)
    pool = EnvPool(ENV_ID, 1, 8, oracle=True, split="sample")
    tasks = list(pool.take().envs[0].tasks)
    draws = [TaskDraw(task_id, i) for i, task_id in enumerate(tasks)]
    rollouts = asyncio.run(collect(pool, draws, demonstrator, seed=0))
    pool.close()
    assert all(rollout.success for rollout in rollouts)
    for rollout in rollouts:
        assert rollout.turns[0].action == f"search[{rollout.goal}]"
    assert {d.answer for d in demonstrator.demonstrations} <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    assert len({d.answer for d in demonstrator.demonstrations}) > 5
