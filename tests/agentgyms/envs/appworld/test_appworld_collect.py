"""The harness plays many episodes at once, in threads: all end, and no process is left."""

import asyncio

from appworld_episodes import children, settled

from harness import prompts
from harness.evaluation.baselines.prompted import ExpertActor
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.task_draws import TaskDraw
from tests.harness.function_actor import FunctionActor

ENV_ID = "agentgyms/AppWorld-v0"
SCENARIOS = ["countnotes", "payback", "splitbill"]


def task_set_of(pool):
    group = pool.take()
    ids = list(group.envs[0].tasks)
    pool.release(group)
    return [TaskDraw(task_id, 7) for task_id in ids[::4][:8]]


def test_32_episodes_at_once_all_end_and_leave_nothing():
    before = len(children())
    pool = EnvPool(ENV_ID, 4, 32, split="train", oracle=True, scenarios=SCENARIOS)
    agent = Agent(
        ScriptedCompleter(lambda _: ""), prompts.load("direct", ENV_ID), Sampling(), 2, "transcript"
    )
    rollouts = asyncio.run(collect(pool, task_set_of(pool), ExpertActor(agent), seed=1))
    assert [rollout.error for rollout in rollouts] == [""] * 32
    assert all(rollout.success for rollout in rollouts)
    assert settled(before + 1) <= before + 1, "the template of the episodes' processes may stay"
    pool.close()


def test_episodes_that_are_broken_off_leave_nothing_either():
    def policy(view, seed):
        slow = len(view.turns) and seed % 4
        return "total = sum(range(10**6))" if slow else "apis.supervisor.complete_task()"

    before = len(children())
    pool = EnvPool(ENV_ID, 8, 32, split="train", scenarios=SCENARIOS, max_turns=30)
    draws = task_set_of(pool)[:4]
    options = CollectOptions(enough_members=2)
    rollouts = asyncio.run(collect(pool, draws, FunctionActor(policy), seed=1, options=options))
    assert 8 <= len(rollouts) <= 32
    assert not any(rollout.error for rollout in rollouts)
    pool.close()
    assert settled(before + 1) <= before + 1
