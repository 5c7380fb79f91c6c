"""Environments in the actors of a Ray cluster: the address `ray://16`, and its transport.

An actor answers the requests that a server answers over HTTP, so sessions, batches, retries and
recovery are those of every `RemoteEnv`. Ray restarts a lost actor, on another node if need be.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlsplit

from gymnasium.error import DependencyNotInstalled

from agentgyms.core import imports
from agentgyms.core.errors import BadOption, ServerUnavailable
from agentgyms.remote.transport import Reply, Request

SCHEME: Final = "ray://"
MESSAGES: Final = 4
"""Most messages that an actor has at a time; requests that come meanwhile share the next one."""
_PAUSE_S: Final = 0.5
_SHUT_DOWN: Final = "Ray is shut down in this process"

_started: dict[tuple[object, ...], list[RayTransport]] = {}
_starting = threading.Lock()


class Place(NamedTuple):
    """The number of actors that an address stands for, and the CPUs and environments of each."""

    num_actors: int
    cpus: float = 1.0
    sessions: int = 256


class Actor(Protocol):
    """A handle of Ray on an actor that answers requests."""

    answer: Any


class RayTransport:
    """Requests to one actor, which Ray may still be starting, from any number of threads.

    Requests that wait while the actor is busy travel in one message. While Ray restarts a lost
    actor, requests fail at once, so that their episodes go on in other actors.
    """

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._waiting: deque[tuple[Request, float, Future[Reply]]] = deque()
        self._senders = ThreadPoolExecutor(MESSAGES, "ray")
        self._runs, self._why = False, "Ray has not started the actor yet"
        self._settled = threading.Event()  # whether a new actor runs, or was waited for in vain
        self._watch()

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_s: tuple[float, float],
    ) -> Reply:
        """Return the reply; see `Transport`. A new actor is waited for as long as for a reply."""
        # a starting actor is waited for once; afterwards requests fail at once
        self._settled.wait(timeout_s[1])
        self._settled.set()
        if not self._runs:
            raise ServerUnavailable(self._why)
        target = "/" + url.removeprefix(SCHEME).partition("/")[2]
        reply: Future[Reply] = Future()
        self._waiting.append((Request(method, target, dict(headers), body), timeout_s[1], reply))
        try:
            self._senders.submit(self._send_waiting)
        except RuntimeError:  # no thread starts any more
            raise ServerUnavailable("this process is about to end") from None
        try:
            return reply.result(timeout_s[1])
        except TimeoutError:
            raise ServerUnavailable(f"no reply within {timeout_s[1]:g} s") from None

    def _send_waiting(self) -> None:
        """Send all requests that wait, as one message, and hand out the replies."""
        taken: list[tuple[Request, float, Future[Reply]]] = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._waiting.popleft())
        if not taken:
            return  # another thread's message has them
        requests, waits_s, replies = zip(*taken, strict=True)
        try:
            answered = self._exchange(requests, max(waits_s))
        except ServerUnavailable as e:
            for reply in replies:
                reply.set_exception(ServerUnavailable(str(e)))
            return
        for reply, answer in zip(replies, answered, strict=True):
            reply.set_result(answer)

    def _exchange(self, requests: Sequence[Request], timeout_s: float) -> list[Reply]:
        import ray

        if not self._runs:
            raise ServerUnavailable(self._why)
        if not ray.is_initialized():  # a call would connect to the cluster anew
            raise ServerUnavailable(_SHUT_DOWN)
        try:
            replies: list[Reply] = ray.get(self._actor.answer.remote(requests), timeout=timeout_s)
        except ray.exceptions.GetTimeoutError:
            raise ServerUnavailable(f"no reply within {timeout_s:g} s") from None
        except Exception as e:  # of many kinds: the actor, its node, the connection to the cluster
            self._why = _reason(e)
            if self._runs:
                self._runs = False
                self._watch()
            raise ServerUnavailable(self._why) from e
        return replies

    def _watch(self) -> None:
        threading.Thread(target=self._wait_until_it_runs, name="ray actor", daemon=True).start()

    def _wait_until_it_runs(self) -> None:
        import ray

        while True:
            if not ray.is_initialized():  # a call would connect to the cluster anew
                self._why = _SHUT_DOWN
                break
            try:
                ray.get(self._actor.answer.remote(()))
            except ray.exceptions.ActorUnavailableError:
                time.sleep(_PAUSE_S)
            except Exception as e:  # it never will
                self._why = _reason(e)
                break
            else:
                self._runs = True
                break
        self._settled.set()

    def clone(self) -> RayTransport:
        """Return the transport itself: threads share it, so that their requests share messages."""
        return self

    def close(self) -> None:
        """Do nothing: the actors serve this process for as long as it is connected to Ray."""


def transports(url: str, env_id: str) -> dict[str, RayTransport]:
    """Return the transports to the actors of `ray://N` or `ray://N?cpus=C&sessions=S`, by address.

    A process starts them once; they end with it, or with `ray.shutdown()`. Raises `BadOption` for
    another address, `DependencyNotInstalled` without Ray.
    """
    place = read_address(url)
    try:
        import ray
    except ModuleNotFoundError:
        raise DependencyNotInstalled(imports.missing("ray", "ray")) from None
    with _starting:
        if not ray.is_initialized():
            ray.init(logging_level="WARNING")
        context = ray.get_runtime_context()
        key = (context.gcs_address, context.get_job_id(), env_id, place)
        if key not in _started:
            _started[key] = [RayTransport(actor) for actor in _start(ray, env_id, place)]
    addresses = (f"{SCHEME}actor-{i}-of-{place.num_actors}" for i in range(place.num_actors))
    return dict(zip(addresses, _started[key], strict=True))


def read_address(url: str) -> Place:
    """Return what an address asks for; errors as for `transports`."""
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    try:
        fields = {name: {"cpus": float, "sessions": int}[name](value) for name, value in given}
        place = Place(int(parts.netloc), **fields)
    except (KeyError, ValueError):
        place = Place(0)
    if place.num_actors < 1 or not 0 <= place.cpus < float("inf") or place.sessions < 1:
        raise BadOption(
            f"url {url!r} is no address of Ray actors: expected ray://N or "
            "ray://N?cpus=1&sessions=256 with N actors; RAY_ADDRESS names the cluster"
        )
    return place


def _start(ray: Any, env_id: str, place: Place) -> list[Actor]:
    module = import_module("env_servers.http.ray_actor")  # by name: this package has no server
    actor_class = ray.remote(module.EnvActor).options(
        num_cpus=place.cpus,
        max_concurrency=MESSAGES,
        max_restarts=-1,
        scheduling_strategy="SPREAD",
    )
    return [actor_class.remote(env_id, place.sessions) for _ in range(place.num_actors)]


def _reason(error: Exception) -> str:
    """Return the reason why there was no reply: the last line of what Ray says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
