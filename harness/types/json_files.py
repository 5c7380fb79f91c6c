"""Reads JSON that may be damaged: whatever is wrong is one kind of error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentgyms.data.users_files import parse_json, read_text
from harness.types.errors import HarnessError


def read_object(path: Path, error: type[HarnessError]) -> dict[str, Any]:
    """Return the JSON object in a file, or raise `error`."""
    try:
        value = parse_json(read_text(path))
    except FileNotFoundError:
        raise error(f"{path} does not exist") from None
    except OSError as e:
        raise error(f"{path} cannot be read: {e.strerror}") from None
    except ValueError as e:
        raise error(f"{path} is damaged: {e}") from None
    if not isinstance(value, dict):
        raise error(f"{path} is damaged: expected a JSON object")
    return value
