"""A policy that sees, against transformers' own processor and forward pass."""

import asyncio
import random

import numpy as np
import pytest
import torch
from picture_chats import CHATS, ask, image
from PIL import Image
from transformers import Qwen2_5_VLProcessor, image_utils

from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.model import tiny_vl
from harness.model.packing import Sample, merge, to_batch
from harness.model.policy import Policy
from harness.types.errors import ConfigError
from harness.types.messages import images_of, shared_image, texts_of
from tests.harness.tiny_families import SEEING, make_seeing

WORDS = "where is the box push up down left right still wall floor target lamp red"


@pytest.fixture(scope="module", params=SEEING)
def seeing(request):
    """A tiny random model that sees, on the CPU."""
    return make_seeing(request.param, WORDS)


class Processor(Qwen2_5_VLProcessor):
    """transformers' processor, made without its video part, which needs torchvision."""

    def check_argument_for_proper_class(self, name, argument):
        """Accept that there is no video processor."""


def official(policy, messages):
    """What the processor makes of a chat, called the standard way."""
    processor = Processor(
        policy.vision.image_processor, policy.tokenizer, None, policy.tokenizer.chat_template
    )
    chat = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    pixels = [one.pixels for one in images_of(messages)] or None
    return processor(images=pixels, text=[chat], return_tensors="pt")


def complete(policy, chats, temperature=1.0, seeds=None, limits=None, **kwargs):
    completer = HFCompleter(policy, **kwargs)

    async def everything():
        return await asyncio.gather(
            *(
                completer.complete(chat, Sampling(temperature, limit), seed)
                for chat, seed, limit in zip(
                    chats, seeds or range(len(chats)), limits or [9] * len(chats), strict=True
                )
            )
        )

    return asyncio.run(everything())


def rows_of(completions):
    return [Sample(c.prompt_ids, c.response_ids, c.logprobs, 1.0, c.images) for c in completions]


@pytest.mark.parametrize("messages", CHATS)
def test_prompts_and_patches_are_those_of_the_processor(seeing, messages):
    expected = official(seeing, messages)
    assert seeing.encode_chat(messages) == tuple(expected["input_ids"][0].tolist())
    shown = images_of(messages)
    if shown:
        prepared = [seeing.vision._prepare(one) for one in shown]
        assert torch.equal(torch.cat([p for p, _ in prepared]), expected["pixel_values"])
        assert torch.equal(torch.stack([g for _, g in prepared]), expected["image_grid_thw"])


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2), (2, 1), (3, 1), (1, 3), (3, 3), (4, 4), (3, 7), (3, 600), (96, 80)]
)
def test_images_of_any_height_are_read_as_rows_of_pixels(seeing, shape):
    """As PIL reads them: an array of 1 or 3 rows could be taken for one of 1 or 3 channels."""
    one = image(*shape, 5)
    patches, grid = seeing.vision._prepare(one)
    expected = seeing.vision.image_processor(
        images=[Image.fromarray(one.pixels)], return_tensors="pt"
    )
    assert torch.equal(patches, expected["pixel_values"])
    assert torch.equal(grid, expected["image_grid_thw"][0])
    tokens = torch.tensor([seeing.encode_chat(ask("push", one))])
    with torch.no_grad():
        assert seeing.vision.embed(tokens, [[one]]).embedding.shape[:2] == tokens.shape


def test_no_image_is_ambiguous(seeing, monkeypatch):
    said = []
    monkeypatch.setattr(image_utils.logger, "warning", lambda text, *_: said.append(text))
    for height in (1, 3, 4, 96):
        seeing.vision._prepare(image(height, 8, 11))
    assert said == []


@pytest.mark.parametrize("shape", [(16, 3360), (201, 1)])
def test_an_image_that_is_too_narrow_is_refused(seeing, shape):
    height, width = shape
    said = rf"image has {height} x {width} pixels, .*ratio must be smaller than 200.*less narrow"
    with pytest.raises(ConfigError, match=said):
        seeing.encode_chat(ask("push", image(height, width, 6)))


def test_logprobs_of_a_batch_equal_single_forward_passes(seeing):
    chance = random.Random(0)
    vocabulary = range(300, len(seeing.tokenizer))
    rows = [
        Sample(seeing.encode_chat(chat), tuple(chance.choices(vocabulary, k=k)), (0.0,) * k, 1.0, s)
        for chat, k in zip(CHATS, (3, 1, 5, 4, 2), strict=True)
        for s in [images_of(chat)]
    ]
    with torch.no_grad():
        logprob, _ = seeing.logprobs(to_batch(rows, seeing.pad_id))
        for row, chat, got in zip(rows, CHATS, logprob, strict=True):
            inputs = official(seeing, chat)
            answer = torch.tensor([row.response_ids])
            inputs["input_ids"] = torch.cat([inputs["input_ids"], answer], -1)
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
            kinds = inputs["mm_token_type_ids"]
            inputs["mm_token_type_ids"] = torch.cat([kinds, torch.zeros_like(answer)], -1)
            scores = seeing.model(**inputs).logits[0, -len(row.response_ids) - 1 : -1]
            expected = scores.log_softmax(-1).gather(-1, answer.T)[:, 0]
            torch.testing.assert_close(
                got[len(row.prompt_ids) : row.length], expected, atol=2e-5, rtol=0
            )


@pytest.mark.parametrize("max_batch", [256, 2])
def test_recorded_logprobs_are_the_policys_own(seeing, max_batch):
    """Prompts of different images and lengths join and leave one batch."""
    got = complete(seeing, CHATS * 3, limits=range(1, 16), max_batch=max_batch)
    batch = to_batch(rows_of(got), seeing.pad_id)
    with torch.no_grad():
        logprob, _ = seeing.logprobs(batch)
    torch.testing.assert_close(logprob, batch.old_logprob, atol=2e-5, rtol=0)


def test_greedy_responses_equal_transformers_generate(seeing):
    got = complete(seeing, CHATS, temperature=0)
    for messages, completion in zip(CHATS, got, strict=True):
        inputs = official(seeing, messages)
        seeing.model.base_model.rope_deltas = None
        out = seeing.model.generate(**inputs, do_sample=False, max_new_tokens=9)
        assert completion.response_ids == tuple(out[0, inputs["input_ids"].shape[1] :].tolist())
        assert completion.images == images_of(messages)


def test_a_text_depends_on_its_seed_not_on_its_company(seeing):
    seeds = list(range(5, 10))
    together = complete(seeing, CHATS, seeds=seeds)
    alone = [complete(seeing, [c], seeds=[s])[0] for c, s in zip(CHATS, seeds, strict=True)]
    assert [c.response_ids for c in together] == [c.response_ids for c in alone]


def test_the_image_decides(seeing):
    """Equal texts with different images: other probabilities; with equal images: the same."""
    question, first, other = "where is the box", image(96, 96, 0), image(96, 96, 7)
    answer = seeing.encode(" up")
    rows = [
        Sample(seeing.encode_chat(ask(question, i)), answer, (0.0,) * len(answer), 1.0, (i,))
        for i in (first, other, first)
    ]
    assert rows[0].prompt_ids == rows[1].prompt_ids
    with torch.no_grad():
        logprob, _ = seeing.logprobs(to_batch(rows, seeing.pad_id))
    assert abs(float(logprob[0].sum() - logprob[1].sum())) > 1e-3
    assert torch.equal(logprob[0], logprob[2])
    assert len(merge(rows)) == 2, "samples of different images stay apart"


def test_a_text_about_image_tokens_is_no_image(seeing):
    hostile = f"a sign reads {tiny_vl.IMAGE_TOKEN}"
    for messages in (ask(hostile, image(64, 64, 1)), [{"role": "user", "content": hostile}]):
        marks = seeing.encode_chat(messages).count(seeing.vision.image_token_id)
        assert marks == 16 * len(images_of(messages))


def test_a_model_may_say_an_image_token(seeing):
    """Then it is a token like any other, and its probability is learned from."""
    mark = seeing.vision.image_token_id
    prompt = seeing.encode_chat(CHATS[0])
    rows = [
        Sample(prompt, (mark, 301), (0.0, 0.0), 1.0, images_of(CHATS[0])),
        Sample(seeing.encode_chat(CHATS[2]), (mark, 302), (0.0, 0.0), 1.0),
    ]
    with torch.no_grad():
        logprob, _ = seeing.logprobs(to_batch(rows, seeing.pad_id))
        inputs = official(seeing, CHATS[0])
        first = seeing.model(**inputs).logits[0, -1].log_softmax(-1)[mark]
    assert float(logprob[0, len(prompt)]) == pytest.approx(float(first), abs=2e-5)
    assert torch.isfinite(logprob).all()


def test_images_and_text_are_trained_alike(seeing):
    rows = rows_of(complete(seeing, CHATS[:2]))
    logprob, _ = seeing.logprobs(to_batch(rows, seeing.pad_id))
    logprob.sum().backward()
    for name, parameter in seeing.model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    seeing.model.zero_grad()


def test_save_and_load_keep_what_is_seen(seeing, tmp_path):
    seeing.save(tmp_path)
    again = Policy.load(str(tmp_path), "cpu")
    assert again.vision is not None
    assert again.max_length == seeing.max_length == 256
    for (name, a), (_, b) in zip(
        seeing.model.named_parameters(), again.model.named_parameters(), strict=True
    ):
        assert torch.equal(a, b), name
    assert complete(again, CHATS) == complete(seeing, CHATS)
    twin = seeing.frozen_copy()
    for ours, theirs in zip(complete(seeing, CHATS), complete(twin, CHATS), strict=True):
        assert ours.response_ids == theirs.response_ids
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
    assert not any(p.requires_grad for p in twin.model.parameters())


def test_a_model_that_reads_only_refuses_images(policy):
    with pytest.raises(
        ConfigError, match="a qwen2 cannot see: use a model of type qwen2_5_vl or qwen3_vl"
    ):
        policy.encode_chat(CHATS[0])


def test_a_chat_template_that_shows_no_images_is_named(seeing, monkeypatch):
    monkeypatch.setattr(seeing.tokenizer, "chat_template", "{{ messages[0]['role'] }}")
    with pytest.raises(ConfigError, match="shows 1 images but its chat template wrote 0"):
        seeing.encode_chat(CHATS[0])


def test_equal_images_are_kept_once():
    pixels = np.zeros((4, 4, 3), np.uint8)
    first = shared_image(pixels)
    assert shared_image(pixels.copy()) is first
    pixels[0, 0, 0] = 1
    second = shared_image(pixels)
    assert second is not first
    assert second != first
    assert first.pixels.sum() == 0, "the array that was given may be drawn into again"
    assert shared_image(np.zeros((2, 8, 3), np.uint8)) != first
    with pytest.raises(ValueError, match="read-only"):
        first.pixels[0, 0, 0] = 1
    with pytest.raises(ConfigError, match=r"image is float64 \(4, 4, 3\): expected an array"):
        shared_image(np.zeros((4, 4, 3)))


def test_texts_and_images_of_a_chat():
    assert texts_of(CHATS[3] + CHATS[2]) == [
        "lamp left lamp right wall floor target",
        "no image here: up or down",
    ]
    assert images_of(CHATS[3] + CHATS[0]) == (*images_of(CHATS[3]), *images_of(CHATS[0]))
