"""Notes in `<memory>`: what counts as one, and where the model reads it again."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import prompts
from harness.config import Config, EvaluationConfig, build, check, check_evaluation
from harness.inference.completers import Sampling
from harness.inference.completers.scripted import ScriptedCompleter
from harness.prompts.answers import outside_thoughts
from harness.prompts.scratchpad import notes_in, without_notes
from harness.prompts.truncation import Preamble
from harness.rollouts.agent import Agent
from harness.rollouts.collect import collect
from harness.rollouts.env_pool import EnvPool
from harness.rollouts.groups import CollectOptions
from harness.types.errors import ConfigError
from harness.types.task_draws import TaskDraw

CORRIDOR = "agentgyms/Corridor-v0"


@pytest.mark.parametrize(
    ("text", "notes", "rest"),
    [
        ("<memory> key left </memory><action>go</action>", "key left", "<action>go</action>"),
        ("<memory>a</memory>x<MEMORY>b</Memory>y", "b", "xy"),
        ("<memory></memory>go", "", "go"),
        ("go", None, "go"),
        ("<memory>a <action>go</action>", None, "<memory>a <action>go</action>"),
        ("a</memory>go", None, "a</memory>go"),
        ("<memory>a<memory>b</memory>c", "ab", "c"),
        ("<think><memory>a</memory></think>go", None, "<think><memory>a</memory></think>go"),
        ("<think>x</think><memory>a</memory>go", "a", "<think>x</think>go"),
        ("<memory>a</memory></think><memory>b</memory>go", "b", "<memory>a</memory></think>go"),
        ("<think><memory>a</memory>", None, "<think><memory>a</memory>"),
        ("<memory><action>no</action></memory><action>go</action>", "<action>no</action>",
         "<action>go</action>"),
    ],
)  # fmt: skip
def test_what_counts_as_notes(text, notes, rest):
    assert notes_in(text) == notes
    assert without_notes(text) == rest


PIECES = ["<memory>", "</memory>", "<think>", "</think>", "<action>", "</action>", "go", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_answer_is_read_and_thoughts_stay(text):
    rest, notes = without_notes(text), notes_in(text)
    assert (notes is None) == (rest == text)
    assert len(rest) <= len(text)
    assert notes is None or "<memory>" not in notes
    if notes is not None:
        assert "</memory>" in outside_thoughts(text)


def test_an_answer_of_tags_alone_takes_no_minutes():
    begun = time.process_time()
    assert notes_in("<memory>" * 200_000) is None
    assert time.process_time() - begun < 20


def played(answers, scratchpad, style="think"):
    asked = []

    def answer(messages):
        asked.append(messages[-1]["content"])
        return answers[len(asked) - 1]

    pool = EnvPool(CORRIDOR, 1, 8, max_turns=len(answers))
    task_id = pool.take().envs[0].tasks[0]
    agent = Agent(
        ScriptedCompleter(answer),
        prompts.load(style, CORRIDOR),
        Sampling(),
        1,
        preamble=Preamble(CORRIDOR),
        scratchpad=scratchpad,
    )
    options = CollectOptions(pause_s=0)
    (rollout,) = asyncio.run(collect(pool, [TaskDraw(task_id, 5)], agent, seed=1, options=options))
    return asked, rollout


ANSWERS = [
    "<think>x</think><memory>the door is locked</memory><action>look</action>",
    "<think>x</think><action>look</action>",
    "<think>x</think><memory>the key is left of the box, I think</memory><action>look</action>",
    "<think>x</think><action>look</action>",
]


def test_later_prompts_show_the_last_notes_at_most_so_many_characters():
    asked, rollout = played(ANSWERS, 20)
    shown = [text.split("only you can change:\n")[1].split("\n")[0] for text in asked]
    assert shown == [
        "(none yet)",
        "the door is locked",
        "the door is locked",
        "the key is left of t",
    ]
    assert all("at most 20 characters, between <memory> and </memory>" in text for text in asked)
    assert [turn.action for turn in rollout.turns] == ["look"] * 4
    assert [turn.completion.text for turn in rollout.turns] == ANSWERS, "part of what is trained"


def test_without_a_scratchpad_prompts_and_answers_are_as_they_were():
    asked, rollout = played(["<memory>a</memory><action>look</action>"], 0)
    assert "memory" not in asked[0]
    assert rollout.turns[0].action == "look"


def test_notes_are_for_the_window():
    values = {"agent": {"context": "transcript", "scratchpad": 9}, "warmstart": {"episodes": 1}}
    with pytest.raises(ConfigError, match=r"agent\.scratchpad = 9 is for .*'window'"):
        check(build(Config, values))
    del values["warmstart"]
    with pytest.raises(ConfigError, match=r"agent\.scratchpad = 9 is for .*'window'"):
        check_evaluation(build(EvaluationConfig, values))
