"""Joins the answers of a rollout with the agent's actions: each answer is a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

from agentgyms.core.errors import BadRequest
from agentgyms.recording.recording_format import Recording
from harness.rollouts.codec import GroupNumbers, decode
from harness.training.gateway.chat_requests import Refused
from harness.training.gateway.env_sessions import Position
from harness.training.trl_rollouts import from_tool_calls
from harness.types.rollout import Completion, Rollout

_REPORTED: Final = ("reward", "success", "score", "turns")


@dataclass(slots=True, eq=False)
class Call:
    """One call of the policy."""

    shown: str  # text of the request's last message
    position: Position | None = None  # the session's when the request came
    answer: Completion | None = None  # None while the policy generates
    weights: int = 0  # training step whose weights answered
    has_tools: bool = False  # the request offered tools
    has_called: bool = False  # the answer calls some


def from_session(recording: Recording, calls: Sequence[Call]) -> Rollout:
    """Return the rollout of an episode that an agent played in a session.

    The actions between an answer's request and the next request are one turn. An answer without an
    action is `malformed` and leaves the state; answers after the episode's end have no turn. Where
    requests offer tools, those without any are asides, such as for a title or a summary: their
    answers do not act, and are no fault. `calls` are in the order of their requests, with positions
    and answers.
    """
    # The number of turns when each request came; it never falls, though requests may overlap.
    places = list(accumulate((call.position.turn for call in calls if call.position), max))
    by_tools = any(call.has_tools for call in calls)
    asides = {i for i, call in enumerate(calls) if by_tools and not call.has_tools}
    actors = [i for i in range(len(calls)) if i not in asides]
    first, *later = recording.turns[places[0] :]
    turns = [
        replace(one, agent={"answer": _actor(one.turn, places, actors, calls)}) for one in later
    ]
    rollout = from_tool_calls(Recording(recording.header, [first, *turns]), len(calls), asides)
    return _with_answers(rollout, calls)


def _actor(turn: int, places: Sequence[int], actors: Sequence[int], calls: Sequence[Call]) -> int:
    """Return the answer that took a turn: of the last before it, which saw one state, a caller."""
    before = [i for i in actors if places[i] < turn] or [0]
    last = [i for i in before if places[i] == places[before[-1]]]
    return max(last, key=lambda i: (calls[i].has_called, i))


def from_report(
    task: str, report: Mapping[str, Any], calls: Sequence[Call], number: int
) -> Rollout:
    """Return a rollout with the rewards that its agent reports.

    A report has `reward`, for the last answer, or `turns`, one object for each answer with the
    fields of `harness.rollouts.rollout_files`. `number` tells this rollout's states from others'.
    Raises `Refused` if a field is missing, unknown or wrong.
    """
    for name in report:
        if name not in _REPORTED:
            raise Refused(f"unknown field {name!r:.40}: expected some of {', '.join(_REPORTED)}")
    if ("reward" in report) == ("turns" in report):
        raise Refused("expected either 'reward', a number, or 'turns', one object for each answer")
    reported = report.get("turns")
    if reported is None:
        reported = [{"reward": 0.0}] * (len(calls) - 1) + [{"reward": report["reward"]}]
    if not isinstance(reported, list) or len(reported) != len(calls):
        count = len(reported) if isinstance(reported, list) else type(reported).__name__
        raise Refused(f"'turns' must have one object for each of {len(calls)} answers, got {count}")
    turns = [
        {"observation": call.shown, "action": call.answer.text if call.answer else "", **one}
        if isinstance(one, dict)
        else one
        for call, one in zip(calls, reported, strict=True)
    ]
    line = {"task_id": task, "turns": turns}
    line |= {name: report[name] for name in ("success", "score") if name in report}
    try:
        rollout, _ = decode(line, number, GroupNumbers(), ())
    except BadRequest as e:
        raise Refused(str(e)) from None
    return _with_answers(rollout, calls)


def _with_answers(rollout: Rollout, calls: Sequence[Call]) -> Rollout:
    answers = [call.answer for call in calls if call.answer is not None]
    rollout.turns = [
        replace(turn, completion=answer)
        for turn, answer in zip(rollout.turns, answers, strict=False)
    ]
    return rollout
