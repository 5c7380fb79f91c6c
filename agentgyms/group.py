"""`GroupEnv`: several environments that start every episode in one and the same state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import gymnasium as gym
from gymnasium.error import NameNotFound, NamespaceNotFound, VersionNotFound

from agentgyms.core import Observation, TextEnv
from agentgyms.errors import BadOption, GroupMismatch, Mismatch
from agentgyms.observations import shown
from agentgyms.states import Original

_UNEXPECTED: Final = re.compile(r"got an unexpected keyword argument '(\w+)'")

Start = tuple[Observation, dict[str, Any]]
StepResult = tuple[Observation, float, bool, bool, dict[str, Any]]


class GroupEnv:
    """n environments for n rollouts of one task, as group-relative estimators need them.

    The first member generates the episode, the others take up its state: directly in one process,
    as a snapshot elsewhere. Equality of the initial states is checked at every reset, not assumed.

    Attributes:
        envs: The members, each a complete environment that may also be stepped on its own.
    """

    def __init__(self, env_id: str, group_size: int, **kwargs: Any) -> None:
        """Make the members; arguments as for `agentgyms.make_group`."""
        if not isinstance(group_size, int) or group_size < 1:
            raise BadOption(f"group_size must be a positive integer, got {group_size!r}")
        self._env_id, self._kwargs = env_id, kwargs
        self._began: tuple[int | None, dict[str, Any] | None, Start] | None = None
        self.envs = [_make(env_id, **kwargs) for _ in range(group_size)]

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self.envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Observation], list[dict[str, Any]]]:
        """Put all members into the same initial state.

        Returns:
            The observations and infos of the members.

        Raises:
            GroupMismatch: A member reached another state.
        """
        first, *others = self.envs
        observation, info = first.reset(seed=seed, options=options)
        self._began = seed, options, (observation, dict(info))
        original = Original(first)
        seen, told = [observation], [info]
        for index, env in enumerate(others, 1):
            member = _taken(original, env, index)
            _check(index, member, (observation, info))
            seen.append(member[0])
            told.append(member[1])
        return seen, told

    def step(self, actions: Sequence[str | None]) -> list[StepResult | None]:
        """Take one turn in each member whose action is not None.

        Members that wait for something, such as a server or a model, wait at once. Where a member
        raises, others have taken their turn.

        Raises:
            BadOption: The number of actions is not the group's size.
        """
        if len(actions) != len(self.envs):
            raise BadOption(
                f"a group of {len(self.envs)} needs as many actions, got {len(actions)}"
            )
        if len(self.envs) == 1 or not self.envs[0].blocking:
            return [_stepped(*member) for member in zip(self.envs, actions, strict=True)]
        with ThreadPoolExecutor(len(self.envs), "group") as pool:
            try:
                return list(pool.map(_stepped, self.envs, actions))
            except (KeyboardInterrupt, SystemExit):
                for env in self.envs:
                    env.interrupt()
                raise

    def begin_again(self, member: int) -> Start:
        """Put a fresh environment in the place of a member, and bring it to where the group began.

        Its state is checked as at `reset`; a group of one is reset anew and has nothing to check.

        Returns:
            Its observation and info.

        Raises:
            BadOption: The group was not reset with a seed.
            GroupMismatch: The seed does not lead to the same state again.
        """
        if self._began is None or self._began[0] is None:
            raise BadOption("a member begins again only after a reset of the group with a seed")
        seed, options, start = self._began
        self.envs[member].close()
        self.envs[member] = _make(self._env_id, **self._kwargs)
        again = self.envs[member].reset(seed=seed, options=options)
        if len(self.envs) > 1:
            _check(member, again, start)
        return again

    def close(self) -> None:
        """Close all members."""
        for env in self.envs:
            env.close()

    def __enter__(self) -> GroupEnv:
        """Return the group itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all members."""
        self.close()


def _stepped(env: TextEnv, action: str | None) -> StepResult | None:
    return None if action is None else env.step(action)


def _taken(original: Original, env: TextEnv, index: int) -> Start:
    try:
        return original.give(env)
    except GroupMismatch:
        raise
    except Mismatch as e:
        raise GroupMismatch(f"member {index}: {e}") from e


def _check(index: int, member: Start, first: Start) -> None:
    """Raise `GroupMismatch` unless a member starts as the first one does."""
    (seen, told), (observation, info) = member, first
    for key in ("state_key", "admissible_actions"):
        if told[key] != info[key]:
            raise GroupMismatch(f"member {index} has {key} {told[key]}, member 0 {info[key]}")
    if told["observation_key"] != info["observation_key"]:
        raise GroupMismatch(f"member {index} observes {shown(seen)}, member 0 {shown(observation)}")


def _make(env_id: str, **kwargs: Any) -> TextEnv:
    try:
        env = gym.make(env_id, **kwargs).unwrapped
    except (NameNotFound, NamespaceNotFound, VersionNotFound, ModuleNotFoundError) as e:
        raise BadOption(f"{env_id} cannot be made: {e}") from e
    except TypeError as e:
        found = _UNEXPECTED.search(str(e))
        if found is None or found[1] not in kwargs:
            raise
        raise BadOption(f"{env_id} takes no argument {found[1]!r}: leave it out") from e
    if not isinstance(env, TextEnv):
        raise BadOption(f"{env_id} is a {type(env).__name__}, not an agentgyms environment")
    return env
