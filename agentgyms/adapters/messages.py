"""Turns as chat messages: what an agent is shown, and the action in its reply."""

from __future__ import annotations

import base64
import re
from typing import Any

from agentgyms.images import encode_png, is_image
from agentgyms.observations import text_of
from agentgyms.outcome import Observation

INSTRUCTIONS = (
    "You act in a world of text. Each message shows what you see and, where they can be listed, "
    "the actions that work now. Think first if you like; then give one action in <action></action>."
)
_ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)


def shown(observation: Observation, info: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the player's next message: goal at first, observation, pictures and actions."""
    parts = [f"Your task: {info['goal']}"] if not info["turn"] else []
    parts.append(text_of(observation))
    if info["admissible_actions"]:
        parts.append("Actions that work now:\n" + "\n".join(info["admissible_actions"]))
    text, urls = "\n\n".join(parts), picture_urls(observation).values()
    if not urls:
        return [{"role": "user", "content": text}]
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"role": "user", "content": [{"type": "text", "text": text}, *pictures]}]


def action_of(reply: str) -> str:
    """Return the action in a reply: what the last <action></action> holds, or all of it."""
    found = _ACTION.findall(reply)
    return found[-1].strip() if found else reply.strip()


def picture_urls(observation: Observation) -> dict[str, str]:
    """Return the pictures of an observation as data URLs, by the names of its parts."""
    if isinstance(observation, str):
        return {}
    return {
        name: f"data:image/png;base64,{base64.b64encode(encode_png(part)).decode('ascii')}"
        for name, part in observation.items()
        if is_image(part)
    }
