"""The episodes of an evaluation on disk: appended unit by unit, whole after any interruption.

A unit is what one task was played at one seed: one trial, or several with reflections between them.
All lines of a unit are written at once and are on the disk before the next unit's. Only the last
unit of a file can therefore be cut off, and then it is left out and played again.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Final

from agentgyms import wire
from agentgyms.transcript import Recording, turn_line
from harness import durable
from harness.errors import ResultError
from harness.evaluation.episodes import ABOUT

RECORDINGS: Final = "recordings.jsonl"
PARTIAL: Final = ".partial"
"""Ends the name of a file that is not whole yet."""

_HEADER: Final = b'{"format":'

Place = tuple[int, int]
"""Seed and index of the task."""


@dataclass(frozen=True, slots=True)
class _Episode:
    """Where an episode is in the file, and what it came to."""

    start: int
    end: int
    place: Place
    trial: int
    success: bool


@dataclass(slots=True)
class _Span:
    """Where a unit is in the file; `ended` unless a trial is missing."""

    place: Place
    start: int
    end: int
    trial: int
    success: bool
    trials: int

    @property
    def ended(self) -> bool:
        return self.success or self.trial == self.trials


class Store:
    """The file of an evaluation's episodes.

    Args:
        folder: Of the evaluation, held by this process alone.
        trials: Most trials at a task.

    Raises:
        ResultError: The file is damaged elsewhere than at its end.
    """

    def __init__(self, folder: Path, trials: int) -> None:
        """Read which units have ended, and drop one that was cut off."""
        self.path = folder / RECORDINGS
        self._spans: dict[Place, _Span] = {}
        self._file: FileIO | None = None
        self._failure = ""
        if self.path.exists():
            self._take_stock(trials)

    def __contains__(self, place: Place) -> bool:
        """Return whether the unit has ended."""
        return place in self._spans

    def __len__(self) -> int:
        """Return how many units have ended."""
        return len(self._spans)

    def end(self, place: Place) -> int:
        """Return where a unit that has ended ends in the file, in bytes."""
        return self._spans[place].end

    def successes(self) -> int:
        """Return how many units were solved, in any trial."""
        return sum(span.success for span in self._spans.values())

    def append(self, place: Place, trials: Sequence[Recording]) -> None:
        """Write a unit; when this returns, it is on the disk.

        Args:
            place: Seed and index of the task.
            trials: Its episodes in order, described by `harness.evaluation.episodes.about`.

        Raises:
            ResultError: It cannot be written, as on a full disk.
        """
        text = "".join(lines_of(recording) for recording in trials).encode()
        if self._failure:  # what was torn must stay the last thing in the file
            raise ResultError(self._failure)
        try:
            start = self._write(text)
        except OSError as e:
            self._failure = f"{self.path} cannot be written: {e.strerror}"
            raise ResultError(self._failure) from None
        success = bool(trials[-1].turns[-1].info["success"])
        self._spans[place] = _Span(
            place, start, start + len(text), len(trials), success, len(trials)
        )

    def _write(self, text: bytes) -> int:
        """Put text at the end of the file and on the disk, and return where it starts."""
        if self._file is None:
            # Unbuffered: what a full disk refused is not written by a later close.
            self._file = self.path.open("ab", buffering=0)
            durable.flush(self.path.parent)
        # Written to a file that is no longer there, all would be lost without a word.
        if not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat()):
            raise OSError(errno.ENOENT, "it was replaced by another file")
        start = self._file.tell()
        left = memoryview(text)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        return start

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def sort(self) -> None:
        """Write the file again in the order of seeds, tasks and trials, unless it is so already.

        The file is replaced in one step: an interruption leaves the old one or the new one.
        """
        self.close()
        spans = [self._spans[place] for place in sorted(self._spans)]
        if all(a.end == b.start for a, b in pairwise(spans)):
            return
        with self.path.open("rb") as old, replacing(self.path) as new:
            for span in spans:
                old.seek(span.start)
                new.write(old.read(span.end - span.start))

    def _take_stock(self, trials: int) -> None:
        spans = list(self._read_spans(trials))
        end = spans[-1].end if spans else 0
        if spans and not spans[-1].ended:
            end = spans.pop().start
        for span in spans:
            if not span.ended or span.place in self._spans:
                what = "is there twice" if span.ended else "is not whole"
                raise self._damaged(f"the unit of seed and task {span.place} {what}")
            self._spans[span.place] = span
        if end < self.path.stat().st_size:
            with self.path.open("r+b") as file:
                file.truncate(end)

    def _read_spans(self, trials: int) -> Iterator[_Span]:
        """Yield the units in the order of the file; the last one may be cut off."""
        current: _Span | None = None
        for episode in self._read_episodes():
            if current and current.place == episode.place and episode.trial == current.trial + 1:
                current.end, current.trial = episode.end, episode.trial
                current.success = episode.success
                continue
            if current:
                yield current
            if episode.trial != 1:
                raise self._damaged("an episode follows none of its unit")
            start, end = episode.start, episode.end
            current = _Span(episode.place, start, end, 1, episode.success, trials)
        if current:
            yield current

    def _read_episodes(self) -> Iterator[_Episode]:
        """Yield the whole episodes of the file; what is torn at its end is left out."""
        lines: list[bytes] = []
        offset = start = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break  # torn: a turn that its episode then lacks, or another one's header
                if line.startswith(_HEADER) and lines:
                    yield self._whole(lines, start)
                    lines, start = [], offset
                lines.append(line)
                offset += len(line)
        if lines:
            last = _episode(lines, start)
            if last is not None:
                yield last

    def _whole(self, lines: list[bytes], start: int) -> _Episode:
        found = _episode(lines, start)
        if found is None:
            raise self._damaged(f"the episode at byte {start} is not whole")
        return found

    def _damaged(self, what: str) -> ResultError:
        return ResultError(f"{self.path} is damaged: {what}; delete the folder and evaluate again")


def _episode(lines: list[bytes], start: int) -> _Episode | None:
    """Return what the lines of an episode say, or None if they are not whole."""
    try:
        told = json.loads(lines[0])["provenance"][ABOUT]
        if len(lines) != told["turns"] + 2:
            return None
        place = int(told["seed"]), int(told["index"])
        success = bool(json.loads(lines[-1])["info"]["success"])
        end = start + sum(map(len, lines))
        return _Episode(start, end, place, int(told["trial"]), success)
    except (ValueError, KeyError, TypeError):
        return None


def lines_of(recording: Recording) -> str:
    """Return an episode as its lines, each with its newline."""
    lines = [wire.dumps(recording.header), *map(turn_line, recording.turns)]
    return "".join(f"{line}\n" for line in lines)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that takes the place of `path` in one step; for a `with` block."""
    partial = path.with_name(f"{path.name}{PARTIAL}")
    with partial.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    durable.flush(path.parent)
