"""Measures the phases of a run: seconds, memory and cost."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from harness.types.rollout import Rollout

if TYPE_CHECKING:
    import torch

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
        if self._is_gpu:
            self._reset_peaks()
        start = time.perf_counter()
        yield
        if self._is_gpu:
            self._read_peaks(name)
        spent = time.perf_counter() - start
        self._seconds[name] = self._seconds.get(name, 0.0) + spent

    @property
    def _is_gpu(self) -> bool:
        return self._device.type == "cuda"

    def _reset_peaks(self) -> None:
        import torch

        torch.cuda.synchronize(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)

    def _read_peaks(self, name: str) -> None:
        import torch

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
        figures |= memory | {"memory/peak_rss_gib": peak_rss()}
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


def peak_rss() -> float:
    """Return the peak memory of this process so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / _GIB


def models_cost(rollouts: Iterable[Rollout]) -> float:
    """Return the cost of the environments' models: the sum of `info["metrics"]["cost"]`.

    Only rollouts that were played to the end count; an unknown price counts as 0.
    """
    costs = (rollout.metrics.get("cost", 0.0) for rollout in rollouts)
    return math.fsum(cost for cost in costs if math.isfinite(cost))


def cost_so_far(records: Iterable[Mapping[str, float | None]]) -> float:
    """Return the cost of a run so far in US dollars, from the records of its metrics."""
    costs = [record.get("cost/so_far_usd") for record in records]
    return max((cost for cost in costs if cost is not None), default=0.0)
