"""Plays an episode as a chat: what the model says are actions, what it reads are user messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from agentgyms.adapters.messages import image_urls, parse_action, turn_text
from agentgyms.core.errors import BadOption, EnvUnavailable
from agentgyms.core.outcome import Observation


class ChatEpisode:
    """An episode of an environment for adapters to trainers and evaluations that chat.

    Args:
        env: The environment; `close` closes it.
        shown: Returns an action as the model reads it.
        sees: Whether the adapter passes pictures on.

    Attributes:
        text: The text that the model reads next.
        images: The pictures beside it, as data URLs.
        info: `info` of the latest turn.
        reward: The reward of the latest turn.
        total: The return: the sum of the rewards so far.
        over: Whether the episode is over.
    """

    text: str
    images: tuple[str, ...]
    info: dict[str, Any]

    def __init__(
        self,
        env: gym.Env[Observation, str],
        shown: Callable[[str], str] = str,
        *,
        sees: bool = True,
    ) -> None:
        self._env, self._shown, self._sees = env, shown, sees
        self.reward, self.total, self.over = 0.0, 0.0, False

    def reset(self, seed: int, task_id: str | None = None) -> None:
        """Start an episode; without a task id the seed chooses its task.

        Raises `UnknownTask` if the split has no such task, and `BadOption` if the environment shows
        pictures that the adapter does not pass on.
        """
        options = {} if task_id is None else {"task_id": task_id}
        observation, info = self._env.reset(seed=seed, options=options)
        self.reward, self.total, self.over = 0.0, 0.0, False
        self._see(observation, info)
        if self.images and not self._sees:
            raise BadOption("the environment shows pictures, which this adapter does not pass on")

    def say(self, reply: str) -> None:
        """Take a turn by a reply: the action is the content of its last <action>, or all of it.

        Raises `EnvUnavailable` if the turn was not rated.
        """
        self.act(parse_action(reply))

    def act(self, action: str) -> None:
        """Take a turn; `EnvUnavailable` if it was not rated."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        self.over = terminated or truncated
        self._see(observation, info)
        if math.isnan(float(reward)):
            raise EnvUnavailable(f"the episode was not rated: {info['feedback_text']}")
        self.reward = float(reward)
        self.total += self.reward

    def _see(self, observation: Observation, info: dict[str, Any]) -> None:
        self.info = info
        self.text = turn_text(observation, info, self._shown, over=self.over)
        self.images = tuple(image_urls(observation).values())

    @property
    def figures(self) -> dict[str, float]:
        """Return, success, turns, and the score where the environment has one."""
        known = {"success": self.info["success"], "turns": self.info["turn"]}
        if not math.isnan(self.info["score"]):
            known["score"] = self.info["score"]
        return {"return": self.total, **{name: float(value) for name, value in known.items()}}

    def close(self) -> None:
        """Close the environment."""
        self._env.close()
