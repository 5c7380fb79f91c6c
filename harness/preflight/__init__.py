"""Preflight: `defaults` completes a run's settings, `checks` tests them, `planning` plans it."""

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
