"""Runs an evaluation and writes its table and its page into its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentgyms.data import writing
from harness.config import EvaluationConfig
from harness.evaluation import running
from harness.reporting.evaluation_page import page
from harness.reporting.results import loading
from harness.reporting.tables import details

TABLE: Final = "table.md"
PAGE: Final = "page.html"


def run(config: EvaluationConfig) -> Path:
    """Run a new evaluation and return its folder; see `harness.evaluation.running.run`."""
    return running.run(config, write_report)


def resume(folder: str | Path, config: EvaluationConfig | None = None) -> Path:
    """Resume an evaluation and return its folder; see `harness.evaluation.running.resume`."""
    return running.resume(folder, config, write_report)


def write_report(folder: Path) -> None:
    """Write `table.md` and `page.html` from the `result.json` and the recordings of a folder."""
    evaluated = loading.load(folder)
    writing.write(folder / TABLE, details.to_markdown(evaluated))
    page.write(folder / PAGE, [evaluated])
