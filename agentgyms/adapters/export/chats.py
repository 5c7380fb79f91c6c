"""Episodes as chats: messages, messages with calls of tools, prompts, and ShareGPT's form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from agentgyms.adapters.export.episode import IMAGE, Episode, answer, text_seen
from agentgyms.adapters.messages import INSTRUCTIONS, image_urls
from agentgyms.recording import RecordedTurn

Message = dict[str, Any]

_SPEAKERS: Final = {"system": "system", "user": "human", "assistant": "gpt"}
_ACTIONS: Final = re.compile(r"<(action|tool_call)>.*?(?:</\1>|\Z)", re.DOTALL)
_PICTURE: Final = "[image]"
"""Stands for a picture in recorded prompts."""


def messages(episode: Episode) -> dict[str, Any]:
    """Return a chat of roles and contents, which ends with the last answer."""
    return {"messages": _chat(episode), **episode.facts([seen for seen, _ in episode.turns])}


def prompts(episode: Episode) -> dict[str, Any]:
    """Return the chat before the first answer."""
    first = episode.turns[0][0]
    prompt = [one for one in _chat(episode)[:2] if one["role"] != "assistant"]
    return {"prompt": prompt, **episode.facts([first])}


def sharegpt(episode: Episode) -> dict[str, Any]:
    """Return the chat of `messages` with ShareGPT's names."""
    said = [{"from": _SPEAKERS[m["role"]], "value": m["content"]} for m in _chat(episode)]
    return {"conversations": said, **episode.facts([seen for seen, _ in episode.turns])}


def tools(episode: Episode) -> dict[str, Any]:
    """Return a chat in which actions are tool calls and observations their results.

    An action that is no tool call is the text of its message. The tools and the arguments of a call
    are JSON text, for their keys differ between environments.
    """
    shown = episode.tools.shown
    chat = [_message("user", text_seen(episode.turns[0][0], shown))]
    for number, ((_, turn), seen) in enumerate(
        zip(episode.turns, episode.outcomes, strict=True), 1
    ):
        name, words = f"call_{number}", _said_beside(turn)
        call = episode.tools.call(turn.action)
        if call is None:
            chat.append(_message("assistant", words or turn.action))
            chat.append(_message("user", text_seen(seen, shown)))
            continue
        function = {"name": call.name, "arguments": json.dumps(dict(call.arguments))}
        calls = [{"id": name, "type": "function", "function": function}]
        chat.append(_message("assistant", words, tool_calls=calls))
        chat.append(_message("tool", text_seen(seen, shown), tool_call_id=name, name=call.name))
    facts = episode.facts([episode.turns[0][0], *episode.outcomes])
    return {"messages": chat, "tools": json.dumps(episode.tools.schemas), **facts}


def _said_beside(turn: RecordedTurn) -> str:
    """Return what an agent's answer says beside its action; "" if the answer is not recorded."""
    words = _ACTIONS.sub("", answer(turn) or "").strip()
    return "" if words == turn.action else words


def _message(role: str, content: str, **more: Any) -> Message:
    """Return a message with every key, for all of a file have the same ones."""
    return {
        "role": role,
        "content": content,
        "tool_calls": [],
        "tool_call_id": "",
        "name": "",
        **more,
    }


def _chat(episode: Episode) -> list[Message]:
    """Return prompts and answers as they were recorded; else observations and actions."""
    recorded = [one for seen, turn in episode.turns if (one := _recorded(seen, turn))]
    if len(recorded) == len(episode.turns):
        (asked, said), *rest = recorded
        return _alternating([(f"{_preamble(episode)}{asked}", said), *rest])
    plain = [(text_seen(seen), f"<action>{turn.action}</action>") for seen, turn in episode.turns]
    return [{"role": "system", "content": INSTRUCTIONS}, *_alternating(plain)]


def _alternating(exchanges: list[tuple[str, str]]) -> list[Message]:
    return [
        {"role": role, "content": text}
        for exchange in exchanges
        for role, text in zip(("user", "assistant"), exchange, strict=True)
    ]


def _preamble(episode: Episode) -> str:
    """Return the text before the first prompt of an evaluation's episode: its examples."""
    described = episode.provenance.get("evaluation")
    return str(described.get("preamble", "")) if isinstance(described, Mapping) else ""


def _recorded(seen: RecordedTurn, turn: RecordedTurn) -> tuple[str, str] | None:
    prompt, said = turn.agent.get("prompt"), answer(turn)
    if not isinstance(prompt, str) or said is None:
        return None
    return prompt.replace(_PICTURE, IMAGE, len(image_urls(seen.observation))), said
