"""The state of an environment: what it belongs to, and how others in the same process take it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from agentgyms.core import snapshots
from agentgyms.core.arguments import defaults
from agentgyms.core.deadlines import time_limit
from agentgyms.core.errors import BadOption, BadSnapshot, Mismatch
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.world import World, is_loadable


class EngineState(NamedTuple):
    """The state of an engine, and what it belongs to.

    Attributes:
        saved: What `save` returned.
        tasks: The tasks of the split.
        task: The task of the episode.
        goal: The goal of the episode in words.
    """

    saved: Any
    tasks: TaskSet
    task: Task
    goal: str


@dataclass(slots=True)
class SharedState:
    """The state of an environment, which forks and members of a group take over.

    Environments with an equal `identity` load the engine's state as it is, without JSON. Others
    restore a snapshot, and so do all if the engine cannot save itself.

    Attributes:
        identity: The environment's class, arguments and versions.
        engine: The engine's state; None if only a snapshot restores it.
        episode: The episode; nobody changes it while this object is used.
        generator: The generator `np_random`; nobody changes it either.
        generator_state: The state of the generator, or None if it is not PCG64.
        make_snapshot: Returns a snapshot of this state.
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


def load_engine(world: World, task: Task, saved: Any) -> None:
    """Make a world load the state of its engine.

    Raises:
        BadSnapshot: The engine cannot load it.
        NotImplementedError: The world has no `load`.
    """
    if not is_loadable(world):
        raise NotImplementedError(f"{type(world).__name__} has save but no load")
    try:
        with time_limit(world.work_limit_s):
            world.load(task, saved)
    except BadOption:  # the time limit; it is a ValueError, too
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise BadSnapshot(f"the snapshot's engine state is damaged: {e!r}") from e


def check_loaded(world: World, saved: Any) -> None:
    """Check that a world which has loaded `saved` saves the same again.

    Raises:
        Mismatch: It does not.
    """
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
