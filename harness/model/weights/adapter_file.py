"""The file of a model's low-rank adapters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import torch

from agentgyms.core.errors import path_end
from harness.model.weights.strict_load import check_finite
from harness.model.weights.tensor_files import RefusedWeightsError, tensors_in, twice
from harness.types.errors import ConfigError

WEIGHTS: Final = "adapter_model.safetensors"
_A_OR_B: Final = re.compile(r"\.lora_[AB]\.weight$")


def is_own(name: str) -> bool:
    """Return whether a name is that of an adapter's A or B."""
    return _A_OR_B.search(name) is not None


def read(folder: Path) -> dict[str, torch.Tensor]:
    """Return a folder's adapters by their names in a model; peft would misplace or drop others."""
    from safetensors.torch import load_file

    path = folder / WEIGHTS
    if not path.is_file():
        raise ConfigError(
            f"{folder} has no {WEIGHTS}, the only file that adapters are read from: save them with "
            "safe_serialization=True"
        )
    kept: dict[str, torch.Tensor] = {}
    try:
        tensors = tensors_in(path)
        for key, weight in load_file(path).items():
            name = key.removeprefix("base_model.model.")
            if not is_own(name):
                raise RefusedWeightsError(
                    f"{key!r:.110} is no A or B of an adapter: train adapters without DoRA, biases "
                    "and modules_to_save, or give the merged model"
                )
            if name in kept:
                raise twice(name, tensors[key], key, tensors[key])
            if not tensors[key].is_float:
                raise RefusedWeightsError(f"{key:.110} is of type {tensors[key].kind}")
            check_finite(weight, f"{key:.110}")
            kept[name] = weight
    except RefusedWeightsError as e:
        raise ConfigError(f"{path_end(path, 80)} cannot be used: {e}") from e
    return kept
