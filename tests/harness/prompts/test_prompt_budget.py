"""Prompts of limited length: never longer, whole where that fits, and cut in the stated order."""

import asyncio
import functools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import prompts
from harness.inference.completers import Sampling
from harness.inference.completers.hf import HFCompleter
from harness.inference.completers.scripted import ScriptedCompleter
from harness.prompts.truncation import (
    SHORTEST_OBSERVATION,
    Cuts,
    Preamble,
    cut_middle,
    num_characters,
)
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.rollouts.views import EpisodeView
from harness.types.errors import ConfigError, ContextOverflow
from harness.types.messages import content_text, shared_image
from harness.types.rollout import Completion, StopReason, Turn
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"
SEARCH = "agentgyms/SearchQA-v0"
GOAL = "open the door"

load = functools.cache(prompts.load)


def turn(seen, said, outcome):
    return Turn(seen, "s", Completion(said, (), (7,)), said, said, "ok", 0.0, outcome, "t", 0.0)


def agent_of(context="window", window=3, style="direct", **kwargs):
    loaded = load(style, CORRIDOR)
    return Agent(
        ScriptedCompleter(lambda _: "<action>left</action>"),
        loaded,
        Sampling(),
        window,
        context,
        **kwargs,
    )


def played(agent, observations, answers=None):
    """Return the view after all but the last observation, and the prompt that comes then."""
    info = {"goal": GOAL, "admissible_actions": ["left", "right"]}
    view = EpisodeView(observations[0], observations[0], info, 50)
    for i, outcome in enumerate(observations[1:]):
        agent.messages(view)
        said = answers[i] if answers else f"<action>{'abcdefgh'[i]}</action>"
        view.turns.append(turn(view.observation, said, outcome))
        view.observation = outcome
    return view, agent.messages(view)


def text_of(messages):
    return "\n".join(content_text(message["content"]) for message in messages)


TEXTS = st.text("ab \n", min_size=1, max_size=700)


@given(
    observations=st.lists(TEXTS, min_size=1, max_size=6),
    examples=st.lists(TEXTS, max_size=3),
    reflections=st.lists(TEXTS, max_size=3),
    context=st.sampled_from(["window", "transcript"]),
    style=st.sampled_from(["direct", "think"]),
    max_prompt=st.integers(1, 5000),
)
def test_a_limited_prompt_is_short_enough_or_the_unlimited_one_or_refused(
    observations, examples, reflections, context, style, max_prompt
):
    newest = f"[{observations[-1]}]"
    observations = [*observations[:-1], newest]
    preamble = Preamble(CORRIDOR, tuple(examples), tuple(reflections))
    free = agent_of(context, style=style, preamble=preamble)
    limited = agent_of(context, style=style, preamble=preamble, max_prompt=max_prompt)
    whole_view, whole = played(free, observations)
    view = EpisodeView(whole_view.first_observation, newest, whole_view.info, 50, whole_view.turns)
    view.prompts, view.opening = whole_view.prompts[: len(view.turns)], whole_view.opening
    most = limited._largest_cuts(view)
    shortest = Cuts(most.turns, most.examples, most.reflections, SHORTEST_OBSERVATION)
    refused = ""
    try:
        messages = limited.messages(view)
    except ContextOverflow as e:
        refused = str(e)
    if refused:
        assert f"limit is {max_prompt}: raise agent.max_prompt" in refused
        assert num_characters(limited._compose(view, shortest)) > max_prompt
        return
    assert num_characters(messages) <= max_prompt
    assert [m["role"] for m in messages[::2]] == ["user"] * (len(messages) // 2 + 1)
    assert [m["role"] for m in messages[1::2]] == ["assistant"] * (len(messages) // 2)
    if num_characters(whole) <= max_prompt:
        assert (messages, view.left_out) == (whole, "")
    else:
        assert view.left_out
    shown = content_text(view.shown)
    if "observation" in view.left_out:
        assert "characters left out ...]" in shown
        assert newest[:40] in shown
        assert newest[-40:] in shown
    else:
        assert newest in shown
    assert text_of(messages[-1:]).endswith(shown)


def test_a_window_leaves_out_turns_then_examples_then_reflections_then_the_middle():
    preamble = Preamble(
        CORRIDOR, ("EX1 " + "e" * 200, "EX2 " + "e" * 50), ("OLD " + "r" * 200, "NEW")
    )
    observations = [f"OBS{i} " + "o" * 300 for i in range(4)]
    names = ("EX1", "EX2", "OLD", "NEW", "OBS0 ", "OBS1 ", "OBS2 ", "OBS3 ")
    told = {}
    view, _ = played(agent_of(), observations)
    for limit in range(2700, 0, -15):
        try:
            messages = agent_of(preamble=preamble, max_prompt=limit).messages(view)
        except ContextOverflow:
            break
        there = tuple(name for name in names if name in text_of(messages))
        assert told.setdefault(view.left_out, there) == there
    assert list(told.items()) == [
        ("", names),
        ("1 turn", names[:4] + names[5:]),
        ("2 turns", names[:4] + names[6:]),
        ("3 turns", names[:4] + names[7:]),
        ("3 turns, 1 example", ("EX1", *names[2:4], names[7])),
        ("3 turns, 2 examples", (*names[2:4], names[7])),
        ("3 turns, 2 examples, 1 reflection", (names[3], names[7])),
        ("3 turns, 2 examples, 2 reflections", names[7:]),
        ("3 turns, 2 examples, 2 reflections, the middle of the observation", names[7:]),
    ]


@pytest.mark.parametrize("style", ["direct", "think", "compact"])
def test_what_was_seen_last_stays_where_a_prompt_tells_it_as_a_turns_outcome(style):
    """SearchQA's prompts have no other place for what a search found."""
    found = [f"FIRST{i} " + "o" * 600 + f" LAST{i}" for i in range(3)]
    info = {"goal": GOAL, "admissible_actions": []}
    view = EpisodeView(GOAL, found[2], info, 9)
    for seen, outcome in zip([GOAL, *found], found, strict=False):
        view.turns.append(turn(seen, "search[door]", outcome))
    told = {}
    for limit in range(2600, 0, -40):
        agent = agent_of(max_prompt=limit)
        agent.style = load(style, SEARCH)
        try:
            (asked,) = agent.messages(view)
        except ContextOverflow:
            break
        assert num_characters([asked]) <= limit
        assert "FIRST2" in asked["content"]
        assert "LAST2" in asked["content"]
        told[view.left_out] = "characters left out ...]" in asked["content"]
    assert list(told.items()) == [
        ("", False),
        ("1 turn", False),
        ("2 turns", False),
        ("2 turns, the middle of the observation", True),
    ]


def test_a_transcript_leaves_out_its_oldest_turns_and_says_how_many():
    observations = [f"OBS{i} " + "o" * 200 for i in range(5)]
    answers = [f"<action>A{i}</action>" for i in range(4)]
    whole = played(agent_of("transcript"), observations, answers)[1]
    lengths = [len(message["content"]) for message in whole]
    line = "\n\n[2 turns left out here]\n\n"
    limit = sum(lengths) - sum(lengths[1:4]) + len(line)
    agent = agent_of("transcript", max_prompt=limit)
    view, messages = played(agent, observations, answers)
    first = whole[0]["content"] + line + whole[4]["content"]
    assert messages == [{"role": "user", "content": first}, *whole[5:]]
    assert messages[1]["token_ids"] == (7,)
    assert view.left_out == "2 turns"
    assert view.shown == whole[-1]["content"]
    view, messages = played(agent_of("transcript", max_prompt=limit - 1), observations, answers)
    assert view.left_out == "3 turns"
    assert len(messages) == 3


def test_a_transcript_without_any_earlier_turn_is_one_message():
    observations = [f"OBS{i} " + "o" * 400 for i in range(3)]
    whole = played(agent_of("transcript"), observations)[1]
    shortest = len(whole[0]["content"]) + len(whole[-1]["content"]) + 40
    view, messages = played(agent_of("transcript", max_prompt=shortest), observations)
    line = "\n\n[2 turns left out here]\n\n"
    content = whole[0]["content"] + line + whole[-1]["content"]
    assert messages == [{"role": "user", "content": content}]
    view, (message,) = played(agent_of("transcript", max_prompt=shortest - 100), observations)
    assert view.left_out == "2 turns, the middle of the observation"
    assert message["content"].count("characters left out ...]") == 2, "the first one's too"
    for mark in ("OBS0", "OBS2", GOAL):
        assert mark in message["content"]


def test_a_preamble_stands_before_every_window_and_once_before_a_transcript():
    preamble = Preamble(CORRIDOR, ("EXAMPLE",), ("NOTE",))
    for context, times in (("window", 1), ("transcript", 1)):
        view, messages = played(agent_of(context, preamble=preamble), ["a", "b", "c"])
        plain = played(agent_of(context), ["a", "b", "c"])[1]
        assert text_of(messages) == preamble.text() + text_of(plain)
        assert "EXAMPLE" not in view.shown
        assert text_of(messages).count("EXAMPLE") == times


def test_an_image_stays_in_a_prompt_that_is_cut():
    image = shared_image(np.zeros((16, 16, 3), np.uint8))
    info = {"goal": GOAL, "admissible_actions": []}
    style = prompts.load("direct", "agentgyms/VisualSokoban-v0")
    preamble = Preamble(CORRIDOR, ("EXAMPLE",))
    agent = Agent(
        ScriptedCompleter(lambda _: ""),
        style,
        Sampling(),
        0,
        "transcript",
        preamble=preamble,
        max_prompt=1300,
    )
    view = EpisodeView("o", "o", info, 9, image=image)
    for _ in range(9):
        (first, *_), shown = agent.messages(view), content_text(view.shown)
        assert [part["type"] for part in first["content"]][:2] == ["text", "image"]
        assert shown.startswith("[image]")
        view.turns.append(turn("o", "<action>up</action>", "o"))
    assert 2 <= int(view.left_out.removesuffix(" turns")) < 8


@given(st.text(min_size=0, max_size=2000), st.integers(SHORTEST_OBSERVATION, 1200))
def test_a_text_is_cut_in_its_middle(text, limit):
    cut = cut_middle(text, limit)
    assert cut_middle(text, None) == text
    if len(text) <= limit:
        assert cut == text
        return
    assert limit - 8 <= len(cut) <= limit  # the mark may have fewer digits than was allowed for
    head, _, rest = cut.partition("\n[... ")
    left_out = int(rest.split()[0])
    tail = cut[cut.index(" left out ...]\n") + len(" left out ...]\n") :]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + left_out + len(tail) == len(text)


def test_cuts_in_words():
    assert Cuts().describe() == ""
    assert Cuts(1, 2, 1, 300).describe() == (
        "1 turn, 2 examples, 1 reflection, the middle of the observation"
    )


def play(agent, **kwargs):
    pool = EnvPool(CORRIDOR, 1, 8, record=True, **kwargs)
    draws = [TaskDraw("train/free-000", 5)]
    (rollout,) = asyncio.run(collect(pool, draws, agent, seed=1, options=CollectOptions(pause_s=0)))
    pool.close()
    return rollout


def test_a_recording_says_what_was_read_and_what_was_left_out():
    asked = []

    def script(messages):
        asked.append(messages)
        return "<action>left</action>"

    preamble = Preamble(CORRIDOR, reflections=("NOTE",))
    agent = agent_of("window", 2, preamble=preamble, max_prompt=1000)
    agent.completer = ScriptedCompleter(script)
    rollout = play(agent, max_turns=4)
    said = [recorded.agent for recorded in rollout.recording.turns[1:]]
    assert [preamble.text() + s["prompt"] for s in said] == [m[0]["content"] for m in asked]
    assert [s["left_out"] for s in said] == ["", "", "", ""]
    agent.max_prompt = 400
    rollout = play(agent, max_turns=4)
    assert rollout.recording.turns[4].agent["left_out"] == "2 turns, 1 reflection"


def test_a_prompt_that_can_be_cut_no_further_ends_the_episode_or_is_refused_at_once():
    with pytest.raises(ContextOverflow, match="raise agent.max_prompt"):
        play(agent_of(max_prompt=100))
    with pytest.raises(ConfigError, match="agent.max_prompt must be at least 1 character, got 0"):
        agent_of(max_prompt=0)


def test_a_growing_record_is_lost_only_when_no_turn_can_go():
    """The first prompt alone fits, with a later one it does not."""
    agent = agent_of("transcript", window=0)
    first = num_characters(played(agent, ["You stand at the left end of a corridor."])[1])
    rollout = play(agent_of("transcript", max_prompt=first + 150), max_turns=4)
    assert rollout.stop_reason is StopReason.CONTEXT_LIMIT
    assert len(rollout.turns) == 1


def test_chats_with_missing_turns_keep_the_tokens_of_answers(policy):
    """What is left of a transcript reads as its answers were generated, to the token."""
    seen = []

    class Watching(HFCompleter):
        async def complete(self, messages, sampling, seed):
            completion = await super().complete(messages, sampling, seed)
            seen.append((messages, completion))
            return completion

    agent = Agent(
        Watching(policy),
        prompts.load("compact", CORRIDOR),
        Sampling(1.0, 6),
        0,
        "transcript",
        max_prompt=160,
    )
    rollout = play(agent, max_turns=6)
    assert len(rollout.turns) == 6
    left_out = [recorded.agent["left_out"] for recorded in rollout.recording.turns[1:]]
    assert json.dumps(left_out).count("turn") >= 2
    for messages, completion in seen:
        position = 0
        for message in messages[1::2]:
            said = message["token_ids"]
            found = [
                i
                for i in range(position, len(completion.prompt_ids))
                if completion.prompt_ids[i : i + len(said)] == said
            ]
            assert found, "an answer's tokens stand in the prompt as they were generated"
            position = found[0] + len(said)
