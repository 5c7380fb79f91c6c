"""The contract: what every environment offers, written once.

A child of `TextEnv` describes a world with three methods: `load_tasks`, and `begin` and `act`,
which return an `Outcome`. Everything else (seeds, turns, limits, keys, `info`, snapshots, forks) is
the same for all environments and is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from agentgyms import keys, randomness, snapshots, states
from agentgyms.arguments import check_max_turns, check_options, check_oracle
from agentgyms.errors import BadOption
from agentgyms.images import Image
from agentgyms.observations import text_of
from agentgyms.outcome import (
    MAX_ACTION,
    MAX_OBSERVATION,
    Feedback,
    Observation,
    Outcome,
    TurnInfo,
    cut,
    cut_action,
)
from agentgyms.spaces import UnicodeText
from agentgyms.tasks import Task, TaskSet, check_split

__all__ = ["Feedback", "Observation", "Outcome", "TextEnv", "TurnInfo"]

_SEED_RANGE: Final = 2**31
_TASK_STREAM: Final = 0x7A5C


class TextEnv(gym.Env[Observation, str], ABC):
    """A multi-turn environment for language agents; see `TurnInfo` for what `info` holds.

    A child sets `default_max_turns` and `splits` and writes `load_tasks`, `begin` and `act`; it
    may write `goal`, `save` and `load` (exact snapshots), `expert_actions`, `draw`, `warm`,
    `close`. The episode is a function of the task and the generator given to `begin`, and of the
    actions. Arguments are keyword-only, so that `fork` can build the same environment again.

    Args:
        split: Which tasks are drawn.
        max_turns: Turns until the episode is truncated; None takes the environment's own default.
        oracle: Put solutions into `info["oracle"]`.
        render_mode: `"ansi"`, `"rgb_array"` where the class has `draw`, or None.

    Raises:
        UnknownSplit: The environment has no such split.
        BadOption: `max_turns` is not a positive integer, `oracle` is not a boolean, or the render
            mode is unknown.
        TypeError: The class lacks one of the three methods.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (Gymnasium's)
    default_max_turns: ClassVar[int] = 50
    splits: ClassVar[tuple[str, ...]] = ("train",)
    private_arguments: ClassVar[frozenset[str]] = frozenset()
    """Keyword arguments that a server's clients may not set, such as paths of its file system."""
    client_limits: ClassVar[Mapping[str, int]] = MappingProxyType({"max_turns": 10_000})
    """Greatest values that a server's clients may give arguments whose cost grows with them."""
    blocking: bool = False
    """Whether a step waits for something outside this process; such environments run in threads."""
    data_version: str = "1"
    """Version of the tasks and rules; recordings and results carry it."""
    parties: Mapping[str, str] = MappingProxyType({})
    """Who else has a part in an episode, such as a partner or a judge, by role and by name.

    Recordings, results and servers' descriptions carry it: figures that another judge gave, or
    that were reached with another partner, are other figures.
    """

    _arguments: dict[str, Any]
    _random_state: Any = None
    """State of a generator that `np_random` is yet to make; most members of groups never ask."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Offer the render mode `rgb_array` where there is something to draw."""
        super().__init_subclass__(**kwargs)
        modes = cls.metadata["render_modes"]
        if cls.draw is not TextEnv.draw and "rgb_array" not in modes:
            cls.metadata = {**cls.metadata, "render_modes": [*modes, "rgb_array"]}

    def __new__(cls, **kwargs: Any) -> Self:
        """Remember the keyword arguments, which `fork` and recordings repeat."""
        env = super().__new__(cls)
        env._arguments = kwargs
        return env

    def __init__(
        self,
        *,
        split: str = "train",
        max_turns: int | None = None,
        oracle: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Check the arguments; `reset` starts an episode."""
        self.split = check_split(split, self.splits, type(self).__name__)
        self.max_turns = check_max_turns(self.default_max_turns if max_turns is None else max_turns)
        if render_mode not in (None, *self.metadata["render_modes"]):
            known = ", ".join(self.metadata["render_modes"])
            raise BadOption(f"render_mode {render_mode!r} is unknown: expected None or {known}")
        self.oracle = check_oracle(oracle)
        self.render_mode = render_mode
        self.observation_space = UnicodeText(MAX_OBSERVATION)
        self.action_space = UnicodeText(MAX_ACTION)
        self._tasks: TaskSet | None = None
        self._episode: snapshots.Episode | None = None

    # --- what a child writes -------------------------------------------------------------------

    @abstractmethod
    def load_tasks(self) -> TaskSet:
        """Return the tasks of `self.split`. Called once, when they are first needed."""

    @abstractmethod
    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start `task` and return its first state; all chance of the episode comes from `rng`."""

    @abstractmethod
    def act(self, action: str) -> Outcome:
        """Take one turn. Any string may come; a bad one is answered with a `Feedback`."""

    def goal(self, task: Task) -> str:
        """Return the goal of the episode in words. Called after `begin`."""
        return ""

    def save(self) -> Any:
        """Return the engine's state as JSON-plain values; None if only a replay restores it."""
        return None

    def load(self, task: Task, state: Any) -> None:
        """Take up what `save` returned."""
        raise NotImplementedError(f"{type(self).__name__} has save but no load")

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of each expert, by kind; `"best"` knows the true state.

        Raises:
            BadOption: The environment has no expert.
        """
        raise BadOption(f"{type(self).__name__} has no expert policy")

    def solution(self) -> dict[str, Any]:
        """Return what `info["oracle"]` tells: the experts' actions, and figures if there are."""
        return dict(self.expert_actions())

    def draw_task(self, seed: int, rng: np.random.Generator) -> str:
        """Return the id of the task of an episode whose options name none."""
        return self.tasks[int(rng.integers(len(self.tasks)))]

    @classmethod
    def is_private(cls, name: str, value: Any) -> bool:  # noqa: ARG003 (a child's may look at it)
        """Return whether a server's clients may not give an argument this value."""
        return name in cls.private_arguments

    def warm(self) -> None:
        """Start what the first turns would wait for; servers call it before they are ready."""

    def interrupt(self) -> None:
        """Let a reset or step that waits in another thread for a model raise soon."""

    def draw(self) -> Image:
        """Return the state as a new image, uint8 [H, W, 3]; with it comes the mode `rgb_array`."""
        raise NotImplementedError(f"{type(self).__name__} draws nothing: use render_mode='ansi'")

    # --- Gymnasium's interface -----------------------------------------------------------------

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that unseeded resets draw from."""
        if self._random_state is not None:
            self.np_random = randomness.from_state(self._random_state)
        return super().np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._random_state = None
        self._np_random, self._np_random_seed = value, -1

    @property
    def tasks(self) -> TaskSet:
        """The tasks of the split; iterating yields their ids.

        Raises:
            BadOption: There is none.
        """
        if self._tasks is None:
            tasks = self.load_tasks()
            if not tasks:
                raise BadOption(
                    f"split {self.split!r} has no task with these arguments: choose another split, "
                    "or arguments that leave some"
                )
            self._tasks = tasks
        return self._tasks

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments this environment was made with."""
        return dict(self._arguments)

    @property
    def episode_source(self) -> tuple[int, dict[str, Any]]:
        """Seed and options of the running episode: `reset` with them begins it again.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if self._episode is None:
            raise ResetNeeded("there is no episode yet: call reset() first")
        return self._episode.seed, dict(self._episode.options)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, a function of (split, seed, options) alone.

        An unseeded reset draws its episode seed from `np_random`.

        Args:
            seed: Seed of the episode and of `np_random`; a non-negative integer.
            options: `{"task_id": ...}` picks the task, else the seed does.

        Raises:
            UnknownTask: The split has no such task.
            BadOption: An option is unknown.
        """
        episode = self._plan(seed, options)
        observation, info = self._start(episode)
        self._note(episode, snapshots.Last(observation, info))
        return observation, info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one turn; any string is an action, and a bad one consumes a turn too.

        Of an action longer than the action space allows, only so much is read that it is too long.

        Returns:
            Observation, the benchmark's reward, terminated (the task ended), truncated (the turn
            limit was reached or the engine was lost), info.

        Raises:
            ResetNeeded: No episode has begun or it is over.
            TypeError: The action is not a string.
        """
        episode = self._running(action)
        action = cut_action(action)
        observation, reward, terminated, truncated, info = self._advance(episode, action)
        episode.actions.append(action)
        self._note(episode, snapshots.Last(observation, info, terminated, truncated))
        return observation, reward, terminated, truncated, info

    def render(self) -> str | Image | None:
        """Return what the agent reads now in mode `ansi`, and what `draw` shows in `rgb_array`."""
        if self.render_mode is None or self._episode is None:
            return None
        if self.render_mode == "rgb_array":
            return self.draw()
        return text_of(self._episode.last.observation)

    # --- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state of the episode and of `np_random` as portable bytes.

        Raises:
            ResetNeeded: No episode has begun.
        """
        if self._episode is None:
            raise ResetNeeded("snapshot was called before the first reset: call reset() first")
        return snapshots.pack(states.kind_of(self), self._episode, self.np_random, self.save())

    def restore(self, snapshot: bytes) -> tuple[Observation, dict[str, Any]]:
        """Return to a snapshot and return the observation and info of its state.

        Exact where the engine can save itself; otherwise the actions are played again and the
        `state_key` is verified.

        Raises:
            BadSnapshot: The bytes are no snapshot, or one of another environment.
            ReplayMismatch: Replaying reached another state.
        """
        return states.restore(self, snapshot)

    def fork(self) -> Self:
        """Return an independent environment in the same state."""
        twin = type(self)(**self._arguments)
        twin.spec = self.spec
        twin._tasks = self._tasks
        if self._episode is not None:
            states.Original(self).give(twin)
        else:
            twin.np_random = randomness.copied(self.np_random)
        return twin

    # --- one episode ---------------------------------------------------------------------------

    def _plan(self, seed: int | None, options: dict[str, Any] | None) -> snapshots.Episode:
        """Return the episode that a reset is to begin; the running one is not over yet."""
        checked = check_options(options)
        super().reset(seed=seed)
        if seed is not None:
            self._random_state = None
        else:
            seed = int(self.np_random.integers(_SEED_RANGE))
        return snapshots.Episode(seed=int(seed), options=checked)

    def _running(self, action: Any) -> snapshots.Episode:
        """Return the episode that `action` can be taken in."""
        episode = self._episode
        if episode is None or episode.last.over:
            when = "before the first reset" if episode is None else "after the end of the episode"
            raise ResetNeeded(f"step was called {when}: call reset() first")
        if not isinstance(action, str):
            raise TypeError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
        return episode

    def _note(self, episode: snapshots.Episode, last: snapshots.Last) -> None:
        """Keep what is about to be returned, apart from what the caller gets and may change."""
        episode.last = last.copy()
        self._episode = episode

    def _start(self, episode: snapshots.Episode) -> tuple[Observation, dict[str, Any]]:
        rng = randomness.generator_of(episode.seed, _TASK_STREAM)
        task_id = episode.options.get("task_id")
        if task_id is None:
            task_id = self.draw_task(episode.seed, rng)
        self._task = self.tasks.find(task_id)
        self._episode = None  # from here on the running episode is lost; a wrong task id spared it
        outcome = self.begin(self._task, rng)
        self._goal = self.goal(self._task)
        observation = cut(outcome.observation)
        return observation, self._info(outcome, observation, turn=0)

    def _advance(
        self, episode: snapshots.Episode, action: str
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        outcome = self.act(action)
        turn = len(episode.actions) + 1
        observation = cut(outcome.observation)
        truncated = not outcome.terminated and (outcome.truncated or turn >= self.max_turns)
        info = self._info(outcome, observation, turn)
        return observation, float(outcome.reward), outcome.terminated, truncated, info

    def _info(self, outcome: Outcome, observation: Observation, turn: int) -> dict[str, Any]:
        info: dict[str, Any] = {
            "task_id": self._task.task_id,
            "split": self.split,
            "family": self._task.family,
            "goal": outcome.goal or self._goal,
            "turn": turn,
            "state_key": outcome.state_key,
            "observation_key": keys.observation_key(observation),
            "admissible_actions": list(outcome.admissible),
            "admissible_complete": outcome.admissible_complete,
            "action_key": outcome.action_key,
            "feedback": outcome.feedback.value,
            "feedback_text": outcome.feedback_text,
            "progress": outcome.progress,
            "score": outcome.score,
            "success": outcome.success,
            "metrics": dict(outcome.metrics),
        }
        if self.oracle:
            info["oracle"] = snapshots.to_json(self.solution())
        return info
