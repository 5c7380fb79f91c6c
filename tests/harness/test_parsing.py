"""Parsers against recorded cases of verl-agent, and what they write."""

import json
import os
from pathlib import Path

import pytest

from harness import parsing
from harness.errors import ConfigError
from harness.parsing import Parsed

MOVES = ("still", "up", "down", "left", "right")


def cases(name):
    folder = os.environ.get("AGENTGYMS_TEST_CASES")
    if not folder:
        pytest.skip("AGENTGYMS_TEST_CASES names no folder of recorded cases")
    return json.loads((Path(folder) / name).read_text(encoding="utf-8"))


@pytest.mark.data
def test_sokoban_tags_agree_with_recorded_projections():
    for case in cases("sokoban/projection_sokoban.json"):
        action, valid = parsing.get("sokoban_tags").parse(case["text"])
        assert (MOVES.index(action or "still"), int(valid)) == (case["action"], case["valid"]), case


@pytest.mark.data
def test_search_tags_agree_with_recorded_projections():
    for case in cases("searchqa/projection_search.json"):
        action, valid = parsing.get("search_tags").parse(case["text"])
        element = parsing.get("search_tags").write(action) if action else ""
        assert (element, int(valid)) == (case["action"], case["valid"]), case


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think><action>UP</action>", Parsed("up", True)),
        ("<action>left</action>", Parsed("left", False)),
        ("<think>a</think><action>still</action>", Parsed("still", True)),
        ("<think>a</think><action>left then up</action>", Parsed("up", True)),
        ("<think>a</think><action>jump</action>", Parsed("", False)),
        ("<think>up</think>", Parsed("", False)),
        ("<think>a</think></action>up<action>", Parsed("", False)),
        ("<THINK>a</THINK><action>up</action>", Parsed("up", False)),
    ],
)
def test_sokoban_tags(text, expected):
    assert parsing.get("sokoban_tags").parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<think>x</think><search> capital of\nFrance </search>",
            Parsed("search[capital of\nFrance]"),
        ),
        ("<Answer>Paris</Answer>", Parsed("answer[Paris]")),
        ("<answer>b</answer><search>a</search>", Parsed("search[a]", False)),
        ("<answer>a</answer><answer>b</answer>", Parsed("answer[a]", False)),
        ("</search><search>q</search>", Parsed("", False)),
        ("<search>a]b[</search>", Parsed("search[a]b[]")),
        ("I know it.", Parsed("", False)),
    ],
)
def test_search_tags(text, expected):
    assert parsing.get("search_tags").parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>so</think><action>look</action>", Parsed("look", True)),
        ("<action>look</action>", Parsed("look", False)),
        ("<action>look</action><think>so", Parsed("look", False)),
        ("<think>so</think>look", Parsed("", False)),
    ],
)
def test_tagged_answers_need_a_thought_to_be_valid(text, expected):
    assert parsing.get("tagged").parse(text) == expected


ACTIONS = {
    "sokoban_tags": ("up", "down", "left", "right", "still"),
    "search_tags": ("search[who wrote Faust]", "answer[Goethe]", "search[]", "answer[a]b[c]"),
}
OTHERS = ("go to shelf 1", "move soap bar 12 to sink basin 3", "inventory")


@pytest.mark.parametrize("name", parsing.PARSERS)
def test_every_parser_reads_the_answer_it_would_write(name):
    parser = parsing.get(name)
    for action in ACTIONS.get(name, OTHERS):
        assert parser.parse(parser.write(action)) == Parsed(action, True)


def test_what_parsers_cannot_do_is_said():
    with pytest.raises(
        ConfigError, match=r"cannot write the action 'look': expected search\[...\]"
    ):
        parsing.get("search_tags").write("look")
    with pytest.raises(ConfigError, match="unknown parser"):
        parsing.get("nothing")
