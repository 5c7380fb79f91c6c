"""Keys and values that are kept: the same answers, and each token passes through the model once."""

import asyncio
import random

import pytest
import torch

from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.kept_batch import kept_prefixes
from harness.inference.completers.kept_prefixes import KeptPrefixes, KeptText, common_length
from harness.model.policy import Policy
from harness.types.errors import ConfigError

LARGE = 2**24
WORDS = ["go", "to", "drawer", "take", "mug", "shelf", "left", "right", "open", "door"]


@pytest.fixture
def own(policy):
    """A policy of this test's own: keeping changes a model's attention."""
    return policy.trainable_copy()


class Read:
    """The number of tokens that pass through a model, padding too."""

    def __init__(self, policy):
        self.count = 0
        policy.model.get_input_embeddings().register_forward_pre_hook(self._add)

    def _add(self, _, given):
        self.count += given[0].numel()


def text(chance, size):
    return " ".join(chance.choices(WORDS, k=size))


async def chat(completer, messages, turns, temperature, seed):
    """Return the answers of a chat in which each turn goes on from the one before."""
    chance, made = random.Random(seed), []
    for turn in range(turns):
        sampling = Sampling(temperature, 3 + seed % 3)
        made.append(await completer.complete(messages, sampling, 100 * seed + turn))
        own = {"role": "assistant", "content": made[-1].text, "token_ids": made[-1].response_ids}
        messages = [*messages, own, {"role": "user", "content": text(chance, 2 + seed % 2)}]
    return made


def played(completer, chats=6, turns=3, temperature=1.0):
    """Return the answers of chats that begin alike, two of them with one prompt."""
    chance = random.Random(7)
    openings = [f"go to drawer take mug {text(chance, 1 + i // 2)}" for i in range(chats)]
    openings[1:2] = openings[:1] * (chats > 1)

    async def everything():
        asked = [[{"role": "user", "content": opening}] for opening in openings]
        return await asyncio.gather(
            *(chat(completer, one, turns, temperature, i) for i, one in enumerate(asked))
        )

    return [answer for made in asyncio.run(everything()) for answer in made]


def same(found, wanted):
    assert [one.prompt_ids for one in found] == [one.prompt_ids for one in wanted]
    assert [one.response_ids for one in found] == [one.response_ids for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("max_batch", [3, 256])
def test_chats_get_the_answers_they_get_without(own, temperature, max_batch):
    wanted = played(HFCompleter(own, max_batch, kept_bytes=0), temperature=temperature)
    completer = HFCompleter(own, max_batch, kept_bytes=LARGE)
    same(played(completer, temperature=temperature), wanted)
    assert len({one.response_ids for one in wanted}) > 6 * bool(temperature)


def test_each_token_passes_through_the_model_once(own):
    completer = HFCompleter(own, kept_bytes=LARGE)
    read = Read(own)
    made = played(completer, chats=1, turns=5)
    last = made[-1]
    assert read.count == len(last.prompt_ids) + len(last.response_ids) - 1
    plain = HFCompleter(own, kept_bytes=0)
    read.count = 0
    played(plain, chats=1, turns=5)
    assert read.count > 2 * (len(last.prompt_ids) + len(last.response_ids))


def test_equal_beginnings_of_one_batch_are_read_once(own):
    completer = HFCompleter(own, kept_bytes=LARGE)
    read, prompts = Read(own), [f"go to drawer take mug {end}" for end in ["key", "key", "door"]]

    async def asked():
        calls = [
            completer.complete([{"role": "user", "content": prompt}], Sampling(0.0, 1), 0)
            for prompt in prompts
        ]
        return await asyncio.gather(*calls)

    made = asyncio.run(asked())
    distinct = {one.prompt_ids[:n] for one in made for n in range(1, len(one.prompt_ids) + 1)}
    assert read.count == len(distinct) < sum(len(one.prompt_ids) for one in made)


def test_a_chat_whose_earlier_tokens_change_goes_on_from_what_is_equal(own):
    completer, plain = HFCompleter(own, kept_bytes=LARGE), HFCompleter(own, kept_bytes=0)
    prompts = ["go to drawer take mug from shelf", "go to drawer open door", "go to", "left"]

    async def one_by_one(asked):
        return [
            await asked.complete([{"role": "user", "content": prompt}], Sampling(1.0, 5), i)
            for i, prompt in enumerate(prompts)
        ]

    same(asyncio.run(one_by_one(completer)), asyncio.run(one_by_one(plain)))


def test_new_weights_and_another_event_loop_forget(own):
    completer = HFCompleter(own, kept_bytes=LARGE)
    read = Read(own)
    counts = []
    for _ in range(2):  # each has an event loop of its own
        read.count = 0
        played(completer)
        counts.append(read.count)
    assert counts[0] == counts[1]

    async def before_and_after():
        asked = [{"role": "user", "content": "go to drawer take mug"}], Sampling(0.0, 4), 0
        await completer.complete(*asked)
        with torch.no_grad():
            for weight in own.model.parameters():
                weight.add_(0.05 * torch.sin(torch.arange(weight.numel()).view(weight.shape)))
        after = await completer.complete(*asked)
        return after, await HFCompleter(own, kept_bytes=0).complete(*asked)

    after, wanted = asyncio.run(before_and_after())
    same([after], [wanted])

    async def learned():
        asked = [{"role": "user", "content": "go to drawer take mug"}], Sampling(0.0, 4), 0
        await completer.complete(*asked)
        weights = list(own.model.parameters())
        optimizer = torch.optim.AdamW(weights, lr=0.3, fused=True)  # torch counts no change
        for weight in weights:
            weight.grad = torch.ones_like(weight)
        optimizer.step()
        own.model.zero_grad()
        after = await completer.complete(*asked)
        return after, await HFCompleter(own, kept_bytes=0).complete(*asked)

    after, wanted = asyncio.run(learned())
    same([after], [wanted])
    completer.forget()
    assert completer._kept.size == len(completer._kept) == 0


def test_the_memory_is_bounded_and_the_answers_are_the_same(own):
    wanted = played(HFCompleter(own, kept_bytes=0))
    whole = HFCompleter(own, kept_bytes=LARGE)
    same(played(whole), wanted)
    limit = whole._kept.size // 3
    bounded = HFCompleter(own, kept_bytes=limit)
    same(played(bounded), wanted)
    assert 0 < bounded._kept.size <= limit
    assert len(bounded._kept) < len(whole._kept)


def size_of(tokens):
    made = [torch.zeros(1, len(tokens), 2)]
    return KeptText(made, made)


def test_the_longest_beginning_is_found_among_texts():
    chance, kept = random.Random(1), KeptPrefixes(LARGE)
    texts = [tuple(chance.choices((1, 2, 3), k=chance.randint(1, 9))) for _ in range(200)]
    for added, one in enumerate(texts):
        kept.add(one, size_of(one))
        assert kept.size == sum(text.size for text in kept._texts.values())
        asked = chance.choice(texts)
        length, found = kept.find(asked)
        assert length == max(common_length(asked, other) for other in texts[: added + 1])
        assert (found is None) == (length == 0)
    held = kept._sorted
    assert sorted(kept._texts) == held
    assert not any(b[: len(a)] == a for a in held for b in held if a != b)


def test_the_text_used_longest_ago_is_dropped():
    each = size_of((1, 1)).size
    kept = KeptPrefixes(2 * each)
    kept.add((1, 1), size_of((1, 1)))
    kept.add((2, 2), size_of((2, 2)))
    kept.find((1, 1, 5))
    kept.add((3, 3), size_of((3, 3)))
    assert set(kept._texts) == {(1, 1), (3, 3)}
    kept.add((4,) * 9, size_of((4,) * 9))  # longer than the memory
    assert len(kept) == kept.size == 0


def test_it_is_usual_on_the_cpu_but_for_tiny_models_in_float32(own, monkeypatch):
    assert HFCompleter(own)._kept is None
    size = sum(weight.numel() for weight in own.model.parameters())
    with monkeypatch.context() as patch:
        path = "harness.inference.completers.kept_batch.SMALLEST_MIXED"
        patch.setattr(path, size + 1)
        assert kept_prefixes(own, None) is None
        patch.setattr(path, size)
        twin = Policy(own.trainable_copy().model, own.tokenizer, "cpu")
        assert kept_prefixes(twin, None) is not None
    mixed = Policy(own.trainable_copy().model, own.tokenizer, "cpu", precision="mixed")
    copy = mixed.generation_copy()
    assert HFCompleter(copy)._kept is not None
    assert kept_prefixes(copy, 0) is None
    path = "harness.inference.completers.kept_batch.sharing_obstacle"
    monkeypatch.setattr(path, lambda _: "it has recurrent layers")
    assert kept_prefixes(copy, None) is None
    with pytest.raises(ConfigError, match=r"rollout\.cache_gb is not for .* recurrent.*to 0"):
        kept_prefixes(copy, LARGE)


def test_a_model_that_decodes_wrongly_with_kept_texts_keeps_none(own, monkeypatch):
    mixed = Policy(own.trainable_copy().model, own.tokenizer, "cpu", precision="mixed")
    copy = mixed.generation_copy()
    usual = copy.model.config._attn_implementation
    monkeypatch.setattr(
        "harness.inference.completers.kept_batch.KeptText",
        lambda keys, values: KeptText([0 * one for one in keys], values),
    )
    assert HFCompleter(copy)._kept is None
    assert copy.model.config._attn_implementation == usual
    with pytest.raises(ConfigError, match=r"beginnings are kept.*set rollout\.cache_gb to 0"):
        HFCompleter(copy, kept_bytes=LARGE)


def test_rounded_weights_answer_nearly_as_exact_ones(own):
    mixed = Policy(own.trainable_copy().model, own.tokenizer, "cpu", precision="mixed")
    copy = mixed.generation_copy()
    exact = played(HFCompleter(own), chats=9, turns=1)
    rounded = played(HFCompleter(copy), chats=9, turns=1)
    assert [one.prompt_ids for one in exact] == [one.prompt_ids for one in rounded]
    pairs = zip(exact, rounded, strict=True)
    equal = [(a, b) for a, b in pairs if a.response_ids[0] == b.response_ids[0]]
    assert len(equal) > 6  # near the end of a token's share rounding draws its neighbour
    for one, other in equal:
        assert one.logprobs[0] == pytest.approx(other.logprobs[0], abs=0.02)
