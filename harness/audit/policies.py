"""Policies that an audit plays and plays on with: an agent, or a noisy expert without a model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from agentgyms.core import experts
from agentgyms.core.env import TextEnv
from agentgyms.core.errors import EnvUnavailable
from harness.rollouts.agent import Agent
from harness.rollouts.episode import Episode, run_episode
from harness.rollouts.forks import fork
from harness.rollouts.views import Decision, EpisodeView
from harness.types.errors import ConfigError
from harness.types.messages import texts_of
from harness.types.rollout import Completion, Usage

_OPEN: Final = "<"
"""Admissible actions with a part to fill in, such as `search[<query>]`, have this character."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The rest of an episode, played on from a fork.

    Attributes:
        rewards: The environment's, of each turn after the fork.
        success: The task is solved in the end.
        score: The score in the end.
        usage: Tokens of the continuation.
    """

    rewards: tuple[float, ...]
    success: bool
    score: float
    usage: Usage = field(default_factory=Usage)


class Chances(NamedTuple):
    """Probabilities of a policy in a state.

    Attributes:
        taken: Of the action that is taken.
        equal: That two draws are the same action: the sum of all squared probabilities.
    """

    taken: float
    equal: float


class AuditPolicy(Protocol):
    """What plays the rollouts of an audit and their continuations."""

    async def act(self, episode: Episode, view: EpisodeView, seed: int) -> Decision:
        """Return the next action of an episode."""
        ...

    def key(self, episode: Episode) -> str:
        """Return what the policy knows beside the state; equal keys, equal continuations."""
        ...

    def chances(self, episode: Episode, action: str) -> Chances | None:
        """Return the policy's probabilities where an action is taken; None if they are unknown."""
        ...

    async def play_on(self, episode: Episode, seeds: Sequence[int]) -> list[Continuation]:
        """Return one continuation for each seed, from forks; the episode itself stays as it is."""
        ...


class NoisyExpert:
    """The environment's expert, with random actions in between. It has no memory and no model.

    A random action is one of the admissible ones. Where all have parts to fill in, or none can be
    listed, it is one of the beginnings of the expert's action, see `beginnings`.

    Args:
        noise: Probability of a random action, in [0, 1].
        kind: Which of the environment's experts.
    """

    def __init__(self, noise: float, kind: str = "best") -> None:
        """Raise `ConfigError` if `noise` is out of range."""
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
        """Return its probabilities, of actions that are told apart by their text."""
        drawn = self._random(episode.env, episode.info)
        chances = dict.fromkeys(drawn, self._noise / len(drawn))
        if self._noise < 1:
            best = self._expert(episode.env)
            chances[best] = chances.get(best, 0.0) + 1 - self._noise
        return Chances(chances.get(action, 0.0), sum(p * p for p in chances.values()))

    async def play_on(self, episode: Episode, seeds: Sequence[int]) -> list[Continuation]:
        """Return one continuation for each seed."""
        env = episode.env
        return await episode.pool.call(
            lambda: [self._play(env, episode.info, seed) for seed in seeds],
            blocking=env.blocking,
            interrupt=env.interrupt,
        )

    def choose(self, env: TextEnv, info: Mapping[str, Any], rng: random.Random) -> str:
        """Return the next action in a state of the environment."""
        if rng.random() >= self._noise:
            return self._expert(env)
        drawn = self._random(env, info)
        return drawn[int(rng.random() * len(drawn))]

    def _random(self, env: TextEnv, info: Mapping[str, Any]) -> list[str]:
        """Return the random actions of a state, all equally likely; at least one."""
        return _closed(info) or beginnings(self._expert(env))

    def _expert(self, env: TextEnv) -> str:
        return experts.choose(env.expert_actions(), self._kind)

    def _play(self, env: TextEnv, info: Mapping[str, Any], seed: int) -> Continuation:
        rng, rewards, over = random.Random(seed), list[float](), False
        twin = env.fork()
        try:
            while not over:
                action = self.choose(twin, info, rng)
                _, reward, terminated, truncated, info = twin.step(action)
                rewards.append(float(reward))
                over = terminated or truncated
        finally:
            twin.close()
        return Continuation(tuple(rewards), bool(info["success"]), float(info["score"]))


def _closed(info: Mapping[str, Any]) -> list[str]:
    """Return the admissible actions that have no part to fill in."""
    return [action for action in info["admissible_actions"] if _OPEN not in action]


def beginnings(action: str) -> list[str]:
    """Return the shorter forms of an action, from the shortest one; at least one.

    Of `verb[words]` it is what the brackets hold that gets shorter, word by word; of code with
    several lines lines are left out at its end, of anything else words.
    """
    verb, bracket, content = action.partition("[")
    if bracket and content.endswith("]") and "\n" not in action:
        words = content[:-1].split()
        return [f"{verb}[{' '.join(words[:i])}]" for i in range(max(1, len(words)))]
    separator = "\n" if "\n" in action else " "
    parts = action.split(separator)
    return [separator.join(parts[:i]) for i in range(len(parts))]


class AgentPolicy:
    """A language model's agent; its continuations keep the episode's history.

    Args:
        agent: Plays.
        max_live: Largest number of continuations at the same time.
    """

    def __init__(self, agent: Agent, max_live: int = 256) -> None:
        """Keep the agent."""
        self._agent, self._slots = agent, asyncio.Semaphore(max_live)

    async def act(self, episode: Episode, view: EpisodeView, seed: int) -> Decision:
        """Return the next action."""
        return await self._agent.act(view, seed)

    def key(self, episode: Episode) -> str:
        """Return the text of the next prompt."""
        return "\n".join(texts_of(self._agent.messages(episode.view())))

    def chances(self, episode: Episode, action: str) -> None:
        """Return None: many answers lead to one action."""

    async def play_on(self, episode: Episode, seeds: Sequence[int]) -> list[Continuation]:
        """Return one continuation for each seed.

        Raises:
            EnvUnavailable: An environment or the model failed.
        """
        return list(await asyncio.gather(*(self._play(episode, seed) for seed in seeds)))

    async def _play(self, episode: Episode, seed: int) -> Continuation:
        async with self._slots:
            twin = await fork(episode)
            twin.member = 0  # its decisions depend on the seed alone
            try:
                rollout = await run_episode(twin, self._agent, seed=seed)
            finally:
                await twin.pool.call(twin.env.close, blocking=twin.env.blocking)
        if rollout.error:
            raise EnvUnavailable(f"a continuation of {rollout.task_id} failed: {rollout.error}")
        own = rollout.turns[len(episode.rollout.turns) :]
        usage = sum((one.usage for turn in own for one in turn.answers), Usage())
        rewards = tuple(turn.reward for turn in own)
        return Continuation(rewards, rollout.success, rollout.score, usage)
