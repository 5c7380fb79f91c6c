"""Targets: AppWorld's actions, its APIs, and the line between an executor and the trusted side."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from inspect import signature
from typing import Any

from fuzz_target import Broken, target

from agentgyms.core import serialization
from agentgyms.core.errors import WorkerLost
from agentgyms.envs.appworld.mini.generator import make_task, scenarios, task_ids
from agentgyms.envs.appworld.mini.world import MiniWorld
from agentgyms.envs.appworld.sandbox import code_check, code_extraction
from agentgyms.envs.appworld.sandbox.executors import Executor
from agentgyms.envs.appworld.sandbox.worker import Worker
from agentgyms.envs.appworld.snapshot import SavedEpisode


@cache
def _solved(number: int = 0) -> Any:
    scenario, _ = scenarios("train")[number]
    return make_task(task_ids(scenario)[0])


def _world() -> MiniWorld:
    return MiniWorld(_solved().task)


def _code_seeds() -> list[bytes]:
    blocks = [code for number in (0, 1) for code in _solved(number).solution[:2]]
    plain = "x = f'{1!r:>{3}} {y}' if 0x10 else (lambda a, /, *b: a)(1)\nwith open('f') as g: pass"
    fenced = "Let me look.\n```python\nprint(apis.supervisor.show_profile())\n```\nThen more."
    return [code.encode() for code in (*blocks, plain, fenced, "<code>\nx = [1]\n</code>")]


@target(code_extraction.NoCode, seeds=_code_seeds, kind="text", steps_per_byte=20_000)
def appworld_code(data: bytes) -> Any:
    """An action has code or not; code has a canonical form, that of its canonical form too."""
    code = code_extraction.extract_code(data.decode("utf-8", "surrogateescape"))
    canonical = code_extraction.canonical(code)
    if code_extraction.is_code(code) and not code_extraction.is_code(canonical):
        raise Broken(f"the canonical form is no code: {canonical!r:.300}")
    return code, canonical, code_check.refusal(code)


def _call_seeds() -> list[bytes]:
    world = _world()
    profile = world.call("supervisor", "show_profile", {}).value or {}
    calls: list[Any] = [
        ["supervisor", "show_account_passwords", {}],
        ["jukebox", "login", {"username": profile.get("email", "a@b.c"), "password": "x"}],
        ["api_docs", "show_api_doc", {"app_name": "purse", "api_name": "login"}],
    ]
    asked = {"access_token": "a", "page_index": 0, "query": "x"}
    calls += [[app, api, asked] for app, apis in world.brief.apis.items() for api in list(apis)[:4]]
    calls.append(["supervisor", "complete_task", {"answer": [[1, "a"]], "status": "success"}])
    return [json.dumps(calls[start : start + 6]).encode() for start in range(0, len(calls), 6)]


@target(seeds=_call_seeds, steps_per_byte=20_000)
def appworld_calls(data: bytes) -> Any:
    """Every call has a response, and the records can be hashed and checked after all of them."""
    try:
        calls = json.loads(data)
    except (ValueError, RecursionError):
        return None
    world = _world()
    found = []
    for call in (calls if isinstance(calls, list) else [])[:20]:
        match call:
            case [str(app), str(api), dict(arguments)]:
                response = world.call(app, api, arguments)
                json.dumps(response.value)
                found.append(response)
    return found, world.digest(), world.report()


class _Scripted(Worker):
    """A worker whose process sends an input as soon as it is spoken to, and then ends."""

    def __init__(self, data: bytes) -> None:
        mine, self._theirs = socket.socketpair()
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        callbacks = len(signature(Worker).parameters) - 2
        super().__init__(mine, 1, *[lambda *_: None] * callbacks)
        self._script: bytes | None = data

    def send(self, message: Mapping[str, Any], limit_s: float = 30) -> None:
        script, self._script = self._script, None
        if script is not None:
            self._theirs.sendall(script)
            self._theirs.shutdown(socket.SHUT_WR)
        json.dumps(message)

    def end(self) -> None:
        """Close both ends."""
        self.close()
        self._theirs.close()


def _line_seeds() -> list[bytes]:
    done = {
        "output": "a\n",
        "num_characters": 2,
        "error_kind": "",
        "error": "",
        "status": None,
        "timed_out": False,
    }
    call = {"call": ["supervisor", "show_profile", {}], "at": [1, 1]}
    second = {"call": ["api_docs", "show_app_descriptions", {"a": [[1]]}], "at": [1, 2]}
    end = {"done": done, "turn": 1}
    failed = {"done": done | {"error_kind": "ValueError", "error": "x", "status": 422}, "turn": 1}
    return [
        "".join(json.dumps(message) + "\n" for message in messages).encode()
        for messages in ([end], [call, end], [call, second, failed])
    ]


@target(WorkerLost, seeds=_line_seeds, kind="lines", steps_per_byte=4_000)
def appworld_line(data: bytes) -> Any:
    """Whatever an executor sends, its turn ends with a result or with the executor."""
    worker, world = _Scripted(data), _world()
    try:
        found = Executor(worker).run("pass", world.call, timeout_s=60, max_calls=30)
        json.dumps(asdict(found), ensure_ascii=False).encode()
        return found, world.digest()
    finally:
        worker.end()


def _saved_seeds() -> list[bytes]:
    counts = {"api_calls": 3, "api_errors": 1, "doc_lookups": 0}
    saved = SavedEpisode(["x = 1", "print(x)"], "0" * 16, counts, 2, 0, 0, over=False)  # type: ignore[arg-type]
    return [json.dumps(asdict(saved)).encode()]


@target(LookupError, TypeError, ValueError, AttributeError, seeds=_saved_seeds)
def appworld_saved(data: bytes) -> Any:
    """The engine's part of a snapshot is read, or refused as `restore` refuses it."""
    return SavedEpisode.parse(serialization.loads(data))
