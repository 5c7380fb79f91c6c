"""Answers that break their format: what a person understands is done, what is ambiguous is not."""

import pytest

from harness import prompts
from harness.inference.completers import Sampling
from harness.prompts import parsing
from harness.prompts.answers import Parsed
from harness.rollouts.agent import Agent
from harness.rollouts.views import EpisodeView
from harness.types.rollout import Completion

HOUSE = ["go to shelf 1", "go to shelf 12", "open drawer 2", "look"]
NOTHING = Parsed("", valid=False)


@pytest.mark.parametrize("name", ["action_tags", "tagged"])
@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<action>Open Drawer 2.</action>", "open drawer 2"),
        ('<ACTION>"open  drawer 2"</ACTION>', "open drawer 2"),
        ("<action>- open drawer 2</action>", "open drawer 2"),
        ("<action>Action: `open drawer 2`</action>", "open drawer 2"),
        ("<action>My next action is: **look**!</action>", "look"),
        ("<action>look around</action>", "look around"),
        ("<action>look, open drawer 2</action>", "look, open drawer 2"),
    ],
)
def test_what_stands_around_an_action_does_not_count(name, text, action):
    valid = name == "action_tags"
    assert parsing.get(name).parse(text, HOUSE) == Parsed(action, valid)
    thought = parsing.get(name).parse(f"<think>I look.</think>{text}", HOUSE)
    assert thought == Parsed(action)


@pytest.mark.parametrize(
    ("text", "cut", "ended"),
    [
        ("<action>open drawer 2", "open drawer 2", "open drawer 2"),
        ("<action>go to shelf 1", "", "go to shelf 1"),  # or 12
        ("<action>go to shelf 1\nThere it is.", "go to shelf 1", "go to shelf 1"),
        ("<action>go to shelf 1</act> Done", "go to shelf 1", "go to shelf 1"),
        ("<action>look\n- open drawer 2\n- look", "", ""),  # the list of what is possible
        ("<action>jump\n\nThere", "jump", "jump"),
        ("<action>jump", "", "jump"),
        ("<action>look<action>open drawer 2", "", ""),
        ("look</action>", "", ""),
        ("open drawer 2", "open drawer 2", "open drawer 2"),
        ("Action: Open drawer 2.", "open drawer 2", "open drawer 2"),
        ("go to shelf 1", "", "go to shelf 1"),
        ("Please open drawer 2.", "open drawer 2", "open drawer 2"),
        ("look\nI look around.", "look", "look"),
        ("look\nlook", "look", "look"),
        ("- go to shelf 1\n- go to shelf 12\n- look", "", ""),
        ("I would open drawer 2", "", ""),
        ("<think>open drawer 2", "", ""),
        ("<think>So</think>open drawer 2", "open drawer 2", "open drawer 2"),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("name", ["action_tags", "tagged"])
def test_an_action_without_a_whole_element_is_done_and_invalid(name, text, cut, ended):
    assert parsing.get(name).parse(text, HOUSE) == Parsed(cut, valid=False)
    assert parsing.get(name).parse(text, HOUSE, ended=True) == Parsed(ended, valid=False)


TALK = ["act: accept", "act: offer 5", "speak: Sell the lamp.", "leave"]


@pytest.mark.parametrize(
    ("text", "cut", "ended"),
    [
        ("<action>act: accept\n\n### Explanation", "act: accept", "act: accept"),
        ("<action>speak: Hello! Who are you", "", "speak: Hello! Who are you"),
        ("<action>speak: Hello!\n\nI say so", "speak: Hello!", "speak: Hello!"),
        ("<action>act: accept\n- act: offer 5", "", ""),
        ("<action>act: take it, act: refund it\n", "", ""),
        ("Speak: Hello!", "", "Speak: Hello!"),
        ("Speak: Hello!\nThen I leave.", "", ""),
        ("Lena: Hello!", "", ""),
        ("Act: accept", "act: accept", "act: accept"),
    ],
)
def test_a_turn_of_a_conversation_without_a_whole_element(text, cut, ended):
    parser = parsing.get("action_tags")
    assert parser.parse(text, TALK) == Parsed(cut, valid=False)
    assert parser.parse(text, TALK, ended=True) == Parsed(ended, valid=False)


@pytest.mark.parametrize("name", ["code_tags", "code_action_tags"])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<code>\nprint(1)", "print(1)"),
        ("So:\n```python\nprint(1)\n", "print(1)"),
        ("<code>\n```python\nprint(1)\n```", "print(1)"),
        ("<think>Hm</think><code>print(1)", "print(1)"),
        ("<think><code>print(1)", ""),
        ("print(1)", ""),
        ("<code>\n", ""),
    ],
)
def test_code_ends_where_the_model_ended_its_turn(name, text, code):
    parser = parsing.get(name)
    assert parser.parse(text) == NOTHING
    assert parser.parse(text, ended=True) == Parsed(code, valid=False)


def test_the_formats_of_verl_agent_and_of_compact_prompts_are_not_mended():
    kept = ("sokoban_tags", "search_tags", "webshop_tags", "alfworld_tags")
    for name in (*kept, "plain", "joined", "lettered"):
        parser = parsing.get(name)
        for text in ("<action>Look.</action>", "look", "<action>look"):
            assert parser.parse(text, HOUSE, ended=True) == parser.parse(text)


def test_an_agent_tells_the_parser_whether_the_model_ended_its_turn():
    style = prompts.load("direct", "agentgyms/ALFWorld-v0")
    agent = Agent(None, style, Sampling(0.0, 9), 2)
    info = {"goal": "put a mug on shelf.", "admissible_actions": HOUSE}
    view = EpisodeView("You see a shelf 1.", "You see a shelf 1.", info, 9)
    agent.messages(view)
    for finished, action in ((True, "go to shelf 1"), (False, "")):
        decision = agent.decide(view, Completion("<action>go to shelf 1", finished=finished))
        assert (decision.action, decision.valid) == (action, False)
