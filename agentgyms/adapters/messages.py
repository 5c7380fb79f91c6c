"""Converts observations to chat messages, and replies to actions."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from agentgyms.core.env import TextEnv
from agentgyms.core.images import encode_png, is_image
from agentgyms.core.outcome import Observation, turn_text, user_text
from agentgyms.core.tools import Tools
from agentgyms.registration import make_text_env

__all__ = [
    "INSTRUCTIONS",
    "TOOL_INSTRUCTIONS",
    "chat_message",
    "image_urls",
    "parse_action",
    "tools_of",
    "turn_text",
    "user_messages",
    "user_text",
]

INSTRUCTIONS = (
    "You act in a world of text. Each message shows what you see and, where they can be listed, "
    "the actions that work now. Think first if you like; then give one action in <action></action>."
)
"""A system prompt for models whose actions `parse_action` reads."""

TOOL_INSTRUCTIONS = (
    "You act in a world of text. Each message shows what you see and, where they can be listed, "
    "the calls that work now. Think first if you like; then call one tool."
)
_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)


def user_messages(observation: Observation, info: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the next user message: goal (first turn), observation, images and actions."""
    return [chat_message(user_text(observation, info), image_urls(observation).values())]


def chat_message(text: str, images: Collection[str] = ()) -> dict[str, Any]:
    """Return a user message in the form of OpenAI's API; `images` are data URLs."""
    if not images:
        return {"role": "user", "content": text}
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in images]
    return {"role": "user", "content": [{"type": "text", "text": text}, *pictures]}


def parse_action(reply: str) -> str:
    """Return the action in a reply: the content of the last <action></action>, or all of it."""
    found = _ACTION.findall(reply)
    return found[-1].strip() if found else reply.strip()


def tools_of(env_id: str, kwargs: Mapping[str, Any]) -> Tools:
    """Return an environment's tools, having made it once, so that errors show at once.

    Raises `AgentGymsError` if the environment cannot be made.
    """
    env = make_text_env(env_id, **kwargs)
    found = cast(TextEnv, env.unwrapped).tools
    env.close()
    return found


def image_urls(observation: Observation) -> dict[str, str]:
    """Return the images of an observation as data URLs, by the names of its parts."""
    if isinstance(observation, str):
        return {}
    return {
        name: f"data:image/png;base64,{base64.b64encode(encode_png(part)).decode('ascii')}"
        for name, part in observation.items()
        if is_image(part)
    }
