"""One finished episode in numbers, read from its recording: what every figure is counted from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentgyms import transcript
from agentgyms.errors import DataCorrupt, DataMissing
from agentgyms.transcript import Recording
from harness.credit.table import INVALID_FEEDBACK
from harness.rollout import StopReason, Usage
from harness.seats import is_own

ABOUT: Final = "evaluation"
"""Key in a recording's provenance under which an evaluation describes the episode."""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """What an episode came to.

    Attributes:
        index: Of the task in the evaluation.
        seed: One of the evaluation's seeds.
        trial: From 1; more than 1 only where failed episodes are tried again.
        invalid: Turns whose action was malformed or inadmissible.
        failed: Turns whose action was executed and raised.
        unfinished: Turns whose answer ran into the token limit.
        cut: Turns whose prompt left something out.
        usage: Of the episode, a reflection on it included. In self-chat that of both seats; all
            else is counted from the learner's turns.
        score: At the end, in [0, 1]; 0 where the agent's context ended before the benchmark had
            given one.
        metrics: The environment's own, after the last turn.
    """

    task_id: str
    index: int
    seed: int
    trial: int
    family: str
    success: bool
    score: float
    turns: int
    invalid: int
    failed: int
    unfinished: int
    cut: int
    stop_reason: StopReason
    usage: Usage
    metrics: Mapping[str, float]

    @property
    def place(self) -> tuple[int, int, int]:
        """Seed, task and trial: where the episode stands among all."""
        return self.seed, self.index, self.trial


def about(
    recording: Recording,
    *,
    index: int,
    seed: int,
    trial: int,
    stop_reason: StopReason,
    reflection: Mapping[str, Any] | None = None,
    preamble: str = "",
) -> None:
    """Write into a recording's provenance which episode of an evaluation it is.

    Args:
        recording: Changed in place.
        index: Of the task in the evaluation.
        seed: One of the evaluation's seeds.
        trial: From 1.
        stop_reason: Why the episode ended.
        reflection: What the agent thought of it afterwards: `prompt`, `answer`, `tokens`.
        preamble: What stood before the learner's prompts: worked examples, reflections.
    """
    recording.header["provenance"][ABOUT] = {
        "index": index,
        "seed": seed,
        "trial": trial,
        "stop_reason": stop_reason.value,
        "turns": len(recording.turns) - 1,
        "preamble": preamble,
        "reflection": dict(reflection) if reflection else None,
    }


def read(path: str | Path) -> list[EpisodeRecord]:
    """Return the episodes of an evaluation's recordings, in the order of the file.

    Raises:
        DataMissing: There is no such file.
        DataCorrupt: It holds something else than episodes of an evaluation.
    """
    try:
        with Path(path).open(encoding="utf-8") as lines:  # one episode in memory at a time
            return [record_of(recording) for recording in transcript.parse(lines, str(path))]
    except FileNotFoundError:
        raise DataMissing(f"there are no recordings {path}") from None
    except (UnicodeDecodeError, IsADirectoryError) as e:
        what = "a folder" if isinstance(e, IsADirectoryError) else "no text file"
        raise DataCorrupt(f"{path} is {what}: expected recordings, JSON lines") from None


def record_of(recording: Recording) -> EpisodeRecord:
    """Return one episode in numbers.

    Raises:
        DataCorrupt: It is no episode of an evaluation, not whole, or unrated.
    """
    told = recording.header.get("provenance", {}).get(ABOUT)
    if not isinstance(told, dict) or told.get("turns") != len(recording.turns) - 1:
        raise DataCorrupt("an episode is not whole, or of no evaluation: play it again")
    first, last, turns = recording.turns[0].info, recording.turns[-1].info, recording.turns[1:]
    reflection, stop_reason = told["reflection"], StopReason(told["stop_reason"])
    spent = [turn.agent["tokens"] for turn in turns] + (
        [reflection["tokens"]] if reflection else []
    )
    unrated = math.isnan(last["score"])
    if unrated and stop_reason is not StopReason.CONTEXT_LIMIT:
        raise DataCorrupt("an episode has no score: nobody rated it, play it again")
    turns = [turn for turn in turns if is_own(turn)]
    invalid = [not t.agent["valid"] or t.info["feedback"] in INVALID_FEEDBACK for t in turns]
    return EpisodeRecord(
        task_id=first["task_id"],
        index=told["index"],
        seed=told["seed"],
        trial=told["trial"],
        family=first["family"],
        success=last["success"],
        score=0.0 if unrated else last["score"],
        turns=len(turns),
        invalid=sum(invalid),
        failed=sum(turn.info["feedback"] == "failed" for turn in turns),
        unfinished=sum(not turn.agent["finished"] for turn in turns),
        cut=sum(bool(turn.agent["left_out"]) for turn in turns),
        stop_reason=stop_reason,
        usage=Usage(sum(s[0] for s in spent), sum(s[1] for s in spent), len(spent)),
        metrics=last["metrics"],
    )
