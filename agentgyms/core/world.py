"""The methods of a world, which the author of an environment writes and `TextEnv` calls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, TypeGuard

import numpy as np

from agentgyms.core.errors import BadOption
from agentgyms.core.images import Image
from agentgyms.core.outcome import Outcome
from agentgyms.core.tasks import Task, TaskSet
from agentgyms.core.tools import ANY_ACTION, Tools

_REQUIRED: Final = ("load_tasks", "begin", "act")


class World(Protocol):
    """A world that agents act in; all methods but `load_tasks`, `begin` and `act` have defaults."""

    split: str
    max_turns: int
    oracle: bool
    work_limit_s: float
    data_version: str
    parties: Mapping[str, str]
    tools: Tools

    def load_tasks(self) -> TaskSet:
        """Return the tasks of `self.split`. Called once, when they are first needed."""

    def begin(self, task: Task, rng: np.random.Generator) -> Outcome:
        """Start `task` and return its first state; all randomness of the episode is from `rng`."""

    def act(self, action: str) -> Outcome:
        """Take one turn. Any string may come; a bad one is answered with a `Feedback`."""

    def goal(self, task: Task) -> str:
        """Return the goal of the episode in words. Called after `begin`."""

    def save(self) -> Any:
        """Return the engine's state as JSON-plain values; None if there is no `load`."""

    def lend(self) -> Any:
        """Return what `copy_engine` of environments in this process copies, or None."""

    def copy_engine(self, lent: Any) -> None:
        """Take over a copy of what `lend` of an equal environment returned."""

    def solution(self) -> dict[str, Any]:
        """Return the content of `info["oracle"]`."""

    def is_private(self, name: str, value: Any) -> bool:
        """Return whether a server's clients may not give an argument this value."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments that the environment was made with."""


class WorldDefaults:
    """The optional methods and settings of a `World`, with their defaults."""

    default_max_turns: ClassVar[int] = 50
    splits: ClassVar[tuple[str, ...]] = ("train",)
    tools: Tools = ANY_ACTION
    """The actions as tools that a model may call; see `agentgyms.tools`."""
    private_arguments: ClassVar[frozenset[str]] = frozenset()
    """Keyword arguments that a server's clients may not set, such as paths of its file system."""
    client_limits: ClassVar[Mapping[str, float]] = MappingProxyType({"max_turns": 10_000})
    """Greatest values that a server's clients may give arguments whose cost grows with them."""
    work_limit_s: float = math.inf
    """Most seconds that tasks or the start of an episode may take; see `core.deadlines`."""
    stochastic: bool = False
    """Whether chance takes part in turns; such a world draws from `TextEnv.chance` alone."""
    blocking: bool = False
    """Whether a step waits for something outside this process; such environments run in threads."""
    data_version: str = "1"
    """Version of the tasks and rules; recordings and results carry it."""
    parties: Mapping[str, str] = MappingProxyType({})
    """Who else takes part in an episode, such as a partner or a judge: name by role.

    Recordings, results and servers' descriptions have it: results with another judge or another
    partner cannot be compared.
    """

    def goal(self, task: Task) -> str:
        """Return the goal of the episode in words. Called after `begin`."""
        return ""

    def save(self) -> Any:
        """Return the engine's state as JSON-plain values, for `load`; None if there is no `load`.

        Without `load`, snapshots are restored by playing the actions again.
        """
        return None

    def lend(self) -> Any:
        """Return what `copy_engine` in this process copies, or None; the next turn may alter it."""
        return None

    def copy_engine(self, lent: Any) -> None:
        """Take over a copy of the episode that `lend` of an equal environment returned."""
        raise NotImplementedError(f"{type(self).__name__} has lend but no copy_engine")

    def expert_actions(self) -> dict[str, str]:
        """Return the next action of each expert, by kind; `"best"` knows the true state.

        Raises `BadOption` if the environment has no expert.
        """
        raise BadOption(f"{type(self).__name__} has no expert policy")

    def solution(self) -> dict[str, Any]:
        """Return the content of `info["oracle"]`: the experts' actions, and figures if any."""
        return dict(self.expert_actions())

    @classmethod
    def data_source_of(cls, arguments: Mapping[str, Any]) -> str:  # noqa: ARG003 (for subclasses)
        """Return the source of the tasks that an environment with these arguments plays.

        `"official"`: the benchmark that the environment is named after. `"generated"`: made here in
        its form. A name such as `"MiniAppWorld"`: a smaller world with generated tasks in the
        benchmark's place. `""`: there is no benchmark.
        """
        return ""

    @classmethod
    def tools_of(cls, arguments: Mapping[str, Any]) -> Tools:  # noqa: ARG003 (for subclasses)
        """Return the tools of an environment with these arguments, which may be anybody's.

        An environment whose tools depend on them also sets its own `tools`.
        """
        return cls.tools

    @classmethod
    def is_private(cls, name: str, value: Any) -> bool:  # noqa: ARG003 (for subclasses)
        """Return whether a server's clients may not give an argument this value."""
        return name in cls.private_arguments

    def warm(self) -> None:
        """Start what the first turns need, such as a process; servers call it when they start."""

    def interrupt(self) -> None:
        """Make a reset or step that waits for a model in another thread raise an error soon."""


class Loadable(World, Protocol):
    """A world that can return to a state that its `save` returned."""

    def load(self, task: Task, state: Any) -> None:
        """Return to `state` of an episode of `task`."""


class Drawable(World, Protocol):
    """A world that can be drawn; it gets the render mode `rgb_array`."""

    def draw(self) -> Image:
        """Return the current state as a new image, uint8 [H, W, 3]."""


def is_loadable(world: World) -> TypeGuard[Loadable]:
    """Return whether a world has `load`; `isinstance` with a protocol takes 30 microseconds."""
    return hasattr(world, "load")


def is_drawable(world: World) -> TypeGuard[Drawable]:
    """Return whether a world has `draw`."""
    return hasattr(world, "draw")


def check_world(env_class: type[Any]) -> None:
    """Raise `TypeError` if a class lacks a method of a `World`."""
    missing = [name for name in _REQUIRED if not hasattr(env_class, name)]
    if missing:
        raise TypeError(
            f"{env_class.__name__} has no method {' and no method '.join(missing)}: an environment "
            f"needs {', '.join(_REQUIRED)}"
        )
