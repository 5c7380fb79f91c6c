"""Tiny models of other families: what is generated has the probabilities that training computes."""

import asyncio

import pytest
import torch

from harness import prompts
from harness.config import LoraConfig
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.model.packing import Sample, to_batch
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.collect_options import CollectOptions
from harness.rollouts.env_pool import EnvPool
from harness.types.errors import ConfigError
from harness.types.task_draws import TaskDraw
from tests.harness.tiny_families import FAMILIES, make_policy

CORRIDOR = "agentgyms/Corridor-v0"


@pytest.fixture(scope="module", params=FAMILIES)
def policy(request):
    return make_policy(request.param)


def play(policy, context, members=6):
    pool = EnvPool(CORRIDOR, members, 64, max_turns=5)
    task_id = pool.take().envs[0].tasks[0]
    completer = HFCompleter(policy, max_batch=4)  # so that requests join and leave
    style = prompts.load("compact", CORRIDOR)
    agent = Agent(completer, style, Sampling(1.0, 9), 1, context)
    return asyncio.run(
        collect(pool, [TaskDraw(task_id, 5)], agent, seed=1, options=CollectOptions(pause_s=0))
    )


@pytest.mark.parametrize("context", ["window", "transcript"])
def test_recorded_logprobs_are_the_policys_own(policy, context):
    rollouts = play(policy, context)
    completions = [turn.completion for rollout in rollouts for turn in rollout.turns]
    assert len({len(c.prompt_ids) for c in completions}) > 2
    assert len({len(c.response_ids) for c in completions}) > 1
    rows = [Sample(c.prompt_ids, c.response_ids, c.logprobs, 1.0) for c in completions]
    batch = to_batch(rows, policy.pad_id)
    with torch.no_grad():
        logprob, _ = policy.logprobs(batch)
    torch.testing.assert_close(logprob, batch.old_logprob, atol=1e-4, rtol=0)


def test_adapters_on_experts_are_refused_and_other_layers_are_adapted():
    lora = LoraConfig(rank=2, targets=("q_proj", "up_proj"))
    with pytest.raises(ConfigError, match=r"'up_proj' is of the experts of this qwen3_moe") as said:
        make_policy("qwen3_moe").adapt(lora, "nowhere", 1)
    assert len(str(said.value)) < 300
    policy = make_policy("qwen3_moe")
    policy.adapt(LoraConfig(rank=2), "nowhere", 1)
    adapted = {n.split(".lora_")[0] for n, p in policy.model.named_parameters() if p.requires_grad}
    assert {name.rpartition(".")[2] for name in adapted} == {"q_proj", "k_proj", "v_proj", "o_proj"}
