"""Boards: one table for each environment, data version and protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agentgyms.core.errors import plain
from harness.evaluation.pairing import pair
from harness.reporting.leaderboard.submissions import Submission
from harness.reporting.results.agent_names import AgentName, agent_name
from harness.reporting.results.setting import Setting, warnings
from harness.reporting.tables.columns import Column, columns
from harness.reporting.tables.details import points
from harness.reporting.tables.rows import Cell, cell_of, marked
from harness.types.errors import PairingError

_MOST_NAME: Final = 80


@dataclass(frozen=True, slots=True)
class Entry:
    """A verified evaluation of a leaderboard."""

    submission: Submission
    setting: Setting
    data_version: str
    departures: tuple[str, ...]  # from the protocol
    result: dict[str, Any]  # its `result.json`, without recordings
    columns: tuple[Column, ...]  # its figures that are shown
    episodes: int
    trail: str  # see `Verified`
    copies: tuple[str, ...] = ()  # labels of all other folders with the same episodes

    @property
    def board(self) -> tuple[Any, ...]:
        """What it has in common with the entries that it can be compared with."""
        tasks = len(self.result["tasks"])
        return self.setting, self.data_version, self.departures, tasks

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.submission.label

    @property
    def agent(self) -> AgentName:
        """The agent's name, as text that can be shown."""
        name = agent_name(self.result)
        texts = (plain(text, _MOST_NAME) for text in (name.model, name.type, name.method))
        return AgentName(*texts)

    @property
    def page(self) -> str:
        """Address of its page inside the site."""
        return f"evaluations/{self.submission.slug}.html"

    @property
    def success(self) -> float:
        """Share of solved tasks."""
        return float(self.result["figures"]["success"]["mean"] or 0.0)

    @property
    def tokens(self) -> float | None:
        """Tokens of an episode, as the submission says; None if no model played."""
        counts = self.result["figures"].get("tokens") or {}
        total = counts.get("prompt", 0) + counts.get("response", 0)
        return total / self.episodes if total and self.episodes else None

    def cell(self, heading: str) -> Cell | None:
        """Return the number under a heading, with its interval; None if there is none."""
        found = [column for column in self.columns if column.heading == heading]
        mean = found[0].mean(self.result["figures"]) if found else None
        return replace(cell_of(mean, found[0]), std=None) if mean else None


@dataclass(frozen=True, slots=True)
class Board:
    """One table, whose entries can be compared."""

    entries: tuple[Entry, ...]  # from the best to the worst; the name decides between equal ones

    @property
    def title(self) -> str:
        """Environment, split, whose tasks, partner and judge."""
        return self.entries[0].setting.title

    @property
    def places(self) -> list[int]:
        """The place of each entry; equal results share one, and the next ones are left out."""
        first: dict[float, int] = {}
        return [first.setdefault(one.success, n) for n, one in enumerate(self.entries, 1)]

    @property
    def headings(self) -> list[str]:
        """Headings of the figures that any entry has."""
        return list(dict.fromkeys(c.heading for entry in self.entries for c in entry.columns))

    @property
    def protocol(self) -> list[str]:
        """The settings that all entries have in common, in words."""
        result = self.entries[0].result
        tasks, turns = len(result["tasks"]), result["environment"]["max_turns"]
        seeds = ", ".join(map(str, result["seeds"]))
        return [
            f"data {self.entries[0].data_version}",
            f"{tasks} tasks",
            f"seed{'s' * (len(result['seeds']) > 1)} {seeds}",
            *([f"at most {turns} turns"] if turns else []),
        ]

    @property
    def legend(self) -> str:
        """How its numbers are read."""
        scales = {column.scale for entry in self.entries for column in entry.columns}
        units = "In percent" if scales == {100.0} else "Goals are from 0 to 10, all else in percent"
        of = "turns and tokens are means of an episode, costs are of all episodes"
        return f"{units}, with 95 % intervals; {of}."

    def differences(self) -> Iterator[list[str]]:
        """Yield each entry against the first: names, difference, wins and losses, p-value."""
        best = self.entries[0]
        for other in self.entries[1:]:
            names = [other.label, best.label]
            try:
                found = pair(other.result, best.result)
            except PairingError as e:
                yield [*names, plain(str(e), 300), "", ""]
                continue
            p = found.p_value
            shown = "" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"
            yield [*names, points(found.success), f"{found.wins} : {found.losses}", shown]


def build(entries: Sequence[Entry]) -> list[Board]:
    """Return the boards: official data first, then the protocol before departures from it."""
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.board, []).append(entry)
    boards = [
        Board(tuple(sorted(group, key=lambda one: (-one.success, one.label, one.page))))
        for group in groups.values()
    ]

    def order(board: Board) -> tuple[Any, ...]:
        first = board.entries[0]
        where = first.setting.name, first.setting.data != "official", first.setting
        return *where, first.data_version, len(first.departures), first.departures

    return sorted(boards, key=order)


def shown_columns(result: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the totals of an evaluation."""
    found = columns(str(result["environment"]["id"]), result["figures"])
    counted = bool(warnings(result))
    return tuple(marked(one) if counted else one for one in found if one.is_total)
