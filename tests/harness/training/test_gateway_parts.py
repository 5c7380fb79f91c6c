"""What a gateway reads of requests, and how it joins answers with turns."""

import json

import pytest
from click.testing import CliRunner
from small_training import SMALL

from harness.cli.main import main
from harness.config import load
from harness.config.consistency import check
from harness.training.gateway import anthropic_messages, chat_requests
from harness.training.gateway.chat_requests import ChatMessage, Refused
from harness.training.gateway.rollout_book import RolloutBook
from harness.training.gateway.token_memory import TokenMemory
from harness.training.gateway.turns_of_calls import Call, from_report
from harness.types.errors import ConfigError
from harness.types.rollout import Completion

TOOL = {"type": "function", "function": {"name": "walk", "parameters": {}}}
USER = {"role": "user", "content": "Go."}


def memory():
    return TokenMemory(lambda calls: " ".join(call.name for call in calls))


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({"messages": [USER], "n": 2}, "n"),
        ({"messages": [USER], "response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [USER], "stop": [""]}, "stop"),
        ({"messages": [USER], "max_tokens": 0}, "max_tokens"),
        ({"messages": [USER], "tools": [{}]}, ""),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": ""}]}, "messages[0].tool_call_id"),
        ({"messages": [{"role": "user", "content": [{"type": "file"}]}]}, "messages[0].content[0]"),
    ],
)
def test_a_wrong_body_is_refused_with_its_field(body, at):
    with pytest.raises(Refused) as refused:
        chat_requests.read(body)
    assert refused.value.status == 400
    assert refused.value.param == at or not at


def test_both_protocols_ask_for_the_same():
    chat = {
        "messages": [
            {"role": "system", "content": "Be quick."},
            USER,
            {"role": "assistant", "content": "So.", "tool_calls": [call("a")]},
            {"role": "tool", "tool_call_id": "a", "content": "A wall."},
        ],
        "tools": [TOOL | {"function": {"name": "walk", "description": "", "parameters": {}}}],
        "max_tokens": 9,
        "stop": ["."],
    }
    body = {
        "system": "Be quick.",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Go."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "So."},
                    {"type": "tool_use", "id": "a", "name": "walk", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "A wall."}],
            },
        ],
        "tools": [{"name": "walk", "input_schema": {}}],
        "max_tokens": 9,
        "stop_sequences": ["."],
    }
    asked = chat_requests.read(chat)
    assert asked == chat_requests.read(anthropic_messages.as_chat(body))
    assert asked.messages[2].calls[0].name == "walk"
    with pytest.raises(Refused, match="no request of the messages API"):
        anthropic_messages.as_chat({"messages": [{"role": "user", "content": [{}]}]})


def call(name):
    return {"id": name, "type": "function", "function": {"name": "walk", "arguments": "{}"}}


def test_an_answer_is_found_by_the_chat_before_it():
    own = memory()
    first = own.prompt(chat_requests.read({"messages": [USER]}))
    one = Completion("left", response_ids=(1, 2))
    own.remember(first, ChatMessage("assistant", "left"), one)
    said = {"role": "assistant", "content": " left "}
    second = own.prompt(chat_requests.read({"messages": [USER, said, USER]}))
    assert second.messages[1]["token_ids"] == (1, 2)
    other = Completion("left", response_ids=(3,))
    own.remember(second, ChatMessage("assistant", "left"), other)
    third = own.prompt(chat_requests.read({"messages": [USER, said, USER, said, USER]}))
    assert [m.get("token_ids") for m in third.messages] == [None, (1, 2), None, (3,), None]
    changed = {"role": "assistant", "content": "right"}
    fourth = own.prompt(chat_requests.read({"messages": [USER, changed, USER]}))
    assert "token_ids" not in fourth.messages[1]


def test_groups_have_their_size_and_rollouts_one_group():
    book = RolloutBook(2, memory)
    with pytest.raises(Refused, match="X-Group-Id"):
        book.open("a")
    first = book.open("a", group="g", task="t")
    assert book.open("a") is first
    with pytest.raises(Refused, match="has group 'g', got 'h'"):
        book.open("a", group="h")
    book.open("b", group="g")
    with pytest.raises(Refused, match="all of its 2"):
        book.open("c", group="g")
    book.drop("b")
    third = book.open("c", group="g")
    for one in (third, first):
        one.calls.append(Call("seen", answer=Completion("go"), weights=3))
        rollout = from_report("t", {"reward": 1}, one.calls, one.number)
        assert book.num_whole == 0
        book.finish(one, rollout)
    ((group,),) = [book.take(5)]
    assert [ended.weights for ended in group] == [3, 3]
    with pytest.raises(Refused, match="has ended"):
        book.open("a", group="g")


def test_a_report_has_a_turn_for_each_answer():
    calls = [Call("one", answer=Completion("left")), Call("two", answer=Completion("right"))]
    rollout = from_report("t", {"reward": 2.0}, calls, 0)
    assert [(t.observation, t.action, t.reward) for t in rollout.turns] == [
        ("one", "left", 0.0),
        ("two", "right", 2.0),
    ]
    assert rollout.success
    turns = [{"action": "a", "reward": 1, "state_key": "s"}, {"action": "b", "reward": 0}]
    rollout = from_report("t", {"turns": turns, "success": False, "score": 0.5}, calls, 0)
    assert (rollout.turns[0].state_key, rollout.success, rollout.score) == ("s", False, 0.5)
    for report in ({}, {"reward": "much"}, {"turns": turns[:1]}, {"points": 3, "reward": 1}):
        with pytest.raises(Refused):
            from_report("t", report, calls, 0)


def test_settings_that_choose_episodes_do_not_fit():
    own = ["rollout.gateway='127.0.0.1:8600'"]
    with pytest.raises(ConfigError, match="agent.context"):
        check(load("corridor-tiny", own))
    own.append("agent.context=transcript")
    check(load("corridor-tiny", own))
    for setting in ("rollout.dynamic_sampling=true", "method.name=rft", "rollout.gateway=here"):
        with pytest.raises(ConfigError, match=r"rollout.gateway"):
            check(load("corridor-tiny", [*own, setting]))


def test_the_command_opens_a_gateway_and_trains(tmp_path):
    """No step is taken, so it waits for no agent."""
    settings = [f"run.output='{tmp_path}'", "run.steps=0", *SMALL, "warmstart.steps=2"]
    sets = [word for one in (*settings, "eval.tasks=1") for word in ("--set", one)]
    done = CliRunner().invoke(main, ["gateway", "corridor-tiny", "--address", "127.0.0.1:0", *sets])
    assert done.exit_code == 0, done.output
    assert "agents ask the policy at http://127.0.0.1:0/v1\n" in done.output
    (folder,) = tmp_path.iterdir()
    assert "'gateway': '127.0.0.1:0'" in str(json.loads((folder / "config.json").read_text()))
