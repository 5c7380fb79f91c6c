"""Converts episodes that another trainer played by tool calls into rollouts, a turn per answer.

A model may make several calls in an answer, or none. An answer's calls are one turn; an answer
without a call that the environment took is a turn too, `malformed`, which leaves the state.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from agentgyms.core.env import Feedback
from agentgyms.recording.recording_format import RecordedTurn, Recording
from harness.rollouts.from_recordings import rollout_of
from harness.types.rollout import Rollout


def from_tool_calls(recording: Recording, answers: int, asides: Collection[int] = ()) -> Rollout:
    """Return an episode as the first member of group 0.

    `agent["answer"]` of a recorded turn is the number of its answer, from 0. `answers` counts them;
    after the episode's end they have no turn. `asides` are those that were not asked to act.
    """
    turns = [recording.turns[0]]
    for answer in range(answers):
        if turns[-1].terminated or turns[-1].truncated:
            break
        made = [turn for turn in recording.turns[1:] if turn.agent["answer"] == answer]
        without = Feedback.OK if answer in asides else Feedback.MALFORMED
        turns.append(_joined(made, len(turns)) if made else _still(turns[-1], without))
    return rollout_of(Recording(recording.header, turns))


def _joined(made: Sequence[RecordedTurn], number: int) -> RecordedTurn:
    """Return the turns of one answer as one: rewards add up, the first fault is its feedback."""
    faults = [f for turn in made if (f := turn.info["feedback"]) != Feedback.OK.value]
    info = {
        **made[-1].info,
        "feedback": faults[0] if faults else Feedback.OK.value,
        "action_key": "\n".join(turn.info["action_key"] for turn in made),
    }
    action = "\n".join(turn.action for turn in made)
    reward = sum(turn.reward for turn in made)
    return replace(made[-1], turn=number, action=action, reward=reward, info=info)


def _still(last: RecordedTurn, feedback: Feedback) -> RecordedTurn:
    info = {**last.info, "feedback": feedback.value, "action_key": ""}
    return replace(last, turn=last.turn + 1, action="", reward=0.0, info=info)
