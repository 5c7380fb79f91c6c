"""Reads recordings and returns a row for each episode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from agentgyms.adapters.export import atif, chats
from agentgyms.adapters.export.episode import Episode
from agentgyms.core.errors import BadOption, DataMissing
from agentgyms.recording import Recording, recorder
from agentgyms.recording.recording_format import recordings_in

FORMS: Final[Mapping[str, Callable[[Episode], dict[str, Any]]]] = {
    "messages": chats.messages,
    "tools": chats.tools,
    "prompts": chats.prompts,
    "sharegpt": chats.sharegpt,
    "atif": atif.trajectory,
}
"""The function that makes a row of an episode, by the name of its form."""


def rows(paths: Iterable[Path], form: str) -> list[dict[str, Any]]:
    """Return the episodes of recordings as rows, in the order of the paths.

    Episodes without a turn are left out.

    Args:
        paths: Recordings, and folders. In a folder all `*.jsonl` count, also in folders below, in
            the order of their names.
        form: One of `FORMS`.

    Raises:
        BadOption: There is no such form.
        DataMissing: A path does not exist, a folder has no recording, or no episode has a turn.
        DataCorrupt: A file is no recording, or is damaged.
    """
    if form not in FORMS:
        raise BadOption(f"unknown format {form!r:.40}: expected one of {', '.join(FORMS)}")
    given = list(paths)
    found = [episode for path in given for file in recordings_in(path) for episode in _read(file)]
    if not found:
        names = ", ".join(map(str, given))
        raise DataMissing(f"no episode of {names:.200} has a turn: there is nothing to export")
    pictures = any(episode.has_pictures for episode in found)
    return [FORMS[form](Episode(one.recording, pictures)) for one in found]


def _read(file: Path) -> list[Episode]:
    recordings: list[Recording] = recorder.read(file)
    return [episode for one in recordings if (episode := Episode(one)).turns]
