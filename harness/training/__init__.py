"""Training: runs the steps of a training run.

Takes a resolved configuration and a run's folder; returns a trained policy, its checkpoints and its
metrics. `setup` starts or resumes a run, `trainer` runs its steps, `learner` updates the policy,
`sft` is the warm start, `trl` has TRL's trainer with this harness's credit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.distributed.process_group import torchrun_processes
    from harness.training.setup import resume, start
    from harness.training.sft import fine_tune
    from harness.training.trainer import Trainer

__all__ = ["Trainer", "fine_tune", "resume", "start", "torchrun_processes"]

__getattr__ = lazy_names(
    __name__,
    {
        "harness.training.trainer": "Trainer",
        "harness.training.sft": "fine_tune",
        "harness.training.setup": "resume start",
        "harness.distributed.process_group": "torchrun_processes",
    },
)
