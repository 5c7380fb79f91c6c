"""Data sets that benchmarks need: fetched, imported, verified and exported.

Takes the `DataSet` that an environment declares and a folder or an archive; returns the folder.
`datasets` has the operations, the other modules read, copy and download.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from agentgyms.data.datasets import DataSet, Status

__all__ = ["DataSet", "Status"]

__getattr__ = lazy_names(__name__, {"agentgyms.data.datasets": "DataSet Status"})
