"""The table and the figure of docs/study.md, from the runs of benchmarks/studies/study.sh.

python benchmarks/studies/study.py runs/study --figure docs/images/study.png
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.evaluation.seed_power import Apart, apart, readings
from harness.evaluation.statistics import mean_and_std, paired_bootstrap
from harness.reporting.results import training_runs
from harness.reporting.results.agent_names import method_name
from harness.reporting.results.training_runs import TrainingRun
from harness.runs import metrics

NO_METHODS = ("start", "reward")
"""Folders of a seed that are no method's: its warm start, and the audit's reward model."""
WIDTH = 5
"""Steps of the running mean in the figure."""
FAR = -20
"""Points below the base from which on a difference is told in a number."""
COLOUR, GREY = "#2563eb", "#6b7280"


@dataclass(frozen=True)
class Group:
    """The runs of one method, by seed."""

    runs: tuple[TrainingRun, ...]

    @property
    def name(self) -> str:
        """The method's name in the papers."""
        return method_name(self.runs[0].method)

    @property
    def seeds(self) -> list[int]:
        """Seeds of the runs."""
        return [run.seed for run in self.runs]

    @property
    def splits(self) -> list[str]:
        """Splits of the held-out tasks."""
        return sorted({str(one["split"]) for one in self.runs[0].evaluations})

    def episodes(self, *, first: bool = False) -> dict[tuple[str, str, int], bool]:
        """Return success in the last or the first evaluation, by split, task and seed."""
        return {
            (split, str(one["task_id"]), run.seed): bool(one["success"])
            for run in self.runs
            for split in self.splits
            for one in _evaluation(run, split, first)["episodes"]
        }

    def success(self, seed: int | None = None, split: str | None = None) -> float:
        """Return success after training, of one seed or split where given."""
        told = [
            won
            for (own, _, number), won in self.episodes().items()
            if seed in (None, number) and split in (None, own)
        ]
        return sum(told) / len(told)

    def curves(self) -> np.ndarray[Any, Any]:
        """Return success on the training tasks of each seed and step. Shape [seeds, steps]."""
        return np.array([_figures(run, "rollout/success") for run in self.runs])


def _evaluation(run: TrainingRun, split: str, first: bool) -> dict[str, Any]:
    own = [e for e in run.evaluations if e["split"] == split]
    return own[0] if first else own[-1]


def _figures(run: TrainingRun, name: str) -> list[float]:
    return [float(line[name]) for line in metrics.read(run.folder) if name in line]


def read(folder: Path) -> list[Group]:
    """Return the finished runs by method, in the order of the first seed."""
    found: dict[str, list[TrainingRun]] = {}
    done = sorted(folder.glob("seed-*/*/done"), key=lambda file: file.stat().st_mtime)
    for path in [file.parent for file in done if file.parent.name not in NO_METHODS]:
        run = training_runs.read(path)
        found.setdefault(path.name, []).append(run)
    return [Group(tuple(sorted(runs, key=lambda run: run.seed))) for runs in found.values()]


def over_seeds(group: Group, other: Group) -> Apart | None:
    """Compare success at the seeds that both have; None for less than two."""
    common = [seed for seed in group.seeds if seed in other.seeds]
    if len(common) < 2:
        return None
    return apart(*([100 * one.success(seed) for seed in common] for one in (group, other)))


def difference(group: Group, other: Group) -> tuple[float, float, float]:
    """Return the mean difference of success over the same episodes, and its 95 % interval.

    The interval is a bootstrap over tasks; that training again gives other policies is not in it.
    """
    ours, theirs = group.episodes(), other.episodes()
    common = sorted(ours.keys() & theirs.keys())
    a, b = [float(ours[key]) for key in common], [float(theirs[key]) for key in common]
    low, high = paired_bootstrap(a, b, [key[:2] for key in common])
    return float(np.mean(a) - np.mean(b)), low, high


def table(groups: Sequence[Group], base: Group) -> Iterator[str]:
    """Yield the lines of the table."""
    seeds, splits = base.seeds, base.splits
    heads = ["method", *(f"seed {seed}" for seed in seeds), "mean ± std"]
    if len(splits) > 1:
        heads.append(" / ".join(split.removeprefix("valid_") for split in splits))
    compared = [f"minus {base.name} (over tasks)", "over seeds", "reading"]
    heads += [*compared, "seeds for it", "while training"]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    start = base.episodes(first=True)
    before = [
        100 * float(np.mean([won for key, won in start.items() if key[2] == s])) for s in seeds
    ]
    mean, std = mean_and_std(before)
    yield f"| before | {' | '.join(f'{x:.1f}' for x in before)} | {_spread(mean, std)} |" + " |" * (
        len(heads) - len(seeds) - 2
    )
    found = {group.name: over_seeds(group, base) for group in groups if group is not base}
    told = {name: one for name, one in found.items() if one is not None}
    reading = dict(zip(told, readings(list(told.values())), strict=True))
    for group in groups:
        own = [100 * group.success(seed) for seed in group.seeds]
        cells = [f"{x:.1f}" for x in own] + [""] * (len(seeds) - len(own))
        cells.append(_spread(*mean_and_std(own)))
        if len(splits) > 1:
            cells.append(" / ".join(f"{100 * group.success(split=split):.1f}" for split in splits))
        cells += _against(group, base, told.get(group.name), reading.get(group.name, ""))
        cells.append(_spread(*mean_and_std([100 * x for x in group.curves().mean(axis=1)])))
        yield f"| {group.name} | {' | '.join(cells)} |"


def _against(group: Group, base: Group, between: Apart | None, reading: str) -> list[str]:
    """Return the cells of the difference to the base."""
    if group is base:
        return [""] * 4
    mean, low, high = (100 * x for x in difference(group, base))
    seeds = between and between.interval
    over = f"{seeds[0]:+.1f} to {seeds[1]:+.1f}" if seeds else ""
    needed = between and between.needed(between.mean)
    few_many = "-".join("over" if one is None else str(one) for one in needed or ())
    return [f"{mean:+.1f} ({low:+.1f} to {high:+.1f})", over, reading, few_many]


def _spread(mean: float | None, std: float | None) -> str:
    return f"{mean:.1f}" + ("" if std is None else f" ± {std:.1f}")


def draw(path: Path, groups: Sequence[Group], base: Group) -> None:
    """Draw each method's training beside the base's, and the differences on held-out tasks."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    others = [group for group in groups if group is not base]
    columns = (len(others) + 3) // 2
    figure = Figure(figsize=(2.6 * columns, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, columns)
    places = [grid[i // (columns - 1), i % (columns - 1)] for i in range(len(others))]
    first = None
    for group, place in zip(others, places, strict=True):
        axes = figure.add_subplot(place, sharey=first, sharex=first)
        first = first or axes
        _curves(axes, base, GREY)
        _curves(axes, group, COLOUR)
        axes.set_title(f"{group.name} (blue), {base.name} (grey)", loc="left", fontsize=9)
        axes.grid(alpha=0.25)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
    for axes in figure.axes:
        axes.tick_params(labelsize=8)
        axes.label_outer()
    figure.suptitle(base.runs[0].world, x=0.01, ha="left", fontsize=9)
    figure.supxlabel("training step", fontsize=9)
    figure.supylabel(f"success on training tasks (%), mean of {WIDTH} steps", fontsize=9)
    _differences(figure.add_subplot(grid[:, columns - 1]), others, base)
    figure.savefig(path, dpi=130)


def _curves(axes: Any, group: Group, colour: str) -> None:
    smooth = [np.convolve(line, np.ones(WIDTH) / WIDTH, "valid") for line in group.curves()]
    steps = np.arange(WIDTH, WIDTH + len(smooth[0]))
    for line in smooth:
        axes.plot(steps, 100 * line, color=colour, linewidth=0.7, alpha=0.5)
    axes.plot(steps, 100 * np.mean(smooth, axis=0), color=colour, linewidth=2)


def _differences(axes: Any, others: Sequence[Group], base: Group) -> None:
    for row, group in enumerate(reversed(others)):
        mean, low, high = (100 * x for x in difference(group, base))
        if mean < FAR:  # off the scale, so that the others can be told apart
            where = axes.get_yaxis_transform()
            axes.text(0.02, row, f"{mean:.0f}", transform=where, color=COLOUR, va="center")
            continue
        axes.plot([low, high], [row, row], color=COLOUR, linewidth=2)
        axes.plot([mean], [row], "o", color=COLOUR, markersize=6)
        for seed in set(group.seeds) & set(base.seeds):
            own = 100 * (group.success(seed) - base.success(seed))
            axes.plot([own], [row - 0.18], "|", color=GREY, markersize=7)
    axes.set_ylim(-0.5, len(others) - 0.5)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(others)), [group.name for group in reversed(others)])
    axes.tick_params(labelsize=8)
    axes.set_xlabel("points", fontsize=9)
    axes.set_title(f"held-out success minus {base.name}", loc="left", fontsize=9)
    axes.grid(alpha=0.25, axis="x")
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Print the table and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of benchmarks/studies/study.sh")
    parser.add_argument("--figure", type=Path, help="a .png file to draw")
    parser.add_argument("--base", default="grpo", help="the method that others are compared with")
    given = parser.parse_args()
    groups = read(given.folder)
    base = next((group for group in groups if group.runs[0].method == given.base), None)
    if base is None:
        parser.error(f"{given.folder} holds no finished run of {given.base}")
    print("\n".join(table(groups, base)))
    if given.figure:
        draw(given.figure, groups, base)


if __name__ == "__main__":
    main()
