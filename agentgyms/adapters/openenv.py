"""Serves any environment with OpenEnv's protocol.

    app = openenv_app("agentgyms/ALFWorld-v0", split="valid_seen")  # uvicorn my_module:app

An action is a string. The observation includes `info` and both `terminated` and `truncated`, which
OpenEnv combines into `done`.
"""

from __future__ import annotations

import functools
import inspect
import uuid
from contextlib import suppress
from typing import Any

import gymnasium as gym

from agentgyms import __version__
from agentgyms.adapters.messages import image_urls
from agentgyms.core import imports
from agentgyms.core.outcome import Observation as Observed
from agentgyms.core.outcome import for_agents, text_of
from agentgyms.core.serialization import encode_info, encode_number
from agentgyms.registration import ENVIRONMENTS, env_class

try:
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
    from openenv.core.env_server.types import EnvironmentMetadata
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(imports.missing("openenv", "openenv"), name=e.name) from e

MAX_SESSIONS = 64


class TextAction(Action):  # type: ignore[misc]
    """An action: any string; an invalid one is a turn with feedback."""

    action: str


class TextObservation(Observation):  # type: ignore[misc]
    """An observation, with `reward` and `done` of OpenEnv; `images` are data URLs by name.

    In `info`, nan becomes null.
    """

    text: str
    images: dict[str, str]
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any]


class EpisodeState(State):  # type: ignore[misc]
    """The state of an episode, with `episode_id` and `step_count` of OpenEnv."""

    env_id: str
    task_id: str = ""
    state_key: str = ""


class TextEnvironment(Environment[TextAction, TextObservation, EpisodeState]):  # type: ignore[misc]
    """An environment of this package with the methods that OpenEnv's server calls."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env_id: str, **kwargs: Any) -> None:
        super().__init__()
        self._env: gym.Env[Observed, str] = gym.make(env_id, **kwargs)
        self._state = EpisodeState(env_id=env_id)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> TextObservation:
        """Start an episode; `options` are reset options such as `task_id`."""
        observation, info = self._env.reset(seed=seed, options=options or None)
        self._state.episode_id = episode_id or uuid.uuid4().hex
        return self._observe(observation, info)

    def step(
        self, action: TextAction, timeout_s: float | None = None, **kwargs: Any
    ) -> TextObservation:
        """Take a turn; `timeout_s` is ignored, the environment has its own timeout."""
        observation, reward, terminated, truncated, info = self._env.step(action.action)
        return self._observe(
            observation,
            info,
            reward=encode_number(float(reward)),
            done=terminated or truncated,
            terminated=terminated,
            truncated=truncated,
        )

    def _observe(self, observation: Observed, info: dict[str, Any], **ends: Any) -> TextObservation:
        self._state.step_count = info["turn"]
        self._state.task_id, self._state.state_key = info["task_id"], info["state_key"]
        text, images = text_of(observation), image_urls(observation)
        return TextObservation(text=text, images=images, info=encode_info(for_agents(info)), **ends)

    @property
    def state(self) -> EpisodeState:
        """The state of the episode."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return the environment's id, and what its class says of it."""
        name = self._state.env_id
        kind = env_class(name) if name in ENVIRONMENTS else self._env.unwrapped
        about = " ".join((inspect.getdoc(kind) or name).partition("\n\n")[0].split())
        return EnvironmentMetadata(name=name, description=about, version=__version__)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def list_splits(self) -> list[str]:
        """Return the one split of this server."""
        return [self._tasks.split]

    def num_tasks(self, split: str) -> int:
        """Return the number of tasks in the split."""
        return len(self._tasks) if split == self._tasks.split else 0

    def get_task(self, split: str, index: int) -> dict[str, str]:
        """Return a task, whose `task_id` goes to `reset`; raise `IndexError` out of range."""
        if not 0 <= index < self.num_tasks(split):
            has = f"{len(self._tasks)} tasks of split {self._tasks.split!r}"
            raise IndexError(f"no task {index} of split {split!r}: this server has {has}")
        task_id = self._tasks[index]
        return {"task_id": task_id, "family": self._tasks.find(task_id).family}

    @property
    def _tasks(self) -> Any:
        world: Any = self._env.unwrapped
        return world.tasks


def openenv_app(env_id: str, *, max_sessions: int = MAX_SESSIONS, **kwargs: Any) -> Any:
    """Return a FastAPI application with OpenEnv's routes, one environment for each connection.

    At most `max_sessions` connections are open; `kwargs` are arguments of `gymnasium.make`.
    """
    make = functools.partial(TextEnvironment, env_id, **kwargs)
    app = create_fastapi_app(make, TextAction, TextObservation, max_concurrent_envs=max_sessions)
    app.add_middleware(_leaving)
    return app


def _leaving(app: Any) -> Any:
    """Return an application that drops what is sent to clients that have left; OpenEnv's raises."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        async def send_or_drop(message: Any) -> None:
            with suppress(OSError):  # the next `receive` says that the client has left
                await send(message)

        await app(scope, receive, send_or_drop if scope["type"] == "websocket" else send)

    return call
