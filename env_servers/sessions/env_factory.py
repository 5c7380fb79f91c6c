"""Makes the environments of one server: its own arguments, and what clients may add to them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping
from typing import Any, Final, cast

from agentgyms.core.arguments import check_limits, defaults, refusal
from agentgyms.core.env import TextEnv
from agentgyms.core.errors import BadOption, CallerError
from agentgyms.core.tasks import TaskSet
from agentgyms.registration import find_maker, full_id
from agentgyms.remote.protocol import framing
from env_servers.sessions.errors import Refusal

WORK_LIMIT_S: Final = 30.0
"""Most seconds that clients' arguments may make a server work before an episode; they wait 60."""
_COMMON_ARGUMENTS: Final = defaults(TextEnv).keys()


class EnvFactory:
    """Makes environments of one id, with the server's arguments, private ones among them.

    With `for_owner`, clients may give private arguments too, and any value. Raises `BadOption` if
    the id is not that of an agentgyms environment.
    """

    def __init__(self, env_id: str, kwargs: Mapping[str, Any], *, for_owner: bool = False) -> None:
        self._for_owner = for_owner
        self.env_id = full_id(env_id).rpartition(":")[2]
        self._class, registered = _find(env_id)
        self._kwargs = registered | dict(kwargs)
        self._lock = threading.Lock()
        self._description: dict[str, Any] = {}
        self._tasks: dict[str, TaskSet] = {}

    def make(self, kwargs: Mapping[str, Any] | None = None) -> TextEnv:
        """Return an environment with a client's arguments over the server's.

        Raises `BadOption` if an argument is not a client's to set, or is too great for one;
        `Refusal` if the environment does not take these arguments.
        """
        arguments = dict(kwargs or {})
        if not self._for_owner:
            self._check_of_client(arguments)
        try:
            env = self._class(**self._kwargs | arguments)
        except CallerError:
            raise
        except (TypeError, ValueError) as e:
            code = "type_error" if isinstance(e, TypeError) else "value_error"
            refused = refusal(self.env_id, self._class, {**self._kwargs, **arguments})
            raise Refusal(code, refused or str(e)) from e
        if arguments.keys() - _COMMON_ARGUMENTS and not self._for_owner:
            env.work_limit_s = WORK_LIMIT_S
        return env

    def _check_of_client(self, arguments: Mapping[str, Any]) -> None:
        for name, value in arguments.items():
            if self._class.is_private(name, value):
                raise BadOption(f"{name!r} is the server's to set: leave it out of the arguments")
        check_limits(self._class.client_limits, arguments)

    def description(self) -> dict[str, Any]:
        """Return the description of an environment with the server's arguments alone."""
        with self._lock:
            if not self._description:
                env = self.make()
                self._description = framing.describe(env)
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
    maker, kwargs = find_maker(env_id)
    if not inspect.isclass(maker):
        raise BadOption(f"{env_id} is made by {maker!r}, which is not a class of TextEnv")
    return cast(type[TextEnv], maker), kwargs
