"""Draws an audit: each method's figures with their intervals, beside the ceilings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from harness.audit.agreement import NAMES, Agreement
from harness.reporting.curves import success_curves
from harness.reporting.results.agent_names import method_name

_POINT: Final = "#0072b2"
_CEILING: Final = "#d55e00"


def draw(path: Path, agreement: Agreement, title: str) -> None:
    """Draw a panel for each figure that is defined; methods are rows, in their order.

    Args:
        path: A `.png` or `.svg` file.
        agreement: Of at least one method.
        title: What was measured.

    Raises:
        ConfigError: The file's name ends in neither `.png` nor `.svg`.
        OSError: It cannot be written.
    """
    success_curves.check_kind(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    methods = agreement.figures
    shown = [n for n in NAMES if any(math.isfinite(f[n].value) for f in methods.values())]
    size = (2.1 * len(shown) + 1.2, 0.28 * len(methods) + 1.4)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{title}; dashed: the truth measured again", x=0.01, ha="left", fontsize=10)
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
        axes.set_title(name.replace("_", " "), loc="left", fontsize=9)
        axes.set_yticks(rows, list(map(method_name, methods)) if number == 1 else [])
        axes.set_ylim(len(methods) - 0.5, -0.5)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    success_curves.save(figure, path)
