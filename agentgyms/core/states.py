"""The state of an environment: what it belongs to, and how others take it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Self

import numpy as np
from gymnasium.error import ResetNeeded

from agentgyms.core import snapshots
from agentgyms.core.arguments import check_options, defaults
from agentgyms.core.deadlines import time_limit
from agentgyms.core.errors import BadOption, BadSnapshot, Mismatch
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.world import World, is_loadable

_CARRIED: Final = ("spec", "work_limit_s", "observation_space", "action_space")
"""Attributes of an environment that its copies have too, the spaces with their generators."""


class EngineState(NamedTuple):
    """The engine's state as `save` and `lend` returned it, with its tasks, task and goal."""

    saved: Any
    lent: Any
    tasks: TaskSet
    task: Task
    goal: str


@dataclass(slots=True)
class SharedState:
    """The state of an environment, which forks and members of a group take over.

    Environments with an equal `identity` (class, arguments, versions) load the engine's state as it
    is, without JSON. Others restore a snapshot, and so do all if the engine cannot save itself.
    Nobody changes `episode` and `generator` while this object is used.
    """

    identity: tuple[Any, ...]
    engine: EngineState | None
    episode: snapshots.Episode
    generator: np.random.Generator
    generator_state: Any
    make_snapshot: Callable[[], bytes]
    _snapshot: bytes = b""

    @property
    def snapshot(self) -> bytes:
        """The snapshot of this state, made when it is first needed."""
        if not self._snapshot:
            self._snapshot = self.make_snapshot()
        return self._snapshot


class Copyable:
    """Makes environments copied by `copy.deepcopy` and `pickle` go on as the original does.

    A pickle holds the class, the arguments, the spec, the spaces and a snapshot, and no engine,
    file or connection. `deepcopy` forks. Each copy is closed by itself.
    """

    spec: Any
    work_limit_s: float
    np_random: np.random.Generator
    observation_space: Any
    action_space: Any
    _arguments: dict[str, Any]
    _episode: snapshots.Episode | None
    stochastic: bool
    _chance: float = 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._making_arguments()), (), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        began = self._episode is not None
        return {
            "set": {name: getattr(self, name) for name in _CARRIED},
            "snapshot": self.snapshot() if began else None,
            "np_random": None if began else self.np_random,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state["set"].items():
            setattr(self, name, value)
        if state["snapshot"] is None:
            self.np_random = state["np_random"]
        else:
            self.restore(state["snapshot"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = self.fork()
        for name in _CARRIED:
            setattr(twin, name, copy.deepcopy(getattr(self, name), memo))
        return twin

    def _making_arguments(self) -> dict[str, Any]:
        """Return the arguments that make this environment again in another process."""
        return self._arguments

    def fork(self) -> Self:
        """Return an independent environment in the same state."""
        raise NotImplementedError

    def snapshot(self) -> bytes:
        """Return the whole state of the episode and of `np_random` as portable bytes."""
        raise NotImplementedError

    def restore(self, snapshot: bytes) -> Any:
        """Return to a snapshot."""
        raise NotImplementedError

    def chance(self) -> float:
        """Return this turn's random number in [0, 1), for `act` of a stochastic world.

        It is a function of the episode's seed, the number of the turn, and the last `redraw`.
        """
        return self._chance

    def redraw(self, number: int) -> None:
        """Let chance decide the turns from here on anew; nothing happens in a world without chance.

        Forks, snapshots and copies go on as their original does; after this they draw on their own.
        The option `chance` of the episode has all redraws, so that a reset with `episode_source`
        and the same actions lead to the same state.

        Args:
            number: The name of what is drawn, from 0 on; equal numbers draw equally.

        Raises:
            ResetNeeded: No episode has begun.
            BadOption: The number is negative or too large.
        """
        if self.stochastic:
            episode = self._begun
            redraws = [*episode.options.get("chance", []), [len(episode.actions), number]]
            episode.options = check_options({**episode.options, "chance": redraws})

    @property
    def _begun(self) -> snapshots.Episode:
        if self._episode is None:
            raise ResetNeeded("there is no episode yet: call reset() first")
        return self._episode


def kind_of(world: World) -> dict[str, Any]:
    """Return what must be equal in two environments for one to restore snapshots of the other."""
    arguments = defaults(type(world)) | world.arguments | {"max_turns": world.max_turns}
    public = {
        name: value
        for name, value in arguments.items()
        if name not in ("render_mode", "oracle") and not world.is_private(name, value)
    }
    kind = {"env": type(world).__name__, "arguments": public, "data": world.data_version}
    return {**kind, "parties": dict(world.parties)} if world.parties else kind


def take_engine(world: World, engine: EngineState) -> None:
    """Make a world take over the state of another's engine.

    Raises `Mismatch` if it does not load what it saves, and the errors of `load_engine`.
    """
    if engine.lent is not None:
        world.copy_engine(engine.lent)
    else:
        load_engine(world, engine.task, json_copy(engine.saved))
        check_loaded(world, engine.saved)


def load_engine(world: World, task: Task, saved: Any) -> None:
    """Make a world load its engine's state; raise `BadSnapshot` if it cannot, or has no `load`."""
    if not is_loadable(world):
        raise BadSnapshot(
            f"the snapshot holds the state of an engine, and {type(world).__name__} has no load"
        )
    try:
        with time_limit(world.work_limit_s):
            world.load(task, saved)
    except BadOption:  # the time limit; it is a ValueError, too
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise BadSnapshot(f"the snapshot's engine state is damaged: {e!r}") from e


def check_loaded(world: World, saved: Any) -> None:
    """Raise `Mismatch` unless a world that has loaded `saved` saves the same again."""
    again = world.save()
    if again != saved and json_copy(again) != json_copy(saved):
        raise Mismatch(
            f"{type(world).__name__}.load does not bring back what save returned: "
            f"{again!r:.200} where {saved!r:.200} was loaded"
        )


def json_copy(value: Any) -> Any:
    """Return a JSON-plain value as JSON would return it, in containers of its own."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is list or kind is tuple:
        return [json_copy(item) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {key: json_copy(item) for key, item in value.items()}
    return json.loads(snapshots.to_json(value))  # floats too: nan is refused there
