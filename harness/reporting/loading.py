"""Reads results back: folders of evaluations, and of training runs, in one form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agentgyms import transcript
from agentgyms.transcript import Recording
from harness.errors import ResultError
from harness.evaluation.results import FORMAT
from harness.reporting import training_runs
from harness.reporting.training_runs import TrainingRun

_SECTIONS: Final[dict[str, type]] = {
    "config": dict,
    "environment": dict,
    "agent": dict,
    "model": dict,
    "seeds": list,
    "episodes": dict,
    "missing": list,
    "figures": dict,
    "tasks": list,
    "outcomes": list,
}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One evaluation that has ended, or what a training run's evaluation of a split came to.

    Attributes:
        folder: Where it is kept.
        result: As in its `result.json`. That of training runs is made from the episodes they keep:
            what they do not tell is None, and `training` has the step and the names of the runs.
        label: A short name, unique among those loaded together.
    """

    folder: Path
    result: dict[str, Any]
    label: str

    @property
    def env_id(self) -> str:
        """The environment's id."""
        return str(self.result["environment"]["id"])

    @property
    def split(self) -> str:
        """The split that was played."""
        return str(self.result["environment"]["split"])

    @property
    def partner(self) -> str:
        """Who had another part in the episodes, "" for nobody."""
        return str(self.result.get("partner") or "")

    @property
    def judge(self) -> str:
        """Who rated the episodes, "" for the environment's own rules."""
        return str(self.result.get("judge") or "")

    @property
    def figures(self) -> dict[str, Any]:
        """What it came to; see `harness.evaluation.figures`."""
        figures: dict[str, Any] = self.result["figures"]
        return figures

    def recordings(self) -> list[Recording]:
        """Return all its episodes.

        Raises:
            ResultError: It keeps none, as training runs, or the file is not the one that the
                result was counted from.
            DataMissing: The file is gone.
            DataCorrupt: The file holds something else.
        """
        if "recordings" not in self.result:
            raise ResultError(
                f"{self.folder} is a training run, which records no episodes of evaluations: "
                "evaluate its model with harness eval"
            )
        path = self.folder / self.result["recordings"]["file"]
        if path.is_file():
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != self.result["recordings"]["sha256"]:
                raise ResultError(
                    f"{path} was changed after it was counted: its SHA-256 is not the one in "
                    "result.json"
                )
        return transcript.read(path)


def load(path: str | Path) -> Evaluated:
    """Return one evaluation.

    Args:
        path: Folder of an evaluation, its `result.json`, or folder of a training run, of which the
            last evaluation on its validation split is taken.

    Raises:
        ResultError: There is no such thing, or it is damaged or of another format.
    """
    return load_all([path])[0]


def load_all(paths: Sequence[str | Path]) -> list[Evaluated]:
    """Return evaluations; training runs give one for each split, their validation split first.

    Training runs that differ in nothing but `run.seed` are one evaluation with several seeds, which
    stands where the first of them does.

    Args:
        paths: See `load`.

    Raises:
        ResultError: One cannot be read; see `load`.
    """
    folders = [Path(path) for path in paths]
    runs = {i: training_runs.read(f) for i, f in enumerate(folders) if training_runs.is_run(f)}
    groups = training_runs.by_settings(list(runs.values()))
    loaded: list[Evaluated] = []
    for number, folder in enumerate(folders):
        if number not in runs:
            loaded.append(_evaluation(folder))
        for group in groups:
            if group[0] is runs.get(number):
                loaded += _trained(group)
    return _distinct(loaded)


def _evaluation(path: Path) -> Evaluated:
    file = path if path.suffix == ".json" else path / "result.json"
    if not file.exists():
        raise ResultError(_absent(path))
    result = training_runs.read_object(file)
    if result.get("format") != FORMAT:
        raise ResultError(
            f"{file} has format {result.get('format')!r}: expected {FORMAT!r}, as harness eval "
            "writes it"
        )
    for name, kind in {**_SECTIONS, "recordings": dict}.items():
        if not isinstance(result.get(name), kind):
            raise ResultError(f"{file} is damaged: {name} must be of type {kind.__name__}")
    try:
        _read_through(result)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e:
        raise ResultError(f"{file} is damaged: {type(e).__name__}: {e}") from None
    return Evaluated(file.parent, result, file.parent.resolve().name)


def _read_through(result: Mapping[str, Any]) -> None:
    """Touch all that reports are made from, so that what is missing is found here."""
    str(result["environment"]["id"]), str(result["environment"]["split"])
    result["agent"]["kind"], result["environment"]["tasks"]
    result["recordings"]["file"], result["recordings"]["sha256"]
    for name in ("planned", "finished", "missing"):
        int(result["episodes"][name])
    for lost in result["missing"]:
        lost["task_id"], lost["seed"], lost["trial"], lost["error"]
    names = [task_id for task_id, _ in result["tasks"]]
    for index, seed, trial, success, score, turns in result["outcomes"]:
        str(names[index]), int(seed), int(trial), bool(success), float(score), int(turns)
    figures = result["figures"]
    figures["turns"], figures["breakdowns"].items(), figures["stop_reasons"].items()
    groups = [figures, *figures["families"].values()]
    means = [group[name] for group in groups for name in ("success", "score")]
    means += [trial["success"] for trial in figures["trials"]]
    for mean in means:
        for name in ("mean", "std", "interval", "count", "per_seed"):
            mean[name]


def _absent(path: Path) -> str:
    if not path.exists():
        return f"{path} does not exist: expected the folder of an evaluation or of a training run"
    if (path / "recordings.jsonl").exists():
        return f"{path} holds an evaluation that has not ended: harness eval --resume {path}"
    return f"{path} is neither an evaluation nor a training run: it has no result.json"


def _trained(group: Sequence[TrainingRun]) -> Iterator[Evaluated]:
    several = f" ({len(group)} seeds)" if len(group) > 1 else ""
    name = group[0].folder.resolve().name + several
    for result in training_runs.results(group):
        split = result["environment"]["split"]
        label = f"{name} {split}" if len(group[0].splits) > 1 else name
        yield Evaluated(group[0].folder, result, label)


def _distinct(loaded: Sequence[Evaluated]) -> list[Evaluated]:
    """Return evaluations with different labels: those that are alike are numbered."""
    labels = [one.label for one in loaded]
    return [
        replace(one, label=f"{one.label} #{labels[: i + 1].count(one.label)}")
        if labels.count(one.label) > 1
        else one
        for i, one in enumerate(loaded)
    ]
