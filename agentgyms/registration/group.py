"""`GroupEnv`: several environments that start every episode in one and the same state."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentgyms.core.env import Observation, TextEnv
from agentgyms.core.errors import BadOption, GroupMismatch, Mismatch
from agentgyms.core.outcome import shown
from agentgyms.registration.ids import full_id, made

Start = tuple[Observation, dict[str, Any]]
StepResult = tuple[Observation, float, bool, bool, dict[str, Any]]


class GroupEnv:
    """n environments for n rollouts of one task, as group-relative estimators need them.

    The first member starts the episode, the others take over its state: directly if they are in
    this process, else as a snapshot. Every reset checks that the initial states are equal. In later
    turns each member draws its own random numbers. Each of `envs` may also be stepped alone.
    """

    def __init__(self, env_id: str, group_size: int, **kwargs: Any) -> None:
        """Make the members; arguments as for `agentgyms.make_group`."""
        if not isinstance(group_size, int) or group_size < 1:
            raise BadOption(f"group_size must be a positive integer, got {group_size!r}")
        self._env_id, self._kwargs = env_id, kwargs
        self._last_reset: tuple[int | None, dict[str, Any] | None, Start] | None = None
        self.envs = [_make(self._env_id, **kwargs) for _ in range(group_size)]

    def __len__(self) -> int:
        return len(self.envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[list[Observation], list[dict[str, Any]]]:
        """Put all members into the same initial state; return their observations and infos.

        Raises `GroupMismatch` if a member reached another state.
        """
        first, *others = self.envs
        observation, info = first.reset(seed=seed, options=options)
        self._last_reset = seed, options, (observation, dict(info))
        observations, infos = [observation], [info]
        shared = first.share_state()
        for index, env in enumerate(others, 1):
            try:
                start = env.take_state(shared)
            except GroupMismatch:
                raise
            except Mismatch as e:
                raise GroupMismatch(f"member {index}: {e}") from e
            _check_start(index, start, (observation, info))
            env.redraw(index)
            observations.append(start[0])
            infos.append(start[1])
        return observations, infos

    def step(self, actions: Sequence[str | None]) -> list[StepResult | None]:
        """Take one turn in each member whose action is not None.

        Members that wait for something, such as a server or a model, run in parallel threads. If a
        member raises an error, other members may have taken their turn. Raises `BadOption` if the
        number of actions is not the group's size.
        """
        if len(actions) != len(self.envs):
            raise BadOption(
                f"a group of {len(self.envs)} needs as many actions, got {len(actions)}"
            )
        if len(self.envs) == 1 or not self.envs[0].blocking:
            return [_step(*member) for member in zip(self.envs, actions, strict=True)]
        with ThreadPoolExecutor(len(self.envs), "group") as pool:
            try:
                return list(pool.map(_step, self.envs, actions))
            except (KeyboardInterrupt, SystemExit):
                for env in self.envs:
                    env.interrupt()
                raise

    def begin_again(self, member: int) -> Start:
        """Replace a member by a new environment, reset as the group was; return its start.

        The start is its observation and info. Its state is checked as at `reset`, unless the group
        has one member. Raises `BadOption` if the group was reset without a seed, `GroupMismatch` if
        the seed leads to another state.
        """
        if self._last_reset is None or self._last_reset[0] is None:
            raise BadOption("a member begins again only after a reset of the group with a seed")
        seed, options, start = self._last_reset
        self.envs[member].close()
        self.envs[member] = _make(self._env_id, **self._kwargs)
        again = self.envs[member].reset(seed=seed, options=options)
        if len(self.envs) > 1:
            _check_start(member, again, start)
        if member:
            self.envs[member].redraw(member)
        return again

    def close(self) -> None:
        """Close all members."""
        for env in self.envs:
            env.close()

    def __enter__(self) -> GroupEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _step(env: TextEnv, action: str | None) -> StepResult | None:
    return None if action is None else env.step(action)


def _check_start(index: int, member: Start, first: Start) -> None:
    (observation, info), (expected, expected_info) = member, first
    for key in ("state_key", "admissible_actions"):
        if info[key] != expected_info[key]:
            raise GroupMismatch(
                f"member {index} has {key} {info[key]}, member 0 {expected_info[key]}"
            )
    if info["observation_key"] != expected_info["observation_key"]:
        raise GroupMismatch(
            f"member {index} observes {shown(observation)}, member 0 {shown(expected)}"
        )


def _make(env_id: str, **kwargs: Any) -> TextEnv:
    try:
        env_id = full_id(env_id)
        env = made(env_id, kwargs).unwrapped
    except ModuleNotFoundError as e:
        raise BadOption(f"{env_id} cannot be made: {e}") from e
    if not isinstance(env, TextEnv):
        raise BadOption(f"{env_id} is a {type(env).__name__}, not an agentgyms environment")
    return env
