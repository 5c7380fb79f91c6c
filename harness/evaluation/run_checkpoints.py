"""Which checkpoint of a training run an evaluation plays: the newest, the best, that of a step."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from harness.runs import checkpoints
from harness.runs.checkpoints import Checkpoint
from harness.types.errors import CheckpointError, ConfigError
from harness.types.json_files import read_object

NEWEST: Final = "newest"
BEST: Final = "best"


def choose(run: Path, wanted: str, config: Mapping[str, Any]) -> Checkpoint:
    """Return a checkpoint of a training run: `"newest"`, `"best"` or a number of steps.

    The best one has the best evaluation of the validation split by `checkpoint.best`, and is the
    earlier of equals. Raises `ConfigError` if it is missing or its description damaged.
    """
    found = _complete(run)
    if wanted == NEWEST:
        return found[-1]
    if wanted == BEST:
        return _best(run, found, config)
    by_step = {checkpoint.step: checkpoint for checkpoint in found}
    if int(wanted) not in by_step:
        raise ConfigError(
            f"model.checkpoint: {run} has no checkpoint of step {wanted}: expected one of "
            f"{_steps(found)} (checkpoint.keep says how many are kept)"
        )
    return by_step[int(wanted)]


def last_evaluated(run: Path, count: int) -> list[int]:
    """Return the steps of a run's newest `count` checkpoints with an evaluation, oldest first."""
    steps = [checkpoint.step for checkpoint in _complete(run) if checkpoint.validation]
    if len(steps) < count:
        raise ConfigError(
            f"model.checkpoint: {run} keeps {len(steps)} checkpoints with an evaluation, and "
            f"last-{count} needs {count}: train with checkpoint.keep={count} and checkpoint.every "
            "equal to eval.every, or ask for fewer"
        )
    return steps[-count:]


def _complete(run: Path) -> list[Checkpoint]:
    try:
        found = checkpoints.find_all(run)
    except CheckpointError as e:
        raise ConfigError(f"model.name: {e}") from e
    if not found:
        raise ConfigError(
            f"model.name: the training run {str(run)!r} has no complete checkpoint yet: wait "
            "for its first one (see checkpoint.every)"
        )
    return found


def _best(run: Path, found: Sequence[Checkpoint], config: Mapping[str, Any]) -> Checkpoint:
    """Return the best of the kept checkpoints; warn if a better evaluation's was not kept."""
    figure = str(config.get("checkpoint", {}).get("best", "success"))
    ranked = checkpoints.ranking(found, figure)
    if not ranked:
        raise ConfigError(
            f"model.checkpoint: no checkpoint of {run} has an evaluation, so none is the best: "
            f"expected a step, one of {_steps(found)}, or a run whose checkpoint.every is a "
            "multiple of eval.every"
        )
    split = str(config.get("eval", {}).get("split"))
    files = (run / "evaluations").glob("step-*.json")
    better = [
        int(evaluation["step"])
        for evaluation in (read_object(file, ConfigError) for file in files)
        if evaluation.get("split") == split
        and float(evaluation.get(figure, 0.0)) > ranked[0].validation[figure]
    ]
    if better:
        logging.getLogger(__name__).warning(
            "%s was better at the steps %s, whose checkpoints were not kept: step %d is taken, the "
            "best of those there are (see checkpoint.keep_best, checkpoint.every)",
            run,
            ", ".join(map(str, sorted(better))),
            ranked[0].step,
        )
    return ranked[0]


def _steps(found: Sequence[Checkpoint]) -> str:
    return ", ".join(str(checkpoint.step) for checkpoint in found)
