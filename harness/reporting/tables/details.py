"""All figures of one evaluation, and the comparison of two, as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from harness.config import SEARCHES
from harness.evaluation.pairing import Difference, Pairing, pair
from harness.reporting.results import setting
from harness.reporting.results.loading import LoadedEvaluation
from harness.reporting.results.setting import setting_of
from harness.reporting.table import Table, escaped
from harness.reporting.tables.formats import NONE, cell_text, tables_to_markdown
from harness.reporting.tables.rows import Cell, build
from harness.types.errors import PairingError

_MANY_CUT: Final = 0.05
"""Share of the turns whose answer was cut off, above which there is advice."""


def to_markdown(one: LoadedEvaluation) -> str:
    """Return an evaluation's table, followed by families, breakdowns, trials and cost."""
    main = build([one])[:1]  # the breakdowns follow below, with their intervals
    counted = bool(setting.warnings(one.result))
    parts = [tables_to_markdown(main), *_tables(one.figures, counted), "\n".join(_facts(one))]
    return "\n".join(part for part in parts if part) + "\n"


def _tables(figures: Mapping[str, Any], counted: bool) -> Iterator[str]:
    families = {name or NONE: family for name, family in figures["families"].items()}
    if len(families) > 1:
        yield _means("Family", families)
    for title, groups in figures["breakdowns"].items():
        rated = title in ("Goal", "Dimension")
        heading = setting.programmatic_heading(title) if rated and counted else title
        yield _means(heading, groups, 1.0 if rated else 100.0)
    if len(figures["trials"]) > 1:
        yield _means("Trials", {str(one["trial"]): one for one in figures["trials"]})
    if samples := figures.get("samples"):
        yield _samples(samples)


def _samples(samples: Mapping[str, Any]) -> str:
    """Return a table of success on average, within k samples and in all k, with the tasks."""
    means = {f"pass@{one['k']}": one["success"] for one in samples["pass"]}
    means |= {f"pass^{one['k']}": one["success"] for one in samples["all"]}
    tasks = means["pass@1"]["count"] if means else 0
    rows = [[f"average@{samples['n']}", _mean(samples["average"], 100.0), str(tasks)]]
    rows += [[name, _mean(mean, 100.0), str(mean["count"])] for name, mean in means.items()]
    return Table(["Samples", "Success", "Tasks"], rows).markdown() + "\n"


def _means(title: str, groups: Mapping[str, Mapping[str, Any]], scale: float = 100.0) -> str:
    """Return a table with a row per group; each mean has its interval."""
    first = next(iter(groups.values()))
    columns = [name for name, value in first.items() if isinstance(value, Mapping)]
    headings = [title, *(name.capitalize() if name.islower() else name for name in columns)]
    rows = []
    for name, group in groups.items():
        cells = [_mean(group[column], scale) for column in columns]
        # The count of the first mean, which leaves out episodes that were not rated.
        rows.append([escaped(name), *cells, str(group[columns[0]]["count"])])
    return Table([*headings, "Episodes"], rows).markdown() + "\n"


def _mean(mean: Mapping[str, Any], scale: float) -> str:
    if mean["mean"] is None:
        return NONE
    interval = tuple(scale * end for end in mean["interval"]) if mean["interval"] else None
    return cell_text(Cell(scale * mean["mean"], None, interval, 1 if scale == 100 else 2))


def _facts(one: LoadedEvaluation) -> Iterator[str]:
    figures, episodes = one.figures, one.result["episodes"]
    yield f"- episodes: {episodes['finished']} of {episodes['planned']} finished"
    if episodes["missing"]:
        errors = sorted({str(missing["error"]) for missing in one.result["missing"]})
        shown = "; ".join([*(escaped(e)[:200] for e in errors[:3]), *["..."] * bool(errors[3:])])
        yield f"- MISSING: {episodes['missing']} episodes; they count nowhere: {shown}"
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
    if (figures.get("unfinished_share") or 0.0) > _MANY_CUT:
        yield (
            "- answers were cut off at sampling.max_tokens = "
            f"{one.result['sampling']['max_tokens']}: a larger limit lets them end, a "
            "smaller one takes less time if they never would"
        )
    if found := figures.get("documentation"):
        lookups = (
            f"{n} {one['calls']:.1f} per episode ({100 * (one['share'] or 0):.1f} % of the turns)"
            for n, one in found.items()
            if one["calls"] is not None
        )
        yield f"- documentation look-ups: {', '.join(lookups)}"
    yield f"- ended by: {_counts(figures['stop_reasons'])}"
    yield from _costs(one)


def _costs(one: LoadedEvaluation) -> Iterator[str]:
    """Yield what the model, a search and other parties took."""
    figures = one.figures
    if figures.get("tokens"):
        yield f"- tokens: {_counts(figures['tokens'])}"
    if one.result["agent"].get("kind") in SEARCHES:
        steps, tokens = (figures["costs"][name]["mean"] for name in ("steps", "tokens"))
        yield (
            f"- a task took {steps:,.1f} environment steps and {tokens:,.0f} tokens with its search"
        )
    if thoughts := figures.get("thoughts"):
        yield (
            f"- thoughts: {thoughts['tokens']:,.1f} tokens per turn, the longest "
            f"{thoughts['longest']:,}, cut off {100 * thoughts['cut_share']:.1f} %"
        )
    if figures.get("cost") is not None:
        yield f"- cost: {figures['cost']:.4f}"
    if parties := figures.get("parties"):
        yield f"- tokens of partner and judge: {_counts(parties['tokens'])}"
        if parties["cost"] is not None:
            yield f"- cost of partner and judge: {parties['cost']:.4f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{escaped(name)} {count:,}" for name, count in counts.items()) or NONE


MOST_TASKS: Final = 30
"""Maximum number of listed tasks with different outcomes."""


def comparison(evaluations: Sequence[LoadedEvaluation]) -> str:
    """Return comparisons by pairs of one environment and split; `PairingError` if there is none."""
    pairs = [
        (a, b)
        for a, b in combinations(evaluations, 2)
        if (a.env_id, a.split) == (b.env_id, b.split)
    ]
    if not pairs:
        given = ", ".join(f"{one.env_id} {one.split}" for one in evaluations)
        raise PairingError(
            "a comparison needs two evaluations of one environment and split, got " + given
        )
    return "\n".join("\n".join(_lines(a, b, pair(a.result, b.result))) for a, b in pairs)


def _lines(first: LoadedEvaluation, second: LoadedEvaluation, paired: Pairing) -> Iterator[str]:
    yield f"**{escaped(first.label)} against {escaped(second.label)}**\n"
    played = dict.fromkeys(setting_of(one.result).title for one in (first, second))
    yield f"- {escaped('; '.join(played))}"
    yield (
        f"- the same {paired.units} episodes of {paired.tasks} tasks; left out: "
        f"{paired.only_first} that only the first finished, {paired.only_second} only the second"
    )
    for name, what in (("kwargs", "the environment's arguments"), ("max_turns", "turn limits")):
        values = [one.result["environment"].get(name) for one in (first, second)]
        if values[0] != values[1]:
            a, b = (escaped(json.dumps(value, sort_keys=True)) for value in values)
            yield f"- {what} differ, and so may the tasks: {a} and {b}"
    yield (
        f"- wins {paired.wins}, losses {paired.losses}, ties {paired.ties} "
        f"({paired.both} solved by both, {paired.neither} by none)"
    )
    yield f"- difference of success: {points(paired.success)}"
    yield f"- difference of score: {points(paired.score)}"
    if paired.p_value is not None:
        yield f"- exact McNemar test: p = {paired.p_value:.4f}"
    for title, won in (("first", True), ("second", False)):
        names = [f"{one.task_id} (seed {one.seed})" for one in paired.changed if one.first == won]
        if names:
            more = f", and {len(names) - MOST_TASKS} more" if names[MOST_TASKS:] else ""
            yield f"- solved by the {title} alone: {escaped(', '.join(names[:MOST_TASKS]))}{more}"
    yield ""


def points(difference: Difference) -> str:
    """Return a difference in points of percent, with its interval."""
    text = f"{100 * difference.mean:+.1f} points"
    if difference.interval is None:
        return f"{text}; no interval, since all tasks differ equally"
    low, high = difference.interval
    return f"{text} (95 % interval {100 * low:+.1f} to {100 * high:+.1f})"
