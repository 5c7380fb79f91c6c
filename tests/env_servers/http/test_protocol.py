"""Messages become JSON and come back the same; what is no message is refused by name."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from gymnasium.spaces import Box
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.core import serialization
from agentgyms.core.errors import BadRequest
from agentgyms.core.spaces import UnicodeText
from agentgyms.envs.corridor import CorridorEnv
from agentgyms.remote.protocol import framing, messages
from env_servers.sessions import task_pages

texts = st.text(st.characters(), max_size=20)  # lone surrogates included
numbers = st.one_of(st.floats(allow_infinity=False), st.just(math.nan))


def _travel(message):
    """Return a message after a journey as bytes."""
    line = serialization.dumps(framing.write(message))
    assert line.isascii()
    return framing.read(type(message), json.loads(line.encode()), "message")


@given(action=texts, turn=st.integers(), episode=st.none() | st.integers())
def test_steps_travel(action, turn, episode):
    message = messages.Step(action, turn, episode)
    assert _travel(message) == message


@given(seed=st.none() | st.integers(0, 2**200), task_id=texts)
def test_resets_travel(seed, task_id):
    message = messages.Reset(seed, {"task_id": task_id})
    assert _travel(message) == message


@given(observation=texts, reward=numbers, progress=numbers, metric=numbers)
def test_turns_travel(observation, reward, progress, metric):
    _, info = CorridorEnv().reset(seed=0)
    info |= {"progress": progress, "metrics": {"m": metric}, "goal": observation}
    back = _travel(messages.Turn(observation, reward, True, False, info, 3))
    assert back.observation == observation
    decoded = serialization.decode_info(back.info)
    assert repr(serialization.decode_number(back.reward)) == repr(reward)
    assert repr(decoded["progress"]) == repr(progress)
    assert repr(decoded["metrics"]) == repr({"m": metric} if metric == metric else {})
    unknown = {**back.info, "metrics": {"m": None, "n": 1}}
    assert serialization.decode_info(unknown)["metrics"] == {"n": 1.0}


def test_tasks_and_descriptions_travel():
    env = CorridorEnv(split="sample")
    listed = task_pages.page(env.tasks, messages.ListTasks())
    assert framing.read_tasks(_travel(listed)) == env.tasks.part(0, 4)
    described = json.loads(json.dumps(framing.describe(env)))
    read = framing.read(messages.Description, described, "x")
    assert (read.max_turns, read.data_source) == (20, "")
    assert framing.read_space(described["action_space"]) == env.action_space


@pytest.mark.parametrize("pair", [["a"], ["a", 1], "ab", ["a", "b", "c"], None])
def test_what_is_no_task(pair):
    with pytest.raises(BadRequest, match="pair"):
        framing.read_tasks(messages.Tasks("train", [pair]))


def test_spaces_without_a_form():
    for space in (Box(0, 1), Box(0, 255, (2, 2, 4), np.uint8), Box(0, 9, (2, 2, 3), np.uint8)):
        with pytest.raises(TypeError, match="no wire form for the space .*Box"):
            framing.write_space(space)
    for value in ({}, {"type": "Box"}, {"type": "UnicodeText", "max_length": "8"}):
        with pytest.raises(BadRequest, match="space"):
            framing.read_space(value)
    assert framing.read_space({"type": "UnicodeText", "max_length": 8}) == UnicodeText(8)


def test_a_newer_server_may_say_more():
    value = {"session_id": "x", "ttl_s": 1, "episode": 0, "environment": {}, "new": 1}
    assert framing.read_reply(messages.Opened, value, "reply").session_id == "x"
    with pytest.raises(BadRequest, match="'new'"):
        framing.read(messages.Opened, value, "request")
    del value["episode"]
    with pytest.raises(BadRequest, match="'episode' \\(an integer\\)"):
        framing.read_reply(messages.Opened, value, "reply")


def test_an_integer_of_json_schema_may_have_a_fraction_of_zero():
    asked = framing.read(messages.Reset, {"seed": 780.0, "episode": -0.0}, "request")
    assert (asked.seed, type(asked.seed), asked.episode) == (780, int, 0)
    turn = framing.read(messages.Step, {"action": "look", "turn": 3.0}, "request").turn
    assert (turn, type(turn)) == (3, int)
    for bad in (780.5, "780", True):
        with pytest.raises(BadRequest, match="'seed' in the request must be an integer or null"):
            framing.read(messages.Reset, {"seed": bad}, "request")
    limits = {
        "max_sessions": 2.0,
        "ttl_s": 9.0,
        "max_body_bytes": 1,
        "max_batch": 1,
        "max_tasks": 1,
    }
    read = framing.read_reply(messages.Limits, limits, "reply")
    assert (type(read.max_sessions), type(read.ttl_s)) == (int, float)
