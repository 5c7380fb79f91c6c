"""The contract: what every environment offers, and the types that it is made of.

Takes an environment's `load_tasks`, `begin` and `act`; returns Gymnasium's `reset` and `step` with
seeds, turn limits, `info`, state keys, snapshots and forks (`env`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from agentgyms.core.env import TextEnv
    from agentgyms.core.experts import Expert
    from agentgyms.core.outcome import Feedback, Outcome
    from agentgyms.core.spaces import UnicodeText
    from agentgyms.core.tasks import Task, TaskSet

__all__ = ["Expert", "Feedback", "Outcome", "Task", "TaskSet", "TextEnv", "UnicodeText"]

__getattr__ = lazy_names(
    __name__,
    {
        "agentgyms.core.experts": "Expert",
        "agentgyms.core.outcome": "Feedback Outcome",
        "agentgyms.core.tasks": "Task TaskSet",
        "agentgyms.core.env": "TextEnv",
        "agentgyms.core.spaces": "UnicodeText",
    },
)
