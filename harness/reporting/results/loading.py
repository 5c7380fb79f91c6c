"""Loads results: folders of evaluations and of training runs, in one form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agentgyms.data.manifests import digest_file
from agentgyms.recording import recording_format
from agentgyms.recording.recording_format import Recording
from harness.evaluation import verify_result
from harness.evaluation.results import FORMAT, read_json
from harness.reporting.results import run_results, training_runs
from harness.reporting.results.choice import LAST, Choice
from harness.reporting.results.result_checks import read_through
from harness.reporting.results.training_runs import TrainingRun
from harness.types.errors import ResultError

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
class LoadedEvaluation:
    """A finished evaluation, or a training run's last evaluation of a split.

    Attributes:
        folder: Its folder.
        result: The content of `result.json`. For training runs it is made from the episodes
            that they keep: unknown figures are None, and `training` has the step and the
            runs' names.
        label: A short name, unique among the evaluations loaded together; those of one
            `group` and split share it.
        group: Number of its group of training runs, which differ only in their seeds; None
            for a folder of an evaluation.
        over_steps: Number of steps of a training run whose mean counts, this one's among
            them; 1 if it counts alone.
    """

    folder: Path
    result: dict[str, Any]
    label: str
    group: int | None = None
    over_steps: int = 1

    @property
    def env_id(self) -> str:
        """The environment's id."""
        return str(self.result["environment"]["id"])

    @property
    def split(self) -> str:
        """The played split."""
        return str(self.result["environment"]["split"])

    @property
    def partner(self) -> str:
        """The partner in the episodes; "" if there is none."""
        return str(self.result.get("partner") or "")

    @property
    def judge(self) -> str:
        """The judge of the episodes; "" if the environment's own rules score them."""
        return str(self.result.get("judge") or "")

    @property
    def figures(self) -> dict[str, Any]:
        """The figures; see `harness.evaluation.figures`."""
        figures: dict[str, Any] = self.result["figures"]
        return figures

    def recordings(self) -> list[Recording]:
        """Return all its episodes.

        Raises:
            ResultError: It is a training run, which keeps none, or the file was changed since.
            DataMissing: The file is missing.
            DataCorrupt: The file does not hold recordings.
        """
        if "recordings" not in self.result:
            raise ResultError(
                f"{self.folder} is a training run, which records no episodes of evaluations: "
                "evaluate its model with harness eval"
            )
        path = self.folder / self.result["recordings"]["file"]
        if path.is_file() and digest_file(path) != self.result["recordings"]["sha256"]:
            raise ResultError(
                f"{path} was changed after it was counted: its SHA-256 is not the one in "
                "result.json"
            )
        return recording_format.read(path)


def load(path: str | Path) -> LoadedEvaluation:
    """Return one evaluation.

    Args:
        path: Folder of an evaluation, its `result.json`, or the folder of a training run,
            which gives its last evaluation on the validation split.

    Raises:
        ResultError: There is no result, or it is damaged or of another format.
    """
    return load_all([path])[0]


def load_all(paths: Sequence[str | Path], choice: Choice = LAST) -> list[LoadedEvaluation]:
    """Return evaluations; a training run gives one for each split, the validation split first.

    Training runs that differ only in `run.seed` are one evaluation with several seeds, at the
    position of the first of them.

    Args:
        paths: Folders or files as in `load`.
        choice: The evaluations of a training run that count; several of a split if it is a
            mean.

    Raises:
        ResultError: One cannot be read; see `load`.
    """
    folders = [Path(path) for path in paths]
    runs = {i: training_runs.read(f) for i, f in enumerate(folders) if training_runs.is_run(f)}
    groups = training_runs.group_by_settings(list(runs.values()))
    loaded: list[LoadedEvaluation] = []
    for number, folder in enumerate(folders):
        if number not in runs:
            loaded.append(_over_steps(evaluation(folder), choice))
        for place, group in enumerate(groups):
            if group[0] is runs.get(number):
                loaded += _trained(group, place, choice)
    return _distinct(loaded)


def evaluation(path: Path) -> LoadedEvaluation:
    """Return the evaluation of a folder or of a `result.json`, counted again.

    Raises `ResultError` if there is no result, it is damaged, or does not agree with its
    recordings.
    """
    file = path if path.suffix == ".json" else path / "result.json"
    if not file.exists():
        raise ResultError(_absent(path))
    result = read_json(file)
    if result.get("format") != FORMAT:
        raise ResultError(
            f"{file} has format {result.get('format')!r}: expected {FORMAT!r}, as harness eval "
            "writes it"
        )
    for name, kind in {**_SECTIONS, "recordings": dict}.items():
        if not isinstance(result.get(name), kind):
            raise ResultError(f"{file} is damaged: {name} must be of type {kind.__name__}")
    try:
        read_through(result)
        wrong = verify_result.check(file.parent, result)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as e:
        raise ResultError(f"{file} is damaged: {type(e).__name__}: {e}") from None
    if wrong:
        raise ResultError(
            f"{file} does not agree with itself or its recordings: {wrong}. Was it edited? harness "
            f"eval --resume {file.parent} counts again from the recordings"
        )
    return LoadedEvaluation(file.parent, result, file.parent.resolve().name)


def _absent(path: Path) -> str:
    if not path.exists():
        return f"{path} does not exist: expected the folder of an evaluation or of a training run"
    if (path / "recordings.jsonl").exists():
        return f"{path} holds an evaluation that has not ended: harness eval --resume {path}"
    return f"{path} is neither an evaluation nor a training run: it has no result.json"


def _over_steps(one: LoadedEvaluation, choice: Choice) -> LoadedEvaluation:
    """Return an evaluation; that of a run's checkpoint may be part of a mean over steps."""
    return replace(one, over_steps=choice.count) if one.result["model"].get("trained") else one


def _trained(
    group: Sequence[TrainingRun], place: int, choice: Choice
) -> Iterator[LoadedEvaluation]:
    several = f" ({len(group)} seeds)" if len(group) > 1 else ""
    name = training_runs.group_name(group) + several
    for result in run_results.results(group, choice):
        split = result["environment"]["split"]
        label = f"{name} {split}" if len(group[0].splits) > 1 else name
        yield LoadedEvaluation(group[0].folder, result, label, group=place, over_steps=choice.count)


def _distinct(loaded: Sequence[LoadedEvaluation]) -> list[LoadedEvaluation]:
    """Return the evaluations with unique labels: equal labels are numbered.

    Evaluations of one group of training runs, at several steps, keep one label.
    """
    owners: dict[str, list[int]] = {}
    for number, one in enumerate(loaded):
        owners_here = owners.setdefault(one.label, [])
        if _owner(one, number) not in owners_here:
            owners_here.append(_owner(one, number))
    return [
        replace(one, label=f"{one.label} #{owners[one.label].index(_owner(one, number)) + 1}")
        if len(owners[one.label]) > 1
        else one
        for number, one in enumerate(loaded)
    ]


def _owner(one: LoadedEvaluation, number: int) -> int:
    return number if one.group is None else -1 - one.group
