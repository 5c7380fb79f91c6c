"""The seats of an episode: one, unless an agent plays its own partner too (self-chat).

Where it does, the environment gives every turn of both seats to the agent and tells in its metric
`partner_turn` who acts next: 1 for the partner's seat. Each seat sees its own prompts and answers
alone. What the partner's seat does is part of the world: rollouts hold the learner's turns, and
what came until the learner's next one came of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from agentgyms.transcript import RecordedTurn, Recording
from harness.rollout import Turn

PARTNER: Final = "partner"
"""What a recording says of a turn that was not the learner's, under `SEAT`."""

SEAT: Final = "seat"


def is_partners(info: Mapping[str, Any]) -> bool:
    """Return whether the partner's seat acts next."""
    return bool(info.get("metrics", {}).get("partner_turn") == 1)


def is_own(turn: RecordedTurn) -> bool:
    """Return whether a recorded turn is the learner's."""
    return turn.agent.get(SEAT) != PARTNER


def goal_of(recording: Recording) -> str:
    """Return the learner's goal, which `info` tells when it acts; "" if its turn never came."""
    infos = (turn.info for turn in recording.turns)
    return next((str(info["goal"]) for info in infos if not is_partners(info)), "")


class SeatTurns:
    """The turns of each seat of an episode, those of the other seat in between left out.

    Args:
        own: Where the learner's turns are kept.
    """

    def __init__(self, own: list[Turn]) -> None:
        """Begin without turns of the partner's."""
        self._turns: dict[bool, list[Turn]] = {False: own, True: []}

    def of(self, partner: bool) -> list[Turn]:
        """Return the turns of a seat, to which later ones are added."""
        return self._turns[partner]

    def take(self, partner: bool, turn: Turn) -> None:
        """Add a turn of a seat; to the other seat's latest one it is what came of it."""
        self._turns[partner].append(turn)
        other = self._turns[not partner]
        if other:
            other[-1] = _followed(other[-1], turn)


def _followed(turn: Turn, after: Turn) -> Turn:
    """Return a turn with what the other seat's turn after it brought."""
    return replace(
        turn,
        reward=turn.reward + after.reward,
        next_observation=after.next_observation,
        next_state_key=after.next_state_key,
        progress=after.progress,
    )
