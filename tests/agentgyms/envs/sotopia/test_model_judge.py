"""A judge that is a model: what it is asked, and that no fault of it becomes a score."""

import json

import chat_server as faults
import pytest
from chat_server import ChatServer
from talking import ADA, BO, DIALOGUE, LONG, MEETING, SCORES, in_turn, model, rated, verdict

from agentgyms.core.errors import BadOption
from agentgyms.envs.sotopia import render
from agentgyms.envs.sotopia.llm import prompts
from agentgyms.envs.sotopia.llm.participants import ModelJudge
from agentgyms.models.sync_client import SyncChatClient
from agentgyms.models.types import Service

GOOD = json.dumps(rated())
OVER = json.dumps(rated(SCORES | {"goal": 11}))

pytestmark = pytest.mark.usefixtures("short_pauses")


def test_it_sees_everything_and_its_ratings_are_returned():
    with ChatServer(in_turn(GOOD)) as server:
        given = verdict(server)
    (asked,) = server.requests
    assert [rating.scores for rating in given.ratings] == [SCORES, SCORES]
    assert given.usage.calls == 1
    assert given.usage.cost > 0
    (message,) = asked.body["messages"]
    assert message["content"] == prompts.judge_prompt(MEETING, DIALOGUE)
    assert message["content"].startswith(
        render.judge_history(MEETING, DIALOGUE) + ",\nBased on previous"
    )
    assert all(person.secret in message["content"] for person in (ADA, BO))
    assert "Do you like {agent}s?" in message["content"]


@pytest.mark.parametrize("first", [OVER, "I would say 8.", GOOD[:-2], "{}", ""])
def test_an_unusable_answer_is_repaired_once(first):
    said = {"content": first, "finish_reason": "length"}
    with ChatServer(in_turn(said, f"```json\n{GOOD}\n```")) as server:
        given = verdict(server)
    assert given.ratings[0].scores == SCORES
    assert (given.reason, given.usage.calls) == ("", 2)
    assert server.requests[1].body["messages"][-1]["content"].endswith(prompts.ratings_schema())


def test_the_repair_tells_exactly_what_is_wrong():
    with ChatServer(in_turn(OVER, GOOD)) as server:
        verdict(server)
    told = server.requests[1].body["messages"]
    assert told[1] == {"role": "assistant", "content": OVER}
    wrong = '"goal" in "agent_1_evaluation" must be an integer from 0 to 10: 11.'
    assert told[2]["content"].startswith(f"Your answer cannot be used: {wrong}\n")


@pytest.mark.parametrize("said", [OVER, "I would say 8.", "{}", "<think>", "[8, 8]"])
def test_two_unusable_answers_are_no_rating(said):
    with ChatServer(lambda messages: said) as server:
        given = verdict(server)
    assert given.ratings is None
    assert given.reason.startswith("the judge's answer cannot be used: ")
    assert len(given.reason.splitlines()) == 1
    assert given.usage.calls == 2


def test_an_episode_without_a_rating_may_be_played_again(tmp_path):
    kept = {"cache": True, "cache_path": str(tmp_path / "answers.sqlite")}
    with ChatServer(in_turn(OVER, "I would say 8.", GOOD)) as server:
        assert verdict(server, **kept).ratings is None
        assert verdict(server, **kept).ratings[0].scores == SCORES
        assert verdict(server, **kept).ratings[0].scores == SCORES
    assert len(server.requests) == 3


def test_a_cut_answer_that_is_whole_is_taken():
    with ChatServer(in_turn({"content": GOOD, "finish_reason": "length"})) as server:
        assert verdict(server).ratings is not None


@pytest.mark.parametrize(
    "fault",
    [
        faults.status(429, retry_after="0"),
        faults.status(500),
        faults.stall(),
        faults.hang_up(),
        faults.cut_body(),
        faults.body(b"{"),
    ],
)
def test_faults_are_retried_and_what_stays_is_no_rating(fault):
    with ChatServer(in_turn(GOOD), [fault]) as server:
        assert verdict(server, service=Service(timeout_s=0.5, retries=1)).ratings is not None
    with ChatServer(in_turn(), lambda number, body: fault) as server:
        given = verdict(server, service=Service(timeout_s=0.5, retries=0))
    assert given.ratings is None
    assert given.reason.startswith("the judge gave no answer: ")
    assert given.usage.calls == 0


def test_a_server_that_dies_during_the_repair_leaves_no_rating_and_what_was_spent():
    down = [None, *[faults.status(500)] * 3]
    with ChatServer(in_turn(OVER), down) as server:
        given = verdict(server)
    assert given.ratings is None
    assert given.usage.calls == 1


def test_a_dialogue_that_is_too_long_is_not_rated():
    with ChatServer(in_turn(), [LONG]) as server:
        given = verdict(server)
    assert given.ratings is None
    assert "context length" in given.reason


def test_a_wrong_key_is_a_wrong_option():
    with ChatServer(in_turn(GOOD), key="secret") as server, pytest.raises(BadOption):
        verdict(server)


def test_equal_dialogues_make_equal_requests():
    with ChatServer(lambda messages: GOOD) as server:
        assert verdict(server) == verdict(server)
        verdict(server, seed=6)
        judge = ModelJudge(SyncChatClient(model(server)))
        assert judge.identity == server.model
        judge.client.close()
    first, again, other = (asked.body for asked in server.requests)
    assert first == again
    assert first["seed"] != other["seed"]
