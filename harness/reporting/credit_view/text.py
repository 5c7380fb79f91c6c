"""Credit as text: tables for the terminal, CSV, and JSON with all digits."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, Final

import click
import numpy as np

from harness.credit.returns import episode_returns
from harness.reporting.credit_view.compare import Credit, setting_text
from harness.reporting.credit_view.recordings import RecordedRollouts
from harness.types.rollout import Turn

_ACTION_WIDTH: Final = 30
_LEFT: Final = 4 + 2 + _ACTION_WIDTH + 8
"""Width of turn, action and reward."""
_MARKS: Final = {"ok": "", "no_effect": "~", "inadmissible": "x", "malformed": "x", "failed": "!"}


def summary(recorded: RecordedRollouts, results: Sequence[Credit]) -> str:
    """Return a summary: the source, and a line with the range of each method's advantages.

    `levels` is the mean number of different advantages within a rollout: 1 for a method that gives
    all turns of a rollout the same advantage.
    """
    left = f", {recorded.left_out} left out" if recorded.left_out else ""
    lines = [
        f"{recorded.source}: {recorded.counts}{left}; rewards: {recorded.reward}",
        "",
        f"{'method':20}{'min':>9}{'max':>9}{'std':>9}{'zero':>7}{'levels':>8}",
    ]
    for credit in results:
        name = ", ".join((credit.choice.name, *credit.choice.aliases))
        if credit.advantage is None:
            lines.append(f"{name:20}  not computed: needs {', '.join(credit.missing)}")
            continue
        a = credit.advantage
        zero, levels = f"{100 * (a == 0).mean():.0f} %", _levels(recorded, credit)
        note = f"  {credit.choice.note}" if credit.choice.note else ""
        lines.append(
            f"{name:20}{a.min():9.3f}{a.max():9.3f}{a.std():9.3f}{zero:>7}{levels:8.1f}{note}"
        )
    return "\n".join(lines)


def _levels(recorded: RecordedRollouts, credit: Credit) -> float:
    assert credit.advantage is not None
    rounded = np.round(credit.advantage, 9)
    counts = [
        len(np.unique(part)) for part in np.split(rounded, recorded.turns.starts[1:].tolist())
    ]
    return float(np.mean(counts))


def table(recorded: RecordedRollouts, results: Sequence[Credit], group: int, width: int) -> str:
    """Return the advantages of a group's turns, a block for each rollout.

    Methods that do not fit into the width are continued in further blocks.

    Args:
        recorded: The rollouts.
        results: What `compare` returned for their table.
        group: The group's number.
        width: Width of the terminal in characters.
    """
    computed = [credit for credit in results if credit.advantage is not None]
    column = max((len(credit.choice.name) for credit in computed), default=0) + 1
    column = max(8, min(column, 13))
    fitting = max(1, (width - _LEFT) // column)
    pages = [computed[i : i + fitting] for i in range(0, len(computed), fitting)]
    returns = episode_returns(recorded.turns)
    blocks = []
    for index, rollout in enumerate(recorded.rollouts):
        if rollout.group != group:
            continue
        ended = "success" if rollout.success else "failure"
        title = (
            f"group {group}, rollout {rollout.member}: {ended} after {len(rollout.turns)} turns, "
            f"return {returns[index]:g}"
        )
        blocks.append(click.style(title, bold=True))
        blocks += [_block(recorded, page, index, column) for page in pages]
    return "\n\n".join(blocks)


def _block(recorded: RecordedRollouts, results: Sequence[Credit], rollout: int, column: int) -> str:
    names = "".join(f"{credit.choice.name[: column - 1]:>{column}}" for credit in results)
    lines = [f"{'turn':>4}  {'action':{_ACTION_WIDTH}}{'reward':>8}{names}"]
    start = int(recorded.turns.starts[rollout])
    for t, turn in enumerate(recorded.rollouts[rollout].turns):
        row = start + t
        reward = recorded.turns.reward[row]
        first = f"{t + 1:4}  {_action_cell(turn):{_ACTION_WIDTH}}"
        values = "".join(_value(credit, row, column) for credit in results)
        lines.append(f"{first}{f'{reward:g}' if reward else '':>8}{values}")
    return "\n".join(lines)


def _action_cell(turn: Turn) -> str:
    text = printable(turn.action)
    mark = _MARKS.get(str(turn.feedback), "")
    room = _ACTION_WIDTH - (2 if mark else 0)
    shortened = text if len(text) <= room else f"{text[: room - 1]}…"
    return f"{mark} {shortened}" if mark else shortened


def printable(text: str) -> str:
    """Return text in one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _value(credit: Credit, row: int, column: int) -> str:
    assert credit.advantage is not None
    value = credit.advantage[row]
    text = f"{value:{column}.{2 if abs(value) < 100 else 0}f}"
    return click.style(text, fg="blue" if value > 0 else "yellow" if value < 0 else None)


def rows(recorded: RecordedRollouts, results: Sequence[Credit]) -> list[dict[str, Any]]:
    """Return a row for each turn: its position, its action, and each method's advantage."""
    computed = {c.choice.name: c.advantage for c in results if c.advantage is not None}
    taken = [(rollout, turn) for rollout in recorded.rollouts for turn in rollout.turns]
    return [
        {
            "group": rollout.group,
            "rollout": rollout.member,
            "turn": int(recorded.turns.turn[row]),
            "task_id": rollout.task_id,
            "success": rollout.success,
            "state_key": turn.state_key,
            "action": turn.action,
            "feedback": str(turn.feedback),
            "reward": float(recorded.turns.reward[row]),
            **{name: float(advantage[row]) for name, advantage in computed.items()},
        }
        for row, (rollout, turn) in enumerate(taken)
    ]


def to_csv(recorded: RecordedRollouts, results: Sequence[Credit]) -> str:
    """Return `rows` as CSV, with all digits."""
    found = rows(recorded, results)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return out.getvalue()


def to_json(recorded: RecordedRollouts, results: Sequence[Credit]) -> dict[str, Any]:
    """Return methods and `rows` as plain values, with all digits."""
    return {
        "source": recorded.source,
        "rewards": recorded.reward,
        "methods": {
            credit.choice.name: {
                "estimator": credit.choice.estimator,
                "settings": {key: _plain(value) for key, value in credit.choice.settings.items()},
                "same_as": list(credit.choice.aliases),
                "needs": list(credit.missing),
                "note": credit.choice.note,
            }
            for credit in results
        },
        "turns": rows(recorded, results),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else setting_text(value)
