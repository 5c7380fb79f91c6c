"""Ended rollouts: what is refused, and the values that a checkpoint holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from harness.rollouts.codec import GroupNumbers, decode, encode
from harness.training.gateway.chat_requests import Refused
from harness.types.rollout import Rollout

MOST_REWARD: Final = 1e18
"""The largest reward: its square is finite in float32."""


class Ended(NamedTuple):
    """A rollout with its reward, and the number of the step of its oldest weights."""

    rollout: Rollout
    weights: int


Members = dict[str, Ended | None]
"""The members of a group by name; None for one that is still played."""


def kept(ended: Ended) -> dict[str, Any]:
    """Return an ended rollout as plain values."""
    rollout = ended.rollout
    return {
        "rollout": encode(rollout, {}, tokens=True, images=True),
        "metrics": {**rollout.metrics},
        "weights": ended.weights,
    }


def restored(value: Mapping[str, Any]) -> Ended:
    """Return the ended rollout of `kept`; raise `ValueError` if it is none."""
    rollout, _ = decode(value["rollout"], 0, GroupNumbers(), ())
    rollout.metrics = dict(value["metrics"])
    return Ended(rollout, int(value["weights"]))


def check_start(group: str, rollout: Rollout, members: Members) -> None:
    """Refuse a rollout that starts in another state than those of its group."""
    other = next((one.rollout for one in members.values() if one is not None), None)
    if other is None:
        return
    own, start = ((one.task_id, one.turns[0].state_key) for one in (rollout, other))
    if own != start:
        raise Refused(
            f"the rollouts of group {group:.40} start in one state of one task, and this one "
            f"elsewhere: task {own[0]!r:.60}, not {start[0]!r:.60}",
            409,
        )


def check_numbers(rollout: Rollout) -> None:
    """Refuse rewards and scores that training, which computes in float32, cannot hold."""
    rewards = [turn.reward for turn in rollout.turns]
    for value in (*rewards, sum(rewards), rollout.score):
        if not abs(value) <= MOST_REWARD:
            raise Refused(
                f"a reward or score of {value:.3g} is too large: expected at most "
                f"{MOST_REWARD:g}, for each turn and for all together"
            )
