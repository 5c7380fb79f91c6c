"""Recordings of episodes: written as JSON lines turn by turn, and replayed (`recorder`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgyms.core.imports import lazy_names

if TYPE_CHECKING:
    from agentgyms.recording.recorder import RecordEpisodes, read, replay
    from agentgyms.recording.recording_format import RecordedTurn, Recording

__all__ = ["RecordEpisodes", "RecordedTurn", "Recording", "read", "replay"]

__getattr__ = lazy_names(
    __name__,
    {
        "agentgyms.recording.recorder": "RecordEpisodes read replay",
        "agentgyms.recording.recording_format": "RecordedTurn Recording",
    },
)
