"""Methods at equal training steps, environment steps and model tokens, from runs of study.sh.

python benchmarks/studies/budgets.py runs/branches --figure docs/images/study-budget.png
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import study

from harness.evaluation.statistics import mean_and_std, paired_bootstrap, student_interval
from harness.reporting.results.training_runs import TrainingRun
from harness.runs import metrics

COSTS = {"training steps": "updates", "environment steps": "steps", "model tokens": "tokens"}
COLOURS = ("#6b7280", "#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2")


@dataclass(frozen=True)
class Point:
    """An evaluation, and what all training before it had cost.

    Attributes:
        cost: Of each kind of `COSTS`, siblings and continuations included.
        success: Of each task.
    """

    cost: dict[str, float]
    success: dict[str, bool]

    @property
    def share(self) -> float:
        """Success in percent."""
        return 100 * sum(self.success.values()) / len(self.success)


Curves = dict[str, dict[int, list[Point]]]
"""The evaluations of each method and seed."""


def costs(line: dict[str, Any], episodes: int) -> dict[str, float]:
    """Return what a training step cost, from its line of figures."""
    if line["rollout/lost_groups"]:
        raise SystemExit("a step has lost groups, so its cost is not known: play the run again")
    turns = line["rollout/turns"] * episodes
    steps, tokens = turns, line["rollout/prompt_tokens"] + line["rollout/response_tokens"]
    tokens *= turns
    for who in ("sibling", "continuation"):
        steps += line.get(f"rollout/{who}_steps", 0.0)
        tokens += line.get(f"rollout/{who}_tokens", 0.0)
    return {"updates": 1.0, "steps": steps, "tokens": tokens}


def points(run: TrainingRun) -> list[Point]:
    """Return the evaluations of a run, by step."""
    own = run.config["rollout"]
    episodes = own["tasks_per_step"] * own["group_size"]
    spent, total = {0: dict.fromkeys(COSTS.values(), 0.0)}, dict.fromkeys(COSTS.values(), 0.0)
    for line in metrics.read(run.folder):
        if "rollout/turns" in line:
            total = {k: total[k] + v for k, v in costs(line, episodes).items()}
            spent[int(line["step"])] = total
    return [
        Point(
            spent[int(one["step"])],
            {str(e["task_id"]): bool(e["success"]) for e in one["episodes"]},
        )
        for one in run.on_split(run.splits[0])
    ]


def _all(curves: Curves) -> list[list[Point]]:
    return [found for runs in curves.values() for found in runs.values()]


def at(found: Sequence[Point], kind: str, budget: float) -> list[Point]:
    """Return the evaluations within a budget."""
    return [one for one in found if one.cost[kind] <= budget]


def table(curves: Curves, base: str, kind: str, budget: float) -> Iterator[str]:
    """Yield the lines of the table at one budget."""
    seeds = sorted(curves[base])
    yield (
        f"| method | {' | '.join(f'seed {seed}' for seed in seeds)} | mean ± std | updates "
        f"| minus {base} (over tasks) | over seeds | mean until there |"
    )
    yield "|" + "---|" * (len(seeds) + 6)
    for name, runs in curves.items():
        within = {seed: at(runs[seed], kind, budget) for seed in seeds}
        shares = [within[seed][-1].share for seed in seeds]
        updates = [int(within[seed][-1].cost["updates"]) for seed in seeds]
        until = [np.mean([one.share for one in within[seed][1:] or within[seed]]) for seed in seeds]
        cells = [f"{share:.1f}" for share in shares]
        cells += [_spread(shares), f"{min(updates)} to {max(updates)}"]
        cells += _against(curves, name, base, kind, budget) if name != base else ["", ""]
        yield f"| {name} | {' | '.join([*cells, _spread(until)])} |"


def _against(curves: Curves, name: str, base: str, kind: str, budget: float) -> list[str]:
    """Return the difference to the base, with intervals over tasks and over seeds."""
    ours, theirs, tasks, means = list[float](), list[float](), list[str](), list[float]()
    for seed in sorted(curves[base]):
        one, other = (at(curves[n][seed], kind, budget)[-1] for n in (name, base))
        ours += [float(one.success[task]) for task in one.success]
        theirs += [float(other.success[task]) for task in one.success]
        tasks += one.success
        means.append(one.share - other.share)
    low, high = paired_bootstrap(ours, theirs, tasks)
    over_tasks = f"{np.mean(means):+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
    between = student_interval(means)
    return [over_tasks, f"{between[0]:+.1f} to {between[1]:+.1f}" if between else ""]


def _spread(values: Sequence[Any]) -> str:
    mean, std = mean_and_std(values)
    return f"{mean:.1f}" + ("" if std is None else f" ± {std:.1f}")


def draw(path: Path, curves: Curves, budgets: dict[str, float], title: str) -> None:
    """Draw success over both costs: each seed thin, the mean of the seeds thick."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (words, kind) in zip(figure.subplots(1, 3, sharey=True), COSTS.items(), strict=True):
        for (name, runs), colour in zip(curves.items(), COLOURS, strict=False):
            end = min(found[-1].cost[kind] for found in runs.values())
            grid = np.linspace(0, end, 60)
            lines = []
            for found in runs.values():
                x, y = [one.cost[kind] for one in found], [one.share for one in found]
                axes.plot(x, y, color=colour, linewidth=0.6, alpha=0.45)
                lines.append(np.interp(grid, x, y))
            axes.plot(grid, np.mean(lines, axis=0), color=colour, linewidth=2, label=name)
        axes.axvline(budgets[kind], color="black", linewidth=0.8, linestyle=":")
        axes.set_xlim(0, min(1.3 * budgets[kind], max(r[-1].cost[kind] for r in _all(curves))))
        axes.set_xlabel(f"{words}; dotted: where the table is read", fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("success (%)", fontsize=9)
    figure.axes[0].legend(fontsize=8, frameon=False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Print the tables and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of benchmarks/studies/study.sh")
    parser.add_argument("--figure", type=Path, help="a .png file to draw")
    given = parser.parse_args()
    groups = study.read(given.folder)
    base = next((group for group in groups if group.runs[0].method == "grpo"), None)
    if base is None:
        parser.error(f"{given.folder} holds no finished run of grpo")
    complete = [group for group in groups if group.seeds == base.seeds]
    curves = {group.name: {run.seed: points(run) for run in group.runs} for group in complete}
    budgets = {kind: min(one[-1].cost[kind] for one in _all(curves)) for kind in COSTS.values()}
    for words, kind in COSTS.items():
        print(f"\nAt {budgets[kind]:,.0f} {words}:\n")
        print("\n".join(table(curves, base.name, kind, budgets[kind])))
    if given.figure:
        draw(given.figure, curves, budgets, groups[0].runs[0].world)


if __name__ == "__main__":
    main()
