"""The environment under examination: its tasks, its expert's episodes, and play by any policy."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Self, cast

import gymnasium as gym

from agentgyms.certification.verdicts import NotRun
from agentgyms.core.env import Observation, TextEnv
from agentgyms.core.errors import BadOption
from agentgyms.core.experts import Expert
from agentgyms.core.outcome import PLACEHOLDER, copy_observation
from agentgyms.registration import make_text_env

_NOTHING: Final = "look"
"""An action where nothing is known to be one."""


class Start(NamedTuple):
    """A task and the seed of its episodes."""

    task_id: str
    seed: int


class Seen(NamedTuple):
    """What a policy is given before a turn: the observation, `info`, and the turn's task."""

    observation: Observation
    info: dict[str, Any]
    start: Start


Policy = Callable[[Seen], str]


class Episode(NamedTuple):
    """A played episode; `rewards` has one number a turn, `states` one more, the first state."""

    start: Start
    states: list[Seen]
    actions: list[str]
    rewards: list[float]

    @property
    def solved(self) -> float:
        """1.0 if the task is solved, by the benchmark's rule."""
        return float(self.states[-1].info["success"])

    @property
    def score(self) -> float:
        """The benchmark's score at the end; nan if the episode could not be rated."""
        return float(self.states[-1].info["score"])

    @property
    def gain(self) -> float:
        """The sum of the rewards."""
        return sum(self.rewards)


def mean(values: Iterable[float]) -> float:
    """Return the mean, rounded so that it reads well; a figure that nobody knows counts as 0."""
    listed = [0.0 if math.isnan(value) else value for value in values]
    return round(sum(listed) / len(listed), 4)


def always(action: str) -> Policy:
    """Return the policy that has one action."""
    return lambda _: action


def repeated(episode: Episode) -> Policy:
    """Return the policy that plays an episode's actions again, and empty ones after them."""
    actions = iter(episode.actions)
    return lambda _: next(actions, "")


class Subject:
    """An environment, tasks spread evenly over its split, and what its expert does in them."""

    def __init__(self, env_id: str, arguments: Mapping[str, Any], tasks: int, seed: int) -> None:
        self.env_id, self.arguments, self.seed = env_id, dict(arguments), seed
        self.env = self.make(oracle=True)
        ids, count = self.world.tasks, len(self.world.tasks)
        chosen = [ids[i * count // tasks] for i in range(tasks)] if tasks < count else list(ids)
        self.starts = [Start(task_id, seed + i) for i, task_id in enumerate(chosen)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.env.close()

    def make(self, **more: Any) -> gym.Env[Any, str]:
        """Make the environment anew; `more` are further arguments."""
        return make_text_env(self.env_id, **{**self.arguments, **more})

    @property
    def world(self) -> TextEnv:
        """The environment that plays."""
        return cast(TextEnv, self.env.unwrapped)

    @property
    def is_remote(self) -> bool:
        """Whether the environment is on a server."""
        return bool({"url", "transport"} & set(self.world.arguments))

    @cached_property
    def expert(self) -> list[Episode]:
        """The expert's episodes; `NotRun` says why there are none."""
        try:
            expert = Expert(self.env)
            return [self.play(start, lambda _: expert()) for start in self.starts]
        except BadOption as e:
            raise NotRun(f"the expert does not play: {e}") from e

    def play(self, start: Start, policy: Policy, env: gym.Env[Any, str] | None = None) -> Episode:
        """Play one episode."""
        env = env or self.env
        observation, info = env.reset(seed=start.seed, options={"task_id": start.task_id})
        episode = Episode(start, [_seen(observation, info, start)], [], [])
        over = False
        while not over:
            action = policy(episode.states[-1])
            observation, reward, terminated, truncated, info = env.step(action)
            over = terminated or truncated
            episode.actions.append(action)
            episode.rewards.append(float(reward))
            episode.states.append(_seen(observation, info, start))
        return episode

    def play_all(self, policy: Policy) -> list[Episode]:
        """Play one episode of each task."""
        return [self.play(start, policy) for start in self.starts]

    @cached_property
    def known_actions(self) -> dict[str, int]:
        """The expert's actions and the number of tasks in which it takes each, most first."""
        counts = Counter(action for e in self.expert for action in dict.fromkeys(e.actions))
        return dict(counts.most_common())

    def actions_in(self, seen: Seen, known: Sequence[str]) -> list[str]:
        """Return listed actions and `known` ones of listed forms; all `known` if none is listed."""
        listed = seen.info["admissible_actions"]
        forms = [form for form in listed if PLACEHOLDER.search(form)]
        found = [action for action in listed if action not in forms]
        if forms:
            patterns = [".+".join(map(re.escape, PLACEHOLDER.split(form))) for form in forms]
            fits = re.compile("|".join(patterns), re.DOTALL).fullmatch
            found += [a for a in known if a not in found and fits(a)]
        return found or list(known) or [_NOTHING]

    def chance(self, name: str) -> Policy:
        """Return a policy that draws from `actions_in`; of the known actions, other tasks' ones."""
        drawn = random.Random(f"{self.seed} {name}")
        others = {
            episode.start: list(
                dict.fromkeys(a for e in self.expert if e is not episode for a in e.actions)
            )
            for episode in self.expert
        }
        return lambda seen: drawn.choice(self.actions_in(seen, others[seen.start]))


def _seen(observation: Observation, info: dict[str, Any], start: Start) -> Seen:
    return Seen(copy_observation(observation), info, start)
