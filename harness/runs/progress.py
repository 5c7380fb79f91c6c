"""Progress of a run: the time that is left, bars in the terminal, lines now and then in a file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from agentgyms.data.progress_bar import ProgressBar, working
from harness.runs.answer_pace import AnswerPace
from harness.types.rollout import OnFinish, Rollout

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
        known = [k for k in list(self._measured) if k != EXPERT and k in self._work]
        expected = sum(self._measured[kind][1] * self._work[kind].cost for kind in known)
        if not expected:
            return 1.0 if self._is_expected else None
        return sum(self._measured[kind][0] for kind in known) / expected

    def text(self) -> str:
        """Return the estimate in words, such as `about 7 min left`; "" if none is known or left."""
        return in_words(self.seconds())


def in_words(seconds: float | None) -> str:
    """Return seconds that are left in words; "" if they are unknown or none."""
    return f"about {duration(seconds)} left" if seconds else ""


def most_in_words(pace: AnswerPace, answers: int) -> str:
    """Return the most seconds that answers still take in words; "" if they are unknown."""
    seconds = pace.most_seconds(answers) if answers else None
    return f"played in at most {duration(seconds)}" if seconds else ""


def duration(seconds: float) -> str:
    """Return a rounded duration, such as `40 s`, `7 min` or `3.5 h`."""
    if seconds < 55:
        return f"{max(5 * round(seconds / 5), 5)} s"
    if seconds < 90 * 60:
        return f"{max(round(seconds / 60), 1)} min"
    return f"{seconds / 3600:.1f} h"


_BAR: Final = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit} [{elapsed}{postfix}]"
_LINE: Final = "{desc}: {n_fmt} of {total_fmt} {unit}, {elapsed} so far{postfix}"

_log = logging.getLogger(__name__)

Advance = Callable[[str], None]
"""Is called after each piece of work with a text to show beside it, "" for none."""

OnLearned = Callable[[float, int], None]
"""Is called after each micro-batch with the rows that it is worth, and its tokens."""


class Progress:
    """Shows the progress of a run, with one estimate of the time that is left.

    `done` counts the steps before this start, `episodes` about those of a step. Only the first
    process shows it.
    """

    def __init__(
        self,
        steps: int,
        done: int,
        episodes: int,
        time_left: TimeLeft | None = None,
        *,
        is_shown: bool = True,
    ) -> None:
        self._steps, self._done, self._episodes = steps, done, episodes
        self._time_left = time_left or TimeLeft({})
        self._is_shown, self._is_hinted = is_shown, False
        self._figures = ""  # of the last step

    def _make(
        self,
        title: str,
        total: int,
        unit: str,
        done: int = 0,
        beside: Callable[[], str] | None = None,
    ) -> ProgressBar:
        return ProgressBar(
            total=total,
            initial=done,
            desc=title,
            unit=unit,
            disable=not self._is_shown,
            leave=title == TRAIN,
            dynamic_ncols=True,
            bar_format=_BAR,
            line=_LINE,
            beside=beside,
            beats=title != TRAIN,  # what a step does has a bar of its own
        )

    @contextmanager
    def phase(self, kind: str, total: int, unit: str, title: str = "") -> Iterator[Advance]:
        """Show work other than steps; yield a function to call after each of `total` pieces.

        `kind` is one of `TRAIN` and its like, `unit` the name of the pieces in the plural.
        """
        self._time_left.start()
        with self._make(title or kind, total, unit) as bar:

            def advance(shown: str = "") -> None:
                self._time_left.spent(kind)
                bar.set_postfix_str(self._beside(shown), refresh=False)
                bar.update()

            yield advance

    def _beside(self, *shown: str) -> str:
        return ", ".join(filter(None, [*shown, self._time_left.text()]))

    @cached_property
    def _bar(self) -> ProgressBar:
        def beside() -> str:
            return self._beside(self._figures)

        return self._make(TRAIN, self._steps, "steps", self._done, beside)

    @contextmanager
    def episodes(
        self, pace: AnswerPace, turns: int = 0, total: int | None = None, title: str = "collect"
    ) -> Iterator[OnFinish]:
        """Show episodes of at most `turns` turns, of a step or, with a `total`, of an evaluation.

        The yielded function is called with each finished one. `pace` counts their answers. If most
        tokens were cut off, the log has a hint, once.
        """
        solved = ended = 0
        number = self._episodes if total is None else total

        def beside() -> str:
            success = f"success={solved / ended:.2f}" if ended else ""
            return self._beside(success, pace.text(), most_in_words(pace, number * turns))

        self._time_left.start()
        if total is None:
            self._bar.refresh()
        pace.begin()
        with self._make(title, number, "episodes", beside=beside) as episodes:

            def count(rollout: Rollout) -> None:
                nonlocal solved, ended
                solved, ended = solved + rollout.success, ended + 1
                for turn in rollout.turns:
                    pace.add(turn.completion)
                if total is not None:
                    self._time_left.spent(EVALUATE)
                episodes.update()

            yield count
        hint = None if self._is_hinted or not self._is_shown else pace.hint("agent.max_tokens")
        if hint is not None:
            self._is_hinted = True
            _log.warning("%s", hint)

    @contextmanager
    def learning(
        self, rows: int, clock: Callable[[], float] = time.monotonic
    ) -> Iterator[OnLearned]:
        """Show an update; the yielded function is called with rows that are done, and tokens."""
        began, spent, done, tokens = clock(), 0.0, 0.0, 0  # as of the last call

        def beside() -> str:
            if not done:
                return self._beside()
            rest = spent * rows / done - (clock() - began)
            own = f"learnt in about {duration(rest)}" if rest > 0 else ""
            return self._beside(f"{tokens / spent:.3g} tokens/s", own)

        with self._make("learn", rows, "rows", beside=beside) as bar:

            def advance(more: float, passed: int) -> None:
                nonlocal spent, done, tokens
                spent = max(clock() - began, 1e-9)
                done, tokens = min(rows, done + more), tokens + passed
                bar.update(round(done) - bar.n)

            yield advance

    @contextmanager
    def working(self, title: str) -> Iterator[None]:
        """Show work of unknown length."""
        with working(title, is_shown=self._is_shown):
            yield

    def step(self, figures: Mapping[str, float]) -> None:
        """Show a finished step and its figures."""
        shown = {
            "success": f"{figures['rollout/success']:.2f}",
            "score": f"{figures['rollout/score']:.2f}",
            "turns": f"{figures['rollout/turns']:.1f}",
            "tokens/s": f"{figures.get('time/collect_tokens_per_s', 0.0):.0f}",
        }
        self._time_left.spent(TRAIN)
        self._figures = ", ".join(f"{name}={value}" for name, value in shown.items())
        self._bar.update()

    def close(self) -> None:
        """Close the bar."""
        self._bar.close()
