"""The folder of an evaluation: its initial settings, and whether it may be resumed."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.data import writing
from harness.config import EvaluationConfig, build
from harness.evaluation import results
from harness.evaluation.episode_store import RECORDINGS, UnitKey
from harness.evaluation.results import LostUnit
from harness.runs.folder_lock import LOCK
from harness.runs.versions import versions
from harness.types.errors import ConfigError, ResultError

_log = logging.getLogger(__name__)

_UNTOUCHED: Final = {results.CONFIG, results.STARTED, results.PROVENANCE, RECORDINGS}
_TORN: Final = {f"{name}{writing.PARTIAL}" for name in _UNTOUCHED}
_SECTIONS: Final = ("run", "env", "model", "agent", "sampling", "service")
_SAME: Final = (
    *("format", "environment", "data_source", "partner", "judge", "agent", "model", "sampling"),
    *("seeds", "tasks", "config"),
)
_KINDS: Final = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}


def read_config(folder: str | Path) -> EvaluationConfig:
    """Return the configuration that an evaluation was started with, or raise `ResultError`."""
    file = Path(folder) / results.CONFIG
    values = results.read_json(file)
    lacking = [name for name in _SECTIONS if name not in values]
    if lacking:
        raise ResultError(f"{file} is damaged: it lacks {', '.join(lacking)}")
    try:
        return build(EvaluationConfig, values)
    except ConfigError as e:
        raise ResultError(f"{folder} holds no evaluation: {file}: {e}") from None


def differences(before: Mapping[str, Any], now: Mapping[str, Any], where: str = "") -> list[str]:
    """Return the different values, as in `agent.kind was 'react', now 'direct'`."""
    found = []
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += differences(old, new, f"{where}{key}.")
        elif old != new:
            found.append(f"{where}{key} was {old!r:.80}, now {new!r:.80}")
    return found


def check_unused(folder: Path) -> None:
    """Raise `ConfigError` if a folder holds episodes, or files that are not an evaluation's."""
    found = {path.name for path in folder.iterdir()} - _TORN - {LOCK}
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


def write_started(folder: Path, config: EvaluationConfig, started: Mapping[str, Any]) -> None:
    """Write `started.json` and `config.json`."""
    (folder / RECORDINGS).unlink(missing_ok=True)
    results.write_json(folder / results.STARTED, started)
    results.write_json(folder / results.CONFIG, results.config_to_json(config))


def read_lost(folder: Path) -> dict[UnitKey, LostUnit]:
    """Return the units that earlier sessions played and lost; see `results.write`."""
    if not (folder / results.RESULT).exists():
        return {}
    result = results.read_json(folder / results.RESULT)
    try:
        index = {task_id: number for number, (task_id, _) in enumerate(result["tasks"])}
        return {
            (lost["seed"], index[lost["task_id"]]): LostUnit(lost["trial"], lost["error"])
            for lost in result["missing"]
            if lost["error"] != results.NOT_PLAYED
        }
    except (KeyError, TypeError, ValueError) as e:
        raise ResultError(
            f"{folder / results.RESULT} is damaged: {type(e).__name__}: {e}; delete it, and it is "
            "counted again"
        ) from None


def add_versions(folder: Path, started: dict[str, Any]) -> None:
    """Add this session's versions to `started.json` if no earlier session had them."""
    now = versions()
    before = [started["versions"], *started.get("later_versions", [])]
    if now in before:
        return
    changed = differences(before[-1], now)
    _log.warning("%s goes on with other versions: %s", folder, "; ".join(changed))
    started["later_versions"] = [*before[1:], now]
    results.write_json(folder / results.STARTED, started)


def read_started(folder: Path, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `started.json`; `now` is its content if the evaluation started now.

    Raises `ConfigError` if model, environment, tasks or prompts have changed, `ResultError` if the
    file is damaged.
    """
    file = folder / results.STARTED
    started: dict[str, Any] = results.read_json(file)
    now = json.loads(json.dumps(now))
    wrong = next(_wrong_types(started, now), "")
    later = started.get("later_versions", [])
    if not wrong and not (isinstance(later, list) and all(isinstance(one, dict) for one in later)):
        wrong = f"later_versions must be a list of objects, got {later!r:.40}"
    if wrong:
        raise ResultError(
            f"{file} is damaged: {wrong}. Take it from a copy, or evaluate under another name"
        )
    changed = differences({k: started.get(k) for k in _SAME}, {k: now[k] for k in _SAME})
    if changed:
        raise ConfigError(
            f"{folder} cannot be resumed, it began with something else: {'; '.join(changed)}. "
            "Evaluate under another name"
        )
    return started


def _wrong_types(
    found: Mapping[str, Any], expected: Mapping[str, Any], where: str = ""
) -> Iterator[str]:
    """Yield what has a wrong type; null fits any, and at the top no value may be missing."""
    for key, other in expected.items():
        place, own = f"{where}{key}", found.get(key)
        kind = next((kind for kind in _KINDS if isinstance(other, kind)), None)
        if key not in found:
            if not where:
                yield f"it lacks {place}"
        elif other is None or (own is None and not isinstance(other, dict | list)):
            continue
        elif kind is None and (isinstance(own, bool) or not isinstance(own, int | float)):
            yield f"{place} must be a number, got {own!r:.40}"
        elif kind is not None and not isinstance(own, kind):
            yield f"{place} must be {_KINDS[kind]}, got {own!r:.40}"
        elif isinstance(own, dict) and isinstance(other, dict):
            yield from _wrong_types(own, other, f"{place}.")
