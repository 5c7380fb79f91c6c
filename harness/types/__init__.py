"""Types that rooms of the harness exchange; imports nothing of the harness."""

from __future__ import annotations

from harness.types.errors import ConfigError, HarnessError, TrainingError
from harness.types.messages import Content, Message
from harness.types.rollout import Completion, Rollout, StopReason, Turn, Usage
from harness.types.task_draws import TaskDraw, TaskSampler

__all__ = [
    "Completion",
    "ConfigError",
    "Content",
    "HarnessError",
    "Message",
    "Rollout",
    "StopReason",
    "TaskDraw",
    "TaskSampler",
    "TrainingError",
    "Turn",
    "Usage",
]
