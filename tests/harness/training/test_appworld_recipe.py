"""The recipe `appworld-gvpo-tiny`: cut down to seconds, and whole."""

import asyncio

import pytest

from agentgyms.envs.appworld.mini.generator import MiniTasks
from harness import config as configs
from harness.model import tiny
from harness.rollouts import rollout_files
from harness.rollouts.build import make_eval_pool, make_pool, make_prompt_agent
from harness.rollouts.collect import collect
from harness.rollouts.demonstrations import Demonstrator
from harness.runs import metrics
from harness.training import setup
from harness.types.task_draws import TaskDraw

RECIPE = "appworld-gvpo-tiny"
SMALL = [
    "policy.tiny.layers=1",
    "policy.tiny.hidden=32",
    "policy.tiny.heads=2",
    "policy.tiny.feed_forward=32",
    "policy.tiny.vocabulary=4000",
    "agent.max_tokens=6",
    "env.max_turns=2",
    "warmstart.episodes=2",
    "warmstart.steps=2",
    "warmstart.batch_size=2",
    "rollout.tasks_per_step=2",
    "rollout.group_size=2",
    "rollout.enough_members=2",
    "run.steps=1",
    "run.threads=1",
    "run.keep_rollouts=1",
    "eval.tasks=3",
    "eval.max_turns=3",
]
WEAKER = [
    "run.seed=1",
    "run.threads=1",
    "run.steps=11",
    "env.max_turns=6",
    "rollout.tasks_per_step=6",
    "optimizer.learning_rate=4e-4",
    "warmstart.episodes=60",
    "warmstart.steps=60",
    "eval.every=0",
    "eval.tasks=3",
]


def load(folder, *settings):
    return configs.load(RECIPE, [f"run.output='{folder}'", "run.name='run'", *settings])


@pytest.mark.slow
def test_a_step_of_the_recipe_counts_its_failed_turns(tmp_path):
    trainer = setup.start(load(tmp_path, *SMALL))
    trainer.run()
    (step,) = [r for r in metrics.read(tmp_path / "run") if "credit/failed_turns" in r]
    rollouts = rollout_files.read(trainer.folder.rollouts(1)).rollouts
    feedback = [turn.feedback for rollout in rollouts for turn in rollout.turns]
    failed = sum(kind in ("failed", "malformed") for kind in feedback)
    assert failed > 0
    assert step["credit/failed_turns"] == failed / len(feedback)
    assert step["rollout/score"] > 0, "doing nothing harms nothing, and that is tested too"
    assert step["rollout/success"] == 0
    evaluations = [r for r in metrics.read(tmp_path / "run") if "eval/dev/success" in r]
    assert [r["step"] for r in evaluations] == [0, 1]
    assert [len(rollout.turns) for rollout in rollouts] == [2] * 4
    for evaluation in trainer.folder.evaluations():
        assert len({e["task_id"].rpartition("_")[0] for e in evaluation["episodes"]}) == 1
        assert [e["turns"] for e in evaluation["episodes"]] == [3] * 3, "a limit of its own"


def test_the_tiny_tokenizer_keeps_code_to_the_letter(tmp_path):
    config = load(tmp_path)
    demonstrator = Demonstrator(make_prompt_agent(config), "best", 0.0)
    pool = make_pool(config, "train", 1, oracle=True)
    group = pool.take()
    draws = [TaskDraw(task_id, 0) for task_id in list(group.envs[0].tasks)[::5]]
    pool.release(group)
    rollouts = asyncio.run(collect(pool, draws, demonstrator, seed=0))
    pool.close()
    assert all(rollout.success for rollout in rollouts)
    tokenizer = tiny.make_tokenizer(demonstrator.corpus(), config.policy.tiny.vocabulary)
    tasks = MiniTasks()
    code = {
        block
        for split in ("train", "test_challenge")
        for task_id in list(tasks.families(split))[::3]
        for block in tasks.solution(task_id)
    }
    code |= {"if x:\n\tprint('''a\n\n  b''')  # ä\n", 'f"{a!r:>{w}}" "\\t\\"" <|im|> \r\n  x\n\n'}
    for text in code:
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    own = {turn.action for rollout in rollouts for turn in rollout.turns}
    assert max(len(tokenizer(text)["input_ids"]) for text in own) < config.agent.max_tokens


def test_gvpo_trains_on_the_easier_tasks_and_is_evaluated_on_all():
    config = configs.load("appworld-gvpo-7b")
    levels, limits = [], []
    for pool in (make_pool(config, "train", 1), make_eval_pool(config, "test_normal")):
        group = pool.take()
        (env,) = group.envs
        levels.append({env.tasks.find(task_id).family[-1] for task_id in env.tasks})
        limits.append(env.max_turns)
        pool.release(group)
        pool.close()
    assert levels == [{"1", "2"}, {"1", "2", "3"}]
    assert limits == [40, 50]


@pytest.mark.slow
def test_the_score_rises(tmp_path):
    """It begins weaker than the recipe does.

    Seven seeds gained 0.057, standard deviation 0.010, with three of them at step 9 already. That
    failed turns become fewer is less sure: an episode's were down to 0.69 times, deviation 0.19.
    """
    setup.start(load(tmp_path, *WEAKER)).run()
    steps = [r for r in metrics.read(tmp_path / "run") if "credit/failed_turns" in r]
    score = [r["rollout/score"] for r in steps]
    assert sum(score[:3]) < 3 * 0.65, f"the warm start leaves nothing to learn: {score}"
    assert sum(score[-5:]) / 5 - sum(score[:3]) / 3 > 0.01, score
