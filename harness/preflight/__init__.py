"""Preflight: checks and plans a run before it starts.

Takes a configuration. Returns it with all defaults written out (`defaults`), raises ConfigError if
the run would fail later (`checks`), or returns the memory, disk and packages that the run needs
(`planning`, `memory`, `missing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.preflight.checks import check
    from harness.preflight.planning import plan

__all__ = ["check", "plan"]

__getattr__ = lazy_names(
    __name__, {"harness.preflight.checks": "check", "harness.preflight.planning": "plan"}
)
