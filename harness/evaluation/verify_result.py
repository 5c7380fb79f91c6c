"""Counts the figures of a `result.json` again and reports disagreements."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentgyms.data.manifests import digest_file
from harness.evaluation import episodes, figures
from harness.evaluation.episode_store import RECORDINGS
from harness.evaluation.episodes import EpisodeRecord
from harness.types.rollout import StopReason, Usage

_SHOWN: Final = 3
_OUTCOME_FIGURES: Final = ("success", "score", "turns", "families", "trials", "samples")
"""Figures that follow from the outcomes alone."""


def check(folder: Path, result: Mapping[str, Any]) -> str:
    """Return the first disagreement of a `result.json` with its evaluation, "" if there is none.

    The figures are counted again from the recordings, or from the result's outcomes if the folder
    holds no recordings. Raises `DataCorrupt` if the recordings are damaged.
    """
    if result["recordings"]["file"] != RECORDINGS:
        return f"its recordings are {result['recordings']['file']!r:.60}, expected {RECORDINGS!r}"
    recordings = folder / RECORDINGS
    if recordings.is_dir():
        return f"{recordings} is a folder"
    if not recordings.exists():
        counted = _counted(result, list(_from_outcomes(result)))
        known = counted["figures"]
        counted["figures"] = {name: known[name] for name in _OUTCOME_FIGURES if name in known}
        return _disagreement("counted from its outcomes", differences(result, counted))
    if digest_file(recordings) != result["recordings"]["sha256"]:
        return f"{recordings} was changed after it was counted: its SHA-256 is another one"
    found = episodes.read(recordings)
    task_ids = [task_id for task_id, _ in result["tasks"]]
    for episode in found:
        if task_ids[episode.index] != episode.task_id:
            return f"task {episode.index} is {task_ids[episode.index]}, played {episode.task_id}"
    return _disagreement(
        "counted from the recordings", differences(result, _counted(result, found))
    )


def count(
    started: Mapping[str, Any], seeds: Sequence[int], found: Sequence[EpisodeRecord]
) -> dict[str, Any]:
    """Return the parts of a result that are counted from its episodes, which are sorted.

    `started` has environment, agent and configuration, as in `started.json`.
    """
    service = started["config"].get("service", {})
    prices = service.get("price_prompt"), service.get("price_response")
    return {
        "figures": figures.summarise(
            found,
            env_id=started["environment"]["id"],
            seeds=seeds,
            trials=started["agent"]["trials"],
            prices=None if None in prices else prices,
        ),
        "outcomes": [[e.index, e.seed, e.trial, e.success, e.score, e.turns] for e in found],
    }


def _counted(result: Mapping[str, Any], found: Sequence[EpisodeRecord]) -> dict[str, Any]:
    counted = count(result, result["seeds"], found)
    ended = len({(episode.seed, episode.index) for episode in found})
    planned = result["episodes"]["planned"]
    counted["episodes"] = {"finished": ended, "missing": planned - ended}
    plain: dict[str, Any] = json.loads(json.dumps(counted))
    return plain


def _from_outcomes(result: Mapping[str, Any]) -> Iterator[EpisodeRecord]:
    """Yield the episodes of a result's outcomes; other fields are empty."""
    for index, seed, trial, success, score, turns in result["outcomes"]:
        task_id, family = result["tasks"][index]
        yield EpisodeRecord(
            task_id, index, seed, trial, family, success, score, turns, 0, 0, 0, 0,
            StopReason.TERMINATED, Usage(), {},
        )  # fmt: skip


def _disagreement(how: str, found: Sequence[str]) -> str:
    if not found:
        return ""
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{how}, {'; '.join(found[:_SHOWN])}{more}"


def differences(kept: Any, counted: Any, where: str = "") -> list[str]:
    """Return the counted values that differ from the kept ones.

    Keys of one side alone are left out.

    `where` is the values' place, for the message.
    """
    if isinstance(kept, Mapping) and isinstance(counted, Mapping):
        both = [key for key in counted if key in kept]
        return [
            text
            for key in both
            for text in differences(kept[key], counted[key], f"{where}.{key}" if where else key)
        ]
    if isinstance(kept, list) and isinstance(counted, list) and len(kept) == len(counted):
        return [
            text
            for i, (one, other) in enumerate(zip(kept, counted, strict=True))
            for text in differences(one, other, f"{where}[{i}]")
        ]
    if _equal(kept, counted):
        return []
    return [f"{where} is {_short(kept)} in place of {_short(counted)}"]


def _equal(kept: Any, counted: Any) -> bool:
    if isinstance(kept, int | float) and isinstance(counted, int | float):
        both_nan = kept != kept and counted != counted
        return both_nan or math.isclose(kept, counted, rel_tol=1e-9, abs_tol=1e-12)
    return bool(kept == counted)


def _short(value: Any) -> str:
    return f"{len(value)} values" if isinstance(value, list) else f"{value!r:.40}"
