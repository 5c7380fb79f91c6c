"""Hints on failures: which settings to change if memory is short or a number is not finite.

`phase` adds them to a method of the trainer, and measures it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import numpy as np
import torch

from harness.config import Config
from harness.runs.timers import PhaseTimer
from harness.types.errors import NotFinite, TrainingError

_LEARNING: Final = (
    "optimizer.micro_batch_tokens",
    "policy.gradient_checkpointing",
    "policy.lora.rank",
    "policy.precision",
    "agent.max_context",
)
_GENERATING: Final = ("rollout.max_batch", "agent.max_tokens", "agent.max_context")
_ENGINE: Final = ("rollout.engine.gpu_memory_utilization", "rollout.sleep")
_NUMBERS: Final = (
    "optimizer.learning_rate",
    "optimizer.warmup_steps",
    "optimizer.max_grad_norm",
    "method.reward_scale",
    "policy.precision",
)
_NO_MEMORY: Final = ("can't allocate memory", "not enough memory", "out of memory")
"""Parts of the messages of a `RuntimeError` that means that memory is short."""


@contextmanager
def with_hints(config: Config, doing: str) -> Iterator[None]:
    """Raise `TrainingError` with hints if memory is short or a number is not finite.

    The hints name settings with their values; `doing` (`"collect"` or another activity) selects
    them.
    """
    try:
        yield
    except NotFinite as e:
        raise TrainingError(
            f"{e} (the weights are as they were before). Check the rewards in metrics.jsonl, and "
            f"{values(config, _NUMBERS)}"
        ) from e
    except (MemoryError, RuntimeError) as e:
        if not is_out_of_memory(e):
            raise
        message = (str(e).strip() or type(e).__name__).splitlines()[0]
        raise TrainingError(
            f"there is not enough memory to {doing} ({message:.200}): change one of "
            f"{values(config, _memory(config, doing))}"
        ) from e


class _Measured(Protocol):
    config: Config
    phases: PhaseTimer


S = TypeVar("S", bound=_Measured)
P = ParamSpec("P")
T = TypeVar("T")


def phase(
    name: str, doing: str
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Measure each call of a method as a phase of the step, and add hints to its failures."""

    def decorate(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        def measured(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with self.phases(name), with_hints(self.config, doing):
                return method(self, *args, **kwargs)

        update_wrapper(measured, method)
        return measured

    return decorate


def _memory(config: Config, doing: str) -> tuple[str, ...]:
    """Return the settings that decide how much memory an activity needs, best first."""
    in_process = config.rollout.backend == "hf"
    engine = _ENGINE if config.rollout.backend == "vllm" else ()
    if doing == "collect":
        return (
            *(_GENERATING if in_process else engine or ("rollout.max_live",)),
            "rollout.max_live",
        )
    return (*_LEARNING, *engine)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory of the GPU or the machine is short."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(part in text for part in _NO_MEMORY)


def values(config: Config, names: tuple[str, ...]) -> str:
    """Return settings with their values, such as `run.seed (now 0)`."""
    return ", ".join(f"{name} (now {_value(config, name)})" for name in dict.fromkeys(names))


def _value(config: Config, name: str) -> Any:
    value: Any = config
    for part in name.split("."):
        value = value.get(part, "unset") if isinstance(value, dict) else getattr(value, part)
    return "unset" if value is None else value


def check_finite(what: str, turns: Iterable[Any]) -> None:
    """Raise `NotFinite` unless all numbers of all turns are finite.

    `what` names them in the message.
    """
    for row, numbers in enumerate(turns):
        broken = np.extract(~np.isfinite(numbers), numbers)
        if broken.size:
            raise NotFinite(f"{what} of turn {row} of this step is {broken[0]}")
