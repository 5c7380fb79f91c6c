"""The work of a run and the time that it is expected to take, before any of it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.annotators import state_values
from harness.config import TINY_MODELS, Config
from harness.preflight.planning import max_turns, split_size
from harness.runs.progress import EVALUATE, EXPERT, TRAIN, WARM_START, TimeLeft, Work, duration
from harness.types.errors import ConfigError

_EXPERT_S: Final = 0.0011
"""Seconds of a turn of the expert, on two CPU cores with a tiny model: measured with `make train`.

With other models only the proportions of these times count.
"""
_WARM_S: Final = 0.0031
"""Time of a demonstration in the warm start."""
_LEARN_S: Final = 0.0036
"""Time of a turn in an update."""
_PLAY_S: Final = 0.0020
"""Time of a turn that the model plays in training."""
_EVALUATE_S: Final = 0.0034
"""Time of a turn in an evaluation, which plays fewer episodes at once."""
_HALF: Final = 0.5
"""Estimated share of the turn limit that episodes take."""
_UNKNOWN_TURNS: Final = 20
_UNKNOWN_TASKS: Final = 100


def most_turns(config: Config) -> int:
    """Return the turn limit of training episodes, 0 if it is unknown."""
    try:
        return max_turns(config)
    except ConfigError:
        return 0


def rest(config: Config, done: int, sizes: Mapping[str, int | None]) -> dict[str, Work]:
    """Return the work left after `done` steps, with their evaluation unless `done` is 0."""
    turns = max(1.0, _HALF * (most_turns(config) or _UNKNOWN_TURNS))
    warm = config.warmstart if not done else None
    episodes = config.rollout.tasks_per_step * config.rollout.group_size
    continued = state_values.wanted(config.method.annotators) * _HALF * turns
    play = _PLAY_S * config.rollout.is_live
    row = play * (1 + continued) + _LEARN_S * (config.optimizer.epochs or 1)
    work = {
        TRAIN: Work(config.run.steps - done, episodes * turns * row),
        EVALUATE: Work(_evaluated(config, done, sizes), turns * _EVALUATE_S),
    }
    if warm is not None and warm.episodes:
        work[EXPERT] = Work(warm.episodes, turns * _EXPERT_S)
        work[WARM_START] = Work(warm.steps, warm.batch_size * _WARM_S)
    return work


def _evaluated(config: Config, done: int, sizes: Mapping[str, int | None]) -> int:
    """Return how many tasks the evaluations that are left play."""
    own, total = config.eval, 0
    for step in range(done + 1 if done else 0, config.run.steps + 1):
        ends = step in (0, config.run.steps)
        if not ends and not (own.every and step % own.every == 0):
            continue
        for split in dict.fromkeys([str(own.split), *(own.final_splits if ends else ())]):
            size = sizes.get(split) or _UNKNOWN_TASKS
            total += min(size, own.count(split, final=ends) or size)
    return total


def time_left_of(config: Config, done: int) -> TimeLeft:
    """Return the estimate of the time that is left of a run after `done` steps."""
    splits = dict.fromkeys([str(config.eval.split), *config.eval.final_splits])
    work = rest(config, done, {split: split_size(config, split) for split in splits})
    return TimeLeft(work, is_expected=config.policy.model in TINY_MODELS)


def text(time_left: TimeLeft, done: int) -> str:
    """Return the line on a run's time that it begins with."""
    seconds = time_left.seconds()
    if seconds is None:
        known = "shown as soon as the model has begun to work"
    else:
        known = f"roughly {duration(seconds)} on two free CPU cores, corrected while it runs"
    begun = f"from step {done} on, " if done else ""
    return f"{'time':13}{begun}{known}"
