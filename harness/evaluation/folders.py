"""The folder of an evaluation: what it begins with, and whether it may go on."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness import sections
from harness.errors import ConfigError, ResultError
from harness.evaluation import results
from harness.evaluation.config import EvaluationConfig
from harness.evaluation.results import Lost
from harness.evaluation.store import PARTIAL, RECORDINGS, Place
from harness.versions import versions

_log = logging.getLogger(__name__)

_UNTOUCHED: Final = {results.CONFIG, results.STARTED, results.PROVENANCE, RECORDINGS}
_TORN: Final = {f"{name}{PARTIAL}" for name in _UNTOUCHED}
_SAME: Final = ("environment", "partner", "judge", "agent", "model", "tasks")


def read_config(folder: str | Path) -> EvaluationConfig:
    """Return the configuration that an evaluation was started with.

    Raises:
        ResultError: The folder holds no evaluation, or a damaged one.
    """
    values = results.read_json(Path(folder) / results.CONFIG)
    try:
        return sections.build(EvaluationConfig, values)
    except ConfigError as e:
        raise ResultError(f"{folder} holds no evaluation: {e}") from None


def differences(before: Mapping[str, Any], now: Mapping[str, Any], where: str = "") -> list[str]:
    """Return which values differ, such as `agent.kind was 'react', now 'direct'`."""
    found = []
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += differences(old, new, f"{where}{key}.")
        elif old != new:
            found.append(f"{where}{key} was {old!r:.80}, now {new!r:.80}")
    return found


def check_unused(folder: Path) -> None:
    """Raise `ConfigError` if a folder holds episodes, or something else than an evaluation."""
    found = {path.name for path in folder.iterdir()} - _TORN
    remedy = f"delete {folder}, or choose another name with --name"
    if results.RESULT in found:
        raise ConfigError(f"{folder} holds an evaluation already: {remedy}")
    if (folder / RECORDINGS).exists() and (folder / RECORDINGS).stat().st_size:
        raise ConfigError(
            f"{folder} holds an evaluation that has not ended: go on with --resume {folder}, "
            f"{remedy}"
        )
    foreign = results.CONFIG in found and results.STARTED not in found  # written in this order
    if found - _UNTOUCHED or foreign:
        raise ConfigError(f"{folder} holds something else than an evaluation: {remedy}")


def begin(folder: Path, config: EvaluationConfig, begun: Mapping[str, Any]) -> None:
    """Write down what an evaluation begins with."""
    (folder / RECORDINGS).unlink(missing_ok=True)
    results.write_json(folder / results.STARTED, begun)
    results.write_json(folder / results.CONFIG, results.written(config))


def lost_before(folder: Path) -> dict[Place, Lost]:
    """Return what earlier sessions could not finish although they tried; see `results.write`."""
    if not (folder / results.RESULT).exists():
        return {}
    told = results.read_json(folder / results.RESULT)
    index = {task_id: number for number, (task_id, _) in enumerate(told["tasks"])}
    return {
        (one["seed"], index[one["task_id"]]): Lost(one["trial"], one["error"])
        for one in told["missing"]
        if one["error"] != results.NOT_PLAYED
    }


def note_versions(folder: Path, begun: dict[str, Any]) -> None:
    """Write down that other versions than the first ones play a part from now on, if they do."""
    now = versions()
    before = [begun["versions"], *begun.get("later_versions", [])]
    if now in before:
        return
    changed = differences(before[-1], now)
    _log.warning("%s goes on with other versions: %s", folder, "; ".join(changed))
    begun["later_versions"] = [*before[1:], now]
    results.write_json(folder / results.STARTED, begun)


def go_on(folder: Path, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an evaluation began with.

    Raises:
        ConfigError: The model, the environment, its tasks or the prompts are others by now.
    """
    begun: dict[str, Any] = results.read_json(folder / results.STARTED)
    now = json.loads(json.dumps(now))
    changed = differences({k: begun.get(k) for k in _SAME}, {k: now[k] for k in _SAME})
    if changed:
        raise ConfigError(
            f"{folder} cannot be resumed, it began with something else: {'; '.join(changed)}. "
            "Evaluate under another name"
        )
    return begun
