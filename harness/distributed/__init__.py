"""Processes that train together; a single process needs none.

`process_group` and `joining` connect them, `fsdp` shards models, `shared_count` counts events,
`signals` stops all at the end of a step, `parent` ends those that `torchrun` left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.distributed.process_group import SINGLE_PROCESS, ProcessGroup

__all__ = ["SINGLE_PROCESS", "ProcessGroup"]

__getattr__ = lazy_names(
    __name__, {"harness.distributed.process_group": "SINGLE_PROCESS ProcessGroup"}
)
