"""Tables in the papers' layout: a row per base model and method, columns by environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.reporting.results import paper_results
from harness.reporting.results import setting as settings
from harness.reporting.results.agent_names import AgentName, agent_name, model_key
from harness.reporting.results.loading import LoadedEvaluation
from harness.reporting.results.seed_groups import SeedGroup, group_by_seeds
from harness.reporting.results.setting import OFFICIAL, Setting, setting_of, warnings
from harness.reporting.tables.columns import Column, columns, detail_columns

OURS: Final = "ours"
_Columns = Callable[[str, Mapping[str, Any]], list[Column]]
_SIDE_BY_SIDE: Final = ("ALFWorld", "WebShop")
"""The papers show these two environments in one table."""

_SPLITS_SIDE_BY_SIDE: Final = ("AppWorld", "SOTOPIA")
"""One table shows all splits of each of these, with each partner and judge."""


@dataclass(frozen=True, slots=True)
class Block:
    """The columns of one setting: environment, split, partner and judge."""

    setting: Setting
    columns: tuple[Column, ...]

    @property
    def title(self) -> str:
        """The setting in words."""
        return self.setting.title


@dataclass(frozen=True, slots=True)
class Cell:
    """A number in a table in its displayed unit: percent, or a goal from 0 to 10."""

    mean: float
    std: float | None = None
    interval: tuple[float, float] | None = None  # 95 % interval, shown if there is no deviation
    decimals: int = 1


@dataclass(slots=True)
class Row:
    """A row of a table."""

    agent: AgentName
    source: str  # `OURS`, or `"reported: "` and the paper's table
    # cells by their block's index and their heading
    cells: dict[tuple[int, str], Cell] = field(default_factory=dict)
    # evaluations by the block's index; empty for a paper's row
    groups: dict[int, SeedGroup] = field(default_factory=dict)

    @property
    def reported(self) -> bool:
        """Whether the numbers are a paper's."""
        return self.source != OURS


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of evaluations."""

    blocks: tuple[Block, ...]
    rows: tuple[Row, ...]  # rows grouped by base model, ours before reported ones
    notes: tuple[str, ...]  # seeds, tasks, missing episodes and sources
    detailed: bool = False  # whether it breaks down the totals of another table

    @property
    def title(self) -> str:
        """Environments and splits."""
        titles = [block.title for block in self.blocks]
        title = ("; " if any(", " in title for title in titles) else ", ").join(titles)
        return f"{title}: breakdown" if self.detailed else title

    @property
    def with_source(self) -> bool:
        """Whether some rows are a paper's, so that each row shows its source."""
        return any(row.reported for row in self.rows)

    def best(self) -> set[tuple[int, int, str]]:
        """Return row, block and heading of the best cells of a column among a base model's rows.

        Our rows and the papers' rows are compared separately, because their data may differ. A
        model with a single row has none.
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
                holders = [i for i in group if (block, heading) in self.rows[i].cells]
                cells = {i: self.rows[i].cells[block, heading] for i in holders}
                shown = {i: round(cell.mean, cell.decimals) for i, cell in cells.items()}
                most = max(shown.values())
                found |= {(i, block, heading) for i, value in shown.items() if value == most}
        return found


def _by_model(rows: Sequence[Row]) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(model_key(row.agent.model), []).append(index)
    return list(groups.values())


def build(
    evaluations: Sequence[LoadedEvaluation], *, with_reported: bool = False
) -> list[ResultTable]:
    """Return the tables of evaluations: one for each environment and split.

    ALFWorld and WebShop share a table, as in the papers, and so do the splits of AppWorld and of
    SOTOPIA. A second table has AppWorld's difficulties, SOTOPIA's dimensions or Sokoban's numbers
    of boxes. Evaluations that differ only in their seeds are one row. The papers' results may stand
    beside official data; a note says where they were left out.
    """
    blocks: dict[Setting, list[LoadedEvaluation]] = {}
    for one in evaluations:
        blocks.setdefault(setting_of(one.result), []).append(one)
    built: list[ResultTable] = []
    main, detail = (paper_results.MAIN, paper_results.DETAIL) if with_reported else ("", "")
    for keys in _side_by_side(blocks):
        sides = [(key, group_by_seeds(blocks[key])) for key in keys]
        built.append(_table(sides, columns, main))
        if detailed := [(key, rows) for key, rows in sides if _union(rows, detail_columns)]:
            built.append(_table(detailed, detail_columns, detail))
    return built


def _side_by_side(keys: Iterable[Setting]) -> list[list[Setting]]:
    sides: list[list[Setting]] = []
    for key in keys:
        for side in sides:
            names = {other.name for other in side}
            pair = {key.name, *names} == set(_SIDE_BY_SIDE) and len(side) == 1
            if key.data != side[0].data:
                continue
            if pair or (key.name in _SPLITS_SIDE_BY_SIDE and names == {key.name}):
                side.append(key)
                side.sort(key=lambda of: _SIDE_BY_SIDE.index(of.name) if pair else 0)
                break
        else:
            sides.append([key])
    return sides


def _table(
    sides: Sequence[tuple[Setting, list[SeedGroup]]], chosen: _Columns, kind: str
) -> ResultTable:
    """Return a table of settings from left to right; `kind` names the papers' results to add."""
    blocks: list[Block] = []
    rows: dict[Any, Row] = {}
    notes: list[str] = []
    for place, (where, evaluations) in enumerate(sides):
        blocks.append(Block(where, _union(evaluations, chosen)))
        for agent, one in zip(_agent_names(evaluations), evaluations, strict=True):
            row = rows.setdefault(agent, Row(agent, OURS))
            row.groups[place] = one
            means = ((column, one.mean(column)) for column in blocks[-1].columns)
            row.cells |= {(place, c.heading): cell_of(mean, c) for c, mean in means if mean}
            notes.append(_note(row.agent, blocks[-1], one))
    if kind:
        notes += _add_reported(rows, blocks, kind)
    ordered = [list(rows.values())[i] for group in _by_model(list(rows.values())) for i in group]
    unique = tuple(dict.fromkeys(notes))
    return ResultTable(tuple(blocks), tuple(ordered), unique, chosen is detail_columns)


def _union(evaluations: Sequence[SeedGroup], chosen: _Columns) -> tuple[Column, ...]:
    """Return the columns that any evaluation has, in the order of the one with most columns."""
    members = [one for repeated in evaluations for one in repeated.members]
    by_length = sorted((chosen(one.env_id, one.figures) for one in members), key=len, reverse=True)
    found = {column.heading: column for columns_of_one in by_length for column in columns_of_one}
    counted = any(warnings(one.result) for one in members)
    return tuple(marked(column) if counted else column for column in found.values())


def marked(column: Column) -> Column:
    """Return a column whose heading says that a program rated."""
    return replace(column, heading=settings.programmatic_heading(column.heading))


def _agent_names(evaluations: Sequence[SeedGroup]) -> list[AgentName]:
    """Return the agents' names; equal names get the evaluations' labels."""
    plain = [agent_name(one.first.result) for one in evaluations]
    return [
        replace(agent, method=f"{agent.method} ({one.label})") if plain.count(agent) > 1 else agent
        for agent, one in zip(plain, evaluations, strict=True)
    ]


def cell_of(mean: Mapping[str, Any], column: Column) -> Cell:
    """Return a mean in the form of `mean_of` as a cell of a column."""
    scale, interval = column.scale, mean["interval"]
    return Cell(
        mean["mean"] * scale,
        None if mean["std"] is None else mean["std"] * scale,
        (interval[0] * scale, interval[1] * scale) if interval else None,
        column.decimals,
    )


def _note(agent: AgentName, block: Block, one: SeedGroup) -> str:
    """Return the note on a row: tasks, seeds, missing episodes, incomplete scenarios."""
    result = one.first.result
    environment = result["environment"]
    facts = [f"{environment['tasks']} tasks"]
    for what, seeds in (("seed", one.seeds), ("training seed", one.training_seeds)):
        if seeds:
            facts.append(f"{what}{'s' if seeds[1:] else ''} {', '.join(map(str, seeds))}")
    if environment.get("max_turns"):
        facts.append(f"at most {environment['max_turns']} turns")
    if environment.get("data_version"):
        facts.append(f"data {environment['data_version']}")
    if steps := one.steps:
        facts.append(f"step{'s' if steps[1:] else ''} {', '.join(map(str, steps))} of training")
    if one.first.over_steps > 1:
        facts.append(f"mean over {one.first.over_steps} steps")
    note = f"{agent.text}, {block.title}: {', '.join(facts)}"
    if one.episodes("missing"):
        note += f"; {one.episodes('missing')} of {one.episodes('planned')} episodes are MISSING"
    if left_out := one.incomplete_scenarios:
        note += f"; {left_out} scenario{'s' * (left_out > 1)} INCOMPLETE, in TGC alone"
    if unrated := one.unrated:
        note += f"; {unrated} episode{'s' * (unrated > 1)} WITHOUT A RATING, in no goal"
    return "; ".join([note, *warnings(result)])


def _add_reported(rows: dict[Any, Row], blocks: Sequence[Block], kind: str) -> list[str]:
    """Add the papers' rows, equal rows of several papers as one, and return their notes."""
    found: dict[Any, Row] = {}
    notes: list[str] = []
    for place, block in enumerate(blocks):
        headings = [column.heading for column in block.columns]
        name, split, partner, judge, data = block.setting
        comparable = paper_results.comparable_results(
            name, split, kind, partner=partner, judge=judge
        )
        if comparable and data != OFFICIAL:
            why = (
                "generated" if settings.NOT_THE_BENCHMARK in block.title else "not the benchmark's"
            )
            left_out = "the papers' numbers are left out, the tasks were"
            notes.append(f"{block.setting.world} {split}: {left_out} {why}")
        for result in comparable if data == OFFICIAL else ():
            numbers = {h: n for h, n in result.numbers.items() if h in headings}
            cells = {(place, h): Cell(n.mean, n.std, None, n.decimals) for h, n in numbers.items()}
            if cells:
                agent = AgentName(result.model, result.type, result.method)
                row = found.setdefault((result.source, agent), Row(agent, result.source))
                row.cells |= cells
                notes.append(f"{result.source}: {result.note}")
    for (_, agent), row in found.items():
        key = agent, str(tuple(sorted(row.cells.items(), key=str)))
        first = rows.setdefault(key, Row(agent, "reported: ", row.cells))
        first.source += row.source if first.source == "reported: " else f"; {row.source}"
    return notes
