"""Brings environments into a state: that of a snapshot, or that of another one in this process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentgyms import observations, randomness, snapshots
from agentgyms.arguments import defaults
from agentgyms.errors import BadSnapshot, Mismatch, UnknownTask
from agentgyms.outcome import Observation

if TYPE_CHECKING:
    from agentgyms.core import TextEnv
    from agentgyms.tasks import Task


def kind_of(env: TextEnv) -> dict[str, Any]:
    """Return what a snapshot must agree in to be restored in `env`."""
    arguments = defaults(type(env)) | env.arguments | {"max_turns": env.max_turns}
    told = {
        name: value
        for name, value in arguments.items()
        if name not in ("render_mode", "oracle") and not env.is_private(name, value)
    }
    parties = {"parties": dict(env.parties)} if env.parties else {}
    return {
        "env": type(env).__name__,
        "arguments": told,
        "data": env.data_version,
        **parties,
    }


def restore(env: TextEnv, snapshot: bytes) -> tuple[Observation, dict[str, Any]]:
    """Bring `env` into the state of a snapshot; see `TextEnv.restore`."""
    saved = snapshots.unpack(snapshot, kind_of(env))
    episode, info = saved.episode, saved.episode.last.info
    task = _task_of(env, info)
    env._episode = None  # from here on the running episode is lost
    env._task, env._goal = task, info["goal"]
    if saved.engine is None:
        snapshots.replay(env, episode)
    else:
        _load(env, saved.engine)
    info.pop("oracle", None)
    if env.oracle:
        info["oracle"] = snapshots.to_json(env.solution())
    env.np_random = saved.generator
    env._episode = episode
    return observations.copied(episode.last.observation), snapshots.copy_info(info)


class Original:
    """An environment in an episode, whose state others take up.

    Those of the same class and arguments take its engine's state as it is, which spares them the
    way through JSON; the others get a snapshot, and so do all if the engine cannot save itself.
    """

    def __init__(self, env: TextEnv) -> None:
        """Save the engine of `env`."""
        self._env = env
        self._engine = env.save()
        self._random = randomness.state_of(env.np_random)
        self._snapshot = b""

    def give(self, target: TextEnv) -> tuple[Observation, dict[str, Any]]:
        """Bring `target` into this state and return its observation and info.

        Raises:
            Mismatch: The engine does not load what it saves.
            Exception: As for `TextEnv.restore`.
        """
        episode = self._env._episode
        if episode is None or self._engine is None or not self._equals(target):
            self._snapshot = self._snapshot or self._env.snapshot()
            return target.restore(self._snapshot)
        target._episode = None  # from here on the running episode is lost
        target._tasks = self._env._tasks
        target._task, target._goal = self._env._task, self._env._goal
        _load(target, _plain(self._engine))
        self._check(target.save())
        if self._random is None:
            target.np_random = randomness.copied(self._env.np_random)
        else:
            target._random_state = self._random
        last = episode.last  # nobody changes it: what callers get is copied
        target._episode = snapshots.Episode(
            episode.seed, dict(episode.options), list(episode.actions), last
        )
        return observations.copied(last.observation), snapshots.copy_info(last.info)

    def _equals(self, target: TextEnv) -> bool:
        env = self._env
        return (
            type(target) is type(env)
            and target._arguments == env._arguments
            and target.max_turns == env.max_turns
            and target.data_version == env.data_version
            and target.parties == env.parties
        )

    def _check(self, loaded: Any) -> None:
        if loaded == self._engine or _plain(loaded) == _plain(self._engine):
            return
        raise Mismatch(
            f"{type(self._env).__name__}.load does not bring back what save returned: "
            f"{loaded!r:.200} where {self._engine!r:.200} was loaded"
        )


def _task_of(env: TextEnv, info: dict[str, Any]) -> Task:
    try:
        return env.tasks.find(info["task_id"])
    except UnknownTask as e:
        raise BadSnapshot(f"the snapshot is damaged, or of other tasks: {e}") from None


def _load(env: TextEnv, engine: Any) -> None:
    try:
        env.load(env._task, engine)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as e:
        raise BadSnapshot(f"the snapshot's engine state is damaged: {e!r}") from e


def _plain(value: Any) -> Any:
    """Return a JSON-plain value as JSON would give it back, in containers of its own."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    if kind is dict and all(type(key) is str for key in value):
        return {key: _plain(item) for key, item in value.items()}
    return json.loads(snapshots.to_json(value))  # floats too: nan is refused there
