"""Records of finished episodes, read from recordings. Every figure is counted from records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agentgyms.core.errors import DataCorrupt, DataMissing
from agentgyms.recording import recording_format
from agentgyms.recording.recording_format import RecordedTurn, Recording
from harness.credit.table import INVALID_FEEDBACK, LOOKUPS
from harness.rollouts.self_play import is_own
from harness.types.fields import is_non_negative_int
from harness.types.rollout import StopReason, Usage

EPISODE_KEY: Final = "evaluation"
"""Key in a recording's provenance; the value says which episode of the evaluation it is."""


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One finished episode in numbers; in self-chat they count the learner's turns only."""

    task_id: str
    index: int  # position of the task in the evaluation
    seed: int
    trial: int  # counts attempts from 1
    family: str
    success: bool
    score: float  # in [0, 1]; 0 if the context was full before it was scored
    turns: int
    invalid: int = 0  # turns with a malformed or inadmissible action
    failed: int = 0  # turns whose action raised an error
    unfinished: int = 0  # turns whose answer reached the token limit
    cut: int = 0  # turns whose prompt was shortened
    stop_reason: StopReason = StopReason.TERMINATED
    usage: Usage = field(
        default_factory=Usage
    )  # with reflection, search and, in self-chat, both seats
    # the environment's, after the last turn
    metrics: Mapping[str, float] = field(default_factory=dict)
    lookups: Mapping[str, int] = field(default_factory=dict)  # turns that call each of `LOOKUPS`
    thoughts: tuple[int, ...] = ()  # tokens of each thought with known length
    cut_thoughts: int = 0  # thoughts at their limit or without end
    steps: int = 0  # environment steps, with search and both seats

    @property
    def order(self) -> tuple[int, int, int]:
        """Seed, task and trial: the episodes of an evaluation are sorted by these."""
        return self.seed, self.index, self.trial


def describe_episode(
    recording: Recording,
    *,
    index: int,
    seed: int,
    trial: int,
    stop_reason: StopReason,
    reflection: Mapping[str, Any] | None = None,
    preamble: str = "",
    search: Mapping[str, Any] | None = None,
) -> None:
    """Write into a recording's provenance which episode of an evaluation it holds.

    `index` is the task's position in the evaluation; `trial` counts from 1. `reflection` has
    `prompt`, `answer` and `tokens`; `preamble` is the text before the learner's prompts; `search`
    is the cost of a search, as `BestOf.play` returns it.
    """
    recording.header["provenance"][EPISODE_KEY] = {
        "index": index,
        "seed": seed,
        "trial": trial,
        "stop_reason": stop_reason.value,
        "turns": len(recording.turns) - 1,
        "preamble": preamble,
        "reflection": dict(reflection) if reflection else None,
        **({"search": dict(search)} if search else {}),
    }


def read(path: str | Path) -> list[EpisodeRecord]:
    """Return the episodes of recordings, in file order; raise `DataMissing` or `DataCorrupt`."""
    try:
        lines = recording_format.lines_of(Path(path))  # one episode in memory at a time
        return [episode_record(recording) for recording in recording_format.parse(lines, str(path))]
    except FileNotFoundError:
        raise DataMissing(f"there are no recordings {path}") from None
    except (UnicodeError, IsADirectoryError) as e:
        what = "a folder" if isinstance(e, IsADirectoryError) else f"no text file ({e})"
        raise DataCorrupt(f"{path} is {what}: expected recordings, JSON lines") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as e:
        raise DataCorrupt(f"{path} holds episodes of no evaluation: {type(e).__name__}: {e}") from e


def usage_of(turns: Sequence[RecordedTurn]) -> Usage:
    """Return the calls and tokens of turns, the reset's not among them."""
    tokens = [turn.agent["tokens"] for turn in turns]
    tokens += [turn.agent["summary"]["tokens"] for turn in turns if "summary" in turn.agent]
    return Usage(sum(t[0] for t in tokens), sum(t[1] for t in tokens), len(tokens))


def episode_record(recording: Recording) -> EpisodeRecord:
    """Return the record of an episode; raise `DataCorrupt` if it is of no evaluation or cut off."""
    described = recording.header.get("provenance", {}).get(EPISODE_KEY)
    if not isinstance(described, dict) or described.get("turns") != len(recording.turns) - 1:
        raise DataCorrupt("an episode is not whole, or of no evaluation: play it again")
    first, last, turns = recording.turns[0].info, recording.turns[-1].info, recording.turns[1:]
    reflection, stop_reason = described["reflection"], StopReason(described["stop_reason"])
    search, steps, usage = described.get("search", {}), len(turns), usage_of(turns)
    for more, calls in ((reflection, 1), (search, search.get("calls", 0))):
        if more:
            prompt, response = more["tokens"][:2]
            usage += Usage(prompt, response, calls)
    unrated = math.isnan(last["score"])
    if unrated and stop_reason is not StopReason.CONTEXT_LIMIT:
        raise DataCorrupt("an episode has no score: nobody rated it, play it again")
    turns = [turn for turn in turns if is_own(turn)]
    thoughts = [turn.agent.get("thought", (None, False)) for turn in turns]
    invalid = [not t.agent["valid"] or t.info["feedback"] in INVALID_FEEDBACK for t in turns]
    return EpisodeRecord(
        task_id=first["task_id"],
        index=described["index"],
        seed=described["seed"],
        trial=described["trial"],
        family=first["family"],
        success=last["success"],
        score=0.0 if unrated else last["score"],
        turns=len(turns),
        invalid=sum(invalid),
        failed=sum(turn.info["feedback"] == "failed" for turn in turns),
        unfinished=sum(not turn.agent["finished"] for turn in turns),
        cut=sum(bool(turn.agent["left_out"]) for turn in turns),
        stop_reason=stop_reason,
        usage=usage,
        metrics=last["metrics"],
        lookups={name: sum(name in turn.action for turn in turns) for name in LOOKUPS},
        thoughts=tuple(length for length, _ in thoughts if is_non_negative_int(length)),
        cut_thoughts=sum(bool(cut) for _, cut in thoughts),
        steps=steps + search.get("steps", 0),
    )
