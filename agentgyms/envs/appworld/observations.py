"""The texts of observations that are not the output of code."""

from __future__ import annotations

from typing import Final

from agentgyms.envs.appworld.world import Brief

_MARK: Final = "\n[... {left_out} of {total} characters left out here ...]\n"
_MAX_ERROR: Final = 400
_MAX_CHARACTERS: Final = 10**12
_TAIL: Final = 4
"""The share of a shortened output that is its end is 1 / `_TAIL`; errors are at the end."""


def introduction(brief: Brief) -> str:
    """Return the first observation: the task, the supervisor, and the date and time."""
    person = brief.supervisor
    return (
        f"Task: {brief.instruction}\n"
        f"Supervisor: {person['first_name']} {person['last_name']}, "
        f"email {person['email']}, phone {person['phone_number']}\n"
        f"Date and time: {brief.now.replace('T', ' ')}"
    )


def shortened(output: str, limit: int, num_characters: int = 0) -> str:
    """Return an output, or its beginning and its end with a mark between them.

    The result has at most `limit` (200 or more) characters, with the mark. If `output` is cut
    already, `num_characters` is the length that was printed.
    """
    # The number comes from the agent's process and is not trusted.
    total = max(len(output), min(num_characters, _MAX_CHARACTERS))
    if total <= limit:
        return output
    num_shown = limit - len(_MARK.format(left_out=total, total=total))
    tail = num_shown // _TAIL
    mark = _MARK.format(left_out=total - num_shown, total=total)
    return output[: num_shown - tail] + mark + output[len(output) - tail :]


def one_line(error: str) -> str:
    """Return an error as one line, cut if it is long."""
    line = " ".join(error.split())
    return line if len(line) <= _MAX_ERROR else f"{line[: _MAX_ERROR - 4]} ..."
