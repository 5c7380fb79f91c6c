"""An estimate of the time that the rest of a run takes: warm start, training and evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

EXPERT, WARM_START, TRAIN, EVALUATE = "expert episodes", "warm start", "train", "evaluate"
"""The kinds of work; their pieces are episodes, optimizer steps, training steps and episodes."""


@dataclass(frozen=True, slots=True)
class Work:
    """The pieces of one kind of work."""

    pieces: int  # left to do
    cost: float  # expected seconds of a piece; later only proportions count


class TimeLeft:
    """Estimates the time of the remaining work, by kind.

    A kind that has begun takes its measured time. The others take their expected time, times the
    ratio of measured to expected time of the begun ones. `is_expected` says whether the expected
    seconds hold for this model before any is measured.
    """

    def __init__(
        self,
        work: Mapping[str, Work],
        *,
        is_expected: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._work, self._is_expected, self._clock = dict(work), is_expected, clock
        self._measured: dict[str, tuple[float, int]] = {}
        self._since = clock()

    def start(self) -> None:
        """Leave out the time since the last piece: it was none of the work."""
        self._since = self._clock()

    def spent(self, kind: str) -> None:
        """Count a piece that has ended, with the time since the one before it."""
        now = self._clock()
        seconds, pieces = self._measured.get(kind, (0.0, 0))
        self._measured[kind] = seconds + now - self._since, pieces + 1
        self._since = now
        if kind in self._work:
            work = self._work[kind]
            self._work[kind] = replace(work, pieces=max(0, work.pieces - 1))

    def seconds(self) -> float | None:
        """Return the seconds that are left; None while nothing is known."""
        pace = self._pace()
        total = 0.0
        for kind, work in self._work.items():
            seconds, pieces = self._measured.get(kind, (0.0, 0))
            if pieces:
                total += work.pieces * seconds / pieces
            elif work.pieces and pace is None and kind != EXPERT:
                return None
            else:
                total += work.pieces * work.cost * (pace or 1.0)
        return total

    def _pace(self) -> float | None:
        """Return measured over expected seconds of the model's work so far; None if unknown."""
        known = [k for k in self._measured if k != EXPERT and k in self._work]
        expected = sum(self._measured[kind][1] * self._work[kind].cost for kind in known)
        if not expected:
            return 1.0 if self._is_expected else None
        return sum(self._measured[kind][0] for kind in known) / expected

    def text(self) -> str:
        """Return the estimate in words, such as `about 7 min left`; "" if none is known or left."""
        return text(self.seconds())


def text(seconds: float | None) -> str:
    """Return seconds that are left in words; "" if they are unknown or none."""
    return f"about {duration(seconds)} left" if seconds else ""


def duration(seconds: float) -> str:
    """Return a rounded duration, such as `40 s`, `7 min` or `3.5 h`."""
    if seconds < 55:
        return f"{max(5 * round(seconds / 5), 5)} s"
    if seconds < 90 * 60:
        return f"{max(round(seconds / 60), 1)} min"
    return f"{seconds / 3600:.1f} h"
