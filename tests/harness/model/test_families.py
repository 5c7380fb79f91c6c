"""Tiny models of other families: what is generated has the probabilities that training computes."""

import asyncio

import pytest
import torch

from harness import prompts
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.model import tiny
from harness.model.packing import Sample, to_batch
from harness.model.policy import Policy
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.collect_options import CollectOptions
from harness.rollouts.env_pool import EnvPool
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"
WORDS = "you are in a corridor go left right door key box locked open take put the lamp shines at"
SIZE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 1024,
    "initializer_range": 0.05,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
FAMILIES = {
    "qwen2": {},
    "qwen3": {},
    "qwen3_moe": EXPERTS,
    "qwen3_5_text": LINEAR
    | {"num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention"] * 2},
    "llama": {},
    "gemma3_text": {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]},
}


def make_policy(family):
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = tiny.make_tokenizer([WORDS, *WORDS.split()] * 20, 400)
    config = AutoConfig.for_model(
        family,
        vocab_size=len(tokenizer),
        **SIZE | FAMILIES[family] | tiny.special_tokens(tokenizer),
    )
    torch.manual_seed(1)
    policy = Policy(AutoModelForCausalLM.from_config(config), tokenizer, "cpu")
    policy.model.generation_config.eos_token_id = list(range(2, 60))  # answers of many lengths
    return policy


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
