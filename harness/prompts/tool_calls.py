"""Answers that call a tool: the action of a call, and the problem of a wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from agentgyms.core.env import TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.tools import ANY_ACTION, BadCall, ToolCall, Tools
from agentgyms.models.types import ServedCall
from agentgyms.registration import find_maker
from harness.prompts.answers import Parsed, outside_thoughts
from harness.prompts.tool_formats import FORMATS, HERMES, TAGS, ToolFormat, read_json
from harness.types.errors import ConfigError

_NONE: Final = "no tool is called"


@dataclass(frozen=True)
class ToolParser:
    """Parses and writes the calls of an environment's tools.

    An answer is valid if it has exactly one call, and that is a right one. Otherwise there is no
    action, and `problem` tells the model why. But words without a call are one of the tool
    `spoken`, if there is one.
    """

    tools: Tools = ANY_ACTION
    format: ToolFormat = HERMES
    name: str = "hermes"
    spoken: str = ""  # a tool with one argument
    lettered: Final = False

    def action(self, text: str, calls: Sequence[ServedCall] | None = None) -> str:
        """Return the action of the call in an answer.

        `calls` are a server's parsed calls; if there are none, the text is parsed. Raises `BadCall`
        if there is not exactly one call, or it is wrong.
        """
        found = [_typed(call) for call in calls] if calls else self._calls(text)
        found = found or self._spoken(outside_thoughts(text).strip())
        if len(found) != 1:
            raise BadCall(f"{len(found)} tools are called at once" if found else _NONE)
        return self.tools.action(found[0])

    def parse(
        self,
        text: str,
        offered: Sequence[str] = (),
        calls: Sequence[ServedCall] | None = None,
    ) -> Parsed:
        """Return the action of the call in an answer; see `action`. `offered` is not used."""
        try:
            return Parsed(self.action(text, calls))
        except BadCall:
            return Parsed("", valid=False)

    def problem(self, text: str, calls: Sequence[ServedCall] | None = None) -> str:
        """Return the problem of an answer, for the model; "" for a valid one."""
        try:
            self.action(text, calls)
        except BadCall as e:
            return f"{e}: answer with exactly one call"
        return ""

    def write(self, action: str, offered: Sequence[str] = ()) -> str:
        """Return the call that stands for an action."""
        call = self.tools.call(action)
        answer = "" if call is None else self.format.write(call)
        if self.parse(answer) != Parsed(action):
            raise ConfigError(
                f"the action {action[:80]!r} cannot be written as a call of a tool in the format "
                f"{self.name}: expected an action of the environment"
            )
        return answer

    def _spoken(self, words: str) -> list[ToolCall]:
        """Return the call that words stand for; none with a stray tag of one."""
        if not words or any(tag in words for tag in TAGS):
            return []
        spoken = [tool for tool in self.tools if tool.name == self.spoken]
        return [ToolCall(tool.name, dict.fromkeys(tool.arguments, words)) for tool in spoken]

    def _calls(self, text: str) -> list[ToolCall]:
        calls = self.format.parse(outside_thoughts(text))
        return [self.tools.typed(call) for call in calls] if self.format.untyped else calls


def parser_of(
    env_id: str,
    format_name: str,
    kwargs: Mapping[str, Any] = MappingProxyType({}),
    spoken: str = "",
) -> ToolParser:
    """Return the parser of calls of an environment's tools; the format `"auto"` is hermes here."""
    name = "hermes" if format_name == "auto" else format_name
    return ToolParser(tools_of(env_id, kwargs), FORMATS.get(name), name, spoken)


def tools_of(env_id: str, kwargs: Mapping[str, Any]) -> Tools:
    """Return the tools of an environment with these arguments, `ANY_ACTION` if it has none."""
    try:
        maker, registered = find_maker(env_id)
        if isinstance(maker, type) and issubclass(maker, TextEnv):
            return maker.tools_of({**registered, **kwargs})
    except BadOption:  # only its maker knows what it is
        pass
    return ANY_ACTION


def _typed(call: ServedCall) -> ToolCall:
    """Return a call of a server with its arguments, which it sends as the text of an object."""
    text = call.arguments.strip() or "{}"
    arguments, end = read_json(text)
    if end < len(text) or not isinstance(arguments, dict):
        raise BadCall("the arguments must be one JSON object")
    return ToolCall(call.name, arguments)
