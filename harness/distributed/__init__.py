"""Processes that train together.

Takes tensors and objects and exchanges them between the processes (`process_group`, `joining`),
counts events of all of them (`shared_count`), shards models (`fsdp`), stops all processes at the
end of a step (`signals`), and ends those that `torchrun` left behind (`parent`).
A single process needs none.
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
