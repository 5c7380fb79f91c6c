"""Does the audit of a start foretell what training makes of it? From runs of `AUDIT=1 study.sh`.

    python benchmarks/studies/foretold.py runs/study

Each method's credit is compared with the measured worth of the start's turns, by the settings that
it was trained with. The improvement is that of success on the held-out tasks. A figure's rank
correlation with it is over the methods of a start; mean and interval (Student's) over the starts
are in Fisher's z; beside it that of the methods' means over all starts. The worth of a choice by a
figure is the improvement of the method with the largest one at a start, minus the mean improvement
of all methods there. Methods whose credit is itself measured are left out.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import study
from foretell import rank_correlation

from harness.evaluation.statistics import mean_and_std, student_interval
from harness.reporting.results.training_runs import TrainingRun
from harness.reporting.table import Table

FIGURES = ("spearman", "within_rollouts", "within_states", "gradient", "sign", "precision")
REWARD_SCALE = 10.0
"""The audit's; what a method adds to rewards is brought on it."""
MEASURED = ("oracle", "vineppo")
"""Methods that an audit credits and compares by half of the truth, the others by all of it."""
MOST = 0.999
"""A correlation of 1 is infinite in Fisher's z: it counts as this."""
IN_REWARDS = ("invalid_penalty", "scpo.alpha", "oprl.alpha")
IN_SUCCESSES = ("graft",)
"""Methods that count a success as 1, whatever its reward."""
Starts = Sequence[Mapping[str, Mapping[str, float]]]
"""Figures and improvement of each method, at each start."""


def credit(run: TrainingRun) -> Iterator[str]:
    """Yield the audit's options for the credit that a run was trained with."""
    settings = run.config["method"]
    scale = 1.0 if run.method in IN_SUCCESSES else REWARD_SCALE / settings["reward_scale"]
    for key, value in settings["credit"].items():
        name = f"{run.method}.{key}"
        if value is not None:
            told = value * scale if key in IN_REWARDS or name in IN_REWARDS else value
            yield f"--credit={name}={json.dumps(told) if isinstance(told, bool) else told}"


def audited(folder: Path, runs: Sequence[TrainingRun]) -> dict[str, dict[str, float]]:
    """Return the figures of each method's credit at a seed's start."""
    names = ",".join(run.method for run in runs)
    command = [sys.executable, "-m", "harness", "credit", "audit", f"--truth={folder}/truth.npz"]
    command += [f"--methods={names}", "--json=-", *(one for run in runs for one in credit(run))]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    methods: Mapping[str, Any] = json.loads(told)["methods"]
    return {
        name: {key: math.nan if (value := own[key]["value"]) is None else value for key in FIGURES}
        for name, own in methods.items()
    }


def main() -> None:
    """Print each method's figures and improvement, and the rank correlations."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="of benchmarks/studies/study.sh")
    folder = parser.parse_args().folder
    groups = [one for one in study.read(folder) if one.runs[0].method not in MEASURED]
    seeds = sorted(set.intersection(*(set(group.seeds) for group in groups))) if groups else []
    if not seeds:
        parser.error(f"{folder} has no seed with a finished run of each of its methods")
    starts: list[dict[str, dict[str, float]]] = []
    for seed in seeds:
        runs = [run for group in groups for run in group.runs if run.seed == seed]
        figures = audited(folder / f"seed-{seed}", runs)
        for group, run in zip(groups, runs, strict=True):
            before = np.mean([w for key, w in group.episodes(first=True).items() if key[2] == seed])
            figures[run.method]["improvement"] = 100 * (group.success(seed) - float(before))
        starts.append(figures)
    rows = []
    for name in (group.runs[0].method for group in groups):
        told = [mean_and_std(known(start[name][key] for start in starts))[0] for key in FIGURES]
        mean, std = mean_and_std([start[name]["improvement"] for start in starts])
        rows.append(
            [name, *map(_number, told), f"{mean:+.1f}", "" if std is None else f"{std:.1f}"]
        )
    rows.sort(key=lambda row: -float(row[-2]))
    print(f"{len(rows)} methods, seeds {', '.join(map(str, seeds))}\n")
    print(Table(["method", *FIGURES, "improvement", "std"], rows).markdown(), "\n")
    heads = ["figure", "rank correlation", "95 % interval", "of the means", "worth of a choice"]
    lines = [[key, *correlation(starts, key), *choice(starts, key)] for key in FIGURES]
    print(Table([*heads, "95 % interval", "chosen"], lines).markdown())


def correlation(starts: Starts, key: str) -> list[str]:
    """Return the mean rank correlation over the starts, its interval, and that of the means."""
    pairs = [np.array([(one[key], one["improvement"]) for one in s.values()]) for s in starts]
    whole = [pair[np.isfinite(pair[:, 0])] for pair in pairs]
    found = known(rank_correlation(*pair.T) for pair in whole if len(pair) > 2)
    in_z = [math.atanh(max(-MOST, min(MOST, one))) for one in found]
    mean, between = mean_and_std(in_z)[0], student_interval(in_z)
    told = "" if between is None else " to ".join(f"{math.tanh(z):.2f}" for z in between)
    means = np.mean(pairs, axis=0)  # [methods, 2]
    means = means[np.isfinite(means[:, 0])]
    over_all = f"{rank_correlation(*means.T):.2f}" if len(means) > 2 else ""
    return ["" if mean is None else f"{math.tanh(mean):.2f}", told, over_all]


def choice(starts: Starts, key: str) -> list[str]:
    """Return the mean worth of a choice by a figure, its interval, and how often who is chosen."""
    worth, chosen = list[float](), Counter[str]()
    for start in starts:
        told = {name: one for name, one in start.items() if math.isfinite(one[key])}
        best = max((one[key] for one in told.values()), default=None)
        names = [name for name, one in told.items() if one[key] == best]
        if names:
            mean = np.mean([one["improvement"] for one in start.values()])
            worth.append(float(np.mean([told[name]["improvement"] for name in names]) - mean))
            chosen["=".join(names)] += 1
    centre, between = mean_and_std(worth)[0], student_interval(worth)
    interval = "" if between is None else f"{between[0]:+.1f} to {between[1]:+.1f}"
    told_chosen = ", ".join(f"{name} {count}" for name, count in chosen.most_common())
    return ["" if centre is None else f"{centre:+.1f}", interval, told_chosen]


def known(values: Iterable[float]) -> list[float]:
    """Return the values that are numbers."""
    return [value for value in values if math.isfinite(value)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
