"""The settings in which training runs differ, and which of them the methods do not explain."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from harness.config import comparisons
from harness.evaluation.breakdowns import env_name
from harness.reporting.results.loading import LoadedEvaluation

_WITHOUT_EFFECT: Final = (
    *("run.name", "run.seed", "run.output", "run.threads", "swept", "run.keep_rollouts"),
    *("log", "checkpoint.every", "checkpoint.keep", "checkpoint.in_background", "rollout.urls"),
    "method.preset",  # each value that it sets is compared by itself
)
"""Settings, or sections of them, that change no figure, or whose values count one by one."""

_TABLES: Final = (
    "env.kwargs",
    "eval.kwargs",
    "rollout.engine",
    "rollout.correction_bounds",
    "method",
)
"""Parts of a configuration whose keys are not the same in all runs of one version."""

_SHOWN_BY_TABLES: Final = ("method.name", "policy.model")
"""Settings that every row of a table names."""

_ABSENT: Final = "not set"
_MOST: Final = 100
"""Most characters of a value that are shown."""
_BEFORE: Final = 20
"""Characters of a cut value before the first in which values differ."""


@dataclass(frozen=True, slots=True)
class RunDifferences:
    """In which settings training runs on one environment differ."""

    env: str
    # each setting and its values, as text, with the labels of the runs that have it
    settings: dict[str, dict[str, list[str]]]
    # those settings in which two runs differ that are not their methods' own, and that
    # neither swept
    unexplained: list[str]

    @property
    def title(self) -> str:
        """A heading."""
        return f"Settings in which the training runs on {self.env} differ"

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Each setting with its values and whose they are, in words."""
        return [
            (key, "; ".join(f"{value} in {', '.join(labels)}" for value, labels in values.items()))
            for key, values in self.settings.items()
        ]

    @property
    def warning(self) -> str:
        """A warning to read before figures are compared; "" if there is none."""
        if not self.unexplained:
            return ""
        return (
            f"the training runs on {self.env} differ in more than their methods: a gap between "
            f"their figures may come from {', '.join(self.unexplained)}"
        )


def run_differences(evaluations: Sequence[LoadedEvaluation]) -> list[RunDifferences]:
    """Return how training runs of each environment differ, seeds aside, if they do."""
    runs: dict[str, dict[int, LoadedEvaluation]] = {}
    for one in evaluations:
        if one.group is not None:
            runs.setdefault(env_name(one.env_id), {}).setdefault(one.group, one)
    found = [_differences(env, list(env_runs.values())) for env, env_runs in runs.items()]
    return [one for one in found if one.settings]


def _differences(env: str, runs: Sequence[LoadedEvaluation]) -> RunDifferences:
    labels = [one.label.removesuffix(f" {one.split}") for one in runs]
    flat = [comparisons.flat(one.result["config"]) for one in runs]
    settings: dict[str, dict[str, list[str]]] = {}
    unexplained = []
    for key in dict.fromkeys(key for one in flat for key in one):
        if _is_in(key, _WITHOUT_EFFECT):
            continue
        # an earlier version did not know the setting, but for tables of any keys
        known = [i for i, one in enumerate(flat) if key in one or _is_in(key, _TABLES)]
        knowing = [flat[i] for i in known]
        if not any(comparisons.differs(key, knowing[0], other) for other in knowing):
            continue
        settings[key] = _shown(key, knowing, [labels[i] for i in known])
        asked = [pair for pair in combinations(knowing, 2) if key not in _SHOWN_BY_TABLES]
        if any(
            comparisons.differs(key, *pair)
            and not comparisons.is_own(key, *pair)
            and not any(key in run.get("swept", ()) for run in pair)
            for pair in asked
        ):
            unexplained.append(key)
    return RunDifferences(env, settings, unexplained)


def _is_in(key: str, parts: Sequence[str]) -> bool:
    return any(key == part or key.startswith(f"{part}.") for part in parts)


def _shown(
    key: str, runs: Sequence[Mapping[str, Any]], labels: Sequence[str]
) -> dict[str, list[str]]:
    """Return the values of a setting as text, different ones differently, with their labels."""
    owners: dict[str, list[str]] = {}
    for run, label in zip(runs, labels, strict=True):
        value = json.dumps(run[key], sort_keys=True) if key in run else _ABSENT
        owners.setdefault(value, []).append(label)
    plain = {v: str(json.loads(v)) if v.startswith('"') else v for v in owners}
    if len(set(plain.values())) < len(plain):  # a text stands beside the number that it reads as
        plain = {value: value for value in owners}
    long = [text for text in plain.values() if len(text) > _MOST]
    alike = len(os.path.commonprefix(long)) if long[1:] else 0  # noqa: RUF071 (of characters)
    start = max(0, alike - _BEFORE)
    return {_cut(plain[value], start): labels_here for value, labels_here in owners.items()}


def _cut(text: str, start: int) -> str:
    """Return a long text's characters from a place on, with a digest of the whole."""
    if len(text) <= _MOST:
        return text
    part = text[start : start + _MOST]
    before, after = "..." * (start > 0), "..." * (start + _MOST < len(text))
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{before}{part}{after} (SHA-256 {digest})"
