"""Parses a judge's ratings and checks their ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentgyms.envs.sotopia.action_parsing import ParseFailure
from agentgyms.envs.sotopia.llm.json_extraction import (
    MINUS_SIGNS,
    json_objects,
    replace_surrogates,
    strip_thoughts,
    unwrap,
)
from agentgyms.envs.sotopia.partner_judge import RANGES, Rating

_WRAPPERS: Final = ("properties", "evaluations")
_INTEGER: Final = re.compile(
    r"([+-]?[0-9]{1,3}(?:\.0+)?)(?:\s*(?:/|out of)\s*([0-9]{1,3}))?", re.IGNORECASE
)
_MINUS: Final = re.compile(f"[{MINUS_SIGNS}]")
_SHOWN: Final = 40


def parse_ratings(text: str, names: Sequence[str]) -> tuple[Rating, Rating] | ParseFailure:
    """Parse the ratings of seat 0 and seat 1, with these names, in a judge's answer.

    No text raises. A person's ratings are below `agent_1_evaluation` (`agent_2_evaluation`),
    `agent_1` or the person's name; a dimension's are `[reasoning, score]`, `{"reasoning": ...,
    "score": ...}` or the score alone. Every dimension of both must be there, an integer within its
    range; a text such as `8/10` is one if the number after it is the range's greatest.
    """
    failures: list[ParseFailure] = []
    for fields in json_objects(strip_thoughts(text)):
        wrong: list[str] = []
        both = unwrap(fields, *_WRAPPERS)
        first, second = (_parse_one(both, seat, names, wrong) for seat in (0, 1))
        if not wrong:
            return first, second
        failures.append(ParseFailure("; ".join(wrong) + "."))
    return failures[0] if failures else ParseFailure("there is no whole JSON object in it.")


def _parse_one(
    fields: Mapping[str, Any], seat: int, names: Sequence[str], wrong: list[str]
) -> Rating:
    """Return a seat's rating, maybe incomplete; errors are appended to `wrong`."""
    label = f"agent_{seat + 1}_evaluation"
    keys = [label, f"agent_{seat + 1}"] + ([names[seat]] if names[0] != names[1] else [])
    found = next((fields[key] for key in keys if isinstance(fields.get(key), Mapping)), None)
    if found is None:
        wrong.append(f'"{label}" is missing')
        return Rating({}, {})
    values = {_normalized(key): value for key, value in unwrap(found, *_WRAPPERS).items()}
    scores: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for name, (low, high) in RANGES.items():
        reason, score = _parts(values.get(name))
        number = _integer(score, max(-low, high))
        if name not in values:
            wrong.append(f'"{name}" is missing in "{label}"')
        elif number is None or not low <= number <= high:
            wrong.append(
                f'"{name}" in "{label}" must be an integer from {low} to {high}: {_preview(score)}'
            )
        else:
            scores[name] = number
        if isinstance(reason, str):
            reasons[name] = replace_surrogates(reason)
    return Rating(scores, reasons)


def _normalized(key: str) -> str:
    return re.sub(r"[\s-]+", "_", key.strip().casefold())


def _parts(value: Any) -> tuple[Any, Any]:
    match value:
        case [reason, score]:
            return reason, score
        case {"score": score}:
            return value.get("reasoning"), score
        case _:
            return None, value


def _preview(value: Any) -> str:
    scalar = isinstance(value, str | int | float)
    return repr(value)[:_SHOWN] if scalar else f"a {type(value).__name__}"


def _integer(value: Any, of: int) -> int | None:
    """Return a score or None: 8.0, "8" and "8/10" (of 10) are integers, True and 8.5 are not."""
    if isinstance(value, str):
        found = _INTEGER.fullmatch(_MINUS.sub("-", value.strip()))
        return int(float(found[1])) if found and int(found[2] or of) == of else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
