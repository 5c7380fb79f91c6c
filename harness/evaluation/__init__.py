"""Evaluation of models on environments: every task once per seed, recorded, resumable, repeatable.

    harness eval --env agentgyms/ALFWorld-v0 --agent react --model NAME --url http://127.0.0.1:8000/v1

A folder holds one evaluation:

    config.json       the resolved configuration
    started.json      the model, tasks, prompts and versions at the start; they may not change
    recordings.jsonl  every finished episode (`agentgyms replay` verifies them)
    result.json       every figure, counted from the recordings, and all that is needed to repeat it
    provenance.json   date, machine, duration, retries: what differs between two equal runs
    table.md page.html   written by `harness.reporting`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from harness.evaluation.running import resume, run

__all__ = ["resume", "run"]

__getattr__ = lazy_names(__name__, {"harness.evaluation.running": "resume run"})
