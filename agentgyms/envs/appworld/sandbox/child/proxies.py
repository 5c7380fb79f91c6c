"""`apis.<app>.<api>(...)`: functions that send API calls over the connection.

They have the engine's names, and raise its exceptions for unknown names, because code sees them in
tracebacks and in printed values.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterable, Mapping
from os import _exit  # bound here, because code may replace it in its module
from typing import Any

from .line import Connection


class HTTPException(Exception):
    """The engine's exception for an app or an API that does not exist."""

    def __init__(self, status_code: int, detail: str) -> None:
        self.status_code = status_code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.status_code}: {self.detail}"

    def __repr__(self) -> str:
        return f"HTTPException(status_code={self.status_code!r}, detail={self.detail!r})"


HTTPException.__module__ = "fastapi.exceptions"


class CustomErrorMessageMunch(dict[str, Any]):
    """A dict whose keys are also attributes."""

    _missing = "No app named '{key}' found."

    def __getattr__(self, key: str) -> Any:
        try:
            return object.__getattribute__(self, key)
        except AttributeError:
            try:
                return self[key]
            except KeyError:
                raise HTTPException(422, type(self)._missing.format(key=key))  # noqa: B904

    def __dir__(self) -> Iterable[str]:
        return list(dict.keys(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict.__repr__(self)})"


class ApiCollection(CustomErrorMessageMunch):
    """All apps."""

    def keys(self) -> list[str]:  # type: ignore[override]
        """Return the apps, as a list like the engine."""
        return list(dict.keys(self))

    def values(self) -> list[Any]:  # type: ignore[override]
        """Return the apps' APIs, as a list."""
        return list(dict.values(self))

    def items(self) -> list[tuple[str, Any]]:  # type: ignore[override]
        """Return apps and their APIs, as a list."""
        return list(dict.items(self))


CustomErrorMessageMunch.__module__ = "appworld.common.utils"
ApiCollection.__module__ = "appworld.collections.apis"


class Caller:
    """Calls APIs over a connection, one at a time, during a turn."""

    def __init__(self, line: Connection) -> None:
        self._connection = line
        self._lock = threading.RLock()
        self._turn = 0
        self._calls = 0

    def begin_turn(self, turn: int) -> None:
        """Allow calls; the turn's number is a part of each."""
        self._turn = turn
        self._calls = 0

    def end_turn(self) -> None:
        """Refuse calls: threads of the code may still be running."""
        with self._lock:
            self._turn = 0

    def call(self, app: str, api: str, arguments: dict[str, Any]) -> Any:
        """Return an API's result or raise its error; `TypeError` if an argument cannot be JSON."""
        with self._lock:
            if not self._turn:
                raise Exception("APIs can only be called while the code of a turn runs.")
            self._connection.send(
                {"call": [app, api, arguments], "at": [self._turn, self._calls + 1]}
            )
            self._calls += 1
            response = self._response([self._turn, self._calls])
        if "raise" in response:
            kind, message = response["raise"]
            raise getattr(builtins, kind, Exception)(message)
        return response["value"]

    def _response(self, at: list[int]) -> dict[str, Any]:
        while True:
            message = self._connection.receive()
            if message is None:
                _exit(0)
            if message.get("at") == at:  # others belong to calls that the time limit interrupted
                return message


def _wrap_api_request(app: str, api: str, caller: Caller) -> Callable[..., Any]:
    def _api_request(**kwargs: Any) -> Any:
        return caller.call(app, api, kwargs)

    return _api_request


def collection(apis: Mapping[str, Iterable[str]], caller: Caller) -> ApiCollection:
    """Return the object `apis` of the code."""
    apps = ApiCollection()
    for app, names in apis.items():
        missing = f"No API named '{{key}}' found in the {app} app."
        kind = type("_CustomErrorMessageMunch", (CustomErrorMessageMunch,), {"_missing": missing})
        kind.__module__ = CustomErrorMessageMunch.__module__
        kind.__qualname__ = "CustomErrorMessageMunch.build.<locals>._CustomErrorMessageMunch"
        apps[app] = kind({name: _wrap_api_request(app, name, caller) for name in names})
    return apps
