"""Credit as text: tables for the terminal, CSV, and JSON with all digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
import numpy as np

from harness.credit.shared import episode_returns
from harness.reporting.credit_view.compare import Credit, setting_text
from harness.reporting.credit_view.recordings import RecordedRollouts
from harness.reporting.table import Table
from harness.types.rollout import Turn

_ACTION_WIDTH: Final = 30
_LEFT: Final = 4 + 2 + _ACTION_WIDTH + 8
"""Width of turn, action and reward."""
_NUMBER: Final = 8
"""Least width of a method's column."""
_MARKS: Final = {"ok": "", "no_effect": "~", "inadmissible": "x", "malformed": "x", "failed": "!"}


def summary(recorded: RecordedRollouts, results: Sequence[Credit]) -> str:
    """Return a summary; `levels` is the mean number of different advantages within a rollout."""
    left = f", {recorded.left_out} left out" if recorded.left_out else ""
    about = f"{recorded.source}: {recorded.counts}{left}; rewards: {recorded.reward}"
    headings = ("method", "min", "max", "std", "zero", "levels")
    ranges = Table(headings, [_range(recorded, credit) for credit in results])
    return f"{about}\n\n{ranges.text('20', '>9', '>9', '>9', '>7', '>8', '')}"


def _range(recorded: RecordedRollouts, credit: Credit) -> list[str]:
    name = ", ".join((credit.choice.name, *credit.choice.aliases))
    a = credit.advantage
    if a is None:
        return [name, f"  not computed: needs {', '.join(credit.missing)}"]
    numbers = [f"{number:z.3f}" for number in (a.min(), a.max(), a.std())]
    rollouts = np.split(np.round(a, 9), recorded.turns.starts[1:].tolist())
    levels = np.mean([len(np.unique(part)) for part in rollouts])
    zero, note = f"{100 * (a == 0).mean():.0f} %", credit.choice.note
    return [name, *numbers, zero, f"{levels:.1f}", f"  {note}" if note else ""]


def table(
    recorded: RecordedRollouts, results: Sequence[Credit], rollouts: Sequence[int], width: int
) -> str:
    """Return the advantages by rollout, a block for each; wide ones continue in further blocks."""
    pages = _pages([credit for credit in results if credit.advantage is not None], width)
    returns = episode_returns(recorded.turns)
    blocks = []
    for index in rollouts:
        rollout = recorded.rollouts[index]
        ended = "success" if rollout.success else "failure"
        title = (
            f"group {rollout.group}, rollout {rollout.member}: {ended} after "
            f"{len(rollout.turns)} turns, return {returns[index]:g}"
        )
        blocks.append(click.style(title, bold=True))
        blocks += [_block(recorded, page, index) for page in pages]
    return "\n\n".join(blocks)


def _column(credit: Credit) -> int:
    return max(_NUMBER, len(credit.choice.name) + 1)


def _pages(results: Sequence[Credit], width: int) -> list[list[Credit]]:
    """Return the methods that stand beside each other, with their whole names."""
    pages: list[list[Credit]] = []
    left = 0
    for credit in results:
        left -= _column(credit)
        if left < 0 or not pages:
            pages.append([])
            left = width - _LEFT - _column(credit)
        pages[-1].append(credit)
    return pages


def _block(recorded: RecordedRollouts, results: Sequence[Credit], rollout: int) -> str:
    start, lines = int(recorded.turns.starts[rollout]), []
    for t, turn in enumerate(recorded.rollouts[rollout].turns):
        reward = recorded.turns.reward[start + t]
        values = []
        for credit in results:
            assert credit.advantage is not None
            value = credit.advantage[start + t]
            text = f"{value:z{_column(credit)}.{2 if abs(value) < 100 else 0}f}"
            colour = "blue" if value > 0 else "yellow" if value < 0 else None
            values.append(click.style(text, fg=colour))
        lines.append([t + 1, f"  {_action_cell(turn)}", f"{reward:g}" if reward else "", *values])
    names = [credit.choice.name for credit in results]
    columns = (f">{_column(credit)}" for credit in results)
    forms = (">4", f"{_ACTION_WIDTH + 2}", ">8", *columns)
    return Table(["turn", "  action", "reward", *names], lines).text(*forms)


def _action_cell(turn: Turn) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in turn.action).split())
    mark = _MARKS.get(str(turn.feedback), "")
    room = _ACTION_WIDTH - (2 if mark else 0)
    shortened = text if len(text) <= room else f"{text[: room - 1]}…"
    return f"{mark} {shortened}" if mark else shortened


def _turns(recorded: RecordedRollouts, results: Sequence[Credit]) -> Table:
    """Return a row for each turn: its position, its action, and each method's advantage."""
    computed = {c.choice.name: c.advantage for c in results if c.advantage is not None}
    taken = [(rollout, turn) for rollout in recorded.rollouts for turn in rollout.turns]
    headings = ("group", "rollout", "turn", "task_id", "success", "state_key", "action")
    rows = []
    for row, (rollout, turn) in enumerate(taken):
        place = rollout.group, rollout.member, int(recorded.turns.turn[row])
        acted = turn.state_key, turn.action, str(turn.feedback), float(recorded.turns.reward[row])
        credited = (float(advantage[row]) for advantage in computed.values())
        rows.append([*place, rollout.task_id, rollout.success, *acted, *credited])
    return Table([*headings, "feedback", "reward", *computed], rows)


def to_csv(recorded: RecordedRollouts, results: Sequence[Credit]) -> str:
    """Return a line for each turn as CSV, with all digits."""
    return _turns(recorded, results).csv()


def to_json(recorded: RecordedRollouts, results: Sequence[Credit]) -> dict[str, Any]:
    """Return methods and turns as plain values, with all digits."""

    def plain(value: Any) -> Any:
        return value if isinstance(value, str | int | float | None) else setting_text(value)

    return {
        "source": recorded.source,
        "rewards": recorded.reward,
        "methods": {
            credit.choice.name: {
                "estimator": credit.choice.estimator,
                "settings": {key: plain(value) for key, value in credit.choice.settings.items()},
                "same_as": list(credit.choice.aliases),
                "needs": list(credit.missing),
                "note": credit.choice.note,
            }
            for credit in results
        },
        "turns": _turns(recorded, results).records(),
    }
