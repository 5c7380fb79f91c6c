"""Self-play: an agent plays its partner, too, so an episode has two seats.

The metric `partner_turn` is 1 if the partner's seat acts next. Each seat sees only its own prompts
and answers. A rollout holds the learner's turns; rewards until the learner's next turn go to its
last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from agentgyms.recording.recording_format import RecordedTurn, Recording
from harness.types.rollout import Turn

PARTNER: Final = "partner"
"""The value under `SEAT` in a recorded turn of the partner's."""

SEAT: Final = "seat"


def is_partners(info: Mapping[str, Any]) -> bool:
    """Return whether the partner's seat acts next."""
    return bool(info.get("metrics", {}).get("partner_turn") == 1)


def is_own(turn: RecordedTurn) -> bool:
    """Return whether a recorded turn is the learner's."""
    return turn.agent.get(SEAT) != PARTNER


def goal_of(recording: Recording) -> str:
    """Return the learner's goal, which `info` holds when the learner acts; "" if it never acted."""
    infos = (turn.info for turn in recording.turns)
    return next((str(info["goal"]) for info in infos if not is_partners(info)), "")


class SeatTurns:
    """The turns of each seat of an episode; the learner's are kept in a list of the caller's."""

    def __init__(self, own: list[Turn]) -> None:
        self._turns: dict[bool, list[Turn]] = {False: own, True: []}

    def turns(self, partner: bool) -> list[Turn]:
        """Return the list of a seat's turns; later turns are added to it."""
        return self._turns[partner]

    def copied(self, own: list[Turn]) -> SeatTurns:
        """Return a copy with the learner's turns in `own`."""
        twin = SeatTurns(own)
        twin._turns[True] = [*self._turns[True]]
        return twin

    def add(self, partner: bool, turn: Turn) -> None:
        """Add a turn to its seat, and its reward and next state to the other seat's last turn."""
        self._turns[partner].append(turn)
        other = self._turns[not partner]
        if other:
            other[-1] = replace(
                other[-1],
                reward=other[-1].reward + turn.reward,
                next_observation=turn.next_observation,
                next_state_key=turn.next_state_key,
                progress=turn.progress,
                next_atoms=turn.next_atoms,
                next_oracle=turn.next_oracle,
            )
