"""Whether a `result.json` has every value that reports show, of the type that they expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_SHARES: Final = ("invalid_share", "failed_share", "unfinished_share", "cut_share")

_NO_THOUGHTS: Final = {"tokens": 0, "longest": 0, "cut_share": 0}


def read_through(result: Mapping[str, Any]) -> None:
    """Read every value that reports use, so that a missing or wrong one raises here."""
    str(result["environment"]["id"]), str(result["environment"]["split"])
    result["agent"]["kind"], result["environment"]["tasks"]
    if not isinstance(backend := result["model"].get("backend", ""), str):
        raise TypeError(f"model.backend must be a text, got {backend!r:.40}")
    file, _ = result["recordings"]["file"], result["recordings"]["sha256"]
    if Path(file).name != file:
        raise ValueError(f"recordings.file must be a file of the folder, got {file!r:.80}")
    for name in ("planned", "finished", "missing"):
        int(result["episodes"][name])
    for lost in result["missing"]:
        lost["task_id"], lost["seed"], lost["trial"], lost["error"]
    trials, counted = int(result["agent"]["trials"]), len(result["figures"]["trials"])
    if trials != counted:
        raise ValueError(f"agent.trials is {trials}, and figures.trials has {counted}")
    names = [task_id for task_id, _ in result["tasks"]]
    for index, seed, trial, success, score, turns in result["outcomes"]:
        str(names[index]), int(seed), int(trial), bool(success), float(score), int(turns)
    _read_figures(result["figures"])


def _read_figures(figures: Mapping[str, Any]) -> None:
    figures["breakdowns"].items()
    parties = figures.get("parties") or {"tokens": {}, "cost": None}
    for counts in (figures["stop_reasons"], figures.get("tokens") or {}, parties["tokens"]):
        _check_numbers(counts)
    shown = {name: figures.get(name) for name in ("cost", *_SHARES)}
    shown |= {"turns": figures["turns"], "parties.cost": parties["cost"]}
    _check_numbers({name: value for name, value in shown.items() if value is not None})
    _check_numbers({n: (figures.get("thoughts") or _NO_THOUGHTS)[n] for n in _NO_THOUGHTS})
    for one in (figures.get("documentation") or {}).values():
        _check_numbers({n: one[n] for n in ("calls", "share") if one[n] is not None})
    for mean in _means(figures):
        per_seed, interval = mean["per_seed"], mean["interval"] or (0, 0)
        numbers = {name: mean[name] for name in ("mean", "std") if mean[name] is not None}
        low, high = interval
        _check_numbers({**numbers, "count": mean["count"], "low": low, "high": high})
        len(per_seed)


def _means(figures: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for group in (figures, *figures["families"].values()):
        yield group["success"]
        yield group["score"]
    yield from (trial["success"] for trial in figures["trials"])
    if samples := figures.get("samples"):
        int(samples["n"]), [int(one["k"]) for one in samples["pass"]]
        yield samples["average"]
        yield from (one["success"] for one in samples["pass"])


def _check_numbers(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if not isinstance(value, int | float):
            raise TypeError(f"{name!s:.40} must be a number, got {value!r:.40}")
