"""An agent's continuations: they keep its history, and are shared where its prompt is equal."""

import asyncio

import pytest

from harness import prompts
from harness.audit.policies import AgentPolicy
from harness.audit.truth import TruthOptions, measure
from harness.inference.completers import Sampling
from harness.rollouts.agent import Agent
from harness.rollouts.env_pool import EnvPool
from harness.types.errors import ModelUnavailable, TrainingError
from harness.types.rollout import Completion, Usage
from harness.types.task_draws import TaskDraw


class Dice:
    """A completer that goes right and opens the door with probability 3/4."""

    def __init__(self, fails=()):
        self.prompts, self.fails = [], fails

    async def complete(self, messages, sampling, seed):
        self.prompts.append(str(messages))
        if len(self.prompts) in self.fails:
            raise ModelUnavailable("the model is gone")
        word = "left" if seed % 4 == 0 else "right"
        word = "open door" if "open door" in str(messages[-1]) and seed % 4 else word
        return Completion(f"<think>so</think><action>{word}</action>", usage=Usage(3, 2, 1))


def measured(model, context="window", window=2, tasks=2):
    pool = EnvPool("agentgyms/Corridor-v0", 3, 16, max_turns=16)
    agent = Agent(model, prompts.load("think", pool.env_id), Sampling(), window, context)
    free = [task for task in pool.tasks() if "free" in task]
    draws = [TaskDraw(task, 1) for task in free[:tasks]]
    return asyncio.run(measure(pool, draws, AgentPolicy(agent, 4), TruthOptions(4), seed=1))


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_continuations_are_prompted_with_the_history(context):
    model = Dice()
    truth, rollouts = measured(model, context)
    assert truth.cost.tokens == 5 * (len(model.prompts) - len(truth.turns))
    assert 0 < truth.returns.mean() < 1
    assert {turn.feedback for rollout in rollouts for turn in rollout.turns} <= {"ok", "no_effect"}
    again, _ = measured(Dice(), context)
    assert (again.returns == truth.returns).all()


def test_a_prompt_without_history_shares_more_than_one_with_it():
    def shared(window):
        truth, _ = measured(Dice(), window=window)
        return truth.cost.continuations

    assert shared(0) < shared(7)


def test_a_model_that_is_gone_ends_in_one_error():
    with pytest.raises(TrainingError, match="the model is gone"):
        measured(Dice(fails=range(40, 10**9)), tasks=1)


def test_what_failed_once_is_measured_again():
    """The first continuation of all fails: the state is not given up with it."""
    truth, rollouts = measured(Dice(fails=range(1, 2)), tasks=1)
    assert len(rollouts) == 3
    assert (truth.returns == measured(Dice(), tasks=1)[0].returns).all()
