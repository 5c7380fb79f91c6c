"""Runs code against a world of MiniAppWorld in this process, for tests of tasks and solutions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from agentgyms.envs.appworld.mini.generator import SolvedTask, make_task
from agentgyms.envs.appworld.mini.world import MiniWorld
from agentgyms.envs.appworld.world import World


@cache
def made(task_id: str) -> SolvedTask:
    """Return a task, which tests make only once."""
    return make_task(task_id)


def opened(task_id: str) -> MiniWorld:
    """Return a new world of a task."""
    return MiniWorld(made(task_id).task)


class CallFailed(Exception):
    """An API answered with an error."""


class _Path:
    """`apis`, `apis.<app>` or `apis.<app>.<api>`."""

    def __init__(self, world: World, *names: str) -> None:
        self._world = world
        self._names = names

    def __getattr__(self, name: str) -> _Path:
        return _Path(self._world, *self._names, name)

    def __call__(self, **arguments: Any) -> Any:
        app, api = self._names
        reply = self._world.call(app, api, arguments)
        if reply.error:
            raise CallFailed(reply.error)
        return json.loads(json.dumps(reply.value))


def play(world: World, blocks: Iterable[str]) -> list[str]:
    """Run code blocks in order, with the variables they share; return what they print.

    Raises:
        Exception: Whatever a block raises.
    """
    lines: list[str] = []
    variables: dict[str, Any] = {
        "apis": _Path(world),
        "print": lambda *values: lines.append(" ".join(map(str, values))),
    }
    for block in blocks:
        exec(compile(block, "<block>", "exec"), variables)
    return lines
