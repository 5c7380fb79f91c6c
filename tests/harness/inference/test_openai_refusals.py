"""Requests that a server of these tests refuses: what is adapted, and what raises at once."""

import asyncio

import numpy as np
import pytest
from chat_server import ChatServer, body, status
from server_calls import ASK, GREEDY, answering, ask, using

from agentgyms.models.error_replies import classify_error, redact
from harness.inference.completers import Sampling
from harness.types.errors import ConfigError, ContextOverflow
from harness.types.messages import shared_image


@pytest.mark.parametrize(
    "refusal",
    [
        status(
            400,
            "This model's maximum context length is 64 tokens. However, your prompt contains at "
            "least 65 input tokens",
        ),
        status(
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum "
            "context length is 64 tokens",
        ),
        status(400, "too much", code="context_length_exceeded"),
        status(400, "request (4390 tokens) exceeds the available context size (4096 tokens)"),
        status(500, "Context size has been exceeded."),
        status(400, "The input (99 tokens) is longer than the model's context length (64 tokens)."),
        status(413, "prompt is too long: 9 tokens > 8 maximum"),
        body(
            [{"error": {"message": "input token count (9) exceeds the maximum number of tokens"}}],
            code=400,
        ),
        body({"error": {"code": 400, "type": "exceed_context_size_error", "message": "no"}}),
        status(400, "x" * 400 + " maximum context length is 64 tokens"),
        status(400, "failed", metadata={"raw": "the maximum context length is 64 tokens"}),
    ],
)
def test_a_prompt_that_is_too_long(refusal):
    with (
        ChatServer(answering(), faults=[refusal] * 5) as server,
        pytest.raises(ContextOverflow, match="scripted: "),
    ):
        ask(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("refusal", "hint"),
    [
        (status(400, "temperature must be at most 2", param="temperature"), "sampling"),
        (status(401, "who?"), "model.key_variable"),
        (status(402, "pay"), "add to it"),
        (status(403, "not you"), "what the key may use"),
        (status(404, "what?"), "ends in /v1"),
        (status(413, "Request Entity Too Large"), "model.name"),
        (status(422, "bad body"), "model.extra"),
        (status(429, "quota", code="insufficient_quota"), "run the evaluation again"),
        (body({"error": {"code": 404, "message": "gone"}}), "ends in /v1"),
        (lambda it: it.send(308, b"", {"Location": "https://h/v1"}), "redirects to https://h/v1"),
    ],
)
def test_what_trying_again_cannot_mend_raises_at_once(refusal, hint):
    with (
        ChatServer(answering(), faults=[refusal] * 5) as server,
        pytest.raises(ConfigError, match=hint) as caught,
    ):
        ask(server)
    assert len(server.requests) == 1
    assert not isinstance(caught.value, ContextOverflow)
    assert "\n" not in str(caught.value)


def test_a_prompt_that_a_filter_refuses_gets_the_empty_answer():
    refusal = status(400, "The prompt was filtered", code="content_filter")
    with ChatServer(answering(), faults=[refusal]) as server:
        completion = ask(server)
    assert (completion.text, completion.finished) == ("", False)


def refusing(**fields):
    """Return faults that refuse the fields of a request while they are in it."""

    def fault(number, asked):
        for name, refusal in fields.items():
            if name in asked:
                return refusal
        return None

    return fault


MAX_TOKENS = status(
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.",
    param="max_tokens",
    code="unsupported_parameter",
)
SEED = body({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]}, code=422)
SEED_GOOGLE = body(
    [{"error": {"code": 400, "message": 'Unknown name "seed": Cannot find field.'}}], code=400
)


@pytest.mark.parametrize("seed", [SEED, SEED_GOOGLE])
def test_fields_that_a_server_does_not_take_are_left_out_for_good(seed):
    refuse = refusing(
        seed=seed,
        max_tokens=MAX_TOKENS,
        n=status(400, "unknown field `n`"),
        top_p=status(400, "`temperature` and `top_p` cannot both be specified"),
    )

    async def work(completer):
        await asyncio.gather(*(completer.complete(ASK, GREEDY, i) for i in range(8)))
        refused = len(server.requests)
        await completer.complete(ASK, GREEDY, 9)
        return refused, completer.report()

    with ChatServer(answering(), faults=refuse) as server:
        refused, report = using(server, work, retries=0)
    assert len(server.requests) == refused + 1
    last = server.requests[-1].body
    assert last["max_completion_tokens"] == 50
    assert not {"seed", "n", "top_p", "max_tokens"} & set(last)
    assert last["temperature"] == 0.0
    assert report["refused_fields"] == ["max_tokens", "n", "seed", "top_p"]


def test_a_temperature_that_is_refused_is_left_out_only_where_it_is_1():
    refuse = refusing(temperature=status(400, "temperature is deprecated", param="temperature"))
    with ChatServer(answering(), faults=refuse) as server:

        async def work(completer):
            await completer.complete(ASK, Sampling(1.0, 50), 0)
            with pytest.raises(ConfigError, match="temperature is deprecated"):
                await completer.complete(ASK, Sampling(0.4, 50), 0)

        using(server, work)


def test_a_field_that_stays_refused_ends_with_the_refusal():
    always = status(400, "seed is not supported", param="seed")
    with ChatServer(answering(), faults=lambda *_: always) as server:
        with pytest.raises(ConfigError, match="seed is not supported"):
            ask(server)
        assert len(server.requests) == 2


LOOK = [{"type": "image", "image": shared_image(np.zeros((2, 2, 3), np.uint8))}]
SEEN = [{"role": "user", "content": [*LOOK, {"type": "text", "text": "Where to?"}]}]


@pytest.mark.parametrize(
    "refusal",
    [
        status(400, "At most 0 image(s) may be provided in one prompt."),
        status(400, "scripted is not a multimodal model"),
        status(400, "Invalid content type. image_url is only supported by certain models."),
        status(404, "No endpoints found that support image input"),
        status(422, "messages[0]: unknown variant `image_url`, expected `text`"),
        status(500, "image input is not supported - hint: you may need to provide the mmproj"),
        status(400, "messages[0].content: Input should be a valid string"),
    ],
)
def test_a_model_that_does_not_see_is_told_from_other_refusals(refusal):
    with ChatServer(answering(), faults=[refusal] * 3) as server:
        with pytest.raises(ConfigError, match="does not see images: .*model.name.*in words"):
            ask(server, SEEN)
        assert len(server.requests) == 1


def test_a_request_without_images_is_not_told_about_them():
    refusal = status(400, "image tokens are reserved")
    with (
        ChatServer(answering(), faults=[refusal]) as server,
        pytest.raises(ConfigError) as caught,
    ):
        ask(server)
    assert "does not see" not in str(caught.value)


def test_words_of_a_server_are_cut_and_on_one_line():
    for reply in ("<html>\n" * 500, {"error": "a\nb" * 500}, [], None, {"detail": [{"a": 1}]}):
        words = redact(str(classify_error(503, reply, {})), "")
        assert 0 < len(words) < 400
        assert "\n" not in words
