"""Actions as agents write them: read into acts, or refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentgyms.sotopia.answers import sound
from agentgyms.sotopia.dialogue import NOTHING, Act, Kind

FORMS: Final = "speak: <words>, act: <deed>, nonverbal: <gesture>, leave or none"
"""The forms of an action, for people and errors."""

LONGEST: Final = 4000
"""Characters of an argument at most, so that what is said fits into an observation."""

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
class Refusal:
    """Why a text is no action, in one sentence that its writer can use."""

    reason: str


def read_action(text: str) -> Act | Refusal:
    """Return the act that a text stands for; no text raises.

    `speak: ...`, `act: ...` (or `action`), `nonverbal: ...` (or `non-verbal communication`),
    `leave` and `none`, in any case, or a JSON object with `action_type`, one of these names, and
    `argument`. Whatever is given with `leave` and `none` is dropped, as nobody would see it.
    Blanks and line breaks of an argument become single blanks: one act is one line, so that nobody
    can write lines of the dialogue in another one's name.
    """
    text = text.strip()
    if text.startswith("{"):
        return _read_json(text)
    name, colon, argument = text.partition(":")
    kind = _kind(name)
    if kind is None or (not colon and kind not in _ALONE):
        return Refusal(f"{_shown(text)} is no action; write {FORMS}.")
    return _act(kind, argument)


def read_fields(fields: Mapping[str, Any]) -> Act | Refusal:
    """Return the act that the fields `action_type` and `argument` stand for."""
    name, argument = fields.get("action_type"), fields.get("argument")
    kind = _kind(name) if isinstance(name, str) else None
    if kind is None:
        types = ", ".join(f'"{kind}"' for kind in Kind)
        return Refusal(f'"action_type" must be one of {types}.')
    if kind not in _ALONE and not isinstance(argument, str):
        return Refusal(f'"argument" must be a text: what goes with "{kind}".')
    return _act(kind, argument if isinstance(argument, str) else "")


def written(act: Act) -> str:
    """Return an act as an agent writes it; `read_action` reads it back."""
    name = _NAMES[act.kind]
    return name if act.kind in _ALONE else f"{name}: {act.argument}"


def _read_json(text: str) -> Act | Refusal:
    """Return the act of a text that is one JSON object."""
    try:
        return read_fields(json.loads(text))
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", None) or "it cannot be read"
        return Refusal(f"the JSON is malformed ({reason}); write one object, or {FORMS}.")


def _shown(text: str) -> str:
    """Return the beginning of a text in one line, for errors."""
    line = " ".join(text[:40].split())
    return f'"{line}{"..." if len(text) > 40 else ""}"' if line else "an empty text"


def _kind(name: str) -> Kind | None:
    return _KINDS.get(name.strip().casefold())


def _act(kind: Kind, argument: str) -> Act | Refusal:
    """Return the act with an argument in one line."""
    if kind is Kind.NONE:
        return NOTHING
    if kind is Kind.LEAVE:
        return Act(kind)
    line = " ".join(sound(argument).split())
    if not line:
        return Refusal(f'"{_NAMES[kind]}" needs an argument: {_NAMES[kind]}: ...')
    if len(line) > LONGEST:
        return Refusal(f"{len(line)} characters are too many; write {LONGEST} at most.")
    return Act(kind, line)
