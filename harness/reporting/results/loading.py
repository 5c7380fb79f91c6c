"""Loads results: folders of evaluations and of training runs, in one form."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agentgyms.data.manifests import digest_file
from agentgyms.recording import recording_format
from agentgyms.recording.recording_format import Recording
from harness.evaluation import figures
from harness.evaluation.episode_store import RECORDINGS
from harness.evaluation.results import FORMAT, read_json
from harness.reporting.results import run_results, training_runs
from harness.reporting.results.training_runs import LAST, Choice, TrainingRun
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
    "recordings": dict,
}

_SHARES: Final = ("invalid_share", "failed_share", "unfinished_share", "cut_share")

_NO_THOUGHTS: Final = {"tokens": 0, "longest": 0, "cut_share": 0}


@dataclass(frozen=True, slots=True)
class LoadedEvaluation:
    """A finished evaluation, or a training run's last evaluation of a split.

    `result` is the content of `result.json`. For training runs it is made from the episodes that
    they keep: unknown figures are None, and `training` has the step and the runs' names.
    """

    folder: Path
    result: dict[str, Any]
    label: str  # unique among evaluations loaded together; those of one group and split share it
    group: int | None = None  # number of its group of training runs, which differ in seeds alone
    over_steps: int = 1  # number of steps of a training run whose mean counts, this one's too

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
    """Return one evaluation: its folder or `result.json`, or the folder of a training run.

    A run gives its last evaluation on the validation split.

    Raises:
        ResultError: There is no result, or it is damaged or of another format.
    """
    return load_all([path])[0]


def load_all(paths: Sequence[str | Path], choice: Choice = LAST) -> list[LoadedEvaluation]:
    """Return evaluations; a training run gives one for each split, the validation split first.

    Training runs that differ only in `run.seed` are one evaluation with several seeds, at the
    position of the first of them. `choice` has the evaluations of a run that count, several of a
    split if it is a mean.

    Raises:
        ResultError: One cannot be read; see `load`.
    """
    folders = [Path(path) for path in paths]
    runs = {i: training_runs.read(f) for i, f in enumerate(folders) if training_runs.is_run(f)}
    groups = training_runs.group_by_settings(list(runs.values()))
    loaded: list[LoadedEvaluation] = []
    for number, folder in enumerate(folders):
        if number not in runs:
            one = evaluation(folder)
            trained = one.result["model"].get("trained")  # perhaps part of a mean over steps
            loaded.append(replace(one, over_steps=choice.count) if trained else one)
        for place, group in enumerate(groups):
            if group[0] is runs.get(number):
                loaded += _trained(group, place, choice)
    return _distinct(loaded)


def evaluation(path: Path) -> LoadedEvaluation:
    """Return an evaluation by folder or `result.json`, counted again, or raise `ResultError`."""
    file = path if path.suffix == ".json" else path / "result.json"
    if not file.exists():
        why = "is neither an evaluation nor a training run: it has no result.json"
        if not path.exists():
            why = "does not exist: expected the folder of an evaluation or of a training run"
        elif (path / RECORDINGS).exists():
            command = f"harness eval --resume {shlex.quote(str(path))}"
            why = f"holds an evaluation that has not ended: {command}"
        raise ResultError(f"{path} {why}")
    result = read_json(file)
    if result.get("format") != FORMAT:
        raise ResultError(
            f"{file} has format {result.get('format')!r}: expected {FORMAT!r}, as harness eval "
            "writes it"
        )
    for name, kind in _SECTIONS.items():
        if not isinstance(result.get(name), kind):
            raise ResultError(f"{file} is damaged: {name} must be of type {kind.__name__}")
    try:
        read_through(result)
        wrong = figures.check(file.parent, result)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as e:
        raise ResultError(f"{file} is damaged: {type(e).__name__}: {e}") from None
    if wrong:
        raise ResultError(
            f"{file} does not agree with itself or its recordings: {wrong}. Was it edited? "
            f"`harness eval --resume {shlex.quote(str(file.parent))}` counts again from the "
            "recordings"
        )
    return LoadedEvaluation(file.parent, result, file.parent.resolve().name)


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
    """Return evaluations with unique labels, equal ones numbered; groups of runs keep one label."""
    keys = [i if one.group is None else -1 - one.group for i, one in enumerate(loaded)]
    owners: dict[str, list[int]] = {}
    for key, one in zip(keys, loaded, strict=True):
        if key not in owners.setdefault(one.label, []):
            owners[one.label].append(key)
    return [
        replace(one, label=f"{one.label} #{owners[one.label].index(key) + 1}")
        if len(owners[one.label]) > 1
        else one
        for key, one in zip(keys, loaded, strict=True)
    ]


def read_through(result: Mapping[str, Any]) -> None:
    """Read every value that reports use, so that a missing or wrong one raises here."""
    str(result["environment"]["id"]), str(result["environment"]["split"])
    result["environment"]["tasks"]
    for name, text in (
        ("agent.kind", result["agent"]["kind"]),
        ("model.backend", result["model"].get("backend", "")),
    ):
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a text, got {text!r:.40}")
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
        drawn = [*samples["pass"], *samples["all"]]
        int(samples["n"]), [int(one["k"]) for one in drawn]
        yield samples["average"]
        yield from (one["success"] for one in drawn)


def _check_numbers(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if not isinstance(value, int | float):
            raise TypeError(f"{name!s:.40} must be a number, got {value!r:.40}")
