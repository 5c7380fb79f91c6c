"""Answers labelled with the version of the weights, which change between answers alone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from harness.inference.completers import Completer, Sampling
from harness.types.messages import Message
from harness.types.rollout import Completion

_POLL_S: Final = 0.005


class VersionedCompleter:
    """Answers with a completer, in a thread beside the one that changes its weights."""

    def __init__(self, completer: Completer) -> None:
        self.version = -1
        self._completer, self._state = completer, threading.Condition()
        self._is_open, self._in_flight = True, 0
        self._busy_s, self._since = 0.0, 0.0

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int
    ) -> Completion:
        """Return the completer's answer with its version; all its tokens are of one version."""
        while not self._entered():
            await asyncio.sleep(_POLL_S)
        try:
            made = await self._completer.complete(messages, sampling, seed)
            return replace(made, version=self.version)
        finally:
            self._leave()

    def _entered(self) -> bool:
        """Count an answer as under way, unless answers are paused."""
        with self._state:
            if self._is_open and not self._in_flight:
                self._since = time.perf_counter()
            self._in_flight += self._is_open
            return self._is_open

    def _leave(self) -> None:
        with self._state:
            self._in_flight -= 1
            if not self._in_flight:
                self._busy_s += time.perf_counter() - self._since
                self._state.notify_all()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wait for the answers under way, and begin no other one within this context."""
        with self._state:
            self._is_open = False
            self._state.wait_for(lambda: not self._in_flight)
        try:
            yield
        finally:
            with self._state:
                self._is_open = True

    @property
    def busy_s(self) -> float:
        """Seconds in which at least one answer was under way."""
        with self._state:
            now = time.perf_counter() - self._since if self._in_flight else 0.0
            return self._busy_s + now
