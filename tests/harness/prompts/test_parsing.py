"""Parsers against recorded cases of verl-agent, and what they write."""

import json
import os
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.prompts import answers, parsing
from harness.prompts.answers import Parsed
from harness.types.errors import ConfigError

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


@pytest.mark.data
def test_webshop_tags_agree_with_recorded_projections():
    for case in cases("webshop/projection.json")["projection"]:
        action, valid = parsing.get("webshop_tags").parse(case["input"])
        assert (action, int(valid)) == (case["action"], case["valid"]), case


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a</think><ACTION> Click[Buy Now] </Action>", Parsed("click[buy now]")),
        ("<think>a</think><action></action>", Parsed("")),
        ("<action>search[tea]</action>", Parsed("search[tea]", False)),
        ("<think>茶</think><action>search[tea]</action>", Parsed("search[tea]", False)),
        ("</action><action>search[tea]<think></think>", Parsed("")),
        ("<think>a</think> I take click[Next >]", Parsed("i take click[next >]"[-20:], False)),
    ],
)
def test_webshop_tags(text, expected):
    assert parsing.get("webshop_tags").parse(text) == expected


ALFWORLD_ANSWERS = [
    ("<think>a</think><ACTION> Go to Shelf 1 </Action>", Parsed("go to shelf 1")),
    ("<think>a</think><action>Fly</action>", Parsed("fly")),  # the format alone is checked
    ("<think>a</think><action></action>", Parsed("")),
    ("<think><action>look</action></think><action>help</action>", Parsed("look")),
    ("</think><action>look</action><think>", Parsed("look")),
    ("<action>look</action>", Parsed("look", False)),
    ("<THINK>a</THINK><action>look</action>", Parsed("look", False)),
    ("<think>\u67dc</think><action>look</action>", Parsed("look", False)),
    ("<think>a</think><action>look</action>\u9fff", Parsed("look", False)),
    ("<think>\u3042\ua000</think><action>look</action>", Parsed("look")),  # no Chinese character
    ("</action><action>look<think></think>", Parsed("")),
    (
        "<think>a</think> now I thought, I Go to Shelf 12",
        Parsed("ow i thought, i go to shelf 12", False),
    ),
    ("<think>a</think><action>" + 12 * "Look", Parsed((12 * "look")[-30:], False)),
    ("", Parsed("", False)),
]


@pytest.mark.parametrize(("text", "expected"), ALFWORLD_ANSWERS)
def test_alfworld_tags(text, expected):
    assert parsing.get("alfworld_tags").parse(text) == expected


PIECES = [
    "<action>", "</action>", "<ACTION>", "</Action>", "<think>", "</think>", "<THINK>", " ", "\n",
    "Go to Shelf 1", "\u0130", "\u67dc", "\u4e00", "\u9fff", "\u3042", "x" * 30,
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_alfworld_tags_by_the_rule_of_verl_agent(text):
    """The rule a second time: the projection as the facts about verl-agent state it."""
    before, opened, behind = text.lower().partition("<action>")
    whole = opened and "</action>" in before + opened + behind
    inner = behind.partition("</action>")[0] if "</action>" not in before else ""
    action = inner.strip() if whole else text.lower()[-30:]
    chinese = any(0x4E00 <= ord(character) <= 0x9FFF for character in text)
    valid = bool(whole) and "<think>" in text and "</think>" in text and not chinese
    assert parsing.get("alfworld_tags").parse(text) == Parsed(action, valid)


PROGRAM = 'notes = [\n    "a",\n]\nprint(notes)'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"<code>{PROGRAM}</code>", PROGRAM),
        (f"I look.\n<CODE>\n{PROGRAM}\n</Code> Done.", PROGRAM),
        (f"```python\n{PROGRAM}\n```", PROGRAM),
        (f"So:\n```PY\n{PROGRAM}```\nThat prints them.", PROGRAM),
        (f"```\r\n{PROGRAM}\r\n``` \r\n", PROGRAM),
        (f"``` python\n{PROGRAM}\n```\nSo I think.\n```\nb()\n```", PROGRAM),
        (f'```python title="a"\n{PROGRAM}\n```', PROGRAM),
        ("````python\na('''\n```\n''')\n````", "a('''\n```\n''')"),
        ("Not ```x``` but\n```python\na()\n```", "a()"),
        (f"<code>\n```python\n{PROGRAM}\n```\n</code>", PROGRAM),
        ("<code>\n    if x:\n        y()\n</code>", "if x:\n    y()"),
        ("<code> print(1) </code>", "print(1)"),
        ("<code>a()</code><code>b()</code>", "a()"),
        ("```python\na()\n```\n<code>b()</code>", "a()"),
        ("```json\n{}\n```\n```python\na()\n```", "a()"),
        ("<code>print('```')</code>", "print('```')"),
        ("<code>print(1)", ""),
        ("```python\nprint(1)", ""),
        ("```python\nprint(1)\n<code>a()</code>", ""),
        ("<code></code>", ""),
        ("<code>\n \n</code>", ""),
        ("```python\n```", ""),
        ("print(1)", ""),
        ("<think><code>a()</code></think>", ""),
        ("a thought</think><code>a()</code>", "a()"),
        ("<think>it goes on <code>a()</code>", ""),
        ("", ""),
    ],
)
def test_code_is_read_from_the_first_whole_block(text, code):
    assert parsing.get("code_action_tags").parse(text) == Parsed(code, bool(code))
    asked_for_thought = parsing.get("code_tags").parse(text)
    assert asked_for_thought.action == code
    thinks = "<think>" in text and "</think>" in text
    assert asked_for_thought.valid == (bool(code) and thinks)
    again = parsing.get("code_tags").parse(f"<think>Hm: ```python\nx()\n```</think>{text}")
    if "think>" not in text:
        assert again == Parsed(code, bool(code))


@pytest.mark.parametrize("name", ["code_tags", "code_action_tags"])
@given(lines=st.lists(st.text("ab '\"\\\t#:<>/`{}\n\u00e4", max_size=12), max_size=4))
def test_code_comes_through_as_it_is_or_is_refused(name, lines):
    code, parser = "\n".join(lines), parsing.get(name)
    try:
        written = parser.write(code)
    except ConfigError:
        assert "```" in code or not code or code != textwrap.dedent(code).strip("\n").rstrip()
    else:
        assert parser.parse(written) == Parsed(code)


def test_letters_name_choices_as_a_spreadsheet_names_columns():
    names = [answers.letter(i) for i in (0, 25, 26, 51, 52, 701, 702)]
    assert names == ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]
    assert len({answers.letter(i) for i in range(2000)}) == 2000


def test_an_open_action_is_offered_with_the_goal():
    actions = ["search[<query>]", "click[<5 kg>]", "click[next >]", "click[< prev]"]
    offered = answers.choices(actions, r"a \1 [b]")
    assert offered == [r"search[a \1 [b]]", *actions[1:]]
    spoken = ["speak: <words>", "act: offer 5", "speak: I have <5>", "click[size: <m>]"]
    assert answers.choices(spoken, "Buy it.") == ["speak: Buy it.", *spoken[1:]]
    parser = parsing.get("lettered")
    assert parser.parse(" C\n", offered) == Parsed("click[next >]")
    for text in ("E", "c", "click[next >]", "A B", ""):
        assert parser.parse(text, offered) == Parsed("", False)
    assert parser.write("search[anything else]", offered) == "A"
    assert parser.write("click[NEXT >]", offered) == "C"
    with pytest.raises(ConfigError, match=r"lettered cannot write the action 'click\[x\]'"):
        parser.write("click[x]", offered)
    with pytest.raises(ConfigError, match="expected one of"):
        parser.write("look", offered)


ACTIONS = {
    "sokoban_tags": ("up", "down", "left", "right", "still"),
    "search_tags": ("search[who wrote Faust]", "answer[Goethe]", "search[]", "answer[a]b[c]"),
    "webshop_tags": ("search[red shoes]", "click[< prev]", "click[a [b]]"),
}
ACTIONS["code_tags"] = (PROGRAM, "x = 1", "print('''a\\n\\n b''')", "if a:\n\tb('<code>')")
ACTIONS |= {f"{n}_action_tags": ACTIONS[f"{n}_tags"] for n in ("sokoban", "webshop", "code")}
OTHERS = ("go to shelf 1", "move soap bar 12 to sink basin 3", "inventory")


@pytest.mark.parametrize("name", parsing.PARSERS)
def test_every_parser_reads_the_answer_it_would_write(name):
    parser = parsing.get(name)
    for action in ACTIONS.get(name, OTHERS):
        offered = [*ACTIONS.get(name, OTHERS), "look"]
        assert parser.parse(parser.write(action, offered), offered) == Parsed(action, True)


def test_what_parsers_cannot_do_is_said():
    with pytest.raises(
        ConfigError, match=r"cannot write the action 'look': expected search\[...\]"
    ):
        parsing.get("search_tags").write("look")
    with pytest.raises(ConfigError, match="unknown parser"):
        parsing.get("nothing")


@pytest.mark.parametrize("name", [name for name in parsing.PARSERS if name.endswith("tags")])
@pytest.mark.parametrize(
    "tag", ["<action>", "<think>", "</think>", "<search>", "<answer>", "<code>", "```py\n"]
)
def test_an_answer_that_repeats_itself_takes_no_time(name, tag):
    """Hours, if the end of an element were looked for behind each of its beginnings."""
    begun = time.process_time()
    parsed = parsing.get(name).parse(100_000 * tag)
    assert not parsed.valid
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("filling", ["x", " ", "`", "x ", "\n```", "<code>"])
def test_what_follows_backquotes_is_read_in_no_time(filling):
    began = time.process_time()
    assert parsing.get("code_action_tags").parse("```" + 20_000 * filling).action in ("", "```")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<think>\nthe door\n</think>\n\nlook", "look"),
        (" look ", "look"),
        ("<think>\nthe door, then", ""),
        ("say <think> aloud", "say <think> aloud"),
    ],
)
@pytest.mark.parametrize("parser", ["plain", "joined"])
def test_a_leading_thought_is_no_part_of_an_action(parser, text, action):
    assert parsing.get(parser).parse(text) == Parsed(action)


def test_a_letter_after_a_thought_is_a_choice():
    choices = ["look", "go north"]
    assert parsing.get("lettered").parse("<think>\n\n</think>\n\nB", choices) == Parsed("go north")
