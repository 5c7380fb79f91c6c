"""Observations as values: their text, their copies, their equality, and how messages show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from agentgyms import keys
from agentgyms.outcome import Observation

_KEY_SHOWN = 8


def text_of(observation: Observation) -> str:
    """Return what an observation says in words: itself, or its part `text`, or ""."""
    return observation if isinstance(observation, str) else str(observation.get("text", ""))


def copied(observation: Observation) -> Observation:
    """Return an observation that shares no container and no array with the given one."""
    if isinstance(observation, str):
        return observation
    return {
        name: part.copy() if isinstance(part, np.ndarray) else part
        for name, part in observation.items()
    }


def equal(first: Observation, second: Observation) -> bool:
    """Return whether two observations show the same, to the last pixel."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    return keys.observation_key(first) == keys.observation_key(second)


def shown(value: Any) -> str:
    """Return `repr(value)`, with arrays as their type, shape and the beginning of their key."""
    if isinstance(value, np.ndarray):
        key = keys.observation_key({"": value})[:_KEY_SHOWN]
        return f"<{value.dtype} {list(value.shape)}, key {key}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ",)"
    return repr(value)
