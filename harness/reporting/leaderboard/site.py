"""The static site of a leaderboard: one page of tables, and a page for each evaluation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from gymnasium.error import Error as GymnasiumError
from tqdm import tqdm

from agentgyms.core.errors import AgentGymsError, plain
from agentgyms.data import writing
from harness.evaluation.results import read_json, write_json
from harness.reporting import pages
from harness.reporting.evaluation_page import page as evaluation_page
from harness.reporting.leaderboard import boards, protocol, submissions, verification
from harness.reporting.leaderboard.boards import Board, Entry
from harness.reporting.leaderboard.submissions import Submission
from harness.reporting.results import setting
from harness.reporting.tables.formats import NONE, cell_text
from harness.reporting.tables.settings_table import settings_of
from harness.types.errors import ResultError

_PAGE: Final = pages.Page(Path(__file__).parent / "page", ("page.js",))
INDEX: Final = "index.html"
LIST: Final = "leaderboard.json"
FORMAT: Final = "agentgyms-leaderboard-1"
PAGES: Final = "evaluations"

_MOST_REASON: Final = 300
_MOST_LINKS: Final = 2000
"""Most episodes of an evaluation that have a link of their own; its page has all."""

_MODEL_FACTS: Final = (
    "Model", "Model revision", "Trained with", "Training step", "Prompt versions", "Prompt style",
    "Temperature", "Top p", "Longest answer, tokens",
)  # fmt: skip
_COMMON_FACTS: Final = ("agentgyms", "Revision", "Recordings, SHA-256")
_TOLD: Final = (AgentGymsError, GymnasiumError)
"""Errors whose message is the reason; any other one says that the files are damaged."""

DAMAGED: Final = (
    *_TOLD, ArithmeticError, AttributeError, ImportError, IndexError, KeyError, OSError,
    RecursionError, TypeError, ValueError,
)  # fmt: skip
"""Errors that a stranger's files may raise; each is a reason, and does not end the site."""


Known = dict[str, list[tuple[str, tuple[Any, ...]]]]
"""Names and tables of verified evaluations, by the digest of their episodes."""


@dataclass(frozen=True, slots=True)
class NotListed:
    """An evaluation that could not be verified."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Site:
    """The tables of a leaderboard, and the evaluations in none of them."""

    boards: list[Board]
    not_listed: list[NotListed]

    @property
    def listed(self) -> int:
        """Number of listed evaluations."""
        return sum(len(board.entries) for board in self.boards)


def build(folder: Path, output: Path) -> Site:
    """Verify the evaluations in a folder, which may be strangers', and write the site.

    Equal input gives equal files. The output is a new or empty folder, or an earlier site.
    Raises `ResultError` if there is no evaluation, or the site cannot be written there.
    """
    found = submissions.find(folder)
    earlier = _earlier(output)
    try:
        (output / PAGES).mkdir(parents=True, exist_ok=True)
        entries, not_listed = _verify_all(found, output)
        site = Site(boards.build(entries), not_listed)
        writing.write(output / INDEX, render(site))
        files = sorted(entry.page for entry in entries)
        for name in set(earlier) - set(files):
            (output / name).unlink(missing_ok=True)
        write_json(output / LIST, {"format": FORMAT, **_listing(site), "files": files})
    except AgentGymsError:
        raise
    except OSError as e:
        raise ResultError(f"the site cannot be written to {output}: {e.strerror or e}") from e
    return site


def _earlier(output: Path) -> list[str]:
    """Return the pages of an earlier site in a folder; refuse one with something else."""
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return []
    if not (output / LIST).is_file():
        raise ResultError(f"{output} holds something else than a site: give another --output")
    known = read_json(output / LIST)
    names = known.get("files") if known.get("format") == FORMAT else None
    if not isinstance(names, list):
        raise ResultError(f"{output / LIST} is of no site: give another --output")
    return [
        n for n in names if isinstance(n, str) and re.fullmatch(rf"{PAGES}/[a-z0-9-]+\.html", n)
    ]


def _verify_all(found: Sequence[Submission], output: Path) -> tuple[list[Entry], list[NotListed]]:
    entries: list[Entry] = []
    not_listed: list[NotListed] = []
    known: Known = {}
    with tqdm(desc="replay", unit="episode", total=0, disable=None) as bar:
        for one in found:
            try:
                entries.append(verify(one, output, known, bar))
            except DAMAGED as e:
                text = str(e) if isinstance(e, _TOLD) else f"it is damaged: {type(e).__name__}: {e}"
                for place in (str(one.folder), str(one.folder.resolve())):
                    text = text.replace(f"{place}/", "").replace(place, "the folder")
                not_listed.append(NotListed(one.label, plain(text, _MOST_REASON)))
    return [_with_copies(entry, known) for entry in entries], not_listed


def _with_copies(entry: Entry, known: Known) -> Entry:
    names = [label for label, _ in known[entry.trail]]
    names.remove(entry.label)
    return replace(entry, copies=tuple(names))


def verify(one: Submission, output: Path, known: Known, bar: Any) -> Entry:
    """Verify an evaluation and write its page; raise one of `DAMAGED` if it cannot be verified.

    The evaluation is added to `known`. The first of equal ones in a table is the entry, and has the
    names of all. `bar` counts replayed episodes.
    """

    def on_plan(count: int) -> None:
        bar.total += count
        bar.set_postfix_str(one.label[:40], refresh=False)

    verified = verification.verify(one.folder, on_plan, bar.update)
    result = verified.evaluation.result
    entry = Entry(
        one,
        setting.setting_of(result)._replace(data=verified.data_source),
        str(result["environment"]["data_version"]),
        protocol.departures(verified),
        result,
        boards.shown_columns(result),
        verified.episodes,
        verified.trail,
    )
    same = known.setdefault(verified.trail, [])
    listed = [label for label, board in same if board == entry.board]
    if listed:
        same.append((one.label, entry.board))
        raise ResultError(
            f"its episodes are those of {listed[0]}, which is listed with the names of all copies"
        )
    # Whatever in it cannot be shown is found here.
    _row(entry, [column.heading for column in entry.columns])
    evaluation_page.write(output / entry.page, [replace(verified.evaluation, label=one.label)])
    same.append((one.label, entry.board))
    return entry


def render(site: Site) -> str:
    """Return the page with the tables as one HTML text."""
    return _PAGE.render(
        title="Leaderboard",
        data={},
        packed={},
        boards=[_board(number, board) for number, board in enumerate(site.boards, 1)],
        not_listed=site.not_listed,
        listed=site.listed,
        episodes=sum(entry.episodes for board in site.boards for entry in board.entries),
    )


def _board(number: int, board: Board) -> dict[str, Any]:
    rows = [
        {"place": place, **_row(entry, board.headings)}
        for place, entry in zip(board.places, board.entries, strict=True)
    ]
    return {
        "id": f"table-{number}",
        **{name: getattr(board, name) for name in ("title", "protocol", "headings", "legend")},
        "departures": board.entries[0].departures,
        "warnings": setting.warnings(board.entries[0].result),
        "claims": [name for name in ("tokens", "cost") if any(row[name] for row in rows)],
        "rows": rows,
        "differences": list(board.differences()),
    }


def _row(entry: Entry, headings: Sequence[str]) -> dict[str, Any]:
    figures, mean = entry.result["figures"], entry.result["figures"]["success"]
    low, high = mean["interval"] or (entry.success, entry.success)
    cost = figures.get("cost")
    settings = dict(settings_of(entry.result))
    played = entry.result["model"].get("backend") not in protocol.NO_MODEL
    shown = (*_MODEL_FACTS, *_COMMON_FACTS) if played else _COMMON_FACTS
    names, links = [str(task_id) for task_id, _ in entry.result["tasks"]], []
    for index, seed, trial, success, _, _ in entry.result["outcomes"][:_MOST_LINKS]:
        address = urlencode({"episode": names[index], "seed": seed, "trial": trial})
        outcome, name = "solved" if success else "not solved", f"{names[index]}, seed {seed}"
        links.append((f"{entry.page}#{address}", outcome, plain(name, 120)))
    return {
        "label": entry.label,
        "agent": entry.agent,
        "page": entry.page,
        "bar": [f"{100 * value:.2f}" for value in (entry.success, low, high)],
        "cells": [
            (name, *(cell_text(cell).partition(" ")[::2] if cell else (NONE, "")))
            for name, cell in ((name, entry.cell(name)) for name in headings)
        ],
        "turns": NONE if figures["turns"] is None else f"{figures['turns']:.1f}",
        "tokens": "" if entry.tokens is None else f"{entry.tokens:,.0f}",
        "cost": "" if cost is None else f"{cost:.2f}",
        "episodes": f"{entry.episodes:,}",
        "copies": entry.copies,
        "facts": [(name, plain(settings[name], 200)) for name in shown if name in settings],
        "links": links,
        "more": max(0, entry.episodes - _MOST_LINKS),
    }


def _listing(site: Site) -> Mapping[str, Any]:
    """Return the tables for programs."""
    return {
        "tables": [
            {
                "title": board.title,
                "data_version": board.entries[0].data_version,
                "departures": list(board.entries[0].departures),
                "entries": [
                    {
                        "place": place,
                        "label": entry.label,
                        "agent": entry.agent.text,
                        "success": entry.success,
                        "interval": entry.result["figures"]["success"]["interval"],
                        "episodes": entry.episodes,
                        "recordings": entry.result["recordings"]["sha256"],
                        "page": entry.page,
                        "copies": list(entry.copies),
                    }
                    for place, entry in zip(board.places, board.entries, strict=True)
                ],
            }
            for board in site.boards
        ],
        "not_listed": [{"label": one.label, "reason": one.reason} for one in site.not_listed],
    }
