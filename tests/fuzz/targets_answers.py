"""Targets: parsers of what models answer."""

from __future__ import annotations

from typing import Any

from fuzz_target import Broken, target

from agentgyms.core.tools import Argument, Tool, Tools
from agentgyms.envs.sotopia import action_parsing
from agentgyms.envs.sotopia.dialogue import Act
from agentgyms.envs.sotopia.llm.participants import parse_answer
from agentgyms.envs.sotopia.llm.rating_parsing import parse_ratings
from agentgyms.envs.sotopia.partner_judge import RANGES
from harness.prompts.answers import Parsed, choices
from harness.prompts.parsing import PARSERS
from harness.prompts.tool_calls import ToolParser
from harness.prompts.tool_formats import FORMATS
from harness.types.errors import ConfigError

HOUSE = Tools(
    Tool("put", "Put.", "put {thing} in {place}", {"thing": "What.", "place": "Where."}),
    Tool("wait", "Wait.", "wait {turns}", {"turns": Argument("How long.", "integer")}),
)
CALLS = {f"calls-{name}": ToolParser(HOUSE, FORMATS.get(name), name) for name in FORMATS.names()}
OFFERED = ("go north", "search[<query>]", "speak: <words>", "take key", "look")


def _seeds() -> list[bytes]:
    return [
        b"<think>The lamp.</think><action>go to shelf 1</action>",
        b"<think>a</think>\n<search>who wrote it</search> <answer>nobody</answer>",
        b"<think></think><code>\nprint(apis.supervisor.show())\n</code>",
        b"```python\nx = 1\n```",
        b"UP and down </think> <action>Left</action> \xe4\xb8\xad",
        b"search[red lamp]",
        b"C",
        b'<tool_call>\n{"name": "wait", "arguments": {"turns": 3}}\n</tool_call>',
        b"<tool_call><function=wait>\n<parameter=turns>\n3\n</parameter></function></tool_call>",
        b'{"name": "put", "parameters": {"thing": "a", "place": "b"}}',
        b"<tool_call>wait\n<arg_key>turns</arg_key><arg_value>3</arg_value>\n</tool_call>",
    ]


@target(seeds=_seeds, kind="text")
def answers(data: bytes) -> Any:
    """Every parser takes every text; an action that it writes is one that it reads."""
    text = data.decode("utf-8", "surrogateescape")
    offered = choices(OFFERED, text[:50])
    found = []
    for name, parser in {**PARSERS, **CALLS}.items():
        parsed = parser.parse(text, offered)
        if type(parsed) is not Parsed or type(parsed.action) is not str:
            raise Broken(f"{name} gave {parsed!r:.200}")
        try:
            written = parser.write(parsed.action, offered)
        except ConfigError as error:
            written = str(error)
        else:
            _check_written(name, parsed, parser.parse(written, offered))
        found.append((parsed, written))
    return found


def _check_written(name: str, parsed: Parsed, again: Parsed) -> None:
    """Raise `Broken` where a writer promises that its text is read as the action."""
    promised = name.startswith(("code", "lettered", "search", *CALLS))
    if promised and parsed.action and parsed.action != again.action:
        raise Broken(f"{name} reads {again.action!r:.200} where it wrote {parsed.action!r:.200}")


def _act_seeds() -> list[bytes]:
    return [
        b'{"action_type": "speak", "argument": "Good day."}',
        b"speak: Good day, Ann.",
        b"```json\n{'action_type': 'leave', 'argument': '',}\n```",
        b'<think>hm</think>{"properties": {"action_type": "none", "argument": ""}}',
    ]


@target(seeds=_act_seeds, kind="text", steps_per_byte=4_000)
def sotopia_acts(data: bytes) -> Any:
    """Every text is an act or not; an act is read as it is written."""
    text = data.decode("utf-8", "surrogateescape")
    found = []
    for parse in (parse_answer, action_parsing.parse_action):
        act = parse(text)
        if isinstance(act, Act):
            again = action_parsing.parse_action(action_parsing.format_action(act))
            if again != act:
                raise Broken(f"{act} is written and read as {again}")
        found.append(act)
    return found


def _rating_seeds() -> list[bytes]:
    ratings = ", ".join(f'"{name}": ["because", {low}]' for name, (low, _) in RANGES.items())
    both = f'{{"agent_1_evaluation": {{{ratings}}}, "agent_2_evaluation": {{{ratings}}}}}'
    return [both.encode(), f"Here: {both.replace('because', chr(39))} </think>".encode()]


@target(seeds=_rating_seeds, steps_per_byte=4_000)
def sotopia_ratings(data: bytes) -> Any:
    """Every text is two ratings within their ranges, or a reason why it is not."""
    return parse_ratings(data.decode("utf-8", "surrogateescape"), ("Ann", "Bob"))
