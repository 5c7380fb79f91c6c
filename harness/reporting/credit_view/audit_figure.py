"""Draws an audit: each method's figures with their intervals, beside the ceilings."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness.audit.agreement import NAMES, Agreement
from harness.reporting import figure as pictures
from harness.reporting.credit_view.audit_text import GROUP_SIZE
from harness.reporting.figure import Line, Panel
from harness.reporting.results.agent_names import method_name

_POINT: Final = "#0072b2"
_CEILING: Final = "#d55e00"
_BY_SIZE: Final = ("spearman", "within_rollouts", "gradient", "sign", "snr")
"""Figures that are drawn against the size of a group."""


def draw(
    path: Path, agreement: Agreement, title: str, parts: Mapping[str, Mapping[str, Agreement]]
) -> None:
    """Draw a panel for each defined figure; methods are rows, in their order.

    If the parts have two group sizes or more, panels below show figures over the size, with a line
    for each method. The file is `.png` or `.svg`; another ending is a `ConfigError`.
    """
    pictures.check_kind(path)
    shown = [name for name in NAMES if _is_known(agreement, name)]
    sizes = {int(size): own for size, own in parts.get(GROUP_SIZE, {}).items()}
    by_size = [n for n in _BY_SIZE if any(_is_known(one, n) for one in sizes.values())]
    compares = len(sizes) > 1 and bool(by_size)  # without evidence no figure is told
    heights = [0.28 * len(agreement.figures) + 1.4, *([3.2] if compares else [])]
    evidence = agreement.evidence
    lines = [
        f"{title}; {evidence.mixed} of {evidence.groups} groups mixed; "
        "dashed: the truth measured again",
        *(part for warning in evidence.warnings for part in textwrap.wrap(warning, 100)),
    ]
    width = 2.1 * max(3, len(shown)) + 1.2
    figure = pictures.new(width, sum(heights), "\n".join(lines))
    rows = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_methods(rows[0], agreement, shown)
    if compares:
        _draw_sizes(rows[1], sizes, by_size)
    pictures.save(figure, path)


def _is_known(agreement: Agreement, name: str) -> bool:
    methods = agreement.figures.values()
    return any(name in found and math.isfinite(found[name].value) for found in methods)


def _draw_methods(figure: Any, agreement: Agreement, shown: list[str]) -> None:
    methods = agreement.figures
    rows = range(len(methods))
    for number, name in enumerate(shown, 1):
        axes = figure.add_subplot(1, len(shown), number)
        found = [figures[name] for figures in methods.values()]
        for row, one in zip(rows, found, strict=True):
            axes.plot(one.interval, (row, row), color=_POINT, lw=1.5)
        axes.plot([one.value for one in found], rows, "o", color=_POINT, ms=4)
        ceiling = agreement.ceilings.get(name, math.nan)
        if math.isfinite(ceiling):
            axes.axvline(ceiling, color=_CEILING, lw=1.5, ls="--")
        axes.axvline(0, color="#999999", lw=0.8)
        count = agreement.evidence.of[name]
        axes.set_yticks(rows, list(map(method_name, methods)) if number == 1 else [])
        axes.set_ylim(len(methods) - 0.5, -0.5)
        title = f"{name.replace('_', ' ')}\n{count.tasks} tasks, {count.turns:,} turns"
        pictures.finish(axes, title)


def _draw_sizes(figure: Any, sizes: Mapping[int, Agreement], shown: list[str]) -> None:
    from matplotlib import colormaps

    ordered = dict(sorted(sizes.items()))
    colours: Any = colormaps["tab20"]
    markers = "osD^v<>ph*XP"
    ticks = tuple(ordered), tuple(map(str, ordered))
    for number, name in enumerate(shown, 1):
        lines = []
        for i, method in enumerate(next(iter(ordered.values())).figures):
            figures = {size: one.figures[method] for size, one in ordered.items()}
            known = {size: own[name].value for size, own in figures.items() if name in own}
            colour = colours.colors[(2 * i + i // 10) % colours.N]
            look = {"colour": colour, "marker": markers[i % len(markers)]}
            lines.append(Line.through(method_name(method), known, **look))
        known = {size: one.ceilings[name] for size, one in ordered.items() if name in one.ceilings}
        ceiling = Line.through("", known, colour=_CEILING, dashed=True)
        axes = figure.add_subplot(1, len(shown), number)
        axes.set_xscale("log", base=2)
        title = f"{name.replace('_', ' ')} by group size"
        pictures.fill(axes, Panel(title, (*lines, ceiling), ticks=ticks))
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", fontsize=8, frameon=False)
