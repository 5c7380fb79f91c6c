"""The contract: a `World`, to which `TextEnv` adds seeds, limits, `info`, snapshots and forks."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, Self

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded

from agentgyms.core import randomness, snapshots, states
from agentgyms.core.arguments import check_max_turns, check_options, check_oracle
from agentgyms.core.deadlines import time_limit
from agentgyms.core.errors import BadOption, BadSnapshot, UnknownTask
from agentgyms.core.images import Image
from agentgyms.core.outcome import (
    MAX_ACTION,
    MAX_OBSERVATION,
    Feedback,
    Observation,
    Outcome,
    TurnInfo,
    copy_observation,
    cut,
    cut_action,
    make_info,
    text_of,
)
from agentgyms.core.spaces import UnicodeText, longest_text
from agentgyms.core.states import Copyable, EngineState, SharedState
from agentgyms.core.tasks import TaskSet, check_split
from agentgyms.core.world import World, WorldDefaults, check_world, is_drawable

__all__ = ["Feedback", "Observation", "Outcome", "TextEnv", "TurnInfo"]

_SEED_RANGE: Final = 2**31
_TASK_STREAM: Final = 0x7A5C


class TextEnv(Copyable, WorldDefaults, gym.Env[Observation, str]):
    """A multi-turn environment for language agents; see `TurnInfo` for what `info` holds.

    A subclass sets `default_max_turns` and `splits`, and writes `load_tasks`, `begin` and `act`. It
    may write `goal`, `save` and `load` (exact snapshots), `expert_actions`, `draw`, `warm`,
    `close`. The episode is a function of the task, the generator given to `begin`, and the actions.
    Arguments are keyword-only, so that `fork` can make the same environment again.

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

    _arguments: dict[str, Any]
    _random_state: Any = None
    """State of the generator that `np_random` makes when it is first read."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        modes = cls.metadata["render_modes"]
        if hasattr(cls, "draw") and "rgb_array" not in modes:
            cls.metadata = {**cls.metadata, "render_modes": [*modes, "rgb_array"]}

    def __new__(cls, **kwargs: Any) -> Self:
        """Keep the keyword arguments for `fork` and recordings."""
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
        check_world(type(self))
        self._set_up(split, max_turns, oracle, render_mode)

    def _set_up(
        self, split: str, max_turns: int | None, oracle: bool, render_mode: str | None
    ) -> None:
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
        """The tasks of the split; iterating yields ids. `BadOption` if the split has no task."""
        if self._tasks is None:
            with time_limit(self.work_limit_s):
                tasks = self._load_tasks()
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
    def data_source(self) -> str:
        """The source of the tasks, see `data_source_of`."""
        return type(self).data_source_of(self._arguments)

    @property
    def episode_source(self) -> tuple[int, dict[str, Any]]:
        """Seed and options of the running episode; `reset` with them starts it again."""
        return self._begun.seed, dict(self._begun.options)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, a function of (split, seed, options) alone.

        Args:
            seed: Seed of the episode and of `np_random`, not negative; None draws one from
                `np_random`.
            options: `{"task_id": ...}` picks the task, else the seed does.

        Raises:
            UnknownTask: The split has no such task.
            BadOption: An option is unknown.
        """
        episode = self._plan(seed, options)
        observation, info = self._start(episode)
        self._record(episode, snapshots.Last(observation, info))
        return observation, info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take one turn; any string is an action, and a bad one consumes a turn too.

        An action longer than the action space allows is cut to one character more than allowed.

        Returns:
            Observation, the benchmark's reward, terminated (the task ended), truncated (the turn
            limit was reached or the engine was lost), info.

        Raises:
            ResetNeeded: No episode has begun or it is over.
            TypeError: The action is not a string.
        """
        episode = self._episode_for(action)
        action = cut_action(action)
        observation, reward, terminated, truncated, info = self._advance(episode, action)
        episode.actions.append(action)
        self._record(episode, snapshots.Last(observation, info, terminated, truncated))
        return observation, reward, terminated, truncated, info

    def render(self) -> str | Image | None:
        """Return what the agent reads now in mode `ansi`, and what `draw` shows in `rgb_array`."""
        if self.render_mode is None or self._episode is None:
            return None
        if self.render_mode != "rgb_array":
            return text_of(self._episode.last.observation)
        world = self._world
        if not is_drawable(world):
            raise NotImplementedError(f"{type(self).__name__} has no draw: use render_mode='ansi'")
        return world.draw()

    # --- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state of the episode and of `np_random` as portable bytes.

        Raises `ResetNeeded` if no episode has begun.
        """
        if self._episode is None:
            raise ResetNeeded("snapshot was called before the first reset: call reset() first")
        return snapshots.pack(
            states.kind_of(self._world), self._episode, self.np_random, self.save()
        )

    def restore(self, snapshot: bytes) -> tuple[Observation, dict[str, Any]]:
        """Return to a snapshot and return the observation and info of its state.

        Exact where the engine can save itself; otherwise the actions are played again and the
        `state_key` is verified.

        Raises:
            BadSnapshot: The bytes are no snapshot, or one of another environment.
            ReplayMismatch: Replaying reached another state.
        """
        saved = snapshots.unpack(snapshot, states.kind_of(self._world))
        episode, info = saved.episode, saved.episode.last.info
        try:
            task = self.tasks.find(info["task_id"])
        except UnknownTask as e:
            raise BadSnapshot(f"the snapshot is damaged, or of other tasks: {e}") from None
        self._episode = None  # from here on the running episode is lost
        self._task, self._goal = task, info["goal"]
        if saved.engine is None:
            self._replay(episode)
        else:
            states.load_engine(self._world, task, saved.engine)
        info.pop("oracle", None)
        if self.oracle:
            info["oracle"] = snapshots.to_json(self.solution())
        self.np_random = saved.generator
        self._episode = episode
        return copy_observation(episode.last.observation), snapshots.copy_info(info)

    def fork(self) -> Self:
        """Return an independent environment in the same state."""
        twin = type(self)(**self._arguments)
        twin.spec, twin.work_limit_s = self.spec, self.work_limit_s
        twin._tasks = self._tasks
        if self._episode is not None:
            twin.take_state(self.share_state())
        else:
            twin.np_random = randomness.copied(self.np_random)
        return twin

    def share_state(self) -> SharedState:
        """Return the state for `take_state` in this process; a reset, step or restore ends it."""
        if self._episode is None:
            raise ResetNeeded("share_state was called before the first reset: call reset() first")
        saved, lent = self.save(), self.lend()
        engine = None  # a remote world has neither, nor a task here
        if saved is not None or lent is not None:
            engine = EngineState(saved, lent, self.tasks, self._task, self._goal)
        identity, generator = self._identity(), self.np_random
        state = randomness.state_of(generator)
        return SharedState(identity, engine, self._episode, generator, state, self.snapshot)

    def take_state(self, shared: SharedState) -> tuple[Observation, dict[str, Any]]:
        """Take over the state of another environment and return its observation and info.

        Raises `Mismatch` if the engine does not load what it saves, and the errors of `restore`.
        """
        engine, last = shared.engine, shared.episode.last
        if engine is None or shared.identity != self._identity():
            return self.restore(shared.snapshot)
        self._episode = None  # from here on the running episode is lost
        self._tasks, self._task, self._goal = engine.tasks, engine.task, engine.goal
        states.take_engine(self._world, engine)
        if shared.generator_state is None:
            self.np_random = randomness.copied(shared.generator)
        else:
            self._random_state = shared.generator_state
        # `last` is shared: nobody changes it, because callers get copies.
        seed, options = shared.episode.seed, dict(shared.episode.options)
        self._episode = snapshots.Episode(seed, options, list(shared.episode.actions), last)
        return copy_observation(last.observation), snapshots.copy_info(last.info)

    def _identity(self) -> tuple[Any, ...]:
        """Return what must be equal in environments that load each other's engine state."""
        return type(self), self._arguments, self.max_turns, self.data_version, self.parties

    def _replay(self, episode: snapshots.Episode) -> None:
        again = snapshots.Episode(episode.seed, episode.options)
        observation, info = self._start(again)
        for action in episode.actions:
            observation, _, _, _, info = self._advance(again, action)
            again.actions.append(action)
        snapshots.check_replayed(episode, observation, info["state_key"])

    # --- one episode ---------------------------------------------------------------------------

    def draw_task(self, seed: int, rng: np.random.Generator) -> str:
        """Return the task id that the seed's generator draws if the options name none."""
        return self.tasks[int(rng.integers(len(self.tasks)))]

    def _plan(self, seed: int | None, options: dict[str, Any] | None) -> snapshots.Episode:
        """Return the episode that a reset starts; the running episode is not changed."""
        checked = check_options(options)
        super().reset(seed=seed)
        if seed is not None:
            self._random_state = None
        else:
            seed = int(self.np_random.integers(_SEED_RANGE))
        return snapshots.Episode(seed=int(seed), options=checked)

    def _episode_for(self, action: Any) -> snapshots.Episode:
        """Return the running episode, in which `action` is taken next."""
        episode = self._episode
        if episode is None or episode.last.over:
            when = "before the first reset" if episode is None else "after the end of the episode"
            raise ResetNeeded(f"step was called {when}: call reset() first")
        if not isinstance(action, str):
            raise TypeError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
        return episode

    def _record(self, episode: snapshots.Episode, last: snapshots.Last) -> None:
        """Make `episode` the running one, with a copy of `last`, which callers may change."""
        episode.last = last.copy()
        self._episode = episode

    @property
    def _world(self) -> World:
        return self  # type: ignore[return-value]  # `__init__` has checked it

    def _load_tasks(self) -> TaskSet:
        return self._world.load_tasks()

    def _start(self, episode: snapshots.Episode) -> tuple[Observation, dict[str, Any]]:
        if "chance" in episode.options and not self.stochastic:
            raise BadOption(
                f"the reset option 'chance' is of stochastic environments, {type(self).__name__} "
                "has no chance: leave it out"
            )
        rng = randomness.generator_of(episode.seed, _TASK_STREAM)
        task_id = episode.options.get("task_id")
        if task_id is None:
            task_id = self.draw_task(episode.seed, rng)
        self._task = self.tasks.find(task_id)
        self._episode = None  # the running episode ends here; a wrong task id does not end it
        with time_limit(self.work_limit_s):
            outcome = self._world.begin(self._task, rng)
        self._goal = self.goal(self._task)
        observation = self._cut_observation(outcome)
        return observation, self._info(outcome, observation, turn=0)

    def _cut_observation(self, outcome: Outcome) -> Observation:
        return cut(outcome.observation, self._longest_text)

    @cached_property
    def _longest_text(self) -> int:
        return longest_text(self.observation_space, MAX_OBSERVATION)

    def _advance(
        self, episode: snapshots.Episode, action: str
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        world: World = self  # type: ignore[assignment]  # `__init__` has checked it
        turn = len(episode.actions) + 1
        if self.stochastic:
            self._chance = randomness.drawn(episode.seed, episode.options.get("chance", ()), turn)
        outcome = world.act(action)
        observation = self._cut_observation(outcome)
        truncated = not outcome.terminated and (outcome.truncated or turn >= self.max_turns)
        info = self._info(outcome, observation, turn)
        return observation, float(outcome.reward), outcome.terminated, truncated, info

    def _info(self, outcome: Outcome, observation: Observation, turn: int) -> dict[str, Any]:
        info = make_info(
            outcome, observation, self._task, split=self.split, goal=self._goal, turn=turn
        )
        if self.oracle:
            info["oracle"] = snapshots.to_json(self.solution())
        return info
