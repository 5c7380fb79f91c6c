"""A partner that is a model: what it is asked, what its answers mean, and what faults do."""

import json
import math

import chat_server as faults
import pytest
from chat_server import ChatServer
from talking import ADA, BO, DIALOGUE, LONG, MEETING, in_turn, model, reply, saying

from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.envs.sotopia import render
from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Kind
from agentgyms.envs.sotopia.llm import prompts
from agentgyms.envs.sotopia.llm.participants import ModelPartner
from agentgyms.models.sync_client import SyncChatClient
from agentgyms.models.types import Service

NO = Act(Kind.SPEAK, "No, 60.")

pytestmark = pytest.mark.usefixtures("short_pauses")


def test_it_is_asked_with_its_own_view_and_its_act_is_returned():
    with ChatServer(in_turn(saying("speak", "No, 60."))) as server:
        replied = reply(server)
    (asked,) = server.requests
    assert replied.act == NO
    assert not replied.malformed
    assert asked.body["messages"] == [
        {"role": "user", "content": prompts.agent_prompt(MEETING, DIALOGUE, seat=1)}
    ]
    assert (asked.body["temperature"], asked.body["max_tokens"]) == (0.7, 512)


def test_the_prompt_tells_who_where_and_when_and_keeps_braces():
    prompt = prompts.agent_prompt(MEETING, DIALOGUE, seat=1)
    assert prompt.startswith("Imagine you are Bo Lind, your task is to act/speak as Bo Lind would")
    assert f"\n{render.history(MEETING, DIALOGUE, 1)}.\nYou are at Turn #3. Your avail" in prompt
    assert "types are\nnone speak non-verbal communication action leave.\nNote" in prompt
    assert "Do you like {agent}s?" in prompt
    assert ADA.secret not in prompt
    assert BO.secret in prompt
    assert json.loads(prompt.splitlines()[-1])["required"] == ["action_type", "argument"]


def test_what_it_spent_is_counted_with_the_repair():
    said = in_turn(
        {"content": "I refuse.", "usage": {"prompt_tokens": 100, "completion_tokens": 10}},
        {"content": "leave", "usage": {"prompt_tokens": 200, "completion_tokens": 5}},
    )
    with ChatServer(said) as server:
        usage = reply(server).usage
    assert (usage.prompt, usage.response, usage.calls) == (300, 15, 2)
    assert usage.cost == pytest.approx((300 * 2 + 15 * 8) / 1e6)


def test_without_prices_the_cost_is_not_known():
    with ChatServer(in_turn("leave")) as server:
        assert math.isnan(reply(server, price_prompt=None).usage.cost)


def test_an_unusable_answer_is_asked_for_again_with_what_was_wrong():
    shouted = saying("shout", "NO!")
    with ChatServer(in_turn(shouted, f"```json\n{saying('speak', 'No, 60.')}\n```")) as server:
        replied = reply(server)
    first, second = (asked.body for asked in server.requests)
    assert replied.act == NO
    assert not replied.malformed
    assert second["messages"][0] == first["messages"][0]
    assert second["messages"][1] == {"role": "assistant", "content": shouted}
    assert '"action_type" must be one of "none", "speak"' in second["messages"][2]["content"]
    assert second["messages"][2]["content"].endswith(prompts.action_schema())
    assert second["seed"] != first["seed"]


@pytest.mark.parametrize(
    "said", ["Hm.", saying("speak"), "<think>", '{"action_type": "speak", "argu']
)
def test_two_unusable_answers_are_nothing_and_malformed(said):
    with ChatServer(lambda messages: said) as server:
        replied = reply(server)
    assert (replied.act, replied.malformed, replied.usage.calls) == (NOTHING, True, 2)


@pytest.mark.parametrize(
    "said",
    [
        {"content": "", "finish_reason": "content_filter"},
        {"content": "", "finish_reason": "length"},
    ],
)
def test_no_words_are_asked_for_again_without_an_empty_turn(said):
    with ChatServer(in_turn(said, "none")) as server:
        replied = reply(server)
    assert (replied.act, replied.malformed) == (NOTHING, False)
    assert [message["role"] for message in server.requests[1].body["messages"]] == ["user"]


def test_a_filter_that_refuses_with_a_status_makes_the_turn_malformed():
    refused = faults.status(400, "The prompt is filtered.", code="content_filter")
    with ChatServer(in_turn(), [refused, refused]) as server:
        assert reply(server).malformed


def test_equal_dialogues_make_equal_requests_and_others_do_not():
    with ChatServer(lambda messages: "none") as server:
        for seed in (5, 5, 6):
            reply(server, seed=seed)
        reply(server, DIALOGUE[:1])
    first, again, other, shorter = (asked.body for asked in server.requests)
    assert first == again
    assert first | {"seed": 0} == other | {"seed": 0}
    assert len({first["seed"], other["seed"], shorter["seed"]}) == 3


@pytest.mark.parametrize(
    "fault",
    [
        faults.status(429, retry_after="0"),
        faults.status(500),
        faults.stall(),
        faults.hang_up(),
        faults.cut_body(),
        faults.body(b"<html>"),
        faults.body({"choices": []}),
        faults.empty(),
    ],
)
def test_faults_are_retried(fault):
    with ChatServer(lambda messages: "leave", [fault]) as server:
        replied = reply(server, service=Service(timeout_s=0.5, retries=2))
    assert (replied.act.kind, replied.usage.calls) == (Kind.LEAVE, 1)
    assert len(server.requests) == 2


def test_a_server_that_stays_down_is_unavailable_and_may_be_asked_again():
    with ChatServer(in_turn("leave"), [faults.status(503)] * 3) as server:
        partner = ModelPartner(SyncChatClient(model(server)))
        with pytest.raises(EnvUnavailable, match="after 3 attempts"):
            partner.reply(MEETING, None, DIALOGUE, 1, 5)
        assert partner.reply(MEETING, None, DIALOGUE, 1, 5).act.kind is Kind.LEAVE
        assert partner.identity == server.model
        partner.client.close()


def test_a_model_that_the_server_does_not_have_is_a_wrong_option():
    with ChatServer(in_turn("leave")) as server:
        server.model = "another"
        client = SyncChatClient(model(server))
        server.model = "scripted"
        with pytest.raises(BadOption, match="another"):
            ModelPartner(client).reply(MEETING, None, DIALOGUE, 1, 5)
        client.close()


def test_a_dialogue_that_becomes_too_long_for_the_model_makes_its_turns_malformed():
    with ChatServer(in_turn(), [LONG]) as server:
        replied = reply(server)
    assert (replied.act, replied.malformed, replied.usage.calls) == (NOTHING, True, 0)


def test_a_context_that_is_too_long_for_the_model_is_a_wrong_option():
    with ChatServer(in_turn(), [LONG]) as server, pytest.raises(BadOption, match="context length"):
        reply(server, DIALOGUE[:1])


def test_a_repair_that_does_not_fit_leaves_the_turn_malformed():
    with ChatServer(in_turn("Hm."), [None, LONG]) as server:
        replied = reply(server)
    assert (replied.malformed, replied.usage.calls) == (True, 1)


def test_answers_are_kept(tmp_path):
    kept = {"cache": True, "cache_path": str(tmp_path / "answers.sqlite")}
    with ChatServer(in_turn("speak: Once.")) as server:
        assert reply(server, **kept) == reply(server, **kept)
    assert len(server.requests) == 1
