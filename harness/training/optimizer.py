"""Optimizers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from harness.config import OptimizerConfig
from harness.distributed.fsdp import is_sharded
from harness.preflight.checks import check_optimizer

_MOMENTS: Final = ("exp_avg", "exp_avg_sq")


class OffloadedAdamW(torch.optim.AdamW):
    """AdamW with moments in the CPU's memory, which visit the device for their weight's update."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take a step; `closure` is not supported."""
        groups = self.param_groups
        try:
            for group in groups:
                for parameter in group["params"]:
                    self._move(parameter, parameter.device)
                    # One parameter a step: AdamW then holds one parameter's moments here.
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
    model: torch.nn.Module, config: OptimizerConfig, *, offload: bool = False
) -> torch.optim.Optimizer:
    """Return the optimizer of a model's trainable parameters; `ConfigError` if Muon cannot run."""
    trained = [p for p in model.parameters() if p.requires_grad]
    if config.name == "adamw":
        return _adamw(trained, config, offload=offload)
    check_optimizer(config, sharded=is_sharded(trained))
    embeddings = [one for one in model.modules() if isinstance(one, torch.nn.Embedding)]
    layers = [*embeddings, model.get_output_embeddings()]  # type: ignore[operator]
    apart = {id(layer.weight) for layer in layers if layer is not None}
    matrices: list[Any] = []
    others: list[Any] = []
    for p in trained:
        (matrices if p.ndim == _MATRIX and id(p) not in apart else others).append(p)
    return MuonWithAdamW(matrices, others, config)


_MATRIX: Final = 2
"""Dimensions of a weight that Muon takes."""


def _adamw(
    trained: Sequence[Any], config: OptimizerConfig, *, offload: bool = False
) -> torch.optim.AdamW:
    """Return fused AdamW, which needs no temporary tensors of a parameter's size."""
    has_kernel = bool(trained) and all(p.device.type in ("cpu", "cuda") for p in trained)
    return (OffloadedAdamW if offload else torch.optim.AdamW)(
        trained,
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        betas=config.betas,
        fused=has_kernel or None,
    )


class MuonWithAdamW(torch.optim.Optimizer):
    """Muon on matrices and AdamW on the other parameters, as one optimizer.

    The steps of matrices are scaled to the root mean square of AdamW's (Liu et al. 2025,
    arXiv:2502.16982, Eq. 4): one learning rate and weight decay serve both. Muon, with momentum
    0.95: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
    """

    def __init__(
        self, matrices: Sequence[Any], others: Sequence[Any], config: OptimizerConfig
    ) -> None:
        self._parts: list[torch.optim.Optimizer] = []
        if matrices:
            muon = torch.optim.Muon(
                matrices,
                lr=config.learning_rate,
                weight_decay=config.weight_decay,
                adjust_lr_fn="match_rms_adamw",
            )
            self._parts.append(muon)
        if others:
            self._parts.append(_adamw(others, config))
        super().__init__([part.param_groups[0] for part in self._parts], {})
        self._share_state()

    def _share_state(self) -> None:
        """Let both optimizers work on the groups and the state of this one."""
        for part, group in zip(self._parts, self.param_groups, strict=True):
            part.param_groups, part.state = [group], self.state

    def step(self, closure: None = None) -> None:  # type: ignore[override]  # no closure
        """Take a step of both optimizers."""
        for part in self._parts:
            part.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        super().load_state_dict(state_dict)
        self._share_state()
