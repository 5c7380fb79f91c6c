"""Progress bars in the terminal: steps of the run, and episodes of the current step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tqdm import tqdm

from harness.rollouts.collect_options import OnFinish
from harness.types.rollout import Rollout


class Progress:
    """Progress bars; there are none if standard error is not a terminal.

    Args:
        steps: Number of steps of the whole run.
        done: Number of steps already done.
        episodes: Approximate number of episodes of a step.
    """

    def __init__(self, steps: int, done: int, episodes: int) -> None:
        """Keep the totals; the bars appear with the first step."""
        self._steps, self._done, self._episodes = steps, done, episodes

    @cached_property
    def _bar(self) -> tqdm[Any]:
        """The bar of steps; its clock starts with the first step."""
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
        """Show a bar of episodes; the yielded function is called with each finished rollout."""
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
        """Show a finished step and its figures."""
        shown = {
            "success": f"{figures['rollout/success']:.2f}",
            "score": f"{figures['rollout/score']:.2f}",
            "turns": f"{figures['rollout/turns']:.1f}",
            "tokens/s": f"{figures.get('time/collect_tokens_per_s', 0.0):.0f}",
        }
        self._bar.set_postfix(shown, refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Close the bar."""
        self._bar.close()
