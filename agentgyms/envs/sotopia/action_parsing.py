"""Parses agents' action texts into acts, or into a failure with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.envs.sotopia.dialogue import NOTHING, Act, Kind
from agentgyms.envs.sotopia.llm.json_extraction import replace_surrogates

FORMS: Final = "speak: <words>, act: <deed>, nonverbal: <gesture>, leave or none"
"""The forms of an action, for error messages."""

LONGEST: Final = 4000
"""Maximum characters of an argument, so that it fits into an observation."""

_NAMES: Final[Mapping[Kind, str]] = {
    Kind.SPEAK: "speak",
    Kind.ACTION: "act",
    Kind.NONVERBAL: "nonverbal",
    Kind.LEAVE: "leave",
    Kind.NONE: "none",
}
_KINDS: Final = {name: kind for kind, name in _NAMES.items()} | {kind.value: kind for kind in Kind}
_ALONE: Final = (Kind.LEAVE, Kind.NONE)


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why a text is no action: one sentence for its author."""

    reason: str


def parse_action(text: str) -> Act | ParseFailure:
    """Parse an action text; no text raises.

    `speak: ...`, `act: ...` (or `action`), `nonverbal: ...` (or `non-verbal communication`),
    `leave` and `none`, in any case, or a JSON object with `action_type`, one of these names, and
    `argument`. Arguments of `leave` and `none` are dropped. Whitespace in an argument becomes
    single spaces: an act is one line, so that an agent cannot forge lines of the dialogue.
    """
    text = text.strip()
    if text.startswith("{"):
        try:
            return parse_fields(json.loads(text))
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", None) or "it cannot be read"
            return ParseFailure(f"the JSON is malformed ({reason}); write one object, or {FORMS}.")
    name, colon, argument = text.partition(":")
    kind = _KINDS.get(name.strip().casefold())
    if kind is None or (not colon and kind not in _ALONE):
        return ParseFailure(f"{_preview(text)} is no action; write {FORMS}.")
    return _act(kind, argument)


def parse_fields(fields: Mapping[str, Any]) -> Act | ParseFailure:
    """Parse the fields `action_type` and `argument`."""
    name, argument = fields.get("action_type"), fields.get("argument")
    kind = _KINDS.get(name.strip().casefold()) if isinstance(name, str) else None
    if kind is None:
        types = ", ".join(f'"{kind}"' for kind in Kind)
        return ParseFailure(f'"action_type" must be one of {types}.')
    if kind not in _ALONE and not isinstance(argument, str):
        return ParseFailure(f'"argument" must be a text: what goes with "{kind}".')
    return _act(kind, argument if isinstance(argument, str) else "")


def format_action(act: Act) -> str:
    """Return an act as an action text; `parse_action` is the inverse."""
    name = _NAMES[act.kind]
    return name if act.kind in _ALONE else f"{name}: {act.argument}"


def _preview(text: str) -> str:
    line = " ".join(text[:40].split())
    return f'"{line}{"..." if len(text) > 40 else ""}"' if line else "an empty text"


def _act(kind: Kind, argument: str) -> Act | ParseFailure:
    if kind is Kind.NONE:
        return NOTHING
    if kind is Kind.LEAVE:
        return Act(kind)
    line = " ".join(replace_surrogates(argument).split())
    if not line:
        return ParseFailure(f'"{_NAMES[kind]}" needs an argument: {_NAMES[kind]}: ...')
    if len(line) > LONGEST:
        return ParseFailure(f"{len(line)} characters are too many; write {LONGEST} at most.")
    return Act(kind, line)
