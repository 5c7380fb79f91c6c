"""Results read back: evaluations, training runs, and the numbers that papers report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.reporting.results.loading import LoadedEvaluation, load, load_all

__all__ = ["LoadedEvaluation", "load", "load_all"]

__getattr__ = lazy_names(__name__, {"harness.reporting.results.loading": " ".join(__all__)})
