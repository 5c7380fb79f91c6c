"""Step preferences: two answers to one prompt, the better one and the worse one, in a JSONL file.

Each line is a JSON object with the fields of `Preference`, such as

    {"task_id": "kitchen-1", "seed": 0, "messages": [{"role": "user", "content": "..."}],
     "chosen": "<action>open door</action>", "rejected": "<action>wait</action>",
     "value_chosen": 1.0, "value_rejected": 0.25, "visits": 4}

A search over an environment writes them (SALT trains DPO on such pairs, Table 2).
Messages are texts; the first one may have the `tools` that the chat offers. A file of another
program may leave out `seed` and `visits`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import BadRequest, DataCorrupt, DataMissing
from agentgyms.data import writing
from agentgyms.data.users_files import parse_json, read_lines
from harness.types.errors import ConfigError
from harness.types.fields import items, non_negative_int, number, text
from harness.types.messages import Message

FILE: Final = "preferences.jsonl"
"""Name of the file in the folder of an evaluation."""

_WHAT: Final = "a preference"


@dataclass(frozen=True, slots=True)
class Preference:
    """Two answers to one prompt."""

    task_id: str
    seed: int
    messages: tuple[Message, ...]  # the prompt; in a transcript the whole chat so far
    chosen: str  # the better answer as the model wrote it, with its thoughts
    rejected: str
    value_chosen: float  # the estimated value of the better answer's action
    value_rejected: float  # the estimated value of the worse answer's action, which is smaller
    visits: int  # the smaller number of tries of the two actions, at least 1


def plain(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return a chat as a preference keeps it: roles, texts and offered tools, no tokens."""
    chat: list[Message] = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):
            if any(part["type"] == "image" for part in content):
                raise ConfigError(
                    "preferences are of texts, and a prompt shows an image: choose another "
                    "agent.style"
                )
            content = "".join(part["text"] for part in content if part["type"] == "text")
        chat.append({"role": message["role"], "content": content})
        if "tools" in message:
            chat[-1]["tools"] = message["tools"]
    return tuple(chat)


def line(preference: Preference) -> str:
    """Return a preference as a line of a file, with its newline."""
    return json.dumps(asdict(preference), allow_nan=False, separators=(",", ":")) + "\n"


def write(path: str | Path, preferences: Iterable[Preference]) -> None:
    """Write preferences to a file, which appears as a whole."""
    with writing.replacing(Path(path)) as file:
        file.writelines(line(one).encode() for one in preferences)


def read(path: str | Path) -> list[Preference]:
    """Return a file's preferences; raise `DataMissing`, or `DataCorrupt` that names the line."""
    path, found = Path(path), []
    try:
        for row, content in enumerate(read_lines(path), 1):
            if content.strip():
                found.append(_decoded(content, f"{path}, line {row}"))
    except FileNotFoundError:
        raise DataMissing(f"there is no file {path} of preferences") from None
    except (IsADirectoryError, UnicodeError) as e:
        raise DataCorrupt(
            f"{path} is no text file ({e}): expected preferences, JSON lines"
        ) from None
    return found


def is_file_of(path: str | Path) -> bool:
    """Return whether a file begins with a preference."""
    try:
        row = parse_json(next((one for one in read_lines(Path(path)) if one.strip()), ""))
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and "chosen" in row


def decode(row: Any) -> Preference:
    """Return the preference of a JSON object; raise `BadRequest` if it is none."""
    if not isinstance(row, dict):
        raise BadRequest(f"expected an object, got {type(row).__name__}")
    unknown = sorted(row.keys() - {field.name for field in fields(Preference)})
    if unknown:
        raise BadRequest(f"unknown field {unknown[0]!r:.40} of {_WHAT}")
    messages = tuple(map(_message, items(row, "messages", _WHAT)))
    if not messages:
        raise BadRequest(f"'messages' of {_WHAT} must hold the prompt, got none")
    return Preference(
        text(row, "task_id", _WHAT),
        non_negative_int(row, "seed", _WHAT, 0),
        messages,
        text(row, "chosen", _WHAT),
        text(row, "rejected", _WHAT),
        number(row, "value_chosen", _WHAT),
        number(row, "value_rejected", _WHAT),
        non_negative_int(row, "visits", _WHAT, 1),
    )


def _decoded(content: str, where: str) -> Preference:
    try:
        return decode(parse_json(content))
    except BadRequest as e:
        raise DataCorrupt(f"{where}: {e}") from None
    except ValueError as e:
        raise DataCorrupt(f"{where}: not valid JSON: {e}") from None


def _message(value: Any) -> Message:
    if not isinstance(value, Mapping):
        raise BadRequest(f"a message of {_WHAT} must be an object, got {type(value).__name__}")
    message: Message = {
        "role": text(value, "role", "a message"),
        "content": text(value, "content", "a message"),
    }
    if "tools" in value:
        message["tools"] = items(value, "tools", "a message")
    return message
