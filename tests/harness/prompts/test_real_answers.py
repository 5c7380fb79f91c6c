"""Answers of SmolLM2-135M-Instruct through every parser: none raises, none loses its action.

`smollm2/collect.py` has asked for them. The model rambles, repeats its prompt, makes lists of all
that is possible, and hardly ever keeps to a format.
"""

import json
import lzma
from collections import Counter
from pathlib import Path

import pytest

from agentgyms.envs.appworld.sandbox.code_extraction import NoCode, extract_code
from agentgyms.envs.sotopia.action_parsing import parse_action
from agentgyms.envs.sotopia.llm.participants import parse_answer
from agentgyms.envs.sotopia.llm.rating_parsing import parse_ratings
from agentgyms.envs.webshop.rules import actions as shop
from harness import prompts
from harness.prompts import parsing, tool_calls
from harness.prompts.answers import Parsed
from harness.prompts.tool_formats import FORMATS

FOLDER = Path(__file__).parent / "smollm2"
NAMES = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.jsonl.xz"))
ENVIRONMENTS = (
    "ALFWorld", "AppWorld", "Corridor", "SearchQA", "Sokoban", "SOTOPIA", "WebShop",
)  # fmt: skip
IDS = {name.lower(): f"agentgyms/{name}-v0" for name in ENVIRONMENTS}


def answers_of(name):
    """Yield style, offered actions, text, and whether the model ended it, of each answer."""
    with lzma.open(FOLDER / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            asked = json.loads(line)
            for text, ended in asked["answers"]:
                yield asked["style"], asked["actions"], text, ended


def code_of(text):
    try:
        return extract_code(text)
    except NoCode as e:
        return str(e)


OF_ENVIRONMENTS = (
    shop.parse, shop.parse_original, parse_action, parse_answer, code_of,
    lambda text: parse_ratings(text, ["Ann", "Bo"]),
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_parser_takes_every_answer(name):
    calls = [tool_calls.parser_of(IDS[name], one) for one in FORMATS.names()]
    for _, offered, text, ended in answers_of(name):
        parsed = [one.parse(text, offered, ended=ended) for one in parsing.PARSERS.values()]
        parsed += [one.parse(text, offered) for one in calls]
        assert all(type(one) is Parsed and type(one.action) is str for one in parsed)
        assert all(read(text) is not None for read in OF_ENVIRONMENTS)


READ = {
    "alfworld": {
        "direct": (0, 0, 28), "compact": (27, 0, 0), "think": (0, 30, 0), "tools": (0, 0, 30),
    },
    "appworld": {"direct": (8, 1, 38)},
    "searchqa": {"direct": (1, 0, 46)},
    "sokoban": {
        "direct": (0, 0, 84), "compact": (36, 0, 0), "think": (0, 0, 36), "tools": (0, 0, 36),
    },
    "sotopia": {"direct": (2, 6, 40)},
    "webshop": {"direct": (0, 0, 48)},
}  # fmt: skip
"""How many answers are valid, break the format and have an action, and have none, by style.

ALFWorld's `think` takes the end of an answer without tags for its action, as verl-agent does, and
`compact` takes any text. SearchQA's valid one repeats its prompt.
"""

MENDED = {
    "act: accept": 3,
    "act: take plates=2 bowls=1 flags=0": 1,
    "act: accept (the first two are not necessary)": 1,
    "Speak: [the action] [the goal] [the result]": 1,
    "def task():\n    task()": 1,
}
"""Actions of answers without a whole element or block, in the formats of this project."""


def read(name):
    """Yield style, offered actions, text and what the style's parser reads, of each answer."""
    for style, offered, text, ended in answers_of(name):
        yield style, offered, text, prompts.load(style, IDS[name]).parse(text, offered, ended=ended)


def test_as_many_answers_are_read_as_a_person_reads():
    mended = Counter()
    for name in NAMES:
        found = {}
        for style, _, _, parsed in read(name):
            place = 0 if parsed.valid else 1 if parsed.action else 2
            found.setdefault(style, [0, 0, 0])[place] += 1
            if place == 1 and style == "direct":
                mended[parsed.action] += 1
        assert {style: tuple(counts) for style, counts in found.items()} == READ[name]
    assert mended == MENDED


@pytest.mark.parametrize("name", NAMES)
def test_no_answer_without_an_action_has_a_line_that_is_one(name):
    for style, offered, text, parsed in read(name):
        said = {line for line in text.splitlines() if line in offered}
        if style == "direct" and not parsed.action:
            assert len(said) != 1, text
