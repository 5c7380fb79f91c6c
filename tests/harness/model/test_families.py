"""Tiny models of other families: what is generated has the probabilities that training computes."""

import asyncio
import copy

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForImageTextToText

from harness import prompts
from harness.config import LoraConfig, load
from harness.distributed.process_group import SINGLE_PROCESS
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.vllm_generators import EngineGenerator
from harness.model.packing import Sample, to_batch
from harness.model.policy import Policy
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
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


def test_rows_without_padding_have_the_same_logprobs_or_are_refused(policy):
    rows = [Sample(tuple(range(3, 3 + n)), (7, 9, 11), (0.0,) * 3, 1.0) for n in (5, 31, 2)]
    batch = to_batch(rows, policy.pad_id)
    packed = policy.frozen_copy()
    kind = policy.model.config.model_type
    if kind in ("qwen3_5_text", "gemma3_text"):
        with pytest.raises(ConfigError, match=f"'packed' is not for this {kind}: it has layers"):
            packed.set_padding_free(True)
        packed.set_padding_free(None)
        assert not packed.padding_free
        return
    packed.set_padding_free(True)
    with torch.no_grad():
        expected, _ = policy.logprobs(batch)
        logprob, _ = packed.logprobs(batch)
    torch.testing.assert_close(logprob, expected, atol=1e-5, rtol=0)


def test_adapters_change_nothing_at_first_and_are_merged_into_the_weights(policy, tmp_path):
    rows = [Sample((3, 4, 5), (7, 9, 11), (0.0,) * 3, 1.0)]
    batch = to_batch(rows, policy.pad_id)
    adapted = Policy(copy.deepcopy(policy.model), policy.tokenizer, "cpu")
    adapted.adapt(LoraConfig(rank=2), "nowhere", 1)
    with torch.no_grad():
        torch.testing.assert_close(adapted.logprobs(batch)[0], policy.logprobs(batch)[0])
        for weight in adapted.model.parameters():
            if weight.requires_grad:
                weight.normal_(std=0.1)
    adapted.save(tmp_path, merged=True)
    merged = Policy.load(str(tmp_path), "cpu")
    with torch.no_grad():
        logprob, _ = adapted.logprobs(batch)
        assert (logprob - policy.logprobs(batch)[0]).abs().max() > 1e-3
        torch.testing.assert_close(merged.logprobs(batch)[0], logprob, atol=1e-4, rtol=0)


def test_a_checkpoint_of_a_model_that_sees_trains_on_text(tmp_path):
    """In training mode, where transformers' own Gemma 3 asks for types of tokens."""
    plain = make_policy("gemma3_text")
    seen = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    seen |= {"num_attention_heads": 2, "image_size": 32, "patch_size": 8, "vision_use_head": False}
    config = AutoConfig.for_model(
        "gemma3",
        text_config=plain.model.config.to_dict(),
        vision_config=seen,
        mm_tokens_per_image=4,
    )
    AutoModelForImageTextToText.from_config(config).save_pretrained(tmp_path)
    plain.tokenizer.save_pretrained(tmp_path)
    policy = Policy.load(str(tmp_path), "cpu")
    asked = HFCompleter(policy).complete([{"role": "user", "content": "go"}], Sampling(1.0, 6), 1)
    said = asyncio.run(asked)
    policy.model.train()
    batch = to_batch([Sample(said.prompt_ids, said.response_ids, said.logprobs, 1.0)], 0)
    logprob, _ = policy.logprobs(batch)
    torch.testing.assert_close(logprob, batch.old_logprob, atol=1e-5, rtol=0)
    logprob.sum().backward()


def test_weights_for_another_engine_have_the_names_of_saved_files(policy, tmp_path):
    policy.save(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    named = dict(policy.named_weights())
    assert stored.keys() - named.keys() == set()
    assert named.keys() - stored.keys() <= {"lm_head.weight"}, "it may be tied to the embedding"
    for name, weight in stored.items():
        assert torch.equal(named[name], weight), name


def test_experts_are_not_generated_by_vllm_on_the_cpu(tmp_path):
    config = load("corridor-tiny", ["rollout.backend='vllm'"])
    with pytest.raises(ConfigError, match="keeps the old weights of experts .* this qwen3_moe"):
        EngineGenerator(config, make_policy("qwen3_moe"), tmp_path, SINGLE_PROCESS)
