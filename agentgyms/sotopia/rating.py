"""Ratings as models write them: read into scores within their ranges, or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.sotopia.answers import objects, sound, spoken, unwrapped
from agentgyms.sotopia.parties import RANGES, Rating
from agentgyms.sotopia.reading import Refusal

_WRAPPERS: Final = ("properties", "evaluations")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,3}(?:\.0+)?")
_SHOWN: Final = 40


def read_ratings(text: str, names: Sequence[str]) -> tuple[Rating, Rating] | Refusal:
    """Return the ratings of seat 0 and seat 1 in a judge's answer; no text raises.

    A person's ratings stand below `agent_1_evaluation` (`agent_2_evaluation`), `agent_1` or the
    person's name; a dimension's are `[reasoning, score]`, `{"reasoning": ..., "score": ...}` or the
    score alone. Every dimension of both must be there, an integer within its range.

    Args:
        text: The answer, with whatever is around its JSON.
        names: Of seat 0 and seat 1.
    """
    refusals: list[Refusal] = []
    for fields in objects(spoken(text)):
        ratings = _read_both(unwrapped(fields, *_WRAPPERS), names)
        if not isinstance(ratings, Refusal):
            return ratings
        refusals.append(ratings)
    return refusals[0] if refusals else Refusal("there is no whole JSON object in it.")


def _read_both(fields: Mapping[str, Any], names: Sequence[str]) -> tuple[Rating, Rating] | Refusal:
    wrong: list[str] = []
    first, second = (_read_one(fields, seat, names, wrong) for seat in (0, 1))
    if wrong:
        return Refusal("; ".join(wrong) + ".")
    return first, second


def _read_one(
    fields: Mapping[str, Any], seat: int, names: Sequence[str], wrong: list[str]
) -> Rating:
    """Return a seat's rating, or a part of it; `wrong` gets what keeps it from being one."""
    label = f"agent_{seat + 1}_evaluation"
    keys = [label, f"agent_{seat + 1}"] + ([names[seat]] if names[0] != names[1] else [])
    found = next((fields[key] for key in keys if isinstance(fields.get(key), Mapping)), None)
    if found is None:
        wrong.append(f'"{label}" is missing')
        return Rating({}, {})
    told = {_plain(key): value for key, value in unwrapped(found, *_WRAPPERS).items()}
    scores: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for name, (low, high) in RANGES.items():
        reason, score = _parts(told.get(name))
        number = _integer(score)
        if name not in told:
            wrong.append(f'"{name}" is missing in "{label}"')
        elif number is None or not low <= number <= high:
            wrong.append(
                f'"{name}" in "{label}" must be an integer from {low} to {high}: {_shown(score)}'
            )
        else:
            scores[name] = number
        if isinstance(reason, str):
            reasons[name] = sound(reason)
    return Rating(scores, reasons)


def _plain(key: str) -> str:
    """Return a dimension's name as `RANGES` has it."""
    return re.sub(r"[\s-]+", "_", key.strip().casefold())


def _parts(value: Any) -> tuple[Any, Any]:
    """Return the reasoning and the score in what is told of a dimension."""
    match value:
        case [reason, score]:
            return reason, score
        case {"score": score}:
            return value.get("reasoning"), score
        case _:
            return None, value


def _shown(value: Any) -> str:
    """Return a wrong score for people."""
    scalar = isinstance(value, str | int | float)
    return repr(value)[:_SHOWN] if scalar else f"a {type(value).__name__}"


def _integer(value: Any) -> int | None:
    """Return a score, or None if it is no integer; 8.0 and "8" are, True and 8.5 are not."""
    if isinstance(value, str):
        text = value.strip()
        return int(float(text)) if _INTEGER.fullmatch(text) else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
