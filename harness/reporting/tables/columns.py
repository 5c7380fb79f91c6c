"""The columns of each environment's table, in the papers' order and with their headings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

    @property
    def is_total(self) -> bool:
        """Whether it is of all tasks, and not of a family or a question set."""
        return self.path[0] != "families" and ("Data set" not in self.path or ALL in self.path)

    def mean(self, figures: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return this column's mean in the form of `mean_of`, or None if there is none."""
        found = inner(figures, self.path)
        return found if found and found["mean"] is not None else None


def inner(values: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return a value of nested dictionaries; None if there is none."""
    found: Any = values
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def columns(env_id: str, figures: Mapping[str, Any]) -> list[Column]:
    """Return the columns of an environment's table, such as that of `agentgyms/ALFWorld-v0`.

    An environment that is not in the papers has a column for each family, one for all tasks, and
    one for the score if it differs from success.
    """
    name = env_name(env_id)
    if name in _FIXED:
        return list(_FIXED[name])
    return _FROM_FIGURES.get(name, _families)(figures)


def detail_columns(env_id: str, figures: Mapping[str, Any]) -> list[Column]:
    """Return the columns of a second table, AppWorld's as in SALT's Table 3; [] if it has none."""
    name, breakdowns = env_name(env_id), figures.get("breakdowns", {})
    found: list[Column] = []
    if name == "AppWorld":
        levels = [level for level in breakdowns.get("Difficulty", {}) if level != ALL]
        found = [
            Column(f"{goal} D{level}", ("breakdowns", "Difficulty", level, goal))
            for goal in ("TGC", "SGC")
            for level in levels
        ]
    elif name == "SOTOPIA":
        at = ("breakdowns", "Dimension")
        found = [Column(name, (*at, name, "Mean"), 1.0, 2) for name in DIMENSIONS.values()]
    elif name in ("Sokoban", "VisualSokoban") and len(breakdowns.get("Boxes", {})) > 1:
        found = [
            Column(f"{n} box{'' if n == '1' else 'es'}", ("breakdowns", "Boxes", n, "success"))
            for n in breakdowns["Boxes"]
        ]
    return [column for column in found if column.mean(figures)]


def _families(figures: Mapping[str, Any]) -> list[Column]:
    names = [name for name in figures.get("families", {}) if name]
    named = [Column(name, ("families", name, "success")) for name in names]
    means = [figures.get(name, {}).get("mean") for name in ("score", "success")]
    differs = None not in means and abs(means[0] - means[1]) > 1e-9
    scores = [Column("Score", ("score",))] if differs else []
    return [*(named if len(named) > 1 else []), Column(ALL, ("success",)), *scores]


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
