"""The file of an evaluation's episodes: appended unit by unit, intact after any interruption.

A unit is one task played with one seed, in one trial or several. All its lines are on the disk
before those of the next unit. So only the last unit of the file can be cut off; it is dropped and
played again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from agentgyms.core import serialization
from agentgyms.data import writing
from agentgyms.data.users_files import parse_json
from agentgyms.recording.recording_format import Recording, turn_line
from harness.evaluation.episodes import EPISODE_KEY
from harness.types.errors import ResultError

RECORDINGS: Final = "recordings.jsonl"

_HEADER: Final = b'{"format":'

UnitKey = tuple[int, int]
"""Seed and index of the task."""


@dataclass(slots=True)
class _Span:
    """Position of an episode, or of a unit's episodes up to it, in the file, and its outcome."""

    key: UnitKey
    start: int
    end: int
    trial: int
    success: bool


class Store:
    """The episodes' file in a locked folder; raises `ResultError` if damaged before its end."""

    def __init__(self, folder: Path, trials: int) -> None:
        self.path = folder / RECORDINGS
        self._trials = trials
        self._spans: dict[UnitKey, _Span] = {}
        self._file: writing.AppendedFile | None = None
        self._failure = ""
        if self.path.exists():
            self._load()

    def __contains__(self, key: UnitKey) -> bool:
        return key in self._spans

    def __len__(self) -> int:
        return len(self._spans)

    def end(self, key: UnitKey) -> int:
        """Return the end of a unit in the file, in bytes."""
        return self._spans[key].end

    def successes(self) -> int:
        """Return how many units were solved by any trial. Any thread may ask."""
        return sum(span.success for span in list(self._spans.values()))

    def append(self, key: UnitKey, trials: Sequence[Recording]) -> None:
        """Append a unit's episodes and wait for the disk; raise `ResultError` if that fails."""
        text = "".join(recording_lines(recording) for recording in trials).encode()
        if self._failure:  # a partly written unit must stay the last one in the file
            raise ResultError(self._failure)
        try:
            start = self._write(text)
        except OSError as e:
            self._failure = f"{self.path} cannot be written: {e.strerror}"
            raise ResultError(self._failure) from None
        success = bool(trials[-1].turns[-1].info["success"])
        self._spans[key] = _Span(key, start, start + len(text), len(trials), success)

    def _write(self, text: bytes) -> int:
        """Append text, wait until it is on the disk, and return where it starts."""
        if self._file is None:
            self._file = writing.AppendedFile(self.path)
            writing.flush(self.path.parent)
        return self._file.append(text, wait=True)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def sort(self) -> None:
        """Sort the file by seed, task and trial, replacing it in one step."""
        self.close()
        spans = [self._spans[key] for key in sorted(self._spans)]
        if all(a.end == b.start for a, b in pairwise(spans)):
            return
        with self.path.open("rb") as old, writing.replacing(self.path) as new:
            for span in spans:
                old.seek(span.start)
                new.write(old.read(span.end - span.start))

    def _load(self) -> None:
        def has_ended(span: _Span) -> bool:
            return span.success or span.trial == self._trials

        spans = list(self._read_spans())
        end = spans[-1].end if spans else 0
        if spans and not has_ended(spans[-1]):
            end = spans.pop().start
        for span in spans:
            if not has_ended(span) or span.key in self._spans:
                what = "is there twice" if has_ended(span) else "is not whole"
                raise self._damaged(f"the unit of seed and task {span.key} {what}")
            self._spans[span.key] = span
        if end < self.path.stat().st_size:
            with self.path.open("r+b") as file:
                file.truncate(end)

    def _read_spans(self) -> Iterator[_Span]:
        """Yield the units in the order of the file; the last one may be cut off."""
        current: _Span | None = None
        for episode in self._read_episodes():
            if current and current.key == episode.key and episode.trial == current.trial + 1:
                episode.start = current.start
                current = episode
                continue
            if current:
                yield current
            if episode.trial != 1:
                raise self._damaged("an episode follows none of its unit")
            current = episode
        if current:
            yield current

    def _read_episodes(self) -> Iterator[_Span]:
        """Yield the complete episodes of the file; an incomplete one at its end is left out."""
        lines: list[bytes] = []
        offset = start = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break  # cut off: the last turn of an episode, or the header of the next one
                if not line.startswith(_HEADER):
                    if not lines:
                        raise self._damaged("it begins with no episode")
                elif lines:
                    found = _episode(lines, start)
                    if found is None:
                        raise self._damaged(f"the episode at byte {start} is not whole")
                    yield found
                    lines, start = [], offset
                lines.append(line)
                offset += len(line)
        if lines and (last := _episode(lines, start)):
            yield last

    def _damaged(self, what: str) -> ResultError:
        return ResultError(f"{self.path} is damaged: {what}; delete the folder and evaluate again")


def _episode(lines: list[bytes], start: int) -> _Span | None:
    """Return the episode in these lines, or None if it is incomplete."""
    try:
        described = parse_json(lines[0])["provenance"][EPISODE_KEY]
        if len(lines) != described["turns"] + 2:
            return None
        key = int(described["seed"]), int(described["index"])
        success = bool(parse_json(lines[-1])["info"]["success"])
        end = start + sum(map(len, lines))
        return _Span(key, start, end, int(described["trial"]), success)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def recording_lines(recording: Recording) -> str:
    """Return an episode as its lines, each with its newline."""
    lines = [serialization.dumps(recording.header), *map(turn_line, recording.turns)]
    return "".join(f"{line}\n" for line in lines)
