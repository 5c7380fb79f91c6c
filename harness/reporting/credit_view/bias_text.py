"""The bias laboratory's figures as text, CSV, JSON and a picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from harness.audit.bias import Cell, Estimate, Lacking
from harness.credit.table import TurnTable
from harness.reporting import figure
from harness.reporting.credit_view import compare
from harness.reporting.credit_view.compare import Choice, setting_text
from harness.reporting.figure import Line, Panel
from harness.reporting.table import Table
from harness.types.arrays import Floats

_SCALES: Final[dict[str, tuple[Any, ...]]] = {
    "norm": ("std", "mean"),
    "scale": ("rms", "none"),
    "whiten": (True, False),
}
"""Hyperparameters that divide by a deviation, with their values: with, and without it."""

_DISCOUNTED: Final = {"graft"}
"""Estimators whose values need a discount; they keep theirs."""

HEADINGS: Final = (
    *("world", "turns", "group", "  method", "scale", "+-", "off %", "unseen %", "errors"),
    *("noise", "  verdict"),
)
_FORMS: Final = ("12", ">6", ">6", "34", ">8", ">7", ">8", ">9", ">7", ">7", "")


def estimators(choices: Sequence[Choice]) -> dict[str, Estimate]:
    """Return the estimators of chosen methods, by a name that has what differs.

    A method that divides by a deviation is there with and without that, unless the caller has said
    which. Returns are not discounted, as the exact ones are not, unless the caller set `gamma`.
    """
    found: dict[str, Estimate] = {}
    for choice in choices:
        for one, words in _variants(choice):
            given = {key: choice.settings[key] for key in sorted(choice.given)}
            told = [f"{key}={setting_text(value)}" for key, value in (given | words).items()]
            found[" ".join([choice.name, *told])] = _estimate(one)
    return found


def _variants(choice: Choice) -> Iterable[tuple[Choice, dict[str, Any]]]:
    settings = dict(choice.settings)
    if not {"gamma", choice.estimator} & (choice.given | _DISCOUNTED) and "gamma" in settings:
        settings["gamma"] = 1.0
    key = next((k for k in _SCALES if k in settings and k not in choice.given), None)
    if key is None:
        yield replace(choice, settings=settings), {}
        return
    with_it, without = _SCALES[key]
    own = settings[key] if settings[key] != without else with_it
    for value in (own, without):
        yield replace(choice, settings=settings | {key: value}), {key: value}


def _estimate(choice: Choice) -> Estimate:
    def estimate(turns: TurnTable) -> Floats:
        (found,) = compare.compare(turns, [choice])
        if found.advantage is None:
            raise Lacking(*found.missing)
        return found.advantage

    return estimate


def to_text(cells: Sequence[Cell], lacking: Mapping[str, Sequence[str]]) -> str:
    """Return an aligned table, its legend, and the methods that were left out with the reason."""
    rows = [
        [
            cell.world, cell.length, cell.size, f"  {cell.name}",
            f"{cell.bias.scale:.3f}", f"{cell.bias.scale_error:.3f}",
            *(_shown(100 * value, 1) for value in (cell.bias.off, cell.bias.unseen)),
            _shown(cell.bias.score, 1), _shown(cell.bias.noise, 2),
            f"  {cell.bias.verdict}",
        ]
        for cell in cells
    ]  # fmt: skip
    out = [f"{name}: needs {', '.join(missing)}" for name, missing in lacking.items()]
    below = "\n".join(["left out, because this world does not have their columns:", *out])
    return "\n\n".join([Table(HEADINGS, rows).text(*_FORMS), _LEGEND, *([below] if out else [])])


_LEGEND: Final = """\
scale     mean gradient along the exact one, 1 if it is as long; +- is its standard error
off       mean gradient across the exact one, in percent of its part along it; 0 if noise hides it
unseen    what noise alone would show there on average
errors    standard errors by which `off` differs from none; above 4 the direction is biased
noise     deviation of one step's gradient, as a multiple of the mean along the exact one
verdict   unbiased; scaled: only the length is wrong; biased: the direction is"""


def _shown(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"


def records(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the figures with all digits, for JSON; what is not known is None."""
    found = []
    for cell in cells:
        values = {k: v for k, v in asdict(cell).items() if k != "bias"} | asdict(cell.bias)
        known = {
            k: None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in values.items()
        }
        found.append({**known, "verdict": cell.bias.verdict})
    return found


def to_csv(cells: Sequence[Cell]) -> str:
    """Return the figures with all digits as CSV."""
    rows = records(cells)
    return Table(list(rows[0]) if rows else HEADINGS, [list(row.values()) for row in rows]).csv()


def draw(path: Path, cells: Sequence[Cell]) -> None:
    """Draw the bias over the size of groups: panels by world, lines by method.

    Bands are the differences that noise alone would show. An unknown bias has no point.
    """
    worlds = list(dict.fromkeys((cell.world, cell.length) for cell in cells))
    panels = [
        _panel(f"{world}, {length} turns", [c for c in cells if (c.world, c.length) == place])
        for place in worlds
        for world, length in [place]
    ]
    figure.draw(path, panels, size=(5, 3.6))


def _panel(title: str, cells: Sequence[Cell]) -> Panel:
    sizes = sorted({cell.size for cell in cells})
    ticks = tuple(math.log2(size) for size in sizes), tuple(map(str, sizes))
    lines = []
    for name in dict.fromkeys(cell.name for cell in cells):
        own = [cell for cell in cells if cell.name == name and math.isfinite(cell.bias.off)]
        values = {math.log2(cell.size): 100 * cell.bias.off for cell in own}
        shares = [(cell.bias.off, cell.bias.unseen) for cell in own]
        ends = [(100 * max(0.0, off - unseen), 100 * (off + unseen)) for off, unseen in shares]
        lines.append(Line.through(name, values, ends, marker="o"))
    labels = ("group size", "off the direction (%)")
    return Panel(title, tuple(lines), labels=labels, ticks=ticks)
