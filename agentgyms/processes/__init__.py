"""Child processes: engines that leak memory, crash or need other packages.

Takes a command and requests; returns JSON replies, or says that the child was lost (`child`).
`workers` counts the children of this process for the metrics of servers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from agentgyms.processes.child import Child

__all__ = ["Child"]

__getattr__ = lazy_names(__name__, {"agentgyms.processes.child": "Child"})
