"""The machine that a run is planned for, and the allocations of the run on it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Final, Literal

import torch

from harness.config import Config
from harness.model.weights.usual_precision import usual_precision

Phase = Literal["always", "playing", "learning", "forward pass", "output layer", "backward pass"]
"""When memory is allocated. "learning" has the three that follow: the forward and backward passes
of the layers, and both passes of the output layer between them."""

PASSES: Final[tuple[Phase, ...]] = ("forward pass", "output layer", "backward pass")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a run is planned for."""

    kind: str  # `cuda` or `cpu`
    processes: int = 1  # one for each device
    memory: int | None = None  # bytes of a device, or of main memory; None: unknown

    @classmethod
    def of(cls, config: Config, gpus: int | None = None, gpu_memory: int | None = None) -> Machine:
        """Return this machine, or a machine with `gpus` GPUs of `gpu_memory` bytes."""
        if gpu_memory is not None:
            return cls("cuda", gpus or int(os.environ.get("WORLD_SIZE", "1")), gpu_memory)
        here = torch.cuda.is_available()
        wanted = config.policy.device or ("cuda" if here or gpus else "cpu")
        if wanted == "cpu" and not gpus:
            return cls("cpu", int(os.environ.get("WORLD_SIZE", "1")), _main_memory())
        memory = torch.cuda.get_device_properties(0).total_memory if here else None
        return cls("cuda", gpus or int(os.environ.get("WORLD_SIZE", "1")), memory)


def _main_memory() -> int | None:
    if sys.platform == "win32":
        return None
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that is allocated on one device."""

    name: str
    size: float  # bytes
    when: Phase = "always"


@dataclass(frozen=True, slots=True)
class Precision:
    """Precision of a run, in bytes of a number."""

    weight: int  # bytes of a weight
    compute: int  # bytes of an activation

    @classmethod
    def of(cls, config: Config, machine: Machine, parameters: int) -> Precision:
        """Return the precision of a model of so many parameters in a run on a machine."""
        return {"float32": cls(4, 4), "mixed": cls(4, 2), "bfloat16": cls(2, 2)}[
            precision_name(config, machine, parameters)
        ]


def precision_name(config: Config, machine: Machine, parameters: int) -> str:
    """Return the name of a model's precision: that of the settings, or the machine's usual one."""
    usual = usual_precision(machine.kind, parameters, machine.processes)
    return config.policy.precision or usual
