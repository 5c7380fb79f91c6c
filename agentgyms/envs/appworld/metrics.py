"""The metrics of an episode, for `info["metrics"]`."""

from __future__ import annotations

import math

from agentgyms.envs.appworld.code_runner import Counts
from agentgyms.envs.appworld.world import Report


def episode_metrics(
    counts: Counts, failed_turns: int, malformed_turns: int, difficulty: int, report: Report | None
) -> dict[str, float]:
    """Return the metrics by name; those of the tests only if they ran."""
    nan = math.nan
    return {
        "api_calls": float(counts.api_calls),
        "api_errors": float(counts.api_errors),
        "doc_lookups": float(counts.doc_lookups),
        "failed_turns": float(failed_turns),
        "malformed_turns": float(malformed_turns),
        "difficulty": float(difficulty or nan),
        "tests": float(len(report.verdicts)) if report else nan,
        "tests_passed": float(sum(v.passed for v in report.verdicts)) if report else nan,
        "score_over_no_op": report.score_over_no_op if report else nan,
    }
