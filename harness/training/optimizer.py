"""AdamW and its learning-rate schedule, for all trained models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import torch

from harness.config import OptimizerConfig

_MOMENTS: Final = ("exp_avg", "exp_avg_sq")


class OffloadedAdamW(torch.optim.AdamW):
    """AdamW whose moments lie in the CPU's memory.

    While a weight is updated, its moments are on its device, so the update is that of AdamW to the
    bit.
    """

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take a step.

        Args:
            closure: Not supported; None.
        """
        groups = self.param_groups
        try:
            for group in groups:
                for parameter in group["params"]:
                    self._move(parameter, parameter.device)
                    self.param_groups = [{**group, "params": [parameter]}]
                    super().step()
                    self._move(parameter, torch.device("cpu"))
        finally:
            self.param_groups = groups

    def load_state_dict(self, state_dict: Any) -> None:
        """Load a state, also one of AdamW; moments go nowhere but to the CPU."""
        kept = state_dict["state"]
        rest = {
            number: {name: value for name, value in own.items() if name not in _MOMENTS}
            for number, own in kept.items()
        }
        super().load_state_dict({**state_dict, "state": rest})
        numbers = [i for group in state_dict["param_groups"] for i in group["params"]]
        parameters = [p for group in self.param_groups for p in group["params"]]
        for number, parameter in zip(numbers, parameters, strict=True):
            for name in kept.get(number, {}).keys() & set(_MOMENTS):
                self.state[parameter][name] = kept[number][name].to("cpu")

    def _move(self, parameter: Any, device: torch.device) -> None:
        state = self.state.get(parameter, {})
        for name in _MOMENTS:
            if name in state:
                state[name] = state[name].to(device)


def make_optimizer(
    parameters: Iterable[Any], config: OptimizerConfig, *, offload: bool = False
) -> torch.optim.AdamW:
    """Return AdamW over the trainable parameters; on a GPU it is one kernel for all of them.

    Args:
        parameters: Those of a model.
        config: Learning rate, betas and weight decay.
        offload: Its moments lie in the CPU's memory, and a kernel updates one weight.
    """
    trained = [p for p in parameters if p.requires_grad]
    on_gpu = bool(trained) and all(p.device.type == "cuda" for p in trained)
    return (OffloadedAdamW if offload else torch.optim.AdamW)(
        trained,
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        betas=config.betas,
        fused=on_gpu or None,
    )


def learning_rate(config: OptimizerConfig, step: int, steps: int) -> float:
    """Return the learning rate of a training step.

    It rises linearly over `warmup_steps`, then falls to `final_share` of its peak at the last step.

    Args:
        config: Peak, schedule and warm-up.
        step: Number of the step, from 0.
        steps: Number of steps of the run.
    """
    rise = (step + 1) / max(1, config.warmup_steps)
    left = 1.0 - _progress(step, config.warmup_steps, steps)
    falls = {"constant": 1.0, "linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2}
    share = config.final_share + (1 - config.final_share) * falls[config.schedule]
    return config.learning_rate * min(1.0, rise, share)


def _progress(step: int, warmup: int, steps: int) -> float:
    """Return the completed share of the steps after the warm-up, in [0, 1]."""
    return min(1.0, max(0.0, (step + 1 - warmup) / max(1, steps - warmup)))


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of the optimizer."""
    for group in optimizer.param_groups:
        group["lr"] = rate
