"""Partial rollouts: a stream of groups that go on while the weights change under them.

Groups are numbered; group k is the one with index k mod n among the n groups of step k // n. While
the weights have version v, groups below n (v + 2) may begin. Step t learns from n groups: first all
that began before version t, then those that ended first. So n groups at most are due in a step, and
each group is learned from one step after the version that it began with at the latest.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from harness.training.players.player import Player
from harness.types.rollout import Rollout

_TICK_S: Final = 0.02


class GroupStream:
    """Plays a run's groups one after the other in a thread; `size` of them make a step."""

    def __init__(
        self,
        player: Player,
        size: int,
        steps: int,
        version: Callable[[], int],
        run: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._player, self._size, self._steps = player, size, steps
        self._version, self._run = version, run
        self._changed = threading.Condition()
        self._next = 0
        self._again: list[int] = []  # groups that a resumed run plays again
        self._begun: dict[int, int] = {}  # version with which each group began that is not taken
        self._ended: dict[int, list[Rollout]] = {}  # in the order in which they ended
        self._thread = ThreadPoolExecutor(1, "rollouts")
        self._playing: Future[None] | None = None

    def take(self, step: int) -> list[Rollout]:
        """Wait for the groups that a step learns from and return them; raise the thread's error."""
        if self._playing is None:
            self._playing = self._thread.submit(self._run, self._play())
        with self._changed:
            while not self._is_ready(step):
                if self._playing.done():
                    self._playing.result()
                self._changed.wait(_TICK_S)
            chosen = sorted(self._chosen(step))
            for number in chosen:
                del self._begun[number]
            groups = [self._ended.pop(number) for number in chosen]
        for index, group in enumerate(groups):
            for rollout in group:
                rollout.group = index
        return [rollout for group in groups for rollout in group]

    def _due(self, step: int) -> list[int]:
        return [number for number, version in self._begun.items() if version < step]

    def _is_ready(self, step: int) -> bool:
        ended = self._ended.keys()
        return len(ended) >= self._size and ended >= set(self._due(step))

    def _chosen(self, step: int) -> list[int]:
        due = self._due(step)
        others = [number for number in self._ended if number not in due]
        return [*due, *others][: self._size]

    async def _play(self) -> None:
        room = await self._player.max_open_groups()
        running: dict[asyncio.Task[list[Rollout]], int] = {}
        try:
            num_groups = self._size * self._steps
            while self._again or self._next < num_groups or running:
                while len(running) < room and (number := self._begin()) is not None:
                    step, index = divmod(number, self._size)
                    task = asyncio.create_task(self._player.play_group(step, index))
                    running[task] = number
                if not running:
                    await asyncio.sleep(_TICK_S)
                    continue
                done, _ = await asyncio.wait(
                    running, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    number, rollouts = running.pop(task), task.result()
                    with self._changed:
                        self._ended[number] = rollouts
                        self._changed.notify_all()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _begin(self) -> int | None:
        """Return the number of the group that begins now; None if none may."""
        with self._changed:
            version = self._version()
            if self._again:
                number = self._again.pop(0)
            elif self._next < self._size * min(version + 2, self._steps):
                number, self._next = self._next, self._next + 1
            else:
                return None
            self._begun[number] = version
            return number

    def state_dict(self) -> dict[str, Any]:
        """Return which groups were begun and no step has learned from, and which is the next."""
        with self._changed:
            return {"begun": sorted([*self._begun, *self._again]), "next": self._next}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Play the begun groups again, from their beginning."""
        self._again, self._next = list(state["begun"]), state["next"]

    def close(self) -> None:
        """Wait for the thread, whose episodes were cancelled."""
        self._thread.shutdown(wait=True)
