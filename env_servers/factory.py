"""Makes the environments of one server: its own arguments, and what clients may add to them."""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from agentgyms import protocol, registration
from agentgyms.core import TextEnv
from agentgyms.errors import BadOption, CallerError
from agentgyms.tasks import TaskSet
from env_servers.errors import Refusal


class EnvFactory:
    """Environments of one id.

    Args:
        env_id: A registered id; `module:namespace/Name-v0` imports the module first.
        kwargs: Keyword arguments of every environment, the private ones among them.

    Raises:
        BadOption: The id is not that of an agentgyms environment.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any]) -> None:
        module, _, self.env_id = env_id.rpartition(":")
        if module:
            importlib.import_module(module)
        self._class, defaults = _find(self.env_id)
        self._kwargs = defaults | dict(kwargs)
        self._lock = threading.Lock()
        self._description: dict[str, Any] = {}
        self._tasks: dict[str, TaskSet] = {}

    def make(self, kwargs: Mapping[str, Any] | None = None) -> TextEnv:
        """Return an environment with a client's arguments over the server's.

        Raises:
            BadOption: An argument is not a client's to set, or its effect has no bound.
            Refusal: The environment does not take these arguments; the text is its own.
        """
        asked = dict(kwargs or {})
        for name, value in asked.items():
            if self._class.is_private(name, value):
                raise BadOption(f"{name!r} is the server's to set: leave it out of the arguments")
        for name, most in self._class.client_limits.items():
            value = asked.get(name)
            if isinstance(value, int) and value > most:
                raise BadOption(f"{name} {value} is too large for a server: at most {most}")
        try:
            return self._class(**self._kwargs | asked)
        except CallerError:
            raise
        except (TypeError, ValueError) as e:
            code = "type_error" if isinstance(e, TypeError) else "value_error"
            raise Refusal(code, str(e)) from e

    def description(self) -> dict[str, Any]:
        """Return the description of an environment with the server's arguments alone."""
        with self._lock:
            if not self._description:
                env = self.make()
                self._description = protocol.describe(env)
                env.close()
            return self._description

    def tasks(self, split: str | None) -> TaskSet:
        """Return the tasks of a split; None takes the server's default."""
        name = split if split is not None else self.description()["split"]
        with self._lock:
            if name not in self._tasks:
                env = self.make({"split": name})
                self._tasks[name] = env.tasks
                env.close()
            return self._tasks[name]


def _find(env_id: str) -> tuple[type[TextEnv], dict[str, Any]]:
    """Return the class behind an id and the arguments it is registered with."""
    if env_id in registration.ENVIRONMENTS:
        return registration.env_class(env_id), {}
    try:
        spec = gym.spec(env_id)
    except gym.error.Error as e:
        known = ", ".join(sorted(registration.ENVIRONMENTS))
        raise BadOption(f"{e} Known here: {known}") from None
    entry = spec.entry_point
    found: Any = load_env_creator(entry) if isinstance(entry, str) else entry
    if not inspect.isclass(found) or not issubclass(found, TextEnv):
        raise BadOption(f"{env_id} is made by {entry!r}, which is not a class of TextEnv")
    return found, dict(spec.kwargs)
