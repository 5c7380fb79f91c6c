"""Forked episodes: they go on as their originals do, and leave them alone."""

import asyncio

import pytest

from harness import prompts
from harness.inference.completers import Sampling
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect_episodes
from harness.rollouts.continuations import fork
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.episode import run_episode
from harness.types.rollout import Completion
from harness.types.task_draws import TaskDraw


class Dice:
    """A completer that takes one of the prompt's words by its seed, and notes the prompts."""

    def __init__(self):
        self.asked = []

    async def complete(self, messages, sampling, seed):
        self.asked.append((str(messages), seed))
        action = ("left", "right", "look", "go to shelf 1")[seed % 4]
        return Completion(f"<think>so</think><action>{action}</action>")


def played_with_forks(env_id, context, at, **kwargs):
    """Return the rollouts of a group, and those that went on from a fork at turn `at`."""
    model, twins = Dice(), []
    agent = Agent(model, prompts.load("think", env_id), Sampling(), 2, context)

    class Forking:
        def __init__(self, episode):
            self.episode = episode

        async def act(self, view, seed):
            if len(view.turns) == at:
                twins.append(await fork(self.episode, 0))
            return await agent.act(view, seed)

    async def play(episode):
        return await run_episode(episode, Forking(episode), seed=5)

    async def run():
        pool = EnvPool(env_id, 3, 8, record=True, **kwargs)
        draw = TaskDraw(next(iter(pool.tasks())), 7)
        played = await collect_episodes(pool, [draw], play)
        asked, model.asked = model.asked, []
        rest = [await run_episode(twin, agent, seed=5) for twin in twins]
        assert set(model.asked) <= set(asked)
        return played, rest

    return asyncio.run(run())


@pytest.mark.parametrize("context", ["window", "transcript"])
@pytest.mark.parametrize("env_id", ["agentgyms/Corridor-v0", "agentgyms/ALFWorld-v0"])
def test_a_fork_goes_on_like_its_original(env_id, context):
    played, rest = played_with_forks(env_id, context, 3, max_turns=9)
    assert len(rest) == sum(len(rollout.turns) >= 3 for rollout in played) > 0
    for twin in rest:
        original = next(rollout for rollout in played if rollout.member == twin.member)
        assert twin.turns == original.turns
        assert (twin.success, twin.score, twin.stop_reason) == (
            original.success,
            original.score,
            original.stop_reason,
        )
        assert twin.recording is None
        assert original.recording is not None


def test_what_a_fork_does_is_not_seen_by_its_original():
    """The fork plays on to its end while the original waits."""

    async def run():
        pool = EnvPool("agentgyms/Corridor-v0", 1, 8, max_turns=9)
        agent = Agent(Dice(), prompts.load("think", pool.env_id), Sampling(), 2, "transcript")
        seen = []

        class Waiting:
            def __init__(self, episode):
                self.episode = episode

            async def act(self, view, seed):
                if len(view.turns) == 2:
                    before = ([*view.turns], [*view.prompts], view.observation)
                    state = self.episode.env.snapshot()
                    await run_episode(await fork(self.episode, 0), agent, seed=99)
                    seen.append(before == (view.turns, view.prompts, view.observation))
                    seen.append(self.episode.env.snapshot() == state)
                return await agent.act(view, seed)

        async def play(episode):
            return await run_episode(episode, Waiting(episode), seed=5)

        await collect_episodes(pool, [TaskDraw(next(iter(pool.tasks())), 7)], play)
        return seen

    assert asyncio.run(run()) == [True, True]
