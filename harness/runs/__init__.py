"""Run folders: checkpoints, metrics, progress and provenance.

Takes the state and the metrics of a run, and writes them so that an interruption loses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.runs.checkpoints import Checkpoint
    from harness.runs.metrics import MetricsLog
    from harness.runs.runfolder import RunFolder

__all__ = ["Checkpoint", "MetricsLog", "RunFolder"]

__getattr__ = lazy_names(
    __name__,
    {
        "harness.runs.checkpoints": "Checkpoint",
        "harness.runs.metrics": "MetricsLog",
        "harness.runs.runfolder": "RunFolder",
    },
)
