"""Clients of a service, each of which plays the same episode on the server and in this process."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from typing import Any, Final

import gymnasium as gym

import agentgyms  # noqa: F401 (registers the environments)
from agentgyms.core import serialization
from agentgyms.core.errors import EnvUnavailable
from agentgyms.remote import Patience, RemoteEnv
from soaking.players import chosen_action
from soaking.services import TOKEN, Service

PATIENCE: Final = Patience(
    connect_s=5, read_s=30, attempts=12, pause_s=0.05, full_s=120, lost_s=300
)
_LONGEST: Final = 25
_AT_RANDOM: Final = 0.5


class Differs(Exception):
    """The server's episode is not the one that is played here."""


class Client(threading.Thread):
    """Plays until it is told to stop; whatever it did not expect is an error of its service.

    Args:
        service: What it plays on, through its proxy.
        number: Of this client, for its seeds.
        stop: Set when it shall stop.
        pause_s: Pause between two turns.
    """

    def __init__(
        self, service: Service, number: int, stop: threading.Event, pause_s: float
    ) -> None:
        super().__init__(name=f"{service.name} {number}", daemon=True)
        self._service, self._number, self._told_to_stop = service, number, stop
        self._pause_s = pause_s
        self._rng = random.Random(f"{service.name}/{number}")
        self._here: Any = gym.make(service.env_id, **service.kwargs).unwrapped
        self._here.reset(seed=0)  # what is generated once is made before the time begins
        self._there: Any = None

    def run(self) -> None:
        """Play episode after episode."""
        while not self._told_to_stop.is_set():
            killed = self._service.workers_killed
            try:
                self._episode()
            except Exception as error:
                self._note(error, killed)
                self._leave()
        self._leave()
        self._here.close()

    def _note(self, error: Exception, killed: int) -> None:
        tally = self._service.tally
        lost_worker = killed != self._service.workers_killed
        with tally.lock:
            if lost_worker and isinstance(error, Differs | EnvUnavailable):
                tally.cut += 1
            else:
                tally.errors[f"{type(error).__name__}: {str(error)[:300]}"] += 1
        self._told_to_stop.wait(1.0)

    def _leave(self) -> None:
        if self._there is not None:
            with contextlib.suppress(EnvUnavailable):
                self._there.close()
        self._there = None

    def _episode(self) -> None:
        if self._there is None:
            self._there = self._made()
        there, here, tally = self._there, self._here, self._service.tally
        seed = self._rng.randrange(10**6)
        observation, info = _same(there.reset(seed=seed), here.reset(seed=seed))
        for turn in range(_LONGEST):
            action = chosen_action(self._rng, info, _text(observation), _AT_RANDOM)
            observation, _, terminated, truncated, info = _same(
                there.step(action), here.step(action)
            )
            with tally.lock:
                tally.turns += 1
            if terminated or truncated or self._told_to_stop.wait(self._pause_s):
                break
            if turn % 8 == 5:
                self._go_back(info)
        with tally.lock:
            tally.episodes += 1
        if self._rng.random() < 0.2:
            self._leave()

    def _go_back(self, info: dict[str, Any]) -> None:
        """Take a snapshot on the server, and restore it in another session of it."""
        saved = self._there.snapshot()
        twin = self._there.fork()
        try:
            _, again = twin.restore(saved)
        finally:
            twin.close()
        if again["state_key"] != info["state_key"]:
            raise Differs(f"a snapshot of {info['state_key']} restores {again['state_key']}")

    def _made(self) -> RemoteEnv:
        """Make a client; there is no episode to keep yet, so it may take some attempts."""
        give_up = time.monotonic() + PATIENCE.lost_s
        while True:
            try:
                service = self._service
                return RemoteEnv(
                    service.env_id,
                    url=service.proxy.url,
                    token=TOKEN,
                    patience=PATIENCE,
                    **service.kwargs,
                )
            except EnvUnavailable:
                if time.monotonic() > give_up or self._told_to_stop.wait(0.2):
                    raise


def _same(there: Any, here: Any) -> Any:
    """Return what both gave.

    Raises:
        Differs: They gave two things.
    """
    if _plain(there) != _plain(here):
        raise Differs(f"{_plain(there)[:200]} there, {_plain(here)[:200]} here")
    return here


def _plain(result: Any) -> str:
    observation, *rest, info = result
    encoded = serialization.encode_observation(observation)
    return json.dumps([encoded, rest, serialization.encode_info(info)], sort_keys=True)


def _text(observation: Any) -> str:
    return observation if isinstance(observation, str) else ""
