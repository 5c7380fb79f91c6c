"""The columns of each environment's table, in the papers' order and with their headings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.evaluation.breakdowns import ALFWORLD, ALL, DIMENSIONS, name_of


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an environment's table.

    Attributes:
        heading: As in the papers.
        path: Keys that lead to the mean in an evaluation's figures.
        scale: What a mean is multiplied by before it is shown: 100 for percent.
        decimals: How many are shown.
    """

    heading: str
    path: tuple[str, ...]
    scale: float = 100.0
    decimals: int = 1

    def mean(self, figures: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the mean of this column, as `mean_of` does, or None where there is none."""
        found: Any = figures
        for key in self.path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if found and found["mean"] is not None else None


def columns(env_id: str, figures: Mapping[str, Any]) -> list[Column]:
    """Return the columns of an environment's table.

    Args:
        env_id: Such as `agentgyms/ALFWorld-v0`.
        figures: Of an evaluation on it: what it has no fixed groups for is named there. An
            environment that is not of the papers has its families, all, and its score where that
            is another number than success.
    """
    name = name_of(env_id)
    if name in _FIXED:
        return list(_FIXED[name])
    return _NAMED_THERE.get(name, _families)(figures)


def detail_columns(env_id: str, figures: Mapping[str, Any]) -> list[Column]:
    """Return the columns of an environment's second table, [] where it has none.

    AppWorld has both completions by difficulty, as in SALT's Table 3, SOTOPIA its dimensions, and
    Sokoban success by the number of boxes.

    Args:
        env_id: Such as `agentgyms/AppWorld-v0`.
        figures: Of an evaluation on it.
    """
    make = _DETAILED.get(name_of(env_id))
    found = make(figures.get("breakdowns", {})) if make else []
    return [column for column in found if column.mean(figures)]


def _levels(told: Mapping[str, Any]) -> list[Column]:
    levels = [level for level in told.get("Difficulty", {}) if level != ALL]
    return [
        Column(f"{name} D{level}", ("breakdowns", "Difficulty", level, name))
        for name in ("TGC", "SGC")
        for level in levels
    ]


def _dimensions(_: Mapping[str, Any]) -> list[Column]:
    at = ("breakdowns", "Dimension")
    return [Column(name, (*at, name, "Mean"), 1.0, 2) for name in DIMENSIONS.values()]


def _boxes(told: Mapping[str, Any]) -> list[Column]:
    numbers = list(told.get("Boxes", {}))
    return [
        Column(f"{n} box{'' if n == '1' else 'es'}", ("breakdowns", "Boxes", n, "success"))
        for n in (numbers if len(numbers) > 1 else ())
    ]


def _families(figures: Mapping[str, Any]) -> list[Column]:
    names = [name for name in figures.get("families", {}) if name]
    named = [Column(name, ("families", name, "success")) for name in names]
    scores = [Column("Score", ("score",))] if _differ(figures) else []
    return [*(named if len(named) > 1 else []), Column(ALL, ("success",)), *scores]


def _differ(figures: Mapping[str, Any]) -> bool:
    score, success = (figures.get(name, {}).get("mean") for name in ("score", "success"))
    return score is not None and success is not None and abs(score - success) > 1e-9


def _data_sets(figures: Mapping[str, Any]) -> list[Column]:
    at = ("breakdowns", "Data set")
    names = [name for name in figures.get("breakdowns", {}).get("Data set", {}) if name != ALL]
    whole = [Column(measure, (*at, ALL, measure)) for measure in ("EM", "F1")]
    return [*(Column(name, (*at, name, "EM")) for name in names), *whole]


def _goals(figures: Mapping[str, Any]) -> list[Column]:
    names = list(figures.get("breakdowns", {}).get("Goal", {ALL: {}}))
    return [Column(f"Goal ({n})", ("breakdowns", "Goal", n, "Mean"), 1.0, 2) for n in names]


_SHOP: Final = (Column("Score", ("score",)), Column("Succ.", ("success",)))
_FIXED: Final[dict[str, tuple[Column, ...]]] = {
    "ALFWorld": (
        *(Column(heading, ("families", name, "success")) for name, heading in ALFWORLD.items()),
        Column(ALL, ("success",)),
    ),
    "WebShop": _SHOP,
    "WebShopBrowser": _SHOP,
    "AppWorld": tuple(Column(n, ("breakdowns", "Difficulty", ALL, n)) for n in ("TGC", "SGC")),
}
_NAMED_THERE: Final[dict[str, Callable[[Mapping[str, Any]], list[Column]]]] = {
    "SearchQA": _data_sets,
    "SOTOPIA": _goals,
}
_DETAILED: Final[dict[str, Callable[[Mapping[str, Any]], list[Column]]]] = {
    "AppWorld": _levels,
    "SOTOPIA": _dimensions,
    "Sokoban": _boxes,
    "VisualSokoban": _boxes,
}
