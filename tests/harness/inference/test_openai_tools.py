"""Calls of tools through a server of OpenAI's protocol: what is sent, read, kept and answered."""

import asyncio
import itertools
import json
import re

import pytest

from agentgyms.core.tools import Tool, Tools
from agentgyms.models.types import ServedCall
from harness.config import CONTEXTS, ServiceConfig
from harness.inference.completers import Sampling
from harness.inference.completers.openai import OpenAICompleter
from harness.reporting import run_and_report
from tests.chat_server import ChatServer, status, tool_call, unanswered
from tests.harness.evaluation_helpers import episodes, last_message, result, served

SAMPLING = Sampling(1.0, 64)
TOOLS = Tools(Tool("look", "Look around.", "look"), Tool("go", "Go.", "go {to}", {"to": "Where."}))
FIRST = {"role": "user", "content": "you", "tools": TOOLS.schemas}
IDS = itertools.count()


def ask(server, messages, **service):
    async def complete():
        completer = OpenAICompleter(
            server.model, server.url, service=ServiceConfig(timeout_s=5.0, retries=1, **service)
        )
        try:
            return await completer.complete(messages, SAMPLING, 1)
        finally:
            await completer.close()

    return asyncio.run(complete())


def by_calls(*calls, content=None):
    return lambda messages: {"content": content, "tool_calls": list(calls)}


def walker(messages):
    """Play the corridor by calls: what works now decides."""
    works = re.findall(r"^- (.*)$", last_message(messages), re.MULTILINE)
    name = next((n for n in ("open_door", "take_key") if f"{n}()" in works), "walk")
    right = 'walk(direction="right")' in works and "locked" not in last_message(messages)
    arguments = {"direction": "right" if right else "left"} if name == "walk" else {}
    call = tool_call(name, arguments, f"call-{next(IDS)}")
    return {"content": "I go on.", "tool_calls": [call]}


def confused(messages):
    """Answer wrongly in every way there is."""
    number = len(messages)
    right = tool_call("walk", {"direction": "right"}, f"a-{number}")
    ways = [
        {"content": "", "tool_calls": [right, tool_call("take_key", {}, f"b-{number}")]},
        {"content": "I wait."},
        {"content": "", "tool_calls": [tool_call("walk", '{"direction": "ri', f"a-{number}")]},
        {"content": "", "tool_calls": [tool_call("fly", {}, f"a-{number}")]},
        {"content": "", "tool_calls": [tool_call("walk", {"direction": 3}, f"a-{number}")]},
    ]
    return ways[number % len(ways)]


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_sent_and_calls_are_read(stream):
    call = tool_call("go", {"to": "shelf 1"})
    with ChatServer(by_calls(call, content="I go.")) as server:
        completion = ask(server, [FIRST], stream=stream)
    body = server.requests[0].body
    assert body["tools"] == TOOLS.schemas
    assert body["parallel_tool_calls"] is False
    assert body["messages"] == [{"role": "user", "content": "you"}]
    assert completion.calls == (ServedCall("call-1", "go", '{"to": "shelf 1"}'),)
    assert completion.finished
    assert completion.text == (
        'I go.\n<tool_call>\n{"name": "go", "arguments": {"to": "shelf 1"}}\n</tool_call>'
    )


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_without_a_word_is_no_empty_answer(stream):
    with ChatServer(by_calls(tool_call("look", ""), tool_call("look", "", "call-2"))) as server:
        completion = ask(server, [FIRST], stream=stream)
    assert [call.id for call in completion.calls] == ["call-1", "call-2"]
    assert len(server.requests) == 1


def test_the_next_request_has_the_calls_and_their_results():
    with ChatServer(by_calls(tool_call("look", {}), content="I look.")) as server:
        first = ask(server, [FIRST])
        said = {"role": "assistant", "content": first.text, "calls": first.calls}
        ask(server, [FIRST, said, {"role": "tool", "content": "a mug", "call_id": "call-1"}])
    _, said, seen = server.requests[1].body["messages"]
    assert said == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [tool_call("look", {})],
    }
    assert seen == {"role": "tool", "content": "a mug", "tool_call_id": "call-1"}


def test_without_tools_nothing_of_them_is_sent():
    with ChatServer(lambda _: "yes") as server:
        assert ask(server, [{"role": "user", "content": "you"}]).calls is None
    assert not {"tools", "parallel_tool_calls"} & server.requests[0].body.keys()
    with ChatServer(lambda _: "yes") as server:
        assert ask(server, [FIRST]).calls == ()


def test_a_server_that_takes_no_parallel_tool_calls_is_asked_without():
    fault = status(400, "Unrecognized request argument supplied: parallel_tool_calls")
    with ChatServer(by_calls(tool_call("look", {})), [fault]) as server:
        assert len(ask(server, [FIRST]).calls) == 1
    assert "parallel_tool_calls" not in server.requests[1].body


@pytest.mark.parametrize(
    "odd",
    [
        {"tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
        {"tool_calls": [{"index": 0, "id": None, "function": {"name": "look"}}]},
        {"tool_calls": [None]},
        {"tool_calls": [{"id": "x", "function": None}]},
        {"tool_calls": [{"id": "x", "function": {"name": "\ud800", "arguments": "\ud800"}}]},
    ],
)
def test_odd_calls_of_servers_are_read_as_far_as_they_go(odd):
    with ChatServer(lambda _: {"content": None, **odd}) as server:
        (call,) = ask(server, [FIRST]).calls
    assert call.id in ("call_0", "x")
    json.dumps([call.name, call.arguments]).encode()
    (call.name + call.arguments).encode()


def test_the_protocol_of_the_test_server():
    def calling(*ids):
        calls = [tool_call("look", {}, i) for i in ids]
        return {"role": "assistant", "content": "", "tool_calls": calls}

    def answer(i):
        return {"role": "tool", "content": "", "tool_call_id": i}

    assert not unanswered([{"role": "user"}, calling("a", "b"), answer("b"), answer("a")])
    assert unanswered([{"role": "user"}, calling("a", "b"), answer("b")])
    assert unanswered([{"role": "user"}, calling("a"), {"role": "user"}])
    assert unanswered([{"role": "user"}, answer("a")])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("context", CONTEXTS)
def test_an_evaluation_plays_by_calls(context, stream, tmp_path):
    settings = {"agent__style": "tools", "agent__context": context, "service__stream": stream}
    with ChatServer(walker) as server:
        folder = run_and_report.run(served(tmp_path, server, **settings, run__tasks=4))
    assert result(folder)["figures"]["success"]["mean"] == 1
    assert result(folder)["agent"]["tool_format"] == "hermes"
    (first, *_), *_ = [episode[2:] for episode in episodes(folder)]
    assert first["agent"]["answer"].startswith("I go on.\n<tool_call>\n")
    assert all(asked.body["tools"] for asked in server.requests)


@pytest.mark.parametrize("context", CONTEXTS)
def test_wrong_calls_are_answered_as_the_protocol_demands_and_never_act(context, tmp_path):
    settings = {"agent__style": "tools", "agent__context": context, "run__tasks": 2}
    with ChatServer(confused) as server:
        folder = run_and_report.run(served(tmp_path, server, **settings, env__max_turns=9))
    for _, _, *turns in episodes(folder):
        assert len(turns) == 9
        assert {turn["action"] for turn in turns} == {""}
        assert not any(turn["agent"]["valid"] for turn in turns)
    text = json.dumps([asked.body["messages"] for asked in server.requests])
    assert "Your last call was not made: " in text or "] Called: " in text


def test_calls_are_kept_in_the_cache_and_asked_for_once(tmp_path):
    settings = {"agent__style": "tools", "agent__context": "transcript", "service__cache": True}
    settings |= {"service__cache_path": str(tmp_path / "answers.sqlite"), "run__tasks": 2}
    with ChatServer(walker) as server:
        first = run_and_report.run(served(tmp_path, server, **settings, run__name="one"))
        asked = len(server.requests)
        again = run_and_report.run(served(tmp_path, server, **settings, run__name="two"))
        assert len(server.requests) == asked
    assert result(first)["figures"] == result(again)["figures"]


def test_a_server_that_leaves_calls_in_the_text_is_understood(tmp_path):
    def answer(messages):
        said = walker(messages)["tool_calls"][0]["function"]
        fields = {"name": said["name"], "arguments": json.loads(said["arguments"])}
        return f"<tool_call>\n{json.dumps(fields)}\n</tool_call>"

    with ChatServer(answer) as server:
        config = served(tmp_path, server, agent__style="tools", agent__context="transcript")
        folder = run_and_report.run(config)
    assert result(folder)["figures"]["success"]["mean"] == 1
