"""One evaluation in full, as Markdown: what its table leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.reporting import others
from harness.reporting.loading import Evaluated
from harness.reporting.rendering import NONE, escaped, markdown
from harness.reporting.tables import build


def page(one: Evaluated) -> str:
    """Return the table of an evaluation, and under it families, breakdowns, trials and cost."""
    main = build([one])[:1]  # what is broken down further comes below, with its intervals
    counted = bool(others.warnings(one.result))
    parts = [markdown(main), *_tables(one.figures, counted), "\n".join(_facts(one))]
    return "\n".join(part for part in parts if part) + "\n"


def _tables(figures: Mapping[str, Any], counted: bool) -> Iterator[str]:
    families = {name or NONE: of for name, of in figures["families"].items()}
    if len(families) > 1:
        yield _means("Family", families)
    for title, groups in figures["breakdowns"].items():
        rated = title in ("Goal", "Dimension")
        told = others.counted(title) if rated and counted else title
        yield _means(told, groups, 1.0 if rated else 100.0)
    trials = figures["trials"]
    if len(trials) > 1:
        within = {str(t["trial"]): {"success": t["success"]} for t in trials}
        yield _means("Trials", within)


def _means(title: str, groups: Mapping[str, Mapping[str, Any]], scale: float = 100.0) -> str:
    """Return a table of means, a row per group: each mean with its interval."""
    first = next(iter(groups.values()))
    columns = [name for name, value in first.items() if isinstance(value, Mapping)]
    headings = [title, *(name.capitalize() if name.islower() else name for name in columns)]
    lines = [f"| {' | '.join(headings)} | Episodes |", "|---" * (len(headings) + 1) + "|"]
    for name, group in groups.items():
        cells = [_mean(group[column], scale) for column in columns]
        # Of the first mean, which leaves out episodes that were not rated.
        count = group[columns[0]]["count"]
        lines.append(f"| {escaped(name)} | {' | '.join(cells)} | {count} |")
    return "\n".join(lines) + "\n"


def _mean(mean: Mapping[str, Any], scale: float) -> str:
    if mean["mean"] is None:
        return NONE
    decimals = 1 if scale == 100 else 2
    text = f"{scale * mean['mean']:.{decimals}f}"
    if mean["interval"]:
        low, high = (scale * end for end in mean["interval"])
        text += f" ({low:.{decimals}f} to {high:.{decimals}f})"
    return text


def _facts(one: Evaluated) -> Iterator[str]:
    figures, episodes = one.figures, one.result["episodes"]
    yield f"- episodes: {episodes['finished']} of {episodes['planned']} finished"
    if episodes["missing"]:
        yield f"- MISSING: {episodes['missing']} episodes; they count nowhere: {_why(one)}"
    if figures["turns"] is not None:
        yield f"- turns: {figures['turns']:.1f} per episode"
    shares = [
        f"{name} {100 * figures[key]:.1f} %"
        for name, key in (
            ("invalid", "invalid_share"),
            ("failed", "failed_share"),
            ("answer cut off", "unfinished_share"),
            ("prompt shortened", "cut_share"),
        )
        if figures.get(key) is not None
    ]
    if shares:
        yield f"- of the turns: {', '.join(shares)}"
    yield f"- ended by: {_counts(figures['stop_reasons'])}"
    if figures.get("tokens"):
        yield f"- tokens: {_counts(figures['tokens'])}"
    if figures.get("cost") is not None:
        yield f"- cost: {figures['cost']:.4f}"
    if spent := figures.get("parties"):
        yield f"- tokens of partner and judge: {_counts(spent['tokens'])}"
        if spent["cost"] is not None:
            yield f"- cost of partner and judge: {spent['cost']:.4f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{escaped(name)} {count:,}" for name, count in counts.items()) or NONE


def _why(one: Evaluated) -> str:
    errors: Sequence[str] = sorted({str(lost["error"]) for lost in one.result["missing"]})
    shown = "; ".join(escaped(error)[:200] for error in errors[:3])
    return shown + ("; ..." if errors[3:] else "")
