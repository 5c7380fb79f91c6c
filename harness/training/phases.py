"""The phases of a run: their seconds, memory and cost, and hints where one fails."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

import numpy as np
import torch

from harness.config import Config
from harness.types.errors import NotFinite, TrainingError

_GIB: Final = 2**30
NO_TOKENS: Final[Mapping[str, int]] = {}


class PhaseTimer:
    """Measures time, memory and cost of each phase of a run.

    The end of a phase waits for the GPU, so that no work is counted in the next phase.
    `price_per_hour` is that of all machines of the run, and `spent` the cost of a resumed run so
    far, in US dollars.
    """

    def __init__(
        self, device: torch.device, price_per_hour: float | None = None, spent: float = 0.0
    ) -> None:
        self._device, self._price, self._spent = device, price_per_hour, spent
        self._seconds: dict[str, float] = {}
        self._memory: dict[str, float] = {}
        self._has_cost = price_per_hour is not None or spent > 0

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Measure a phase; phases of one name are summed."""
        is_gpu = self._device.type == "cuda"
        if is_gpu:
            torch.cuda.synchronize(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
        start = time.perf_counter()
        yield
        if is_gpu:
            self._read_peaks(name)
        spent = time.perf_counter() - start
        self._seconds[name] = self._seconds.get(name, 0.0) + spent

    def _read_peaks(self, name: str) -> None:
        torch.cuda.synchronize(self._device)
        peaks = {
            "allocated": torch.cuda.max_memory_allocated(self._device),
            "reserved": torch.cuda.max_memory_reserved(self._device),
        }
        for kind, size in peaks.items():
            figure = f"memory/{name}_{kind}_gib"
            self._memory[figure] = max(self._memory.get(figure, 0.0), size / _GIB)

    def take(
        self, tokens: Mapping[str, int] = NO_TOKENS, models_usd: float = 0.0
    ) -> dict[str, float]:
        """Return the metrics of all phases since the last call, and reset them.

        `tokens` are counts by phase; `models_usd` is the cost of the environments' models, nan if
        unknown. The metrics under `time/`, `memory/` and `cost/` differ from run to run.
        """
        seconds, self._seconds = self._seconds, {}
        memory, self._memory = self._memory, {}
        total = sum(seconds.values())
        figures = {f"time/{name}_s": spent for name, spent in seconds.items()}
        if len(seconds) > 1:
            figures |= {f"time/{name}_share": spent / total for name, spent in seconds.items()}
            figures["time/step_s"] = total
        for name, count in tokens.items():
            if seconds.get(name):
                figures[f"time/{name}_tokens_per_s"] = count / seconds[name]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # in KiB, on macOS in bytes
        peak_gib = peak * (1 if sys.platform == "darwin" else 1024) / _GIB
        figures |= memory | {"memory/peak_rss_gib": peak_gib}
        return figures | self._cost(seconds, models_usd)

    def _cost(self, seconds: Mapping[str, float], models_usd: float) -> dict[str, float]:
        figures: dict[str, float] = {}
        if self._price is not None:
            price = self._price / 3600
            figures = {f"cost/{name}_usd": spent * price for name, spent in seconds.items()}
        if models_usd > 0:
            figures["cost/models_usd"] = models_usd
        self._spent += sum(figures.values())
        self._has_cost |= bool(figures)
        return figures | ({"cost/so_far_usd": self._spent} if self._has_cost else {})


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
    """Raise `TrainingError` with hints at settings if memory is short or a number is not finite."""
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
    engine = _ENGINE if config.rollout.backend == "vllm" else ()
    if doing == "collect":
        in_process = config.rollout.backend == "hf"
        return (*(_GENERATING if in_process else engine), "rollout.max_live")
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
    """Raise `NotFinite`, which names `what`, unless all numbers of all turns are finite."""
    for row, numbers in enumerate(turns):
        broken = np.extract(~np.isfinite(numbers), numbers)
        if broken.size:
            raise NotFinite(f"{what} of turn {row} of this step is {broken[0]}")
