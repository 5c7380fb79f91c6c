"""Pictures of panels as `.png` or `.svg` files: lines, bands, points with bars, stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agentgyms.data import writing
from harness.types.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#4d4d4d")
"""The palette of Okabe and Ito, safe for colour-blind readers, without yellow."""
_STYLES: Final = ("-", "--", ":")
_MOST_BARS: Final = 60
_ACROSS: Final = 3
"""Panels in a row."""
_KINDS: Final = (".png", ".svg")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel, with a band from `low` to `high`, or points with bars to them."""

    label: str  # "" is not in the legend
    steps: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    colour: str = ""  # by default the panel's next one
    marker: str = ""
    dashed: bool = False
    points: bool = False  # bars in place of the band
    joined: bool = True  # whether the values, where they are points, are joined by a line
    smoothed: tuple[float, ...] = ()  # a running mean, below which the values are faint
    width: float = 1.2

    @classmethod
    def through(
        cls,
        label: str,
        by_step: Mapping[Any, float],
        ends: Sequence[Sequence[float]] = (),
        /,
        **look: Any,
    ) -> Line:
        """Return the line of values by their steps; `ends` are the band's or the bars', if any."""
        low, high = zip(*ends, strict=True) if ends else ((), ())
        return cls(label, tuple(by_step), tuple(by_step.values()), low, high, **look)


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel of a picture; `top` is the upper end of the y-axis, which begins at 0 then."""

    title: str
    lines: tuple[Line, ...]
    top: float | None = None
    logarithmic: bool = False  # the y-axis, if all values are positive
    stacked: bool = False  # lines as stacked bars
    labels: tuple[str, str] = ("", "")  # of the axes
    ticks: tuple[tuple[float, ...], tuple[str, ...]] | None = None  # places and names on the x-axis


def check_kind(path: str | Path) -> None:
    """Check that a picture's file ends in `.png` or `.svg`; raise `ConfigError` if not."""
    if Path(path).suffix not in _KINDS:
        raise ConfigError(f"a curve's file must end in {' or '.join(_KINDS)}, got {path}")


def new(
    width: float, height: float, title: str = "", dpi: int = 150, layout: Any = "constrained"
) -> Figure:
    """Return an empty figure; sizes are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout=layout)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure into a `.png` or `.svg` file, equal ones into equal files."""
    import matplotlib

    metadata = {"Date": None} if path.suffix == ".svg" else None
    with (
        matplotlib.rc_context({"svg.hashsalt": "agentgyms"}),
        writing.replacing(path) as drawn_file,
    ):
        figure.savefig(drawn_file, format=path.suffix[1:], metadata=metadata)


def draw(
    path: str | Path,
    panels: Sequence[Panel],
    title: str = "",
    *,
    size: tuple[float, float] = (5, 3.4),
    dpi: int = 150,
    last: float | None = None,
) -> None:
    """Draw panels of one size, in inches, three in a row; an existing file is overwritten.

    With `last`, all x-axes go from 0 to it. An ending other than `.png` and `.svg` is a
    `ConfigError`.
    """
    check_kind(path)
    across = min(_ACROSS, len(panels))
    rows = -(-len(panels) // across)
    width, height = size[0] * across, size[1] * rows
    figure = new(width, height, title, dpi, layout="none" if rows > 1 else "constrained")
    if rows > 1:  # twice as fast as a layout that is computed
        left, bottom, top = 0.85 / width, 0.45 / height, 1 - 0.6 / height
        figure.subplots_adjust(left, bottom, 1 - 0.15 / width, top, wspace=0.2, hspace=0.35)
    for place, panel in enumerate(panels, 1):
        axes = figure.add_subplot(rows, across, place)
        fill(axes, panel)
        if last is not None:
            axes.set_xlim(0, max(last, 1) + 0.5 * panel.stacked)
        if any(line.label for line in panel.lines):
            columns = 1 + (len(panel.lines) > 3)
            axes.legend(fontsize=7, framealpha=0.7, edgecolor="none", ncols=columns)
    save(figure, Path(path))


def fill(axes: Any, panel: Panel) -> None:
    """Draw a panel into the axes of matplotlib, without a legend."""
    from matplotlib.ticker import MaxNLocator

    if panel.stacked:
        _stack(axes, panel.lines)
    for number, line in enumerate(() if panel.stacked else panel.lines):
        style = "--" if line.dashed else _STYLES[number // len(COLOURS) % len(_STYLES)]
        _plot(axes, line, line.colour or COLOURS[number % len(COLOURS)], style)
    if panel.ticks:
        axes.set_xticks(*panel.ticks)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if panel.logarithmic and all(value > 0 for line in panel.lines for value in line.values):
        axes.set_yscale("log")
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5))
    if panel.top is not None:
        axes.set_ylim(-0.02 * panel.top, 1.02 * panel.top)
    axes.set_xlabel(panel.labels[0], fontsize=8)
    axes.set_ylabel(panel.labels[1], fontsize=8)
    finish(axes, panel.title)


def finish(axes: Any, title: str) -> None:
    """Give axes their title, and the look that all panels share."""
    axes.set_title(title, loc="left", fontsize=9)
    axes.tick_params(labelsize=8, length=2)
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _plot(axes: Any, line: Line, colour: str, style: str) -> None:
    values, low, high = (np.asarray(ends, float) for ends in (line.values, line.low, line.high))
    marker = line.marker or ("o" if len(line.steps) == 1 else "")  # one point has no line to see
    look = {"color": colour, "marker": marker, "markersize": 4, "label": line.label or None}
    look |= {"linestyle": style if line.joined else "", "linewidth": line.width}
    if line.points:
        bars = [values - low, high - values] if len(low) else None
        axes.errorbar(line.steps, values, yerr=bars, capsize=4, **look)
        return
    if line.smoothed:
        axes.plot(line.steps, values, color=colour, linestyle=style, linewidth=0.5, alpha=0.3)
    axes.plot(line.steps, line.smoothed or values, **look)
    if len(low):
        axes.fill_between(line.steps, low, high, color=colour, alpha=0.15, linewidth=0)


def _stack(axes: Any, lines: Sequence[Line]) -> None:
    """Draw stacked bars; if there are many steps, a bar is the mean over neighbouring steps."""
    steps = np.asarray(lines[0].steps, float)
    parts = np.array_split(np.arange(len(steps)), min(len(steps), _MOST_BARS))
    place = np.array([steps[part].mean() for part in parts])
    width = 0.9 * (place[1] - place[0]) if len(place) > 1 else 0.8
    floor = np.zeros(len(parts))
    for number, line in enumerate(lines):
        height = np.array([np.asarray(line.values)[part].mean() for part in parts])
        colour = COLOURS[number % len(COLOURS)]
        axes.bar(place, height, width, floor, color=colour, label=line.label, linewidth=0)
        floor += height
    axes.margins(x=0.01)
