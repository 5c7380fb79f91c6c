"""Converts recordings into rollouts, for instance to compute credit."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from agentgyms.core.errors import DataCorrupt
from agentgyms.recording.recording_format import Recording
from harness.rollouts.episode import BRANCH
from harness.rollouts.self_play import SeatTurns, goal_of, is_partners
from harness.types.messages import text_and_image
from harness.types.rollout import Completion, Rollout, StopReason, Turn


def from_recordings(recordings: Iterable[Recording], path: Path) -> list[Rollout]:
    """Return the episodes of a recording as rollouts; raise `DataCorrupt` if none has a turn.

    Episodes without a turn or a score are left out. Episodes of one task that started in one state
    are a group. The action is the text of a completion. In self-play a rollout has the learner's
    turns.
    """
    groups: dict[tuple[str, str], int] = {}
    members: defaultdict[int, itertools.count[int]] = defaultdict(itertools.count)
    rollouts = []
    for recording in recordings:
        rollout, info = rollout_of(recording), recording.turns[0].info
        if not rollout.turns or math.isnan(rollout.score):
            continue
        rollout.group = groups.setdefault((info["task_id"], info["state_key"]), len(groups))
        rollout.member = next(members[rollout.group])
        rollouts.append(rollout)
    if not rollouts:
        raise DataCorrupt(f"{path} holds no episode with a turn")
    return rollouts


def rollout_of(recording: Recording) -> Rollout:
    """Return a recorded episode as the first member of group 0."""
    first, last = recording.turns[0].info, recording.turns[-1]
    branch = recording.header.get(BRANCH, {})
    return Rollout(
        task_id=first["task_id"],
        family=first["family"],
        group=0,
        member=0,
        seed=recording.header["seed"],
        goal=goal_of(recording),
        turns=_turns(recording),
        stop_reason=StopReason.TERMINATED if last.terminated else StopReason.TURN_LIMIT,
        success=last.info["success"],
        score=last.info["score"],
        parent=branch.get("parent"),
        branch_turn=branch.get("turn", 0),
    )


def _turns(recording: Recording) -> list[Turn]:
    turns: list[Turn] = []
    seats = SeatTurns(turns)
    for before, after in zip(recording.turns, recording.turns[1:], strict=False):
        text, image = text_and_image(before.observation)
        turn = Turn(
            observation=text,
            state_key=before.info["state_key"],
            completion=Completion(after.action),
            action=after.action,
            action_key=after.info["action_key"],
            feedback=after.info["feedback"],
            reward=after.reward,
            next_observation=text_and_image(after.observation)[0],
            next_state_key=after.info["state_key"],
            progress=after.info["progress"],
            image=image,
            atoms=before.info["atoms"],
            next_atoms=after.info["atoms"],
        )
        seats.add(is_partners(before.info), turn)
    return turns
