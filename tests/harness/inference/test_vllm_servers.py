"""Requests to servers of vLLM that are busy, fail, or have older weights, each told what to do."""

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.inference.completers import Sampling
from harness.inference.completers.vllm_server import VLLMServer
from harness.inference.completers.vllm_servers import VLLMServersCompleter
from harness.inference.vllm_generators import await_start
from harness.types.errors import ConfigError, ContextOverflow, ModelUnavailable, TrainingError

CHAT = [{"role": "user", "content": "go"}]


def choice(version="now", reason="stop"):
    content = [{"token_id": 7, "logprob": -0.5}]
    spans = [{"version": version, "start": 0, "end": 1}]
    return 200, {
        "choices": [
            {
                "token_ids": [7],
                "finish_reason": reason,
                "logprobs": {"content": content},
                "weight_versions": spans,
            }
        ]
    }


@contextmanager
def serving(*answers):
    """Serve answers one after the other, the last one again and again; yield what is asked too."""
    told, asked = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body, *headers = told.pop(0) if len(told) > 1 else told[0]
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_): ...

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    try:
        server = VLLMServer(f"http://127.0.0.1:{httpd.server_port}/v1/")
        server.version = "now"
        yield server, asked
    finally:
        httpd.shutdown()
        httpd.server_close()


def completer_of(policy, servers, restore=lambda server: None, patience_s=5.0, max_length=64):
    completer = VLLMServersCompleter(
        servers, policy.chat_tokenizer, max_length, 8, restore, patience_s
    )
    completer.version = "now"
    return completer


def answers(completer, count=1):
    async def everything():
        calls = [completer.complete(CHAT, Sampling(0.5, 4), 2**64 + i) for i in range(count)]
        return await asyncio.gather(*calls)

    return asyncio.run(everything())


def mends(server):
    server.version = "now"


def gone(server):
    raise ModelUnavailable("nobody is there")


def test_tokens_go_in_and_come_out(policy):
    with serving(choice()) as (server, asked):
        (answer,) = answers(completer_of(policy, [server]))
    assert asked[0]["token_ids"] == list(answer.prompt_ids) == list(policy.encode_chat(CHAT))
    sampling = asked[0]["sampling_params"]
    assert (sampling["temperature"], sampling["max_tokens"]) == (0.5, 4)
    assert 0 <= sampling["seed"] < 2**63
    assert sampling["stop_token_ids"] == sorted(policy.stop_ids)
    assert (answer.response_ids, answer.logprobs, answer.finished) == ((7,), (-0.5,), True)


def test_a_thought_at_its_limit_is_closed_and_asked_on(policy, monkeypatch):
    """The second request has the prompt, the thought and the tokens that close it."""
    monkeypatch.setattr(policy.chat_tokenizer.chat_encoder, "_prefill_of", lambda *_: "<think>\n")
    closing = policy.encode("\n</think>\n\n")
    sampling = Sampling(0.5, 40, max_thought_tokens=1)
    with serving(choice(reason="length"), choice()) as (server, asked):
        completer = completer_of(policy, [server], max_length=100)
        answer = asyncio.run(completer.complete(CHAT, sampling, 3))
    assert [one["sampling_params"]["max_tokens"] for one in asked] == [1, 39 - len(closing)]
    assert asked[1]["token_ids"] == [*answer.prompt_ids, 7, *closing]
    assert answer.response_ids == (7, *closing, 7)
    assert answer.logprobs == (-0.5, -0.5)
    assert (answer.inserted, answer.finished) == ((1, 1 + len(closing)), True)


def test_a_server_that_does_not_start_is_waited_for_and_named():
    nobody = VLLMServer("http://127.0.0.1:9")
    begun = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r":9 does not answer.*leave it out"):
        await_start(nobody, 0.2)
    assert time.monotonic() - begun >= 0.2


def test_requests_are_spread(policy):
    with serving(choice()) as (one, asked), serving(choice()) as (two, others):
        assert len(answers(completer_of(policy, [one, two]), 8)) == 8
    assert len(asked) == len(others) == 4


def test_a_busy_server_is_left_in_peace_for_as_long_as_it_asks(policy):
    busy = [
        (status, {"error": {"message": "busy"}}, ("Retry-After", "0.05")) for status in (429, 503)
    ]
    with serving(*busy * 4, choice()) as (server, asked):
        assert answers(completer_of(policy, [server], gone))[0].text is not None
    assert len(asked) == 9
    with serving((429, {}, ("Retry-After", "9"))) as (server, _), serving(choice()) as (free, _):
        free.in_flight = 3  # the busy one is asked first
        assert answers(completer_of(policy, [server, free], gone))


def test_another_server_takes_over_what_one_failed_to_answer(policy):
    failing = serving((500, {"error": {"message": "the engine died"}}))
    with failing as (dead, asked), serving(choice()) as (alive, _):
        assert len(answers(completer_of(policy, [dead, alive], gone), 6)) == 6
        assert len(asked) <= 6
        assert not dead.version


@pytest.mark.parametrize("first", [choice("default"), choice(reason="abort")])
def test_answers_with_other_weights_or_broken_off_are_thrown_away(policy, first):
    mended = []

    def restore(server):
        mended.append(server)
        mends(server)

    with serving(first, choice()) as (server, asked):
        assert answers(completer_of(policy, [server], restore))[0].finished
    assert (len(asked), mended) == (2, [server])


def test_a_server_that_stays_away_costs_the_episode(policy):
    with serving((500, {})) as (server, _):
        with pytest.raises(
            ModelUnavailable, match=r"no vLLM server could be used.*nobody is there"
        ):
            answers(completer_of(policy, [server], gone, patience_s=0.3))
        with pytest.raises(ModelUnavailable, match="after 5 attempts"):
            answers(completer_of(policy, [server], mends))


def test_what_trying_again_cannot_mend_is_raised(policy):
    def wrong(server):
        raise TrainingError("other weights")

    with serving((400, {"error": {"message": "top_p must be in (0, 1]"}})) as (server, _):
        with pytest.raises(ConfigError, match="top_p must be"):
            answers(completer_of(policy, [server]))
        with pytest.raises(ContextOverflow, match="exceed the limit"):
            answers(completer_of(policy, [server], max_length=5))
        server.version = ""
        with pytest.raises(TrainingError, match="other weights"):
            answers(completer_of(policy, [server], wrong))
    old = choice()
    old[1]["choices"][0]["weight_versions"] = None
    refused = pytest.raises(ConfigError, match="does not say which weights")
    with serving(old) as (server, _), refused:
        answers(completer_of(policy, [server]))
    with pytest.raises(ConfigError, match="no address"):
        VLLMServer("127.0.0.1:8000")
