"""Live progress in the terminal: steps of the run, and episodes of the step under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tqdm import tqdm

from harness.collect import Progress as OnFinish
from harness.rollout import Rollout


class Progress:
    """Bars on the terminal; where standard error is none, there are none.

    Args:
        steps: Of the whole run.
        done: Of them, before now.
        episodes: Of a step, or so.
    """

    def __init__(self, steps: int, done: int, episodes: int) -> None:
        """Show nothing yet."""
        self._steps, self._done, self._episodes = steps, done, episodes

    @cached_property
    def _bar(self) -> tqdm[Any]:
        """The bar of steps, which tells the time that is left; it begins with the first one."""
        return tqdm(
            total=self._steps,
            initial=self._done,
            desc="train",
            unit="step",
            disable=None,
            dynamic_ncols=True,
        )

    @contextmanager
    def episodes(self) -> Iterator[OnFinish]:
        """Show a bar of episodes; what it yields is called with each one that ends."""
        solved = ended = 0
        self._bar.refresh()
        with tqdm(
            total=self._episodes, desc="collect", unit="episode", leave=False, disable=None
        ) as episodes:

            def count(rollout: Rollout) -> None:
                nonlocal solved, ended
                solved, ended = solved + rollout.success, ended + 1
                episodes.set_postfix_str(f"success={solved / ended:.2f}", refresh=False)
                episodes.update()

            yield count

    def step(self, figures: Mapping[str, float]) -> None:
        """Show what a step came to."""
        told = {
            "success": f"{figures['rollout/success']:.2f}",
            "score": f"{figures['rollout/score']:.2f}",
            "turns": f"{figures['rollout/turns']:.1f}",
            "tokens/s": f"{figures.get('time/collect_tokens_per_s', 0.0):.0f}",
        }
        self._bar.set_postfix(told, refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()
