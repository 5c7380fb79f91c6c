"""Requests to a real server on this machine, and what is made of its answers and refusals."""

import asyncio
import base64
import json
import socket
import time

import numpy as np
import pytest
from chat_server import ChatServer, body, choice, status
from server_calls import ASK, GREEDY, answering, ask, using

from agentgyms.core.images import decode_png
from agentgyms.models.endpoint import base_url, is_loopback
from harness.config import ServiceConfig, build
from harness.inference.completers import Sampling
from harness.inference.completers.openai import OpenAICompleter
from harness.types.errors import ConfigError, ModelUnavailable
from harness.types.messages import shared_image
from harness.types.rollout import Usage


def test_a_request_says_all_that_the_sampling_says():
    with ChatServer(answering()) as server:
        ask(server, sampling=Sampling(0.4, 33, 0.9), seed=2**62 + 5, extra={"top_k": 20})
    sent = server.requests[0].body
    assert sent == {
        "model": "scripted",
        "messages": ASK,
        "temperature": 0.4,
        "top_p": 0.9,
        "max_tokens": 33,
        "seed": 5,
        "n": 1,
        "top_k": 20,
    }


def test_messages_travel_without_token_ids_and_images_inside_their_address():
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    image = shared_image(pixels)
    messages = [
        {"role": "system", "content": "Play."},
        {"role": "assistant", "content": "left", "token_ids": (1, 2)},
        {
            "role": "user",
            "content": [{"type": "image", "image": image}, {"type": "text", "text": "Now?"}],
        },
    ]
    with ChatServer(answering()) as server:
        completion = ask(server, messages)
    sent = server.requests[0].body["messages"]
    assert sent[1] == {"role": "assistant", "content": "left"}
    seen, text = sent[2]["content"]
    assert text == {"type": "text", "text": "Now?"}
    kind, png = seen["image_url"]["url"].split(",")
    assert kind == "data:image/png;base64"
    assert np.array_equal(decode_png(base64.b64decode(png)), pixels)
    assert completion.images == (image,)


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_its_usage_and_its_end(stream):
    with ChatServer(answering("go to the ärmchen 🪑")) as server:
        completion = ask(server, stream=stream)
    assert completion.text == "go to the ärmchen 🪑"
    assert completion.finished
    assert completion.usage == Usage(prompt=2, response=6, calls=1)
    assert server.requests[0].body.get("stream", False) is stream


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_is_used_again(stream):
    async def one_by_one(completer):
        for seed in range(4):
            await completer.complete(ASK, GREEDY, seed)

    with ChatServer(answering()) as server:
        using(server, one_by_one, stream=stream)
        assert (len(server.requests), server.connections) == (4, 1)


def test_a_server_that_ignores_the_wish_for_a_stream_is_understood():
    def whole(handler):
        handler.asked.body["stream"] = False
        handler.reply()

    with ChatServer(answering(), faults=[whole]) as server:
        assert ask(server, stream=True).text == "go north"


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_was_cut_is_not_finished(stream):
    with ChatServer(lambda _: {"content": "go no", "finish_reason": "length"}) as server:
        completion = ask(server, stream=stream)
    assert completion.text == "go no"
    assert not completion.finished


@pytest.mark.parametrize(
    ("said", "text", "finished"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", True),
        ({"content": "up", "reasoning_content": "hm"}, "<think>\nhm\n</think>\n\nup", True),
        ({"content": "up", "reasoning": "hm"}, "<think>\nhm\n</think>\n\nup", True),
        (
            {"content": None, "reasoning_content": "hm", "finish_reason": "length"},
            "<think>\nhm",
            False,
        ),
        ({"content": "hm\n</think>\n\nup"}, "<think>hm\n</think>\n\nup", True),
        ({"content": "<think>hm</think>up"}, "<think>hm</think>up", True),
        ({"content": "up", "reasoning": {"steps": []}}, "up", True),
        ({"content": "", "finish_reason": "content_filter"}, "", False),
        ({"content": "", "usage": {"completion_tokens": 1}}, "", True),
        ({"content": None, "refusal": "I will not."}, "I will not.", True),
        ({"content": "up", "finish_reason": None}, "up", True),
        ({"content": "up up up", "finish_reason": "repetition"}, "up up up", False),
        ({"content": "\ud83e broken"}, "\ufffd broken", True),
    ],
)
def test_forms_of_answers(said, text, finished):
    with ChatServer(lambda _: said) as server:
        completion = ask(server, retries=0)
    assert (completion.text, completion.finished) == (text, finished)


def test_thoughts_come_in_streams_and_stay_in_the_cache(tmp_path):
    usage = {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 6}}
    said = {"content": "up", "reasoning_content": "the door", "usage": usage}
    with ChatServer(lambda _: said) as server:
        settings = ServiceConfig(cache_path=str(tmp_path / "answers.sqlite"), stream=True)
        for _ in range(2):
            completer = OpenAICompleter(server.model, server.url, service=settings, cached=True)
            completion = asyncio.run(_once(completer))
            assert completion.text == "<think>\nthe door\n</think>\n\nup"
            assert completion.thought_tokens == 6
    assert len(server.requests) == 1


async def _once(completer):
    try:
        return await completer.complete(ASK, GREEDY, 7)
    finally:
        await completer.close()


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": "many"}, {"prompt_tokens": -4}])
def test_usage_that_makes_no_sense_is_unknown(usage):
    with ChatServer(lambda _: {"content": "up", "usage": usage}) as server:
        assert ask(server).usage == Usage(0, 0, 1)


def test_many_requests_at_once():
    async def all_at_once(completer):
        asked = [[{"role": "user", "content": str(i)}] for i in range(64)]
        return await asyncio.gather(*(completer.complete(m, GREEDY, 0) for m in asked))

    with ChatServer(lambda messages: f"n{messages[0]['content']}", latency_s=0.2) as server:
        begin = time.monotonic()
        texts = [completion.text for completion in using(server, all_at_once)]
    assert texts == [f"n{i}" for i in range(64)]
    assert time.monotonic() - begin < 64 * 0.2 / 2


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("http://h:8000/v1/", "http://h:8000/v1"),
        ("https://h/v1/chat/completions", "https://h/v1"),
        ("https://h/api/v1beta/openai/", "https://h/api/v1beta/openai"),
        (" http://[::1]:80 ", "http://[::1]/v1"),
    ],
)
def test_addresses(url, base):
    assert base_url(url) == base


@pytest.mark.parametrize(
    "url", ["", "h:8000/v1", "localhost:8000", "ftp://h", "http://", "http://h:port", "/v1"]
)
def test_nonsense_is_no_address(url):
    with pytest.raises(ConfigError, match="expected one such as http://127"):
        OpenAICompleter("m", url)


def test_secrets_in_an_address_are_refused_and_not_repeated():
    for url in ("http://me:sesame@h/v1", "http://h/v1?key=sesame", "http://h/v1#sesame"):
        with pytest.raises(ConfigError, match="key_variable|fragment") as caught:
            OpenAICompleter("m", url)
        assert "sesame" not in str(caught.value)


def test_servers_of_this_machine_are_asked_without_a_proxy(monkeypatch):
    assert not is_loopback("http://10.0.0.1/v1")
    assert not is_loopback("https://api.example.com/v1")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for host in ("127.0.0.1", "localhost"):
        with ChatServer(answering()) as server:
            url = server.url.replace("127.0.0.1", host)
            assert ask(server, url=url, retries=0).text == "go north"


def test_hosted_servers_are_asked_through_the_proxy_of_the_environment(monkeypatch):
    with ChatServer(answering("through the proxy")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        # No such host exists: only the proxy can have answered.
        assert ask(proxy, url="http://models.invalid/v1").text == "through the proxy"


@pytest.mark.parametrize(
    "settings",
    [{"timeout_s": 0.0}, {"retries": -1}, {"requests_per_minute": 0.0}, {"tokens_per_minute": -1}],
)
def test_settings_that_cannot_be(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        OpenAICompleter("m", "http://h", service=build(ServiceConfig, settings))


def test_further_fields_that_are_set_elsewhere_are_refused():
    for extra, hint in (
        ({"temperature": 1}, "sampling.temperature"),
        ({"messages": []}, "one text"),
        ({"stop": object()}, "JSON"),
        ({"min_p": float("nan")}, "JSON"),
    ):
        with pytest.raises(ConfigError, match=hint):
            OpenAICompleter("m", "http://h", extra=extra)
    with pytest.raises(ConfigError, match=r"model.name is empty"):
        OpenAICompleter("", "http://h")


# Keys


def test_the_key_is_sent_and_written_nowhere(caplog):
    key = "sk-sesame-1234"
    with caplog.at_level("DEBUG", "agentgyms"), ChatServer(answering(), key=key) as server:

        async def work(completer):
            await completer.check()
            await completer.complete(ASK, GREEDY, 0)
            return json.dumps([completer.identity(), completer.scope(), completer.report()])

        said = using(server, work, key=f" {key}\n")
        assert server.requests[0].headers["Authorization"] == f"Bearer {key}"
        assert key not in said
        for messages in (using, ask):
            work = (lambda it: it.check(),) if messages is using else ()
            with pytest.raises(ConfigError, match="model.key_variable") as caught:
                messages(server, *work, key="sk-wrong-5678")
            assert "sk-wrong-5678" not in str(caught.value)
            assert "Incorrect API key provided: ***" in str(caught.value)
    assert key not in caplog.text


def test_no_part_of_a_key_is_left_where_words_of_a_server_are_cut():
    key = "sk-sesame-" + "1234567890" * 9
    for before in (0, 210, 290):
        told = "x" * before + f"you sent {key} " * 3
        page = body(told.encode(), "text/html")
        away = lambda it: it.send(307, b"", {"Location": f"https://h/login?key={key}"})
        for fault in (status(503, told), status(400, told), page, body([told]), away):
            with (
                ChatServer(answering(), faults=[fault]) as server,
                pytest.raises((ModelUnavailable, ConfigError)) as caught,
            ):
                ask(server, key=key, retries=0)
            assert "sk-ses" not in str(caught.value)


def test_a_key_that_no_header_may_hold_is_not_repeated():
    for key in ("sésame", "two words", "a\nb"):
        with pytest.raises(ConfigError, match="key_variable|fragment") as caught:
            OpenAICompleter("m", "http://h", key)
        assert key not in str(caught.value)


# What is asked first


def test_a_check_of_a_model_on_the_list_asks_it_nothing():
    with ChatServer(answering()) as server:
        server.listed = [{"id": "scripted", "root": "org/real-name"}]

        async def work(completer):
            before = completer.identity()
            await completer.check()
            return before, completer.identity()

        assert using(server, work) == (
            {"backend": "openai", "name": "scripted"},
            {"backend": "openai", "name": "scripted", "root": "org/real-name"},
        )
    assert server.requests == []


def test_a_check_names_the_models_that_are_there():
    with ChatServer(answering(), model="qwen2.5-7b") as server:
        with pytest.raises(ConfigError, match="knows qwen2.5-7b"):
            using(server, lambda it: it.check(), model="qwen2.5-7B-instruct")
        with pytest.raises(ConfigError, match=r"status 404.*does not exist"):
            ask(server, model="other")


def test_a_server_without_a_list_or_with_another_one_is_asked_itself():
    with ChatServer(answering()) as server:
        for listed in (None, [{"id": "/models/file.gguf"}], ["nonsense", {"id": 3}]):
            server.listed = listed
            using(server, lambda it: it.check())
    assert [asked.body["max_tokens"] for asked in server.requests] == [16, 16, 16]


def test_a_check_of_a_place_where_nothing_listens_ends_soon():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        begin = time.monotonic()
        with pytest.raises(ModelUnavailable, match=r"no server of models answers.*model\.url"):
            using(None, lambda it: it.check(), model="m", url=url, retries=20)
        assert time.monotonic() - begin < 5


def test_what_a_run_of_requests_was_like():
    faults = [status(503), choice(finish_reason="error"), None, status(429, retry_after="0")]

    async def work(completer):
        for seed in range(2):
            await completer.complete(ASK, GREEDY, seed)
        return completer.report()

    with ChatServer(answering(), faults=faults) as server:
        report = using(server, work)
    assert report.pop("waited_s") >= 0
    assert report.pop("paused_s") > 0
    assert report == {
        "requests": 5,
        "answers": 2,
        "retries": {"broken answer": 1, "status 429": 1, "status 503": 1},
        "served": ["scripted-served"],
        "fingerprints": ["fp-1"],
        "refused_fields": [],
    }
