"""Reads JSON that may be damaged: whatever is wrong is one kind of error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness.types.errors import HarnessError


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text, or raise `ValueError`, also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_object(path: Path, error: type[HarnessError]) -> dict[str, Any]:
    """Return the JSON object in a file, or raise `error`."""
    try:
        value = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path} does not exist") from None
    except OSError as e:
        raise error(f"{path} cannot be read: {e.strerror}") from None
    except ValueError as e:
        raise error(f"{path} is damaged: {e}") from None
    if not isinstance(value, dict):
        raise error(f"{path} is damaged: expected a JSON object")
    return value
