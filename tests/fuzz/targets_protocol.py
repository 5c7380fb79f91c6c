"""Targets: messages, observations, spaces, pictures, snapshots and what a client is answered."""

from __future__ import annotations

import http.client
import io
import json
import re
import traceback
from dataclasses import fields
from typing import Any

import gymnasium as gym
import numpy as np
from fuzz_target import Broken, target

from agentgyms.core import images, serialization, snapshots
from agentgyms.core.errors import (
    AgentGymsError,
    BadOption,
    BadRequest,
    BadSnapshot,
    ServerUnavailable,
)
from agentgyms.remote import Patience, RemoteEnv
from agentgyms.remote.http_transport import Connection
from agentgyms.remote.protocol import framing, messages
from agentgyms.remote.transport import InProcessTransport, Reply

CORRIDOR = "agentgyms/Corridor-v0"
REQUESTS = (
    *(messages.Create, messages.Reset, messages.Step, messages.Restore, messages.Fork),
    *(messages.ListTasks, messages.Trajectory, messages.Empty, messages.Batch),
)
REPLIES = (
    *(messages.Description, messages.Limits, messages.Info, messages.Opened, messages.State),
    *(messages.Turn, messages.Snapshot, messages.Rendered, messages.Tasks),
    *(messages.SessionState, messages.Closed),
)
PATIENCE = Patience(connect_s=1, read_s=1, attempts=1, pause_s=0, full_s=0, lost_s=0)
PICTURE = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)


def corridor(**kwargs: Any) -> Any:
    env: Any = gym.make(CORRIDOR, **kwargs).unwrapped
    env.reset(seed=1)
    return env


def _message_seeds() -> list[bytes]:
    env = corridor(oracle=True)
    observation, reward, terminated, truncated, info = env.step("right")
    turn = messages.Turn(observation, reward, terminated, truncated, info, 1)
    state = messages.State(observation, info, 1, 1)
    values = [
        framing.write(turn),
        framing.write(state),
        framing.describe(env),
        {"kwargs": {"split": "train"}, "request_id": "a"},
        {"seed": 3, "options": {"task_id": "train/free-036"}, "episode": 2},
        {"action": "right", "turn": 1, "episode": 1},
        {"snapshot": env.snapshot().decode(), "episode": None},
        {"split": "train", "offset": 0, "limit": 10, "prefix": "t", "contains": "f"},
        {"items": [{"session_id": "a", "action": "x", "turn": 1}]},
        {"split": "train", "tasks": [["train/a", "free"]], "total": 1, "next": None},
    ]
    return [json.dumps(value).encode() for value in values]


@target(BadRequest, seeds=_message_seeds)
def wire_messages(data: bytes) -> Any:
    """Each message is read as a request, and as a reply, of every kind."""
    value = serialization.loads(data)
    found = []
    for read, kinds in ((framing.read, REQUESTS), (framing.read_reply, REPLIES)):
        for kind in kinds:
            try:
                message = read(kind, value, "message")  # type: ignore[operator]
            except BadRequest as error:
                found.append(str(error))
                continue
            again = {f.name: getattr(message, f.name) for f in fields(message)}
            if repr(read(kind, again, "message")) != repr(message):  # type: ignore[operator]
                raise Broken(f"{kind.__name__} is not read as it was written")
            found.append(kind.__name__)
    return found


def _value_seeds() -> list[bytes]:
    picture = serialization.encode_part(PICTURE)
    env = corridor(oracle=True)
    _, _, _, _, info = env.step("right")
    values = [
        {"observation": {"text": "a wall", "image": picture}, "info": None},
        {"observation": "a door", "info": serialization.encode_info(info)},
        {"space": framing.write_space(env.observation_space)},
        {"space": {"type": "Dict", "spaces": {"image": {"type": "Box", "dtype": "uint8",
            "low": 0, "high": 255, "shape": [5, 4, 3]}}}},
        {"tasks": [["a", "b"]], "token": "secret"},
    ]  # fmt: skip
    return [json.dumps(value).encode() for value in values]


@target(BadRequest, BadOption, seeds=_value_seeds)
def wire_values(data: bytes) -> Any:
    """What is read is written as it was, and read again as it was."""
    value = serialization.loads(data)
    if not isinstance(value, dict):
        return None
    if "space" in value:
        space = framing.read_space(value["space"])
        if framing.read_space(framing.write_space(space)) != space:
            raise Broken("a space is not read as it was written")
    if "token" in value:
        framing.check_token(value["token"])
    if "tasks" in value:
        framing.read_tasks(framing.read_reply(messages.Tasks, {"split": "", **value}, "tasks"))
    info = {} if value.get("info") is None else serialization.decode_info(value["info"])
    seen = serialization.decode_observation(value.get("observation", ""))
    encoded = json.dumps(serialization.encode_observation(seen))
    again = serialization.decode_observation(json.loads(encoded))
    if json.dumps(serialization.encode_observation(again)) != encoded:
        raise Broken("an observation is not read as it was written")
    if info:
        serialization.dumps(serialization.encode_info(info))
    return encoded, info


def _picture_seeds() -> list[bytes]:
    return [images.encode_png(PICTURE), images.encode_png(np.zeros((1, 1, 3), np.uint8))]


@target(BadRequest, seeds=_picture_seeds, kind="bytes")
def pictures(data: bytes) -> Any:
    """A picture that is read is written and read as the same pixels."""
    pixels = images.decode_png(data)
    if not np.array_equal(images.decode_png(images.encode_png(pixels)), pixels):
        raise Broken("a picture is not read as it was written")
    return images.digest(pixels)


def _snapshot_seeds() -> list[bytes]:
    env = corridor(max_turns=3)
    first: bytes = env.snapshot()
    env.step("right")
    second: bytes = env.snapshot()
    env.step("left")
    env.step("left")
    return [first, second, env.snapshot()]


@target(BadSnapshot, seeds=_snapshot_seeds)
def snapshot_bytes(data: bytes) -> Any:
    """A snapshot that is read is packed again to one that reads the same."""
    saved = snapshots.unpack(data, None)
    packed = snapshots.pack(
        {}, saved.episode, saved.generator, None
    )  # engines check their own part
    again = snapshots.unpack(packed, None)
    if snapshots.pack({}, again.episode, again.generator, None) != packed:
        raise Broken("a snapshot is not read as it was packed")
    return packed


class _Socket:
    """A socket that has received some bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)

    def sendall(self, data: bytes) -> None:
        """Take a request."""

    def close(self) -> None:
        """Do nothing."""


def _http_seeds() -> list[bytes]:
    body = b'{"status":"ok"}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nAgentgyms-Protocol: 1\r\n"
    return [
        head + b"Content-Length: %d\r\n\r\n" % len(body) + body,
        head + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n3;x=1\r\nfgh\r\n0\r\n\r\n",
        b"HTTP/1.0 204 No Content\r\nConnection: keep-alive\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nRetry-After: 2\r\n\r\nlater",
    ]


_HTTP_FAILURES = (OSError, ValueError, OverflowError, MemoryError, http.client.HTTPException)
"""What `HttpTransport` takes as a server's failure."""


@target(*_HTTP_FAILURES, seeds=_http_seeds, kind="text")
def client_http(data: bytes) -> Any:
    """The client reads a reply of HTTP, or takes it as the server's failure."""
    connection = Connection("127.0.0.1", 1)
    connection.sock = _Socket(data)  # type: ignore[assignment]
    response = connection.exchange("GET", "/healthz", None, {"Accept": "*/*"})
    return response.status, sorted(response.headers.items()), response.read()


class _Replies:
    """A transport that answers from a list."""

    def __init__(self, replies: list[Any]) -> None:
        self._left = list(reversed(replies))

    def send(self, method: str, url: str, **_: Any) -> Reply:
        reply = self._left.pop() if self._left else None
        if not isinstance(reply, dict):
            raise ServerUnavailable("no reply")
        status, headers, body = reply.get("status"), reply.get("headers"), reply.get("body")
        if type(status) is not int or not isinstance(headers, dict):
            raise ServerUnavailable("no reply")
        text = body if isinstance(body, str) else json.dumps(body)
        plain = {key: str(value) for key, value in headers.items()}
        return Reply(status, plain, text.encode("utf-8", "replace"))

    def clone(self) -> _Replies:
        return self

    def close(self) -> None:
        """Do nothing."""


def _use(transport: Any) -> list[Any]:
    """Play on a server, and return what came of it."""
    found: list[Any] = []
    env = RemoteEnv(env_id=CORRIDOR, url="http://server", transport=transport, patience=PATIENCE)
    try:
        found.append(env.reset(seed=1))
        found.append(env.step("right"))
        found.append(len(env.tasks))
        found.append(env.snapshot())
        found.append(env.fork().step("left"))
    finally:
        env.close()
    return found


class _Recorded(InProcessTransport):
    """A transport to a server in this process that keeps its replies."""

    replies: list[dict[str, Any]]

    def send(self, *args: Any, **kwargs: Any) -> Reply:
        reply = super().send(*args, **kwargs)
        body = json.loads(re.sub(rb'(?<="session_id":")\w+', b"0" * 32, reply.body) or b"null")
        headers = {"Agentgyms-Protocol": "1"}
        self.replies.append({"status": reply.status, "headers": headers, "body": body})
        return reply


def _reply_seeds() -> list[bytes]:
    from env_servers import create_app

    transport = _Recorded({"http://server": create_app(CORRIDOR, token="")})
    transport.replies = []
    _use(transport)
    full = {"error": {"code": "server_full", "message": "full", "retryable": True, "hint": "wait"}}
    busy = {"status": 429, "headers": {"Agentgyms-Protocol": "1", "Retry-After": "3"}, "body": full}
    lost = {"error": {"code": "session_expired", "message": "gone", "retryable": True, "hint": ""}}
    gone = {"status": 410, "headers": {"Agentgyms-Protocol": "1"}, "body": lost}
    replies = transport.replies
    several = [replies, [replies[0], busy], [*replies[:3], gone], [*replies[:2], *replies[:4]]]
    return [json.dumps(one).encode() for one in several]


@target(seeds=_reply_seeds, steps_per_byte=4_000)
def client_replies(data: bytes) -> Any:
    """A client plays on whatever a server answers."""
    try:
        replies = json.loads(data)
    except (ValueError, RecursionError):
        return None
    try:
        return _use(_Replies(replies if isinstance(replies, list) else [replies]))
    except (AgentGymsError, gym.error.Error) as error:
        return type(error).__name__  # its text tells the time
    except (TypeError, ValueError) as error:
        if traceback.extract_tb(error.__traceback__)[-1].name != "_answer":
            raise
        return repr(error)  # the server's own, `type_error` or `value_error`
