"""An episode of a recording, as rows show it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

from agentgyms.adapters.messages import image_urls, user_text
from agentgyms.core.serialization import encode_number
from agentgyms.core.tools import ANY_ACTION, Tools
from agentgyms.recording import RecordedTurn, Recording
from agentgyms.registration import ENVIRONMENTS, env_class

IMAGE: Final = "<image>"
"""Stands in a text for the next picture of the row's column `images`."""


@dataclass(frozen=True)
class Episode:
    """An episode, seen by its agent: in self-play the partner's turns are the world's.

    The recording may come from anyone. `pictures`: whether any episode of the export has pictures.
    """

    recording: Recording
    pictures: bool = False

    @cached_property
    def turns(self) -> list[tuple[RecordedTurn, RecordedTurn]]:
        """For each of the agent's turns, the turn before, which it saw, and its own."""
        # turn i is taken after seeing turn i - 1; the reset is turn 0
        return [(seen, turn) for seen, turn in pairwise(self.recording.turns) if _is_own(turn)]

    @cached_property
    def outcomes(self) -> list[RecordedTurn]:
        """For each of the agent's turns, the turn that it saw next."""
        return [*(seen for seen, _ in self.turns[1:]), self.recording.turns[-1]]

    @property
    def has_pictures(self) -> bool:
        """Whether an observation has a picture."""
        return any(image_urls(turn.observation) for turn in self.recording.turns)

    @cached_property
    def tools(self) -> Tools:
        """The environment's tools; a single one, `act`, if the environment is not built in."""
        header = self.recording.header
        if header["env_id"] not in ENVIRONMENTS:
            return ANY_ACTION
        return env_class(header["env_id"]).tools_of(header["kwargs"])

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the recording comes from."""
        found = self.recording.header.get("provenance")
        return found if isinstance(found, Mapping) else {}

    @property
    def actor(self) -> str:
        """Who played, as the recording says; "" if it does not."""
        return str(self.provenance.get("actor", ""))

    @property
    def rewards(self) -> list[float | None]:
        """The reward of each turn, up to the agent's next one; None if it is unknown."""
        sums: list[float] = []
        for turn in self.recording.turns[1:]:
            if _is_own(turn):
                sums.append(turn.reward)
            elif sums:
                sums[-1] += turn.reward
        return [encode_number(reward) for reward in sums]

    def facts(self, shown: Sequence[RecordedTurn]) -> dict[str, Any]:
        """Return the columns that all forms have; those without a fixed type are JSON text.

        `shown` are the turns whose pictures the row's texts name.
        """
        header, first, last = self.recording.header, self.turns[0][0].info, self.recording.turns[-1]
        rewards = self.rewards
        facts = {
            "env_id": header["env_id"],
            "kwargs": json.dumps(header["kwargs"]),
            "seed": header["seed"],
            "options": json.dumps(header["options"]),
            "task_id": first["task_id"],
            "split": first["split"],
            "family": first["family"],
            "goal": first["goal"],
            "actor": self.actor,
            "turns": len(self.turns),
            "rewards": rewards,
            "return": encode_number(math.fsum(math.nan if r is None else r for r in rewards)),
            "score": encode_number(last.info["score"]),
            "success": last.info["success"],
            "end": _end(last),
        }
        if self.pictures:
            facts["images"] = [
                url for turn in shown for url in image_urls(turn.observation).values()
            ]
        return facts


def text_seen(
    turn: RecordedTurn, action: Callable[[str], str] = str, *, pictures: bool = True
) -> str:
    """Return a turn's text; `action` writes an admissible action, `IMAGE` stands for a picture."""
    text = user_text(turn.observation, turn.info, action)
    feedback = turn.info["feedback"]
    told = "" if feedback == "ok" else f"\n\n[{feedback}] {turn.info['feedback_text']}"
    marks = IMAGE * len(image_urls(turn.observation)) if pictures else ""
    return f"{marks}{text}{told}"


def answer(turn: RecordedTurn) -> str | None:
    """Return the answer that an agent's turn was read from, if it was recorded."""
    found = turn.agent.get("answer")
    return found if isinstance(found, str) else None


def _is_own(turn: RecordedTurn) -> bool:
    return turn.agent.get("seat") != "partner"


def _end(last: RecordedTurn) -> str:
    if last.terminated:
        return "terminated"
    return "truncated" if last.truncated else "unfinished"
