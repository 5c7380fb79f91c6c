"""What to change when training cannot go on: no memory left, or numbers that are not finite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch

from harness.config import Config
from harness.errors import NotFinite, TrainingError

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
"""How messages of a plain `RuntimeError` begin to tell that memory is short."""


@contextmanager
def advising(config: Config, doing: str) -> Iterator[None]:
    """Turn a lack of memory, and numbers that are not finite, into advice.

    Args:
        config: Whose settings the advice names, with their values.
        doing: What is done meanwhile: `"collect"`, or something that learns.

    Raises:
        TrainingError: Memory is short, or a number is not finite.
    """
    try:
        yield
    except NotFinite as e:
        raise TrainingError(
            f"{e} (the weights are as they were before). Look at the rewards in metrics.jsonl, and "
            f"at {values(config, _NUMBERS)}"
        ) from e
    except (MemoryError, RuntimeError) as e:
        if not is_out_of_memory(e):
            raise
        said = (str(e).strip() or type(e).__name__).splitlines()[0]
        raise TrainingError(
            f"there is not enough memory to {doing} ({said:.200}): change one of "
            f"{values(config, _memory(config, doing))}"
        ) from e


def _memory(config: Config, doing: str) -> tuple[str, ...]:
    """Return the settings that decide how much memory something needs, best first."""
    own = config.rollout.backend == "hf"
    engine = _ENGINE if config.rollout.backend == "vllm" else ()
    if doing == "collect":
        return (*(_GENERATING if own else engine or ("rollout.max_live",)), "rollout.max_live")
    return (*_LEARNING, *engine)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory is short, of a GPU or of the machine."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(said in text for said in _NO_MEMORY)


def values(config: Config, names: tuple[str, ...]) -> str:
    """Return settings with their values, such as `run.seed (now 0)`."""
    return ", ".join(f"{name} (now {_value(config, name)})" for name in dict.fromkeys(names))


def _value(config: Config, name: str) -> Any:
    value: Any = config
    for part in name.split("."):
        value = value.get(part, "unset") if isinstance(value, dict) else getattr(value, part)
    return "unset" if value is None else value


def check_finite(what: str, of_turns: Iterable[Any]) -> None:
    """Raise `NotFinite` unless all numbers are finite.

    Args:
        what: Their name, for the message.
        of_turns: Of each turn a number, or those of its tokens.
    """
    for row, numbers in enumerate(of_turns):
        broken = np.extract(~np.isfinite(numbers), numbers)
        if broken.size:
            raise NotFinite(f"{what} of turn {row} of this step is {broken[0]}")
