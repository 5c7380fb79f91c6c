"""Policies that an audit plays and plays on with: an agent, or a noisy expert without a model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from agentgyms.core import experts
from agentgyms.core.env import TextEnv
from agentgyms.exact import Model, Solved
from harness.rollouts.continuations import AgentContinuations, Continuation, ContinuationPlayer
from harness.rollouts.episode import Episode
from harness.rollouts.views import Decision, EpisodeView
from harness.types.errors import ConfigError
from harness.types.rollout import Completion

_OPEN: Final = "<"
"""Admissible actions with a part to fill in, such as `search[<query>]`, have this character."""


class Chances(NamedTuple):
    """Probabilities of a policy in a state."""

    taken: float  # probability of the action taken
    equal: float  # sum of squared probabilities: two draws are one action


class AuditPolicy(ContinuationPlayer, Protocol):
    """Plays the rollouts of an audit and their continuations."""

    async def act(self, episode: Episode, view: EpisodeView, seed: int) -> Decision:
        """Return the next action of an episode."""
        ...

    def chances(self, episode: Episode, action: str) -> Chances | None:
        """Return the policy's probabilities where an action is taken; None if they are unknown."""
        ...


class NoisyExpert:
    """The environment's expert with random actions in between; it has no memory and no model.

    A random action is an admissible one. If all of them have parts to fill in, or none can be
    listed, it is one of the `beginnings` of the expert's action. `noise` is its probability, in [0,
    1].
    """

    def __init__(self, noise: float, kind: str = "best") -> None:
        if not 0 <= noise <= 1:
            raise ConfigError(f"noise must be in [0, 1], got {noise}")
        self._noise, self._kind = noise, kind

    async def act(self, episode: Episode, view: EpisodeView, seed: int) -> Decision:
        """Return the next action."""
        action = self.choose(episode.env, view.info, random.Random(seed))
        return Decision(action, Completion(action))

    def key(self, episode: Episode) -> str:
        """Return "": it knows the state alone."""
        return ""

    def chances(self, episode: Episode, action: str) -> Chances:
        """Return its probabilities; actions with equal text are one action."""
        drawn = self._random(episode.env, episode.info)
        chances = dict.fromkeys(drawn, self._noise / len(drawn))
        if self._noise < 1:
            best = self._expert(episode.env)
            chances[best] = chances.get(best, 0.0) + 1 - self._noise
        return Chances(chances.get(action, 0.0), sum(p * p for p in chances.values()))

    def table(self, env: Solved, model: Model, turn: int) -> NDArray[np.float64]:
        """Return its probabilities in an enumerated environment from a turn on. Shape [H, S, A]."""
        if self._kind != "best":
            raise ConfigError(f"exact truth knows the expert 'best' alone, got {self._kind!r}")
        acts = model.legal.sum(axis=1, keepdims=True)
        random = self._noise * model.legal / np.maximum(acts, 1)
        table = np.repeat(random[None], model.horizon, axis=0)
        for t in range(model.horizon):
            for number, (state, names) in enumerate(zip(model.states, model.actions, strict=True)):
                if names:
                    best = names.index(env.expert_in(state, turn + t))
                    table[t, number, best] += 1 - self._noise
        return table

    async def play_on(
        self, episode: Episode, seeds: Sequence[int]
    ) -> Awaitable[Sequence[Continuation]]:
        """Return an awaitable of one continuation for each seed; they are played at once."""
        env = episode.env
        played: asyncio.Future[Sequence[Continuation]] = asyncio.get_running_loop().create_future()
        played.set_result(
            await episode.call(lambda: [self._play(env, episode.info, seed) for seed in seeds])
        )
        return played

    def choose(self, env: TextEnv, info: Mapping[str, Any], rng: random.Random) -> str:
        """Return the next action in a state of the environment."""
        if rng.random() >= self._noise:
            return self._expert(env)
        drawn = self._random(env, info)
        return drawn[int(rng.random() * len(drawn))]

    def _random(self, env: TextEnv, info: Mapping[str, Any]) -> list[str]:
        """Return the random actions of a state, all equally likely; at least one."""
        closed = [action for action in info["admissible_actions"] if _OPEN not in action]
        return closed or beginnings(self._expert(env))

    def _expert(self, env: TextEnv) -> str:
        return experts.choose(env.expert_actions(), self._kind)

    def _play(self, env: TextEnv, info: Mapping[str, Any], seed: int) -> Continuation:
        rng, rewards, over = random.Random(seed), list[float](), False
        twin = env.fork()
        try:
            twin.redraw(seed)
            while not over:
                action = self.choose(twin, info, rng)
                _, reward, terminated, truncated, info = twin.step(action)
                rewards.append(float(reward))
                over = terminated or truncated
        finally:
            twin.close()
        return Continuation(tuple(rewards), bool(info["success"]), float(info["score"]))


def beginnings(action: str) -> list[str]:
    """Return the shorter forms of an action, from the shortest one; at least one.

    `verb[words]` loses words in its brackets, code of several lines loses lines, anything else
    words: always from the end.
    """
    verb, bracket, content = action.partition("[")
    if bracket and content.endswith("]") and "\n" not in action:
        words = content[:-1].split()
        return [f"{verb}[{' '.join(words[:i])}]" for i in range(max(1, len(words)))]
    separator = "\n" if "\n" in action else " "
    parts = action.split(separator)
    return [separator.join(parts[:i]) for i in range(len(parts))]


class AgentPolicy(AgentContinuations):
    """A language model's agent; its continuations keep the episode's history."""

    async def act(self, episode: Episode, view: EpisodeView, seed: int) -> Decision:
        """Return the next action."""
        return await self.agent.act(view, seed)

    def chances(self, episode: Episode, action: str) -> None:
        """Return None: many answers lead to one action."""
