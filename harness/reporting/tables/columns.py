"""The columns of each environment's table, in the papers' order and with their headings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harness.evaluation.breakdowns import ALFWORLD, ALL, DIMENSIONS, env_name


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an environment's table."""

    heading: str
    path: tuple[str, ...]  # keys of the mean in an evaluation's figures
    scale: float = 100.0  # factor on the mean before it is shown: 100 for percent
    decimals: int = 1

    def mean(self, figures: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return this column's mean in the form of `mean_of`, or None if there is none."""
        found: Any = figures
        for key in self.path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found if found and found["mean"] is not None else None


def columns(env_id: str, figures: Mapping[str, Any]) -> list[Column]:
    """Return the columns of an environment's table, such as that of `agentgyms/ALFWorld-v0`.

    An environment that is not in the papers has a column for each family that the figures
    name, one for all tasks, and one for the score if it differs from success.
    """
    name = env_name(env_id)
    if name in _FIXED:
        return list(_FIXED[name])
    return _FROM_FIGURES.get(name, _families)(figures)


def detail_columns(env_id: str, figures: Mapping[str, Any]) -> list[Column]:
    """Return the columns of an environment's second table; [] if it has none.

    AppWorld has both goal completions by difficulty, as in SALT's Table 3, SOTOPIA has its
    dimensions, and Sokoban has success by number of boxes.
    """
    make = _DETAILED.get(env_name(env_id))
    found = make(figures.get("breakdowns", {})) if make else []
    return [column for column in found if column.mean(figures)]


def _levels(breakdowns: Mapping[str, Any]) -> list[Column]:
    levels = [level for level in breakdowns.get("Difficulty", {}) if level != ALL]
    return [
        Column(f"{name} D{level}", ("breakdowns", "Difficulty", level, name))
        for name in ("TGC", "SGC")
        for level in levels
    ]


def _dimensions(_: Mapping[str, Any]) -> list[Column]:
    at = ("breakdowns", "Dimension")
    return [Column(name, (*at, name, "Mean"), 1.0, 2) for name in DIMENSIONS.values()]


def _boxes(breakdowns: Mapping[str, Any]) -> list[Column]:
    numbers = list(breakdowns.get("Boxes", {}))
    return [
        Column(f"{n} box{'' if n == '1' else 'es'}", ("breakdowns", "Boxes", n, "success"))
        for n in (numbers if len(numbers) > 1 else ())
    ]


def _families(figures: Mapping[str, Any]) -> list[Column]:
    names = [name for name in figures.get("families", {}) if name]
    named = [Column(name, ("families", name, "success")) for name in names]
    scores = [Column("Score", ("score",))] if _score_differs(figures) else []
    return [*(named if len(named) > 1 else []), Column(ALL, ("success",)), *scores]


def _score_differs(figures: Mapping[str, Any]) -> bool:
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
_FROM_FIGURES: Final[dict[str, Callable[[Mapping[str, Any]], list[Column]]]] = {
    "SearchQA": _data_sets,
    "SOTOPIA": _goals,
}
_DETAILED: Final[dict[str, Callable[[Mapping[str, Any]], list[Column]]]] = {
    "AppWorld": _levels,
    "SOTOPIA": _dimensions,
    "Sokoban": _boxes,
    "VisualSokoban": _boxes,
}
