"""Evaluation of models on environments: every task once per seed, recorded, resumable, repeatable.

The command and the files of an evaluation's folder are in docs/evaluation.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.evaluation.running import resume, run

__all__ = ["resume", "run"]

__getattr__ = lazy_names(__name__, {"harness.evaluation.running": "resume run"})
