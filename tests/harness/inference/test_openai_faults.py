"""Faults of a real server on this machine: what passes is tried again, what stays is no answer."""

import asyncio
import time
from collections.abc import Callable
from email.utils import formatdate

import pytest
from chat_server import (
    ChatServer,
    body,
    broken_stream,
    choice,
    cut_body,
    drip,
    empty,
    hang_up,
    huge,
    silent,
    stall,
    status,
)
from server_calls import ASK, GREEDY, answering, ask, using

from agentgyms.models import rate_limit
from agentgyms.models.rate_limit import RetryableError, pause_s, retry_after_s
from harness.inference.completers import Sampling
from harness.types.errors import ConfigError, ModelUnavailable

DEEP = b"[" * 100_000
ERROR_EVENT = 'data: {"error": {"message": "overloaded", "code": "server_error"}}\n\n'

FAULTS: dict[str, tuple[Callable, str]] = {
    "status 408": (status(408), "status 408"),
    "status 409": (status(409), "status 409"),
    "status 425": (status(425), "status 425"),
    "status 429": (status(429), "status 429"),
    "status 429 with a wait": (status(429, retry_after="0.01"), "status 429"),
    "status 500": (status(500), "status 500"),
    "status 503": (status(503, retry_after="0"), "status 503"),
    "status 529": (status(529), "status 529"),
    "a page of a proxy": (body(b"<html>Bad gateway</html>", "text/html", 502), "status 502"),
    "a page": (body(b"<html>Welcome</html>", "text/html"), "broken answer"),
    "nothing at all": (body(b""), "broken answer"),
    "another JSON": (body([1, 2]), "broken answer"),
    "JSON without end": (body(b'{"choices": [{"mess'), "broken answer"),
    "JSON too deep": (body(DEEP), "broken answer"),
    "JSON in another encoding": (body('{"é": 1}'.encode("latin-1")), "broken answer"),
    "no choices": (body({"choices": [], "usage": {}}), "broken answer"),
    "no message": (body({"choices": [{"finish_reason": "stop"}]}), "broken answer"),
    "choices of another kind": (body({"choices": {"0": "text"}}), "broken answer"),
    "an error with status 200": (body({"error": {"message": "oh"}}), "error in answer"),
    "a limit with status 200": (body({"error": {"message": "oh", "code": 429}}), "status 429"),
    "an engine that failed": (choice(finish_reason="error"), "broken answer"),
    "an engine that stopped": (choice(finish_reason="abort"), "broken answer"),
    "an empty answer": (empty(), "empty answer"),
    "no content": (choice(content=None, usage={"completion_tokens": 9}), "empty answer"),
    "no content and no tokens": (choice(content=None), "empty answer"),
    "no text but tokens": (choice(content="", usage={"completion_tokens": 9}), "empty answer"),
    "a huge answer": (huge(2_000_000), "huge answer"),
    "a long answer": (huge(200 * 50 + 1), "huge answer"),
    "a connection that ends": (hang_up(), "connection"),
    "a body that breaks off": (cut_body(), "connection"),
    "silence": (stall(), "timeout"),
    "a drip": (drip(0.05), "timeout"),
}
STREAMS: dict[str, tuple[Callable, str]] = {
    "breaks off at once": (broken_stream(0), "connection"),
    "breaks off": (broken_stream(3), "connection"),
    "ends too soon": (broken_stream(3, end=True), "broken stream"),
    "is done too soon": (broken_stream(3, end=True, last="data: [DONE]\n\n"), "broken stream"),
    "has no events": (broken_stream(0, end=True), "broken stream"),
    "ends inside an event": (broken_stream(3, end=True, last='data: {"cho'), "broken answer"),
    "says an error": (broken_stream(3, end=True, last=ERROR_EVENT), "error in answer"),
    "says nothing": (empty(), "empty answer"),
    "says too much": (huge(11_000), "huge answer"),
    "stalls": (stall(), "timeout"),
    "drips": (drip(0.05), "timeout"),
}
LONG = ("a drip", "stalls", "drips")  # "silence" waits in the same way


def cases(stream, faults):
    """Return the cases of a test, those that wait long marked."""
    return [
        pytest.param(stream, *fault, marks=pytest.mark.slow if name in LONG else (), id=ident)
        for name, fault in faults.items()
        for ident in [f"a stream that {name}" if stream else name]
    ]


ALL = [*cases(False, FAULTS), *cases(True, STREAMS)]


@pytest.mark.parametrize(("stream", "fault", "cause"), ALL)
def test_a_fault_that_passes_is_tried_again_and_one_that_stays_is_no_answer(
    stream, fault, cause, monkeypatch
):
    monkeypatch.setattr(rate_limit, "TOTAL_TIMEOUTS", 1.2)
    slow = cause == "timeout"
    settings = {"stream": stream, "retries": 1, "timeout_s": 0.5 if slow else 20.0}

    async def work(completer):
        completion = await completer.complete(ASK, GREEDY, 1)
        return completion, completer.report()

    with ChatServer(answering(), faults=[fault]) as server:
        completion, report = using(server, work, **settings)
    assert completion.text == "go north"
    assert report["retries"] == {cause: 1}
    assert len(server.requests) == 2

    with ChatServer(answering(), faults=lambda *_: fault) as server:
        with pytest.raises(ModelUnavailable, match="after 2 attempts; the last one: ") as caught:
            ask(server, **settings)
        assert len(server.requests) == 2
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_ends_at_once_is_believed_when_it_stays_so(stream):
    async def work(completer):
        completion = await completer.complete(ASK, GREEDY, 1)
        return completion.text, completion.finished, completion.usage.calls, completer.report()

    with ChatServer(answering(), faults=[silent(), silent()]) as server:
        text, finished, calls, report = using(server, work, stream=stream, retries=0)
    assert (text, finished, calls) == ("go north", True, 1)
    assert report["retries"] == {"empty answer": 2}

    with ChatServer(answering(), faults=lambda *_: silent()) as server:
        text, finished, calls, _ = using(server, work, stream=stream, retries=0)
        assert len(server.requests) == 5
    assert (text, finished, calls) == ("", True, 1)


def test_the_server_says_what_ails_it():
    with (
        ChatServer(answering(), faults=[status(503, "no room on the card")]) as server,
        pytest.raises(ModelUnavailable, match="1 attempt; .*status 503: no room on the card"),
    ):
        ask(server, retries=0)


def test_a_server_that_is_not_there():
    with ChatServer(answering()) as server:
        url = server.url
    with pytest.raises(ModelUnavailable, match="the connection failed"):
        ask(server, url=url)


def test_a_stream_that_is_slow_but_goes_on_is_an_answer():
    def slowly(handler):
        events = handler.events({"content": "go to the far end"}, "stop", {})
        handler.chunked(events, pause_s=0.05)

    with ChatServer(answering(), faults=[slowly]) as server:
        assert ask(server, stream=True, timeout_s=3.0, retries=0).text == "go to the far end"


def test_a_stream_may_end_without_its_last_word_once_the_answer_has():
    def quiet(handler):
        events = handler.events({"content": "go up"}, "stop", {})
        handler.chunked([event.replace("\n", "\r\n") for event in events[:-1]])

    with ChatServer(answering(), faults=[quiet]) as server:
        assert ask(server, stream=True, retries=0).text == "go up"


def test_a_stream_that_stays_open_after_its_last_word_is_not_waited_for():
    def lingers(handler):
        handler.chunked(handler.events({"content": "go up"}, "stop", {}), end=False)
        handler.chat.closing.wait(60)

    begin = time.monotonic()
    with ChatServer(answering(), faults=[lingers]) as server:
        assert ask(server, stream=True, timeout_s=30.0, retries=0).text == "go up"
    assert time.monotonic() - begin < 15


# Waiting


def at_once(count):
    async def work(completer):
        return await asyncio.gather(*(completer.complete(ASK, GREEDY, i) for i in range(count)))

    return work


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_is_left_alone_for_as_long_as_it_asks(form):
    asked = "0.6" if form == "seconds" else formatdate(time.time() + 2, usegmt=True)
    least = 0.6 if form == "seconds" else 0.9  # dates have whole seconds
    with ChatServer(answering(), faults=[status(503, retry_after=asked)]) as server:
        ask(server)
    first, second = server.requests
    assert second.at - first.at >= least


def test_a_limit_of_one_request_makes_all_others_wait():
    async def work(completer):
        first = asyncio.create_task(completer.complete(ASK, GREEDY, 0))
        while not completer.report()["retries"]:
            await asyncio.sleep(0.005)
        await asyncio.gather(first, *(completer.complete(ASK, GREEDY, i) for i in range(1, 9)))
        return completer.report()

    with ChatServer(answering(), faults=[status(429, retry_after="0.7")]) as server:
        report = using(server, work)
    refused, *others = [asked.at for asked in server.requests]
    assert len(others) == 9
    assert min(others) - refused >= 0.7
    assert report["waited_s"] >= 8 * 0.5


def test_a_request_that_waits_its_turn_is_not_a_request_that_failed():
    unlucky = [{"role": "user", "content": "unlucky"}]
    refused = []

    def busy(number, asked):
        if asked["messages"] != unlucky or len(refused) == 3:
            return None
        refused.append(number)
        return status(429, retry_after="0.01")

    async def work(completer):
        waiting = asyncio.create_task(completer.complete(unlucky, GREEDY, 0))
        while not waiting.done():
            await completer.complete(ASK, GREEDY, 0)
        return await waiting

    with ChatServer(answering(), faults=busy) as server:
        assert using(server, work, retries=1).text == "go north"
    assert len(refused) == 3


@pytest.mark.parametrize("retry_after", [None, "0.1"])
def test_a_limit_that_nobody_told_is_found_out(retry_after):
    """One request in 0.05 s is answered; 16 are sent at once."""
    answered = []

    def limited(number, asked):
        if answered and time.monotonic() - answered[-1] < 0.05:
            return status(429, retry_after=retry_after)
        answered.append(time.monotonic())
        return None

    with ChatServer(answering(), faults=limited) as server:
        using(server, at_once(16), retries=3)
    assert len(server.requests) < 16 * 4


def test_a_server_that_asks_for_hours_is_given_up_for_now():
    begin = time.monotonic()
    with ChatServer(answering(), faults=[status(429, retry_after="7200")]) as server:

        async def work(completer):
            for _ in range(2):
                with pytest.raises(ModelUnavailable, match="asks to wait 7[12].*again later"):
                    await completer.complete(ASK, GREEDY, 0)

        using(server, work)
    assert len(server.requests) == 1
    assert time.monotonic() - begin < 10


def spans(server):
    times = [asked.at for asked in server.requests]
    return times[-1] - times[0]


def test_no_more_requests_than_allowed():
    with ChatServer(answering()) as server:
        using(server, at_once(6), requests_per_minute=600.0)
    assert spans(server) >= 5 * 0.1 - 0.05


def test_no_more_tokens_than_allowed_and_time_given_back_for_short_answers():
    prompt = [{"role": "user", "content": "x" * 40}]
    used = {"prompt_tokens": 10, "completion_tokens": 10}

    async def one_by_one(completer):
        for seed in range(3):
            await completer.complete(prompt, Sampling(0.0, 990), seed)

    with ChatServer(lambda _: {"content": "up", "usage": used}) as server:
        begin = time.monotonic()
        # 1000 tokens are expected and take 3 s; 20 are used.
        using(server, one_by_one, tokens_per_minute=20_000.0)
        assert spans(server) >= 2 * 20 * 60 / 20_000 - 0.02
        assert time.monotonic() - begin < 3


def test_tokens_that_are_expected_hold_back_those_that_come_at_once():
    with ChatServer(lambda _: "up", latency_s=0.3) as server:
        using(server, at_once(3), tokens_per_minute=50 * 60 / 0.1)  # each takes 0.1 s
    assert spans(server) >= 0.15


def test_pauses_grow_and_depend_on_the_seed_alone():
    fault = RetryableError("status 500", "no")
    pauses = [pause_s(fault, attempt, 7, 0.5) for attempt in range(1, 30)]
    assert pauses == [pause_s(fault, attempt, 7, 0.5) for attempt in range(1, 30)]
    assert pauses != [pause_s(fault, attempt, 8, 0.5) for attempt in range(1, 30)]
    for attempt, pause in enumerate(pauses):
        assert min(0.5 * 2**attempt, 60) / 2 <= pause <= min(0.5 * 2**attempt, 60)
    asked = RetryableError("status 429", "no", 429, retry_after_s=3.0)
    assert 3 <= pause_s(asked, 1, 7, 0.5) <= 3.05


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}, 0.0),
    ],
)
def test_how_servers_ask_for_a_wait(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_a_wait_until_a_date():
    seconds = retry_after_s({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert 90 < seconds <= 100


# Cancelling


def test_a_request_can_be_cancelled_and_the_others_go_on():
    async def work(completer):
        stuck = asyncio.create_task(completer.complete(ASK, GREEDY, 0))
        while not server.requests:
            await asyncio.sleep(0.005)
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck
        return await completer.complete(ASK, GREEDY, 1)

    begin = time.monotonic()
    with ChatServer(answering(), faults=[stall()]) as server:
        assert using(server, work, timeout_s=60.0).text == "go north"
    assert time.monotonic() - begin < 30


def test_a_request_that_waits_at_the_gate_can_be_cancelled():
    async def work(completer):
        await completer.complete(ASK, GREEDY, 0)
        waiting = [asyncio.create_task(completer.complete(ASK, GREEDY, i)) for i in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()  # it holds the place at the front
        done = await asyncio.gather(*waiting, return_exceptions=True)
        return [type(one).__name__ for one in done]

    with ChatServer(answering()) as server:
        kinds = using(server, work, requests_per_minute=200.0)
    assert kinds == ["CancelledError", "Completion", "Completion"]
    assert len(server.requests) == 3


def test_a_time_limit_around_it_stays_a_time_limit():
    async def work(completer):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await completer.complete(ASK, GREEDY, 0)

    with ChatServer(answering(), faults=[stall()]) as server:
        using(server, work, timeout_s=60.0)


def test_a_refusal_amid_faults_ends_the_attempts():
    with ChatServer(answering(), faults=[status(503), status(404, "gone")]) as server:
        with pytest.raises(ConfigError, match="gone"):
            ask(server)
        assert len(server.requests) == 2
