"""Calls in the formats of models: written, parsed, and refused when something is wrong."""

import json
import random
from pathlib import Path

import gymnasium as gym
import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgyms.core.tools import Argument, BadCall, Tool, ToolCall, Tools
from agentgyms.models.types import ServedCall
from agentgyms.registration import env_class
from harness.prompts.answers import Parsed
from harness.prompts.tool_calls import ToolParser
from harness.prompts.tool_formats import FORMATS, ToolFormat, template_format
from harness.types.errors import ConfigError

TEMPLATES = Path(__file__).parents[2] / "golden" / "chat_templates"
NAMES = ["glm", "hermes", "llama3", "qwen3_coder"]
OF_TEMPLATES = {
    "deepseekv3": None,
    "gemma3": None,
    "glm4moe": "glm",
    "gptoss": None,
    "llama3_1": "llama3",
    "llama3_2": "llama3",
    "nemotron_3_nano": "qwen3_coder",
    "phi3": None,
    "qwen2_5": "hermes",
    "qwen2_5_vl": None,
    "qwen3": "hermes",
    "qwen3_5_nothink": "qwen3_coder",
    "qwen3_5_think": "qwen3_coder",
    "qwen3_6": "qwen3_coder",
    "qwen3_instruct_2507": "hermes",
    "qwen3_vl": "hermes",
}
HOUSE = Tools(
    Tool("go_to", "Walk.", "go to {place}", {"place": "Where."}),
    Tool("put", "Put.", "put {thing} in {place}", {"thing": "What.", "place": "Where."}),
    Tool("wait", "Wait.", "wait {turns}", {"turns": Argument("How long.", "integer")}),
    Tool("look", "Look.", "look"),
)
WRITTEN = {
    "hermes": '<tool_call>\n{"name": "wait", "arguments": {"turns": 3}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=wait>\n<parameter=turns>\n3\n</parameter>\n</function>"
    "\n</tool_call>",
    "llama3": '{"name": "wait", "parameters": {"turns": 3}}',
    "glm": "<tool_call>wait\n<arg_key>turns</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
}
ACTIONS = {
    "agentgyms/ALFWorld-v0": ["go to shelf 1", "take mug 2 from desk 1", "look"],
    "agentgyms/AppWorld-v0": ["print('<tool_call>')\n\nx = {'a': \"</tool_call>\"}", "x = 1"],
    "agentgyms/SearchQA-v0": ["search[who wrote it]", "answer[Ada Lovelace]"],
    "agentgyms/Sokoban-v0": ["up", "left"],
    "agentgyms/SOTOPIA-v0": ["speak: Could we talk?", "leave", "none"],
    "agentgyms/Tau2-v0": ["say: Shall I do it?", "return mug of O12 to card", "cancel O12"],
    "agentgyms/WebShop-v0": ["search[red shoes]", "click[buy now]"],
    "agentgyms/Corridor-v0": ["left", "open door"],
}
PIECES = [
    *("<tool_call>", "</tool_call>", "<function=put>", "<parameter=thing>", "</parameter>"),
    *("</function>", "<arg_key>thing</arg_key>", "<arg_value>", "</arg_value>", "put", "\n"),
    *('{"name": "go_to", ', '"arguments": {"place": "a"}', '"parameters": {}', "}", "]", ";"),
    *("<think>", "</think>", "\ud800", "\x00", "é"),
]


def parser(name, tools=HOUSE):
    return ToolParser(tools, FORMATS.get(name), name)


def test_the_format_of_every_template():
    found = {
        path.stem: template_format(path.read_text(encoding="utf-8"))
        for path in sorted(TEMPLATES.glob("*.jinja"))
    }
    assert found == OF_TEMPLATES
    assert sorted(NAMES) == FORMATS.names()


@pytest.mark.parametrize("name", NAMES)
def test_a_call_is_written_as_the_models_template_writes_it(name):
    one = parser(name)
    assert one.write("wait 3") == WRITTEN[name]
    assert one.parse(WRITTEN[name]) == Parsed("wait 3")
    assert one.parse(f"<think>I wait.</think>\n\n{WRITTEN[name]}\n") == Parsed("wait 3")
    assert one.parse(f"I wait.</think>{WRITTEN[name]}") == Parsed("wait 3")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("env_id", ACTIONS)
def test_every_environments_actions_in_every_format(name, env_id):
    one = parser(name, env_class(env_id).tools)
    for action in ACTIONS[env_id]:
        assert one.parse(one.write(action)) == Parsed(action)


@pytest.mark.parametrize("name", NAMES)
@given(
    thing=st.text(min_size=1, max_size=20),
    place=st.text(st.sampled_from('<>/{}"\\\n argvaluetool_cp'), min_size=1, max_size=20),
)
def test_what_is_written_is_parsed_to_the_same_action(name, thing, place):
    """Some formats cannot write some arguments, and say so."""
    action = f"put {thing} in {place}"
    one = parser(name)
    try:
        answer = one.write(action)
    except ConfigError:
        return
    assert one.parse(answer) == Parsed(action)


def test_words_may_stand_before_a_call_but_for_llama3():
    for name in NAMES:
        parsed = parser(name).parse(f"I wait: {WRITTEN[name]}")
        assert parsed.valid == (name != "llama3")
    assert parser("llama3").parse(f"<|python_tag|>{WRITTEN['llama3']}") == Parsed("wait 3")
    other = '{"type": "function", "name": "wait", "arguments": {"turns": 3}}'
    assert parser("llama3").parse(other) == Parsed("wait 3")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("hermes", "I look.", "no tool is called"),
        ("hermes", "", "no tool is called"),
        ("hermes", "<think>" + WRITTEN["hermes"], "no tool is called"),
        ("hermes", WRITTEN["hermes"] * 2, "2 tools are called at once"),
        ("hermes", WRITTEN["hermes"].removesuffix("</tool_call>"), "must end with </tool_call>"),
        ("hermes", "<tool_call>{'name': 'look'}</tool_call>", "the call is no JSON"),
        ("hermes", '<tool_call>["look"]</tool_call>', 'an object with a "name"'),
        ("hermes", '<tool_call>{"name": "look"}</tool_call>', 'an object "arguments"'),
        ("hermes", '<tool_call>{"name": "look", "name": "wait"}</tool_call>', "a name twice"),
        ("hermes", "<tool_call>" + "[" * 100_000, "no JSON that can be read"),
        ("hermes", "<tool_call>" + "1" * 10_000, "no JSON that can be read"),
        ("llama3", f"{WRITTEN['llama3']}; {WRITTEN['llama3']}", "2 tools are called at once"),
        ("llama3", f"{WRITTEN['llama3']} now", "there is text after the call"),
        ("llama3", f"{WRITTEN['llama3']};", "the call is no JSON"),
        ("qwen3_coder", "<tool_call>wait</tool_call>", "must begin with <function=name>"),
        ("qwen3_coder", "<tool_call><function=look></tool_call>", "must end with </function>"),
        (
            "qwen3_coder",
            "<tool_call><function=wait><parameter=turns>3</function></tool_call>",
            "must end with </parameter>",
        ),
        ("qwen3_coder", WRITTEN["qwen3_coder"].replace("3", "three"), "must be an integer"),
        ("glm", "<tool_call>wait<arg_key>turns</arg_key><arg_value>3", "end with </arg_value>"),
        ("glm", "<tool_call></tool_call>", "no tool is named"),
        (
            "glm",
            "<tool_call>put"
            + "<arg_key>thing</arg_key><arg_value>a</arg_value>" * 2
            + "</tool_call>",
            "'thing' is given twice",
        ),
    ],
)
def test_what_a_model_is_told_about_a_malformed_call(name, text, reason):
    assert parser(name).parse(text) == Parsed("", valid=False)
    problem = parser(name).problem(text)
    assert reason in problem
    assert problem.endswith(": answer with exactly one call")
    assert len(problem) <= 300


def wrong_calls(tools, call, rng):
    """Return calls, or lists of them, that no environment takes."""
    names = list(call.arguments)
    rest = dict(call.arguments)
    other = {rng.choice(["x", "place ", "", "name", "ключ"]) + "_": rng.choice(["1", "", "look"])}
    yield ToolCall(rng.choice(["fly", "", "act_", call.name.upper(), call.name + "s"]), rest)
    yield ToolCall(call.name, rest | other)
    yield [call] * rng.randrange(2, 5)
    yield [call, ToolCall("fly", {})]
    if names:
        one = rng.choice(names)
        yield ToolCall(call.name, {key: rest[key] for key in names if key != one})
        yield ToolCall(call.name, rest | {one: rng.choice(["", "  ", "\n\t"])})
        yield ToolCall(call.name, {one + "s": rest.pop(one)} | rest)


def broken(text, rng):
    """Return a written call that is cut off, or lacks a character of its form."""
    form = [i for i, sign in enumerate(text) if sign in "<>{}" and i < len(text) // 4]
    i = rng.choice(form)
    ways = [text[: rng.randrange(len(text))], text[:i] + text[i + 1 :]]
    return rng.choice(ways)


def malformed(name, rng, count):
    """Yield malformed answers with their parser, made of right calls of all environments."""
    form = FORMATS.get(name)
    while count > 0:
        env_id = rng.choice(list(ACTIONS))
        tools = env_class(env_id).tools
        one = ToolParser(tools, form, name)
        simple = [action for action in ACTIONS[env_id] if "tool_call" not in action]
        call = tools.call(rng.choice(simple))
        texts = [
            (";" if name == "llama3" else "\n").join(map(form.write, wrong))
            if isinstance(wrong, list)
            else form.write(wrong)
            for wrong in wrong_calls(tools, call, rng)
        ]
        texts.append(broken(form.write(call), rng))
        if not form.untyped and call.arguments:
            value = rng.choice([None, 3, True, ["up"], {"a": "b"}, 1.5])
            texts.append(form.write(ToolCall(call.name, dict.fromkeys(call.arguments, value))))
        for text in texts:
            yield one, text
            count -= 1


@pytest.mark.parametrize("name", NAMES)
def test_malformed_calls_never_crash_and_never_act(name):
    """500 for each format, 2,000 in all."""
    number = 0
    for one, text in malformed(name, random.Random(f"malformed {name}"), 500):
        assert one.parse(text) == Parsed("", valid=False), text
        assert 0 < len(one.problem(text)) <= 300
        number += 1
    assert number >= 500


@pytest.mark.parametrize("env_id", ACTIONS)
def test_the_action_of_a_malformed_call_changes_nothing(env_id):
    env = gym.make(env_id, split="sample")
    _, before = env.reset(seed=1)
    _, reward, terminated, _, info = env.step("")
    env.close()
    assert reward <= 0
    assert (terminated, info["feedback"]) == (False, "malformed")
    if "SOTOPIA" not in env_id:  # where a turn without a word is a turn of the conversation
        assert info["state_key"] == before["state_key"]


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_no_text_crashes_and_what_acts_is_an_action_of_a_tool(name, data):
    pieces = st.sampled_from([*PIECES, WRITTEN[name]])
    text = "".join(data.draw(st.lists(pieces | st.text(max_size=5), max_size=12)))
    parsed = parser(name).parse(text)
    assert parsed.valid == bool(parsed.action)
    assert parsed.valid == (not parser(name).problem(text))
    if parsed.valid:
        assert HOUSE.call(parsed.action) is not None


@pytest.mark.parametrize(
    ("calls", "parsed"),
    [
        ([("wait", '{"turns": 3}')], "wait 3"),
        ([("look", "")], "look"),
        ([("look", "{}"), ("look", "{}")], "2 tools are called at once"),
        ([("wait", '{"turns": 3')], "the call is no JSON"),
        ([("wait", '{"turns": 3} {}')], "one JSON object"),
        ([("wait", "3")], "one JSON object"),
        ([("fly", "{}")], "there is no tool 'fly'"),
    ],
)
def test_calls_that_a_server_has_parsed(calls, parsed):
    served = [ServedCall(f"call-{i}", *call) for i, call in enumerate(calls)]
    action, valid = parser("hermes").parse("I wait.", calls=served)
    problem = parser("hermes").problem("I wait.", calls=served)
    assert parsed in (action or problem)
    assert valid == (not problem)


def test_without_parsed_calls_the_text_is_read():
    assert parser("hermes").parse(WRITTEN["hermes"], calls=()) == Parsed("wait 3")


def test_an_action_that_no_tool_has_cannot_be_written():
    with pytest.raises(ConfigError, match="'fly' cannot be written as a call of a tool"):
        parser("hermes").write("fly")
    with pytest.raises(ConfigError, match="in the format glm"):
        parser("glm").write("go to </arg_value>")


def test_a_plug_in_brings_a_format_of_its_own():
    def parse(text):
        if not text.startswith("!"):
            raise BadCall("begin with !")
        return [ToolCall(text[1:], {})]

    shout = ToolFormat(parse, lambda call: f"!{call.name}", ("SHOUT",))
    assert ToolParser(HOUSE, shout, "shout").parse("!look") == Parsed("look")
    assert not ToolParser(HOUSE, shout, "shout").parse("look").valid
    with pytest.raises(ConfigError, match="unknown tool format 'shout'"):
        FORMATS.get("shout")


def test_the_example_of_a_template_tells_of_tools_and_shows_calls_and_results():
    text = (Path(__file__).parents[3] / "examples" / "smollm2_tools.jinja").read_text()
    assert template_format(text) == "hermes"
    call = {"function": {"name": "wait", "arguments": {"turns": 3}}}
    chat = [
        {"role": "user", "content": "Play."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "You wait."},
    ]
    render = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(text).render
    told, *turns = render(messages=chat, tools=HOUSE.schemas, add_generation_prompt=True).split(
        "<|im_start|>"
    )[1:]
    assert told.startswith("system\n")
    assert all(json.dumps(tool["function"]["name"]) in told for tool in HOUSE.schemas)
    assert FORMATS.get("hermes").parse(turns[1]) == [ToolCall("wait", {"turns": 3})]
    assert [turn.split("\n")[0] for turn in turns] == ["user", "assistant", "user", "assistant"]
    assert "<tool_response>\nYou wait.\n</tool_response><|im_end|>" in turns[2]
    assert "<tools>" not in render(messages=chat[:1])
