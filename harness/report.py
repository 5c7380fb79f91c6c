"""What people look at: the learning curve as a picture, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import metrics
from harness.runfolder import RunFolder

_COLOURS = ("#2563eb", "#d97706", "#059669", "#9333ea")


def write(folder: RunFolder) -> None:
    """Write `curve.png` and `table.md` from the run's evaluations and metrics."""
    evaluations = folder.evaluations()
    if evaluations:
        (folder.path / "table.md").write_text(table(evaluations), encoding="utf-8")
        draw_curve(folder, evaluations)


def table(evaluations: list[dict[str, Any]]) -> str:
    """Return a Markdown table: one row per split and step, success by family, over all, and score.

    Only the first and the last evaluation of each split are shown; rates and scores are in percent,
    with their 95 % Wilson intervals over all tasks.
    """
    families = sorted({name for e in evaluations for name in e["families"]})
    lines = [
        f"| split | step | {' | '.join(families)} | all | 95 % interval | score | 95 % interval "
        "| turns | tasks |",
        "|---" * (len(families) + 8) + "|",
    ]
    for split in dict.fromkeys(e["split"] for e in evaluations):
        of_split = [e for e in evaluations if e["split"] == split]
        lines += [_row(evaluation, families) for evaluation in of_split[:1] + of_split[1:][-1:]]
    return "\n".join(lines) + "\n"


def _row(evaluation: dict[str, Any], families: list[str]) -> str:
    rates = [evaluation["families"].get(name, [0, 0]) for name in families]
    cells = [f"{100 * won / count:.1f}" if count else "-" for won, count in rates]
    means = [_percent(evaluation["success"], evaluation["interval"])]
    means.append(_percent(evaluation["score"], evaluation["score_interval"]))
    count = sum(count for _, count in rates)
    return (
        f"| {evaluation['split']} | {evaluation['step']} | {' | '.join([*cells, *means])} "
        f"| {evaluation['turns']:.1f} | {count} |"
    )


def _percent(mean: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{100 * mean:.1f} | {100 * low:.1f} to {100 * high:.1f}"


def draw_curve(folder: RunFolder, evaluations: list[dict[str, Any]]) -> None:
    """Draw success over steps: held-out splits with intervals, training as a thin line.

    The mean score of a split is a dashed line where it is another number than success.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    steps = [r for r in metrics.read(folder.path) if "rollout/success" in r]
    axes.plot(
        [r["step"] for r in steps],
        [100 * r["rollout/success"] for r in steps],
        color="#9ca3af",
        linewidth=0.8,
        label="training tasks",
    )
    splits = dict.fromkeys(e["split"] for e in evaluations)
    for colour, split in zip(_COLOURS, splits, strict=False):
        _draw_split(axes, [e for e in evaluations if e["split"] == split], split, colour)
    axes.set(xlabel="training step", ylabel="success (%)", ylim=(0, 100))
    config = folder.config()
    axes.set_title(f"{config.method.name} on {config.env.id}", loc="left", fontsize=11)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(folder.path / "curve.png", dpi=150)


def _draw_split(axes: Any, evaluations: list[dict[str, Any]], split: str, colour: str) -> None:
    step = [e["step"] for e in evaluations]
    axes.plot(
        step,
        [100 * e["success"] for e in evaluations],
        marker="o",
        markersize=4,
        color=colour,
        label=f"{split} (95 % interval)",
    )
    if any(abs(e["score"] - e["success"]) > 1e-9 for e in evaluations):
        score = [100 * e["score"] for e in evaluations]
        axes.plot(step, score, linestyle="--", color=colour, label=f"{split}: score")
    low = [100 * e["interval"][0] for e in evaluations]
    high = [100 * e["interval"][1] for e in evaluations]
    axes.fill_between(step, low, high, color=colour, alpha=0.15, linewidth=0)
