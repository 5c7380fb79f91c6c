"""Progress of a run: bars in the terminal, lines now and then in a file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Final

from agentgyms.data.progress_bar import ProgressBar, working
from harness.rollouts.collect_options import OnFinish
from harness.runs.answer_pace import AnswerPace
from harness.runs.time_left import TRAIN, TimeLeft
from harness.types.rollout import Rollout

_BAR: Final = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit}{postfix}"
_LINE: Final = "{desc}: {n_fmt} of {total_fmt} {unit}, {elapsed} so far{postfix}"

_log = logging.getLogger(__name__)

Advance = Callable[[str], None]
"""Is called after each piece of work with a text to show beside it, "" for none."""


class Progress:
    """Shows the progress of a run, with one estimate of the time that is left.

    `done` counts the steps before this start, `episodes` about those of a step. Processes after the
    first do not show it (`is_shown`).
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
        """Keep the totals; the bars appear with the work."""
        self._steps, self._done, self._episodes = steps, done, episodes
        self._time_left = time_left or TimeLeft({})
        self._is_shown, self._is_hinted = is_shown, False

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
        """Show work other than training steps.

        Yields a function to call after each of `total` pieces.

        `kind` is one of `harness.runs.time_left`, `unit` the pieces' name in the plural; the bar's
        title is the kind unless another is given.
        """
        self._time_left.start()
        with self._make(title or kind, total, unit) as bar:

            def advance(shown: str = "") -> None:
                self._time_left.spent(kind)
                bar.set_postfix_str(self._beside(shown), refresh=False)
                bar.update()

            yield advance

    def _beside(self, shown: str) -> str:
        return ", ".join(filter(None, [shown, self._time_left.text()]))

    @cached_property
    def _bar(self) -> ProgressBar:
        """The bar of training steps."""
        return self._make(TRAIN, self._steps, "steps", self._done)

    @contextmanager
    def episodes(self, pace: AnswerPace) -> Iterator[OnFinish]:
        """Show the episodes of a step; the yielded function is called with each finished one.

        `pace` counts their answers. If most tokens were cut off, the log has a hint, once.
        """
        solved = ended = 0

        def beside() -> str:
            success = f"success={solved / ended:.2f}" if ended else ""
            return self._beside(", ".join(filter(None, [success, pace.text()])))

        self._time_left.start()
        self._bar.refresh()
        pace.begin()
        with self._make("collect", self._episodes, "episodes", beside=beside) as episodes:

            def count(rollout: Rollout) -> None:
                nonlocal solved, ended
                solved, ended = solved + rollout.success, ended + 1
                for turn in rollout.turns:
                    pace.add(turn.completion)
                episodes.update()

            yield count
        hint = None if self._is_hinted or not self._is_shown else pace.hint("agent.max_tokens")
        if hint is not None:
            self._is_hinted = True
            _log.warning("%s", hint)

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
        beside = self._beside(", ".join(f"{name}={value}" for name, value in shown.items()))
        self._bar.set_postfix_str(beside, refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Close the bar."""
        self._bar.close()
