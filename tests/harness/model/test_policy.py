"""The policy, the tiny model, and generation, against transformers' own."""

import asyncio
import math
import random
from collections import Counter

import pytest
import torch

from harness.config import TinyConfig
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.model import tiny
from harness.model.packing import Sample, to_batch
from harness.model.policy import Policy
from harness.types.errors import ConfigError


def ask(text):
    return [{"role": "user", "content": text}]


PROMPTS = ["go", "take mug 2 from shelf", "put a clean plate in cabinet " * 3, "door", "key left"]


def complete(completer, prompts, temperature=1.0, max_tokens=9, seeds=None):
    sampling = Sampling(temperature, max_tokens)

    async def everything():
        calls = [
            completer.complete(ask(prompt), sampling, seed)
            for prompt, seed in zip(prompts, seeds or range(len(prompts)), strict=True)
        ]
        return await asyncio.gather(*calls)

    return asyncio.run(everything())


def test_greedy_responses_equal_transformers_generate(policy):
    got = complete(HFCompleter(policy), PROMPTS, temperature=0)
    for prompt, completion in zip(PROMPTS, got, strict=True):
        ids = torch.tensor([policy.encode_chat(ask(prompt))])
        mask = torch.ones_like(ids)
        out = policy.model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=9)
        assert completion.response_ids == tuple(out[0, ids.shape[1] :].tolist())
        assert completion.prompt_ids == tuple(ids[0].tolist())


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_recorded_logprobs_are_the_policys_own(policy, temperature):
    got = complete(HFCompleter(policy), PROMPTS * 4, temperature)
    rows = [Sample(c.prompt_ids, c.response_ids, c.logprobs, 1.0) for c in got]
    batch = to_batch(rows, policy.pad_id)
    with torch.no_grad():
        logprob, entropy = policy.logprobs(batch, temperature)
    torch.testing.assert_close(logprob, batch.old_logprob, atol=2e-5, rtol=0)
    spread = entropy[batch.action_mask]
    assert 0 < float(spread.min()) <= float(spread.max()) < math.log(len(policy.tokenizer))
    assert not entropy[~batch.action_mask].any()


def test_a_text_depends_on_its_seed_not_on_its_company(policy):
    together = complete(HFCompleter(policy), PROMPTS, seeds=[5, 6, 7, 8, 9])
    alone = [
        complete(HFCompleter(policy), [p], seeds=[s])[0]
        for p, s in zip(PROMPTS, range(5, 10), strict=True)
    ]
    crowded = complete(HFCompleter(policy, max_batch=2), PROMPTS, seeds=[5, 6, 7, 8, 9])
    assert [c.text for c in together] == [c.text for c in alone] == [c.text for c in crowded]
    assert complete(HFCompleter(policy), PROMPTS[:1], seeds=[50])[0].text != together[0].text


def test_sampling_follows_the_distribution(policy):
    n = 1500
    got = complete(HFCompleter(policy), ["go"] * n, max_tokens=1, seeds=range(n))
    counts = Counter(c.response_ids[0] for c in got)
    ids = torch.tensor([policy.encode_chat(ask("go"))])
    with torch.no_grad():
        probability = policy.model(ids).logits[0, -1].softmax(-1)
    for token, count in counts.most_common(5):
        expected = float(probability[token]) * n
        assert abs(count - expected) < 5 * max(1.0, expected) ** 0.5
    assert len(counts) > 5


def test_responses_end_at_the_end_token_or_at_the_limit(policy):
    got = complete(HFCompleter(policy), ["go"] * 300, max_tokens=4, seeds=range(300))
    ended = [c for c in got if c.finished]
    assert ended
    for completion in got:
        assert 1 <= len(completion.response_ids) <= 4
        assert (completion.response_ids[-1] in policy.stop_ids) == completion.finished
        assert tiny.TURN_END not in completion.text


def test_slow_requests_hold_nobody_up(policy):
    """A long response is under way; short ones that come later are answered before it ends."""
    completer = HFCompleter(policy)
    order = []

    async def one(name, max_tokens):
        await completer.complete(ask("go to"), Sampling(0.0, max_tokens), 0)
        order.append(name)

    async def everything():
        long = asyncio.create_task(one("long", 60))
        for i in range(4):
            await one(f"short {i}", 2)
        await long

    saved = policy.tokenizer.eos_token_id
    policy.tokenizer.eos_token_id, policy.model.generation_config.eos_token_id = None, None
    try:
        asyncio.run(everything())
    finally:
        policy.tokenizer.eos_token_id = policy.model.generation_config.eos_token_id = saved
    assert order == ["short 0", "short 1", "short 2", "short 3", "long"]


def test_a_prompt_that_does_not_fit_is_refused(policy):
    with pytest.raises(ConfigError, match="exceed the limit of 128"):
        complete(HFCompleter(policy), ["drawer " * 200])


def test_a_failing_model_fails_every_request(policy, monkeypatch):
    completer = HFCompleter(policy)
    monkeypatch.setattr(completer, "_sample", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        complete(completer, ["go", "left"])


def test_save_and_load_keep_every_bit(policy, tmp_path):
    policy.save(tmp_path)
    again = Policy.load(str(tmp_path), "cpu")
    for (name, a), (_, b) in zip(
        policy.model.named_parameters(), again.model.named_parameters(), strict=True
    ):
        assert torch.equal(a, b), name
    chance = random.Random(0)
    for _ in range(500):  # whatever the model may say, it is read the same after a restart
        ids = chance.choices(range(len(policy.tokenizer)), k=8)
        text = policy.decode(ids)
        assert again.decode(ids) == text
        assert again.encode(text) == policy.encode(text)
    text = "put a clean plate 12 in cabinet é🙂"
    assert again.decode(again.encode(text)) == text
    assert again.encode_chat(ask("go")) == policy.encode_chat(ask("go"))
    assert again.stop_ids == policy.stop_ids


def test_what_cannot_be_loaded_is_said(tmp_path):
    with pytest.raises(ConfigError, match="there is no folder"):
        Policy.load(str(tmp_path / "nothing"), "cpu")


def test_the_tiny_model_is_a_function_of_its_seed():
    tokenizer = tiny.make_tokenizer(["go to drawer"] * 5, 300)
    config = TinyConfig(layers=1, hidden=16, heads=2, feed_forward=16)
    state = torch.get_rng_state()
    models = [tiny.make_model(config, tokenizer, seed) for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), state)
    first, same, other = (model.get_input_embeddings().weight for model in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert models[0].config.model_type == "qwen2"
