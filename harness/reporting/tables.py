"""Tables in the papers' layout: a row per base model and method, an environment's own columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.evaluation.breakdowns import name_of
from harness.reporting import others, reported
from harness.reporting.columns import Column, columns, detail_columns
from harness.reporting.loading import Evaluated
from harness.reporting.naming import Named, family_of, named
from harness.reporting.others import Setting
from harness.reporting.repeated import Repeated, by_seeds

OURS: Final = "ours"
_Columns = Callable[[str, Mapping[str, Any]], list[Column]]
_SIDE_BY_SIDE: Final = ("ALFWorld", "WebShop")
"""The papers put these two into one table."""

_SPLITS_SIDE_BY_SIDE: Final = ("AppWorld", "SOTOPIA")
"""And the splits of these, with each partner and judge."""


@dataclass(frozen=True, slots=True)
class Block:
    """Columns of one environment and split, and of one partner and judge where there are any.

    Attributes:
        setting: What was played.
        columns: What is shown of it.
    """

    setting: Setting
    columns: tuple[Column, ...]

    @property
    def title(self) -> str:
        """Environment and split, partner and judge."""
        return self.setting.title


@dataclass(frozen=True, slots=True)
class Cell:
    """A number in a table, as it is shown: percent, or a goal from 0 to 10.

    Attributes:
        mean: The number.
        std: Standard deviation over seeds, or None.
        interval: 95 % interval, shown where there is no deviation.
        decimals: How many are shown.
    """

    mean: float
    std: float | None = None
    interval: tuple[float, float] | None = None
    decimals: int = 1


@dataclass(slots=True)
class Row:
    """A row.

    Attributes:
        named: Base model, type and method.
        source: `OURS`, or `"reported: "` and where.
        cells: By the place of their block and their heading.
        missing: Episodes that are missing, by the place of their block; none of a paper's.
    """

    named: Named
    source: str
    cells: dict[tuple[int, str], Cell] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)

    @property
    def reported(self) -> bool:
        """Whether the numbers are a paper's."""
        return self.source != OURS


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        blocks: Left to right.
        rows: By base model, those of one model together, ours before reported ones.
        notes: What the reader has to know: seeds, tasks, missing episodes, sources.
        detailed: It breaks down what another table has in total.
    """

    blocks: tuple[Block, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    detailed: bool = False

    @property
    def title(self) -> str:
        """Environments and splits."""
        titles = [block.title for block in self.blocks]
        told = ("; " if any(", " in title for title in titles) else ", ").join(titles)
        return f"{told}: breakdown" if self.detailed else told

    @property
    def with_source(self) -> bool:
        """Whether some rows are a paper's, so that each says whose it is."""
        return any(row.reported for row in self.rows)

    def best(self) -> set[tuple[int, int, str]]:
        """Return the best cells of each column among the rows of one base model.

        Ours and papers' are not measured against each other: they may be on other data.

        Returns:
            Index of the row, place of the block, heading. None of a model that has one row alone.
        """
        found: set[tuple[int, int, str]] = set()
        sources = [
            [i for i in group if self.rows[i].reported == papers]
            for group in _by_model(self.rows)
            for papers in (False, True)
        ]
        for group in sources:
            places = {place for i in group for place in self.rows[i].cells} if group[1:] else set()
            for block, heading in places:
                told = [i for i in group if (block, heading) in self.rows[i].cells]
                shown = {i: _shown(self.rows[i].cells[block, heading]) for i in told}
                most = max(shown.values())
                found |= {(i, block, heading) for i, value in shown.items() if value == most}
        return found


def _by_model(rows: Sequence[Row]) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(family_of(row.named.model), []).append(index)
    return list(groups.values())


def _shown(cell: Cell) -> float:
    return round(cell.mean, cell.decimals)


def build(evaluations: Sequence[Evaluated], *, with_reported: bool = False) -> list[Table]:
    """Return the tables of evaluations: one for each environment and split.

    ALFWorld and WebShop stand side by side, as in the papers, and so do the splits of AppWorld and
    of SOTOPIA. Where there is more to tell, such as AppWorld's difficulties and SOTOPIA's
    dimensions, a second table has it. Evaluations that differ in their seeds alone are one row.

    Args:
        evaluations: Any, in the order of the rows.
        with_reported: Papers' results on the same environments stand beside them, never mixed with
            them: the main ones, and beside a breakdown those that are broken down.
    """
    blocks: dict[Setting, list[Evaluated]] = {}
    for one in evaluations:
        where = Setting(name_of(one.env_id), one.split, one.partner, one.judge)
        blocks.setdefault(where, []).append(one)
    built: list[Table] = []
    for keys in _sides(blocks):
        sides = [(key, by_seeds(blocks[key])) for key in keys]
        built.append(_table(sides, columns, reported.MAIN if with_reported else ""))
        detailed = [(key, rows) for key, rows in sides if _union(rows, detail_columns)]
        if detailed:
            kind = reported.DETAIL if with_reported else ""
            built.append(_table(detailed, detail_columns, kind))
    return built


def _sides(keys: Iterable[Setting]) -> list[list[Setting]]:
    """Return which environments and splits stand side by side."""
    sides: list[list[Setting]] = []
    for key in keys:
        for side in sides:
            names = {other.name for other in side}
            pair = {key.name, *names} == set(_SIDE_BY_SIDE) and len(side) == 1
            if pair or (key.name in _SPLITS_SIDE_BY_SIDE and names == {key.name}):
                side.append(key)
                side.sort(key=lambda of: _SIDE_BY_SIDE.index(of.name) if pair else 0)
                break
        else:
            sides.append([key])
    return sides


def _table(sides: Sequence[tuple[Setting, list[Repeated]]], chosen: _Columns, kind: str) -> Table:
    """Return a table.

    Args:
        sides: Environments and splits from left to right, with what was played there.
        chosen: Returns the columns of an evaluation.
        kind: Which of the papers' results stand beside ours, or "".
    """
    blocks: list[Block] = []
    rows: dict[Any, Row] = {}
    notes: list[str] = []
    for place, (where, evaluations) in enumerate(sides):
        blocks.append(Block(where, _union(evaluations, chosen)))
        for who, one in zip(_names(evaluations), evaluations, strict=True):
            row = rows.setdefault(who, Row(who, OURS))
            row.missing[place] = one.episodes("missing")
            row.cells |= {(place, c.heading): cell for c, cell in _cells(one, blocks[-1])}
            notes.append(_note(row.named, blocks[-1], one))
    if kind:
        notes += _add_reported(rows, blocks, kind)
    ordered = [list(rows.values())[i] for group in _by_model(list(rows.values())) for i in group]
    unique = tuple(dict.fromkeys(notes))
    return Table(tuple(blocks), tuple(ordered), unique, chosen is detail_columns)


def _union(evaluations: Sequence[Repeated], chosen: _Columns) -> tuple[Column, ...]:
    """Return the columns that any of them has, in the order of the one that has most."""
    members = [one for repeated in evaluations for one in repeated.members]
    told = sorted((chosen(one.env_id, one.figures) for one in members), key=len, reverse=True)
    found = {column.heading: column for columns_of_one in told for column in columns_of_one}
    counted = any(others.warnings(one.result) for one in members)
    return tuple(
        replace(column, heading=others.counted(column.heading)) if counted else column
        for column in found.values()
    )


def _names(evaluations: Sequence[Repeated]) -> list[Named]:
    """Return who played each; those that are alike otherwise have their labels, too."""
    plain = [named(one.first.result) for one in evaluations]
    return [
        Named(who.model, who.type, f"{who.method} ({one.label})") if plain.count(who) > 1 else who
        for who, one in zip(plain, evaluations, strict=True)
    ]


def _cells(one: Repeated, block: Block) -> Iterable[tuple[Column, Cell]]:
    for column in block.columns:
        mean = one.mean(column)
        if mean is not None:
            yield column, _cell(mean, column)


def _cell(mean: Mapping[str, Any], column: Column) -> Cell:
    scale, interval = column.scale, mean["interval"]
    return Cell(
        mean["mean"] * scale,
        None if mean["std"] is None else mean["std"] * scale,
        (interval[0] * scale, interval[1] * scale) if interval else None,
        column.decimals,
    )


def _note(who: Named, block: Block, one: Repeated) -> str:
    """Return how a row was counted, its missing episodes and incomplete scenarios named."""
    result = one.first.result
    environment, step = result["environment"], result.get("training", result["model"]).get("step")
    told = [f"{environment['tasks']} tasks"]
    for what, seeds in (("seed", one.seeds), ("training seed", one.training_seeds)):
        if seeds:
            told.append(f"{what}{'s' if seeds[1:] else ''} {', '.join(map(str, seeds))}")
    if environment.get("max_turns"):
        told.append(f"at most {environment['max_turns']} turns")
    if environment.get("data_version"):
        told.append(f"data {environment['data_version']}")
    if step is not None:
        told.append(f"step {step} of training")
    note = f"{who.text}, {block.title}: {', '.join(told)}"
    if one.episodes("missing"):
        note += f"; {one.episodes('missing')} of {one.episodes('planned')} episodes are MISSING"
    if left_out := one.incomplete_scenarios:
        note += f"; {left_out} scenario{'s' * (left_out > 1)} INCOMPLETE, in TGC alone"
    if unrated := one.unrated:
        note += f"; {unrated} episode{'s' * (unrated > 1)} WITHOUT A RATING, in no goal"
    return "; ".join([note, *others.warnings(result)])


def _add_reported(rows: dict[Any, Row], blocks: Sequence[Block], kind: str) -> list[str]:
    """Add papers' rows; equal ones of several papers are one row. Return the notes."""
    found: dict[Any, Row] = {}
    notes: list[str] = []
    for place, block in enumerate(blocks):
        headings = [column.heading for column in block.columns]
        name, split, partner, judge = block.setting
        for told in reported.beside(name, split, kind, partner=partner, judge=judge):
            cells = {
                (place, h): Cell(n.mean, n.std, None, n.decimals)
                for h, n in told.numbers.items()
                if h in headings
            }
            if cells:
                who = Named(told.model, told.type, told.method)
                row = found.setdefault((told.source, who), Row(who, told.source))
                row.cells |= cells
                notes.append(f"{told.source}: {told.note}")
    for (_, who), row in found.items():
        numbers = tuple(sorted(row.cells.items(), key=str))
        first = rows.setdefault((who, str(numbers)), Row(who, "reported: ", row.cells))
        first.source += row.source if first.source == "reported: " else f"; {row.source}"
    return notes
