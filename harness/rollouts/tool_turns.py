"""Turns of an agent that calls tools: what prompts say of them, and their messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentgyms.core.env import Feedback
from agentgyms.models.types import ServedCall
from harness.prompts import PromptStyle
from harness.types.messages import Content, Message
from harness.types.rollout import Turn

_NOT_MADE: Final = "This call was not made."


def past_fields(style: PromptStyle, turn: Turn) -> dict[str, str]:
    """Return the template variables of a past turn: `call`, and `problem`, "" for a valid call."""
    if style.tools is None:
        return {"call": turn.action, "problem": ""}
    return {"call": style.tools.tools.shown(turn.action), "problem": _problem(style, turn)}


def fields(style: PromptStyle, turns: Sequence[Turn], admissible: Sequence[str]) -> dict[str, Any]:
    """Return the template variables of a prompt.

    Args:
        style: Of the prompt.
        turns: All turns taken.
        admissible: Actions.

    Returns:
        `calls`, the admissible actions as calls, and `problem`, what was wrong with the last turn's
        answer or "".
    """
    if style.tools is None:
        return {"calls": [], "problem": ""}
    calls = [style.tools.tools.shown(action) for action in admissible]
    return {"calls": calls, "problem": _problem(style, turns[-1]) if turns else ""}


def _problem(style: PromptStyle, turn: Turn) -> str:
    if style.tools is None or turn.feedback != Feedback.MALFORMED.value:
        return ""
    return style.tools.problem(turn.completion.text, turn.completion.calls)


def opening(style: PromptStyle, content: Content) -> Message:
    """Return the first message of a chat; it offers the tools."""
    message: Message = {"role": "user", "content": content}
    if style.tools:
        message["tools"] = style.tools.tools.schemas
    return message


def exchange(
    style: PromptStyle, calls: Sequence[ServedCall] | None, said: Message, content: Content
) -> list[Message]:
    """Return the messages of an answer and of the prompt that follows it.

    The prompt is a tool's result. Where a server tells calls apart, each of them gets one, and an
    answer without a call is followed by a user's message, as its protocol demands.

    Args:
        style: Of the prompt.
        calls: Those of the answer that a server tells apart; None where none does.
        said: The message of the answer.
        content: Of the prompt.
    """
    if style.tools is None or (calls is not None and not calls):
        return [said, {"role": "user", "content": content}]
    if calls is None:
        return [said, {"role": "tool", "content": content}]
    results: list[Message] = [
        {"role": "tool", "content": _NOT_MADE if i else content, "call_id": call.id}
        for i, call in enumerate(calls)
    ]
    return [{**said, "calls": tuple(calls)}, *results]


def asked_instead(messages: Sequence[Message], request: str) -> list[Message]:
    """Return a transcript that ends with a request in place of the current observation.

    The request is a user's message, or a tool's result where the observation would be one.
    """
    answers = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    if not answers:
        return [*messages, {"role": "user", "content": request}]
    at = answers[-1] + 1
    return [*messages[:at], {**messages[at], "content": request}, *messages[at + 1 :]]
