"""The style `tools`: experts' calls in every format, what prompts say, and messages of results."""

import asyncio
import json
from itertools import pairwise

import pytest

from agentgyms.models.types import ServedCall
from harness import prompts
from harness.evaluation.baselines.prompted import ExpertActor, RandomActor
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.prompts.tool_formats import FORMATS
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.rollout import Completion, Usage
from harness.types.task_draws import TaskDraw
from tests.harness.lamp_env import LAMPS

CORRIDOR = "agentgyms/Corridor-v0"
WORLDS = {
    "ALFWorld": ("sample", {}),
    "WebShop": ("sample", {}),
    "Sokoban": ("train", {"rooms": 12}),
    "VisualSokoban": ("train", {"rooms": 12}),
    "SearchQA": ("sample", {}),
    "AppWorld": ("sample", {}),
    "SOTOPIA": ("sample", {}),
    "Tau2": ("sample", {}),
    "Corridor": ("valid_seen", {}),
}


def agent(completer, env_id=CORRIDOR, context="window", form="hermes", window=2):
    style = prompts.load("tools", env_id, form)
    return Agent(completer, style, Sampling(), window, context)


def play(env_id, split, actor, tasks=2, **kwargs):
    pool = EnvPool(env_id, 1, 32, record=True, split=split, oracle=True, **kwargs)
    draws = [TaskDraw(task_id, 5 + i) for i, task_id in enumerate(list(pool.tasks())[:tasks])]
    rollouts = asyncio.run(collect(pool, draws, actor, seed=1, options=CollectOptions(pause_s=0)))
    pool.close()
    return rollouts


def played(answers, context="window", env_id=CORRIDOR, window=2):
    """Return an episode in which these answers are given, and the chats that they answer."""
    chats, left = [], iter(answers)

    class Answering:
        async def complete(self, messages, sampling, seed):
            chats.append([dict(message) for message in messages])
            answer = next(left)
            return answer if isinstance(answer, Completion) else Completion(answer)

    actor = agent(Answering(), env_id, context, window=window)
    (rollout,) = play(env_id, "valid_seen", actor, tasks=1, max_turns=len(answers))
    return rollout, chats


@pytest.mark.parametrize("context", ["window", "transcript"])
@pytest.mark.parametrize("form", FORMATS.names())
@pytest.mark.parametrize("name", WORLDS)
def test_the_expert_wins_every_task_in_every_format(name, form, context):
    env_id, (split, kwargs) = f"agentgyms/{name}-v0", WORLDS[name]
    rollouts = play(env_id, split, ExpertActor(agent(None, env_id, context, form)), **kwargs)
    for rollout in rollouts:
        assert rollout.success
        assert {turn.feedback for turn in rollout.turns} == {"ok"}
        answers = {turn.completion.text for turn in rollout.turns}
        assert all(("{" if form in ("hermes", "llama3") else "<tool_call>") in a for a in answers)


def test_the_expert_of_an_environment_of_ones_own_calls_its_only_tool():
    (rollout,) = play(LAMPS, "train", ExpertActor(agent(None, LAMPS)), tasks=1)
    assert rollout.success
    assert '{"name": "act", "arguments": {"action": "' in rollout.turns[0].completion.text


@pytest.mark.parametrize("name", ["ALFWorld", "WebShop", "SearchQA", "SOTOPIA", "Tau2", "Corridor"])
def test_a_random_actor_calls_tools(name):
    env_id, (split, kwargs) = f"agentgyms/{name}-v0", WORLDS[name]
    rollouts = play(env_id, split, RandomActor(agent(None, env_id)), max_turns=5, **kwargs)
    feedback = {turn.feedback for rollout in rollouts for turn in rollout.turns}
    assert not feedback & {"malformed", "inadmissible"}


CALL = '<tool_call>\n{"name": "walk", "arguments": {"direction": "right"}}\n</tool_call>'
WRONG = '<tool_call>\n{"name": "fly", "arguments": {}}\n</tool_call>'
TOLD = "Your last call was not made: there is no tool 'fly': expected one of walk, take_key, "


def test_a_transcript_offers_tools_and_answers_with_their_results():
    rollout, chats = played([CALL, WRONG, CALL * 2, "I wait.", CALL], "transcript")
    last = chats[-1]
    roles = [message["role"] for message in last]
    assert roles == ["user", *["assistant", "tool"] * 4]
    names = [tool["function"]["name"] for tool in last[0]["tools"]]
    assert names == ["walk", "take_key", "open_door"]
    assert all("tools" not in message for message in last[1:])
    assert [message["content"] for message in last[1::2]] == [CALL, WRONG, CALL * 2, "I wait."]
    results = [message["content"] for message in last[2::2]]
    assert results[0].startswith("You are 1 steps from the left end.\n\nCalls that work now:\n")
    assert '- walk(direction="left")' in results[0]
    assert results[1].startswith(TOLD)
    assert "2 tools are called at once: answer with exactly one call" in results[2]
    assert "no tool is called" in results[3]
    for chat, longer in pairwise(chats):
        assert longer[: len(chat)] == chat
    assert [turn.feedback for turn in rollout.turns] == ["ok", *["malformed"] * 3, "ok"]
    assert [turn.action for turn in rollout.turns] == ["right", "", "", "", "right"]
    keys = [turn.state_key for turn in rollout.turns]
    assert keys[1] == keys[2] == keys[3] == keys[4] != keys[0]


def test_a_window_says_what_was_wrong_in_its_history():
    _, chats = played([CALL, WRONG, CALL])
    assert [len(chat) for chat in chats] == [1, 1, 1]
    assert all(chat[0]["tools"] == chats[0][0]["tools"] for chat in chats)
    text = chats[-1][0]["content"]
    assert '[turn 1] Called: walk(direction="right")\n' in text
    assert "[turn 2] Called: there is no tool 'fly'" in text
    assert "Your last call" not in text
    _, chats = played([WRONG, CALL], window=0)
    assert TOLD in chats[-1][0]["content"]


def test_each_call_that_a_server_tells_apart_gets_its_result():
    def served(*names, text=""):
        calls = [ServedCall(f"id-{i}", name, "{}") for i, name in enumerate(names)]
        return Completion(text, calls=tuple(calls))

    right = Completion("", calls=(ServedCall("a", "walk", json.dumps({"direction": "right"})),))
    answers = [right, served("walk", "take_key"), served(text="I wait."), right]
    rollout, chats = played(answers, "transcript")
    _, first, second, both, other, third, told, asked = chats[-1]
    assert (first["role"], first["calls"]) == ("assistant", right.calls)
    assert (second["role"], second["call_id"]) == ("tool", "a")
    assert both["calls"] == answers[1].calls
    assert (other["role"], other["call_id"]) == ("tool", "id-0")
    assert "2 tools are called at once" in other["content"]
    assert (third["call_id"], third["content"]) == ("id-1", "This call was not made.")
    assert (told["role"], told["content"]) == ("assistant", "I wait.")
    assert "calls" not in told
    assert asked["role"] == "user"
    assert "no tool is called" in asked["content"]
    assert [turn.feedback for turn in rollout.turns] == ["ok", "malformed", "malformed", "ok"]


def test_the_other_styles_offer_no_tools():
    style = prompts.load("direct", CORRIDOR, "glm")
    assert style.tools is None
    scripted = ScriptedCompleter(lambda messages: "x" if "tools" in messages[0] else "")
    (rollout,) = play(CORRIDOR, "valid_seen", Agent(scripted, style, Sampling(), 2), tasks=1)
    assert {turn.completion.text for turn in rollout.turns} == {""}


@pytest.mark.parametrize("served", [False, True])
def test_a_summary_is_asked_for_where_the_result_of_the_last_call_would_be(served):
    """No call is left without its result, as servers demand it."""
    calls = (ServedCall("call-1", "walk", '{"direction": "right"}'),) if served else None
    said = Completion("" if served else CALL, calls=calls, usage=Usage(9, 9, 1))
    told = []

    class Answering:
        async def complete(self, messages, sampling, seed):
            told.append([dict(message) for message in messages])
            asked = "Your context is nearly full" in str(messages[-1]["content"])
            return Completion("I walked right.") if asked else said

    style = prompts.load("tools", CORRIDOR, "hermes")
    actor = Agent(Answering(), style, Sampling(), 0, "summary", summary_tokens=1)
    (rollout,) = play(CORRIDOR, "valid_seen", actor, tasks=1, max_turns=3)
    assert [turn.summary is not None for turn in rollout.turns] == [False, True, True]
    roles = [[message["role"] for message in chat] for chat in told]
    assert roles == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user"],
        ["user", "assistant", "tool"],
        ["user"],
    ]
    assert told[1][-1].get("call_id") == ("call-1" if served else None)
    assert "I walked right." in str(told[2][0]["content"])
    assert told[2][0]["tools"] == told[0][0]["tools"]
