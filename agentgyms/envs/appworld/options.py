"""Checks the arguments of the AppWorld environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.core.errors import BadOption
from agentgyms.core.outcome import MAX_OBSERVATION
from agentgyms.envs.appworld.code_runner import Limits

TIMEOUT_S: Final = {"mini": 20.0, "appworld": 40.0}
"""Time limit of a turn's code in seconds, by engine; clients of a server wait 60."""

_MAX_TIMEOUT_S: Final = 600.0
_MIN_TIMEOUT_S: Final = 0.1
_MAX_CALLS: Final = 100_000
_MIN_OUTPUT: Final = 200
_SCORES: Final = ("turn", "end")
_STATES: Final = ("code", "database")


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of an environment; `AppWorldEnv` gives their meaning."""

    limits: Limits
    max_output: int
    score: str
    state: str


def check(
    engine: str, timeout_s: Any, max_api_calls: Any, max_output: Any, score: Any, state: Any
) -> Options:
    """Return the checked arguments, with the engine's defaults for None."""
    if score is None:
        score = "turn" if engine == "mini" else "end"
    _check_one_of("score", score, _SCORES, " or None")
    _check_one_of("state", state, _STATES)
    _check_range("max_api_calls", max_api_calls, 1, _MAX_CALLS)
    _check_range("max_output", max_output, _MIN_OUTPUT, MAX_OBSERVATION)
    timeout_s = TIMEOUT_S[engine] if timeout_s is None else timeout_s
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not _MIN_TIMEOUT_S <= timeout_s <= _MAX_TIMEOUT_S:
        raise BadOption(
            f"timeout_s must be a number of seconds from {_MIN_TIMEOUT_S} to {_MAX_TIMEOUT_S:.0f}, "
            f"got {timeout_s!r:.60}"
        )
    return Options(Limits(timeout_s, max_api_calls), max_output, score, state)


def check_scenarios(scenarios: Any) -> list[str] | None:
    """Return the prefixes of scenario ids, sorted, each once."""
    if scenarios is None:
        return None
    listed = isinstance(scenarios, Sequence) and not isinstance(scenarios, str)
    if not listed or not scenarios or any(not isinstance(s, str) or not s for s in scenarios):
        raise BadOption(
            f"scenarios must be a list of prefixes of scenario ids, or None, got {scenarios!r:.60}"
        )
    return sorted(set(scenarios))


def check_difficulty(difficulty: Any) -> frozenset[int] | None:
    """Return the set of difficulties, given as one number or as a list."""
    if difficulty is None:
        return None
    given = difficulty if isinstance(difficulty, list | tuple) else [difficulty]
    if given and all(type(level) is int and level in (1, 2, 3) for level in given):
        return frozenset(given)
    raise BadOption(
        f"difficulty must be 1, 2, 3 or None, or a list such as [1, 2], got {difficulty!r:.60}"
    )


def _check_one_of(name: str, value: Any, known: Sequence[str], also: str = "") -> None:
    if not isinstance(value, str) or value not in known:
        raise BadOption(f"{name} must be one of {', '.join(known)}{also}, got {value!r:.60}")


def _check_range(name: str, value: Any, lowest: int, highest: int) -> None:
    if type(value) is not int or not lowest <= value <= highest:
        raise BadOption(f"{name} must be an integer from {lowest} to {highest}, got {value!r:.60}")
