"""Plays the rollouts of the next step in a thread, with the weights that the generator has."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, NamedTuple

from harness.config import Config
from harness.distributed.signals import StopSignal
from harness.inference.generation import Generator
from harness.inference.versions import VersionedCompleter
from harness.model.policy import Policy
from harness.rollouts.task_sampling.curriculum import Curriculum
from harness.training.players.group_stream import GroupStream
from harness.training.players.player import Player, StepRollouts
from harness.types.rollout import OnFinish, Rollout


class _Cancellable(StopSignal):
    """Cancels running episodes when a run's signal is overdue, or at once on demand."""

    def __init__(self, stop: StopSignal) -> None:
        super().__init__()
        self._stop, self.is_cancelled = stop, False

    @property
    def is_overdue(self) -> bool:
        return self.is_cancelled or self._stop.is_overdue


class _Mark(NamedTuple):
    """A moment, and how long the generator has worked until then."""

    time: float
    busy_s: float


class _CurriculumSnapshot:
    """The curriculum's state to resume from: the one before the step that is played ahead."""

    def __init__(self, curriculum: Curriculum) -> None:
        self._curriculum = curriculum
        self.keep()

    def keep(self) -> None:
        self._kept = copy.deepcopy(self._curriculum.state_dict())

    def state_dict(self) -> dict[str, Any]:
        return self._kept

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._curriculum.load_state_dict(state)
        self.keep()


class AheadPlayer:
    """Plays a step's rollouts while the policy learns from those of the step before.

    Rollouts are at most one version of the weights older than the policy that learns from them. A
    resumed run plays lost ones again, with the checkpoint's weights and the same tasks and seeds.
    """

    def __init__(
        self, config: Config, policy: Policy, generator: Generator, stop: StopSignal
    ) -> None:
        self._generator, self._steps = generator, config.run.steps
        self._answers = VersionedCompleter(generator.completer)
        self._signal = _Cancellable(stop)
        self._player = Player(config, policy, self._answers, self._signal.run)
        self._thread = ThreadPoolExecutor(1, "rollouts")
        self._playing: Future[StepRollouts] | None = None
        self._learned = 0
        self._began = self._played = _Mark(0.0, 0.0)
        self._snapshot = self._stream = None
        self.parts: dict[str, Any] = {}
        if self._player.curriculum is not None:
            self._snapshot = self.parts["curriculum"] = _CurriculumSnapshot(self._player.curriculum)
        if config.rollout.ahead == "partial":
            self._stream = self.parts["ahead"] = GroupStream(
                self._player,
                config.rollout.tasks_per_step,
                config.run.steps,
                lambda: self._answers.version,
                self._signal.run,
            )

    @property
    def data_version(self) -> str:
        """The version of the environment's data."""
        return self._player.data_version

    def open(self) -> None:
        """Do nothing: nobody waits for this player."""

    def play(self, step: int, on_finish: OnFinish = lambda _: None) -> StepRollouts:
        """Return the rollouts of a step and begin those of the next; raise the thread's error."""
        self._began = self._mark()
        if self._stream is not None:
            played = self._player.result(step, self._stream.take(step))
        else:
            played = (self._playing or self._begin(step)).result()
            self._playing = None
            self._sync()
            if step + 1 < self._steps:
                self._begin(step + 1)
            elif self._snapshot is not None:
                self._snapshot.keep()
        for rollout in played.rollouts:
            on_finish(rollout)
        self._played = self._mark()
        return played

    def _begin(self, step: int) -> Future[StepRollouts]:
        if self._snapshot is not None:
            self._snapshot.keep()
        self._playing = self._thread.submit(self._player.play, step)
        return self._playing

    def follow(self, version: int) -> None:
        """Sync the generator with the policy after step `version`: now if no step is in play."""
        self._learned = version
        if self._stream is not None or self._playing is None:
            self._sync()

    def _sync(self) -> None:
        if self._answers.version != self._learned:
            with self._answers.paused():
                self._generator.sync()
                self._answers.version = self._learned

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Let evaluations have the generator, with the policy's weights, within this context."""
        if self._playing is not None:
            wait([self._playing])  # `play` raises its error
        self._sync()
        with self._answers.paused():
            yield

    def _mark(self) -> _Mark:
        return _Mark(time.perf_counter(), self._answers.busy_s)

    def figures(self, step: int, rollouts: Iterable[Rollout]) -> dict[str, float]:
        """Return idle times and staleness of the step that ends now."""
        ended = self._mark()
        step_s = ended.time - self._began.time
        busy_s = ended.busy_s - self._began.busy_s
        # The generator's work while the policy learns.
        overlap_s = ended.busy_s - self._played.busy_s
        versions = [
            min(answer.version or 0 for answer in turn.answers)
            for rollout in rollouts
            for turn in rollout.own_turns
        ]
        ages = [step - version for version in versions]
        return {
            "time/generator_idle_s": max(step_s - busy_s, 0.0),
            "time/learner_idle_s": self._played.time - self._began.time,
            "time/overlap_share": overlap_s / step_s,
            "rollout/stale_share": sum(age > 0 for age in ages) / len(ages),
            "rollout/staleness": sum(ages) / len(ages),
            "rollout/staleness_max": float(max(ages)),
        }

    def cancel(self) -> None:
        """Cancel the episodes that run, and wait until they have ended."""
        self._signal.is_cancelled = True
        if self._stream is not None:
            self._stream.close()
        self._thread.shutdown(wait=True)

    def close(self) -> None:
        """Cancel the episodes that run, and close the environments."""
        self.cancel()
        self._player.close()
