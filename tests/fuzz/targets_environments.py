"""Targets: actions of an agent, and snapshots, in every environment that plays in this process."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import gymnasium as gym
from fuzz_target import Broken, target

import agentgyms  # noqa: F401 (registers the environments)
from agentgyms.core import serialization
from agentgyms.core.errors import BadSnapshot, ReplayMismatch
from agentgyms.core.outcome import Feedback

MOST_ACTIONS = 6
ENVIRONMENTS = {
    "corridor": ("Corridor", {}),
    "sokoban": ("Sokoban", {"boxes": 1}),
    "visual_sokoban": ("VisualSokoban", {"boxes": 1}),
    "alfworld": ("ALFWorld", {}),
    "webshop": ("WebShop", {}),
    "searchqa": ("SearchQA", {}),
    "sotopia": ("SOTOPIA", {}),
    "tau2": ("Tau2", {}),
    "scienceworld": ("ScienceWorld", {}),
    "frozen_lake": ("FrozenLake", {}),
    "blackjack": ("Blackjack", {}),
    "number_line": ("NumberLine", {}),
    "ez_points": ("EZPoints", {}),
    "points24": ("Points24", {}),
    "minesweeper": ("Minesweeper", {}),
    "countdown": ("Countdown", {}),
    "tower_of_hanoi": ("TowerOfHanoi", {}),
    "textcraft": ("TextCraft", {}),
    "babyai": ("BabyAI", {}),
}
"""By the end of its targets' names: a registered name and arguments."""


@cache
def made(name: str) -> Any:
    """Return the environment of a name, made once."""
    env_id, kwargs = ENVIRONMENTS[name]
    return gym.make(f"agentgyms/{env_id}-v0", split="train", **kwargs).unwrapped


def _result(observation: Any, info: dict[str, Any]) -> Any:
    """Return an observation and its info as they travel, after checks that hold for all."""
    if info["feedback"] not in {feedback.value for feedback in Feedback}:
        raise Broken(f"feedback {info['feedback']!r}")
    travelled = serialization.dumps(serialization.encode_info(info))
    serialization.decode_info(json.loads(travelled))
    return serialization.encode_observation(observation), travelled


def _episode_actions(name: str) -> list[bytes]:
    """Return actions of two episodes, one a line: an expert's, and admissible ones."""
    env = made(name)
    found = []
    for seed in (1, 2):
        _, info = env.reset(seed=seed)
        actions = []
        for turn in range(3):
            listed = info["admissible_actions"] or ["look"]
            actions.append(listed[(turn * 7 + seed) % len(listed)])
            _, _, terminated, truncated, info = env.step(actions[-1])
            if terminated or truncated:
                break
        found.append("\n".join(actions).encode())
    return found


def _snapshots(name: str) -> list[bytes]:
    env = made(name)
    found = []
    for actions in _episode_actions(name):
        env.reset(seed=1)
        for action in actions.decode().split("\n")[:2]:
            env.step(action)
        found.append(env.snapshot())
    return found


def _play(name: str, data: bytes) -> Any:
    """Take the lines of an input as actions: none may raise, whatever it is."""
    env = made(name)
    env.reset(seed=len(data) % 5)
    found = []
    for action in data.decode("utf-8", "surrogateescape").split("\n")[:MOST_ACTIONS]:
        observation, reward, terminated, truncated, info = env.step(action)
        found.append((_result(observation, info), reward, terminated, truncated))
        if terminated or truncated:
            break
    return found


def _restore(name: str, data: bytes) -> Any:
    """Restore a snapshot; what is restored is saved as it was, and can be played on."""
    env = made(name)
    observation, info = env.restore(data)
    seen = _result(observation, info)
    saved = env.snapshot()
    if json.loads(saved) != json.loads(data):
        env.restore(saved)
        if env.snapshot() != saved:
            raise Broken("a snapshot of what was restored does not restore to the same")
    fields = json.loads(data)
    if not (fields["terminated"] or fields["truncated"]):
        env.step("look")
    return seen, saved


def _add(name: str) -> None:
    def actions(data: bytes) -> Any:
        return _play(name, data)

    def restore(data: bytes) -> Any:
        return _restore(name, data)

    actions.__name__, restore.__name__ = f"actions_{name}", f"restore_{name}"
    target(seeds=lambda: _episode_actions(name), kind="text", steps_per_byte=20_000)(actions)
    target(BadSnapshot, ReplayMismatch, seeds=lambda: _snapshots(name), steps_per_byte=4_000)(
        restore
    )


for _name in ENVIRONMENTS:
    _add(_name)
